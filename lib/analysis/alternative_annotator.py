"""May a judge replace a rater? The alternative annotator test, with items grouped by dialog.

Calderon, Reichart and Dror (2025), arXiv 2501.10970. One rater at a time is left out. On each item
that this rater rated, the judge and the rater are compared with the other raters: whoever lies
nearer to them has an advantage there. The judge may cost as much agreement as `cost` allows, since
it is cheaper than a person. It may replace the raters if it passes for at least half of them.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

MIN_RATERS = 3
MIN_ITEMS = 30  # of a rater; the authors advise 50


class AlternativeAnnotatorTest(NamedTuple):
    """Result of the test.

    Attributes:
        winning_rate: share of raters whom the judge may replace; .5 or more passes.
        advantage: mean share of items on which the judge lies at least as near to the other raters
            as the rater who was left out.
        raters: one row per rater: items, advantage, p and whether the judge may replace this rater.
        reason: why the test cannot be made; the two numbers are then NaN.
    """

    winning_rate: float
    advantage: float
    raters: pd.DataFrame
    reason: str = ""


def alternative_annotator_test(
    ratings: pd.DataFrame,
    judge: pd.Series,
    clusters: pd.Series | None = None,
    cost: float = 0.2,
    level: float = 0.05,
) -> AlternativeAnnotatorTest:
    """Test whether a judge may replace a rater.

    Nearness is the negative root mean squared distance to the ratings of the other raters; a tie
    is an advantage of both. For each rater, Student's t test of (share of items with an advantage
    of the rater - share with an advantage of the judge) < `cost`, with a standard error over
    clusters; then Benjamini-Yekutieli over raters.

    Args:
        ratings: one row per item, one column per rater, on the judge's scale; NaN where a rater
            did not rate an item.
        judge: score of each item; items without one are left out.
        clusters: dialog of each item; each item is its own by default.
        cost: what replacing people is worth (epsilon): .2 for experts, .15 for trained raters, .1
            for a crowd (the authors' advice).
        level: false discovery rate.

    Returns:
        Winning rate and advantage, both between 0 and 1, higher is better for the judge. With
        fewer than three raters, or none with 30 items that another rated as well, they are NaN
        and `reason` says so.

    >>> rng = np.random.default_rng(0)
    >>> quality = rng.normal(size=60)
    >>> ratings = pd.DataFrame({name: quality + rng.normal(size=60) for name in "abc"})
    >>> test = alternative_annotator_test(ratings, pd.Series(quality))
    >>> test.winning_rate
    1.0
    """
    nobody = pd.DataFrame(columns=["items", "advantage", "p", "replaceable"])
    if ratings.shape[1] < MIN_RATERS:
        reason = f"{ratings.shape[1]} raters, fewer than {MIN_RATERS}"
        return AlternativeAnnotatorTest(np.nan, np.nan, nobody, reason)
    if clusters is None:
        clusters = pd.Series(np.arange(len(ratings)), ratings.index)
    rows = {}
    for rater in ratings:
        other_ratings = ratings.drop(columns=rater)
        usable = (
            ratings[rater].notna() & other_ratings.notna().any(axis=1) & judge.notna()
        )
        if usable.sum() < MIN_ITEMS:
            continue
        rater_distance = _distance(other_ratings[usable], ratings.loc[usable, rater])
        judge_distance = _distance(other_ratings[usable], judge[usable])
        judge_advantage = (judge_distance <= rater_distance).astype(float)
        rater_advantage = (rater_distance <= judge_distance).astype(float)
        rows[rater] = {
            "items": int(usable.sum()),
            "advantage": judge_advantage.mean(),
            "p": _p_below(rater_advantage - judge_advantage, cost, clusters[usable]),
        }
    if not rows:
        reason = f"no rater has {MIN_ITEMS} items that another rater and the judge rated as well"
        return AlternativeAnnotatorTest(np.nan, np.nan, nobody, reason)
    raters = pd.DataFrame.from_dict(rows, orient="index").rename_axis("rater")
    adjusted = stats.false_discovery_control(raters["p"], method="by")
    raters["replaceable"] = adjusted <= level
    return AlternativeAnnotatorTest(
        winning_rate=float(raters["replaceable"].mean()),
        advantage=float(raters["advantage"].mean()),
        raters=raters,
    )


def _distance(other_ratings: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Root mean squared distance of a value to the other raters' ratings of the same item."""
    # Rounded, so that equal distances are equal whatever the order of the sum.
    return other_ratings.sub(values, axis=0).pow(2).mean(axis=1).pow(0.5).round(9)


def _p_below(differences: pd.Series, bound: float, clusters: pd.Series) -> float:
    """One-sided p that the mean is below a bound, with the standard error over clusters."""
    mean = differences.mean()
    sums = (differences - mean).groupby(clusters).sum()
    n_clusters = len(sums)
    variance = (sums**2).sum() / len(differences) ** 2 * n_clusters / (n_clusters - 1)
    if variance == 0:
        return float(mean >= bound)
    return float(stats.t.cdf((mean - bound) / np.sqrt(variance), df=n_clusters - 1))
