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
from lib.data.errors import DataError, nearest

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


def on_disk(key: str) -> bool:
    """Say whether a file is in the data folder, as registered or in its upstream form."""
    upstream = registry()["files"].get(key, {}).get("upstream", {"key": key})["key"]
    return any((data_folder() / name).is_file() for name in (key, upstream))


def path(key: str) -> Path:
    """Return the verified local path of a file, downloaded if need be.

    Some files are registered as repacked subsets; what is downloaded is then the upstream file, and
    the loaders read both.

    Args:
        key: a key of the registry, such as "usr/tc_usr_data.json".

    Raises:
        DataError: if there is no such key, if the file is damaged, or if it cannot be downloaded.
    """
    files, folder = registry()["files"], data_folder()
    if key not in files:
        raise DataError(f"there is no registered file {key!r}", fix=nearest(key, files))
    if os.environ.get(VARIABLE) and not folder.is_dir():  # a typing error must not make a folder
        raise DataError(f"{VARIABLE} names {folder}, which is not a folder", fix="correct it")
    entry = {"key": key, **files[key]}
    if "upstream" in entry and not (folder / key).is_file():
        entry |= entry["upstream"]
    try:
        return _verified(folder, entry)
    except (ValueError, OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise DataError(
            f"the file is damaged, or it is missing and cannot be downloaded: {error}",
            file=folder / entry["key"],
            fix=f"delete it if it is there; connect to the network, or fetch {entry['url']} and "
            f"save it under that name, or set {VARIABLE} to a folder that holds the corpora",
        ) from error


def _verified(folder: Path, entry: dict[str, Any]) -> Path:
    name, expected = entry["key"], entry["sha256"]
    known = {"registry": {name: expected}, "urls": {name: entry["url"]}}
    # Updates would overwrite a file of the user's.
    shelf = pooch.create(folder, "", **known, retry_if_failed=3, allow_updates=False)
    file = Path(shelf.fetch(name, downloader=pooch.HTTPDownloader(progressbar=True)))
    # Its host packs one archive anew on each request, so its own bytes have no fixed checksum.
    if expected is None and content_sha256(file, entry["content"]) != entry["content_sha256"]:
        raise ValueError("its content is not that of the registered commit")
    return file


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


def read_json(file: Path) -> Any:
    """Read a JSON file."""
    return json.loads(file.read_bytes())


def read_lines(file: Path) -> list[str]:
    """Read the lines of a text file; only a line feed ends a line."""
    text = file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")
