"""What each system and agent is like: mean ratings and scores, and their share of the variance."""

import numpy as np
import pandas as pd

from lib.analysis.resampling import bootstrap_mean
from lib.analysis.variance_components import variance_split
from lib.data import DataError
from lib.report.dialogs import rating_columns

PSYCHOLOGY = [
    "emotional_entropy",
    "emotional_entropy_paper",
    "emotion_matching",
    "language_style_matching",
]
#: Metrics that describe how an agent talks rather than how good it is.
PROFILE = [
    *PSYCHOLOGY,
    "agreeableness",
    "empathy",
    "length",
    "question",
    "context_similarity",
]


def group_means(
    turns: pd.DataFrame, values: pd.DataFrame, by: list[str], seed: int = 0
) -> pd.DataFrame:
    """Mean of each column per group of turns, with a 95 % bootstrap interval over its dialogs.

    Columns: those of `by`, metric, value, low, high, dialogs, turns (those with a value). With one
    dialog the interval is NaN.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1", "1", "2"]})
    >>> group_means(turns, pd.DataFrame({"length": [1.0, 3.0, 5.0]}), ["system"])["value"].tolist()
    [3.0]
    """
    rows = []
    for key, group in turns.groupby(by, sort=False):
        for name in values:
            group_values = values.loc[group.index, name]
            mean = bootstrap_mean(group_values, group["dialog"], seed=seed)
            rows.append(
                {
                    **dict(zip(by, key, strict=True)),
                    "metric": name,
                    "value": mean.value,
                    "low": mean.low,
                    "high": mean.high,
                    "dialogs": mean.clusters,
                    "turns": mean.n,
                }
            )
    columns = ["metric", "value", "low", "high", "dialogs", "turns"]
    return pd.DataFrame(rows, columns=[*by, *columns])


def mean_ratings(turns: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """`group_means` of each rating per system: system, rating, mean, low, high, dialogs, replies.

    No rows without ratings; only replies with a rating are counted.

    >>> turns = pd.DataFrame({"system": "A", "dialog": ["1", "2"], "human_fun": [2.0, 4.0]})
    >>> mean_ratings(turns)[["system", "rating", "mean"]].values.tolist()
    [['A', 'human_fun', 3.0]]
    """
    table = group_means(turns, turns[rating_columns(turns)], ["system"], seed)
    return table.rename(
        columns={"metric": "rating", "value": "mean", "turns": "replies"}
    )


def agent_profile(
    turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
    """`group_means` of each profile metric per agent, also in standard deviations of turns.

    Further columns: z (value minus the mean over all turns, in their standard deviations), z_low,
    z_high; NaN for a metric that is the same everywhere.

    >>> turns = pd.DataFrame({"system": "A", "agent": ["A", "B"], "dialog": ["1", "2"]})
    >>> agent_profile(turns, pd.DataFrame({"length": [1.0, 5.0]}))["z"].tolist()
    [-1.0, 1.0]
    """
    values = scores[[metric for metric in PROFILE if metric in scores]]
    table = group_means(turns, values, ["system", "agent"], seed)
    deviations = values.std(ddof=0).replace(0, np.nan)
    mean = table["metric"].map(values.mean())
    deviation = table["metric"].map(deviations)
    for z, column in {"z": "value", "z_low": "low", "z_high": "high"}.items():
        table[z] = (table[column] - mean) / deviation
    return table


def state_or_trait(turns: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Share of each profile metric's variance between systems, agents, dialogs and turns.

    A trait belongs to the agent (large shares of system and agent), a state to the moment (large
    share of turn). Columns: metric, system, agent, dialog, turn (shares that add up to 1; NaN for a
    level that cannot be separated), note (why nothing could be split).

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1"] * 4})
    >>> state_or_trait(turns, pd.DataFrame({"length": [1.0, 2, 3, 4]}))["note"].item() != ""
    True
    """
    rows = []
    for metric in PROFILE:
        if metric not in scores:
            continue
        try:
            shares = variance_split(turns, scores[metric])["share"]
            rows.append({"metric": metric, "note": "", **shares})
        except DataError as error:
            rows.append({"metric": metric, "note": str(error).splitlines()[0]})
    return pd.DataFrame(
        rows, columns=["metric", "system", "agent", "dialog", "turn", "note"]
    )
