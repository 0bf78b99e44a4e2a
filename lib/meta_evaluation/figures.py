"""The figures of meta-evaluation."""

import textwrap
from collections.abc import Collection, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
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
NAMES = read_json(ROOT / "data" / "names.json")


def display_name(name: str) -> str:
    """A metric, corpus or rating as people write it; without underscores where no name is known.

    >>> display_name("fed_engaging[smollm2]"), display_name("my_metric")
    ('FED engaging (SmolLM2)', 'my metric')
    """
    base, _, model = name.partition("[")
    text = NAMES.get(base, base.replace("_", " "))
    return f"{text} ({display_name(model[:-1])})" if model else text


def heat_map(table: pd.DataFrame, title: str) -> Figure:
    """Metrics x evaluation sets: colour is the correlation, the small print its interval.

    A framed cell belongs to the best significance cluster of its set; a starred one was not ranked
    (it scores too few of the items); an empty place has no value (the metric needs references,
    say). `table` is the result of `overview`; rows of rank 0 are the limit of each set, written
    below the cells.

    >>> frame = pd.DataFrame({"corpus": ["a"], "metric": ["bleu4"], "value": [0.2], "low": [0.1],
    ...                       "high": [0.3], "n": [100], "rank": [1.0], "rating": ["overall"]})
    >>> len(heat_map(frame, "one cell").axes)
    2
    """
    limit, table = table[table["rank"] == 0], table[table["rank"] != 0]
    metrics, sets = sort_by_family(table["metric"]), list(dict.fromkeys(table["corpus"]))
    lines = [*metrics, *limit["metric"].unique()]
    size = (4.5 + 0.8 * len(sets), 1.4 + 0.36 * len(lines))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    axes.set_title(title, pad=24, loc="left")
    values = table.pivot(index="metric", columns="corpus", values="value").astype(float)
    values = values.reindex(index=lines, columns=sets)
    image = axes.imshow(values, cmap="RdBu", vmin=-0.8, vmax=0.8, aspect="auto")
    for row in pd.concat([table, limit]).dropna(subset="value").itertuples():
        _cell(axes, sets.index(row.corpus), lines.index(row.metric), row)
    heads = table.groupby("corpus").agg({"rating": "first", "n": "max"}).loc[sets]
    names = [textwrap.fill(display_name(name), 11, break_long_words=False) for name in sets]
    axes.set_xticks(range(len(sets)), map("{}\nn={}".format, names, heads["n"]), fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(lines)), map(display_name, lines), fontsize=8)
    axes.grid(False)
    families, ratings = [metric_family(line) for line in lines], heads["rating"].tolist()
    for place in _starts(families):
        axes.axhline(place - 0.5, color="black", linewidth=1)
    for place in _starts(ratings):
        axes.axvline(place - 0.5, color="black", linewidth=1)
        said = f"rated: {display_name(ratings[place])}"
        axes.text(place - 0.45, -2.1, said, fontsize=8, style="italic")
    figure.colorbar(image, ax=axes, shrink=0.5, label="correlation with human ratings")
    if table["rank"].isna().any():
        axes.set_xlabel("* not ranked: scores too few of the items", loc="right", fontsize=8)
    return figure


def _starts(names: list[str]) -> list[int]:
    return [n for n, name in enumerate(names) if names[n - 1 : n] != [name]]


def _cell(axes, x: int, y: int, row) -> None:
    colour = "white" if abs(row.value) > 0.55 and row.rank != 0 else "black"
    value = f"{row.value:z.2f}" + ("*" if np.isnan(row.rank) else "")
    axes.text(x, y - 0.14, value, ha="center", va="center", fontsize=8, color=colour)
    if not np.isnan(row.low):
        interval = f"{row.low:z.2f} to {row.high:z.2f}"
        axes.text(x, y + 0.24, interval, ha="center", va="center", fontsize=5.5, color=colour)
    if row.rank == 1:
        look = {"fill": False, "linewidth": 1.6, "edgecolor": "black"}
        axes.add_patch(plt.Rectangle((x - 0.47, y - 0.46), 0.94, 0.92, **look))


def interval_plot(table: pd.DataFrame, names: str) -> Figure:
    """Points with their intervals, one line per row (columns `names`, value, low, high).

    A column `limit` is marked by a diamond: what a metric could reach there.

    >>> frame = pd.DataFrame({"metric": ["a"], "value": [0.2], "low": [0.1], "high": [0.3]})
    >>> len(interval_plot(frame, "metric").axes)
    1
    """
    figure, axes = plt.subplots(figsize=(6.5, 0.9 + 0.34 * len(table)))
    place = np.arange(len(table))[::-1]
    axes.hlines(place, table["low"], table["high"], color="0.55", linewidth=2)
    axes.plot(table["value"], place, "o", color="C0")
    if "limit" in table:
        axes.plot(table["limit"], place, "D", color="C1", label="limit for a metric")
    axes.set_yticks(place, map(display_name, table[names]))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_ylim(-0.6, len(table) - 0.4)
    return figure


def draw_limit(axes, limit: Sequence[float]) -> None:
    """Mark what a metric can reach: a dotted line at `limit[0]`, its interval (1, 2) shaded.

    `limit` is what `agreement.metric_limit` gives; nothing is drawn where it is NaN.

    >>> axes = plt.figure().add_subplot()
    >>> draw_limit(axes, (0.8, 0.7, 0.9))
    >>> len(axes.lines)
    1
    """
    value, low, high = limit
    if not np.isnan(value):
        axes.axvspan(low, high, color="C1", alpha=0.15, linewidth=0)
        axes.axvline(value, color="C1", linestyle=":", label="limit for a metric")


def correlation_map(metrics: pd.DataFrame, marked: Collection[str]) -> sns.matrix.ClusterGrid:
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
    if undefined := r.columns[r.isna().all()].tolist() or r.columns[r.isna().any()].tolist():
        raise DataError(f"{undefined} have no correlation with the others", fix="leave them out")
    distance = squareform(np.clip(1 - r.abs().to_numpy(), 0, None), checks=False)
    tree = hierarchy.average(distance)
    inside = [name in marked for name in r]
    for left, right, *_ in tree:
        inside.append(inside[int(left)] and inside[int(right)])
    colour = [MARKED if yes else "0.35" for yes in inside]
    drawn = hierarchy.dendrogram(tree, no_plot=True, link_color_func=colour.__getitem__)
    look = {"cmap": "RdBu", "vmin": -1, "vmax": 1, "annot": True, "fmt": ".2f"}
    look |= {"annot_kws": {"size": 8}, "tree_kws": {"colors": drawn["color_list"]}}
    look |= {"cbar_pos": None}  # the numbers stand in the cells
    size = 3.0 + 0.62 * len(r)
    grid = sns.clustermap(r, row_linkage=tree, col_linkage=tree, figsize=(size, size), **look)
    for label in grid.ax_heatmap.get_yticklabels() + grid.ax_heatmap.get_xticklabels():
        if label.get_text() in marked:
            label.set(color=MARKED, fontweight="bold")
    return grid


def training_plot(models: Models) -> Figure:
    """Smoothed training loss by step, and validation AUC by epoch, a line per trained model."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
    for (method, _), model in models.items():
        look = {"color": f"C{METHODS.index(method)}", "lw": 1, "label": method}
        axes[0].plot(model.history["step"], model.history["loss"].ewm(span=20).mean(), **look)
        axes[1].plot(model.validation["epoch"], model.validation["auc"], marker="o", **look)
    axes[0].set(title="Training loss", xlabel="step", ylabel="cross entropy (nats, smoothed)")
    lines, names = axes[0].get_legend_handles_labels()
    axes[0].legend(handles=dict(zip(names, lines, strict=True)).values())
    epochs = range(max(len(model.validation) for model in models.values()))
    axes[1].set(title="Validation", xlabel="epoch", ylabel="AUC on held-out threads", xticks=epochs)
    return figure


def score_scatter(values: Mapping[str, pd.DataFrame], sets: Mapping, seed: int = 0) -> Figure:
    """Mean EnDex score against the rating, one plot per set; the colour is the length.

    Ratings are shifted a little at random, so that equal ones do not hide each other. From 40 words
    on the colour stays the same.
    """
    size = (3.4 * len(sets), 3.2)
    figure, axes = plt.subplots(1, len(sets), figsize=size, squeeze=False, sharey=True)
    for ax, (name, (turns, human)) in zip(axes[0], sets.items(), strict=True):
        jitter = np.random.default_rng(seed).normal(0, 0.03, len(human))
        words = metrics.length(turns).clip(lower=1)
        score = seed_means(values[name])["EnDex"]
        points = ax.scatter(human + jitter, score, s=8, c=words, norm=LogNorm(1, 40))
        ax.set(title=name, xlabel="human rating")
    axes[0, 0].set_ylabel("EnDex, mean of seeds")
    bar = figure.colorbar(points, ax=axes[0].tolist(), label="words in the reply", extend="max")
    bar.set_ticks([1, 2, 5, 10, 20, 40], labels=["1", "2", "5", "10", "20", "40"])
    bar.minorticks_off()
    return figure
