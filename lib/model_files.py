"""Files of pretrained models: fetch them from the hub, and make safetensors of other forms.

A download that was cut off goes on where it stopped. Weights come last, so a folder of the hub
cache that holds its weights holds everything. Pickled weights and GGUF files are converted once,
into `data/cache/models`; a pickle is read by torch's restricted reader, which runs no code.
"""

import json
import os
import shutil
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from filelock import FileLock

from lib.data.storage import atomic_write, file_sha256

SMALL_FILES = (".json", ".txt", ".model")  # configuration and tokenizer
WEIGHTS = ("model*.safetensors", "pytorch_model*.bin", "*.gguf")  # in this preference
TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model")  # any of them; a GGUF has its own


class CheckpointError(RuntimeError):
    """A model that is missing, incomplete, not readable, or not the one that was asked for."""


def cached_folder(name: str, revision: str) -> Path | None:
    """Return the folder of a model in the local hub cache if it is complete, else None."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(name, "config.json", revision=revision)
    if not isinstance(file, str):
        return None
    folder = Path(file).parent
    try:
        weight_files(folder)
    except CheckpointError:
        return None
    has_tokenizer = any(any(folder.glob(pattern)) for pattern in TOKENIZERS)
    return folder if has_tokenizer else None


def download(name: str, revision: str) -> Path:
    """Fetch a model into the local hub cache: small files, then weights; go on where one stopped.

    Of several forms only the first of safetensors, pickled weights and GGUF is fetched.

    Raises:
        Exception: whatever the hub client raises without a network, or for an unknown id.
    """
    from huggingface_hub import HfApi, hf_hub_download, snapshot_download

    # One short question first: a download retries for half a minute where there is no network.
    info = HfApi().repo_info(name, revision=revision, timeout=10)
    names = [file.rfilename for file in info.siblings if "/" not in file.rfilename]
    small = [file for file in names if file.endswith(SMALL_FILES)]
    folder = Path(snapshot_download(name, revision=revision, allow_patterns=small))
    for file in _preferred(names):
        _fetch_weights(name, file, revision)
        hf_hub_download(name, file, revision=revision)  # puts it under its name
    return folder


def _preferred(names: Sequence[str]) -> list[str]:
    """Names of weights in the first form that a repository has.

    >>> _preferred(["pytorch_model.bin", "tf_model.h5", "config.json"])
    ['pytorch_model.bin']
    """
    for pattern in WEIGHTS:
        matching = [name for name in names if fnmatch(name, pattern)]
        if matching:
            return matching
    return []


def _fetch_weights(name: str, file: str, revision: str) -> None:
    """Put a file of weights among the blobs of the hub cache; what an earlier try left is kept.

    The hub's own client starts a file from its beginning after its process was killed.
    """
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get, repo_folder_name

    address = get_hf_file_metadata(hf_hub_url(name, file, revision=revision))
    folder = repo_folder_name(repo_id=name, repo_type="model")
    blob = Path(constants.HF_HUB_CACHE, folder, "blobs", address.etag)
    blob.parent.mkdir(parents=True, exist_ok=True)
    part = blob.with_name(f"{blob.name}.part")
    with FileLock(f"{blob}.lock"):  # two notebooks may ask for it at a time
        if blob.exists():
            return
        part.touch()
        with open(part, "r+b") as unfinished:
            n_received = unfinished.seek(0, os.SEEK_END)
            http_get(
                address.location,
                unfinished,
                resume_size=n_received,
                expected_size=address.size,
                displayed_filename=f"{name} {file}",
            )
        # The hub names large files by their SHA-256.
        if len(blob.name) == 64 and file_sha256(part) != blob.name:
            part.unlink()
            raise OSError(f"{file} of {name} was damaged on its way: try again")
        os.replace(part, blob)


def weight_files(folder: Path) -> list[Path]:
    """Return the weights of a model folder: safetensors, else pickled ones, else its GGUF file.

    Raises:
        CheckpointError: a file is missing.
    """
    for index, single in (
        ("model.safetensors.index.json", "model.safetensors"),
        ("pytorch_model.bin.index.json", "pytorch_model.bin"),
    ):
        names = [single]
        if (folder / index).exists() and not (folder / single).is_file():
            stored = json.loads((folder / index).read_text(encoding="utf-8"))
            names = sorted(set(stored["weight_map"].values()))
        missing = [name for name in names if not (folder / name).is_file()]
        if not missing:
            return [folder / name for name in names]
        if len(missing) < len(names):
            raise CheckpointError(
                f"{folder} lacks {', '.join(missing)}: download the folder again."
            )
    gguf = [*folder.glob("*.gguf")]
    if len(gguf) == 1:
        return gguf
    raise CheckpointError(
        f"{folder} lacks model.safetensors (or pytorch_model.bin, or one GGUF file): download the "
        "folder again."
    )


def convert_pickled(weights: Sequence[Path], folder: Path) -> None:
    """Write pickled weights as `model.safetensors` into a folder, with the other files beside it.

    Raises:
        CheckpointError: the file holds anything but tensors by name, such as code, or is damaged.
    """
    import torch
    from safetensors.torch import save_file

    tensors = {}
    for file in weights:
        try:
            stored = torch.load(file, map_location="cpu", weights_only=True)
            for name, tensor in stored.items():
                tensors[name] = tensor.contiguous().clone()  # none shares its memory
        except Exception as error:  # torch has no one error for it
            raise CheckpointError(
                f"{file} cannot be read as tensors alone ({type(error).__name__}: {error}): it is "
                "damaged, or holds code, which is not run. Delete it and get the model again, or "
                "pass the folder of a copy that you saved as safetensors."
            ) from error
    folder.mkdir(parents=True, exist_ok=True)
    for file in weights[0].parent.iterdir():
        if file.suffix in SMALL_FILES and not file.name.endswith(".index.json"):
            shutil.copy(file, folder)
    with atomic_write(folder / "model.safetensors") as unfinished:
        save_file(tensors, unfinished, metadata={"format": "pt"})


def load_tokenizer(folder: Path, **options):
    """Load the tokenizer of a model folder.

    A class that transformers does not know (BLEURT's, SMaLL-100's) is replaced by its equal.

    Raises:
        CheckpointError: the folder has none.
    """
    import transformers

    # Without any of these transformers 5 makes a tokenizer with no vocabulary, and says nothing.
    if not any(any(folder.glob(pattern)) for pattern in TOKENIZERS):
        raise CheckpointError(f"{folder} holds no tokenizer: it lacks tokenizer.json.")
    options["local_files_only"] = True
    if (folder / "tokenizer.json").exists():
        return transformers.AutoTokenizer.from_pretrained(folder, **options)
    if (folder / "spm.model").exists():  # BLEURT-20
        return _sentencepiece_tokenizer(folder / "spm.model")
    stated = tokenizer_class(folder)
    if stated.startswith("Bleurt"):
        return transformers.BertTokenizer.from_pretrained(folder, **options)
    if stated == "SMALL100Tokenizer":
        return transformers.M2M100Tokenizer.from_pretrained(folder, **options)
    return transformers.AutoTokenizer.from_pretrained(folder, **options)


def tokenizer_class(folder: Path) -> str:
    """Return the class that a folder names for its tokenizer; "" where it names none."""
    file = folder / "tokenizer_config.json"
    if not file.exists():
        return ""
    return json.loads(file.read_text(encoding="utf-8")).get("tokenizer_class") or ""


def _sentencepiece_tokenizer(file: Path):
    """A SentencePiece model between [CLS] and [SEP], as BLEURT-20 reads a pair of texts."""
    from sentencepiece import SentencePieceProcessor
    from tokenizers import Regex, Tokenizer, normalizers, processors
    from transformers import PreTrainedTokenizerFast, RemBertTokenizer

    pieces = SentencePieceProcessor(model_file=str(file))
    rembert = RemBertTokenizer.from_pretrained(file.parent, vocab_file=str(file))
    stored = json.loads(rembert.backend_tokenizer.to_str())
    stored["model"]["unk_id"] = pieces.unk_id()
    steps = stored["normalizer"]["normalizers"]
    # SentencePiece's own normalisation alone: RemBERT changes quotation marks as well.
    stored["normalizer"]["normalizers"] = [
        step for step in steps if step["type"] == "Precompiled"
    ]
    tokens = Tokenizer.from_str(json.dumps(stored))
    one_space = normalizers.Replace(Regex(" {2,}"), " ")
    tokens.normalizer = normalizers.Sequence(
        [tokens.normalizer, normalizers.Strip(), one_space]
    )
    special_tokens = [
        (piece, pieces.piece_to_id(piece)) for piece in ("[CLS]", "[SEP]")
    ]
    tokens.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=special_tokens,
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokens,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token=pieces.id_to_piece(max(pieces.pad_id(), 0)),
        unk_token=pieces.id_to_piece(pieces.unk_id()),
    )
