"""What the first screen of a report says: the answer, a picture of it, and what could change it."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.meta_evaluation.figures import display_name
from lib.report.dialogs import leading_rating, left_out
from lib.report.plots import strip_symbols
from lib.report.validity import reference_table
from lib.report.verdict import KEY, Verdict, explain_differences

#: Warnings that could turn a verdict round: who was scored, and how much there was to score.
DECISIVE = (
    "users among the systems?",
    "the user's words?",
    "not English?",
    "few dialogs",
)
MAX_DESCRIBING = 3  # metrics in the picture that decide nothing
MAX_CHANGES = 3  # issues that the first screen names
MAX_ROWS = 12  # rows of the picture
MAX_NAMES = 5  # versions that a sentence names
SAME = 1e-6  # standard deviations: what lies nearer to 0 is rounding
WIDE = 7.0  # inches: the picture at a desk, and on a phone
NARROW = 3.8
SENTENCES = {
    "better": "{version} is better than {against}.",
    "worse": "{version} is worse than {against}.",
    "leaning better": "Metrics lean to {version}: it may be better than {against}.",
    "leaning worse": "Metrics lean to {against}: {version} may be worse.",
    "mixed": "{version} is better than {against} in some respects and worse in others.",
    "no difference shown": "No difference between {version} and {against} is shown.",
    "no verdict": "Nothing in these dialogs decides between {version} and {against}.",
}
#: The same of several versions, as "B, C and D".
SENTENCES_OF_SEVERAL = {
    "better": "{version} are better than {against}.",
    "worse": "{version} are worse than {against}.",
    "leaning better": "Metrics lean to {version}: each may be better than {against}.",
    "leaning worse": "Metrics lean to {against}: {version} may be worse.",
    "mixed": "{version} are better than {against} in some respects and worse in others.",
    "no difference shown": "No difference from {against} is shown for {version}.",
    "no verdict": "Nothing in these dialogs compares {version} with {against}.",
}


@dataclass(frozen=True)
class Answer:
    """The first screen in words.

    Attributes:
        sentences: the verdicts on the versions after the first, one for those of the same verdict;
            or what the only version is.
        size: dialogs of the files, kept and left out, and rated replies.
        basis: what the first of them rests on: ratings or metrics, dialogs, shared openings.
        error_rate: how often such verdicts are wrong, a sentence per kind of verdict
            (`Verdict.error_rate`).
        more: what more dialogs and what ratings would bring to the first verdict.
        findings: the differences that decide between the first two versions; of three versions
            and more, which come first; the clear changes of issues. Of a single version, its most
            telling figures.
        issues: of each finding the issue that it counts, so that it can lead to the cases; "" of
            the others.
        cautions: warnings that could turn the answer round.
    """

    sentences: list[str]
    size: str
    basis: str
    error_rate: str
    more: str
    findings: list[str]
    issues: list[str]
    cautions: list[str]


def first_answer(  # noqa: PLR0913 (all but two are keywords)
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    *,
    verdicts: Sequence[Verdict],
    ratings: pd.DataFrame,
    issues: pd.DataFrame,
    warnings: pd.DataFrame,
    ranking: pd.DataFrame,
    differences: pd.DataFrame,
    more_dialogs: pd.DataFrame,
    picture: pd.DataFrame,
    score: str = "",
) -> Answer:
    """Put the verdicts into sentences; of a single version, say what it is like.

    Args:
        turns, scores: the turn table and its metrics.
        verdicts, ratings, issues, warnings, ranking, differences, more_dialogs, picture, score:
            as in `Report`.

    >>> turns = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["1"]})
    >>> nothing = pd.DataFrame(columns=["topic", "finding", "issue", "replies", "share"])
    >>> first_answer(turns, turns[[]], verdicts=[], ratings=nothing, issues=nothing,
    ...              warnings=nothing, ranking=nothing, differences=nothing,
    ...              more_dialogs=nothing, picture=nothing).sentences
    ['One version, A: 1 reply in 1 dialog.']
    """
    decisive = warnings[warnings["topic"].isin(DECISIVE)]
    topics = decisive["topic"].str.capitalize().str.rstrip("?")
    cautions = (topics + ": " + decisive["finding"] + ".").tolist()
    if not verdicts:
        version = turns["system"].iloc[0]
        n_dialogs = len(turns[["agent", "dialog"]].drop_duplicates())
        size = f"{_count(len(turns), 'reply')} in {_count(n_dialogs, 'dialog')}"
        findings = _findings(
            scores, ratings=ratings, leading=leading_rating(turns), issues=issues
        )
        return Answer(
            sentences=[f"One version, {version}: {size}."],
            size=_size_of_files(turns),
            basis="With a second version, this page compares the two.",
            error_rate="",
            more="",
            findings=[text for text, _ in findings],
            issues=[issue for _, issue in findings],
            cautions=cautions,
        )
    first = by_certainty(verdicts)[0]
    basis = _basis(first, turns, scores, differences)
    sizes = _sizes(first, differences, picture)
    if len(verdicts) > 1:
        sizes = [f"{first.version} against {first.against}: {text}" for text in sizes]
        basis = basis.replace("This rests", f"The verdict on {first.version} rests", 1)
    rates = dict.fromkeys(row.error_rate for row in verdicts if row.error_rate)
    ranks = _first_rank(ranking, score) if len(ranking) else []
    findings = [*sizes, *ranks]
    changes = _change_sentences(issues, verdicts[0].against)
    return Answer(
        sentences=_verdict_sentences(verdicts),
        size=_size_of_files(turns),
        basis=basis,
        error_rate=" ".join(rates),
        more=_what_more_would_bring(first, more_dialogs, score),
        findings=[*findings, *(text for text, _ in changes)],
        issues=[*("" for _ in findings), *(issue for _, issue in changes)],
        cautions=cautions,
    )


def _verdict_sentences(verdicts: Sequence[Verdict]) -> list[str]:
    """A sentence for all versions of the same verdict."""
    versions: dict[str, list[str]] = {}
    for verdict in by_certainty(verdicts):
        versions.setdefault(verdict.verdict, []).append(verdict.version)
    sentences = []
    for verdict, names in versions.items():
        forms = SENTENCES if len(names) == 1 else SENTENCES_OF_SEVERAL
        against = verdicts[0].against
        sentences.append(forms[verdict].format(version=_listed(names), against=against))
    return sentences


def _size_of_files(turns: pd.DataFrame) -> str:
    """Dialogs of the files, kept and left out, and how many replies people rated."""
    dialogs = turns[KEY].drop_duplicates()
    counts = dialogs["system"].value_counts(sort=False)
    kept = _count(len(dialogs), "dialog")
    versions = ""
    if 1 < len(counts) <= MAX_NAMES:
        versions = ", ".join(f"{n:,} of {version}" for version, n in counts.items())
        versions = f" ({versions})"
    reasons = left_out(turns)
    if reasons:
        total = len(dialogs) + sum(reasons.values())
        files = "files" if len(turns.attrs.get("files", [])) > 1 else "file"
        texts = ", ".join(f"{n:,} {reason}" for reason, n in reasons.items())
        size = (
            f"{_count(total, 'dialog')} in the {files}: {len(dialogs):,} kept{versions}"
        )
        size += f", {sum(reasons.values()):,} left out ({texts})."
    else:
        size = f"{kept}{versions}, none left out."
    leading = leading_rating(turns)
    if not leading:
        return f"{size} {_count(len(turns), 'reply')}, without ratings."
    rated = int(turns[leading].notna().sum())
    return f"{size} {_count(len(turns), 'reply')}, {rated:,} of them rated."


def _what_more_would_bring(
    verdict: Verdict, more_dialogs: pd.DataFrame, score: str
) -> str:
    """What more dialogs would bring, to `score` where it is one that decides; and what ratings."""
    sheet = (
        "make report DIALOGS=... RATE=40 writes a sheet with 40 dialogs of each version"
    )
    if not verdict.decided_by:
        return f"Ratings by people may decide: {sheet}."
    sentences = []
    rows = more_dialogs.to_dict("records")
    rows = [row for row in rows if row["version"] == verdict.version]
    rows.sort(key=lambda row: row["score"] != score)  # stable
    for row in rows[:1]:
        rated = "rated dialogs" if verdict.decided_by == "rating" else "dialogs"
        name = display_name(row["score"].removeprefix("human_"))
        now = f"\u00b1{row['half_width']:.2g}"
        then = f"\u00b1{row['expected_half_width']:.2g}"
        # The width falls with the square root of the number of dialogs.
        to_halve = 3 * row["dialogs"]
        sentences.append(
            f"{row['further_dialogs']:,} more {rated} of each version would narrow the interval "
            f"for {name} from {now} to about {then}; {to_halve:,} more would halve it."
        )
    if verdict.decided_by == "rating":
        return " ".join(sentences)
    if verdict.verdict.startswith("leaning"):
        sentences.append(
            "But more dialogs do not make this a verdict: they do not change how often such calls "
            f"are wrong. Ratings may: {sheet}."
        )
    else:
        sentences.append(f"Ratings would decide in place of metrics: {sheet}.")
    return " ".join(sentences)


def by_certainty(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that decide before those that lean, and before those without a difference.

    >>> found = [Verdict("B", verdict="no difference shown"), Verdict("C", verdict="better")]
    >>> [row.version for row in by_certainty(found)]
    ['C', 'B']
    """
    order = list(SENTENCES)
    return sorted(verdicts, key=lambda row: order.index(row.verdict))


def _sizes(
    verdict: Verdict, differences: pd.DataFrame, picture: pd.DataFrame
) -> list[str]:
    """How large the differences are that decide, and where the picture has them."""
    if not verdict.decided_by:
        return []
    rows = differences[
        (differences["version"] == verdict.version)
        & differences["score"].isin(verdict.scores)
    ]
    sizes = explain_differences(rows, verdict.version, verdict.against)
    if picture.empty or picture["version"].nunique() > 1:
        return [sizes]
    shown = picture[picture["score"].isin(verdict.scores)]
    texts = [
        f"{row['difference']:+.2f} ({row['label']})" for row in shown.to_dict("records")
    ]
    if not texts:
        return [sizes]
    return [f"{sizes} In standard deviations, as in the picture: {', '.join(texts)}."]


def _listed(names: Sequence[str]) -> str:
    """Names as a person lists them, at most `MAX_NAMES`.

    >>> _listed(["A"]), _listed(list("ABC")), _listed(list("ABCDEFGH"))
    ('A', 'A, B and C', 'A, B, C, D and 4 more')
    """
    if len(names) == 1:
        return names[0]
    if len(names) > MAX_NAMES:
        n_listed = MAX_NAMES - 1
        return f"{', '.join(names[:n_listed])} and {len(names) - n_listed} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _first_rank(ranking: pd.DataFrame, score: str) -> list[str]:
    """Which versions come first, of three and more."""
    first = ranking.loc[ranking["rank"] == 1, "version"].tolist()
    name = display_name(score.removeprefix("human_"))
    if not first:
        return []
    if len(first) == 1:
        return [f"Highest in {name}: {first[0]}."]
    return [f"Highest in {name}, and not distinguished: {_listed(first)}."]


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    plural = {"reply": "replies"}.get(noun, f"{noun}s")
    return f"{number:,} {plural}"


def _basis(
    verdict: Verdict,
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    differences: pd.DataFrame,
) -> str:
    """What a verdict rests on: ratings or metrics, dialogs of each version, shared openings."""
    if not verdict.decided_by:
        return verdict.explanation
    names = [display_name(name.removeprefix("human_")) for name in verdict.scores]
    source = "people's ratings"
    has_unpaired = False
    if verdict.decided_by == "metric":
        source = "one metric" if len(names) == 1 else "metrics"
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    from_sheet = (differences["kind"] == "rating of the file").any()
    values = turns.join(scores).reindex(columns=list(verdict.scores))
    decided = turns.loc[values.notna().any(axis=1), KEY].drop_duplicates()
    if from_sheet or decided.empty:
        dialogs = f"{_count(verdict.dialogs, 'dialog')} of each version"
    else:
        counts = decided["system"].value_counts()
        dialogs = f"{_count(counts[verdict.version], 'dialog')} of {verdict.version}"
        dialogs += f" and {counts[verdict.against]:,} of {verdict.against}"
        has_unpaired = counts.max() > verdict.paired
    openings = _shared_openings(verdict.paired, has_unpaired)
    return f"This rests on {source} ({', '.join(names)}) of {dialogs}. {openings}"


def _shared_openings(paired: int, has_unpaired: bool) -> str:
    """How many openings both versions answered, and whether other dialogs count, too."""
    if not paired:
        return "There are no shared openings, so no dialogs are paired."
    others = "; dialogs without a partner count too" if has_unpaired else ""
    if paired == 1:
        return (
            f"1 shared opening: its dialogs are compared in pairs (section 1){others}."
        )
    return (
        f"{paired:,} shared openings: their dialogs are compared in pairs (section 1 lists them)"
        f"{others}."
    )


def _change_sentences(issues: pd.DataFrame, first: str) -> list[tuple[str, str]]:
    """The clear changes of issues from the first version, each with the name of its issue.

    A change is clear where its interval does not hold 0. Of the issues that became more frequent,
    the one that costs most in rating comes first, then the one that grew most, then the others in
    the order of the table. Of several versions, the one with the largest clear change of a rule
    stands for it.
    """
    before = issues[issues["version"] == first].set_index("rule")
    clear = issues[(issues["low"] > 0) | (issues["high"] < 0)]
    if clear.empty:
        changes = issues["change"].notna().any()
        return (
            [("No issue became clearly more or less frequent.", "")] if changes else []
        )
    largest = clear["change"].abs().sort_values(ascending=False, kind="stable").index
    of_each_rule = clear.loc[largest].drop_duplicates("rule").index
    clear = clear[clear.index.isin(of_each_rule)]

    grown = clear[clear["change"] > 0]
    effects = grown["rating_effect"]
    costliest = effects[effects < 0].nsmallest(1).index
    largest_growth = grown["change"].nlargest(1).index
    order = [*costliest, *largest_growth, *clear.index]
    sentences = []
    for label in list(dict.fromkeys(order))[:MAX_CHANGES]:
        row = clear.loc[label]
        change = _change_sentence(row, before.loc[row["rule"]], first)
        reasons = []
        if label in largest_growth:
            reasons.append("grew most")
        if label in costliest:
            reasons.append("costs most in rating")
        if reasons:
            reason = ", ".join(reasons)
            start = f"Fix first ({reason})" if not sentences else reason.capitalize()
            change = f"{start}: {change[0].lower()}{change[1:]}"
        sentences.append((change, row["issue"]))
    return sentences


def _change_sentence(row: pd.Series, before: pd.Series, first: str) -> str:
    """One change of an issue: counts of both versions, interval, and difference in rating."""
    direction = "more often" if row["change"] > 0 else "less often, an improvement"
    low = percent(row["low"], signed=True)
    high = percent(row["high"], signed=True)
    sentence = (
        f"{row['issue'].capitalize()}, {direction} ({row['rule']}). {row['replies']:,.0f} of "
        f"{row['of']:,.0f} replies of {row['version']}, {before['replies']:,.0f} of "
        f"{before['of']:,.0f} of {first}: {percent(row['change'], signed=True)} points (95 % "
        f"interval {low} to {high})."
    )
    if not np.isnan(row["rating_gap"]):
        side = "lower" if row["rating_gap"] < 0 else "higher"
        sentence += f" Replies with it are rated {abs(row['rating_gap']):.2g} {side} than others."
    if not np.isnan(row["recall"]):
        sentence += (
            " In a test on artificially damaged replies this rule found only "
            f"{percent(row['recall'])} of 100 such replies, so the true number may be higher."
        )
    return sentence


def percent(share: float, signed: bool = False) -> str:
    """A share in per cent, with two significant digits below 10.

    >>> percent(0.183), percent(0.0312), percent(-0.00214, signed=True), percent(1.0)
    ('18', '3.1', '-0.21', '100')
    """
    sign = "+" if signed else ""
    value = 100 * share
    form = ".0f" if abs(value) >= 10 else ".2g"
    return f"{value:{sign}{form}}"


def _findings(
    scores: pd.DataFrame,
    *,
    ratings: pd.DataFrame,
    leading: str,
    issues: pd.DataFrame,
) -> list[tuple[str, str]]:
    """The most telling figures of one version: rating, commonest issue, distance from others.

    Each with the name of its issue, or "".
    """
    findings = []
    for row in ratings.to_dict("records"):
        if row["rating"] != leading:
            continue
        name = row["rating"].removeprefix("human_")
        interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
        rated = f"People rate it {row['mean']:.2f} on average ({name}; {interval})."
        findings.append((rated, ""))
    commonest = (
        issues[issues["replies"] > 0].sort_values("share", ascending=False).head(1)
    )
    for row in commonest.to_dict("records"):
        count = _count(row["replies"], "reply")
        text = (
            f"Commonest issue: {row['issue']}, {count} ({percent(row['share'])} %): "
            f"{row['rule']}."
        )
        findings.append((text, row["issue"]))
    distance = farthest_from_corpora(scores)
    if distance:
        findings.append((distance, ""))
    return findings


def farthest_from_corpora(scores: pd.DataFrame) -> str:
    """The metric whose median lies farthest outside the medians of the public corpora, in words.

    The distance is measured in middle halves (interquartile ranges) of the public corpora. Empty
    where every median lies among theirs.

    >>> farthest_from_corpora(pd.DataFrame({"length": [400.0, 500.0]}))
    'Farthest from the public corpora: length in words, with a median of 450; theirs are 8 to 19.'
    """
    columns = ["metric", "q25", "q50", "q75"]
    public = reference_table("14_reference_quantiles", columns).set_index("metric")
    distances = {}
    for metric, median in scores.median().items():
        if metric not in public.index:
            continue
        corpora = public.loc[[metric]]
        spread = (corpora["q75"] - corpora["q25"]).median()
        beyond = max(median - corpora["q50"].max(), corpora["q50"].min() - median)
        if beyond > 0 and spread > 0:
            distances[metric] = beyond / spread
    if not distances:
        return ""
    metric = max(distances, key=distances.get)
    medians = public.loc[[metric], "q50"]
    return (
        f"Farthest from the public corpora: {display_name(metric)}, with a median of "
        f"{scores[metric].median():.3g}; theirs are {medians.min():.3g} to {medians.max():.3g}."
    )


def picture_rows(
    differences: pd.DataFrame, deviations: pd.Series, score: str = ""
) -> pd.DataFrame:
    """The differences that the picture shows, in standard deviations of the replies.

    Of one comparison: ratings first, then the metrics of which higher is better, then the three
    largest differences of metrics that only describe. Of several, one row per version, in `score`.

    Args:
        differences: what `verdict.differences` returns.
        deviations: standard deviation of each rating and metric, by its name.
        score: the rating or metric that orders several versions.

    Returns:
        version, against, score, label, difference, low, high (in standard deviations), role
        ("rating", "may decide" or "describes"). A score that is the same in both versions is left
        out; no rows for one version.
    """
    if differences.empty:
        return differences
    deviation = differences["score"].map(deviations).replace(0, np.nan)
    table = differences[["version", "against", "score"]].copy()
    for column in ("difference", "low", "high"):
        table[column] = differences[column] / deviation
    role = differences["kind"].where(differences["kind"] == "rating", "describes")
    higher = (role != "rating") & (differences["better"] == "higher")
    table["role"] = role.mask(higher, "may decide")
    table = table.dropna(subset=["difference", "low"])
    table = table[table[["low", "high"]].abs().max(axis=1) > SAME]
    roles = ["rating", "may decide", "describes"]
    table["order"] = table["role"].map(roles.index)
    table["size"] = table["difference"].abs()
    if table["version"].nunique() > 1:
        table = table[table["score"] == score].assign(label=table["version"])
        return table.head(MAX_ROWS)
    names = table["score"].str.removeprefix("human_").map(display_name)
    table = table.assign(label=names)
    table = table.sort_values(["order", "size"], ascending=[True, False], kind="stable")
    describing = (table["role"] == "describes").cumsum()
    keep = (table["role"] != "describes") | (describing <= MAX_DESCRIBING)
    return table[keep].head(MAX_ROWS)


def difference_plot(rows: pd.DataFrame, width: float = WIDE) -> Figure:
    """The differences of `picture_rows` with their intervals, ratings first.

    Args:
        width: in inches, `WIDE` or `NARROW`.

    >>> row = {"label": "fun", "difference": -0.5, "low": -0.8, "high": -0.2, "role": "rating",
    ...        "version": "B", "against": "A", "score": "human_fun"}
    >>> difference_plot(pd.DataFrame([row])).get_label()
    'Differences from A in standard deviations, with 95 % intervals. fun: -0.50 (-0.80 to -0.20).'
    """
    styles = {
        "rating": ("C0", "o", "people's ratings"),
        "may decide": ("C2", "s", "metrics that agree with raters of public corpora"),
        "describes": ("0.5", "D", "metrics that only describe"),
    }
    height = 1.0 + 0.34 * len(rows)
    if width < WIDE:
        # A row for each role in the legend, and two lines for a long label.
        height = 1.0 + 0.2 * rows["role"].nunique() + 0.44 * len(rows)
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.axvline(0, color="0.3", linewidth=1)
    for role, (color, marker, meaning) in styles.items():
        of_role = rows[rows["role"] == role]
        if of_role.empty:
            continue
        positions = [rows.index.get_loc(label) for label in of_role.index]
        axes.hlines(
            positions, of_role["low"], of_role["high"], color=color, linewidth=2.5
        )
        axes.plot(
            of_role["difference"],
            positions,
            marker,
            color=color,
            markersize=7,
            label=meaning,
        )
    labels = rows["label"].map(strip_symbols)
    if width < WIDE:
        labels = labels.map(lambda label: textwrap.fill(label, 18))
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    against = strip_symbols(rows["against"].iloc[0])
    several = rows["version"].nunique() > 1
    score = display_name(rows["score"].iloc[0].removeprefix("human_"))
    what = f" in {score}" if several else ""
    version = "a version" if several else strip_symbols(rows["version"].iloc[0])
    unit = [
        f"{version} minus {against}{what}",
        "(standard deviations; right of 0 is higher)",
    ]
    axes.set_xlabel("\n".join(textwrap.fill(line, int(12 * width)) for line in unit))
    figure.legend(
        loc="outside upper left",
        ncols=3 if width == WIDE else 1,
        fontsize="small",
        frameon=False,
        columnspacing=1,
        handletextpad=0.3,
    )

    texts = []
    for row in rows.to_dict("records"):
        interval = f"{row['low']:+.2f} to {row['high']:+.2f}"
        texts.append(f"{row['label']}: {row['difference']:+.2f} ({interval})")
    figure.set_label(
        f"Differences from {rows['against'].iloc[0]}{what} in standard deviations, with 95 % "
        f"intervals. {'; '.join(texts)}."
    )
    return figure
