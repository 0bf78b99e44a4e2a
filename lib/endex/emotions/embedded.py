"""The emotion classifier that ships with the project: 28 logistic regressions on word pairs.

Features are the tf-idf of hashed words, marks and pairs of neighbours; the weights are half
precision, in data/models. It was trained on the GoEmotions train split (see `lib.endex.emotions.train`);
its record, beside the weights, states its scores on the test split.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy import sparse, special
from sklearn.feature_extraction.text import HashingVectorizer

from lib import ROOT
from lib.endex.emotions.labels import LABELS

WEIGHTS = ROOT / "data" / "models" / "goemotions.safetensors"
HASHES = 2**20  # so many that few of the 44,000 kept features share a number


def counts(texts: Sequence[str]) -> sparse.csr_matrix:
    """Counts of hashed words, marks and pairs of neighbours; shape (texts, HASHES)."""
    hashing = HashingVectorizer(
        n_features=HASHES,
        ngram_range=(1, 2),
        token_pattern=r"[\w']+|[^\w\s]",
        alternate_sign=False,
        norm=None,
    )
    return hashing.transform(texts)


def weigh(kept_counts: sparse.csr_matrix, idf: np.ndarray) -> sparse.csr_matrix:
    """(1 + log count) * idf, each row scaled to length 1; an empty row stays 0."""
    weighed = kept_counts.astype(np.float64)
    weighed.data = (1 + np.log(weighed.data)) * idf[weighed.indices]
    length = np.sqrt(np.asarray(weighed.multiply(weighed).sum(axis=1)).ravel())
    return sparse.diags(1 / np.where(length == 0, 1, length)) @ weighed


def probabilities(texts: Sequence[str], weights: Path = WEIGHTS) -> np.ndarray:
    """Probability of each label of GoEmotions for each text, labels not exclusive.

    Returns:
        Shape (texts, 28), range 0-1, columns in the order of `LABELS`. A text without words gets
        the probabilities of the bare intercepts.

    Raises:
        FileNotFoundError: the weights are missing; says how to make them.

    >>> row = probabilities(["Thank you so much, this made my day!"])[0]
    >>> LABELS[row.argmax()]
    'gratitude'
    """
    if len(texts) == 0:
        return np.empty((0, len(LABELS)))
    model = _load(weights)
    x = weigh(counts(texts)[:, model["kept"]], model["idf"])
    return special.expit(x @ model["coefficients"] + model["intercepts"])


def record(weights: Path = WEIGHTS) -> dict:
    """What the model was trained on, and its scores on the GoEmotions test split."""
    return json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))


@cache
def _load(weights: Path) -> dict[str, np.ndarray]:
    if not weights.is_file():
        raise FileNotFoundError(
            f"no emotion model at {weights.name}: make it with `python -m lib.endex.emotions.train` "
            "(30 seconds; it downloads GoEmotions)."
        )
    return {name: array.astype(np.float64 if array.dtype == np.float16 else array.dtype)
            for name, array in load_file(weights).items()}  # fmt: skip
