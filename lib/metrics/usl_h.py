"""USL-H (Phy et al. 2020): understandable, sensible and likeable, composed in this order.

Two classifiers, trained on dialogue alone, say whether a text is valid (VUP) and whether it replies
to what was said (NUP); a masked language model says how predictable it is.
"""

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from lib import models
from lib.data.turn_texts import earlier_utterances, score_where_text
from lib.metrics.registry import metric
from lib.models import Model, pad_batch, score_in_batches, token_ids

PART = 25  # tokens of the context and of the response, the authors' defaults
BATCH = 32


@dataclass(eq=False)
class Classifier:
    """An encoder with a head for two classes over its max-pooled token vectors."""

    model: Model
    head: Callable  # linear, to two classes

    def logits(self, tokens, mask, types, _=None):
        """Return the two class scores of each row, shape (b, 2)."""
        hidden = self.model(tokens, mask, token_type_ids=types * mask).last_hidden_state
        return self.head(hidden.masked_fill(mask[..., None] == 0, -100.0).max(dim=1).values)

    def probability(self, contexts: Sequence[str] | None, responses: Sequence[str]) -> np.ndarray:
        """Probability of class 1 (valid, or a true reply), shape (n,), in [0, 1]."""
        columns = encode_pairs(self.model, contexts, responses)
        return score_in_batches(
            self.model, lambda *given: self.logits(*given).softmax(-1)[:, 1], *columns
        )


def encode_pairs(
    model: Model, contexts: Sequence[str] | None, responses: Sequence[str]
) -> tuple[list, list]:
    """Return token ids and types of each response, after its context or alone.

    Alone it is cut to 25 tokens, [CLS] and [SEP] included; a pair as `cut_pair` says.
    """
    start, end = model.tokenizer.cls_token_id, model.tokenizer.sep_token_id
    plain = partial(model.tokenizer, add_special_tokens=False)
    said = plain(list(responses))["input_ids"]
    if contexts is None:
        pairs = [([start, *row[: PART - 2], end], []) for row in said]
    else:
        both = map(cut_pair, plain(list(contexts))["input_ids"], said)
        pairs = [([start, *a, end], [*b, end]) for a, b in both]
    return [a + b for a, b in pairs], [[0] * len(a) + [1] * len(b) for a, b in pairs]


def cut_pair(context: list[int], response: list[int]) -> tuple[list[int], list[int]]:
    """Cut the tokens of a pair as the authors do.

    Only where both together exceed 50: the context to its last 25, the response to its first 25.
    Then, so that the pair has 50 with its three special tokens, the longer part loses its last
    ones, one at a time (the response where both are equal).

    >>> [len(part) for part in cut_pair([0] * 40, [0] * 8)]
    [39, 8]
    """
    if len(context) + len(response) > 2 * PART:
        context, response = context[-PART:], response[:PART]
    while len(context) + len(response) > 2 * PART - 3:
        (context if len(context) > len(response) else response).pop()
    return context, response


def make_invalid(words: Sequence[str], draw: random.Random) -> list[str]:
    """Break a text as VUP's negatives are: reorder (.3), drop (.3) or repeat (.4) words.

    >>> make_invalid(["we", "walk", "home", "now"], random.Random(1)) != "we walk home now".split()
    True
    """
    change = draw.choices((_reorder, _drop, _repeat), (0.3, 0.3, 0.4))[0]
    for _ in range(20):
        broken = change(list(words), draw)
        if broken and broken != list(words):
            return broken
    return [*words, words[-1]]  # one word over and over cannot be reordered


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


def train_valid_utterance(responses: Sequence[str], **options) -> tuple[Classifier, list[float]]:
    """Train VUP: a response as it is (1) against the same kind of response broken (0).

    Phy et al. (2020), section 3.1. The authors' three mild changes of *valid* responses (dropped
    final mark, stop words, function words) are left out: two of them need a tagger.

    Args:
        responses: texts; those of three words or more are broken half of the time.
        options: `encoder` (folder or hub id), `epochs` (1), `rate` (1e-4), `seed`, `device`.

    Returns:
        The classifier, and the mean loss of each epoch.
    """

    def example(text: str, draw: random.Random) -> tuple[str, int]:
        words = text.split()
        if len(words) < 3 or draw.random() <= 0.5:
            return text, 1
        return " ".join(make_invalid(words, draw)), 0

    return _train(lambda draw: [example(text, draw) for text in responses], None, **options)


def train_next_utterance(
    contexts: Sequence[str], responses: Sequence[str], **options
) -> tuple[Classifier, list[float]]:
    """Train NUP: a response to its context (1) against a random response (0, half of the time).

    Phy et al. (2020), section 3.2. Options as in `train_valid_utterance`.
    """

    def examples(draw: random.Random) -> list[tuple[str, int]]:
        true = [draw.randint(0, 1) for _ in responses]
        pairs = zip(responses, true, strict=True)
        said = [text if own else draw.choice(responses) for text, own in pairs]
        # A random draw can hit the same words: then it is the true reply.
        return [(text, int(text == own)) for text, own in zip(said, responses, strict=True)]

    return _train(examples, contexts, **options)


def _train(
    examples, contexts, encoder=models.DEFAULT_ENCODER, epochs=1, rate=1e-4, seed=0, device=None
) -> tuple[Classifier, list[float]]:
    import torch

    loaded, draw, losses = models.load_encoder(encoder, device=device), random.Random(seed), []
    torch.manual_seed(seed)
    head = torch.nn.Linear(loaded.network.config.hidden_size, 2).to(loaded.device)
    model = replace(loaded, network=deepcopy(loaded.network))  # the loaded one serves others too
    trained = Classifier(model, head)
    optimizer = torch.optim.AdamW([*model.network.parameters(), *head.parameters()], lr=rate)
    for _ in range(epochs):
        responses, labels = zip(*examples(draw), strict=True)
        columns, order, total = (
            encode_pairs(model, contexts, responses),
            list(range(len(labels))),
            0.0,
        )
        draw.shuffle(order)
        for rows in (order[start : start + BATCH] for start in range(0, len(order), BATCH)):
            truth = torch.tensor([labels[row] for row in rows], device=loaded.device)
            logits = trained.logits(*pad_batch(model, rows, *columns))
            loss = torch.nn.functional.cross_entropy(logits, truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        losses.append(total / len(order))
    return trained, losses


def masked_surprisal(model: Model, texts: Sequence[str]) -> np.ndarray:
    """Sum over tokens of -log p(token | the others), each masked in turn.

    Returns:
        Shape (n,), at least 0; grows with length and with rarity. NaN for a text without a token.
    """
    special = {model.tokenizer.cls_token_id, model.tokenizer.sep_token_id}
    ids = token_ids(model, texts)
    places = [(t, p) for t, row in enumerate(ids) for p in range(len(row)) if row[p] not in special]

    def surprisal(tokens, mask, place, _):
        truth = tokens.gather(1, place)
        hidden = tokens.scatter(1, place, model.tokenizer.mask_token_id)
        there = model(hidden, mask).logits[range(len(place)), place[:, 0]].float().log_softmax(-1)
        return -there.gather(1, truth)[:, 0]

    each = score_in_batches(
        model, surprisal, [ids[text] for text, _ in places], [[p] for _, p in places]
    )
    sums = pd.Series(each, dtype=float).groupby([text for text, _ in places]).sum()
    return sums.reindex(range(len(ids))).to_numpy()


@metric("usl_h", "likelihood", ("context", "response"))
def usl_h(
    turns: pd.DataFrame, valid: Classifier, sensible: Classifier, masked="", quartiles=(), **options
) -> pd.DataFrame:
    """USL-H of each response and its parts.

    U: probability that the response is a valid text (VUP). S: probability that it replies to the
    last turn of its context (NUP). L (likable): the masked surprisal of the response, cut to the
    first and third quartile of a validation set and scaled to [0, 1], so that a *less* predictable
    response is better. USL-H = .33 U + .33 S + .34 S·L, as the authors' code has it ("USL-HS");
    their README prints another formula (U + US + USL), which their code does not have.

    Args:
        turns: turn table; uses `context` and `response`.
        valid, sensible: from `train_valid_utterance` and `train_next_utterance`.
        masked: folder or hub id of a masked language model, the authors' being a fine-tuned
            google-bert/bert-base-uncased; without one L and the composition are NaN.
        quartiles: (25 %, 75 %) of `masked_surprisal` on a validation set; needed with `masked`.
        options: `device`, `dtype` of the masked model.

    Returns:
        Columns usl_h_valid, usl_h_sensible, usl_h_likable and usl_h on `turns.index`, in [0, 1],
        higher is better; NaN for a blank response, or for S and what builds on it without context.
    """
    said, last = turns["response"], map(" ".join, earlier_utterances(turns, last=1))
    u = score_where_text(lambda texts: valid.probability(None, texts), said)
    s = score_where_text(sensible.probability, list(last), said)
    likable = np.full(len(turns), np.nan)
    if masked:
        surprisal = partial(masked_surprisal, models.load_masked(masked, **options))
        likable = np.interp(score_where_text(surprisal, said), quartiles, (0, 1))
    composed = 0.33 * u + 0.33 * s + 0.34 * s * likable
    parts = {"usl_h_valid": u, "usl_h_sensible": s, "usl_h_likable": likable, "usl_h": composed}
    return pd.DataFrame(parts, turns.index)
