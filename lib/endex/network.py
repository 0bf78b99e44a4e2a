"""The network of EnDex: any pretrained encoder with a classification head over a pair of texts.

This module imports torch and transformers; the others import it where they train or score.
"""

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
from lib.data.storage import read_json
from lib.endex.train import RECORD, Options, quality
from lib.models import silence_transformers, token_batches

TINY = "tiny"  # an untrained encoder for the sample: two layers, the packaged vocabulary
TINY_SIZE = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
WINDOW = 32  # batches whose rows are sorted by length together
NEVER = 10**9  # steps
KEPT = 1_000_000  # tokens whose hidden states are kept: 1.5 GB for the packaged encoder


def build_classifier(encoder: str | Path, seed: int) -> tuple:
    """An encoder with a new head for two classes, and its tokenizer.

    Args:
        encoder: "tiny", or the folder or hub id of a pretrained encoder: RoBERTa-large in the
            paper, the packaged MiniLM by default.
        seed: of the head (and of the whole network for "tiny").

    Raises:
        CheckpointError: the encoder cannot be found.
    """
    torch.manual_seed(seed)
    tiny = str(encoder) == TINY
    folder = models.find_model(models.DEFAULT_ENCODER if tiny else encoder).folder
    size = {"num_labels": 2} | (TINY_SIZE if tiny else {})
    config = transformers.AutoConfig.from_pretrained(folder, **size)
    auto = transformers.AutoModelForSequenceClassification
    with silence_transformers():  # it would report the new head as missing weights
        whole = {"config": config, "local_files_only": True, "use_safetensors": True}
        network = auto.from_config(config) if tiny else auto.from_pretrained(folder, **whole)
    return network, models.load_tokenizer(folder)


class Lower:
    """Embeddings and first layers of an encoder, which training leaves as they are.

    Without dropout they make the same of a pair in every epoch and run, and of a batch of replies
    under every network above: it is computed once and kept, up to `KEPT` tokens. Above all layers a
    head reads the first token alone.
    """

    def __init__(self, encoder: str, layers: int, seed: int):
        self.network = (
            build_classifier(encoder, seed)[0].base_model.eval().to(models.default_device())
        )
        stack = self.network.encoder
        self.ends = 1 if layers >= len(stack.layer) else None
        stack.layer, self.network.pooler = stack.layer[:layers], None
        self.kept, self.tokens = {}, 0

    def __call__(self, batch: dict, keep: bool = True) -> dict:
        """A padded batch with hidden states (`inputs_embeds`) in place of token ids."""
        given = dict(batch)
        mask, labels = given.pop("attention_mask"), given.pop("labels", None)
        seen = {"attention_mask": mask[:, : self.ends]}
        if labels is None:  # scores
            read = self._once if keep else self._states
            return seen | {"inputs_embeds": read(given | {"attention_mask": mask})}
        rows = [  # each pair alone: its last digits do not hang on what stands beside it
            self._once({name: part[row : row + 1, :size] for name, part in given.items()})[0]
            for row, size in enumerate(mask.sum(1).tolist())
        ]
        states = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        return seen | {"inputs_embeds": states, "labels": labels}

    def _once(self, given: dict) -> torch.Tensor:
        key = b"".join(part.cpu().numpy().tobytes() for part in given.values())
        if (states := self.kept.get(key)) is None:
            states = self._states(given).clone()
            if self.tokens < KEPT:
                self.kept[key], self.tokens = states, self.tokens + states[..., 0].numel()
        return states

    @torch.no_grad()
    def _states(self, given: dict) -> torch.Tensor:
        there = {name: part.to(self.network.device) for name, part in given.items()}
        states = self.network(**there).last_hidden_state[:, : self.ends]
        return states.to(given["input_ids"].device)


_lower = cache(Lower)  # one for all runs of a process


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


def split_network(network: torch.nn.Module, encoder: str, layers: int, seed: int) -> Lower | None:
    """Take embeddings and the first `layers` layers off a network; None where there are none."""
    if not layers:
        return None
    base = network.base_model
    base.embeddings, base.encoder.layer = _Ready(), base.encoder.layer[layers:]
    if trained := list(base.encoder.layer):
        trained[-1].forward = partial(_first_token, trained[-1])
    return _lower(encoder, layers, seed if encoder == TINY else 0)


def load_classifier(model: str | Path, **options) -> tuple[models.Model, Lower | None, int]:
    """A network that was trained here, or a classifier of the hub, with its `Lower` and its length.

    Args:
        model: folder of a run, weights with a card of the same name beside them, or a hub id.
        options: `device`, `dtype`, `revision` of `models.load_classifier`.
    """
    place = Path(model)
    card = place / RECORD if place.is_dir() else place.with_suffix(".json")
    made = read_json(card) if card.is_file() else {}
    chosen = made.get("options", {})
    length = chosen.get("max_length", 128)
    if not chosen.get("frozen_layers"):
        return models.load_classifier(model, **options), None, length
    network, tokenizer = build_classifier(chosen["encoder"], made["seed"])
    below = split_network(network, chosen["encoder"], chosen["frozen_layers"], made["seed"])
    network.load_state_dict(load_file(place / "model.safetensors" if place.is_dir() else place))
    device = torch.device(options.get("device") or models.default_device())
    if place.is_file():  # one network for good: to keep what is below it would buy nothing
        below = partial(below, keep=False)
    return models.Model(network.eval().to(device), tokenizer, device), below, length


def encode_context_pairs(tokenizer, pairs: pd.DataFrame, max_length: int) -> dict[str, list]:
    """Token ids (and segments, where the model has them) of pairs; the longer text is cut first.

    Args:
        tokenizer: of transformers.
        pairs: with context and response, and label (0 or 1) for training.
    """
    if pairs.empty:  # tokenizers refuse nothing
        return {"input_ids": []}
    how = {"truncation": "longest_first", "max_length": max_length, "return_attention_mask": False}
    encoded = dict(tokenizer(pairs["context"].tolist(), pairs["response"].tolist(), **how))
    labels = {"labels": pairs["label"].astype(int).tolist()} if "label" in pairs else {}
    return encoded | labels


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
    network, below, tokenizer, train: dict, held_out: dict, folder: Path, options: Options, seed
) -> transformers.Trainer:
    """A `Trainer` that keeps its state in `folder` at the end of each epoch.

    All epochs follow each other as one long pass, since they differ in their batches, and by one
    or two in the number of them. An item is a batch that is ready.

    Args:
        network, tokenizer: what `build` gave.
        below: what `cut` took off the network, or None.
        train, held_out: what `encode` gave.
        seed: of batches, order and dropout.
    """
    arguments = _arguments(folder, options)
    lengths = [*map(len, train["input_ids"])]
    train, held_out = (pd.DataFrame(part).to_dict("records") for part in (train, held_out))
    ready, ends = [], []
    for epoch in range(options.epochs):
        drawn = batches(lengths, options.batch_tokens, seed, epoch)
        ready += [[train[i] for i in rows] for rows in drawn]
        ends.append(len(ready) // arguments.world_size)
    # Rows of similar length follow each other in validation too: little is padded.
    single = [[row] for row in sorted(held_out, key=lambda row: len(row["input_ids"]))]
    pad = transformers.DataCollatorWithPadding(tokenizer)

    def collate(items: list[list[dict]]) -> dict:
        batch = pad([row for rows in items for row in rows])
        return below(batch) if below else batch

    parts = {"data_collator": collate, "train_dataset": ready, "eval_dataset": single}
    parts |= {"compute_metrics": _figures, "callbacks": [_Watch(ends, seed)]}
    made = transformers.Trainer(network, arguments, **parts)
    made.remove_callback(transformers.PrinterCallback)
    return made


def _arguments(folder: Path, options: Options) -> transformers.TrainingArguments:
    return transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=1,
        train_sampling_strategy="sequential",
        learning_rate=options.rate,  # the highest; `_Watch` sets that of each step
        warmup_steps=options.warmup,  # below 1: a share of the steps
        weight_decay=0.01,
        bf16=options.precision == "bf16",
        use_cpu=not torch.cuda.is_available(),
        per_device_train_batch_size=1,
        per_device_eval_batch_size=max(1, 4 * options.batch_tokens // options.max_length),
        eval_strategy="steps",  # `_Watch` says at which
        eval_steps=NEVER,
        save_steps=NEVER,
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="quality",
        logging_steps=1,
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
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
    return figures | {"quality": quality(figures)}


class _Watch(transformers.TrainerCallback):
    """Ends of epochs, rate, dropout by seed and step alone, a bar, and a stop for a runaway."""

    def __init__(self, ends: list[int], seed: int):
        self.ends, self.seed = ends, seed

    def on_train_begin(self, args, state, control, **kwargs):
        how = {"desc": "EnDex", "leave": False, "disable": not state.is_world_process_zero}
        self.bar = tqdm(initial=state.global_step, total=state.max_steps, **how)

    def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
        step, steps = state.global_step, state.max_steps
        torch.manual_seed((self.seed * 1_000_003 + step) * 1009 + args.process_index)
        # Trainer's own warm-up would leave out the first step, whose rate it makes 0.
        rising = max(1, round(args.warmup_steps * steps))
        share = min((step + 1) / rising, (steps - step) / max(1, steps - rising))
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * share

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
