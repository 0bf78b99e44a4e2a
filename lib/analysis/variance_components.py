"""Split the variance of a score over the hierarchy, by exact restricted maximum likelihood.

A model with nested random intercepts has a covariance of blocks inside blocks. Each block is its
children plus a constant, so the likelihood of all turns is computed level by level with the
Sherman-Morrison formula, in time proportional to the number of dialogs. The tests compare it with
`statsmodels` MixedLM, which is general, but works with dense matrices: it needs seconds for two
hundred dialogs, and the three thousand of notebook 11 do not fit into memory.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import linalg, optimize, stats
from threadpoolctl import threadpool_limits

from lib.data import DataError
from lib.data.turn_table import LEVELS

#: Smallest share of the variance of the units, which keeps the covariance invertible.
MIN_SHARE = 1e-8
#: Largest fraction of the remaining variance for one level during the search: with a fraction of
#: exactly 1 the finer levels have no variance, and the search cannot leave that corner.
MAX_FRACTION = 1 - 1e-6
#: How far the profile likelihood may fall within a 95 % interval.
MAX_DROP = stats.chi2.ppf(0.95, 1) / 2


class Nest(NamedTuple):
    """Sums per finest group, and the parent of each group at the next coarser level.

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


def separable_levels(
    table: pd.DataFrame, levels=LEVELS
) -> tuple[list[str], dict[str, str]]:
    """Find the levels whose variance can be estimated, and the reason for each other one.

    A level needs two groups or more, and somewhere two groups inside one group of the level
    above (one agent per system cannot be distinguished from the system); the finest level needs a
    group with two scores. Names are read within the level above: dialog "1" of two agents are two
    dialogs.

    >>> turns = pd.DataFrame({"system": list("aabb"), "agent": list("aabb"),
    ...                       "dialog": list("1212")})
    >>> separable_levels(turns)
    (['system'], {'agent': 'one agent per system', 'dialog': 'one score per dialog'})
    """
    separable: list[str] = []
    reasons: dict[str, str] = {}
    n_above = 1
    for level in levels:
        n_groups = _number_groups(table, [*separable, level]).nunique()
        if n_groups == n_above:
            reasons[level] = (
                f"one {level} per {separable[-1] if separable else 'corpus'}"
            )
        elif n_groups == len(table):
            reasons[level] = f"one score per {level}"
        else:
            separable.append(level)
            n_above = n_groups
    return separable, reasons


def nest_groups(table: pd.DataFrame, score: pd.Series, levels: Sequence[str]) -> Nest:
    """Reduce scores to what the likelihood needs: sums per finest group of separable levels.

    >>> turns = pd.DataFrame({"system": list("aabb")})
    >>> nest_groups(turns, pd.Series([1.0, 3.0, 5.0, 7.0]), ["system"]).sums.tolist()
    [-4.0, 4.0]
    """
    parents = []
    above = np.zeros(len(table), int)
    for k in range(len(levels)):
        groups = _number_groups(table, levels[: k + 1])
        parents.append(pd.Series(above).groupby(groups.to_numpy()).first().to_numpy())
        above = groups.to_numpy()
    centered = score.to_numpy(float) - score.mean()
    sizes = np.bincount(above).astype(float)
    return Nest(
        parents, sizes, np.bincount(above, centered), np.bincount(above, centered**2)
    )


def _number_groups(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Number the groups in order of appearance."""
    return table.groupby(list(columns), sort=False, dropna=False).ngroup()


def variance_split(
    table: pd.DataFrame, score, unit="turn", levels=LEVELS
) -> pd.DataFrame:
    """Split the variance of a score over system, agent, dialog and turn.

    Section 3 made measurable. y = mu + u_system + u_agent + u_dialog + e_turn with independent
    normal effects; each level's share is its variance over the total. Agents differ in a trait
    and keep it: a large share of agents (and systems). A state moves within dialogs: a large share
    of turns.

    Args:
        table: turn table (or dialog table with unit="dialog" and levels above it) with some of
            the columns system, agent, dialog; levels that cannot be separated are left out.
        score: column name or Series on the index of `table`; NaN rows are left out and counted.
        unit: what one row is; names the residual level.
        levels: columns of the nested levels, coarsest first.

    Returns:
        DataFrame indexed by level, `unit` last: groups, variance, share, share_low, share_high
        (95 % profile likelihood); icc, icc_low, icc_high, the correlation of two units that share
        this level and no finer one (the sum of the shares of this level and all above; NaN for the
        unit); note, the reason why a level of the hierarchy was left out. The numbers of rows used
        and dropped are in `.attrs["rows"]`, `.attrs["dropped"]`.

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
    scores = table[score] if isinstance(score, str) else score
    rows = table[scores.notna()]
    scores = scores.dropna().astype(float)
    levels = [level for level in levels if level in table]
    separable, reasons = separable_levels(rows, levels)
    if not separable:
        reasons = "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
        problem = f"the variance of {len(scores)} scores cannot be split ({reasons})"
        fix = (
            "give scores of several agents or dialogs, with more than one score in each"
        )
        raise DataError(problem, fix=fix)
    if scores.nunique() < 2 or np.isinf(scores).any():
        raise DataError(
            "the score is the same in every row, or infinite: there is no variance"
        )
    # The optimiser's matrices are 3 x 3: threads would spend their time waiting for each other.
    with threadpool_limits(1):
        split = _estimates(nest_groups(rows, scores, separable), [*separable, unit])
    split = split.reindex([*levels, unit])
    split["note"] = ""
    for level, reason in reasons.items():
        split.loc[level, "note"] = f"not separable: {reason}"
    split.attrs = {"rows": len(scores), "dropped": len(table) - len(scores)}
    return split


class RaterVariance(NamedTuple):
    """How much raters disagree about systems, in squared points of the scale.

    Attributes:
        rater_by_system: variance of rater x system; not below 0.
        low, high: its 95 % interval.
        rating: variance of a single rating around its item, its rater, and their taste for the
            system.
        p: of the F-test that the variance of rater x system is 0.
        raters, ratings: how many there are.
    """

    rater_by_system: float
    low: float
    high: float
    rating: float
    p: float
    raters: int
    ratings: int


def rater_variance(ratings: pd.DataFrame) -> RaterVariance:
    r"""Variance of rater x system, where raters are named and rate items of several systems.

    y = item + rater + (rater x system) + e with normal effects of rater x system and e. An item
    (a reply) holds its system and dialog, and a rater's leniency falls on all systems alike; what
    is left is that some raters prefer one system. More dialogs do not average it away, only more
    raters do. Least squares without and with rater x system give the F of the difference; the
    estimate is Henderson's third method.

    .. math:: \hat\sigma^2_{rs} = \hat\sigma^2_e (F - 1) / n_0

    with n_0 the mean number of ratings per degree of freedom. The interval inverts the F
    distribution, which is exact where every rater rates equally many items of every system.

    Args:
        ratings: one row per rating, with the columns item, system, rater and rating.

    Raises:
        DataError: for a missing value, or where rater x system cannot be estimated: one rater or
            one system, or no item with two raters.

    Reference: Searle, Casella and McCulloch 1992, Variance Components, sections 3.6 and 5.5.

    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"item": np.repeat(range(60), 3), "rater": np.tile(list("abc"), 60)})
    >>> table["system"] = table["item"] % 4
    >>> table["rating"] = rng.normal(size=60)[table["item"]] + rng.normal(size=180)
    >>> taste = rng.normal(scale=0.8, size=12)[table.groupby(["rater", "system"]).ngroup()]
    >>> rater_variance(table.assign(rating=table["rating"] + taste)).p < 0.001
    True
    """
    columns = ["item", "system", "rater", "rating"]
    if ratings[columns].isna().any(axis=None):
        raise DataError("a rating, or the item, system or rater of one, is missing")
    rating = ratings["rating"].to_numpy(float)
    main_effects = pd.get_dummies(ratings[["item", "rater"]].astype(str), dtype=float)
    pairs = _number_groups(ratings, ["rater", "system"])
    interaction = pd.get_dummies(pairs, dtype=float).to_numpy()
    basis = linalg.orth(main_effects.to_numpy())
    # What items and raters leave of the ratings, and of the columns of rater x system.
    rest = rating - basis @ (basis.T @ rating)
    interaction = interaction - basis @ (basis.T @ interaction)
    interaction_basis = linalg.orth(interaction, rcond=1e-8)
    df = interaction_basis.shape[1]
    df_rest = len(rating) - basis.shape[1] - df
    if df < 1 or df_rest < 1:
        raise DataError(
            "rater x system needs two raters and two systems, and items with two raters or more"
        )
    explained = np.sum((interaction_basis.T @ rest) ** 2)
    mean_square = (rest @ rest - explained) / df_rest
    per_df = np.sum(interaction**2) / df
    f = explained / df / mean_square
    low_f, high_f = stats.f.ppf([0.025, 0.975], df, df_rest)
    estimates = mean_square * (f / np.array([1.0, high_f, low_f]) - 1) / per_df
    estimate, low, high = np.maximum(estimates, 0.0).tolist()
    return RaterVariance(
        rater_by_system=estimate,
        low=low,
        high=high,
        rating=float(mean_square),
        p=float(stats.f.sf(f, df, df_rest)),
        raters=ratings["rater"].nunique(),
        ratings=len(ratings),
    )


def _estimates(nest: Nest, names: list[str]) -> pd.DataFrame:
    """The table of `variance_split` for separable levels; the last name is that of the unit."""
    n_levels = len(nest.parents)
    # Also one start near each corner, where one level has nearly all the variance: the likelihood
    # of a trait is steep there.
    starts = [np.full(n_levels, fraction) for fraction in (0.1, 0.5, 0.9)]
    starts += list(np.where(np.eye(n_levels), 0.95, 0.05))
    shares, max_likelihood = _maximise(nest, _shares, starts)
    s, t, q, _ = _fold(shares, nest)
    n_units = int(nest.sizes.sum())
    variance = (q - t**2 / s) / (n_units - 1)
    rows = []
    for k, share in enumerate(shares):
        row = {"groups": n_units, "variance": share * variance, "share": share}
        row["share_low"], row["share_high"] = _profile_interval(
            nest, [k], shares, max_likelihood=max_likelihood
        )
        if k < n_levels:
            row["groups"] = len(nest.parents[k])
            row["icc"] = shares[: k + 1].sum()
            coarsest_to_k = list(range(k + 1))
            row["icc_low"], row["icc_high"] = _profile_interval(
                nest, coarsest_to_k, shares, max_likelihood=max_likelihood
            )
        rows.append(row)
    return pd.DataFrame(rows, names).rename_axis("level")


def restricted_log_likelihood(shares: np.ndarray, nest: Nest) -> float:
    """Restricted log-likelihood at given shares, total variance and mean profiled out.

    Args:
        shares: (levels + 1,) the share of the variance of each level, coarsest first, and last that
            of the single scores. They add up to 1, and the last is above 0.
        nest: the scores, summed by group. Infinite likelihood if all are equal.
    """
    s, t, q, log_determinant = _fold(shares, nest)
    df = nest.sizes.sum() - 1
    log_variance = np.log(2 * np.pi * (q - t**2 / s) / df)
    return float(-0.5 * (df * (log_variance + 1) + log_determinant + np.log(s)))


def _fold(shares: np.ndarray, nest: Nest) -> tuple[float, float, float, float]:
    """S = 1'V^-1 1, T = 1'V^-1 y, Q = y'V^-1 y and L = log|V| of all scores, by levels.

    The covariance of a group is V + s 11', with V the block-diagonal covariance of its subgroups
    and s the share of its level:

        S <- S/(1 + sS),  T <- T/(1 + sS),  Q <- Q - sT^2/(1 + sS),  L <- L + log(1 + sS).
    """
    *level_shares, unit_share = shares
    s = nest.sizes / unit_share
    t = nest.sums / unit_share
    q = nest.squares.sum() / unit_share
    log_determinant = nest.sizes.sum() * np.log(unit_share)
    for share, parent in zip(
        reversed(level_shares), reversed(nest.parents), strict=True
    ):
        factor = 1 + share * s
        q -= (share * t**2 / factor).sum()
        log_determinant += np.log(factor).sum()
        s = np.bincount(parent, s / factor)
        t = np.bincount(parent, t / factor)
    return s.sum(), t.sum(), q, log_determinant


def _shares(fractions: np.ndarray) -> np.ndarray:
    """Shares that add up to 1: each takes its fraction of the rest, the last one all of it."""
    rest = np.cumprod(np.r_[1.0, 1 - fractions])
    return rest * np.r_[fractions, 1.0]


def _fractions(shares: np.ndarray) -> np.ndarray:
    """Invert `_shares`: the fraction of the rest that each share takes."""
    rest = shares[::-1].cumsum()[::-1][:-1]
    return np.clip(shares[:-1] / np.maximum(rest, MIN_SHARE), 0, 1)


def _maximise(
    nest: Nest, to_shares: Callable, starts: Sequence
) -> tuple[np.ndarray, float]:
    """Maximise the likelihood over fractions in [0, 1]: the shares, and the maximum."""
    min_shares = np.r_[np.zeros(len(nest.parents)), MIN_SHARE]

    def cost(fractions: np.ndarray) -> float:
        return -restricted_log_likelihood(
            np.maximum(to_shares(fractions), min_shares), nest
        )

    if not len(starts[0]):
        return to_shares(starts[0]), -cost(starts[0])
    bounds = [(0, MAX_FRACTION)] * len(starts[0])
    runs = [
        optimize.minimize(cost, start, method="L-BFGS-B", bounds=bounds)
        for start in starts
    ]
    best = min(runs, key=lambda run: run.fun)
    return to_shares(best.x), -best.fun


def _profile_interval(
    nest: Nest, inside: list[int], shares, max_likelihood: float
) -> tuple[float, float]:
    """Values of the sum of the shares `inside` whose profile likelihood is within `MAX_DROP`."""
    outside = [k for k in range(len(shares)) if k not in inside]
    start = np.concatenate([_fractions(shares[inside]), _fractions(shares[outside])])
    # From one start alone the search may end half way.
    starts = [
        start,
        np.full(len(start), 0.5),
    ]

    def excess(total: float) -> float:
        def to_shares(fractions: np.ndarray) -> np.ndarray:
            result = np.empty(len(shares))
            result[inside] = total * _shares(fractions[: len(inside) - 1])
            result[outside] = (1 - total) * _shares(fractions[len(inside) - 1 :])
            return result

        _, likelihood = _maximise(nest, to_shares, starts)
        return max_likelihood - likelihood - MAX_DROP

    estimate = float(np.clip(shares[inside].sum(), MIN_SHARE, 1 - MIN_SHARE))
    low = 0.0
    if excess(MIN_SHARE) > 0:
        low = optimize.brentq(excess, MIN_SHARE, estimate, xtol=1e-4)
    high = 1.0
    if excess(1 - MIN_SHARE) > 0:
        high = optimize.brentq(excess, estimate, 1 - MIN_SHARE, xtol=1e-4)
    return low, high
