"""Logs of dialogs as people keep them: what format a file has, and the dialogs in it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from lib.data.corpora import snake_case
from lib.data.dialogs import WORDS, Dialog, speaker_role
from lib.data.file_contents import ImportReport, UnknownFormat, read_contents
from lib.data.messages import DIALOG, SPEAKER, SYNONYMS, TEXT, first_value, read_dialog
from lib.data.transcripts import read_exchange_lines, read_transcript

__all__ = ["read_dialogs", "speaker_role"]
RESPONSE = {"response", *SYNONYMS["response"].split()} - set(TEXT)


class Source(NamedTuple):
    """What a file holds, with its records where it is a table or JSON."""

    file: Path
    value: Any
    records: list[dict]
    report: ImportReport


class LogFormat(NamedTuple):
    """One way of keeping dialogs; `read` gives none for what is not of its kind.

    Attributes:
        kind: what the option KIND calls it.
        types: what a file must hold.
        read: from the source to its dialogs and the name of their format.
    """

    kind: str
    types: Any
    read: Callable[[Source], tuple[list[Dialog], str]]


def read_dialogs(value: Any, file: Path, report: ImportReport) -> list[Dialog] | None:
    """The dialogs in what a file holds; None for a table with one row per reply.

    Raises:
        UnknownFormat: nothing of the kind, with examples of formats.
    """
    kind = report.options.kind
    columns = report.options.columns
    rows = [] if isinstance(value, str) else records(value)
    if kind in (None, "table") and (
        has_response(columns) or any(map(has_response, rows[:1]))
    ):
        return None
    names = {name: column for column, name in columns.items()}
    if names:
        rows = [rename_keys(row, names) for row in rows]
    source = Source(file, value, rows, report)
    for log_format in FORMATS:
        if kind not in (None, log_format.kind) or not isinstance(
            value, log_format.types
        ):
            continue
        dialogs, name = log_format.read(source)
        if dialogs:
            report.decide("kind", log_format.kind, name)
            folder = f"{report.name_below(file)}/" if file != report.path else ""
            for number, dialog in enumerate(dialogs, start=1):
                dialog.id = f"{folder}{dialog.id or number}"
            return dialogs
    if isinstance(value, pd.DataFrame) and kind in (None, "table"):
        return None  # whose columns may be mapped
    problem = f"is not of the kind {kind!r}" if kind else "is no chat log that we know"
    raise UnknownFormat(problem, file, fix=f"write it like this:\n{examples(value)}")


def rename_keys(row: Mapping[str, Any], names: Mapping[str, str]) -> dict:
    """A row with new names for some of its keys."""
    return {names.get(key, key): value for key, value in row.items()}


def examples(value: Any) -> str:
    """Examples of what can be read, for what a file holds: a text, a table or JSON."""
    kind = "json"
    if isinstance(value, str):
        kind = "text"
    elif isinstance(value, pd.DataFrame):
        kind = "table"
    return "\nor\n".join(WORDS["examples"][kind])


def records(value: Any) -> list[dict]:
    """One mapping per dialog or row, whatever holds them together; none where they are others."""
    if isinstance(value, pd.DataFrame):
        return value.loc[:, ~value.columns.duplicated()].to_dict("records")
    if isinstance(value, dict):
        if is_record(value):
            return [value]
        if all(
            isinstance(item, dict) for item in value.values()
        ):  # MultiWOZ: by their names
            return [{"id": name, **item} for name, item in value.items()]
        splits = [item for item in value.values() if isinstance(item, list)]
        value = sum(splits, [])
    rows = [{"messages": item} if isinstance(item, list) else item for item in value]
    if not all(isinstance(row, dict) for row in rows):
        return []
    unfolded = []
    for row in rows:
        unfolded += unfold(row)
    return unfolded


def is_record(value: Any) -> bool:
    """Whether this is a dialog or a reply, and does not hold several."""
    return isinstance(value, dict) and (
        has_response(value) or read_dialog(value) is not None
    )


def unfold(row: dict) -> list[dict]:
    """The dialogs, or replies to one context, in a list of a row, each with the rest of the row."""
    for name, cell in row.items():
        if isinstance(cell, list) and cell and is_record(cell[0]):
            rest = {key: value for key, value in row.items() if key != name}
            return [rest | item for item in cell if isinstance(item, dict)]
    return [row]


def has_response(row: Mapping[str, Any]) -> bool:
    """Whether a row has a column with the bot's reply."""
    return not RESPONSE.isdisjoint(snake_case(name) for name in row)


def _read_lines(source: Source) -> tuple[list[Dialog], str]:
    name = "Persona-Chat (numbered lines)"
    if source.value.startswith("text:"):
        name = "ParlAI (text)"
    return read_exchange_lines(source.value), name


def _read_transcript(source: Source) -> tuple[list[Dialog], str]:
    return read_transcript(source.value, source.report), "transcript"


def _read_messages(source: Source) -> tuple[list[Dialog], str]:
    """One dialog per record, with a list of messages."""
    if not any(map(read_dialog, source.records[:20])):
        return [], ""
    dialogs = [read_dialog(record) for record in source.records]
    found_dialogs = [result[0] for result in dialogs if result]
    names = [result[1] for result in dialogs if result]
    other_shape = len(dialogs) - len(found_dialogs)
    source.report.excluded["dialogs", "are in another shape"] += other_shape
    return found_dialogs, names[0]


def _read_utterances(source: Source) -> tuple[list[Dialog], str]:
    """One row per utterance, as ConvoKit and many tables have it, by dialogs."""
    columns = {}
    for name in source.records[0] if source.records else []:
        columns.setdefault(snake_case(name), name)
    speaker_key = first_value(columns, SPEAKER[:-1])
    text_key = first_value(columns, TEXT)
    dialog_key = first_value(columns, DIALOG)
    if not speaker_key or not text_key:
        return [], ""
    beside = source.file.with_name("speakers.json")  # ConvoKit's, what the speakers are
    speakers = read_contents(beside, ImportReport(beside)) if beside.is_file() else {}
    groups: dict[Any, list[dict]] = {}
    for row in source.records:
        speaker = speakers.get(str(row.get(speaker_key)))
        if speaker:
            row = row | {"meta": (speaker.get("meta") or {}) | (row.get("meta") or {})}
        groups.setdefault(row.get(dialog_key), []).append(row)
    dialogs = []
    for name, rows in groups.items():
        result = read_dialog({"id": str(name), "messages": rows})
        if result:
            dialogs.append(result[0])
    if "reply_to" in columns:
        return dialogs, "ConvoKit utterances"
    return dialogs, f"one row per utterance ({speaker_key}, {text_key})"


FORMATS = [  # in the order in which they are tried
    LogFormat("lines", str, _read_lines),
    LogFormat("transcript", str, _read_transcript),
    LogFormat("messages", pd.DataFrame | list | dict, _read_messages),
    LogFormat("utterances", pd.DataFrame | list | dict, _read_utterances),
]
