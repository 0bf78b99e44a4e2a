"""Do the annotators agree with each other? The ceiling under every correlation with their mean.

All functions take the long ratings table of a corpus: one row per given rating, with the columns
item, annotator, dimension, rating. Items with a single rating say nothing about agreement; they are
left out and counted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import krippendorff
import numpy as np
import pandas as pd
from statsmodels.stats.inter_rater import fleiss_kappa as _fleiss_kappa

from lib.analysis.correlation.coefficients import coefficient
from lib.analysis.correlation.draws import chunks
from lib.analysis.correlation.intervals import draw_counts, rowwise_correlations, summarise


class Agreement(NamedTuple):
    """A coefficient with its interval, the items with two or more ratings, and those ratings."""

    value: float
    low: float
    high: float
    items: int
    ratings: int
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


def krippendorff_alpha(
    ratings: pd.DataFrame,
    dimension: str,
    measurement: str = "interval",
    clusters: pd.Series | None = None,
    draws: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Agreement:
    r"""Krippendorff's alpha with a bootstrap interval over items or dialogs.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}

    observed over expected disagreement; 1 is perfect, 0 is chance, below 0 is systematic
    disagreement. The point value is the `krippendorff` package's.

    Parameters
    ----------
    measurement : "interval" (squared distance), "ordinal" or "nominal".
    clusters : dialog of each item, indexed by item; whole dialogs are drawn. None draws items.

    Returns
    -------
    Agreement. NaN with a reason when no item has two ratings or all ratings are equal (expected
    disagreement 0). Reference: Krippendorff 2011; Hayes and Krippendorff 2007.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 3, 3, 5, 4]})
    >>> round(krippendorff_alpha(ratings, "overall", draws=50).value, 3)
    0.935
    """
    if measurement not in ("interval", "ordinal", "nominal"):
        raise ValueError(f"measurement is interval, ordinal or nominal, not {measurement!r}")
    matrix = _rated_twice(ratings, dimension)
    values, total = matrix.to_numpy(), int(matrix.notna().to_numpy().sum())
    if not len(matrix):
        return Agreement(np.nan, np.nan, np.nan, 0, 0, "no item with two ratings")
    if np.nanmin(values) == np.nanmax(values):
        return Agreement(np.nan, np.nan, np.nan, len(matrix), total, "all ratings equal")
    value = krippendorff.alpha(reliability_data=values.T, level_of_measurement=measurement)
    labels = matrix.index if clusters is None else clusters.loc[matrix.index]
    codes = pd.factorize(np.asarray(labels))[0]
    if codes.max() == 0:
        return Agreement(value, np.nan, np.nan, len(matrix), total, "fewer than 2 clusters")
    alphas = _interval_alphas if measurement == "interval" else _category_alphas
    rng, samples = np.random.default_rng(seed), []
    for size in chunks(draws, codes.max() + 1):
        counts = draw_counts(rng, size, codes.max() + 1)
        samples.append(alphas(values, codes, counts, measurement))
    found = summarise(value, np.concatenate(samples), len(matrix), codes.max() + 1, confidence)
    return Agreement(float(value), found.low, found.high, len(matrix), total, found.reason)


def _rated_twice(ratings: pd.DataFrame, dimension: str) -> pd.DataFrame:
    matrix = rating_matrix(ratings, dimension)
    return matrix[matrix.notna().sum(axis=1) >= 2]


def _cluster_sums(columns: Sequence[np.ndarray], codes: np.ndarray, width: int) -> np.ndarray:
    return np.stack([np.bincount(codes, column, width) for column in columns], axis=1)


def _interval_alphas(values, codes, counts, _measurement) -> np.ndarray:
    """(draws,) alphas for squared distance, from the sums of each cluster."""
    values = values - np.nanmean(values)
    m = (~np.isnan(values)).sum(axis=1)
    s, q = np.nansum(values, axis=1), np.nansum(values**2, axis=1)
    within = (m * q - s**2) / (m - 1)
    n, s, q, observed = (counts @ _cluster_sums((m, s, q, within), codes, counts.shape[1])).T
    expected = (n * q - s**2) / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 1e-12 * q, 1 - observed / expected, np.nan)


def _category_alphas(values, codes, counts, measurement) -> np.ndarray:
    """(draws,) alphas from the coincidence matrix of each cluster (few distinct values)."""
    levels = np.unique(values[~np.isnan(values)])
    if len(levels) > 40:
        raise ValueError(
            f"{len(levels)} distinct ratings: use measurement='interval' for fine scales"
        )
    per_item = (values[:, :, None] == levels).sum(axis=1)
    pairs = per_item[:, :, None] * per_item[:, None, :] - per_item[:, :, None] * np.eye(len(levels))
    pairs = pairs / (per_item.sum(axis=1) - 1)[:, None, None]
    summed = np.zeros((counts.shape[1], len(levels) ** 2))
    np.add.at(summed, codes, pairs.reshape(len(pairs), -1))
    coincidence = (counts @ summed).reshape(len(counts), len(levels), len(levels))
    n_c = coincidence.sum(axis=2)
    distance = _distances(n_c, measurement)
    n = n_c.sum(axis=1)
    observed = (coincidence * distance).sum(axis=(1, 2))
    expected = (n_c[:, :, None] * n_c[:, None, :] * distance).sum(axis=(1, 2)) / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


def _distances(n_c: np.ndarray, measurement: str) -> np.ndarray:
    if measurement == "nominal":
        return np.broadcast_to(1 - np.eye(n_c.shape[1]), (*n_c.shape, n_c.shape[1]))
    middle = np.cumsum(n_c, axis=1) - n_c / 2  # rank of the middle of each category
    return (middle[:, :, None] - middle[:, None, :]) ** 2


def fleiss_kappa(ratings: pd.DataFrame, dimension: str) -> Agreement:
    """Fleiss' kappa (nominal agreement beyond chance) by statsmodels, without an interval.

    It needs the same number of ratings for every item: items with another number than the most
    common one are left out, and `items` says how many remain. 1 is perfect, 0 chance. NaN with a
    reason without two ratings per item or when all ratings are equal. Reference: Fleiss 1971.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1], "annotator": list("abab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2]})
    >>> fleiss_kappa(ratings, "overall").value
    1.0
    """
    matrix = _rated_twice(ratings, dimension)
    if not len(matrix):
        return Agreement(np.nan, np.nan, np.nan, 0, 0, "no item with two ratings")
    given = matrix.notna().sum(axis=1)
    values = matrix[given == given.mode()[0]].to_numpy()
    levels = np.unique(values[~np.isnan(values)])
    total = int((~np.isnan(values)).sum())
    if len(levels) < 2:
        return Agreement(np.nan, np.nan, np.nan, len(values), total, "all ratings equal")
    table = (values[:, :, None] == levels).sum(axis=1)
    return Agreement(float(_fleiss_kappa(table)), np.nan, np.nan, len(values), total, "")


def mean_pairwise_correlation(
    ratings: pd.DataFrame, dimension: str, method: str = "pearson"
) -> float:
    """Mean correlation over all pairs of rating slots (see `rating_matrix`).

    Pairs without a defined coefficient are left out; NaN when there is none. Range -1 to 1.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> mean_pairwise_correlation(ratings, "overall")
    1.0
    """
    columns = rating_matrix(ratings, dimension).to_numpy().T
    values = [
        coefficient(first, second, method).value
        for i, first in enumerate(columns)
        for second in columns[i + 1 :]
    ]
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def human_ceiling(
    ratings: pd.DataFrame,
    dimension: str,
    method: str = "pearson",
    units: pd.Series | None = None,
    draws: int = 200,
    seed: int = 0,
) -> float:
    """One annotator against the mean of the others: what a metric as good as a person reaches.

    For each draw one rating of every item is set aside at random and correlated with the mean of
    that item's other ratings; the result is the mean over draws. A metric is compared with the mean
    of all annotators, one more voice, so it may pass this line without being better than a person.

    Parameters
    ----------
    units : dialog (or system) of each item, indexed by item: both sides are averaged within it
        first. None correlates items.

    Range -1 to 1; NaN when no item has two ratings or a side never varies. (The row "Human" of
    Wakaki et al. 2024, Table 5, is something else: turn ratings against dialog ratings.)

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> human_ceiling(ratings, "overall")
    1.0
    """
    matrix = _rated_twice(ratings, dimension)
    if not len(matrix):
        return float("nan")
    values = matrix.to_numpy()
    given, total = (~np.isnan(values)).sum(axis=1), np.nansum(values, axis=1)
    codes = np.arange(len(values))
    if units is not None:
        codes = pd.factorize(np.asarray(units.loc[matrix.index]))[0]
    pick = np.random.default_rng(seed).integers(0, given, (draws, len(given)))
    one = values[np.arange(len(values)), pick]
    rest = (total - one) / (given - 1)
    one, rest = (_unit_means(side, codes) for side in (one, rest))
    found = rowwise_correlations(one, rest, method)
    return float(np.nanmean(found)) if not np.isnan(found).all() else float("nan")


def _unit_means(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    if len(np.unique(codes)) == len(codes):
        return values
    order = np.argsort(codes, kind="stable")
    starts = np.unique(codes[order], return_index=True)[1]
    sizes = np.diff(np.r_[starts, len(codes)])
    return np.add.reduceat(values[:, order], starts, axis=1) / sizes


def summary(ratings: pd.DataFrame, clusters: pd.Series | None = None) -> pd.DataFrame:
    """One row per rated dimension: alpha with interval, kappa, pairwise correlation, ceiling.

    Columns: dimension, items, ratings, annotators, alpha, low, high, kappa, pairwise_pearson,
    pairwise_spearman, ceiling_pearson, ceiling_spearman, reason. Kappa is NaN on fine scales (more
    than 10 distinct ratings), where chance agreement on exact values means nothing.

    >>> ratings = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "annotator": list("ababab"),
    ...                         "dimension": "overall", "rating": [1.0, 1, 2, 2, 3, 3]})
    >>> summary(ratings)[["dimension", "items", "alpha", "kappa"]].values.tolist()
    [['overall', 3, 1.0, 1.0]]
    """
    rows = []
    for dimension in sorted(ratings["dimension"].unique()):
        one = ratings[ratings["dimension"] == dimension]
        alpha = krippendorff_alpha(one, dimension, clusters=clusters)
        coarse = one["rating"].nunique() <= 10
        rows.append(
            {
                "dimension": dimension,
                "items": alpha.items,
                "ratings": alpha.ratings,
                "annotators": one["annotator"].nunique(),
                "alpha": alpha.value,
                "low": alpha.low,
                "high": alpha.high,
                "kappa": fleiss_kappa(one, dimension).value if coarse else np.nan,
                "pairwise_pearson": mean_pairwise_correlation(one, dimension),
                "pairwise_spearman": mean_pairwise_correlation(one, dimension, "spearman"),
                "ceiling_pearson": human_ceiling(one, dimension),
                "ceiling_spearman": human_ceiling(one, dimension, "spearman"),
                "reason": alpha.reason,
            }
        )
    return pd.DataFrame(rows)
