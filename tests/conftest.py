"""Fixtures that every test file may use."""

import os
from pathlib import Path

# Two test processes share two cores: one thread each is fastest, and it keeps sums reproducible.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of real corpora, or a skip that says how to provide it."""
    folder = os.environ.get("DIALOGUE_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real corpora: set DIALOGUE_DATA_DIR to a folder that holds them")
    return Path(folder)


@pytest.fixture(autouse=True)
def _skip_public_without_data(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("public"):
        request.getfixturevalue("public_data")
