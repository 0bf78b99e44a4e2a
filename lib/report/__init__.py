"""Score your own chatbot: read a file of dialogs, warn, score, profile, write a page.

`python -m lib.report dialogs.csv` runs notebook 11 on the file and exports it as HTML.
"""

from lib.report.checks import english_share, warnings
from lib.report.page import to_html, write_page
from lib.report.plots import (
    beside_references,
    profile_plot,
    quantiles,
    share_plot,
    with_references,
)
from lib.report.profile import PROFILE, agent_profile, state_or_trait
from lib.report.reading import read, suggest_columns
from lib.report.scoring import (
    against_ratings,
    composite,
    coverage,
    describe,
    evidence,
    reading_list,
    score,
)

__all__ = [
    "PROFILE",
    "against_ratings",
    "agent_profile",
    "beside_references",
    "composite",
    "coverage",
    "describe",
    "english_share",
    "evidence",
    "profile_plot",
    "quantiles",
    "read",
    "reading_list",
    "score",
    "share_plot",
    "state_or_trait",
    "suggest_columns",
    "to_html",
    "warnings",
    "with_references",
    "write_page",
]
