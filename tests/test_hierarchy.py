"""The variance split against statsmodels MixedLM, the analysis of variance, and simulation."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import optimize, stats

from lib.analysis.variance_components import (
    nest_groups,
    rater_variance,
    restricted_log_likelihood,
    variance_split,
)
from lib.data import DataError

LEVELS = ["system", "agent", "dialog"]


def nested(
    systems=6, agents=3, dialogs=5, turns=4, spread=(1.0, 0.7, 0.8, 1.0), seed=1
):
    rng = np.random.default_rng(seed)
    n = systems * agents * dialogs * turns
    frame = pd.DataFrame({"row": range(n)})
    frame["dialog"] = frame["row"] // turns
    frame["agent"] = frame["dialog"] // dialogs
    frame["system"] = frame["agent"] // agents
    frame["score"] = spread[3] * rng.normal(size=n)
    for column, size in zip(LEVELS, spread[:3], strict=True):
        frame["score"] += size * rng.normal(size=frame[column].max() + 1)[frame[column]]
    return frame


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("unbalanced", [False, True])
def test_split_equals_statsmodels_mixed_model(unbalanced):
    table = nested(seed=3)
    if unbalanced:
        table = table.drop(index=table.index[::7]).reset_index(drop=True)
    split = variance_split(table, "score")
    components = {"agent": "0 + C(agent)", "dialog": "0 + C(dialog)"}
    formulas = {"re_formula": "1", "vc_formula": components}
    model = smf.mixedlm("score ~ 1", table, groups="system", **formulas).fit()
    expected = [model.cov_re.iloc[0, 0], *model.vcomp, model.scale]
    np.testing.assert_allclose(split["variance"], expected, rtol=5e-3)
    groups = nest_groups(table, table["score"], LEVELS)
    likelihood = restricted_log_likelihood(split["share"].to_numpy(), groups)
    assert model.llf - 1e-6 <= likelihood == pytest.approx(model.llf, abs=1e-3)


def test_intervals_end_where_a_search_of_the_whole_profile_says():
    """Dense matrices and a grid. From one start alone the search ended half way on this table."""
    table = nested(systems=1, agents=4, dialogs=5, turns=3, spread=(1, 0, 0, 1), seed=3)
    table["score"] = np.exp(table["score"])
    y = table["score"].to_numpy()
    levels = ["agent", "dialog", "row"]
    same = [np.equal.outer(table[c].to_numpy(), table[c].to_numpy()) for c in levels]

    def likelihood(shares):
        covariance = np.tensordot(shares, same, axes=1)
        inverse = np.linalg.inv(covariance)
        centered = y - inverse.sum(axis=0) @ y / inverse.sum()
        free = len(y) - 1
        spread = free * np.log(centered @ inverse @ centered / free) + np.log(
            inverse.sum()
        )
        return -0.5 * (spread + np.linalg.slogdet(covariance)[1])

    def profile(value, level):
        rest = [
            (1 - value) * np.array([part, 1 - part])
            for part in np.linspace(0, 0.9999, 400)
        ]
        return max(likelihood(np.insert(two, level, value)) for two in rest)

    split = variance_split(table, "score", levels=levels[:2])
    best = split["share"].to_numpy()
    groups = nest_groups(table, table["score"], levels[:2])
    gap = likelihood(best) - likelihood(np.full(3, 1 / 3))
    at_best = restricted_log_likelihood(best, groups)
    at_thirds = restricted_log_likelihood(np.full(3, 1 / 3), groups)
    assert at_best - at_thirds == pytest.approx(gap, abs=1e-9), (
        "dense matrices say the same"
    )
    best = likelihood(best)
    for level, row in enumerate(split.itertuples()):
        for end in (row.share_low, row.share_high):
            if 0 < end < 1:
                drop = best - profile(end, level)
                assert drop == pytest.approx(stats.chi2.ppf(0.95, 1) / 2, abs=0.01), (
                    row.Index
                )


def test_shares_and_intervals_are_consistent():
    table = nested(seed=5)
    table.loc[:9, "score"] = np.nan
    split = variance_split(table, "score")
    assert split.attrs == {"rows": len(table) - 10, "dropped": 10}
    assert split.index.tolist() == ["system", "agent", "dialog", "turn"]
    np.testing.assert_allclose(
        split["icc"].dropna(), split["share"].cumsum()[:3], atol=1e-12
    )
    noise = variance_split(nested(spread=(0, 0, 0, 1), seed=2), "score")
    assert noise.loc["agent", "share_low"] == 0.0 and noise.loc["turn", "share"] > 0.85
    assert noise.loc["turn", "share_high"] == 1.0


@pytest.mark.parametrize("trait", ["system", "agent"])
@pytest.mark.parametrize("seed", range(4))
def test_a_strong_trait_is_split_and_not_lost_at_the_edge(trait, seed):
    spread = (1.0, 0.0, 0.0, 0.1) if trait == "system" else (0.0, 1.0, 0.0, 0.1)
    table = nested(systems=3, agents=2, dialogs=4, turns=5, spread=spread, seed=seed)
    split = variance_split(table, "score")
    assert np.isfinite(split["variance"]).all()
    assert split.loc[["system", "agent"], "share"].sum() > 0.9
    # An independent search over log variances, without bounds, finds nothing better.
    groups = nest_groups(table, table["score"], LEVELS)

    def cost(logs):
        variances = np.exp([*logs, 0.0])
        return -restricted_log_likelihood(variances / variances.sum(), groups)

    starts = np.random.default_rng(seed).normal(0, 4, (4, 3))
    best = min(
        optimize.minimize(cost, start, method="Nelder-Mead").fun for start in starts
    )
    assert restricted_log_likelihood(split["share"].to_numpy(), groups) >= -best - 1e-6
    # What is left to turns is known without a model: the mean square within dialogs.
    within = table.groupby("dialog")["score"].var().mean()
    assert split.loc["turn", "variance"] == pytest.approx(within, rel=0.1)
    low, high = split.loc["turn", ["share_low", "share_high"]]
    assert 0 < low < split.loc["turn", "share"] < high < 0.5


def test_levels_that_cannot_be_separated_say_so():
    table = nested(systems=4, agents=1, dialogs=3, turns=2)
    split = variance_split(table, "score")
    assert split.loc["agent", "note"] == "not separable: one agent per system"
    assert np.isnan(split.loc["agent", "share"]) and split.loc["system", "share"] >= 0


UNSPLIT = [
    ("aaaaa", range(5), "cannot be split"),
    ("abcde", range(5), "one score per agent"),
    ("aabb", [1.0] * 4, "same in every row"),
    ("aabb", [1.0, np.inf, 2, 3], "or infinite"),
]


@pytest.mark.parametrize(("agents", "scores", "message"), UNSPLIT)
def test_data_without_variance_to_split_gives_a_clear_message(agents, scores, message):
    with pytest.raises(DataError, match=message):
        variance_split(pd.DataFrame({"agent": list(agents), "score": scores}), "score")


def crossed_ratings(taste, rng, raters=5, systems=6, dialogs=12):
    """Every rater rates every reply; `taste` is the standard deviation of rater x system."""
    shape = (raters, systems, dialogs)
    values = rng.normal(size=shape) + rng.normal(size=(1, systems, dialogs))
    values += rng.normal(size=(raters, 1, 1)) + rng.normal(
        scale=taste, size=(raters, systems, 1)
    )
    index = pd.MultiIndex.from_product(
        map(range, shape), names=["rater", "system", "dialog"]
    )
    table = pd.Series(values.ravel(), index, name="rating").reset_index()
    return table.assign(item=table["system"] * dialogs + table["dialog"])


@pytest.mark.filterwarnings("ignore:The design matrix")
def test_rater_by_system_is_the_analysis_of_variance_where_all_rate_all():
    """Mean squares of statsmodels: (MS(rater x system) - MS(rest)) / dialogs."""
    table = crossed_ratings(0.5, np.random.default_rng(8))
    fit = smf.ols("rating ~ C(item) + C(rater) + C(rater):C(system)", table).fit()
    main = smf.ols("rating ~ C(item) + C(rater)", table).fit()
    f, p, df = fit.compare_f_test(main)
    assert df == 4 * 5
    result = rater_variance(table)
    assert result.rating == pytest.approx(fit.mse_resid)
    assert result.rater_by_system == pytest.approx(fit.mse_resid * (f - 1) / 12)
    assert result.p == pytest.approx(p)
    assert (result.raters, result.ratings) == (5, 360)


def test_the_interval_of_rater_by_system_covers_also_where_each_reply_has_three_raters():
    rng = np.random.default_rng(9)
    covered = []
    for _ in range(60):
        table = crossed_ratings(0.4, rng)
        order = rng.permutation(len(table))
        three = table.iloc[order].groupby("item").head(3)
        result = rater_variance(three)
        covered.append(result.low <= 0.16 <= result.high)
    assert np.mean(covered) > 0.87
    with pytest.raises(DataError, match="two raters and two systems"):
        rater_variance(table[table["rater"] == 0])
    with pytest.raises(DataError, match="is missing"):
        rater_variance(table.assign(rater=table["rater"].where(table["rater"] > 0)))
