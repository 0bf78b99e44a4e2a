"""The correlation tables of the ComperDial paper with a column for any judge."""

from collections.abc import Mapping

import pandas as pd

from lib.analysis.correlation import correlate
from lib.cpdscore.scores import Scores, aggregate, intermediate
from lib.meta_evaluation.replication.papers import published_table

JUDGES = ("GPT-3.5", "GPT-4")
# Calls averaged in each table (section 6.2, footnote 10).
CALLS = {3: 1, 15: 1, 4: 3, 5: 3, 6: 3, 16: 3}
_DIALOG = ["system", "agent", "dialog"]
_NAMES = {
    "Simple": "Original simple",  # as Table 3 shortens them
    "Detail": "Original detail",
    "$FED_{En}$": "FED-En",
    "$FED_{Rel}$": "FED-Rel",
}


def comperdial_table(table: int) -> pd.DataFrame:
    """One table as printed, a row per method, level and coefficient.

    The figures of the two judges stand in the columns `GPT-3.5` and `GPT-4`, those of metrics
    without a judge in `published`. `level` is turn, dialog or system; in Tables 6 and 16 it is the
    corpus. Table 6 prints the rows of Table 16 that are not GPT-3.5's. Numbers: those of `CALLS`.

    >>> comperdial_table(5).columns.tolist()
    ['method', 'level', 'coefficient', 'published', 'GPT-3.5', 'GPT-4']
    """
    rows = published_table("comperdial")
    if table == 6:
        is_gpt35 = rows["method"].str.contains("GPT-3.5", regex=False)
        rows = rows[(rows["table"] == 16) & ~is_gpt35]
    else:
        rows = rows[rows["table"] == table]
    labels = rows["method"] + " " + rows["group"].fillna("")
    judge = labels.str.extract(r"\((GPT-[\d.]+)\)")[0].fillna("published")
    method = (
        rows["method"].str.replace(r"\s*\(GPT-[\d.]+\)", "", regex=True).replace(_NAMES)
    )
    rows = rows.assign(method=method, judge=judge)
    keys = ["method", "level", "coefficient"]
    wide = rows.pivot(index=keys, columns="judge", values="value")
    wide = wide.reindex(columns=["published", *JUDGES])
    wide = wide.rename_axis(columns=None).reset_index()
    return rows[keys].drop_duplicates().merge(wide, how="left")


def judge_correlations(
    scores: Mapping[str, pd.Series],
    human: pd.Series,
    units: pd.DataFrame,
    item: str = "turn",
) -> pd.DataFrame:
    """Correlations of any metrics with people, in the form of a published table.

    `scores` maps a method as the table names it to its values on `human`'s index. `item`
    says what an item is, "turn" or "dialog"; system level is the mean over its items. Columns:
    method, level, coefficient, ours, n (units), coverage (share of items with a score).
    """
    frame = pd.DataFrame(dict(scores), human.index)
    rows = correlate(
        frame, human.rename("human"), level=["turn", "system"], units=units
    )
    rows["coverage"] = rows["metric"].map(frame.notna().mean())
    rows["level"] = rows["level"].replace({"turn": item})
    names = {"metric": "method", "method": "coefficient", "value": "ours"}
    rows = rows.rename(columns=names)
    return rows[["method", "level", "coefficient", "ours", "n", "coverage"]]


def by_label(scores: Mapping[str, Scores], calls: int) -> dict[str, pd.Series]:
    """Score columns under the paper's labels, from the number of calls a table averages."""
    columns = {}
    for variant in scores.values():
        columns[variant.template.variant.label] = variant.first(calls).items["score"]
    return columns


def dialog_columns(
    scores: Mapping[str, Scores], dialogs: pd.DataFrame
) -> dict[str, pd.Series]:
    """Columns of Table 5 on the rows of a dialog table.

    Turn-level variants as means over the turns of a dialog, CPDScore-Dialogue and its
    intermediate score unchanged.
    """
    columns = {}
    for variant in scores.values():
        label = variant.template.variant.label
        if variant.template.variant.level == "turn":
            columns[label] = aggregate(variant, "dialog").set_index(_DIALOG)["score"]
            continue
        index = pd.MultiIndex.from_frame(variant.ids[_DIALOG])
        columns[label] = variant.items["score"].set_axis(index)
        columns[f"{label} intermediate"] = intermediate(variant).set_axis(index)
    dialog_index = pd.MultiIndex.from_frame(dialogs[_DIALOG])
    for label, values in columns.items():
        columns[label] = values.reindex(dialog_index).set_axis(dialogs.index)
    return columns
