"""What is wrong with the lines of a dump that hold no comment, said to the user."""

import json
from itertools import islice
from pathlib import Path

from lib.endex.reddit.dumps import DumpError

NEEDED = ("id", "body", "parent_id")  # a record without one of these is no comment
LINES_TRIED = 1000  # lines at the start of a dump of which one must be a comment


def reasons(piece: Path, bad: set[int]) -> list[tuple[int, str]]:
    """Number and reason of the lines of a piece that hold no comment; blank lines not counted."""
    if not bad:
        return []
    with piece.open("rb") as file:
        lines = islice((line for line in file if line.strip()), max(bad) + 1)
        return [(row + 1, _reason(line)) for row, line in enumerate(lines) if row in bad]


def _reason(line: bytes) -> str:
    """Why a line is no comment."""
    try:
        record = json.loads(line)
    except ValueError:
        return "not JSON"
    if not isinstance(record, dict):
        return f"not a record but {type(record).__name__}"
    missing = [name for name in NEEDED if record.get(name) is None]
    return f"without {', '.join(missing)}" if missing else "text with broken characters"


def refuse_other_records(dump: Path, piece: Path) -> None:
    """Stop at a file of something else, rather than call a whole month bad lines."""
    with piece.open("rb") as file:
        lines = list(islice((line for line in file if line.strip()), LINES_TRIED))
    records = [_fields(line) for line in lines]
    if not lines or any(set(NEEDED) <= names for names in records):
        return
    names = records[0]
    if {"title", "selftext"} <= names:
        what = "these are submissions (RS_*), and the recipe reads comments (RC_*)"
    elif {"id_str", "full_text"} & names or {"text", "user"} <= names:
        what = "these are tweets"
    elif names:
        what = f"the records have the fields {', '.join(sorted(names)[:8])}"
    else:
        what = "the lines are no JSON records"
    raise DumpError(
        f"{dump.name}: no Reddit comment in the first {len(lines):,} lines: {what}. A comment "
        "dump has one JSON object per line with id, parent_id, link_id and body."
    )


def _fields(line: bytes) -> set[str]:
    """The names of the fields of a record; none where the line is no record."""
    try:
        record = json.loads(line)
    except ValueError:
        return set()
    return set(record) if isinstance(record, dict) else set()
