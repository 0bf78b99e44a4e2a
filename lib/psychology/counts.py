"""Count the tokens of texts, of the agent's responses, and of the prompts that they answer."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy import sparse

from lib.data import KEY
from lib.psychology.tokens import NEWLINE, is_word, ngrams


@dataclass(frozen=True)
class TokenCounts:
    """How often each feature (token or n-gram) occurs in each text or group of texts.

    Attributes:
        matrix: counts, sparse, shape (rows, features).
        features: the tokens or n-grams, one a column.
        index: labels of the rows.
    """

    matrix: sparse.csr_matrix
    features: Sequence[str]
    index: pd.Index

    @property
    def totals(self) -> np.ndarray:
        """Number of tokens (or n-grams) per row, repeats counted."""
        return np.asarray(self.matrix.sum(axis=1)).ravel()

    @property
    def word_totals(self) -> np.ndarray:
        """Number of words and numbers per row, without punctuation, faces and line breaks."""
        return self.matrix @ np.array([is_word(f) for f in self.features], float)


def count_tokens(
    texts: Sequence[str], groups: Sequence[Hashable] | None = None, n: int = 1
) -> TokenCounts:
    """Count the tokens (n = 1) or n-grams of texts, or of groups of texts.

    A lexical score of a dialog is computed from its pooled counts. The mean of the scores of its
    turns would give a one-word turn the weight of a long one. No n-gram crosses from one text to
    the next.

    Args:
        texts: messages. A missing text (None or NaN) has no tokens.
        groups: the group of each text; by default each is its own.
        n: order of the n-grams.

    Returns:
        One row per text, or per group in order of first appearance. Without tokens it is a row of
        zeros (its scores will be NaN).

    >>> counts = count_tokens(["no , no !", "yes"])
    >>> counts.totals.tolist(), counts.word_totals.tolist()
    ([4.0, 1.0], [2.0, 1.0])
    >>> count_tokens(["no , no !", "yes"], groups=["a", "a"]).totals.tolist()
    [5.0]
    """
    rows, index = np.arange(len(texts)), pd.RangeIndex(len(texts))
    if groups is not None:
        rows, index = pd.factorize(pd.Index(groups), use_na_sentinel=False)
    return _count(texts, rows, index, n)


def response_counts(table: pd.DataFrame, level: str = "turn", n: int = 1) -> TokenCounts:
    """Count the agent's tokens (or n-grams) per turn, or pooled over dialogs, agents, systems.

    A turn table gives the column `response`, a dialog table the utterances of the speaker
    "system". A missing response adds nothing to its pool.

    >>> turns = pd.DataFrame({"system": ["s", "s"], "agent": ["a", "a"], "dialog": ["1", "2"],
    ...                       "context": [["hi"], ["hi", "yes ?"]], "response": ["so", "no no"]})
    >>> response_counts(turns).totals.tolist()
    [1.0, 2.0]
    >>> response_counts(turns, "agent").totals.tolist()
    [3.0]
    """
    if _is_dialog_table(table):
        return _pooled(_by_speaker(table, "system"), table, level, n)
    return _pooled([[text] for text in table["response"]], table, level, n)


def prompt_counts(
    table: pd.DataFrame,
    level: str = "turn",
    context: str | int | None = None,
    newline_tokens: bool = False,
) -> TokenCounts:
    """Count the tokens that the agent answers, per turn or pooled.

    Args:
        table: turn table (column `context`, oldest first) or dialog table (speaker "user").
        level: "turn", "dialog", "agent" or "system".
        context: "all" (the whole history), "last" (its last utterance) or the last k utterances.
            None means "all" at turn level, as the published figures imply (notebook 09), and
            "last" when pooling: the history of a later turn repeats the earlier ones, which must
            not count twice.
        newline_tokens: count one "<newline>" between two utterances, as DLATK does when the
            context is stored as one text with line breaks (which the paper's figures show).

    Raises:
        ValueError: an unknown level or context, or a context for a dialog table, which has no
            history per turn: there the partner's utterances are counted once.

    >>> turns = pd.DataFrame({"system": ["s"], "agent": ["a"], "dialog": ["1"],
    ...                       "context": [["hi there", "yes ?"]], "response": ["so"]})
    >>> prompt_counts(turns).totals.tolist(), prompt_counts(turns, context="last").totals.tolist()
    ([4.0], [2.0])
    """
    if not _is_dialog_table(table):
        default = "all" if level == "turn" else "last"
        heard = _latest(table["context"], default if context is None else context)
    elif context is None:
        heard = _by_speaker(table, "user")
    else:
        raise ValueError("a dialog table has no history per turn: leave context=None")
    if newline_tokens:
        heard = [[part for text in row for part in (NEWLINE, text)][1:] for row in heard]
    return _pooled(heard, table, level)


def reasons(index: pd.Index, causes: Mapping[str, Sequence[bool]]) -> pd.Series:
    """Name the first cause that holds in each row, or "" where none does.

    >>> reasons(pd.RangeIndex(2), {"no words": [True, False], "no match": [True, True]}).tolist()
    ['no words', 'no match']
    """
    return pd.Series(np.select(list(causes.values()), list(causes), ""), index, name="reason")


def _count(texts: Sequence[str], rows: np.ndarray, index: pd.Index, n: int) -> TokenCounts:
    from sklearn.feature_extraction.text import CountVectorizer  # a second to import

    known = [text if isinstance(text, str) else "" for text in texts]
    # Two thirds of the utterances of dialogue corpora are repeats (every context is rated with
    # several responses): each distinct one is tokenized once.
    codes, distinct = pd.factorize(np.array(known, dtype=object))
    counter = CountVectorizer(analyzer=partial(ngrams, n=n), dtype=float)
    # The vectorizer refuses texts without any feature, so one that has a feature comes last.
    matrix = counter.fit_transform([*distinct, " ".join([NEWLINE] * n)])[:-1]
    member = (np.ones(len(codes)), (rows, codes))
    pool = sparse.csr_matrix(member, shape=(len(index), len(distinct)))
    return TokenCounts((pool @ matrix).tocsr(), list(counter.get_feature_names_out()), index)


def _pooled(messages: list[list], table: pd.DataFrame, level: str, n: int = 1) -> TokenCounts:
    groups, index = _groups(table, level)
    rows = np.repeat(groups, [len(texts) for texts in messages])
    return _count([text for texts in messages for text in texts], rows, index, n)


def _groups(table: pd.DataFrame, level: str) -> tuple[np.ndarray, pd.Index]:
    levels = list(KEY[:3] if _is_dialog_table(table) else KEY)
    if level not in levels:
        raise ValueError(f"level is one of {levels} for this table, not {level!r}")
    if level == levels[-1]:
        return np.arange(len(table)), table.index
    names = table[levels[: levels.index(level) + 1]]
    groups = names.groupby(list(names), sort=False, dropna=False).ngroup().to_numpy()
    return groups, names.drop_duplicates().set_index(list(names)).index


def _is_dialog_table(table: pd.DataFrame) -> bool:
    return "utterances" in table and "response" not in table


def _by_speaker(table: pd.DataFrame, speaker: str) -> list[list[str]]:
    rows = zip(table["utterances"], table["speakers"], strict=True)
    return [[u for u, s in zip(*row, strict=True) if s == speaker] for row in rows]


def _latest(histories: pd.Series, context: str | int) -> list[list[str]]:
    count = {"all": None, "last": 1}.get(context, context)
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"context is 'all', 'last' or a number of utterances, not {context!r}")
    return [list(history)[-count if count else None :] for history in histories]
