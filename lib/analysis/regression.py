"""Do psychological metrics predict human ratings beyond what automatic metrics already predict?

A is the model with an automatic metric, P with psychological ones, P+A with both.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from tqdm.auto import tqdm

from lib.analysis.correlation import number_clusters
from lib.analysis.significance import benjamini_hochberg
from lib.data import DataError


class GainTest(NamedTuple):
    """A statistic and its p-value; a positive statistic favours P+A."""

    statistic: float = np.nan
    p: float = np.nan


FOLDS = 10


def zscore(frame: pd.DataFrame) -> pd.DataFrame:
    """Center each column on 0 and scale it to standard deviation 1 (n in the denominator).

    Raises:
        DataError: for a missing value, and for a constant column, which cannot be scaled.

    >>> zscore(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))["x"].round(3).tolist()
    [-1.225, 0.0, 1.225]
    """
    frame = frame.astype(float)
    incomplete = frame.columns[frame.isna().any()]
    if len(incomplete):
        raise DataError(f"{list(incomplete)} have missing values")
    constant = frame.columns[frame.max() == frame.min()]
    if len(constant):
        raise DataError(
            f"{list(constant)} are the same in every row, so they cannot be used"
        )
    return (frame - frame.mean()) / frame.std(ddof=0)


def fit_ols(data: pd.DataFrame, outcome: str, predictors):
    """Fit z(outcome) = b0 + sum_j b_j z(predictor_j) + e by ordinary least squares.

    Section 7, "Evaluation". Adjusted R2, t and p do not depend on the z-scoring; the coefficients
    become comparable. `.rsquared_adj` is 1 - (1 - R2)(n - 1)/(n - p - 1) with p the rank of the
    predictors (a copy of a predictor adds nothing); it is negative when they explain less than
    chance would.

    Args:
        data: complete rows.
        outcome: column of human ratings.
        predictors: columns of metrics.

    Returns:
        RegressionResults of statsmodels.

    Raises:
        DataError: for missing values, a constant column, or fewer rows than predictors + 2.

    >>> data = pd.DataFrame({"y": [1, 2, 3, 4.5], "x": [1, 2, 3, 4]})
    >>> round(float(fit_ols(data, "y", ["x"]).rsquared_adj), 3)
    0.983
    """
    import statsmodels.api as sm  # takes a second to import

    predictors = list(predictors)
    if len(data) < len(predictors) + 2:
        raise DataError(
            f"{len(data)} complete rows are too few for {len(predictors)} predictors"
        )
    scaled = zscore(data[[outcome, *predictors]])
    return sm.OLS(scaled[outcome], sm.add_constant(scaled[predictors])).fit()


def adjusted_r2(data: pd.DataFrame, outcome: str, predictors) -> float:
    """Adjusted R2 of one model (`fit_ols`), with its sign.

    >>> data = pd.DataFrame({"y": [1.0, 2, 1, 2], "x": [1.0, 1, 2, 2]})
    >>> adjusted_r2(data, "y", ["x"])
    -0.5
    """
    return float(fit_ols(data, outcome, predictors).rsquared_adj)


def _paired_t(improvement) -> GainTest:
    """t-test of a mean improvement; NaN where there is none in any row (equal models)."""
    if np.allclose(improvement, 0, atol=1e-12):
        return GainTest()
    test = stats.ttest_1samp(improvement, 0.0)
    return GainTest(float(test.statistic), float(test.pvalue))


def residual_t_test(smaller, larger) -> GainTest:
    """Test two fitted models by a paired t-test on absolute residuals, the test of the paper.

    Section 7: "a paired t-test between the mean absolute residuals of the A and P+A models",
    two-sided. Residuals are in sample, so the larger model has the smaller squared errors by
    construction, but its absolute errors may grow: then t is negative, and a star would reward
    the worse model. Under a true null this test rejects far too rarely with one added predictor
    and about twice as often as it should with five (notebook 12).

    Args:
        smaller, larger: results of `fit_ols` for A and P+A on the same rows.

    Returns:
        t > 0 means that the absolute residuals are smaller under P+A. NaN where both models fit
        the same (a collinear predictor).

    >>> data = pd.DataFrame({"y": [1.0, 2, 2, 4], "a": [1.0, 1, 2, 2], "p": [0.0, 1, 0, 1]})
    >>> result = residual_t_test(fit_ols(data, "y", ["a"]), fit_ols(data, "y", ["a", "p"]))
    >>> round(result.statistic, 2)
    3.46
    """
    return _paired_t(np.abs(smaller.resid.to_numpy()) - np.abs(larger.resid.to_numpy()))


def nested_f_test(
    data, outcome: str, smaller: list, added: list, clusters=None
) -> GainTest:
    """Test by F whether all added coefficients are 0, with errors correlated within clusters.

    Responses to one context (or turns of one dialog) share their raters' view of it. The
    cluster-robust covariance allows for that; without `clusters` this is the classical F.

    Returns:
        F and p with (rank of the added predictors, clusters - 1) degrees of freedom. NaN where
        the added predictors are copies of the others.

    Reference: Cameron and Miller 2015, A practitioner's guide to cluster-robust inference.

    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "p"])
    >>> data["y"] = data["p"] + rng.normal(size=60)
    >>> nested_f_test(data, "y", ["a"], ["p"], clusters=np.arange(60) // 3).p < 0.001
    True
    """
    predictors = [*smaller, *added]
    full = fit_ols(data, outcome, predictors)
    if full.df_model < len(predictors):
        return GainTest()
    if clusters is not None:
        groups = {"groups": number_clusters(clusters, len(data))}
        full = full.model.fit(cov_type="cluster", cov_kwds=groups, use_t=True)
    # One row for each coefficient that is 0 under the null hypothesis.
    test = full.f_test(np.eye(1 + len(predictors))[1 + len(smaller) :])
    return GainTest(float(test.fvalue), float(test.pvalue))


def cross_validated_gain(
    data,
    outcome,
    smaller,
    added,
    clusters=None,
    draws=999,
    seed=0,
) -> GainTest:
    r"""Compare A and P+A on clusters that they were not fitted to, in squared loss.

    Ten folds that never split a cluster. The loss is the one that least squares minimises, so
    that with a z-scored outcome the gain is the rise of the cross-validated R2. Predictions are
    kept within the ratings that were fitted to.

    .. math:: \Delta = \frac{1}{n} \sum_i (y_i - \hat y_i^{A})^2 - (y_i - \hat y_i^{P+A})^2

    A t-test of this difference does not fit: where the added coefficients are 0, the larger model
    still pays for estimating them, so the difference is below 0 on average and the test hardly
    ever rejects. The null distribution is therefore drawn: the residuals of A change their signs,
    a whole cluster at a time, and both models are fitted again. The null hypothesis is that the
    added coefficients are 0, with errors symmetric around 0 and correlated within clusters only.

    Args:
        data: complete rows.
        outcome: column of human ratings.
        smaller, added: columns of A, and those that P+A has in addition.
        clusters: one label per row; None makes each row its own cluster.
        draws: number of drawn data sets.
        seed: of the folds and of the signs.

    Returns:
        The gain (positive: P+A predicts new clusters better) and the one-sided p,
        (1 + number of drawn gains that reach it) / (1 + draws). With many added predictors p can
        be small where the gain is not above 0: the predictors matter, but estimating them costs
        what they bring. NaN with fewer clusters than folds, and where the added predictors are
        copies of the others.

    References: Clark and West 2007, Approximately normal tests for equal predictive accuracy in
    nested models (why the t-test fails); Cameron, Gelbach and Miller 2008, Bootstrap-based
    improvements for inference with clustered errors (signs by cluster, null hypothesis imposed).

    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "p"])
    >>> data["y"] = 2 * data["p"] + rng.normal(size=90)
    >>> test = cross_validated_gain(data, "y", ["a"], ["p"], np.arange(90) // 3)
    >>> test.statistic > 0.7, test.p
    (True, 0.001)
    """
    from sklearn.model_selection import GroupKFold  # slow to import, needed only here

    scaled = zscore(data[[outcome, *smaller, *added]])
    cluster_ids = number_clusters(clusters, len(data))
    n_clusters = cluster_ids.max() + 1
    if n_clusters < FOLDS:
        return GainTest()
    target = scaled[outcome].to_numpy()
    constant = np.ones(len(scaled))
    smaller_design = np.column_stack([constant, scaled[smaller]])
    larger_design = np.column_stack([smaller_design, scaled[added]])
    if np.linalg.matrix_rank(larger_design) == np.linalg.matrix_rank(smaller_design):
        return GainTest()
    fitted = smaller_design @ np.linalg.lstsq(smaller_design, target)[0]
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(n_clusters, 1 + draws))
    signs[:, 0] = 1  # the first column holds the ratings themselves
    outcomes = fitted[:, None] + (target - fitted)[:, None] * signs[cluster_ids]
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    splits = list(folds.split(scaled, groups=cluster_ids))
    smaller_error = _unseen_squared_error(smaller_design, outcomes, splits)
    larger_error = _unseen_squared_error(larger_design, outcomes, splits)
    gains = smaller_error - larger_error
    at_least = np.sum(gains[1:] >= gains[0])
    return GainTest(float(gains[0]), float((1 + at_least) / (1 + draws)))


def _unseen_squared_error(design, outcomes, splits) -> np.ndarray:
    """Mean squared error of cross-validated least squares, for each column of outcomes.

    A prediction beyond the outcomes that were fitted to is set to the nearest of them. Without this
    a single reply with a BLEU-4 far above all others, left out, has a prediction of any size.
    """
    products = design.T @ design
    outcome_products = design.T @ outcomes
    total = np.zeros(outcomes.shape[1])
    for training, test in splits:
        held_out = design[test]
        inverse = np.linalg.pinv(products - held_out.T @ held_out, hermitian=True)
        weights = inverse @ (outcome_products - held_out.T @ outcomes[test])
        fitted_to = outcomes[training]
        predicted = np.clip(
            held_out @ weights, fitted_to.min(axis=0), fitted_to.max(axis=0)
        )
        total += np.sum((outcomes[test] - predicted) ** 2, axis=0)
    return total / len(design)


def bootstrap_gain(
    data,
    outcome,
    smaller,
    added,
    clusters,
    resamples=1000,
    seed=0,
) -> np.ndarray:
    """95 % percentile interval of adjusted R2(P+A) - adjusted R2(A), drawing whole clusters again.

    Each resample needs only sums of cross products per cluster, so a thousand cost one matrix
    product and a batch of solves. Refitting inside each resample lifts R2 a little, so an interval
    just above 0 is no proof: read it with `nested_f_test`. Both NaN for fewer than 3 clusters.

    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "p"])
    >>> data["y"] = data["p"] + rng.normal(size=90)
    >>> low, high = bootstrap_gain(data, "y", ["a"], ["p"], np.arange(90) // 3, resamples=200)
    >>> bool(0.2 < low < high < 0.8)
    True
    """
    scaled = zscore(data[[outcome, *smaller, *added]])
    cluster_ids = number_clusters(clusters, len(data))
    n_clusters = cluster_ids.max() + 1
    if n_clusters < 3:
        return np.full(2, np.nan)
    rows = np.column_stack([np.ones(len(scaled)), scaled[[*smaller, *added, outcome]]])
    products = np.zeros((n_clusters, rows.shape[1], rows.shape[1]))
    np.add.at(products, cluster_ids, rows[:, :, None] * rows[:, None, :])
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(
        n_clusters, np.full(n_clusters, 1 / n_clusters), size=resamples
    )
    products = np.tensordot(counts.astype(float), products, axes=1)
    larger_r2 = _adjusted_r2(products, 1 + len(smaller) + len(added))
    smaller_r2 = _adjusted_r2(products, 1 + len(smaller))
    return np.quantile(larger_r2 - smaller_r2, [0.025, 0.975])


def _adjusted_r2(products: np.ndarray, n_columns: int) -> np.ndarray:
    """Adjusted R2 of the model on the first `n_columns`, from cross products (last is y)."""
    design = products[:, :n_columns, :n_columns]
    design_y = products[:, :n_columns, -1]
    n = products[:, 0, 0]
    y_square = products[:, -1, -1]
    total = y_square - products[:, 0, -1] ** 2 / n
    # The pseudo-inverse keeps a resample in which a column is constant or a copy of another.
    inverse = np.linalg.pinv(design, hermitian=True)
    residual = y_square - np.einsum("di,dij,dj->d", design_y, inverse, design_y)
    return 1 - (residual / total) * (n - 1) / (n - n_columns)


def incremental_validity(
    table,
    outcome,
    automatic: list,
    psychological: list,
    cluster="dialog",
    resamples=1000,
    seed=0,
) -> pd.DataFrame:
    """Compare the models A, P and P+A for every automatic and psychological metric.

    Tables 1-5 and 7-18: adjusted R2 of the automatic metric alone (A), of the psychological one
    alone (P) and of both (P+A), here with the paper's test and three that respect sampling. For
    one automatic metric all models are fitted on the same complete rows.

    Args:
        table: turn table with the outcome, the metrics and the cluster column.
        outcome: column of human ratings.
        automatic, psychological: metric columns. With several psychological metrics a last model,
            "all", has all of them.
        cluster: column whose values are the independent units (dialog, or shared context). A row
            without one is dropped and counted.

    Returns:
        DataFrame, one row per pair: outcome, automatic, psychological, n, dropped, A, P, P+A
        (adjusted R2, with sign), gain, gain_low, gain_high (95 % cluster bootstrap of P+A minus A),
        t, p (paper's test), F, p_nested (cluster-robust), cv_gain, p_cv (gain in R2 on clusters
        that were not fitted to, one-sided), note. A pair that cannot be fitted is a row of NaN
        whose note gives the reason. No q-values: choose the family with `adjust_p_values`.

    >>> rng = np.random.default_rng(1)
    >>> turns = pd.DataFrame(rng.normal(size=(80, 2)), columns=["overlap", "style"])
    >>> turns["human"] = turns.sum(axis=1) + rng.normal(size=80)
    >>> turns["dialog"] = np.arange(80) // 4
    >>> result = incremental_validity(turns, "human", ["overlap"], ["style"], resamples=20)
    >>> result[["n", "A", "P", "P+A"]].round(2).to_dict("records")
    [{'n': 80, 'A': 0.32, 'P': 0.18, 'P+A': 0.54}]
    """
    models = {name: [name] for name in psychological}
    if len(models) > 1:
        models["all"] = list(psychological)
    rows = []
    for metric in tqdm(
        automatic, desc=f"regressions on {outcome}", disable=len(automatic) < 3
    ):
        data = table.dropna(subset=[outcome, metric, *psychological, cluster])
        dropped = len(table) - len(data)
        for name, added in models.items():
            row = {"outcome": outcome, "automatic": metric, "psychological": name}
            row |= {"n": len(data), "dropped": dropped, "note": ""}
            options = {"clusters": data[cluster], "resamples": resamples, "seed": seed}
            try:
                row |= _compare_models(data, outcome, [metric], added=added, **options)
            except DataError as error:
                row["note"] = error.problem
            rows.append(row)
    columns = ["outcome", "automatic", "psychological", "n", "dropped", "A", "P", "P+A"]
    columns += [
        "gain",
        "gain_low",
        "gain_high",
        "t",
        "p",
        "F",
        "p_nested",
        "cv_gain",
        "p_cv",
    ]
    return pd.DataFrame(rows, columns=[*columns, "note"])


def _compare_models(
    data,
    outcome,
    smaller,
    added,
    clusters,
    resamples,
    seed,
) -> dict:
    """Adjusted R2 of A, P and P+A, the gain with its interval, the tests and a note."""
    both = [*smaller, *added]
    a = fit_ols(data, outcome, smaller)
    p_and_a = fit_ols(data, outcome, both)
    models = {"smaller": smaller, "added": added, "clusters": clusters}
    low, high = bootstrap_gain(data, outcome, **models, resamples=resamples, seed=seed)
    paper = residual_t_test(a, p_and_a)
    nested = nested_f_test(data, outcome, **models)
    cross_validated = cross_validated_gain(data, outcome, **models, seed=seed)
    return {
        "A": a.rsquared_adj,
        "P": adjusted_r2(data, outcome, added),
        "P+A": p_and_a.rsquared_adj,
        "gain": p_and_a.rsquared_adj - a.rsquared_adj,
        "gain_low": low,
        "gain_high": high,
        "t": paper.statistic,
        "p": paper.p,
        "F": nested.statistic,
        "p_nested": nested.p,
        "cv_gain": cross_validated.statistic,
        "p_cv": cross_validated.p,
        "note": "collinear predictors" if p_and_a.df_model < len(both) else "",
    }


def adjust_p_values(
    comparisons: pd.DataFrame, family: str | list[str] | None = None
) -> pd.DataFrame:
    """Add q-values (Benjamini-Hochberg) for the three tests, and the paper's stars.

    Args:
        comparisons: rows of `incremental_validity`, of one or several data sets put together.
        family: column name(s): the rows that share them are corrected together, e.g. "dataset"
            for one family per table. None corrects all rows together.

    Returns:
        DataFrame with q, q_nested, q_cv and stars (of q: *** below .001, ** .01, * .05) added.

    >>> p_values = {"p": [0.0001, 0.2], "p_nested": [0.01, 0.2], "p_cv": [0.3, 0.3]}
    >>> adjust_p_values(pd.DataFrame(p_values))
            p  p_nested  p_cv       q  q_nested  q_cv stars
    0  0.0001      0.01   0.3  0.0002      0.02   0.3   ***
    1  0.2000      0.20   0.3  0.2000      0.20   0.3
    """
    labels = None if family is None else comparisons.groupby(family).ngroup()
    adjusted = comparisons.copy()
    for test in ("", "_nested", "_cv"):
        adjusted[f"q{test}"] = benjamini_hochberg(comparisons[f"p{test}"], labels)
    adjusted["stars"] = ""
    for level in (0.05, 0.01, 0.001):
        adjusted.loc[adjusted["q"] < level, "stars"] += "*"
    return adjusted


def paper_layout(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Arrange adjusted comparisons as the paper's tables: A, then P and P+A per metric.

    Three decimals with sign; the stars stand at P+A. A star whose t is negative (P+A has the
    larger absolute residuals) is written "(-)".

    >>> pair = {"automatic": "F1", "psychological": "entropy", "A": 0.2, "P": -0.003,
    ...         "P+A": 0.25, "t": 3.0, "stars": "**"}
    >>> paper_layout(pd.DataFrame([pair])).loc["F1"].tolist()
    ['.200', '-.003', '.250**']
    """
    wide: dict[str, dict] = {}
    for row in comparisons.to_dict("records"):
        cells = wide.setdefault(
            row["automatic"], {("A", ""): _three_decimals(row["A"])}
        )
        stars = row["stars"]
        if stars and row["t"] < 0:
            stars += "(-)"
        cells[row["psychological"], "P"] = _three_decimals(row["P"])
        cells[row["psychological"], "P+A"] = _three_decimals(row["P+A"]) + stars
    return pd.DataFrame(wide).T.rename_axis("automatic")


def _three_decimals(value: float) -> str:
    """A number with three decimals, without the zero before the point; "n/a" for NaN.

    >>> _three_decimals(-0.1234), _three_decimals(-10.5)
    ('-.123', '-10.500')
    """
    if np.isnan(value):
        return "n/a"
    text = f"{value:.3f}"
    if float(text) == 0:
        return "0.000"
    if abs(float(text)) >= 1:
        return text
    return text.replace("0.", ".", 1)
