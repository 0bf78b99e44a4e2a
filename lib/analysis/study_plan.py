"""How many systems, dialogs, replies and raters does a study need, and what does it cost?

A rating is the mean of its system plus a deviation of the dialog, of the reply and of the single
judgement (`variance_split` estimates the four variances). The precision of another design follows
from them; `redraw_study` makes such a study out of a real one, so that the answer can be compared
with data that are not normally distributed.
"""

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.agreement import resampled_alphas
from lib.analysis.correlation import number_clusters
from lib.analysis.resampling import (
    Interval,
    resampled_correlations,
    statistic_interval,
)
from lib.data import DataError


def study_plan(
    variance,
    dialogs,
    raters,
    systems=2,
    replies=1,
    dialog_price=0,
    rating_price=0,
    judge_price=0,
) -> pd.Series:
    r"""The precision of a design, and what it costs.

    .. math:: \sigma^2_{error} = \frac{\sigma_d^2}{D} + \frac{\sigma_r^2}{D R}
              + \frac{\sigma_j^2}{D R k} + \frac{\sigma_{rs}^2}{k}

    is the noise in the mean of a system over D dialogs of R rated replies with k ratings each. The
    last term is rater x system: the same k raters rate all dialogs, so it does not fall with D;
    it is 0 where every rating has a rater of its own. Two systems are distinguished at the 5 %
    level with a power of .8 when they differ by
    :math:`(t_{.975} + t_{.8}) \sqrt{2 \sigma^2_{error}}`, with 2(D - 1) degrees of freedom.

    Args:
        variance: of single ratings, by "system", "dialog", "reply", "rating" and "rater x system"
            (`rater_variance`); 0 where absent. The unit is that of the scale, squared.
        dialogs, raters, systems, replies: of each system; of each reply; in all; of each dialog.
        dialog_price, rating_price, judge_price: of holding one dialog, of one rating by a person,
            of one reply by a judge.

    Returns:
        Series: ratings (number of ratings), people and judge (cost of the dialogs with ratings by
        people or by a judge), reliability (of the mean rating of one reply), noise ceiling (of
        a metric), system reliability, detectable (smallest difference, in points
        of the scale, that is significant in four of five studies).

    Raises:
        DataError: for a negative variance, or fewer than two dialogs.

    Reference: Brennan 2001, Generalizability Theory; Cohen 1988 on power.

    >>> plan = study_plan({"system": 0.2, "dialog": 0.3, "rating": 0.5}, dialogs=50, raters=3)
    >>> plan[["ratings", "noise ceiling", "detectable"]].round(2).to_dict()
    {'ratings': 300.0, 'noise ceiling': 0.87, 'detectable': 0.39}
    """
    system = variance.get("system", 0.0)
    dialog = variance.get("dialog", 0.0)
    reply = variance.get("reply", 0.0)
    rating = variance.get("rating", 0.0)
    rater_by_system = variance.get("rater x system", 0.0)
    if min(system, dialog, reply, rating, rater_by_system) < 0 or dialogs < 2:
        raise DataError(
            "a plan needs variances of 0 or more, and two dialogs or more per system"
        )
    noise = rating / raters
    reliability = 1 - noise / (system + dialog + reply + noise)
    system_error = (dialog + (reply + noise) / replies) / dialogs
    system_error += rater_by_system / raters
    t = stats.t.ppf([0.975, 0.8], 2 * (dialogs - 1)).sum()
    n_replies = systems * dialogs * replies
    dialog_costs = systems * dialogs * dialog_price
    return pd.Series(
        {
            "ratings": n_replies * raters,
            "people": dialog_costs + n_replies * raters * rating_price,
            "judge": dialog_costs + n_replies * judge_price,
            "reliability": reliability,
            "noise ceiling": np.sqrt(reliability),
            "system reliability": system / (system + system_error) if system else 0.0,
            "detectable": t * np.sqrt(2 * system_error),
        }
    )


def equivalent_raters(correlation: float, reliability: float, raters: float) -> float:
    r"""How many people a judge replaces, as far as the order of items goes.

    The correlation with the mean of k raters, divided by the noise ceiling of that mean, is the
    correlation with the true values. Its square is the reliability of the mean of m people, and
    the formula of Spearman and Brown is solved for m. The sign of the correlation is lost.

    .. math:: m = \frac{\varrho^2 (1 - \alpha)}{\alpha (1 - \varrho^2)}, \qquad
              \varrho^2 = r^2 \frac{1 + (k - 1)\alpha}{k\alpha}

    Infinite where the judge reaches the noise ceiling. It says nothing about a bias towards one
    system: the biases of several people average out, that of a judge stays.

    Args:
        correlation: of judge and mean rating (Pearson).
        reliability: alpha, of a single rating, above 0 and below 1.
        raters: k, how many ratings the mean has.

    >>> round(equivalent_raters(0.5, reliability=0.5, raters=1), 2)
    1.0
    """
    squared = correlation**2 * (1 + (raters - 1) * reliability) / (raters * reliability)
    if squared >= 1:
        return float("inf")
    return float(squared * (1 - reliability) / (reliability * (1 - squared)))


def equivalent_raters_interval(
    scores, ratings, clusters=None, resamples=1000, seed=0
) -> Interval:
    """`equivalent_raters` of a judge with a 95 % bootstrap interval over dialogs.

    In each resample both the correlation and the reliability (Krippendorff's alpha) are computed
    again, since the worth depends on both. The upper bound is infinite where the judge may reach
    the noise ceiling.

    Args:
        scores: (items,) of the judge.
        ratings: (items, slots), NaN where there is none (`rating_matrix`), two or more per item.
        clusters: dialog of each item; None draws items.

    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal(size=200)
    >>> ratings = true[:, None] + rng.normal(size=(200, 3))
    >>> worth = equivalent_raters_interval(true + rng.normal(size=200), ratings)
    >>> worth.low < 1 < worth.high
    True
    """
    scores = np.asarray(scores, dtype=float)
    ratings = np.asarray(ratings, dtype=float)
    cluster_ids = number_clusters(clusters, len(scores))
    mean_ratings = np.nanmean(ratings, axis=1)
    raters = stats.hmean((~np.isnan(ratings)).sum(axis=1))

    def worths(counts: np.ndarray) -> np.ndarray:
        correlations = resampled_correlations(
            scores, mean_ratings, counts, cluster_ids=cluster_ids
        )
        alphas = resampled_alphas(ratings, cluster_ids, counts)
        values = []
        for correlation, alpha in zip(correlations, alphas, strict=True):
            if alpha > 0:
                values.append(equivalent_raters(correlation, alpha, raters))
            else:
                values.append(np.nan)
        return np.array(values)

    return statistic_interval(worths, cluster_ids, resamples, seed=seed)


def redraw_study(
    items, ratings, dialogs: int, raters: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Draw a study of another size from a real one: dialogs with, raters without replacement.

    The dialogs are drawn first and then the raters of every drawn row, so a dialog that is drawn
    twice is rated by raters of its own each time, as two dialogs of a real study are.

    Args:
        items: turn or dialog table with the column dialog.
        ratings: (items, slots), NaN where there is none (`rating_matrix`).
        dialogs, raters: how many to draw; an item with fewer ratings keeps what it has.

    Returns:
        The rows of the drawn dialogs, each draw a dialog of its own (numbered from 0), with the
        mean of the drawn ratings in the column human.

    >>> items = pd.DataFrame({"dialog": ["a", "a", "b"]})
    >>> ratings, rng = np.array([[1.0, 1], [2, 2], [3, 3]]), np.random.default_rng(0)
    >>> study = redraw_study(items, ratings, dialogs=3, raters=1, rng=rng)
    >>> study[["dialog", "human"]].values.tolist()
    [[0.0, 3.0], [1.0, 3.0], [2.0, 3.0]]
    """
    dialog_ids = number_clusters(items["dialog"], len(items))
    dialog_rows = [
        np.flatnonzero(dialog_ids == dialog) for dialog in range(dialog_ids.max() + 1)
    ]
    study_rows = [
        dialog_rows[dialog] for dialog in rng.integers(0, len(dialog_rows), dialogs)
    ]
    numbers = np.repeat(np.arange(dialogs), [len(rows) for rows in study_rows])
    drawn_rows = np.concatenate(study_rows)
    drawn_ratings = ratings[drawn_rows]
    # Random order of the ratings of each drawn row, missing ones last.
    random_order = rng.random(drawn_ratings.shape) + np.isnan(drawn_ratings)
    order = np.argsort(random_order, axis=1)
    sampled = np.take_along_axis(drawn_ratings, order[:, :raters], axis=1)
    return items.iloc[drawn_rows].assign(
        dialog=numbers, human=np.nanmean(sampled, axis=1)
    )


def set_difference(items, ratings, difference: float) -> np.ndarray:
    """Shift the ratings of two systems so that their means differ by a named effect.

    A study drawn from ratings unchanged takes the observed difference for the true one, although
    two equal systems also differ a little in every sample. Name the difference that matters, and
    with 0 check that the test keeps its level.

    Args:
        items: turn or dialog table with the column system, of two systems.
        ratings: (items, slots), NaN where there is none.
        difference: second system (in the order of names) minus the first, in points.

    Returns:
        Ratings, shaped as they were given. The mean of all items' means stays, if the systems have
        equally many items. Shifted ratings may leave the scale.

    Raises:
        DataError: unless there are two systems.

    >>> items = pd.DataFrame({"system": ["a", "a", "b"]})
    >>> set_difference(items, np.array([[1.0], [3.0], [9.0]]), difference=1.0).tolist()
    [[4.0], [6.0], [6.0]]
    """
    means = pd.Series(np.nanmean(ratings, axis=1)).groupby(items["system"].to_numpy())
    of_systems = means.mean()
    if len(of_systems) != 2:
        raise DataError(f"a difference is of two systems, not of {len(of_systems)}")
    target = of_systems.mean() + np.array([-difference / 2, difference / 2])
    shift = pd.Series(target, of_systems.index) - of_systems
    return ratings + shift[items["system"]].to_numpy()[:, None]


def simulated_power(
    items,
    ratings,
    test,
    *,
    dialogs,
    raters,
    runs=200,
    seed=0,
) -> float:
    """Share of redrawn studies (`redraw_study`) in which `test` gives p of .05 or less.

    `test` takes the table of a study and returns a p-value; NaN counts as not significant. The
    sample is taken for the truth, its observed differences with it: for the power at a named
    difference, pass ratings of `set_difference`.

    >>> items = pd.DataFrame({"dialog": range(20), "system": ["a", "b"] * 10})
    >>> ratings = np.tile([[1.0], [5.0]], (10, 3)) + np.random.default_rng(0).normal(size=(20, 3))
    >>> simulated_power(items, ratings, compare_systems, dialogs=30, raters=2, runs=20)
    1.0
    """
    rng = np.random.default_rng(seed)
    significant = []
    for _ in range(runs):
        study = redraw_study(items, ratings, dialogs=dialogs, raters=raters, rng=rng)
        significant.append(test(study) <= 0.05)
    return float(np.mean(significant))


def compare_systems(study: pd.DataFrame) -> float:
    """Two-sided p of a t-test on dialog means: do the two systems of a study differ?

    Paired where both answered every dialog, else Welch's. NaN with fewer than two dialogs.

    >>> study = pd.DataFrame({"dialog": [0, 0, 1, 1], "system": list("abab"),
    ...                       "human": [1.0, 2.0, 2.0, 3.5]})
    >>> round(compare_systems(study), 3)
    0.126
    """
    means = study.groupby(["dialog", "system"])["human"].mean().unstack()
    if means.shape[1] != 2:
        return float("nan")
    first, second = means.to_numpy().T
    if means.notna().all(axis=None):
        return float(stats.ttest_rel(first, second).pvalue)
    return float(
        stats.ttest_ind(first, second, equal_var=False, nan_policy="omit").pvalue
    )
