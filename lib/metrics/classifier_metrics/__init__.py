"""Metrics that a trained classifier or regressor gives: BLEURT, DialogRPT, UniEval, toxicity.

Each needs its own checkpoint, which is not packaged: `lib.models.find` says how to provide it.
"""

from lib.metrics.classifier_metrics.bleurt import bleurt, bleurt_pairs, bleurt_provenance
from lib.metrics.classifier_metrics.dialogrpt import (
    HEADS,
    dialogrpt,
    dialogrpt_ensemble,
    dialogrpt_provenance,
)
from lib.metrics.classifier_metrics.toxicity import toxicity, toxicity_provenance
from lib.metrics.classifier_metrics.unieval import unieval, unieval_provenance

__all__ = [
    "HEADS",
    "bleurt",
    "bleurt_pairs",
    "bleurt_provenance",
    "dialogrpt",
    "dialogrpt_ensemble",
    "dialogrpt_provenance",
    "toxicity",
    "toxicity_provenance",
    "unieval",
    "unieval_provenance",
]
