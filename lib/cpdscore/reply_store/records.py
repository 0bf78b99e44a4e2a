"""What is asked of a judge and what comes back, as plain values."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

KEY_VERSION = 1


class StoreError(RuntimeError):
    """The store cannot be written or read; the message says what to do."""


class MissingReplies(LookupError):
    """Replay was asked for replies that the store does not hold; ``.jobs`` lists them."""

    def __init__(self, jobs: list["Job"], path: Path):
        self.jobs = jobs
        first = ", ".join(f"{job.request.key[:12]}#{job.sample}" for job in jobs[:5])
        super().__init__(
            f"{len(jobs)} replies are not in {path.name} (first: {first}). Run with mode='live' "
            "to ask for them, or open the store that was recorded with the same model, "
            "parameters and prompt wording."
        )


@dataclass(frozen=True)
class Request:
    """All that is sent to a judge and can change its reply, and nothing else.

    ``parameters`` go into the request body as they are (temperature, max_tokens, seed ...).
    ``labels`` (variant, wording, item) are kept beside the request but are not part of its key.
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

    def __post_init__(self) -> None:
        if taken := {"n", "stream", "model", "messages"} & set(self.parameters):
            raise ValueError(f"judge parameters may not contain {sorted(taken)}")

    @cached_property
    def body(self) -> dict[str, Any]:
        """The JSON body of the chat-completions call."""
        messages = [{"role": role, "content": content} for role, content in self.messages]
        return {"model": self.model, "messages": messages, **self.parameters}

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


class Reply(NamedTuple):
    """How one job ended. ``status``: ok, refusal, filtered, truncated, empty, failed."""

    sample: int
    status: str
    text: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    logprobs: str | None = None
    attempt: int | None = None


class Attempt(NamedTuple):
    """One call to the server, whatever came of it. Never holds a header or a key."""

    outcome: str
    http: int | None = None
    request_id: str | None = None
    ms: float | None = None
    usage: Mapping[str, Any] | None = None
    body: str | None = None
    base_url: str | None = None
    fingerprint: str | None = None


def to_json(value: Any) -> str:
    """Compact JSON that keeps every letter readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
