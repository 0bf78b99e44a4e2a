"""The turn table, one row per rated response: its columns and its checks.

Columns: `system`, `agent`, `dialog` (str), `turn` (int), `context`, `reference`, `fact` (lists of
str), `response` (str), then `human_<dimension>` (float, mean over annotators). Rated corpora also
say who wrote a reply: `written_by` is "person" or "machine", missing where they do not know.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.data.storage import DataError

LEVELS = ("system", "agent", "dialog")
KEY = [*LEVELS, "turn"]
COLUMNS = [*KEY, "context", "response", "reference", "fact"]
LISTS = ["context", "reference", "fact"]
Scale = tuple[float, float] | None

# Unicode categories of control and format characters (zero-width ones, byte order marks) and of
# white space.
INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")


class Check(NamedTuple):
    """One check of a table.

    Attributes:
        column: the column that is checked.
        failed: for each row, whether it fails.
        problem: what is wrong, with a place for the value in braces.
        fix: what to do about it.
    """

    column: str
    failed: Sequence[bool]
    problem: str
    fix: str


def is_blank(text: object) -> bool:
    r"""Whether a response, context utterance or reference is missing or has no visible character.

    A blank text has no score: every metric gives NaN for it, also where its model could score
    invisible characters. Punctuation and emoji are visible, so "..." is not blank.

    >>> [is_blank(text) for text in (None, float("nan"), "", " \n", "\x00\x07", "\u200b\ufeff")]
    [True, True, True, True, True, True]
    >>> [is_blank(text) for text in ("tea", "...", "🙂", "\x00 tea")]
    [False, False, False, False]
    """
    if not isinstance(text, str):
        return True
    return all(unicodedata.category(character) in INVISIBLE for character in text)


def turn_table(rows: pd.DataFrame | Sequence[Mapping]) -> pd.DataFrame:
    """A turn table from a frame or from one mapping per response.

    Missing lists are empty, a missing agent is the system, a missing turn is the number of
    utterances in the context; further columns come last.

    >>> turn_table([{"system": "A", "dialog": "d1", "context": ["Hi"], "response": "Hello"}])[
    ...     ["agent", "turn", "reference"]].values.tolist()
    [['A', 1, []]]
    """
    table = pd.DataFrame(rows)
    for name in LISTS:
        cells = table.get(name, [None] * len(table))
        table[name] = [[] if cell is None or cell is np.nan else cell for cell in cells]
    if "turn" not in table:
        table["turn"] = table["context"].map(len)
    return fill_agents(table, COLUMNS)


def fill_agents(table: pd.DataFrame, leading_columns: list[str]) -> pd.DataFrame:
    """Take the system as agent where none is named, and put the leading columns first."""
    agents = table.get("agent", table["system"]).fillna(table["system"])
    further_columns = table.columns.drop(leading_columns, errors="ignore")
    return table.assign(agent=agents)[[*leading_columns, *further_columns]]


def number_columns(table: pd.DataFrame) -> list[str]:
    """Names of the ratings and of the scores that came with a table.

    >>> number_columns(pd.DataFrame(columns=["response", "human_overall", "score_mine"]))
    ['human_overall', 'score_mine']
    """
    return [
        name for name in table.columns if str(name).startswith(("human_", "score_"))
    ]


def validate(
    turns: pd.DataFrame,
    *,
    file=None,
    scale: Scale = None,
    column_names: Mapping | None = None,
) -> None:
    """Check that a frame is a turn table.

    Checked: the types of the columns, half surrogates in texts, ratings that are finite numbers
    or NaN and on `scale`, and the unique key (system, agent, dialog, turn). An empty response is
    allowed: a system may answer with nothing, and each metric says how it scores that.

    Args:
        turns: a table of `turn_table`.
        file: where it came from, for the message.
        scale: (lowest, highest) of all ratings; None: no limits.
        column_names: from our column names to those of the file, for the message.

    Raises:
        DataError: for the first check that fails, with file, row and column, and what to do.

    >>> validate(turn_table([{"system": "A", "dialog": "d", "turn": 1, "response": "Hi"}]))
    >>> validate(turn_table([{"system": "A", "dialog": "d", "turn": -1, "response": "Hi"}]))
    Traceback (most recent call last):
        ...
    lib.data.storage.DataError: row 1, column 'turn': is -1, not a count of earlier utterances.
    What to do: put the number there, or leave the column out.
    """
    check_rows(turns, _checks(turns, scale), file, column_names)


def check_rows(
    table: pd.DataFrame,
    checks: Iterable[Check],
    file=None,
    column_names: Mapping | None = None,
) -> None:
    """Raise a `DataError` for the first row that fails one of the checks, taken in their order."""
    for column, failed, problem, fix in checks:
        failed_rows = np.flatnonzero(failed)
        if failed_rows.size == 0:
            continue
        row = int(failed_rows[0])
        value = list(table[column])[row]
        name_in_file = (column_names or {}).get(column, column)
        raise DataError(
            problem.format(value), file=file, row=row + 1, column=name_in_file, fix=fix
        )


def _checks(turns: pd.DataFrame, scale: Scale) -> Iterator[Check]:
    """The checks of a turn table; each may assume that those before it have passed."""
    text_fix = "put text there, in whole characters"
    for name in (*LEVELS, "response"):
        failed = [not _is_text(cell) for cell in turns[name]]
        yield Check(name, failed, problem="is {!r:.60}, not text", fix=text_fix)
    for name in LEVELS:
        failed = turns[name].map(is_blank)
        yield Check(
            name, failed, problem="is empty", fix="fill it in, or remove the row"
        )
    for name in LISTS:
        failed = [not _is_list_of_texts(cell) for cell in turns[name]]
        problem = "is {!r:.60}, not text or a whole list of texts"
        yield Check(name, failed, problem, fix=text_fix)
    yield Check(
        column="turn",
        failed=[not isinstance(turn, int) or turn < 0 for turn in turns["turn"]],
        problem="is {!r:.60}, not a count of earlier utterances",
        fix="put the number there, or leave the column out",
    )
    for name in number_columns(turns):
        kind = "rating" if name.startswith("human_") else "score"
        failed = [not _is_number(cell) for cell in turns[name]]
        problem = kind + " is {!r:.60}, not a number"
        yield Check(
            name, failed, problem, fix="put a number there, with a point for decimals"
        )
    low, high = scale or (-math.inf, math.inf)
    for name in turns.filter(regex="^human_"):
        failed = turns[name].lt(low) | turns[name].gt(high)
        problem = f"rating {{:g}} is outside the scale {low:g} to {high:g}"
        fix = "correct the rating, or load the file with its own scale"
        yield Check(name, failed, problem, fix=fix)
    yield Check(
        column="turn",
        failed=turns.duplicated(KEY),
        problem="is {!r}, but an earlier row has the same system, agent, dialog and turn",
        fix="give each response its own dialog and turn, or remove the repeated row",
    )


def _is_text(cell: object) -> bool:
    return isinstance(cell, str) and (
        cell.isascii() or not re.search("[\ud800-\udfff]", cell)
    )


def _is_list_of_texts(cell: object) -> bool:
    return isinstance(cell, list) and all(map(_is_text, cell))


def _is_number(cell: object) -> bool:
    return (
        isinstance(cell, int | float)
        and not isinstance(cell, bool)
        and not math.isinf(cell)
    )


def import_report(table: pd.DataFrame) -> pd.DataFrame:
    """How many rows were read, kept and excluded, and for which reasons; one line per unit.

    For tables of `read_turns` and of the loaders that return a table; they carry it in
    `attrs["report"]`. A `Corpus` has it as `.report`.
    """
    if "report" not in table.attrs:
        raise DataError(
            "this table carries no import report", fix="make it with read_turns"
        )
    return pd.DataFrame(table.attrs["report"])
