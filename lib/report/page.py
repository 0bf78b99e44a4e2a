"""A report as a page for others: one HTML file without network, Markdown, or JSON."""

import base64
import hashlib
import html
import io
import json
import re
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from jinja2 import Environment, FileSystemLoader, select_autoescape
from matplotlib.figure import Figure

from lib.report.plots import profile_plot, quantile_plot
from lib.report.result import Report

HERE = Path(__file__).parent
SECTIONS = tomllib.loads((HERE / "sections.toml").read_text("utf-8"))["section"]
P_VALUES = ("p", "p_adjusted", "powered_p")
MARKDOWN_SYMBOLS = re.compile(r"([\\`*_\[\]|~$#])")


def render_html(report: Report, title: str) -> str:
    """The report as one self-contained HTML page; its only script sorts the tables.

    Every text of the user's file stays a text. Without JavaScript the tables cannot be sorted.
    """
    script = (HERE / "sorting.js").read_text("utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    policy = f"script-src 'sha256-{base64.b64encode(digest).decode()}'"
    return _render(
        "page.html", report, title=title, script=script, script_policy=policy
    )


def render_markdown(report: Report, title: str) -> str:
    """The report as Markdown, for the summary of a CI job; a figure is described in words."""
    return _render("page.md", report, title=title)


def render_json(report: Report, title: str) -> str:
    """The report as JSON, for a program: each table by its caption, a list of rows.

    A missing value is null; an empty table is left out.
    """
    tables = {}
    for section in SECTIONS:
        for part in section["part"]:
            table = as_table(getattr(report, part.get("table", ""), []))
            if len(table):
                tables[part["caption"]] = json.loads(table.to_json(orient="records"))
    return json.dumps({"title": title, "tables": tables}, ensure_ascii=False)


def _render(template: str, report: Report, **values: str) -> str:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
    )
    environment.filters |= {
        "md": escape_markdown,
        "table": table_to_print,
        "cell": format_cell,
    }
    figures = {"quantiles": _image(quantile_plot(report.turns, report.scores, "yours"))}
    if report.profile["z"].notna().any():
        figures["profile"] = _image(profile_plot(report.profile))
    page = environment.get_template(template)
    return page.render(report=report, sections=SECTIONS, figures=figures, **values)


def as_table(rows: pd.DataFrame | list) -> pd.DataFrame:
    """A table, or a list of dataclasses, as a table without a named index.

    >>> as_table(pd.DataFrame({"n": [1]}, index=pd.Index(["a"], name="agent"))).columns.tolist()
    ['agent', 'n']
    """
    table = pd.DataFrame(rows)
    return table.reset_index() if any(table.index.names) else table


def table_to_print(rows: pd.DataFrame | list) -> pd.DataFrame:
    """`as_table`, with a p below .001 as "< .001": smaller ones say nothing more.

    >>> table_to_print(pd.DataFrame({"p": [0.0, 0.02]}))["p"].tolist()
    ['< .001', 0.02]
    """
    table = as_table(rows)
    for column in table.columns.intersection(P_VALUES):
        p = table[column]
        table[column] = p.astype(object).mask(p < 0.001, "< .001")
    return table


def format_cell(cell: object) -> object:
    """A number with three significant digits, a text in one line, nothing for a missing value.

    >>> [format_cell(cell) for cell in (1.23456, "two  words", float("nan"), 7)]
    [1.23, 'two words', '', 7]
    """
    if isinstance(cell, str):
        return " ".join(cell.split())
    if cell is None or cell != cell:
        return ""
    return float(f"{cell:.3g}") if isinstance(cell, float) else cell


def escape_markdown(text: object) -> str:
    r"""A text in one line, with every symbol escaped that Markdown or HTML would read.

    >>> print(escape_markdown("a|b <i>"))
    a\|b &lt;i&gt;
    """
    line = " ".join(str(text).split())
    line = html.escape(line, quote=False).replace("://", "&#58;//")
    return MARKDOWN_SYMBOLS.sub(r"\\\1", line).replace(r"&\#", "&#")


def _image(figure: Figure) -> dict[str, str]:
    """A figure as PNG in base64, and its label, for readers who cannot see it."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    plt.close(figure)
    png = base64.b64encode(file.getvalue()).decode()
    return {"png": png, "label": figure.get_label()}
