"""Positive emotion of replies (GoEmotions), for the emotional dimension of engagement.

EnDex takes "the aggregate probability for all positive emotion categories" (appendix A.2). The
labels of GoEmotions are not exclusive, so their sum can exceed 1: here it is divided by the sum
over all 28 labels.

The classifier that ships with the project is 28 logistic regressions on the tf-idf of hashed words,
punctuation marks and pairs of neighbours; scripts/train_goemotions.py made it from the GoEmotions
train split, and its record, beside the weights, states its scores on the test split.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy import sparse, special
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from lib import ROOT, models
from lib.data.storage import read_json
from lib.data.turn_texts import score_where_text

WEIGHTS = ROOT / "data" / "models" / "goemotions.safetensors"
HASHES = 2**20  # enough that few of the 44,000 features of the model share a number
TOKEN = r"[\w']+|[^\w\s]"  # a word, or one punctuation mark
EMBEDDED = "embedded"

# The positive ones of GoEmotions (Demszky et al. 2020); some copies count two others as positive.
POSITIVE = (
    *("admiration", "amusement", "approval", "caring", "desire", "excitement"),
    *("gratitude", "joy", "love", "optimism", "pride", "relief"),
)
#: All 28, in the order of the embedded model.
LABELS = tuple(read_json(WEIGHTS.with_suffix(".json"))["labels"])


def positive_emotion(
    texts: Sequence[str], model: str = EMBEDDED, **options
) -> np.ndarray:
    """Share of the 12 positive labels in the probabilities of all 28 labels, for each text.

    Args:
        texts: n texts.
        model: "embedded", or the folder or hub id of a GoEmotions classifier.
        options: `device`, `dtype`, `revision`, `batch_tokens` of `models.load_classifier`.

    Returns:
        Shape (n,), range 0-1, higher is more positive; NaN for a missing or empty text.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: the model lacks one of the positive labels.

    >>> good, bad = positive_emotion(["I love this so much, thank you!", "You are a liar."])
    >>> bool(good > 0.8 > 0.3 > bad)
    True
    """
    return score_where_text(partial(_positive_share, model=model, **options), texts)


def record() -> dict:
    """What the embedded model was trained on, and its scores on the GoEmotions test split."""
    return read_json(WEIGHTS.with_suffix(".json"))


def probabilities(texts: Sequence[str], weights: Path = WEIGHTS) -> np.ndarray:
    """Probability of each label of GoEmotions for each text by the embedded model.

    Returns:
        Shape (texts, 28), range 0-1, columns in the order of `LABELS`; labels are not exclusive. A
        text without words gets the probabilities of the bare intercepts.

    >>> row = probabilities(["Thank you so much, this made my day!"])[0]
    >>> LABELS[row.argmax()]
    'gratitude'
    """
    model = {
        name: array.astype(np.float64) for name, array in load_file(weights).items()
    }
    columns = model["kept"].astype(int)  # of the features that the model reads
    x = tf_idf(counts(texts)[:, columns], model["idf"])
    return special.expit(x @ model["coefficients"] + model["intercepts"])


def counts(texts: Sequence[str]) -> sparse.csr_matrix:
    """Counts of hashed words, punctuation marks and pairs of neighbours; shape (texts, HASHES)."""
    hashing = HashingVectorizer(
        n_features=HASHES,
        token_pattern=TOKEN,
        ngram_range=(1, 2),
        alternate_sign=False,
        norm=None,
    )
    return hashing.transform(texts)


def tf_idf(feature_counts: sparse.csr_matrix, idf: np.ndarray) -> sparse.csr_matrix:
    """(1 + log count) * idf, each row scaled to length 1; an empty row stays 0."""
    tf_idf = TfidfTransformer(sublinear_tf=True)
    tf_idf.idf_ = idf
    return tf_idf.transform(feature_counts)


def _positive_share(texts: list[str], model: str, **options) -> np.ndarray:
    """The share, for texts that have a word, by the embedded model or one of the hub."""
    if model == EMBEDDED:
        labels = LABELS
        scores = probabilities(texts)
    else:
        classifier = models.load_classifier(model, **options)
        labels = [
            label.lower()
            for _, label in sorted(classifier.network.config.id2label.items())
        ]

        def label_probabilities(input_ids, attention_mask):
            return classifier(input_ids, attention_mask).logits.float().sigmoid()

        token_ids = models.token_ids(classifier, texts)
        scores = models.score_in_batches(classifier, label_probabilities, token_ids)
    missing = set(POSITIVE) - set(labels)
    if missing:
        raise ValueError(
            f"{model} has no label {', '.join(sorted(missing))}: not GoEmotions"
        )
    positive = [labels.index(label) for label in POSITIVE]
    return scores[:, positive].sum(axis=1) / scores.sum(axis=1)
