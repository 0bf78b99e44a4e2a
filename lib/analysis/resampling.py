"""The bootstrap that respects nesting: whole dialogs, contexts or systems are drawn again.

A resample is a row of counts: how often each item or cluster is in it (0, 1, 2, ...). With counts,
Pearson needs one matrix product, Spearman a cumulative sum over an order sorted once, Kendall a
quadratic form: no resample is ever sorted.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse, stats

from lib.analysis.correlation import complete_rows, undefined_reason

CELLS = 400_000  # items x resamples held at once: a few arrays of 3 MB, whatever the corpus size


class Interval(NamedTuple):
    """A value with its 95 % interval; `undefined` resamples (one side constant) are excluded."""

    value: float
    low: float
    high: float
    n: int
    clusters: int
    undefined_reason: int
    reason: str


def resample_blocks(total: int, width: int, method: str = "") -> Iterator[range]:
    """Split `total` rows of `width` cells into ranges of about `CELLS` cells.

    Kendall prepares an item by item matrix for each block, so its blocks are 20 times longer.

    >>> [len(block) for block in resample_blocks(5, CELLS // 2)]
    [2, 2, 1]
    """
    size = max(1, CELLS * (20 if method == "kendall" else 1) // max(width, 1))
    for start in range(0, total, size):
        yield range(start, min(start + size, total))


def bootstrap_counts(rng: np.random.Generator, resamples: int, count: int) -> np.ndarray:
    """How often each of `count` units is drawn in each resample, (resamples, count)."""
    drawn = rng.integers(0, count, (resamples, count)) + count * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * count).reshape(resamples, count)


def cluster_sums(columns: Sequence[np.ndarray], codes: np.ndarray, count: int) -> np.ndarray:
    """The sum of each column within each cluster, (count, columns).

    >>> cluster_sums([np.array([1.0, 2, 4])], np.array([0, 1, 1]), 2).tolist()
    [[1.0], [6.0]]
    """
    return np.stack([np.bincount(codes, column, count) for column in columns], axis=1)


def resampled_correlations(x, y, counts, method="pearson", clusters=None) -> np.ndarray:
    """The coefficient of (x, y) under each row of `counts`.

    Args:
        x, y: (n,) scores and ratings, no NaN.
        counts: (resamples, c) how often each cluster is in the resample; c = n without `clusters`.
        method: "pearson", "spearman" or "kendall" (tau-b).
        clusters: (n,) the column of `counts` each item belongs to.

    Returns:
        (resamples,) coefficients, equal to repeating every item `counts` times and calling scipy.
        NaN where one side of the resample is constant. Time: Pearson resamples x c, Spearman
        resamples x n, Kendall n x n + resamples x n x c.

    >>> x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
    >>> resampled_correlations(x, y, np.array([[1, 1, 1, 1], [2, 0, 0, 2]]), "spearman").round(6)
    array([0.8, 1. ])
    """
    clusters = np.arange(len(x)) if clusters is None else np.asarray(clusters)
    engine = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}[method]
    return engine(np.asarray(x, float), np.asarray(y, float), np.asarray(counts), clusters)


def _ratio(product: np.ndarray, x_square: np.ndarray, y_square: np.ndarray) -> np.ndarray:
    flat = ~((x_square > 1e-9) & (y_square > 1e-9))
    value = product / np.sqrt(np.where(flat, 1.0, x_square * y_square))
    return np.where(flat, np.nan, np.clip(value, -1.0, 1.0))


def _pearson(x, y, counts, clusters):
    x, y = ((v - v.mean()) / (v.std() or 1.0) for v in (x, y))  # the sums then lose no digits
    columns = (np.ones_like(x), x, y, x * x, y * y, x * y)
    sums = counts.astype(float) @ cluster_sums(columns, clusters, counts.shape[1])
    n, sx, sy, sxx, syy, sxy = sums.T
    return _ratio(n * sxy - sx * sy, _spread(n, sx, sxx), _spread(n, sy, syy))


def _spread(n: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """n sum(x^2) - sum(x)^2, which is 0 for equal values; what rounding leaves of 0 becomes 0."""
    value = n * squares - total**2
    return np.where(value < 1e-12 * n * squares, 0.0, value)


def _spearman(x, y, counts, clusters):
    result = np.empty(len(counts))
    orders = [(np.argsort(v, kind="stable"), *_tie_groups(v)) for v in (x, y)]
    for block in resample_blocks(len(counts), len(x)):
        weights = np.take(counts[block].astype(float), clusters, axis=1)
        x_rank, y_rank = (_doubled_ranks(weights, *order) for order in orders)
        x_weighted, y_weighted = weights * x_rank, weights * y_rank
        pairs = ((x_weighted, y_rank), (x_weighted, x_rank), (y_weighted, y_rank))
        result[block] = _ratio(*(np.einsum("ij,ij->i", *pair) for pair in pairs))
    return result


def _tie_groups(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tie group of each value, and the last sorted position of each group."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return group, np.cumsum(sizes) - 1


def _doubled_ranks(weights, order, group, last) -> np.ndarray:
    """Twice the average rank of each item, less its mean, when items count `weights`.

    For a tie group: (count below it) + (count up to its end) - (count of all).
    """
    up_to = np.cumsum(np.take(weights, order, axis=1), axis=1)[:, last]
    ranks = up_to - up_to[:, -1:]
    ranks[:, 1:] += up_to[:, :-1]
    return np.take(ranks, group, axis=1)


def _kendall(x, y, counts, clusters):
    members, sums = counts.astype(np.float32), np.zeros((3, len(counts)))
    ones = np.ones(len(x), np.float32)
    in_cluster = sparse.csr_array((ones, (np.arange(len(x)), clusters)), (len(x), counts.shape[1]))
    for block in resample_blocks(len(x), len(x)):
        sx, sy = (np.sign(np.subtract.outer(_places(v)[block], _places(v))) for v in (x, y))
        for total, sign in zip(sums, (sx * sy, np.abs(sx), np.abs(sy)), strict=True):
            # Sums of counts stay whole numbers below 2**24: exact in single precision.
            partner = members @ (sign @ in_cluster).T
            total += np.einsum("ij,ij->i", members[:, clusters[block]], partner, dtype=float)
    return _ratio(*sums)


def _places(values: np.ndarray) -> np.ndarray:
    """Places in the order of values: their differences have a sign where infinities have none."""
    return _tie_groups(values)[0].astype(np.float32)


def bootstrap_interval(
    scores, human, clusters=None, method="pearson", resamples=10_000, seed=0
) -> Interval:
    """95 % percentile bootstrap interval of a coefficient, drawing whole clusters again.

    Args:
        scores, human: (n,) values; pairs with a NaN are left out.
        clusters: (n,) dialog (or shared context) of each item. None draws items one by one, which
            is right only when every item comes from a dialog of its own.

    Returns:
        Interval. Undefined coefficients and fewer than two clusters give NaN bounds with a reason.
        The percentiles are expanded for few clusters (see `summarise`); below about 20 clusters
        still read the interval as a lower bound of the uncertainty.

    Reference: Deutsch, Dror and Roth 2021 (BOOT-INPUTS); Hesterberg 2015, "What Teachers Should
    Know About the Bootstrap".

    >>> human = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> interval = bootstrap_interval([2, 1, 4, 3, 6, 5, 8, 7], human, list("aabbccdd"))
    >>> interval.low <= interval.value <= interval.high, interval.clusters
    (True, 4)
    """
    x, y, codes = complete_rows(scores, human, clusters=clusters)
    if reason := undefined_reason(x, y, method):
        return Interval(np.nan, np.nan, np.nan, len(x), len(np.unique(codes)), 0, reason)
    statistic = partial(resampled_correlations, x, y, method=method, clusters=codes)
    return statistic_interval(statistic, codes, resamples, seed, method)


def statistic_interval(statistic, codes, resamples, seed, method="", expanded=True) -> Interval:
    """Value and 95 % bootstrap interval of any statistic of counts, drawing whole clusters again.

    The same seed and clusters give the same resamples whatever the statistic. Fewer than two
    clusters give NaN bounds with a reason.

    Args:
        statistic: of (resamples, c) counts, how often each cluster is in the resample; gives
            (resamples,) values.
        codes: (n,) clusters of the items, 0 ... c-1.
        method: "kendall" draws longer blocks (`blocks`).
        expanded: see `summarise`.

    >>> statistic_interval(lambda counts: counts @ np.array([2.0, 3.0]), np.array([0, 1]), 9, 0).value
    5.0
    """
    count = int(codes.max()) + 1
    value = float(statistic(np.ones((1, count)))[0])
    if count < 2:
        return Interval(value, np.nan, np.nan, len(codes), count, 0, "fewer than 2 clusters")
    rng, drawn = np.random.default_rng(seed), resample_blocks(resamples, count, method)
    samples = [statistic(bootstrap_counts(rng, len(block), count)) for block in drawn]
    return percentile_interval(value, np.concatenate(samples), len(codes), count, expanded)


def bootstrap_mean(values, clusters=None, resamples=2000, seed=0) -> Interval:
    """Mean with its 95 % percentile interval, drawing whole clusters again (not expanded).

    NaN values are left out; fewer than two clusters give NaN bounds with a reason.

    >>> found = bootstrap_mean([1.0, 3.0, 5.0, 7.0], ["a", "a", "b", "c"])
    >>> found.value, found.low, found.high, found.clusters
    (4.0, 2.0, 7.0, 3)
    """
    known, codes = complete_rows(values, clusters=clusters)
    if not len(known):
        return Interval(np.nan, np.nan, np.nan, 0, 0, 0, "fewer than 2 clusters")
    total, size = cluster_sums((known, np.ones_like(known)), codes, codes.max() + 1).T

    def means(counts: np.ndarray) -> np.ndarray:
        return (counts @ total) / (counts @ size)

    return statistic_interval(means, codes, resamples, seed, expanded=False)


def percentile_interval(value, samples, n: int, clusters: int, expanded=True) -> Interval:
    r"""95 % percentile interval of bootstrap samples; NaN samples are counted and excluded.

    With c clusters the plain percentile interval is too narrow by about :math:`\sqrt{(c-1)/c}` and
    by normal instead of t quantiles. `expanded` takes the percentiles at
    :math:`\Phi(\pm\sqrt{c/(c-1)}\, t_{c-1})` instead (Hesterberg 2015), a
    difference that vanishes as c grows.

    >>> percentile_interval(0.5, np.array([0.0, 0.5, 1.0, np.nan]), 10, 4).undefined
    1
    """
    kept, tail = samples[~np.isnan(samples)], 0.025
    if not len(kept):
        return Interval(value, np.nan, np.nan, n, clusters, len(samples), "no resample defined")
    if expanded:
        tail = stats.norm.cdf(np.sqrt(clusters / (clusters - 1)) * stats.t.ppf(tail, clusters - 1))
    low_high = np.quantile(kept, [tail, 1 - tail]).tolist()
    return Interval(value, *low_high, n, clusters, len(samples) - len(kept), "")
