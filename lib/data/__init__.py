"""The turn table, the corpora behind it, personas, and a file of your own."""

from lib.data.blank import is_blank
from lib.data.corpora import (
    accounts,
    available,
    dailydialog_pairs,
    goemotions,
    load,
    overview,
    pushshift_sample,
    reddit_college,
    rumoureval,
)
from lib.data.corpus import Corpus
from lib.data.dialogues import (
    COLUMNS,
    KEY,
    DataError,
    human_columns,
    read_report,
    read_turns,
    to_dialogs,
    turn_table,
    validate,
)
from lib.data.dialogues.errors import nearest
from lib.data.downloads import data_folder, path
from lib.data.hierarchy import LEVELS, Nest, nest, separable_levels
from lib.data.storage import sha256, written_whole

__all__ = [
    "COLUMNS",
    "Corpus",
    "DataError",
    "KEY",
    "LEVELS",
    "Nest",
    "accounts",
    "available",
    "dailydialog_pairs",
    "data_folder",
    "goemotions",
    "human_columns",
    "is_blank",
    "load",
    "nearest",
    "nest",
    "overview",
    "path",
    "pushshift_sample",
    "read_report",
    "read_turns",
    "reddit_college",
    "rumoureval",
    "separable_levels",
    "sha256",
    "written_whole",
    "to_dialogs",
    "turn_table",
    "validate",
]
