"""BERTScore and embedding similarity against plain torch, the authors' package, and their traps."""

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
    return str(getattr(tiny_models, request.param)(tmp_path_factory.mktemp(request.param)))


def one_pair(encoder, hypothesis, reference):
    """BERTScore of one pair, written from the paper's equations, without any batch."""
    model, sides = models.load_encoder(encoder, device="cpu"), []
    for text in (hypothesis, reference):
        ids = model.tokenizer(text)["input_ids"]
        with torch.no_grad():
            hidden = model.network(input_ids=torch.tensor([ids])).last_hidden_state[0]
        sides.append(hidden / hidden.norm(dim=1, keepdim=True))
    similar = sides[0] @ sides[1].T  # start and end tokens match, but do not count themselves
    precision = float(similar.max(1).values[1:-1].mean())
    recall = float(similar.max(0).values[1:-1].mean())
    return [precision, recall, 2 * precision * recall / (precision + recall)]


@pytest.mark.parametrize("block", [3, 500])
def test_bertscore_is_its_formula_in_any_batch_order_and_block(
    encoder, batches, block, monkeypatch
):
    """torchmetrics 1.9.0 fails here: it misaligns its length-sorted batches."""
    monkeypatch.setattr(em, "BLOCK", block)
    pairs = [(a, b) for a in TEXTS for b in TEXTS[:4]]
    expected = np.array([one_pair(encoder, a, b) for a, b in pairs])
    order = np.random.default_rng(block).permutation(len(pairs))
    hypotheses, references = zip(*[pairs[i] for i in order], strict=True)
    scores = em.bertscore_pairs(hypotheses, references, encoder=encoder, device="cpu")
    assert np.abs(scores - expected[order]).max() < 1e-5


def test_equal_to_the_authors_package_pair_by_pair():
    """Alone: bert-score 0.3.13 lets padding match, whose similarity of 0 beats a negative one."""
    from bert_score import BERTScorer

    folder = str(models.find_model(models.DEFAULT_ENCODER).folder)
    scorer = BERTScorer(model_type=folder, num_layers=6, device="cpu")
    pairs = [(a, b) for a in TEXTS[:5] for b in TEXTS[2:]]
    theirs = [np.stack(scorer.score([a], [b]), 1)[0] for a, b in pairs]
    ours = em.bertscore_pairs(*zip(*pairs, strict=True), device="cpu")
    assert np.abs(ours - theirs).max() < 1e-5


def test_one_layer_is_the_hidden_state_of_that_layer(tmp_path):
    folder = str(tiny_models.bert(tmp_path))
    model = models.load_encoder(folder)
    ids = torch.tensor([model.tokenizer("the kettle sings")["input_ids"]])
    with torch.no_grad():
        states = model.network(input_ids=ids, output_hidden_states=True).hidden_states
        first = models.load_encoder(folder, layers=1).network(input_ids=ids)
    assert torch.allclose(first.last_hidden_state, states[1], atol=1e-6)
    other = em.bertscore_pairs(["tea"], ["the kettle sings"], encoder=folder, layers=1)
    assert not np.allclose(other, em.bertscore_pairs(["tea"], ["the kettle sings"], encoder=folder))


def test_sentence_vectors_equal_sentence_transformers(batches):
    from sentence_transformers import SentenceTransformer

    folder = str(models.find_model(models.DEFAULT_ENCODER).folder)
    texts = [*TEXTS, "word " * 400, "🙂"]
    theirs = SentenceTransformer(folder, device="cpu").encode(texts, normalize_embeddings=True)
    assert np.abs(em.sentence_vectors(texts, device="cpu") - theirs).max() < 1e-5


def test_similarities_take_the_best_reference_and_the_last_turn_of_the_context():
    turns = pd.DataFrame({"response": [TEXTS[1], TEXTS[1], ""]})
    turns["reference"] = [[TEXTS[2], TEXTS[6]], [], ["a"]]
    turns["context"] = [[TEXTS[2], TEXTS[6]], [], [TEXTS[0]]]
    v = em.sentence_vectors([TEXTS[1], TEXTS[2], TEXTS[6]])
    expected = {em.reference_similarity: max(v[0] @ v[1], v[0] @ v[2])}
    for similarity, value in {**expected, em.context_similarity: v[0] @ v[2]}.items():
        found = similarity(turns)
        assert found[0] == pytest.approx(value, abs=1e-6) and found[1:].isna().all()


def test_equal_texts_are_exactly_1_and_nothing_is_above(encoder, batches):
    """Defect N3: rounding noise of some 1e-7 ranked perfect matches, some of them above 1.

    60 replies of DSTC10's Persona that repeat a reference had 4 to 6 different scores.
    """
    said = [text + blank for text in TEXTS for blank in ("", " ")]
    turns = pd.DataFrame({"response": said, "reference": [[text, "so"] for text in said[::-1]]})
    turns["context"] = [[text.strip()] for text in said]
    assert (em.context_similarity(turns, encoder=encoder) == 1).all()
    assert (em.bertscore_pairs(said, turns["context"].str[0], encoder=encoder) == 1).all()
    other = em.reference_similarity(turns, encoder=encoder)
    assert (other <= 1).all()
    pairs = [f"{a.strip()}|{b[0].strip()}" for a, b in zip(said, turns["reference"], strict=True)]
    assert other.groupby(pairs).nunique().eq(1).all()
