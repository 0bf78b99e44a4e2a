"""The shape of the turn table and of the dialog table, and the checks that hold for both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.data.dialogues.errors import DataError, nearest
from lib.data.dialogues.files import text_cell

KEY = ["system", "agent", "dialog", "turn"]
COLUMNS = [*KEY, "context", "response", "reference", "fact"]
LISTS = ["context", "reference", "fact"]


def turn_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A turn table from one mapping per response; absent lists are empty, absent agent = system.

    >>> turn_table([{"system": "A", "dialog": "d1", "turn": 1, "context": ["Hi"],
    ...              "response": "Hello"}])[["agent", "reference"]].values.tolist()
    [['A', []]]
    """
    extra = list(dict.fromkeys(name for row in rows for name in row if name not in COLUMNS))
    data: dict[str, list] = {name: [] for name in [*COLUMNS, *extra]}
    for row in rows:
        for name in COLUMNS:
            default = [] if name in LISTS else row["system"] if name == "agent" else None
            data[name].append(row.get(name, default))
        for name in extra:
            data[name].append(row.get(name, np.nan))
    return pd.DataFrame(data)


def human_columns(table: pd.DataFrame) -> list[str]:
    """Names of the mean human ratings in a table.

    >>> human_columns(pd.DataFrame(columns=["response", "human_overall"]))
    ['human_overall']
    """
    return [name for name in table.columns if str(name).startswith("human_")]


def validate(turns: pd.DataFrame, *, file=None, scale: tuple[float, float] | None = None) -> None:
    """Check that a frame is a turn table; raise `DataError` naming row and column if it is not.

    Checked: the columns, their types, the unique key (system, agent, dialog, turn), lone
    surrogates in texts, and ratings that are numbers or NaN, on `scale` if one is given. An empty
    response is allowed: a system may answer with nothing, and each metric says what that scores.

    >>> validate(turn_table([{"system": "A", "dialog": "d", "turn": 1, "response": "Hi"}]))
    >>> validate(turn_table([{"system": "A", "dialog": "d", "turn": -1, "response": "Hi"}]))
    Traceback (most recent call last):
        ...
    lib.data.dialogues.errors.DataError: row 1, column 'turn': is -1, not a count of earlier utterances.
    """
    for name in COLUMNS:
        if name not in turns.columns:
            hint = nearest(name, turns.columns)
            raise DataError("this column is missing", file=file, column=name, fix=hint or "add it")
    for name in ["system", "agent", "dialog"]:
        _check_text(turns[name], file, empty=False)
    _check_text(turns["response"], file)
    _check_turns(turns["turn"], file)
    for name in LISTS:
        _check_lists(turns[name], file)
    for name in human_columns(turns):
        _check_ratings(turns[name], file, scale)
    check_key(turns, KEY, file)


def _check_text(column: pd.Series, file, empty: bool = True) -> None:
    for row, value in enumerate(column, start=1):
        text_cell(value, file=file, row=row, column=column.name, empty=empty)


def _check_turns(column: pd.Series, file) -> None:
    for row, value in enumerate(column, start=1):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise DataError(
                f"is {value!r:.60}, not a count of earlier utterances",
                file=file,
                row=row,
                column="turn",
            )


def _check_lists(column: pd.Series, file) -> None:
    for row, values in enumerate(column, start=1):
        if not isinstance(values, list):
            raise DataError("is not a list of texts", file=file, row=row, column=column.name)
        if not _clean(values):  # look closer only where something is wrong
            for value in values:
                text_cell(value, file=file, row=row, column=column.name)


def _clean(values: list) -> bool:
    """Whether all values are plain ASCII texts; one test for the list, since lists are many."""
    try:
        return "".join(values).isascii()
    except TypeError:
        return False


def _check_ratings(column: pd.Series, file, scale) -> None:
    if not pd.api.types.is_float_dtype(column):
        raise DataError("is not a column of decimal numbers", file=file, column=column.name)
    values = column.to_numpy()
    bad = np.isinf(values)
    if scale:
        with np.errstate(invalid="ignore"):
            bad |= (values < scale[0]) | (values > scale[1])
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        limits = f" outside the scale {scale[0]:g} to {scale[1]:g}" if scale else " not finite"
        raise DataError(
            f"rating {values[row]:g} is{limits}", file=file, row=row + 1, column=column.name
        )


def check_key(table: pd.DataFrame, key: list[str], file=None) -> None:
    """Raise `DataError` naming both rows if two rows share a key."""
    again = table.duplicated(key)
    if again.any():
        row = int(np.flatnonzero(again.to_numpy())[0])
        same = (table[key] == table[key].iloc[row]).all(axis=1).to_numpy()
        first = int(np.flatnonzero(same)[0])
        values = ", ".join(f"{name} {table[name].iloc[row]!r}" for name in key)
        raise DataError(
            f"repeats the key of row {first + 1} ({values})",
            file=file,
            row=row + 1,
            column=", ".join(key),
            fix="give each response its own dialog and turn, or remove the repeated row",
        )


def to_dialogs(turns: pd.DataFrame) -> pd.DataFrame:
    """One row per (system, agent, dialog): the responses in order of `turn`, ratings averaged.

    Columns: system, agent, dialog, turns (number of rated responses), responses (list of str) and
    the mean of every `human_` column over the turns that have a rating (NaN if none has).

    >>> table = turn_table([{"system": "A", "dialog": "d", "turn": t, "response": r,
    ...     "human_overall": h} for t, r, h in [(3, "Fine", 4.0), (1, "Hi", 2.0)]])
    >>> to_dialogs(table)[["turns", "responses", "human_overall"]].values.tolist()
    [[2, ['Hi', 'Fine'], 3.0]]
    """
    groups = turns.sort_values("turn", kind="stable").groupby(KEY[:3], sort=False)
    dialogs = groups["response"].agg(turns="size", responses=list).reset_index()
    means = groups[human_columns(turns)].mean().reset_index(drop=True)
    joined = pd.concat([dialogs, means], axis=1)
    return joined.sort_values(KEY[:3], kind="stable", ignore_index=True)


def read_report(table: pd.DataFrame) -> pd.DataFrame:
    """The account that came with a table: per unit the rows read, kept, set aside, and why.

    Tables of `read_turns` and of the loaders that return a bare table carry it in
    `attrs["report"]`; a `Corpus` has it as `.report`.
    """
    if "report" not in table.attrs:
        raise DataError("this table carries no account", fix="make it with read_turns")
    return pd.DataFrame(table.attrs["report"])
