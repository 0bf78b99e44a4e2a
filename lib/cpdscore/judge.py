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
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import pandas as pd
from tqdm.auto import tqdm

from lib.cpdscore.connection import Connection, JudgeError, JudgeStopped
from lib.cpdscore.reply_store import TOKENS, Job, Reply, ReplyStore, Request

MAX_WAIT_S = 120  # a server that asks for a longer pause ends the run
_JITTER = random.Random()  # spreads the workers' pauses; no result depends on it


@dataclass(frozen=True)
class JudgeSettings:
    """How to ask, and for how much. None of these is sent, so none is part of a key."""

    workers: int = 16  # threads, each with one request in flight
    requests_per_minute: float = math.inf  # what your account allows
    # All samples of a prompt in one request (n), topped up.
    samples_together: bool = False
    attempts: int = 10  # errors of one job before it is left for a later run
    backoff_s: float = 0.5  # first pause after an error; doubles up to 16 times this
    # Dollars per million tokens, as your provider lists them.
    prompt_price: float = math.nan
    reply_price: float = math.nan
    max_dollars: float = math.inf  # what the store may cost in all its runs
    patience_s: float = 900  # how long one job waits out rate limits before it is left
    reasks: int = 2  # further answers to a prompt that was refused, filtered, cut off or left empty

    def dollars(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Cost of a number of tokens; NaN without prices.

        >>> JudgeSettings(prompt_price=2.5, reply_price=10).dollars(1_000_000, 100_000)
        3.5
        """
        return (
            self.prompt_price * prompt_tokens + self.reply_price * completion_tokens
        ) / 1e6


DEFAULTS = JudgeSettings()


# -- money: what a request may cost, and what it will --------------------------------------------

# Pieces that a byte-pair vocabulary of 100,000 entries keeps whole, roughly: the end of a
# contraction, a word with the space before it, up to three digits, punctuation with the line breaks
# that follow.
_PIECES = re.compile(r"'(?:[sdmt]|ll|ve|re)\b|[^\W\d_]+|\d{1,3}|[^\s\w]+\n*|\n+|_")
_PER_MESSAGE = 4  # tokens that wrap a chat message, as OpenAI documents it
_PER_REQUEST = 3
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens")  # the second one wins


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text without a tokenizer: within 15 % on English prompts.

    A word counts one token, and one more per five letters beyond the sixth; a letter outside
    ASCII counts about one. The tests compare it with the cl100k and o200k vocabularies.

    >>> estimate_tokens("Rate the response on a scale of 1 to 5.")
    11
    """
    total = 0
    for piece in _PIECES.findall(text):
        non_ascii = sum(not letter.isascii() for letter in piece)
        if non_ascii:
            total += max(1, round(0.9 * non_ascii))
        elif piece.isalpha():
            total += 1 + max(0, len(piece) - 6) // 5
        else:
            total += 1
    return total


def request_tokens(
    request: Request, count: Callable[[str], int] = estimate_tokens
) -> int:
    """Prompt tokens of one request, by the estimate or by another `count`."""
    return _PER_REQUEST + sum(
        _PER_MESSAGE + count(text) for _, text in request.messages
    )


def max_usage(request: Request, samples: int = 1) -> dict[str, int]:
    """The most tokens a call can use: a token is a byte or more, and replies end at their limit."""
    reply_tokens = request.usual_tokens
    for name in _REPLY_LIMITS:
        reply_tokens = request.parameters.get(name, reply_tokens)
    prompt_tokens = request_tokens(request, lambda text: len(text.encode()))
    return {"prompt_tokens": prompt_tokens, "completion_tokens": samples * reply_tokens}


def forecast(
    jobs: Iterable[Job], store: ReplyStore, settings: JudgeSettings = DEFAULTS
) -> pd.DataFrame:
    """What a run would ask and cost, per model and variant: nothing is sent (dry run).

    What `store` holds already costs nothing.

    Returns:
        Columns model, variant, requests (exact where no error occurs), replies, stored,
        prompt_tokens, reply_tokens, dollars and minutes. Empty without jobs.
    """
    jobs = list({job.id: job for job in jobs}.values())
    missing = Counter(job.request.key for job in store.missing(jobs))
    rows = []
    for samples in _tasks(jobs, together=True):
        request = samples[0].request
        replies = missing[request.key]
        requests = min(1, replies) if settings.samples_together else replies
        rows.append(
            {
                "model": request.model,
                "variant": request.labels.get("variant", ""),
                "requests": requests,
                "replies": replies,
                "stored": len(samples) - replies,
                "prompt_tokens": requests * request_tokens(request),
                "reply_tokens": replies * request.usual_tokens,
            }
        )
    names = [
        "model",
        "variant",
        "requests",
        "replies",
        "stored",
        "prompt_tokens",
        "reply_tokens",
    ]
    frame = pd.DataFrame(rows, columns=names)
    frame = frame.groupby(["model", "variant"], sort=False).sum().reset_index()
    frame["dollars"] = settings.dollars(frame["prompt_tokens"], frame["reply_tokens"])
    frame["minutes"] = frame["requests"] / settings.requests_per_minute
    return frame


def _tasks(jobs: Iterable[Job], together: bool) -> list[list[Job]]:
    """The jobs of each request to send: one, or all samples of a prompt (``n``)."""
    tasks: dict[object, list[Job]] = {}
    for job in jobs:
        group = job.request.key if together else job.id
        tasks.setdefault(group, []).append(job)
    return list(tasks.values())


class Budget:
    """The dollars that a store has cost and may cost.

    Attributes:
        max_dollars: the cap.
        dollars: spent so far, plus the most that each call in flight can cost.
    """

    def __init__(self, max_dollars: float, spent: float):
        self.max_dollars = max_dollars
        self.dollars = spent
        self._in_flight = 0
        self._changed = threading.Condition()

    def reserve(self, max_cost: float, stop: threading.Event) -> None:
        """Add the most that a call can cost before it is sent.

        Where that would exceed the cap, wait: calls in flight may turn out to cost less.

        Raises:
            JudgeError: when the cap is reached and no call is in flight, or the run was stopped.
        """
        with self._changed:
            while self.dollars + max_cost > self.max_dollars:
                if stop.is_set() or not self._in_flight:
                    raise JudgeError("stop", "the cap on dollars is reached")
                self._changed.wait(1)
            self.dollars += max_cost
            self._in_flight += 1

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what was reserved for a call by what it has cost.

        Raises:
            JudgeError: under a cap, when the call has cost more than was reserved for it.
        """
        with self._changed:
            self.dollars += cost - reserved
            self._in_flight -= 1
            self._changed.notify_all()
        if cost > reserved and self.max_dollars < math.inf:
            raise JudgeError(
                "stop",
                f"a call has cost {cost:.4g} dollars and not {reserved:.4g} at most: the server "
                f"does not keep max_completion_tokens or max_tokens, so no cap can hold",
            )


# -- pace ------------------------------------------------------------------------------------------


class Pacer:
    """A token bucket: spaces requests evenly; a rate limit pauses all workers.

    Waking up late on a busy machine costs nothing up to a tenth of a second, which is made up.
    """

    def __init__(self, requests_per_minute: float = math.inf):
        self._interval_s = 60 / requests_per_minute
        self._next_start = time.monotonic()
        self._paused_until = 0.0
        self._turn = threading.Lock()  # workers wait one behind the other

    def wait(self, stop: threading.Event) -> bool:
        """Sleep until this worker may ask; False if the run was stopped meanwhile."""
        with self._turn:
            while not stop.is_set():
                now = time.monotonic()
                start = max(self._next_start, self._paused_until)
                if start <= now:
                    self._next_start = max(start, now - 0.1) + self._interval_s
                    return True
                stop.wait(start - now)
        return False

    def pause(self, seconds: float) -> None:
        """Let nobody ask for a number of seconds."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)


# -- the run ---------------------------------------------------------------------------------------


def ask_all(
    jobs: Iterable[Job],
    store: ReplyStore,
    connection: Connection,
    settings: JudgeSettings = DEFAULTS,
) -> SimpleNamespace:
    """Ask for all jobs that have no stored reply, and store every call and reply.

    Works in threads, so also inside Jupyter and papermill. An interrupt (Ctrl-C) stops handing out
    work; replies already on their way are still stored. Killing the process loses nothing stored,
    and pays twice at most for what was in flight.

    The cap on dollars is the store's, over all its runs. The most that a call can cost is held
    back before it is sent, so the cap holds whatever is in flight; a call whose usage is not
    known, cut off or killed, stays at that most. A call that costs more, because the server does
    not keep the limit on its reply, stops the run.

    Where the server names another model than the one asked for, a warning says so.

    Returns:
        How many jobs are `done` now (whatever their status) and `left` without a reply (run again
        to ask for them), and the `requests` made, errors included.

    Raises:
        JudgeStopped: when no request can succeed any more (key, model, quota, cap, disk).
        StoreError: while another run is asking with this store.
        ValueError: for a cap on dollars without prices or a limit on the length of replies.
    """
    jobs = list(jobs)
    priced = not math.isnan(settings.dollars(1, 1))
    limited = all(set(_REPLY_LIMITS) & set(job.request.parameters) for job in jobs)
    if settings.max_dollars < math.inf and not (priced and limited):
        raise ValueError(
            "max_dollars needs both prices, and max_completion_tokens or max_tokens in parameters"
        )
    with store.asking():
        store.add_requests(job.request for job in jobs)
        missing = store.missing(jobs)
        run = _Run(store, connection, settings)
        cause = run.finish_all(_tasks(missing, settings.samples_together))
        n_left = len(store.missing(missing))
    done = len(missing) - n_left
    report = SimpleNamespace(done=done, left=n_left, requests=run.requests)
    if cause:
        reason = str(cause) if isinstance(cause, JudgeError) else repr(cause)
        raise JudgeStopped(
            f"{done} of {len(missing)} replies received from {connection.base_url}, then: {reason}."
            " Put the cause right and run again: only what is left will be asked.",
            report=report,
        ) from cause
    return report


class _Run:
    """What the workers share."""

    def __init__(
        self, store: ReplyStore, connection: Connection, settings: JudgeSettings
    ):
        self.store = store
        self.connection = connection
        self.settings = settings
        self.pacer = Pacer(settings.requests_per_minute)
        self.budget = Budget(settings.max_dollars, settings.dollars(**store.spent()))
        self.stop = threading.Event()
        self.lock = threading.Lock()  # guards what follows
        self.requests = 0
        self.answered = False
        self.refused: dict[
            int, Reply
        ] = {}  # what the server refused, by the id of the call
        self.left_in_a_row = 0  # jobs left without a reply since the last answer

    def finish_all(self, tasks: list[list[Job]]) -> BaseException | None:
        """Let the workers finish, whatever happens; the error that stopped them, if any."""
        cause = None
        pool = ThreadPoolExecutor(self.settings.workers)
        futures = [pool.submit(self.finish_or_stop, jobs) for jobs in tasks]
        try:
            for future in tqdm(as_completed(futures), "asking", len(tasks), delay=3):
                cause = cause or future.exception()
        except KeyboardInterrupt:
            self.stop.set()
            wait(futures)  # a second interrupt ends the wait for replies on their way
            raise KeyboardInterrupt(
                "interrupted: replies received are stored"
            ) from None
        finally:
            pool.shutdown(wait=False)
        if cause and not self.answered:
            # What was refused may be asked again with other settings.
            self.store.complete(self.refused)
        return cause

    def finish_or_stop(self, jobs: list[Job]) -> None:
        """Stop all workers by an error that is not the job's: a full disk, a bug, no quota."""
        try:
            self.finish(jobs)
        except BaseException:
            self.stop.set()
            raise

    def finish(self, jobs: list[Job]) -> None:
        """Ask until every sample has its reply, or the attempts or the patience run out."""
        deadline = time.monotonic() + self.settings.patience_s
        errors = 0
        rate_limits = 0
        while True:
            jobs = self.store.missing(jobs)
            if not jobs or not self.pacer.wait(self.stop):
                return
            error = self.call(jobs)
            if error is None:
                continue
            if error.kind == "stop":
                raise error
            rate_limited = error.reply.http == 429
            if rate_limited:
                rate_limits += 1
                pause = self.pause_after(error, rate_limits)
            else:
                errors += 1
                pause = self.pause_after(error, errors)
            too_late = time.monotonic() + pause > deadline
            if error.kind == "refused" or errors >= self.settings.attempts or too_late:
                return self.leave(error)
            if rate_limited:
                self.pacer.pause(pause)
            self.stop.wait(pause)

    def call(self, jobs: list[Job]) -> JudgeError | None:
        """Make one call within the budget and record its outcome; the error it met, if any."""
        request = jobs[0].request
        max_tokens = max_usage(request, samples=len(jobs))
        reserved = self.settings.dollars(**max_tokens)
        self.budget.reserve(reserved, self.stop)
        calls = self.store.claim(jobs, json.dumps(max_tokens))
        error = None
        try:
            replies = self.connection.ask(request, samples=len(jobs))
            missing = Reply("fault", reason="fewer choices than asked for")
            usage = json.loads(replies[0].usage or "null") or max_tokens
        except JudgeError as raised:
            error = raised
            replies = []
            missing = error.reply
            usage = max_tokens if error.billed else dict.fromkeys(TOKENS, 0)
        replies = [*replies, *[missing] * len(calls)][: len(calls)]
        replies[0] = replies[0]._replace(
            usage=json.dumps(usage), base_url=self.connection.base_url
        )
        reasks = self.settings.reasks
        if request.parameters.get("temperature") == 0:
            reasks = 0  # the same answer would come again
        self.store.complete(dict(zip(calls, replies, strict=True)), reasks)
        with self.lock:
            self.requests += 1
            if error is None:
                self.answered = True
                self.left_in_a_row = 0
            elif error.kind == "refused":
                self.refused |= dict.fromkeys(
                    calls, error.reply._replace(status="fault")
                )
        self.budget.settle(reserved, self.settings.dollars(**usage))
        return error

    def pause_after(self, error: JudgeError, errors: int) -> float:
        """Seconds until the next attempt: what the server asks for, or more after each error."""
        pause = error.wait_s
        if pause is None:
            doublings = min(max(errors - 1, 0), 4)
            pause = self.settings.backoff_s * 2**doublings * _JITTER.uniform(0.75, 1.25)
        if pause > MAX_WAIT_S:
            reason = f"the server asks to wait {pause:.0f} s: too long for one run"
            raise JudgeError("stop", reason)
        return pause

    def leave(self, error: JudgeError) -> None:
        """Leave a job to a later run; several in a row mean that the cause is not the job's."""
        with self.lock:
            self.left_in_a_row += 1
            count = self.left_in_a_row
        max_in_a_row = 10 if error.kind == "refused" else 3
        if count >= max_in_a_row:
            reason = f"no reply to {count} prompts in a row, the last time: {error}"
            raise JudgeError("stop", reason)


# -- the modes of getting replies ------------------------------------------------------------------

MODES = ("replay", "live", "dry-run")


def asker(
    mode: str,
    store: ReplyStore,
    base_url: str | None = None,
    settings: JudgeSettings = DEFAULTS,
) -> Callable[[Iterable[Job]], object] | None:
    """The function that `score_turns` calls with its jobs; None in mode ``replay``.

    ``replay`` takes stored replies only (a missing one is an error), ``live`` asks the server at
    `base_url`, and ``dry-run`` raises `JudgeStopped` with a forecast. A connection is opened for
    ``live`` only.

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
            "mode 'live' with a store in memory would lose the replies you pay for: name a "
            "file, ReplyStore('replies.sqlite') (in notebook 08: STORE)"
        )
    return partial(
        ask_all, store=store, connection=Connection(base_url), settings=settings
    )


def _dry_run(jobs: Iterable[Job], store: ReplyStore, settings: JudgeSettings) -> None:
    table = forecast(jobs, store, settings)
    total = table[["requests", "prompt_tokens", "reply_tokens"]].sum()
    tokens = total["prompt_tokens"] + total["reply_tokens"]
    raise JudgeStopped(
        f"dry run: {total['requests']} requests and about {tokens} tokens would be asked for; "
        "nothing was sent. Choose mode='live' to ask",
        forecast=table,
    )
