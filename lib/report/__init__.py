"""Score your own chatbot: read, warn, score, compare versions, say what to fix, write a page.

`python -m lib.report dialogs.csv` runs notebook 11 on the file and exports it as HTML.
"""

from lib.report.dialogs import describe_turns, import_details, read_dialogs, warnings
from lib.report.faults import fault_table, faults, reading_list, signals, trust
from lib.report.page import show
from lib.report.scores import (
    FOLLOWS,
    against_ratings,
    agent_profile,
    beside_references,
    coverage,
    judge_replies,
    mean_ratings,
    profile_plot,
    quantiles,
    report_scores,
    standing,
    state_or_trait,
)
from lib.report.verdict import VERDICT, differences, verdict
