"""Run every notebook's cells in this one process, and write tables, figures and shown values.

A second run that costs no kernels: `python tests/second_run.py FOLDER`. What it writes must equal
what the kernels wrote, although process, hash seed and neighbours are others.
"""

import json
import os
import sys
from pathlib import Path

import matplotlib
import nbformat
from IPython.core.interactiveshell import InteractiveShell

from lib.notebook_runs import outputs, runner


def shown(data: dict) -> str:
    """The value of a cell as a reader sees it; its plain text depends on the terminal's width."""
    return data.get("text/html") or data["text/plain"]


def run(path: Path, shell: InteractiveShell) -> list[str]:
    """The values that the cells of one notebook show."""
    shell.reset()
    values = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            result = shell.run_cell(cell.source)
            result.raise_error()
            matplotlib.pyplot.close("all")
            if result.result is not None:
                values.append(shown(shell.display_formatter.format(result.result)[0]))
    return values


if __name__ == "__main__":
    outputs.ROOT = Path(sys.argv[1])
    matplotlib.use("agg")
    os.chdir(runner.NOTEBOOKS)
    shell = InteractiveShell.instance()
    for kind in ("text/html", "text/plain"):  # as in a kernel, where both are made
        shell.display_formatter.formatters[kind].enabled = True
    shell.display_formatter.active_types = shell.display_formatter.format_types
    values = {path.stem: run(path, shell) for path in runner.find()}
    Path(sys.argv[1], "values.json").write_text(json.dumps(values))
