"""How likely a text is given another one: BARTScore, Prism-style scores and FED.

An encoder-decoder scores a text by `log_probability`, a language model that reads from left to
right by `segment_log_probabilities`; the rest is one formula each. A column of another model than
its authors' carries the model's name: `fed_engaging[smollm2]`.
"""

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import models
from lib.data.turn_table import is_blank
from lib.data.turn_texts import best_over_texts, earlier_utterances, score_where_text
from lib.metrics.registry import metric
from lib.models import SMOLLM2, Model, score_in_batches, token_ids

BART, TRANSLATOR = "facebook/bart-large-cnn", "facebook/m2m100_418M"
DIALOGPT = "microsoft/DialoGPT-large"
# FED's follow-ups are the authors' texts without a licence: read from their file, not copied here.
COMMIT = "70ccf6d9650db9bc067d8c71388fc1ce196863c6"
SOURCE = f"https://raw.githubusercontent.com/Shikib/fed/{COMMIT}/fed.py"
SOURCE_SHA256 = "1f47bae5e49395fe83f72d2e404f52ba45bec209526c37ba90bea658b0d25b9e"
FollowUps = Mapping[str, Mapping[str, Sequence[str]]]


def segment_log_probabilities(model: Model, *segments: Sequence[str], tokens=512) -> np.ndarray:
    """Log-probability of each segment of texts that share their beginnings, by a causal model.

    A text comes in segments, such as context, reply and follow-up. What texts share is read once: a
    batch is one row of tokens, and each attends to those of its own text alone. Beyond the
    positions of the model the oldest tokens of the first segment are cut.

    Args:
        segments: columns of n texts each, no text empty.
        tokens: most tokens in a batch; a longer text stands alone.

    Returns:
        Shape (n, segments, 2): the sum over the tokens of a segment, natural logarithm, and how
        many they are. The very first token has nothing before it and does not count. NaN where
        nothing of the first segment fits.
    """
    import torch

    texts = list({text for column in segments for text in column})
    ids = dict(zip(texts, map(tuple, token_ids(model, texts, newest=True)), strict=True))
    paths, found = [], {}
    for first, *rest in zip(*segments, strict=True):
        after = [ids[text] for text in rest]
        room = model.positions - sum(map(len, after))
        paths.append((ids[first][-room:], *after) if room > 0 else ())
    with torch.inference_mode():
        for tree in tqdm(_trees(sorted(set(paths)), tokens), "paths", delay=5, leave=False):
            found |= _read(model, tree)
    ends = range(1, len(segments) + 1)
    return np.array([[found.get(path[:end], (np.nan,) * 2) for end in ends] for path in paths])


def _trees(paths: list, tokens: int) -> list[dict]:
    """Beginnings of sorted paths, each once and the shorter first, in batches."""
    trees: list[dict] = [{}]
    for path in paths:
        starts = dict.fromkeys(path[: end + 1] for end in range(len(path)))
        if sum(len(start[-1]) for start in trees[-1] | starts) > tokens:
            trees.append({})
        trees[-1] |= starts
    return [tree for tree in trees if tree]


def _read(model: Model, tree: dict) -> dict:
    """Log-probability of the last segment of each beginning, and its tokens, in one pass."""
    import torch

    before, end = [], {(): -1}  # the place of the token before each; -1 for none
    for start in tree:
        own = range(len(before), len(before) + len(start[-1]))
        before += [end[start[:-1]], *own[:-1]]
        end[start] = own[-1]
    seen = torch.eye(len(before), dtype=torch.bool, device=model.device)
    for place, earlier in enumerate(before):
        if earlier >= 0:
            seen[place] |= seen[earlier]
    ids = torch.tensor([[token for start in tree for token in start[-1]]], device=model.device)
    mask = torch.zeros_like(seen, dtype=model.network.dtype)
    mask = mask.masked_fill(~seen, torch.finfo(mask.dtype).min)[None, None]
    logits = model(ids, mask, position_ids=seen.sum(1)[None] - 1).logits[0]
    logs = logits.float().log_softmax(-1)[before, ids[0]]
    logs[[place < 0 for place in before]] = 0
    parts = zip(tree, logs.split([len(start[-1]) for start in tree]), strict=True)
    return {start: (float(part.sum()), len(part) - (len(start) == 1)) for start, part in parts}


def named(scores: pd.DataFrame, checkpoint: str | Path, own: str = "") -> pd.DataFrame:
    """Add the model to the names of columns, unless it is the metric's `own`.

    >>> named(pd.DataFrame({"fed_engaging": [1.0]}), SMOLLM2, DIALOGPT).columns.tolist()
    ['fed_engaging[smollm2]']
    """
    model = "" if checkpoint == own else models.find_model(checkpoint).name.rpartition("/")[2]
    return scores.add_suffix(f"[{model}]") if model else scores


def line_log_probability(model: Model, given: Sequence[str], said: Sequence[str]) -> np.ndarray:
    """Mean log-probability of a line of text after others, by a causal model: s(given, said).

    The text is the start token, `given`, a line break, `said`, a line break; the tokens of `said`
    and its line break count. An empty `given` leaves the start token alone. Shape (n,), NaN where
    `said` does not fit the model.
    """
    start = model.tokenizer.bos_token or model.tokenizer.eos_token
    before = [start + (text and f"{text}\n") for text in given]
    said_logs = segment_log_probabilities(model, before, [f"{text}\n" for text in said])[:, 1]
    return said_logs[:, 0] / said_logs[:, 1]


@metric("log_likelihood", "likelihood", ("context", "response"), SMOLLM2, version="1")
def log_likelihood(turns: pd.DataFrame, *, checkpoint=SMOLLM2, last=5, **options) -> pd.DataFrame:
    """Log-likelihood of each response after its context, alone, and the difference.

    Turns are lines (see `line_log_probability`). Joined by the end-of-text token, as DialoGPT was
    trained, the packaged model follows people less: it never saw such texts.

    Args:
        turns: turn table; uses the `last` turns of `context` (None: all) and `response`.
        checkpoint: folder, GGUF file or hub id of a causal language model; the packaged one.
        options: `device`, `dtype`, `revision`.

    Returns:
        Columns log_likelihood, log_likelihood_alone (the start token is all that stands before) and
        log_likelihood_gain = the first - the second, each with the model's name, on `turns.index`.
        Natural logarithm, mean over tokens; the first two at most 0; higher is likelier. NaN for a
        blank response, the first and the last also without a context.
    """
    s = partial(line_log_probability, models.load_causal(checkpoint, **options))
    said = turns["response"]
    given = score_where_text(s, list(map("\n".join, earlier_utterances(turns, last))), said)
    alone = score_where_text(lambda texts: s([""] * len(texts), texts), said)
    columns = {"": given, "_alone": alone, "_gain": given - alone}
    return named(pd.DataFrame(columns, turns.index).add_prefix("log_likelihood"), checkpoint)


def log_probability(model: Model, given: Sequence[str], said: Sequence[str], skip=0) -> np.ndarray:
    r"""Mean log-probability of texts given others, by an encoder-decoder: s(given, said).

    .. math:: s(a, b) = \frac{1}{|b|} \sum_i \log p(b_i \mid b_{<i}, a)

    Args:
        model: encodes `given`.
        given, said: n texts each, of which the first 1,024 tokens are read, special ones included.
        skip: first tokens of `said` that are given, not scored (a language tag).

    Returns:
        Shape (n,), natural logarithm, at most 0; higher is more probable. NaN where nothing counts.
    """

    def read(source, source_mask, target, mask):
        before = target.roll(1, 1)
        before[:, 0] = model.network.config.decoder_start_token_id
        mask[:, :skip] = 0
        logits = model(source, source_mask, decoder_input_ids=before).logits.float()
        logs = logits.log_softmax(-1).gather(2, target[..., None])[..., 0]
        return (logs * mask).sum(1) / mask.sum(1)

    return score_in_batches(
        model, read, *(token_ids(model, texts, 1024) for texts in (given, said))
    )


@metric("bartscore", "likelihood", ("context", "response", "reference"), BART, version="1")
def bartscore(turns: pd.DataFrame, *, checkpoint: str = BART, **options) -> pd.DataFrame:
    """BARTScore in every direction (Yuan et al. 2021, section 3.2).

    With s(a, b) the mean log-probability of b given a (start and end tokens counted, the first
    1,024 tokens of a text; by a causal model `line_log_probability`, turns as lines):

    - bartscore_context_to_response = s(context, response), "faithfulness"
    - bartscore_reference_to_response = s(reference, response), "precision"
    - bartscore_response_to_reference = s(response, reference), "recall"
    - bartscore_f_mean = their mean; bartscore_f_harmonic = their product over their sum, as the
      authors' code has it (half a harmonic mean).

    Args:
        turns: turn table; `context` is joined by blanks; the best of several references counts, in
            each direction.
        checkpoint: folder or hub id of a BART, or of a causal language model.
        options: `device`, `dtype`, `revision`.

    Returns:
        Five columns on `turns.index`, at most 0, higher is better; equal texts do not reach 0. NaN
        where one of the two texts is blank.
    """
    joint, s = _conditional(checkpoint, **options)
    before, said = list(map(joint.join, earlier_utterances(turns))), turns["response"]
    precision = best_over_texts(turns["reference"], said, s)
    recall = best_over_texts(
        turns["reference"], said, lambda reference, response: s(response, reference)
    )
    columns = {
        "context_to_response": s(before, said),
        "reference_to_response": precision,
        "response_to_reference": recall,
        "f_mean": (precision + recall) / 2,
        "f_harmonic": precision * recall / (precision + recall),
    }
    return named(pd.DataFrame(columns, turns.index).add_prefix("bartscore_"), checkpoint, BART)


def _conditional(checkpoint: str | Path, **options) -> tuple[str, Callable]:
    """What joins the turns of a context, and s(a, b) of an encoder-decoder or a causal model."""
    config = (
        models.find_model(checkpoint).folder / "config.json"
    )  # beside a GGUF file there is none
    joint, s, load = "\n", line_log_probability, models.load_causal
    if config.exists() and json.loads(config.read_text()).get("is_encoder_decoder"):
        joint, s, load = " ", log_probability, models.load_seq2seq
    return joint, partial(score_where_text, partial(s, load(checkpoint, **options)))


@metric("prism_style", "likelihood", ("context", "response", "reference"), TRANSLATOR, version="1")
def prism_style(turns: pd.DataFrame, *, checkpoint: str = TRANSLATOR, **options) -> pd.DataFrame:
    """Prism's formulas (Thompson and Post 2020, section 3) over a multilingual translator.

    With p(a, b) the mean log-probability of b after its language tag, given a (the first 1,024
    tokens of a text):

    - prism_style_reference = (p(reference, response) + p(response, reference)) / 2, Prism-ref
    - prism_style_response_given_context = p(context, response), Prism-src with the context as
      source, and a reading of the paper's "Prism unref."
    - prism_style_context = (p(context, response) + p(response, context)) / 2, the reference
      formula with the context in its place, and a reading of the paper's "Prism context"

    The original model (m39v1) needs fairseq 0.10 and is not loaded here, so scores are Prism-style,
    not Prism. The readings are guesses: Giorgi et al. (2023) define neither variant.

    Args:
        turns: turn table; `context` is joined by blanks; the best of several references counts.
        checkpoint: folder or hub id of a translator with language tags (M2M-100 form).
        options: `device`, `dtype`, `revision`.

    Returns:
        Three columns on `turns.index`, at most 0, higher is better; NaN where a text is blank.
    """
    # The tokenizer puts the tag of its source language first, of English unless its file says so.
    model = models.load_seq2seq(checkpoint, **options)
    p = partial(score_where_text, partial(log_probability, model, skip=1))
    before, said = list(map(" ".join, earlier_utterances(turns))), turns["response"]
    forward = p(before, said)
    columns = {
        "reference": best_over_texts(
            turns["reference"], said, lambda a, b: (p(a, b) + p(b, a)) / 2
        ),
        "response_given_context": forward,
        "context": (forward + p(said, before)) / 2,
    }
    return pd.DataFrame(columns, turns.index).add_prefix("prism_style_")


@cache
def follow_ups() -> FollowUps:
    """Read the follow-up utterances of FED's 18 attributes out of the authors' `fed.py`.

    The file is downloaded once (and checked) into the user's cache; it is parsed as text, not run.

    Returns:
        attribute -> {"positive": [...], "negative": [...]}; 8 of turns and 10 of dialogues.
    """
    import pooch

    path = pooch.retrieve(SOURCE, f"sha256:{SOURCE_SHA256}", fname="fed_follow_ups.py")
    tables = {}
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("_level_utts"):
            tables |= ast.literal_eval(node.value)
    return tables


def fed_score(losses: Mapping, utterances: FollowUps) -> dict:
    """Combine the losses of follow-ups (numbers, or a column each) into FED's scores.

    score = mean loss of the negative follow-ups - mean loss of the positive ones, where a mean over
    none is 0 (as in the authors' code; such an attribute is the loss itself and is never negative).

    >>> fed_score({"great": 2.0, "bad": 5.0}, {"fun": {"positive": ["great"], "negative": ["bad"]}})
    {'fun': 3.0}
    """

    def mean(texts: Sequence[str]):
        return sum(losses[text] for text in texts) / max(len(texts), 1)

    return {name: mean(u["negative"]) - mean(u["positive"]) for name, u in utterances.items()}


@metric("fed", "likelihood", ("context", "response"), DIALOGPT, version="2")
def fed(
    turns: pd.DataFrame, *, checkpoint=DIALOGPT, utterances: FollowUps = (), last=None, **options
) -> pd.DataFrame:
    """FED's attributes of each response in its context (Mehri and Eskenazi 2020, section 4).

    Each follow-up is appended to the conversation, turns parted by the model's end-of-text token as
    in " <|endoftext|> ", and the loss is the mean over *all* tokens of conversation and follow-up.
    Beyond the positions of the model the oldest tokens are cut (the original fails there).

    Args:
        turns: turn table; uses the `last` turns of `context` (None: all) and `response`.
        checkpoint: folder, GGUF file or hub id of a causal language model.
        utterances: follow-ups of your own; `follow_ups()`, the authors', by default.
        options: `device`, `dtype`, `revision`.

    Returns:
        One column fed_<attribute> each on `turns.index`, with the name of a model other than
        DialoGPT; unbounded, higher is better, comparable within an attribute only: one without
        positive follow-ups is all loss and dominates any average. NaN for a blank response.
    """
    model, utterances = models.load_causal(checkpoint, **options), utterances or follow_ups()
    reactions = sorted({t for u in utterances.values() for side in u.values() for t in side})
    end, said = model.tokenizer.eos_token, turns["response"]
    talks = [
        end + "".join(f" {text} {end}" for text in before)
        for before in earlier_utterances(turns, last)
    ]
    replies = [None if is_blank(text) else f" {text} {end}" for text in said]

    def loss(*segments):
        logs, counted = segment_log_probabilities(model, *segments).sum(axis=1).T
        return -logs / counted

    columns = [pd.Series(texts, dtype=object).repeat(len(reactions)) for texts in (talks, replies)]
    losses = score_where_text(loss, *columns, [f" {text}" for text in reactions] * len(turns))
    losses = dict(zip(reactions, losses.reshape(-1, len(reactions)).T, strict=True))
    scores = fed_score(losses, utterances)
    table = pd.DataFrame(scores, turns.index).rename(columns=lambda name: name.replace(" ", "_"))
    return named(table.add_prefix("fed_"), checkpoint, DIALOGPT)
