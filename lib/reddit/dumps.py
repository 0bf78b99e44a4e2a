"""Read comment dumps as a stream of plain pieces, whatever their compression window.

The public dumps are zstandard frames with a window of 2 GiB: most readers refuse them ("Frame
requires too much memory"), and those that do not may hold the whole month in memory. Here a dump is
decompressed as a stream, and cut at line ends into files that any reader takes.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

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
    size: int = PIECE,
    progress: Callable[[int], object] = lambda n: None,
) -> Iterator[Path]:
    """Write a dump as plain files of whole lines into `folder`, for the caller to remove."""
    number, filled = 0, 0
    piece = folder / f"piece-{number:05d}.ndjson"
    out = piece.open("wb")
    for block in blocks(path, progress):
        if filled + len(block) >= size and (end := block.rfind(b"\n") + 1):
            out.write(memoryview(block)[:end])
            out.close()
            yield piece
            number, filled = number + 1, 0
            piece = folder / f"piece-{number:05d}.ndjson"
            out = piece.open("wb")
            block = memoryview(block)[end:]
        out.write(block)
        filled += len(block)
    out.close()
    if filled:
        yield piece
    else:
        piece.unlink()
