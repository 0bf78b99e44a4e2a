"""USL-H: its judges, its surprisal and their composition, against plain torch."""

import random

import numpy as np
import pytest
import tiny_models
import torch
from test_likelihood import TURNS, shuffled

from lib import metrics, models
from lib.metrics.usl_h import encode_pairs, masked_surprisal


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    return str(tiny_models.masked_bert(tmp_path_factory.mktemp("masked")))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Both classifiers, on a tiny random encoder."""
    encoder = str(tiny_models.bert(tmp_path_factory.mktemp("encoder")))
    options = {"encoder": encoder, "device": "cpu", "learning_rate": 1e-5}
    said = [text for text in TURNS["response"] if text] * 3
    before = ["do you like tea ?"] * len(said)
    valid, _ = metrics.train_valid_utterance(said, **options)
    sensible, _ = metrics.train_next_utterance(before, said, **options)
    return {"valid": valid, "sensible": sensible}


def test_masked_surprisal_masks_one_token_at_a_time(masked, batches):
    model = models.load_masked(masked, device="cpu")
    texts = ["tea", "do you like tea ?", "", "my sister plays the trumpet"]
    expected = []
    for text in texts:
        ids = model.tokenizer(text)["input_ids"]
        total = 0.0
        for position in range(1, len(ids) - 1):
            hidden = torch.tensor([ids])
            hidden[0, position] = model.tokenizer.mask_token_id
            with torch.no_grad():
                logits = model.network(input_ids=hidden).logits[0, position]
            total -= float(logits.log_softmax(-1)[ids[position]])
        expected.append(total if text else np.nan)
    found = masked_surprisal(model, texts)
    assert found == pytest.approx(expected, rel=1e-5, nan_ok=True)


def probability(classifier, ids, types):
    """A classifier's probability, with max pooling over one unpadded row."""
    with torch.no_grad():
        hidden = classifier.model.network(
            input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types])
        ).last_hidden_state[0]
        return float(classifier.head(hidden.max(0).values).softmax(-1)[1])


def test_usl_h_is_the_shipped_composition_of_its_parts(trained, masked, batches):
    scores = shuffled(metrics.usl_h, quartiles=(20.0, 60.0), masked=masked, **trained)
    model = models.load_masked(masked, device="cpu")
    for key in (5, 3, 1):
        turn = TURNS.loc[key]
        said = [turn.context[-1], turn.response]
        a, b = model.tokenizer(said, add_special_tokens=False)["input_ids"]
        u = probability(trained["valid"], [101, *b, 102], [0] * (len(b) + 2))
        kinds = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        s = probability(trained["sensible"], [101, *a, 102, *b, 102], kinds)
        nll = masked_surprisal(model, [turn.response])[0]
        likely = (min(max(nll, 20), 60) - 20) / 40
        expected = [u, s, likely, 0.33 * u + 0.33 * s + 0.34 * s * likely]
        assert scores.loc[key].to_numpy() == pytest.approx(expected, abs=1e-5)
    assert scores.loc[7].isna().all()  # empty response
    assert scores.loc[0].isna().tolist() == [False, True, False, True]  # no context


def test_usl_h_without_a_masked_model_has_no_composition(trained):
    scores = metrics.usl_h(TURNS, **trained)
    assert scores["usl_h"].isna().all()
    assert scores["usl_h_valid"].notna().sum() == 6
    with pytest.raises(
        ValueError, match="its classifiers are trained first: call lib.metrics.usl_h"
    ):
        metrics.compute(TURNS, ["usl_h"])


def test_broken_texts_are_broken_and_seeded():
    words = ["we", "walk", "home", "in", "the", "rain", "tonight"]
    draw, again = random.Random(0), random.Random(0)
    broken = [metrics.make_invalid(words, draw) for _ in range(300)]
    assert broken == [metrics.make_invalid(words, again) for _ in range(300)]
    assert all(text != words and text for text in broken)
    reordered = sum(sorted(text) == sorted(words) for text in broken) / 300
    repeated = sum(len(text) > len(words) for text in broken) / 300
    assert (reordered, repeated) == (
        pytest.approx(0.3, abs=0.08),
        pytest.approx(0.4, abs=0.08),
    )


def test_a_classifier_learns_what_it_is_trained_on_and_leaves_the_encoder_as_it_was():
    """On texts that are trivially valid or broken, the loss falls and held-out texts are told."""
    said = [
        f"{a} {b} {c}"
        for a in ("i", "we")
        for b in ("like", "want")
        for c in ("tea", "rain")
    ]
    loaded = models.load_encoder(device="cpu").network
    before = loaded.embeddings.word_embeddings.weight.clone()
    classifier, losses = metrics.train_valid_utterance(
        said * 8, epochs=4, learning_rate=5e-4, device="cpu"
    )
    assert losses[-1] < 0.7 * losses[0]
    valid, broken = classifier.probability(
        None, ["they like tea", "tea like tea tea they"]
    )
    assert valid > broken
    assert torch.equal(loaded.embeddings.word_embeddings.weight, before)


# Beyond 50 tokens together: the last 25 of the context, the first 25 of the response. Then, for
# three special tokens, the longer part loses its last ones, the response where both are equal.
CUTS = [((30, 8), (0, 30, 8)), ((25, 25), (0, 24, 23)), ((40, 8), (0, 39, 8))]
CUTS += [((26, 25), (1, 25, 23)), ((60, 60), (35, 59, 23))]


@pytest.mark.parametrize(("sizes", "kept"), CUTS)
def test_a_pair_is_cut_as_the_authors_cut_it(trained, sizes, kept):
    """Defect N7: both parts were always cut to 25, and the pair was never cut to 50."""
    model = trained["sensible"].model
    words = [
        w
        for w in model.tokenizer.convert_ids_to_tokens(range(2000, 2200))
        if w.isalpha()
    ]
    context, response = words[: sizes[0]], words[-sizes[1] :]
    (ids,), (types,) = encode_pairs(model, [" ".join(context)], [" ".join(response)])
    a, b = context[kept[0] : kept[1]], response[: kept[2]]
    assert model.tokenizer.convert_ids_to_tokens(ids) == [
        "[CLS]",
        *a,
        "[SEP]",
        *b,
        "[SEP]",
    ]
    assert types == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    (alone,), _ = encode_pairs(model, None, [" ".join(response)])
    assert model.tokenizer.convert_ids_to_tokens(alone) == [
        "[CLS]",
        *response[:23],
        "[SEP]",
    ]
