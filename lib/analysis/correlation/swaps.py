"""The difference of two correlations after many swaps of the two metrics.

A swap exchanges both metrics' scores on some clusters. Each score is then used once, for one metric
or for the other, and the ratings never move. So everything is a constant plus a term linear (or,
for Kendall, quadratic) in the 0/1 matrix of swaps, and the second metric comes as the complement of
the first.
"""

import numpy as np
from scipy import stats

from lib.analysis.correlation.coefficients import check_method
from lib.analysis.correlation.draws import chunks, doubled_ranks, ratio, signs, spread, tie_groups


def swapped_difference(
    a: np.ndarray,
    b: np.ndarray,
    y: np.ndarray,
    codes: np.ndarray,
    swap: np.ndarray,
    method: str = "pearson",
) -> np.ndarray:
    """r(a', y) - r(b', y) for each row of `swap`.

    Parameters
    ----------
    a, b, y : (n,) two metrics on one scale (standardised) and the ratings; finite.
    codes : (n,) the column of `swap` each item belongs to.
    swap : (draws, clusters) of 0 and 1; 1 where a and b trade places.

    Returns
    -------
    (draws,) differences, NaN where a swapped metric is constant.

    >>> a, b = np.array([1.0, 2, 3]), np.array([3.0, 2, 1])
    >>> swapped_difference(a, b, a, np.arange(3), np.array([[0, 0, 0], [1, 1, 1]])).round(6)
    array([ 2., -2.])
    """
    engine = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}
    return engine[check_method(method)](a, b, y, codes, np.asarray(swap, dtype=np.uint8))


def _pearson(a, b, y, codes, swap):
    y, n, width = y - y.mean(), len(y), swap.shape[1]
    sums = [
        np.stack([np.bincount(codes, c, width) for c in (x, x * x, x * y)], axis=1) for x in (a, b)
    ]
    first = sums[0].sum(axis=0) + swap.astype(float) @ (sums[1] - sums[0])
    second = (sums[0] + sums[1]).sum(axis=0) - first
    r = [ratio(n * sxy, spread(n, sx, sxx), n * (y @ y)) for sx, sxx, sxy in (first.T, second.T)]
    return r[0] - r[1]


def _spearman(a, b, y, codes, swap):
    n, pool = len(y), np.r_[a, b]
    order = np.argsort(pool, kind="stable")
    codes, from_a = np.r_[codes, codes][order], (order < n).astype(np.uint8)
    y_rank = stats.rankdata(y) - (n + 1) / 2
    both, y_square = np.r_[y_rank, y_rank][order], 4 * (y_rank @ y_rank)
    groups = tie_groups(pool[order])
    # Twice the centred rank in a' plus that in b' depends on the place in the pool alone.
    total = doubled_ranks(np.ones((1, 2 * n)), groups)[0]
    result, start = np.empty(len(swap)), 0
    for size in chunks(len(swap), 2 * n):
        block, start = slice(start, start + size), start + size
        chosen = (np.take(swap[block], codes, axis=1) ^ from_a).astype(float)
        rank = doubled_ranks(chosen, groups)  # also for scores that b' holds: their rank in a'
        own = chosen * rank
        result[block] = _rank_difference(chosen, rank, own, both, total, y_square)
    return result


def _rank_difference(chosen, rank, own, y, total, y_square):
    """Spearman of a' minus Spearman of b', where b' holds what a' does not, at rank total - rank"""
    own_y, own_total = (own @ np.stack([y, total], axis=1)).T
    rank_y, rank_total = (rank @ np.stack([y, total], axis=1)).T
    chosen_ty, chosen_tt = (chosen @ np.stack([total * y, total**2], axis=1)).T
    own_square = np.einsum("ij,ij->i", own, rank)
    square = np.einsum("ij,ij->i", rank, rank)
    b_y = total @ y - rank_y - chosen_ty + own_y
    b_square = total @ total - 2 * rank_total + square - chosen_tt + 2 * own_total - own_square
    return ratio(2 * own_y, own_square, y_square) - ratio(2 * b_y, b_square, y_square)


def _kendall(a, b, y, codes, swap):
    """tau-b: both numerator and denominators are u' P u for the 0/1 choice u from the pool."""
    n, width, chosen = len(y), swap.shape[1], swap.astype(float)
    pool, cluster = np.r_[a, b], np.r_[codes, codes + width]
    order = np.argsort(cluster, kind="stable")
    pool, ratings, cluster = pool[order], np.r_[y, y][order], cluster[order]
    starts = np.searchsorted(cluster, np.arange(2 * width))
    agree, untied = np.zeros((2, 2 * width, 2 * width))
    first = 0
    for size in chunks(2 * n, 2 * n):
        block, first = slice(first, first + size), first + size
        sx, sy = signs(pool, block), signs(ratings, block)
        for matrix, pairs in ((agree, sx * sy), (untied, np.abs(sx))):
            np.add.at(matrix, cluster[block], np.add.reduceat(pairs, starts, axis=1))
    y_pairs = np.abs(signs(y, slice(None))).sum(dtype=float)
    forms = [_quadratic(matrix, chosen) for matrix in (agree, untied)]
    r = [ratio(forms[0][side], forms[1][side], y_pairs) for side in (0, 1)]
    return r[0] - r[1]


def _quadratic(matrix: np.ndarray, swap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u' M u for u = (1 - s, s), what a' holds, and for its complement, what b' holds."""
    c = swap.shape[1]
    aa, ab, bb = matrix[:c, :c], matrix[:c, c:], matrix[c:, c:]
    inner = np.einsum("ij,ij->i", swap @ (aa - ab - ab.T + bb), swap)
    first = aa.sum() + 2 * swap @ (ab.T - aa).sum(axis=1) + inner
    second = bb.sum() + 2 * swap @ (ab - bb).sum(axis=1) + inner
    return first, second
