"""Bootstrap intervals that respect nesting: whole dialogs, contexts or systems are drawn again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.correlation.coefficients import check_method, coefficient, undefined
from lib.analysis.correlation.draws import chunks, resampled_correlations


class Interval(NamedTuple):
    """A coefficient with its interval; `undefined` draws (one side constant) are left out."""

    value: float
    low: float
    high: float
    n: int
    clusters: int
    undefined: int
    reason: str


def bootstrap_interval(
    scores: Sequence[float],
    human: Sequence[float],
    clusters: Sequence | None = None,
    method: str = "pearson",
    draws: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of a coefficient, drawing whole clusters with replacement.

    Parameters
    ----------
    scores, human : (n,) values; pairs with a NaN are left out.
    clusters : (n,) dialog (or shared context) of each item. None draws items one by one, which is
        right only when every item comes from a dialog of its own.
    draws, confidence, seed : number of resamples, coverage, seed of the draws.

    Returns
    -------
    Interval. Undefined coefficients and fewer than two clusters give NaN bounds with a reason.
    The percentiles are expanded for few clusters (see `summarise`); below about 20 clusters still
    read the interval as a lower bound of the uncertainty.

    Reference: Deutsch, Dror and Roth 2021 (BOOT-INPUTS); Hesterberg 2015, "What Teachers Should
    Know About the Bootstrap".

    >>> human = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> interval = bootstrap_interval([2, 1, 4, 3, 6, 5, 8, 7], human, list("aabbccdd"))
    >>> interval.low <= interval.value <= interval.high, interval.clusters
    (True, 4)
    """
    x, y, codes = complete_pairs(scores, human, clusters=clusters)
    point = coefficient(x, y, method)
    count = int(codes.max()) + 1 if len(codes) else 0
    reason = point.reason or ("fewer than 2 clusters" if count < 2 else "")
    if reason:
        return Interval(point.value, np.nan, np.nan, point.n, count, 0, reason)
    samples = bootstrap_samples(x, y, codes, method, draws, seed)
    return summarise(point.value, samples, len(x), count, confidence)


def bootstrap_samples(
    x: np.ndarray, y: np.ndarray, codes: np.ndarray, method: str, draws: int, seed: int
) -> np.ndarray:
    """(draws,) coefficients of seeded bootstrap draws of the clusters `codes` (0 ... c-1).

    The same seed and clusters give the same draws whatever the scores, so that two metrics can be
    compared draw by draw.

    >>> x = np.array([1.0, 2, 3, 5])
    >>> bootstrap_samples(x, x, np.arange(4), "pearson", 3, seed=0).round(6)
    array([1., 1., 1.])
    """
    rng, count = np.random.default_rng(seed), int(codes.max()) + 1
    blocks = [
        resampled_correlations(x, y, draw_counts(rng, size, count), method, codes)
        for size in chunks(draws, count, method)
    ]
    return np.concatenate(blocks)


def draw_counts(rng: np.random.Generator, draws: int, count: int) -> np.ndarray:
    """(draws, count) how often each of `count` clusters is in a draw of `count` with replacement.

    >>> draw_counts(np.random.default_rng(0), 2, 5).sum(axis=1)
    array([5, 5])
    """
    drawn = rng.integers(0, count, (draws, count)) + count * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * count).reshape(draws, count)


def summarise(
    value: float,
    samples: np.ndarray,
    n: int,
    clusters: int,
    confidence: float,
    expanded: bool = True,
) -> Interval:
    r"""Percentile interval of bootstrap samples; NaN samples are counted and left out.

    With c clusters the plain percentile interval is too narrow by about :math:`\sqrt{(c-1)/c}` and
    by normal instead of t quantiles. `expanded` takes the percentiles at
    :math:`\Phi(\pm\sqrt{c/(c-1)}\, t_{c-1})` instead (Hesterberg 2015), a
    difference that vanishes as c grows.

    >>> summarise(0.5, np.array([0.0, 0.5, 1.0, np.nan]), 10, 4, 0.9).undefined
    1
    """
    kept = samples[~np.isnan(samples)]
    if not len(kept):
        return Interval(value, np.nan, np.nan, n, clusters, len(samples), "no draw defined")
    tail = (1 - confidence) / 2
    if expanded:
        tail = stats.norm.cdf(np.sqrt(clusters / (clusters - 1)) * stats.t.ppf(tail, clusters - 1))
    low, high = np.quantile(kept, [tail, 1 - tail])
    return Interval(value, float(low), float(high), n, clusters, len(samples) - len(kept), "")


def complete_pairs(*columns: Sequence[float], clusters: Sequence | None = None) -> tuple:
    """The rows where no column is NaN, and their cluster codes 0 ... c-1 (own cluster each by
    default). Raises ValueError for a cluster without a name.

    >>> complete_pairs([1, np.nan, 3], [1, 2, 3], clusters=["a", "a", "b"])
    (array([1., 3.]), array([1., 3.]), array([0, 1]))
    """
    values = [np.asarray(column, dtype=float) for column in columns]
    if len({len(column) for column in values}) > 1:
        raise ValueError("scores and human ratings have different lengths: align them first")
    labels = np.arange(len(values[0])) if clusters is None else np.asarray(clusters)
    if len(labels) != len(values[0]):
        raise ValueError(f"{len(labels)} cluster labels for {len(values[0])} items: align them")
    kept = ~np.any(np.isnan(values), axis=0)
    codes = pd.factorize(labels[kept])[0]
    if (codes < 0).any():
        raise ValueError("some items have no cluster (missing dialog): name a dialog for each")
    return *(column[kept] for column in values), codes


#: With fewer systems the same few draws come up again and again.
FEWEST_SYSTEMS = 5


def system_interval(
    scores: pd.DataFrame,
    human: pd.DataFrame,
    method: str = "pearson",
    resample: str = "both",
    draws: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval of a system-level coefficient: over contexts, over systems, or both.

    Parameters
    ----------
    scores, human : systems x contexts frames (see `system_matrix`), NaN where a system has no
        scored or rated response. A system's value is the mean over its cells with both.
    resample : "contexts" asks how the result would change with other inputs and these systems;
        "systems" with other systems; "both" with both, the question a paper usually claims to
        answer.

    Returns
    -------
    Interval; `n` is the number of systems, `clusters` the number of contexts. Draws without a
    defined coefficient (fewer than two different systems, say) are counted. Drawing systems needs
    five of them and at most 5 % such draws: else the bounds are NaN, with the reason, because what
    is left of the draws says little. Reference: Deutsch, Dror and Roth 2021.

    >>> scores = pd.DataFrame([[1.0, 2, 3], [2, 3, 4], [5, 5, 6]])
    >>> system_interval(scores, scores * 2, resample="contexts").low
    1.0
    """
    if resample not in ("contexts", "systems", "both"):
        raise ValueError(f"resample is 'contexts', 'systems' or 'both', not {resample!r}")
    x, y = scores.to_numpy(float), human.to_numpy(float)
    both = ~(np.isnan(x) | np.isnan(y))
    x, y, both = (values[both.any(axis=1)] for values in (x, y, both))
    point = _system_correlations(x, y, both, np.ones((1, x.shape[1])), None, method)[0]
    means = [np.nanmean(np.where(both, values, np.nan), axis=1) for values in (x, y)]
    reason = undefined(*means, method)
    if reason:
        return Interval(np.nan, np.nan, np.nan, len(x), x.shape[1], 0, reason)
    rng, samples = np.random.default_rng(seed), []
    for size in chunks(draws, x.shape[1] + len(x) ** 2):
        counts = np.ones((size, x.shape[1]))
        if resample != "systems":
            counts = draw_counts(rng, *counts.shape)
        drawn = None if resample == "contexts" else rng.integers(0, len(x), (size, len(x)))
        samples.append(_system_correlations(x, y, both, counts, drawn, method))
    joined = np.concatenate(samples)
    found = summarise(float(point), joined, len(x), x.shape[1], confidence, expanded=False)
    if resample != "contexts" and (len(x) < FEWEST_SYSTEMS or found.undefined > 0.05 * draws):
        return found._replace(low=np.nan, high=np.nan, reason="too few systems to resample")
    return found


def _system_correlations(x, y, both, counts, drawn, method):
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = counts @ both.T
        means = [counts @ np.where(both, v, 0).T / weight for v in (x, y)]
    if drawn is not None:
        means = [np.take_along_axis(np.broadcast_to(m, drawn.shape), drawn, 1) for m in means]
    return rowwise_correlations(*means, method)


def rowwise_correlations(x: np.ndarray, y: np.ndarray, method: str = "pearson") -> np.ndarray:
    """The coefficient of each row of x with the same row of y, all (draws, n).

    Rows with a NaN or a constant side are NaN.

    >>> rowwise_correlations(np.array([[1.0, 2, 3]]), np.array([[1.0, 3, 2]]), "kendall").round(4)
    array([0.3333])
    """
    if check_method(method) == "kendall":
        x, y = (np.sign(v[:, :, None] - v[:, None, :]).reshape(len(v), -1) for v in (x, y))
    elif method == "spearman":
        x, y = stats.rankdata(x, axis=1), stats.rankdata(y, axis=1)
    x, y = (v - v.mean(axis=1, keepdims=True) for v in (x, y))
    sxx, syy = (x**2).sum(axis=1), (y**2).sum(axis=1)
    flat = ~((sxx > 1e-20) & (syy > 1e-20))
    product = (x * y).sum(axis=1)
    return np.where(flat, np.nan, product / np.sqrt(np.where(flat, 1, sxx * syy)))


def system_matrix(values: pd.Series, units: pd.DataFrame, inputs: str = "dialog") -> pd.DataFrame:
    """Reshape item values to systems x contexts; several items of a cell are averaged.

    >>> units = pd.DataFrame({"system": list("AABB"), "dialog": list("1212")})
    >>> system_matrix(pd.Series([1.0, 2, 3, 4]), units).loc["B"].tolist()
    [3.0, 4.0]
    """
    return values.groupby([units["system"], units[inputs]]).mean().unstack(inputs)
