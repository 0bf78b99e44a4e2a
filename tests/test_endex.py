"""EnDex: pairs, training that can be stopped and repeated, scores, baselines."""

import json
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
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from lib import ROOT, endex, metrics, models
from lib.data import stop_words
from lib.endex import classifier, runs, scoring, training
from lib.endex.pairs import KINDS, cut_to_lengths, matched_in_length, negative_sample
from lib.metrics import baselines

OPTIONS = endex.TrainingOptions(
    encoder="tiny", epochs=3, learning_rate=3e-3, batch_tokens=128
)
WARM = [
    "I love this story, tell me more about the lake?",
    "What a lovely bread, how did you do it",
]
COLD = ["ok", "no", "maybe not"]


def pairs(n=150, seed=0):
    """Pairs whose class can be read off the reply, so that training has something to learn."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        again = " again" * int(rng.integers(6))
        replies = WARM if i % 2 else COLD
        row = {
            "context": f"We walked to the lake {i}{again}",
            "response": str(rng.choice(replies)),
        }
        rows.append(row | {"label": i % 2, "link": f"t{i // 3}"})
    return pd.DataFrame(rows)


def logits(network, tokenizer, contexts, texts):
    """A plain forward pass of transformers."""
    batch = tokenizer(contexts, texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        return network.eval()(**batch).logits


def plain(folder, contexts, texts):
    """Probability of engaging by the network of a folder."""
    network = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return logits(network, tokenizer, contexts, texts).softmax(-1)[:, 1].numpy()


def turns(texts, contexts=None):
    contexts = contexts or [["Hello there"]] * len(texts)
    return pd.DataFrame({"context": contexts, "response": texts}).astype(
        {"response": object}
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return endex.fine_tune(
        *endex.split(pairs()), tmp_path_factory.mktemp("run"), OPTIONS
    )


def test_split_keeps_threads_together_and_is_repeatable():
    train, held_out = endex.split(pairs(300), validation=0.2, seed=1)
    assert not set(train["link"]) & set(held_out["link"])
    assert 0.15 < len(held_out) / 300 < 0.25 and len(train) + len(held_out) == 300
    again = endex.split(
        pairs(300).sample(frac=1, random_state=0), validation=0.2, seed=1
    )
    assert set(again[1].index) == set(held_out.index)
    assert set(endex.split(pairs(300), seed=2)[1].index) != set(held_out.index)


@pytest.mark.parametrize(
    ("positive", "failed"), [("I love this story", 0), ("one", 10)]
)
def test_negatives_replace_a_share_in_equal_kinds(positive, failed):
    """In a reply of one word is nothing to delete: counted, and the negative of RED stays."""
    table = pairs(400)
    table.loc[table["label"] == 1, "response"] = positive
    mixed = endex.with_negatives(table, ratio=0.2, seed=3)
    assert mixed["label"].value_counts().to_dict() == {0: 200, 1: 200}
    assert mixed.attrs["not_made"] == dict.fromkeys(KINDS, 0) | {"deletion": failed}
    made = mixed[mixed["made"] != ""]
    sizes = dict.fromkeys(KINDS, 10) | {"deletion": 10 - failed}
    assert made["made"].value_counts().reindex(KINDS, fill_value=0).to_dict() == sizes
    assert (made["label"] == 0).all() and mixed["response"].notna().all()
    copied = made[made["made"] == "copying"]
    assert (copied["response"] == copied["context"]).all()
    assert mixed.equals(endex.with_negatives(table, ratio=0.2, seed=3))


def test_each_kind_of_negative():
    rng = np.random.default_rng(0)
    words = "one two three four five six".split()  # noqa: SIM905
    deleted = negative_sample("deletion", "c", " ".join(words), "", rng).split()
    assert 0 < len(deleted) < 6 and [w for w in words if w in deleted] == deleted
    inserted = negative_sample(
        "insertion", "c", " ".join(words), "red blue green", rng
    ).split()
    assert [w for w in inserted if w in words] == words and len(inserted) == 7
    with pytest.raises(ValueError, match="choose one of insertion"):
        negative_sample("shuffle", "c", "r", "o", rng)


@pytest.mark.parametrize(
    ("kind", "context", "response", "other"),
    [
        ("deletion", "c", "one", "o"),
        ("deletion", "c", " \n", "o"),
        ("deletion", "c", "", "o"),
    ]
    + [("insertion", "c", " ", "o"), ("insertion", "c", "one two", " \t")]
    + [("copying", " ", "one", "o"), ("copying", "one  two", "one two", "o")],
)
def test_a_negative_that_cannot_be_made_is_none(kind, context, response, other):
    for seed in range(20):
        assert (
            negative_sample(kind, context, response, other, np.random.default_rng(seed))
            is None
        )


TEXTS = st.text("ab \n", max_size=12)
RESPONSES = TEXTS | st.sampled_from(["Yes.", "Me too."])


@given(st.sampled_from(KINDS), TEXTS, TEXTS, RESPONSES, st.integers(0, 99))
def test_a_negative_is_never_the_reply_itself_nor_empty(
    kind, context, other, response, seed
):
    made = negative_sample(kind, context, response, other, np.random.default_rng(seed))
    assert made is None or (made.split() and made.split() != response.split())
    if kind == "generic":
        assert made is not None


def test_matched_pairs_have_the_same_lengths_in_both_classes():
    rng = np.random.default_rng(0)
    words = [" ".join("a" * int(n)) for n in rng.integers(1, 40, (2000))]
    table = pd.DataFrame({"context": words[:1000], "response": words[1000:]})
    sizes = pd.DataFrame(
        {name: text.str.split().str.len() for name, text in table.items()}
    )
    total = sizes.sum(axis=1)
    table["label"] = (total + rng.normal(0, 8, 1000) > 40).astype(int)
    matched = matched_in_length(table)
    bins = np.floor(np.log2(sizes + 1)).astype(int)
    counts = table.groupby([bins["context"], bins["response"], "label"]).size()
    smaller = counts.unstack(fill_value=0).min(axis=1)
    assert len(matched) == 2 * smaller.sum() > 200
    assert matched["label"].mean() == 0.5
    rho = total[matched.index].corr(matched["label"])
    assert abs(rho) < 0.5 * total.corr(table["label"])


def test_texts_are_cut_to_the_lengths_of_a_dialogue_whatever_their_class():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"context": ["a b " * 30] * 400, "response": ["c d e"] * 400})
    table["response"] *= rng.integers(1, 20, 400)
    table["label"] = (table["response"].str.len() > 50).astype(int)
    dialog = pd.DataFrame(
        {"context": [["x y z", "Hi there"], ["Hi"]], "response": ["so it is", ""]}
    )
    cut = cut_to_lengths(table, dialog, seed=1)
    words = {name: cut[name].str.split().str.len() for name in ("context", "response")}
    assert words["context"].isin([1, 2]).all() and words["response"].isin([1, 3]).all()
    assert (words["context"] == 2).eq(words["response"] == 3).all()  # of one turn
    assert all(map(str.startswith, table["response"], cut["response"]))
    assert abs(words["response"].corr(table["label"])) < 0.15
    pd.testing.assert_frame_equal(cut, cut_to_lengths(table, dialog, seed=1))


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
    engaging = plain(
        run.folder, held_out["context"].tolist(), held_out["response"].tolist()
    )
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
    first = classifier.epoch_batches(lengths, 256, seed=1, epoch=0)
    second = classifier.epoch_batches(lengths, 256, seed=1, epoch=1)
    assert sorted(np.concatenate(first).tolist()) == list(range(500))
    n_tokens = [lengths[rows].max() * len(rows) for rows in first]
    assert max(n_tokens) <= 256
    assert (
        lengths.sum() / sum(n_tokens) > 0.8
    )  # random batches of this size fill about half
    repeated = {frozenset(rows.tolist()) for rows in first if len(rows) > 1}
    assert not repeated & {frozenset(rows.tolist()) for rows in second}


def plain_losses(options, seed, frozen=(), n_processes=1):
    """The losses of a training written out on the whole network; dropout by seed and step.

    Several processes take one batch each, and step by the mean of their gradients.
    """
    train, _ = endex.split(pairs())
    network, tokenizer = classifier.build_classifier("tiny", seed)
    columns = classifier.encode_context_pairs(tokenizer, train, options.max_length)
    lengths = [len(ids) for ids in columns["input_ids"]]
    steps = []
    for epoch in range(options.epochs):
        batches = classifier.epoch_batches(
            lengths, options.batch_tokens, seed=seed, epoch=epoch
        )
        for start in range(0, len(batches), n_processes):
            together = batches[start : start + n_processes]
            steps.append([*together, *batches][:n_processes])
    weights = []
    for name, parameter in network.named_parameters():
        if not any(part in name for part in frozen):
            weights.append(parameter)
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": 0.01},
        {"params": [w for w in weights if w.ndim == 1], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups)
    rising = round(options.warmup_ratio * len(steps))
    losses = []
    for step, batches in enumerate(steps):
        share = (len(steps) - step) / (len(steps) - rising)
        if step < rising:
            share = (step + 1) / rising
        for group in adam.param_groups:
            group["lr"] = options.learning_rate * share
        network.zero_grad()
        step_losses = []
        for process, rows in enumerate(batches):
            torch.manual_seed((seed * 1_000_003 + step) * 1009 + process)
            batch = train.iloc[rows]
            texts = batch["context"].tolist(), batch["response"].tolist()
            found = network.train()(
                **tokenizer(*texts, padding=True, return_tensors="pt")
            ).logits
            labels = torch.tensor(batch["label"].tolist())
            loss = torch.nn.functional.cross_entropy(found, labels)
            (loss / n_processes).backward()
            step_losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        adam.step()
        losses.append(np.mean(step_losses))
    return losses


def test_losses_are_those_of_a_plain_loop(run):
    """Warm-up from the first step on, and batches that are drawn anew in each epoch."""
    np.testing.assert_allclose(
        run.history["loss"], plain_losses(OPTIONS, seed=0), atol=1e-4
    )


@pytest.fixture
def without_dropout(monkeypatch):
    """Dropout falls on other positions when the last layer computes one token alone."""
    none = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    monkeypatch.setattr(classifier, "TINY_SIZE", classifier.TINY_SIZE | none)
    classifier.frozen_encoder.cache_clear()
    yield
    classifier.frozen_encoder.cache_clear()


@pytest.mark.parametrize("layers", [1, 2])
def test_frozen_layers_are_run_once_and_the_losses_are_those_of_the_whole_network(
    tmp_path, without_dropout, layers
):
    options = replace(OPTIONS, frozen_layers=layers)
    trained = endex.fine_tune(*endex.split(pairs()), tmp_path, options)
    frozen = ["embeddings.", "layer.0.", "layer.1."][: layers + 1]
    losses = plain_losses(options, 0, frozen)
    np.testing.assert_allclose(trained.history["loss"], losses, atol=1e-4)
    encoder = classifier.frozen_encoder("tiny", layers, 0)
    n_states = len(encoder.states)
    assert 0 < n_states <= len(pairs())
    encoder.base = None  # another run finds every pair
    other = replace(options, learning_rate=1e-3)
    again = endex.fine_tune(*endex.split(pairs()), tmp_path, other)
    assert again.folder != trained.folder and len(encoder.states) == n_states


@pytest.mark.parametrize("remember", [True, False])
@pytest.mark.parametrize("layers", [1, 5, 6])
def test_trained_layers_give_the_logits_of_the_whole_network(layers, remember):
    """By the layers of transformers, for pairs of several lengths in one batch."""
    whole, tokenizer = classifier.build_classifier(models.DEFAULT_ENCODER, seed=3)
    part, _ = classifier.build_classifier(models.DEFAULT_ENCODER, seed=3)
    part = classifier.freeze_layers(
        part, models.DEFAULT_ENCODER, layers, seed=3, remember=remember
    )
    contexts = ["How was it?", "We went to the lake before sunrise."]
    texts = ["Cold.", "Oh no, again?"]
    expected = logits(whole, tokenizer, contexts, texts)
    torch.testing.assert_close(
        logits(part, tokenizer, contexts, texts), expected, atol=1e-6, rtol=0
    )


def test_layers_of_another_kind_of_network_cannot_be_frozen(tmp_path):
    config = AutoConfig.for_model(
        "distilbert", n_layers=1, dim=8, hidden_dim=8, n_heads=1
    )
    AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path)
    packaged = models.find_model(models.DEFAULT_ENCODER).folder
    AutoTokenizer.from_pretrained(packaged).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="none of bert, roberta"):
        classifier.frozen_encoder(str(tmp_path), 1, 0)


def test_same_seed_same_weights_other_seed_others(run, tmp_path):
    again = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS)
    other = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS, seed=1)
    assert again.record["weights_sha256"] == run.record["weights_sha256"]
    assert other.record["weights_sha256"] != run.record["weights_sha256"]
    assert again.record["history"] == run.record["history"]
    weights = again.folder / "model.safetensors"
    written = weights.stat().st_mtime_ns
    repeated = endex.fine_tune(
        *endex.split(pairs()), tmp_path, OPTIONS
    )  # returned at once
    assert repeated.record == again.record and weights.stat().st_mtime_ns == written


AUCS = [
    ([0.9, 0.6, 0.8, 0.7], 0, 2),
    ([0.1, 0.7, 0.6, 0.5], 0, 1),
    ([0.5, 0.9, 0.7, 0.6], 0.9, 2),
]


@pytest.mark.parametrize(("aucs", "flat", "best"), AUCS)
def test_the_epoch_with_the_best_auc_is_saved(tmp_path, monkeypatch, aucs, flat, best):
    """Epoch 0, before training, is shown and never saved.

    One of equal scores is saved only without another, whatever its AUC.
    """
    values = iter(aucs)
    monkeypatch.setattr(training, "roc_auc_score", lambda *arguments: next(values))
    monkeypatch.setattr(runs, "collapsed", lambda validation: validation["auc"] == flat)
    model = endex.fine_tune(*endex.split(pairs(60)), tmp_path, OPTIONS)
    assert model.record["best"] == best and model.validation["auc"].tolist() == aucs
    _, held_out = endex.split(pairs(60))
    table = held_out.assign(context=[[text] for text in held_out["context"]])
    scores = endex.endex_scores(table, model.folder)
    right = np.where(held_out["label"] == 1, scores, 1 - scores)
    assert -np.log(right).mean() == pytest.approx(
        model.validation["loss"][best], rel=1e-4
    )


def shell(folder, *options, launcher=(sys.executable, "-m")):
    """Start a training from the shell on the pairs beside its folder."""
    command = [
        *launcher,
        "lib.endex.training",
        "--pairs",
        folder.parent / "pairs.parquet",
    ]
    command += ["--folder", folder, "--encoder", "tiny", *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def record_of(folder):
    return json.loads(next(folder.glob("*/record.json")).read_text())


@pytest.mark.slow
@pytest.mark.parametrize("layers", ["0", "1"])
def test_killed_process_goes_on_to_the_same_weights(tmp_path, layers):
    """SIGKILL, from the shell, three times."""
    pairs(600).to_parquet(tmp_path / "pairs.parquet")
    options = ["--epochs", "8", "--batch-tokens", "256", "--frozen_layers", layers]
    killed = tmp_path / "killed"
    assert shell(tmp_path / "whole", *options).wait() == 0
    seen = set()
    for _ in range(3):
        process = shell(killed, *options)
        while not (new := set(killed.glob("*/checkpoint-*/state.json")) - seen):
            assert process.poll() is None, (
                "it finished before it was killed: use more epochs"
            )
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not list(killed.glob("*/record.json"))
        seen |= new
    assert shell(killed, *options).wait() == 0
    for key in ("weights_sha256", "history", "validation", "best"):
        assert record_of(tmp_path / "whole")[key] == record_of(killed)[key], key


def test_a_checkpoint_that_is_not_whole_is_passed_over(tmp_path, run):
    """Killed while it wrote the first one: the run begins anew, and ends with the same weights."""
    unfinished = tmp_path / run.folder.name / "checkpoint-1"
    unfinished.mkdir(parents=True)
    (unfinished / "model.safetensors").write_bytes(b"half")
    again = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS)
    assert again.record["weights_sha256"] == run.record["weights_sha256"]
    assert not unfinished.exists()


@pytest.mark.parametrize("name", ["record.json", "checkpoint-1/state.json"])
def test_a_cut_off_state_is_passed_over(tmp_path, run, name):
    """A power cut left half a JSON file: the run ends with the same weights, and says nothing."""
    file = tmp_path / run.folder.name / name
    file.parent.mkdir(parents=True)
    file.write_text("[[0.69, 0.6")
    again = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS)
    assert again.record["weights_sha256"] == run.record["weights_sha256"]


@pytest.mark.slow
def test_two_processes_step_by_the_mean_of_their_gradients(tmp_path):
    """`accelerate launch`, on two processes; one of them prints the result."""
    pairs().to_parquet(tmp_path / "pairs.parquet")
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    launch += ["--num_processes", "2", "--main_process_port", "0", "-m"]
    options = ["--epochs", "3", "--learning-rate", "3e-3", "--batch-tokens", "128"]
    process = shell(tmp_path / "two", *options, launcher=launch)
    lines = process.communicate()[0].decode().splitlines()
    assert process.returncode == 0
    record = record_of(tmp_path / "two")
    assert len(lines) == 1
    assert json.loads(lines[0])["auc"] == record["validation"][record["best"]]["auc"]
    losses = [loss for _, loss in record["history"]]
    np.testing.assert_allclose(
        losses, plain_losses(OPTIONS, 0, n_processes=2), atol=1e-4
    )


def test_runaway_loss_stops_and_collapse_is_reported(tmp_path):
    train, held_out = endex.split(pairs())
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        endex.fine_tune(train, held_out, tmp_path, replace(OPTIONS, learning_rate=1e30))
    same = (part.assign(response="same", context="same") for part in (train, held_out))
    flat = endex.fine_tune(*same, tmp_path, replace(OPTIONS, epochs=1))
    assert flat.record["best"] == 1 and flat.record["collapsed"]


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="choose fp32 or bf16"):
        endex.TrainingOptions(precision="fp16")


def test_one_class_is_refused(tmp_path):
    train, held_out = endex.split(pairs())
    with pytest.raises(ValueError, match="training pairs .* one class only"):
        endex.fine_tune(train[train["label"] == 1], held_out, tmp_path, OPTIONS)


def test_scores_equal_a_plain_forward_pass(run):
    texts = [
        "I like the lake",
        "",
        "no",
        "What is your favourite tart and why do you like it?",
    ]
    contexts = [["a", "How was it?"], ["Hi"], None, []]
    ours = endex.endex_scores(turns(texts, contexts), run.folder, device="cpu")
    for i, text in enumerate(texts):
        context = contexts[i][-1] if contexts[i] else ""
        assert ours[i] == pytest.approx(
            plain(run.folder, [context], [text])[0], abs=1e-5
        )


def test_scores_do_not_depend_on_batches_or_order(run):
    table = turns([f"{w} {'very ' * (i % 7)}good" for i, w in enumerate(WARM * 30)])
    scores = endex.endex_scores(table, run.folder)
    seventh = endex.endex_scores(table[::7], run.folder)
    shuffled = endex.endex_scores(table.sample(frac=1, random_state=0), run.folder)
    np.testing.assert_allclose(seventh, scores[::7], atol=1e-5)
    np.testing.assert_allclose(shuffled.sort_index(), scores, atol=1e-5)


def test_the_packaged_model_is_the_encoder_with_the_weights_of_its_file():
    """Its layers put into the whole network of transformers, and a reply that says more."""
    packaged = load_file(scoring.WEIGHTS)
    whole, tokenizer = classifier.build_classifier(models.DEFAULT_ENCODER, seed=9)
    frozen = 6 - sum("attention.self.query.weight" in name for name in packaged)
    weights = {}
    for name, tensor in packaged.items():
        name = re.sub(
            r"layer\.(\d+)", lambda match: f"layer.{int(match[1]) + frozen}", name
        )
        weights[name] = tensor.float()
    assert not whole.load_state_dict(weights, strict=False).unexpected_keys
    texts = [
        "no",
        "We swam in the lake at dawn, it was so cold that we sang. Have you been there?",
    ]
    expected = logits(whole, tokenizer, ["How was it?"] * 2, texts).softmax(-1)[:, 1]
    ours = endex.endex_scores(turns(texts, [["How was it?"]] * 2))
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    assert ours[0] < ours[1]
    assert scoring.WEIGHTS.stat().st_size < 8_000_000


def test_options_that_do_not_apply_are_refused():
    for options in ({"dtype": "bfloat16"}, {"revision": "abc"}):
        with pytest.raises(ValueError, match="leave out dtype and revision"):
            endex.endex_scores(turns(["ok"]), **options)
    with pytest.raises(TypeError, match="context_turns"):
        endex.endex_scores(turns(["ok"]), context_turns=0)


@pytest.mark.parametrize("packaged", [True, False])
def test_a_batch_holds_the_tokens_that_were_asked_for(run, packaged, monkeypatch):
    table = turns(["no", "We swam in the lake at dawn.", "so cold that we sang"])
    model = scoring.PACKAGED if packaged else run.folder
    exact = endex.endex_scores(table, model)
    batches = []
    pad_batch = models.pad_batch

    def padded(model, rows, *columns):
        batches.append(len(rows))
        return pad_batch(model, rows, *columns)

    monkeypatch.setattr(models, "pad_batch", padded)
    np.testing.assert_allclose(
        endex.endex_scores(table, model, batch_tokens=1), exact, atol=1e-6
    )
    assert batches == [1, 1, 1]
    endex.endex_scores(table, model, batch_tokens=1000)
    assert batches == [1, 1, 1, 3]


def test_missing_replies_are_nan_and_other_models_refused(run, tmp_path):
    scores = endex.endex_scores(turns([None, "ok"]), run.folder)
    assert np.isnan(scores[0]) and 0 <= scores[1] <= 1
    assert len(endex.endex_scores(turns([]), run.folder)) == 0
    with pytest.raises(models.CheckpointError):
        endex.endex_scores(turns(["ok"]), tmp_path / "none")


def test_baselines_read_tokenised_and_plain_texts_alike():
    """Defect N1: a mark at a word was missed, and "when" in a statement made it a question."""
    table = turns(
        [
            "have you tried the old pier?",
            "have you tried the old pier ?",
            "¿Qué tal ?",
            "",
            None,
        ]
        + [
            "It turned red when the sun set.",
            "it turned red when the sun set .",
            "isn’t it 3 ?",
        ]
    )
    nothing = [0, np.nan]
    np.testing.assert_equal(
        metrics.question(table).tolist(), [1, 1, 1, *nothing, 0, 0, 1]
    )
    np.testing.assert_equal(
        metrics.length(table).tolist(), [6, 6, 2, *nothing, 7, 7, 3]
    )
    np.testing.assert_equal(
        metrics.specificity(table).tolist(), [3, 3, 2, *nothing, 4, 4, 1]
    )
    assert metrics.random(table).equals(metrics.random(table))


def test_random_draws_do_not_repeat(tmp_path):
    """Defect N14: the draws began again every 2,000 rows."""
    table = turns([f"reply {n}" for n in range(5000)]).assign(dialog=range(5000))
    draws = metrics.compute(table, ["random"], folder=tmp_path, log=lambda line: None)[
        "random"
    ]
    assert draws.nunique() == 5000
    assert draws.tolist() != draws[::-1].tolist()


def test_specificity_is_counted_anew_with_another_stop_list(tmp_path, monkeypatch):
    """Defect S3: kept scores stayed when stop_words.txt was edited."""
    table = turns(["I bake rye bread"]).assign(dialog=0)

    def specificity():
        scores = metrics.compute(
            table, ["specificity"], folder=tmp_path, log=lambda line: None
        )
        return scores["specificity"].tolist()

    assert specificity() == [3]
    (tmp_path / "stop_words.txt").write_text("i rye")
    for module in (stop_words, baselines):
        monkeypatch.setattr(module, "STOP_WORDS", tmp_path / "stop_words.txt")
    stop_words.stop_words.cache_clear()
    assert specificity() == [2]
    stop_words.stop_words.cache_clear()
