"""Metrics that compare texts by the vectors of a pretrained encoder.

BERTScore (Zhang et al. 2020) matches the tokens of two texts one by one; embedding similarity
compares one vector per text. Both are real out of the box with the packaged MiniLM encoder; the
encoder of a paper is a parameter, and every score depends on it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from lib.data import is_blank
from lib.metrics.registry import metric
from lib.models import DEFAULT_ENCODER, Model, load_encoder, provenance_of, run_batches

# Layers that the authors chose on WMT16; any other encoder uses its last layer.
LAYERS = {
    "FacebookAI/roberta-large": 17,
    "FacebookAI/roberta-base": 10,
    "google-bert/bert-base-uncased": 9,
    "google-bert/bert-base-multilingual-cased": 9,
}
COLUMNS = ("bertscore_precision", "bertscore_recall", "bertscore_f1")
BLOCK_TOKENS = 65_536  # token vectors that are held at a time: 100 MB of the packaged encoder's
MAX_TOKENS = 256  # of a text that becomes one vector: what the packaged encoder was trained with


def bertscore_pairs(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    encoder: str = DEFAULT_ENCODER,
    layer: int | None = None,
    baseline: Sequence[float] | None = None,
    batch_tokens: int = 1024,
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
        layer: hidden layer; the authors' choice where they made one, else the last.
        baseline: (P, R, F1) of unrelated texts from `bertscore_baseline`; scores become
            (x - b) / (1 - b), so that 0 is chance.
        batch_tokens: tokens per encoder batch; changes speed only.
        options: `device`, `dtype`, `revision` of `lib.models.load_encoder`.

    Returns:
        Shape (n, 3): precision, recall, F1; in [-1, 1], in practice above 0 without a baseline;
        higher is closer. NaN where a text is blank or has no token of its own. Each different pair
        is scored once, and the vectors held at a time do not grow with n.

    Reference: Zhang et al. (2020), BERTScore, ICLR.

    >>> scores = bertscore_pairs(["i drink tea", ""], ["i drink tea", "hello"])
    >>> print(scores.round(3).tolist())
    [[1.0, 1.0, 1.0], [nan, nan, nan]]
    """
    model = load_encoder(encoder, layers=_layer(encoder, layer), **options)
    asked = list(zip(hypotheses, references, strict=True))
    # Pairs of one reference stand together, so that a block encodes it once.
    pairs = sorted({pair for pair in asked if not any(map(is_blank, pair))}, key=lambda p: p[::-1])
    found = {}
    for block in _blocks(model, pairs):
        vectors = _token_vectors(model, block, batch_tokens)
        found |= {(y, x): _match(*vectors[y], *vectors[x]) for y, x in block}
    scores = [found.get(pair, (np.nan,) * 3) for pair in asked]
    scores = np.array(scores, dtype=float).reshape(-1, 3)
    return scores if baseline is None else (scores - np.array(baseline)) / (1 - np.array(baseline))


def _blocks(model: Model, pairs: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Cut pairs into runs of about BLOCK_TOKENS tokens; English has four letters to a token."""
    sizes = [sum(min(len(text) // 4 + 2, model.positions) for text in pair) for pair in pairs]
    number = np.cumsum(sizes) // BLOCK_TOKENS
    for places in np.split(np.arange(len(pairs)), np.flatnonzero(np.diff(number)) + 1):
        if len(places):
            yield pairs[places[0] : places[-1] + 1]


def _token_vectors(model: Model, pairs: list[tuple[str, str]], batch_tokens: int) -> dict:
    """Unit vectors of the tokens of each text, and whether a token counts; each text once."""
    texts = sorted({text for pair in pairs for text in pair})
    ids = _token_ids(model, texts, model.positions)
    special = [model.tokenizer.cls_token_id, model.tokenizer.sep_token_id]
    vectors = {}

    def read(output, mask, rows) -> np.ndarray:
        unit = output.last_hidden_state.float()
        unit = (unit / unit.norm(dim=-1, keepdim=True)).cpu().numpy()
        for row, own in zip(rows, unit, strict=True):
            vectors[texts[row]] = own[: len(ids[row])], ~np.isin(ids[row], special)
        return np.zeros(len(rows))

    run_batches(model, ids, read, tokens=batch_tokens, label="encode")
    return vectors


def _match(y: np.ndarray, y_counts: np.ndarray, x: np.ndarray, x_counts: np.ndarray) -> tuple:
    if not (y_counts.any() and x_counts.any()):
        return (np.nan,) * 3
    similar = y @ x.T
    precision = similar.max(axis=1)[y_counts].mean()
    recall = similar.max(axis=0)[x_counts].mean()
    return precision, recall, 2 * precision * recall / (precision + recall)


def _token_ids(model: Model, texts: list[str], most: int) -> list[list[int]]:
    """Token ids with the special tokens, cut to what the encoder takes."""
    texts = [text.strip() for text in texts]
    most = min(most, model.positions)
    return model.tokenizer(texts, truncation=True, max_length=most)["input_ids"] if texts else []


def _layer(encoder: str, layer: int | None) -> int | None:
    return LAYERS.get(str(encoder)) if layer is None else layer


def _bertscore_facts(
    *, encoder: str = DEFAULT_ENCODER, layer: int | None = None, baseline=None, **options
) -> dict:
    return {
        **provenance_of(encoder, **options),
        "formula": "BERTScore: greedy cosine matching, maximum over references",
        "layer": _layer(encoder, layer) or "last",
        "idf": "none",
        "baseline": "none" if baseline is None else list(map(float, baseline)),
        "truncation": "the encoder's positions",
    }


@metric("bertscore", "embedding", ("response", "reference"), version="1", facts=_bertscore_facts)
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
    rows, said, gold = _with_each(turns["response"], turns["reference"])
    scores = np.full((len(turns), 3), np.nan)
    np.fmax.at(scores, rows, bertscore_pairs(said, gold, **options))
    return pd.DataFrame(scores, index=turns.index, columns=list(COLUMNS))


def _with_each(responses: Sequence[str], others: Sequence[Sequence[str]]) -> tuple[list, ...]:
    """Row, response and other text of each pair of a response and a text beside it."""
    pairs = zip(responses, others, strict=True)
    found = [(row, said, text) for row, (said, texts) in enumerate(pairs) for text in texts]
    return tuple(map(list, zip(*found, strict=True))) if found else ([], [], [])


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


def sentence_vectors(
    texts: Sequence[str],
    *,
    encoder: str = DEFAULT_ENCODER,
    max_tokens: int = MAX_TOKENS,
    batch_tokens: int = 2048,
    **options,
) -> np.ndarray:
    """Encode texts as the mean of their token vectors, scaled to length one.

    Each different text is encoded once.

    Args:
        texts: n texts.
        encoder: folder or hub id.
        max_tokens: where a text is cut.
        batch_tokens, options: as in `bertscore_pairs`.

    Returns:
        float32 array, shape (n, dimensions); a row of NaN for a blank text.

    Reference: Reimers and Gurevych (2019), Sentence-BERT, EMNLP.

    >>> print(round(float(np.prod(sentence_vectors(["tea", "tea"]), axis=0).sum()), 4))
    1.0
    """
    model = load_encoder(encoder, **options)
    texts = ["" if is_blank(text) else text for text in texts]
    unique = list(dict.fromkeys(texts))

    def read(output, mask, rows):
        hidden = output.last_hidden_state.float()
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return mean / mean.norm(dim=-1, keepdim=True)

    ids = _token_ids(model, unique, max_tokens)
    vectors = run_batches(model, ids, read, tokens=batch_tokens, label="encode").astype(np.float32)
    special = set(model.tokenizer.all_special_ids) - {model.tokenizer.unk_token_id}
    vectors[[special.issuperset(row) for row in ids]] = np.nan
    place = {text: row for row, text in enumerate(unique)}
    return vectors[[place[text] for text in texts]]


def _similarity_facts(
    *, encoder: str = DEFAULT_ENCODER, max_tokens: int = MAX_TOKENS, **options
) -> dict:
    return {
        **provenance_of(encoder, **options),
        "formula": "cosine of mean token vectors, maximum over references",
        "truncation": f"first {max_tokens} tokens",
    }


_SIMILARITY = {"version": "1", "facts": _similarity_facts}


@metric("reference_similarity", "embedding", ("response", "reference"), **_SIMILARITY)
def reference_similarity(turns: pd.DataFrame, **options) -> pd.Series:
    """Cosine of the response with its most similar reference.

    Args:
        turns: turn table; uses `response` and `reference`.
        options: as in `sentence_vectors`.

    Returns:
        Series on `turns.index` in [-1, 1], higher is closer; NaN for a blank response or without
        a reference that has a word.

    >>> turns = pd.DataFrame({"response": ["tea", "tea"], "reference": [["tea"], []]})
    >>> print(reference_similarity(turns).round(3).tolist())
    [1.0, nan]
    """
    return _similarity(turns, turns["reference"], options).rename("reference_similarity")


@metric("context_similarity", "embedding", ("context", "response"), **_SIMILARITY)
def context_similarity(turns: pd.DataFrame, **options) -> pd.Series:
    """Cosine of the response with the last turn of its context.

    Args:
        turns: turn table; uses `response` and `context`.
        options: as in `sentence_vectors`.

    Returns:
        Series on `turns.index` in [-1, 1], higher is closer; NaN for a blank response or context.

    >>> turns = pd.DataFrame({"response": ["i like tea"], "context": [["hi", "tea or coffee?"]]})
    >>> print(bool(context_similarity(turns)[0] > 0.5))
    True
    """
    last = [context[-1:] for context in turns["context"]]
    return _similarity(turns, last, options).rename("context_similarity")


def _similarity(turns, others: Sequence[Sequence[str]], options: dict) -> pd.Series:
    """Largest cosine of each response with the texts beside it."""
    rows, said, texts = _with_each(turns["response"], others)
    scores = np.full(len(turns), np.nan)
    if rows:
        vectors = sentence_vectors([*said, *texts], **options)
        cosines = (vectors[: len(rows)] * vectors[len(rows) :]).sum(axis=1)
        np.fmax.at(scores, rows, cosines)
    return pd.Series(scores, index=turns.index)
