"""Agreement against the krippendorff package and statsmodels."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats import inter_rater

from lib.analysis import agreement


def long_table(matrix) -> pd.DataFrame:
    table = pd.DataFrame(np.asarray(matrix, float)).stack().rename("rating")
    table = table.rename_axis(["item", "annotator"]).reset_index()
    return table.dropna().assign(
        annotator=table["annotator"].map("a{}".format),
        dimension="overall",
    )


@pytest.fixture
def gaps():
    """30 items, 4 annotators on a 5-point scale, a fifth of the ratings missing."""
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, (30, 1))
    values = np.clip(truth + rng.integers(-1, 2, (30, 4)), 1, 5).astype(float)
    values[rng.random((30, 4)) < 0.2] = np.nan
    return values


def test_bootstrap_alphas_equal_the_package_on_each_resample(gaps):
    twice = gaps[(~np.isnan(gaps)).sum(axis=1) >= 2]
    dialogs = np.arange(len(twice)) // 3
    counts = np.random.default_rng(1).multinomial(10, np.full(10, 0.1), 25)
    counts = counts[:, : dialogs.max() + 1]
    alphas = agreement.resampled_alphas(twice, dialogs, counts)
    for value, row in zip(alphas, counts, strict=True):
        repeated = np.repeat(twice, row[dialogs], axis=0)
        expected = krippendorff.alpha(repeated.T, level_of_measurement="interval")
        assert value == pytest.approx(expected, abs=1e-12)


def test_alpha_interval_holds_the_package_value_and_kappa_is_that_of_statsmodels(gaps):
    result = agreement.krippendorff_alpha(long_table(gaps), "overall", resamples=300)
    expected = krippendorff.alpha(gaps.T, level_of_measurement="interval")
    assert result.value == pytest.approx(expected)
    assert result.low < result.value < result.high
    dialogs = pd.Series(np.arange(30) // 5)
    wide = agreement.krippendorff_alpha(
        long_table(gaps), "overall", dialogs, resamples=300
    )
    alphas = []
    for resample in np.random.default_rng(0).integers(0, 6, (300, 6)):
        items = np.concatenate(
            [np.flatnonzero(dialogs == dialog) for dialog in resample]
        )
        alphas.append(
            krippendorff.alpha(gaps[items].T, level_of_measurement="interval")
        )
    tail = stats.norm.cdf(np.sqrt(6 / 5) * stats.t.ppf(0.025, 5))
    assert (wide.low, wide.high) == pytest.approx(np.quantile(alphas, [tail, 1 - tail]))
    complete = gaps[~np.isnan(gaps).any(axis=1)]
    table, _ = inter_rater.aggregate_raters(complete.astype(int))
    kappa = agreement.fleiss_kappa(long_table(complete), "overall")
    assert kappa == pytest.approx(inter_rater.fleiss_kappa(table))


def test_one_more_annotator_of_two_is_their_correlation():
    rng = np.random.default_rng(0)
    pair = long_table(rng.normal(size=(300, 1)) + 0.6 * rng.normal(size=(300, 2)))
    result = agreement.leave_one_rater_out(pair, "overall")
    assert result == pytest.approx(
        agreement.mean_pairwise_correlation(pair, "overall"), abs=0.01
    )


def test_a_metric_that_knows_the_truth_reaches_the_limit_and_passes_one_more_annotator():
    """Defect N4: the tables called what one more annotator reaches a ceiling."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=2000)
    ratings = truth[:, None] + 1.5 * rng.normal(size=(2000, 4))
    alpha = agreement.krippendorff_alpha(long_table(ratings), "overall", resamples=300)
    limit, low, high = agreement.noise_ceiling(alpha)
    reached = np.corrcoef(truth, ratings.mean(axis=1))[0, 1]
    assert limit == pytest.approx(reached, abs=0.02) and low < reached < high
    assert agreement.leave_one_rater_out(long_table(ratings), "overall") < reached - 0.2
    half = ratings.copy()
    half[::2, 1:] = (
        np.nan
    )  # every other mean rests on one rating: raters is the harmonic mean
    some = agreement.krippendorff_alpha(long_table(half), "overall", resamples=100)
    reached = np.corrcoef(truth, np.nanmean(half, axis=1))[0, 1]
    assert some.raters == pytest.approx(1.6)
    assert agreement.noise_ceiling(some)[0] == pytest.approx(reached, abs=0.03)
    against = agreement.noise_ceiling(some._replace(value=-0.1, low=-0.3, high=np.nan))
    assert against[:2] == (0, 0) and np.isnan(against[2])


UNDEFINED = {
    "no item with two ratings": [[1.0], [2.0]],
    "all ratings equal": [[3.0, 3], [3, 3]],
}


@pytest.mark.parametrize("reason, matrix", UNDEFINED.items())
def test_undefined_agreement_has_a_reason(matrix, reason):
    row = agreement.agreement_summary(long_table(matrix)).iloc[0]
    assert row["reason"] == reason
    assert (
        row[["alpha", "low", "high", "noise_ceiling", "kappa", "one_more_pearson"]]
        .isna()
        .all()
    )
    with pytest.raises(ValueError, match="the table has: overall"):
        agreement.rating_matrix(long_table(matrix), "fun")


def test_the_noise_ceiling_of_a_rated_dimension_is_that_of_its_alpha(gaps):
    ratings = long_table(gaps)
    alpha = agreement.krippendorff_alpha(ratings, "overall")
    expected = agreement.noise_ceiling(alpha)
    assert agreement.rating_noise_ceiling(ratings, "overall") == pytest.approx(expected)
    assert 0 < expected[1] < expected[0] < expected[2] <= 1
