"""Turns nest in dialogs, agents and systems: the keys, and which levels can be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.data.errors import DataError

LEVELS = ("system", "agent", "dialog")
KEY = [*LEVELS, "turn"]


@dataclass(frozen=True)
class Nest:
    """Sums per finest group, and the way up from each level to the next coarser one.

    Attributes:
        levels: names of the levels, coarsest first.
        parents: parents[k][g] is the group of level k - 1 that group g of level k belongs to
            (zeros for the coarsest level).
        sizes, sums, squares: per finest group the number of scores, their sum and sum of squares
            (scores centered on the grand mean).
    """

    levels: tuple[str, ...]
    parents: tuple[np.ndarray, ...]
    sizes: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    @property
    def groups(self) -> tuple[int, ...]:
        """Number of groups per level."""
        return tuple(len(parent) for parent in self.parents)


def separable_levels(
    table: pd.DataFrame, levels: Sequence[str] = LEVELS
) -> tuple[list[str], dict[str, str]]:
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
        if level not in table:
            left_out[level] = f"no column {level!r}"
            continue
        groups = _paths(table, [*kept, level]).nunique()
        if groups == above:
            left_out[level] = f"one {level} per {kept[-1] if kept else 'corpus'}"
        elif groups == len(table):
            left_out[level] = f"one score per {level}"
        else:
            kept.append(level)
            above = groups
    return kept, left_out


def nest(table: pd.DataFrame, score: pd.Series, levels: Sequence[str]) -> Nest:
    """Reduce scores to what the likelihood needs: sums per finest group.

    Raises:
        DataError: when a level cannot be told apart from another one.

    >>> turns = pd.DataFrame({"system": list("aabb")})
    >>> nest(turns, pd.Series([1.0, 3.0, 5.0, 7.0]), ["system"]).sums.tolist()
    [-4.0, 4.0]
    """
    kept, left_out = separable_levels(table, levels)
    if left_out:
        reasons = "; ".join(f"{level}: {why}" for level, why in left_out.items())
        left = f"leave these levels out (what remains: {kept or 'nothing to split'})"
        raise DataError(reasons, fix=left)
    paths = pd.DataFrame({k: _paths(table, levels[: k + 1]) for k in range(len(levels))})
    above = paths.shift(1, axis="columns", fill_value=0)
    parents = [above[k].groupby(paths[k]).first().to_numpy() for k in paths]
    centered, finest = score.to_numpy(float) - score.mean(), paths.iloc[:, -1]
    sums = (np.bincount(finest, weights) for weights in (None, centered, centered**2))
    return Nest(tuple(levels), tuple(parents), *(total.astype(float) for total in sums))


def _paths(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Number the groups in order of appearance."""
    return table.groupby(list(columns), sort=False, dropna=False).ngroup()
