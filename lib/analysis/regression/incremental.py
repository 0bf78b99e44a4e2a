"""The paper's regression tables in one call: A, P and P+A for every pair of metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib.analysis.regression.gain import (
    benjamini_hochberg,
    bootstrap_gain,
    cross_validated_gain,
    nested_f_test,
    residual_t_test,
    stars,
)
from lib.analysis.regression.models import adjusted_r2, complete_rows, fit_ols
from lib.data.dialogues import DataError

ALL = "all"
"""Label of the model with every psychological metric ("All Psych." in the paper)."""


def incremental_validity(
    table: pd.DataFrame,
    outcome: str,
    automatic: Sequence[str],
    psychological: Sequence[str],
    *,
    cluster: str | None = "dialog",
    draws: int = 1000,
    folds: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare the models A, P and P+A for every automatic and psychological metric.

    Tables 1-5 and 7-18: adjusted R2 of the automatic metric alone (A), of the psychological one
    alone (P) and of both (P+A), here with the paper's test and three that respect sampling. For
    one automatic metric all models are fitted on the same complete rows.

    Parameters
    ----------
    table : DataFrame
        Turn table with the outcome, the metrics and the cluster column.
    outcome : str
        Human rating.
    automatic, psychological : sequences of str
        Metric columns. With several psychological metrics a last model, "all", has all of them.
    cluster : str or None
        Column whose values are the independent units (dialog, or shared context). A row without
        one is dropped and counted.
    draws, folds, seed
        Of `bootstrap_gain` and `cross_validated_gain`; draws=0 leaves the interval out.

    Returns
    -------
    DataFrame, one row per pair
        outcome, automatic, psychological, n, dropped, A, P, P+A (adjusted R2, with sign), gain,
        gain_low, gain_high (95 % cluster bootstrap of P+A minus A), t, p (paper's test), F,
        p_nested (cluster-robust), cv_gain, p_cv, note. A pair that cannot be fitted is a row of
        NaN whose note says why. No q-values: choose the family with `adjust`.

    Examples
    --------
    >>> draw = np.random.default_rng(1)
    >>> turns = pd.DataFrame(draw.normal(size=(80, 2)), columns=["overlap", "style"])
    >>> turns["human"] = turns.sum(axis=1) + draw.normal(size=80)
    >>> turns["dialog"] = np.arange(80) // 4
    >>> result = incremental_validity(turns, "human", ["overlap"], ["style"], draws=0)
    >>> result[["n", "A", "P", "P+A"]].round(2).to_dict("records")
    [{'n': 80, 'A': 0.32, 'P': 0.18, 'P+A': 0.54}]
    """
    needed = [outcome, *automatic, *psychological, *([cluster] if cluster else [])]
    absent = [c for c in needed if c not in table]
    if absent:
        raise DataError(
            f"there is no column {absent}, only {list(table.columns)}",
            fix="add the metric as a column, or name another cluster column (None for none)",
        )
    models = [(name, [name]) for name in psychological]
    models += [(ALL, list(psychological))] if len(psychological) > 1 else []
    rows, always = [], [outcome, *psychological, *([cluster] if cluster else [])]
    for metric in tqdm(automatic, desc=f"regressions on {outcome}", disable=len(automatic) < 3):
        data, dropped = complete_rows(table, list(dict.fromkeys([*always, metric])))
        for name, added in models:
            row = {"outcome": outcome, "automatic": metric, "psychological": name}
            row |= {"n": len(data), "dropped": dropped}
            try:
                row |= _compare(data, outcome, metric, added, cluster, draws, folds, seed)
            except DataError as fault:
                row["note"] = fault.problem
            rows.append(row)
    return pd.DataFrame(rows).reindex(columns=_COLUMNS)


_COLUMNS = [
    *("outcome", "automatic", "psychological", "n", "dropped", "A", "P", "P+A"),
    *("gain", "gain_low", "gain_high", "t", "p", "F", "p_nested", "cv_gain", "p_cv", "note"),
]


def _compare(
    data: pd.DataFrame,
    outcome: str,
    metric: str,
    added: list[str],
    cluster: str | None,
    draws: int,
    folds: int,
    seed: int,
) -> dict[str, float | str]:
    small, large = fit_ols(data, outcome, [metric]), fit_ols(data, outcome, [metric, *added])
    clusters = data[cluster] if cluster else None
    paper = residual_t_test(small, large)
    nested = nested_f_test(data, outcome, [metric], added, clusters)
    unseen = cross_validated_gain(data, outcome, [metric], added, clusters, folds, seed)
    low, high = np.nan, np.nan
    if draws:
        low, high = bootstrap_gain(data, outcome, [metric], added, clusters, draws, seed)
    collinear = np.linalg.matrix_rank(large.model.exog) < large.model.exog.shape[1]
    return {
        "A": small.rsquared_adj,
        "P": adjusted_r2(data, outcome, added),
        "P+A": large.rsquared_adj,
        "gain": large.rsquared_adj - small.rsquared_adj,
        "gain_low": low,
        "gain_high": high,
        "t": paper.statistic,
        "p": paper.p,
        "F": nested.statistic,
        "p_nested": nested.p,
        "cv_gain": unseen.statistic,
        "p_cv": unseen.p,
        "note": "collinear predictors" if collinear else "",
    }


def adjust(comparisons: pd.DataFrame, family: str | Sequence[str] | None = None) -> pd.DataFrame:
    """Add q-values (Benjamini-Hochberg) for the three tests, and the paper's stars.

    Parameters
    ----------
    comparisons : DataFrame
        Rows of `incremental_validity`, of one or several data sets put together.
    family : column name(s), optional
        Tests that are corrected together: all rows (None), or the rows that share these columns,
        e.g. "dataset" for one family per table.

    Returns
    -------
    DataFrame with q, q_nested, q_cv and stars (of q) added.

    Examples
    --------
    >>> adjust(pd.DataFrame({"p": [0.0001, 0.2], "p_nested": [0.01, 0.2], "p_cv": [0.3, 0.3]}))
            p  p_nested  p_cv       q  q_nested  q_cv stars
    0  0.0001      0.01   0.3  0.0002      0.02   0.3   ***
    1  0.2000      0.20   0.3  0.2000      0.20   0.3
    """
    columns = [family] if isinstance(family, str) else list(family or [])
    labels = comparisons.groupby(columns).ngroup() if columns else None
    adjusted = comparisons.copy()
    for p, q in (("p", "q"), ("p_nested", "q_nested"), ("p_cv", "q_cv")):
        adjusted[q] = benjamini_hochberg(comparisons[p], labels)
    adjusted["stars"] = adjusted["q"].map(stars)
    return adjusted


def paper_layout(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Arrange adjusted comparisons as the paper's tables: A, then P and P+A per metric.

    Three decimals with sign; the stars stand at P+A. A star whose t is negative (P+A has the
    larger absolute residuals) is written "(-)".

    Examples
    --------
    >>> pair = {"automatic": "F1", "psychological": "entropy", "A": 0.2, "P": -0.003,
    ...         "P+A": 0.25, "t": 3.0, "stars": "**"}
    >>> paper_layout(pd.DataFrame([pair])).loc["F1"].tolist()
    ['.200', '-.003', '.250**']
    """
    order = list(dict.fromkeys(comparisons["psychological"]))
    wide = {}
    for metric, rows in comparisons.groupby("automatic", sort=False):
        cells = {("A", ""): _three(rows["A"].iloc[0])}
        for _, row in rows.set_index("psychological").loc[order].reset_index().iterrows():
            sign = "(-)" if row["stars"] and row["t"] < 0 else ""
            cells[(row["psychological"], "P")] = _three(row["P"])
            cells[(row["psychological"], "P+A")] = _three(row["P+A"]) + row["stars"] + sign
        wide[metric] = cells
    layout = pd.DataFrame(wide).T
    layout.index.name = "automatic"
    return layout


def _three(value: float) -> str:
    if np.isnan(value):
        return "n/a"
    text = f"{value:.3f}"
    return "0.000" if float(text) == 0 else text.replace("0.", ".", 1)
