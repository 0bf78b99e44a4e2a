"""Likelihood metrics against plain torch, one row at a time and in batches of 1, 2 and 7."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch

from lib import ROOT, metrics, models
from lib.metrics.likelihood import segment_log_probabilities

TURNS = pd.DataFrame(
    [
        (["do you like tea?"], "Yes, I do!", ["I do", "no"]),
        (["hi", "the kettle sings"], "coffee keeps me awake at night", ["tea"]),
        (["my sister plays"], "fun", ["in a band"]),
        (["like fun", "yes", "No, not really"], "my sister plays the trumpet", ["the water"]),
        ([], "tea", ["a"]),
        (["hello there"], "", ["b"]),
        (["so what"], "really?", []),
    ],
    [5, 3, 9, 1, 0, 7, 2],
    ["context", "response", "reference"],
)
FOLLOW_UPS = {
    "lively": {"positive": ["that is fun", "tell me about it"], "negative": ["that is dull"]},
    "clear": {"positive": [], "negative": ["I do not follow", "what now"]},
}
BLANKS = [None, "", " \n", "\x00\x07", "\u200b\ufeff"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Folders of tiny random models, by architecture."""
    makers = ("bart", "m2m100", "gpt2", "masked_bert", "bert")
    root = tmp_path_factory.mktemp("tiny")
    return {name: str(getattr(tiny_models, name)(root / name)) for name in makers}


def shuffled(function, turns=TURNS, **options):
    """Score in a shuffled order and put the rows back; an empty context may also be missing."""
    order = np.random.default_rng(0).permutation(len(turns))
    turns = turns.assign(context=[context or None for context in turns["context"]])
    return function(turns.iloc[order], device="cpu", **options).loc[turns.index]


def token_by_token(network, source, target):
    """Log-probability of each target token, one forward pass for each."""
    said, logs = [network.config.decoder_start_token_id], []
    for token in target:
        with torch.no_grad():
            output = network(
                input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([said])
            )
        logs.append(float(output.logits[0, -1].log_softmax(-1)[token]))
        said.append(token)
    return logs


def mean_given(model, a, b):
    """-loss of the model's own forward pass on one unpadded pair of texts."""
    if not (a.strip() and b.strip()):
        return np.nan
    source, target = (torch.tensor([model.tokenizer(text)["input_ids"]]) for text in (a, b))
    with torch.no_grad():
        return -float(model.network(input_ids=source, labels=target).loss)


def test_bartscore_is_the_mean_log_probability_in_each_direction(tiny, batches):
    model = models.load_seq2seq(tiny["bart"], device="cpu")
    scores = shuffled(metrics.bartscore, checkpoint=tiny["bart"])
    for key, turn in TURNS.iterrows():
        to_response = [mean_given(model, r, turn.response) for r in turn.reference] or [np.nan]
        to_reference = [mean_given(model, turn.response, r) for r in turn.reference] or [np.nan]
        before = mean_given(model, " ".join(turn.context), turn.response)
        p, r = max(to_response), max(to_reference)
        expected = [before, p, r, (p + r) / 2, p * r / (p + r)]
        assert scores.loc[key].to_numpy() == pytest.approx(expected, abs=1e-5, nan_ok=True)
    names = ("context_to_response", "reference_to_response", "response_to_reference")
    names += ("f_mean", "f_harmonic")
    assert list(scores.columns) == [f"bartscore_{name}[bart]" for name in names]


def test_prism_style_skips_the_language_tag(tiny, batches):
    model = models.load_seq2seq(tiny["m2m100"], device="cpu")
    tag, end = model.tokenizer.convert_tokens_to_ids("__en__"), model.tokenizer.eos_token_id

    def p(a, b):
        if not (a.strip() and b.strip()):
            return np.nan
        source, target = (
            [tag, *model.tokenizer(text, add_special_tokens=False)["input_ids"], end]
            for text in (a, b)
        )
        return float(np.mean(token_by_token(model.network, source, target)[1:]))

    scores = shuffled(metrics.prism_style, checkpoint=tiny["m2m100"])
    for key in (5, 3, 0, 7, 2):
        turn = TURNS.loc[key]
        before = " ".join(turn.context)
        both = [(p(r, turn.response) + p(turn.response, r)) / 2 for r in turn.reference]
        forward = p(before, turn.response)
        backward = (forward + p(turn.response, before)) / 2
        expected = [max(both, default=np.nan), forward, backward]
        assert scores.loc[key].to_numpy() == pytest.approx(expected, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize(
    "metric, name, first, column",
    [
        ("bartscore", "bart", "<s>", "bartscore_context_to_response"),
        ("prism_style", "m2m100", "__en__", "prism_style_response_given_context"),
    ],
)
def test_a_long_text_is_cut_at_its_end_and_keeps_its_special_tokens(
    tiny, metric, name, first, column
):
    """The tiny models take 128 tokens."""
    model = models.load_seq2seq(tiny[name], device="cpu")
    long, short = " ".join(str(number * 7919 % 1000) for number in range(200)), "tea"
    start, end = model.tokenizer.convert_tokens_to_ids([first, "</s>"])
    source, target = (
        [start, *model.tokenizer(text, add_special_tokens=False)["input_ids"][:126], end]
        for text in (long, short)
    )
    assert len(source) == 128
    turns = TURNS.loc[[5]].assign(context=[[long]], response=[short], reference=[[]])
    found = getattr(metrics, metric)(turns, checkpoint=tiny[name], device="cpu")
    column += "[bart]" if name == "bart" else ""
    logs = token_by_token(model.network, source, target)[int(metric == "prism_style") :]
    assert found.loc[5, column] == pytest.approx(np.mean(logs), abs=1e-5)


def spoken(model, given, said):
    """Mean log-probability of the tokens of `said` after `given`: one plain pass for one text."""
    before, ids = ([*model.tokenizer(text)["input_ids"]] for text in (given, said))
    before = [model.tokenizer.bos_token_id or model.tokenizer.eos_token_id, *before]
    with torch.no_grad():
        logs = model.network(torch.tensor([before + ids])).logits[0].log_softmax(-1)
    return float(np.mean([logs[len(before) + i - 1, token] for i, token in enumerate(ids)]))


@pytest.mark.parametrize("name", ["gpt2", models.SMOLLM2])
def test_log_likelihood_is_that_of_one_plain_pass_for_each_text(tiny, name, monkeypatch):
    """On random weights and on the packaged ones, in batches that hold one path or several."""
    checkpoint = tiny.get(name, name)
    model = models.load_causal(checkpoint, device="cpu")
    scores = shuffled(metrics.log_likelihood, checkpoint=checkpoint, last=2)
    for key, turn in TURNS.drop(index=7).iterrows():
        lines = [f"{text}\n" for text in turn.context[-2:]]
        alone = spoken(model, "", f"{turn.response}\n")
        given = spoken(model, "".join(lines), f"{turn.response}\n") if lines else np.nan
        expected = pytest.approx([given, alone, given - alone], abs=1e-4, nan_ok=True)
        assert scores.loc[key].to_numpy() == expected
    assert scores.loc[7].isna().all()
    assert scores.columns[0] == f"log_likelihood[{name}]"


def test_bartscore_of_a_left_to_right_model_reads_lines(tiny):
    model = models.load_causal(tiny["gpt2"], device="cpu")
    scores = shuffled(metrics.bartscore, checkpoint=tiny["gpt2"]).loc[3]
    turn = TURNS.loc[3]
    before = spoken(model, "".join(f"{text}\n" for text in turn.context), f"{turn.response}\n")
    recall = spoken(model, f"{turn.response}\n", f"{turn.reference[0]}\n")
    expected = [before, recall]
    assert scores.iloc[[0, 2]].to_numpy() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("tokens", [1, 30, 10_000])
def test_what_paths_share_is_read_once(tiny, tokens, monkeypatch):
    model, read = models.load_causal(tiny["gpt2"], device="cpu"), []
    network = type(model.network)
    forward = network.forward

    def counted(self, input_ids, **given):
        read.append(input_ids.numel())
        return forward(self, input_ids=input_ids, **given)

    monkeypatch.setattr(network, "forward", counted)
    paths = [((5, 6, 7), (a, 8), (b, 9, 10)) for a in (11, 12) for b in (13, 14, 15)]
    found = segment_log_probabilities(model, [*paths, paths[0]], tokens)
    assert sum(read) == {1: 6 * 8, 30: 3 + 2 * (2 + 3 * 3), 10_000: 3 + 2 * (2 + 3 * 3)}[tokens]
    for path, sums in zip([*paths, paths[0]], found, strict=True):
        ids = torch.tensor([sum(path, ())])
        with torch.no_grad():
            logs = forward(model.network, input_ids=ids).logits[0, :-1].log_softmax(-1)
        each = logs.gather(1, ids[0, 1:, None])[:, 0]
        expected = [float(part.sum()) for part in each.split([2, 2, 3])]
        assert sums == pytest.approx(expected, abs=1e-4)


def test_fed_is_the_loss_over_all_tokens_whatever_stands_beside_it(tiny):
    """Padding with EOS and averaging over it, as a known batched version does, changes signs."""
    model = models.load_causal(tiny["gpt2"], device="cpu")

    def loss(text):
        ids = torch.tensor([model.tokenizer("<|endoftext|> " + text)["input_ids"]])
        with torch.no_grad():
            return float(model.network(input_ids=ids, labels=ids).loss)

    scores = shuffled(metrics.fed, checkpoint=tiny["gpt2"], utterances=FOLLOW_UPS)
    assert scores.loc[7].isna().all()  # an empty response
    for key, turn in TURNS.drop(index=7).iterrows():
        talk = " <|endoftext|> ".join([*turn.context, turn.response]) + " <|endoftext|> "
        for name, said in FOLLOW_UPS.items():
            low, high = (
                sum(loss(talk + text) for text in said[side]) / max(len(said[side]), 1)
                for side in ("negative", "positive")
            )
            assert scores.loc[key, f"fed_{name}[gpt2]"] == pytest.approx(low - high, abs=1e-5)


def test_fed_cuts_the_oldest_tokens_of_a_long_conversation(tiny):
    ends = ["word " * 300, "do you like tea?"]
    first, second = (
        metrics.fed(
            TURNS.loc[[5]].assign(context=[context]), checkpoint=tiny["gpt2"], utterances=FOLLOW_UPS
        )
        for context in (ends, ["other " * 900, *ends])
    )
    assert np.isfinite(first.to_numpy()).all()
    assert first.to_numpy() == pytest.approx(second.to_numpy(), abs=1e-6)
    endless = TURNS.loc[[5]].assign(response="word " * 300)  # leaves no room for a first token
    assert (
        metrics.fed(endless, checkpoint=tiny["gpt2"], utterances=FOLLOW_UPS).isna().all(axis=None)
    )


def test_follow_ups_are_read_as_text_and_never_run(tmp_path):
    file = tmp_path / "fed.py"
    file.write_text(
        "raise SystemExit('this file was run')\n"
        "def evaluate():\n"
        "  turn_level_utts = {'lively': {'positive': ['fun'], 'negative': []}}\n"
        "  dialog_level_utts = {'deep': {'positive': [], 'negative': ['dull'],}}\n"
    )
    assert metrics.follow_ups(file) == {
        "lively": {"positive": ["fun"], "negative": []},
        "deep": {"positive": [], "negative": ["dull"]},
    }


def words(text):
    return [f"{a} {b}" for a in text.split() for b in ("tea", "rain", "band", "night")]


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_mauve_is_the_packages_on_stated_features(tiny, name):
    """Last states of a left-to-right model, mean vectors of an encoder; by its folder (N12)."""
    from mauve import compute_mauve

    p, q = words("my your his her its our a"), words("his her its our a the that one")
    with pytest.warns(UserWarning, match="28, 32. texts"):
        found = metrics.mauve(p, q, encoder=Path(tiny[name]), num_buckets=4)
    if name == "gpt2":
        model = models.load_causal(tiny[name], device="cpu")

        def vector(text):
            ids = torch.tensor([model.tokenizer(text)["input_ids"]])
            with torch.no_grad():
                return model.network(ids, output_hidden_states=True).hidden_states[-1][0, -1]

        features = [np.stack([vector(text).numpy() for text in texts]) for texts in (q, p)]
    else:
        features = [metrics.sentence_vectors(texts, encoder=tiny[name]) for texts in (q, p)]
    theirs = compute_mauve(*features, num_buckets=4, verbose=False)
    assert found["mauve"] == pytest.approx(theirs.mauve, abs=1e-5)
    assert (found["buckets"], found["responses"], found["references"]) == (4, 28, 32)


@pytest.mark.parametrize("bad", [(TURNS, ["a"]), ("one text", ["a", "b"]), (["one"], ["a", "b"])])
def test_mauve_of_a_single_turn_is_refused(bad):
    with pytest.raises(ValueError, match="two sets of texts"):
        metrics.mauve(*bad)


@pytest.mark.parametrize("blank", BLANKS)
def test_a_blank_text_has_no_likelihood(tiny, blank):
    turns = TURNS.loc[[5, 3]].assign(response=[blank, "tea"])
    for scores in (
        metrics.bartscore(turns, checkpoint=tiny["bart"]),
        metrics.prism_style(turns, checkpoint=tiny["m2m100"]),
        metrics.fed(turns, checkpoint=tiny["gpt2"], utterances=FOLLOW_UPS),
    ):
        assert scores.loc[5].isna().all() and scores.loc[3].notna().all()
    unseen = TURNS.loc[[5]].assign(context=[["\x00"]], reference=[["\x07", " "]])
    assert metrics.bartscore(unseen, checkpoint=tiny["bart"]).isna().all(axis=None)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("log_likelihood", {"predeng600": 0.51, "dstc10_dailydialog_zhao": 0.34, "better": 0.25}),
        ("log_likelihood", {"dstc10_persona_zhao": 0.31, "grade_convai2": 0.15}),
        ("log_likelihood", {"usr_topical": -0.2, "usr_persona": -0.29, "fed_turn": 0.01}),
        ("log_likelihood_alone", {"dstc10_dailydialog_zhao": -0.06, "predeng600": 0.45}),
        ("log_likelihood_gain", {"dstc10_dailydialog_zhao": 0.32, "better": -0.06}),
        ("fed_engaging", {"fed_turn": 0.37, "usr_topical": 0.04, "usr_persona": 0.15}),
        ("fed_relevant", {"fed_turn": -0.1}),
    ],
)
def test_the_table_holds_what_notebook_03_says(metric, said):
    table = pd.read_csv(ROOT / "data/results/03_likelihood_correlations.csv")
    rows = table[(table["method"] == "spearman") & (table["metric"] == f"{metric}[smollm2]")]
    found = rows.set_index("corpus")["value"].reindex(said)
    assert found.to_numpy() == pytest.approx([*said.values()], abs=0.0051)
