"""Read a user's own file as a turn table."""

from pathlib import Path


def read_turns(path: Path | str, columns=None, scale=None):
    raise NotImplementedError
