"""Fine-tuning of an encoder on the pairs of RED: a plain loop that can be killed and repeated.

A notebook calls `fine_tune`; from a shell, and on several GPUs:

    python -m lib.endex.training --pairs pairs.parquet --folder runs --seed 0
    accelerate launch -m lib.endex.training --pairs pairs.parquet --folder runs --precision bf16 \
        --encoder FacebookAI/roberta-large --batch-tokens 16384
"""

import json
import math
import shutil
import time
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score
from tqdm.auto import tqdm

from lib import models
from lib.data.storage import atomic_write, file_sha256, read_json, short_hash
from lib.endex.pairs import split
from lib.endex.runs import (
    NETWORK,
    RECORD,
    TrainedModel,
    TrainingOptions,
    best_epoch,
    collapsed,
)

STATE = "state.json"  # of a checkpoint; written last, so a checkpoint without it is not whole
OPTIMIZER = "optimizer.pt"
VERSION = 5  # of the training; raise it when the weights that come out change


def fine_tune(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    folder: str | Path,
    options: TrainingOptions,
    seed: int = 0,
) -> TrainedModel:
    """Train a classifier of engaging replies and save the epoch with the best validation AUC.

    EnDex, section 2.5 and appendix A.2. An epoch in which all scores are alike is saved only if
    there is no other. On the CPU, the same pairs, options and seed give the same weights, also when
    the run was killed: it continues from the end of its last whole epoch. A run that is finished
    in `folder` is returned at once.

    Args:
        train, validation: pairs with context, response and label (1 engaging, 0 not).
        folder: the run gets a folder in it, named by the digest of pairs, options and seed.
        options: how to fine-tune.
        seed: of head, order and dropout.

    Raises:
        ValueError: one class only, or no pair, in either part.
        CheckpointError: the encoder cannot be found.
        FloatingPointError: the loss is not a finite number.
    """
    for name, part in (("training", train), ("validation", validation)):
        if part["label"].nunique() < 2:
            raise ValueError(
                f"the {name} pairs ({len(part)}) are of one class only: more posts"
            )
    run = Path(folder) / _run_name(train, validation, options, seed=seed)
    if not _is_json(run / RECORD):
        _train(train, validation, run, options=options, seed=seed)
    return TrainedModel(run, read_json(run / RECORD))


def _train(
    train, validation, folder: Path, options: TrainingOptions, seed: int
) -> None:
    """Train from the last whole epoch, or from the start, and write network and record."""
    import torch
    from accelerate import Accelerator
    from torch.nn.functional import cross_entropy

    from lib.endex import classifier

    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision="no")
    device = accelerator.device
    rank = accelerator.process_index
    network, tokenizer = classifier.build_classifier(options.encoder, seed)
    n_parameters = sum(weights.numel() for weights in network.parameters())
    network = classifier.freeze_layers(
        network, options.encoder, options.frozen_layers, seed=seed
    )
    # Averages the gradients of several processes.
    parallel = accelerator.prepare(network)
    model = models.Model(network, tokenizer, device)
    optimizer = _optimizer(network)

    columns = classifier.encode_context_pairs(tokenizer, train, options.max_length)
    labels = torch.tensor(train["label"].tolist(), device=device)
    lengths = [len(ids) for ids in columns["input_ids"]]
    epochs = []
    for epoch in range(options.epochs):
        batches = classifier.epoch_batches(
            lengths, options.batch_tokens, seed=seed, epoch=epoch
        )
        # Each process has the same number: if need be, the first ones are used again.
        batches += batches[: -len(batches) % accelerator.num_processes]
        epochs.append(batches[rank :: accelerator.num_processes])
    n_steps = sum(len(batches) for batches in epochs)

    losses, measured = _resume(folder, network, optimizer)
    if not measured:
        measured.append({"epoch": 0} | _evaluate(model, validation, options.max_length))
    started = time.perf_counter()
    hidden = not accelerator.is_main_process
    progress = tqdm(
        initial=len(losses), total=n_steps, desc="EnDex", leave=False, disable=hidden
    )
    for epoch in range(len(measured), options.epochs + 1):
        parallel.train()
        for rows in epochs[epoch - 1]:
            step = len(losses)
            # Dropout depends on seed and step alone: a run that continues draws the same.
            torch.manual_seed((seed * 1_000_003 + step) * 1009 + rank)
            for group in optimizer.param_groups:
                group["lr"] = options.learning_rate * _schedule(
                    step, n_steps, options.warmup_ratio
                )
            batch = models.pad_batch(model, rows, *columns.values())
            with torch.autocast(
                device.type, torch.bfloat16, enabled=options.precision == "bf16"
            ):
                logits = classifier.pair_logits(parallel, *batch)
            loss = cross_entropy(logits, labels[rows])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            losses.append(accelerator.reduce(loss.detach(), "mean").item())
            if not math.isfinite(losses[-1]):
                raise FloatingPointError(
                    f"the loss is {losses[-1]} at step {step + 1}: lower learning_rate "
                    f"({options.learning_rate}) or raise warmup_ratio ({options.warmup_ratio})"
                )
            progress.update()
        measured.append(
            {"epoch": epoch} | _evaluate(model, validation, options.max_length)
        )
        if accelerator.is_main_process:
            _save_checkpoint(
                folder, network, optimizer, losses=losses, validation=measured
            )
    progress.close()
    if accelerator.is_main_process:
        best = best_epoch(measured)
        shutil.copy(folder / f"checkpoint-{best}" / NETWORK, folder)
        network.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        tiny = options.encoder == classifier.TINY
        record = {
            "seed": seed,
            "options": asdict(options),
            "encoder": None if tiny else models.provenance_of(options.encoder),
            "parameters": n_parameters,
            "pairs": {"train": len(train), "validation": len(validation)},
            "best": best,
            "validation": measured,
            "history": list(enumerate(losses, start=1)),
            "collapsed": collapsed(measured[best]),
            "weights_sha256": file_sha256(folder / NETWORK),
            "seconds_of_last_session": round(time.perf_counter() - started, 1),
        }
        with atomic_write(folder / RECORD) as unfinished:
            unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        for checkpoint in folder.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
    accelerator.wait_for_everyone()


def _optimizer(network):
    """AdamW with a weight decay of .01 on matrices, and none on vectors."""
    import torch

    matrices = [weights for weights in network.parameters() if weights.ndim > 1]
    vectors = [weights for weights in network.parameters() if weights.ndim == 1]
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, weight_decay=0.01, fused=True)


def _schedule(step: int, n_steps: int, warmup_ratio: float) -> float:
    """Learning rate of a step (from 0) over the highest one: it rises, then falls."""
    n_rising = max(1, round(warmup_ratio * n_steps))
    return min((step + 1) / n_rising, (n_steps - step) / max(1, n_steps - n_rising))


def _evaluate(model, validation: pd.DataFrame, max_length: int) -> dict[str, float]:
    """Mean loss, accuracy, AUC, and standard deviation of the scores on the validation pairs."""
    from lib.endex.classifier import score_pairs

    engaging = score_pairs(model, validation, max_length)
    labels = validation["label"].to_numpy()
    return {
        "loss": float(log_loss(labels, engaging)),
        "accuracy": float(((engaging > 0.5) == labels).mean()),
        "auc": float(roc_auc_score(labels, engaging)),
        "spread": float(engaging.std()),
    }


def _save_checkpoint(
    folder, network, optimizer, losses: list, validation: list[dict]
) -> None:
    """Write the state at the end of an epoch, and remove all others but the best one."""
    import torch
    from safetensors.torch import save_model

    checkpoint = folder / f"checkpoint-{len(validation) - 1}"
    checkpoint.mkdir(parents=True, exist_ok=True)
    save_model(network, str(checkpoint / NETWORK), metadata={"format": "pt"})
    torch.save(optimizer.state_dict(), checkpoint / OPTIMIZER)
    with atomic_write(checkpoint / STATE) as unfinished:
        unfinished.write_text(json.dumps([losses, validation]))
    needed = {checkpoint, folder / f"checkpoint-{best_epoch(validation)}"}
    for outdated in set(folder.glob("checkpoint-*")) - needed:
        shutil.rmtree(outdated)


def _resume(folder: Path, network, optimizer) -> tuple[list[float], list[dict]]:
    """Load the last complete checkpoint into the network and the optimizer.

    The state of a checkpoint is written last: where it is missing or cut off, the checkpoint is
    not used.

    Returns:
        The losses by step and the validation by epoch; both empty without a checkpoint.
    """
    import torch
    from safetensors.torch import load_model

    state_files = [
        file for file in folder.glob(f"checkpoint-*/{STATE}") if _is_json(file)
    ]
    if not state_files:
        return [], []
    last = max(state_files, key=lambda file: int(file.parent.name.split("-")[1]))
    load_model(network, last.with_name(NETWORK))
    optimizer_file = last.with_name(OPTIMIZER)
    optimizer.load_state_dict(torch.load(optimizer_file, weights_only=True))
    losses, validation = read_json(last)
    return losses, validation


def _is_json(file: Path) -> bool:
    """Whether a file is there and whole; one that a full disk or a power cut left half is not."""
    try:
        read_json(file)
    except (OSError, ValueError):
        return False
    return True


def _run_name(
    train: pd.DataFrame, validation: pd.DataFrame, options: TrainingOptions, seed: int
) -> str:
    """Seed, and digest of what a run depends on."""
    pairs = [
        part[["context", "response", "label"]].to_dict("list")
        for part in (train, validation)
    ]
    inputs = json.dumps([VERSION, asdict(options), seed, pairs])
    return f"seed{seed}-{short_hash(inputs, 12)}"


def main() -> None:
    """Train from a shell; the options are those of `TrainingOptions`."""
    from accelerate import PartialState
    from transformers import HfArgumentParser

    parser = HfArgumentParser(TrainingOptions, description=__doc__.splitlines()[0])
    parser.add_argument(
        "--pairs", type=Path, required=True, help="Parquet of RED (Red.sample)"
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the run goes")
    parser.add_argument("--seed", type=int, default=0)
    options, arguments = parser.parse_args_into_dataclasses()
    train, validation = split(pd.read_parquet(arguments.pairs))
    model = fine_tune(
        train, validation, arguments.folder, options=options, seed=arguments.seed
    )
    if PartialState().is_main_process:
        print(json.dumps({"folder": model.folder.name, **model.best}))


if __name__ == "__main__":
    main()
