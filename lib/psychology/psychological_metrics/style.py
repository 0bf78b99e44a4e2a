"""Language style matching: do two speakers use function words at the same rate?"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from lib.metrics.registry import metric
from lib.psychology.lexicons import FUNCTION_WORDS, Lexicon, TokenCounts, function_words
from lib.psychology.psychological_metrics.sides import (
    Context,
    Level,
    missing_side,
    prompt_counts,
    response_counts,
)

BothZero = Literal["one", "skip"]
Denominator = Literal["words", "tokens"]
EPSILON = 1e-4
"""Ireland's constant, added to a sum of two percentages so that it is never 0."""


def style_similarity(
    left: np.ndarray, right: np.ndarray, both_zero: BothZero = "one", epsilon: float = EPSILON
) -> np.ndarray:
    """Compare two rates of use, 1 - |a - b| / (a + b + epsilon), elementwise.

    Parameters
    ----------
    left, right : arrays of the same shape
        Percent of all words (0 to 100).
    both_zero : {"one", "skip"}
        A category that neither side uses gives 1 by the formula, or NaN.

    Returns
    -------
    array
        0 (only one side uses the category) to 1 (same rate).

    Examples
    --------
    >>> style_similarity(np.array([10.0, 0.0, 4.0]), np.array([5.0, 0.0, 0.0])).round(4)
    array([0.6667, 1.    , 0.    ])
    """
    left, right = np.asarray(left, float), np.asarray(right, float)
    similarity = 1 - np.abs(left - right) / (left + right + epsilon)
    if both_zero == "skip":
        return np.where((left == 0) & (right == 0), np.nan, similarity)
    if both_zero != "one":
        raise ValueError(f"both_zero is 'one' or 'skip', not {both_zero!r}")
    return similarity


@metric(
    "language_style_matching",
    "psychological",
    ("context", "response"),
    version="1",
    facts=lambda **options: _facts(function_words()),
)
def language_style_matching(
    table: pd.DataFrame,
    lexicon: Lexicon | None = None,
    *,
    level: Level = "turn",
    context: Context = None,
    both_zero: BothZero = "one",
    denominator: Denominator = "words",
    newline_tokens: bool = False,
    epsilon: float = EPSILON,
    details: bool = False,
) -> pd.Series | pd.DataFrame:
    """Compute language style matching (LSM), the mean similarity of nine function-word rates.

    Section 5, "Language Style Matching": 1 minus the normalized absolute difference, averaged over
    personal and impersonal pronouns, articles, conjunctions, prepositions, auxiliary verbs,
    adverbs, negations and quantifiers.

    Parameters
    ----------
    table : DataFrame
        Turn table, or dialog table from level "dialog" upwards.
    lexicon : Lexicon, optional
        The nine categories; our own open lists by default, `lexicons.liwc(path)` for yours.
    level, context
        As in `emotion_matching`.
    both_zero : {"one", "skip"}
        Categories that neither side uses count 1 (the formula) or are left out of the mean.
    denominator : {"words", "tokens"}
        Rates in percent of words, or of all tokens with punctuation (what DLATK counts).
    newline_tokens : bool
        Count line breaks between the utterances of the context as tokens, as DLATK does.
    epsilon : float
        Constant of the denominator.
    details : bool
        Return a frame with the reason and the similarity of each category.

    Returns
    -------
    Series "language_style_matching", or DataFrame (language_style_matching, reason, categories)
        0 to 1, higher is more alike. NaN where one side has no words, or (both_zero="skip") where
        no category is used by either.

    References
    ----------
    Ireland et al. (2011), Language style matching predicts relationship initiation and stability,
    Psychological Science 22(1). Giorgi et al. (2023), section 5.

    Examples
    --------
    >>> turns = pd.DataFrame({"context": [["do you like the park ?"]],
    ...                       "response": ["i like it and the lake"]})
    >>> language_style_matching(turns).round(3).tolist()
    [0.636]
    """
    lexicon = lexicon or function_words()
    said = response_counts(table, level)
    heard = prompt_counts(table, level, context, newline_tokens)
    rates = [_percent(counts, lexicon, denominator) for counts in (said, heard)]
    similarity = pd.DataFrame(
        style_similarity(rates[0].to_numpy(), rates[1].to_numpy(), both_zero, epsilon),
        index=said.index,
        columns=list(FUNCTION_WORDS),
    )
    values = similarity.mean(axis=1).rename("language_style_matching")
    if not details:
        return values
    reason = missing_side(said, table, "response", denominator)
    reason = reason.where(reason != "", missing_side(heard, table, "prompt", denominator))
    reason = reason.mask(values.isna() & (reason == ""), "no function word on either side")
    return pd.concat([values, reason.rename("reason"), similarity], axis=1)


def _percent(counts: TokenCounts, lexicon: Lexicon, denominator: Denominator) -> pd.DataFrame:
    if denominator not in ("words", "tokens"):
        raise ValueError(f"denominator is 'words' or 'tokens', not {denominator!r}")
    total = counts.word_totals if denominator == "words" else counts.totals
    used = lexicon.restrict(FUNCTION_WORDS).matches(counts)[list(FUNCTION_WORDS)]
    return used.div(np.where(total > 0, total, np.nan), axis=0) * 100


def _facts(lexicon: Lexicon) -> dict:
    return {"lexicon": lexicon.name, "source": lexicon.source}
