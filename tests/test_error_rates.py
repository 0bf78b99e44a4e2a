"""How often a rule for a verdict points the wrong way: corpora on which the answer is known."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import report
from lib.meta_evaluation.evaluation_sets import EvaluationSet
from lib.report.error_rates import (
    MAX_WRONG,
    ErrorRate,
    call_outcomes,
    error_rates,
    known_rate,
    state_error_rates,
)
from lib.report.page import render_html, render_json
from lib.report.verdict import Verdict, condition_holds


def make_set(name: str = "made", seed: int = 0) -> EvaluationSet:
    """Four machines and a person answer 60 contexts; quality rises from one to the next.

    `true` follows the ratings, `reversed` orders the systems the wrong way, `noise` says nothing.
    """
    rng = np.random.default_rng(seed)
    systems = ["b0", "b1", "b2", "b3", "person"]
    table = pd.DataFrame(
        {
            "system": np.tile(systems, 60),
            "agent": np.tile(systems, 60),
            "dialog": np.repeat([f"{name}-{number}" for number in range(60)], 5),
            "turn": 1,
        }
    )
    table["context"] = table["dialog"].map(lambda dialog: [f"What about {dialog}?"])
    table["response"] = table["system"]
    by_person = table["system"] == "person"
    table["written_by"] = np.where(by_person, "person", "machine")
    quality = table["system"].map({system: k for k, system in enumerate(systems)})
    noise = rng.normal(size=(3, len(table)))
    scores = pd.DataFrame(
        {
            "true": quality + 0.5 * noise[0],
            "reversed": -quality + 0.5 * noise[1],
            "noise": noise[2],
        }
    )
    human = pd.Series(quality + rng.normal(size=len(table)), name="human_overall")
    return EvaluationSet(
        name=name, level="turn", table=table, human=human, scores=scores
    )


@pytest.fixture(scope="module")
def outcomes():
    sets = [make_set("one"), make_set("two", seed=1)]
    return call_outcomes(sets, [["true", "noise"], ["true", "reversed"]], resamples=300)


def test_a_rule_is_right_wrong_or_silent_as_it_was_made(outcomes):
    counts = outcomes.groupby(["rule", "outcome"]).size()
    assert counts["true", "right"] == 12
    assert counts["reversed", "wrong"] == 12
    assert counts["noise", "silent"] >= 9
    # Together: one that follows and one that says nothing are right; two that differ are mixed.
    assert counts["noise + true", "right"] >= 9
    assert counts["reversed + true", "silent"] == 12


def test_people_among_the_systems_and_unlabelled_corpora_are_left_out(outcomes):
    assert not {"person"} & {*outcomes["better"], *outcomes["worse"]}
    assert outcomes.groupby("corpus")["worse"].nunique().tolist() == [3, 3]
    unlabelled = make_set()
    unlabelled.table["written_by"] = np.nan
    assert call_outcomes([unlabelled], []).empty


def test_pairs_that_raters_do_not_distinguish_are_no_question():
    items = make_set()
    items.human[:] = np.random.default_rng(5).normal(size=len(items.human))
    few = call_outcomes([items], [], resamples=300)
    assert few.groupby(["better", "worse"]).ngroups <= 2  # of 6, at the level .05


def test_the_interval_is_the_wider_of_the_exact_one_and_the_one_over_families():
    one = pd.DataFrame({"corpus": "a", "rule": "m", "outcome": ["right"] * 40})
    rate = error_rates(one, {"a": "A"}).iloc[0]
    exact = stats.binomtest(0, 40).proportion_ci()
    assert (rate["wrong_share"], rate["low"]) == (0, 0)
    assert rate["high"] == pytest.approx(exact.high)

    bad = pd.DataFrame({"corpus": "b", "rule": "m", "outcome": ["wrong"] * 10})
    both = error_rates(pd.concat([one, bad]), {"a": "A", "b": "B"}).iloc[0]
    assert both["wrong_share"] == pytest.approx(0.2)
    assert (both["low"], both["high"]) == (
        0,
        1,
    )  # one family in four resamples is B alone
    merged = error_rates(pd.concat([one, bad]), {"a": "A", "b": "A"}).iloc[0]
    exact = stats.binomtest(10, 50).proportion_ci()
    assert merged[["low", "high"]].tolist() == pytest.approx([exact.low, exact.high])


def test_a_silent_rule_has_no_share_of_wrong_calls():
    silent = pd.DataFrame({"corpus": "a", "rule": "m", "outcome": ["silent"] * 4})
    rate = error_rates(silent, {"a": "A"}).iloc[0]
    assert np.isnan(rate["wrong_share"]) and rate["silent"] == 4


RATES = pd.DataFrame(
    [
        {"rule": "sure", **ErrorRate(0.0, 0.0, 0.05, 90, 5, 0, 5)._asdict()},
        {"rule": "doubtful + sure", **ErrorRate(0.1, 0.0, 0.4, 9, 5, 1, 5)._asdict()},
    ]
)


@pytest.mark.parametrize(
    ("scores", "decided_by", "expected"),
    [
        (["sure"], "metric", "worse"),
        (["sure", "doubtful"], "metric", "leaning worse"),
        (["never tried"], "metric", "leaning worse"),
        (["human_overall"], "rating", "worse"),
    ],
)
def test_a_call_that_may_be_wrong_once_in_ten_is_a_leaning(
    scores, decided_by, expected
):
    found = Verdict("new", "old", "worse", decided_by=decided_by, scores=scores)
    (stated,) = state_error_rates([found], RATES)
    assert stated.verdict == expected
    assert bool(stated.error_rate) == (decided_by == "metric")
    rate = known_rate(RATES, scores)
    if decided_by == "metric" and rate:
        assert (
            f"{rate.right} were called right, {rate.wrong} wrong" in stated.error_rate
        )
        assert (rate.high <= MAX_WRONG) == (expected == "worse")


@pytest.mark.parametrize(
    ("verdict", "condition", "holds"),
    [
        ("leaning worse", "b worse", False),
        ("leaning worse", "b leaning worse", True),
        ("worse", "b leaning worse", True),
        ("worse", "b worse", True),
        ("leaning better", "b leaning worse", False),
        ("leaning better", "b not better", True),
    ],
)
def test_a_leaning_stops_a_release_only_where_it_is_asked_for(
    verdict, condition, holds
):
    assert condition_holds([Verdict("new", "old", verdict)], condition) == holds


def without_ratings() -> pd.DataFrame:
    """Two versions with references; the new one answers beside the point."""
    rows = []
    for number in range(40):
        for system in ("old", "new"):
            answer = f"I planted tulip number {number} in my garden this spring."
            other = "The stock market closed early because of the storm."
            rows.append(
                {
                    "system": system,
                    "agent": system,
                    "dialog": f"{system} {number}",
                    "turn": 1,
                    "context": [f"Which flower is tulip {number} in your garden?"],
                    "response": answer if system == "old" else other,
                    "reference": [f"I planted tulip {number} in the garden."],
                    "fact": [],
                }
            )
    return pd.DataFrame(rows)


def test_a_report_without_ratings_states_its_error_rate():
    result = report.build_report(without_ratings())
    (verdict,) = result.verdicts
    assert verdict.decided_by == "metric"
    assert verdict.verdict in ("worse", "leaning worse")
    assert "pairs of bots that raters distinguish" in verdict.error_rate
    assert verdict.error_rate in " ".join(render_html(result, "t").split())
    written = json.loads(render_json(result, "t"))
    assert written["answer"]["error_rate"] == verdict.error_rate


def test_identical_versions_and_lone_dialogs_say_why_nothing_is_decided():
    turns = without_ratings()
    turns["response"] = "The same answer."
    turns["human_overall"] = 3.0
    (verdict,) = report.build_report(turns, embeddings=False).verdicts
    assert verdict.verdict == "no verdict"
    assert "overall: all scores equal" in verdict.explanation
    lone = without_ratings()[:2].assign(human_overall=[1.0, 2.0])
    (verdict,) = report.build_report(lone, embeddings=False).verdicts
    assert "overall" in verdict.explanation
    assert "fewer than 2 dialogs of a version" in verdict.explanation
