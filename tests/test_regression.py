"""Regression, tests of gain and the correlation map against statsmodels, scipy and formulas."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from matplotlib.colors import to_rgba
from scipy import stats
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from statsmodels.stats.multitest import multipletests

from lib.analysis import regression
from lib.data import DataError
from lib.meta_evaluation import figures
from lib.meta_evaluation.replication import papers


@pytest.fixture
def data() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    groups = np.repeat(np.arange(40), 5)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "p", "q"])
    frame["y"] = 0.6 * frame["a"] + 0.3 * frame["p"] + rng.normal(size=40)[groups]
    frame["y"] += rng.normal(size=200)
    return frame.assign(dialog=groups)


def validity(table, automatic, psychological, resamples=20, **options):
    return regression.incremental_validity(
        table, "y", automatic, psychological, resamples=resamples, **options
    )


@pytest.mark.filterwarnings("ignore:The design matrix")
def test_adjusted_r2_equals_the_formula_whatever_the_scale_and_a_copy_adds_nothing(
    data,
):
    design = np.column_stack([np.ones(200), data[["a", "p"]]])
    residual = data["y"] - design @ np.linalg.lstsq(design, data["y"], rcond=None)[0]
    r2 = 1 - (residual @ residual) / ((data["y"] - data["y"].mean()) ** 2).sum()
    twice = data.assign(a=data["a"] * -50 + 3, y=data["y"] / 7, copy=2 * data["a"] + 1)
    for predictors in (["a", "p"], ["a", "p", "copy"]):
        result = regression.adjusted_r2(twice, "y", predictors)
        assert result == pytest.approx(1 - (1 - r2) * 199 / 197, abs=1e-12)
    row = validity(twice, ["a"], ["copy"]).loc[0]
    assert (
        row["note"] == "collinear predictors"
        and row[["t", "p", "F", "p_nested"]].isna().all()
    )


def test_paper_test_is_the_paired_t_on_absolute_residuals():
    """Negative where the absolute residuals of P+A are larger, although its squares never are."""
    rng = np.random.default_rng(5)
    signs = set()
    for _ in range(20):
        frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["y", "a", "p"])
        small = smf.ols("y ~ a", frame).fit()
        large = smf.ols("y ~ a + p", frame).fit()
        expected = stats.ttest_rel(small.resid.abs(), large.resid.abs())
        smaller = regression.fit_ols(frame, "y", ["a"])
        larger = regression.fit_ols(frame, "y", ["a", "p"])
        result = regression.residual_t_test(smaller, larger)
        assert result == pytest.approx((expected.statistic, expected.pvalue), abs=1e-9)
        signs.add(np.sign(result.statistic))
        assert larger.ssr <= smaller.ssr
    assert signs == {-1, 1}


def test_classical_nested_f_equals_statsmodels_anova(data):
    small = smf.ols("y ~ a", data).fit()
    large = smf.ols("y ~ a + p + q", data).fit()
    result = regression.nested_f_test(data, "y", ["a"], ["p", "q"])
    assert result == pytest.approx(large.compare_f_test(small)[:2], rel=1e-9)


def test_clustered_f_equals_the_sandwich_written_out(data):
    scaled = regression.zscore(data[["y", "a", "p"]])
    design = np.column_stack([np.ones(200), scaled[["a", "p"]]])
    bread = np.linalg.inv(design.T @ design)
    beta = bread @ design.T @ scaled["y"]
    residual = scaled["y"].to_numpy() - design @ beta
    meat = np.zeros((3, 3))
    for rows in np.arange(200).reshape(40, 5):
        score = design[rows].T @ residual[rows]
        meat += np.outer(score, score)
    covariance = bread @ meat @ bread * 40 / 39 * 199 / 197
    expected = beta[2] ** 2 / covariance[2, 2]
    result = regression.nested_f_test(data, "y", ["a"], ["p"], data["dialog"])
    assert result == pytest.approx((expected, stats.f.sf(expected, 1, 39)), rel=1e-9)


def test_bootstrap_from_moments_equals_refitting_on_resampled_rows(data):
    models = {"smaller": ["a"], "added": ["p"], "clusters": data["dialog"]}
    result = regression.bootstrap_gain(data, "y", **models, resamples=60, seed=4)
    counts = np.random.default_rng(4).multinomial(40, np.full(40, 1 / 40), size=60)
    gains = []
    for row in counts:
        sample = data.loc[np.repeat(data.index, np.repeat(row, 5))]
        small, large = (smf.ols(f"y ~ {x}", sample).fit() for x in ("a", "a + p"))
        gains.append(large.rsquared_adj - small.rsquared_adj)
    np.testing.assert_allclose(result, np.quantile(gains, [0.025, 0.975]), atol=1e-9)


class WithinRatings(LinearRegression):
    """Predicts no more and no less than the outcomes that it was fitted to."""

    def fit(self, X, y):
        self.lowest, self.highest = min(y), max(y)
        return super().fit(X, y)

    def predict(self, X):
        return np.clip(super().predict(X), self.lowest, self.highest)


def unseen_r2(frame, columns, groups, seed):
    """R2 of predictions for clusters that scikit-learn left out of the fit."""
    guess = cross_val_predict(
        WithinRatings(),
        frame[columns],
        frame["y"],
        groups=groups,
        cv=GroupKFold(10, shuffle=True, random_state=seed),
    )
    return 1 - np.mean((frame["y"] - guess) ** 2)


def test_cross_validated_gain_equals_scikit_learn_refitted_on_flipped_residuals(data):
    """Clusters of unequal size; the ratings are z-scored, so a squared error is 1 - R2."""
    uneven = pd.concat([data, *[data[data["dialog"] == 39]] * 5], ignore_index=True)
    groups = uneven["dialog"].to_numpy()
    frame = regression.zscore(uneven[["y", "a", "p"]])
    fit = smf.ols("y ~ a", frame).fit()
    signs = np.random.default_rng(2).choice([-1.0, 1.0], size=(40, 20))
    signs[:, 0] = 1
    gains = []
    for column in signs.T:
        drawn = frame.assign(y=fit.fittedvalues + fit.resid * column[groups])
        larger = unseen_r2(drawn, ["a", "p"], groups, seed=2)
        gains.append(larger - unseen_r2(drawn, ["a"], groups, seed=2))
    result = regression.cross_validated_gain(
        uneven, "y", ["a"], ["p"], groups, draws=19, seed=2
    )
    assert result.statistic == pytest.approx(gains[0], abs=1e-12)
    assert result.p == np.mean(np.array(gains) >= gains[0])
    too_few = regression.cross_validated_gain(
        data, "y", ["a"], ["p"], np.arange(200) % 9
    )
    assert np.isnan(too_few.p), "nine clusters cannot be cut into ten folds"
    copy = data.assign(p=2 * data["a"] - 1)
    assert np.isnan(regression.cross_validated_gain(copy, "y", ["a"], ["p"]).p)


def test_one_score_far_from_all_others_does_not_decide_the_cross_validated_gain(data):
    """As BLEU-4 has them: among 200 scores near 0 one is a thousand times larger."""
    far = data.assign(p=data["p"].where(data.index != 0, 5000.0))
    frame = regression.zscore(far[["y", "a", "p"]])
    groups = far["dialog"].to_numpy()
    larger, smaller = (unseen_r2(frame, x, groups, seed=0) for x in (["a", "p"], ["a"]))
    gain = regression.cross_validated_gain(far, "y", ["a"], ["p"], groups, draws=1)
    assert gain.statistic == pytest.approx(larger - smaller, abs=1e-6)
    assert abs(gain.statistic) < 0.2


@pytest.mark.parametrize("count", [1, 5])
def test_the_cross_validated_gain_keeps_its_level_and_finds_a_twentieth(count):
    """60 contexts of 6 replies; one added predictor has a partial R2 of 0 or of .05."""
    rng = np.random.default_rng(count)
    contexts = np.repeat(np.arange(60), 6)
    added = [f"p{j}" for j in range(count)]
    rates = {}
    for partial_r2 in (0, 0.05):
        p_values = []
        for _ in range(200):
            shared = rng.normal(size=(60, count + 2))[contexts]
            values = 0.3**0.5 * shared + 0.7**0.5 * rng.normal(size=shared.shape)
            frame = pd.DataFrame(values, columns=["a", "rest", *added])
            slope = (partial_r2 / (1 - partial_r2)) ** 0.5
            frame["y"] = 0.5 * frame["a"] + frame["rest"] + slope * frame["p0"]
            test = regression.cross_validated_gain(
                frame, "y", ["a"], added, contexts, draws=99
            )
            p_values.append(test.p)
        rates[partial_r2] = np.mean(np.array(p_values) <= 0.05)
    # Three standard errors of 200 rounds: .05 (.046); a test at its level has at least .7 power.
    assert 0.004 < rates[0] < 0.1
    assert rates[0.05] > 0.7


@pytest.mark.parametrize(
    "test",
    [
        regression.nested_f_test,
        regression.cross_validated_gain,
        regression.bootstrap_gain,
    ],
)
def test_a_missing_cluster_is_refused_and_in_the_table_dropped(data, test):
    holed = data.assign(dialog=data["dialog"].astype(float).where(data.index != 7))
    with pytest.raises(
        DataError, match="1 of 200 rows have no cluster, the first is row 7"
    ):
        test(holed, "y", ["a"], ["p"], holed["dialog"])
    table, without = (
        validity(frame, ["a"], ["p"]) for frame in (holed, data.drop(index=7))
    )
    assert table["dropped"].tolist() == [1] and table["n"].tolist() == [199]
    pd.testing.assert_frame_equal(
        table.drop(columns="dropped"), without.drop(columns="dropped")
    )


def test_a_constant_column_and_too_few_rows_are_noted_not_hidden(data):
    row = validity(data.assign(flat=1.0), ["a"], ["flat"]).loc[0]
    assert "['flat'] are the same in every row" in row["note"] and np.isnan(row["P"])
    too_few = validity(data.head(3), ["a"], ["p", "q"])
    assert "3 complete rows are too few for 2 predictors" in too_few["note"][0]
    with pytest.raises(DataError, match="have missing values"):
        regression.adjusted_r2(
            data.assign(p=data["p"].where(data["p"] > 0)), "y", ["p"]
        )


def test_the_table_holds_the_values_of_its_parts(data):
    holed = data.assign(
        p=data["p"].where(data.index > 9), q=data["q"].where(data.index % 40 > 4)
    )
    table = validity(holed, ["a"], ["p", "q"], resamples=50, seed=3)
    data = holed.dropna()
    table = regression.adjust_p_values(
        table
    )  # all models of a metric are fitted on the same rows
    assert set(table["n"]) == {len(data)} and set(table["dropped"]) == {200 - len(data)}
    row = table.loc[0]
    all_metrics = table.loc[2]
    assert (
        row["A"]
        == all_metrics["A"]
        == pytest.approx(smf.ols("y ~ a", data).fit().rsquared_adj)
    )
    assert row["P"] == pytest.approx(smf.ols("y ~ p", data).fit().rsquared_adj)
    assert row["P+A"] == pytest.approx(smf.ols("y ~ p + a", data).fit().rsquared_adj)
    assert all_metrics["P"] == pytest.approx(
        smf.ols("y ~ p + q", data).fit().rsquared_adj
    )
    assert row["gain_low"] < row["gain"] < row["gain_high"]
    assert row["q"] == pytest.approx(multipletests(table["p"], method="fdr_bh")[1][0])
    layout = regression.paper_layout(table)
    assert layout.loc["a", ("p", "P+A")] == f"{row['P+A']:.3f}"[1:] + row["stars"]
    q = regression.adjust_p_values(
        table.assign(p=[0.01, 0.04, 0.04], set=[1, 1, 2]), family="set"
    )["q"]
    assert q.tolist() == pytest.approx([0.02, 0.04, 0.04]), "one family per set"


def test_a_star_in_the_wrong_direction_is_marked():
    row = {"automatic": "x", "psychological": "p", "A": 0.5, "P": 0.0, "P+A": 0.5}
    layout = regression.paper_layout(pd.DataFrame([row | {"t": -4.0, "stars": "**"}]))
    assert layout.iloc[0].tolist() == [".500", "0.000", ".500**(-)"]


def test_correlation_map_is_scipys_tree_on_one_minus_r_and_marks_whole_branches(data):
    frame = data[["a", "p", "q", "y"]].assign(minus=-data["a"] + 0.1 * data["p"])
    grid = figures.correlation_map(frame, {"a", "minus", "q"})
    distance = 1 - np.abs(np.corrcoef(frame.to_numpy().T))
    expected = hierarchy.average(squareform(distance, checks=False))
    np.testing.assert_allclose(grid.dendrogram_row.linkage, expected, atol=1e-12)
    first = {frame.columns[int(k)] for k in expected[0, :2]}
    assert first == {"a", "minus"}, "a metric and its mirror image are neighbours"
    assert grid.data2d.loc["a", "minus"] < -0.9, "the sign is kept in the cells"
    branches = grid.ax_col_dendrogram.collections[0].get_colors()
    orange = (branches == to_rgba("tab:orange")).all(axis=1)
    assert len(branches) == 4 and orange.sum() == 1, "only the branch of a and minus"
    plt.close(grid.figure)
    with pytest.raises(DataError, match=r"\['flat'\] have no correlation"):
        figures.correlation_map(frame.assign(flat=1.0), set())


def test_published_signs_are_restored_only_where_every_row_falls():
    printed = papers.giorgi_tables()
    assert (printed["signed"].abs() == printed["adjusted_r2"].abs()).all()
    changed = printed[printed["signed"] != printed["adjusted_r2"]]
    assert set(changed["model"]) == {"P"} and changed["table"].min() >= 7
    assert ("ZD", "emotion_matching") not in set(
        zip(changed["dataset"], changed["psychological_metric"], strict=True)
    )
    assert (printed[printed["table"] <= 5]["adjusted_r2"] < 0).any()
