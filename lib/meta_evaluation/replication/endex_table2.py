"""EnDex beside the rules (Xu et al. 2022, Table 2): scores, correlations, dialogs and agents."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from lib import endex, metrics
from lib.analysis.correlation import cluster_ids, partial_correlation
from lib.analysis.resampling import resampled_correlations, statistic_interval
from lib.data import KEY, load
from lib.metrics import compute

#: The paper's name of each public set, the corpus here, and the rating. RED-TEST is not public.
ENDEX_SETS = {
    "BETTER": ("better", "human_engaging"),
    "PREDENG-600": ("predeng600", "human_engaging"),
    "FED-ENG": ("fed_engaging", "human_engaging"),
    "GRADE": ("grade_convai2_bert_ranker", "human_coherence"),
}
RULES = {"Question": metrics.question, "Specificity": metrics.specificity, "Length": metrics.length}
METHODS = ("EnDex", "EnDex+NS")
Models = Mapping[tuple[str, int], endex.TrainedModel]  # by method and seed


def endex_sets() -> dict[str, tuple[pd.DataFrame, pd.Series]]:
    """Turn table and human rating of each public set of Table 2, by the paper's name.

    FED-ENG is a reconstruction of the 261 of 375 turns that the paper used: mean rating at least
    1.6 (engaging) or at most 0.8. GRADE rates coherence, not engagingness.
    """
    tables = {name: load(corpus).turns for name, (corpus, _) in ENDEX_SETS.items()}
    return {name: (turns, turns[ENDEX_SETS[name][1]]) for name, turns in tables.items()}


def kept_scores(turns: pd.DataFrame, folder: Path, max_length: int) -> pd.Series:
    """EnDex by the model of a folder, computed once per table."""
    chosen = {"endex": {"model": str(folder), "max_length": max_length}}
    return compute(turns, ["endex"], options=chosen, log=lambda line: None)["endex"]


def all_scores(turns: pd.DataFrame, models: Models, max_length: int) -> pd.DataFrame:
    """Scores by each rule and each model; columns (method, seed), higher is more engaging.

    NaN for a missing reply. The rules, and chance ("Random"), have the seed 0.

    >>> frame = all_scores(pd.DataFrame({"response": ["Why not?"]}), {}, 40)
    >>> frame["Length", 0].tolist()
    [2.0]
    """
    rules = RULES | {"Random": metrics.random}
    columns = {(name, 0): rule(turns) for name, rule in rules.items()}
    columns |= {key: kept_scores(turns, m.folder, max_length) for key, m in models.items()}
    return pd.DataFrame(columns).rename_axis(["method", "seed"], axis=1)


def seed_means(values: pd.DataFrame) -> pd.DataFrame:
    """Mean over the seeds of each method, of a frame that `all_scores` made."""
    return values.T.groupby(level="method", sort=False).mean().T


def reply_scores(values: Mapping[str, pd.DataFrame], sets: Mapping) -> pd.DataFrame:
    """One row per reply of the sets: its keys, and the means over the seeds (0-1)."""
    parts = []
    for name, (turns, _) in sets.items():
        found = seed_means(values[name]).reindex(columns=METHODS)
        found = found.set_axis(["endex_seeds", "endex_ns_seeds"], axis=1).assign(set=name)
        parts.append(turns[KEY].join(found))
    return pd.concat(parts, ignore_index=True)


def endex_correlations(values: Mapping[str, pd.DataFrame], sets: Mapping) -> pd.DataFrame:
    """Agreement of each method and seed with the ratings of each set (Table 2).

    Returns:
        dataset, method, seed, pearson, spearman, `partial` (Spearman with the length of the reply
        held fixed) and `with length` (Spearman of score and length). Range -1 to 1, higher is
        better agreement; NaN where undefined.
    """
    tables = {}
    for name, (turns, human) in sets.items():
        scores, words = values[name], metrics.length(turns)
        found = {how: scores.corrwith(human, method=how) for how in ("pearson", "spearman")}
        found["partial"] = scores.apply(partial_correlation, args=(human, words))
        found["with length"] = scores.corrwith(words, method="spearman")
        tables[name] = pd.DataFrame(found)
    return pd.concat(tables, names=["dataset", "method", "seed"]).reset_index()


def item_intervals(values: Mapping, sets: Mapping, resamples=1000, seed=0) -> pd.DataFrame:
    """95 % percentile intervals over items of each coefficient's mean over the seeds (Table 2).

    Whole dialogs are drawn again; all seeds of a method are read on the same resample.

    Returns:
        low and high of pearson and spearman (range -1 to 1), by method and dataset; NaN where
        undefined.
    """
    found = {}
    for name, (turns, human) in sets.items():
        dialogs = cluster_ids(turns["dialog"], len(turns))
        for method, scores in values[name].T.groupby(level="method", sort=False):
            known = human.notna().to_numpy() & scores.notna().all().to_numpy()
            complete = scores.to_numpy()[:, known], human[known], dialogs[known]
            row = found[method, name] = {}
            for how in ("pearson", "spearman"):
                means = partial(_mean_of_seeds, *complete, how)
                interval = statistic_interval(means, complete[-1], resamples, seed, expanded=False)
                row |= {f"{how} low": interval.low, f"{how} high": interval.high}
    return pd.DataFrame(found).T.rename_axis(["method", "dataset"])


def _mean_of_seeds(seeds, y, codes, how: str, counts: np.ndarray) -> np.ndarray:
    return np.mean([resampled_correlations(x, y, counts, how, codes) for x in seeds], axis=0)


def compare_with_published(found: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Whether the mean over seeds exceeds the best rule, and how far it is from the paper's mean.

    Args:
        found: what `endex_correlations` gave.
        published: pearson and spearman by (method, dataset).
    """
    both = ["pearson", "spearman"]
    best = found[found["method"].isin(RULES)].groupby("dataset")[both].max()
    ours = found[found["method"].isin(METHODS)].groupby(["method", "dataset"])[both].mean()
    frame = ours.join(best, on="dataset", rsuffix=", best rule").join(published, rsuffix=", paper")
    for how in both:
        frame[f"{how} beats rules"] = frame[how] > frame[f"{how}, best rule"]
        frame[f"{how} minus paper"] = frame[how] - frame[f"{how}, paper"]
    return frame


def pool_dialogs(dialogs: pd.DataFrame, models: Models, max_length: int) -> pd.DataFrame:
    """The dialog table with the mean over its replies of EnDex, EnDex+NS and Length.

    NaN for a dialog without a reply.
    """
    replies = endex.system_turns(dialogs)
    pooled = seed_means(all_scores(replies, models, max_length)).filter([*METHODS, "Length"])
    return dialogs.reset_index(drop=True).join(pooled.groupby(replies["item"]).mean())


def dialog_correlations(pooled: pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of pooled scores with each rating of the dialogs, and of the agents.

    Args:
        pooled: what `pool_dialogs` gave. Agents are compared by the means of their dialogs, on the
            overall rating.

    Returns:
        level, rating, n, one column per metric, and EnDex with length held fixed.
    """
    metrics = [name for name in (*METHODS, "Length") if name in pooled]
    rated = [c for c in pooled if c.startswith("human_") and not c.startswith("human_z_")]
    agents = pooled.groupby("agent")[[*metrics, "human_overall"]].mean()
    cases = [("dialog", pooled, c) for c in rated] + [("agent", agents, "human_overall")]
    rows = []
    for level, of, rating in cases:
        row = {"level": level, "rating": rating.removeprefix("human_"), "n": len(of)}
        row |= of[metrics].corrwith(of[rating], method="spearman").to_dict()
        fixed = partial_correlation(of["EnDex"], of[rating], of["Length"])
        rows.append(row | {"EnDex, length fixed": fixed})
    return pd.DataFrame(rows)
