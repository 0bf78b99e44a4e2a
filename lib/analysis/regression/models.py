"""Ordinary least squares on z-scored variables, with adjusted R2 as the paper reports it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import statsmodels.api as sm
from statsmodels.regression.linear_model import RegressionResultsWrapper

from lib.data.dialogues import DataError


def zscore(frame: pd.DataFrame) -> pd.DataFrame:
    """Center each column on 0 and scale it to standard deviation 1 (n in the denominator).

    Raises
    ------
    DataError
        For a constant column, which cannot be scaled, and for a missing value.

    Examples
    --------
    >>> zscore(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))["x"].round(3).tolist()
    [-1.225, 0.0, 1.225]
    """
    frame = frame.astype(float)
    missing = frame.columns[frame.isna().any()]
    if len(missing):
        raise DataError(
            f"{list(missing)} hold missing values", fix="drop or fill those rows and count them"
        )
    constant = frame.columns[frame.max() == frame.min()]
    if len(constant):
        raise DataError(
            f"{list(constant)} are the same in every row and can predict nothing",
            fix="leave the column out, or look at why the metric does not vary here",
        )
    return (frame - frame.mean()) / frame.std(ddof=0)


def fit_ols(
    data: pd.DataFrame, outcome: str, predictors: Sequence[str]
) -> RegressionResultsWrapper:
    """Fit z(outcome) = b0 + sum_j b_j z(predictor_j) + e by ordinary least squares.

    Section 7, "Evaluation". Adjusted R2, t and p do not depend on the z-scoring; the coefficients
    become comparable. `.rsquared_adj` is 1 - (1 - R2)(n - 1)/(n - p - 1) with p the rank of the
    predictors (a copy of a predictor adds nothing); it is negative when they explain less than
    chance would.

    Parameters
    ----------
    data : DataFrame
        Complete rows.
    outcome : str
        Column of human ratings.
    predictors : sequence of str

    Returns
    -------
    statsmodels RegressionResults

    Raises
    ------
    DataError
        For missing values, a constant column, or fewer rows than predictors + 2.

    Examples
    --------
    >>> data = pd.DataFrame({"y": [1, 2, 3, 4.5], "x": [1, 2, 3, 4]})
    >>> round(float(fit_ols(data, "y", ["x"]).rsquared_adj), 3)
    0.983
    """
    predictors = list(predictors)
    absent = [c for c in [outcome, *predictors] if c not in data]
    if absent:
        raise DataError(f"there is no column {absent}, only {list(data.columns)}")
    if len(data) < len(predictors) + 2:
        raise DataError(
            f"{len(data)} complete rows are too few for {len(predictors)} predictors",
            fix=f"use at least {len(predictors) + 2} rows, or fewer predictors",
        )
    scaled = zscore(data[[outcome, *predictors]])
    return sm.OLS(scaled[outcome], sm.add_constant(scaled[predictors])).fit()


def adjusted_r2(data: pd.DataFrame, outcome: str, predictors: Sequence[str]) -> float:
    """Return the adjusted R2 of one model, with its sign.

    >>> data = pd.DataFrame({"y": [1.0, 2, 1, 2], "x": [1.0, 1, 2, 2]})
    >>> adjusted_r2(data, "y", ["x"])
    -0.5
    """
    return float(fit_ols(data, outcome, predictors).rsquared_adj)


def complete_rows(data: pd.DataFrame, columns: Sequence[str]) -> tuple[pd.DataFrame, int]:
    """Keep the rows that are complete in every column, and count the others.

    Rows are dropped once for all models of a comparison: models fitted on different rows cannot
    be compared.

    >>> complete_rows(pd.DataFrame({"a": [1, None], "b": [1, 2]}), ["a", "b"])[1]
    1
    """
    kept = data.dropna(subset=list(columns))
    return kept, len(data) - len(kept)
