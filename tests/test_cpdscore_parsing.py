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
of 11 and 0 of 8 refused. "mended" are shapes that were once read wrong, or refused without need. So
expect no wrong number from the usual shapes, and some refused.
"""

import json
import math
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.cpdscore import VARIANTS, load_template, parse_reply
from lib.cpdscore.reading import USABLE

GOLDEN = Path(__file__).parent / "golden" / "handwritten_replies.jsonl"
ROWS = map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
ALL = [(row["variant"], row["reply"], row["mark"]) for row in ROWS]
MENDED = ALL[-25:]
DETAIL, SIMPLE, DIALOGUE = (
    VARIANTS[name] for name in ("detail_without_reference", "simple_without_reference", "dialogue")
)


def read(variant: str, reply: str) -> float | None:
    parsed = parse_reply(reply, VARIANTS[variant])
    assert (parsed.status in USABLE) == (not math.isnan(parsed.score))
    return None if math.isnan(parsed.score) else parsed.score


def test_no_wrong_number_is_accepted():
    wrong = [
        (reply, got, expected)
        for variant, reply, expected in ALL
        if (got := read(variant, reply)) is not None and got != expected
    ]
    assert wrong == [] and len({(variant, reply) for variant, reply, _ in ALL}) == len(ALL) >= 900
    assert [read(variant, reply) for variant, reply, _ in MENDED] == [mark for *_, mark in MENDED]


def test_at_most_eight_readable_replies_in_a_hundred_are_refused():
    readable = [(variant, reply) for variant, reply, expected in ALL if expected is not None]
    refused = [reply for variant, reply in readable if read(variant, reply) is None]
    assert len(readable) >= 500
    assert len(refused) <= 0.08 * len(readable), refused


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("- Humanness: 4", "ok"), ("- Humanness: 4.5", "non_integer"),
        ("- Humanness: x", "unparsable"),
        ("- Humanness: 7", "out_of_range"), ("- Humanness: 3-4", "ambiguous"), ("", "empty"),
        ("I'm sorry, I cannot rate this.", "refusal"), (None, "empty"),
        ("- Humanness: 3\n- Humanness: 5", "ambiguous"), ("Humanness: 3,5", "ambiguous"),
        ("As an AI I cannot judge. Humanness: 1", "disclaimed"),
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


STATUSES = {*USABLE, "unparsable", "out_of_range", "ambiguous", "disclaimed", "refusal", "empty"}
UNITS = ["Humanness:", "\n", " ", "a", "4", "(", '"', "<think>", "-", ".", "~~", "my ", "> ",
         "1-5 ", "scale ", "1 (", "is ", "humanness 4\n", "final score: ", "not ", "'"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(UNITS), min_size=1, max_size=4).map("".join), st.sampled_from(UNITS)
)
def test_no_reply_takes_more_time_than_its_length_calls_for(unit, end):
    """Patterns that go back over a text took seconds at 20,000 characters; a longer one is none."""
    for length, limit in ((19_000, 0.5), (10**6, 0.05)):
        started = time.process_time()
        parse_reply(unit * (length // len(unit)) + end, DETAIL)
        assert time.process_time() - started < limit


@pytest.mark.parametrize("transport", ["refusal", "truncated", "filtered", "empty", "failed"])
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
    assert math.isnan(parsed.score) or name == "dialogue"  # an unquoted mark in user text
    assert math.isnan(parse_reply(template.text, VARIANTS[name]).score)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gets_a_status_and_a_number_only_from_the_scale(text):
    for variant in (DETAIL, SIMPLE, DIALOGUE):
        parsed = parse_reply(text, variant)
        assert parsed.status in STATUSES
        assert math.isnan(parsed.score) or 1 <= parsed.score <= variant.high
