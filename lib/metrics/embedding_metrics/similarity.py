"""Cosine similarity of sentence embeddings."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lib.data.blank import is_blank
from lib.metrics.registry import metric
from lib.models import DEFAULT_ENCODER, load_encoder, provenance_of
from lib.models.batching import map_batches, pad

MAX_TOKENS = 256  # what the packaged encoder was trained with
PAIRS = 8192  # compared at a time: bounds the vectors that are held, however long the corpus


def sentence_vectors(
    texts: Sequence[str],
    *,
    encoder: str = DEFAULT_ENCODER,
    max_tokens: int = MAX_TOKENS,
    device: str | None = None,
    dtype: str = "float32",
    batch_tokens: int = 2048,
) -> np.ndarray:
    """Encode texts as the mean of their token vectors, scaled to length one.

    Each different text is encoded once.

    Returns:
        float32 array, shape (n, dimensions); a row of NaN for a blank text.

    Reference: Reimers and Gurevych (2019), Sentence-BERT, EMNLP.

    >>> print(round(float(np.prod(sentence_vectors(["tea", "tea"]), axis=0).sum()), 4))
    1.0
    """
    model = load_encoder(encoder, device=device, dtype=dtype)
    texts = ["" if is_blank(text) else text.strip() for text in texts]
    unique = list(dict.fromkeys(texts))
    ids = model.tokenizer(unique, truncation=True, max_length=min(max_tokens, model.positions))
    ids = ids["input_ids"] if unique else []

    def encode(rows: np.ndarray) -> torch.Tensor:
        batch, mask = pad([ids[row] for row in rows], model.tokenizer.pad_token_id or 0)
        batch, mask = batch.to(model.device), mask.to(model.device)
        with torch.inference_mode():
            hidden = model.network(input_ids=batch, attention_mask=mask).last_hidden_state.float()
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(mean, dim=-1)

    vectors = map_batches(encode, [len(row) for row in ids], tokens=batch_tokens, label="encode")
    special = set(model.tokenizer.all_special_ids) - {model.tokenizer.unk_token_id}
    for row, tokens in enumerate(ids):
        if special.issuperset(tokens):
            vectors[row] = np.nan
    place = {text: row for row, text in enumerate(unique)}
    return vectors[[place[text] for text in texts]].astype(np.float32)


@metric(
    "reference_similarity",
    "embedding",
    ("response", "reference"),
    version="1",
    facts=lambda **options: similarity_provenance(**options),
)
def reference_similarity(turns: pd.DataFrame, **options) -> pd.Series:
    """Cosine of the response with its most similar reference.

    Args:
        turns: turn table; uses `response` and `reference`.
        options: as in `sentence_vectors`.

    Returns:
        Series on `turns.index` in [-1, 1], higher is closer; NaN for a blank response or without
        a reference that has a word.

    >>> turns = pd.DataFrame({"response": ["tea", "tea"], "reference": [["tea"], []]})
    >>> print(reference_similarity(turns).round(3).tolist())
    [1.0, nan]
    """
    return _similarity(turns, turns["reference"], "reference_similarity", options)


@metric(
    "context_similarity",
    "embedding",
    ("context", "response"),
    version="1",
    facts=lambda **options: similarity_provenance(**options),
)
def context_similarity(turns: pd.DataFrame, **options) -> pd.Series:
    """Cosine of the response with the last turn of its context.

    Args:
        turns: turn table; uses `response` and `context`.
        options: as in `sentence_vectors`.

    Returns:
        Series on `turns.index` in [-1, 1], higher is closer; NaN for a blank response or context.

    >>> turns = pd.DataFrame({"response": ["i like tea"], "context": [["hi", "tea or coffee?"]]})
    >>> print(bool(context_similarity(turns)[0] > 0.5))
    True
    """
    last = [context[-1:] for context in turns["context"]]
    return _similarity(turns, last, "context_similarity", options)


def similarity_provenance(**options) -> dict:
    """Return what an embedding similarity depends on besides the texts."""
    return {
        **provenance_of(options.get("encoder", DEFAULT_ENCODER), **options),
        "formula": "cosine of mean token vectors, maximum over references",
        "truncation": f"first {options.get('max_tokens', MAX_TOKENS)} tokens",
    }


def _similarity(turns, others: Sequence[Sequence[str]], name: str, options: dict) -> pd.Series:
    """Largest cosine of each response with the texts beside it."""
    said = turns["response"].tolist()
    pairs = [(row, text) for row, texts in enumerate(others) for text in texts]
    scores = np.full(len(turns), np.nan)
    for start in range(0, len(pairs), PAIRS):
        rows, texts = map(list, zip(*pairs[start : start + PAIRS], strict=True))
        vectors = sentence_vectors([*(said[row] for row in rows), *texts], **options)
        cosines = (vectors[: len(rows)] * vectors[len(rows) :]).sum(axis=1)
        np.fmax.at(scores, rows, cosines)
    return pd.Series(scores, index=turns.index, name=name)
