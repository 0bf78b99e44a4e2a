"""The network of EnDex: any pretrained encoder with a classification head over a pair of texts.

Where the first layers stay frozen, `FrozenEncoder` computes their hidden states and `TrainedLayers`
is the rest. This module imports torch and transformers; the others import it where they train or
score.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import transformers
from safetensors.torch import load_file
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import SequenceClassifierOutput

from lib import models
from lib.data.storage import read_json
from lib.endex.runs import NETWORK, RECORD
from lib.models import silence_transformers, token_batches

# An untrained encoder for the sample: two layers, the packaged vocabulary.
TINY = "tiny"
TINY_SIZE = dict(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
)
# Types of networks whose first layers can stay frozen.
LAYERED = (
    "bert",
    "roberta",
    "xlm-roberta",
    "camembert",
)
WINDOW = 32  # batches whose rows are sorted by length together
REMEMBERED = 1_000_000  # tokens whose hidden states are remembered: 1.5 GB for the packaged encoder


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
    if str(encoder) == TINY:
        folder = models.find_model(models.DEFAULT_ENCODER).folder
        config = transformers.AutoConfig.from_pretrained(
            folder, num_labels=2, **TINY_SIZE
        )
        network = transformers.AutoModelForSequenceClassification.from_config(config)
    else:
        folder = models.find_model(encoder).folder
        with silence_transformers():  # it would report the new head as missing weights
            network = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, num_labels=2, local_files_only=True, use_safetensors=True
            )
    return network, models.load_tokenizer(folder)


def freeze_layers(
    network: torch.nn.Module,
    encoder: str,
    frozen_layers: int,
    seed: int,
    remember: bool = True,
) -> torch.nn.Module:
    """`TrainedLayers` of a new network whose first layers stay frozen; with 0, the network itself.

    Args:
        network: what `build_classifier` made of encoder and seed.
        frozen_layers: number of first layers that stay frozen, with the embeddings.
        remember: keep the hidden states of each pair, for other epochs and other networks.
    """
    if not frozen_layers:
        return network
    if encoder != TINY:  # its weights do not depend on the seed: all runs share it
        seed = 0
    frozen = frozen_encoder(encoder, frozen_layers, seed)
    hidden_states = frozen.remember if remember else frozen.forward
    return TrainedLayers(network, hidden_states, frozen_layers)


class FrozenEncoder(torch.nn.Module):
    """Embeddings and first layers of an encoder, which training does not change.

    They have no dropout, so a pair has the same hidden states in every epoch and run, and under
    every network above: `remember` computes them once. Where all layers are frozen, only the first
    token is returned, since a head reads no other.
    """

    def __init__(self, encoder: str, n_layers: int, seed: int):
        super().__init__()
        network, _ = build_classifier(encoder, seed)
        if network.config.model_type not in LAYERED:
            raise ValueError(
                f"frozen_layers: {encoder} is none of {', '.join(LAYERED)}; use 0"
            )
        self.base = network.base_model
        self.first_token_only = n_layers >= len(self.base.encoder.layer)
        self.base.encoder.layer = self.base.encoder.layer[:n_layers]
        self.base.pooler = None
        self.states = {}  # hidden states by the token ids of a pair
        self.n_tokens = 0  # of the pairs in it
        self.eval()

    @torch.no_grad()
    def forward(self, input_ids: torch.Tensor, **rest) -> torch.Tensor:
        """Hidden states of a padded batch, in full precision; shape (pairs, tokens, width)."""
        with torch.autocast(input_ids.device.type, enabled=False):
            states = self.to(input_ids.device).base(input_ids, **rest).last_hidden_state
        return states[:, :1] if self.first_token_only else states

    def remember(self, attention_mask: torch.Tensor, **columns) -> torch.Tensor:
        """The same as `forward`, but each pair is computed once, up to `REMEMBERED` tokens.

        It is computed alone, so that its last digits do not depend on its batch.
        """
        batch_states = []
        for row, length in enumerate(attention_mask.sum(1).tolist()):
            pair = {
                name: column[row : row + 1, :length] for name, column in columns.items()
            }
            # What scoring computes in inference mode stays out of training.
            key = (
                torch.is_inference_mode_enabled(),
                *torch.cat([*pair.values()]).flatten().tolist(),
            )
            states = self.states.get(key)
            if states is None:
                states = self(**pair)[0].clone()
                if self.n_tokens < REMEMBERED:
                    self.states[key] = states
                    self.n_tokens += len(states)
            batch_states.append(states.to(attention_mask.device))
        return pad_sequence(batch_states, batch_first=True)


frozen_encoder = cache(FrozenEncoder)  # one for all runs of a process


class FirstTokenLayer(torch.nn.Module):
    """The last layer of BERT or RoBERTa for the first token alone, since the head reads no other.

    It keeps the names of the layer's weights. In the packaged encoder, a step forward and backward
    takes a sixth of the CPU time of the whole layer (16 pairs of 64 tokens).
    """

    def __init__(self, layer: torch.nn.Module):
        super().__init__()
        self.attention = layer.attention
        self.intermediate = layer.intermediate
        self.output = layer.output

    def forward(
        self, hidden_states: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Hidden state of the first token, shape (pairs, 1, width)."""
        attention = self.attention.self
        first = hidden_states[:, :1]

        def split_heads(states: torch.Tensor) -> torch.Tensor:
            heads = states.unflatten(-1, (attention.num_attention_heads, -1))
            return heads.transpose(1, 2)

        context = scaled_dot_product_attention(
            split_heads(attention.query(first)),
            split_heads(attention.key(hidden_states)),
            split_heads(attention.value(hidden_states)),
            attn_mask=None if mask is None else mask[:, :, :1],
            dropout_p=attention.dropout.p if self.training else 0.0,
        )
        context = context.transpose(1, 2).flatten(2)
        states = self.attention.output(context, first)
        return self.output(self.intermediate(states), states)


class TrainedLayers(torch.nn.Module):
    """The layers above the frozen ones, pooler and head: token ids in, logits out.

    Its weights have the names of a network that has these layers only; those of the frozen encoder
    are not among them.
    """

    def __init__(
        self, network: torch.nn.Module, hidden_states: Callable, frozen_layers: int
    ):
        super().__init__()
        self.hidden_states = hidden_states
        self.config = network.config
        self.base_name = network.base_model_prefix
        self.add_module(self.base_name, network.base_model)
        base = network.base_model
        base.embeddings = None
        base.encoder.layer = base.encoder.layer[frozen_layers:]
        if len(base.encoder.layer):
            base.encoder.layer[-1] = FirstTokenLayer(base.encoder.layer[-1])
        self.dropout = getattr(network, "dropout", None)
        self.classifier = network.classifier

    def forward(
        self, attention_mask: torch.Tensor, **columns
    ) -> SequenceClassifierOutput:
        """Logits of a padded batch, shape (pairs, 2)."""
        states = self.hidden_states(attention_mask=attention_mask, **columns)
        mask = create_bidirectional_mask(
            self.config,
            inputs_embeds=states,
            attention_mask=attention_mask[:, : states.shape[1]],
        )
        base = getattr(self, self.base_name)
        for layer in base.encoder.layer:
            states = layer(states, mask)
        if base.pooler is not None:
            # RoBERTa has none: its head reads the hidden states.
            states = self.dropout(base.pooler(states))
        return SequenceClassifierOutput(logits=self.classifier(states))


def load_classifier(
    model: str | Path,
    device=None,
    dtype: str = "float32",
    revision: str | None = None,
    batch_tokens: int | None = None,
) -> tuple[models.Model, int]:
    """A network that was trained here, or a classifier of the hub, and the tokens of its pairs.

    Args:
        model: folder of a run, weights with a card of the same name beside them, or a hub id.
        device, dtype, revision, batch_tokens: as in `models.load_classifier`.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: a network with frozen layers has full precision and no revision.
    """
    weights = Path(model)
    card = weights.with_suffix(".json")
    if weights.is_dir():
        card = weights / RECORD
        weights = weights / NETWORK
    record = read_json(card) if card.is_file() else {"options": {}}
    trained = record["options"]
    max_length = trained.get("max_length", 128)
    if not trained.get("frozen_layers"):
        options = {"device": device, "dtype": dtype, "revision": revision}
        options["batch_tokens"] = batch_tokens
        return models.load_classifier(model, **options), max_length
    if dtype != "float32" or revision:
        raise ValueError(f"{model} has frozen layers: leave out dtype and revision")

    encoder = trained["encoder"]
    seed = record["seed"]
    network, tokenizer = build_classifier(encoder, seed)
    # Runs score the same replies one after the other; weights that ship alone do not.
    network = freeze_layers(
        network,
        encoder,
        trained["frozen_layers"],
        seed=seed,
        remember=Path(model).is_dir(),
    )
    network.load_state_dict(load_file(weights))
    device = torch.device(device or models.default_device())
    loaded = models.Model(network.eval().to(device), tokenizer, device, batch_tokens)
    return loaded, max_length


def encode_context_pairs(
    tokenizer, pairs: pd.DataFrame, max_length: int
) -> dict[str, list]:
    """Token ids (and segments, where the model has them) of pairs; the longer text is cut first.

    Args:
        tokenizer: of transformers.
        pairs: with context and response.
        max_length: tokens of a pair.
    """
    if pairs.empty:  # tokenizers refuse nothing
        return {"input_ids": []}
    encoded = tokenizer(
        pairs["context"].tolist(),
        pairs["response"].tolist(),
        truncation="longest_first",
        max_length=max_length,
        return_attention_mask=False,
    )
    return dict(encoded)


def pair_logits(
    network: torch.nn.Module,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    token_type_ids: torch.Tensor | None = None,
    _: torch.Tensor | None = None,
) -> torch.Tensor:
    """Logits of a batch in full precision, shape (pairs, 2), from what `pad_batch` returns."""
    batch = {"input_ids": input_ids, "attention_mask": attention_mask}
    if token_type_ids is not None:
        batch["token_type_ids"] = token_type_ids
    return network(**batch).logits.float()


def score_pairs(
    model: models.Model, pairs: pd.DataFrame, max_length: int
) -> np.ndarray:
    """Probability that each reply is engaging, shape (n,).

    Args:
        model: what `load_classifier` returned.
        pairs: with context and response.
        max_length: tokens of a pair.
    """
    model.network.eval()
    columns = encode_context_pairs(
        model.tokenizer, pairs, min(max_length, model.positions)
    )

    def engaging(*batch):
        return pair_logits(model.network, *batch).softmax(-1)[:, 1]

    return models.score_in_batches(model, engaging, *columns.values())


def epoch_batches(
    lengths: Sequence[int], max_tokens: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Row positions of the batches of one epoch, in the order of training.

    Rows are put in random order. Within windows of about 32 batches they are sorted by length, to
    reduce padding; then the batches are put in random order.

    Args:
        lengths: tokens of each row, shape (n,).
        max_tokens: most tokens in a batch, padding included.
        seed, epoch: determine the random order; each epoch has batches of its own.

    Returns:
        Arrays that hold 0..n-1 once each.

    >>> batches = epoch_batches([3, 9, 4, 3], 9, seed=0, epoch=1)
    >>> sorted(np.concatenate(batches).tolist())
    [0, 1, 2, 3]
    """
    rng = np.random.default_rng([seed, epoch])
    lengths = np.asarray(lengths)
    order = rng.permutation(len(lengths))
    window = max(1, int(WINDOW * max_tokens / lengths.mean()))
    batches = []
    for start in range(0, len(order), window):
        rows = order[start : start + window]
        batches += [rows[batch] for batch in token_batches(lengths[rows], max_tokens)]
    return [batches[i] for i in rng.permutation(len(batches))]
