"""Resampling, tests of differences and rankings against independent definitions."""

# ruff: noqa: NPY002 - nlpstats draws from numpy's global state: the same draws need the same calls
import numpy as np
import pandas as pd
import pytest
from nlpstats.correlations import bootstrap as nlpstats_bootstrap
from nlpstats.correlations import permutation_test as nlpstats_permutation
from nlpstats.correlations import williams_test as nlpstats_williams
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lib import analysis
from lib.analysis import resampling, significance, simulation

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def tied_data(n: int, seed: int = 0):
    """Ratings on a 5-point scale, a continuous metric and a coarse one."""
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, n).astype(float)
    return human + rng.normal(size=n), np.round(human + 2 * rng.normal(size=n)), human


@pytest.mark.parametrize("method", analysis.METHODS)
@pytest.mark.parametrize("clustered", [False, True])
def test_counts_equal_repeating_the_items(method, clustered, monkeypatch):
    monkeypatch.setattr(resampling, "CELLS", 200)  # several blocks, as for a large corpus
    _, x, y = tied_data(31)
    clusters = np.random.default_rng(1).integers(0, 7, 31) if clustered else np.arange(31)
    counts = np.random.default_rng(2).integers(0, 3, (20, clusters.max() + 1))
    found = analysis.resampled_correlations(x, y, counts, method, clusters)
    for value, row in zip(found, counts, strict=True):
        times = row[clusters]
        expected = SCIPY[method](np.repeat(x, times), np.repeat(y, times)).statistic
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", analysis.METHODS)
def test_a_constant_draw_is_nan(method):
    x, y = np.array([0.1, 0.2, 0.3]), np.array([1.0, 1.0, 5.0])
    found = analysis.resampled_correlations(
        x, y, np.array([[2, 1, 0], [0, 3, 0], [1, 1, 1]]), method
    )
    assert np.isnan(found[:2]).all() and found[2] == pytest.approx(SCIPY[method](x, y).statistic)


def test_many_equal_scores_in_a_draw_are_constant_despite_rounding():
    """One dialog of 20,000 equal scores, drawn alone: no correlation, whatever the last digits."""
    x = np.r_[np.full(20_000, 0.1), np.linspace(0, 1, 50)]
    y, clusters = np.sin(np.arange(len(x))), np.r_[np.zeros(20_000, int), np.ones(50, int)]
    found = analysis.resampled_correlations(x, y, np.array([[2, 0], [0, 2]]), clusters=clusters)
    assert np.isnan(found[0]) and found[1] == pytest.approx(np.corrcoef(x[-50:], y[-50:])[0, 1])


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_infinite_scores_count_as_ranks_in_the_bootstrap(method):
    scores = np.array([3.0, np.inf, 1, 2, -np.inf, 5, 4, np.inf])
    human = np.array([2.0, 5, 1, 1, 2, 4, 3, 5])
    finite = stats.rankdata(scores)
    found = [analysis.bootstrap_interval(x, human, None, method, 200) for x in (scores, finite)]
    assert found[0] == found[1] and not np.isnan(found[0].low)


@pytest.mark.parametrize("method", analysis.METHODS)
def test_perm_both_equals_its_definition_draw_by_draw(method):
    """mt-metrics-eval's PERM-BOTH written out: z-score both, swap each element, correlate again."""
    a, b, human = tied_data(40)
    swap = np.random.default_rng(3).integers(0, 2, (60, 40), dtype=np.uint8)
    z_a, z_b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    found = significance.permuted_differences(z_a, z_b, human, np.arange(40), swap, method)
    for value, row in zip(found, swap, strict=True):
        first, second = np.where(row, z_b, z_a), np.where(row, z_a, z_b)
        expected = SCIPY[method](first, human).statistic - SCIPY[method](second, human).statistic
        assert value == pytest.approx(expected, abs=1e-12)


def exact_p(a, b, human, blocks, alternative):
    """p over all 2**c equally likely swaps."""
    z = [(m - m.mean()) / m.std() for m in (a, b)]
    c = blocks.max() + 1
    deltas = []
    for code in range(2**c):
        row = np.array([(code >> bit) & 1 for bit in range(c)])[blocks]
        first, second = np.where(row, z[1], z[0]), np.where(row, z[0], z[1])
        deltas.append(np.corrcoef(first, human)[0, 1] - np.corrcoef(second, human)[0, 1])
    deltas = np.array(deltas)
    seen = deltas[0]
    tail = {"greater": deltas - seen, "less": seen - deltas}
    return np.mean(tail.get(alternative, abs(deltas) - abs(seen)) >= -1e-12)


@pytest.mark.parametrize("alternative", significance.ALTERNATIVES)
@pytest.mark.parametrize("clustered", [False, True])
def test_permutation_p_approaches_the_exact_p(alternative, clustered):
    a, b, human = tied_data(12, seed=1)
    blocks = np.repeat(np.arange(6), 2) if clustered else np.arange(12)
    test = analysis.permutation_test(
        a,
        b,
        human,
        clusters=blocks if clustered else None,
        alternative=alternative,
        resamples=20_000,
    )
    expected = exact_p(a, b, human, blocks, alternative)
    assert 0.02 < expected < 0.98  # the case can tell a wrong tail from a right one
    assert test.p == pytest.approx(expected, abs=0.012)


def test_p_counts_the_observed_draw_and_is_seeded():
    human = np.arange(60.0)
    noise = np.random.default_rng(0).normal(size=60)
    first = analysis.permutation_test(human, noise, human, resamples=999, seed=1)
    assert first.p == 1 / 1000  # (0 + 1) / (999 + 1): never zero
    again = [analysis.permutation_test(*tied_data(60), resamples=9999, seed=s).p for s in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def systems_by_inputs(seed=0):
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(5, 12)) + np.arange(5)[:, None] / 2
    return human + rng.normal(size=(5, 12)), human + 2 * rng.normal(size=(5, 12)), human


@pytest.mark.parametrize("method", analysis.METHODS)
def test_swapping_contexts_equals_nlpstats_on_the_same_draws(method):
    """nlpstats `inputs` swaps a whole column (one context, all systems): our cluster swap."""
    a, b, human = systems_by_inputs()
    np.random.seed(5)
    theirs = nlpstats_permutation(a, b, human, "global", method, "inputs", n_resamples=80)
    np.random.seed(5)
    swap = np.array([np.random.rand(1, 12)[0] > 0.5 for _ in range(80)]).astype(np.uint8)
    z = [stats.zscore(m.ravel()) for m in (a, b)]
    codes = np.tile(np.arange(12), 5)
    ours = significance.permuted_differences(*z, human.ravel(), codes, swap, method)
    assert ours == pytest.approx(np.array(theirs.samples), abs=1e-12)


@pytest.mark.parametrize("method", analysis.METHODS)
def test_bootstrap_of_contexts_equals_nlpstats_on_the_same_draws(method):
    a, _, human = systems_by_inputs()
    np.random.seed(6)
    theirs = nlpstats_bootstrap(a, human, "global", method, "inputs", n_resamples=60)
    np.random.seed(6)
    drawn = [np.random.choice(12, 12, replace=True) for _ in range(60)]
    counts = np.array([np.bincount(row, minlength=12) for row in drawn])
    codes = np.tile(np.arange(12), 5)
    ours = analysis.resampled_correlations(a.ravel(), human.ravel(), counts, method, codes)
    assert ours == pytest.approx(np.array(theirs.samples), abs=1e-12)
    summary = resampling.summarise(0.0, ours, 60, 12, expanded=False)
    assert (summary.low, summary.high) == pytest.approx((theirs.lower, theirs.upper))


@pytest.mark.parametrize("method", analysis.METHODS)
@pytest.mark.parametrize("resample", ["inputs", "systems", "both"])
def test_system_bootstrap_equals_nlpstats_on_the_same_draws(method, resample):
    a, _, human = systems_by_inputs()
    human[0, 3] = np.nan
    a[0, 3] = np.nan
    np.random.seed(7)
    theirs = nlpstats_bootstrap(a, human, "system", method, resample, n_resamples=60)
    np.random.seed(7)
    counts, drawn = [], []
    for _ in range(60):  # nlpstats draws the systems first
        if resample != "inputs":
            drawn.append(np.random.choice(5, 5, replace=True))
        if resample != "systems":
            counts.append(np.bincount(np.random.choice(12, 12, replace=True), minlength=12))
    counts = np.array(counts) if counts else np.ones((60, 12))
    ours = resampling.rowwise_correlations(
        *resampling._system_means(
            a, human, ~np.isnan(a), counts, np.array(drawn) if drawn else None
        ),
        method,
    )
    assert ours[~np.isnan(ours)] == pytest.approx(np.array(theirs.samples), abs=1e-12)


@pytest.mark.parametrize("alternative", significance.ALTERNATIVES)
def test_williams_equals_nlpstats_and_keeps_its_sign(alternative):
    a, b, human = tied_data(50)
    column = [m[:, None] for m in (a, b, human)]
    theirs = nlpstats_williams(*column, "global", "pearson", alternative)
    ours = analysis.williams_test(a, b, human, alternative=alternative)
    assert ours.p == pytest.approx(theirs.pvalue)
    swapped = analysis.williams_test(b, a, human, alternative="greater")
    assert swapped.p > 0.5 > analysis.williams_test(a, b, human, alternative="greater").p


def test_williams_of_a_metric_with_itself():
    a, _, human = tied_data(20)
    test = analysis.williams_test(a, a, human)
    assert (test.difference, test.p) == (0, 1)


def test_benjamini_hochberg_equals_statsmodels_and_skips_nan():
    p = np.array([0.001, 0.2, 0.03, 0.04, 0.5, 0.011])
    expected = multipletests(p, method="fdr_bh")[1]
    assert analysis.benjamini_hochberg(p) == pytest.approx(expected)
    with_gap = analysis.benjamini_hochberg(np.insert(p, 2, np.nan))
    assert np.isnan(with_gap[2]) and np.delete(with_gap, 2) == pytest.approx(expected)
    assert np.isnan(analysis.benjamini_hochberg([np.nan])).all()


def test_bootstrap_difference_uses_the_same_draws_for_both_metrics():
    a, b, human = tied_data(60)
    clusters = np.repeat(np.arange(20), 3)
    found = analysis.bootstrap_difference(a, b, human, clusters, resamples=500, seed=2)
    counts = resampling._counts(np.random.default_rng(2), 500, 20)
    differences = []
    for row in counts:
        times = row[clusters]
        y = np.repeat(human, times)
        r_a, r_b = (np.corrcoef(np.repeat(m, times), y)[0, 1] for m in (a, b))
        differences.append(r_a - r_b)
    tail = stats.norm.cdf(np.sqrt(20 / 19) * stats.t.ppf(0.025, 19))
    assert tail < 0.02
    assert (found.low, found.high) == pytest.approx(np.quantile(differences, [tail, 1 - tail]))


def test_bootstrap_covers_the_truth():
    """95 % intervals of a known correlation, dialogs with shared effects: 200 seeded corpora."""
    hits, rng = 0, np.random.default_rng(0)
    for _ in range(200):
        frame = simulation.simulate_null(40, 5, 0.3, rng)
        interval = analysis.bootstrap_interval(
            frame["a"], frame["human"], frame["dialog"], resamples=300
        )
        hits += interval.low <= 0.6 <= interval.high
    assert 0.89 <= hits / 200 <= 0.98


def acc23(x, y, groups, epsilon):
    """The definition of mt-metrics-eval, pair by pair: mean over groups of (C + T_both) / all."""
    accuracies = []
    for group in sorted(set(groups)):
        rows = [i for i, g in enumerate(groups) if g == group]
        right = total = 0
        for k, i in enumerate(rows):
            for j in rows[k + 1 :]:
                metric_tie, human_tie = abs(x[i] - x[j]) <= epsilon, y[i] == y[j]
                same_order = (x[i] - x[j]) * (y[i] - y[j]) > 0
                right += human_tie if metric_tie else (same_order and not human_tie)
                total += 1
        if total:
            accuracies.append(right / total)
    return np.mean(accuracies)


@pytest.mark.parametrize("coarse", [False, True])
def test_acc23_and_its_threshold_equal_a_search_over_all_thresholds(coarse):
    fine, rough, human = tied_data(36, seed=8)
    x = rough if coarse else fine
    groups = [0] * 6 + [1] * 10 + [2] * 19 + [3]  # unequal groups, one without a pair
    candidates = sorted({0.0} | {abs(p - q) for p in x for q in x})
    values = [acc23(x, human, groups, epsilon) for epsilon in candidates]
    found = analysis.pairwise_accuracy(x, human, groups)
    assert found.value == pytest.approx(max(values))
    assert acc23(x, human, groups, found.threshold) == pytest.approx(max(values))
    assert (found.pairs, found.groups) == (15 + 45 + 171, 3)
    for epsilon in (0.0, 0.7):
        fixed = analysis.pairwise_accuracy(x, human, groups, threshold=epsilon)
        assert fixed.value == pytest.approx(acc23(x, human, groups, epsilon))


def test_acc23_of_all_equal_scores_is_the_share_of_human_ties():
    found = analysis.pairwise_accuracy([2, 2, 2, 2], [1, 1, 1, 3])
    assert (found.value, found.threshold) == (0.5, 0)


def test_acc23_with_missing_and_infinite_scores():
    found = analysis.pairwise_accuracy([1, np.nan, np.inf, -np.inf], [2, 9, 3, 1])
    assert (found.value, found.pairs) == (1.0, 3)
    nothing = analysis.pairwise_accuracy([1, 2], [1, 2], ["a", "b"])
    assert np.isnan(nothing.value) and "no group" in nothing.reason


def test_soft_pairwise_accuracy_equals_its_definition():
    """Pairwise confidence error of Thompson et al. 2024, one pair and one draw at a time."""
    a, _, human = systems_by_inputs(3)
    signs = np.random.default_rng(4).integers(0, 2, (200, 12)) * 2 - 1
    errors = []
    for i in range(5):
        for j in range(i + 1, 5):
            p = []
            for values in (human, a):
                gaps = values[i] - values[j]
                p.append(np.mean([(row * gaps).sum() >= gaps.sum() - 1e-9 for row in signs]))
            errors.append(abs(p[0] - p[1]))
    found = analysis.soft_pairwise_accuracy(pd.DataFrame(a), pd.DataFrame(human), 200, seed=4)
    # Ours counts the observed draw as well, (count + 1) / (draws + 1).
    assert 1 - found == pytest.approx(np.mean(errors) * 200 / 201)
    assert found < 0.99


def test_soft_pairwise_accuracy_leaves_out_a_missing_cell_of_either():
    a, _, human = (pd.DataFrame(values) for values in systems_by_inputs(3))
    gap = a.copy()
    gap.iloc[0, 0] = np.nan
    both = human.copy()
    both.iloc[0, 0] = np.nan
    assert analysis.soft_pairwise_accuracy(gap, human) == (
        analysis.soft_pairwise_accuracy(gap, both)
    )


def test_ranking_separates_and_groups():
    rng = np.random.default_rng(0)
    human = pd.Series(rng.normal(size=200))
    scores = pd.DataFrame(
        {
            "poor": human + 6 * rng.normal(size=200),
            "good": human + 0.5 * rng.normal(size=200),
            "as good": human + 0.5 * rng.normal(size=200),
            "flat": 3.0,
        }
    )
    table = analysis.rank_metrics(scores, human, np.repeat(np.arange(40), 5), resamples=500)
    ranks = table.set_index("metric")["rank"]
    assert ranks["good"] == ranks["as good"] == 1 and ranks["poor"] == 2
    assert np.isnan(ranks["flat"]) and table.iloc[-1]["reason"] == "all scores equal"
    pairs = analysis.compare_metrics(scores, human, resamples=500)
    assert len(pairs) == 3
    assert pairs["p_adjusted"].to_numpy() == pytest.approx(
        multipletests(pairs["p"], method="fdr_bh")[1]
    )


def test_ranking_uses_the_items_every_metric_scores():
    human = pd.Series(np.arange(20.0))
    scores = pd.DataFrame({"a": human + human % 3, "b": human % 7})
    scores.loc[:4, "b"] = np.nan  # missing in one metric only
    table = analysis.rank_metrics(scores, human, resamples=100)
    assert table["n"].tolist() == [15, 15]
    expected = np.corrcoef(scores["a"][5:], human[5:])[0, 1]
    assert table.set_index("metric").loc["a", "value"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "scores, clusters, reason",
    [
        ([1.0, 2, 3, 4], ["one"] * 4, "fewer than 2 clusters"),
        ([1.0, 1, 1, 1], ["a", "a", "b", "b"], "all scores equal"),
        ([1.0, np.inf, 3, 4], ["a", "a", "b", "b"], "infinite value"),
        ([np.nan, np.nan, np.nan, 4], ["a", "a", "b", "b"], "fewer than 2 pairs"),
    ],
)
def test_edge_cases_give_nan_with_a_reason(scores, clusters, reason):
    human = [1.0, 2, 2, 5]
    interval = analysis.bootstrap_interval(scores, human, clusters, resamples=50)
    test = analysis.permutation_test(scores, [4.0, 2, 3, 1], human, clusters=clusters, resamples=50)
    assert np.isnan([interval.low, interval.high, test.p]).all()
    assert interval.reason == test.reason == reason


def test_an_item_missing_in_one_metric_leaves_both():
    a, b, human = tied_data(30)
    b[4] = np.nan
    test = analysis.permutation_test(a, b, human, resamples=99)
    kept = np.delete(np.arange(30), 4)
    assert test.n == 29
    assert test.a == pytest.approx(np.corrcoef(a[kept], human[kept])[0, 1])
    assert test.p == analysis.permutation_test(a[kept], b[kept], human[kept], resamples=99).p


@pytest.mark.parametrize("systems, undefined", [(2, (100, 500)), (4, (1, 50))])
def test_too_few_systems_get_no_interval_over_systems(systems, undefined):
    rng = np.random.default_rng(0)
    scores, human = (pd.DataFrame(rng.normal(size=(systems, 6))) for _ in range(2))
    for resample in ("systems", "both"):
        interval = analysis.system_interval(scores, human, over=resample, resamples=500)
        assert np.isnan([interval.low, interval.high]).all()
        assert interval.reason == "too few systems to resample"
        assert undefined[0] < interval.undefined < undefined[1]  # one system drawn every time
    over_contexts = analysis.system_interval(scores, human, over="contexts", resamples=500)
    assert np.isfinite([over_contexts.low, over_contexts.high]).all()


def test_draws_without_a_coefficient_take_the_interval_over_systems():
    """Six systems, five of them alike: a third of the draws miss the sixth, hence are constant."""
    scores = pd.DataFrame(np.repeat([[1.0], [1], [1], [1], [1], [5]], 4, axis=1))
    interval = analysis.system_interval(scores, scores, over="systems", resamples=500)
    assert interval.undefined > 100 and interval.reason == "too few systems to resample"


def test_equally_good_metrics_are_told_apart_at_the_stated_rate():
    """The data choose which metric is called better: a one-sided p would reject in a tenth."""
    rng, p = np.random.default_rng(1), []
    for world in range(300):
        human = rng.normal(size=40)
        scores = pd.DataFrame(human[:, None] + rng.normal(size=(40, 2)), columns=["a", "b"])
        table = analysis.compare_metrics(scores, pd.Series(human), resamples=99, seed=world)
        p.append(table["p"].item())
    assert np.mean(np.array(p) <= 0.05) < 0.075
    assert 0.4 < np.mean(p) < 0.6  # p-values of a true null are uniform


def test_bootstrap_difference_says_why_it_is_undefined():
    found = analysis.bootstrap_difference([1.0, 1, 1, 1], [4.0, 2, 3, 1], [1.0, 2, 2, 5])
    assert np.isnan([found.value, found.low, found.high]).all()
    assert found.reason == "all scores equal"


def test_cluster_without_a_name_is_an_error():
    with pytest.raises(ValueError, match="name a dialog for each"):
        analysis.bootstrap_interval([1, 2, 3], [1, 2, 3], ["a", None, "b"])
    with pytest.raises(ValueError, match="align them"):
        analysis.permutation_test([1, 2, 3], [1, 2, 3], [1, 2, 3], clusters=["a"])
    with pytest.raises(ValueError, match="two-sided, greater, less"):
        analysis.permutation_test([1, 2, 3], [1, 2, 3], [1, 2, 3], alternative="better")


def test_dialog_swaps_keep_the_level_that_turn_swaps_lose():
    """A small version of the recorded simulation (tests/bench/simulate_nesting.py)."""
    rates = analysis.false_positive_rates(120, icc=(0.5,), dialogs=30, turns=10, resamples=199)
    assert rates["swap dialogs"][0] <= 0.12
    assert rates["swap turns"][0] >= 0.18
    assert rates["williams"][0] >= 0.18
