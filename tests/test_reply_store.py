"""The reply store: what is part of a key, what survives, what is refused."""

import hashlib
import json
import sqlite3
import subprocess
import sys

import pytest

from lib.cpdscore import reply_store
from lib.cpdscore.reply_store import (
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
    (call,) = store.claim([(one.key, sample)]).values()
    store.complete({call: Reply("ok", text, "stop")})


def get(store: ReplyStore, one: Request, sample: int = 0) -> Reply | None:
    return store.replies([one.key]).get((one.key, sample))


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
    assert get(store, request()).text == "4"
    assert get(store, other) is None


def test_labels_and_parameter_order_are_not_part_of_the_key():
    one = request(parameters={"temperature": 1, "seed": 2}, labels={"variant": "x"})
    two = request(parameters={"seed": 2, "temperature": 1})
    assert one.key == two.key


def test_key_is_the_documented_hash_of_canonical_json():
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


def test_the_same_prompt_three_times_is_three_replies_and_duplicates_are_one_job(store):
    for sample in range(3):
        put(store, request(), sample, str(sample))
    assert [reply.text for reply in store.replies([request().key]).values()] == ["0", "1", "2"]
    jobs = [Job(request(), sample) for sample in (2, 3, 4, 3)]
    assert [job.sample for job in store.missing(jobs)] == [3, 4]


def test_a_reply_that_is_there_stays_whoever_answers_later(store, monkeypatch):
    monkeypatch.setattr(reply_store, "LEASE_S", 0.0)
    place = (request().key, 0)
    late, quick = (store.claim([place])[place] for _ in range(2))  # the first lease ran out
    assert store.complete({quick: Reply("ok", "first")}) == 1
    store.complete({late: Reply("ok", "second")})
    assert get(store, request()).text == "first" and store.claim([place]) == {}
    assert len(store.rows("SELECT id FROM call WHERE text NOT NULL")) == 2  # both are on record


def test_text_comes_back_to_the_letter(store):
    text = 'né😀 {braces} "quotes"\nline\x00two'
    put(store, request(text), 0, text)
    assert get(store, request(text)).text == text
    assert store.body(request(text).key)["messages"][0]["content"] == text


def test_replay_with_a_missing_key_lists_it(store):
    put(store, request())
    with pytest.raises(MissingReplies, match="mode='live'") as caught:
        store.require([Job(request(), 0), Job(request(), 1)])
    assert [job.sample for job in caught.value.jobs] == [1]


def test_a_store_with_another_key_version_is_refused(tmp_path):
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(StoreError, match="key version 7"):
        ReplyStore(path)


def test_a_full_disk_is_a_clear_stop_and_the_store_stays_intact(tmp_path):
    path = tmp_path / "small.sqlite"
    with ReplyStore(path) as store:
        pages = store.rows("PRAGMA page_count")[0][0]
        store.rows(f"PRAGMA max_page_count = {pages + 8}")
        kept = 0
        with pytest.raises(StoreError, match="full.*free some space"):
            for number in range(1000):
                put(store, request(str(number)), 0, "x" * 500)
                kept += 1
        assert 0 < kept < 1000
    with ReplyStore(path) as store:
        assert store.rows("PRAGMA integrity_check") == [("ok",)]
        assert len(store.rows("SELECT id FROM call WHERE status = 'ok'")) == kept


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "bad.sqlite"
    path.write_bytes(b"this is no database, but it is long enough to be read as one" * 40)
    with pytest.raises(StoreError, match="bad.sqlite"):
        ReplyStore(path)


def test_jsonl_round_trip(store, tmp_path):
    put(store, request("né\n"), 0, "4")
    put(store, request("né\n"), 1, "5")
    store.add_requests([request("b")])
    (call,) = store.claim([(request("b").key, 0)]).values()
    store.complete({call: Reply("failed", reason="no")})
    assert store.claim([(request("b").key, 1)])  # under way: no reply
    path = tmp_path / "replies.jsonl"
    assert export_jsonl(store, path, "by hand") == 3 and "né" not in path.read_text()
    with ReplyStore(":memory:") as other:
        assert import_jsonl(other, path) == 3
        assert get(other, request("né\n"), 1).text == "5"
        assert get(other, request("b")).reason == "no"
        assert other.synthetic == "by hand" and store.synthetic is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{}"], "line 1"),
        (['{"key_version": 2}'], "line 1: no replies with key version 1"),
        (['{"key_version": 1}', "not json"], "line 2"),
        (['{"key_version": 1}', '{"key": "a"}'], "line 2.*replies"),
    ],
)
def test_a_bad_jsonl_file_is_refused_with_its_line(tmp_path, lines, message):
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(lines))
    with ReplyStore(":memory:") as store, pytest.raises(StoreError, match=message):
        import_jsonl(store, path)


CLAIM = """
import sys
from lib.cpdscore.reply_store import ReplyStore
with ReplyStore(sys.argv[1]) as store:
    print(len(store.claim([(sys.argv[2], 0)])), flush=True)
    sys.stdin.read()
"""


def test_a_claim_keeps_others_off_and_ends_with_the_signs_of_life(tmp_path, monkeypatch):
    path, place = tmp_path / "shared.sqlite", (request().key, 0)
    command = [sys.executable, "-c", CLAIM, path, place[0]]
    with ReplyStore(path) as store:
        other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout.readline().strip() == "1"
        assert store.claim([place]) == {}
        assert store.claim([(place[0], 1)]) != {}
        other.kill()  # SIGKILL: nothing is cleaned up by the program itself
        other.communicate(timeout=10)
        assert store.claim([place]) == {}
        store.renew()  # its own calls only
        monkeypatch.setattr(reply_store, "LEASE_S", 0.0)
        assert store.claim([place]) != {}


def test_a_second_store_on_the_file_leaves_the_claims_of_the_first_alone(store):
    place = (request().key, 0)
    assert store.claim([place])
    ReplyStore(store.path).close()  # once dropped every lock that this process held on the file
    command = [sys.executable, "-c", CLAIM, store.path, place[0]]
    assert subprocess.run(command, input="", capture_output=True, text=True).stdout.strip() == "0"
