"""Fine-tune an encoder on RED: from a notebook, from a shell, or on several GPUs.

    python -m lib.endex.train --pairs pairs.parquet --folder runs --seed 0
    accelerate launch -m lib.endex.train --pairs pairs.parquet --folder runs --precision bf16 \
        --encoder FacebookAI/roberta-large --batch-tokens 16384
"""

import argparse
import dataclasses
import hashlib
import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator
from sklearn.metrics import roc_auc_score
from tqdm.auto import tqdm

from lib.endex import network as networks
from lib.endex import state
from lib.endex.batches import epoch_batches
from lib.endex.options import Options
from lib.endex.pairs import split
from lib.models import token_batches

RECORD = "record.json"


@dataclass(frozen=True)
class Run:
    """A finished training run.

    Attributes:
        folder: its best network and tokenizer, readable by `endex.score(model=folder)`.
        record: options, seed, pairs, encoder, history of losses, validation by epoch, the best
            epoch, `collapsed`, SHA-256 of the last weights, tokens and seconds.
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


def fine_tune(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    folder: str | Path,
    options: Options | None = None,
    seed: int = 0,
) -> Run:
    """Train a classifier of engaging replies and keep the epoch with the best validation AUC.

    EnDex, section 2.5 and appendix A.2. On the CPU, the same pairs, options and seed give the same
    weights, also when the run was killed and continued in between. A run that is finished in
    `folder` is returned at once.

    Args:
        train, validation: pairs with context, response and label (1 engaging, 0 not).
        folder: the run gets a folder in it, named by the digest of pairs, options and seed.
        options: `Options()` by default.
        seed: of head, order and dropout.

    Raises:
        ValueError: one class only, or no pair, in either part.
        CheckpointError: the encoder cannot be found.
    """
    options = options or Options()
    for name, part in (("training", train), ("validation", validation)):
        if part["label"].nunique() < 2:
            raise ValueError(
                f"the {name} pairs ({len(part)}) are of one class only: more posts, or a smaller "
                "kappa, or another split"
            )
    where = Path(folder) / _digest(train, validation, options, seed)
    if (where / RECORD).is_file():
        return Run(where, json.loads((where / RECORD).read_text(encoding="utf-8")))
    where.mkdir(parents=True, exist_ok=True)
    return _Training(train, validation, where, options, seed).run()


class _Training:
    """The state of one run in this process; with several, each holds a share of every step."""

    def __init__(self, train, validation, folder: Path, options: Options, seed: int):
        self.options, self.seed, self.folder = options, seed, folder
        self.accelerator = Accelerator()
        network, self.tokenizer, self.origin = networks.build(options.encoder, seed)
        networks.freeze(network, options.frozen_layers)
        self.multiple = 8 if self.accelerator.device.type == "cuda" else 1
        self.train, self.labels = self._encoded(train), _labels(train)
        self.held_out, self.held_out_labels = self._encoded(validation), _labels(validation)
        self.lengths = [len(ids) for ids in self.train["input_ids"]]
        optimizer = _optimizer(network, options, self.accelerator.device)
        self.network, self.optimizer = self.accelerator.prepare(network, optimizer)
        # The prepared wrappers pass on to these, whose parameters have names.
        self.bare = self.accelerator.unwrap_model(self.network)
        self.bare_optimizer = getattr(self.optimizer, "optimizer", self.optimizer)
        self.progress = {"step": 0, "history": [], "validation": [], "best": None, "tokens": 0}

    def run(self) -> Run:
        """Train from the last checkpoint, or from the start, to the end."""
        at = self.folder / "state.safetensors"
        if at.is_file():
            self.progress = state.load(at, self.bare, self.bare_optimizer)
        per_epoch = [len(self._batches(epoch)) for epoch in range(self.options.epochs)]
        total, started = sum(per_epoch), time.perf_counter()
        if not self.progress["validation"]:
            self._validate(0)
        bar = tqdm(total=total, initial=self.progress["step"], desc="EnDex", unit="step",
                   leave=False, disable=not self.accelerator.is_main_process)  # fmt: skip
        first = 0
        for epoch, steps in enumerate(per_epoch):
            for batch in self._batches(epoch)[max(0, self.progress["step"] - first) :]:
                loss = self._step(batch, self.progress["step"], total)
                self.progress["step"] += 1
                self.progress["history"].append((self.progress["step"], round(loss, 6)))
                bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
                bar.update()
                if self.progress["step"] % self.options.save_every == 0:
                    self._save()
            first += steps
            if len(self.progress["validation"]) < epoch + 2 and self.progress["step"] == first:
                self._validate(epoch + 1)
                self._save()
        bar.close()
        return self._finish(time.perf_counter() - started)

    def _batches(self, epoch: int) -> list[np.ndarray]:
        """The batches of this process in one epoch; all processes have equally many."""
        batches = epoch_batches(
            self.lengths, self.options.batch_tokens, self.seed, epoch, self.multiple
        )
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        return batches[rank : len(batches) - len(batches) % world : world]

    def _step(self, rows: np.ndarray, step: int, total: int) -> float:
        """One update; dropout depends on seed and step alone."""
        torch.manual_seed((self.seed * 1_000_003 + step) * 1009 + self.accelerator.process_index)
        for group in self.bare_optimizer.param_groups:
            group["lr"] = self.options.rate * _schedule(step, total, self.options.warmup)
        networks.training_mode(self.bare)
        loss = torch.nn.functional.cross_entropy(
            self._logits(self.train, rows), self.labels[rows].to(self.accelerator.device)
        )
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.network.parameters(), self.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress["tokens"] += sum(self.lengths[row] for row in rows)
        if not np.isfinite(value := loss.item()):
            raise FloatingPointError(
                f"the loss is {value} at step {step + 1}: lower the rate ({self.options.rate}) or "
                "lengthen the warm-up"
            )
        return value

    def _logits(self, encoded: dict, rows: np.ndarray) -> torch.Tensor:
        device = self.accelerator.device
        tensors = networks.batch(encoded, rows, self.tokenizer.pad_token_id, self.multiple)
        tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
        with torch.autocast(device.type, torch.bfloat16, self.options.precision == "bf16"):
            return self.network(**tensors).logits.float()

    @torch.inference_mode()
    def _validate(self, epoch: int) -> None:
        """Measure on the validation pairs; keep the network if no earlier epoch was better."""
        self.bare.eval()
        lengths = [len(ids) for ids in self.held_out["input_ids"]]
        logits = torch.empty(len(lengths), 2)
        for rows in token_batches(lengths, 4 * self.options.batch_tokens):
            logits[rows] = self._logits(self.held_out, rows).cpu()
        engaging = logits.softmax(-1)[:, 1].numpy()
        truth = self.held_out_labels.numpy()
        self.progress["validation"].append({
            "epoch": epoch,
            "loss": float(torch.nn.functional.cross_entropy(logits, self.held_out_labels)),
            "accuracy": float(((engaging > 0.5) == truth).mean()),
            "auc": float(roc_auc_score(truth, engaging)),
            "spread": float(engaging.std()),
        })  # fmt: skip
        aucs = [row["auc"] for row in self.progress["validation"]]
        if epoch > 0 and aucs[-1] == max(aucs[1:]):
            self.progress["best"] = epoch
            if self.accelerator.is_main_process:
                self.bare.save_pretrained(self.folder)
                self.tokenizer.save_pretrained(self.folder)

    def _save(self) -> None:
        if self.accelerator.is_main_process:
            at = self.folder / "state.safetensors"
            state.save(at, self.bare, self.bare_optimizer, self.progress)
        self.accelerator.wait_for_everyone()

    def _finish(self, seconds: float) -> Run:
        best = self.progress["validation"][self.progress["best"]]
        record = {
            "seed": self.seed,
            "options": dataclasses.asdict(self.options),
            "encoder": self.origin,
            "pairs": {"train": len(self.labels), "validation": len(self.held_out_labels)},
            **{key: self.progress[key] for key in ("best", "validation", "history", "tokens")},
            "collapsed": collapsed(best),
            "last_weights_sha256": state.weights_sha256(self.bare),
            "seconds_of_last_session": round(seconds, 1),
            "torch": torch.__version__,
        }
        if record["collapsed"]:
            warnings.warn(
                f"seed {self.seed}: the run collapsed (validation accuracy "
                f"{best['accuracy']:.2f}, all scores alike): leave it out, and lower the rate or "
                "lengthen the warm-up",
                stacklevel=3,
            )
        text = json.dumps(record, indent=1) + "\n"
        if self.accelerator.is_main_process:
            (self.folder / RECORD).write_text(text, encoding="utf-8")
            (self.folder / "state.safetensors").unlink(missing_ok=True)
        return Run(self.folder, json.loads(text))

    def _encoded(self, pairs: pd.DataFrame) -> dict:
        return networks.encode(
            self.tokenizer, pairs["context"], pairs["response"], self.options.max_length
        )


def collapsed(validation: dict) -> bool:
    """Whether a run predicts the same for every pair: what large encoders do at too high a rate.

    >>> collapsed({"accuracy": 0.5, "spread": 0.001}), collapsed({"accuracy": 0.7, "spread": 0.2})
    (True, False)
    """
    return validation["accuracy"] < 0.55 and validation["spread"] < 0.01


def _optimizer(network, options: Options, device: torch.device) -> torch.optim.AdamW:
    """AdamW without decay of biases and normalisation weights, fused on a GPU."""
    trained = [(n, p) for n, p in network.named_parameters() if p.requires_grad]
    groups = [
        {"params": [p for _, p in trained if p.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [p for _, p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=options.rate, fused=device.type == "cuda")


def _schedule(step: int, total: int, warmup: float) -> float:
    """Share of the highest rate: up in a line during the warm-up, then down in a line to 0."""
    rising = max(1, round(warmup * total))
    return (step + 1) / rising if step < rising else (total - step) / max(1, total - rising)


def _labels(pairs: pd.DataFrame) -> torch.Tensor:
    return torch.tensor(pairs["label"].astype(int).to_numpy())


def _digest(train: pd.DataFrame, validation: pd.DataFrame, options: Options, seed: int) -> str:
    """What a run depends on, as a folder name."""
    digest = hashlib.sha256()
    for part in (train, validation):
        for row in part[["context", "response", "label"]].itertuples(index=False):
            digest.update(json.dumps([row[0], row[1], int(row[2])]).encode())
        digest.update(b"|")
    chosen = {k: v for k, v in dataclasses.asdict(options).items() if k != "save_every"}
    digest.update(json.dumps([chosen, seed]).encode())
    return f"seed{seed}-{digest.hexdigest()[:12]}"


def main(arguments: list[str] | None = None) -> Run:
    """Train from a shell; the options are those of `Options`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet of RED (Red.sample)")
    parser.add_argument("--folder", type=Path, required=True, help="where the run goes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--validation", type=float, default=0.2, help="share of threads held out")
    for field in dataclasses.fields(Options):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=field.default)
    given = vars(parser.parse_args(arguments))
    pairs = pd.read_parquet(given.pop("pairs"))
    folder, seed, share = given.pop("folder"), given.pop("seed"), given.pop("validation")
    run = fine_tune(*split(pairs, share, seed=0), folder, Options(**given), seed)
    print(json.dumps({"folder": run.folder.name, **run.validation.iloc[-1].to_dict()}))
    return run


if __name__ == "__main__":
    main()
