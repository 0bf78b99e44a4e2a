"""Do metric and people order the systems alike? Correlation and pairwise accuracy over systems."""

from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.correlation import rowwise_correlations, undefined_reason
from lib.analysis.resampling import (
    Interval,
    bootstrap_counts,
    percentile_interval,
    resample_blocks,
)

#: With fewer systems a bootstrap draws the same ones again and again: -1 to 1 from six points.
MIN_SYSTEMS = 10

#: Fisher's z of n systems has the variance v / (n - d): v and d of each coefficient.
FISHER = {"pearson": (1.0, 3), "spearman": (1.06, 3), "kendall": (0.437, 4)}


class SoftAccuracy(NamedTuple):
    """Soft pairwise accuracy, the pairs of systems that share a context, `reason` when NaN."""

    value: float
    pairs: int
    reason: str


def system_matrix(values: pd.Series, units: pd.DataFrame) -> pd.DataFrame:
    """Reshape item values to systems x contexts (dialogs); items of a cell are averaged.

    >>> units = pd.DataFrame({"system": list("AABB"), "dialog": list("1212")})
    >>> system_matrix(pd.Series([1.0, 2, 3, 4]), units).loc["B"].tolist()
    [3.0, 4.0]
    """
    return values.groupby([units["system"], units["dialog"]]).mean().unstack("dialog")


def fisher_interval(
    value: float, systems: int, method: str = "pearson"
) -> tuple[float, float]:
    r"""95 % interval of a coefficient of n independent points, by Fisher's transformation.

    .. math:: \tanh\big(\mathrm{artanh}(r) \pm 1.96 \sqrt{v / (n - d)}\big)

    with v = 1, d = 3 for Pearson, v = 1.06, d = 3 for Spearman and v = .437, d = 4 for Kendall.
    NaN with d points or fewer, and for a coefficient of exactly -1 or 1, where the formula claims
    certainty. Reference: Fieller, Hartley and Pearson 1957, "Tests for rank correlation
    coefficients. I".

    >>> [round(bound, 2) for bound in fisher_interval(0.486, 6, "spearman")]
    [-0.56, 0.94]
    """
    variance, d = FISHER[method]
    if systems <= d or abs(value) >= 1:
        return np.nan, np.nan
    half_width = stats.norm.ppf(0.975) * np.sqrt(variance / (systems - d))
    z = np.arctanh(value)
    return float(np.tanh(z - half_width)), float(np.tanh(z + half_width))


def system_interval(
    scores,
    human,
    method="pearson",
    over="both",
    resamples=10_000,
    seed=0,
) -> Interval:
    """95 % interval of a system-level coefficient, over contexts, systems, or both.

    Args:
        scores, human: systems x contexts frames (see `system_matrix`), NaN where a system has no
            scored or rated response. A system's value is the mean over its cells with both.
        over: "contexts" asks how the result would change with other inputs and these systems;
            "systems" with other systems; "both" with both, the question a paper usually claims to
            answer.

    Returns:
        Interval by bootstrap; `n` is the number of systems, `clusters` the number of contexts.
        Resamples without a defined coefficient are counted. With fewer than ten systems "systems"
        is Fisher's interval, and "both" is NaN with the reason. Reference: Deutsch, Dror and Roth
        2021.

    Raises:
        ValueError: an `over` that is none of the three.

    >>> scores = pd.DataFrame([[1.0, 2, 3], [2, 3, 4], [5, 5, 6]])
    >>> system_interval(scores, scores * 2, over="contexts").low
    1.0
    """
    if over not in ("contexts", "systems", "both"):
        raise ValueError(f"over {over!r}: choose contexts, systems or both")
    x = scores.to_numpy(float)
    y = human.to_numpy(float)
    complete = ~np.isnan(x) & ~np.isnan(y)
    x = x[complete.any(axis=1)]
    y = y[complete.any(axis=1)]
    n_systems, n_contexts = x.shape
    x_means, y_means = resampled_system_means(x, y, np.ones((1, n_contexts)))
    reason = undefined_reason(x_means[0], y_means[0], method)
    interval = Interval(n=n_systems, clusters=n_contexts, reason=reason)
    if reason:
        return interval
    value = float(rowwise_correlations(x_means, y_means, method)[0])
    interval = interval._replace(value=value)
    too_few_systems = n_systems < MIN_SYSTEMS
    if over == "both" and too_few_systems:
        return interval._replace(
            reason=f"fewer than {MIN_SYSTEMS} systems to draw from"
        )
    if over == "systems" and too_few_systems:
        low, high = fisher_interval(value, n_systems, method)
        reason = "too few systems, or a perfect order" if np.isnan(low) else ""
        return interval._replace(low=low, high=high, reason=reason)

    rng = np.random.default_rng(seed)
    samples = []
    for block in resample_blocks(resamples, n_contexts + n_systems**2):
        counts = np.ones((len(block), n_contexts))
        systems = None
        if over != "systems":
            counts = bootstrap_counts(rng, len(block), n_contexts)
        if over != "contexts":
            systems = rng.integers(0, n_systems, (len(block), n_systems))
        x_means, y_means = resampled_system_means(x, y, counts, systems=systems)
        samples.append(rowwise_correlations(x_means, y_means, method))
    return percentile_interval(interval, np.concatenate(samples), expanded=False)


def resampled_system_means(x, y, counts, systems=None) -> list[np.ndarray]:
    """Means of scores and of ratings per system under each row of `counts`.

    Args:
        x, y: (systems, contexts) scores and ratings; a cell with a NaN is left out of both.
        counts: (resamples, contexts) how often each context is in the resample.
        systems: (resamples, systems) the systems of each resample; None is all of them.

    Returns:
        Two arrays (resamples, systems); NaN for a system without a cell in the resample.

    >>> x = np.array([[1.0, 3.0], [5.0, np.nan]])
    >>> resampled_system_means(x, x, np.array([[1, 1], [2, 0]]))[0].tolist()
    [[2.0, 5.0], [1.0, 5.0]]
    """
    complete = ~np.isnan(x) & ~np.isnan(y)
    means = []
    for values in (x, y):
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = counts @ np.where(complete, values, 0).T / (counts @ complete.T)
        if systems is not None:
            mean = np.take_along_axis(mean, systems, axis=1)
        means.append(mean)
    return means


def soft_pairwise_accuracy(scores, human, resamples=1000, seed=0) -> SoftAccuracy:
    r"""SPA: do metric and humans agree on which systems differ, and how surely?

    .. math:: SPA = 1 - \frac{1}{|pairs|} \sum_{i<j} |p^{human}_{ij} - p^{metric}_{ij}|

    where :math:`p_{ij}` is the one-sided paired permutation p-value that system i is better than
    system j over the contexts both answered; metric and humans share the random signs.

    Args:
        scores, human: systems x contexts frames (`system_matrix`) with the same labels; a cell
            missing in either is left out of both.

    Returns:
        SoftAccuracy with the value in [0, 1], higher is better. A pair of systems that answered no
        context in common has no p-value and is left out; without any pair the value is NaN with a
        reason. Values above about .9 are common when most systems differ clearly; compare metrics,
        not corpora.

    Reference: Thompson, Mathur, Deutsch and Khayrallah 2024, "Improving Statistical Significance
    in Human Evaluation of Automatic Metrics via Soft Pairwise Accuracy".

    >>> human = pd.DataFrame([[1.0, 2, 1, 2], [4, 5, 4, 4]])
    >>> soft_pairwise_accuracy(human, human)
    SoftAccuracy(value=1.0, pairs=1, reason='')
    """
    complete = (scores.notna() & human.notna()).to_numpy()
    first, second = np.triu_indices(len(complete), 1)
    shared = (complete[first] & complete[second]).any(axis=1)
    if not shared.any():
        return SoftAccuracy(np.nan, 0, "no two systems share a context")
    first = first[shared]
    second = second[shared]
    signs = (
        np.random.default_rng(seed).integers(0, 2, (resamples, complete.shape[1])) * 2.0
        - 1
    )
    p_values = []
    for frame in (scores, human):
        values = np.where(complete, frame.to_numpy(float), np.nan)
        p_values.append(_paired_p(values[first] - values[second], signs))
    error = np.abs(p_values[0] - p_values[1]).mean()
    return SoftAccuracy(float(1 - error), len(first), "")


def soft_accuracy_p(scores, human, resamples=1000, seed=0) -> float:
    """p-value of a soft pairwise accuracy, for the null hypothesis that scores ignore the system.

    A permutation test: the systems exchange their rows of `scores` in every order (more than seven
    systems: in 5,000 random orders), and the accuracy is computed for each order. The p-value is
    the share of the orders, the observed one among them, that reach the observed accuracy, so six
    systems give at least 1/720.

    Args:
        scores, human: systems x contexts frames with the same labels, without a missing cell.

    Returns:
        NaN where a cell is missing, and for fewer than two systems.

    >>> human = pd.DataFrame([[1.0, 2, 1, 2], [4, 5, 4, 4], [7, 8, 7, 9]])
    >>> round(soft_accuracy_p(human, human), 3)
    0.167
    """
    if scores.isna().to_numpy().any() or human.isna().to_numpy().any():
        return np.nan
    n_systems, n_contexts = scores.shape
    if n_systems < 2:
        return np.nan
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, (resamples, n_contexts)) * 2.0 - 1
    metric_p = _p_of_ordered_pairs(scores.to_numpy(float), signs)
    human_p = _p_of_ordered_pairs(human.to_numpy(float), signs)
    if n_systems <= 7:
        orders = list(permutations(range(n_systems)))
    else:
        observed = np.arange(n_systems)
        orders = [observed, *(rng.permutation(n_systems) for _ in range(4999))]
    upper = np.triu_indices(n_systems, 1)
    errors = []
    for order in orders:
        permuted = metric_p[np.ix_(order, order)]
        errors.append(np.abs(permuted - human_p)[upper].mean())
    observed_error = errors[0]  # the first order changes nothing
    return float(np.mean(np.array(errors) <= observed_error + 1e-9))


def _p_of_ordered_pairs(values: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """`_paired_p` of every ordered pair of systems (rows), (systems, systems)."""
    n_systems = len(values)
    first, second = np.indices((n_systems, n_systems)).reshape(2, -1)
    p = _paired_p(values[first] - values[second], signs)
    return p.reshape(n_systems, n_systems)


def _paired_p(differences: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """One-sided paired permutation p, (count + 1) / (resamples + 1), of each row of differences.

    `differences` is pairs x contexts (NaN where one is missing), `signs` (resamples, contexts).
    """
    differences = np.nan_to_num(differences)
    slack = 1e-9 * np.abs(differences).sum(axis=1)  # equal sums differ in the last bits
    reached = signs @ differences.T >= differences.sum(axis=1) - slack
    return (reached.sum(axis=0) + 1) / (len(signs) + 1)
