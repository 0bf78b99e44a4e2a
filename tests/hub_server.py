"""A model hub on the loopback address: the few addresses of the real one that a download asks."""

import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lib.models import CHECKPOINTS, PACKAGED

COMMIT = "0" * 40  # of the branch main; another revision is a commit itself
PIECE = 65_536  # bytes sent at a time


class HubServer:
    """Serves the folders `root/<owner>/<name>` as repositories, whatever revision is asked for.

    Attributes:
        sent: bytes that each file was sent with, over all requests, by "owner/name/file".
        pause: seconds between pieces of a file of weights.
    """

    def __init__(self, root: Path, pause: float = 0.0):
        self.root = Path(root)
        self.sent = {}
        self.pause = pause
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *given):
                pass

            def do_HEAD(self):
                hub.answer(self, body=False)

            def do_GET(self):
                hub.answer(self, body=True)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request, body: bool) -> None:
        parts = unquote(urlsplit(request.path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self.describe(request, "/".join(parts[2:4]), *parts[4:6])
        elif len(parts) < 5:
            self.reply(request, 404, b"{}", {})
        else:
            name = "/".join(parts[:2])
            self.send_file(request, name, parts[4], revision=parts[3], body=body)

    def describe(self, request, name: str, kind: str = "", revision="main") -> None:
        folder = self.root / name
        if not folder.is_dir():
            self.reply(request, 404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        files = sorted(file for file in folder.iterdir() if file.is_file())
        if kind == "tree":
            answer = []
            for file in files:
                size = file.stat().st_size
                answer.append({"type": "file", "path": file.name, "size": size})
                answer[-1]["oid"] = hashlib.sha1(file.read_bytes()).hexdigest()
        else:
            siblings = [{"rfilename": file.name} for file in files]
            answer = {"id": name, "modelId": name, "siblings": siblings}
            answer["sha"] = commit_of(revision)
        self.reply(request, 200, json.dumps(answer).encode(), {})

    def send_file(self, request, name: str, file: str, revision: str, body: bool):
        path = self.root / name / file
        if not path.is_file():
            self.reply(request, 404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = path.read_bytes()
        headers = {
            "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Repo-Commit": commit_of(revision),
            "Accept-Ranges": "bytes",
        }
        status = 200
        asked = request.headers.get("Range")
        if asked and body:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = (
                f"bytes {start}-{len(content) - 1}/{len(content)}"
            )
            content = content[start:]
            status = 206
        request.send_response(status)
        for key, value in {**headers, "Content-Length": len(content)}.items():
            request.send_header(key, str(value))
        request.end_headers()
        if not body:
            return
        slow = file.endswith((".safetensors", ".bin"))
        for start in range(0, len(content), PIECE):
            piece = content[start : start + PIECE]
            try:
                request.wfile.write(piece)
            except OSError:  # the client is gone
                return
            key = f"{name}/{file}"
            self.sent[key] = self.sent.get(key, 0) + len(piece)
            if slow and self.pause:
                time.sleep(self.pause)

    def reply(self, request, status: int, content: bytes, headers: dict) -> None:
        request.send_response(status)
        for key, value in {**headers, "Content-Length": len(content)}.items():
            request.send_header(key, str(value))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(content)


def commit_of(revision: str) -> str:
    return COMMIT if revision == "main" else revision


def without_checksums() -> dict:
    """The rows of the table of models whose weights may be any: tiny ones stand in for them."""
    hub_ids = set(CHECKPOINTS) - set(PACKAGED)
    return {
        name: CHECKPOINTS[name]._replace(weights_sha256="unknown") for name in hub_ids
    }


def use_hub(monkeypatch, hub: HubServer, cache: Path) -> None:
    """Let this process ask a hub, and keep what it downloads in a folder of its own."""
    constants = "huggingface_hub.constants"
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(f"{constants}.ENDPOINT", hub.endpoint)
    monkeypatch.setattr(f"{constants}.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(f"{constants}.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(f"{constants}.HF_HUB_OFFLINE", False)
    for name, row in without_checksums().items():
        monkeypatch.setitem(CHECKPOINTS, name, row)
