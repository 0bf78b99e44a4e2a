"""What a reader of the report must know before believing it."""

import pandas as pd

from lib.psychology import function_words

FEW_DIALOGS = 20
ENGLISH_SHARE = 0.25


def english_share(texts: pd.Series) -> float:
    """Share of tokens that are English function words: about .5 in talk, near 0 elsewhere.

    NaN when there is no token at all.

    >>> english_share(pd.Series(["I think that you are right"])) > 0.5
    True
    >>> english_share(pd.Series(["Das weiss ich leider nicht"]))
    0.0
    """
    words = set(function_words().weights)
    tokens = [t.strip(".,!?;:\"'()") for text in texts for t in str(text).lower().split()]
    tokens = [t for t in tokens if any(c.isalpha() for c in t)]
    return sum(t in words for t in tokens) / len(tokens) if tokens else float("nan")


def warnings(turns: pd.DataFrame) -> pd.DataFrame:
    """Everything about the file that limits what its scores can say.

    Checked: dialogs per agent, number of systems, empty and repeated responses, missing context,
    references and ratings, and the language (every metric here was made for English).

    Returns
    -------
    DataFrame with the columns topic, found, consequence; no row means nothing to warn of.

    >>> turns = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["1"],
    ...     "context": [[]], "response": [""], "reference": [[]]})
    >>> warnings(turns)["topic"].tolist()
    ['few dialogs', 'one system', 'empty replies', 'no context', 'no references', 'no ratings']
    """
    found = [check(turns) for check in _CHECKS]
    rows = [row for row in found if row is not None]
    return pd.DataFrame(rows, columns=["topic", "found", "consequence"])


def _few_dialogs(turns):
    keys = ["system", "agent"]
    count = turns.drop_duplicates([*keys, "dialog"]).groupby(keys).size()
    few = count[count < FEW_DIALOGS]
    if len(few):
        names = ", ".join(f"{' / '.join(dict.fromkeys(k))} ({n})" for k, n in few.head(5).items())
        return (
            "few dialogs",
            f"fewer than {FEW_DIALOGS} dialogs for {len(few)} agent(s): {names}",
            "intervals are wide and too narrow at once; collect more before ranking agents",
        )


def _one_system(turns):
    if turns["system"].nunique() == 1:
        return ("one system", f"only {turns['system'].iloc[0]!r}", "nothing to compare it with")


def _empty(turns):
    empty = turns["response"].str.strip().eq("")
    if empty.any():
        return (
            "empty replies",
            f"{empty.sum()} of {len(turns)} replies are empty",
            "they are scored where a metric is defined for them, and NaN elsewhere",
        )


def _repeated(turns):
    said = turns.loc[turns["response"].str.strip() != "", "response"]
    share = said.duplicated(keep=False).mean() if len(said) else 0.0
    if share > 0.2:
        return (
            "repeated replies",
            f"{share:.0%} of the replies occur more than once",
            "a bot that repeats itself can still score well turn by turn",
        )


def _no_context(turns):
    bare = turns["context"].map(len).eq(0)
    if bare.mean() > 0.2:
        return (
            "no context",
            f"{bare.mean():.0%} of the turns have no context",
            "matching metrics (style, emotion, context similarity) are missing there",
        )


def _no_references(turns):
    bare = turns["reference"].map(len).eq(0)
    if bare.any():
        return (
            "no references",
            f"{bare.mean():.0%} of the turns have no reference",
            "overlap metrics are missing there; reference-free metrics are not affected",
        )


def _no_ratings(turns):
    rated = [name for name in turns if name.startswith("human_") and turns[name].notna().any()]
    if not rated:
        return (
            "no ratings",
            "no column human_<dimension>",
            "how far the metrics agree with people is taken from public corpora, not from yours",
        )


def _not_english(turns):
    share = english_share(turns["response"])
    if share < ENGLISH_SHARE:
        return (
            "not English?",
            f"only {share:.0%} of the words are common English function words (talk: about 50%)",
            "lexica, encoder and classifiers are English: do not trust any score below",
        )


_CHECKS = (
    _few_dialogs,
    _one_system,
    _empty,
    _repeated,
    _no_context,
    _no_references,
    _no_ratings,
    _not_english,
)
