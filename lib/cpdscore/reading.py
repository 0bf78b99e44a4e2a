"""Read the marks out of a judge's reply: the right number, or none with the reason.

A small grammar, strict and linear in time: a mark is a number that follows the label of its field,
with nothing but a scale, a colon or a few plain words between them, and no other number near it
that could be meant instead. What does not fit is missing, and can be asked again.
"""

import json
import math
import re
import unicodedata
from typing import NamedTuple

from lib.cpdscore.prompts import VARIANTS, Variant

LONGEST = 20_000  # characters, reasoning aside: what is longer does not answer the form
# A score is usable with these statuses; every other one means NaN.
USABLE = ("ok", "non_integer")

# What a form calls its marks, the longest first; `general` words name the one mark of a form.
_SPELT = {
    "overall dialogue turn score": r"overall dialogue (?:turn )?score",
    "dialogue interaction score": r"(?:dialogue )?interaction (?:evaluation )?score",
    "final score": r"(?:the )?final score",
    "general": r"(?:(?:my|the|final) ){0,2}(?:score|rating|mark|answer)",
    "overall": r"overall(?: (?:quality|score|rating))?",
    "humanness": r"human(?:ness|-?likeness)",
    "engagingness": r"engaging(?:ness)?",
    "coherency": r"coheren(?:cy|ce)",
}
_LABELS = _SPELT | {
    name: name for one in VARIANTS.values() for name in one.fields if name not in _SPELT
}
_GENERAL = ("general", "final score", "overall")
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
_NUMBER = r"(?P<value>\d+(?:\.\d+)?|(?:one|two|three|four|five)\b)"
_LABEL = "|".join(f"(?P<l{i}>{pattern})" for i, pattern in enumerate(_LABELS.values()))
_BETWEEN = (
    r"[:=|]|->|=>|→|-++|\.{4,}+|\b(?:is|of|for|this|the|that|response|reply|message|candidate|"
    r"dialogue|as|at|a|be|would|should|it|it's|its|gets|score|rating|mark)\b"
)
_VERDICT = (
    r"(?: ?(?:(?:very|fairly|quite|mostly) )?(?:good|bad|fair|poor|excellent|neutral|low|high) ?"
    r"(?:(?=\()|-))?"
)
_MARK = re.compile(
    rf"(?<![\w/])(?<!\w-)(?<!'s )(?:{_LABEL})(?!\w)[\"']?(?P<hint> ?[(\[][^()\[\]\n]{{1,40}}[)\]])?"
    rf"(?P<link>(?: ?(?:{_BETWEEN})){{0,10}}+{_VERDICT})(?P<gap>[ \n]?(?:[-•] )?)[\"'(\[{{]{{0,2}}"
    rf"{_NUMBER}"
)
_BARE = re.compile(
    rf"[ \-•:(\[\"'{{]*(?:i(?:'d| would)? (?:say|give it|rate it)(?: an?)? )?{_NUMBER}"
)
_TOP = re.compile(
    r" ?\(? ?(?:/|\b(?:out )?of(?: a possible)?\b) ?(?P<top>\d+(?:\.\d+)?|five|ten)\b\)?"
)
_FREE = re.compile(
    r" ?(?:$|\n|[.;,!)\]}|\"'(:](?! ?\d|\.+ ?\d)|- ?(?=[^\W\d])|点|分|"
    r"(?:points?|stars?|because|since|as|due|given|for|on|in)\b(?! ?\d))"
)
# In front of a label: denied, supposed, about something else, reported, or said by a speaker.
_BEFORE = re.compile(
    r"(?:\b(?:not|if|unless|example|instead of|rather than|previous|earlier|last|other|another|"
    r"average|typical|reference|gold|initially|compared|wrote|says|said|claim(?:s|ed)?|"
    r"ask(?:s|ed)?|contain(?:s|ed)?|include[sd]?|(?:ends|ending|closes) with|adds?|appends?|"
    r"quotes?|quoted)\b|n't\b)[^.;\n]{0,40}\Z|(?:\A|\n)[ \-•]*(?:[a-z]|user|bot) ?: ?\Z|"
    r"\bturn ?\d+ ?\Z|\b(?:reference|gold|other|example|format|template|the lines?|the text|"
    r"the words|the form)\b[^.\n\d]{0,40}\n[ \-•]*\Z"
)
_LINE_START = re.compile(r"(?:\A|\n)[ \-•|]*\Z")
_LINE_END = re.compile(r" ?(?:$|\n|/)")
_CLAUSE_START = re.compile(r"(?:(?:\A|[\n,;|({.)\d•-]) ?[\"']?|\b(?:rate|score) (?:its |the )?)\Z")
_REFUSAL = re.compile(
    r"\bi(?:'m| am)? (?:cannot|can't|can not|unable to|not able to|won't|will not|(?:must )?"
    r"decline to)(?: really)? (?:judge|rate|evaluate|assess|score|grade|help|assist|comply|"
    r"(?:give|provide|assign) (?:a|any) )(?![^.\n]{0,40}\b(?:high|low|full))|\bi'm sorry\b"
)
_OTHER_SCALE = re.compile(
    r"\bscale\b[^\n\d]{0,15}\d|(?:\d|seven|ten|hundred)[ -]?(?:point )?scale\b"
)
_OTHER = re.compile(r"(?<![\w$€£#.,:/])(?P<value>\d+(?:\.\d+)?|two|three|four|five)(?![\w%:]| =)")
# A number is no second mark where it counts something, names a turn, or is ruled out.
_COUNTED = re.compile(
    r" (?:would )?(?:need|require)|(?:(?<=\b1) (?=[a-z])|(?= (?:[a-z-]+ )?[a-z]+s\b) )"
    r"(?!(?:for|on|in|at|is|as|to|or|and|if|would|when|but|because|points?|stars?|being|best|"
    r"max\w*|instead|here|though|overall|even|from|of|with|fits|might|may|could|seems?|maybe|"
    r"perhaps|possibly|probably|rather|again|too|not|now|no|also|then|after|it|its|this|that|was|"
    r"my|your|after|since|should|must|final\w*|really|actually)\b)"
)
_NAMED = re.compile(
    r"\b(?:not|not an?|than|turns?|lines?|sentences?|steps?|facts?|messages?|utterances?|aged?) \Z"
)
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_INVISIBLE = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe0e\ufe0f\u20e3\u2600-\u27bf\u2b50"
    "\U0001f000-\U0001faff]+"
)
# Both ends of the scale named together: "1-5", "1 (lowest) to 5 (highest)".
_ENDS = (
    r"(?:, ?)?(?:\bon )?(?:\b(?:a|the) )?(?:\bscale )?(?:\b(?:of|from) )?"
    r"(?<![\w.,/+-])1(?: ?\([^()\n]{0,40}\) ?to TOP ?\([^()\n]{0,40}\)|"
    r" ?(?:-|to) ?TOP(?![\w/%+]|[.,]\d))(?: scale\b)?"
)
_SCALE = rf" ?[(\[] ?{_ENDS} ?[)\]]| ?{_ENDS}"
_SIGNS = str.maketrans("‐‑‒–—−“”’", '------""\'')


class ParsedReply(NamedTuple):
    """What a reply says: ``score`` is NaN unless ``status`` is ok or non_integer.

    The other statuses: unparsable, out_of_range, ambiguous, disclaimed, refusal, truncated,
    filtered, empty, failed.
    """

    status: str
    score: float = math.nan
    fields: dict[str, float] = {}  # every mark of the form that was read


def parse_reply(text: str | None, variant: Variant, transport: str = "ok") -> ParsedReply:
    """The score in a reply to ``variant``'s prompt, or NaN with a status that says why.

    A number counts only beside the label of its field, or, for a form with one field, as the
    head of the whole reply. Echoes of the form ("- x", "1-5"), ranges, decimal commas, other
    scales and quoted text are no marks; two different marks for one field, or another number
    behind a mark that could be meant instead, are ``ambiguous``; marks off the scale are
    ``out_of_range`` and are not clipped. A mark after the judge has said that it cannot judge is
    ``disclaimed``. ``transport`` is the status the call ended with: a refusal, a filter stop or a
    reply cut off by the length limit has no score, whatever its text.

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
    if len(text) > LONGEST:
        return ParsedReply("unparsable")
    said = clean(text, variant.high)
    if not said:
        return ParsedReply("empty")
    marks = [mark for match in _MARK.finditer(said) if (mark := _mark(said, match, variant))]
    found = {name: _agree([m for m in marks if m.label == name]) for name in variant.fields}
    fields = {name: value for name, (status, value) in found.items() if status in USABLE}
    status, score = _score(said, marks, variant)
    before = re.split(r"\d", re.sub(r'"[^"\n]*"', "", said), maxsplit=1)[0]
    if _REFUSAL.search(before):
        status, score = "disclaimed" if status in USABLE else "refusal", math.nan
    elif status in USABLE and _OTHER_SCALE.search(said):  # the scale asked for is gone by now
        status, score = "unparsable", math.nan
    return ParsedReply(status, score, fields)


def mark_probabilities(
    text: str | None, marks: str | None, variant: Variant
) -> tuple[dict[int, float] | None, str]:
    """How likely each mark of the scale was where the written one stands; they add up to 1.

    The place is where the reader found the mark: where another digit would have been read
    instead. The mean of these odds is the weighted mark of G-Eval (Liu et al. 2023, section 2.3).

    Args:
        text: the reply.
        marks: the odds wherever digits stand in it, as `Reply.marks` has them.
        variant: the prompt's variant; its last field is the score.

    Returns:
        Mark -> probability and "", or None and the reason.

    >>> from lib.cpdscore import VARIANTS
    >>> marks = '[[13, {"4": 0.75, "2": 0.25, "9": 0.1}]]'
    >>> mark_probabilities("- Humanness: 4", marks, VARIANTS["detail_without_reference"])
    ({4: 0.75, 2: 0.25}, '')
    >>> mark_probabilities("- Humanness: 4", None, VARIANTS["detail_without_reference"])
    (None, 'no probabilities')
    """
    written = parse_reply(text, variant).score
    if math.isnan(written):
        return None, "no mark"
    for place, odds in json.loads(marks or "[]"):
        other = "1" if text[place] != "1" else "2"
        if parse_reply(text[:place] + other + text[place + 1 :], variant).score == float(other):
            kept = {int(mark): p for mark, p in odds.items() if int(mark) <= variant.high}
            return {mark: p / sum(kept.values()) for mark, p in kept.items()}, ""
    return None, "no probabilities" if written.is_integer() else "not one digit"


class _Mark(NamedTuple):
    """A number behind a label, and whether it can be taken."""

    label: str
    status: str
    value: float
    start: int  # of the number
    end: int


def _mark(said: str, match: re.Match, variant: Variant) -> _Mark | None:
    """What a match of label and number means; None where it is no mark at all."""
    label = next(name for i, name in enumerate(_LABELS) if match[f"l{i}"])
    if variant.level == "turn" and label not in variant.fields and label in _GENERAL:
        label = "general"
    start, below = match.start(), "\n" in match["gap"]
    sure = match["link"] and not below and label != "general"
    place = _LINE_START if below else _CLAUSE_START
    placed = sure or place.search(said, max(0, start - 20), start)
    denied = _BEFORE.search(said, max(0, start - 80), start)
    if not placed or denied or (below and not _LINE_END.match(said, match.end())):
        return None
    misfit = ""
    if not set(re.findall(r"[\d.]+|%", match["hint"] or "")) <= {"1", str(variant.high)}:
        misfit = "unparsable"  # another scale between label and number
    elif re.search(r"(?:[:=] ?| )-\Z", match["link"] + match["gap"]):
        misfit = "out_of_range"  # a minus that belongs to the number
    return _number_at(said, match, label, variant, misfit)


def _number_at(said: str, match: re.Match, label: str, variant: Variant, misfit: str = ""):
    """The number of a match as a mark, judged by what follows it; None where it counts things."""
    value, end = number(match["value"]), match.end("value")
    if top := _TOP.match(said, end):
        misfit = misfit or ("unparsable" if number(top["top"]) != variant.high else "")
        end = top.end()
    free = _FREE.match(said, end) or _MARK.match(said, end + 1)
    if not (top or free) and _COUNTED.match(said, end):
        return None
    whole = value.is_integer() or variant.level == "dialog"
    fits = ("ok" if whole else "non_integer") if 1 <= value <= variant.high else "out_of_range"
    status = misfit or (fits if free else "ambiguous")
    return _Mark(label, status, value, match.start("value"), end)


def _agree(marks: list[_Mark]) -> tuple[str, float]:
    """One verdict over all marks of a field: their value, or the reason there is none."""
    if not marks:
        return "unparsable", math.nan
    misfits = [mark.status for mark in marks if mark.status not in USABLE]
    if misfits or len({mark.value for mark in marks}) > 1:
        return misfits[0] if len(misfits) == len(marks) else "ambiguous", math.nan
    return marks[0].status, marks[0].value


def _score(said: str, marks: list[_Mark], variant: Variant) -> tuple[str, float]:
    """Status and value of the mark that is the score."""
    own = [mark for mark in marks if mark.label == variant.score_field]
    if own or len(variant.fields) == 1:
        general = [mark for mark in marks if mark.label == "general" and variant.level == "turn"]
        own = own + general or _bare(said, variant)
    status, score = _agree(own)
    if status in USABLE and _doubted(said, own[0], marks):
        return "ambiguous", math.nan
    return status, score


def _bare(said: str, variant: Variant) -> list[_Mark]:
    """The number that a reply without a label begins with, unless it numbers a list."""
    first, *others = said.split("\n")
    match = _BARE.match(first)
    if not match or any(map(_BARE.match, others)) or re.match(r"[.)] \S", first[match.end() :]):
        return []
    mark = _number_at(first, match, variant.score_field, variant)
    return [mark] if mark else []


def _doubted(said: str, mark: _Mark, marks: list[_Mark]) -> bool:
    """Whether a number behind the mark could be meant instead: a revision, a range, a remark."""
    taken = {other.start for other in marks}  # by another field of the form
    for match in _OTHER.finditer(said, mark.end):
        value = number(match["value"])
        if value == mark.value or not (1 <= value <= 10 or value == 100):
            continue
        start, end = match.span()
        listed = said[start - 1] == "\n" and said[end : end + 2] in (". ", ") ")
        named = _NAMED.search(said, max(0, start - 20), start)
        if not (start in taken or listed or named or _COUNTED.match(said, end)):
            return True
    return False


def number(said: str) -> float:
    """The value of a number in digits or in words.

    >>> number("3.5"), number("four")
    (3.5, 4.0)
    """
    return float(_WORDS.get(said, said))


def clean(text: str, top: int) -> str:
    """The text in small letters and plain signs, without quotations, markup, doubled blanks, and
    the scale itself ("on a scale of 1 to 5"), whose two ends are no marks.

    >>> clean("**Humanness** (1-5):  3", 5)
    'humanness: 3'
    """
    text = unicodedata.normalize("NFKC", re.sub("[¼-¾⅐-⅞↉]", "?", text)).lower()
    text = re.sub(r"\$?\\boxed\{([^{}\n]{0,60})\}\$?", r"\1", text)
    text = text.translate(_SIGNS)
    text = _INVISIBLE.sub("", text)
    text = re.sub(r"~~[^~\n]*~~|</?[a-z]\w*>|[*`#]+|\b_+|_+\b", "", text)
    text = re.sub(r"[<$](\d(?:\.\d+)?)[>$]", r"\1", text)
    text = re.sub(r"[^\S\n]+", " ", text)
    text = re.sub(r" ?\n[ \n]*", "\n", text)
    own = re.sub(r"(?m)^ ?>[^\n]*", "", text)
    text = own if own.strip() else re.sub(r"(?m)^ ?>+(?! ?\d)", "", text)
    text = re.sub(r'"[^"\n]*"|(?<!\w)\'[^\'\n]*\'(?!\w)', _unless_said, text)
    return re.sub(_SCALE.replace("TOP", str(top)), "", text).strip()


def _unless_said(quoted: re.Match) -> str:
    """A quotation without what somebody else says: words and a number in it."""
    said = quoted[0]
    return "" if re.search("[a-z]", said) and re.search(r"\d", said) else said
