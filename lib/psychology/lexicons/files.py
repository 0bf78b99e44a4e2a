"""Read lexica from files: CSV tables, LIWC dictionaries, the NRC text file, a DLATK database."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from lib.data.dialogues import DataError
from lib.psychology.lexicons.lexicon import Lexicon

INTERCEPT = "_intercept"
PLUTCHIK = ("anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust")
"""The eight basic emotions of the human-centered paper, in alphabetical order."""


def from_triples(name: str, triples: Iterable[tuple[str, str, float]], source: str = "") -> Lexicon:
    """Build a lexicon from (term, category, weight) rows.

    The term "_intercept" gives the constant of its category. Terms are lower-cased; of repeated
    (term, category) rows the last one counts, as in DLATK.

    >>> lexicon = from_triples("age", [("_intercept", "age", 23.2), ("Homework", "age", -7.5)])
    >>> dict(lexicon.intercepts), lexicon.weights
    ({'age': 23.2}, {'homework': {'age': -7.5}})
    """
    weights: dict[str, dict[str, float]] = {}
    intercepts: dict[str, float] = {}
    for term, category, weight in triples:
        term = term.strip().lower()
        if term == INTERCEPT:
            intercepts[category] = float(weight)
        else:
            weights.setdefault(term, {})[category] = float(weight)
    return Lexicon(name, weights, intercepts, source)


def read_csv(path: str | Path, name: str | None = None) -> Lexicon:
    """Read a weighted lexicon from CSV (or tab-separated) columns term, category, weight.

    This is also the form in which DLATK exports a linear model as a lexicon, with a row
    `_intercept`; other columns are ignored and a missing weight column means weight 1. Words such
    as "nan" and "null" are read as words.

    Raises
    ------
    DataError
        For a missing column or a weight that is not a number; names file, line and value.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.csv"
    >>> _ = path.write_text("id,term,category,weight\\n1,_intercept,age,20\\n2,nan,age,-1.5\\n")
    >>> read_csv(path).weights
    {'nan': {'age': -1.5}}
    """
    path = Path(path)
    rows = pd.read_csv(path, sep=None, engine="python", dtype=str, keep_default_na=False)
    missing = {"term", "category"} - set(rows.columns)
    if missing:
        raise DataError(
            f"there is no column {sorted(missing)}, only {list(rows.columns)}",
            file=path,
            fix="name the columns term, category and, for a weighted lexicon, weight",
        )
    if "weight" not in rows:
        rows["weight"] = "1"
    numbers = pd.to_numeric(rows["weight"], errors="coerce")
    if numbers.isna().any():
        line = int(numbers.isna().to_numpy().argmax())
        raise DataError(
            f"the weight {rows['weight'][line]!r} of term {rows['term'][line]!r} is not a number",
            file=path,
            row=line + 1,
            column="weight",
            fix="write a number with a decimal point",
        )
    triples = zip(rows["term"], rows["category"], numbers, strict=True)
    return from_triples(name or path.stem, triples, _fingerprint(path))


def read_nrc(path: str | Path) -> Lexicon:
    """Read the NRC Hashtag Emotion Lexicon from any of its text forms.

    Emotion, term and score separated by tabs, in that order or with the term first, after any
    number of lines of notes. Lines of another shape before the first entry are notes; among the
    entries they are an error.

    Raises
    ------
    DataError
        If no entry of one of the eight emotions is found, or an entry cannot be read.
    """
    path = Path(path)
    triples = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        parts = line.rstrip("\r\n").split("\t")
        entry = _nrc_entry(parts)
        if entry is not None:
            triples.append(entry)
        elif triples and line.strip():
            raise DataError(
                f"line {number} is not 'emotion TAB term TAB score' with one of {PLUTCHIK}",
                file=path,
                fix="mend or remove the line; notes may stand before the first entry only",
            )
    if not triples:
        raise DataError(
            "no line reads 'emotion TAB term TAB score'",
            file=path,
            fix="name the text file of the NRC Hashtag Emotion Lexicon, not the archive around it",
        )
    return from_triples("nrc_hashtag_emotion", triples, _fingerprint(path))


def _nrc_entry(parts: list[str]) -> tuple[str, str, float] | None:
    if len(parts) != 3:
        return None
    try:
        weight = float(parts[2])
    except ValueError:
        return None
    first, second = parts[0].strip().lower(), parts[1].strip().lower()
    if first in PLUTCHIK:
        return second, first, weight
    return (first, second, weight) if second in PLUTCHIK else None


def read_liwc(path: str | Path) -> Lexicon:
    r"""Read a LIWC dictionary (.dic): numbered categories between two "%" lines, then entries.

    An entry is a word, or a stem that ends in "*", followed by the numbers of its categories.
    Conditions in brackets (some editions have "like" only after certain words) cannot be applied
    to counted words: such numbers are left out, and the entry keeps its unconditional ones.

    Returns
    -------
    Lexicon
        Every weight is 1, so `Lexicon.matches` counts words per category.

    Raises
    ------
    DataError
        If the header is missing or an entry names a category that the header does not have.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.dic"
    >>> _ = path.write_text("%\n1\tpronoun\n2\tpositive\n%\nwe\t1\nglad*\t2\n")
    >>> read_liwc(path).weights
    {'we': {'pronoun': 1.0}, 'glad*': {'positive': 1.0}}
    """
    path = Path(path)
    lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    marks = [i for i, line in enumerate(lines) if line.strip() == "%"]
    if len(marks) < 2:
        raise DataError(
            "there are no two lines of '%' around the list of categories",
            file=path,
            fix="check that this is a LIWC dictionary in its .dic form",
        )
    names = _liwc_categories(path, lines, marks)
    triples = []
    for number, line in enumerate(lines[marks[1] + 1 :], start=marks[1] + 2):
        term, _, rest = line.strip().partition("\t")
        for identifier in re.findall(r"(?<!\S)\d+(?!\S)", re.sub(r"\(.*?\)|<.*?>", "x", rest)):
            if identifier not in names:
                raise DataError(
                    f"line {number}: the entry {term!r} names category {identifier}, not declared",
                    file=path,
                    fix="add the category to the list between the '%' lines, or mend the entry",
                )
            triples.append((term, names[identifier], 1.0))
    return from_triples(path.stem, triples, _fingerprint(path))


def _liwc_categories(path: Path, lines: list[str], marks: list[int]) -> dict[str, str]:
    names = {}
    for number in range(marks[0] + 1, marks[1]):
        parts = lines[number].split(maxsplit=1)
        if len(parts) == 2:
            names[parts[0]] = parts[1].split("(")[0].strip()
        elif parts:
            raise DataError(
                f"line {number + 1} of the categories is not 'number TAB name'",
                file=path,
                fix="give every category a number and a name",
            )
    return names


def read_database(path: str | Path, table: str, name: str | None = None) -> Lexicon:
    """Read one lexicon table (term, category, weight) of a DLATK SQLite database, read-only.

    Raises
    ------
    DataError
        If the database has no such table; the message lists those it has.
    """
    path = Path(path)
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
        if table not in tables:
            raise DataError(
                f"there is no lexicon {table!r}", file=path, fix=f"choose one of {sorted(tables)}"
            )
        rows = database.execute(f'SELECT term, category, weight FROM "{table}" ORDER BY id')
        return from_triples(name or table, rows, f"{_fingerprint(path)}, table {table}")


def _fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{path.name} (sha256 {digest[:12]})"
