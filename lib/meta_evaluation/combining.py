"""Does a combination of free metrics follow people better than the best single one?

A ridge regression learns weights on all families of corpora but one and is judged on that one; so
is the single metric that correlates best on the other families. Nothing of the family that judges
is known to either.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import RidgeCV

from lib.analysis.authorship import ALL, MACHINES
from lib.analysis.correlation import coefficient
from lib.meta_evaluation.evaluation_sets import (
    CORPUS_FAMILIES,
    EvaluationSet,
    machine_replies,
)
from lib.meta_evaluation.overview import COVERAGE

#: Strengths of the ridge's penalty to choose from, by leave-one-out within the training corpora.
ALPHAS = np.logspace(0, 5, 11)


def standardised(values: pd.DataFrame | pd.Series) -> pd.DataFrame | pd.Series:
    """Less the mean, over the standard deviation; a constant column becomes 0.

    >>> standardised(pd.Series([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    centred = values - values.mean()
    spread = values.std(ddof=0)
    if isinstance(values, pd.Series):
        return centred / (spread or 1.0)
    return centred / spread.replace(0, 1.0)


def ridge_predictions(
    training: Sequence[EvaluationSet], target: EvaluationSet, metrics: Sequence[str]
) -> pd.Series:
    """Ratings of a set predicted from its metrics, by a ridge trained on other sets.

    Metrics and ratings are standardised within each set, a missing score is the mean of its set,
    and every training set has the same total weight.

    Args:
        training: sets to learn from; `target`: the set to predict, not one of them.
        metrics: columns that enter.

    Returns:
        One prediction per item of the target, in standard deviations of a rating.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length", "question"))
    >>> len(ridge_predictions([bots], bots, ["length", "question"])) == len(bots.human)
    True
    """
    features = [_features(items, metrics) for items in training]
    ratings = [standardised(items.human) for items in training]
    weights = [np.full(len(items.human), 1 / len(items.human)) for items in training]
    sample_weight = np.concatenate(weights)
    model = RidgeCV(ALPHAS).fit(
        pd.concat(features),
        pd.concat(ratings),
        sample_weight=sample_weight / sample_weight.mean(),
    )
    return pd.Series(model.predict(_features(target, metrics)), target.human.index)


def _features(items: EvaluationSet, metrics: Sequence[str]) -> pd.DataFrame:
    scores = items.scores.reindex(columns=list(metrics)).astype(float)
    return standardised(scores).fillna(0.0)


def best_single_metric(
    training: Sequence[EvaluationSet], metrics: Sequence[str], method: str = "spearman"
) -> str:
    """The metric with the highest mean correlation (of Fisher's z) over the training sets.

    Only metrics that score four fifths of the items on most of the sets can be chosen.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length", "question"))
    >>> best_single_metric([bots], ["length", "question"])
    'length'
    """
    rows = []
    for items in training:
        row = {}
        for metric in _covering(items, metrics):
            row[metric] = coefficient(items.scores[metric], items.human, method).value
        rows.append(row)
    correlations = pd.DataFrame(rows)
    frequent = correlations.notna().mean() > 0.5
    means = np.arctanh(correlations.loc[:, frequent].clip(-0.9999, 0.9999)).mean()
    return str(means.idxmax())


def _covering(items: EvaluationSet, metrics: Sequence[str]) -> list[str]:
    """The metrics that score at least four fifths of the items."""
    scores = items.scores.reindex(columns=list(metrics))
    return scores.columns[scores.notna().mean() >= COVERAGE].tolist()


def combining_by_family(
    sets: Sequence[EvaluationSet], metrics: Sequence[str], method: str = "spearman"
) -> pd.DataFrame:
    """The ridge and the best single metric on each family of corpora that taught neither.

    Args:
        sets: sets of turns. For machines' replies, those that label them take part.
        metrics: the free metrics. A corpus is judged by those that score its items.

    Returns:
        A row per left-out corpus, kind of replies ("all", "machines only") and `compared`
        ("everything", or "within systems": score and rating less the means of each system):
        replies, compared, family, corpus, chosen (the single metric), ridge, single (correlations
        with people), n.
    """
    machines = [machine_replies(items) for items in sets]
    kinds = {ALL: list(sets), MACHINES: [items for items in machines if items]}
    rows = []
    for replies, of_kind in kinds.items():
        for target in of_kind:
            family = corpus_family(target.name)
            training = [
                items for items in of_kind if corpus_family(items.name) != family
            ]
            if not training:
                continue
            usable = _covering(target, metrics)
            ridge = ridge_predictions(training, target, usable)
            best_metric = best_single_metric(training, usable, method)
            single = target.scores[best_metric]
            everything = pd.DataFrame(
                {"ridge": ridge, "single": single, "human": target.human}
            )
            system_means = everything.groupby(target.table["system"]).transform("mean")
            compared = {
                "everything": everything,
                "within systems": everything - system_means,
            }
            for name, values in compared.items():
                row = {"replies": replies, "compared": name, "family": family}
                row |= {"corpus": target.name, "chosen": best_metric}
                for column in ("ridge", "single"):
                    row[column] = coefficient(
                        values[column], values["human"], method
                    ).value
                rows.append(row | {"n": len(values)})
    columns = ["replies", "compared", "family", "corpus", "chosen", "ridge", "single"]
    return pd.DataFrame(rows, columns=[*columns, "n"])


def corpus_family(name: str) -> str:
    """The family of a corpus: those that the same people made under one rating scheme.

    >>> corpus_family("usr_persona"), corpus_family("better")
    ('USR', 'better')
    """
    return CORPUS_FAMILIES.get(name, name)


def combining_gain(by_family: pd.DataFrame) -> pd.DataFrame:
    """What combining gains over the best single metric, with an interval over families.

    Args:
        by_family: result of `combining_by_family`.

    Returns:
        A row per kind of replies and `compared`: replies, compared, families, ridge and single
        (mean correlation over families, each the mean of its corpora), gain (their difference),
        low and high (its 95 % interval by Student's t over families), NaN for fewer than three.

    >>> rows = pd.DataFrame({"replies": "all", "compared": "everything", "family": list("abc"),
    ...                      "ridge": [0.3, 0.4, 0.5], "single": [0.3, 0.3, 0.3]})
    >>> combining_gain(rows)[["families", "gain"]].round(2).values.tolist()
    [[3.0, 0.1]]
    """
    rows = []
    kinds = by_family.groupby(["replies", "compared"], sort=False)
    for (replies, compared), group in kinds:
        means = group.groupby("family")[["ridge", "single"]].mean()
        gains = means["ridge"] - means["single"]
        n = len(gains)
        half = np.nan
        if n >= 3:
            half = stats.t.ppf(0.975, n - 1) * gains.std() / np.sqrt(n)
        row = {"replies": replies, "compared": compared, "families": n}
        row |= means.mean().to_dict()
        row |= {"gain": gains.mean(), "low": gains.mean() - half}
        rows.append(row | {"high": gains.mean() + half})
    columns = ["replies", "compared", "families", "ridge", "single", "gain", "low"]
    return pd.DataFrame(rows, columns=[*columns, "high"])
