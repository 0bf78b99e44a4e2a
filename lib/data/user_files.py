"""Read a user's own file or folder as a turn table, with nothing guessed or lost in silence."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.bot_replies import MOST, replies
from lib.data.chat_logs import SYNONYMS, dialogs, example, plain, records
from lib.data.corpora import account
from lib.data.file_contents import Reading, Unknown, contents, listed
from lib.data.storage import DataError, nearest
from lib.data.turn_table import COLUMNS, KEY, LISTS, is_blank, number_columns, turn_table, validate

NEEDED = ("system", "dialog", "response")
DECIMAL = re.compile(r"-?\d+,\d+")
NO_RATING = {"", "na", "n/a", "nan", "null", "none"}
# What begins as a list of quoted texts, or holds one in brackets, or is an array as it is printed.
LIST_LIKE = re.compile(
    r"""(?s)\[\s*["'].* | \[.*(,\s*["']|["']\s*[],]|\bnan\b).*\] | (array\(|<\w*Array>).*""", re.X
)


def read_turns(
    path: Path | str,
    columns: Mapping[str, str] | None = None,
    scale=None,
    given: Mapping[str, str] | None = None,
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
        scale: (lowest, highest) of all `human_` columns, or one pair per column; None: no limits.
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
    reading, theirs, talk, tables = Reading(path, given), columns or {}, [], []
    for file in reading.files():
        try:
            found = contents(file, reading)
            if (said := dialogs(found, file, reading, theirs)) is None:
                tables.append(_one_row_per_reply(found, file, reading, theirs, scale))
            talk += said or []
            reading.kept["files"] += file != reading.path
        except Unknown:
            if file == reading.path:
                raise
            reading.excluded["files", f"hold no dialogs ({file.name})"] += 1
    if talk and (rows := [*replies(talk, reading)]):
        said = pd.DataFrame(rows, dtype=object)
        marks = said[number_columns(said)].map(_number)
        odd = ~marks.map(lambda mark: isinstance(mark, int | float))
        reading.excluded["ratings", "are no numbers"] += int(odd.to_numpy().sum())
        tables.append(_typed(said.assign(**marks.mask(odd)), reading.path, {}, scale))
    if not tables:
        raise DataError("holds no reply of a bot", path, fix=f"write it like this:\n{example({})}")
    turns = pd.concat(tables, ignore_index=True)
    validate(turns, file=path)
    turns.attrs = {"report": _account(turns, theirs, reading), "columns": dict(theirs)}
    turns.attrs["guesses"] = [[*guess, count] for guess, count in reading.guesses.items()]
    return turns


def read_cells(file: Path) -> pd.DataFrame:
    """The cells of a table in UTF-8 with commas, or of JSON objects; None where there is none."""
    found = contents(file, Reading(file, {"encoding": "utf-8-sig", "delimiter": ","}))
    if not isinstance(found, pd.DataFrame) and (isinstance(found, dict) or not records(found)):
        problem = "does not hold JSON objects: a list of them, or one per line"
        raise DataError(problem, file)
    return _cells(found, file)


def _cells(found: Any, file: Path) -> pd.DataFrame:
    if not isinstance(found, pd.DataFrame):
        found = pd.DataFrame(records(found), dtype=object)
    if found.empty:
        raise DataError("has no rows", file)
    return found.where(found.notna(), None)


def _one_row_per_reply(found: Any, file: Path, reading: Reading, theirs, scale) -> pd.DataFrame:
    reading.guess("kind", "table", "one row per reply")
    cells = _cells(found, file)
    try:
        cells = named(cells, theirs, file, COLUMNS, NEEDED)
    except DataError as error:
        raise (error if theirs else _with_suggestion(error, cells)) from error
    for name in cells:
        if name.lower().startswith("human") and not name.startswith("human_"):
            fix = "name rating columns human_<dimension>"
            raise DataError("looks like a rating column", file, column=name, fix=fix)
    turns = _typed(_with_points(cells, reading), file, theirs, scale)
    if file != reading.path:
        turns["dialog"] = f"{reading.below(file)}/" + turns["dialog"]
    return turns


def _typed(cells: pd.DataFrame, file, theirs: Mapping[str, str], scale) -> pd.DataFrame:
    turns = pd.DataFrame({name: _parsed(cells[name], name) for name in cells}, dtype=object)
    if "turn" not in turns and "context" not in turns:
        names = turns[[name for name in KEY if name in turns]].map(repr)  # whatever they hold
        turns["turn"] = names.groupby([*names]).cumcount()
    turns = turn_table(turns)
    validate(turns, file=file, scale=scale, theirs=theirs)
    return turns.infer_objects().astype(dict.fromkeys(number_columns(turns), float))


def _with_points(cells: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Decimal commas as points, where no comma can part thousands."""
    marks = cells[number_columns(cells)]
    texts = [cell.strip() for cell in marks.to_numpy().ravel() if isinstance(cell, str)]
    commas = [text for text in texts if DECIMAL.fullmatch(text)]
    clear = "." not in "".join(texts) and not all(text[-4:-3] == "," for text in commas)
    if commas and reading.guess("decimal", ",."[not clear], "as the ratings are written") == ",":
        point = lambda c: c.replace(",", ".") if DECIMAL.fullmatch(str(c).strip()) else c  # noqa: E731
        return cells.assign(**marks.map(point))
    return cells


def suggest_columns(names: Iterable[str]) -> dict[str, str]:
    """Our column name -> the file's, for names that mean one of ours; ratings included.

    >>> suggest_columns(["Conversation ID", "reply", "human overall", "notes"])
    {'response': 'reply', 'dialog': 'Conversation ID', 'human_overall': 'human overall'}
    """
    known = {plain(name): name for name in names}
    found: dict[str, str] = {}
    for ours, synonyms in SYNONYMS.items():
        theirs = [known[name] for name in (ours, *synonyms.split()) if name in known]
        if theirs := [name for name in theirs if name not in found.values()]:
            found[ours] = theirs[0]
    ratings = {name: theirs for name, theirs in known.items() if name.startswith("human_")}
    return {ours: theirs for ours, theirs in (found | ratings).items() if ours != theirs}


def _with_suggestion(error: DataError, cells: pd.DataFrame) -> DataError:
    """The error with the mapping that the file's own names suggest, ready to paste."""
    found = suggest_columns(cells)
    fix = error.fix
    if found:
        fix += f".\nThe names in the file suggest: columns={found!r}"
    if lacking := [name for name in NEEDED if name not in {*found, *cells}]:
        fix += f".\nNothing in the file looks like {' or '.join(lacking)}: add a column "
        fix += "(system: the chatbot's name; dialog: which conversation; response: its reply)"
        fix += f", or write it like this:\n{example(cells)}"
    again = DataError(error.problem, error.file, error.row, error.column, fix)
    again.suggested = found
    return again


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
    numbers = name.startswith(("human_", "score_"))
    return [_number(cell) for cell in cells] if numbers else list(cells)


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
    if text.startswith("[") and (value := listed(text)) is not text:
        return value
    if LIST_LIKE.fullmatch(text):
        return cell
    if not text:
        return []
    return str(cell).split("\n") if lines else [cell]


def _account(turns: pd.DataFrame, theirs: Mapping[str, str], reading: Reading) -> list[dict]:
    """What `read_report` shows."""
    empty, given = turns["response"].map(is_blank).sum(), turns.filter(regex="^human_")
    why = {f"left empty in {theirs.get(one, one)}": int(given[one].isna().sum()) for one in given}
    cut = int((turns["context"].map(len).eq(MOST) & turns["turn"].gt(MOST)).sum())
    notes = [(empty, "are empty and kept"), (cut, f"have more context than the last {MOST}")]
    words = "; ".join(f"{count} {words}" for count, words in notes if count)
    lost = {unit: {why: n for (one, why), n in reading.excluded.items() if one == unit}
            for unit in ("files", "dialogs", "utterances")}  # fmt: skip
    lines = [account(unit, reading.kept[unit], lost[unit]) for unit in lost if reading.kept[unit]]
    odd = reading.excluded["ratings", "are no numbers"]
    note = ", ".join([*given, *[f"{odd} of those left out are no numbers"] * bool(odd)])
    ratings = account("ratings", int(given.notna().sum().sum()), why, note)
    return [*lines, account("responses", len(turns), note=words), ratings]
