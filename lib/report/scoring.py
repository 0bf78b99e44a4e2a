"""Score a user's turns with everything their columns allow, and weigh the scores."""

import numpy as np
import pandas as pd

from lib import ROOT, analysis, meta_evaluation, metrics
from lib.data import DataError
from lib.report.dialogs import rated

#: Families computed here without any download, and what each needs.
NEEDS = {
    "baseline": "response",
    "overlap": "response and reference",
    "embedding": "response and context (or reference)",
    "psychological": "response and context",
}
#: Metrics that describe how an agent talks rather than how good it is.
PROFILE = ("emotional_entropy", "emotion_matching", "language_style_matching", "agreeableness")
PROFILE += ("empathy", "length", "question", "context_similarity")


def score(turns: pd.DataFrame, embeddings: bool = True) -> pd.DataFrame:
    """Every metric that needs no download, one column each, on the index of `turns`.

    The file's own `score_*` columns come first, then baseline, overlap, psychological and (with
    `embeddings`) encoder metrics and those registered in a notebook, which `lib.metrics.compute`
    keeps. A metric that is defined nowhere (no references, say) gives no column; `coverage` says
    what it needs.

    >>> from lib.data import load
    >>> "length" in score(load("sample_bots").turns.head(4), embeddings=False)
    True
    """
    unrated = pd.Series(np.nan, index=turns.index, name="human_none")
    shipped = meta_evaluation.shipped_scores(turns)
    items = meta_evaluation.EvaluationSet("yours", "turn", turns, unrated, shipped)
    names = meta_evaluation.QUICK + (meta_evaluation.ENCODER if embeddings else ())
    return meta_evaluation.score_set(items, names=(*names, *meta_evaluation.own_metrics())).scores


def coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Per family: which metrics were computed, and on what share of the turns.

    Columns family, metrics, scored (lowest share within the family), needs. Families of metrics
    registered in a notebook, and scores of no family, come last.

    >>> coverage(pd.DataFrame({"length": [3.0, 4.0]})).loc[0, "metrics"]
    'length'
    """
    rows, families = [], {name: meta_evaluation.family(name) for name in scores}
    for family in dict.fromkeys([*meta_evaluation.FAMILIES, *families.values()]):
        names = [name for name in scores if families[name] == family]
        share = scores[names].notna().mean().min() if names else 0.0
        own = {c for name in names if name in metrics.METRICS for c in metrics.METRICS[name].needs}
        needs = " and ".join(sorted(own)) or "scores of another notebook, as columns score_<metric>"
        rows.append((family, ", ".join(names) or "none", share, NEEDS.get(family, needs)))
    return pd.DataFrame(rows, columns=["family", "metrics", "scored", "needs"])


def evidence() -> pd.DataFrame:
    """Median correlation of each metric with people over the public corpora (notebook 08).

    Read from `data/results/08_standing.csv`; columns metric, corpora, median. Empty when notebook
    08 was never run on the public corpora.

    >>> set(evidence().columns) >= {"metric", "median"}
    True
    """
    path = ROOT / "data" / "results" / "08_standing.csv"
    if not path.is_file():
        return pd.DataFrame(columns=["metric", "corpora", "median"])
    return pd.read_csv(path)


def composite(scores: pd.DataFrame, weights: pd.Series) -> pd.Series:
    r"""One score to sort turns by: the weighted mean of standardised metrics.

    .. math:: s_i = \sum_m w_m z_{im} \Big/ \sum_m w_m

    over the metrics that have a positive weight and a value for turn i. It is a reading aid, no
    measurement: weights come from other people's dialogs. NaN without any such metric.

    >>> composite(pd.DataFrame({"words": [1.0, 3.0]}), pd.Series({"words": 0.2})).tolist()
    [-1.0, 1.0]
    """
    weights = weights[weights > 0]
    used = [name for name in scores if name in weights.index and scores[name].std(ddof=0) > 0]
    z = (scores[used] - scores[used].mean()) / scores[used].std(ddof=0)
    total = z.notna().astype(float) @ weights[used].astype(float)
    return (z.fillna(0) @ weights[used] / total.where(total > 0)).astype(float).rename("composite")


def reading_list(turns: pd.DataFrame, scores: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """All replies with what was said before them, best composite first.

    `known` is `evidence()`: its medians are the weights; without any, all metrics count alike.
    Columns: system, agent, dialog, turn, before, reply, composite. Replies that no weighted metric
    scores are left out.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1", "2"], "turn": [1, 1],
    ...     "context": [["Hi"], []], "response": ["Yes", "Why do you ask?"]})
    >>> reading_list(turns, pd.DataFrame({"length": [1.0, 4.0]}), pd.DataFrame())["reply"].tolist()
    ['Why do you ask?', 'Yes']
    """
    alike = pd.Series(1.0, index=scores.columns)
    weights = known.set_index("metric")["median"] if len(known) else alike
    table = turns[["system", "agent", "dialog", "turn"]].assign(
        before=turns["context"].map(lambda context: context[-1] if context else ""),
        reply=turns["response"],
        composite=composite(scores, weights),
    )
    return table.dropna(subset="composite").sort_values(
        "composite", ascending=False, kind="stable", ignore_index=True
    )


def against_ratings(turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Spearman of each metric with one rating of the file, with intervals and clusters.

    The rating is human_overall where there is one, else the first; the column `rating` names it.
    `analysis.rank_metrics` on the metrics that score at least 80 % of the replies, dialogs
    resampled. An empty table when the file has no ratings.

    >>> turns = pd.DataFrame({"response": ["a"], "dialog": ["1"]})
    >>> len(against_ratings(turns, pd.DataFrame({"length": [1.0]})))
    0
    """
    if not (known := rated(turns)):
        return pd.DataFrame(columns=["rating", "metric", "value", "low", "high", "n", "rank"])
    chosen = "human_overall" if "human_overall" in known else known[0]
    covering = scores.loc[:, scores.notna().mean() >= 0.8]
    table = analysis.rank_metrics(
        covering, turns[chosen], turns["dialog"], "spearman", resamples=1000, seed=seed
    )
    table.insert(0, "rating", chosen)
    return table


def agent_profile(turns: pd.DataFrame, scores: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Mean of each profile metric per agent, with a 95 % bootstrap interval over its dialogs.

    Columns: system, agent, metric, value, low, high, dialogs, turns, z (value minus the mean over
    all turns, in standard deviations of turns), z_low, z_high. With one dialog the interval is NaN.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1", "1", "2"]})
    >>> agent_profile(turns, pd.DataFrame({"length": [1.0, 3.0, 5.0]}))["value"].tolist()
    [3.0]
    """
    rows = []
    for name in [metric for metric in PROFILE if metric in scores]:
        mean, spread = scores[name].mean(), scores[name].std(ddof=0) or np.nan
        for (system, agent), group in turns.groupby(["system", "agent"], sort=True):
            found = analysis.bootstrap_mean(
                scores.loc[group.index, name], group["dialog"], seed=seed
            )
            bounds = found[:3]
            z = [(value - mean) / spread for value in bounds]
            rows.append((system, agent, name, *bounds, found.clusters, len(group), *z))
    columns = ["system", "agent", "metric", "value", "low", "high", "dialogs", "turns"]
    return pd.DataFrame(rows, columns=[*columns, "z", "z_low", "z_high"])


def state_or_trait(turns: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Share of each profile metric's variance between systems, agents, dialogs and turns.

    A trait belongs to the agent (large shares of system and agent), a state to the moment (large
    share of turn). Columns: metric, system, agent, dialog, turn (shares that add up to 1; NaN for a
    level that cannot be told apart), note (why nothing could be split).

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": ["1"] * 4})
    >>> state_or_trait(turns, pd.DataFrame({"length": [1.0, 2, 3, 4]}))["note"].item() != ""
    True
    """
    rows = []
    for name in [metric for metric in PROFILE if metric in scores]:
        row = {"metric": name, "note": ""}
        try:
            row |= analysis.variance_split(turns, scores[name])["share"].to_dict()
        except DataError as error:
            row["note"] = str(error).splitlines()[0]
        rows.append(row)
    return pd.DataFrame(rows, columns=["metric", "system", "agent", "dialog", "turn", "note"])
