"""Files on disk: their checksum, and writing them whole or not at all."""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits.

    >>> from lib import ROOT
    >>> len(sha256(ROOT / "LICENSE"))
    64
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a place to write to, and move it to `path` when the block ends without an error.

    A reader never meets half a file, and a crash or a full disk leaves the old one as it was. The
    process id keeps two runs on one folder out of each other's unfinished file.

    Raises:
        OSError: as raised while writing; for a full disk it says what to do.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder, "new", "a.txt")) as place:
    ...         _ = place.write_text("whole")
    ...     [path.read_text() for path in Path(folder, "new").iterdir()]
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
            error.add_note(
                f"No space left in {path.parent}: what is finished is kept, so free some space and "
                "run the same call again."
            )
        raise
    finally:
        unfinished.unlink(missing_ok=True)
