"""How texts are prepared before words are compared, and what an overlap is when one is missing."""

import re
import string
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from lib.data.blank import is_blank

_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@lru_cache(maxsize=2**16)  # references come back with every system that answers the same context
def normalize_answer(text: str) -> str:
    """Lower-case a text, and turn punctuation, articles and runs of white space into one space.

    The ``normalize_answer`` of ParlAI, which the ComperDial paper applies before its overlap
    metrics (Wakaki et al. 2024, appendix C.2, Table 14). Punctuation is that of ASCII; it becomes
    a space, so "don't" is two words.

    >>> normalize_answer("The cat's  hat, a RED one!")
    'cat s hat red one'
    >>> normalize_answer("The ... a")
    ''
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def prepare(
    response: str | None, references: Sequence[str], clean: Callable[[str], str]
) -> tuple[str | None, list[str]]:
    """Clean a response and its references; None for a blank response.

    References that hold no word after cleaning are left out: nothing can overlap with them.

    >>> prepare(" Hi there ", ["Hello ", "  "], str.strip)
    ('Hi there', ['Hello'])
    >>> prepare(" ", ["Hello"], str.strip), prepare("The ...", ["Hello"], normalize_answer)
    ((None, ['Hello']), ('', ['hello']))

    Raises
    ------
    TypeError
        When `references` is one text instead of a list of texts.
    """
    if isinstance(references, str):
        raise TypeError("references is one text, not a list of texts: write [reference]")
    kept = [cleaned for text in references if not is_blank(text) and (cleaned := clean(text))]
    return (None if is_blank(response) else clean(response)), kept


def undefined(response: str | None, references: Sequence[str]) -> float:
    """The score of a prepared pair that no formula covers: NaN, or 0.0 for one without a word.

    Without a response (None) or without a reference there is nothing to measure: NaN. A response
    of which cleaning left no word, such as "...", shares nothing with any reference: 0.

    >>> undefined(None, ["Hello"]), undefined("", []), undefined("", ["Hello"])
    (nan, nan, 0.0)
    """
    return np.nan if response is None or not references else 0.0
