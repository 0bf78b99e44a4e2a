"""The SQLite file that holds them all."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from lib.cpdscore.reply_store.claims import Claims
from lib.cpdscore.reply_store.records import (
    KEY_VERSION,
    Attempt,
    Job,
    MissingReplies,
    Reply,
    Request,
    StoreError,
    to_json,
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS request (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, body TEXT NOT NULL, labels TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS attempt (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, samples TEXT NOT NULL, at REAL NOT NULL,
    outcome TEXT NOT NULL, http INTEGER, request_id TEXT, ms REAL, usage TEXT, body TEXT,
    base_url TEXT, fingerprint TEXT);
CREATE TABLE IF NOT EXISTS reply (
    key TEXT NOT NULL, sample INTEGER NOT NULL, status TEXT NOT NULL, text TEXT,
    finish_reason TEXT, refusal TEXT, logprobs TEXT, attempt INTEGER,
    PRIMARY KEY (key, sample)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, lines INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS batch_line (
    batch TEXT NOT NULL, custom_id TEXT NOT NULL, key TEXT NOT NULL, samples TEXT NOT NULL,
    PRIMARY KEY (batch, custom_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS attempt_key ON attempt (key);
"""


class ReplyStore:
    """The SQLite file (write-ahead log, one commit per attempt), safe for threads and processes.

    A killed process loses at most the replies it had not received. ``":memory:"`` gives a store
    that lasts as long as the object.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if str(path) != ":memory:":
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._claims = Claims(None if str(path) == ":memory:" else self.path)
        self._db = sqlite3.connect(
            str(path), timeout=60, isolation_level=None, check_same_thread=False
        )
        with self._guarded():
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        self._check_version()

    def _check_version(self) -> None:
        with self._transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO meta VALUES ('key_version', ?)", (str(KEY_VERSION),)
            )
        if (found := self.meta("key_version")) != str(KEY_VERSION):
            self.close()
            raise StoreError(
                f"{self.path}: written with key version {found}, this code uses {KEY_VERSION}. "
                "Read it with the release that wrote it, or name a new store file."
            )

    def __enter__(self) -> "ReplyStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was recorded is on disk."""
        self._db.close()
        self._claims.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """One thread at a time, and SQLite's errors in words."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(
                    f"{self.path}: {error}. What was recorded before is intact: free some space "
                    "or fix access to the file, then run again; stored replies are not asked again."
                ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has already rolled back
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, query: str, values: Iterable[Any] = ()) -> list[tuple]:
        with self._guarded():
            return self._db.execute(query, tuple(values)).fetchall()

    # -- writing ---------------------------------------------------------------------------

    def add_requests(self, requests: Iterable[Request]) -> None:
        """Keep what is about to be asked, so that every reply can be traced to its prompt."""
        rows: dict[str, tuple] = {}
        for one in requests:
            if one.key not in rows:
                rows[one.key] = (one.key, one.model, to_json(one.body), to_json(dict(one.labels)))
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO request VALUES (?,?,?,?)", rows.values())

    def record(
        self, key: str, samples: Iterable[int], attempt: Attempt, replies: Iterable[Reply] = ()
    ) -> None:
        """Commit one attempt and what it brought. A reply that is already there stays."""
        values = (
            key, to_json(list(samples)), time.time(), attempt.outcome, attempt.http,
            attempt.request_id, attempt.ms, attempt.usage and to_json(attempt.usage), attempt.body,
            attempt.base_url, attempt.fingerprint,
        )  # fmt: skip
        with self._transaction():
            cursor = self._db.execute(
                "INSERT INTO attempt (key, samples, at, outcome, http, request_id, ms, usage, body,"
                " base_url, fingerprint) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                values,
            )
            rows = [(key, *reply._replace(attempt=cursor.lastrowid)) for reply in replies]
            self._db.executemany("INSERT OR IGNORE INTO reply VALUES (?,?,?,?,?,?,?,?)", rows)

    def add_replies(
        self,
        replies: Iterable[tuple[str, Reply]],
        bodies: Iterable[tuple[str, str, dict, dict]] = (),
    ) -> None:
        """Take over (key, reply) pairs, and (key, model, body, labels), from another record."""
        rows = [(key, *reply) for key, reply in replies]
        requests = [
            (key, model, to_json(body), to_json(labels)) for key, model, body, labels in bodies
        ]
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO request VALUES (?,?,?,?)", requests)
            self._db.executemany("INSERT OR IGNORE INTO reply VALUES (?,?,?,?,?,?,?,?)", rows)

    def set_meta(self, name: str, value: str) -> None:
        """Write a note about the whole store, for example that its replies are synthetic."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # -- reading ---------------------------------------------------------------------------

    def meta(self, name: str) -> str | None:
        """A note about the store, or None."""
        rows = self._rows("SELECT value FROM meta WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def get(self, key: str, sample: int = 0) -> Reply | None:
        """The stored end of one job, or None."""
        rows = self._rows(
            "SELECT sample, status, text, finish_reason, refusal, logprobs, attempt FROM reply"
            " WHERE key = ? AND sample = ?",
            (key, sample),
        )
        return Reply(*rows[0]) if rows else None

    def replies(self, keys: Iterable[str]) -> dict[tuple[str, int], Reply]:
        """All stored replies to the given requests, by (key, sample)."""
        found = {}
        with self._guarded():
            for key in dict.fromkeys(keys):
                for row in self._db.execute(
                    "SELECT sample, status, text, finish_reason, refusal, logprobs, attempt"
                    " FROM reply WHERE key = ? ORDER BY sample",
                    (key,),
                ):
                    found[key, row[0]] = Reply(*row)
        return found

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs without a reply, in order, each once however often it was listed."""
        wanted: dict[tuple[str, int], Job] = {}
        for job in jobs:
            wanted.setdefault((job.request.key, job.sample), job)
        have = self.replies(key for key, _ in wanted)
        return [job for place, job in wanted.items() if place not in have]

    def require(self, jobs: Iterable[Job]) -> None:
        """Raise ``MissingReplies`` unless every job has its reply (mode ``replay``)."""
        if missing := self.missing(jobs):
            raise MissingReplies(missing, self.path)

    def request(self, key: str) -> dict[str, Any] | None:
        """Model, body and labels of a stored request."""
        rows = self._rows("SELECT model, body, labels FROM request WHERE key = ?", (key,))
        if not rows:
            return None
        model, body, labels = rows[0]
        return {"model": model, "body": json.loads(body), "labels": json.loads(labels)}

    def requests(self) -> list[tuple[str, dict[str, Any]]]:
        """All stored requests with their keys, in the order they were first asked."""
        keys = self._rows("SELECT key FROM request ORDER BY rowid")
        return [(key, self.request(key)) for (key,) in keys]

    def attempts(self, key: str | None = None) -> pd.DataFrame:
        """Every call that was made (for one request or for all), oldest first."""
        where, values = ("WHERE key = ?", (key,)) if key else ("", ())
        with self._guarded():
            return pd.read_sql_query(
                f"SELECT * FROM attempt {where} ORDER BY id", self._db, params=values
            )

    def origins(self) -> pd.DataFrame:
        """Where the good replies of each model came from: address, version, number of calls."""
        query = (
            "SELECT model, base_url, fingerprint, COUNT(*) AS calls FROM attempt"
            " JOIN request USING (key) WHERE id IN (SELECT attempt FROM reply WHERE status = 'ok')"
            " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        with self._guarded():
            return pd.read_sql_query(query, self._db)

    def counts(self) -> dict[str, int]:
        """Replies by status, and the number of requests and attempts."""
        found = dict(self._rows("SELECT status, COUNT(*) FROM reply GROUP BY status"))
        for table in ("request", "attempt"):
            found[f"{table}s"] = self._rows(f"SELECT COUNT(*) FROM {table}")[0][0]
        return found

    def check(self) -> None:
        """Raise ``StoreError`` if SQLite finds the file damaged."""
        if (verdict := self._rows("PRAGMA integrity_check")[0][0]) != "ok":
            raise StoreError(f"{self.path}: damaged: {verdict}. Restore it from a copy.")

    # -- two processes on one store ----------------------------------------------------------

    def claim(self, key: str, sample: int) -> bool:
        """Whether this process may ask for a job that another process is not asking for now."""
        with self._lock:
            return self._claims.take(key, sample)

    def release(self, key: str, sample: int) -> None:
        """Give a claim back."""
        with self._lock:
            self._claims.give_back(key, sample)

    # -- Batch API bookkeeping ---------------------------------------------------------------

    def add_batch(self, batch: str, lines: Iterable[tuple[str, str, list[int]]]) -> None:
        """Remember which jobs a submitted batch holds: (custom id, key, samples)."""
        rows = [(batch, custom, key, to_json(samples)) for custom, key, samples in lines]
        with self._transaction():
            self._db.execute(
                "INSERT INTO batch VALUES (?, 'open', ?, ?)", (batch, len(rows), time.time())
            )
            self._db.executemany("INSERT INTO batch_line VALUES (?,?,?,?)", rows)

    def open_batches(self) -> list[str]:
        """Ids of batches whose results have not been read, oldest first."""
        query = "SELECT id FROM batch WHERE status = 'open' ORDER BY at"
        return [row[0] for row in self._rows(query)]

    def batch_lines(self, batch: str) -> dict[str, tuple[str, list[int]]]:
        """The jobs of a batch: custom id -> (key, samples)."""
        query = "SELECT custom_id, key, samples FROM batch_line WHERE batch = ?"
        rows = self._rows(query, (batch,))
        return {custom: (key, json.loads(samples)) for custom, key, samples in rows}

    def close_batch(self, batch: str, status: str) -> None:
        """Mark a batch as read."""
        with self._transaction():
            self._db.execute("UPDATE batch SET status = ? WHERE id = ?", (status, batch))
