"""A local judge that fails on purpose: standard library only, bound to 127.0.0.1."""

import email.utils
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


def default_reply(body: dict, choice: int) -> str:
    """A mark from 1 to 5 that depends on the prompt only."""
    return f"- Humanness: {1 + sum(map(ord, body['messages'][-1]['content'])) % 5}"


class FaultServer:
    """Answers chat completions and the Batch API; ``plan(number, body)`` names the fault."""

    def __init__(
        self,
        plan: Callable[[int, dict], str | None] = lambda number, body: None,
        latency: float = 0.0,
        reply: Callable[[dict, int], str] = default_reply,
        reply_tokens: int = 6,
    ):
        self.plan, self.latency, self.lock = plan, latency, threading.Lock()
        self.reply, self.reply_tokens = reply, reply_tokens
        self.requests = self.answered = self.sent_tokens = 0
        self.faults: Counter[str] = Counter()
        self.bodies: list[dict] = []
        self.files: dict[str, str] = {}
        self.batches: dict[str, dict] = {}
        self.batch_fate: Callable[[int], str] = lambda line: "ok"
        self.batch_status = "completed"
        self.batch_error: str | None = None  # what a batch that fails as a whole says
        self.http = _Server(("127.0.0.1", 0), _Handler)
        self.http.owner = self
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)

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
        choices = [
            {"index": i, "finish_reason": "stop",
             "message": {"role": "assistant", "content": self.reply(body, i)}}
            for i in range(count)
        ]  # fmt: skip
        prompt = sum(len(message["content"]) for message in body["messages"]) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": self.reply_tokens * count}
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

    def do_GET(self) -> None:
        owner = self.server.owner
        if self.path.startswith("/v1/batches/"):
            self.json(200, owner.batches[self.path.rsplit("/", 1)[1]])
        else:
            self.send(200, owner.files[self.path.split("/")[3]].encode())

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/files":
            return self.store_file(raw)
        if self.path == "/v1/batches":
            return self.make_batch(json.loads(raw))
        body, owner = json.loads(raw), self.server.owner
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
        self.json(200, value)

    def fail(self, fault: str, value: dict) -> None:
        status = fault.split("_")[0]
        if status == "quota":
            told = {"message": "quota", fault.removeprefix("quota_"): "insufficient_quota"}
            return self.json(429, {"error": told})
        if status in ("402", "502"):  # of a gateway, which knows no JSON
            return self.send(int(status), BODIES["html"].encode())
        if fault == "echo_401":
            return self.json(401, {"error": {"message": "bad " + self.headers["Authorization"]}})
        if status.isdigit():
            extra = HEADERS.get(fault)
            if fault == "429_date":
                extra = {"Retry-After": email.utils.formatdate(time.time() + 1, usegmt=True)}
            return self.json(int(status), {"error": {"message": f"planned {status}"}}, extra)
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

    def store_file(self, raw: bytes) -> None:
        """Keep the lines of JSON in a multipart form."""
        name = f"file-{len(self.server.owner.files)}"
        lines = [line for line in raw.decode().splitlines() if line.startswith("{")]
        self.server.owner.files[name] = "\n".join(lines)
        self.json(200, {"id": name})

    def make_batch(self, body: dict) -> None:
        """Answer every line by its planned fate, in shuffled order."""
        owner, good, bad = self.server.owner, [], []
        lines = [json.loads(line) for line in owner.files[body["input_file_id"]].splitlines()]
        for number, line in enumerate(lines):
            fate = owner.batch_fate(number)
            answer = None
            if fate in ("ok", "length"):
                value = owner.completion(line["body"], line["body"].get("n", 1))
                for choice in value["choices"] if fate == "length" else ():
                    choice["finish_reason"] = "length"
                answer = {"status_code": 200, "request_id": f"r{number}", "body": value}
            elif fate != "expired":
                error = {"error": {"message": f"planned {fate}"}}
                answer = {"status_code": int(fate), "request_id": f"r{number}", "body": error}
            # status 0 turns up among the finished lines of a completed batch
            side = good if fate in ("ok", "length", "0") else bad
            side.append({"id": "b", "custom_id": line["custom_id"], "response": answer})
        random.Random(0).shuffle(good)
        name = f"batch-{len(owner.batches)}"
        for kind, content in (("out", good), ("err", bad)):
            owner.files[f"{name}-{kind}"] = "\n".join(map(json.dumps, content))
        owner.batches[name] = {
            "id": name, "status": owner.batch_status, "input_file_id": body["input_file_id"],
            "output_file_id": f"{name}-out", "error_file_id": f"{name}-err" if bad else None,
            "errors": {"data": [{"message": owner.batch_error}]} if owner.batch_error else None,
        }  # fmt: skip
        self.json(200, owner.batches[name])

    def head(self, status: int, length: int, extra: dict[str, str] | None = None) -> None:
        self.send_response(status)
        named = {"Content-Type": "application/json", "Content-Length": str(length)}
        named["x-request-id"] = f"req_{self.server.owner.requests}"
        for name, value in (named | (extra or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, status: int, content: bytes, extra: dict[str, str] | None = None) -> None:
        self.head(status, len(content), extra)
        self.wfile.write(content)

    def json(self, status: int, value: object, extra: dict[str, str] | None = None) -> None:
        self.send(status, json.dumps(value).encode(), extra)


def random_faults(share: float, seed: int = 0, kinds: tuple[str, ...] = TRANSIENT) -> Callable:
    """A plan that fails a share of requests, with every kind in turn."""
    dice, turn = random.Random(seed), iter(range(10**9))
    return lambda number, body: kinds[next(turn) % len(kinds)] if dice.random() < share else None
