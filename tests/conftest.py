"""Fixtures that every test file may use."""

import os
from pathlib import Path

# Two test processes share two cores: one thread each is fastest, and it keeps sums reproducible.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

NO_DATA = "real corpora: set DIALOGUE_DATA_DIR to a folder that holds them"


def _public_data() -> Path | None:
    folder = os.environ.get("DIALOGUE_DATA_DIR")
    return Path(folder) if folder and Path(folder).is_dir() else None


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of real corpora, or a skip that says how to provide it."""
    if (folder := _public_data()) is None:
        pytest.skip(NO_DATA)
    return folder


# A hook, not a fixture: a fixture of a module that loads a corpus is made before any of one test.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if _public_data() is None:
        for item in items:
            if item.get_closest_marker("public"):
                item.add_marker(pytest.mark.skip(reason=NO_DATA))


@pytest.fixture(params=[1, 2, 7])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Exactly so many rows in a batch, whatever their length."""

    def of_rows(lengths: list[int], tokens: int) -> list[np.ndarray]:
        order = np.argsort(-np.asarray(lengths), kind="stable")
        return [order[n : n + request.param] for n in range(0, len(order), request.param)]

    monkeypatch.setattr("lib.models.token_batches", of_rows)
    return request.param
