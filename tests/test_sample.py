"""The shipped sample corpora keep the size, keys and scales that notebooks and loaders rely on."""

import json

import pytest

from lib import ROOT

SAMPLE = ROOT / "data" / "sample"
BOTS = SAMPLE / "bots"
PERSONAS = SAMPLE / "personas" / "comperdial"


@pytest.mark.parametrize(
    "folder", [BOTS, PERSONAS, SAMPLE / "robustness_data"], ids=lambda p: p.name
)
def test_sample_is_marked_synthetic_and_stays_small(folder):
    info = json.loads((folder / "info.json").read_text("utf-8"))
    assert info["synthetic"] is True and info["licence"] == "MIT"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 200_000
    assert "synthetic" in (SAMPLE / "README.md").read_text("utf-8").splitlines()[0]
