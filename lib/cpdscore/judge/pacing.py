"""How fast the workers may ask, together."""

import math
import threading
import time
from collections import deque

_WINDOW_S = 1.0  # servers count over a second or longer; what is missed before is not made up
_FASTER = 1.05  # than the pace, within a second, while it is being made up


class Pacer:
    """Spaces requests and tokens evenly; one rate limit pauses all workers.

    Workers take turns: one waits for the next slot, the others behind it. Slots stand at fixed
    times, so that waking up late costs nothing: what a busy machine missed is made up, but no
    second holds more requests than the pace rounded up, or a twentieth more. Tokens are made up
    for at most ``catch_up_s``. There is nothing to make up at the start and after a rate limit.
    A rate limit also cuts the pace by a tenth,
    never below half of what was set; forty replies without one restore it step by step.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        catch_up_s: float = 0.05,
    ):
        self._requests, self._tokens = requests_per_minute, tokens_per_minute
        self._catch_up = catch_up_s
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._next_request = self._next_token = self._paused_until = 0.0
        self._pace, self._calm = 1.0, 0
        self._sent: deque[float] = deque(maxlen=self._most())
        self.pauses = 0

    def wait(self, tokens: float, stop: threading.Event) -> bool:
        """Sleep until this worker may ask; False if the run was stopped meanwhile."""
        with self._turn:
            while not stop.is_set():
                ready = max(
                    self._paused_until, self._next_request, self._next_token, self._window_free()
                )
                left = ready - time.monotonic()
                if left <= 0:
                    self._take(tokens)
                    return True
                stop.wait(left)
        return False

    def _take(self, tokens: float) -> None:
        """Use a slot and set the next one."""
        now = time.monotonic()
        if self._requests:
            earliest = now - _WINDOW_S if self._sent else now
            slot = max(self._next_request, self._paused_until, earliest)
            self._next_request = slot + 60 / (self._requests * self._pace)
            self._sent.append(now)
        if self._tokens:
            step = 60 * tokens / (self._tokens * self._pace)
            self._next_token = max(self._next_token, now - self._catch_up) + step

    def _window_free(self) -> float:
        """When one more request leaves no second with too many."""
        count = self._most()
        return self._sent[-count] + _WINDOW_S if len(self._sent) >= count else 0.0

    def _most(self) -> int:
        """How many requests a second may hold."""
        rate = (self._requests or 1) * self._pace / 60
        return max(math.ceil(rate), int(_FASTER * rate))

    def limited(self, seconds: float) -> None:
        """A rate limit was met: nobody asks for ``seconds``, and the pace goes down once."""
        with self._lock:
            now = time.monotonic()
            if now >= self._paused_until:  # one cut per episode, not per worker
                self._pace, self._calm = max(0.5, self._pace * 0.9), 0
                self.pauses += 1
            self._paused_until = max(self._paused_until, now + seconds)

    def fine(self) -> None:
        """A request passed."""
        with self._lock:
            self._calm += 1
            if self._pace < 1 and self._calm >= 40:
                self._pace, self._calm = min(1.0, self._pace * 1.05), 0
