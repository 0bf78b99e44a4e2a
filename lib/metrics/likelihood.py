"""How likely a text is given another one: BARTScore, Prism-style scores and FED.

An encoder-decoder scores a text by `log_probability`, a language model that reads from left to
right by `segment_log_probabilities`; the rest is one formula each. A column of another model than
its authors' carries the model's name: `fed_engaging[smollm2]`.

Texts that share a beginning (FED appends dozens of follow-ups to each conversation) are not read
one by one. Their segments form a tree: the root's children are the first segments, and the path to
a node is the beginning of one or more texts. The segments of a tree are packed into one row of
tokens, parents first. Each token attends to the earlier ones of its own segment and of the segments
above it, and its position counts these tokens only. So every segment is read once, and the
log-probabilities are those of reading each text alone.
"""

import ast
import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import models
from lib.data.storage import DataError, data_folder, file_sha256
from lib.data.turn_table import is_blank
from lib.data.turn_texts import best_over_texts, earlier_utterances, score_where_text
from lib.metrics.registry import metric
from lib.model_files import tokenizer_class
from lib.models import (
    SMOLLM2,
    Model,
    score_in_batches,
    token_ids,
    tokens_per_batch,
)

BART = "facebook/bart-large-cnn"
TRANSLATOR = "facebook/m2m100_418M"
DIALOGPT = "microsoft/DialoGPT-large"
# FED's follow-ups are the authors' texts without a licence: read from their file, not copied here.
COMMIT = "70ccf6d9650db9bc067d8c71388fc1ce196863c6"
SOURCE = f"https://raw.githubusercontent.com/Shikib/fed/{COMMIT}/fed.py"
SOURCE_SHA256 = "1f47bae5e49395fe83f72d2e404f52ba45bec209526c37ba90bea658b0d25b9e"
FollowUps = Mapping[str, Mapping[str, Sequence[str]]]
# Segments of token ids from the start of a text.
Beginning = tuple[tuple[int, ...], ...]
MAX_TOKENS = 1024  # of a text that an encoder-decoder reads


def segment_log_probabilities(model: Model, *segments: Sequence[str]) -> np.ndarray:
    """Log-probability of each segment of texts that share their beginnings, by a causal model.

    A text comes in segments, such as context, reply and follow-up. Beginnings that texts share are
    read once. Beyond the positions of the model the oldest tokens of the first segment are cut.

    Args:
        segments: columns of n texts each, no text empty.

    Returns:
        Shape (n, segments, 2): the sum over the tokens of a segment, natural logarithm, and their
        number. The very first token has nothing before it and does not count. NaN where nothing of
        the first segment fits.
    """
    import torch

    texts = list(set(chain.from_iterable(segments)))
    ids = dict(
        zip(texts, map(tuple, token_ids(model, texts, newest=True)), strict=True)
    )
    paths = []
    for text_segments in zip(*segments, strict=True):
        first, *following = [ids[segment] for segment in text_segments]
        room = model.positions - sum(len(segment) for segment in following)
        paths.append((first[-room:], *following) if room > 0 else ())

    sums = {}
    with torch.inference_mode():
        # The attention mask grows with the square of the tokens, so trees are smaller than batches.
        max_tokens = tokens_per_batch(model, on_cpu=512, on_gpu=2048)
        trees = _packed_trees(sorted(set(paths)), max_tokens)
        for tree in tqdm(trees, "texts", delay=5, leave=False):
            sums |= _read_tree(model, tree)
    rows = []
    for path in paths:
        beginnings = [path[: end + 1] for end in range(len(segments))]
        rows.append([sums.get(beginning, (np.nan, np.nan)) for beginning in beginnings])
    return np.array(rows)


def _packed_trees(paths: list[Beginning], max_tokens: int) -> list[list[Beginning]]:
    """Trees of at most `max_tokens` tokens: the beginnings of sorted paths, parents first."""
    trees = [{}]
    for path in paths:
        beginnings = dict.fromkeys(path[: end + 1] for end in range(len(path)))
        n_tokens = sum(len(beginning[-1]) for beginning in trees[-1] | beginnings)
        if n_tokens > max_tokens:
            trees.append({})
        trees[-1] |= beginnings
    return [list(tree) for tree in trees if tree]


def _read_tree(
    model: Model, tree: list[Beginning]
) -> dict[Beginning, tuple[float, int]]:
    """Log-probability of the last segment of each beginning, and its tokens, in one pass."""
    import torch

    # The token before each token of the packed row, by its index; -1 before a first segment.
    ids = []
    previous = []
    last_token = {(): -1}
    for beginning in tree:
        parent = beginning[:-1]
        segment = beginning[-1]
        start = len(ids)
        ids.extend(segment)
        previous.append(last_token[parent])
        previous.extend(range(start, len(ids) - 1))
        last_token[beginning] = len(ids) - 1

    # A token sees itself and what the token before it sees. Row by row on the CPU: on a GPU each
    # row would wait for the one before.
    visible = torch.eye(len(ids), dtype=torch.bool)
    for token, previous_token in enumerate(previous):
        if previous_token >= 0:
            visible[token] |= visible[previous_token]
    visible = visible.to(model.device)
    mask = torch.zeros_like(visible, dtype=model.network.dtype)
    mask = mask.masked_fill(~visible, torch.finfo(mask.dtype).min)

    tokens = torch.tensor([ids], device=model.device)
    positions = visible.sum(1)[None] - 1
    logits = model(tokens, mask[None, None], position_ids=positions).logits[0]
    log_probabilities = logits.float().log_softmax(-1)[previous, tokens[0]].cpu()
    log_probabilities[[token < 0 for token in previous]] = 0
    sums = {}
    lengths = [len(beginning[-1]) for beginning in tree]
    for beginning, of_segment in zip(
        tree, log_probabilities.split(lengths), strict=True
    ):
        n_counted = len(of_segment)
        if len(beginning) == 1:
            n_counted -= 1  # the first token has nothing before it
        sums[beginning] = (float(of_segment.sum()), n_counted)
    return sums


def add_model_name(
    scores: pd.DataFrame, checkpoint: str | Path, default: str = ""
) -> pd.DataFrame:
    """Add the model to the names of columns, unless it is the metric's default.

    >>> add_model_name(pd.DataFrame({"fed_engaging": [1.0]}), SMOLLM2, DIALOGPT).columns.tolist()
    ['fed_engaging[smollm2]']
    """
    if checkpoint == default:
        return scores
    model = models.find_model(checkpoint).name.rpartition("/")[2]
    return scores.add_suffix(f"[{model}]")


def line_log_probability(
    model: Model, contexts: Sequence[str], responses: Sequence[str]
) -> np.ndarray:
    """Mean log-probability of a line of text after others, by a causal model: s(context, response).

    The text is the start token, the context, a line break, the response, a line break; the tokens
    of the response and its line break count. An empty context leaves the start token alone. Shape
    (n,), NaN where the response does not fit the model.
    """
    start = model.tokenizer.bos_token or model.tokenizer.eos_token
    beginnings = [start + (text and f"{text}\n") for text in contexts]
    lines = [f"{text}\n" for text in responses]
    sums = segment_log_probabilities(model, beginnings, lines)[:, 1]
    return sums[:, 0] / sums[:, 1]


@metric(
    "log_likelihood", "likelihood", ("context", "response"), model=SMOLLM2, version="1"
)
def log_likelihood(
    turns: pd.DataFrame, *, checkpoint: str = SMOLLM2, last: int | None = 5, **options
) -> pd.DataFrame:
    """Log-likelihood of each response after its context, alone, and the difference.

    Turns are lines (see `line_log_probability`). Joined by the end-of-text token, as DialoGPT was
    trained, the packaged model follows people less: it never saw such texts.

    Args:
        turns: turn table; uses the `last` turns of `context` (None: all) and `response`.
        checkpoint: folder, GGUF file or hub id of a causal language model; the packaged one.
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        Columns log_likelihood, log_likelihood_alone (the start token is all that stands before) and
        log_likelihood_gain = the first - the second, each with the model's name, on `turns.index`.
        Natural logarithm, mean over tokens; the first two at most 0; higher is likelier. NaN for a
        blank response, the first and the last also without a context.
    """
    model = models.load_causal(checkpoint, **options)
    contexts = ["\n".join(texts) for texts in earlier_utterances(turns, last)]

    def after_nothing(responses):
        return line_log_probability(model, [""] * len(responses), responses)

    after_context = partial(line_log_probability, model)
    given_context = score_where_text(after_context, contexts, turns["response"])
    alone = score_where_text(after_nothing, turns["response"])
    columns = {
        "log_likelihood": given_context,
        "log_likelihood_alone": alone,
        "log_likelihood_gain": given_context - alone,
    }
    return add_model_name(pd.DataFrame(columns, turns.index), checkpoint)


def log_probability(
    model: Model,
    sources: Sequence[str],
    targets: Sequence[str],
    skip: int = 0,
    drop: int = 0,
) -> np.ndarray:
    r"""Mean log-probability of texts given others, by an encoder-decoder: s(source, target).

    .. math:: s(a, b) = \frac{1}{|b|} \sum_i \log p(b_i \mid b_{<i}, a)

    Args:
        model: encodes `sources`.
        sources, targets: n texts each, of which the first 1,024 tokens are read, special ones
            included.
        skip: number of first tokens of a target that are not scored (a language tag).
        drop: number of first tokens that the tokenizer writes and a target does not have.

    Returns:
        Shape (n,), natural logarithm, at most 0; higher is more probable. NaN where nothing counts.
    """

    def score_batch(source, source_mask, target, mask):
        decoder_input = target.roll(1, 1)
        decoder_input[:, 0] = model.network.config.decoder_start_token_id
        mask[:, :skip] = 0
        logits = model(
            source, source_mask, decoder_input_ids=decoder_input
        ).logits.float()
        logs = logits.log_softmax(-1).gather(2, target[..., None])[..., 0]
        return (logs * mask).sum(1) / mask.sum(1)

    source_ids = token_ids(model, sources, MAX_TOKENS)
    target_ids = [ids[drop:] for ids in token_ids(model, targets, MAX_TOKENS)]
    return score_in_batches(model, score_batch, source_ids, target_ids)


@metric(
    "bartscore",
    "likelihood",
    ("context", "response", "reference"),
    model=BART,
    version="1",
)
def bartscore(
    turns: pd.DataFrame, *, checkpoint: str = BART, **options
) -> pd.DataFrame:
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
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        Five columns on `turns.index`, at most 0, higher is better; equal texts do not reach 0. NaN
        where one of the two texts is blank.
    """
    if _is_encoder_decoder(checkpoint, options.get("revision")):
        separator = " "
        score = partial(log_probability, models.load_seq2seq(checkpoint, **options))
    else:
        separator = "\n"
        score = partial(line_log_probability, models.load_causal(checkpoint, **options))
    responses = turns["response"]
    contexts = [separator.join(texts) for texts in earlier_utterances(turns)]

    def response_given(texts, responses):
        return score_where_text(score, texts, responses)

    def given_response(texts, responses):
        return score_where_text(score, responses, texts)

    precision = best_over_texts(turns["reference"], responses, response_given)
    recall = best_over_texts(turns["reference"], responses, given_response)
    columns = {
        "bartscore_context_to_response": response_given(contexts, responses),
        "bartscore_reference_to_response": precision,
        "bartscore_response_to_reference": recall,
        "bartscore_f_mean": (precision + recall) / 2,
        "bartscore_f_harmonic": precision * recall / (precision + recall),
    }
    return add_model_name(pd.DataFrame(columns, turns.index), checkpoint, BART)


def _is_encoder_decoder(checkpoint: str | Path, revision: str | None = None) -> bool:
    config = models.find_model(checkpoint, revision).folder / "config.json"
    if not config.exists():  # a GGUF file holds its own: a causal model
        return False
    return bool(json.loads(config.read_text()).get("is_encoder_decoder"))


@metric(
    "prism_style",
    "likelihood",
    ("context", "response", "reference"),
    model=TRANSLATOR,
    version="2",
)
def prism_style(
    turns: pd.DataFrame, *, checkpoint: str = TRANSLATOR, **options
) -> pd.DataFrame:
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
        checkpoint: folder or hub id of a translator with language tags (M2M-100 form). SMaLL-100
            reads the tag of its target language before the source, and none before the target.
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        Three columns on `turns.index`, at most 0, higher is better; NaN where a text is blank.
    """
    # The tokenizer puts the tag of its source language first, of English unless its file says so.
    model = models.load_seq2seq(checkpoint, **options)
    folder = models.find_model(checkpoint, options.get("revision")).folder
    tagged_source_only = tokenizer_class(folder) == "SMALL100Tokenizer"
    responses = turns["response"]
    contexts = [" ".join(texts) for texts in earlier_utterances(turns)]

    def p(sources, targets):
        score = partial(
            log_probability,
            model,
            skip=0 if tagged_source_only else 1,
            drop=1 if tagged_source_only else 0,
        )
        return score_where_text(score, sources, targets)

    def both_directions(texts, responses):
        return (p(texts, responses) + p(responses, texts)) / 2

    columns = {
        "prism_style_reference": best_over_texts(
            turns["reference"], responses, both_directions
        ),
        "prism_style_response_given_context": p(contexts, responses),
        "prism_style_context": both_directions(contexts, responses),
    }
    return pd.DataFrame(columns, turns.index)


@cache
def follow_ups() -> FollowUps:
    """Read the follow-up utterances of FED's 18 attributes out of the authors' `fed.py`.

    The file is `fed/fed.py` of the data folder, or downloaded once (and checked) into the user's
    cache; it is parsed as text, not run.

    Returns:
        attribute -> {"positive": [...], "negative": [...]}; 8 of turns and 10 of dialogues.

    Raises:
        DataError: the file is neither here nor can it be downloaded.
    """
    import pooch

    file = data_folder() / "fed" / "fed.py"
    if not file.is_file() or file_sha256(file) != SOURCE_SHA256:
        checksum = f"sha256:{SOURCE_SHA256}"
        try:
            file = pooch.retrieve(SOURCE, checksum, fname="fed_follow_ups.py")
        except (OSError, ValueError) as error:
            raise DataError(
                "the follow-ups of FED cannot be downloaded",
                file=file,
                fix=f"connect to the network, or save {SOURCE} under that name, or pass "
                "follow-ups of your own (utterances=)",
            ) from error
    tables = {}
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(
            "_level_utts"
        ):
            tables |= ast.literal_eval(node.value)
    return tables


def fed_score(losses: Mapping, utterances: FollowUps) -> dict:
    """Combine the losses of follow-ups (numbers, or a column each) into FED's scores.

    score = mean loss of the negative follow-ups - mean loss of the positive ones, where a mean over
    none is 0 (as in the authors' code; such an attribute is the loss itself and is never negative).

    >>> fed_score({"great": 2.0, "bad": 5.0}, {"fun": {"positive": ["great"], "negative": ["bad"]}})
    {'fun': 3.0}
    """

    def mean_loss(texts):
        return sum(losses[text] for text in texts) / max(len(texts), 1)

    scores = {}
    for name, texts in utterances.items():
        scores[name] = mean_loss(texts["negative"]) - mean_loss(texts["positive"])
    return scores


@metric("fed", "likelihood", ("context", "response"), model=DIALOGPT, version="2")
def fed(
    turns: pd.DataFrame,
    *,
    checkpoint: str = DIALOGPT,
    utterances: FollowUps | None = None,
    last: int | None = None,
    **options,
) -> pd.DataFrame:
    """FED's attributes of each response in its context (Mehri and Eskenazi 2020, section 4).

    Each follow-up is appended to the conversation, turns separated by the model's end-of-text
    token as in " <|endoftext|> ", and the loss is the mean over *all* tokens of conversation and
    follow-up. Beyond the positions of the model the oldest tokens are cut (the original fails
    there).

    Args:
        turns: turn table; uses the `last` turns of `context` (None: all) and `response`.
        checkpoint: folder, GGUF file or hub id of a causal language model.
        utterances: follow-ups of your own; `follow_ups()`, the authors', by default.
        options: `device`, `dtype`, `revision`, `batch_tokens`.

    Returns:
        One column fed_<attribute> each on `turns.index`, with the name of a model other than
        DialoGPT; unbounded, higher is better, comparable within an attribute only: one without
        positive follow-ups is all loss and dominates any average. NaN for a blank response.
    """
    model = models.load_causal(checkpoint, **options)
    utterances = utterances or follow_ups()
    reactions = set()
    for texts in utterances.values():
        reactions.update(texts["positive"], texts["negative"])
    reactions = sorted(reactions)

    end = model.tokenizer.eos_token
    conversations = []
    for context in earlier_utterances(turns, last):
        conversations.append(end + "".join(f" {text} {end}" for text in context))
    replies = [
        None if is_blank(text) else f" {text} {end}" for text in turns["response"]
    ]

    def loss(*segments):
        sums = segment_log_probabilities(model, *segments).sum(axis=1)
        return -sums[:, 0] / sums[:, 1]

    losses = score_where_text(
        loss,
        np.repeat(np.array(conversations, dtype=object), len(reactions)),
        np.repeat(np.array(replies, dtype=object), len(reactions)),
        [f" {text}" for text in reactions] * len(turns),
    )
    losses = pd.DataFrame(losses.reshape(-1, len(reactions)), turns.index, reactions)
    scores = pd.DataFrame(fed_score(losses, utterances), turns.index)
    names = {name: f"fed_{name.replace(' ', '_')}" for name in scores}
    return add_model_name(scores.rename(columns=names), checkpoint, DIALOGPT)
