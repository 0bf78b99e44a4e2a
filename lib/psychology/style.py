"""Language style matching: do two speakers use function words at the same rate?"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT
from lib.data import DataError
from lib.metrics.registry import metric
from lib.psychology import tokens
from lib.psychology.lexica import Lexicon, from_triples

#: The nine categories in the order of the paper, and their short names in LIWC dictionaries.
FUNCTION_WORDS = {
    "personal_pronouns": "ppron",
    "impersonal_pronouns": "ipron",
    "articles": "article",
    "conjunctions": "conj",
    "prepositions": "prep",
    "auxiliary_verbs": "auxverb",
    "adverbs": "adverb",
    "negations": "negate",
    "quantifiers": "quant",
}

NAME = "language_style_matching"
WORDS_FILE = ROOT / "data" / "function_words.json"


def function_words() -> Lexicon:
    """Load our own closed-class word lists for the nine categories of style matching.

    Written from English grammar for this project (data/function_words.json). A word may belong to
    two categories ("won't" is an auxiliary verb and a negation). Weights are 1.

    >>> sorted(function_words().lookup("won't"))
    ['auxiliary_verbs', 'negations']
    """
    lists = json.loads(WORDS_FILE.read_text(encoding="utf-8"))["categories"]
    triples = [(word, category, 1.0) for category in FUNCTION_WORDS for word in lists[category]]
    return from_triples("function_words", triples, WORDS_FILE)


def liwc(path: str | Path) -> Lexicon:
    r"""Load your own LIWC dictionary (.dic), with our names for the nine function-word categories.

    Numbered categories between two "%" lines, then entries: a word, or a stem that ends in "*",
    followed by the numbers of its categories. Conditions in brackets (some editions have "like"
    only after certain words) cannot be applied to counted words: such numbers are left out, and
    the entry keeps its unconditional ones. Every weight is 1. LIWC is sold at liwc.app and may not
    be passed on; `function_words()` is the open default.

    Raises:
        DataError: not a LIWC dictionary, or one of the nine categories is missing.
    """
    text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    parts = re.split(r"^\s*%\s*$", text, maxsplit=2, flags=re.MULTILINE)
    if len(parts) < 3:
        problem = "there are no two lines of '%' around the list of categories"
        raise DataError(problem, file=path, fix="name a LIWC dictionary in its .dic form")
    names = _category_names(parts[1].splitlines())
    if missing := set(FUNCTION_WORDS) - set(names.values()):
        problem = f"there is no category for {sorted(missing)}, only {list(names.values())}"
        raise DataError(problem, file=path, fix="use LIWC2007 or later, which has all nine")
    triples = []
    for line in parts[2].splitlines():
        term, _, rest = line.strip().partition("\t")
        for category in re.findall(r"(?<!\S)\d+(?!\S)", re.sub(r"\(.*?\)|<.*?>", "x", rest)):
            triples.append((term, names.get(category, category), 1.0))
    return from_triples(Path(path).stem, triples, path)


def _category_names(header: list[str]) -> dict[str, str]:
    known = {short: name for name, short in FUNCTION_WORDS.items()}
    rows = [line.split("(")[0].split(maxsplit=1) for line in header if line.strip()]
    # Some editions say "preps" and "adverbs".
    return {n: known.get(name.strip().lower().rstrip("s"), name.strip()) for n, name in rows}


def _loaded(lexicon: Lexicon | str) -> Lexicon:
    if isinstance(lexicon, Lexicon):
        return lexicon
    return liwc(lexicon) if lexicon else function_words()


def _facts(lexicon: str = "", **options) -> dict[str, str]:
    return _loaded(lexicon).facts()


@metric(NAME, "psychological", ("context", "response"), version="1", facts=_facts)
def language_style_matching(
    table: pd.DataFrame,
    lexicon: Lexicon | str = "",
    *,
    level: str = "turn",
    context: str | int | None = None,
    both_zero: str = "one",
    denominator: str = "words",
    newline_tokens: bool = False,
    details: bool = False,
) -> pd.Series | pd.DataFrame:
    """Compute language style matching (LSM), the mean similarity of nine function-word rates.

    Section 5, "Language Style Matching": 1 - |a - b| / (a + b + 0.0001) of the percentages of the
    two sides (0: only one uses the category, 1: same rate), averaged over personal and impersonal
    pronouns, articles, conjunctions, prepositions, auxiliary verbs, adverbs, negations and
    quantifiers.

    Args:
        table: turn table, or dialog table from level "dialog" upwards.
        lexicon: the nine categories, or the path of a LIWC dictionary; our own lists by default.
        level, context: as in `emotion_matching`.
        both_zero: categories that nobody uses count 1 (the formula) or leave the mean ("skip").
        denominator: rates in percent of "words", or of all "tokens" with punctuation (what DLATK
            counts).
        newline_tokens: count line breaks between the utterances of the context as tokens, as
            DLATK does.
        details: return a frame with the reason and the similarity of each category.

    Returns:
        Series "language_style_matching", or DataFrame (language_style_matching, reason,
        categories). 0 to 1, higher is more alike. NaN where response or prompt has no words, or
        (both_zero="skip") where no category is used by either.

    Reference: Ireland et al. (2011), Language style matching predicts relationship initiation and
    stability, Psychological Science 22(1). Giorgi et al. (2023), section 5.

    >>> turns = pd.DataFrame({"context": [["do you like the park ?"]],
    ...                       "response": ["i like it and the lake"]})
    >>> language_style_matching(turns).round(3).tolist()
    [0.636]
    """
    tokens.check_choice("both_zero", both_zero, ("one", "skip"))
    tokens.check_choice("denominator", denominator, ("words", "tokens"))
    lexicon = _loaded(lexicon)
    said = tokens.response_counts(table, level)
    heard = tokens.prompt_counts(table, level, context, newline_tokens)
    own, other = (_percent(counts, lexicon, denominator) for counts in (said, heard))
    alike = 1 - np.abs(own - other) / (own + other + 0.0001)
    if both_zero == "skip":
        alike[(own == 0) & (other == 0)] = np.nan
    similarity = pd.DataFrame(alike, said.index, list(FUNCTION_WORDS))
    values = similarity.mean(axis=1).rename(NAME)
    causes = {
        "no words in the response": np.isnan(own[:, 0]),
        "no words in the prompt": np.isnan(other[:, 0]),
        "no function word on either side": values.isna(),
    }
    return tokens.explained(values, causes, similarity) if details else values


def _percent(counts: tokens.TokenCounts, lexicon: Lexicon, denominator: str) -> np.ndarray:
    total = counts.word_totals if denominator == "words" else counts.totals
    used = lexicon.matches(counts)[list(FUNCTION_WORDS)].to_numpy()
    return 100 * used / np.where(total > 0, total, np.nan)[:, None]
