"""One look for every figure: readable in print, safe for colour-blind readers."""

from __future__ import annotations

import matplotlib
import seaborn as sns


def set_style() -> None:
    """Set the figure style of all notebooks.

    >>> set_style()
    >>> matplotlib.rcParams["figure.dpi"]
    100.0
    """
    sns.set_theme(context="notebook", style="whitegrid", palette="colorblind", font_scale=0.9)
    matplotlib.rcParams.update(
        {
            "figure.dpi": 100,
            "figure.figsize": (7, 4),
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            # A name drawn from a hash would change the file from run to run.
            "svg.hashsalt": "lib.notebook_runs.figures",
        }
    )
