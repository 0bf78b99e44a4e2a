"""Positive emotion of texts: the share of the positive labels in all label probabilities.

EnDex takes "the aggregate probability for all positive emotion categories" (appendix A.2). The
labels of GoEmotions are not exclusive, so their sum can exceed 1: here it is divided by the sum
over all 28 labels.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.endex.emotions import embedded
from lib.endex.emotions.labels import LABELS, POSITIVE

EMBEDDED = "embedded"
BLOCK = 20_000  # texts per call of the embedded model


def positive_emotion(texts: Sequence[str], model: str = EMBEDDED, **options) -> np.ndarray:
    """Share of the 12 positive labels in the probabilities of all 28 labels, for each text.

    Args:
        texts: n texts.
        model: "embedded", or the folder or hub id of a GoEmotions classifier.
        options: `device`, `dtype`, `revision` of `checkpoints.load_classifier`; and `softmax=True`
            for a checkpoint whose labels are exclusive.

    Returns:
        Shape (n,), range 0-1, higher is more positive; NaN for a missing or empty text.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: the model lacks one of the positive labels.

    >>> good, bad = positive_emotion(["I love this so much, thank you!", "You are a liar."])
    >>> bool(good > 0.8 > 0.3 > bad)
    True
    """
    texts = pd.Series(list(texts), dtype="object")
    there = texts.map(lambda text: isinstance(text, str) and bool(text.strip())).to_numpy(bool)
    share = np.full(len(texts), np.nan)
    if there.any():
        known = texts[there].tolist()
        scored, labels = _embedded(known) if model == EMBEDDED else _network(known, model, options)
        if missing := set(POSITIVE) - set(labels):
            raise ValueError(f"{model} has no label {', '.join(sorted(missing))}: not GoEmotions")
        positive = [labels.index(name) for name in POSITIVE]
        share[there] = scored[:, positive].sum(axis=1) / scored.sum(axis=1)
    return share


def _embedded(texts: list[str]) -> tuple[np.ndarray, list[str]]:
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    return np.vstack([embedded.probabilities(block) for block in blocks]), list(LABELS)


def _network(texts: list[str], name: str, options: dict) -> tuple[np.ndarray, list[str]]:
    # Torch takes seconds to import, and the embedded model does without.
    import torch

    from lib import models as checkpoints
    from lib.models import map_batches, pad

    softmax = options.pop("softmax", False)
    model = checkpoints.load_classifier(name, **options)
    ids = model.tokenizer(texts, truncation=True, max_length=model.positions)["input_ids"]

    @torch.inference_mode()
    def score(rows: np.ndarray) -> "torch.Tensor":
        tokens, mask = pad([ids[row] for row in rows], model.tokenizer.pad_token_id)
        logits = model.network(
            input_ids=tokens.to(model.device), attention_mask=mask.to(model.device)
        ).logits.float()
        return logits.softmax(-1) if softmax else logits.sigmoid()

    labels = model.network.config.id2label
    scores = map_batches(score, [len(row) for row in ids], label="emotions")
    return scores, [labels[i].lower() for i in range(len(labels))]
