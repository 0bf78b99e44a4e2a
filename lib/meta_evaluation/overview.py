"""The tables of notebooks 09 and 10: every metric on every evaluation set, with intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats
from tqdm.auto import tqdm

from lib.analysis import (
    agreement,
    authorship,
    regression,
    resampling,
    significance,
    systems,
)
from lib.data import DataError
from lib.meta_evaluation.evaluation_sets import EvaluationSet, metric_family
from lib.meta_evaluation.over_corpora import holm

#: A metric is ranked on a set if it scores at least this share of its items.
COVERAGE = 0.8

#: A metric is above 0 on a set if its adjusted p is at most this.
LEVEL = 0.05


def shared_metrics(sets: Sequence[EvaluationSet], part: float = 1 / 3) -> list[str]:
    """Metrics that score at least this part of the sets, in the order in which they come.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> shared_metrics([bots])
    ['length']
    """
    names = []
    for items in sets:
        names.extend(items.scores.columns)
    counts = pd.Series(names).value_counts(sort=False)
    return counts.index[counts >= part * len(sets)].tolist()


def restrict_metrics(
    sets: Iterable[EvaluationSet], names: list[str]
) -> list[EvaluationSet]:
    """The sets with these metrics only, without the sets that have none of them.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length", "question"))
    >>> restrict_metrics([bots], ["question"])[0].scores.columns.tolist()
    ['question']
    """
    restricted = []
    for items in sets:
        scores = items.scores[[name for name in items.scores if name in names]]
        if len(scores.columns):
            restricted.append(replace(items, scores=scores))
    return restricted


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
        if len(items.scores.columns):
            usable.append(items)
        else:
            without.append(items)
    names = ", ".join(items.name for items in without)
    if not usable:
        hint = "take a corpus of rated turns, or one with scores of dialogs: gpt4_fed"
        raise DataError(f"no metric is available for {names}", fix=hint)
    if names:
        print(f"left out, no metric is available: {names}")
    return usable


def author_overview(
    sets: Iterable[EvaluationSet],
    method: str = "spearman",
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Three correlations of each metric on each set: all items, machines' only, within context.

    Returns:
        corpus, rating, metric, family, then the columns of
        `analysis.authorship.correlations_by_author`, three rows for each metric of each set.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> author_overview([bots], resamples=50)[["metric", "replies"]].values.tolist()[1]
    ['length', 'machines only']
    """
    options = {"method": method, "resamples": resamples, "seed": seed}
    tables = []
    for items in tqdm(list(sets), desc="who wrote it"):
        rows = authorship.metrics_by_author(
            items.scores, items.human, items.table, **options
        )
        tables.append(rows.assign(corpus=items.name, rating=items.dimension))
    table = pd.concat(tables, ignore_index=True)
    table["family"] = table["metric"].map(metric_family)
    first = ["corpus", "rating", "metric", "family"]
    return table[[*first, *table.columns.drop(first)]]


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
        NaN if not ranked), p_adjusted (Holm, over the metrics of the set: that the correlation is
        0), best, reason. `best` is True for a metric of rank 1 that is above 0 by its adjusted p:
        where a set shows no signal, no metric of it is the best.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> correlation_overview([bots], resamples=50)[["metric", "family", "rank"]].values.tolist()
    [['length', 'baseline', 1]]
    """
    tables = []
    for items in tqdm(list(sets), desc="overview"):
        options = {"method": method, "resamples": resamples, "seed": seed}
        coverage = items.scores.notna().mean()
        ranked = items.scores.loc[:, coverage >= COVERAGE]
        ranks = significance.rank_metrics(
            ranked, items.human, items.clusters, **options
        )
        ranks = ranks.set_index("metric")["rank"]
        rows = []
        for metric, scores in items.scores.items():
            interval = resampling.bootstrap_interval(
                scores, items.human, items.clusters, **options
            )
            not_ranked = ""
            if metric not in ranked:
                not_ranked = f"scores {coverage[metric]:.0%} of the items"
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
        table = pd.DataFrame(rows)
        p = resampling_p(table).where(table["rank"].notna())
        table.insert(10, "p_adjusted", holm(p))
        above_zero = (table["p_adjusted"] <= LEVEL) & (table["value"] > 0)
        table.insert(11, "best", (table["rank"] == 1) & above_zero)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def resampling_p(intervals: pd.DataFrame) -> pd.Series:
    """Two-sided p that a correlation is 0, from its 95 % interval (columns value, low, high).

    Normal on Fisher's z, with half the interval's width over 1.96 as the standard error.

    >>> row = pd.DataFrame({"value": [np.tanh(0.196)], "low": [0.0], "high": [np.tanh(0.392)]})
    >>> resampling_p(row).round(3).tolist()
    [0.05]
    """
    z = np.arctanh(intervals[["value", "low", "high"]].clip(-0.9999, 0.9999))
    error = (z["high"] - z["low"]) / (2 * stats.norm.ppf(0.975))
    return pd.Series(2 * stats.norm.sf(z["value"].abs() / error), intervals.index)


def noise_ceilings(sets: Iterable[EvaluationSet]) -> pd.DataFrame:
    """The noise ceiling of each set with single ratings, over all items and over machines' only.

    Returns:
        corpus, rating, metric ("noise ceiling"), replies, value, low, high
        (`agreement.rating_noise_ceiling`); rows without a value are left out.

    >>> from lib.meta_evaluation.evaluation_sets import load_set
    >>> noise_ceilings([load_set("sample_bots")])["replies"].tolist()
    ['all', 'machines only']
    """
    rows = []
    for items in sets:
        by_machine = np.flatnonzero(items.table["written_by"] == "machine")
        machines = items.ratings[items.ratings["item"].isin(by_machine)]
        kinds = {authorship.ALL: items.ratings, authorship.MACHINES: machines}
        for replies, ratings in kinds.items():
            ceiling = agreement.rating_noise_ceiling(ratings, items.dimension)
            row = {"corpus": items.name, "rating": items.dimension}
            row |= {"metric": "noise ceiling", "replies": replies}
            row["value"], row["low"], row["high"] = ceiling
            rows.append(row)
    return pd.DataFrame(rows).dropna(subset="value", ignore_index=True)


def best_of_many(
    items: EvaluationSet, method: str = "spearman", resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """How often each metric would be chosen as the best, and what it reaches on other dialogs.

    Whole dialogs are drawn with replacement. On each draw the metric with the highest correlation
    is chosen; then it is correlated with people on the dialogs that were not drawn. The mean drop
    from the first to the second is the optimism of naming the best of many.

    Returns:
        A row per metric that was chosen: metric, chosen (share of the draws), drawn and left_out
        (mean correlation on the dialogs that chose it, and on the others). Metrics that miss more
        than a fifth of the items take no part; the others are compared on the items that all
        score. A draw counts only where both correlations are defined.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length", "question"))
    >>> float(best_of_many(bots, resamples=50)["chosen"].sum())
    1.0
    """
    covering = items.scores.loc[:, items.scores.notna().mean() >= COVERAGE]
    complete = covering.notna().all(axis=1)
    covering = covering[complete]
    human = items.human[complete].to_numpy()
    cluster_ids, names = pd.factorize(items.clusters[complete])
    rng = np.random.default_rng(seed)
    counts = resampling.bootstrap_counts(rng, resamples, len(names))
    on_drawn = {}
    on_left_out = {}
    options = {"method": method, "cluster_ids": cluster_ids}
    for metric, scores in covering.items():
        on_drawn[metric] = resampling.resampled_correlations(
            scores, human, counts, **options
        )
        on_left_out[metric] = resampling.resampled_correlations(
            scores, human, counts == 0, **options
        )
    correlations = pd.DataFrame(on_drawn).dropna(how="all")
    best = correlations.idxmax(axis=1)
    draws = pd.DataFrame({"metric": best, "drawn": correlations.max(axis=1)})
    of_draw_and_metric = pd.DataFrame(on_left_out).stack()
    best_of_draw = list(zip(best.index, best, strict=True))
    draws["left_out"] = of_draw_and_metric.reindex(best_of_draw).array
    draws = draws.dropna()
    table = draws.groupby("metric")[["drawn", "left_out"]].mean()
    table.insert(0, "chosen", draws["metric"].value_counts(normalize=True))
    return table.sort_values("chosen", ascending=False).reset_index()


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
    """What predictors add to others, in the fit and on new clusters; without a missing rating."""
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

    Columns: metric, spa, pairs (of systems that share a context), p (`systems.soft_accuracy_p`),
    p_adjusted (Holm, over the metrics), reason (why spa is NaN).

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
        p = systems.soft_accuracy_p(matrix, human, resamples=resamples, seed=seed)
        row = {"metric": metric, "spa": spa, "pairs": pairs, "p": p}
        rows.append(row | {"reason": reason})
    table = pd.DataFrame(rows, columns=["metric", "spa", "pairs", "p", "reason"])
    table.insert(4, "p_adjusted", holm(table["p"]))
    return table.sort_values("spa", ascending=False, ignore_index=True)
