"""Read the scores out of a judge's reply: the right number, or none and the reason.

A score is a number behind the label of its field, at the beginning of a line or clause, with
nothing between them but signs and a few plain words; a form with one field may be answered by the
number alone. Where another number behind the score could be meant instead, none is read.
A reply that is not read is counted and can be asked again.
"""

import json
import math
import re
import unicodedata
from dataclasses import dataclass, field
from itertools import chain

from lib.cpdscore.prompts import VARIANTS, Variant

MAX_LENGTH = 20_000  # characters without the reasoning; no answer to a form is longer
USABLE = ("ok", "non_integer")  # with these statuses a reply has a score

# In all patterns HIGH stands for the end of the scale.
_FIELDS = {*chain.from_iterable(variant.fields for variant in VARIANTS.values())}
# What else judges call the score, where the form does not use the word for a field.
_GENERAL = {"overall", "final score", "final rating", "final answer"}
_GENERAL |= {"score", "rating", "mark", "answer"}
_LABEL = "|".join(sorted(_FIELDS | _GENERAL, key=len, reverse=True))
_NUMBER_WORDS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "seven": 7,
    "ten": 10,
}
_NUMBER = rf"(?P<number>\d+(?:\.\d+)?|{'|'.join(_NUMBER_WORDS)})"
_TOP = r"(?: ?\(?(?:/|out of|of) ?HIGH(?:\.0)?\)?)?"  # 4/5, 4 (out of 5)
_END = (  # not: 4-5, 4,5, 4 or 5, 4th, 4%, 4?, 4 would be too much
    r"(?P<end>(?= ?(?:$|[\n!|})\]点分]|[.,:;(](?!\.* ?\d)|- [a-z]|"
    r"(?:points?|stars?)\b(?! \w)|(?:because|since|as|due)\b)))"
)
_SCORE = (
    r"(?:^|[\n.,;|({] ?)(?:[-•|] ?|=> ?|\d[.)] ){0,3}"  # a line or clause begins
    r"(?:i(?:'d| would)? (?:rate|say|assign|give) (?:a )?)?(?:(?:the|my|its) )?"
    rf"(?P<label>{_LABEL})\b"
    r"(?: ?(?:[-:=|]|->|=>|→|\.{4,}|\b(?:score|rating|quality|is|of|for|this|the|response|reply|as|"
    r"at|a|gets|very|relatively|good|bad|low|excellent|neither|fair|enough)\b)){0,8}"
    rf" ?(?<! -)(?<!:-)\(?{_NUMBER}{_TOP}{_END}?"
)
_NUMBER_ALONE = (
    rf"(?:- |\()?(?:i'd say |i would give it a )?{_NUMBER}(?![.)] \S){_TOP}{_END}"
)
_OTHER_NUMBER = re.compile(
    rf"(?<![\w.,/])(?<!not )(?<!turn ){_NUMBER}(?<!one)"
    r"(?![\w%]| (?:words?|sentences?|questions?|turns?|facts?|friends|participants|individuals)\b)"
)
_DENIED = re.compile(  # in front of a label
    r"(?:\b(?:if|not|unless|initially|other|previous)\b|n't\b)[^.;\n]*\Z|"
    r"\b(?:example|format|reference|gold)\b[^.;]*\Z"
)
_REFUSAL = re.compile(
    r"\bi(?:'m| am)? (?:cannot|can't|won't|will not|unable to|(?:must )?decline to) "
    r"(?:judge|rate|evaluate|assess|score|help|assist)\b(?! it (?:higher|lower))|\bi'm sorry\b"
)
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_SIGNS = str.maketrans("‐‑‒–—−“”’", '------""\'')
_REMOVED = ("Cf", "Mn", "Me", "So")  # Unicode categories: invisible signs, emoji
_NO_DIGIT = r"[^()\[\]\d./]*"
_CLEANING = (  # patterns and what takes their place, in this order
    (r"</?[a-z]\w*>|(?<!\d)[*`#_]+|[*`#_]+(?!\d)", ""),
    (rf"([\"'])({_LABEL}|\d(?:\.\d+)?)\1", r"\2"),
    (r"(?<!\w)([\"']).{0,200}?\1(?!\w)", ""),  # other quotations: somebody else's words
    (r"[^\S\n]+", " "),
    (r"\s*\n\s*", "\n"),
    # (1-5), [1 = bad, 5 = good]
    (rf" ?[(\[]{_NO_DIGIT}1{_NO_DIGIT}HIGH{_NO_DIGIT}[)\]]", ""),
    (
        r"(?:on a )?(?:scale )?(?:of |from )?(?<![\w.,/+-])1 ?(?:to|-) ?HIGH\b(?: scale)?",
        "",
    ),
    (r"\$?(?:\\boxed)?[<(\[{$](\d(?:\.\d+)?)[>)\]}$]+", r"\1"),  # <4>, (4), \boxed{4}
    # A number on the line below its label.
    (r"(?m)(?<=.):?\n(?:- )?(\d(?:\.\d+)?)$", r": \1"),
)


@dataclass(frozen=True)
class ParsedReply:
    """What a reply says.

    Attributes:
        status: ok, or non_integer for a decimal where the form asks for an integer. Without a
            score: unparsable, ambiguous (more than one number could be meant), out_of_range
            (not clipped), disclaimed (a score after the judge said that it cannot judge), refusal,
            empty, or the status that the call ended with (truncated, filtered, failed).
        score: the score, NaN unless the status is ok or non_integer.
        fields: the value of each field of the form that could be read.
    """

    status: str
    score: float = math.nan
    fields: dict[str, float] = field(default_factory=dict)


def parse_reply(
    text: str | None, variant: Variant, transport: str = "ok"
) -> ParsedReply:
    """Read the score in a reply to the prompt of `variant`.

    Echoes of the form ("- x", "1-5"), ranges, decimal commas, numbers on other scales and
    quotations are no scores, nor is a number after "if", "not" or "example".

    Args:
        text: the reply.
        variant: the prompt's variant; its last field is the score.
        transport: the status that the call ended with. Unless it is ok, there is no score,
            whatever the text says.

    >>> from lib.cpdscore import VARIANTS
    >>> detail = VARIANTS["detail_without_reference"]
    >>> parse_reply("**Humanness**: 4 - it sounds natural", detail).score
    4.0
    >>> parse_reply("- Humanness: 3-4", detail).status
    'ambiguous'
    >>> parse_reply("- Humanness: x", detail)
    ParsedReply(status='unparsable', score=nan, fields={})
    """
    if transport != "ok":
        return ParsedReply(transport)
    text = _REASONING.sub("", (text or "").lower()).rpartition("</think>")[2]
    if len(text) > MAX_LENGTH:
        return ParsedReply("unparsable")
    text = plain_text(text, variant.high)
    if not text:
        return ParsedReply("empty")

    readings = _find_scores(text, variant)
    fields = {}
    for name in variant.fields:  # the last one is the score
        matches = [match for label, match in readings if label == name]
        status, score = _agreed_value(matches, variant)
        if status in USABLE:
            fields[name] = score
    preamble = text[: matches[0].start()] if matches else text
    if _REFUSAL.search(preamble):
        status = "disclaimed" if status in USABLE else "refusal"
    elif status in USABLE and "scale" in preamble:
        # Not the scale of the prompt: `plain_text` removes that.
        status = "unparsable"
    elif status in USABLE and _has_other_number(text, readings, matches[0]):
        status = "ambiguous"
    if status not in USABLE:
        score = math.nan
    return ParsedReply(status, score, fields)


def score_probabilities(
    text: str | None, probabilities: str | None, variant: Variant
) -> tuple[dict[int, float] | None, str]:
    """How likely each score of the scale was in the position of the written one; they add up to 1.

    The position is where another digit would have been read as the score instead. The mean of this
    distribution is the weighted score of G-Eval (Liu et al. 2023, section 2.3).

    Args:
        text: the reply.
        probabilities: those of the digits in each position where one stands, as in
            `Reply.digit_probabilities`; digits off the scale are left out.
        variant: the prompt's variant; its last field is the score.

    Returns:
        Score -> probability and "", or None and the reason.

    >>> from lib.cpdscore import VARIANTS
    >>> probabilities = '[[13, {"4": 0.75, "2": 0.25, "9": 0.1}]]'
    >>> score_probabilities("- Humanness: 4", probabilities, VARIANTS["detail_without_reference"])
    ({4: 0.75, 2: 0.25}, '')
    >>> score_probabilities("- Humanness: 4", None, VARIANTS["detail_without_reference"])
    (None, 'no probabilities')
    """
    score = parse_reply(text, variant).score
    if math.isnan(score):
        return None, "no score"
    for position, digits in json.loads(probabilities or "[]"):
        digit = "1" if text[position] != "1" else "2"
        changed = text[:position] + digit + text[position + 1 :]
        if parse_reply(changed, variant).score == float(digit):
            on_scale = {
                int(key): p
                for key, p in digits.items()
                if 1 <= int(key) <= variant.high
            }
            total = sum(on_scale.values())
            if total > 0:
                return {value: p / total for value, p in on_scale.items()}, ""
    return None, "no probabilities" if score.is_integer() else "not one digit"


def plain_text(text: str, high: int) -> str:
    """Small letters and plain signs, without markup, quotations, and the scale from 1 to `high`.

    >>> plain_text("**Humanness** (1-5):  3", 5)
    'humanness: 3'
    """
    text = unicodedata.normalize("NFKC", text).lower().translate(_SIGNS)
    text = "".join(sign for sign in text if unicodedata.category(sign) not in _REMOVED)
    for pattern, replacement in _CLEANING:
        text = re.sub(pattern.replace("HIGH", str(high)), replacement, text)
    return text.strip()


def _find_scores(text: str, variant: Variant) -> list[tuple[str, re.Match]]:
    """Each field with its number; in a form with one field, also the number alone."""
    readings = []
    high = str(variant.high)
    one_field = len(variant.fields) == 1
    for match in re.finditer(_SCORE.replace("HIGH", high), text):
        name = match["label"]
        if name in _GENERAL and name not in variant.fields:
            if not one_field:
                continue
            name = variant.score_field
        start = match.start("label")
        if not _DENIED.search(text[max(0, start - 80) : start]):
            readings.append((name, match))
    number_alone = re.match(_NUMBER_ALONE.replace("HIGH", high), text)
    if one_field and number_alone and variant.score_field not in dict(readings):
        readings.append((variant.score_field, number_alone))
    return readings


def _agreed_value(matches: list[re.Match], variant: Variant) -> tuple[str, float]:
    """Status and value of a field: the number that all its matches give."""
    if not matches:
        return "unparsable", math.nan
    values = {_value(match["number"]) for match in matches}
    value = values.pop()
    if values or any(match["end"] is None for match in matches):
        return "ambiguous", math.nan
    if not 1 <= value <= variant.high:
        return "out_of_range", math.nan
    if value.is_integer() or variant.level == "dialog":
        return "ok", value
    return "non_integer", value


def _has_other_number(
    text: str, readings: list[tuple[str, re.Match]], score: re.Match
) -> bool:
    """Whether a number behind the score, of no other field, could be meant instead."""
    starts = [match.start("number") for _, match in readings]
    values = set()
    for other in _OTHER_NUMBER.finditer(text, score.end()):
        if other.start() not in starts:
            values.add(_value(other["number"]))
    values.discard(_value(score["number"]))
    return any(value <= 10 or value == 100 for value in values)


def _value(number: str) -> float:
    return float(_NUMBER_WORDS.get(number, number))
