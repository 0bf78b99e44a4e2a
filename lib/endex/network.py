"""The network of EnDex: any pretrained encoder with a classification head over a pair of texts.

This module imports torch and transformers; the others import it where they train or score.
"""

import json
import math
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import transformers
from safetensors.torch import load_file
from sklearn.metrics import roc_auc_score
from tqdm.auto import tqdm

from lib import models
from lib.endex.train import RECORD, Options, collapsed
from lib.models import quiet, token_batches

TINY = "tiny"  # an untrained encoder for the sample: two layers, the packaged vocabulary
TINY_SIZE = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
NAMES = {0: "non-engaging", 1: "engaging"}
WINDOW = 32  # batches whose rows are sorted by length together
NEVER = 10**9  # steps
KEPT = 1_000_000  # tokens whose hidden states are kept: 1.5 GB for the packaged encoder
Rows = list[dict[str, list[int] | int]]  # token ids, segments, and the label, of each pair


def build(
    encoder: str | Path, seed: int
) -> tuple[transformers.PreTrainedModel, transformers.PreTrainedTokenizerBase, dict]:
    """An encoder with a new head for two classes, its tokenizer, and where it came from.

    Args:
        encoder: "tiny", or the folder or hub id of a pretrained encoder: RoBERTa-large in the
            paper, the packaged MiniLM by default.
        seed: of the head (and of the whole network for "tiny").

    Raises:
        CheckpointError: the encoder cannot be found.
    """
    torch.manual_seed(seed)
    tiny = str(encoder) == TINY
    classes = {"id2label": NAMES, "label2id": {name: i for i, name in NAMES.items()}}
    folder = models.find(models.DEFAULT_ENCODER if tiny else encoder).folder
    with quiet():  # it would report the new head as missing weights
        if tiny:
            config = transformers.AutoConfig.from_pretrained(folder, **classes, **TINY_SIZE)
            network = transformers.AutoModelForSequenceClassification.from_config(config)
        else:
            network = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, **classes, local_files_only=True, use_safetensors=True
            )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return network, tokenizer, {"checkpoint": TINY} if tiny else models.provenance_of(encoder)


class Lower:
    """Embeddings and first layers of an encoder, which training leaves as they are.

    Without dropout they make the same of a pair in every epoch and run: in training it is computed
    once and kept, up to `KEPT` tokens. Above all layers a head reads the first token alone.
    """

    def __init__(self, encoder: str, layers: int, seed: int):
        self.network = build(encoder, seed)[0].base_model.eval().to(models.default_device())
        stack = self.network.encoder
        self.ends = 1 if layers >= len(stack.layer) else None
        stack.layer, self.network.pooler = stack.layer[:layers], None
        self.kept, self.tokens = {}, 0

    def __call__(self, batch: dict, training: bool = True) -> dict:
        """A padded batch with hidden states (`inputs_embeds`) in place of token ids."""
        given = {name: batch[name] for name in ("input_ids", "token_type_ids") if name in batch}
        mask = batch["attention_mask"]
        if training:  # each pair alone: its last digits do not hang on what stands beside it
            rows = [
                self._once({name: part[row : row + 1, :size] for name, part in given.items()})
                for row, size in enumerate(mask.sum(1).tolist())
            ]
            states = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        else:
            states = self._states(given | {"attention_mask": mask})
        ready = {"inputs_embeds": states, "attention_mask": mask[:, : self.ends]}
        return ready | {name: batch[name] for name in ("labels",) if name in batch}

    def _once(self, pair: dict) -> torch.Tensor:
        key = b"".join(part.numpy().tobytes() for part in pair.values())
        if (states := self.kept.get(key)) is None:
            states = self._states(pair)[0].clone()
            if self.tokens < KEPT:
                self.kept[key], self.tokens = states, self.tokens + len(states)
        return states

    @torch.no_grad()
    def _states(self, given: dict) -> torch.Tensor:
        given = {name: part.to(self.network.device) for name, part in given.items()}
        return self.network(**given).last_hidden_state[:, : self.ends].cpu()


@cache
def _lower(encoder: str, layers: int, seed: int) -> Lower:
    return Lower(encoder, layers, seed)


class _Ready(torch.nn.Module):
    """In place of the embeddings: the hidden states are there already."""

    def forward(self, inputs_embeds, **_):
        return inputs_embeds


def _first_token(layer, hidden, mask=None, *_, **__) -> torch.Tensor:
    """The last layer of BERT or RoBERTa for the first token alone: the head reads no other."""
    own, first = layer.attention.self, hidden[:, :1]
    read = ((own.query, first), (own.key, hidden), (own.value, hidden))
    parts = [
        project(states).unflatten(-1, (own.num_attention_heads, -1)).transpose(1, 2)
        for project, states in read
    ]
    dropped = own.dropout.p if layer.training else 0.0
    mask = None if mask is None else mask[:, :, :1]
    seen = torch.nn.functional.scaled_dot_product_attention(*parts, mask, dropped)
    seen = layer.attention.output(seen.transpose(1, 2).flatten(2), first)
    return layer.output(layer.intermediate(seen), seen)


def cut(
    network: transformers.PreTrainedModel, encoder: str, layers: int, seed: int
) -> Lower | None:
    """Take embeddings and the first `layers` layers off a network; None where there are none."""
    if not layers:
        return None
    base = network.base_model
    base.embeddings, base.encoder.layer = _Ready(), base.encoder.layer[layers:]
    if trained := list(base.encoder.layer):
        trained[-1].forward = partial(_first_token, trained[-1])
    return _lower(encoder, layers, seed if encoder == TINY else 0)


def load(model: str | Path, **options) -> tuple[models.Model, Lower | None, int]:
    """A network that was trained here, or a classifier of the hub, with its `Lower` and its length.

    Args:
        model: folder of a run, weights with a card of the same name beside them, or a hub id.
        options: `device`, `dtype`, `revision` of `models.load_classifier`.
    """
    file, made = Path(model), {}
    if (file / RECORD).is_file():
        record = json.loads((file / RECORD).read_text(encoding="utf-8"))
        file, made = file / "model.safetensors", record["options"] | {"seed": record["seed"]}
    elif file.is_file():
        made = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["settings"]
    length = made.get("max_length", 128)
    if not made.get("frozen_layers"):
        return models.load_classifier(model, **options), None, length
    network, tokenizer, _ = build(made["encoder"], made["seed"])
    below = cut(network, made["encoder"], made["frozen_layers"], made["seed"])
    network.load_state_dict({name: part.float() for name, part in load_file(file).items()})
    device = options.get("device") or models.default_device()
    return models.Model(network.eval().to(device), tokenizer, torch.device(device)), below, length


def encode(
    tokenizer: transformers.PreTrainedTokenizerBase, pairs: pd.DataFrame, max_length: int
) -> Rows:
    """Token ids (and segments, where the model has them) of pairs; the longer text is cut first.

    Args:
        pairs: with context and response, and label (0 or 1) for training.
    """
    if pairs.empty:
        return []
    how = {"truncation": "longest_first", "max_length": max_length, "return_attention_mask": False}
    encoded = tokenizer(pairs["context"].tolist(), pairs["response"].tolist(), **how)
    if "label" in pairs:
        encoded["labels"] = pairs["label"].astype(int).tolist()
    rows = zip(*encoded.values(), strict=True)
    return [dict(zip(encoded, row, strict=True)) for row in rows]


def batches(lengths: Sequence[int], tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Row positions of the batches of one epoch, in the order of training.

    Rows are drawn in random order; within a window of some batches they are sorted by length, so
    that little is padded; then the batches are drawn in random order.

    Args:
        lengths: tokens of each row, shape (n,).
        tokens: most tokens in a batch, padding included.
        seed, epoch: of the draws; each epoch has batches of its own.

    Returns:
        Arrays that hold 0..n-1 once each.

    >>> sorted(row for rows in batches([3, 9, 4, 3], 9, 0, epoch=1) for row in rows.tolist())
    [0, 1, 2, 3]
    """
    rng = np.random.default_rng([seed, epoch])
    lengths = np.asarray(lengths)
    order = rng.permutation(len(lengths))
    window = max(1, int(WINDOW * tokens / lengths.mean()))
    windows = [order[start : start + window] for start in range(0, len(order), window)]
    drawn = [rows[batch] for rows in windows for batch in token_batches(lengths[rows], tokens)]
    return [drawn[i] for i in rng.permutation(len(drawn))]


def trainer(
    network, below, tokenizer, train: Rows, held_out: Rows, folder: Path, options: Options, seed
) -> transformers.Trainer:
    """A `Trainer` that keeps its state in `folder` at the end of each epoch.

    All epochs follow each other as one long pass, since they differ in their batches, and by one
    or two in the number of them. An item is a batch that is ready.

    Args:
        network, tokenizer: what `build` gave.
        below: what `cut` took off the network, or None.
        train, held_out: rows of `encode`.
        seed: of batches, order and dropout.
    """
    arguments = _arguments(folder, options)
    lengths = [len(row["input_ids"]) for row in train]
    ready, ends = [], []
    for epoch in range(options.epochs):
        drawn = batches(lengths, options.batch_tokens, seed, epoch)
        drawn = drawn[: len(drawn) - len(drawn) % arguments.world_size]  # each GPU has as many
        ready += [[train[i] for i in rows] for rows in drawn]
        ends.append(len(ready) // arguments.world_size)
    # Rows of similar length follow each other in validation too: little is padded.
    single = [[row] for row in sorted(held_out, key=lambda row: len(row["input_ids"]))]
    widths = 8 if torch.cuda.is_available() else None  # multiples of 8 suit a GPU
    pad = transformers.DataCollatorWithPadding(tokenizer, pad_to_multiple_of=widths)

    def collate(items: list[Rows]) -> dict:
        batch = pad([row for rows in items for row in rows])
        return below(batch) if below else batch

    made = _Trainer(
        network,
        arguments,
        data_collator=collate,
        train_dataset=ready,
        eval_dataset=single,
        compute_metrics=_figures,
        callbacks=[_Watch(ends, seed)],
    )
    made.remove_callback(transformers.PrinterCallback)
    return made


class _Trainer(transformers.Trainer):
    """A `Trainer` whose first step has a rate above 0, which Trainer's own warm-up leaves out."""

    def create_scheduler(self, num_training_steps, optimizer=None):
        rising = max(1, round(self.args.warmup_steps * num_training_steps))
        falling = max(1, num_training_steps - rising)
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer,
            lambda step: min((step + 1) / rising, (num_training_steps - step) / falling),
        )
        return self.lr_scheduler


def _arguments(folder: Path, options: Options) -> transformers.TrainingArguments:
    return transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=1,
        train_sampling_strategy="sequential",
        learning_rate=options.rate,
        warmup_steps=options.warmup,  # below 1: a share of the steps
        weight_decay=0.01,
        bf16=options.precision == "bf16",
        use_cpu=not torch.cuda.is_available(),
        per_device_train_batch_size=1,
        per_device_eval_batch_size=max(1, 4 * options.batch_tokens // options.max_length),
        eval_strategy="steps",  # `_Watch` says at which
        eval_steps=NEVER,
        save_strategy="steps",
        save_steps=NEVER,
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="quality",
        logging_steps=1,
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=True,
    )


def _figures(predicted: transformers.EvalPrediction) -> dict[str, float]:
    """What a validation measures, besides the loss."""
    engaging = torch.tensor(predicted.predictions).float().softmax(-1)[:, 1].numpy()
    truth = predicted.label_ids
    figures = {
        "accuracy": float(((engaging > 0.5) == truth).mean()),
        "auc": float(roc_auc_score(truth, engaging)),
        "spread": float(engaging.std()),
    }
    # The AUC reads order alone: scores that are all alike can have a high one by their last digits.
    return figures | {"quality": figures["auc"] - collapsed(figures)}


class _Watch(transformers.TrainerCallback):
    """Ends of epochs, dropout by seed and step alone, a progress bar, and a stop for a runaway."""

    def __init__(self, ends: list[int], seed: int):
        self.ends, self.seed = ends, seed

    def on_train_begin(self, args, state, control, **kwargs):
        how = {"desc": "EnDex", "leave": False, "disable": not state.is_world_process_zero}
        self.bar = tqdm(initial=state.global_step, total=state.max_steps, **how)

    def on_step_begin(self, args, state, control, **kwargs):
        step = self.seed * 1_000_003 + state.global_step
        torch.manual_seed(step * 1009 + args.process_index)

    def on_step_end(self, args, state, control, **kwargs):
        self.bar.update()
        control.should_evaluate = control.should_save = state.global_step in self.ends

    def on_train_end(self, args, state, control, **kwargs):
        self.bar.close()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if not math.isfinite(loss := (logs or {}).get("loss", 0.0)):
            raise FloatingPointError(
                f"the loss is {loss} at step {state.global_step}: lower the rate "
                f"({args.learning_rate}) or lengthen the warm-up"
            )
