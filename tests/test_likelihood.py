"""Likelihood metrics against plain torch, one row at a time and in batches of 1, 2 and 7."""

from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import tiny_models
import torch

from lib import ROOT, metrics, models
from lib.metrics.likelihood import segment_log_probabilities

TALK = [  # context, response, reference, fact
    (["do you like tea?"], "Yes, I do! Very much.", ["I do", "no"], ["tea is hot"]),
    (
        ["hi", "it sings", "oh"],
        "coffee keeps me awake",
        ["tea"],
        ["water", "kettles sing"],
    ),
    (["my sister plays "], " fun", ["in a band"], []),
    (
        ["that sounds fun", "yes"],
        "my sister plays. In a band? Yes!",
        ["water"],
        ["a band"],
    ),
    ([], "tea", ["a"], ["b"]),
    (["hello there"], "", ["b"], ["c"]),
    (["so what"], "really?", [], []),
]
COLUMNS = ["context", "response", "reference", "fact"]
TURNS = pd.DataFrame(TALK, [5, 3, 9, 1, 0, 7, 2], COLUMNS)
FOLLOW_UPS = {
    "lively": {
        "positive": ["that is fun", "tell me about it"],
        "negative": ["that is dull"],
    },
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


def mean_given(model, a, b, skip):
    """Mean log-probability of the tokens of b given a, one forward pass for each token."""
    if not (a.strip() and b.strip()):
        return np.nan
    both = [model.tokenizer(text)["input_ids"] for text in (a, b)]
    source, target = (
        [*ids[:127], ids[-1]][: len(ids)] for ids in both
    )  # the model takes 128
    said, logs = [model.network.config.decoder_start_token_id], []
    for token in target:
        ids = {
            "input_ids": torch.tensor([source]),
            "decoder_input_ids": torch.tensor([said]),
        }
        with torch.no_grad():
            logs.append(
                float(model.network(**ids).logits[0, -1].log_softmax(-1)[token])
            )
        said.append(token)
    return np.mean(logs[skip:])


LONG = [
    (["word " * 200, "so"], "tea", ["tea"], [])
]  # a context that is cut and keeps its end


@pytest.mark.parametrize(("name", "skip"), [("bart", 0), ("m2m100", 1)])
def test_an_encoder_decoder_scores_each_direction(tiny, name, skip, batches):
    """Prism-style scores skip the language tag that the tokenizer puts first."""
    turns = pd.concat([TURNS, pd.DataFrame(LONG, [8], TURNS.columns)])
    model = models.load_seq2seq(tiny[name], device="cpu")
    metric = metrics.prism_style if skip else metrics.bartscore
    scores = shuffled(metric, turns, checkpoint=tiny[name])
    for key, turn in turns.iterrows():
        before, said = " ".join(turn.context), turn.response
        forward = mean_given(model, before, said, skip)
        p = [mean_given(model, gold, said, skip) for gold in turn.reference] or [np.nan]
        r = [mean_given(model, said, gold, skip) for gold in turn.reference] or [np.nan]
        if skip:
            backward = mean_given(model, said, before, skip)
            expected = [max(np.add(p, r) / 2), forward, (forward + backward) / 2]
        else:
            p, r = max(p), max(r)
            expected = [forward, p, r, (p + r) / 2, p * r / (p + r)]
        assert scores.loc[key].to_numpy() == pytest.approx(
            expected, abs=1e-5, nan_ok=True
        )
    names = ("context_to_response", "reference_to_response", "response_to_reference")
    names = [f"bartscore_{n}[bart]" for n in (*names, "f_mean", "f_harmonic")]
    assert skip or list(scores.columns) == names


def mean_after(model, context, response):
    """Mean log-probability of the response's tokens after a context: one pass for one text."""
    start = model.tokenizer.bos_token_id or model.tokenizer.eos_token_id
    context_ids = [start, *model.tokenizer(context)["input_ids"]]
    ids = list(model.tokenizer(response)["input_ids"])
    with torch.no_grad():
        logs = (
            model.network(torch.tensor([context_ids + ids])).logits[0].log_softmax(-1)
        )
    predictions = logs[len(context_ids) - 1 : -1]
    return float(predictions[range(len(ids)), ids].mean())


@pytest.mark.parametrize("name", ["gpt2", models.SMOLLM2])
def test_log_likelihood_is_that_of_one_plain_pass_for_each_text(tiny, name):
    """On random weights and on the packaged ones; BARTScore of such a model reads lines, too."""
    checkpoint = tiny.get(name, name)
    model = models.load_causal(checkpoint, device="cpu")
    scores = shuffled(metrics.log_likelihood, checkpoint=checkpoint, last=2)
    for key, turn in TURNS.drop(index=7).iterrows():
        lines = [f"{text}\n" for text in turn.context[-2:]]
        alone = mean_after(model, "", f"{turn.response}\n")
        given = (
            mean_after(model, "".join(lines), f"{turn.response}\n") if lines else np.nan
        )
        expected = pytest.approx([given, alone, given - alone], abs=1e-4, nan_ok=True)
        assert scores.loc[key].to_numpy() == expected
    assert scores.loc[7].isna().all()
    assert scores.columns[0] == f"log_likelihood[{name}]"
    turn, joint = (
        TURNS.loc[1],
        shuffled(metrics.bartscore, checkpoint=checkpoint).loc[1],
    )
    recall = mean_after(model, f"{turn.response}\n", f"{turn.reference[0]}\n")
    assert joint.iloc[[0, 2]].to_numpy() == pytest.approx(
        [scores.loc[1].iloc[0], recall], abs=1e-4
    )


ONE_TREE = 3 + 2 * (2 + 3 * 3)  # tokens: each segment once
TREES = [(1, 6 * 8), (30, ONE_TREE), (10_000, ONE_TREE)]


@pytest.mark.parametrize(("max_tokens", "n_read"), TREES)
def test_what_texts_share_is_read_once(tiny, max_tokens, n_read):
    model = models.load_causal(tiny["gpt2"], device="cpu", batch_tokens=max_tokens)
    forward = type(model.network).forward
    spy = mock.patch.object(
        type(model.network), "forward", autospec=True, side_effect=forward
    )
    texts = [
        ("abc", f"{a}8", f"{b}xy") for a, b in product("12", "345")
    ]  # of one token a letter
    texts.append(texts[0])
    columns = zip(*texts, strict=True)
    with spy as passes:
        together = segment_log_probabilities(model, *columns)
    assert (
        sum(call.kwargs["input_ids"].numel() for call in passes.call_args_list)
        == n_read
    )
    for text, scores in zip(texts, together, strict=True):
        alone = segment_log_probabilities(model, *[[segment] for segment in text])[0]
        np.testing.assert_allclose(scores, alone, atol=1e-4)
    assert together[:, :, 1].tolist() == [[2, 2, 3]] * 7


def test_fed_is_the_loss_over_all_tokens_whatever_stands_beside_it(tiny):
    """Padding with EOS and averaging over it, as a known batched version does, changes signs.

    Of a conversation that is too long the oldest tokens are cut.
    """
    model = models.load_causal(tiny["gpt2"], device="cpu")
    long = pd.DataFrame(
        [(["word " * 300, "do you like tea?"], "yes", [], [])], [8], TURNS.columns
    )
    endless = long.assign(response="word " * 300).set_axis(
        [6]
    )  # no room for a first token
    options = {"checkpoint": tiny["gpt2"], "utterances": FOLLOW_UPS}
    scores = shuffled(metrics.fed, pd.concat([TURNS, long, endless]), **options)
    assert scores.loc[[7, 6]].isna().all(axis=None)  # 7 is an empty response

    def loss(text):
        ids = torch.tensor(
            [model.tokenizer("<|endoftext|> " + text)["input_ids"][-128:]]
        )
        with torch.no_grad():
            return float(model.network(input_ids=ids, labels=ids).loss)

    for key, turn in pd.concat([TURNS.drop(index=7), long]).iterrows():
        talk = (
            " <|endoftext|> ".join([*turn.context, turn.response]) + " <|endoftext|> "
        )
        for name, said in FOLLOW_UPS.items():
            low, high = (
                sum(loss(talk + text) for text in said[side]) / max(len(said[side]), 1)
                for side in ("negative", "positive")
            )
            assert scores.loc[key, f"fed_{name}[gpt2]"] == pytest.approx(
                low - high, abs=1e-5
            )


def test_follow_ups_are_read_as_text_and_never_run(tmp_path, monkeypatch):
    file = tmp_path / "fed.py"
    turn = {"lively": {"positive": ["fun"], "negative": []}}
    dialog = {"deep": {"positive": [], "negative": ["dull"]}}
    said = (
        f"def evaluate():\n  turn_level_utts = {turn}\n  dialog_level_utts = {dialog}\n"
    )
    file.write_text(
        f"raise SystemExit('this file was run')\n{said}".replace("}}", ",}}")
    )
    monkeypatch.setattr("pooch.retrieve", lambda *given, **options: file)
    assert metrics.follow_ups.__wrapped__() == turn | dialog


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
                return model.network(ids, output_hidden_states=True).hidden_states[-1][
                    0, -1
                ]

        features = [
            np.stack([vector(text).numpy() for text in texts]) for texts in (q, p)
        ]
    else:
        features = [
            metrics.sentence_vectors(texts, encoder=tiny[name]) for texts in (q, p)
        ]
    theirs = compute_mauve(*features, num_buckets=4, verbose=False)
    assert found["mauve"] == pytest.approx(theirs.mauve, abs=1e-5)
    assert (found["buckets"], found["responses"], found["references"]) == (4, 28, 32)


@pytest.mark.parametrize(
    "bad", [(TURNS, ["a"]), ("one text", ["a", "b"]), (["one"], ["a", "b"])]
)
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


SPEARMAN = {
    "log_likelihood": {
        "predeng600": 0.51,
        "dstc10_dailydialog_zhao": 0.34,
        "better": 0.25,
    }
    | {"dstc10_persona_zhao": 0.31, "grade_convai2": 0.15, "fed_turn": 0.01}
    | {"usr_topical": -0.2, "usr_persona": -0.29},
    "log_likelihood_alone": {"dstc10_dailydialog_zhao": -0.06, "predeng600": 0.45},
    "log_likelihood_gain": {"dstc10_dailydialog_zhao": 0.32, "better": -0.06},
    "fed_engaging": {
        "fed_turn": 0.37,
        "better": 0.41,
        "predeng600": 0.22,
        "usr_persona": 0.15,
    }
    | {
        "grade_convai2": 0.08,
        "grade_dailydialog": 0.01,
        "grade_empatheticdialogues": 0.03,
    },
    "fed_relevant": {"fed_turn": -0.1, "better": -0.38, "predeng600": -0.42},
}


@pytest.mark.parametrize("metric", SPEARMAN)
def test_the_table_holds_what_notebook_14_says(metric):
    table = pd.read_csv(ROOT / "data/results/04_likelihood_correlations.csv")
    rows = table[
        (table["method"] == "spearman") & (table["metric"] == f"{metric}[smollm2]")
    ]
    found = rows.set_index("corpus")["value"].reindex(SPEARMAN[metric])
    assert found.to_numpy() == pytest.approx([*SPEARMAN[metric].values()], abs=0.0051)
