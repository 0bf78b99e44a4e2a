"""Split the variance of a score over the hierarchy, by exact restricted maximum likelihood.

A model with nested random intercepts has a covariance of blocks inside blocks. Each block is its
children plus a constant, so the likelihood of all turns folds up level by level with the
Sherman-Morrison formula, in time proportional to the number of dialogs. The tests compare it with
`statsmodels` MixedLM, which is general, but works with dense matrices: it needs seconds for two
hundred dialogs and cannot hold the three thousand of notebook 10.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, stats
from threadpoolctl import threadpool_limits

from lib.data import DataError
from lib.data.turn_table import LEVELS

#: Least share of the variance left to the units, which keeps the covariance invertible.
SMALLEST = 1e-8
#: Largest fraction of the rest that one level may take during the search: a fraction of exactly 1
#: leaves nothing to the finer levels, and the search never comes back.
LARGEST = 1 - 1e-6
#: How far the profile likelihood may fall within a 95 % interval.
DROP = stats.chi2.ppf(0.95, 1) / 2


class Nest(NamedTuple):
    """Sums per finest group, and the way up from each level to the next coarser one.

    Attributes:
        parents: parents[k][g] is the group of level k - 1 that group g of level k belongs to
            (zeros for the coarsest level).
        sizes, sums, squares: per finest group the number of scores, their sum and sum of squares
            (scores centered on the grand mean).
    """

    parents: list[np.ndarray]
    sizes: np.ndarray
    sums: np.ndarray
    squares: np.ndarray


def separable_levels(table: pd.DataFrame, levels=LEVELS) -> tuple[list[str], dict[str, str]]:
    """Find the levels whose variance can be estimated, and say why the others cannot.

    A level needs two groups or more, and somewhere two groups inside one group of the level
    above (one agent per system cannot be told apart from the system); the finest level needs a
    group with two scores. Names are read within the level above: dialog "1" of two agents are two
    dialogs.

    >>> turns = pd.DataFrame({"system": list("aabb"), "agent": list("aabb"),
    ...                       "dialog": list("1212")})
    >>> separable_levels(turns)
    (['system'], {'agent': 'one agent per system', 'dialog': 'one score per dialog'})
    """
    kept: list[str] = []
    left_out: dict[str, str] = {}
    above = 1
    for level in levels:
        groups = _paths(table, [*kept, level]).nunique()
        if groups == above:
            left_out[level] = f"one {level} per {kept[-1] if kept else 'corpus'}"
        elif groups == len(table):
            left_out[level] = f"one score per {level}"
        else:
            kept.append(level)
            above = groups
    return kept, left_out


def nest_groups(table: pd.DataFrame, score: pd.Series, levels: Sequence[str]) -> Nest:
    """Reduce scores to what the likelihood needs: sums per finest group of separable levels.

    >>> turns = pd.DataFrame({"system": list("aabb")})
    >>> nest_groups(turns, pd.Series([1.0, 3.0, 5.0, 7.0]), ["system"]).sums.tolist()
    [-4.0, 4.0]
    """
    paths = pd.DataFrame({k: _paths(table, levels[: k + 1]) for k in range(len(levels))})
    above = paths.shift(1, axis="columns", fill_value=0)
    parents = [above[k].groupby(paths[k]).first().to_numpy() for k in paths]
    centered, finest = score.to_numpy(float) - score.mean(), paths.iloc[:, -1]
    sums = (np.bincount(finest, weights) for weights in (None, centered, centered**2))
    return Nest(parents, *(total.astype(float) for total in sums))


def _paths(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Number the groups in order of appearance."""
    return table.groupby(list(columns), sort=False, dropna=False).ngroup()


def variance_split(table: pd.DataFrame, score, unit="turn", levels=LEVELS) -> pd.DataFrame:
    """Split the variance of a score over system, agent, dialog and turn.

    Section 3 made measurable. y = mu + u_system + u_agent + u_dialog + e_turn with independent
    normal effects; each level's share is its variance over the total. Agents differ in a trait
    and keep it: a large share of agents (and systems). A state moves within dialogs: a large share
    of turns.

    Args:
        table: turn table (or dialog table with unit="dialog" and levels above it); used are those
            of its columns system, agent, dialog that can be told apart.
        score: column name or Series on the index of `table`; NaN rows are left out and counted.
        unit: what one row is; names the residual level.
        levels: columns of the nested levels, coarsest first.

    Returns:
        DataFrame indexed by level, `unit` last: groups, variance, share, share_low, share_high
        (95 % profile likelihood); icc, icc_low, icc_high, the correlation of two units that share
        this level and no finer one (the shares of this level and all above added up; NaN for the
        unit); note, why a level of the hierarchy was left out. The rows used and dropped are in
        `.attrs["rows"]`, `.attrs["dropped"]`.

    Raises:
        DataError: if nothing can be split (one system, one agent, one dialog), or the score is
            constant or somewhere infinite.

    Reference: Giorgi et al. 2023, section 3. Shrout and Fleiss 1979, Intraclass correlations.
    Self and Liang 1987 on intervals that touch 0: conservative.

    >>> rng = np.random.default_rng(0)
    >>> turns = pd.DataFrame({"agent": np.repeat(range(20), 30), "dialog": np.arange(600) // 5})
    >>> turns["score"] = rng.normal(0, 2, 20)[turns["agent"]] + rng.normal(0, 1, 600)
    >>> variance_split(turns, "score")["share"].round(2).to_dict()
    {'agent': 0.75, 'dialog': 0.0, 'turn': 0.25}
    """
    values = table[score] if isinstance(score, str) else score
    used, values = table[values.notna()], values.dropna().astype(float)
    asked = [level for level in levels if level in table]
    chosen, left_out = separable_levels(used, asked)
    if not chosen:
        reasons = "; ".join(f"{level}: {why}" for level, why in left_out.items())
        problem = f"the variance of {len(values)} scores cannot be split ({reasons})"
        fix = "give scores of several agents or dialogs, with more than one score in each"
        raise DataError(problem, fix=fix)
    if values.nunique() < 2 or np.isinf(values).any():
        raise DataError("the score is the same in every row, or infinite: there is no variance")
    groups = nest_groups(used, values, chosen)
    # The optimiser's matrices are 3 x 3: threads would spend their time waiting for each other.
    with threadpool_limits(1):
        split = _estimates(groups, [*chosen, unit], len(values)).reindex([*asked, unit])
    reasons = {level: f"not separable: {why}" for level, why in left_out.items()}
    split["note"] = [reasons.get(level, "") for level in split.index]
    split.attrs = {"rows": len(values), "dropped": len(table) - len(values)}
    return split


def _estimates(groups: Nest, names: list[str], units: int) -> pd.DataFrame:
    levels = len(names) - 1
    # Also one start at each corner: the likelihood of a trait is steep near its own corner.
    starts = [np.full(levels, start) for start in (0.1, 0.5, 0.9)]
    starts += [np.where(np.arange(levels) == k, 0.95, 0.05) for k in range(levels)]
    shares, best = _maximise(groups, _sticks, starts)
    s, t, q, _ = _fold(shares, groups)
    total = (q - t**2 / s) / (groups.sizes.sum() - 1)
    counts = [*map(len, groups.parents), units]
    split = pd.DataFrame({"groups": counts, "variance": shares * total, "share": shares}, names)
    split = split.rename_axis("level")
    own = [_interval(groups, [k], shares, best) for k in range(levels + 1)]
    split[["share_low", "share_high"]] = own
    split["icc"] = [*np.cumsum(shares)[:-1], np.nan]
    above = [_interval(groups, list(range(k + 1)), shares, best) for k in range(levels)]
    split[["icc_low", "icc_high"]] = [*above, (np.nan, np.nan)]
    return split


def restricted_log_likelihood(shares: np.ndarray, groups: Nest) -> float:
    """Restricted log-likelihood at given shares, total variance and mean profiled out.

    `shares` (levels + 1,) of the levels, coarsest first, and of the units; they add up to 1.
    """
    s, t, q, log_determinant = _fold(shares, groups)
    free = groups.sizes.sum() - 1
    spread = np.log(2 * np.pi * (q - t**2 / s) / free) + 1
    return float(-0.5 * (free * spread + log_determinant + np.log(s)))


def _fold(shares: np.ndarray, groups: Nest) -> tuple[float, float, float, float]:
    """S = 1'V^-1 1, T = 1'V^-1 y, Q = y'V^-1 y and L = log|V| of all scores, by levels.

    The covariance of a group is V + s 11', with V the block-diagonal covariance of its parts and
    s the share of its level:

        S <- S/(1 + sS),  T <- T/(1 + sS),  Q <- Q - sT^2/(1 + sS),  L <- L + log(1 + sS).
    """
    *levels, unit = shares
    s_sum, t_sum = groups.sizes / unit, groups.sums / unit
    q_sum, l_sum = groups.squares.sum() / unit, groups.sizes.sum() * np.log(unit)
    for share, parent in zip(reversed(levels), reversed(groups.parents), strict=True):
        grown = 1 + share * s_sum
        q_sum -= (share * t_sum**2 / grown).sum()
        l_sum += np.log(grown).sum()
        s_sum, t_sum = np.bincount(parent, s_sum / grown), np.bincount(parent, t_sum / grown)
    return s_sum.sum(), t_sum.sum(), q_sum, l_sum


def _sticks(fractions: np.ndarray) -> np.ndarray:
    """Break a stick of length 1 into len(fractions) + 1 pieces."""
    left = np.concatenate([[1.0], np.cumprod(1 - fractions)])
    return left * np.concatenate([fractions, [1.0]])


def _fractions(pieces: np.ndarray) -> np.ndarray:
    """Invert `_sticks`: the fraction of what is left that each piece takes."""
    left = pieces[::-1].cumsum()[::-1][:-1]
    return np.clip(pieces[:-1] / np.maximum(left, SMALLEST), 0, 1)


def _maximise(groups: Nest, shares: Callable, starts: Sequence) -> tuple[np.ndarray, float]:
    """Maximise the likelihood over fractions in [0, 1] that `shares` turns into shares."""

    def cost(fractions: np.ndarray) -> float:
        least = np.r_[np.zeros(len(groups.parents)), SMALLEST]
        return -restricted_log_likelihood(np.maximum(shares(fractions), least), groups)

    if not len(starts[0]):
        return shares(starts[0]), -cost(starts[0])
    bounds = [(0, LARGEST)] * len(starts[0])
    runs = [optimize.minimize(cost, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    best = min(runs, key=lambda run: run.fun)
    return shares(best.x), -best.fun


def _interval(groups: Nest, inside: list[int], shares, best: float) -> tuple[float, float]:
    """Values of a share (or of a sum of shares) whose profile likelihood is within `DROP`."""
    outside = [k for k in range(len(shares)) if k not in inside]
    start = np.concatenate([_fractions(shares[inside]), _fractions(shares[outside])])
    starts = [start, np.full(len(start), 0.5)]  # from one alone the search may end half way

    def excess(value: float) -> float:
        def fixed(fractions: np.ndarray) -> np.ndarray:
            result = np.empty(len(shares))
            result[inside] = value * _sticks(fractions[: len(inside) - 1])
            result[outside] = (1 - value) * _sticks(fractions[len(inside) - 1 :])
            return result

        return best - _maximise(groups, fixed, starts)[1] - DROP

    edges = (SMALLEST, 1 - SMALLEST)
    estimate = float(np.clip(shares[inside].sum(), *edges))
    low = optimize.brentq(excess, edges[0], estimate, xtol=1e-4) if excess(edges[0]) > 0 else 0.0
    high = optimize.brentq(excess, estimate, edges[1], xtol=1e-4) if excess(edges[1]) > 0 else 1.0
    return low, high
