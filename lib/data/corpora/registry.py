"""What `data/corpora.json` knows of each file and each corpus."""

import json
from functools import cache
from typing import Any

from lib import ROOT
from lib.data.dialogues.errors import DataError, nearest

DATA = ROOT / "data"


@cache
def registry() -> dict[str, Any]:
    """The registry: `sets` (licence, source), `files` (address, checksum), `corpora`, `tables`."""
    return json.loads((DATA / "corpora.json").read_text(encoding="utf-8"))


def file_entry(key: str) -> dict[str, Any]:
    """The entry of one file, by its key, such as "usr/tc_usr_data.json"."""
    files = registry()["files"]
    if key not in files:
        hint = nearest(key, files)
        raise DataError(f"there is no registered file {key!r}", fix=hint or "see data/corpora.json")
    return files[key]


def set_of(name: str) -> dict[str, Any]:
    """Title, licence, citation and source of the set that a corpus or table belongs to."""
    known = registry()["corpora"] | registry()["tables"]
    return registry()["sets"][known[name]["set"]]
