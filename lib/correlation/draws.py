"""The coefficient of many resamples at once.

Every resampling scheme here is a matrix of counts: row = draw, column = item or cluster, entry =
how often it is in the draw. A bootstrap draw counts dialogs 0, 1, 2, ...; a permutation draw counts
each of the two metrics' scores 0 or 1. With counts, Pearson needs one matrix product, Spearman a
cumulative sum over the order sorted once, Kendall a quadratic form: no draw is ever sorted.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from lib.correlation.coefficients import check_method

CELLS = 400_000  # items x draws held at once: a few arrays of 3 MB, whatever the corpus size


def chunks(draws: int, width: int) -> Iterator[int]:
    """Split `draws` into block sizes so that one block holds about `CELLS` cells.

    >>> list(chunks(5, CELLS // 2))
    [2, 2, 1]
    """
    size = max(1, CELLS // max(width, 1))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def resampled_correlations(
    x: np.ndarray,
    y: np.ndarray,
    counts: np.ndarray,
    method: str = "pearson",
    clusters: np.ndarray | None = None,
    ratings_kept: bool = False,
) -> np.ndarray:
    """The coefficient of (x, y) under each row of `counts`.

    Parameters
    ----------
    x, y : (n,) scores and ratings, no NaN.
    counts : (draws, c) how often each cluster is in the draw; c = n without `clusters`.
    method : "pearson", "spearman" or "kendall" (tau-b).
    clusters : (n,) the column of `counts` each item belongs to.
    ratings_kept : every draw holds the same ratings (two metrics trade places): Spearman then
        ranks them once.

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
    if check_method(method) == "spearman":
        return _spearman(x, y, counts, clusters, ratings_kept)
    return (_pearson if method == "pearson" else _kendall)(x, y, counts, clusters)


def _ratio(product: np.ndarray, x_square: np.ndarray, y_square: np.ndarray) -> np.ndarray:
    """product / sqrt(x_square * y_square), NaN where a side does not vary."""
    flat = (x_square <= 0) | (y_square <= 0)
    ratio = product / np.sqrt(np.where(flat, 1.0, x_square) * np.where(flat, 1.0, y_square))
    return np.where(flat, np.nan, np.clip(ratio, -1.0, 1.0))


def _pearson(x, y, counts, clusters):
    x, y = x - x.mean(), y - y.mean()  # centring keeps the differences of sums below exact
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    moments = np.stack([np.bincount(clusters, c, counts.shape[1]) for c in columns], axis=1)
    n, sx, sy, sxx, syy, sxy = (counts @ moments).T
    x_square, y_square = n * sxx - sx**2, n * syy - sy**2
    x_square[x_square < 1e-12 * n * sxx] = 0  # a constant draw, up to rounding
    y_square[y_square < 1e-12 * n * syy] = 0
    return _ratio(n * sxy - sx * sy, x_square, y_square)


def _tie_bounds(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """First position and one past the last of each value's tie group; None without ties."""
    first = np.searchsorted(ordered, ordered, side="left")
    last = np.searchsorted(ordered, ordered, side="right")
    return None if (last - first == 1).all() else (first, last)


def _doubled_ranks(weights: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Twice the average rank, less its mean: (count below) + (count up to) - (count of all)."""
    total = np.zeros((len(weights), weights.shape[1] + 1))
    np.cumsum(weights, axis=1, out=total[:, 1:])
    if bounds is None:
        ranks = total[:, :-1] + total[:, 1:]
    else:
        ranks = total[:, bounds[0]] + total[:, bounds[1]]
    ranks -= total[:, -1:]
    return ranks


def _spearman(x, y, counts, clusters, ratings_kept=False):
    order = np.argsort(x, kind="stable")  # items once in the order of x, so only y is looked up
    x, y, clusters = x[order], y[order], clusters[order]
    x_bounds, y_ranks = _tie_bounds(x), _y_ranks(y, ratings_kept)
    result, start = np.empty(len(counts)), 0
    for size in chunks(len(counts), len(x)):
        weights = counts[start : start + size].astype(float)[:, clusters]
        y_rank = y_ranks(weights)
        x_rank = _doubled_ranks(weights, x_bounds)
        weighted = weights * x_rank
        result[start : start + size] = _ratio(
            np.einsum("ij,ij->i", weighted, y_rank),
            np.einsum("ij,ij->i", weighted, x_rank),
            np.einsum("ij,ij,ij->i", weights, y_rank, y_rank),
        )
        start += size
    return result


def _y_ranks(y: np.ndarray, kept: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Ranks of the ratings given the weights; one row for all draws if the ratings never change."""
    if kept:
        once = stats.rankdata(y)[None, :] - (len(y) + 1) / 2
        return lambda weights: np.broadcast_to(once, weights.shape)
    by_y = np.argsort(y, kind="stable")
    place, bounds = np.argsort(by_y), _tie_bounds(y[by_y])
    return lambda weights: _doubled_ranks(weights[:, by_y], bounds)[:, place]


def _kendall(x, y, counts, clusters):
    rows = np.argsort(clusters, kind="stable")
    columns, members = clusters[rows], counts.astype(np.float32)
    x, y, sums = x[rows], y[rows], np.zeros((3, len(counts)))
    start = 0
    for size in chunks(len(x), len(x)):
        block, start = slice(start, start + size), start + size
        touched = np.unique(columns[block])
        sx, sy = _signs(x, block), _signs(y, block)
        for total, sign in zip(sums, (sx * sy, np.abs(sx), np.abs(sy)), strict=True):
            # Sums of counts stay whole numbers below 2**24: exact in single precision.
            to_clusters = _collapse(sign, columns[block], columns, counts.shape[1])
            partner = members @ to_clusters.T
            total += np.einsum("ij,ij->i", members[:, touched], partner, dtype=float)
    return _ratio(*sums)


def _signs(values: np.ndarray, block: slice) -> np.ndarray:
    """sign(v_i - v_j) for i in the block and every j; infinities compare like any other value."""
    rows = values[block, None]
    return (rows > values).astype(np.float32) - (rows < values)


def _collapse(pairs: np.ndarray, rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
    """Sum the pairs of a block per (cluster of the row, cluster of the column)."""
    present, starts = np.unique(columns, return_index=True)
    wide = np.zeros((len(rows), width), np.float32)
    wide[:, present] = np.add.reduceat(pairs, starts, axis=1)
    return np.add.reduceat(wide, np.unique(rows, return_index=True)[1], axis=0)
