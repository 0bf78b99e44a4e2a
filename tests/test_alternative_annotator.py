"""The alternative annotator test: against its authors' code, by hand and by simulation."""

import numpy as np
import pandas as pd
import pytest

from lib.analysis.alternative_annotator import alternative_annotator_test

# seed, items, raters, judge's noise, cost -> winning rate and advantage by the authors' `alt_test`
# (scoring "neg_rmse"), run once on the same ratings.
AUTHORS = [
    (0, 60, 3, 1.0, 0.2, 0.6666666666666666, 0.7490982366313133),
    (1, 80, 4, 2.0, 0.1, 0.0, 0.5549122760048547),
    (2, 50, 3, 3.0, 0.15, 0.0, 0.4493717664449372),
    (3, 120, 5, 1.5, 0.1, 0.0, 0.5117561414639957),
]


def rated_items(seed, items, raters, noise):
    """Ratings from 1 to 5, a fifth of them missing, and a judge's."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(3, 1, items)
    ratings = np.round(quality[:, None] + rng.normal(0, 1, (items, raters))).clip(1, 5)
    judge = np.round(quality + rng.normal(0, noise, items)).clip(1, 5)
    missing = rng.random((items, raters)) < 0.2
    return pd.DataFrame(np.where(missing, np.nan, ratings)), pd.Series(judge)


@pytest.mark.parametrize(
    "seed, items, raters, noise, cost, winning_rate, advantage", AUTHORS
)
def test_equals_the_authors_code(
    seed, items, raters, noise, cost, winning_rate, advantage
):
    test = alternative_annotator_test(
        *rated_items(seed, items, raters, noise), cost=cost
    )
    assert test.winning_rate == pytest.approx(winning_rate)
    assert test.advantage == pytest.approx(advantage)
    assert test.reason == ""


def test_each_rater_is_compared_with_the_others_by_hand():
    ratings = pd.DataFrame(
        {"a": [1.0, 5.0] * 20, "b": [2.0, 4.0] * 20, "c": [3.0, 3.0] * 20}
    )
    judge = pd.Series([2.0, 3.0] * 20)
    raters = alternative_annotator_test(ratings, judge).raters
    # Odd items: a is 1, the others 2 and 3; the judge's 2 is nearer. Even: a is 5, others 4 and 3.
    assert raters.loc["a", "advantage"] == 1
    # Odd items: b and the judge say 2: a tie. Even: others 5 and 3; b's 4 is nearer than 3.
    assert raters.loc["b", "advantage"] == 0.5
    assert raters["items"].tolist() == [40, 40, 40]


def test_a_judge_that_knows_the_truth_replaces_all_and_a_random_one_none():
    rng = np.random.default_rng(4)
    quality = rng.normal(size=200)
    ratings = pd.DataFrame(
        {name: quality + rng.normal(scale=0.7, size=200) for name in "abcd"}
    )
    noise = pd.Series(rng.normal(size=200))
    assert alternative_annotator_test(ratings, pd.Series(quality)).winning_rate == 1
    assert alternative_annotator_test(ratings, noise).winning_rate == 0


def test_items_of_one_dialog_count_as_one():
    """Repeating each item ten times must not make a judge pass."""
    ratings, judge = rated_items(seed=0, items=60, raters=3, noise=1.0)
    dialogs = pd.Series(np.tile(np.arange(60), 10))
    repeated = pd.concat([ratings] * 10, ignore_index=True)
    again = pd.concat([judge] * 10, ignore_index=True)
    once = alternative_annotator_test(ratings, judge).raters
    by_dialog = alternative_annotator_test(repeated, again, clusters=dialogs).raters
    by_item = alternative_annotator_test(repeated, again).raters
    np.testing.assert_allclose(by_dialog["p"], once["p"], rtol=1e-6)
    assert (by_item["p"] < by_dialog["p"]).sum() >= 2


def test_at_the_bound_one_rater_in_twenty_is_replaced_by_chance():
    rng = np.random.default_rng(6)
    passed = []
    for _ in range(300):
        quality = np.repeat(rng.normal(size=40), 5)  # five items a dialog
        shared = np.repeat(rng.normal(size=(40, 3)), 5, axis=0)
        ratings = pd.DataFrame(quality[:, None] + shared + rng.normal(size=(200, 3)))
        judge = pd.Series(
            quality + np.repeat(rng.normal(size=40), 5) + rng.normal(size=200)
        )
        dialogs = pd.Series(np.repeat(np.arange(40), 5))
        test = alternative_annotator_test(ratings, judge, clusters=dialogs, cost=0.0)
        passed.append((test.raters["p"] <= 0.05).mean())
    assert 0.02 <= np.mean(passed) <= 0.08


@pytest.mark.parametrize(
    "items, raters, reason", [(60, 2, "2 raters"), (20, 3, "no rater has 30")]
)
def test_too_few_raters_or_items_are_a_reason_and_no_number(items, raters, reason):
    test = alternative_annotator_test(*rated_items(0, items, raters, 1.0))
    assert np.isnan(test.winning_rate) and np.isnan(test.advantage)
    assert reason in test.reason
    assert test.raters.empty
