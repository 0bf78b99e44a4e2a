"""The turn table, one row per rated response: its shape and its checks.

Columns: `system`, `agent`, `dialog` (str), `turn` (int), `context`, `reference`, `fact` (lists of
str), `response` (str), then `human_<dimension>` (float, mean over annotators).
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.data.storage import DataError

LEVELS = ("system", "agent", "dialog")
KEY = [*LEVELS, "turn"]
COLUMNS = [*KEY, "context", "response", "reference", "fact"]
LISTS = ["context", "reference", "fact"]
Fault = tuple[str, Sequence[bool], str, str]
Scale = tuple[float, float] | None

# Control and format characters (zero-width ones, byte order marks) and white space of all kinds.
UNSEEN = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))


def is_blank(text: object) -> bool:
    r"""Say whether a response, context turn or reference is missing or shows no character.

    A blank text has no score: every metric gives NaN for it, whatever its model would make of
    invisible characters. Punctuation and emoji are seen, so "..." is not blank.

    >>> [is_blank(text) for text in (None, float("nan"), "", " \n", "\x00\x07", "\u200b\ufeff")]
    [True, True, True, True, True, True]
    >>> [is_blank(text) for text in ("tea", "...", "🙂", "\x00 tea")]
    [False, False, False, False]
    """
    if not isinstance(text, str):
        return True
    return all(unicodedata.category(character) in UNSEEN for character in text)


def turn_table(rows: pd.DataFrame | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A turn table from a frame or from one mapping per response.

    Absent lists are empty, an absent agent is the system, an absent turn the number of utterances
    in the context; further columns come last.

    >>> turn_table([{"system": "A", "dialog": "d1", "context": ["Hi"], "response": "Hello"}])[
    ...     ["agent", "turn", "reference"]].values.tolist()
    [['A', 1, []]]
    """
    table = pd.DataFrame(rows)
    for name in LISTS:
        cells = table.get(name, [None] * len(table))
        table[name] = [[] if cell is None or cell is np.nan else cell for cell in cells]
    if "turn" not in table:
        table["turn"] = [len(said) for said in table["context"]]
    return with_agents(table, COLUMNS)


def with_agents(table: pd.DataFrame, first: Sequence[str]) -> pd.DataFrame:
    """Name the system as agent where none is named, and put the known columns first."""
    agents = table.get("agent", table["system"]).fillna(table["system"])
    return table.assign(agent=agents)[[*first, *table.columns.drop([*first], errors="ignore")]]


def number_columns(table: pd.DataFrame) -> list[str]:
    """Names of the ratings and of the scores that came with a table.

    >>> number_columns(pd.DataFrame(columns=["response", "human_overall", "score_mine"]))
    ['human_overall', 'score_mine']
    """
    return [name for name in table.columns if str(name).startswith(("human_", "score_"))]


def validate(
    turns: pd.DataFrame, *, file=None, scale: Scale = None, theirs: Mapping[str, str] | None = None
) -> None:
    """Check that a frame is a turn table.

    Checked: the types of the columns, half surrogates in texts, ratings that are finite numbers
    or NaN and on `scale`, and the unique key (system, agent, dialog, turn). An empty response is
    allowed: a system may answer with nothing, and each metric says what that scores.

    Args:
        turns: a table of `turn_table`.
        file: where it came from, for the message.
        scale: (lowest, highest) of all ratings; None: no limits.
        theirs: our column name to the one that the reader of a message knows.

    Raises:
        DataError: naming file, row and column of the first fault, and the way out.

    >>> validate(turn_table([{"system": "A", "dialog": "d", "turn": 1, "response": "Hi"}]))
    >>> validate(turn_table([{"system": "A", "dialog": "d", "turn": -1, "response": "Hi"}]))
    Traceback (most recent call last):
        ...
    lib.data.storage.DataError: row 1, column 'turn': is -1, not a count of earlier utterances.
    What to do: put the number there, or leave the column out.
    """
    check_rows(turns, _faults(turns, scale), file, theirs)


def check_rows(
    table: pd.DataFrame, faults: Iterable[Fault], file=None, theirs: Mapping[str, str] | None = None
) -> None:
    """Raise a `DataError` for the first row with a fault: (column, bad rows, problem, way out)."""
    for name, bad, problem, fix in faults:
        for row in np.flatnonzero(bad)[:1]:
            cell, column = list(table[name])[row], (theirs or {}).get(name, name)
            raise DataError(problem.format(cell), file, int(row) + 1, column, fix)


def _faults(turns: pd.DataFrame, scale: Scale) -> Iterator[Fault]:
    """Each check in turn: the column, the rows that fail, in which words, and the way out."""
    way_out = "put text there, in whole characters"
    for name in (*LEVELS, "response"):
        yield name, [not _is_text(c) for c in turns[name]], "is {!r:.60}, not text", way_out
    for name in LEVELS:
        yield name, turns[name].map(is_blank), "is empty", "fill it in, or remove the row"
    for name in LISTS:
        bad = [not isinstance(c, list) or not all(map(_is_text, c)) for c in turns[name]]
        yield name, bad, "is {!r:.60}, not text or a whole list of texts", way_out
    bad = [not isinstance(count, int) or count < 0 for count in turns["turn"]]
    way_out = "put the number there, or leave the column out"
    yield "turn", bad, "is {!r:.60}, not a count of earlier utterances", way_out
    for name in number_columns(turns):
        bad = [not _is_number(cell) for cell in turns[name]]
        way_out = "put a number there, with a point for decimals"
        kind = "rating" if name.startswith("human_") else "score"
        yield name, bad, f"{kind} is {{!r:.60}}, not a number", way_out
    low, high = scale or (-math.inf, math.inf)
    for name in turns.filter(regex="^human_"):
        outside = f"rating {{:g}} is outside the scale {low:g} to {high:g}"
        way_out = "correct the rating, or load the file with its own scale"
        yield name, turns[name].lt(low) | turns[name].gt(high), outside, way_out
    again = "is {!r}, but an earlier row has the same system, agent, dialog and turn"
    way_out = "give each response its own dialog and turn, or remove the repeated row"
    yield "turn", turns.duplicated(KEY), again, way_out


def _is_text(cell: object) -> bool:
    return isinstance(cell, str) and (cell.isascii() or not re.search("[\ud800-\udfff]", cell))


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool) and not math.isinf(cell)


def import_report(table: pd.DataFrame) -> pd.DataFrame:
    """The account that came with a table: per unit the rows read, kept, excluded, and why.

    Tables of `read_turns` and of the loaders that return a bare table carry it in
    `attrs["report"]`; a `Corpus` has it as `.report`.
    """
    if "report" not in table.attrs:
        raise DataError("this table carries no account", fix="make it with read_turns")
    return pd.DataFrame(table.attrs["report"])
