"""Turn scores to dialogs and systems, with the coverage beside every mean."""

import pandas as pd

from lib.cpdscore.scoring import Scores

LEVELS = {"dialog": ["system", "agent", "dialog"], "agent": ["system", "agent"],
          "system": ["system"]}  # fmt: skip
COMPLETE = 0.99  # a mean over fewer of its items than this is marked


def aggregate(scores: Scores, level: str) -> pd.DataFrame:
    """Mean score per dialog, agent or system (paper, C.1.2 and footnotes 9 and 11).

    The mean is over all turns (or dialogs) of the unit that have a score, so once values are
    missing it differs from the mean of dialog means. Columns: ``score`` (NaN without any),
    ``items``, ``scored``, ``coverage`` (their ratio) and ``complete`` (coverage at least .99).

    Raises ``ValueError`` for another level.
    """
    if level not in LEVELS:
        raise ValueError(f"level {level!r}: choose one of {', '.join(LEVELS)}")
    joined = scores.units[LEVELS[level]].join(scores.items["score"])
    groups = joined.groupby(LEVELS[level], sort=False)["score"]
    frame = pd.DataFrame({"score": groups.mean(), "items": groups.size(), "scored": groups.count()})
    frame["coverage"] = frame["scored"] / frame["items"]
    return frame.assign(complete=frame["coverage"] >= COMPLETE).reset_index()


def intermediate(scores: Scores) -> pd.Series:
    """The "intermediate score" rows of Table 5: mean Overall Dialogue Turn Score per dialog.

    Over the same replies as the final score; NaN where that is NaN.
    """
    field = "overall dialogue turn score"
    usable = scores.replies[scores.replies["score"].notna()].sort_values(["item", "sample"])
    usable = usable[usable.groupby("item").cumcount() < scores.judge.samples]
    return usable.groupby("item")[field].mean().reindex(scores.items.index)
