"""Does a psychological metric add to an automatic one? The paper's test, and better sized ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.model_selection import GroupKFold

from lib.analysis.regression.models import fit_ols, zscore
from lib.data.dialogues import DataError


class GainTest(NamedTuple):
    """A statistic and its two-sided p-value; a positive statistic favours P+A."""

    statistic: float
    p: float


def residual_t_test(smaller, larger) -> GainTest:
    """Test two fitted models by a paired t-test on absolute residuals, the test of the paper.

    Section 7: "a paired t-test between the mean absolute residuals of the A and P+A models",
    two-sided. Residuals are in sample, so the larger model has the smaller squared errors by
    construction, but its absolute errors may grow: then t is negative, and a star would reward
    the worse model. Under a true null this test rejects far too rarely with one added predictor
    and about twice as often as it should with five (notebook 09).

    Parameters
    ----------
    smaller, larger : statsmodels results
        A and P+A on the same rows.

    Returns
    -------
    GainTest
        t > 0 means that the absolute residuals are smaller under P+A. NaN where both models fit
        the same (a collinear predictor).

    Examples
    --------
    >>> data = pd.DataFrame({"y": [1.0, 2, 2, 4], "a": [1.0, 1, 2, 2], "p": [0.0, 1, 0, 1]})
    >>> result = residual_t_test(fit_ols(data, "y", ["a"]), fit_ols(data, "y", ["a", "p"]))
    >>> round(result.statistic, 2)
    3.46
    """
    gained = np.abs(np.asarray(smaller.resid)) - np.abs(np.asarray(larger.resid))
    if np.allclose(gained, 0, atol=1e-12):
        return GainTest(np.nan, np.nan)
    t, p = stats.ttest_1samp(gained, 0.0)
    return GainTest(float(t), float(p))


def nested_f_test(
    data: pd.DataFrame,
    outcome: str,
    smaller: Sequence[str],
    added: Sequence[str],
    clusters: Sequence[Hashable] | None = None,
) -> GainTest:
    """Test by F whether all added coefficients are 0, with errors correlated within clusters.

    Responses to one context (or turns of one dialog) share their raters' view of it. The
    cluster-robust covariance allows for that; without `clusters` this is the classical F.

    Returns
    -------
    GainTest
        F and p with (rank of the added predictors, clusters - 1) degrees of freedom. NaN where
        the added predictors are copies of the others.

    References
    ----------
    Cameron and Miller (2015), A practitioner's guide to cluster-robust inference, JHR 50(2).

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> data = pd.DataFrame(draw.normal(size=(60, 2)), columns=["a", "p"])
    >>> data["y"] = data["p"] + draw.normal(size=60)
    >>> nested_f_test(data, "y", ["a"], ["p"], clusters=np.arange(60) // 3).p < 0.001
    True
    """
    predictors = [*smaller, *added]
    full = fit_ols(data, outcome, predictors)
    if np.linalg.matrix_rank(full.model.exog) < full.model.exog.shape[1]:
        return GainTest(np.nan, np.nan)
    if clusters is not None:
        codes = _codes(clusters, len(data))
        full = full.model.fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    restriction = np.eye(len(predictors) + 1)[1 + len(list(smaller)) :]
    tested = full.f_test(restriction)
    return GainTest(float(tested.fvalue), float(tested.pvalue))


def cross_validated_gain(
    data: pd.DataFrame,
    outcome: str,
    smaller: Sequence[str],
    added: Sequence[str],
    clusters: Sequence[Hashable] | None = None,
    folds: int = 10,
    seed: int = 0,
) -> GainTest:
    """Compare A and P+A on rows they were not fitted to: mean drop of the absolute error.

    Folds never split a cluster. The errors of the two models are averaged per cluster before the
    paired t-test, so that clusters and not rows are the units of evidence.

    Returns
    -------
    GainTest
        Mean over clusters of |error| of A minus that of P+A, in standard deviations of the
        outcome (positive: P+A predicts new items better), and the two-sided p.
        NaN with fewer clusters than folds.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> data = pd.DataFrame(draw.normal(size=(90, 2)), columns=["a", "p"])
    >>> data["y"] = 2 * data["p"] + draw.normal(size=90)
    >>> cross_validated_gain(data, "y", ["a"], ["p"], np.arange(90) // 3).statistic > 0.2
    True
    """
    scaled = zscore(data[[outcome, *smaller, *added]])
    groups = _codes(clusters, len(data))
    if groups.max() + 1 < folds:
        return GainTest(np.nan, np.nan)
    gained = np.zeros(len(scaled))
    target = scaled[outcome].to_numpy()
    for train, test in GroupKFold(folds, shuffle=True, random_state=seed).split(
        scaled, groups=groups
    ):
        for sign, columns in ((1, list(smaller)), (-1, [*smaller, *added])):
            design = np.column_stack([np.ones(len(scaled)), scaled[columns]])
            weights = np.linalg.lstsq(design[train], target[train], rcond=None)[0]
            gained[test] += sign * np.abs(target[test] - design[test] @ weights)
    per_cluster = pd.Series(gained).groupby(groups).mean()
    if np.allclose(per_cluster, 0, atol=1e-12):
        return GainTest(np.nan, np.nan)
    return GainTest(float(per_cluster.mean()), float(stats.ttest_1samp(per_cluster, 0.0).pvalue))


def bootstrap_gain(
    data: pd.DataFrame,
    outcome: str,
    smaller: Sequence[str],
    added: Sequence[str],
    clusters: Sequence[Hashable] | None = None,
    draws: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Estimate the interval of the gain in adjusted R2 by resampling whole clusters.

    Percentile interval of adjusted R2(P+A) - adjusted R2(A). Each draw needs only sums of cross
    products per cluster, so a thousand draws cost one matrix product and a batch of solves.
    Refitting inside each draw lifts R2 a little, so an interval just above 0 is no proof: read it
    with `nested_f_test`.

    Returns
    -------
    (low, high)
        NaN for fewer than 3 clusters.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> data = pd.DataFrame(draw.normal(size=(90, 2)), columns=["a", "p"])
    >>> data["y"] = data["p"] + draw.normal(size=90)
    >>> low, high = bootstrap_gain(data, "y", ["a"], ["p"], np.arange(90) // 3, draws=200)
    >>> 0.2 < low < high < 0.8
    True
    """
    scaled = zscore(data[[outcome, *smaller, *added]])
    groups = _codes(clusters, len(data))
    count = groups.max() + 1
    if count < 3:
        return np.nan, np.nan
    rows = np.column_stack([np.ones(len(scaled)), scaled[[*smaller, *added]], scaled[outcome]])
    moments = np.zeros((count, rows.shape[1], rows.shape[1]))
    np.add.at(moments, groups, rows[:, :, None] * rows[:, None, :])
    times = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=draws)
    summed = np.tensordot(times.astype(float), moments, axes=1)
    few = 1 + len(list(smaller))
    gains = _adjusted(summed, rows.shape[1] - 1) - _adjusted(summed, few)
    tail = (1 - confidence) / 2
    low, high = np.quantile(gains, [tail, 1 - tail])
    return float(low), float(high)


def _codes(clusters: Sequence[Hashable] | None, rows: int) -> np.ndarray:
    """Number the clusters from 0; without clusters each row is its own."""
    if clusters is None:
        return np.arange(rows)
    codes = pd.factorize(pd.Index(clusters))[0]
    if (codes < 0).any():
        raise DataError(
            f"{(codes < 0).sum()} of {rows} rows have no cluster, the first is row "
            f"{int(np.argmax(codes < 0))}",
            fix="drop those rows and count them, or pass clusters=None",
        )
    return codes


def _adjusted(moments: np.ndarray, used: int) -> np.ndarray:
    """Adjusted R2 of the model on the first `used` columns, from cross products (last is y)."""
    design, cross = moments[:, :used, :used], moments[:, :used, -1]
    n, total = moments[:, 0, 0], moments[:, -1, -1] - moments[:, 0, -1] ** 2 / moments[:, 0, 0]
    # The pseudo-inverse keeps a draw in which a column is constant or a copy of another.
    weights = np.einsum("dij,dj->di", np.linalg.pinv(design, hermitian=True), cross)
    residual = moments[:, -1, -1] - (weights * cross).sum(axis=1)
    return 1 - (residual / total) * (n - 1) / (n - used)


def benjamini_hochberg(
    p: pd.Series, family: Sequence[Hashable] | pd.Series | None = None
) -> pd.Series:
    """Adjust p-values for the false discovery rate within each family of tests.

    Parameters
    ----------
    p : Series
        NaN (a test that could not be made) stays NaN and does not count as a test.
    family : sequence, optional
        Label of the family of each test; one family for all by default. State it: the paper does
        not, and a larger family gives larger q.

    Returns
    -------
    Series of q-values on the index of `p`.

    References
    ----------
    Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57(1).

    Examples
    --------
    >>> benjamini_hochberg(pd.Series([0.01, 0.02, np.nan, 0.2])).round(3).tolist()
    [0.03, 0.03, nan, 0.2]
    """
    labels = np.zeros(len(p)) if family is None else np.asarray(family)
    q = pd.Series(np.nan, index=p.index, name="q")
    for label in pd.unique(labels):
        tested = (labels == label) & p.notna().to_numpy()
        if tested.any():
            q[tested] = stats.false_discovery_control(p[tested], method="bh")
    return q


def stars(q: float) -> str:
    """Write a q-value as the paper does: *** below .001, ** below .01, * below .05.

    >>> [stars(q) for q in (0.0004, 0.009, 0.04, 0.2, float("nan"))]
    ['***', '**', '*', '', '']
    """
    return "***" if q < 0.001 else "**" if q < 0.01 else "*" if q < 0.05 else ""
