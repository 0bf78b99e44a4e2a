"""Sheets on which people rate dialogs: drawn at random, blinded, written, and read again.

A sheet has a row per dialog, in random order, with an id that tells nothing of the version. Which
dialog an id stands for is in the key, a file of its own that the raters do not get.

Only sheets that RATE wrote are read here. Ratings in a file of one's own are read with its dialogs
(`lib.data.user_files`).
"""

import csv
import glob
import hashlib
import json
import math
import re
import unicodedata
from dataclasses import asdict, dataclass, field
from os.path import commonprefix
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data import DataError
from lib.data.file_contents import ImportReport, read_contents
from lib.data.log_files import LogFile
from lib.data.storage import atomic_write, read_json, suggest_name
from lib.data.user_files import parse_rating, with_point
from lib.meta_evaluation import evaluation_sets
from lib.report.verdict import KEY, bootstrap_units

SEED = 0  # of every draw: the first 40 dialogs of 60 are those of a draw of 40
PAIRED_SHARE = 0.8  # of each version's dialogs: with fewer, pairs stand for too little
LETTERS = "bcdfghjklmnpqrstvwxz"  # an id spells no word, and no spreadsheet takes it for a number
SCALE = re.compile(r"(?P<low>-?\d+(\.\d+)?)-(?P<high>-?\d+(\.\d+)?)")
RATER = re.compile(r"rater\b", re.IGNORECASE)  # begins the name of a rater's column
RATER_COLUMNS = ["rater 1", "rater 2", "rater 3"]
NOTES = ("note", "notes", "comment", "comments")
INSTRUCTION = (
    "How good is the bot in this dialog? Rate each dialog as a whole in a column of your own: "
    "{low:g} is very bad and {high:g} is very good. Leave the cell empty where you cannot say. "
    "Please change nothing else."
)
LINE_LENGTH = 100  # characters of a line in a cell
CELL_LINES = 28  # a spreadsheet shows no cell that is much higher
MAX_HEIGHT = 409  # points, of a row in Excel


@dataclass(frozen=True)
class SheetKey:
    """What the raters must not know, and what a sheet is checked against.

    Attributes:
        file: names of the files that the dialogs were read from.
        texts: SHA-256 of all their replies.
        low, high: ends of the scale of the ratings.
        predictor: the score that may narrow the intervals, if it was named; "" leaves it to the
            rule of `rating_study.choose_predictor`, which reads no rating.
        seed: of the draw.
        per_version: dialogs drawn of each version.
        dialogs: id -> system, agent and dialog.
    """

    file: str
    texts: str
    low: float = 1.0
    high: float = 5.0
    predictor: str = ""
    seed: int = SEED
    per_version: int = 0
    dialogs: dict[str, list[str]] = field(default_factory=dict)


def draw_order(turns: pd.DataFrame, seed: int = SEED) -> pd.DataFrame:
    """The dialogs that may be drawn, in random order: a draw of n takes each version's first n.

    Where all versions have at least 80 % of their dialogs in openings that every version has
    (`verdict.bootstrap_units`), only those are drawn, one dialog of each version and opening, and
    always for all versions together: they stay pairs. Otherwise each version is drawn for itself.

    Returns:
        Columns system, agent, dialog, unit (an opening, or a dialog), paired.

    >>> turns = pd.DataFrame({"system": list("AABB"), "agent": "x", "dialog": list("1212"),
    ...                       "turn": 1, "context": [["Tea?"], ["Rain?"], ["Tea?"], ["Rain?"]]})
    >>> draw = draw_order(turns).groupby("system").head(1)
    >>> draw["dialog"].nunique(), draw["paired"].tolist()
    (1, [True, True])
    """
    rng = np.random.default_rng(seed)
    dialogs = turns[KEY].assign(unit=bootstrap_units(turns)).drop_duplicates(KEY)
    versions_of_unit = dialogs.groupby("unit")["system"].transform("nunique")
    n_versions = dialogs["system"].nunique()
    shared = versions_of_unit == n_versions
    paired = (
        n_versions > 1
        and shared.groupby(dialogs["system"]).mean().min() >= PAIRED_SHARE
    )
    if paired:
        dialogs = dialogs[shared].sample(frac=1, random_state=rng)
        dialogs = dialogs.drop_duplicates(["system", "unit"])
    else:
        dialogs = dialogs.assign(unit=np.arange(len(dialogs)))
    units = dialogs["unit"].unique()
    priority = pd.Series(rng.permutation(len(units)), units)
    dialogs = dialogs.assign(priority=dialogs["unit"].map(priority), paired=paired)
    dialogs = dialogs.sort_values("priority", kind="stable").drop(columns="priority")
    return dialogs.reset_index(drop=True)


def turns_in_order(turns: pd.DataFrame, order: pd.DataFrame) -> pd.DataFrame:
    """The turns by the order of a draw; dialogs that cannot be drawn come last."""
    position = pd.Series(np.arange(len(order)), pd.MultiIndex.from_frame(order[KEY]))
    of_turn = position.reindex(pd.MultiIndex.from_frame(turns[KEY])).to_numpy()
    return turns.iloc[np.argsort(of_turn, kind="stable")]


def write_rating_sheets(
    turns: pd.DataFrame,
    base: Path,
    *,
    per_version: int,
    file: str,
    scale: tuple[float, float] = (1.0, 5.0),
    predictor: str = "",
    ratings: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Draw dialogs at random and write the sheets to rate, as CSV and as Excel, and their key.

    The files are `base` with the endings .csv, .xlsx and _key.json. The sheets have the columns id,
    a column for each of three raters, and dialog (for a long one also "dialog 2" and so on); above
    them stands one line of instruction. Nothing there names a version or a score.

    Args:
        turns: turn table; each `system` is a version.
        base: path of the sheets without an ending.
        per_version: dialogs to draw of each version; all that there are, if they are fewer.
        file: names of the files that the dialogs were read from.
        scale: lowest and highest rating.
        predictor: a score to name before there are ratings (see `SheetKey`).
        ratings: those of an earlier, smaller sheet (`read_rating_sheets`), which are filled in.

    Returns:
        A row per version: system, drawn, dialogs (that may be drawn), left_out, paired.

    Raises:
        DataError: fewer than one dialog asked for, or a sheet is there already, which may have
            ratings.
    """
    if per_version < 1:
        raise DataError(f"{per_version} dialogs cannot be drawn", fix="say RATE=40")
    paths = [Path(f"{base}{ending}") for ending in (".csv", ".xlsx", "_key.json")]
    for path in paths:
        if path.exists():
            problem = "is there already, and may have ratings"
            raise DataError(
                problem, path, fix="rename it, or remove it if nobody rates it"
            )
    order = draw_order(turns)
    drawn_dialogs = order.groupby("system", sort=False).head(per_version)
    ids = {}
    for row in drawn_dialogs.to_dict("records"):
        names = [row[level] for level in KEY]
        ids[blind_id(names)] = names
    key = SheetKey(
        file=file,
        texts=hash_replies(turns),
        low=scale[0],
        high=scale[1],
        predictor=predictor,
        per_version=per_version,
        dialogs=dict(sorted(ids.items())),
    )
    rows = _sheet_rows(turns, key, ratings)
    _write_csv(rows, paths[0])
    _write_excel(rows, paths[1], key)
    with atomic_write(paths[2]) as unfinished:
        text = json.dumps(asdict(key), indent=1, ensure_ascii=False)
        unfinished.write_text(text, encoding="utf-8")

    summary = []
    for system, of_version in (
        turns[KEY].drop_duplicates().groupby("system", sort=False)
    ):
        may_be_drawn = int((order["system"] == system).sum())
        summary.append(
            {
                "system": system,
                "drawn": int((drawn_dialogs["system"] == system).sum()),
                "dialogs": may_be_drawn,
                "left_out": len(of_version) - may_be_drawn,
                "paired": bool(order["paired"].all()),
            }
        )
    return pd.DataFrame(summary)


def find_sheet_key(sheet: Path, base: Path) -> Path:
    """The path of a sheet's key, by its name beside the dialogs or beside the sheet.

    Args:
        sheet: path of the sheet that came back, perhaps under another name.
        base: folder and beginning of the name of all keys of these dialogs, up to "_rate".

    Raises:
        DataError: the sheet has another name, and there are several keys.
    """
    name = f"{sheet.name.partition('.')[0]}_key.json"
    for path in (base.parent / name, sheet.parent / name):
        if path.is_file():
            return path
    keys = sorted(base.parent.glob(f"{glob.escape(base.name)}_rate*_key.json"))
    if len(keys) > 1:
        names = ", ".join(path.name for path in keys)
        raise DataError(f"may belong to {names}", sheet, fix="say which: KEY=path")
    return keys[0] if keys else base.parent / name


def check_predictor(name: str, turns: pd.DataFrame) -> None:
    """Refuse a name that will be no score of these dialogs, before people start to rate.

    Known are the metrics of a report, the file's own `score_` columns, and a judge's cpds.
    """
    own_scores = evaluation_sets.shipped_scores(turns).columns
    names = [*own_scores, "cpds", *evaluation_sets.QUICK, *evaluation_sets.ENCODER]
    if name.removeprefix("score_") not in names:
        hint = suggest_name(name, names) or f"it is one of {', '.join(names)}"
        raise DataError(f"PREDICTOR={name} is no score of a report", fix=hint)


def parse_scale(text: str) -> tuple[float, float]:
    """The ends of a scale that is written as "1-5".

    >>> parse_scale("0-100")
    (0.0, 100.0)
    """
    match = SCALE.fullmatch(text.strip())
    if not match or float(match["low"]) >= float(match["high"]):
        raise DataError(f"SCALE={text} is no scale", fix="write it as SCALE=1-5")
    return float(match["low"]), float(match["high"])


def blind_id(names: list[str], seed: int = SEED) -> str:
    """An id of a dialog that tells nothing of it; sorted, ids are in random order.

    >>> len(blind_id(["system", "agent", "dialog 1"]))
    8
    """
    digest = hashlib.sha256(json.dumps([seed, *names]).encode()).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest[:8])


def hash_replies(turns: pd.DataFrame) -> str:
    """SHA-256 of all replies and of where they stand: the same file, read in the same way."""
    rows = turns[[*KEY, "turn", "response"]].to_json(orient="values")
    return hashlib.sha256(rows.encode()).hexdigest()


def dialog_lines(replies: pd.DataFrame) -> list[str]:
    """A dialog as it is rated: an utterance per line, without the names of those who speak.

    Each context adds what no earlier reply had in it. Of several utterances before the first reply
    only the last is surely the user's; who spoke the others is not known to the turn table.

    Args:
        replies: the rows of one dialog in a turn table.

    >>> dialog_lines(pd.DataFrame({"turn": [1, 3], "response": ["Hello", "Bye"],
    ...                            "context": [["Hi"], ["Hi", "Hello", "See you"]]}))
    ['User: Hi', 'Bot: Hello', 'User: See you', 'Bot: Bye']
    """
    earlier: list[str] = []
    lines = []
    for reply in replies.sort_values("turn", kind="stable").to_dict("records"):
        context = list(reply["context"])
        overlap = min(len(earlier), len(context))
        while earlier[len(earlier) - overlap :] != context[:overlap]:
            overlap -= 1
        new = context[overlap:]
        speakers = ["User"] * len(new)
        if not earlier:
            speakers[:-1] = ["Earlier"] * (len(new) - 1)
        for speaker, text in zip(speakers, new, strict=True):
            lines.append(f"{speaker}: {_printable(text)}")
        lines.append(f"Bot: {_printable(reply['response'])}")
        earlier += [*new, reply["response"]]
    return lines


def _printable(text: str) -> str:
    """A text without what a spreadsheet refuses or drops: control characters and tabs."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
    return "".join(c for c in text if c == "\n" or unicodedata.category(c) != "Cc")


def split_cells(lines: list[str]) -> list[str]:
    """The lines of a dialog in as many cells as it takes to show all of it.

    >>> [len(cell) for cell in split_cells(["Bot: " + "x" * 4000, "Bot: short"])]
    [2800, 1227]
    """
    size = LINE_LENGTH * CELL_LINES
    cells = [""]
    height = 0
    for line in lines:
        # A line that fills more than a cell is cut; the rest of it begins with a word, since a
        # text that begins with "=" is a formula.
        pieces = [line[:size]]
        for start in range(size, len(line), size - 11):
            pieces.append(f"(continued){line[start : start + size - 11]}")
        for piece in pieces:
            needed = _height(piece)
            if height and height + needed > CELL_LINES:
                cells.append("")
                height = 0
            if height:
                cells[-1] += "\n"
            cells[-1] += piece
            height += needed
    return cells


def _height(text: str) -> int:
    """The lines that a text fills in a cell."""
    return sum(math.ceil(len(line) / LINE_LENGTH) or 1 for line in text.split("\n"))


def _cells_of_dialogs(turns: pd.DataFrame, key: SheetKey) -> dict[str, list[str]]:
    """The cells of each dialog of the key, as they are written."""
    names_of_id = {tuple(names): sheet_id for sheet_id, names in key.dialogs.items()}
    is_drawn = pd.MultiIndex.from_frame(turns[KEY]).isin(list(names_of_id))
    cells = {}
    for names, replies in turns[is_drawn].groupby(KEY, sort=False):
        cells[names_of_id[names]] = split_cells(dialog_lines(replies))
    return cells


def _text_columns(cells_of_id: dict[str, list[str]]) -> list[str]:
    """The names of the columns that hold the texts of the dialogs."""
    n_cells = max(len(cells) for cells in cells_of_id.values())
    return ["dialog", *(f"dialog {number}" for number in range(2, n_cells + 1))]


def _sheet_rows(
    turns: pd.DataFrame, key: SheetKey, ratings: pd.DataFrame | None
) -> list[list]:
    """The rows of a sheet, all of the same length: instruction, header, dialogs by id.

    The columns of those who rated before come first, then empty ones, so that there are at least
    as many as in `RATER_COLUMNS`.
    """
    cells = _cells_of_dialogs(turns, key)
    names = _text_columns(cells)
    rating_of = {}
    if ratings is not None:
        rating_of = _ratings_by_dialog_and_rater(ratings)
    earlier = list(dict.fromkeys(rater for *_, rater in rating_of))
    unused = [name for name in RATER_COLUMNS if name not in earlier]
    n_raters = max(len(earlier), len(RATER_COLUMNS))
    raters = [*earlier, *unused][:n_raters]
    instruction = INSTRUCTION.format(low=key.low, high=key.high)
    header = ["id", *raters, *names]
    rows: list[list] = [[instruction, *[""] * (len(header) - 1)], header]
    for sheet_id, dialog in key.dialogs.items():
        of_dialog = cells[sheet_id]
        empty = [""] * (len(names) - len(of_dialog))
        of_raters = [rating_of.get((*dialog, rater), "") for rater in raters]
        rows.append([sheet_id, *of_raters, *of_dialog, *empty])
    return rows


def _ratings_by_dialog_and_rater(ratings: pd.DataFrame) -> dict[tuple, float]:
    """Ratings by system, agent, dialog and the name of a rater's column."""
    rating_of = {}
    for row in ratings.to_dict("records"):
        rater = row["rater"]
        if not RATER.match(rater):
            rater = f"rater {rater}"
        dialog = [row[level] for level in KEY]
        rating_of[*dialog, rater] = row["rating"]
    return rating_of


def _write_csv(rows: list[list], path: Path) -> None:
    with (
        atomic_write(path) as unfinished,
        # With a byte order mark, or Excel takes the text for another encoding.
        unfinished.open("w", encoding="utf-8-sig", newline="") as file,
    ):
        csv.writer(file).writerows(rows)


def _write_excel(rows: list[list], path: Path, key: SheetKey) -> None:
    """Write the rows of `_sheet_rows` as a workbook that accepts only ratings on the scale."""
    from openpyxl import Workbook
    from openpyxl.worksheet.properties import PageSetupProperties

    header = rows[1]
    n_columns_in_view = header.index("dialog")  # ids and ratings
    book = Workbook()
    sheet = book.active
    sheet.title = "dialogs to rate"
    for row in rows:
        sheet.append([None if cell == "" else cell for cell in row])
    _format_cells(sheet, rows)
    # Header, ids and ratings stay in view beside a long dialog.
    sheet.freeze_panes = sheet.cell(row=3, column=n_columns_in_view + 1)
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    on_scale = _scale_validation(key)
    last_rating = sheet.cell(row=len(rows), column=n_columns_in_view).coordinate
    on_scale.add(f"B3:{last_rating}")
    sheet.add_data_validation(on_scale)
    with atomic_write(path) as unfinished:
        book.save(unfinished)


def _format_cells(sheet, rows: list[list]) -> None:
    """Set widths, heights and fonts: the instruction over all columns, long texts wrapped."""
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    bold = Font(name="Calibri", bold=True)
    wrapped = Alignment(wrap_text=True, vertical="top")
    header = rows[1]
    for number, name in enumerate(header, start=1):
        is_text = name.startswith("dialog")
        width = LINE_LENGTH if is_text else 12
        sheet.column_dimensions[get_column_letter(number)].width = width
        sheet.cell(row=2, column=number).font = bold
        for row in range(3, len(rows) + 1):
            cell = sheet.cell(row=row, column=number)
            cell.alignment = wrapped
            if is_text and cell.value:
                cell.data_type = "s"  # a text that begins with "=" is no formula
    for row, cells in enumerate(rows[2:], start=3):
        lines = max(_height(str(cell)) for cell in cells)
        sheet.row_dimensions[row].height = min(MAX_HEIGHT, 14 * lines + 4)
    sheet.cell(row=1, column=1).font = bold
    sheet.cell(row=1, column=1).alignment = wrapped
    sheet.merge_cells(start_row=1, end_row=1, start_column=1, end_column=len(header))
    sheet.row_dimensions[1].height = 36


def _scale_validation(key: SheetKey):
    """Excel's rule for a cell with a rating: empty, or a number on the scale."""
    from openpyxl.worksheet.datavalidation import DataValidation

    return DataValidation(
        type="decimal",
        operator="between",
        formula1=f"{key.low:g}",
        formula2=f"{key.high:g}",
        allow_blank=True,
        showErrorMessage=True,
        error=f"A number from {key.low:g} to {key.high:g}, or nothing.",
    )


def read_sheet_key(path: Path, turns: pd.DataFrame) -> SheetKey:
    """The key of a sheet.

    Raises:
        DataError: it is missing, cannot be read, or was made for other dialogs.
    """
    if not path.is_file():
        fix = (
            "say where it is, KEY=path; or make it again by RATE with the same file, number, SCALE "
            "and PREDICTOR, and with PAGE=another_name"
        )
        raise DataError("the key of the sheet is missing", path, fix=fix)
    try:
        key = SheetKey(**read_json(path))
    except (ValueError, TypeError) as error:
        fix = "take the file that RATE wrote: its name ends in _key.json"
        raise DataError(f"is no key of a sheet ({error})", path, fix=fix) from error
    if key.texts != hash_replies(turns):
        problem = f"is the key of other dialogs: {key.file}, read as they were then"
        fix = "give the file that the dialogs were drawn from, unchanged, with the same options"
        raise DataError(problem, path, fix=fix)
    return key


def read_rating_sheets(
    paths: list[Path], key: SheetKey, turns: pd.DataFrame
) -> pd.DataFrame:
    """The ratings of sheets that came back, from any spreadsheet: a row per rating.

    A sheet has either a column per rater, whose name begins with "rater", or a row per rater, with
    the columns id, rater and rating. Columns named notes or comments are ignored. Of several sheets
    each has raters of its own, and the file's name becomes a part of theirs.

    Args:
        paths: CSV, Excel or OpenDocument.
        key: of these sheets.
        turns: the dialogs that were drawn from.

    Returns:
        Columns system, agent, dialog, rater, rating; only ratings that are there.

    Raises:
        DataError: an unknown id, a rating that is no number or off the scale, a changed text, an
            unknown column, or a dialog twice; with the row as a spreadsheet numbers it. Nothing of
            any sheet is then used.
    """
    tables = []
    for path in paths:
        table = _read_sheet(path, key, turns)
        if len(paths) > 1:
            table["rater"] = path.name.partition(".")[0] + ": " + table["rater"]
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _read_sheet(path: Path, key: SheetKey, turns: pd.DataFrame) -> pd.DataFrame:
    """The ratings of one sheet."""
    rows = _cell_rows(path)
    header, records = _records(rows, path)
    by_row = "rating" in header
    rating_columns = [name for name in header if RATER.match(name)]
    if by_row:
        rating_columns = ["rating"]
    _check_columns(header, records, path)
    _check_ids(records, key, by_row, path)
    _check_texts(header, records, _cells_of_dialogs(turns, key), path)
    ratings = []
    for row, cells in records:
        names = dict(zip(KEY, key.dialogs[cells["id"]], strict=True))
        for column in rating_columns:
            rating = _rating_on_scale(cells[column], key, path, row, column)
            if not math.isnan(rating):
                rater = cells["rater"] if by_row else column
                ratings.append({**names, "rater": rater, "rating": rating})
    if not ratings:
        raise DataError("holds no rating", path, fix="rate some dialogs first")
    return pd.DataFrame(ratings)


def _cell_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows of a table with their numbers in the spreadsheet; cells without outer spaces."""
    if not path.is_file():
        raise DataError("is no file", path, fix="correct the path: RATINGS=...")
    report = ImportReport(path)
    table = read_contents(LogFile(path.name, path.read_bytes), report)
    if not isinstance(table, pd.DataFrame):
        raise DataError("is no table", path, fix="save it as .csv, .xlsx or .ods")
    blank = table.attrs.get("blank_rows", [])
    header_row = table.attrs.get("header_row", 1)
    below = np.arange(len(table) + len(blank)) + header_row + 1
    numbers = np.delete(below, blank)
    rows = [(header_row, [str(name) for name in table.columns])]
    for number, cells in zip(numbers, table.to_numpy().tolist(), strict=True):
        rows.append((int(number), [str(cell).strip() for cell in cells]))
    return rows


def _records(
    rows: list[tuple[int, list[str]]], path: Path
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The header, which the instruction may stand above, and a mapping per row below it."""
    headers = []
    for _, cells in rows[:10]:
        headers.append([_column_name(cell) for cell in cells])
    with_id = [position for position, names in enumerate(headers) if "id" in names]
    if not with_id:
        fix = "give the sheet that RATE wrote: its header has the columns id and dialog"
        raise DataError("the column id is missing", path, column="id", fix=fix)
    position = with_id[0]
    header = headers[position]
    for name in header:
        if name and header.count(name) > 1:
            fix = "give each column a name of its own"
            raise DataError("this column is there twice", path, column=name, fix=fix)
    records = []
    for row, cells in rows[position + 1 :]:
        records.append((row, dict(zip(header, cells, strict=True))))
    return header, records


def _column_name(cell: str) -> str:
    """The name of a column, in lower case where it is ours."""
    name = " ".join(cell.split())
    is_ours = re.fullmatch(r"id|rating|rater|dialog( \d+)?", name.lower())
    return name.lower() if is_ours or name.lower() in NOTES else name


def _check_columns(header: list[str], records: list, path: Path) -> None:
    """Refuse a sheet without a rating, and a column with cells that would not be read."""
    by_row = "rating" in header
    if by_row and "rater" not in header:
        fix = "add it: it says whose rating it is"
        raise DataError("this column is missing", path, column="rater", fix=fix)
    raters = [name for name in header if RATER.match(name)]
    if not raters:
        fix = 'name the column of each rater "rater ...", or add the columns rater and rating'
        raise DataError("has no column of a rater", path, fix=fix)
    if not by_row and "dialog" not in header:
        fix = "leave the texts in the sheet: they show that no row was shifted"
        raise DataError("this column is missing", path, column="dialog", fix=fix)
    rating_columns = ["rater", "rating"] if by_row else raters
    read = {"id", *rating_columns, *NOTES}
    for row, cells in records:
        for name, cell in cells.items():
            if cell and name not in read and not name.startswith("dialog"):
                fix = 'call it "rater ..." if it holds ratings, "notes" if it does not'
                problem = f"holds {cell[:20]!r} in a column that is not known"
                raise DataError(problem, path, row, name, fix)


def _check_ids(records: list, key: SheetKey, by_row: bool, path: Path) -> None:
    """Refuse unknown ids, and a dialog that is there twice (of one rater, with a row per rater)."""
    ids = [cells["id"] for _, cells in records]
    if ids and not set(ids) & set(key.dialogs):
        problem = (
            f"none of its ids is in the key, such as {ids[0]!r}: it is of another file"
        )
        fix = "give the dialogs that it was drawn from, or its own key: KEY=path"
        raise DataError(problem, path, records[0][0], "id", fix)
    row_of_cell: dict[tuple, int] = {}
    for row, cells in records:
        sheet_id = cells["id"]
        if sheet_id not in key.dialogs:
            fix = "restore the id of this row, or remove the row"
            raise DataError(f"{sheet_id!r} is not in the key", path, row, "id", fix)
        rater = cells["rater"] if by_row else ""
        if by_row and not rater:
            raise DataError("is empty", path, row, "rater", "name the rater")
        cell = (sheet_id, rater)
        if cell in row_of_cell:
            of_rater = f" of {rater}" if rater else ""
            problem = (
                f"{sheet_id!r} stands in row {row_of_cell[cell]} as well{of_rater}"
            )
            raise DataError(problem, path, row, "id", "remove one of the two rows")
        row_of_cell[cell] = row


def _check_texts(
    header: list[str], records: list, cells_of_id: dict[str, list[str]], path: Path
) -> None:
    """Refuse texts other than those that were written; white space does not count."""
    columns = [name for name in header if name.startswith("dialog")]
    if not columns:  # a row per rater needs no texts
        return
    needed = _text_columns(cells_of_id)
    for column in needed:
        if column not in columns:
            fix = "leave the texts in the sheet: they show that no row was shifted"
            raise DataError("this column is missing", path, column=column, fix=fix)
    for row, cells in records:
        written = cells_of_id[cells["id"]]
        for number, column in enumerate(needed):
            expected = written[number] if number < len(written) else ""
            text = _plain(cells[column])
            if text == _plain(expected):
                continue
            same = len(commonprefix([text, _plain(expected)]))
            start = max(0, same - 20)
            text_there = text[start : same + 20]
            problem = f"text is not what was written for this id: {text_there!r}"
            written_there = _plain(expected)[start : same + 20]
            fix = f"restore it, it was {written_there!r}; sort only whole rows, and save as UTF-8"
            raise DataError(problem, path, row, column, fix)


def _plain(text: str) -> str:
    """A text whose white space and forms of letters no program changes."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _rating_on_scale(
    cell: str, key: SheetKey, path: Path, row: int, column: str
) -> float:
    """A rating, NaN for an empty cell."""
    rating = parse_rating(with_point(cell))
    fix = (
        f"put a number from {key.low:g} to {key.high:g} there, or leave the cell empty"
    )
    if type(rating) is not float:
        raise DataError(
            f"rating is {cell[:40]!r}, not a number", path, row, column, fix
        )
    if rating < key.low or rating > key.high:
        problem = f"rating {rating:g} is off the scale {key.low:g} to {key.high:g}"
        raise DataError(problem, path, row, column, fix)
    return rating
