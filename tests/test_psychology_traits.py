"""Trait models: honest validation and exact scores."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import scale

from lib import psychology
from lib.data import DataError


@pytest.fixture(scope="module")
def essays():
    return psychology.sample_essays()


@pytest.fixture(scope="module")
def model(essays):
    return psychology.fit_trait_model(essays, "agreeableness", orders=(1, 2), folds=5)


TOPICS = psychology.Lexicon(
    "toy_topics",
    {"thank": {"0": 0.9, "1": 0.1}, "nonsense": {"1": 1.0}, "town": {"2": 1.0}},
)


def replies(*texts):
    frame = pd.DataFrame({"response": texts, "system": "s", "dialog": "1"})
    return frame.assign(agent=[f"a{i}" for i in range(len(texts))])


def test_the_sample_trait_is_found_and_a_shuffled_one_is_not(essays, model):
    assert model.out_of_sample_r > 0.4 and model.interval[0] > 0
    authors = essays["author"].drop_duplicates().to_list()
    draw = np.random.default_rng(0)
    values = essays.groupby("author")["agreeableness"].first()
    swapped = dict(zip(authors, draw.permutation(values), strict=True))
    shuffled = essays.assign(agreeableness=essays["author"].map(swapped))
    null = psychology.fit_trait_model(shuffled, "agreeableness", orders=(1,), folds=5)
    assert abs(null.out_of_sample_r) < 0.3


def test_folds_never_see_the_same_author_twice(essays):
    """A model that recognises authors would predict a trait that is pure noise."""
    draw = np.random.default_rng(1)
    names = essays["author"].unique()
    noise = dict(zip(names, draw.normal(size=len(names)), strict=True))
    marked = essays.assign(
        noise=essays["author"].map(noise),
        text=essays["text"] + (" sig" + essays["author"].str[2:]) * 3,
    )
    found = psychology.fit_trait_model(marked, "noise", orders=(1,), folds=5, min_share=0.0)
    assert abs(found.out_of_sample_r) < 0.3


def test_predictions_are_those_of_a_ridge_on_plain_relative_frequencies(essays):
    model = psychology.fit_trait_model(essays, "agreeableness", orders=(1,), folds=5)
    joined = essays.groupby("author", sort=False)["text"].agg("\t".join)
    counter = CountVectorizer(analyzer=lambda text: [t.lower() for t in psychology.tokenize(text)])
    counts = counter.fit_transform(joined).toarray()
    frequent = (counts > 0).mean(axis=0) >= 0.05
    assert model.ngrams[1] == list(counter.get_feature_names_out()[frequent])
    z = scale((counts / counts.sum(axis=1, keepdims=True))[:, frequent])
    target = essays.groupby("author", sort=False)["agreeableness"].mean()
    ridge = Ridge(alpha=model.ridge[-1].alpha_).fit(z, target)
    np.testing.assert_allclose(model.coefficients, ridge.coef_, atol=1e-9)
    authors = essays.assign(system="s", agent=essays["author"], dialog="1", response=essays["text"])
    scores = psychology.score_traits(authors.drop(columns="text"), {"t": model})["t"]
    np.testing.assert_allclose(scores, ridge.predict(z), atol=1e-9)


def test_features_are_used_by_enough_authors(essays, model):
    used = essays.assign(said=essays["text"].str.contains("bridge")).groupby("author")["said"]
    assert used.any().mean() >= 0.05 and "bridge" in model.ngrams[1]
    with_all = psychology.fit_trait_model(
        essays, "agreeableness", orders=(1,), folds=5, min_share=0.9
    )
    assert len(with_all.ngrams[1]) < len(model.ngrams[1])


def test_topic_loadings_can_be_the_features(essays):
    fitted = psychology.fit_trait_model(essays, "agreeableness", orders=(), topics=TOPICS, folds=5)
    assert len(fitted.coefficients) == 3
    scores = psychology.score_traits(replies("thank you", "nonsense", ""), {"t": fitted})["t"]
    assert scores.iloc[0] > scores.iloc[1] and np.isnan(scores.iloc[2])


def test_too_few_authors_are_an_error(essays):
    with pytest.raises(DataError, match="10 authors are too few for 10 folds"):
        psychology.fit_trait_model(essays[essays["author"] < "S_010"], "agreeableness")


def test_weighted_lexicon_in_dlatk_export_form(tmp_path):
    path = tmp_path / "model.csv"
    path.write_text(
        "id,term,category,weight\n1,_intercept,age,20\n2,homework,age,-10\n3,my wife,age,30\n"
    )
    lexicon = psychology.read_csv(path)
    scores = psychology.score_traits(
        replies("my wife slept", "homework", "x y", "?", ""), {"a": lexicon}
    )
    # 20 + 30/2 bigrams; 20 - 10/1 word; no match; punctuation only has a token; nothing said.
    assert scores["a"].tolist()[:4] == [35.0, 10.0, 20.0, 20.0] and np.isnan(scores["a"].iloc[4])
    two = psychology.Lexicon("two", {"a": {"x": 1.0, "y": 1.0}})
    with pytest.raises(DataError, match="choose one with"):
        psychology.score_traits(replies("a"), {"t": two})


def test_a_one_word_wildcard_does_not_match_bigrams():
    weights = {"lov*": {"warmth": 1.0}, "thank you": {"warmth": 1.0}}
    lexicon = psychology.Lexicon("toy", weights)
    scores = psychology.score_traits(replies("loving you", "thank you"), {"w": lexicon})["w"]
    # One word of two; and one bigram of one.
    assert scores.tolist() == [0.5, 1.0]


def test_wassa_format_is_read_and_its_faults_named(tmp_path, essays):
    assert essays.columns.tolist() == ["author", "text", "agreeableness", "empathic_concern"]
    assert essays.groupby("author")["agreeableness"].nunique().eq(1).all()
    path = tmp_path / "essays.tsv"
    path.write_text(
        "response_id\tessay\tpersonality_agreeableness\tiri_empathatic_concern\tage\n"
        'R_1\t"nan ""quoted"" text"\t6.5\tunknown\t30\n'
    )
    row = psychology.read_wassa(path).iloc[0]
    assert row["text"] == 'nan "quoted" text' and row["agreeableness"] == 6.5
    assert np.isnan(row["empathic_concern"])
    path.write_text("response_id\tessay\nR_1\ttext\n")
    with pytest.raises(DataError, match="essay-level training file"):
        psychology.read_wassa(path)
