"""Dialogs in tables: a row per utterance, or a row per exchange of user and bot."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from lib.data.corpora import snake_case
from lib.data.dialogs import WORDS, Dialog, Rating, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat, parse_list
from lib.data.log_messages import exchange_keys, read_utterance
from lib.data.log_parts import (
    DIALOG,
    MODEL,
    PARENT,
    RATERS,
    RATING_NAME,
    SPEAKER,
    SYNONYMS,
    TEXT,
    TIME,
    TURN,
    assistant,
    first_text,
    first_value,
    html_text,
    names_a_time,
    read_ratings,
    time_of,
    to_number,
    user,
    written_time,
)
from lib.data.log_times import (
    has_numeric_date,
    is_excel_day,
    order_numbers,
    read_times,
    to_time,
)

DIALOG_WORDS = set(WORDS["fields"]["dialog_words"].split())
ID_SHAPE = re.compile(r"(?=.*\d)(?=.*[a-z])[\w-]{4,}|\d{5,}|\S+@\S+|\+\d+", re.I)
# What a row answers, beside PARENT: only if its values are ids of other rows (`Columns._id`).
ANSWERED = (
    "reply_to_id",
    "reply_to_message_id",
    "reply_to_message",
    "reply_to_msg_id",
    "reply_id",
    "in_reply_to",
    "in_reply_to_id",
    "in_response_to",
    "in_response_to_tweet_id",
    "in_reply_to_status_id",
    "in_reply_to_tweet_id",
    "response_to",
    "responds_to",
    "replied_to",
    "replied_to_id",
    "answers",
    "parent_utterance",
    "parent_utterance_id",
    "parent_msg_id",
    "parent_message",
    "previous_id",
    "previous_message_id",
    "prev_id",
    "prev_message_id",
)
# In the name of a column that lists the rows that answer a row.
OF_ANSWERS = {"response", "responses", "reply", "replies", "child", "children"}
RECIPIENT = ("to", "recipient", "receiver", "to_number", "recipient_id", "receiver_id")
REMARK = re.compile(  # columns that are about a reply
    r"comment|note|reason|explan|rational|remark|justif|title|summary|url|link|path|file"
    r"|human_|score|rating|categor|label|tag|persona|name|date|time|error|source"
)
NO_DIALOG = re.compile(
    r"score|rating|human_|token|count|length|confid|cost|latency|price|reaction|feedback|vote|thumb"
    r"|quality|overall|helpful|coheren|correct|relevan|fluen|engag|appropriate|natural|verbos|complex"
)
VERSION = WORDS["fields"]["version"].split()
PERSON_WORDS = set(WORDS["fields"]["person_words"].split())
ID_WORDS = (
    "id",
    "uuid",
    "key",
    "no",
    "number",
    "channel",
    "room",
    "group",
    "topic",
    "subject",
    "ref",
)
WORDS_ENDING_IN_ID = (
    "paid",
    "valid",
    "said",
    "bid",
    "grid",
    "android",
    "avoid",
    "solid",
    "did",
)
NUMBERED = re.compile(r"(?P<before>.*?)_?(?P<number>\d{1,3})_?(?P<after>\D*)")
# A question of a survey, which is no turn of a dialog: Q1 of Qualtrics.
QUESTION = re.compile(r"human_q(id)?_?\d{1,3}(_\d{1,3})?")
# In the names of what is said after what has the same number.
ANSWERS = {"a", "answer", "response", "reply", "output", "completion"}
USER_TEXT = WORDS["fields"]["user_text"].split()
BOT_TEXT = WORDS["fields"]["bot_text"].split()
LONG_PAUSE = timedelta(hours=6)
MAX_ROWS = 300  # of one dialog without a name
MAX_VERSIONS = 20
FLAGS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
DIRECTIONS = WORDS["directions"]


# What a worker answers who compares two replies.
CHOICE = re.compile(
    r"(?i:((model|response|reply|answer|system|option)[ _]?)?[ab]|tie|both|neither|equal|same)"
)


class Crowd(NamedTuple):
    """A site where workers rate, and the columns of its results."""

    name: str
    worker: str
    task: str
    status: str
    shown: str  # before the name of what was shown
    answer: str  # before the name of a question


CROWDS = [
    Crowd(
        name="Mechanical Turk",
        worker="WorkerId",
        task="HITId",
        status="AssignmentStatus",
        shown="Input.",
        answer="Answer.",
    ),
    Crowd(
        name="Toloka",
        worker="ASSIGNMENT:worker_id",
        task="ASSIGNMENT:task_id",
        status="ASSIGNMENT:status",
        shown="INPUT:",
        answer="OUTPUT:",
    ),
]


# What Qualtrics writes about each response, beside its answers.
QUALTRICS = (
    "StartDate",
    "EndDate",
    "Status",
    "IPAddress",
    "Progress",
    "Duration (in seconds)",
    "Finished",
    "RecordedDate",
    "RecipientLastName",
    "RecipientFirstName",
    "RecipientEmail",
    "ExternalReference",
    "LocationLatitude",
    "LocationLongitude",
    "DistributionChannel",
    "UserLanguage",
)
QUALTRICS_PREVIEWS = ("Survey Preview", "Survey Test", "Spam")
QUALTRICS_ID = '{"ImportId"'  # begins the cells of its third row of names


class Columns:
    """The columns of a table of utterances, by their meaning; None where there is none."""

    def __init__(self, rows: list[dict]):
        self.rows = rows
        self.names: dict[str, str] = {}
        self.texts: dict[str, list[str]] = {}  # of the columns that were looked at
        for row in rows[:100]:
            for name in row:
                self.names.setdefault(snake_case(name), name)
        self.text = first_value(self.names, TEXT)
        self.turn = first_value(self.names, TURN)
        self.time = first_value(self.names, TIME) or self._time()
        self.speaker = self._speaker()
        self.speaker_key = snake_case(self.speaker) if self.speaker else ""
        self.text = self.text or self._text()
        self.dialog = first_value(self.names, DIALOG) or self._dialog()
        self.system = self._system()
        self.with_prompts = self._with_prompts()
        self.rater = self._rater()
        self.parent = first_value(self.names, (*PARENT, *ANSWERED))
        self.id = self._id()
        # The rows of each utterance: its own, and those of further raters.
        self.rows_by_utterance = [[row] for row in rows]

    def _with_prompts(self) -> bool:
        """Whether another speaker than "system" is a bot, so that "system" is a prompt."""
        speakers = set(self.values(self.speaker))
        others = {name for name in speakers if name.lower() != "system"}
        roles = {value_role(snake_case(self.speaker), name) for name in others}
        return len(others) < len(speakers) and "assistant" in roles

    def _text(self) -> str | None:
        """The only column of texts beside one of roles and one of times or dialogs, or None."""
        speakers = self._with_roles()
        words = {word for key in self.names for word in (key, *key.split("_"))}
        if not speakers or not words & {*TIME, *TURN, *DIALOG, *DIALOG_WORDS}:
            return None
        names = []
        for key, name in self.names.items():
            is_other = name not in speakers and not REMARK.search(key)
            if is_other and holds_talk(self.rows, name):
                names.append(name)
        return names[0] if len(names) == 1 else None

    def _time(self) -> str | None:
        """The column whose name speaks of a time, else one of times that differ; None without."""
        for key, name in self.names.items():
            first = self.rows[0].get(name)
            if names_a_time(key) and (to_time(first) or is_excel_day(first)):
                return name
        for key, name in self.names.items():
            if name in (self.text, self.turn) or is_id(key.split("_")):
                continue
            values = self.values(name)
            if len(set(values)) > 0.8 * len(values) and all(map(is_time, values[:100])):
                return name
        return None

    def _rater(self) -> str | None:
        """The column of who rated, where it is none of the others."""
        name = first_value(self.names, RATERS)
        taken = (
            self.text,
            self.turn,
            self.time,
            self.speaker,
            self.dialog,
            self.system,
        )
        return name if name not in taken else None

    def _id(self) -> str | None:
        """The column of the ids that `parent` holds, each of them once; None without one.

        Of a part of a log some ids may be missing, but for a third.
        """
        parents = {row_id(row.get(self.parent)) for row in self.rows} - {None}
        if not parents:
            return None
        for name in self.names.values():
            ids = {row_id(row.get(name)) for row in self.rows}
            if name == self.parent or len(ids) < len(self.rows):
                continue
            if len(parents & ids) >= 2 / 3 * len(parents):
                return name
        return None

    def values(self, name: str | None) -> list[str]:
        """The texts in a column; none without a column."""
        if name is None:
            return []
        if name not in self.texts:
            self.texts[name] = [str(row.get(name)) for row in self.rows]
        return self.texts[name]

    def _speaker(self) -> str | None:
        """The column of the speaker: by its values that are roles, else by its name."""
        by_name = first_value(
            self.names, [n for n in SPEAKER if n not in ("id", "user_id")]
        )
        by_values = self._with_roles()
        if by_name in by_values or not by_values:
            return by_name
        return by_values[0]

    def speaker_by_values(self) -> str | None:
        """The column whose values are roles of both sides; None without one."""
        systems = ["system", *SYNONYMS["system"].split()]
        by_values = [
            name for name in self._with_roles() if snake_case(name) not in systems
        ]
        return by_values[0] if by_values else None

    def system_of_speakers(self) -> str | None:
        """The column of systems whose values are roles of both sides; None without one."""
        systems = ["system", *SYNONYMS["system"].split()]
        for name in self._with_roles():
            if snake_case(name) in systems:
                return name
        return None

    def _with_roles(self) -> list[str]:
        """The columns whose values are few, and roles of both sides."""
        by_values = []
        for key, name in self.names.items():
            if name == self.text or key in ("response", *SYNONYMS["response"].split()):
                continue
            values = set(self.values(name)[:2000])
            roles = {value_role(key, value) for value in values}
            if len(values) <= 50 and {"user", "assistant"} <= roles:
                by_values.append(name)
        return by_values

    def _dialog(self) -> str | None:
        """The column of the dialog: the one whose name speaks of one and whose values recur."""
        candidates = []
        for key, name in self.names.items():
            values = self.values(name)
            recurs = 1 <= len(set(values)) < len(values)
            if (
                recurs
                and not self.tells_some_rows(values)
                and DIALOG_WORDS & set(key.split("_"))
                and "tool" not in key.split("_")  # a call of a tool
                and name not in (self.text, self.turn)
            ):
                candidates.append(name)
        return candidates[0] if len(candidates) == 1 else None

    def tells_some_rows(self, values: list[str]) -> bool:
        """Whether only some rows have a value, each its own, and not those that begin dialogs.

        So do ids of what a bot wrote, or of calls of tools.
        """
        named = [value for value in values if value not in ("None", "")]
        if len(named) == len(values) or len(set(named)) < len(named):
            return False
        return values[0] in ("None", "")

    def _system(self) -> str | None:
        """The column of the system or its version, which holds no speakers, flags or texts."""
        for key in VERSION:
            name = self.names.get(key)
            if name in (None, self.speaker, self.dialog, self.text):
                continue
            values = {value.lower() for value in self.values(name)[:2000]}
            if len(values) <= 50 and not values & set(FLAGS):
                return name
        return None

    def unclear(self) -> list[str]:
        """Columns without a known meaning, each of which may be the dialog.

        These are ids whose values recur, and others with both sides speaking below each value.
        """
        known_columns = (self.text, self.turn, self.time, self.speaker, self.dialog)
        unclear = []
        for key, name in self.names.items():
            if name in known_columns or name == self.system or names_a_time(key):
                continue
            if NO_DIALOG.search(key) or self.holds_ids_of_rows(name):
                continue
            values = self.values(name)
            if self.begins_blocks(name):
                unclear.append(name)
                continue
            if not 1 < len(set(values)) < len(values) or self.tells_some_rows(values):
                continue
            words = key.split("_")
            of_person = PERSON_WORDS & set(words)
            if (is_id(words) and not of_person) or self.has_both_sides(values):
                unclear.append(name)
        return unclear

    @cached_property
    def threads(self) -> list[str] | None:
        """The first utterance of the thread of each row; see `threads`."""
        return threads(self)

    def holds_ids_of_rows(self, name: str) -> bool:
        """Whether a column holds what a row answers, or lists the rows that answer it.

        Not where this does not tell the dialogs.
        """
        if not self.id or name == self.id or not self.threads:
            return False
        if name == self.parent:
            return True
        if not OF_ANSWERS & set(snake_case(name).split("_")):
            return False
        ids = {row_id(row.get(self.id)) for row in self.rows}
        cells = [row_id(row.get(name)) for row in self.rows]
        listed = {item for cell in cells if cell for item in cell.split(",")}
        return len(listed & ids) >= 2 / 3 * len(listed) > 0

    def begins_blocks(self, name: str) -> bool:
        """Whether a column has few values, each once, the first of them in the first row.

        So do merged cells, and tables that do not repeat the name of a dialog.
        """
        cells = [str(row.get(name) or "").strip() for row in self.rows]
        named = [cell for cell in cells if cell]
        each_once = 1 < len(set(named)) == len(named) <= len(cells) / 2
        return each_once and cells[0] != ""

    def recurring_ids(self) -> list[str]:
        """Columns whose values recur and are ids, by their names, or as they lie together."""
        known = {
            *" ".join(SYNONYMS.values()).split(),
            *(*RATERS, *VERSION, *TURN, *TIME, *SYNONYMS),
        }
        ids = []
        for key, name in self.names.items():
            if key in known or name == self.time or NO_DIALOG.search(key):
                continue
            values = self.values(name)
            if not 1 < len(set(values)) < len(values):
                continue
            shaped = sum(
                ID_SHAPE.fullmatch(value[:100]) is not None for value in values
            )
            with_digits = sum(any(map(str.isdigit, value)) for value in values)
            with_spaces = sum(" " in value.strip() for value in values)
            by_value = shaped > len(values) / 2
            if with_digits > len(values) / 2 > with_spaces:
                by_value = by_value or self.lie_together(values)
            words = key.split("_")
            if is_id(words) or PERSON_WORDS & set(words) or by_value:
                ids.append(name)
        return ids

    def lie_together(self, values: list[str]) -> bool:
        """Whether the rows of each value follow each other, in the order of their times."""
        times = [to_time(row.get(self.time)) for row in self.rows] if self.time else []
        if times and None not in times:
            order = sorted(range(len(times)), key=times.__getitem__)
            values = [values[position] for position in order]
        runs = 1 + sum(
            after != before for before, after in zip(values, values[1:], strict=False)
        )
        return runs == len(set(values))

    def has_both_sides(self, values: list[str]) -> bool:
        """Whether two speakers speak below most of the values of a column."""
        speakers: dict[str, set] = {}
        for value, speaker in zip(values, self.values(self.speaker), strict=True):
            speakers.setdefault(value, set()).add(speaker)
        both = sum(len(names) > 1 for names in speakers.values())
        return both > len(speakers) / 2

    def repeated_by(self) -> str | None:
        """A column by whose values a dialog begins again, with the same words or turns; or None.

        It then tells versions that were asked the same, or dialogs within what `dialog` tells.
        """
        known_columns = (self.text, self.turn, self.time, self.speaker, self.dialog)
        dialogs = self.values(self.dialog) if self.dialog else [""] * len(self.rows)
        others = [
            name
            for key, name in self.names.items()
            if name not in known_columns and not RATING_NAME.fullmatch(key)
        ]
        others.sort(key=lambda name: name != self.system)
        for name in others:
            values = self.values(name)
            if 1 < len(set(values)) <= MAX_VERSIONS and self.begins_again(
                dialogs, values
            ):
                return name
        return None

    def begins_again(self, dialogs: list[str], values: list[str]) -> bool:
        """Whether most dialogs with several of these values have the same words below each."""
        parts: dict[str, dict[str, list[dict]]] = {}
        for row, dialog, value in zip(self.rows, dialogs, values, strict=True):
            parts.setdefault(dialog, {}).setdefault(value, []).append(row)
        several = [list(by_value.values()) for by_value in parts.values()]
        several = [rows for rows in several if len(rows) > 1]
        alike = sum(self.repeat(rows_by_value) for rows_by_value in several)
        return alike > len(several) / 2

    def repeat(self, parts: list[list[dict]]) -> bool:
        """Whether parts of a dialog share a third of their texts, or all turns, of both sides."""
        if self.speaker:
            speakers = [{str(row.get(self.speaker)) for row in rows} for rows in parts]
            if min(map(len, speakers)) == 1:
                return False
        names = [self.text] if not self.turn else [self.turn, self.speaker]
        for columns, least in (([self.text], 1 / 3), (names, 1)):
            rows_of_parts = [
                {tuple(str(row.get(n)) for n in columns) for row in rows}
                for rows in parts
            ]
            if len(set.intersection(*rows_of_parts)) >= least * min(
                map(len, rows_of_parts)
            ):
                return True
        return False

    def finer_dialog(self) -> str | None:
        """A column of ids within each of whose values, in a dialog, both sides speak; or None."""
        known_columns = (self.text, self.turn, self.time, self.speaker, self.dialog)
        if not self.dialog or self.counts_through():
            return None
        for key, name in self.names.items():
            if name in known_columns or key.split("_")[-1] not in ID_WORDS:
                continue
            speakers: dict[tuple, set] = {}
            for row in self.rows:
                group = (str(row.get(self.dialog)), str(row.get(name)))
                speakers.setdefault(group, set()).add(str(row.get(self.speaker)))
            dialogs = {group[0] for group in speakers}
            if len(speakers) > len(dialogs) and min(map(len, speakers.values())) > 1:
                return name
        return None

    def counts_through(self) -> bool:
        """Whether each turn stands once in its dialog, for each speaker: nothing parts it."""
        if not self.turn:
            return False
        names = (self.dialog, self.turn, self.speaker)
        places = list(zip(*map(self.values, names), strict=True))
        return len(set(places)) == len(places)


def holds_talk(rows: list[dict], name: str) -> bool:
    """Whether a column holds texts of several words, most of which do not recur."""
    texts = [row.get(name) for row in rows[:200]]
    texts = [text for text in texts if text and isinstance(text, str)]
    several = sum(re.search(r"[^\W\d]{2} ", text[:1000]) is not None for text in texts)
    return 0 < len(texts) / 2 <= several and len(set(texts)) > len(texts) / 4


def is_time(value: str) -> bool:
    """Whether a value is a date, or seconds or milliseconds since 1970 of these decades.

    >>> [is_time(value) for value in ("2025-03-05 10:14", "5.3.25", "1741169673", "12", "7315")]
    [True, True, True, False, False]
    """
    if has_numeric_date(value):
        return True
    time = to_time(value)
    return time is not None and 1990 < time.year < 2050


def is_id(words: list[str]) -> bool:
    """Whether a name in these words is called as an id: its last one is, or ends in "id".

    >>> is_id(["ticket", "no"]), is_id(["csid"]), is_id(["paid"])
    (True, True, False)
    """
    last = words[-1]
    return last in ID_WORDS or (last.endswith("id") and last not in WORDS_ENDING_IN_ID)


@lru_cache(maxsize=1000)
def value_role(key: str, value: str) -> str | None:
    """The role that a value of a column tells; a flag such as is_bot, or a direction.

    >>> value_role("is_bot", "True"), value_role("direction", "inbound"), value_role("who", "bot")
    ('assistant', 'user', 'assistant')
    """
    words = key.split("_")
    if value.lower() in FLAGS:
        if key == "inbound":
            return "user" if FLAGS[value.lower()] else "assistant"
        asks = set(words) & {"bot", "assistant", "agent", "user", "customer", "human"}
        if words[0] not in ("is", "from", "by") or not asks:
            return None
        role = speaker_role(key)
        if FLAGS[value.lower()]:
            return role
        return "assistant" if role == "user" else "user"
    if "direction" in words:
        return DIRECTIONS.get(value.lower())
    if value in ("U", "S") and value.isupper():
        return {"U": "user", "S": "assistant"}[value]
    is_name = len(value) <= 40 and value.count(" ") < 4 and value[-1:] not in ".!?"
    is_name = is_name and ": " not in value  # as before what somebody says
    return speaker_role(value) if is_name else None


def read_utterance_rows(rows: list[dict], source) -> list[Dialog]:
    """A row per utterance: a speaker, a text, and the dialog.

    Raises:
        UnknownFormat: where no column tells the speaker, or several may tell the dialog.
    """
    columns = utterance_columns(rows, source)
    if not columns:
        return []
    check_texts(columns, source)
    take_texts_from_json(columns)
    names = dialog_of_each_row(columns, source)
    versions = version_column(columns)
    source.guess(
        "columns", f"speaker={columns.speaker!r} text={columns.text!r}", "by its values"
    )
    if versions:
        source.guess("columns", f"system={versions!r}", "a dialog begins again in each")
    dialogs: dict[tuple, Dialog] = {}
    for rows, name in zip(columns.rows_by_utterance, names, strict=True):
        version = str(rows[0].get(versions)) if versions else None
        dialog = dialogs.setdefault((name, version), Dialog(name, [], version))
        utterance = row_utterance(rows[0], columns)
        if columns.rater or len(rows) > 1:
            utterance.ratings = ratings_of_rows(rows, columns)
        dialog.utterances.append(utterance)
    return list(dialogs.values())


def ratings_of_rows(rows: list[dict], columns: Columns) -> list[Rating]:
    """The ratings in the rows of one utterance, each with its rater."""
    ratings = []
    for row in rows:
        rater = None
        if columns.rater:
            rater = first_text(row, [columns.rater])
        ratings += read_ratings(row, rater)
    return ratings


def dialog_of_each_row(columns: Columns, source) -> list[str]:
    """The name of the dialog of each row: its column, what the row answers, else the file's.

    Raises:
        UnknownFormat: where several columns may tell the dialog, or nothing does.
    """
    unclear = columns.unclear()
    named_none = source.report.options.columns.get("dialog") == "none"
    if restarts(columns) and not columns.dialog:
        unclear = [name for name in columns.recurring_ids() if name in unclear]
        agreeing = [name for name in unclear if at_restarts(columns, name)]
        columns.dialog = agreeing[0] if agreeing else None
    if unclear and not columns.dialog and not named_none:
        raise UnknownFormat(
            f"has no column that surely tells the dialogs; it may be {' or '.join(unclear)}",
            fix=f'name it: COLUMNS="dialog={unclear[0]}", or dialog=none for one dialog',
        )
    finer = columns.finer_dialog()
    if finer:
        raise UnknownFormat(
            f"has its dialogs in {columns.dialog}, or in {columns.dialog} and {finer} together",
            fix=f"write both into one column, or leave {finer} out",
        )
    if columns.dialog:
        source.guess("columns", f"dialog={columns.dialog!r}", "its values recur")
    elif not named_none:
        by_thread = columns.threads
        if by_thread:
            reason = "what it answers, up to the first"
            source.guess("columns", f"dialog: by {columns.parent!r}", reason)
            return by_thread
        check_one_dialog(columns, source)
    return dialog_names(columns, source)


def check_one_dialog(columns: Columns, source) -> None:
    """Refuse a table without dialogs that is too long for one, or has long pauses.

    Raises:
        UnknownFormat: with the ways to say where dialogs begin.
    """
    turns = columns.values(columns.turn)
    if not turns:
        check_length(columns, source)
    if not turns or len(set(turns)) < len(turns) and not restarts(columns):
        check_pauses(columns, source)


def utterance_columns(rows: list[dict], source) -> Columns | None:
    """The columns of a table of utterances, or None for a table without a text column.

    Rows with neither speaker nor text are excluded. Rows equal to an earlier one are excluded only
    if the table has a time column and they are a third or more of all rows (`without_repeats`).
    Rows without a dialog get the dialog of the row above (`fill_down_dialogs`).

    Raises:
        UnknownFormat: no column names the speaker, or `fill_down_dialogs` cannot tell which dialog
            a row belongs to.
    """
    columns = Columns(with_pairs(rows, source))
    if not columns.text:
        return None
    if not columns.speaker:
        raise UnknownFormat(
            f"has no column with the speaker; its columns are {', '.join(columns.names.values())}",
            fix=f'name it: COLUMNS="speaker=... text={columns.text} dialog=..."',
        )
    talk = [row for row in rows if row.get(columns.speaker) or row.get(columns.text)]
    source.exclude("utterances", "are of no speaker", len(rows) - len(talk))
    if len(talk) < len(rows):
        columns = Columns(talk)
    fill_down_dialogs(columns, source)
    unique_rows = without_repeats(columns, source)
    if len(unique_rows) < len(columns.rows):
        columns = Columns(unique_rows)
    return with_joined_raters(columns, source)


def with_joined_raters(columns: Columns, source) -> Columns:
    """The columns of a table with a row per utterance, where there is one per rater of it.

    Rows are of the same utterance if dialog, turn, time, speaker, words and system are the same.
    Without turns and times they follow each other, or are at the same place among the rows of
    their dialog and rater.

    Raises:
        UnknownFormat: for repeated rows where no column surely tells the raters.
    """
    names = [columns.dialog, columns.turn, columns.time, columns.system]
    names = [name for name in (*names, columns.speaker, columns.text) if name]
    keys = list(zip(*(columns.values(name) for name in names), strict=True))
    if len(set(keys)) == len(keys):
        return columns
    placed = bool(columns.turn or columns.time)
    if not placed:
        keys = with_places(keys, columns) if columns.rater else with_runs(keys)
    if not columns.rater:
        if not replies_recur(keys, columns):
            return columns
        check_raters(keys, columns)
        if not any(RATING_NAME.fullmatch(key) for key in columns.names):
            return columns
    rows_by_utterance = rows_by_rater(columns.rows, columns.rater, keys)
    if len(rows_by_utterance) == len(columns.rows):
        return columns
    rater = f"rater={columns.rater!r}" if columns.rater else "a row per rater"
    reason = "rows of the same utterance are joined, and their ratings averaged"
    source.guess("columns", rater, reason)
    joined = Columns([rows[0] for rows in rows_by_utterance])
    joined.rater = columns.rater
    joined.rows_by_utterance = rows_by_utterance
    return joined


def replies_recur(keys: list[tuple], columns: Columns) -> bool:
    """Whether a third or more of what is not said by users stands in several rows."""
    replies = []
    for key, row in zip(keys, columns.rows, strict=True):
        role = value_role(columns.speaker_key, str(row.get(columns.speaker)))
        if role != "user" and row.get(columns.text):
            replies.append(key)
    counts = Counter(replies)
    recurring = sum(count for count in counts.values() if count > 1)
    return 0 < len(replies) / 3 <= recurring


def check_raters(keys: list[tuple], columns: Columns) -> None:
    """Refuse rows of the same utterance that differ in names, or follow each other without turns.

    Raises:
        UnknownFormat: with the column that may tell the raters.
    """
    groups: dict[tuple, list[dict]] = {}
    for key, row in zip(keys, columns.rows, strict=True):
        groups.setdefault(key, []).append(row)
    repeated = [rows for rows in groups.values() if len(rows) > 1]
    problem = "has several rows of the same utterance"
    for name in columns.names.values():
        cells = [[row.get(name) for row in rows] for rows in repeated]
        differ = all(len(set(map(str, values))) == len(values) for values in cells)
        if differ and all(to_number(value) is None for value in chain(*cells)):
            raise UnknownFormat(
                f"{problem}, which differ in {name}",
                fix=f'say what it tells: COLUMNS="rater={name}" for raters, '
                f'"system={name}" for versions, "dialog={name}" for dialogs',
            )
    if not (columns.turn or columns.time):
        raise UnknownFormat(
            f"{problem}, and no column of turns, times or raters",
            fix='name the raters: COLUMNS="rater=...", or number the utterances in a column "turn"',
        )


def with_places(keys: list[tuple], columns: Columns) -> list[tuple]:
    """Keys of rows, with the place of each among the rows of its dialog and rater.

    Where some rows have no rater, the place is that of `with_runs`.
    """
    raters = [str(row.get(columns.rater) or "") for row in columns.rows]
    if not all(raters):
        return with_runs(keys)
    dialogs = columns.values(columns.dialog) or [""] * len(keys)
    places = Counter()
    placed = []
    for key, dialog, rater in zip(keys, dialogs, raters, strict=True):
        places[dialog, rater] += 1
        placed.append((*key, places[dialog, rater]))
    return placed


def with_runs(keys: list[tuple]) -> list[tuple]:
    """Keys of rows, with the number of the run of equal rows that each is in.

    >>> with_runs([("Hi",), ("Hi",), ("Ho",), ("Hi",)])
    [('Hi', 1), ('Hi', 1), ('Ho', 2), ('Hi', 3)]
    """
    numbered = []
    run = 0
    for number, key in enumerate(keys):
        if number == 0 or key != keys[number - 1]:
            run += 1
        numbered.append((*key, run))
    return numbered


def rows_by_rater(
    rows: list[dict], rater: str | None, keys: list[tuple]
) -> list[list[dict]]:
    """Groups of rows with the same key, one of each rater, in the order of their first rows.

    The second time that a rater rates the same, it is another utterance. Rows without a rater with
    the same key are one.

    >>> rows = [{"rater": "a"}, {"rater": "b"}, {"rater": "a"}]
    >>> [len(group) for group in rows_by_rater(rows, "rater", keys=[("Hi",)] * 3)]
    [2, 1]
    """
    groups: dict[tuple, list[dict]] = {}
    uses = Counter()
    for row, key in zip(rows, keys, strict=True):
        use = 1
        if rater and row.get(rater):
            uses[row[rater], *key] += 1
            use = uses[row[rater], *key]
        groups.setdefault((use, *key), []).append(row)
    return list(groups.values())


def with_pairs(rows: list[dict], source) -> list[dict]:
    """Rows with a dialog for each pair of sender and recipient, where nothing else names it."""
    columns = Columns(rows)
    recipient = first_value(columns.names, RECIPIENT)
    if columns.dialog or not columns.speaker or not recipient:
        return rows
    paired = []
    for row in rows:
        pair = sorted([str(row.get(columns.speaker)), str(row.get(recipient))])
        paired.append({**row, "dialog": " and ".join(pair)})
    reason = f"one for each pair of {columns.speaker} and {recipient}"
    source.guess("columns", "dialog: by pairs", reason)
    return paired


def fill_down_dialogs(columns: Columns, source) -> None:
    """Give rows without a dialog that of the row above, where each id stands only once.

    Raises:
        UnknownFormat: where some rows lack a dialog, and others share one.
    """
    cells = [row.get(columns.dialog) for row in columns.rows] if columns.dialog else []
    blank = [cell is None or not str(cell).strip() for cell in cells]
    named = [cell for cell, empty in zip(cells, blank, strict=True) if not empty]
    if not any(blank):
        return
    if blank[0] or len(set(map(str, named))) < len(named):
        raise UnknownFormat(
            f"has rows without a value in {columns.dialog}, which tells the dialogs",
            fix='fill them, or name another column: COLUMNS="dialog=..."',
        )
    reason = "rows without a value are of the dialog above"
    source.guess("columns", f"dialog={columns.dialog!r}", reason)
    name = None
    for row, cell, empty in zip(columns.rows, cells, blank, strict=True):
        name = name if empty else cell
        row[columns.dialog] = name
    del columns.texts[columns.dialog]


def without_repeats(columns: Columns, source) -> list[dict]:
    """The rows, without repeats where the export wrote many rows twice.

    A repeat equals an earlier row in every cell, the time included. A few repeats may be what
    somebody said twice within a minute and stay. They are excluded if they are a third or more of
    all rows: an error of the export. Without a time column all rows stay.
    """
    if not columns.time:
        return columns.rows
    names = (columns.dialog, columns.speaker, columns.text, columns.time)
    keys = zip(*(columns.values(name) for name in names if name), strict=True)
    if len(set(keys)) > 2 / 3 * len(columns.rows):
        return columns.rows
    rows = {tuple(map(str, row.values())): row for row in columns.rows[::-1]}
    repeats = len(columns.rows) - len(rows)
    if repeats < len(columns.rows) / 3:
        return columns.rows
    source.exclude("utterances", "are the same as another row", repeats)
    return list(rows.values())[::-1]


def check_texts(columns: Columns, source) -> None:
    """Refuse a table with two columns of words by their names, where most rows have both.

    Raises:
        UnknownFormat: with both.
    """
    if "text" in source.report.options.columns:
        return
    for key in TEXT:
        name = columns.names.get(key)
        is_other = name not in (None, columns.text, columns.speaker)
        if not is_other or REMARK.search(key) or not holds_talk(columns.rows, name):
            continue
        pairs = [(row.get(columns.text), row.get(name)) for row in columns.rows]
        differ = sum(words_differ(*pair) for pair in pairs)
        if differ > len(pairs) / 2:
            raise UnknownFormat(
                f"has words in {columns.text} and in {name}",
                fix=f'say which: COLUMNS="text={columns.text}" or "text={name}"',
            )


def words_differ(text: Any, other: Any) -> bool:
    """Whether two cells hold words of which neither is within the other, as in its HTML.

    >>> words_differ("Hi", "<p>Hi</p>"), words_differ("Hi", ""), words_differ("Hi", "Salut")
    (False, False, True)
    """
    text, other = (
        "".join(re.findall(r"\w+", str(cell or ""))) for cell in (text, other)
    )
    return bool(text and other) and text not in other and other not in text


def take_texts_from_json(columns: Columns) -> None:
    """Replace texts that are objects in JSON, as of a payload, by the text in each.

    Raises:
        UnknownFormat: where there is none in them.
    """
    cells = [row.get(columns.text) for row in columns.rows]
    if not all(isinstance(cell, str) and cell[:1] == "{" for cell in cells if cell):
        return
    values = [parse_list(cell) if cell else {} for cell in cells]
    if not all(isinstance(value, dict) for value in values):
        return
    texts = [first_value(value, TEXT, str) for value in values]
    if not any(texts):
        raise UnknownFormat(
            f"has objects in {columns.text}, none of which has a text",
            fix="write the words into a column of their own",
        )
    for row, text in zip(columns.rows, texts, strict=True):
        row[columns.text] = text


def threads(columns: Columns) -> list[str] | None:
    """The first utterance of the thread of each row, by what the rows answer.

    None where more than a third of the rows answer nothing, as in a messenger, where few do; but
    tweets are threads.
    """
    if not columns.id:
        return None
    parent_of = {}
    for row in columns.rows:
        parent = row_id(row.get(columns.parent))
        if parent is not None:
            parent_of[row_id(row.get(columns.id))] = parent
    # Tweets have no dialogs.
    of_tweets = "tweet" in snake_case(columns.parent).split("_")
    if len(parent_of) < 2 / 3 * len(columns.rows) and not of_tweets:
        return None
    first: dict[str | None, str] = {}  # of the thread of each row
    for row in columns.rows:
        path: dict[str | None, None] = {}  # in its order; a circle ends it
        name = row_id(row.get(columns.id))
        while name in parent_of and name not in first and name not in path:
            path[name] = None
            name = parent_of[name]
        found = first.get(name, str(name))
        first |= dict.fromkeys([*path, name], found)
    return [first[row_id(row.get(columns.id))] for row in columns.rows]


def row_id(cell: Any) -> str | None:
    """An id as text; None for an empty cell.

    In a column with empty cells pandas makes 12 a 12.0, which is the same id.
    """
    if cell is None or cell != cell or cell == "":
        return None
    text = str(cell)
    is_whole_number = text.endswith(".0") and text[:-2].isdigit()
    return text[:-2] if is_whole_number else text


def check_length(columns: Columns, source) -> None:
    """Refuse a table without dialogs that is longer than a dialog, unless SPLIT says what to do.

    Raises:
        UnknownFormat: with the ways to say it.
    """
    if len(columns.rows) > MAX_ROWS and not source.report.options.split:
        raise UnknownFormat(
            f"has {len(columns.rows)} rows, and no column with the dialogs",
            fix='name it: COLUMNS="dialog=...", or dialog=none for one dialog',
        )


def check_pauses(columns: Columns, source) -> None:
    """Refuse a table without dialogs whose times have long pauses, unless SPLIT says what to do.

    Raises:
        UnknownFormat: with the ways to say it.
    """
    if not columns.time or source.report.options.split:
        return
    values = columns.values(columns.time)
    if all(map(has_numeric_date, values)):
        times = read_times([values])[0]
    else:
        times = [to_time(row.get(columns.time)) for row in columns.rows]
    if None in times:
        return
    times = sorted(times)
    pauses = [after - before for before, after in zip(times, times[1:], strict=False)]
    if any(pause > LONG_PAUSE for pause in pauses):
        raise UnknownFormat(
            "has no column with the dialogs, and pauses of more than six hours",
            fix='say where dialogs begin: COLUMNS="dialog=..." or SPLIT=gap:6h; '
            'or COLUMNS="dialog=none" for one dialog',
        )


def version_column(columns: Columns) -> str | None:
    """The column of the versions that had the same dialogs; None without one.

    Raises:
        UnknownFormat: where a dialog begins again by a column that may hold versions or dialogs.
    """
    name = columns.repeated_by()
    if name is None or name == columns.system:
        return name
    dialogs = f'"dialog={name}"'
    if columns.dialog:
        dialogs = f"write {columns.dialog} and {name} into one column"
    raise UnknownFormat(
        f"has dialogs that begin again for each value of {name}: versions, or dialogs in them",
        fix=f'say which: COLUMNS="system={name}" for versions, or {dialogs} for dialogs',
    )


def dialog_names(columns: Columns, source) -> list[str]:
    """The name of the dialog of each row: its column, else the file's and where turns restart.

    Raises:
        UnknownFormat: for turns that restart, in rows that are not in their order.
    """
    if columns.dialog:
        return columns.values(columns.dialog)
    name = source.folder_id or source.stem
    if not columns.turn:
        return [name] * len(columns.rows)
    turns = [to_number(row.get(columns.turn)) for row in columns.rows]
    places = set(zip(turns, columns.values(columns.speaker), strict=True))
    if len(places) == len(turns):
        return [name] * len(columns.rows)
    names = []
    part = 1
    for number, turn in enumerate(turns):
        if (
            number
            and None not in (turn, turns[number - 1])
            and turn < turns[number - 1]
        ):
            part += 1
        names.append(f"{name} {part}")
    if not restarts(columns) or part > turns.count(turns[0]):
        raise UnknownFormat(
            f"has no column with the dialogs, and {columns.turn} goes up and down",
            fix='name it: COLUMNS="dialog=..."',
        )
    return names


def at_restarts(columns: Columns, name: str) -> bool:
    """Whether the values of a column change just where the turns begin again."""
    values = columns.values(name)
    turns = [to_number(row.get(columns.turn)) for row in columns.rows]
    if not columns.lie_together(values) or None in turns:
        return False
    for position in range(1, len(turns)):
        begins = turns[position] < turns[position - 1]
        if begins != (values[position] != values[position - 1]):
            return False
    return True


def restarts(columns: Columns) -> bool:
    """Whether a column of turns begins again, and so tells the dialogs."""
    if not columns.turn:
        return False
    turns = [to_number(row.get(columns.turn)) for row in columns.rows]
    first = [turn for turn in turns if turn == turns[0]]
    return turns[0] in (0, 1) and len(first) > 1


def row_utterance(row: Mapping[str, Any], columns: Columns) -> Utterance:
    """The utterance in a row; "system" is a prompt where another speaker is a bot."""
    utterance = read_utterance(row, columns.speaker, columns.text)
    if columns.id:
        utterance.id = row_id(row.get(columns.id))
        utterance.reply_to = row_id(row.get(columns.parent))
    utterance.number = to_number(row.get(columns.turn))
    if columns.time and not utterance.time:
        utterance.time = to_time(row.get(columns.time))
        written = str(row.get(columns.time) or "")
        utterance.written = None if utterance.time else written or None
    name = str(row.get(columns.speaker))
    role = value_role(columns.speaker_key, name)
    if columns.system and row.get(columns.system):
        utterance.system = str(row[columns.system])
    if columns.with_prompts and name.lower() == "system":
        role = "system"
    if role and utterance.role != "tool":
        utterance.role = role
    if role and (name.lower() in FLAGS or name.lower() in DIRECTIONS):
        utterance.speaker = role
    return utterance


def exchange_columns(rows: list[dict]) -> tuple[str, str, str] | None:
    """The columns of dialog, user's words and bot's words, where a dialog has several rows."""
    # In JSON a welcome has no words of a user, and so no text there.
    keys = next(filter(None, map(exchange_keys, rows[:50])), None)
    names = {snake_case(name) for name in rows[0]} if rows else set()
    if not keys or {"context", "history"} & names:
        return None
    user_text, bot_text = keys
    dialog = Columns(rows).dialog
    if not dialog or dialog in keys:
        return None
    ids = [str(row.get(dialog)) for row in rows]
    if len(set(ids)) == len(ids):
        return None  # a row per dialog: a table with one row per reply
    if histories_grow(rows, dialog, user_text=user_text, bot_text=bot_text):
        return None
    return dialog, user_text, bot_text


def histories_grow(
    rows: list[dict], dialog: str, *, user_text: str, bot_text: str
) -> bool:
    """Whether cells of a dialog hold what was said before, too: then each is a whole context."""
    before: dict[str, dict] = {}
    pairs = 0
    growing = 0
    for row in rows:
        previous = before.get(str(row.get(dialog)))
        if previous:
            text = str(row.get(user_text))
            pairs += 1
            earlier_user = str(previous.get(user_text) or "")  # none of a welcome
            earlier_bot = str(previous.get(bot_text))
            is_longer = len(text) > len(earlier_user) > 0
            repeats_user = is_longer and text.startswith(earlier_user)
            growing += repeats_user or (len(earlier_bot) > 20 and earlier_bot in text)
        before[str(row.get(dialog))] = row
    return growing > pairs / 2


def rows_by_time(rows: list[dict], dialog: str) -> list[dict]:
    """The rows in the order of their times, where all have one."""
    time = Columns(rows).time
    rows_with_time = [{"time": row[time]} if time else row for row in rows]
    times = [time_of(row) for row in rows_with_time]
    if None in times:
        written = [written_time(row) for row in rows_with_time]
        if None in written:
            return rows
        groups: dict[str, list[int]] = {}
        for position, row in enumerate(rows):
            groups.setdefault(str(row.get(dialog)), []).append(position)
        texts = []
        for positions in groups.values():
            texts.append([written[position] for position in positions])
        times = [0.0] * len(rows)
        for positions, numbers in zip(
            groups.values(), order_numbers(texts), strict=True
        ):
            for position, number in zip(positions, numbers, strict=True):
                times[position] = number
    return [
        rows[position] for position in sorted(range(len(rows)), key=times.__getitem__)
    ]


def read_exchange_rows(rows: list[dict], source) -> list[Dialog]:
    """A row per exchange: `session, user_message, bot_response`."""
    dialog_key, user_key, bot_key = exchange_columns(rows)
    names = {snake_case(name): name for name in rows[0]}
    turn = first_value(names, TURN)
    if turn and all(to_number(row.get(turn)) is not None for row in rows):
        rows = sorted(rows, key=lambda row: to_number(row[turn]))
    else:
        rows = rows_by_time(rows, dialog_key)
    text = f"dialog={dialog_key!r} user={user_key!r} response={bot_key!r}"
    source.guess("columns", text, "by their names")
    rater = first_value(names, RATERS)
    keys = [dialog_key, turn, user_key, bot_key]
    exchanges = rows_of_exchanges(rows, rater, keys, source)
    columns = Columns([exchange[0] for exchange in exchanges])
    columns.speaker = None
    columns.text = user_key
    columns.dialog = dialog_key
    version_column(columns)
    dialogs: dict[str, Dialog] = {}
    for row, *others in exchanges:
        about = {snake_case(name): value for name, value in row.items()}
        ratings = read_ratings(about, first_text(row, [rater] if rater else []))
        for other in others:
            ratings += read_ratings(other, str(other[rater]) if rater else None)
        system = first_text(about, [*VERSION, *MODEL])
        name = f"{row.get(dialog_key)}"
        dialog = dialogs.setdefault(f"{name}\0{system}", Dialog(name, [], system))
        time = to_time(first_value(about, TIME))
        dialog.utterances += [
            user(row.get(user_key) or None, time=time),
            assistant(row.get(bot_key) or None, time=time, ratings=ratings),
        ]
    return list(dialogs.values())


def rows_of_exchanges(
    rows: list[dict], rater: str | None, keys: list[str | None], source
) -> list[list[dict]]:
    """The rows of each exchange: one, or one of each rater.

    Rows of several raters are of one exchange if they are the same in `keys`, system and version;
    rows of raters without a name only if `keys` has the turn, since people say the same again.
    """
    has_turn = None not in keys
    if rater is None and not has_turn:
        return [[row] for row in rows]
    exchanges = rows_by_rater(rows, rater, [exchange_key(row, keys) for row in rows])
    if len(exchanges) < len(rows):
        reason = "rows of the same exchange are joined, and their ratings averaged"
        source.guess(
            "columns", f"rater={rater!r}" if rater else "a row per rater", reason
        )
    return exchanges


def exchange_key(row: dict, keys: list[str | None]) -> tuple[str, ...]:
    """What tells an exchange: these columns, and the columns of the system and its version."""
    about = {snake_case(name): value for name, value in row.items()}
    values = [row.get(key) for key in keys if key]
    values += [about.get(name) for name in (*VERSION, *MODEL)]
    return tuple(map(str, values))


def with_crowd_columns(table: pd.DataFrame, report) -> pd.DataFrame:
    """A table of a crowd with our names: what was shown, and the ratings of each worker.

    Of Mechanical Turk and Toloka. An answer that is no number, true or false is left out, but
    for which of two replies is better.
    """
    for crowd in CROWDS:
        if {crowd.worker, crowd.task, crowd.status} <= set(table):
            break
    else:
        return table
    table = with_chosen_options(with_task_answers(table, crowd), crowd)
    rejected = table[crowd.status].str.lower().eq("rejected")
    report.excluded["ratings", "were rejected"] += int(rejected.sum())
    kept = table[~rejected]
    columns = {"rater": kept[crowd.worker]}
    for name in table:
        rest = name.removeprefix(crowd.shown)
        if rest != name:
            columns[rest] = kept[name].map(shown_words)
        rest = name.removeprefix(crowd.answer)
        if rest != name and all(is_rating(cell) for cell in kept[name]):
            columns[f"human_{rest}"] = kept[name]
        elif rest != name and all(map(CHOICE.fullmatch, kept[name].astype(str))):
            columns["winner"] = kept[name]
    several_workers = kept[crowd.task].nunique() < len(kept)
    if several_workers and not set(DIALOG) & set(map(snake_case, columns)):
        columns["dialog"] = kept[crowd.task]
    report.guesses[
        "columns",
        f"{crowd.shown} and {crowd.answer} of {crowd.name}",
        "by their names",
    ] += 1
    return pd.DataFrame(columns, dtype=object).reset_index(drop=True)


def with_task_answers(table: pd.DataFrame, crowd: Crowd) -> pd.DataFrame:
    """A table of Mechanical Turk with a column for each answer that a worker's JSON holds."""
    name = f"{crowd.answer}taskAnswers"
    if name not in table:
        return table
    rows = []
    for row in table.to_dict("records"):
        answers = parse_list(str(row.pop(name)))
        for answer in answers if isinstance(answers, list) else []:
            for question, value in answer.items():
                options = value if isinstance(value, dict) else {"": value}
                for option, chosen in options.items():
                    row[f"{crowd.answer}{question}.{option}".rstrip(".")] = chosen
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def with_chosen_options(table: pd.DataFrame, crowd: Crowd) -> pd.DataFrame:
    """A table with the number that each worker chose, where each number had a column of its own.

    So does a form that offers buttons: of "Answer.quality.1" to "Answer.quality.5" one is true.
    """
    options: dict[str, dict[str, str]] = {}
    for name in map(str, table):
        stem, _, number = name.rpartition(".")
        if name.startswith(crowd.answer) and stem and number.isdecimal():
            options.setdefault(stem, {})[number] = name
    for stem, names in options.items():
        chosen = table[list(names.values())].astype(str).apply(lambda c: c.str.lower())
        are_flags = chosen.isin(["true", "false"]).all(axis=None)
        one_each = (chosen == "true").sum(axis=1).eq(1).all()
        if len(names) < 2 or not are_flags or not one_each:
            continue
        chosen.columns = list(names)
        numbers = (chosen == "true").idxmax(axis=1)
        table = table.drop(columns=list(names.values())).assign(**{stem: numbers})
    return table


def with_qualtrics_columns(table: pd.DataFrame, report) -> pd.DataFrame:
    """A table of Qualtrics without its further rows of names, its previews and what it logs.

    A response is a dialog, and its answers in numbers are ratings: the third row of names tells
    which columns are questions. Other tables are unchanged.
    """
    if not {"StartDate", "EndDate", "ResponseId"} <= set(table):
        return table
    responses = table["ResponseId"].astype(str)
    names = responses.str.startswith(QUALTRICS_ID).tolist()
    if True not in names[:3]:
        # A workbook has its questions below the names, and no ids of them.
        is_response = responses.str.startswith("R_").tolist()
        return table.iloc[1:] if is_response[:2] == [False, True] else table
    ids = table.iloc[names.index(True)]
    kept = table.iloc[names.index(True) + 1 :]
    if "Status" in kept:
        previews = kept["Status"].isin(QUALTRICS_PREVIEWS)
        reason = "are previews of a survey, or spam"
        report.excluded["dialogs", reason] += int(previews.sum())
        kept = kept[~previews]
    columns = {}
    for name in kept:
        is_question = f'{QUALTRICS_ID}:"QID' in str(ids[name]).replace(" ", "")
        if name == "ResponseId":
            columns["conversation_id"] = kept[name]
        elif is_question and all(is_rating(cell) for cell in kept[name]):
            columns[f"human_{name}"] = kept[name]
        elif name not in QUALTRICS:
            columns[name] = kept[name]
    reason = "its questions with answers in numbers are ratings"
    report.guesses["columns", "questions of Qualtrics", reason] += 1
    return pd.DataFrame(columns, dtype=object).reset_index(drop=True)


def shown_words(cell: Any) -> Any:
    """What a worker was shown, without the HTML of the page that a text may have.

    >>> shown_words("<b>Bot:</b> Hi<br>there"), shown_words("a < b"), shown_words("tea &amp; cake")
    ('Bot: Hi\\nthere', 'a < b', 'tea & cake')
    """
    if not isinstance(cell, str):
        return cell
    if re.search(r"<br ?/?>|</(b|i|p|div|span|strong|em)>", cell):
        return html_text(cell)
    return html.unescape(cell)


def is_rating(cell: Any) -> bool:
    """Whether a cell is a number, true or false, or empty."""
    text = str(cell or "").strip().lower()
    return text in ("", "true", "false") or to_number(cell) is not None


def wide_columns(rows: list[dict]) -> list[tuple[str, str]]:
    """The columns of what was said, such as user_1 and bot_1, in their order, with their roles.

    None where not exactly one name of numbered columns is the user's, and one the bot's.
    """
    numbered: dict[str, dict[int, str]] = {}
    for name in rows[0] if rows else {}:
        match = NUMBERED.fullmatch(snake_case(name))
        if match:
            stem = f"{match['before']}_{match['after']}".strip("_")
            numbered.setdefault(stem, {})[int(match["number"])] = name
    sides: dict[str, list[dict[int, str]]] = {"user": [], "assistant": []}
    answers = False
    for stem, columns in numbered.items():
        role = wide_role(stem)
        if role in sides and any_words(rows, columns.values()):
            sides[role].append(columns)
            answers |= role == "assistant" and bool(ANSWERS & set(stem.split("_")))
    if any(len(stems) != 1 for stems in sides.values()):
        return []
    return order_of_turns(
        list(rows[0]), sides["user"][0], sides["assistant"][0], answers=answers
    )


def order_of_turns(
    names: list[str], users: dict[int, str], bots: dict[int, str], *, answers: bool
) -> list[tuple[str, str]]:
    """The columns of both sides and their roles, in the order in which they were said.

    That is the order of the file where the numbers go up in it, and else the user's column before
    the bot's of the same number; so it is, too, where the bot's are called answers. None where that
    may be wrong, or there is one turn.

    >>> bots = {1: "bot_1", 2: "bot_2"}
    >>> order_of_turns(["bot_1", "user_1", "bot_2"], {1: "user_1"}, bots, answers=False)
    [('bot_1', 'assistant'), ('user_1', 'user'), ('bot_2', 'assistant')]
    """
    columns = [(turn, "user", name) for turn, name in users.items()]
    columns += [(turn, "assistant", name) for turn, name in bots.items()]
    by_place = sorted(columns, key=lambda column: names.index(column[2]))
    by_turn = sorted(columns, key=lambda column: (column[0], column[1] == "assistant"))
    in_order = [turn for turn, _, _ in by_place] == [turn for turn, _, _ in by_turn]
    said = by_place if in_order and not answers else by_turn
    roles = [role for _, role, _ in said]
    alternate = all(a != b for a, b in zip(roles, roles[1:], strict=False))
    common = set(users) & set(bots)
    if len(common) < 2 and not (common and alternate and len(said) > 2):
        return []
    if not alternate and len(users) != len(bots):
        return []  # such as two answers to the last question
    return [(name, role) for _, role, name in said]


def wide_role(stem: str) -> str | None:
    """The side that a name of numbered columns tells."""
    if stem in ("q", "u", *USER_TEXT):
        return "user"
    if stem in ("a", "b", *BOT_TEXT):
        return "assistant"
    return speaker_role(stem)


def any_words(rows: list[dict], names: Iterable[str]) -> bool:
    """Whether one of these columns holds texts and no numbers."""
    texts = [str(row.get(name) or "") for row in rows[:100] for name in names]
    return any(re.search(r"[^\W\d]{2}", text) for text in texts)


def read_wide_rows(rows: list[dict], source) -> list[Dialog]:
    """A row per dialog, with a column for each utterance: `user_1, bot_1, user_2, bot_2`."""
    turns = wide_columns(rows)
    names = " ".join(name for name, _ in turns[:4])
    source.guess("columns", f"{names} ...", "a column per utterance, by their names")
    dialogs = []
    for number, row in enumerate(rows, start=1):
        about = {snake_case(name): value for name, value in row.items()}
        of_dialog = {
            name: value
            for name, value in about.items()
            if QUESTION.fullmatch(name) or not NUMBERED.fullmatch(name)
        }
        rater = first_text(about, RATERS)
        dialog = Dialog(
            id=first_text(about, ["id", *DIALOG]) or str(number),
            utterances=[],
            system=first_text(about, [*VERSION, *SYNONYMS["system"].split()]),
            ratings=read_ratings(of_dialog, rater),
        )
        for name, role in turns:
            if not row.get(name):
                continue
            if role == "user":
                dialog.utterances.append(user(str(row[name])))
                continue
            fields = fields_of_number(about, number_in(name))
            ratings = read_ratings(fields, rater)
            dialog.utterances.append(assistant(str(row[name]), ratings=ratings))
        dialogs.append(dialog)
    return dialogs


def number_in(name: str) -> int:
    """The number in the name of a column such as "bot_1"."""
    return int(NUMBERED.fullmatch(snake_case(name))["number"])


def fields_of_number(about: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The fields with a number in their names, without it.

    >>> fields_of_number({"rating_1": "4", "rating_2": "5", "id": 1}, number=2)
    {'rating': '5'}
    """
    fields = {}
    for name, value in about.items():
        match = None if QUESTION.fullmatch(name) else NUMBERED.fullmatch(name)
        if match and int(match["number"]) == number:
            fields[f"{match['before']}_{match['after']}".strip("_")] = value
    return fields
