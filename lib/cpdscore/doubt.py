"""A second number beside a mark: a revision, a range, another scale, or just a detail?"""

import re

# Where the line goes on with another quality of the form, the number there is that quality's.
_QUALITY = re.compile(
    r"\b(?:overall|fluency|coheren(?:cy|ce)|consistency|engag\w+|human(?:ness|-?likeness)|"
    r"dialogue|final)(?:\s+(?:dialogue|turn|interaction|evaluation|quality|score|rating))*"
    r"[\"']?\s*[:=|\d-]|"
    r"\b(?:fluency|coheren(?:cy|ce)|consistency|interaction)"
    r"(?:\s+(?:score|rating|mark|alone|of|is|was|would|be|gets))+\s+\d",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w$€£#])(?<!\d[.,:])(?P<value>\d+(?:\.\d+)?|two|three|four|five|ten)(?![\w%:])",
    re.IGNORECASE,
)
# "2 of 3 facts", "3 reasons": a counted thing. What follows here does not name one.
_COUNTED = re.compile(
    r"(?:\s+(?:out\s+)?of\s+(?:the\s+)?(?:\d+|two|three|four|five))?\s+"
    r"(?!(?:for|on|in|at|is|as|to|or|and|if|would|when|but|because|points?|stars?|being|best|"
    r"max\w*|instead|here|though|overall|even|from|of|with|fits|might|may|could|seems?|"
    r"maybe|perhaps|possibly|probably|rather|again|too|not|now|no|also|then|after)\b)[^\W\d]",
    re.IGNORECASE,
)
# "not a 5", "turn 3", "a 5 would need": named, but not chosen.
_NOT_CHOSEN = re.compile(
    r"(?:\b(?:not|n't|than|instead of|short of|reach|deserve|merit)(?:\s+[a-z]+){0,2}|"
    r"\b(?:turns?|lines?|sentences?|steps?|facts?|messages?|utterances?|aged?|asked for|"
    r"rounded from)|\((?:average|mean)(?:\s+of)?(?:\s+[\d.]+,?)*(?:\s+and)?)\s+$",
    re.IGNORECASE,
)
_MISSED = re.compile(
    r"\s+(?:(?:would\s+)?(?:needs?|requires?|have needed)|would be too)\b", re.IGNORECASE
)
_HALF = re.compile(r"[\s-]+(?:and[\s-]+)?a?[\s-]*half\b", re.IGNORECASE)
_SHARE = re.compile(
    r"\(?(?P<part>\d+(?:\.\d+)?|one|two|three|four|five)\s*(?:/|\bout of\b)\s*"
    r"(?P<whole>\d+|three|five|ten)\b\)?",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"^[\s\-•(]*(?:actually|corrections?|no|revised?|revision|finally|on reflection|on second "
    r"thoughts?|rather|instead|updated?|wait|hmm)\b[^\n\d]{0,40}"
    r"(?:\d|\b(?:one|two|three|four|five)\b)",
    re.IGNORECASE | re.MULTILINE,
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
    doubted = any(_is_mark(line, match, mark) for match in _NUMBER.finditer(line))
    return doubted or bool(_LATER.search(later))


def _is_mark(line: str, match: re.Match, mark: float) -> bool:
    value, after = number(match["value"]), line[match.end() :]
    if value == mark or not (1 <= value <= 10 or value == 100):
        return False
    if _NOT_CHOSEN.search(line[: match.start()]) or _MISSED.match(after):
        return False
    return not _COUNTED.match(after)
