"""When a text counts as missing: there is nothing in it that a reader could see."""

import unicodedata

# Control and format characters (zero-width ones, byte order marks) and white space of all kinds.
UNSEEN = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))


def is_blank(text: object) -> bool:
    r"""Say whether a response, context turn or reference is missing or shows no character.

    A blank text has no score: every metric gives NaN for it, whatever its model would make of
    invisible characters. Punctuation and emoji are seen, so "..." is not blank.

    >>> [is_blank(text) for text in (None, float("nan"), "", " \n", "\x00\x07", "\u200b\ufeff")]
    [True, True, True, True, True, True]
    >>> [is_blank(text) for text in ("tea", "...", "🙂", "\x00 tea")]
    [False, False, False, False]
    """
    if not isinstance(text, str):
        return True
    return all(unicodedata.category(character) in UNSEEN for character in text)
