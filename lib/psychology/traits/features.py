"""The text features of a trait model: relative frequencies of 1-3grams, and topic loadings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from lib.psychology.lexicons import Lexicon, TokenCounts


def frequent_features(counts: TokenCounts, min_share: float) -> tuple[str, ...]:
    """List the features that at least `min_share` of the rows (authors) use.

    >>> from lib.psychology.lexicons import count_tokens
    >>> frequent_features(count_tokens(["a b", "a c", "a"]), 0.5)
    ('a',)
    """
    users = np.asarray((counts.matrix > 0).sum(axis=0)).ravel()
    needed = min_share * counts.matrix.shape[0]
    return tuple(f for f, k in zip(counts.features, users, strict=True) if k >= needed)


def relative_frequencies(counts: TokenCounts, features: Sequence[str]) -> sparse.csr_matrix:
    """Relative frequency of each feature per row, in the order given; 0 for unseen features."""
    column = {feature: j for j, feature in enumerate(counts.features)}
    seen = [(j, column[f]) for j, f in enumerate(features) if f in column]
    shape = (len(counts.features), len(features))
    places = ([old for _, old in seen], [new for new, _ in seen])
    select = sparse.csr_matrix((np.ones(len(seen)), places), shape=shape)
    scale = 1 / np.maximum(counts.totals, 1)
    return (sparse.diags(scale) @ counts.matrix @ select).tocsr()


def design_matrix(
    counts: Mapping[int, TokenCounts],
    ngrams: Mapping[int, Sequence[str]],
    topics: Lexicon | None,
) -> np.ndarray:
    """Put n-gram frequencies (by order) and topic loadings side by side.

    Parameters
    ----------
    counts : mapping of order to TokenCounts over the same rows
    ngrams : mapping of order to the n-grams used
    topics : Lexicon of p(topic | word), optional

    Returns
    -------
    array, shape (rows, features)
        Rows without tokens are NaN.
    """
    parts = [relative_frequencies(counts[n], ngrams[n]).toarray() for n in sorted(ngrams)]
    if topics is not None:
        parts.append(topics.score(counts[1]).to_numpy())
    matrix = np.hstack(parts)
    matrix[counts[1].totals == 0] = np.nan
    return matrix
