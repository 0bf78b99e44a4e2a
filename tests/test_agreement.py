"""Agreement against the krippendorff package, statsmodels and the USR annotators."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from statsmodels.stats import inter_rater

from lib.analysis import agreement, resampling
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


@pytest.mark.parametrize("measurement", ["interval", "ordinal", "nominal"])
def test_bootstrap_alphas_equal_the_package_on_each_draw(gaps, measurement):
    twice = gaps[(~np.isnan(gaps)).sum(axis=1) >= 2]
    codes = np.arange(len(twice)) // 3
    counts = resampling._counts(np.random.default_rng(1), 25, codes.max() + 1)
    own = agreement._interval_alphas if measurement == "interval" else agreement._category_alphas
    found = own(twice, codes, counts, measurement)
    for value, row in zip(found, counts, strict=True):
        repeated = np.repeat(twice, row[codes], axis=0)
        expected = krippendorff.alpha(repeated.T, level_of_measurement=measurement)
        assert value == pytest.approx(expected, abs=1e-12)


def test_alpha_interval_holds_the_package_value(gaps):
    found = agreement.krippendorff_alpha(long_table(gaps), "overall", resamples=300)
    assert found.value == pytest.approx(krippendorff.alpha(gaps.T, level_of_measurement="interval"))
    assert found.low < found.value < found.high
    dialogs = pd.Series(np.arange(30) // 10)
    wide = agreement.krippendorff_alpha(
        long_table(gaps), "overall", clusters=dialogs, resamples=300
    )
    assert wide.value == found.value and (wide.low, wide.high) != (found.low, found.high)


def test_fleiss_kappa_equals_statsmodels_on_complete_items(gaps):
    complete = gaps[~np.isnan(gaps).any(axis=1)]
    table, _ = inter_rater.aggregate_raters(complete.astype(int))
    found = agreement.fleiss_kappa(long_table(complete), "overall")
    assert found.value == pytest.approx(inter_rater.fleiss_kappa(table))
    assert found.items == len(complete)


def test_human_ceiling_with_two_annotators_is_their_correlation():
    rng = np.random.default_rng(0)
    pair = rng.normal(size=(300, 1)) + 0.6 * rng.normal(size=(300, 2))
    expected = np.corrcoef(pair.T)[0, 1]  # which of the two is set aside hardly matters
    assert agreement.human_ceiling(long_table(pair), "overall") == pytest.approx(expected, abs=0.01)
    units = pd.Series(np.arange(300) // 10)
    means = pair.reshape(30, 10, 2).mean(axis=1)
    ceiling = agreement.human_ceiling(long_table(pair), "overall", units=units)
    assert ceiling == pytest.approx(np.corrcoef(means.T)[0, 1], abs=0.03)
    assert ceiling > agreement.human_ceiling(long_table(pair), "overall") + 0.05


@pytest.mark.parametrize(
    "matrix, reason",
    [([[1.0], [2.0]], "no item with two ratings"), ([[3.0, 3], [3, 3]], "all ratings equal")],
)
def test_undefined_agreement_has_a_reason(matrix, reason):
    ratings = long_table(matrix)
    for found in (
        agreement.krippendorff_alpha(ratings, "overall"),
        agreement.fleiss_kappa(ratings, "overall"),
    ):
        assert np.isnan(found.value) and found.reason == reason
    row = agreement.summary(ratings).iloc[0]
    assert row["reason"] == reason and np.isnan(row["ceiling_pearson"])


def test_errors_name_the_way_out(gaps):
    ratings = long_table(gaps)
    with pytest.raises(ValueError, match="the table has: overall"):
        agreement.rating_matrix(ratings, "fun")
    with pytest.raises(ValueError, match="interval, ordinal or nominal"):
        agreement.krippendorff_alpha(ratings, "overall", "ratio")
    fine = long_table(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(ValueError, match="use measurement='interval'"):
        agreement.krippendorff_alpha(fine, "overall", "ordinal")


# Mean pairwise correlation of the three annotators (Pearson, Spearman), recomputed for this
# project from the released USR files: Overall agrees with Mehri and Eskenazi 2020, Table 2.
USR_OVERALL = {"usr_topical": (0.710, 0.718), "usr_persona": (0.660, 0.658)}


@pytest.mark.public
@pytest.mark.parametrize("name", USR_OVERALL)
def test_usr_annotators_agree_as_published(name):
    ratings = corpora.load(name).ratings
    found = [
        agreement.mean_pairwise_correlation(ratings, "overall", method)
        for method in ("pearson", "spearman")
    ]
    assert found == pytest.approx(USR_OVERALL[name], abs=5e-4)
