"""Who says what: the agent's words and the words it answers, at each level of the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd

from lib.data.dialogues import DataError
from lib.psychology.lexicons import TokenCounts, count_pooled

Level = Literal["turn", "dialog", "agent", "system"]
Context = Literal["all", "last"] | int | None

KEYS: dict[str, tuple[str, ...]] = {
    "dialog": ("system", "agent", "dialog"),
    "agent": ("system", "agent"),
    "system": ("system",),
}
"""Columns that name a dialog, an agent and a system."""


def response_counts(table: pd.DataFrame, level: Level = "turn", n: int = 1) -> TokenCounts:
    """Count the agent's tokens (or n-grams) per turn, or pooled over dialogs, agents, systems.

    A turn table gives the column `response`, a dialog table the utterances of the speaker
    "system". A missing response adds nothing to its pool.

    Examples
    --------
    >>> turns = pd.DataFrame({"system": ["s", "s"], "agent": ["a", "a"], "dialog": ["1", "2"],
    ...                       "context": [["hi"], ["hi", "yes ?"]], "response": ["so", "no no"]})
    >>> response_counts(turns).totals.tolist()
    [1.0, 2.0]
    >>> response_counts(turns, "agent").totals.tolist()
    [3.0]
    """
    if _is_dialog_table(table):
        own = _by_speaker(table, "system")
    else:
        own = [[text] if isinstance(text, str) else [] for text in _column(table, "response")]
    return _pool(count_pooled(own, table.index, n), table, level)


def prompt_counts(
    table: pd.DataFrame,
    level: Level = "turn",
    context: Context = None,
    newline_tokens: bool = False,
) -> TokenCounts:
    """Count the tokens that the agent answers, per turn or pooled.

    Parameters
    ----------
    table : DataFrame
        Turn table (column `context`, oldest first) or dialog table (speaker "user").
    level : {"turn", "dialog", "agent", "system"}
    context : {"all", "last"}, int or None
        The whole history, the last utterance, or the last k utterances. None means "all" at turn
        level, as the published figures imply (notebook 09), and "last" when pooling: the history
        of a later turn repeats the earlier ones, which must not count twice.
    newline_tokens : bool
        Count a "<newline>" token between utterances, see `lib.psychology.lexicons.count_pooled`.

    Examples
    --------
    >>> turns = pd.DataFrame({"system": ["s"], "agent": ["a"], "dialog": ["1"],
    ...                       "context": [["hi there", "yes ?"]], "response": ["so"]})
    >>> prompt_counts(turns).totals.tolist(), prompt_counts(turns, context="last").totals.tolist()
    ([4.0], [2.0])
    """
    if _is_dialog_table(table):
        if context is not None:
            raise ValueError(
                "context selects part of each turn's history; a dialog table has none: "
                "leave context=None and the partner's utterances are counted once"
            )
        heard = _by_speaker(table, "user")
    else:
        chosen = context if context is not None else ("all" if level == "turn" else "last")
        heard = [_last(history, chosen) for history in _column(table, "context")]
    return _pool(count_pooled(heard, table.index, newline_tokens=newline_tokens), table, level)


def missing_side(
    counts: TokenCounts,
    table: pd.DataFrame,
    name: str,
    unit: Literal["words", "tokens"] = "tokens",
) -> pd.Series:
    """Say for each row why a side has no tokens, or no words ("" where it has some)."""
    empty = (counts.word_totals if unit == "words" else counts.totals) == 0
    reason = pd.Series(np.where(empty, f"no words in the {name}", ""), index=counts.index)
    if name == "response" and "response" in table and counts.index.equals(table.index):
        missing = ~table["response"].map(lambda text: isinstance(text, str)).to_numpy()
        reason[missing] = "the response is missing"
    return reason


def _is_dialog_table(table: pd.DataFrame) -> bool:
    return "utterances" in table and "response" not in table


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table:
        raise DataError(
            f"the table has no column {name!r}, only {list(table.columns)}",
            fix="pass a turn table (context, response) or a dialog table (utterances, speakers)",
        )
    return table[name]


def _by_speaker(table: pd.DataFrame, speaker: str) -> list[list[str]]:
    said = []
    for utterances, speakers in zip(table["utterances"], table["speakers"], strict=True):
        said.append([u for u, s in zip(utterances, speakers, strict=True) if s == speaker])
    return said


def _last(history: Sequence[str], chosen: Literal["all", "last"] | int) -> list[str]:
    if not isinstance(history, (list, tuple, np.ndarray)):
        return []
    if chosen == "all":
        return list(history)
    count = 1 if chosen == "last" else chosen
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"context is 'all', 'last' or a number of utterances, not {chosen!r}")
    return list(history[-count:])


def _pool(counts: TokenCounts, table: pd.DataFrame, level: Level) -> TokenCounts:
    if level not in get_args(Level):
        raise ValueError(f"level is one of {get_args(Level)}, not {level!r}")
    if level == "turn" or (level == "dialog" and _is_dialog_table(table)):
        if level == "turn" and _is_dialog_table(table):
            raise ValueError("a dialog table has no turns: ask for level 'dialog' or coarser")
        return counts
    keys = list(KEYS[level])
    for key in keys:
        _column(table, key)
    groups = table.groupby(keys, sort=False, dropna=False)
    codes = groups.ngroup().to_numpy()
    names = table.loc[~pd.Series(codes).duplicated().to_numpy(), keys]
    index = pd.MultiIndex.from_frame(names) if len(keys) > 1 else pd.Index(names[keys[0]])
    return counts.combine([np.flatnonzero(codes == k) for k in range(len(names))], index)
