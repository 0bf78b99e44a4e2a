"""A training run: its options, what it measured, and the files that it leaves."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.models import DEFAULT_ENCODER

# In the folder of a finished run.
RECORD = "record.json"
NETWORK = "model.safetensors"


@dataclass(frozen=True)
class TrainingOptions:
    """How to fine-tune; the defaults suit the packaged encoder on a CPU.

    Attributes:
        encoder: folder or hub id, or "tiny". The paper: FacebookAI/roberta-large.
        epochs: passes over the pairs (paper: 2).
        learning_rate: the highest one, reached after the warm-up (paper: 5e-5).
        warmup_ratio: share of the steps in which the learning rate rises from 0; it then falls to
            0. The paper states none; large encoders collapse without.
        batch_tokens: tokens in a batch, padding included (the paper gives no batch size).
        max_length: tokens of a pair; longer ones are cut.
        frozen_layers: first layers, with the embeddings, that are not trained and have no dropout:
            the hidden states of a pair are computed once. 0 trains all; the packaged classifier
            is trained with 5 (`scripts/train_endex.py`).
        precision: "fp32" or "bf16" (autocast; for GPUs).
    """

    encoder: str = DEFAULT_ENCODER
    epochs: int = 2
    learning_rate: float = 5e-5
    warmup_ratio: float = 0.06
    batch_tokens: int = 2048
    max_length: int = 128
    frozen_layers: int = 0
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.precision not in ("fp32", "bf16"):
            raise ValueError(f"precision {self.precision!r}: choose fp32 or bf16")


@dataclass(frozen=True)
class TrainedModel:
    """A finished training run.

    Attributes:
        folder: its best network and tokenizer, readable by `endex_scores(model=folder)`.
        record: options, seed, pairs, encoder, history of losses, validation by epoch, the best
            epoch, `collapsed`, SHA-256 of the weights, seconds.
    """

    folder: Path
    record: dict

    @property
    def history(self) -> pd.DataFrame:
        """Training loss by step."""
        return pd.DataFrame(self.record["history"], columns=["step", "loss"])

    @property
    def validation(self) -> pd.DataFrame:
        """Loss, accuracy and AUC on the validation pairs by epoch; epoch 0 is before training."""
        return pd.DataFrame(self.record["validation"])

    @property
    def best(self) -> dict:
        """The validation of the epoch whose network was saved."""
        return self.record["validation"][self.record["best"]]


def collapsed(validation: dict) -> bool:
    """Whether a run predicts the same for every pair: what large encoders do at too high a rate.

    >>> collapsed({"accuracy": 0.5, "spread": 0.001}), collapsed({"accuracy": 0.7, "spread": 0.2})
    (True, False)
    """
    return validation["accuracy"] < 0.55 and validation["spread"] < 0.01


def best_epoch(validation: list[dict]) -> int:
    """The epoch with the highest AUC, the first of equal ones; a collapsed one if all collapsed.

    The AUC reads order alone: scores that are all alike can have a high one by their last digits.

    Args:
        validation: auc, accuracy and spread by epoch; epoch 0, before training, is never the best.

    >>> rows = [{"auc": auc, "accuracy": 0.7, "spread": 0.2} for auc in (0.9, 0.6, 0.8, 0.8)]
    >>> best_epoch(rows)
    2
    """
    quality = [row["auc"] - collapsed(row) for row in validation[1:]]
    return 1 + int(np.argmax(quality))
