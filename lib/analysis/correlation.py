"""Correlation coefficients between metric scores and human ratings, at a stated level.

A *level* is the unit that one point of the scatter plot stands for: a turn, a dialog, an agent or
a system. Coarser units are means over the items that have both a score and a rating, so a missing
score never moves the human mean it is compared with.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lib.data import DataError
from lib.data.turn_table import LEVELS

METHODS = ("pearson", "spearman", "kendall")
_SCIPY = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}


class Correlation(NamedTuple):
    """One coefficient: `value` in [-1, 1], two-sided `p`, `n` pairs used, `reason` when NaN."""

    value: float
    p: float
    n: int
    reason: str


def undefined_reason(x: np.ndarray, y: np.ndarray, method: str = "pearson") -> str:
    """Why the coefficient of `x` and `y` has no value, or `""` when it has one.

    >>> undefined_reason(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
    'all scores equal'
    """
    if len(x) < 2:
        return "fewer than 2 pairs"
    if method == "pearson" and not (np.isfinite(x).all() and np.isfinite(y).all()):
        return "infinite value"
    if np.all(x == x[0]):
        return "all scores equal"
    if np.all(y == y[0]):
        return "all ratings equal"
    return ""


def complete_rows(*columns, clusters=None) -> tuple[np.ndarray, ...]:
    """The rows where no column is NaN, and their cluster ids 0 ... c-1 (one each by default).

    Raises:
        ValueError: for columns or clusters of different lengths, or a row without a cluster.

    >>> complete_rows([1, np.nan, 3], [1, 2, 3], clusters=["a", "a", "b"])
    (array([1., 3.]), array([1., 3.]), array([0, 1]))
    """
    values = [np.asarray(column, dtype=float) for column in columns]
    if clusters is None:
        clusters = np.arange(len(values[0]))
    clusters = np.asarray(clusters)
    lengths = {len(column) for column in (*values, clusters)}
    if len(lengths) > 1:
        raise ValueError(
            "scores, ratings and clusters have different lengths: align them first"
        )
    complete = ~np.isnan(values).any(axis=0)
    cluster_ids = number_clusters(clusters[complete], complete.sum())
    return *(column[complete] for column in values), cluster_ids


def number_clusters(clusters, n_rows: int) -> np.ndarray:
    """Number the clusters from 0; without clusters (None) each row is a cluster of its own.

    Raises:
        DataError: for a row without a cluster.

    >>> number_clusters(["b", "a", "b"], 3)
    array([0, 1, 0])
    """
    if clusters is None:
        return np.arange(n_rows)
    cluster_ids, _ = pd.factorize(np.asarray(clusters))
    missing = np.flatnonzero(cluster_ids < 0)
    if missing.size:
        problem = f"{len(missing)} of {n_rows} rows have no cluster, the first is row {missing[0]}"
        raise DataError(
            problem, fix="name a dialog for each, or drop those rows and count them"
        )
    return cluster_ids


def coefficient(scores, human, method: str = "pearson") -> Correlation:
    r"""Pearson's r, Spearman's rho or Kendall's tau-b of the complete pairs.

    .. math:: r = \frac{\sum (x_i-\bar x)(y_i-\bar y)}{\sqrt{\sum (x_i-\bar x)^2
              \sum (y_i-\bar y)^2}}, \qquad
              \tau_b = \frac{C-D}{\sqrt{(C+D+T_x)(C+D+T_y)}}

    rho is r of the average ranks; C and D count concordant and discordant pairs, `T_x` (`T_y`)
    the pairs tied in x (y) only.

    Args:
        scores, human: sequences of the same length; a pair with a NaN is left out (see `n`).
        method: "pearson", "spearman" or "kendall".

    Returns:
        The value in [-1, 1] (higher is better agreement), scipy's two-sided p, the number of pairs
        and a reason. Fewer than two pairs or a constant side give NaN with its reason. Infinite
        values rank last (first) for Spearman and Kendall and leave Pearson NaN. Two pairs always
        give -1 or 1 with p = 1: no information. p assumes independent items; for turns of shared
        dialogs use `bootstrap_interval` and `permutation_test` with clusters.

    >>> coefficient([1, 2, 3, 4], [1, 3, 2, 4], "spearman").value
    0.8
    >>> coefficient([1, 1, 1], [1, 2, 3])
    Correlation(value=nan, p=nan, n=3, reason='all scores equal')
    """
    x, y, _ = complete_rows(scores, human)
    if method not in METHODS:
        raise ValueError(
            f"unknown coefficient {method!r}: choose from {', '.join(METHODS)}"
        )
    reason = undefined_reason(x, y, method)
    if reason:
        return Correlation(np.nan, np.nan, n=len(x), reason=reason)
    result = _SCIPY[method](x, y)
    return Correlation(
        value=float(result.statistic),
        p=float(result.pvalue),
        n=len(x),
        reason="",
    )


def rowwise_correlations(x: np.ndarray, y: np.ndarray, method="pearson") -> np.ndarray:
    """The coefficient of each row of x with the same row of y, all (resamples, n).

    Rows with a NaN or a constant side are NaN.

    >>> rowwise_correlations(np.array([[1.0, 2, 3]]), np.array([[1.0, 3, 2]]), "kendall").round(4)
    array([0.3333])
    """
    if method == "kendall":
        x = _pair_signs(x)
        y = _pair_signs(y)
    elif method == "spearman":
        x = stats.rankdata(x, axis=1)
        y = stats.rankdata(y, axis=1)
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    x_square = (x**2).sum(axis=1)
    y_square = (y**2).sum(axis=1)
    defined = (x_square > 1e-20) & (y_square > 1e-20)
    scale = np.sqrt(np.where(defined, x_square * y_square, 1))
    return np.where(defined, (x * y).sum(axis=1) / scale, np.nan)


def _pair_signs(values: np.ndarray) -> np.ndarray:
    """The sign of the difference of each pair of values in a row, (resamples, n * n)."""
    return np.sign(values[:, :, None] - values[:, None, :]).reshape(len(values), -1)


def partial_correlation(x, y, controls, method: str = "spearman") -> float:
    """Correlation of x and y, controlling for a third variable.

    (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2)), of values ("pearson") or of ranks
    ("spearman"). Range -1 to 1; NaN where fewer than 3 rows are complete, a variable is constant,
    or `controls` determines x or y.

    >>> round(partial_correlation([1, 2, 3, 4], [1, 3, 2, 4], [2, 1, 4, 3], "pearson"), 3)
    1.0
    """
    frame = pd.DataFrame({"x": x, "y": y, "z": controls}).astype(float).dropna()
    r = frame.corr(method)
    xy = r.loc["x", "y"]
    xz = r.loc["x", "z"]
    yz = r.loc["y", "z"]
    unexplained = (1 - xz**2) * (1 - yz**2)
    if unexplained > 1e-12:
        return float((xy - xz * yz) / np.sqrt(unexplained))
    return float("nan")


class PairwiseAccuracy(NamedTuple):
    """Share of pairs ordered (or tied) as humans do, the tie threshold, `reason` when NaN."""

    value: float
    threshold: float
    reason: str


def pairwise_accuracy(scores, human, groups) -> PairwiseAccuracy:
    r"""acc23: share of pairs on which metric and humans agree, ties included.

    .. math:: acc_{23} = \frac{C + T_{both}}{\text{all pairs}}, \qquad
              \text{metric tie: } |s_i - s_j| \le \epsilon

    averaged over groups. Kendall's tau-b rewards a metric for having few distinct values; acc23
    does not, and by calibrating :math:`\epsilon` a continuous metric may predict ties as well.
    The threshold is the one with the highest accuracy on these data, the convention of
    mt-metrics-eval: the value is a best case.

    Args:
        scores, human: (n,) values; items with a NaN are left out.
        groups: (n,) only pairs within a group count (responses to one context).

    Returns:
        PairwiseAccuracy with the value in [0, 1]; higher is better. No pair at all gives NaN with a
        reason; infinite scores tie with infinities of the same sign only. All-equal scores agree
        with the human ties only.

    Reference: Deutsch, Foster and Freitag 2023, "Ties Matter".

    >>> pairwise_accuracy([0.1, 0.2, 0.9], [1, 1, 3], ["a", "a", "a"])  # .1 apart is a tie
    PairwiseAccuracy(value=1.0, threshold=0.1, reason='')
    """
    x, y, group_ids = complete_rows(scores, human, clusters=groups)
    pairs = []
    weights = []  # each group counts the same
    for rows in pd.Series(group_ids).groupby(group_ids).indices.values():
        first, second = np.triu_indices(len(rows), 1)
        if first.size:
            pairs.append([rows[first], rows[second]])
            weights.append(np.full(first.size, 1 / first.size))
    if not pairs:
        return PairwiseAccuracy(
            np.nan, np.nan, "no group with two scored and rated items"
        )
    first, second = np.concatenate(pairs, axis=1)
    distance = np.where(x[first] == x[second], 0.0, np.abs(x[first] - x[second]))
    order = np.argsort(distance, kind="stable")
    first = first[order]
    second = second[order]
    distance = distance[order]
    weight = np.concatenate(weights)[order]

    # At a threshold, the pairs up to it are metric ties: right where humans tie as well. The
    # pairs beyond it are right where both order them alike.
    human_order = np.sign(y[first] - y[second])
    metric_order = (x[first] > x[second]).astype(int) - (x[first] < x[second])
    tied = np.r_[0.0, np.cumsum(weight * (human_order == 0))]
    ordered = np.r_[0.0, np.cumsum(weight * (human_order == metric_order))]
    accuracy = (tied + ordered[-1] - ordered) / len(pairs)

    thresholds = np.unique(np.r_[0.0, distance])
    n_tied = np.searchsorted(distance, thresholds, side="right")
    best = np.argmax(accuracy[n_tied].round(12))
    value = float(accuracy[n_tied[best]])
    return PairwiseAccuracy(value, float(thresholds[best]), "")


def pool_scores(
    values: pd.DataFrame, units: pd.DataFrame | None, level: str
) -> pd.DataFrame:
    """Mean of each column of `values` over the items of each unit of `level`.

    Args:
        values: one row per item.
        units: the turn or dialog table with the columns system, agent, dialog, on the same index.
        level: "turn" (no pooling), "dialog", "agent" or "system".

    NaN values are skipped within a unit; a unit without any value is NaN. Every item counts the
    same, so a long dialog weighs more; pool twice to weigh dialogs alike.

    >>> units = pd.DataFrame({"system": list("AAB"), "agent": list("aab"), "dialog": list("112")})
    >>> pool_scores(pd.DataFrame({"human": [1.0, 2.0, 5.0]}), units, "system")["human"].tolist()
    [1.5, 5.0]
    """
    if level not in ("turn", *LEVELS):
        raise ValueError(
            f"unknown level {level!r}: choose from turn, dialog, agent, system"
        )
    if level == "turn":
        return values
    keys = LEVELS[: LEVELS.index(level) + 1]
    missing = [key for key in keys if units is None or key not in units]
    if missing:
        raise ValueError(
            f"level {level!r} needs {missing}: pass the turn or dialog table"
        )
    return values.groupby([units[key] for key in keys]).mean()


def correlate(scores, human, method=METHODS, level="turn", units=None) -> pd.DataFrame:
    """Correlate every score column with every human column; one tidy row per combination.

    Args:
        scores, human: Series or frames on the same index (one row per item).
        method: one or several of "pearson", "spearman", "kendall".
        level: one or several of "turn", "dialog", "agent", "system" (see `pool_scores`).
            "turn" means the items without pooling, so it also serves dialog-level tables.
        units: the turn or dialog table; needed for levels above "turn".

    Returns:
        DataFrame with the columns metric, rating, level, method, value, p, n (units used),
        missing_score and missing_human (items without a score, without a rating), reason.
        Only items with both values enter a unit's means. Undefined values are NaN with a reason.

    >>> scores = pd.DataFrame({"bleu": [0.1, 0.4, np.nan, 0.9]})
    >>> human = pd.Series([1.0, 2.0, 3.0, 5.0], name="human_overall")
    >>> correlate(scores, human, "spearman")[["metric", "value", "n", "missing_score"]]
      metric  value  n  missing_score
    0   bleu    1.0  3              1
    """
    scores = pd.DataFrame(scores).astype(float)
    human = pd.DataFrame(human).astype(float)
    if not scores.index.equals(human.index):
        raise ValueError(
            "scores and human ratings have different indexes: align the rows first"
        )
    rows = []
    for metric, rating, unit in itertools.product(scores, human, np.atleast_1d(level)):
        pair = pd.DataFrame({"score": scores[metric], "human": human[rating]})
        pooled = pool_scores(pair.dropna(), units, unit)
        for name in np.atleast_1d(method):
            result = coefficient(pooled["score"], pooled["human"], name)
            row = {
                "metric": metric,
                "rating": rating,
                "level": str(unit),
                "method": str(name),
            }
            row |= result._asdict()
            row["missing_score"] = pair["score"].isna().sum()
            row["missing_human"] = pair["human"].isna().sum()
            rows.append(row)
    columns = ["metric", "rating", "level", "method", "value", "p", "n"]
    return pd.DataFrame(
        rows, columns=[*columns, "missing_score", "missing_human", "reason"]
    )
