"""What many readers of logs need: words of a message, times, ratings, trees, speakers."""

import html
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from typing import Any

from lib.data.corpora import snake_case
from lib.data.dialogs import WORDS, Rating, Utterance, speaker_role
from lib.data.file_contents import parse_list

SYNONYMS = WORDS["synonyms"]  # what people call our columns
SPEAKER = WORDS["fields"]["speaker"].split()
TEXT = WORDS["fields"]["text"].split()
ROLE = WORDS["fields"]["role"].split()
MODEL = WORDS["fields"]["model"].split()
TIME = WORDS["fields"]["time"].split()
DIALOG = ["dialog", *SYNONYMS["dialog"].split()]
TALK_BLOCKS = (None, "text", "input_text", "output_text", "markdown", "plain")
THUMBS = set((WORDS["ratings"]["up"] + " " + WORDS["ratings"]["down"]).split())
GERMAN_DATE = re.compile(r"^(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>\d{4})")
TIME_NAME = re.compile(r"time|(^|_)date(_|$)|created|sent_at")
RATING_NAME = re.compile(r"human_.+|(.+_)?rating|(.+_)?feedback")


def first_value(
    fields: Mapping[str, Any], names: Iterable[str], types: Any = object
) -> Any:
    """The first of these fields that is there, of these types and not empty."""
    for name in names:
        if name in fields:
            value = fields[name]
            if isinstance(value, types) and value is not None and value != "":
                return value
    return None


def first_text(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of these fields that is a text or a whole number, as text."""
    value = first_value(fields, names, str | int)
    return None if value is None else str(value)


def has_path(value: Any, path: str) -> bool:
    """Whether a record has a field at a path such as "messages[].author"; any item of a list.

    "texts[]=str" is a list of texts only, "text=str" a text, "speaker=U,S" one of these values.

    >>> has_path({"chat": [{}, {"author": "a"}]}, "chat[].author")
    True
    """
    name, _, rest = path.partition(".")
    if name.endswith("[]=str"):
        value = (
            value.get(name.removesuffix("[]=str")) if isinstance(value, dict) else None
        )
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    name, equals, wanted_values = name.partition("=")
    if equals:
        value = value.get(name) if isinstance(value, dict) else None
        if wanted_values == "str":
            return isinstance(value, str) and bool(value)
        return value in wanted_values.split(",")
    value = value.get(name.removesuffix("[]")) if isinstance(value, dict) else None
    if value is None:
        return False
    items = [value]
    if name.endswith("[]"):
        items = value[:50] if isinstance(value, list) else []
    if not rest:
        return bool(items)
    return any(has_path(item, rest) for item in items)


def dicts(value: Any) -> list[dict]:
    """The mappings in a list, or in a list written as JSON; empty for anything else."""
    if isinstance(value, str) and value[:1] == "[":
        value = parse_list(value)
    return (
        [item for item in value if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def text_of(content: Any) -> str | None:
    """The words of a message: a text, or the text blocks among its parts; None where it has none.

    Reasoning, calls of tools, their results, pictures and files are no words.

    >>> text_of([{"type": "text", "text": "Hi"}, {"type": "image_url"}])
    'Hi'
    """
    if isinstance(content, str):
        return content
    texts = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and is_talk_block(block):
            texts.append(_block_text(block))
    texts = [text for text in texts if text is not None]
    return "\n".join(texts) if texts else None


def is_talk_block(block: Mapping[str, Any]) -> bool:
    """Whether a block of a message holds words that are meant for the other side."""
    return block.get("type") in TALK_BLOCKS and not block.get("thought")


def words_of(message: Mapping[str, Any], text_key: str = "content") -> str | None:
    """The words of a message; None for an empty one that calls a tool."""
    text = text_of(message.get(text_key))
    calls = first_value(message, ("tool_calls", "function_call", "tool_call_id"))
    return None if calls and not text else text


def _block_text(block: dict) -> str | None:
    """The text of a block; OpenAI's Assistants put it one level deeper."""
    text = first_value(block, ("text", "content", "value"))
    if isinstance(text, dict):
        text = text.get("value")
    return text if isinstance(text, str) else None


class _HtmlText(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "br":
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "div", "li"):
            self.pieces.append("\n")


def html_text(source: str | None) -> str | None:
    """The words of a piece of HTML; None where it has none.

    >>> html_text("<p>Tea &amp; cake</p><p>at <b>four</b></p>")
    'Tea & cake\\nat four'
    """
    parser = _HtmlText()
    parser.feed(source or "")
    parser.close()
    lines = [line.strip() for line in html.unescape("".join(parser.pieces)).split("\n")]
    return "\n".join(line for line in lines if line) or None


def to_time(value: Any) -> datetime | None:
    """A time in UTC, from seconds, milli- or microseconds since 1970, or ISO 8601; else None.

    >>> to_time(1741169673000).isoformat(), to_time("2025-03-05T10:14:33Z").isoformat()
    ('2025-03-05T10:14:33+00:00', '2025-03-05T10:14:33+00:00')
    """
    if isinstance(value, str):
        try:
            text = GERMAN_DATE.sub(r"\g<year>-\g<month>-\g<day>", value.strip())
            time = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        except ValueError:
            if not re.fullmatch(r"\d{9,17}(\.\d+)?", value):
                return None
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    while abs(value) > 1e11:
        value /= 1000
    try:
        return datetime.fromtimestamp(value, UTC) if value > 1e8 else None
    except (ValueError, OverflowError, OSError):
        return None


@cache
def names_a_time(name: str) -> bool:
    """Whether a field is called as one that holds a time.

    >>> names_a_time("originalarrivaltime"), names_a_time("update")
    (True, False)
    """
    return TIME_NAME.search(snake_case(name)) is not None


def time_of(fields: Mapping[str, Any]) -> datetime | None:
    """The time of a message: of a field that is called so, else of one that holds one."""
    value = first_value(fields, TIME)
    if value is not None:
        return to_time(value)
    for name, value in fields.items():
        time = to_time(value) if names_a_time(name) else None
        if time:
            return time
    return None


def role_of(
    speaker: str, fields: Mapping[str, Any], speaker_key: str = ""
) -> str | None:
    """The role of a speaker: what a field of a message says of it, else what its name tells."""
    role = speaker_role(speaker)
    for name in reversed(ROLE):
        if isinstance(fields.get(name), str):
            role = speaker_role(fields[name]) or role
    is_bot = first_value(fields, ("is_bot", "isBot", "from_bot"), bool)
    is_user = first_value(fields, ("is_user", "isUser", "isCreatedByUser"), bool)
    if is_bot or is_user is False:
        role = "assistant"
    elif is_user or is_bot is False:
        role = "user"
    if speaker_key in ("role", "from", "type") and speaker.lower() == "system":
        role = "system"
    return role


def named_ratings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Rating by dimension, for what stands in `ratings`, `annotations` or `scores`."""
    ratings = {}
    for name in ("ratings", "annotations", "scores"):
        if isinstance(fields.get(name), dict):
            ratings |= {snake_case(key): value for key, value in fields[name].items()}
    return ratings


def read_ratings(fields: Mapping[str, Any], rater: str | None = None) -> list[Rating]:
    """The ratings of a dialog or an utterance that are people's by their names.

    These are `rating`, `feedback` (a thumb, no comment), `human_<name>` and what stands in
    `ratings` or `annotations`; a `score` is not, since models and metrics write one too.
    """
    values = {}
    for name, value in fields.items():
        dimension = snake_case(name)
        if RATING_NAME.fullmatch(dimension) and not isinstance(value, dict | list):
            comment = isinstance(value, str) and value.strip().lower() not in THUMBS
            if not (comment and dimension.endswith("feedback")):
                values[dimension] = value
    without_scores = {name: value for name, value in fields.items() if name != "scores"}
    values |= named_ratings(without_scores)
    ratings = []
    for dimension, value in values.items():
        if not isinstance(value, dict) and value is not None:
            ratings.append(Rating(rater, dimension.removeprefix("human_"), value))
    return ratings


def user(text: str | None, **fields: Any) -> Utterance:
    """What a user says."""
    return Utterance(speaker="user", role="user", text=text, **fields)


def assistant(text: str | None, speaker: str = "assistant", **fields: Any) -> Utterance:
    """What a bot says."""
    return Utterance(speaker=speaker, role="assistant", text=text, **fields)


def as_script(utterances: Iterable[Utterance]) -> list[Utterance]:
    """The same utterances as context only: a bot's reply among them is none to score."""
    scripted = []
    for utterance in utterances:
        if utterance.role in ("assistant", None):
            utterance = Utterance(
                speaker=f"{utterance.speaker} (context)",
                role=None,
                text=utterance.text,
                id=utterance.id,
                reply_to=utterance.reply_to,
            )
        scripted.append(utterance)
    return scripted


def path_to_root(node: Any, parent_of: Mapping[Any, Any]) -> list[Any]:
    """A node of a tree and all above it, the root first; a circle ends it."""
    path = []
    while node is not None and node not in path[-1:] and len(path) <= len(parent_of):
        path.append(node)
        node = parent_of.get(node)
    return path[::-1]
