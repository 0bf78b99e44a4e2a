"""Do metric and people order the systems alike? Correlation and pairwise accuracy over systems."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.correlation import rowwise_correlations, undefined_reason
from lib.analysis.resampling import Interval, bootstrap_counts, percentile_interval, resample_blocks

#: With fewer systems a bootstrap draws the same few again and again: -1 to 1 from six points.
FEWEST_TO_DRAW = 10

#: Variance of Fisher's z with n systems: the first over n minus the second.
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


def fisher_interval(value: float, systems: int, method: str = "pearson") -> tuple[float, float]:
    r"""95 % interval of a coefficient of n independent points, by Fisher's transformation.

    .. math:: \tanh\big(\mathrm{artanh}(r) \pm 1.96 \sqrt{v / (n - d)}\big)

    with v = 1, d = 3 for Pearson, v = 1.06, d = 3 for Spearman and v = .437, d = 4 for Kendall.
    NaN with d points or fewer, and for a coefficient of exactly -1 or 1, where the formula claims
    certainty. Reference: Fieller, Hartley and Pearson 1957, "Tests for rank correlation
    coefficients. I".

    >>> [round(bound, 2) for bound in fisher_interval(0.486, 6, "spearman")]
    [-0.56, 0.94]
    """
    variance, lost = FISHER[method]
    if systems <= lost or abs(value) >= 1:
        return np.nan, np.nan
    half = stats.norm.ppf(0.975) * np.sqrt(variance / (systems - lost))
    return tuple(np.tanh(np.arctanh(value) + np.array([-half, half])).tolist())


def system_interval(
    scores, human, method="pearson", over="both", resamples=10_000, seed=0
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

    >>> scores = pd.DataFrame([[1.0, 2, 3], [2, 3, 4], [5, 5, 6]])
    >>> system_interval(scores, scores * 2, over="contexts").low
    1.0
    """
    x, y = scores.to_numpy(float), human.to_numpy(float)
    both = ~(np.isnan(x) | np.isnan(y))
    x, y, both = (values[both.any(axis=1)] for values in (x, y, both))
    systems, contexts = x.shape
    means = _system_means(x, y, both, np.ones((1, contexts)))
    if reason := undefined_reason(means[0][0], means[1][0], method):
        return Interval(np.nan, np.nan, np.nan, systems, contexts, 0, reason)
    point = float(rowwise_correlations(*means, method)[0])
    if over != "contexts" and systems < FEWEST_TO_DRAW:
        low, high, reason = np.nan, np.nan, f"fewer than {FEWEST_TO_DRAW} systems to draw from"
        if over == "systems":
            low, high = fisher_interval(point, systems, method)
            reason = "too few systems, or a perfect order" if np.isnan(low) else ""
        return Interval(point, low, high, systems, contexts, 0, reason)
    rng, samples = np.random.default_rng(seed), []
    for block in resample_blocks(resamples, contexts + systems**2):
        counts = np.ones((len(block), contexts))
        if over != "systems":
            counts = bootstrap_counts(rng, *counts.shape)
        drawn = None if over == "contexts" else rng.integers(0, systems, (len(block), systems))
        samples.append(rowwise_correlations(*_system_means(x, y, both, counts, drawn), method))
    return percentile_interval(point, np.concatenate(samples), systems, contexts, expanded=False)


def _system_means(x, y, both, counts, drawn=None) -> list[np.ndarray]:
    """(resamples, systems) means of scores and ratings, of the systems `drawn`."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [counts @ np.where(both, v, 0).T / (counts @ both.T) for v in (x, y)]
    if drawn is None:
        return means
    return [np.take_along_axis(np.broadcast_to(m, drawn.shape), drawn, axis=1) for m in means]


def soft_pairwise_accuracy(scores, human, resamples=1000, seed=0) -> SoftAccuracy:
    r"""SPA: do metric and humans agree on which systems differ, and how surely?

    .. math:: SPA = 1 - \frac{1}{|pairs|} \sum_{i<j} |p^{human}_{ij} - p^{metric}_{ij}|

    where :math:`p_{ij}` is the one-sided paired permutation p-value that system i beats system j
    over the contexts both answered; metric and humans share the random signs.

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
    both = (scores.notna() & human.notna()).to_numpy()
    first, second = np.triu_indices(len(both), 1)
    paired = (both[first] & both[second]).any(axis=1)
    if not paired.any():
        return SoftAccuracy(np.nan, 0, "no two systems share a context")
    signs = np.random.default_rng(seed).integers(0, 2, (resamples, both.shape[1])) * 2.0 - 1
    p_values = []
    for frame in (scores, human):
        values = np.where(both, frame.to_numpy(float), np.nan)
        p_values.append(_paired_p(values[first[paired]] - values[second[paired]], signs))
    error = np.abs(p_values[0] - p_values[1]).mean()
    return SoftAccuracy(float(1 - error), int(paired.sum()), "")


def _paired_p(differences: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """One-sided paired permutation p, (count + 1) / (resamples + 1), of each row of differences.

    `differences` is pairs x contexts (NaN where one is missing), `signs` (resamples, contexts).
    """
    differences = np.nan_to_num(differences)
    slack = 1e-9 * np.abs(differences).sum(axis=1)  # equal sums differ in the last bits
    beaten = signs @ differences.T >= differences.sum(axis=1) - slack
    return (beaten.sum(axis=0) + 1) / (len(signs) + 1)
