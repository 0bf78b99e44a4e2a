"""The texts of a turn table: what a metric of texts needs before it can score them."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lib.data.turn_table import is_blank


def earlier_utterances(turns: pd.DataFrame, last: int | None = None) -> list[list[str]]:
    """Return the turns before each response, oldest first: all, or only the `last` ones.

    A missing context is an empty one; so are the last 0 turns.

    >>> earlier_utterances(pd.DataFrame({"context": [["hi", "tea?", "yes"], None]}), last=2)
    [['tea?', 'yes'], []]
    """
    known = [
        [text or "" for text in context] if isinstance(context, list | tuple | np.ndarray) else []
        for context in turns["context"]
    ]
    return known if last is None else [said[-last:] if last else [] for said in known]


def score_where_text(score: Callable, *texts: Sequence[str | None]) -> np.ndarray:
    """Score the rows whose texts all have a word; the others are NaN.

    >>> score_where_text(lambda a, b: [len(x + y) for x, y in zip(a, b)], ["tea", " "], ["no", "yes"])
    array([ 5., nan])
    """
    rows = [i for i, row in enumerate(zip(*texts, strict=True)) if not any(map(is_blank, row))]
    columns = [list(column) for column in texts]
    values = np.full(len(columns[0]), np.nan)
    if rows:
        values[rows] = score(*([column[row] for row in rows] for column in columns))
    return values


def best_over_texts(
    others: Sequence[Sequence[str]], said: Sequence[str], score: Callable
) -> np.ndarray:
    """Take the best score(other texts, responses) over the texts beside each response.

    Each column of scores has its own best. NaN for a response without a text beside it, or whose
    scores are all NaN.

    >>> best_over_texts([["a", "bcd"], []], ["tea", "no"], lambda gold, said: [len(x) for x in gold])
    array([ 3., nan])
    """
    pairs = [(row, text) for row, texts in enumerate(others) for text in texts]
    rows, said = [row for row, _ in pairs], list(said)
    scores = np.asarray(score([text for _, text in pairs], [said[row] for row in rows]))
    best = np.full((len(said), *scores.shape[1:]), np.nan)
    np.fmax.at(best, rows, scores)
    return best
