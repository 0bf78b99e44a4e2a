"""A judge behind an OpenAI-compatible address: asked politely, checked, paid for once.

``connect`` opens a connection, ``run`` asks for all jobs that have no stored reply, ``forecast``
says beforehand what that would take, ``submit`` and ``collect`` go through the Batch API.
"""

from lib.cpdscore.judge.batch import BatchRefused, collect, submit
from lib.cpdscore.judge.budget import Budget, Prices, estimate_tokens, forecast
from lib.cpdscore.judge.client import Answer, Connection, connect
from lib.cpdscore.judge.faults import FailItem, Fault, Retry, StopRun
from lib.cpdscore.judge.modes import MODES, BatchPending, DryRun, asker
from lib.cpdscore.judge.pacing import Pacer
from lib.cpdscore.judge.runner import RunReport, RunStopped, Settings, run

__all__ = [
    "MODES",
    "Answer",
    "BatchPending",
    "BatchRefused",
    "Budget",
    "Connection",
    "DryRun",
    "FailItem",
    "Fault",
    "Pacer",
    "Prices",
    "Retry",
    "RunReport",
    "RunStopped",
    "Settings",
    "StopRun",
    "asker",
    "collect",
    "connect",
    "estimate_tokens",
    "forecast",
    "run",
    "submit",
]
