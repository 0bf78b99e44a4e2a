"""Do the annotators agree, and how far can a metric then agree with their mean?

All functions take the long ratings table of a corpus: one row per given rating, with the columns
item, annotator, dimension, rating. Items with a single rating say nothing about agreement; they are
left out and counted.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.analysis.correlation import METHODS, cluster_ids, rowwise_correlations
from lib.analysis.resampling import cluster_sums, statistic_interval


class Agreement(NamedTuple):
    """A coefficient with its interval, and what it rests on.

    `items` counts those with two or more ratings, `ratings` their ratings; `raters` is the
    (harmonic) mean number of ratings behind the human mean of an item, single ratings included.
    """

    value: float
    low: float
    high: float
    items: int
    ratings: int
    raters: float
    reason: str


def rating_matrix(ratings: pd.DataFrame, dimension: str) -> pd.DataFrame:
    """Ratings of one dimension as items x slots: the first, second, ... rating each item got.

    A slot is a person only where everyone rated everything; with crowd workers it mixes people.
    Missing ratings are NaN. Raises ValueError for an unknown dimension.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1], "annotator": list("abb"),
    ...                         "dimension": "overall", "rating": [1.0, 2.0, 5.0]})
    >>> rating_matrix(ratings, "overall").values.tolist()
    [[1.0, 2.0], [5.0, nan]]
    """
    chosen = ratings[ratings["dimension"] == dimension].dropna(subset="rating")
    if chosen.empty:
        known = ", ".join(sorted(ratings["dimension"].unique()))
        raise ValueError(f"no rating of dimension {dimension!r}; the table has: {known}")
    chosen = chosen.assign(slot=chosen.groupby("item").cumcount())
    return chosen.pivot(index="item", columns="slot", values="rating")


def _rated_twice(matrix: pd.DataFrame) -> pd.DataFrame:
    return matrix[matrix.notna().sum(axis=1) >= 2]


def krippendorff_alpha(ratings, dimension, clusters=None, resamples=2000, seed=0) -> Agreement:
    r"""Krippendorff's alpha for interval ratings, with a bootstrap interval over items or dialogs.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}

    observed over expected disagreement (squared distance); 1 is perfect, 0 is chance, below 0 is
    systematic disagreement. Equal to the `krippendorff` package's value, which needs too much
    memory for ratings with thousands of distinct values.

    Args:
        clusters: dialog of each item, indexed by item; whole dialogs are drawn. None draws items.

    Returns:
        Agreement. NaN with a reason when no item has two ratings or all ratings are equal (expected
        disagreement 0). Reference: Krippendorff 2011; Hayes and Krippendorff 2007.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 3, 3, 5, 4]})
    >>> round(krippendorff_alpha(ratings, "overall", resamples=50).value, 3)
    0.935
    """
    every = rating_matrix(ratings, dimension)
    matrix, given = _rated_twice(every), every.notna().sum(axis=1)
    counts = len(matrix), int(given[matrix.index].sum()), float(1 / (1 / given).mean())
    if not len(matrix):
        return Agreement(np.nan, np.nan, np.nan, *counts, "no item with two ratings")
    values = matrix.to_numpy()
    if np.nanmin(values) == np.nanmax(values):
        return Agreement(np.nan, np.nan, np.nan, *counts, "all ratings equal")
    labels = None if clusters is None else clusters.loc[matrix.index]
    codes = cluster_ids(labels, len(matrix))
    found = statistic_interval(partial(resampled_alphas, values, codes), codes, resamples, seed)
    return Agreement(*found[:3], *counts, found.reason)


def resampled_alphas(values: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Alpha under each row of `counts`, from sums per cluster; NaN where all ratings are equal.

    Args:
        values: (items, slots) ratings, two or more per item, NaN where there is none.
        codes: (items,) the column of `counts` each item belongs to.
        counts: (resamples, clusters) how often each cluster is in the resample.

    >>> resampled_alphas(np.array([[1.0, 1], [2, 2]]), np.array([0, 1]), np.array([[1, 1], [2, 0]]))
    array([ 1., nan])
    """
    values = values - np.nanmean(values)
    m = (~np.isnan(values)).sum(axis=1)
    s, q = np.nansum(values, axis=1), np.nansum(values**2, axis=1)
    within = (m * q - s**2) / (m - 1)
    n, s, q, observed = (counts @ cluster_sums((m, s, q, within), codes, counts.shape[1])).T
    expected = (n * q - s**2) / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 1e-12 * q, 1 - observed / expected, np.nan)


def spearman_brown(reliability, ratings):
    r"""Reliability of the mean of k ratings, from that of one: :math:`k\rho / (1 + (k-1)\rho)`.

    Of numbers or arrays; 1 is a mean without noise. Reference: Spearman 1910; Brown 1910.

    >>> spearman_brown(0.5, 3)
    0.75
    """
    return ratings * reliability / (1 + (ratings - 1) * reliability)


def noise_ceiling(alpha: Agreement) -> tuple[float, float, float]:
    r"""What a perfect metric would reach against the mean rating, with its 95 % interval.

    .. math:: \sqrt{\frac{k\alpha}{1 + (k-1)\alpha}}

    The mean over k annotators is partly noise; a metric that knew the true value of every item
    would correlate with it at the root of its reliability. The formula is Pearson's (for ranks
    about the same) and speaks of single items. Alpha below 0 gives 0, an undefined alpha NaN.
    Reference: Lord and Novick 1968, chapter 3.

    >>> noise_ceiling(Agreement(0.5, 0.0, 1.0, 9, 27, 3.0, ""))[1:]
    (0.0, 1.0)
    """
    reliability = spearman_brown(np.maximum(alpha[:3], 0.0), alpha.raters)
    return tuple(np.sqrt(reliability).tolist())


def rating_noise_ceiling(ratings: pd.DataFrame, dimension: str) -> tuple[float, float, float]:
    """`metric_limit` for the mean of one rated dimension; NaN where no single ratings are kept.

    >>> rating_noise_ceiling(pd.DataFrame({"dimension": ["fun"]}), "overall")
    (nan, nan, nan)
    """
    kept = (ratings["dimension"] == dimension).any()
    return noise_ceiling(krippendorff_alpha(ratings, dimension)) if kept else (np.nan,) * 3


def fleiss_kappa(ratings: pd.DataFrame, dimension: str) -> float:
    """Fleiss' kappa (nominal agreement beyond chance) by statsmodels; 1 is perfect, 0 chance.

    It needs the same number of ratings for every item: items with another number than the most
    common one are left out. NaN without two ratings per item or when all ratings are equal.
    Reference: Fleiss 1971.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1], "annotator": list("abab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2]})
    >>> fleiss_kappa(ratings, "overall")
    1.0
    """
    from statsmodels.stats import inter_rater  # slow to import, needed only here

    matrix = _rated_twice(rating_matrix(ratings, dimension))
    given = matrix.notna().sum(axis=1)
    chosen = matrix[given.isin(given.mode()[:1])].stack()
    table = pd.crosstab(chosen.index.get_level_values(0), chosen.to_numpy())
    return float(inter_rater.fleiss_kappa(table.to_numpy())) if table.shape[1] > 1 else np.nan


def mean_pairwise_correlation(ratings: pd.DataFrame, dimension: str, method="pearson") -> float:
    """Mean correlation over all pairs of rating slots (see `rating_matrix`).

    Pairs without a defined coefficient are left out; NaN when there is none. Range -1 to 1.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> mean_pairwise_correlation(ratings, "overall")
    1.0
    """
    pairs = rating_matrix(ratings, dimension).corr(method).to_numpy()
    return float(pd.Series(pairs[np.triu_indices(len(pairs), 1)]).mean())


def leave_one_rater_out(ratings: pd.DataFrame, dimension: str, method="pearson") -> float:
    """One annotator against the mean of the others: what one more person would reach.

    In each of 200 resamples one rating of every item is held out at random and correlated with the
    mean of that item's other ratings; the result is the mean over resamples. This is no ceiling: a
    metric has no whims of its own and is held against one voice more, so good ones pass
    (`metric_limit`).

    Range -1 to 1; NaN when no item has two ratings or a side never varies. (The row "Human" of
    Wakaki et al. 2024, Table 5, is something else: turn ratings against dialog ratings.)

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> leave_one_rater_out(ratings, "overall")
    1.0
    """
    values = _rated_twice(rating_matrix(ratings, dimension)).to_numpy()
    if not len(values):
        return float("nan")
    given, total = (~np.isnan(values)).sum(axis=1), np.nansum(values, axis=1)
    pick = np.random.default_rng(0).integers(0, given, (200, len(given)))
    one = values[np.arange(len(values)), pick]
    found = rowwise_correlations(one, (total - one) / (given - 1), method)
    return float(pd.Series(found).mean())


def agreement_summary(ratings: pd.DataFrame, clusters: pd.Series | None = None) -> pd.DataFrame:
    """One row per rated dimension: how far people agree, and what that allows a metric.

    Columns: dimension, annotators, alpha (`krippendorff_alpha`) with low, high, items, ratings,
    raters and reason, limit, limit_low, limit_high (`metric_limit`), kappa, pairwise_pearson,
    pairwise_spearman, one_more_pearson, one_more_spearman (`one_more_annotator`). Kappa is NaN on
    fine scales (more than 10 distinct ratings), where chance agreement on exact values means
    nothing.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> agreement_summary(ratings)[["dimension", "items", "alpha", "kappa"]].values.tolist()
    [['overall', 3, 1.0, 1.0]]
    """
    columns = ["dimension", "annotators", "alpha", *Agreement._fields[1:]]
    columns += ["limit", "limit_low", "limit_high", "kappa"]
    columns += [f"{of}_{how}" for of in ("pairwise", "one_more") for how in METHODS[:2]]
    rows = []
    for dimension, one in ratings.groupby("dimension"):
        alpha = krippendorff_alpha(one, dimension, clusters)
        kappa = fleiss_kappa(one, dimension) if one["rating"].nunique() <= 10 else np.nan
        row = [dimension, one["annotator"].nunique(), *alpha, *noise_ceiling(alpha), kappa]
        for of in (mean_pairwise_correlation, leave_one_rater_out):
            row += [of(one, dimension, how) for how in METHODS[:2]]
        rows.append(row)
    return pd.DataFrame(rows, columns=columns)
