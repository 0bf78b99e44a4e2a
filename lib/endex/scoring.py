"""EnDex scores of replies (section 2.5)."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT, models
from lib.data.storage import file_sha256
from lib.data.turn_texts import earlier_utterances
from lib.metrics.registry import metric

PACKAGED = "packaged"
# The packaged network: its last layers, read on top of the encoder.
WEIGHTS = ROOT / "data" / "models" / "endex_small.safetensors"


def _provenance(
    model: str | Path = PACKAGED, max_length: int | None = None, **options
) -> dict:
    if model != PACKAGED:
        return models.provenance_of(model, **options)
    encoder = models.provenance_of(models.DEFAULT_ENCODER, **options)
    return encoder | {"endex_small_sha256": file_sha256(WEIGHTS)}


@metric(
    "endex", "engagement", ("context", "response"), version="2", provenance=_provenance
)
def endex_scores(
    turns: pd.DataFrame,
    model: str | Path = PACKAGED,
    max_length: int | None = None,
    **options,
) -> pd.Series:
    """Probability that each reply is engaging, by a network that `fine_tune` made.

    EnDex, section 2.5: the pair of the last utterance before the reply and the reply is classified.

    Args:
        turns: turn table with context and response.
        model: "packaged", which scripts/train_endex.py trained; the folder of a run; or the
            hub id of a classifier of two classes (label 1 engaging).
        max_length: tokens of a pair; the longer text is cut first. As in training by default.
        options: `device`, `dtype`, `revision`, `batch_tokens` of `models.load_classifier`. A
            network with frozen layers, such as the packaged one, takes no dtype and no revision.

    Returns:
        Range 0-1, higher is more engaging, on `turns.index`. NaN where the reply is missing; an
        empty reply is a reply. A missing context is read as empty.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: the model does not have two classes, or an option does not apply to it.
        TypeError: an unknown option.
    """

    from lib.endex.classifier import load_classifier, score_pairs

    folder = WEIGHTS if model == PACKAGED else model
    loaded, own_length = load_classifier(folder, **options)
    n_classes = loaded.network.config.num_labels
    if n_classes != 2:
        raise ValueError(f"{model} has {n_classes} classes, not 2")
    has_reply = turns["response"].map(lambda text: isinstance(text, str)).to_numpy(bool)
    pairs = turns.loc[has_reply, ["context", "response"]]
    pairs["context"] = [
        "".join(context) for context in earlier_utterances(pairs, last=1)
    ]
    scores = np.full(len(turns), np.nan)
    scores[has_reply] = score_pairs(loaded, pairs, max_length or own_length)
    return pd.Series(scores, turns.index, name="endex")


def system_turns(dialogs: pd.DataFrame) -> pd.DataFrame:
    """The replies of the systems of whole dialogs as a turn table; `item` is the dialog's position.

    An utterance without anything before it is an opening, not a reply, and is left out.

    >>> dialogs = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["d"],
    ...     "utterances": [["Hi", "Hello", "Bye"]], "speakers": [["user", "system", "user"]]})
    >>> system_turns(dialogs)[["turn", "context", "response"]].values.tolist()
    [[1, ['Hi'], 'Hello']]
    """
    names = ["system", "agent", "dialog"]
    rows = []
    for item, dialog in enumerate(dialogs.to_dict("records")):
        for turn, speaker in enumerate(dialog["speakers"]):
            if speaker != "system" or turn == 0:
                continue
            row = {name: dialog[name] for name in names}
            row["turn"] = turn
            row["context"] = list(dialog["utterances"][:turn])
            row["response"] = dialog["utterances"][turn]
            rows.append(row | {"item": item})
    return pd.DataFrame(rows, columns=[*names, "turn", "context", "response", "item"])
