"""Trait models: honest validation and exact scores."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import scale

from lib import ROOT, psychology
from lib.data import DataError, wassa2022

WEIGHTS = {"thank": {"0": 0.9, "1": 0.1}, "nonsense": {"1": 1.0}, "town": {"2": 1.0}}
TOPICS = psychology.Lexicon("toy_topics", WEIGHTS)


@pytest.fixture(scope="module")
def essays():
    return wassa2022(ROOT / "data" / "sample" / "essays" / "essays.tsv")


@pytest.fixture(scope="module")
def model(essays):
    return psychology.fit_trait_model(
        essays, "agreeableness", orders=(1,), topics=TOPICS
    )


def test_the_sample_trait_is_found_and_noise_is_not(essays, model):
    """A model whose folds shared authors would recognise them, and predict pure noise."""
    assert model.authors == 80 and model.interval[0] > 0
    noise = pd.Series(
        np.random.default_rng(1).normal(size=80), essays["author"].unique()
    )
    marked = pd.concat([essays] * 3).assign(
        noise=lambda rows: rows["author"].map(noise)
    )
    noise_model = psychology.fit_trait_model(marked, "noise", orders=(1,))
    assert abs(noise_model.out_of_sample_r) < 0.3


def test_the_lexicon_predicts_as_the_regression_on_words_and_topics_does(essays, model):
    """Its weights hold selection, scaling and topics; an own pipeline on plain counts has none."""
    texts = essays.groupby("author", sort=False)["text"]
    tokens = texts.agg(" \n ".join).map(psychology.tokenize)
    tokens = tokens.map(lambda words: [word.lower() for word in words])
    counter = CountVectorizer(analyzer=lambda words: words)
    shares = (
        counter.fit_transform(tokens).toarray() / tokens.map(len).to_numpy()[:, None]
    )
    column = counter.vocabulary_
    thank, nonsense, town = (
        shares[:, column[word]] if word in column else np.zeros(80)
        for word in TOPICS.weights
    )
    topics = np.column_stack([0.9 * thank, 0.1 * thank + nonsense, town])
    features = np.hstack([shares[:, (shares > 0).mean(axis=0) >= 0.05], topics])
    y = essays.groupby("author", sort=False)["agreeableness"].mean().to_numpy()
    selected = [x for x in features.T if x.std() and stats.pearsonr(x, y).pvalue < 0.05]
    z = scale(np.column_stack(selected))
    ridge = Ridge(10_000).fit(z, y)
    messages = essays.assign(
        system="s", agent=essays["author"], dialog="1", response=essays["text"]
    )
    scores = psychology.score_traits(messages.drop(columns="text"), [model.lexicon])
    np.testing.assert_allclose(scores["agreeableness"], ridge.predict(z), atol=1e-9)
    assert model.features == len(selected)


def test_no_word_that_ends_in_a_star_becomes_a_wildcard(essays):
    marked = essays.assign(text=essays["text"] + " darn *")
    model = psychology.fit_trait_model(marked, "agreeableness", orders=(1, 2))
    assert not [term for term in model.lexicon.weights if term.endswith("*")]


def test_too_few_authors_are_an_error(essays):
    with pytest.raises(DataError, match="10 authors are too few for 10 folds"):
        psychology.fit_trait_model(essays[essays["author"] < "S_010"], "agreeableness")


def test_weighted_lexicon_in_dlatk_export_form(tmp_path):
    path = tmp_path / "model.csv"
    terms = (
        "1,_intercept,age,20\n2,homework,age,-10\n3,my wife,age,30\n4,marr*,age,60\n"
    )
    path.write_text(f"id,term,category,weight\n{terms}")
    messages = ["my wife slept", "homework", "x y", "married you", "?", ""]
    table = pd.DataFrame({"response": messages, "system": "s", "agent": list("abcdef")})
    scores = psychology.score_traits(table, [psychology.read_lexicon(path)])["age"]
    # 20 + 30/2 bigrams; 20 - 10/1 word; no match; 20 + 60/2 words, and no bigram matches "marr*";
    # punctuation only has a token; nothing said.
    assert scores.tolist()[:5] == [35.0, 10.0, 20.0, 50.0, 20.0] and np.isnan(
        scores.iloc[5]
    )


@pytest.mark.public
def test_real_people_are_predicted_out_of_sample():
    """372 authors; a plain ridge on words was measured elsewhere at .187 and .157."""
    pytest.importorskip("dlatk")
    models = psychology.trait_models()
    assert {model.authors for model in models.values()} == {372}
    assert models["agreeableness"].out_of_sample_r > 0.15
    assert models["empathy"].out_of_sample_r > 0.15
