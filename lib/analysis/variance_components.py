"""Split the variance of a score over the hierarchy, by exact restricted maximum likelihood.

A model with nested random intercepts has a covariance of blocks inside blocks. Each block is its
children plus a constant, so the likelihood of all turns folds up level by level with the
Sherman-Morrison formula, in time proportional to the number of dialogs. The tests compare it with
`statsmodels` MixedLM, which is general, but works with dense matrices: it needs seconds for two
hundred dialogs and cannot hold the three thousand of notebook 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import optimize, stats
from threadpoolctl import threadpool_limits

from lib.data.dialogues import DataError
from lib.data.hierarchy import LEVELS, Nest, nest, separable_levels

SMALLEST = 1e-8
"""Least share of the variance left to the units, which keeps the covariance invertible."""
LARGEST = 1 - 1e-6
"""Largest fraction of the remaining variance that one level may take during the search."""


class ConvergenceError(RuntimeError):
    """The likelihood could not be maximised; the message says on what data and what to try."""


def variance_split(
    table: pd.DataFrame,
    score: str | pd.Series,
    levels: Sequence[str] | None = None,
    *,
    unit: str = "turn",
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Split the variance of a score over system, agent, dialog and turn.

    Section 3 made measurable. y = mu + u_system + u_agent + u_dialog + e_turn with independent
    normal effects; each level's share is its variance over the total. Agents differ in a trait
    and keep it: a large share of agents (and systems). A state moves within dialogs: a large share
    of turns.

    Parameters
    ----------
    table : DataFrame
        Turn table (or dialog table with unit="dialog" and levels above it).
    score : column name or Series on the index of `table`
        NaN rows are left out and counted.
    levels : sequence of str, coarsest first, optional
        By default those of system, agent, dialog that can be told apart in this table.
    unit : str
        What one row is; names the residual level.
    confidence : float
        Of the profile-likelihood intervals.

    Returns
    -------
    DataFrame indexed by level, `unit` last
        groups, variance, share, share_low, share_high; icc, icc_low, icc_high, the correlation of
        two units that share this level and no finer one (the shares of this level and all above
        added up; NaN for the unit); note, why a level of the hierarchy was left out. The rows
        used and dropped are in `.attrs["rows"]`, `.attrs["dropped"]`.

    Raises
    ------
    DataError
        If nothing can be split (one system, one agent, one dialog) or the score is constant.
    ConvergenceError
        If the optimiser fails.

    References
    ----------
    Giorgi et al. (2023), section 3. Shrout and Fleiss (1979), Intraclass correlations,
    Psychological Bulletin 86(2). Self and Liang (1987) on intervals that touch 0: conservative.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> turns = pd.DataFrame({"agent": np.repeat(range(20), 30), "dialog": np.arange(600) // 5})
    >>> turns["score"] = draw.normal(0, 2, 20)[turns["agent"]] + draw.normal(0, 1, 600)
    >>> variance_split(turns, "score")["share"].round(2).to_dict()
    {'agent': 0.75, 'dialog': 0.0, 'turn': 0.25}
    """
    values = table[score] if isinstance(score, str) else score
    used = table.loc[values.notna()]
    values = values[values.notna()].astype(float)
    if levels is None:
        asked = [level for level in LEVELS if level in table]
        chosen, left_out = separable_levels(used, asked)
    else:
        asked = chosen = list(levels)
        left_out = {}
    _check(chosen, left_out, values)
    groups = nest(used, values, chosen)
    # The optimiser's matrices are 3 x 3: threads would spend their time waiting for each other.
    with threadpool_limits(1):
        rows = _rows(groups, [*chosen, unit], len(values), confidence)
    split = pd.DataFrame(rows).set_index("level")
    split["note"] = ""
    for level, why in left_out.items():
        split.loc[level, "note"] = f"not separable: {why}"
    split = split.reindex([*asked, unit])
    split.attrs = {"rows": len(values), "dropped": len(table) - len(values)}
    return split


def _rows(groups: Nest, names: list[str], units: int, confidence: float) -> list[dict]:
    levels = len(names) - 1
    # Also one start at each corner: the likelihood of a trait is steep near its own corner.
    starts = [np.full(levels, start) for start in (0.1, 0.5, 0.9)]
    starts += [np.where(np.arange(levels) == k, 0.95, 0.05) for k in range(levels)]
    shares, best = _maximise(groups, _sticks, starts)
    total = _total_variance(shares, groups)
    if not np.isfinite(total):
        raise _not_maximised(groups)
    drop = stats.chi2.ppf(confidence, 1) / 2
    rows = []
    for k, level in enumerate(names):
        low, high = _interval(groups, [k], shares, best, drop)
        row = {"level": level, "groups": [*groups.groups, units][k]}
        row |= {"variance": shares[k] * total, "share": shares[k]}
        row |= {"share_low": low, "share_high": high}
        if k < levels:
            row["icc"] = shares[: k + 1].sum()
            row["icc_low"], row["icc_high"] = _interval(groups, range(k + 1), shares, best, drop)
        rows.append(row)
    return rows


def _check(chosen: list[str], left_out: dict[str, str], values: pd.Series) -> None:
    if not chosen:
        reasons = "; ".join(f"{level}: {why}" for level, why in left_out.items())
        raise DataError(
            f"the variance of {len(values)} scores cannot be split ({reasons})",
            fix="give scores of several agents or dialogs, with more than one score in each",
        )
    if values.nunique() < 2:
        raise DataError("the score is the same in every row: there is no variance to split")


def log_likelihood(shares: np.ndarray, groups: Nest) -> float:
    """Restricted log-likelihood at given shares, total variance and mean profiled out.

    The covariance of a group is V + s 11', with V the block-diagonal covariance of its parts and
    s the share of its level; with S = 1'V^-1 1, T = 1'V^-1 y, Q = y'V^-1 y, L = log|V|

        S <- S/(1 + sS),  T <- T/(1 + sS),  Q <- Q - sT^2/(1 + sS),  L <- L + log(1 + sS).

    Parameters
    ----------
    shares : array, shape (levels + 1,)
        Of the levels, coarsest first, and of the units; they add up to 1.
    groups : Nest
    """
    *levels, unit = shares
    s_sum, t_sum = groups.sizes / unit, groups.sums / unit
    q_sum, l_sum = groups.squares.sum() / unit, groups.sizes.sum() * np.log(unit)
    for share, parent in zip(reversed(levels), reversed(groups.parents), strict=True):
        grown = 1 + share * s_sum
        q_sum -= (share * t_sum**2 / grown).sum()
        l_sum += np.log(grown).sum()
        s_sum, t_sum = np.bincount(parent, s_sum / grown), np.bincount(parent, t_sum / grown)
    free = groups.sizes.sum() - 1
    residual = q_sum - t_sum.sum() ** 2 / s_sum.sum()
    spread = np.log(2 * np.pi * residual / free) + 1
    return float(-0.5 * (free * spread + l_sum + np.log(s_sum.sum())))


def _total_variance(shares: np.ndarray, groups: Nest) -> float:
    # Invert the profiled likelihood at these shares for the total variance.
    *levels, unit = shares
    s_sum, t_sum, q_sum = groups.sizes / unit, groups.sums / unit, groups.squares.sum() / unit
    for share, parent in zip(reversed(levels), reversed(groups.parents), strict=True):
        grown = 1 + share * s_sum
        q_sum -= (share * t_sum**2 / grown).sum()
        s_sum, t_sum = np.bincount(parent, s_sum / grown), np.bincount(parent, t_sum / grown)
    return float((q_sum - t_sum.sum() ** 2 / s_sum.sum()) / (groups.sizes.sum() - 1))


def _sticks(fractions: np.ndarray) -> np.ndarray:
    """Break a stick of length 1 into len(fractions) + 1 pieces."""
    left = np.concatenate([[1.0], np.cumprod(1 - fractions)])
    return left * np.concatenate([fractions, [1.0]])


def _fractions(pieces: np.ndarray) -> np.ndarray:
    """Invert `_sticks`: the fraction of what is left that each piece takes."""
    left = pieces[::-1].cumsum()[::-1][:-1]
    return np.clip(pieces[:-1] / np.maximum(left, SMALLEST), 0, 1)


def _maximise(
    groups: Nest, shares: Callable[[np.ndarray], np.ndarray], starts: Sequence[np.ndarray]
) -> tuple[np.ndarray, float]:
    """Maximise the likelihood over fractions in [0, 1] that `shares` turns into shares."""

    def cost(fractions: np.ndarray) -> float:
        guarded = np.maximum(shares(fractions), 0)
        guarded[-1] = max(guarded[-1], SMALLEST)
        return -log_likelihood(guarded, groups)

    free = len(starts[0])
    if free == 0:
        return shares(starts[0]), -cost(starts[0])
    # A fraction of exactly 1 leaves nothing to the finer levels, and the search never comes back.
    bounds = [(0, LARGEST)] * free
    runs = [optimize.minimize(cost, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    finished = [run for run in runs if np.isfinite(run.fun)]
    if not finished:
        raise _not_maximised(groups)
    best = min(finished, key=lambda run: run.fun)
    return shares(best.x), -best.fun


def _not_maximised(groups: Nest) -> ConvergenceError:
    return ConvergenceError(
        f"the likelihood of {int(groups.sizes.sum())} scores in {groups.groups} groups of "
        f"{groups.levels} could not be maximised: look for extreme scores, or leave out the "
        "level with the fewest groups"
    )


def _interval(
    groups: Nest, inside: Sequence[int], shares: np.ndarray, best: float, drop: float
) -> tuple[float, float]:
    """Values of a share (or of a sum of shares) whose profile likelihood is within `drop`."""
    inside = list(inside)
    outside = [k for k in range(len(shares)) if k not in inside]
    start = np.concatenate([_fractions(shares[inside]), _fractions(shares[outside])])

    def excess(value: float) -> float:
        def fixed(fractions: np.ndarray) -> np.ndarray:
            result = np.empty(len(shares))
            result[inside] = value * _sticks(fractions[: len(inside) - 1])
            result[outside] = (1 - value) * _sticks(fractions[len(inside) - 1 :])
            return result

        return best - _maximise(groups, fixed, [start])[1] - drop

    edges = (SMALLEST, 1 - SMALLEST)
    estimate = float(np.clip(shares[inside].sum(), *edges))
    low = optimize.brentq(excess, edges[0], estimate, xtol=1e-4) if excess(edges[0]) > 0 else 0.0
    high = optimize.brentq(excess, estimate, edges[1], xtol=1e-4) if excess(edges[1]) > 0 else 1.0
    return low, high
