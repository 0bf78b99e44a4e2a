"""How fast the workers may ask, together."""

import threading
import time


class Pacer:
    """Spaces requests and tokens evenly; one rate limit pauses all workers.

    Evenly spaced requests below a server's cap are delivered in full, while bursts are refused
    and have to be sent again. So workers take turns: one waits for the next slot, the others
    behind it, and after a stall of the machine at most ``catch_up_s`` worth of slots is made up.
    A rate limit also cuts the pace by a tenth, never below half of what was set; forty replies
    without one restore it step by step.
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
        self.pauses = 0

    def wait(self, tokens: float, stop: threading.Event) -> bool:
        """Sleep until this worker may ask; False if the run was stopped meanwhile."""
        with self._turn:
            while not stop.is_set():
                ready = max(self._paused_until, self._next_request, self._next_token)
                left = ready - time.monotonic()
                if left <= 0:
                    self._take(tokens)
                    return True
                stop.wait(left)
        return False

    def _take(self, tokens: float) -> None:
        """Use a slot and set the next one."""
        earliest = time.monotonic() - self._catch_up
        if self._requests:
            step = 60 / (self._requests * self._pace)
            self._next_request = max(self._next_request, earliest) + step
        if self._tokens:
            step = 60 * tokens / (self._tokens * self._pace)
            self._next_token = max(self._next_token, earliest) + step

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
