"""What a run may use, what it has used, and what it would cost."""

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lib.cpdscore.reply_store import Job, ReplyStore, Request

# Pieces a byte-pair vocabulary of 100,000 entries keeps whole, roughly: the end of a contraction,
# a word with the space before it, up to three digits, marks with the line breaks that follow.
_PIECES = re.compile(r"'(?:[sdmt]|ll|ve|re)\b|[^\W\d_]+|\d{1,3}|[^\s\w]+\n*|\n+|_")
_PER_MESSAGE, _PER_REQUEST = 4, 3  # wrapping of chat messages, as OpenAI documents it
REPLY_TOKENS = 32  # where the variant does not say


def estimate_tokens(text: str) -> int:
    """Tokens of a text, without a tokenizer: within 15 % on English prompts.

    A word counts one token, and one more per five letters beyond the sixth; a letter outside
    ASCII counts about one. Held against the cl100k and o200k vocabularies in the tests.

    >>> estimate_tokens("Rate the response on a scale of 1 to 5.")
    11
    """
    total = 0
    for piece in _PIECES.findall(text):
        if piece.isascii():
            total += 1 + max(0, len(piece) - 6) // 5 if piece.isalpha() else 1
        else:
            total += max(1, round(0.9 * sum(not letter.isascii() for letter in piece)))
    return total


@dataclass(frozen=True)
class Prices:
    """Dollars per million tokens, as your provider lists them; they change, so you state them."""

    prompt: float
    reply: float

    def dollars(self, prompt_tokens: float, reply_tokens: float) -> float:
        """Cost of a number of tokens."""
        return (self.prompt * prompt_tokens + self.reply * reply_tokens) / 1e6


def request_tokens(request: Request, count: Callable[[str], int] = estimate_tokens) -> int:
    """Prompt tokens of one request."""
    return _PER_REQUEST + sum(_PER_MESSAGE + count(text) for _, text in request.messages)


def expected_reply(request: Request) -> int:
    """Tokens of a usual reply to this request (its variant says so in a label)."""
    return int(request.labels.get("reply_tokens", REPLY_TOKENS))


class Budget:
    """Caps on tokens and dollars for one run, kept by reserving before each request.

    A call whose usage the server does not report counts at its estimate. What is reserved counts
    too, so the cap can be passed only by how far the requests in flight exceed their estimates.
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        max_dollars: float | None = None,
        prices: Prices | None = None,
    ):
        if max_dollars is not None and prices is None:
            raise ValueError("max_dollars needs prices: Prices(prompt=..., reply=...)")
        self.max_tokens, self.max_dollars = max_tokens, max_dollars
        self.prices = prices or Prices(0, 0)
        self.prompt_tokens = self.reply_tokens = self.unknown_usage = 0
        self._reserved = (0.0, 0.0)  # tokens, dollars of requests in flight
        self._lock = threading.Lock()

    @property
    def dollars(self) -> float:
        """Spent so far in this run."""
        return self.prices.dollars(self.prompt_tokens, self.reply_tokens)

    def reserve(self, prompt: int, reply: int) -> bool:
        """Set the cost of a request aside; False if a cap would be passed."""
        tokens, dollars = prompt + reply, self.prices.dollars(prompt, reply)
        with self._lock:
            held_tokens, held_dollars = self._reserved
            used = self.prompt_tokens + self.reply_tokens + held_tokens
            if self.max_tokens is not None and used + tokens > self.max_tokens:
                return False
            spent = self.dollars + held_dollars
            if self.max_dollars is not None and spent + dollars > self.max_dollars:
                return False
            self._reserved = held_tokens + tokens, held_dollars + dollars
            return True

    @property
    def capped(self) -> bool:
        """Whether anything is capped, so that estimates are needed before a request."""
        return self.max_tokens is not None or self.max_dollars is not None

    def settle(
        self,
        reserved: tuple[int, int],
        usage: dict[str, Any] | None,
        estimate: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        """Replace a reservation by what the call really used.

        ``estimate`` gives what a call without reported usage counts as; None: it was not billed.
        """
        known = isinstance(usage, dict) and usage.get("prompt_tokens") is not None
        used = (0, 0)
        if known:
            used = int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)
        elif estimate:
            used = estimate()
        with self._lock:
            held_tokens, held_dollars = self._reserved
            dollars = self.prices.dollars(*reserved)
            self._reserved = held_tokens - sum(reserved), held_dollars - dollars
            self.unknown_usage += not known and estimate is not None
            self.prompt_tokens += used[0]
            self.reply_tokens += used[1]


def forecast(
    jobs: Iterable[Job],
    store: ReplyStore,
    prices: Prices | None = None,
    requests_per_minute: float | None = None,
    many: bool = False,
    count: Callable[[str], int] = estimate_tokens,
) -> pd.DataFrame:
    """What a run would ask and cost, per model and variant: nothing is sent (dry run).

    ``many``: samples of one prompt are asked for in one request. Columns: requests, replies,
    stored, prompt_tokens, reply_tokens, dollars and minutes (NaN where no price or pace is
    given). Requests are exact where no fault occurs; tokens are within 15 % by the default
    ``count``, exact with the model's own tokenizer.
    """
    wanted = {(job.request.key, job.sample): job for job in jobs}
    left = store.missing(wanted.values())
    rows: dict[tuple, dict[str, float]] = {}
    for job in wanted.values():
        _row(rows, job.request)["stored"] += 1
    seen, sizes = set(), {}
    for job in left:
        row, request = _row(rows, job.request), job.request
        row["stored"] -= 1
        row["replies"] += 1
        row["reply_tokens"] += expected_reply(request)
        if many and request.key in seen:
            continue
        if request.key not in seen:
            seen.add(request.key)
            sizes[request.key] = request_tokens(request, count)
        row["requests"] += 1
        row["prompt_tokens"] += sizes[request.key]
    frame = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows, names=_NAMES))
    spent = (prices or Prices(float("nan"), float("nan"))).dollars(
        frame["prompt_tokens"], frame["reply_tokens"]
    )
    pace = requests_per_minute or float("nan")
    return frame.assign(dollars=spent, minutes=frame["requests"] / pace).reset_index()


_NAMES = ["model", "variant"]


def _row(rows: dict[tuple, dict[str, float]], request: Request) -> dict[str, float]:
    place = (request.model, request.labels.get("variant", ""))
    empty = dict.fromkeys(("requests", "replies", "stored", "prompt_tokens", "reply_tokens"), 0)
    return rows.setdefault(place, empty)
