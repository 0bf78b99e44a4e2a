"""Agreeableness and empathic concern from language: train a model, score dialogues with it.

The paper's two models were never released and no public model of either trait was found, so the
stand-ins are trained in the open. A weighted lexicon can be such a model too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from lib import ROOT
from lib.data import DataError
from lib.psychology.counts import TokenCounts, count_tokens, response_counts
from lib.psychology.lexica import Lexicon

#: Out-of-sample Pearson r of the paper's models, which were never released.
PUBLISHED_R = {"agreeableness": 0.35, "empathic_concern": 0.26}

PENALTIES = 10.0 ** np.arange(0, 7.5, 0.5)
WASSA_COLUMNS = {
    "response_id": "author",
    "essay": "text",
    "personality_agreeableness": "agreeableness",
    # The published files spell the column this way.
    "iri_empathatic_concern": "empathic_concern",
}


def read_wassa(path: str | Path) -> pd.DataFrame:
    """Read an essay file of the WASSA 2022 shared task (tab-separated).

    1,860 essays by 372 authors: reactions to news articles, with the Big Five (1-7) and the
    Interpersonal Reactivity Index (1-5) of each author. `response_id` is the author, who wrote
    five essays: folds of a model must keep them together. The essays and the empathy and distress
    ratings are CC BY 4.0; the personality columns come under the terms of the shared task, so the
    file is yours to supply.

    Returns:
        author, text, agreeableness, empathic_concern; one row per essay. Unreadable scores are NaN.

    Raises:
        DataError: a column is missing; the test part of the shared task has no scores.

    Reference: Barriere et al. (2022), WASSA 2022 shared task. Buechel et al. (2018), Modeling
    empathy and distress in reaction to news stories, EMNLP.

    >>> read_wassa(ROOT / "data" / "sample" / "essays" / "essays.tsv").shape
    (240, 4)
    """
    rows = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    if missing := set(WASSA_COLUMNS) - set(rows):
        fix = "use an essay-level training file of WASSA 2022 (tab-separated, with scores)"
        raise DataError(f"there is no column {sorted(missing)}", file=path, fix=fix)
    rows = rows[list(WASSA_COLUMNS)].rename(columns=WASSA_COLUMNS)
    numbers = rows[list(PUBLISHED_R)].apply(pd.to_numeric, errors="coerce")
    return rows.assign(**numbers)


def sample_essays() -> pd.DataFrame:
    """Load the 240 invented essays of 80 invented authors that come with the project.

    >>> sample_essays()["author"].nunique()
    80
    """
    return read_wassa(ROOT / "data" / "sample" / "essays" / "essays.tsv")


@dataclass(frozen=True)
class TraitModel:
    """A fitted ridge regression and what it was fitted on.

    Attributes:
        ngrams: the n-grams used, by order (1, 2, 3).
        topics: lexicon of p(topic | word), if the model uses topic loadings.
        ridge: scikit-learn pipeline over the n-grams by order, then the topics.
        authors: size of the training set.
        out_of_sample_r: Pearson r between predicted and measured trait of authors in held-out
            folds.
        interval: 95 % interval of that r (Fisher's z over authors).
    """

    ngrams: Mapping[int, Sequence[str]]
    topics: Lexicon | None
    ridge: object
    authors: int
    out_of_sample_r: float
    interval: tuple[float, float]

    @property
    def coefficients(self) -> np.ndarray:
        """One per feature, in units of the trait per standard deviation of the feature."""
        return self.ridge[-1].coef_


def fit_trait_model(
    texts: pd.DataFrame,
    trait: str,
    *,
    orders: Sequence[int] = (1, 2, 3),
    topics: Lexicon | None = None,
    min_share: float = 0.05,
    folds: int = 10,
    seed: int = 0,
) -> TraitModel:
    """Fit trait = b0 + sum_j b_j z(x_j) by ridge regression over an author's pooled language.

    Section 5, "Agreeableness" (1-3grams and 2,000 topics) and "Empathy" (topics, ridge, 10-fold
    cross-validation). An author's texts are pooled first, so that no author is in two folds; the
    n-grams, their scaling and the penalty (by leave-one-out error) are chosen anew inside each
    training part.

    Args:
        texts: one row per text with author, text and the trait (the mean is taken per author).
        trait: column with the questionnaire score; NaN rows are left out.
        orders: orders of the n-grams; empty for topics alone.
        topics: p(topic | word), e.g. `dlatk_lexicon("fb2000_cp")`.
        min_share: least share of training authors that use an n-gram.
        folds, seed: of the cross-validation.

    Returns:
        The model fitted on all authors; `.out_of_sample_r` comes from the folds. No public model
        of either trait was found, so a model fitted here is a stand-in, to be named as such.

    Raises:
        DataError: fewer authors than 2 per fold (a usable model needs several hundred).

    Reference: Park et al. (2015), Automatic personality assessment through social media language,
    JPSP 108(6).

    >>> model = fit_trait_model(sample_essays(), "agreeableness", orders=(1,), folds=5)
    >>> model.authors, model.out_of_sample_r > 0.4
    (80, True)
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = texts.dropna(subset=["author", "text", trait])
    y = rows.groupby("author", sort=False)[trait].mean().to_numpy(float)
    if len(y) < 2 * folds:
        raise DataError(f"{len(y)} authors are too few for {folds} folds")
    counts = cache(lambda n: count_tokens(rows["text"], rows["author"], n))

    def fit(authors: np.ndarray) -> tuple[dict, np.ndarray, object]:
        ngrams = {n: _frequent(counts(n), authors, min_share) for n in sorted(orders)}
        features = _features(counts, ngrams, topics)
        ridge = make_pipeline(StandardScaler(), RidgeCV(alphas=PENALTIES))
        return ngrams, features, ridge.fit(features[authors], y[authors])

    predicted = np.empty(len(y))
    for train, test in KFold(folds, shuffle=True, random_state=seed).split(y):
        _, features, ridge = fit(train)
        predicted[test] = ridge.predict(features[test])
    found = stats.pearsonr(predicted, y)
    ngrams, _, ridge = fit(np.arange(len(y)))
    interval = tuple(map(float, found.confidence_interval(0.95)))
    return TraitModel(ngrams, topics, ridge, len(y), float(found.statistic), interval)


def score_traits(
    table: pd.DataFrame, models: Mapping[str, TraitModel | Lexicon], *, level: str = "agent"
) -> pd.DataFrame:
    """Estimate traits from the pooled words of each agent (or dialog, system, turn).

    Section 5: the paper estimates agreeableness and empathy per dialog for want of agent-level
    data; the measure is meant for agents. Short texts are far from what such models are trained
    on (a lifetime of posts), so turn-level values are noisy.

    Args:
        table: turn or dialog table.
        models: by name of the column. A Lexicon is a linear model in DLATK's export format (term,
            category, weight and an `_intercept` row, see `read_csv`) with one category; terms of
            several words are matched with n-grams of their order, wildcards too.
        level: "agent", "dialog", "system" or "turn".

    Returns:
        One column per model, in the units of the questionnaire; NaN for a group without words.

    Raises:
        DataError: a lexicon has several categories.

    >>> turns = pd.DataFrame({"system": ["s", "s"], "agent": ["kind", "curt"],
    ...                       "dialog": ["1", "2"], "response": ["thank you so much", "no"]})
    >>> weights = {"thank you": {"agreeableness": 4.0}, "no": {"agreeableness": -1.0}}
    >>> lexicon = Lexicon("toy", weights, {"agreeableness": 4.0})
    >>> score_traits(turns, {"agreeableness": lexicon})["agreeableness"].round(3).tolist()
    [5.333, 3.0]
    """
    counts = cache(lambda n: response_counts(table, level, n))
    scores = pd.DataFrame(index=counts(1).index)
    for name, model in models.items():
        if isinstance(model, Lexicon):
            scores[name] = _score_lexicon(model, counts)
        else:
            scores[name] = model.ridge.predict(_features(counts, model.ngrams, model.topics))
    scores[counts(1).totals == 0] = np.nan
    return scores


def _score_lexicon(lexicon: Lexicon, counts: Callable[[int], TokenCounts]) -> np.ndarray:
    if len(lexicon.categories) != 1:
        problem = f"{lexicon.name} has the categories {list(lexicon.categories)}"
        raise DataError(problem, fix="choose one with lexicon.restrict([...])")
    # Apart by order: a one-word wildcard such as "lov*" must not match the bigram "loving you".
    orders: dict[int, dict] = {}
    for term, entry in lexicon.weights.items():
        orders.setdefault(term.count(" ") + 1, {})[term] = entry
    parts = [Lexicon(lexicon.name, terms).score(counts(n)) for n, terms in orders.items()]
    scores = sum(part.fillna(0.0).to_numpy() for part in parts)
    return scores[:, 0] + next(iter(lexicon.intercepts.values()), 0.0)


def _frequent(counts: TokenCounts, rows: np.ndarray, min_share: float) -> list[str]:
    users = np.asarray((counts.matrix[rows] > 0).sum(axis=0)).ravel()
    return [f for f, k in zip(counts.features, users, strict=True) if k >= min_share * len(rows)]


def _features(counts: Callable, ngrams: Mapping, topics: Lexicon | None) -> np.ndarray:
    parts = [_relative(counts(n), terms) for n, terms in ngrams.items()]
    parts += [topics.score(counts(1)).fillna(0.0).to_numpy()] if topics else []
    return np.hstack(parts)


def _relative(counts: TokenCounts, terms: Sequence[str]) -> np.ndarray:
    """Relative frequency of each term per row; 0 for a term that no row has."""
    column = pd.Index(counts.features).get_indexer(terms)
    shares = np.zeros((len(counts.index), len(terms)))
    shares[:, column >= 0] = counts.matrix[:, column[column >= 0]].toarray()
    return shares / np.maximum(counts.totals, 1)[:, None]
