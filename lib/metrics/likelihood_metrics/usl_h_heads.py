"""The two judges of USL-H, trained on dialogue pairs alone: is a text valid, is it a reply?"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy
from tqdm.auto import tqdm
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from lib.models import (
    DEFAULT_ENCODER,
    default_device,
    find,
    load_network,
    load_tokenizer,
    map_batches,
    pad,
)

RESPONSE_TOKENS, CONTEXT_TOKENS = 25, 25  # the authors' defaults
MASKED = -100.0


@dataclass(eq=False)
class Judge:
    """An encoder with a head for two classes over its max-pooled token vectors."""

    network: PreTrainedModel
    head: torch.nn.Linear
    tokenizer: PreTrainedTokenizerBase
    encoder: str

    def logits(self, rows: Sequence[tuple[list[int], list[int]]]) -> torch.Tensor:
        """Return the two class scores of each pair of context and response tokens."""
        tokens, mask, types = self._inputs(rows)
        hidden = self.network(
            input_ids=tokens, attention_mask=mask, token_type_ids=types
        ).last_hidden_state
        hidden = hidden.masked_fill(mask[..., None] == 0, MASKED)
        return self.head(hidden.max(dim=1).values)

    def encode(self, contexts: Sequence[str] | None, responses: Sequence[str]) -> list:
        """Cut the context to its last tokens and the response to its first."""
        if not len(responses):  # the tokenizer takes no empty list
            return []
        said = self.tokenizer(list(responses), add_special_tokens=False)["input_ids"]
        if contexts is None:  # [CLS] and [SEP] count among a response's tokens
            return [([], ids[: RESPONSE_TOKENS - 2]) for ids in said]
        before = self.tokenizer(list(contexts), add_special_tokens=False)["input_ids"]
        return [
            (a[-CONTEXT_TOKENS:], b[:RESPONSE_TOKENS]) for a, b in zip(before, said, strict=True)
        ]

    def probability(self, contexts: Sequence[str] | None, responses: Sequence[str]) -> np.ndarray:
        """Probability of class 1 (valid, or a true reply), shape (n,), in [0, 1]."""
        rows = self.encode(contexts, responses)

        @torch.inference_mode()
        def score(batch: np.ndarray) -> torch.Tensor:
            return self.logits([rows[row] for row in batch]).softmax(-1)[:, 1]

        return map_batches(score, [len(a) + len(b) + 3 for a, b in rows], tokens=4096)

    def save(self, folder: str | Path) -> None:
        """Write weights as safetensors and the rest as JSON."""
        folder = Path(folder)
        self.network.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        save_file(self.head.state_dict(), folder / "judge.safetensors")
        (folder / "judge.json").write_text(json.dumps({"encoder": self.encoder}) + "\n")

    def _inputs(self, rows) -> tuple[torch.Tensor, ...]:
        start, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        first = [[start, *a, end] if a else [start] for a, _ in rows]
        ids, mask = pad([a + [*b, end] for a, (_, b) in zip(first, rows, strict=True)], 0)
        types = mask.clone()
        for row, head in enumerate(first):
            types[row, : len(head)] = 0
        if not any(a for a, _ in rows):
            types = torch.zeros_like(types)
        device = self.head.weight.device
        return ids.to(device), mask.to(device), types.to(device)


def load_judge(folder: str | Path) -> Judge:
    """Load a judge that was saved."""
    folder = Path(folder)
    network = load_network(AutoModel, folder)
    head = torch.nn.Linear(network.config.hidden_size, 2)
    head.load_state_dict(load_file(folder / "judge.safetensors"))
    encoder = json.loads((folder / "judge.json").read_text())["encoder"]
    return Judge(network, head, load_tokenizer(folder), encoder)


def fingerprint(folder: str | Path) -> str:
    """Checksum of a saved judge: of its encoder and of its head."""
    head = (Path(folder) / "judge.safetensors").read_bytes()
    return sha256(find(folder).sha256.encode() + head).hexdigest()


def make_invalid(words: Sequence[str], draw: random.Random) -> list[str]:
    """Break a text as VUP's negatives are: reorder (.3), drop (.3) or repeat (.4) words.

    >>> make_invalid(["we", "walk", "home", "now"], random.Random(1)) != "we walk home now".split()
    True
    """
    choice = draw.choices((_reorder, _drop, _repeat), (0.3, 0.3, 0.4))[0]
    for _ in range(20):
        broken = choice(list(words), draw)
        if broken and broken != list(words):
            return broken
    return [*words, words[-1]]  # one word over and over cannot be reordered


def train_valid_utterance(responses: Sequence[str], **options) -> tuple[Judge, list[float]]:
    """Train VUP: a response as it is (1) against the same kind of response broken (0).

    Phy et al. (2020), section 3.1. The authors' three mild changes of *valid* responses (dropped
    final mark, stop words, function words) are left out: two of them need a tagger.

    Args:
        responses: texts of three words or more are broken half of the time.
        options: `encoder`, `epochs`, `batch`, `rate`, `seed`, `freeze`, `device`; see `_train`.

    Returns:
        The judge, and the mean loss of each epoch.
    """

    def examples(judge: Judge, draw: random.Random) -> tuple[list, list[int]]:
        texts, labels = [], []
        for text in responses:
            words = text.split()
            broken = len(words) >= 3 and draw.random() > 0.5
            texts.append(" ".join(make_invalid(words, draw)) if broken else text)
            labels.append(0 if broken else 1)
        return judge.encode(None, texts), labels

    return _train(examples, **options)


def train_next_utterance(
    contexts: Sequence[str], responses: Sequence[str], **options
) -> tuple[Judge, list[float]]:
    """Train NUP: a response to its context (1) against a random response (0, half of the time).

    Phy et al. (2020), section 3.2. Options as in `train_valid_utterance`.
    """

    def examples(judge: Judge, draw: random.Random) -> tuple[list, list[int]]:
        labels = [draw.randint(0, 1) for _ in responses]
        said = [
            text if label else responses[draw.randrange(len(responses))]
            for text, label in zip(responses, labels, strict=True)
        ]
        # A random draw can hit the same words: then it is the true reply.
        labels = [int(a == b) for a, b in zip(said, responses, strict=True)]
        return judge.encode(contexts, said), labels

    return _train(examples, **options)


def _train(
    examples: Callable,
    *,
    encoder: str = DEFAULT_ENCODER,
    epochs: int = 1,
    batch: int = 32,
    rate: float = 1e-4,
    seed: int = 0,
    freeze: bool = False,
    device: str | None = None,
) -> tuple[Judge, list[float]]:
    device = torch.device(device) if device else default_device()
    torch.manual_seed(seed)
    draw, location = random.Random(seed), find(encoder)
    network = load_network(AutoModel, location.folder).to(device)
    head = torch.nn.Linear(network.config.hidden_size, 2).to(device)
    judge = Judge(network, head, load_tokenizer(location.folder), str(encoder))
    network.requires_grad_(not freeze)
    trained = [p for p in [*network.parameters(), *head.parameters()] if p.requires_grad]
    optimizer, losses = torch.optim.AdamW(trained, lr=rate), []
    for _ in range(epochs):
        rows, labels = examples(judge, draw)
        losses.append(_epoch(judge, optimizer, rows, labels, batch, draw))
    network.eval()
    return judge, losses


def _epoch(judge, optimizer, rows, labels, batch, draw) -> float:
    order, total = list(range(len(rows))), 0.0
    draw.shuffle(order)
    for start in tqdm(range(0, len(order), batch), desc="train", leave=False):
        picked = order[start : start + batch]
        truth = torch.tensor([labels[i] for i in picked], device=judge.head.weight.device)
        loss = cross_entropy(judge.logits([rows[i] for i in picked]), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += float(loss.detach()) * len(picked)
    return total / len(rows)


def _reorder(words: list[str], draw: random.Random) -> list[str]:
    draw.shuffle(words)
    return words


def _drop(words: list[str], draw: random.Random) -> list[str]:
    share = draw.random() / 2
    return [word for word in words if draw.random() >= share]


def _repeat(words: list[str], draw: random.Random) -> list[str]:
    out: list[str] = []
    for word in words:
        out.append(word)
        if draw.random() < 0.1:
            span = draw.choices((1, 2, 3), (0.7, 0.2, 0.1))[0]
            out += out[-span:] * draw.choices((1, 2, 3), (0.8, 0.15, 0.05))[0]
    return out
