"""What a user's file holds: unpack it, decode it, and read it as a table, a JSON value or a text.

What must be guessed is kept with the name of the option that changes it. A packed file may not
unpack to more than `ImportOptions.max_mb` megabytes.
"""

import ast
import contextlib
import csv
import io
import json
import lzma
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lib.data.storage import DataError

PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz",
}
WESTERN = set(
    "äöüßÄÖÜéèêëàâáãåçñíìîïóòôõøúùûæœÿÉÈÊÀÂÁÃÅÇÑÍÎÓÔÕØÚÛÆŒ¿¡«»°ºª€£§’‘“”„–—…·\xa0"
)
BLANKS = re.compile(r"\s*")
NULLS = ("NULL", r"\N")  # of MySQL, SQL Server and PostgreSQL in a delimited file
TYPES = {"S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"}  # of DynamoDB
MONGO_NUMBERS = ("$numberInt", "$numberLong", "$numberDouble")
# What a mapping, a list, a further value or line takes in memory, by the byte that begins it.
OBJECT_BYTES = {b"{": 240, b"[": 88, b",": 64, b"\n": 60}
csv.field_size_limit(16 * 1024 * 1024)  # a long dialog in one cell is not an error


class UnknownFormat(DataError):
    """The file is none that we know."""


@dataclass(frozen=True)
class ImportOptions:
    """What a user says of a file instead of letting it be guessed; None: guess.

    Attributes:
        kind: what the file holds: messages, utterances, exchanges, lines, transcript, table, or
            the first name of a format in `lib.data.chat_logs.FORMATS`.
        bot: the speakers that are the bot, separated by commas.
        split: what separates the dialogs: rules, blank (lines) or none in a transcript; a pause,
            such as gap:6h or gap:30m, where utterances have times.
        speakers: the names that speak in a transcript, separated by commas.
        max_mb: the most megabytes that a packed file may unpack to; 100,000 replies with their
            contexts take about 100.
        columns: our column name -> the file's, also for `speaker` and `text` of an utterance.
    """

    kind: str | None = None
    bot: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    split: str | None = None
    speakers: str | None = None
    max_mb: str = "512"
    columns: Mapping[str, str] = field(default_factory=dict)


class ImportReport:
    """What was guessed and counted while a file or a folder was read.

    Attributes:
        path: the file or the folder.
        options: what the caller says instead of a guess.
        columns: our column name -> the file's, as given and as guessed.
        guesses: (option, value, reason) -> number of files.
        kept: unit -> how many were read and kept.
        excluded: (unit, reason) -> how many were read and left out.
        no_numbers: column of ratings -> in how many replies they are none.
        notes: what is to be said of utterances that stay -> of how many.
        dialogs_left_out: the ids of dialogs without a reply of the bot.
        used, siblings: files that were read for another one, by name.
        sheets: the names of the sheets of the last spreadsheet.
    """

    def __init__(self, path: Path | str, options: ImportOptions | None = None):
        self.path = Path(path)
        self.options = options or ImportOptions()
        self.columns: dict[str, str] = {}
        self.guesses: Counter[tuple[str, str, str]] = Counter()
        self.kept: Counter[str] = Counter()
        self.excluded: Counter[tuple[str, str]] = Counter()
        self.no_numbers: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.dialogs_left_out: list[str] = []
        self.used: set[str] = set()
        self.siblings: dict[str, Any] = {}
        self.sheets: list[str] = []

    def decide(self, option: str, guess: str, reason: str) -> str:
        """What the caller says, else the guess; either is remembered with its reason."""
        value = getattr(self.options, option, None)
        if not isinstance(value, str):
            value = guess
        else:
            reason = "as you said"
        self.guesses[option, value, reason] += 1
        return value

    def file_path(self, file) -> Path:
        """The path of a file, for messages."""
        if self.path.is_dir() or self.path.name != file.name:
            return self.path / file.name
        return self.path


OTHER_KINDS = {
    ".yml": "YAML",
    ".yaml": "YAML",
    ".xml": "XML",
    ".html": "HTML",
    ".htm": "HTML",
    ".pdf": "PDF",
    ".docx": "a document of Word",
    ".doc": "a document of Word",
    ".odt": "a document of OpenDocument",
    ".db": "a database",
    ".sqlite": "a database",
}
# X (Twitter) writes the lists of its archive as scripts.
ARCHIVE_SCRIPT = re.compile(r"\s*window\.YTD\.\w{1,40}\.part\d{1,4} = ")
TABBED = re.compile(  # names of columns between tabs, as Excel writes its Unicode text
    r"(?:[^\W\d][\w .#-]{0,39}\t){2,60}[^\W\d][\w .#-]{0,39}\r?\n"
)


def read_contents(file, report: ImportReport) -> pd.DataFrame | list | dict | str:
    """A table (cells unchanged, None where there is none), a JSON value, or a text.

    Args:
        file: a `LogFile`.

    Raises:
        DataError: what cannot be read, with the place where one is known.
    """
    ending = Path(re.sub(r"\.(gz|zst|xz|bz2)$", "", file.name.lower())).suffix
    try:
        packed = file.read()
        raw = unpack(packed, report)
        if not raw.strip():
            raise DataError("is empty", fix="export it again, or name another file")
        if ending == ".zip" and raw is packed:
            problem = "is no zip archive, though its name says so"
            raise DataError(problem, fix="fetch it again, or give it its right name")
        if ending == ".parquet" or raw[:4] == b"PAR1":
            return _parquet(raw, report)
        if ending in (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"):
            return _spreadsheet(raw, report)
        if ending in OTHER_KINDS:
            raise UnknownFormat(
                f"is {OTHER_KINDS[ending]}, which is not read",
                fix="export or save it as JSON, CSV or plain text",
            )
        check_expansion(raw, report)
        text = _decode(raw, report)
        script = ARCHIVE_SCRIPT.match(text[:100])
        if script:
            text = text[script.end() :]
        if ending in (".csv", ".tsv") or (ending == ".txt" and TABBED.match(text)):
            return _delimited(text, ending, report)
        if ending in (".json", ".jsonl", ".ndjson") or re.match(
            r'\s*(\{|\[[\[\s]*\{\s*")', text
        ):
            return _json(text)
        return text
    except DataError as error:
        path = error.file or report.file_path(file)
        raise type(error)(error.problem, path, fix=error.fix) from error
    except Exception as error:  # whatever the readers of other people's formats raise
        fix = "correct that place; save the file as UTF-8, or fetch it again if it is cut off"
        problem = f"is not a readable file ({error})"
        raise DataError(problem, report.file_path(file), fix=fix) from error


def unpack(raw: bytes, report: ImportReport) -> bytes:
    """Decompress the bytes of a file; those of a file that is not compressed are returned as given.

    The first bytes tell the codec (`PACKED`), because a file may have been renamed.
    """
    for start, codec in PACKED.items():
        if raw.startswith(start):
            raw = _decompress(raw, codec, max_bytes(report) + 1)
            check_size(len(raw), report)
            break
    return raw


def _decompress(raw: bytes, codec: str, size: int) -> bytes:
    """At most so many bytes of what a file packs."""
    if codec == "xz":
        return lzma.LZMAFile(io.BytesIO(raw)).read(size)
    with pa.input_stream(pa.py_buffer(raw), codec) as stream:
        return stream.read(size)


def max_bytes(report: ImportReport) -> int:
    """The most bytes that a packed file may unpack to."""
    return int(report.options.max_mb) * 2**20


def check_size(size: int, report: ImportReport) -> None:
    """Refuse what takes more memory than the option max_mb allows."""
    if size > max_bytes(report):
        problem = f"unpacks to more than {report.options.max_mb} MB, which is not read"
        raise DataError(
            problem, fix="unpack it yourself and read it in parts, or set MAX_MB=..."
        )


def check_expansion(raw: bytes, report: ImportReport) -> None:
    """Refuse a text whose rows or JSON values would take too much memory as Python objects."""
    size = len(raw)
    for mark, object_bytes in OBJECT_BYTES.items():
        size += object_bytes * raw.count(mark)
    check_size(size, report)


def _decode(raw: bytes, report: ImportReport) -> str:
    utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\0" in raw and not utf16:
        raise UnknownFormat(
            "is neither text nor a table",
            fix="name the file that holds the dialogs, such as a .json, .csv or .txt",
        )
    encoding = report.options.encoding or ("utf-16" if utf16 else "utf-8-sig")
    reason = "its first bytes say so" if utf16 else "all of it is valid"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        import charset_normalizer

        guess = charset_normalizer.from_bytes(raw[: 2**20]).best()
        if report.options.encoding or guess is None:
            line = raw.count(b"\n", 0, error.start) + 1
            raise ValueError(f"line {line}: {error}") from error
        encoding = guess.encoding
        if "cp1252" in guess.could_be_from_charset or is_western(raw):
            encoding = "cp1252"
        reason = "it is not UTF-8, and this fits its letters"
        text = raw.decode(encoding)
    report.decide("encoding", encoding.removesuffix("-sig"), reason)
    return text.replace("\r\n", "\n")


def is_western(raw: bytes) -> bool:
    """Whether bytes are text of Western Europe in one byte a letter, by the letters they give.

    In a few words a detector may take two such letters for a Chinese one.

    >>> is_western("Köln, près de l'étage n° 5".encode("cp1252")), is_western("你好".encode("gbk"))
    (True, False)
    """
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return False
    letters = [letter for letter in text if ord(letter) > 127]
    alone = re.findall(r"(?<![^\x00-\x7f])[^\x00-\x7f](?![^\x00-\x7f])", text)
    return len(alone) > 0.8 * len(letters) and set(letters) <= WESTERN


def _delimited(text: str, ending: str, report: ImportReport) -> pd.DataFrame:
    """Rows of the same number of cells as the header: pandas would fill up shorter ones."""
    header, _, rest = text.partition("\n")
    if header.lower().startswith("sep=") and len(header) == 5:  # Excel's own line
        delimiter = header[4]
        text = rest
    else:
        header = text.lstrip("\n").partition("\n")[0]
        marks = "\t,;|" if ending == ".tsv" else ",;\t|"
        cells = {
            mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in marks
        }
        delimiter = max(cells, key=cells.get)
    delimiter = report.decide(
        "delimiter", delimiter, "its header has most cells with it"
    )
    quoting = csv.QUOTE_MINIMAL
    if header.startswith("conv_id,utterance_idx,context"):
        # EmpatheticDialogues quotes nothing.
        quoting = csv.QUOTE_NONE
    try:
        rows = _cells(text, delimiter, quoting)
    except csv.Error:
        if delimiter != "\t":
            raise
        rows = _cells(text, delimiter, csv.QUOTE_NONE)  # where tabs separate, few quote
    rows = _without_nulls(rows, report)
    header_row = _header_row(rows)
    width = len(rows[header_row])
    for number, row in enumerate(rows, start=1):  # as a spreadsheet numbers them
        if row and len(row) != width:
            raise ValueError(
                f"row {number} has {len(row)} cells, the header {width}: row {header_row + 1} was "
                "taken for the header, so delete what stands above the names of the columns, or "
                "check the delimiter and quotes"
            )
    return _with_header(rows, report)


def _cells(text: str, delimiter: str, quoting: int) -> list[list[str]]:
    """The cells of a delimited text."""
    lines = io.StringIO(text)
    return list(csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting))


def _without_nulls(rows: list[list[str]], report: ImportReport) -> list[list[str]]:
    """The rows with empty cells where databases write that there is no value: NULL or \\N."""
    n_nulls = sum(cell in NULLS for row in rows for cell in row)
    if not n_nulls:
        return rows
    reason = f"as databases write no value, in {n_nulls} cells"
    report.decide("columns", "NULL: empty cells", reason)
    return [["" if cell in NULLS else cell for cell in row] for row in rows]


def _with_header(rows: list[list[str]], report: ImportReport) -> pd.DataFrame:
    """The rows below the header, which may stand below a title and merged cells."""
    number = _header_row(rows)
    if number:
        reason = "what stands above it has empty cells"
        report.guesses["columns", f"their names in row {number + 1}", reason] += 1
        rows = rows[number:]
    header = [name.strip() for name in rows[0]]
    table = pd.DataFrame(filter(any, rows[1:]), columns=header, dtype=object)
    blank = [number for number, row in enumerate(rows[1:]) if not any(row)]
    if blank:
        table.attrs["blank_rows"] = blank
    table.attrs["header_row"] = 1 + number
    return table


def _header_row(rows: list[list[str]]) -> int:
    """The first of the first rows that is full, where most cells of the one at the top are empty.

    Empty lines at the top are no rows.

    >>> _header_row([["Chats", "", ""], ["id", "speaker", "text"], ["1", "user", "Hi"]])
    1
    >>> _header_row([["", "speaker", "text"], ["1", "user", "Hi"]])
    0
    >>> _header_row([[], ["id", "text"], ["1", "Hi"]])
    1
    """
    filled = [number for number, row in enumerate(rows) if row]
    top = filled[0] if filled else 0
    if sum(map(bool, rows[top])) >= len(rows[top]) / 2:
        return top
    for number in filled[:10]:
        row = rows[number]
        if all(row) and len(set(row)) == len(row):
            return number
    return top


def _spreadsheet(raw: bytes, report: ImportReport) -> pd.DataFrame:
    if raw[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            check_size(size, report)
            check_size(_sheet_bytes(archive), report)
            damaged = archive.testzip()  # also one that holds more than it says
        if damaged:
            raise ValueError(f"its part {damaged} is damaged")
    sheets = pd.read_excel(
        io.BytesIO(raw),
        sheet_name=None,
        header=None,
        dtype=str,
        na_filter=False,
        engine="calamine",
    )
    names = list(sheets)
    headers = [sheets[name].head(1).to_numpy().tolist() for name in names]
    alike = [n for n, h in zip(names, headers, strict=True) if h and h == headers[0]]
    if len(alike) > 1 and report.options.sheet is None:
        raise UnknownFormat(
            f"has sheets with the same columns: {', '.join(alike)}",
            fix=f"name one: SHEET={alike[0]}; or save each as a file, and name their folder",
        )
    reason = f"the first of {len(names)}: {', '.join(names)}"
    sheet = report.decide("sheet", names[0], reason)
    report.sheets = names
    if sheet not in names:
        raise DataError(
            f"has no sheet {sheet!r}", fix=f"SHEET is one of {', '.join(names)}"
        )
    return _with_header(sheets[sheet].to_numpy().tolist(), report)


def _sheet_bytes(archive: zipfile.ZipFile) -> int:
    """The bytes of the cells of a workbook, of which a far one makes a large grid.

    A text that many cells share stands in the file once.
    """
    lengths = [0]
    if "xl/sharedStrings.xml" in archive.namelist():
        lengths = [
            len(text) for text in archive.read("xl/sharedStrings.xml").split(b"<si")[1:]
        ]
    size = 0
    for name in archive.namelist():
        if not re.fullmatch(r"xl/worksheets/[^/]+\.xml", name):
            continue
        sheet = archive.read(name)
        rows = max(
            map(int, re.findall(rb'<c r="[A-Z]{1,3}(\d{1,9})"', sheet)), default=0
        )
        letters = set(re.findall(rb'<c r="([A-Z]{1,3})\d', sheet))
        columns = max(map(_column_number, letters), default=0)
        size += 24 * rows * columns
        for match in re.finditer(rb't="s"[^>]{0,80}><v>(?P<text>\d{1,9})</v>', sheet):
            number = int(match["text"])
            if number < len(lengths):
                size += lengths[number]
    return size


def _column_number(letters: bytes) -> int:
    """The number of a column of a spreadsheet, from 1 for A.

    >>> _column_number(b"C"), _column_number(b"AA")
    (3, 27)
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _parquet(raw: bytes, report: ImportReport) -> pd.DataFrame:
    """The rows, in batches; texts stay in dictionaries until their size is known."""
    from pyarrow import parquet  # only where it is needed, since it takes a while

    metadata = parquet.ParquetFile(pa.BufferReader(raw)).metadata
    texts = []
    values = 0
    for number in range(metadata.num_columns):
        column = metadata.schema.column(number)
        if column.physical_type == "BYTE_ARRAY":
            texts.append(column.path)
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(metadata.num_columns):
            values += row_group.column(number).num_values
    check_size(8 * values, report)
    size = 0
    rows = []
    table = parquet.ParquetFile(pa.BufferReader(raw), read_dictionary=texts)
    for batch in table.iter_batches(10_000):
        size += sum(_expanded_bytes(column) for column in batch.columns)
        check_size(size, report)
        rows += batch.to_pylist()
    return pd.DataFrame(rows, dtype=object)


def _expanded_bytes(column: pa.Array) -> int:
    """The bytes of a column with each text as often as it occurs."""
    if pa.types.is_dictionary(column.type):
        lengths = pc.fill_null(pc.binary_length(column.dictionary), 0)
        return pc.sum(pc.take(lengths, column.indices)).as_py() or 0
    if pa.types.is_struct(column.type):
        return sum(_expanded_bytes(child) for child in column.flatten())
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _expanded_bytes(column.flatten())
    return column.nbytes


def _json(text: str) -> list | dict:
    """A JSON value, or a list of those on the lines or that follow each other."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        by_line = len(lines) > 1 and json.loads(lines[0]) is not None
    except (ValueError, RecursionError):
        by_line = False
    if by_line:
        text = "[" + ",\n".join(lines) + "]"
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise
        value = _json_sequence(text)
    if not isinstance(value, list | dict):
        raise ValueError(
            "it does not hold JSON objects: a list of them, or one per line"
        )
    items = _dynamodb_items(value)
    if items:
        return [without_types(item) for item in items]
    return plain_mongo(value) if '"$oid"' in text else value


def _dynamodb_items(value: list | dict) -> list[dict]:
    """The items of a table of DynamoDB, each value of which says its type; none of other files."""
    items = value.get("Items") if isinstance(value, dict) else value
    if not isinstance(items, list):
        return []
    items = [i.get("Item", i) for i in items if isinstance(i, dict)]
    if not items or not isinstance(items[0], dict) or len(items[0]) < 2:
        return []
    for cell in items[0].values():
        if not isinstance(cell, dict) or len(cell) != 1 or not set(cell) <= TYPES:
            return []
    return items


def without_types(value: Any) -> Any:
    """A value without the types of DynamoDB, which writes "Hi" as {"S": "Hi"}.

    >>> without_types({"n": {"N": "1.5"}, "said": {"L": [{"S": "Hi"}, {"NULL": True}]}})
    {'n': 1.5, 'said': ['Hi', None]}
    """
    if isinstance(value, list):
        return [without_types(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        kind, inner = next(iter(value.items()))
        if kind in ("S", "BOOL", "SS"):
            return inner
        if kind == "NULL":
            return None
        if kind == "N":
            return json.loads(inner)
        if kind in ("L", "M"):
            return without_types(inner)
    return {name: without_types(item) for name, item in value.items()}


def plain_mongo(value: Any) -> Any:
    """A value without the types of MongoDB, which writes an id as {"$oid": "5f1"}; dates stay.

    >>> plain_mongo({"_id": {"$oid": "5f1"}, "n": {"$numberInt": "2"}})
    {'_id': '5f1', 'n': 2}
    """
    if isinstance(value, list):
        return [plain_mongo(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        kind, inner = next(iter(value.items()))
        if kind == "$oid":
            return inner
        if kind in MONGO_NUMBERS and isinstance(inner, str):
            return json.loads(inner)
    return {name: plain_mongo(item) for name, item in value.items()}


def _json_sequence(text: str) -> list:
    """The JSON values that follow each other, whatever blanks are between them.

    >>> _json_sequence('{"a": 1} {"a": 2}')
    [{'a': 1}, {'a': 2}]
    """
    decoder = json.JSONDecoder()
    values = []
    text = text.strip()
    position = 0
    while position < len(text):
        value, end = decoder.raw_decode(text, position)
        values.append(value)
        position = BLANKS.match(text, end).end()
    return values


def parse_list(text: str) -> Any:
    """The list that a text is as JSON or Python write it, or the text unchanged.

    >>> [parse_list(text) for text in ('["a", "b"]', "['a', 'b']", "['a' 'b']")]
    [['a', 'b'], ['a', 'b'], "['a' 'b']"]
    """
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        value = ast.literal_eval(text)
        # Python would join the two texts of a printed array, "['a' 'b']".
        if repr(value) == text:
            return value
    if text[:2] == "[{" and "}\n {" in text:  # a printed array of mappings
        return parse_list(text.replace("}\n {", "}, {"))
    return text
