"""Content words: the tokens of a text that are not on the stop list.

The attentional dimension of EnDex counts them (equation 7), and so does the Specificity baseline.
A token is a run of `[a-z0-9']` in the lower-cased text; the stop list is the 179 English words of
NLTK. The same count is made in two ways: with Python's sets for one text, and by Arrow for the
texts of a dump, where looking up each word alone would be the largest cost.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

STOP_WORDS = Path(__file__).with_name("stop_words.txt")
TOKEN = re.compile(r"[a-z0-9']+")
# Every byte in lower case; a blank where it is no part of a token.
TOKEN_BYTES = "".join(
    letter if TOKEN.fullmatch(letter) else " " for letter in (chr(n).lower() for n in range(256))
).encode("latin-1")
# The letters outside ASCII that are a token in lower case: I with a dot (which ends the token) and
# the sign for kelvin.
FOREIGN = {"\u0130": "i ", "\u212a": "k"}


@cache
def stop_words() -> frozenset[str]:
    """The 179 English stop words of NLTK.

    >>> "you're" in stop_words(), "dialogue" in stop_words(), len(stop_words())
    (True, False, 179)
    """
    return frozenset(STOP_WORDS.read_text(encoding="utf-8").split())


def content_words(text: str) -> int:
    """Count the tokens of `text` that are not stop words (the `t` of EnDex, equation 7).

    Range 0 and up; 0 for an empty text.

    >>> content_words("It's the best pumpkin soup I have ever had, isn't it?")
    4
    """
    return sum(token not in stop_words() for token in TOKEN.findall(text.lower()))


def count_content_words(texts: pa.Array) -> pa.Array:
    """Count the content words of each text of a column: `content_words` of many texts.

    Args:
        texts: strings, none missing.

    Returns:
        One integer (int32) per text, 0 and up.

    >>> count_content_words(pa.array(["the best Pumpkin soup", "", "isn't it?"])).to_pylist()
    [3, 0, 0]
    """
    texts = texts.cast(pa.large_string())
    for letter, ascii_letters in FOREIGN.items():
        texts = pc.replace_substring(texts, letter, ascii_letters)
    _, ends, letters = texts.buffers()
    # Byte for byte, so that each text still ends where it did.
    letters = pa.py_buffer((letters.to_pybytes() if letters else b"").translate(TOKEN_BYTES))
    plain = pa.LargeStringArray.from_buffers(len(texts), ends, letters, offset=texts.offset)
    words = pc.ascii_split_whitespace(plain)  # "" where a text begins or ends with a blank
    counted = pc.invert(pc.is_in(words.values, pa.array(["", *stop_words()], pa.large_string())))
    before = np.concatenate([[0], np.cumsum(counted)])
    return pa.array(np.diff(before[words.offsets]), pa.int32())
