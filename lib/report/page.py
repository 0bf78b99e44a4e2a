"""A report as a page for others: one HTML file without network, Markdown, or JSON."""

import base64
import hashlib
import html
import io
import json
import re
import tomllib
from dataclasses import asdict
from numbers import Integral, Number
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from jinja2 import Environment, FileSystemLoader, Template, select_autoescape
from matplotlib.figure import Figure

from lib.meta_evaluation.figures import display_name
from lib.report.answer import NARROW, difference_plot, percent
from lib.report.chat import chat_lines, chat_until
from lib.report.history import SCHEMA_VERSION, history_plot
from lib.report.issues import evidence, words_seen
from lib.report.pairs import CONTEXT_SHOWN
from lib.report.plots import profile_plot, quantile_plot
from lib.report.result import Report
from lib.report.verdict import KEY

HERE = Path(__file__).parent
SCRIPTS = ("folds.js", "sorting.js", "pairs.js", "wide.js")
SECTIONS = tomllib.loads((HERE / "sections.toml").read_text("utf-8"))["section"]
COLUMNS = tomllib.loads((HERE / "columns.toml").read_text("utf-8"))
COLUMNS_OF_METRICS = {"metric", "metrics", "score", "scores", "rating"}
TABLES_OF_TEXTS = {"cases"}
MARKDOWN_SYMBOLS = re.compile(r"([\\`*_\[\]|~$#])")


def render_html(report: Report, title: str, texts: bool = True) -> str:
    """The report as one self-contained HTML page; its script sorts tables and searches pairs.

    Every text of the user's file stays a text. Without JavaScript the tables cannot be sorted, and
    all pairs are shown.

    Args:
        texts: whether replies are shown. Without them the page may be passed on.
    """
    scripts = [(HERE / name).read_text("utf-8") for name in SCRIPTS]
    script = "\n".join(scripts)
    digest = hashlib.sha256(script.encode()).digest()
    policy = f"script-src 'sha256-{base64.b64encode(digest).decode()}'"
    return _render(
        "page.html",
        report,
        title=title,
        texts=texts,
        figures=_figures(report),
        script=script,
        script_policy=policy,
        shown=CONTEXT_SHOWN,
        first=report.turns["system"].iloc[0],
        pairs=report.pairs.table.to_dict("records"),
        pair_order=_order_of_pairs(report),
        verdict_and_pairs=_verdict_and_pairs(report),
        examples=_example_dialogs(report),
        cases=_cases_in_dialogs(report) if texts else [],
    )


def render_markdown(report: Report, title: str, texts: bool = True) -> str:
    """The first screen as Markdown, for a comment or the summary of a CI job: no replies in it."""
    return _render("page.md", report, title=title, texts=texts)


def render_json(report: Report, title: str, texts: bool = True) -> str:
    """The report as JSON, for a program, as `docs/report.schema.json` describes it.

    Each table stands under the name that it has in `Report`, as a list of rows. A missing value is
    null. Without `texts`, tables that hold replies are empty.
    """
    names = ["picture", "examples", "levels"]
    for section in SECTIONS:
        names += [part["table"] for part in section["part"] if "table" in part]
    tables = {}
    for name in names:
        table = as_table(getattr(report, name))
        if name in TABLES_OF_TEXTS and not texts:
            table = table[:0]
        tables[name] = json.loads(table.to_json(orient="records"))
    pairs = report.pairs.table.drop(columns="context")
    tally = report.pairs.tally.to_json(orient="records")
    tables["pair_tally"] = json.loads(tally)
    tables["pairs"] = json.loads(pairs.to_json(orient="records")) if texts else []
    written = {
        "schema": SCHEMA_VERSION,
        "title": title,
        "answer": asdict(report.answer),
        "tables": tables,
    }
    return json.dumps(written, ensure_ascii=False)


def template(name: str) -> Template:
    """A template of this room, with the filters that write numbers and names for people."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
    )
    environment.filters |= {
        "md": escape_markdown,
        "table": as_table,
        "cell": format_cell,
        "head": column_head,
        "heads": table_heads,
        "shown": format_cells,
        "only": lambda table, columns: table.filter(columns),
        "is_number": is_number,
        "nobreak": join_units,
        "without_empty": without_empty_columns,
        "metric": metric_title,
        "anchor": issue_anchor,
        "tally": describe_tally,
    }
    return environment.get_template(name)


def _render(name: str, report: Report, *, texts: bool, **values) -> str:
    sections = SECTIONS
    if not texts:
        sections = [_without_texts(section) for section in SECTIONS]
    if report.history.empty:
        sections = [part for part in sections if not part.get("only_with_history")]
    return template(name).render(
        report=report,
        sections=sections,
        texts=texts,
        **values,
    )


def _without_texts(section: dict) -> dict:
    parts = [
        part for part in section["part"] if part.get("table") not in TABLES_OF_TEXTS
    ]
    return section | {"part": parts}


def _figures(report: Report) -> dict[str, dict[str, str]]:
    figures = {"quantiles": _image(quantile_plot(report.turns, report.scores, "yours"))}
    if report.profile["z"].notna().any():
        figures["profile"] = _image(profile_plot(report.profile))
    if len(report.history):
        figures["history"] = _image(history_plot(report.history))
    if len(report.picture):
        figures["differences"] = _image(difference_plot(report.picture))
        figures["narrow"] = _image(difference_plot(report.picture, NARROW), dpi=200)
    return figures


def _example_dialogs(report: Report) -> list[dict]:
    """The dialogs of `report.examples`, each with the lines of its chat."""
    examples = []
    values = _values_to_show(report)
    for row in report.examples.to_dict("records"):
        chosen = (
            (report.turns["system"] == row["version"])
            & (report.turns["agent"] == row["agent"])
            & (report.turns["dialog"] == row["dialog"])
        )
        lines = chat_lines(report.turns[chosen], values)
        examples.append(row | {"lines": lines})
    return examples


def _values_to_show(report: Report) -> pd.DataFrame:
    """The ratings of each reply, and the score that orders the dialogs."""
    values = report.turns.filter(regex="^human_")
    if report.score in report.scores:
        values = values.join(report.scores[report.score])
    return values


def _cases_in_dialogs(report: Report) -> list[dict]:
    """The replies of `report.cases`, each marked in the chat that it is part of."""
    values = _values_to_show(report)
    rows_of = report.turns.groupby(KEY, sort=False).groups
    cases = []
    for row in report.cases.to_dict("records"):
        replies = report.turns.loc[rows_of[row["system"], row["agent"], row["dialog"]]]
        in_question = (replies["turn"] == row["turn"]) & (
            replies["response"] == row["reply"]
        )
        label = replies.index[in_question][0]
        reply = replies.loc[label]
        seen = words_seen(
            row["metric"], reply["response"], reply["context"], reply.get("fact", [])
        )
        lines = chat_until(
            replies,
            label,
            values,
            around=CONTEXT_SHOWN,
            seen=lambda _, words=seen: words,
        )
        told = evidence(row["metric"], row["value"])
        cases.append(row | {"lines": lines, "evidence": told})
    return cases


def _order_of_pairs(report: Report) -> str:
    """Which pairs come first, in words: those that go with the verdicts (`pairs.reply_pairs`)."""
    verdicts = {row.verdict.removeprefix("leaning ") for row in report.verdicts}
    if len(report.verdicts) > 1:
        return "those that go with the verdict on their version"
    if verdicts == {"worse"}:
        return f"the largest losses of {report.verdicts[0].version}"
    if verdicts == {"better"}:
        return f"the largest gains of {report.verdicts[0].version}"
    return "the largest change"


def _verdict_and_pairs(report: Report) -> str:
    """Why the verdict may not agree with the tally of the reply pairs."""
    decided = {row.decided_by for row in report.verdicts} - {""}
    if not decided:
        return ""
    if len(report.rated_estimates):
        return (
            "The verdict can differ from this: it rests on the ratings of the sheet, which are of "
            "whole dialogs."
        )
    scored = "rated replies" if decided == {"rating"} else "replies with a score"
    return (
        "The verdict can differ from this: it compares the means over all "
        f"{scored} of each version, by how much they differ, and those in dialogs without a "
        "partner count too."
    )


def describe_tally(row: dict, score: str) -> str:
    """A row of `pairs.pair_tally` in a sentence.

    >>> row = {"version": "B", "against": "A", "lower": 18, "higher": 1200, "equal": 7}
    >>> describe_tally(row | {"missing": 2}, "human_fun")
    'Replies of B against those of A: 18 lower, 1,200 higher, 7 equal by fun, 2 without a value.'
    """
    counts = f"{row['lower']:,} lower, {row['higher']:,} higher, {row['equal']:,} equal"
    missing = f", {row['missing']:,} without a value" if row["missing"] else ""
    return (
        f"Replies of {row['version']} against those of {row['against']}: {counts} by "
        f"{metric_title(score)}{missing}."
    )


def issue_anchor(issue: str) -> str:
    """The id of the heading above the cases of an issue.

    >>> issue_anchor("cut off")
    'issue-cut-off'
    """
    return f"issue-{issue.replace(' ', '-')}"


def as_table(rows: pd.DataFrame | list) -> pd.DataFrame:
    """A table, or a list of dataclasses, as a table without a named index.

    >>> as_table(pd.DataFrame({"n": [1]}, index=pd.Index(["a"], name="agent"))).columns.tolist()
    ['agent', 'n']
    """
    table = pd.DataFrame(rows)
    return table.reset_index() if any(table.index.names) else table


def without_empty_columns(table: pd.DataFrame) -> pd.DataFrame:
    """A table without the columns that are empty in every row: a person would only scroll past.

    >>> table = pd.DataFrame({"n": [1, 0], "note": ["", ""], "low": [float("nan")] * 2})
    >>> without_empty_columns(table).columns.tolist()
    ['n']
    """
    filled = [(table[column].map(format_cell) != "").any() for column in table]
    return table.loc[:, filled]


def join_units(text: str) -> str:
    r"""A sentence in which no line breaks between a number and its per cent sign.

    >>> join_units("of 11 %")
    'of 11\xa0%'
    """
    return text.replace(" %", "\xa0%")


def column_head(column: str) -> dict[str, str]:
    """The title of a column and what it means, for a reader; a metric has its display name.

    >>> column_head("p_adjusted")["title"], column_head("bleu4_coco")["title"]
    ('p, adjusted', 'BLEU-4')
    """
    return COLUMNS.get(column, {"title": metric_title(column), "meaning": ""})


def table_heads(table: pd.DataFrame) -> list[dict]:
    """The columns of a table as a person reads it: both ends of an interval stand in one column.

    Returns:
        `column_head` of each; `columns`, its name and that of the column whose value stands in the
        same cell; `form`, how the two are put together.

    >>> [head["title"] for head in table_heads(pd.DataFrame(columns=["mean", "low", "high"]))]
    ['Mean', '95 % interval']
    """
    heads = []
    joined_before = set()
    for column in table.columns:
        if column in joined_before:
            continue
        head = column_head(column) | {"columns": [column], "form": "{}"}
        joined = COLUMNS.get(column, {}).get("joined")
        if joined and joined["with"] in table:
            joined_before.add(joined["with"])
            head |= {"title": joined["title"], "form": joined["form"]}
            head["columns"] = [column, joined["with"]]
        heads.append(head)
    return heads


def format_cells(head: dict, row: dict, like: dict[str, str]) -> str:
    """What stands under a head of `table_heads` in one row.

    Args:
        like: of a column, the one whose numbers it is written as.

    >>> head = {"columns": ["low", "high"], "form": "{} to {}"}
    >>> format_cells(head, {"low": -0.0462, "high": 0.1}, {"low": "change", "high": "change"})
    '-4.6 to +10 points'
    """
    texts = [format_cell(row[name], like.get(name, name)) for name in head["columns"]]
    if "" in texts:
        return texts[0]
    for unit in (" points", " %"):
        if texts[-1].endswith(unit):  # the unit stands once
            texts[:-1] = [text.removesuffix(unit) for text in texts[:-1]]
    return head["form"].format(*texts)


def metric_title(name: str) -> str:
    """A rating or metric as people write it.

    >>> metric_title("human_overall"), metric_title("bertscore_f1")
    ('overall', 'BERTScore')
    """
    return display_name(str(name).removeprefix("human_"))


def is_number(cell: object) -> bool:
    """Whether a cell holds a number: it is aligned at the right, and sorted by its value.

    >>> is_number(1.5), is_number("1.5"), is_number(True)
    (True, False, False)
    """
    return isinstance(cell, Number) and not isinstance(cell, bool)


def format_cell(cell: object, column: str = "") -> str:
    """A cell as a person reads it.

    A number has three significant digits, a share is in per cent, a change of a share in percentage
    points, a p below .001 is "< .001", a missing value is empty. A text stands in one line; the
    names of metrics are written out.

    >>> [format_cell(cell) for cell in (1.23456, 12345.6, "two  words", float("nan"), 7)]
    ['1.23', '12,346', 'two words', '', '7']
    >>> format_cell(0.00001, "p"), format_cell(0.123, "share"), format_cell("length", "metric")
    ('< .001', '12 %', 'length in words')
    >>> format_cell(-0.0462, "change")
    '-4.6 points'
    """
    if isinstance(cell, list | tuple):
        return ", ".join(format_cell(item, column) for item in cell)
    if isinstance(cell, str):
        if column in COLUMNS_OF_METRICS:
            names = cell.split(", ")
            return ", ".join(metric_title(name) for name in names)
        return " ".join(cell.split())
    if cell is None or cell != cell:
        return ""
    if not is_number(cell):
        return str(cell)
    kind = COLUMNS.get(column, {}).get("format", "")
    if kind == "p":
        if cell < 0.001:
            return "< .001"
        return f"{cell:.3f}"
    if kind == "points":
        return f"{percent(cell, signed=True)} points"
    if kind == "share":
        digits = ".3g" if cell < 0.1 else ".0f"
        value = round(100 * cell, 3)  # 9e-8 is 0 % for a reader
        return f"{value:{digits}} %"
    if abs(cell) >= 1000 or isinstance(cell, Integral):
        return f"{cell:,.0f}"
    return f"{float(f'{cell:.3g}'):.6g}"


def escape_markdown(text: object) -> str:
    r"""A text in one line, with every symbol escaped that Markdown or HTML would read.

    >>> print(escape_markdown("a|b <i>"))
    a\|b &lt;i&gt;
    """
    line = " ".join(str(text).split())
    line = html.escape(line, quote=False).replace("://", "&#58;//")
    return MARKDOWN_SYMBOLS.sub(r"\\\1", line).replace(r"&\#", "&#")


def _image(figure: Figure, dpi: int = 100) -> dict[str, str]:
    """A figure as PNG in base64, and its label, for readers who cannot see it."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", dpi=dpi)
    plt.close(figure)
    png = base64.b64encode(file.getvalue()).decode()
    return {"png": png, "label": figure.get_label()}
