"""Positive emotion of replies (GoEmotions), for the emotional dimension of engagement.

EnDex takes "the aggregate probability for all positive emotion categories" (appendix A.2). The
labels of GoEmotions are not exclusive, so their sum can exceed 1: here it is divided by the sum
over all 28 labels.

The classifier that ships with the project is 28 logistic regressions on the tf-idf of hashed words,
marks and pairs of neighbours; data/models/train_goemotions.py made it from the GoEmotions train
split, and its record, beside the weights, states its scores on the test split.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from safetensors.numpy import load_file
from scipy import sparse, special
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from tqdm.auto import tqdm

from lib import ROOT, models
from lib.data.storage import sha256, written_whole
from lib.data.turn_table import is_blank
from lib.endex.reddit import parquet_files

WEIGHTS = ROOT / "data" / "models" / "goemotions.safetensors"
HASHES = 2**20  # so many that few of the 44,000 kept features share a number
TOKEN = r"[\w']+|[^\w\s]"  # a word, or one mark
EMBEDDED = "embedded"
PART = 50_000  # texts in a file of scores: what an interruption can cost at most

# The labels of GoEmotions (Demszky et al. 2020); some copies count two of the others as positive.
POSITIVE = (
    *("admiration", "amusement", "approval", "caring", "desire", "excitement"),
    *("gratitude", "joy", "love", "optimism", "pride", "relief"),
)
OTHERS = (
    *("anger", "annoyance", "confusion", "curiosity", "disappointment", "disapproval", "disgust"),
    *("embarrassment", "fear", "grief", "nervousness", "realization", "remorse", "sadness"),
    "surprise",
)
LABELS = (*sorted(POSITIVE + OTHERS), "neutral")

# Usable answers to a comment that is itself an answer: the others never reach a score.
REPLIES = """
select reply.id, reply.body
from comments reply
join comments post on post.id = reply.parent
where reply.tokens is not null and post.parent is not null and post.usable
order by reply.id
"""


def positive_emotion(texts: Sequence[str], model: str = EMBEDDED, **options) -> np.ndarray:
    """Share of the 12 positive labels in the probabilities of all 28 labels, for each text.

    Args:
        texts: n texts.
        model: "embedded", or the folder or hub id of a GoEmotions classifier.
        options: `device`, `dtype`, `revision` of `models.load_classifier`.

    Returns:
        Shape (n,), range 0-1, higher is more positive; NaN for a missing or empty text.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: the model lacks one of the positive labels.

    >>> good, bad = positive_emotion(["I love this so much, thank you!", "You are a liar."])
    >>> bool(good > 0.8 > 0.3 > bad)
    True
    """
    there = np.array([not is_blank(text) for text in texts], dtype=bool)
    known = [text for text in texts if not is_blank(text)]
    share = np.full(len(texts), np.nan)
    if known:
        scored, labels = _scored(known, model, **options)
        if missing := set(POSITIVE) - set(labels):
            raise ValueError(f"{model} has no label {', '.join(sorted(missing))}: not GoEmotions")
        positive = [labels.index(name) for name in POSITIVE]
        share[there] = scored[:, positive].sum(axis=1) / scored.sum(axis=1)
    return share


def score_replies(
    comments: str | Path, folder: str | Path, model: str = EMBEDDED, **options
) -> Path:
    """Write the positive emotion of replies as Parquet with id and ee; finished parts are kept.

    A part is named by what it depends on: weights, options and texts. Others are removed.

    Args:
        comments: folder written by `to_parquet`.
        folder: where the parts go.
        model, options: as in `positive_emotion`.

    Returns:
        The folder, to be passed to `build(emotions=...)`.
    """
    folder, files, parts = Path(folder), [str(file) for file in parquet_files(comments)], []
    embedded = model == EMBEDDED
    weights = sha256(WEIGHTS) if embedded else models.find(model, options.get("revision")).sha256
    with duckdb.connect() as connection, tqdm(unit=" texts", desc="ee", leave=False) as bar:
        connection.register("comments", connection.read_parquet(files))
        rows = connection.execute(REPLIES)
        while (replies := rows.fetchmany(PART)) or not parts:
            made_of = json.dumps([weights, options, replies], default=str).encode()
            parts.append(folder / f"part-{hashlib.sha256(made_of).hexdigest()[:16]}.parquet")
            if not parts[-1].is_file():
                frame = pd.DataFrame(replies, columns=["id", "text"], dtype="str")
                frame["ee"] = positive_emotion(frame.pop("text"), model, **options)
                with written_whole(parts[-1]) as unfinished:
                    frame.to_parquet(unfinished)
            bar.update(len(replies))
    for stale in set(folder.glob("*.parquet")) - set(parts):
        stale.unlink()
    return folder


def record() -> dict:
    """What the embedded model was trained on, and its scores on the GoEmotions test split."""
    return json.loads(WEIGHTS.with_suffix(".json").read_text(encoding="utf-8"))


def probabilities(texts: Sequence[str], weights: Path = WEIGHTS) -> np.ndarray:
    """Probability of each label of GoEmotions for each text by the embedded model.

    Returns:
        Shape (texts, 28), range 0-1, columns in the order of `LABELS`; labels are not exclusive. A
        text without words gets the probabilities of the bare intercepts.

    >>> row = probabilities(["Thank you so much, this made my day!"])[0]
    >>> LABELS[row.argmax()]
    'gratitude'
    """
    model = {name: part.astype(np.float64) for name, part in load_file(weights).items()}
    x = weigh(counts(texts)[:, model["kept"].astype(int)], model["idf"])
    return special.expit(x @ model["coefficients"] + model["intercepts"])


def counts(texts: Sequence[str]) -> sparse.csr_matrix:
    """Counts of hashed words, marks and pairs of neighbours; shape (texts, HASHES)."""
    hashing = HashingVectorizer(
        n_features=HASHES, token_pattern=TOKEN, ngram_range=(1, 2), alternate_sign=False, norm=None
    )
    return hashing.transform(texts)


def weigh(kept_counts: sparse.csr_matrix, idf: np.ndarray) -> sparse.csr_matrix:
    """(1 + log count) * idf, each row scaled to length 1; an empty row stays 0."""
    weighing = TfidfTransformer(sublinear_tf=True)
    weighing.idf_ = idf
    return weighing.transform(kept_counts)


def _scored(texts: list[str], name: str, **options) -> tuple[np.ndarray, Sequence[str]]:
    """Probability of each label by the embedded model or one of the hub, and the labels."""
    if name == EMBEDDED:
        return probabilities(texts), LABELS
    model = models.load_classifier(name, **options)

    def read(tokens, mask):
        return model.network(input_ids=tokens, attention_mask=mask).logits.float().sigmoid()

    labels = model.network.config.id2label
    scores = models.infer(model, read, models.token_ids(model, texts))
    return scores, [labels[i].lower() for i in range(len(labels))]
