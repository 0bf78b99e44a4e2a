"""Do the annotators agree, and how far can a metric then agree with their mean?

All functions take the long ratings table of a corpus: one row per rating, with the columns
item, annotator, dimension, rating. Items with a single rating say nothing about agreement; they are
left out and counted.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.correlation import number_clusters, rowwise_correlations
from lib.analysis.resampling import cluster_sums, statistic_interval


class Agreement(NamedTuple):
    """A coefficient with its 95 % interval, and the ratings behind it.

    `items` counts those with two or more ratings, `ratings` their ratings; `raters` is the
    (harmonic) mean number of ratings behind the human mean of an item, single ratings included.
    """

    value: float
    low: float
    high: float
    items: int
    ratings: int
    raters: float
    reason: str = ""


def rating_matrix(ratings: pd.DataFrame, dimension: str) -> pd.DataFrame:
    """Ratings of one dimension as items x slots: the first, second, ... rating each item got.

    A slot is a person only where everyone rated everything; with crowd workers it mixes people.
    Missing ratings are NaN. Raises ValueError for an unknown dimension.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1], "annotator": list("abb"),
    ...                         "dimension": "overall", "rating": [1.0, 2.0, 5.0]})
    >>> rating_matrix(ratings, "overall").values.tolist()
    [[1.0, 2.0], [5.0, nan]]
    """
    rated = ratings[ratings["dimension"] == dimension].dropna(subset="rating")
    if rated.empty:
        dimensions = ", ".join(sorted(ratings["dimension"].unique()))
        raise ValueError(
            f"no rating of dimension {dimension!r}; the table has: {dimensions}"
        )
    rated = rated.assign(slot=rated.groupby("item").cumcount())
    return rated.pivot(index="item", columns="slot", values="rating")


def _rated_twice(matrix: pd.DataFrame) -> pd.DataFrame:
    return matrix[matrix.notna().sum(axis=1) >= 2]


def krippendorff_alpha(
    ratings, dimension, clusters=None, resamples=2000, seed=0
) -> Agreement:
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
    matrix = rating_matrix(ratings, dimension)
    ratings_per_item = matrix.notna().sum(axis=1)
    matrix = _rated_twice(matrix)
    values = matrix.to_numpy()
    alpha = Agreement(
        value=np.nan,
        low=np.nan,
        high=np.nan,
        items=len(matrix),
        ratings=int(matrix.count().sum()),
        raters=float(stats.hmean(ratings_per_item)),
    )
    if not len(values):
        return alpha._replace(reason="no item with two ratings")
    if np.nanmin(values) == np.nanmax(values):
        return alpha._replace(reason="all ratings equal")
    labels = None if clusters is None else clusters.loc[matrix.index]
    cluster_ids = number_clusters(labels, len(matrix))

    def alphas(counts: np.ndarray) -> np.ndarray:
        return resampled_alphas(values, cluster_ids, counts)

    interval = statistic_interval(alphas, cluster_ids, resamples, seed=seed)
    return alpha._replace(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        reason=interval.reason,
    )


def resampled_alphas(
    values: np.ndarray, cluster_ids: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Alpha under each row of `counts`, from sums per cluster; NaN where all ratings are equal.

    Args:
        values: (items, slots) ratings, two or more per item, NaN where there is none.
        cluster_ids: (items,) the column of `counts` each item belongs to.
        counts: (resamples, clusters) how often each cluster is in the resample.

    >>> counts = np.array([[1, 1], [2, 0]])
    >>> resampled_alphas(np.array([[1.0, 1], [2, 2]]), np.array([0, 1]), counts)
    array([ 1., nan])
    """
    values = values - np.nanmean(values)
    n = (~np.isnan(values)).sum(axis=1)
    total = np.nansum(values, axis=1)
    squares = np.nansum(values**2, axis=1)
    within = (n * squares - total**2) / (n - 1)
    of_clusters = cluster_sums(
        [n, total, squares, within], cluster_ids, counts.shape[1]
    )
    n, total, squares, observed = (counts @ of_clusters).T
    expected = (n * squares - total**2) / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 1e-12 * squares, 1 - observed / expected, np.nan)


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
    would correlate with it at the square root of its reliability. The formula is that of Pearson's
    r (about the same for ranks) between single items. Alpha below 0 gives 0, an undefined alpha
    NaN.
    Reference: Lord and Novick 1968, chapter 3.

    >>> noise_ceiling(Agreement(0.5, 0.0, 1.0, 9, 27, 3.0, ""))[1:]
    (0.0, 1.0)
    """
    reliability = spearman_brown(np.maximum(alpha[:3], 0.0), alpha.raters)
    return tuple(np.sqrt(reliability).tolist())


def rating_noise_ceiling(
    ratings: pd.DataFrame, dimension: str
) -> tuple[float, float, float]:
    """`noise_ceiling` for the mean of one rated dimension; NaN without single ratings of it.

    >>> rating_noise_ceiling(pd.DataFrame({"dimension": ["fun"]}), "overall")
    (nan, nan, nan)
    """
    if dimension not in set(ratings["dimension"]):
        return np.nan, np.nan, np.nan
    return noise_ceiling(krippendorff_alpha(ratings, dimension))


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
    ratings_per_item = matrix.notna().sum(axis=1)
    complete = matrix[ratings_per_item.isin(ratings_per_item.mode()[:1])].stack()
    table = pd.crosstab(complete.index.get_level_values(0), complete.to_numpy())
    if table.shape[1] < 2:
        return np.nan
    return float(inter_rater.fleiss_kappa(table.to_numpy()))


def mean_pairwise_correlation(
    ratings: pd.DataFrame, dimension: str, method="pearson"
) -> float:
    """Mean correlation over all pairs of rating slots (see `rating_matrix`).

    Pairs without a defined coefficient are left out; NaN when there is none. Range -1 to 1.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> mean_pairwise_correlation(ratings, "overall")
    1.0
    """
    pairs = rating_matrix(ratings, dimension).corr(method).to_numpy()
    return float(pd.Series(pairs[np.triu_indices(len(pairs), 1)]).mean())


def leave_one_rater_out(
    ratings: pd.DataFrame, dimension: str, method="pearson"
) -> float:
    """Correlation of one annotator with the mean of the others: what one more person would reach.

    In each of 200 resamples one rating of every item is left out at random and correlated with the
    mean of that item's other ratings; the result is the mean over resamples. This is no ceiling: a
    metric has no individual noise and is compared with a mean over one rating more, so good ones
    exceed it (`noise_ceiling`).

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
    n = (~np.isnan(values)).sum(axis=1)
    slots = np.random.default_rng(0).integers(0, n, (200, len(n)))
    left_out = values[np.arange(len(values)), slots]
    mean_of_others = (np.nansum(values, axis=1) - left_out) / (n - 1)
    correlations = rowwise_correlations(left_out, mean_of_others, method)
    return float(pd.Series(correlations).mean())


def agreement_summary(
    ratings: pd.DataFrame, clusters: pd.Series | None = None
) -> pd.DataFrame:
    """One row per rated dimension: how far people agree, and the noise ceiling that follows.

    Columns: dimension, annotators, alpha (`krippendorff_alpha`) with low, high, items, ratings,
    raters and reason, noise_ceiling with ceiling_low and ceiling_high (the function of that name),
    kappa, pairwise_pearson, pairwise_spearman, one_more_pearson, one_more_spearman
    (`leave_one_rater_out`). Kappa is NaN on fine scales (more than 10 distinct ratings), where
    chance agreement on exact values means nothing.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> agreement_summary(ratings)[["dimension", "items", "alpha", "kappa"]].values.tolist()
    [['overall', 3, 1.0, 1.0]]
    """
    columns = ["dimension", "annotators", "alpha", *Agreement._fields[1:]]
    columns += ["noise_ceiling", "ceiling_low", "ceiling_high", "kappa"]
    columns += ["pairwise_pearson", "pairwise_spearman"]
    columns += ["one_more_pearson", "one_more_spearman"]
    rows = []
    for dimension, group in ratings.groupby("dimension"):
        alpha = krippendorff_alpha(group, dimension, clusters)
        row = {"dimension": dimension, "alpha": alpha.value} | alpha._asdict()
        row["annotators"] = group["annotator"].nunique()
        ceiling, low, high = noise_ceiling(alpha)
        row |= {"noise_ceiling": ceiling, "ceiling_low": low, "ceiling_high": high}
        if group["rating"].nunique() <= 10:
            row["kappa"] = fleiss_kappa(group, dimension)
        for method in ("pearson", "spearman"):
            row[f"pairwise_{method}"] = mean_pairwise_correlation(
                group, dimension, method
            )
            row[f"one_more_{method}"] = leave_one_rater_out(group, dimension, method)
        rows.append(row)
    return pd.DataFrame(rows, columns=columns)
