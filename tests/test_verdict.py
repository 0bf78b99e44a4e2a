"""Two versions: what was planted is found as often as stated, and what is absent is not."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.data import DataError
from lib.report import validity
from lib.report.__main__ import main
from lib.report.verdict import (
    SAME,
    TOO_FEW,
    Verdict,
    bootstrap_units,
    condition_holds,
    differences,
    rule_name,
    verdicts,
)

METRICS = 8
TURNS = 4


def two_versions(rng, dialogs, shift, paired):
    """Scores of two versions; the first metric is higher in B by `shift`, the others are alike."""
    dialog = np.repeat(np.arange(dialogs), TURNS)
    topic = rng.standard_normal((dialogs, METRICS))
    tables = []
    for name in "AB":
        if not paired:
            topic = rng.standard_normal((dialogs, METRICS))
        of_dialog = topic + 0.5 * rng.standard_normal((dialogs, METRICS))
        scores = of_dialog[dialog] + rng.standard_normal((len(dialog), METRICS))
        if name == "B":
            scores[:, 0] += shift
        table = pd.DataFrame(scores).add_prefix("m").assign(system=name, agent=name)
        opening = pd.Series(dialog.astype(str))
        table["dialog"] = opening if paired else name + opening
        table["turn"] = np.tile(np.arange(TURNS), dialogs)
        tables.append(table)
    turns = pd.concat(tables, ignore_index=True)
    turns["context"] = [[text] for text in turns["dialog"]]
    return turns, turns.filter(regex="^m")


@pytest.mark.parametrize("paired", [True, False])
def test_a_planted_difference_is_found_at_its_power_and_an_absent_one_is_not(paired):
    dialogs = 40
    rng = np.random.default_rng(4)
    quantiles = stats.t.ppf(1 - 0.05 / 2 / METRICS, dialogs - 1) + stats.t.ppf(
        0.8, dialogs - 1
    )
    # From the variances that `two_versions` draws with.
    planted = quantiles * np.sqrt(2 * (0.25 + 1 / TURNS + (not paired)) / dialogs)
    calls = {0.0: [], planted: []}
    first = []
    stated = []
    for seed in range(100):
        for shift, called in calls.items():
            turns, scores = two_versions(rng, dialogs, shift, paired)
            table = differences(turns, scores, scores.columns, resamples=300, seed=seed)
            called.append(verdicts(table)[0].verdict)
            stated.append(table["detectable"][0])
        first.append(table["p_adjusted"][0] <= 0.05 and table["difference"][0] > 0)
    assert (table["paired"] == (dialogs if paired else 0)).all()
    assert np.mean(stated) == pytest.approx(planted, rel=0.05)
    assert (
        calls[0.0].count("no difference shown") >= 91
    )  # 95 expected; below 91 once in 30 runs
    assert 70 <= sum(first) <= 90  # 80 expected
    assert (
        calls[planted].count("leaning better") >= 65
    )  # mixed, where a false one joins it


def test_the_interval_is_that_of_a_paired_t_test_over_openings():
    rng = np.random.default_rng(0)
    turns, scores = two_versions(rng, 30, 0.4, paired=True)
    row = differences(turns, scores[["m0"]], resamples=20_000).iloc[0]
    means = scores["m0"].groupby([turns["system"], turns["dialog"]]).mean().unstack()
    test = stats.ttest_rel(means.loc["B"], means.loc["A"])
    assert row["difference"] == pytest.approx(np.mean(means.loc["B"] - means.loc["A"]))
    assert row[["low", "high"]].tolist() == pytest.approx(
        [*test.confidence_interval()], abs=0.01
    )
    assert row["p"] == pytest.approx(test.pvalue, rel=0.1)


def test_versions_of_unequal_size_and_missing_scores_keep_their_own_means():
    turns = pd.DataFrame(
        {"system": list("AAAABBC"), "agent": "x", "dialog": list("1123456")}
    )
    turns = turns.assign(turn=0, context=[[]] * 7)
    scores = pd.DataFrame({"m": [1.0, 2, np.nan, 6, 10, 20, 7]})
    table = differences(turns, scores).set_index("version")
    assert table.loc["B", ["mean", "mean_against", "difference"]].tolist() == [
        15,
        3,
        12,
    ]
    assert table.loc["B", ["dialogs", "paired", "reason"]].tolist() == [2, 0, ""]
    assert table.loc["C", ["mean", "dialogs", "reason"]].tolist() == [
        7,
        1,
        "fewer than 2 dialogs of a version",
    ]


def test_greetings_pair_nothing_and_an_opening_needs_two_versions():
    turns = pd.DataFrame({"system": ["A", "B"] * 15, "agent": "x", "turn": 1})
    turns["dialog"] = [str(k) for k in range(30)]
    pairs = [[f"Q{k // 2}"] for k in range(30)]
    assert bootstrap_units(turns.assign(context=[["Hi"]] * 30)).nunique() == 30
    assert bootstrap_units(turns.assign(context=pairs)).nunique() == 15
    assert bootstrap_units(turns.assign(context=[[]] * 30)).nunique() == 30


def test_ten_dialogs_with_one_opening_are_paired_and_eleven_are_a_greeting():
    for repeats, units in ((10, 1), (11, 22)):
        turns = pd.DataFrame({"system": ["A", "B"] * repeats, "agent": "x", "turn": 1})
        turns["dialog"] = [str(k) for k in range(2 * repeats)]
        assert (
            bootstrap_units(turns.assign(context=[["Tea?"]] * len(turns))).nunique()
            == units
        )


CALLS = [
    ({"human_fun": 4.0, "good": 0.0}, "better", "higher than A in fun"),
    ({"human_fun": 2.0, "good": 9.0}, "worse", "B is lower than A in fun"),
    (
        {"human_fun": 3.0, "plain": 9.0},
        "no difference shown",
        "No difference shown in fun",
    ),
    ({"good": -9.0, "human_fun": None}, "leaning worse", "lower than A in good"),
    ({"good": 9.0, "fine": -9.0, "human_fun": None}, "mixed", "lower than A in fine"),
    (
        {"plain": 9.0, "human_fun": None, "good": None, "fine": None},
        "no verdict",
        "There are no ratings. Not tested: good, fine (fewer than 2 dialogs",
    ),
]


@pytest.mark.parametrize("of_b, call, words", CALLS)
def test_ratings_decide_before_metrics_and_descriptions_never(of_b, call, words):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(3, 0.1, (60, 3)), columns=["good", "fine", "plain"])
    table.insert(0, "human_fun", rng.normal(3, 0.1, 60))
    is_second = np.arange(60) % 2 == 1
    for name, value in of_b.items():
        if value is None:
            table[name] = np.nan
        else:
            table.loc[is_second, name] += value - 3
    turns = table[["human_fun"]].assign(
        system=np.where(is_second, "B", "A"), agent="x", turn=0
    )
    turns = turns.assign(dialog=[str(k // 2) for k in range(60)], context=[[]] * 60)
    scores = table[["good", "fine", "plain"]]
    (verdict,) = verdicts(differences(turns, scores, ["good", "fine"]))
    assert verdict.verdict == call and words in verdict.explanation
    has_ratings = of_b.get("human_fun", 3.0) is not None
    if call == "no verdict":
        assert (verdict.decided_by, verdict.dialogs) == ("", 0)
    elif has_ratings:
        assert (verdict.decided_by, verdict.scores) == ("rating", ["human_fun"])
        assert np.isnan(verdict.wrong_share)
        assert (
            "This rests on at least 30 dialogs of each version." in verdict.explanation
        )
    else:
        assert verdict.decided_by == "metric" and "plain" not in verdict.scores


def test_a_verdict_states_the_dialogs_of_the_score_that_has_fewest():
    table = pd.DataFrame({"system": ["A", "B"] * 20, "agent": "x", "turn": 0})
    table["dialog"] = [str(k) for k in range(40)]
    table["human_fun"] = np.arange(40.0) % 3
    table["human_tone"] = table["human_fun"].where(table.index < 10)
    turns = table.assign(context=[[]] * 40)
    (verdict,) = verdicts(differences(turns, turns[[]]))
    assert "at least 5 dialogs of each version" in verdict.explanation


def test_one_dialog_and_equal_scores_give_a_reason_and_no_p():
    turns = pd.DataFrame(
        {"system": list("AABB"), "agent": "x", "dialog": list("1112"), "turn": 0}
    )
    turns["context"] = [[]] * 4
    table = differences(turns, pd.DataFrame({"one": [1.0, 2, 3, 4]}))
    assert table["p"].isna().all() and table["reason"].item() == TOO_FEW
    turns["dialog"] = list("1234")
    table = differences(turns, pd.DataFrame({"flat": [1.0] * 4}))
    assert table["p"].isna().all() and table["reason"].item() == SAME
    table = differences(turns[:2], pd.DataFrame({"flat": [1.0] * 2}))
    assert table.empty and verdicts(table) == []


def metric_verdict(rates, monkeypatch, metrics=("good",), difference=1.0):
    """The verdict by metrics that all differ, where the table of error rates is `rates`."""
    monkeypatch.setattr("lib.report.verdict.reference_table", lambda *_: rates)
    table = pd.DataFrame({"score": list(metrics)})
    table = table.assign(version="new", against="old", kind="metric", better="higher")
    table = table.assign(difference=difference, low=0.5, high=1.5, p_adjusted=0.01)
    table = table.assign(detectable=0.3, dialogs=30, paired=0, reason="")
    return verdicts(table)[0]


def rates_of(**columns):
    row = {"rule": "good", "pairs": 80, "right": 57, "silent": 20, "wrong": 3}
    row |= {"families": 6, "wrong_share": 0.05, "low": 0.01, "high": 0.09}
    return pd.DataFrame([row | columns])


def test_a_verdict_by_metrics_states_its_rate_and_only_leans_beyond_one_in_ten(
    monkeypatch,
):
    sure = metric_verdict(rates_of(), monkeypatch)
    assert sure.verdict == "better" and sure.wrong_share == 0.05
    assert (sure.wrong_calls, sure.calls) == (3, 60)
    assert "3 of 60 such calls on public corpora were wrong" in sure.error_rate
    assert "6 families" in sure.error_rate and "up to 9 of 100" in sure.error_rate
    assert "leaning" not in sure.error_rate
    one_call = rates_of(right=1, wrong=1, families=1)
    once = metric_verdict(one_call, monkeypatch).error_rate
    assert "1 of 2 such calls on public corpora was wrong" in once
    assert "1 family (" in once

    leaning = metric_verdict(rates_of(high=0.11), monkeypatch, difference=-1.0)
    assert leaning.verdict == "leaning worse"
    assert leaning.explanation.startswith("This leans to old.")
    assert "up to 11 of 100" in leaning.error_rate
    assert "a leaning, not a verdict" in leaning.error_rate
    one_family = metric_verdict(rates_of(low=np.nan, high=np.nan), monkeypatch)
    assert one_family.verdict == "leaning better"
    assert "nan" not in one_family.explanation + one_family.error_rate

    untested = metric_verdict(rates_of(), monkeypatch, metrics=["good", "fine"])
    assert untested.verdict == "leaning better" and np.isnan(untested.wrong_share)
    assert "never measured" in untested.error_rate


def test_metrics_that_only_describe_change_no_verdict():
    rng = np.random.default_rng(5)
    turns, scores = two_versions(rng, 40, 0.6, paired=False)
    alone = differences(turns, scores[["m0"]], ["m0"])
    beside = differences(turns, scores, ["m0"])
    of_rule = beside.set_index("score").loc["m0"]
    for column in ("p", "p_adjusted", "detectable"):
        assert of_rule[column] == pytest.approx(alone[column].item()), column


def test_no_p_is_below_that_of_all_signs_alike():
    """Of c pairs that all differ alike, a sign test has two of 2**c outcomes: 2**(1 - c)."""
    table = pd.DataFrame({"agent": "x", "turn": 0, "dialog": list("12345")})
    table["context"] = [[f"Opening {k}"] for k in range(5)]
    old = table.assign(system="old", human_fun=[1.0, 2, 3, 4, 5])
    new = old.assign(system="new", human_fun=[2.0, 3, 4, 5, 6.001])
    turns = pd.concat([old, new], ignore_index=True)
    assert differences(turns, turns[[]])["p"].item() == 2**-4


def test_identical_versions_and_single_dialogs_say_so():
    table = pd.DataFrame({"agent": "x", "turn": 0, "dialog": list("1234")})
    table["context"] = [[f"Opening {k}"] for k in range(4)]
    table["human_fun"] = [1.0, 2, 3, 4]
    versions = [table.assign(system=name) for name in ("old", "new")]
    turns = pd.concat(versions, ignore_index=True)
    (same,) = verdicts(differences(turns, turns[[]]))
    assert same.verdict == "no verdict"
    assert same.explanation.endswith(f"fun ({SAME}). Is it the same file twice?")
    assert "no ratings" not in same.explanation
    (single,) = verdicts(differences(turns.query("dialog == '1'"), turns[[]]))
    assert f"fun ({TOO_FEW})" in single.explanation
    assert "two dialogs of each version" in single.explanation


def test_the_shipped_table_holds_the_rules_of_a_report_with_and_without_references():
    rates = validity.reference_table("10_verdict_errors", ["rule", "wrong_share"])
    standing = validity.reference_table("10_metric_validity", ["metric", "standing"])
    follows = standing.loc[standing["standing"] == validity.FOLLOWS, "metric"]
    computed = {"bertscore_f1", "bleu4_coco", "context_similarity"}
    computed = follows[follows.isin(computed | {"reference_similarity"})]
    assert rule_name(computed) in set(rates["rule"])
    assert set(computed) <= set(rates["rule"])


def test_a_release_stops_on_the_verdict_that_it_names():
    calls = [Verdict("new", "old", "worse"), Verdict("b2", "old", "mixed")]
    calls.append(Verdict("b3", "old", "leaning worse"))
    for condition, stops in {
        "b worse": True,
        "NEW worse": True,
        "b better": False,
        "b not better": True,
        "b2 worse": False,
        "b2 not mixed": False,
        "all mixed": True,
        "all better": False,
        "b3 worse": False,
        "b3 leaning worse": True,
        "b3 not worse": True,
        "b leaning worse": True,
        "b leaning better": False,
    }.items():
        assert condition_holds(calls, condition) is stops, condition
    for wrong in ("", "worse", "b bad", "c worse", "b  "):
        with pytest.raises(DataError, match="new, b2, b3"):
            condition_holds(calls, wrong)
    with pytest.raises(DataError):
        condition_holds([], "b worse")


def test_a_margin_is_kept_only_where_the_interval_of_every_rating_rules_the_loss_out():
    rows = {"version": ["new"] * 3 + ["b2", "b3"], "kind": ["rating"] * 2 + ["metric"]}
    rows["kind"] += ["rating", "metric"]
    rows["low"] = [-0.1, -0.25, -9.0, np.nan, 0.0]
    table = pd.DataFrame(rows)
    calls = [Verdict("new"), Verdict("b2"), Verdict("b3")]
    assert condition_holds(calls, "new worse by .2", table)
    assert not condition_holds(calls, "new worse by 0.26", table)
    assert condition_holds(calls, "new worse by .25", table)  # the bound itself counts
    assert condition_holds(
        calls, "b2 worse by 5", table
    )  # no interval rules nothing out
    with pytest.raises(DataError, match="b3 has none"):
        condition_holds(calls, "b3 worse by .2", table)
    for wrong in ("b better by .2", "b not worse by .2", "b leaning worse by .2"):
        with pytest.raises(DataError, match="margin"):
            condition_holds(calls, wrong, table)
    with pytest.raises(DataError):
        condition_holds(calls, "b worse by -1", table)


def test_the_exit_code_is_3_where_the_condition_holds(tmp_path):
    for version, rating in (("old", 4), ("new", 2)):
        rows = {"dialog": range(8), "response": [f"It is day {k}." for k in range(8)]}
        rows["human_overall"] = [rating + k % 2 / 10 for k in range(8)]
        pd.DataFrame(rows).to_csv(tmp_path / f"{version}.csv", index=False)
    arguments = [str(tmp_path / "old.csv"), str(tmp_path / "new.csv")]
    arguments += ["--out", str(tmp_path / "page.html"), "--fail-if"]
    assert main([*arguments, "b worse"]) == 3
    page = (tmp_path / "page.html").read_text()
    assert (
        "No metric of the profile differs between replies." in page
    )  # all have four words
    assert main([*arguments, "new not worse"]) == 0
    assert main([*arguments, "b worse by 3"]) == 0
    assert main([*arguments, "b worse by 1.5"]) == 3
    (tmp_path / "page.html").unlink()
    assert main([*arguments, "b terrible"]) == 2
    assert not (tmp_path / "page.html").exists()  # refused before the work
