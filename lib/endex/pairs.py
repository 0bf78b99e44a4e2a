"""Training pairs from RED: the split, classes of the same lengths, the made-up negatives.

A pair is one row with context (the parent comment), response (the post) and label (1 engaging).
"""

import hashlib

import numpy as np
import pandas as pd

GENERIC = [
    *("I don't know.", "Okay.", "That is nice.", "I am not sure.", "Yes."),
    *("Me too.", "Thanks.", "I see.", "Good for you.", "Maybe."),
]
KINDS = ("insertion", "deletion", "copying", "generic")


def split(
    pairs: pd.DataFrame, validation: float = 0.2, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Divide pairs into a training and a validation part (paper: .8 and .2).

    A thread falls wholly on one side, decided by the md5 of seed and thread, so that no comment
    is a response in training and a context in validation. The shares are therefore approximate.

    Args:
        pairs: with a column `link`, the thread (the paper does not say how it divided).
        validation: share of threads for validation.

    >>> parts = split(pd.DataFrame({"link": list("aabbccddee")}), validation=0.4)
    >>> [len(part) for part in parts]
    [6, 4]
    """
    draws = [int(hashlib.md5(f"{seed}-{i}".encode()).hexdigest()[:8], 16) for i in pairs["link"]]
    order = pd.Series(draws, pairs.index).rank(method="dense")
    held_out = order <= round(validation * order.max())
    return pairs[~held_out], pairs[held_out]


def with_negatives(pairs: pd.DataFrame, ratio: float = 0.2, seed: int = 0) -> pd.DataFrame:
    """EnDex+NS: part of the negatives replaced by rule-based ones, built from positives.

    The four kinds come in equal parts: words of another reply inserted, words deleted, the context
    copied, a generic reply. Built from the positives of the same part of the split only.

    Args:
        pairs: with context, response and label.
        ratio: share of the negatives that is replaced (the paper does not say how many).
        seed: of the draws.

    Returns:
        As many rows as before; `made` names the kind, "" for a pair of RED. Where a kind cannot be
        made of the reply drawn for it (see `corrupt`), the negative of RED stays, and
        `attrs["not_made"]` counts it by kind.
    """
    rng = np.random.default_rng(seed)
    positives = pairs[pairs["label"] == 1]
    negatives = pairs[pairs["label"] == 0]
    n = min(round(ratio * len(negatives)), len(positives))
    sources = positives.iloc[rng.permutation(len(positives))[:n]]
    kinds = [KINDS[i % len(KINDS)] for i in range(n)]
    replies = positives["response"].tolist()
    texts = [
        corrupt(kind, row.context, row.response, replies[rng.integers(len(replies))], rng)
        for kind, row in zip(kinds, sources.itertuples(), strict=True)
    ]
    tried = sources.assign(response=texts, label=0, made=kinds)
    made = tried.dropna(subset="response")
    kept = negatives.iloc[rng.permutation(len(negatives))[: len(negatives) - len(made)]]
    mixed = pd.concat([positives.assign(made=""), kept.assign(made=""), made], ignore_index=True)
    failed = tried.loc[tried["response"].isna(), "made"].value_counts()
    mixed.attrs["not_made"] = failed.reindex(KINDS, fill_value=0).to_dict()
    return mixed


def corrupt(
    kind: str, context: str, response: str, other: str, rng: np.random.Generator
) -> str | None:
    """A reply that nobody would give, made of one that somebody gave.

    insertion: a third of the words of `other` at random places; deletion: about half of the words
    left out, at least one, and at least one stays; copying: the context said again; generic: one of
    ten empty phrases.

    Returns:
        Never the reply itself: None where the kind cannot be made. A reply without words has no
        place to insert at, one of a single word nothing to delete, an `other` without words
        nothing to insert, and a context without words nothing to copy.

    >>> corrupt("copying", "Where to?", "Home.", "", np.random.default_rng(0))
    'Where to?'
    >>> corrupt("deletion", "Where to?", "Home.", "", np.random.default_rng(0)) is None
    True
    """
    words = response.split()
    if kind == "insertion":
        made = _inserted(words, other.split(), rng) if words else []
    elif kind == "deletion":
        made = _thinned(words, rng) if len(words) > 1 else []
    elif kind == "copying":
        return context if context.split() not in ([], words) else None
    elif kind == "generic":
        phrases = [phrase for phrase in GENERIC if phrase.split() != words]
        return phrases[int(rng.integers(len(phrases)))]
    else:
        raise ValueError(f"kind {kind!r}: choose one of {', '.join(KINDS)}")
    return " ".join(made) if made and made != words else None


def _inserted(words: list[str], other: list[str], rng: np.random.Generator) -> list[str]:
    """The words, with the first third of the other ones at random places."""
    words = list(words)
    for word in other[: max(1, len(other) // 3)]:
        words.insert(int(rng.integers(len(words) + 1)), word)
    return words


def _thinned(words: list[str], rng: np.random.Generator) -> list[str]:
    """About half of two or more words; the first where none was drawn, all but the last for all."""
    kept = [word for word in words if rng.random() < 0.5]
    return (kept or words[:1]) if len(kept) < len(words) else words[:-1]


def matched_in_length(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs whose classes have the same lengths: within each bin, as many of both.

    A bin holds replies, and comments before them, of about the same number of words (from a power
    of two to the next). What a network learns of these pairs it cannot have read off length.

    >>> few = pd.DataFrame({"context": "a", "response": ["b", "c d e f", "g"], "label": [1, 1, 0]})
    >>> matched_in_length(few)["response"].tolist()
    ['b', 'g']
    """
    words = (pairs[name].str.split().str.len() for name in ("context", "response"))
    bins = [np.log2(counted + 1).astype(int) for counted in words]
    place = pairs.groupby([*bins, pairs["label"]]).cumcount()
    engaging = pairs["label"].groupby(bins).transform("sum")
    others = pairs["label"].groupby(bins).transform("size") - engaging
    return pairs[place < np.minimum(engaging, others)]
