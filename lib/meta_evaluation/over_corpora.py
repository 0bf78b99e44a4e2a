"""What correlations of one metric on several corpora say about the next corpus.

A random-effects meta-analysis: each corpus has a true correlation of its own, drawn around a mean.
The interval of the mean says how well that mean is known; the prediction interval says where the
true correlation on another corpus may lie.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse, stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests

from lib.analysis.authorship import MACHINES
from lib.meta_evaluation.evaluation_sets import EvaluationSet, metric_family

MIN_CORPORA = 3  # a prediction interval has n_corpora - 2 degrees of freedom

#: Two corpora share their items if this part of the replies of one is in the other.
SHARED_PART = 0.5

#: A mean is above 0 if its p, adjusted for the number of metrics, is at most this.
LEVEL = 0.05

#: The standing of a metric, from its correlations with people over corpora.
FOLLOWS = "follows people"
UNCERTAIN = "uncertain"
UNTESTED = "too few corpora"


class OverCorpora(NamedTuple):
    """A metric's correlation over corpora.

    Attributes:
        mean, low, high: the mean correlation and its 95 % interval.
        prediction_low, prediction_high: 95 % prediction interval: the correlation on another
            corpus.
        spread: standard deviation between corpora (tau), on the scale of Fisher's z.
        p: two-sided, that the mean is 0.
        corpora: how many have a correlation and an interval.
        reason: why nothing could be computed; the numbers are then NaN.
    """

    mean: float = np.nan
    low: float = np.nan
    high: float = np.nan
    prediction_low: float = np.nan
    prediction_high: float = np.nan
    spread: float = np.nan
    p: float = np.nan
    corpora: int = 0
    reason: str = ""


def combine_corpora(correlations: pd.DataFrame) -> OverCorpora:
    """Random-effects mean of correlations, with the interval of the mean and of the next corpus.

    On Fisher's z. The standard error of a corpus is half its 95 % interval's width over 1.96, the
    variance between corpora that of Paule and Mandel (1982), the interval of the mean that of
    Hartung, Knapp, Sidik and Jonkman with n - 1 degrees of freedom, and the prediction interval
    that of Higgins, Thompson and Spiegelhalter (2009) with n - 2.

    Args:
        correlations: one row per corpus with `value`, `low` and `high`, the 95 % interval. Corpora
            with a missing value are left out.

    Returns:
        Correlations between -1 and 1. NaN with a reason for fewer than three corpora.

    >>> table = pd.DataFrame({"value": [0.2, 0.3, 0.5]})
    >>> table = table.assign(low=table["value"] - 0.1, high=table["value"] + 0.1)
    >>> result = combine_corpora(table)
    >>> round(result.mean, 2), result.corpora, result.prediction_low < result.low
    (0.34, 3, True)
    """
    usable = correlations.dropna(subset=["value", "low", "high"])
    n_corpora = len(usable)
    if n_corpora < MIN_CORPORA:
        reason = f"{n_corpora} corpora, fewer than {MIN_CORPORA}"
        return OverCorpora(corpora=n_corpora, reason=reason)
    z = np.arctanh(usable[["value", "low", "high"]].clip(-0.9999, 0.9999))
    errors = (z["high"] - z["low"]) / (2 * stats.norm.ppf(0.975))
    result = combine_effects(z["value"], errors**2, method_re="pm", use_t=True)
    mean = result.mean_effect_re
    error = result.sd_eff_w_re_hksj
    half = stats.t.ppf(0.975, n_corpora - 1) * error
    next_half = stats.t.ppf(0.975, n_corpora - 2) * np.sqrt(result.tau2 + error**2)
    return OverCorpora(
        mean=float(np.tanh(mean)),
        low=float(np.tanh(mean - half)),
        high=float(np.tanh(mean + half)),
        prediction_low=float(np.tanh(mean - next_half)),
        prediction_high=float(np.tanh(mean + next_half)),
        spread=float(np.sqrt(result.tau2)),
        p=float(2 * stats.t.sf(abs(mean / error), n_corpora - 1)),
        corpora=n_corpora,
    )


def independent_corpora(sets: Sequence[EvaluationSet]) -> list[str]:
    """The names of the sets that count as corpora of their own: of those that share items, one.

    Two sets share items if half of the different replies of one (for dialogs: their last replies)
    are also in the other, as where one corpus has two loaders or two ratings. The first counts.

    >>> from lib.meta_evaluation.evaluation_sets import load_set
    >>> bots = load_set("sample_bots")
    >>> independent_corpora([bots, load_set("sample_personas"), bots])
    ['sample_bots', 'sample_personas']
    """
    texts = [_texts(items) for items in sets]
    shares = np.zeros((len(sets), len(sets)))
    for row, row_texts in enumerate(texts):
        for column, column_texts in enumerate(texts):
            fewest = max(1, min(len(row_texts), len(column_texts)))
            shares[row, column] = len(row_texts & column_texts) / fewest
    _, groups = sparse.csgraph.connected_components(shares >= SHARED_PART)
    names = pd.Series([items.name for items in sets])
    return names[~pd.Series(groups).duplicated()].tolist()


def _texts(items: EvaluationSet) -> set[str]:
    """The different replies of a set of turns, or the texts of a set of dialogs."""
    if "response" in items.table:
        texts = items.table["response"]
    else:
        texts = items.table["utterances"].map("\n".join)
    return set(texts.str.lower().str.split().map(" ".join))


def metrics_over_corpora(
    correlations: pd.DataFrame, corpora: Sequence[str]
) -> pd.DataFrame:
    """The mean correlation of every metric over corpora, and what it is on the next one.

    Args:
        correlations: result of `overview.author_overview`; its columns corpus, metric,
            replies, value, low and high are read.
        corpora: those that count (`independent_corpora`).

    Returns:
        A row per metric and kind of replies (machines' only first): replies, metric, family, the
        columns of `OverCorpora`, p_adjusted (Holm, over the metrics of that kind of replies) and
        standing: "follows people" where the mean is above 0 at an adjusted p of .05, "too few
        corpora" below three, else "uncertain". Sorted by the mean among machines.

    >>> rows = pd.DataFrame({"corpus": list("abc"), "metric": "length", "replies": "all",
    ...                      "value": 0.2, "low": 0.1, "high": 0.3})
    >>> metrics_over_corpora(rows, list("abc"))[["metric", "corpora"]].values.tolist()
    [['length', 3]]
    """
    counted = correlations[correlations["corpus"].isin(corpora)]
    rows = []
    for (replies, metric), group in counted.groupby(["replies", "metric"], sort=False):
        combined = combine_corpora(group)
        row = {"replies": replies, "metric": metric, "family": metric_family(metric)}
        rows.append(row | combined._asdict())
    table = pd.DataFrame(rows)
    table["p_adjusted"] = table.groupby("replies")["p"].transform(holm)
    follows = (table["p_adjusted"] <= LEVEL) & (table["mean"] > 0)
    table["standing"] = np.where(follows, FOLLOWS, UNCERTAIN)
    table.loc[table["corpora"] < MIN_CORPORA, "standing"] = UNTESTED
    machines = table[table["replies"] == MACHINES].set_index("metric")["mean"]
    table["order"] = -table["metric"].map(machines)
    table["last"] = table["replies"] != MACHINES
    table = table.sort_values(["last", "replies", "order"], kind="stable")
    return table.drop(columns=["last", "order"]).reset_index(drop=True)


def holm(p: pd.Series) -> pd.Series:
    """p-values adjusted by Holm (1979): no false claim in 95 % of such families; NaN stays NaN.

    >>> holm(pd.Series([0.01, float("nan"), 0.03])).tolist()
    [0.02, nan, 0.03]
    """
    tested = p.dropna()
    if not len(tested):
        return p
    adjusted = multipletests(tested, method="holm")[1]
    return pd.Series(adjusted, tested.index).reindex(p.index)
