"""Correlations over corpora: by the formulas written out, and by simulation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from lib.meta_evaluation.evaluation_sets import load_set
from lib.meta_evaluation.over_corpora import (
    combine_corpora,
    holm,
    independent_corpora,
    metrics_over_corpora,
)


def table_of(z, errors):
    """Correlations with 95 % intervals, from Fisher's z and its standard errors."""
    z = np.asarray(z)
    half = 1.959964 * np.asarray(errors)
    bounds = {"value": np.tanh(z), "low": np.tanh(z - half), "high": np.tanh(z + half)}
    return pd.DataFrame(bounds)


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
    bounds = [mean, mean - half, mean + half, mean - next_half, mean + next_half]
    result = combine_corpora(table_of(z, errors))
    assert result[:5] == pytest.approx(np.tanh(bounds), abs=1e-5)
    assert result.spread == pytest.approx(np.sqrt(tau2), abs=1e-5)
    p = 2 * stats.t.sf(mean / np.sqrt(variance), 4)
    assert result.p == pytest.approx(p, rel=1e-4)


def test_the_next_corpus_lies_in_its_interval_in_nineteen_of_twenty():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(600):
        errors = rng.uniform(0.04, 0.1, size=10)
        truths = rng.normal(0.3, 0.15, size=11)
        result = combine_corpora(table_of(rng.normal(truths[:10], errors), errors))
        next_one = np.tanh(truths[10])
        inside.append(result.prediction_low <= next_one <= result.prediction_high)
    assert 0.92 <= np.mean(inside) <= 0.975


def test_the_interval_of_the_mean_holds_it_in_nineteen_of_twenty():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(600):
        errors = rng.uniform(0.04, 0.1, size=9)
        truths = rng.normal(0.2, 0.15, size=9)
        result = combine_corpora(table_of(rng.normal(truths, errors), errors))
        inside.append(result.low <= np.tanh(0.2) <= result.high)
    assert 0.92 <= np.mean(inside) <= 0.975


def test_corpora_without_a_correlation_are_left_out_and_two_are_too_few():
    table = table_of([0.1, 0.2, 0.3], [0.1, 0.1, 0.1])
    table.loc[3] = [np.nan, np.nan, np.nan]
    assert combine_corpora(table).corpora == 3
    result = combine_corpora(table.iloc[1:])
    assert result.corpora == 2
    assert result.reason == "2 corpora, fewer than 3"
    assert np.isnan(result[:7]).all()


def test_two_loaders_of_one_corpus_count_once():
    bots = load_set("sample_bots")
    half = replace(
        bots,
        name="half of the bots",
        table=bots.table.iloc[::2].assign(
            response=bots.table["response"].str.upper().iloc[::2]
        ),
    )
    others = load_set("sample_personas")
    names = independent_corpora([bots, others, half])
    assert names == ["sample_bots", "sample_personas"]


@pytest.mark.public
def test_fed_and_usr_topical_count_once_each():
    names = ["fed_turn", "fed_engaging", "usr_topical", "unieval_topical"]
    sets = [load_set(name) for name in names]
    assert independent_corpora(sets) == ["fed_turn", "usr_topical"]


def rows_of(metric, z, replies="machines only"):
    table = table_of(z, np.full(len(z), 0.05))
    corpora = [f"c{number}" for number in range(len(z))]
    return table.assign(metric=metric, replies=replies, corpus=corpora)


def test_the_standing_rests_on_machines_and_on_the_number_of_metrics():
    """A metric that people's replies alone make follows nobody."""
    tables = [
        rows_of("strong", [0.4, 0.42, 0.38, 0.41, 0.4]),
        rows_of("of people", [0.0, 0.02, -0.02, 0.01, 0.0]),
        rows_of("of people", [0.4, 0.42, 0.38, 0.41, 0.4], "all"),
        rows_of("rare", [0.4, 0.4]),
        rows_of("against people", [-0.4, -0.42, -0.38, -0.41, -0.4]),
    ]
    correlations = pd.concat(tables)
    table = metrics_over_corpora(correlations, correlations["corpus"].unique())
    machines = table[table["replies"] == "machines only"].set_index("metric")
    assert machines["standing"].to_dict() == {
        "strong": "follows people",
        "of people": "uncertain",
        "against people": "uncertain",
        "rare": "too few corpora",
    }
    assert list(table["replies"]) == ["machines only"] * 4 + ["all"]
    tested = machines["p"].dropna()
    smallest = tested.min()
    assert machines.loc[tested.idxmin(), "p_adjusted"] == pytest.approx(3 * smallest)


def test_a_corpus_that_is_not_counted_has_no_say():
    correlations = rows_of("strong", [0.4, 0.42, 0.38, -0.9])
    table = metrics_over_corpora(correlations, ["c0", "c1", "c2"])
    assert table["corpora"].tolist() == [3]
    assert table["mean"].item() == pytest.approx(np.tanh(0.4), abs=0.01)


def test_holm_rejects_one_after_the_other():
    p = pd.Series([0.04, 0.01, np.nan, 0.02], index=list("abcd"))
    assert holm(p).tolist() == pytest.approx([0.04, 0.03, np.nan, 0.04], nan_ok=True)
