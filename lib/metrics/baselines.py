"""Rule-based baselines (EnDex, section 3.3), the number of words, and chance.

The rules treat every corpus alike, whether its texts are tokenised ("was it cold ?") or not: a word
is a run of letters and digits, with apostrophes inside; other characters belong to no word.
"""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from lib.data.stop_words import STOP_WORDS, stop_words
from lib.data.storage import file_sha256
from lib.metrics.registry import metric

WORD = re.compile(r"\w+(?:'\w+)*")


@metric("question", "baseline", version="2")
def question(turns: pd.DataFrame) -> pd.Series:
    """1 where the reply has a question mark, else 0 (the Question row of Table 2).

    The paper gives no definition. Counting question words anywhere in the reply as well gives its
    row to the digit on BETTER and PREDENG-600, but takes "it turned red when the sun set" for a
    question. Higher is more engaging; NaN for a missing reply.

    >>> question(pd.DataFrame({"response": ["have you tried it?", "It was red when I left."]}))[0]
    np.float64(1.0)
    """
    return _score_responses(turns, lambda text: "?" in text, "question")


@metric(
    "specificity",
    "baseline",
    version="2",
    provenance=lambda: {"stop_words": file_sha256(STOP_WORDS)},
)
def specificity(turns: pd.DataFrame) -> pd.Series:
    """Content words of the reply: those that are not on the stop list (See et al. 2019).

    Range 0 and up, higher is more engaging; NaN for a missing reply. The paper's row could not be
    reproduced by this or by any other variant of the count that was tried.

    >>> specificity(pd.DataFrame({"response": ["I bake rye bread", "ok i am"]})).tolist()
    [3.0, 1.0]
    """

    def content_words(text):
        return sum(word not in stop_words() for word in tokenize_words(text))

    return _score_responses(turns, content_words, "specificity")


@metric("length", "baseline", version="2")
def length(turns: pd.DataFrame) -> pd.Series:
    """Words of the reply: what a metric must beat to be worth its cost.

    Range 0 and up, higher is more engaging; NaN for a missing reply.

    >>> length(pd.DataFrame({"response": ["I bake bread!", "I bake bread !", ""]})).tolist()
    [3.0, 3.0, 0.0]
    """
    return _score_responses(turns, lambda text: len(tokenize_words(text)), "length")


@metric("random", "baseline", version="1", all_rows_at_once=True)
def random(turns: pd.DataFrame, seed: int = 0) -> pd.Series:
    """Uniform draws between 0 and 1: what chance reaches on a set of this size.

    >>> random(pd.DataFrame({"response": ["a", "b"]})).between(0, 1).all()
    np.True_
    """
    return pd.Series(
        np.random.default_rng(seed).random(len(turns)), turns.index, name="random"
    )


def tokenize_words(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> tokenize_words("Don't!  Isn’t it 3 o'clock ?")
    ["don't", "isn't", 'it', '3', "o'clock"]
    """
    return WORD.findall(text.lower().replace("’", "'"))


def _score_responses(
    turns: pd.DataFrame, score: Callable[[str], float], name: str
) -> pd.Series:
    scores = np.full(len(turns), np.nan)
    for row, text in enumerate(turns["response"]):
        if isinstance(text, str):
            scores[row] = score(text)
    return pd.Series(scores, turns.index, name=name)
