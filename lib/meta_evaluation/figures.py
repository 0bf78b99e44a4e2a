"""The figures of meta-evaluation."""

import textwrap
from collections.abc import Collection, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from lib import ROOT, metrics
from lib.data import DataError
from lib.data.storage import read_json
from lib.meta_evaluation.evaluation_sets import metric_family, sort_by_family
from lib.meta_evaluation.replication.endex_table2 import METHODS, Models, seed_means

MARKED = "tab:orange"
NAMES = read_json(ROOT / "data" / "display_names.json")


def display_name(name: str) -> str:
    """A metric, corpus or rating as people write it; without underscores where no name is known.

    >>> display_name("fed_engaging[smollm2]"), display_name("my_metric")
    ('FED engaging (SmolLM2)', 'my metric')
    """
    base, _, model = name.partition("[")
    text = NAMES.get(base, base.replace("_", " "))
    return f"{text} ({display_name(model[:-1])})" if model else text


def heat_map(table: pd.DataFrame, title: str) -> Figure:
    """Metrics x evaluation sets: colour is the correlation, the small figures its interval.

    A framed cell belongs to the best significance cluster of its set; a starred one was not ranked
    (it scores too few of the items); an empty cell has no value (the metric needs references,
    say). `table` is the result of `correlation_overview`; rows of rank 0 are the noise ceiling of
    each set, written below the cells.

    >>> frame = pd.DataFrame({"corpus": ["a"], "metric": ["bleu4"], "value": [0.2], "low": [0.1],
    ...                       "high": [0.3], "n": [100], "rank": [1.0], "rating": ["overall"]})
    >>> len(heat_map(frame, "one cell").axes)
    2
    """
    limit = table[table["rank"] == 0]
    table = table[table["rank"] != 0]
    metrics = sort_by_family(table["metric"])
    sets = list(dict.fromkeys(table["corpus"]))
    lines = [*metrics, *limit["metric"].unique()]
    width = 4.5 + 0.8 * len(sets)
    height = 1.4 + 0.36 * len(lines)
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.set_title(title, pad=24, loc="left")
    values = table.pivot(index="metric", columns="corpus", values="value")
    values = values.reindex(index=lines, columns=sets).astype(float)
    image = axes.imshow(values, cmap="RdBu", vmin=-0.8, vmax=0.8, aspect="auto")
    rows = pd.concat([table, limit]).dropna(subset="value")
    for row in rows.itertuples():
        x = sets.index(row.corpus)
        y = lines.index(row.metric)
        _cell(axes, x, y, row)

    heads = table.groupby("corpus").agg({"rating": "first", "n": "max"})
    heads = heads.loc[sets]
    names = []
    for corpus, head in heads.iterrows():
        name = textwrap.fill(display_name(corpus), 11, break_long_words=False)
        names.append(f"{name}\nn={head['n']}")
    axes.set_xticks(range(len(sets)), names, fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(lines)), map(display_name, lines), fontsize=8)
    axes.grid(False)
    families = [metric_family(line) for line in lines]
    for start in _starts(families):
        axes.axhline(start - 0.5, color="black", linewidth=1)
    ratings = heads["rating"].map(display_name).tolist()
    for start in _starts(ratings):
        axes.axvline(start - 0.5, color="black", linewidth=1)
        text = f"rated: {ratings[start]}"
        axes.text(start - 0.45, -2.1, text, fontsize=8, style="italic")
    figure.colorbar(image, ax=axes, shrink=0.5, label="correlation with human ratings")
    if table["rank"].isna().any():
        axes.set_xlabel(
            "* not ranked: scores too few of the items", loc="right", fontsize=8
        )
    return figure


def _starts(names: Sequence[str]) -> np.ndarray:
    """Where a run of equal names starts."""
    names = pd.Series(names)
    return np.flatnonzero(names != names.shift())


def _cell(axes: Axes, x: int, y: int, row: tuple) -> None:
    colour = "white" if abs(row.value) > 0.55 and row.rank != 0 else "black"
    style = {"ha": "center", "va": "center", "color": colour}
    star = "*" if np.isnan(row.rank) else ""
    axes.text(x, y - 0.14, f"{row.value:z.2f}{star}", fontsize=8, **style)
    if not np.isnan(row.low):
        interval = f"{row.low:z.2f} to {row.high:z.2f}"
        axes.text(x, y + 0.24, interval, fontsize=5.5, **style)
    if row.rank == 1:
        corner = (x - 0.47, y - 0.46)
        frame = plt.Rectangle(
            corner,
            width=0.94,
            height=0.92,
            fill=False,
            linewidth=1.6,
            edgecolor="black",
        )
        axes.add_patch(frame)


def interval_plot(table: pd.DataFrame, names: str) -> Figure:
    """Points with their intervals, one line per row (columns `names`, value, low, high).

    A column `limit` is marked by a diamond: what a metric could reach there.

    >>> frame = pd.DataFrame({"metric": ["a"], "value": [0.2], "low": [0.1], "high": [0.3]})
    >>> len(interval_plot(frame, "metric").axes)
    1
    """
    figure, axes = plt.subplots(figsize=(6.5, 0.9 + 0.34 * len(table)))
    y = np.arange(len(table))[::-1]
    axes.hlines(y, table["low"], table["high"], color="0.55", linewidth=2)
    axes.plot(table["value"], y, "o", color="C0")
    if "limit" in table:
        axes.plot(table["limit"], y, "D", color="C1", label="limit for a metric")
    axes.set_yticks(y, map(display_name, table[names]))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_ylim(-0.6, len(table) - 0.4)
    return figure


def draw_limit(axes: Axes, limit: Sequence[float]) -> None:
    """Mark what a metric can reach: a dotted line at `limit[0]`, its interval (1, 2) shaded.

    `limit` is the result of `agreement.noise_ceiling`; nothing is drawn where it is NaN.

    >>> axes = plt.figure().add_subplot()
    >>> draw_limit(axes, (0.8, 0.7, 0.9))
    >>> len(axes.lines)
    1
    """
    value, low, high = limit
    if not np.isnan(value):
        axes.axvspan(low, high, color="C1", alpha=0.15, linewidth=0)
        axes.axvline(value, color="C1", linestyle=":", label="limit for a metric")


def correlation_map(
    metrics: pd.DataFrame, marked: Collection[str]
) -> sns.matrix.ClusterGrid:
    """Correlate metrics and join them by average linkage on the distance 1 - |r| (Figure 2).

    "Clustered based on absolute correlations": a metric and its negative are neighbours; the cells
    keep the sign. Metrics in `marked` are bold, and a branch is orange where all metrics under it
    are marked, as the psychological metrics are in the paper. `metrics` is (rows, metrics); NaN is
    left out pair by pair.

    Raises:
        DataError: for a metric without a correlation (constant, or never beside another one).

    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [-1.0, -2, -3, -5], "c": [1.0, 0, 0, 1]})
    >>> correlation_map(frame, marked={"c"}).data2d.columns.tolist()
    ['c', 'a', 'b']
    """
    r = metrics.corr()
    constant = r.columns[r.isna().all()]
    undefined = constant if len(constant) else r.columns[r.isna().any()]
    if len(undefined):
        problem = f"{undefined.tolist()} have no correlation with the others"
        raise DataError(problem, fix="leave them out")
    distance = (1 - r.abs()).clip(lower=0).to_numpy()
    tree = hierarchy.average(squareform(distance, checks=False))
    all_marked = [name in marked for name in r]  # of each metric, then of each branch
    for left, right, *_ in tree:
        all_marked.append(all_marked[int(left)] and all_marked[int(right)])
    colours = [MARKED if is_marked else "0.35" for is_marked in all_marked]
    dendrogram = hierarchy.dendrogram(
        tree, no_plot=True, link_color_func=colours.__getitem__
    )
    size = 3.0 + 0.62 * len(r)
    grid = sns.clustermap(
        r,
        row_linkage=tree,
        col_linkage=tree,
        figsize=(size, size),
        cmap="RdBu",
        vmin=-1,
        vmax=1,
        annot=True,
        fmt=".2f",
        annot_kws={"size": 8},
        tree_kws={"colors": dendrogram["color_list"]},
        cbar_pos=None,  # the numbers stand in the cells
    )
    for label in grid.ax_heatmap.get_yticklabels() + grid.ax_heatmap.get_xticklabels():
        if label.get_text() in marked:
            label.set(color=MARKED, fontweight="bold")
    return grid


def training_plot(models: Models) -> Figure:
    """Smoothed training loss by step, and validation AUC by epoch, a line per trained model."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.4))
    loss, auc = panels
    for (method, _), model in models.items():
        style = {"color": f"C{METHODS.index(method)}", "linewidth": 1, "label": method}
        smoothed = model.history["loss"].ewm(span=20).mean()
        loss.plot(model.history["step"], smoothed, **style)
        auc.plot(
            model.validation["epoch"], model.validation["auc"], marker="o", **style
        )
    loss.set(
        title="Training loss", xlabel="step", ylabel="cross entropy (nats, smoothed)"
    )
    lines, names = loss.get_legend_handles_labels()
    loss.legend(handles=dict(zip(names, lines, strict=True)).values())
    epochs = range(max(len(model.validation) for model in models.values()))
    auc.set(
        title="Validation",
        xlabel="epoch",
        ylabel="AUC on held-out threads",
        xticks=epochs,
    )
    return figure


def score_scatter(
    values: Mapping[str, pd.DataFrame], sets: Mapping, seed: int = 0
) -> Figure:
    """Mean EnDex score against the rating, one plot per set; the colour is the length.

    Ratings are shifted a little at random, so that equal ones do not hide each other. From 40 words
    on the colour stays the same.
    """
    size = (3.4 * len(sets), 3.2)
    figure, grid = plt.subplots(1, len(sets), figsize=size, squeeze=False, sharey=True)
    row = grid[0].tolist()
    for axes, (name, (turns, human)) in zip(row, sets.items(), strict=True):
        jitter = np.random.default_rng(seed).normal(0, 0.03, len(human))
        words = metrics.length(turns).clip(lower=1)
        score = seed_means(values[name])["EnDex"]
        x = human + jitter
        points = axes.scatter(x, score, s=8, c=words, norm=LogNorm(1, 40))
        axes.set(title=name, xlabel="human rating")
    row[0].set_ylabel("EnDex, mean of seeds")
    bar = figure.colorbar(points, ax=row, label="words in the reply", extend="max")
    ticks = [1, 2, 5, 10, 20, 40]
    bar.set_ticks(ticks, labels=map(str, ticks))
    bar.minorticks_off()
    return figure
