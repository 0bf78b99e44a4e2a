"""The figures of the report."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from lib import ROOT

QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
MARKERS = "osD^vP*Xp<>"
#: Shown beside the references, in this order, where they were computed.
SHOWN = ("length", "specificity", "context_similarity", "reference_similarity")
SHOWN += ("rouge_l_coco", "emotional_entropy", "emotion_matching", "language_style_matching")


def plain(label: str) -> str:
    """A label without the characters that figure fonts lack (emoji and other rare symbols).

    >>> plain("Ada \U0001f916")
    'Ada'
    """
    return "".join(c for c in label if ord(c) < 0x2190).strip() or "?"


def quantiles(scores: pd.DataFrame, corpus: str) -> pd.DataFrame:
    """Five quantiles of every metric: what a corpus looks like, without its texts.

    Columns corpus, metric, n, q05, q25, q50, q75, q95; metrics without values are left out.

    >>> quantiles(pd.DataFrame({"length": [1.0, 2.0, 3.0]}), "toy")["q50"].tolist()
    [2.0]
    """
    table = scores.quantile(list(QUANTILES.values())).T.set_axis([*QUANTILES], axis=1).dropna()
    table = table.assign(corpus=corpus, n=scores.notna().sum()).rename_axis("metric")
    return table.reset_index()[["corpus", "metric", "n", *QUANTILES]]


def with_references(turns: pd.DataFrame, scores: pd.DataFrame, yours: str) -> pd.DataFrame:
    """Quantiles of each of the file's systems, then those of the public corpora.

    The public ones were recorded by notebook 11 in `data/results/11_reference_quantiles.csv`;
    without that file only the file's own systems are listed.

    >>> turns = pd.DataFrame({"system": ["A", "A"]})
    >>> table = with_references(turns, pd.DataFrame({"length": [1.0, 2.0]}), "mine")
    >>> table["corpus"].iloc[0]
    'mine: A'
    """
    systems = scores.groupby(turns["system"])
    parts = [quantiles(group, f"{yours}: {name}") for name, group in systems]
    path = ROOT / "data" / "results" / "11_reference_quantiles.csv"
    parts += [pd.read_csv(path)] if path.is_file() else []
    return pd.concat(parts, ignore_index=True)


def beside_references(table: pd.DataFrame, yours: str) -> Figure:
    """Each metric of `SHOWN`: middle half (bar), middle 90 % (line) and median of each corpus.

    `table` comes from `quantiles`; rows of the corpora in `yours` are drawn in colour.

    >>> frame = quantiles(pd.DataFrame({"length": [1.0, 2.0, 3.0]}), "mine")
    >>> len(beside_references(frame, "mine").axes)
    1
    """
    own = set(table.loc[table["corpus"].str.startswith(yours), "metric"])
    metrics = [metric for metric in SHOWN if metric in own]
    columns = min(3, len(metrics))
    lines = -(-len(metrics) // columns)
    corpora = list(dict.fromkeys(table["corpus"]))
    size = (4.2 * columns, lines * (0.9 + 0.27 * len(corpora)))
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, sharey=True)
    for axis, metric in zip(axes.flat, metrics, strict=False):
        for row in table[table["metric"] == metric].itertuples():
            place = -corpora.index(row.corpus)
            colour = "C1" if row.corpus.startswith(yours) else "0.6"
            axis.hlines(place, row.q05, row.q95, color=colour, linewidth=1.2)
            axis.barh(place, row.q75 - row.q25, left=row.q25, height=0.55, color=colour, alpha=0.7)
            axis.plot(row.q50, place, "|", color="black", markersize=9)
        axis.set_title(metric)
        axis.set_yticks([-k for k in range(len(corpora))], [plain(name) for name in corpora])
        axis.grid(False, axis="y")
    for axis in axes.flat[len(metrics) :]:
        axis.set_visible(False)
    figure.tight_layout()
    return figure


def profile_plot(profile: pd.DataFrame) -> Figure:
    """Each agent's profile: standardised means with intervals, a colour and a marker per agent.

    >>> row = {"system": "A", "agent": "A", "metric": "length"}
    >>> row |= {"z": 0.2, "z_low": 0.0, "z_high": 0.4}
    >>> len(profile_plot(pd.DataFrame([row])).axes)
    1
    """
    metrics = list(dict.fromkeys(profile["metric"]))
    agents = list(dict.fromkeys(zip(profile["system"], profile["agent"], strict=True)))
    step = 0.7 / max(len(agents), 1)
    height = 1.2 + len(metrics) * max(0.4, 0.13 * len(agents))
    figure, axes = plt.subplots(figsize=(8, height))
    colours = sns.color_palette("colorblind", len(agents))
    for k, (system, agent) in enumerate(agents):
        rows = profile[(profile["system"] == system) & (profile["agent"] == agent)]
        place = [-metrics.index(m) + step * ((len(agents) - 1) / 2 - k) for m in rows["metric"]]
        label = plain(agent if agent == system else f"{system}: {agent}")
        axes.hlines(place, rows["z_low"], rows["z_high"], color=colours[k], linewidth=1.6)
        marker = MARKERS[k % len(MARKERS)]
        axes.plot(rows["z"], place, marker, color=colours[k], markersize=4.5, label=label)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks([-k for k in range(len(metrics))], metrics)
    axes.set_xlabel("mean of the agent, in standard deviations of turns (0: all turns)")
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize=8)
    return figure


def share_plot(shares: pd.DataFrame) -> Figure:
    """Stacked bars: how much of each metric's variance lies between systems, ..., turns.

    >>> row = {"metric": "length", "system": 0.1, "agent": 0.1, "dialog": 0.2, "turn": 0.6}
    >>> len(share_plot(pd.DataFrame([row])).axes)
    1
    """
    levels = ["system", "agent", "dialog", "turn"]
    known = shares.dropna(subset="turn").iloc[::-1]
    figure, axes = plt.subplots(figsize=(8, 1.1 + 0.34 * len(known)))
    left = np.zeros(len(known))
    colours = [*sns.color_palette("Blues_r", 4)[:3], "0.85"]
    for level, colour in zip(levels, colours, strict=True):
        width = known[level].fillna(0).to_numpy()
        axes.barh(known["metric"], width, left=left, color=colour, label=level)
        left += width
    axes.set(xlabel="share of variance (trait: system and agent; state: turn)", xlim=(0, 1))
    axes.set_title("Where the variance of each metric lies")
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize=8)
    return figure
