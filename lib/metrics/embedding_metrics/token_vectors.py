"""Unit vectors of the tokens of texts, each text encoded once, within a bounded memory."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from lib.models import Model
from lib.models.batching import map_batches, pad

CHARACTERS_PER_TOKEN = 4  # only to plan blocks; English averages four to five


def token_ids(model: Model, texts: Sequence[str]) -> list[list[int]]:
    """Return token ids with the special tokens, cut to what the encoder takes."""
    texts = [text.strip() for text in texts]
    return model.tokenizer(texts, truncation=True, max_length=model.positions)["input_ids"]


def token_vectors(model: Model, ids: Sequence[Sequence[int]], tokens: int) -> list[np.ndarray]:
    """Encode token ids and scale each vector to length one.

    Returns:
        One float32 array of shape (tokens of the text, dimensions) per text: views of one array,
        since thousands of small ones would leave holes in memory that no later text fits into.
    """
    ends = np.cumsum([len(row) for row in ids])
    together = np.empty((ends[-1], model.network.config.hidden_size), np.float32)
    vectors = np.split(together, ends[:-1])

    def encode(rows: np.ndarray) -> np.ndarray:
        batch, mask = pad([ids[row] for row in rows], model.tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            hidden = model.network(
                input_ids=batch.to(model.device), attention_mask=mask.to(model.device)
            ).last_hidden_state.float()
        unit = torch.nn.functional.normalize(hidden, dim=-1).cpu().numpy()
        for row, vector in zip(rows, unit, strict=True):
            vectors[row][:] = vector[: len(ids[row])]
        return np.zeros(len(rows))

    map_batches(encode, [len(row) for row in ids], tokens=tokens, label="encode")
    return vectors


def blocks(pairs: Sequence[tuple[str, str]], positions: int, tokens: int) -> Iterator[list[int]]:
    """Cut different pairs, ordered by their second text, into blocks of about `tokens` tokens."""
    block: list[int] = []
    seen: set[str] = set()
    held = 0
    for place in sorted(range(len(pairs)), key=lambda i: (pairs[i][1], pairs[i][0])):
        new = set(pairs[place]) - seen
        size = sum(min(len(text) // CHARACTERS_PER_TOKEN + 2, positions) for text in new)
        if block and held + size > tokens:
            yield block
            block, seen, held, new = [], set(), 0, set(pairs[place])
            size = sum(min(len(text) // CHARACTERS_PER_TOKEN + 2, positions) for text in new)
        block.append(place)
        seen |= new
        held += size
    if block:
        yield block


class VectorStore:
    """Token ids and vectors of the texts at hand.

    A text that returns in a later block is kept, oldest out first beyond `tokens`, so that a stock
    reply is encoded once in a corpus and memory stays the same however long the corpus is.
    """

    def __init__(self, model: Model, uses: Counter, tokens: int, batch_tokens: int):
        self.model, self.uses, self.tokens, self.batch_tokens = model, uses, tokens, batch_tokens
        self.held: dict[str, tuple[list[int], np.ndarray]] = {}

    def fetch(self, texts: set[str]) -> dict[str, tuple[list[int], np.ndarray]]:
        """Return ids and vectors of the texts, encoding those that are not held."""
        new = sorted(texts - self.held.keys())
        if new:
            ids = token_ids(self.model, new)
            vectors = token_vectors(self.model, ids, self.batch_tokens)
            self.held |= dict(zip(new, zip(ids, vectors, strict=True), strict=True))
        return self.held

    def release(self, texts: Counter) -> None:
        """Count uses that are over; forget texts that do not return, then the oldest."""
        self.uses.subtract(texts)
        self.held = {
            # A view is copied, once, as it would keep the vectors of its whole block.
            text: (ids, vectors if vectors.base is None else vectors.copy())
            for text, (ids, vectors) in self.held.items()
            if self.uses[text] > 0
        }
        size = sum(len(ids) for ids, _ in self.held.values())
        while size > self.tokens:
            oldest = next(iter(self.held))
            size -= len(self.held.pop(oldest)[0])
