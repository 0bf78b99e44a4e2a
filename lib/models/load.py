"""Load a model once, on a device and in a precision of choice, with what ran written down."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch.ao.quantization import per_channel_dynamic_qconfig
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging
from transformers.utils.logging import is_progress_bar_enabled

from lib.models.locate import CheckpointError, Location, find, weight_files
from lib.models.table import DEFAULT_ENCODER

DTYPES = ("float32", "bfloat16", "float16", "int8")
# All but the second feed-forward layer, whose inputs have outliers: quantising it too moved the
# token vectors of the packaged encoder to a mean cosine of .959 instead of .977.
QUANTISED = ("att", "intermediate")  # parts of the names of linear layers


@dataclass(frozen=True, eq=False)
class Model:
    """A network in evaluation mode with its tokenizer, and the facts that its scores depend on."""

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    provenance: dict = field(default_factory=dict)

    @property
    def positions(self) -> int:
        """Most tokens that the network takes, special tokens included."""
        config = self.network.config
        known = getattr(config, "max_position_embeddings", None) or getattr(
            config, "n_positions", None
        )
        # RoBERTa counts positions from the padding id on.
        if config.model_type in ("roberta", "xlm-roberta", "camembert"):
            known -= config.pad_token_id + 1
        limit = self.tokenizer.model_max_length
        return min(known or limit, limit if limit and limit < 1 << 30 else known or 1024)


def default_device() -> torch.device:
    """Return the first GPU where there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_encoder(name: str | Path = DEFAULT_ENCODER, **options) -> Model:
    """Load a text encoder and its tokenizer; the packaged MiniLM by default.

    Byte-level tokenizers (RoBERTa, GPT-2) are built with their prefix space, so that the first
    word of a text is the same token as the same word further on.

    Args:
        name: a folder or a hub id, see `find`.
        options: `device` ("cpu", "cuda"; a GPU where there is one), `dtype` ("float32", "bfloat16",
            "float16", or "int8": most linear layers quantised dynamically, CPU only), `revision`,
            and `layers`: keep the first so many layers only, all by default.

    Returns:
        A `Model`; loaded once per process for the same arguments.

    Raises:
        CheckpointError: the model cannot be found or loaded; says what to do.

    >>> load_encoder().network.config.hidden_size
    384
    """
    return _load(AutoModel, name, prefix_space=True, **options)


def load_masked(name: str | Path, **options) -> Model:
    """Load a masked language model; arguments as in `load_encoder`."""
    return _load(AutoModelForMaskedLM, name, **options)


def load_causal(name: str | Path, **options) -> Model:
    """Load a left-to-right language model; arguments as in `load_encoder`."""
    return _load(AutoModelForCausalLM, name, **options)


def load_seq2seq(name: str | Path, **options) -> Model:
    """Load an encoder-decoder language model; arguments as in `load_encoder`."""
    return _load(AutoModelForSeq2SeqLM, name, **options)


def load_classifier(name: str | Path, **options) -> Model:
    """Load a sequence classifier; arguments as in `load_encoder`."""
    return _load(AutoModelForSequenceClassification, name, **options)


def load_tokenizer(folder: Path, **options) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model folder.

    Raises:
        CheckpointError: the folder has none that this environment can read.
    """
    # Without any of these transformers 5 makes a tokenizer with no vocabulary, and says nothing.
    files = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
    if not any(True for pattern in files for _ in Path(folder).glob(pattern)):
        raise CheckpointError(f"{folder} holds no tokenizer: it lacks tokenizer.json.")
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, **options)
    except (OSError, ValueError, ImportError, AttributeError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"No readable tokenizer in {folder} ({error}). It needs tokenizer.json; a folder with "
            "a SentencePiece .model alone also needs the package sentencepiece."
        ) from error


def provenance(location: Location, dtype: str = "float32", device: object = None) -> dict:
    """Return what identifies a loaded model: id, commit, checksum, precision, device, versions.

    Of "int8" the record also says which layers were quantised, so that scores kept under another
    choice of layers are not taken for these.
    """
    import transformers

    if dtype == "int8":
        dtype = f"int8 per channel in linear layers named {' or '.join(QUANTISED)}, else float32"
    return {
        "checkpoint": location.name if location.source != "folder" else location.folder.name,
        "revision": location.revision,
        "weights_sha256": location.sha256,
        "dtype": dtype,
        "device": str(device or default_device()),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def provenance_of(
    name: str | Path,
    *,
    revision: str | None = None,
    dtype: str = "float32",
    device: object = None,
    **options,
) -> dict:
    """Return the provenance of the model that a metric would load with the same options."""
    return provenance(find(name, revision), dtype, device)


def convert(folder: str | Path) -> Path:
    """Rewrite the pickled weights of a model folder as model.safetensors, once.

    The pickle is read by PyTorch's restricted reader, which refuses everything but tensors.

    Raises:
        CheckpointError: the folder has no pickled weights, or they hold more than tensors.
    """
    from pickle import UnpicklingError

    from safetensors.torch import save_file

    folder = Path(folder)
    files = sorted(folder.glob("pytorch_model*.bin"))
    if not files:
        raise CheckpointError(f"{folder} holds no pytorch_model*.bin to convert.")
    weights: dict[str, torch.Tensor] = {}
    for path in files:
        try:
            weights |= torch.load(path, map_location="cpu", weights_only=True)
        except UnpicklingError as error:
            raise CheckpointError(f"{path} holds more than tensors: not converted.") from error
    # Tied tensors share memory, which safetensors cannot express.
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in weights.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    return folder / "model.safetensors"


def _load(
    auto,
    name: str | Path,
    *,
    device: object = None,
    dtype: str = "float32",
    revision: str | None = None,
    layers: int | None = None,
    prefix_space: bool = False,
) -> Model:
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r}: choose one of {', '.join(DTYPES)}")
    device = torch.device(device) if device is not None else default_device()
    if dtype == "int8" and device.type != "cpu":
        raise ValueError("dtype 'int8' runs on the CPU only: pass device='cpu', or use bfloat16")
    return _load_once(auto, find(name, revision), str(device), dtype, layers, prefix_space)


@lru_cache(maxsize=8)
def _load_once(auto, location, device, dtype, layers, prefix_space) -> Model:
    kept = {} if layers is None else {"num_hidden_layers": layers}
    network = load_network(auto, location.folder, **kept)
    options = {"add_prefix_space": True} if prefix_space and _byte_level(network) else {}
    network = _in_precision(network.eval(), dtype).to(device)
    return Model(
        network,
        load_tokenizer(location.folder, **options),
        torch.device(device),
        provenance(location, dtype, device),
    )


def load_network(auto, folder: Path, **options) -> PreTrainedModel:
    """Load a network from safetensors; any weight that the file lacks is an error."""
    weight_files(folder)
    try:
        with _quiet():
            network, report = auto.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
                **options,
            )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise CheckpointError(f"{folder} cannot be loaded as {auto.__name__}: {error}") from error
    lacking = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if lacking:
        raise CheckpointError(
            f"{folder} has no weights for {', '.join(lacking[:3])}"
            f"{' ...' if len(lacking) > 3 else ''}: it is not a checkpoint for {auto.__name__}."
        )
    return network.eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers while it loads: what it would log is checked after it."""
    verbosity, bar = transformers_logging.get_verbosity(), is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bar:
            transformers_logging.enable_progress_bar()


def _byte_level(network: PreTrainedModel) -> bool:
    return network.config.model_type in ("roberta", "gpt2", "longformer")


def _in_precision(network: PreTrainedModel, dtype: str) -> torch.nn.Module:
    if dtype != "int8":
        return network.to(getattr(torch, dtype))
    spec = {
        name: per_channel_dynamic_qconfig
        for name, part in network.named_modules()
        if isinstance(part, torch.nn.Linear) and any(key in name.lower() for key in QUANTISED)
    }
    if not spec:
        raise CheckpointError(f"{type(network).__name__}: no layer to quantise.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated in torch 2.13, which this project pins
        return torch.ao.quantization.quantize_dynamic(network, spec, torch.qint8)
