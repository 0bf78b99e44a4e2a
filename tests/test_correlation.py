"""Coefficients against their definitions; levels; edge cases."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.analysis import correlation


@pytest.mark.parametrize("method", correlation.METHODS)
def test_coefficient_equals_its_definition(method):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 40).astype(float)
    y = rng.integers(0, 4, 40).astype(float)
    result = correlation.coefficient(x, y, method).value
    if method == "spearman":
        x = stats.rankdata(x)
        y = stats.rankdata(y)
    if method == "kendall":  # tau-b from signs of all pairs
        x = np.sign(x[:, None] - x).ravel()
        y = np.sign(y[:, None] - y).ravel()
    x = x - x.mean()
    y = y - y.mean()
    expected = x @ y / np.sqrt((x @ x) * (y @ y))
    assert result == pytest.approx(expected)


def turns_of_three_systems():
    turns = pd.DataFrame({"system": list("AAAABBBBCC"), "dialog": list("1112333455")})
    turns["score"] = [1, 2, np.nan, 4, 5, 6, 7, 8, 0, 1.0]
    turns["human_overall"] = [1, 3, 9, 2, 5, 4, 5, np.nan, 1, 2.0]
    return turns.assign(agent=turns["system"].str.lower())


MEANS = {
    "dialog": ([1.5, 4, 6, 0.5], [2, 2, 14 / 3, 1.5]),
    "system": ([7 / 3, 6, 0.5], [2, 14 / 3, 1.5]),
}


@pytest.mark.parametrize("level", MEANS)
def test_levels_average_complete_items_only(level):
    """Items 2 (no score) and 7 (no rating) enter neither mean; dialog 4 disappears."""
    turns = turns_of_three_systems()
    x, y = MEANS[level]
    table = correlation.correlate(
        turns["score"], turns["human_overall"], "pearson", level, turns
    )
    row = table.iloc[0]
    assert row["value"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert (row["n"], row["missing_score"], row["missing_human"]) == (len(x), 1, 1)


UNDEFINED = [
    ([2, 2, 2], [1, 2, 3], "kendall", "all scores equal"),
    ([1, 2, 3], [2, 2, 2], "pearson", "all ratings equal"),
    ([], [], "spearman", "fewer than 2 pairs"),
]


@pytest.mark.parametrize("x, y, method, reason", UNDEFINED)
def test_undefined_is_nan_with_a_reason(x, y, method, reason):
    result = correlation.coefficient(x, y, method)
    assert np.isnan(result.value) and np.isnan(result.p)
    assert result.reason == reason


def test_infinite_scores_rank_last_and_two_systems_are_no_evidence():
    x = [1, np.inf, 3, -np.inf]
    y = [2, 4, 3, 1]
    assert correlation.coefficient(x, y, "spearman").value == pytest.approx(1)
    assert correlation.coefficient(x, y, "kendall").value == pytest.approx(1)
    two = correlation.coefficient([1.0, 1.1], [5.0, 2.0])
    assert (round(two.value, 9), two.p) == (-1, 1)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_partial_correlation_is_that_of_the_residuals(method):
    rng = np.random.default_rng(2)
    z = rng.normal(size=80)
    x = z + rng.normal(size=80)
    y = z + rng.normal(size=80)
    result = correlation.partial_correlation(
        np.r_[x, np.nan], np.r_[y, 1], np.r_[z, 1], method
    )
    if method == "spearman":
        x, y, z = (stats.rankdata(v) for v in (x, y, z))
    residuals = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    assert result == pytest.approx(np.corrcoef(*residuals)[0, 1])
    assert np.isnan(correlation.partial_correlation(x, y, np.ones(80), method))
    assert np.isnan(correlation.partial_correlation(z, y, z, method))


def test_errors_say_what_to_do():
    turns = turns_of_three_systems()
    pair = turns["score"], turns["human_overall"]
    with pytest.raises(ValueError, match="choose from pearson, spearman, kendall"):
        correlation.coefficient([1, 2], [1, 2], "taub")
    with pytest.raises(ValueError, match="align"):
        correlation.coefficient([1, 2], [1, 2, 3])
    with pytest.raises(
        ValueError, match="1 of 3 rows have no cluster, the first is row 1"
    ):
        correlation.complete_rows([1, 2, 3], clusters=["a", None, "b"])
    with pytest.raises(ValueError, match="pass the turn or dialog table"):
        correlation.correlate(*pair, level="system")
    with pytest.raises(ValueError, match="choose from turn, dialog, agent, system"):
        correlation.correlate(*pair, level="corpus")
    with pytest.raises(ValueError, match="different indexes"):
        correlation.correlate(pair[0], pair[1].iloc[1:])
