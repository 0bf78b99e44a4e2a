"""One call to an OpenAI-compatible server, checked before anyone believes it."""

import base64
import email.utils
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lib.cpdscore.reply_store import Reply, Request, to_json

OPENAI_URL = "https://api.openai.com/v1"
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_ADVICE = {
    401: "the key is not accepted: check the environment variable that holds it",
    403: "this key may not use this model or address",
    404: "no such model or address: check the model name and base_url",
}


class Fault(Exception):
    """A call that brought no usable reply.

    `kind` is "retry" (the same request may pass later), "refused" (this one never will, others
    may) or "stop" (none can until someone changes something: key, model, money, disk). `billed`
    says that the server may have charged for it, `wait` how long it asks to be left alone.
    """

    def __init__(
        self, kind: str, reason: str, wait: float | None = None, billed: bool = False, **facts: Any
    ):
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
    error = _error(body)
    said = " ".join(str(error.get("message")).split())[:300]
    facts = {"http": status, "body": body, "request_id": headers.get("x-request-id")}
    if {str(error.get(name)) for name in ("code", "type")} & _NO_MONEY:
        advice = "Add credit, then run again"
        return Fault("stop", f"the account has no quota left: {said}. {advice}", **facts)
    if status in (0, 200, 408, 409, 429) or status >= 500:
        billed = status == 200
        return Fault(
            "retry", f"server error {status}: {said}", retry_after(headers), billed, **facts
        )
    if status in (400, 413, 422):
        return Fault("refused", f"refused with {status}: {said}", **facts)
    advice = _ADVICE.get(status, "check base_url")
    return Fault("stop", f"{base_url} answered {status}: {advice} ({said})", **facts)


def _error(body: str) -> dict[str, Any]:
    """What the server says went wrong."""
    try:
        value = json.loads(body)
    except json.JSONDecodeError:
        value = None
    error = value.get("error", value.get("detail")) if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {"message": error or body or "no message"}


def read_answer(text: str, base_url: str, **facts: Any) -> list[Reply]:
    """The replies in the body of a 200 answer, one per choice, or the fault that it hides.

    >>> choice = {"message": {"content": "- Humanness: 4"}, "finish_reason": "stop"}
    >>> read_answer(to_json({"choices": [choice]}), "")[0].status
    'ok'
    """
    facts |= {"http": 200, "body": text}
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = None
    if isinstance(value, dict) and value.get("error"):
        raise fault_of_status(200, text, {}, base_url)
    choices = value.get("choices") if isinstance(value, dict) else None
    known = isinstance(choices, list) and choices and all(map(_has_message, choices))
    if not known:
        raise Fault("retry", "200, but no choices with a message", billed=True, **facts)
    facts["usage"] = to_json(value["usage"]) if value.get("usage") else None
    facts |= {"base_url": base_url, "fingerprint": value.get("system_fingerprint")}
    first, *others = [_reply_of(choice)._replace(**facts) for choice in choices]
    return [first, *(reply._replace(body=None, usage=None) for reply in others)]


def _has_message(choice: Any) -> bool:
    return isinstance(choice, dict) and isinstance(choice.get("message"), dict)


def _reply_of(choice: Mapping[str, Any]) -> Reply:
    """One choice with its status: ok, refusal, filtered, truncated or empty."""
    said, why = choice["message"], choice.get("finish_reason")
    text = said.get("content")
    if isinstance(text, list):  # some servers send the text in parts
        parts = [part.get("text") for part in text if isinstance(part, dict)]
        text = "".join(part for part in parts if isinstance(part, str))
    text = text if isinstance(text, str) else None
    stops = {"content_filter": "filtered", "length": "truncated"}
    status = stops.get(why, "ok" if text and text.strip() else "empty")
    if refusal := said.get("refusal"):
        return Reply("refusal", text, why, str(refusal))
    return Reply(status, text, why)


class Connection:
    """A connection to OpenAI, or to any server that speaks its protocol, without retries.

    Args:
        base_url: vLLM, Ollama, llama.cpp, ``transformers serve`` (``http://localhost:8000/v1``);
            none is OpenAI. A name and password in it are used and never written down.
        key_variable: the environment variable with the key, which is read from nowhere else and
            kept out of all that is said; a server of your own usually needs none.
        timeout_s: the longest silence of the server.
        deadline_s: the longest time for one call.

    Raises:
        RuntimeError: without a key for OpenAI, or with one that cannot be sent.
    """

    def __init__(
        self,
        base_url: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        timeout_s: float = 120,
        deadline_s: float = 300,
    ):
        import openai

        key = os.environ.get(key_variable, "").strip()  # a line break from a file is no part of it
        if not (key.isascii() and key.isprintable()):
            raise RuntimeError(
                f"the key in {key_variable} holds a character that no key has: copy it again"
            )
        if not key and base_url is None:
            raise RuntimeError(
                f"no key: set the environment variable {key_variable}, give base_url of a local "
                "server, or use mode='replay' with stored replies"
            )
        self.client = openai.OpenAI(
            api_key=key or "none", base_url=base_url or OPENAI_URL, timeout=timeout_s, max_retries=0
        )
        url, self.deadline_s = self.client.base_url, deadline_s
        self.base_url = f"{url.scheme}://{url.netloc.decode()}{url.path.rstrip('/')}"
        login = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        self._secrets = [secret for secret in (key, url.password) if secret]
        self._secrets += [login] if url.password else []

    def redact(self, text: str) -> str:
        """`text` without the key and the password of the address, should a server echo them."""
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return text

    def ask(self, request: Request, samples: int = 1) -> list[Reply]:
        """Send one request for so many samples; raises `Fault`."""
        import openai  # replay needs no client

        started = time.monotonic()
        body = dict(request.body)  # as extra_body: servers know parameters that the client does not
        model, messages = body.pop("model"), body.pop("messages")
        body |= {"n": samples} if samples > 1 else {}
        create = self.client.chat.completions.with_streaming_response.create
        try:
            with create(model=model, messages=messages, extra_body=body) as response:
                text = self.redact(_read(response, started, self.deadline_s))
                request_id = response.headers.get("x-request-id")
        except openai.APIStatusError as error:
            status, said = error.response.status_code, self.redact(error.response.text)
            raise fault_of_status(status, said, error.response.headers, self.base_url) from None
        except openai.APITimeoutError:
            raise Fault("retry", "time-out", billed=True) from None
        except openai.APIConnectionError as error:
            sent = "Connect" not in type(error.__cause__).__name__  # lost later than connecting
            raise Fault("retry", f"no connection to {self.base_url}", billed=sent) from None
        ms = 1000 * (time.monotonic() - started)
        return read_answer(text, self.base_url, request_id=request_id, ms=ms)


def _read(response: Any, started: float, deadline_s: float) -> str:
    """The body, against a deadline for the whole call.

    The client's time-out holds per read, so a server that drips bytes never meets it.
    """
    pieces = []
    try:
        for piece in response.iter_bytes():
            pieces.append(piece)
            if time.monotonic() > started + deadline_s:
                raise TimeoutError(f"not complete after {deadline_s:g} s")
    except Exception as error:  # of the HTTP layer: the client does not wrap these
        raise Fault("retry", f"connection lost ({error!r})", billed=True) from None
    return b"".join(pieces).decode("utf-8", errors="replace")
