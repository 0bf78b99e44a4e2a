"""Models are found in the stated order, checked, and loaded from safetensors only."""

import pickle
import shutil

import numpy as np
import pytest
import tiny_models
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib import models as checkpoints
from lib.metrics import METRICS
from lib.models import batching, load, locate


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 100))
@example([1, 1, 50, 50], 99)  # batches in the order of the rows would be too large
def test_batches_hold_every_row_once_within_the_bound(lengths, tokens):
    batches = batching.token_batches(lengths, tokens)
    assert sorted(int(row) for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        widest = max(lengths[row] for row in batch)
        assert len(batch) * widest <= tokens or len(batch) == 1


def test_scores_come_back_in_the_order_of_the_rows():
    lengths = np.random.default_rng(0).integers(1, 50, 200)
    scores = batching.map_batches(lambda rows: np.stack([rows, -rows], 1), lengths, tokens=64)
    assert np.array_equal(scores, np.stack([np.arange(200), -np.arange(200)], 1))


def test_no_rows_give_no_scores():
    assert batching.map_batches(lambda rows: rows, []).shape == (0,)


def test_the_packaged_encoder_is_the_hubs_file(offline):
    found = checkpoints.find(checkpoints.DEFAULT_ENCODER)
    assert found.source == "packaged copy"
    assert found.sha256 == checkpoints.CHECKPOINTS[checkpoints.DEFAULT_ENCODER].weights_sha256


def test_an_altered_packaged_copy_is_refused(offline, tmp_path, monkeypatch):
    tiny_models.bert(tmp_path / "model")
    monkeypatch.setattr(locate, "_packaged", lambda name, revision: tmp_path / "model")
    locate._packaged.source = "packaged copy"
    with pytest.raises(checkpoints.CheckpointError, match="SHA-256"):
        checkpoints.find(checkpoints.DEFAULT_ENCODER)


def test_the_hub_cache_comes_before_the_packaged_copy(offline, tmp_path, monkeypatch):
    commit = checkpoints.CHECKPOINTS[checkpoints.DEFAULT_ENCODER].revision
    snapshot = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / commit
    snapshot.parent.mkdir(parents=True)
    packaged = locate._packaged(checkpoints.DEFAULT_ENCODER, "main")
    snapshot.symlink_to(packaged)
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path), raising=False
    )
    found = checkpoints.find(checkpoints.DEFAULT_ENCODER)
    assert (found.source, found.revision) == ("hub cache", commit)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("facebook/bart-large-cnn", "hf download facebook/bart-large-cnn --revision 37f520fa"),
        ("nobody/nothing", "is the id right"),
        ("./no_such_folder", "No folder"),
    ],
)
def test_a_missing_model_is_named_with_the_ways_to_get_it(offline, name, hint):
    with pytest.raises(checkpoints.CheckpointError, match=name) as caught:
        checkpoints.find(name)
    assert hint in str(caught.value)


def test_a_folder_with_pickled_weights_only_is_refused_and_can_be_converted(tmp_path):
    folder = tiny_models.bert(tmp_path)
    before = checkpoints.load_encoder(folder, device="cpu").network.state_dict()
    torch.save(before, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(checkpoints.CheckpointError, match="lib.models.convert"):
        checkpoints.find(folder)
    checkpoints.convert(folder)
    after = checkpoints.load_encoder(folder, device="cpu").network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_converting_refuses_a_pickle_that_runs_code(tmp_path):
    class Attack:
        def __reduce__(self):
            return (print, ("executed",))

    with open(tmp_path / "pytorch_model.bin", "wb") as file:
        pickle.dump(Attack(), file)
    with pytest.raises(checkpoints.CheckpointError, match="more than tensors"):
        checkpoints.convert(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("lost", ["config.json", "model.safetensors"])
def test_a_folder_with_a_missing_file_names_it(tmp_path, lost):
    folder = tiny_models.bert(tmp_path)
    (folder / lost).unlink()
    with pytest.raises(checkpoints.CheckpointError, match=lost):
        checkpoints.load_encoder(folder)


def test_a_missing_shard_is_named(tmp_path):
    folder = tiny_models.bert(tmp_path)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "model-00001-of-00002.safetensors",'
        ' "b": "model-00002-of-00002.safetensors"}}'
    )
    with pytest.raises(checkpoints.CheckpointError, match="model-00002-of-00002.safetensors"):
        checkpoints.find(folder)


def test_a_truncated_weight_file_is_an_error_that_names_the_folder(tmp_path):
    folder = tiny_models.bert(tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(checkpoints.CheckpointError, match="cannot be loaded"):
        checkpoints.load_encoder(folder)


def test_a_folder_without_a_tokenizer_says_what_it_needs(tmp_path):
    folder = tiny_models.gpt2(tmp_path)
    for path in folder.glob("*token*"):
        path.unlink()
    with pytest.raises(checkpoints.CheckpointError, match="tokenizer.json"):
        checkpoints.load_causal(folder)


def test_a_head_without_weights_is_an_error_not_a_random_head(tmp_path):
    folder = tiny_models.bert(tmp_path)
    with pytest.raises(checkpoints.CheckpointError, match="no weights for"):
        checkpoints.load_classifier(folder)


def test_provenance_names_the_weights_that_ran(tmp_path):
    model = checkpoints.load_encoder(tiny_models.bert(tmp_path / "tiny"), device="cpu")
    assert model.provenance["checkpoint"] == "tiny"
    assert model.provenance["weights_sha256"] == checkpoints.find(tmp_path / "tiny").sha256
    other = checkpoints.find(tiny_models.bert(tmp_path / "other", seed=1))
    assert other.sha256 != model.provenance["weights_sha256"]


def test_changed_weights_in_the_same_folder_are_loaded_anew(tmp_path):
    first = checkpoints.load_encoder(tiny_models.bert(tmp_path), device="cpu")
    shutil.rmtree(tmp_path)
    second = checkpoints.load_encoder(tiny_models.bert(tmp_path, seed=1), device="cpu")
    assert first.provenance["weights_sha256"] != second.provenance["weights_sha256"]


def test_roberta_is_built_with_its_prefix_space(tmp_path):
    """transformers 5 ignores add_prefix_space in encode(): the tokenizer must be built with it."""
    tokenizer = checkpoints.load_encoder(tiny_models.roberta(tmp_path), device="cpu").tokenizer
    inside = tokenizer("so the kettle")["input_ids"][-3:-1]
    alone = tokenizer("the kettle")["input_ids"][1:-1]
    assert alone[-len(inside) :][0] == inside[0]
    assert tokenizer.convert_ids_to_tokens(alone)[0].startswith("Ġ")


def test_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="float32"):
        checkpoints.load_encoder(dtype="float8")


def test_every_checkpoint_is_named_once_with_its_role():
    table = checkpoints.table()
    assert table.hub_id.is_unique
    assert set(table.architecture) <= {"encoder", "masked", "causal", "seq2seq", "classifier"}
    assert table.notna().drop(columns="weights_sha256").all(axis=None)


def test_a_revision_that_is_not_pinned_says_so():
    table = checkpoints.table().set_index("hub_id")["revision"]
    assert table["microsoft/DialoGPT-large"] == "main (not pinned)"
    pinned = table[table != "main (not pinned)"]
    assert pinned.str.fullmatch("[0-9a-f]{40}").all() and len(pinned) > 3


def test_the_precision_names_the_layers_that_are_quantised(tmp_path, monkeypatch):
    """A score kept under one choice of layers must not be taken for one under another."""
    folder = tiny_models.bert(tmp_path)
    first = checkpoints.load_encoder(folder, device="cpu", dtype="int8")
    small = {
        name.split(".")[-1] if "attention.self" in name else name.split(".")[-2]
        for name, part in first.network.named_modules()
        if isinstance(part, torch.ao.nn.quantized.dynamic.Linear)
    }
    assert small == {"query", "key", "value", "output", "intermediate"}
    assert isinstance(first.network.encoder.layer[0].output.dense, torch.nn.Linear)
    stated = checkpoints.provenance_of(folder, dtype="int8", device="cpu")["dtype"]
    assert stated == first.provenance["dtype"]
    assert "att or intermediate" in stated
    monkeypatch.setattr(load, "QUANTISED", ("att",))
    assert checkpoints.provenance_of(folder, dtype="int8")["dtype"] != stated


def test_provenance_names_the_device_and_the_revision_that_are_used(tmp_path, monkeypatch):
    folder = tiny_models.bert(tmp_path)
    assert checkpoints.provenance_of(folder)["device"] == str(checkpoints.default_device())
    assert checkpoints.provenance_of(folder, device="meta")["device"] == "meta"
    asked = []
    found = checkpoints.find(folder)
    monkeypatch.setattr(load, "find", lambda *given: asked.append(given) or found)
    for name in ("unieval", "toxicity", "bartscore", "fed"):
        METRICS[name].facts(checkpoint="a/b", revision="c0ffee")
    assert set(asked) == {("a/b", "c0ffee")}
