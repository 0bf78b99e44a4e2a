"""Engagement of Reddit posts by the reactions they received, and RED, the dataset drawn from it.

The equations are plain SQL (posts.sql, sample.sql, funnel.sql), run by DuckDB or Spark unchanged.
"""

from lib.endex.engagement.engines import DuckDB, Spark
from lib.endex.engagement.red import NoPostsError, Red, build, fingerprint
from lib.endex.engagement.settings import DIMENSIONS, FOOTNOTE_ALPHAS, FOOTNOTE_WEIGHTS, Settings
from lib.endex.engagement.steps import Step, steps, text

__all__ = [
    "DIMENSIONS",
    "FOOTNOTE_ALPHAS",
    "FOOTNOTE_WEIGHTS",
    "DuckDB",
    "NoPostsError",
    "Red",
    "Settings",
    "Spark",
    "Step",
    "build",
    "fingerprint",
    "steps",
    "text",
]
