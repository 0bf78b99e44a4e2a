"""Old place of `is_blank`, until every room takes it from `lib.data`."""

from lib.data.turn_table import is_blank  # noqa: F401
