"""Score your own chatbot: read, warn, score, compare versions, find issues, write a page.

`python -m lib.report dialogs.csv` builds a `Report` of the file and writes it as HTML.
"""

from lib.report.dialogs import describe_turns, import_details, read_versions, warnings
from lib.report.issues import (
    find_issues,
    issue_table,
    reading_list,
    reply_signals,
    rule_accuracy,
)
from lib.report.plots import profile_plot, quantile_plot, score_quantiles
from lib.report.profiles import agent_profile, mean_ratings, state_or_trait
from lib.report.result import Report, build_report
from lib.report.scores import family_coverage, judge_replies, report_scores
from lib.report.validity import AGREES, correlations_with_ratings, known_validity
from lib.report.verdict import Verdict, differences, verdicts
