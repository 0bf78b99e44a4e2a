"""Scores on disk: finished parts, the whole, and its provenance; each written in one step."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


class NoSpaceLeft(OSError):
    """The disk is full; what was finished is kept."""


class Store:
    """The files of one metric on one input: parts while it runs, then one file and its record.

    Each file is written beside its place and then renamed, so that a file that is there is whole.
    """

    def __init__(self, folder: Path, name: str, key: str):
        self.whole = folder / f"{name}-{key}.parquet"
        self.record = folder / f"{name}-{key}.json"
        self.parts = folder / f"{name}-{key}.parts"

    def part(self, number: int) -> Path:
        """Return the place of one finished batch of rows."""
        return self.parts / f"{number:06d}.parquet"

    def read_part(self, number: int) -> pd.DataFrame | None:
        """Return a finished part; None where there is none or it cannot be read."""
        try:
            return pd.read_parquet(self.part(number))
        except (FileNotFoundError, pa.ArrowInvalid, OSError):
            return None

    def write_part(self, number: int, table: pd.DataFrame) -> None:
        """Keep a finished part."""
        self.parts.mkdir(parents=True, exist_ok=True)
        _write(self.part(number), lambda path: _parquet(table, path))

    def finish(self, table: pd.DataFrame, record: dict) -> None:
        """Keep the whole and its provenance, and clear the parts."""
        text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
        _write(self.record, lambda path: path.write_text(text + "\n", encoding="utf-8"))
        _write(self.whole, lambda path: _parquet(table, path))
        shutil.rmtree(self.parts, ignore_errors=True)

    def read(self) -> tuple[pd.DataFrame, dict] | None:
        """Return the whole and its record; None where it was not finished."""
        if not (self.whole.exists() and self.record.exists()):
            return None
        shutil.rmtree(self.parts, ignore_errors=True)
        return pd.read_parquet(self.whole), json.loads(self.record.read_text(encoding="utf-8"))


def _parquet(table: pd.DataFrame, path: Path) -> None:
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, compression="zstd")


def _write(path: Path, write: Callable[[Path], object]) -> None:
    # The process id keeps two runs on one folder out of each other's unfinished file.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        write(unfinished)
        os.replace(unfinished, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpaceLeft(
                error.errno,
                "no space left for scores: what is finished is kept, so free some space and run "
                "the same call again",
                str(path.parent),
            ) from error
        raise
    finally:
        unfinished.unlink(missing_ok=True)
