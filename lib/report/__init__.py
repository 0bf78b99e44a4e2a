"""Score your own chatbot: read, warn, score, compare versions, find issues, write a page.

`python -m lib.report dialogs.csv` builds a `Report` of the file and writes it as HTML. A name of
this room is imported from its file when it is first used, so that `--help` needs no metric.
"""

from importlib import import_module

FILES = {
    "authors": ["find_people", "rating_correlations_by_author"],
    "dialogs": ["describe_turns", "import_details", "read_versions", "warnings"],
    "exploration": ["Exploration", "explore"],
    "issues": [
        "find_issues",
        "issue_table",
        "reading_list",
        "reply_signals",
        "rule_accuracy",
    ],
    "plots": ["profile_plot", "quantile_plot", "score_quantiles"],
    "profiles": ["agent_profile", "mean_ratings", "state_or_trait"],
    "rating_sheets": ["draw_order", "read_rating_sheets", "write_rating_sheets"],
    "rating_study": ["study_ratings"],
    "result": ["Report", "build_report"],
    "scores": ["family_coverage", "judge_replies", "report_scores"],
    "validity": ["AGREES", "correlations_with_ratings", "known_validity"],
    "verdict": ["Verdict", "differences", "verdicts"],
}


def __getattr__(name: str):
    for file, names in FILES.items():
        if name in names:
            return getattr(import_module(f"lib.report.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
