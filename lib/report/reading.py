"""Read a user's dialogs; where column names are not ours, say which mapping would fit."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
import pyarrow.parquet

from lib.data.dialogues import DataError, read_turns

#: What people call our columns, normalised: lower case, words joined by "_".
SYNONYMS: dict[str, tuple[str, ...]] = {
    "response": ("reply", "answer", "output", "bot_reply", "bot_response", "assistant", "text")
    + ("model_response", "system_output", "bot_message", "generated", "utterance"),
    "context": ("history", "prompt", "user", "user_message", "input", "question", "query")
    + ("previous", "source", "dialog_history", "conversation_history"),
    "dialog": ("dialogue", "conversation", "chat", "session", "thread", "dialog_id")
    + ("dialogue_id", "conversation_id", "chat_id", "session_id", "conv_id"),
    "system": ("model", "bot", "chatbot", "system_name", "model_name", "bot_name"),
    "agent": ("agent_id", "bot_id", "instance"),
    "turn": ("turn_id", "turn_no", "turn_number", "position", "step"),
    "reference": ("gold", "ground_truth", "target", "expected", "references"),
    "fact": ("persona", "knowledge", "facts"),
}


def read(path: Path | str, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
    """A turn table from a user's CSV, TSV, JSONL, JSON or Parquet file.

    `dialogues.read_turns` with one addition: when a column is missing, the error proposes the
    mapping that the file's own names suggest, ready to paste. Nothing is renamed without consent.

    Parameters
    ----------
    columns : our name -> the name in the file, for example {"response": "Bot reply"}.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("Bot,Chat ID,Reply\\nA,1,Hello\\n")
    >>> read(file)
    Traceback (most recent call last):
    ...
    lib.data.dialogues.errors.DataError: ...
    The names in the file suggest: columns={'response': 'Reply', 'dialog': 'Chat ID', ...
    """
    path = Path(path)
    try:
        return read_turns(path, columns=columns)
    except DataError as error:
        if error.row is not None or columns or not path.is_file():
            raise
        found = suggest_columns(column_names(path))
        if not found:
            raise
        lacking = [name for name in ("system", "dialog", "response") if name not in found]
        hint = f"{error}\nThe names in the file suggest: columns={found!r}"
        if lacking:
            hint += (
                f"\nNothing in the file looks like {' or '.join(lacking)}: add a column "
                "(system: the chatbot's name; dialog: which conversation; response: its reply)"
            )
        raise DataError(hint) from error


def column_names(path: Path) -> list[str]:
    """The column names of a table file, or [] if they cannot be told.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.jsonl"
    >>> _ = file.write_text('{"Bot": "A", "Reply": "Hi"}\\n')
    >>> column_names(file)
    ['Bot', 'Reply']
    """
    kind = path.suffix.lower()
    if kind == ".parquet":
        return pyarrow.parquet.read_schema(path).names
    text = path.read_text(encoding="utf-8-sig", errors="replace").lstrip()
    if kind in (".csv", ".tsv"):
        head = text.splitlines()[0] if text else ""
        return [name.strip().strip('"') for name in head.split("\t" if kind == ".tsv" else ",")]
    try:
        first, _ = json.JSONDecoder().raw_decode(text.lstrip("[ \n"))
    except json.JSONDecodeError:
        return []
    return list(first) if isinstance(first, dict) else []


def suggest_columns(names: Iterable[str]) -> dict[str, str]:
    """Our column name -> the file's, for names that mean one of ours; ratings included.

    >>> suggest_columns(["Conversation ID", "reply", "human overall", "notes"])
    {'response': 'reply', 'dialog': 'Conversation ID', 'human_overall': 'human overall'}
    """
    plain = {"_".join(_words(name)): name for name in names}
    found: dict[str, str] = {}
    for ours, synonyms in SYNONYMS.items():
        for candidate in (ours, *synonyms):
            if candidate in plain and plain[candidate] not in found.values():
                found[ours] = plain[candidate]
                break
    ratings = {name: theirs for name, theirs in plain.items() if name.startswith("human_")}
    return found | {name: theirs for name, theirs in ratings.items() if name != theirs}


def _words(name: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in str(name).lower()).split()
