"""Is a metric a state or a trait? Variance over system > agent > dialog > turn."""

from lib.hierarchy.nesting import LEVELS, Nest, nest, separable_levels
from lib.hierarchy.variance import ConvergenceError, log_likelihood, variance_split

__all__ = [
    "LEVELS",
    "ConvergenceError",
    "Nest",
    "log_likelihood",
    "nest",
    "separable_levels",
    "variance_split",
]
