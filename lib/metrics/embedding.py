"""Metrics that compare texts by the vectors of a pretrained encoder.

BERTScore (Zhang et al. 2020) matches the tokens of two texts one by one; embedding similarity
compares one vector per text. Both run with the packaged MiniLM encoder without a download;
the encoder of a paper is a parameter, and every score depends on it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple
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
TOKEN_VECTOR_BYTES = 2**27  # of the float32 token vectors in memory at a time: 128 MiB
BATCH_TOKENS = 512  # tokens in a batch: its activations fit the cache of a processor
# Digits of a score: below them two machines differ, and equal texts would not reach 1.
DIGITS = 6
# Tokens of a text that becomes one vector: what the packaged encoder was trained with.
MAX_TOKENS = 256
#: Vectors of texts that an encoder has read; cleared when there are more than MAX_VECTORS of them.
_VECTORS: WeakKeyDictionary[Model, dict] = WeakKeyDictionary()
MAX_VECTORS = 50_000


class TokenVectors(NamedTuple):
    """Unit vectors of a text's tokens, and which of them count: all but start and end tokens."""

    vectors: np.ndarray
    counted: np.ndarray


def bertscore_pairs(
    hypotheses: Sequence[str],
    references: Sequence[str],
    encoder: str = DEFAULT_ENCODER,
    **options,
) -> np.ndarray:
    """Score hypotheses against one reference each.

    With unit vectors x of the reference's tokens and y of the hypothesis' tokens,
    P = mean over y of max over x of x·y, R = mean over x of max over y, F1 = 2PR / (P + R)
    (Zhang et al. 2020, section 3, without idf weights). Start and end tokens can be matched but do
    not count themselves.

    Args:
        hypotheses, references: texts, n of each.
        encoder: folder or hub id; the scores of two encoders do not compare.
        options: `device`, `dtype`, `revision`, `batch_tokens` and `layers` of
            `lib.models.load_encoder`. Vectors are those of the last layer kept: the authors' for a
            paper's encoder, else the last.

    Returns:
        Shape (n, 3): precision, recall, F1, rounded to six decimals; in [-1, 1], in practice above
        0; higher is closer, equal texts reach exactly 1. NaN where a text is blank or has no token
        of its own. Each different pair is scored once. Texts are encoded once each while the
        vectors of all fit into 128 MiB; otherwise pairs go in blocks of that size in the order
        given, so pairs that share texts should stand together.

    Reference: Zhang et al. (2020), BERTScore, ICLR.

    >>> scores = bertscore_pairs(["i drink tea", ""], ["i drink tea", "hello"])
    >>> print(scores.round(3).tolist())
    [[1.0, 1.0, 1.0], [nan, nan, nan]]
    """
    if encoder in LAYERS:
        options = {"layers": LAYERS[encoder]} | options
    model = load_encoder(encoder, **options)
    all_pairs = list(zip(hypotheses, references, strict=True))
    pairs = [pair for pair in dict.fromkeys(all_pairs) if not any(map(is_blank, pair))]
    texts = list(dict.fromkeys(chain.from_iterable(pairs)))
    ids = dict(
        zip(texts, token_ids(model, [text.strip() for text in texts]), strict=True)
    )
    scores = {}
    for block in _blocks(pairs, ids, model.network.config.hidden_size):
        block_texts = dict.fromkeys(chain.from_iterable(block))
        vectors = _token_vectors(model, {text: ids[text] for text in block_texts})
        for hypothesis, reference in block:
            scores[hypothesis, reference] = _match(
                vectors[hypothesis], vectors[reference]
            )
    rows = [scores.get(pair, (np.nan, np.nan, np.nan)) for pair in all_pairs]
    return np.array(rows, dtype=float).reshape(-1, 3).round(DIGITS)


def _blocks(pairs: list, ids: dict[str, list[int]], dimensions: int) -> Iterator[list]:
    """Consecutive pairs whose token vectors fit into TOKEN_VECTOR_BYTES; at least one pair."""
    max_tokens = TOKEN_VECTOR_BYTES // (4 * dimensions)
    block = []
    texts = set()
    n_tokens = 0
    for pair in pairs:
        pair_texts = set(pair)
        n_tokens += sum(len(ids[text]) for text in pair_texts - texts)
        if block and n_tokens > max_tokens:
            yield block
            block = []
            texts = set()
            n_tokens = sum(len(ids[text]) for text in pair_texts)
        block.append(pair)
        texts |= pair_texts
    if block:
        yield block


def _token_vectors(model: Model, ids: dict[str, list[int]]) -> dict[str, TokenVectors]:
    """Token vectors of texts. The mean vectors come from the same pass and are kept, too."""
    special = [model.tokenizer.cls_token_id, model.tokenizer.sep_token_id]
    texts = list(ids)
    rows = list(ids.values())
    token_vectors = {}

    def score_batch(tokens, mask, index, _):
        hidden = model(tokens, mask).last_hidden_state.float()
        unit = (hidden / hidden.norm(dim=-1, keepdim=True)).cpu().numpy()
        for row, vectors in zip(index[:, 0].tolist(), unit, strict=True):
            counted = ~np.isin(rows[row], special)
            token_vectors[texts[row]] = TokenVectors(vectors[: len(rows[row])], counted)
        return _mean_vector(hidden, mask)

    indices = [[row] for row in range(len(rows))]
    means = score_in_batches(model, score_batch, rows, indices, max_tokens=BATCH_TOKENS)
    _keep_vectors(model, [text.strip() for text in texts], rows, means)
    return token_vectors


def _mean_vector(hidden, mask):
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return mean / mean.norm(dim=-1, keepdim=True)


def _keep_vectors(
    model: Model, texts: list[str], ids: list[list[int]], vectors: np.ndarray
) -> None:
    """Keep the vectors of texts that were read whole; NaN for a text without a token."""
    special = set(model.tokenizer.all_special_ids) - {model.tokenizer.unk_token_id}
    kept_vectors = _VECTORS.setdefault(model, {})
    for text, row, vector in zip(texts, ids, vectors, strict=True):
        if len(row) > MAX_TOKENS:
            continue
        if special.issuperset(row):
            vector = np.full_like(vector, np.nan)
        kept_vectors[text] = vector.astype(np.float32)


def _match(
    hypothesis: TokenVectors, reference: TokenVectors
) -> tuple[float, float, float]:
    """Precision, recall and F1 of one pair."""
    if not (hypothesis.counted.any() and reference.counted.any()):
        return np.nan, np.nan, np.nan
    similarity = hypothesis.vectors @ reference.vectors.T
    precision = similarity.max(axis=1)[hypothesis.counted].mean()
    recall = similarity.max(axis=0)[reference.counted].mean()
    return precision, recall, 2 * precision * recall / (precision + recall)


@metric("bertscore", "embedding", COMPARED, model=DEFAULT_ENCODER, version="2")
def bertscore(
    turns: pd.DataFrame, *, encoder: str = DEFAULT_ENCODER, **options
) -> pd.DataFrame:
    """Score each response against its references, best reference per figure.

    As in the authors' package, precision, recall and F1 each take the maximum over references.

    Args:
        turns: turn table; uses `response` and `reference`.
        encoder, options: as in `bertscore_pairs`.

    Returns:
        Columns bertscore_precision, bertscore_recall, bertscore_f1 on `turns.index`; higher is
        closer. NaN for a blank response, or without a reference that has a word.

    >>> turns = pd.DataFrame({"response": ["tea"], "reference": [["rain", "tea"]]})
    >>> print(bertscore(turns).round(3).iloc[0].tolist())
    [1.0, 1.0, 1.0]
    """

    def score(references, responses):
        return bertscore_pairs(responses, references, encoder, **options)

    # Replies with the same references stand together, so that these are encoded once.
    order = np.argsort(turns["reference"].map(tuple).factorize()[0], kind="stable")
    grouped = turns.iloc[order]
    best = best_over_texts(grouped["reference"], grouped["response"], score)
    columns = ["bertscore_precision", "bertscore_recall", "bertscore_f1"]
    return pd.DataFrame(best, grouped.index, columns).iloc[np.argsort(order)]


def sentence_vectors(
    texts: Sequence[str], encoder: str = DEFAULT_ENCODER, **options
) -> np.ndarray:
    """Encode texts as the mean of their token vectors, scaled to length one.

    Each distinct text is encoded once, cut to its first 256 tokens.

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
    vectors = _VECTORS.setdefault(model, {})
    if len(vectors) > MAX_VECTORS:
        vectors.clear()
    texts = ["" if is_blank(text) else text.strip() for text in texts]
    new_texts = [text for text in dict.fromkeys(texts) if text not in vectors]

    def score_batch(tokens, mask):
        return _mean_vector(model(tokens, mask).last_hidden_state.float(), mask)

    ids = token_ids(model, new_texts, MAX_TOKENS)
    means = score_in_batches(model, score_batch, ids, max_tokens=BATCH_TOKENS)
    _keep_vectors(model, new_texts, ids, means)
    return np.array([vectors[text] for text in texts])


def _cosines(texts: Sequence[str], responses: Sequence[str], **options) -> np.ndarray:
    """The cosine of texts and responses, row by row; NaN where one of them is blank."""

    def cosine(texts, responses):
        vectors = sentence_vectors([*responses, *texts], **options).astype(float)
        products = vectors[: len(responses)] * vectors[len(responses) :]
        return products.sum(axis=1).round(DIGITS)

    return score_where_text(cosine, texts, responses)


@metric(
    "reference_similarity", "embedding", COMPARED, model=DEFAULT_ENCODER, version="2"
)
def reference_similarity(
    turns: pd.DataFrame, *, encoder: str = DEFAULT_ENCODER, **options
) -> pd.Series:
    """Cosine of the response with its most similar reference.

    Args:
        turns: turn table; uses `response` and `reference`.
        encoder, options: as in `sentence_vectors`.

    Returns:
        Series on `turns.index` in [-1, 1], rounded to six decimals, higher is closer, equal texts
        exactly 1; NaN for a blank response or without a reference that has a word.

    >>> turns = pd.DataFrame({"response": ["tea", "tea"], "reference": [["tea"], []]})
    >>> print(reference_similarity(turns).round(3).tolist())
    [1.0, nan]
    """
    cosines = partial(_cosines, encoder=encoder, **options)
    scores = best_over_texts(turns["reference"], turns["response"], cosines)
    return pd.Series(scores, turns.index, name="reference_similarity")


@metric(
    "context_similarity",
    "embedding",
    ("context", "response"),
    model=DEFAULT_ENCODER,
    version="2",
)
def context_similarity(
    turns: pd.DataFrame, *, encoder: str = DEFAULT_ENCODER, **options
) -> pd.Series:
    """Cosine of the response with the last turn of its context; NaN where one of them is blank.

    Range, rounding and options as in `reference_similarity`.

    >>> turns = pd.DataFrame({"response": ["i like tea"], "context": [["hi", "tea or coffee?"]]})
    >>> print(bool(context_similarity(turns)[0] > 0.5))
    True
    """
    last_turns = [" ".join(texts) for texts in earlier_utterances(turns, last=1)]
    scores = _cosines(last_turns, turns["response"], encoder=encoder, **options)
    return pd.Series(scores, turns.index, name="context_similarity")
