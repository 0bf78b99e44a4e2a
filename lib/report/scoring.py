"""Score a user's turns with everything their columns allow, and weigh the scores."""

import numpy as np
import pandas as pd

from lib import ROOT, analysis, meta_evaluation

#: Families computed here without any download, and what each needs.
NEEDS = {
    "baseline": "response",
    "overlap": "response and reference",
    "embedding": "response and context (or reference)",
    "psychological": "response and context",
}


def score(turns: pd.DataFrame, embeddings: bool = True) -> pd.DataFrame:
    """Every metric that needs no download, one column each, on the index of `turns`.

    Baseline, overlap, psychological and (with `embeddings`) encoder metrics by `lib.metrics.compute`, which
    keeps what it computed, after the file's own `score_*` columns. A metric that is defined nowhere
    (no references, say) gives no column; `coverage` says what it needs.

    >>> from lib.data import corpora
    >>> turns = corpora.load("sample_bots").turns.head(4)
    >>> "length" in score(turns, embeddings=False)
    True
    """
    panel = meta_evaluation.Panel(
        "yours",
        "turn",
        turns,
        pd.Series(np.nan, index=turns.index, name="human_none"),
        meta_evaluation.shipped_scores(turns),
        None,
        False,
    )
    names = meta_evaluation.QUICK + (meta_evaluation.ENCODER if embeddings else ())
    return meta_evaluation.score_panel(panel, names=names).scores


def coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Per family: which metrics were computed, and on what share of the turns.

    Columns family, metrics, scored (lowest share within the family), needs.

    >>> coverage(pd.DataFrame({"length": [3.0, 4.0]})).loc[0, "metrics"]
    'length'
    """
    rows = []
    for family in meta_evaluation.FAMILIES:
        names = [name for name in scores if meta_evaluation.family(name) == family]
        share = scores[names].notna().mean().min() if names else 0.0
        needs = NEEDS.get(family, "scores of another notebook, as columns score_<metric>")
        rows.append((family, ", ".join(names) or "none", share, needs))
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


def describe(turns: pd.DataFrame) -> pd.DataFrame:
    """Per agent: dialogs, replies, and the share of replies with a context and with a reference.

    >>> from lib.data import corpora
    >>> describe(corpora.load("sample_bots").turns)["dialogs"].sum()
    np.int64(30)
    """
    filled = {name: turns[name].map(len).gt(0) for name in ("context", "reference")}
    grouped = turns.assign(**{f"with_{name}": has for name, has in filled.items()})
    return grouped.groupby(["system", "agent"]).agg(
        dialogs=("dialog", "nunique"),
        replies=("response", "size"),
        with_context=("with_context", "mean"),
        with_reference=("with_reference", "mean"),
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
    rated = [name for name in turns if name.startswith("human_") and turns[name].notna().any()]
    if not rated:
        return pd.DataFrame(columns=["rating", "metric", "value", "low", "high", "n", "rank"])
    chosen = "human_overall" if "human_overall" in rated else rated[0]
    covering = scores.loc[:, scores.notna().mean() >= 0.8]
    table = analysis.rank_metrics(
        covering, turns[chosen], turns["dialog"], "spearman", resamples=1000, seed=seed
    )
    table.insert(0, "rating", chosen)
    return table


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
    weights = pd.Series(1.0, index=scores.columns)
    if len(known):
        weights = known.set_index("metric")["median"]
    table = turns[["system", "agent", "dialog", "turn"]].assign(
        before=turns["context"].map(lambda context: context[-1] if context else ""),
        reply=turns["response"],
        composite=composite(scores, weights),
    )
    return table.dropna(subset="composite").sort_values(
        "composite", ascending=False, kind="stable", ignore_index=True
    )
