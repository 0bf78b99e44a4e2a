"""The bootstrap that respects nesting: whole dialogs, contexts or systems are drawn again.

A resample is a row of counts: how often each item or cluster is in it (0, 1, 2, ...). With counts,
Pearson needs one matrix product, Spearman a cumulative sum over an order sorted once, Kendall a
quadratic form: no resample is ever sorted.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse, stats

from lib.analysis.correlation import complete_rows, undefined_reason

CELLS = 400_000  # items x resamples held at once: a few arrays of 3 MB, whatever the corpus size


class Interval(NamedTuple):
    """A value with its 95 % interval; `undefined` resamples (one side constant) are excluded.

    `n` counts items, `clusters` the independent units; `reason` says why there are no bounds.
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    n: int = 0
    clusters: int = 0
    undefined: int = 0
    reason: str = ""


def resample_blocks(n_rows: int, row_length: int, method: str = "") -> Iterator[range]:
    """Split `n_rows` rows of `row_length` cells into ranges of about `CELLS` cells.

    Kendall builds an items x items matrix once per block, so its blocks are 20 times as large:
    fewer matrices are built.

    >>> [len(block) for block in resample_blocks(5, CELLS // 2)]
    [2, 2, 1]
    """
    cells = 20 * CELLS if method == "kendall" else CELLS
    size = max(1, cells // max(row_length, 1))
    for start in range(0, n_rows, size):
        yield range(start, min(start + size, n_rows))


def bootstrap_counts(
    rng: np.random.Generator, n_resamples: int, n_clusters: int
) -> np.ndarray:
    """How often each cluster is drawn in each resample, (n_resamples, n_clusters)."""
    clusters = rng.integers(0, n_clusters, (n_resamples, n_clusters))
    # Number the cells of the table of counts row by row, and count all in one pass: a loop over
    # resamples takes two to four times as long for the few dozen dialogs of a corpus.
    cells = clusters
    cells += n_clusters * np.arange(n_resamples)[:, None]
    return np.bincount(cells.ravel(), minlength=cells.size).reshape(cells.shape)


def cluster_sums(
    columns: Sequence[np.ndarray], cluster_ids: np.ndarray, n_clusters: int
) -> np.ndarray:
    """The sum of each column within each cluster, (n_clusters, columns).

    >>> cluster_sums([np.array([1.0, 2, 4])], np.array([0, 1, 1]), 2).tolist()
    [[1.0], [6.0]]
    """
    return np.stack(
        [np.bincount(cluster_ids, column, n_clusters) for column in columns], axis=1
    )


def resampled_correlations(
    x, y, counts, method="pearson", cluster_ids=None
) -> np.ndarray:
    """The coefficient of (x, y) under each row of `counts`.

    Args:
        x, y: (n,) scores and ratings, no NaN.
        counts: (resamples, c) how often each cluster is in the resample; c = n without clusters.
        method: "pearson", "spearman" or "kendall" (tau-b).
        cluster_ids: (n,) the column of `counts` each item belongs to.

    Returns:
        (resamples,) coefficients, equal to repeating every item `counts` times and calling scipy.
        NaN where one side of the resample is constant. Time: Pearson resamples x c, Spearman
        resamples x n, Kendall n x n + resamples x n x c.

    >>> x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
    >>> resampled_correlations(x, y, np.array([[1, 1, 1, 1], [2, 0, 0, 2]]), "spearman").round(6)
    array([0.8, 1. ])
    """
    x = np.asarray(x, float)
    y = np.asarray(y, float)
    if cluster_ids is None:
        cluster_ids = np.arange(len(x))
    correlate = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}[
        method
    ]
    return correlate(
        x, y, counts=np.asarray(counts), cluster_ids=np.asarray(cluster_ids)
    )


def _ratio(
    product: np.ndarray, x_square: np.ndarray, y_square: np.ndarray
) -> np.ndarray:
    defined = (x_square > 1e-9) & (y_square > 1e-9)
    value = product / np.sqrt(np.where(defined, x_square * y_square, 1.0))
    return np.where(defined, np.clip(value, -1.0, 1.0), np.nan)


def _pearson(x, y, counts, cluster_ids):
    """Pearson's r in each resample, from sums over clusters; NaN where a side is constant."""
    # Standardised, so that the sums lose no digits.
    x = (x - x.mean()) / (x.std() or 1.0)
    y = (y - y.mean()) / (y.std() or 1.0)
    columns = [np.ones_like(x), x, y, x * x, y * y, x * y]
    sums = counts.astype(float) @ cluster_sums(columns, cluster_ids, counts.shape[1])
    n, x_sum, y_sum, xx_sum, yy_sum, xy_sum = sums.T
    x_square = _squared_deviations(n, x_sum, xx_sum)
    y_square = _squared_deviations(n, y_sum, yy_sum)
    return _ratio(n * xy_sum - x_sum * y_sum, x_square, y_square)


def _squared_deviations(
    n: np.ndarray, total: np.ndarray, squares: np.ndarray
) -> np.ndarray:
    """n sum(x^2) - sum(x)^2, which is 0 for equal values; rounding errors of 0 become 0."""
    value = n * squares - total**2
    return np.where(value < 1e-12 * n * squares, 0.0, value)


def _spearman(x, y, counts, cluster_ids):
    """Pearson's r of the ranks within each resample; NaN where a side is constant."""
    result = np.empty(len(counts))
    x_order = _RankOrder(x)
    y_order = _RankOrder(y)
    for block in resample_blocks(len(counts), len(x)):
        weights = np.take(counts[block].astype(float), cluster_ids, axis=1)
        x_rank = x_order.centered_ranks(weights)
        y_rank = y_order.centered_ranks(weights)
        product = np.einsum("ij,ij->i", weights * x_rank, y_rank)
        x_square = np.einsum("ij,ij->i", weights * x_rank, x_rank)
        y_square = np.einsum("ij,ij->i", weights * y_rank, y_rank)
        result[block] = _ratio(product, x_square, y_square)
    return result


class _RankOrder:
    """Values sorted once: their `order`, the tie group of each, the last position of a group."""

    def __init__(self, values: np.ndarray):
        _, self.group, sizes = np.unique(
            values, return_inverse=True, return_counts=True
        )
        self.order = np.argsort(values, kind="stable")
        self.last = np.cumsum(sizes) - 1

    def centered_ranks(self, weights: np.ndarray) -> np.ndarray:
        """Twice the average rank of each item, minus its mean, when items count `weights`.

        For a tie group: (count below it) + (count up to its end) - (count of all).
        """
        up_to = np.cumsum(np.take(weights, self.order, axis=1), axis=1)[:, self.last]
        ranks = up_to - up_to[:, -1:]
        ranks[:, 1:] += up_to[:, :-1]
        return np.take(ranks, self.group, axis=1)


def _kendall(x, y, counts, cluster_ids):
    # Sums of counts stay whole numbers below 2**24: exact in single precision.
    counts = counts.astype(np.float32)
    items = np.arange(len(x))
    membership = (np.ones(len(x), np.float32), (items, cluster_ids))
    in_cluster = sparse.csr_array(membership, (len(x), counts.shape[1]))
    # Ranks, because the difference of two infinities has no sign.
    x_rank = _RankOrder(x).group.astype(np.float32)
    y_rank = _RankOrder(y).group.astype(np.float32)
    sums = np.zeros((3, len(counts)))
    for block in resample_blocks(len(x), len(x)):
        weights = counts[:, cluster_ids[block]]
        x_sign = np.sign(np.subtract.outer(x_rank[block], x_rank))
        y_sign = np.sign(np.subtract.outer(y_rank[block], y_rank))
        for total, sign in zip(
            sums, (x_sign * y_sign, x_sign**2, y_sign**2), strict=True
        ):
            partners = counts @ (sign @ in_cluster).T
            total += np.einsum("ij,ij->i", weights, partners, dtype=float)
    return _ratio(*sums)


def bootstrap_interval(
    scores,
    human,
    clusters=None,
    method="pearson",
    resamples=10_000,
    seed=0,
) -> Interval:
    """95 % percentile bootstrap interval of a coefficient, drawing whole clusters again.

    Args:
        scores, human: (n,) values; pairs with a NaN are left out.
        clusters: (n,) dialog (or shared context) of each item. None draws items one by one, which
            is right only when every item comes from a dialog of its own.

    Returns:
        Interval. Undefined coefficients and fewer than two clusters give NaN bounds with a reason.
        The percentiles are expanded for few clusters (see `percentile_interval`); below about 20
        clusters still read the interval as a lower bound of the uncertainty.

    Reference: Deutsch, Dror and Roth 2021 (BOOT-INPUTS); Hesterberg 2015, "What Teachers Should
    Know About the Bootstrap".

    >>> human = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> interval = bootstrap_interval([2, 1, 4, 3, 6, 5, 8, 7], human, list("aabbccdd"))
    >>> interval.low <= interval.value <= interval.high, interval.clusters
    (True, 4)
    """
    x, y, cluster_ids = complete_rows(scores, human, clusters=clusters)
    reason = undefined_reason(x, y, method)
    if reason:
        return Interval(n=len(x), clusters=len(np.unique(cluster_ids)), reason=reason)

    def correlations(counts: np.ndarray) -> np.ndarray:
        return resampled_correlations(
            x, y, counts, method=method, cluster_ids=cluster_ids
        )

    return statistic_interval(
        correlations, cluster_ids, resamples, seed=seed, method=method
    )


def statistic_interval(
    statistic: Callable,
    cluster_ids,
    resamples: int,
    seed: int,
    method="",
    expanded=True,
) -> Interval:
    """Value and 95 % bootstrap interval of a statistic; whole clusters are drawn with replacement.

    The same seed and clusters give the same resamples whatever the statistic. A single cluster
    gives NaN bounds with a reason.

    Args:
        statistic: takes (resamples, c) counts, how often each cluster is in each resample; returns
            (resamples,) values.
        cluster_ids: (n,) clusters of the items, 0 ... c-1; at least one item.
        method: "kendall" computes more resamples at a time (`resample_blocks`); no other value
            has an effect here.
        expanded: widen the interval for few clusters (`percentile_interval`).

    >>> cluster_ids = np.array([0, 1])
    >>> statistic_interval(lambda counts: counts @ [2.0, 3.0], cluster_ids, 9, seed=0).value
    5.0
    """
    n_clusters = int(cluster_ids.max()) + 1
    value = float(statistic(np.ones((1, n_clusters)))[0])
    interval = Interval(value, n=len(cluster_ids), clusters=n_clusters)
    if n_clusters < 2:
        return interval._replace(reason="fewer than 2 clusters")
    rng = np.random.default_rng(seed)
    samples = []
    for block in resample_blocks(resamples, n_clusters, method):
        samples.append(statistic(bootstrap_counts(rng, len(block), n_clusters)))
    return percentile_interval(interval, np.concatenate(samples), expanded)


def partial_interval(
    x, y, controls, clusters=None, method="spearman", resamples=2000, seed=0
) -> Interval:
    """`partial_correlation` of x and y controlling for a third variable, with its interval.

    Rows with a NaN are left out; whole clusters are drawn again.

    >>> x, y, z = [1, 2, 3, 4, 5], [1, 3, 2, 5, 4], [2, 1, 4, 3, 5]
    >>> round(partial_interval(x, y, z, method="pearson", resamples=50).value, 3)
    0.978
    """
    x, y, controls, cluster_ids = complete_rows(x, y, controls, clusters=clusters)
    if len(x) < 3:
        return Interval(n=len(x), reason="fewer than 3 complete rows")

    def partial(counts: np.ndarray) -> np.ndarray:
        options = {"method": method, "cluster_ids": cluster_ids}
        r_xy = resampled_correlations(x, y, counts, **options)
        r_xz = resampled_correlations(x, controls, counts, **options)
        r_yz = resampled_correlations(y, controls, counts, **options)
        unexplained = (1 - r_xz**2) * (1 - r_yz**2)
        scale = np.sqrt(np.where(unexplained > 1e-12, unexplained, np.nan))
        return (r_xy - r_xz * r_yz) / scale

    return statistic_interval(partial, cluster_ids, resamples, seed=seed, method=method)


def bootstrap_mean(values, clusters=None, resamples=2000, seed=0) -> Interval:
    """Mean with its 95 % percentile interval, resampling whole clusters.

    The interval is not widened for few clusters (see `percentile_interval`). NaN values are left
    out. Fewer than two clusters give NaN bounds with a reason; without values the mean is NaN too.

    >>> mean = bootstrap_mean([1.0, 3.0, 5.0, 7.0], ["a", "a", "b", "c"])
    >>> mean.value, mean.low, mean.high, mean.clusters
    (4.0, 2.0, 7.0, 3)
    """
    values, cluster_ids = complete_rows(values, clusters=clusters)
    if not len(values):
        return Interval(reason="fewer than 2 clusters")
    sums = cluster_sums(
        [values, np.ones_like(values)], cluster_ids, cluster_ids.max() + 1
    )
    total, size = sums.T

    def means(counts: np.ndarray) -> np.ndarray:
        return (counts @ total) / (counts @ size)

    return statistic_interval(means, cluster_ids, resamples, seed=seed, expanded=False)


def percentile_interval(interval: Interval, samples, expanded=True) -> Interval:
    r"""Add the 95 % percentile bounds of bootstrap samples to an interval without bounds.

    NaN samples are counted and excluded. With c clusters the plain percentile interval is too
    narrow by about :math:`\sqrt{(c-1)/c}` and by normal instead of t quantiles. `expanded` takes
    the percentiles at :math:`\Phi(\pm\sqrt{c/(c-1)}\, t_{c-1})` instead (Hesterberg 2015), a
    difference that vanishes as c grows.

    >>> samples = np.array([0.0, 0.5, 1.0, np.nan])
    >>> percentile_interval(Interval(0.5, n=10, clusters=4), samples).undefined
    1
    """
    defined = samples[~np.isnan(samples)]
    interval = interval._replace(undefined=len(samples) - len(defined))
    if not len(defined):
        return interval._replace(reason="no resample defined")
    tail = 0.025
    if expanded:
        c = interval.clusters
        tail = stats.norm.cdf(np.sqrt(c / (c - 1)) * stats.t.ppf(tail, c - 1))
    low, high = np.quantile(defined, [tail, 1 - tail]).tolist()
    return interval._replace(low=low, high=high)
