"""Each model's repository, in its real layout, through a hub on the loopback address."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sentencepiece
import tiny_repositories
import torch
from hub_server import HubServer, use_hub
from nltk.tokenize.punkt import PunktSentenceTokenizer

from lib import ROOT, endex, metrics, model_files, models
from lib.meta_evaluation import evaluation_sets
from lib.metrics.usl_h import masked_surprisal
from lib.report.scores import report_scores

TURNS = pd.DataFrame(
    {
        "context": [["do you like tea?"], ["my sister plays", "in a band?"]],
        "response": ["yes, I do! coffee keeps me awake", "that sounds like fun"],
        "reference": [["no, not really"], ["yes", "a lot of fun"]],
        "fact": [["tea is hot"], ["the trumpet"]],
    }
)


@pytest.fixture(scope="module")
def repositories(tmp_path_factory):
    return tiny_repositories.make_all(tmp_path_factory.mktemp("hub"))


@pytest.fixture
def hub(repositories, tmp_path, monkeypatch):
    """A hub with all repositories, an empty cache of models, and Punkt without a download."""
    monkeypatch.setattr("lib.models.ROOT", tmp_path)
    monkeypatch.setattr(
        "nltk.tokenize.punkt.PunktTokenizer", lambda _: PunktSentenceTokenizer()
    )
    with HubServer(repositories) as server:
        use_hub(monkeypatch, server, tmp_path / "hub")
        yield server


def test_the_simulated_hub_has_every_model_of_the_table():
    packaged = set(models.PACKAGED)
    assert set(tiny_repositories.REPOSITORIES) == set(models.CHECKPOINTS) - packaged


def test_the_tiny_repositories_hold_what_the_table_states(repositories):
    """The form of the weights, and the vocabulary: where the table knows them."""
    vocabularies = {"vocab.txt", "spm.model", "spiece.model", "sentencepiece.bpe.model"}
    for name in tiny_repositories.REPOSITORIES:
        stated = set(models.CHECKPOINTS[name].files.replace(";", "").split())
        here = {file.name for file in (repositories / name).iterdir()}
        assert stated & vocabularies <= here, name
        if stated & {"model.safetensors", "pytorch_model.bin"}:
            safe = "model.safetensors"
            assert (safe in stated) == (safe in here), name


def scores_of(name):
    """What the metric that uses a model gives with it, as a frame."""
    used_by = models.CHECKPOINTS[name].used_by
    options = {"checkpoint": name, "device": "cpu"}
    if used_by.startswith("BERTScore"):
        return metrics.bertscore(TURNS, encoder=name, device="cpu")
    if used_by == "BARTScore":
        return metrics.bartscore(TURNS, **options)
    if used_by == "Prism-style":
        return metrics.prism_style(TURNS, **options)
    if used_by == "FED":
        said = {"fun": {"positive": ["what fun"], "negative": ["how dull"]}}
        return metrics.fed(TURNS, utterances=said, **options)
    if used_by == "DialogRPT":
        return metrics.dialogrpt(TURNS, heads={"head": name}, device="cpu")
    if used_by == "UniEval-dialog":
        return metrics.unieval(TURNS, **options)
    if used_by == "BLEURT":
        return metrics.bleurt(TURNS, **options).to_frame()
    if used_by.startswith("toxicity"):
        return metrics.toxicity(TURNS, **options).to_frame()
    if used_by == "USL-H":
        texts = TURNS["response"].tolist()
        model = models.load_masked(name, device="cpu")
        return pd.DataFrame({"l": masked_surprisal(model, texts)})
    if used_by == "MAUVE features":
        texts = TURNS["response"].tolist()
        with pytest.warns(UserWarning, match="biased"):
            return metrics.mauve(texts, texts[::-1], encoder=name).to_frame()
    emotion = endex.positive_emotion(TURNS["response"], name, device="cpu")
    return pd.DataFrame({"ee": emotion})


@pytest.mark.parametrize("name", tiny_repositories.REPOSITORIES)
def test_every_model_runs_from_its_repository_and_then_without_the_hub(
    hub, monkeypatch, name
):
    scores = scores_of(name)
    assert np.isfinite(scores.to_numpy(float)).all()
    hub.sent.clear()
    models._load_once.cache_clear()
    scores_of(name)
    assert not hub.sent  # nothing is fetched a second time
    weights = models.find_model(name).weights
    assert len(weights) == 1
    pickled = not (hub.root / name / "model.safetensors").exists()
    assert (weights[0].suffix == ".bin") == pickled


def test_safetensors_are_preferred_to_pickled_weights(hub):
    folder = models.find_model("FacebookAI/roberta-large").folder
    assert not (folder / "pytorch_model.bin").exists()


def test_weights_other_than_the_stated_ones_are_refused(hub, monkeypatch):
    name = "unitary/toxic-bert"
    stated = models.CHECKPOINTS[name]._replace(weights_sha256="0" * 64)
    monkeypatch.setitem(models.CHECKPOINTS, name, stated)
    with pytest.raises(models.CheckpointError, match="SHA-256 .* not 0000"):
        metrics.toxicity(TURNS)


def test_a_pickle_that_holds_code_is_refused_and_does_not_run(tmp_path):
    class Mischief:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "it ran",))

    folder = tiny_repositories.dialogpt(tmp_path / "model")
    torch.save({"weight": Mischief()}, folder / "pytorch_model.bin")
    with pytest.raises(models.CheckpointError, match="holds code, which is not run"):
        models.load_causal(folder)
    assert not (tmp_path / "it ran").exists()


PROBES = ["Do you like  tea? ﬁne", " hi\n there ", "zebra €", "``quoted''", "x"]


def test_bleurt_20_reads_the_pieces_of_sentencepiece(tmp_path):
    tiny_repositories.bleurt_20(tmp_path)
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "spm.model")
    )
    tokenizer = model_files.load_tokenizer(tmp_path)
    start, end = pieces.piece_to_id("[CLS]"), pieces.piece_to_id("[SEP]")
    for text in PROBES:
        assert tokenizer(text)["input_ids"] == [start, *pieces.encode(text), end]
    pair = tokenizer("tea", "fun", return_token_type_ids=True)
    first, second = pieces.encode("tea"), pieces.encode("fun")
    assert pair["input_ids"] == [start, *first, end, *second, end]
    assert pair["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert tokenizer.pad_token_id == 0


def test_unieval_reads_the_pieces_of_sentencepiece(tmp_path):
    tiny_repositories.unieval(tmp_path)
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "spiece.model")
    )
    tokenizer = model_files.load_tokenizer(tmp_path)
    for text in PROBES[:1] + PROBES[2:]:
        assert tokenizer(text)["input_ids"] == [*pieces.encode(text), 1]


def test_small100_has_the_tag_of_the_target_before_the_source_only(tmp_path):
    """SMaLL-100, section 3: the encoder reads the tag, the decoder the text alone."""
    folder = tiny_repositories.small100(tmp_path)
    model = models.load_seq2seq(folder, device="cpu")
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "sentencepiece.bpe.model")
    )
    vocabulary = model.tokenizer.encoder
    english = len(vocabulary) + 18  # the languages follow in alphabetical order

    def ids(text):
        parts = pieces.encode(text, out_type=str)
        return [vocabulary.get(part, 3) for part in parts] + [2]

    source = torch.tensor([[english, *ids("do you like tea?")]])
    target = ids(TURNS["response"][0])
    decoder = torch.tensor([[2, *target[:-1]]])
    with torch.no_grad():
        logits = model.network(input_ids=source, decoder_input_ids=decoder).logits[0]
    logs = logits.log_softmax(-1)[range(len(target)), target]
    scores = metrics.prism_style(TURNS, checkpoint=folder, device="cpu")
    found = scores["prism_style_response_given_context"][0]
    assert found == pytest.approx(float(logs.mean()), abs=1e-5)


OPTIONS = {"device": "cpu", "dtype": "bfloat16", "batch_tokens": 16}


@pytest.mark.parametrize(
    "name",
    ["FacebookAI/roberta-large", "lucadiliello/BLEURT-20", "MingZhong/unieval-dialog"],
)
def test_every_metric_takes_device_dtype_revision_and_size_of_a_batch(hub, name):
    record = models.CHECKPOINTS[name]
    metric = {"BLEURT": metrics.bleurt, "UniEval-dialog": metrics.unieval}.get(
        record.used_by, metrics.bertscore
    )
    option = "encoder" if metric is metrics.bertscore else "checkpoint"
    exact = np.asarray(metric(TURNS, **{option: name}, device="cpu"), float)
    options = {option: name, "revision": "main", **OPTIONS}
    rough = np.asarray(metric(TURNS, **options), float)
    small = OPTIONS | {"dtype": "float32"}
    again = np.asarray(metric(TURNS, **{option: name}, **small), float)
    assert np.allclose(exact, again, atol=1e-5)
    assert not np.array_equal(exact, rough)
    assert np.allclose(exact, rough, atol=0.5)


def test_mauve_takes_the_options_of_a_model(hub):
    texts = TURNS["response"].tolist()
    with pytest.warns(UserWarning, match="biased"):
        found = metrics.mauve(
            texts, texts[::-1], encoder="openai-community/gpt2-large", **OPTIONS
        )
    assert 0 <= found["mauve"] <= 1


FETCH = """
import hub_server
from lib import models
models.CHECKPOINTS |= hub_server.without_checksums()
print(models.find_model("facebook/m2m100_418M").sha256)
"""


def test_a_download_that_is_killed_goes_on_where_it_stopped(tmp_path):
    """kill -9 in the middle of the weights; what had come is not sent again."""
    name = "facebook/m2m100_418M"
    folder = tmp_path / "root" / name
    folder.mkdir(parents=True)
    tiny_repositories.m2m100(folder)
    weights = folder / "pytorch_model.bin"
    with open(weights, "ab") as file:
        file.write(bytes(40_000_000))
    key = f"{name}/{weights.name}"
    with HubServer(tmp_path / "root", pause=0.004) as hub:
        ours = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home")}
        environment = {**os.environ, **ours, "PYTHONPATH": os.pathsep.join(sys.path)}
        environment.pop("HF_HUB_OFFLINE", None)
        command = [sys.executable, "-c", FETCH]
        first = subprocess.Popen(command, cwd=ROOT, env=environment)
        while hub.sent.get(key, 0) < 25_000_000:
            assert first.poll() is None, "the download ended before it was killed"
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.wait()
        time.sleep(0.5)  # the server notices
        hub.pause = 0.0
        before = hub.sent[key]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        size = weights.stat().st_size
        assert hub.sent[key] - before < size - 15_000_000


def test_reports_and_evaluation_sets_take_every_model_of_the_hub_at_once(
    hub, tmp_path, monkeypatch
):
    """Each model that scores turns has its columns; the others (USL-H, MAUVE) stop nothing."""
    said = {"fun": {"positive": ["what fun"], "negative": ["how dull"]}}
    monkeypatch.setattr("lib.metrics.likelihood.follow_ups", lambda: said)
    monkeypatch.setattr("lib.metrics.registry.ROOT", tmp_path)
    monkeypatch.setattr("lib.metrics.asked_models.SPEEDS", tmp_path / "speeds")
    bots = evaluation_sets.load_set("sample_bots")
    few = bots.table.groupby("system", sort=False).head(4)
    asked = metrics.parse_models("all")
    scores = evaluation_sets.computed_by_models(few, asked)
    for item in asked:
        named = scores.filter(regex=rf"\[{re.escape(item.label)}\]$")
        if item.metric not in metrics.METRICS:
            assert named.empty
        else:
            assert named.notna().any(axis=None), item
    assert scores.columns.is_unique
    assert {*scores.dropna(axis=1, how="all")} <= {*report_scores(few, asked=asked)}
