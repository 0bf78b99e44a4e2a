"""Meta-evaluation: how far each metric can be trusted, on every corpus with human ratings."""

from lib.meta_evaluation.against_papers import (
    averaged_runs,
    comperdial_rows,
    endex_rows,
    published_pairs,
)
from lib.meta_evaluation.contributions import contributions
from lib.meta_evaluation.metrics import (
    FAMILIES,
    asks_question,
    embedding_scores,
    family,
    psychological_scores,
    quick_scores,
    recorded_scores,
    rows,
    rule_scores,
    score_panel,
    without_gold,
)
from lib.meta_evaluation.overview import in_family_order, overview
from lib.meta_evaluation.panels import POOLED, PUBLIC, SAMPLE, Panel, load_panel, shipped_scores
from lib.meta_evaluation.plots import heat_map, interval_plot, rate_plot
from lib.meta_evaluation.published import beside, published

__all__ = [
    "FAMILIES",
    "POOLED",
    "PUBLIC",
    "SAMPLE",
    "Panel",
    "asks_question",
    "averaged_runs",
    "beside",
    "comperdial_rows",
    "contributions",
    "embedding_scores",
    "endex_rows",
    "family",
    "heat_map",
    "in_family_order",
    "interval_plot",
    "load_panel",
    "overview",
    "psychological_scores",
    "published",
    "published_pairs",
    "quick_scores",
    "recorded_scores",
    "rate_plot",
    "rows",
    "rule_scores",
    "score_panel",
    "shipped_scores",
    "without_gold",
]
