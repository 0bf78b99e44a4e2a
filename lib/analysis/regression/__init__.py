"""Do psychological metrics tell more about human ratings than automatic metrics already do?"""

from lib.analysis.regression.correlation_map import (
    CorrelationMap,
    correlation_map,
    plot_correlation_map,
)
from lib.analysis.regression.gain import (
    GainTest,
    benjamini_hochberg,
    bootstrap_gain,
    cross_validated_gain,
    nested_f_test,
    residual_t_test,
    stars,
)
from lib.analysis.regression.incremental import adjust, incremental_validity, paper_layout
from lib.analysis.regression.models import adjusted_r2, complete_rows, fit_ols, zscore
from lib.analysis.regression.simulation import rejection_rates

__all__ = [
    "CorrelationMap",
    "GainTest",
    "adjust",
    "adjusted_r2",
    "benjamini_hochberg",
    "bootstrap_gain",
    "complete_rows",
    "correlation_map",
    "cross_validated_gain",
    "fit_ols",
    "incremental_validity",
    "nested_f_test",
    "paper_layout",
    "plot_correlation_map",
    "rejection_rates",
    "residual_t_test",
    "stars",
    "zscore",
]
