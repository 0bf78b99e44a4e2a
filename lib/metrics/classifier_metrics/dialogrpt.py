"""DialogRPT (Gao et al. 2020): would people vote for, answer, and take this reply for human?"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from lib.data.blank import is_blank
from lib.metrics.registry import metric
from lib.models import Model, load_classifier, map_batches, pad, provenance_of

HEADS = {
    name: f"microsoft/DialogRPT-{name.replace('_', '-')}"
    for name in ("updown", "depth", "width", "human_vs_rand", "human_vs_machine")
}
CONTEXT_TURNS = 2
SEPARATOR = "<|endoftext|>"


def dialogrpt_ensemble(scores: Mapping[str, float]):
    """Combine the five heads by the authors' `ensemble.yml`.

    prior = .5 human_vs_rand + .5 human_vs_machine;
    cond = (updown + .48 depth - .5 width) / .98; score = prior · cond.

    >>> round(dialogrpt_ensemble(dict.fromkeys(HEADS, 0.5)), 4)
    0.25
    """
    prior = (0.5 * scores["human_vs_rand"] + 0.5 * scores["human_vs_machine"]) / 1
    feedback = (scores["updown"] + 0.48 * scores["depth"] - 0.5 * scores["width"]) / 0.98
    return prior * feedback


@metric(
    "dialogrpt",
    "classifier",
    ("context", "response"),
    version="1",
    facts=lambda **options: dialogrpt_provenance(**options),
)
def dialogrpt(
    turns: pd.DataFrame,
    *,
    heads: Mapping[str, str] | None = None,
    context_turns: int = CONTEXT_TURNS,
    batch_tokens: int = 4096,
    **options,
) -> pd.DataFrame:
    """Score each response by DialogRPT's heads, and by the ensemble where all five are given.

    score = sigmoid(w · h) with h the last hidden state at the last token of the response. The text
    is the last two turns of the context and the response, parted by "<|endoftext|>".

    The state is read at the row's own last token. (transformers 4.35 looked for the padding id,
    which is the separator too, and gave every response of a context one and the same score.)

    Args:
        turns: turn table; uses `context` and `response`.
        heads: name -> folder or hub id; all five by default.
        context_turns: turns of the context that are read; 2 as in the authors' script.
        options: `device`, `dtype`, `revision`.

    Returns:
        Columns dialogrpt_<head> in [0, 1], and dialogrpt (the ensemble), on `turns.index`; higher
        is better but for width, which the ensemble subtracts. NaN for a blank response or context.
        Beyond the model's positions the oldest tokens are cut.

    Reference: Gao et al. (2020), EMNLP; weights of the ensemble: restore/ensemble.yml.
    """
    heads = dict(heads or HEADS)
    rows, texts = [], []
    for row, (context, response) in enumerate(
        zip(turns["context"], turns["response"], strict=True)
    ):
        if not (is_blank(response) or all(map(is_blank, context))):
            rows.append(row)
            texts.append(SEPARATOR.join([*context[-context_turns:], response]))
    frame = pd.DataFrame(index=turns.index)
    for name, checkpoint in heads.items():
        values = np.full(len(turns), np.nan)
        values[rows] = last_token_scores(
            load_classifier(checkpoint, **options), texts, batch_tokens
        )
        frame[f"dialogrpt_{name}"] = values
    if set(HEADS) <= set(heads):
        frame["dialogrpt"] = dialogrpt_ensemble(
            {name: frame[f"dialogrpt_{name}"] for name in HEADS}
        )
    return frame


def last_token_scores(model: Model, texts: list[str], batch_tokens: int = 4096) -> np.ndarray:
    """Sigmoid of the head at the last token of each text, shape (n,)."""
    ids = model.tokenizer(texts)["input_ids"] if texts else []
    ids = [row[-model.positions :] for row in ids]

    @torch.inference_mode()
    def score(rows: np.ndarray) -> torch.Tensor:
        tokens, mask = (t.to(model.device) for t in pad([ids[row] for row in rows], 0))
        hidden = model.network.transformer(input_ids=tokens, attention_mask=mask).last_hidden_state
        last = hidden[torch.arange(len(rows)), mask.sum(1) - 1]
        return model.network.score(last)[:, 0].float().sigmoid()

    return map_batches(score, [len(row) for row in ids], tokens=batch_tokens, label="DialogRPT")


def dialogrpt_provenance(
    *, heads: Mapping[str, str] | None = None, context_turns: int = CONTEXT_TURNS, **options
) -> dict:
    """Return what DialogRPT's scores depend on besides the texts."""
    each = {name: provenance_of(model, **options) for name, model in (heads or HEADS).items()}
    first = next(iter(each.values()))
    own = ("checkpoint", "revision", "weights_sha256")
    return {
        **first,
        **{key: {name: facts[key] for name, facts in each.items()} for key in own},
        "formula": "sigmoid at the last token; ensemble of the authors",
        "truncation": f"last {context_turns} context turns, newest tokens",
    }
