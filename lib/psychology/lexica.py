"""Weighted lexica: which words stand for which category, and how strongly."""

import importlib.util
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import pandas as pd
from scipy import sparse

from lib.data import DataError
from lib.data.storage import file_sha256
from lib.data.turn_table import Check, check_rows
from lib.psychology.tokens import TokenCounts, check_choice

#: A wildcard needs a stem of this many characters ("ab*" is taken literally), as in DLATK.
SHORTEST_STEM = 3


@dataclass(frozen=True)
class Lexicon:
    """Terms with a weight in one or more categories.

    Attributes:
        name: what to call it in tables and provenance records.
        weights: categories and weights of each term. A term that ends in "*" stands for every
            token that starts with its stem (three characters or more). Where several terms give
            one token the same category, the largest weight counts.
        intercepts: constant added to the score of a category (`_intercept` of a regression model).
        sha256: checksum of the file behind it.

    >>> toy = Lexicon("toy", {"laugh*": {"joy": 1.0}, "loss": {"sadness": 1.5}})
    >>> toy.categories
    ('joy', 'sadness')
    >>> toy.align(["laughing", "stone"]).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    name: str
    weights: Mapping[str, Mapping[str, float]]
    intercepts: Mapping[str, float] = field(default_factory=dict)
    sha256: str = ""

    def provenance(self) -> dict[str, str]:
        """Name and checksum, which `lib.metrics.compute` stores with the scores."""
        return {"lexicon": self.name, "lexicon_sha256": self.sha256}

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """Category names, sorted."""
        categories = set(self.intercepts)
        for entry in self.weights.values():
            categories.update(entry)
        return tuple(sorted(categories))

    def lookup(self, token: str) -> dict[str, float]:
        """Categories and weights of one token, wildcards included.

        >>> Lexicon("t", {"lov*": {"joy": 1.0}, "lovely": {"joy": 3.0}}).lookup("lovely")
        {'joy': 3.0}
        """
        entry = dict(self.weights.get(token, {}))
        for length in range(SHORTEST_STEM, len(token) + 1):
            stem = token[:length]
            for category, weight in self.weights.get(f"{stem}*", {}).items():
                entry[category] = max(weight, entry.get(category, weight))
        return entry

    def align(self, features: Sequence[str]) -> sparse.csr_matrix:
        """Weights as a sparse matrix of shape (features, categories); absent terms are not stored.

        A stored zero is a term with weight 0, which still counts as matched.
        """
        from sklearn.feature_extraction import DictVectorizer  # a second to import

        vectorizer = DictVectorizer().fit([dict.fromkeys(self.categories, 0.0)])
        return vectorizer.transform(map(self.lookup, features))

    def matches(self, counts: TokenCounts) -> pd.DataFrame:
        """Count the tokens of each row that each category matches.

        >>> from lib.psychology.tokens import count_tokens
        >>> Lexicon("t", {"no": {"negations": 1}}).matches(count_tokens(["no , no !"]))
           negations
        0        2.0
        """
        matched = self.align(counts.features)
        matched.data[:] = 1.0
        return self._sums(matched, counts)

    def score(self, counts: TokenCounts, weighting: str = "relative") -> pd.DataFrame:
        """Score counted texts on every category.

        With f(w) the count of token w, N the number of tokens and v_c(w) its weight in category c

        - relative: sum_w v_c(w) f(w) / N, the share of the words, weighted (DLATK's default);
        - lex_norm: sum_w v_c(w) f(w) / N_c, the mean weight of the N_c tokens matched by c;

        plus the intercept of the category. For p(topic | word) as weights and relative counts this
        is the topic loading p(topic | text) = sum_w p(topic | w) p(w | text).

        Args:
            counts: from `count_tokens` (terms of several words match n-gram counts only).
            weighting: "relative" or "lex_norm".

        Returns:
            Shape (rows, categories). NaN in a whole row for a text without tokens, and under
            lex_norm also where nothing is matched (a mean of nothing). Otherwise no match scores 0.

        Reference: Schwartz et al. (2017), DLATK; Schwartz et al. (2013), Personality, gender and
        age in the language of social media, PLoS ONE (topics).

        >>> from lib.psychology.tokens import count_tokens
        >>> toy = Lexicon("toy", {"glad": {"joy": 2.0}, "loss": {"sadness": 1.5}})
        >>> toy.score(count_tokens(["glad glad loss today", "today", ""]))
            joy  sadness
        0   1.0    0.375
        1   0.0    0.000
        2   NaN      NaN
        """
        check_choice("weighting", weighting, ("relative", "lex_norm"))
        n_tokens = counts.totals[:, None]
        if weighting == "lex_norm":
            n_tokens = self.matches(counts)
        intercepts = [
            self.intercepts.get(category, 0.0) for category in self.categories
        ]
        # A text without tokens is 0 / 0, which is NaN.
        return self._sums(self.align(counts.features), counts) / n_tokens + intercepts

    def _sums(self, weights: sparse.csr_matrix, counts: TokenCounts) -> pd.DataFrame:
        sums = (counts.matrix @ weights).toarray()
        return pd.DataFrame(sums, counts.index, list(self.categories))


def from_triples(
    name: str, triples: Iterable[tuple[str, str, float]], path: Path
) -> Lexicon:
    """Build a lexicon from rows (term, category, weight), read from the file at `path`.

    The term "_intercept" gives the constant of its category. Terms are lower-cased; of repeated
    (term, category) rows the last one counts, as in DLATK.

    >>> from lib import ROOT
    >>> rows = [("_intercept", "age", 23.2), ("Homework", "age", -7.5)]
    >>> lexicon = from_triples("age", rows, ROOT / "data" / "function_words.json")
    >>> dict(lexicon.intercepts), lexicon.weights
    ({'age': 23.2}, {'homework': {'age': -7.5}})
    """
    weights: dict[str, dict[str, float]] = {}
    for term, category, weight in triples:
        weights.setdefault(term.strip().lower(), {})[category] = float(weight)
    intercepts = weights.pop("_intercept", {})
    return Lexicon(name, weights, intercepts, file_sha256(path))


def read_lexicon(path: str | Path) -> Lexicon:
    """Read a weighted lexicon from CSV (or tab-separated) columns term, category, weight.

    This is also the form in which DLATK exports a linear model as a lexicon, with a row
    `_intercept`; other columns are ignored. Words such as "nan" and "null" are read as words.

    Raises:
        DataError: a missing column or a weight that is not a number; names file, row and value.

    >>> from lib import ROOT
    >>> read_lexicon(ROOT / "data" / "sample" / "toy_emotions.csv").lookup("wonderful")
    {'joy': 1.5, 'surprise': 0.5}
    """
    rows = pd.read_csv(
        path,
        sep=None,
        engine="python",
        dtype=str,
        keep_default_na=False,
    )
    missing = {"term", "category", "weight"} - set(rows)
    if missing:
        raise DataError(
            f"there is no column {sorted(missing)}, only {list(rows)}", file=path
        )
    weights = pd.to_numeric(rows["weight"], errors="coerce")
    is_number = Check(
        column="weight",
        failed=weights.isna(),
        problem="is {!r}, not a number",
        fix="put a number there, with a point for decimals",
    )
    check_rows(rows, [is_number], path)
    triples = zip(rows["term"], rows["category"], weights, strict=True)
    return from_triples(Path(path).stem, triples, path)


@lru_cache(maxsize=1)  # the report asks for each block of replies
def dlatk_lexicon(table: str) -> Lexicon:
    """Load a lexicon of the installed DLATK package; the package itself is never imported.

    Its database holds "nrc_emot", the 2,000 Facebook topics p(topic | word) "fb2000_cp", and
    word-based models of age and gender ("dd_emnlp14_ageGender"), well-being, affect and temporal
    orientation with their intercepts (each with its own paper, see the WWBP lexica pages).

    Raises:
        FileNotFoundError: the package is not installed.
        DataError: it has no such table; the message lists the tables.
    """
    package = importlib.util.find_spec("dlatk")
    if package is None:
        raise FileNotFoundError(
            f"{table!r} needs DLATK: `pip install --no-deps dlatk==1.3.15`"
        )
    path = Path(package.submodule_search_locations[0], "data", "dlatk_lexica.db")
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        tables = sorted(
            row[0] for row in database.execute("SELECT name FROM sqlite_master")
        )
        if table not in tables:
            raise DataError(
                f"there is no {table!r}", file=path, fix=f"choose one of {tables}"
            )
        rows = database.execute(
            f'SELECT term, category, weight FROM "{table}" ORDER BY id'
        )
        return from_triples(table, rows, path)
