"""A local judge that fails on purpose: standard library only, bound to 127.0.0.1."""

import email.utils
import functools
import gzip
import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Every fault after which the same request may pass (spec list of transient faults).
TRANSIENT = (
    "429", "429_seconds", "429_ms", "429_date", "408", "409", "500", "502", "503", "503_no_retry",
    "reset_before", "reset_inside", "hang", "drip", "html", "truncated", "no_body", "error_200",
    "choices_null", "choices_empty", "choice_bare", "content_none", "refusal", "content_filter",
    "length",
)  # fmt: skip
HANG_S = 1.5  # longer than the time-out that the tests give the client


HEADERS = {
    "429_seconds": {"Retry-After": "0.2"}, "429_ms": {"retry-after-ms": "150"},
    "429_date": {}, "429_long": {"Retry-After": "300"}, "503_no_retry": {"x-should-retry": "false"},
}  # fmt: skip
BODIES = {  # what comes with status 200 in place of an answer
    "html": "<html><body>Bad gateway</body></html>", "truncated": '{"id": "x", "object": "chat.',
    "no_body": "", "error_200": '{"error": {"message": "upstream fell over"}}',
    "choices_null": '{"choices": null}', "choices_empty": '{"choices": []}',
    "choice_bare": '{"choices": [{"index": 0}]}',
}  # fmt: skip
CHOICES = {  # how a choice ends without a text: reason and message
    "content_none": ("stop", {"content": None}), "length": ("length", {"content": "- Human"}),
    "refusal": ("stop", {"content": None, "refusal": "I cannot rate this."}),
    "content_filter": ("content_filter", {"content": None}),
}  # fmt: skip


EXTRA = {"fewer": -1, "more": 2}  # choices beyond those asked for


@functools.cache
def bomb() -> bytes:
    """64 MB of white space, packed."""
    return gzip.compress(b" " * (64 << 20), compresslevel=1)


def default_reply(body: dict, choice: int) -> str:
    """A score from 1 to 5 that depends on the prompt only."""
    prompt = body["messages"][-1]["content"]
    return f"- Humanness: {1 + sum(map(ord, prompt)) % 5}"


class FaultServer:
    """Answers chat completions; ``plan(number, body)`` names the fault.

    ``alter(answer, body)`` returns another answer, or the bytes to send instead.
    """

    def __init__(
        self,
        plan: Callable[[int, dict], str | None] = lambda number, body: None,
        latency: float = 0.0,
        reply: Callable[[dict, int], str] = default_reply,
        reply_tokens: int = 6,
        alter: Callable[[dict, dict], dict | bytes] = lambda answer, body: answer,
    ):
        self.plan = plan
        self.latency = latency
        self.reply = reply
        self.reply_tokens = reply_tokens
        self.alter = alter
        self.lock = threading.Lock()
        self.requests = 0
        self.answered = 0
        self.sent_tokens = 0
        self.faults: Counter[str] = Counter()
        self.bodies: list[dict] = []
        self.http = _Server(("127.0.0.1", 0), _Handler)
        self.http.owner = self
        self.thread = threading.Thread(
            target=self.http.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def __enter__(self) -> "FaultServer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def completion(self, body: dict, count: int) -> dict:
        choices = []
        for index in range(count):
            message = {"role": "assistant", "content": self.reply(body, index)}
            choices.append(
                {"index": index, "finish_reason": "stop", "message": message}
            )
        prompt = sum(len(message["content"]) for message in body["messages"]) // 4
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": self.reply_tokens * count,
        }
        with self.lock:
            self.sent_tokens += sum(usage.values())
        return {"choices": choices, "usage": usage, "system_fingerprint": "fp_test"}


class _Server(ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is part of the test, not an error to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        owner = self.server.owner
        with owner.lock:
            number = owner.requests
            owner.requests += 1
            owner.bodies.append(body)
            fault = owner.plan(number, body)
            owner.faults.update([fault] if fault else [])
        time.sleep(owner.latency)
        value = owner.completion(body, body.get("n", 1) + EXTRA.get(fault, 0))
        if fault == "usage_missing":
            del value["usage"]
        elif fault not in (None, *EXTRA):
            return self.fail(fault, value)
        with owner.lock:
            owner.answered += 1
        answer = owner.alter(value, body)
        if isinstance(answer, bytes):
            gzipped = answer.startswith(b"\x1f\x8b")
            return self.send(
                200, answer, {"Content-Encoding": "gzip"} if gzipped else None
            )
        self.json(200, answer)

    def fail(self, fault: str, value: dict) -> None:
        status = fault.split("_")[0]
        if status == "quota":
            error = {
                "message": "quota",
                fault.removeprefix("quota_"): "insufficient_quota",
            }
            return self.json(429, {"error": error})
        if status in ("402", "502"):  # of a gateway, which knows no JSON
            return self.send(int(status), BODIES["html"].encode())
        if fault == "500_bomb":
            return self.send(500, bomb(), {"Content-Encoding": "gzip"})
        if fault == "echo_401":
            return self.json(
                401, {"error": {"message": "bad " + self.headers["Authorization"]}}
            )
        if status.isdigit():
            extra = HEADERS.get(fault)
            if fault == "429_date":
                extra = {
                    "Retry-After": email.utils.formatdate(time.time() + 1, usegmt=True)
                }
            return self.json(
                int(status), {"error": {"message": f"planned {status}"}}, extra
            )
        if fault in BODIES:
            return self.send(200, BODIES[fault].encode())
        if fault in CHOICES:
            for choice in value["choices"]:
                choice["finish_reason"], message = CHOICES[fault]
                choice["message"] |= message
            return self.json(200, value)
        self.drop(fault, json.dumps(value).encode())

    def drop(self, fault: str, text: bytes) -> None:
        """Hang up: at once, late, half-way, or after a drip well within the time-out per read."""
        if fault == "hang":
            time.sleep(HANG_S)
        if fault == "reset_inside":
            self.head(200, len(text))
            self.wfile.write(text[: len(text) // 2])
        if fault == "drip":
            self.head(200, len(text))
            for i in range(40):
                self.wfile.write(text[i : i + 1])
                self.wfile.flush()
                time.sleep(0.1)
        self.wfile.flush()
        self.close_connection = True
        self.connection.close()

    def head(
        self, status: int, length: int, extra: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        headers["x-request-id"] = f"req_{self.server.owner.requests}"
        for name, value in (headers | (extra or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def send(
        self, status: int, content: bytes, extra: dict[str, str] | None = None
    ) -> None:
        self.head(status, len(content), extra)
        self.wfile.write(content)

    def json(
        self, status: int, value: object, extra: dict[str, str] | None = None
    ) -> None:
        self.send(status, json.dumps(value).encode(), extra)


def random_faults(
    share: float, seed: int = 0, kinds: tuple[str, ...] = TRANSIENT
) -> Callable:
    """A plan that fails a share of requests, with every kind in turn."""
    dice = random.Random(seed)
    turn = itertools.cycle(kinds)
    return lambda number, body: next(turn) if dice.random() < share else None
