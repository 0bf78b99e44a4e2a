"""The four ways to get replies: from the store, live, through the Batch API, or not at all."""

from collections.abc import Callable, Iterable
from functools import partial

import pandas as pd

from lib.cpdscore.judge.batch import collect, submit
from lib.cpdscore.judge.budget import Budget, forecast
from lib.cpdscore.judge.client import Connection, connect
from lib.cpdscore.judge.runner import Settings, run
from lib.cpdscore.reply_store import Job, ReplyStore

MODES = ("replay", "live", "batch", "dry-run")


class DryRun(RuntimeError):
    """Nothing was sent; ``.forecast`` says what would have been."""

    def __init__(self, table: pd.DataFrame):
        self.forecast = table
        tokens = int(table["prompt_tokens"].sum() + table["reply_tokens"].sum())
        super().__init__(
            f"dry run: {int(table['requests'].sum())} requests and about {tokens} tokens would be "
            "asked for; nothing was sent. Choose mode='live' or 'batch' to ask"
        )


class BatchPending(RuntimeError):
    """The jobs are with the Batch API: run again later, up to a day."""


def asker(
    mode: str,
    store: ReplyStore,
    base_url: str | None = None,
    key_variable: str = "OPENAI_API_KEY",
    settings: Settings = Settings(),  # noqa: B008 - frozen
    budget: Budget | None = None,
) -> Callable[[Iterable[Job]], object] | None:
    """What ``lib.cpdscore`` calls with the jobs it wants; None in mode ``replay``.

    ``replay`` takes stored replies only (a missing one is an error), ``live`` asks the server at
    ``base_url``, ``batch`` submits what is missing and reads what has come back, and ``dry-run``
    raises ``DryRun`` with the forecast. A connection is opened for ``live`` and ``batch`` only,
    and these need a store that is a file (``ValueError`` otherwise).

    >>> asker("replay", ReplyStore(":memory:")) is None
    True
    """
    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: choose one of {', '.join(MODES)}")
    if mode == "replay":
        return None
    if mode == "dry-run":
        return partial(_dry_run, store=store, settings=settings, budget=budget)
    if str(store.path) == ":memory:":
        raise ValueError(
            f"mode {mode!r} with a store in memory would lose the replies you pay for: name a "
            "file, ReplyStore('replies.sqlite') (in notebook 07: STORE)"
        )
    connection = connect(base_url, key_variable)
    if mode == "batch":
        return partial(_by_batch, store=store, connection=connection, settings=settings)
    return partial(run, store=store, connection=connection, settings=settings, budget=budget)


def _dry_run(
    jobs: Iterable[Job], store: ReplyStore, settings: Settings, budget: Budget | None
) -> None:
    prices, pace = budget and budget.prices, settings.requests_per_minute
    raise DryRun(forecast(jobs, store, prices, pace, settings.many))


def _by_batch(
    jobs: Iterable[Job], store: ReplyStore, connection: Connection, settings: Settings
) -> None:
    """Read what has ended, submit what is missing, and say so if anything is still on its way."""
    jobs = list(jobs)
    states = collect(store, connection)
    submitted = submit(jobs, store, connection, settings.many)
    if missing := store.missing(jobs):
        open_ = [name for name in states if name in store.open_batches()] + submitted
        raise BatchPending(
            f"{len(missing)} replies are with the Batch API ({', '.join(open_)}). Run again later: "
            "the store remembers the batches"
        )
