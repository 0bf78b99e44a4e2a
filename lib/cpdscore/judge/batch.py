"""The same jobs through the Batch API: half the price, an answer within a day."""

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from openai.types import Batch

from lib.cpdscore.judge.client import Connection, checked, reply_of
from lib.cpdscore.judge.faults import FailItem, Fault, StopRun, classify_status
from lib.cpdscore.judge.runner import Settings, tasks_of
from lib.cpdscore.reply_store import Attempt, Job, Reply, ReplyStore

MAX_LINES, MAX_BYTES = 50_000, 190_000_000  # OpenAI: 50,000 lines, 200 MB a file
REASKS = Settings().reasks  # further answers to a refusal or a stop, as in a live run
_OPEN = {"validating", "in_progress", "finalizing", "cancelling"}


def submit(
    jobs: Iterable[Job], store: ReplyStore, connection: Connection, many: bool = False
) -> list[str]:
    """Send all jobs without a reply as batches and return the ids; an open batch is not resent.

    ``many`` asks for all samples of a prompt in one line. The store remembers which line holds
    which job.
    """
    jobs = list(jobs)
    waiting = {
        (key, sample)
        for batch in store.open_batches()
        for key, samples in store.batch_lines(batch).values()
        for sample in samples
    }
    missing = [job for job in store.missing(jobs) if (job.request.key, job.sample) not in waiting]
    store.add_requests(job.request for job in missing)
    return [_send(store, connection, *part) for part in _parts(missing, many)]


def _parts(missing: list[Job], many: bool) -> Iterator[tuple[bytes, list]]:
    """Files within the API's limits, each with the list of what its lines hold."""
    lines, places, size = [], [], 0
    for task in tasks_of(missing, many):
        custom = f"{task.request.key[:48]}-{'.'.join(map(str, task.samples))}"
        body = task.request.body | ({"n": len(task.samples)} if len(task.samples) > 1 else {})
        line = {"custom_id": custom, "method": "POST", "url": "/v1/chat/completions", "body": body}
        text = json.dumps(line).encode() + b"\n"
        if lines and (len(lines) == MAX_LINES or size + len(text) > MAX_BYTES):
            yield b"".join(lines), places
            lines, places, size = [], [], 0
        lines.append(text)
        places.append((custom, task.request.key, list(task.samples)))
        size += len(text)
    if lines:
        yield b"".join(lines), places


def _send(store: ReplyStore, connection: Connection, content: bytes, places: list) -> str:
    client = connection.client
    file = client.files.create(file=("judge.jsonl", io.BytesIO(content)), purpose="batch")
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    store.add_batch(batch.id, places)
    return batch.id


class BatchRefused(RuntimeError):
    """No line of a batch was answered and the server says why; nothing of it is final."""

    def __init__(self, reasons: dict[str, str]):
        said = "; ".join(f"{batch}: {reason.rstrip('.')}" for batch, reason in reasons.items())
        super().__init__(
            f"no line of a batch was answered ({said}). The cause may be the settings, so nothing "
            "was stored as final: put it right and run again, and only what is left will be "
            "submitted. If these prompts themselves are at fault, mode='live' records them as "
            "failed"
        )


@dataclass(frozen=True)
class _Result:
    """One line of a result file, read."""

    key: str
    samples: list[int]
    attempt: Attempt
    replies: list[Reply]
    fault: Fault | None = None


def collect(store: ReplyStore, connection: Connection) -> dict[str, str]:
    """Read every batch that has ended into the store; returns the state of each open batch.

    Lines come in any order and some fail inside a "completed" batch: each is checked like a live
    reply. What expired or failed on the way stays without a reply, and so does a refusal, a filter
    stop or a reply cut off until its third answer, which is final; so ``store.missing``
    lists exactly what is left to submit or to run live. A batch in which no line was answered
    settles nothing: ``BatchRefused`` names the server's reason once all batches are read.
    """
    states, reasons = {}, {}
    for batch_id in store.open_batches():
        batch = connection.client.batches.retrieve(batch_id)
        states[batch_id] = batch.status
        if batch.status in _OPEN:
            continue
        results = list(_results(batch, store, connection))
        answered = any(reply.status != "failed" for one in results for reply in one.replies)
        for result in results:
            _store(result, answered, store)
        store.close_batch(batch_id, batch.status)
        if not answered and (reason := _reason(batch, results)):
            reasons[batch_id] = connection.redact(reason)
    if reasons:
        raise BatchRefused(reasons)
    return states


def _results(batch: Batch, store: ReplyStore, connection: Connection) -> Iterator[_Result]:
    """The lines of both result files; one we did not ask for, or cannot read, is passed over."""
    places = store.batch_lines(batch.id)
    for file_id in (batch.output_file_id, batch.error_file_id):
        text = connection.client.files.content(file_id).text if file_id else ""
        for line in text.splitlines():
            try:
                value = json.loads(line)
                key, samples = places[value["custom_id"]]
            except (json.JSONDecodeError, KeyError, TypeError):
                continue
            yield _read(value, key, samples, store, connection)


def _reason(batch: Batch, results: list[_Result]) -> str | None:
    """Why nothing was answered, unless it only expired or broke on the way."""
    faults = [one.fault for one in results if isinstance(one.fault, FailItem | StopRun)]
    if faults:
        return faults[0].reason
    errors = (batch.errors and batch.errors.data) or []
    return next((error.message for error in errors if error.message), None)


def _store(result: _Result, answered: bool, store: ReplyStore) -> None:
    """Record one line, with the replies that are final."""
    before = _answers(store, result.key)
    final = [reply for reply in result.replies if _final(reply, answered, before)]
    store.record(result.key, result.samples, result.attempt, final)


def _final(reply: Reply, answered: bool, before: Counter[int]) -> bool:
    if reply.status == "failed":
        return answered
    return reply.status == "ok" or before[reply.sample] >= REASKS


def _answers(store: ReplyStore, key: str) -> Counter[int]:
    """How often each sample of a request was answered before, in whatever way."""
    calls = store.attempts(key).query("http == 200")["samples"]
    return Counter(sample for samples in calls for sample in json.loads(samples))


def _read(
    value: dict, key: str, samples: list[int], store: ReplyStore, connection: Connection
) -> _Result:
    response = value.get("response") or {}
    status = response.get("status_code") or 0
    text = connection.redact(json.dumps(response.get("body") or value, ensure_ascii=False))
    mark = response.get("request_id")
    samples = [sample for sample in samples if store.get(key, sample) is None]
    try:
        if status != 200:
            raise classify_status(status, text, {}, connection.base_url)
        body = checked(text, mark, connection.base_url)
    except Fault as fault:
        refused = samples if isinstance(fault, FailItem) else []
        failed = [Reply(one, "failed", refusal=fault.reason) for one in refused]
        attempt = Attempt(fault.reason, status, mark, None, None, text, connection.base_url)
        return _Result(key, samples, attempt, failed, fault)
    # Not strict: what is short of n is left to ask again.
    replies = [reply_of(choice, one) for one, choice in zip(samples, body["choices"], strict=False)]
    outcome = ",".join(reply.status for reply in replies)
    attempt = Attempt(
        outcome, 200, mark, None, body.get("usage"), text, connection.base_url,
        body.get("system_fingerprint"),
    )  # fmt: skip
    return _Result(key, samples, attempt, replies)
