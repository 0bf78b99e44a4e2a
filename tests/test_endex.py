"""EnDex: pairs, training that can be stopped and repeated, scores, baselines."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from lib import ROOT, endex, metrics, models
from lib.data import stop_words
from lib.endex import network as networks
from lib.endex import scoring
from lib.endex import train as training
from lib.endex.train import KINDS, negative_sample
from lib.metrics import baselines

OPTIONS = endex.Options(encoder="tiny", epochs=3, rate=3e-3, batch_tokens=128)
WARM = ["I love this story, tell me more about the lake?", "What a lovely bread, how did you do it"]
COLD = ["ok", "no", "maybe not"]


def pairs(n=150, seed=0):
    """Pairs whose class can be read off the reply, so that training has something to learn."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "context": f"We walked to the lake {i}" + " again" * int(rng.integers(6)),
            "response": str(rng.choice(WARM if i % 2 else COLD)),
            "label": i % 2,
            "link": f"t{i // 3}",
        }
        for i in range(n)
    ]
    return pd.DataFrame(rows)


def logits(network, tokenizer, contexts, texts):
    """A plain forward pass of transformers."""
    batch = tokenizer(contexts, texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        return network.eval()(**batch).logits


def plain(folder, contexts, texts):
    """Probability of engaging by the network of a folder."""
    network = AutoModelForSequenceClassification.from_pretrained(folder)
    found = logits(network, AutoTokenizer.from_pretrained(folder), contexts, texts)
    return found.softmax(-1)[:, 1].numpy()


def turns(texts, contexts=None):
    contexts = contexts or [["Hello there"]] * len(texts)
    return pd.DataFrame({"context": contexts, "response": texts}).astype({"response": object})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return endex.fine_tune(*endex.split(pairs()), tmp_path_factory.mktemp("run"), OPTIONS)


def test_split_keeps_threads_together_and_is_repeatable():
    train, held_out = endex.split(pairs(300), validation=0.2, seed=1)
    assert not set(train["link"]) & set(held_out["link"])
    assert 0.15 < len(held_out) / 300 < 0.25 and len(train) + len(held_out) == 300
    again = endex.split(pairs(300).sample(frac=1, random_state=0), validation=0.2, seed=1)
    assert set(again[1].index) == set(held_out.index)
    assert set(endex.split(pairs(300), seed=2)[1].index) != set(held_out.index)


@pytest.mark.parametrize(("positive", "failed"), [("I love this story", 0), ("one", 10)])
def test_negatives_replace_a_share_in_equal_kinds(positive, failed):
    """In a reply of one word is nothing to delete: counted, and the negative of RED stays."""
    given = pairs(400)
    given.loc[given["label"] == 1, "response"] = positive
    mixed = endex.with_negatives(given, ratio=0.2, seed=3)
    assert mixed["label"].value_counts().to_dict() == {0: 200, 1: 200}
    assert mixed.attrs["not_made"] == dict.fromkeys(KINDS, 0) | {"deletion": failed}
    made = mixed[mixed["made"] != ""]
    sizes = dict.fromkeys(KINDS, 10) | {"deletion": 10 - failed}
    assert made["made"].value_counts().reindex(KINDS, fill_value=0).to_dict() == sizes
    assert (made["label"] == 0).all() and mixed["response"].notna().all()
    copied = made[made["made"] == "copying"]
    assert (copied["response"] == copied["context"]).all()
    assert mixed.equals(endex.with_negatives(given, ratio=0.2, seed=3))


def test_each_kind_of_negative():
    rng = np.random.default_rng(0)
    words = "one two three four five six".split()  # noqa: SIM905
    deleted = negative_sample("deletion", "c", " ".join(words), "", rng).split()
    assert 0 < len(deleted) < 6 and [w for w in words if w in deleted] == deleted
    inserted = negative_sample("insertion", "c", " ".join(words), "red blue green", rng).split()
    assert [w for w in inserted if w in words] == words and len(inserted) == 7
    with pytest.raises(ValueError, match="choose one of insertion"):
        negative_sample("shuffle", "c", "r", "o", rng)


@pytest.mark.parametrize(
    ("kind", "context", "response", "other"),
    [("deletion", "c", "one", "o"), ("deletion", "c", " \n", "o"), ("deletion", "c", "", "o")]
    + [("insertion", "c", " ", "o"), ("insertion", "c", "one two", " \t")]
    + [("copying", " ", "one", "o"), ("copying", "one  two", "one two", "o")],
)
def test_a_negative_that_cannot_be_made_is_none(kind, context, response, other):
    for seed in range(20):
        assert negative_sample(kind, context, response, other, np.random.default_rng(seed)) is None


@given(
    st.sampled_from(KINDS), st.text("ab \n", max_size=12), st.text("ab \n", max_size=12),
    st.text("ab \n", max_size=12) | st.sampled_from(["Yes.", "Me too."]), st.integers(0, 99),
)  # fmt: skip
def test_a_negative_is_never_the_reply_itself_nor_empty(kind, context, other, response, seed):
    made = negative_sample(kind, context, response, other, np.random.default_rng(seed))
    assert made is None or (made.split() and made.split() != response.split())
    if kind == "generic":
        assert made is not None


def test_matched_pairs_have_the_same_lengths_in_both_classes():
    rng = np.random.default_rng(0)
    words = [" ".join("a" * int(n)) for n in rng.integers(1, 40, (2000))]
    given = pd.DataFrame({"context": words[:1000], "response": words[1000:]})
    sizes = pd.DataFrame({name: text.str.split().str.len() for name, text in given.items()})
    given["label"] = (sizes.sum(axis=1) + rng.normal(0, 8, 1000) > 40).astype(int)
    kept = training.matched_in_length(given)
    bins = np.floor(np.log2(sizes + 1)).astype(int)
    of = given.groupby([bins["context"], bins["response"], "label"]).size().unstack(fill_value=0)
    assert len(kept) == 2 * of.min(axis=1).sum() > 200 and kept["label"].mean() == 0.5
    rho = sizes.loc[kept.index].sum(axis=1).corr(kept["label"])
    assert abs(rho) < 0.5 * sizes.sum(axis=1).corr(given["label"])


def test_texts_are_cut_to_the_lengths_of_a_dialogue_whatever_their_class():
    rng = np.random.default_rng(0)
    given = pd.DataFrame({"context": ["a b " * 30] * 400, "response": ["c d e"] * 400})
    given["response"] *= rng.integers(1, 20, 400)
    given["label"] = (given["response"].str.len() > 50).astype(int)
    talk = pd.DataFrame({"context": [["x y z", "Hi there"], ["Hi"]], "response": ["so it is", ""]})
    cut = training.cut_to_lengths(given, talk, seed=1)
    words = {name: cut[name].str.split().str.len() for name in ("context", "response")}
    assert words["context"].isin([1, 2]).all() and words["response"].isin([1, 3]).all()
    assert (words["context"] == 2).eq(words["response"] == 3).all()  # of one turn
    assert all(map(str.startswith, given["response"], cut["response"]))
    assert abs(words["response"].corr(given["label"])) < 0.15
    pd.testing.assert_frame_equal(cut, training.cut_to_lengths(given, talk, seed=1))


def test_training_learns_and_keeps_the_best_epoch(run):
    validation = run.validation
    assert validation["epoch"].tolist() == [0, 1, 2, 3]
    assert validation["auc"].iloc[-1] > 0.95 > validation["auc"].iloc[0]
    assert validation["loss"].iloc[-1] < 0.2 < validation["loss"].iloc[0]
    best = validation.loc[validation["epoch"] == run.record["best"], "auc"].item()
    assert best == validation["auc"].iloc[1:].max() and not run.record["collapsed"]
    assert not list(run.folder.glob("checkpoint-*"))
    scores = endex.endex_scores(turns([WARM[0], COLD[0]]), run.folder)
    assert scores[0] > 0.5 and scores[0] > scores[1]


def test_validation_figures_are_those_of_a_plain_forward_pass(run):
    _, held_out = endex.split(pairs())
    engaging = plain(run.folder, held_out["context"].tolist(), held_out["response"].tolist())
    labels = held_out["label"].to_numpy()
    best = run.validation.set_index("epoch").loc[run.record["best"]]
    pairs_won = np.sign(engaging[labels == 1][:, None] - engaging[labels == 0])
    assert best["auc"] == pytest.approx((pairs_won.mean() + 1) / 2)
    assert best["accuracy"] == ((engaging > 0.5) == labels).mean()
    right = np.where(labels == 1, engaging, 1 - engaging)
    assert best["loss"] == pytest.approx(-np.log(right).mean(), rel=1e-4)
    assert best["spread"] == pytest.approx(engaging.std(), rel=1e-4)


def test_batches_cover_rows_within_the_budget_and_are_drawn_anew_in_each_epoch():
    lengths = np.random.default_rng(0).integers(3, 60, 500)
    first, second = (networks.batches(lengths, 256, seed=1, epoch=epoch) for epoch in (0, 1))
    assert sorted(np.concatenate(first).tolist()) == list(range(500))
    width = [lengths[rows].max() * len(rows) for rows in first]
    assert max(width) <= 256
    assert lengths.sum() / sum(width) > 0.8  # random batches of this size fill about half
    assert not {frozenset(rows.tolist()) for rows in first if len(rows) > 1} & {
        frozenset(rows.tolist()) for rows in second
    }


def plain_losses(options, seed, frozen=()):
    """The losses of a training written out: no Trainer, dropout by seed and step."""
    train, _ = endex.split(pairs())
    network, tokenizer = networks.build_classifier("tiny", seed)
    rows = networks.encode_context_pairs(tokenizer, train, options.max_length)
    lengths = [*map(len, rows["input_ids"])]
    drawn = [networks.batches(lengths, options.batch_tokens, seed, e) for e in range(3)]
    named = network.named_parameters()
    weights = [w for name, w in named if not any(part in name for part in frozen)]
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": 0.01},
        {"params": [w for w in weights if w.ndim == 1], "weight_decay": 0.0},
    ]
    adam, total, losses = torch.optim.AdamW(groups), sum(map(len, drawn)), []
    rising = round(options.warmup * total)
    for step, batch in enumerate(batch for epoch in drawn for batch in epoch):
        share = (step + 1) / rising if step < rising else (total - step) / (total - rising)
        for group in adam.param_groups:
            group["lr"] = options.rate * share
        torch.manual_seed((seed * 1_000_003 + step) * 1009)
        chosen = train.iloc[batch]
        texts = chosen["context"].tolist(), chosen["response"].tolist()
        found = network.train()(**tokenizer(*texts, padding=True, return_tensors="pt")).logits
        loss = torch.nn.functional.cross_entropy(found, torch.tensor(chosen["label"].tolist()))
        network.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        adam.step()
        losses.append(loss.item())
    return losses


def test_losses_are_those_of_a_plain_loop(run):
    """Trainer's own warm-up and batches that stay the same from epoch to epoch gave other ones."""
    np.testing.assert_allclose(run.history["loss"], plain_losses(OPTIONS, seed=0), atol=1e-4)


@pytest.mark.parametrize("layers", [1, 2])
def test_layers_that_stay_are_run_once_and_the_losses_are_those_of_the_whole_network(
    tmp_path, monkeypatch, layers
):
    """Without dropout, which falls on other places when the last layer reads one token alone."""
    none = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    monkeypatch.setattr(networks, "TINY_SIZE", networks.TINY_SIZE | none)
    networks._lower.cache_clear()
    options = replace(OPTIONS, frozen_layers=layers)
    part = endex.fine_tune(*endex.split(pairs()), tmp_path, options)
    frozen = ["embeddings.", "layer.0.", "layer.1."][: layers + 1]
    np.testing.assert_allclose(part.history["loss"], plain_losses(options, 0, frozen), atol=1e-4)
    once = networks._lower("tiny", layers, 0)
    kept = len(once.kept)
    assert 0 < kept <= len(pairs())
    monkeypatch.setattr(once, "network", None)  # another run finds every pair
    again = endex.fine_tune(*endex.split(pairs()), tmp_path, replace(options, rate=1e-3))
    assert again.folder != part.folder and len(once.kept) == kept
    networks._lower.cache_clear()


@pytest.mark.parametrize("layers", [1, 5, 6])
def test_a_network_that_is_cut_gives_the_logits_of_the_whole_one(layers):
    """By the layers of transformers, for pairs of several lengths in one batch."""
    whole, tokenizer = networks.build_classifier(models.DEFAULT_ENCODER, seed=3)
    part, _ = networks.build_classifier(models.DEFAULT_ENCODER, seed=3)
    below = networks.split_network(part, models.DEFAULT_ENCODER, layers, seed=3)
    texts = ["How was it?", "We went to the lake before sunrise."], ["Cold.", "Oh no, again?"]
    batch = tokenizer(*texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected, found = whole.eval()(**batch).logits, part.eval()(**below(batch)).logits
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_same_seed_same_weights_other_seed_others(run, tmp_path, monkeypatch):
    again = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS)
    other = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS, seed=1)
    assert again.record["weights_sha256"] == run.record["weights_sha256"]
    assert other.record["weights_sha256"] != run.record["weights_sha256"]
    assert again.record["history"] == run.record["history"]
    monkeypatch.setattr(training, "_train", None)  # a finished run is returned at once
    assert endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS).record == again.record


AUCS = [([0.9, 0.6, 0.8, 0.7], 0, 2), ([0.1, 0.7, 0.6, 0.5], 0, 1), ([0.5, 0.9, 0.7, 0.6], 0.9, 2)]


@pytest.mark.parametrize(("aucs", "flat", "best"), AUCS)
def test_the_epoch_with_the_best_auc_is_kept(tmp_path, monkeypatch, aucs, flat, best):
    """Epoch 0, before training, is shown and never kept; a whole epoch is found again.

    One of equal scores is kept only without another, whatever its AUC.
    """
    given = iter(aucs)
    monkeypatch.setattr(networks, "roc_auc_score", lambda *a: next(given))
    monkeypatch.setattr(training, "collapsed", lambda figures: figures["auc"] == flat)
    chosen = endex.fine_tune(*endex.split(pairs(60)), tmp_path, OPTIONS)
    assert chosen.record["best"] == best and chosen.validation["auc"].tolist() == aucs
    _, held_out = endex.split(pairs(60))
    turns = held_out.assign(context=[[text] for text in held_out["context"]])
    scores = endex.endex_scores(turns, chosen.folder)
    right = np.where(held_out["label"] == 1, scores, 1 - scores)
    losses = chosen.validation["loss"]
    assert -np.log(right).mean() == pytest.approx(losses[best], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("layers", ["0", "1"])
def test_killed_process_goes_on_to_the_same_weights(tmp_path, layers):
    """SIGKILL, from the shell, three times."""
    pairs(600).to_parquet(tmp_path / "pairs.parquet")
    command = [sys.executable, "-m", "lib.endex.train", "--pairs", tmp_path / "pairs.parquet"]
    command += ["--encoder", "tiny", "--epochs", "8", "--batch-tokens", "256"]
    command += ["--frozen_layers", layers]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def start(folder):
        return subprocess.Popen(
            [*command, "--folder", folder], cwd=ROOT, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    assert start(tmp_path / "whole").wait() == 0
    seen = set()
    for _ in range(3):
        process = start(tmp_path / "killed")
        while not (new := set((tmp_path / "killed").glob("*/checkpoint-*/*state.json")) - seen):
            assert process.poll() is None, "it finished before it was killed: use more epochs"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not list((tmp_path / "killed").glob("*/record.json"))
        seen |= new
    assert start(tmp_path / "killed").wait() == 0
    whole, killed = (
        pd.read_json(next((tmp_path / name).glob("*/record.json")), typ="series")
        for name in ("whole", "killed")
    )
    for key in ("weights_sha256", "history", "validation", "best"):
        assert whole[key] == killed[key], key


def test_runaway_loss_stops_and_collapse_is_told(tmp_path):
    train, held_out = endex.split(pairs())
    with pytest.raises(FloatingPointError, match="lower the rate"):
        endex.fine_tune(train, held_out, tmp_path, replace(OPTIONS, rate=1e30))
    same = (part.assign(response="same", context="same") for part in (train, held_out))
    flat = endex.fine_tune(*same, tmp_path, replace(OPTIONS, epochs=1))
    assert flat.record["best"] == 1 and flat.record["collapsed"]


def test_one_class_is_refused(tmp_path):
    train, held_out = endex.split(pairs())
    with pytest.raises(ValueError, match="training pairs .* one class only"):
        endex.fine_tune(train[train["label"] == 1], held_out, tmp_path, OPTIONS)


def test_scores_equal_a_plain_forward_pass(run):
    texts = ["I like the lake", "", "no", "What is your favourite tart and why do you like it?"]
    contexts = [["a", "How was it?"], ["Hi"], None, []]
    ours = endex.endex_scores(turns(texts, contexts), run.folder, device="cpu")
    for i, text in enumerate(texts):
        said = contexts[i][-1] if contexts[i] else ""
        assert ours[i] == pytest.approx(plain(run.folder, [said], [text])[0], abs=1e-5)


def test_scores_do_not_depend_on_batches_or_order(run):
    table = turns([f"{w} {'very ' * (i % 7)}good" for i, w in enumerate(WARM * 30)])
    many = endex.endex_scores(table, run.folder)
    few = endex.endex_scores(table[::7], run.folder)
    shuffled = endex.endex_scores(table.sample(frac=1, random_state=0), run.folder)
    np.testing.assert_allclose(few, many[::7], atol=1e-5)
    np.testing.assert_allclose(shuffled.sort_index(), many, atol=1e-5)


def test_the_packaged_model_is_the_encoder_with_the_weights_of_its_file():
    """Its layers put into the whole network of transformers, and a reply that says more."""
    made = load_file(scoring.WEIGHTS)
    whole, tokenizer = networks.build_classifier(models.DEFAULT_ENCODER, seed=9)
    cut_off = 6 - sum("attention.self.query.weight" in name for name in made)
    weights = {
        re.sub(r"layer\.(\d+)", lambda m: f"layer.{int(m[1]) + cut_off}", name): part.float()
        for name, part in made.items()
    }
    assert not whole.load_state_dict(weights, strict=False).unexpected_keys
    texts = ["no", "We swam in the lake at dawn, it was so cold that we sang. Have you been there?"]
    expected = logits(whole, tokenizer, ["How was it?"] * 2, texts).softmax(-1)[:, 1]
    ours = endex.endex_scores(turns(texts, [["How was it?"]] * 2))
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    assert ours[0] < ours[1]
    assert scoring.WEIGHTS.stat().st_size < 8_000_000


def test_missing_replies_are_nan_and_other_models_refused(run, tmp_path):
    scores = endex.endex_scores(turns([None, "ok"]), run.folder)
    assert np.isnan(scores[0]) and 0 <= scores[1] <= 1
    assert len(endex.endex_scores(turns([]), run.folder)) == 0
    with pytest.raises(models.CheckpointError):
        endex.endex_scores(turns(["ok"]), tmp_path / "none")


def test_baselines_read_tokenised_and_plain_texts_alike():
    """Defect N1: a mark at a word was missed, and "when" in a statement made it a question."""
    table = turns(
        ["have you tried the old pier?", "have you tried the old pier ?", "¿Qué tal ?", "", None]
        + ["It turned red when the sun set.", "it turned red when the sun set .", "isn’t it 3 ?"]
    )
    nothing = [0, np.nan]
    np.testing.assert_equal(metrics.question(table).tolist(), [1, 1, 1, *nothing, 0, 0, 1])
    np.testing.assert_equal(metrics.length(table).tolist(), [6, 6, 2, *nothing, 7, 7, 3])
    np.testing.assert_equal(metrics.specificity(table).tolist(), [3, 3, 2, *nothing, 4, 4, 1])
    assert metrics.random(table).equals(metrics.random(table))


def test_random_draws_do_not_repeat(tmp_path):
    """Defect N14: the draws began again every 2,000 rows."""
    table = turns([f"reply {n}" for n in range(5000)]).assign(dialog=range(5000))
    drawn = metrics.compute(table, ["random"], folder=tmp_path, log=lambda line: None)["random"]
    assert drawn.nunique() == 5000
    assert drawn.tolist() != drawn[::-1].tolist()


def test_specificity_is_counted_anew_with_another_stop_list(tmp_path, monkeypatch):
    """Defect S3: kept scores stayed when stop_words.txt was edited."""
    table = turns(["I bake rye bread"]).assign(dialog=0)

    def kept():
        found = metrics.compute(table, ["specificity"], folder=tmp_path, log=lambda line: None)
        return found["specificity"].tolist()

    assert kept() == [3]
    (tmp_path / "stop_words.txt").write_text("i rye")
    for module in (stop_words, baselines):
        monkeypatch.setattr(module, "STOP_WORDS", tmp_path / "stop_words.txt")
    stop_words.stop_words.cache_clear()
    assert kept() == [2]
    stop_words.stop_words.cache_clear()
