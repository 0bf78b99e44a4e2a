"""The texts of a turn table, in the form in which metrics of texts score them."""

from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np
import pandas as pd

from lib.data.turn_table import is_blank


def earlier_utterances(turns: pd.DataFrame, last: int | None = None) -> list[list[str]]:
    """Return the utterances before each response, oldest first: all, or only the `last` ones.

    A missing context gives an empty list, and so does `last=0`.

    >>> earlier_utterances(pd.DataFrame({"context": [["hi", "tea?", "yes"], None]}), last=2)
    [['tea?', 'yes'], []]
    """
    histories = []
    for context in turns["context"]:
        if not isinstance(context, list | tuple | np.ndarray):
            context = []
        start = 0 if last is None else max(0, len(context) - last)
        histories.append([text or "" for text in context[start:]])
    return histories


def score_where_text(score: Callable, *texts: Sequence[str | None]) -> np.ndarray:
    """Score the rows whose texts are all non-blank; the others are NaN.

    Args:
        score: takes one list per column of texts, returns one number per row.
        texts: columns of texts, of the same length.

    >>> score_where_text(lambda a, b: [len(a[0] + b[0])], ["tea", " "], ["no", "yes"])
    array([ 5., nan])
    """
    rows = list(zip(*texts, strict=True))
    has_text = [not any(map(is_blank, row)) for row in rows]
    scores = np.full(len(rows), np.nan)
    if any(has_text):
        columns = zip(*compress(rows, has_text), strict=True)
        scores[has_text] = score(*map(list, columns))
    return scores


def best_over_texts(
    texts: Sequence[Sequence[str]], responses: Sequence[str], score: Callable
) -> np.ndarray:
    """Return the highest score of each response over its own texts, such as its references.

    Args:
        texts: the texts of each response.
        responses: one text per row.
        score: takes a list of texts and a list of responses, returns one row of scores per pair;
            the highest is taken in each column.

    Returns:
        NaN for a response without texts, or whose scores are all NaN.

    >>> best_over_texts([["a", "bcd"], []], ["tea", "no"], lambda texts, _: list(map(len, texts)))
    array([ 3., nan])
    """
    rows = []
    flat_texts = []
    flat_responses = []
    for row, (row_texts, response) in enumerate(zip(texts, responses, strict=True)):
        for text in row_texts:
            rows.append(row)
            flat_texts.append(text)
            flat_responses.append(response)
    scores = np.asarray(score(flat_texts, flat_responses))
    best = np.full((len(responses), *scores.shape[1:]), np.nan)
    np.fmax.at(best, rows, scores)
    return best
