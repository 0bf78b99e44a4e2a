"""Does combining help? The ridge by its formula, and who teaches whom."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.meta_evaluation import combining
from lib.meta_evaluation.evaluation_sets import EvaluationSet


def make_set(name: str, seed: int, n: int = 120) -> EvaluationSet:
    """Two metrics that each know half of the rating, and one that knows nothing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"system": np.resize(["bot", "bot 2", "person"], n)})
    by_person = table["system"] == "person"
    table["dialog"] = [f"d{number // 3}" for number in range(n)]
    table["written_by"] = np.where(by_person, "person", "machine")
    parts = rng.normal(size=(n, 2))
    scores = pd.DataFrame(parts, columns=["a", "b"]).assign(noise=rng.normal(size=n))
    human = pd.Series(parts.sum(axis=1) + rng.normal(size=n), name="human_overall")
    return EvaluationSet(name, "turn", table, human, scores)


METRICS = ["a", "b", "noise"]


def test_the_ridge_is_the_weighted_formula():
    training = [make_set("one", 1, n=60), make_set("two", 2)]
    target = make_set("three", 3)
    with mock.patch.object(combining, "ALPHAS", [7.0]):
        ours = combining.ridge_predictions(training, target, METRICS)

    def z(values):
        return (values - values.mean(axis=0)) / values.std(axis=0, ddof=0)

    x = np.vstack([z(items.scores[METRICS].to_numpy()) for items in training])
    y = np.concatenate([z(items.human.to_numpy()) for items in training])
    # Both sets weigh the same, and the mean weight is 1.
    weights = np.repeat([90 / 60, 90 / 120], [60, 120])
    gram = (x.T * weights) @ x + 7.0 * np.eye(3)
    coefficients = np.linalg.solve(gram, (x.T * weights) @ y)
    expected = z(target.scores[METRICS].to_numpy()) @ coefficients
    assert ours.to_numpy() == pytest.approx(expected, abs=1e-9)


def test_a_missing_score_is_the_mean_of_its_set_and_ratings_of_the_target_are_not_read():
    training = [make_set("one", 1), make_set("two", 2)]
    target = make_set("three", 3)
    ours = combining.ridge_predictions(training, target, METRICS)
    other_ratings = replace(
        target, human=target.human[::-1].set_axis(target.human.index)
    )
    again = combining.ridge_predictions(training, other_ratings, METRICS)
    assert again.tolist() == ours.tolist()
    without = replace(target, scores=target.scores.assign(noise=np.nan))
    assert combining.ridge_predictions(training, without, METRICS).notna().all()


def test_two_halves_combine_and_the_gain_is_above_0_over_families():
    sets = [make_set(name, seed) for seed, name in enumerate("abcdef")]
    by_family = combining.combining_by_family(sets, METRICS)
    gain = combining.combining_gain(by_family).set_index(["replies", "compared"])
    assert gain.index.tolist() == [
        ("all", "everything"),
        ("all", "within systems"),
        ("machines only", "everything"),
        ("machines only", "within systems"),
    ]
    assert (gain["low"] > 0.05).all() and (gain["families"] == 6).all()
    assert set(by_family["chosen"]) <= {"a", "b"}

    row = by_family.query("corpus == 'c' and replies == 'machines only'").iloc[0]
    target = sets[2]
    machines = target.table["written_by"] == "machine"
    assert row["n"] == machines.sum()
    single = target.scores.loc[machines, row["chosen"]]
    expected = stats.spearmanr(single, target.human[machines]).statistic
    assert row["single"] == pytest.approx(expected)


def test_no_corpus_of_its_own_family_teaches_a_corpus():
    names = ["usr_topical", "usr_persona", "fed_turn", "better"]
    sets = [make_set(name, seed) for seed, name in enumerate(names)]
    taught = {}
    ridge_predictions = combining.ridge_predictions

    def record(training, target, metrics):
        taught[target.name] = {items.name for items in training}
        return ridge_predictions(training, target, metrics)

    with mock.patch.object(combining, "ridge_predictions", record):
        combining.combining_by_family(sets, METRICS)
    assert taught == {
        "usr_topical": {"fed_turn", "better"},
        "usr_persona": {"fed_turn", "better"},
        "fed_turn": {"usr_topical", "usr_persona", "better"},
        "better": {"usr_topical", "usr_persona", "fed_turn"},
    }


def test_the_interval_is_students_over_families():
    """Two corpora of one family count as one."""
    rows = pd.DataFrame(
        {
            "replies": "all",
            "compared": "everything",
            "family": ["USR", "USR", "FED", "x", "y"],
            "ridge": [0.2, 0.4, 0.5, 0.1, 0.3],
            "single": [0.1, 0.1, 0.3, 0.2, 0.2],
        }
    )
    gain = combining.combining_gain(rows).iloc[0]
    expected = stats.ttest_1samp([0.2, 0.2, -0.1, 0.1], 0).confidence_interval()
    assert (gain["low"], gain["high"]) == pytest.approx(expected)
    assert gain["families"] == 4 and gain["gain"] == pytest.approx(0.1)


def test_one_corpus_alone_gives_an_empty_table():
    by_family = combining.combining_by_family([make_set("one", 1)], METRICS)
    assert by_family.empty and combining.combining_gain(by_family).empty
