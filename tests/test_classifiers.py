"""Classifier metrics against plain torch and transformers, row by row and in batches."""

import json

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch
import transformers as hf
from nltk.tokenize.punkt import PunktSentenceTokenizer
from safetensors.torch import load_file, save_file
from test_likelihood import BLANKS, TURNS, shuffled

from lib import metrics, models
from lib.metrics.classifiers import HEADS, QUESTIONS, yes_probability


@pytest.fixture(autouse=True)
def sentences(monkeypatch):
    """Punkt without NLTK's English model, which must be downloaded."""
    monkeypatch.setattr(
        "nltk.tokenize.punkt.PunktTokenizer", lambda _: PunktSentenceTokenizer()
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny random checkpoints: the five heads of DialogRPT, a T5, a toxicity classifier."""
    root = tmp_path_factory.mktemp("tiny")
    heads = {
        name: tiny_models.gpt2_classifier(root / name, i)
        for i, name in enumerate(HEADS)
    }
    toxic = tiny_models.bert_classifier(root / "toxic", ["insult", "toxic"])
    return heads | {"t5": str(tiny_models.t5(root / "t5")), "toxic": toxic}


@pytest.fixture(scope="module")
def heads(folders):
    return {name: str(folders[name]) for name in HEADS}


def logits(network, ids, **more):
    with torch.no_grad():
        return network(input_ids=torch.tensor([ids]), **more).logits[0]


def test_dialogrpt_reads_the_last_token_though_padding_is_the_separator(heads, batches):
    """Of a context that is too long the oldest tokens are cut; the authors' code strips turns."""
    long = pd.DataFrame([(["word " * 400], "tea", [], [])], [6], TURNS.columns)
    turns = pd.concat([TURNS, long])
    scores = shuffled(metrics.dialogrpt, turns, heads=heads)
    for key, turn in turns.iterrows():
        if not (turn.context and turn.response):
            assert scores.loc[key].isna().all()
            continue
        text = "<|endoftext|>".join(
            said.strip() for said in [*turn.context[-2:], turn.response]
        )
        expected = {}
        for name, folder in heads.items():
            # transformers' own head on one unpadded row: the last token is the last position.
            ids = models.load_classifier(folder, device="cpu").tokenizer(text)[
                "input_ids"
            ][-128:]
            network = hf.GPT2ForSequenceClassification.from_pretrained(folder).eval()
            expected[name] = float(logits(network, ids).sigmoid())
            assert scores.loc[key, f"dialogrpt_{name}"] == pytest.approx(
                expected[name], abs=1e-5
            )
        prior = (expected["human_vs_rand"] + expected["human_vs_machine"]) / 2
        cond = expected["updown"] + 0.48 * expected["depth"] - 0.5 * expected["width"]
        assert scores.loc[key, "dialogrpt"] == pytest.approx(
            prior * cond / 0.98, abs=1e-5
        )


def yes(folder, text):
    """p(Yes) against p(No), of a text or of token ids."""
    model = models.load_seq2seq(folder, device="cpu")
    pair = [model.tokenizer(word)["input_ids"][0] for word in ("Yes", "No")]
    ids = model.tokenizer(text)["input_ids"] if isinstance(text, str) else text
    first = logits(model.network, ids, decoder_input_ids=torch.tensor([[0]]))[0]
    return float(first[pair].softmax(-1)[0])


def test_unieval_asks_five_questions_and_sums_engagingness(folders, batches):
    """Row 1 has three sentences, row 3 two facts, one a line."""
    t5 = folders["t5"]
    scores = shuffled(metrics.unieval, TURNS, checkpoint=t5)
    sentences = {
        1: ["my sister plays.", "In a band?", "Yes!"],
        3: [TURNS.loc[3, "response"]],
    }
    for key, parts in sentences.items():
        turn = TURNS.loc[key]
        history = (
            " </s> dialogue history: " + "".join(f"{t}\n" for t in turn.context) + "\n"
        )
        fact = " </s> fact: " + "\n".join(turn.fact) + "\n"
        reads = {"coherence": history, "groundedness": fact}
        ours = {}
        for name in ("naturalness", "coherence", "groundedness", "understandability"):
            text = f"question: {QUESTIONS[name]} </s> response: {turn.response}"
            ours[name] = yes(t5, text + reads.get(name, ""))
        question = f"question: {QUESTIONS['engagingness']} </s> response: "
        each_sentence = [yes(t5, question + text + history + fact) for text in parts]
        ours["engagingness"] = sum(each_sentence)
        ours["overall"] = sum(ours.values()) / 5
        for name, value in ours.items():
            assert scores.loc[key, f"unieval_{name}"] == pytest.approx(value, abs=1e-5)
    assert scores.loc[7].isna().all()  # empty response
    assert np.isfinite(
        scores.loc[9, ["unieval_naturalness", "unieval_coherence"]]
    ).all()
    assert (
        scores.loc[9, ["unieval_groundedness", "unieval_overall"]].isna().all()
    )  # no fact
    assert (
        scores.loc[0, ["unieval_coherence", "unieval_engagingness"]].isna().all()
    )  # no context


def test_unieval_reads_the_first_1024_tokens(folders):
    """Defect N2: it read 512, which the files of every T5 state and no T5 is bound by."""
    model = models.load_seq2seq(folders["t5"], device="cpu")
    text = " ".join(str(number * 7919 % 1000) for number in range(700))
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    found = yes_probability(model, [text])[0]
    cut = {
        limit: yes(folders["t5"], [*ids[: limit - 1], 1])
        for limit in (512, 1000, 1024, 1048)
    }
    assert found == pytest.approx(cut.pop(1024), abs=1e-6)
    assert all(abs(found - other) > 2e-6 for other in cut.values())


def test_toxicity_is_the_sigmoid_of_its_label(folders, batches):
    model = models.load_classifier(folders["toxic"], device="cpu")
    scores = shuffled(metrics.toxicity, TURNS, checkpoint=folders["toxic"])
    for key, text in TURNS["response"].items():
        probability = logits(model.network, model.tokenizer(text)["input_ids"])[
            1
        ].sigmoid()
        expected = float(probability) if text else np.nan
        assert scores[key] == pytest.approx(expected, abs=1e-5, nan_ok=True)


@pytest.fixture(scope="module", params=["bert", "rembert", "vocab.txt"])
def bleurt(request, tmp_path_factory):
    """A checkpoint as the public conversions of BLEURT have it, and the network that it holds."""
    folder, words = tmp_path_factory.mktemp(request.param), tiny_models.wordpiece()
    kind, sizes, stored = "bert", {}, {**tiny_models.BERT, "model_type": "bleurt"}
    if request.param == "rembert":
        kind, sizes = "rembert", {"input_embedding_size": 8, "output_embedding_size": 8}
        stored["embedding_size"] = 8
    config = hf.AutoConfig.for_model(kind, **tiny_models.BERT, **sizes, num_labels=1)
    network = hf.AutoModelForSequenceClassification.from_config(config)
    tiny_models.save_network(network, words, folder, seed=4)
    if request.param == "vocab.txt":
        for file in folder.glob("tokenizer*.json"):
            file.unlink()
        known = words.get_vocab()
        (folder / "vocab.txt").write_text(
            "\n".join(sorted(known, key=known.get)), "utf-8"
        )
    else:  # a class that transformers does not know
        (folder / "tokenizer_config.json").write_text(
            '{"tokenizer_class": "BleurtTokenizer"}'
        )
    names = {
        f"{kind}.": "bleurt.",
        "embedding_hidden_mapping_in": "embedding_projection",
    }
    weights = load_file(folder / "model.safetensors")
    for old, new in names.items():
        weights = {key.replace(old, new, 1): value for key, value in weights.items()}
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(stored))
    return str(folder), network


def test_bleurt_is_the_regression_of_the_pair_best_reference(bleurt, batches):
    folder, network = bleurt
    scores = shuffled(metrics.bleurt, TURNS, checkpoint=folder)
    for key, turn in TURNS.iterrows():
        of_references = []
        for reference in turn.reference if turn.response else []:
            inputs = tiny_models.wordpiece()(
                reference, turn.response, return_tensors="pt"
            )
            with torch.no_grad():
                of_references.append(float(network(**inputs).logits))
        assert scores[key] == pytest.approx(
            max(of_references, default=np.nan), abs=1e-5, nan_ok=True
        )


@pytest.mark.parametrize("blank", BLANKS)
def test_a_blank_response_is_not_classified(bleurt, heads, folders, blank):
    turns = TURNS.loc[[5, 3]].assign(response=[blank, "tea"])
    for scores in (
        metrics.bleurt(turns, checkpoint=bleurt[0]).to_frame(),
        metrics.dialogrpt(turns, heads=heads),
        metrics.unieval(turns, checkpoint=folders["t5"]),
        metrics.toxicity(turns, checkpoint=folders["toxic"]).to_frame(),
    ):
        assert scores.loc[5].isna().all() and scores.loc[3].notna().all()
