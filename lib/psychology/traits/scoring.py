"""Score dialogues with trait models, or with a weighted lexicon that is one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.data.dialogues import DataError
from lib.psychology.lexicons import Lexicon, TokenCounts
from lib.psychology.psychological_metrics.sides import Level, response_counts
from lib.psychology.traits.features import design_matrix
from lib.psychology.traits.model import TraitModel


def score_traits(
    table: pd.DataFrame,
    models: Mapping[str, TraitModel | Lexicon],
    *,
    level: Level = "agent",
    topics: Lexicon | None = None,
) -> pd.DataFrame:
    """Estimate traits from the pooled words of each agent (or dialog, system, turn).

    Section 5: the paper estimates agreeableness and empathy per dialog for want of agent-level
    data; the measure is meant for agents. Short texts are far from what such models are trained
    on (a lifetime of posts), so turn-level values are noisy.

    Parameters
    ----------
    table : DataFrame
        Turn or dialog table.
    models : mapping of column name to TraitModel or Lexicon
        A Lexicon is a linear model in DLATK's export format (term, category, weight and an
        `_intercept` row, see `lexicons.read_csv`) with one category; terms of several words are
        matched with n-grams of their order, wildcards too.
    level : {"agent", "dialog", "system", "turn"}
    topics : Lexicon, optional
        Needed by models that were trained with topics.

    Returns
    -------
    DataFrame, one column per model
        In the units of the questionnaire; NaN for a group without words.

    Raises
    ------
    DataError
        If a model needs topics that were not given, or a lexicon has several categories.

    Examples
    --------
    >>> turns = pd.DataFrame({"system": ["s", "s"], "agent": ["kind", "curt"],
    ...                       "dialog": ["1", "2"], "response": ["thank you so much", "no"]})
    >>> weights = {"thank you": {"agreeableness": 4.0}, "no": {"agreeableness": -1.0}}
    >>> lexicon = Lexicon("toy", weights, {"agreeableness": 4.0})
    >>> score_traits(turns, {"agreeableness": lexicon})["agreeableness"].round(3).tolist()
    [5.333, 3.0]
    """
    orders = sorted({n for model in models.values() for n in _orders(model)} | {1})
    counts = {n: response_counts(table, level, n) for n in orders}
    columns = {}
    for name, model in models.items():
        if isinstance(model, Lexicon):
            columns[name] = _score_lexicon(model, counts)
        else:
            columns[name] = model.predict(
                design_matrix(counts, model.ngrams, _topics_of(model, topics))
            )
    return pd.DataFrame(columns, index=counts[1].index)


def _orders(model: TraitModel | Lexicon) -> set[int]:
    if isinstance(model, TraitModel):
        return set(model.ngrams)
    return {term.count(" ") + 1 for term in model.weights}


def _topics_of(model: TraitModel, topics: Lexicon | None) -> Lexicon | None:
    if not model.topics:
        return None
    if topics is None or topics.name != model.topics:
        raise DataError(
            f"the model of {model.trait} was trained with the topics {model.topics!r}",
            fix="pass them, e.g. topics=lexicons.facebook_topics()",
        )
    return topics


def _score_lexicon(lexicon: Lexicon, counts: Mapping[int, TokenCounts]) -> np.ndarray:
    if len(lexicon.categories) != 1:
        raise DataError(
            f"{lexicon.name} has the categories {list(lexicon.categories)}",
            fix="choose one with lexicon.restrict([...])",
        )
    total = sum(
        _of_order(lexicon, n).score(counts[n]).fillna(0.0).to_numpy()[:, 0]
        for n in _orders(lexicon)
    )
    total = total + next(iter(lexicon.intercepts.values()), 0.0)
    return np.where(counts[1].totals > 0, total, np.nan)


def _of_order(lexicon: Lexicon, n: int) -> Lexicon:
    # Without this a one-word wildcard such as "lov*" would match the bigram "loving you" too.
    terms = {term: w for term, w in lexicon.weights.items() if term.count(" ") + 1 == n}
    return Lexicon(lexicon.name, terms, source=lexicon.source)
