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
from lib.analysis.authorship import ALL, MACHINES, WITHIN_CONTEXT
from lib.analysis.correlation import coefficient
from lib.data import DataError
from lib.data.storage import read_json
from lib.meta_evaluation.evaluation_sets import (
    EvaluationSet,
    metric_family,
    sort_by_family,
)
from lib.meta_evaluation.exchange_rate import PLACEBO
from lib.meta_evaluation.replication.endex_table2 import METHODS, Models, seed_means

MARKED = "tab:orange"
PEOPLE = "tab:orange"
TURNED = "tab:purple"
CEILING = "noise ceiling"

#: The letter of each kind of replies in `heat_map`.
KINDS = {ALL: "a", MACHINES: "m", WITHIN_CONTEXT: "c"}
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
    """Metrics x corpora; each corpus has a column for every kind of replies that it holds.

    The columns a, m and c are the correlations over all replies, over machines' only and within
    context (`KINDS`). Where nobody but machines wrote, a and m are one and only m is drawn. A
    number is grey where its interval includes 0. A frame marks the best metrics among machines (all
    replies where a corpus does not say who wrote them).

    Args:
        table: result of `overview.author_overview` with a column `best`, True for the
            framed cells. Rows of the metric "noise ceiling" stand below the others.

    >>> rows = pd.DataFrame({"corpus": "a", "metric": "bleu4", "replies": ["all", "machines only"],
    ...                      "value": [0.2, 0.1], "low": [0.1, -0.1], "high": [0.3, 0.3],
    ...                      "people": [1, 0], "best": [False, True]})
    >>> len(heat_map(rows, "one corpus").axes)
    2
    """
    ceiling = table["metric"] == CEILING
    metrics = [*sort_by_family(table.loc[~ceiling, "metric"])]
    lines = metrics + [CEILING] * bool(ceiling.any())
    columns = _columns(table[~ceiling])
    corpora = [corpus for corpus, _ in columns]
    width = 2.6 + 0.262 * len(columns)
    height = 1.9 + 0.25 * len(lines)
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=12)
    values = table.pivot(
        index="metric", columns=["corpus", "replies"], values="value"
    ).reindex(index=lines, columns=pd.MultiIndex.from_tuples(columns))
    cell_values = (
        values.drop(index=CEILING, errors="ignore").reindex(lines).astype(float)
    )
    image = axes.imshow(cell_values, cmap="RdBu", vmin=-0.7, vmax=0.7, aspect="auto")
    for row in table.dropna(subset="value").itertuples():
        column = (row.corpus, row.replies)
        if column in columns:
            _cell(axes, columns.index(column), lines.index(row.metric), row)

    axes.grid(False)
    letters = [KINDS[replies] for _, replies in columns]
    axes.set_xticks(range(len(columns)), letters, fontsize=9)
    axes.tick_params(length=0)
    axes.set_yticks(range(len(lines)), map(display_name, lines), fontsize=11)
    families = [metric_family(line) for line in lines]
    for start in _starts(families):
        axes.axhline(start - 0.5, color="black", linewidth=1)
    starts = _starts(corpora)
    for start, end in zip(starts, [*starts[1:], len(columns)], strict=True):
        axes.axvline(start - 0.5, color="black", linewidth=1)
        name = textwrap.fill(display_name(corpora[start]), 12, break_long_words=False)
        axes.text(
            (start + end) / 2 - 0.5,
            -0.75,
            name,
            fontsize=9,
            rotation=55,
            rotation_mode="anchor",
            va="center",
        )
    bar = figure.colorbar(image, ax=axes, shrink=0.4, aspect=30, location="bottom")
    bar.set_label(
        "correlation with people: a all replies, m machines only, c within context\n"
        "grey number: 95 % interval includes 0; frame: above 0, and no metric here is better",
        fontsize=9,
    )
    bar.ax.tick_params(labelsize=8)
    return figure


def _columns(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The corpora with their kinds of replies; corpora that mix people and machines come first."""
    people = table.groupby("corpus", sort=False)["people"].max()
    order = people.sort_values(key=lambda counts: counts == 0, kind="stable").index
    defined = set(
        table.dropna(subset="value")[["corpus", "replies"]].itertuples(
            index=False, name=None
        )
    )
    columns = []
    for corpus in order:
        kinds = [replies for replies in KINDS if (corpus, replies) in defined]
        if people[corpus] == 0 and MACHINES in kinds:
            kinds.remove(ALL)
        columns.extend((corpus, replies) for replies in kinds)
    return columns


def _starts(names: Sequence[str]) -> np.ndarray:
    """Where a run of equal names starts."""
    names = pd.Series(names)
    return np.flatnonzero(names != names.shift())


def _cell(axes: Axes, x: int, y: int, row: tuple) -> None:
    """Write a correlation without its leading zero, and frame it if it is of the best."""
    holds_zero = row.low <= 0 <= row.high
    colour = "white" if abs(row.value) > 0.5 and row.metric != CEILING else "black"
    if holds_zero:
        colour = "0.5"
    text = f"{row.value:z.2f}".replace("0.", ".")
    axes.text(x, y, text, fontsize=6.5, ha="center", va="center", color=colour)
    if row.best:
        frame = plt.Rectangle(
            (x - 0.46, y - 0.44),
            width=0.92,
            height=0.88,
            fill=False,
            linewidth=1.6,
            edgecolor="black",
        )
        axes.add_patch(frame)


def forest_plot(table: pd.DataFrame) -> Figure:
    """The mean of each metric over corpora: thick its interval, thin the prediction interval.

    Machines' replies only in colour, all replies in grey above them.

    Args:
        table: result of `over_corpora.metrics_over_corpora`; metrics without a mean are left out.

    >>> rows = pd.DataFrame({"metric": ["a"], "replies": ["all"], "mean": [0.2], "low": [0.1],
    ...     "high": [0.3], "prediction_low": [-0.1], "prediction_high": [0.5], "corpora": [4]})
    >>> len(forest_plot(rows).axes)
    1
    """
    table = table.dropna(subset="mean")
    metrics = table["metric"].unique()[::-1]
    figure, axes = plt.subplots(figsize=(7.5, 1.2 + 0.36 * len(metrics)))
    styles = {MACHINES: ("C0", -0.15), ALL: ("0.6", 0.2)}
    for replies, (colour, offset) in styles.items():
        rows = table[table["replies"] == replies].set_index("metric").reindex(metrics)
        y = np.arange(len(metrics)) + offset
        axes.hlines(
            y,
            rows["prediction_low"],
            rows["prediction_high"],
            color=colour,
            linewidth=1,
        )
        axes.hlines(y, rows["low"], rows["high"], color=colour, linewidth=4)
        axes.plot(
            rows["mean"], y, "o", color=colour, label=replies, markeredgecolor="w"
        )
    counts = table.drop_duplicates("metric").set_index("metric")["corpora"]
    names = [f"{display_name(name)} ({counts[name]:.0f})" for name in metrics]
    axes.set_yticks(range(len(metrics)), names)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xlim=(-0.8, 0.9), ylim=(-0.6, len(metrics) - 0.4))
    axes.set_xlabel(
        "correlation with people: mean over corpora (thick: its interval; "
        "thin: another corpus)"
    )
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    return figure


def savings_plot(rates: pd.DataFrame, count: int = 2) -> Figure:
    """Ratings that scores save: a panel for each estimand, corpora in the order of the table.

    Args:
        rates: result of `exchange_rate.exchange_rates`, of several corpora.
        count: scores of each corpus, those that save most; the placebo stands below them in grey.

    >>> row = {"estimand": "mean of one system", "corpus": "a", "saved": 9.0, "low": 4.0}
    >>> row |= {"metric": "length", "high": 16.0, "noise_ceiling": 50.0}
    >>> [axes.get_title() for axes in savings_plot(pd.DataFrame([row])).axes]
    ['mean of one system']
    """
    measured = rates.dropna(subset="saved").sort_values("saved", ascending=False)
    is_placebo = measured["metric"] == PLACEBO
    best = measured[~is_placebo].groupby(["estimand", "corpus"]).head(count)
    line_of = {corpus: number for number, corpus in enumerate(rates["corpus"].unique())}
    plotted = pd.concat([best, measured[is_placebo]])
    plotted = plotted.assign(
        line=plotted["corpus"].map(line_of), placebo=plotted["metric"] == PLACEBO
    )
    # The first row stands lowest in a panel.
    plotted = plotted.sort_values(
        ["line", "placebo", "saved"], ascending=[False, False, True]
    )
    estimands = sorted(plotted["estimand"].unique(), reverse=True)
    sizes = [2 + (plotted["estimand"] == estimand).sum() for estimand in estimands]
    figure, panels = plt.subplots(
        nrows=len(estimands),
        figsize=(8, 0.21 * sum(sizes) + 0.8),
        squeeze=False,
        sharex=True,
        height_ratios=sizes,
        layout="constrained",
    )
    for axes, estimand in zip(panels.flat, estimands, strict=True):
        part = plotted[plotted["estimand"] == estimand]
        y = np.arange(len(part))
        colors = part["placebo"].map({True: "0.6", False: "C0"})
        axes.hlines(
            y, part["low"], part["high"].clip(upper=60), color=colors, linewidth=2
        )
        axes.scatter(part["saved"], y, color=colors, s=22, zorder=3)
        axes.plot(part["noise_ceiling"], y, "|", color="black", markersize=7)
        labels = (
            part["corpus"].map(display_name) + ": " + part["metric"].map(display_name)
        )
        axes.set_yticks(y, labels, fontsize=8)
        axes.set(xlim=(0, 60), ylim=(-0.7, len(part) - 0.3), title=estimand)
    axes.set_xlabel(
        "ratings saved of 100 (95 % interval; black: noise ceiling, where below 60)"
    )
    return figure


def who_wrote_it_plot(
    items: EvaluationSet, metric: pd.Series, label: str, table: pd.DataFrame
) -> Figure:
    """One corpus whose trend turns without its people, and every metric on every such corpus.

    Args:
        items: a set of turns in which people wrote some replies.
        metric: a score of each reply, named `label` below the axis.
        table: result of `overview.author_overview`; corpora without people are left out. In
            the second panel a purple point has another sign among machines than over all replies,
            where the interval of the latter leaves out 0.
    """
    figure, (corpus_axes, signs_axes) = plt.subplots(
        1, 2, figsize=(10, 4.6), layout="constrained"
    )
    people = items.table["written_by"] == "person"
    jitter = np.random.default_rng(0).normal(0, 0.06, len(people))
    groups = {
        "people": (people, PEOPLE),
        "machines": (~people, "C0"),
        "all replies": (people | ~people, "0.3"),
    }
    for name, (in_group, colour) in groups.items():
        x = metric[in_group]
        y = items.human[in_group]
        rho = coefficient(x, y, "spearman").value
        if name != "all replies":
            corpus_axes.scatter(
                x, y + jitter[in_group], s=10, color=colour, alpha=0.5, linewidth=0
            )
        line = np.polyfit(x, y, 1)
        line_x = np.array([x.min(), x.quantile(0.99)])
        style = "--" if name == "all replies" else "-"
        corpus_axes.plot(
            line_x,
            np.polyval(line, line_x),
            style,
            color=colour,
            linewidth=3,
            label=f"{name}: {rho:z.2f}".replace("0.", "."),
        )
    # Room above the ratings for the legend.
    lowest = items.human.min()
    highest = items.human.max()
    corpus_axes.set(
        xlim=(0, metric.quantile(0.99) + 1),
        ylim=(lowest - 0.3, highest + 0.45 * (highest - lowest)),
        yticks=range(int(np.ceil(lowest)), int(highest) + 1),
    )
    corpus_axes.legend(
        title="Spearman", fontsize=12, title_fontsize=12, loc="upper left"
    )
    corpus_axes.set_xlabel(label, fontsize=12)
    corpus_axes.set_ylabel("rating by people", fontsize=12)
    corpus_axes.set_title(f"One corpus: {display_name(items.name)}", fontsize=13)

    mixed = table[table.groupby("corpus")["people"].transform("max") > 0]
    wide = mixed.pivot(index=["metric", "corpus"], columns="replies", values="value")
    overall = mixed[mixed["replies"] == ALL].set_index(["metric", "corpus"])
    wide = wide[[ALL, MACHINES]].dropna().join(overall[["low", "high"]])
    n_corpora = wide.index.get_level_values("corpus").nunique()
    clear = (wide["low"] > 0) | (wide["high"] < 0)
    turned = clear & (wide[ALL] * wide[MACHINES] < 0)
    signs_axes.axhspan(-1, 0, 0.5, 1, color=TURNED, alpha=0.12, linewidth=0)
    signs_axes.axhspan(0, 1, 0, 0.5, color=TURNED, alpha=0.12, linewidth=0)
    signs_axes.plot([-1, 1], [-1, 1], color="0.6", linewidth=1)
    signs_axes.axhline(0, color="0.3", linewidth=0.8)
    signs_axes.axvline(0, color="0.3", linewidth=0.8)
    for group, colour, name in (
        (~turned, "C0", None),
        (turned, TURNED, f"{turned.sum()} significant ones change sign"),
    ):
        signs_axes.scatter(
            wide.loc[group, ALL],
            wide.loc[group, MACHINES],
            s=22,
            color=colour,
            linewidth=0,
            label=name,
        )
    length = wide[wide.index.get_level_values("metric") == "length"]
    signs_axes.scatter(
        length[ALL],
        length[MACHINES],
        s=70,
        facecolor="none",
        edgecolor="black",
        label="length, without punctuation",
    )
    limit = 0.7
    signs_axes.set(xlim=(-limit, limit), ylim=(-limit, limit))
    signs_axes.set_xlabel("correlation over all replies", fontsize=12)
    signs_axes.set_ylabel("over machines' replies only", fontsize=12)
    signs_axes.set_title(f"{n_corpora} corpora: {len(wide)} correlations", fontsize=13)
    signs_axes.legend(loc="upper left", fontsize=11)
    return figure


def interval_plot(table: pd.DataFrame, names: str) -> Figure:
    """Points with their intervals, one line per row (columns `names`, value, low, high).

    A column `noise_ceiling` is drawn as a diamond: what a metric could reach there.

    >>> frame = pd.DataFrame({"metric": ["a"], "value": [0.2], "low": [0.1], "high": [0.3]})
    >>> len(interval_plot(frame, "metric").axes)
    1
    """
    figure, axes = plt.subplots(figsize=(6.5, 0.9 + 0.34 * len(table)))
    y = np.arange(len(table))[::-1]
    axes.hlines(y, table["low"], table["high"], color="0.55", linewidth=2)
    axes.plot(table["value"], y, "o", color="C0")
    if "noise_ceiling" in table:
        axes.plot(table["noise_ceiling"], y, "D", color="C1", label="noise ceiling")
    axes.set_yticks(y, map(display_name, table[names]))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_ylim(-0.6, len(table) - 0.4)
    return figure


def draw_noise_ceiling(axes: Axes, ceiling: Sequence[float]) -> None:
    """Draw what a metric can reach: a dotted line at the value, its interval shaded.

    `ceiling` is the result of `agreement.noise_ceiling`: value, low, high. Nothing is drawn where
    it is NaN.

    >>> axes = plt.figure().add_subplot()
    >>> draw_noise_ceiling(axes, (0.8, 0.7, 0.9))
    >>> len(axes.lines)
    1
    """
    value, low, high = ceiling
    if not np.isnan(value):
        axes.axvspan(low, high, color="C1", alpha=0.15, linewidth=0)
        axes.axvline(value, color="C1", linestyle=":", label="noise ceiling")


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
    for first, second, *_ in tree:
        all_marked.append(all_marked[int(first)] and all_marked[int(second)])
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
        points = axes.scatter(x, score, s=8, c=words, norm=LogNorm(1, 40), cmap="flare")
        axes.set(title=name, xlabel="human rating")
    row[0].set_ylabel("EnDex, mean of seeds")
    bar = figure.colorbar(points, ax=row, label="words in the reply", extend="max")
    ticks = [1, 2, 5, 10, 20, 40]
    bar.set_ticks(ticks, labels=map(str, ticks))
    bar.minorticks_off()
    return figure
