"""The turn table: one row per rated response, and how to read, check and unfold it.

Columns: `system`, `agent`, `dialog` (str), `turn` (int), `context`, `reference`, `fact` (lists of
str), `response` (str), then `human_<dimension>` (float, mean over annotators).
"""

from lib.data.dialogues.errors import DataError
from lib.data.dialogues.reading import read_turns
from lib.data.dialogues.table import (
    COLUMNS,
    KEY,
    human_columns,
    read_report,
    to_dialogs,
    turn_table,
    validate,
)

__all__ = [
    "COLUMNS",
    "KEY",
    "DataError",
    "human_columns",
    "read_report",
    "read_turns",
    "to_dialogs",
    "turn_table",
    "validate",
]
