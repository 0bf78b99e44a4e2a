"""The judge's runner against a server that fails on purpose: nothing lost, nothing paid in vain."""

import asyncio
import contextlib
import json
import logging
import math
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from fault_server import TRANSIENT, FaultServer, random_faults

from lib import cpdscore
from lib.cpdscore import judge, local, parsing, reply_store, server
from lib.cpdscore.judge import JudgeSettings, Pacer, estimate_tokens, most_tokens
from lib.cpdscore.reply_store import Job, Reply, ReplyStore, Request
from lib.cpdscore.server import JudgeStopped
from lib.data import corpora

QUICK = JudgeSettings(workers=16, backoff_s=0.02)
GOLDEN = Path(__file__).parent / "golden" / "token_counts.json"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")


def calls(store: ReplyStore, key: str = "") -> pd.DataFrame:
    """Every call that ended (to one prompt or to all), oldest first."""
    query = "SELECT * FROM call WHERE status != 'asked' AND ? IN (key, '') ORDER BY id"
    return pd.read_sql_query(query, store._db, params=(key,))


def count(store: ReplyStore, status: str) -> int:
    query = "SELECT COUNT(*) FROM call WHERE holds AND status = ?"
    return store.rows(query, (status,))[0][0]


def end_of(store: ReplyStore, job: Job) -> Reply | None:
    return store.replies([job.request.key]).get(job.place)


def jobs_for(prompts: int, samples: int = 1, **parameters) -> list[Job]:
    requests = [
        Request("m", (("user", f"prompt {i}"),), parameters, usual_tokens=6) for i in range(prompts)
    ]
    return [Job(request, sample) for request in requests for sample in range(samples)]


def connect(service: FaultServer, timeout_s: float = 60):
    """Patient, so that a busy machine is not taken for a fault; tests of hanging say otherwise."""
    return server.Connection(service.url, timeout_s=timeout_s)


def once(fault: str):
    """A plan that fails the first request only."""
    return lambda number, body: fault if number == 0 else None


def run(jobs, store, service, settings=QUICK, connection=None):
    return judge.ask_all(jobs, store, connection or connect(service), settings)


def test_a_thousand_jobs_with_a_quarter_of_faults_lose_nothing(store, monkeypatch):
    """Here a refusal passes like any other fault, so it may be asked again as often."""
    jobs = jobs_for(250, samples=4)
    monkeypatch.setattr(reply_store, "REASKS", 20)
    settings = JudgeSettings(workers=32, backoff_s=0.02, attempts=20)
    with FaultServer(random_faults(0.25)) as service:
        report = run(jobs, store, service, settings, connect(service, timeout_s=0.5))
    share = sum(service.faults.values()) / service.requests
    assert share > 0.2 and set(service.faults) == set(TRANSIENT)
    assert (report.done, report.left) == (1000, 0)
    assert store.missing(jobs) == []
    assert count(store, "ok") == 1000
    assert len(calls(store)) == service.requests == report.requests
    ends = calls(store)
    assert (ends["status"] == "ok").sum() == 1000  # every good answer that arrived was used
    cut = ends["reason"].str.contains("time-out|not complete|Timeout").sum()
    assert 1000 <= service.answered <= 1000 + cut  # and only what was cut off is paid twice


@pytest.mark.parametrize("fault", ["quota_code", "quota_type", "402", "403", "404", "429_long"])
def test_what_no_retry_can_cure_stops_the_run_at_once(store, fault):
    jobs = jobs_for(100)
    settings = JudgeSettings(workers=4, backoff_s=0.02)
    with FaultServer(lambda number, body: fault if number >= 20 else None) as service:
        with pytest.raises(JudgeStopped) as stopped:
            run(jobs, store, service, settings)
        assert service.requests <= 20 + settings.workers
        assert stopped.value.report.done == count(store, "ok") == 20
        service.plan = lambda number, body: None
        assert run(jobs, store, service, settings).done == 80
    assert service.answered == 100


@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_a_refused_request_fails_its_item_only_and_is_not_asked_again(store, status):
    jobs = jobs_for(30)
    plan = lambda number, body: status if body["messages"][0]["content"] == "prompt 7" else None  # noqa: E731
    with FaultServer(plan) as service:
        report = run(jobs, store, service)
        assert (report.done, report.left, count(store, "failed")) == (30, 0, 1)
        refused = end_of(store, jobs[7])
        assert refused.status == "failed" and f"planned {status}" in refused.reason
        assert f"planned {status}" in calls(store, jobs[7].request.key)["body"].iloc[0]
        assert run(jobs, store, service).requests == 0


def test_refusals_before_any_answer_are_asked_again_once_the_cause_is_right(store):
    """A server with too small a context refuses everything; mended, it answers everything."""
    jobs, alone = jobs_for(12), JudgeSettings(workers=1)
    with FaultServer(lambda number, body: "400") as service:
        with pytest.raises(JudgeStopped, match="10 prompts in a row.*refused with 400") as stopped:
            run(jobs, store, service, alone)
        assert (stopped.value.report.done, stopped.value.report.left) == (0, 12)
        assert len(calls(store)) == 10 and len(store.missing(jobs)) == 12
        service.plan = lambda number, body: None
        assert run(jobs, store, service, alone).done == 12


def test_a_server_that_cannot_be_reached_is_named(store):
    connection = server.Connection("http://127.0.0.1:9/v1", timeout_s=0.5)
    settings = JudgeSettings(workers=4, attempts=3, backoff_s=0.01)
    with pytest.raises(JudgeStopped, match="127.0.0.1:9"):
        judge.ask_all(jobs_for(20), store, connection, settings)


def test_a_job_that_only_meets_rate_limits_is_left_for_later_after_its_patience(store, monkeypatch):
    monkeypatch.setattr(judge, "PATIENCE_S", 0.5)
    settings = JudgeSettings(workers=1)
    with FaultServer(lambda number, body: "429_ms" if number < 40 else None) as service:
        report = run(jobs_for(2), store, service, settings)
        assert (report.done, report.left) == (0, 2)
        assert service.requests < 40


def test_jobs_that_run_out_of_attempts_one_by_one_do_not_stop_the_run(store):
    plan = lambda number, body: "500" if body["messages"][0]["content"][-1] in "13579" else None  # noqa: E731
    settings = JudgeSettings(workers=1, attempts=2, backoff_s=0.01)
    with FaultServer(plan) as service:
        report = run(jobs_for(10), store, service, settings)
    assert (report.done, report.left, report.requests) == (5, 5, 15)


@pytest.mark.parametrize("fault", ["refusal", "content_filter", "length", "content_none"])
def test_a_reply_without_text_is_asked_again_and_then_kept_as_what_it_is(store, fault):
    jobs = jobs_for(1)
    with FaultServer(lambda number, body: fault) as service:
        service.batch_fate = lambda line: "length"
        batch(jobs, store, connect(service))  # in a batch as in a live run, and both are counted
        batch([], store, connect(service))
        report = run(jobs, store, service, QUICK)
        assert (report.done, service.requests) == (1, 2)
        status = end_of(store, jobs[0]).status
        expected = {"content_filter": "filtered", "length": "truncated", "content_none": "empty"}
        assert status == expected.get(fault, fault)
        assert run(jobs, store, service).requests == 0


@pytest.mark.parametrize(("fault", "requests"), [(None, 5), ("fewer", 6), ("more", 5)])
def test_n_samples_in_one_request_are_counted_and_topped_up(store, fault, requests):
    jobs, more = jobs_for(5, samples=3), jobs_for(9, samples=3)
    many = JudgeSettings(workers=1, many=True)
    with FaultServer(once(fault)) as service:
        report = run(jobs, store, service, many)
        batch(more, store, connect(service), many=True)
        assert len(service.files["file-0"].splitlines()) == 4
        server.ask_by_batch(more, store, connect(service), many=True)
    assert (report.done, service.requests) == (15, requests)
    assert store.missing(more) == []


def test_a_second_run_makes_no_request(store):
    jobs = jobs_for(50, samples=2)

    async def cell():
        run([*jobs, *jobs[:10]], store, service)

    with FaultServer() as service:
        asyncio.run(cell())  # as in Jupyter: an event loop runs already
        assert service.requests == 100  # duplicates in the list are one job
        assert run(jobs, store, service).requests == 0
        assert run(jobs_for(50, samples=3), store, service).requests == 50
        others = jobs_for(50, temperature=0, guided_choice=["1", "2"])  # known to some servers only
        assert run(others, store, service).requests == 50
        assert service.bodies[-1] in [job.request.body for job in others]


@pytest.mark.parametrize("workers", [1, 16])
@pytest.mark.parametrize("long", [6, 4000])
def test_a_cap_on_dollars_holds_to_the_cent_over_all_runs_with_a_store(store, workers, long):
    """A dollar a token; replies of 4,000 tokens at most (a reasoning model's), `long` in fact."""
    jobs = jobs_for(40, max_completion_tokens=4000)
    cap = JudgeSettings(workers, prompt_price=1e6, reply_price=1e6, max_dollars=50_000)
    with FaultServer(latency=0.01, reply_tokens=long) as service:
        for _ in range(3):
            with contextlib.suppress(JudgeStopped):
                run(jobs, store, service, cap)
            assert sum(store.spent().values()) == service.sent_tokens <= 50_000
    assert len(store.missing(jobs)) == (28 if long == 4000 else 0)


def test_a_cap_needs_a_limit_on_replies_and_counts_what_a_killed_run_had_in_flight(store):
    job = jobs_for(1, max_tokens=90)[0]
    most = most_tokens(job.request)
    cap = JudgeSettings(prompt_price=1e6, reply_price=1e6, max_dollars=sum(most.values()))
    with FaultServer() as service:
        for jobs, settings in ((jobs_for(1), cap), ([job], JudgeSettings(max_dollars=1))):
            with pytest.raises(ValueError, match="prices, and max_completion_tokens or max_tok"):
                run(jobs, store, service, settings)
        with store.asking():
            store.claim([job], json.dumps(most))
        with pytest.raises(JudgeStopped, match="cap on dollars"):
            run([job], store, service, cap)
        assert service.requests == 0 and sum(store.spent().values()) == sum(most.values())


@pytest.mark.parametrize(
    ("fault", "lost"),
    [("reset_before", 1), ("reset_inside", 1), ("hang", 1), ("drip", 1), ("html", 1),
     ("error_200", 1), ("500", 0), ("429", 0), ("usage_missing", 1)],
)  # fmt: skip
def test_a_call_that_may_have_been_billed_counts_and_one_that_was_turned_away_does_not(
    store, fault, lost
):
    """What is not known to be free counts at the most it can have cost.

    A drip comes within the time-out per read; only a deadline for the whole call helps.
    """
    job, why = jobs_for(1)[0], {"hang": "time-out", "drip": "not complete in time"}
    with FaultServer(once(fault)) as service:
        assert run([job], store, service, QUICK, connect(service, timeout_s=0.5)).done == 1
        known = service.sent_tokens / service.requests if fault != "usage_missing" else 0
    assert sum(store.spent().values()) == known + lost * sum(most_tokens(job.request).values())
    assert why.get(fault, "") in str(calls(store)["reason"].iloc[0])


def test_key_and_login_appear_in_no_store_log_report_or_error(store, tmp_path, caplog, capsys):
    """The server echoes the key, the password of the address, and the header made of it."""
    caplog.set_level(logging.DEBUG)
    secrets = ["sk-secret", "pass%21word", "pass!word", "bWU6cGFzcyF3b3Jk"]
    with FaultServer(once("echo_401")) as service:
        connection = server.Connection(service.url.replace("//", "//me:pass%21word@"))
        with pytest.raises(JudgeStopped) as stopped:
            run(jobs_for(1), store, service, QUICK, connection)
        service.reply = lambda body, i: "sk-secret-123 pass!word bWU6cGFzcyF3b3Jk"
        run(jobs_for(2), store, service, QUICK, connection)
        service.batch_fate = lambda line: ("ok", "400")[line]
        for _ in range(2):
            batch(jobs_for(4), store, connection)
    told = [str(stopped.value), repr(stopped.value.__cause__), caplog.text, *capsys.readouterr()]
    told += [repr(connection), *(path.read_text("latin-1") for path in tmp_path.glob("*.sqlite*"))]
    assert "Basic [key]" in told[0]
    assert not [secret for secret in secrets for text in told if secret in text]
    for job in (jobs_for(1)[0], jobs_for(3)[2]):
        assert end_of(store, job).text == "[key] [key] [key]"
    assert calls(store)["base_url"].dropna().unique().tolist() == [service.url]


def test_a_key_with_a_line_break_works_and_a_broken_one_is_named(store, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " sk-secret-123\n")
    with FaultServer() as service:
        assert run(jobs_for(1), store, service).done == 1
    monkeypatch.setenv("OPENAI_API_KEY", "sk-“secret”")
    with pytest.raises(RuntimeError, match="no usable key"):
        server.Connection()
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(RuntimeError, match="OPENAI_API_KEY.*base_url.*replay"):
        server.Connection()


class LateClock:
    """A clock that wakes sleepers late, as a busy machine does: 20 ms, and 0.25 s now and then."""

    def __init__(self, seed: int):
        self.now, self.dice = 100.0, random.Random(seed)

    def monotonic(self) -> float:
        return self.now

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        stall = 0.25 if self.dice.random() < 0.02 else 0
        self.now += seconds + self.dice.expovariate(50) + stall


@pytest.mark.parametrize("seed", range(5))
def test_late_wake_ups_are_made_up_within_the_limit(monkeypatch, seed):
    clock, sent = LateClock(seed), []
    monkeypatch.setattr("lib.cpdscore.judge.time", clock)
    pacer = Pacer(requests_per_minute=45 * 60)
    for _ in range(500):
        pacer.wait(clock)
        sent.append(clock.now)
    assert 499 / (sent[-1] - sent[0]) >= 43.5
    assert max(sum(first <= other < first + 1 for other in sent) for first in sent) <= 47


@pytest.mark.parametrize("pause", [0, 5])
def test_there_is_no_burst_at_the_start_or_after_a_rate_limit_which_pauses_all(monkeypatch, pause):
    clock, stop = LateClock(0), threading.Event()
    monkeypatch.setattr("lib.cpdscore.judge.time", clock)
    pacer = Pacer(requests_per_minute=600)
    started = [pacer.wait(clock) and clock.now for _ in range(20 if pause else 1)][-1]
    pacer.limited(pause)
    sent = [pacer.wait(clock) and clock.now for _ in range(6)]
    assert sent[0] >= started + pause and sent[-1] - sent[0] >= 0.4
    stop.set()
    assert not pacer.wait(stop)


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell starts the tests
from lib.cpdscore import Job, JudgeSettings, ReplyStore, ask_all
from lib.cpdscore.reply_store import Request
from lib.cpdscore.server import Connection
url, path, prompts, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
jobs = [Job(Request("m", (("user", f"prompt {i}"),), {}, {})) for i in range(prompts)]
with ReplyStore(path) as store:
    print(ask_all(jobs, store, Connection(url), JudgeSettings(workers=workers)))
"""


def start(service: FaultServer, path: Path, prompts: int, workers: int) -> subprocess.Popen:
    command = [sys.executable, "-c", PROGRAM, service.url, path, str(prompts), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(reached) -> None:
    deadline = time.monotonic() + 120
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_three_kills_lose_nothing_and_pay_twice_for_no_more_than_was_in_flight(tmp_path):
    path, prompts, workers = tmp_path / "killed.sqlite", 1000, 8
    dice, killed = random.Random(3), []
    with FaultServer(latency=0.03) as service:
        for share in sorted(dice.uniform(0.05, 0.7) for _ in range(3)):
            child = start(service, path, prompts, workers)
            wait_for(lambda share=share: service.answered >= share * prompts)
            child.kill()
            child.communicate(timeout=120)
            killed.append(child.returncode)
            with ReplyStore(path) as store:
                assert store.rows("PRAGMA integrity_check") == [("ok",)]
        child = start(service, path, prompts, workers)
        out, err = child.communicate(timeout=240)
    assert killed == [-signal.SIGKILL] * 3 and child.returncode == 0, err
    with ReplyStore(path) as store:
        assert store.rows("PRAGMA integrity_check") == [("ok",)]
        assert store.missing(jobs_for(prompts)) == []
        assert count(store, "ok") == prompts
    assert service.answered - prompts <= 3 * workers


def test_an_interrupt_waits_for_the_slowest_reply(tmp_path):
    """Python 3.11 takes the thread that join() waits for as dead once a signal comes."""

    def reply(body: dict, choice: int) -> str:
        time.sleep(1.5 if body["messages"][-1]["content"] == "prompt 0" else 0)
        return "- Humanness: 3"

    path = tmp_path / "slow.sqlite"
    with FaultServer(latency=0.1, reply=reply) as service:
        child = start(service, path, 2000, 4)
        wait_for(lambda: service.answered >= 4)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=120)
        assert child.returncode != 0 and "KeyboardInterrupt" in err and "interrupted" in err
        with ReplyStore(path) as store:
            assert jobs_for(1)[0] not in store.missing(jobs_for(1))
            assert count(store, "ok") == service.answered < 2000


def test_a_full_disk_stops_the_run_loses_no_reply_and_the_rest_is_done_later(tmp_path, monkeypatch):
    """The disk is a limit on the file's pages, which the reserve takes its share of."""
    jobs, path = jobs_for(300), tmp_path / "small.sqlite"
    with FaultServer(latency=0.05) as service:
        with ReplyStore(path) as store:
            pages = store.rows("PRAGMA page_count")[0][0] + 40
            store.rows(f"PRAGMA max_page_count = {pages}")
            more = lambda *_, **__: store.rows(f"PRAGMA max_page_count = {pages + 1000}")  # noqa: E731
            with monkeypatch.context() as patched:
                patched.setattr(Path, "unlink", more)
                with pytest.raises(JudgeStopped, match="full.*free some space"):
                    run(jobs, store, service, JudgeSettings(workers=16))
            assert count(store, "ok") == service.answered
        with ReplyStore(path) as store:
            assert store.rows("PRAGMA integrity_check") == [("ok",)]
            assert 0 < count(store, "ok") < 300
            assert run(jobs, store, service).left == 0
            assert count(store, "ok") == 300


def batch(jobs, store, connection, many=False):
    """One run in mode "batch", which ends while replies are on their way."""
    with contextlib.suppress(judge.JudgeStopped):
        server.ask_by_batch(jobs, store, connection, many)


def test_the_batch_api_round_trip_leaves_exactly_what_is_missing(store):
    jobs = jobs_for(60, samples=2)
    fates = {5: "expired", 6: "expired", 11: "0", 17: "500", 23: "400"}
    with FaultServer() as service:
        service.batch_fate = lambda line: fates.get(line, "ok")
        service.batch_status = "in_progress"
        connection = connect(service)
        for _ in range(2):  # an open batch is not sent again
            with pytest.raises(JudgeStopped, match="120 replies are with.*batch-0"):
                server.ask_by_batch(jobs, store, connection)
        assert len(service.batches) == 1
        report = run(jobs, store, service)  # nor paid for by a live run
        assert (report.requests, report.left, service.requests) == (0, 120, 0)
        service.batches["batch-0"]["status"] = "expired"
        server.collect(store, connection)
        assert [jobs.index(job) for job in store.missing(jobs)] == [5, 6, 11, 17]
        assert end_of(store, jobs[23]).status == "failed"
        assert end_of(store, jobs[40]).text == service.reply(jobs[40].request.body, 0)
        fates.clear()
        service.batch_status = "completed"
        batch(jobs, store, connection)
        assert len(service.files[service.batches["batch-1"]["input_file_id"]].splitlines()) == 4
        batch(jobs, store, connection)
    assert store.missing(jobs) == [] and len(service.batches) == 2


@pytest.mark.parametrize("status", ["400", "404"])
def test_a_batch_that_every_line_of_is_refused_for_settles_nothing(store, status):
    """As in a live run: a parameter the model does not know is put right, and nothing is lost."""
    jobs = jobs_for(12)
    with FaultServer() as service:
        service.batch_fate = lambda line: "expired" if line == 3 else status
        connection = connect(service)
        batch(jobs, store, connection)
        with pytest.raises(JudgeStopped, match=f"batch-0: .*planned {status}.*run again"):
            server.ask_by_batch(jobs, store, connection)
        assert len(store.missing(jobs)) == len(calls(store)) == 12 and not store.in_batches()
        service.batch_fate = lambda line: "400" if line == 3 else "ok"
        batch(jobs, store, connection)
        server.ask_by_batch(jobs, store, connection)
    assert count(store, "failed") == 1 and end_of(store, jobs[3]).status == "failed"


def test_a_batch_that_fails_as_a_whole_says_why_and_one_that_expired_does_not_complain(store):
    jobs = jobs_for(2)
    with FaultServer() as service:
        service.batch_fate = lambda line: "expired"
        connection = connect(service)
        batch(jobs, store, connection)
        service.batch_status, service.batch_error = "failed", "no such model sk-secret-123"
        batch(jobs, store, connection)
        with pytest.raises(JudgeStopped, match=r"batch-1: no such model \[key\]\)"):
            server.ask_by_batch(jobs, store, connection)
    assert len(store.missing(jobs)) == 2 and not store.in_batches()


def test_every_mode_of_asking(store):
    jobs = jobs_for(6)
    assert cpdscore.asker("replay", store) is None
    with pytest.raises(ValueError, match="replay, live, batch, dry-run"):
        cpdscore.asker("alive", store)
    lost = pytest.raises(ValueError, match="would lose the replies you pay for: name a file")
    with ReplyStore(":memory:") as memory, lost:
        cpdscore.asker("live", memory, "http://127.0.0.1:9/v1")
    with FaultServer() as service:
        dry = cpdscore.asker("dry-run", store, settings=JudgeSettings(requests_per_minute=60))
        with pytest.raises(JudgeStopped, match="6 requests.*nothing was sent") as caught:
            dry(jobs)
        assert caught.value.forecast["minutes"].sum() == pytest.approx(0.1)
        assert service.requests == 0
        cpdscore.asker("live", store, service.url)(jobs[:2])
        with pytest.raises(JudgeStopped, match="4 replies.*batch-0"):
            cpdscore.asker("batch", store, service.url)(jobs)
        cpdscore.asker("batch", store, service.url)(jobs)
    assert store.missing(jobs) == []


@pytest.mark.parametrize("many", [False, True])
def test_the_forecast_counts_requests_exactly(store, many):
    jobs = jobs_for(40, samples=3)
    with FaultServer() as service:
        run(jobs[:30], store, service)
        priced = JudgeSettings(requests_per_minute=9000, many=many, prompt_price=2, reply_price=8)
        expected = cpdscore.forecast(jobs, store, priced)
        before = service.requests
        run(jobs, store, service, priced)
        assert expected["requests"].sum() == service.requests - before == (30 if many else 90)
    row = expected.iloc[0]
    assert (row["replies"], row["stored"]) == (90, 30)
    asked = jobs[30::3] if many else jobs[30:]
    assert row["prompt_tokens"] == sum(judge.request_tokens(job.request) for job in asked)
    assert row["dollars"] == pytest.approx((2 * row["prompt_tokens"] + 8 * 90 * 6) / 1e6)
    assert row["minutes"] == pytest.approx(row["requests"] / 9000)
    assert cpdscore.forecast([], store).empty  # a reference prompt on turns without references


@pytest.mark.parametrize("vocabulary", ["cl100k_base", "o200k_base"])
def test_the_estimate_is_within_15_percent_of_two_real_vocabularies(vocabulary):
    """Counts of tokens were taken once with tiktoken's vocabularies; see the file's note."""
    golden = json.loads(GOLDEN.read_text())
    *english, mixed = zip(golden["texts"], golden[vocabulary], strict=True)
    assert estimate_tokens(mixed[0]) == pytest.approx(mixed[1], rel=0.5)  # three scripts
    assert len(english) >= 20
    for text, counts in english:
        assert estimate_tokens(text) == pytest.approx(counts, rel=0.15), text[:60]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({}, None), ({"retry-after": "soon"}, None), ({"retry-after": "-3"}, 0.0),
     ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
     ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 0.0)],
)  # fmt: skip
def test_retry_after(headers, seconds):
    assert server.retry_after(headers) == seconds


def test_the_packaged_judge_answers_and_is_gone_afterwards(store):
    """A real server and a real model: request, form, odds, store, reading, audit."""
    turns = corpora.load("sample_personas").turns.head(1)
    parameters = {"temperature": 0, "max_tokens": 48, "logprobs": True, "top_logprobs": 20}
    model = cpdscore.JudgeModel("smollm2", 1, 0, parameters, forced=True)
    with local.served() as url:
        assert url.startswith("http://127.0.0.1:")
        ask = cpdscore.asker("live", store, url, JudgeSettings(workers=1))
        scores = cpdscore.score_turns(turns, "simple_without_reference", model, store, ask)
    assert scores.items["status"].tolist() == ["ok"]
    assert scores.items["weighted"].between(1, 5, inclusive="neither").all()
    for reply, odds in zip(
        store.replies(scores.items["key"]).values(), scores.replies["probabilities"], strict=True
    ):
        told = json.loads(reply.body)["choices"][0]["logprobs"]["content"]
        (*_, last) = [token for token in told if token["token"].strip().isdigit()]
        p = {one["token"].strip(): math.exp(one["logprob"]) for one in last["top_logprobs"]}
        whole = sum(p.get(mark, 0) for mark in "12345")
        assert odds == pytest.approx({m: p[str(m)] / whole for m in odds}, rel=1e-3)
    with pytest.raises(server.Fault, match="no connection"):
        server.Connection(url).ask(jobs_for(1)[0].request)


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "no.gguf").write_text("no weights")
    with pytest.raises(RuntimeError, match="no judge could be started"):
        local.served(tmp_path / "no.gguf").__enter__()
    with local.served("http://127.0.0.1:9/v1") as url:
        assert url == "http://127.0.0.1:9/v1"


def told(text: str | list, *tokens: tuple[str, dict[str, float]]) -> Reply:
    """The reply of a server that gives `tokens`, each with the probabilities of its like."""
    content = [
        {"token": token, "top_logprobs": [
            {"token": other, "logprob": math.log(p)} for other, p in odds.items()]}
        for token, odds in tokens
    ]  # fmt: skip
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    choice["logprobs"] = {"content": content}
    return server.read_answer(200, json.dumps({"choices": [choice]}), {}, "")[0]


FOUR = (" 4", {" 4": 0.5, "4": 0.1, " 3": 0.2, "x": 0.15, "10": 0.05})
FIVE = ("5", {"5": 0.9, "1": 0.1})


@pytest.mark.parametrize(
    ("name", "reply", "weighted", "why"),
    [
        ("detail", told("- Humanness: 4", ("- Human", {}), ("ness:", {}), FOUR), 3.75, ""),
        ("detail", told("4", ("\n", {}), FOUR), 3.75, ""),
        ("detail", told([{"type": "text", "text": "- Human"}, {"type": "image"},
                         {"text": "ness: 4"}], ("- Humanness:", {}), FOUR), 3.75, ""),
        ("detail", told("5 x.\n- Humanness: 4", FIVE, (" x.\n- Humanness:", {}), FOUR), 3.75, ""),
        ("simple", told("fluency - 5\noverall - 4", ("fluency - ", {}), FIVE, ("\noverall -", {}),
                        FOUR), 3.75, ""),
        ("simple", told("overall - 4\nfluency - 5", ("overall -", {}), FOUR, ("\nfluency - ", {}),
                        FIVE), 3.75, ""),
        ("detail", told("- Humanness: 3.5", ("- Humanness:", {}), (" 3", {" 3": 1}), (".", {}),
                        FIVE), None, "not one digit"),
        ("detail", told("- Humanness: x", ("- Humanness: x", {" 4": 1})), None, "no score"),
        ("detail", told("- Humanness: 4"), None, "no probabilities"),
        ("detail", told("- Humanness: 4", ("thought: 1", {}), FOUR), None, "no probabilities"),
    ],
)  # fmt: skip
def test_the_weighted_mark_is_the_expected_one_at_the_place_of_the_written_one(
    name, reply, weighted, why
):
    """(4 x .6 + 3 x .2) / .8: the odds of "4" and " 4" together, of the marks of the scale only."""
    odds, reason = parsing.score_probabilities(
        reply.text, reply.marks, cpdscore.VARIANTS[f"{name}_without_reference"]
    )
    assert reason == why
    assert (odds and sum(mark * p for mark, p in odds.items())) == (
        weighted and pytest.approx(weighted)
    )
