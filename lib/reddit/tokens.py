"""Content words: the tokens of a text that are not on the stop list.

The attentional dimension of EnDex counts them (equation 7), and so does the Specificity baseline.
A token is a run of lower-cased `[a-z0-9']`; the stop list is the 179 English words of NLTK. The
same count is made in two ways: by Python for a text, and by one regular expression for a dump,
because a set look-up per word costs a database several times more.
"""

import re
from functools import cache
from importlib import resources

TOKEN = re.compile(r"[a-z0-9']+")
# In the regular expression the apostrophe is written `_`, so that `\b` and `\w` mean our tokens.
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"


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


@cache
def content_word_pattern() -> str:
    r"""A regular expression that matches exactly the content words, for engines without sets.

    The stop words form a tree of letters; the pattern lists every way to leave that tree. It
    expects lower-case text in which `_` was replaced by a space and the apostrophe by `_`.

    >>> re.findall(content_word_pattern(), "it_s the pumpkin of theo")
    ['pumpkin', 'theo']
    """
    tree: dict = {}
    for word in stop_words():
        node = tree
        for letter in word.replace("'", "_"):
            node = node.setdefault(letter, {})
        node["end"] = True
    return rf"\b{_leaving(tree)}\b"


def _leaving(node: dict) -> str:
    """The continuations at `node` that do not end on a stop word."""
    letters = [letter for letter in node if letter != "end"]
    others = "".join(letter for letter in CHARACTERS if letter not in letters)
    ways = [rf"[{others}]\w*"]
    for letter in letters:
        stops_here = "end" in node[letter]
        ways.append(letter + _leaving(node[letter]) + ("" if stops_here else "?"))
    return f"(?:{'|'.join(ways)})"
