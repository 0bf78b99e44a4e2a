"""The tests of a difference and the accuracies on real scores: 360 responses with UniEval's own.

The right-hand sides are the definitions of mt-metrics-eval, written out in
`test_correlation_resampling`, and figures measured with other code on the same file.
"""

import numpy as np
import pytest
from test_correlation_resampling import SCIPY, acc23

from lib import analysis
from lib.analysis import significance
from lib.data import corpora

pytestmark = pytest.mark.public


@pytest.fixture(scope="module")
def unieval():
    return corpora.load("unieval_topical").turns


def column(turns, name: str) -> np.ndarray:
    return turns[f"score_unieval_{name}"].to_numpy(float)


@pytest.mark.parametrize("method", analysis.METHODS)
def test_perm_both_equals_its_definition_on_real_scores(unieval, method):
    a, b = column(unieval, "overall"), column(unieval, "coherence")
    human = unieval["human_overall"].to_numpy(float)
    z_a, z_b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    swap = np.random.default_rng(1).integers(0, 2, (25, 360), dtype=np.uint8)
    found = significance.permuted_differences(z_a, z_b, human, np.arange(360), swap, method)
    for value, row in zip(found, swap, strict=True):
        first, second = np.where(row, z_b, z_a), np.where(row, z_a, z_b)
        expected = SCIPY[method](first, human).statistic - SCIPY[method](second, human).statistic
        assert value == pytest.approx(expected, abs=1e-12)


def test_perm_both_gives_the_measured_p_values(unieval):
    """One-sided, 10,000 draws: .0001 for overall over coherence, .0008 for two near copies."""

    def p(better, worse, rating):
        scores = [column(unieval, name) for name in (better, worse)]
        return analysis.permutation_test(
            *scores, unieval[rating], "pearson", alternative="greater", resamples=10_000, seed=2
        )

    assert p("overall", "coherence", "human_overall").p < 0.0005
    near = p("understandability", "naturalness", "human_overall")
    assert 0 < near.difference < 0.01
    assert near.p < 0.01, "a difference of .004 is significant, and still only .004"


def test_acc23_equals_its_definition_and_the_measured_value(unieval):
    human = unieval["human_overall"].to_numpy(float)
    groups = unieval["dialog"].tolist()
    scores = column(unieval, "overall")
    found = analysis.pairwise_accuracy(scores, human, groups)
    assert found.pairs == 60 * 15
    assert found.value == pytest.approx(0.740, abs=5e-4)
    assert found.value == pytest.approx(acc23(scores, human, groups, found.threshold))


def test_soft_pairwise_accuracy_equals_its_definition_on_real_scores(unieval):
    tables = [
        unieval.assign(value=values).pivot(index="system", columns="dialog", values="value")
        for values in (column(unieval, "overall"), unieval["human_overall"])
    ]
    signs = np.random.default_rng(4).integers(0, 2, (300, 60)) * 2 - 1
    errors = []
    for i in range(6):
        for j in range(i + 1, 6):
            p = []
            for table in tables:
                gaps = (table.iloc[i] - table.iloc[j]).to_numpy()
                p.append(np.mean((signs * gaps).sum(axis=1) >= gaps.sum() - 1e-9))
            errors.append(abs(p[0] - p[1]))
    found = analysis.soft_pairwise_accuracy(*tables, 300, seed=4)
    # Ours counts the observed draw as well, (count + 1) / (draws + 1).
    assert 1 - found == pytest.approx(np.mean(errors) * 300 / 301)
