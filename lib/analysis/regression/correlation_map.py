"""Which metrics measure the same thing? Figure 2: correlations clustered by 1 - |r|."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from lib.data.dialogues import DataError

MARKED = "tab:orange"
PLAIN = "0.35"


class CorrelationMap(NamedTuple):
    """Signed Pearson correlations, the linkage of 1 - |r|, and the number of rows per pair."""

    r: pd.DataFrame
    linkage: np.ndarray
    pairs: pd.DataFrame


def correlation_map(metrics: pd.DataFrame) -> CorrelationMap:
    """Correlate metrics and join them by average linkage on the distance 1 - |r|.

    Figure 2, "clustered based on absolute correlations": a metric and its negative are neighbours.

    Parameters
    ----------
    metrics : DataFrame, shape (rows, metrics)
        NaN is left out pair by pair; `pairs` says how many rows each r rests on.

    Raises
    ------
    DataError
        For fewer than two metrics, or one without a correlation (constant, or never present
        together with another).

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [-1.0, -2, -3, -5], "c": [1.0, 0, 0, 1]})
    >>> correlation_map(frame).linkage[0, :2].tolist()
    [0.0, 1.0]
    """
    if metrics.shape[1] < 2:
        raise DataError("a map needs at least two metrics")
    r = metrics.corr()
    undefined = r.columns[r.isna().sum() == len(r)].tolist() or r.columns[r.isna().any()].tolist()
    if undefined:
        raise DataError(
            f"{undefined} have no correlation with the others",
            fix="leave out metrics that are constant or missing on these rows",
        )
    distance = np.clip(1 - r.abs().to_numpy(), 0, None)
    linkage = hierarchy.linkage(squareform(distance, checks=False), method="average")
    present = metrics.notna().astype(int)
    return CorrelationMap(r, linkage, present.T @ present)


def plot_correlation_map(result: CorrelationMap, marked: Collection[str]) -> plt.Figure:
    """Draw the clustered heat map with signed r; marked metrics bold, their branches orange.

    A branch is orange when every metric under it is marked, as the psychological metrics are in
    Figure 2 of the paper.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [-1.0, -2, -3, -5], "c": [1.0, 0, 0, 1]})
    >>> figure = plot_correlation_map(correlation_map(frame), marked={"c"})
    >>> [label.get_text() for label in figure.axes[1].get_yticklabels()]
    ['c', 'a', 'b']
    >>> plt.close(figure)
    """
    size = 2.6 + 0.62 * len(result.r)
    figure, (top, heat) = plt.subplots(
        2, 1, figsize=(size + 0.8, size), height_ratios=[1, 4.5], layout="constrained"
    )
    colours = _branch_colours(result, set(marked))
    tree = hierarchy.dendrogram(
        result.linkage, ax=top, link_color_func=lambda k: colours[k], no_labels=True
    )
    _recolour_leaves(top, result, tree["leaves"], set(marked))
    top.set(yticks=[], ylabel="1 - |r|")
    top.grid(False)
    sns.despine(ax=top, left=True, bottom=True)
    order = result.r.columns[tree["leaves"]]
    sns.heatmap(
        result.r.loc[order, order],
        ax=heat,
        vmin=-1,
        vmax=1,
        cmap="RdBu",
        annot=True,
        fmt=".2f",
        annot_kws={"size": 8},
        cbar_kws={"label": "Pearson r", "location": "bottom", "shrink": 0.5, "aspect": 30},
    )
    for label in heat.get_yticklabels() + heat.get_xticklabels():
        label.set_color(MARKED if label.get_text() in marked else "black")
        label.set_fontweight("bold" if label.get_text() in marked else "normal")
    plt.setp(heat.get_xticklabels(), rotation=40, ha="right", rotation_mode="anchor")
    plt.setp(heat.get_yticklabels(), rotation=0)
    return figure


def _branch_colours(result: CorrelationMap, marked: set[str]) -> dict[int, str]:
    names = result.r.columns
    all_marked = {i: name in marked for i, name in enumerate(names)}
    for step, (left, right, *_) in enumerate(result.linkage):
        all_marked[len(names) + step] = all_marked[int(left)] and all_marked[int(right)]
    return {node: MARKED if yes else PLAIN for node, yes in all_marked.items()}


def _recolour_leaves(
    axis: plt.Axes, result: CorrelationMap, leaves: list[int], marked: set[str]
) -> None:
    # scipy draws both legs of a join in one colour; a marked leaf gets its own leg in orange.
    names = result.r.columns
    for left, right, height, _ in result.linkage:
        for child in (int(left), int(right)):
            if child < len(names) and names[child] in marked:
                x = 5 + 10 * leaves.index(child)
                axis.plot([x, x], [0, height], color=MARKED, linewidth=2.2, zorder=3)
