"""Is one metric better than another? Tests of the difference of two correlations."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from lib.analysis.correlation.coefficients import coefficient, undefined
from lib.analysis.correlation.draws import chunks
from lib.analysis.correlation.intervals import bootstrap_samples, complete_pairs, summarise
from lib.analysis.correlation.swaps import swapped_difference

ALTERNATIVES = ("two-sided", "greater", "less")


class Difference(NamedTuple):
    """Correlation of metric a, of metric b, their difference a - b, and its p-value."""

    a: float
    b: float
    difference: float
    p: float
    n: int
    clusters: int
    reason: str


def permutation_test(
    a: Sequence[float],
    b: Sequence[float],
    human: Sequence[float],
    method: str = "pearson",
    clusters: Sequence | None = None,
    alternative: str = "two-sided",
    draws: int = 10_000,
    seed: int = 0,
) -> Difference:
    r"""PERM-BOTH: are the two metrics exchangeable in their correlation with human ratings?

    Both metrics are standardised over the common items; each draw swaps a's and b's scores with
    probability 1/2 and recomputes :math:`\Delta = r(a, h) - r(b, h)`;

    .. math:: p = \frac{1 + \#\{\Delta_{draw} \ge \Delta\}}{1 + draws}

    for "greater" (a better than b), the mirror image for "less", absolute values for "two-sided".

    Parameters
    ----------
    a, b, human : (n,) values; an item missing in any of the three is left out of both metrics.
    clusters : (n,) dialog of each item: whole dialogs are swapped, the right unit for turns of
        shared dialogs. None swaps item by item as Deutsch et al. 2021 and mt-metrics-eval do,
        which rejects far too often when turns of a dialog resemble each other.
    method : higher must mean better for both; negate a distance or a perplexity first.

    Returns
    -------
    Difference. A constant metric, an infinite score, or fewer than two clusters give NaN with a
    reason. With c clusters no p below 2 / 2**c can occur (c = 6 systems: .03).

    Reference: Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization Evaluation
    Metrics Using Resampling Methods"; (count + 1) after Phipson and Smyth 2010.

    >>> human = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> good, poor = [1, 2, 4, 3, 5, 6, 8, 7], [3, 1, 4, 1, 5, 9, 2, 6]
    >>> test = permutation_test(good, poor, human, draws=999)
    >>> test.difference > 0, 0 < test.p <= 1
    (True, True)
    """
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative is one of {', '.join(ALTERNATIVES)}, not {alternative!r}")
    a, b, y, codes = complete_pairs(a, b, human, clusters=clusters)
    found = _observed(a, b, y, codes, method)
    if found.reason:
        return found
    draw = _swapped_differences(stats.zscore(a), stats.zscore(b), y, codes, method, draws, seed)
    return found._replace(p=_p_value(draw, found.difference, alternative))


def _observed(a, b, y, codes, method, smallest: int = 2) -> Difference:
    count = int(codes.max()) + 1 if len(codes) else 0
    r_a, r_b = coefficient(a, y, method), coefficient(b, y, method)
    reason = undefined(a, y) or undefined(b, y)  # z-scores need finite values whatever the method
    if not reason and count < smallest:
        reason = f"fewer than {smallest} clusters"
    return Difference(r_a.value, r_b.value, r_a.value - r_b.value, np.nan, len(y), count, reason)


def _swapped_differences(a, b, y, codes, method, draws, seed) -> np.ndarray:
    """(draws,) differences after swapping a and b in a random half of the clusters."""
    rng, count = np.random.default_rng(seed), int(codes.max()) + 1
    blocks = []
    for size in chunks(draws, 2 * count, method):
        bits = np.frombuffer(rng.bytes(size * -(-count // 8)), np.uint8).reshape(size, -1)
        swap = np.unpackbits(bits, axis=1, count=count)
        blocks.append(swapped_difference(a, b, y, codes, swap, method))
    return np.concatenate(blocks)


def _p_value(draws: np.ndarray, observed: float, alternative: str) -> float:
    draws = draws[~np.isnan(draws)]
    if alternative == "two-sided":
        draws, observed = np.abs(draws), abs(observed)
    elif alternative == "less":
        draws, observed = -draws, -observed
    # A draw that swaps all or nothing equals the observed value up to rounding.
    return float((np.sum(draws >= observed - 1e-12) + 1) / (len(draws) + 1))


def bootstrap_difference(
    a: Sequence[float],
    b: Sequence[float],
    human: Sequence[float],
    clusters: Sequence | None = None,
    method: str = "pearson",
    draws: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
):
    """Percentile interval of r(a, human) - r(b, human): the size of the difference.

    Both metrics are recomputed on the same draws of clusters. Read it beside `permutation_test`:
    two near copies can differ significantly by .004. Parameters and missing values as there;
    returns an `Interval` whose value is the difference.

    >>> human = np.arange(12.0)
    >>> interval = bootstrap_difference(human, -human, human, draws=200)
    >>> round(interval.value, 6), round(interval.low, 6)
    (2.0, 2.0)
    """
    a, b, y, codes = complete_pairs(a, b, human, clusters=clusters)
    found = _observed(a, b, y, codes, method)
    if found.reason:
        empty = summarise(found.difference, np.empty(0), found.n, found.clusters, confidence)
        return empty._replace(reason=found.reason)
    samples = [bootstrap_samples(x, y, codes, method, draws, seed) for x in (a, b)]
    return summarise(found.difference, samples[0] - samples[1], found.n, found.clusters, confidence)


def williams_test(
    a: Sequence[float],
    b: Sequence[float],
    human: Sequence[float],
    method: str = "pearson",
    alternative: str = "two-sided",
) -> Difference:
    r"""Williams' t for two dependent correlations that share the human ratings, with its sign.

    .. math:: t_{n-3} = (r_{ah} - r_{bh}) \sqrt{\frac{(n-1)(1+r_{ab})}
              {2\frac{n-1}{n-3} |R| + \bar r^2 (1-r_{ab})^3}}

    with :math:`|R| = 1 - r_{ah}^2 - r_{bh}^2 - r_{ab}^2 + 2 r_{ah} r_{bh} r_{ab}`,
    :math:`\bar r = (r_{ah} + r_{bh}) / 2`. "greater" asks whether a is better: a worse metric gives
    p > .5, never a small p. Assumes independent items (no nesting). Fewer than four items or an
    undefined coefficient give NaN with a reason; identical metrics give p = 1 (two-sided).

    Reference: Williams 1959; Steiger 1980; Graham and Baldwin 2014.

    >>> human = np.arange(10.0)
    >>> williams_test(human % 3, human + human % 2, human, alternative="greater").p > 0.5
    True
    """
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative is one of {', '.join(ALTERNATIVES)}, not {alternative!r}")
    a, b, y, codes = complete_pairs(a, b, human)
    found = _observed(a, b, y, codes, method, smallest=4)
    if found.reason:
        return found
    t = _williams_t(found.a, found.b, coefficient(a, b, method).value, found.n)
    tail = {"greater": t, "less": -t, "two-sided": abs(t)}[alternative]
    sides = 2 if alternative == "two-sided" else 1
    return found._replace(p=float(sides * stats.t.sf(tail, found.n - 3)))


def _williams_t(ah: float, bh: float, ab: float, n: int) -> float:
    determinant = 1 - ah**2 - bh**2 - ab**2 + 2 * ah * bh * ab
    spread = 2 * (n - 1) / (n - 3) * determinant + ((ah + bh) / 2) ** 2 * (1 - ab) ** 3
    if ah == bh:
        return 0.0
    return (ah - bh) * np.sqrt((n - 1) * (1 + ab) / max(spread, np.finfo(float).tiny))


def benjamini_hochberg(p: Sequence[float]) -> np.ndarray:
    """Benjamini-Hochberg adjusted p-values of one family of tests.

    The family is exactly the values passed; NaN (a test that could not be run) stays NaN and does
    not count. Reject at level q where the adjusted value is at most q.
    Reference: Benjamini and Hochberg 1995.

    >>> benjamini_hochberg([0.01, 0.04, float("nan"), 0.03])
    array([0.03, 0.04, nan, 0.04])
    """
    p = np.asarray(p, dtype=float)
    adjusted, known = np.full(p.shape, np.nan), ~np.isnan(p)
    if known.any():
        adjusted[known] = stats.false_discovery_control(p[known])
    return adjusted
