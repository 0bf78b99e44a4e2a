"""Read text files strictly: every fault is named with its file and place, none is repaired.

Only two things are forgiven, because they change no content: a UTF-8 byte-order mark at the start
of a file, and Windows line ends.
"""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

from lib.data.dialogues.errors import DataError, nearest

SPACE = re.compile(r"\s*")
csv.field_size_limit(16 * 1024 * 1024)  # a long dialog in one cell is not an error


def read_text(path: Path | str) -> str:
    """The text of a UTF-8 file, without byte-order mark and with `\\n` line ends.

    Raises `DataError` for any other encoding, naming the line and byte.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path) from error
    return decode(raw, path)


def decode(raw: bytes, path: Path | str) -> str:
    """UTF-8 bytes as text; the same rules as `read_text`, for a member of an archive."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError("is UTF-16, not UTF-8", file=path, fix="save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"line {line} holds byte 0x{raw[error.start]:02x}, which is not UTF-8",
            file=path,
            fix="save the file as UTF-8 (it may be Latin-1 or Windows-1252)",
        ) from error
    return text.replace("\r\n", "\n") if "\r" in text else text


def read_lines(path: Path | str) -> list[str]:
    """The lines of a text file; the newline that ends the file makes no extra line."""
    lines = read_text(path).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def read_json(path: Path | str) -> Any:
    """The value in a JSON file. `DataError` names line and column of a fault."""
    return parse_json(read_text(path), path)


def parse_json(text: str, path: Path | str) -> Any:
    """The value of one JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _json_error(error, path) from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 10,000 brackets
        raise DataError(f"is not usable JSON ({error})", file=path) from error


def read_json_lines(path: Path | str) -> list[dict]:
    """One JSON object per line; blank lines are skipped, anything else is an error."""
    rows = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            value = parse_json(line, f"{path}, line {number}")
            if not isinstance(value, dict):
                raise DataError("is not a JSON object", file=f"{path}, line {number}")
            rows.append(value)
    return rows


def read_json_stream(path: Path | str) -> list[Any]:
    """JSON values written one after another, each over several lines."""
    text, decoder, values = read_text(path), json.JSONDecoder(), []
    try:
        position = SPACE.match(text).end()
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values.append(value)
            position = SPACE.match(text, position).end()
    except json.JSONDecodeError as error:
        raise _json_error(error, path) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not usable JSON ({error})", file=path) from error
    return values


def _json_error(error: json.JSONDecodeError, path: Path | str) -> DataError:
    end = error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg
    return DataError(
        f"line {error.lineno}, character {error.colno}: {error.msg}"
        + (" (the file seems to be cut off)" if end else ""),
        file=path,
        fix="fetch the file again, or correct that line",
    )


def read_table(
    path: Path | str,
    delimiter: str = ",",
    quoted: bool = True,
    columns: list[str] | None = None,
    text: str | None = None,
) -> list[dict[str, str]]:
    """Rows of a delimited file as dicts of strings; cells may hold newlines if `quoted`.

    The header must be unique and hold all `columns`. A row with more or fewer cells than the
    header is an error, so nothing slides into another column. `text` stands in for the file.
    """
    text = read_text(path) if text is None else text
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True
    )
    rows: list[dict[str, str]] = []
    header: list[str] | None = None
    try:
        for cells in reader:
            if header is None:
                header = checked_header(cells, columns or [], path)
            elif cells:  # csv gives an empty list for a blank line
                rows.append(_row(header, cells, len(rows) + 1, path))
    except csv.Error as error:
        raise DataError(
            f"line {reader.line_num}: {error}", file=path, fix="check the quotes"
        ) from error
    if header is None:
        raise DataError("is empty: there is no header line", file=path)
    return rows


def checked_header(header: list[str], required: list[str], path: Path | str) -> list[str]:
    """The header, if it names each column once and holds the required ones."""
    header = [name.strip() for name in header]
    for name in header:
        if header.count(name) > 1:
            raise DataError("the header has this column twice", file=path, column=name)
    for name in required:
        if name not in header:
            hint = nearest(name, header)
            raise DataError(
                f"this column is missing; the file has {', '.join(map(repr, header))}",
                file=path,
                column=name,
                fix=f"rename the column or map it{'; ' + hint if hint else ''}",
            )
    return header


def _row(header: list[str], cells: list[str], number: int, path: Path | str) -> dict[str, str]:
    if len(cells) != len(header):
        raise DataError(
            f"has {len(cells)} cells, the header has {len(header)}",
            file=path,
            row=number,
            fix="check the delimiter and the quotes of that row",
        )
    return dict(zip(header, cells, strict=True))


def text_cell(value: Any, *, file, row, column, empty: bool = True) -> str:
    """A cell that must be text; `empty=False` refuses one without a visible character."""
    place = {"file": file, "row": row, "column": column}
    if not isinstance(value, str):
        raise DataError(f"is {value!r:.60}, not text", **place, fix="put a text there")
    if not empty and not value.strip():
        raise DataError("is empty", **place, fix="fill it in, or remove the row")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            fix = "write the character whole, as UTF-8"
            raise DataError("holds half of a surrogate pair", **place, fix=fix) from error
    return value


def rating_cell(value: Any, *, file, row, column, scale: tuple[float, float] | None) -> float:
    """A cell that must be a finite number on the scale `(lowest, highest)`."""
    place, number = {"file": file, "row": row, "column": column}, math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
    if not math.isfinite(number):
        fix = "put a number there, with a point for decimals"
        raise DataError(f"rating is {value!r:.60}, not a number", **place, fix=fix)
    if scale and not scale[0] <= number <= scale[1]:
        limits = f"{scale[0]:g} to {scale[1]:g}"
        fix = "correct the rating, or load the file with its own scale"
        raise DataError(f"rating {number:g} is outside the scale {limits}", **place, fix=fix)
    return number
