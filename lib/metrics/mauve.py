"""MAUVE: how far the texts of one set are from those of another, by the states of a model."""

import warnings
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from lib import models
from lib.data.turn_table import is_blank
from lib.metrics.embedding import sentence_vectors
from lib.models import DEFAULT_ENCODER, MODEL_OPTIONS, score_in_batches, token_ids

HINT = "call lib.metrics.mauve on two sets of texts, each of two or more"


def mauve(
    responses: Sequence[str],
    references: Sequence[str],
    encoder: str = DEFAULT_ENCODER,
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
        options: `device`, `dtype`, `revision`, `batch_tokens` of the encoder; the others are those
            of `mauve.compute_mauve`, such as num_buckets and seed (25).

    Returns:
        Series with mauve and mauve_star in [0, 1] (higher is closer), buckets, and the two sizes.

    Raises:
        ValueError: a turn table, or fewer than two texts in a set. MAUVE of one response does not
            exist (a distribution of one text is a point), so it is no registered metric. Copy the
            value of a system or agent to its turns if a table needs one, and say so.
    """
    if isinstance(responses, pd.DataFrame | str):
        raise ValueError(f"mauve is not defined per turn: {HINT}")
    responses = [text for text in responses if not is_blank(text)]
    references = [text for text in references if not is_blank(text)]
    sizes = [len(responses), len(references)]
    if min(sizes) < 2:
        raise ValueError(
            f"mauve is defined for a set of responses, not for one: {HINT}"
        )
    if min(sizes) < 1000:
        warnings.warn(
            f"MAUVE of {sizes} texts: biased below a few thousand", stacklevel=2
        )
    from mauve import compute_mauve

    of_model = {name: options.pop(name) for name in MODEL_OPTIONS if name in options}
    features = partial(_features, encoder=encoder, **of_model)
    with threadpool_limits(1):
        # The clusters depend on last digits, and these on the threads.
        result = compute_mauve(
            p_features=features(tuple(references)),
            q_features=features(tuple(responses)),
            verbose=False,
            **options,
        )
    return pd.Series(
        {
            "mauve": result.mauve,
            "mauve_star": result.mauve_star,
            "buckets": result.num_buckets,
            "responses": len(responses),
            "references": len(references),
        }
    )


@lru_cache(maxsize=4)  # several systems are compared with the same human texts
def _features(texts: tuple[str, ...], encoder: str, **options) -> np.ndarray:
    tokenizer = models.load_encoder(encoder, **options).tokenizer
    if tokenizer.cls_token_id is not None:  # reads both ways
        return sentence_vectors(texts, encoder=encoder, **options)
    model = models.load_causal(encoder, **options)

    def last_state(tokens, mask):
        network = model.network.base_model  # without the head: no next token is needed
        states = network(input_ids=tokens, attention_mask=mask).last_hidden_state
        return states[range(len(mask)), mask.sum(1) - 1].float()

    return score_in_batches(model, last_state, token_ids(model, texts))
