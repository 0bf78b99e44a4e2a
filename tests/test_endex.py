"""EnDex: pairs, training that can be stopped and repeated, scores, baselines."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from scipy import stats
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from lib import ROOT, endex, meta_evaluation
from lib.analysis.correlation import coefficient
from lib.endex import network as networks
from lib.endex import train as training
from lib.endex.batches import epoch_batches
from lib.endex.pairs import KINDS, corrupt
from lib.meta_evaluation import endex_comparison as comparison

OPTIONS = endex.Options(encoder="tiny", epochs=3, rate=3e-3, batch_tokens=128, save_every=2)
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
    assert len(endex.split(pairs(300), by=None)[1]) == 60


def test_negatives_replace_a_share_in_equal_kinds():
    mixed = endex.with_negatives(pairs(400), ratio=0.2, seed=3)
    assert mixed["label"].value_counts().to_dict() == {0: 200, 1: 200}
    assert mixed["made"].value_counts().to_dict() == {"": 360} | dict.fromkeys(KINDS, 10)
    made = mixed[mixed["made"] != ""]
    assert (made["label"] == 0).all()
    copied = made[made["made"] == "copying"]
    assert (copied["response"] == copied["context"]).all()
    assert mixed.equals(endex.with_negatives(pairs(400), ratio=0.2, seed=3))


def test_each_kind_of_negative():
    rng = np.random.default_rng(0)
    words = "one two three four five six".split()  # noqa: SIM905
    deleted = corrupt("deletion", "c", " ".join(words), "", rng).split()
    assert 0 < len(deleted) < 6 and [w for w in words if w in deleted] == deleted
    inserted = corrupt("insertion", "c", " ".join(words), "red blue green", rng).split()
    assert [w for w in inserted if w in words] == words and len(inserted) == 7
    with pytest.raises(ValueError, match="choose one of insertion"):
        corrupt("shuffle", "c", "r", "o", rng)


@pytest.mark.parametrize(
    ("kind", "context", "response", "other"),
    [("deletion", "c", "one", "o"), ("deletion", "c", " \n", "o"), ("deletion", "c", "", "o")]
    + [("insertion", "c", " ", "o"), ("insertion", "c", "one two", " \t")]
    + [("copying", " ", "one", "o"), ("copying", "one  two", "one two", "o")],
)
def test_a_negative_that_cannot_be_made_is_none(kind, context, response, other):
    assert all(
        corrupt(kind, context, response, other, np.random.default_rng(seed)) is None
        for seed in range(20)
    )


@given(
    st.sampled_from(KINDS), st.text("ab \n", max_size=12), st.text("ab \n", max_size=12),
    st.text("ab \n", max_size=12) | st.sampled_from(["Yes.", "Me too."]), st.integers(0, 99),
)  # fmt: skip
def test_a_negative_is_never_the_reply_itself_nor_empty(kind, context, other, response, seed):
    made = corrupt(kind, context, response, other, np.random.default_rng(seed))
    assert made is None or (made.split() and made.split() != response.split())
    if kind == "generic":
        assert made is not None


def test_negatives_that_cannot_be_made_are_counted_and_replaced_by_red():
    """Positives of one word: nothing to delete. The classes stay as large as they were."""
    short = pairs(400)
    short.loc[short["label"] == 1, "response"] = "one"
    mixed = endex.with_negatives(short, ratio=0.2, seed=3)
    assert mixed.attrs["not_made"] == {"insertion": 0, "deletion": 10, "copying": 0, "generic": 0}
    assert mixed["label"].value_counts().to_dict() == {0: 200, 1: 200}
    made = {kind: 10 for kind in KINDS if kind != "deletion"}
    assert mixed["made"].value_counts().to_dict() == {"": 370} | made
    assert mixed["response"].notna().all()
    assert sum(endex.with_negatives(pairs(400), 0.2, 3).attrs["not_made"].values()) == 0


def test_ablation_takes_positives_of_one_dimension():
    posts = pd.DataFrame({"id": list("abcdef"), "parent": "p", "link": "l", "draw": list("fedcba")})
    posts["z_re"] = [2.0, 1.5, 1.2, 0.5, -3, -3]
    sample = posts.tail(2).assign(label=0)
    few = endex.one_dimension(posts, sample, "re")
    assert few[few["label"] == 1]["id"].tolist() == ["c", "b"]  # by draw, among those above kappa
    top = endex.one_dimension(posts, sample, "re", kappa=1.9)  # one only: the highest fill up
    assert top[top["label"] == 1]["id"].tolist() == ["a", "b"]
    assert top[top["label"] == 0]["id"].tolist() == ["e", "f"]


def test_batches_cover_rows_within_the_budget():
    lengths = np.random.default_rng(0).integers(3, 60, 500)
    batches = epoch_batches(lengths, 256, seed=1, epoch=0, multiple=8)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    width = [-(-lengths[rows].max() // 8) * 8 * len(rows) for rows in batches]
    assert max(width) <= 256
    assert lengths.sum() / sum(width) > 0.8  # random batches of this size fill about half
    first, second = batches[0].tolist(), epoch_batches(lengths, 256, 1, 1, 8)[0].tolist()
    assert first != second and first == epoch_batches(lengths, 256, 1, 0, 8)[0].tolist()


def test_training_learns_and_keeps_the_best_epoch(run):
    validation = run.validation
    assert validation["epoch"].tolist() == [0, 1, 2, 3]
    assert validation["auc"].iloc[-1] > 0.95 > validation["auc"].iloc[0]
    assert validation["loss"].iloc[-1] < 0.2 < validation["loss"].iloc[0]
    best = validation.loc[validation["epoch"] == run.record["best"], "auc"].item()
    assert best == validation["auc"].iloc[1:].max() and not run.record["collapsed"]
    assert not (run.folder / "state.safetensors").exists()
    scores = endex.score(turns([WARM[0], COLD[0]]), run.folder)
    assert scores[0] > 0.5 > scores[1]


def test_training_is_adamw_written_out(tmp_path):
    """One epoch step by step: warm-up, clipping, weight decay and batches, by plain formulas."""
    options = endex.Options(
        encoder="tiny", epochs=1, rate=5e-3, warmup=0.3, batch_tokens=128, clip=1.0,
        weight_decay=0.5, max_length=20,
    )  # fmt: skip
    train, held_out = endex.split(pairs(90))
    trained = endex.fine_tune(train, held_out, tmp_path, options, seed=5)
    network, tokenizer, _ = networks.build("tiny", seed=5)
    texts = [train["context"].tolist(), train["response"].tolist()]
    ids = tokenizer(*texts, truncation="longest_first", max_length=20)["input_ids"]
    batches = epoch_batches([len(row) for row in ids], 128, seed=5, epoch=0)
    labels = torch.tensor(train["label"].tolist())
    moments = {name: (0.0, 0.0) for name, _ in network.named_parameters()}
    norms, losses, rising = [], [], round(0.3 * len(batches))
    network.train()
    for step, rows in enumerate(batches):
        torch.manual_seed((5 * 1_000_003 + step) * 1009)
        inputs = tokenizer(
            *[[side[row] for row in rows] for side in texts], truncation="longest_first",
            max_length=20, padding=True, return_tensors="pt",
        )  # fmt: skip
        logits = network(**inputs).logits
        right = logits.log_softmax(-1)[torch.arange(len(rows)), labels[rows]]
        network.zero_grad()
        (-right.mean()).backward()
        losses.append(-right.mean().item())
        gradients = {name: p.grad for name, p in network.named_parameters()}
        norms.append(torch.sqrt(sum((g**2).sum() for g in gradients.values())).item())
        rate = 5e-3 * (
            (step + 1) / rising
            if step < rising
            else (len(batches) - step) / (len(batches) - rising)
        )
        for name, parameter in network.named_parameters():
            gradient = gradients[name] * min(1, 1 / (norms[-1] + 1e-6))
            first, second = moments[name]
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            moments[name] = first, second
            decay = 0.5 if parameter.ndim > 1 else 0.0
            with torch.no_grad():
                parameter -= rate * decay * parameter
                parameter -= (
                    rate * (first / (1 - 0.9 ** (step + 1)))
                    / (torch.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
                )  # fmt: skip
    assert rising > 2 and min(norms) < 1 < max(norms)  # warm-up and clipping take part
    np.testing.assert_allclose(trained.history["loss"], losses, atol=1e-5)
    ours = load_file(trained.folder / "model.safetensors")
    for name, theirs in network.state_dict().items():
        torch.testing.assert_close(ours[name], theirs, atol=1e-4, rtol=0)


def test_size_counts_layers_and_weights(run):
    network = AutoModelForSequenceClassification.from_pretrained(run.folder)
    weights = sum(p.numel() for p in network.parameters())
    assert comparison.size(run) == {"layers": 2, "weights": weights}


def test_validation_figures_are_those_of_a_plain_forward_pass(run):
    _, held_out = endex.split(pairs())
    tokenizer = AutoTokenizer.from_pretrained(run.folder)
    plain = AutoModelForSequenceClassification.from_pretrained(run.folder).eval()
    texts = held_out["context"].tolist(), held_out["response"].tolist()
    with torch.no_grad():
        logits = plain(**tokenizer(*texts, padding=True, return_tensors="pt")).logits
    labels = held_out["label"].to_numpy()
    engaging = logits.softmax(-1)[:, 1].numpy()
    best = run.validation.set_index("epoch").loc[run.record["best"]]
    pairs_won = np.sign(engaging[labels == 1][:, None] - engaging[labels == 0])
    assert best["auc"] == pytest.approx((pairs_won.mean() + 1) / 2)
    assert best["accuracy"] == ((engaging > 0.5) == labels).mean()
    right = np.where(labels == 1, engaging, 1 - engaging)
    assert best["loss"] == pytest.approx(-np.log(right).mean(), rel=1e-4)
    assert best["spread"] == pytest.approx(engaging.std(), rel=1e-4)


@pytest.mark.parametrize(("aucs", "best"), [([0.9, 0.6, 0.8, 0.7], 2), ([0.1, 0.7, 0.6, 0.5], 1)])
def test_the_epoch_with_the_best_auc_is_kept(tmp_path, monkeypatch, aucs, best):
    """Epoch 0, before training, is shown and never kept."""
    given, weights, validate = iter(aucs), [], training._Training._validate

    def keeping(self, epoch):
        weights.append({name: t.clone() for name, t in self.bare.state_dict().items()})
        validate(self, epoch)

    monkeypatch.setattr(training, "roc_auc_score", lambda *a: next(given))
    monkeypatch.setattr(training._Training, "_validate", keeping)
    chosen = endex.fine_tune(*endex.split(pairs(60)), tmp_path, OPTIONS)
    assert chosen.record["best"] == best and chosen.validation["auc"].tolist() == aucs
    kept = load_file(chosen.folder / "model.safetensors")
    same = [all(torch.equal(kept[name], w[name]) for name in kept) for w in weights]
    assert same == [epoch == best for epoch in range(4)]


def test_a_resumed_run_knows_its_best_epoch(tmp_path, monkeypatch):
    """Epoch 1 was best; the run is stopped in the last epoch and goes on."""
    given, step, stopped = iter([0.1, 0.9, 0.2, 0.3]), training._Training._step, []

    def stopping(self, rows, number, total):
        if number == total - 2 and not stopped:
            stopped.append(number)
            raise KeyboardInterrupt
        return step(self, rows, number, total)

    monkeypatch.setattr(training, "roc_auc_score", lambda *a: next(given))
    monkeypatch.setattr(training._Training, "_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        endex.fine_tune(*endex.split(pairs(60)), tmp_path, OPTIONS)
    resumed = endex.fine_tune(*endex.split(pairs(60)), tmp_path, OPTIONS)
    assert resumed.record["best"] == 1
    assert resumed.validation["auc"].tolist() == [0.1, 0.9, 0.2, 0.3]


def test_dropout_differs_from_step_to_step(run, monkeypatch):
    """The same batch twice, in two steps of one run, gives two losses."""
    train, held_out = endex.split(pairs())
    options = endex.Options(encoder="tiny", rate=0.0, batch_tokens=128, save_every=1000)
    session = training._Training(train, held_out, run.folder, options, seed=0)
    rows = np.arange(4)
    first, second, again = (session._step(rows, step, 10) for step in (0, 1, 0))
    assert first == again != second


def test_same_seed_same_weights_other_seed_others(run, tmp_path):
    again = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS)
    other = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS, seed=1)
    assert again.record["last_weights_sha256"] == run.record["last_weights_sha256"]
    assert other.record["last_weights_sha256"] != run.record["last_weights_sha256"]
    assert again.record["history"] == run.record["history"]


def test_finished_runs_are_returned_at_once(run, monkeypatch):
    monkeypatch.setattr(training, "_Training", None)
    again = endex.fine_tune(*endex.split(pairs()), run.folder.parent, OPTIONS)
    assert again.record == run.record


def test_interrupted_run_goes_on_to_the_same_weights(run, tmp_path, monkeypatch):
    """Stopped three times, once between two checkpoints: the same weights and losses."""
    step, stops = training._Training._step, iter([3, 8, 25])
    stop = next(stops)

    def stopping(self, rows, number, total):
        if number == stop:
            raise KeyboardInterrupt
        return step(self, rows, number, total)

    monkeypatch.setattr(training._Training, "_step", stopping)
    for following in [*stops, None]:
        with pytest.raises(KeyboardInterrupt):
            endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS)
        stop = following
    finished = endex.fine_tune(*endex.split(pairs()), tmp_path, OPTIONS)
    for key in ("last_weights_sha256", "history", "validation", "best", "tokens"):
        assert finished.record[key] == run.record[key], key
    ours, theirs = (load_file(r.folder / "model.safetensors") for r in (finished, run))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.slow
def test_killed_process_goes_on_to_the_same_weights(tmp_path):
    """The same with SIGKILL, from the shell, three times."""
    pairs(600).to_parquet(tmp_path / "pairs.parquet")
    command = [sys.executable, "-m", "lib.endex.train", "--pairs", tmp_path / "pairs.parquet"]
    command += ["--encoder", "tiny", "--epochs", "6", "--save-every", "5", "--batch-tokens", "256"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def start(folder):
        return subprocess.Popen(
            [*command, "--folder", folder], cwd=ROOT, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    assert start(tmp_path / "whole").wait() == 0
    seen = 0
    for _ in range(3):
        process = start(tmp_path / "killed")
        while True:  # until a checkpoint newer than the last kill is there, and a bit further
            states = list((tmp_path / "killed").glob("*/state.safetensors"))
            if states and states[0].stat().st_mtime_ns > seen:
                break
            assert process.poll() is None, "it finished before it was killed: use more steps"
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not list((tmp_path / "killed").glob("*/record.json"))
        seen = time.time_ns()
    assert start(tmp_path / "killed").wait() == 0
    whole, killed = (
        pd.read_json(next((tmp_path / name).glob("*/record.json")), typ="series")
        for name in ("whole", "killed")
    )
    assert whole["last_weights_sha256"] == killed["last_weights_sha256"]
    assert whole["history"] == killed["history"]


@pytest.mark.filterwarnings("ignore:.*the run collapsed")
def test_frozen_layers_do_not_move(tmp_path):
    options = endex.Options(encoder="tiny", epochs=1, batch_tokens=256, frozen_layers=1)
    frozen = endex.fine_tune(*endex.split(pairs()), tmp_path, options)
    start, _, _ = networks.build("tiny", seed=0)
    end = load_file(frozen.folder / "model.safetensors")
    for name, before in start.state_dict().items():
        if "embeddings." in name or "layer.0." in name:
            assert torch.equal(before, end[name]), name
    assert not torch.equal(start.state_dict()["classifier.weight"], end["classifier.weight"])


@pytest.mark.parametrize(("layers", "still"), [(0, 0), (1, 2), (2, 3)])
def test_dropout_is_off_in_frozen_layers_only(layers, still):
    """`still`: how many of embeddings, first and second layer give the same output twice."""
    network, _, _ = networks.build("tiny", seed=0)
    networks.freeze(network, layers)
    networks.training_mode(network)
    ids = torch.arange(1000, 1032)[None]
    one, two = (network(ids, output_hidden_states=True) for _ in range(2))
    equal = [torch.equal(a, b) for a, b in zip(one.hidden_states, two.hidden_states, strict=True)]
    assert equal == [True] * still + [False] * (3 - still)
    assert not torch.equal(one.logits, two.logits)  # the head is never frozen


def test_schedule_rises_then_falls():
    rates = [training._schedule(step, 100, 0.06) for step in range(100)]
    assert rates[5] == 1.0 and rates[0] == pytest.approx(1 / 6)
    assert all(np.diff(rates[:6]) > 0) and all(np.diff(rates[6:]) < 0) and rates[-1] > 0


def test_one_class_and_bad_options_are_refused(tmp_path):
    train, held_out = endex.split(pairs())
    with pytest.raises(ValueError, match="training pairs .* one class only"):
        endex.fine_tune(train[train["label"] == 1], held_out, tmp_path, OPTIONS)
    for wrong in ({"precision": "fp64"}, {"epochs": 0}, {"warmup": 1.0}):
        with pytest.raises(ValueError):
            endex.Options(**wrong)


def test_runaway_loss_stops_and_collapse_is_told(tmp_path, monkeypatch):
    train, held_out = endex.split(pairs())
    with monkeypatch.context() as patch, pytest.raises(FloatingPointError, match="lower the rate"):
        logits = training._Training._logits
        patch.setattr(training._Training, "_logits", lambda *a: logits(*a) * torch.inf)
        patch.setattr(training._Training, "_validate", lambda *a: None)
        endex.fine_tune(train, held_out, tmp_path, OPTIONS)
    alike = train.assign(response="same", context="same")
    with pytest.warns(UserWarning, match="collapsed"):
        flat = endex.fine_tune(
            alike, held_out.assign(response="same", context="same"), tmp_path,
            endex.Options(encoder="tiny", epochs=1, batch_tokens=256),
        )  # fmt: skip
    assert flat.record["collapsed"]


def test_scores_equal_a_plain_forward_pass(run):
    texts = ["I like the lake", "", "no", "What is your favourite tart and why do you like it?"]
    contexts = [["a", "How was it?"], ["Hi"], [], ["Tell me"]]
    ours = endex.score(turns(texts, contexts), run.folder, device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(run.folder)
    plain = AutoModelForSequenceClassification.from_pretrained(run.folder).eval()
    for i, text in enumerate(texts):
        said = contexts[i][-1] if contexts[i] else ""
        logits = plain(**tokenizer([said], [text], return_tensors="pt")).logits[0].detach()
        assert ours[i] == pytest.approx(float(logits.softmax(-1)[1]), abs=1e-5)


def test_scores_do_not_depend_on_batches_or_order(run):
    table = turns([f"{w} {'very ' * (i % 7)}good" for i, w in enumerate(WARM * 30)])
    one = endex.score(table, run.folder, batch_tokens=64)
    many = endex.score(table, run.folder, batch_tokens=8192)
    shuffled = endex.score(table.sample(frac=1, random_state=0), run.folder)
    np.testing.assert_allclose(one, many, atol=1e-5)
    np.testing.assert_allclose(shuffled.sort_index(), many, atol=1e-5)


def test_missing_replies_are_nan_and_other_models_refused(run, tmp_path):
    scores = endex.score(turns([None, "ok"]), run.folder)
    assert np.isnan(scores[0]) and 0 <= scores[1] <= 1
    assert len(endex.score(turns([]), run.folder)) == 0
    from lib import models as checkpoints

    with pytest.raises(checkpoints.CheckpointError):
        endex.score(turns(["ok"]), tmp_path / "none")


def test_more_context_is_joined(run):
    table = turns(["ok"], [["one", "two", "three"]])
    joined = turns(["ok"], [["two three"]])
    ours = endex.score(table, run.folder, context_turns=2)[0]
    assert ours == pytest.approx(endex.score(joined, run.folder)[0], abs=1e-6)


def test_baselines_on_edge_cases():
    table = turns(["What ?", "what?", "The soup isn't hot", "", None])
    assert endex.question(table).tolist()[:4] == [1, 0, 0, 0]
    assert endex.specificity(table).tolist()[:4] == [0, 0, 2, 0]
    assert endex.length(table).tolist()[:4] == [2, 1, 4, 0]
    for baseline in (endex.question, endex.specificity, endex.length):
        assert np.isnan(baseline(table)[4]) and (baseline(table).index == table.index).all()
    assert endex.random(table).equals(endex.random(table))


def test_partial_correlation_is_that_of_residuals():
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    x, y = z + rng.normal(size=200), z + 0.3 * rng.normal(size=200)

    def residual(a, b):
        return a - np.polyval(np.polyfit(b, a, 1), b)

    expected = stats.pearsonr(residual(x, z), residual(y, z)).statistic
    assert meta_evaluation.partial_correlation(x, y, z, "pearson") == pytest.approx(expected)
    ranks = [stats.rankdata(v) for v in (x, y, z)]
    expected = stats.pearsonr(residual(ranks[0], ranks[2]), residual(ranks[1], ranks[2])).statistic
    assert meta_evaluation.partial_correlation(x, y, z) == pytest.approx(expected)
    assert np.isnan(meta_evaluation.partial_correlation(x, y, y))
    assert np.isnan(meta_evaluation.partial_correlation([1, 2], [1, 2], [2, 1]))


def test_system_turns_of_a_dialog():
    dialogs = pd.DataFrame(
        {
            "system": ["A", "B"], "agent": ["A", "B"], "dialog": ["d", "e"],
            "utterances": [["s0", "u1", "s2"], ["u0", "s1", "s2"]],
            "speakers": [["system", "user", "system"], ["user", "system", "system"]],
        }
    )  # fmt: skip
    rows = endex.system_turns(dialogs)
    assert rows["response"].tolist() == ["s2", "s1", "s2"] and rows["item"].tolist() == [0, 1, 1]
    assert rows["context"].tolist() == [["s0", "u1"], ["u0"], ["u0", "s1"]]


@pytest.mark.public
def test_question_row_of_table_2_is_exact():
    published = pd.read_csv(ROOT / "data/published/endex_table2.csv")
    published = published[published["method"] == "Question"].set_index("dataset")
    sets = meta_evaluation.evaluation_sets()
    assert {name: len(human) for name, (_, human) in sets.items()} == {
        "BETTER": 297, "PREDENG-600": 600, "FED-ENG": 261, "GRADE": 150
    }  # fmt: skip
    for name in ("BETTER", "PREDENG-600"):
        table, human = sets[name]
        for method in ("pearson", "spearman"):
            ours = coefficient(endex.question(table), human, method).value
            assert round(ours, 3) == published.loc[name, method]
