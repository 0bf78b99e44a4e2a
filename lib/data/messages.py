"""Dialogs whose messages stand in a list: one reader for each way of writing a message."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from lib.data.corpora import snake_case
from lib.data.dialogs import WORDS, Dialog, Rating, Utterance, speaker_role
from lib.data.file_contents import parse_list

SYNONYMS = WORDS["synonyms"]  # what people call our columns
SPEAKER = WORDS["fields"]["speaker"].split()
TEXT = WORDS["fields"]["text"].split()
ROLE = WORDS["fields"]["role"].split()
MODEL = WORDS["fields"]["model"].split()
DIALOG = ["dialog", *SYNONYMS["dialog"].split()]
PERSONA_LINES = re.compile(r"(?:(?:your|partner's) persona:.*(?:\n|$))*")
RATING_NAME = re.compile(r"human_.+|(.+_)?rating|score")


class MessageFormat(NamedTuple):
    """A way of writing a message: its signature is the keys that each message has."""

    name: str
    keys: set[str]
    read: Callable[[list[dict]], list[Utterance]]


def first_value(
    fields: Mapping[str, Any], names: Iterable[str], types: Any = object
) -> Any:
    """The first of these fields that is there, of these types and not empty."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, types) and value not in (None, ""):
            return value
    return None


def first_text(fields: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of these fields that is a text or a whole number, as text."""
    value = first_value(fields, names, str | int)
    return None if value is None else str(value)


def named_ratings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Rating by dimension, for what stands in `ratings`, `annotations` or `scores`."""
    ratings = {}
    for name in ("ratings", "annotations", "scores"):
        if isinstance(fields.get(name), dict):
            ratings |= {snake_case(key): value for key, value in fields[name].items()}
    return ratings


def read_ratings(fields: Mapping[str, Any]) -> list[Rating]:
    """Each rating, score or human_<name> of a dialog or an utterance, also within `ratings`."""
    values = {}
    for name, value in fields.items():
        dimension = snake_case(name)
        if RATING_NAME.fullmatch(dimension):
            values[dimension.removeprefix("human_")] = value
    for dimension, value in named_ratings(fields).items():
        values[dimension.removeprefix("human_")] = value
    return [
        Rating(rater=None, dimension=name, value=value)
        for name, value in values.items()
    ]


def text_of(content: Any) -> str | None:
    """The words of a message: a text, or the text blocks among its parts; None where it has none.

    >>> text_of([{"type": "text", "text": "Hi"}, {"type": "image_url"}])
    'Hi'
    """
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else []:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            texts.append(text)
    return "\n".join(texts) or None


def read_utterance(
    message: Mapping[str, Any], speaker_key: str, text_key: str
) -> Utterance:
    """The utterance in a message whose speaker and words stand under these keys."""
    fields = dict(message)
    if isinstance(message.get("meta"), dict):
        fields = message["meta"] | fields
    speaker = str(message.get(speaker_key))
    role = speaker_role(speaker)
    for name in reversed(ROLE):
        if isinstance(fields.get(name), str):
            role = speaker_role(fields[name]) or role
    if speaker_key in ("role", "from") and speaker.lower() == "system":
        role = "system"
    return Utterance(
        speaker=speaker,
        role=role,
        text=text_of(message.get(text_key)),
        id=first_text(message, ["id"]),
        reply_to=first_text(message, ["reply_to"]),
        system=first_value(fields, MODEL, str),
        ratings=read_ratings(fields),
        references=first_value(fields, ["reference"], list) or [],
    )


def read_plain(messages: list[dict]) -> list[Utterance]:
    """Messages with a speaker and a text, under whatever names."""
    speaker_key, text_key = speaker_and_text(messages)
    return [read_utterance(message, speaker_key, text_key) for message in messages]


def speaker_and_text(messages: list[dict]) -> tuple[str | None, str | None]:
    """The keys of messages that hold the speaker and the words."""
    keys = {}
    for message in messages:
        for key in message:
            keys.setdefault(snake_case(key), key)
    return first_value(keys, SPEAKER), first_value(keys, TEXT)


def read_personachat(messages: list[dict]) -> list[Utterance]:
    """Hugging Face's Persona-Chat: the last of the candidates is what was said."""
    last = messages[-1]
    texts = [*(last.get("history") or []), *last["candidates"][-1:]]
    return in_turn([{"text": text} for text in texts])


def in_turn(messages: list[dict]) -> list[Utterance]:
    """MultiWOZ 2.1: messages without a speaker are of user and bot in turn."""
    utterances = []
    for number, message in enumerate(messages):
        speaker = "bot" if number % 2 else "user"
        utterances.append(
            read_utterance({**message, "speaker": speaker}, "speaker", "text")
        )
    return utterances


def read_exchanges(messages: list[dict]) -> list[Utterance]:
    """Messages that hold what the user and what the bot said, each under its own name."""
    utterances = []
    for message in messages:
        for name, text in message.items():
            if speaker_role(name) in ("user", "assistant"):
                utterances.append(
                    read_utterance({name: text, "speaker": name}, "speaker", name)
                )
    return utterances


FORMATS = [  # in the order in which the signatures are tried
    MessageFormat("Persona-Chat (JSON)", {"history", "candidates"}, read_personachat),
    MessageFormat("OpenAI chat messages", {"role", "content"}, read_plain),
    MessageFormat("ShareGPT", {"from", "value"}, read_plain),
    MessageFormat("MultiWOZ 2.2", {"speaker", "utterance"}, read_plain),
    MessageFormat("ParlAI (JSON)", {"id", "text"}, read_plain),
]


def find_format(messages: list[dict]) -> MessageFormat | None:
    """The format of a list of messages: by its signature, else by a speaker and a text."""
    keys = set().union(*messages)
    speaker_key, text_key = speaker_and_text(messages)
    for message_format in FORMATS:
        if message_format.keys <= keys and (
            message_format.read is not read_plain
            or {speaker_key, text_key} == message_format.keys
        ):
            return message_format
    if not speaker_key and {"text", "metadata"} <= keys:
        return MessageFormat("MultiWOZ 2.1: user and bot in turn", keys, in_turn)
    if not text_key and {"user", "assistant"} <= {speaker_role(key) for key in keys}:
        return MessageFormat("exchanges of user and bot", keys, read_exchanges)
    if speaker_key and text_key:
        return MessageFormat(f"messages ({speaker_key}, {text_key})", keys, read_plain)
    return None


def message_list(cell: Any) -> list[dict]:
    """The messages in a field of a record; empty where it is no list of messages."""
    if isinstance(cell, str) and cell.startswith("[{"):
        cell = parse_list(cell)
    messages = []
    for item in cell if isinstance(cell, list) else []:
        messages += (
            item if isinstance(item, list) else [item]
        )  # ParlAI has them in pairs
    return messages if all(isinstance(message, dict) for message in messages) else []


def read_dialog(record: dict) -> tuple[Dialog, str] | None:
    """The dialog in a record that has a list of messages, and the name of their format."""
    for cell in record.values():
        messages = message_list(cell)
        message_format = find_format(messages) if messages else None
        if message_format:
            break
    else:
        return None
    fields = {snake_case(name): value for name, value in record.items()}
    dialog = Dialog(
        id=first_text(fields, ["id", *DIALOG]) or "",
        utterances=[],
        system=first_value(fields, MODEL, str),
        ratings=read_ratings(fields),
    )
    if isinstance(fields.get("personality"), list):
        dialog.facts += fields["personality"]
    for utterance in message_format.read(messages):
        add_without_persona(dialog, utterance)
    return dialog, message_format.name


def add_without_persona(dialog: Dialog, utterance: Utterance) -> None:
    """Add an utterance; lines of a persona before it, as ParlAI has them, become facts."""
    persona = PERSONA_LINES.match(utterance.text or "")[0]
    if persona:
        dialog.facts += re.findall(r"^your persona: *(.*)", persona, flags=re.M)
        utterance.text = utterance.text.removeprefix(persona)
    if utterance.text or not persona:
        dialog.utterances.append(utterance)
