"""The parser on replies written by hand: no wrong number, and few readable ones refused.

`mark` in `golden/handwritten_replies.jsonl` is what a careful reader takes from a reply, or null
where no mark may be taken: none is there, more than one could be meant, it is off the scale, or it
is somebody else's. "development" was at hand while the parser was written. Each later list was
written before it was run for the first time, and what the first run found was then put right:
"held_out" 1 wrong of 128 and 4 of 73 readable ones refused, "last" 1 of 65 and 4 of 41, "final" 2
of 100 and 3 of 55. "review" is by another hand, which set out to break the parser: 53 wrong of 292
and 18 of 118 refused at first; since then a second number near a mark counts as doubt. "blind" was
written without having read the parser: 0 wrong of 128 and 7 of 98 refused. "next" tries the rules
that were added for it: 1 wrong of 75 and 6 of 42. Then a small grammar took the place of many
special cases: 8 wrong and 52 refused of all 946 at its first run, none wrong and 40 refused since.
"odd", 145 shapes written before the grammar was opened, found 13 wrong and 5 of 60 refused at its
first run: four rules were mended, and nine marks that its author had called doubtful were granted
on second reading, as three had been before ("<4>" and "low (2)" say one number without doubt, "As
an AI I cannot judge. Humanness: 1" says two things). "later", eleven more of that kind: 0 wrong
of 11 and 0 of 8 refused. "mended" are shapes that were once read wrong, or refused without need.
Since then a strict parser reads the forms that the prompts ask for and their usual variants, and
refuses sentences and counts ("I give it a 4", "2 boats"): 0 wrong, 87 of 594 readable ones refused.

`golden/kept_reply_scores.json` holds what the grammar before it read from the replies of two
judges in `data/judge_replies`: per file the scores in the order of its rows, and their means
weighted by probability, to four decimals; "-" is none.
"""

import json
import math
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ROOT
from lib.cpdscore import VARIANTS, load_template, parse_reply
from lib.cpdscore.parsing import USABLE, score_probabilities

GOLDEN = Path(__file__).parent / "golden"
HANDWRITTEN = (
    (GOLDEN / "handwritten_replies.jsonl").read_text(encoding="utf-8").splitlines()
)
ALL = [json.loads(line) for line in HANDWRITTEN]
READABLE = [row for row in ALL if row["mark"] is not None]
JUDGE_REPLIES = ROOT / "data" / "judge_replies"
KEPT_SCORES = json.loads((GOLDEN / "kept_reply_scores.json").read_text())
DETAIL = VARIANTS["detail_without_reference"]
SIMPLE = VARIANTS["simple_without_reference"]
DIALOGUE = VARIANTS["dialogue"]
# Row of a reply that lost its weighted score. It begins with 3 and speaks of a "score of 3" later:
# with another digit at its beginning it says two things.
NOW_UNWEIGHTED = {"qwen_usr_persona_sampled": {751}}


def read(variant: str, reply: str) -> float | None:
    parsed = parse_reply(reply, VARIANTS[variant])
    assert (parsed.status in USABLE) == (not math.isnan(parsed.score))
    return None if math.isnan(parsed.score) else parsed.score


def test_no_wrong_number_is_accepted():
    wrong = []
    for row in ALL:
        score = read(row["variant"], row["reply"])
        if score is not None and score != row["mark"]:
            wrong.append((row["reply"], score, row["mark"]))
    assert wrong == []
    assert len({(row["variant"], row["reply"]) for row in ALL}) == len(ALL) >= 900


def test_at_most_fifteen_readable_replies_in_a_hundred_are_refused():
    refused = [
        row["reply"] for row in READABLE if read(row["variant"], row["reply"]) is None
    ]
    assert len(READABLE) >= 500
    assert len(refused) <= 0.15 * len(READABLE), refused


def test_what_was_mended_is_still_read_but_for_a_reply_that_is_all_quotation():
    mended = [row for row in READABLE if row["list"] == "mended"]
    refused = [
        row["reply"] for row in mended if read(row["variant"], row["reply"]) is None
    ]
    assert len(mended) == 4 and refused == ["> - Humanness: 3"]


def test_every_kept_file_has_its_golden_scores():
    assert {path.stem for path in JUDGE_REPLIES.glob("*.parquet")} == set(KEPT_SCORES)


@pytest.mark.parametrize("name", KEPT_SCORES)
def test_every_kept_reply_gets_the_number_that_it_had_before(name):
    replies = pd.read_parquet(JUDGE_REPLIES / f"{name}.parquet")
    golden = zip(
        KEPT_SCORES[name]["scores"].split(),
        KEPT_SCORES[name]["weighted"].split(),
        strict=True,
    )
    unweighted = set()
    for i, (score, weighted) in enumerate(golden):
        reply = replies.iloc[i]
        variant = VARIANTS[json.loads(reply["labels"])["variant"]]
        text = reply["text"] if isinstance(reply["text"], str) else None
        parsed = parse_reply(text, variant, reply["status"])
        if score == "-":
            assert math.isnan(parsed.score), text
            continue
        assert parsed.score == float(score), text
        probabilities, _ = score_probabilities(text, reply["marks"], variant)
        if probabilities:
            expected = sum(value * p for value, p in probabilities.items())
            assert f"{expected:.4f}" == weighted, text
        elif weighted != "-":
            unweighted.add(i)
    assert len(replies) == i + 1
    assert unweighted == NOW_UNWEIGHTED.get(name, set())


@pytest.mark.parametrize(
    "reply",
    [
        "Humanness: 4\nOn reflection 3 captures it better", "Humanness: 4\n0", "Humanness: 4 (3)",
        "Humanness: 4 (1/5 before)", "Humanness: 4, but ten is the most", "Humanness: 4 of ten",
        "4\nA person would get 100.", "Humanness: 4 (seven-point scale)", "Humanness: 3*1",
    ],
)  # fmt: skip
def test_another_number_behind_the_score_leaves_it_in_doubt(reply):
    assert parse_reply(reply, DETAIL).status == "ambiguous"


@pytest.mark.parametrize(
    "reply",
    [
        "Humanness: 4, not 5", "Humanness: 4\nTurn 3 is odd.", "Humanness: 4, in 12 words",
        "Humanness: 4\nIt asks 2 questions.", "Humanness: 4. I am 90% sure",
        "Humanness: 4, one of many",
        "Humanness: 4\nFluency: 5", "It has 3 parts.\nHumanness: 4", "Humanness: fair enough (4/5)",
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_meant_leaves_no_doubt(reply):
    assert parse_reply(reply, DETAIL).score == 4


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("- Humanness: 4", "ok"), ("- Humanness: 4.5", "non_integer"),
        ("- Humanness: x", "unparsable"),
        ("- Humanness: 7", "out_of_range"), ("- Humanness: 3-4", "ambiguous"), ("", "empty"),
        ("I'm sorry, I cannot rate this.", "refusal"), (None, "empty"),
        ("- Humanness: 3\n- Humanness: 5", "ambiguous"), ("Humanness: 3,5", "ambiguous"),
        ("As an AI I cannot judge. Humanness: 1", "disclaimed"),
        ("Humanness: 4/10", "ambiguous"), ("Humanness: 4/5", "ok"),
        ("I won't rate people.\n\nScore: 2", "disclaimed"),
        ("Humanness: 3\nI cannot judge the accent.", "ok"),
        ('"I cannot help you" is what a robot says.\nHumanness: 1', "ok"),
        ("I cannot rate it higher, since it repeats itself.\nHumanness: 3", "ok"),
        ("On a scale of 1 to 10, humanness: 4", "unparsable"),
    ],
)  # fmt: skip
def test_the_status_says_why(reply, status):
    assert parse_reply(reply, DETAIL).status == status


def test_long_reasoning_is_no_part_of_the_reply():
    said = "<THINK>Humanness: 2</THINK> " + "Hm. " * 9000 + "</think>Humanness: 4"
    assert read("detail_without_reference", said) == 4


STATUSES = {
    *USABLE,
    "unparsable",
    "out_of_range",
    "ambiguous",
    "disclaimed",
    "refusal",
    "empty",
}
UNITS = ["Humanness:", "\n", " ", "a", "4", "(", '"', "<think>", "-", ".", "~~", "my ", "> ",
         "1-5 ", "scale ", "1 (", "is ", "humanness 4\n", "final score: ", "not ", "'"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(UNITS), min_size=1, max_size=4).map("".join),
    st.sampled_from(UNITS),
)
def test_no_reply_takes_more_time_than_its_length_calls_for(unit, end):
    """Patterns that go back over a text took seconds at 20,000 characters; a longer one is none."""
    for length in (19_000, 10**6):
        text = unit * (length // len(unit)) + end
        # A busy machine may hold up one attempt, and not three.
        assert any(seconds_to_parse(text) < 0.5 for _ in range(3))


def seconds_to_parse(text):
    """CPU seconds that a reply takes."""
    started = time.process_time()
    parse_reply(text, DETAIL)
    return time.process_time() - started


@pytest.mark.parametrize(
    "transport", ["refusal", "truncated", "filtered", "empty", "failed"]
)
def test_how_the_call_ended_outweighs_its_text(transport):
    parsed = parse_reply("- Humanness: 4", DETAIL, transport)
    assert parsed.status == transport and math.isnan(parsed.score)


def test_the_other_fields_of_a_form_are_kept():
    parsed = parse_reply("humanness - 3\nfluency - 5\noverall - x", SIMPLE)
    assert parsed.fields == {"humanness": 3, "fluency": 5}
    assert math.isnan(parsed.score)


def test_dialogue_marks_may_have_decimals_without_remark():
    text = "Overall Dialogue Turn Score - 3.5\nDialogue Interaction Score - 2\nFinal Score - 3.25"
    parsed = parse_reply(text, DIALOGUE)
    assert (parsed.status, parsed.score) == ("ok", 3.25)
    assert parsed.fields["overall dialogue turn score"] == 3.5


@pytest.mark.parametrize("name", VARIANTS)
def test_a_prompt_handed_back_is_no_reply(name):
    template = load_template(name)
    values = dict.fromkeys(template.inputs, "B: Final Score - 5 is what I would say.")
    parsed = parse_reply(template.fill(**values), VARIANTS[name])
    assert (
        math.isnan(parsed.score) or name == "dialogue"
    )  # an unquoted mark in user text
    assert math.isnan(parse_reply(template.text, VARIANTS[name]).score)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gets_a_status_and_a_number_only_from_the_scale(text):
    for variant in (DETAIL, SIMPLE, DIALOGUE):
        parsed = parse_reply(text, variant)
        assert parsed.status in STATUSES
        assert math.isnan(parsed.score) or 1 <= parsed.score <= variant.high
