"""Turns nest in dialogs, agents and systems: which of these levels can be told apart?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.data.dialogues import DataError

LEVELS = ("system", "agent", "dialog")


@dataclass(frozen=True)
class Nest:
    """Sums per finest group, and the way up from each level to the next coarser one.

    Attributes
    ----------
    levels : tuple of str, coarsest first
    parents : tuple of arrays
        parents[k][g] is the group of level k - 1 that group g of level k belongs to (zeros for
        the coarsest level).
    sizes, sums, squares : arrays over the finest groups
        Number of scores, their sum and sum of squares (scores centered on the grand mean).
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

    Examples
    --------
    >>> turns = pd.DataFrame({"system": list("aabb"), "agent": list("aabb"),
    ...                       "dialog": list("1212")})
    >>> separable_levels(turns)
    (['system'], {'agent': 'one agent per system', 'dialog': 'one score per dialog'})
    """
    kept: list[str] = []
    left_out: dict[str, str] = {}
    above = pd.Series(0, index=table.index)
    for level in levels:
        if level not in table:
            left_out[level] = f"no column {level!r}"
            continue
        groups = _paths(table, [*kept, level])
        parent = kept[-1] if kept else "corpus"
        if groups.nunique() == above.nunique():
            left_out[level] = f"one {level} per {parent}"
        elif groups.nunique() == len(table):
            left_out[level] = f"one score per {level}"
        else:
            kept.append(level)
            above = groups
    return kept, left_out


def nest(table: pd.DataFrame, score: pd.Series, levels: Sequence[str]) -> Nest:
    """Reduce scores to what the likelihood needs: sums per finest group.

    >>> turns = pd.DataFrame({"system": list("aabb")})
    >>> nest(turns, pd.Series([1.0, 3.0, 5.0, 7.0]), ["system"]).sums.tolist()
    [-4.0, 4.0]
    """
    kept, left_out = separable_levels(table, levels)
    if left_out:
        raise DataError(
            "; ".join(f"{level}: {why}" for level, why in left_out.items()),
            fix=f"leave these levels out (what remains: {kept or 'nothing to split'})",
        )
    paths = [_paths(table, levels[: k + 1]).to_numpy() for k in range(len(levels))]
    parents = [np.zeros(paths[0].max() + 1, dtype=np.int64)]
    for coarse, fine in zip(paths, paths[1:], strict=False):
        parent = np.zeros(fine.max() + 1, dtype=np.int64)
        parent[fine] = coarse
        parents.append(parent)
    centered = score.to_numpy(float) - score.mean()
    finest = paths[-1]
    return Nest(
        tuple(levels),
        tuple(parents),
        np.bincount(finest).astype(float),
        np.bincount(finest, centered),
        np.bincount(finest, centered**2),
    )


def _paths(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    return table.groupby(list(columns), sort=False, dropna=False).ngroup()
