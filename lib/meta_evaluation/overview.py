"""The tables of notebook 08: every metric on every evaluation set, with intervals over dialogs."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib.analysis import regression, resampling, significance, systems
from lib.analysis.agreement import agreement_summary
from lib.data import DataError
from lib.meta_evaluation.evaluation_sets import FAMILIES, EvaluationSet, family

#: A metric is ranked on a set if it scores at least this share of its items.
COVERAGE = 0.8


def describe(sets: Iterable[EvaluationSet]) -> pd.DataFrame:
    """One row per set: level, rating, and how many items, clusters, systems and metrics.

    >>> from lib.meta_evaluation.evaluation_sets import load_set
    >>> describe([load_set("sample_bots")])[["corpus", "systems"]].values.tolist()
    [['sample_bots', 3]]
    """
    rows = []
    for s in sets:
        row = {"corpus": s.name, "level": s.level, "rating": s.dimension, "items": len(s.human)}
        row |= {"clusters": s.clusters.nunique(), "systems": s.table["system"].nunique()}
        rows.append(row | {"metrics": s.scores.shape[1]})
    return pd.DataFrame(rows)


def families_at_hand(sets: Iterable[EvaluationSet]) -> pd.DataFrame:
    """The metrics of each family that some set has scores of; "none" if there are none.

    >>> families_at_hand([]).loc[0].tolist()
    ['baseline', 'none']
    """
    names = sorted({metric for items in sets for metric in items.scores})
    families = dict.fromkeys([*FAMILIES, *map(family, names)])
    rows = [(f, ", ".join(n for n in names if family(n) == f) or "none") for f in families]
    return pd.DataFrame(rows, columns=["family", "metrics"])


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


def overview(
    sets: Iterable[EvaluationSet], method: str = "spearman", resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Correlation, interval and significance cluster of each metric on each evaluation set.

    Value and interval use the items that the metric scores; the rank uses the items that all ranked
    metrics score, so metrics that miss more than a fifth of the items are not ranked.

    Returns:
        corpus, rating, metric, family, value, low, high, n, clusters, rank (1 is the best cluster,
        NaN if not ranked), reason.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> overview([bots], resamples=50)[["metric", "family", "rank"]].values.tolist()
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
        of = (items.name, items.dimension, name, family(name))
        rows.append((*of, *found[:5], ranks.get(name, np.nan), found.reason or few))
    columns = ["corpus", "rating", "metric", "family", "value", "low", "high", "n", "clusters"]
    return pd.DataFrame(rows, columns=[*columns, "rank", "reason"])


def contributions(sets: Iterable[EvaluationSet], folds: int = 10, seed: int = 0) -> pd.DataFrame:
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
    rows = [row for items in sets for row in _contributions(items, folds, seed)]
    table = pd.DataFrame(rows)
    return table.assign(q_cv=significance.benjamini_hochberg(table["p_cv"]))


def _contributions(items: EvaluationSet, folds: int, seed: int) -> list[dict]:
    known = items.scores.loc[:, items.scores.notna().mean() >= COVERAGE].astype(float)
    complete = known.notna().all(axis=1) & items.human.notna()
    data = known[complete].loc[:, known[complete].nunique() > 1]
    present = dict.fromkeys(map(family, data))
    families = {name: [metric for metric in data if family(metric) == name] for name in present}
    data = data.assign(human=items.human[complete], cluster=items.clusters[complete])
    rows = []
    for base, old in {"none": [], **families}.items():
        for added in (name for name in families if name != base):
            row = {"corpus": items.name, "rating": items.dimension, "base": base, "added": added}
            rows.append(row | _gain(data, old, families[added], folds, seed))
    return rows


def _gain(data: pd.DataFrame, old: list[str], new: list[str], folds: int, seed: int) -> dict:
    r2_base = regression.adjusted_r2(data, "human", old) if old else 0.0
    r2_both = regression.adjusted_r2(data, "human", [*old, *new])
    unseen = regression.cross_validated_gain(data, "human", old, new, data["cluster"], folds, seed)
    row = {"metrics": len(new), "n": len(data), "r2_base": r2_base, "r2_both": r2_both}
    return row | {"gain": r2_both - r2_base, "cv_gain": unseen.statistic, "p_cv": unseen.p}


def difference_tests(
    items: EvaluationSet, a: str, b: str, method: str, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Two metrics of a set compared in four ways, one row each, two-sided.

    Rows: permutation of items (PERM-BOTH), permutation of dialogs, Williams (p-values) and the
    bootstrap interval of the difference over dialogs (low, high).

    Returns:
        test, a, b (their coefficients), difference, p, low, high, n, reason.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length", "question"))
    >>> difference_tests(bots, "length", "question", "spearman", 50)["test"].tolist()
    ['permute items', 'permute dialogs', 'Williams', 'bootstrap dialogs']
    """
    pair, clusters = (items.scores[a], items.scores[b], items.human), items.clusters
    drawn = (resamples, seed)
    interval = significance.bootstrap_difference(*pair, clusters, method, *drawn)
    tests = {
        "permute items": significance.permutation_test(*pair, method, None, *drawn),
        "permute dialogs": significance.permutation_test(*pair, method, clusters, *drawn),
        "Williams": significance.williams_test(*pair, method),
        "bootstrap dialogs": interval,
    }
    rows = [{"test": name} | result._asdict() for name, result in tests.items()]
    rows[-1]["difference"] = interval.value
    columns = ["test", "a", "b", "difference", "p", "low", "high", "n", "reason"]
    return pd.DataFrame(rows)[columns]


def system_intervals(
    items: EvaluationSet, metric: str, method: str, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """System-level correlation with intervals over contexts, over systems, and over both.

    Returns:
        resampled, then the columns of `resampling.Interval` (n is the number of systems).

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> system_intervals(bots, "length", "spearman", 20)["n"].tolist()
    [3, 3, 3]
    """
    both = [systems.system_matrix(v, items.table) for v in (items.scores[metric], items.human)]
    rows = []
    for kind in ("contexts", "systems", "both"):
        found = systems.system_interval(*both, method, kind, resamples, seed=seed)
        rows.append({"resampled": kind} | found._asdict())
    return pd.DataFrame(rows)


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


def agreement_table(sets: Iterable[EvaluationSet]) -> pd.DataFrame:
    """`agreement_summary` of every set that keeps single ratings, with its corpus.

    >>> from lib.meta_evaluation.evaluation_sets import load_set
    >>> agreement_table([load_set("sample_bots")])["corpus"].unique().tolist()
    ['sample_bots']
    """
    rated = [items for items in sets if items.ratings is not None and len(items.ratings)]
    if not rated:
        columns = ["corpus", "dimension", "items", "alpha", "low", "high", "raters"]
        return pd.DataFrame(columns=[*columns, "limit", "limit_low", "limit_high"])
    found = {s.name: agreement_summary(s.ratings, s.clusters) for s in rated}
    return pd.concat(found, names=["corpus"]).reset_index("corpus").reset_index(drop=True)
