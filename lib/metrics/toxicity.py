"""Toxicity of posts, the filter of the RED recipe that needs a large model (appendix A.1).

The paper filters with Detoxify. Its `original` model is the checkpoint below; it is not packaged
with the project, so the filter is off unless its weights can be found.
"""

from collections.abc import Sequence

import numpy as np
import torch

from lib import models as checkpoints
from lib.models.batching import map_batches, pad

MODEL = "unitary/toxic-bert"
LABEL = "toxic"


def toxicity(texts: Sequence[str], model: str = MODEL, **options) -> np.ndarray:
    """Probability that each text is toxic.

    Args:
        texts: n texts.
        model: folder or hub id of a classifier with a label "toxic".
        options: `device`, `dtype`, `revision` of `checkpoints.load_classifier`.

    Returns:
        Shape (n,), range 0-1. The model takes swear words for toxicity whatever they are used for
        (so say its authors).

    Raises:
        CheckpointError: the model cannot be found; says how to provide it.
        ValueError: the model has no label "toxic".
    """
    loaded = checkpoints.load_classifier(model, **options)
    labels = {name.lower(): i for i, name in loaded.network.config.id2label.items()}
    if LABEL not in labels:
        raise ValueError(f"{model} has the labels {', '.join(labels)}, and none is {LABEL!r}")
    if len(texts) == 0:
        return np.empty(0)
    ids = loaded.tokenizer(list(texts), truncation=True, max_length=loaded.positions)["input_ids"]

    @torch.inference_mode()
    def score(rows: np.ndarray) -> torch.Tensor:
        tokens, mask = pad([ids[row] for row in rows], loaded.tokenizer.pad_token_id)
        output = loaded.network(
            input_ids=tokens.to(loaded.device), attention_mask=mask.to(loaded.device)
        )
        return output.logits[:, labels[LABEL]].float().sigmoid()

    return map_batches(score, [len(row) for row in ids], label="toxicity")
