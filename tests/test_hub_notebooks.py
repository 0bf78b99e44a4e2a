"""Every model of the hub in the notebooks, on the sample and a simulated hub."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import tiny_repositories
from hub_server import HubServer

from lib import ROOT, metrics
from lib.notebook_runs import runner

#: USL-H and MAUVE are no metrics of a turn table.
OF_TURNS = [
    item for item in metrics.parse_models("all") if item.metric in metrics.METRICS
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tiny_repositories.make_all(tmp_path_factory.mktemp("hub"))
    with HubServer(folder) as server:
        yield server


def run_with_models(hub: HubServer, folder: Path, *numbers: str) -> Path:
    """Run notebooks with MODELS="all"; return the folder of their tables."""
    ours = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "home")}
    environment = {**os.environ, **ours, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, ROOT / "tests" / "run_with_models.py", folder, *numbers]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "build" / "sample" / "results"


def without_a_row(table: Path) -> list[str]:
    """Models that no metric of a table names in brackets."""
    text = table.read_text(encoding="utf-8")
    return [str(item) for item in OF_TURNS if f"[{item.label}]" not in text]


def test_every_model_is_in_the_notebook_of_models_or_in_that_of_reddit(hub, tmp_path):
    """RED takes its emotions from GoEmotions, which scores no turns, and filters by toxicity."""
    hub.sent.clear()
    results = run_with_models(hub, tmp_path, "04", "05")
    assert without_a_row(results / "04_all_correlations.csv") == []
    usl_h = pd.read_csv(results / "04_trained_scores.csv")["usl_h[bert-base-uncased]"]
    assert usl_h.between(0, 1).sum() > len(usl_h) / 2
    funnel = pd.read_csv(results / "05_funnel.csv").set_index("condition")
    assert funnel.loc["neither text toxic", "applied"]
    assert "monologg/bert-base-cased-goemotions-original/pytorch_model.bin" in hub.sent


@pytest.mark.slow
def test_all_notebooks_run_to_the_end_with_every_model(hub, tmp_path):
    numbers = [path.name[:2] for path in runner.find_notebooks()]
    results = run_with_models(hub, tmp_path, *numbers)
    tables = ["04_all_correlations", "09_correlations", "10_overview", "14_scores"]
    for name in tables:
        assert without_a_row(results / f"{name}.csv") == [], name
    endex = (results / "06_table2.csv").read_text()
    assert "[DialoGPT-large]" in endex
    assert "[DialogRPT]" in endex
