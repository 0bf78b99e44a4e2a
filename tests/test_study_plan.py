"""What a design finds and costs, against simulated ratings and against formulas of others."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.power import TTestIndPower

from lib.analysis import agreement, study_plan
from lib.data import DataError


def ratings_of(variance, shift, dialogs, replies, raters, rng):
    """Two systems that lie `shift` apart, with the given variances."""
    size = (2, dialogs, replies, raters)
    values = rng.normal(0, variance["rating"] ** 0.5, size)
    values += rng.normal(0, variance["reply"] ** 0.5, size[:3])[..., None]
    values += rng.normal(0, variance["dialog"] ** 0.5, size[:2])[..., None, None]
    values[1] += shift
    items = pd.MultiIndex.from_product([("a", "b"), range(dialogs), range(replies)])
    items = items.to_frame(index=False, name=["system", "dialog", "reply"])
    items["dialog"] = items["system"] + items["dialog"].astype(str)
    return items, values.reshape(len(items), raters)


@pytest.mark.parametrize("dialogs, replies, raters", [(20, 1, 1), (12, 4, 3)])
def test_detectable_is_found_as_often_as_it_says(dialogs, replies, raters):
    variance = {"dialog": 0.4, "reply": 0.3, "rating": 0.9}
    plan = study_plan.study_plan(
        variance, dialogs=dialogs, replies=replies, raters=raters
    )
    noise = (
        0.4 / dialogs + 0.3 / (dialogs * replies) + 0.9 / (dialogs * replies * raters)
    )
    effect = plan["detectable"] / np.sqrt(noise * dialogs)
    peer = TTestIndPower().power(effect, nobs1=dialogs, alpha=0.05)
    assert peer == pytest.approx(0.8, abs=0.01)
    rng = np.random.default_rng(1)
    significant = []
    for _ in range(400):
        items, values = ratings_of(
            variance, plan["detectable"], dialogs, replies, raters, rng
        )
        significant.append(
            study_plan.compare_systems(items.assign(human=values.mean(axis=1))) <= 0.05
        )
    assert np.mean(significant) == pytest.approx(0.8, abs=0.06)


def test_costs_and_reliability():
    variance = {"system": 0.2, "dialog": 0.1, "rating": 0.7}
    prices = {"dialog_price": 2.0, "rating_price": 0.5, "judge_price": 0.25}
    plan = study_plan.study_plan(
        variance, systems=3, dialogs=10, replies=4, raters=5, **prices
    )
    assert plan[["ratings", "people", "judge"]].tolist() == [600, 360, 90]
    assert plan["reliability"] == pytest.approx(agreement.spearman_brown(0.3, 5))
    assert plan["noise ceiling"] == pytest.approx(plan["reliability"] ** 0.5)
    assert plan["system reliability"] == pytest.approx(
        0.2 / (0.2 + 0.1 / 10 + 0.7 / 200)
    )
    with pytest.raises(DataError, match="two dialogs or more"):
        study_plan.study_plan(variance, dialogs=1, raters=1)


@pytest.mark.parametrize("people", [1, 2.5, 6])
def test_a_judge_as_reliable_as_some_people_is_worth_as_many(people):
    """Its reliability, and the correlation with a mean of four that follows from it."""
    of_judge = agreement.spearman_brown(0.3, people)
    of_four = agreement.spearman_brown(0.3, 4)
    correlation = np.sqrt(of_judge * of_four)
    raters = study_plan.equivalent_raters(correlation, reliability=0.3, raters=4)
    assert raters == pytest.approx(people)
    assert study_plan.equivalent_raters(0.95, reliability=0.3, raters=4) == np.inf


def test_redrawn_studies_keep_dialogs_whole_and_count_false_alarms():
    rng = np.random.default_rng(0)
    items, values = ratings_of(
        {"dialog": 0.5, "reply": 0.2, "rating": 1.0}, 0, 40, 2, 3, rng
    )
    values[0, 1:] = np.nan
    study = study_plan.redraw_study(items, values, 25, 2, rng)
    assert study.groupby("dialog").size().tolist() == [2] * 25
    assert set(study.loc[study.index == 0, "human"]) <= {values[0, 0]}
    assert study["human"].notna().all()
    means = pd.DataFrame(values).groupby(items["system"]).transform("mean").to_numpy()
    options = {"dialogs": 50, "raters": 1, "runs": 300}
    false = study_plan.simulated_power(
        items, values - means, study_plan.compare_systems, **options
    )
    assert 0.01 <= false <= 0.10
    shifted = values - means + 2.0 * (items[["system"]] == "b").to_numpy()
    assert (
        study_plan.simulated_power(
            items, shifted, study_plan.compare_systems, **options
        )
        > 0.99
    )


@pytest.mark.parametrize(
    "dialogs, raters, found", [(180, 1, 0.93), (60, 3, 0.62), (20, 9, 0.54)]
)
def test_a_taste_of_raters_for_systems_turns_the_order_of_designs_round(
    dialogs, raters, found
):
    """The variances of FED's dialogs, with .05 for rater x system: figures of the specification."""
    variance = {"dialog": 0.17, "rating": 0.84, "rater x system": 0.05}
    plan = study_plan.study_plan(variance, dialogs=dialogs, raters=raters)
    assert plan["detectable"] == pytest.approx(found, abs=0.025)
    noise = 0.17 / dialogs + 0.84 / (dialogs * raters) + 0.05 / raters
    power = TTestIndPower().power(
        plan["detectable"] / np.sqrt(noise * dialogs), dialogs, 0.05
    )
    assert power == pytest.approx(0.8, abs=0.01)


def test_the_worth_of_a_judge_has_an_interval_that_covers():
    """Judges as good as two raters: most of the intervals hold 2."""
    rng = np.random.default_rng(3)
    covered = []
    for run in range(60):
        true = rng.normal(size=150)
        ratings = true[:, None] + rng.normal(scale=1.5, size=(150, 4))
        judge = true + rng.normal(scale=1.5 / 2**0.5, size=150)
        worth = study_plan.equivalent_raters_interval(
            judge, ratings, resamples=200, seed=run
        )
        covered.append(worth.low <= 2 <= worth.high)
    assert np.mean(covered) > 0.85
    long = pd.DataFrame(ratings).rename_axis("item").reset_index()
    long = long.melt("item", var_name="annotator", value_name="rating")
    alpha = agreement.krippendorff_alpha(
        long.assign(dimension="overall"), "overall", resamples=9
    )
    r = np.corrcoef(judge, ratings.mean(axis=1))[0, 1]
    assert worth.value == pytest.approx(study_plan.equivalent_raters(r, alpha.value, 4))


def test_where_two_systems_do_not_differ_the_power_is_the_level():
    rng = np.random.default_rng(4)
    items, values = ratings_of(
        {"dialog": 0.5, "reply": 0, "rating": 1.0}, 0.4, 40, 1, 3, rng
    )
    equal = study_plan.set_difference(items, values, difference=0.0)
    options = {"dialogs": 60, "raters": 3, "runs": 400}
    test = study_plan.compare_systems
    assert study_plan.simulated_power(items, equal, test, **options) == pytest.approx(
        0.05, abs=0.035
    )
    apart = study_plan.set_difference(items, values, difference=0.7)
    means = pd.Series(apart.mean(axis=1)).groupby(items["system"]).mean()
    assert means["b"] - means["a"] == pytest.approx(0.7)
    assert apart.mean() == pytest.approx(values.mean())
    assert study_plan.simulated_power(items, apart, test, **options) > 0.6
    with pytest.raises(DataError, match="of two systems, not of 1"):
        study_plan.set_difference(items.assign(system="a"), values, 0.0)


def test_a_context_drawn_twice_is_rated_anew():
    """80 contexts from 40, one of three ratings each: half of the draws are repeats.

    Two equal systems answer the same contexts. Were a repeat to bring the rating that the context
    was given before, the test would take one rating for two and find too many differences.
    """
    rng = np.random.default_rng(5)
    items = pd.DataFrame({"dialog": np.repeat(np.arange(40), 2)})
    items["system"] = np.tile(["a", "b"], 40)
    equal = study_plan.set_difference(items, rng.normal(size=(80, 3)), difference=0.0)
    level = study_plan.simulated_power(
        items, equal, study_plan.compare_systems, dialogs=80, raters=1, runs=600
    )
    assert level == pytest.approx(0.05, abs=0.025)

    one_dialog = pd.DataFrame({"dialog": ["d"], "system": ["a"]})
    three_ratings = np.array([[1.0, 2.0, 3.0]])
    study = study_plan.redraw_study(one_dialog, three_ratings, 3000, 1, rng)
    shares = study["human"].value_counts(normalize=True)
    assert shares[[1.0, 2.0, 3.0]].to_numpy() == pytest.approx(1 / 3, abs=0.03)
