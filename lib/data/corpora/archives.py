"""Read members of tar and zip archives without unpacking them to disk."""

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator

from lib.data.dialogues.errors import DataError

FIX = "delete the file and fetch it again"
DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,  # names that cannot be decoded
    RuntimeError,  # a damaged flag reads as "encrypted" or as an unknown compression
)


def members(path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the regular files in a tar or zip archive whose name is `wanted`.

    Raises `DataError` if the archive is damaged or cut off.
    """
    try:
        yield from _zipped(path, wanted) if zipfile.is_zipfile(path) else _tarred(path, wanted)
    except DAMAGE as error:
        raise DataError(f"is not a complete archive ({error})", file=path, fix=FIX) from error


def _tarred(path, wanted) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            if member.isfile() and wanted(member.name):
                yield member.name, archive.extractfile(member).read()


def _zipped(path, wanted) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and wanted(member.filename):
                yield member.filename, archive.read(member)
