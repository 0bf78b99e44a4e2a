"""What a correlation pools: figures that were computed elsewhere with other code, to .01."""

import pandas as pd
import pytest

from lib import ROOT

# corpus, metric, all replies, machines' only, people's only; None where it was not computed.
FIGURES = [
    ("usr_topical", "words", 0.30, 0.05, 0.35),
    ("usr_topical", "meteor_15", 0.39, 0.34, None),
    ("usr_topical", "bertscore_f1", 0.40, 0.32, None),
    ("usr_topical", "log_likelihood[smollm2]", -0.20, 0.14, None),
    ("usr_topical", "emotional_entropy", 0.30, 0.02, None),
    ("usr_topical", "emotional_entropy_paper", 0.35, 0.04, None),
    ("usr_topical", "unieval_overall", 0.66, 0.375, None),
    ("usr_persona", "words", 0.27, -0.17, 0.35),
    ("usr_persona", "log_likelihood[smollm2]", -0.29, -0.04, None),
    ("usr_persona", "log_likelihood_gain[smollm2]", -0.12, 0.22, None),
    ("fed_turn", "log_likelihood[smollm2]", 0.01, 0.22, None),
    ("fed_turn", "fed_engaging[smollm2]", 0.37, 0.29, None),
    ("predeng600", "words", 0.14, -0.34, 0.73),
    ("predeng600", "endex_seeds", 0.11, -0.17, 0.54),
    ("predeng600", "fed_engaging[smollm2]", 0.22, -0.15, 0.52),
    ("predeng600", "log_likelihood_gain[smollm2]", 0.07, 0.34, -0.56),
    ("predeng600", "log_likelihood[smollm2]", 0.51, 0.36, 0.13),
]
INTERVALS = [
    ("usr_topical", "words", -0.08, 0.19),
    ("usr_persona", "words", -0.32, -0.03),
]


@pytest.fixture(scope="module")
def table():
    path = ROOT / "data" / "results" / "10_who_wrote_it.csv"
    return pd.read_csv(path).set_index(["corpus", "metric"])


@pytest.mark.parametrize(("corpus", "metric", "pooled", "machines", "people"), FIGURES)
def test_a_pooled_correlation_and_its_parts(
    table, corpus, metric, pooled, machines, people
):
    row = table.loc[(corpus, metric)]
    assert row["all"] == pytest.approx(pooled, abs=0.01)
    assert row["machines only"] == pytest.approx(machines, abs=0.01)
    if people is not None:
        assert row["people only"] == pytest.approx(people, abs=0.01)


@pytest.mark.parametrize(("corpus", "metric", "low", "high"), INTERVALS)
def test_the_interval_among_machines(table, corpus, metric, low, high):
    row = table.loc[(corpus, metric)]
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.03)
