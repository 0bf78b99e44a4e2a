"""Downloads against a local server that drops connections, ignores ranges or serves wrong bytes."""

import hashlib
import http.server
import os
import threading

import pytest
import small_corpora as small

from lib.data import corpora
from lib.data.corpora import downloads, registry, resume
from lib.data.dialogues import DataError

BODY = bytes(range(256)) * 2000


class Host(http.server.BaseHTTPRequestHandler):
    """Serves BODY; the server object says how it misbehaves and keeps the requested ranges."""

    def do_GET(self):
        plan = self.server.plan
        self.server.ranges.append(self.headers.get("Range"))
        if plan.get("status"):
            return self.send_error(plan["status"].pop(0)) if plan["status"] else self._serve(plan)
        return self._serve(plan)

    def _serve(self, plan):
        start = 0
        if self.headers.get("Range") and not plan.get("no_ranges"):
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            if start >= len(BODY):
                return self.send_error(416)
        body = plan.get("body", BODY)[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        drop = plan["drops"].pop(0) if plan.get("drops") else None
        self.wfile.write(body[:drop])
        if drop is not None:
            self.close_connection = True
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def host():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
    server.plan, server.ranges = {}, []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/file.bin"
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def entry(host, tmp_path, monkeypatch):
    """A registry of one file at the local host, and an empty data folder."""
    entry = {"set": "s", "url": host.url, "bytes": len(BODY), "sha256": sha(BODY), "rows": None}
    known = {"files": {"s/file.bin": entry}, "sets": {}, "corpora": {}, "tables": {}}
    monkeypatch.setattr(registry, "registry", lambda: known)
    monkeypatch.setattr(resume.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path))
    return entry


def sha(raw):
    return hashlib.sha256(raw).hexdigest()


def test_download_lands_in_the_folder_and_is_not_repeated(entry, host, tmp_path):
    path = corpora.path("s/file.bin")
    assert path == tmp_path / "s/file.bin" and path.read_bytes() == BODY
    corpora.path("s/file.bin")
    assert host.ranges == [None]
    assert [p.name for p in (tmp_path / "s").iterdir()] == ["file.bin"]


def test_dropped_connections_go_on_from_the_byte_reached(entry, host):
    host.plan["drops"] = [6 * resume.CHUNK, 4 * resume.CHUNK, 5]
    assert corpora.path("s/file.bin").read_bytes() == BODY
    starts = [f"bytes={chunks * resume.CHUNK}-" for chunks in (6, 10, 10)]
    assert host.ranges == [None, *starts]


def test_what_arrived_is_kept_for_the_next_run(entry, host, tmp_path):
    reached = 6 * resume.CHUNK
    host.plan["drops"] = [reached, 0, 0, 0]
    with pytest.raises(DataError) as caught:
        corpora.path("s/file.bin")
    assert f"{reached} bytes are kept" in str(caught.value) and entry["url"] in str(caught.value)
    assert (tmp_path / "s/file.bin.part").stat().st_size == reached
    assert not (tmp_path / "s/file.bin").exists()
    assert corpora.path("s/file.bin").read_bytes() == BODY
    assert host.ranges[-1] == f"bytes={reached}-"


def test_a_host_without_ranges_starts_from_zero(entry, host, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s/file.bin.part").write_bytes(b"old bytes")
    host.plan["no_ranges"] = True
    assert corpora.path("s/file.bin").read_bytes() == BODY


def test_a_part_longer_than_the_file_is_dropped(entry, host, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s/file.bin.part").write_bytes(BODY + b"more")
    assert corpora.path("s/file.bin").read_bytes() == BODY
    assert host.ranges == [f"bytes={len(BODY) + 4}-", None]


def test_wrong_bytes_are_never_kept(entry, host, tmp_path):
    host.plan["body"] = BODY[:-1] + b"!"
    with pytest.raises(DataError, match=f"does not have the SHA-256 {entry['sha256']}"):
        corpora.path("s/file.bin")
    assert list((tmp_path / "s").iterdir()) == []


def test_a_server_error_is_tried_again_but_not_a_missing_file(entry, host):
    host.plan["status"] = [503, 503]
    assert corpora.path("s/file.bin").read_bytes() == BODY
    downloads.find("s/file.bin").unlink()
    host.ranges.clear()
    host.plan["status"] = [404, 404, 404]
    with pytest.raises(DataError, match="404"):
        corpora.path("s/file.bin")
    assert len(host.ranges) == 1


def test_no_network_says_what_to_do(entry, tmp_path):
    entry["url"] = "http://127.0.0.1:9/file.bin"  # nothing listens there
    with pytest.raises(DataError) as caught:
        corpora.path("s/file.bin")
    for words in [
        str(tmp_path / "s/file.bin"),
        "no lasting connection",
        "DIALOGUE_DATA_DIR",
        "fetch http",
    ]:
        assert words in str(caught.value)


def test_a_damaged_file_is_named_with_both_checksums(entry, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s/file.bin").write_bytes(BODY[:-1])
    with pytest.raises(DataError) as caught:
        corpora.path("s/file.bin")
    for words in [str(tmp_path / "s/file.bin"), sha(BODY[:-1]), entry["sha256"], "delete it"]:
        assert words in str(caught.value)


def test_a_changed_file_is_checked_again(entry, tmp_path):
    corpora.path("s/file.bin")
    file = tmp_path / "s/file.bin"
    file.write_bytes(BODY[::-1])  # same size
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    with pytest.raises(DataError, match="another version"):
        corpora.path("s/file.bin")


def test_checksum_is_computed_once_per_state(entry, monkeypatch):
    path = corpora.path("s/file.bin")
    counted = []
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: counted.append(a))
    assert downloads.sha256(path) == sha(BODY)
    assert counted == []


def test_a_folder_that_is_not_there_is_not_invented(entry, tmp_path, monkeypatch):
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path / "typo"))
    with pytest.raises(DataError, match="which is not a folder"):
        corpora.path("s/file.bin")
    assert not (tmp_path / "typo").exists()


def test_without_the_variable_the_user_cache_is_used(entry, tmp_path, monkeypatch):
    monkeypatch.delenv("DIALOGUE_DATA_DIR")
    monkeypatch.setattr(downloads.pooch, "os_cache", lambda name: str(tmp_path / "cache" / name))
    path = corpora.path("s/file.bin")
    assert path == tmp_path / "cache/dialogue-evaluation-notebooks/s/file.bin"


def test_unknown_file_suggests_a_key(entry):
    with pytest.raises(DataError, match="did you mean 's/file.bin'"):
        corpora.path("s/file.bn")


def test_upstream_form_is_downloaded_verified_and_preferred_less(entry, host, tmp_path):
    entry |= {"sha256": sha(b"subset"), "upstream": {"key": "s/full.bin", "sha256": sha(BODY)}}
    assert corpora.path("s/file.bin") == tmp_path / "s/full.bin"
    (tmp_path / "s/full.bin").write_bytes(b"damaged")
    with pytest.raises(DataError, match=f"expected {sha(BODY)}"):
        corpora.path("s/file.bin")
    (tmp_path / "s/file.bin").write_bytes(b"subset")
    assert corpora.path("s/file.bin") == tmp_path / "s/file.bin"


def test_an_archive_packed_anew_is_verified_by_its_content(entry, tmp_path, monkeypatch):
    small.reddit_college(tmp_path, full=True)
    packed = tmp_path / "reddit_college/reddit-college-86b4acb-subset.tar.gz"
    content = downloads.content_sha256(packed, ["Emory/"])
    entry["upstream"] = {"key": str(packed.relative_to(tmp_path)), "sha256": None,
                         "content": ["Emory/"], "content_sha256": content}  # fmt: skip
    assert corpora.path("s/file.bin") == packed
    pin = packed.with_name(packed.name + ".sha256")
    assert pin.read_text().split() == [downloads.sha256(packed), packed.name]
    monkeypatch.setattr(downloads, "content_sha256", None)  # pinned: not needed again
    assert corpora.path("s/file.bin") == packed
    monkeypatch.undo()
    monkeypatch.setattr(registry, "registry", lambda: {"files": {"s/file.bin": entry}})
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path))
    small.reddit_college(tmp_path)  # other packing, same folder inside
    assert corpora.path("s/file.bin") == packed
    small.tar(packed, {"top/dat/Emory/Emory-1-s1.json": b"{}"})
    with pytest.raises(DataError, match=f"expected {content}"):
        corpora.path("s/file.bin")
    packed.write_bytes(packed.read_bytes()[:40])
    with pytest.raises(DataError, match="not a complete archive"):
        corpora.path("s/file.bin")


@pytest.mark.public
def test_registered_content_of_reddit_college_is_that_of_the_subset():
    key = "reddit_college/reddit-college-86b4acb-subset.tar.gz"
    upstream = registry.file_entry(key)["upstream"]
    found = downloads.content_sha256(downloads.path(key), upstream["content"])
    assert found == upstream["content_sha256"]
