"""Every registered metric computes on a turn table, and refuses an option that it does not know.

Networks that are not packaged are tiny random ones of the same architecture.
"""

import shutil

import numpy as np
import pandas as pd
import pytest
import tiny_models
from nltk.tokenize.punkt import PunktSentenceTokenizer

from lib import endex, psychology  # noqa: F401 - each registers its metrics
from lib.metrics import METRICS, compute
from lib.metrics.classifiers import HEADS

TURNS = pd.DataFrame({
    "context": [["do you like tea?"], ["hi", "so what"]],
    "response": ["Yes, I like it very much!", "my sister is happy"],
    "reference": [["I do", "no"], ["so she is"]],
    "fact": [["tea is hot"], ["a sister"]],
})  # fmt: skip
NETWORKS = {
    "bartscore": tiny_models.bart,
    "prism_style": tiny_models.m2m100,
    "unieval": tiny_models.t5,
    "fed": tiny_models.gpt2,
}


@pytest.fixture
def options_of(tmp_path, monkeypatch):
    """Options with which a metric runs without a download."""
    monkeypatch.setattr(
        "nltk.tokenize.punkt.PunktTokenizer", lambda _: PunktSentenceTokenizer()
    )

    def options(name: str) -> dict:
        folder = tmp_path / "network"
        if name == "dialogrpt":
            heads = {head: tiny_models.gpt2_classifier(folder / head) for head in HEADS}
            return {"heads": {head: str(path) for head, path in heads.items()}}
        if name == "toxicity":
            return {"checkpoint": str(tiny_models.bert_classifier(folder, ["toxic"]))}
        if name == "bleurt":
            return {"checkpoint": str(tiny_models.bert_classifier(folder, ["score"]))}
        if name not in NETWORKS:
            return {}
        options = {"checkpoint": str(NETWORKS[name](folder))}
        if name == "fed":
            options["utterances"] = {
                "fun": {"positive": ["great"], "negative": ["bad"]}
            }
        return options

    return options


@pytest.mark.parametrize("name", METRICS)
def test_every_registered_metric_computes_on_a_turn_table(name, options_of, tmp_path):
    if name.startswith("meteor") and not shutil.which("java"):
        pytest.skip("METEOR needs Java")
    options = {name: options_of(name)}
    scores = compute(
        TURNS, [name], options=options, folder=tmp_path, log=lambda line: None
    )
    assert scores.index.equals(TURNS.index)
    assert len(scores.columns) > 0
    for column in scores:
        reasons = scores.attrs["missing"][column]
        assert np.isfinite(scores[column]).sum() + sum(reasons.values()) == len(TURNS)
    assert np.isfinite(scores).any(axis=None)


@pytest.mark.parametrize("name", METRICS)
def test_an_option_that_a_metric_does_not_know_is_an_error(name, tmp_path):
    with pytest.raises(
        ValueError, match=f"{name}: got an unexpected .*'context_turns'"
    ):
        compute(TURNS, [name], options={name: {"context_turns": 0}}, folder=tmp_path)


@pytest.mark.parametrize(
    "name", ["bertscore", "context_similarity", "log_likelihood", "length"]
)
def test_such_an_option_is_an_error_in_a_direct_call_too(name):
    with pytest.raises(TypeError, match="context_turns"):
        METRICS[name].function(TURNS, context_turns=0)
