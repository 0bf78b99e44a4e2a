"""The rule-based baselines of EnDex (section 3.3), and the length of the reply."""

import numpy as np
import pandas as pd

from lib.endex.tokens import content_words
from lib.metrics.registry import metric

# A reply asks if one of its whitespace-separated tokens is one of these.
QUESTION_TOKENS = frozenset(
    ["how", "what", "when", "where", "which", "who", "whom", "whose", "why", "?"]
)


@metric("question", "baseline", version="1")
def question(turns: pd.DataFrame) -> pd.Series:
    """1 where the reply asks a question, else 0 (the Question row of Table 2).

    The paper gives no definition. This one, on lower-cased whitespace tokens, gives the published
    correlations on BETTER and PREDENG-600 to the digit; their texts are tokenised, so that the
    question mark is a token of its own. Higher is more engaging; NaN for a missing reply.

    >>> question(pd.DataFrame({"response": ["How are you ?", "Fine ."]})).tolist()
    [1.0, 0.0]
    """
    return _of_response(turns, _asks, "question")


@metric("specificity", "baseline", version="1")
def specificity(turns: pd.DataFrame) -> pd.Series:
    """Content words of the reply: tokens that are not stop words (See et al. 2019).

    Range 0 and up, higher is more engaging; NaN for a missing reply. The paper's row could not be
    reproduced by this or by any other variant of the count that was tried.

    >>> specificity(pd.DataFrame({"response": ["I bake rye bread", "ok i am"]})).tolist()
    [3.0, 1.0]
    """
    return _of_response(turns, content_words, "specificity")


@metric("length", "baseline", version="1")
def length(turns: pd.DataFrame) -> pd.Series:
    """Whitespace tokens of the reply: what a metric must beat to be worth its cost.

    Range 0 and up, higher is more engaging; NaN for a missing reply.

    >>> length(pd.DataFrame({"response": ["I bake bread", ""]})).tolist()
    [3.0, 0.0]
    """
    return _of_response(turns, lambda text: len(text.split()), "length")


@metric("random", "baseline", version="1", whole=True)
def random(turns: pd.DataFrame, seed: int = 0) -> pd.Series:
    """Uniform draws between 0 and 1: what chance reaches on a set of this size.

    >>> random(pd.DataFrame({"response": ["a", "b"]})).between(0, 1).all()
    np.True_
    """
    return pd.Series(np.random.default_rng(seed).random(len(turns)), turns.index, name="random")


def _asks(text: str) -> bool:
    return not QUESTION_TOKENS.isdisjoint(text.lower().split())


def _of_response(turns: pd.DataFrame, count, name: str) -> pd.Series:
    values = [float(count(text)) if isinstance(text, str) else np.nan for text in turns["response"]]
    return pd.Series(values, turns.index, dtype=float, name=name)
