"""Clean an executed notebook, so that two runs of the same code give the same bytes."""

from __future__ import annotations

import nbformat
from nbformat import NotebookNode

INJECTED = "injected-parameters"


def clean(notebook: NotebookNode) -> NotebookNode:
    """Return a copy without run metadata, progress bars and papermill's own cells.

    Kept are sources, tags, and outputs. Removed are the injected parameters cell and error
    banners of papermill, timings, standard error (progress bars and warnings about threads, which
    differ from run to run), widgets and transient display data. Cells are renumbered 1..n.

    >>> cell = nbformat.v4.new_code_cell("1 + 1", execution_count=7, id="c01")
    >>> clean(nbformat.v4.new_notebook(cells=[cell])).cells[0].execution_count
    1
    """
    result = nbformat.v4.new_notebook()
    result.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    count = 0
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if INJECTED in tags or any(tag.startswith("papermill-error") for tag in tags):
            continue
        kept = NotebookNode(cell.copy())
        kept.metadata = NotebookNode({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            count += 1
            executed = cell.get("execution_count") is not None
            kept.execution_count = count if executed else None
            kept.outputs = _outputs(cell.get("outputs", []), kept.execution_count)
        result.cells.append(kept)
    return result


def _outputs(outputs: list[NotebookNode], count: int | None) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in outputs:
        output = NotebookNode(output.copy())
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            # How the kernel cuts one stream into messages depends on timing.
            if kept and kept[-1].output_type == "stream":
                kept[-1].text += output.text
                continue
        if any("widget" in mime for mime in output.get("data", {})):
            continue
        if output.output_type == "execute_result":
            output.execution_count = count
        if "metadata" in output:
            output.metadata = NotebookNode({})
        kept.append(output)
    return kept


def put_outputs_back(source: NotebookNode, executed: NotebookNode) -> NotebookNode:
    """Return the source notebook with the outputs of its cleaned, executed copy.

    The source keeps its own default parameters: what a profile injected is not written back.

    Raises
    ------
    ValueError
        When the two do not hold the same cells.
    """
    result, outputs = clean(source), clean(executed)
    if [c.source for c in result.cells] != [c.source for c in outputs.cells]:
        raise ValueError("the executed copy does not hold the cells of the source notebook")
    for kept, ran in zip(result.cells, outputs.cells, strict=True):
        if kept.cell_type == "code":
            kept.outputs, kept.execution_count = ran.outputs, ran.execution_count
    return result


def write(notebook: NotebookNode, path) -> None:
    """Write a notebook the same way every time (sorted keys, one-space indent, final newline)."""
    nbformat.validate(notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")
