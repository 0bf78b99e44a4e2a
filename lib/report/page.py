"""A run notebook as a page for others: one HTML file, Markdown, or JSON; no code, no network."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mistune
import pandas as pd
from IPython.display import display

HERE = Path(__file__).parent
LEFT_OUT = {"not-in-report", "injected-parameters", "parameters"}  # tags of cells
ROWS = "application/vnd.report.rows+json"  # a table as its rows, beside what is shown
MARKDOWN = mistune.create_markdown(escape=True, plugins=["table"])
MARKS = re.compile(r"([\\`*_\[\]|~$#])")  # that Markdown would read


def show(table: pd.DataFrame, caption: str) -> None:
    """Display a table with a caption, as HTML and as Markdown; every text in it stays a text.

    >>> show(pd.DataFrame({"reply": ["<b>"], "length": [1.23456]}), "One reply")
    {...<td>&lt;b&gt;</td>...<td>1.23</td>...}
    """
    table = table.reset_index() if any(table.index.names) else table
    text, name = table.map(_short).astype(object).where(table.notna(), ""), html.escape(caption)
    page = text.to_html(index=False, border=0).replace("<th>", '<th scope="col">')
    page = re.sub("<td>(?=[^<]{60})", '<td class="long">', page)
    page = page.replace("<thead>", f"<caption>{name}</caption><thead>", 1)
    page = f'<div class="wide" role="region" tabindex="0" aria-label="{name}">{page}</div>'
    marked = text.map(_escaped).rename(columns=_escaped)
    marked = marked.to_markdown(index=False, disable_numparse=True)
    rows = {"caption": caption, "rows": json.loads(table.to_json(orient="records"))}
    bundle = {"text/html": page, "text/markdown": f"*{_escaped(caption)}*\n\n{marked}\n"}
    display(bundle | {ROWS: rows, "text/plain": str(table)}, raw=True)


def _short(cell: object) -> object:
    """A number with three digits, a text in one line."""
    if isinstance(cell, str):
        return " ".join(cell.split())
    return float(f"{cell:.3g}") if isinstance(cell, float) else cell


def _escaped(cell: object) -> str:
    text = html.escape(" ".join(str(cell).split()), quote=False).replace("://", "&#58;//")
    return MARKS.sub(r"\\\1", text).replace(r"&\#", "&#")


def _pieces(notebook: dict[str, Any], title: str) -> Iterator[tuple[str, str]]:
    """What the page shows, in order: each piece as HTML and as Markdown."""
    yield f"<h1>{html.escape(title)}</h1>", f"# {_escaped(title)}"
    cells = [c for c in notebook["cells"] if not LEFT_OUT & set(c["metadata"].get("tags", []))]
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            # links to other notebooks lead nowhere from here
            source = re.sub(r"\[([^\]]+)\]\([^)]+\.ipynb\)", r"\1", "".join(cell["source"]))
            if place == 0:  # its question, not its bookkeeping
                source = source.split("*You will learn*")[0].partition("\n")[2]
            yield MARKDOWN(source), source.strip()
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if output.get("name") == "stdout":
                yield f"<pre>{html.escape(output['text'])}</pre>", f"```\n{output['text']}```"
            elif image := data.get("image/png"):
                # for who cannot see it
                words = output["metadata"].get("image/png", {}).get("alt", "")
                shown = f'alt="{html.escape(words)}" src="data:image/png;base64,{image.strip()}"'
                yield f"<img {shown}>", f"*Figure: {_escaped(words)}*"
            elif "text/markdown" in data:
                yield data["text/html"], data["text/markdown"].strip()


def to_html(notebook: dict[str, Any], title: str) -> str:
    """A notebook as one self-contained HTML page that runs no script but ours, which sorts tables.

    `title` replaces the notebook's own. Cells tagged `not-in-report` (exercises, links between
    notebooks) and all code are left out. Without JavaScript the tables stay as they are.

    >>> "<h1>t</h1>" in to_html({"cells": []}, "t")
    True
    """
    body = "\n".join(page for page, _ in _pieces(notebook, title))
    body = re.sub(r"<h2>(\d+)", r'<h2 id="s\1">\1', body)
    sections = re.findall(r'<h2 id="(s\d+)">(.*?)</h2>', body)
    links = "".join(f'<li><a href="#{place}">{name}</a></li>' for place, name in sections)
    style, script = (f"\n{(HERE / n).read_text('utf-8')}" for n in ("page.css", "sorting.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    policy += f"script-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style></head>
<body><nav aria-label="Contents"><ul>{links}</ul></nav><main>
{body}
</main><script>{script}</script></body></html>
"""


def to_markdown(notebook: dict[str, Any], title: str) -> str:
    """The same as Markdown, for the summary of a CI job; a figure is told in words.

    >>> to_markdown({"cells": []}, "t")
    '# t\\n'
    """
    return "\n\n".join(filter(None, (text for _, text in _pieces(notebook, title)))) + "\n"


def notebook_tables(notebook: dict[str, Any]) -> dict[str, list[dict]]:
    """The rows of every table that `show` displayed, by its caption; missing is None.

    >>> notebook_tables({"cells": []})
    {}
    """
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    found = [output["data"][ROWS] for output in outputs if ROWS in output.get("data", {})]
    return {table["caption"]: table["rows"] for table in found}


def to_json(notebook: dict[str, Any], title: str) -> str:
    """The same as JSON, for a program: each table by its caption, a list of rows; missing is null.

    >>> to_json({"cells": []}, "t")
    '{"title": "t", "tables": {}}'
    """
    return json.dumps({"title": title, "tables": notebook_tables(notebook)}, ensure_ascii=False)
