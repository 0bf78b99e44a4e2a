"""Positive emotion of replies (GoEmotions), for the emotional dimension of engagement.

EnDex takes "the aggregate probability for all positive emotion categories" (appendix A.2). The
labels of GoEmotions are not exclusive, so their sum can exceed 1: here it is divided by the sum
over all 28 labels.

The classifier that ships with the project is 28 logistic regressions on the tf-idf of hashed words,
marks and pairs of neighbours; data/models/train_goemotions.py made it from the GoEmotions train
split, and its record, beside the weights, states its scores on the test split.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from safetensors.numpy import load_file
from scipy import sparse, special
from sklearn.feature_extraction.text import HashingVectorizer
from tqdm.auto import tqdm

from lib import ROOT
from lib.data.storage import written_whole
from lib.endex.reddit import parquet_files

WEIGHTS = ROOT / "data" / "models" / "goemotions.safetensors"
HASHES = 2**20  # so many that few of the 44,000 kept features share a number
EMBEDDED = "embedded"
BLOCK = 20_000  # texts per call of the embedded model
PART = 50_000  # texts in a file of scores: what an interruption can cost at most

# The 28 labels of GoEmotions (Demszky et al. 2020).
POSITIVE = (
    *("admiration", "amusement", "approval", "caring", "desire", "excitement"),
    *("gratitude", "joy", "love", "optimism", "pride", "relief"),
)
NEGATIVE = (
    *("anger", "annoyance", "disappointment", "disapproval", "disgust", "embarrassment"),
    *("fear", "grief", "nervousness", "remorse", "sadness"),
)
AMBIGUOUS = ("confusion", "curiosity", "realization", "surprise")  # some copies call two positive
LABELS = (*sorted(POSITIVE + NEGATIVE + AMBIGUOUS), "neutral")

# Usable answers to a comment that is itself an answer: the others never reach a score.
REPLIES = """
select reply.id, reply.body
from comments reply
join comments post on post.id = reply.parent
where reply.tokens is not null and post.parent is not null and post.usable
order by reply.id
"""

# Answered answers and the comments they answer: what the toxicity filter looks at.
POSTS = """
with posts as (
    select distinct post.id, post.parent
    from comments post
    join comments reply on reply.parent = post.id
    where post.parent is not null and post.usable
)
select id, body from comments
where id in (select id from posts) or id in (select parent from posts)
order by id
"""


def positive_emotion(texts: Sequence[str], model: str = EMBEDDED, **options) -> np.ndarray:
    """Share of the 12 positive labels in the probabilities of all 28 labels, for each text.

    Args:
        texts: n texts.
        model: "embedded", or the folder or hub id of a GoEmotions classifier.
        options: `device`, `dtype`, `revision` of `models.load_classifier`; and `softmax=True` for
            a checkpoint whose labels are exclusive.

    Returns:
        Shape (n,), range 0-1, higher is more positive; NaN for a missing or empty text.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: the model lacks one of the positive labels.

    >>> good, bad = positive_emotion(["I love this so much, thank you!", "You are a liar."])
    >>> bool(good > 0.8 > 0.3 > bad)
    True
    """
    texts = pd.Series(list(texts), dtype="object")
    there = texts.map(lambda text: isinstance(text, str) and bool(text.strip())).to_numpy(bool)
    share = np.full(len(texts), np.nan)
    if there.any():
        known = texts[there].tolist()
        scored, labels = _embedded(known) if model == EMBEDDED else _network(known, model, options)
        if missing := set(POSITIVE) - set(labels):
            raise ValueError(f"{model} has no label {', '.join(sorted(missing))}: not GoEmotions")
        positive = [labels.index(name) for name in POSITIVE]
        share[there] = scored[:, positive].sum(axis=1) / scored.sum(axis=1)
    return share


def score_replies(
    comments: str | Path, folder: str | Path, model: str = EMBEDDED, **options
) -> Path:
    """Write the positive emotion of replies as Parquet with id and ee; finished parts are kept.

    Args:
        comments: folder written by `to_parquet`.
        folder: where the parts go; another model, option or text starts anew.
        model, options: as in `positive_emotion`.

    Returns:
        The folder, to be passed to `build(emotions=...)`.
    """

    def score(texts: Sequence[str]) -> np.ndarray:
        return positive_emotion(texts, model, **options)

    return _score_texts(comments, REPLIES, folder, "ee", score, [str(model), options])


def score_toxicity(comments: str | Path, folder: str | Path, **options) -> Path:
    """Write the toxicity of posts and their parents as Parquet with id and toxicity.

    The filter of appendix A.1, with the weights of Detoxify, which are not packaged.

    Args:
        comments, folder: as in `score_replies`.
        options: of `lib.metrics.toxicity`.

    Returns:
        The folder, to be passed to `build(toxicity=...)`.
    """
    from lib import metrics

    def score(texts: Sequence[str]) -> np.ndarray:
        return metrics.toxicity(pd.DataFrame({"response": texts}), **options).to_numpy()

    return _score_texts(comments, POSTS, folder, "toxicity", score, options)


def record(weights: Path = WEIGHTS) -> dict:
    """What the embedded model was trained on, and its scores on the GoEmotions test split."""
    return json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))


def probabilities(texts: Sequence[str], weights: Path = WEIGHTS) -> np.ndarray:
    """Probability of each label of GoEmotions for each text by the embedded model.

    Returns:
        Shape (texts, 28), range 0-1, columns in the order of `LABELS`; labels are not exclusive. A
        text without words gets the probabilities of the bare intercepts.

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


@cache
def _load(weights: Path) -> dict[str, np.ndarray]:
    if not weights.is_file():
        raise FileNotFoundError(
            f"no emotion model at {weights.name}: make it with `python -m "
            "data.models.train_goemotions` (30 seconds; it downloads GoEmotions)."
        )
    arrays = load_file(weights)
    return {k: a.astype(np.float64) if a.dtype == np.float16 else a for k, a in arrays.items()}


def _embedded(texts: list[str]) -> tuple[np.ndarray, list[str]]:
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    return np.vstack([probabilities(block) for block in blocks]), list(LABELS)


def _network(texts: list[str], name: str, options: dict) -> tuple[np.ndarray, list[str]]:
    # Torch takes seconds to import, and the embedded model does without.
    import torch

    from lib.models import infer, load_classifier, token_ids

    options = dict(options)
    squash = torch.softmax if options.pop("softmax", False) else lambda x, _: torch.sigmoid(x)
    model = load_classifier(name, **options)

    def score(tokens: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        given = {"input_ids": tokens, "attention_mask": mask}
        return squash(model.network(**given).logits.float(), -1)

    labels = model.network.config.id2label
    scores = infer(model, score, token_ids(model, texts))
    return scores, [labels[i].lower() for i in range(len(labels))]


def _score_texts(
    comments: str | Path,
    which: str,
    folder: str | Path,
    column: str,
    score: Callable[[Sequence[str]], np.ndarray],
    made_by: object,
) -> Path:
    """Write the scores of the texts that a query over `comments` gives, in its order."""
    folder, files = Path(folder), [str(file) for file in parquet_files(comments)]
    with duckdb.connect() as connection, tqdm(unit=" texts", desc=column, leave=False) as bar:
        connection.register("comments", connection.read_parquet(files))
        read = f"select count(*), cast(bit_xor(hash(id, body)) as varchar) from ({which})"
        _keep_or_restart(folder, [column, made_by, *connection.execute(read).fetchone()])
        rows, number = connection.execute(which), 0
        while (part := rows.fetchmany(PART)) or number == 0:
            target = folder / f"part-{number:05d}.parquet"
            if not target.is_file():
                ids, texts = zip(*part, strict=True) if part else ((), ())
                scores = {
                    "id": pd.Series(ids, dtype="str"),
                    column: np.asarray(score(texts), float),
                }
                with written_whole(target) as unfinished:
                    pd.DataFrame(scores).to_parquet(unfinished)
            number += 1
            bar.update(len(part))
    return folder


def _keep_or_restart(folder: Path, made_of: list) -> None:
    """Empty a folder whose scores are of another model, of other options or of other texts."""
    at, stated = folder / "_record.json", json.dumps(made_of, default=str) + "\n"
    if not at.is_file() or at.read_text(encoding="utf-8") != stated:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        at.write_text(stated, encoding="utf-8")
