"""UniEval-dialog (Zhong et al. 2022): five dimensions of a reply as yes-or-no questions to a T5."""

import warnings
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
import torch

from lib.data.blank import is_blank
from lib.metrics.registry import metric
from lib.models import Model, load_seq2seq, map_batches, pad, provenance_of

CHECKPOINT = "MingZhong/unieval-dialog"
MAX_TOKENS = 1024
# Verbatim from utils.py of github.com/maszhongming/UniEval, MIT License, (c) 2022 Ming Zhong. The
# checkpoint was trained on these five questions: any other wording is another metric.
QUESTIONS = {
    "naturalness": "Is this a natural response in the dialogue?",
    "coherence": "Is this a coherent response given the dialogue history?",
    "engagingness": (
        "Is this an engaging and informative response according to the dialogue history and fact?"
    ),
    "groundedness": "Is this response consistent with knowledge in the fact?",
    "understandability": "Is this an understandable response in the dialogue?",
}
READS = {"coherence": ("history",), "engagingness": ("history", "fact"), "groundedness": ("fact",)}


def question(dimension: str, response: str, history: str = "", fact: str = "") -> str:
    """Write the input of one dimension.

    >>> question("naturalness", "Tea, please.").split(" </s> ")[1]
    'response: Tea, please.'
    """
    parts = [f"question: {QUESTIONS[dimension]}", f"response: {response}"]
    known = {"history": f"dialogue history: {history}", "fact": f"fact: {fact}"}
    return " </s> ".join(parts + [known[name] for name in READS.get(dimension, ())])


def yes_probability(model: Model, texts: Sequence[str], batch_tokens: int = 4096) -> np.ndarray:
    """p(Yes) / (p(Yes) + p(No)) of the first word that the model answers, shape (n,)."""
    yes, no = (model.tokenizer(word)["input_ids"][0] for word in ("Yes", "No"))
    limit = min(MAX_TOKENS, model.positions)
    ids = model.tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
    start = model.network.config.decoder_start_token_id

    @torch.inference_mode()
    def score(rows: np.ndarray) -> torch.Tensor:
        tokens, mask = pad([ids[row] for row in rows], model.tokenizer.pad_token_id)
        logits = model.network(
            input_ids=tokens.to(model.device),
            attention_mask=mask.to(model.device),
            decoder_input_ids=torch.full((len(rows), 1), start, device=model.device),
        ).logits[:, 0, [yes, no]]
        return logits.float().softmax(-1)[:, 0]

    return map_batches(score, [len(row) for row in ids], tokens=batch_tokens, label="UniEval")


@metric(
    "unieval",
    "classifier",
    ("context", "response", "fact"),
    version="1",
    facts=lambda **options: unieval_provenance(**options),
)
def unieval(
    turns: pd.DataFrame, *, checkpoint: str = CHECKPOINT, batch_tokens: int = 4096, **options
) -> pd.DataFrame:
    """UniEval's five dimensions of each response and their means.

    Naturalness and understandability read the response, coherence also the history, groundedness
    the fact, engagingness both. Engagingness is asked per sentence and *summed*, as the authors do,
    so it has no upper bound and outweighs the others in `unieval_overall`; the mean over sentences
    and an overall with it stand beside. The five questions are the authors' own, word for word
    (github.com/maszhongming/UniEval, MIT License): the checkpoint was trained on no others.

    Args:
        turns: turn table; uses `context`, `response` and `fact`.
        checkpoint: folder or hub id.
        options: `device`, `dtype`, `revision`.

    Returns:
        Columns unieval_<dimension>, unieval_overall (plain mean of the five, as published),
        unieval_engagingness_mean and unieval_overall_mean on `turns.index`; higher is better; all
        but the summed two in [0, 1]. NaN for a blank response; without context or fact also for
        the dimensions that read it.

    Reference: Zhong et al. (2022), EMNLP, section 3.
    """
    model = load_seq2seq(checkpoint, **options)
    inputs, row, dimension = _questions(turns)
    asked = pd.DataFrame({"row": row, "dimension": dimension}, dtype=object)
    asked["yes"] = yes_probability(model, inputs, batch_tokens) if inputs else []
    grouped = asked.groupby(["dimension", "row"])["yes"].agg(["sum", "mean"])
    frame = pd.DataFrame(index=range(len(turns)))
    for name in QUESTIONS:
        found = grouped.loc[name] if name in grouped.index else grouped.iloc[:0].droplevel(0)
        frame[f"unieval_{name}"] = found["sum"].reindex(frame.index).astype(float)
        if name == "engagingness":
            mean = found["mean"].reindex(frame.index).astype(float)
    five = frame.copy()
    frame["unieval_overall"] = five.mean(axis=1, skipna=False)
    frame["unieval_engagingness_mean"] = mean
    five["unieval_engagingness"] = mean
    frame["unieval_overall_mean"] = five.mean(axis=1, skipna=False)
    return frame.set_axis(turns.index)


def sentences(text: str) -> list[str]:
    """Split into sentences by Punkt: NLTK's English model where it is installed.

    >>> sentences("Tea is nice. Is it hot?")
    ['Tea is nice.', 'Is it hot?']
    """
    return _punkt()[0].tokenize(text)


def unieval_provenance(*, checkpoint: str = CHECKPOINT, **options) -> dict:
    """Return what a UniEval score depends on besides the texts."""
    return {
        **provenance_of(checkpoint, **options),
        "formula": "UniEval-dialog, engagingness summed over sentences",
        "sentences": _punkt()[1],
        "truncation": f"first {MAX_TOKENS} tokens",
    }


def _questions(turns: pd.DataFrame) -> tuple[list[str], list[int], list[str]]:
    asked = []
    for row, (response, context, facts) in enumerate(
        zip(turns["response"], turns["context"], turns["fact"], strict=True)
    ):
        if is_blank(response):
            continue
        given = {"history": "".join(f"{turn}\n" for turn in context), "fact": "\n".join(facts)}
        for name in QUESTIONS:
            if not any(is_blank(given[part]) for part in READS.get(name, ())):
                texts = sentences(response) if name == "engagingness" else [response]
                ask = {"history": given["history"] + "\n", "fact": given["fact"] + "\n"}
                asked += [(question(name, text, **ask), row, name) for text in texts]
    return tuple(map(list, zip(*asked, strict=True))) if asked else ([], [], [])


@cache
def _punkt() -> tuple:
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTokenizer

    try:
        return PunktTokenizer("english"), "NLTK punkt_tab, English"
    except LookupError:
        warnings.warn(
            "NLTK's English sentence model is not installed (nltk.download('punkt_tab')): "
            "UniEval's engagingness splits with untrained Punkt, which knows no abbreviations",
            stacklevel=3,
        )
        return PunktSentenceTokenizer(), "untrained Punkt"
