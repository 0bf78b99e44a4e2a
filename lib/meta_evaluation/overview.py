"""The tables of notebook 08: every metric on every evaluation set, with intervals over dialogs."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib.analysis import regression, resampling, significance, systems
from lib.data import DataError
from lib.meta_evaluation.evaluation_sets import EvaluationSet, metric_family

#: A metric is ranked on a set if it scores at least this share of its items.
COVERAGE = 0.8


def describe_sets(sets: Iterable[EvaluationSet]) -> pd.DataFrame:
    """One row per set: level, rating, and how many items, clusters, systems and metrics.

    >>> from lib.meta_evaluation.evaluation_sets import load_set
    >>> describe_sets([load_set("sample_bots")])[["corpus", "systems"]].values.tolist()
    [['sample_bots', 3]]
    """
    rows = []
    for items in sets:
        rows.append(
            {
                "corpus": items.name,
                "level": items.level,
                "rating": items.dimension,
                "items": len(items.human),
                "clusters": items.clusters.nunique(),
                "systems": items.table["system"].nunique(),
                "metrics": items.scores.shape[1],
            }
        )
    return pd.DataFrame(rows)


def with_metrics(sets: Iterable[EvaluationSet]) -> list[EvaluationSet]:
    """The sets that have a metric to evaluate; prints which have none and are left out.

    Raises:
        DataError: no set has one: a corpus of rated dialogs without published scores has nothing to
            evaluate here, because the metrics that are computed score single turns.
    """
    usable = []
    without = []
    for items in sets:
        (usable if len(items.scores.columns) else without).append(items)
    names = ", ".join(items.name for items in without)
    if not usable:
        hint = "take a corpus of rated turns, or one with scores of dialogs: gpt4_fed"
        raise DataError(f"no metric is available for {names}", fix=hint)
    if names:
        print(f"left out, no metric is available: {names}")
    return usable


def correlation_overview(
    sets: Iterable[EvaluationSet],
    method: str = "spearman",
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Correlation, interval and significance cluster of each metric on each evaluation set.

    Value and interval use the items that the metric scores; the rank uses the items that all ranked
    metrics score, so metrics that miss more than a fifth of the items are not ranked.

    Returns:
        corpus, rating, metric, family, value, low, high, n, clusters, rank (1 is the best cluster,
        NaN if not ranked), reason.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> correlation_overview([bots], resamples=50)[["metric", "family", "rank"]].values.tolist()
    [['length', 'baseline', 1]]
    """
    rows = []
    for items in tqdm(list(sets), desc="overview"):
        options = {"method": method, "resamples": resamples, "seed": seed}
        coverage = items.scores.notna().mean()
        ranked = items.scores.loc[:, coverage >= COVERAGE]
        ranks = significance.rank_metrics(
            ranked, items.human, items.clusters, **options
        )
        ranks = ranks.set_index("metric")["rank"]
        for metric, scores in items.scores.items():
            interval = resampling.bootstrap_interval(
                scores, items.human, items.clusters, **options
            )
            not_ranked = (
                ""
                if metric in ranked
                else f"scores {coverage[metric]:.0%} of the items"
            )
            rows.append(
                {
                    "corpus": items.name,
                    "rating": items.dimension,
                    "metric": metric,
                    "family": metric_family(metric),
                    "value": interval.value,
                    "low": interval.low,
                    "high": interval.high,
                    "n": interval.n,
                    "clusters": interval.clusters,
                    "rank": ranks.get(metric, np.nan),
                    "reason": interval.reason or not_ranked,
                }
            )
    return pd.DataFrame(rows)


def contributions(sets: Iterable[EvaluationSet], seed: int = 0) -> pd.DataFrame:
    """Adjusted R2 and cross-validated gain of every family, alone and added to every other one.

    All metrics of a family enter as predictors. A family is used where its metrics score at least
    80 % of the items; every model of a set is fitted on the items that all families score.

    Returns:
        One row per set and ordered pair of families: corpus, rating, base ("none" for the family
        alone), added, metrics (number of predictors added), n, r2_base, r2_both (adjusted), gain
        (r2_both - r2_base), cv_gain and p_cv (`cross_validated_gain`: rise of R2 on
        dialogs that were not fitted to; positive is better; p is one-sided), q_cv
        (Benjamini-Hochberg over the rows of the table).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> contributions([bots])[["base", "added", "metrics"]].values.tolist()
    [['none', 'baseline', 1]]
    """
    rows = []
    for items in sets:
        covers = items.scores.notna().mean() >= COVERAGE
        data = items.scores.loc[:, covers].astype(float).dropna()
        data = data.loc[:, data.nunique() > 1]
        families: dict[str, list[str]] = {"none": []}
        for metric in data:
            families.setdefault(metric_family(metric), []).append(metric)
        data = data.assign(human=items.human, cluster=items.clusters)
        for base in families:
            for added in families:
                if added in ("none", base):
                    continue
                gain = _gain(data, families[base], families[added], seed)
                pair = {"corpus": items.name, "rating": items.dimension}
                rows.append(pair | {"base": base, "added": added} | gain)
    table = pd.DataFrame(rows)
    return table.assign(q_cv=significance.benjamini_hochberg(table["p_cv"]))


def _gain(data: pd.DataFrame, base: list[str], added: list[str], seed: int) -> dict:
    r2_base = regression.adjusted_r2(data, "human", base) if base else 0.0
    r2_both = regression.adjusted_r2(data, "human", [*base, *added])
    unseen = regression.cross_validated_gain(
        data, "human", base, added, clusters=data["cluster"], seed=seed
    )
    return {
        "metrics": len(added),
        "n": len(data),
        "r2_base": r2_base,
        "r2_both": r2_both,
        "gain": r2_both - r2_base,
        "cv_gain": unseen.statistic,
        "p_cv": unseen.p,
    }


def system_intervals(
    items: EvaluationSet, metric: str, method: str, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """System-level correlation with intervals over contexts, over systems, and over both.

    Returns:
        resampled, then the columns of `resampling.Interval` (n is the number of systems).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> system_intervals(bots, "length", "spearman", resamples=20)["n"].tolist()
    [3, 3, 3]
    """
    scores = systems.system_matrix(items.scores[metric], items.table)
    human = systems.system_matrix(items.human, items.table)
    intervals = {}
    for kind in ("contexts", "systems", "both"):
        interval = systems.system_interval(
            scores, human, method, kind, resamples=resamples, seed=seed
        )
        intervals[kind] = interval._asdict()
    table = pd.DataFrame.from_dict(intervals, orient="index")
    return table.rename_axis("resampled").reset_index()


def soft_accuracies(
    items: EvaluationSet, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Soft pairwise accuracy of every metric that scores all items, best first.

    Columns: metric, spa, pairs (of systems that share a context), reason (why spa is NaN).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> soft_accuracies(bots, 50)["metric"].tolist()
    ['length']
    """
    human = systems.system_matrix(items.human, items.table)
    rows = []
    for metric, scores in items.scores.dropna(axis=1).items():
        matrix = systems.system_matrix(scores, items.table)
        spa, pairs, reason = systems.soft_pairwise_accuracy(
            matrix, human, resamples=resamples, seed=seed
        )
        rows.append({"metric": metric, "spa": spa, "pairs": pairs, "reason": reason})
    table = pd.DataFrame(rows, columns=["metric", "spa", "pairs", "reason"])
    return table.sort_values("spa", ascending=False, ignore_index=True)
