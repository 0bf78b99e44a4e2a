"""Golden values for those who have the weights: published numbers that a real checkpoint gives.

Every expected value is the authors' own, from the file and commit that the test names. None of them
was measured by this project, which had no such weights at hand.
"""

import json

import numpy as np
import pandas as pd
import pytest

from lib import metrics, models
from lib.data import storage

pytestmark = pytest.mark.hub


def need(*names):
    for name in names:
        try:
            models.find_model(name)
        except models.CheckpointError as error:
            pytest.skip(str(error))


def test_bartscore_of_the_authors_readme():
    """The first example in README.md of neulab/BARTScore, commit 0f93c564."""
    need("facebook/bart-large-cnn")
    turns = {
        "context": [["This is interesting."]],
        "response": ["This is fun."],
        "reference": [[]],
    }
    found = metrics.bartscore(pd.DataFrame(turns))["bartscore_context_to_response"][0]
    assert found == pytest.approx(-2.510652780532837, abs=1e-4)


def test_dialogrpt_of_the_authors_readme():
    """The table "rankers only" in README.md of golsun/DialogRPT, commit 0875d320, of updown."""
    need("microsoft/DialogRPT-updown")
    replies = ["Here’s a free textbook (URL) in case anyone needs it.", "Me too!"]
    turns = pd.DataFrame({"context": [["I love NLP!"]] * 2, "response": replies})
    found = metrics.dialogrpt(turns, heads={"updown": "microsoft/DialogRPT-updown"})
    assert found["dialogrpt_updown"].tolist() == pytest.approx(
        [0.613, 0.111], abs=0.002
    )


@pytest.mark.public
def test_unieval_gives_its_shipped_predictions():
    need("MingZhong/unieval-dialog")
    rows = json.loads(
        (storage.data_folder() / "unieval/topical_chat_result.json").read_text()
    )[:60]
    turns = pd.DataFrame({"response": [row["system_output"] for row in rows]})
    turns["context"] = [row["source"].rstrip("\n").split("\n") for row in rows]
    turns["fact"] = [[row["context"].rstrip("\n")] for row in rows]
    scores = metrics.unieval(turns)
    for name in (
        "naturalness",
        "coherence",
        "groundedness",
        "understandability",
        "overall",
    ):
        shipped = np.array([row["predict_scores"][name] for row in rows])
        assert np.abs(scores[f"unieval_{name}"] - shipped).max() < 1e-3


@pytest.mark.public
def test_fed_gives_the_stored_scores():
    """Scores of DialoGPT-large stored with the FED data; first turn-level item."""
    need("microsoft/DialoGPT-large")
    text = (storage.data_folder() / "fed/turn_level_FU_scores.jsonl").read_text()
    item, _ = json.JSONDecoder().raw_decode(text)
    *context, response = (
        item["input"].removeprefix("<|endoftext|> ").split(" <|endoftext|> ")
    )
    scores = metrics.fed(
        pd.DataFrame({"context": [context], "response": [response]})
    ).iloc[0]
    for name, value in item["score"].items():
        assert scores[f"fed_{name.replace(' ', '_')}"] == pytest.approx(value, abs=1e-3)
