"""The judge's runner beside the bare openai client, against a local server in its own process.

    python tests/bench/bench_judge.py

Ours stores every attempt in SQLite; the peer is the client alone (64 threads, its own retries as
they come), which stores nothing. Rates need a quiet machine: the load average is on every row.
"""

import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import openai
import pandas as pd
import record
from fault_server import FaultServer, random_faults

from lib import cpdscore
from lib.cpdscore import Job, JudgeSettings, ReplyStore
from lib.cpdscore.connection import Connection
from lib.cpdscore.reply_store import Reply, Request
from lib.data import corpora
from lib.meta_evaluation.replication import cpdscore_tables as tables

PROMPT = "Judge the response below. " * 144  # 3.7 kB, as long as a Detail prompt
WORKERS = 64


def capped_at(rate: float) -> Callable:
    """A plan that answers 429 to what is more than `rate` good requests within a second."""
    recent: list[float] = []

    def plan(number: int, body: dict) -> str | None:
        recent[:] = [moment for moment in recent if moment > time.monotonic() - 1]
        if len(recent) >= rate:
            return "429"
        return recent.append(time.monotonic())

    return plan


def serve(pipe, latency: float, cap: float) -> None:
    with FaultServer(capped_at(cap), latency) as service:
        pipe.send(service.url)
        while pipe.recv():
            pipe.send(service.requests)


@contextmanager
def server(
    latency: float = 0, cap: float = math.inf
) -> Iterator[tuple[str, Callable[[], int]]]:
    """The fault server in a process of its own: its address, and a count of its requests."""
    pipe, pipe_of_server = multiprocessing.Pipe()
    arguments = (pipe_of_server, latency, cap)
    process = multiprocessing.Process(target=serve, args=arguments, daemon=True)
    process.start()

    def count_requests() -> int:
        pipe.send(True)
        return pipe.recv()

    try:
        yield pipe.recv(), count_requests
    finally:
        pipe.send(False)
        process.join()


def timed(call: Callable[[], object]) -> tuple[object, float, float]:
    """Result, wall seconds and CPU seconds of this process (the server's are not in it)."""
    wall_start = time.perf_counter()
    cpu_start = time.process_time()
    result = call()
    wall_s = time.perf_counter() - wall_start
    cpu_s = time.process_time() - cpu_start
    return result, wall_s, cpu_s


def jobs_for(count: int) -> list[Job]:
    return [Job(Request("m", (("user", f"{i} {PROMPT}"),))) for i in range(count)]


def ours(url: str, count: int, **settings) -> tuple[int, int]:
    """Replies stored and requests made by the runner."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ReplyStore(Path(folder) / "r.sqlite") as store,
    ):
        connection = Connection(url, timeout_s=settings.pop("timeout_s", 60))
        options = JudgeSettings(**({"workers": WORKERS} | settings))
        report = cpdscore.ask_all(jobs_for(count), store, connection, options)
        return report.done, report.requests


def bare(
    url: str, count: int, workers: int = WORKERS, retries: int = 2, timeout: float = 60
):
    """Replies received by the client alone; its requests are counted by the server."""
    client = openai.OpenAI(
        api_key="none", base_url=url, max_retries=retries, timeout=timeout
    )

    def ask(number: int) -> bool:
        messages = [{"role": "user", "content": f"{number} {PROMPT}"}]
        try:
            reply = client.chat.completions.create(model="m", messages=messages)
            return bool(reply.choices[0].message.content)
        except Exception:
            return False

    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(ask, range(count)))


def throughput(count: int = 1920) -> Iterator[dict]:
    ideal = WORKERS / 0.3
    runners = {
        "ours": lambda url: ours(url, count)[0],
        "peer": lambda url: bare(url, count),
    }
    for who, call in runners.items():
        with server(latency=0.3) as (url, _):
            replies, wall, cpu = timed(partial(call, url))
        yield {
            "task": "64 workers, 300 ms a reply", "who": who, "jobs": count,
            "lost": count - replies,
            "per_second": replies / wall, "share_of_ideal": replies / wall / ideal,
            "cpu_ms_per_call": 1000 * cpu / count,
        }  # fmt: skip


def overhead(count: int = 1500) -> Iterator[dict]:
    """CPU alone: eight threads, a server that answers at once."""
    runners = {
        "ours": lambda url: ours(url, count, workers=8)[0],
        "peer": lambda url: bare(url, count, workers=8),
    }
    for who, call in runners.items():
        with server() as (url, _):
            warm = bare(
                url, 16, workers=8
            )  # imports and first connections are not measured
            replies, wall, cpu = timed(partial(call, url))
        yield {
            "task": "8 workers, no wait", "who": who, "jobs": count, "lost": count - replies,
            "per_second": replies / wall, "cpu_ms_per_call": 1000 * cpu / count, "warm": warm,
        }  # fmt: skip


def capped(count: int = 500) -> Iterator[dict]:
    """A server that refuses more than 50 requests a second."""
    for who in ("ours, told 45/s", "ours, not told", "peer"):
        with server(0.1, 50) as (url, requests):
            if who == "peer":
                replies, wall, cpu = timed(partial(bare, url, count))
            else:
                pace = 45 * 60 if "told 45" in who else math.inf
                call = partial(ours, url, count, requests_per_minute=pace)
                (replies, _), wall, cpu = timed(call)
            sent = requests()
        yield {
            "task": "server cap 50/s", "who": who, "jobs": count, "lost": count - replies,
            "per_second": replies / wall, "requests": sent, "extra_share": sent / count - 1,
            "cpu_ms_per_call": 1000 * cpu / count,
        }  # fmt: skip


def faulty(count: int = 1000) -> Iterator[dict]:
    """A quarter of all calls fails, with every transient fault in turn (a refusal passes, too)."""
    for who in ("ours", "peer"):
        with FaultServer(random_faults(0.25)) as local:
            if who == "ours":
                call = partial(ours, local.url, count, timeout_s=1, backoff_s=0.05)
                (replies, _), wall, _ = timed(call)
            else:
                replies, wall, _ = timed(partial(bare, local.url, count, timeout=1))
            sent = local.requests
        yield {
            "task": "25 % faults", "who": who, "jobs": count, "lost": count - replies,
            "per_second": replies / wall, "requests": sent,
        }  # fmt: skip


def beside_client(rows: list[dict]) -> list[dict]:
    """Adds to each of our rows the CPU that a call costs over the bare client of the same task."""
    client = {row["task"]: row["cpu_ms_per_call"] for row in rows
              if row["who"] == "peer" and "cpu_ms_per_call" in row and not row["lost"]}  # fmt: skip
    for row in rows:
        if row["who"] == "ours" and row["task"] in client:
            row["cpu_ms_over_client"] = row["cpu_ms_per_call"] - client[row["task"]]
    return rows


def comperdial_sized(sample: pd.DataFrame) -> pd.DataFrame:
    """10,395 turns (99 systems, 15 dialogs, 7 turns) made of the sample's, all different."""
    blocks = [group for _, group in sample.groupby(["system", "dialog"], sort=False)]
    parts = []
    for number in range(99 * 15):
        system, dialog = divmod(number, 15)
        part = blocks[number % len(blocks)].copy()
        part["response"] += f" ({number})"
        parts.append(
            part.assign(system=f"s{system}", agent=f"s{system}", dialog=f"d{dialog}")
        )
    return pd.concat(parts, ignore_index=True)


def replay() -> Iterator[dict]:
    """31,185 stored replies to scores, means per dialog and system, and correlations."""
    turns = comperdial_sized(corpora.load("sample_personas").turns)
    model = cpdscore.JudgeModel("m")
    template = cpdscore.load_template("detail_without_reference")
    requests = cpdscore.turn_requests(turns, template, model)
    with (
        tempfile.TemporaryDirectory() as folder,
        ReplyStore(Path(folder) / "r.sqlite") as store,
    ):
        for number, request in enumerate(requests):
            calls = store.claim(Job(request, sample) for sample in range(3))
            for sample, call in enumerate(calls):
                score = 1 + (number + sample) % 5
                store.complete({call: Reply("ok", f"- Humanness: {score}")})

        def table() -> int:
            scores = cpdscore.score_turns(turns, template.variant.name, model, store)
            cpdscore.aggregate(scores, "dialog"), cpdscore.aggregate(scores, "system")
            tables.judge_correlations(
                {"x": scores.items["score"]}, turns["human_overall"], turns
            )
            return len(scores.replies)

        replies, wall, cpu = timed(table)
        jobs = []
        for request in requests:
            jobs += [Job(request, sample) for sample in range(3)]
        forecast = cpdscore.forecast(jobs, store)
    yield {
        "task": "replay of stored replies", "who": "ours", "jobs": replies,
        "lost": 31_185 - replies,
        "per_second": replies / wall, "seconds": wall, "cpu_seconds": cpu,
        "requests": int(forecast["requests"].sum()),
    }  # fmt: skip


PARTS = {"throughput": throughput, "overhead": overhead, "capped": capped, "faulty": faulty,
         "replay": replay}  # fmt: skip


def main() -> None:
    names = sys.argv[1:] or list(PARTS)
    rows = []
    for name in names:
        for row in PARTS[name]():
            row |= {"load": round(os.getloadavg()[0], 1)}
            rows.append(row)
            print(
                {
                    key: round(v, 3) if isinstance(v, float) else v
                    for key, v in row.items()
                }
            )
    table = pd.DataFrame(beside_client(rows)).drop(columns="warm", errors="ignore")
    if len(names) == len(PARTS):
        record.write(table, "bench_judge", packages=["openai"])


if __name__ == "__main__":
    main()
