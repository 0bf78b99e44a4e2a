"""Read comment dumps as a stream of plain pieces, whatever their compression window.

The public dumps are zstandard frames with a window of 2 GiB: most readers refuse them ("Frame
requires too much memory"), and those that do not may hold the whole month in memory. Here a dump is
decompressed as a stream, and cut at line ends into files that any reader takes.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

import zstandard

WINDOW = 2**31  # bytes: the `--long=31` of the public dumps
PIECE = 1 << 27  # bytes of decompressed text in a piece, about 100,000 comments
READ = 1 << 18  # bytes read from the dump at once: decompressed, some megabytes

ZSTD = b"\x28\xb5\x2f\xfd"
OTHER_FORMATS = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"PK\x03\x04": ("zip", "unzip"),
}


class DumpError(ValueError):
    """A dump that cannot be read; the message names the file and the way out."""


def is_zst(path: Path) -> bool:
    """Whether a dump is compressed by zstandard, by its first bytes rather than by its name."""
    with path.open("rb") as dump:
        start = dump.read(8)
    for magic, (name, tool) in OTHER_FORMATS.items():
        if start.startswith(magic):
            raise DumpError(f"{path.name}: this is a {name} file. Unpack it first ({tool}).")
    if start.startswith(ZSTD):
        return True
    if path.suffix == ".zst":
        raise DumpError(
            f"{path.name}: not a zstandard file, though its name says so (it starts with "
            f"{start[:4]!r}). Download it again; a plain dump should end in .ndjson."
        )
    return False


def blocks(path: Path, progress: Callable[[int], object] = lambda n: None) -> Iterator[bytes]:
    """Yield the decompressed bytes of a dump in order, in blocks of some megabytes.

    All frames are read, with windows up to 2 GiB. `progress` is told the bytes read from the file.

    Raises:
        DumpError: the file is not zstandard, or ends in the middle of a frame.
    """
    compressed = is_zst(path)
    frame = None
    with path.open("rb") as dump:
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


def pieces(
    path: Path,
    folder: Path,
    files: int,
    size: int = PIECE,
    progress: Callable[[int], object] = lambda n: None,
) -> Iterator[Path]:
    """Write a dump as plain files of whole lines: `files` of them in `folder`, used in turn.

    After `files - 1` others a piece is written over: until then the caller has to be done with it.
    New files would cost more: the system has to find and clear memory for each.
    """
    stream, rest = blocks(path, progress), b""
    for number in count():
        piece = folder / f"piece-{number % files}.ndjson"
        piece.touch()
        with piece.open("r+b") as out:
            rest = _fill(out, rest, stream, size)
            out.truncate()
        if piece.stat().st_size:
            yield piece
        if rest is None:
            return


def _fill(out: BinaryIO, rest: bytes, stream: Iterator[bytes], size: int) -> bytes | None:
    """Write whole lines of about `size` bytes; what is left of the last block, None at the end."""
    filled = out.write(rest)
    for block in stream:
        if filled + len(block) >= size and (end := block.rfind(b"\n") + 1):
            out.write(memoryview(block)[:end])
            return block[end:]
        filled += out.write(block)
    return None
