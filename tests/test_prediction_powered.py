"""Prediction-powered means and differences: against ppi-python, by formula and by simulation."""

import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.analysis.prediction_powered import (
    POPULATIONS,
    Estimate,
    powered_difference,
    powered_mean,
    powered_variance,
    simulate_equal_systems,
)

# seed, rated, others, noise, slope -> estimate and 95 % interval of ppi-python 0.2.3.
PPI_PYTHON = [
    (0, 50, 350, 0.5, 1.0, 3.0776230536642326, 2.8933217708538304, 3.261924336474635),
    (1, 30, 170, 1.0, 0.6, 2.7823641068854044, 2.4601878502894268, 3.104540363481382),
    (2, 100, 900, 2.0, 0.9, 2.7378024977596693, 2.3594391314176515, 3.116165864101687),
    (3, 40, 60, 0.3, 0.5, 3.0184029723251573, 2.870220314964189, 3.1665856296861254),
]


def draw(seed, rated, others, noise, slope):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rated + others)
    ratings = 3 + slope * scores[:rated] + rng.normal(scale=noise, size=rated)
    return ratings, scores[:rated], scores[rated:]


@pytest.mark.parametrize(
    "seed, rated, others, noise, slope, value, low, high", PPI_PYTHON
)
def test_agrees_with_ppi_python_on_independent_rows(
    seed, rated, others, noise, slope, value, low, high
):
    mean = powered_mean(*draw(seed, rated, others, noise, slope))
    assert mean.powered.value == pytest.approx(value, abs=1e-9)
    # It takes the normal quantile and divides by n; ours is wider by a known factor.
    half = 1.959964 * mean.powered.error * np.sqrt((rated - 2) / rated)
    assert [value - half, value + half] == pytest.approx([low, high], abs=4e-3)
    assert mean.powered.interval()[1] > high


def test_the_classical_estimate_is_the_t_interval_of_the_ratings():
    from scipy import stats

    ratings, rated_scores, other_scores = draw(0, 50, 350, 0.5, 1.0)
    mean = powered_mean(ratings, rated_scores, other_scores)
    expected = stats.ttest_1samp(ratings, 0).confidence_interval()
    assert mean.classical.interval() == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("slope", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("population", ["dialogs like these", "these dialogs"])
def test_nineteen_of_twenty_intervals_cover_the_mean(slope, population):
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(1000):
        scores = rng.normal(size=200)
        all_ratings = 3 + slope * scores + rng.normal(size=200)
        truth = 3.0
        if population == "these dialogs":
            truth = all_ratings.mean()
        mean = powered_mean(all_ratings[:30], scores[:30], scores[30:], population)
        low, high = mean.powered.interval()
        covered.append(low <= truth <= high)
    assert 0.93 <= np.mean(covered) <= 0.972


def test_the_saving_is_that_of_the_correlation():
    """With very many scores the error shrinks by 1 - r squared, less two degrees of freedom."""
    mean = powered_mean(*draw(3, 400, 100_000, 1.0, 1.0))
    assert mean.correlation == pytest.approx(np.sqrt(0.5), abs=0.05)
    assert mean.saving == pytest.approx(mean.correlation**2, abs=0.03)


def test_a_scale_of_its_own_and_a_negative_score_change_nothing():
    ratings, rated_scores, other_scores = draw(0, 50, 350, 0.5, 1.0)
    mean = powered_mean(ratings, rated_scores, other_scores)
    scaled = powered_mean(ratings, -100 * rated_scores + 7, -100 * other_scores + 7)
    assert scaled.powered == pytest.approx(mean.powered)
    assert scaled.correlation == pytest.approx(-mean.correlation)


REFUSED = [
    (slice(0, 19), slice(0, 19), "19 rated dialogs, fewer than 20"),
    (slice(0, 50), slice(50, 50), "every dialog is rated"),
]


@pytest.mark.parametrize("rated, others, reason", REFUSED)
def test_without_enough_dialogs_the_classical_interval_stands(rated, others, reason):
    ratings, scores, other_scores = draw(0, 50, 350, 0.5, 1.0)
    if others.start == others.stop:
        other_scores = other_scores[:0]
    mean = powered_mean(ratings[rated], scores[rated], other_scores)
    assert mean.reason == reason
    assert mean.powered == mean.classical
    assert mean.saving == 0


def test_below_the_break_even_the_classical_interval_stands():
    rng = np.random.default_rng(2)
    ratings = rng.normal(size=50)
    scores = rng.normal(size=50)
    scores -= np.cov(ratings, scores)[0, 1] / ratings.var(ddof=1) * ratings  # r = 0
    mean = powered_mean(ratings, scores, rng.normal(size=100))
    assert mean.break_even == pytest.approx(48**-0.5)
    assert mean.reason == "r is 0.00, which does not exceed the break-even 0.14" or (
        mean.reason == "r is -0.00, which does not exceed the break-even 0.14"
    )
    assert mean.powered == mean.classical


def test_equal_ratings_or_scores_leave_the_correlation_undefined():
    mean = powered_mean(np.full(30, 4.0), np.arange(30.0), np.arange(9.0))
    assert np.isnan(mean.correlation)
    assert mean.reason == "all ratings or all scores are equal"
    assert mean.powered == (4.0, 0.0, 29)


def test_two_systems_with_dialogs_of_their_own_by_welch():
    from scipy import stats

    a, b = draw(0, 25, 0, 0.5, 1.0), draw(1, 40, 0, 1.5, 1.0)
    powered, classical = powered_difference(powered_mean(*a), powered_mean(*b))
    expected = stats.ttest_ind(b[0], a[0], equal_var=False).confidence_interval()
    assert classical.interval() == pytest.approx((expected.low, expected.high))
    assert powered == classical


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(ValueError, match="rated_scores has missing values"):
        powered_mean(np.arange(3.0), np.array([1, np.nan, 2]), np.arange(3.0))
    with pytest.raises(ValueError, match="3 ratings, but 2 scores"):
        powered_mean(np.arange(3.0), np.arange(2.0), np.arange(3.0))
    with pytest.raises(ValueError, match="at least two"):
        powered_mean(np.arange(1.0), np.arange(1.0), np.arange(3.0))
    with pytest.raises(ValueError, match="population is 'all'"):
        powered_mean(np.arange(3.0), np.arange(3.0), np.arange(3.0), population="all")


def test_an_interval_is_students():
    low, high = Estimate(value=1.0, error=2.0, df=5).interval(0.9)
    assert (low, high) == pytest.approx((1 - 2.015048 * 2, 1 + 2.015048 * 2), abs=1e-5)


def test_equal_versions_are_called_different_in_one_study_of_twenty():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=60)
    ratings = np.round(3 + scores + rng.normal(size=60)).clip(1, 5)
    alarms = simulate_equal_systems(ratings, scores, n_rated=40, runs=400)
    assert 8 <= alarms["powered"] <= 28
    assert 8 <= alarms["classical"] <= 28


@pytest.mark.parametrize("population", POPULATIONS)
def test_an_extreme_score_that_widens_the_error_is_not_used(population):
    """One of 30 rated dialogs is very long, none of the others: the tuned weight is too large."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=30)
    scores[0] = 40.0
    ratings = 3 + rng.normal(size=30)
    ratings[0] = 6.0
    others = rng.normal(size=1000)
    mean = powered_mean(ratings, scores, others, population)
    assert mean.correlation > mean.break_even
    # the formula of the corrected mean, written out
    left = 1000 / 1030
    every_score = np.concatenate([scores, others])
    slope = np.cov(ratings, scores, ddof=0)[0, 1] / every_score.var(ddof=1)
    weight = slope if population == "these dialogs" else slope * left
    residuals = ratings - weight * scores
    squared_error = residuals.var(ddof=2) / 30
    if population == "these dialogs":
        squared_error *= left
    else:
        squared_error += weight**2 * every_score.var(ddof=1) / 1000
    assert squared_error > mean.classical.error**2
    assert mean.powered == mean.classical
    assert mean.saving == 0
    assert "would widen the error" in mean.reason


def test_the_planned_variance_is_that_of_the_stated_errors():
    """With r of .6, 50 rated and 300 scored dialogs, and ratings of variance 1."""
    variances = []
    for seed in range(300):
        ratings, scores, others = draw(seed, 50, 300, 0.8, 0.6)
        variances.append(powered_mean(ratings, scores, others).powered.error ** 2)
    planned = powered_variance(0.6, n_rated=50, n_scored=300) / 50
    assert np.mean(variances) == pytest.approx(planned, rel=0.03)


def test_the_committed_simulation_covers_and_saves_what_the_prose_tells():
    """Coverage .939, .946, .950 at 20, 50 and 100 dialogs; 28 false alarms of 400 at most."""
    table = pd.read_csv(ROOT / "data/results/coverage_powered.csv")
    one = table[table["mean_of"] == "one system"]
    coverage = one.groupby("rated_dialogs")[["coverage", "classical_coverage"]].mean()
    assert coverage.stack().between(0.93, 0.965).all()
    assert coverage["coverage"].tolist() == pytest.approx(
        [0.939, 0.946, 0.95], abs=0.01
    )
    alarms = table[["alarms", "classical_alarms"]]
    assert alarms.stack().between(12, 28).all(), "of 400, in every row"
    rows = table.set_index(["corpus", "score", "mean_of", "rated_dialogs"])["saving"]
    assert rows["gpt4_fed", "gpt4", "all systems", 50] == pytest.approx(0.51, abs=0.03)
    assert rows["gpt4_fed", "gpt4", "one system", 20] == pytest.approx(0.18, abs=0.03)
    assert rows[
        "dstc10_persona_zhao", "context_similarity", "one system", 20
    ] == pytest.approx(0.23, abs=0.03)
    assert rows["gpt4_reliable", "gpt4", "one system", 50] == pytest.approx(
        0.11, abs=0.03
    )
    assert rows["usr_topical", "unieval", "one system", 50] == pytest.approx(
        0.125, abs=0.03
    )


@pytest.mark.parametrize(
    "correlation, n_rated, n_scored, problem",
    [(1.2, 10, 10, "outside -1 to 1"), (0.5, 0, 0, "no dialog")],
)
def test_the_variance_of_no_study_is_an_error(correlation, n_rated, n_scored, problem):
    with pytest.raises(ValueError, match=problem):
        powered_variance(correlation, n_rated, n_scored)
