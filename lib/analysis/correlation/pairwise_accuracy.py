"""Pairwise agreement that gives credit for ties: acc23 per item, soft accuracy per system."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.analysis.correlation.intervals import complete_pairs


class PairwiseAccuracy(NamedTuple):
    """Share of pairs ordered (or tied) as humans do, the tie threshold, pairs and groups."""

    value: float
    threshold: float
    pairs: int
    groups: int
    reason: str


def pairwise_accuracy(
    scores: Sequence[float],
    human: Sequence[float],
    groups: Sequence | None = None,
    threshold: float | None = None,
) -> PairwiseAccuracy:
    r"""acc23: share of pairs on which metric and humans agree, ties included.

    .. math:: acc_{23} = \frac{C + T_{both}}{\text{all pairs}}, \qquad
              \text{metric tie: } |s_i - s_j| \le \epsilon

    averaged over groups. Kendall's tau-b rewards a metric for having few distinct values; acc23
    does not, and by calibrating :math:`\epsilon` a continuous metric may predict ties as well.

    Parameters
    ----------
    scores, human : (n,) values; items with a NaN are left out.
    groups : (n,) only pairs within a group count (responses to one context); None is one group.
    threshold : the metric's tie threshold. None picks the one with the highest accuracy on these
        data, the convention of mt-metrics-eval: the value is then a best case.

    Returns
    -------
    PairwiseAccuracy with the value in [0, 1]; higher is better. No pair at all gives NaN with a
    reason; infinite scores tie with infinities of the same sign only. All-equal scores agree with
    the human ties only. More than 30 million pairs raise a ValueError (group the items).

    Reference: Deutsch, Foster and Freitag 2023, "Ties Matter".

    >>> pairwise_accuracy([0.1, 0.2, 0.9], [1, 1, 3])  # .1 apart is a tie, as humans say
    PairwiseAccuracy(value=1.0, threshold=0.1, pairs=3, groups=1, reason='')
    >>> round(pairwise_accuracy([0.1, 0.2, 0.9], [1, 1, 3], threshold=0).value, 4)
    0.6667
    """
    x, y, own = complete_pairs(scores, human, clusters=groups)
    first, second, weight = _pairs(own if groups is not None else np.zeros(len(x), int))
    if not len(first):
        return PairwiseAccuracy(np.nan, np.nan, 0, 0, "no group with two scored and rated items")
    gap = np.where(x[first] == x[second], 0.0, np.abs(x[first] - x[second]))
    tied, agree = _agreements(x, y, first, second)
    order = np.argsort(gap, kind="stable")
    # Accuracy at a threshold: human ties up to it, agreements in order beyond it.
    within, beyond = np.cumsum((weight * tied)[order]), np.cumsum((weight * agree)[order])
    at = np.r_[0.0, within] + beyond[-1] - np.r_[0.0, beyond]
    gap = gap[order]
    ends = np.r_[np.searchsorted(gap, 0.0, side="right"), _group_ends(gap[gap > 0], gap)]
    best = ends[np.nanargmax(at[ends].round(12))]
    if threshold is not None:
        best = np.searchsorted(gap, threshold, side="right")
    epsilon = threshold if threshold is not None else (gap[best - 1] if best else 0.0)
    count = int(round(weight.sum()))
    return PairwiseAccuracy(float(at[best] / count), float(epsilon), len(first), count, "")


def _group_ends(positive: np.ndarray, gap: np.ndarray) -> np.ndarray:
    return np.searchsorted(gap, np.unique(positive), side="right")


def _agreements(x, y, first, second) -> tuple[np.ndarray, np.ndarray]:
    """Pairs tied by humans, and pairs both order the same way (or both tie: never beyond 0)."""
    order = np.sign(y[first] - y[second])
    metric = (x[first] > x[second]).astype(int) - (x[first] < x[second])
    return order == 0, order == metric


def _pairs(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Index of both items of every pair within a group; weights sum to 1 in each group."""
    members = [rows for rows in _members(groups) if len(rows) > 1]
    total = sum(len(rows) * (len(rows) - 1) // 2 for rows in members)
    if total > 30_000_000:
        raise ValueError(f"{total:,} pairs: pass `groups` (the context or dialog of each item)")
    if not members:
        return np.empty(0, int), np.empty(0, int), np.empty(0)
    upper = [np.triu_indices(len(rows), 1) for rows in members]
    first = np.concatenate([rows[i] for rows, (i, _) in zip(members, upper, strict=True)])
    second = np.concatenate([rows[j] for rows, (_, j) in zip(members, upper, strict=True)])
    weight = np.concatenate([np.full(len(i), 1 / len(i)) for i, _ in upper])
    return first, second, weight


def _members(groups: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def soft_pairwise_accuracy(
    scores: pd.DataFrame, human: pd.DataFrame, draws: int = 1000, seed: int = 0
) -> float:
    r"""SPA: do metric and humans agree on which systems differ, and how surely?

    .. math:: SPA = 1 - \frac{1}{|pairs|} \sum_{i<j} |p^{human}_{ij} - p^{metric}_{ij}|

    where :math:`p_{ij}` is the one-sided paired permutation p-value that system i beats system j
    over the contexts both answered; metric and humans share the random signs.

    Parameters
    ----------
    scores, human : systems x contexts frames (`system_matrix`) with the same labels; a cell
        missing in either is left out of both.

    Returns
    -------
    float in [0, 1], higher is better. NaN with fewer than two systems. Values above about .9 are
    common when most systems differ clearly; compare metrics, not corpora.

    Reference: Thompson, Mathur, Deutsch and Khayrallah 2024, "Improving Statistical Significance
    in Human Evaluation of Automatic Metrics via Soft Pairwise Accuracy".

    >>> human = pd.DataFrame([[1.0, 2, 1, 2], [4, 5, 4, 4]])
    >>> soft_pairwise_accuracy(human, human), soft_pairwise_accuracy(-human, human) < 0.2
    (1.0, True)
    """
    if not (scores.index.equals(human.index) and scores.columns.equals(human.columns)):
        raise ValueError("scores and human ratings need the same systems and contexts")
    x, y = scores.to_numpy(float), human.to_numpy(float)
    if len(x) < 2:
        return float("nan")
    both = ~(np.isnan(x) | np.isnan(y))
    signs = np.random.default_rng(seed).integers(0, 2, (draws, x.shape[1])) * 2.0 - 1
    metric_p, human_p = (system_p_values(np.where(both, v, np.nan), signs) for v in (x, y))
    return float(1 - np.abs(metric_p - human_p).mean())


def system_p_values(values: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """One-sided paired permutation p, (count + 1) / (draws + 1), that system i beats j, i < j.

    `values` is systems x contexts (NaN allowed), `signs` (draws, contexts) of -1 and 1; the pairs
    are in the order of `np.triu_indices`.

    >>> signs = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> system_p_values(np.array([[2.0, 3], [1, 1]]), signs)
    array([0.4])
    """
    first, second = np.triu_indices(len(values), 1)
    difference = np.nan_to_num(values[first] - values[second])
    slack = 1e-9 * np.abs(difference).sum(axis=1)  # equal sums differ in the last bits
    beaten = signs @ difference.T >= difference.sum(axis=1) - slack
    return (beaten.sum(axis=0) + 1) / (len(signs) + 1)
