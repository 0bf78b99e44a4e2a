"""Records of no known format that hold, somewhere below names, messages and perhaps a reply."""

import re
from collections.abc import Iterator
from typing import Any

from lib.data.log_messages import find_format, message_list, read_record, reply_text
from lib.data.log_shapes import Shape

DEPTH = 4
OUTPUT_NAME = re.compile(
    r"(output|response|completion|choices|answer|reply|result)(?!_?ids?\Z)", re.I
)
NO_TALK_NAME = re.compile(
    r"judg|grad(e|ing)|scor|eval|rubric|shot|example|template|tools?$", re.I
)
THREAD_NAME = re.compile(r"(session|conversation|thread|chat)_?-?id$", re.I)
TIME_NAME = re.compile(
    r"(^|_)(timestamp|time|created(_at)?|createdAt|start_time|startTime|start_ns)$"
)
MODEL_NAME = re.compile(r"(^|[_$])model(_?name)?$", re.I)

# Of Firebase: what was pushed, and accounts.
PUSH_ID = re.compile(r"-[\w-]{19}|(?=[A-Za-z0-9]*\d)(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{28}")


def nested_shape(rows: list[dict]) -> Shape | None:
    """Where requests, or the messages of dialogs, stand in all records; None if not in one place.

    Messages below a name such as "output" are a reply. Where there are messages of a judge or of
    examples, nothing is read.
    """
    places: dict[str, list[str]] = {}
    for row in rows[:20]:
        inputs, outputs = [], []
        for path, value in fields_below(row):
            if OUTPUT_NAME.search(path):
                if reply_text(value):
                    outputs.append(path)
            elif is_dialog(value):
                if NO_TALK_NAME.search(path):
                    return None
                inputs.append(path)
        for what, paths in (("input", inputs), ("output", shallowest(outputs))):
            if len(paths) > 1:
                return None
            places.setdefault(what, [])
            places[what] += [path for path in paths if path not in places[what]]
    found = {what: paths[0] for what, paths in places.items() if len(paths) == 1}
    if "input" not in found or any(len(paths) > 1 for paths in places.values()):
        return None
    named = ", ".join(f"{what}={path}" for what, path in found.items())
    fields = list(fields_below(rows[0]))
    for what, name in (
        ("time", TIME_NAME),
        ("model", MODEL_NAME),
        ("thread", THREAD_NAME),
    ):
        paths = [path for path, value in fields if name_fits(name, path, value)]
        if len(paths) == 1 or (paths and what != "thread"):
            found[what] = paths[0]
    return Shape("request", f"messages below names ({named})", signature=(), **found)


def name_fits(name: re.Pattern, path: str, value: Any) -> bool:
    """Whether the last name of a path is of this kind, and stands for a text or a number."""
    last = re.split(r"(?<!\\)\.", path)[-1].replace("\\.", ".").rpartition(".")[2]
    return isinstance(value, str | int | float) and name.search(last) is not None


def shallowest(paths: list[str]) -> list[str]:
    """The paths that go on from none of the others."""
    return [p for p in paths if not any(p.startswith(f"{other}.") for other in paths)]


def is_dialog(value: Any) -> bool:
    """Whether a value is a list of messages, of which some are of a user."""
    messages = message_list(value)
    message_format = find_format(messages) if messages else None
    if message_format is None:
        return False
    return any(utterance.role == "user" for utterance in message_format.read(messages))


def fields_below(
    value: dict, before: str = "", depth: int = DEPTH
) -> Iterator[tuple[str, Any]]:
    """The fields of a mapping and of those below it, with their paths; lists are not entered."""
    for name, item in value.items():
        path = before + str(name).replace(".", "\\.")
        yield path, item
        if isinstance(item, dict) and depth > 1:
            yield from fields_below(item, f"{path}.", depth - 1)


def nested_records(value: dict) -> list[list]:
    """The lists of dialogs below names, such as "result.items"."""
    lists = []
    for path, item in fields_below(value):
        is_list_of_records = (
            isinstance(item, list) and item and isinstance(item[0], dict)
        )
        if "." not in path or not is_list_of_records:
            continue
        record = item[0]
        inner = list(record.values())
        if len(inner) == 1 and isinstance(inner[0], dict):
            record = inner[0]  # each dialog is wrapped, as in {"conversation": {...}}
        if read_record(record):
            lists.append(item)
    return lists


def listed_by_push_ids(value: Any, depth: int = 9) -> Any:
    """Firebase's mappings of its ids to records as lists of these records, with their ids.

    >>> listed_by_push_ids({"chats": {"-NuwhvLV_3rAPfiHfYAb": {"text": "Hi"}}})
    {'chats': [{'id': '-NuwhvLV_3rAPfiHfYAb', 'text': 'Hi'}]}
    """
    if not isinstance(value, dict) or not value or depth == 0:
        return value
    fields = {}
    for name, item in value.items():
        fields[name] = listed_by_push_ids(item, depth - 1)
    if not all(map(PUSH_ID.fullmatch, fields)):
        return fields
    if all(isinstance(item, dict) for item in fields.values()):
        return [{"id": name, **item} for name, item in fields.items()]
    if all(isinstance(item, list) for item in fields.values()):
        return [{"id": name, "messages": item} for name, item in fields.items()]
    return fields
