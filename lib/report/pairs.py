"""From a number to the dialogs behind it: replies in pairs, and whole dialogs to look at."""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from lib.report.verdict import KEY, MAX_PAIRED, bootstrap_units

MAX_PAIRS = 500  # pairs that a page lists
# Utterances of a context that a pair or a dialog shows, the last ones.
CONTEXT_SHOWN = 6


class ReplyPairs(NamedTuple):
    """Replies of two versions to the same context.

    Attributes:
        table: one row per pair, in the order of `reply_pairs`: `version`, `dialog`, `turn`,
            `dialog_against` (of the first version), `context`, `reply_against`, `reply`,
            `issues_against`, `issues`, `value_against`, `value`, `change`.
        score: the rating or metric that orders them; "" where nothing decides, and the pairs stand
            in the order of the file.
        total: pairs with different replies, listed or not.
        identical: pairs in which both versions said the same.
        tally: how the scores of all pairs compare, those with the same reply too (`pair_tally`).
    """

    table: pd.DataFrame
    score: str
    total: int
    identical: int
    tally: pd.DataFrame


def reply_pairs(  # noqa: PLR0913 (the last three are keywords)
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    score: str = "",
    *,
    directions: Mapping[str, int] | None = None,
    issues: pd.Series | None = None,
    limit: int = MAX_PAIRS,
) -> ReplyPairs:
    """Pair the replies of each version with those of the first one to the same context.

    The pairs that go with the verdict come first: of a version that is worse, the largest losses;
    of one that is better, the largest gains; else the largest changes.

    Contexts are the same where all their utterances are, apart from case and white space at the
    ends. A context that a version answered more than ten times (a greeting) gives no pairs; of
    fewer, the first reply is paired with the first, and so on.

    Args:
        turns: turn table; each `system` is a version.
        scores: metrics on the same index.
        score: a rating (`human_...`) or a metric that orders the pairs.
        directions: 1 for a version that is better than the first, -1 for one that is worse.
        issues: names of the issues that rules found, on the index of `turns`; "" where none.
        limit: pairs to list.

    >>> turns = pd.DataFrame({"system": ["old", "new"], "dialog": ["1", "2"], "turn": 1,
    ...     "context": [["Tea?"], ["tea? "]], "response": ["No.", "Yes, please."]})
    >>> pairs = reply_pairs(turns, pd.DataFrame({"length": [1.0, 2.0]}), "length")
    >>> pairs.table[["reply_against", "reply", "change"]].values.tolist()
    [['No.', 'Yes, please.', 1.0]]
    """
    columns = ["system", "dialog", "turn", "context", "response"]
    replies = turns[columns].assign(value=score_values(turns, scores, score))
    replies["issues"] = "" if issues is None else issues
    context = replies["context"].map(_normalised)
    replies = replies.assign(key=context)[context != ""]
    same = [replies["system"], replies["key"]]
    times = replies.groupby(same)["turn"].transform("size")
    replies = replies.assign(number=replies.groupby(same).cumcount())
    replies = replies[times <= MAX_PAIRED]

    first = turns["system"].iloc[0]
    of_first = replies["system"] == first
    pairs = replies[~of_first].merge(
        replies.loc[
            of_first, ["key", "number", "dialog", "response", "value", "issues"]
        ],
        on=["key", "number"],
        suffixes=("", "_against"),
    )
    texts = pairs[["response", "response_against"]].astype("str")
    texts = texts.apply(lambda column: column.str.split().str.join(" "))
    differs = texts["response"] != texts["response_against"]
    identical = int((~differs).sum())
    names = {
        "system": "version",
        "response": "reply",
        "response_against": "reply_against",
    }
    pairs = pairs.rename(columns=names)
    pairs["change"] = pairs["value"] - pairs["value_against"]
    tally = pair_tally(pairs, first)
    pairs = pairs[differs]
    change = pairs["change"]
    if score:
        direction = pairs["version"].map(directions or {}).astype(float)
        place = (change * direction).where(direction.notna(), change.abs())
        pairs = pairs.loc[place.sort_values(ascending=False, kind="stable").index]
    table = pairs.head(limit).reset_index(drop=True)
    columns = ["version", "dialog", "turn", "dialog_against", "context"]
    columns += ["reply_against", "reply", "issues_against", "issues"]
    columns += ["value_against", "value", "change"]
    return ReplyPairs(
        table=table[columns],
        score=score,
        total=len(pairs),
        identical=identical,
        tally=tally,
    )


def pair_tally(pairs: pd.DataFrame, against: str) -> pd.DataFrame:
    """In how many reply pairs each version has the lower, the higher, or the same score.

    Args:
        pairs: all pairs, also those with the same reply, as in `ReplyPairs.table`.
        against: the first version.

    Returns:
        A row per version: version, against, pairs, lower, higher, equal, missing (a reply of the
        pair has no score).

    >>> pairs = pd.DataFrame({"version": "B", "change": [-1.0, 2.0, 3.0, 0.0, float("nan")]})
    >>> pair_tally(pairs, "A").values.tolist()
    [['B', 'A', 5, 1, 2, 1, 1]]
    """
    rows = []
    for version, change in pairs.groupby("version", sort=False)["change"]:
        rows.append(
            {
                "version": version,
                "against": against,
                "pairs": len(change),
                "lower": int((change < 0).sum()),
                "higher": int((change > 0).sum()),
                "equal": int((change == 0).sum()),
                "missing": int(change.isna().sum()),
            }
        )
    columns = ["version", "against", "pairs", "lower", "higher", "equal", "missing"]
    return pd.DataFrame(rows, columns=columns)


def dialog_units(turns: pd.DataFrame) -> pd.DataFrame:
    """How many dialogs each version has, and how many units the intervals count.

    Returns:
        version, dialogs, units (`verdict.bootstrap_units`), paired (units that the first version
        has too); a last row, "all", where there are several versions.

    >>> turns = pd.DataFrame({"system": ["A", "B", "B"], "agent": "x", "dialog": ["1", "2", "3"],
    ...                       "turn": 1, "context": [["Tea?"], ["tea? "], ["Rain?"]]})
    >>> dialog_units(turns).values.tolist()
    [['A', 1, 1, 1], ['B', 2, 2, 1], ['all', 3, 2, 1]]
    """
    dialogs = turns[KEY].assign(unit=bootstrap_units(turns)).drop_duplicates()
    first = dialogs["system"].iloc[0]
    of_first = set(dialogs.loc[dialogs["system"] == first, "unit"])
    of_others = set(dialogs.loc[dialogs["system"] != first, "unit"])
    rows = []
    for version, group in dialogs.groupby("system", sort=False):
        others = of_others if version == first else of_first
        units = set(group["unit"])
        rows.append(
            {
                "version": version,
                "dialogs": len(group),
                "units": len(units),
                "paired": len(units & others),
            }
        )
    if len(rows) > 1:
        everything = {"version": "all", "dialogs": len(dialogs)}
        everything |= {"units": dialogs["unit"].nunique()}
        rows.append(everything | {"paired": len(of_first & of_others)})
    return pd.DataFrame(rows)


def paired_dialogs(turns: pd.DataFrame, limit: int = MAX_PAIRS) -> pd.DataFrame:
    """Which dialogs are compared in pairs: a row per opening that a version shares with the first.

    Returns:
        version, first_dialogs (ids of the first version's dialogs), paired_dialogs (of this
        version); at most `limit` rows.

    >>> turns = pd.DataFrame({"system": ["A", "B", "B"], "agent": "x", "dialog": ["1", "2", "3"],
    ...                       "turn": 1, "context": [["Tea?"], ["tea? "], ["Rain?"]]})
    >>> paired_dialogs(turns).values.tolist()
    [['B', '1', '2']]
    """
    first, *others = turns["system"].unique()
    rows = []
    for version in others:
        both = turns[turns["system"].isin([first, version])]
        dialogs = both[KEY].assign(unit=bootstrap_units(both)).drop_duplicates()
        for _, group in dialogs.groupby("unit", sort=False):
            ids = group.groupby("system")["dialog"].agg(", ".join)
            if len(ids) == 2 and len(rows) < limit:
                rows.append((version, ids[first], ids[version]))
    return pd.DataFrame(rows, columns=["version", "first_dialogs", "paired_dialogs"])


def typical_and_worst(
    turns: pd.DataFrame, scores: pd.DataFrame, score: str
) -> pd.DataFrame:
    """Two dialogs of each version: the one nearest to its typical value, and the lowest one.

    A dialog's value is the mean over its replies; the typical value of a version is the median of
    its dialogs.

    Args:
        turns: turn table; each `system` is a version.
        scores: metrics on the same index.
        score: a rating (`human_...`) or a metric of which higher is better.

    Returns:
        Columns version, which ("typical" or "lowest"), agent, dialog, value, typical_value,
        replies; versions in the order of the file. Dialogs without a value are left out.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": list("123"), "turn": 1,
    ...     "context": [[]] * 3, "response": list("xyz"), "human_fun": [1.0, 3.0, 4.0]})
    >>> typical_and_worst(turns, turns[[]], "human_fun")[["which", "dialog"]].values.tolist()
    [['typical', '2'], ['lowest', '1']]
    """
    values = score_values(turns, scores, score)
    dialogs = turns[KEY].assign(value=values).groupby(KEY, sort=False)["value"]
    dialogs = dialogs.agg(value="mean", replies="size").dropna().reset_index()
    rows = []
    for version, group in dialogs.groupby("system", sort=False):
        median = group["value"].median()
        nearest = (group["value"] - median).abs().idxmin()
        examples = {"typical": nearest, "lowest": group["value"].idxmin()}
        for which, row in examples.items():
            dialog = group.loc[row].to_dict() | {"typical_value": median}
            rows.append({"version": version, "which": which, **dialog})
    columns = ["version", "which", "agent", "dialog", "value", "typical_value"]
    return pd.DataFrame(rows, columns=[*columns, "replies"])


def score_values(turns: pd.DataFrame, scores: pd.DataFrame, score: str) -> pd.Series:
    """A rating of the file or a metric by its name; NaN everywhere for "".

    >>> score_values(pd.DataFrame({"human_fun": [2]}), pd.DataFrame(), "human_fun").tolist()
    [2.0]
    """
    if not score:
        return pd.Series(float("nan"), turns.index)
    table = scores if score in scores else turns
    return table[score].astype(float)


def _normalised(context: list[str]) -> str:
    return "\n".join(text.strip() for text in context).casefold()
