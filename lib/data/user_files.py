"""Read a user's own file or folder as a turn table, with nothing guessed or lost in silence."""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.chat_logs import (
    examples,
    read_dialogs,
    records,
    request_kind,
    spellings_of_formats,
    unfold_all,
    without_wrapping,
)
from lib.data.corpora import report_row, snake_case
from lib.data.dialogs import (
    MAX_CONTEXT,
    MESSAGE_RECORD,
    Dialog,
    Rating,
    is_newest_first,
    keep_last_versions,
    parse_gap,
    put_in_order,
    read_written_times,
    reply_rows,
    speaker_role,
    split_at_gaps,
)
from lib.data.file_contents import (
    ImportOptions,
    ImportReport,
    UnknownFormat,
    parse_list,
    read_contents,
)
from lib.data.log_comparisons import with_row_per_reply, with_sides_a_and_b
from lib.data.log_files import LogFile, Source, find_files
from lib.data.log_messages import text_from_json
from lib.data.log_parts import (
    DECIMAL_COMMA,
    RATERS,
    RATING_BY,
    RATING_DIMENSIONS,
    RATING_NAME,
    RATING_VALUES,
    SPEAKER_START,
    SYNONYMS,
    TIME,
    TURN,
    first_value,
    is_word_of_opinion,
    named_ratings,
    opinion_number,
    read_ratings,
    to_number,
    with_line_per_speaker,
    with_point,
    without_html,
)
from lib.data.log_tables import (
    MAX_VERSIONS,
    with_crowd_columns,
    with_qualtrics_columns,
)
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

UNIEVAL = {"context": "source", "fact": "context", "response": "system_output"}
DIMENSIONS = (*RATING_DIMENSIONS, "attribute", "rating_dimension", "quality")
NO_RATING = {"", "-", "–", "—", ".", "na", "n/a", "nan", "null", "none"}
LONG_PAUSE = "gap:6h"
OPINION = re.compile(  # what a field may be called that holds a rating, or a metric's score
    "(.*_)?(score|grade|eval|evaluation|stars?|(up_?|down_?)?vote[sd]?|(dis)?like[sd]?|reactions?|thumbs?(_up|_down)?"
    "|satisfaction|csat|nps|overall|quality|label|kto_tag|preference|accept(ed|ance)|feedback_type"
    "|helpful(ness)?|coheren(t|ce)|correct(ness)?|relevan(t|ce)|fluen(t|cy)|engaging(ness)?"
    "|appropriate(ness)?|natural(ness)?"
    "|note|nota|avis|bewertung|zufriedenheit|calificaci[oó]n|valoraci[oó]n|satisfac\\w+|valutazione"
    "|avaliação|ocena|оценка|评分|評価|평점)|.*(评分|評価|평점)"
)
VERSION_NAME = re.compile(  # what a field may be called that tells versions, or what else does
    "(.*_)?(condition|treatment|arm|cohort|experiment|ab_(test|group|variant)|deployment|variant"
    "|condici[oó]n|condição|bedingung|条件|组别)"
    "|model_type|(chat)?bot_?(id|name|version)|(assistant|agent|prompt|app|config)_?(id|name|version)"
)
SMALL_NUMBER = re.compile(r"[+-]?\d{1,2}([.,]\d{1,2})?")
NO_RATING_NAME = re.compile(  # a number that is none of a rating
    "(^|_)(id|nr|no|num|number|index|idx|key|age|year|month|day|hour|seed|line|page|step|round|level|fold"
    "|rank|port|group|batch|task|item|temperature|top_p|top_k)(_|$)|human_|score_|count|token|length"
    "|(^|_)n_|(^|_)trust(ed)?(_|$)|time|date|duration|second|latency|cost|price|confid|prob|version|speaker|user_|_id"
)
OPINIONS = re.compile(
    f"{RATING_NAME.pattern}|(.*_)?ratings|annotations|reactions?|feedbacks?|feedback_scores?"
)
# Between the utterances of a context, as corpora write them: unlike words of anybody.
DIVIDERS = ("__eot__", "__eou__", "|||", "[SEP]", "<sep>", "<|endoftext|>", "</s>")
MAX_RATERS = 20  # of one reply, in a list
SCALARS = (str, int, float)
MAX_SCALE = 21  # values of a scale
# What people clicked, in a list or mapping.
COUNTED_OPINIONS = ("reactions", "votes", "likes")
# So many records of a file, and of a list in it, are looked at for such fields.
OPINION_RECORDS = 200
OPTIONS = [option.name for option in fields(ImportOptions) if option.name != "columns"]


def read_turns(
    path: Path | str,
    columns: Mapping[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    options: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    r"""A turn table from a log of dialogs, a table with one row per reply, or a folder of them.

    Logs are those of `lib.data.chat_logs` (exports of assistants, messengers and platforms, traces,
    corpora, transcripts, tables by utterance or by exchange): each reply of the bot is a row, what
    was said before is its context. What can be read in two ways is refused with both named.
    Tables are CSV, TSV, Excel, Parquet or JSON; they need `system`, `dialog` and `response`;
    `agent` is the system if absent, `turn` the number of context utterances (or the position within
    the dialog, without `context`). In a cell `context` is a list (as JSON or Python write it) or
    one utterance per line; `reference` and `fact` are a list or one text. Columns of other names
    stay unchanged. Rows of the same reply by several raters become one with their mean. Any of
    these may be packed by gzip, zstd, xz, bz2 or zip.

    An empty rating (also NA, N/A, NaN, null, None) is NaN, an empty response stays; both are
    counted: `import_report(turns)` says what was read, kept and excluded, and
    `turns.attrs["guesses"]` what was guessed, why, and which name in `options` changes it;
    `turns.attrs["ratings"]` has the single ratings (row, rater, dimension, rating), as columns;
    `turns.attrs["newest"]` is the day of a log's newest utterance.

    Args:
        path: the file or folder; the ending of a name tells tables from JSON and text.
        columns: our column name to the file's, for instance `{"response": "bot_reply"}`; also
            `speaker`, `text`, `dialog`, `time`, `id`, `reply_to`, `rating` and `rater` of an
            utterance, and `messages` for the field of a record that holds them.
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
    files = _find_files(report)
    if not files:
        raise DataError("holds no files", path, fix="name the file with the dialogs")
    dialogs, tables, rating_names, version_names = _read_files(files, report, scale)
    dialogs = _in_order(dialogs, report)
    rows = list(reply_rows(dialogs, report)) if dialogs else []
    if rows:
        tables.append(_log_table(rows, report, scale))
        if not any(row["context"] for row in rows):
            reason = "nothing stands before any reply"
            report.decide("columns", "context: none", reason)
    if not tables:
        fix = f"write it like this:\n{examples({})}"
        raise DataError("holds no reply of a bot", path, fix=fix)
    turns = pd.concat(tables, ignore_index=True)
    if len(tables) > 1:
        validate(turns, file=path)
    if rating_names and not turns.filter(regex="^human_").notna().to_numpy().any():
        reason = f"{', '.join(sorted(rating_names))} is not read"
        report.decide("columns", "rating: none", reason)
    if version_names and turns["system"].nunique() == 1:
        reason = f"{', '.join(sorted(version_names))} may tell versions"
        report.decide("columns", "system: one", reason)
    guesses = [[*guess, count] for guess, count in report.guesses.items()]
    turns.attrs = {
        "report": _report_rows(turns, report),
        "columns": report.columns,
        "guesses": guesses,
        "ratings": _single_ratings(tables),
        "newest": _newest_day(dialogs),
    }
    return turns


def _read_files(
    files: Mapping[str, LogFile], report: ImportReport, scale
) -> tuple[list[Dialog], list[pd.DataFrame], set[str], set[str]]:
    """The dialogs and the tables of replies in files, and the fields that are called ratings.

    Last are the fields that may tell versions.

    The requests of a folder are read together: one file may go on from another, or repeat it.

    Raises:
        DataError: for a single file, or where none of several can be read.
    """
    dialogs: list[Dialog] = []
    tables = []
    rating_names: set[str] = set()
    version_names: set[str] = set()
    requests: dict[tuple, tuple[Source, list[dict]]] = {}
    unknown: dict[str, DataError] = {}
    for file in files.values():
        source = Source(file, report, files)
        try:
            value = read_contents(file, report)
            if isinstance(value, pd.DataFrame):
                value = with_qualtrics_columns(value, report)
                value = _in_small_letters(value, report)
                value = with_crowd_columns(value, report)
                value = with_row_per_reply(with_sides_a_and_b(value, report), report)
            value = without_wrapping(value, source)
            rating_names |= _tell_unread_opinions(value, report)
            version_names |= _version_fields(value)
            kind = request_kind(value) if len(files) > 1 else None
            if kind:
                first_source, rows = requests.setdefault(
                    (file.folder, kind), (source, [])
                )
                first_source.spans_files = bool(rows)
                rows += records(value)
            else:
                dialogs += _read_file(value, source, tables, scale)
            report.kept["files"] += len(files) > 1
        except DataError as error:
            if len(files) == 1:
                raise _with_file(error, file, report) from error
            unknown[file.name] = error
    _tell_shared_ids(dialogs, files, report)
    for source, rows in requests.values():
        try:
            dialogs += _read_file(rows, source, tables, scale)
        except DataError as error:
            raise _with_file(error, source.file, report) from error
    _count_unknown(unknown, files, report)
    return dialogs, tables, rating_names, version_names


def _tell_shared_ids(
    dialogs: list[Dialog], files: Mapping[str, LogFile], report: ImportReport
) -> None:
    """Say how many ids of dialogs stand in several files, and are dialogs of their own in each."""
    if len(files) < 2:
        return
    paths = {name.rpartition(".")[0] or name for name in files}
    of_files: dict[str, set[str]] = {}
    for dialog in dialogs:
        path, _, name = dialog.id.rpartition("/")
        if path in paths and not name.isdecimal():
            of_files.setdefault(name, set()).add(path)
    shared = sum(len(paths_of_id) > 1 for paths_of_id in of_files.values())
    if shared:
        reason = f"{shared} ids stand in several files: in each of a dialog of its own"
        report.decide("columns", "dialog: by file", reason)


def _in_small_letters(table: pd.DataFrame, report: ImportReport) -> pd.DataFrame:
    """A table with names in small letters where all are in capitals, as some databases have them.

    A name that a format writes otherwise, such as chatId, is written so. What the user says of
    columns means the same ones.
    """
    names = [name for name in map(str, table) if name.lower() != name.upper()]
    if len(names) < 2 or not all(name.isupper() for name in names):
        return table
    spellings = spellings_of_formats()

    def small(name: Any) -> str:
        return spellings.get(str(name).lower(), str(name).lower())

    of_user = {ours: small(name) for ours, name in report.options.columns.items()}
    report.options = replace(report.options, columns=of_user)
    report.guesses["columns", "names in small letters", "all are in capitals"] += 1
    attrs = table.attrs
    table = table.rename(columns=small)
    table.attrs = attrs
    return table


def _read_file(
    value: Any, source: Source, tables: list[pd.DataFrame], scale
) -> list[Dialog]:
    """The dialogs in what a file holds; a table of replies is added to `tables`."""
    dialogs = read_dialogs(value, source)
    if dialogs is None:
        tables.append(_reply_table(value, source, scale))
        return []
    return _with_ids(dialogs, source)


def _tell_unread_opinions(value: Any, report: ImportReport) -> set[str]:
    """Say which fields may hold what people thought of a reply, but are not read as ratings.

    Returns:
        Fields that are called ratings, wherever they stand: a format may read them.
    """
    items = [value]
    unread = set()
    if isinstance(value, pd.DataFrame):
        items = records(value.head(OPINION_RECORDS))
        unread |= _rating_like(value)
    elif isinstance(value, list):
        items = value[:OPINION_RECORDS]
    opinions, ratings = _opinion_fields(items)
    unread = sorted((unread | opinions) - set(report.options.columns.values()))
    if unread:
        reason = f"{', '.join(unread)} may be people's ratings, or scores of a model"
        report.decide("columns", "rating: none", reason)
    return ratings


def _version_fields(value: Any) -> set[str]:
    """The fields whose few values may tell versions of a bot, or conditions of a study."""
    items = [value]
    if isinstance(value, pd.DataFrame):
        items = records(value.head(OPINION_RECORDS))
    values: dict[str, set[str]] = {}
    while items:
        item = items.pop()
        if isinstance(item, list):
            items += item[:OPINION_RECORDS]
        if not isinstance(item, dict):
            continue
        for name, cell in item.items():
            if isinstance(cell, list | dict):
                items.append(cell)
            elif isinstance(cell, str | int) and VERSION_NAME.fullmatch(
                snake_case(name)
            ):
                values.setdefault(name, set()).add(str(cell))
    return {name for name, cells in values.items() if 1 < len(cells) <= MAX_VERSIONS}


def _opinion_fields(items: list) -> tuple[set[str], set[str]]:
    """The names of fields with opinions that are not read, and of those that are called ratings."""
    opinions = set()
    ratings = set()
    while items:
        item = items.pop()
        if isinstance(item, list):
            items += item[:OPINION_RECORDS]
        if not isinstance(item, dict):
            continue
        for name, cell in item.items():
            key = snake_case(name)
            nested = type(cell) in (dict, list)
            if cell and nested and OPINIONS.fullmatch(key):
                (ratings if read_ratings({name: cell}) else opinions).add(name)
            elif cell and nested and key in COUNTED_OPINIONS:
                opinions.add(name)
            elif isinstance(cell, list):
                items += cell[:OPINION_RECORDS]
                if cell and OPINION.fullmatch(key) and all(map(_is_opinion, cell)):
                    opinions.add(name)
            elif isinstance(cell, dict):
                items.append(cell)
            elif RATING_NAME.fullmatch(key) and _is_opinion(cell):
                ratings.add(name)
            elif name.startswith("score_"):
                continue
            elif OPINION.fullmatch(key) and _is_opinion(cell):
                opinions.add(name)
    return opinions, ratings


def _rating_like(table: pd.DataFrame) -> set[str]:
    """Columns of an unknown name whose cells are few small numbers, stars or thumbs."""
    known = {*" ".join(SYNONYMS.values()).split(), *SYNONYMS, *TURN, *TIME, *RATERS}
    names = set()
    for name in table.loc[:, ~table.columns.duplicated()]:
        key = snake_case(str(name))
        if not key:
            continue  # the numbers of rows, as R writes them
        if key in known or RATING_NAME.fullmatch(key) or NO_RATING_NAME.search(key):
            continue
        if RATING_BY.fullmatch(key) or key.startswith("winner"):
            continue  # which are read
        values = [cell for cell in table[name].head(2000) if type(cell) in SCALARS]
        cells = [str(cell).strip() for cell in values if not is_blank(cell)]
        few = len(cells) > 1 and len(set(cells)) <= MAX_SCALE
        if few and all(map(_is_small_rating, cells)):
            names.add(str(name))
    return names


def _is_small_rating(cell: str) -> bool:
    """Whether a cell is a small number, stars or a thumb."""
    is_number = SMALL_NUMBER.fullmatch(cell[:10]) is not None
    return is_number or any(mark in cell[:10] for mark in "👍👎★⭐")


def _is_opinion(cell: Any) -> bool:
    """Whether a cell holds a number, true or false, stars, a thumb or a letter as a grade."""
    if not isinstance(cell, str):
        return type(cell) in (int, float, bool) and not math.isnan(cell)
    text = cell[:40].strip()
    is_number = re.fullmatch(r"[+-]?\d{1,3}([.,]\d+)?", text) is not None
    is_grade = re.fullmatch("[A-Fa-f][+-]?", text) is not None
    return is_number or is_grade or opinion_number(cell) is not None


def _newest_day(dialogs: list[Dialog]) -> str:
    """The day of the newest utterance, such as "2026-03-31"; "" where none has a time."""
    times = []
    for dialog in dialogs:
        times += [utterance.time for utterance in dialog.utterances if utterance.time]
    return max(times).date().isoformat() if times else ""


def _find_files(report: ImportReport) -> dict[str, LogFile]:
    try:
        return {file.name: file for file in find_files(report.path, report)}
    except OSError as error:
        fix = "correct the path"
        raise DataError(
            f"is not a readable file ({error})", report.path, fix=fix
        ) from error


def _with_file(error: DataError, file: LogFile, report: ImportReport) -> DataError:
    """The same error, with the file where it names none and the other sheets of a workbook."""
    if error.file is not None and not report.sheets:
        return error
    path = report.file_path(file)
    fix = error.fix
    if len(report.sheets) > 1:
        fix = f"{fix}; or take another sheet: SHEET=... (there are {', '.join(report.sheets)})"
    return type(error)(error.problem, path, error.row, error.column, fix)


def _count_unknown(
    unknown: Mapping[str, DataError], files: Mapping, report: ImportReport
) -> None:
    """Count the files of a folder that hold no dialogs or cannot be read, with the reason.

    Raises:
        DataError: the first one's, where no file can be read.
    """
    if unknown and len(unknown) == len(files):
        name, error = next(iter(unknown.items()))
        raise _with_file(error, files[name], report)
    for name, error in unknown.items():
        if name in report.used:
            continue  # it was read for another one
        reason = f"cannot be read: {error.problem}"
        if isinstance(error, UnknownFormat):
            reason = "hold no dialogs"
        report.excluded["files", f"{reason} ({name!a})".replace("'", "")] += 1


def _with_ids(dialogs: list[Dialog], source: Source) -> list[Dialog]:
    """Dialogs with ids that differ between files: those of a file begin with its name.

    Not so where a dialog spans files, or where the name of the file's folder is an id.
    """
    prefix = ""
    if len(source.files) > 1 and not source.spans_files and not source.folder_id:
        prefix = f"{source.file.name.rpartition('.')[0] or source.file.name}/"
    given = {dialog.id for dialog in dialogs}
    for number, dialog in enumerate(dialogs, start=1):
        name = dialog.id or str(number)
        if not dialog.id and name in given:
            name = f"record {number}"
        dialog.id = prefix + name
    return dialogs


def _in_order(dialogs: list[Dialog], report: ImportReport) -> list[Dialog]:
    """Dialogs in the order of time; parts of one from several files joined; split at pauses.

    Raises:
        DataError: for a pause in `split` where no utterance has a time.
    """
    threads: dict[str, Dialog] = {}
    ordered = []
    for dialog in dialogs:
        if dialog.spans_files and dialog.id in threads:
            threads[dialog.id].utterances += dialog.utterances
        else:
            threads[dialog.id] = dialog
            ordered.append(dialog)
    take_words_of_html(ordered, report)
    read_written_times(ordered)
    keep_last_versions(ordered, report)
    newest_first = is_newest_first(ordered)
    for dialog in ordered:
        note = "dialogs were put in the order of their times"
        report.notes[note] += put_in_order(dialog, newest_first)
    gap = parse_gap(report.options.split)
    parts = []
    for dialog in ordered:
        parts += split_at_gaps(dialog, gap or parse_gap(LONG_PAUSE))
    if gap:
        utterances = chain.from_iterable(dialog.utterances for dialog in ordered)
        if not any(utterance.time for utterance in utterances):
            raise DataError(
                "has no times to split at", report.path, fix="leave SPLIT out"
            )
        report.decide("split", report.options.split, "")
        return parts
    if len(parts) > len(ordered):
        text = f"{len(parts)} parts, were it split at pauses: SPLIT={LONG_PAUSE}"
        report.decide("split", "none", text)
    return ordered


def take_words_of_html(dialogs: list[Dialog], report: ImportReport) -> None:
    """Replace utterances that are HTML by their words, and count them."""
    for dialog in dialogs:
        for utterance in dialog.utterances:
            words = without_html(utterance.text)
            report.notes["were HTML, whose words stay"] += words != utterance.text
            utterance.text = words


def _log_table(rows: list[dict], report: ImportReport, scale) -> pd.DataFrame:
    """The turn table of a log's replies; a rating there that is no number is missing."""
    ratings: dict[str, list] = {"row": [], "rater": [], "dimension": [], "rating": []}
    for number, row in enumerate(rows):
        values: dict[str, list[float]] = {}
        words = set()
        for rating in row.pop("ratings"):
            value = _log_rating(rating, report)
            if math.isnan(value) and str(rating.value).strip().lower() not in NO_RATING:
                words.add(f"human_{snake_case(rating.dimension)}")
            values.setdefault(f"human_{snake_case(rating.dimension)}", []).append(value)
            if not math.isnan(value):
                entry = (number, rating.rater, snake_case(rating.dimension), value)
                for name, cell in zip(ratings, entry, strict=True):
                    ratings[name].append(cell)
        for name, numbers in values.items():
            row[name] = numbers[0]
            if len(numbers) > 1:
                row[name] = float(pd.Series(numbers).mean())
            report.no_numbers[name] += name in words and math.isnan(row[name])
    table = _typed(pd.DataFrame(rows, dtype=object), report.path, {}, scale)
    table.attrs["ratings"] = ratings
    return table


def _log_rating(rating: Rating, report: ImportReport) -> float:
    """A rating of a log as a number; NaN, counted, where it is none."""
    value = rating.value
    opinion = opinion_number(value)
    if opinion is not None:
        return opinion
    number = parse_rating(with_point(value) if isinstance(value, str) else value)
    if type(number) is float and not math.isinf(number):
        return number
    report.excluded["ratings", f"are no numbers, such as {str(value)[:20]!r}"] += 1
    return math.nan


def _single_ratings(tables: list[pd.DataFrame]) -> dict[str, list]:
    """The ratings of single raters, by the row of the whole table."""
    ratings: dict[str, list] = {"row": [], "rater": [], "dimension": [], "rating": []}
    start = 0
    for table in tables:
        for name, cells in table.attrs.get("ratings", {}).items():
            if name == "row":
                cells = [start + row for row in cells]
            ratings[name] += cells
        start += len(table)
    return ratings


def _reply_table(value: Any, source: Source, scale) -> pd.DataFrame:
    """The turn table of a table with one row per reply."""
    report = source.report
    file = report.file_path(source.file)
    report.decide("kind", "table", "one row per reply")
    from_records = not isinstance(value, pd.DataFrame)
    if from_records:
        rows = []
        for row in unfold_all(records(value)):
            ratings = {
                f"human_{name}": cell for name, cell in named_ratings(row).items()
            }
            rows.append(row | ratings)
        value = pd.DataFrame(rows, dtype=object)
    if value.empty:
        fix = "export it again: it has a header only"
        raise DataError("has no rows", file, fix=fix)
    cells = value.where(value.notna(), None)
    columns = dict(report.options.columns)
    if "rating" in columns:
        columns["human_rating"] = columns.pop("rating")
    suggested = suggest_columns(cells, columns)
    suggested |= _rating_columns(cells, {**columns, **suggested}, report)
    spoken = _dialog_in_words(cells, {**columns, **suggested})
    if spoken and "dialog" not in columns:
        suggested.pop("dialog", None)
        suggested["context"] = spoken
    if suggested:
        text = " ".join(f"{column}={name!r}" for column, name in suggested.items())
        report.decide("columns", text, "by their names")
    names_in_file = {**columns, **suggested}
    for name in ("context", "dialog"):  # that there is none is said by "none"
        if names_in_file.get(name) == "none":
            del names_in_file[name]
    report.columns |= names_in_file
    cells = _rename(cells, file, names_in_file)
    if from_records:
        name = names_in_file.get("response", "response")
        with_reply = pd.Series([name in row for row in rows], cells.index)
        reason = "are records without a reply"  # FED's rate whole dialogs
        report.excluded["responses", reason] += int((~with_reply).sum())
        cells = cells[with_reply].reset_index(drop=True)
    cells = _with_words_of_records(cells, report)
    cells = _with_dimensions(cells, report)
    cells = _with_divided_contexts(cells, report)
    cells = _with_key(cells, file, report)
    cells = _without_names(cells, report)
    cells = _with_decimal_points(cells, report)
    cells = _with_numbers(cells)
    by_rater = _ratings_by_column(cells)
    if by_rater["row"]:
        report.decide("columns", "a column per rater", "by their names")
        cells = cells.assign(human_rating=_lists_of_rows(by_rater, len(cells)))
    cells, ratings = _join_raters(cells, report)
    if by_rater["row"] and len(cells) == len(value):
        ratings = by_rater
    if not ratings:
        ratings = _ratings_in_lists(cells)
    turns = _typed(cells, file, names_in_file, scale)
    if len(source.files) > 1:
        turns["dialog"] = f"{source.file.name.rpartition('.')[0]}/" + turns["dialog"]
    turns.attrs["ratings"] = ratings
    return turns


def _with_words_of_records(cells: pd.DataFrame, report: ImportReport) -> pd.DataFrame:
    """Cells with the words of replies that were written as records of messages."""
    replies = cells.get("response", pd.Series(dtype=object))
    is_record = replies.map(lambda cell: bool(MESSAGE_RECORD.match(str(cell))))
    if not is_record.any():
        return cells
    report.decide("columns", "response: words", "of messages with a role")
    words = [text_from_json(cell) for cell in replies[is_record]]
    cells = cells.copy()
    cells.loc[is_record, "response"] = pd.Series(words, replies.index[is_record])
    return cells


def _rating_columns(
    cells: pd.DataFrame, mapped: Mapping[str, str], report: ImportReport
) -> dict[str, str]:
    """Our column name -> the file's, for people's ratings that are not called human_...

    These are `rating` and `feedback` (a number, stars, a thumb; no comments), as in logs, and lists
    of one number per rater, where one of them has the name of a quality.
    """
    found = {}
    lists = {}
    words = []
    for name in cells:
        key = snake_case(name)
        values = [cell for cell in cells[name] if not _is_no_rating(cell)]
        if name in mapped.values() or not values or key.startswith("human_"):
            continue
        if all(_is_number_list(value) for value in values):
            lists[f"human_{key}"] = name
        elif RATING_NAME.fullmatch(key) and not RATING_BY.fullmatch(key):
            if all(_is_opinion(value) for value in values):
                found[f"human_{key}"] = name
            else:
                words.append(name)
    if words:
        reason = f"{', '.join(words)} holds words: write numbers"
        report.decide("columns", "rating: none", reason)
    if any(OPINION.fullmatch(snake_case(name)) for name in lists.values()):
        found |= lists
    return {column: name for column, name in found.items() if column not in mapped}


def _dialog_in_words(cells: pd.DataFrame, names: Mapping[str, str]) -> str | None:
    """The column called dialog where it holds what was said, and no other column is the context."""
    name = names.get("dialog", "dialog")
    if name not in cells or "context" in {*names, *cells}:
        return None
    sides = list(map(_role_of_side, _line_names(cells[name])))
    return name if len(sides) - sides.count(None) > len(sides) / 2 else None


def _is_no_rating(cell: Any) -> bool:
    """Whether a cell is empty or says that there is no rating."""
    return not isinstance(cell, list) and str(cell or "").lower() in NO_RATING


def _is_number_list(cell: Any) -> bool:
    """Whether a cell holds a list of a few numbers, as of several raters."""
    if isinstance(cell, str) and cell.startswith("["):
        cell = parse_list(cell)
    if not isinstance(cell, list) or not 1 < len(cell) <= MAX_RATERS:
        return False
    return all(type(item) in (int, float) for item in cell)


def _ratings_by_column(cells: pd.DataFrame) -> dict[str, list]:
    """The ratings in columns of one rater each; none where another column has the ratings."""
    ratings: dict[str, list] = {"row": [], "rater": [], "dimension": [], "rating": []}
    if "human_rating" in cells:
        return ratings
    for number, row in enumerate(records(cells)):
        by_name = {
            name: row[name] for name in row if RATING_BY.fullmatch(snake_case(name))
        }
        for rating in read_ratings(by_name):
            value = to_number(rating.value)
            if value is not None:
                entry = (number, rating.rater, rating.dimension, value)
                for name, cell in zip(ratings, entry, strict=True):
                    ratings[name].append(cell)
    return ratings


def _ratings_in_lists(cells: pd.DataFrame) -> dict[str, list]:
    """The single ratings of cells that hold a list of them, of raters without a name."""
    ratings: dict[str, list] = {"row": [], "rater": [], "dimension": [], "rating": []}
    for name in cells:
        if not name.startswith("human_"):
            continue
        for number, cell in enumerate(cells[name]):
            if not _is_number_list(cell):
                continue
            values = parse_list(cell) if isinstance(cell, str) else cell
            for value in values:
                entry = (number, None, name.removeprefix("human_"), float(value))
                for column, item in zip(ratings, entry, strict=True):
                    ratings[column].append(item)
    return ratings


def _lists_of_rows(ratings: Mapping[str, list], n_rows: int) -> list[list[float]]:
    """The single ratings of each row."""
    lists: list[list[float]] = [[] for _ in range(n_rows)]
    for row, value in zip(ratings["row"], ratings["rating"], strict=True):
        lists[row].append(value)
    return lists


def _with_numbers(cells: pd.DataFrame) -> pd.DataFrame:
    """Ratings that are stars, thumbs or such as "4/5" as numbers; what is none stays.

    Words such as "good" stay too where others are numbers: 1 is not "good" on their scale.
    """
    changed = {}
    for column in cells:
        if not column.startswith("human_"):
            continue
        filled = [cell for cell in cells[column] if not _is_no_rating(cell)]
        only_words = all(is_word_of_opinion(cell) for cell in filled)
        numbers = []
        for cell in cells[column]:
            number = opinion_number(cell) if isinstance(cell, str) else None
            in_words = is_word_of_opinion(cell) and not only_words
            numbers.append(cell if number is None or in_words else number)
        changed[column] = numbers
    return cells.assign(**changed)


def _with_dimensions(cells: pd.DataFrame, report: ImportReport) -> pd.DataFrame:
    """A row per reply and rater, where there is one per dimension, too, with its name in a column.

    Each dimension becomes a column of ratings.
    """
    names = {snake_case(name): name for name in cells}
    rater = first_value(names, RATERS)
    dimension = first_value(names, DIMENSIONS)
    values = first_value(names, (*RATING_VALUES, "human_rating"))
    if rater is None or dimension is None or values is None:
        return cells
    numbers = cells[values].map(parse_rating)
    ratings = cells[cells.columns.difference([dimension, values], sort=False)]
    groups = ratings.map(repr).groupby(list(ratings), sort=False).ngroup()
    joined = ratings[~groups.duplicated()].reset_index(drop=True)
    for name, of_dimension in numbers.groupby(cells[dimension].map(str)):
        by_group = of_dimension.groupby(groups[of_dimension.index]).first()
        joined[f"human_{snake_case(name)}"] = by_group.reindex(range(len(joined)))
    report.decide("columns", f"ratings={values!r} of {dimension!r}", "by their names")
    return joined


def _join_raters(
    cells: pd.DataFrame, report: ImportReport
) -> tuple[pd.DataFrame, dict]:
    """One row per reply, where there is one per rater: its ratings become a list of them all.

    Rows are of the same reply if system, dialog, turn, context and response are the same. Without
    a column of raters that must be so for the turn too, as a bot may say the same twice.

    Raises:
        DataError: replies have several raters, and no column has their ratings.
    """
    names = {snake_case(name): name for name in cells}
    rater = first_value(names, RATERS)
    dimensions = [name for name in cells if name.startswith("human_")]
    key = [name for name in (*KEY, "context", "response") if name in cells]
    if rater and not dimensions and cells[key].map(repr).duplicated().any():
        may_be = sorted(_rating_like(cells) - {*KEY, rater})
        named = [f"human_{snake_case(name)}={name}" for name in may_be]
        raise DataError(
            f"has rows of the same reply by several raters ({rater}), and no column of ratings",
            report.path,
            fix=f'name it: COLUMNS="{" ".join(named) or "rating=..."}"',
        )
    if not dimensions or (rater is None and "turn" not in cells):
        return cells, {}
    replies = cells[key].map(repr)
    if rater is not None:
        # The second time that a rater rates the same words, it is another reply.
        replies["use"] = (
            replies.assign(rater=cells[rater].map(str))
            .groupby([*key, "rater"])
            .cumcount()
        )
    groups = replies.groupby(list(replies), sort=False).ngroup()
    if groups.nunique() == len(cells) and rater is None:
        return cells, {}
    if groups.nunique() < len(cells):
        reason = "rows of the same reply are joined, and their ratings averaged"
        report.decide(
            "columns", f"rater={rater!r}" if rater else "a row per rater", reason
        )
    joined, ratings = _joined_rows(cells, groups, dimensions, rater)
    if len(joined) < len(cells):
        n_read = len(ratings["rating"])
        n_empty = int(cells[dimensions].map(_is_no_rating).to_numpy().sum())
        report.kept["single ratings"] += n_read
        report.excluded["single ratings", "are empty"] += n_empty
    return joined, ratings


def _joined_rows(cells, groups: pd.Series, dimensions: list[str], rater) -> tuple:
    """The first row of each group with lists of ratings, and each rating with its rater."""
    joined = cells[~groups.duplicated()].reset_index(drop=True).astype(object)
    ratings: dict[str, list] = {"row": [], "rater": [], "dimension": [], "rating": []}
    for name in dimensions:
        values: list[list] = [[] for _ in range(len(joined))]
        for number, group in enumerate(groups):
            value = parse_rating(cells[name].iloc[number])
            values[group].append(value)
            if type(value) is float and not math.isnan(value):
                ratings["row"].append(int(group))
                ratings["rater"].append(
                    None if rater is None else str(cells[rater].iloc[number])
                )
                ratings["dimension"].append(name.removeprefix("human_"))
                ratings["rating"].append(value)
        for group, numbers in enumerate(values):
            wrong = [value for value in numbers if type(value) is not float]
            joined.at[group, name] = wrong[0] if wrong else numbers
    return joined, ratings


def suggest_columns(names: Iterable[str], mapped: Mapping[str, str]) -> dict[str, str]:
    """Our column name -> the file's, for names that mean one of ours; none where all is clear.

    Args:
        names: the columns of the file.
        mapped: those that are mapped already, in the same form.

    >>> suggest_columns(["Conversation ID", "reply", "human overall", "notes"], {})
    {'human_overall': 'human overall', 'response': 'reply', 'dialog': 'Conversation ID'}
    """
    free = {snake_case(name): name for name in names if name not in mapped.values()}
    suggested = {
        column: name for column, name in free.items() if column.startswith("human_")
    }
    if set(UNIEVAL.values()) <= set(free):  # its files call the knowledge context
        for column, name in UNIEVAL.items():
            if column not in mapped:
                suggested[column] = free[name]
    is_clear = {"system", "dialog", "response"} <= {*free.values(), *mapped}
    for column in ["context"] if is_clear else SYNONYMS:
        if column in mapped or column in suggested:
            continue
        for name in [column, *SYNONYMS[column].split()]:
            if name in free and free[name] not in suggested.values():
                suggested[column] = free[name]
                break
    return {column: name for column, name in suggested.items() if column != name}


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
        contexts = cells.index.to_series()
        if "context" in cells:
            contexts = cells["context"].map(repr)
        numbers = contexts.factorize()[0] + 1
        uses = _uses(cells, contexts)
        dialogs = []
        for number, use in zip(numbers, uses, strict=True):
            dialogs.append(f"{number} ({use})" if use > 1 else str(number))
        cells = cells.assign(dialog=dialogs)
    return cells


def _uses(cells: pd.DataFrame, contexts: pd.Series) -> list[int]:
    """Which reply of its system to its context each row has, from 1.

    Rows of several raters of one reply are one use of the context.
    """
    names = {snake_case(name): name for name in cells}
    rater = first_value(names, RATERS)
    places = pd.DataFrame({"system": cells["system"].map(repr), "context": contexts})
    if rater is None or "response" not in cells:
        return list(places.groupby(["system", "context"]).cumcount() + 1)
    said = places.assign(
        response=cells["response"].map(repr), rater=cells[rater].map(repr)
    )
    said["time"] = said.groupby(list(said)).cumcount()  # that a rater rates it
    replies: dict[tuple, dict] = {}
    uses = []
    for system, context, response, _, time in said.itertuples(index=False):
        numbers = replies.setdefault((system, context), {})
        uses.append(numbers.setdefault((response, time), len(numbers) + 1))
    return uses


def _with_divided_contexts(cells: pd.DataFrame, report: ImportReport) -> pd.DataFrame:
    """Contexts in one text as lists, where most hold a mark that divides utterances."""
    if "context" not in cells:
        return cells
    texts = [cell for cell in cells["context"] if isinstance(cell, str)]
    for mark in DIVIDERS:
        if sum(mark in text for text in texts) > len(texts) / 3:
            report.decide(
                "columns", f"context: divided at {mark!r}", "a mark of corpora"
            )
            divided = cells["context"].map(lambda cell, mark=mark: _divided(cell, mark))
            return cells.assign(context=divided)
    return cells


def _divided(cell: Any, mark: str) -> Any:
    """The utterances of a text, between the marks; "__eou__" within them ends a line."""
    if not isinstance(cell, str):
        return cell
    utterances = []
    for text in cell.split(mark):
        text = re.sub(r"\s*__eou__\s*", "\n", text).strip()
        if text:
            utterances.append(text)
    return utterances


def _without_names(cells: pd.DataFrame, report: ImportReport) -> pd.DataFrame:
    """Replies and contexts without "System: " before them, where all begin with such a name.

    Raises:
        DataError: most lines of the contexts begin with one, and others do not.
    """
    changed = {}
    if set(map(_role_of_side, _line_names(cells["response"]))) == {"assistant"}:
        changed["response"] = cells["response"].map(_without_name)
        report.decide("columns", "names before replies", "they are taken away")
    if "context" not in cells:
        return cells.assign(**changed)
    cells = _with_lines_of_speakers(cells)
    names = _line_names(cells["context"])
    sides = {name for name in names if _role_of_side(name)}
    if None not in names and len(set(names)) == 2:
        sides = set(names)  # such as A and B, or USER and the name of a bot
    of_sides = sum(name in sides for name in names)
    if changed or (names and of_sides == len(names)):
        changed["context"] = cells["context"].map(
            lambda text: _without_name(text, sides)
        )
        report.decide("columns", "names in contexts", "they are taken away")
    elif of_sides > len(names) / 2:
        raise DataError(
            "has the names of speakers before most lines of the contexts, and not before all",
            report.path,
            fix="write what was said before a reply as a JSON list",
        )
    return cells.assign(**changed)


def _with_lines_of_speakers(cells: pd.DataFrame) -> pd.DataFrame:
    """Contexts such as "User: Hi Bot: Ho" with a line for each that speaks in them."""
    is_text = cells["context"].map(lambda cell: isinstance(cell, str) and cell != "")
    texts = [cell.strip() for cell in cells["context"][is_text]]
    divided = with_line_per_speaker(texts)
    if divided == texts:
        return cells
    contexts = cells["context"].astype(object)
    contexts[is_text] = divided
    return cells.assign(context=contexts)


def _role_of_side(name: str | None) -> str | None:
    """The role that a name tells, if it is one of the two that talk."""
    role = speaker_role(name or "")
    return role if role in ("user", "assistant") else None


def _line_names(cells: pd.Series) -> list[str | None]:
    """The name before each line of these texts, or each text of a list; None without one."""
    names = []
    for cell in cells:
        texts = cell if isinstance(cell, list) else str(cell or "").split("\n")
        for text in texts:
            if str(text).strip():
                match = SPEAKER_START.match(str(text)[:60])
                names.append(match["name"] if match else None)
    return names


def _without_name(cell: Any, sides: Collection[str] = ()) -> Any:
    """A text, each line of it or each text of a list, without a speaker before it.

    A speaker is one of `sides`, or a name that tells a role.
    """
    if isinstance(cell, list):
        return [_without_name(text, sides) for text in cell]
    if not isinstance(cell, str):
        return cell
    lines = []
    for line in cell.split("\n"):
        match = SPEAKER_START.match(line[:60])
        if match and (match["name"] in sides or _role_of_side(match["name"])):
            line = line[match.end() :]
        lines.append(line)
    return "\n".join(lines)


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
        cells = cells.assign(**ratings.map(with_point))
    return cells


def _rename(
    cells: pd.DataFrame, file: Path, columns: Mapping[str, str]
) -> pd.DataFrame:
    """The cells under our names: each once, the needed ones there, no known one misspelled."""
    for name in columns.values():
        if name not in cells:
            fix = suggest_name(name, cells)
            raise DataError("this mapped column is missing", file, column=name, fix=fix)
    table = cells.rename(columns={name: column for column, name in columns.items()})
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        problem = "two columns of the file stand for this one"
        raise DataError(problem, file, column=repeated[0])
    unknown = {name.lower(): name for name in table if name not in COLUMNS}
    for name in COLUMNS:
        near = difflib.get_close_matches(name, list(unknown), n=1, cutoff=0.8)
        if name not in table and (near or name == "response"):
            problem = (
                f"this column is missing; the file has {', '.join(map(repr, cells))}"
            )
            if near:
                column = unknown[near[0]]
                fix = f'if {column!r} is this column, rename it, or say COLUMNS="{name}={column}"'
            else:
                hint = suggest_name(name, list(unknown))
                hint = hint or f"write it like this:\n{examples(cells)}"
                fix = (
                    'name it: COLUMNS="response=..." for a row per reply, or '
                    f'COLUMNS="speaker=... text=..." for a row per utterance; {hint}'
                )
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
    if looks_like_list(text):
        return cell
    if not text:
        return []
    if by_line:
        return [line.strip() for line in text.replace("|||", "\n").split("\n")]
    return [cell]


def looks_like_list(text: str) -> bool:
    """Whether a text begins as a list of quoted texts, holds one in brackets, or is an array.

    >>> [looks_like_list(text) for text in ("['a' 'b']", "array(['a'])", "[laughs] ok [NAME]")]
    [True, True, False]
    """
    if re.match(r"array\(|<\w{0,40}Array>|\[\s*[\"']", text):
        return True
    if not text.startswith("[") or not text.endswith("]"):
        return False
    return re.search(r""",\s*["']|["']\s*[],]|\bnan\b""", text) is not None


def _first_names(names: list[str], limit: int = 10) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _report_rows(turns: pd.DataFrame, report: ImportReport) -> list[dict]:
    """What `import_report` shows: a row per unit."""
    rows = []
    for unit in ("files", "dialogs", "utterances"):
        excluded = _excluded_of(unit, report)
        if report.kept[unit]:
            notes = [
                f"{n} {note}"
                for note, n in report.notes.items()
                if n and unit == "utterances"
            ]
            if unit == "dialogs" and report.dialogs_left_out:
                notes.append(f"left out: {_first_names(report.dialogs_left_out)}")
            rows.append(report_row(unit, report.kept[unit], excluded, "; ".join(notes)))
    empty = int(turns["response"].map(is_blank).sum())
    full = turns["context"].map(len).eq(MAX_CONTEXT)
    cut = int((full & turns["turn"].gt(MAX_CONTEXT)).sum())
    notes = []
    if empty:
        notes.append(f"{empty} empty, kept")
    if cut:
        notes.append(f"{cut} with more context than the last {MAX_CONTEXT}")
    excluded = _excluded_of("responses", report)
    rows.append(report_row("responses", len(turns), excluded, "; ".join(notes)))
    if report.kept["single ratings"]:
        excluded = _excluded_of("single ratings", report)
        n_read = report.kept["single ratings"]
        rows.append(report_row("single ratings", n_read, excluded))
    ratings = turns.filter(regex="^human_")
    missing = _excluded_of("ratings", report)
    for name in ratings:
        reason = f"left empty in {report.columns.get(name, name)}"
        missing[reason] = int(ratings[name].isna().sum()) - report.no_numbers[name]
    count = int(ratings.notna().sum().sum())
    rows.append(report_row("ratings", count, missing, ", ".join(ratings)))
    return rows


def _excluded_of(unit: str, report: ImportReport) -> dict[str, int]:
    """Reason -> how many of a unit were left out for it."""
    return {why: n for (name, why), n in report.excluded.items() if name == unit}
