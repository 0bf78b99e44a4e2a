"""Correlations over corpora: by the formulas written out, and by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from lib.meta_evaluation.over_corpora import combine_corpora


def table_of(z, errors):
    """Correlations with 95 % intervals, from Fisher's z and its standard errors."""
    z, half = np.asarray(z), 1.959964 * np.asarray(errors)
    return pd.DataFrame(
        {"value": np.tanh(z), "low": np.tanh(z - half), "high": np.tanh(z + half)}
    )


def test_is_the_formula_of_the_random_effects_mean():
    z = np.array([0.1, 0.35, 0.2, 0.6, 0.42])
    errors = np.array([0.05, 0.1, 0.08, 0.12, 0.06])

    def excess(
        tau2,
    ):  # Paule and Mandel: the weighted sum of squares equals its expectation
        weights = 1 / (errors**2 + tau2)
        mean = (weights * z).sum() / weights.sum()
        return (weights * (z - mean) ** 2).sum() - (len(z) - 1)

    tau2 = optimize.brentq(excess, 0, 10)
    weights = 1 / (errors**2 + tau2)
    mean = (weights * z).sum() / weights.sum()
    variance = (weights * (z - mean) ** 2).sum() / ((len(z) - 1) * weights.sum())
    half = stats.t.ppf(0.975, 4) * np.sqrt(variance)
    next_half = stats.t.ppf(0.975, 3) * np.sqrt(tau2 + variance)
    result = combine_corpora(table_of(z, errors))
    expected = np.tanh(
        [mean, mean - half, mean + half, mean - next_half, mean + next_half]
    )
    assert result[:5] == pytest.approx(expected, abs=1e-5)
    assert result.spread == pytest.approx(np.sqrt(tau2), abs=1e-5)


def test_the_next_corpus_lies_in_its_interval_in_nineteen_of_twenty():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(600):
        errors = rng.uniform(0.04, 0.1, size=10)
        truths = rng.normal(0.3, 0.15, size=11)
        result = combine_corpora(table_of(rng.normal(truths[:10], errors), errors))
        inside.append(result.next_low <= np.tanh(truths[10]) <= result.next_high)
    assert 0.92 <= np.mean(inside) <= 0.975


def test_corpora_without_a_correlation_are_left_out_and_two_are_too_few():
    table = table_of([0.1, 0.2, 0.3], [0.1, 0.1, 0.1])
    table.loc[3] = [np.nan, np.nan, np.nan]
    assert combine_corpora(table).n_corpora == 3
    result = combine_corpora(table.iloc[1:])
    assert result.n_corpora == 2
    assert result.reason == "2 corpora, fewer than 3"
    assert np.isnan(result[:6]).all()
