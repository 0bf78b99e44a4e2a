"""What each agent is like, and whether a metric measures the agent or the moment."""

import numpy as np
import pandas as pd

from lib import analysis
from lib.data.dialogues import DataError

#: Metrics that describe how an agent talks rather than how good it is.
PROFILE = (
    "emotional_entropy",
    "emotion_matching",
    "language_style_matching",
    "agreeableness",
    "empathy",
    "length",
    "question",
    "context_similarity",
)


def agent_profile(
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Mean of each profile metric per agent, with a bootstrap interval over its dialogs.

    Columns: system, agent, metric, value, low, high, dialogs, turns, z (value minus the mean over
    all turns, in standard deviations of turns), z_low, z_high. With one dialog the interval is NaN.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1", "1", "2"]})
    >>> agent_profile(turns, pd.DataFrame({"length": [1.0, 3.0, 5.0]}))["value"].tolist()
    [3.0]
    """
    rows = []
    for name in [metric for metric in PROFILE if metric in scores]:
        mean, spread = scores[name].mean(), scores[name].std(ddof=0) or np.nan
        for (system, agent), group in turns.groupby(["system", "agent"], sort=True):
            values = scores.loc[group.index, name]
            found = analysis.bootstrap_mean(values, group["dialog"], resamples, seed)
            z = [(v - mean) / spread for v in found[:3]]
            rows.append((system, agent, name, *found[:3], found.clusters, len(group), *z))
    columns = ["system", "agent", "metric", "value", "low", "high", "dialogs", "turns"]
    return pd.DataFrame(rows, columns=[*columns, "z", "z_low", "z_high"])


def state_or_trait(turns: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Share of each profile metric's variance between systems, agents, dialogs and turns.

    A trait belongs to the agent (large shares of system and agent), a state to the moment (large
    share of turn). Columns: metric, system, agent, dialog, turn (shares that add up to 1; NaN for a
    level that cannot be told apart), note (why nothing could be split).

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1"] * 4})
    >>> state_or_trait(turns, pd.DataFrame({"length": [1.0, 2, 3, 4]}))["note"].item() != ""
    True
    """
    rows = []
    for name in [metric for metric in PROFILE if metric in scores]:
        row = {"metric": name, "system": np.nan, "agent": np.nan, "dialog": np.nan, "turn": np.nan}
        try:
            split = analysis.variance_split(turns, scores[name])
            row |= split["share"].to_dict() | {"note": ""}
        except (DataError, analysis.ConvergenceError) as error:
            row["note"] = str(error).splitlines()[0]
        rows.append(row)
    return pd.DataFrame(rows, columns=["metric", "system", "agent", "dialog", "turn", "note"])
