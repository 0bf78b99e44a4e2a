"""EnDex beside the rules (Xu et al. 2022, Table 2): scores, correlations, dialogs and agents."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from lib import endex, metrics
from lib.analysis.correlation import number_clusters, partial_correlation
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
RULES = {
    "Question": metrics.question,
    "Specificity": metrics.specificity,
    "Length": metrics.length,
}
METHODS = ("EnDex", "EnDex+NS")
QUESTION_WORDS = frozenset(
    ("what", "which", "who", "whom", "whose", "when", "where", "why", "how")
)
Models = Mapping[tuple[str, int], endex.TrainedModel]  # by method and seed
# Turns and rating of each set, by the paper's name.
EndexSets = Mapping[str, tuple[pd.DataFrame, pd.Series]]


def question_token(turns: pd.DataFrame) -> pd.Series:
    """1 where a token of the reply is "?" or a question word, else 0; NaN for a missing reply.

    A second reading of the Question row of Table 2, beside `metrics.question`. Tokens are split at
    white space, so in a text that is not tokenised ("why?") neither part is found. It takes "when I
    left, it rained" for a question, but fits the printed row on three of the four public sets.

    >>> replies = ["have you tried it ?", "have you tried it?", "it rained when I left"]
    >>> question_token(pd.DataFrame({"response": replies})).tolist()
    [1.0, 0.0, 1.0]
    """
    tokens = turns["response"].str.lower().str.split()
    asks = tokens.map(
        lambda words: not QUESTION_WORDS.isdisjoint(words) or "?" in words,
        na_action="ignore",
    )
    return asks.astype("float64")


def endex_sets() -> EndexSets:
    """Turn table and human rating of each public set of Table 2, by the paper's name.

    FED-ENG is a reconstruction of the 261 of 375 turns that the paper used: mean rating at least
    1.6 (engaging) or at most 0.8. GRADE rates coherence, not engagingness.
    """
    sets = {}
    for name, (corpus, rating) in ENDEX_SETS.items():
        turns = load(corpus).turns
        sets[name] = (turns, turns[rating])
    return sets


def usable_runs(runs: Models) -> Models:
    """The runs whose network did not collapse to one class.

    Raises:
        ValueError: every run of a method collapsed; names it.
    """
    usable = {key: run for key, run in runs.items() if not run.record["collapsed"]}
    for method in dict.fromkeys(method for method, _ in runs):
        if method not in {name for name, _ in usable}:
            raise ValueError(
                f"every run of {method} collapsed to one class, so it has no scores: "
                "train on more comments (COMMENTS), with more seeds or with another RATE"
            )
    return usable


def all_scores(
    turns: pd.DataFrame,
    models: Models,
    max_length: int,
    asked: Sequence[metrics.AskedModel] = (),
) -> pd.DataFrame:
    """Scores by each rule and each model; columns (method, seed), higher is more engaging.

    NaN for a missing reply. The rules, chance ("Random") and the metrics of MODELS (`asked`) have
    the seed 0; a metric that has no score for any reply of the table is left out. The scores of a
    model are computed once per table and stored.

    >>> frame = all_scores(pd.DataFrame({"response": ["Why not?"]}), {}, 40)
    >>> frame["Length", 0].tolist()
    [2.0]
    """
    columns = {}
    for name, rule in {**RULES, "Random": metrics.random}.items():
        columns[name, 0] = rule(turns)
    for key, model in models.items():
        options = {"endex": {"model": str(model.folder), "max_length": max_length}}
        scores = compute(turns, ["endex"], options=options, log=lambda line: None)
        columns[key] = scores["endex"]
    by_asked = metrics.compute_asked(turns, asked, log=lambda line: None)
    for name, scores in by_asked.dropna(axis=1, how="all").items():
        columns[name, 0] = scores
    return pd.DataFrame(columns).rename_axis(["method", "seed"], axis=1)


def seed_means(values: pd.DataFrame) -> pd.DataFrame:
    """Mean over the seeds of each method, of a frame that `all_scores` made."""
    return values.T.groupby(level="method", sort=False).mean().T


def reply_scores(values: Mapping[str, pd.DataFrame], sets: EndexSets) -> pd.DataFrame:
    """One row per reply of the sets: its key, and the mean scores over seeds (range 0-1).

    `endex_seeds` is EnDex, `endex_ns_seeds` EnDex with negative samples.
    """
    tables = []
    for name, (turns, _) in sets.items():
        means = seed_means(values[name]).reindex(columns=METHODS)
        means = means.set_axis(["endex_seeds", "endex_ns_seeds"], axis=1)
        tables.append(turns[KEY].join(means.assign(set=name)))
    return pd.concat(tables, ignore_index=True)


def endex_correlations(
    values: Mapping[str, pd.DataFrame], sets: EndexSets
) -> pd.DataFrame:
    """Agreement of each method and seed with the ratings of each set (Table 2).

    Returns:
        dataset, method, seed, pearson, spearman, `partial` (Spearman, controlling for the length of
        the reply) and `with length` (Spearman of score and length). Range -1 to 1, higher is
        better agreement; NaN where undefined.
    """
    tables = {}
    for name, (turns, human) in sets.items():
        scores = values[name]
        words = metrics.length(turns)
        tables[name] = pd.DataFrame(
            {
                "pearson": scores.corrwith(human, method="pearson"),
                "spearman": scores.corrwith(human, method="spearman"),
                "partial": scores.apply(partial_correlation, args=(human, words)),
                "with length": scores.corrwith(words, method="spearman"),
            }
        )
    return pd.concat(tables, names=["dataset", "method", "seed"]).reset_index()


def item_intervals(
    values: Mapping[str, pd.DataFrame],
    sets: EndexSets,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """95 % percentile intervals over items of each coefficient's mean over the seeds (Table 2).

    Whole dialogs are resampled; all seeds of a method use the same resamples.

    Returns:
        low and high of pearson and spearman (range -1 to 1), by method and dataset; NaN where
        undefined.
    """
    rows = []
    for name, (turns, human) in sets.items():
        dialogs = number_clusters(turns["dialog"], len(turns))
        for method, scores in values[name].T.groupby(level="method", sort=False):
            scored = scores.notna().all().to_numpy()
            complete = human.notna().to_numpy() & scored
            clusters = dialogs[complete]
            row = {"method": method, "dataset": name}
            for coefficient in ("pearson", "spearman"):
                statistic = partial(
                    _mean_over_seeds,
                    scores=scores.to_numpy()[:, complete],
                    human=human[complete],
                    clusters=clusters,
                    coefficient=coefficient,
                )
                interval = statistic_interval(
                    statistic, clusters, resamples, seed=seed, expanded=False
                )
                row[f"{coefficient} low"] = interval.low
                row[f"{coefficient} high"] = interval.high
            rows.append(row)
    return pd.DataFrame(rows).set_index(["method", "dataset"])


def _mean_over_seeds(
    counts: np.ndarray,
    scores: np.ndarray,
    human: pd.Series,
    clusters: np.ndarray,
    coefficient: str,
) -> np.ndarray:
    """Mean over the seeds of the coefficient under each row of `counts`."""
    coefficients = []
    for of_seed in scores:
        coefficients.append(
            resampled_correlations(
                of_seed, human, counts, method=coefficient, cluster_ids=clusters
            )
        )
    return np.mean(coefficients, axis=0)


def compare_with_published(
    correlations: pd.DataFrame, published: pd.DataFrame
) -> pd.DataFrame:
    """Whether the mean over seeds exceeds the best rule, and how far it is from the paper's mean.

    Args:
        correlations: the result of `endex_correlations`.
        published: pearson and spearman by (method, dataset).
    """
    coefficients = ["pearson", "spearman"]
    by_rule = correlations[correlations["method"].isin(RULES)]
    best = by_rule.groupby("dataset")[coefficients].max()
    by_model = correlations[correlations["method"].isin(METHODS)]
    table = by_model.groupby(["method", "dataset"])[coefficients].mean()
    table = table.join(best, on="dataset", rsuffix=", best rule")
    table = table.join(published, rsuffix=", paper")
    for name in coefficients:
        table[f"{name} beats rules"] = table[name] > table[f"{name}, best rule"]
        table[f"{name} minus paper"] = table[name] - table[f"{name}, paper"]
    return table


def pool_dialogs(
    dialogs: pd.DataFrame, models: Models, max_length: int
) -> pd.DataFrame:
    """The dialog table with the mean over its replies of EnDex, EnDex+NS and Length.

    NaN for a dialog without a reply.
    """
    replies = endex.system_turns(dialogs)
    pooled = seed_means(all_scores(replies, models, max_length)).filter(
        [*METHODS, "Length"]
    )
    means = pooled.groupby(replies["item"]).mean()
    return dialogs.reset_index(drop=True).join(means)


def dialog_correlations(pooled: pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of pooled scores with each rating of the dialogs, and of the agents.

    Args:
        pooled: the result of `pool_dialogs`. Agents are compared by the means of their dialogs, on
            the overall rating.

    Returns:
        level, rating, n, one column per metric, and "EnDex, partial": that of EnDex when
        controlling for length.
    """
    scores = [name for name in (*METHODS, "Length") if name in pooled]
    agents = pooled.groupby("agent")[[*scores, "human_overall"]].mean()
    ratings = pooled.filter(regex="^human_(?!z_)")
    cases = [("dialog", pooled, rating) for rating in ratings]
    cases.append(("agent", agents, "human_overall"))
    rows = []
    for level, table, rating in cases:
        human = table[rating]
        row = {"level": level, "rating": rating.removeprefix("human_"), "n": len(table)}
        row |= table[scores].corrwith(human, method="spearman").to_dict()
        controlled = partial_correlation(table["EnDex"], human, table["Length"])
        rows.append(row | {"EnDex, partial": controlled})
    return pd.DataFrame(rows)
