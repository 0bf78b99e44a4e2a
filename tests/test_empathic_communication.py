"""Ratings of empathic communication: joined right, and equal to what their authors printed."""

import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.data.empathic_communication import (
    EXPERTS,
    FAULTS,
    JUDGES,
    empathic_communication,
    empathic_conversations,
)
from lib.meta_evaluation.replication.empathy_kappas import kappas_beside_published

pytestmark = pytest.mark.public


@pytest.fixture(scope="module")
def ratings():
    """One row per conversation and dimension, one column per rater."""
    table = empathic_communication()
    index = ["corpus", "dimension", "conversation"]
    return table.pivot(index=index, columns="rater", values="rating")


def test_every_rater_rated_every_conversation(ratings):
    assert ratings.shape == (50 * 21, 7)
    assert ratings.notna().all(axis=None)
    assert empathic_communication().attrs["report"][0]["kept"] == 7350


def test_no_id_of_a_crowd_worker_is_shown(ratings):
    names = ratings.index.get_level_values("conversation")
    assert names.str.fullmatch(r"[a-z_]+ \d\d").all()


@pytest.fixture(scope="module")
def kappas():
    return kappas_beside_published(empathic_communication())


def test_kappas_equal_the_published_ones(kappas):
    """84 of 126. The other 42 rest on single ratings of the crowd, which are not in its file."""
    of_crowd = (kappas[["rater_a", "rater_b"]] == "crowd").any(axis=1)
    assert len(kappas) == 126
    assert of_crowd.sum() == 42
    assert kappas.loc[of_crowd, "kappa"].isna().all()
    assert kappas.loc[of_crowd, "reason"].str.contains("crowd").all()
    ours = kappas[~of_crowd]
    assert ours["kappa"].round(2).tolist() == ours["published"].tolist()


def test_a_weighted_kappa_is_one_minus_squared_distances(ratings, kappas):
    """Cohen's formula written out, for two experts on one dimension."""
    row = kappas.query("reason == ''").iloc[0]
    names = dict(zip(["expert1", "expert2", "expert3"], EXPERTS, strict=True))
    group = ratings.loc[(row["corpus"], row["dimension"])]
    a, b = group[names[row["rater_a"]]], group[names[row["rater_b"]]]
    observed = ((a - b) ** 2).mean()
    expected = np.subtract.outer(a.to_numpy(), b.to_numpy()) ** 2
    assert row["kappa"] == pytest.approx(1 - observed / expected.mean())


def test_two_strong_judges_come_near_one_more_expert(ratings):
    """Spearman with the mean of two experts, over the three pairs and 21 dimensions."""
    correlations = {rater: [] for rater in (*JUDGES, "expert")}
    for _, group in ratings.groupby(["corpus", "dimension"]):
        for expert in EXPERTS:
            others = [name for name in EXPERTS if name != expert]
            mean = group[others].mean(axis=1)
            correlations["expert"].append(group[expert].corr(mean, method="spearman"))
            for judge in JUDGES:
                correlations[judge].append(group[judge].corr(mean, method="spearman"))
    means = {rater: np.mean(values) for rater, values in correlations.items()}
    assert means == pytest.approx(
        {
            "Claude 3.7 Sonnet": 0.622,
            "Gemini 2.5 Pro": 0.621,
            "GPT-4o": 0.561,
            "expert": 0.656,
        },
        abs=0.0006,
    )


def test_experts_find_faults_where_they_miss_merits(ratings):
    """The three faults go with less of the three merits, in the experts' mean ratings."""
    experts = (
        ratings[list(EXPERTS)].mean(axis=1).loc["lend_an_ear"].unstack("dimension")
    )
    merits = experts.drop(columns=list(FAULTS))
    assert merits.shape == (50, 3)
    for fault in FAULTS:
        assert experts[fault].corr(merits.sum(axis=1), method="spearman") < 0, fault


def test_who_sees_more_faults_is_severe(ratings):
    """The levels that notebook 08 tells, after faults are reversed on their scale (6 - rating)."""
    merits = ratings.loc["lend_an_ear"].copy()
    is_fault = merits.index.get_level_values("dimension").isin(FAULTS)
    assert is_fault.sum() == 150
    merits[is_fault] = 6 - merits[is_fault]
    experts = merits[list(EXPERTS)].mean(axis=1)
    path = ROOT / "data/results/08_strong_leniency.csv"
    told = pd.read_csv(path, index_col="rater").loc[[*JUDGES, "crowd"]]
    for rater in told.index:
        lenient = (merits[rater] - experts) / 4
        assert told["lend_an_ear"][rater] == pytest.approx(lenient.mean(), abs=1e-5)
        assert told["faults"][rater] == pytest.approx(
            lenient[is_fault].mean(), abs=1e-5
        )
    assert (told.loc[list(JUDGES), "lend_an_ear"] < 0).all()


def test_conversations_join_with_their_ratings():
    messages = empathic_conversations()
    ratings = empathic_communication()
    with_texts = ratings[ratings["corpus"] != "perceived_empathy"]
    assert set(messages["dialog"]) == set(with_texts["conversation"])
    assert (messages["context"].map(len) == messages["turn"]).all()
    assert messages["response"].str.strip().ne("").all()
    assert not messages["response"].str.contains("_comma_|Seeker:|Supporter:").any()


def test_more_questions_are_more_exploration():
    """Texts and ratings belong to each other: experts rate exploration where a listener asks."""
    messages = empathic_conversations().query("corpus == 'epitome'").set_index("dialog")
    asks = messages["response"].str.contains("?", regex=False).astype(float)
    rated = empathic_communication().query(
        "dimension == 'explorations' and rater == 'expert 1'"
    )
    assert asks.corr(rated.set_index("conversation")["rating"]) > 0.4
