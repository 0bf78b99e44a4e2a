"""Meta-evaluation: how far each metric can be trusted, on every corpus with human ratings."""

from lib.meta_evaluation.against_papers import (
    averaged_runs,
    comperdial_rows,
    endex_rows,
    published_pairs,
)
from lib.meta_evaluation.contributions import contributions
from lib.meta_evaluation.endex_evaluation import SETS, evaluation_sets, partial_correlation
from lib.meta_evaluation.metrics import (
    ENCODER,
    FAMILIES,
    QUICK,
    computed_scores,
    family,
    gold_rows,
    recorded_scores,
    score_panel,
)
from lib.meta_evaluation.overview import in_family_order, overview
from lib.meta_evaluation.panels import POOLED, PUBLIC, SAMPLE, Panel, load_panel, shipped_scores
from lib.meta_evaluation.plots import heat_map, interval_plot, rate_plot
from lib.meta_evaluation.published import beside, published
from lib.meta_evaluation.published_regressions import (
    PAPER_SETS,
    data_sets,
    published_alone,
    published_gains,
    published_tables,
)
from lib.meta_evaluation.tables import (
    agreement_table,
    describe,
    difference_tests,
    families_at_hand,
    fine_and_coarse,
    nearest_metrics,
    panel_of_turns,
    soft_accuracies,
    system_intervals,
    system_means,
    with_metrics,
)

__all__ = [
    "ENCODER",
    "FAMILIES",
    "PAPER_SETS",
    "POOLED",
    "PUBLIC",
    "Panel",
    "QUICK",
    "SAMPLE",
    "SETS",
    "agreement_table",
    "averaged_runs",
    "beside",
    "comperdial_rows",
    "computed_scores",
    "contributions",
    "data_sets",
    "describe",
    "difference_tests",
    "endex_rows",
    "evaluation_sets",
    "families_at_hand",
    "family",
    "fine_and_coarse",
    "gold_rows",
    "heat_map",
    "in_family_order",
    "interval_plot",
    "load_panel",
    "nearest_metrics",
    "overview",
    "panel_of_turns",
    "partial_correlation",
    "published",
    "published_alone",
    "published_gains",
    "published_pairs",
    "published_tables",
    "rate_plot",
    "recorded_scores",
    "score_panel",
    "shipped_scores",
    "soft_accuracies",
    "system_intervals",
    "system_means",
    "with_metrics",
]
