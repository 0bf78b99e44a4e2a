"""Read a user's own file or folder as a turn table, with nothing guessed or lost in silence."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.chat_logs import examples, read_dialogs, records
from lib.data.corpora import report_row, snake_case
from lib.data.dialogs import MAX_CONTEXT, Dialog, reply_rows
from lib.data.file_contents import (
    ImportOptions,
    ImportReport,
    UnknownFormat,
    parse_list,
    read_contents,
)
from lib.data.messages import SYNONYMS, named_ratings
from lib.data.storage import DataError, suggest_name
from lib.data.turn_table import (
    COLUMNS,
    KEY,
    LISTS,
    is_blank,
    number_columns,
    turn_table,
    validate,
)

DECIMAL_COMMA = re.compile(r"\s*(-?\d+),(\d+)\s*")
UNIEVAL = {"context": "source", "fact": "context", "response": "system_output"}
NO_RATING = {"", "na", "n/a", "nan", "null", "none"}
# What begins as a list of quoted texts, or holds one in brackets, or is an array as it is printed.
LIST_LIKE = re.compile(
    r"""(?s)\[\s*["'].* | \[.*(,\s*["']|["']\s*[],]|\bnan\b).*\] | (array\(|<\w*Array>).*""",
    re.X,
)
OPTIONS = [option.name for option in fields(ImportOptions) if option.name != "columns"]


def read_turns(
    path: Path | str,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    options: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    r"""A turn table from a log of dialogs, a table with one row per reply, or a folder of them.

    Logs are those of `lib.data.chat_logs` (chat messages, ShareGPT, ConvoKit, ParlAI, MultiWOZ,
    Persona-Chat, transcripts): each reply of the bot is a row, what was said before is its context.
    Tables are CSV, TSV, Excel, Parquet or JSON; they need `system`, `dialog` and `response`;
    `agent` is the system if absent, `turn` the number of context utterances (or the position within
    the dialog, without `context`). In a cell `context` is a list (as JSON or Python write it) or
    one utterance per line; `reference` and `fact` are a list or one text. Columns of other names
    stay unchanged. Any of these may be packed by gzip or zstd.

    An empty rating (also NA, N/A, NaN, null, None) is NaN, an empty response stays; both are
    counted: `import_report(turns)` says what was read, kept and excluded, and
    `turns.attrs["guesses"]` what was guessed, why, and which name in `options` changes it.

    Args:
        path: the file or folder; the ending of a name tells tables from JSON and text.
        columns: our column name to the file's, for instance `{"response": "bot_reply"}`.
        scale: (lowest, highest) of all `human_` columns; None: no limits.
        options: what not to guess, for instance `{"bot": "Ada", "encoding": "cp1252"}`; the names
            are those of `ImportOptions`.

    Raises:
        DataError: whatever else is not as described, with file, row (from 1, without the header),
            column and what to do.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("system,dialog,said,reply,human_overall\nA,d1,Hi,Hello,4\n")
    >>> turns = read_turns(file, columns={"context": "said", "response": "reply"}, scale=(1, 5))
    >>> turns[["turn", "context", "response", "human_overall"]].values.tolist()
    [[1, ['Hi'], 'Hello', 4.0]]
    >>> log = file.with_name("log.txt")
    >>> _ = log.write_text("User: Hi\nBot: Hello\n")
    >>> read_turns(log)[["system", "context", "response"]].values.tolist()
    [['Bot', ['Hi'], 'Hello']]
    """
    for name in options or {}:
        if name not in OPTIONS:
            raise DataError(
                f"{name!r} is not guessed", path, fix=f"name one of {OPTIONS}"
            )
    report = ImportReport(path, ImportOptions(columns=columns or {}, **(options or {})))
    dialogs: list[Dialog] = []
    tables = []
    for file in report.files():
        try:
            value = read_contents(file, report)
            file_dialogs = read_dialogs(value, file, report)
            if file_dialogs is None:
                tables.append(_reply_table(value, file, report, scale))
            else:
                dialogs += file_dialogs
            report.kept["files"] += file != report.path
        except UnknownFormat:
            if file == report.path:
                raise
            report.excluded["files", f"hold no dialogs ({file.name})"] += 1
    rows = list(reply_rows(dialogs, report)) if dialogs else []
    if rows:
        tables.append(_log_table(rows, report, scale))
    if not tables:
        fix = f"write it like this:\n{examples({})}"
        raise DataError("holds no reply of a bot", path, fix=fix)
    turns = pd.concat(tables, ignore_index=True)
    if len(tables) > 1:
        validate(turns, file=path)
    guesses = [[*guess, count] for guess, count in report.guesses.items()]
    turns.attrs = {
        "report": _report_rows(turns, report),
        "columns": report.columns,
        "guesses": guesses,
    }
    return turns


def _log_table(rows: list[dict], report: ImportReport, scale) -> pd.DataFrame:
    """The turn table of a log's replies; a rating there that is no number is missing."""
    table = pd.DataFrame(rows, dtype=object)
    for name in number_columns(table):
        ratings = [parse_rating(cell) for cell in table[name]]
        table[name] = [r if type(r) is float else math.nan for r in ratings]
    return _typed(table, report.path, {}, scale)


def _reply_table(value: Any, file: Path, report: ImportReport, scale) -> pd.DataFrame:
    """The turn table of a table with one row per reply."""
    report.decide("kind", "table", "one row per reply")
    if not isinstance(value, pd.DataFrame):
        rows = []
        for row in records(value):
            ratings = {
                f"human_{name}": cell for name, cell in named_ratings(row).items()
            }
            rows.append(row | ratings)
        value = pd.DataFrame(rows, dtype=object)
    if value.empty:
        raise DataError("has no rows", file)
    cells = value.where(value.notna(), None)
    columns = report.options.columns
    suggested = suggest_columns(cells, columns)
    if suggested:
        text = " ".join(f"{ours}={name!r}" for ours, name in suggested.items())
        report.decide("columns", text, "by their names")
    names_in_file = {**columns, **suggested}
    report.columns |= names_in_file
    cells = _rename(cells, file, names_in_file)
    cells = _with_key(cells, file, report)
    cells = _with_decimal_points(cells, report)
    turns = _typed(cells, file, names_in_file, scale)
    if file != report.path:
        turns["dialog"] = f"{report.name_below(file)}/" + turns["dialog"]
    return turns


def suggest_columns(names: Iterable[str], mapped: Mapping[str, str]) -> dict[str, str]:
    """Our column name -> the file's, for names that mean one of ours; none where all is clear.

    Args:
        names: the columns of the file.
        mapped: those that are mapped already, in the same form.

    >>> suggest_columns(["Conversation ID", "reply", "human overall", "notes"], {})
    {'human_overall': 'human overall', 'response': 'reply', 'dialog': 'Conversation ID'}
    """
    free = {snake_case(name): name for name in names if name not in mapped.values()}
    suggested = {ours: name for ours, name in free.items() if ours.startswith("human_")}
    if set(UNIEVAL.values()) <= set(free):  # its files call the knowledge context
        for ours, name in UNIEVAL.items():
            if ours not in mapped:
                suggested[ours] = free[name]
    if not {"system", "dialog", "response"} <= {*free.values(), *mapped}:
        for ours, synonyms in SYNONYMS.items():
            if ours in mapped or ours in suggested:
                continue
            for name in [ours, *synonyms.split()]:
                if name in free and free[name] not in suggested.values():
                    suggested[ours] = free[name]
                    break
    return {ours: name for ours, name in suggested.items() if ours != name}


def _typed(
    cells: pd.DataFrame, file: Path, columns: Mapping[str, str], scale
) -> pd.DataFrame:
    """The cells as a valid turn table."""
    turns = pd.DataFrame(
        {name: _parse_cells(cells[name]) for name in cells}, dtype=object
    )
    if "turn" not in turns and "context" not in turns:
        key = [name for name in KEY if name in turns]
        turns["turn"] = (
            turns[key].map(repr).groupby(key).cumcount()
        )  # whatever they hold
    turns = turn_table(turns)
    validate(turns, file=file, scale=scale, column_names=columns)
    return turns.infer_objects().astype(dict.fromkeys(number_columns(turns), float))


def _with_key(cells: pd.DataFrame, file: Path, report: ImportReport) -> pd.DataFrame:
    """A system and dialogs where no column names them: the file, and each context."""
    if "system" not in cells:
        name = file.name.partition(".")[0]
        report.decide(
            "columns", f"system: {name}", "no column names it; this is the file's name"
        )
        cells = cells.assign(system=name)
    if "dialog" not in cells:
        report.decide("columns", "dialog: one for each context", "no column names it")
        contexts = (
            cells["context"].map(repr)
            if "context" in cells
            else cells.index.to_series()
        )
        numbers = contexts.factorize()[0] + 1
        uses = cells.groupby([cells["system"].map(repr), contexts]).cumcount() + 1
        dialogs = []
        for number, use in zip(numbers, uses, strict=True):
            dialogs.append(f"{number} ({use})" if use > 1 else str(number))
        cells = cells.assign(dialog=dialogs)
    return cells


def _with_decimal_points(cells: pd.DataFrame, report: ImportReport) -> pd.DataFrame:
    """Decimal commas as points, where no comma can separate thousands."""
    ratings = cells[number_columns(cells)].map(str)
    texts = [cell.strip() for cell in ratings.to_numpy().ravel()]
    commas = [text for text in texts if DECIMAL_COMMA.fullmatch(text)]
    if not commas:
        return cells
    thousands = all(text[-4:-3] == "," for text in commas)
    guess = "." if thousands or "." in "".join(texts) else ","
    if report.decide("decimal", guess, "as the ratings are written") == ",":
        cells = cells.assign(**ratings.replace(DECIMAL_COMMA, r"\1.\2", regex=True))
    return cells


def _rename(
    cells: pd.DataFrame, file: Path, columns: Mapping[str, str]
) -> pd.DataFrame:
    """The cells under our names: each once, the needed ones there, no known one misspelled."""
    for name in columns.values():
        if name not in cells:
            fix = suggest_name(name, cells)
            raise DataError("this mapped column is missing", file, column=name, fix=fix)
    table = cells.rename(columns={name: ours for ours, name in columns.items()})
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        problem = "two columns of the file stand for this one"
        raise DataError(problem, file, column=repeated[0])
    unknown = [name.lower() for name in table if name not in COLUMNS]
    for name in COLUMNS:
        hint = suggest_name(name, unknown)
        if name not in table and (hint or name == "response"):
            problem = (
                f"this column is missing; the file has {', '.join(map(repr, cells))}"
            )
            hint = hint or f"write it like this:\n{examples(cells)}"
            fix = f"rename it or pass columns={{{name!r}: ...}}; {hint}"
            raise DataError(problem, file, column=name, fix=fix)
    return table


def _parse_cells(cells: pd.Series) -> list:
    """The cells as names, counts, lists or ratings; unchanged where they are none."""
    name = cells.name
    if name == "turn":
        return [_parse_count(cell) for cell in cells]
    if name in KEY:  # dialogs are often numbered
        return [str(cell) if type(cell) is int else cell for cell in cells]
    if name in LISTS:
        return [_parse_texts(cell, by_line=name == "context") for cell in cells]
    if name.startswith(("human_", "score_")):
        return [parse_rating(cell) for cell in cells]
    return list(cells)


def _parse_count(cell: Any) -> Any:
    """A whole number, which spreadsheets write as "3.0"; else the cell unchanged."""
    number = parse_rating(cell)
    return int(number) if type(number) is float and number.is_integer() else cell


def parse_rating(cell: Any) -> Any:
    """A rating as a float: the mean where the cell is a list, NaN where it says "no rating".

    What is neither comes back unchanged, for `validate` to refuse.

    >>> [parse_rating(cell) for cell in ("3", [1, "N/A", 4], "N/A", "good")]
    [3.0, 2.5, nan, 'good']
    """
    if isinstance(cell, str) and cell.startswith("["):
        cell = parse_list(cell)
    if isinstance(cell, list):
        ratings = [parse_rating(item) for item in cell]
        numbers = [rating for rating in ratings if type(rating) is float]
        return float(pd.Series(numbers, dtype=float).mean())
    if str(cell).strip().lower() in NO_RATING:
        return math.nan
    if isinstance(cell, bool):
        return cell
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell


def _parse_texts(cell: Any, by_line: bool) -> Any:
    """The texts in a cell: a list in JSON or Python, one text, or one text per line.

    What looks like a list but is not a whole one stays unchanged, which `validate` refuses.
    """
    if cell is None or isinstance(cell, list):
        return cell or []
    text = str(cell).strip()
    if text.startswith("["):
        value = parse_list(text)
        if value is not text:
            return value
    if LIST_LIKE.fullmatch(text):
        return cell
    if not text:
        return []
    if by_line:
        return [line.strip() for line in text.replace("|||", "\n").split("\n")]
    return [cell]


def _report_rows(turns: pd.DataFrame, report: ImportReport) -> list[dict]:
    """What `import_report` shows: a row per unit."""
    rows = []
    for unit in ("files", "dialogs", "utterances"):
        excluded = {
            why: n for (name, why), n in report.excluded.items() if name == unit
        }
        if report.kept[unit]:
            rows.append(report_row(unit, report.kept[unit], excluded))
    empty = int(turns["response"].map(is_blank).sum())
    full = turns["context"].map(len).eq(MAX_CONTEXT)
    cut = int((full & turns["turn"].gt(MAX_CONTEXT)).sum())
    notes = []
    if empty:
        notes.append(f"{empty} are empty and kept")
    if cut:
        notes.append(f"{cut} have more context than the last {MAX_CONTEXT}")
    rows.append(report_row("responses", len(turns), note="; ".join(notes)))
    ratings = turns.filter(regex="^human_")
    missing = {}
    for name in ratings:
        missing[f"left empty in {report.columns.get(name, name)}"] = int(
            ratings[name].isna().sum()
        )
    count = int(ratings.notna().sum().sum())
    rows.append(report_row("ratings", count, missing, ", ".join(ratings)))
    return rows
