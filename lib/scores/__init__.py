"""Compute metrics and keep what was computed, with a line that says what ran.

    table = scores.compute(turns, ["bertscore", "context_similarity"])

runs what is asked, stores each metric once per (input, provenance), goes on after a crash at the
batch where it stopped, and says what it reused.
"""

from lib.scores.computing import compute, signature
from lib.scores.registry import METRICS, Metric, available, metric, register
from lib.scores.storing import NoSpaceLeft

__all__ = [
    "METRICS",
    "Metric",
    "NoSpaceLeft",
    "available",
    "compute",
    "metric",
    "register",
    "signature",
]
