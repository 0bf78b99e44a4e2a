"""The reply store: what is part of a key, what survives, what is refused."""

import hashlib
import json
import sqlite3
import subprocess
import sys

import pandas as pd
import pytest

from lib.cpdscore.reply_store import (
    Job,
    MissingReplies,
    Reply,
    ReplyStore,
    Request,
    StoreError,
    import_replies,
)
from scripts.ask_judges import export_replies


def request(text: str = "Rate this.", **changes) -> Request:
    fields = {
        "model": "m",
        "messages": (("user", text),),
        "parameters": {"temperature": 1},
    }
    return Request(**(fields | changes))


def put(store: ReplyStore, one: Request, sample: int = 0, text: str = "4") -> None:
    store.add_requests([one])
    (call,) = store.claim([Job(one, sample)])
    store.complete({call: Reply("ok", text, "stop")})


def get(store: ReplyStore, one: Request, sample: int = 0) -> Reply | None:
    return store.replies([one.key]).get((one.key, sample))


def test_key_is_the_documented_hash_of_canonical_json():
    """Whatever the order of parameters; labels are no part of it."""
    body = {
        "key_version": 1,
        "messages": [{"content": "né😀", "role": "user"}],
        "model": "m",
    }
    body |= {"seed": 2, "temperature": 1}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    one = request(
        "né😀", parameters={"temperature": 1, "seed": 2}, labels={"variant": "x"}
    )
    assert one.key == hashlib.sha256(text.encode("utf-8")).hexdigest()


@pytest.mark.parametrize("name", ["n", "stream", "model", "messages"])
def test_transport_may_not_pose_as_a_parameter(name):
    with pytest.raises(ValueError, match=name):
        request(parameters={name: 1})


def test_replay_with_a_missing_key_says_what_is_missing(store):
    put(store, request())
    with pytest.raises(
        MissingReplies, match=f"^1 replies.*{request().key[:12]}#1.*mode='live'"
    ):
        store.require([Job(request(), 0), Job(request(), 1)])


def test_a_store_with_another_key_version_is_refused(tmp_path):
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(StoreError, match="key version 7"):
        ReplyStore(path)


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "bad.sqlite"
    path.write_bytes(
        b"this is no database, but it is long enough to be read as one" * 40
    )
    with pytest.raises(StoreError, match="bad.sqlite"):
        ReplyStore(path)


def test_what_is_asked_and_published_comes_back_to_the_letter(store, tmp_path):
    text = 'né😀 {braces} "quotes"\nline\x00two'
    put(store, request(text), 0, text[::-1])
    put(store, request(text), 1, "5")
    assert store.body(request(text).key)["messages"][0]["content"] == text
    store.add_requests([request("b")])
    call, under_way = store.claim([Job(request("b"), 0), Job(request("b"), 1)])
    store.complete(
        {call: Reply("failed", reason="no", digit_probabilities="[]", ms=2.5)}
    )
    path = tmp_path / "replies.parquet"
    assert export_replies(store, path, {"licence": "MIT"}) == 3
    with ReplyStore(":memory:") as other:
        assert import_replies(other, path)["licence"] == "MIT"
        assert get(other, request(text)) == Reply("ok", text[::-1], "stop")
        assert get(other, request("b")) == Reply(
            "failed", reason="no", digit_probabilities="[]", ms=2.5
        )
    assert "né" not in pd.read_parquet(path).drop(columns="key").to_string()


def test_a_file_with_other_keys_is_refused(store, tmp_path):
    export_replies(store, tmp_path / "bad.parquet", {"key_version": 7})
    with pytest.raises(StoreError, match="bad.parquet: key version 7"):
        import_replies(store, tmp_path / "bad.parquet")


@pytest.mark.parametrize("reasks", [0, 2])
def test_an_answer_that_cannot_be_used_is_final_after_a_number_of_others(store, reasks):
    job = Job(request())
    for _ in range(reasks + 1):
        assert store.missing([job])
        (call,) = store.claim([job])
        store.complete({call: Reply("truncated", "- Hum")}, reasks)
    assert store.missing([job]) == []


OLD_LAYOUT = """
CREATE TABLE request (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, body TEXT NOT NULL, labels TEXT NOT NULL);
CREATE TABLE call (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, sample INTEGER NOT NULL, holds INTEGER NOT NULL,
    status, text, finish_reason, reason, http, request_id, ms, usage, body, base_url, fingerprint,
    marks, batch);
CREATE UNIQUE INDEX place ON call (key, sample) WHERE holds;
PRAGMA user_version = 1;
"""


def old_store(path, status: str, batch: str | None) -> None:
    """A store as written at e44df49, with one call."""
    with sqlite3.connect(path) as db:
        db.executescript(OLD_LAYOUT)
        call = (request().key, 0, 1, status, "4", "[]", '{"prompt_tokens": 7}', batch)
        columns = "key, sample, holds, status, text, marks, usage, batch"
        db.execute(
            f"INSERT INTO call ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", call
        )
    db.close()


def test_a_store_of_the_earlier_layout_is_brought_up_to_date(tmp_path):
    path = tmp_path / "old.sqlite"
    old_store(path, "ok", "batch-0")
    for _ in range(2):
        with ReplyStore(path) as store:
            assert get(store, request()) == Reply(
                "ok", "4", usage='{"prompt_tokens": 7}', digit_probabilities="[]"
            )
            assert store.spent() == {"prompt_tokens": 7, "completion_tokens": 0}
            assert store.missing([Job(request(), 0), Job(request(), 1)]) == [
                Job(request(), 1)
            ]
    with ReplyStore(path) as store:
        put(store, request(), 1, "5")
        assert get(store, request(), 1).text == "5"


def test_a_store_whose_replies_are_with_the_batch_api_is_refused(tmp_path):
    path = tmp_path / "old.sqlite"
    old_store(path, "asked", "batch-7")
    with pytest.raises(
        StoreError, match="old.sqlite: batch-7 is still with the Batch API"
    ):
        ReplyStore(path)


ASK = """
import sys
from lib.cpdscore.reply_store import ReplyStore
with ReplyStore(sys.argv[1]) as store, store.asking():
    print("asking", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_may_ask_and_a_killed_one_leaves_no_lock(store):
    """A second store on the file, when closed, once dropped every lock of its process."""
    first, second = (
        subprocess.Popen([sys.executable, "-c", ASK, store.path], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    )  # fmt: skip
    lines = [first.stdout.readline(), second.stdout.readline()]
    asking, refused = (first, second) if lines[0] else (second, first)
    assert sorted(lines) == ["", "asking\n"]
    assert "another run is asking" in refused.communicate()[1]
    with pytest.raises(StoreError, match="another run is asking"), store.asking():
        pass
    asking.kill()  # SIGKILL: nothing is cleaned up by the program itself
    asking.communicate(timeout=10)
    with store.asking():
        ReplyStore(store.path).close()
        with (
            pytest.raises(StoreError, match="another run"),
            ReplyStore(store.path).asking(),
        ):
            pass


def test_what_a_killed_run_had_under_way_is_free_again_and_on_the_bill(store):
    job = Job(request())
    (lost,) = store.claim([job], '{"prompt_tokens": 7, "completion_tokens": 5}')
    with pytest.raises(StoreError):
        store.claim([job])
    with store.asking():
        assert store.claim([job]) != [lost]
    assert (
        sum(store.spent().values()) == 12
    )  # it may have been answered, and is on the bill
