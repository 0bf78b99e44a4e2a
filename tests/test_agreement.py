"""Agreement against the krippendorff package, statsmodels and the USR annotators."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from statsmodels.stats import inter_rater

from lib.analysis import agreement
from lib.data import corpora


def long_table(matrix) -> pd.DataFrame:
    rows = [
        {"item": i, "annotator": f"a{k}", "dimension": "overall", "rating": value}
        for i, row in enumerate(matrix)
        for k, value in enumerate(row)
        if not np.isnan(value)
    ]
    return pd.DataFrame(rows)


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
    codes = np.arange(len(twice)) // 3
    counts = np.random.default_rng(1).multinomial(10, np.full(10, 0.1), 25)[:, : codes.max() + 1]
    found = agreement.resampled_alphas(twice, codes, counts)
    for value, row in zip(found, counts, strict=True):
        repeated = np.repeat(twice, row[codes], axis=0)
        expected = krippendorff.alpha(repeated.T, level_of_measurement="interval")
        assert value == pytest.approx(expected, abs=1e-12)


def test_alpha_interval_holds_the_package_value_and_kappa_is_that_of_statsmodels(gaps):
    found = agreement.krippendorff_alpha(long_table(gaps), "overall", resamples=300)
    assert found.value == pytest.approx(krippendorff.alpha(gaps.T, level_of_measurement="interval"))
    assert found.low < found.value < found.high
    dialogs = pd.Series(np.arange(30) // 10)
    wide = agreement.krippendorff_alpha(long_table(gaps), "overall", dialogs, resamples=300)
    assert wide.value == found.value and (wide.low, wide.high) != (found.low, found.high)
    complete = gaps[~np.isnan(gaps).any(axis=1)]
    table, _ = inter_rater.aggregate_raters(complete.astype(int))
    kappa = agreement.fleiss_kappa(long_table(complete), "overall")
    assert kappa == pytest.approx(inter_rater.fleiss_kappa(table))


def test_human_ceiling_with_two_annotators_is_their_correlation():
    rng = np.random.default_rng(0)
    pair = rng.normal(size=(300, 1)) + 0.6 * rng.normal(size=(300, 2))
    expected = np.corrcoef(pair.T)[0, 1]  # which of the two is held out hardly matters
    assert agreement.human_ceiling(long_table(pair), "overall") == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    "matrix, reason",
    [([[1.0], [2.0]], "no item with two ratings"), ([[3.0, 3], [3, 3]], "all ratings equal")],
)
def test_undefined_agreement_has_a_reason(matrix, reason):
    row = agreement.agreement_summary(long_table(matrix)).iloc[0]
    assert row["reason"] == reason
    assert row[["alpha", "low", "high", "kappa", "ceiling_pearson"]].isna().all()
    with pytest.raises(ValueError, match="the table has: overall"):
        agreement.rating_matrix(long_table(matrix), "fun")


# Mean pairwise correlation of the three annotators (Pearson, Spearman), recomputed for this
# project from the released USR files: Overall agrees with Mehri and Eskenazi 2020, Table 2.
USR_OVERALL = {"usr_topical": (0.710, 0.718), "usr_persona": (0.660, 0.658)}


@pytest.mark.public
@pytest.mark.parametrize("name", USR_OVERALL)
def test_usr_annotators_agree_as_published(name):
    of = agreement.mean_pairwise_correlation
    ratings = corpora.load(name).ratings
    found = [of(ratings, "overall", method) for method in ("pearson", "spearman")]
    assert found == pytest.approx(USR_OVERALL[name], abs=5e-4)
