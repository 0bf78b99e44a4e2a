"""The network of EnDex: any pretrained encoder with a classification head over a pair of texts."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from lib import models as checkpoints

TINY = "tiny"  # an untrained encoder for the sample: two layers, the packaged vocabulary
TINY_SIZE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}


def build(encoder: str | Path, seed: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, dict]:
    """An encoder with a new head for two classes, its tokenizer, and where it came from.

    Args:
        encoder: "tiny", or the folder or hub id of a pretrained encoder: RoBERTa-large in the
            paper, the packaged MiniLM by default.
        seed: of the head (and of the whole network for "tiny").

    Raises:
        CheckpointError: the encoder cannot be found.
    """
    torch.manual_seed(seed)
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # it would report the new head as missing weights
    try:
        if str(encoder) == TINY:
            folder = checkpoints.find(checkpoints.DEFAULT_ENCODER).folder
            config = AutoConfig.from_pretrained(folder, num_labels=2, **TINY_SIZE)
            network = AutoModelForSequenceClassification.from_config(config)
            origin = {"checkpoint": TINY}
        else:
            location = checkpoints.find(encoder)
            folder, origin = location.folder, checkpoints.provenance_of(encoder)
            network = AutoModelForSequenceClassification.from_pretrained(
                folder, num_labels=2, local_files_only=True, use_safetensors=True
            )
    finally:
        transformers_logging.set_verbosity(verbosity)
    network.config.id2label = {0: "non-engaging", 1: "engaging"}
    network.config.label2id = {"non-engaging": 0, "engaging": 1}
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    kept = ("checkpoint", "revision", "weights_sha256")
    return network, tokenizer, {name: origin[name] for name in kept if name in origin}


def freeze(network: PreTrainedModel, layers: int) -> None:
    """Keep the embeddings and the first `layers` layers of an encoder as they are; 0 trains all."""
    if layers == 0:
        return
    frozen = ("embeddings.", *(f"layer.{i}." for i in range(layers)))
    for name, parameter in network.base_model.named_parameters():
        if any(part in f".{name}" for part in (f".{f}" for f in frozen)):
            parameter.requires_grad_(False)


def training_mode(network: PreTrainedModel) -> None:
    """Switch dropout on, except in frozen parts: nothing is learned there, and it costs time."""
    network.train()
    for part in network.modules():
        parameters = list(part.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
            part.eval()


def encode(
    tokenizer: PreTrainedTokenizerBase,
    contexts: Sequence[str],
    responses: Sequence[str],
    max_length: int,
) -> dict[str, list[list[int]]]:
    """Token ids (and segments, where the model has them) of pairs; the longer text is cut first."""
    encoded = tokenizer(
        list(contexts),
        list(responses),
        truncation="longest_first",
        max_length=max_length,
        return_attention_mask=False,
    )
    return {name: encoded[name] for name in ("input_ids", "token_type_ids") if name in encoded}


def batch(
    encoded: dict[str, list[list[int]]], rows: Sequence[int], padding: int, multiple: int = 1
) -> dict[str, torch.Tensor]:
    """Padded tensors of some rows; the width is rounded up to a multiple (8 suits a GPU)."""
    longest = max(len(encoded["input_ids"][row]) for row in rows)
    width = -(-longest // multiple) * multiple
    tensors = {
        name: torch.full((len(rows), width), padding if name == "input_ids" else 0)
        for name in encoded
    }
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, row in enumerate(rows):
        for name, tensor in tensors.items():
            values = encoded[name][row]
            tensor[i, : len(values)] = torch.as_tensor(values)
        mask[i, : len(encoded["input_ids"][row])] = 1
    return tensors | {"attention_mask": mask}
