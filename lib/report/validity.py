"""What is known of each metric: on public corpora, and on the ratings of the user's own file."""

import numpy as np
import pandas as pd

from lib import ROOT
from lib.analysis.significance import rank_metrics
from lib.meta_evaluation.evaluation_sets import ENCODER
from lib.report.dialogs import leading_rating

AGREES = "agrees with people"  # a status of `known_validity`
FOLLOWS = "follows people"  # a standing of `10_metric_validity.csv`
MIN_CORPORA = 3
MIN_SCORED = 0.8  # share of the replies that a metric must score to be correlated


def reference_table(name: str, columns: list[str] | None = None) -> pd.DataFrame:
    """Columns of a table of `data/reference`, by default all; its README describes them."""
    return pd.read_csv(ROOT / "data" / "reference" / f"{name}.csv", usecols=columns)


def known_validity(scores: pd.DataFrame) -> pd.DataFrame:
    """How well each metric agrees with people on public corpora, and which damage it detects.

    From notebook 10, on replies that no person wrote: `mean`, the random-effects mean of the
    Spearman correlations with people over `corpora`, with its 95 % interval (`low`, `high`), and
    the 95 % prediction interval, where the correlation on another corpus may lie; `detects`, the
    kinds of damage (of 18) where it prefers the original text, its interval above one half, and
    `prefers_damage`, those where it prefers the damaged one. `status`:

    - "agrees with people": the mean over at least three corpora is above 0, at a p of .05 adjusted
      for the number of metrics of notebook 10 (Holm);
    - "uncertain": that is not shown;
    - "not tested": fewer corpora;
    - "no information": it is constant on these replies, or defined for less than half of them.

    Metrics that agree with people come first, by their mean; the others have no order.

    >>> scores = pd.DataFrame({"flat": [1.0, 1.0], "mine": [1.0, 2.0]})
    >>> known_validity(scores)[["metric", "status"]].values.tolist()
    [['flat', 'no information'], ['mine', 'not tested']]
    """
    columns = ["metric", "corpora_machines", "mean_machines", "low", "high"]
    columns += ["prediction_low", "prediction_high", "standing"]
    public = reference_table("10_metric_validity", columns)[columns]
    public = public.rename(
        columns={"corpora_machines": "corpora", "mean_machines": "mean"}
    )
    table = pd.DataFrame({"metric": list(scores)})
    table = table.merge(public, on="metric", how="left")
    damage = reference_table("10_robustness", ["metric", "low", "high"])
    damage["detects"] = damage["low"] > 0.5
    damage["prefers_damage"] = damage["high"] < 0.5
    kinds = damage.groupby("metric")[["detects", "prefers_damage"]].sum()
    table = table.join(kinds, on="metric")

    constant = (scores.nunique() <= 1).to_numpy()
    rare = (share_scored(scores) < 0.5).to_numpy()
    tested = table["corpora"] >= MIN_CORPORA
    follows = table.pop("standing") == FOLLOWS
    conditions = [constant, ~tested, rare, follows]
    statuses = ["no information", "not tested", "no information", AGREES]
    table["status"] = np.select(conditions, statuses, "uncertain")
    mean = table["mean"].where(table["status"] == AGREES)
    order = mean.sort_values(ascending=False).index
    return table.loc[order].reset_index(drop=True)


def share_scored(scores: pd.DataFrame) -> pd.Series:
    """Share of the replies that each metric scored; of a network's, among those that it read.

    >>> share_scored(pd.DataFrame({"length": [1.0, np.nan], "endex": [0.5, np.nan]})).tolist()
    [0.5, 1.0]
    """
    scored = scores.notna()
    by_network = scores.columns.isin(ENCODER)
    read_by_networks = scored.loc[:, by_network].any(axis=1).sum()
    return scored.sum() / np.where(by_network, read_by_networks, len(scores))


def correlations_with_ratings(
    turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
    """Spearman of each metric with one rating of the file, with intervals and clusters.

    The rating is human_overall where there is one, else the first; the column `rating` names it.
    `significance.rank_metrics` on the metrics that score at least 80 % of the replies, dialogs
    resampled. A metric whose interval holds 0 says nothing about that rating and has no rank. An
    empty table when the file has no ratings.

    >>> turns = pd.DataFrame({"response": ["a"], "dialog": ["1"]})
    >>> len(correlations_with_ratings(turns, pd.DataFrame({"length": [1.0]})))
    0
    """
    rating = leading_rating(turns)
    if not rating:
        return pd.DataFrame(
            columns=["rating", "metric", "value", "low", "high", "n", "rank"]
        )
    table = rank_metrics(
        scores.loc[:, share_scored(scores) >= MIN_SCORED],
        turns[rating],
        turns["dialog"],
        method="spearman",
        resamples=1000,
        seed=seed,
    )
    table.insert(0, "rating", rating)
    holds_zero = (table["low"] <= 0) & (table["high"] >= 0)
    return table.assign(rank=table["rank"].mask(holds_zero))
