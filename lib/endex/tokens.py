"""Content words: the tokens of a text that are not on the stop list.

The attentional dimension of EnDex counts them (equation 7), and so does the Specificity baseline.
A token is a run of `[a-z0-9']` in the lower-cased text; the stop list is the 179 English words of
NLTK. The same count is made in two ways: with Python's sets for one text, and with arithmetic on
the bytes of many texts for a dump, where looking up each word alone would be the largest cost.
"""

import re
from functools import cache
from importlib import resources

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TOKEN = re.compile(r"[a-z0-9']+")
BLANK = ord(" ")
# Every byte in lower case; a blank where it is no part of a token.
TOKEN_BYTES = bytes(
    ord(letter) if TOKEN.fullmatch(letter) else BLANK
    for letter in (chr(byte).lower() for byte in range(256))
)
# The letters outside ASCII that are a token in lower case: I with a dot (which ends the token) and
# the sign for kelvin.
FOREIGN = {"\u0130": "i ", "\u212a": "k"}
FIRST_BYTES = np.array([256**n - 1 for n in range(9)], dtype="<u8")  # keeps n of eight bytes
SLOTS = 1 << 12  # of the table of stop words


@cache
def stop_words() -> frozenset[str]:
    """The 179 English stop words of NLTK.

    >>> "you're" in stop_words(), "dialogue" in stop_words(), len(stop_words())
    (True, False, 179)
    """
    text = resources.files("lib.endex").joinpath("stop_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


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
    _, positions, characters = texts.buffers()
    ends = np.frombuffer(positions, "<i8")[: len(texts) + 1]
    letters = np.frombuffer(characters or b"", np.uint8)[: ends[-1]]
    # A blank before each text and after the last: no token spans two texts.
    joined = np.insert(letters, ends, BLANK).tobytes().translate(TOKEN_BYTES)
    in_token = np.frombuffer(joined, np.uint8) != BLANK
    edges = np.flatnonzero(in_token[1:] != in_token[:-1]) + 1
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    content = starts[~_on_stop_list(joined, starts, lengths)]
    blanks = ends + np.arange(len(ends))
    return pa.array(np.diff(np.searchsorted(content, blanks)), pa.int32())


def _on_stop_list(joined: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Whether the tokens at these places are stop words, by their first and next eight bytes."""
    # The eight bytes from each place on, as one number each.
    eight = np.ndarray(len(joined) + 9, "<u8", joined + bytes(16), strides=1)
    firsts, seconds, factor = _stop_table()
    first = eight[starts] & FIRST_BYTES.take(lengths, mode="clip")
    slot = _slot(first, factor)
    found = firsts[slot] == first
    long = np.flatnonzero(found & (lengths >= 8))  # few; the shorter ones are settled
    second = eight[starts[long] + 8] & FIRST_BYTES.take(lengths[long] - 8, mode="clip")
    found[long] = seconds[slot[long]] == second
    return found


def _slot(first: np.ndarray, factor: np.uint64) -> np.ndarray:
    """The place of a word in the table of stop words: the highest bits of a product."""
    return (first * factor) // np.uint64(2**64 // SLOTS)


@cache
def _stop_table() -> tuple[np.ndarray, np.ndarray, np.uint64]:
    """First and next eight bytes of the stop words, each in its slot, and the factor of `_slot`.

    The factor is the first of a fixed series that gives every word a slot of its own.
    """
    words = b"".join(word.encode().ljust(16, b"\0") for word in sorted(stop_words()))
    first, second = np.frombuffer(words, "<u8").reshape(-1, 2).T
    factors = np.random.default_rng(0).integers(2**63, 2**64, 10_000, np.uint64)
    factor = next(f for f in factors if len(set(_slot(first, f).tolist())) == len(first))
    firsts, seconds = np.zeros((2, SLOTS), "<u8")
    slots = _slot(first, factor)
    firsts[slots], seconds[slots] = first, second
    return firsts, seconds, factor
