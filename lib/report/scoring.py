"""Score a user's turns with everything their columns allow, and weigh the scores."""

import numpy as np
import pandas as pd

from lib import meta_evaluation
from lib.notebook_runs import ROOT

#: Families computed here without any download, and what each needs.
NEEDS = {
    "rule": "response",
    "overlap": "response and reference",
    "embedding": "response and context (or reference)",
    "psychological": "response and context",
}


def score(turns: pd.DataFrame, embeddings: bool = True) -> pd.DataFrame:
    """Every metric that needs no download, one column each, on the index of `turns`.

    Rule-based, overlap, embedding and psychological metrics (`meta_evaluation.score_panel`), then
    the file's own `score_*` columns. A metric that is defined nowhere (no references, say) gives no
    column; `coverage` says why.

    >>> from lib import corpora
    >>> turns = corpora.load("sample_bots").turns.head(4)
    >>> "words" in score(turns, embeddings=False)
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
    return meta_evaluation.score_panel(panel, embeddings=embeddings).scores


def coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Per family: which metrics were computed, and on what share of the turns.

    Columns family, metrics, scored (lowest share within the family), needs.

    >>> coverage(pd.DataFrame({"words": [3.0, 4.0]})).loc[0, "metrics"]
    'words'
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
    total = z.notna() @ weights[used] if used else pd.Series(0.0, index=scores.index)
    return (z.fillna(0) @ weights[used] / total.where(total > 0)).rename("composite")
