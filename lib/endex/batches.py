"""Which rows form which batch, decided by seed and epoch alone, so that a run can be continued."""

from collections.abc import Sequence

import numpy as np

from lib.models import token_batches

WINDOW = 32  # batches whose rows are sorted by length together


def epoch_batches(
    lengths: Sequence[int], tokens: int, seed: int, epoch: int, multiple: int = 1
) -> list[np.ndarray]:
    """The batches of one epoch, in the order of training.

    Rows are drawn in random order; within a window of some batches they are sorted by length, so
    that little is padded; then the batches are drawn in random order.

    Args:
        lengths: tokens of each row, shape (n,).
        tokens: most tokens in a batch, padding included.
        seed, epoch: equal ones give equal batches.
        multiple: widths are rounded up to it.

    Returns:
        Arrays of row positions that hold 0..n-1 once each.

    >>> sorted(row for rows in epoch_batches([3, 9, 4, 3], 9, 0, 0) for row in rows.tolist())
    [0, 1, 2, 3]
    """
    rng = np.random.default_rng([seed, epoch])
    widths = -(-np.asarray(lengths) // multiple) * multiple
    order = rng.permutation(len(widths))
    window = max(1, int(WINDOW * tokens / max(widths.mean(), 1)))
    batches = []
    for start in range(0, len(order), window):
        rows = order[start : start + window]
        batches += [rows[batch] for batch in token_batches(widths[rows], tokens)]
    return [batches[i] for i in rng.permutation(len(batches))]
