"""How likely a text is given another one: BARTScore, Prism-style scores, FED, and MAUVE.

An encoder-decoder scores a text by `log_probability`, a language model that reads from left to
right by `segment_log_probabilities`; the rest is one formula each. A column of another model than
its authors' carries the model's name: `fed_engaging[smollm2]`. MAUVE compares the texts of two sets
by the states of a language model.
"""

import ast
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from lib import models
from lib.data.turn_table import is_blank
from lib.metrics.embedding import sentence_vectors
from lib.metrics.registry import best_of, history, metric, where_words
from lib.models import (
    DEFAULT_ENCODER,
    SMOLLM2,
    Model,
    find,
    infer,
    load_causal,
    load_seq2seq,
    token_ids,
)

BART, TRANSLATOR = "facebook/bart-large-cnn", "facebook/m2m100_418M"
DIALOGPT = "microsoft/DialoGPT-large"
MAX_TOKENS = 1024
# FED's follow-ups are the authors' texts without a licence: read from their file, not copied here.
COMMIT = "70ccf6d9650db9bc067d8c71388fc1ce196863c6"
SOURCE = f"https://raw.githubusercontent.com/Shikib/fed/{COMMIT}/fed.py"
SOURCE_SHA256 = "1f47bae5e49395fe83f72d2e404f52ba45bec209526c37ba90bea658b0d25b9e"
FollowUps = Mapping[str, Mapping[str, Sequence[str]]]


def mean_log_probability(logits, target, counted):
    r"""Mean log-probability of the counted tokens; padding has no share in it.

    .. math:: s(b) = \frac{1}{|b|} \sum_i \log p(b_i \mid b_{<i})

    Args:
        logits: of the model at the place of each token, shape (b, length, words).
        target: token ids, shape (b, length).
        counted: 1 for a token that counts, else 0.

    Returns:
        Shape (b,), natural logarithm, at most 0; higher is more probable. NaN where nothing counts.
    """
    logs = logits.float().log_softmax(-1).gather(2, target[..., None])[..., 0]
    return (logs * counted).sum(1) / counted.sum(1)


def segment_log_probabilities(
    model: Model, paths: Sequence[tuple[tuple[int, ...], ...]], tokens: int = 512
) -> np.ndarray:
    """Log-probability of each segment of texts that share their beginnings, by a causal model.

    A path is a text in segments of token ids, such as (context, reply, follow-up). What paths share
    is read once: a batch is one row of tokens, and each attends to its own path alone. Beyond the
    positions of the model the oldest tokens of the first segment are cut.

    Args:
        paths: n paths of the same number of segments, none of them empty.
        tokens: most tokens in a batch; a longer path stands alone.

    Returns:
        Shape (n, segments): sums over the tokens of a segment, natural logarithm. The first token
        of a path has nothing before it and does not count. NaN where only the first segment fits.
    """
    import torch

    room = [model.positions - sum(map(len, rest)) for _, *rest in paths]
    cut = [(path[0][-most:], *path[1:]) for path, most in zip(paths, room, strict=True) if most > 0]
    found: dict = {}
    with torch.inference_mode():
        for tree in tqdm(_trees(sorted(set(cut)), tokens), "paths", delay=5, leave=False):
            found |= _read(model, tree)
    sums = iter([[found[path[: end + 1]] for end in range(len(path))] for path in cut])
    missing = [np.nan] * len(paths[0])
    return np.array([next(sums) if most > 0 else missing for most in room])


def _trees(paths: list, tokens: int) -> list[list]:
    """Beginnings of sorted paths, each once and the shorter first, in batches."""
    trees, size = [{}], 0
    for path in paths:
        starts = [path[: end + 1] for end in range(len(path))]
        more = sum(len(start[-1]) for start in starts if start not in trees[-1])
        if trees[-1] and size + more > tokens:
            trees, size, more = [*trees, {}], 0, sum(map(len, path))
        trees[-1] |= dict.fromkeys(starts)
        size += more
    return [list(tree) for tree in trees if tree]


def _read(model: Model, tree: list) -> dict:
    """Sum of log-probabilities of the last segment of each beginning in one pass."""
    import torch

    ids = [token for start in tree for token in start[-1]]
    seen, before, spans = torch.zeros(len(ids), len(ids), dtype=torch.bool), [], {(): slice(0)}
    for start in tree:
        last = spans[start[:-1]].stop - 1  # the token before the segment; -1 for none
        span = slice(len(before), len(before) + len(start[-1]))
        if last >= 0:
            seen[span] = seen[last]
        seen[span, span] = torch.ones(2 * (len(start[-1]),), dtype=torch.bool).tril()
        before += [last, *range(span.start, span.stop - 1)]
        spans[start] = span
    row, mask = torch.tensor([ids]), torch.zeros(seen.shape, dtype=model.network.dtype)
    mask = mask.masked_fill(~seen, torch.finfo(mask.dtype).min)[None, None]
    inputs = {"input_ids": row, "attention_mask": mask, "position_ids": seen.sum(1)[None] - 1}
    inputs = {name: tensor.to(model.device) for name, tensor in inputs.items()}
    logs = model.network(**inputs).logits[0].float().log_softmax(-1)[before, ids]
    logs[[place < 0 for place in before]] = 0
    return {start: float(logs[spans[start]].sum()) for start in tree}


def named(scores: pd.DataFrame, checkpoint: str | Path, own: str = "") -> pd.DataFrame:
    """Add the model to the names of columns, unless it is the metric's `own`.

    >>> named(pd.DataFrame({"fed_engaging": [1.0]}), SMOLLM2, DIALOGPT).columns.tolist()
    ['fed_engaging[smollm2]']
    """
    model = "" if checkpoint == own else find(checkpoint).name.rpartition("/")[2]
    return scores.add_suffix(f"[{model}]") if model else scores


def line_log_probability(model: Model, given: Sequence[str], said: Sequence[str]) -> np.ndarray:
    """Mean log-probability of a line of text after others, by a causal model: s(given, said).

    The text is the start token, `given`, a line break, `said`, a line break; the tokens of `said`
    and its line break count. An empty `given` leaves the start token alone. Shape (n,), NaN where
    `said` does not fit the model.
    """
    start = model.tokenizer.bos_token_id or model.tokenizer.eos_token_id
    before = token_ids(model, [text and f"{text}\n" for text in given], newest=True)
    lines = token_ids(model, [f"{text}\n" for text in said], newest=True)
    paths = [((start, *a), tuple(b)) for a, b in zip(before, lines, strict=True)]
    return segment_log_probabilities(model, paths)[:, 1] / np.array([len(row) for row in lines])


@metric("log_likelihood", "likelihood", ("context", "response"), SMOLLM2, version="1")
def log_likelihood(
    turns: pd.DataFrame, *, checkpoint: str = SMOLLM2, last: int | None = 5, **options
) -> pd.DataFrame:
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
    model = load_causal(checkpoint, **options)
    s, said = partial(line_log_probability, model), turns["response"]
    given = where_words(s, list(map("\n".join, history(turns, last))), said)
    alone = where_words(lambda texts: s([""] * len(texts), texts), said)
    columns = {"": given, "_alone": alone, "_gain": given - alone}
    return named(pd.DataFrame(columns, turns.index).add_prefix("log_likelihood"), checkpoint)


def log_probability(
    model: Model, given: Sequence[Sequence[int]], said: Sequence[Sequence[int]], skip: int = 0
) -> np.ndarray:
    """Mean log-probability of texts given others, by an encoder-decoder: s(given, said).

    Args:
        model: encodes `given`.
        given, said: n rows of token ids, special tokens included.
        skip: first tokens of `said` that are given, not scored (a language tag).

    Returns:
        Shape (n,), as `mean_log_probability` has it.
    """

    def read(source, source_mask, target, mask):
        before = target.roll(1, 1)
        before[:, 0] = model.network.config.decoder_start_token_id
        inputs = {"input_ids": source, "attention_mask": source_mask, "decoder_input_ids": before}
        mask[:, :skip] = 0
        return mean_log_probability(model.network(**inputs).logits, target, mask)

    return infer(model, read, given, said)


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
    s, joint = _direction(checkpoint, **options)
    before, said = list(map(joint.join, history(turns))), turns["response"]
    precision = best_of(turns["reference"], said, s)
    recall = best_of(turns["reference"], said, lambda reference, response: s(response, reference))
    columns = {
        "context_to_response": s(before, said),
        "reference_to_response": precision,
        "response_to_reference": recall,
        "f_mean": (precision + recall) / 2,
        "f_harmonic": precision * recall / (precision + recall),
    }
    return named(pd.DataFrame(columns, turns.index).add_prefix("bartscore_"), checkpoint, BART)


def _direction(checkpoint: str | Path, **options) -> tuple[Callable, str]:
    """s(a, b) of BARTScore, and what joins the turns of a context."""
    config = find(checkpoint).folder / "config.json"  # beside a GGUF file there is none
    if not (config.exists() and json.loads(config.read_text()).get("is_encoder_decoder")):
        s, joint = partial(line_log_probability, load_causal(checkpoint, **options)), "\n"
    else:
        model = load_seq2seq(checkpoint, **options)
        ids, joint = partial(token_ids, model, limit=MAX_TOKENS), " "
        s = lambda a, b: log_probability(model, ids(a), ids(b))  # noqa: E731
    return partial(where_words, s), joint


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
    model = load_seq2seq(checkpoint, **options)
    tag = model.tokenizer.convert_tokens_to_ids("__en__")  # of English, of all texts

    def ids(texts: Sequence[str]) -> list[list[int]]:
        plain = model.tokenizer(texts, add_special_tokens=False)["input_ids"]
        limit = min(MAX_TOKENS, model.positions) - 2
        return [[tag, *row[:limit], model.tokenizer.eos_token_id] for row in plain]

    p = partial(where_words, lambda a, b: log_probability(model, ids(a), ids(b), skip=1))
    before, said = list(map(" ".join, history(turns))), turns["response"]
    forward = p(before, said)
    columns = {
        "reference": best_of(turns["reference"], said, lambda a, b: (p(a, b) + p(b, a)) / 2),
        "response_given_context": forward,
        "context": (forward + p(said, before)) / 2,
    }
    return pd.DataFrame(columns, turns.index).add_prefix("prism_style_")


@cache
def follow_ups(path: str | Path | None = None) -> FollowUps:
    """Read the follow-up utterances of FED's 18 attributes out of the authors' `fed.py`.

    The file is parsed as text, not run. Without `path` it is downloaded once (and checked) into the
    user's cache.

    Returns:
        attribute -> {"positive": [...], "negative": [...]}; 8 of turns and 10 of dialogues.

    """
    if path is None:
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
    turns: pd.DataFrame,
    *,
    checkpoint=DIALOGPT,
    utterances: FollowUps | None = None,
    last: int | None = None,
    **options,
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
    model, utterances = load_causal(checkpoint, **options), utterances or follow_ups()
    reactions = sorted({t for u in utterances.values() for side in u.values() for t in side})
    ids, end = partial(token_ids, model, newest=True), model.tokenizer.eos_token
    after = ids([f" {text}" for text in reactions])
    talks = ["".join(f" {text} {end}" for text in said) for said in history(turns, last)]
    said = {row: text for row, text in enumerate(turns["response"]) if not is_blank(text)}
    losses = np.full((len(turns), len(reactions)), np.nan)
    if said:
        before = ids([end + talks[row] for row in said])
        replies = ids([f" {text} {end}" for text in said.values()])
        segments = zip(before, replies, strict=True)
        paths = [tuple(map(tuple, (a, b, c))) for a, b in segments for c in after]
        counted = np.minimum([sum(map(len, path)) for path in paths], model.positions) - 1
        found = segment_log_probabilities(model, paths).sum(axis=1) / counted
        losses[list(said)] = -found.reshape(-1, len(reactions))
    scores = fed_score(dict(zip(reactions, losses.T, strict=True)), utterances)
    table = pd.DataFrame(scores, turns.index).rename(columns=lambda name: name.replace(" ", "_"))
    return named(table.add_prefix("fed_"), checkpoint, DIALOGPT)


@metric("mauve", "likelihood", ("response", "reference"))
def mauve(
    responses: Sequence[str], references: Sequence[str] = (), encoder=DEFAULT_ENCODER, **options
) -> pd.Series:
    """MAUVE of a set of responses against a set of human texts, by the package mauve-text.

    The area under the divergence curve of two quantised distributions of text features (Pillutla et
    al. 2021). The features of the authors are the last hidden state of gpt2-large at the last
    token; by default the packaged sentence encoder stands in, and values do not compare with
    theirs.

    Args:
        responses, references: two sets of texts; sizes may differ.
        encoder: folder or hub id; a left-to-right model gives the authors' features.
        options: of `mauve.compute_mauve`, such as num_buckets and seed (25).

    Returns:
        Series with mauve and mauve_star in [0, 1] (higher is closer), buckets, and the two sizes.

    Raises:
        ValueError: a turn table, or fewer than two texts in a set. MAUVE of one response does not
            exist: a distribution of one text is a point. Copy the value of a system or agent to its
            turns if a table needs one, and say so.
    """
    sets = [[text for text in texts if not is_blank(text)] for texts in (responses, references)]
    sizes = [len(texts) for texts in sets]
    if isinstance(responses, pd.DataFrame | str) or min(sizes) < 2:
        raise ValueError(
            "mauve is defined for a set of responses, not per turn: call lib.metrics.mauve on two "
            "sets of texts, each of two or more, such as the responses of a system and of people."
        )
    if min(sizes) < 1000:
        warnings.warn(f"MAUVE of {sizes} texts: biased below a few thousand", stacklevel=2)
    from mauve import compute_mauve

    with threadpool_limits(1):  # the clusters hang on last digits, and these on the threads
        p, q = (_features(texts, encoder) for texts in sets)
        found = compute_mauve(p_features=q, q_features=p, verbose=False, **options)
    values = [found.mauve, found.mauve_star, found.num_buckets, *sizes]
    return pd.Series(values, ["mauve", "mauve_star", "buckets", "responses", "references"])


def _features(texts: Sequence[str], encoder: str) -> np.ndarray:
    if models.load_encoder(encoder).tokenizer.cls_token_id is not None:  # reads both ways
        return sentence_vectors(texts, encoder=encoder)
    model = load_causal(encoder)

    def last_state(tokens, mask):
        output = model.network(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
        return output.hidden_states[-1][range(len(mask)), mask.sum(1) - 1]

    return infer(model, last_state, token_ids(model, texts))
