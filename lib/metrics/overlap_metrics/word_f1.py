"""Word F1 of one response: common words, without their order."""

from collections import Counter
from collections.abc import Sequence

from lib.metrics.overlap_metrics.texts import normalize_answer, prepare, undefined


def word_f1_normalized(response: str, references: Sequence[str]) -> float:
    """F1 of the words that response and reference share, on ParlAI-normalised text.

    With m common words, each counted as often as it is in both texts, a response of c words and a
    reference of r words::

        P = m / c        R = m / r        F1 = 2 P R / (P + R) = 2 m / (c + r)

    The best of the references counts. The F1 row of the ComperDial paper (Wakaki et al. 2024,
    Table 4, appendix C.2), after ParlAI.

    Parameters
    ----------
    response : str
        One response; a missing or blank one gives NaN.
    references : sequence of str
        Its references; none, or only texts without a word, gives NaN.

    Returns
    -------
    float
        In [0, 1], higher is better. 0 for a response that holds only punctuation or articles.

    Raises
    ------
    TypeError
        When `references` is one text.

    Examples
    --------
    Two common words ("walk", "home") out of three and two:

    >>> word_f1_normalized("We walk home!", ["walk home"])
    0.8
    """
    hypothesis, kept = prepare(response, references, normalize_answer)
    if not hypothesis or not kept:
        return undefined(hypothesis, kept)
    words = hypothesis.split()
    return max(_f1(words, reference.split()) for reference in kept)


def _f1(words: list[str], reference: list[str]) -> float:
    common = (Counter(words) & Counter(reference)).total()
    return 2 * common / (len(words) + len(reference))
