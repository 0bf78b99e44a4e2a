"""Read the marks out of a judge's reply: the right number, or none with the reason."""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache

from lib.cpdscore.prompts import Variant

NAN = float("nan")
# A score is usable with these statuses; every other one means NaN.
USABLE = ("ok", "non_integer")
STATUSES = (*USABLE, "unparsable", "out_of_range", "ambiguous", "disclaimed", "refusal",
            "truncated", "filtered", "empty", "failed")  # fmt: skip

_ALIASES = {
    "overall": r"overall(?:\s+(?:quality|score|rating))?",
    "coherency": r"coheren(?:cy|ce)",
    "humanness": r"human(?:ness|likeness|-likeness)",
    "engagingness": r"engaging(?:ness)?",
    "overall dialogue turn score": r"overall\s+dialogue\s+(?:turn\s+)?score",
    "dialogue interaction score": r"dialogue\s+interaction\s+(?:evaluation\s+)?score",
    "final score": r"final\s+score",
}
_NUMBER = r"(?P<value>\d+(?:\.\d+)?|(?:one|two|three|four|five)\b)"
# A number that stands in for a range, a bound, a share, another scale or a list is no mark.
_SPREAD = re.compile(r"\s*(?:(?:-+>?|=>|→|~|to|or|through|until|and)\s*\d|,\s*\d)")
_SCALE = re.compile(
    r"(?i)[ \t]*(?:/|⁄|\bout of(?: a possible)?\b|\b(?:of|von|sur|de|su)\b)[ \t]*"
    r"\(?(?P<top>\d+(?:\.\d+)?|three|five|ten)\b\)?"
)
_FREE = re.compile(
    r"\s*(?:$|\n|[.;,!)\]}|\"'(:](?!\d)|-\s*(?=[^\W\d])|"
    r"(?:点|分)|(?:points?|stars?|because|since|as|due|given|for|on|in|and)\b(?!\s*\d))"
)
_SEPARATOR = r"(?:[ \t]*(?:[:=|]|->|=>|→|-+|\.{4,}|\bis\b)[ \t]*)+"
# "Good (4)", "Good - 4": the verdict in words before the mark.
_VERDICT = (
    r"(?:(?:(?:very|fairly|quite|mostly)[ \t]+)?(?:good|bad|fair|poor|excellent|neutral|"
    r"moderate|high|low|human(?:-like)?|natural)[ \t]*(?:(?=\()|-+[ \t]*))?"
)
# "(1 = bad, 5 = good)" or "1-10" between label and number, but not "(turn 7)".
_HINT = (
    r"(?:\s*[(\[](?![^()\[\]\n]*\bturns?\b)[^()\[\]\n]{0,40}[)\]]|"
    r"\s+1\s*(?:-|to)\s*\d+(?=\s*[:=]))?"
)
_HINTED_TOP = re.compile(r"(?i)[(\[\s]1?\s*(?:-|to|/|out of)\s*(?P<top>\d+)\s*[)\]:=]")
_FILLER = (
    r"(?:[ \t]+(?:score|rating|mark|level|of|for|this|the|that|response|reply|message|candidate|"
    r"dialogue|as|is|at|a|an|be|would|should|i|it|give|rate|it's|its|to|equals|with|gets|"
    r"deserves|receives|assign|assigned))"
)
# In front of a label in a sentence: denied, supposed, about something else, or reported.
_BEFORE = re.compile(
    r"(?i)(?:\b(?:not|if|unless|example)\b|n't\b|\b(?:instead of|rather than|previous|earlier|last|"
    r"other|another|average|typical|reference|gold|initially|compared|wrote|writes|says|said|"
    r"claims?|claimed|asks?|asked|contains?|contained|includes?|included|ends? with|ending with|"
    r"closes? with|adds?|appends?|quotes?|quoted)\b)[^.;\n]{0,40}\Z|"
    # ... or a speaker says it, or the line above announces it as somebody else's, or as the form
    r"(?:\A|\n)[\s\-•]*(?:[a-z]|user|bot)\s*:\s*\Z|\bturn\s*\d+\s*\Z|"
    r"\b(?:reference|gold|other|example|format|template|the lines?|the text|the words|the form)\b"
    r"[^.\n\d]{0,40}\n[\s\-•]*\Z"
)
# Where a label may stand with nothing but a space before its number.
_FORM_PLACE = re.compile(
    r"(?i)(?:(?:^|[\n,;|{.)\d•-])\s*[\"']?|\b(?:rate|score)\s+(?:its\s+|the\s+)?)\Z"
)
_REFUSAL = re.compile(
    r"(?i)\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|can not|won't|will not|must "
    r"decline)|as an ai|unable to (?:rate|evaluate|provide|assess))"
)
_OTHER_SCALE = re.compile(
    r"(?i)\bscale\s+(?:of|from)?\s*\d+\s*(?:-|to)\s*\d+|\b\d+\s*(?:-|to)\s*\d+\s+scale\b"
)
# The judge says that it does not judge. "I cannot rate this higher than 4" is no refusal.
_DISCLAIMER = re.compile(
    r"(?i)\bi(?:'m| am)?\s+(?:cannot|can't|can not|unable to|not able to|won't|will not|"
    r"(?:must\s+)?decline to)\s+(?:really\s+)?(?:judge|rate|evaluate|assess|score|grade|help|"
    r"assist|comply|(?:give|provide|assign)\s+(?:a|any)\s+(?:score|rating|mark))\b"
    r"(?![^.\n]*(?:\d|\b(?:higher|highly|lower|full)\b))"
)


@dataclass(frozen=True)
class ParsedReply:
    """What a reply says: ``score`` is NaN unless ``status`` is ok or non_integer."""

    status: str
    score: float = NAN
    fields: dict[str, float] = field(default_factory=dict)  # every mark of the form that was read


def parse_reply(text: str | None, variant: Variant, transport: str = "ok") -> ParsedReply:
    """The score in a reply to ``variant``'s prompt, or NaN with a status that says why.

    A number counts only beside the label of its field, or, for a form with one field, as the
    whole reply or its first line. Echoes of the form ("- x", "1-5"), ranges, decimal commas,
    other scales and quoted text are no marks; two different marks for one field, or a second
    number near a mark that could be meant instead (`second_thoughts`), are ``ambiguous``;
    marks off the scale are ``out_of_range`` and are not clipped. A mark after the judge has said
    that it cannot judge is ``disclaimed``. ``transport`` is the status the call ended with: a
    refusal, a filter stop or a reply cut off by the length limit has no score, whatever its text.

    >>> from lib.cpdscore import variant
    >>> detail = variant("detail_without_reference")
    >>> parse_reply("**Humanness**: 4 - it sounds natural", detail).score
    4.0
    >>> parse_reply("- Humanness: 3-4", detail).status
    'ambiguous'
    >>> parse_reply("- Humanness: x", detail)
    ParsedReply(status='unparsable', score=nan, fields={})
    """
    if transport != "ok":
        return ParsedReply(transport)
    said = clean(text or "", variant.high)
    if not said:
        return ParsedReply("empty")
    found = {name: _field(said, name, variant) for name in variant.fields}
    fields = {name: value for name, (status, value) in found.items() if status in USABLE}
    status, score = found[variant.score_field]
    if status == "unparsable" and len(variant.fields) == 1:
        status, score = _bare(said, variant)
    elif status in USABLE and variant.level == "turn":  # "Humanness: 3", then "Final score: 4"
        others = [_mark(said, match, variant) for match in _GENERIC.finditer(said)]
        status, score = _agree([(status, score), *others])
    if status == "unparsable" and _REFUSAL.search(said):
        status = "refusal"
    elif status in USABLE and _disclaimed(said):
        status, score = "disclaimed", NAN
    elif status in USABLE and _OTHER_SCALE.search(said):  # the scale asked for is gone by now
        status, score = "unparsable", NAN
    return ParsedReply(status, score, fields)


def _disclaimed(text: str) -> bool:
    """Whether the judge refuses, in its own words, before the first number of its reply."""
    before = re.split(r"\d", re.sub(r'"[^"\n]*"', "", text), maxsplit=1)[0]
    return bool(_DISCLAIMER.search(before))


@cache
def _patterns(name: str) -> tuple[re.Pattern, re.Pattern]:
    """How a mark follows its label, in a form and in a sentence, and how it goes before it."""
    label = rf"(?<!\w)(?<!\w-){_ALIASES.get(name, name)}(?!\w)[\"']?"
    between = rf"(?:{_SEPARATOR}|(?<=[)\]])[ \t]*|(?P<weak>[ \t]+))"
    form = rf"(?:\s+(?:score|rating|mark)\b)?{_HINT}{between}{_VERDICT}[\"'(\[]*"
    prose = rf"(?:{_SEPARATOR}|(?=[ \t])){_FILLER}{{1,8}}(?:{_SEPARATOR})?[ \t]*"
    after = rf"{label}(?:{form}|{prose}){_NUMBER}"
    top = r"(?:\s*/\s*\d+|\s+out of\s+\d+)?"
    before = (
        r"\b(?:rate|give|score|assign|award|deserve|receive|get|earn|gave)[sd]?\b"
        rf"[^.\n\d]{{0,40}}?(?<![\d.,/-]){_NUMBER}"
        rf"(?P<rest>{top})\s+(?:points?\s+)?(?:for|on|in)\s+(?:its\s+|the\s+)?{label}"
    )
    return re.compile(after, re.IGNORECASE), re.compile(before, re.IGNORECASE)


def _field(text: str, name: str, variant: Variant) -> tuple[str, float]:
    """Status and value of one field over the whole reply."""
    marks = []
    after, before = _patterns(name)
    for pattern in (after, before):
        for match in pattern.finditer(text):
            if _quoted(text, match) or _BEFORE.search(text[: match.start()]):
                continue
            if match.groupdict().get("weak") and not _FORM_PLACE.search(text[: match.start()]):
                continue  # "had humanness 2" inside a sentence
            marks.append(_mark(text, match, variant))
    if pattern := _label_alone(name).search(text):  # "- Humanness:" and the number below it
        marks.append(_mark(text, pattern, variant))
    return _agree(marks)


@cache
def _label_alone(name: str) -> re.Pattern:
    label = rf"^[\s\-•]*{_ALIASES.get(name, name)}(?:\s+(?:score|rating))?{_HINT}\s*[:=]?[ \t]*\n+"
    return re.compile(rf"(?im){label}[\s\-•]*{_NUMBER}(?=\s*(?:$|\n|/|out of))")


def _mark(text: str, match: re.Match, variant: Variant) -> tuple[str, float] | None:
    """One candidate number: a mark, a misfit (with status), or None where it is no mark."""
    start, rest = match.start("value"), text[match.end("value") :]
    sign = text[max(0, start - 2) : start]
    if sign.endswith("-") and ":" in text[match.start() : start] and not sign.endswith(" -"):
        return ("unparsable", NAN)
    if sign.endswith(" -") and ":" in text[match.start() : start]:
        return ("out_of_range", NAN)  # "Humanness: -4"
    if _SPREAD.match(rest):
        return ("ambiguous", NAN)
    if scale := _SCALE.match(rest):
        if number(scale["top"]) != variant.high:
            return ("unparsable", NAN)
        rest = rest[scale.end() :]
    hinted = _HINTED_TOP.search(text, match.start(), start)
    if hinted and float(hinted["top"]) != variant.high:
        return ("unparsable", NAN)
    value = number(match["value"])
    rest = without_repeats(rest, value, variant.high)
    free = _FREE.match(rest) or _next_label(rest, variant)
    if not free and counted(rest):
        return None
    if second_thoughts(rest, value):
        return ("ambiguous", NAN)
    if not free:
        return None
    return _on_scale(value, variant)


def _next_label(rest: str, variant: Variant) -> bool:
    return any(
        re.match(rf"\s+[-•]?\s*{_ALIASES.get(name, name)}\b", rest, re.IGNORECASE)
        for name in variant.fields
    )


def _on_scale(value: float, variant: Variant) -> tuple[str, float]:
    if not 1 <= value <= variant.high:
        return ("out_of_range", NAN)
    whole = value == int(value) or variant.level == "dialog"
    return ("ok" if whole else "non_integer", value)


def _agree(marks: list[tuple[str, float] | None]) -> tuple[str, float]:
    """One verdict over all candidates: marks that agree, else the reason there is none."""
    marks = [mark for mark in marks if mark]
    values = {value for status, value in marks if status in USABLE}
    misfits = [status for status, _ in marks if status not in USABLE]
    if "ambiguous" in misfits or len(values) > 1 or (values and "out_of_range" in misfits):
        return ("ambiguous", NAN)
    if values:
        return next(mark for mark in marks if mark[0] in USABLE)
    return (misfits[0], NAN) if misfits else ("unparsable", NAN)


def _quoted(text: str, match: re.Match) -> bool:
    """Whether label and number stand inside one pair of quotation marks: somebody else's words."""
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    if before.count('"') % 2 == 1 and '"' not in match[0]:
        return True
    return bool(re.search(r"(?:^|\s)'$", before)) and "'" not in match[0]


_GENERIC = re.compile(
    rf"(?im)(?:^|[.!?]\s+)[\s\-•{{\"]*(?:(?:my|the|final|overall|revised|corrected)\s+)*(?:score|rating|mark|answer)"
    rf"\"?\s*(?:[:=-]|is)\s*[\"'(\[]*{_NUMBER}"
)
_HEAD = re.compile(rf"(?i)^[\s\-•:(\[\"']*(?:(?:score|rating)[ \t]+)?{_NUMBER}")
_LISTED = re.compile(r"^\s*[.)]\s+\S")


def _bare(text: str, variant: Variant) -> tuple[str, float]:
    """Without the label, for a form with one field: "Score: 4", or a number that is the whole
    reply or its first line. The numbers of a list ("1. The response ...") are no marks."""
    marks = [_mark(text, match, variant) for match in _GENERIC.finditer(text)]
    first, *others = [line for line in text.splitlines() if line.strip()]
    if (match := _HEAD.match(first)) and not _LISTED.match(first[match.end("value") :]):
        listed = any(_HEAD.match(line) for line in others)
        marks.append(("unparsable", NAN) if listed else _mark(first, match, variant))
    return _agree(marks)


# -- what the judge did not mean as its mark -----------------------------------------------------

_PARTS = {"¼": ".25", "½": ".5", "¾": ".75"}


def clean(text: str, top: int) -> str:
    """The text without reasoning blocks, quoted lines, markdown, invisible characters, and the
    scale itself ("on a scale of 1 to 5"), whose two ends are no marks.

    >>> clean("**Humanness** (1-5): 3½", 5)
    'Humanness : 3.5'
    """
    text = re.sub(r"(?<=\d)[¼½¾]", lambda part: _PARTS[part[0]], text)
    text = re.sub("[¼-¾⅐-⅞↉]", "?", text)  # which the next line would turn into digits
    text = unicodedata.normalize("NFKC", text)
    text = re.sub(r"<think>.*?(?:</think>|$)", "", text, flags=re.DOTALL)
    text = text.rpartition("</think>")[2]  # some servers put the opening tag into the prompt
    text = re.sub(r"\\boxed\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\$(\d+(?:\.\d+)?)\$|<(\d+(?:\.\d+)?)>", r"\1\2", text)
    text = re.sub("[\ufe0e\ufe0f\u20e3]", "", text)  # what turns a digit into a picture of it
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "So"))
    text = re.sub(r"[‐‑‒–—−]", "-", text).replace("“", '"').replace("”", '"').replace("’", "'")
    text = re.sub(r"~~.*?~~", "", text)
    text = re.sub(r"[*`#]+|\b_+|_+\b|</?[^\W\d]\w*>", "", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(">")]
    return _without_scale("\n".join(lines), top).strip()


def _without_scale(text: str, top: int) -> str:
    """Both ends of the scale named together: "1-5", "1 (lowest) to 5 (highest)"."""
    ends = (
        r"(?:,\s*)?(?:\bon\s+)?(?:\b(?:a|the)\s+)?(?:\bscale\s+)?(?:\b(?:of|from)\s+)?"
        rf"(?<![\w.,/+-])1(?:\s*\([^()\n]*\)\s*to\s*{top}\s*\([^()\n]*\)|"
        rf"\s*(?:-|to)\s*{top}(?![\w/%+]|[.,]\d))(?:\s+scale\b)?"
    )
    return re.sub(rf"[(\[]\s*{ends}\s*[)\]]|{ends}", "", text, flags=re.IGNORECASE)


# -- a second number beside a mark: a revision, a range, another scale, or just a detail? ----------

# Where the line goes on with another quality of the form, the number there is that quality's.
_QUALITY = re.compile(
    r"(?i)\b(?:overall|fluency|coheren(?:cy|ce)|consistency|engag\w+|human(?:ness|-?likeness)|"
    r"dialogue|final)(?:\s+(?:dialogue|turn|interaction|evaluation|quality|score|rating))*"
    r"[\"']?\s*[:=|\d-]|"
    r"\b(?:fluency|coheren(?:cy|ce)|consistency|interaction)"
    r"(?:\s+(?:score|rating|mark|alone|of|is|was|would|be|gets))+\s+\d"
)
_OTHER_NUMBER = re.compile(
    r"(?i)(?<![\w$€£#])(?<!\d[.,:])(?P<value>\d+(?:\.\d+)?|two|three|four|five|ten)(?![\w%:])"
)
# "2 of 3 facts", "3 reasons": a counted thing. What follows here does not name one.
_COUNTED = re.compile(
    r"(?i)(?:\s+(?:out\s+)?of\s+(?:the\s+)?(?:\d+|two|three|four|five))?\s+"
    r"(?!(?:for|on|in|at|is|as|to|or|and|if|would|when|but|because|points?|stars?|being|best|"
    r"max\w*|instead|here|though|overall|even|from|of|with|fits|might|may|could|seems?|"
    r"maybe|perhaps|possibly|probably|rather|again|too|not|now|no|also|then|after)\b)[^\W\d]"
)
# "not a 5", "turn 3", "a 5 would need": named, but not chosen.
_NOT_CHOSEN = re.compile(
    r"(?i)(?:\b(?:not|n't|than|instead of|short of|reach|deserve|merit)(?:\s+[a-z]+){0,2}|"
    r"\b(?:turns?|lines?|sentences?|steps?|facts?|messages?|utterances?|aged?|asked for|"
    r"rounded from)|\((?:average|mean)(?:\s+of)?(?:\s+[\d.]+,?)*(?:\s+and)?)\s+$"
)
_MISSED = re.compile(r"(?i)\s+(?:(?:would\s+)?(?:needs?|requires?|have needed)|would be too)\b")
_HALF = re.compile(r"(?i)[\s-]+(?:and[\s-]+)?a?[\s-]*half\b")
_SHARE = re.compile(
    r"(?i)\(?(?P<part>\d+(?:\.\d+)?|one|two|three|four|five)\s*(?:/|\bout of\b)\s*"
    r"(?P<whole>\d+|three|five|ten)\b\)?"
)
_LATER = re.compile(
    r"(?im)^[\s\-•(]*(?:actually|corrections?|no|revised?|revision|finally|on reflection|on second "
    r"thoughts?|rather|instead|updated?|wait|hmm)\b[^\n\d]{0,40}"
    r"(?:\d|\b(?:one|two|three|four|five)\b)"
)
WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}


def number(said: str) -> float:
    """The value of a number in digits or in words.

    >>> number("3.5"), number("Four")
    (3.5, 4.0)
    """
    return float(WORDS.get(said.lower(), said))


def without_repeats(rest: str, mark: float, top: int) -> str:
    """``rest`` without what only says the mark, or the end of the scale, once more.

    >>> without_repeats(" (8 out of 10), it is warm", 4, 5), without_repeats(" (out of 5)", 4, 5)
    (' , it is warm', ' ')
    """
    rest = _SHARE.sub(lambda share: "" if _same(share, mark, top) else share[0], rest)
    return re.sub(rf"\(?\bout of {top}\b\)?", "", rest, flags=re.IGNORECASE)


def _same(share: re.Match, mark: float, top: int) -> bool:
    part, whole = number(share["part"]), number(share["whole"])
    return whole > 0 and abs(part / whole - mark / top) < 1e-9


def counted(rest: str) -> bool:
    """Whether the number in front of ``rest`` counts things: "2 turns were repeated"."""
    return bool(_COUNTED.match(rest))


def second_thoughts(rest: str, mark: float) -> bool:
    """Whether what follows a mark names another one, so that it is not certain which is meant.

    ``rest`` is the reply from behind ``mark``. The same mark again ("4 (four)"), counted things
    ("3 reasons", "turn 2"), marks ruled out ("not a 5") and figures that no judge would give (34,
    1990) raise no doubt; nor do later lines, unless one opens as a revision.

    >>> second_thoughts(", perhaps 5", 4), second_thoughts(" - a 5 would need more warmth", 4)
    (True, False)
    """
    if _HALF.match(rest):
        return True
    line, _, later = rest.partition("\n")
    if quality := _QUALITY.search(line):
        line = line[: quality.start()]
    doubted = any(_is_mark(line, match, mark) for match in _OTHER_NUMBER.finditer(line))
    return doubted or bool(_LATER.search(later))


def _is_mark(line: str, match: re.Match, mark: float) -> bool:
    value, after = number(match["value"]), line[match.end() :]
    if value == mark or not (1 <= value <= 10 or value == 100):
        return False
    if _NOT_CHOSEN.search(line[: match.start()]) or _MISSED.match(after):
        return False
    return not _COUNTED.match(after)
