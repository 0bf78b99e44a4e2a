"""The printed regression tables of the human-centered paper, with their lost minus signs."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from lib import ROOT

PAPER_SETS = {
    "TP": ("dstc10_topical_usr", "human_overall"),
    "UP": ("dstc10_persona_usr", "human_overall"),
    "ZD": ("dstc10_dailydialog_zhao", "human_appropriateness"),
    "ZP": ("dstc10_persona_zhao", "human_appropriateness"),
}
"""Data sets of Tables 15-18 that are public with texts: corpus name and rating (Table 6)."""


def data_sets(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Corpus and rating of each data set that a notebook's parameter names.

    Raises
    ------
    ValueError
        For a name that is neither "sample" nor a key of `PAPER_SETS`.

    Examples
    --------
    >>> data_sets(["TP", "sample"])
    {'TP': ('dstc10_topical_usr', 'human_overall'), 'sample': ('sample_bots', 'human_overall')}
    >>> data_sets(["usr_topical"])
    Traceback (most recent call last):
    ...
    ValueError: there is no data set 'usr_topical': take 'sample', 'TP', 'UP', 'ZD', 'ZP'
    """
    known = {"sample": ("sample_bots", "human_overall")} | PAPER_SETS
    for name in names:
        if name not in known:
            raise ValueError(
                f"there is no data set {name!r}: take {', '.join(repr(key) for key in known)}"
            )
    return {name: known[name] for name in names}


def published_tables() -> pd.DataFrame:
    """Read the printed adjusted R2 of Tables 1-5 and 7-18, with signs inferred.

    Tables 1-5 print negative values, Tables 7-18 none, though adjusted R2 of a useless predictor
    is negative (about -1/(n - 2)). The sign of a P value is inferred where the same metric lowers
    the adjusted R2 of every automatic metric of the table: P+A < A in all six rows. That is by
    far likeliest for a useless metric, but no proof: P+A < A means |t| < 1 beside A.

    Returns
    -------
    DataFrame
        table, level, dataset, rating, automatic_metric, psychological_metric, model (A, P, P+A),
        adjusted_r2 as printed, stars (printed at P+A, "" elsewhere), signed (with signs inferred).

    References
    ----------
    Giorgi et al. (2023), Tables 1-5 and 7-18.

    Examples
    --------
    >>> printed = published_tables()
    >>> row = printed.query("dataset == 'TP' and model == 'P'").set_index("psychological_metric")
    >>> row.loc["emotion_matching", "signed"].unique().tolist()
    [-0.003]
    """
    path = ROOT / "data" / "published" / "human_centered_metrics.csv"
    printed = pd.read_csv(path, keep_default_na=False)
    printed["adjusted_r2"] = pd.to_numeric(printed["adjusted_r2"])
    printed["signed"] = printed["adjusted_r2"]
    lost = (printed["table"] >= 7) & (printed["model"] == "P")
    lost &= printed.set_index(["table", "psychological_metric"]).index.map(_lowers(printed))
    printed.loc[lost, "signed"] *= -1
    return printed


def published_alone() -> pd.DataFrame:
    """Arrange the P values of Tables 7-18: one row per data set, one column per metric.

    >>> published_alone().loc["UP"].tolist()
    [-0.003, -0.003, 0.13, -0.003, 0.019, 0.009]
    """
    printed = published_tables()
    chosen = printed[(printed["model"] == "P") & (printed["table"] >= 7)]
    order = list(dict.fromkeys(chosen["psychological_metric"]))
    return chosen.pivot_table("signed", "dataset", "psychological_metric")[order]


def _lowers(printed: pd.DataFrame) -> dict[tuple[int, str], bool]:
    """Whether P+A < A in every row of a table, for each table and psychological metric."""
    place = ["table", "dataset", "automatic_metric"]
    alone = printed[printed["model"] == "A"][[*place, "adjusted_r2"]]
    both = printed[printed["model"] == "P+A"].merge(alone, on=place, suffixes=("", "_alone"))
    both["lower"] = both["adjusted_r2"] < both["adjusted_r2_alone"]
    lowers = {
        key: False for key in zip(printed["table"], printed["psychological_metric"], strict=True)
    }
    return lowers | both.groupby(["table", "psychological_metric"])["lower"].all().to_dict()


def published_gains() -> pd.DataFrame:
    """Printed gains P+A minus A, by data set and automatic metric (Tables 7-18).

    Agreeableness and empathy included; differences of figures printed to three decimals, so each
    is uncertain by .001.

    >>> float(published_gains().loc[("TP", "BARTScore"), "emotional_entropy"])
    0.075
    """
    printed = published_tables().query("table >= 7")
    key = ["dataset", "automatic_metric"]
    alone = printed[printed["model"] == "A"].set_index(key)["adjusted_r2"]
    both = printed[printed["model"] == "P+A"]
    both = both.pivot_table("adjusted_r2", key, "psychological_metric")
    return both.sub(alone, axis=0)
