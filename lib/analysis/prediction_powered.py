"""Prediction-powered inference by dialog: few ratings, corrected by the scores of all dialogs.

People rate n dialogs, drawn at random; a metric or a judge, chosen beforehand, scores these and N
more. The mean rating of the n is corrected by what the scores tell about the draw (PPI++,
Angelopoulos et al. 2023, arXiv 2311.01453). The unit is the dialog, since the turns of a dialog
are not independent. The correction has no bias, whatever the scores are worth, and narrows the
interval only if they follow the ratings.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

# With fewer rated dialogs, the interval of a tuned correction covers too rarely.
MIN_RATED = 20
POPULATIONS = ("dialogs like these", "these dialogs")


class Estimate(NamedTuple):
    """An estimate with its standard error and the degrees of freedom of Student's t.

    >>> Estimate(value=3.0, error=0.5, df=10).interval()
    (1.88..., 4.11...)
    """

    value: float
    error: float
    df: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval with this probability of coverage."""
        half = float(stats.t.ppf((1 + level) / 2, self.df)) * self.error
        return self.value - half, self.value + half


class PoweredMean(NamedTuple):
    """A mean rating: by the ratings alone, and with the correction by scores.

    Attributes:
        powered: the corrected estimate; the classical one where `reason` is not empty.
        classical: the mean of the ratings.
        correlation: Pearson's r of ratings and scores over the rated dialogs; NaN where undefined.
        break_even: the absolute r above which a correction is worth using, 1 / sqrt(n - 2).
        saving: the share of ratings that the correction saves, 1 - (error / classical error)
            squared; 0 where there is no correction.
        reason: why there is no correction; empty where there is one.
    """

    powered: Estimate
    classical: Estimate
    correlation: float
    break_even: float
    saving: float
    reason: str = ""


def powered_mean(
    ratings: np.ndarray,
    rated_scores: np.ndarray,
    other_scores: np.ndarray,
    population: str = "dialogs like these",
) -> PoweredMean:
    """Mean rating of a system from few rated and many scored dialogs.

    With ratings Y and scores F of n rated dialogs and the scores of N others, the weight is
    cov(Y, F) / var(F) * N / (n + N), with the variance over all n + N dialogs, and the estimate is
    mean(Y) - weight * (mean of F over the n - mean of F over the N). The residuals' variance is
    divided by n - 2 and Student's t has n - 2 degrees of freedom, since the weight is estimated
    from the same dialogs. For the difference of two systems on the same contexts, pass the
    differences of their ratings and of their scores.

    Args:
        ratings: mean rating of each rated dialog, shape (n,).
        rated_scores: scores of the same dialogs, shape (n,).
        other_scores: scores of the dialogs that were not rated, shape (N,).
        population: what the mean is about. "dialogs like these": the dialogs are a sample of all
            that the system might have; "these dialogs": the n + N dialogs themselves.

    Returns:
        Both estimates, in the units of the ratings. There is no correction with fewer than 20
        rated dialogs, no further dialog, equal ratings or equal scores, a correlation that does
        not exceed the break-even, or an error that the correction makes larger (extreme scores
        among the rated dialogs do that).

    Raises:
        ValueError: fewer than two ratings, a missing value, lengths that differ, or an unknown
            population.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=400)
    >>> ratings = scores[:50] + rng.normal(scale=0.5, size=50)
    >>> mean = powered_mean(ratings, scores[:50], scores[50:])
    >>> mean.powered.error < mean.classical.error, round(mean.saving, 1)
    (True, 0.7)
    >>> powered_mean(ratings[:9], scores[:9], scores[9:]).reason
    '9 rated dialogs, fewer than 20'
    """
    ratings, rated_scores, other_scores = _as_arrays(
        ratings, rated_scores, other_scores
    )
    if population not in POPULATIONS:
        raise ValueError(
            f"population is {population!r}, not one of {', '.join(POPULATIONS)}"
        )
    n = len(ratings)
    n_other = len(other_scores)
    share_left = 1.0
    if population == "these dialogs":
        share_left = n_other / (n + n_other)  # finite population correction
    classical = Estimate(
        value=float(ratings.mean()),
        error=float(np.sqrt(ratings.var(ddof=1) / n * share_left)),
        df=n - 1,
    )

    varies = np.ptp(ratings) > 0 and np.ptp(rated_scores) > 0
    correlation = float(np.corrcoef(ratings, rated_scores)[0, 1]) if varies else np.nan
    break_even = float(1 / np.sqrt(n - 2)) if n > 2 else np.nan
    reason = ""
    if n < MIN_RATED:
        reason = f"{n} rated dialogs, fewer than {MIN_RATED}"
    elif n_other == 0:
        reason = "every dialog is rated"
    elif not varies:
        reason = "all ratings or all scores are equal"
    elif abs(correlation) <= break_even:
        reason = f"r is {correlation:.2f}, which does not exceed the break-even {break_even:.2f}"
    powered = classical
    if not reason:
        powered = _corrected(classical, ratings, rated_scores, other_scores, population)
        if powered.error > classical.error:
            reason = (
                f"the correction would widen the error from {classical.error:.3g} "
                f"to {powered.error:.3g}"
            )
            powered = classical
    saving = 0.0 if reason else float(1 - (powered.error / classical.error) ** 2)
    return PoweredMean(
        powered=powered,
        classical=classical,
        correlation=correlation,
        break_even=break_even,
        saving=saving,
        reason=reason,
    )


def _corrected(
    classical: Estimate,
    ratings: np.ndarray,
    rated_scores: np.ndarray,
    other_scores: np.ndarray,
    population: str,
) -> Estimate:
    """The mean rating corrected by the scores, with the tuned weight."""
    n = len(ratings)
    n_other = len(other_scores)
    share_left = n_other / (n + n_other)
    variance = np.concatenate([rated_scores, other_scores]).var(ddof=1)
    slope = np.cov(ratings, rated_scores, ddof=0)[0, 1] / variance  # as in ppi-python
    weight = slope * share_left
    gap = rated_scores.mean() - other_scores.mean()
    if population == "these dialogs":
        residuals = ratings - slope * rated_scores
        error = np.sqrt(_variance(residuals) / n * share_left)
    else:
        residuals = ratings - weight * rated_scores
        error = np.sqrt(_variance(residuals) / n + weight**2 * variance / n_other)
    return Estimate(
        value=float(classical.value - weight * gap), error=float(error), df=n - 2
    )


def powered_difference(a: PoweredMean, b: PoweredMean) -> tuple[Estimate, Estimate]:
    """Difference b - a of two systems that have dialogs of their own.

    Errors add in squares, with the degrees of freedom of Welch and Satterthwaite. For systems that
    answered the same contexts, pass differences to `powered_mean` instead.

    Returns:
        The prediction-powered and the classical difference.

    >>> low = PoweredMean(Estimate(3.0, 0.3, 30), Estimate(3.0, 0.4, 31), 0.5, 0.2, 0.4)
    >>> high = PoweredMean(Estimate(3.5, 0.4, 30), Estimate(3.4, 0.3, 31), 0.5, 0.2, -0.8)
    >>> powered, classical = powered_difference(low, high)
    >>> powered.value, round(powered.error, 3), round(classical.value, 1)
    (0.5, 0.5, 0.4)
    """
    return _difference(a.powered, b.powered), _difference(a.classical, b.classical)


def _difference(a: Estimate, b: Estimate) -> Estimate:
    variance = a.error**2 + b.error**2
    df = a.df + b.df
    if variance > 0:
        df = variance**2 / (a.error**4 / a.df + b.error**4 / b.df)
    return Estimate(value=b.value - a.value, error=float(np.sqrt(variance)), df=df)


def _variance(residuals: np.ndarray) -> float:
    """Variance of residuals after one coefficient was estimated beside the mean."""
    return float(((residuals - residuals.mean()) ** 2).sum() / (len(residuals) - 2))


def _as_arrays(ratings, rated_scores, other_scores) -> list[np.ndarray]:
    arrays = [
        np.asarray(values, dtype=float)
        for values in (ratings, rated_scores, other_scores)
    ]
    names = ("ratings", "rated_scores", "other_scores")
    for name, values in zip(names, arrays, strict=True):
        if np.isnan(values).any():
            raise ValueError(
                f"{name} has missing values: leave out those dialogs, and count them"
            )
    if len(arrays[0]) != len(arrays[1]):
        raise ValueError(
            f"{len(arrays[0])} ratings, but {len(arrays[1])} scores of rated dialogs"
        )
    if len(arrays[0]) < 2:
        raise ValueError("a mean with an interval needs at least two rated dialogs")
    return arrays


def powered_variance(correlation: float, n_rated: int, n_scored: int) -> float:
    r"""Variance of a powered mean over that of the ratings alone, for planning a study.

    .. math:: 1 - r^2 \frac{N}{n + N}

    with n rated dialogs, N more that have only a score, and r their correlation over dialogs of
    the same system. The price of estimating the weight, one degree of freedom, is left out.

    Raises:
        ValueError: a correlation outside -1 to 1, or no dialog at all.

    >>> powered_variance(0.5, n_rated=50, n_scored=150)
    0.8125
    """
    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation of {correlation} is outside -1 to 1")
    if n_rated + n_scored <= 0:
        raise ValueError("no dialog is rated or scored")
    return 1 - correlation**2 * n_scored / (n_rated + n_scored)


def simulate_powered_mean(
    ratings: np.ndarray,
    scores: np.ndarray,
    n_rated: int,
    n_scored: int = 1000,
    runs: int = 1000,
    seed: int = 0,
) -> dict[str, float]:
    """How often the intervals cover the mean, and what the correction saves, in drawn studies.

    The rated dialogs stand for all dialogs: each study draws rated and scored ones from them with
    replacement.

    Args:
        ratings, scores: of all dialogs, shape (dialogs,).
        n_rated, n_scored: rated dialogs of a study, and dialogs that have only a score.
        runs: number of studies.

    Returns:
        correlation: Pearson's r over all dialogs.
        coverage, classical_coverage: share of intervals that cover the mean of all dialogs.
        saving: mean share of ratings saved, from the errors that the studies state.
        true_saving: the same from the distance to the mean of all dialogs.
        used: share of studies that were corrected.

    >>> scores = np.random.default_rng(0).normal(size=200)
    >>> ratings = scores + np.random.default_rng(1).normal(size=200)
    >>> result = simulate_powered_mean(ratings, scores, n_rated=50, runs=200)
    >>> result["coverage"] > 0.9, round(result["saving"], 1), result["used"]
    (True, 0.5, 1.0)
    """
    rng = np.random.default_rng(seed)
    ratings = np.asarray(ratings, dtype=float)
    scores = np.asarray(scores, dtype=float)
    truth = ratings.mean()
    rows = []
    for _ in range(runs):
        rated = rng.integers(0, len(ratings), n_rated)
        scored = rng.integers(0, len(ratings), n_scored)
        mean = powered_mean(ratings[rated], scores[rated], scores[scored])
        low, high = mean.powered.interval()
        classical_low, classical_high = mean.classical.interval()
        rows.append(
            {
                "covered": low <= truth <= high,
                "classical_covered": classical_low <= truth <= classical_high,
                "saving": mean.saving,
                "error": (mean.powered.value - truth) ** 2,
                "classical_error": (mean.classical.value - truth) ** 2,
                "used": not mean.reason,
            }
        )
    means = pd.DataFrame(rows).astype(float).mean().to_dict()
    return {
        "correlation": float(np.corrcoef(ratings, scores)[0, 1]),
        "coverage": means["covered"],
        "classical_coverage": means["classical_covered"],
        "saving": means["saving"],
        "true_saving": 1 - means["error"] / means["classical_error"],
        "used": means["used"],
    }


def simulate_equal_systems(
    ratings: np.ndarray,
    scores: np.ndarray,
    n_rated: int,
    n_scored: int = 1000,
    runs: int = 400,
    seed: int = 0,
) -> dict[str, int]:
    """How often two versions that are truly equal are called different, in drawn studies.

    Both versions draw their dialogs from the same ones, with replacement. A study calls them
    different where the 95 % interval of their difference leaves out 0.

    Args:
        ratings, scores: of all dialogs, shape (dialogs,).
        n_rated, n_scored: rated dialogs of each version, and those that have only a score.
        runs: number of studies; one in twenty is a false alarm of a correct interval.

    Returns:
        Number of false alarms: powered, classical.

    >>> scores = np.random.default_rng(0).normal(size=200)
    >>> alarms = simulate_equal_systems(scores, scores, n_rated=20, runs=40)
    >>> alarms["classical"] < 7
    True
    """
    rng = np.random.default_rng(seed)
    ratings = np.asarray(ratings, dtype=float)
    scores = np.asarray(scores, dtype=float)
    alarms = {"powered": 0, "classical": 0}
    for _ in range(runs):
        versions = []
        for _ in range(2):
            rated = rng.integers(0, len(ratings), n_rated)
            scored = rng.integers(0, len(ratings), n_scored)
            versions.append(powered_mean(ratings[rated], scores[rated], scores[scored]))
        powered, classical = powered_difference(*versions)
        for name, difference in (("powered", powered), ("classical", classical)):
            low, high = difference.interval()
            alarms[name] += int(low > 0 or high < 0)
    return alarms
