"""Every metric by name, and what metrics of texts share.

A metric is a function of the turn table with a decorator above it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.data.storage import nearest
from lib.data.turn_table import is_blank
from lib.models import provenance_of

#: Metrics by name; the rooms that hold them fill it when they are imported.
METRICS: dict[str, "Metric"] = {}


@dataclass(frozen=True)
class Metric:
    """A metric of the turn table, as `metric` registers it.

    Attributes:
        version: changes whenever the scores do, as in sacreBLEU's signature. Scores are kept under
            it; a metric without one is computed anew each time.
        facts: takes the options; returns what the scores depend on besides texts and code, such as
            the checksums of weights and lexica.
        whole: compute all rows at once, because a row's score depends on its place.
    """

    name: str
    family: str
    function: Callable
    needs: tuple[str, ...]
    version: str | None = None
    facts: Callable[..., dict] | None = None
    whole: bool = False


def metric(
    name: str, family: str, needs: tuple[str, ...] = ("response",), model: str = "", **stated
) -> Callable[[Callable], Callable]:
    """Register the function below: `compute` then knows it by name, and so do notebooks 08 and 11.

    The function takes a turn table (and options) and returns a Series, or a frame of named
    columns, on the same index; missing is NaN.

    Args:
        name: its name; a metric of the same name is replaced.
        family: any name; the report and the figures of notebooks 08 and 11 group by it.
        needs: columns that the function reads; kept scores are known by their texts.
        model: the default of the metric's option `checkpoint` or `encoder`; its facts are then
            those of the model that ran.
        stated: any of the last three fields of `Metric`.

    >>> @metric("exclamations", "style")
    ... def exclamations(turns):
    ...     return turns["response"].str.count("!")
    >>> METRICS.pop("exclamations").family
    'style'
    """

    def of_model(**options) -> dict:
        chosen = options.pop("checkpoint", options.pop("encoder", model))
        return provenance_of(chosen, **options)

    def register(function: Callable) -> Callable:
        facts = {"facts": of_model} if model else {}
        METRICS[name] = Metric(name, family, function, needs, **facts, **stated)
        return function

    return register


def registered(name: str) -> Metric:
    """Return a registered metric.

    Raises:
        ValueError: no such metric; names the nearest one.

    >>> registered("bertscore").needs
    ('response', 'reference')
    """
    if name not in METRICS:
        hint = nearest(name, METRICS) or "see lib.metrics.METRICS"
        raise ValueError(f"unknown metric {name!r}: {hint} (is its room imported, as lib.endex?)")
    return METRICS[name]


def history(turns: pd.DataFrame, last: int | None = None) -> list[list[str]]:
    """Return the turns before each response, oldest first: all, or only the `last` ones.

    A missing context is an empty one; so are the last 0 turns.

    >>> history(pd.DataFrame({"context": [["hi", "tea?", "yes"], None]}), last=2)
    [['tea?', 'yes'], []]
    """
    known = [
        [text or "" for text in context] if isinstance(context, list | tuple | np.ndarray) else []
        for context in turns["context"]
    ]
    return known if last is None else [said[-last:] if last else [] for said in known]


def reasons(turns: pd.DataFrame, needs: Sequence[str]) -> pd.Series:
    """Say for each row why it can have no score: the first needed column without a visible text.

    >>> turns = pd.DataFrame({"response": ["tea", " "], "reference": [[], ["no"]]})
    >>> reasons(turns, ["response", "reference"]).tolist()
    ['no reference', 'no response']
    """
    found = pd.Series("undefined by the metric", index=turns.index)
    for column in reversed(needs):
        texts = (v if isinstance(v, list | np.ndarray | tuple) else [v] for v in turns[column])
        found[[all(map(is_blank, each)) for each in texts]] = f"no {column}"
    return found


def where_words(score: Callable, *texts: Sequence[str | None]) -> np.ndarray:
    """Score the rows whose texts all have a word; the others are NaN.

    >>> where_words(lambda a, b: [len(x + y) for x, y in zip(a, b)], ["tea", " "], ["no", "yes"])
    array([ 5., nan])
    """
    rows = [i for i, row in enumerate(zip(*texts, strict=True)) if not any(map(is_blank, row))]
    columns = [list(column) for column in texts]
    values = np.full(len(columns[0]), np.nan)
    if rows:
        values[rows] = score(*([column[row] for row in rows] for column in columns))
    return values


def best_of(others: Sequence[Sequence[str]], said: Sequence[str], score: Callable) -> np.ndarray:
    """Take the best score(other texts, responses) over the texts beside each response.

    Each column of scores has its own best. NaN for a response without a text beside it, or whose
    scores are all NaN.

    >>> best_of([["a", "bcd"], []], ["tea", "no"], lambda gold, said: [len(x) for x in gold])
    array([ 3., nan])
    """
    pairs = [(row, text) for row, texts in enumerate(others) for text in texts]
    rows, said = [row for row, _ in pairs], list(said)
    scores = np.asarray(score([text for _, text in pairs], [said[row] for row in rows]))
    best = np.full((len(said), *scores.shape[1:]), np.nan)
    np.fmax.at(best, rows, scores)
    return best
