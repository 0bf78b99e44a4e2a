"""BLEURT (Sellam et al. 2020): a regression from reference and candidate to a human rating."""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    PreTrainedTokenizerFast,
    RemBertConfig,
    RemBertForSequenceClassification,
)

from lib.data.blank import is_blank
from lib.metrics.registry import metric
from lib.models import (
    CheckpointError,
    Location,
    Model,
    default_device,
    find,
    load_classifier,
    map_batches,
    pad,
    provenance_of,
    weight_files,
)

CHECKPOINT = "lucadiliello/BLEURT-20"


def bleurt_pairs(
    candidates: Sequence[str],
    references: Sequence[str],
    *,
    checkpoint: str = CHECKPOINT,
    device: str | None = None,
    batch_tokens: int = 4096,
) -> np.ndarray:
    """Score candidates against one reference each: the regression head over [CLS].

    The input is "[CLS] reference [SEP] candidate [SEP]", cut to the model's positions, the longer
    text first.

    Args:
        checkpoint: a PyTorch conversion; BLEURT-20 (and D3 to D12) or an older bleurt-*; scores of
            two checkpoints do not compare, and older ones are not calibrated to any range.

    Returns:
        Shape (n,), about 0 to 1 for BLEURT-20, higher is better; NaN where a text is blank.
    """
    model = load_bleurt(find(checkpoint), str(device or default_device()))
    pairs = list(zip(references, candidates, strict=True))
    rows = [row for row, pair in enumerate(pairs) if not any(map(is_blank, pair))]
    scores = np.full(len(pairs), np.nan)
    if rows:
        encoded = model.tokenizer(
            [pairs[row][0] for row in rows],
            [pairs[row][1] for row in rows],
            truncation=True,
            max_length=model.positions,
            return_token_type_ids=True,
        )
        scores[rows] = _regress(model, encoded, batch_tokens)
    return scores


@metric(
    "bleurt",
    "classifier",
    ("response", "reference"),
    version="1",
    facts=lambda **options: bleurt_provenance(**options),
)
def bleurt(turns: pd.DataFrame, **options) -> pd.Series:
    """Score each response against its references; the best of them counts.

    Args:
        turns: turn table; uses `response` and `reference`.
        options: as in `bleurt_pairs`.

    Returns:
        Series "bleurt" on `turns.index`; higher is better; NaN for a blank response or without a
        reference that has a word.

    Reference: Sellam et al. (2020), ACL; Pu et al. (2021), EMNLP (BLEURT-20).
    """
    row = [i for i, texts in enumerate(turns["reference"]) for _ in texts]
    gold = [text for texts in turns["reference"] for text in texts]
    said = turns["response"].tolist()
    scores = np.full(len(turns), np.nan)
    np.fmax.at(scores, row, bleurt_pairs([said[i] for i in row], gold, **options))
    return pd.Series(scores, turns.index, name="bleurt")


def bleurt_provenance(*, checkpoint: str = CHECKPOINT, **options) -> dict:
    """Return what a BLEURT score depends on besides the texts."""
    return {
        **provenance_of(checkpoint, **options),
        "formula": "BLEURT, maximum over references",
        "truncation": "the model's positions, longer text first",
    }


@lru_cache(maxsize=2)
def load_bleurt(location: Location, device: str) -> Model:
    """Load a BLEURT checkpoint as the transformers architecture that it is.

    The conversions say model type "bleurt", which transformers does not know. It is BERT, or with
    embeddings of their own width (BLEURT-20) RemBERT, under other names.
    """
    config = json.loads((location.folder / "config.json").read_text())
    if config.get("model_type") != "bleurt":
        return load_classifier(location.folder, device=device)
    wide = config.get("embedding_size") is not None
    network = _network(config, wide)
    weights = {}
    for path in weight_files(location.folder):
        weights |= load_file(path)
    weights = {_renamed(key, wide): value for key, value in weights.items()}
    weights = {key: value for key, value in weights.items() if "position_ids" not in key}
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"{location.folder} is not a BLEURT checkpoint: {error}") from error
    return Model(network.eval().to(device), _tokenizer(location.folder), torch.device(device))


def _network(config: dict, wide: bool) -> torch.nn.Module:
    kept = {
        key: config[key]
        for key in (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size",
            "layer_norm_eps", "pad_token_id",
        )
        if key in config
    }  # fmt: skip
    if wide:
        size = config["embedding_size"]
        options = {"input_embedding_size": size, "output_embedding_size": size, "num_labels": 1}
        return RemBertForSequenceClassification(RemBertConfig(**kept, **options))
    return BertForSequenceClassification(BertConfig(**kept, num_labels=1))


def _renamed(key: str, wide: bool) -> str:
    if key.startswith("bleurt."):
        key = ("rembert." if wide else "bert.") + key.removeprefix("bleurt.")
    return key.replace("encoder.embedding_projection", "encoder.embedding_hidden_mapping_in")


def _tokenizer(folder: Path):
    special = {
        f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "pad", "unk", "mask")
    }
    if (folder / "tokenizer.json").exists():
        return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **special)
    if (folder / "vocab.txt").exists():
        return BertTokenizer.from_pretrained(folder, local_files_only=True)
    raise CheckpointError(
        f"{folder} holds neither tokenizer.json nor vocab.txt. BLEURT-20 has a SentencePiece model "
        "alone: convert it once with transformers and the package sentencepiece, and save "
        "tokenizer.json into the folder."
    )


def _regress(model: Model, encoded, batch_tokens: int) -> np.ndarray:
    ids, types = encoded["input_ids"], encoded.get("token_type_ids")

    @torch.inference_mode()
    def score(rows: np.ndarray) -> torch.Tensor:
        tokens, mask = pad([ids[row] for row in rows], model.tokenizer.pad_token_id or 0)
        kinds = pad([types[row] for row in rows], 0)[0] if types else torch.zeros_like(tokens)
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": kinds}
        inputs = {name: value.to(model.device) for name, value in inputs.items()}
        return model.network(**inputs).logits[:, 0].float()

    return map_batches(score, [len(row) for row in ids], tokens=batch_tokens, label="BLEURT")
