"""Old place of the turn table, until every room takes it from `lib.data`."""

from lib.data.hierarchy import KEY  # noqa: F401
from lib.data.turn_table import LISTS, check_key, turn_table, validate  # noqa: F401
