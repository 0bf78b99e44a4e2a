"""Score your own chatbot: run notebook 11 on a file of dialogs and export it as one HTML page.

python -m lib.report dialogs.csv [--dry] [--turns turns.parquet] [--given bot=Ada ...]
"""

import argparse
import html
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat
import papermill
from nbconvert import HTMLExporter

from lib import ROOT
from lib.data import DataError, written_whole
from lib.report.dialogs import read, reading

NOTEBOOK = ROOT / "notebooks" / "11_score_your_own_chatbot.ipynb"
HERE = Path(__file__).parent
LEFT_OUT = {"not-in-report", "injected-parameters", "parameters"}  # tags of cells


def write_page(
    dialogs: Path | str,
    columns: Mapping[str, str] | None = None,
    out: Path | str | None = None,
    given: Mapping[str, str] | None = None,
) -> Path:
    """Run notebook 11 on `dialogs` and write the page; returns where it is.

    Args:
        dialogs: a file or folder (see `read`).
        columns: our column name -> the file's.
        out: HTML file; by default `build/report/<name of the file>.html`.
        given: what `read` should not guess.

    Raises:
        DataError: a fault in the file.
        papermill.PapermillExecutionError: a fault in the notebook.
    """
    dialogs = Path(dialogs).resolve()
    out = Path(out or ROOT / "build" / "report" / f"{dialogs.stem}.html")
    parameters = {"DIALOGS": str(dialogs), "COLUMNS": dict(columns or {}),
                  "GIVEN": dict(given or {})}  # fmt: skip
    ran = papermill.execute_notebook(NOTEBOOK, None, parameters, kernel_name="python3", cwd=ROOT)
    with written_whole(out) as unfinished:
        unfinished.write_text(to_html(ran, f"Report on {dialogs.name}"), encoding="utf-8")
    return out


def to_html(notebook: nbformat.NotebookNode, title: str) -> str:
    """A notebook as one self-contained HTML page.

    `title` replaces the notebook's own. Cells tagged `not-in-report` (exercises, links between
    notebooks) and all code are left out. The page loads nothing from the
    network: the exporter's scripts (formulas, widgets), which would, are replaced by one of ours,
    which sorts a table by a click on a header. Without JavaScript the tables stay as they are.

    >>> cell = nbformat.v4.new_markdown_cell("# Title")
    >>> "<h1" in to_html(nbformat.v4.new_notebook(cells=[cell]), "t")
    True
    """
    cells = [c for c in notebook.cells if not LEFT_OUT & set(c.metadata.get("tags", []))]
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
        else:  # links to other notebooks lead nowhere from a page of its own
            cell.source = re.sub(r"\[([^\]]+)\]\([^)]+\.ipynb\)", r"\1", cell.source)
    if cells and cells[0].cell_type == "markdown":  # its question, not its bookkeeping
        question = cells[0].source.split("*You will learn*")[0]
        cells[0].source = re.sub(r"\A# .*", lambda _: f"# {html.escape(title)}", question)
    kept = nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)
    exporter = HTMLExporter(exclude_input=True, exclude_output_prompt=True, embed_images=True)
    body, _ = exporter.from_notebook_node(kept, resources={"metadata": {"name": title}})
    page = re.sub(r"<script\b.*?</script>", "", body, flags=re.DOTALL | re.IGNORECASE)
    style = f"<style>{(HERE / 'page.css').read_text('utf-8')}</style></head>"
    script = f"<script>\n{(HERE / 'sorting.js').read_text('utf-8')}</script></body>"
    return page.replace("</head>", style, 1).replace("</body>", script, 1)


def main(arguments: list[str] | None = None) -> int:
    """Write the report page and say where it is; returns 0, or 2 for a fault in the file."""
    parser = argparse.ArgumentParser(prog="python -m lib.report", description=__doc__)
    add = parser.add_argument
    add("dialogs", help="file or folder: a log of dialogs, or a table with one row per reply")
    add("--columns", nargs="*", default=[], metavar="OURS=THEIRS", help="such as response=Reply")
    add("--given", action="append", default=[], metavar="GUESS=VALUE", help="such as bot=Ada")
    add("--accept", action="store_true", help="take the column names that the error would propose")
    add("--dry", action="store_true", help="say what was read, and stop")
    add("--turns", help="write what was read as Parquet, one row per reply, for the notebooks")
    add("--out", help="HTML file (default: build/report/<name>.html)")
    chosen = parser.parse_args(arguments)
    if not all("=" in pair for pair in chosen.columns + chosen.given):
        parser.error("--columns and --given take pairs such as response=Reply")
    columns, given = (dict(p.split("=", 1) for p in ps) for ps in (chosen.columns, chosen.given))
    try:
        try:
            turns = read(chosen.dialogs, columns, given)
        except DataError as error:
            columns = getattr(error, "suggested", {}) if chosen.accept else {}
            if not columns:
                raise
            turns = read(chosen.dialogs, columns, given)
        print(reading(turns))
        if chosen.turns:
            with written_whole(chosen.turns) as unfinished:
                turns.to_parquet(unfinished, index=False)
        if chosen.dry:
            return 0
        page = write_page(chosen.dialogs, columns, chosen.out, given)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        if "names in the file suggest" in str(error):
            print("To take them: --accept (make report: ACCEPT=1)", file=sys.stderr)
        return 2
    except OSError as error:
        way_out = "free space there, or name another place: --out (make report: PAGE=...)"
        print(f"error: cannot write: {error}.\nWhat to do: {way_out}", file=sys.stderr)
        return 1
    except papermill.PapermillExecutionError as error:
        print(f"error: {error.ename}: {error.evalue}", file=sys.stderr)
        return 1
    print(f"report: {os.path.relpath(page)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
