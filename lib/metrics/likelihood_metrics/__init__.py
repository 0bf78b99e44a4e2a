"""Metrics that read a score off the probabilities of a pretrained language model.

BARTScore and Prism-style scoring ask how probable one text is given another; FED, how probable a
reaction is after the reply; USL-H joins two trained judges with the likelihood of the reply. MAUVE
compares two sets of texts, and is not defined for one.
"""

from lib.metrics.likelihood_metrics.fed import fed, fed_provenance, fed_score, follow_ups
from lib.metrics.likelihood_metrics.set_level import mauve
from lib.metrics.likelihood_metrics.translation import (
    bartscore,
    bartscore_provenance,
    mean_log_probability,
    prism_style,
    prism_style_provenance,
)
from lib.metrics.likelihood_metrics.usl_h import (
    masked_surprisal,
    usl_h,
    usl_h_composition,
    usl_h_provenance,
)
from lib.metrics.likelihood_metrics.usl_h_heads import (
    Judge,
    load_judge,
    make_invalid,
    train_next_utterance,
    train_valid_utterance,
)

__all__ = [
    "Judge",
    "bartscore",
    "bartscore_provenance",
    "fed",
    "fed_provenance",
    "fed_score",
    "follow_ups",
    "load_judge",
    "make_invalid",
    "masked_surprisal",
    "mauve",
    "mean_log_probability",
    "prism_style",
    "prism_style_provenance",
    "train_next_utterance",
    "train_valid_utterance",
    "usl_h",
    "usl_h_composition",
    "usl_h_provenance",
]
