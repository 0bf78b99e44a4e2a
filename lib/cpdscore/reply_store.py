"""Every request to a judge, every call and every reply, kept in one SQLite file.

What is asked once is never asked again: a reply is found by the SHA-256 of all that was sent
(model, messages, sampling parameters) and the index of the sample. Text and JSON only.
"""

import hashlib
import json
import os
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
RESERVE = 4 << 20  # bytes kept free on the disk while asking, for the replies on their way
REASKS = 2  # further answers to a prompt that was refused, filtered, cut off or left empty
TOKENS = ("prompt_tokens", "completion_tokens")
UNREADABLE = ("refusal", "filtered", "truncated", "empty")


class StoreError(RuntimeError):
    """The store cannot be written or read; the message says what to do."""


class MissingReplies(LookupError):
    """Replay was asked for replies that the store does not hold."""


@dataclass(frozen=True)
class Request:
    """All that is sent to a judge and can change its reply, and nothing else.

    `parameters` go into the request body as they are (temperature, max_tokens, seed ...).
    `labels` (variant, wording, item) are kept beside the request but are not part of its key.
    How many samples one request asks for (``n``) is transport, not identity: it may not be a
    parameter.

    >>> one = Request("judge", (("user", "Rate this."),), {"temperature": 1.0})
    >>> two = Request("judge", (("user", "Rate this."),), {"temperature": 0.0})
    >>> one.key == two.key, len(one.key)
    (False, 64)
    """

    model: str
    messages: tuple[tuple[str, str], ...]  # (role, content)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict, compare=False)
    usual_tokens: int = field(default=32, compare=False)  # of a reply, for forecasts

    def __post_init__(self) -> None:
        if taken := {"n", "stream", "model", "messages"} & set(self.parameters):
            raise ValueError(f"judge parameters may not contain {sorted(taken)}")

    @cached_property
    def body(self) -> dict[str, Any]:
        """The JSON body of the chat-completions call."""
        messages = [{"role": role, "content": content} for role, content in self.messages]
        return {"model": self.model, "messages": messages, **self.parameters}

    def body_for(self, samples: int) -> dict[str, Any]:
        """The body that asks for so many samples at once."""
        return self.body | ({"n": samples} if samples > 1 else {})

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of the body and the version of this rule."""
        identity = {"key_version": KEY_VERSION, **self.body}
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


class Job(NamedTuple):
    """One reply that is wanted: a request and the index of the sample."""

    request: Request
    sample: int = 0

    @property
    def place(self) -> tuple[str, int]:
        """Where its reply is found."""
        return self.request.key, self.sample


def tasks_of(jobs: Iterable[Job], many: bool) -> list[list[Job]]:
    """One list per job, or one per prompt where all its samples are asked for at once (``n``)."""
    tasks: dict[Any, list[Job]] = {}
    for job in jobs:
        tasks.setdefault(job.request.key if many else job.place, []).append(job)
    return list(tasks.values())


class Reply(NamedTuple):
    """How a call ended. As the end of a job, status is ok, refusal, filtered, truncated, empty
    or failed; a call that is not the end of its job may also be a fault."""

    status: str
    text: str | None = None
    finish_reason: str | None = None
    reason: str | None = None  # why there is no text: the judge's refusal or the server's words
    http: int | None = None
    request_id: str | None = None
    ms: float | None = None
    usage: str | None = None
    body: str | None = None
    base_url: str | None = None
    fingerprint: str | None = None
    marks: str | None = None  # JSON: at which letter a digit stands, and the odds of each digit


# A call is written before it is sent, with the most it can cost, and completed when it ends. One
# row per sample: it `holds` the place of that sample while it is under way (status `asked`, with
# the name of its batch if it went there) and once it is the reply; a fault gives it up.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS request (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, body TEXT NOT NULL, labels TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS call (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, sample INTEGER NOT NULL, holds INTEGER NOT NULL,
    {", ".join(Reply._fields)}, batch);
CREATE UNIQUE INDEX IF NOT EXISTS place ON call (key, sample) WHERE holds;
"""


class ReplyStore(AbstractContextManager):
    """The SQLite file (write-ahead log, one commit per call), safe for threads and processes.

    Any number of processes may read, one at a time may ask. A killed process loses at most the
    replies it had not received. ``":memory:"`` lasts as long as the object.
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
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, KEY_VERSION):
                raise StoreError(f"{path}: key version {found}, not {KEY_VERSION}: name a new file")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(f"{_SCHEMA} PRAGMA user_version = {KEY_VERSION};")

    def close(self, *_: object) -> None:
        """Close the file; what was recorded is on disk."""
        self._db.close()

    __exit__ = close

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, by one thread at a time, and SQLite's errors in words."""
        try:
            with self._lock, self._db:
                yield self._db
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path}: {error}. What was recorded before is intact: free some space or fix "
                "access to the file, then run again; stored replies are not asked again."
            ) from error

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Keep other runs from asking with this file, so that nothing is paid for twice.

        The lock is SQLite's on a file beside the store: it ends with the process, however that
        ends. What a killed run had under way, batches apart, is free to be asked again.

        Raises:
            StoreError: while another run is asking.
        """
        name = ":memory:" if self.in_memory else f"{self.path}.lock"
        with closing(sqlite3.connect(name, timeout=0, isolation_level=None)) as lock:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise StoreError(f"{self.path}: another run is asking with this store") from error
            with self._writing() as db:
                db.execute(f"UPDATE call SET status = 'lost', holds = 0 {_ASKED} AND batch IS NULL")
            try:
                self._reserve.write_bytes(os.urandom(RESERVE))
                yield
            finally:
                self._reserve.unlink(missing_ok=True)

    def rows(self, query: str, values: Iterable[Any] = ()) -> list[tuple]:
        """What a question in SQL finds in the tables ``request`` and ``call``."""
        with self._lock:
            return self._db.execute(query, tuple(values)).fetchall()

    def add_requests(self, requests: Iterable[Request]) -> None:
        """Keep what is about to be asked, so that every reply can be traced to its prompt."""
        rows = ((r.key, r.model, to_json(r.body), to_json(dict(r.labels))) for r in requests)
        with self._writing() as db:
            db.executemany("INSERT OR IGNORE INTO request VALUES (?, ?, ?, ?)", rows)

    def claim(self, jobs: Iterable[Job], usage: str | None = None) -> list[int]:
        """Note that jobs without a reply are being asked; returns the ids of their calls.

        `usage` is the most they can cost together, which stands until it is known better.
        """
        query = "INSERT INTO call (key, sample, holds, status) VALUES (?, ?, 1, 'asked')"
        with self._writing() as db:
            calls = [db.execute(query, job.place).lastrowid for job in jobs]
            db.execute("UPDATE call SET usage = ? WHERE id = ?", (usage, calls[0]))
        return calls

    def send_in_batch(self, calls: Iterable[int], batch: str) -> None:
        """Note that calls are with the Batch API, where they stay until the batch is read."""
        with self._writing() as db:
            db.executemany("UPDATE call SET batch = ? WHERE id = ?", [(batch, i) for i in calls])

    def in_batches(self) -> dict[tuple[str, int], str]:
        """The open batch of each place that lies in one, oldest first."""
        rows = self.rows(f"SELECT key, sample, batch FROM call {_ASKED} AND batch NOT NULL")
        return {(key, sample): batch for key, sample, batch in rows}

    def complete(self, ends: Mapping[int, Reply]) -> None:
        """Commit how calls ended, and whether that is the end of their job.

        A text is, and so is ``failed``, the server's refusal; a judge's refusal, a filter stop, a
        reply cut off or without text is after `REASKS` others, or at once where the temperature
        is 0, which would bring the same again; a fault never is. On a full disk they take the place
        that `asking` kept free.

        Raises:
            StoreError: where no more can be written; what was given is kept, if that can be done.
        """
        try:
            self._complete(ends)
        except StoreError:
            self._reserve.unlink(missing_ok=True)
            self._complete(ends)
            raise

    def _complete(self, ends: Mapping[int, Reply]) -> None:
        with self._writing() as db:
            for call, end in ends.items():
                final = end.status in ("ok", "failed")
                if end.status in UNREADABLE:
                    final = db.execute(_EARLIER, (call,)).fetchone()[0] >= REASKS
                db.execute(_COMPLETED, (*end, final, call))

    def replies(self, keys: Iterable[str]) -> dict[tuple[str, int], Reply]:
        """All stored replies to the given requests, by (key, sample)."""
        query = f"SELECT key, sample, {', '.join(Reply._fields)} {_ENDS} ORDER BY sample"
        rows = [row for key in dict.fromkeys(keys) for row in self.rows(query, (key,))]
        return {(key, sample): Reply(*end) for key, sample, *end in rows}

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs without a reply, in order, each once however often it was listed."""
        wanted = {job.place: job for job in jobs}
        have = self.replies(key for key, _ in wanted)
        return [job for place, job in wanted.items() if place not in have]

    def require(self, jobs: Iterable[Job]) -> None:
        """Raise `MissingReplies` unless every job has its reply (mode ``replay``)."""
        if missing := self.missing(jobs):
            key, sample = missing[0].place
            raise MissingReplies(
                f"{len(missing)} replies are not in {self.path.name} (first: {key[:12]}#{sample}). "
                "Run with mode='live', or open the store that was recorded with the same model, "
                "parameters and prompt wording."
            )

    def spent(self) -> dict[str, int]:
        """Tokens of all calls so far; one whose cost is not known counts at the most it can be."""
        sums = ", ".join(f"TOTAL(json_extract(usage, '$.{name}'))" for name in TOKENS)
        return dict(zip(TOKENS, map(int, self.rows(f"SELECT {sums} FROM call")[0]), strict=True))

    def body(self, key: str) -> dict[str, Any]:
        """The body of a stored request."""
        return json.loads(self.rows("SELECT body FROM request WHERE key = ?", (key,))[0][0])


_ASKED = "WHERE status = 'asked'"
_ENDS = "FROM call WHERE key = ? AND holds AND status != 'asked'"
_SET = ", ".join(f"{name} = ?" for name in Reply._fields)
_COMPLETED = f"UPDATE call SET {_SET}, holds = ? WHERE id = ?"
_EARLIER = f"""
    SELECT (SELECT COUNT(*) FROM call AS other WHERE other.key = call.key
            AND other.sample = call.sample AND other.status IN {UNREADABLE})
        + {REASKS} * COALESCE(json_extract(request.body, '$.temperature') = 0, 0)
    FROM call LEFT JOIN request USING (key) WHERE call.id = ?"""


def to_json(value: Any) -> str:
    """Compact JSON that keeps every letter readable.

    >>> to_json({"said": "né"})
    '{"said":"né"}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


#: What is published of a call.
PUBLISHED = ("sample", "status", "text", "finish_reason", "reason", "ms", "usage", "marks")


def import_replies(store: ReplyStore, path: str | Path) -> dict[str, Any]:
    """Read replies of data/judge_replies, and return what the file says about their run.

    Prompts are completed by the run that asks for them. A reply that is already there stays.

    Raises:
        StoreError: for a file with keys of another version.
    """
    frame = pd.read_parquet(path)
    if frame.attrs["key_version"] != KEY_VERSION:
        raise StoreError(f"{path}: key version {frame.attrs['key_version']}, not {KEY_VERSION}")
    ends = frame.astype(object).where(frame.notna(), None)[["key", *PUBLISHED]]
    columns = ", ".join(("holds", *ends))
    with store._writing() as db:
        query = f"INSERT OR IGNORE INTO call ({columns}) VALUES (1{', ?' * len(ends.columns)})"
        db.executemany(query, ends.to_numpy().tolist())
    return frame.attrs
