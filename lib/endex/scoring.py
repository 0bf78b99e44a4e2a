"""EnDex scores of replies (section 2.5)."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT, models
from lib.data.storage import file_sha256
from lib.metrics.registry import metric

PACKAGED = "packaged"
WEIGHTS = ROOT / "data" / "models" / "endex_small.safetensors"  # read on top of the encoder


def _facts(model: str | Path = PACKAGED, **options) -> dict:
    if model != PACKAGED:
        return models.provenance_of(model)
    encoder = models.provenance_of(models.DEFAULT_ENCODER)
    return encoder | {"endex_small_sha256": file_sha256(WEIGHTS)}


@metric("endex", "engagement", ("context", "response"), version="2", provenance=_facts)
def endex_scores(
    turns: pd.DataFrame,
    model: str | Path = PACKAGED,
    max_length: int | None = None,
    **options,
) -> pd.Series:
    """Probability that each reply is engaging, by a network that `fine_tune` made.

    EnDex, section 2.5: the pair of what was said last and the reply is classified.

    Args:
        turns: turn table with context and response.
        model: "packaged", which scripts/train_endex.py trained; the folder of a run; or the
            hub id of a classifier of two classes (label 1 engaging).
        max_length: tokens of a pair; the longer text is cut first. As in training by default.
        options: `device`, `dtype`, `revision` of `models.load_classifier`.

    Returns:
        Range 0-1, higher is more engaging, on `turns.index`. NaN where the reply is missing; an
        empty reply is a reply. A missing context is read as empty.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: the model has not two classes.
    """

    from lib.endex.network import encode_context_pairs, load_classifier

    loaded, below, own_length = load_classifier(WEIGHTS if model == PACKAGED else model, **options)
    if loaded.network.config.num_labels != 2:
        raise ValueError(f"{model} has {loaded.network.config.num_labels} classes, not 2")
    there = turns["response"].map(lambda text: isinstance(text, str)).to_numpy(bool)
    known = turns.loc[there, ["context", "response"]]
    known["context"] = ["" if past is None else "".join(past[-1:]) for past in known["context"]]
    pairs = encode_context_pairs(
        loaded.tokenizer, known, min(max_length or own_length, loaded.positions)
    )

    def engaging(*read):
        batch = dict(zip(pairs, read[::2], strict=True)) | {"attention_mask": read[1]}
        given = below(batch) if below else batch
        return loaded.network(**given).logits.float().softmax(-1)[:, 1]

    scores = np.full(len(turns), np.nan)
    scores[there] = models.score_in_batches(loaded, engaging, *pairs.values())
    return pd.Series(scores, turns.index, name="endex")


def system_turns(dialogs: pd.DataFrame) -> pd.DataFrame:
    """The replies of the systems of whole dialogs as a turn table; `item` is the dialog's position.

    An utterance without anything before it is an opening, not a reply, and is left out.

    >>> dialogs = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["d"],
    ...     "utterances": [["Hi", "Hello", "Bye"]], "speakers": [["user", "system", "user"]]})
    >>> system_turns(dialogs)[["turn", "context", "response"]].values.tolist()
    [[1, ['Hi'], 'Hello']]
    """
    columns = ["system", "agent", "dialog", "utterances", "speakers"]
    rows = [
        (*key, turn, list(said[:turn]), said[turn], item)
        for item, (*key, said, speakers) in enumerate(dialogs[columns].itertuples(index=False))
        for turn, who in enumerate(speakers)
        if who == "system" and turn > 0
    ]
    return pd.DataFrame(rows, columns=[*columns[:3], "turn", "context", "response", "item"])
