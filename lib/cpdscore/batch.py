"""The ways to get replies: from the store, live, not at all, or through the Batch API.

The Batch API has half the price, and an answer within a day.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pandas as pd

from lib.cpdscore.budget import Budget, forecast
from lib.cpdscore.judge import JudgeSettings, ask_all, tasks_of
from lib.cpdscore.reply_store import Job, Reply, ReplyStore
from lib.cpdscore.server import Connection, Fault, fault_of_status, read_answer

MODES = ("replay", "live", "batch", "dry-run")
LINES = 20_000  # OpenAI takes 50,000 lines and 200 MB a file: prompts of 10 kB fit
_OPEN = {"validating", "in_progress", "finalizing", "cancelling"}
_SENT = ("asked", "lost")  # lost: taken over by another run while the file was sent
_URL = "/v1/chat/completions"


class DryRun(RuntimeError):
    """Nothing was sent; ``.forecast`` says what would have been."""

    def __init__(self, table: pd.DataFrame):
        self.forecast = table
        tokens = int(table["prompt_tokens"].sum() + table["reply_tokens"].sum())
        super().__init__(
            f"dry run: {int(table['requests'].sum())} requests and about {tokens} tokens would be "
            "asked for; nothing was sent. Choose mode='live' or 'batch' to ask"
        )


def asker(
    mode: str,
    store: ReplyStore,
    base_url: str | None = None,
    settings: JudgeSettings = JudgeSettings(),  # noqa: B008 - frozen
    budget: Budget | None = None,
) -> Callable[[Iterable[Job]], object] | None:
    """What `score_turns` calls with the jobs it wants; None in mode ``replay``.

    ``replay`` takes stored replies only (a missing one is an error), ``live`` asks the server at
    `base_url`, ``batch`` submits what is missing and reads what has come back, and ``dry-run``
    raises `DryRun` with the forecast. A connection is opened for ``live`` and ``batch`` only.

    Raises:
        ValueError: for another mode, or if paid replies would be kept in memory only.

    >>> asker("replay", ReplyStore(":memory:")) is None
    True
    """
    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: choose one of {', '.join(MODES)}")
    if mode == "replay":
        return None
    if mode == "dry-run":
        return partial(_dry_run, store=store, settings=settings, budget=budget)
    if str(store.path) == ":memory:":
        raise ValueError(
            f"mode {mode!r} with a store in memory would lose the replies you pay for: name a "
            "file, ReplyStore('replies.sqlite') (in notebook 07: STORE)"
        )
    connection = Connection(base_url)
    if mode == "batch":
        return partial(ask_by_batch, store=store, connection=connection, many=settings.many)
    return partial(ask_all, store=store, connection=connection, settings=settings, budget=budget)


def _dry_run(
    jobs: Iterable[Job], store: ReplyStore, settings: JudgeSettings, budget: Budget | None
) -> None:
    prices, pace = budget and budget.prices, settings.requests_per_minute
    raise DryRun(forecast(jobs, store, prices, pace, settings.many))


class BatchPending(RuntimeError):
    """The jobs are with the Batch API: run again later, up to a day."""


class BatchRefused(RuntimeError):
    """No line of a batch was answered and the server says why; nothing of it is final."""


def ask_by_batch(
    jobs: Iterable[Job], store: ReplyStore, connection: Connection, many: bool = False
) -> None:
    """Read what has ended and submit what is missing.

    Raises:
        BatchPending: if anything is still on its way.
        BatchRefused: as `collect` does.
    """
    jobs = list(jobs)
    collect(store, connection)
    submit(jobs, store, connection, many)
    if missing := store.missing(jobs):
        raise BatchPending(
            f"{len(missing)} replies are with the Batch API ({', '.join(_open(store))}). Run again "
            "later: the store remembers the batches"
        )


def submit(
    jobs: Iterable[Job], store: ReplyStore, connection: Connection, many: bool = False
) -> list[str]:
    """Send all jobs without a reply as batches and return the ids; an open batch is not resent.

    `many` asks for all samples of a prompt in one line. The store remembers which job a batch
    holds, and a line is called by the ids of its calls.
    """
    missing = store.missing(jobs)
    store.add_requests(job.request for job in missing)
    lines = [line for task in tasks_of(missing, many) if (line := _line(task, store))]
    parts = (lines[start : start + LINES] for start in range(0, len(lines), LINES))
    return [_send(part, store, connection) for part in parts]


def _line(task: list[Job], store: ReplyStore) -> bytes | None:
    calls = store.claim(job.place for job in task)
    if not calls:
        return None
    body = task[0].request.body | ({"n": len(calls)} if len(calls) > 1 else {})
    line = {"custom_id": ".".join(map(str, calls.values())), "method": "POST", "url": _URL}
    return json.dumps(line | {"body": body}).encode() + b"\n"


def _send(part: list[bytes], store: ReplyStore, connection: Connection) -> str:
    client = connection.client
    content = io.BytesIO(b"".join(part))
    file = client.files.create(file=("judge.jsonl", content), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint=_URL, completion_window="24h")
    store.send_in_batch([call for line in part for call in _calls(json.loads(line))], batch.id)
    return batch.id


def _calls(line: dict[str, Any]) -> list[int]:
    """The calls of one line, by its name."""
    return [int(call) for call in line["custom_id"].split(".")]


def _open(store: ReplyStore) -> list[str]:
    """The batches whose results have not been read, oldest first."""
    query = f"SELECT batch FROM call WHERE status IN {_SENT} AND batch NOT NULL"
    return [row[0] for row in store.rows(f"{query} GROUP BY batch ORDER BY MIN(id)")]


def collect(store: ReplyStore, connection: Connection) -> dict[str, str]:
    """Read every batch that has ended into the store; returns the state of each open batch.

    Lines come in any order and some fail inside a "completed" batch: each is checked like a live
    reply. What expired or failed on the way stays without a reply, so ``store.missing`` lists
    exactly what is left to submit or to run live.

    Raises:
        BatchRefused: where a batch has no answered line, so that nothing of it is final; it names
            the server's reason once all batches are read.
    """
    states, reasons = {}, []
    for name in _open(store):
        batch = connection.client.batches.retrieve(name)
        states[name] = batch.status
        if batch.status not in _OPEN and (reason := _read(batch, store, connection)):
            reasons.append(f"{name}: {reason.rstrip('.')}")
    if reasons:
        raise BatchRefused(
            f"no line of a batch was answered ({connection.redact('; '.join(reasons))}). The cause "
            "may be the settings, so nothing was stored as final: put it right and run again, and "
            "only what is left will be submitted. If these prompts themselves are at fault, "
            "mode='live' records them as failed"
        )
    return states


def _read(batch: Any, store: ReplyStore, connection: Connection) -> str | None:
    """Store one batch; the reason where none of its lines was answered for a cause to mend."""
    query = f"SELECT id FROM call WHERE batch = ? AND status IN {_SENT}"
    ends = {row[0]: Reply("fault", reason=batch.status) for row in store.rows(query, (batch.id,))}
    reasons = [error.message for error in (batch.errors and batch.errors.data) or []]
    for line in _lines(batch, connection):
        calls = [call for call in _calls(line) if call in ends]
        try:
            replies = _replies(line, connection)
        except Fault as fault:
            replies = [fault.end] * len(calls)
            reasons += [str(fault)] if fault.kind != "retry" else []
        ends |= dict(zip(calls, replies, strict=False))
    if any(end.status not in ("fault", "failed") for end in ends.values()):
        reasons = []
    else:
        ends = {call: end._replace(status="fault") for call, end in ends.items()}
    store.complete(ends)
    return next(iter(reasons), None)


def _lines(batch: Any, connection: Connection) -> Iterator[dict[str, Any]]:
    """The lines of both result files; one that cannot be read is passed over."""
    for file in filter(None, (batch.output_file_id, batch.error_file_id)):
        for text in connection.client.files.content(file).text.splitlines():
            with suppress(ValueError, LookupError, TypeError, AttributeError):
                line = json.loads(text)
                _calls(line)
                yield line


def _replies(line: dict[str, Any], connection: Connection) -> list[Reply]:
    """The replies of one line, or the fault in it."""
    response = line.get("response") or {}
    status, name = response.get("status_code") or 0, response.get("request_id")
    text = connection.redact(json.dumps(response.get("body") or line, ensure_ascii=False))
    if status != 200:
        raise fault_of_status(status, text, {"x-request-id": name}, connection.base_url)
    return read_answer(text, connection.base_url, request_id=name)
