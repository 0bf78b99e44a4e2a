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
from lib.models import Model, pad_batch, score_in_batches, token_ids

PART_TOKENS = 25  # of the context and of the response, the authors' defaults
BATCH_ROWS = 32


@dataclass(eq=False)
class Classifier:
    """An encoder with a head for two classes over its max-pooled token vectors."""

    model: Model
    head: Callable  # linear, to two classes

    def logits(self, tokens, mask, types, _=None):
        """Return the two class scores of each row, shape (b, 2)."""
        hidden = self.model(tokens, mask, token_type_ids=types * mask).last_hidden_state
        pooled = hidden.masked_fill(mask[..., None] == 0, -100.0).max(dim=1).values
        return self.head(pooled)

    def probability(
        self, contexts: Sequence[str] | None, responses: Sequence[str]
    ) -> np.ndarray:
        """Probability of class 1 (valid, or a true reply), shape (n,), in [0, 1]."""

        def score_batch(*batch):
            return self.logits(*batch).softmax(-1)[:, 1]

        ids, types = encode_pairs(self.model, contexts, responses)
        return score_in_batches(self.model, score_batch, ids, types)


def encode_pairs(
    model: Model, contexts: Sequence[str] | None, responses: Sequence[str]
) -> tuple[list, list]:
    """Return token ids and types of each response, after its context or alone.

    A response alone is cut to 25 tokens, [CLS] and [SEP] included; a pair as the authors do. Only
    where both together exceed 50: the context to its last 25, the response to its first 25. Then,
    so that the pair has 50 with its three special tokens, the longer text loses its last ones, one
    at a time (the response where both are equal).
    """
    tokenize = partial(model.tokenizer, add_special_tokens=False)
    add_special_tokens = model.tokenizer.backend_tokenizer.post_process
    rows = []
    if contexts is None:
        for response in tokenize(list(responses)).encodings:
            response.truncate(PART_TOKENS - 2)
            rows.append(add_special_tokens(response))
    else:
        context_encodings = tokenize(list(contexts)).encodings
        response_encodings = tokenize(list(responses)).encodings
        for context, response in zip(
            context_encodings, response_encodings, strict=True
        ):
            _cut_pair(context, response)
            rows.append(add_special_tokens(context, response))
    return [row.ids for row in rows], [row.type_ids for row in rows]


def _cut_pair(context, response) -> None:
    if len(context) + len(response) > 2 * PART_TOKENS:
        context.truncate(PART_TOKENS, direction="left")
        response.truncate(PART_TOKENS)
    while len(context) + len(response) > 2 * PART_TOKENS - 3:
        longer = context if len(context) > len(response) else response
        longer.truncate(len(longer) - 1)


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
    return [*words, words[-1]]  # one word repeated cannot be reordered


def _reorder(words: list[str], draw: random.Random) -> list[str]:
    draw.shuffle(words)
    return words


def _drop(words: list[str], draw: random.Random) -> list[str]:
    share = draw.random() / 2
    return [word for word in words if draw.random() >= share]


def _repeat(words: list[str], draw: random.Random) -> list[str]:
    repeated = []
    for word in words:
        repeated.append(word)
        if draw.random() < 0.1:
            n_words = draw.choices((1, 2, 3), (0.7, 0.2, 0.1))[0]
            times = draw.choices((1, 2, 3), (0.8, 0.15, 0.05))[0]
            repeated += repeated[-n_words:] * times
    return repeated


def train_valid_utterance(
    responses: Sequence[str], **options
) -> tuple[Classifier, list[float]]:
    """Train VUP: unchanged responses (1) against broken ones (0).

    Phy et al. (2020), section 3.1. The authors' three mild changes of *valid* responses (dropped
    final mark, stop words, function words) are left out: two of them need a tagger.

    Args:
        responses: texts; those of three words or more are broken half of the time.
        options: `encoder` (folder or hub id), `epochs` (1), `learning_rate` (1e-4), `seed`, and
            `device`, `revision` and `batch_tokens` (of what it scores later) of the encoder.

    Returns:
        The classifier, and the mean loss of each epoch.
    """

    def examples(draw):
        texts = []
        labels = []
        for text in responses:
            words = text.split()
            is_valid = len(words) < 3 or draw.random() <= 0.5
            texts.append(text if is_valid else " ".join(make_invalid(words, draw)))
            labels.append(int(is_valid))
        return texts, labels

    return _train(examples, None, **options)


def train_next_utterance(
    contexts: Sequence[str], responses: Sequence[str], **options
) -> tuple[Classifier, list[float]]:
    """Train NUP: a response to its context (1) against a random response (0, half of the time).

    Phy et al. (2020), section 3.2. Options as in `train_valid_utterance`.
    """

    def examples(draw):
        is_true = [draw.randint(0, 1) for _ in responses]
        texts = []
        labels = []
        for response, true in zip(responses, is_true, strict=True):
            text = response if true else draw.choice(responses)
            texts.append(text)
            # A random draw can hit the same words: then it is the true reply.
            labels.append(int(text == response))
        return texts, labels

    return _train(examples, contexts, **options)


def _train(
    examples: Callable,
    contexts: Sequence[str] | None,
    *,
    encoder: str = models.DEFAULT_ENCODER,
    epochs: int = 1,
    learning_rate: float = 1e-4,
    seed: int = 0,
    **options,
) -> tuple[Classifier, list[float]]:
    import torch

    model = models.load_encoder(encoder, **options)
    # A copy, because the loaded network serves other metrics too.
    model = replace(model, network=deepcopy(model.network))
    draw = random.Random(seed)
    torch.manual_seed(seed)
    head = torch.nn.Linear(model.network.config.hidden_size, 2).to(model.device)
    classifier = Classifier(model, head)
    parameters = [*model.network.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate)
    losses = []
    for _ in range(epochs):
        texts, labels = examples(draw)
        ids, types = encode_pairs(model, contexts, texts)
        order = list(range(len(labels)))
        draw.shuffle(order)
        total = 0.0
        for start in range(0, len(order), BATCH_ROWS):
            rows = order[start : start + BATCH_ROWS]
            logits = classifier.logits(*pad_batch(model, rows, ids, types))
            targets = torch.tensor([labels[row] for row in rows], device=model.device)
            loss = torch.nn.functional.cross_entropy(logits, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        losses.append(total / len(order))
    return classifier, losses


def masked_surprisal(model: Model, texts: Sequence[str]) -> np.ndarray:
    """Sum over tokens of -log p(token | the others), each masked in turn.

    Returns:
        Shape (n,), at least 0; grows with length and with rarity. NaN for a text without a token.
    """
    special = {model.tokenizer.cls_token_id, model.tokenizer.sep_token_id}
    ids = token_ids(model, texts)
    masked_rows = []
    positions = []
    for row, text_ids in enumerate(ids):
        for position, token in enumerate(text_ids):
            if token not in special:
                masked_rows.append(row)
                positions.append([position])

    def score_batch(tokens, mask, position, _):
        truth = tokens.gather(1, position)
        hidden = tokens.scatter(1, position, model.tokenizer.mask_token_id)
        logits = model(hidden, mask).logits[range(len(position)), position[:, 0]]
        return -logits.float().log_softmax(-1).gather(1, truth)[:, 0]

    surprisals = score_in_batches(
        model, score_batch, [ids[row] for row in masked_rows], positions
    )
    sums = pd.Series(surprisals, dtype=float).groupby(masked_rows).sum()
    return sums.reindex(range(len(ids))).to_numpy()


def usl_h(
    turns: pd.DataFrame,
    valid: Classifier,
    sensible: Classifier,
    *,
    masked: str = "",
    quartiles: tuple[float, float] | tuple = (),
    **options,
) -> pd.DataFrame:
    """USL-H of each response and its parts; no registered metric, since it needs trained models.

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
        options: `device`, `dtype`, `revision`, `batch_tokens` of the masked model.

    Returns:
        Columns usl_h_valid, usl_h_sensible, usl_h_likable and usl_h on `turns.index`, in [0, 1],
        higher is better; NaN for a blank response, or for S and what builds on it without context.
    """
    responses = turns["response"]
    last_turns = [" ".join(texts) for texts in earlier_utterances(turns, last=1)]
    understandable = score_where_text(partial(valid.probability, None), responses)
    sensible_scores = score_where_text(sensible.probability, last_turns, responses)
    likable = np.full(len(turns), np.nan)
    if masked:
        surprisal = partial(masked_surprisal, models.load_masked(masked, **options))
        likable = np.interp(score_where_text(surprisal, responses), quartiles, (0, 1))
    overall = (
        0.33 * understandable
        + 0.33 * sensible_scores
        + 0.34 * sensible_scores * likable
    )
    columns = {
        "usl_h_valid": understandable,
        "usl_h_sensible": sensible_scores,
        "usl_h_likable": likable,
        "usl_h": overall,
    }
    return pd.DataFrame(columns, turns.index)
