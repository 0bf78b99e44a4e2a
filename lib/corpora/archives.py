"""Read members of tar and zip archives without unpacking them to disk."""

import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from lib.dialogues.errors import DataError

FIX = "delete the file and fetch it again"


def tar_members(path) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each regular file in a tar archive, in archive order.

    Raises `DataError` if the archive is damaged or cut off.
    """
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                if member.isfile():
                    yield member.name, archive.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"is not a complete tar archive ({error})", file=path, fix=FIX) from error


def zip_members(path) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each regular file in a zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    yield member.filename, archive.read(member)
    except (
        zipfile.BadZipFile,
        EOFError,
        OSError,
        zlib.error,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise DataError(f"is not a complete zip archive ({error})", file=path, fix=FIX) from error


def members(path) -> Iterator[tuple[str, bytes]]:
    """Members of a zip or a tar archive, whichever `path` is."""
    return zip_members(path) if zipfile.is_zipfile(path) else tar_members(path)
