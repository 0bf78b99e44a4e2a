"""Metrics that a trained classifier or regressor gives: BLEURT, DialogRPT, UniEval, toxicity.

Each needs its own checkpoint, which is not packaged: the error of `lib.models.find_model` says how
to provide it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from lib import models
from lib.data.storage import DataError
from lib.data.turn_table import is_blank
from lib.data.turn_texts import best_over_texts, earlier_utterances, score_where_text
from lib.metrics.registry import metric
from lib.models import score_in_batches, token_ids

TOXIC_BERT = "unitary/toxic-bert"
BLEURT_20 = "lucadiliello/BLEURT-20"
UNIEVAL = "MingZhong/unieval-dialog"
HEADS = {
    name: f"microsoft/DialogRPT-{name.replace('_', '-')}"
    for name in ("updown", "depth", "width", "human_vs_rand", "human_vs_machine")
}
SEPARATOR = "<|endoftext|>"  # between turns, as DialogRPT reads them
# Verbatim from utils.py of github.com/maszhongming/UniEval, MIT License, (c) 2022 Ming Zhong. The
# checkpoint was trained on these five questions: any other wording is another metric.
QUESTIONS = {
    "naturalness": "Is this a natural response in the dialogue?",
    "coherence": "Is this a coherent response given the dialogue history?",
    "engagingness": "Is this an engaging and informative response according to the dialogue "
    "history and fact?",
    "groundedness": "Is this response consistent with knowledge in the fact?",
    "understandability": "Is this an understandable response in the dialogue?",
}
#: What a question is asked about besides the response.
INPUTS = {
    "coherence": ("dialogue history",),
    "engagingness": ("dialogue history", "fact"),
    "groundedness": ("fact",),
}


@metric("toxicity", "classifier", ("response",), model=TOXIC_BERT, version="1")
def toxicity(
    turns: pd.DataFrame, *, checkpoint: str = TOXIC_BERT, **options
) -> pd.Series:
    """Probability that each response is toxic; *lower* is better.

    The sigmoid of the label "toxic" (six labels, not exclusive), so equal to Detoxify's
    `predict(text)["toxicity"]` with the same weights. The model takes swear words for toxicity
    whatever they are used for (so say its authors). Appendix A.1 of the EnDex paper filters
    comments by it: pass them as the column `response`.

    Args:
        turns: turn table; uses `response`.
        checkpoint: folder or hub id of a classifier with a label "toxic".
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        Series "toxicity" on `turns.index` in [0, 1]; NaN for a blank response.

    Raises:
        KeyError: the model has no label "toxic".

    Reference: Hanu and Unitary team (2020), Detoxify.
    """
    model = models.load_classifier(checkpoint, **options)
    toxic = model.network.config.label2id["toxic"]

    def score_batch(tokens, mask):
        return model(tokens, mask).logits[:, toxic].float().sigmoid()

    def score(texts):
        return score_in_batches(model, score_batch, token_ids(model, texts))

    return pd.Series(
        score_where_text(score, turns["response"]), turns.index, name="toxicity"
    )


@metric("bleurt", "classifier", ("response", "reference"), model=BLEURT_20, version="1")
def bleurt(turns: pd.DataFrame, *, checkpoint: str = BLEURT_20, **options) -> pd.Series:
    """Score each response against its references by BLEURT; the best of them counts.

    The regression head over [CLS] of "[CLS] reference [SEP] response [SEP]", cut to the model's
    positions, the longer text first.

    Args:
        turns: turn table; uses `response` and `reference`.
        checkpoint: a PyTorch conversion; BLEURT-20 (and D3 to D12) or an older bleurt-*; scores of
            two checkpoints do not compare, and older ones are not calibrated to any range.
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        Series "bleurt" on `turns.index`, about 0 to 1 for BLEURT-20, higher is better; NaN for a
        blank response or without a reference that has a word.

    Reference: Sellam et al. (2020), ACL; Pu et al. (2021), EMNLP (BLEURT-20).
    """
    model = _load_bleurt(checkpoint, **options)

    def score_batch(tokens, mask, types, _):
        return model(tokens, mask, token_type_ids=types * mask).logits[:, 0].float()

    def score(references, responses):
        pairs = model.tokenizer(
            references,
            responses,
            return_token_type_ids=True,
            truncation=True,
            max_length=model.positions,
        )
        return score_in_batches(
            model, score_batch, pairs["input_ids"], pairs["token_type_ids"]
        )

    def score_with_text(references, responses):
        return score_where_text(score, references, responses)

    scores = best_over_texts(turns["reference"], turns["response"], score_with_text)
    return pd.Series(scores, turns.index, name="bleurt")


def _load_bleurt(
    checkpoint: str, *, device=None, revision=None, batch_tokens=None, dtype="float32"
) -> models.Model:
    location = models.find_model(checkpoint, revision)
    model = _load_bleurt_once(location, str(device or models.default_device()), dtype)
    return replace(model, batch_tokens=batch_tokens)


@lru_cache(maxsize=2)
def _load_bleurt_once(
    location: models.Location, device: str, dtype: str
) -> models.Model:
    """Load a BLEURT checkpoint as the architecture of transformers that it has.

    The conversions state the model type "bleurt", which transformers does not know. It is BERT, or
    with embeddings of their own width (BLEURT-20) RemBERT, under other names.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    folder = models.safetensors_folder(location)
    stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if stored.pop("model_type", "") != "bleurt":
        return models.load_classifier(folder, device=device, dtype=dtype)
    width = stored.get("embedding_size")
    architecture = "rembert" if width else "bert"
    stored |= {
        "input_embedding_size": width,
        "output_embedding_size": width,
        "num_labels": 1,
    }
    config = AutoConfig.for_model(architecture, **stored)
    network = models.load_network(
        AutoModelForSequenceClassification,
        folder,
        config=config,
        key_mapping={
            "^bleurt": architecture,
            "embedding_projection": "embedding_hidden_mapping_in",
        },
    )
    tokenizer = models.load_tokenizer(folder, config=config)
    network = network.to(device, getattr(torch, dtype))
    return models.Model(network, tokenizer, torch.device(device))


def dialogrpt_ensemble(scores: Mapping):
    """Combine DialogRPT's five heads by the authors' `ensemble.yml`.

    prior = .5 human_vs_rand + .5 human_vs_machine;
    cond = (updown + .48 depth - .5 width) / .98; score = prior · cond.

    >>> round(dialogrpt_ensemble(dict.fromkeys(HEADS, 0.5)), 4)
    0.25
    """
    prior = 0.5 * scores["human_vs_rand"] + 0.5 * scores["human_vs_machine"]
    feedback = (
        scores["updown"] + 0.48 * scores["depth"] - 0.5 * scores["width"]
    ) / 0.98
    return prior * feedback


def _provenance(*, heads: Mapping[str, str] = HEADS, **options) -> dict:
    return {name: models.provenance_of(head, **options) for name, head in heads.items()}


@metric(
    "dialogrpt",
    "classifier",
    ("context", "response"),
    version="3",
    provenance=_provenance,
)
def dialogrpt(
    turns: pd.DataFrame, *, heads: Mapping = HEADS, **options
) -> pd.DataFrame:
    """Score each response by DialogRPT's heads, and by the ensemble where all five are given.

    Would people vote for this reply, answer it, take it for human? score = sigmoid(w · h) with h
    the last hidden state at the last token of the response. The text is the last two turns of the
    context (as in the authors' script) and the response, each without blanks at its ends, separated
    by "<|endoftext|>"; a blank turn is left out. Beyond the model's positions the oldest tokens are
    cut.

    The state is read at the row's own last token. (transformers 4.35 looked for the padding id,
    which is the separator too, and gave every response of a context one and the same score.)

    Args:
        turns: turn table; uses `context` and `response`.
        heads: name -> folder or hub id; all five by default.
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        Columns dialogrpt_<head> in [0, 1], and dialogrpt (the ensemble), on `turns.index`; higher
        is better but for width, which the ensemble subtracts. NaN for a blank response or context.

    Reference: Gao et al. (2020), EMNLP; weights of the ensemble: restore/ensemble.yml.
    """
    contexts = []
    for texts in earlier_utterances(turns, 2):
        contexts.append(
            SEPARATOR.join(text.strip() for text in texts if not is_blank(text))
        )
    scores = pd.DataFrame(index=turns.index)
    for name, checkpoint in heads.items():
        score = partial(
            _score_last_token, models.load_classifier(checkpoint, **options)
        )
        scores[name] = score_where_text(score, contexts, turns["response"])
    columns = scores.add_prefix("dialogrpt_")
    if set(HEADS) <= set(scores):
        columns["dialogrpt"] = dialogrpt_ensemble(scores)
    return columns


def _score_last_token(
    model: models.Model, contexts: Sequence[str], responses: Sequence[str]
) -> np.ndarray:
    """Sigmoid of the head at the last token of context and response, shape (n,)."""
    texts = []
    for context, response in zip(contexts, responses, strict=True):
        texts.append(f"{context.strip()}{SEPARATOR}{response.strip()}")

    def score_batch(tokens, mask):
        hidden = model.network.transformer(
            input_ids=tokens, attention_mask=mask
        ).last_hidden_state
        last = hidden[range(len(mask)), mask.sum(1) - 1]
        return model.network.score(last)[:, 0].float().sigmoid()

    return score_in_batches(model, score_batch, token_ids(model, texts, newest=True))


def yes_probability(model: models.Model, texts: Sequence[str]) -> np.ndarray:
    """p(Yes) / (p(Yes) + p(No)) of the first word that the model answers, shape (n,).

    A text is cut to its first 1,024 tokens, as in the authors' code: T5 takes any number.
    """
    answers = [model.tokenizer(word)["input_ids"][0] for word in ("Yes", "No")]
    start = model.network.config.decoder_start_token_id

    def score_batch(tokens, mask):
        first = tokens.new_full((len(tokens), 1), start)
        logits = model(tokens, mask, decoder_input_ids=first).logits
        return logits[:, 0, answers].float().softmax(-1)[:, 0]

    return score_in_batches(
        model, score_batch, token_ids(model, texts, max_tokens=1024)
    )


@metric(
    "unieval", "classifier", ("context", "response", "fact"), model=UNIEVAL, version="2"
)
def unieval(
    turns: pd.DataFrame, *, checkpoint: str = UNIEVAL, **options
) -> pd.DataFrame:
    """UniEval's five dimensions of each response and their means.

    Naturalness and understandability read the response, coherence also the history, groundedness
    the fact, engagingness both. Engagingness is asked per sentence and *summed*, as the authors do,
    so it has no upper bound and outweighs the others in the mean of the five. The five questions
    are the authors' own, word for word
    (github.com/maszhongming/UniEval, MIT License): the checkpoint was trained on no others.

    Args:
        turns: turn table; uses `context`, `response` and `fact`.
        checkpoint: folder or hub id.
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        Columns unieval_<dimension> and unieval_overall (plain mean of the five, as published) on
        `turns.index`; higher is better; all but engagingness and overall in [0, 1]. NaN for a blank
        response; without context or fact also for the dimensions that read it.

    Reference: Zhong et al. (2022), EMNLP, section 3.
    """
    model = models.load_seq2seq(checkpoint, **options)
    scores = pd.DataFrame(index=range(len(turns)))
    for dimension in QUESTIONS:
        inputs = unieval_inputs(turns, dimension)
        answers = pd.Series(yes_probability(model, inputs.tolist()), inputs.index)
        scores[dimension] = answers.groupby(level=0).sum()
    scores["overall"] = scores.mean(axis=1, skipna=False)
    return scores.add_prefix("unieval_").set_axis(turns.index)


def unieval_inputs(turns: pd.DataFrame, dimension: str) -> pd.Series:
    r"""Write UniEval's inputs of one dimension; the index says of which row each is.

    >>> turns = pd.DataFrame({"response": ["Tea."], "context": [["Hi"]], "fact": [[]]})
    >>> unieval_inputs(turns, "coherence")[0].split(" </s> ")[1:]
    ['response: Tea.', 'dialogue history: Hi\n\n']
    """
    if dimension == "engagingness":
        splitter = sentence_splitter()
    contexts = earlier_utterances(turns)
    inputs = {}
    for row, response in enumerate(turns["response"]):
        sources = {
            "dialogue history": "".join(f"{text}\n" for text in contexts[row]),
            "fact": "\n".join(turns["fact"].iloc[row]),
        }
        sources = {name: sources[name] for name in INPUTS.get(dimension, ())}
        if is_blank(response) or any(map(is_blank, sources.values())):
            continue
        parts = [response]
        if dimension == "engagingness":
            parts = splitter.tokenize(response)
        question = f"question: {QUESTIONS[dimension]} </s> response: "
        rest = "".join(f" </s> {name}: {text}\n" for name, text in sources.items())
        inputs[row] = [question + part + rest for part in parts]
    return pd.Series(inputs, dtype=object).explode()


def sentence_splitter():
    """Return NLTK's Punkt for English, as the authors of UniEval use it.

    Raises:
        DataError: its data are not on this machine; says how to get them.
    """
    from nltk.tokenize.punkt import PunktTokenizer

    try:
        return PunktTokenizer("english")
    except LookupError as error:
        raise DataError(
            "NLTK's sentence splitter, which UniEval needs, is not on this machine",
            fix="python -m nltk.downloader punkt_tab",
        ) from error
