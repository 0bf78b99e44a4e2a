"""What a loader makes of a corpus: its tables, its single ratings, and an account of every row."""

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from lib.data.downloads import registry
from lib.data.errors import DataError
from lib.data.turn_table import turn_table

LOADERS: dict[str, Callable[..., dict]] = {}


def loader(name: str) -> Callable:
    """Register a function as the loader of a corpus, by its name in `data/corpora.json`.

    The function takes the paths of the files that stand there, in this order, and returns what
    `rated` returns. With a "*" in the name it is the loader of all corpora whose name fits, and
    takes the name first.
    """

    def register(function: Callable[..., dict]) -> Callable[..., dict]:
        for one in fnmatch.filter(registry()["corpora"], name):
            LOADERS[one] = partial(function, one) if "*" in name else function
        return function

    return register


@dataclass(frozen=True)
class Corpus:
    """A loaded corpus.

    Attributes:
        name: its name in `available()`.
        level: what was rated, "turn" or "dialog".
        turns: the turn table, or None.
        dialogs: one row per dialog with `utterances` and `speakers`, or None.
        ratings: one row per single judgement: `item` (row position in the table of `level`),
            `annotator`, `dimension`, `rating`; empty where only means were published.
        report: rows read, kept and excluded, with reasons.
        info: title, licence, source, citation and `synthetic`.
        dialog_ratings: judgements of `dialogs`, where a corpus of level "turn" has them as well.
    """

    name: str
    level: str
    turns: pd.DataFrame | None
    dialogs: pd.DataFrame | None
    ratings: pd.DataFrame
    report: pd.DataFrame
    info: Mapping[str, Any] = field(default_factory=dict)
    dialog_ratings: pd.DataFrame | None = None

    def __repr__(self) -> str:
        systems = self.items["system"].nunique()
        label = ", synthetic" if self.info.get("synthetic") else ""
        return (
            f"<Corpus {self.name}{label}: {len(self.items)} rated {self.level}s, "
            f"{systems} systems, {len(self.ratings)} judgements>"
        )

    @property
    def items(self) -> pd.DataFrame:
        """The table that carries the ratings: `turns` or `dialogs`, by `level`."""
        return self.turns if self.level == "turn" else self.dialogs

    def table(self, level: str, *columns: str, single_ratings: bool = False) -> pd.DataFrame:
        """Return `turns` or `dialogs`, sure to hold what the caller needs.

        Args:
            level: "turn" or "dialog".
            columns: columns that must hold a value, or a list that is not empty, in some row.
            single_ratings: whether the single judgements must be there, not only their means.

        Raises:
            DataError: with what the corpus holds instead.

        >>> from lib.data import load
        >>> len(load("sample_bots").table("turn", "human_overall", "reference"))
        151
        >>> load("sample_bots").table("turn", "human_funny")
        Traceback (most recent call last):
        ...
        lib.data.errors.DataError: sample_bots, column 'human_funny': ...
        """
        table, other = self.turns if level == "turn" else self.dialogs, "take another corpus"
        if table is None:
            raise DataError(f"has no table of single {level}s", file=self.name, fix=other)
        for column in columns:
            cells = table.get(column, pd.Series(dtype=object)).dropna()
            if cells.astype("str").isin(["", "[]"]).all():
                fix = f"{other}, or one of {', '.join(table.filter(like='human_'))}"
                problem = "this corpus has no such column, or nothing in it"
                raise DataError(problem, file=self.name, column=column, fix=fix)
        if single_ratings and self.ratings.empty:
            raise DataError("only mean ratings are published", file=self.name, fix=other)
        return table


def rated(
    rows: Sequence[Mapping[str, Any]],
    *,
    unit: str = "responses",
    note: str = "",
    excluded: Mapping[str, int] | None = None,
    ratings: Iterable[tuple] | None = None,
    scores: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """Put the parts of a corpus together: its table with mean ratings, its ratings, its account.

    Texts lose white space at their ends; `agent` is the system and `turn` the number of earlier
    utterances where a row does not say otherwise.

    Args:
        rows: one mapping per rated response or dialog, in the columns of the turn table or of the
            dialog table (system, agent, dialog, utterances, speakers). `ratings` in it holds the
            single judgements, {dimension: {annotator: rating}}, or {dimension: [ratings]} where
            annotators are not named. A rating left empty or marked "N/A" is excluded and counted.
        unit: "responses", or "dialogs" for a dialog table.
        note: what a reader should know about the rows that were kept.
        excluded: how many further items were read but are not in `rows`, by reason.
        ratings: judgements (position in `rows`, annotator, dimension, rating), where the order of
            the file is not that of the rows.
        scores: columns to add, on the same rows.

    Returns:
        `turns` or `dialogs`, `ratings` and `report`, as `Corpus` holds them.

    >>> row = {"system": "A", "dialog": "d", "context": ["Hey"], "response": "Hi"}
    >>> parts = rated([row | {"ratings": {"Overall": [4, "N/A"]}}])
    >>> parts["turns"][["turn", "human_overall"]].values.tolist()
    [[1.0, 4.0]]
    >>> parts["report"]["reasons"].tolist()
    ['', '1 marked N/A by the annotator']
    """
    given = _judgements(rows) if ratings is None else ratings
    dimensions = dict.fromkeys(snake(name) for row in rows for name in row.get("ratings", ()))
    single, means, line = judged(given, len(rows), dimensions)
    rows = [_cleaned(row) for row in rows]
    kind, shape = ("turns", turn_table) if unit == "responses" else ("dialogs", pd.DataFrame)
    table = pd.concat([shape(rows), means, scores], axis=1)
    lines = [account(unit, len(rows), excluded, note), *[line][: len(single)]]
    return {kind: table, "ratings": single, "report": pd.DataFrame(lines)}


def _judgements(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple]:
    for item, row in enumerate(rows):
        for name, values in row.get("ratings", {}).items():
            if isinstance(values, list):
                values = {f"annotator{n}": value for n, value in enumerate(values, start=1)}
            for annotator, rating in values.items():
                yield item, annotator, snake(name), rating


def _cleaned(row: Mapping[str, Any]) -> dict[str, Any]:
    first = {"system": row["system"], "agent": row["system"], "dialog": row["dialog"]}
    row = first | {name: value for name, value in row.items() if name != "ratings"}
    for name in {"context", "reference", "utterances"} & set(row):
        row[name] = [text.strip() for text in row[name]]
    if "response" in row:
        row["response"] = row["response"].strip()
        row.setdefault("turn", len(row.get("context", [])))
    return row


def judged(
    judgements: Iterable | pd.DataFrame, items: int, dimensions=(), unit: str = "ratings"
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Split judgements into ratings and what was excluded, and average the ratings.

    Args:
        judgements: item, annotator, dimension, rating, in this order or as columns.
        items: how many items there are.
        dimensions: all that were rated; empty: those in the judgements.
        unit: what the account calls them.

    Returns:
        The ratings; `human_<dimension>`, the mean over annotators of each item, NaN if unrated; and
        the line of the account.
    """
    table = pd.DataFrame(judgements, columns=["item", "annotator", "dimension", "rating"])
    text = table["rating"].fillna("").astype("str").str.strip().str.upper()
    marked, empty = text.str.startswith("N/A"), text == ""
    excluded = {"marked N/A by the annotator": sum(marked), "left empty": sum(empty)}
    types = {"item": "int64", "annotator": "str", "dimension": "str", "rating": "float64"}
    kept = table[~(marked | empty)].reset_index(drop=True).astype(types)
    wide = kept.groupby(["item", "dimension"], sort=False)["rating"].mean().unstack()
    names = list(dimensions) or list(table["dimension"].unique())
    means = wide.reindex(index=range(items), columns=names).astype("float64")
    means = means.add_prefix("human_").rename_axis(index=None, columns=None)
    return kept, means, account(unit, len(kept), excluded)


def account(
    unit: str, kept: int, excluded: Mapping[str, int] | None = None, note: str = ""
) -> dict[str, Any]:
    """Return one line of an account: so many were read, kept and excluded, and why.

    >>> account("dialogs", 2, {"with the control agent": 1})["read"]
    3
    """
    excluded = {reason: count for reason, count in (excluded or {}).items() if count}
    lost = sum(excluded.values())
    reasons = "; ".join(f"{count} {reason}" for reason, count in excluded.items())
    return {"unit": unit, "read": kept + lost, "kept": kept, "excluded": lost,
            "reasons": reasons, "notes": note}  # fmt: skip


def with_report(table: pd.DataFrame, *lines: dict[str, Any]) -> pd.DataFrame:
    """Return a table that has no ratings with its account in `attrs`; see `read_report`."""
    table.attrs["report"] = list(lines)
    return table


def snake(name: str) -> str:
    """Write a dimension's name in lower case with underscores.

    >>> snake("Maintains Context")
    'maintains_context'
    """
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
