"""Find, fetch and verify the files of the registry.

A file is looked for in the folder that the environment variable DIALOGUE_DATA_DIR names, else in
the user's cache, and is downloaded there if it is missing. Nothing is parsed before its checksum
agrees.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import pooch

from lib.corpora.archives import members
from lib.corpora.registry import file_entry
from lib.corpora.resume import ResumingDownload
from lib.dialogues.errors import DataError

VARIABLE = "DIALOGUE_DATA_DIR"


def data_folder() -> Path:
    """Where corpora are kept: DIALOGUE_DATA_DIR if it is set, else the user's cache."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(pooch.os_cache("dialogue-evaluation-notebooks"))


def find(key: str) -> Path | None:
    """The local file of a registry key, unverified: as registered, or in its upstream form."""
    upstream = file_entry(key).get("upstream")
    for name in [key, *([upstream["key"]] if upstream else [])]:
        if (data_folder() / name).is_file():
            return data_folder() / name
    return None


def path(key: str) -> Path:
    """The verified local path of one registry file, downloaded if need be.

    Raises `DataError` naming the file, the expected and the found SHA-256 if they differ.
    """
    found = find(key) or _download(key)
    entry = file_entry(key)
    if found == data_folder() / key:
        verify(found, entry["sha256"])
    elif "content_sha256" in entry["upstream"]:
        verify_content(found, entry["upstream"]["content_sha256"], content_of(entry))
    else:
        verify(found, entry["upstream"]["sha256"])
    return found


def content_of(entry: dict) -> tuple[str, ...]:
    """Folders of an archive whose content is registered."""
    return tuple(entry["upstream"]["content"])


def verify(file: Path, expected: str) -> None:
    """Raise `DataError` unless the file has this SHA-256; computed once per state of the file."""
    status = file.stat()
    found = _sha256(str(file), status.st_size, status.st_mtime_ns)
    if found != expected:
        raise _mismatch(file, expected, found)


def _mismatch(file: Path, expected: str, found: str) -> DataError:
    return DataError(
        f"the file is damaged or not the expected version: SHA-256 is {found}, expected {expected}",
        file=file,
        fix="delete it; it is then downloaded again on the next use",
    )


@lru_cache(maxsize=1024)
def _sha256(file: str, size: int, changed: int) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def verify_content(file: Path, expected: str, folders: tuple[str, ...]) -> None:
    """As `verify`, for an archive that the host packs anew on each request, so that only the
    content of some folders can be registered."""
    status = file.stat()
    found = _content_sha256(str(file), status.st_size, status.st_mtime_ns, folders)
    if found != expected:
        raise _mismatch(file, expected, found)


@lru_cache(maxsize=64)
def _content_sha256(file: str, size: int, changed: int, folders: tuple[str, ...]) -> str:
    lines = []
    for name, raw in members(Path(file)):
        below = name.partition("/dat/")[2]
        if below.startswith(folders):
            lines.append(f"{below} {hashlib.sha256(raw).hexdigest()}\n")
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def _download(key: str) -> Path:
    """Fetch a file (in its upstream form, if it has one) into the data folder."""
    entry, folder = file_entry(key), data_folder()
    upstream = entry.get("upstream")
    name, expected = (upstream["key"], upstream["sha256"]) if upstream else (key, entry["sha256"])
    target = folder / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _absent(key, entry, f"{folder} cannot be written") from error
    part = target.with_name(target.name + ".part")
    download = ResumingDownload(part)
    try:
        pooch.retrieve(entry["url"], expected and f"sha256:{expected}", target.name, target.parent,
                       downloader=download)  # fmt: skip
    except ValueError as error:  # pooch's message for a wrong hash
        raise DataError(
            f"the download from {entry['url']} does not have the SHA-256 {expected}",
            file=target,
            fix="try again; if it stays wrong, the publisher has changed the file",
        ) from error
    except OSError as error:  # requests' errors are OSErrors too
        raise _absent(key, entry, f"the download failed ({error})") from error
    return target


def _absent(key: str, entry: dict, why: str) -> DataError:
    return DataError(
        f"the file is not there and {why}",
        file=data_folder() / key,
        fix=f"connect to the network, or fetch {entry['url']} elsewhere and put it at that path "
        f"({VARIABLE} names the folder)",
    )
