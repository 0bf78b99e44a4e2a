"""A weighted lexicon and its scores: which words speak for which category, and how strongly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy import sparse

from lib.psychology.lexicons.counts import TokenCounts, count_tokens

Weighting = Literal["relative", "lex_norm", "liwc_norm", "raw"]
SHORTEST_STEM = 3
"""A wildcard needs a stem of this many characters ("ab*" is taken literally), as in DLATK."""


@dataclass(frozen=True)
class Lexicon:
    """Terms with a weight in one or more categories.

    Attributes
    ----------
    name : str
        What to call it in tables and provenance records.
    weights : mapping of term to mapping of category to weight
        A term that ends in "*" stands for every token that starts with its stem (three characters
        or more). Where several terms give one token the same category, the largest weight counts.
    intercepts : mapping of category to float
        Constant added to the score of a category (the `_intercept` of a regression model).
    source : str
        Where it came from, with version or checksum.

    Examples
    --------
    >>> toy = Lexicon("toy", {"laugh*": {"joy": 1.0}, "loss": {"sadness": 1.5}})
    >>> toy.categories
    ('joy', 'sadness')
    >>> toy.align(("laughing", "stone")).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    name: str
    weights: Mapping[str, Mapping[str, float]]
    intercepts: Mapping[str, float] = field(default_factory=dict)
    source: str = ""

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """Category names, sorted."""
        named = {c for entry in self.weights.values() for c in entry}
        return tuple(sorted(named | set(self.intercepts)))

    def restrict(self, categories: Sequence[str]) -> Lexicon:
        """Keep some categories only.

        >>> Lexicon("toy", {"a": {"x": 1.0, "y": 2.0}}).restrict(["y"]).weights
        {'a': {'y': 2.0}}
        """
        missing = sorted(set(categories) - set(self.categories))
        if missing:
            raise KeyError(f"{self.name} has no category {missing}; it has {self.categories[:20]}")
        kept = {
            term: {c: w for c, w in entry.items() if c in set(categories)}
            for term, entry in self.weights.items()
        }
        kept = {term: entry for term, entry in kept.items() if entry}
        intercepts = {c: v for c, v in self.intercepts.items() if c in set(categories)}
        return Lexicon(self.name, kept, intercepts, self.source)

    def align(self, features: Sequence[str]) -> sparse.csr_matrix:
        """Weights as a sparse matrix of shape (features, categories); what is absent is not stored.

        A stored zero is a term with weight 0, which still counts as matched.
        """
        table, rows = self._table
        picked = np.fromiter((rows.get(f, -1) for f in features), np.int64, len(features))
        matched = np.flatnonzero(picked >= 0)
        if not self._stem_lengths:
            exact = table[picked[matched]].tocoo()
            parts = (exact.data, (matched[exact.row], exact.col))
            return sparse.csr_matrix(parts, shape=(len(features), len(self.categories)))
        return self._align_with_wildcards(features)

    @cached_property
    def _table(self) -> tuple[sparse.csr_matrix, dict[str, int]]:
        column = {c: j for j, c in enumerate(self.categories)}
        ends = np.cumsum([0] + [len(entry) for entry in self.weights.values()])
        data = [w for entry in self.weights.values() for w in entry.values()]
        columns = [column[c] for entry in self.weights.values() for c in entry]
        shape = (len(self.weights), len(column))
        rows = {term: i for i, term in enumerate(self.weights)}
        return sparse.csr_matrix((np.asarray(data, float), columns, ends), shape=shape), rows

    @cached_property
    def _stem_lengths(self) -> list[int]:
        stems = (term[:-1] for term in self.weights if term.endswith("*"))
        return sorted({len(stem) for stem in stems if len(stem) >= SHORTEST_STEM})

    def _align_with_wildcards(self, features: Sequence[str]) -> sparse.csr_matrix:
        column = {c: j for j, c in enumerate(self.categories)}
        data: list[float] = []
        place: tuple[list[int], list[int]] = ([], [])
        for i, feature in enumerate(features):
            for category, weight in self.lookup(feature).items():
                data.append(weight)
                place[0].append(i)
                place[1].append(column[category])
        return sparse.csr_matrix((data, place), shape=(len(features), len(column)))

    def lookup(self, token: str) -> dict[str, float]:
        """Categories and weights of one token, wildcards included.

        >>> Lexicon("t", {"lov*": {"joy": 1.0}, "lovely": {"joy": 3.0}}).lookup("lovely")
        {'joy': 3.0}
        """
        found = dict(self.weights.get(token, {}))
        for length in self._stem_lengths:
            if length > len(token):
                break
            for category, weight in self.weights.get(token[:length] + "*", {}).items():
                found[category] = max(weight, found.get(category, weight))
        return found

    def score(self, counts: TokenCounts, weighting: Weighting = "relative") -> pd.DataFrame:
        """Score counted texts on every category.

        With f(w) the count of token w, N the number of tokens and v_c(w) its weight in category c

        - relative:  sum_w v_c(w) f(w) / N, the share of the words, weighted (DLATK's default);
        - lex_norm:  sum_w v_c(w) f(w) / N_c, the mean weight of the N_c tokens matched by c;
        - liwc_norm: the same over N_any, the tokens matched by any category;
        - raw:       sum_w v_c(w) f(w);

        plus the intercept of the category. For p(topic | word) as weights and relative counts this
        is the topic loading p(topic | text) = sum_w p(topic | w) p(w | text).

        Parameters
        ----------
        counts : TokenCounts
            From `count_tokens` (terms of several words match n-gram counts only).
        weighting : {"relative", "lex_norm", "liwc_norm", "raw"}

        Returns
        -------
        pandas.DataFrame, shape (rows, categories)
            NaN in a whole row for a text without tokens, and under lex_norm and liwc_norm also
            where nothing is matched (a mean of nothing). Otherwise no match scores 0.

        References
        ----------
        Schwartz et al. (2017), DLATK; Schwartz et al. (2013), Personality, gender and age in the
        language of social media, PLoS ONE (topics).

        Examples
        --------
        >>> toy = Lexicon("toy", {"glad": {"joy": 2.0}, "loss": {"sadness": 1.5}})
        >>> counts = count_tokens(["glad glad loss today", "today", ""])
        >>> toy.score(counts)
            joy  sadness
        0   1.0    0.375
        1   0.0    0.000
        2   NaN      NaN
        >>> toy.score(counts, "lex_norm").loc[0].to_dict()
        {'joy': 2.0, 'sadness': 1.5}
        """
        if weighting not in get_args(Weighting):
            raise ValueError(f"weighting is one of {get_args(Weighting)}, not {weighting!r}")
        table = self.align(counts.features)
        summed = (counts.matrix @ table).toarray()
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = summed / self._denominator(counts, table, weighting)
        scores += [self.intercepts.get(c, 0.0) for c in self.categories]
        scores[counts.totals == 0] = np.nan
        return pd.DataFrame(scores, index=counts.index, columns=list(self.categories))

    def _denominator(
        self, counts: TokenCounts, table: sparse.csr_matrix, weighting: Weighting
    ) -> np.ndarray:
        if weighting == "raw":
            return np.ones((1, 1))
        if weighting == "relative":
            return counts.totals[:, None]
        if weighting == "liwc_norm":
            in_any = (np.diff(table.indptr) > 0).astype(float)
            return (counts.matrix @ in_any)[:, None]
        matched = sparse.csr_matrix((np.ones(table.nnz), table.indices, table.indptr), table.shape)
        return (counts.matrix @ matched).toarray()

    def matches(self, counts: TokenCounts) -> pd.DataFrame:
        """Number of tokens of each row that each category matches.

        >>> Lexicon("t", {"no": {"negations": 1}}).matches(count_tokens(["no , no !"]))
           negations
        0        2.0
        """
        table = self.align(counts.features)
        table.data[:] = 1.0
        found = (counts.matrix @ table).toarray()
        return pd.DataFrame(found, index=counts.index, columns=list(self.categories))


def score_stream(
    texts: Iterable[str],
    lexica: Sequence[Lexicon],
    weighting: Weighting = "relative",
    chunk: int = 20_000,
) -> Iterator[pd.DataFrame]:
    """Score a stream of texts of any length with several lexica, a chunk at a time.

    Tokens are counted once for all lexica and forgotten after each chunk, so memory depends on
    `chunk` and not on the number of texts.

    Yields
    ------
    pandas.DataFrame
        Scores of the next `chunk` texts, columns (lexicon, category), rows numbered on.

    Examples
    --------
    >>> toy = Lexicon("toy", {"glad": {"joy": 2.0}})
    >>> [frame.index.tolist() for frame in score_stream(["glad", "so", "so glad"], [toy], chunk=2)]
    [[0, 1], [2]]
    """
    block: list[str] = []
    start = 0
    for text in texts:
        block.append(text)
        if len(block) == chunk:
            yield _score_block(block, start, lexica, weighting)
            start, block = start + len(block), []
    if block:
        yield _score_block(block, start, lexica, weighting)


def _score_block(
    block: list[str], start: int, lexica: Sequence[Lexicon], weighting: Weighting
) -> pd.DataFrame:
    counts = count_tokens(block, index=pd.RangeIndex(start, start + len(block)))
    scores = {lexicon.name: lexicon.score(counts, weighting) for lexicon in lexica}
    return pd.concat(scores, axis=1)
