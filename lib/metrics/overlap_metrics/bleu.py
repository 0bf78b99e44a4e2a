"""BLEU-4 of one response, in three variants that smooth and tokenise differently.

BLEU (Papineni et al. 2002, https://aclanthology.org/P02-1040) is the geometric mean of the clipped
n-gram precisions p_1 ... p_4, times a brevity penalty BP for a response of c tokens that is shorter
than its reference of r tokens::

    BLEU-4 = BP * (p_1 p_2 p_3 p_4) ** (1/4)        BP = exp(1 - r / c) if c < r else 1

A single sentence often has no 4-gram in common, so p_4 = 0: what a variant puts in its place (the
smoothing) decides its score. With several references, an n-gram counts up to its largest count in
one of them, and r is the length nearest to c.
"""

from collections.abc import Sequence
from functools import lru_cache

import sacrebleu
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from pycocoevalcap.bleu.bleu_scorer import BleuScorer, cook_refs, cook_test

from lib.metrics.overlap_metrics.texts import normalize_answer, prepare, undefined

_EPSILON = SmoothingFunction(epsilon=1e-12).method1
_SACREBLEU = sacrebleu.BLEU(effective_order=True)


def bleu4_coco(response: str, references: Sequence[str]) -> float:
    """BLEU-4 of the COCO caption tools: text as it is, split at white space, case kept.

    Each precision is (matches + 1e-15) / (n-grams + 1e-9), so an order without a match costs a
    factor of about 1e-4 and an order that the response is too short for one of about 0.03: even a
    perfect reply of fewer than four tokens scores near 0. This variant gives the BLEU-4 rows of
    DialEvalMetrics (Yeh et al. 2021, https://aclanthology.org/2021.eancs-1.3).

    Parameters
    ----------
    response : str
        One response; a missing or blank one gives NaN.
    references : sequence of str
        Its references; none, or only blank ones, gives NaN.

    Returns
    -------
    float
        In [0, 1], higher is better.

    Raises
    ------
    TypeError
        When `references` is one text.

    Examples
    --------
    >>> round(bleu4_coco("we walk home in the rain", ["we walk home in the sun"]), 4)
    0.7598
    >>> bleu4_coco("we walk", ["we walk"]) < 0.001
    True
    """
    hypothesis, kept = prepare(response, references, str.strip)
    if not hypothesis or not kept:
        return undefined(hypothesis, kept)
    scorer, counted = BleuScorer(n=4), _counted(tuple(kept))
    scorer.crefs.append(counted)
    scorer.ctest.append(cook_test(hypothesis, counted))
    return scorer.compute_score(option="closest")[1][3][0]


@lru_cache(maxsize=4096)
def _counted(references: tuple[str, ...]) -> tuple[list[int], dict]:
    """Lengths and n-gram limits: many systems answer one context, so they are counted once."""
    return cook_refs(references)


def bleu4_nltk_normalized(response: str, references: Sequence[str]) -> float:
    """BLEU-4 of NLTK with 1e-12 for no match, on ParlAI-normalised text (ComperDial).

    The call of the ComperDial paper, footnote 17: `SmoothingFunction(epsilon=1e-12).method1`, that
    is 1e-12 matches for each order from 2 to 4 without one; no common word at all scores 0.
    Parameters, range, errors and missing values as in `bleu4_coco`; a response that holds only
    punctuation or articles scores 0.

    >>> round(bleu4_nltk_normalized("We walk home in the rain!", ["we walk home in the sun"]), 4)
    0.6687
    >>> bleu4_nltk_normalized("Never", ["We walk."])
    0.0
    """
    hypothesis, kept = prepare(response, references, normalize_answer)
    if not hypothesis or not kept:
        return undefined(hypothesis, kept)
    tokens = [text.split() for text in kept]
    return float(sentence_bleu(tokens, hypothesis.split(), smoothing_function=_EPSILON))


def bleu4_sacrebleu(response: str, references: Sequence[str]) -> float:
    """Sentence BLEU of sacrebleu, divided by 100: 13a tokenisation, exponential smoothing.

    The current standard of machine translation (Post 2018, https://aclanthology.org/W18-6319), with
    effective order: a response of two tokens is judged by its 1- and 2-grams. No paper of this
    project used it; it stands here as the variant to prefer in new work. Parameters, range, errors
    and missing values as in `bleu4_coco`.

    >>> round(bleu4_sacrebleu("we walk", ["we walk"]), 6)
    1.0
    """
    hypothesis, kept = prepare(response, references, str.strip)
    if not hypothesis or not kept:
        return undefined(hypothesis, kept)
    return _SACREBLEU.sentence_score(hypothesis, kept).score / 100
