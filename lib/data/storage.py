"""Find, download and verify the files of the corpora, read archives, write files atomically.

A file is looked for in the folder that the environment variable DIALOGUE_DATA_DIR names, else in
the user's cache, and is downloaded there by pooch if it is missing. `data/corpora.json` holds the
address and the SHA-256 of each file; no file is read before its checksum is verified.
"""

import difflib
import errno
import hashlib
import json
import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from lib import ROOT

DATA = ROOT / "data"
VARIABLE = "DIALOGUE_DATA_DIR"


class DataError(ValueError):
    """Data that cannot be used: what is wrong, where, and what to do.

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
        location = []
        if self.file is not None:
            location.append(str(self.file))
        if self.row is not None:
            location.append(f"row {self.row}")
        if self.column is not None:
            location.append(f"column {self.column!r}")
        message = f"{self.problem}."
        if location:
            message = f"{', '.join(location)}: {message}"
        if self.fix:
            message += f"\nWhat to do: {self.fix}."
        return message


def suggest_name(name: str, names: Iterable[str]) -> str:
    """A "did you mean" for a misspelled name, or an empty string if no name is similar.

    >>> suggest_name("respones", ["response", "context"])
    "did you mean 'response'?"
    """
    matches = difflib.get_close_matches(str(name).lower(), map(str, names), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


@cache
def registry() -> dict[str, Any]:
    """Read `data/corpora.json`: sets (licence, source), files, corpora, tables."""
    return read_json(DATA / "corpora.json")


def data_folder() -> Path:
    """The folder of the corpora: DIALOGUE_DATA_DIR if it is set, else the user's cache."""
    folder = os.environ.get(VARIABLE) or _pooch().os_cache(
        "dialogue-evaluation-notebooks"
    )
    return Path(folder).expanduser()


def _pooch():
    """Import pooch only where a file is asked for, because the import is slow."""
    import pooch

    pooch.get_logger().setLevel("WARNING")  # it has a progress bar already
    return pooch


def is_on_disk(key: str) -> bool:
    """Whether a file is in the data folder, as registered or in its upstream form."""
    entry = registry()["files"].get(key, {})
    upstream = entry.get("upstream", {"key": key})
    return any((data_folder() / name).is_file() for name in (key, upstream["key"]))


def fetch_file(key: str) -> Path:
    """Return the verified local path of a file, downloaded if need be.

    Some files are registered as repacked subsets; the upstream file is then downloaded instead,
    and the loaders read both.

    Args:
        key: a key of the registry, such as "usr/tc_usr_data.json".

    Raises:
        DataError: if the file is damaged, or if it cannot be downloaded.
    """
    folder = data_folder()
    if os.environ.get(VARIABLE) and not folder.is_dir():
        # A typing error in the variable must not make a folder.
        raise DataError(
            f"{VARIABLE} names {folder}, which is not a folder", fix="correct it"
        )
    entry = {"key": key, **registry()["files"][key]}
    if "upstream" in entry and not (folder / key).is_file():
        entry |= entry["upstream"]
    name = entry["key"]
    url = entry["url"]
    sha256 = entry["sha256"]
    downloader = _pooch().create(
        path=folder,
        base_url="",
        registry={name: sha256},
        urls={name: url},
        retry_if_failed=3,
        allow_updates=False,  # an update would overwrite a file of the user's
    )
    try:
        file = Path(downloader.fetch(name, progressbar=True))
        # One archive is packed anew on each request, so its own bytes have no fixed checksum.
        if (
            sha256 is None
            and content_sha256(file, entry["content"]) != entry["content_sha256"]
        ):
            raise ValueError("its content is not that of the registered commit")
        return file
    except (ValueError, OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise DataError(
            f"the file is damaged, or it is missing and cannot be downloaded: {error}",
            file=folder / name,
            fix=f"delete it if it is there; connect to the network, or fetch {url} and save it "
            f"under that name, or set {VARIABLE} to a folder that holds the corpora",
        ) from error


def content_sha256(file: Path, folders: list[str]) -> str:
    """Return the SHA-256 over the names and contents of some folders below `dat/` of an archive."""
    lines = []
    for name, content in archive_members(file, "/dat/"):
        name_below = name.partition("/dat/")[2]
        if name_below.startswith(tuple(folders)):
            lines.append(f"{name_below} {hashlib.sha256(content).hexdigest()}\n")
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def archive_members(file: Path, pattern: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the regular files of a tar archive whose names match `pattern`.

    The pattern is a regular expression that may match anywhere in the name. Everything stays in
    memory, so no name in an archive can point outside a folder.
    """
    with tarfile.open(file, "r:*") as archive:
        for member in archive:
            if member.isfile() and re.search(pattern, member.name):
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


def short_hash(text: str, digits: int = 10) -> str:
    """First hexadecimal digits of the SHA-256 of a text, as a stable stand-in for a name.

    >>> short_hash("somebody")
    '729d7d638c'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; move it to `path` if the block ends without an error.

    A reader never sees half a file, and a crash or a full disk leaves the old file unchanged. The
    process id in the temporary name lets two runs write to one folder.

    Raises:
        OSError: as raised while writing; for a full disk it says what to do.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "new", "a.txt")) as unfinished:
    ...         _ = unfinished.write_text("whole")
    ...     [file.read_text() for file in Path(folder, "new").iterdir()]
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
            hint = "what is finished is kept, so free some space and run the same call again."
            error.add_note(f"No space left in {path.parent}: {hint}")
        raise
    finally:
        unfinished.unlink(missing_ok=True)
