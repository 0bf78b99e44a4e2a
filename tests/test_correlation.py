"""Coefficients against scipy and the published UniEval figures; edge cases."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import analysis

# Printed in the README of maszhongming/UniEval (reproduce/): Pearson, Spearman, Kendall.
UNIEVAL_PUBLISHED = {
    "naturalness": (0.443666, 0.513986, 0.373973),
    "coherence": (0.595143, 0.612942, 0.465915),
    "engagingness": (0.55651, 0.604739, 0.455941),
    "groundedness": (0.536209, 0.574954, 0.451533),
    "understandability": (0.380038, 0.467807, 0.360741),
    "overall": (0.632796, 0.662583, 0.487272),
}


@pytest.fixture(scope="module")
def unieval(public_data):
    items = json.loads((public_data / "unieval/topical_chat_result.json").read_text())
    frame = pd.DataFrame(
        [
            {"system": item["system_id"], "dialog": item["source"]}
            | {f"human_{name}": value for name, value in item["scores"].items()}
            | {f"score_{name}": value for name, value in item["predict_scores"].items()}
            for item in items
        ]
    )
    return frame.assign(agent=frame["system"])


@pytest.mark.public
@pytest.mark.parametrize("dimension", UNIEVAL_PUBLISHED)
def test_unieval_predictions_give_the_published_correlations(unieval, dimension):
    table = analysis.correlate(unieval[f"score_{dimension}"], unieval[f"human_{dimension}"])
    assert table["value"].to_numpy() == pytest.approx(UNIEVAL_PUBLISHED[dimension], abs=1e-6)
    assert table["n"].eq(360).all()


@pytest.mark.parametrize("method", analysis.METHODS)
def test_coefficient_equals_its_definition(method):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, 40).astype(float), rng.integers(0, 4, 40).astype(float)
    x_, y_ = (stats.rankdata(x), stats.rankdata(y)) if method == "spearman" else (x, y)
    if method == "kendall":  # tau-b from signs of all pairs
        x_ = np.sign(x[:, None] - x).ravel()
        y_ = np.sign(y[:, None] - y).ravel()
        expected = x_ @ y_ / np.sqrt((x_ @ x_) * (y_ @ y_))
    else:
        expected = np.cov(x_, y_)[0, 1] / np.sqrt(x_.var(ddof=1) * y_.var(ddof=1))
    assert analysis.coefficient(x, y, method).value == pytest.approx(expected)


def turns_of_two_systems():
    return pd.DataFrame(
        {
            "system": list("AAAABBBBCC"),
            "agent": list("aaaabbbbcc"),
            "dialog": list("1112333455"),
            "score": [1, 2, np.nan, 4, 5, 6, 7, 8, 0, 1.0],
            "human_overall": [1, 3, 9, 2, 5, 4, 5, np.nan, 1, 2.0],
        }
    )


@pytest.mark.parametrize(
    "level, averaging, x, y",
    [
        # Items 2 (no score) and 7 (no rating) enter neither mean; dialog 4 disappears.
        ("dialog", "items", [1.5, 4, 6, 0.5], [2, 2, 14 / 3, 1.5]),
        ("system", "items", [7 / 3, 6, 0.5], [2, 14 / 3, 1.5]),
        ("system", "nested", [2.75, 6, 0.5], [2, 14 / 3, 1.5]),
    ],
)
def test_levels_average_complete_items_only(level, averaging, x, y):
    turns = turns_of_two_systems()
    table = analysis.correlate(
        turns["score"], turns["human_overall"], "pearson", level, turns, averaging
    )
    row = table.iloc[0]
    assert row["value"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert (row["n"], row["missing_score"], row["missing_human"]) == (len(x), 1, 1)


@pytest.mark.parametrize(
    "x, y, method, reason",
    [
        ([2, 2, 2], [1, 2, 3], "kendall", "all scores equal"),
        ([1, 2, 3], [2, 2, 2], "pearson", "all ratings equal"),
        ([1, np.inf, 3], [1, 2, 3], "pearson", "infinite value"),
        ([1, np.nan], [1, 2], "pearson", "fewer than 2 pairs"),
        ([], [], "spearman", "fewer than 2 pairs"),
    ],
)
def test_undefined_is_nan_with_a_reason(x, y, method, reason):
    result = analysis.coefficient(x, y, method)
    assert np.isnan(result.value) and np.isnan(result.p)
    assert result.reason == reason


def test_infinite_scores_rank_last_for_rank_coefficients():
    x, y = [1, np.inf, 3, -np.inf], [2, 4, 3, 1]
    assert analysis.coefficient(x, y, "spearman").value == pytest.approx(1)
    assert analysis.coefficient(x, y, "kendall").value == pytest.approx(1)


def test_two_systems_are_always_one_or_minus_one_without_evidence():
    result = analysis.coefficient([1.0, 1.1], [5.0, 2.0])
    assert result.value == pytest.approx(-1)
    assert result.p == 1


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="choose from pearson, spearman, kendall"):
        analysis.coefficient([1, 2], [1, 2], "taub")
    with pytest.raises(ValueError, match="align"):
        analysis.coefficient([1, 2], [1, 2, 3])
    turns = turns_of_two_systems()
    with pytest.raises(ValueError, match="pass the turn or dialog table"):
        analysis.correlate(turns["score"], turns["human_overall"], level="system")
    with pytest.raises(ValueError, match="choose from turn, dialog, agent, system"):
        analysis.correlate(turns["score"], turns["human_overall"], level="corpus")
    with pytest.raises(ValueError, match="different indexes"):
        analysis.correlate(turns["score"], turns["human_overall"].iloc[1:])
