"""BERTScore and embedding similarity against plain torch, the authors' package, and their traps."""

from itertools import product
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch
from tiny_models import TEXTS

from lib import models
from lib.metrics import embedding as em


@pytest.fixture(scope="module", params=["bert", "roberta", "packaged"])
def encoder(request, tmp_path_factory):
    if request.param == "packaged":
        return models.DEFAULT_ENCODER
    return str(
        getattr(tiny_models, request.param)(tmp_path_factory.mktemp(request.param))
    )


def one_pair(encoder, hypothesis, reference):
    """BERTScore of one pair, written from the paper's equations, without any batch."""
    model = models.load_encoder(encoder, device="cpu")
    sides = []
    for text in (hypothesis, reference):
        ids = model.tokenizer(text)["input_ids"]
        with torch.no_grad():
            hidden = model.network(input_ids=torch.tensor([ids])).last_hidden_state[0]
        sides.append(hidden / hidden.norm(dim=1, keepdim=True))
    similar = (
        sides[0] @ sides[1].T
    )  # start and end tokens match, but do not count themselves
    precision = float(similar.max(1).values[1:-1].mean())
    recall = float(similar.max(0).values[1:-1].mean())
    return [precision, recall, 2 * precision * recall / (precision + recall)]


@pytest.mark.parametrize("n_bytes", [1, 2**17, 2**27])  # one pair a block, some, all
def test_bertscore_is_its_formula_in_any_batch_order_and_block(
    encoder, batches, n_bytes, monkeypatch
):
    """torchmetrics 1.9.0 fails here: it misaligns its length-sorted batches."""
    monkeypatch.setattr(em, "TOKEN_VECTOR_BYTES", n_bytes)
    pairs = list(product(TEXTS, TEXTS[:4]))
    expected = np.array([one_pair(encoder, a, b) for a, b in pairs])
    order = np.random.default_rng(0).permutation(len(pairs))
    hypotheses = [pairs[i][0] for i in order]
    references = [pairs[i][1] for i in order]
    scores = em.bertscore_pairs(hypotheses, references, encoder=encoder, device="cpu")
    assert np.abs(scores - expected[order]).max() < 1e-5


def test_equal_to_the_authors_package_pair_by_pair():
    """Alone: bert-score 0.3.13 lets padding match, whose similarity of 0 beats a negative one."""
    from bert_score import BERTScorer

    folder = str(models.find_model(models.DEFAULT_ENCODER).folder)
    scorer = BERTScorer(model_type=folder, num_layers=6, device="cpu")
    pairs = list(product(TEXTS[:5], TEXTS[2:]))
    expected = [np.stack(scorer.score([a], [b]), 1)[0] for a, b in pairs]
    hypotheses, references = zip(*pairs, strict=True)
    scores = em.bertscore_pairs(hypotheses, references, device="cpu")
    assert np.abs(scores - expected).max() < 1e-5


@pytest.mark.parametrize("shared", ["the references of a context", "the responses"])
def test_bertscore_reads_each_text_once(shared):
    """Also where the replies to one context are far from each other in the table."""
    contexts = [[f"reference {c} {k}" for k in range(5)] for c in range(4)]
    rows = [
        {"response": f"reply {s} {c}", "reference": contexts[c]}
        for s in range(3)
        for c in range(4)
    ]
    turns = pd.DataFrame(rows)
    if shared == "the responses":
        turns["response"] = "the same reply"
    texts = {*turns["response"], *np.concatenate(contexts)}
    model = models.load_encoder(device="cpu")
    forward = type(model.network).forward
    spy = mock.patch.object(
        type(model.network), "forward", autospec=True, side_effect=forward
    )
    with spy as passes:
        em.bertscore(turns, device="cpu")
    assert sum(len(call.kwargs["input_ids"]) for call in passes.call_args_list) == len(
        texts
    )


def test_one_layer_is_the_hidden_state_of_that_layer(tmp_path):
    folder = str(tiny_models.bert(tmp_path))
    model = models.load_encoder(folder)
    ids = torch.tensor([model.tokenizer("the kettle sings")["input_ids"]])
    with torch.no_grad():
        states = model.network(input_ids=ids, output_hidden_states=True).hidden_states
        first = models.load_encoder(folder, layers=1).network(input_ids=ids)
    assert torch.allclose(first.last_hidden_state, states[1], atol=1e-6)
    other = em.bertscore_pairs(["tea"], ["the kettle sings"], encoder=folder, layers=1)
    assert not np.allclose(
        other, em.bertscore_pairs(["tea"], ["the kettle sings"], encoder=folder)
    )


def test_sentence_vectors_equal_sentence_transformers(batches):
    from sentence_transformers import SentenceTransformer

    folder = str(models.find_model(models.DEFAULT_ENCODER).folder)
    texts = [*TEXTS, "word " * 400, "🙂"]
    expected = SentenceTransformer(folder, device="cpu").encode(
        texts, normalize_embeddings=True
    )
    assert np.abs(em.sentence_vectors(texts, device="cpu") - expected).max() < 1e-5


def test_similarities_take_the_best_reference_and_the_last_turn_of_the_context():
    turns = pd.DataFrame({"response": [TEXTS[1], TEXTS[1], ""]})
    turns["reference"] = [[TEXTS[2], TEXTS[6]], [], ["a"]]
    turns["context"] = [[TEXTS[2], TEXTS[6]], [], [TEXTS[0]]]
    response, first, last = em.sentence_vectors([TEXTS[1], TEXTS[2], TEXTS[6]])
    with_reference = em.reference_similarity(turns)
    assert with_reference[0] == pytest.approx(
        max(response @ first, response @ last), abs=1e-6
    )
    assert with_reference[1:].isna().all()
    with_context = em.context_similarity(turns)
    assert with_context[0] == pytest.approx(response @ last, abs=1e-6)
    assert with_context[1:].isna().all()


def test_equal_texts_are_exactly_1_and_nothing_is_above(encoder, batches):
    """Defect N3: rounding noise of some 1e-7 ranked perfect matches, some of them above 1.

    60 replies of DSTC10's Persona that repeat a reference had 4 to 6 different scores.
    """
    responses = [text + blank for text, blank in product(TEXTS, ("", " "))]
    turns = pd.DataFrame({"response": responses})
    turns["reference"] = [[text, "so"] for text in responses[::-1]]
    turns["context"] = [[text.strip()] for text in responses]
    assert (em.context_similarity(turns, encoder=encoder) == 1).all()
    assert (
        em.bertscore_pairs(responses, turns["context"].str[0], encoder=encoder) == 1
    ).all()
    similarity = em.reference_similarity(turns, encoder=encoder)
    assert (similarity <= 1).all()
    pairs = turns["response"].str.strip() + "|" + turns["reference"].str[0].str.strip()
    assert similarity.groupby(pairs).nunique().eq(1).all()
