"""Old place of `DataError`, until every room takes it from `lib.data`."""

from lib.data.errors import DataError, nearest  # noqa: F401
