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
from test_likelihood import BLANKS, shuffled

from lib import metrics, models
from lib.metrics.classifiers import HEADS, QUESTIONS, yes_probability

TURNS = pd.DataFrame(
    [
        (["do you like tea?"], "Yes, I do! Very much.", ["I do", "no"], ["tea is hot"]),
        (["hi", "it sings", "oh"], "coffee keeps me awake", ["tea"], ["water", "kettles sing"]),
        (["my sister plays "], " fun", ["in a band"], []),
        (["that sounds fun", "yes"], "my sister plays. In a band? Yes!", ["water"], ["a band"]),
        ([], "tea", ["a"], ["b"]),
        (["hello there"], "", ["b"], ["c"]),
        (["so what"], "really?", [], []),
    ],
    [5, 3, 9, 1, 0, 7, 2],
    ["context", "response", "reference", "fact"],
)


@pytest.fixture(autouse=True)
def sentences(monkeypatch):
    """Punkt without NLTK's English model, which must be downloaded."""
    monkeypatch.setattr("nltk.tokenize.punkt.PunktTokenizer", lambda _: PunktSentenceTokenizer())


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    root = tmp_path_factory.mktemp("heads")
    return {
        name: str(tiny_models.gpt2_classifier(root / name, seed)) for seed, name in enumerate(HEADS)
    }


def test_dialogrpt_reads_the_last_token_though_padding_is_the_separator(heads, batches):
    scores = shuffled(metrics.dialogrpt, TURNS, heads=heads)
    for key, turn in TURNS.iterrows():
        if not (turn.context and turn.response):
            assert scores.loc[key].isna().all()
            continue
        # The authors' code strips each turn: defect N12.
        text = "<|endoftext|>".join(said.strip() for said in [*turn.context[-2:], turn.response])
        one = {}
        for name, folder in heads.items():
            # transformers' own head on one unpadded row: the last token is the last position.
            tokenizer = models.load_classifier(folder, device="cpu").tokenizer
            network = hf.GPT2ForSequenceClassification.from_pretrained(folder).eval()
            with torch.no_grad():
                logit = network(input_ids=torch.tensor([tokenizer(text)["input_ids"]])).logits
            one[name] = float(logit.sigmoid())
            assert scores.loc[key, f"dialogrpt_{name}"] == pytest.approx(one[name], abs=1e-5)
        prior = (one["human_vs_rand"] + one["human_vs_machine"]) / 2
        cond = (one["updown"] + 0.48 * one["depth"] - 0.5 * one["width"]) / 0.98
        assert scores.loc[key, "dialogrpt"] == pytest.approx(prior * cond, abs=1e-5)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return str(tiny_models.t5(tmp_path_factory.mktemp("t5")))


def yes(folder, text):
    """p(Yes) against p(No), of a text or of token ids."""
    model = models.load_seq2seq(folder, device="cpu")
    pair = [model.tokenizer(word)["input_ids"][0] for word in ("Yes", "No")]
    ids = model.tokenizer(text)["input_ids"] if isinstance(text, str) else text
    with torch.no_grad():
        p = model.network(
            input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0]])
        ).logits[0, 0].softmax(-1)[pair]  # fmt: skip
    return float(p[0] / p.sum())


def test_unieval_asks_five_questions_and_sums_engagingness(t5, batches):
    """Row 1 has three sentences, row 3 two facts, one a line."""
    scores = shuffled(metrics.unieval, TURNS, checkpoint=t5)
    sentences = {1: ["my sister plays.", "In a band?", "Yes!"], 3: [TURNS.loc[3, "response"]]}
    for key, said in sentences.items():
        turn = TURNS.loc[key]
        history = " </s> dialogue history: " + "".join(f"{t}\n" for t in turn.context) + "\n"
        fact = " </s> fact: " + "\n".join(turn.fact) + "\n"
        reads = {"coherence": history, "groundedness": fact}
        ours = {}
        for name in ("naturalness", "coherence", "groundedness", "understandability"):
            text = f"question: {QUESTIONS[name]} </s> response: {turn.response}"
            ours[name] = yes(t5, text + reads.get(name, ""))
        asked = f"question: {QUESTIONS['engagingness']} </s> response: "
        each = [yes(t5, asked + text + history + fact) for text in said]
        ours |= {"engagingness": sum(each), "overall": (sum(ours.values()) + sum(each)) / 5}
        for name, value in ours.items():
            assert scores.loc[key, f"unieval_{name}"] == pytest.approx(value, abs=1e-5)


def test_unieval_reads_the_first_1024_tokens(t5):
    """Defect N2: it read 512, which the files of every T5 state and no T5 is bound by."""
    model = models.load_seq2seq(t5, device="cpu")
    text = " ".join(str(number * 7919 % 1000) for number in range(700))
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    found = yes_probability(model, [text])[0]
    cut = {limit: yes(t5, [*ids[: limit - 1], 1]) for limit in (512, 1000, 1024, 1048)}
    assert found == pytest.approx(cut.pop(1024), abs=1e-6)
    assert all(abs(found - other) > 2e-6 for other in cut.values())


def test_unieval_leaves_out_what_it_cannot_read(t5):
    scores = metrics.unieval(TURNS, checkpoint=t5)
    assert scores.loc[7].isna().all()  # empty response
    assert np.isfinite(scores.loc[9, ["unieval_naturalness", "unieval_coherence"]]).all()
    assert scores.loc[9, ["unieval_groundedness", "unieval_overall"]].isna().all()  # no fact
    assert scores.loc[0, ["unieval_coherence", "unieval_engagingness"]].isna().all()  # no context


@pytest.fixture(scope="module")
def toxic(tmp_path_factory):
    return str(tiny_models.bert_classifier(tmp_path_factory.mktemp("toxic"), ["insult", "toxic"]))


def test_toxicity_is_the_sigmoid_of_its_label(toxic, batches):
    model = models.load_classifier(toxic, device="cpu")
    scores = shuffled(metrics.toxicity, TURNS, checkpoint=toxic)
    for key, text in TURNS["response"].items():
        with torch.no_grad():
            logits = model.network(
                input_ids=torch.tensor([model.tokenizer(text)["input_ids"]])
            ).logits[0]
        expected = float(logits[1].sigmoid()) if text else np.nan
        assert scores[key] == pytest.approx(expected, abs=1e-5, nan_ok=True)


def as_bleurt(folder, network, prefix, **extra):
    """Rewrite a checkpoint under the names of the public BLEURT conversions."""
    weights = load_file(folder / "model.safetensors")
    names = {key: key.replace(prefix, "bleurt.", 1) for key in weights}
    names = {
        key: name.replace("embedding_hidden_mapping_in", "embedding_projection")
        for key, name in names.items()
    }
    save_file({names[key]: value for key, value in weights.items()}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    kept = {key: config.get(key) for key in tiny_models.BERT} | extra
    (folder / "config.json").write_text(json.dumps({**kept, "model_type": "bleurt"}))
    return str(folder), network


@pytest.fixture(scope="module", params=["bert", "rembert"])
def bleurt(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "bert":
        tiny_models.bert_classifier(folder, ["score"])
        network = hf.BertForSequenceClassification.from_pretrained(folder).eval()
        return as_bleurt(folder, network, "bert.")
    config = hf.RemBertConfig(
        **tiny_models.BERT, input_embedding_size=8, output_embedding_size=8, num_labels=1
    )
    network = hf.RemBertForSequenceClassification(config)
    tiny_models._save(network, tiny_models.wordpiece(), folder, seed=4)
    return as_bleurt(folder, network, "rembert.", embedding_size=8, layer_norm_eps=1e-12)


def test_bleurt_is_the_regression_of_the_pair_best_reference(bleurt, batches):
    folder, network = bleurt
    tokenizer = tiny_models.wordpiece()
    scores = shuffled(metrics.bleurt, TURNS, checkpoint=folder)
    for key, turn in TURNS.iterrows():
        each = []
        for reference in turn.reference if turn.response else []:
            inputs = tokenizer(reference, turn.response, return_tensors="pt")
            with torch.no_grad():
                each.append(float(network(**inputs).logits))
        assert scores[key] == pytest.approx(max(each, default=np.nan), abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("blank", BLANKS)
def test_a_blank_response_is_not_classified(bleurt, heads, t5, toxic, blank):
    turns = TURNS.loc[[5, 3]].assign(response=[blank, "tea"])
    for scores in (
        metrics.bleurt(turns, checkpoint=bleurt[0]).to_frame(),
        metrics.dialogrpt(turns, heads=heads),
        metrics.unieval(turns, checkpoint=t5),
        metrics.toxicity(turns, checkpoint=toxic).to_frame(),
    ):
        assert scores.loc[5].isna().all() and scores.loc[3].notna().all()


@pytest.mark.parametrize("kind", ["tokenizer.json", "vocab.txt"])
def test_bleurt_reads_either_form_of_vocabulary(tmp_path, kind):
    tiny_models.bert_classifier(tmp_path, ["score"])
    words = tiny_models.wordpiece().get_vocab()
    if kind == "vocab.txt":
        for file in tmp_path.glob("tokenizer*.json"):
            file.unlink()
        lines = sorted(words, key=words.get)
        (tmp_path / "vocab.txt").write_text("\n".join(lines), encoding="utf-8")
    network = hf.BertForSequenceClassification.from_pretrained(tmp_path).eval()
    folder, _ = as_bleurt(tmp_path, network, "bert.")
    inputs = tiny_models.wordpiece()("in a band", "fun", return_tensors="pt")
    with torch.no_grad():
        expected = float(network(**inputs).logits)
    found = metrics.bleurt(TURNS, checkpoint=folder, device="cpu")
    assert found[9] == pytest.approx(expected, abs=1e-5)


def test_dialogrpt_cuts_the_oldest_tokens_and_keeps_the_response(heads):
    long = "word " * 400
    turns = TURNS.iloc[[1, 1]].assign(context=[[long]] * 2, response=["tea", "a band"])
    scores = metrics.dialogrpt(turns, heads={"depth": heads["depth"]})["dialogrpt_depth"]
    assert abs(scores.iloc[0] - scores.iloc[1]) > 1e-4
    longer = metrics.dialogrpt(
        turns.assign(context=[[long + long]] * 2), heads={"depth": heads["depth"]}
    )["dialogrpt_depth"]
    assert scores.to_numpy() == pytest.approx(longer.to_numpy(), abs=1e-6)
