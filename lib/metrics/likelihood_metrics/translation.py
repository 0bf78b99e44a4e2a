"""BARTScore and Prism-style scores: the probability of one text given another."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch

from lib.data.blank import is_blank
from lib.metrics.registry import metric
from lib.models import Model, load_seq2seq, map_batches, pad, provenance_of

BART, PRISM = "facebook/bart-large-cnn", "facebook/m2m100_418M"
MAX_TOKENS = 1024


def mean_log_probability(
    model: Model,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    skip: int = 0,
    batch_tokens: int = 4096,
) -> np.ndarray:
    """Mean log-probability of target tokens given the source and the tokens before them.

    score = 1/|t| · sum over positions i >= skip of log p(t_i | t_<i, source), natural logarithm.

    Args:
        model: an encoder-decoder.
        sources, targets: token ids with their special tokens, n of each.
        skip: first target tokens that are given, not scored (Prism's language tag).

    Returns:
        Shape (n,), at most 0; higher is more probable.
    """
    config, padding = model.network.config, model.tokenizer.pad_token_id

    @torch.inference_mode()
    def score(rows: np.ndarray) -> torch.Tensor:
        source, source_mask = pad([sources[row] for row in rows], padding)
        target, mask = pad([targets[row] for row in rows], padding)
        start = torch.full((len(rows), 1), config.decoder_start_token_id)
        output = model.network(
            input_ids=source.to(model.device),
            attention_mask=source_mask.to(model.device),
            decoder_input_ids=torch.cat([start, target[:, :-1]], 1).to(model.device),
        )
        target, mask = target.to(model.device), mask.to(model.device)
        # The rows of a batch differ in length: padding has no share in the mean.
        mask[:, :skip] = 0
        logs = output.logits.float().log_softmax(-1).gather(2, target[..., None])[..., 0]
        return (logs * mask).sum(1) / mask.sum(1)

    lengths = [len(a) + len(b) for a, b in zip(sources, targets, strict=True)]
    return map_batches(score, lengths, tokens=batch_tokens, label="log-probability")


@metric(
    "bartscore",
    "likelihood",
    ("context", "response", "reference"),
    version="1",
    facts=lambda **options: bartscore_provenance(**options),
)
def bartscore(
    turns: pd.DataFrame, *, checkpoint: str = BART, multiple: str = "max", **options
) -> pd.DataFrame:
    """BARTScore in every direction (Yuan et al. 2021, section 3.2).

    With s(a, b) the mean log-probability of b given a (`mean_log_probability`, start and end tokens
    counted, at most 1,024 tokens):

    - bartscore_context_to_response = s(context, response), "faithfulness"
    - bartscore_reference_to_response = s(reference, response), "precision"
    - bartscore_response_to_reference = s(response, reference), "recall"
    - bartscore_f_mean = their mean; bartscore_f_harmonic = their product over their sum, as the
      authors' code has it (half a harmonic mean).

    Args:
        turns: turn table; `context` is joined by blanks.
        checkpoint: folder or hub id of a BART.
        multiple: "max" or "mean" over references, per direction.
        options: `device`, `dtype`, `batch_tokens`.

    Returns:
        Five columns on `turns.index`, at most 0, higher is better; equal texts do not reach 0. NaN
        where one of the two texts is blank.
    """
    model, batch = _load(checkpoint, options)
    given = _scorer(model, lambda text: _ids(model, text), 0, batch)
    frame = _directions(turns, given, multiple)
    precision, recall = frame["reference_to_response"], frame["response_to_reference"]
    frame["f_mean"] = (precision + recall) / 2
    frame["f_harmonic"] = precision * recall / (precision + recall)
    del frame["response_to_context"]
    return frame.add_prefix("bartscore_")


@metric(
    "prism_style",
    "likelihood",
    ("context", "response", "reference"),
    version="1",
    facts=lambda **options: prism_style_provenance(**options),
)
def prism_style(
    turns: pd.DataFrame,
    *,
    checkpoint: str = PRISM,
    language: str = "en",
    multiple: str = "max",
    **options,
) -> pd.DataFrame:
    """Prism's formulas (Thompson and Post 2020, section 3) over a multilingual translator.

    With p(b | a) the mean log-probability of b after its language tag, given a:

    - prism_style_reference = (p(response | reference) + p(reference | response)) / 2, Prism-ref
    - prism_style_response_given_context = p(response | context), Prism-src with the context as
      source, and a reading of the paper's "Prism unref."
    - prism_style_context = (p(response | context) + p(context | response)) / 2, the reference
      formula with the context in its place, and a reading of the paper's "Prism context"

    The original model (m39v1) needs fairseq 0.10 and is not loaded here, so scores are Prism-style,
    not Prism. The readings are guesses: Giorgi et al. (2023) define neither variant.

    Args:
        turns: turn table; `context` is joined by blanks.
        checkpoint: folder or hub id of a translator with language tags (M2M-100 form).
        language: code of the one language of all texts.
        multiple: "max" or "mean" over references.
        options: `device`, `dtype`, `batch_tokens`.

    Returns:
        Three columns on `turns.index`, at most 0, higher is better; NaN where a text is blank.

    Raises:
        ValueError: the model has no tag for the language.
    """
    model, batch = _load(checkpoint, options)
    tag = model.tokenizer.convert_tokens_to_ids(f"__{language}__")
    if tag in (None, model.tokenizer.unk_token_id):
        raise ValueError(f"{checkpoint} has no language tag __{language}__")

    def ids(text: str) -> list[int]:
        limit = min(MAX_TOKENS, model.positions) - 2
        plain = model.tokenizer(text, add_special_tokens=False)["input_ids"][:limit]
        return [tag, *plain, model.tokenizer.eos_token_id]

    frame = _directions(turns, _scorer(model, ids, 1, batch), multiple, symmetric=True)
    given = frame["context_to_response"]
    return pd.DataFrame(
        {
            "prism_style_reference": frame["reference_symmetric"],
            "prism_style_response_given_context": given,
            "prism_style_context": (given + frame["response_to_context"]) / 2,
        }
    )


def bartscore_provenance(*, checkpoint: str = BART, multiple: str = "max", **options) -> dict:
    """Return what a BARTScore depends on besides the texts."""
    return {
        **provenance_of(checkpoint, **options),
        "formula": "BARTScore, all directions",
        "multiple": multiple,
        "truncation": f"first {MAX_TOKENS} tokens",
    }


def prism_style_provenance(*, checkpoint: str = PRISM, **options) -> dict:
    """Return what a Prism-style score depends on besides the texts."""
    facts = bartscore_provenance(checkpoint=checkpoint, **options)
    return {**facts, "formula": "Prism-style, not the Prism model"}


def _load(checkpoint: str, options: dict) -> tuple[Model, int]:
    batch = options.pop("batch_tokens", 4096)
    return load_seq2seq(checkpoint, **options), batch


def _ids(model: Model, text: str) -> list[int]:
    limit = min(MAX_TOKENS, model.positions)
    return model.tokenizer(text, truncation=True, max_length=limit)["input_ids"]


def _scorer(model, ids: Callable, skip: int, batch: int) -> Callable:
    """Return s(a, b) over lists of texts; NaN where either is blank, each pair scored once."""

    def score(given: list[str], said: list[str]) -> np.ndarray:
        pairs = sorted(
            {pair for pair in zip(given, said, strict=True) if not any(map(is_blank, pair))}
        )
        tokens = {text: ids(text) for pair in pairs for text in pair}
        values = mean_log_probability(
            model,
            [tokens[a] for a, _ in pairs],
            [tokens[b] for _, b in pairs],
            skip=skip,
            batch_tokens=batch,
        )
        known = dict(zip(pairs, values, strict=True))
        return np.array([known.get(pair, np.nan) for pair in zip(given, said, strict=True)])

    return score


def _directions(turns, score: Callable, multiple: str, symmetric: bool = False) -> pd.DataFrame:
    if multiple not in ("max", "mean"):
        raise ValueError(f"multiple is {multiple!r}: choose 'max' or 'mean'")
    said = turns["response"].tolist()
    before = [" ".join(context) for context in turns["context"]]
    row = np.repeat(np.arange(len(turns)), [len(texts) for texts in turns["reference"]])
    gold = [text for texts in turns["reference"] for text in texts]
    each = [said[i] for i in row]
    to_response, to_reference = score(gold, each), score(each, gold)

    def pooled(values: np.ndarray) -> np.ndarray:
        found = pd.Series(values, dtype=float).groupby(row).agg(multiple)
        return found.reindex(range(len(turns))).to_numpy()

    columns = {
        "context_to_response": score(before, said),
        "response_to_context": score(said, before) if symmetric else np.nan,
        "reference_to_response": pooled(to_response),
        "response_to_reference": pooled(to_reference),
    }
    if symmetric:
        columns["reference_symmetric"] = pooled((to_response + to_reference) / 2)
    return pd.DataFrame(columns, index=turns.index)
