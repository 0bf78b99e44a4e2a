"""Fine-tune an encoder on RED: from a notebook, from a shell, or on several GPUs.

    python -m lib.endex.train --pairs pairs.parquet --folder runs --seed 0
    accelerate launch -m lib.endex.train --pairs pairs.parquet --folder runs --precision bf16 \
        --encoder FacebookAI/roberta-large --batch-tokens 16384
"""

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from lib.data.storage import sha256, written_whole
from lib.endex.pairs import split
from lib.models import DEFAULT_ENCODER, quiet

RECORD = "record.json"
VERSION = 4  # of the training: a change of the weights that come out counts it up


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
        frozen_layers: first layers, with the embeddings, that are not trained and have no dropout:
            what they make of a pair is computed once. 0 trains all.
        precision: "fp32" or "bf16" (autocast; for GPUs).
    """

    encoder: str = DEFAULT_ENCODER
    epochs: int = 2
    rate: float = 5e-5
    warmup: float = 0.06
    batch_tokens: int = 2048
    max_length: int = 128
    frozen_layers: int = 0
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.precision not in ("fp32", "bf16") or not 0 <= self.warmup < 1:
            raise ValueError("precision is fp32 or bf16, warmup a share from 0 to below 1")


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
        """The validation of the epoch that was kept."""
        return self.record["validation"][self.record["best"]]


def fine_tune(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    folder: str | Path,
    options: Options | None = None,
    seed: int = 0,
) -> TrainedModel:
    """Train a classifier of engaging replies and keep the epoch with the best validation AUC.

    EnDex, section 2.5 and appendix A.2, by the Trainer of transformers. An epoch in which all
    scores are alike is kept only if there is no other. On the CPU, the same pairs,
    options and seed give the same weights, also when the run was killed: it goes on from the end
    of its last whole epoch. A run that is finished in `folder` is returned at once.

    Args:
        train, validation: pairs with context, response and label (1 engaging, 0 not).
        folder: the run gets a folder in it, named by the digest of pairs, options and seed.
        options: `Options()` by default.
        seed: of head, order and dropout.

    Raises:
        ValueError: one class only, or no pair, in either part.
        CheckpointError: the encoder cannot be found.
        FloatingPointError: the loss is no number any more.
    """
    options = options or Options()
    for name, part in (("training", train), ("validation", validation)):
        if part["label"].nunique() < 2:
            raise ValueError(f"the {name} pairs ({len(part)}) are of one class only: more posts")
    where = Path(folder) / _digest(train, validation, options, seed)
    if not (where / RECORD).is_file():
        _train(train, validation, where, options, seed)
    return TrainedModel(where, json.loads((where / RECORD).read_text(encoding="utf-8")))


def collapsed(validation: dict) -> bool:
    """Whether a run predicts the same for every pair: what large encoders do at too high a rate.

    >>> collapsed({"accuracy": 0.5, "spread": 0.001}), collapsed({"accuracy": 0.7, "spread": 0.2})
    (True, False)
    """
    return validation["accuracy"] < 0.55 and validation["spread"] < 0.01


def _train(train, validation, folder: Path, options: Options, seed: int) -> None:
    """Train from the last whole epoch, or from the start, and write network and record."""
    from lib.endex import network as networks

    network, tokenizer, origin = networks.build(options.encoder, seed)
    parameters = sum(weights.numel() for weights in network.parameters())
    below = networks.cut(network, options.encoder, options.frozen_layers, seed)
    rows = [networks.encode(tokenizer, part, options.max_length) for part in (train, validation)]
    trainer = networks.trainer(network, below, tokenizer, *rows, folder, options, seed)
    untrained = trainer.evaluate()
    with quiet():
        finished = trainer.train(resume_from_checkpoint=_last_checkpoint(folder))
        if not trainer.is_world_process_zero():
            return
        # Where layers stay, these are the weights above them.
        trainer.accelerator.unwrap_model(trainer.model).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    record = {
        "seed": seed,
        "options": asdict(options),
        "encoder": origin,
        "parameters": parameters,
        "pairs": {"train": len(train), "validation": len(validation)},
        **_progress(untrained, trainer.state.log_history),
        "weights_sha256": sha256(folder / "model.safetensors"),
        "seconds_of_last_session": round(finished.metrics["train_runtime"], 1),
    }
    with written_whole(folder / RECORD) as unfinished:
        unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)


def _last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint that is whole: Trainer writes the state of the trainer at the end."""
    whole = [file.parent for file in folder.glob("checkpoint-*/trainer_state.json")]
    return str(max(whole, key=lambda path: int(path.name.split("-")[1]))) if whole else None


def _progress(untrained: dict, log: list[dict]) -> dict:
    """Losses by step, figures by epoch, the best epoch, and whether it collapsed."""
    measured = [untrained, *(entry for entry in log if "eval_auc" in entry)]
    names = ("loss", "accuracy", "auc", "spread")
    validation = [
        {"epoch": epoch, **{name: entry[f"eval_{name}"] for name in names}}
        for epoch, entry in enumerate(measured)
    ]
    best = max(validation[1:], key=lambda row: row["auc"] - collapsed(row))
    return {
        "best": best["epoch"],
        "validation": validation,
        "history": [(entry["step"], entry["loss"]) for entry in log if "loss" in entry],
        "collapsed": collapsed(best),
    }


def _digest(train: pd.DataFrame, validation: pd.DataFrame, options: Options, seed: int) -> str:
    """What a run depends on, as a folder name."""
    digest = hashlib.sha256()
    for part in (train, validation):
        for row in part[["context", "response", "label"]].itertuples(index=False):
            digest.update(json.dumps([row.context, row.response, int(row.label)]).encode())
        digest.update(b"|")
    digest.update(json.dumps([VERSION, asdict(options), seed]).encode())
    return f"seed{seed}-{digest.hexdigest()[:12]}"


def main() -> None:
    """Train from a shell; the options are those of `Options`."""
    from transformers import HfArgumentParser

    parser = HfArgumentParser(Options, description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet of RED (Red.sample)")
    parser.add_argument("--folder", type=Path, required=True, help="where the run goes")
    parser.add_argument("--seed", type=int, default=0)
    options, given = parser.parse_args_into_dataclasses()
    parts = split(pd.read_parquet(given.pairs))
    model = fine_tune(*parts, given.folder, options, given.seed)
    shown = {"folder": model.folder.name, "collapsed": collapsed(model.best), **model.best}
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
