"""A second number beside a mark: a revision, a range, another scale, or just a detail?"""

import re

# Where the line goes on with another quality of the form, the number there is that quality's.
_QUALITY = re.compile(
    r"\b(?:overall|fluency|coheren(?:cy|ce)|consistency|engag\w+|human(?:ness|-?likeness)|"
    r"dialogue|final)(?:\s+(?:dialogue|turn|interaction|evaluation|quality|score|rating))*"
    r"[\"']?\s*[:=|\d-]",
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
    r"max\w*|instead|here|though|overall|even|from|of|with|fits|might|may|could|seems?)\b)[^\W\d]",
    re.IGNORECASE,
)
# "not a 5", "turn 3", "a 5 would need": named, but not chosen.
_NOT_CHOSEN = re.compile(
    r"(?:\b(?:not|n't|than|instead of|short of|reach|deserve|merit)(?:\s+[a-z]+){0,2}|"
    r"\b(?:turns?|lines?|sentences?|steps?|facts?|messages?|utterances?|aged?|asked for|"
    r"rounded from)|\((?:average|mean)(?:\s+of)?(?:\s+[\d.]+,?)*(?:\s+and)?)\s+$",
    re.IGNORECASE,
)
_MISSED = re.compile(r"\s+(?:would\s+)?(?:needs?|requires?|have needed)\b", re.IGNORECASE)
_HALF = re.compile(r"[\s-]+(?:and[\s-]+)?a?[\s-]*half\b", re.IGNORECASE)
_OWN_SCALE = (
    r"\(?(?:\bout of\s+{top}|(?:\bon\s+)?(?:a\s+|the\s+)?\bscale\s+(?:of\s+|from\s+)?1\s*"
    r"(?:-|to)\s*{top}|\b1\s*(?:-|to)\s*{top}\s+scale)\b\)?"
)
_LATER = re.compile(
    r"^[\s\-•(]*(?:actually|corrections?|no|revised?|revision|finally|on reflection|on second "
    r"thoughts?|rather|instead|updated?|wait|hmm)\b[^\n\d]{0,40}"
    r"(?:\d|\b(?:one|two|three|four|five)\b)",
    re.IGNORECASE | re.MULTILINE,
)


def second_thoughts(rest: str, top: int) -> bool:
    """Whether what follows a mark names another one, so that it is not certain which is meant.

    ``rest`` is the reply from behind the mark, ``top`` the end of the scale. Counted things
    ("3 reasons", "turn 2"), the scale itself, marks ruled out ("not a 5") and figures that no
    judge would give (34, 1990) raise no doubt; nor do later lines, unless one opens as a revision.

    >>> second_thoughts(", perhaps 5", 5), second_thoughts(" - a 5 would need more warmth", 5)
    (True, False)
    """
    if _HALF.match(rest):
        return True
    line = rest.partition("\n")[0]
    if quality := _QUALITY.search(line):
        line = line[: quality.start()]
    line = re.sub(_OWN_SCALE.format(top=top), " ", line, flags=re.IGNORECASE)
    return any(_is_mark(line, match) for match in _NUMBER.finditer(line)) or bool(
        _LATER.search(rest.partition("\n")[2])
    )


def _is_mark(line: str, match: re.Match) -> bool:
    value, after = match["value"], line[match.end() :]
    if value[0].isdigit() and not (1 <= float(value) <= 10 or value == "100"):
        return False
    if _NOT_CHOSEN.search(line[: match.start()]) or _MISSED.match(after):
        return False
    return not _COUNTED.match(after)
