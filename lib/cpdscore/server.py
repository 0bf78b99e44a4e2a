"""One call to an OpenAI-compatible server, or a batch of them, checked before it is believed."""

import base64
import email.utils
import itertools
import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from lib.cpdscore.reply_store import TOKENS, Job, Reply, ReplyStore, Request, tasks_of, to_json

OPENAI_URL = "https://api.openai.com/v1"
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


class JudgeStopped(RuntimeError):
    """Not every reply is there; the message says why, and what to do.

    With ``.report`` after a live run and ``.forecast`` after a dry one.
    """

    def __init__(self, message: str, **facts: Any):
        super().__init__(message)
        self.__dict__.update(facts)


class Fault(Exception):
    """A call that brought no usable reply.

    `kind` is "retry" (the same request may pass later), "refused" (this one never will, others
    may) or "stop" (none can until someone changes something: key, model, money, disk). `billed`
    says that the server may have charged for it, `wait` how long it asks to be left alone.
    """

    def __init__(self, kind: str, reason: str, wait=None, billed=False, **facts: Any):
        super().__init__(reason)
        self.kind, self.wait, self.billed = kind, wait, billed
        self.end = Reply("failed" if kind == "refused" else "fault", reason=reason, **facts)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait: ``retry-after-ms``, or ``retry-after`` (seconds or date).

    >>> retry_after({"retry-after": "3"}), retry_after({"retry-after-ms": "250"})
    (3.0, 0.25)
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) / unit)
    with suppress(KeyError, ValueError):
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(0.0, date.timestamp() - time.time())
    return None


def fault_of_status(status: int, body: str, headers: Mapping[str, str], base_url: str) -> Fault:
    """The fault that an HTTP status means, or an error in the body of a 200 answer."""
    value = _parsed(body)
    error = value.get("error") or value.get("detail") or body or "no message"
    error = error if isinstance(error, dict) else {"message": error}
    said = " ".join(str(error.get("message")).split())[:300]
    facts = {"http": status, "body": body, "request_id": headers.get("x-request-id")}
    if {str(error.get(name)) for name in ("code", "type")} & _NO_MONEY:
        return Fault("stop", f"the account has no quota left: {said}", **facts)
    if status in (0, 200, 408, 409, 429) or status >= 500:
        pause, reason = retry_after(headers), f"server error {status}: {said}"
        return Fault("retry", reason, pause, billed=status == 200, **facts)
    if status in (400, 413, 422):
        return Fault("refused", f"refused with {status}: {said}", **facts)
    advice = "check OPENAI_API_KEY, the model's name and base_url"
    return Fault("stop", f"{base_url} answered {status} ({said}): {advice}", **facts)


def _parsed(text: str) -> dict[str, Any]:
    """The JSON object in a body, or an empty one."""
    with suppress(ValueError):
        value = json.loads(text)
        return value if isinstance(value, dict) else {}
    return {}


def read_answer(status: int, text: str, headers: Mapping, base_url: str, ms=None) -> list[Reply]:
    """The replies in the body of an answer, one per choice, or the fault that it is.

    >>> choice = {"message": {"content": "- Humanness: 4"}, "finish_reason": "stop"}
    >>> read_answer(200, to_json({"choices": [choice]}), {}, "")[0].status
    'ok'
    """
    value = _parsed(text)
    if status != 200 or value.get("error"):
        raise fault_of_status(status, text, headers, base_url)
    facts = {"http": 200, "base_url": base_url, "fingerprint": value.get("system_fingerprint")}
    facts |= {"request_id": headers.get("x-request-id"), "ms": ms}
    try:
        first, *others = [_reply_of(choice)._replace(**facts) for choice in value["choices"]]
    except (LookupError, TypeError, ValueError, AttributeError):
        reason = "200, but no choices with a message"
        raise Fault("retry", reason, billed=True, body=text, **facts) from None
    with suppress(LookupError, TypeError, ValueError):
        first = first._replace(usage=to_json({name: int(value["usage"][name]) for name in TOKENS}))
    return [first._replace(body=text), *others]


def _reply_of(choice: Mapping[str, Any]) -> Reply:
    """One choice with its status: ok, refusal, filtered, truncated or empty."""
    said, why = choice["message"], choice.get("finish_reason")
    text = said.get("content")
    if isinstance(text, list):  # some servers send the text in parts
        text = "".join(part["text"] for part in text if part.get("type", "text") == "text")
    if refusal := said.get("refusal"):
        return Reply("refusal", text, why, str(refusal))
    stops = {"content_filter": "filtered", "length": "truncated"}
    status = stops.get(why, "ok" if text and text.strip() else "empty")
    return Reply(status, text, why, marks=_marks(choice.get("logprobs"), text or ""))


def _marks(logprobs: Mapping[str, Any] | None, text: str) -> str | None:
    """The odds of each digit where one was written: pairs of its place in the text and those odds.

    None where the server gives no log-probabilities, or of other words than its text.
    """
    tokens = (logprobs or {}).get("content") or []
    start = -"".join(token["token"] for token in tokens).find(text)
    if not tokens or start > 0:
        return None
    marks = []
    for token in tokens:
        start += len(token["token"])
        if re.fullmatch(r"\s*[1-9]", token["token"]):
            odds = Counter()
            for other in token["top_logprobs"]:
                if re.fullmatch(r"\s*[1-9]", other["token"]):
                    odds[other["token"].strip()] += math.exp(other["logprob"])
            marks.append((start - 1, {digit: float(f"{p:.4g}") for digit, p in odds.items()}))
    return to_json(marks)


class Connection:
    """A connection to OpenAI, or to any server that speaks its protocol, without retries.

    Args:
        base_url: vLLM, Ollama, llama.cpp, ``transformers serve`` (``http://localhost:8000/v1``);
            none is OpenAI. A name and password in it are used and never written down.
        timeout_s: the longest silence of the server; a whole call may take twice that.

    The key is read from the environment variable OPENAI_API_KEY and from nowhere else, and kept
    out of all that is said; a server of your own usually needs none.

    Raises:
        RuntimeError: without a key for OpenAI, or with one that cannot be sent.
    """

    def __init__(self, base_url: str | None = None, timeout_s: float = 120):
        import openai

        key = os.environ.get("OPENAI_API_KEY", "").strip()  # a line break is no part of it
        if not (key.isascii() and key.isprintable() and (key or base_url)):
            raise RuntimeError(
                "no usable key: set the environment variable OPENAI_API_KEY, give base_url of a "
                "local server, or use mode='replay' with stored replies"
            )
        url, self.timeout_s = urlsplit(base_url or OPENAI_URL), timeout_s
        login, _, host = url.netloc.rpartition("@")
        self.base_url = url._replace(netloc=host).geturl().rstrip("/")
        basic, password = base64.b64encode(unquote(login).encode()).decode(), login.split(":")[-1]
        self.client = openai.OpenAI(
            api_key=key or "none", base_url=self.base_url, timeout=timeout_s, max_retries=0,
            default_headers={"Authorization": f"Basic {basic}"} if login else None,
        )  # fmt: skip
        self._secrets = [one for one in (key, password, unquote(password), basic) if one]

    def redact(self, text: str) -> str:
        """`text` without the key and the password of the address, should a server echo them."""
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return text

    def ask(self, request: Request, samples: int = 1) -> list[Reply]:
        """Send one request for so many samples; raises `Fault`."""
        import openai  # replay needs no client

        started = time.monotonic()
        create = self.client.chat.completions.with_streaming_response.create
        try:  # all in extra_body: servers know parameters that the client does not
            with create(model="", messages=[], extra_body=request.body_for(samples)) as response:
                text = _read(response, started + 2 * self.timeout_s)
        except openai.APIStatusError as error:
            response, text = error.response, error.response.text
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__
            reason = "time-out" if "Timeout" in cause else f"no connection to {self.base_url}"
            billed = "Connect" not in cause  # lost later than connecting: it may be answered
            raise Fault("retry", reason, billed=billed) from None
        ms = 1000 * (time.monotonic() - started)
        return self.read(response.status_code, text, response.headers, ms)

    def read(self, status: int, text: str, headers: Mapping[str, str], ms=None) -> list[Reply]:
        """The replies in an answer of this server, without secrets; raises `Fault`."""
        return read_answer(status, self.redact(text), headers, self.base_url, ms)


def _read(response: Any, deadline: float) -> str:
    """The body, by a deadline: a server that drips bytes never meets the time-out of a read."""
    pieces = []
    try:
        for piece in response.iter_bytes():
            pieces.append(piece)
            if time.monotonic() > deadline:
                raise TimeoutError("not complete in time")
    except Exception as error:  # of the HTTP layer: the client does not wrap these
        raise Fault("retry", f"connection lost ({error!r})", billed=True) from None
    return b"".join(pieces).decode("utf-8", errors="replace")


LINES = 20_000  # OpenAI takes 50,000 lines and 200 MB a file: prompts of 10 kB fit
_OPEN = {"validating", "in_progress", "finalizing", "cancelling"}
_URL = "/v1/chat/completions"


def ask_by_batch(
    jobs: Iterable[Job], store: ReplyStore, connection: Connection, many: bool = False
) -> None:
    """Read the batches that have ended and submit what is missing: half the price, within a day.

    The store remembers which call a batch holds, and a line is called by the ids of its calls; an
    open batch is not sent again. `many` asks for all samples of a prompt in one line. What expired
    or failed on the way stays without a reply, and is submitted by the next run.

    Raises:
        JudgeStopped: while replies are on their way, or where no line of a batch was answered, so
            that nothing of it is final; it names the server's reason.
    """
    jobs = list(jobs)
    with store.asking():
        collect(store, connection)
        away = store.in_batches()
        free = (job for job in store.missing(jobs) if job.place not in away)
        tasks = tasks_of(free, many)
        store.add_requests(task[0].request for task in tasks)
        for start in range(0, len(tasks), LINES):
            _submit(tasks[start : start + LINES], store, connection.client)
    if missing := store.missing(jobs):
        names = ", ".join(sorted(set(store.in_batches().values())))
        raise JudgeStopped(
            f"{len(missing)} replies are with the Batch API ({names}). Run again later: the store "
            "remembers the batches"
        )


def _submit(tasks: list[list[Job]], store: ReplyStore, client: Any) -> None:
    """Send one batch."""
    calls = [store.claim(task) for task in tasks]
    lines = [
        {"custom_id": ".".join(map(str, ids)), "method": "POST", "url": _URL,
         "body": task[0].request.body_for(len(ids))}
        for task, ids in zip(tasks, calls, strict=True)
    ]  # fmt: skip
    content = "\n".join(map(json.dumps, lines)).encode()
    file = client.files.create(file=("judge.jsonl", content), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint=_URL, completion_window="24h")
    store.send_in_batch([call for ids in calls for call in ids], batch.id)


def collect(store: ReplyStore, connection: Connection) -> None:
    """Read every batch that has ended into the store.

    Raises:
        JudgeStopped: as in `ask_by_batch`, once all batches are read.
    """
    reasons = []
    for name in dict.fromkeys(store.in_batches().values()):
        batch = connection.client.batches.retrieve(name)
        if batch.status not in _OPEN and (reason := _read_batch(batch, store, connection)):
            reasons.append(f"{name}: {reason.rstrip('.')}")
    if reasons:
        raise JudgeStopped(
            f"no line of a batch was answered ({connection.redact('; '.join(reasons))}). The cause "
            "may be the settings, so nothing was stored as final: put it right and run again. If "
            "these prompts themselves are at fault, mode='live' records them as failed"
        )


def _read_batch(batch: Any, store: ReplyStore, connection: Connection) -> str | None:
    """Store one batch; the reason where none of its lines was answered for a cause to mend.

    Lines come in any order and some fail inside a "completed" batch.
    """
    rows = store.rows("SELECT id FROM call WHERE batch = ? AND status = 'asked'", (batch.id,))
    ends = {call: Reply("fault", reason=batch.status) for (call,) in rows}
    reasons = [error.message for error in (batch.errors and batch.errors.data) or []]
    files = filter(None, (batch.output_file_id, batch.error_file_id))
    contents = [connection.client.files.content(file).content.splitlines() for file in files]
    for line in map(json.loads, itertools.chain(*contents)):
        calls = [int(call) for call in line["custom_id"].split(".")]
        try:
            replies = _replies(line, connection)
        except Fault as fault:
            replies = [fault.end] * len(calls)
            reasons += [str(fault)] if fault.kind != "retry" else []
        ends |= dict(zip(calls, replies, strict=False))
    answered = any(end.status not in ("fault", "failed") for end in ends.values())
    if not answered:
        ends = {call: end._replace(status="fault") for call, end in ends.items()}
    store.complete(ends)
    return None if answered else next(iter(reasons), None)


def _replies(line: dict[str, Any], connection: Connection) -> list[Reply]:
    """The replies of one line; raises the `Fault` in it."""
    answer = line.get("response") or {}
    text = json.dumps(answer.get("body") or line, ensure_ascii=False)
    headers = {"x-request-id": answer.get("request_id")}
    return connection.read(answer.get("status_code") or 0, text, headers)
