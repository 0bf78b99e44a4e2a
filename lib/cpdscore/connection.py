"""One call to an OpenAI-compatible server, and the replies in its answer, checked."""

import base64
import email.utils
import json
import math
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote, urlsplit

from lib.cpdscore.reply_store import TOKENS, Reply, Request

OPENAI_URL = "https://api.openai.com/v1"
# Of an answer, decompressed; a thousand tokens with 20 alternatives each take 2 MB.
MAX_ANSWER_BYTES = 16 << 20
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
# What reading JSON of another shape than the protocol's may raise.
_MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip


class JudgeStopped(RuntimeError):
    """Not every reply is there; the message gives the reason and what to do.

    Attributes:
        report: after a live run, as `ask_all` returns it.
        forecast: after a dry run, as `forecast` returns it.
    """

    def __init__(self, message: str, report: Any = None, forecast: Any = None):
        super().__init__(message)
        self.report = report
        self.forecast = forecast


class JudgeError(Exception):
    """A call that brought no usable reply.

    Attributes:
        kind: "retry" (the same request may pass later), "refused" (this one never will, others
            may) or "stop" (none can until someone changes something: key, model, quota, disk).
        wait_s: how long the server asks to be left alone.
        billed: whether the server may have charged for the call.
        reply: what is recorded of it.
    """

    def __init__(
        self, kind: str, reason: str, wait_s=None, billed=False, **details: Any
    ):
        super().__init__(reason)
        self.kind = kind
        self.wait_s = wait_s
        self.billed = billed
        status = "failed" if kind == "refused" else "fault"
        self.reply = Reply(status, reason=reason, **details)


def wait_asked_by_server(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait: ``retry-after-ms``, or ``retry-after`` (seconds or date).

    >>> wait_asked_by_server({"retry-after": "3"}), wait_asked_by_server({"retry-after-ms": "250"})
    (3.0, 0.25)
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) * unit_s)
    with suppress(KeyError, ValueError, OverflowError):
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(0.0, date.timestamp() - time.time())
    return None


def error_of_status(status: int, body: str, headers: Mapping[str, str]) -> JudgeError:
    """The error that an HTTP status means, or an error in the body of an answer with status 200."""
    answer = _parse_object(body)
    error = answer.get("error") or answer.get("detail")
    if not isinstance(error, dict):
        error = {"message": error}
    message = _text_or_none(error.get("message")) or body or "no message"
    message = " ".join(message.split())[:300]
    details = {"http": status, "body": body, "request_id": headers.get("x-request-id")}
    if error.get("code") in _NO_QUOTA or error.get("type") in _NO_QUOTA:
        return JudgeError(
            "stop", f"the account has no quota left: {message}", **details
        )
    if status in (200, 408, 409, 429) or status >= 500:
        details |= {"wait_s": wait_asked_by_server(headers), "billed": status == 200}
        return JudgeError("retry", f"server error {status}: {message}", **details)
    if status in (400, 413, 422):
        return JudgeError("refused", f"refused with {status}: {message}", **details)
    hint = "check OPENAI_API_KEY, the model's name and base_url"
    return JudgeError(
        "stop", f"the server answered {status} ({message}): {hint}", **details
    )


def _parse_object(text: str) -> dict[str, Any]:
    """The JSON object in a body, or an empty one."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    return {}


def read_answer(text: str, headers: Mapping[str, str], request: Request) -> list[Reply]:
    """The replies in an answer with status 200, one per choice.

    The first one also has the usage and the body of the answer. Warns where another model has
    answered than the one asked for.

    Raises:
        JudgeError: for an error in the body, or without a choice that can be read.

    >>> choice = {"message": {"content": "- Humanness: 4"}, "finish_reason": "stop"}
    >>> read_answer(json.dumps({"choices": [choice]}), {}, Request("m", ()))[0].status
    'ok'
    """
    answer = _parse_object(text)
    if answer.get("error"):
        raise error_of_status(200, text, headers)
    model = _text_or_none(answer.get("model")) or request.model
    if not is_same_model(request.model, model):
        name = PurePath(model).name
        warnings.warn(
            f"{name!r} has answered, where {request.model!r} was asked for",
            stacklevel=2,
        )
    details = {"http": 200, "request_id": headers.get("x-request-id")}
    details["fingerprint"] = _text_or_none(answer.get("system_fingerprint"))
    try:
        replies = [
            _read_choice(choice)._replace(**details) for choice in answer["choices"]
        ]
        replies[0] = replies[0]._replace(
            usage=_read_usage(answer.get("usage")), body=text
        )
    except _MALFORMED:
        reason = "200, but no choices with a message"
        raise JudgeError("retry", reason, billed=True, body=text, **details) from None
    return replies


def _read_choice(choice: Mapping[str, Any]) -> Reply:
    """One choice with its status: ok, refusal, filtered, truncated or empty."""
    message = choice["message"]
    finish_reason = _text_or_none(choice.get("finish_reason"))
    text = message.get("content")
    if isinstance(text, list):  # some servers send the text in parts
        texts = [part["text"] for part in text if part.get("type", "text") == "text"]
        text = "".join(texts)
    refusal = message.get("refusal")
    if refusal:
        return Reply("refusal", text, finish_reason, reason=str(refusal))
    status = "ok" if text and text.strip() else "empty"
    if finish_reason == "content_filter":
        status = "filtered"
    if finish_reason == "length":
        status = "truncated"
    probabilities = _digit_probabilities(choice.get("logprobs"), text or "")
    return Reply(status, text, finish_reason, digit_probabilities=probabilities)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _read_usage(usage: Any) -> str | None:
    """Prompt and completion tokens as JSON; None where the server states no possible number."""
    if not isinstance(usage, dict):
        return None
    tokens = {}
    for name in TOKENS:
        count = usage.get(name)
        if type(count) is not int or not 0 <= count <= 10**9:
            return None
        tokens[name] = count
    return json.dumps(tokens)


def _digit_probabilities(logprobs: Any, text: str) -> str | None:
    """The probabilities of the digits wherever the judge wrote one.

    Returns:
        JSON: for each token that is a digit, its position in the text and the probability of each
        digit there. None where the server gives no log-probabilities, impossible ones, or those of
        other words than its text.
    """
    try:
        tokens = logprobs["content"]
        if not tokens:
            return None
        generated = "".join(token["token"] for token in tokens)
        text_start = generated.index(text)  # white space may come before the text
        token_end = 0
        positions = []
        for token in tokens:
            token_end += len(token["token"])
            position = token_end - 1 - text_start  # of the token's last character
            is_digit = re.fullmatch(r"\s*[1-9]", token["token"])
            if is_digit and 0 <= position < len(text):
                positions.append((position, _sum_by_digit(token["top_logprobs"])))
    except _MALFORMED:
        return None
    return json.dumps(positions)


def _sum_by_digit(alternatives: list[dict[str, Any]]) -> dict[str, float]:
    """The probability of each digit, with or without a blank before it, to four figures."""
    probabilities = Counter()
    for alternative in alternatives:
        if alternative["logprob"] > 0.001:  # rounding apart, no probability is above 1
            raise ValueError("no log-probability")
        probability = math.exp(alternative["logprob"])
        if re.fullmatch(r"\s*[1-9]", alternative["token"]) and probability > 0:
            probabilities[alternative["token"].strip()] += probability
    return {digit: float(f"{total:.4g}") for digit, total in probabilities.items()}


# Behind the name of a model: the date or number of a snapshot, the form of its weights.
_SNAPSHOT = re.compile(r"([-.:@_](\d[\d-]*|q\d\w*|latest|gguf))*")


def is_same_model(requested: str, answering: str) -> bool:
    """Whether a server's name for a model means the one that was requested, or a snapshot of it.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06"), is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    name = PurePath(requested).name.lower()
    other = PurePath(answering).name.lower()
    return other.startswith(name) and bool(
        _SNAPSHOT.fullmatch(other.removeprefix(name))
    )


class Connection:
    """A connection to OpenAI, or to any server that speaks its protocol, without retries.

    Args:
        base_url: vLLM, Ollama, llama.cpp, ``transformers serve`` (``http://localhost:8000/v1``);
            none is OpenAI. A name and password in it are used and never written down.
        timeout_s: the longest silence of the server; a whole call may take twice that.

    The key is read from the environment variable OPENAI_API_KEY and from nowhere else, and kept
    out of all messages and records; a server of your own usually needs none.

    Raises:
        RuntimeError: without a key for OpenAI, or with one that cannot be sent.
    """

    def __init__(self, base_url: str | None = None, timeout_s: float = 120):
        import openai  # replay needs no client

        key = os.environ.get(
            "OPENAI_API_KEY", ""
        ).strip()  # a line break is no part of it
        if not (key.isascii() and key.isprintable() and (key or base_url)):
            raise RuntimeError(
                "no usable key: set the environment variable OPENAI_API_KEY, give base_url of a "
                "local server, or use mode='replay' with stored replies"
            )
        url = urlsplit(base_url or OPENAI_URL)
        login, _, host = url.netloc.rpartition("@")
        password = login.partition(":")[2]
        credentials = base64.b64encode(unquote(login).encode()).decode()
        self._secrets = [key, password, unquote(password), credentials]
        self.base_url = url._replace(netloc=host).geturl().rstrip("/")
        self.timeout_s = timeout_s
        headers = {}
        if login:
            headers["Authorization"] = f"Basic {credentials}"
        self.client = openai.OpenAI(
            api_key=key or "none",
            base_url=self.base_url,
            timeout=timeout_s,
            max_retries=0,
            default_headers=headers,
            http_client=openai.DefaultHttpxClient(
                event_hooks={"response": [self._check_status]}
            ),
        )

    def redact(self, text: str) -> str:
        """`text` without the key and the password of the address, should a server echo them."""
        for secret in filter(None, self._secrets):
            text = text.replace(secret, "[key]")
        return text

    def ask(self, request: Request, samples: int = 1) -> list[Reply]:
        """Send one request for a number of samples; raises `JudgeError`."""
        import openai

        body = request.body
        if samples > 1:
            body = body | {"n": samples}
        create = self.client.chat.completions.with_streaming_response.create
        started = time.monotonic()
        try:  # all in extra_body: servers know parameters that the client does not
            with create(model="", messages=[], extra_body=body) as response:
                text = self._read_body(response)
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__
            reason = (
                "time-out"
                if "Timeout" in cause
                else f"no connection to {self.base_url}"
            )
            # A connection that was lost later may still be answered, and paid for.
            billed = "Connect" not in cause
            raise JudgeError("retry", reason, billed=billed) from None
        ms = 1000 * (time.monotonic() - started)
        replies = read_answer(text, response.headers, request)
        return [reply._replace(ms=ms, base_url=self.base_url) for reply in replies]

    def _check_status(self, response: Any) -> None:
        """Raise the error that a status means, before the client reads its body without end."""
        if response.status_code != 200 and not response.has_redirect_location:
            text = self._read_body(response)
            raise error_of_status(response.status_code, text, response.headers)

    def _read_body(self, response: Any) -> str:
        """The text of an answer, without secrets, up to a size and a deadline.

        A server that drips bytes never meets the time-out of a single read.
        """
        import httpx2  # of the openai client, which passes these errors on

        deadline = time.monotonic() + 2 * self.timeout_s
        body = bytearray()
        try:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    kind = "refused" if response.status_code == 200 else "retry"
                    reason = f"an answer of more than {MAX_ANSWER_BYTES} bytes"
                    raise JudgeError(kind, reason, billed=True)
                if time.monotonic() > deadline:
                    raise JudgeError("retry", "not complete in time", billed=True)
        except httpx2.HTTPError as error:
            raise JudgeError(
                "retry", f"connection lost ({error!r})", billed=True
            ) from None
        return self.redact(body.decode(errors="replace"))
