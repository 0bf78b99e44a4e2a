"""ROUGE-L of one response, in three variants.

ROUGE-L (Lin 2004, https://aclanthology.org/W04-1013) rests on the longest common subsequence (LCS):
the most words that appear in both texts in the same order, with gaps allowed. For a response of c
tokens and a reference of r tokens::

    P = LCS / c        R = LCS / r        F_beta = (1 + beta^2) P R / (R + beta^2 P)
"""

from collections.abc import Sequence

from pycocoevalcap.rouge.rouge import Rouge
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.scoring import Score
from rouge_score.tokenizers import Tokenizer

from lib.metrics.overlap_metrics.texts import normalize_answer, prepare, undefined

_COCO = Rouge()


class _Words(Tokenizer):
    """The package's own tokenizer drops every letter beyond a-z; the text is normalised already."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()


_ROUGE_L = RougeScorer(["rougeL"], tokenizer=_Words())


def rouge_l_coco(response: str, references: Sequence[str]) -> float:
    """ROUGE-L of the COCO caption tools: F with beta = 1.2, so recall weighs more; case kept.

    Tokens end at each single blank: two blanks in a row enclose an empty token that counts and may
    match. With several references the best precision and the best recall are combined, even if
    they come from different ones. This variant gives the ROUGE-L rows of DialEvalMetrics
    (Yeh et al. 2021, https://aclanthology.org/2021.eancs-1.3).

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
    P = 3/4 and R = 3/3:

    >>> round(rouge_l_coco("we all walk home", ["we walk home"]), 4)
    0.8798
    """
    hypothesis, kept = prepare(response, references, str.strip)
    if not hypothesis or not kept:
        return undefined(hypothesis, kept)
    return float(_COCO.calc_score([hypothesis], kept))


def rouge_l_f1_normalized(response: str, references: Sequence[str]) -> float:
    """ROUGE-L F1 (beta = 1) on ParlAI-normalised text, without stemming; best of the references.

    Computed by the `rouge-score` package. The ComperDial paper (appendix C.2) names "Rouge_l score"
    on normalised text, not whether F1 or recall; `rouge_l_recall_normalized` is the other reading.
    Parameters, range, errors and missing values as in `rouge_l_coco`; a response that holds
    only punctuation or articles scores 0.

    >>> round(rouge_l_f1_normalized("We all walk home.", ["we walk home"]), 4)
    0.8571
    """
    scores = _rouge_l(response, references)
    return scores if isinstance(scores, float) else max(score.fmeasure for score in scores)


def rouge_l_recall_normalized(response: str, references: Sequence[str]) -> float:
    """ROUGE-L recall on ParlAI-normalised text, without stemming; best of the references.

    ParlAI, whose normalisation, word F1 and BLEU the ComperDial paper used, reports recall (through
    another package, which stems). Parameters, range, errors and missing values as in
    `rouge_l_f1_normalized`.

    >>> rouge_l_recall_normalized("We all walk home.", ["we walk home", "we all walk home late"])
    1.0
    """
    scores = _rouge_l(response, references)
    return scores if isinstance(scores, float) else max(score.recall for score in scores)


def _rouge_l(response: str, references: Sequence[str]) -> list[Score] | float:
    hypothesis, kept = prepare(response, references, normalize_answer)
    if not hypothesis or not kept:
        return undefined(hypothesis, kept)
    return [_ROUGE_L.score(reference, hypothesis)["rougeL"] for reference in kept]
