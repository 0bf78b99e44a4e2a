"""How many systems, dialogs, replies and raters does a study need, and what does it cost?

A rating is the mean of its system plus a deviation of the dialog, of the reply and of the single
judgement (`variance_split` estimates the four variances). What a design of other numbers would
give follows from them; `redraw` makes such a study out of a real one, so that the answer can be
held against data that know nothing of normal distributions.
"""

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.correlation import cluster_ids
from lib.data import DataError

PARTS = ("system", "dialog", "reply", "rating")


def study_plan(
    variance, dialogs, raters, systems=2, replies=1, dialog_price=0, rating_price=0, judge_price=0
) -> pd.Series:
    r"""What a design gives and costs.

    .. math:: \sigma^2_{error} = \frac{\sigma_d^2}{D} + \frac{\sigma_r^2}{D R}
              + \frac{\sigma_j^2}{D R k}

    is the noise in the mean of a system over D dialogs of R rated replies with k ratings each. Two
    systems are told apart at the 5 % level with a power of .8 when they differ by
    :math:`(t_{.975} + t_{.8}) \sqrt{2 \sigma^2_{error}}`, with 2(D - 1) degrees of freedom.

    Args:
        variance: of single ratings, by "system", "dialog", "reply" and "rating"; what is left out
            is 0. The unit is that of the scale, squared.
        dialogs, raters, systems, replies: of each system; of each reply; in all; of each dialog.
        dialog_price, rating_price, judge_price: of holding one dialog, of one rating by a person,
            of one reply by a judge.

    Returns:
        Series: ratings (how many are given), people and judge (what the dialogs cost, with the
        ratings or with the judge's marks), reliability and limit (of the mean rating of one reply,
        and the highest correlation that this allows a metric), system reliability, detectable
        (smallest difference, in points of the scale, that is found in four of five studies).

    Raises:
        DataError: for a negative variance, or fewer than two dialogs.

    Reference: Brennan 2001, Generalizability Theory; Cohen 1988 on power.

    >>> plan = study_plan({"system": 0.2, "dialog": 0.3, "rating": 0.5}, dialogs=50, raters=3)
    >>> plan[["ratings", "limit", "detectable"]].round(2).to_dict()
    {'ratings': 300.0, 'limit': 0.87, 'detectable': 0.39}
    """
    system, dialog, reply, rating = (variance.get(part, 0.0) for part in PARTS)
    if min(system, dialog, reply, rating) < 0 or dialogs < 2:
        raise DataError("a plan needs variances of 0 or more, and two dialogs or more per system")
    error = (dialog + (reply + rating / raters) / replies) / dialogs
    reliability = 1 - (rating / raters) / (system + dialog + reply + rating / raters)
    t = stats.t.ppf([0.975, 0.8], 2 * (dialogs - 1)).sum()
    rated, held = systems * dialogs * replies, systems * dialogs * dialog_price
    return pd.Series(
        {
            "ratings": rated * raters,
            "people": held + rated * raters * rating_price,
            "judge": held + rated * judge_price,
            "reliability": reliability,
            "limit": np.sqrt(reliability),
            "system reliability": system / (system + error) if system else 0.0,
            "detectable": t * np.sqrt(2 * error),
        }
    )


def equivalent_raters(correlation: float, reliability: float, raters: float) -> float:
    r"""How many people a judge replaces, as far as the order of items goes.

    The correlation with the mean of k raters, divided by the limit that they set, is that with the
    true values; its square is the reliability that m people would have (Spearman-Brown backwards).

    .. math:: m = \frac{\varrho^2 (1 - \alpha)}{\alpha (1 - \varrho^2)}, \qquad
              \varrho^2 = r^2 \frac{1 + (k - 1)\alpha}{k\alpha}

    Infinite where the judge reaches the limit. It says nothing of a leaning towards one system:
    more people average their whims away, a judge keeps its own.

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


def redraw_study(
    items, ratings, dialogs: int, raters: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Draw a study of other numbers from a real one: dialogs with, raters without replacement.

    Args:
        items: turn or dialog table with the column dialog.
        ratings: (items, slots), NaN where there is none (`rating_matrix`).
        dialogs, raters: how many to draw; an item with fewer ratings keeps what it has.

    Returns:
        The rows of the drawn dialogs, each draw a dialog of its own (numbered from 0), with the
        mean of the drawn ratings in the column human.

    >>> items = pd.DataFrame({"dialog": ["a", "a", "b"]})
    >>> study = redraw_study(items, np.array([[1.0, 1], [2, 2], [3, 3]]), 3, 1, np.random.default_rng(1))
    >>> study[["dialog", "human"]].values.tolist()
    [[0.0, 1.0], [0.0, 2.0], [1.0, 3.0], [2.0, 1.0], [2.0, 2.0]]
    """
    order = np.argsort(rng.random(ratings.shape) + np.isnan(ratings), axis=1)
    kept = np.take_along_axis(ratings, order[:, :raters], axis=1)
    rated = items.assign(human=np.nanmean(kept, axis=1))
    codes = cluster_ids(items["dialog"], len(items))
    members = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    drawn = [members[code] for code in rng.integers(0, len(members), dialogs)]
    study = rated.iloc[np.concatenate(drawn)]
    return study.assign(dialog=np.repeat(np.arange(dialogs), [len(rows) for rows in drawn]))


def simulated_power(items, ratings, test, *, dialogs, raters, runs=200, seed=0) -> float:
    """Share of redrawn studies (`redraw`) in which `test` gives p of .05 or less.

    `test` takes the table of a study and returns a p-value; an undefined one counts as not found.

    >>> items = pd.DataFrame({"dialog": range(20), "system": ["a", "b"] * 10})
    >>> ratings = np.tile([[1.0], [5.0]], (10, 3)) + np.random.default_rng(0).normal(size=(20, 3))
    >>> simulated_power(items, ratings, compare_systems, dialogs=30, raters=2, runs=20)
    1.0
    """
    rng = np.random.default_rng(seed)
    found = [test(redraw_study(items, ratings, dialogs, raters, rng)) <= 0.05 for _ in range(runs)]
    return float(np.mean(found))


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
    return float(stats.ttest_ind(first, second, equal_var=False, nan_policy="omit").pvalue)
