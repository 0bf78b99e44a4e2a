"""FED (Mehri and Eskenazi 2020): is praise or blame the likelier next turn?"""

import ast
import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lib.data.blank import is_blank
from lib.metrics.registry import metric
from lib.models import Model, load_causal, map_batches, pad, provenance_of

CHECKPOINT = "microsoft/DialoGPT-large"
# The follow-ups are the authors' texts without a licence: read from their file, never copied here.
SOURCE = (
    "https://raw.githubusercontent.com/Shikib/fed/70ccf6d9650db9bc067d8c71388fc1ce196863c6/fed.py"
)
SOURCE_SHA256 = "1f47bae5e49395fe83f72d2e404f52ba45bec209526c37ba90bea658b0d25b9e"
SEPARATOR = " <|endoftext|> "
FollowUps = Mapping[str, Mapping[str, Sequence[str]]]


@cache
def follow_ups(path: str | Path | None = None) -> FollowUps:
    """Read the follow-up utterances of the 18 attributes out of the authors' `fed.py`.

    The file is parsed as text, not run. Without `path` it is downloaded once (and checked) into the
    user's cache.

    Returns:
        attribute -> {"positive": [...], "negative": [...]}; 8 of turns and 10 of dialogues.

    Raises:
        ValueError: the file holds no such tables.
    """
    if path is None:
        import pooch

        path = pooch.retrieve(SOURCE, f"sha256:{SOURCE_SHA256}", fname="fed_follow_ups.py")
    names = ("turn_level_utts", "dialog_level_utts")
    tables = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) in names
    }
    if len(tables) != len(names):
        raise ValueError(f"{path} holds no tables {' and '.join(names)}: is it FED's fed.py?")
    return {**tables[names[0]], **tables[names[1]]}


def fed_score(losses: Mapping[str, float], utterances: FollowUps) -> dict[str, float]:
    """Combine the losses of follow-ups into FED's scores.

    score = mean loss of the negative follow-ups - mean loss of the positive ones, where a mean over
    none is 0 (as in the authors' code; such an attribute is the loss itself and is never negative).

    >>> fed_score({"great": 2.0, "bad": 5.0}, {"fun": {"positive": ["great"], "negative": ["bad"]}})
    {'fun': 3.0}
    """

    def mean(texts: Sequence[str]) -> float:
        return sum(losses[text] for text in texts) / max(len(texts), 1)

    return {name: mean(u["negative"]) - mean(u["positive"]) for name, u in utterances.items()}


@metric(
    "fed",
    "likelihood",
    ("context", "response"),
    version="1",
    facts=lambda **options: fed_provenance(**options),
)
def fed(
    turns: pd.DataFrame,
    *,
    checkpoint: str = CHECKPOINT,
    follow_ups_file: str | None = None,
    utterances: FollowUps | None = None,
    batch_tokens: int = 4096,
    **options,
) -> pd.DataFrame:
    """FED's attributes of each response in its context.

    Each follow-up is appended to the conversation, turns parted by " <|endoftext|> ", and the loss
    is the mean over *all* tokens of conversation and follow-up, padding excluded. Beyond the
    positions of the model the oldest tokens are cut (the original fails there).

    Args:
        turns: turn table; uses `context` and `response`.
        checkpoint: folder or hub id of a GPT-2-like model.
        follow_ups_file: a copy of the authors' fed.py; downloaded without it.
        utterances: your own follow-ups in its place.
        options: `device`, `dtype`, `revision`.

    Returns:
        One column fed_<attribute> each on `turns.index`; unbounded, higher is better, comparable
        within an attribute only: one without positive follow-ups is all loss and dominates any
        average. NaN for a blank response.

    Reference: Mehri and Eskenazi (2020), SIGDIAL, section 4.
    """
    model = load_causal(checkpoint, **options)
    utterances = utterances or follow_ups(follow_ups_file)
    reactions = sorted({t for u in utterances.values() for side in u.values() for t in side})
    said = turns["response"].tolist()
    rows = [row for row, text in enumerate(said) if not is_blank(text)]
    talk = [SEPARATOR.join([*turns["context"].iloc[row], said[row]]) for row in rows]
    scores = np.full((len(turns), len(utterances)), np.nan)
    if rows:
        conversations = [text + SEPARATOR + reaction for text in talk for reaction in reactions]
        losses = text_losses(model, conversations, batch_tokens).reshape(len(rows), -1)
        for row, loss in zip(rows, losses, strict=True):
            named = dict(zip(reactions, loss, strict=True))
            scores[row] = list(fed_score(named, utterances).values())
    columns = [f"fed_{name.replace(' ', '_')}" for name in utterances]
    return pd.DataFrame(scores, index=turns.index, columns=columns)


def text_losses(model: Model, texts: Sequence[str], batch_tokens: int = 4096) -> np.ndarray:
    """Mean negative log-probability of the tokens of each text after "<|endoftext|> "."""
    start = SEPARATOR.lstrip()
    ids = model.tokenizer([t if t.startswith(start) else start + t for t in texts])["input_ids"]
    ids = [row[-model.positions :] for row in ids]

    @torch.inference_mode()
    def loss(rows: np.ndarray) -> torch.Tensor:
        tokens, mask = (t.to(model.device) for t in pad([ids[row] for row in rows], 0))
        logits = model.network(input_ids=tokens, attention_mask=mask).logits.float()
        logs = logits[:, :-1].log_softmax(-1).gather(2, tokens[:, 1:, None])[..., 0]
        mask = mask[:, 1:]
        return -(logs * mask).sum(1) / mask.sum(1)

    return map_batches(loss, [len(row) for row in ids], tokens=batch_tokens, label="FED")


def fed_provenance(*, checkpoint: str = CHECKPOINT, **options) -> dict:
    """Return what a FED score depends on besides the texts."""
    return {
        **provenance_of(checkpoint, **options),
        "formula": "FED: loss over all tokens, negative minus positive follow-ups",
        "follow_ups": _follow_ups_checksum(**options),
        "truncation": "oldest tokens beyond the model's positions",
    }


def _follow_ups_checksum(utterances=None, follow_ups_file=None, **options) -> str:
    if utterances:
        return "own, " + sha256(json.dumps(utterances).encode()).hexdigest()
    if follow_ups_file:
        return sha256(Path(follow_ups_file).read_bytes()).hexdigest()
    return SOURCE_SHA256
