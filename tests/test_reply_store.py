"""The reply store: what is part of a key, what survives, what is refused."""

import json
import sqlite3

import pytest

from lib.cpdscore.reply_store import (
    Attempt,
    Job,
    MissingReplies,
    Reply,
    ReplyStore,
    Request,
    StoreError,
    export_jsonl,
    import_jsonl,
)


def request(text: str = "Rate this.", **changes) -> Request:
    fields = {"model": "m", "messages": (("user", text),), "parameters": {"temperature": 1}}
    return Request(**(fields | changes))


@pytest.fixture
def store(tmp_path):
    with ReplyStore(tmp_path / "replies.sqlite") as one:
        yield one


def put(store: ReplyStore, one: Request, sample: int = 0, text: str = "4") -> None:
    store.add_requests([one])
    store.record(one.key, [sample], Attempt("ok", 200), [Reply(sample, "ok", text, "stop")])


@pytest.mark.parametrize(
    "other",
    [
        request(model="m2"),
        request(parameters={"temperature": 0}),
        request(parameters={"temperature": 1, "seed": 1}),
        request("Rate this!"),
        request(messages=(("system", "Rate this."),)),
    ],
)
def test_any_change_of_what_is_sent_misses_the_store(store, other):
    put(store, request())
    assert store.get(request().key).text == "4"
    assert store.get(other.key) is None


def test_another_sample_index_misses_the_store(store):
    put(store, request(), 0)
    assert [job.sample for job in store.missing([Job(request(), s) for s in range(3)])] == [1, 2]


def test_labels_and_parameter_order_are_not_part_of_the_key():
    one = request(parameters={"temperature": 1, "seed": 2}, labels={"variant": "x"})
    two = request(parameters={"seed": 2, "temperature": 1})
    assert one.key == two.key


def test_key_is_the_documented_hash_of_canonical_json():
    import hashlib

    body = {
        "key_version": 1,
        "messages": [{"content": "né😀", "role": "user"}],
        "model": "m",
        "temperature": 1,
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert request("né😀").key == hashlib.sha256(text.encode("utf-8")).hexdigest()


@pytest.mark.parametrize("name", ["n", "stream", "model", "messages"])
def test_transport_may_not_pose_as_a_parameter(name):
    with pytest.raises(ValueError, match=name):
        request(parameters={name: 1})


def test_the_same_prompt_three_times_is_three_rows(store):
    for sample in range(3):
        put(store, request(), sample, str(sample))
    assert [reply.text for reply in store.replies([request().key]).values()] == ["0", "1", "2"]


def test_a_reply_that_is_there_stays(store):
    put(store, request(), 0, "first")
    put(store, request(), 0, "second")
    assert store.get(request().key).text == "first"
    assert len(store.attempts(request().key)) == 2  # both calls are on record


def test_duplicates_in_the_job_list_are_one_job(store):
    assert len(store.missing([Job(request()), Job(request()), Job(request("b"))])) == 2


def test_text_comes_back_to_the_letter(store):
    text = 'né😀 {braces} "quotes"\nline\x00two'
    put(store, request(text), 0, text)
    assert store.get(request(text).key).text == text
    assert store.request(request(text).key)["body"]["messages"][0]["content"] == text


def test_replay_with_a_missing_key_lists_it(store):
    put(store, request())
    with pytest.raises(MissingReplies, match="mode='live'") as caught:
        store.require([Job(request(), 0), Job(request(), 1)])
    assert [job.sample for job in caught.value.jobs] == [1]


def test_a_store_with_another_key_version_is_refused(tmp_path):
    path = tmp_path / "old.sqlite"
    ReplyStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '0' WHERE name = 'key_version'")
    with pytest.raises(StoreError, match="key version 0"):
        ReplyStore(path)


def test_a_full_disk_is_a_clear_stop_and_the_store_stays_intact(tmp_path):
    path = tmp_path / "small.sqlite"
    with ReplyStore(path) as store:
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 8}")
        kept = 0
        with pytest.raises(StoreError, match="full.*free some space"):
            for number in range(1000):
                put(store, request(str(number)), 0, "x" * 500)
                kept += 1
        assert 0 < kept < 1000
    with ReplyStore(path) as store:
        store.check()
        assert store.counts()["ok"] == kept


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "bad.sqlite"
    path.write_bytes(b"this is no database, but it is long enough to be read as one" * 40)
    with pytest.raises(StoreError, match="bad.sqlite"):
        ReplyStore(path)


@pytest.mark.parametrize("with_requests", [True, False])
def test_jsonl_round_trip(store, tmp_path, with_requests):
    put(store, request("né\n"), 0, "4")
    put(store, request("né\n"), 1, "5")
    store.record(request("b").key, [0], Attempt("refused", 400), [Reply(0, "failed", refusal="no")])
    store.add_requests([request("b")])
    store.set_meta("synthetic", "by hand")
    path = tmp_path / "replies.jsonl"
    assert export_jsonl(store, path, requests=with_requests) == 3
    with ReplyStore(":memory:") as other:
        assert import_jsonl(other, path) == 3
        assert other.get(request("né\n").key, 1).text == "5"
        assert other.get(request("b").key).refusal == "no"
        assert other.meta("synthetic") == "by hand"
        assert (other.request(request("b").key) is not None) == with_requests


def test_an_export_may_be_limited_to_some_requests(store, tmp_path):
    put(store, request("a"), 0, "4")
    put(store, request("b"), 0, "5")
    assert export_jsonl(store, tmp_path / "b.jsonl", keys=[request("b").key]) == 1
    with ReplyStore(":memory:") as other:
        import_jsonl(other, tmp_path / "b.jsonl")
        assert [other.get(request(name).key) is None for name in "ab"] == [True, False]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{}"], "line 1"),
        (['{"key_version": 1}', "not json"], "line 2: not JSON"),
        (['{"key_version": 1}', '{"key": "a"}'], "line 2: needs key, model"),
        ([], "line 1"),
    ],
)
def test_a_bad_jsonl_file_is_refused_with_its_line(tmp_path, lines, message):
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(lines))
    with ReplyStore(":memory:") as store, pytest.raises(StoreError, match=message):
        import_jsonl(store, path)


def test_claims_keep_another_process_off_a_job_and_end_with_the_process(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "shared.sqlite"
    program = (
        "import sys; from lib.cpdscore.reply_store import ReplyStore; s = ReplyStore(sys.argv[1]);"
        "print(s.claim(sys.argv[2], 0), flush=True); sys.stdin.read()"
    )
    key = request().key
    with ReplyStore(path) as store:
        other = subprocess.Popen(
            [sys.executable, "-c", program, path, key],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert other.stdout.readline().strip() == "True"
        assert not store.claim(key, 0)
        assert store.claim(key, 1)
        other.kill()  # SIGKILL: nothing is cleaned up by the program itself
        other.wait(10)
        assert store.claim(key, 0)
        store.release(key, 0)
    other.stdin.close()
    other.stdout.close()
