"""Metrics against people: evaluation sets, the overview, and the papers' tables beside ours."""

from lib.meta_evaluation.cpdscore_tables import (
    CALLS,
    JUDGES,
    by_label,
    comperdial_table,
    dialog_columns,
    fill_table,
    judged,
    judged_on_corpus,
)
from lib.meta_evaluation.endex_table2 import (
    ENDEX_SETS,
    METHODS,
    all_scores,
    dialog_correlations,
    endex_correlations,
    endex_sets,
    item_intervals,
    pool_dialogs,
    reply_scores,
    seed_means,
    verdict,
)
from lib.meta_evaluation.evaluation_sets import (
    ENCODER,
    FAMILIES,
    PUBLIC,
    QUICK,
    SAMPLE,
    EvaluationSet,
    family,
    load_set,
    own_metrics,
    score_set,
    shipped_scores,
)
from lib.meta_evaluation.figures import (
    correlation_map,
    draw_limit,
    heat_map,
    interval_plot,
    label,
    method_bars,
    score_scatter,
    training_plot,
)
from lib.meta_evaluation.ledger import (
    PAPERS,
    STATUSES,
    printed_numbers,
    replication_counts,
    replication_ledger,
    replication_status,
)
from lib.meta_evaluation.overview import (
    agreement_table,
    contributions,
    describe,
    difference_tests,
    families_at_hand,
    overview,
    soft_accuracies,
    system_intervals,
    with_metrics,
)
from lib.meta_evaluation.papers import (
    PAPER_SETS,
    averaged_runs,
    beside,
    comperdial_rows,
    endex_rows,
    giorgi_alone,
    giorgi_gains,
    giorgi_tables,
    published,
    published_pairs,
)
