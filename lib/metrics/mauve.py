"""MAUVE: how far the texts of one set are from those of another, by the states of a model."""

import warnings
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from lib import models
from lib.data.turn_table import is_blank
from lib.metrics.embedding import sentence_vectors
from lib.metrics.registry import metric
from lib.models import DEFAULT_ENCODER, score_in_batches, token_ids


@metric("mauve", "likelihood", ("response", "reference"))
def mauve(
    responses: Sequence[str], references: Sequence[str] = (), encoder=DEFAULT_ENCODER, **options
) -> pd.Series:
    """MAUVE of a set of responses against a set of human texts, by the package mauve-text.

    The area under the divergence curve of two quantised distributions of text features (Pillutla et
    al. 2021). The features of the authors are the last hidden state of gpt2-large at the last
    token; by default the packaged sentence encoder stands in, and values do not compare with
    theirs.

    Args:
        responses, references: two sets of texts; sizes may differ.
        encoder: folder or hub id; a left-to-right model gives the authors' features.
        options: of `mauve.compute_mauve`, such as num_buckets and seed (25).

    Returns:
        Series with mauve and mauve_star in [0, 1] (higher is closer), buckets, and the two sizes.

    Raises:
        ValueError: a turn table, or fewer than two texts in a set. MAUVE of one response does not
            exist: a distribution of one text is a point. Copy the value of a system or agent to its
            turns if a table needs one, and say so.
    """
    sets = [[text for text in texts if not is_blank(text)] for texts in (responses, references)]
    sizes = [len(texts) for texts in sets]
    if isinstance(responses, pd.DataFrame | str) or min(sizes) < 2:
        way = "call lib.metrics.mauve on two sets of texts, each of two or more"
        raise ValueError(f"mauve is defined for a set of responses, not per turn: {way}")
    if min(sizes) < 1000:
        warnings.warn(f"MAUVE of {sizes} texts: biased below a few thousand", stacklevel=2)
    from mauve import compute_mauve

    with threadpool_limits(1):  # the clusters hang on last digits, and these on the threads
        p, q = (_features(tuple(texts), encoder) for texts in sets)
        found = compute_mauve(p_features=q, q_features=p, verbose=False, **options)
    values = [found.mauve, found.mauve_star, found.num_buckets, *sizes]
    return pd.Series(values, ["mauve", "mauve_star", "buckets", "responses", "references"])


@lru_cache(maxsize=4)  # several systems are held against the same human texts
def _features(texts: tuple[str, ...], encoder: str) -> np.ndarray:
    if models.load_encoder(encoder).tokenizer.cls_token_id is not None:  # reads both ways
        return sentence_vectors(texts, encoder=encoder)
    model = models.load_causal(encoder)

    def last_state(tokens, mask):
        below = model.network.base_model  # nobody asks for the next token
        states = below(input_ids=tokens, attention_mask=mask).last_hidden_state
        return states[range(len(mask)), mask.sum(1) - 1]

    return score_in_batches(model, last_state, token_ids(model, texts))
