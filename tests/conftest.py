"""Fixtures that every test file may use."""

import os
from pathlib import Path

# Two test processes share two cores: one thread each is fastest, and it keeps sums reproducible.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

NO_DATA = "real corpora: set DIALOGUE_DATA_DIR to a folder that holds them"


# A hook, not a fixture: a fixture of a module that loads a corpus is made before any of one test.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.path.isdir(os.environ.get("DIALOGUE_DATA_DIR", "")):
        for item in items:
            if item.get_closest_marker("public"):
                item.add_marker(pytest.mark.skip(reason=NO_DATA))


@pytest.fixture
def store(tmp_path: Path):
    """An empty store of a judge's replies."""
    from lib.cpdscore import ReplyStore

    with ReplyStore(tmp_path / "replies.sqlite") as reply_store:
        yield reply_store


@pytest.fixture(params=[1, 2, 7])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of rows in every batch, whatever their length."""
    n_rows = request.param

    def fixed_batches(lengths: list[int], max_tokens: int) -> list[np.ndarray]:
        order = np.argsort(-np.asarray(lengths), kind="stable")
        return [order[start : start + n_rows] for start in range(0, len(order), n_rows)]

    monkeypatch.setattr("lib.models.token_batches", fixed_batches)
    return n_rows
