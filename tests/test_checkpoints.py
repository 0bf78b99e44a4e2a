"""Models are found in the stated order, checked, loaded from safetensors only, run in batches."""

import pickle
import shutil

import gguf
import numpy as np
import pytest
import tiny_models
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib import models


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 100))
@example([1, 1, 50, 50], 99)  # batches in the order of the rows would be too large
def test_batches_hold_every_row_once_within_the_bound(lengths, tokens):
    batches = models.token_batches(lengths, tokens)
    assert sorted(int(row) for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        widest = max(lengths[row] for row in batch)
        assert len(batch) * widest <= tokens or len(batch) == 1


@pytest.mark.parametrize("name", models.PACKAGED)
def test_a_packaged_model_is_known_by_its_file(name):
    found = models.find_model(name)
    assert found.sha256 == models.CHECKPOINTS[name].weights_sha256
    assert models.find_model(found.folder).sha256 == found.sha256


def test_a_gguf_file_is_dequantised_as_its_own_reader_does():
    """Once, into the cache; the values are those of ggml's reference code."""
    file = models.find_model(models.SMOLLM2).weights[0]
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
    network = models.load_causal(file, device="cpu").network
    encoder = models.load_encoder(file, device="cpu").network
    for name, ours in (
        ("blk.7.ffn_down", network.model.layers[7].mlp.down_proj),
        ("token_embd", network.model.embed_tokens),
        ("token_embd", network.lm_head),
        ("token_embd", encoder.embed_tokens),
    ):
        tensor = stored[f"{name}.weight"]
        theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(ours.weight.detach().numpy(), theirs)


def test_an_altered_packaged_copy_is_refused(tmp_path, monkeypatch):
    tiny_models.bert(tmp_path / "model")
    monkeypatch.setattr(models, "_packaged", lambda name: tmp_path / "model")
    with pytest.raises(models.CheckpointError, match="SHA-256"):
        models.find_model(models.DEFAULT_ENCODER)


def test_the_hub_cache_comes_before_the_packaged_copy(tmp_path, monkeypatch):
    commit = models.CHECKPOINTS[models.DEFAULT_ENCODER].revision
    snapshot = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / commit
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(models.find_model(models.DEFAULT_ENCODER).folder)
    for module in ("huggingface_hub", "huggingface_hub._snapshot_download"):
        monkeypatch.setattr(f"{module}.constants.HF_HUB_CACHE", str(tmp_path))
    found = models.find_model(models.DEFAULT_ENCODER)
    assert (found.folder, found.revision) == (snapshot, commit)


BART = "facebook/bart-large-cnn"
HINTS = {BART: f"hf download {BART} --revision 37f520fa", "nobody/nothing": "is the id right"}
HINTS |= {"no id at all": "is the id right", "./no_such_folder": "Pass the folder that holds it"}


@pytest.mark.parametrize(("name", "hint"), HINTS.items())
def test_a_missing_model_is_named_with_the_ways_to_get_it(monkeypatch, name, hint):
    def unreachable(*given, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", unreachable)
    with pytest.raises(models.CheckpointError, match=name) as caught:
        models.find_model(name)
    assert hint in str(caught.value)


def test_a_folder_with_pickled_weights_only_is_refused_and_can_be_converted(tmp_path):
    folder = tiny_models.bert(tmp_path)
    before = models.load_encoder(folder, device="cpu").network.state_dict()
    torch.save(before, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(models.CheckpointError, match="lib.models.convert"):
        models.find_model(folder)
    models.convert(folder)
    after = models.load_encoder(folder, device="cpu").network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_converting_refuses_a_pickle_that_runs_code(tmp_path):
    class Attack:
        def __reduce__(self):
            return (print, ("executed",))

    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Attack(), protocol=2))
    with pytest.raises(pickle.UnpicklingError):
        models.convert(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()


def lose_a_shard(folder):
    (folder / "model.safetensors").rename(folder / "model-1-of-2.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}'
    )


def truncate(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


DAMAGES = {"config.json": "config.json", "model.safetensors": "lacks model.safetensors"}
DAMAGES |= {lose_a_shard: "lacks model-2-of-2.safetensors", truncate: "cannot be loaded"}
DAMAGES |= {"*token*": "tokenizer.json"}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.items())
def test_a_damaged_folder_says_what_it_lacks(tmp_path, damage, message):
    folder = tiny_models.gpt2(tmp_path)
    for path in folder.glob(damage) if isinstance(damage, str) else ():
        path.unlink()
    if callable(damage):
        damage(folder)
    with pytest.raises(models.CheckpointError, match=message):
        models.load_causal(folder)


def test_a_head_without_weights_is_an_error_not_a_random_head(tmp_path):
    with pytest.raises(models.CheckpointError, match="no weights for"):
        models.load_classifier(tiny_models.bert(tmp_path))


def test_changed_weights_in_the_same_folder_are_another_model(tmp_path):
    folder = tiny_models.bert(tmp_path / "tiny")
    first, facts = models.load_encoder(folder, device="cpu"), models.provenance_of(folder)
    assert models.load_encoder(folder, device="cpu") is first
    assert facts["checkpoint"] == "tiny"
    assert facts["device"] == str(models.default_device())
    shutil.rmtree(folder)
    second = models.load_encoder(tiny_models.bert(folder, seed=1), device="cpu")
    pair = [model.network.embeddings.word_embeddings.weight for model in (first, second)]
    assert not torch.equal(*pair)
    assert models.provenance_of(folder)["weights_sha256"] != facts["weights_sha256"]


def test_roberta_is_built_with_its_prefix_space(tmp_path):
    """transformers 5 ignores add_prefix_space in encode(): the tokenizer must be built with it."""
    tokenizer = models.load_encoder(tiny_models.roberta(tmp_path), device="cpu").tokenizer
    inside = tokenizer("so the kettle")["input_ids"][-3:-1]
    alone = tokenizer("the kettle")["input_ids"][1:-1]
    assert alone[-len(inside) :][0] == inside[0]
    assert tokenizer.convert_ids_to_tokens(alone)[0].startswith("Ġ")
