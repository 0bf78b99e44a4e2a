"""Read comment dumps as a stream of plain pieces, whatever their compression and their lines.

The public dumps are zstandard frames with a window of 2 GiB: most readers refuse them ("Frame
requires too much memory"), and those that do not may hold the whole month in memory. Here a dump is
decompressed as a stream, and cut at line ends into files that any reader takes. Memory is bounded,
whatever the file unpacks to.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path

import zstandard

WINDOW = 2**31  # bytes: the `--long=31` of the public dumps
PIECE = 1 << 27  # bytes of decompressed text in a piece, about 100,000 comments
READ = 1 << 13  # bytes read from the dump at once: 256 MiB at the most when decompressed
LONGEST = 1 << 22  # bytes of a line; the longest comment that Reddit takes has 40,000 letters
NEEDED = ("id", "body", "parent_id")  # a record without one of these is no comment
TOO_LONG = b'"too long"\n'  # stands in for a line of more than LONGEST bytes
ZSTD = b"\x28\xb5\x2f\xfd"


class DumpError(ValueError):
    """A dump that cannot be read; the message names the file and the way out."""


def pieces(
    path: Path, folder: Path, files: int, progress: Callable[[int], object]
) -> Iterator[Path]:
    """Write a dump as plain files of whole lines: `files` of them in `folder`, used in turn.

    After `files - 1` others a piece is written over: until then the caller has to be done with it.
    New files would cost more: the system has to find and clear memory for each.
    """
    lines = whole_lines(blocks(path, progress))
    for number in count():
        piece = folder / f"piece-{number % files}.ndjson"
        piece.touch()
        with piece.open("r+b") as out:
            for chunk in lines:
                out.write(chunk)
                if out.tell() >= PIECE:
                    break
            filled = out.tell()
            out.truncate()
        if not filled:
            return
        yield piece


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Cut a stream at line ends; a line of more than `LONGEST` bytes becomes `TOO_LONG`.

    >>> b"".join(whole_lines([b"one\\ntw", b"o\\nthree"]))
    b'one\\ntwo\\nthree'
    """
    rest = b""  # of the line whose end is still to come
    for block in blocks:
        for start in range(0, len(block), LONGEST):
            part = block[start : start + LONGEST]
            end = part.rfind(b"\n") + 1
            if not end:
                rest = rest + part if len(rest) <= LONGEST else rest
                continue
            first = part.find(b"\n") + 1
            yield TOO_LONG if len(rest) + first > LONGEST else rest + part[:first]
            yield memoryview(part)[first:end]
            rest = part[end:]
    if rest:
        yield TOO_LONG if len(rest) > LONGEST else rest


def blocks(path: Path, progress: Callable[[int], object] = lambda n: None) -> Iterator[bytes]:
    """Yield the decompressed bytes of a dump in order; `progress` is told the bytes read.

    All frames are read, with windows up to 2 GiB. A file that does not begin like zstandard is
    read as it is.

    Raises:
        DumpError: the file is damaged, or ends in the middle of a frame.
    """
    frame = None
    with path.open("rb") as dump:
        compressed = dump.read(len(ZSTD)) == ZSTD
        dump.seek(0)
        while chunk := dump.read(READ):
            progress(len(chunk))
            while compressed and chunk:
                frame = frame or zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
                try:
                    yield frame.decompress(chunk)
                except zstandard.ZstdError as error:
                    raise DumpError(
                        f"{path.name}: damaged before byte {dump.tell():,} ({error}). Download it "
                        "again and compare its checksum."
                    ) from error
                chunk = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
            if not compressed:
                yield chunk
    if frame is not None:
        raise DumpError(
            f"{path.name}: cut off inside a frame (the file has {path.stat().st_size:,} bytes). "
            "Download the rest and run again: finished files are not read twice."
        )


def reasons(piece: Path, bad: list[int]) -> list[tuple[int, str]]:
    """Number and reason of the lines of a piece that hold no comment; blank lines not counted."""
    if not bad:
        return []
    with piece.open("rb") as file:
        lines = islice((line for line in file if line.strip()), bad[-1] + 1)
        return [(row + 1, _reason(line)) for row, line in enumerate(lines) if row in bad]


def _reason(line: bytes) -> str:
    """Why a line is no comment."""
    if line == TOO_LONG:
        return f"longer than {LONGEST:,} bytes"
    try:
        record = json.loads(line)
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        return "not JSON"
    if not isinstance(record, dict):
        return f"not a record but {type(record).__name__}"
    missing = [name for name in NEEDED if record.get(name) is None]
    return f"without {', '.join(missing)}" if missing else "text with broken characters"
