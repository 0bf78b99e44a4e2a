"""EnDex scores of replies, the rule-based baselines (section 3.3), and the length of the reply.

The rules read every corpus alike, whether its texts are tokenised ("was it cold ?") or not: a word
is a run of letters and digits, with apostrophes inside; other signs are no words.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT, models
from lib.data.storage import sha256
from lib.endex.reddit import STOP_WORDS, stop_words
from lib.metrics.registry import metric

WORD = re.compile(r"\w+(?:'\w+)*")
PACKAGED = "packaged"
WEIGHTS = ROOT / "data" / "models" / "endex_small.safetensors"  # read on top of the encoder


def _facts(model: str | Path = PACKAGED, **options) -> dict:
    if model != PACKAGED:
        return models.provenance_of(model)
    encoder = models.provenance_of(models.DEFAULT_ENCODER)
    return encoder | {"endex_small_sha256": sha256(WEIGHTS)}


@metric("endex", "engagement", ("context", "response"), version="2", facts=_facts)
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
        model: "packaged", which data/models/train_endex.py trained; the folder of a run; or the
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
    from lib.endex.network import encode, load

    loaded, below, own_length = load(WEIGHTS if model == PACKAGED else model, **options)
    if loaded.network.config.num_labels != 2:
        raise ValueError(f"{model} has {loaded.network.config.num_labels} classes, not 2")
    there = turns["response"].map(lambda text: isinstance(text, str)).to_numpy(bool)
    known = turns.loc[there, ["context", "response"]]
    known["context"] = ["" if past is None else "".join(past[-1:]) for past in known["context"]]
    pairs = encode(loaded.tokenizer, known, min(max_length or own_length, loaded.positions))

    def engaging(*read):
        batch = dict(zip(pairs, read[::2], strict=True)) | {"attention_mask": read[1]}
        given = below(batch) if below else batch
        return loaded.network(**given).logits.float().softmax(-1)[:, 1]

    scores = np.full(len(turns), np.nan)
    scores[there] = models.infer(loaded, engaging, *pairs.values())
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


@metric("question", "baseline", version="2")
def question(turns: pd.DataFrame) -> pd.Series:
    """1 where the reply has a question mark, else 0 (the Question row of Table 2).

    The paper gives no definition. To count question words as well, wherever they stand, gives its
    row to the digit on BETTER and PREDENG-600, but takes "it turned red when the sun set" for a
    question. Higher is more engaging; NaN for a missing reply.

    >>> question(pd.DataFrame({"response": ["have you tried it?", "It was red when I left."]}))[0]
    np.float64(1.0)
    """
    return _of_response(turns, lambda text: "?" in text, "question")


@metric("specificity", "baseline", version="2", facts=lambda: {"stop_words": sha256(STOP_WORDS)})
def specificity(turns: pd.DataFrame) -> pd.Series:
    """Content words of the reply: those that are not on the stop list (See et al. 2019).

    Range 0 and up, higher is more engaging; NaN for a missing reply. The paper's row could not be
    reproduced by this or by any other variant of the count that was tried.

    >>> specificity(pd.DataFrame({"response": ["I bake rye bread", "ok i am"]})).tolist()
    [3.0, 1.0]
    """
    return _of_response(
        turns, lambda text: sum(word not in stop_words() for word in words(text)), "specificity"
    )


@metric("length", "baseline", version="2")
def length(turns: pd.DataFrame) -> pd.Series:
    """Words of the reply: what a metric must beat to be worth its cost.

    Range 0 and up, higher is more engaging; NaN for a missing reply.

    >>> length(pd.DataFrame({"response": ["I bake bread!", "I bake bread !", ""]})).tolist()
    [3.0, 3.0, 0.0]
    """
    return _of_response(turns, lambda text: len(words(text)), "length")


@metric("random", "baseline", version="1", whole=True)
def random(turns: pd.DataFrame, seed: int = 0) -> pd.Series:
    """Uniform draws between 0 and 1: what chance reaches on a set of this size.

    >>> random(pd.DataFrame({"response": ["a", "b"]})).between(0, 1).all()
    np.True_
    """
    return pd.Series(np.random.default_rng(seed).random(len(turns)), turns.index, name="random")


def words(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> words("Don't!  Isn’t it 3 o'clock ?")
    ["don't", "isn't", 'it', '3', "o'clock"]
    """
    return WORD.findall(text.lower().replace("’", "'"))


def _of_response(turns: pd.DataFrame, count, name: str) -> pd.Series:
    values = [float(count(text)) if isinstance(text, str) else np.nan for text in turns["response"]]
    return pd.Series(values, turns.index, dtype=float, name=name)
