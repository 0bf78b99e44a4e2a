"""Correlation of metrics with human ratings, and what can be concluded from it."""

from lib.analysis.correlation.coefficients import (
    LEVELS,
    METHODS,
    Correlation,
    coefficient,
    correlate,
    pool,
)
from lib.analysis.correlation.draws import resampled_correlations
from lib.analysis.correlation.intervals import (
    Interval,
    bootstrap_interval,
    rowwise_correlations,
    system_interval,
    system_matrix,
)
from lib.analysis.correlation.nesting import false_positive_rates, simulate_null
from lib.analysis.correlation.pairwise_accuracy import (
    PairwiseAccuracy,
    pairwise_accuracy,
    soft_pairwise_accuracy,
)
from lib.analysis.correlation.ranking import compare_metrics, rank_metrics
from lib.analysis.correlation.significance import (
    Difference,
    benjamini_hochberg,
    bootstrap_difference,
    permutation_test,
    williams_test,
)

__all__ = [
    "LEVELS",
    "METHODS",
    "Correlation",
    "Difference",
    "Interval",
    "PairwiseAccuracy",
    "benjamini_hochberg",
    "bootstrap_difference",
    "bootstrap_interval",
    "coefficient",
    "compare_metrics",
    "correlate",
    "false_positive_rates",
    "pairwise_accuracy",
    "permutation_test",
    "pool",
    "rank_metrics",
    "resampled_correlations",
    "rowwise_correlations",
    "simulate_null",
    "soft_pairwise_accuracy",
    "system_interval",
    "system_matrix",
    "williams_test",
]
