"""Read a user's own file as a turn table, with nothing guessed and nothing lost in silence."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from lib.data.dialogues.errors import DataError, nearest
from lib.data.dialogues.files import (
    parse_json,
    rating_cell,
    read_json,
    read_json_lines,
    read_table,
    text_cell,
)
from lib.data.dialogues.table import COLUMNS, LISTS, turn_table, validate

REQUIRED = ["system", "dialog", "response"]
MISSING = {"", "na", "n/a", "nan", "null", "none"}
Scale = tuple[float, float] | Mapping[str, tuple[float, float]] | None


def read_turns(
    path: Path | str, columns: Mapping[str, str] | None = None, scale: Scale = None
) -> pd.DataFrame:
    """A turn table from a CSV, TSV, JSONL, JSON (list of objects) or Parquet file.

    Parameters
    ----------
    path : file whose ending names the format.
    columns : our column name to the file's, for instance `{"response": "bot_reply"}`.
    scale : (lowest, highest) of all `human_` columns, or one pair per column; None: no limits.

    The file needs `system`, `dialog` and `response`; `agent` is the system if absent, `turn` the
    number of context utterances (or the position within the dialog, without `context`). In a
    delimited file `context` is a JSON list or one utterance per line; `reference` and `fact` are a
    JSON list or one text. Columns of other names are kept as they are.

    An empty rating (also NA, N/A, NaN, null, None) is NaN, an empty response stays; both are
    counted: `dialogues.read_report(turns)` says what was read, kept and set aside. Everything else
    that is not as described raises `DataError` naming file, row (from 1, without the header) and
    column.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("system,dialog,said,reply,human_overall\\nA,d1,Hi,Hello,4\\n")
    >>> turns = read_turns(file, columns={"context": "said", "response": "reply"}, scale=(1, 5))
    >>> turns[["turn", "context", "response", "human_overall"]].values.tolist()
    [[1, ['Hi'], 'Hello', 4.0]]
    """
    records = _records(Path(path))
    if not records:
        raise DataError("has no rows", file=path)
    names = _names(records, columns or {}, path)
    missing: dict[str, int] = {}
    rows = [
        _row(record, names, number, path, scale, missing)
        for number, record in enumerate(records, start=1)
    ]
    _number_turns(rows)
    turns = turn_table(rows)
    validate(turns, file=path)
    turns.attrs["report"] = _report(turns, missing)
    return turns


def _records(path: Path) -> list[dict[str, Any]]:
    """The rows of a file as dicts, by the ending of its name."""
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        return read_table(path, "\t" if kind == ".tsv" else ",")
    if kind in (".jsonl", ".ndjson"):
        return read_json_lines(path)
    if kind == ".json":
        return _objects(read_json(path), path)
    if kind == ".parquet":
        return _parquet(path)
    fix = "use .csv, .tsv, .jsonl, .json or .parquet"
    raise DataError(f"the ending {path.suffix!r} names no known format", file=path, fix=fix)


def _objects(value: Any, path: Path) -> list[dict]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DataError("is not a JSON list of objects", file=path)
    return value


def _parquet(path: Path) -> list[dict]:
    try:
        return pa.parquet.read_table(path).to_pylist()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"is not a readable Parquet file ({reason})", file=path) from error


def _names(records: list[dict], columns: Mapping[str, str], path) -> dict[str, str]:
    """The file's column name to ours, for all columns that appear in any row."""
    theirs = list(dict.fromkeys(name for record in records for name in record))
    for ours, their in columns.items():
        if ours not in COLUMNS and not ours.startswith(("human_", "score_")):
            hint = nearest(ours, COLUMNS)
            raise DataError(f"{ours!r} is no column of the turn table", fix=hint or "see COLUMNS")
        if their not in theirs:
            hint = nearest(their, theirs)
            raise DataError("this mapped column is missing", file=path, column=their, fix=hint)
    back = {their: ours for ours, their in columns.items()}
    names = {their: back.get(their, their) for their in theirs}
    for ours in set(names.values()):
        if list(names.values()).count(ours) > 1:
            raise DataError("two columns of the file stand for this one", file=path, column=ours)
    _check_names(names, path)
    return names


def _check_names(names: Mapping[str, str], path) -> None:
    """The required columns are there, and no column is one of ours misspelled."""
    present = list(names.values())
    unknown = [n for n in present if n not in COLUMNS and not n.startswith(("human_", "score_"))]
    for name in COLUMNS:
        if name in present:
            continue
        hint = nearest(name, [n.lower() for n in unknown])
        if name in REQUIRED or hint:
            raise DataError(
                f"this column is missing; the file has {', '.join(map(repr, names))}",
                file=path,
                column=name,
                fix=f"rename it or pass columns={{{name!r}: ...}}{'; ' + hint if hint else ''}",
            )
    for name in unknown:
        if name.lower().startswith("human"):
            fix = "name rating columns human_<dimension>"
            raise DataError("looks like a rating column", file=path, column=name, fix=fix)


def _row(record: dict, names: dict, number: int, path, scale: Scale, missing: dict) -> dict:
    place = {"file": path, "row": number}
    row: dict[str, Any] = {}
    for their, ours in names.items():
        value, here = record.get(their), {**place, "column": their}
        if ours in ("system", "agent", "dialog"):
            row[ours] = _name(value, here)
        elif ours == "turn":
            row[ours] = _count(value, here)
        elif ours == "response":
            row[ours] = text_cell(value, **here)
        elif ours in LISTS:
            row[ours] = _texts(value, here, lines=ours == "context")
        elif ours.startswith("human_"):
            row[ours] = _rating(value, here, _limits(scale, ours), missing)
        else:
            row[ours or "unnamed"] = value
    return row


def _name(value: Any, here: dict) -> str:
    """A name; a whole number is one too, as dialogs are often numbered."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_cell(value, **here, empty=False)


def _count(value: Any, here: dict) -> int:
    """A count of earlier utterances; spreadsheets write 3 as "3.0"."""
    number = rating_cell(value, **here, scale=(0, 1e6))
    if number != int(number):
        raise DataError(f"is {value!r:.40}, not a whole number", **here)
    return int(number)


def _texts(value: Any, here: dict, lines: bool) -> list[str]:
    if isinstance(value, list):
        return [text_cell(text, **here) for text in value]
    if value is None:
        return []
    text = text_cell(value, **here)
    if text.strip() == "[]" or text.lstrip().startswith('["'):
        try:
            return _texts(parse_json(text, here["file"]), here, lines)
        except DataError as error:
            raise DataError(f"is not a whole JSON list: {error.problem}", **here) from error
    if not text.strip():
        return []
    return text.split("\n") if lines else [text]


def _limits(scale: Scale, name: str) -> tuple[float, float] | None:
    return scale.get(name) if isinstance(scale, Mapping) else scale


def _rating(value: Any, here: dict, limits, missing: dict[str, int]) -> float:
    empty = value is None or (isinstance(value, float) and math.isnan(value))
    if empty or (isinstance(value, str) and value.strip().lower() in MISSING):
        missing[here["column"]] = missing.get(here["column"], 0) + 1
        return math.nan
    return rating_cell(value, **here, scale=limits)


def _number_turns(rows: list[dict]) -> None:
    """Fill `turn` where the file has none."""
    seen: dict[tuple, int] = {}
    for row in rows:
        if "turn" not in row and "context" in row:
            row["turn"] = len(row["context"])
        elif "turn" not in row:
            key = (row["system"], row.get("agent"), row["dialog"])
            row["turn"] = seen[key] = seen.get(key, -1) + 1


def _report(turns: pd.DataFrame, missing: Mapping[str, int]) -> list[dict]:
    """The account that `read_report` shows."""
    empty = int((turns["response"].str.strip() == "").sum())
    human = [name for name in turns.columns if name.startswith("human_")]
    lost, total = sum(missing.values()), len(turns) * len(human)
    blanks = "; ".join(f"{count} left empty in {name}" for name, count in missing.items())
    return [
        {"unit": "responses", "read": len(turns), "kept": len(turns), "set_aside": 0, "reasons": "",
         "notes": f"{empty} are empty and kept" if empty else ""},
        {"unit": "ratings", "read": total, "kept": total - lost, "set_aside": lost,
         "reasons": blanks, "notes": ""},
    ]  # fmt: skip
