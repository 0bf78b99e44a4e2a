"""The judge's runner against a server that fails on purpose: nothing paid for is lost."""

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
import warnings
from pathlib import Path

import pandas as pd
import pytest
from fault_server import TRANSIENT, FaultServer, bomb, random_faults

from lib import cpdscore
from lib.cpdscore import connection as client
from lib.cpdscore import judge, local, parsing, reply_store
from lib.cpdscore.connection import JudgeStopped
from lib.cpdscore.judge import JudgeSettings, Pacer, estimate_tokens, max_usage
from lib.cpdscore.reply_store import Job, Reply, ReplyStore, Request
from lib.data import corpora

QUICK = JudgeSettings(workers=16, backoff_s=0.02)
GOLDEN = Path(__file__).parent / "golden" / "token_counts.json"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")


def calls(store: ReplyStore, key: str = "") -> pd.DataFrame:
    """Every call that ended (to one prompt or to all), oldest first."""
    query = "SELECT * FROM call WHERE status != 'asked' AND ? IN (key, '') ORDER BY id"
    columns = [column for _, column, *_ in store.rows("PRAGMA table_info(call)")]
    return pd.DataFrame(store.rows(query, (key,)), columns=columns)


def count(store: ReplyStore, status: str) -> int:
    query = "SELECT COUNT(*) FROM call WHERE holds AND status = ?"
    return store.rows(query, (status,))[0][0]


def stored_reply(store: ReplyStore, job: Job) -> Reply | None:
    return store.replies([job.request.key]).get(job.id)


def jobs_for(prompts: int, samples: int = 1, **parameters) -> list[Job]:
    jobs = []
    for number in range(prompts):
        messages = (("user", f"prompt {number}"),)
        request = Request("m", messages, parameters, usual_tokens=6)
        jobs += [Job(request, sample) for sample in range(samples)]
    return jobs


def connect(service: FaultServer, timeout_s: float = 60):
    """Patient, so that a busy machine is not taken for a fault; tests of hanging say otherwise."""
    return client.Connection(service.url, timeout_s=timeout_s)


def once(fault: str):
    """A plan that fails the first request only."""
    return lambda number, body: fault if number == 0 else None


def fail_prompts(fault: str, prompts: set[str]):
    """A plan that fails some prompts, always."""

    def plan(number: int, body: dict) -> str | None:
        return fault if body["messages"][0]["content"] in prompts else None

    return plan


def run(jobs, store, service, settings=QUICK, connection=None):
    return judge.ask_all(jobs, store, connection or connect(service), settings)


def test_a_thousand_jobs_with_a_quarter_of_faults_lose_nothing(store):
    """Here a refusal passes like any other fault, so it may be asked again as often."""
    jobs = jobs_for(250, samples=4)
    settings = JudgeSettings(workers=32, backoff_s=0.02, attempts=20, reasks=20)
    with FaultServer(random_faults(0.25)) as service:
        report = run(jobs, store, service, settings, connect(service, timeout_s=0.5))
    share = sum(service.faults.values()) / service.requests
    assert share > 0.2 and set(service.faults) == set(TRANSIENT)
    assert (report.done, report.left) == (1000, 0)
    assert store.missing(jobs) == []
    assert count(store, "ok") == 1000
    assert len(calls(store)) == service.requests == report.requests
    outcomes = calls(store)
    assert (
        outcomes["status"] == "ok"
    ).sum() == 1000  # every good answer that arrived was used
    cut = outcomes["reason"].str.contains("time-out|not complete|Timeout").sum()
    assert (
        1000 <= service.answered <= 1000 + cut
    )  # and only what was cut off is paid twice


@pytest.mark.parametrize(
    "fault", ["quota_code", "quota_type", "402", "403", "404", "429_long"]
)
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
    with FaultServer(fail_prompts(status, {"prompt 7"})) as service:
        report = run(jobs, store, service)
        assert (report.done, report.left, count(store, "failed")) == (30, 0, 1)
        refused = stored_reply(store, jobs[7])
        assert refused.status == "failed" and f"planned {status}" in refused.reason
        assert f"planned {status}" in calls(store, jobs[7].request.key)["body"].iloc[0]
        assert run(jobs, store, service).requests == 0


def test_refusals_before_any_answer_are_asked_again_once_the_cause_is_right(store):
    """A server with too small a context refuses everything; mended, it answers everything."""
    jobs, alone = jobs_for(12), JudgeSettings(workers=1)
    with FaultServer(lambda number, body: "400") as service:
        with pytest.raises(
            JudgeStopped, match="10 prompts in a row.*refused with 400"
        ) as stopped:
            run(jobs, store, service, alone)
        assert (stopped.value.report.done, stopped.value.report.left) == (0, 12)
        assert len(calls(store)) == 10 and len(store.missing(jobs)) == 12
        service.plan = lambda number, body: None
        assert run(jobs, store, service, alone).done == 12


def test_a_server_that_cannot_be_reached_is_named(store):
    connection = client.Connection("http://127.0.0.1:9/v1", timeout_s=0.5)
    settings = JudgeSettings(workers=4, attempts=3, backoff_s=0.01)
    with pytest.raises(JudgeStopped, match="127.0.0.1:9"):
        judge.ask_all(jobs_for(20), store, connection, settings)


def test_a_job_that_only_meets_rate_limits_is_left_for_later_after_its_patience(store):
    settings = JudgeSettings(workers=1, patience_s=0.5)
    with FaultServer(lambda number, body: "429_ms" if number < 40 else None) as service:
        report = run(jobs_for(2), store, service, settings)
        assert (report.done, report.left) == (0, 2)
        assert service.requests < 40


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [("429", [0.5, 1, 2, 4, 8, 8]), ("503", [0.5, 1, 2, 4, 8, 8]), ("429_ms", [0.15] * 6)],
)  # fmt: skip
def test_pauses_double_after_each_error_unless_the_server_names_one(
    store, monkeypatch, fault, seconds
):
    """A rate limit without `retry-after` backs off as a 503 does, and is no attempt."""
    pauses = []
    pause_after = judge._Run.pause_after

    def recorded(self, error, errors):
        pauses.append(pause_after(self, error, errors))
        return 0.0

    monkeypatch.setattr(judge._Run, "pause_after", recorded)
    attempts = 7 if fault == "503" else 1
    settings = JudgeSettings(workers=1, attempts=attempts)
    with FaultServer(lambda number, body: fault if number < 6 else None) as service:
        assert run(jobs_for(1), store, service, settings).done == 1
    assert pauses == pytest.approx(seconds, rel=0.25)


def test_jobs_that_run_out_of_attempts_one_by_one_do_not_stop_the_run(store):
    odd = {f"prompt {number}" for number in range(1, 10, 2)}
    settings = JudgeSettings(workers=1, attempts=2, backoff_s=0.01)
    with FaultServer(fail_prompts("500", odd)) as service:
        report = run(jobs_for(10), store, service, settings)
    assert (report.done, report.left, report.requests) == (5, 5, 15)


@pytest.mark.parametrize(
    "fault", ["refusal", "content_filter", "length", "content_none"]
)
@pytest.mark.parametrize(("temperature", "requests"), [(1, 3), (0, 1)])
def test_a_reply_without_text_is_asked_again_and_then_kept_as_what_it_is(
    store, fault, temperature, requests
):
    """At temperature 0 the same would come again, so it is not asked again."""
    jobs = jobs_for(1, temperature=temperature)
    with FaultServer(lambda number, body: fault) as service:
        report = run(jobs, store, service, QUICK)
        assert (report.done, service.requests) == (1, requests)
        status = stored_reply(store, jobs[0]).status
        expected = {
            "content_filter": "filtered",
            "length": "truncated",
            "content_none": "empty",
        }
        assert status == expected.get(fault, fault)
        assert run(jobs, store, service).requests == 0


def test_answers_without_text_are_counted_over_all_runs(store):
    jobs = jobs_for(1)
    with FaultServer(
        lambda number, body: "length" if number in (0, 2) else "500"
    ) as service:
        run(jobs, store, service, JudgeSettings(workers=1, attempts=1))
        assert len(store.missing(jobs)) == 1
        run(jobs, store, service, JudgeSettings(workers=1, attempts=1, reasks=1))
    assert store.missing(jobs) == [] and service.requests == 3


@pytest.mark.parametrize(("fault", "requests"), [(None, 5), ("fewer", 6), ("more", 5)])
def test_n_samples_in_one_request_are_counted_and_topped_up(store, fault, requests):
    jobs = jobs_for(5, samples=3)
    with FaultServer(once(fault)) as service:
        report = run(
            jobs, store, service, JudgeSettings(workers=1, samples_together=True)
        )
    assert (report.done, service.requests) == (15, requests)
    assert store.missing(jobs) == []


def test_a_second_run_makes_no_request(store):
    jobs = jobs_for(50, samples=2)

    async def cell():
        run([*jobs, *jobs[:10]], store, service)

    with FaultServer() as service:
        asyncio.run(cell())  # as in Jupyter: an event loop runs already
        assert service.requests == 100  # duplicates in the list are one job
        assert run(jobs, store, service).requests == 0
        assert run(jobs_for(50, samples=3), store, service).requests == 50
        others = jobs_for(
            50, temperature=0, guided_choice=["1", "2"]
        )  # known to some servers only
        assert run(others, store, service).requests == 50
        assert service.bodies[-1] in [job.request.body for job in others]


@pytest.mark.parametrize("workers", [1, 16, 64])
@pytest.mark.parametrize("long", [6, 4000])
def test_a_cap_on_dollars_holds_to_the_cent_over_all_runs_with_a_store(
    store, workers, long
):
    """A dollar a token; replies of 4,000 tokens at most (a reasoning model's), `long` in fact."""
    jobs = jobs_for(40, max_completion_tokens=4000)
    cap = JudgeSettings(
        workers=workers, prompt_price=1e6, reply_price=1e6, max_dollars=50_000
    )
    with FaultServer(latency=0.01, reply_tokens=long) as service:
        for _ in range(3):
            with contextlib.suppress(JudgeStopped):
                run(jobs, store, service, cap)
            assert sum(store.spent().values()) == service.sent_tokens <= 50_000
    assert len(store.missing(jobs)) == (28 if long == 4000 else 0)


def test_a_cap_needs_a_limit_on_replies_and_counts_what_a_killed_run_had_in_flight(
    store,
):
    job = jobs_for(1, max_tokens=90)[0]
    reserved = max_usage(job.request)
    cap = JudgeSettings(
        prompt_price=1e6, reply_price=1e6, max_dollars=sum(reserved.values())
    )
    with FaultServer() as service:
        for jobs, settings in (
            (jobs_for(1), cap),
            ([job], JudgeSettings(max_dollars=1)),
        ):
            with pytest.raises(
                ValueError, match="prices, and max_completion_tokens or max_tok"
            ):
                run(jobs, store, service, settings)
        with store.asking():
            store.claim([job], json.dumps(reserved))
        with pytest.raises(JudgeStopped, match="cap on dollars"):
            run([job], store, service, cap)
        assert service.requests == 0 and sum(store.spent().values()) == sum(
            reserved.values()
        )


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
    job = jobs_for(1)[0]
    reasons = {"hang": "time-out", "drip": "not complete in time"}
    with FaultServer(once(fault)) as service:
        assert (
            run([job], store, service, QUICK, connect(service, timeout_s=0.5)).done == 1
        )
        known = (
            service.sent_tokens / service.requests if fault != "usage_missing" else 0
        )
    assert sum(store.spent().values()) == known + lost * sum(
        max_usage(job.request).values()
    )
    assert reasons.get(fault, "") in str(calls(store)["reason"].iloc[0])


def test_key_and_login_appear_in_no_store_log_report_or_error(
    store, tmp_path, caplog, capsys
):
    """The server echoes the key, the password of the address, and the header made of it."""
    caplog.set_level(logging.DEBUG)
    secrets = ["sk-secret", "pass%21word", "pass!word", "bWU6cGFzcyF3b3Jk"]
    with FaultServer(once("echo_401")) as service:
        connection = client.Connection(service.url.replace("//", "//me:pass%21word@"))
        with pytest.raises(JudgeStopped) as stopped:
            run(jobs_for(1), store, service, QUICK, connection)
        service.reply = lambda body, i: "sk-secret-123 pass!word bWU6cGFzcyF3b3Jk"
        run(jobs_for(2), store, service, QUICK, connection)
    texts = [
        str(stopped.value),
        repr(stopped.value.__cause__),
        caplog.text,
        *capsys.readouterr(),
    ]
    texts += [
        repr(connection),
        *(path.read_text("latin-1") for path in tmp_path.glob("*.sqlite*")),
    ]
    assert "Basic [key]" in texts[0]
    for secret in secrets:
        assert not [text for text in texts if secret in text]
    assert stored_reply(store, jobs_for(1)[0]).text == "[key] [key] [key]"
    assert calls(store)["base_url"].dropna().unique().tolist() == [service.url]


def test_a_key_with_a_line_break_works_and_a_broken_one_is_named(store, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " sk-secret-123\n")
    with FaultServer() as service:
        assert run(jobs_for(1), store, service).done == 1
    monkeypatch.setenv("OPENAI_API_KEY", "sk-“secret”")
    with pytest.raises(RuntimeError, match="no usable key"):
        client.Connection()
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(RuntimeError, match="OPENAI_API_KEY.*base_url.*replay"):
        client.Connection()


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
    """Of 45 requests a second, a machine this busy makes 38; no second holds more than 51."""
    clock = LateClock(seed)
    monkeypatch.setattr("lib.cpdscore.judge.time", clock)
    pacer = Pacer(requests_per_minute=45 * 60)
    sent = []
    for _ in range(500):
        pacer.wait(clock)
        sent.append(clock.now)
    assert 499 / (sent[-1] - sent[0]) >= 38
    for first in sent:
        within_a_second = [moment for moment in sent if first <= moment < first + 1]
        assert len(within_a_second) <= 51


@pytest.mark.parametrize("pause", [0, 5])
def test_there_is_no_burst_at_the_start_or_after_a_rate_limit_which_pauses_all(
    monkeypatch, pause
):
    clock = LateClock(0)
    monkeypatch.setattr("lib.cpdscore.judge.time", clock)
    pacer = Pacer(requests_per_minute=600)
    for _ in range(20 if pause else 1):
        pacer.wait(clock)
    last = clock.now
    pacer.pause(pause)
    sent = []
    for _ in range(6):
        assert pacer.wait(clock)
        sent.append(clock.now)
    assert sent[0] >= last + pause and sent[-1] - sent[0] >= 0.35
    stop = threading.Event()
    stop.set()
    assert not pacer.wait(stop)


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell starts the tests
from lib.cpdscore import Job, JudgeSettings, ReplyStore, ask_all
from lib.cpdscore.reply_store import Request
from lib.cpdscore.connection import Connection
url, path, prompts, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
jobs = [Job(Request("m", (("user", f"prompt {i}"),), {}, {})) for i in range(prompts)]
with ReplyStore(path) as store:
    print(ask_all(jobs, store, Connection(url), JudgeSettings(workers=workers)))
"""


def start(
    service: FaultServer, path: Path, prompts: int, workers: int
) -> subprocess.Popen:
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        service.url,
        path,
        str(prompts),
        str(workers),
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(reached) -> None:
    deadline = time.monotonic() + 120
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_three_kills_lose_nothing_and_pay_twice_for_no_more_than_was_in_flight(
    tmp_path,
):
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
        assert (
            child.returncode != 0
            and "KeyboardInterrupt" in err
            and "interrupted" in err
        )
        with ReplyStore(path) as store:
            assert jobs_for(1)[0] not in store.missing(jobs_for(1))
            assert count(store, "ok") == service.answered < 2000


def test_a_full_disk_stops_the_run_loses_no_reply_and_the_rest_is_done_later(
    tmp_path, monkeypatch
):
    """The disk is a limit on the file's pages, which the reserve takes its share of."""
    jobs, path = jobs_for(300), tmp_path / "small.sqlite"
    with FaultServer(latency=0.05) as service:
        with ReplyStore(path) as store:
            pages = store.rows("PRAGMA page_count")[0][0] + 40
            store.rows(f"PRAGMA max_page_count = {pages}")

            def free_reserve(path: Path, missing_ok: bool) -> None:
                store.rows(f"PRAGMA max_page_count = {pages + 1000}")

            with monkeypatch.context() as patched:
                patched.setattr(Path, "unlink", free_reserve)
                with pytest.raises(JudgeStopped, match="full.*free some space"):
                    run(jobs, store, service, JudgeSettings(workers=16))
            assert count(store, "ok") == service.answered
        with ReplyStore(path) as store:
            assert store.rows("PRAGMA integrity_check") == [("ok",)]
            assert 0 < count(store, "ok") < 300
            assert run(jobs, store, service).left == 0
            assert count(store, "ok") == 300


def test_a_disk_that_is_full_already_is_named_before_anything_is_asked(
    store, monkeypatch
):
    def write(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    with FaultServer() as service, monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", write)
        with pytest.raises(
            reply_store.StoreError, match="No space left.*free some space"
        ):
            run(jobs_for(1), store, service)
        assert service.requests == 0
        patched.undo()
        assert run(jobs_for(1), store, service).done == 1


def test_every_mode_of_asking(store):
    jobs = jobs_for(6)
    assert cpdscore.asker("replay", store) is None
    with pytest.raises(ValueError, match="replay, live, dry-run"):
        cpdscore.asker("alive", store)
    lost = pytest.raises(
        ValueError, match="would lose the replies you pay for: name a file"
    )
    with ReplyStore(":memory:") as memory, lost:
        cpdscore.asker("live", memory, "http://127.0.0.1:9/v1")
    with FaultServer() as service:
        dry = cpdscore.asker(
            "dry-run", store, settings=JudgeSettings(requests_per_minute=60)
        )
        with pytest.raises(
            JudgeStopped, match="6 requests.*nothing was sent"
        ) as caught:
            dry(jobs)
        assert caught.value.forecast["minutes"].sum() == pytest.approx(0.1)
        assert service.requests == 0
        cpdscore.asker("live", store, service.url)(jobs)
    assert store.missing(jobs) == []


@pytest.mark.parametrize("together", [False, True])
def test_the_forecast_counts_requests_exactly(store, together):
    jobs = jobs_for(40, samples=3)
    with FaultServer() as service:
        run(jobs[:30], store, service)
        priced = JudgeSettings(
            requests_per_minute=9000,
            samples_together=together,
            prompt_price=2,
            reply_price=8,
        )
        expected = cpdscore.forecast(jobs, store, priced)
        before = service.requests
        run(jobs, store, service, priced)
        assert (
            expected["requests"].sum()
            == service.requests - before
            == (30 if together else 90)
        )
    row = expected.iloc[0]
    assert (row["replies"], row["stored"]) == (90, 30)
    asked = jobs[30::3] if together else jobs[30:]
    assert row["prompt_tokens"] == sum(
        judge.request_tokens(job.request) for job in asked
    )
    assert row["dollars"] == pytest.approx(
        (2 * row["prompt_tokens"] + 8 * 90 * 6) / 1e6
    )
    assert row["minutes"] == pytest.approx(row["requests"] / 9000)
    assert cpdscore.forecast(
        [], store
    ).empty  # a reference prompt on turns without references


@pytest.mark.parametrize("vocabulary", ["cl100k_base", "o200k_base"])
def test_the_estimate_is_within_15_percent_of_two_real_vocabularies(vocabulary):
    """Counts of tokens were taken once with tiktoken's vocabularies; see the file's note."""
    golden = json.loads(GOLDEN.read_text())
    *english, mixed = zip(golden["texts"], golden[vocabulary], strict=True)
    assert estimate_tokens(mixed[0]) == pytest.approx(
        mixed[1], rel=0.5
    )  # three scripts
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
    assert client.wait_asked_by_server(headers) == seconds


def test_the_packaged_judge_answers_and_is_gone_afterwards(store):
    """A real server and a real model: request, form, probabilities, store, reading."""
    turns = corpora.load("sample_personas").turns.head(1)
    parameters = {
        "temperature": 0,
        "max_tokens": 48,
        "logprobs": True,
        "top_logprobs": 20,
    }
    model = cpdscore.JudgeModel(
        "smollm2-135m-instruct", samples=1, extra=0, parameters=parameters, forced=True
    )
    with local.served() as url:
        assert url.startswith("http://127.0.0.1:")
        ask = cpdscore.asker("live", store, url, JudgeSettings(workers=1))
        scores = cpdscore.score_turns(
            turns, "simple_without_reference", model, store, ask
        )
    assert scores.items["status"].tolist() == ["ok"]
    assert scores.items["weighted"].between(1, 5, inclusive="neither").all()
    replies = store.replies(scores.items["key"]).values()
    for reply, probabilities in zip(
        replies, scores.replies["probabilities"], strict=True
    ):
        tokens = json.loads(reply.body)["choices"][0]["logprobs"]["content"]
        digits = [token for token in tokens if token["token"].strip().isdigit()]
        p = {}
        for alternative in digits[-1]["top_logprobs"]:
            p[alternative["token"].strip()] = math.exp(alternative["logprob"])
        total = sum(p.get(digit, 0) for digit in "12345")
        expected = {score: p[str(score)] / total for score in probabilities}
        assert probabilities == pytest.approx(expected, rel=1e-3)
    with pytest.raises(client.JudgeError, match="no connection"):
        client.Connection(url).ask(jobs_for(1)[0].request)


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "no.gguf").write_text("no weights")
    with pytest.raises(RuntimeError, match="no judge could be started"):
        local.served(tmp_path / "no.gguf").__enter__()
    with local.served("http://127.0.0.1:9/v1") as url:
        assert url == "http://127.0.0.1:9/v1"


def reply_of(text: str | list, *tokens: tuple[str, dict[str, float]]) -> Reply:
    """The reply of a server that gives `tokens`, each with the probabilities of alternatives."""
    content = []
    for token, probabilities in tokens:
        alternatives = []
        for alternative, p in probabilities.items():
            alternatives.append({"token": alternative, "logprob": math.log(p)})
        content.append({"token": token, "top_logprobs": alternatives})
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    choice["logprobs"] = {"content": content}
    return client.read_answer(json.dumps({"choices": [choice]}), {}, Request("m", ()))[
        0
    ]


FOUR = (" 4", {" 4": 0.5, "4": 0.1, " 3": 0.2, "x": 0.15, "10": 0.05})
FIVE = ("5", {"5": 0.9, "1": 0.1})
HUMAN = ("- Humanness:", {})
PARTS = [{"type": "text", "text": "- Human"}, {"type": "image"}, {"text": "ness: 4"}]


@pytest.mark.parametrize(
    ("form", "reply", "weighted", "reason"),
    [
        ("detail", reply_of("- Humanness: 4", ("- Human", {}), ("ness:", {}), FOUR), 3.75, ""),
        ("detail", reply_of("4", ("\n", {}), FOUR), 3.75, ""),
        ("detail", reply_of(PARTS, HUMAN, FOUR), 3.75, ""),
        ("detail", reply_of("5 x.\n- Humanness: 4", FIVE, (" x.\n- Humanness:", {}), FOUR), 3.75,
         ""),
        ("simple", reply_of("fluency - 5\noverall - 4", ("fluency - ", {}), FIVE,
                            ("\noverall -", {}), FOUR), 3.75, ""),
        ("simple", reply_of("overall - 4\nfluency - 5", ("overall -", {}), FOUR,
                            ("\nfluency - ", {}), FIVE), 3.75, ""),
        ("detail", reply_of("- Humanness: 3.5", HUMAN, (" 3", {" 3": 1}), (".", {}), FIVE), None,
         "not one digit"),
        ("detail", reply_of("- Humanness: x", ("- Humanness: x", {" 4": 1})), None, "no score"),
        ("detail", reply_of("- Humanness: 4"), None, "no probabilities"),
        ("detail", reply_of("- Humanness: 4", ("thought: 1", {}), FOUR), None, "no probabilities"),
    ],
)  # fmt: skip
def test_the_weighted_score_is_the_expected_one_at_the_position_of_the_written_one(
    form, reply, weighted, reason
):
    """(4 x .6 + 3 x .2) / .8: "4" and " 4" together, and of digits those of the scale only."""
    variant = cpdscore.VARIANTS[f"{form}_without_reference"]
    probabilities, no_probabilities = parsing.score_probabilities(
        reply.text, reply.digit_probabilities, variant
    )
    assert no_probabilities == reason
    if weighted is None:
        assert probabilities is None
    else:
        expected = sum(score * p for score, p in probabilities.items())
        assert expected == pytest.approx(weighted)


# -- any answer of any server ----------------------------------------------------------------------


def with_digit(**details):
    """Answers "4", whose token has the given log-probabilities."""

    def alter(answer: dict, body: dict) -> dict:
        choice = answer["choices"][0]
        choice["message"]["content"] = "4"
        choice["logprobs"] = {"content": [{"token": "4", "logprob": -0.1} | details]}
        return answer

    return alter


@pytest.mark.parametrize(
    "details",
    [{}, {"top_logprobs": None}, {"top_logprobs": [{"token": "4", "logprob": 1000}]},
     {"top_logprobs": [{"token": None, "logprob": -1}]}, {"top_logprobs": [{"token": "4"}]},
     {"token": None}, {"top_logprobs": 7}],
)  # fmt: skip
def test_a_reply_whose_log_probabilities_cannot_be_read_is_a_reply(store, details):
    jobs = jobs_for(2)
    with FaultServer(alter=with_digit(**details)) as service:
        assert run(jobs, store, service).requests == 2
    reply = stored_reply(store, jobs[0])
    assert (reply.status, reply.text, reply.digit_probabilities) == ("ok", "4", None)


@pytest.mark.parametrize("logprob", [-1000, -math.inf, math.nan])
def test_an_alternative_without_probability_is_none(store, logprob):
    alternatives = [{"token": "4", "logprob": -0.5}, {"token": "3", "logprob": logprob}]
    with FaultServer(alter=with_digit(top_logprobs=alternatives)) as service:
        run(jobs_for(1), store, service)
    probabilities = stored_reply(store, jobs_for(1)[0]).digit_probabilities
    assert json.loads(probabilities) == [
        [0, {"4": pytest.approx(math.exp(-0.5), rel=1e-3)}]
    ]


def test_digits_outside_the_text_have_no_position_in_it():
    tokens = [("2", {"2": 1}), ("\n", {}), FIVE, ("3", {"3": 1})]
    (reply,) = [reply_of("\n5", *tokens)]
    assert json.loads(reply.digit_probabilities) == [[1, {"5": 0.9, "1": 0.1}]]


def test_a_text_that_no_file_can_hold_is_stored_with_a_replacement(store):
    jobs = jobs_for(20)
    with FaultServer(reply=lambda body, choice: "- Humanness: 4 \ud83d") as service:
        assert run(jobs, store, service).requests == 20
        assert run(jobs, store, service).requests == 0
    assert {stored_reply(store, job).text for job in jobs} == {"- Humanness: 4 \ufffd"}


@pytest.mark.parametrize(
    "value", [math.inf, math.nan, -5, 10**400, "6", None, True, [1]]
)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_an_impossible_usage_counts_as_the_most_that_the_call_can_cost(
    store, name, value
):
    def alter(answer: dict, body: dict) -> dict:
        answer["usage"][name] = value
        return answer

    jobs = jobs_for(10, max_tokens=90)
    reserved = sum(max_usage(jobs[0].request).values())
    cap = JudgeSettings(prompt_price=1e6, reply_price=1e6, max_dollars=4 * reserved)
    stopped = pytest.raises(JudgeStopped, match="cap on dollars")
    with FaultServer(alter=alter) as service, stopped:
        run(jobs, store, service, cap)
    assert service.requests == 4 == count(store, "ok")
    assert sum(store.spent().values()) == 4 * reserved


@pytest.mark.parametrize(
    "answer",
    [b"[" * 100_000, b'{"choices": ' + b"[" * 100_000, b"[]", b"7", b"\xff\xfe", b"1" * 5000,
     b'{"choices": [{"message": {"content": 4}}]}', b'{"choices": {"a": 1}}',
     b'{"choices": [7]}', b'{"error": ' + b"[" * 900 + b"]" * 900 + b"}",
     b'{"choices": [{"message": {"refusal": ' + b"[" * 900 + b"]" * 900 + b"}}]}"],
)  # fmt: skip
def test_one_answer_that_cannot_be_read_is_counted_and_ends_no_run(store, answer):
    jobs = jobs_for(8)
    settings = JudgeSettings(workers=4, attempts=2, backoff_s=0.01)

    def alter(value: dict, body: dict) -> dict | bytes:
        return answer if body["messages"][0]["content"] == "prompt 3" else value

    with FaultServer(alter=alter) as service:
        report = run(jobs, store, service, settings)
    assert report.done >= 7 and report.done + report.left == 8
    assert len(calls(store)) == service.requests == report.requests <= 10


@pytest.mark.parametrize(
    "changes", [{"system_fingerprint": {"a": 10**30}}, {"model": ["m"]}, {"id": None}]
)
def test_details_of_another_type_are_left_out(store, changes):
    with FaultServer(alter=lambda answer, body: answer | changes) as service:
        assert run(jobs_for(1), store, service).requests == 1
    reply = stored_reply(store, jobs_for(1)[0])
    assert reply.status == "ok"
    assert reply.fingerprint == (None if "system_fingerprint" in changes else "fp_test")


@pytest.mark.parametrize("workers", [1, 16])
def test_a_server_that_ignores_the_limit_on_replies_stops_a_run_with_a_cap(
    store, workers
):
    jobs = jobs_for(100, max_tokens=90)
    cap = JudgeSettings(
        workers=workers, prompt_price=1, reply_price=1e6, max_dollars=5000
    )
    with FaultServer(latency=0.05, reply_tokens=400) as service:
        with pytest.raises(
            JudgeStopped, match="does not keep max_completion_tokens or max_tokens"
        ):
            run(jobs, store, service, cap)
        assert service.requests == service.answered <= 2 * workers - 1
    assert count(store, "ok") == service.answered


@pytest.mark.parametrize(
    ("answering", "warned"),
    [("m", False), ("M", False), ("m-2024-08-06", False), ("hub/m:latest", False),
     ("/folder/m.Q4_1.gguf", False), (None, False), ("m-mini", True), ("other", True)],
)  # fmt: skip
def test_another_model_than_the_one_asked_for_is_named(store, answering, warned):
    server_of_model = FaultServer(
        alter=lambda answer, body: answer | {"model": answering}
    )
    with server_of_model as service, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        assert run(jobs_for(1), store, service).done == 1
    messages = [str(entry.message) for entry in caught if entry.category is UserWarning]
    expected = (
        [f"'{answering}' has answered, where 'm' was asked for"] if warned else []
    )
    assert messages == expected


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_of_any_size_takes_a_moment_only(store, status):
    jobs = jobs_for(6)

    def plan(number: int, body: dict) -> str | None:
        return "500_bomb" if status == 500 and number == 0 else None

    def alter(answer: dict, body: dict) -> dict | bytes:
        is_first = body["messages"][0]["content"] == "prompt 0"
        return bomb() if is_first and status == 200 else answer

    with FaultServer(plan, alter=alter) as service:
        report = run(jobs, store, service, JudgeSettings(workers=1))
        assert (report.done, service.requests) == (6, 6 if status == 200 else 7)
    assert "more than 16777216 bytes" in calls(store)["reason"].iloc[0]
    assert count(store, "failed") == (status == 200)
