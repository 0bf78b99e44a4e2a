"""The error rate of a verdict: found where it is known, and with an interval that covers it."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.meta_evaluation.evaluation_sets import EvaluationSet
from lib.report import verdict_errors
from lib.report.verdict import differences, verdicts

QUALITY = {"plain": 0.0, "good": 2.0, "best": 4.0}
CONTEXTS = 40


def rated_corpus(name, weights, rng):
    """Three bots and a person answer the same contexts; each metric is its weight x quality."""
    tables = []
    for system, quality in (QUALITY | {"person": 9.0}).items():
        table = pd.DataFrame({"dialog": [f"d{k}" for k in range(CONTEXTS)]})
        table = table.assign(system=system, agent=system, turn=1, quality=quality)
        table["written_by"] = "person" if system == "person" else "machine"
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    table["context"] = [[f"What about {dialog}?"] for dialog in table["dialog"]]
    noise = rng.standard_normal((len(table), len(weights) + 1))
    scores = pd.DataFrame(index=table.index)
    for column, (metric, weight) in enumerate(weights.items()):
        scores[metric] = weight * table["quality"] + noise[:, column]
    human = table["quality"] + noise[:, -1]
    return EvaluationSet(name, "turn", table, human.rename("human_overall"), scores)


def test_rates_are_those_that_the_corpora_were_made_with():
    rng = np.random.default_rng(0)
    corpora = [
        rated_corpus("usr_topical", {"follows": 1.0, "turns": 1.0, "flat": 0.0}, rng),
        rated_corpus("usr_persona", {"follows": 1.0, "turns": 1.0, "flat": 0.0}, rng),
        rated_corpus("fed_turn", {"follows": 1.0, "turns": -1.0, "flat": 0.0}, rng),
    ]
    compared = [verdict_errors.compare_machines(items, 500) for items in corpora]
    compared = pd.concat(compared, ignore_index=True)
    assert "person" not in set(compared["version"]) | set(compared["against"])
    rules = [["follows"], ["turns"], ["follows", "turns"]]
    outcomes = verdict_errors.rule_outcomes(compared, rules)
    table = verdict_errors.error_rates(outcomes).set_index("rule")
    counts = ["pairs", "right", "silent", "wrong", "corpora", "families"]
    assert table.loc["follows", counts].tolist() == [9, 9, 0, 0, 3, 2]
    assert table.loc["turns", counts].tolist() == [9, 6, 0, 3, 3, 2]
    # One metric higher and one lower is "mixed", which calls nothing.
    assert table.loc["follows + turns", counts].tolist() == [9, 6, 3, 0, 3, 1]
    assert table["wrong_share"].to_dict() == pytest.approx(
        {"follows": 0, "turns": 1 / 3, "follows + turns": 0}
    )


def test_a_metric_of_noise_calls_about_one_pair_in_twenty():
    rng = np.random.default_rng(1)
    noise = {f"noise{k}": 0.0 for k in range(100)}
    compared = verdict_errors.compare_machines(rated_corpus("c", noise, rng), 500)
    outcomes = verdict_errors.rule_outcomes(compared, [[name] for name in noise])
    share = (outcomes["outcome"] != "silent").mean()
    assert share == pytest.approx(0.05, abs=0.035)  # 300 calls that share 40 contexts


def test_an_outcome_is_that_of_a_paired_t_test_and_of_the_report():
    rng = np.random.default_rng(2)
    items = rated_corpus("c", {"weak": 0.12, "back": -0.12}, rng)
    compared = verdict_errors.compare_machines(items)
    rules = [["weak"], ["back"], ["weak", "back"]]
    outcomes = verdict_errors.rule_outcomes(compared, rules)
    outcomes = outcomes.set_index(["rule", "version"])["outcome"]
    machines = items.table["written_by"] == "machine"
    by_system = items.scores[machines].groupby(items.table["system"])
    for first, second in combinations(QUALITY, 2):
        p = {}
        for metric in ("weak", "back"):
            a = by_system.get_group(first)[metric].to_numpy()
            b = by_system.get_group(second)[metric].to_numpy()
            p[metric] = stats.ttest_rel(a, b)
            expected = "silent"
            if p[metric].pvalue <= 0.05:
                expected = "right" if b.mean() > a.mean() else "wrong"
            assert abs(p[metric].pvalue - 0.05) > 0.005  # too close for a bootstrap
            rows = compared.query("version == @second and against == @first")
            assert set(rows["people"]) == {"better"}
            found = verdict_errors.rule_outcomes(rows, [[metric]])["outcome"].item()
            assert found == expected

        pair = items.table["system"].isin([first, second])
        table = differences(items.table[pair], items.scores[pair], ["weak", "back"])
        (verdict,) = verdicts(table)
        said = verdict_errors.rule_outcomes(rows, [["weak", "back"]])["call"].item()
        assert verdict.verdict.removeprefix("leaning ") == said
    assert len(outcomes) == 9


def test_a_rule_is_not_tried_where_one_of_its_metrics_is_missing():
    row = {"corpus": "c", "family": "f", "version": "B", "against": "A", "reason": ""}
    row |= {"people": "better", "difference": 1.0, "p": 0.01}
    compared = pd.DataFrame([row | {"score": "here"}])
    outcomes = verdict_errors.rule_outcomes(compared, [["here"], ["here", "gone"]])
    assert outcomes["rule"].tolist() == ["here"]


def test_the_interval_is_that_of_clopper_and_pearson_for_the_effective_cases():
    count = pd.Series([2, 0, 5, 1])
    total = pd.Series([20, 15, 20, 10])
    share, low, high = verdict_errors.interval_of_share(count, total)
    p = 8 / 65
    squares = [(2 - p * 20) ** 2, (p * 15) ** 2, (5 - p * 20) ** 2, (1 - p * 10) ** 2]
    effective = min(65, p * (1 - p) / (4 / 3 * sum(squares) / 65**2))
    effective *= (stats.t.ppf(0.975, 64) / stats.t.ppf(0.975, 3)) ** 2
    wrong = p * effective
    assert share == pytest.approx(p)
    assert low == pytest.approx(stats.beta.ppf(0.025, wrong, effective - wrong + 1))
    assert high == pytest.approx(stats.beta.ppf(0.975, wrong + 1, effective - wrong))


def test_without_calls_or_with_one_family_there_is_no_interval():
    none = pd.Series([0, 0])
    assert np.isnan(verdict_errors.interval_of_share(none, none)).all()
    share, low, high = verdict_errors.interval_of_share(
        pd.Series([1, 0]), pd.Series([4, 0])
    )
    assert share == 0.25 and np.isnan(low) and np.isnan(high)


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_the_interval_covers_the_share_that_families_were_drawn_around(spread):
    rng = np.random.default_rng(3)
    true = 0.15
    total = pd.Series([10, 10, 20, 20, 30, 30])
    covered = []
    for _ in range(400):
        share = np.full(len(total), true)
        if spread:
            size = true * (1 - true) / spread**2 - 1  # of a beta with that deviation
            share = rng.beta(true * size, (1 - true) * size, len(total))
        wrong = pd.Series(rng.binomial(total, share))
        _, low, high = verdict_errors.interval_of_share(wrong, total)
        covered.append(low <= true <= high)
    assert np.mean(covered) >= 0.93
