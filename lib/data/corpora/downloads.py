"""Find, fetch and verify the files of the registry.

A file is looked for in the folder that the environment variable DIALOGUE_DATA_DIR names, else in
the user's cache, and is downloaded there if it is missing. Nothing is parsed before its checksum
agrees.
"""

import contextlib
import hashlib
import logging
import os
from functools import lru_cache
from pathlib import Path

import pooch

from lib.data.corpora import registry
from lib.data.corpora.archives import members
from lib.data.corpora.resume import ResumingDownload
from lib.data.dialogues.errors import DataError

VARIABLE = "DIALOGUE_DATA_DIR"
pooch.get_logger().setLevel(logging.WARNING)  # the progress bar says enough


def data_folder() -> Path:
    """Where corpora are kept: DIALOGUE_DATA_DIR if it is set, else the user's cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(pooch.os_cache("dialogue-evaluation-notebooks"))


def find(key: str) -> Path | None:
    """The local file of a registry key, unverified: as registered, or in its upstream form."""
    upstream = registry.file_entry(key).get("upstream")
    for name in [key, *([upstream["key"]] if upstream else [])]:
        if (data_folder() / name).is_file():
            return data_folder() / name
    return None


def path(key: str) -> Path:
    """The verified local path of one registry file, downloaded if need be.

    Some files are registered as repacked subsets; what is downloaded is then the upstream file, and
    the loaders read both. Raises `DataError` naming the file, the expected and the found SHA-256 if
    they differ.
    """
    found = find(key) or _download(key)
    entry = registry.file_entry(key)
    upstream = entry.get("upstream", {})
    if found == data_folder() / key:
        _compare(found, sha256(found), entry["sha256"])
    elif upstream["sha256"]:
        _compare(found, sha256(found), upstream["sha256"])
    else:
        _verify_content(found, upstream)
    return found


def _verify_content(found: Path, upstream: dict) -> None:
    """Check an archive by its content once, then pin its own SHA-256 in a file beside it."""
    pin, own = found.with_name(found.name + ".sha256"), sha256(found)
    if pin.is_file() and pin.read_bytes().startswith(own.encode()):
        return
    _compare(found, content_sha256(found, upstream["content"]), upstream["content_sha256"])
    with contextlib.suppress(OSError):  # a folder that cannot be written: check again next time
        pin.write_text(f"{own}  {found.name}\n", encoding="utf-8")


def _compare(file: Path, found: str, expected: str) -> None:
    if found != expected:
        raise DataError(
            f"the file is damaged or another version: SHA-256 is {found}, expected {expected}",
            file=file,
            fix="delete it; it is then downloaded again on the next use",
        )


def sha256(file: Path) -> str:
    """SHA-256 of a file, computed once per state (size and time) of the file."""
    try:
        status = file.stat()
        return _sha256(str(file), status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=file) from error


@lru_cache(maxsize=1024)
def _sha256(file: str, size: int, changed: int) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def content_sha256(file: Path, folders: list[str]) -> str:
    """SHA-256 over the names and contents of some folders below `dat/` of an archive.

    For an archive that its host packs anew on each request, so that its own bytes may differ.
    """
    lines = [
        f"{below(name)} {hashlib.sha256(raw).hexdigest()}\n"
        for name, raw in members(file, lambda name: below(name).startswith(tuple(folders)))
    ]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def below(name: str) -> str:
    """The part of a member's name below `dat/`; empty for other members.

    >>> below("reddit-college-86b4acb/dat/Emory/a.json")
    'Emory/a.json'
    """
    return name.partition("/dat/")[2]


def _download(key: str) -> Path:
    """Fetch a file (in its upstream form, if it has one) into the data folder."""
    entry, folder = registry.file_entry(key), data_folder()
    upstream = entry.get("upstream")
    name, expected = (upstream["key"], upstream["sha256"]) if upstream else (key, entry["sha256"])
    target = folder / name
    if os.environ.get(VARIABLE) and not folder.is_dir():
        raise DataError(
            f"{VARIABLE} names {folder}, which is not a folder", fix="create or correct it"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(
            entry["url"],
            f"sha256:{expected}" if expected else None,
            target.name,
            target.parent,
            downloader=ResumingDownload(target.with_name(target.name + ".part")),
        )
    except ValueError as error:  # how pooch says that the hash is wrong
        raise DataError(
            f"what came from {entry['url']} does not have the SHA-256 {expected}",
            file=target,
            fix="try again; if it stays so, the publisher has changed the file",
        ) from error
    except OSError as error:
        raise DataError(
            f"is not there, and could not be downloaded ({error})",
            file=target,
            fix=f"connect to the network, or fetch {entry['url']} and save it under that name, or "
            f"set {VARIABLE} to a folder that holds the corpora",
        ) from error
    return target
