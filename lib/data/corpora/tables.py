"""What a loader returns: tables, one row per single rating, and an account of every row read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import rating_cell

RATING_COLUMNS = ["item", "annotator", "dimension", "rating"]


@dataclass(frozen=True)
class Corpus:
    """A loaded corpus.

    `level` is what was rated ("turn" or "dialog"). `turns` and `dialogs` are the tables of
    `lib.data.dialogues`, or None. `ratings` has one row per single judgement: `item` (row position in
    the table of `level`), `annotator`, `dimension`, `rating`; it is empty where only means were
    published. A corpus rated at both levels has `level` "turn" and its dialogs' judgements in
    `dialog_ratings` (`item` = row position in `dialogs`). `report` counts the rows read, kept and
    set aside, with reasons. `info` holds title, licence, source, citation and `synthetic`.
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
        """`turns` or `dialogs`, sure to hold what the caller needs.

        Parameters
        ----------
        level : "turn" or "dialog".
        columns : columns that must be there, with a value (or a non-empty list) in some row.
        single_ratings : the single judgements must be there too, not only their means.

        Raises `DataError` with what the corpus does hold: better there than a `KeyError` far below.

        >>> from lib.data import corpora
        >>> len(corpora.load("sample_bots").table("turn", "human_overall", "reference"))
        151
        >>> corpora.load("sample_bots").table("turn", "human_funny")
        Traceback (most recent call last):
        ...
        lib.data.dialogues.errors.DataError: sample_bots, column 'human_funny': this corpus has no ...
        """
        table = self.turns if level == "turn" else self.dialogs
        if table is None:
            other = "dialog" if level == "turn" else "turn"
            raise DataError(
                f"this corpus has no table of single {level}s, only of {other}s",
                file=self.name,
                fix=f"take a {level}-level corpus: see corpora.available()",
            )
        for column in columns:
            if column not in table or not table[column].map(_filled).any():
                raise DataError(
                    "this corpus has no such column, or nothing in it",
                    file=self.name,
                    column=column,
                    fix=self._instead(table, column),
                )
        if single_ratings and self.ratings.empty:
            raise DataError(
                "only mean ratings are published, no single judgements",
                file=self.name,
                fix="take a corpus that keeps each annotator, such as usr_topical or fed_turn",
            )
        return table

    def _instead(self, table: pd.DataFrame, column: str) -> str:
        rated = [name for name in table if name.startswith("human_") and table[name].notna().any()]
        if column.startswith("human_") and rated:
            return f"take one of its ratings: {', '.join(rated)}; or another corpus"
        return "take another corpus: see corpora.available()"


def _filled(cell) -> bool:
    """Whether a cell holds something: neither missing nor an empty list or text."""
    return bool(len(cell)) if isinstance(cell, list | str) else bool(pd.notna(cell))


class Account:
    """Counts what a loader reads and sets aside, so that nothing is lost in silence."""

    def __init__(self) -> None:
        self._read: dict[str, int] = {}
        self._aside: dict[str, dict[str, int]] = {}
        self._notes: dict[str, list[str]] = {}

    def read(self, unit: str, count: int = 1) -> None:
        """`count` more rows of `unit` (for instance "responses") were read."""
        self._read[unit] = self._read.get(unit, 0) + count

    def set_aside(self, unit: str, reason: str, count: int = 1) -> None:
        """`count` rows that were read are not in the result, for `reason`."""
        if count:
            reasons = self._aside.setdefault(unit, {})
            reasons[reason] = reasons.get(reason, 0) + count

    def note(self, unit: str, text: str) -> None:
        """Something a reader should know about rows that were kept; an empty text is nothing."""
        if text:
            self._notes.setdefault(unit, []).append(text)

    def table(self, kept: Mapping[str, int]) -> pd.DataFrame:
        """One row per unit; raises `DataError` if read is not kept plus set aside."""
        rows = []
        for unit, count in sorted(self._read.items(), key=lambda pair: "rating" in pair[0]):
            aside = self._aside.get(unit, {})
            if count != kept[unit] + sum(aside.values()):
                raise DataError(
                    f"{count} {unit} were read but {kept[unit]} kept and {aside} set aside"
                )
            reasons = "; ".join(f"{number} {reason}" for reason, number in aside.items())
            notes = "; ".join(self._notes.get(unit, []))
            rows.append([unit, count, kept[unit], sum(aside.values()), reasons, notes])
        return pd.DataFrame(rows, columns=["unit", "read", "kept", "set_aside", "reasons", "notes"])


class Ratings:
    """Collects single judgements, checking each against its scale."""

    def __init__(self, account: Account, file, unit: str = "ratings") -> None:
        self._columns: list[list] = [[], [], [], []]
        self._dimensions: dict[str, None] = {}  # in order of appearance, also those without ratings
        self._account, self._file, self._unit = account, file, unit

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, item: int, annotator: str, dimension: str, value, scale, row=None) -> None:
        """One judgement of item `item`, read in file row `row` (the item's own if not given).

        An empty cell and text that starts with "N/A" are set aside and counted.
        """
        self._account.read(self._unit)
        self._dimensions[dimension] = None
        if value is None or isinstance(value, str):
            text = (value or "").strip().upper()
            if not text or text.startswith("N/A"):
                reason = "marked N/A by the annotator" if text else "left empty"
                self._account.set_aside(self._unit, reason)
                return
        row = item + 1 if row is None else row
        rating = rating_cell(value, file=self._file, row=row, column=dimension, scale=scale)
        for column, cell in zip(self._columns, [item, annotator, dimension, rating], strict=True):
            column.append(cell)

    def add_list(self, item: int, annotators, dimension: str, values, scale) -> None:
        """The judgements of several annotators of one item and dimension."""
        self._dimensions[dimension] = None
        if not isinstance(values, list) or len(values) != len(annotators):
            raise DataError(
                f"holds {values!r:.60}, not a list of {len(annotators)} ratings",
                file=self._file,
                row=item + 1,
                column=dimension,
            )
        for annotator, value in zip(annotators, values, strict=True):
            self.add(item, annotator, dimension, value, scale)

    def table(self) -> pd.DataFrame:
        """The long table: item, annotator, dimension, rating."""
        table = pd.DataFrame(dict(zip(RATING_COLUMNS, self._columns, strict=True)))
        return table.astype({"item": "int64", "rating": "float64"})

    def means(self, count: int) -> pd.DataFrame:
        """`human_<dimension>`: mean over annotators for items 0..count-1, NaN where none rated."""
        long = self.table()
        wide = long.groupby(["item", "dimension"], sort=False)["rating"].mean().unstack()
        order = list(self._dimensions)
        wide = wide.reindex(index=range(count), columns=order).astype("float64")
        wide.columns = [f"human_{name}" for name in order]
        return wide.reset_index(drop=True)


def no_ratings() -> pd.DataFrame:
    """An empty table of single judgements, for corpora that publish only means."""
    return pd.DataFrame(
        {"item": pd.Series(dtype="int64"), "annotator": pd.Series(dtype="str"),
         "dimension": pd.Series(dtype="str"), "rating": pd.Series(dtype="float64")}
    )  # fmt: skip


def snake(name: str) -> str:
    """A dimension's name in lower case with underscores.

    >>> snake("Maintains Context")
    'maintains_context'
    """
    words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
    return "_".join(words)


def join(table: pd.DataFrame, *columns: pd.DataFrame) -> pd.DataFrame:
    """A table with further columns beside it, row by row."""
    return pd.concat([table.reset_index(drop=True), *columns], axis=1)
