"""Batches of rows of similar length, and scores put back in the order of the rows.

Padding is wasted work: a batch is as wide as its longest row. Sorting rows by length and filling
each batch up to a number of tokens keeps the waste small, and bounds the memory of a batch whatever
the size of the corpus.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from tqdm.auto import tqdm

TOKENS = 8192  # tokens in a batch, padding included
BAR_FROM = 100_000  # tokens; shorter work shows no progress bar


def token_batches(lengths: Sequence[int], tokens: int = TOKENS) -> list[np.ndarray]:
    """Group row positions by length so that no padded batch exceeds `tokens`.

    Longest rows come first: a machine that cannot hold the largest batch says so at once.

    Args:
        lengths: tokens of each row, shape (n,).
        tokens: most tokens in a batch, rows times the longest row; a longer row stands alone.

    Returns:
        Arrays of positions that together hold 0..n-1 once each; an empty list for no rows.

    >>> [batch.tolist() for batch in token_batches([2, 9, 3, 3], tokens=9)]
    [[1], [2, 3, 0]]
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    batches, start = [], 0
    while start < len(order):
        width = max(int(lengths[order[start]]), 1)
        size = max(tokens // width, 1)
        batches.append(order[start : start + size])
        start += size
    return batches


def pad(sequences: Sequence[Sequence[int]], value: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad token ids on the right.

    Returns:
        ids and mask, both int64 of shape (rows, longest); the mask is 1 on tokens, 0 on padding.

    >>> ids, mask = pad([[5, 6], [7]], value=0)
    >>> ids.tolist(), mask.tolist()
    ([[5, 6], [7, 0]], [[1, 1], [1, 0]])
    """
    width = max(len(sequence) for sequence in sequences)
    ids = torch.full((len(sequences), width), value, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.as_tensor(sequence, dtype=torch.long)
        mask[row, : len(sequence)] = 1
    return ids, mask


def map_batches(
    score: Callable[[np.ndarray], object],
    lengths: Sequence[int],
    *,
    tokens: int = TOKENS,
    label: str = "",
) -> np.ndarray:
    """Score rows in length-sorted batches and return the scores in the order of the rows.

    Args:
        score: takes row positions, shape (b,); returns a tensor or array of shape (b,) or (b, k).
        lengths: tokens of each row, shape (n,).
        tokens: size of a batch, as in `token_batches`.
        label: text of the progress bar, which shows on standard error from 100,000 tokens on.

    Returns:
        float64 array of shape (n,) or (n, k); shape (0,) for no rows.

    >>> map_batches(lambda rows: rows * 10.0, [3, 1, 2]).tolist()
    [0.0, 10.0, 20.0]
    """
    scores = None
    total = int(np.sum(lengths))
    with tqdm(total=total, desc=label, unit="tok", disable=total < BAR_FROM, leave=False) as bar:
        for batch in token_batches(lengths, tokens):
            values = np.asarray(torch.as_tensor(score(batch)).float().cpu(), dtype=np.float64)
            if scores is None:
                scores = np.empty((len(lengths), *values.shape[1:]))
            scores[batch] = values
            bar.update(int(np.sum(np.asarray(lengths)[batch])))
    return np.empty(0) if scores is None else scores
