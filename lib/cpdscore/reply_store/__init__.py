"""Every request to a judge, every attempt and every reply, kept in one SQLite file.

What is asked once is never asked again: a reply is found by the SHA-256 of all that was sent
(model, messages, sampling parameters) and the index of the sample. Text and JSON only.
"""

from lib.cpdscore.reply_store.exchange import export_jsonl, import_jsonl
from lib.cpdscore.reply_store.records import (
    KEY_VERSION,
    Attempt,
    Job,
    MissingReplies,
    Reply,
    Request,
    StoreError,
)
from lib.cpdscore.reply_store.store import ReplyStore

__all__ = [
    "KEY_VERSION",
    "Attempt",
    "Job",
    "MissingReplies",
    "Reply",
    "ReplyStore",
    "Request",
    "StoreError",
    "export_jsonl",
    "import_jsonl",
]
