"""Correlation, resampling, significance, agreement, regression, variance components."""

from lib.analysis.agreement import agreement_summary, krippendorff_alpha, rating_matrix
from lib.analysis.correlation import METHODS, coefficient, correlate, partial_correlation, pool
from lib.analysis.correlation_map import correlation_map, plot_correlation_map
from lib.analysis.pairwise_accuracy import pairwise_accuracy, soft_pairwise_accuracy
from lib.analysis.regression import (
    adjust,
    adjusted_r2,
    cross_validated_gain,
    incremental_validity,
    paper_layout,
)
from lib.analysis.resampling import (
    Interval,
    bootstrap_interval,
    bootstrap_mean,
    resampled_clusters,
    resampled_correlations,
    system_interval,
    system_matrix,
)
from lib.analysis.significance import (
    benjamini_hochberg,
    bootstrap_difference,
    compare_metrics,
    permutation_test,
    rank_metrics,
    williams_test,
)
from lib.analysis.simulation import false_positive_rates, rejection_rates
from lib.analysis.variance_components import ConvergenceError, variance_split
