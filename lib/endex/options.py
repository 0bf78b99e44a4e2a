"""The choices of a training run."""

from dataclasses import dataclass

from lib.models import DEFAULT_ENCODER


@dataclass(frozen=True)
class Options:
    """How to fine-tune; the defaults suit the packaged encoder on a CPU.

    Attributes:
        encoder: folder or hub id, or "tiny". The paper: FacebookAI/roberta-large.
        epochs: passes over the pairs (paper: 2).
        rate: highest learning rate, reached after the warm-up (paper: 5e-5).
        warmup: share of the steps in which the rate rises from 0; it then falls to 0. The paper
            states none; large encoders collapse without.
        batch_tokens: tokens in a batch, padding included (the paper gives no batch size).
        max_length: tokens of a pair; longer ones are cut.
        frozen_layers: first layers, with the embeddings, that are not trained and have no dropout;
            0 trains all.
        weight_decay, clip: of AdamW, and the norm to which gradients are cut.
        precision: "fp32" or "bf16" (autocast; for GPUs).
        save_every: steps between two checkpoints; a killed run goes on from the last one.
    """

    encoder: str = DEFAULT_ENCODER
    epochs: int = 2
    rate: float = 5e-5
    warmup: float = 0.06
    batch_tokens: int = 2048
    max_length: int = 128
    frozen_layers: int = 0
    weight_decay: float = 0.01
    clip: float = 1.0
    precision: str = "fp32"
    save_every: int = 50

    def __post_init__(self) -> None:
        if self.precision not in ("fp32", "bf16"):
            raise ValueError(f"precision {self.precision!r}: choose fp32 or bf16")
        if self.epochs < 1 or self.max_length < 8 or self.batch_tokens < self.max_length:
            raise ValueError("epochs >= 1, max_length >= 8, batch_tokens >= max_length are needed")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"warmup {self.warmup}: a share of the steps, from 0 to below 1")
