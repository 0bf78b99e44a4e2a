"""Correlation coefficients between metric scores and human ratings, at a stated level.

A *level* is the unit that one point of the scatter plot stands for: a turn, a dialog, an agent or
a system. Coarser units are means over the items that have both a score and a rating, so a missing
score never moves the human mean it is compared with.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

METHODS: tuple[str, ...] = ("pearson", "spearman", "kendall")

#: Columns that identify one unit of each level; `turn` (every rated item) needs none.
LEVELS: dict[str, list[str]] = {
    "turn": [],
    "dialog": ["system", "agent", "dialog"],
    "agent": ["system", "agent"],
    "system": ["system"],
}

_SCIPY: dict[str, Callable] = {
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


def check_method(method: str) -> str:
    """Return `method` if it is one of `METHODS`.

    >>> check_method("kendall")
    'kendall'
    """
    if method not in METHODS:
        raise ValueError(f"unknown coefficient {method!r}: choose from {', '.join(METHODS)}")
    return method


def undefined(x: np.ndarray, y: np.ndarray, method: str = "pearson") -> str:
    """Why the coefficient of `x` and `y` has no value, or `""` when it has one.

    >>> undefined(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
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


def coefficient(
    scores: Sequence[float], human: Sequence[float], method: str = "pearson"
) -> Correlation:
    r"""Pearson's r, Spearman's rho or Kendall's tau-b of the complete pairs.

    .. math:: r = \frac{\sum (x_i-\bar x)(y_i-\bar y)}{\sqrt{\sum (x_i-\bar x)^2
              \sum (y_i-\bar y)^2}}, \qquad
              \tau_b = \frac{C-D}{\sqrt{(C+D+T_x)(C+D+T_y)}}

    rho is r of the average ranks; C and D count concordant and discordant pairs, `T_x` (`T_y`)
    the pairs tied in x (y) only.

    Parameters
    ----------
    scores, human : sequences of the same length; a pair with a NaN is left out (see `n`).
    method : "pearson", "spearman" or "kendall".

    Returns
    -------
    Correlation with the value in [-1, 1] (higher is better agreement), scipy's two-sided p, the
    number of pairs, and a reason. Fewer than two pairs or a constant side give NaN with its reason.
    Infinite values rank last (first) for Spearman and Kendall and leave Pearson NaN. Two pairs
    always give -1 or 1 with p = 1: no information. The p-value assumes independent items; for
    turns of shared dialogs use `bootstrap_interval` and `permutation_test` with clusters.

    >>> coefficient([1, 2, 3, 4], [1, 3, 2, 4], "spearman").value
    0.8
    >>> coefficient([1, 1, 1], [1, 2, 3])
    Correlation(value=nan, p=nan, n=3, reason='all scores equal')
    """
    x, y = np.asarray(scores, dtype=float), np.asarray(human, dtype=float)
    if x.shape != y.shape:
        raise ValueError(f"scores have {x.size} values but human ratings {y.size}: align them")
    kept = ~(np.isnan(x) | np.isnan(y))
    x, y = x[kept], y[kept]
    reason = undefined(x, y, check_method(method))
    if reason:
        return Correlation(np.nan, np.nan, len(x), reason)
    result = _SCIPY[method](x, y)
    return Correlation(float(result.statistic), float(result.pvalue), len(x), "")


def pool(
    values: pd.DataFrame, units: pd.DataFrame, level: str, averaging: str = "items"
) -> pd.DataFrame:
    """Mean of each column of `values` per unit of `level`.

    Parameters
    ----------
    values : one row per item.
    units : the turn or dialog table with the columns system, agent, dialog, on the same index.
    level : "turn" (returned unchanged), "dialog", "agent" or "system".
    averaging : "items" gives every item of the unit the same weight; "nested" averages items
        within a dialog first, then dialogs, so that a long dialog counts once.

    NaN values are skipped within a unit; a unit without any value is NaN.

    >>> units = pd.DataFrame(
    ...     {"system": list("AAAB"), "agent": list("aaab"), "dialog": list("1123")}
    ... )
    >>> values = pd.DataFrame({"human": [1.0, 1.0, 4.0, 2.0]})
    >>> pool(values, units, "system")["human"].tolist()
    [2.0, 2.0]
    >>> pool(values, units, "system", averaging="nested")["human"].tolist()
    [2.5, 2.0]
    """
    keys = _keys(units, level)
    if averaging not in ("items", "nested"):
        raise ValueError(f"averaging is 'items' or 'nested', not {averaging!r}")
    if not keys:
        return values
    if averaging == "nested" and level in ("agent", "system"):
        values = values.groupby([units[key] for key in LEVELS["dialog"]]).mean()
        return values.groupby(level=keys).mean()
    return values.groupby([units[key] for key in keys]).mean()


def _keys(units: pd.DataFrame | None, level: str) -> list[str]:
    if level not in LEVELS:
        raise ValueError(f"unknown level {level!r}: choose from {', '.join(LEVELS)}")
    missing = [key for key in LEVELS[level] if units is None or key not in units]
    if missing:
        raise ValueError(
            f"level {level!r} needs the column(s) {', '.join(missing)}: pass the turn or dialog "
            "table as `units`"
        )
    return LEVELS[level]


def correlate(
    scores: pd.Series | pd.DataFrame,
    human: pd.Series | pd.DataFrame,
    method: str | Sequence[str] = METHODS,
    level: str | Sequence[str] = "turn",
    units: pd.DataFrame | None = None,
    averaging: str = "items",
) -> pd.DataFrame:
    """Correlate every score column with every human column; one tidy row per combination.

    Parameters
    ----------
    scores, human : Series or frames on the same index (one row per item).
    method : one or several of "pearson", "spearman", "kendall".
    level : one or several of "turn", "dialog", "agent", "system". "turn" means the items as they
        are, so it also serves dialog-level tables.
    units : the turn or dialog table; needed for levels above "turn".
    averaging : how items become a unit, "items" or "nested" (see `pool`).

    Returns
    -------
    DataFrame with the columns metric, rating, level, method, value, p, n (units used),
    missing_score and missing_human (items without a score, without a rating), reason.
    Only items with both values enter a unit's means. Undefined values are NaN with a reason,
    see `coefficient`.

    >>> scores = pd.DataFrame({"bleu": [0.1, 0.4, np.nan, 0.9]})
    >>> human = pd.Series([1.0, 2.0, 3.0, 5.0], name="human_overall")
    >>> correlate(scores, human, "spearman")[["metric", "value", "n", "missing_score"]]
      metric  value  n  missing_score
    0   bleu    1.0  3              1
    """
    scores, human = _frame(scores, "score"), _frame(human, "human")
    if not scores.index.equals(human.index):
        raise ValueError("scores and human ratings have different indexes: align the rows first")
    methods = [method] if isinstance(method, str) else list(method)
    levels = [level] if isinstance(level, str) else list(level)
    rows = [
        row
        for metric in scores
        for rating in human
        for unit in levels
        for row in _rows(scores[metric], human[rating], methods, unit, units, averaging)
    ]
    return pd.DataFrame(rows)


def _frame(values: pd.Series | pd.DataFrame, name: str) -> pd.DataFrame:
    if isinstance(values, pd.Series):
        values = values.to_frame(values.name if values.name is not None else name)
    return values.astype(float)


def _rows(
    x: pd.Series,
    y: pd.Series,
    methods: list[str],
    level: str,
    units: pd.DataFrame | None,
    averaging: str,
) -> list[dict]:
    keys = _keys(units, level)
    pair = pd.DataFrame({"x": x, "y": y}).dropna()
    with np.errstate(invalid="ignore"):
        pooled = pool(pair, units.loc[pair.index], level, averaging) if keys else pair
    found = {method: coefficient(pooled["x"], pooled["y"], method) for method in methods}
    return [
        {
            "metric": x.name,
            "rating": y.name,
            "level": level,
            "method": method,
            "value": result.value,
            "p": result.p,
            "n": result.n,
            "missing_score": int(x.isna().sum()),
            "missing_human": int(y.isna().sum()),
            "reason": result.reason,
        }
        for method, result in found.items()
    ]
