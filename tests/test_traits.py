"""Trait models: honest validation, exact scores, and files without pickle."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from lib.data.dialogues import DataError
from lib.psychology import lexicons, traits
from lib.psychology.traits.features import design_matrix


@pytest.fixture(scope="module")
def essays():
    return traits.sample_essays()


@pytest.fixture(scope="module")
def model(essays):
    return traits.fit_trait_model(essays, "agreeableness", orders=(1, 2), folds=5)


TOPICS = lexicons.Lexicon(
    "toy_topics",
    {"thank": {"0": 0.9, "1": 0.1}, "nonsense": {"1": 1.0}, "town": {"2": 1.0}},
)


def replies(*texts):
    frame = pd.DataFrame({"response": texts, "system": "s", "dialog": "1"})
    return frame.assign(agent=[f"a{i}" for i in range(len(texts))])


def test_the_sample_trait_is_found_and_a_shuffled_one_is_not(essays, model):
    assert model.out_of_sample_r > 0.4 and model.r_low > 0
    authors = essays["author"].drop_duplicates().to_list()
    draw = np.random.default_rng(0)
    values = essays.groupby("author")["agreeableness"].first()
    swapped = dict(zip(authors, draw.permutation(values), strict=True))
    shuffled = essays.assign(agreeableness=essays["author"].map(swapped))
    null = traits.fit_trait_model(shuffled, "agreeableness", orders=(1,), folds=5)
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
    found = traits.fit_trait_model(marked, "noise", orders=(1,), folds=5, min_share=0.0)
    assert abs(found.out_of_sample_r) < 0.3


def test_coefficients_are_those_of_scikit_learns_ridge(essays, model):
    counts = {n: lexicons.count_tokens(essays["text"], n=n).pool(essays["author"]) for n in (1, 2)}
    design = design_matrix(counts, model.ngrams, None)
    z = (design - design.mean(axis=0)) / model.scale
    target = essays.groupby("author", sort=False)["agreeableness"].mean()
    ridge = Ridge(alpha=model.penalty).fit(z, target)
    np.testing.assert_allclose(model.coefficients, ridge.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(design), ridge.predict(z), atol=1e-6)


def test_features_are_used_by_enough_authors(essays, model):
    used = essays.assign(said=essays["text"].str.contains("bridge")).groupby("author")["said"]
    assert used.any().mean() >= 0.05 and "bridge" in model.ngrams[1]
    with_all = traits.fit_trait_model(essays, "agreeableness", orders=(1,), folds=5, min_share=0.9)
    assert len(with_all.ngrams[1]) < len(model.ngrams[1])


def test_a_saved_model_scores_the_same_and_is_no_pickle(tmp_path, model):
    folder = model.save(tmp_path / "trait")
    assert sorted(p.name for p in folder.iterdir()) == ["model.json", "model.safetensors"]
    again = traits.load_trait_model(folder)
    table = replies("thank you , my neighbours are wonderful", "what nonsense", "")
    ours = traits.score_traits(table, {"t": model})["t"]
    pd.testing.assert_series_equal(ours, traits.score_traits(table, {"t": again})["t"])
    assert ours.iloc[0] > ours.iloc[1] and np.isnan(ours.iloc[2])
    assert (
        json.loads((folder / "model.json").read_text())["out_of_sample_r"] == again.out_of_sample_r
    )


def test_broken_model_folders_say_what_is_wrong(tmp_path, model):
    with pytest.raises(DataError, match="no model.json and no model.safetensors"):
        traits.load_trait_model(tmp_path)
    folder = model.save(tmp_path / "trait")
    facts = json.loads((folder / "model.json").read_text())
    facts["ngrams"]["1"].append("extra")
    (folder / "model.json").write_text(json.dumps(facts))
    with pytest.raises(DataError, match="coefficients for"):
        traits.load_trait_model(folder)


def test_topic_models_need_their_topics(essays, tmp_path):
    fitted = traits.fit_trait_model(essays, "agreeableness", orders=(), topics=TOPICS, folds=5)
    assert len(fitted.coefficients) == 3 and fitted.topics == "toy_topics"
    table = replies("thank you", "nonsense")
    with pytest.raises(DataError, match="trained with the topics 'toy_topics'"):
        traits.score_traits(table, {"t": fitted})
    again = traits.load_trait_model(fitted.save(tmp_path / "topics"))
    scores = traits.score_traits(table, {"t": again}, topics=TOPICS)["t"]
    assert scores.iloc[0] > scores.iloc[1]


def test_scores_pool_the_words_of_an_agent(model):
    apart = replies("thank you", "what nonsense").assign(agent="one")
    joined = replies("thank you").assign(response="x")
    pooled = traits.score_traits(apart, {"t": model}, level="agent")
    assert len(pooled) == 1 and pooled.index.names == ["system", "agent"]
    single = traits.score_traits(joined, {"t": model}, level="agent")
    assert pooled["t"].iloc[0] != single["t"].iloc[0]


def test_weighted_lexicon_in_dlatk_export_form(tmp_path):
    path = tmp_path / "model.csv"
    path.write_text(
        "id,term,category,weight\n1,_intercept,age,20\n2,homework,age,-10\n3,my wife,age,30\n"
    )
    lexicon = lexicons.read_csv(path)
    scores = traits.score_traits(
        replies("my wife slept", "homework", "x y", "?", ""), {"a": lexicon}
    )
    # 20 + 30/2 bigrams; 20 - 10/1 word; no match; punctuation only has a token; nothing said.
    assert scores["a"].tolist()[:4] == [35.0, 10.0, 20.0, 20.0] and np.isnan(scores["a"].iloc[4])
    two = lexicons.Lexicon("two", {"a": {"x": 1.0, "y": 1.0}})
    with pytest.raises(DataError, match="choose one with"):
        traits.score_traits(replies("a"), {"t": two})


def test_a_one_word_wildcard_does_not_match_bigrams():
    weights = {"lov*": {"warmth": 1.0}, "thank you": {"warmth": 1.0}}
    lexicon = lexicons.Lexicon("toy", weights)
    scores = traits.score_traits(replies("loving you", "thank you"), {"w": lexicon})["w"]
    # One word of two; and one bigram of one.
    assert scores.tolist() == [0.5, 1.0]


def test_training_faults_are_explained(essays):
    with pytest.raises(DataError, match="no column .'openness'"):
        traits.fit_trait_model(essays, "openness")
    with pytest.raises(DataError, match="a model needs features"):
        traits.fit_trait_model(essays, "agreeableness", orders=())
    with pytest.raises(DataError, match="10 authors are too few for 10 folds"):
        traits.fit_trait_model(essays[essays["author"] < "S_010"], "agreeableness")


def test_wassa_format_is_read_and_its_faults_named(tmp_path, essays):
    assert essays.columns.tolist() == ["author", "text", "agreeableness", "empathic_concern"]
    assert essays.groupby("author")["agreeableness"].nunique().eq(1).all()
    path = tmp_path / "essays.tsv"
    path.write_text(
        "response_id\tessay\tpersonality_agreeableness\tiri_empathatic_concern\tage\n"
        'R_1\t"nan ""quoted"" text"\t6.5\tunknown\t30\n'
    )
    row = traits.read_wassa(path).iloc[0]
    assert row["text"] == 'nan "quoted" text' and row["agreeableness"] == 6.5
    assert np.isnan(row["empathic_concern"])
    path.write_text("response_id\tessay\nR_1\ttext\n")
    with pytest.raises(DataError, match="essay-level training file"):
        traits.read_wassa(path)
