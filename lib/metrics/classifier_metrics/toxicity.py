"""Toxicity of responses, with the checkpoint of Detoxify's "original" model."""

import numpy as np
import pandas as pd

from lib.data.blank import is_blank
from lib.metrics import toxicity as texts
from lib.metrics.registry import metric
from lib.models import provenance_of


@metric(
    "toxicity",
    "classifier",
    ("response",),
    version="1",
    facts=lambda **options: toxicity_provenance(**options),
)
def toxicity(turns: pd.DataFrame, *, checkpoint: str = texts.MODEL, **options) -> pd.Series:
    """Probability that each response is toxic; *lower* is better.

    The sigmoid of the label "toxic" (six labels, not exclusive), so equal to Detoxify's
    `predict(text)["toxicity"]` with the same weights, but in length-sorted batches.

    Args:
        turns: turn table; uses `response`.
        checkpoint: folder or hub id of a classifier with a label "toxic".
        options: `device`, `dtype`, `revision`.

    Returns:
        Series "toxicity" on `turns.index` in [0, 1]; NaN for a blank response.

    Reference: Hanu and Unitary team (2020), Detoxify.
    """
    has_words = np.array([not is_blank(text) for text in turns["response"]], dtype=bool)
    scores = np.full(len(turns), np.nan)
    scores[has_words] = texts.toxicity(turns["response"][has_words].tolist(), checkpoint, **options)
    return pd.Series(scores, turns.index, name="toxicity")


def toxicity_provenance(*, checkpoint: str = texts.MODEL, **options) -> dict:
    """Return what a toxicity score depends on besides the texts."""
    return {
        **provenance_of(checkpoint, **options),
        "formula": "sigmoid of the label toxic",
        "truncation": "the model's positions",
    }
