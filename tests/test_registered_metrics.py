"""Every registered metric computes on a turn table, and refuses an option that it does not know.

Networks that are not packaged are tiny random ones of the same architecture.
"""

import shutil
from pathlib import Path

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


# Where each metric is compared with another implementation, or with its formula written out.
COMPARED_IN = {
    "toxicity": "test_classifiers: test_toxicity_is_the_sigmoid_of_its_label",
    "bleurt": "test_classifiers: test_bleurt_is_the_regression_of_the_pair_best_reference",
    "dialogrpt": "test_classifiers: "
    "test_dialogrpt_reads_the_last_token_though_padding_is_the_separator",
    "unieval": "test_classifiers: test_unieval_asks_five_questions_and_sums_engagingness",
    "log_likelihood": "test_likelihood: "
    "test_log_likelihood_is_that_of_one_plain_pass_for_each_text",
    "bartscore": "test_likelihood: test_an_encoder_decoder_scores_each_direction",
    "prism_style": "test_likelihood: test_an_encoder_decoder_scores_each_direction",
    "fed": "test_likelihood: test_fed_is_the_loss_over_all_tokens_whatever_stands_beside_it",
    "question": "test_endex: test_baselines_read_tokenised_and_plain_texts_alike",
    "specificity": "test_endex: test_baselines_read_tokenised_and_plain_texts_alike",
    "length": "test_endex: test_baselines_read_tokenised_and_plain_texts_alike",
    "random": "test_endex: test_random_draws_do_not_repeat",
    "bertscore": "test_embedding_metrics: test_equal_to_the_authors_package_pair_by_pair",
    "reference_similarity": "test_embedding_metrics: "
    "test_similarities_take_the_best_reference_and_the_last_turn_of_the_context",
    "context_similarity": "test_embedding_metrics: "
    "test_similarities_take_the_best_reference_and_the_last_turn_of_the_context",
    "bleu4_coco": "test_overlap_metrics: test_a_variant_is_its_formula",
    "rouge_l_coco": "test_overlap_metrics: test_a_variant_is_its_formula",
    "bleu4_nltk_normalized": "test_overlap_metrics: test_a_variant_is_its_formula",
    "word_f1_normalized": "test_overlap_metrics: test_a_variant_is_its_formula",
    "rouge_l_f1_normalized": "test_overlap_metrics: test_a_variant_is_its_formula",
    "rouge_l_recall_normalized": "test_overlap_metrics: test_a_variant_is_its_formula",
    "bleu4_sacrebleu": "test_overlap_metrics: "
    "test_sacrebleu_is_its_package_with_effective_order",
    "meteor_15": "test_overlap_metrics: test_meteor_is_its_formula",
    "meteor_15_normalized": "test_overlap_metrics: test_published_correlations",
    "emotional_entropy": "test_psychology_metrics: "
    "test_readings_of_entropy_follow_their_formulas",
    "emotional_entropy_paper": "test_psychology_metrics: "
    "test_readings_of_entropy_follow_their_formulas",
    "emotion_matching": "test_psychology_metrics: "
    "test_emotion_matching_is_scipys_rank_correlation_row_by_row",
    "language_style_matching": "test_psychology_metrics: "
    "test_style_matching_equals_irelands_formula_word_by_word",
    "endex": "test_endex: test_scores_equal_a_plain_forward_pass",
}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_compared_with_an_independent_implementation(name):
    file, test = COMPARED_IN[name].split(": ")
    tests = (Path(__file__).parent / f"{file}.py").read_text(encoding="utf-8")
    assert f"def {test}(" in tests
