"""The result of a report: what notebook 11, the page and a program all show."""

from dataclasses import dataclass

import pandas as pd

from lib.report import dialogs, issues, profiles, validity, verdict
from lib.report import scores as scoring


@dataclass(frozen=True)
class Report:
    """Everything that is said about a file of dialogs.

    Attributes:
        turns: the turn table; each `system` is a version, the first is what others are compared to.
        scores: a column per metric on the index of `turns`.
        import_details: how the file was read, line by line (`dialogs.import_details`).
        warnings: what limits the conclusions (`dialogs.warnings`).
        verdicts: of each version after the first, with what it rests on (`verdict.Verdict`).
        differences: of each version from the first, per rating and metric (`verdict.differences`).
        ratings: mean rating of each system (`profiles.mean_ratings`).
        issues: per rule and version, the replies with its issue (`issues.issue_table`).
        cases: the clearest replies of each issue (`issues.reading_list`).
        agents: dialogs and replies of each agent (`dialogs.describe_turns`).
        means: mean scores of each agent.
        profile: mean scores of each agent with intervals (`profiles.agent_profile`).
        shares: each metric's variance by level (`profiles.state_or_trait`).
        families: which metrics were computed (`scores.family_coverage`).
        validity: what public corpora say of each metric (`validity.known_validity`).
        correlations: of each metric with a rating (`validity.correlations_with_ratings`).
    """

    turns: pd.DataFrame
    scores: pd.DataFrame
    import_details: str
    warnings: pd.DataFrame
    verdicts: list[verdict.Verdict]
    differences: pd.DataFrame
    ratings: pd.DataFrame
    issues: pd.DataFrame
    cases: pd.DataFrame
    agents: pd.DataFrame
    means: pd.DataFrame
    profile: pd.DataFrame
    shares: pd.DataFrame
    families: pd.DataFrame
    validity: pd.DataFrame
    correlations: pd.DataFrame


def build_report(
    turns: pd.DataFrame,
    *,
    embeddings: bool = True,
    max_replies: int = 10_000,
    judge: str = "",
    max_judged: int = 200,
    per_issue: int = 10,
    seed: int = 0,
) -> Report:
    """Score the dialogs, compare the versions, and find issues.

    Args:
        turns: turn table.
        embeddings: also compute the metrics of the sentence encoder, and EnDex.
        max_replies: replies that encoder and EnDex read, in whole dialogs.
        judge: "packaged", or a model at OPENAI_BASE_URL; "" asks none.
        max_judged: replies that the judge reads.
        per_issue: replies to list per issue.
        seed: seeds every random draw.

    >>> from lib.data import load
    >>> report = build_report(load("sample_bots").turns, embeddings=False)
    >>> [(row.version, row.verdict) for row in report.verdicts]
    [('ferry', 'worse'), ('pebble', 'worse')]
    """
    scores = scoring.report_scores(
        turns, embeddings, max_replies=max_replies, seed=seed
    )
    if judge:
        scores = scores.join(scoring.judge_replies(turns, judge, max_judged))
    metric_validity = validity.known_validity(scores)
    agrees = metric_validity["status"] == validity.AGREES
    differences = verdict.differences(
        turns,
        scores,
        higher_is_better=metric_validity.loc[agrees, "metric"].tolist(),
        seed=seed,
    )
    signals = issues.reply_signals(turns, scores)
    found = issues.find_issues(signals)
    return Report(
        turns=turns,
        scores=scores,
        import_details=dialogs.import_details(turns),
        warnings=dialogs.warnings(turns, max_replies),
        verdicts=verdict.verdicts(differences),
        differences=differences,
        ratings=profiles.mean_ratings(turns, seed=seed),
        issues=issues.issue_table(turns, signals, seed),
        cases=issues.reading_list(turns, found, per_issue),
        agents=dialogs.describe_turns(turns),
        means=scores.groupby([turns["system"], turns["agent"]]).mean(),
        profile=profiles.agent_profile(turns, scores, seed=seed),
        shares=profiles.state_or_trait(turns, scores),
        families=scoring.family_coverage(scores),
        validity=metric_validity,
        correlations=validity.correlations_with_ratings(turns, scores, seed),
    )
