"""Content words: the tokens of a text that are not on the stop list.

The attentional dimension of EnDex counts them (equation 7), and so does the Specificity baseline.
A token is a run of `[a-z0-9']` in the lower-cased text; the stop list is the 179 English words of
NLTK. The same count is made in two ways: with Python's sets for one text, and with arithmetic on
the bytes of many texts for a dump, where looking up each word alone would be the largest cost.
"""

import re
from functools import cache
from importlib import resources
from itertools import count

import numpy as np
import pyarrow as pa

TOKEN = re.compile(r"[a-z0-9']+")
BLANK = ord(" ")
# Every byte that is no part of a token becomes a blank.
TOKEN_BYTES = bytes(b if TOKEN.fullmatch(chr(b)) else BLANK for b in range(256))
FIRST_BYTES = np.array([256**n - 1 for n in range(9)], dtype="<u8")  # keeps n of eight bytes


@cache
def stop_words() -> frozenset[str]:
    """The 179 English stop words of NLTK.

    >>> "you're" in stop_words(), "dialogue" in stop_words(), len(stop_words())
    (True, False, 179)
    """
    text = resources.files("lib.reddit").joinpath("stop_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def content_words(text: str) -> int:
    """Count the tokens of `text` that are not stop words (the `t` of EnDex, equation 7).

    Range 0 and up; 0 for an empty text.

    >>> content_words("It's the best pumpkin soup I have ever had, isn't it?")
    4
    """
    return sum(token not in stop_words() for token in TOKEN.findall(text.lower()))


def count_content_words(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Count the content words of each text of a column: `content_words`, for a database.

    Args:
        texts: strings, lower-case and none missing.

    Returns:
        One integer (int32) per text.

    >>> count_content_words(pa.array(["the best pumpkin soup", "", "isn't it?"])).to_pylist()
    [3, 0, 0]
    """
    texts = pa.concat_arrays(getattr(texts, "chunks", [texts])).cast(pa.large_string())
    _, positions, characters = texts.buffers()
    ends = np.frombuffer(positions, "<i8")[texts.offset :][: len(texts) + 1]
    letters = np.frombuffer(characters or b"", np.uint8)[ends[0] : ends[-1]]
    # A blank before each text and after the last: no token spans two texts.
    joined = np.insert(letters, ends - ends[0], BLANK).tobytes().translate(TOKEN_BYTES)
    edges = np.flatnonzero(np.diff(np.frombuffer(joined, np.uint8) != BLANK)) + 1
    starts, lengths = edges[::2], np.diff(edges)[::2]
    content = np.zeros(len(joined), bool)
    content[starts] = ~_on_stop_list(joined, starts, lengths)
    firsts = (ends - ends[0] + np.arange(len(ends)))[:-1]
    return pa.array(np.add.reduceat(content, firsts, dtype=np.int32))


def _on_stop_list(joined: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Whether the tokens at these places are stop words, by their first and next eight bytes."""
    # The eight bytes from each place on, as one number each.
    eight = np.ndarray(len(joined) + 9, "<u8", joined + bytes(16), strides=1)
    first = eight[starts] & FIRST_BYTES[np.minimum(lengths, 8)]
    second = eight[starts + 8] & FIRST_BYTES[np.clip(lengths - 8, 0, 8)]
    firsts, seconds = _stop_table()
    slot = first % np.uint64(len(firsts))
    return (firsts[slot] == first) & (seconds[slot] == second)


@cache
def _stop_table() -> tuple[np.ndarray, np.ndarray]:
    """First and next eight bytes of the stop words, each word at its first bytes modulo the size.

    The size is the smallest that gives every word a slot of its own.
    """
    words = b"".join(word.encode().ljust(16, b"\0") for word in sorted(stop_words()))
    table = np.frombuffer(words, "<u8").reshape(-1, 2)
    size = next(n for n in count(len(table)) if len(set(table[:, 0] % np.uint64(n))) == len(table))
    slots = np.zeros((size, 2), "<u8")
    slots[table[:, 0] % np.uint64(size)] = table
    return slots[:, 0].copy(), slots[:, 1].copy()
