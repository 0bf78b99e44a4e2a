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
    for s in sets:
        nested = s.clusters.nunique(), s.table["system"].nunique()
        rows.append((s.name, s.level, s.dimension, len(s.human), *nested, s.scores.shape[1]))
    columns = ["corpus", "level", "rating", "items", "clusters", "systems", "metrics"]
    return pd.DataFrame(rows, columns=columns)


def with_metrics(sets: Iterable[EvaluationSet]) -> list[EvaluationSet]:
    """The sets that have a metric to judge; says which have none and are left out.

    Raises:
        DataError: none is left: a corpus of rated dialogs whose scores nobody shipped has nothing
            to judge here, because the metrics that are computed score single turns.
    """
    sets = list(sets)
    kept = [items for items in sets if items.scores.shape[1]]
    bare = ", ".join(items.name for items in sets if not items.scores.shape[1])
    if not kept:
        fix = "take a corpus whose single turns were rated, or one with scores of dialogs: gpt4_fed"
        raise DataError(f"no metric is at hand for {bare}", fix=fix)
    if bare:
        print(f"left out, no metric is at hand: {bare}")
    return kept


def correlation_overview(sets: Iterable, method="spearman", resamples=1000, seed=0) -> pd.DataFrame:
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
    parts = [_one_set(s, method, resamples, seed) for s in tqdm(list(sets), desc="overview")]
    return pd.concat(parts, ignore_index=True)


def _one_set(items: EvaluationSet, method: str, resamples: int, seed: int) -> pd.DataFrame:
    covered = items.scores.notna().mean()
    ranked = [name for name in items.scores if covered[name] >= COVERAGE]
    rated = (items.human, items.clusters, method)
    ranks = significance.rank_metrics(items.scores[ranked], *rated, resamples=resamples, seed=seed)
    ranks = ranks.set_index("metric")["rank"]
    rows = []
    for name in items.scores:
        found = resampling.bootstrap_interval(items.scores[name], *rated, resamples, seed=seed)
        few = "" if name in ranked else f"scores {covered[name]:.0%} of the items"
        of = (items.name, items.dimension, name, metric_family(name))
        rows.append((*of, *found[:5], ranks.get(name, np.nan), found.reason or few))
    columns = ["corpus", "rating", "metric", "family", "value", "low", "high", "n", "clusters"]
    return pd.DataFrame(rows, columns=[*columns, "rank", "reason"])


def contributions(sets: Iterable[EvaluationSet], seed: int = 0) -> pd.DataFrame:
    """Adjusted R2 and cross-validated gain of every family, alone and added to every other one.

    All metrics of a family enter as predictors. A family is used where its metrics score at least
    80 % of the items; every model of a set is fitted on the items that all families score.

    Returns:
        One row per set and ordered pair of families: corpus, rating, base ("none" for the family
        alone), added, metrics (number of predictors added), n, r2_base, r2_both (adjusted), gain
        (r2_both - r2_base), cv_gain and p_cv (`cross_validated_gain`: drop of the absolute error on
        dialogs not fitted to, in standard deviations of the rating; positive is better), q_cv
        (Benjamini-Hochberg over the rows of the table).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> contributions([bots])[["base", "added", "metrics"]].values.tolist()
    [['none', 'baseline', 1]]
    """
    table = pd.DataFrame([row for items in sets for row in _contributions(items, seed)])
    return table.assign(q_cv=significance.benjamini_hochberg(table["p_cv"]))


def _contributions(items: EvaluationSet, seed: int) -> list[dict]:
    data = items.scores.loc[:, items.scores.notna().mean() >= COVERAGE].astype(float).dropna()
    data = data.loc[:, data.nunique() > 1]
    present = dict.fromkeys(map(metric_family, data))
    families = {
        name: [metric for metric in data if metric_family(metric) == name] for name in present
    }
    data = data.assign(human=items.human, cluster=items.clusters)
    rows = []
    for base, old in {"none": [], **families}.items():
        for added in (name for name in families if name != base):
            row = {"corpus": items.name, "rating": items.dimension, "base": base, "added": added}
            rows.append(row | _gain(data, old, families[added], seed))
    return rows


def _gain(data: pd.DataFrame, old: list[str], new: list[str], seed: int) -> dict:
    r2_base = regression.adjusted_r2(data, "human", old) if old else 0.0
    r2_both = regression.adjusted_r2(data, "human", [*old, *new])
    unseen = regression.cross_validated_gain(data, "human", old, new, data["cluster"], seed)
    row = {"metrics": len(new), "n": len(data), "r2_base": r2_base, "r2_both": r2_both}
    return row | {"gain": r2_both - r2_base, "cv_gain": unseen.statistic, "p_cv": unseen.p}


def system_intervals(items, metric: str, method: str, resamples=1000, seed=0) -> pd.DataFrame:
    """System-level correlation with intervals over contexts, over systems, and over both.

    Returns:
        resampled, then the columns of `resampling.Interval` (n is the number of systems).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> system_intervals(bots, "length", "spearman", 20)["n"].tolist()
    [3, 3, 3]
    """
    both = [systems.system_matrix(v, items.table) for v in (items.scores[metric], items.human)]
    kinds = ["contexts", "systems", "both"]
    found = [systems.system_interval(*both, method, kind, resamples, seed) for kind in kinds]
    return pd.DataFrame(found, kinds).rename_axis("resampled").reset_index()


def soft_accuracies(items: EvaluationSet, resamples: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Soft pairwise accuracy of every metric that scores all items, best first.

    Columns: metric, spa, pairs (of systems that share a context), reason (why spa is NaN).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> soft_accuracies(bots, 50)["metric"].tolist()
    ['length']
    """
    rated = systems.system_matrix(items.human, items.table)
    rows = []
    for name in items.scores.dropna(axis=1):
        judged = systems.system_matrix(items.scores[name], items.table)
        rows.append((name, *systems.soft_pairwise_accuracy(judged, rated, resamples, seed)))
    table = pd.DataFrame(rows, columns=["metric", "spa", "pairs", "reason"])
    return table.sort_values("spa", ascending=False, ignore_index=True)
