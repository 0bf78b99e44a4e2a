"""Score your own chatbot: read a file of dialogs, warn, score, profile, write a page.

`python -m lib.report dialogs.csv` runs notebook 11 on the file and exports it as HTML.
"""

from lib.report.dialogs import describe, read, reading, warnings
from lib.report.scores import (
    against_ratings,
    agent_profile,
    beside_references,
    composite,
    coverage,
    evidence,
    profile_plot,
    quantiles,
    reading_list,
    score,
    share_plot,
    state_or_trait,
    with_references,
)
