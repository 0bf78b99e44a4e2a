"""Overlap metrics: how many words and word sequences a response shares with its references.

Each variant is named by what it computes, because "BLEU" or "ROUGE" alone names a family whose
members disagree. `*_coco` are those of the COCO caption tools (pycocoevalcap), on unchanged text:
they and `meteor_15` give the published figures of DialEvalMetrics (Yeh et al. 2021,
https://aclanthology.org/2021.eancs-1.3). `*_normalized` are those of the ComperDial paper (Wakaki
et al. 2024, appendix C.2), on ParlAI-normalised text.

A variant takes one response and the list of its references. All are in [0, 1], higher is better.
NaN for a missing or blank response, and without a reference that holds a word; 0 for a response of
which normalisation leaves no word, such as "..."; TypeError where the references are no list of
texts. `overlap_scores` computes them for a turn table.

BLEU (Papineni et al. 2002, https://aclanthology.org/P02-1040) is the geometric mean of the clipped
n-gram precisions p_1 ... p_4, times a brevity penalty BP for a response of c tokens that is shorter
than its reference of r tokens::

    BLEU-4 = BP * (p_1 p_2 p_3 p_4) ** (1/4)        BP = exp(1 - r / c) if c < r else 1

A single sentence often has no 4-gram in common, so p_4 = 0: what a variant puts in its place (the
smoothing) decides its score. With several references, an n-gram counts up to its largest count in
one of them, and r is the length nearest to c.

ROUGE-L (Lin 2004, https://aclanthology.org/W04-1013) rests on the longest common subsequence (LCS):
the most words that appear in both texts in the same order, with gaps allowed::

    P = LCS / c        R = LCS / r        F_beta = (1 + beta^2) P R / (R + beta^2 P)

METEOR 1.5 (Denkowski and Lavie 2014, https://aclanthology.org/W14-3348) aligns the words of
response and reference by exact form, stem, synonym and paraphrase. From weighted precision P and
recall R, and from the number of contiguous chunks ch among the m matched words (English)::

    F = P R / (.85 P + .15 R)        METEOR = (1 - .6 (ch / m) ** .2) F

with no penalty for equal texts. It is the Java program of its authors, which pycocoevalcap ships,
because variants differ: NLTK's is an earlier formula, with other matches and weights.
"""

import atexit
import re
import shutil
import string
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, wraps
from types import SimpleNamespace

import numpy as np
import pandas as pd
import sacrebleu
from pycocoevalcap.bleu.bleu_scorer import BleuScorer
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge

from lib.data.turn_table import is_blank
from lib.metrics.registry import metric, missing_reasons

#: Every variant by name: a function of one response and its references.
OVERLAP: dict[str, Callable[[str, Sequence[str]], float]] = {}

NO_JAVA = (
    "METEOR is NaN: its program needs Java 8 or later on the PATH "
    "('apt install default-jre-headless', 'conda install openjdk' or 'brew install openjdk')"
)
_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_COCO_ROUGE = Rouge()
_SACREBLEU = sacrebleu.BLEU(effective_order=True)


def overlap_scores(
    turns: pd.DataFrame, metrics: Sequence[str], references: str = "all"
) -> pd.DataFrame:
    """Score each response of a turn table by its overlap with its references.

    Published system-level figures average these turn scores per system.

    Args:
        turns: turn table; uses `response` and `reference`.
        metrics: names from `OVERLAP`.
        references: "all" compares with every reference of a turn, "first" with the first one only.
            More references give higher scores, so compare only scores of the same choice.

    Returns:
        One float column per metric on `turns.index`, missing values as the variants have them.
        METEOR is NaN throughout, with a warning that says what to install, where there is no Java.
        `attrs["missing"]` counts the rows with a NaN by reason.

    Raises:
        ValueError: unknown metric.
        TypeError: a `reference` is not a list of texts.

    >>> turns = pd.DataFrame({"response": ["We walk home!", "Yes", None],
    ...                       "reference": [["walk home"], [], ["Yes"]]})
    >>> scores = overlap_scores(turns, ["word_f1_normalized", "rouge_l_recall_normalized"])
    >>> scores["word_f1_normalized"].tolist()
    [0.8, nan, nan]
    >>> scores.attrs["missing"] == {"no response": 1, "no reference": 1}
    True
    """
    for name in metrics:
        if name not in OVERLAP:
            raise ValueError(
                f"unknown metric {name!r}: choose from {', '.join(OVERLAP)}"
            )
    n_references = {"all": None, "first": 1}[references]
    texts = turns["reference"].str[:n_references]
    columns = {
        name: list(map(OVERLAP[name], turns["response"], texts)) for name in metrics
    }
    scores = pd.DataFrame(columns, turns.index, dtype=float)
    reasons = missing_reasons(turns, ("response", "reference"))[
        scores.isna().any(axis=1)
    ]
    scores.attrs["missing"] = reasons.value_counts().to_dict()
    return scores


def _variant(clean: Callable[[str], str]) -> Callable[[Callable], Callable]:
    """Enter a formula into OVERLAP; `clean` prepares the response and the references for it."""

    def decorate(formula: Callable[[str, list[str]], float]) -> Callable:
        @wraps(formula)
        def variant(response: str | None, references: Sequence[str]) -> float:
            if not isinstance(references, list | tuple | np.ndarray):
                hint = "write [reference], or [] for none"
                raise TypeError(f"{references!r:.60} is not a list of texts: {hint}")
            cleaned = [clean(text) for text in references if not is_blank(text)]
            cleaned = [text for text in cleaned if text]
            if is_blank(response) or not cleaned:
                return np.nan
            response = clean(response)
            return formula(response, cleaned) if response else 0.0

        OVERLAP[formula.__name__] = variant
        return variant

    return decorate


@lru_cache(maxsize=2**16)  # every system that answers a context has its references
def normalize_answer(text: str) -> str:
    """Lower-case a text, and turn punctuation, articles and runs of white space into one space.

    The ``normalize_answer`` of ParlAI, which the ComperDial paper applies before its overlap
    metrics (Wakaki et al. 2024, appendix C.2, Table 14). Punctuation is that of ASCII; it becomes
    a space, so "don't" is two words.

    >>> normalize_answer("The cat's  hat, a RED one!")
    'cat s hat red one'
    >>> normalize_answer("The ... a")
    ''
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


@_variant(str.strip)
def bleu4_coco(response: str, references: Sequence[str]) -> float:
    """BLEU-4 of the COCO caption tools: unchanged text, split at white space, case kept.

    Each precision is (matches + 1e-15) / (n-grams + 1e-9), so an order without a match costs a
    factor of about 1e-4 and an order that the response is too short for one of about 0.03: even a
    perfect reply of fewer than four tokens scores near 0.

    >>> round(bleu4_coco("we walk home in the rain", ["we walk home in the sun"]), 4)
    0.7598
    >>> bleu4_coco("we walk", ["we walk"]) < 0.001
    True
    """
    return BleuScorer(response, references).compute_score(option="closest")[1][3][0]


@_variant(str.strip)
def rouge_l_coco(response: str, references: Sequence[str]) -> float:
    """ROUGE-L of the COCO caption tools: F with beta = 1.2, so recall weighs more; case kept.

    Tokens end at each single blank: two blanks in a row enclose an empty token that counts and may
    match. With several references the best precision and the best recall are combined, even if
    they come from different ones.

    Here P = 3/4 and R = 3/3:

    >>> round(rouge_l_coco("we all walk home", ["we walk home"]), 4)
    0.8798
    """
    return float(_COCO_ROUGE.calc_score([response], references))


def one_line(text: str) -> str:
    r"""Make a text readable to METEOR's program: one line, without its separator of fields.

    >>> one_line("two\nlines ||| and\u2028more ")
    'two lines and more'
    """
    return " ".join(re.sub(r"\|{3,}|\0", " ", text).split())


@cache
def meteor_program() -> Meteor:
    """Start METEOR's Java program, which takes ten seconds; it serves until Python ends."""
    return Meteor()


atexit.register(meteor_program.cache_clear)


def _meteor(response: str, references: Sequence[str]) -> float:
    """METEOR of one response, the best of its references; NaN and a warning without Java."""
    if not shutil.which("java"):
        warnings.warn(NO_JAVA, stacklevel=3)
        return np.nan
    program = meteor_program()
    lines = [one_line(text) for text in references]
    try:
        return program.compute_score({0: lines}, {0: [one_line(response)]})[0]
    except (OSError, ValueError) as error:
        # The program gave no answer, and it keeps its lock then: the next call starts another.
        program.lock.release()
        meteor_program.cache_clear()
        hint = "check that 'java -version' works and that 2 GB of memory are free"
        raise RuntimeError(f"METEOR failed: {hint}") from error


@_variant(one_line)
def meteor_15(response: str, references: Sequence[str]) -> float:
    """METEOR 1.5 for English, with its own normalisation of punctuation; best of the references.

    The first call starts the program (some ten seconds); it ends with Python. Any white space and
    "|||" inside a text count as one blank. NaN, with a warning, where there is no Java.

    Raises:
        RuntimeError: the program fails or stops; the next call starts another.

    >>> meteor_15("", ["we walk home"])
    nan
    >>> meteor_15("we walk home", ["we walk home"])  # doctest: +SKIP
    1.0
    """
    return _meteor(response, references)


@_variant(normalize_answer)
def bleu4_nltk_normalized(response: str, references: Sequence[str]) -> float:
    """BLEU-4 of NLTK with 1e-12 for no match, on ParlAI-normalised text (ComperDial).

    The call of the ComperDial paper, footnote 17: `SmoothingFunction(epsilon=1e-12).method1`, that
    is 1e-12 matches for each order from 2 to 4 without one; no common word at all scores 0.

    >>> round(bleu4_nltk_normalized("We walk home in the rain!", ["we walk home in the sun"]), 4)
    0.6687
    >>> bleu4_nltk_normalized("Never", ["We walk."])
    0.0
    """
    from nltk.translate import bleu_score  # NLTK takes most of a second to import

    smoothing = bleu_score.SmoothingFunction(epsilon=1e-12).method1
    tokens = [text.split() for text in references]
    score = bleu_score.sentence_bleu(
        tokens, response.split(), smoothing_function=smoothing
    )
    return float(score)


@_variant(normalize_answer)
def word_f1_normalized(response: str, references: Sequence[str]) -> float:
    """F1 of the words that response and reference share, on ParlAI-normalised text.

    With m common words, each counted as often as it is in both texts, a response of c words and a
    reference of r words::

        P = m / c        R = m / r        F1 = 2 P R / (P + R) = 2 m / (c + r)

    The best of the references counts: the F1 row of the ComperDial paper (Table 4), after ParlAI.

    Two common words ("walk", "home") out of three and two:

    >>> word_f1_normalized("We walk home!", ["walk home"])
    0.8
    """
    words = Counter(response.split())
    scores = []
    for reference in references:
        gold = Counter(reference.split())
        scores.append(2 * (words & gold).total() / (words.total() + gold.total()))
    return max(scores)


@cache
def _rouge_scorer():
    """ROUGE-L of the `rouge-score` package on words separated by spaces.

    The package's own tokenizer drops every letter beyond a-z; the text is normalised already.
    """
    from rouge_score.rouge_scorer import RougeScorer  # imports NLTK

    words = SimpleNamespace(tokenize=str.split)
    return RougeScorer(["rougeL"], tokenizer=words)


@_variant(normalize_answer)
def rouge_l_f1_normalized(response: str, references: Sequence[str]) -> float:
    """ROUGE-L F1 (beta = 1) on ParlAI-normalised text, without stemming; best of the references.

    Computed by the `rouge-score` package. The ComperDial paper (appendix C.2) names "Rouge_l score"
    on normalised text, not whether F1 or recall; `rouge_l_recall_normalized` is the other reading.

    >>> round(rouge_l_f1_normalized("We all walk home.", ["we walk home"]), 4)
    0.8571
    """
    scorer = _rouge_scorer()
    return max(scorer.score(text, response)["rougeL"].fmeasure for text in references)


@_variant(normalize_answer)
def rouge_l_recall_normalized(response: str, references: Sequence[str]) -> float:
    """ROUGE-L recall on ParlAI-normalised text, without stemming; best of the references.

    ParlAI, whose normalisation, word F1 and BLEU the ComperDial paper used, reports recall (through
    another package, which stems).

    >>> rouge_l_recall_normalized("We all walk home.", ["we walk home", "we all walk home late"])
    1.0
    """
    scorer = _rouge_scorer()
    return max(scorer.score(text, response)["rougeL"].recall for text in references)


@_variant(normalize_answer)
def meteor_15_normalized(response: str, references: Sequence[str]) -> float:
    """METEOR 1.5 on ParlAI-normalised text: ComperDial's METEOR, as far as it is known.

    The paper names the normalisation (appendix C.2, Table 14), not the program. Errors as in
    `meteor_15`.

    >>> meteor_15_normalized("The ...", ["we walk home"])
    0.0
    """
    return _meteor(response, references)


@_variant(str.strip)
def bleu4_sacrebleu(response: str, references: Sequence[str]) -> float:
    """Sentence BLEU of sacrebleu, divided by 100: 13a tokenisation, exponential smoothing.

    The current standard of machine translation (Post 2018, https://aclanthology.org/W18-6319), with
    effective order: a response of two tokens is judged by its 1- and 2-grams. No paper of this
    project used it; it stands here as the variant to prefer in new work.

    >>> round(bleu4_sacrebleu("we walk", ["we walk"]), 6)
    1.0
    """
    return _SACREBLEU.sentence_score(response, references).score / 100


def _java_provenance(references: str = "all") -> dict[str, bool]:
    """METEOR that is NaN because there is no Java is not to be read back once there is one."""
    return {"java": bool(shutil.which("java"))}


def _register(name: str, **fields) -> None:
    def score(turns: pd.DataFrame, references: str = "all") -> pd.Series:
        return overlap_scores(turns, [name], references)[name]

    metric(name, "overlap", ("response", "reference"), version="1", **fields)(score)


for _name in OVERLAP:
    if _name.startswith("meteor"):
        _register(_name, provenance=_java_provenance)
    else:
        _register(_name)
