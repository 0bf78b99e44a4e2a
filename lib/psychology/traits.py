"""Agreeableness and empathy from language: train a linear model on essays, score dialogs with it.

The paper's two models were never released and no public model of either trait was found, so the
stand-ins are trained in the open, on people who wrote essays and answered both questionnaires.
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
#: Of the ridge. Leave-one-out error, taken after the selection of features, would choose one that
#: is far too small, and short texts would be flung out of the scale of the questionnaire.
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
            n-grams; never use them for a result), or a file of yours in the same layout.
        seed: of the folds.

    >>> round(trait_models("sample")["agreeableness"].out_of_sample_r, 1)
    0.7
    """
    sample = ROOT / "data" / "sample" / "essays" / "essays.tsv"
    texts = wassa2022({"wassa2022": None, "sample": sample}.get(essays, essays))
    topics = None if essays == "sample" else dlatk_lexicon("fb2000_cp")
    texts = texts.assign(**{trait: texts[score] for trait, score in TRAITS.items()})
    return {trait: fit_trait_model(texts, trait, topics=topics, seed=seed) for trait in TRAITS}


def fit_trait_model(
    texts: pd.DataFrame, trait: str, *, orders=(1, 2, 3), topics: Lexicon | None = None, seed=0
) -> TraitModel:
    """Fit trait = b0 + sum_j b_j z(x_j) by ridge regression over an author's pooled language.

    Section 5, "Agreeableness" (1-3grams and 2,000 topics) and "Empathy" (topics, ridge, 10-fold
    cross-validation). As in the paper's engine, only features that go with the trait by themselves
    enter (F test, p < .05), and of the n-grams those that 5 % of the authors use. An author's texts
    are pooled first, so that no author is in two folds; selection and scaling are made anew in each
    training part.

    Args:
        texts: one row per text with author, text and the trait (the mean is taken per author).
        trait: column with the questionnaire score; NaN rows are left out.
        orders: orders of the n-grams; empty for topics alone.
        topics: p(topic | word), e.g. `dlatk_lexicon("fb2000_cp")`.
        seed: of the ten folds of the cross-validation.

    Returns:
        The model fitted on all authors; `.out_of_sample_r` comes from the folds. A model fitted
        here is a stand-in for the paper's, to be named as such.

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
    ridge, folds = _ridge(), KFold(10, shuffle=True, random_state=seed)
    found = stats.pearsonr(cross_val_predict(ridge, shares, y, cv=folds), y)
    chosen, scaled, linear = ridge.fit(shares, y)
    weights = chosen.inverse_transform([linear.coef_ / scaled.scale_])[0]
    lexicon = _as_lexicon(trait, weights, float(linear.intercept_), terms, topics)
    interval = tuple(map(float, found.confidence_interval(0.95)))
    return TraitModel(lexicon, np.count_nonzero(weights), len(y), float(found.statistic), interval)


def score_traits(table: pd.DataFrame, models: Sequence[Lexicon], *, level="agent") -> pd.DataFrame:
    """Estimate traits from the pooled words of each agent (or dialog, system, turn).

    Section 5: the paper estimates agreeableness and empathy per dialog for want of agent-level
    data; the measure is meant for agents. Short texts are far from what such models are trained
    on, so turn-level values are noisy.

    Args:
        table: turn or dialog table.
        models: linear models as weighted lexica in DLATK's export form (`read_csv`), with an
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

    The model knows how people who wrote short essays on news answered two questionnaires, 1 to 7
    and 1 to 5. What it says of a bot is whose words the bot's resemble; that the bot has the trait
    it does not say.

    >>> from lib.data import load
    >>> bots = load("sample_bots").turns
    >>> agreeableness_and_empathy(bots, "sample", level="system").columns.tolist()
    ['agreeableness', 'empathy']
    """
    models = trait_models(essays).values()
    return score_traits(table, [model.lexicon for model in models], level=level)


def _score(lexicon: Lexicon, counts: Callable[[int], TokenCounts]) -> pd.DataFrame:
    # Apart by order: a one-word wildcard such as "lov*" must not match the bigram "loving you".
    orders: dict[int, dict] = {1: {}}
    for term, entry in lexicon.weights.items():
        orders.setdefault(term.count(" ") + 1, {})[term] = entry
    total = replace(lexicon, weights=orders.pop(1)).score(counts(1))
    for n, terms in orders.items():
        total = total.add(Lexicon(lexicon.name, terms).score(counts(n)), fill_value=0.0)
    return total


def _features(
    rows: pd.DataFrame, orders: Sequence[int], topics: Lexicon | None
) -> tuple[np.ndarray, list[str]]:
    """Relative frequencies of n-grams per author, then topic loadings; and the n-grams."""
    parts, terms = [], []
    for n in sorted(orders):
        counts = count_tokens(rows["text"], rows["author"], n)
        # What ends in "*" would be a wildcard in a lexicon.
        plain = ~np.char.endswith(counts.features, "*")
        used = np.flatnonzero(plain & (_share_of_users(counts.matrix) >= MIN_SHARE))
        parts.append(counts.matrix[:, used].toarray() / np.maximum(counts.totals, 1)[:, None])
        terms += [counts.features[column] for column in used]
    if topics:
        loadings = topics.score(count_tokens(rows["text"], rows["author"])).fillna(0.0).to_numpy()
        parts.append(loadings * (_share_of_users(loadings) >= MIN_SHARE))
    return np.hstack(parts), terms


def _share_of_users(matrix: np.ndarray) -> np.ndarray:
    return np.asarray((matrix > 0).mean(axis=0)).ravel()


def _ridge() -> Any:
    """Selection of features, their scaling and the ridge regression, to be fitted as one."""
    from sklearn.feature_selection import SelectFpr, f_regression
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(SelectFpr(f_regression), StandardScaler(with_mean=False), Ridge(PENALTY))


def _as_lexicon(
    trait: str, weights: np.ndarray, intercept: float, terms: list[str], topics: Lexicon | None
) -> Lexicon:
    """Fold topic weights into words: a topic loading is a weighted sum of word frequencies too."""
    table = pd.Series(dict(zip(terms, weights, strict=False)), dtype=float)
    if topics:
        words = list(topics.weights)
        folded = topics.align(words) @ weights[len(terms) :]
        table = table.add(pd.Series(folded, words), fill_value=0.0)
    kept = {term: {trait: weight} for term, weight in table[table != 0].items()}
    return Lexicon(trait, kept, {trait: intercept})
