"""Pretrained models: which there are, where they lie, and how they are loaded.

One table names every model; `find` looks in the given folder, the local hub cache, the packaged
copy and last on the hub; weights are read from safetensors only; nothing touches the network at
import.
"""

from lib.models.batching import map_batches, pad
from lib.models.load import (
    Model,
    convert,
    default_device,
    load_causal,
    load_classifier,
    load_encoder,
    load_masked,
    load_network,
    load_seq2seq,
    load_tokenizer,
    provenance,
    provenance_of,
)
from lib.models.locate import CheckpointError, Location, find, weight_files
from lib.models.table import CHECKPOINTS, DEFAULT_ENCODER, Checkpoint, table

__all__ = [
    "CHECKPOINTS",
    "DEFAULT_ENCODER",
    "Checkpoint",
    "CheckpointError",
    "Location",
    "Model",
    "convert",
    "default_device",
    "find",
    "load_causal",
    "load_classifier",
    "load_encoder",
    "load_masked",
    "load_network",
    "load_seq2seq",
    "load_tokenizer",
    "map_batches",
    "pad",
    "provenance",
    "provenance_of",
    "table",
    "weight_files",
]
