"""Asks for every job that has no reply yet, until none is left or something must be changed."""

import random
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tqdm.auto import tqdm

from lib.cpdscore.judge.budget import Budget, expected_reply, request_tokens
from lib.cpdscore.judge.client import Answer, Connection, reply_of
from lib.cpdscore.judge.faults import FailItem, Fault, Retry, StopRun
from lib.cpdscore.judge.pacing import Pacer
from lib.cpdscore.reply_store import Attempt, Job, Reply, ReplyStore, Request

_DICE = random.Random()  # spreads the workers' pauses; no result depends on it


@dataclass(frozen=True)
class Settings:
    """How to ask. None of these changes a reply, so none is part of a key."""

    workers: int = 16  # threads, each with one request in flight
    requests_per_minute: float | None = None  # what your account allows; None: no pacing
    tokens_per_minute: float | None = None
    many: bool = False  # ask for all samples of a prompt in one request (n), top up what is short
    attempts: int = 10  # calls per job before it is left for a later run
    reasks: int = 2  # further samples after a refusal, a filter stop, a length stop, no text
    longest_wait_s: float = 120  # a server that asks for more ends the run cleanly
    patience_s: float = 900  # how long one job waits out rate limits before it is left
    backoff_s: float = 0.5  # first pause after a fault; doubles up to 16 times this


@dataclass(frozen=True)
class RunReport:
    """What a run did. ``left`` jobs have no reply yet: run again to ask for them."""

    jobs: int
    stored: int  # had a reply before
    done: int  # got a reply now, whatever its status
    failed: int  # of these, refused by the server for good
    left: int
    requests: int  # calls made, retries included
    prompt_tokens: int
    reply_tokens: int
    dollars: float
    stopped: str | None = None

    @property
    def progress(self) -> str:
        """How far the run came, in words."""
        return (
            f"{self.done} of {self.jobs - self.stored} replies received in {self.requests} requests"
            f" ({self.stored} were stored before, {self.failed} refused, {self.left} left)"
        )

    def __str__(self) -> str:
        return self.progress + (f"; stopped: {self.stopped}" if self.stopped else "")


class RunStopped(RuntimeError):
    """The run ended before its jobs did; ``.report`` says how far it came."""

    def __init__(self, report: RunReport):
        self.report = report
        super().__init__(
            f"{report.stopped.rstrip('.')}. {report.progress}. Put the cause right and run again: "
            "only what is left will be asked."
        )


def run(
    jobs: Iterable[Job],
    store: ReplyStore,
    connection: Connection,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    budget: Budget | None = None,
    progress: bool = True,
) -> RunReport:
    """Ask for all jobs that have no stored reply, and store every attempt and reply.

    Works in threads, so also inside Jupyter and papermill. Raises ``RunStopped`` when no request
    can succeed any more (key, model, quota, cap, disk). Interrupt (Ctrl-C) stops handing out
    work; replies already on their way are still stored. Killing the process loses nothing stored.
    """
    return _Run(list(jobs), store, connection, settings, budget or Budget()).go(progress)


@dataclass(frozen=True)
class _Task:
    request: Request
    samples: tuple[int, ...]


class _Run:
    def __init__(
        self,
        jobs: list[Job],
        store: ReplyStore,
        connection: Connection,
        settings: Settings,
        budget: Budget,
    ):
        self.store, self.connection, self.settings = store, connection, settings
        self.budget = budget
        self.pacer = Pacer(settings.requests_per_minute, settings.tokens_per_minute)
        wanted = {(job.request.key, job.sample): job for job in jobs}
        missing = store.missing(wanted.values())
        store.add_requests(job.request for job in wanted.values())
        self.jobs, self.stored = len(wanted), len(wanted) - len(missing)
        self.queue = deque(tasks_of(missing, settings.many))
        self.done = self.failed = self.requests = 0
        self.passed = False  # whether any request was answered
        self.withheld: list[tuple[str, list[Reply]]] = []  # refusals before that
        self.given_up = 0  # jobs in a row that ran out of attempts
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.reason: str | None = None
        self.cause: Exception | None = None

    def go(self, progress: bool) -> RunReport:
        workers = [_Worker(self._work) for _ in range(min(self.settings.workers, len(self.queue)))]
        quiet = not progress or not workers
        with tqdm(
            total=self.jobs, initial=self.stored, unit="reply", file=sys.stderr, delay=3,
            mininterval=0.5, disable=quiet,
        ) as bar:  # fmt: skip
            try:
                for worker in workers:
                    worker.start()
                self._watch(workers, bar)
            except KeyboardInterrupt:
                self.stop.set()  # a second interrupt ends the wait for replies on their way
                self._watch(workers, bar)
                raise KeyboardInterrupt(str(self._report("interrupted"))) from None
        if self.reason is None:
            self._believe_refusals()
        report = self._report(self.reason)
        self._warn_of_several_origins()
        if self.reason:
            raise RunStopped(report) from self.cause
        return report

    def _watch(self, workers: list["_Worker"], bar: tqdm) -> None:
        for worker in workers:
            while worker.busy:
                worker.ended.wait(0.2)
                cost = f"${self.budget.dollars:.2f}"
                bar.set_postfix(failed=self.failed, cost=cost, refresh=False)
                bar.update(self.stored + self.done - bar.n)

    def _report(self, stopped: str | None) -> RunReport:
        left = self.jobs - self.stored - self.done
        return RunReport(
            self.jobs, self.stored, self.done, self.failed, left, self.requests,
            self.budget.prompt_tokens, self.budget.reply_tokens, self.budget.dollars, stopped,
        )  # fmt: skip

    def _warn_of_several_origins(self) -> None:
        """A model behind another address, or in another version, is another judge."""
        origins = self.store.origins()
        mixed = origins[origins.duplicated("model", keep=False)] if self.requests else origins[:0]
        if len(mixed):
            warnings.warn(
                f"replies of one model come from {len(mixed)} servers or versions:\n"
                f"{mixed.to_string(index=False)}\nUse a store for each, or say so with the scores.",
                stacklevel=4,
            )

    def _halt(self, reason: str, cause: Exception | None = None) -> None:
        with self.lock:
            if self.reason is None:
                self.reason, self.cause = reason, cause
        self.stop.set()

    def _work(self) -> None:
        """What one thread does."""
        while not self.stop.is_set():
            try:
                task = self.queue.popleft()
            except IndexError:
                return
            try:
                self._claimed(task)
            except StopRun as fault:
                self._halt(fault.reason)
            except Exception as error:  # a full disk, a bug: end in the open, lose nothing stored
                self._halt(f"{type(error).__name__}: {error}", error)

    def _claimed(self, task: _Task) -> None:
        """Finish a task unless another process is on it; then come back to it later."""
        key = task.request.key
        mine = [sample for sample in task.samples if self.store.claim(key, sample)]
        try:
            open_ = [sample for sample in mine if self.store.get(key, sample) is None]
            self._count(len(mine) - len(open_), ())
            if open_:
                self._finish(task.request, open_)
        finally:
            for sample in mine:
                self.store.release(key, sample)
        if others := tuple(sample for sample in task.samples if sample not in mine):
            self.queue.append(replace(task, samples=others))
            self.stop.wait(0.05)

    def _finish(self, request: Request, samples: list[int]) -> None:
        """Ask until every sample has a final reply, or the attempts or the patience run out."""
        faults, reasks, started = 0, dict.fromkeys(samples, 0), time.monotonic()
        while samples and not self.stop.is_set():
            try:
                answer = self._ask(request, len(samples) if self.settings.many else 1)
            except _Stopped:
                return
            except FailItem as fault:
                self._refused(request, samples, fault)
                return
            except Retry as fault:
                self.store.record(request.key, samples, self._attempt(fault))
                faults += not fault.rate_limited
                if faults >= self.settings.attempts or not self._patient(fault, faults, started):
                    return self._give_up(fault)
                continue
            except StopRun as fault:
                self.store.record(request.key, samples, self._attempt(fault))
                raise
            self.pacer.fine()
            self._believe_refusals(passed=True)
            samples = self._keep(request, samples, answer, reasks)

    def _ask(self, request: Request, count: int) -> Answer:
        """One paced call within the budget."""

        def estimate() -> tuple[int, int]:
            return request_tokens(request), expected_reply(request) * count

        needed = self.budget.capped or self.settings.tokens_per_minute
        reserved = estimate() if needed else (0, 0)
        if not self.pacer.wait(sum(reserved), self.stop):
            raise _Stopped
        if not self.budget.reserve(*reserved):
            raise StopRun("the cap on tokens or dollars is reached")
        with self.lock:
            self.requests += 1
        try:
            answer = self.connection.ask(request, count)
        except BaseException as error:
            free = isinstance(error, Fault) and not error.billed
            self.budget.settle(reserved, None, None if free else estimate)
            raise
        self.budget.settle(reserved, answer.usage, estimate)
        return answer

    def _keep(
        self, request: Request, samples: list[int], answer: Answer, reasks: dict[int, int]
    ) -> list[int]:
        """Store what came; returns the samples still to ask for."""
        final, again = [], []
        for sample, choice in zip(samples, answer.choices, strict=False):
            reply = reply_of(choice, sample)
            if reply.status != "ok" and reasks[sample] < self.settings.reasks:
                reasks[sample] += 1
                again.append(sample)
            else:
                final.append(reply)
        outcome = ",".join(reply_of(choice, 0).status for choice in answer.choices)
        attempt = Attempt(
            outcome, 200, answer.request_id, answer.ms, answer.usage, answer.body,
            self.connection.base_url, answer.fingerprint,
        )  # fmt: skip
        self.store.record(request.key, samples, attempt, final)
        self._count(len(final), final)
        return again + samples[len(answer.choices) :]

    def _refused(self, request: Request, samples: list[int], fault: FailItem) -> None:
        """The server will not answer this request: its final reply, if it answers any other.

        Until one has passed, the cause may be the server's settings, which can be put right.
        """
        failed = [Reply(sample, "failed", refusal=fault.reason) for sample in samples]
        with self.lock:
            believed = self.passed
            if not believed:
                self.withheld.append((request.key, failed))
            refused_first = len(self.withheld)
        kept = failed if believed else []
        self.store.record(request.key, samples, self._attempt(fault), kept)
        self._count(len(kept), kept)
        if not believed and refused_first >= 10:
            self._halt(f"the first {refused_first} requests were all {fault.reason}")

    def _believe_refusals(self, passed: bool = False) -> None:
        """Store the withheld refusals as final."""
        with self.lock:
            self.passed = self.passed or passed
            withheld, self.withheld = self.withheld, []
        for key, failed in withheld:
            self.store.add_replies((key, reply) for reply in failed)
            self._count(len(failed), failed)

    def _patient(self, fault: Retry, faults: int, started: float) -> bool:
        """Pause before the next try; False if this job has waited long enough."""
        pause = min(self.settings.backoff_s * 2 ** max(faults - 1, 0), 16 * self.settings.backoff_s)
        pause *= _DICE.uniform(0.75, 1.25)
        if fault.wait is not None:
            if fault.wait > self.settings.longest_wait_s:
                raise StopRun(
                    f"the server asks to wait {fault.wait:.0f} s, longer than longest_wait_s="
                    f"{self.settings.longest_wait_s:g}"
                )
            pause = fault.wait
        if time.monotonic() + pause - started > self.settings.patience_s:
            return False
        if fault.rate_limited:
            self.pacer.limited(pause)
        else:
            self.stop.wait(pause)
        return True

    def _give_up(self, fault: Retry) -> None:
        with self.lock:
            self.given_up += 1
            hopeless = self.given_up >= 3
        if hopeless:
            self._halt(f"three jobs in a row ran out of attempts, the last on: {fault.reason}")

    def _count(self, done: int, replies: Iterable[Reply]) -> None:
        with self.lock:
            self.done += done
            self.failed += sum(reply.status == "failed" for reply in replies)
            if done:
                self.given_up = 0

    def _attempt(self, fault: Fault) -> Attempt:
        return Attempt(
            fault.reason, fault.http, fault.request_id, None, None, fault.body,
            self.connection.base_url,
        )  # fmt: skip


class _Worker(threading.Thread):
    """A thread that says itself when it has ended.

    An interrupt inside ``join`` can make Python 3.11 take a live thread for a dead one, and the
    reply that it waits for would be lost.
    """

    def __init__(self, work: Callable[[], None]):
        super().__init__(target=work, daemon=True)
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            super().run()
        finally:
            self.ended.set()

    @property
    def busy(self) -> bool:
        """Whether it was started and has not ended."""
        return self.ident is not None and not self.ended.is_set()


class _Stopped(Exception):
    """The run is being stopped; this job keeps for the next one."""


def tasks_of(missing: list[Job], many: bool) -> list[_Task]:
    """One task per job, or one per prompt where all its samples are asked for at once."""
    if not many:
        return [_Task(job.request, (job.sample,)) for job in missing]
    grouped: dict[str, _Task] = {}
    for job in missing:
        task = grouped.get(job.request.key, _Task(job.request, ()))
        grouped[job.request.key] = replace(task, samples=(*task.samples, job.sample))
    return list(grouped.values())
