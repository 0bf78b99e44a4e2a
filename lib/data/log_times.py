"""Times as logs write them: numbers, ISO 8601, dates in words, and dates of three numbers.

The last may have the day or the month first, which one of them alone does not tell: `read_times`
looks at all that belong together.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from lib.data.file_contents import UnknownFormat

EPOCH = re.compile(r"\d{9,17}(\.\d+)?")
DATE_IN_WORDS = re.compile(
    r"[A-Z][a-z]{2,8}\.? \d{1,2}, \d{4}|\d{1,2} [A-Z][a-z]{2,8}\.? \d{4}"
    r"|^\d\d-[A-Z][a-z]{2}-\d\d "
    r"|^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [+-]\d{4} \d{4}$"  # of Twitter
)
DATE_IN_NUMBERS = re.compile(
    r"(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),?(?:[ T]+(?:at )?"
    r"(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)(?:\.\d+)?(?:\s?(?P<half>[ap])\.?\s?m\.?)?)?",
    re.I,
)
CLOCK = re.compile(
    r"(?P<hours>\d{1,2}):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:[.,]\d+)?))?"
    r"(?:\s?(?P<half>[ap])\.?m\.?)?",
    re.I,
)
EXCEL_DAYS = (
    20_000,
    80_000,
)  # days since 1900 as Excel counts them: the years 1954 to 2119
ORDERS = {"dmy": "the day first", "mdy": "the month first", "ymd": "the year first"}


def to_time(value: Any) -> datetime | None:
    """A time in UTC, from seconds, milli- or microseconds since 1970, ISO 8601 or words; else None.

    >>> to_time(1741169673000).isoformat(), to_time("2025-03-05T10:14:33Z").isoformat()
    ('2025-03-05T10:14:33+00:00', '2025-03-05T10:14:33+00:00')
    >>> to_time("Mar 5, 2025, 10:14 AM").isoformat(), to_time("05/03/2025 10:14")
    ('2025-03-05T10:14:00+00:00', None)
    """
    if isinstance(value, Mapping):
        # As MongoDB exports it: {"$date": {"$numberLong": "..."}}
        return to_time(value.get("$date", value.get("$numberLong")))
    if isinstance(value, str):
        text = value.strip()
        if not EPOCH.fullmatch(text):
            return _text_time(text)
        value = float(text)
    if isinstance(value, datetime):  # as Parquet holds it
        return in_utc(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    while abs(value) > 1e11:
        value /= 1000
    try:
        return datetime.fromtimestamp(value, UTC) if value > 1e8 else None
    except (ValueError, OverflowError, OSError):
        return None


def _text_time(text: str) -> datetime | None:
    """A time in ISO 8601, or with the name of its month."""
    try:
        time = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    except ValueError:
        if len(text) > 60 or not DATE_IN_WORDS.search(text):
            return None
        try:
            time = pd.Timestamp(text).to_pydatetime()
        except (ValueError, OverflowError):
            return None
    return in_utc(time)


def in_utc(time: datetime) -> datetime:
    """A time in UTC, which is where one without a zone is taken to be from."""
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def has_numeric_date(value: Any) -> bool:
    """Whether a value is a date of three numbers, such as 05/03/2025 or 5.3.25 10:14."""
    return (
        isinstance(value, str) and DATE_IN_NUMBERS.fullmatch(value.strip()) is not None
    )


def numeric_time(text: str, order: str) -> datetime | None:
    """A date of three numbers in this order, with its clock; None where it cannot be one.

    >>> numeric_time("3/14/25, 1:05 PM", "mdy").isoformat(), numeric_time("3/14/25", "dmy")
    ('2025-03-14T13:05:00+00:00', None)
    >>> numeric_time("yesterday", "dmy") is None
    True
    """
    match = DATE_IN_NUMBERS.fullmatch(text.strip())
    if match is None:
        return None
    numbers = dict(zip(order, map(int, re.split(r"[./-]", match["date"])), strict=True))
    clock = [int(number) for number in re.split("[:.]", match["time"] or "0:00")]
    if match["half"]:
        clock[0] = clock[0] % 12 + 12 * (match["half"].lower() == "p")
    year = numbers["y"] + 2000 * (numbers["y"] < 100)
    try:
        return datetime(year, numbers["m"], numbers["d"], *clock, tzinfo=UTC)
    except ValueError:
        return None


def read_times(dialogs: Sequence[Sequence[str]]) -> list[list[datetime]]:
    """The times of the utterances of each dialog, from their dates of three numbers.

    What stands first is the one reading in which all are dates; else the one in which the times
    of each dialog run forward, or all backward; else any, where all give the same order.

    Raises:
        UnknownFormat: for two readings with different orders, with both; or for none.

    >>> read_times([["13/03/2025", "14/03/2025"]])[0][0].isoformat()
    '2025-03-13T00:00:00+00:00'
    """
    readings = {}
    for order in ORDERS:
        times = [[numeric_time(text, order) for text in texts] for texts in dialogs]
        if all(None not in dialog_times for dialog_times in times):
            readings[order] = times
    monotone = {name: times for name, times in readings.items() if runs_one_way(times)}
    chosen = monotone or readings
    orders = {repr([ranks(times) for times in reading]) for reading in chosen.values()}
    if len(orders) == 1:
        return next(iter(chosen.values()))
    example = next(text for texts in dialogs for text in texts)
    if not readings:
        problem = f"has times such as {example!r}, of which some are no dates"
    else:
        names = " or ".join(ORDERS[order] for order in chosen)
        problem = f"has dates such as {example!r} that can be read with {names}"
    raise UnknownFormat(
        problem, fix="write them as 2025-03-14 10:05, or leave them out"
    )


def order_numbers(dialogs: Sequence[Sequence[str]]) -> list[list[float]]:
    """Numbers that put the utterances of each dialog in order, from times as they are written.

    Times of the day, and seconds from a start, tell only whether the newest stands first. Days as
    Excel counts them (45721.4) are times.

    Raises:
        UnknownFormat: for times that cannot be read, or go up and down.

    >>> order_numbers([["10:03", "10:02"]]), order_numbers([["10:02", "10:03"]])
    ([[2.0, 1.0]], [[0.0, 0.0]])
    >>> order_numbers([["45721.5", "45721.4"]])
    [[45721.5, 45721.4]]
    """
    texts = [text for dialog in dialogs for text in dialog]
    if all(has_numeric_date(text) for text in texts):
        return [[time.timestamp() for time in times] for times in read_times(dialogs)]
    keys = [[number_or_clock(text) for text in dialog] for dialog in dialogs]
    if any(None in dialog for dialog in keys):
        unknown = next(text for text in texts if number_or_clock(text) is None)
        raise UnknownFormat(
            f"has times such as {unknown!r}, which cannot be read",
            fix='write them as 2025-03-14 10:05; or COLUMNS="time=none", if the rows are in order',
        )
    has_clocks = any(":" in text for text in texts)
    numbers = [number for dialog in keys for number in dialog]
    first, last = EXCEL_DAYS
    if not has_clocks and all(first <= number <= last for number in numbers):
        return keys
    for midnights in (0, 1):  # at which clocks begin again
        if all(descents(dialog) <= midnights for dialog in keys):
            return [[0.0] * len(dialog) for dialog in keys]
        if all(descents(dialog[::-1]) <= midnights for dialog in keys):
            return [[float(n) for n in range(len(dialog), 0, -1)] for dialog in keys]
    if has_clocks:
        raise UnknownFormat(
            f"has times such as {texts[0]!r} that go up and down",
            fix="write them with their dates",
        )
    return [[0.0] * len(dialog) for dialog in keys]


def is_excel_day(value: Any) -> bool:
    """Whether a value is a time as Excel counts days, with a part of a day.

    >>> is_excel_day("45721.4"), is_excel_day("45721"), is_excel_day("3.5")
    (True, False, False)
    """
    match = re.fullmatch(r"(\d{5})\.\d+", str(value))
    return match is not None and EXCEL_DAYS[0] <= int(match[1]) <= EXCEL_DAYS[1]


def number_or_clock(text: str) -> float | None:
    """A number, or a time of the day in seconds; else None.

    >>> number_or_clock("10:00:05"), number_or_clock("1:30 PM"), number_or_clock("12:00 am")
    (36005.0, 48600.0, 0.0)
    """
    clock = CLOCK.fullmatch(text.strip())
    if clock:
        parts = [part or "0" for part in clock.group("hours", "minutes", "seconds")]
        hours, minutes, seconds = (float(part.replace(",", ".")) for part in parts)
        if clock["half"]:
            hours = hours % 12 + 12 * (clock["half"].lower() == "p")
        return 3600 * hours + 60 * minutes + seconds
    try:
        return float(text)
    except ValueError:
        return None


def descents(numbers: Sequence[float]) -> int:
    """How often a number is smaller than the one before it."""
    return sum(
        after < before for before, after in zip(numbers, numbers[1:], strict=False)
    )


def runs_one_way(dialogs: Sequence[Sequence[datetime]]) -> bool:
    """Whether the times of all dialogs run forward, or those of all run backward."""
    forward = all(list(times) == sorted(times) for times in dialogs)
    backward = all(list(times) == sorted(times, reverse=True) for times in dialogs)
    return forward or backward


def ranks(times: Sequence[datetime]) -> list[int]:
    """The place of each time in their order; the same for equal ones."""
    rank_of = {time: rank for rank, time in enumerate(sorted(set(times)))}
    return [rank_of[time] for time in times]
