"""Run every notebook's cells in this one process, and keep tables, figures and shown values.

A second run that starts no kernels: `python tests/second_run.py FOLDER`. What it writes must equal
what the kernels wrote, although process, seed of the hashes and neighbours are others. Further
arguments are other notebooks to run in their place.
"""

import json
import os
import sys
from pathlib import Path

import matplotlib.pyplot
import nbformat
import pandas as pd
from IPython.core.interactiveshell import InteractiveShell

import lib.notebook_runs as outputs
from lib.notebook_runs import runner


def shown(data: dict) -> str:
    """The value of a cell as a reader sees it; its plain text depends on the terminal's width."""
    return data.get("text/html") or data["text/plain"]


def run(path: Path, shell: InteractiveShell) -> list[str]:
    """The values that the cells of one notebook show."""
    shell.reset()
    pd.reset_option("^display")
    values = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            result = shell.run_cell(cell.source)
            result.raise_error()
            matplotlib.pyplot.close("all")
            if result.result is not None and not cell.source.endswith(";"):
                values.append(shown(shell.display_formatter.format(result.result)[0]))
    return values


if __name__ == "__main__":
    found = [Path(name) for name in sys.argv[2:]] or runner.find_notebooks()
    outputs.ROOT = Path(sys.argv[1])
    matplotlib.use("agg")
    os.chdir(runner.ROOT / "notebooks")
    shell = InteractiveShell.instance()
    shell.display_formatter.active_types = ["text/plain", "text/html"]  # as in a kernel
    values = {path.stem: run(path, shell) for path in found}
    Path(sys.argv[1], "values.json").write_text(json.dumps(values))
