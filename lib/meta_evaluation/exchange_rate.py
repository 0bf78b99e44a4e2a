"""How many ratings by people does a metric or a judge save, without bending the answer?

Prediction-powered inference (`lib.analysis.prediction_powered`) corrects the mean of few ratings by
the scores of many dialogs. With dialogs to score in plenty it saves the share r squared of the
ratings, where r is the correlation *within what is estimated*: within one system for its mean,
within the differences of two systems for their difference. A correlation over all systems, and
over people and machines, is larger and saves nothing more.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.analysis.prediction_powered import MIN_RATED
from lib.analysis.resampling import Interval, bootstrap_interval
from lib.analysis.systems import system_matrix
from lib.meta_evaluation.evaluation_sets import EvaluationSet, metric_family

ONE_SYSTEM = "mean of one system"
DIFFERENCE = "difference of two systems"
PLACEBO = "placebo"


class Saving(NamedTuple):
    """Ratings saved of 100 with their 95 % interval, and the correlation that saves them."""

    saved: float
    low: float
    high: float
    correlation: float


def ratings_saved(correlation: Interval) -> Saving:
    """How many of 100 ratings are saved by scores with this correlation to the ratings.

    100 r squared, where dialogs with a score and no rating are unlimited. r is a correlation within
    one system, or within the differences of two (see the module). A negative r saves as much as a
    positive one. Where the interval of r holds 0, the lower bound is 0.

    >>> ratings_saved(Interval(value=-0.5, low=-0.6, high=-0.3))
    Saving(saved=25.0, low=9.0, high=36.0, correlation=-0.5)
    >>> ratings_saved(Interval(value=0.1, low=-0.1, high=0.3)).low
    0.0
    """
    squares = [100 * correlation.low**2, 100 * correlation.high**2]
    holds_zero = correlation.low <= 0 <= correlation.high
    return Saving(
        saved=round(100 * correlation.value**2, 10),
        low=0.0 if holds_zero else round(min(squares), 10),
        high=round(max(squares), 10),
        correlation=correlation.value,
    )


def exchange_rates(
    items: EvaluationSet, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Ratings saved of 100 by every metric of a set, and by a placebo.

    The unit is a dialog (or the context that several systems answered): scores and ratings are
    averaged over its replies. People among the systems are left out, where the corpus says who they
    are. The placebo is a normal random number for each reply.

    Returns:
        Two rows per metric, for the mean of one system and, where at least two systems answered the
        same contexts, for the difference of two. Columns: `corpus`, `rating`, `metric`, `family`,
        `estimand`, `saved` (of 100; higher is better), `low`, `high` (95 %, dialogs resampled),
        `correlation` (Pearson's r, mean over systems or pairs of them), `noise_ceiling` (the most
        that any score can save, because ratings are noisy; NaN where only means are published),
        `systems`, `dialogs`, `replies` ("machines only", or "not labelled" where the corpus does
        not say who wrote them) and `reason` (why there is no value: fewer than 20 dialogs, or
        scores that do not vary within a system).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> exchange_rates(bots, resamples=20)[["metric", "estimand", "systems"]].values.tolist()
    [['length', 'mean of one system', 3], ['placebo', 'mean of one system', 3]]
    """
    by_person = items.table["written_by"] == "person"
    labelled = items.table["written_by"].notna().any()
    table = items.table[~by_person]
    human = items.human[~by_person]
    noise = np.random.default_rng(seed).normal(size=len(items.table))
    scores = items.scores.assign(**{PLACEBO: noise})[~by_person]
    ratings = system_matrix(human, table)
    ceilings = _noise_ceilings(items, ratings)
    rows = []
    for metric in scores:
        score_means = system_matrix(scores[metric], table)
        for estimand, ceiling in ceilings.items():
            if estimand == DIFFERENCE:
                pairs = _differences(score_means, ratings)
            else:
                pairs = _long(score_means, ratings)
            interval = _correlation_within(pairs, resamples=resamples, seed=seed)
            rows.append(
                {
                    "corpus": items.name,
                    "rating": items.dimension,
                    "metric": metric,
                    "family": PLACEBO if metric == PLACEBO else metric_family(metric),
                    "estimand": estimand,
                    **ratings_saved(interval)._asdict(),
                    "noise_ceiling": ceiling,
                    "systems": len(ratings),
                    "dialogs": interval.clusters,
                    "replies": "machines only" if labelled else "not labelled",
                    "reason": interval.reason,
                }
            )
    return pd.DataFrame(rows)


def _long(scores: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """One row per system and dialog: group (the system), dialog, score, rating."""
    columns = {"score": scores.stack(), "rating": ratings.stack()}
    table = pd.DataFrame(columns).dropna().reset_index()
    return table.rename(columns={"system": "group"})


def _differences(scores: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """One row per pair of systems and context that both answered."""
    tables = []
    for a, b in itertools.combinations(ratings.index, 2):
        differences = {
            "score": scores.loc[b] - scores.loc[a],
            "rating": ratings.loc[b] - ratings.loc[a],
        }
        table = pd.DataFrame(differences).dropna().rename_axis("dialog")
        tables.append(table.reset_index().assign(group=f"{a} and {b}"))
    return pd.concat(tables, ignore_index=True)


def _correlation_within(pairs: pd.DataFrame, resamples: int, seed: int) -> Interval:
    """Pearson's r of score and rating, both standardised within each group."""
    grouped = pairs.groupby("group")[["score", "rating"]]
    deviations = grouped.transform("std", ddof=0)
    standardised = (pairs[["score", "rating"]] - grouped.transform("mean")) / deviations
    # A system with one dialog, or with the same score everywhere, says nothing.
    varies = (deviations > 1e-12).all(axis=1)
    if not varies.any():
        return Interval(reason="scores or ratings do not vary within a system")
    dialogs = pairs.loc[varies, "dialog"].nunique()
    if dialogs < MIN_RATED:
        return Interval(
            clusters=dialogs, reason=f"{dialogs} dialogs, fewer than {MIN_RATED}"
        )
    return bootstrap_interval(
        standardised.loc[varies, "score"],
        standardised.loc[varies, "rating"],
        clusters=pairs.loc[varies, "dialog"],
        method="pearson",
        resamples=resamples,
        seed=seed,
    )


def _noise_ceilings(items: EvaluationSet, ratings: pd.DataFrame) -> dict[str, float]:
    """The share of the variance of dialog means that is not rater noise, of 100, by estimand."""
    noise = system_matrix(_noise_variance(items), items.table).reindex_like(ratings)
    ceilings = {ONE_SYSTEM: _reliable_share(ratings, noise)}
    answered = ratings.notna().sum()
    if len(ratings) > 1 and (answered > 1).sum() > 2:
        differences = []
        noises = []
        for a, b in itertools.combinations(ratings.index, 2):
            differences.append(ratings.loc[b] - ratings.loc[a])
            noises.append(noise.loc[a] + noise.loc[b])
        ceilings[DIFFERENCE] = _reliable_share(
            pd.DataFrame(differences), pd.DataFrame(noises)
        )
    return ceilings


def _reliable_share(ratings: pd.DataFrame, noise: pd.DataFrame) -> float:
    """100 (1 - noise / variance) of the means in each row; NaN without single ratings."""
    variance = ratings.var(axis=1, ddof=1).mean()
    mean_noise = noise.stack().mean()
    return float(np.clip(100 * (1 - mean_noise / variance), 0, 100))


def _noise_variance(items: EvaluationSet) -> pd.Series:
    """Variance of each item's mean rating over raters, divided by the dialog's number of items."""
    single = items.ratings
    if single is not None:
        single = single[single["dimension"] == items.dimension]
    if single is None or single.empty:
        return pd.Series(np.nan, items.table.index)
    grouped = single.groupby("item")["rating"]
    of_mean = grouped.var(ddof=1) / grouped.size()
    keys = [items.table["system"], items.table["dialog"]]
    n_items = items.human.groupby(keys).transform("size")
    return of_mean.reindex(items.table.index) / n_items
