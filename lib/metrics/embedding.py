"""Metrics that compare texts by the vectors of a pretrained encoder.

BERTScore (Zhang et al. 2020) matches the tokens of two texts one by one; embedding similarity
compares one vector per text. Both are real out of the box with the packaged MiniLM encoder; the
encoder of a paper is a parameter, and every score depends on it.
"""

from collections.abc import Sequence
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from lib.data.turn_table import is_blank
from lib.data.turn_texts import best_over_texts, earlier_utterances, score_where_text
from lib.metrics.registry import metric
from lib.models import DEFAULT_ENCODER, Model, load_encoder, score_in_batches, token_ids

# Layers that the authors chose on WMT16, of the encoders of the papers; of any other the last.
LAYERS = {"FacebookAI/roberta-large": 17, "google-bert/bert-base-multilingual-cased": 9}
COMPARED = ("response", "reference")
BLOCK = 500  # pairs whose token vectors are held at a time: some 20 MB of the packaged encoder's
DIGITS = 6  # of a score: below them two machines differ, and equal texts would not reach 1
MAX_TOKENS = 256  # of a text that becomes one vector: what the packaged encoder was trained with
#: Vectors of texts that an encoder has read; forgotten once there are more than MEMORY of them.
_VECTORS: WeakKeyDictionary[Model, dict] = WeakKeyDictionary()
MEMORY = 50_000


def bertscore_pairs(
    hypotheses: Sequence[str], references: Sequence[str], encoder: str = DEFAULT_ENCODER, **options
) -> np.ndarray:
    """Score hypotheses against one reference each.

    With unit vectors x of the reference's tokens and y of the hypothesis' tokens,
    P = mean over y of max over x of x·y, R = mean over x of max over y, F1 = 2PR / (P + R)
    (Zhang et al. 2020, section 3, without idf weights). Start and end tokens can be matched but do
    not count themselves.

    Args:
        hypotheses, references: texts, n of each.
        encoder: folder or hub id; the scores of two encoders do not compare.
        options: `device`, `dtype`, `revision` and `layers` of `lib.models.load_encoder`. Vectors
            are those of the last layer kept: the authors' for a paper's encoder, else the last.

    Returns:
        Shape (n, 3): precision, recall, F1, rounded to six decimals; in [-1, 1], in practice above
        0; higher is closer, equal texts reach exactly 1. NaN where a text is blank or has no token
        of its own. Each different pair is scored once, and the vectors held at a time do not grow
        with n.

    Reference: Zhang et al. (2020), BERTScore, ICLR.

    >>> scores = bertscore_pairs(["i drink tea", ""], ["i drink tea", "hello"])
    >>> print(scores.round(3).tolist())
    [[1.0, 1.0, 1.0], [nan, nan, nan]]
    """
    chosen = {"layers": LAYERS[encoder]} if encoder in LAYERS else {}
    model = load_encoder(encoder, **{**chosen, **options})
    asked = list(zip(hypotheses, references, strict=True))
    # Pairs of one reference stand together, so that a block encodes it once.
    pairs = sorted({pair for pair in asked if not any(map(is_blank, pair))}, key=lambda p: p[::-1])
    found = {}
    for block in (pairs[start : start + BLOCK] for start in range(0, len(pairs), BLOCK)):
        vectors = _token_vectors(model, sorted({text for pair in block for text in pair}))
        found |= {(y, x): _match(*vectors[y], *vectors[x]) for y, x in block}
    scores = [found.get(pair, (np.nan,) * 3) for pair in asked]
    return np.array(scores, dtype=float).reshape(-1, 3).round(DIGITS)


def _token_vectors(model: Model, texts: list[str]) -> dict:
    """Unit vectors of the tokens of each text, and whether a token counts.

    The vectors of the texts themselves come of the same reading and are kept.
    """
    stripped = [text.strip() for text in texts]
    ids, vectors = token_ids(model, stripped), {}
    special = [model.tokenizer.cls_token_id, model.tokenizer.sep_token_id]

    def read(tokens, mask, place, _):
        hidden = model(tokens, mask).last_hidden_state.float()
        unit = (hidden / hidden.norm(dim=-1, keepdim=True)).cpu().numpy()
        for row, own in zip(place[:, 0].tolist(), unit, strict=True):
            vectors[texts[row]] = own[: len(ids[row])], ~np.isin(ids[row], special)
        return _mean(hidden, mask)

    means = score_in_batches(model, read, ids, [[row] for row in range(len(ids))], tokens=1024)
    _keep(model, stripped, ids, means)
    return vectors


def _mean(hidden, mask):
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return mean / mean.norm(dim=-1, keepdim=True)


def _keep(model: Model, texts: list[str], ids: list[list[int]], vectors: np.ndarray) -> None:
    """Remember the vectors of texts that were read whole; one without a token is NaN."""
    special = set(model.tokenizer.all_special_ids) - {model.tokenizer.unk_token_id}
    for text, row, vector in zip(texts, ids, vectors, strict=True):
        if len(row) <= MAX_TOKENS:
            vector = np.where(special.issuperset(row), np.nan, vector)
            _VECTORS.setdefault(model, {})[text] = vector.astype(np.float32)


def _match(y: np.ndarray, y_counts: np.ndarray, x: np.ndarray, x_counts: np.ndarray) -> tuple:
    if not (y_counts.any() and x_counts.any()):
        return (np.nan,) * 3
    similar = y @ x.T
    p, r = similar.max(axis=1)[y_counts].mean(), similar.max(axis=0)[x_counts].mean()
    return p, r, 2 * p * r / (p + r)


@metric("bertscore", "embedding", COMPARED, DEFAULT_ENCODER, version="2")
def bertscore(turns: pd.DataFrame, **options) -> pd.DataFrame:
    """Score each response against its references, best reference per figure.

    As in the authors' package, precision, recall and F1 each take the maximum over references.

    Args:
        turns: turn table; uses `response` and `reference`.
        options: as in `bertscore_pairs`.

    Returns:
        Columns bertscore_precision, bertscore_recall, bertscore_f1 on `turns.index`; higher is
        closer. NaN for a blank response, or without a reference that has a word.

    >>> turns = pd.DataFrame({"response": ["tea"], "reference": [["rain", "tea"]]})
    >>> print(bertscore(turns).round(3).iloc[0].tolist())
    [1.0, 1.0, 1.0]
    """
    score = partial(bertscore_pairs, **options)
    best = best_over_texts(
        turns["reference"], turns["response"], lambda gold, said: score(said, gold)
    )
    return pd.DataFrame(best, turns.index, ["precision", "recall", "f1"]).add_prefix("bertscore_")


def sentence_vectors(texts: Sequence[str], encoder: str = DEFAULT_ENCODER, **options) -> np.ndarray:
    """Encode texts as the mean of their token vectors, scaled to length one.

    Each different text is encoded once, cut to its first 256 tokens.

    Args:
        texts: n texts.
        encoder: folder or hub id.
        options: as in `bertscore_pairs`.

    Returns:
        float32 array, shape (n, dimensions); a row of NaN for a blank text.

    Reference: Reimers and Gurevych (2019), Sentence-BERT, EMNLP.

    >>> print(round(float(np.prod(sentence_vectors(["tea", "tea"]), axis=0).sum()), 4))
    1.0
    """
    model = load_encoder(encoder, **options)
    known = _VECTORS.setdefault(model, {})
    if len(known) > MEMORY:
        known.clear()
    texts = ["" if is_blank(text) else text.strip() for text in texts]
    new = list(dict.fromkeys(text for text in texts if text not in known))

    def read(tokens, mask):
        return _mean(model(tokens, mask).last_hidden_state.float(), mask)

    ids = token_ids(model, new, MAX_TOKENS)
    _keep(model, new, ids, score_in_batches(model, read, ids, tokens=2048))
    return np.array([known[text] for text in texts])


def _cosine(others: Sequence[str], said: Sequence[str], **options) -> np.ndarray:
    vectors = sentence_vectors([*said, *others], **options).astype(float)
    return (vectors[: len(said)] * vectors[len(said) :]).sum(axis=1).round(DIGITS)


@metric("reference_similarity", "embedding", COMPARED, DEFAULT_ENCODER, version="2")
def reference_similarity(turns: pd.DataFrame, **options) -> pd.Series:
    """Cosine of the response with its most similar reference.

    Args:
        turns: turn table; uses `response` and `reference`.
        options: as in `sentence_vectors`.

    Returns:
        Series on `turns.index` in [-1, 1], rounded to six decimals, higher is closer, equal texts
        exactly 1; NaN for a blank response or without
        a reference that has a word.

    >>> turns = pd.DataFrame({"response": ["tea", "tea"], "reference": [["tea"], []]})
    >>> print(reference_similarity(turns).round(3).tolist())
    [1.0, nan]
    """
    cosine = partial(score_where_text, partial(_cosine, **options))
    scores = best_over_texts(turns["reference"], turns["response"], cosine)
    return pd.Series(scores, turns.index, name="reference_similarity")


@metric("context_similarity", "embedding", ("context", "response"), DEFAULT_ENCODER, version="2")
def context_similarity(turns: pd.DataFrame, **options) -> pd.Series:
    """Cosine of the response with the last turn of its context; NaN where one of them is blank.

    Range, rounding and options as in `reference_similarity`.

    >>> turns = pd.DataFrame({"response": ["i like tea"], "context": [["hi", "tea or coffee?"]]})
    >>> print(bool(context_similarity(turns)[0] > 0.5))
    True
    """
    last = [" ".join(said) for said in earlier_utterances(turns, last=1)]
    scores = score_where_text(partial(_cosine, **options), last, turns["response"])
    return pd.Series(scores, turns.index, name="context_similarity")
