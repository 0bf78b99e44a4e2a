"""Who is asking for what, when several processes share one store."""

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: two runs on one store may then pay for the same job twice
    fcntl = None


class Claims:
    """One byte of a side file is locked per job that is being asked for.

    The operating system gives the lock back when the process ends, however it ends: a killed
    run blocks nothing and leaves nothing to clean up.
    """

    def __init__(self, store: Path | None):
        self._path = store and store.with_name(store.name + ".claims")
        self._file: int | None = None

    def take(self, key: str, sample: int) -> bool:
        """Whether the job is now ours; False while another process holds it."""
        return self._lock(key, sample, getattr(fcntl, "LOCK_EX", 0) | getattr(fcntl, "LOCK_NB", 0))

    def give_back(self, key: str, sample: int) -> None:
        """Let others have the job."""
        self._lock(key, sample, getattr(fcntl, "LOCK_UN", 0))

    def _lock(self, key: str, sample: int, how: int) -> bool:
        if fcntl is None or self._path is None:
            return True
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        place = (int(key[:15], 16) + sample) % 2**60
        try:
            fcntl.lockf(self._file, how, 1, place)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Give all claims back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
