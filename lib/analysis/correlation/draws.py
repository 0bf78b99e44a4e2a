"""The coefficient of many bootstrap draws at once.

A draw is a row of counts: how often each item or cluster is in it (0, 1, 2, ...). With counts,
Pearson needs one matrix product, Spearman a cumulative sum over the order sorted once, Kendall a
quadratic form: no draw is ever sorted.
"""

from collections.abc import Iterator

import numpy as np

from lib.analysis.correlation.coefficients import check_method

CELLS = 400_000  # items x draws held at once: a few arrays of 3 MB, whatever the corpus size


def chunks(draws: int, width: int, method: str = "") -> Iterator[int]:
    """Split `draws` into block sizes so that one block holds about `CELLS` cells.

    Kendall prepares an item by item matrix for each block, so its blocks are 20 times longer.

    >>> list(chunks(5, CELLS // 2))
    [2, 2, 1]
    """
    size = max(1, CELLS * (20 if method == "kendall" else 1) // max(width, 1))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def resampled_correlations(
    x: np.ndarray,
    y: np.ndarray,
    counts: np.ndarray,
    method: str = "pearson",
    clusters: np.ndarray | None = None,
) -> np.ndarray:
    """The coefficient of (x, y) under each row of `counts`.

    Parameters
    ----------
    x, y : (n,) scores and ratings, no NaN.
    counts : (draws, c) how often each cluster is in the draw; c = n without `clusters`.
    method : "pearson", "spearman" or "kendall" (tau-b).
    clusters : (n,) the column of `counts` each item belongs to.

    Returns
    -------
    (draws,) coefficients, equal to repeating every item `counts` times and calling scipy. NaN where
    one side of the draw is constant. Time: Pearson draws x c, Spearman draws x n, Kendall
    n x n + draws x c x c.

    >>> x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
    >>> resampled_correlations(x, y, np.array([[1, 1, 1, 1], [2, 0, 0, 2]]), "spearman").round(6)
    array([0.8, 1. ])
    """
    counts = np.asarray(counts)
    clusters = np.arange(len(x)) if clusters is None else np.asarray(clusters)
    x, y = np.asarray(x, float), np.asarray(y, float)
    engine = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}
    return engine[check_method(method)](x, y, counts, clusters)


def ratio(product: np.ndarray, x_square: np.ndarray, y_square: np.ndarray) -> np.ndarray:
    """product / sqrt(x_square * y_square), within [-1, 1]; NaN where a side does not vary.

    >>> ratio(np.array([3.0, 1.0]), np.array([9.0, 0.0]), np.array([4.0, 1.0]))
    array([0.5, nan])
    """
    flat = ~((x_square > 1e-9) & (y_square > 1e-9))
    value = product / np.sqrt(np.where(flat, 1.0, x_square * y_square))
    return np.where(flat, np.nan, np.clip(value, -1.0, 1.0))


def _pearson(x, y, counts, clusters):
    x, y = _standard(x), _standard(y)  # the sums below then lose no digits
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    moments = np.stack([np.bincount(clusters, c, counts.shape[1]) for c in columns], axis=1)
    n, sx, sy, sxx, syy, sxy = (counts.astype(float) @ moments).T
    return ratio(n * sxy - sx * sy, spread(n, sx, sxx), spread(n, sy, syy))


def spread(n: np.ndarray | int, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """n sum(x^2) - sum(x)^2, which is 0 for equal values; what rounding leaves of 0 becomes 0.

    >>> spread(3, np.array([0.3]), np.array([3 * 0.1**2]))
    array([0.])
    """
    value = n * squares - total**2
    return np.where(value < 1e-12 * n * squares, 0.0, value)


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / (values.std() or 1.0)


TieGroups = tuple[np.ndarray, np.ndarray] | None


def tie_groups(ordered: np.ndarray) -> TieGroups:
    """Group number of each position and the end of each group; None without ties.

    >>> tie_groups(np.array([1.0, 1.0, 2.0]))
    (array([0, 0, 1]), array([2, 3]))
    """
    new = np.r_[True, ordered[1:] != ordered[:-1]]
    if new.all():
        return None
    return np.cumsum(new) - 1, np.r_[np.flatnonzero(new)[1:], len(ordered)]


def doubled_ranks(
    weights: np.ndarray, groups: TieGroups, places: np.ndarray | None = None
) -> np.ndarray:
    """Twice the average rank at each sorted position, less its mean, when items count `weights`.

    For a tie group: (count below it) + (count up to its end) - (count of all). `places` reorders
    the result.

    >>> doubled_ranks(np.array([[1.0, 1, 1]]), None)
    array([[-2., 0., 2.]])
    """
    total = np.cumsum(weights, axis=1)
    everything = total[:, -1:].copy()
    numbers = places
    if groups is not None:
        total = total[:, groups[1] - 1]
        numbers = groups[0] if places is None else groups[0][places]
    ranks = total - everything
    ranks += total
    if groups is None:
        ranks -= weights
    else:
        ranks[:, 0] -= total[:, 0]
        ranks[:, 1:] -= total[:, 1:] - total[:, :-1]
    return ranks if numbers is None else np.take(ranks, numbers, axis=1)


def _spearman(x, y, counts, clusters):
    order = np.argsort(x, kind="stable")  # items once in the order of x, so only y is looked up
    x, y, clusters = x[order], y[order], clusters[order]
    by_y = np.argsort(y, kind="stable")
    places = np.argsort(by_y)
    x_groups, y_groups = tie_groups(x), tie_groups(y[by_y])
    result, start = np.empty(len(counts)), 0
    for size in chunks(len(counts), len(x)):
        block, start = slice(start, start + size), start + size
        weights = np.take(counts[block].astype(float), clusters, axis=1)
        x_rank = doubled_ranks(weights, x_groups)
        y_rank = doubled_ranks(np.take(weights, by_y, axis=1), y_groups, places)
        x_weighted, y_weighted = weights * x_rank, weights * y_rank
        result[block] = ratio(
            np.einsum("ij,ij->i", x_weighted, y_rank),
            np.einsum("ij,ij->i", x_weighted, x_rank),
            np.einsum("ij,ij->i", y_weighted, y_rank),
        )
    return result


def _kendall(x, y, counts, clusters):
    rows = np.argsort(clusters, kind="stable")
    columns, members = clusters[rows], counts.astype(np.float32)
    x, y, sums = x[rows], y[rows], np.zeros((3, len(counts)))
    start = 0
    for size in chunks(len(x), len(x)):
        block, start = slice(start, start + size), start + size
        touched = np.unique(columns[block])
        sx, sy = signs(x, block), signs(y, block)
        for total, sign in zip(sums, (sx * sy, np.abs(sx), np.abs(sy)), strict=True):
            # Sums of counts stay whole numbers below 2**24: exact in single precision.
            to_clusters = _collapse(sign, columns[block], columns, counts.shape[1])
            partner = members @ to_clusters.T
            total += np.einsum("ij,ij->i", members[:, touched], partner, dtype=float)
    return ratio(*sums)


def signs(values: np.ndarray, block: slice) -> np.ndarray:
    """sign(v_i - v_j) for i in the block and every j; infinities compare like any other value.

    >>> signs(np.array([1.0, 2.0]), slice(0, 1))
    array([[ 0., -1.]], dtype=float32)
    """
    rows = values[block, None]
    return (rows > values).astype(np.float32) - (rows < values)


def _collapse(pairs: np.ndarray, rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
    """Sum the pairs of a block per (cluster of the row, cluster of the column)."""
    present, starts = np.unique(columns, return_index=True)
    wide = np.zeros((len(rows), width), np.float32)
    wide[:, present] = np.add.reduceat(pairs, starts, axis=1)
    return np.add.reduceat(wide, np.unique(rows, return_index=True)[1], axis=0)
