"""Likelihood metrics against plain torch, one row at a time and in batches of 1, 2 and 7."""

import random

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch

from lib import models as checkpoints
from lib.metrics import likelihood_metrics as lm

TURNS = pd.DataFrame(
    {
        "context": [
            ["do you like tea?"],
            ["hi", "the kettle sings"],
            ["my sister plays"],
            ["that sounds like a lot of fun", "yes", "No, not really"],
            [],
            ["hello there"],
            ["so what"],
        ],
        "response": [
            "Yes, I do!",
            "coffee keeps me awake at night",
            "fun",
            "my sister plays the trumpet in a band",
            "tea",
            "",
            "really?",
        ],
        "reference": [
            ["I do", "no"],
            ["tea"],
            ["in a band"],
            ["the water"],
            ["a"],
            ["b"],
            [],
        ],
    },
    index=[5, 3, 9, 1, 0, 7, 2],
)
FOLLOW_UPS = {
    "lively": {"positive": ["that is fun", "tell me about it"], "negative": ["that is dull"]},
    "clear": {"positive": [], "negative": ["I do not follow", "what now"]},
}


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    return str(tiny_models.bart(tmp_path_factory.mktemp("bart")))


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return str(tiny_models.m2m100(tmp_path_factory.mktemp("m2m100")))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return str(tiny_models.gpt2(tmp_path_factory.mktemp("gpt2")))


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    return str(tiny_models.masked_bert(tmp_path_factory.mktemp("masked")))


def shuffled(function, **options):
    """Score in a shuffled order and put the rows back."""
    order = np.random.default_rng(0).permutation(len(TURNS))
    return function(TURNS.iloc[order], device="cpu", **options).loc[TURNS.index]


def given(network, source, target):
    """-loss of the model's own forward pass on one unpadded pair."""
    with torch.no_grad():
        return -float(network(input_ids=torch.tensor([source]), labels=torch.tensor([target])).loss)


def test_bartscore_is_the_mean_log_probability_in_each_direction(bart, batches):
    model = checkpoints.load_seq2seq(bart, device="cpu")

    def s(a, b):
        if not (a.strip() and b.strip()):
            return np.nan
        return given(model.network, *(model.tokenizer(text)["input_ids"] for text in (a, b)))

    scores = shuffled(lm.bartscore, checkpoint=bart)
    for key, turn in TURNS.iterrows():
        to_response = [s(r, turn.response) for r in turn.reference] or [np.nan]
        to_reference = [s(turn.response, r) for r in turn.reference] or [np.nan]
        p, r = max(to_response), max(to_reference)
        expected = [s(" ".join(turn.context), turn.response), p, r, (p + r) / 2, p * r / (p + r)]
        assert scores.loc[key].to_numpy() == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert list(scores.columns) == [
        "bartscore_context_to_response", "bartscore_reference_to_response",
        "bartscore_response_to_reference", "bartscore_f_mean", "bartscore_f_harmonic",
    ]  # fmt: skip


def test_references_can_be_averaged(bart):
    best = lm.bartscore(TURNS, checkpoint=bart).loc[5]
    mean = lm.bartscore(TURNS, checkpoint=bart, multiple="mean").loc[5]
    each = [
        lm.bartscore(TURNS.loc[[5]].assign(reference=[[text]]), checkpoint=bart).loc[5]
        for text in TURNS.loc[5, "reference"]
    ]
    column = "bartscore_reference_to_response"
    assert mean[column] == pytest.approx((each[0][column] + each[1][column]) / 2)
    assert best[column] == pytest.approx(max(e[column] for e in each))
    with pytest.raises(ValueError, match="'max' or 'mean'"):
        lm.bartscore(TURNS, checkpoint=bart, multiple="min")


def test_prism_style_skips_the_language_tag(translator, batches):
    model = checkpoints.load_seq2seq(translator, device="cpu")
    tokenizer, network = model.tokenizer, model.network

    def p(a, b):
        """Log-probability of b given a, token after token, without the tag."""
        if not (a.strip() and b.strip()):
            return np.nan
        tag, end = tokenizer.convert_tokens_to_ids("__en__"), tokenizer.eos_token_id
        source, target = (
            [tag, *tokenizer(text, add_special_tokens=False)["input_ids"], end] for text in (a, b)
        )
        said, logs = [network.config.decoder_start_token_id], []
        for token in target:
            with torch.no_grad():
                output = network(
                    input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([said])
                )
            logs.append(float(output.logits[0, -1].log_softmax(-1)[token]))
            said.append(token)
        return float(np.mean(logs[1:]))

    scores = shuffled(lm.prism_style, checkpoint=translator)
    for key in (5, 3, 0, 7, 2):
        turn = TURNS.loc[key]
        before = " ".join(turn.context)
        both = [(p(r, turn.response) + p(turn.response, r)) / 2 for r in turn.reference]
        src = p(before, turn.response)
        expected = [max(both, default=np.nan), src, (src + p(turn.response, before)) / 2]
        assert scores.loc[key].to_numpy() == pytest.approx(expected, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("metric", ["bartscore", "prism_style"])
def test_a_long_text_is_cut_at_its_end_and_keeps_its_special_tokens(metric, bart, translator):
    """The tiny models take 128 tokens."""
    checkpoint = {"bartscore": bart, "prism_style": translator}[metric]
    model = checkpoints.load_seq2seq(checkpoint, device="cpu")
    long, short = " ".join(str(number * 7919 % 1000) for number in range(200)), "tea"
    first = "__en__" if metric == "prism_style" else "<s>"
    ends = model.tokenizer.convert_tokens_to_ids([first, "</s>"])
    ids = [
        [ends[0], *model.tokenizer(text, add_special_tokens=False)["input_ids"][:126], ends[1]]
        for text in (long, short)
    ]
    assert [len(row) for row in ids] == [128, len(ids[1])]
    turns = TURNS.loc[[5]].assign(context=[[long]], response=[short], reference=[[]])
    found = getattr(lm, metric)(turns, checkpoint=checkpoint, device="cpu")
    skip = int(metric == "prism_style")
    start = torch.tensor([[model.network.config.decoder_start_token_id, *ids[1][:-1]]])
    with torch.no_grad():
        logits = model.network(input_ids=torch.tensor(ids[:1]), decoder_input_ids=start).logits[0]
    logs = logits.log_softmax(-1)[range(len(ids[1])), ids[1]]
    column = {
        "bartscore": "bartscore_context_to_response",
        "prism_style": "prism_style_response_given_context",
    }[metric]
    assert found.loc[5, column] == pytest.approx(float(logs[skip:].mean()), abs=1e-5)


def test_prism_style_needs_a_language_tag(translator):
    with pytest.raises(ValueError, match="__fr__"):
        lm.prism_style(TURNS, checkpoint=translator, language="fr")


def test_fed_is_the_loss_over_all_tokens_whatever_the_padding(gpt2, batches):
    """Padding with EOS and averaging over it, as a known batched version does, changes signs."""
    model = checkpoints.load_causal(gpt2, device="cpu")

    def loss(text):
        ids = torch.tensor([model.tokenizer("<|endoftext|> " + text)["input_ids"]])
        with torch.no_grad():
            return float(model.network(input_ids=ids, labels=ids).loss)

    scores = shuffled(lm.fed, checkpoint=gpt2, utterances=FOLLOW_UPS)
    for key, turn in TURNS.iterrows():
        if not turn.response:
            assert scores.loc[key].isna().all()
            continue
        talk = " <|endoftext|> ".join([*turn.context, turn.response]) + " <|endoftext|> "
        for name, said in FOLLOW_UPS.items():
            low = sum(loss(talk + text) for text in said["negative"]) / len(said["negative"])
            high = sum(loss(talk + text) for text in said["positive"]) / max(
                len(said["positive"]), 1
            )
            assert scores.loc[key, f"fed_{name}"] == pytest.approx(low - high, abs=1e-5)


def test_fed_cuts_the_oldest_tokens_of_a_long_conversation(gpt2):
    turn = TURNS.loc[[5]]
    long = turn.assign(context=[["word " * 300, "do you like tea?"]])
    longer = turn.assign(context=[["other " * 900, "word " * 300, "do you like tea?"]])
    first, second = (lm.fed(t, checkpoint=gpt2, utterances=FOLLOW_UPS) for t in (long, longer))
    assert np.isfinite(first.to_numpy()).all()
    assert first.to_numpy() == pytest.approx(second.to_numpy(), abs=1e-6)


def test_follow_ups_are_read_as_text_and_never_run(tmp_path):
    file = tmp_path / "fed.py"
    file.write_text(
        "raise SystemExit('this file was run')\n"
        "def evaluate():\n"
        "  turn_level_utts = {'lively': {'positive': ['fun'], 'negative': []}}\n"
        "  dialog_level_utts = {'deep': {'positive': [], 'negative': ['dull'],}}\n"
    )
    assert lm.follow_ups(file) == {
        "lively": {"positive": ["fun"], "negative": []},
        "deep": {"positive": [], "negative": ["dull"]},
    }
    file.with_name("other.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="is it FED's fed.py"):
        lm.follow_ups(file.with_name("other.py"))


def test_masked_surprisal_masks_one_token_at_a_time(masked, batches):
    model = checkpoints.load_masked(masked, device="cpu")
    texts = ["tea", "do you like tea ?", "", "my sister plays the trumpet"]
    expected = []
    for text in texts:
        ids, total = model.tokenizer(text)["input_ids"], 0.0
        for place in range(1, len(ids) - 1):
            hidden = torch.tensor([ids])
            hidden[0, place] = model.tokenizer.mask_token_id
            with torch.no_grad():
                logits = model.network(input_ids=hidden).logits[0, place]
            total -= float(logits.log_softmax(-1)[ids[place]])
        expected.append(total if text else np.nan)
    assert lm.masked_surprisal(model, texts) == pytest.approx(expected, rel=1e-5, nan_ok=True)


def test_masked_surprisal_reads_what_the_model_takes(masked):
    model = checkpoints.load_masked(masked, device="cpu")
    words = ["tea", "trumpet"] * model.positions
    known = " ".join(words[: model.positions - 2])  # and two special tokens
    found, expected = lm.masked_surprisal(model, [" ".join(words), known])
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judges")
    encoder = str(tiny_models.bert(folder / "encoder"))
    said = [text for text in TURNS["response"] if text] * 3
    before = ["do you like tea ?"] * len(said)
    options = {"encoder": encoder, "device": "cpu", "batch": 4, "rate": 1e-5}
    lm.train_valid_utterance(said, **options)[0].save(folder / "valid")
    lm.train_next_utterance(before, said, **options)[0].save(folder / "sensible")
    return str(folder / "valid"), str(folder / "sensible")


def judged(folder, ids, types):
    """A judge's probability, with max pooling over one unpadded row."""
    judge = lm.load_judge(folder)
    with torch.no_grad():
        hidden = judge.network(
            input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types])
        ).last_hidden_state[0]
        return float(judge.head(hidden.max(0).values).softmax(-1)[1])


def test_usl_h_is_the_shipped_composition_of_its_parts(judges, masked, batches):
    options = {"valid": judges[0], "sensible": judges[1], "masked": masked}
    scores = shuffled(lm.usl_h, quartiles=(20.0, 60.0), **options)
    model = checkpoints.load_masked(masked, device="cpu")
    token = model.tokenizer
    for key in (5, 3, 1):
        turn = TURNS.loc[key]
        a = token(turn.context[-1], add_special_tokens=False)["input_ids"][-25:]
        b = token(turn.response, add_special_tokens=False)["input_ids"]
        u = judged(judges[0], [101, *b[:23], 102], [0] * (len(b[:23]) + 2))
        kinds = [0] * (len(a) + 2) + [1] * (len(b[:25]) + 1)
        s = judged(judges[1], [101, *a, 102, *b[:25], 102], kinds)
        nll = lm.masked_surprisal(model, [turn.response])[0]
        likely = (min(max(nll, 20), 60) - 20) / 40
        expected = [u, s, likely, 0.33 * u + 0.33 * s + 0.34 * s * likely]
        assert scores.loc[key].to_numpy() == pytest.approx(expected, abs=1e-5)
    assert scores.loc[7].isna().all()  # empty response
    assert scores.loc[0].isna().tolist() == [False, True, False, True]  # no context


def test_usl_h_without_a_masked_model_has_no_composition(judges):
    scores = lm.usl_h(TURNS, valid=judges[0], sensible=judges[1], masked=None)
    assert scores["usl_h"].isna().all() and scores["usl_h_valid"].notna().sum() == 6
    with pytest.raises(ValueError, match="quartiles"):
        lm.usl_h(TURNS, valid=judges[0], sensible=judges[1], masked="bert")


@pytest.mark.parametrize("blank", [None, "", " \n", "\x00\x07", "\u200b\ufeff"])
def test_a_blank_response_has_no_likelihood(bart, translator, gpt2, judges, masked, blank):
    turns = TURNS.loc[[5, 3]].assign(response=[blank, "tea"])
    parts = {"valid": judges[0], "sensible": judges[1], "masked": masked, "quartiles": (1, 9)}
    for scores in (
        lm.bartscore(turns, checkpoint=bart),
        lm.prism_style(turns, checkpoint=translator),
        lm.fed(turns, checkpoint=gpt2, utterances=FOLLOW_UPS),
        lm.usl_h(turns, **parts),
    ):
        assert scores.loc[5].isna().all() and scores.loc[3].notna().all()


def test_a_blank_context_or_reference_counts_as_none(bart, judges, masked):
    turns = TURNS.loc[[5]].assign(context=[["\x00"]], reference=[["\x07", " "]])
    assert lm.bartscore(turns, checkpoint=bart).isna().all(axis=None)
    options = {"valid": judges[0], "sensible": judges[1], "masked": masked, "quartiles": (1, 9)}
    scores = lm.usl_h(turns, **options)
    assert scores.notna().to_numpy().tolist() == [[True, False, True, False]]
    assert lm.usl_h(turns.assign(response=[""]), **options).isna().all(axis=None)


def test_the_compositions_differ_where_they_should():
    shipped = 0.33 * 0.2 + 0.33 * 0.9 + 0.34 * 0.45
    assert lm.usl_h_composition(0.2, 0.9, 0.5) == pytest.approx(shipped)
    assert lm.usl_h_composition(0.2, 0.9, 0.5, "H") == pytest.approx(
        0.33 * 0.2 + 0.33 * 0.18 + 0.34 * 0.09
    )
    with pytest.raises(ValueError, match="'HS'"):
        lm.usl_h_composition(1, 1, 1, "US")


def test_broken_texts_are_broken_and_seeded():
    words = ["we", "walk", "home", "in", "the", "rain", "tonight"]
    draw, again = random.Random(0), random.Random(0)
    broken = [lm.make_invalid(words, draw) for _ in range(300)]
    assert broken == [lm.make_invalid(words, again) for _ in range(300)]
    assert all(text != words and text for text in broken)
    reordered = sum(sorted(text) == sorted(words) for text in broken) / 300
    repeated = sum(len(text) > len(words) for text in broken) / 300
    assert reordered == pytest.approx(0.3, abs=0.08)
    assert repeated == pytest.approx(0.4, abs=0.08)


def test_a_judge_learns_what_it_is_trained_on(tmp_path):
    """On texts that are trivially valid or broken, the loss falls and held-out texts are told."""
    said = [f"{a} {b} {c}" for a in ("i", "we") for b in ("like", "want") for c in ("tea", "rain")]
    judge, losses = lm.train_valid_utterance(
        said * 8, epochs=3, rate=3e-4, batch=16, device="cpu", seed=0
    )
    assert losses[-1] < 0.7 * losses[0]
    valid, broken = judge.probability(None, ["they like tea", "tea like tea tea they"])
    assert valid > broken


def test_training_is_the_same_twice(tmp_path):
    said = ["we like tea", "they want rain", "it is late"] * 4
    options = {"device": "cpu", "seed": 3, "freeze": True}
    first, again = (lm.train_next_utterance(said, said[::-1], **options)[0] for _ in range(2))
    assert torch.equal(first.head.weight, again.head.weight)
    untouched = checkpoints.load_encoder(device="cpu").network.state_dict()
    assert torch.equal(
        first.network.state_dict()["embeddings.word_embeddings.weight"],
        untouched["embeddings.word_embeddings.weight"],
    )


def test_mauve_is_the_packages_on_stated_features(gpt2):
    from mauve import compute_mauve

    generator = random.Random(0)
    words = ["tea", "rain", "home", "band", "water", "kettle", "night", "fun"]
    p, q = ([" ".join(generator.choices(words[i:], k=4)) for _ in range(40)] for i in (0, 3))
    with pytest.warns(UserWarning, match="40 and 40 texts"):
        found = lm.mauve(p, q, encoder=gpt2, num_buckets=4)
    model = checkpoints.load_causal(gpt2, device="cpu")
    with torch.no_grad():
        features = [
            np.stack([
                model.network(
                    input_ids=torch.tensor([model.tokenizer(text)["input_ids"]]),
                    output_hidden_states=True,
                ).hidden_states[-1][0, -1].numpy()
                for text in texts
            ])
            for texts in (q, p)
        ]  # fmt: skip
    theirs = compute_mauve(
        p_features=features[0], q_features=features[1], num_buckets=4, verbose=False
    )
    assert found["mauve"] == pytest.approx(theirs.mauve, abs=1e-5)
    assert found["buckets"] == 4


@pytest.mark.parametrize("bad", [(TURNS, ["a"]), ("one text", ["a", "b"]), (["one"], ["a", "b"])])
def test_mauve_of_a_single_turn_is_refused(bad):
    with pytest.raises(ValueError, match="two sets of texts"):
        lm.mauve(*bad)


def test_fed_names_the_follow_ups_that_were_used(gpt2, tmp_path):
    """By checksum, not by path: an edited file is another metric."""
    file = tmp_path / "fed.py"
    file.write_text("one")
    named = [lm.fed_provenance(checkpoint=gpt2, follow_ups_file=str(file))["follow_ups"]]
    file.write_text("two")
    named += [lm.fed_provenance(checkpoint=gpt2, follow_ups_file=str(file))["follow_ups"]]
    named += [lm.fed_provenance(checkpoint=gpt2, utterances=FOLLOW_UPS)["follow_ups"]]
    named += [lm.fed_provenance(checkpoint=gpt2)["follow_ups"]]
    assert len(set(named)) == 4


def test_judges_read_the_end_of_the_context_and_the_start_of_the_response(judges):
    judge = lm.load_judge(judges[1])
    context, response = ["one " * 30 + "tea"], ["rain " + "two " * 40]
    (before, said), *_ = judge.encode(context, response)
    assert judge.tokenizer.decode(before).split() == ["one"] * 24 + ["tea"]
    assert judge.tokenizer.decode(said).split() == ["rain"] + ["two"] * 24
    ((_, alone),) = judge.encode(None, response)  # 25 with [CLS] and [SEP]
    assert judge.tokenizer.decode(alone).split() == ["rain"] + ["two"] * 22


def test_the_judges_of_these_tests_tell_texts_apart(judges):
    """Else a judge that read the wrong turn would pass for one that read the right one."""
    for folder, contexts in ((judges[0], None), (judges[1], ["hi"] * 3)):
        said = lm.load_judge(folder).probability(contexts, ["fun", "tea", "coffee keeps me awake"])
        assert np.ptp(said) > 1e-4
    before = lm.load_judge(judges[1]).probability(["hi", "the kettle sings"], ["fun"] * 2)
    assert np.ptp(before) > 5e-5
