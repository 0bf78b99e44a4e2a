"""Overlap metrics: how many words and word sequences a response shares with its references.

Each variant is named by what it computes, because "BLEU" or "ROUGE" alone names a family whose
members disagree. `*_coco` are those of the COCO caption tools (pycocoevalcap), on text as it is:
they and `meteor_15` give the published figures of DialEvalMetrics. `*_normalized` are those of the
ComperDial paper, on ParlAI-normalised text.

`score(turns)` computes them for a turn table; each is also a function of one response and its
references.
"""

from lib.metrics.overlap_metrics.bleu import bleu4_coco, bleu4_nltk_normalized, bleu4_sacrebleu
from lib.metrics.overlap_metrics.meteor import (
    JavaNotFound,
    Meteor,
    find_java,
    meteor_15,
    meteor_15_normalized,
)
from lib.metrics.overlap_metrics.rouge import (
    rouge_l_coco,
    rouge_l_f1_normalized,
    rouge_l_recall_normalized,
)
from lib.metrics.overlap_metrics.texts import normalize_answer
from lib.metrics.overlap_metrics.turns import COMPERDIAL, DIALEVALMETRICS, METRICS, score
from lib.metrics.overlap_metrics.word_f1 import word_f1_normalized

__all__ = [
    "COMPERDIAL",
    "DIALEVALMETRICS",
    "METRICS",
    "JavaNotFound",
    "Meteor",
    "bleu4_coco",
    "bleu4_nltk_normalized",
    "bleu4_sacrebleu",
    "find_java",
    "meteor_15",
    "meteor_15_normalized",
    "normalize_answer",
    "rouge_l_coco",
    "rouge_l_f1_normalized",
    "rouge_l_recall_normalized",
    "score",
    "word_f1_normalized",
]
