"""The English stop words that RED's content words and the metric "specificity" leave out."""

from functools import cache
from pathlib import Path

STOP_WORDS = Path(__file__).with_name("stop_words.txt")


@cache
def stop_words() -> frozenset[str]:
    """The 179 English stop words of NLTK.

    >>> "you're" in stop_words(), "dialogue" in stop_words(), len(stop_words())
    (True, False, 179)
    """
    return frozenset(STOP_WORDS.read_text(encoding="utf-8").split())
