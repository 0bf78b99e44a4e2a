"""Our values for the rows of the published tables, under the papers' own row names."""

from itertools import combinations

import numpy as np
import pandas as pd

from lib import endex
from lib.analysis import correlation
from lib.meta_evaluation.metrics import score_panel
from lib.meta_evaluation.panels import Panel, load_panel
from lib.notebook_runs import Run

#: Rows of Wakaki et al. 2024, Table 16 (USR) that public scores can fill: their name -> ours.
COMPERDIAL_ROWS = {"METEOR": "meteor_15", "GRADE": "grade"}

#: Rows of Xu et al. 2022, Table 2 that a recorded score can fill: their name -> ours.
ENDEX_ROWS = {
    "Pred_En (FT+DD)": "pred_en_mean",
    "EnDex": "endex",
    "EnDex+NS": "endex_ns",
    "USL-H": "usl_h",
}

_ENDEX_RATING = {"grade_convai2_bert_ranker": "coherence"}


def published_pairs(name: str, paper: pd.DataFrame) -> pd.DataFrame:
    """Our coefficient for every (metric, rating, method) that was published about a corpus.

    `paper` has the columns corpus, metric, rating, level, method; the metrics are the scores
    shipped with the corpus. Returns the same columns and value.

    >>> paper = pd.DataFrame(columns=["corpus", "metric", "rating", "level", "method"])
    >>> len(published_pairs("sample_bots", paper))
    0
    """
    keys = ["corpus", "metric", "rating", "level", "method"]
    wanted = paper.loc[paper["corpus"] == name, keys]
    rows = []
    for rating, group in wanted.groupby("rating"):
        panel = load_panel(name, str(rating))
        for row in group.itertuples(index=False):
            found = correlation.coefficient(panel.scores[row.metric], panel.human, row.method)
            rows.append((*row, found.value))
    return pd.DataFrame(rows, columns=[*keys, "value"])


def endex_rows(dataset: str, name: str, run: Run, seed: int = 0) -> pd.DataFrame:
    """Pearson and Spearman of the rows of EnDex Table 2 that can be computed for one data set.

    Random (seeded uniform scores), Question, Specificity (content words by our own stop list), and
    rows whose scores came with the corpus or were recorded by an earlier notebook. FED is not
    tokenised: its punctuation is split off first. Columns: method, dataset, coefficient, value.

    >>> endex_rows("SAMPLE", "sample_bots", Run("08", "sample"))["method"].unique().tolist()[:3]
    ['Random', 'Question', 'Specificity']
    """
    panel = score_panel(load_panel(name, _ENDEX_RATING.get(name, "engaging")), run, ())
    spaced = panel.table["response"].str.replace(r"([^\w\s])", r" \1 ", regex=True)
    turns = panel.table.assign(response=spaced) if "fed" in name else panel.table
    rows = {
        "Random": endex.random(turns, seed),
        "Question": endex.question(turns),
        "Specificity": endex.specificity(turns),
    }
    rows |= {row: panel.scores[name] for row, name in ENDEX_ROWS.items() if name in panel.scores}
    return pd.DataFrame(
        [
            (method, dataset, kind, correlation.coefficient(values, panel.human, kind).value)
            for method, values in rows.items()
            for kind in ("pearson", "spearman")
        ],
        columns=["method", "dataset", "coefficient", "value"],
    )


def comperdial_rows(panel: Panel) -> pd.DataFrame:
    """Pearson and Spearman of the baselines of ComperDial Table 6 (appendix: 16) that we have.

    The ground-truth responses are left out, as they are the references. Columns: metric_name,
    corpus, coefficient, value; no row for a metric without scores.

    >>> comperdial_rows(load_panel("sample_bots")).columns.tolist()
    ['metric_name', 'corpus', 'coefficient', 'value']
    """
    kept = panel.table["system"] != "Original Ground Truth"
    rows = [
        (row, panel.name, kind, correlation.coefficient(
            panel.scores.loc[kept, metric], panel.human[kept], kind
        ).value)
        for row, metric in COMPERDIAL_ROWS.items()
        if metric in panel.scores
        for kind in ("pearson", "spearman")
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["metric_name", "corpus", "coefficient", "value"])


def averaged_runs(runs: pd.DataFrame, human: pd.Series) -> pd.DataFrame:
    """How a judge improves when its repeated runs are averaged.

    For k = 1 ... all runs, every subset of k runs is averaged and correlated with the ratings; the
    row holds the means over subsets. Columns: runs, subsets, pearson, spearman, kendall,
    lowest_spearman, highest_spearman. Rows with a missing run are left out of that subset.

    >>> runs = pd.DataFrame({"run1": [1.0, 2, 3], "run2": [1.0, 3, 2]})
    >>> averaged_runs(runs, pd.Series([1.0, 2, 3]))[["runs", "subsets", "spearman"]].values.tolist()
    [[1.0, 2.0, 0.75], [2.0, 1.0, 0.866...]]
    """
    rows = []
    for k in range(1, runs.shape[1] + 1):
        means = [runs[list(subset)].mean(axis=1, skipna=False) for subset in combinations(runs, k)]
        found = {
            method: [correlation.coefficient(mean, human, method).value for mean in means]
            for method in correlation.METHODS
        }
        row = {"runs": k, "subsets": len(means)}
        row |= {method: float(np.mean(values)) for method, values in found.items()}
        low, high = min(found["spearman"]), max(found["spearman"])
        rows.append(row | {"lowest_spearman": low, "highest_spearman": high})
    return pd.DataFrame(rows)
