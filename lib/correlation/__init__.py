"""Correlation of metrics with human ratings, and what can be concluded from it."""

from lib.correlation.coefficients import (
    LEVELS,
    METHODS,
    Correlation,
    coefficient,
    correlate,
    pool,
)

__all__ = ["LEVELS", "METHODS", "Correlation", "coefficient", "correlate", "pool"]
