"""Downloads against a local server that fails or serves wrong bytes."""

import hashlib
import http.server
import threading

import pooch
import pytest
import small_corpora as small

from lib.data import DataError, storage

BODY = bytes(range(256)) * 2000


class Host(http.server.BaseHTTPRequestHandler):
    """Serves the body of the server object, after the failures in its list."""

    def do_GET(self):
        self.server.requests += 1
        failure = next(self.server.failures, None)
        if isinstance(failure, int):
            self.send_error(failure)
            return
        body = self.server.body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if failure == "drop":
            body = body[:1000]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def host():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
    server.failures = iter([])
    server.requests = 0
    server.body = BODY
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/file.bin"
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def entry(host, tmp_path, monkeypatch):
    """A registry of one file at the local host, and an empty data folder."""
    entry = {
        "set": "s",
        "url": host.url,
        "bytes": len(BODY),
        "sha256": sha(BODY),
        "rows": None,
    }
    registry = {"files": {"s/file.bin": entry}, "sets": {}, "corpora": {}, "tables": {}}
    monkeypatch.setattr(storage, "registry", lambda: registry)
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path))
    return entry


def sha(content):
    return hashlib.sha256(content).hexdigest()


def test_download_lands_in_the_folder_and_is_not_repeated(entry, host, tmp_path):
    path = storage.fetch_file("s/file.bin")
    assert path == tmp_path / "s/file.bin"
    assert path.read_bytes() == BODY
    storage.fetch_file("s/file.bin")
    assert host.requests == 1
    assert [file.name for file in (tmp_path / "s").iterdir()] == ["file.bin"]


@pytest.mark.parametrize("failures", [["drop"], [503, 503], ["drop", 503, "drop"]])
def test_a_failed_download_is_tried_again(failures, entry, host):
    host.failures = iter(failures)
    assert storage.fetch_file("s/file.bin").read_bytes() == BODY
    assert host.requests == len(failures) + 1


@pytest.mark.parametrize("has_network", [False, True])
def test_no_network_and_no_such_page_say_what_to_do(has_network, entry, host, tmp_path):
    host.failures = iter([404] * 9)
    if not has_network:
        entry["url"] = "http://127.0.0.1:9/file.bin"  # nothing listens there
    with pytest.raises(DataError) as caught:
        storage.fetch_file("s/file.bin")
    message = str(caught.value)
    assert str(tmp_path / "s/file.bin") in message
    assert "cannot be downloaded" in message
    assert "DIALOGUE_DATA_DIR" in message
    assert f"fetch {entry['url']}" in message
    assert ("404" in message) == has_network


def test_a_damaged_file_is_named_and_never_overwritten(entry, host, tmp_path):
    host.body = BODY[:-1] + b"!"  # wrong bytes are never kept
    with pytest.raises(DataError, match=entry["sha256"]):
        storage.fetch_file("s/file.bin")
    assert list((tmp_path / "s").iterdir()) == []
    host.body = BODY
    storage.fetch_file("s/file.bin")
    file = tmp_path / "s/file.bin"
    requests = host.requests
    file.write_bytes(BODY[::-1])  # changed after it was verified, in the same size
    with pytest.raises(DataError, match="delete it") as caught:
        storage.fetch_file("s/file.bin")
    assert str(file) in str(caught.value)
    assert file.read_bytes() == BODY[::-1]
    assert host.requests == requests


def test_a_folder_that_is_not_there_is_not_invented(entry, tmp_path, monkeypatch):
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path / "typo"))
    with pytest.raises(DataError, match="which is not a folder"):
        storage.fetch_file("s/file.bin")
    assert not (tmp_path / "typo").exists()


def test_without_the_variable_the_user_cache_is_used(entry, tmp_path, monkeypatch):
    monkeypatch.delenv("DIALOGUE_DATA_DIR")
    monkeypatch.setattr(pooch, "os_cache", lambda name: str(tmp_path / "cache" / name))
    path = storage.fetch_file("s/file.bin")
    assert path == tmp_path / "cache/dialogue-evaluation-notebooks/s/file.bin"


def test_upstream_form_is_downloaded_verified_and_preferred_less(entry, host, tmp_path):
    entry |= {
        "sha256": sha(b"subset"),
        "upstream": {"key": "s/full.bin", "sha256": sha(BODY)},
    }
    assert storage.fetch_file("s/file.bin") == tmp_path / "s/full.bin"
    (tmp_path / "s/full.bin").write_bytes(b"damaged")
    with pytest.raises(DataError, match="damaged"):
        storage.fetch_file("s/file.bin")
    (tmp_path / "s/file.bin").write_bytes(b"subset")
    assert storage.fetch_file("s/file.bin") == tmp_path / "s/file.bin"


def test_an_archive_packed_anew_is_verified_by_its_content(entry, tmp_path):
    small.reddit_college(tmp_path, full=True)
    packed = tmp_path / "reddit_college/reddit-college-86b4acb-subset.tar.gz"
    content = storage.content_sha256(packed, ["Emory/"])
    entry["upstream"] = {
        "key": str(packed.relative_to(tmp_path)),
        "sha256": None,
        "content": ["Emory/"],
        "content_sha256": content,
    }
    assert storage.fetch_file("s/file.bin") == packed
    small.reddit_college(tmp_path)  # other packing, same folder inside
    assert storage.fetch_file("s/file.bin") == packed
    small.tar(packed, {"top/dat/Emory/Emory-1-s1.json": b"{}"})
    with pytest.raises(DataError, match="not that of the registered commit"):
        storage.fetch_file("s/file.bin")
    packed.write_bytes(packed.read_bytes()[:40])
    with pytest.raises(DataError, match="damaged"):
        storage.fetch_file("s/file.bin")


@pytest.mark.public
def test_registered_content_of_reddit_college_is_that_of_the_subset():
    key = "reddit_college/reddit-college-86b4acb-subset.tar.gz"
    upstream = storage.registry()["files"][key]["upstream"]
    content = storage.content_sha256(storage.fetch_file(key), upstream["content"])
    assert content == upstream["content_sha256"]
