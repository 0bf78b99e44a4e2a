"""Count tokens and 1-3grams of texts, and pool the counts over turns, dialogs, agents, systems."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse

from lib.psychology.lexicons.tokenizer import clean, is_word, tokenize

TOKEN_LENGTH = 36
"""DLATK keeps this many characters of a token (and slightly fewer per word of an n-gram)."""


def ngrams(tokens: Sequence[str], n: int = 1) -> list[str]:
    """List the n-grams of one message, lower case, joined by spaces, as DLATK stores them.

    An n-gram longer than (36 - (n - 1)) n characters (36, 70, 102 for n = 1, 2, 3) is cut there.

    Parameters
    ----------
    tokens : sequence of str
        Tokens of one message; no n-gram crosses from one message to the next.
    n : int
        Order, at least 1.

    Returns
    -------
    list of str
        len(tokens) - n + 1 n-grams in order, none for a shorter message.

    Examples
    --------
    >>> ngrams(["so", "good", ":D"], 2)
    ['so good', 'good :d']
    >>> ngrams(["so"], 3)
    []
    """
    if n < 1:
        raise ValueError(f"n-grams have order 1 or more, not {n}")
    length = (TOKEN_LENGTH - (n - 1)) * n
    if n == 1:
        return [token[:length].lower() for token in tokens]
    return [" ".join(tokens[i : i + n])[:length].lower() for i in range(len(tokens) - n + 1)]


@dataclass(frozen=True)
class TokenCounts:
    """How often each feature (token or n-gram) occurs in each text or group of texts.

    Attributes
    ----------
    matrix : scipy.sparse.csr_matrix, shape (rows, features)
        Counts.
    features : tuple of str
        The tokens or n-grams, one a column.
    index : pandas.Index
        Labels of the rows.
    """

    matrix: sparse.csr_matrix
    features: tuple[str, ...]
    index: pd.Index

    @property
    def totals(self) -> np.ndarray:
        """Number of tokens (or n-grams) per row, repeats counted."""
        return np.asarray(self.matrix.sum(axis=1)).ravel()

    @property
    def word_totals(self) -> np.ndarray:
        """Number of words and numbers per row, without punctuation, faces and line breaks."""
        words = np.fromiter((is_word(f) for f in self.features), float, len(self.features))
        return self.matrix @ words

    def pool(self, groups: Iterable[Hashable]) -> TokenCounts:
        """Add up the counts of the rows of each group, in order of first appearance.

        A lexical score of a dialog is computed from its pooled counts. The mean of the scores of
        its turns would give a one-word turn the weight of a long one.

        >>> counts = count_tokens(["no no", "yes", "no"])
        >>> counts.pool(["a", "a", "b"]).relative("no").round(2).to_dict()
        {'a': 0.67, 'b': 1.0}
        """
        codes, labels = pd.factorize(pd.Index(groups), use_na_sentinel=False)
        if len(codes) != self.matrix.shape[0]:
            raise ValueError(f"{len(codes)} group labels for {self.matrix.shape[0]} rows")
        return self.combine([np.flatnonzero(codes == k) for k in range(len(labels))], labels)

    def combine(self, rows: Sequence[Sequence[int]], index: pd.Index | None = None) -> TokenCounts:
        """Add up lists of rows; a row may take part in several sums, or several times in one."""
        sizes = [len(r) for r in rows]
        members = np.concatenate([np.asarray(r, dtype=np.int64) for r in rows]) if rows else []
        membership = sparse.csr_matrix(
            (np.ones(len(members)), members, np.concatenate([[0], np.cumsum(sizes)])),
            shape=(len(rows), self.matrix.shape[0]),
        )
        index = pd.RangeIndex(len(rows)) if index is None else index
        return TokenCounts((membership @ self.matrix).tocsr(), self.features, index)

    def relative(self, feature: str) -> pd.Series:
        """Relative frequency of one feature per row (0 to 1; NaN for a row without tokens)."""
        column = self.features.index(feature)
        share = self.matrix[:, [column]].toarray().ravel()
        with np.errstate(invalid="ignore"):
            return pd.Series(share / self.totals, index=self.index, name=feature)


def count_tokens(texts: Sequence[str], n: int = 1, index: pd.Index | None = None) -> TokenCounts:
    """Count the tokens (n = 1) or n-grams of texts; each distinct text is tokenized once.

    Two thirds of the utterances of dialogue corpora are repeats (every context is rated with
    several responses), so remembering them is most of the speed.

    Parameters
    ----------
    texts : sequence of str
        Messages. A missing text (None or NaN) has no tokens.
    n : int
        Order of the n-grams.
    index : pandas.Index, optional
        Labels of the rows; taken from `texts` if that is a Series, else 0, 1, 2 ...

    Returns
    -------
    TokenCounts
        One row per text. A text without tokens is a row of zeros (its scores will be NaN).

    Examples
    --------
    >>> counts = count_tokens(["no , no !", "yes"])
    >>> counts.totals.tolist(), counts.word_totals.tolist()
    ([4.0, 1.0], [2.0, 1.0])
    >>> count_tokens(["that is that is"], n=2).features
    ('that is', 'is that')
    """
    if index is None:
        index = texts.index if isinstance(texts, pd.Series) else pd.RangeIndex(len(texts))
    rows, distinct = _distinct(texts)
    counts = _count_distinct(distinct, n)
    return TokenCounts(counts.matrix[rows], counts.features, index)


def count_pooled(
    messages: Sequence[Sequence[str]],
    index: pd.Index | None = None,
    n: int = 1,
    newline_tokens: bool = False,
) -> TokenCounts:
    """Count the tokens of lists of utterances, such as the context of each rated response.

    Parameters
    ----------
    messages : sequence of sequences of str
        One list of utterances per row; an utterance that many rows share is tokenized once.
    newline_tokens : bool
        Count one "<newline>" between two utterances, as DLATK does when the context is stored as
        one text with line breaks (which the paper's figures show, see notebook 09).

    Examples
    --------
    >>> count_pooled([["hi", "you ?"], []]).totals.tolist()
    [3.0, 0.0]
    >>> count_pooled([["hi", "you ?"], []], newline_tokens=True).totals.tolist()
    [4.0, 0.0]
    """
    rows, distinct = _distinct([text for row in messages for text in row])
    counts = _count_distinct(distinct, n, extra=("<newline>",) if newline_tokens else ())
    ends = np.cumsum([0] + [len(row) for row in messages])
    pooled = counts.combine([rows[a:b] for a, b in zip(ends, ends[1:], strict=False)], index)
    if not newline_tokens:
        return pooled
    breaks = np.maximum(np.diff(ends) - 1, 0)
    column = sparse.csr_matrix(
        (breaks.astype(float), (np.arange(len(breaks)), np.zeros(len(breaks), int))),
        shape=pooled.matrix.shape,
    )
    return TokenCounts((pooled.matrix + column).tocsr(), pooled.features, pooled.index)


def _distinct(texts: Iterable[str]) -> tuple[np.ndarray, list[str]]:
    position: dict[str, int] = {}
    rows = [position.setdefault(t if isinstance(t, str) else "", len(position)) for t in texts]
    return np.asarray(rows, dtype=np.int64), list(position)


def _count_distinct(texts: list[str], n: int, extra: tuple[str, ...] = ()) -> TokenCounts:
    column: dict[str, int] = {feature: i for i, feature in enumerate(extra)}
    indices: list[int] = []
    ends = [0]
    for text in texts:
        indices.extend(
            [column.setdefault(f, len(column)) for f in ngrams(tokenize(clean(text)), n)]
        )
        ends.append(len(indices))
    matrix = sparse.csr_matrix(
        (np.ones(len(indices)), np.asarray(indices, dtype=np.int64), ends),
        shape=(len(texts), len(column)),
    )
    matrix.sum_duplicates()
    return TokenCounts(matrix, tuple(column), pd.RangeIndex(len(texts)))
