"""Two versions: what was planted is found as often as stated, and what is absent is not."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lib.report.__main__ as command
from lib.data import DataError
from lib.report.verdict import bootstrap_units, condition_holds, differences, verdict

METRICS, TURNS = 8, 4


def two_versions(rng, dialogs, shift, paired):
    """Scores of two versions; the first metric is higher in B by `shift`, the others are alike."""
    dialog, topic = np.repeat(np.arange(dialogs), TURNS), rng.standard_normal((dialogs, METRICS))
    parts = []
    for name in "AB":
        topic = topic if paired else rng.standard_normal((dialogs, METRICS))
        of_dialog = topic + 0.5 * rng.standard_normal((dialogs, METRICS))
        scores = of_dialog[dialog] + rng.standard_normal((len(dialog), METRICS))
        scores[:, 0] += shift * (name == "B")
        parts.append(pd.DataFrame(scores).add_prefix("m").assign(system=name, agent=name))
    turns = pd.concat(parts, ignore_index=True)
    said = ("" if paired else turns["system"]) + pd.Series(np.tile(dialog, 2).astype(str))
    turns = turns.assign(dialog=said, context=[[text] for text in said])
    return turns.assign(turn=np.tile(np.arange(TURNS), 2 * dialogs)), turns.filter(regex="^m")


@pytest.mark.parametrize("paired", [True, False])
def test_a_planted_difference_is_found_at_its_power_and_an_absent_one_is_not(paired):
    dialogs, runs, rng = 40, 100, np.random.default_rng(4)
    quantiles = stats.t.ppf(1 - 0.05 / 2 / METRICS, dialogs - 1) + stats.t.ppf(0.8, dialogs - 1)
    # From the variances that `two_versions` draws with.
    planted = quantiles * np.sqrt(2 * (0.25 + 1 / TURNS + (not paired)) / dialogs)
    calls, first, stated = {0.0: [], planted: []}, [], []
    for seed in range(runs):
        for shift, called in calls.items():
            turns, scores = two_versions(rng, dialogs, shift, paired)
            table = differences(turns, scores, scores.columns, resamples=300, seed=seed)
            called.append(verdict(table)["verdict"].item())
            stated.append(table["detectable"][0])
        first.append(table["p_adjusted"][0] <= 0.05 and table["difference"][0] > 0)
    assert (table["paired"] == (dialogs if paired else 0)).all()
    assert np.mean(stated) == pytest.approx(planted, rel=0.05)
    assert calls[0.0].count("no difference shown") >= 91  # 95 expected; below 91 once in 30 runs
    assert 70 <= sum(first) <= 90  # 80 expected
    assert calls[planted].count("better") >= 65  # mixed, where a false one joins it


def test_the_interval_is_that_of_a_paired_t_test_over_openings():
    rng = np.random.default_rng(0)
    turns, scores = two_versions(rng, 30, 0.4, paired=True)
    row = differences(turns, scores[["m0"]], resamples=20_000).iloc[0]
    means = scores["m0"].groupby([turns["system"], turns["dialog"]]).mean().unstack()
    test = stats.ttest_rel(means.loc["B"], means.loc["A"])
    assert row["difference"] == pytest.approx(np.mean(means.loc["B"] - means.loc["A"]))
    assert row[["low", "high"]].tolist() == pytest.approx([*test.confidence_interval()], abs=0.01)
    assert row["p"] == pytest.approx(test.pvalue, rel=0.1)


def test_greetings_pair_nothing_and_an_opening_needs_two_versions():
    turns = pd.DataFrame({"system": ["A", "B"] * 15, "agent": "x", "turn": 1})
    turns["dialog"] = [str(k) for k in range(30)]
    assert bootstrap_units(turns.assign(context=[["Hi"]] * 30)).nunique() == 30
    assert (
        bootstrap_units(turns.assign(context=[[f"Q{k // 2}"] for k in range(30)])).nunique() == 15
    )
    assert bootstrap_units(turns.assign(context=[[]] * 30)).nunique() == 30


CALLS = [
    ({"human_fun": 4.0, "good": 0.0}, "better", "higher than A in fun"),
    ({"human_fun": 2.0, "good": 9.0}, "worse", "B is lower than A in fun"),
    ({"human_fun": 3.0, "plain": 9.0}, "no difference shown", "No difference shown in fun"),
    ({"good": -9.0, "human_fun": None}, "worse", "lower than A in good"),
    ({"good": 9.0, "fine": -9.0, "human_fun": None}, "mixed", "lower than A in fine"),
    ({"plain": 9.0, "human_fun": None, "good": None, "fine": None}, "no verdict", "no ratings"),
]


@pytest.mark.parametrize("of_b, call, word", CALLS)
def test_ratings_decide_before_metrics_and_descriptions_never(of_b, call, word):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(3, 0.1, (60, 3)), columns=["good", "fine", "plain"])
    table.insert(0, "human_fun", rng.normal(3, 0.1, 60))
    second = np.arange(60) % 2 == 1
    for name, value in of_b.items():
        if value is None:
            table[name] = np.nan
        else:
            table.loc[second, name] += value - 3
    turns = table[["human_fun"]].assign(system=np.where(second, "B", "A"), agent="x", turn=0)
    turns = turns.assign(dialog=[str(k // 2) for k in range(60)], context=[[]] * 60)
    found = verdict(differences(turns, table[["good", "fine", "plain"]], ["good", "fine"]))
    assert found["verdict"].item() == call and word in found["said"].item()


def test_one_dialog_and_equal_scores_give_a_reason_and_no_p():
    turns = pd.DataFrame({"system": list("AABB"), "agent": "x", "dialog": list("1112"), "turn": 0})
    turns["context"] = [[]] * 4
    table = differences(turns, pd.DataFrame({"one": [1.0, 2, 3, 4]}))
    assert table["p"].isna().all() and table["reason"].item() == "fewer than 2 dialogs of a version"
    turns["dialog"] = list("1234")
    table = differences(turns, pd.DataFrame({"flat": [1.0] * 4}))
    assert table["p"].isna().all() and table["reason"].item() == "all scores equal"
    assert differences(turns[:2], pd.DataFrame({"flat": [1.0] * 2})).empty


def test_a_release_stops_on_the_verdict_that_it_names():
    calls = pd.DataFrame({"version": ["new", "b2"], "verdict": ["worse", "mixed"]})
    for condition, stops in {
        "b worse": True, "NEW worse": True, "b better": False, "b not better": True,
        "b2 worse": False, "b2 not mixed": False, "all mixed": True, "all better": False,
    }.items():  # fmt: skip
        assert condition_holds(calls, condition) is stops, condition
    for wrong in ("", "worse", "b bad", "c worse", "b  "):
        with pytest.raises(DataError, match="new, b2"):
            condition_holds(calls, wrong)
    with pytest.raises(DataError):
        condition_holds(calls[:0], "b worse")


def test_the_exit_code_is_3_where_the_condition_holds(tmp_path, monkeypatch):
    files = [tmp_path / name for name in ("old.txt", "new.txt")]
    for file in files:
        file.write_text("User: Hi\nBot: Hello\n")
    call = {"version": "new", "against": "old", "verdict": "worse", "said": ""}
    monkeypatch.setattr(command, "executed", lambda parameters: {"cells": []})
    monkeypatch.setattr(command, "tables", lambda ran: {command.VERDICT: [call]})
    given = [*map(str, files), "--out", str(tmp_path / "page.html"), "--fail-if"]
    codes = [command.main([*given, condition])
             for condition in ("b worse", "new not worse", "b terrible")]  # fmt: skip
    assert codes == [3, 0, 2]
