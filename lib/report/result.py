"""The result of a report: what notebook 14, the page and a program all show."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from lib.meta_evaluation.evaluation_sets import shipped_scores
from lib.metrics import AskedModel
from lib.report import (
    authors,
    dialogs,
    issues,
    profiles,
    rating_sheets,
    rating_study,
    validity,
    verdict,
)
from lib.report import scores as scoring
from lib.report.answer import Answer, first_answer, picture_rows
from lib.report.history import HISTORY, sheet_levels, version_levels
from lib.report.pairs import (
    ReplyPairs,
    dialog_units,
    paired_dialogs,
    reply_pairs,
    typical_and_worst,
)
from lib.report.ranking import version_ranking, win_rates


@dataclass(frozen=True)
class Report:
    """Everything that is said about a file of dialogs.

    Attributes:
        answer: the first screen in words (`answer.first_answer`).
        picture: the differences that it shows (`answer.picture_rows`).
        score: the rating or metric that orders versions and dialogs; "" where nothing does.
        pairs: replies of two versions to the same context (`pairs.reply_pairs`).
        examples: dialogs to look at where there are no pairs (`pairs.typical_and_worst`).
        ranking: of three versions or more, their order (`ranking.version_ranking`).
        win_rates: of preferences between two replies (`ranking.win_rates`).
        turns: the turn table; each `system` is a version, the first is what others are compared to.
        scores: a column per metric on the index of `turns`.
        import_details: how the file was read, line by line (`dialogs.import_details`).
        warnings: what limits the conclusions (`dialogs.warnings`).
        units: dialogs of each version, and what the intervals count (`pairs.dialog_units`).
        paired_dialogs: which dialogs are compared in pairs (`pairs.paired_dialogs`).
        verdicts: of each version after the first, with what it rests on (`verdict.Verdict`).
        differences: of each version from the first, per rating and metric (`verdict.differences`).
        more_dialogs: how more dialogs would narrow the deciding ones
            (`verdict.expected_with_more_dialogs`); no rows where a sheet of ratings decides, of
            which `further_ratings` says more.
        ratings: mean rating of each system (`profiles.mean_ratings`).
        rater_agreement, rated_estimates, further_ratings, annotator_test: of the dialogs that
            people rated (`rating_study.RatingStudy`).
        issues: per rule and version, the replies with its issue (`issues.issue_table`).
        without_score: replies without a rating or the score of a rule
            (`issues.replies_without_score`).
        cases: the clearest replies of each issue and version (`issues.reading_list`).
        agents: dialogs and replies of each agent (`dialogs.describe_turns`).
        means: mean scores of each agent.
        profile: mean scores of each agent with intervals (`profiles.agent_profile`).
        shares: each metric's variance by level (`profiles.state_or_trait`).
        families: which metrics were computed (`scores.family_coverage`).
        validity: what public corpora say of each metric (`validity.known_validity`).
        correlations: of each metric with a rating (`validity.correlations_with_ratings`).
        correlations_by_author: the same among machines and within contexts
            (`authors.rating_correlations_by_author`).
        levels: what the history keeps of each version (`history.version_levels`).
        history: the levels of earlier releases and this one (`history.read_history`); no rows
            unless a folder was named.
    """

    answer: Answer
    picture: pd.DataFrame
    score: str
    pairs: ReplyPairs
    examples: pd.DataFrame
    ranking: pd.DataFrame
    win_rates: pd.DataFrame
    turns: pd.DataFrame
    scores: pd.DataFrame
    import_details: str
    warnings: pd.DataFrame
    units: pd.DataFrame
    paired_dialogs: pd.DataFrame
    verdicts: list[verdict.Verdict]
    differences: pd.DataFrame
    more_dialogs: pd.DataFrame
    ratings: pd.DataFrame
    rater_agreement: pd.DataFrame
    rated_estimates: pd.DataFrame
    further_ratings: pd.DataFrame
    annotator_test: pd.DataFrame
    issues: pd.DataFrame
    without_score: pd.DataFrame
    cases: pd.DataFrame
    agents: pd.DataFrame
    means: pd.DataFrame
    profile: pd.DataFrame
    shares: pd.DataFrame
    families: pd.DataFrame
    validity: pd.DataFrame
    correlations: pd.DataFrame
    correlations_by_author: pd.DataFrame
    levels: pd.DataFrame
    history: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=HISTORY))


def build_report(  # noqa: PLR0913 (all but the first are keywords)
    turns: pd.DataFrame,
    *,
    embeddings: bool = True,
    max_replies: int = 10_000,
    judge: str = "",
    max_judged: int = 200,
    per_issue: int = 3,
    rated: rating_study.DialogRatings | None = None,
    asked: Sequence[AskedModel] = (),
    seed: int = 0,
) -> Report:
    """Score the dialogs, compare the versions, and find issues.

    Args:
        turns: turn table.
        embeddings: also compute the metrics of the sentence encoder, and EnDex.
        max_replies: replies that encoder and EnDex read, in whole dialogs.
        judge: "packaged", or a model at OPENAI_BASE_URL; "" asks none.
        max_judged: replies that the judge reads.
        per_issue: replies to list per issue and version.
        rated: ratings of dialogs drawn at random (`rating_study.ratings_of_sheet`); by default the
            file's own (`rating_study.ratings_of_file`).
        asked: models of the hub, or folders, to score with (`lib.metrics.parse_models`); they read
            the same replies as the encoder.
        seed: seeds every random draw.

    >>> from lib.data import load
    >>> report = build_report(load("sample_bots").turns, embeddings=False)
    >>> [(row.version, row.verdict) for row in report.verdicts]
    [('ferry', 'worse'), ('pebble', 'worse')]
    """
    order = rating_sheets.draw_order(turns)
    from_sheet = rated is not None and rated.from_sheet
    scores = scoring.report_scores(
        turns,
        embeddings,
        max_replies=max_replies,
        always_read=rated.means.index if from_sheet else None,
        asked=asked,
        seed=seed,
    )
    if judge:
        to_judge = rating_sheets.turns_in_order(turns, order) if from_sheet else turns
        scores = scores.join(scoring.judge_replies(to_judge, judge, max_judged))
    metric_validity = validity.known_validity(scores)
    agrees = metric_validity["status"] == validity.AGREES
    predictor = rating_study.choose_predictor(metric_validity)
    deciding = metric_validity.loc[agrees, "metric"].tolist()
    differences = verdict.differences(
        turns,
        scores,
        higher_is_better=deciding,
        seed=seed,
    )
    judges = list(shipped_scores(turns).columns.intersection(scores.columns))
    if judge:
        judges.append("cpds")
    study = rating_study.RatingStudy()
    rated = rated or rating_study.ratings_of_file(turns)
    if rated is not None:
        study = rating_study.study_ratings(
            turns,
            scores,
            rated,
            order,
            predictor=predictor,
            judges=judges,
        )
    differences = rating_study.decide_by_sheet(differences, study)
    warnings = dialogs.warnings(turns, max_replies)
    if study.question:
        warnings.loc[len(warnings)] = {
            "topic": "drawn at random?",
            "finding": study.question,
            "consequence": "only a random draw stands for the other dialogs",
        }
    people = authors.find_people(turns)
    if people and turns["system"].nunique() > 1:
        warnings.loc[len(warnings)] = {
            "topic": "written by people?",
            "finding": f"read as people's replies: {', '.join(map(repr, people))}",
            "consequence": "a metric may only recognise people: section 7 has the correlations "
            'without them. If it is a bot: a column written_by with "machine"',
        }
    ratings = turns.filter(regex="^human_")
    deviations = ratings.join(scores).astype(float).std(ddof=0)
    if from_sheet:
        deviations[rating_study.RATING] = rated.means.std(ddof=0)
    signals = issues.reply_signals(turns, scores)
    found_issues = issues.find_issues(signals)
    verdicts = verdict.verdicts(differences)
    issue_table = issues.issue_table(turns, signals, seed)
    mean_ratings = profiles.mean_ratings(turns, seed=seed)
    score = dialogs.leading_rating(turns) or predictor
    pairs = reply_pairs(
        turns,
        scores,
        score,
        directions=_directions(verdicts),
        issues=_issues_of_replies(turns, found_issues),
    )
    picture = picture_rows(differences, deviations, score)
    more_dialogs = verdict.expected_with_more_dialogs(differences, verdicts)
    if len(study.further):
        more_dialogs = more_dialogs[:0]
    examples = pd.DataFrame()
    if score and not pairs.total:
        examples = typical_and_worst(turns, scores, score)
    levels = version_levels(turns, scores, signals, deciding=deciding, seed=seed)
    if from_sheet and len(study.estimates):
        levels = pd.concat([sheet_levels(study.estimates), levels], ignore_index=True)
    ranking = pd.DataFrame()
    if score and len(verdicts) > 1:
        ranking = version_ranking(turns, scores, score, seed=seed)
    return Report(
        answer=first_answer(
            turns,
            scores,
            verdicts=verdicts,
            ratings=mean_ratings,
            issues=issue_table,
            warnings=warnings,
            ranking=ranking,
            differences=differences,
            more_dialogs=more_dialogs,
            picture=picture,
            score=score,
        ),
        picture=picture,
        score=score,
        pairs=pairs,
        examples=examples,
        ranking=ranking,
        win_rates=win_rates(turns),
        turns=turns,
        scores=scores,
        import_details=dialogs.import_details(turns),
        warnings=warnings,
        units=dialog_units(turns),
        paired_dialogs=paired_dialogs(turns),
        verdicts=verdicts,
        differences=differences,
        more_dialogs=more_dialogs,
        ratings=mean_ratings,
        rater_agreement=study.agreement,
        rated_estimates=study.estimates,
        further_ratings=study.further,
        annotator_test=study.annotator_test,
        issues=issue_table,
        without_score=issues.replies_without_score(
            turns, signals, sampled=len(turns) > max_replies
        ),
        cases=issues.reading_list(
            turns, found_issues, per_issue, issue_table["rule"].unique()
        ),
        agents=dialogs.describe_turns(turns),
        means=scores.groupby([turns["system"], turns["agent"]]).mean(),
        profile=profiles.agent_profile(turns, scores, seed=seed),
        shares=profiles.state_or_trait(turns, scores),
        families=scoring.family_coverage(scores),
        validity=metric_validity,
        correlations=validity.correlations_with_ratings(turns, scores, seed),
        correlations_by_author=authors.rating_correlations_by_author(
            turns, scores, seed
        ),
        levels=levels,
    )


def _directions(verdicts: Sequence[verdict.Verdict]) -> dict[str, int]:
    """1 for a version that is better than the first or leans to it, -1 for one that is worse."""
    directions = {}
    for row in verdicts:
        if row.verdict.endswith("better"):
            directions[row.version] = 1
        elif row.verdict.endswith("worse"):
            directions[row.version] = -1
    return directions


def _issues_of_replies(turns: pd.DataFrame, found: pd.DataFrame) -> pd.Series:
    """The names of the issues that rules found in each reply; "" where none."""
    names = found.groupby("reply")["issue"].agg(lambda of: ", ".join(dict.fromkeys(of)))
    return names.reindex(turns.index, fill_value="")
