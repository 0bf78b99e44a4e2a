"""Old place of the turn table, until every room takes it from `lib.data`."""

from lib.data.errors import DataError  # noqa: F401
from lib.data.hierarchy import KEY  # noqa: F401
from lib.data.turn_table import (  # noqa: F401
    COLUMNS,
    human_columns,
    read_report,
    turn_table,
    validate,
)
from lib.data.user_files import read_turns  # noqa: F401
