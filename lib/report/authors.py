"""Who wrote the versions of a file, and what a correlation with its ratings is without people."""

import re

import pandas as pd

from lib.analysis import authorship
from lib.data.corpora import label_authors
from lib.report.dialogs import leading_rating
from lib.report.validity import MIN_SCORED, share_scored
from lib.report.verdict import bootstrap_units

# A version is read as people's where its name has one of the first words, and no others than these.
PEOPLE = {
    "human",
    "humans",
    "person",
    "people",
    "annotator",
    "annotators",
    "truth",
    "gold",
}
BESIDE_PEOPLE = {
    "ground",
    "original",
    "new",
    "generated",
    "written",
    "by",
    "reference",
    "response",
    "responses",
    "reply",
    "replies",
}


def find_people(turns: pd.DataFrame) -> list[str]:
    """The versions whose replies people wrote: by a column `written_by`, else by their names.

    >>> find_people(pd.DataFrame({"system": ["bot 2", "Human", "ground_truth", "human-like"]}))
    ['Human', 'ground_truth']
    """
    if "written_by" in turns:
        by_person = turns["written_by"] == "person"
        return turns.loc[by_person, "system"].unique().tolist()
    people = []
    for version in turns["system"].unique():
        words = set(re.findall(r"[^\W\d_]+", version.lower()))
        if words & PEOPLE and words <= PEOPLE | BESIDE_PEOPLE:
            people.append(version)
    return people


def rating_correlations_by_author(
    turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
    """Each metric and one rating of the file: over all replies, machines' only, within contexts.

    The three rows of `authorship.correlations_by_author` for the rating and the metrics of
    `validity.correlations_with_ratings`. "machines only" is there where some versions are people's
    (`find_people`), "within context" where versions replied to the same contexts: replies of
    dialogs with the same opening (`verdict.bootstrap_units`) and the same earlier utterances. Units
    are resampled.

    Returns:
        Columns rating, metric, over ("all", "machines only" or "within context"), value, low, high,
        n, clusters; metrics by their correlation over all replies. Empty without ratings, with one
        version, and where neither of the two rows has a value.

    >>> turns = pd.DataFrame({"system": ["old", "new"] * 3, "agent": "x", "dialog": list("abcdef"),
    ...     "turn": 1, "context": [["A?"], ["A?"], ["B?"], ["B?"], ["C?"], ["C?"]],
    ...     "human_overall": [1.0, 2.0, 4.0, 5.0, 2.0, 4.0]})
    >>> words = pd.DataFrame({"length": [4.0, 6.0, 1.0, 3.0, 2.0, 5.0]})
    >>> table = rating_correlations_by_author(turns, words)
    >>> table[["over", "value"]].round(2).values.tolist()
    [['all', -0.26], ['within context', 1.0]]
    """
    columns = ["rating", "metric", "over", "value", "low", "high", "n", "clusters"]
    rating = leading_rating(turns)
    if not rating or turns["system"].nunique() < 2:
        return pd.DataFrame(columns=columns)
    people = find_people(turns)
    units = label_authors(turns.filter(["system", "written_by"]), people)
    # A reply without a context has one of its own: it answers the same as no other reply.
    context = turns["context"].map("\n".join).str.strip().str.casefold()
    context = context.where(context != "", turns.index.astype("str"))
    units = units.assign(
        dialog=bootstrap_units(turns), context=context.map(lambda text: [text])
    )
    scores = scores[scores.columns[share_scored(scores) >= MIN_SCORED]]
    if scores.columns.empty:
        return pd.DataFrame(columns=columns)
    table = authorship.metrics_by_author(scores, turns[rating], units, seed=seed)
    table = table.assign(rating=rating).rename(columns={"replies": "over"})
    table = table.dropna(subset="value")
    if not people:
        table = table[table["over"] != authorship.MACHINES]
    if (table["over"] == authorship.ALL).all():
        return pd.DataFrame(columns=columns)
    of_all = table[table["over"] == authorship.ALL].set_index("metric")["value"]
    table = table.assign(of_all=table["metric"].map(of_all))
    table = table.sort_values(
        "of_all", ascending=False, kind="stable", ignore_index=True
    )
    return table[columns]
