"""Emotional entropy and emotion matching, from the weights of an emotion lexicon."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from lib.metrics.registry import metric
from lib.psychology.lexicons import PLUTCHIK, Lexicon, TokenCounts, nrc_hashtag
from lib.psychology.lexicons.lexicon import Weighting
from lib.psychology.psychological_metrics.sides import (
    Context,
    Level,
    missing_side,
    prompt_counts,
    response_counts,
)

Form = Literal["sum", "group_norm", "intercept"]


def entropy(vectors: np.ndarray, form: Form = "sum") -> np.ndarray:
    """Compute the entropy of emotion vectors in nats.

    - sum:        H = -sum_e p_e ln p_e with p = v / sum(v), the textbook reading;
    - group_norm: -sum_e v_e ln v_e, where v is not made to sum to 1 (DLATK calls its relative
      frequencies `group_norm`; "the normalized emotion vector" of the paper fits this best);
    - intercept:  H over the emotions and a ninth entry of 1, the row `_intercept` that DLATK adds
      to the scores of a lexicon without intercept.

    Parameters
    ----------
    vectors : array, shape (rows, emotions), all >= 0
    form : {"sum", "group_norm", "intercept"}

    Returns
    -------
    array, shape (rows,)
        "sum": 0 (one emotion only) to ln(number of emotions), ln 8 = 2.079. NaN where a vector
        holds NaN or, except under "intercept", nothing but zeros.

    Raises
    ------
    ValueError
        For a negative entry: the logarithm is not defined.

    Examples
    --------
    >>> entropy(np.array([[1, 1, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]))
    array([0.69314718, 0.        ,        nan])
    >>> entropy(np.array([[0.5, 0.1]]), "group_norm").round(4)
    array([0.5768])
    """
    vectors = np.asarray(vectors, dtype=float)
    if (vectors < 0).any():
        raise ValueError("entropy needs scores of 0 or more; this lexicon gives negative ones")
    if form == "intercept":
        vectors = np.hstack([vectors, np.ones((len(vectors), 1))])
    elif form not in ("sum", "group_norm"):
        raise ValueError(f"form is 'sum', 'group_norm' or 'intercept', not {form!r}")
    total = vectors.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = vectors if form == "group_norm" else vectors / total
        # 0 ln 0 = 0 by continuity.
        terms = np.where(share > 0, share * np.log(np.where(share > 0, share, 1)), 0.0)
    # Adding 0.0 turns the -0.0 of a single emotion into 0.0.
    return np.where(total[:, 0] > 0, -terms.sum(axis=1), np.nan) + 0.0


def rank_correlation(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compute Spearman's rank correlation row by row (ties share their mean rank).

    Returns
    -------
    array, shape (rows,)
        -1 to 1; NaN where either row is constant or holds NaN.

    Examples
    --------
    >>> rank_correlation(np.array([[1, 2, 3], [1, 1, 1]]), np.array([[10, 30, 20], [1, 2, 3]]))
    array([0.5, nan])
    """
    ranks = [stats.rankdata(side, axis=1) - (side.shape[1] + 1) / 2 for side in (left, right)]
    products = (ranks[0] * ranks[1]).sum(axis=1)
    norms = np.sqrt((ranks[0] ** 2).sum(axis=1) * (ranks[1] ** 2).sum(axis=1))
    missing = np.isnan(left).any(axis=1) | np.isnan(right).any(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((norms > 0) & ~missing, products / norms, np.nan)


def emotions(
    counts: TokenCounts, lexicon: Lexicon, weighting: Weighting = "relative"
) -> pd.DataFrame:
    """Estimate the eight basic emotions of counted texts (columns in alphabetical order).

    An emotion without a matching word is 0; a row is NaN for a text without tokens.

    Examples
    --------
    >>> from lib.psychology.lexicons import count_tokens, toy_emotions
    >>> emotions(count_tokens(["what wonderful news !"]), toy_emotions()).loc[0, ["joy", "fear"]]
    joy     0.375
    fear    0.000
    Name: 0, dtype: float64
    """
    present = [e for e in PLUTCHIK if e in lexicon.categories]
    scores = lexicon.restrict(present).score(counts, weighting)
    spoken = counts.totals > 0
    scores.loc[spoken] = scores.loc[spoken].fillna(0.0)
    return scores.reindex(columns=list(PLUTCHIK)).fillna(
        {e: 0.0 for e in PLUTCHIK if e not in present}
    )


@metric(
    "emotional_entropy", "psychological", version="1", facts=lambda **options: _facts(nrc_hashtag())
)
def emotional_entropy(
    table: pd.DataFrame,
    lexicon: Lexicon | None = None,
    *,
    level: Level = "turn",
    form: Form = "sum",
    weighting: Weighting = "relative",
    details: bool = False,
) -> pd.Series | pd.DataFrame:
    """Compute how evenly a response spreads over Plutchik's eight emotions, in nats.

    Section 5, "Emotional Entropy": summed weighted word frequencies per emotion, then the entropy
    of the normalized vector. A state measure of the agent's own words.

    Parameters
    ----------
    table : DataFrame
        Turn table, or dialog table from level "dialog" upwards.
    lexicon : Lexicon, optional
        Emotion lexicon; the NRC Hashtag Emotion Lexicon by default.
    level : {"turn", "dialog", "agent", "system"}
        Token counts are pooled to the level before scoring.
    form : {"sum", "group_norm", "intercept"}
        See `entropy`; the default is the textbook definition.
    weighting : {"relative", "lex_norm", "liwc_norm", "raw"}
        See `Lexicon.score`.
    details : bool
        Return a frame with the eight emotions and the reason of every undefined value.

    Returns
    -------
    Series "emotional_entropy", or DataFrame (emotional_entropy, reason, anger ... trust)
        On the index of `table` at its own level, else one row per group. 0 to 2.079 under "sum";
        higher is more mixed, neither better nor worse. NaN for a response without words or
        without a single word of the lexicon.

    References
    ----------
    Giorgi et al. (2023), Human-centered metrics for dialog system evaluation, section 5.
    Mohammad and Kiritchenko (2015), Computational Intelligence 31(2).

    Examples
    --------
    >>> from lib.psychology.lexicons import toy_emotions
    >>> turns = pd.DataFrame({"response": ["what wonderful news !", "a chair", ""]})
    >>> emotional_entropy(turns, toy_emotions()).round(3).tolist()
    [0.562, nan, nan]
    >>> emotional_entropy(turns, toy_emotions(), details=True)["reason"].tolist()
    ['', 'no emotion word in the response', 'no words in the response']
    """
    counts = response_counts(table, level)
    scores = emotions(counts, lexicon or nrc_hashtag(), weighting)
    hit = scores.sum(axis=1) > 0
    values = pd.Series(entropy(scores.to_numpy(), form), counts.index, name="emotional_entropy")
    values = values.where(hit)
    if not details:
        return values
    return pd.concat([values, _reason(counts, scores, table, "response"), scores], axis=1)


@metric(
    "emotion_matching",
    "psychological",
    ("context", "response"),
    version="1",
    facts=lambda **options: _facts(nrc_hashtag()),
)
def emotion_matching(
    table: pd.DataFrame,
    lexicon: Lexicon | None = None,
    *,
    level: Level = "turn",
    context: Context = None,
    weighting: Weighting = "relative",
    details: bool = False,
) -> pd.Series | pd.DataFrame:
    """Compute Spearman's correlation between the agent's eight emotions and the prompt's.

    Section 5, "Emotion Matching", a form of linguistic matching.

    Parameters
    ----------
    table, lexicon, level, weighting, details
        As in `emotional_entropy`.
    context : {"all", "last"}, int or None
        What counts as the prompt, see `prompt_counts`.

    Returns
    -------
    Series "emotion_matching", or DataFrame with the reason and both emotion vectors
        -1 (opposite order) to 1 (same order of emotions). NaN where a side has no words or no
        emotion word, or feels all eight emotions equally.

    References
    ----------
    Giorgi et al. (2023), section 5.

    Examples
    --------
    >>> from lib.psychology.lexicons import toy_emotions
    >>> turns = pd.DataFrame({"context": [["i am so happy !"], []],
    ...                       "response": ["wonderful , i am glad", "glad"]})
    >>> emotion_matching(turns, toy_emotions()).round(3).tolist()
    [0.756, nan]
    """
    lexicon = lexicon or nrc_hashtag()
    said, heard = response_counts(table, level), prompt_counts(table, level, context)
    own, other = (emotions(counts, lexicon, weighting) for counts in (said, heard))
    values = rank_correlation(own.to_numpy(), other.to_numpy())
    values = pd.Series(values, said.index, name="emotion_matching")
    if not details:
        return values
    reason = _reason(said, own, table, "response")
    reason = reason.where(reason != "", _reason(heard, other, table, "prompt"))
    reason = reason.mask(values.isna() & (reason == ""), "all emotions are equal")
    parts = [values, reason, own.add_prefix("response_"), other.add_prefix("prompt_")]
    return pd.concat(parts, axis=1)


def _reason(counts: TokenCounts, scores: pd.DataFrame, table: pd.DataFrame, side: str) -> pd.Series:
    reason = missing_side(counts, table, side)
    unfelt = (scores.sum(axis=1) == 0) & (reason == "")
    return reason.mask(unfelt, f"no emotion word in the {side}").rename("reason")


def _facts(lexicon: Lexicon) -> dict:
    return {"lexicon": lexicon.name, "source": lexicon.source}
