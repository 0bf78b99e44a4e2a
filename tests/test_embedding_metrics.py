"""BERTScore and embedding similarity against plain torch, the authors' package, and their traps."""

import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch

from lib import models as checkpoints
from lib.metrics import embedding_metrics as em

TEXTS = [
    "the kettle sings",
    "do you like tea?",
    "No, not really. Coffee keeps me awake",
    "my sister plays the trumpet in a band",
    "fun",
    "that sounds like a lot of fun :)",
    "tea",
]


@pytest.fixture(scope="module", params=["bert", "roberta", "packaged"])
def encoder(request, tmp_path_factory):
    if request.param == "packaged":
        return checkpoints.DEFAULT_ENCODER
    return str(getattr(tiny_models, request.param)(tmp_path_factory.mktemp(request.param)))


def one_pair(encoder, hypothesis, reference, weight=None):
    """BERTScore of one pair, written from the paper's equations, without any batch."""
    model = checkpoints.load_encoder(encoder, device="cpu")
    tokenizer, sides = model.tokenizer, []
    for text in (hypothesis, reference):
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            hidden = model.network(input_ids=torch.tensor([ids])).last_hidden_state[0]
        own = [0.0 if i in (tokenizer.cls_token_id, tokenizer.sep_token_id) else 1.0 for i in ids]
        if weight is not None:
            own = [w * weight(i) for w, i in zip(own, ids, strict=True)]
        sides.append((hidden / hidden.norm(dim=1, keepdim=True), torch.tensor(own)))
    (y, wy), (x, wx) = sides
    similar = y @ x.T
    precision = float((similar.max(1).values * wy).sum() / wy.sum())
    recall = float((similar.max(0).values * wx).sum() / wx.sum())
    return [precision, recall, 2 * precision * recall / (precision + recall)]


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_bertscore_equals_the_formula_in_any_batch_and_order(encoder, batch):
    pairs = [(a, b) for a in TEXTS for b in TEXTS[:4]]
    expected = np.array([one_pair(encoder, a, b) for a, b in pairs])
    order = np.random.default_rng(batch).permutation(len(pairs))
    hypotheses, references = zip(*[pairs[i] for i in order], strict=True)
    # 45 tokens hold at most 7 of these texts; 1 token, one text.
    tokens = {1: 1, 2: 24, 7: 90}[batch]
    scores = em.bertscore_pairs(
        hypotheses, references, encoder=encoder, device="cpu", batch_tokens=tokens
    )
    assert np.abs(scores - expected[order]).max() < 1e-5


def test_a_pair_scores_the_same_alone_and_in_a_batch(encoder):
    """torchmetrics 1.9.0 fails here: it misaligns its length-sorted batches."""
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    alone = [em.bertscore_pairs([a], [b], encoder=encoder) for a, b in pairs]
    together = em.bertscore_pairs(*zip(*pairs, strict=True), encoder=encoder)
    assert np.abs(np.concatenate(alone) - together).max() < 1e-5


def test_scores_do_not_depend_on_how_much_is_held_in_memory(encoder, monkeypatch):
    pairs = [(a, b) for a in TEXTS for b in TEXTS]
    whole = em.bertscore_pairs(*zip(*pairs, strict=True), encoder=encoder)
    from importlib import import_module

    monkeypatch.setattr(
        import_module("lib.metrics.embedding_metrics.bertscore"), "BLOCK_TOKENS", 12
    )
    assert (
        np.abs(em.bertscore_pairs(*zip(*pairs, strict=True), encoder=encoder) - whole).max() < 1e-5
    )


def test_idf_weights_are_the_papers_and_come_from_stated_texts(encoder):
    stated = [*TEXTS[:4], "not tea, not coffee, not me"]  # a word counts once per text
    idf = em.document_frequencies(stated, encoder)
    tokenizer = checkpoints.load_encoder(encoder).tokenizer
    counts = {}
    for text in stated:
        for token in set(tokenizer(text)["input_ids"]):
            counts[token] = counts.get(token, 0) + 1
    expected = one_pair(
        encoder, TEXTS[5], TEXTS[2], lambda token: np.log(6 / (counts.get(token, 0) + 1))
    )
    assert em.bertscore_pairs([TEXTS[5]], [TEXTS[2]], encoder=encoder, idf=idf)[0] == pytest.approx(
        expected, abs=1e-5
    )


def test_equal_to_the_authors_package_pair_by_pair():
    from bert_score import BERTScorer

    folder = str(checkpoints.find(checkpoints.DEFAULT_ENCODER).folder)
    peer = BERTScorer(model_type=folder, num_layers=6, device="cpu")
    pairs = [(a, b) for a in TEXTS[:5] for b in TEXTS[2:]]
    theirs = [np.stack(peer.score([a], [b]), 1)[0] for a, b in pairs]
    ours = em.bertscore_pairs(*zip(*pairs, strict=True), device="cpu")
    assert np.abs(ours - theirs).max() < 1e-5


def test_the_authors_package_lets_padding_match_where_ours_does_not():
    """bert-score 0.3.13 sets padding to similarity 0, which beats a negative best match."""
    from bert_score import BERTScorer

    folder = str(checkpoints.find(checkpoints.DEFAULT_ENCODER).folder)
    peer = BERTScorer(model_type=folder, num_layers=6, device="cpu")
    pair = ("i dont.", "Big if true")
    long = ("the kettle sings when the water is hot enough", "a much longer sentence than that")
    alone = np.stack(peer.score([pair[0]], [pair[1]]), 1)[0]
    beside = np.stack(peer.score([pair[0], long[0]], [pair[1], long[1]]), 1)[0]
    ours = em.bertscore_pairs([pair[0], long[0]], [pair[1], long[1]], device="cpu")[0]
    assert np.abs(alone - beside).max() > 1e-3
    assert np.abs(ours - alone).max() < 1e-5


def test_roberta_keeps_its_prefix_space_where_the_package_lost_it(tmp_path):
    from bert_score.utils import get_tokenizer, sent_encode

    folder = str(tiny_models.roberta(tmp_path))
    lost = sent_encode(get_tokenizer(folder), "tea")
    kept = em.bertscore_pairs(["tea"], ["so tea"], encoder=folder)[0]
    model = checkpoints.load_encoder(folder)
    assert model.tokenizer("tea")["input_ids"] != lost
    assert model.tokenizer("tea")["input_ids"] == model.tokenizer(" tea")["input_ids"]
    assert kept == pytest.approx(one_pair(folder, "tea", "so tea"), abs=1e-5)


def test_one_layer_is_the_hidden_state_of_that_layer(tmp_path):
    folder = str(tiny_models.bert(tmp_path))
    model = checkpoints.load_encoder(folder)
    ids = torch.tensor([model.tokenizer("the kettle sings")["input_ids"]])
    with torch.no_grad():
        states = model.network(input_ids=ids, output_hidden_states=True).hidden_states
        first = checkpoints.load_encoder(folder, layers=1).network(input_ids=ids)
    assert torch.allclose(first.last_hidden_state, states[1], atol=1e-6)
    other = em.bertscore_pairs(["tea"], ["the kettle sings"], encoder=folder, layer=1)
    assert not np.allclose(other, em.bertscore_pairs(["tea"], ["the kettle sings"], encoder=folder))


@pytest.mark.parametrize("blank", [None, "", "   ", "\x00\x07", "\u200b\ufeff"])
def test_a_blank_text_is_undefined_not_zero(encoder, blank):
    """Also for a byte-level tokenizer, which has tokens for what cannot be seen."""
    pairs = [blank, "tea", "tea"], ["tea", blank, "tea"]
    scores = em.bertscore_pairs(*pairs, encoder=encoder)
    assert np.isnan(scores[:2]).all()
    assert scores[2] == pytest.approx([1, 1, 1], abs=1e-6)
    turns = pd.DataFrame({"response": pairs[0], "reference": [[text] for text in pairs[1]]})
    turns["context"] = turns["reference"]
    for similarity in (em.reference_similarity, em.context_similarity):
        found = similarity(turns, encoder=encoder)
        assert np.isnan(found[:2]).all() and found[2] == pytest.approx(1, abs=1e-6)


def test_rescaling_sends_the_baseline_to_zero_and_identity_to_one():
    baseline = em.bertscore_baseline(TEXTS, pairs=30, seed=1)
    assert ((baseline > 0) & (baseline < 1)).all()
    assert em.bertscore_pairs(["tea"], ["tea"], baseline=baseline)[0] == pytest.approx([1, 1, 1])
    raw = em.bertscore_pairs([TEXTS[0]], [TEXTS[2]])
    rescaled = em.bertscore_pairs([TEXTS[0]], [TEXTS[2]], baseline=baseline)
    assert rescaled == pytest.approx((raw - baseline) / (1 - baseline))
    with pytest.raises(ValueError, match="two different texts"):
        em.bertscore_baseline(["tea", "tea"])


def test_several_references_give_the_best_of_each_figure():
    turns = pd.DataFrame(
        {"response": [TEXTS[1], TEXTS[1], ""], "reference": [[TEXTS[2], TEXTS[6], ""], [], ["a"]]},
        index=[7, 3, 5],
    )
    scores = em.bertscore(turns)
    each = em.bertscore_pairs([TEXTS[1]] * 2, [TEXTS[2], TEXTS[6]])
    assert scores.loc[7].to_numpy() == pytest.approx(each.max(axis=0))
    assert scores.loc[[3, 5]].isna().all(axis=None)
    assert list(scores.index) == [7, 3, 5]


def test_long_and_odd_texts_are_scored():
    odd = ["word " * 4000, "🙂🙃", "a\u200bb", "\ufeff tea \x00", "tea" * 6000]
    scores = em.bertscore_pairs(odd, ["tea"] * len(odd))
    assert np.isfinite(scores).all()


def test_int8_stays_near_and_says_so_in_its_provenance():
    exact = em.bertscore_pairs(TEXTS[:6], TEXTS[1:], device="cpu")
    quick = em.bertscore_pairs(TEXTS[:6], TEXTS[1:], device="cpu", dtype="int8")
    assert 0 < np.abs(exact - quick).max() < 0.1
    assert em.bertscore_provenance(dtype="int8")["dtype"].startswith("int8")
    with pytest.raises(ValueError, match="CPU only"):
        checkpoints.load_encoder(dtype="int8", device="cuda")


def test_sentence_vectors_equal_sentence_transformers():
    from sentence_transformers import SentenceTransformer

    folder = str(checkpoints.find(checkpoints.DEFAULT_ENCODER).folder)
    texts = [*TEXTS, "word " * 400, "🙂"]
    theirs = SentenceTransformer(folder, device="cpu").encode(texts, normalize_embeddings=True)
    assert np.abs(em.sentence_vectors(texts, device="cpu") - theirs).max() < 1e-5


@pytest.mark.parametrize("tokens", [1, 24, 90])
def test_sentence_vectors_do_not_depend_on_the_batch(tokens):
    whole = em.sentence_vectors(TEXTS, device="cpu")
    assert np.abs(em.sentence_vectors(TEXTS[::-1], batch_tokens=tokens)[::-1] - whole).max() < 1e-5


def test_similarities_take_the_best_reference_and_the_last_turn_of_the_context():
    turns = pd.DataFrame(
        {
            "response": [TEXTS[1], TEXTS[1], ""],
            "reference": [[TEXTS[2], TEXTS[6]], [], ["a"]],
            "context": [[TEXTS[2], TEXTS[6]], [], [TEXTS[0]]],
        }
    )
    v = em.sentence_vectors([TEXTS[1], TEXTS[2], TEXTS[6]])
    assert em.reference_similarity(turns)[0] == pytest.approx(
        max(v[0] @ v[1], v[0] @ v[2]), abs=1e-6
    )
    assert em.context_similarity(turns)[0] == pytest.approx(v[0] @ v[2], abs=1e-6)
    assert em.reference_similarity(turns)[1:].isna().all()
    assert em.context_similarity(turns)[1:].isna().all()


def peak(function, *given) -> int:
    """Most bytes that Python and numpy held while a function ran, beyond its input."""
    tracemalloc.start()
    try:
        function(*given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def varied(rows: int) -> pd.DataFrame:
    """Each response twice, far apart, and each reference once."""
    said = [f"tea number {row % (rows // 2)} of the day" for row in range(rows)]
    gold = [[f"rain number {row} of the day"] for row in range(rows)]
    return pd.DataFrame({"response": said, "reference": gold})


@pytest.mark.parametrize("metric", [em.bertscore, em.reference_similarity])
def test_memory_does_not_grow_with_the_corpus(metric, tmp_path, monkeypatch):
    """The vectors of one text take 14 kB here: those of 450 texts more, 6 MB."""
    module = sys.modules[metric.__module__]
    monkeypatch.setattr(module, "BLOCK_TOKENS", 500, raising=False)
    monkeypatch.setattr(module, "PAIRS", 50, raising=False)
    config = {**tiny_models.BERT, "hidden_size": 512, "num_hidden_layers": 1}
    monkeypatch.setattr(tiny_models, "BERT", config)
    folder = str(tiny_models.bert(tmp_path))

    def run(turns):
        return metric(turns, encoder=folder, device="cpu")

    run(varied(10))
    few, many = peak(run, varied(300)), peak(run, varied(600))
    assert many - few < 300 * 2000


def test_one_pair_said_over_and_over_is_matched_once(monkeypatch):
    """A block is bounded by its different texts, so equal pairs must not fill it."""
    turns = pd.DataFrame({"response": ["tea"] * 20_000, "reference": [["i like tea"]] * 20_000})
    em.bertscore(turns[:5])
    assert peak(em.bertscore, turns) < 20_000 * 500


def test_no_rows_at_all_give_empty_columns():
    turns = pd.DataFrame({"response": [], "reference": [], "context": []})
    assert em.bertscore(turns).shape == (0, 3)
    assert em.reference_similarity(turns).shape == (0,)
