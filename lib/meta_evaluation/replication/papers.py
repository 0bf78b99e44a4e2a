"""The papers' printed figures, and ours under the papers' names."""

from collections.abc import Mapping
from itertools import combinations

import pandas as pd

from lib import ROOT
from lib.analysis.correlation import METHODS, coefficient, correlate
from lib.meta_evaluation.evaluation_sets import load_set, score_set
from lib.meta_evaluation.replication.endex_table2 import ENDEX_SETS

#: Rows of Wakaki et al. 2024, Table 16 (USR) that public scores can fill: ours -> their name.
COMPERDIAL_ROWS = {"meteor_15": "METEOR", "grade": "GRADE"}

#: Rows of Xu et al. 2022, Table 2 that a score of ours can fill: ours -> their name.
ENDEX_ROWS = {
    "random": "Random",
    "question": "Question",
    "specificity": "Specificity",
    "pred_en_mean": "Pred_En (FT+DD)",
    "usl_h": "USL-H",
    "endex_seeds": "EnDex",
    "endex_ns_seeds": "EnDex+NS",
}

#: Data sets of Giorgi et al. 2023, Tables 7-18 that are public with texts: corpus and rating.
PAPER_SETS = {
    "TP": ("dstc10_topical_usr", "human_overall"),
    "UP": ("dstc10_persona_usr", "human_overall"),
    "ZD": ("dstc10_dailydialog_zhao", "human_appropriateness"),
    "ZP": ("dstc10_persona_zhao", "human_appropriateness"),
    "GD": ("dstc10_dailydialog_gupta", "human_overall"),
    "PD10": ("dstc10_persona_clean", "human_appropriateness"),
    "TD10": ("dstc10_topical_clean", "human_appropriateness"),
    "D7": ("dstc7", "human_overall"),
}


def published_table(name: str, **options) -> pd.DataFrame:
    """Read one table of `data/published`, such as "endex_table2"; `options` go to `read_csv`.

    >>> published_table("endex_table2").columns.tolist()
    ['method', 'dataset', 'pearson', 'spearman']
    """
    return pd.read_csv(ROOT / "data" / "published" / f"{name}.csv", **options)


def beside_published(
    paper: pd.DataFrame, ours: pd.DataFrame, on: list[str]
) -> pd.DataFrame:
    """Join published and own values on key columns; every published row is kept.

    Both frames hold `value`; the result has the columns of `on`, then paper, ours (NaN where we
    have none) and difference (ours - paper).

    Raises:
        pandas.errors.MergeError: a key of `ours` repeats.

    >>> paper = pd.DataFrame({"metric": ["bleu", "usr"], "value": [0.2, 0.4]})
    >>> ours = pd.DataFrame({"metric": ["bleu"], "value": [0.21]})
    >>> beside_published(paper, ours, ["metric"]).round(3).values.tolist()
    [['bleu', 0.2, 0.21, 0.01], ['usr', 0.4, nan, nan]]
    """
    values = [*on, "value"]
    suffixes = ("_paper", "_ours")
    table = paper[values].merge(
        ours[values], on=on, how="left", validate="many_to_one", suffixes=suffixes
    )
    table = table.rename(columns={"value_paper": "paper", "value_ours": "ours"})
    return table.assign(difference=table["ours"] - table["paper"])


def published_pairs(paper: pd.DataFrame) -> pd.DataFrame:
    """Our coefficient for every (metric, rating, method) that was published about a corpus.

    `paper` has the columns corpus, metric, rating, level, method; the metrics are the scores
    shipped with the corpus. Returns the same rows with `value` as we compute it.

    >>> paper = pd.DataFrame(columns=["corpus", "metric", "rating", "level", "method"])
    >>> len(published_pairs(paper))
    0
    """
    values = pd.Series(index=paper.index, dtype=float)
    for (corpus, rating), rows in paper.groupby(["corpus", "rating"]):
        items = load_set(corpus, rating)
        for row in rows.itertuples():
            scores = items.scores[row.metric]
            values[row.Index] = coefficient(scores, items.human, row.method).value
    return paper.assign(value=values)


def paper_rows(scores, human, names: Mapping[str, str], **keys: str) -> pd.DataFrame:
    """Pearson and Spearman of the rows of a printed table that our scores can fill.

    Args:
        scores: one column per metric; those without an entry in `names` are left out.
        human: the ratings, on the same index.
        names: our metric -> the row of the paper.
        keys: further columns that identify a row, such as `dataset`.

    Returns:
        method, the `keys`, coefficient, value.

    >>> scores = pd.DataFrame({"usl_h": [1.0, 2, 3], "length": [2.0, 3, 1]})
    >>> paper_rows(scores, pd.Series([1.0, 2, 3]), ENDEX_ROWS, dataset="A").values.tolist()
    [['USL-H', 'A', 'pearson', 1.0], ['USL-H', 'A', 'spearman', 1.0]]
    """
    scores = scores.filter(names).rename(columns=names)
    table = correlate(scores, human, METHODS[:2]).assign(**keys)
    table = table.rename(columns={"metric": "method", "method": "coefficient"})
    return table[["method", *keys, "coefficient", "value"]]


def endex_rows(dataset: str, run) -> pd.DataFrame:
    """The rows of EnDex Table 2 that can be computed for one data set (`paper_rows`).

    Rules and chance are computed, the others came with the corpus or were recorded by an earlier
    notebook.
    """
    corpus, rating = ENDEX_SETS[dataset]
    items = load_set(corpus, rating.removeprefix("human_"))
    scores = score_set(items, run, ("random", "question", "specificity")).scores
    return paper_rows(scores, items.human, ENDEX_ROWS, dataset=dataset)


def averaged_runs(runs: pd.DataFrame, human: pd.Series) -> pd.DataFrame:
    """How a judge improves when its repeated runs are averaged.

    For k = 1 ... all runs, every subset of k runs is averaged and correlated with the ratings; the
    row holds the means over subsets. An item without all its runs is left out.

    Args:
        runs: items x runs.
        human: the ratings, on the same index.

    Returns:
        runs, subsets, pearson, spearman, kendall, lowest_spearman, highest_spearman.

    >>> runs = pd.DataFrame({"run1": [1.0, 2, 3], "run2": [1.0, 3, 2]})
    >>> averaged_runs(runs, pd.Series([1.0, 2, 3]))[["runs", "subsets", "spearman"]].values.tolist()
    [[1.0, 2.0, 0.75], [2.0, 1.0, 0.866...]]
    """
    runs = runs.dropna()
    human = human[runs.index].rename("human")
    rows = []
    for size in range(1, runs.shape[1] + 1):
        means = {}
        for subset in combinations(runs, size):
            means[str(subset)] = runs[list(subset)].mean(axis=1)
        values = correlate(pd.DataFrame(means), human).groupby("method")["value"]
        rows.append(
            {
                "runs": size,
                "subsets": len(means),
                **values.mean()[list(METHODS)],
                "lowest_spearman": values.min()["spearman"],
                "highest_spearman": values.max()["spearman"],
            }
        )
    return pd.DataFrame(rows)


def giorgi_tables() -> pd.DataFrame:
    """Read the printed adjusted R2 of Giorgi et al. 2023, Tables 1-5 and 7-18, with signs inferred.

    Tables 1-5 print negative values, Tables 7-18 none, though adjusted R2 of a useless predictor
    is negative (about -1/(n - 2)). The sign of a P value is inferred where the same metric lowers
    the adjusted R2 of every automatic metric of the table: P+A < A in all six rows. That is by
    far likeliest for a useless metric, but no proof: P+A < A means |t| < 1 beside A.

    Returns:
        table, level, dataset, rating, automatic_metric, psychological_metric, model (A, P, P+A),
        adjusted_r2 as printed, stars (printed at P+A, "" elsewhere), signed (with signs inferred).

    >>> row = giorgi_tables().query("dataset == 'TP' and model == 'P'")
    >>> row.set_index("psychological_metric").loc["emotion_matching", "signed"].unique().tolist()
    [-0.003]
    """
    texts = {"stars": "", "psychological_metric": ""}
    printed = published_table("human_centered_metrics").fillna(texts)
    automatic = [printed[key] for key in ("table", "dataset", "automatic_metric")]
    r2 = printed["adjusted_r2"]
    model = printed["model"]
    alone = r2.where(model == "A").groupby(automatic).transform("first")
    both = model == "P+A"
    raises = both & ~(r2 < alone)
    psychological = [printed["table"], printed["psychological_metric"]]
    compared = both.groupby(psychological).transform("any")
    useless = compared & ~raises.groupby(psychological).transform("any")
    negative = useless & (printed["table"] >= 7) & (model == "P")
    return printed.assign(signed=r2.mask(negative, -r2))


def giorgi_alone() -> pd.DataFrame:
    """Arrange the P values of Tables 7-18: one row per data set, one column per metric.

    >>> giorgi_alone().loc["UP"].tolist()
    [-0.003, -0.003, 0.13, -0.003, 0.019, 0.009]
    """
    printed = giorgi_tables()
    alone = printed[(printed["model"] == "P") & (printed["table"] >= 7)]
    metrics = alone["psychological_metric"].unique()
    return alone.pivot_table("signed", "dataset", "psychological_metric")[metrics]


def giorgi_gains() -> pd.DataFrame:
    """Printed gains P+A minus A, by data set and automatic metric (Tables 7-18).

    Agreeableness and empathy included; differences of figures printed to three decimals, so each
    is uncertain by .001.

    >>> float(giorgi_gains().loc[("TP", "BARTScore"), "emotional_entropy"])
    0.075
    """
    printed = giorgi_tables().query("table >= 7")
    key = ["dataset", "automatic_metric"]
    alone = printed[printed["model"] == "A"].set_index(key)["adjusted_r2"]
    both = printed[printed["model"] == "P+A"]
    return both.pivot_table("adjusted_r2", key, "psychological_metric").sub(
        alone, axis=0
    )
