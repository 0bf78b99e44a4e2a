"""The turn-level human-centered metrics: emotional entropy, emotion matching, style matching.

Defaults are the textbook definitions. `PAPER_READING` holds the options under which the published
regression tables are reproduced most closely (notebook 09 shows the whole grid of readings).
"""

from lib.psychology.psychological_metrics.emotions import (
    emotion_matching,
    emotional_entropy,
    emotions,
    entropy,
    rank_correlation,
)
from lib.psychology.psychological_metrics.sides import prompt_counts, response_counts
from lib.psychology.psychological_metrics.style import language_style_matching, style_similarity

PAPER_READING = {
    "emotional_entropy": {"form": "group_norm", "weighting": "lex_norm"},
    "emotion_matching": {"context": "all", "weighting": "relative"},
    "language_style_matching": {
        "context": "all",
        "denominator": "tokens",
        "newline_tokens": True,
        "both_zero": "one",
    },
}
"""Options of each metric that come closest to Tables 15-18 of Giorgi et al. (2023)."""

__all__ = [
    "PAPER_READING",
    "emotion_matching",
    "emotional_entropy",
    "emotions",
    "entropy",
    "language_style_matching",
    "prompt_counts",
    "rank_correlation",
    "response_counts",
    "style_similarity",
]
