"""Regression, tests of gain and the correlation map against statsmodels, scipy and formulas."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from statsmodels.stats.multitest import multipletests

from lib import analysis, meta_evaluation
from lib.analysis import regression
from lib.data.dialogues import DataError


@pytest.fixture
def data() -> pd.DataFrame:
    draw = np.random.default_rng(11)
    groups = np.repeat(np.arange(40), 5)
    frame = pd.DataFrame(draw.normal(size=(200, 3)), columns=["a", "p", "q"])
    frame["y"] = 0.6 * frame["a"] + 0.3 * frame["p"] + draw.normal(size=40)[groups]
    frame["y"] += draw.normal(size=200)
    return frame.assign(dialog=groups)


def test_adjusted_r2_equals_the_formula_and_ignores_scaling(data):
    design = np.column_stack([np.ones(200), data[["a", "p"]]])
    residual = data["y"] - design @ np.linalg.lstsq(design, data["y"], rcond=None)[0]
    r2 = 1 - (residual @ residual) / ((data["y"] - data["y"].mean()) ** 2).sum()
    expected = 1 - (1 - r2) * 199 / 197
    assert regression.adjusted_r2(data, "y", ["a", "p"]) == pytest.approx(expected, abs=1e-12)
    scaled = data.assign(a=data["a"] * -50 + 3, y=data["y"] / 7)
    assert regression.adjusted_r2(scaled, "y", ["a", "p"]) == pytest.approx(expected, abs=1e-12)


def test_a_useless_predictor_has_negative_adjusted_r2(data):
    y = data["y"] - data["y"].mean()
    noise = np.random.default_rng(0).normal(size=200)
    noise -= noise.mean()
    noise -= y * (noise @ y) / (y @ y)
    value = regression.adjusted_r2(data.assign(noise=noise), "y", ["noise"])
    assert value == pytest.approx(-1 / 198, abs=1e-9)


def test_a_copy_of_a_predictor_adds_nothing(data):
    twice = data.assign(copy=2 * data["a"] + 1)
    once = regression.adjusted_r2(twice, "y", ["a"])
    assert regression.adjusted_r2(twice, "y", ["a", "copy"]) == pytest.approx(once, abs=1e-12)
    assert np.isnan(regression.nested_f_test(twice, "y", ["a"], ["copy"]).p)
    table = regression.incremental_validity(twice, "y", ["a"], ["copy"], resamples=20)
    assert table["note"][0] == "collinear predictors" and np.isnan(table["p"][0])


def test_paper_test_is_the_paired_t_on_absolute_residuals(data):
    small = smf.ols("y ~ a", data).fit()
    large = smf.ols("y ~ a + p", data).fit()
    expected = stats.ttest_rel(small.resid.abs(), large.resid.abs())
    ours = regression.residual_t_test(
        regression.fit_ols(data, "y", ["a"]), regression.fit_ols(data, "y", ["a", "p"])
    )
    assert ours.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert ours.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert ours.statistic > 0, "P+A has the smaller residuals here"


def test_negative_t_means_larger_absolute_residuals_under_p_plus_a():
    draw = np.random.default_rng(5)
    for _ in range(200):
        frame = pd.DataFrame(draw.normal(size=(30, 3)), columns=["y", "a", "p"])
        fits = [regression.fit_ols(frame, "y", c) for c in (["a"], ["a", "p"])]
        found = regression.residual_t_test(*fits)
        grew = fits[1].resid.abs().mean() > fits[0].resid.abs().mean()
        assert (found.statistic < 0) == grew
    assert fits[1].ssr <= fits[0].ssr


def test_classical_nested_f_equals_statsmodels_anova(data):
    small, large = smf.ols("y ~ a", data).fit(), smf.ols("y ~ a + p + q", data).fit()
    f, p, _ = large.compare_f_test(small)
    ours = regression.nested_f_test(data, "y", ["a"], ["p", "q"])
    assert (ours.statistic, ours.p) == (pytest.approx(f, rel=1e-9), pytest.approx(p, rel=1e-9))


def test_clustered_f_equals_the_sandwich_written_out(data):
    scaled = regression.zscore(data[["y", "a", "p"]])
    design = np.column_stack([np.ones(200), scaled[["a", "p"]]])
    bread = np.linalg.inv(design.T @ design)
    beta = bread @ design.T @ scaled["y"]
    residual = scaled["y"].to_numpy() - design @ beta
    meat = np.zeros((3, 3))
    for g in range(40):
        rows = data["dialog"].to_numpy() == g
        score = design[rows].T @ residual[rows]
        meat += np.outer(score, score)
    covariance = bread @ meat @ bread * 40 / 39 * 199 / 197
    expected = beta[2] ** 2 / covariance[2, 2]
    ours = regression.nested_f_test(data, "y", ["a"], ["p"], data["dialog"])
    assert ours.statistic == pytest.approx(expected, rel=1e-9)
    assert ours.p == pytest.approx(stats.f.sf(expected, 1, 39), rel=1e-9)


def test_bootstrap_from_moments_equals_refitting_on_resampled_rows(data):
    low, high = regression.bootstrap_gain(
        data, "y", ["a"], ["p"], data["dialog"], resamples=60, seed=4
    )
    times = np.random.default_rng(4).multinomial(40, np.full(40, 1 / 40), size=60)
    gains = []
    for row in times:
        sample = data.loc[np.repeat(data.index, np.repeat(row, 5))]
        gains.append(smf.ols("y ~ a + p", sample).fit().rsquared_adj)
        gains[-1] -= smf.ols("y ~ a", sample).fit().rsquared_adj
    expected = np.quantile(gains, [0.025, 0.975])
    np.testing.assert_allclose([low, high], expected, atol=1e-9)


def test_cross_validated_gain_equals_scikit_learns_predictions_on_new_clusters(data):
    strong = data.assign(y=data["y"] + data["p"])
    scaled = regression.zscore(strong[["y", "a", "p"]])
    folds = GroupKFold(10, shuffle=True, random_state=2)
    errors = [
        (
            scaled["y"]
            - cross_val_predict(
                LinearRegression(), scaled[columns], scaled["y"], groups=data["dialog"], cv=folds
            )
        ).abs()
        for columns in (["a"], ["a", "p"])
    ]
    per_cluster = (errors[0] - errors[1]).groupby(data["dialog"]).mean()
    ours = regression.cross_validated_gain(strong, "y", ["a"], ["p"], data["dialog"], seed=2)
    assert ours.statistic == pytest.approx(per_cluster.mean(), abs=1e-12)
    assert ours.p == pytest.approx(stats.ttest_1samp(per_cluster, 0).pvalue, abs=1e-12)
    assert ours.statistic > 0 and ours.p < 0.001
    few = regression.cross_validated_gain(strong, "y", ["a"], ["p"], np.arange(200) % 9)
    assert np.isnan(few.p), "nine clusters cannot be cut into ten folds"


def test_cross_validated_gain_weighs_clusters_and_not_rows(data):
    uneven = data[(data["dialog"] > 0) | (data.index < 1)]
    uneven = pd.concat([uneven, *[data[data["dialog"] == 39]] * 20], ignore_index=True)
    gain = regression.cross_validated_gain(uneven, "y", ["a"], ["p"], uneven["dialog"])
    columns, folds = ["a", "p"], GroupKFold(10, shuffle=True, random_state=0)
    scaled = regression.zscore(uneven[["y", *columns]])
    errors = [
        np.abs(
            scaled["y"]
            - cross_val_predict(
                LinearRegression(), scaled[c], scaled["y"], groups=uneven["dialog"], cv=folds
            )
        )
        for c in (["a"], columns)
    ]
    drop = errors[0] - errors[1]
    assert gain.statistic == pytest.approx(drop.groupby(uneven["dialog"]).mean().mean(), abs=1e-12)
    assert abs(gain.statistic - drop.mean()) > 1e-3, "rows and clusters must differ here"


@pytest.mark.parametrize(
    "test",
    [regression.nested_f_test, regression.cross_validated_gain, regression.bootstrap_gain],
)
def test_a_missing_cluster_is_refused_and_in_the_table_dropped(data, test):
    holed = data.assign(dialog=data["dialog"].astype(float).where(data.index != 7))
    with pytest.raises(DataError, match="1 of 200 rows have no cluster, the first is row 7"):
        test(holed, "y", ["a"], ["p"], holed["dialog"])
    table = regression.incremental_validity(holed, "y", ["a"], ["p"], resamples=20)
    without = regression.incremental_validity(data.drop(index=7), "y", ["a"], ["p"], resamples=20)
    assert table["dropped"].tolist() == [1] and table["n"].tolist() == [199]
    pd.testing.assert_frame_equal(table.drop(columns="dropped"), without.drop(columns="dropped"))


def test_benjamini_hochberg_equals_statsmodels_within_families():
    p = pd.Series([0.001, 0.04, 0.03, np.nan, 0.2, 0.01], index=list("abcdef"))
    family = [1, 1, 2, 2, 1, 2]
    q = regression.benjamini_hochberg(p, family)
    for label in (1, 2):
        rows = [i for i, f in zip(p.index, family, strict=True) if f == label and p[i] == p[i]]
        expected = multipletests(p[rows], method="fdr_bh")[1]
        np.testing.assert_allclose(q[rows], expected, atol=1e-15)
    assert np.isnan(q["d"])
    assert regression.benjamini_hochberg(p)["b"] == pytest.approx(0.05)


def test_rows_with_missing_values_are_dropped_once_for_all_models(data):
    holed = data.copy()
    holed.loc[:9, "p"] = np.nan
    holed.loc[5:14, "q"] = np.nan
    table = regression.incremental_validity(holed, "y", ["a"], ["p", "q"], resamples=20)
    assert table["n"].tolist() == [185] * 3 and table["dropped"].tolist() == [15] * 3
    assert table["A"].nunique() == 1
    expected = regression.adjusted_r2(holed.loc[15:], "y", ["a"])
    assert table["A"][0] == pytest.approx(expected, abs=1e-12)


def test_a_constant_column_and_too_few_rows_are_noted_not_hidden(data):
    table = regression.incremental_validity(
        data.assign(flat=1.0), "y", ["a"], ["flat"], resamples=20
    )
    assert "['flat'] are the same in every row" in table["note"][0] and np.isnan(table["P"][0])
    few = regression.incremental_validity(data.head(3), "y", ["a"], ["p", "q"], resamples=20)
    assert "3 complete rows are too few for 2 predictors" in few["note"][0]
    with pytest.raises(DataError, match="too few for 3 predictors"):
        regression.fit_ols(data.head(4), "y", ["a", "p", "q"])
    with pytest.raises(DataError, match="predict nothing"):
        regression.fit_ols(data.assign(flat=1.0), "y", ["flat"])
    with pytest.raises(DataError, match="no column"):
        regression.incremental_validity(data, "y", ["a"], ["style"])


def test_the_table_holds_the_values_of_its_parts(data):
    table = regression.adjust(
        regression.incremental_validity(data, "y", ["a"], ["p", "q"], resamples=50, seed=3)
    ).set_index("psychological")
    row = table.loc["p"]
    assert row["P"] == pytest.approx(smf.ols("y ~ p", data).fit().rsquared_adj)
    assert row["P+A"] == pytest.approx(smf.ols("y ~ p + a", data).fit().rsquared_adj)
    assert table.loc["all", "P"] == pytest.approx(smf.ols("y ~ p + q", data).fit().rsquared_adj)
    assert row["gain_low"] < row["gain"] < row["gain_high"]
    assert row["q"] == pytest.approx(multipletests(table["p"], method="fdr_bh")[1][0])
    layout = regression.paper_layout(table.reset_index())
    assert layout.loc["a", ("p", "P+A")] == f"{row['P+A']:.3f}"[1:] + row["stars"]


def test_a_star_in_the_wrong_direction_is_marked():
    row = {"automatic": "x", "psychological": "p", "A": 0.5, "P": 0.0, "P+A": 0.5}
    layout = regression.paper_layout(pd.DataFrame([row | {"t": -4.0, "stars": "**"}]))
    assert layout.iloc[0].tolist() == [".500", "0.000", ".500**(-)"]


def test_correlation_map_is_scipys_tree_on_one_minus_r(data):
    frame = data[["a", "p", "q", "y"]].assign(minus=-data["a"] + 0.1 * data["p"])
    found = analysis.correlation_map(frame)
    distance = 1 - np.abs(np.corrcoef(frame.to_numpy().T))
    expected = hierarchy.average(squareform(distance, checks=False))
    np.testing.assert_allclose(found.linkage, expected, atol=1e-12)
    first = {frame.columns[int(k)] for k in found.linkage[0, :2]}
    assert first == {"a", "minus"}, "a metric and its mirror image are neighbours"
    assert found.r.loc["a", "minus"] < -0.9, "the sign is kept in the cells"


def test_correlation_map_marks_only_branches_of_marked_metrics(data):
    frame = data[["a", "p", "y"]].assign(twin=data["p"] + 0.01 * data["q"])
    figure = analysis.plot_correlation_map(analysis.correlation_map(frame), {"p", "twin"})
    drawn = {line.get_text(): line.get_color() for line in figure.axes[1].get_yticklabels()}
    assert {n for n, c in drawn.items() if c == "tab:orange"} == {"p", "twin"}
    plt.close(figure)
    with pytest.raises(DataError, match=r"\['flat'\] have no correlation"):
        analysis.correlation_map(frame.assign(flat=1.0))


def test_missing_pairs_are_counted_in_the_map(data):
    frame = data[["a", "p"]].copy()
    frame.loc[:49, "p"] = np.nan
    assert analysis.correlation_map(frame).pairs.loc["a", "p"] == 150


def test_published_signs_are_restored_only_where_every_row_falls():
    printed = meta_evaluation.published_tables()
    assert (printed["signed"].abs() == printed["adjusted_r2"].abs()).all()
    changed = printed[printed["signed"] != printed["adjusted_r2"]]
    assert set(changed["model"]) == {"P"} and changed["table"].min() >= 7
    assert ("ZD", "emotion_matching") not in set(
        zip(changed["dataset"], changed["psychological_metric"], strict=True)
    )
    assert (printed[printed["table"] <= 5]["adjusted_r2"] < 0).any()


@pytest.mark.slow
def test_rejection_rates_show_that_the_papers_test_changes_its_size():
    rates = analysis.rejection_rates((1, 5), runs=300, within=0.0, seed=1)
    assert rates["residual t (paper)"][1] < 0.03
    assert rates["residual t (paper)"][5] > rates["residual t (paper)"][1]
    assert rates["nested F"].between(0.02, 0.09).all()
    assert rates["cluster-robust F"].between(0.02, 0.10).all()
    assert (rates["cross-validated"] < 0.05).all()
    assert (rates["favours P+A"] > 0.6).all()
