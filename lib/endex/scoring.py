"""EnDex scores of replies, and of dialogs and systems by pooling."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib.metrics.registry import metric

MAX_LENGTH = 128


def _facts(model: str | Path, **options) -> dict:
    from lib import models

    return models.provenance_of(model)


@metric("endex", "engagement", ("context", "response"), version="1", facts=_facts)
def endex_scores(
    turns: pd.DataFrame,
    model: str | Path,
    context_turns: int = 1,
    max_length: int = MAX_LENGTH,
    batch_tokens: int = 8192,
    **options,
) -> pd.Series:
    """Probability that each reply is engaging, by a network that `fine_tune` made.

    EnDex, section 2.5: the pair of what was said before and the reply is classified.

    Args:
        turns: turn table with context and response.
        model: folder of a run, or the hub id of a classifier of two classes (label 1 engaging).
        context_turns: last utterances of the context that are read; 1 as in training. More are
            joined by a space.
        max_length: tokens of a pair; the longer text is cut first.
        batch_tokens: size of a batch; scores do not depend on it.
        options: `device`, `dtype`, `revision` of `models.load_classifier`.

    Returns:
        Range 0-1, higher is more engaging, on `turns.index`. NaN where the reply is missing; an
        empty reply is a reply. A missing context is read as empty.

    Raises:
        CheckpointError: the model cannot be loaded.
        ValueError: the model has not two classes.
    """
    import torch
    from transformers import DataCollatorWithPadding

    from lib import models
    from lib.endex.network import encode
    from lib.models import map_batches

    loaded = models.load_classifier(model, **options)
    if loaded.network.config.num_labels != 2:
        raise ValueError(f"{model} has {loaded.network.config.num_labels} classes, not 2")
    there = turns["response"].map(lambda text: isinstance(text, str)).to_numpy(bool)
    known = turns[there]
    contexts = [" ".join(context[-context_turns:]) for context in known["context"]]
    most = min(max_length, loaded.positions)
    pairs = encode(loaded.tokenizer, contexts, known["response"], most)
    pad = DataCollatorWithPadding(loaded.tokenizer)

    @torch.inference_mode()
    def engaging(rows: np.ndarray) -> torch.Tensor:
        tensors = pad([pairs[row] for row in rows]).to(loaded.device)
        return loaded.network(**tensors).logits.float().softmax(-1)[:, 1]

    lengths = [len(pair["input_ids"]) for pair in pairs]
    scores = np.full(len(turns), np.nan)
    scores[there] = map_batches(engaging, lengths, tokens=batch_tokens, label="EnDex")
    return pd.Series(scores, turns.index, name="endex")


def system_turns(dialogs: pd.DataFrame, speaker: str = "system") -> pd.DataFrame:
    """The replies of one side of whole dialogs as a turn table; `item` is the dialog's position.

    An utterance without anything before it is an opening, not a reply, and is left out.

    >>> dialogs = pd.DataFrame({"system": ["A"], "agent": ["A"], "dialog": ["d"],
    ...     "utterances": [["Hi", "Hello", "Bye"]], "speakers": [["user", "system", "user"]]})
    >>> system_turns(dialogs)[["turn", "context", "response"]].values.tolist()
    [[1, ['Hi'], 'Hello']]
    """
    rows = [
        {
            **{name: getattr(dialog, name) for name in ("system", "agent", "dialog")},
            "turn": turn,
            "context": list(dialog.utterances[:turn]),
            "response": text,
            "item": item,
        }
        for item, dialog in enumerate(dialogs.itertuples())
        for turn, (text, who) in enumerate(zip(dialog.utterances, dialog.speakers, strict=True))
        if who == speaker and turn > 0
    ]
    columns = ["system", "agent", "dialog", "turn", "context", "response", "item"]
    return pd.DataFrame(rows, columns=columns)
