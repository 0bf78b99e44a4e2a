"""Do psychological metrics tell more about human ratings than automatic metrics already do?"""

from lib.regression.correlation_map import CorrelationMap, correlation_map, plot_correlation_map
from lib.regression.gain import (
    GainTest,
    benjamini_hochberg,
    bootstrap_gain,
    cross_validated_gain,
    nested_f_test,
    residual_t_test,
    stars,
)
from lib.regression.incremental import adjust, incremental_validity, paper_layout
from lib.regression.models import adjusted_r2, complete_rows, fit_ols, zscore
from lib.regression.published import (
    PAPER_SETS,
    data_sets,
    published_alone,
    published_gains,
    published_tables,
)
from lib.regression.simulation import rejection_rates

__all__ = [
    "PAPER_SETS",
    "CorrelationMap",
    "GainTest",
    "adjust",
    "adjusted_r2",
    "benjamini_hochberg",
    "bootstrap_gain",
    "complete_rows",
    "correlation_map",
    "cross_validated_gain",
    "data_sets",
    "fit_ols",
    "incremental_validity",
    "nested_f_test",
    "paper_layout",
    "plot_correlation_map",
    "published_alone",
    "published_gains",
    "published_tables",
    "rejection_rates",
    "residual_t_test",
    "stars",
    "zscore",
]
