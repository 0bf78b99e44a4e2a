"""Read a user's own file as a turn table, with nothing guessed and nothing lost in silence.

Only three things are forgiven, because they change no content: a UTF-8 byte-order mark at the start
of a file, Windows line ends, and blank lines.
"""

import ast
import contextlib
import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from lib.data.corpora import account
from lib.data.storage import DataError, nearest
from lib.data.turn_table import COLUMNS, KEY, LISTS, human_columns, is_blank, turn_table, validate

NO_RATING = {"", "na", "n/a", "nan", "null", "none"}
# What begins as a list of quoted texts, or holds one in brackets, or is an array as it is printed.
LIST_LIKE = re.compile(
    r"""(?s)\[\s*["'].* | \[.*(,\s*["']|["']\s*[],]|\bnan\b).*\] | (array\(|<\w*Array>).*""", re.X
)
csv.field_size_limit(16 * 1024 * 1024)  # a long dialog in one cell is not an error


def read_turns(
    path: Path | str, columns: Mapping[str, str] | None = None, scale=None
) -> pd.DataFrame:
    r"""A turn table from a CSV, TSV, JSONL, JSON (list of objects) or Parquet file.

    The file needs `system`, `dialog` and `response`; `agent` is the system if absent, `turn` the
    number of context utterances (or the position within the dialog, without `context`). In a
    delimited file `context` is a list (as JSON or Python write it) or one utterance per line;
    `reference` and `fact` are a list or one text. Columns of other names are kept as they are.

    An empty rating (also NA, N/A, NaN, null, None) is NaN, an empty response stays; both are
    counted: `read_report(turns)` says what was read, kept and excluded.

    Args:
        path: the file; its ending names the format.
        columns: our column name to the file's, for instance `{"response": "bot_reply"}`.
        scale: (lowest, highest) of all `human_` columns, or one pair per column; None: no limits.

    Raises:
        DataError: whatever else is not as described, with file, row (from 1, without the header),
            column and the way out.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("system,dialog,said,reply,human_overall\nA,d1,Hi,Hello,4\n")
    >>> turns = read_turns(file, columns={"context": "said", "response": "reply"}, scale=(1, 5))
    >>> turns[["turn", "context", "response", "human_overall"]].values.tolist()
    [[1, ['Hi'], 'Hello', 4.0]]
    """
    theirs = columns or {}
    cells = named(read_cells(Path(path)), theirs, path, COLUMNS, ("system", "dialog", "response"))
    for name in cells:
        if name.lower().startswith("human") and not name.startswith("human_"):
            fix = "name rating columns human_<dimension>"
            raise DataError("looks like a rating column", path, column=name, fix=fix)
    turns = pd.DataFrame({name: _parsed(cells[name], name) for name in cells}, dtype=object)
    if "turn" not in turns and "context" not in turns:
        names = turns[[name for name in KEY if name in turns]].map(repr)  # whatever they hold
        turns["turn"] = names.groupby([*names]).cumcount()
    turns = turn_table(turns)
    validate(turns, file=path, scale=scale, theirs=theirs)
    turns = turns.infer_objects().astype(dict.fromkeys(human_columns(turns), float))
    turns.attrs["report"] = _account(turns, theirs)
    return turns


def read_cells(path: Path) -> pd.DataFrame:
    """The cells of a file as they are, None where there is none, by the ending of its name."""
    kind = path.suffix.lower()
    readers = {".csv": _delimited, ".tsv": _delimited, ".parquet": _parquet}
    readers |= dict.fromkeys([".jsonl", ".ndjson", ".json"], _json_objects)
    if kind not in readers:
        fix = f"use one of {', '.join(readers)}"
        raise DataError(f"the ending {kind!r} names no known format", path, fix=fix)
    try:
        cells = pd.DataFrame(readers[kind](path), dtype=object)
    except (OSError, ValueError, OverflowError, RecursionError, pa.ArrowException) as error:
        fix = "correct that place; save the file as UTF-8, or fetch it again if it is cut off"
        raise DataError(f"is not a readable file ({error})", path, fix=fix) from error
    if cells.empty:
        raise DataError("has no rows", path)
    return cells.where(cells.notna(), None)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: {error}") from error


def _delimited(path: Path) -> pd.DataFrame:
    """Rows of as many cells as the header; pandas refuses longer ones and fills up shorter ones."""
    form = {"sep": "\t" if path.suffix.lower() == ".tsv" else ",", "engine": "python"}
    kept = {"header": None, "dtype": str, "keep_default_na": False, "skip_blank_lines": False}
    cells = pd.read_csv(io.StringIO(_text(path)), **form, **kept).dropna(how="all")
    if (short := cells.isna().any(axis=1)).any():
        place = f"row {short.argmax()} has fewer cells than the header"
        raise ValueError(f"{place}: check its delimiter and quotes")
    header = cells[:1].to_numpy().ravel() if len(cells) else cells.columns
    return cells[1:].set_axis(header, axis=1).rename(columns=str.strip).reset_index(drop=True)


def _json_objects(path: Path) -> list[dict]:
    """JSON objects: a list of them, or one on each line that is not blank."""
    text = _text(path)
    if path.suffix.lower() != ".json":
        text = "[" + ",\n".join(line for line in text.split("\n") if line.strip()) + "]"
    values = json.loads(text)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise ValueError("it does not hold JSON objects: a list of them, or one per line")
    return values


def _parquet(path: Path) -> list[dict]:
    from pyarrow import parquet  # only where it is needed, since it takes a while

    return parquet.read_table(path).to_pylist()


def named(
    cells: pd.DataFrame, theirs: Mapping[str, str], path, known: list[str], needed: Sequence[str]
) -> pd.DataFrame:
    """The cells under our names: each once, the needed ones there, no known one misspelled."""
    for their in theirs.values():
        if their not in cells:
            hint = nearest(their, cells)
            raise DataError("this mapped column is missing", path, column=their, fix=hint)
    table = cells.rename(columns={their: ours for ours, their in theirs.items()})
    for name in table.columns[table.columns.duplicated()]:
        raise DataError("two columns of the file stand for this one", path, column=name)
    unknown = [name.lower() for name in table if name not in known]
    for name in known:
        hint = nearest(name, unknown)
        if name not in table and (hint or name in needed):
            problem = f"this column is missing; the file has {', '.join(map(repr, cells))}"
            fix = f"rename it or pass columns={{{name!r}: ...}}{'; ' + hint if hint else ''}"
            raise DataError(problem, path, column=name, fix=fix)
    return table


def _parsed(cells: pd.Series, name: str) -> list:
    """The cells as names, counts, lists or ratings; as they are where they are none."""
    if name == "turn":  # spreadsheets write a count of 3 as "3.0"
        return [int(n) if type(n := _number(c)) is float and n.is_integer() else c for c in cells]
    if name in KEY:  # dialogs are often numbered
        return [str(cell) if type(cell) is int else cell for cell in cells]
    if name in LISTS:
        return [_texts(cell, lines=name == "context") for cell in cells]
    return [_number(cell) for cell in cells] if name.startswith("human_") else list(cells)


def _number(cell: Any) -> Any:
    if str(cell).strip().lower() in NO_RATING:
        return math.nan
    try:
        return cell if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell


def _texts(cell: Any, lines: bool) -> Any:
    """The texts in a cell: a list in JSON or Python, one text, or one text per line.

    What looks like a list and is none in whole stays as it is, which `validate` refuses.
    """
    if cell is None or isinstance(cell, list):
        return cell or []
    text = str(cell).strip()
    if text.startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(text)
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            # Python would join the two texts of a printed array, "['a' 'b']", to one.
            if repr(value := ast.literal_eval(text)) == text:
                return value
    if LIST_LIKE.fullmatch(text):
        return cell
    if not text:
        return []
    return str(cell).split("\n") if lines else [cell]


def _account(turns: pd.DataFrame, theirs: Mapping[str, str]) -> list[dict]:
    """What `read_report` shows."""
    empty, given = turns["response"].map(is_blank).sum(), turns[human_columns(turns)]
    why = {f"left empty in {theirs.get(one, one)}": int(given[one].isna().sum()) for one in given}
    note = f"{empty} are empty and kept" if empty else ""
    ratings = account("ratings", int(given.notna().sum().sum()), why)
    return [account("responses", len(turns), note=note), ratings]
