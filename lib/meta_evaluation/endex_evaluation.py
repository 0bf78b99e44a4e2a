"""The evaluation sets of Table 2 that are public, and correlation with length held fixed."""

import numpy as np
import pandas as pd

from lib.analysis.correlation import coefficient
from lib.data import corpora

# The paper's name of each set, the corpus here, and the rating. RED-TEST was not published.
SETS = {
    "BETTER": ("better", "human_engaging"),
    "PREDENG-600": ("predeng600", "human_engaging"),
    "FED-ENG": ("fed_engaging", "human_engaging"),
    "GRADE": ("grade_convai2_bert_ranker", "human_coherence"),
}


def evaluation_sets() -> dict[str, tuple[pd.DataFrame, pd.Series]]:
    """Turn table and human rating of each public set of Table 2, by the paper's name.

    FED-ENG is a reconstruction of the 261 of 375 turns that the paper used: mean rating at least
    1.6 (engaging) or at most 0.8. GRADE rates coherence, not engagingness.
    """
    sets = {}
    for name, (corpus, rating) in SETS.items():
        turns = corpora.load(corpus).turns
        sets[name] = (turns, turns[rating])
    return sets


def partial_correlation(x, y, given, method: str = "spearman") -> float:
    """Correlation of x and y with a third variable held fixed.

    (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2)), of values ("pearson") or of ranks
    ("spearman"). Range -1 to 1; NaN where fewer than 3 rows are complete or a variable is constant.

    >>> round(partial_correlation([1, 2, 3, 4], [1, 3, 2, 4], [2, 1, 4, 3], "pearson"), 3)
    1.0
    """
    frame = pd.DataFrame({"x": x, "y": y, "z": given}).astype(float).dropna()
    if len(frame) < 3:
        return float("nan")
    r_xy, r_xz, r_yz = (
        coefficient(frame[a].to_numpy(), frame[b].to_numpy(), method).value
        for a, b in (("x", "y"), ("x", "z"), ("y", "z"))
    )
    left = (1 - r_xz**2) * (1 - r_yz**2)
    return float((r_xy - r_xz * r_yz) / np.sqrt(left)) if left > 0 else float("nan")
