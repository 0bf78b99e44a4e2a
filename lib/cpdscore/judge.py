"""Asks for every job that has no reply yet, until none is left or something must be changed."""

import json
import random
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from lib.cpdscore.budget import Budget, Pacer, reply_tokens, request_tokens
from lib.cpdscore.reply_store import Job, Reply, ReplyStore, Request, StoreError
from lib.cpdscore.server import Connection, Fault

LONGEST_WAIT_S = 120  # a server that asks for more ends the run cleanly
PATIENCE_S = 900  # how long one job waits out rate limits before it is left
_DICE = random.Random()  # spreads the workers' pauses; no result depends on it


@dataclass(frozen=True)
class JudgeSettings:
    """How to ask. None of these changes a reply, so none is part of a key."""

    workers: int = 16  # threads, each with one request in flight
    requests_per_minute: float | None = None  # what your account allows; None: no pacing
    many: bool = False  # ask for all samples of a prompt in one request (n), top up what is short
    attempts: int = 10  # faults of one job before it is left for a later run
    backoff_s: float = 0.5  # first pause after a fault; doubles up to 16 times this


@dataclass
class JudgeReport:
    """What a run did. Jobs that are left have no reply yet: run again to ask for them."""

    jobs: int
    stored: int  # had a reply before
    done: int = 0  # got a reply now, whatever its status
    failed: int = 0  # of these, refused by the server for good
    requests: int = 0  # calls made, faults included
    dollars: float = 0.0
    stopped: str | None = None

    @property
    def left(self) -> int:
        """Jobs without a reply."""
        return self.jobs - self.stored - self.done

    def __str__(self) -> str:
        return (
            f"{self.done} of {self.jobs - self.stored} replies received in {self.requests} requests"
            f" ({self.stored} were stored before, {self.failed} refused, {self.left} left)"
            + (f"; stopped: {self.stopped}" if self.stopped else "")
        )


class JudgeStopped(RuntimeError):
    """The run ended before its jobs did; ``.report`` says how far it came."""

    def __init__(self, report: JudgeReport):
        self.report = report
        super().__init__(
            f"{report}. Put the cause right and run again: only what is left will be asked."
        )


def ask_all(
    jobs: Iterable[Job],
    store: ReplyStore,
    connection: Connection,
    settings: JudgeSettings = JudgeSettings(),  # noqa: B008 - frozen
    budget: Budget | None = None,
    progress: bool = True,
) -> JudgeReport:
    """Ask for all jobs that have no stored reply, and store every call and reply.

    Works in threads, so also inside Jupyter and papermill. An interrupt (Ctrl-C) stops handing out
    work; replies already on their way are still stored. Killing the process loses nothing stored,
    and pays twice at most for what was in flight.

    Raises:
        JudgeStopped: when no request can succeed any more (key, model, quota, cap, disk).
    """
    return _Asking(jobs, store, connection, settings, budget or Budget()).go(progress)


class _Asking:
    """The state that the workers share."""

    def __init__(
        self,
        jobs: Iterable[Job],
        store: ReplyStore,
        connection: Connection,
        settings: JudgeSettings,
        budget: Budget,
    ):
        self.store, self.connection, self.settings = store, connection, settings
        self.budget, self.pacer = budget, Pacer(settings.requests_per_minute)
        wanted = {job.place: job for job in jobs}
        self.missing = store.missing(wanted.values())
        store.add_requests(job.request for job in wanted.values())
        self.queue = deque(tasks_of(self.missing, settings.many))
        self.report = JudgeReport(len(wanted), len(wanted) - len(self.missing))
        self.passed = False  # whether any request was answered
        self.left_in_a_row = 0  # jobs without a reply since the last one that got one
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.cause: Exception | None = None

    def go(self, progress: bool) -> JudgeReport:
        """Let the workers finish, whatever happens, and say what came of it."""
        report, workers = self.report, []
        size = min(self.settings.workers, len(self.queue))
        pool = ThreadPoolExecutor(max(1, size))
        bar = tqdm(
            total=report.jobs, initial=report.stored, unit="reply", file=sys.stderr, delay=3,
            mininterval=0.5, disable=not progress or not self.queue,
        )  # fmt: skip
        try:
            workers += [pool.submit(self._work) for _ in range(size)]
            self._watch(workers, bar)
        except KeyboardInterrupt:
            self._halt("interrupted")
            self._watch(workers, bar)  # a second interrupt ends the wait for replies on their way
            raise KeyboardInterrupt(str(self._summed())) from None
        finally:
            pool.shutdown(wait=False)
            bar.close()
        self._summed()
        self._warn_of_several_origins()
        if report.stopped:
            raise JudgeStopped(report) from self.cause
        return report

    def _watch(self, workers: list[Future], bar: tqdm) -> None:
        while wait(workers, timeout=0.5).not_done:
            with suppress(StoreError):  # a worker meets it too, and stops the run
                self.store.renew()
            bar.set_postfix(cost=f"${self.budget.dollars:.2f}", refresh=False)
            bar.update(self.report.stored + self.report.done - bar.n)

    def _summed(self) -> JudgeReport:
        """The report, from what the store holds."""
        if self.report.stopped and not self.passed:
            self.store.forget_refusals()  # their cause may be a setting of the server
        found = self.store.replies(job.request.key for job in self.missing)
        ends = [found[job.place].status for job in self.missing if job.place in found]
        self.report.done, self.report.failed = len(ends), ends.count("failed")
        self.report.dollars = self.budget.dollars
        return self.report

    def _warn_of_several_origins(self) -> None:
        """A model behind another address, or in another version, is another judge."""
        query = "SELECT DISTINCT model, base_url, fingerprint FROM call JOIN request USING (key)"
        rows = self.store.rows(f"{query} WHERE holds AND status = 'ok' AND base_url NOT NULL")
        origins = pd.DataFrame(rows, columns=["model", "base_url", "version"])
        mixed = origins[origins.duplicated("model", keep=False)]
        if self.report.requests and len(mixed):
            warnings.warn(
                f"replies of one model come from {len(mixed)} servers or versions:\n"
                f"{mixed.to_string(index=False)}\nUse a store for each, or say so with the scores.",
                stacklevel=4,
            )

    def _halt(self, reason: str, cause: Exception | None = None) -> None:
        with self.lock:
            if self.report.stopped is None:
                self.report.stopped, self.cause = reason, cause
        self.stop.set()

    def _work(self) -> None:
        """What one thread does."""
        while not self.stop.is_set():
            try:
                self._finish(self.queue.popleft())
            except IndexError:
                return
            except Fault as fault:
                self._halt(str(fault))
            except Exception as error:  # a full disk, a bug: end in the open, lose nothing stored
                self._halt(f"{type(error).__name__}: {error}", error)

    def _finish(self, jobs: list[Job]) -> None:
        """Ask until every sample has its reply, or the attempts or the patience run out."""
        faults, started = 0, time.monotonic()
        while (jobs := self.store.missing(jobs)) and not self.stop.is_set():
            try:
                if not self._call(jobs):
                    return
            except Fault as fault:
                if fault.kind == "stop":
                    raise
                faults += fault.end.http != 429
                spent = faults >= self.settings.attempts
                if fault.kind == "refused" or spent or not self._pause(fault, faults, started):
                    return self._leave(fault)

    def _call(self, jobs: list[Job]) -> bool:
        """Make one call within pace and budget; False if there was none to make."""
        request = jobs[0].request
        if not self.pacer.wait(self.stop):
            return False
        capped = self.budget.max_dollars is not None
        reserved = _estimate(request, len(jobs)) if capped else (0, 0)
        if not self.budget.reserve(*reserved):
            raise Fault("stop", "the cap on dollars is reached")
        used = (0, 0)
        try:
            calls = self.store.claim(job.place for job in jobs)
            if not calls:  # another process is asking: come back later
                self.queue.append(jobs)
                return self.stop.wait(0.05)
            ends = self._ask(request, list(calls.values()))
            used = _used(ends[0], request, len(calls))
        except Fault as fault:
            used = _estimate(request, len(jobs)) if fault.billed else (0, 0)
            raise
        finally:
            self.budget.settle(reserved, used)
        return True

    def _ask(self, request: Request, calls: list[int]) -> list[Reply]:
        """Send one request and record how it ended."""
        with self.lock:
            self.report.requests += 1
        try:
            ends = self.connection.ask(request, len(calls))
        except Fault as fault:
            end = fault.end._replace(base_url=self.connection.base_url)
            self.store.complete(dict.fromkeys(calls, end))
            raise
        short = [Reply("fault", reason="fewer choices than asked for")] * (len(calls) - len(ends))
        done = self.store.complete(dict(zip(calls, ends + short, strict=False)))
        with self.lock:
            self.passed, self.left_in_a_row = True, 0
            self.report.done += done
        return ends

    def _pause(self, fault: Fault, faults: int, started: float) -> bool:
        """Pause before the next try; False if this job has waited long enough."""
        pause = self.settings.backoff_s * min(2 ** max(faults - 1, 0), 16)
        pause = pause * _DICE.uniform(0.75, 1.25) if fault.wait is None else fault.wait
        if pause > LONGEST_WAIT_S:
            raise Fault("stop", f"the server asks to wait {pause:.0f} s: too long for one run")
        if time.monotonic() + pause - started > PATIENCE_S:
            return False
        if fault.end.http == 429:
            self.pacer.limited(pause)
        else:
            self.stop.wait(pause)
        return True

    def _leave(self, fault: Fault) -> None:
        """Leave a job to a later run; many in a row mean that the cause is not the job's."""
        with self.lock:
            self.left_in_a_row += 1
            count = self.left_in_a_row
        if count >= (10 if fault.kind == "refused" else 3):
            self._halt(f"no reply to {count} prompts in a row, the last time: {fault}")


def _estimate(request: Request, samples: int) -> tuple[int, int]:
    return request_tokens(request), reply_tokens(request) * samples


def _used(end: Reply, request: Request, samples: int) -> tuple[int, int]:
    """Tokens that the server reports, or their estimate where it is silent."""
    usage = json.loads(end.usage or "{}")
    if usage.get("prompt_tokens") is None:
        return _estimate(request, samples)
    return int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)


def tasks_of(missing: list[Job], many: bool) -> list[list[Job]]:
    """One list per job, or one per prompt where all its samples are asked for at once."""
    tasks: dict[Any, list[Job]] = {}
    for job in missing:
        tasks.setdefault(job.request.key if many else job.place, []).append(job)
    return list(tasks.values())
