"""What is in a user's file: unpack it, decode it, and tell tables, JSON values and texts apart.

What must be guessed is kept with the name of the parameter that changes it. A packed file may not
unpack to more than `LIMIT`.
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
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from lib.data.storage import DataError

LIMIT = 512 * 1024 * 1024  # bytes; 100,000 replies with their contexts take about 100 million
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
GUESSES = ("kind", "bot", "encoding", "delimiter", "decimal", "sheet", "split")
csv.field_size_limit(16 * 1024 * 1024)  # a long dialog in one cell is not an error


class Unknown(DataError):
    """The file is none that we know."""


class Reading:
    """A file or a folder as it is read.

    Attributes:
        path: the file or the folder.
        given: what the caller says instead of a guess, by the names in `GUESSES`.
        columns: our column name -> the file's, also for `speaker` and `text` of an utterance.
        taken: the same, with what was guessed.
        guesses: (what, taken, why) -> number of files.
        kept: unit -> how many were read and kept.
        excluded: (unit, reason) -> how many were read and left out.

    Raises:
        DataError: for a name that is not in `GUESSES`.
    """

    def __init__(self, path: Path | str, given=None, columns: Mapping | None = None):
        self.path, self.given, self.columns = Path(path), dict(given or {}), dict(columns or {})
        self.taken: dict[str, str] = {}
        self.guesses: Counter[tuple[str, str, str]] = Counter()
        self.kept: Counter[str] = Counter()
        self.excluded: Counter[tuple[str, str]] = Counter()
        for name in self.given.keys() - set(GUESSES):
            raise DataError(f"{name!r} is not guessed", path, fix=f"name one of {GUESSES}")

    def guess(self, what: str, value: str, why: str) -> str:
        """Take what the caller says, else this guess, and remember it."""
        taken = self.given.get(what, value)
        self.guesses[what, taken, "as you said" if what in self.given else why] += 1
        return taken

    def below(self, file: Path) -> Path:
        """The name of a file within the folder, without its ending."""
        return file.relative_to(self.path).with_suffix("")

    def files(self) -> list[Path]:
        """The file, or each file of the folder that is not hidden, in the order of names."""
        inner = [file for file in self.path.rglob("[!.]*") if file.is_file()]
        return sorted(inner) if self.path.is_dir() else [self.path]


def contents(file: Path, reading: Reading) -> pd.DataFrame | list | dict | str:
    """A table (cells as they are, None where there is none), a JSON value, or a text.

    Raises:
        DataError: what cannot be read, with the place where one is known.
    """
    ending = Path(re.sub(r"\.(gz|zst)$", "", file.name.lower())).suffix
    try:
        raw = _unpacked(file)
        if ending in (".parquet", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"):
            return _parquet(raw) if ending == ".parquet" else _spreadsheet(raw, reading)
        text = _decoded(raw, reading)
        if ending in (".csv", ".tsv"):
            return _delimited(text, ending, reading)
        jsons = ending in (".json", ".jsonl", ".ndjson")
        return _json(text) if jsons or re.match(r'\s*(\{|\[+\{")', text) else text
    except DataError as error:
        raise type(error)(error.problem, file, fix=error.fix) from error
    except Exception as error:  # whatever the readers of other people's formats raise
        fix = "correct that place; save the file as UTF-8, or fetch it again if it is cut off"
        raise DataError(f"is not a readable file ({error})", file, fix=fix) from error


def _unpacked(file: Path) -> bytes:
    """What stands in a file; its first bytes say how it is packed, since names are changed."""
    raw = file.read_bytes()
    form = next((form for start, form in PACKED.items() if raw.startswith(start)), None)
    if form is None:
        return raw
    with pa.input_stream(pa.py_buffer(raw), form) as packed:
        raw = packed.read(LIMIT + 1)
    _limit(len(raw))
    return raw


def _limit(size: int) -> None:
    if size > LIMIT:
        fix = "unpack it yourself, and read it in parts"
        raise DataError(f"unpacks to more than {LIMIT // 2**20} MB, which is not read", fix=fix)


def _decoded(raw: bytes, reading: Reading) -> str:
    wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\0" in raw and not wide:
        raise Unknown("is neither text nor a table")
    encoding = reading.given.get("encoding") or ("utf-16" if wide else "utf-8-sig")
    why = "its first bytes say so" if wide else "all of it is valid"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        import charset_normalizer

        found = charset_normalizer.from_bytes(raw[: 2**20]).best()
        if "encoding" in reading.given or found is None:
            line = raw.count(b"\n", 0, error.start) + 1
            raise ValueError(f"line {line}: {error}") from error
        encoding = "cp1252" if "cp1252" in found.could_be_from_charset else found.encoding
        text, why = raw.decode(encoding), "it is not UTF-8, and this fits its letters"
    reading.guess("encoding", encoding.removesuffix("-sig"), why)
    return text.replace("\r\n", "\n")


def _delimited(text: str, ending: str, reading: Reading) -> pd.DataFrame:
    """Rows of as many cells as the header: pandas would fill up shorter ones."""
    first, _, rest = text.partition("\n")
    if first.lower().startswith("sep=") and len(first) == 5:  # Excel's own line
        text, found = rest, first[4]
    else:
        known = "\t,;|" if ending == ".tsv" else ",;\t|"
        found = max(known, key=lambda one: len(next(csv.reader([first], delimiter=one), [])))
    found = reading.guess("delimiter", found, "its header has most cells with it")
    rows = [*csv.reader(io.StringIO(text), delimiter=found, strict=True)]
    for place, row in enumerate(rows):
        if row and len(row) != len(rows[0]):
            found = f"row {place} has {len(row)} cells, the header {len(rows[0])}"
            raise ValueError(f"{found}: check its delimiter and quotes")
    return _headed(rows)


def _headed(rows: list[list[str]]) -> pd.DataFrame:
    header, *rows = rows  # or an error, as a file without any
    return pd.DataFrame(filter(any, rows), columns=[name.strip() for name in header], dtype=object)


def _spreadsheet(raw: bytes, reading: Reading) -> pd.DataFrame:
    if raw[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(raw)) as parts:
            _limit(sum(part.file_size for part in parts.infolist()))
            if damaged := parts.testzip():  # also one that holds more than it says
                raise ValueError(f"its part {damaged} is damaged")
    form = {"header": None, "dtype": str, "na_filter": False, "engine": "calamine"}
    sheets = pd.read_excel(io.BytesIO(raw), sheet_name=None, **form)
    why = f"the first of {len(sheets)}: {', '.join(sheets)}"
    return _headed(sheets[reading.guess("sheet", [*sheets][0], why)].to_numpy().tolist())


def _parquet(raw: bytes) -> pd.DataFrame:
    from pyarrow import parquet  # only where it is needed, since it takes a while

    size, rows = 0, []
    for batch in parquet.ParquetFile(pa.BufferReader(raw)).iter_batches(10_000):
        size += batch.nbytes
        _limit(size)
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
        raise ValueError("it does not hold JSON objects: a list of them, or one per line")
    return value


def listed(text: str) -> Any:
    """The list that a text is as JSON or Python write it, or the text as it is.

    >>> [listed(text) for text in ('["a", "b"]', "['a', 'b']", "['a' 'b']")]
    [['a', 'b'], ['a', 'b'], "['a' 'b']"]
    """
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        # Python would join the two texts of a printed array, "['a' 'b']", to one.
        if repr(value := ast.literal_eval(text)) == text:
            return value
    return text
