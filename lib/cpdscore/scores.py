"""From turns to requests, from replies to scores (ComperDial paper, section 4 and C.1.2)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any

import pandas as pd

from lib.cpdscore.parsing import parse_reply, score_probabilities
from lib.cpdscore.prompts import Template, load_template
from lib.cpdscore.reply_store import Job, ReplyStore, Request
from lib.data.turn_table import KEY, LEVELS

Ask = Callable[[Iterable[Job]], object] | None


@dataclass(frozen=True)
class JudgeModel:
    """Who judges, and how often. Everything here but the counts is part of what is sent.

    Attributes:
        model: the model's name, as the server knows it.
        samples: replies per prompt whose scores are averaged: "the average of the results from
            three API calls" (section 4).
        extra: further replies to a prompt while some of its replies could not be read.
        parameters: of the request body (temperature, max_tokens, ...).
        forced: hold the server to the answer form by a grammar (llama.cpp).
    """

    model: str
    samples: int = 3
    extra: int = 2
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"max_tokens": 256})
    forced: bool = False


@dataclass(frozen=True)
class Scores:
    """The scores of one prompt variant by one judge.

    Attributes:
        template: the prompt.
        judge: the model and the number of samples.
        ids: system, agent, dialog (and turn) of each item, which is a turn or a dialog.
        items: one row per item, on the index of the table that was scored, with ``score`` (mean of
            the usable samples, NaN without any), ``weighted`` (the mean of their weighted scores),
            ``status``, the number of ``usable`` and of ``asked`` samples, ``spread`` (standard
            deviation over samples), ``words`` and the request's ``key``.
        replies: one row per reply, with its item, key, sample, status, score, the value of each
            field of the form, the ``probabilities`` of the scores and their mean ``weighted``, or,
            in ``unweighted_reason``, why there are none.
    """

    template: Template
    judge: JudgeModel
    ids: pd.DataFrame
    items: pd.DataFrame
    replies: pd.DataFrame

    def first(self, samples: int) -> "Scores":
        """The scores if only the first samples had been asked for (one call: Table 3)."""
        replies = self.replies[self.replies["sample"] < samples]
        items = _score_items(self.items[["words", "key"]], replies, samples)
        judge = replace(self.judge, samples=samples, extra=0)
        return replace(self, judge=judge, items=items, replies=replies)


def turn_requests(
    turns: pd.DataFrame, template: Template, judge: JudgeModel
) -> list[Request | None]:
    """Write one request per turn; None where the prompt needs a reference and there is none.

    The fact is the persona of B, who responds, as in USR's data (the column ``fact``). Requests in
    the table's order share their beginning, which servers cache.

    Args:
        turns: turn table (system, dialog, turn, context, response, reference, fact).
        template: the prompt.
        judge: the model and what is sent with each prompt.
    """
    requests = []
    for turn in turns.to_dict("records"):
        inputs = {name: "\n".join(turn[name]) for name in ("fact", "reference")}
        inputs["history"] = history_text(turn["context"])
        inputs["response"] = turn["response"]
        if "reference" in template.inputs and not inputs["reference"].strip():
            requests.append(None)
        else:
            requests.append(_request(inputs, template, judge, item=turn))
    return requests


def _request(
    inputs: Mapping[str, str],
    template: Template,
    judge: JudgeModel,
    item: Mapping[str, Any],
) -> Request:
    used = {name: text for name, text in inputs.items() if name in template.inputs}
    labels = {"variant": template.variant.name, "wording": template.wording}
    labels |= {
        name: item[name] for name in ("system", "dialog", "turn") if name in item
    }
    parameters = dict(judge.parameters)
    if judge.forced:
        parameters["grammar"] = template.grammar
    return Request(
        model=judge.model,
        messages=(("user", template.fill(**used)),),
        parameters=parameters,
        labels=labels,
        usual_tokens=template.variant.reply_tokens,
    )


def history_text(context: list[str]) -> str:
    """Write the conversation so far, one utterance a line, the last one by A.

    >>> print(history_text(["Hi.", "Hello!", "Tea?"]))
    A: Hi.
    B: Hello!
    A: Tea?
    """
    lines = []
    for speaker, utterance in zip(cycle("AB"), reversed(context), strict=False):
        lines.insert(0, f"{speaker}: {utterance}")
    return "\n".join(lines)


def score_turns(
    turns: pd.DataFrame,
    variant: str | Template,
    judge: JudgeModel,
    store: ReplyStore,
    ask: Ask = None,
) -> Scores:
    """Score turns by CPDScore-Simple, -Detail or an original prompt: 1 to 5 (original detail: 3).

    Args:
        turns: turn table (system, agent, dialog, turn, context, response, reference, fact).
        variant: name of a variant (shipped wording), or a template, e.g. in the paper's words.
        judge: the model and the number of samples.
        store: where replies are looked up and kept.
        ask: called with the jobs whose replies are needed (see `asker`); without it the store must
            hold every reply.

    Returns:
        Scores, higher is better. An item is NaN when its prompt lacks a reference (``no input``)
        or none of its replies can be read; nothing is dropped and nothing is guessed.

    Raises:
        MissingReplies: without `ask`, if a reply is not in the store.
        ValueError: for the variant that rates dialogs.

    Reference: Wakaki et al. (2024), ComperDial, section 4.
    """
    template = variant if isinstance(variant, Template) else load_template(variant)
    requests = turn_requests(turns, template, judge)
    items = turns[KEY].assign(request=requests, text=turns["response"])
    return _score(items, template, judge, store=store, ask=ask)


def score_dialogs(
    turns: pd.DataFrame,
    turn_scores: pd.Series,
    judge: JudgeModel,
    store: ReplyStore,
    ask: Ask = None,
    template: Template | None = None,
) -> Scores:
    """Score dialogs by CPDScore-Dialogue, step 2: one score from turn scores and responses.

    A dialog with a turn that has no score is not asked about and has status ``no input``. The
    "Overall Dialogue Turn Score" (the paper's intermediate score) is a column of ``.replies``.

    Args:
        turns: turn table; dialogs come in the order of their first turn in it.
        turn_scores: step 1, on ``turns.index``; the prompt shows two decimals.
        judge, store, ask: as in `score_turns`.
        template: another wording than the shipped one.

    Reference: Wakaki et al. (2024), section 4 and appendix B.3.
    """
    template = template or load_template("dialogue")
    rows = []
    for ids, dialog in turns.assign(score=turn_scores).groupby([*LEVELS], sort=False):
        dialog = dialog.sort_values("turn", kind="stable")
        turn_lines = [
            f"Turn {i} Score - {score:.2f}"
            for i, score in enumerate(dialog["score"], 1)
        ]
        responses = [
            f"Turn {i}: {text}" for i, text in enumerate(dialog["response"], 1)
        ]
        inputs = {
            "turn_scores": "\n".join(turn_lines),
            "responses": "\n".join(responses),
        }
        inputs["turns"] = str(len(dialog))
        row = dict(zip(LEVELS, ids, strict=True))
        if dialog["score"].notna().all():
            row["request"] = _request(inputs, template, judge, item=row)
        rows.append(row | {"text": "\n".join(dialog["response"])})
    items = pd.DataFrame(rows, columns=[*LEVELS, "request", "text"])
    return _score(items, template, judge, store=store, ask=ask)


def _score(
    items: pd.DataFrame,
    template: Template,
    judge: JudgeModel,
    store: ReplyStore,
    ask: Ask,
) -> Scores:
    """Ask for what is missing, read the replies, ask again where they could not be read."""
    requests = {request.key: request for request in items["request"].dropna()}
    keys = items["request"].map(lambda request: request.key, na_action="ignore")
    jobs = []
    for request in requests.values():
        jobs += [Job(request, sample) for sample in range(judge.samples)]
    get_replies = ask or store.require
    get_replies(jobs)
    # Also in a replay, so that every score leads to its prompt.
    store.add_requests(requests.values())
    replies = _read_replies(keys, template, judge, store=store)
    n_rounds = judge.extra if ask else 0
    for _ in range(n_rounds):
        jobs = _extra_jobs(requests, replies, judge)
        if not jobs:
            break
        ask(jobs)
        replies = _read_replies(keys, template, judge, store=store)
    words = items["text"].str.split().str.len()
    scored = _score_items(
        pd.DataFrame({"words": words, "key": keys}), replies, judge.samples
    )
    ids = items.drop(columns=["request", "text"])
    return Scores(template, judge, ids=ids, items=scored, replies=replies)


def _extra_jobs(
    requests: dict[str, Request], replies: pd.DataFrame, judge: JudgeModel
) -> list[Job]:
    """One more sample for each prompt with too few readable replies, up to `extra` of them.

    A prompt with fewer samples than `judge.samples` is one that a fault left for a later run.
    """
    jobs = []
    # Two items may share a prompt.
    distinct = replies.drop_duplicates(["key", "sample"])
    for key, scores in distinct.groupby("key", sort=False)["score"]:
        may_ask = judge.samples <= len(scores) < judge.samples + judge.extra
        if may_ask and scores.count() < judge.samples:
            jobs.append(Job(requests[key], sample=len(scores)))
    return jobs


def _read_replies(
    keys: pd.Series, template: Template, judge: JudgeModel, store: ReplyStore
) -> pd.DataFrame:
    """Every stored reply of every item, read."""
    rows = []
    for (key, sample), reply in store.replies(keys.dropna()).items():
        parsed = parse_reply(reply.text, template.variant, reply.status)
        probabilities, reason = score_probabilities(
            reply.text, reply.digit_probabilities, template.variant
        )
        row = {
            "key": key,
            "sample": sample,
            "status": parsed.status,
            "score": parsed.score,
        }
        if probabilities:
            row["weighted"] = sum(score * p for score, p in probabilities.items())
        row |= {"probabilities": probabilities, "unweighted_reason": reason}
        rows.append(row | parsed.fields)
    numeric = ["score", "weighted", *template.variant.fields]
    columns = [
        "key",
        "sample",
        "status",
        "probabilities",
        "unweighted_reason",
        *numeric,
    ]
    frame = pd.DataFrame(rows, columns=columns)
    frame = frame[frame["sample"] < judge.samples + judge.extra]
    frame = frame.astype(dict.fromkeys(numeric, float) | {"status": "str"})
    items = keys.rename("key").rename_axis("item").reset_index().dropna()
    return items.merge(frame, on="key")


def _score_items(
    items: pd.DataFrame, replies: pd.DataFrame, samples: int
) -> pd.DataFrame:
    """Mean of the first `samples` usable replies of each item, with the numbers behind it."""
    usable = _usable_replies(replies, samples)
    frame = items.join(usable[["score", "weighted"]].mean())
    frame["spread"] = usable["score"].std(ddof=1)
    frame["usable"] = usable.size()
    frame["asked"] = replies.groupby("item").size()
    counts = frame[["usable", "asked"]].fillna(0).astype(int)
    reason = replies[replies["score"].isna()].groupby("item")["status"].first()
    status = pd.Series("ok", frame.index).mask(counts["usable"] < samples, "partial")
    status = status.mask(counts["usable"] == 0, reason).mask(
        counts["asked"] == 0, "not asked"
    )
    return frame.assign(**counts, status=status.mask(frame["key"].isna(), "no input"))


def _usable_replies(replies: pd.DataFrame, samples: int) -> Any:
    """The first `samples` readable replies of each item, grouped by item."""
    readable = replies[replies["score"].notna()].sort_values(["item", "sample"])
    return readable[readable.groupby("item").cumcount() < samples].groupby("item")


def aggregate(scores: Scores, level: str) -> pd.DataFrame:
    """Average scores per dialog, agent or system (paper, C.1.2 and footnotes 9 and 11).

    The mean is over all turns (or dialogs) of the unit that have a score, so once values are
    missing it differs from the mean of dialog means.

    Returns:
        The columns that name a unit, ``score`` (NaN without any), ``items`` and ``scored``.
    """
    keys = [*LEVELS[: LEVELS.index(level) + 1]]
    groups = (
        scores.ids[keys].join(scores.items["score"]).groupby(keys, sort=False)["score"]
    )
    return groups.agg(score="mean", items="size", scored="count").reset_index()


def intermediate(scores: Scores) -> pd.Series:
    """Average the Overall Dialogue Turn Score per dialog: Table 5's "intermediate score" rows.

    Over the same replies as the final score; NaN where that is NaN.
    """
    usable = _usable_replies(scores.replies, scores.judge.samples)
    return usable["overall dialogue turn score"].mean().reindex(scores.items.index)
