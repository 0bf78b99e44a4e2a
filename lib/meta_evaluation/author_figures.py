"""The three coefficients of `correlations_by_author` as a table and as a figure."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.analysis.authorship import ALL, MACHINES, WITHIN_CONTEXT
from lib.meta_evaluation.figures import display_name

MARKERS = "osD^vPX*<>"
REPLIES = (ALL, MACHINES, WITHIN_CONTEXT)


def author_table(
    table: pd.DataFrame, rows: Sequence[str] = ("metric",)
) -> pd.DataFrame:
    """The three coefficients of each metric in one line, with their intervals, as text.

    Args:
        table: the rows of `correlations_by_author` of several metrics, corpora or judges.
        rows: the columns that name them.

    Returns:
        A line per combination of `rows`, in their order in `table` and by their display names
        ("USR-Topical, words"), and the columns "all", "machines only", "within context" ("value
        (low to high)"; empty where there is none) and "systems (people)" of all replies.

    >>> table = pd.DataFrame({"metric": ["words"], "replies": ["all"], "value": [0.3],
    ...     "low": [0.2], "high": [0.4], "n": [360], "systems": [6], "people": [2]})
    >>> author_table(table).loc["words"].tolist()
    ['.30 (.20 to .40)', '', '', '6 (2)']
    """
    lines = {}
    first, *other_columns = rows
    names = table[first].map(display_name)
    for column in other_columns:
        names = names + ", " + table[column].map(display_name)
    counts = count_systems(table, names)
    for name, row in zip(names, table.itertuples(), strict=True):
        cells = lines.setdefault(name, dict.fromkeys(REPLIES, ""))
        cells["systems (people)"] = counts[name]
        if not np.isnan(row.value):
            value, low, high = (
                f"{number:z.2f}".replace("0.", ".")
                for number in (row.value, row.low, row.high)
            )
            cells[row.replies] = f"{value} ({low} to {high})"
    return pd.DataFrame.from_dict(lines, orient="index")


def count_systems(table: pd.DataFrame, lines: pd.Series) -> dict[str, str]:
    """The number of systems of each line, and of the people among them: "6 (2)".

    Args:
        table: as for `author_table`, with `systems` and `people`.
        lines: the name of the line of each row.

    Returns:
        Line -> "6 (2)", or "6 (?)" where the corpus does not say who wrote its replies: it then has
        no correlation among machines' replies either.

    >>> table = pd.DataFrame({"replies": ["all"], "n": [45], "systems": [1], "people": [0]})
    >>> count_systems(table, pd.Series(["BETTER"]))
    {'BETTER': '1 (?)'}
    """
    counts = {}
    for name, of_line in table.groupby(lines):
        everything = of_line[of_line["replies"] == ALL]
        n_machines = of_line.loc[of_line["replies"] == MACHINES, "n"].sum()
        systems = everything["systems"].max()
        people = everything["people"].max()
        is_known = people > 0 or n_machines > 0
        counts[name] = f"{systems} ({people if is_known else '?'})"
    return counts


def author_plot(
    table: pd.DataFrame,
    title: str,
    rows: str = "metric",
    colours: str | None = None,
    ceilings: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Three panels, "all", "machines only" and "within context": a point and interval a row.

    Args:
        table: as for `author_table`; the first row is drawn on top.
        title: of the figure.
        rows: the column with a line each.
        colours: the column with a colour and marker each, by default none. Several values of it
            may stand in one line, one below the other.
        ceilings: `agreement.rating_noise_ceiling` of a line, drawn in the first panel as a grey
            diamond with its interval.

    The head of a panel says how many replies and systems it has where that is the same in all
    of its rows; else each line says its systems. A cell without a value stays empty.

    >>> table = pd.DataFrame({"metric": ["words"], "replies": ["all"], "value": [0.3],
    ...     "low": [0.2], "high": [0.4], "n": [360], "systems": [6], "people": [2]})
    >>> author_plot(table, "Words").axes[0].get_title().splitlines()
    ['all', 'n = 360, systems (people): 6 (2)']
    """
    lines = list(dict.fromkeys(table[rows]))
    groups = list(dict.fromkeys(table[colours])) if colours else [""]
    per_line = table.groupby([rows, "replies"]).size().max()
    step = 0.0
    height_of_line = 0.28
    if per_line > 1:
        step = 0.8 / per_line
        height_of_line = 0.16 * per_line
    height = 1.6 + len(lines) * height_of_line
    figure, panels = plt.subplots(
        1, 3, figsize=(10, height), sharey=True, sharex=True, layout="constrained"
    )
    figure.suptitle(title, weight="bold")
    for replies, axes in zip(REPLIES, panels, strict=True):
        panel_rows = table[table["replies"] == replies].dropna(subset="value")
        axes.axvline(0, color="black", linewidth=0.8)
        for number, group in enumerate(groups):
            points = panel_rows[panel_rows[colours] == group] if colours else panel_rows
            y = points[rows].map(lines.index).to_numpy(dtype=float)
            if per_line > 1:
                y += (number - (len(groups) - 1) / 2) * step
            colour = f"C{number}"
            marker = MARKERS[number % len(MARKERS)]
            axes.hlines(y, points["low"], points["high"], color=colour, alpha=0.6)
            axes.plot(
                points["value"], y, marker, color=colour, markersize=5, label=group
            )
        counts = panel_rows[["n", "systems", "people"]].drop_duplicates()
        head = replies
        if len(counts) == 1:
            count = counts.iloc[0]
            head += f"\nn = {count['n']}, systems (people): "
            head += f"{count['systems']} ({count['people']})"
        axes.set_title(head, fontsize=9)
    for name, (value, low, high) in (ceilings or {}).items():
        y = lines.index(name)
        panels[0].hlines(y, low, high, color="0.4", linewidth=1)
        panels[0].plot(value, y, "D", color="0.4", markersize=4, label="noise ceiling")
    names = [display_name(name) for name in lines]
    counts = count_systems(table, table[rows])
    if len(set(counts.values())) > 1:
        names = [f"{display_name(name)}, {counts[name]}" for name in lines]
        panels[0].set_ylabel(f"{rows}, systems (people)", fontsize=9)
    panels[0].set_yticks(range(len(lines)), names, fontsize=9)
    panels[0].set_ylim(len(lines) - 0.4, -0.6)
    panels[1].set_xlabel("Spearman correlation with people (95 % interval)")
    handles, names = panels[0].get_legend_handles_labels()
    entries = dict(zip(names, handles, strict=True))
    entries.pop("", None)
    if entries:
        figure.legend(
            entries.values(), entries.keys(), loc="outside right upper", fontsize=9
        )
    return figure
