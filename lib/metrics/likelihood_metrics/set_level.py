"""MAUVE: how far a set of responses is from a set of human ones."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lib.data.blank import is_blank
from lib.metrics.registry import metric
from lib.models import CHECKPOINTS, DEFAULT_ENCODER, load_causal, map_batches, pad

FEW = 1000


@metric("mauve", "likelihood", ("response", "reference"), level="set")
def mauve(
    responses: Sequence[str],
    references: Sequence[str],
    *,
    encoder: str = DEFAULT_ENCODER,
    seed: int = 25,
    **options,
) -> pd.Series:
    """MAUVE of a set of responses against a set of human texts, by the package mauve-text.

    The area under the divergence curve of two quantised distributions of text features (Pillutla et
    al. 2021). The features of the authors are the last hidden state of gpt2-large at the last
    token; by default the packaged sentence encoder stands in, and values do not compare with
    theirs.

    Args:
        responses, references: two sets of texts; sizes may differ.
        encoder: folder or hub id; a left-to-right model gives the authors' features.
        seed: of the k-means clustering (the package's own default).
        options: of `mauve.compute_mauve`, such as num_buckets.

    Returns:
        Series with mauve and mauve_star in [0, 1] (higher is closer), buckets, and the two sizes.

    Raises:
        ValueError: a turn table, or fewer than two texts in a set. MAUVE of one response does not
            exist: a distribution of one text is a point. Copy the value of a system or agent to its
            turns if a table needs one, and say so.
    """
    if isinstance(responses, pd.DataFrame | str):
        raise ValueError("mauve compares two sets of texts; per turn it is not defined")
    sets = [[text for text in texts if not is_blank(text)] for texts in (responses, references)]
    if min(map(len, sets)) < 2:
        raise ValueError("mauve compares two sets of texts, each of two or more with words")
    if min(map(len, sets)) < FEW:
        warnings.warn(
            f"MAUVE of {len(sets[0])} and {len(sets[1])} texts: below a few thousand it is biased "
            "upwards and unsteady",
            stacklevel=2,
        )
    from mauve import compute_mauve

    p, q = (features(texts, encoder) for texts in sets)
    found = compute_mauve(p_features=q, q_features=p, seed=seed, verbose=False, **options)
    return pd.Series(
        {
            "mauve": found.mauve,
            "mauve_star": found.mauve_star,
            "buckets": found.num_buckets,
            "responses": len(sets[0]),
            "references": len(sets[1]),
        }
    )


def features(texts: Sequence[str], encoder: str) -> np.ndarray:
    """One vector per text: mean of an encoder's tokens, or a language model's last state."""
    if encoder in CHECKPOINTS and CHECKPOINTS[encoder].architecture != "causal":
        from lib.metrics.embedding import sentence_vectors

        return sentence_vectors(texts, encoder=encoder)
    model = load_causal(encoder)
    ids = [row[: model.positions] for row in model.tokenizer(list(texts))["input_ids"]]

    @torch.inference_mode()
    def last(rows: np.ndarray) -> torch.Tensor:
        tokens, mask = (t.to(model.device) for t in pad([ids[row] for row in rows], 0))
        output = model.network(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
        return output.hidden_states[-1][torch.arange(len(rows)), mask.sum(1) - 1]

    return map_batches(last, [len(row) for row in ids], label="MAUVE features")
