"""The turn table, the corpora behind it, personas, and a file of your own."""

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
    wassa2022,
)
from lib.data.downloads import path
from lib.data.errors import DataError, nearest
from lib.data.storage import sha256, written_whole
from lib.data.turn_table import (
    KEY,
    LEVELS,
    Nest,
    human_columns,
    is_blank,
    nest,
    read_report,
    separable_levels,
    turn_table,
    validate,
)
from lib.data.user_files import read_turns
