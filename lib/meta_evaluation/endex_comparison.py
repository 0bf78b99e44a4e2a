"""EnDex beside the rules of Table 2: scores, correlations, and pooling to dialogs and agents."""

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from safetensors import safe_open
from transformers import AutoConfig

from lib import metrics
from lib.analysis.correlation import coefficient
from lib.endex.baselines import length, question, random, specificity
from lib.endex.scoring import system_turns
from lib.endex.train import TrainedModel
from lib.meta_evaluation.endex_evaluation import partial_correlation

RULES = {"Question": question, "Specificity": specificity, "Length": length}
METHODS = ("EnDex", "EnDex+NS")
Runs = Mapping[tuple[str, int], TrainedModel]  # by method and seed


def size(run: TrainedModel) -> dict[str, int]:
    """Layers of the encoder of a run, and its weights with the head."""
    layers = AutoConfig.from_pretrained(run.folder, local_files_only=True).num_hidden_layers
    with safe_open(run.folder / "model.safetensors", framework="np") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    return {"layers": layers, "weights": sum(math.prod(shape) for shape in shapes)}


def network_score(turns: pd.DataFrame, folder: Path, max_length: int) -> pd.Series:
    """`endex.endex_scores`, kept in the cache of `lib.metrics.compute`."""
    chosen = {"endex": {"model": str(folder), "max_length": max_length}}
    return metrics.compute(turns, ["endex"], options=chosen)["endex"]


def score_all(turns: pd.DataFrame, runs: Runs, max_length: int) -> pd.DataFrame:
    """Scores by each rule and each run; columns (method, seed), higher is more engaging.

    NaN for a missing reply. The rules, and chance ("Random"), have the seed 0.

    >>> frame = score_all(pd.DataFrame({"response": ["Why not?"]}), {}, 40)
    >>> frame["Length", 0].tolist()
    [2.0]
    """
    columns = {(name, 0): rule(turns) for name, rule in (RULES | {"Random": random}).items()}
    columns |= {key: network_score(turns, run.folder, max_length) for key, run in runs.items()}
    frame = pd.DataFrame(columns)
    frame.columns.names = ["method", "seed"]
    return frame


def means(values: pd.DataFrame) -> pd.DataFrame:
    """Mean over the seeds of each method, of a frame that `score_all` made."""
    return values.T.groupby(level="method", sort=False).mean().T


def reply_scores(values: Mapping[str, pd.DataFrame], sets: Mapping) -> pd.DataFrame:
    """One row per reply of the sets: its keys, and the means `endex` and `endex_ns` (0-1)."""
    parts = []
    for name, (turns, _) in sets.items():
        kept = means(values[name]).reindex(columns=METHODS).set_axis(["endex", "endex_ns"], axis=1)
        parts.append(turns[["system", "agent", "dialog", "turn"]].join(kept).assign(set=name))
    return pd.concat(parts, ignore_index=True)


def correlations(values: Mapping[str, pd.DataFrame], sets: Mapping) -> pd.DataFrame:
    """Agreement of each method and seed with the ratings of each set (Table 2).

    Returns:
        dataset, method, seed, pearson, spearman, `partial` (Spearman with the length of the reply
        held fixed) and `with length` (Spearman of score and length). Range -1 to 1, higher is
        better agreement; NaN where undefined.
    """
    rows = []
    for name, (turns, human) in sets.items():
        words = length(turns)
        for (method, seed), score in values[name].items():
            both = {how: coefficient(score, human, how).value for how in ("pearson", "spearman")}
            partial = partial_correlation(score, human, words)
            follows = coefficient(score, words, "spearman").value
            rows.append({"dataset": name, "method": method, "seed": seed, **both,
                         "partial": partial, "with length": follows})  # fmt: skip
    return pd.DataFrame(rows)


def verdict(found: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Whether the mean over seeds exceeds the best rule, and how far it is from the paper's mean.

    Args:
        found: what `correlations` gave.
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


def pool_dialogs(dialogs: pd.DataFrame, runs: Runs, max_length: int) -> pd.DataFrame:
    """The dialog table with the mean over its replies of EnDex, EnDex+NS and Length.

    NaN for a dialog without a reply.
    """
    replies = system_turns(dialogs)
    values = pd.DataFrame(
        {k: network_score(replies, r.folder, max_length) for k, r in runs.items()}
    )
    values.columns.names = ["method", "seed"]
    pooled = means(values).assign(Length=length(replies)).groupby(replies["item"]).mean()
    return dialogs.reset_index(drop=True).join(pooled)


def track(pooled: pd.DataFrame) -> pd.DataFrame:
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
        values = {m: coefficient(of[m], of[rating], "spearman").value for m in metrics}
        fixed = partial_correlation(of["EnDex"], of[rating], of["Length"])
        rows.append({"level": level, "rating": rating.removeprefix("human_"), "n": len(of),
                     **values, "EnDex, length fixed": fixed})  # fmt: skip
    return pd.DataFrame(rows)
