"""Files: find, download and verify those of the corpora, read archives, write a file whole.

A file is looked for in the folder that the environment variable DIALOGUE_DATA_DIR names, else in
the user's cache, and is downloaded there by pooch if it is missing. `data/corpora.json` holds the
address and the SHA-256 of each file; nothing is read before its checksum agrees.
"""

import difflib
import errno
import hashlib
import json
import logging
import os
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from lib import ROOT

DATA = ROOT / "data"
VARIABLE = "DIALOGUE_DATA_DIR"


class DataError(ValueError):
    """Data that cannot be used, with the place of the fault and the way out.

    `file`, `row` (counted from 1, without the header) and `column` are attributes as well as
    parts of the message; each may be None where it does not apply.

    >>> print(DataError("rating is 'good', not a number", file="mine.csv", row=3,
    ...                 column="human_overall", fix="use a number, or leave the cell empty"))
    mine.csv, row 3, column 'human_overall': rating is 'good', not a number.
    What to do: use a number, or leave the cell empty.
    """

    def __init__(self, problem: str, file=None, row=None, column=None, fix: str = ""):
        super().__init__(problem, file, row, column, fix)
        self.problem, self.file, self.row, self.column, self.fix = self.args

    def __str__(self) -> str:
        place = [str(self.file)] if self.file is not None else []
        place += [f"row {self.row}"] if self.row is not None else []
        place += [f"column {self.column!r}"] if self.column is not None else []
        text = f"{', '.join(place)}: {self.problem}." if place else f"{self.problem}."
        return f"{text}\nWhat to do: {self.fix}." if self.fix else text


def suggest_name(name: str, known: Iterable[str]) -> str:
    """A "did you mean" for a misspelled name, or an empty string if nothing is near.

    >>> suggest_name("respones", ["response", "context"])
    "did you mean 'response'?"
    """
    found = difflib.get_close_matches(str(name).lower(), [str(k) for k in known], n=1, cutoff=0.6)
    return f"did you mean {found[0]!r}?" if found else ""


@cache
def registry() -> dict[str, Any]:
    """Read `data/corpora.json`: sets (licence, source), files, corpora, tables."""
    return read_json(DATA / "corpora.json")


def data_folder() -> Path:
    """Name the folder of the corpora: DIALOGUE_DATA_DIR if it is set, else the user's cache."""
    named = os.environ.get(VARIABLE)
    return Path(named or _pooch().os_cache("dialogue-evaluation-notebooks")).expanduser()


def _pooch():
    """Import pooch only where a file is asked for: with what it needs it takes a while."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # the progress bar says enough
    return pooch


def is_on_disk(key: str) -> bool:
    """Say whether a file is in the data folder, as registered or in its upstream form."""
    upstream = registry()["files"].get(key, {}).get("upstream", {"key": key})["key"]
    return any((data_folder() / name).is_file() for name in (key, upstream))


def fetch_file(key: str) -> Path:
    """Return the verified local path of a file, downloaded if need be.

    Some files are registered as repacked subsets; what is downloaded is then the upstream file, and
    the loaders read both.

    Args:
        key: a key of the registry, such as "usr/tc_usr_data.json".

    Raises:
        DataError: if the file is damaged, or if it cannot be downloaded.
    """
    folder, entry = data_folder(), {"key": key, **registry()["files"][key]}
    if os.environ.get(VARIABLE) and not folder.is_dir():  # a typing error must not make a folder
        raise DataError(f"{VARIABLE} names {folder}, which is not a folder", fix="correct it")
    if "upstream" in entry and not (folder / key).is_file():
        entry |= entry["upstream"]
    name, expected = entry["key"], entry["sha256"]
    known = {"registry": {name: expected}, "urls": {name: entry["url"]}}
    # Updates would overwrite a file of the user's.
    shelf = _pooch().create(folder, "", **known, retry_if_failed=3, allow_updates=False)
    try:
        file = Path(shelf.fetch(name, progressbar=True))
        # Its host packs one archive anew on each request, so its own bytes have no fixed checksum.
        if expected is None and content_sha256(file, entry["content"]) != entry["content_sha256"]:
            raise ValueError("its content is not that of the registered commit")
        return file
    except (ValueError, OSError, EOFError, tarfile.TarError, zlib.error) as error:
        problem = f"the file is damaged, or it is missing and cannot be downloaded: {error}"
        fix = f"delete it if it is there; connect to the network, or fetch {entry['url']} and "
        fix += f"save it under that name, or set {VARIABLE} to a folder that holds the corpora"
        raise DataError(problem, folder / name, fix=fix) from error


def content_sha256(file: Path, folders: list[str]) -> str:
    """Return the SHA-256 over the names and contents of some folders below `dat/` of an archive."""
    below = {
        name.partition("/dat/")[2]: raw
        for name, raw in archive_members(file, lambda n: "/dat/" in n)
    }
    lines = [f"{name} {hashlib.sha256(raw).hexdigest()}\n" for name, raw in below.items()
             if name.startswith(tuple(folders))]  # fmt: skip
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def archive_members(file: Path, wanted: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the regular files of a tar archive that are `wanted`.

    Everything stays in memory: no name in an archive can point outside a folder.
    """
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


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    >>> len(file_sha256(ROOT / "LICENSE"))
    64
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Give a place to write to, and move it to `path` when the block ends without an error.

    A reader never meets half a file, and a crash or a full disk leaves the old one as it was. The
    process id keeps two runs on one folder out of each other's unfinished file.

    Raises:
        OSError: as raised while writing; for a full disk it says what to do.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "new", "a.txt")) as place:
    ...         _ = place.write_text("whole")
    ...     [fetch_file.read_text() for fetch_file in Path(folder, "new").iterdir()]
    ['whole']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            way = "what is finished is kept, so free some space and run the same call again."
            error.add_note(f"No space left in {path.parent}: {way}")
        raise
    finally:
        unfinished.unlink(missing_ok=True)
