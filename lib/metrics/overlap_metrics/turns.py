"""Overlap metrics of a whole turn table."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib.data.blank import is_blank
from lib.data.dialogues import DataError
from lib.metrics.overlap_metrics.bleu import bleu4_coco, bleu4_nltk_normalized, bleu4_sacrebleu
from lib.metrics.overlap_metrics.meteor import (
    JavaNotFound,
    find_java,
    meteor_15,
    meteor_15_normalized,
)
from lib.metrics.overlap_metrics.rouge import (
    rouge_l_coco,
    rouge_l_f1_normalized,
    rouge_l_recall_normalized,
)
from lib.metrics.overlap_metrics.word_f1 import word_f1_normalized
from lib.metrics.registry import metric

#: Every variant by name: a function of one response and its references.
METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    function.__name__: function
    for function in (
        bleu4_coco,
        rouge_l_coco,
        meteor_15,
        bleu4_nltk_normalized,
        word_f1_normalized,
        rouge_l_f1_normalized,
        rouge_l_recall_normalized,
        meteor_15_normalized,
        bleu4_sacrebleu,
    )
}

#: The variants behind the published figures of DialEvalMetrics (Yeh et al. 2021).
DIALEVALMETRICS = ("bleu4_coco", "meteor_15", "rouge_l_coco")

#: The variants of the ComperDial paper (Wakaki et al. 2024); ROUGE-L in both readings.
COMPERDIAL = (
    "bleu4_nltk_normalized",
    "word_f1_normalized",
    "meteor_15_normalized",
    "rouge_l_f1_normalized",
    "rouge_l_recall_normalized",
)
_JAVA = ("meteor_15", "meteor_15_normalized")


def score(
    turns: pd.DataFrame,
    metrics: Sequence[str] = tuple(METRICS),
    references: str = "all",
) -> pd.DataFrame:
    """Score each response of a turn table by its overlap with its references.

    Parameters
    ----------
    turns : pandas.DataFrame
        A turn table; `response` and `reference` are read.
    metrics : sequence of str
        Names from `METRICS`; all by default.
    references : str
        "all" compares with every reference of a turn, "first" with the first one only. More
        references give higher scores, so compare only scores of the same choice.

    Returns
    -------
    pandas.DataFrame
        One float column per metric on the index of `turns`, in [0, 1], higher is better. NaN where
        response or references are missing or blank (`lib.data.blank`). METEOR is NaN throughout, with
        a warning that says what to install, where there is no Java. `attrs["missing"]` counts the
        NaN rows by reason.

    Raises
    ------
    DataError
        When a column is missing, or a `reference` is not a list of texts.
    ValueError
        When a metric or the choice of references is unknown.

    Notes
    -----
    Published system-level figures average these turn scores per system.

    Examples
    --------
    >>> turns = pd.DataFrame({"response": ["We walk home!", "Yes", None],
    ...                       "reference": [["walk home"], [], ["Yes"]]})
    >>> scores = score(turns, ["word_f1_normalized", "rouge_l_recall_normalized"])
    >>> scores["word_f1_normalized"].tolist()
    [0.8, nan, nan]
    >>> scores.attrs["missing"]
    {'no response': 1, 'no reference': 1}
    """
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise ValueError(f"unknown metric {unknown[0]!r}: choose from {', '.join(METRICS)}")
    responses, kept = _texts(turns, references)
    columns = {}
    with tqdm(total=len(metrics) * len(turns), unit="turn", delay=1, leave=False) as bar:
        for name in metrics:
            bar.set_description(name, refresh=False)
            columns[name] = _column(name, responses, kept, bar)
    scores = pd.DataFrame(columns, index=turns.index, dtype=float)
    scores.attrs["missing"] = _missing(responses, kept, metrics, scores)
    return scores


def _texts(turns: pd.DataFrame, references: str) -> tuple[list, list[list[str]]]:
    if references not in ("all", "first"):
        raise ValueError(f"references is {references!r}: choose 'all' or 'first'")
    for column in ("response", "reference"):
        if column not in turns.columns:
            raise DataError("this column is missing", column=column, fix="pass a turn table")
    kept = []
    for row, texts in enumerate(turns["reference"], start=1):
        if not isinstance(texts, list | tuple | np.ndarray):
            raise DataError(
                f"is {texts!r:.60}, not a list of texts", row=row, column="reference",
                fix="write [text], or [] where there is none",
            )  # fmt: skip
        kept.append(list(texts) if references == "all" else list(texts[:1]))
    return turns["response"].tolist(), kept


def _column(name: str, responses: list, references: list[list[str]], bar: tqdm) -> list[float]:
    try:
        if name in _JAVA:
            find_java()
    except JavaNotFound as missing:
        warnings.warn(f"{name} is NaN: {missing}", stacklevel=3)
        bar.update(len(responses))
        return [np.nan] * len(responses)
    values = []
    for response, texts in zip(responses, references, strict=True):
        try:
            values.append(METRICS[name](response, texts))
        except RuntimeError as error:
            error.add_note(f"while computing {name} of row {len(values) + 1} of the turn table")
            raise
        if len(values) % 100 == 0:  # moving the bar costs as much as a short ROUGE-L
            bar.update(100)
    bar.update(len(values) % 100)
    return values


def _missing(responses, references, metrics, scores) -> dict[str, int]:
    absent = [is_blank(response) for response in responses]
    bare = [all(map(is_blank, texts)) for texts in references]
    counts = {
        "no response": sum(absent),
        "no reference": sum(b and not a for a, b in zip(absent, bare, strict=True)),
    }
    if any(scores[name].isna().all() for name in metrics if name in _JAVA) and len(scores):
        counts["no Java (METEOR only)"] = len(scores)
    return {reason: count for reason, count in counts.items() if count}


for _name in METRICS:
    metric(_name, "overlap", ("response", "reference"), version="1", options={"metrics": [_name]})(
        score
    )
