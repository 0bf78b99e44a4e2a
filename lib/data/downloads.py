"""Find, download and verify the files of the corpora; read archives without unpacking them.

A file is looked for in the folder that the environment variable DIALOGUE_DATA_DIR names, else in
the user's cache, and is downloaded there by pooch if it is missing. `data/corpora.json` holds the
address and the SHA-256 of each file; nothing is read before its checksum agrees.
"""

import hashlib
import json
import logging
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pooch

from lib import ROOT
from lib.data.dialogues.errors import DataError, nearest

DATA = ROOT / "data"
VARIABLE = "DIALOGUE_DATA_DIR"
pooch.get_logger().setLevel(logging.WARNING)  # the progress bar says enough


@cache
def registry() -> dict[str, Any]:
    """Read `data/corpora.json`: `sets` (licence, source), `files`, `corpora` and `tables`."""
    return json.loads((DATA / "corpora.json").read_text(encoding="utf-8"))


def data_folder() -> Path:
    """Name the folder of the corpora: DIALOGUE_DATA_DIR if it is set, else the user's cache."""
    named = os.environ.get(VARIABLE)
    return Path(named or pooch.os_cache("dialogue-evaluation-notebooks")).expanduser()


def find(key: str) -> Path | None:
    """Return the local file of a registry key, unverified: as registered, or its upstream form."""
    upstream = registry()["files"][key].get("upstream", {})
    places = [data_folder() / name for name in (key, upstream.get("key")) if name]
    return next((place for place in places if place.is_file()), None)


def path(key: str) -> Path:
    """Return the verified local path of a file, downloaded if need be.

    Some files are registered as repacked subsets; what is downloaded is then the upstream file, and
    the loaders read both.

    Args:
        key: a key of the registry, such as "usr/tc_usr_data.json".

    Raises:
        DataError: if there is no such key, if the file is damaged, or if it cannot be downloaded.
    """
    files = registry()["files"]
    if key not in files:
        raise DataError(f"there is no registered file {key!r}", fix=nearest(key, files))
    entry, folder = files[key], data_folder()
    if os.environ.get(VARIABLE) and not folder.is_dir():  # else a typing error makes a new folder
        raise DataError(
            f"{VARIABLE} names {folder}, which is not a folder", fix="create or correct it"
        )
    if "upstream" in entry and not (folder / key).is_file():
        key, entry = entry["upstream"]["key"], entry | entry["upstream"]
    file = _fetched(folder, key, entry["url"], entry["sha256"])
    if entry["sha256"] is None:
        _check_content(file, entry)
    return file


def _fetched(folder: Path, name: str, url: str, sha256: str | None) -> Path:
    shelf = pooch.create(
        folder,
        base_url="",
        registry={name: sha256},
        urls={name: url},
        retry_if_failed=3,
        allow_updates=False,  # a file of the user's is never overwritten
    )
    try:
        fetch = pooch.HTTPDownloader(progressbar=True, timeout=30)
        return Path(shelf.fetch(name, downloader=fetch))
    except ValueError as error:  # how pooch says that a checksum is wrong
        raise DataError(
            f"the file is damaged or another version: its SHA-256 is not {sha256}",
            file=folder / name,
            fix=f"delete it, and it is downloaded again; if it stays so, {url} has changed",
        ) from error
    except OSError as error:
        raise DataError(
            f"is not there, and could not be downloaded ({error})",
            file=folder / name,
            fix=f"connect to the network, or fetch {url} and save it under that name, or set "
            f"{VARIABLE} to a folder that holds the corpora",
        ) from error


def _check_content(file: Path, entry: dict) -> None:
    # Its host packs this archive anew on each request, so its own bytes have no fixed SHA-256.
    try:
        found = content_sha256(file, entry["content"])
    except (tarfile.TarError, zlib.error, OSError, EOFError) as error:
        found = f"unknown ({error})"
    if found != entry["content_sha256"]:
        raise DataError(
            f"the archive is damaged: the SHA-256 of its content is {found}, not "
            f"{entry['content_sha256']}",
            file=file,
            fix="delete it, and it is downloaded again",
        )


def content_sha256(file: Path, folders: list[str]) -> str:
    """Return the SHA-256 over the names and contents of some folders below `dat/` of an archive."""
    lines = []
    for name, raw in members(file, lambda name: "/dat/" in name):
        below = name.partition("/dat/")[2]
        if below.startswith(tuple(folders)):
            lines.append(f"{below} {hashlib.sha256(raw).hexdigest()}\n")
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def members(file: Path, wanted: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the regular files of a tar or zip archive that are `wanted`.

    Everything stays in memory: no name in an archive can point outside a folder.
    """
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if not name.endswith("/") and wanted(name):
                    yield name, archive.read(name)
        return
    with tarfile.open(file, "r:*") as archive:
        for member in archive:
            if member.isfile() and wanted(member.name):
                yield member.name, archive.extractfile(member).read()


def read_json(key: str) -> Any:
    """Read a registered JSON file."""
    return json.loads(path(key).read_bytes())


def read_lines(key: str) -> list[str]:
    """Read the lines of a registered text file; only a line feed ends a line."""
    text = path(key).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")
