"""Models are found in the stated order, checked, read without running code, run in batches."""

import shutil
from types import SimpleNamespace

import gguf
import numpy as np
import pytest
import tiny_models
import torch
from hub_server import HubServer, use_hub
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib import models


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 100))
@example([1, 1, 50, 50], 99)  # batches in the order of the rows would be too large
def test_batches_hold_every_row_once_within_the_bound(lengths, max_tokens):
    batches = models.token_batches(lengths, max_tokens)
    rows = [int(row) for row in np.concatenate([[], *batches])]
    assert sorted(rows) == list(range(len(lengths)))
    for batch in batches:
        widest = max(lengths[row] for row in batch)
        assert len(batch) * widest <= max_tokens or len(batch) == 1


@pytest.mark.parametrize(
    "gigabytes, asked, n_tokens", [(80, None, 16_384), (8, None, 4096), (80, 100, 100)]
)
def test_a_batch_on_a_gpu_is_as_large_as_its_memory_allows(
    monkeypatch, gigabytes, asked, n_tokens
):
    gpu = SimpleNamespace(total_memory=gigabytes * 1e9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    model = models.Model(None, None, torch.device("cuda"), batch_tokens=asked)
    assert models.tokens_per_batch(model, on_cpu=512) == n_tokens


@pytest.mark.parametrize("name", models.PACKAGED)
def test_a_packaged_model_is_known_by_its_file(name):
    location = models.find_model(name)
    assert location.sha256 == models.CHECKPOINTS[name].weights_sha256
    assert models.find_model(location.folder).sha256 == location.sha256


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
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(ours.weight.detach().numpy(), expected)


def test_an_altered_packaged_copy_is_refused(tmp_path, monkeypatch):
    package, _, subfolder = models.PACKAGED[models.DEFAULT_ENCODER].partition("/")
    tiny_models.bert(tmp_path / package / subfolder)
    (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(models.CheckpointError, match="SHA-256"):
        models.find_model(models.DEFAULT_ENCODER)


@pytest.fixture
def snapshot(tmp_path, monkeypatch):
    """The folder of the default encoder in an empty hub cache, not made yet."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    commit = models.CHECKPOINTS[models.DEFAULT_ENCODER].revision
    name = models.DEFAULT_ENCODER.replace("/", "--")
    folder = tmp_path / f"models--{name}" / "snapshots" / commit
    folder.parent.mkdir(parents=True)
    return folder


def test_the_hub_cache_comes_before_the_packaged_copy(snapshot):
    snapshot.symlink_to(models.find_model(models.DEFAULT_ENCODER).folder)
    location = models.find_model(models.DEFAULT_ENCODER)
    assert location.folder == snapshot
    assert location.revision == snapshot.name


def test_an_altered_copy_in_the_hub_cache_is_refused(snapshot):
    tiny_models.bert(snapshot)
    with pytest.raises(models.CheckpointError, match="SHA-256 .*get the model again"):
        models.find_model(models.DEFAULT_ENCODER)


def test_half_a_download_does_not_hide_the_packaged_copy(snapshot):
    packaged = models.find_model(models.DEFAULT_ENCODER).folder
    snapshot.mkdir()
    (snapshot / "config.json").write_text("{}")
    assert models.find_model(models.DEFAULT_ENCODER).folder == packaged


@pytest.fixture
def half_download(tmp_path, monkeypatch):
    """A hub cache that has the configuration of a model, but not its weights."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--me--mine" / "snapshots" / ("0" * 40)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_half_a_download_is_completed_from_the_hub(half_download, monkeypatch):
    root = half_download.parents[2] / "root"
    tiny_models.bert(root / "me" / "mine")
    with HubServer(root) as hub:
        use_hub(monkeypatch, hub, half_download.parents[2])
        location = models.find_model("me/mine", revision=half_download.name)
    assert location.weights == (half_download / "model.safetensors",)


def test_half_a_download_is_named_where_the_hub_is_out_of_reach(
    half_download, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", refuse_connection)
    with pytest.raises(models.CheckpointError, match="me/mine.* not completely"):
        models.find_model("me/mine", revision=half_download.name)


def refuse_connection(*args, **options):
    raise ConnectionError("no network")


BART = "facebook/bart-large-cnn"
HINTS = {
    BART: f"hf download {BART} --revision 37f520fa",
    "nobody/nothing": "is the id right",
}
HINTS |= {
    "no id at all": "is the id right",
    "./no_such_folder": "Pass the folder that holds it",
}


@pytest.mark.parametrize(("name", "hint"), HINTS.items())
def test_a_missing_model_is_named_with_the_ways_to_get_it(monkeypatch, name, hint):
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", refuse_connection)
    with pytest.raises(models.CheckpointError, match=name) as caught:
        models.find_model(name)
    assert hint in str(caught.value)


def test_pickled_weights_are_converted_once(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.models.ROOT", tmp_path / "root")
    folder = tiny_models.bert(tmp_path / "model")
    expected = models.load_encoder(folder, device="cpu").network.state_dict()
    torch.save(expected, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    found = models.load_encoder(folder, device="cpu").network.state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    converted = models.safetensors_folder(models.find_model(folder))
    written = (converted / "model.safetensors").stat().st_mtime_ns
    models._load_once.cache_clear()
    models.load_encoder(folder, device="cpu")
    assert (converted / "model.safetensors").stat().st_mtime_ns == written


def test_a_damaged_pickle_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.models.ROOT", tmp_path / "root")
    folder = tiny_models.bert(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"half a file")
    with pytest.raises(models.CheckpointError, match="pytorch_model.bin .*damaged"):
        models.load_encoder(folder, device="cpu")


def lose_a_shard(folder):
    (folder / "model.safetensors").rename(folder / "model-1-of-2.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}'
    )


def truncate(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


DAMAGES = {"config.json": "config.json", "model.safetensors": "lacks model.safetensors"}
DAMAGES |= {
    lose_a_shard: "lacks model-2-of-2.safetensors",
    truncate: "cannot be loaded",
}
DAMAGES |= {"*token*": "tokenizer.json"}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.items())
def test_a_damaged_folder_says_what_it_lacks(tmp_path, damage, message):
    folder = tiny_models.gpt2(tmp_path)
    if callable(damage):
        damage(folder)
    else:
        for path in folder.glob(damage):
            path.unlink()
    with pytest.raises(models.CheckpointError, match=message):
        models.load_causal(folder)


def test_a_head_without_weights_is_an_error_not_a_random_head(tmp_path):
    with pytest.raises(models.CheckpointError, match="no weights for"):
        models.load_classifier(tiny_models.bert(tmp_path))


def test_changed_weights_in_the_same_folder_are_another_model(tmp_path):
    folder = tiny_models.bert(tmp_path / "tiny")
    first = models.load_encoder(folder, device="cpu")
    provenance = models.provenance_of(folder)
    assert models.load_encoder(folder, device="cpu") is first
    assert provenance["checkpoint"] == "tiny"
    assert provenance["device"] == str(models.default_device())
    shutil.rmtree(folder)
    second = models.load_encoder(tiny_models.bert(folder, seed=1), device="cpu")
    first_weights = first.network.embeddings.word_embeddings.weight
    assert not torch.equal(
        first_weights, second.network.embeddings.word_embeddings.weight
    )
    assert (
        models.provenance_of(folder)["weights_sha256"] != provenance["weights_sha256"]
    )


def test_roberta_is_built_with_its_prefix_space(tmp_path):
    """transformers 5 ignores add_prefix_space in encode(): the tokenizer must be built with it."""
    tokenizer = models.load_encoder(
        tiny_models.roberta(tmp_path), device="cpu"
    ).tokenizer
    inside = tokenizer("so the kettle")["input_ids"][-3:-1]
    alone = tokenizer("the kettle")["input_ids"][1:-1]
    assert alone[-len(inside) :][0] == inside[0]
    assert tokenizer.convert_ids_to_tokens(alone)[0].startswith("Ġ")
