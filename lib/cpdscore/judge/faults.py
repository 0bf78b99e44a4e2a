"""What to do about each way a call can go wrong: stop the run, fail the item, or try again."""

import email.utils
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import openai

NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


class Fault(Exception):
    """A call that brought no usable reply. ``billed``: the server may have charged for it."""

    def __init__(
        self,
        reason: str,
        *,
        http: int | None = None,
        body: str | None = None,
        request_id: str | None = None,
        wait: float | None = None,
        rate_limited: bool = False,
        billed: bool = False,
    ):
        super().__init__(reason)
        self.reason, self.http, self.body = reason, http, body
        self.request_id, self.wait = request_id, wait
        self.rate_limited, self.billed = rate_limited, billed


class Retry(Fault):
    """Transient: the same request may succeed later."""


class FailItem(Fault):
    """The server refuses this request for good; others may pass."""


class StopRun(Fault):
    """No request can succeed until someone changes something (key, model, money, disk)."""


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds the server asks to wait: ``retry-after-ms``, or ``retry-after`` (seconds or date).

    >>> retry_after({"retry-after": "3"}), retry_after({"retry-after-ms": "250"})
    (3.0, 0.25)
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, now=50.0)
    10.0
    """
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    asked = headers.get("retry-after")
    if asked is None:
        return None
    try:
        return max(0.0, float(asked))
    except ValueError:
        pass
    try:
        when = email.utils.parsedate_to_datetime(asked).timestamp()
    except ValueError:
        return None
    return max(0.0, when - (time.time() if now is None else now))


def classify_status(status: int, body: str, headers: Mapping[str, str], base_url: str) -> Fault:
    """The fault that an HTTP status other than 200 means (also for one line of a batch)."""
    said = message(body)
    facts: dict[str, Any] = {
        "http": status, "body": body, "request_id": headers.get("x-request-id"),
    }  # fmt: skip
    if status == 429 and _codes(body) & NO_MONEY:
        return StopRun(
            f"the account has no quota left: {said}. Add credit, then run again", **facts
        )
    if status == 429:
        return Retry("rate limit", wait=retry_after(headers), rate_limited=True, **facts)
    if status in (408, 409) or status >= 500 or status == 0:
        return Retry(f"server error {status}", wait=retry_after(headers), **facts)
    if status in (400, 413, 422):
        return FailItem(f"refused with {status}: {said}", **facts)
    advice = {
        401: "the key is not accepted: check the environment variable that holds it",
        403: "this key may not use this model or address",
        404: "no such model or address: check the model name and base_url",
    }.get(status, "check base_url")
    return StopRun(f"{base_url} answered {status}: {advice} ({said})", **facts)


def classify(error: Exception, base_url: str) -> Fault:
    """The fault behind an exception of the client or of the connection beneath it."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, openai.APIStatusError):
        response = error.response
        return classify_status(response.status_code, response.text, response.headers, base_url)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return Retry("time-out", billed=True)
    if isinstance(error, openai.APIConnectionError | httpx2.ConnectError):
        return Retry(f"no connection to {base_url}")
    if isinstance(error, httpx2.HTTPError | httpx2.StreamError | OSError):
        return Retry(f"connection lost ({type(error).__name__})", billed=True)
    raise error


def message(body: str) -> str:
    """The server's own words, shortened to one line."""
    error = _error(body)
    said = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(said or body or "no message").split())[:300]


def _error(body: str) -> Any:
    try:
        value = json.loads(body)
    except json.JSONDecodeError:
        return None
    return value.get("error", value.get("detail")) if isinstance(value, dict) else None


def _codes(body: str) -> set[str]:
    error = _error(body)
    return {str(error.get(name)) for name in ("code", "type")} if isinstance(error, dict) else set()
