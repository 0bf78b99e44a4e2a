"""Every request to a judge, every call and every reply, kept in one SQLite file.

What was asked once is never asked again: a reply is found by the SHA-256 of all that was sent
(model, messages, sampling parameters) and the index of the sample. Text and JSON only.
"""

import hashlib
import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

KEY_VERSION = 1  # of the rule that makes a key; a file remembers it as its user_version
# Kept free on the disk while asking, for the replies on their way.
RESERVE_BYTES = 16 << 20
TOKENS = ("prompt_tokens", "completion_tokens")
UNREADABLE = ("refusal", "filtered", "truncated", "empty")


class StoreError(RuntimeError):
    """The store cannot be written or read; the message says what to do."""


class MissingReplies(LookupError):
    """Replay was asked for replies that the store does not hold."""


@dataclass(frozen=True)
class Request:
    """All that is sent to a judge and can change its reply, and nothing else.

    `parameters` go into the request body unchanged (temperature, max_tokens, seed ...).
    `labels` (variant, wording, item) are kept beside the request but are not part of its key.
    How many samples one request asks for (``n``) belongs to the transport: it may not be a
    parameter.

    >>> warm = Request("judge", (("user", "Rate this."),), {"temperature": 1.0})
    >>> cold = Request("judge", (("user", "Rate this."),), {"temperature": 0.0})
    >>> warm.key == cold.key, len(warm.key)
    (False, 64)
    """

    model: str
    messages: tuple[tuple[str, str], ...]  # (role, content)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict, compare=False)
    usual_tokens: int = field(default=32, compare=False)  # of a reply, for forecasts

    def __post_init__(self) -> None:
        reserved = {"n", "stream", "model", "messages"} & set(self.parameters)
        if reserved:
            raise ValueError(f"judge parameters may not contain {sorted(reserved)}")

    @cached_property
    def body(self) -> dict[str, Any]:
        """The JSON body of the chat-completions call."""
        messages = [
            {"role": role, "content": content} for role, content in self.messages
        ]
        return {"model": self.model, "messages": messages, **self.parameters}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of the body and the version of this rule."""
        identity = {"key_version": KEY_VERSION, **self.body}
        text = json.dumps(
            identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return hashlib.sha256(text.encode()).hexdigest()


class Job(NamedTuple):
    """One reply to get: a request and the index of the sample."""

    request: Request
    sample: int = 0

    @property
    def id(self) -> tuple[str, int]:
        """Key and sample, under which its reply is stored."""
        return self.request.key, self.sample


class Reply(NamedTuple):
    """The outcome of a call.

    A job is done with the status ok, refusal, filtered, truncated, empty or failed (refused by
    the server). A call that leaves its job undone may also be a ``fault``.
    """

    status: str
    text: str | None = None
    finish_reason: str | None = None
    # Why there is no text: the judge's refusal or the server's message.
    reason: str | None = None
    http: int | None = None
    request_id: str | None = None
    ms: float | None = None
    usage: str | None = None  # JSON: prompt_tokens and completion_tokens of the call
    body: str | None = None  # of the answer; with several samples, beside the first
    base_url: str | None = None
    fingerprint: str | None = None
    # JSON: [position in text, {digit: probability}], ...
    digit_probabilities: str | None = None


# A call is written before it is sent, with the most it can cost, and completed by its outcome. One
# row per sample: it `holds` the sample while it is under way (status `asked`) and once it is the
# reply; a fault releases it.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS request (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, body TEXT NOT NULL, labels TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS call (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, sample INTEGER NOT NULL, holds INTEGER NOT NULL,
    {", ".join(Reply._fields)});
CREATE UNIQUE INDEX IF NOT EXISTS place ON call (key, sample) WHERE holds;
"""
_COMPLETE = (
    f"UPDATE call SET {' = ?, '.join(Reply._fields)} = ?, holds = ? WHERE id = ?"
)
_COUNT_UNREADABLE = f"""
SELECT COUNT(*) FROM call AS this JOIN call AS other USING (key, sample)
WHERE this.id = ? AND other.status IN ({", ".join("?" * len(UNREADABLE))})
"""


class ReplyStore(AbstractContextManager):
    """The SQLite file (write-ahead log, one commit per call), safe for threads and processes.

    Any number of processes may read, one at a time may ask. A killed process loses at most the
    replies it had not received. ``":memory:"`` lasts as long as the object.

    Raises:
        StoreError: for a file that cannot be read, that holds keys of another version, or whose
            replies are still with the Batch API, which earlier versions could use.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.in_memory = str(path) == ":memory:"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._reserve = Path(f"{self.path}.reserve")
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            str(path), timeout=60, isolation_level="IMMEDIATE", check_same_thread=False
        )
        with self._writing() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, KEY_VERSION):
                raise StoreError(
                    f"{path}: key version {version}, not {KEY_VERSION}: name a new file"
                )
            self._upgrade(db)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(f"{_SCHEMA} PRAGMA user_version = {KEY_VERSION};")

    def _upgrade(self, db: sqlite3.Connection) -> None:
        """Bring a file of the layout until 2026-11, with batches and `marks`, up to date."""
        columns = [column for _, column, *_ in db.execute("PRAGMA table_info(call)")]
        if "batch" not in columns:
            return
        query = "SELECT batch FROM call WHERE status = 'asked' AND batch NOT NULL"
        open_batch = db.execute(query).fetchone()
        if open_batch:
            raise StoreError(
                f"{self.path}: {open_batch[0]} is still with the Batch API, which this version "
                "does not read: collect it with the version that sent it, or name a new file"
            )
        db.executescript(
            """BEGIN; ALTER TABLE call RENAME COLUMN marks TO digit_probabilities;
            ALTER TABLE call DROP COLUMN batch; COMMIT;"""
        )

    def close(self, *_: object) -> None:
        """Close the file; what was recorded is on disk."""
        self._db.close()

    __exit__ = close

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, by one thread at a time, with SQLite's errors put into words."""
        try:
            with self._lock, self._db:
                yield self._db
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{self.path}: {error}. What was recorded before is intact: free some space or fix "
                "access to the file, then run again; stored replies are not asked again."
            ) from error

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Keep other runs from asking with this file, so that nothing is paid for twice.

        The lock is SQLite's on a file beside the store: it ends with the process, however that
        ends. What a killed run had under way may be asked again. Disk space for the replies on
        their way is set aside here, so that a disk that fills up loses none.

        Raises:
            StoreError: while another run is asking, or where the disk is full already.
        """
        lock_path = ":memory:" if self.in_memory else f"{self.path}.lock"
        with closing(
            sqlite3.connect(lock_path, timeout=0, isolation_level=None)
        ) as lock:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorname == "SQLITE_BUSY"
                reason = "another run is asking with this store" if busy else error
                raise StoreError(f"{self.path}: {reason}") from error
            try:
                with self._writing() as db:
                    self._reserve.write_bytes(os.urandom(RESERVE_BYTES))
                    db.execute(
                        "UPDATE call SET status = 'lost', holds = 0 WHERE status = 'asked'"
                    )
                yield
            finally:
                self._reserve.unlink(missing_ok=True)

    def rows(self, query: str, values: Iterable[Any] = ()) -> list[tuple]:
        """The rows that a query in SQL selects from the tables ``request`` and ``call``."""
        with self._lock:
            return self._db.execute(query, tuple(values)).fetchall()

    def add_requests(self, requests: Iterable[Request]) -> None:
        """Keep the prompts, so that every reply can be traced to its own."""
        query = "INSERT OR IGNORE INTO request VALUES (?, ?, ?, ?)"
        with self._writing() as db:
            for request in requests:
                body = json.dumps(request.body, ensure_ascii=False)
                labels = json.dumps(dict(request.labels), ensure_ascii=False)
                db.execute(query, (request.key, request.model, body, labels))

    def claim(self, jobs: Iterable[Job], usage: str | None = None) -> list[int]:
        """Note that jobs without a reply are being asked in one call; returns an id per job.

        `usage` (JSON) is the most that the call can cost, which counts until more is known.
        """
        query = (
            "INSERT INTO call (key, sample, holds, status) VALUES (?, ?, 1, 'asked')"
        )
        with self._writing() as db:
            calls = [db.execute(query, job.id).lastrowid for job in jobs]
            db.execute("UPDATE call SET usage = ? WHERE id = ?", (usage, calls[0]))
        return calls

    def complete(self, replies: Mapping[int, Reply], reasks: int = 0) -> None:
        """Commit the outcome of calls by their ids, and whether their jobs are done.

        A job is done by a text or by ``failed``; by one of `UNREADABLE` once `reasks` others came
        before it; by a fault never. On a full disk, outcomes take the space that `asking` set
        aside.

        Raises:
            StoreError: where no more can be written; these outcomes are kept if it is possible.
        """
        with self._lock:  # one after the other: freeing the space takes a moment
            try:
                self._complete(replies, reasks)
            except StoreError:
                self._reserve.unlink(missing_ok=True)
                self._complete(replies, reasks)
                raise

    def _complete(self, replies: Mapping[int, Reply], reasks: int) -> None:
        """Write the outcome of each call, and let it `hold` its sample if its job is done."""
        with self._writing() as db:
            for call, reply in replies.items():
                holds = reply.status in ("ok", "failed")
                if reply.status in UNREADABLE:
                    values = (call, *UNREADABLE)
                    n_earlier = db.execute(_COUNT_UNREADABLE, values).fetchone()[0]
                    holds = n_earlier >= reasks
                db.execute(_COMPLETE, (*map(_storable, reply), holds, call))

    def replies(self, keys: Iterable[str]) -> dict[tuple[str, int], Reply]:
        """All stored replies to the given requests, by key and sample."""
        columns = ", ".join(Reply._fields)
        query = f"""SELECT sample, {columns} FROM call
                    WHERE key = ? AND holds AND status != 'asked' ORDER BY sample"""
        replies = {}
        for key in dict.fromkeys(keys):
            for sample, *values in self.rows(query, (key,)):
                replies[key, sample] = Reply(*values)
        return replies

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs without a reply, in order, each once however often it was listed."""
        jobs_by_id = {job.id: job for job in jobs}
        replies = self.replies(key for key, _ in jobs_by_id)
        return [job for job_id, job in jobs_by_id.items() if job_id not in replies]

    def require(self, jobs: Iterable[Job]) -> None:
        """Raise `MissingReplies` unless every job has its reply (mode ``replay``)."""
        missing = self.missing(jobs)
        if missing:
            key, sample = missing[0].id
            raise MissingReplies(
                f"{len(missing)} replies are not in {self.path.name} (first: {key[:12]}#{sample}). "
                "Run with mode='live', or open the store that was recorded with the same model, "
                "parameters and prompt wording."
            )

    def spent(self) -> dict[str, int]:
        """Tokens of all calls so far; a call of unknown cost counts at the most it can be."""
        spent = {}
        for name in TOKENS:
            query = f"SELECT TOTAL(json_extract(usage, '$.{name}')) FROM call"
            spent[name] = int(self.rows(query)[0][0])
        return spent

    def body(self, key: str) -> dict[str, Any]:
        """The body of a stored request."""
        return json.loads(
            self.rows("SELECT body FROM request WHERE key = ?", (key,))[0][0]
        )


def _storable(value: Any) -> Any:
    """The value, with U+FFFD for every lone surrogate of a text: no file can hold those."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    return value


#: What is published of a call.
PUBLISHED = (
    "sample", "status", "text", "finish_reason", "reason", "ms", "usage", "digit_probabilities",
)  # fmt: skip


def import_replies(store: ReplyStore, path: str | Path) -> dict[str, Any]:
    """Add the replies of a file of data/judge_replies to a store.

    The file has no prompts: the run that asks for a reply adds its prompt. A reply that is already
    in the store is kept.

    Returns:
        The metadata of the file: judge, date, licence, key version and more.

    Raises:
        StoreError: the keys of the file were computed by another version, or have none.
    """
    frame = pd.read_parquet(path)
    version = frame.attrs.get("key_version")
    if version != KEY_VERSION:
        raise StoreError(f"{path}: key version {version}, not {KEY_VERSION}")
    # The column's name until 2026.
    frame = frame.rename(columns={"marks": "digit_probabilities"})
    frame = frame[["key", *PUBLISHED]].astype(object).where(frame.notna(), None)
    frame["holds"] = 1  # each is the reply to its sample
    columns = ", ".join(frame.columns)
    placeholders = ", ".join("?" * len(frame.columns))
    with store._writing() as db:
        query = f"INSERT OR IGNORE INTO call ({columns}) VALUES ({placeholders})"
        db.executemany(query, frame.to_numpy().tolist())
    return frame.attrs
