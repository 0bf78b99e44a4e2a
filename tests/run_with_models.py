"""Run notebooks on the sample with MODELS="all", in this one process.

`python tests/run_with_models.py FOLDER NUMBER ...`, with HF_ENDPOINT and HF_HOME of a simulated
hub. Whatever is written lies below FOLDER, scores and converted models too, so that the tiny random
models leave nothing in the caches of the project.
"""

import os
import sys
from pathlib import Path

import hub_server
import matplotlib.pyplot
import nbformat
import second_run
from IPython.core.interactiveshell import InteractiveShell
from nltk.tokenize import punkt

import lib.notebook_runs as outputs
from lib import models
from lib.metrics import asked_models, likelihood, registry
from lib.notebook_runs import runner

SAID = {"fun": {"positive": ["what fun"], "negative": ["how dull"]}}


def with_all_models(path: Path, folder: Path) -> Path:
    """A copy of a notebook whose parameter MODELS is "all", if it has one.

    In notebook 06 RED keeps its own emotions: from labels by a random GoEmotions no network learns.
    """
    words = "all"
    if path.name.startswith("06"):
        asked = asked_models.parse_models("all")
        words = " ".join(
            str(item) for item in asked if item.metric != "positive_emotion"
        )
    notebook = nbformat.read(path, as_version=4)
    for cell in runner.code_cells(notebook):
        cell.source = cell.source.replace(
            'MODELS: str = ""', f'MODELS: str = "{words}"'
        )
    copy = folder / path.name
    nbformat.write(notebook, copy)
    return copy


def main(folder: Path, numbers: list[str]) -> None:
    for module in (outputs, models, registry):
        module.ROOT = folder
    asked_models.SPEEDS = folder / "speeds"
    models.CHECKPOINTS |= hub_server.without_checksums()
    # Two downloads that no hub of models has.
    likelihood.follow_ups = lambda: SAID
    punkt.PunktTokenizer = lambda _: punkt.PunktSentenceTokenizer()
    matplotlib.use("agg")
    os.chdir(runner.ROOT / "notebooks")
    shell = InteractiveShell.instance()
    for path in runner.find_notebooks():
        if path.name[:2] in numbers:
            second_run.run(with_all_models(path, folder), shell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
