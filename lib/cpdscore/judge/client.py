"""One call to an OpenAI-compatible server, checked before anyone believes it."""

import base64
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from openai import OpenAI

from lib.cpdscore.judge.faults import Retry, StopRun, classify, classify_status, message
from lib.cpdscore.reply_store import Reply, Request

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True)
class Answer:
    """A call that brought at least one choice."""

    choices: list[dict[str, Any]]
    body: str
    usage: dict[str, Any] | None
    request_id: str | None
    ms: float
    fingerprint: str | None


@dataclass(frozen=True)
class Connection:
    """A client with its own retries off, and the key kept out of everything it says."""

    client: OpenAI
    base_url: str
    deadline_s: float
    _secrets: tuple[str, ...] = field(repr=False)

    def redact(self, text: str) -> str:
        """``text`` without the key and the password of the address, should a server echo them."""
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return text

    def ask(self, request: Request, samples: int = 1) -> Answer:
        """Send one request; raises ``Retry``, ``FailItem`` or ``StopRun``.

        The time-out of the HTTP layer holds per read, so a server that drips one byte at a time
        never meets it: the body is read in pieces against a deadline for the whole call.
        """
        started = time.monotonic()
        body = dict(request.body)  # as extra_body: servers know parameters that the client does not
        model, messages = body.pop("model"), body.pop("messages")
        if samples > 1:
            body["n"] = samples
        try:
            with self.client.chat.completions.with_streaming_response.create(
                model=model, messages=messages, extra_body=body
            ) as response:
                text = self.redact(self._read(response, started + self.deadline_s))
                request_id = response.headers.get("x-request-id")
        except Exception as error:
            fault = classify(error, self.base_url)
            fault.body = fault.body and self.redact(fault.body)
            fault.reason = self.redact(fault.reason)
            fault.args = (fault.reason,)
            raise fault from None
        value = checked(text, request_id, self.base_url)
        ms = 1000 * (time.monotonic() - started)
        usage, mark = value.get("usage"), value.get("system_fingerprint")
        return Answer(value["choices"], text, usage, request_id, ms, mark)

    def _read(self, response: Any, deadline: float) -> str:
        pieces = []
        for piece in response.iter_bytes():
            pieces.append(piece)
            if time.monotonic() > deadline:
                raise Retry(f"reply not complete after {self.deadline_s:g} s", billed=True)
        return b"".join(pieces).decode("utf-8", errors="replace")


def connect(
    base_url: str | None = None,
    key_variable: str = "OPENAI_API_KEY",
    timeout_s: float = 120,
    deadline_s: float = 300,
) -> Connection:
    """Open a connection to OpenAI, or to any server that speaks its protocol.

    ``base_url`` may name vLLM, Ollama, llama.cpp or ``transformers serve``
    (``http://localhost:8000/v1``). The key is read from the environment variable
    ``key_variable`` and from nowhere else; a server of your own usually needs none. Name and
    password in the address (``http://me:secret@host/v1``) are used and never written down.
    """
    key = os.environ.get(key_variable, "").strip()  # a line break from a file is not part of it
    if not (key.isascii() and key.isprintable()):
        raise RuntimeError(
            f"the key in {key_variable} holds a character that no key has: copy it again"
        )
    if not key and base_url is None:
        raise RuntimeError(
            f"no key: set the environment variable {key_variable}, give base_url of a local "
            "server, or use mode='replay' with stored replies"
        )
    client = OpenAI(
        api_key=key or "none", base_url=base_url or OPENAI_URL, timeout=timeout_s, max_retries=0
    )
    shown, secrets = _without_login(base_url or OPENAI_URL)
    return Connection(client, shown, deadline_s, tuple(filter(None, (key, *secrets))))


def _without_login(url: str) -> tuple[str, tuple[str, ...]]:
    """The address without name and password, and what must not be written of them.

    >>> _without_login("http://me:secret@host:8000/v1")
    ('http://host:8000/v1', ('secret', 'bWU6c2VjcmV0'))
    """
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, ()
    name, _, word = map(unquote, login.partition(":"))
    coded = base64.b64encode(f"{name}:{word}".encode()).decode()
    return parts._replace(netloc=host).geturl(), tuple(filter(None, (word, coded)))


def checked(text: str, request_id: str | None, base_url: str) -> dict[str, Any]:
    """The parsed body of a 200 reply, or the fault it hides."""
    facts = {"http": 200, "body": text, "request_id": request_id, "billed": True}
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise Retry("200, but the body is not JSON", **facts) from None
    if isinstance(value, dict) and value.get("error"):
        fault = classify_status(429, text, {}, base_url)  # a gateway that hides its errors
        raise fault if isinstance(fault, StopRun) else Retry(f"200, but: {message(text)}", **facts)
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not choices:
        raise Retry("200, but no choices", **facts)
    if not all(isinstance(one, dict) and isinstance(one.get("message"), dict) for one in choices):
        raise Retry("200, but a choice without a message", **facts)
    return value


def reply_of(choice: Mapping[str, Any], sample: int) -> Reply:
    """One choice with its status: ok, refusal, filtered, truncated or empty.

    >>> reply_of({"message": {"content": "- Humanness: 4"}, "finish_reason": "stop"}, 0).status
    'ok'
    >>> reply_of({"message": {"content": None}, "finish_reason": "content_filter"}, 0).status
    'filtered'
    """
    said = choice["message"]
    text, refusal, why = said.get("content"), said.get("refusal"), choice.get("finish_reason")
    if isinstance(text, list):  # some servers send the text in parts
        parts = [part.get("text") for part in text if isinstance(part, dict)]
        text = "".join(part for part in parts if isinstance(part, str))
    elif not isinstance(text, str):
        text = None
    if refusal:
        status = "refusal"
    elif why == "content_filter":
        status = "filtered"
    elif why == "length":
        status = "truncated"
    else:
        status = "ok" if text and text.strip() else "empty"
    logprobs = choice.get("logprobs")
    kept = json.dumps(logprobs) if logprobs else None
    return Reply(sample, status, text, why, str(refusal) if refusal else None, kept)
