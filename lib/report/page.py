"""Notebook 11 run on a user's file and exported as one HTML page."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nbformat
import papermill
from nbconvert import HTMLExporter

from lib import ROOT
from lib.report.reading import read

NOTEBOOK = ROOT / "notebooks" / "11_score_your_own_chatbot.ipynb"
SORTING = Path(__file__).with_name("sorting.js")

# Texts read better from the left, and a page for a colleague needs no full window width. The arrow
# of a sorted column is drawn by its aria-sort, so that what is seen and what is read aloud agree.
STYLE = """
body {max-width: 60em; margin: auto;}
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th {text-align: left !important;}
th button {all: unset; cursor: pointer;}
th button:hover, th button:focus-visible {text-decoration: underline;}
th button:focus-visible {outline: 2px solid;}
th button::after {content: "\\a0\\2195"; opacity: 0.4;}
th[aria-sort] button::after {opacity: 1;}
th[aria-sort="ascending"] button::after {content: "\\a0\\2191";}
th[aria-sort="descending"] button::after {content: "\\a0\\2193";}
@media print {th:not([aria-sort]) button::after {content: none;}}
"""


def write_page(
    dialogs: Path | str,
    columns: Mapping[str, str] | None = None,
    out: Path | str | None = None,
    code: bool = False,
) -> Path:
    """Run notebook 11 on `dialogs` and write the page; returns where it is.

    Parameters
    ----------
    dialogs : CSV, TSV, JSONL, JSON or Parquet file (see `read`).
    columns : our column name -> the file's.
    out : HTML file; by default `build/report/<name of the file>.html`.
    code : also show the code cells.

    The file is read once before anything else, so that a fault in it is reported at once. Raises
    `DataError` for such a fault and `papermill.PapermillExecutionError` for one in the notebook.
    """
    dialogs = Path(dialogs).resolve()
    read(dialogs, columns)
    out = Path(out) if out else ROOT / "build" / "report" / f"{dialogs.stem}.html"
    with tempfile.TemporaryDirectory() as folder:
        ran = Path(folder) / "report.ipynb"
        papermill.execute_notebook(
            NOTEBOOK,
            ran,
            parameters={"DIALOGS": str(dialogs), "COLUMNS": dict(columns or {})},
            kernel_name="python3",
            progress_bar=True,
            cwd=ROOT,
        )
        notebook = nbformat.read(ran, as_version=4)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(to_html(notebook, f"Report on {dialogs.name}", code), encoding="utf-8")
    return out


def to_html(notebook: nbformat.NotebookNode, title: str, code: bool = False) -> str:
    """A notebook as one self-contained HTML page.

    `title` replaces the notebook's own. Cells tagged `not-in-report` (exercises, links between
    notebooks) and, unless asked for, all code are left out. The page loads nothing from the
    network: the exporter's scripts (formulas, widgets), which would, are replaced by one of ours,
    which sorts a table by a click on a header. Without JavaScript the tables stay as they are.

    >>> cell = nbformat.v4.new_markdown_cell("# Title")
    >>> "<h1" in to_html(nbformat.v4.new_notebook(cells=[cell]), "t")
    True
    """
    kept = nbformat.v4.new_notebook(metadata=notebook.metadata)
    hidden = {"not-in-report", "injected-parameters", "parameters"}
    kept.cells = [c for c in notebook.cells if not hidden & set(c.metadata.get("tags", []))]
    for cell in kept.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
        else:  # links to other notebooks lead nowhere from a page of its own
            cell.source = re.sub(r"\[([^\]]+)\]\([^)]+\.ipynb\)", r"\1", cell.source)
    if kept.cells and kept.cells[0].cell_type == "markdown":  # its question, not its bookkeeping
        question = kept.cells[0].source.split("*You will learn*")[0]
        kept.cells[0].source = re.sub(r"\A# .*", f"# {title}", question)
    exporter = HTMLExporter(exclude_input=not code, exclude_output_prompt=True)
    exporter.embed_images = True
    body, _ = exporter.from_notebook_node(kept, resources={"metadata": {"name": title}})
    page = re.sub(r"<script\b.*?</script>", "", body, flags=re.DOTALL | re.IGNORECASE)
    page = page.replace("</head>", f"<style>{STYLE}</style></head>", 1)
    sorting = SORTING.read_text(encoding="utf-8")
    return page.replace("</body>", f"<script>\n{sorting}</script></body>", 1)
