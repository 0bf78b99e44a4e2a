"""How fast the workers may ask, together."""

import threading
import time


class Pacer:
    """Spaces requests and tokens evenly; one rate limit pauses all workers.

    Evenly spaced requests below a server's cap are delivered in full, while bursts are refused
    and have to be sent again. A rate limit also cuts the pace by a tenth, never below half of
    what was set; forty replies without one restore it step by step.
    """

    def __init__(
        self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None
    ):
        self._requests, self._tokens = requests_per_minute, tokens_per_minute
        self._lock = threading.Lock()
        self._next_request = self._next_token = self._paused_until = 0.0
        self._pace, self._calm = 1.0, 0
        self.pauses = 0

    def reserve(self, tokens: float = 0) -> float:
        """Take the next free slot and return the moment (``time.monotonic``) it begins."""
        with self._lock:
            slot = max(time.monotonic(), self._paused_until, self._next_request, self._next_token)
            if self._requests:
                self._next_request = slot + 60 / (self._requests * self._pace)
            if self._tokens:
                self._next_token = slot + 60 * tokens / (self._tokens * self._pace)
            return slot

    def wait(self, tokens: float, stop: threading.Event) -> bool:
        """Sleep until this worker may ask; False if the run was stopped meanwhile."""
        while True:
            slot = self.reserve(tokens)
            if stop.wait(max(0.0, slot - time.monotonic())):
                return False
            if time.monotonic() >= self._paused_until:
                return True  # otherwise a pause began: queue up again behind it, evenly spaced

    def limited(self, seconds: float) -> None:
        """A rate limit was met: nobody asks for ``seconds``, and the pace goes down once."""
        with self._lock:
            now = time.monotonic()
            if now >= self._paused_until:  # one cut per episode, not per worker
                self._pace, self._calm = max(0.5, self._pace * 0.9), 0
                self.pauses += 1
            self._paused_until = max(self._paused_until, now + seconds)
            self._next_request = self._next_token = self._paused_until

    def fine(self) -> None:
        """A request passed."""
        with self._lock:
            self._calm += 1
            if self._pace < 1 and self._calm >= 40:
                self._pace, self._calm = min(1.0, self._pace * 1.05), 0
