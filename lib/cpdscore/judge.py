"""Asks for every job that has no reply yet, within pace and budget, until none is left.

The openai client's own retries are switched off: they hide what was billed, ask again without
quota, and under a cap of 50 requests a second they lost 950 replies of 1,000.
"""

import json
import math
import random
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import pandas as pd
from tqdm.auto import tqdm

from lib.cpdscore.reply_store import Job, Reply, ReplyStore, Request, tasks_of, to_json
from lib.cpdscore.server import Connection, Fault, JudgeStopped, ask_by_batch

LONGEST_WAIT_S = 120  # a server that asks for more ends the run cleanly
PATIENCE_S = 900  # how long one job waits out rate limits before it is left
_DICE = random.Random()  # spreads the workers' pauses; no result depends on it


@dataclass(frozen=True)
class JudgeSettings:
    """How to ask, and for how much. None of these changes a reply, so none is part of a key."""

    workers: int = 16  # threads, each with one request in flight
    requests_per_minute: float = math.inf  # what your account allows
    many: bool = False  # ask for all samples of a prompt in one request (n), top up what is short
    attempts: int = 10  # faults of one job before it is left for a later run
    backoff_s: float = 0.5  # first pause after a fault; doubles up to 16 times this
    prompt_price: float = math.nan  # dollars per million tokens, as your provider lists them
    reply_price: float = math.nan
    max_dollars: float = math.inf  # what the store may cost in all its runs

    def dollars(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Cost of a number of tokens; NaN without prices.

        >>> JudgeSettings(prompt_price=2.5, reply_price=10).dollars(1_000_000, 100_000)
        3.5
        """
        return (self.prompt_price * prompt_tokens + self.reply_price * completion_tokens) / 1e6


DEFAULTS = JudgeSettings()


# -- money: what a request may cost, and what it will --------------------------------------------

# Pieces a byte-pair vocabulary of 100,000 entries keeps whole, roughly: the end of a contraction,
# a word with the space before it, up to three digits, marks with the line breaks that follow.
_PIECES = re.compile(r"'(?:[sdmt]|ll|ve|re)\b|[^\W\d_]+|\d{1,3}|[^\s\w]+\n*|\n+|_")
_PER_MESSAGE, _PER_REQUEST = 4, 3  # wrapping of chat messages, as OpenAI documents it
_LIMITS = ("max_completion_tokens", "max_tokens")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text without a tokenizer: within 15 % on English prompts.

    A word counts one token, and one more per five letters beyond the sixth; a letter outside
    ASCII counts about one. Held against the cl100k and o200k vocabularies in the tests.

    >>> estimate_tokens("Rate the response on a scale of 1 to 5.")
    11
    """
    total = 0
    for piece in _PIECES.findall(text):
        foreign = sum(not letter.isascii() for letter in piece)
        longer = max(0, len(piece) - 6) // 5 if piece.isalpha() else 0
        total += max(1, round(0.9 * foreign)) if foreign else 1 + longer
    return total


def request_tokens(request: Request, count: Callable[[str], int] = estimate_tokens) -> int:
    """Prompt tokens of one request, by the estimate or by another `count`."""
    return _PER_REQUEST + sum(_PER_MESSAGE + count(text) for _, text in request.messages)


def most_tokens(request: Request, samples: int = 1) -> dict[str, int]:
    """The most a call can use: a token is a byte or more, and replies end at their limit."""
    limits = [request.parameters[name] for name in _LIMITS if name in request.parameters]
    prompt = request_tokens(request, lambda text: len(text.encode()))
    reply = samples * [*limits, request.usual_tokens][0]
    return {"prompt_tokens": prompt, "completion_tokens": reply}


def forecast(
    jobs: Iterable[Job], store: ReplyStore, settings: JudgeSettings = DEFAULTS
) -> pd.DataFrame:
    """Say what a run would ask and cost, per model and variant: nothing is sent (dry run).

    What `store` holds already costs nothing.

    Returns:
        Columns model, variant, requests (exact where no fault occurs), replies, stored,
        prompt_tokens, reply_tokens, dollars and minutes. Empty without jobs.
    """
    wanted = {job.place: job for job in jobs}.values()
    left = Counter(job.request.key for job in store.missing(wanted))
    rows = []
    for (request, _), *others in tasks_of(wanted, many=True):
        replies = left[request.key]
        requests = min(1, replies) if settings.many else replies
        tokens = requests * request_tokens(request), replies * request.usual_tokens
        counts = requests, replies, 1 + len(others) - replies, *tokens
        rows.append((request.model, request.labels.get("variant", ""), *counts))
    names = ["model", "variant", "requests", "replies", "stored", "prompt_tokens", "reply_tokens"]
    frame = pd.DataFrame(rows, columns=names)
    frame = frame.groupby(["model", "variant"], sort=False).sum().reset_index()
    dollars = settings.dollars(frame["prompt_tokens"], frame["reply_tokens"])
    return frame.assign(dollars=dollars, minutes=frame["requests"] / settings.requests_per_minute)


# -- pace ------------------------------------------------------------------------------------------


class Pacer:
    """Spaces requests evenly; one rate limit pauses all workers.

    Workers take turns. Slots stand at fixed times, so that waking up late costs nothing: what a
    busy machine missed within the last second is made up, but no second holds more requests than
    the pace rounded up, or a twentieth more.
    """

    def __init__(self, requests_per_minute: float = math.inf):
        rate = min(requests_per_minute / 60, 10_000)
        most = max(math.ceil(rate), int(1.05 * rate))
        self._gap, self._sent = 1 / rate, deque([-math.inf] * most, maxlen=most)
        self._slot, self._paused_until = time.monotonic(), 0.0
        self._turn = threading.Lock()

    def wait(self, stop: threading.Event) -> bool:
        """Sleep until this worker may ask; False if the run was stopped meanwhile."""
        with self._turn:
            while not stop.is_set():
                now = time.monotonic()
                left = max(self._paused_until, self._slot, self._sent[0] + 1) - now
                if left <= 0:
                    self._slot = max(self._slot, self._paused_until, now - 1) + self._gap
                    self._sent.append(now)
                    return True
                stop.wait(left)
        return False

    def limited(self, seconds: float) -> None:
        """A rate limit was met: nobody asks for `seconds`."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)


# -- the run ---------------------------------------------------------------------------------------


def ask_all(
    jobs: Iterable[Job], store: ReplyStore, connection: Connection, settings=DEFAULTS
) -> SimpleNamespace:
    """Ask for all jobs that have no stored reply, and store every call and reply.

    Works in threads, so also inside Jupyter and papermill. An interrupt (Ctrl-C) stops handing out
    work; replies already on their way are still stored. Killing the process loses nothing stored,
    and pays twice at most for what was in flight. What lies in an open batch is left there.

    The cap on dollars is the store's, over all its runs. The most that a call can cost is held
    back before it is sent, so the cap holds whatever is in flight; a call whose usage is not
    known, cut off or killed, stays at that most.

    Returns:
        How many jobs are `done` now (whatever their status) and `left` without a reply (run again
        to ask for them), and the `requests` made, faults included.

    Raises:
        JudgeStopped: when no request can succeed any more (key, model, quota, cap, disk).
        StoreError: while another run is asking with this store.
        ValueError: for a cap on dollars without prices or a limit on the length of replies.
    """
    wanted = {job.place: job for job in jobs}.values()
    priced = not math.isnan(settings.dollars(1, 1))
    limited = all(set(_LIMITS) & set(job.request.parameters) for job in wanted)
    if settings.max_dollars < math.inf and not (priced and limited):
        raise ValueError(f"max_dollars needs both prices, and {' or '.join(_LIMITS)} in parameters")
    with store.asking():
        store.add_requests(job.request for job in wanted)
        missing, away = store.missing(wanted), store.in_batches()
        run = _Run(store, connection, settings)
        cause = run.go(tasks_of((j for j in missing if j.place not in away), settings.many))
        left = len(store.missing(missing))
    done = len(missing) - left
    report = SimpleNamespace(done=done, left=left, requests=run.requests)
    if cause:
        reason = str(cause) if isinstance(cause, Fault) else repr(cause)
        said = f"{done} of {len(missing)} replies received, then: {reason}"
        advice = "Put the cause right and run again: only what is left will be asked."
        raise JudgeStopped(f"{said}. {advice}", report=report) from cause
    return report


class _Run:
    """What the workers share."""

    def __init__(self, store: ReplyStore, connection: Connection, settings: JudgeSettings):
        self.store, self.connection, self.settings = store, connection, settings
        self.pacer = Pacer(settings.requests_per_minute)
        self.tokens, self.requests, self.in_flight = Counter(store.spent()), 0, 0
        self.answered, self.refused = False, {}  # whether any request was; calls that never will
        self.left_in_a_row = 0  # jobs without a reply since the last one that got one
        self.lock, self.stop = threading.Condition(), threading.Event()

    def go(self, tasks: list[list[Job]]) -> BaseException | None:
        """Let the workers finish, whatever happens; what stopped them, if anything did."""
        cause, pool = None, ThreadPoolExecutor(self.settings.workers)
        futures = [pool.submit(self._finish, jobs) for jobs in tasks]
        try:
            for future in tqdm(as_completed(futures), "asking", len(tasks), delay=3):
                cause = cause or future.exception()
        except KeyboardInterrupt:
            self.stop.set()
            wait(futures)  # a second interrupt ends the wait for replies on their way
            raise KeyboardInterrupt("interrupted: replies received are stored") from None
        finally:
            pool.shutdown(wait=False)
        if cause and not self.answered:  # what was refused may be asked again with other settings
            self.store.complete(self.refused)
        return cause

    def _finish(self, jobs: list[Job]) -> None:
        """Ask until every sample has its reply, or the attempts or the patience run out."""
        faults, deadline = 0, time.monotonic() + PATIENCE_S
        try:
            while (jobs := self.store.missing(jobs)) and self.pacer.wait(self.stop):
                if fault := self._call(jobs):
                    limited = fault.end.http == 429
                    faults += not limited
                    pause = self._retry_delay(fault, faults)
                    spent = faults >= self.settings.attempts or time.monotonic() + pause > deadline
                    if fault.kind == "refused" or spent:
                        return self._leave(fault)
                    if limited:
                        self.pacer.limited(pause)
                    self.stop.wait(pause)
        except BaseException:  # a full disk, a bug: end in the open, lose nothing stored
            self.stop.set()
            raise

    def _call(self, jobs: list[Job]) -> Fault | None:
        """Make one call within the budget, record how it ended, and return the fault it met."""
        request, met, ends = jobs[0].request, None, []
        most = most_tokens(request, len(jobs))
        self._reserve(most)
        calls = self.store.claim(jobs, to_json(most))
        try:
            ends = self.connection.ask(request, len(calls))
        except Fault as fault:
            met = fault
        unknown = most if ends or met.billed else {}
        used = json.loads(ends[0].usage) if ends and ends[0].usage else unknown
        short = met.end if met else Reply("fault", reason="fewer choices than asked for")
        ends = [*ends, *[short] * len(calls)][: len(calls)]
        ends[0] = ends[0]._replace(usage=to_json(used), base_url=self.connection.base_url)
        self.store.complete(dict(zip(calls, ends, strict=True)))
        with self.lock:
            self.in_flight -= 1
            self.requests += 1
            self.tokens.subtract(most)
            self.tokens.update(used)
            self.lock.notify_all()
            if met is None:
                self.answered, self.left_in_a_row = True, 0
            elif met.kind == "refused":
                self.refused |= dict.fromkeys(calls, met.end._replace(status="fault"))
        return met

    def _reserve(self, most: Mapping[str, int]) -> None:
        """Hold the most that a call can cost back; wait where those in flight may leave room."""
        cap, most = self.settings.max_dollars, Counter(most)
        with self.lock:
            while self.settings.dollars(**(self.tokens + most)) > cap:
                if self.stop.is_set() or not self.in_flight:
                    raise Fault("stop", "the cap on dollars is reached")
                self.lock.wait(1)
            self.tokens.update(most)
            self.in_flight += 1

    def _retry_delay(self, fault: Fault, faults: int) -> float:
        """Seconds until the next try."""
        if fault.kind == "stop":
            raise fault
        pause = self.settings.backoff_s * min(2 ** max(faults - 1, 0), 16)
        pause = pause * _DICE.uniform(0.75, 1.25) if fault.wait is None else fault.wait
        if pause > LONGEST_WAIT_S:
            raise Fault("stop", f"the server asks to wait {pause:.0f} s: too long for one run")
        return pause

    def _leave(self, fault: Fault) -> None:
        """Leave a job to a later run; many in a row mean that the cause is not the job's."""
        with self.lock:
            self.left_in_a_row += 1
        if (count := self.left_in_a_row) >= (10 if fault.kind == "refused" else 3):
            raise Fault("stop", f"no reply to {count} prompts in a row, the last time: {fault}")


# -- the ways to get replies -----------------------------------------------------------------------

MODES = ("replay", "live", "batch", "dry-run")


def asker(
    mode: str, store: ReplyStore, base_url: str | None = None, settings: JudgeSettings = DEFAULTS
) -> Callable[[Iterable[Job]], object] | None:
    """What `score_turns` calls with the jobs it wants; None in mode ``replay``.

    ``replay`` takes stored replies only (a missing one is an error), ``live`` asks the server at
    `base_url`, ``batch`` submits what is missing and reads what has come back, and ``dry-run``
    raises `JudgeStopped` with a forecast. A connection is opened for ``live`` and ``batch`` only.

    Raises:
        ValueError: for another mode, or if paid replies would be kept in memory only.

    >>> asker("replay", ReplyStore(":memory:")) is None
    True
    """
    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: choose one of {', '.join(MODES)}")
    if mode == "replay":
        return None
    if mode == "dry-run":
        return partial(_dry_run, store=store, settings=settings)
    if store.in_memory:
        raise ValueError(
            f"mode {mode!r} with a store in memory would lose the replies you pay for: name a "
            "file, ReplyStore('replies.sqlite') (in notebook 07: STORE)"
        )
    connection = Connection(base_url)
    if mode == "batch":
        return partial(ask_by_batch, store=store, connection=connection, many=settings.many)
    return partial(ask_all, store=store, connection=connection, settings=settings)


def _dry_run(jobs: Iterable[Job], store: ReplyStore, settings: JudgeSettings) -> None:
    table = forecast(jobs, store, settings)
    requests, *tokens = table[["requests", "prompt_tokens", "reply_tokens"]].sum()
    said = f"{requests} requests and about {sum(tokens)} tokens would be asked for"
    raise JudgeStopped(
        f"dry run: {said}; nothing was sent. Choose mode='live' or 'batch' to ask", forecast=table
    )
