"""Read a user's own file or folder as a turn table, with nothing guessed or lost in silence."""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.chat_logs import MOST, SYNONYMS, dialogs, example, ratings, records, replies
from lib.data.corpora import report_row, snake_case
from lib.data.file_contents import Reading, Unknown, contents, listed
from lib.data.storage import DataError, suggest_name
from lib.data.turn_table import COLUMNS, KEY, LISTS, is_blank, number_columns, turn_table, validate

DECIMAL = re.compile(r"\s*(-?\d+),(\d+)\s*")
UNIEVAL = {"context": "source", "fact": "context", "response": "system_output"}
NO_RATING = {"", "na", "n/a", "nan", "null", "none"}
# What begins as a list of quoted texts, or holds one in brackets, or is an array as it is printed.
LIST_LIKE = re.compile(
    r"""(?s)\[\s*["'].* | \[.*(,\s*["']|["']\s*[],]|\bnan\b).*\] | (array\(|<\w*Array>).*""", re.X
)


def read_turns(
    path: Path | str, columns: Mapping[str, str] | None = None, scale=None, given=None
) -> pd.DataFrame:
    r"""A turn table from a log of dialogs, a table with one row per reply, or a folder of them.

    Logs are those of `lib.data.chat_logs` (chat messages, ShareGPT, ConvoKit, ParlAI, MultiWOZ,
    Persona-Chat, transcripts): each reply of the bot is a row, what was said before is its context.
    Tables are CSV, TSV, Excel, Parquet or JSON; they need `system`, `dialog` and `response`;
    `agent` is the system if absent, `turn` the number of context utterances (or the position within
    the dialog, without `context`). In a cell `context` is a list (as JSON or Python write it) or
    one utterance per line; `reference` and `fact` are a list or one text. Columns of other names
    are kept as they are. Any of these may be packed by gzip or zstd.

    An empty rating (also NA, N/A, NaN, null, None) is NaN, an empty response stays; both are
    counted: `read_report(turns)` says what was read, kept and excluded, and
    `turns.attrs["guesses"]` what was guessed, why, and which name in `given` changes it.

    Args:
        path: the file or folder; the ending of a name tells tables from JSON and text.
        columns: our column name to the file's, for instance `{"response": "bot_reply"}`.
        scale: (lowest, highest) of all `human_` columns; None: no limits.
        given: what not to guess, for instance `{"bot": "Ada", "encoding": "cp1252"}`.

    Raises:
        DataError: whatever else is not as described, with file, row (from 1, without the header),
            column and the way out.

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
    reading, talk, tables = Reading(path, given, columns), [], []
    for file in reading.files():
        try:
            found = contents(file, reading)
            if (said := dialogs(found, file, reading)) is None:
                tables.append(_one_row_per_reply(found, file, reading, scale))
            talk += said or []
            reading.kept["files"] += file != reading.path
        except Unknown:
            if file == reading.path:
                raise
            reading.excluded["files", f"hold no dialogs ({file.name})"] += 1
    if talk and (rows := [*replies(talk, reading)]):
        said = pd.DataFrame(rows, dtype=object)
        number = lambda mark: mark if type(mark := _number(mark)) is float else math.nan  # noqa: E731
        said = said.assign(**said[number_columns(said)].map(number))
        tables.append(_typed(said, reading.path, {}, scale))
    if not tables:
        raise DataError("holds no reply of a bot", path, fix=f"write it like this:\n{example({})}")
    turns = pd.concat(tables, ignore_index=True)
    if len(tables) > 1:
        validate(turns, file=path)
    turns.attrs = {"report": _account(turns, reading), "columns": reading.taken}
    turns.attrs["guesses"] = [[*guess, count] for guess, count in reading.guesses.items()]
    return turns


def _one_row_per_reply(found: Any, file: Path, reading: Reading, scale) -> pd.DataFrame:
    reading.guess("kind", "table", "one row per reply")
    if not isinstance(found, pd.DataFrame):
        found = pd.DataFrame([row | ratings(row) for row in records(found)], dtype=object)
    if found.empty:
        raise DataError("has no rows", file)
    cells = found.where(found.notna(), None)
    if guessed := suggest_columns(cells, reading.columns):
        taken = " ".join(f"{ours}={their!r}" for ours, their in guessed.items())
        reading.guess("columns", taken, "by their names")
    theirs = {**reading.columns, **guessed}
    reading.taken |= theirs
    cells = _keyed(_named(cells, file, theirs), file, reading)
    turns = _typed(_with_points(cells, reading), file, theirs, scale)
    if file != reading.path:
        turns["dialog"] = f"{reading.below(file)}/" + turns["dialog"]
    return turns


def suggest_columns(names: Iterable[str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Our column name -> the file's, for names that mean one of ours; none where all is clear.

    Args:
        names: the columns of the file.
        theirs: those that are mapped already.

    >>> suggest_columns(["Conversation ID", "reply", "human overall", "notes"], {})
    {'human_overall': 'human overall', 'response': 'reply', 'dialog': 'Conversation ID'}
    """
    free = {snake_case(name): name for name in names if name not in theirs.values()}
    found = {ours: name for ours, name in free.items() if ours.startswith("human_")}
    if {*UNIEVAL.values()} <= {*free}:  # its files call the knowledge context
        found |= {ours: free[name] for ours, name in UNIEVAL.items() if ours not in theirs}
    if not {"system", "dialog", "response"} <= {*free.values(), *theirs}:
        for ours, synonyms in SYNONYMS.items():
            fits = [free[name] for name in (ours, *synonyms.split()) if name in free]
            fits = [name for name in fits if name not in found.values()]
            if fits and ours not in {**theirs, **found}:
                found[ours] = fits[0]
    return {ours: name for ours, name in found.items() if ours != name}


def _typed(cells: pd.DataFrame, file: Path, theirs: Mapping[str, str], scale) -> pd.DataFrame:
    turns = pd.DataFrame({name: _parsed(cells[name], name) for name in cells}, dtype=object)
    if "turn" not in turns and "context" not in turns:
        names = turns[[name for name in KEY if name in turns]].map(repr)  # whatever they hold
        turns["turn"] = names.groupby([*names]).cumcount()
    turns = turn_table(turns)
    validate(turns, file=file, scale=scale, column_names=theirs)
    return turns.infer_objects().astype(dict.fromkeys(number_columns(turns), float))


def _keyed(cells: pd.DataFrame, file: Path, reading: Reading) -> pd.DataFrame:
    """A system and dialogs where no column names them: the file, and each context."""
    if "system" not in cells:
        name = file.name.partition(".")[0]
        reading.guess("columns", f"system: {name}", "no column names it; this is the file's name")
        cells = cells.assign(system=name)
    if "dialog" not in cells:
        reading.guess("columns", "dialog: one for each context", "no column names it")
        context = cells["context"].map(repr) if "context" in cells else cells.index.to_series()
        again = cells.groupby([cells["system"].map(repr), context]).cumcount() + 1
        places = zip(context.factorize()[0] + 1, again, strict=True)
        cells = cells.assign(dialog=[f"{n} ({k})" if k > 1 else f"{n}" for n, k in places])
    return cells


def _with_points(cells: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Decimal commas as points, where no comma can part thousands."""
    marks = cells[number_columns(cells)].map(str)
    texts = [cell.strip() for cell in marks.to_numpy().ravel()]
    commas = [text for text in texts if DECIMAL.fullmatch(text)]
    clear = "." not in "".join(texts) and not all(text[-4:-3] == "," for text in commas)
    if commas and reading.guess("decimal", ",."[not clear], "as the ratings are written") == ",":
        return cells.assign(**marks.replace(DECIMAL, r"\1.\2", regex=True))
    return cells


def _named(cells: pd.DataFrame, file: Path, theirs: Mapping[str, str]) -> pd.DataFrame:
    """The cells under our names: each once, the needed ones there, no known one misspelled."""
    for their in {*theirs.values()} - {*cells}:
        fix = suggest_name(their, cells)
        raise DataError("this mapped column is missing", file, column=their, fix=fix)
    table = cells.rename(columns={their: ours for ours, their in theirs.items()})
    for name in table.columns[table.columns.duplicated()]:
        raise DataError("two columns of the file stand for this one", file, column=name)
    unknown = [name.lower() for name in table if name not in COLUMNS]
    for name in COLUMNS:
        hint = suggest_name(name, unknown)
        if name not in table and (hint or name == "response"):
            problem = f"this column is missing; the file has {', '.join(map(repr, cells))}"
            fix = hint or f"write it like this:\n{example(cells)}"
            fix = f"rename it or pass columns={{{name!r}: ...}}; {fix}"
            raise DataError(problem, file, column=name, fix=fix)
    return table


def _parsed(cells: pd.Series, name: str) -> list:
    """The cells as names, counts, lists or ratings; as they are where they are none."""
    if name == "turn":  # spreadsheets write a count of 3 as "3.0"
        return [int(n) if type(n := _number(c)) is float and n.is_integer() else c for c in cells]
    if name in KEY:  # dialogs are often numbered
        return [str(cell) if type(cell) is int else cell for cell in cells]
    if name in LISTS:
        return [_texts(cell, lines=name == "context") for cell in cells]
    numbers = name.startswith(("human_", "score_"))
    return [_number(cell) for cell in cells] if numbers else list(cells)


def _number(cell: Any) -> Any:
    """A number, also the mean of a list, from which what is none (N/A) is left out."""
    if isinstance(several := listed(cell) if str(cell) is cell and cell[:1] == "[" else cell, list):
        marks = [mark for one in several if type(mark := _number(one)) is float]
        return float(pd.Series(marks, dtype=float).mean())
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
    if text.startswith("[") and (value := listed(text)) is not text:
        return value
    if LIST_LIKE.fullmatch(text):
        return cell
    if not text:
        return []
    return [line.strip() for line in text.replace("|||", "\n").split("\n")] if lines else [cell]


def _account(turns: pd.DataFrame, reading: Reading) -> list[dict]:
    """What `read_report` shows."""
    lost = {unit: {why: n for (one, why), n in reading.excluded.items() if one == unit}
            for unit in ("files", "dialogs", "utterances")}  # fmt: skip
    lines = [
        report_row(unit, reading.kept[unit], lost[unit]) for unit in lost if reading.kept[unit]
    ]
    empty, given = turns["response"].map(is_blank).sum(), turns.filter(regex="^human_")
    cut = int((turns["context"].map(len).eq(MOST) & turns["turn"].gt(MOST)).sum())
    notes = {"are empty and kept": empty, f"have more context than the last {MOST}": cut}
    words = "; ".join(f"{count} {words}" for words, count in notes.items() if count)
    why = {f"left empty in {reading.taken.get(one, one)}": int(given[one].isna().sum())
           for one in given}  # fmt: skip
    ratings = report_row("ratings", int(given.notna().sum().sum()), why, ", ".join(given))
    return [*lines, report_row("responses", len(turns), note=words), ratings]
