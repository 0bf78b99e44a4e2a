"""Correlation, resampling, significance, agreement, regression, variances, study plans."""

from lib.analysis.agreement import (
    krippendorff_alpha,
    metric_limit,
    rating_limit,
    rating_matrix,
    spearman_brown,
)
from lib.analysis.correlation import (
    METHODS,
    coefficient,
    correlate,
    pairwise_accuracy,
    partial_correlation,
)
from lib.analysis.regression import (
    adjust,
    adjusted_r2,
    cross_validated_gain,
    incremental_validity,
    paper_layout,
    rejection_rates,
)
from lib.analysis.resampling import (
    Interval,
    bootstrap_interval,
    bootstrap_mean,
    resampled_clusters,
    resampled_correlations,
)
from lib.analysis.significance import (
    benjamini_hochberg,
    compare_metrics,
    false_positive_rates,
    rank_metrics,
)
from lib.analysis.study_plan import (
    compare_systems,
    redraw,
    simulated_power,
    study_plan,
    worth_in_raters,
)
from lib.analysis.systems import fisher_interval
from lib.analysis.variance_components import variance_split
