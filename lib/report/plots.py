"""The figures of a report: each has a label that says in words what it shows."""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from lib.meta_evaluation.figures import display_name
from lib.report.profiles import PSYCHOLOGY
from lib.report.validity import reference_table

MAX_GROUPS = 12  # agents or systems that a figure can show legibly
#: Metrics of `quantile_plot`, in this order, where they were computed.
QUANTILE_METRICS = [
    "length",
    "specificity",
    "context_similarity",
    "reference_similarity",
    "rouge_l_coco",
    *PSYCHOLOGY,
]
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


def strip_symbols(label: str) -> str:
    """A label without symbols that figure fonts lack (emoji and other rare ones), and no formula.

    >>> strip_symbols("Ada \U0001f916")
    'Ada'
    """
    printable = "".join(symbol for symbol in label if ord(symbol) < 0x2190)
    return printable.replace("$", r"\$").strip() or "?"


def score_quantiles(scores: pd.DataFrame, corpus: str) -> pd.DataFrame:
    """Five quantiles of every metric: what a corpus looks like, without its texts.

    Columns corpus, metric, n, q05, q25, q50, q75, q95; metrics without values are left out.

    >>> score_quantiles(pd.DataFrame({"length": [1.0, 2.0, 3.0]}), "toy")["q50"].tolist()
    [2.0]
    >>> len(score_quantiles(pd.DataFrame({"length": [None]}, dtype=float), "toy"))
    0
    """
    scores = scores.dropna(axis=1, how="all")
    table = scores.quantile(list(QUANTILES.values())).T
    table = table.set_axis([*QUANTILES], axis=1)
    table = table.assign(corpus=corpus, n=scores.notna().sum())
    table = table.rename_axis("metric").reset_index()
    return table[["corpus", "metric", "n", *QUANTILES]]


def quantile_plot(turns: pd.DataFrame, scores: pd.DataFrame, prefix: str) -> Figure:
    """Each metric: middle half (bar), middle 90 % (line) and median (dot) of each corpus.

    In colour those of the file's systems (all as one, if many), with `prefix` before their names;
    below them the public corpora, as notebook 14 recorded them in `14_reference_quantiles.csv`.

    >>> turns = pd.DataFrame({"system": ["A", "A", "A"]})
    >>> len(quantile_plot(turns, pd.DataFrame({"length": [1.0, 2.0, 3.0]}), "mine").axes)
    1
    """
    systems = turns["system"]
    if systems.nunique() > MAX_GROUPS:
        systems = pd.Series(f"all {systems.nunique()} systems", systems.index)
    tables = []
    for name, group in scores.groupby(systems, sort=False):
        tables.append(
            score_quantiles(group, f"{prefix}: {name}").assign(source="your file")
        )
    file_quantiles = pd.concat(tables)
    public_quantiles = reference_table(
        "14_reference_quantiles", ["corpus", "metric", "n", *QUANTILES]
    )
    public_quantiles["corpus"] = public_quantiles["corpus"].map(display_name)
    table = pd.concat(
        [file_quantiles, public_quantiles.assign(source="public corpora")]
    )
    table["label"] = table["corpus"].map(strip_symbols)
    metrics = [
        name for name in QUANTILE_METRICS if name in set(file_quantiles["metric"])
    ]
    lines = {("q05", "q95"): 1.5, ("q25", "q75"): 8}
    figure = _panels(table, metrics, lines=lines, dot="q50")

    texts = []
    for metric in metrics:
        rows = table[table["metric"] == metric]
        for source, group in rows.groupby("source", sort=False):
            low = group["q50"].min().round(2)
            high = group["q50"].max().round(2)
            texts.append(f"{display_name(metric)} {low:g} to {high:g} ({source})")
    figure.set_label(f"Quantiles of each corpus. Medians: {'; '.join(texts)}.")
    return figure


def profile_plot(profile: pd.DataFrame) -> Figure:
    """Each agent's profile: means in standard deviations of turns, with their intervals.

    Of more than twelve agents only the twelve that lie farthest out.

    >>> row = {"system": "A", "agent": "A", "metric": "length"}
    >>> row |= {"z": 0.2, "z_low": 0.0, "z_high": 0.4}
    >>> profile_plot(pd.DataFrame([row])).get_label()
    'Means of 1 agents. length in words: highest A (+0.2), lowest A (+0.2).'
    """
    label = profile["system"] + ": " + profile["agent"]
    label = profile["agent"].where(profile["agent"] == profile["system"], label)
    table = profile.assign(label=label.map(strip_symbols), source="").dropna(subset="z")
    z = table.pivot_table("z", "label", "metric", sort=False)
    outermost = z.abs().max(axis=1).nlargest(MAX_GROUPS).index
    table = table[table["label"].isin(outermost)]
    figure = _panels(
        table,
        list(z),
        lines={("z_low", "z_high"): 4},
        dot="z",
        shared_axis="standard deviations of turns",
    )

    texts = []
    for metric, values in z.items():
        highest = f"highest {values.idxmax()} ({values.max():+.1f})"
        texts.append(
            f"{display_name(metric)}: {highest}, "
            f"lowest {values.idxmin()} ({values.min():+.1f})"
        )
    figure.set_label(f"Means of {len(z)} agents. {'; '.join(texts)}.")
    return figure


def _panels(
    table: pd.DataFrame,
    metrics: list[str],
    lines: dict[tuple[str, str], float],
    dot: str,
    shared_axis: str = "",
) -> Figure:
    """A panel per metric, in it a row per `label`: lines between two columns, and a dot.

    `lines` maps the two columns to the line's width. `shared_axis` labels the axis that all panels
    share; without it each has its own.
    """
    height = 0.9 + 0.27 * table["label"].nunique()
    grid = sns.FacetGrid(
        table,
        col="metric",
        col_order=metrics,
        col_wrap=min(3, len(metrics)),
        hue="source",
        palette=["C1", "0.6"],
        sharex=bool(shared_axis),
        height=height,
        aspect=3.4 / height,
    )
    for (low, high), width in lines.items():
        grid.map(plt.hlines, "label", low, high, linewidth=width)
    grid.map(
        plt.scatter, dot, "label", s=45, color="black", edgecolor="white", zorder=3
    )
    grid.set_axis_labels(shared_axis, "")
    for metric, axes in grid.axes_dict.items():
        axes.set_title(display_name(metric))
    grid.axes.flat[0].invert_yaxis()
    return grid.figure
