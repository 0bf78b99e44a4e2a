"""Agreeableness and empathy from language: train a linear model on essays, score dialogs with it.

The paper's two models were never released and no public model of either trait was found, so
substitutes are trained here, on people who wrote essays and answered both questionnaires.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lib import ROOT
from lib.data import DataError, wassa2022
from lib.psychology.lexica import Lexicon, dlatk_lexicon
from lib.psychology.tokens import TokenCounts, count_tokens, response_counts

#: Each trait, and the questionnaire score of the essays' authors that stands for it.
TRAITS = {"agreeableness": "agreeableness", "empathy": "empathic_concern"}
#: Out-of-sample Pearson r of the paper's models, which were never released.
PUBLISHED_R = {"agreeableness": 0.35, "empathy": 0.26}

#: An n-gram or topic is a feature if this share of the authors use it.
MIN_SHARE = 0.05
#: Of the ridge. Leave-one-out error after the selection of features would choose one that is far
#: too small, and predictions for short texts would leave the scale of the questionnaire.
PENALTY = 10_000.0


@dataclass(frozen=True)
class TraitModel:
    """A linear model of a trait over an author's language, and what it was fitted on.

    Attributes:
        lexicon: the model as a weighted lexicon with an intercept, for `score_traits`: scaling and
            topics are folded into one weight per word or n-gram.
        features: number of n-grams and topics that it uses.
        authors: size of the training set.
        out_of_sample_r: Pearson r between predicted and measured trait of authors in held-out
            folds.
        interval: 95 % interval of that r (Fisher's z over authors).
    """

    lexicon: Lexicon
    features: int
    authors: int
    out_of_sample_r: float
    interval: tuple[float, float]


@cache
def trait_models(essays: str = "wassa2022", seed: int = 0) -> dict[str, TraitModel]:
    """Train the models of agreeableness and empathy on essays (half a minute; once per process).

    Args:
        essays: "wassa2022" (1,860 essays on news by 372 people: n-grams, and the 2,000 topics of
            the `dlatk` package), "sample" (240 essays by 80 authors, invented for this project:
            n-grams; never use them for a result), or a file in the same layout.
        seed: of the folds.

    >>> round(trait_models("sample")["agreeableness"].out_of_sample_r, 1)
    0.7
    """
    sample = ROOT / "data" / "sample" / "essays" / "essays.tsv"
    texts = wassa2022({"wassa2022": None, "sample": sample}.get(essays, essays))
    topics = None if essays == "sample" else dlatk_lexicon("fb2000_cp")
    models = {}
    for trait, score in TRAITS.items():
        texts = texts.assign(**{trait: texts[score]})
        models[trait] = fit_trait_model(texts, trait, topics=topics, seed=seed)
    return models


def fit_trait_model(
    texts: pd.DataFrame,
    trait: str,
    *,
    orders=(1, 2, 3),
    topics: Lexicon | None = None,
    seed=0,
) -> TraitModel:
    """Fit trait = b0 + sum_j b_j z(x_j) by ridge regression over an author's pooled language.

    Section 5, "Agreeableness" (1-3grams and 2,000 topics) and "Empathy" (topics, ridge, 10-fold
    cross-validation). As in the paper's engine, only features that correlate with the trait
    (F test, p < .05) are used, and of the n-grams those that 5 % of the authors use. An author's
    texts are pooled first, so that no author is in two folds; selection and scaling are repeated in
    each training part.

    Args:
        texts: one row per text with author, text and the trait (the mean is taken per author).
        trait: column with the questionnaire score; NaN rows are left out.
        orders: orders of the n-grams; empty for topics alone.
        topics: p(topic | word), e.g. `dlatk_lexicon("fb2000_cp")`.
        seed: of the ten folds of the cross-validation.

    Returns:
        The model fitted on all authors; `.out_of_sample_r` comes from the folds. A model fitted
        here is a substitute for the paper's, to be named as such.

    Raises:
        DataError: fewer than 20 authors, 2 per fold (a usable model needs several hundred).

    Reference: Park et al. (2015), Automatic personality assessment through social media language,
    JPSP 108(6). Schwartz et al. (2017), DLATK.
    """
    from sklearn.model_selection import KFold, cross_val_predict  # a second to import

    rows = texts.dropna(subset=["author", "text", trait])
    y = rows.groupby("author", sort=False)[trait].mean().to_numpy(float)
    if len(y) < 20:
        raise DataError(f"{len(y)} authors are too few for 10 folds")
    shares, terms = _features(rows, orders, topics)
    ridge = _ridge()
    folds = KFold(10, shuffle=True, random_state=seed)
    correlation = stats.pearsonr(cross_val_predict(ridge, shares, y, cv=folds), y)
    low, high = correlation.confidence_interval(0.95)

    selection, scaler, linear = ridge.fit(shares, y)
    weights = selection.inverse_transform([linear.coef_ / scaler.scale_])[0]
    return TraitModel(
        lexicon=_as_lexicon(
            trait, weights, float(linear.intercept_), terms=terms, topics=topics
        ),
        features=np.count_nonzero(weights),
        authors=len(y),
        out_of_sample_r=float(correlation.statistic),
        interval=(float(low), float(high)),
    )


def score_traits(
    table: pd.DataFrame, models: Sequence[Lexicon], *, level="agent"
) -> pd.DataFrame:
    """Estimate traits from the pooled words of each agent (or dialog, system, turn).

    Section 5: the paper estimates agreeableness and empathy per dialog because it has no
    agent-level data; the measure is meant for agents. Such models are trained on longer texts, so
    turn-level values are noisy.

    Args:
        table: turn or dialog table.
        models: linear models as weighted lexica in DLATK's export form (`read_lexicon`), with an
            intercept; terms of several words are matched with n-grams of their order.
        level: "agent", "dialog", "system" or "turn".

    Returns:
        One column per trait, in the units of the questionnaire; NaN for a group without words.

    >>> turns = pd.DataFrame({"system": ["s", "s"], "agent": ["kind", "curt"],
    ...                       "dialog": ["1", "2"], "response": ["thank you so much", "no"]})
    >>> weights = {"thank you": {"agreeableness": 4.0}, "no": {"agreeableness": -1.0}}
    >>> lexicon = Lexicon("toy", weights, {"agreeableness": 4.0})
    >>> score_traits(turns, [lexicon])["agreeableness"].round(3).tolist()
    [5.333, 3.0]
    """
    counts = cache(lambda n: response_counts(table, level, n))
    return pd.concat([_score(lexicon, counts) for lexicon in models], axis=1)


def agreeableness_and_empathy(
    table: pd.DataFrame, essays: str = "wassa2022", *, level: str = "agent"
) -> pd.DataFrame:
    """Estimate both traits by the models of `trait_models`: columns agreeableness and empathy.

    The models predict how people who wrote short essays on news answered two questionnaires, 1 to
    7 and 1 to 5. The score of a bot says whose words its words resemble, not that it has the
    trait.

    >>> from lib.data import load
    >>> bots = load("sample_bots").turns
    >>> agreeableness_and_empathy(bots, "sample", level="system").columns.tolist()
    ['agreeableness', 'empathy']
    """
    models = trait_models(essays).values()
    return score_traits(table, [model.lexicon for model in models], level=level)


def _score(lexicon: Lexicon, counts: Callable[[int], TokenCounts]) -> pd.DataFrame:
    # Each order by itself: the one-word wildcard "lov*" must not match the bigram "loving you".
    by_order: dict[int, dict] = {1: {}}
    for term, entry in lexicon.weights.items():
        by_order.setdefault(term.count(" ") + 1, {})[term] = entry
    score = replace(lexicon, weights=by_order.pop(1)).score(counts(1))
    for n, weights in by_order.items():
        score = score.add(
            Lexicon(lexicon.name, weights).score(counts(n)), fill_value=0.0
        )
    return score


def _features(
    texts: pd.DataFrame, orders: Sequence[int], topics: Lexicon | None
) -> tuple[np.ndarray, list[str]]:
    """Relative frequencies of n-grams per author, then topic loadings; and the n-grams."""
    blocks = []
    terms = []
    for n in sorted(orders):
        counts = count_tokens(texts["text"], texts["author"], n)
        # A term that ends in "*" would be a wildcard in a lexicon.
        is_wildcard = np.char.endswith(counts.features, "*")
        usable = ~is_wildcard & (_share_of_users(counts.matrix) >= MIN_SHARE)
        columns = np.flatnonzero(usable)
        blocks.append(
            counts.matrix[:, columns].toarray() / np.maximum(counts.totals, 1)[:, None]
        )
        terms += [counts.features[column] for column in columns]
    if topics:
        loadings = (
            topics.score(count_tokens(texts["text"], texts["author"]))
            .fillna(0.0)
            .to_numpy()
        )
        blocks.append(loadings * (_share_of_users(loadings) >= MIN_SHARE))
    return np.hstack(blocks), terms


def _share_of_users(matrix: np.ndarray) -> np.ndarray:
    return np.asarray((matrix > 0).mean(axis=0)).ravel()


def _ridge() -> Any:
    """Pipeline of feature selection, scaling and ridge regression."""
    from sklearn.feature_selection import SelectFpr, f_regression
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        SelectFpr(f_regression), StandardScaler(with_mean=False), Ridge(PENALTY)
    )


def _as_lexicon(
    trait: str,
    weights: np.ndarray,
    intercept: float,
    terms: list[str],
    topics: Lexicon | None,
) -> Lexicon:
    """Fold topic weights into words: a topic loading is a weighted sum of word frequencies too."""
    words = pd.Series(weights[: len(terms)], terms, dtype=float)
    if topics:
        topic_words = list(topics.weights)
        folded = topics.align(topic_words) @ weights[len(terms) :]
        words = words.add(pd.Series(folded, topic_words), fill_value=0.0)
    entries = {term: {trait: weight} for term, weight in words[words != 0].items()}
    return Lexicon(trait, entries, {trait: intercept})
