"""Which metrics measure the same thing? Figure 2: correlations clustered by 1 - |r|."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from lib.data import DataError

MARKED, PLAIN = "tab:orange", "0.35"


class CorrelationMap(NamedTuple):
    """Signed Pearson correlations of metrics, and the linkage of 1 - |r|."""

    r: pd.DataFrame
    linkage: np.ndarray


def correlation_map(metrics: pd.DataFrame) -> CorrelationMap:
    """Correlate metrics and join them by average linkage on the distance 1 - |r|.

    Figure 2, "clustered based on absolute correlations": a metric and its negative are neighbours.

    Args:
        metrics: (rows, metrics); NaN is left out pair by pair.

    Raises:
        DataError: for a metric without a correlation (constant, or never present together with
            another).

    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [-1.0, -2, -3, -5], "c": [1.0, 0, 0, 1]})
    >>> correlation_map(frame).linkage[0, :2].tolist()
    [0.0, 1.0]
    """
    r = metrics.corr()
    undefined = r.columns[r.isna().all()].tolist() or r.columns[r.isna().any()].tolist()
    if undefined:
        raise DataError(f"{undefined} have no correlation with the others", fix="leave them out")
    distance = np.clip(1 - r.abs().to_numpy(), 0, None)
    linkage = hierarchy.linkage(squareform(distance, checks=False), method="average")
    return CorrelationMap(r, linkage)


def plot_correlation_map(result: CorrelationMap, marked):
    """Draw the clustered heat map with signed r; marked metrics bold, their branches orange.

    A branch is orange when every metric under it is marked, as the psychological metrics are in
    Figure 2 of the paper. Returns the matplotlib Figure.

    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [-1.0, -2, -3, -5], "c": [1.0, 0, 0, 1]})
    >>> figure = plot_correlation_map(correlation_map(frame), marked={"c"})
    >>> [label.get_text() for label in figure.axes[1].get_yticklabels()]
    ['c', 'a', 'b']
    """
    import matplotlib.pyplot as plt  # the other rooms compute without a plotting library
    import seaborn as sns

    size = 2.6 + 0.62 * len(result.r)
    shape = {"figsize": (size + 0.8, size), "height_ratios": [1, 4.5]}
    figure, (top, heat) = plt.subplots(2, 1, **shape, layout="constrained")
    order = result.r.columns[_draw_tree(top, result, marked)]
    sns.despine(ax=top, left=True, bottom=True)
    bar = {"label": "Pearson r", "location": "bottom", "shrink": 0.5, "aspect": 30}
    colours = {"vmin": -1, "vmax": 1, "cmap": "RdBu", "cbar_kws": bar}
    numbers = {"annot": True, "fmt": ".2f", "annot_kws": {"size": 8}}
    sns.heatmap(result.r.loc[order, order], ax=heat, **colours, **numbers)
    for label in heat.get_yticklabels() + heat.get_xticklabels():
        bold = label.get_text() in marked
        label.set(color=MARKED if bold else "black", fontweight="bold" if bold else "normal")
    plt.setp(heat.get_xticklabels(), rotation=40, ha="right", rotation_mode="anchor")
    plt.setp(heat.get_yticklabels(), rotation=0)
    return figure


def _draw_tree(axis, result: CorrelationMap, marked) -> list[int]:
    """Draw the branches, and return the order of the leaves."""
    all_marked = [name in marked for name in result.r]
    for left, right, *_ in result.linkage:
        all_marked.append(all_marked[int(left)] and all_marked[int(right)])
    colour = [MARKED if yes else PLAIN for yes in all_marked]
    look = {"ax": axis, "link_color_func": colour.__getitem__, "no_labels": True}
    leaves = hierarchy.dendrogram(result.linkage, **look)["leaves"]
    # scipy draws both legs of a join in one colour; a marked leaf gets its own leg in orange.
    for *children, height, _ in result.linkage:
        for child in map(int, children):
            if child < len(leaves) and all_marked[child]:
                x = 5 + 10 * leaves.index(child)
                axis.plot([x, x], [0, height], color=MARKED, linewidth=2.2, zorder=3)
    axis.set(yticks=[], ylabel="1 - |r|")
    axis.grid(False)
    return leaves
