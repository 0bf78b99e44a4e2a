"""The figures of notebook 05."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from lib.endex.baselines import length
from lib.meta_evaluation.endex_comparison import METHODS, Runs, means

ORDER = ["Random", "Question", "Specificity", "Length", *METHODS]


def training(runs: Runs) -> Figure:
    """Smoothed training loss by step, and validation AUC by epoch, a line per run."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
    shown = set()
    for (method, _), run in runs.items():
        color, label = f"C{METHODS.index(method)}", "_" if method in shown else method
        smooth = run.history.set_index("step")["loss"].ewm(span=20).mean()
        smooth.plot(ax=axes[0], color=color, lw=1, label=label)
        run.validation.plot("epoch", "auc", ax=axes[1], color=color, marker="o", lw=1, legend=False)
        shown.add(method)
    axes[0].set(title="Training loss", xlabel="step", ylabel="cross entropy (nats, smoothed)")
    axes[0].legend()
    epochs = range(max(len(run.validation) for run in runs.values()))
    axes[1].set(title="Validation by epoch", ylabel="AUC on held-out threads", xticks=epochs)
    return figure


def bars(correlations: pd.DataFrame) -> Figure:
    """Spearman correlation by set and method; the line is the standard deviation over seeds."""
    grid = sns.catplot(correlations, x="dataset", y="spearman", hue="method", hue_order=ORDER,
                       kind="bar", errorbar="sd", height=3.8, aspect=2.2)  # fmt: skip
    grid.ax.set(title="Correlation with human ratings", xlabel="", ylabel="Spearman's rho")
    grid.ax.axhline(0, color="0.3", lw=0.8)
    return grid.figure


def scatter(values: Mapping[str, pd.DataFrame], sets: Mapping, seed: int = 0) -> Figure:
    """Mean EnDex score against the rating, a panel per set; the colour is the length.

    Ratings are shifted a little at random, so that equal ones do not hide each other. From 40 words
    on the colour stays the same.
    """
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.4 * len(sets), 3.2), squeeze=False, sharey=True
    )
    for ax, (name, (turns, human)) in zip(axes[0], sets.items(), strict=True):
        jitter = np.random.default_rng(seed).normal(0, 0.03, len(human))
        points = ax.scatter(human + jitter, means(values[name])["EnDex"], s=8,
                            c=length(turns).clip(lower=1), norm=LogNorm(1, 40))  # fmt: skip
        ax.set(title=name, xlabel="human rating")
    axes[0, 0].set_ylabel("EnDex, mean of seeds")
    bar = figure.colorbar(points, ax=axes[0].tolist(), label="words in the reply", extend="max")
    bar.set_ticks([1, 2, 5, 10, 20, 40], labels=["1", "2", "5", "10", "20", "40"])
    bar.minorticks_off()
    return figure
