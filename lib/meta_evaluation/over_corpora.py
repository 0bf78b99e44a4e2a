"""What correlations of one metric on several corpora say about the next corpus.

A random-effects meta-analysis: each corpus has a true correlation of its own, drawn around a mean.
The interval of the mean says how well that mean is known; the prediction interval says where the
true correlation on another corpus may lie.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

MIN_CORPORA = 3  # a prediction interval has n_corpora - 2 degrees of freedom


class OverCorpora(NamedTuple):
    """A metric's correlation over corpora.

    Attributes:
        mean, low, high: the mean correlation and its 95 % interval.
        next_low, next_high: 95 % prediction interval of the correlation on another corpus.
        spread: standard deviation between corpora (tau), on the scale of Fisher's z.
        n_corpora: corpora with a correlation and an interval.
        reason: why nothing could be computed; the numbers are then NaN.
    """

    mean: float
    low: float
    high: float
    next_low: float
    next_high: float
    spread: float
    n_corpora: int
    reason: str = ""


def combine_corpora(correlations: pd.DataFrame) -> OverCorpora:
    """Random-effects mean of correlations, with the interval of the mean and of the next corpus.

    On Fisher's z. The standard error of a corpus is half its 95 % interval's width over 1.96, the
    variance between corpora that of Paule and Mandel, the interval of the mean
    that of Hartung, Knapp, Sidik and Jonkman, and the prediction interval that of Higgins,
    Thompson and Spiegelhalter (2009) with n - 2 degrees of freedom.

    Args:
        correlations: one row per corpus with `value`, `low` and `high`, the 95 % interval. Corpora
            with a missing value are left out.

    Returns:
        Correlations between -1 and 1. NaN with a reason for fewer than three corpora.

    >>> table = pd.DataFrame({"value": [0.2, 0.3, 0.5]})
    >>> table = table.assign(low=table["value"] - 0.1, high=table["value"] + 0.1)
    >>> result = combine_corpora(table)
    >>> round(result.mean, 2), result.n_corpora, result.next_low < result.low
    (0.34, 3, True)
    """
    usable = correlations.dropna(subset=["value", "low", "high"])
    n_corpora = len(usable)
    if n_corpora < MIN_CORPORA:
        reason = f"{n_corpora} corpora, fewer than {MIN_CORPORA}"
        return OverCorpora(*[np.nan] * 6, n_corpora=n_corpora, reason=reason)
    z = np.arctanh(usable[["value", "low", "high"]].clip(-0.9999, 0.9999))
    errors = (z["high"] - z["low"]) / (2 * stats.norm.ppf(0.975))
    result = combine_effects(z["value"], errors**2, method_re="pm", use_t=True)
    error = result.sd_eff_w_re_hksj
    half = stats.t.ppf(0.975, n_corpora - 1) * error
    next_half = stats.t.ppf(0.975, n_corpora - 2) * np.sqrt(result.tau2 + error**2)
    mean = result.mean_effect_re
    return OverCorpora(
        mean=float(np.tanh(mean)),
        low=float(np.tanh(mean - half)),
        high=float(np.tanh(mean + half)),
        next_low=float(np.tanh(mean - next_half)),
        next_high=float(np.tanh(mean + next_half)),
        spread=float(np.sqrt(result.tau2)),
        n_corpora=n_corpora,
    )
