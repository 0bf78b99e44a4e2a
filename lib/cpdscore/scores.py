"""From turns to requests, from replies to scores (ComperDial paper, section 4 and C.1.2)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from lib.cpdscore.prompts import Template, load_template
from lib.cpdscore.reading import mark_probabilities, parse_reply
from lib.cpdscore.reply_store import Job, ReplyStore, Request
from lib.data.turn_table import KEY, LEVELS

Ask = Callable[[Iterable[Job]], object] | None


@dataclass(frozen=True)
class JudgeModel:
    """Who judges, and how often. Everything here but the counts is part of what is sent."""

    model: str
    samples: int = 3  # "the average of the results from three API calls" (section 4)
    extra: int = 2  # further samples for an item whose replies could not all be read
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"max_tokens": 256})
    forced: bool = False  # hold the server to the answer form by a grammar (llama.cpp)


@dataclass(frozen=True)
class Scores:
    """The scores of one prompt variant by one judge.

    `items`: one row per turn (or dialog), on the index of the table that was scored, with
    ``score`` (mean of the usable samples, NaN where there is none), ``weighted`` (the same of their
    expected marks), ``status``, ``usable`` and ``asked`` samples, ``spread`` (standard deviation
    over samples), ``words`` and ``key``.
    `replies`: one row per reply, with the item, sample, status, score, every mark read, the
    ``odds`` of the marks and their mean ``weighted`` (or, in ``unweighted``, why there are none).
    """

    template: Template
    judge: JudgeModel
    units: pd.DataFrame  # system, agent, dialog (and turn) of each item
    items: pd.DataFrame
    replies: pd.DataFrame

    def first(self, samples: int) -> "Scores":
        """The scores had only the first few samples been asked (a single call: Table 3)."""
        kept = self.replies[self.replies["sample"] < samples]
        items = _items(self.items[["words", "key"]], kept, samples)
        judge = replace(self.judge, samples=samples, extra=0)
        return replace(self, judge=judge, items=items, replies=kept)


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
    for row in turns.to_dict("records"):
        values = {name: "\n".join(row[name]) for name in ("reference", "fact")}
        values |= {"history": history_text(row["context"]), "response": row["response"]}
        known = values["reference"].strip() or "reference" not in template.inputs
        requests.append(_request(values, template, judge, row) if known else None)
    return requests


def _request(
    values: Mapping[str, str], template: Template, judge: JudgeModel, place: Mapping[str, Any]
) -> Request:
    prompt = template.fill(**{name: values[name] for name in template.inputs if name in values})
    labels = {"variant": template.variant.name, "wording": template.wording}
    labels |= {name: place[name] for name in ("system", "dialog", "turn") if name in place}
    form = {"grammar": template.grammar} if judge.forced else {}
    sent = judge.model, (("user", prompt),), {**judge.parameters, **form}
    return Request(*sent, labels, template.variant.reply_tokens)


def history_text(context: list[str]) -> str:
    """Write the conversation so far, one utterance a line, the last one by A.

    >>> print(history_text(["Hi.", "Hello!", "Tea?"]))
    A: Hi.
    B: Hello!
    A: Tea?
    """
    last = len(context) - 1
    return "\n".join(f"{'AB'[(last - i) % 2]}: {said}" for i, said in enumerate(context))


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
        ask: called with the jobs that are wanted (see `asker`); without it the store must hold
            every reply.

    Returns:
        Scores, higher is better. An item is NaN when its prompt lacks a reference (``no input``)
        or none of its replies can be read; nothing is dropped and nothing is guessed.

    Raises:
        MissingReplies: without `ask`, if a reply is not in the store.
        ValueError: for the variant that rates dialogs.

    Reference: Wakaki et al. (2024), ComperDial, section 4.
    """
    template = variant if isinstance(variant, Template) else load_template(variant)
    asked = turns[KEY].assign(request=turn_requests(turns, template, judge), said=turns["response"])
    return _score(asked, template, judge, store, ask)


def score_dialogs(
    turns: pd.DataFrame,
    turn_scores: pd.Series,
    judge: JudgeModel,
    store: ReplyStore,
    ask: Ask = None,
    template: Template | None = None,
) -> Scores:
    """Score dialogs by CPDScore-Dialogue, step 2: one mark from turn scores and responses.

    A dialog with a turn that has no score is not asked and has status ``no input``. The mark
    "Overall Dialogue Turn Score" (the paper's intermediate score) is a column of ``.replies``.

    Args:
        turns: turn table; dialogs come in the order of their first turn in it.
        turn_scores: step 1, on ``turns.index``; the prompt shows two decimals.
        judge, store, ask: as in `score_turns`.
        template: another wording than the shipped one.

    Reference: Wakaki et al. (2024), section 4 and appendix B.3.
    """
    template, rows = template or load_template("dialogue"), []
    for place, group in turns.assign(step1=turn_scores).groupby([*LEVELS], sort=False):
        group = group.sort_values("turn", kind="stable")
        marks = [f"Turn {i} Score - {mark:.2f}" for i, mark in enumerate(group["step1"], 1)]
        said = [f"Turn {i}: {text}" for i, text in enumerate(group["response"], 1)]
        values = {"turn_scores": "\n".join(marks), "responses": "\n".join(said)}
        row, known = dict(zip(LEVELS, place, strict=True)), group["step1"].notna().all()
        request = _request(values | {"turns": str(len(group))}, template, judge, row)
        rows.append((*place, request if known else None, "\n".join(group["response"])))
    asked = pd.DataFrame(rows, columns=[*LEVELS, "request", "said"])
    return _score(asked, template, judge, store, ask)


def _score(
    asked: pd.DataFrame, template: Template, judge: JudgeModel, store: ReplyStore, ask: Ask
) -> Scores:
    """Ask for what is missing, read the replies, ask again where they could not be read."""
    requests = {request.key: request for request in asked["request"].dropna()}
    get = ask or store.require
    get([Job(request, i) for request in requests.values() for i in range(judge.samples)])
    store.add_requests(requests.values())  # so that a replayed score leads to its prompt, too
    keys = asked["request"].map(lambda request: request.key, na_action="ignore")
    for _ in range(judge.extra if ask else 0):
        if again := _short(requests, _replies(keys, template, judge, store), judge):
            get(again)
    replies = _replies(keys, template, judge, store)
    facts = pd.DataFrame({"words": asked["said"].str.split().str.len(), "key": keys})
    units = asked.drop(columns=["request", "said"])
    items = _items(facts, replies, judge.samples)
    return Scores(template, judge, units, items, replies)


def _short(requests: dict[str, Request], replies: pd.DataFrame, judge: JudgeModel) -> list[Job]:
    """One more sample for each prompt with too few readable replies, up to `extra` of them.

    A prompt with fewer samples than were wanted is one that a fault left for a later run.
    """
    once = replies.drop_duplicates(["key", "sample"])  # two items may share a prompt
    known = once.groupby("key", sort=False)["score"].agg(["size", "count"])
    room = known["size"].between(judge.samples, judge.samples + judge.extra - 1)
    short = known[room & (known["count"] < judge.samples)]["size"]
    return [Job(requests[key], int(size)) for key, size in short.items()]


def _replies(
    keys: pd.Series, template: Template, judge: JudgeModel, store: ReplyStore
) -> pd.DataFrame:
    """Every stored reply of every item, read."""
    rows = []
    for (key, sample), reply in store.replies(keys.dropna()).items():
        read = parse_reply(reply.text, template.variant, reply.status)
        odds, why = mark_probabilities(reply.text, reply.digit_probabilities, template.variant)
        weighted = sum(mark * p for mark, p in odds.items()) if odds else np.nan
        row = {"key": key, "sample": sample, "status": read.status, "score": read.score}
        rows.append(row | {"weighted": weighted, "odds": odds, "unweighted": why} | read.fields)
    marks = dict.fromkeys(["score", "weighted", *template.variant.fields], float)
    frame = pd.DataFrame(rows, columns=["key", "sample", "status", "odds", "unweighted", *marks])
    frame = frame[frame["sample"] < judge.samples + judge.extra].astype(marks)
    items = keys.rename("key").rename_axis("item").reset_index().dropna()
    return items.merge(frame.astype({"status": "str"}), on="key")


def _items(facts: pd.DataFrame, replies: pd.DataFrame, samples: int) -> pd.DataFrame:
    """Mean of the first `samples` usable replies of each item, with what stands behind it."""
    readable = _used(replies, samples)
    counts = pd.DataFrame({"usable": readable.size(), "asked": replies.groupby("item").size()})
    frame = facts.join(readable[["score", "weighted"]].mean())
    frame["spread"] = readable["score"].std(ddof=1)
    frame = frame.join(counts.reindex(facts.index).fillna(0).astype(int))
    reason = replies[replies["score"].isna()].groupby("item")["status"].first()
    frame["status"] = np.select(
        [frame["key"].isna(), frame["asked"] == 0, frame["usable"] == 0, frame["usable"] < samples],
        ["no input", "not asked", reason.reindex(facts.index).fillna(""), "partial"],
        default="ok",
    )
    return frame


def _used(replies: pd.DataFrame, samples: int) -> Any:
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
    groups = scores.units[keys].join(scores.items["score"]).groupby(keys, sort=False)["score"]
    return groups.agg(score="mean", items="size", scored="count").reset_index()


def intermediate(scores: Scores) -> pd.Series:
    """Average the Overall Dialogue Turn Score per dialog: Table 5's "intermediate score" rows.

    Over the same replies as the final score; NaN where that is NaN.
    """
    marks = _used(scores.replies, scores.judge.samples)["overall dialogue turn score"]
    return marks.mean().reindex(scores.items.index)
