"""From RED to training pairs: the split by thread, made-up negatives, and matched lengths.

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
        seed: of the division.

    >>> parts = split(pd.DataFrame({"link": list("aabbccddee")}), validation=0.4)
    >>> [len(part) for part in parts]
    [6, 4]
    """
    hashes = [
        hashlib.md5(f"{seed}-{link}".encode()).hexdigest()[:8] for link in pairs["link"]
    ]
    rank = pd.Series(hashes, pairs.index, dtype=object).rank(method="dense")
    held_out = rank <= round(validation * rank.max())
    return pairs[~held_out], pairs[held_out]


def with_negatives(
    pairs: pd.DataFrame, ratio: float = 0.2, seed: int = 0
) -> pd.DataFrame:
    """EnDex+NS: part of the negatives replaced by rule-based ones, built from positives.

    The four kinds come in equal parts: words of another reply inserted, words deleted, the context
    copied, a generic reply. Built from the positives of the same part of the split only.

    Args:
        pairs: with context, response and label.
        ratio: share of the negatives that is replaced (the paper does not say how many).
        seed: of the draws.

    Returns:
        The same number of rows; `made` names the kind, "" for a pair of RED. Where a kind cannot be
        made of the reply drawn for it (see `negative_sample`), the negative of RED stays, and
        `attrs["not_made"]` counts it by kind.
    """
    rng = np.random.default_rng(seed)
    positives = pairs[pairs["label"] == 1].assign(made="")
    negatives = pairs[pairs["label"] == 0].assign(made="")
    n = min(round(ratio * len(negatives)), len(positives))
    sources = positives.iloc[rng.permutation(len(positives))[:n]]
    responses = positives["response"].to_numpy()

    made_rows = []
    not_made = dict.fromkeys(KINDS, 0)
    for position, source in enumerate(sources.to_dict("records")):
        kind = KINDS[position % len(KINDS)]
        other = responses[rng.integers(len(responses))]
        text = negative_sample(
            kind, source["context"], source["response"], other=other, rng=rng
        )
        if text is None:
            not_made[kind] += 1
        else:
            made_rows.append(source | {"response": text, "label": 0, "made": kind})

    n_remaining = len(negatives) - len(made_rows)
    remaining = negatives.iloc[rng.permutation(len(negatives))[:n_remaining]]
    made = pd.DataFrame(made_rows, columns=positives.columns).astype(positives.dtypes)
    mixed = pd.concat([positives, remaining, made], ignore_index=True)
    mixed.attrs["not_made"] = not_made
    return mixed


def negative_sample(
    kind: str, context: str, response: str, other: str, rng: np.random.Generator
) -> str | None:
    """A reply that nobody would give, made of one that somebody gave.

    - insertion: the first third of the words of `other`, rounded up, at random positions
    - deletion: about half of the words left out, at least one, and at least one stays
    - copying: the context repeated
    - generic: one of ten empty phrases

    Returns:
        Never the reply itself: None where the kind cannot be made. A reply without words has no
        position to insert at, one of a single word nothing to delete, an `other` without words
        nothing to insert, and a context without words nothing to copy.

    Raises:
        ValueError: an unknown kind; names those that there are.

    >>> negative_sample("copying", "Where to?", "Home.", "", np.random.default_rng(0))
    'Where to?'
    >>> negative_sample("deletion", "Where to?", "Home.", "", np.random.default_rng(0)) is None
    True
    """
    words = response.split()
    if kind == "insertion":
        made = " ".join(_insert_words(words, other.split(), rng))
    elif kind == "deletion":
        made = " ".join(_delete_words(words, rng))
    elif kind == "copying":
        made = context
    elif kind == "generic":
        phrases = [phrase for phrase in GENERIC if phrase.split() != words]
        made = phrases[rng.integers(len(phrases))]
    else:
        raise ValueError(f"kind {kind!r}: choose one of {', '.join(KINDS)}")
    if not made.split() or made.split() == words:
        return None
    return made


def _insert_words(
    words: list[str], other: list[str], rng: np.random.Generator
) -> list[str]:
    """The words with the first third of the other words at random positions; [] without words."""
    if not words:
        return []
    longer = list(words)
    for word in other[: max(1, len(other) // 3)]:
        longer.insert(int(rng.integers(len(longer) + 1)), word)
    return longer


def _delete_words(words: list[str], rng: np.random.Generator) -> list[str]:
    """About half of two or more words: at least one stays, and at least one goes; else []."""
    if len(words) < 2:
        return []
    remaining = [word for word in words if rng.random() < 0.5]
    if not remaining:
        return words[:1]
    if len(remaining) == len(words):
        return words[:-1]
    return remaining


def matched_in_length(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs whose classes have the same lengths: in each bin, the same number of both.

    A bin holds replies, and comments before them, of about the same number of words (from a power
    of two to the next). What a network learns from these pairs is not their length.

    >>> pairs = pd.DataFrame({"response": ["b", "c d e f", "g"], "label": [1, 1, 0]})
    >>> matched_in_length(pairs.assign(context="a"))["response"].tolist()
    ['b', 'g']
    """
    bins = []
    for name in ("context", "response"):
        n_words = pairs[name].str.split().str.len()
        bins.append(np.log2(n_words + 1).astype(int))
    position = pairs.groupby([*bins, pairs["label"]]).cumcount()
    labels = pairs["label"].groupby(bins)
    n_engaging = labels.transform("sum")
    n_other = labels.transform("size") - n_engaging
    return pairs[position < np.minimum(n_engaging, n_other)]


def cut_to_lengths(
    pairs: pd.DataFrame, turns: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
    """The pairs with texts as long as those of a dialogue: comment and reply, each cut by itself.

    Each pair takes the numbers of words of one turn, drawn at random: a text that is longer loses
    its end, whatever its class, and a shorter one stays.

    Args:
        pairs: with context and response.
        turns: turn table of dialogues; the last utterance of its context stands for the comment.
        seed: of the draw.

    >>> turns = pd.DataFrame({"context": [["Hi", "How are you?"]], "response": ["Fine."]})
    >>> cut_to_lengths(pd.DataFrame({"context": ["a b c d"], "response": ["e f"]}), turns).iloc[0]
    context     a b c
    response        e
    Name: 0, dtype: str
    """
    sample = turns.sample(len(pairs), replace=True, random_state=seed)
    models = {"context": sample["context"].str[-1], "response": sample["response"]}
    for name, texts in models.items():
        n_words = texts.str.split().str.len().clip(lower=1)
        cut = []
        for text, n in zip(pairs[name], n_words, strict=True):
            cut.append(" ".join(text.split()[:n]))
        pairs = pairs.assign(**{name: cut})
    return pairs
