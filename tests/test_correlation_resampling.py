"""Resampling, tests of differences and rankings against independent definitions.

Perm-both is also compared on real scores: the 360 responses of UniEval's Topical-Chat.
"""

# ruff: noqa: NPY002 - nlpstats draws from numpy's global state: the same draws need the same calls
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from nlpstats.correlations import bootstrap as nlpstats_bootstrap
from nlpstats.correlations import williams_test as nlpstats_williams
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lib.analysis import correlation, resampling, significance, systems
from lib.data import corpora

SCIPY = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}
METHODS = pytest.mark.parametrize("method", correlation.METHODS)


def tied_data(n: int, seed: int = 0):
    """A continuous metric, a coarse one, and ratings on a 5-point scale."""
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, n).astype(float)
    return human + rng.normal(size=n), np.round(human + 2 * rng.normal(size=n)), human


@pytest.fixture(params=["made", pytest.param("real", marks=pytest.mark.public)])
def triple(request):
    """Two metrics and ratings: made ones with ties, and real ones."""
    if request.param == "made":
        return tied_data(36, seed=8)
    turns = corpora.load("unieval_topical").turns
    columns = ("score_unieval_overall", "score_unieval_coherence", "human_overall")
    return [turns[name].to_numpy(float) for name in columns]


@METHODS
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_counts_equal_repeating_the_items(method, clustered):
    check_counts(method, n_items=31, clustered=clustered)


@pytest.mark.parametrize("method, n_items", [("spearman", 30_000), ("kendall", 900)])
@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_counts_equal_repeating_the_items_in_several_blocks(method, n_items):
    """Spearman works through blocks of resamples, Kendall through blocks of items."""
    n_blocks = {
        "spearman": len(list(resampling.resample_blocks(20, n_items))),
        "kendall": len(list(resampling.resample_blocks(n_items, n_items))),
    }
    assert n_blocks[method] > 1
    check_counts(method, n_items=n_items, clustered=True)


def check_counts(method, n_items, clustered):
    _, x, y = tied_data(n_items)
    clusters = np.arange(n_items)
    if clustered:
        clusters = np.random.default_rng(1).integers(0, 7, n_items)
    n_clusters = clusters.max() + 1
    counts = np.random.default_rng(2).integers(0, 3, (20, n_clusters))
    counts[0] = 4 * np.eye(n_clusters, dtype=int)[clusters[0]]  # one cluster alone
    values = resampling.resampled_correlations(
        x, y, counts, method=method, cluster_ids=clusters
    )
    for value, row in zip(values, counts, strict=True):
        times = row[clusters]
        expected = SCIPY[method](np.repeat(x, times), np.repeat(y, times)).statistic
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert np.isnan(values[0]) or clustered


def test_many_equal_scores_in_a_resample_are_constant_despite_rounding():
    """One dialog of 20,000 equal scores, drawn alone: no correlation, whatever the last digits."""
    x = np.r_[np.full(20_000, 0.1), np.linspace(0, 1, 50)]
    y = np.sin(np.arange(len(x)))
    clusters = np.r_[np.zeros(20_000, int), np.ones(50, int)]
    counts = np.array([[2, 0], [0, 2]])
    values = resampling.resampled_correlations(x, y, counts, cluster_ids=clusters)
    expected = np.corrcoef(x[-50:], y[-50:])[0, 1]
    assert np.isnan(values[0])
    assert values[1] == pytest.approx(expected)


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_infinite_scores_count_as_ranks_in_the_bootstrap(method):
    scores = np.array([3.0, np.inf, 1, 2, -np.inf, 5, 4, np.inf])
    human = np.array([2.0, 5, 1, 1, 2, 4, 3, 5])
    ranks = stats.rankdata(scores)
    infinite = resampling.bootstrap_interval(
        scores, human, method=method, resamples=200
    )
    finite = resampling.bootstrap_interval(ranks, human, method=method, resamples=200)
    assert infinite == finite
    assert not np.isnan(finite.low)


@METHODS
def test_perm_both_equals_its_definition_row_by_row(triple, method):
    """mt-metrics-eval's PERM-BOTH written out: z-score both, swap each element, correlate again."""
    a, b, human = triple
    exchanged = np.random.default_rng(3).integers(0, 2, (25, len(a)), dtype=np.uint8)
    z_a = stats.zscore(a)
    z_b = stats.zscore(b)
    options = {
        "cluster_ids": np.arange(len(a)),
        "exchanged": exchanged,
        "method": method,
    }
    differences = significance.permuted_differences(z_a, z_b, human, **options)
    for difference, row in zip(differences, exchanged, strict=True):
        r_a = SCIPY[method](np.where(row, z_b, z_a), human).statistic
        r_b = SCIPY[method](np.where(row, z_a, z_b), human).statistic
        assert difference == pytest.approx(r_a - r_b, abs=1e-12)


@pytest.mark.parametrize("clustered", [False, True])
def test_permutation_p_approaches_the_exact_p(clustered):
    """The share of all 2**c equally likely permutations that reach the observed difference."""
    a, b, human = tied_data(12, seed=1)
    blocks = np.repeat(np.arange(6), 2) if clustered else np.arange(12)
    exchanged = (np.arange(2 ** (blocks.max() + 1))[:, None] >> blocks) & 1
    z_a = stats.zscore(a)
    z_b = stats.zscore(b)
    differences = []
    for row in exchanged:
        r_a = np.corrcoef(np.where(row, z_b, z_a), human)[0, 1]
        r_b = np.corrcoef(np.where(row, z_a, z_b), human)[0, 1]
        differences.append(r_a - r_b)
    expected = np.mean(np.abs(differences) >= abs(differences[0]) - 1e-12)
    clusters = blocks if clustered else None
    test = significance.permutation_test(
        a, b, human, clusters=clusters, resamples=20_000
    )
    assert test.p == pytest.approx(expected, abs=0.012)


def test_p_counts_the_observed_difference_and_is_seeded():
    human = np.r_[np.arange(60.0), 7]
    noise = np.r_[
        np.random.default_rng(0).normal(size=60), np.nan
    ]  # the last item leaves both
    first = significance.permutation_test(human, noise, human, resamples=999, seed=1)
    assert first.p == 1 / 1000 and first.n == 60  # (0 + 1) / (999 + 1): never zero
    a, b, human = tied_data(60)
    p_values = [
        significance.permutation_test(a, b, human, seed=seed).p for seed in (1, 1, 2)
    ]
    assert p_values[0] == p_values[1] != p_values[2]


def systems_by_inputs(seed=0):
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(5, 12)) + np.arange(5)[:, None] / 2
    return human + rng.normal(size=(5, 12)), human


@METHODS
@pytest.mark.parametrize("over", ["inputs", "systems", "both"])
def test_system_bootstrap_equals_nlpstats_on_the_same_draws(method, over):
    a, human = systems_by_inputs()
    human[0, 3] = a[0, 3] = np.nan
    np.random.seed(7)
    expected = nlpstats_bootstrap(
        a, human, "system", method, over, n_resamples=60
    ).samples
    np.random.seed(7)
    counts = np.ones((60, 12))
    system_draws = np.tile(np.arange(5), (60, 1))
    for k in range(60):  # nlpstats draws the systems first
        if over != "inputs":
            system_draws[k] = np.random.choice(5, 5, replace=True)
        if over != "systems":
            counts[k] = np.bincount(
                np.random.choice(12, 12, replace=True), minlength=12
            )
    means, human_means = systems.resampled_system_means(
        a, human, counts, systems=system_draws
    )
    values = correlation.rowwise_correlations(means, human_means, method)
    assert values[~np.isnan(values)] == pytest.approx(np.array(expected), abs=1e-12)


def test_williams_equals_nlpstats():
    a, b, human = tied_data(50)
    columns = [values[:, None] for values in (a, b, human)]
    expected = nlpstats_williams(*columns, "global", "pearson", "two-sided").pvalue
    assert significance.williams_test(a, b, human).p == pytest.approx(expected)
    itself = significance.williams_test(a, a, human)
    assert (itself.difference, itself.p) == (0, 1)


def test_benjamini_hochberg_equals_statsmodels_within_families_and_skips_nan():
    p = np.array([0.001, 0.04, 0.03, np.nan, 0.2, 0.01])
    family = np.array([1, 1, 2, 2, 1, 2])
    q = significance.benjamini_hochberg(p, family)
    for label in (1, 2):
        rows = (family == label) & ~np.isnan(p)
        assert q[rows] == pytest.approx(multipletests(p[rows], method="fdr_bh")[1])
    assert np.isnan([q[3], *significance.benjamini_hochberg([np.nan])]).all()


def test_bootstrap_difference_uses_the_same_resamples_for_both_metrics():
    a, b, human = tied_data(60)
    clusters = np.repeat(np.arange(20), 3)
    options = {"clusters": clusters, "resamples": 500, "seed": 2}
    interval = significance.bootstrap_difference(a, b, human, **options)
    differences = []
    for row in np.random.default_rng(2).integers(0, 20, (500, 20)):
        items = np.concatenate([np.flatnonzero(clusters == cluster) for cluster in row])
        r_a = np.corrcoef(a[items], human[items])[0, 1]
        r_b = np.corrcoef(b[items], human[items])[0, 1]
        differences.append(r_a - r_b)
    tail = stats.norm.cdf(np.sqrt(20 / 19) * stats.t.ppf(0.025, 19))
    assert (interval.low, interval.high) == pytest.approx(
        np.quantile(differences, [tail, 1 - tail])
    )


def test_bootstrap_of_a_mean_draws_whole_dialogs():
    values = np.arange(24.0) ** 2
    dialogs = np.repeat(list("abcdefgh"), 3)
    with_nan = np.r_[values, np.nan]
    mean = resampling.bootstrap_mean(
        with_nan, np.r_[dialogs, ["h"]], resamples=400, seed=3
    )
    dialog_means = values.reshape(8, 3).mean(axis=1)
    rng = np.random.default_rng(3)
    means = dialog_means[rng.integers(0, 8, (400, 8))].mean(axis=1)
    assert (mean.low, mean.high) == pytest.approx(np.quantile(means, [0.025, 0.975]))
    assert (mean.value, mean.n, mean.clusters) == (values.mean(), 24, 8)
    assert (
        resampling.bootstrap_mean([1.0, 2.0], ["a", "a"]).reason
        == "fewer than 2 clusters"
    )


def test_undefined_resamples_are_counted_and_left_out():
    """One of two clusters has equal scores: drawn twice, it has no correlation."""
    scores = [1.0, 1, 1, 2, 3, 5]
    interval = resampling.bootstrap_interval(
        scores, [1, 2, 3, 4, 6, 5], list("aaabbb"), resamples=400
    )
    assert 60 < interval.undefined < 140
    assert not np.isnan(interval.low) and interval.reason == ""


def acc23(x, y, groups, epsilon):
    """The definition of mt-metrics-eval, pair by pair: mean over groups of (C + T_both) / all."""
    accuracies = []
    for group in sorted(set(groups)):
        rows = np.flatnonzero(np.array(groups) == group)
        correct = []
        for i, j in combinations(rows, 2):
            if abs(x[i] - x[j]) <= epsilon:
                correct.append(y[i] == y[j])
            else:
                correct.append((x[i] - x[j]) * (y[i] - y[j]) > 0)
        if correct:
            accuracies.append(np.mean(correct))
    return np.mean(accuracies)


@pytest.mark.parametrize("coarse", [False, True])
def test_acc23_and_its_threshold_equal_a_search_over_all_thresholds(coarse):
    fine, rough, human = tied_data(36, seed=8)
    x = rough if coarse else fine
    groups = [0] * 6 + [1] * 10 + [2] * 19 + [3]  # unequal groups, one without a pair
    candidates = np.unique(np.abs(np.subtract.outer(x, x)))
    values = [acc23(x, human, groups, epsilon) for epsilon in candidates]
    accuracy = correlation.pairwise_accuracy(x, human, groups)
    assert accuracy.value == pytest.approx(max(values))
    assert acc23(x, human, groups, accuracy.threshold) == pytest.approx(max(values))


def test_acc23_of_equal_missing_and_infinite_scores():
    equal = correlation.pairwise_accuracy([2, 2, 2, 2], [1, 1, 1, 3], [0, 0, 0, 0])
    assert (equal.value, equal.threshold) == (0.5, 0), "the share of human ties"
    scores = [1, np.nan, np.inf, -np.inf]
    assert (
        correlation.pairwise_accuracy(scores, [2, 9, 3, 1], [0, 0, 0, 0]).value == 1.0
    )
    undefined = correlation.pairwise_accuracy([1, 2], [1, 2], ["a", "b"])
    assert np.isnan(undefined.value)
    assert "no group" in undefined.reason


def test_soft_pairwise_accuracy_equals_its_definition():
    """Pairwise confidence error of Thompson et al. 2024, one pair and one resample at a time."""
    a, human = (pd.DataFrame(values) for values in systems_by_inputs(3))
    signs = np.random.default_rng(4).integers(0, 2, (200, a.shape[1])) * 2 - 1
    errors = []
    for i, j in combinations(range(len(a)), 2):
        p = []
        for table in (human, a):
            difference = (table.iloc[i] - table.iloc[j]).to_numpy()
            p.append(np.mean(signs @ difference >= difference.sum() - 1e-9))
        errors.append(abs(p[0] - p[1]))
    soft = systems.soft_pairwise_accuracy
    # Ours counts the observed difference as well, (count + 1) / (resamples + 1).
    assert 1 - soft(a, human, 200, seed=4).value == pytest.approx(
        np.mean(errors) * 200 / 201
    )
    a_with_gap = a.copy()
    both_with_gap = human.copy()
    # Cells missing in either are left out of both.
    a_with_gap.iloc[0, :9] = both_with_gap.iloc[0, :9] = np.nan
    without_gap = soft(a, human, 200)
    assert (
        soft(a_with_gap, human, 200)
        == soft(a_with_gap, both_with_gap, 200)
        != without_gap
    )


def test_soft_pairwise_accuracy_needs_systems_that_share_a_context():
    """Defect N6: without one it was 1 for noise and for minus the ratings."""
    human = pd.DataFrame([[1, 2, np.nan, np.nan], [np.nan, np.nan, 5, 6]])
    accuracy = systems.soft_pairwise_accuracy(-human, human)
    assert np.isnan(accuracy.value)
    assert accuracy.reason == "no two systems share a context"
    third = pd.concat([human, pd.DataFrame([[4.0, 4, 4, 4]])], ignore_index=True)
    assert systems.soft_pairwise_accuracy(third, third).pairs == 2


def test_ranking_separates_and_groups():
    rng = np.random.default_rng(0)
    human = pd.Series(rng.normal(size=200))
    noise = {"poor": 6, "good": 0.5, "as good": 0.5}
    scores = pd.DataFrame(
        {name: human + s * rng.normal(size=200) for name, s in noise.items()}
    )
    scores["flat"] = 3.0
    scores.loc[:4, "poor"] = np.nan  # only items that every metric scores count
    table = significance.rank_metrics(
        scores, human, np.repeat(np.arange(40), 5), resamples=500
    )
    assert table["n"].dropna().tolist() == [195] * 3
    assert table.iloc[-1]["reason"] == "all scores equal"
    table = table.set_index("metric")
    expected = np.corrcoef(scores["good"][5:], human[5:])[0, 1]
    assert table["value"]["good"] == pytest.approx(expected)
    ranks = table["rank"]
    assert ranks["good"] == ranks["as good"] == 1
    assert ranks["poor"] == 2
    assert np.isnan(ranks["flat"])
    pairs = significance.compare_metrics(scores, human, resamples=500)
    expected = multipletests(pairs["p"], method="fdr_bh")[1]
    assert len(pairs) == 3 and pairs["p_adjusted"].to_numpy() == pytest.approx(expected)


UNDEFINED = [
    ([1.0, 2, 3, 4], "1111", "fewer than 2 clusters"),
    ([1.0, 1, 1, 1], "aabb", "all scores equal"),
    ([1.0, np.inf, 3, 4], "aabb", "infinite value"),
    ([np.nan, np.nan, np.nan, 4], "aabb", "fewer than 2 pairs"),
]


@pytest.mark.parametrize("scores, clusters, reason", UNDEFINED)
def test_edge_cases_give_nan_with_a_reason(scores, clusters, reason):
    human = [1.0, 2, 2, 5]
    other = [4.0, 2, 3, 1]
    options = {"clusters": list(clusters), "resamples": 50}
    interval = resampling.bootstrap_interval(scores, human, **options)
    difference = significance.bootstrap_difference(scores, other, human, **options)
    test = significance.permutation_test(scores, other, human, **options)
    assert np.isnan(
        [interval.low, interval.high, difference.low, difference.high, test.p]
    ).all()
    assert interval.reason == test.reason == difference.reason == reason


def test_few_systems_get_fishers_interval_and_many_a_bootstrap():
    """Defect N9: six points were bootstrapped; the formula gives -.56 to .93 for a rho of .486."""
    low, high = systems.fisher_interval(0.486, 6, "spearman")
    half = 1.96 * np.sqrt(1.06 / 3)
    expected = np.tanh([np.arctanh(0.486) - half, np.arctanh(0.486) + half])
    assert (low, high) == pytest.approx(expected, abs=1e-4)
    rng = np.random.default_rng(0)
    scores, human = (pd.DataFrame(rng.normal(size=(6, 8))) for _ in range(2))
    six = systems.system_interval(scores, human, over="systems", resamples=200)
    r = stats.pearsonr(scores.mean(axis=1), human.mean(axis=1))
    n = len(scores)
    assert (six.low, six.high, six.n) == pytest.approx((*r.confidence_interval(), n))
    both = systems.system_interval(scores, human, over="both", resamples=200)
    assert np.isnan(both.low) and both.reason == "fewer than 10 systems to draw from"
    perfect = systems.system_interval(scores, scores, over="systems")
    assert np.isnan(perfect.low) and "perfect order" in perfect.reason
    scores = pd.DataFrame(rng.normal(size=(10, 8)))
    human = pd.DataFrame(rng.normal(size=(10, 8)))
    ten = systems.system_interval(scores, human, over="systems", resamples=200)
    with pytest.raises(ValueError, match="choose contexts, systems or both"):
        systems.system_interval(scores, human, over="context", resamples=200)
    assert ten.low < ten.value < ten.high
    assert ten.reason == ""


def test_permuted_dialogs_keep_the_level_that_permuted_turns_lose():
    """A small version of the recorded simulation (tests/bench/simulate_nesting.py)."""
    rates = significance.false_positive_rates(
        120, icc=(0.5,), dialogs=30, turns=10, resamples=199
    )
    assert rates["permute dialogs"][0] <= 0.12
    assert rates["permute turns"][0] >= 0.18 and rates["williams"][0] >= 0.18
    # Intervals exclude 0 at either end: with one end left out, the rate would be halved.
    assert rates["bootstrap dialogs"][0] == pytest.approx(0.075, abs=0.02)
    assert rates["standard_error"][0] == pytest.approx((0.05 * 0.95 / 120) ** 0.5)


@pytest.mark.parametrize("n_clusters, tested", [(1, False), (2, True)])
def test_a_bootstrap_of_a_difference_needs_enough_clusters(n_clusters, tested):
    """At the smallest number that is enough, there is an interval."""
    rng = np.random.default_rng(0)
    human = rng.normal(size=30)
    a, b = human + rng.normal(size=(2, 30))
    clusters = np.arange(30) % n_clusters
    found = significance.bootstrap_difference(a, b, human, clusters, resamples=99)
    assert np.isfinite(found.low) == tested


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_partial_interval_is_that_of_dialogs_written_out_again(method):
    rng = np.random.default_rng(3)
    z = rng.normal(size=60)
    x = z + rng.normal(size=60)
    y = z - rng.normal(size=60)
    dialogs = np.repeat(np.arange(20), 3)
    interval = resampling.partial_interval(
        x, y, z, dialogs, method, resamples=300, seed=5
    )
    assert interval.value == pytest.approx(
        correlation.partial_correlation(x, y, z, method)
    )
    draws = []
    for counts in resampling.bootstrap_counts(np.random.default_rng(5), 300, 20):
        rows = np.repeat(np.arange(60), counts[dialogs])
        draws.append(correlation.partial_correlation(x[rows], y[rows], z[rows], method))
    expected = resampling.percentile_interval(
        resampling.Interval(clusters=20), np.array(draws)
    )
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
