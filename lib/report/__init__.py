"""Score your own chatbot: read a file of dialogs, warn, score, profile, write a page.

`python -m lib.report dialogs.csv` runs notebook 11 on the file and exports it as HTML.
"""

from lib.report.dialogs import describe, english_share, read, suggest_columns, warnings
from lib.report.figures import (
    beside_references,
    profile_plot,
    quantiles,
    share_plot,
    with_references,
)
from lib.report.scoring import (
    PROFILE,
    against_ratings,
    agent_profile,
    composite,
    coverage,
    evidence,
    reading_list,
    score,
    state_or_trait,
)
