"""Replies as lines of JSON, for publishing a run and for version control."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lib.cpdscore.reply_store.records import KEY_VERSION, Reply, StoreError, to_json
from lib.cpdscore.reply_store.store import ReplyStore

_NOTES = ("synthetic", "note")


def export_jsonl(
    store: ReplyStore, path: str | Path, requests: bool = True, keys: Iterable[str] | None = None
) -> int:
    """Write replies as JSON lines and return how many.

    ``requests=False`` leaves the prompts out; their keys still pin them to the letter.
    ``keys`` limits the file to some requests.
    """
    head = {"format": 1, "key_version": KEY_VERSION}
    head |= {name: note for name in _NOTES if (note := store.meta(name))}
    chosen = store.requests() if keys is None else [(key, store.request(key)) for key in keys]
    total = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(to_json(head) + "\n")
        for key, request in chosen:
            replies = store.replies([key]).values()
            line = {"key": key, "model": request["model"], "labels": request["labels"]}
            line |= {"body": request["body"]} if requests else {}
            file.write(to_json(line | {"replies": [_kept(reply) for reply in replies]}) + "\n")
            total += len(replies)
    return total


def import_jsonl(store: ReplyStore, path: str | Path) -> int:
    """Read what ``export_jsonl`` wrote; returns how many replies the file holds.

    Requests without a body are completed by the run that asks for them: the key proves that the
    prompt is the same. Raises ``StoreError`` naming the line that is not as expected.
    """
    with open(path, encoding="utf-8") as file:
        lines = [_read(path, number, line) for number, line in enumerate(file, 1) if line.strip()]
    if not lines or lines[0].get("key_version") != KEY_VERSION:
        raise StoreError(f"{path}: line 1: not replies with key version {KEY_VERSION}")
    replies = [(line["key"], Reply(**reply)) for line in lines[1:] for reply in line["replies"]]
    bodies = [
        (one["key"], one["model"], one["body"], one["labels"]) for one in lines[1:] if "body" in one
    ]
    store.add_replies(replies, bodies)
    for name in _NOTES:
        if name in lines[0]:
            store.set_meta(name, lines[0][name])
    return len(replies)


def _read(path: str | Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise StoreError(f"{path}: line {number}: not JSON ({error.msg})") from error
    if number > 1 and not {"key", "model", "labels", "replies"} <= set(value):
        raise StoreError(f"{path}: line {number}: needs key, model, labels and replies")
    return value


def _kept(reply: Reply) -> dict[str, Any]:
    fields = reply._asdict()
    del fields["attempt"]  # ids of attempts mean nothing in another store
    return {name: value for name, value in fields.items() if value is not None}
