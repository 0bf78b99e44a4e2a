"""The emotion classifier, embedded and as a network, and its scores beside the comments."""

import duckdb
import numpy as np
import pandas as pd
import pytest
import tiny_models
from sklearn.metrics import roc_auc_score
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from lib import metrics
from lib.data import goemotions
from lib.endex import comment_scores, emotions, red, reddit
from scripts import train_goemotions as train

TEXTS = [
    "Thank you, I love it!",
    "this is so sad",
    "the bus leaves at nine",
    "",
    None,
    "  ",
]


def test_training_writes_a_model_that_learned(tmp_path):
    texts = [
        "thank you so much",
        "thanks a lot",
        "thank you",
        "you idiot",
        "what an idiot",
    ] * 4
    labels = [["gratitude"]] * 3 + [["anger"], ["anger", "annoyance"]]
    labels = (labels * 4)[:19] + [list(emotions.LABELS)]  # every label occurs once
    train.fit(texts, labels, tmp_path / "tiny.safetensors")
    p = emotions.probabilities(
        ["thank you", "an idiot", ""], tmp_path / "tiny.safetensors"
    )
    g, a = emotions.LABELS.index("gratitude"), emotions.LABELS.index("anger")
    assert p[0, g] > p[0, a] and p[1, a] > p[1, g] and ((p >= 0) & (p <= 1)).all()


def test_share_is_the_positive_part_of_all_labels():
    share = emotions.positive_emotion(TEXTS)
    p = emotions.probabilities(TEXTS[:3])
    positive = np.isin(emotions.LABELS, emotions.POSITIVE)
    np.testing.assert_allclose(share[:3], p[:, positive].sum(1) / p.sum(1))
    assert np.isnan(share[3:]).all() and share[0] > 0.8 > 0.4 > share[1]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A tiny untrained classifier with the labels of GoEmotions."""
    folder = tmp_path_factory.mktemp("classifier")
    return tiny_models.bert_classifier(folder, list(emotions.LABELS))


def test_network_scores_equal_a_plain_forward_pass(network):
    ours = emotions.positive_emotion(TEXTS, str(network), device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(network)
    plain = AutoModelForSequenceClassification.from_pretrained(network).eval()
    for text, score in zip(TEXTS[:3], ours[:3], strict=True):
        p = plain(**tokenizer(text, return_tensors="pt")).logits[0].detach().sigmoid()
        positive = sum(
            float(p[emotions.LABELS.index(name)]) for name in emotions.POSITIVE
        )
        assert score == pytest.approx(positive / float(p.sum()), abs=1e-5)


def test_another_classifier_is_refused(tmp_path):
    other = tiny_models.bert_classifier(tmp_path, [f"label {n}" for n in range(28)])
    with pytest.raises(ValueError, match="has no label admiration"):
        emotions.positive_emotion(["hello"], str(other), device="cpu")


def comments(folder, last="Sad.", dumps=("RC.ndjson",)):
    rows = [("p", "t3_l", "Which soup?"), ("a", "t1_p", "Pumpkin soup, thanks!")]
    rows += [
        ("r", "t1_a", "Great, thank you!"),
        ("s", "t1_a", "[deleted]"),
        ("u", "t1_a", last),
    ]
    frame = pd.DataFrame(rows, columns=["id", "parent_id", "body"])
    frame = frame.assign(
        link_id="t3_l", subreddit="s", author="x", score=1, created_utc=5
    )
    files = [folder.parent / name for name in dumps]
    for file in files:
        reddit.write_dump(frame, file)
    reddit.to_parquet(files, folder)
    return folder


def scores(folder):
    return dict(
        duckdb.sql(f"select id, ee from '{folder}/*.parquet' order by id").fetchall()
    )


def test_needed_replies_are_scored_once(tmp_path, monkeypatch):
    folder = comments(tmp_path / "comments")
    monkeypatch.setattr("lib.endex.comment_scores.PART_SIZE", 1)
    scored = comment_scores.score_replies(folder, tmp_path / "ee")
    expected = emotions.positive_emotion(["Great, thank you!", "Sad."])
    assert scores(scored) == pytest.approx(dict(zip("ru", expected, strict=True)))
    first, second = sorted(scored.glob("*.parquet"))
    second.unlink()  # as if it had been interrupted
    written = first.stat().st_mtime_ns
    comment_scores.score_replies(folder, tmp_path / "ee")
    assert second.is_file() and first.stat().st_mtime_ns == written


def test_a_comment_of_two_dumps_is_scored_once(tmp_path):
    """Each of its copies had a row of emotions, and RED counted the reply once for each."""
    folder = comments(
        tmp_path / "twice", dumps=("RC_2019-01.ndjson", "RC_2019-02.ndjson")
    )
    scored = comment_scores.score_replies(folder, tmp_path / "ee")
    assert len(pd.read_parquet(scored)) == 2
    engine = red.DuckDB()
    red.prepare(engine, red.RedSettings(edge_days=0), folder, emotions=scored)
    assert engine.frame(red.POSTS)["re"].tolist() == [3]  # of "a": r, s and u


def test_a_network_keeps_what_it_scored_every_500_texts(tmp_path, network, monkeypatch):
    """An interruption cost up to 50,000 texts: with BERT on a CPU more than half an hour."""
    folder = comments(tmp_path / "comments")
    monkeypatch.setattr("lib.endex.comment_scores.NETWORK_PART_SIZE", 1)
    options = {"model": str(network), "device": "cpu"}
    scored = comment_scores.score_replies(folder, tmp_path / "ee", **options)
    assert len(list(scored.glob("*.parquet"))) == 2
    one = comment_scores.score_replies(folder, tmp_path / "one")
    assert len(list(one.glob("*.parquet"))) == 1


def test_toxicity_of_posts_and_parents_reaches_the_filter(tmp_path):
    labels = ["insult", "toxic"]
    toxic = str(tiny_models.bert_classifier(tmp_path / "toxic", labels))
    folder = comments(tmp_path / "comments")
    options = {"model": toxic, "device": "cpu"}
    scored = comment_scores.score_toxicity(folder, tmp_path / "toxicity", **options)
    found = pd.read_parquet(scored).set_index("id")["toxicity"]
    texts = pd.DataFrame(
        {"response": ["Pumpkin soup, thanks!", "Which soup?"]}, list("ap")
    )
    expected = metrics.toxicity(texts, checkpoint=toxic, device="cpu")
    assert found.to_dict() == pytest.approx(expected.to_dict())

    emotion = comment_scores.score_replies(folder, tmp_path / "ee")
    given = {"emotions": emotion, "toxicity": scored}
    for bound, posts in ((found.max(), 1), (found.max() - 0.001, 0)):
        settings = red.RedSettings(edge_days=0, toxicity_above=float(bound))
        engine = red.DuckDB()
        red.prepare(engine, settings, folder, **given)
        assert len(engine.frame(red.POSTS)) == posts


@pytest.mark.public
def test_recorded_scores_are_those_of_the_test_split():
    test = goemotions("test")
    measured = train.evaluate(test["text"], test["labels"])
    assert measured == pytest.approx(emotions.record()["test"], abs=1e-4)
    positive = train.targets(test["labels"])[
        :, np.isin(emotions.LABELS, emotions.POSITIVE)
    ]
    assert (
        roc_auc_score(positive.max(1), emotions.positive_emotion(test["text"])) > 0.89
    )


def test_scores_of_other_texts_or_weights_are_made_anew(tmp_path, network):
    """Defect S3: the key was the model's name and the size of the files."""

    other = {"model": str(network), "device": "cpu"}
    for last, options in (("Love you", {}), ("Hate you", {}), ("Hate you", other)):
        folder = comments(tmp_path / "c", last)
        scored = comment_scores.score_replies(folder, tmp_path / "ee", **options)
        by_id = scores(scored)
        expected = emotions.positive_emotion([last], **options)[0]
        assert len(by_id) == 2 and by_id["u"] == pytest.approx(expected)
