"""From a number to the dialogs behind it: replies in pairs, and whole dialogs to look at."""

from typing import NamedTuple

import pandas as pd

from lib.report.verdict import KEY, MAX_PAIRED

MAX_PAIRS = 500  # pairs that a page lists
# Utterances of a context that a pair or a dialog shows, the last ones.
CONTEXT_SHOWN = 6


class ReplyPairs(NamedTuple):
    """Replies of two versions to the same context.

    Attributes:
        table: one row per pair, the largest change of the score first: `version`, `dialog`, `turn`,
            `context`, `reply_against`, `reply`, `value_against`, `value`, `change`.
        score: the rating or metric that orders them; "" where nothing decides, and the pairs stand
            in the order of the file.
        total: pairs with different replies, listed or not.
        identical: pairs in which both versions said the same.
    """

    table: pd.DataFrame
    score: str
    total: int
    identical: int


def reply_pairs(
    turns: pd.DataFrame, scores: pd.DataFrame, score: str = "", limit: int = MAX_PAIRS
) -> ReplyPairs:
    """Pair the replies of each version with those of the first one to the same context.

    Contexts are the same where all their utterances are, apart from case and white space at the
    ends. A context that a version answered more than ten times (a greeting) gives no pairs; of
    fewer, the first reply is paired with the first, and so on.

    Args:
        turns: turn table; each `system` is a version.
        scores: metrics on the same index.
        score: a rating (`human_...`) or a metric that orders the pairs.
        limit: pairs to list.

    >>> turns = pd.DataFrame({"system": ["old", "new"], "dialog": ["1", "2"], "turn": 1,
    ...     "context": [["Tea?"], ["tea? "]], "response": ["No.", "Yes, please."]})
    >>> pairs = reply_pairs(turns, pd.DataFrame({"length": [1.0, 2.0]}), "length")
    >>> pairs.table[["reply_against", "reply", "change"]].values.tolist()
    [['No.', 'Yes, please.', 1.0]]
    """
    columns = ["system", "dialog", "turn", "context", "response"]
    replies = turns[columns].assign(value=score_values(turns, scores, score))
    context = replies["context"].map(_normalised)
    replies = replies.assign(key=context)[context != ""]
    same = [replies["system"], replies["key"]]
    times = replies.groupby(same)["turn"].transform("size")
    replies = replies.assign(number=replies.groupby(same).cumcount())
    replies = replies[times <= MAX_PAIRED]

    first = turns["system"].iloc[0]
    of_first = replies["system"] == first
    pairs = replies[~of_first].merge(
        replies.loc[of_first, ["key", "number", "response", "value"]],
        on=["key", "number"],
        suffixes=("", "_against"),
    )
    texts = pairs[["response", "response_against"]].astype("str")
    texts = texts.apply(lambda column: column.str.split().str.join(" "))
    differs = texts["response"] != texts["response_against"]
    identical = int((~differs).sum())
    pairs = pairs[differs]
    change = pairs["value"] - pairs["value_against"]
    pairs = pairs.assign(change=change)
    if score:
        order = change.abs().sort_values(ascending=False, kind="stable").index
        pairs = pairs.loc[order]
    names = {
        "system": "version",
        "response": "reply",
        "response_against": "reply_against",
    }
    table = pairs.rename(columns=names).head(limit).reset_index(drop=True)
    text_columns = ["version", "dialog", "turn", "context", "reply_against", "reply"]
    return ReplyPairs(
        table=table[[*text_columns, "value_against", "value", "change"]],
        score=score,
        total=len(pairs),
        identical=identical,
    )


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
