"""Texts through a network: rows that have words, in padded batches, scores in their old order."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lib.data import is_blank
from lib.metrics.registry import metric
from lib.models import Model, map_batches, pad, provenance_of

TOKENS = 4096  # token ids in a batch, padding included


def batch_of(model: Model, rows: Sequence[int], *columns: Sequence[Sequence[int]]) -> list:
    """Return the padded ids and the mask (1 on tokens) of each column, on the model's device."""
    padding = model.tokenizer.pad_token_id or 0
    padded = [pad([column[row] for row in rows], padding) for column in columns]
    return [values.to(model.device) for pair in padded for values in pair]


def infer(model: Model, read: Callable, *columns: Sequence[Sequence[int]]) -> np.ndarray:
    """Run rows of token ids through a network in batches of similar length.

    Args:
        model: network, tokenizer and device.
        read: takes ids and mask of each column of a batch, as `batch_of` gives them; returns a
            score per row, shape (b,) or (b, k).
        columns: n rows of token ids each.

    Returns:
        Shape (n,) or (n, k) in the order of the rows; (0,) for no rows.
    """
    import torch

    score = torch.inference_mode()(lambda rows: read(*batch_of(model, rows, *columns)))
    lengths = [sum(map(len, row)) for row in zip(*columns, strict=True)]
    return map_batches(score, lengths, tokens=TOKENS, label=type(model.network).__name__)


def token_ids(
    model: Model, texts: Sequence[str], limit: int = 1 << 30, newest: bool = False
) -> list[list[int]]:
    """Tokenise texts and cut them to `limit` tokens and to what the model takes.

    With `newest` the oldest tokens are cut, for tokenizers without special tokens at the ends.
    """
    if not len(texts):  # a tokenizer takes no empty list
        return []
    if newest:
        return [row[-model.positions :] for row in model.tokenizer(list(texts))["input_ids"]]
    limit = min(limit, model.positions)
    return model.tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]


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


def best_reference(turns: pd.DataFrame, score: Callable) -> np.ndarray:
    """Take the best score(references, responses) over the references of each row.

    NaN for a row without a reference, or whose scores are all NaN.

    >>> turns = pd.DataFrame({"response": ["tea", "no"], "reference": [["a", "bcd"], []]})
    >>> best_reference(turns, lambda gold, said: [len(text) for text in gold])
    array([ 3., nan])
    """
    row = np.repeat(np.arange(len(turns)), [len(texts) for texts in turns["reference"]])
    gold = [text for texts in turns["reference"] for text in texts]
    best = np.full(len(turns), np.nan)
    np.fmax.at(best, row, score(gold, turns["response"].to_numpy(dtype=object)[row].tolist()))
    return best


def pretrained(
    name: str, family: str, needs: tuple[str, ...], checkpoint: str, **stated
) -> Callable[[Callable], Callable]:
    """Register a metric with one checkpoint: its record names the model that ran, and `stated`."""

    def facts(*, checkpoint: str = checkpoint, **options) -> dict:
        return {**provenance_of(checkpoint, **options), **stated}

    return metric(name, family, needs, version="1", facts=facts)
