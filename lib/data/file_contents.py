"""What a user's file holds: unpack it, decode it, and read it as a table, a JSON value or a text.

What must be guessed is kept with the name of the option that changes it. A packed file may not
unpack to more than `ImportOptions.max_mb` megabytes.
"""

import ast
import contextlib
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from lib.data.storage import DataError

PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
csv.field_size_limit(16 * 1024 * 1024)  # a long dialog in one cell is not an error


class UnknownFormat(DataError):
    """The file is none that we know."""


@dataclass(frozen=True)
class ImportOptions:
    """What a user says of a file instead of letting it be guessed; None: guess.

    Attributes:
        kind: what the file holds: messages, utterances, lines, transcript or table.
        bot: the speakers that are the bot, separated by commas.
        split: what separates the dialogs of a transcript: rules, blank (lines) or none.
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
    """

    def __init__(self, path: Path | str, options: ImportOptions | None = None):
        self.path = Path(path)
        self.options = options or ImportOptions()
        self.columns: dict[str, str] = {}
        self.guesses: Counter[tuple[str, str, str]] = Counter()
        self.kept: Counter[str] = Counter()
        self.excluded: Counter[tuple[str, str]] = Counter()

    def decide(self, option: str, guess: str, reason: str) -> str:
        """What the caller says, else the guess; either is remembered with its reason."""
        value = getattr(self.options, option, None)
        if not isinstance(value, str):
            value = guess
        else:
            reason = "as you said"
        self.guesses[option, value, reason] += 1
        return value

    def name_below(self, file: Path) -> Path:
        """The name of a file within the folder, without its ending."""
        return file.relative_to(self.path).with_suffix("")

    def files(self) -> list[Path]:
        """The file, or each file of the folder that is not hidden, in the order of names."""
        if not self.path.is_dir():
            return [self.path]
        return sorted(file for file in self.path.rglob("[!.]*") if file.is_file())


def read_contents(file: Path, report: ImportReport) -> pd.DataFrame | list | dict | str:
    """A table (cells unchanged, None where there is none), a JSON value, or a text.

    Raises:
        DataError: what cannot be read, with the place where one is known.
    """
    ending = Path(re.sub(r"\.(gz|zst)$", "", file.name.lower())).suffix
    try:
        raw = unpack(file.read_bytes(), report)
        if ending == ".parquet":
            return _parquet(raw, report)
        if ending in (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"):
            return _spreadsheet(raw, report)
        text = _decode(raw, report)
        if ending in (".csv", ".tsv"):
            return _delimited(text, ending, report)
        if ending in (".json", ".jsonl", ".ndjson") or re.match(
            r'\s*(\{|\[+\{")', text
        ):
            return _json(text)
        return text
    except DataError as error:
        raise type(error)(error.problem, file, fix=error.fix) from error
    except Exception as error:  # whatever the readers of other people's formats raise
        fix = "correct that place; save the file as UTF-8, or fetch it again if it is cut off"
        raise DataError(f"is not a readable file ({error})", file, fix=fix) from error


def unpack(raw: bytes, report: ImportReport) -> bytes:
    """The bytes that a file packs; its first bytes say how, since names are changed."""
    for start, codec in PACKED.items():
        if raw.startswith(start):
            with pa.input_stream(pa.py_buffer(raw), codec) as stream:
                raw = stream.read(max_bytes(report) + 1)
            _check_size(len(raw), report)
            break
    return raw


def max_bytes(report: ImportReport) -> int:
    """The most bytes that a packed file may unpack to."""
    return int(report.options.max_mb) * 2**20


def _check_size(size: int, report: ImportReport) -> None:
    if size > max_bytes(report):
        problem = f"unpacks to more than {report.options.max_mb} MB, which is not read"
        raise DataError(
            problem, fix="unpack it yourself and read it in parts, or set MAX_MB=..."
        )


def _decode(raw: bytes, report: ImportReport) -> str:
    utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\0" in raw and not utf16:
        raise UnknownFormat("is neither text nor a table")
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
        encoding = (
            "cp1252" if "cp1252" in guess.could_be_from_charset else guess.encoding
        )
        reason = "it is not UTF-8, and this fits its letters"
        text = raw.decode(encoding)
    report.decide("encoding", encoding.removesuffix("-sig"), reason)
    return text.replace("\r\n", "\n")


def _delimited(text: str, ending: str, report: ImportReport) -> pd.DataFrame:
    """Rows of the same number of cells as the header: pandas would fill up shorter ones."""
    header, _, rest = text.partition("\n")
    if header.lower().startswith("sep=") and len(header) == 5:  # Excel's own line
        delimiter = header[4]
        text = rest
    else:
        known = "\t,;|" if ending == ".tsv" else ",;\t|"
        cells = {
            mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in known
        }
        delimiter = max(cells, key=cells.get)
    delimiter = report.decide(
        "delimiter", delimiter, "its header has most cells with it"
    )
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True))
    for number, row in enumerate(rows):
        if row and len(row) != len(rows[0]):
            problem = f"row {number} has {len(row)} cells, the header {len(rows[0])}"
            raise ValueError(f"{problem}: check its delimiter and quotes")
    return _with_header(rows)


def _with_header(rows: list[list[str]]) -> pd.DataFrame:
    if not rows:
        raise ValueError("it is empty")
    header = [name.strip() for name in rows[0]]
    return pd.DataFrame(filter(any, rows[1:]), columns=header, dtype=object)


def _spreadsheet(raw: bytes, report: ImportReport) -> pd.DataFrame:
    if raw[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            _check_size(size, report)
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
    reason = f"the first of {len(names)}: {', '.join(names)}"
    sheet = report.decide("sheet", names[0], reason)
    return _with_header(sheets[sheet].to_numpy().tolist())


def _parquet(raw: bytes, report: ImportReport) -> pd.DataFrame:
    from pyarrow import parquet  # only where it is needed, since it takes a while

    size = 0
    rows = []
    for batch in parquet.ParquetFile(pa.BufferReader(raw)).iter_batches(10_000):
        size += batch.nbytes
        _check_size(size, report)
        rows += batch.to_pylist()
    return pd.DataFrame(rows, dtype=object)


def _json(text: str) -> list | dict:
    """A JSON value, or a list of those on the lines."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        by_line = len(lines) > 1 and json.loads(lines[0]) is not None
    except (ValueError, RecursionError):
        by_line = False
    value = json.loads("[" + ",\n".join(lines) + "]" if by_line else text)
    if not isinstance(value, list | dict):
        raise ValueError(
            "it does not hold JSON objects: a list of them, or one per line"
        )
    return value


def parse_list(text: str) -> Any:
    """The list that a text is as JSON or Python write it, or the text unchanged.

    >>> [parse_list(text) for text in ('["a", "b"]', "['a', 'b']", "['a' 'b']")]
    [['a', 'b'], ['a', 'b'], "['a' 'b']"]
    """
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        value = ast.literal_eval(text)
        if (
            repr(value) == text
        ):  # Python would join the two texts of a printed array, "['a' 'b']"
            return value
    return text
