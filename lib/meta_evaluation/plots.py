"""The figures of meta-evaluation."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.meta_evaluation.metrics import family
from lib.meta_evaluation.overview import in_family_order


def heat_map(table: pd.DataFrame, title: str) -> Figure:
    """Metrics x panels: colour is the correlation, the small print its interval.

    A framed cell belongs to the best significance cluster of its panel; a starred one was not
    ranked (it scores too few of the items); an empty cell has no value (the metric needs
    references, say). `table` is the result of `overview`.

    >>> frame = pd.DataFrame({"panel": ["a"], "metric": ["bleu4"], "value": [0.2], "low": [0.1],
    ...                       "high": [0.3], "n": [100], "rank": [1.0], "rating": ["overall"]})
    >>> len(heat_map(frame, "one cell").axes)
    2
    """
    metrics, panels = in_family_order(table["metric"]), list(dict.fromkeys(table["panel"]))
    values = table.pivot(index="metric", columns="panel", values="value").loc[metrics, panels]
    figure, axes = plt.subplots(figsize=(1.9 + 1.02 * len(panels), 1.6 + 0.36 * len(metrics)))
    image = axes.imshow(values, cmap="RdBu", vmin=-0.8, vmax=0.8, aspect="auto")
    for row in table.dropna(subset="value").itertuples():
        _cell(axes, panels.index(row.panel), metrics.index(row.metric), row)
    heads = table.groupby("panel", sort=False)[["rating", "n"]].agg({"rating": "first", "n": "max"})
    labels = [f"{name}\n{heads['rating'][name]}, n={heads['n'][name]}" for name in panels]
    axes.set_xticks(range(len(panels)), labels, rotation=40, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(metrics)), metrics, fontsize=8)
    axes.grid(False)
    for position in range(1, len(metrics)):
        if family(metrics[position]) != family(metrics[position - 1]):
            axes.axhline(position - 0.5, color="black", linewidth=1)
    figure.colorbar(image, ax=axes, shrink=0.5, label="correlation with human ratings")
    axes.set_title(title, pad=12)
    if (table["rank"].isna() & table["value"].notna()).any():
        axes.set_xlabel("* not ranked: scores too few of the items", loc="right", fontsize=8)
    return figure


def _cell(axes, x: int, y: int, row) -> None:
    colour = "white" if abs(row.value) > 0.55 else "black"
    value = two_digits(row.value) + ("*" if np.isnan(row.rank) else "")
    axes.text(x, y - 0.14, value, ha="center", va="center", fontsize=8, color=colour)
    if not np.isnan(row.low):
        interval = f"{two_digits(row.low)} to {two_digits(row.high)}"
        axes.text(x, y + 0.24, interval, ha="center", va="center", fontsize=5.5, color=colour)
    if row.rank == 1:
        frame = plt.Rectangle(
            (x - 0.47, y - 0.46), 0.94, 0.92, fill=False, linewidth=1.6, edgecolor="black"
        )
        axes.add_patch(frame)


def two_digits(value: float) -> str:
    """A number with two digits after the point, without the sign of a rounded zero.

    >>> two_digits(-0.004), two_digits(-0.006)
    ('0.00', '-0.01')
    """
    return f"{round(value, 2) + 0.0:.2f}"


def interval_plot(table: pd.DataFrame, label: str, value: str = "value", zero: bool = True):
    """Points with their intervals, one line per row of `table` (columns `label`, low, high).

    >>> frame = pd.DataFrame({"metric": ["a"], "value": [0.2], "low": [0.1], "high": [0.3]})
    >>> len(interval_plot(frame, "metric").axes)
    1
    """
    figure, axes = plt.subplots(figsize=(6.5, 0.9 + 0.34 * len(table)))
    place = np.arange(len(table))[::-1]
    axes.hlines(place, table["low"], table["high"], color="0.55", linewidth=2)
    axes.plot(table[value], place, "o", color="C0")
    axes.set_yticks(place, table[label])
    if zero:
        axes.axvline(0, color="black", linewidth=0.8)
    axes.set_ylim(-0.6, len(table) - 0.4)
    return figure


def rate_plot(table: pd.DataFrame, tests: list[str]) -> Figure:
    """False-positive rate of each test against the intraclass correlation, nominal 5 % dashed.

    >>> frame = pd.DataFrame({"icc": [0.0, 0.5], "swap turns": [0.05, 0.35], "runs": [100, 100]})
    >>> len(rate_plot(frame, ["swap turns"]).axes)
    1
    """
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for test, marker, line in zip(tests, "osD^", ("-", "--", "-", "--"), strict=False):
        rate = table[test]
        axes.errorbar(
            table["icc"], rate, 1.96 * np.sqrt(rate * (1 - rate) / table["runs"]),
            marker=marker, linestyle=line, capsize=3, label=test,
        )  # fmt: skip
    axes.axhline(0.05, color="black", linestyle="--", linewidth=0.8)
    axes.set(xlabel="intraclass correlation within dialogs", ylabel="share of false alarms")
    axes.set_ylim(0, None)
    axes.legend()
    return figure
