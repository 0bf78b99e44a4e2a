"""USL-H (Phy et al. 2020): understandable, sensible and likeable, composed in this order."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lib.data.blank import is_blank
from lib.metrics.likelihood_metrics.usl_h_heads import Judge, fingerprint, load_judge
from lib.metrics.registry import metric
from lib.models import Model, load_masked, map_batches, pad, provenance_of

MASKED_MODEL = "google-bert/bert-base-uncased"
WEIGHTS = (0.33, 0.33, 0.34)


def usl_h_composition(valid, sensible, likely, form: str = "HS"):
    """Compose the three parts.

    - "HS" = .33 U + .33 S + .34 S·L, what the authors' code runs by default ("USL-HS")
    - "H" = .33 U + .33 U·S + .34 U·S·L, also in their code
    - "A" = .33 U + .33 S + .34 L

    Their README prints a fourth (U + US + USL without weights): not offered, as no code has it.

    >>> round(usl_h_composition(1.0, 0.5, 0.5), 3), round(usl_h_composition(1.0, 0.5, 0.5, "H"), 3)
    (0.58, 0.58)
    >>> round(usl_h_composition(0.5, 0.5, 0.5), 4), round(usl_h_composition(0.5, 0.5, 0.5, "H"), 4)
    (0.415, 0.29)
    """
    a, b, c = WEIGHTS
    if form == "HS":
        return a * valid + b * sensible + c * sensible * likely
    if form == "H":
        return a * valid + b * valid * sensible + c * valid * sensible * likely
    if form == "A":
        return a * valid + b * sensible + c * likely
    raise ValueError(f"form is {form!r}: choose 'HS', 'H' or 'A'")


def masked_surprisal(model: Model, texts: Sequence[str], *, batch_tokens: int = 4096) -> np.ndarray:
    """Sum over tokens of -log p(token | the others), each masked in turn.

    Returns:
        Shape (n,), at least 0; grows with length and with rarity. NaN for a text without a token.
    """
    tokenizer = model.tokenizer
    if not len(texts):  # the tokenizer takes no empty list
        return np.empty(0)
    ids = tokenizer(list(texts), truncation=True, max_length=model.positions)["input_ids"]
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    places = [(t, p) for t, row in enumerate(ids) for p in range(len(row)) if row[p] not in special]

    @torch.inference_mode()
    def surprisal(rows: np.ndarray) -> torch.Tensor:
        tokens, mask = pad([ids[places[row][0]] for row in rows], tokenizer.pad_token_id)
        index = torch.arange(len(rows)), torch.tensor([places[row][1] for row in rows])
        truth = tokens[index].clone()
        tokens[index] = tokenizer.mask_token_id
        logits = model.network(
            input_ids=tokens.to(model.device), attention_mask=mask.to(model.device)
        ).logits[index[0].to(model.device), index[1].to(model.device)]
        return -logits.float().log_softmax(-1).cpu()[torch.arange(len(rows)), truth]

    sums = np.full(len(texts), np.nan)
    if places:
        lengths = [len(ids[text]) for text, _ in places]
        values = map_batches(surprisal, lengths, tokens=batch_tokens, label="masked tokens")
        counts = pd.Series(values).groupby([text for text, _ in places]).sum()
        sums[counts.index] = counts
    return sums


@metric(
    "usl_h",
    "likelihood",
    ("context", "response"),
    version="1",
    facts=lambda **options: usl_h_provenance(**options),
)
def usl_h(
    turns: pd.DataFrame,
    *,
    valid: Judge | str,
    sensible: Judge | str,
    masked: str | None = MASKED_MODEL,
    quartiles: Sequence[float] | None = None,
    form: str = "HS",
    **options,
) -> pd.DataFrame:
    """USL-H of each response and its parts.

    U: probability that the response is a valid text (VUP). S: probability that it replies to the
    last turn of its context (NUP). L: the masked surprisal of the response, cut to the first and
    third quartile of a validation set and scaled to [0, 1], so that a *less* predictable response
    is better. The composition is `usl_h_composition`.

    Args:
        turns: turn table; uses `context` and `response`.
        valid, sensible: judges or the folders of judges, see `train_valid_utterance`.
        masked: folder or hub id of a masked language model; None leaves L and the composition NaN.
        quartiles: (25 %, 75 %) of `masked_surprisal` on a validation set; needed with `masked`.
        form: the composition.
        options: `device`, `dtype` of the masked model.

    Returns:
        Columns usl_h_valid, usl_h_sensible, usl_h_likely and usl_h on `turns.index`, all in [0, 1],
        higher is better; NaN for a blank response, or for S and what builds on it without context.

    Raises:
        ValueError: a masked model without quartiles, or quartiles that do not differ.
    """
    said = turns["response"].to_numpy(dtype=object)
    last = np.array([c[-1] if len(c) else None for c in turns["context"]], dtype=object)
    has_words, has_before = (
        np.array([not is_blank(text) for text in texts], dtype=bool) for texts in (said, last)
    )
    has_both = has_words & has_before
    judges = [load_judge(j) if isinstance(j, str) else j for j in (valid, sensible)]
    u, s, likely = (np.full(len(turns), np.nan) for _ in range(3))
    u[has_words] = judges[0].probability(None, said[has_words])
    s[has_both] = judges[1].probability(last[has_both], said[has_both])
    if masked is not None:
        low, high = _range(quartiles)
        sums = masked_surprisal(load_masked(masked, **options), said[has_words])
        likely[has_words] = (np.clip(sums, low, high) - low) / (high - low)
    parts = {"usl_h_valid": u, "usl_h_sensible": s, "usl_h_likely": likely}
    return pd.DataFrame({**parts, "usl_h": usl_h_composition(u, s, likely, form)}, turns.index)


def usl_h_provenance(
    *, valid: str, sensible: str, masked: str | None = MASKED_MODEL, **options
) -> dict:
    """Return what a USL-H score depends on besides the texts."""
    judges = {"valid": fingerprint(valid), "sensible": fingerprint(sensible)}
    model = provenance_of(masked, **options) if masked else {}
    return {
        **model,
        **judges,
        "formula": f"USL-{options.get('form', 'HS')}",
        "quartiles": options.get("quartiles"),
        "truncation": "25 last tokens of the context, 25 first of the response",
    }


def _range(quartiles: Sequence[float] | None) -> tuple[float, float]:
    if quartiles is None or not quartiles[1] > quartiles[0]:
        raise ValueError(
            "quartiles must be two growing numbers: np.quantile(masked_surprisal(model, texts), "
            "[.25, .75]) of a validation set"
        )
    return float(quartiles[0]), float(quartiles[1])
