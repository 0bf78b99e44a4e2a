"""Pairwise agreement that gives credit for ties: acc23 per item, soft accuracy per system."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.analysis.resampling import complete_rows

MOST_PAIRS = 30_000_000  # about 2 GB


class PairwiseAccuracy(NamedTuple):
    """Share of pairs ordered (or tied) as humans do, the tie threshold, pairs and groups."""

    value: float
    threshold: float
    pairs: int
    groups: int
    reason: str


def pairwise_accuracy(
    scores, human, groups=None, threshold: float | None = None
) -> PairwiseAccuracy:
    r"""acc23: share of pairs on which metric and humans agree, ties included.

    .. math:: acc_{23} = \frac{C + T_{both}}{\text{all pairs}}, \qquad
              \text{metric tie: } |s_i - s_j| \le \epsilon

    averaged over groups. Kendall's tau-b rewards a metric for having few distinct values; acc23
    does not, and by calibrating :math:`\epsilon` a continuous metric may predict ties as well.

    Args:
        scores, human: (n,) values; items with a NaN are left out.
        groups: (n,) only pairs within a group count (responses to one context); None is one group.
        threshold: the metric's tie threshold. None picks the one with the highest accuracy on
            these data, the convention of mt-metrics-eval: the value is then a best case.

    Returns:
        PairwiseAccuracy with the value in [0, 1]; higher is better. No pair at all gives NaN with a
        reason; infinite scores tie with infinities of the same sign only. All-equal scores agree
        with the human ties only. More than 30 million pairs raise a ValueError (group the items).

    Reference: Deutsch, Foster and Freitag 2023, "Ties Matter".

    >>> pairwise_accuracy([0.1, 0.2, 0.9], [1, 1, 3])  # .1 apart is a tie, as humans say
    PairwiseAccuracy(value=1.0, threshold=0.1, pairs=3, groups=1, reason='')
    >>> round(pairwise_accuracy([0.1, 0.2, 0.9], [1, 1, 3], threshold=0).value, 4)
    0.6667
    """
    x, y, own = complete_rows(scores, human, clusters=groups)
    pairs = _pairs(own if groups is not None else np.zeros(len(x), int))
    if not pairs:
        return PairwiseAccuracy(np.nan, np.nan, 0, 0, "no group with two scored and rated items")
    first, second = np.concatenate(pairs, axis=1)
    weight = np.concatenate([np.full(p.shape[1], 1 / p.shape[1]) for p in pairs])
    gap = np.where(x[first] == x[second], 0.0, np.abs(x[first] - x[second]))
    order = np.argsort(gap, kind="stable")
    first, second, weight, gap = first[order], second[order], weight[order], gap[order]
    human_order = np.sign(y[first] - y[second])
    metric_order = (x[first] > x[second]).astype(int) - (x[first] < x[second])
    # Accuracy at a threshold: human ties up to it, agreements in order beyond it.
    within = np.cumsum(weight * (human_order == 0))
    beyond = np.cumsum(weight * (human_order == metric_order))
    accuracy = np.r_[0.0, within] + beyond[-1] - np.r_[0.0, beyond]
    if threshold is None:
        ends = np.searchsorted(gap, np.unique(np.r_[0.0, gap]), side="right")
        best = ends[np.nanargmax(accuracy[ends].round(12))]
        threshold = gap[best - 1] if best else 0.0
    value = accuracy[np.searchsorted(gap, threshold, side="right")] / len(pairs)
    return PairwiseAccuracy(float(value), float(threshold), len(first), len(pairs), "")


def _pairs(groups: np.ndarray) -> list[np.ndarray]:
    """For each group of two items or more, (2, pairs) positions of both items of every pair."""
    members = [rows for rows in pd.Series(groups).groupby(groups).indices.values() if len(rows) > 1]
    total = sum(len(rows) * (len(rows) - 1) // 2 for rows in members)
    if total > MOST_PAIRS:
        raise ValueError(f"{total:,} pairs: pass `groups` (the context or dialog of each item)")
    return [rows[np.stack(np.triu_indices(len(rows), 1))] for rows in members]


def soft_pairwise_accuracy(
    scores: pd.DataFrame, human: pd.DataFrame, resamples: int = 1000, seed: int = 0
) -> float:
    r"""SPA: do metric and humans agree on which systems differ, and how surely?

    .. math:: SPA = 1 - \frac{1}{|pairs|} \sum_{i<j} |p^{human}_{ij} - p^{metric}_{ij}|

    where :math:`p_{ij}` is the one-sided paired permutation p-value that system i beats system j
    over the contexts both answered; metric and humans share the random signs.

    Args:
        scores, human: systems x contexts frames (`system_matrix`) with the same labels; a cell
            missing in either is left out of both.

    Returns:
        float in [0, 1], higher is better. NaN with fewer than two systems. Values above about .9
        are common when most systems differ clearly; compare metrics, not corpora.

    Reference: Thompson, Mathur, Deutsch and Khayrallah 2024, "Improving Statistical Significance
    in Human Evaluation of Automatic Metrics via Soft Pairwise Accuracy".

    >>> human = pd.DataFrame([[1.0, 2, 1, 2], [4, 5, 4, 4]])
    >>> soft_pairwise_accuracy(human, human), soft_pairwise_accuracy(-human, human) < 0.2
    (1.0, True)
    """
    if not (scores.index.equals(human.index) and scores.columns.equals(human.columns)):
        raise ValueError("scores and human ratings need the same systems and contexts")
    if len(scores) < 2:
        return float("nan")
    both = scores.notna() & human.notna()
    x, y = (frame.where(both).to_numpy(float) for frame in (scores, human))
    signs = np.random.default_rng(seed).integers(0, 2, (resamples, x.shape[1])) * 2.0 - 1
    return float(1 - np.abs(_system_p_values(x, signs) - _system_p_values(y, signs)).mean())


def _system_p_values(values: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """One-sided paired permutation p, (count + 1) / (resamples + 1), that system i beats j, i < j.

    `values` is systems x contexts (NaN allowed), `signs` (resamples, contexts) of -1 and 1.
    """
    first, second = np.triu_indices(len(values), 1)
    difference = np.nan_to_num(values[first] - values[second])
    slack = 1e-9 * np.abs(difference).sum(axis=1)  # equal sums differ in the last bits
    beaten = signs @ difference.T >= difference.sum(axis=1) - slack
    return (beaten.sum(axis=0) + 1) / (len(signs) + 1)
