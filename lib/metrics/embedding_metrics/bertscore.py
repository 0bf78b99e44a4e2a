"""BERTScore (Zhang et al. 2020): greedy matching of contextual token vectors."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import log

import numpy as np
import pandas as pd

from lib.data.blank import is_blank
from lib.metrics.embedding_metrics.token_vectors import VectorStore, blocks, token_ids
from lib.metrics.registry import metric
from lib.models import DEFAULT_ENCODER, Model, load_encoder, provenance_of

# Layers that the authors chose on WMT16; any other encoder uses its last layer.
LAYERS = {
    "FacebookAI/roberta-large": 17,
    "FacebookAI/roberta-base": 10,
    "google-bert/bert-base-uncased": 9,
    "google-bert/bert-base-multilingual-cased": 9,
}
BLOCK_TOKENS = 32_768
BATCH_TOKENS = 1024
COLUMNS = ("bertscore_precision", "bertscore_recall", "bertscore_f1")


@dataclass(frozen=True)
class Idf:
    """Inverse document frequencies: idf(w) = log((N + 1) / (documents with w + 1))."""

    counts: dict[int, int]
    documents: int

    def weights(self, ids: Sequence[int]) -> np.ndarray:
        """Return the weight of each token id."""
        counts = [self.counts.get(token, 0) for token in ids]
        return np.array([log((self.documents + 1) / (count + 1)) for count in counts], np.float32)


def document_frequencies(texts: Sequence[str], encoder: str = DEFAULT_ENCODER) -> Idf:
    """Count in how many texts each token of an encoder occurs, for BERTScore's idf weights.

    The texts are chosen once and stated: weights that came from the batch at hand would make a
    score depend on its neighbours.

    >>> idf = document_frequencies(["tea please", "tea or coffee"])
    >>> idf.documents, max(idf.counts.values())
    (2, 2)
    """
    model = load_encoder(encoder)
    counts = Counter(token for ids in token_ids(model, texts) for token in set(ids))
    return Idf(dict(counts), len(texts))


def bertscore_pairs(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    encoder: str = DEFAULT_ENCODER,
    layer: int | None = None,
    idf: Idf | None = None,
    baseline: Sequence[float] | None = None,
    device: str | None = None,
    dtype: str = "float32",
    batch_tokens: int = BATCH_TOKENS,
) -> np.ndarray:
    """Score hypotheses against one reference each.

    With unit vectors x of the reference's tokens and y of the hypothesis' tokens,
    P = mean over y of max over x of x·y, R = mean over x of max over y, F1 = 2PR / (P + R)
    (Zhang et al. 2020, section 3). Start and end tokens can be matched but have no weight.

    Args:
        hypotheses, references: texts, n of each.
        encoder: folder or hub id; the scores of two encoders do not compare.
        layer: hidden layer; the authors' choice where they made one, else the last.
        idf: token weights from `document_frequencies`; all 1 by default.
        baseline: (P, R, F1) of unrelated texts from `bertscore_baseline`; scores become
            (x - b) / (1 - b), so that 0 is chance.
        device, dtype: see `lib.models.load_encoder`.
        batch_tokens: tokens per encoder batch; changes speed only.

    Returns:
        Shape (n, 3): precision, recall, F1; in [-1, 1], in practice above 0 without a baseline;
        higher is closer. NaN where a text is blank or has no token of its own. Each different pair
        is scored once. The vectors held at a time do not grow with n; beside them stand some 600
        bytes for each pair.

    Reference: Zhang et al. (2020), BERTScore, ICLR.

    >>> scores = bertscore_pairs(["i drink tea", ""], ["i drink tea", "hello"])
    >>> print(scores.round(3).tolist())
    [[1.0, 1.0, 1.0], [nan, nan, nan]]
    """
    model = load_encoder(encoder, layers=_layer(encoder, layer), device=device, dtype=dtype)
    asked = list(zip(hypotheses, references, strict=True))
    pairs = [pair for pair in dict.fromkeys(asked) if not any(map(is_blank, pair))]
    scores = np.full((len(pairs) + 1, 3), np.nan)  # the last row is that of pairs left out
    store = VectorStore(model, Counter(chain(*pairs)), BLOCK_TOKENS, batch_tokens)
    for block in blocks(pairs, model.positions, BLOCK_TOKENS):
        texts = Counter(text for place in block for text in pairs[place])
        held = store.fetch(set(texts))
        weighted = {text: (held[text][1], _weights(model, held[text][0], idf)) for text in texts}
        _score_block(block, pairs, weighted, scores)
        store.release(texts)
    row = {pair: place for place, pair in enumerate(pairs)}
    scores = scores[[row.get(pair, -1) for pair in asked]]
    return scores if baseline is None else (scores - np.array(baseline)) / (1 - np.array(baseline))


@metric(
    "bertscore",
    "embedding",
    ("response", "reference"),
    version="1",
    facts=lambda **options: bertscore_provenance(**options),
)
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
    rows = [row for row, texts in enumerate(turns["reference"]) for _ in texts]
    hypotheses = turns["response"].to_numpy(dtype=object)[rows].tolist() if rows else []
    references = [text for texts in turns["reference"] for text in texts]
    scores = np.full((len(turns), 3), np.nan)
    np.fmax.at(scores, rows, bertscore_pairs(hypotheses, references, **options))
    return pd.DataFrame(scores, index=turns.index, columns=list(COLUMNS))


def bertscore_baseline(
    texts: Sequence[str], *, pairs: int = 2000, seed: int = 0, **options
) -> np.ndarray:
    """Mean (P, R, F1) over random pairs of different texts, to rescale scores with.

    The authors' own baselines cover their encoders only and come from Common Crawl; this computes
    one for any encoder from texts of your choice.

    Raises:
        ValueError: fewer than two different texts.
    """
    texts = sorted(set(texts))
    if len(texts) < 2:
        raise ValueError("a baseline needs at least two different texts")
    generator = np.random.default_rng(seed)
    first = generator.integers(len(texts), size=pairs)
    second = (first + generator.integers(1, len(texts), size=pairs)) % len(texts)
    drawn = [[texts[i] for i in places] for places in (first, second)]
    return np.nanmean(bertscore_pairs(*drawn, **options), axis=0)


def bertscore_provenance(**options) -> dict:
    """Return what a BERTScore depends on besides the texts."""
    encoder = options.get("encoder", DEFAULT_ENCODER)
    idf, baseline = options.get("idf"), options.get("baseline")
    return {
        **provenance_of(encoder, **options),
        "formula": "BERTScore: greedy cosine matching, maximum over references",
        "layer": _layer(encoder, options.get("layer")) or "last",
        "idf": "none" if idf is None else _digest(sorted(idf.counts.items()), idf.documents),
        "baseline": "none" if baseline is None else [float(value) for value in baseline],
        "truncation": "the encoder's positions",
    }


def _layer(encoder: str, layer: int | None) -> int | None:
    return LAYERS.get(str(encoder)) if layer is None else layer


def _weights(model: Model, ids: Sequence[int], idf: Idf | None) -> np.ndarray:
    weights = np.ones(len(ids), np.float32) if idf is None else idf.weights(ids)
    special = {model.tokenizer.cls_token_id, model.tokenizer.sep_token_id}
    weights[[token in special for token in ids]] = 0
    # No weight at all: an empty text, undefined.
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(ids), np.nan, np.float32)


def _score_block(block, pairs, weighted, scores) -> None:
    """Match every reference of a block with all its hypotheses in one product."""
    start = 0
    for end in range(1, len(block) + 1):
        if end < len(block) and pairs[block[end]][1] == pairs[block[start]][1]:
            continue
        places = block[start:end]
        hypotheses = [weighted[pairs[place][0]] for place in places]
        scores[places] = _match(hypotheses, weighted[pairs[places[0]][1]])
        start = end


def _match(hypotheses, reference) -> np.ndarray:
    vectors, weights = reference
    starts = np.cumsum([0] + [len(vector) for vector, _ in hypotheses])[:-1]
    similar = np.concatenate([vector for vector, _ in hypotheses]) @ vectors.T
    own = np.concatenate([weight for _, weight in hypotheses])
    precision = np.add.reduceat(similar.max(axis=1) * own, starts)
    recall = np.maximum.reduceat(similar, starts, axis=0) @ weights
    precision, recall = precision + 0 * recall, recall + 0 * precision  # either empty: both NaN
    with np.errstate(invalid="ignore"):
        f1 = 2 * precision * recall / (precision + recall)
    return np.stack([precision, recall, f1], axis=1)


def _digest(*values) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]
