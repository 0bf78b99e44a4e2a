"""The states of Giorgi et al. (2023), section 5: emotional entropy, emotion and style matching.

The two emotion metrics use the weights of an emotion lexicon. Language style matching measures
whether two speakers use function words at the same rate.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special

from lib import ROOT
from lib.data import DataError
from lib.metrics.registry import metric
from lib.psychology import tokens
from lib.psychology.lexica import Lexicon, dlatk_lexicon, from_triples, read_lexicon
from lib.psychology.tokens import TokenCounts

#: The eight basic emotions of the human-centered paper, in alphabetical order.
PLUTCHIK = (
    "anger",
    "anticipation",
    "disgust",
    "fear",
    "joy",
    "sadness",
    "surprise",
    "trust",
)

#: The reading of "the entropy of the normalized emotion vector" that fits the paper's tables.
PAPER_ENTROPY = {"form": "group_norm", "weighting": "lex_norm"}

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


def emotion_lexicon(name: str | Lexicon) -> Lexicon:
    """Load the emotion lexicon that a parameter names: "toy", "nrc", or a CSV file of your own.

    "toy" has about a hundred words with weights that were made up: never use it for a result, it
    exists so that the notebooks run anywhere and every step can be checked by hand. "nrc" is the
    NRC Hashtag Emotion Lexicon of the installed `dlatk` package: 16,861 words with weights in eight
    emotions (the word "nan" is lost there). A Lexicon is returned unchanged.

    Raises:
        ValueError: any other name.
        FileNotFoundError: "nrc" without the package.

    Reference: Mohammad and Kiritchenko (2015), Using hashtags to capture fine emotion categories
    from tweets, Computational Intelligence 31(2). Free for research; do not pass it on.

    >>> emotion_lexicon("toy").lookup("wonderful")
    {'joy': 1.5, 'surprise': 0.5}
    >>> emotion_lexicon("liwc")
    Traceback (most recent call last):
    ...
    ValueError: no emotion lexicon 'liwc': take "toy" (for teaching), "nrc" or a CSV file
    """
    if isinstance(name, Lexicon):
        return name
    if name == "toy":
        return read_lexicon(ROOT / "data" / "sample" / "toy_emotions.csv")
    if name == "nrc":
        return replace(dlatk_lexicon("nrc_emot"), name="nrc_hashtag_emotion")
    if Path(name).is_file():
        return read_lexicon(name)
    raise ValueError(
        f'no emotion lexicon {name!r}: take "toy" (for teaching), "nrc" or a CSV file'
    )


def entropy(vectors: np.ndarray, form: str = "sum") -> np.ndarray:
    """Compute the entropy of emotion vectors in nats.

    - sum:        H = -sum_e p_e ln p_e with p = v / sum(v), the textbook reading;
    - group_norm: -sum_e v_e ln v_e, where v is not made to sum to 1 (DLATK calls its relative
      frequencies `group_norm`; "the normalized emotion vector" of the paper fits this best);
    - intercept:  H over the emotions and a ninth entry of 1, the row `_intercept` that DLATK adds
      to the scores of a lexicon without intercept.

    Args:
        vectors: shape (rows, emotions), all 0 or more.
        form: "sum", "group_norm" or "intercept".

    Returns:
        Shape (rows,). "sum": 0 (one emotion only) to ln(number of emotions), ln 8 = 2.079. NaN
        where a vector holds NaN or, except under "intercept", nothing but zeros.

    Raises:
        ValueError: a negative entry, whose logarithm is not defined, or an unknown form.

    >>> entropy(np.array([[1, 1, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]))
    array([0.69314718, 0.        ,        nan])
    >>> entropy(np.array([[0.5, 0.1]]), "group_norm").round(4)
    array([0.5768])
    """
    tokens.check_choice("form", form, ("sum", "group_norm", "intercept"))
    if (vectors < 0).any():
        raise ValueError(
            "entropy needs scores of 0 or more; this lexicon gives negative ones"
        )
    if form == "intercept":
        vectors = np.hstack([vectors, np.ones((len(vectors), 1))])
    total = vectors.sum(axis=1, keepdims=True)
    if form != "group_norm":
        with np.errstate(invalid="ignore"):
            vectors = vectors / total
    return np.where(total[:, 0] > 0, special.entr(vectors).sum(axis=1), np.nan)


def emotion_vectors(
    counts: TokenCounts, lexicon: Lexicon, weighting: str = "relative"
) -> pd.DataFrame:
    """Estimate the eight basic emotions of counted texts (columns in alphabetical order).

    An emotion without a matching word is 0; a row is NaN for a text without tokens.

    >>> from lib.psychology.tokens import count_tokens
    >>> toy = emotion_lexicon("toy")
    >>> emotion_vectors(count_tokens(["what wonderful news !"]), toy).loc[0, ["joy", "fear"]]
    joy     0.375
    fear    0.000
    Name: 0, dtype: float64
    """
    scores = (
        lexicon.score(counts, weighting).reindex(columns=list(PLUTCHIK)).fillna(0.0)
    )
    scores[counts.totals == 0] = np.nan
    return scores


def _provenance(lexicon: str = "nrc", **options) -> dict[str, str]:
    return emotion_lexicon(lexicon).provenance()


@metric("emotional_entropy", "psychological", version="1", provenance=_provenance)
def emotional_entropy(
    table: pd.DataFrame,
    lexicon: Lexicon | str = "nrc",
    *,
    level: str = "turn",
    form: str = "sum",
    weighting: str = "relative",
    details: bool = False,
) -> pd.Series | pd.DataFrame:
    """Compute how evenly a response spreads over Plutchik's eight emotions, in nats.

    Section 5, "Emotional Entropy": summed weighted word frequencies per emotion, then the entropy
    of the normalized vector. A state measure of the agent's own words.

    Args:
        table: turn table, or dialog table from level "dialog" upwards.
        lexicon: an emotion lexicon, or its name or file, see `emotion_lexicon`.
        level: "turn", "dialog", "agent" or "system"; counts are pooled to it before scoring.
        form: see `entropy`; the default is the textbook definition.
        weighting: "relative" or "lex_norm", see `Lexicon.score`.
        details: return a frame with the eight emotions and the reason of every undefined value.

    Returns:
        Series "emotional_entropy", or DataFrame (emotional_entropy, reason, anger ... trust), on
        the index of `table` at its own level, else one row per group. 0 to 2.079 under "sum";
        higher is more mixed, neither better nor worse. NaN for a response without words or
        without a single word of the lexicon.

    Reference: Giorgi et al. (2023), Human-centered metrics for dialog system evaluation, section 5.

    >>> turns = pd.DataFrame({"response": ["what wonderful news !", "a chair", ""]})
    >>> emotional_entropy(turns, "toy").round(3).tolist()
    [0.562, nan, nan]
    >>> emotional_entropy(turns, "toy", details=True)["reason"].tolist()
    ['', 'no emotion word in the response', 'no words in the response']
    """
    counts = tokens.response_counts(table, level)
    scores = emotion_vectors(counts, emotion_lexicon(lexicon), weighting)
    values = pd.Series(
        entropy(scores.to_numpy(), form), counts.index, name="emotional_entropy"
    )
    values = values.where(scores.sum(axis=1) > 0)
    if not details:
        return values
    return tokens.with_missing_reasons(
        values, _emotion_reasons(scores, "response"), scores
    )


@metric("emotional_entropy_paper", "psychological", version="1", provenance=_provenance)
def emotional_entropy_paper(
    table: pd.DataFrame, lexicon: Lexicon | str = "nrc", *, level: str = "turn"
) -> pd.Series:
    """Compute emotional entropy in the reading that reproduces Tables 15-18 of the paper.

    -sum_e v_e ln v_e, where v_e is the mean weight of the words that the lexicon knows for e and
    is not made to sum to 1. Strictly no entropy: it can exceed ln 8 and grows with the length of
    the reply. `emotional_entropy` is the formula of the text.

    Returns:
        Series "emotional_entropy_paper"; NaN as in `emotional_entropy`. Below 0 is possible where
        one mean weight is above 1.

    >>> turns = pd.DataFrame({"response": ["what wonderful news !", "a chair"]})
    >>> emotional_entropy_paper(turns, "toy").round(3).tolist()
    [-0.262, nan]
    """
    values = emotional_entropy(table, lexicon, level=level, **PAPER_ENTROPY)
    return values.rename("emotional_entropy_paper")


@metric(
    "emotion_matching",
    "psychological",
    ("context", "response"),
    version="1",
    provenance=_provenance,
)
def emotion_matching(
    table: pd.DataFrame,
    lexicon: Lexicon | str = "nrc",
    *,
    level: str = "turn",
    context: str | int | None = None,
    weighting: str = "relative",
    details: bool = False,
) -> pd.Series | pd.DataFrame:
    """Compute Spearman's correlation between the agent's eight emotions and the prompt's.

    Section 5, "Emotion Matching", a form of linguistic matching.

    Args:
        table, lexicon, level, weighting, details: as in `emotional_entropy`.
        context: what counts as the prompt, "all", "last" or a number, see `prompt_counts`.

    Returns:
        Series "emotion_matching", or DataFrame with the reason and both emotion vectors. -1
        (opposite order) to 1 (same order of emotions). NaN where response or prompt has no words
        or no emotion word, or all eight emotions are equal.

    Reference: Giorgi et al. (2023), section 5.

    >>> turns = pd.DataFrame({"context": [["i am so happy !"], []],
    ...                       "response": ["wonderful , i am glad", "glad"]})
    >>> emotion_matching(turns, "toy").round(3).tolist()
    [0.756, nan]
    """
    lexicon = emotion_lexicon(lexicon)
    responses = tokens.response_counts(table, level)
    prompts = tokens.prompt_counts(table, level, context)
    response_emotions = emotion_vectors(responses, lexicon, weighting)
    prompt_emotions = emotion_vectors(prompts, lexicon, weighting)
    # Spearman's correlation is Pearson's of the ranks; those of ties are averaged.
    response_ranks = response_emotions.rank(axis=1)
    values = response_ranks.corrwith(prompt_emotions.rank(axis=1), axis=1)
    values = values.rename("emotion_matching")
    if not details:
        return values
    reasons = _emotion_reasons(response_emotions, "response")
    reasons |= _emotion_reasons(prompt_emotions, "prompt")
    reasons["all emotions are equal"] = values.isna()
    response_emotions = response_emotions.add_prefix("response_")
    prompt_emotions = prompt_emotions.add_prefix("prompt_")
    return tokens.with_missing_reasons(
        values, reasons, response_emotions, prompt_emotions
    )


def _emotion_reasons(scores: pd.DataFrame, text: str) -> dict[str, pd.Series]:
    return {
        f"no words in the {text}": scores.isna().all(axis=1),
        f"no emotion word in the {text}": scores.sum(axis=1) == 0,
    }


def function_words() -> Lexicon:
    """Load our own closed-class word lists for the nine categories of style matching.

    Written from English grammar for this project (data/function_words.json). A word may belong to
    two categories ("won't" is an auxiliary verb and a negation). Weights are 1.

    >>> sorted(function_words().lookup("won't"))
    ['auxiliary_verbs', 'negations']
    """
    lists = json.loads(WORDS_FILE.read_text(encoding="utf-8"))["categories"]
    triples = []
    for category in FUNCTION_WORDS:
        triples += [(word, category, 1.0) for word in lists[category]]
    return from_triples("function_words", triples, WORDS_FILE)


def read_liwc(path: str | Path) -> Lexicon:
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
    sections = re.split(r"^\s*%\s*$", text, maxsplit=2, flags=re.MULTILINE)
    if len(sections) < 3:
        problem = "there are no two lines of '%' around the list of categories"
        raise DataError(
            problem, file=path, fix="name a LIWC dictionary in its .dic form"
        )
    _, header, entries = sections
    names = _category_names(header.splitlines())
    missing = set(FUNCTION_WORDS) - set(names.values())
    if missing:
        problem = (
            f"there is no category for {sorted(missing)}, only {list(names.values())}"
        )
        raise DataError(
            problem, file=path, fix="use LIWC2007 or later, which has all nine"
        )
    triples = []
    for line in entries.splitlines():
        term, _, numbers = line.strip().partition("\t")
        unconditional = re.sub(r"\(.*?\)|<.*?>", "x", numbers)
        for number in re.findall(r"(?<!\S)\d+(?!\S)", unconditional):
            triples.append((term, names.get(number, number), 1.0))
    return from_triples(Path(path).stem, triples, path)


def _category_names(header: list[str]) -> dict[str, str]:
    """Our name of each category number; the file's own name for other categories."""
    our_names = {short: name for name, short in FUNCTION_WORDS.items()}
    names = {}
    for line in header:
        if line.strip():
            number, name = line.split("(")[0].split(maxsplit=1)
            name = name.strip()
            # Some editions say "preps" and "adverbs".
            names[number] = our_names.get(name.lower().rstrip("s"), name)
    return names


def _style_lexicon(lexicon: Lexicon | str) -> Lexicon:
    if isinstance(lexicon, Lexicon):
        return lexicon
    return read_liwc(lexicon) if lexicon else function_words()


def _style_provenance(lexicon: str = "", **options) -> dict[str, str]:
    return _style_lexicon(lexicon).provenance()


@metric(
    NAME,
    "psychological",
    ("context", "response"),
    version="1",
    provenance=_style_provenance,
)
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
    lexicon = _style_lexicon(lexicon)
    responses = tokens.response_counts(table, level)
    prompts = tokens.prompt_counts(
        table, level, context=context, newline_tokens=newline_tokens
    )
    a = _percent(responses, lexicon, denominator)
    b = _percent(prompts, lexicon, denominator)
    similarity = 1 - np.abs(a - b) / (a + b + 0.0001)
    if both_zero == "skip":
        similarity[(a == 0) & (b == 0)] = np.nan
    similarity = pd.DataFrame(similarity, responses.index, list(FUNCTION_WORDS))
    values = similarity.mean(axis=1).rename(NAME)
    if not details:
        return values
    reasons = {
        "no words in the response": np.isnan(a[:, 0]),
        "no words in the prompt": np.isnan(b[:, 0]),
        "no function word on either side": values.isna(),
    }
    return tokens.with_missing_reasons(values, reasons, similarity)


def _percent(
    counts: tokens.TokenCounts, lexicon: Lexicon, denominator: str
) -> np.ndarray:
    totals = counts.word_totals if denominator == "words" else counts.totals
    matches = lexicon.matches(counts)[list(FUNCTION_WORDS)].to_numpy()
    return 100 * matches / np.where(totals > 0, totals, np.nan)[:, None]
