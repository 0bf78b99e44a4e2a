"""Replies in a notebook: a table that sorts and filters, and opens the dialog behind each row."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from lib.report.chat import WORD, ChatLine, chat_until
from lib.report.dialogs import leading_rating
from lib.report.page import metric_title, template
from lib.report.pairs import CONTEXT_SHOWN, score_values
from lib.report.verdict import KEY

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Exploration:
    """Replies to look at; a notebook shows them as a table, of which each row opens a dialog.

    In JupyterLab and on a page the table sorts by a click on a header and filters as you type, with
    no network. Where no script runs, as on a site that shows notebooks, it keeps its order and its
    dialogs still open.

    Attributes:
        table: a row per reply: system, dialog, turn, reply, then ratings and scores, and
            disagreement. Its index is that of the turn table.
        chats: the dialog up to each reply, which is marked.
        hidden: how many utterances before those of each chat are not shown.
        caption: how many replies there are, and in which order.
    """

    table: pd.DataFrame
    chats: list[list[ChatLine]]
    hidden: list[int]
    caption: str

    def __repr__(self) -> str:
        """The first ten rows as text."""
        return f"{self.caption}\n{self.table.head(10)}"

    def _repr_html_(self) -> str:
        scripts = [
            (HERE / name).read_text("utf-8") for name in ("sorting.js", "filter.js")
        ]
        numbers = self.table.drop(columns=["dialog", "turn", "reply"])
        rows = zip(numbers.to_dict("records"), self.chats, strict=True)
        places = self.table[["dialog", "turn", "reply"]].assign(hidden=self.hidden)
        return template("explore.html").render(
            caption=self.caption,
            columns=list(numbers.columns),
            rows=list(rows),
            places=places.to_dict("records"),
            style=Markup((HERE / "explore.css").read_text("utf-8")),
            script=Markup("\n".join(scripts)),
        )


def explore(
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    *,
    metric: str = "",
    rating: str = "",
    words: Collection[str] = (),
    limit: int = 200,
) -> Exploration:
    """Look at replies, those first on which people and a metric disagree most.

    The disagreement is the share of the replies that the metric ranks below a reply, minus the
    share that people rank below it (ties count half): near 1 where the metric ranks a reply first
    and people last, near -1 the other way round. Replies without a rating or a score come last.

    Args:
        turns: turn table.
        scores: metrics to show, on the same index.
        metric: the one to compare with people; by default the first column of `scores`.
        rating: by default the overall rating, else the first (`dialogs.leading_rating`).
        words: of a lexicon, to underline in the replies.
        limit: rows to show.

    Raises:
        KeyError: no such metric or rating.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": list("123"), "turn": 1,
    ...     "context": [["Hi"]] * 3, "response": ["Oh no", "So?", "Yes"],
    ...     "human_fun": [1.0, 2.0, 3.0]})
    >>> looked_at = explore(turns, pd.DataFrame({"length": [2.0, 1.0, 1.0]}))
    >>> looked_at.table[["reply", "disagreement"]].round(2).values.tolist()
    [['Oh no', 0.67], ['Yes', -0.5], ['So?', -0.17]]
    """
    metric = metric or next(iter(scores), "")
    rating = rating or leading_rating(turns)
    ratings = turns.filter(regex="^human_").dropna(axis=1, how="all")
    values = ratings.join(scores)
    table = turns[["system", "dialog", "turn"]].assign(reply=turns["response"])
    table = table.join(values)
    order = "in the order of the file"
    if metric and rating:
        by_metric = score_values(turns, scores, metric)
        by_people = score_values(turns, scores, rating)
        both = by_metric.notna() & by_people.notna()
        ranks = by_metric[both].rank(pct=True) - by_people[both].rank(pct=True)
        table["disagreement"] = ranks
        largest = ranks.abs().sort_values(ascending=False, kind="stable").index
        table = table.loc[[*largest, *table.index.difference(largest, sort=False)]]
        names = f"{metric_title(rating)} and {metric_title(metric)}"
        order = f"those first on which {names} disagree most"
    listed = table.head(limit)
    lexicon = {word.lower() for word in words}

    def seen(text: str) -> set[str]:
        return lexicon.intersection(WORD.findall(text.lower()))

    rows_of = turns.groupby(KEY, sort=False).groups
    chats = []
    for label in listed.index:
        replies = turns.loc[rows_of[tuple(turns.loc[label, KEY])]]
        chats.append(
            chat_until(replies, label, values, around=CONTEXT_SHOWN, seen=seen)
        )
    n_before = turns.loc[listed.index, "context"].map(len)
    hidden = [n + 1 - len(chat) for n, chat in zip(n_before, chats, strict=True)]
    caption = f"{len(listed):,} of {len(turns):,} replies, {order}"
    return Exploration(listed, chats, hidden, caption)
