"""From turns to requests, from replies to scores (ComperDial paper, section 4 and C.1.2)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from lib.cpdscore.parsing import NAN, USABLE, parse_reply
from lib.cpdscore.reply_store import Job, ReplyStore, Request
from lib.cpdscore.templates import Template, load_template

FACTS = ("persona_b", "both", "none")


@dataclass(frozen=True)
class JudgeModel:
    """Who judges, and how often. Everything here but the counts is part of what is sent."""

    model: str
    samples: int = 3  # "the average of the results from three API calls" (section 4)
    extra: int = 2  # further samples for an item whose replies could not all be read
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"max_tokens": 256})
    role: str = "user"  # of the message that holds the prompt; G-Eval's code uses "system"


@dataclass(frozen=True)
class Scores:
    """The scores of one prompt variant by one judge.

    ``items``: one row per turn (or dialog), on the index of the table that was scored, with
    ``score`` (mean of the usable samples, NaN where there is none), ``status``, ``usable`` and
    ``asked`` samples, ``spread`` (standard deviation over samples), ``words`` and ``key``.
    ``replies``: one row per reply, with the item, sample, status, score and every mark read.
    """

    template: Template
    judge: JudgeModel
    units: pd.DataFrame  # system, agent, dialog (and turn) of each item
    items: pd.DataFrame
    replies: pd.DataFrame
    synthetic: str | None = None  # the store's own warning that no model wrote the replies

    @property
    def coverage(self) -> float:
        """Share of items that have a score."""
        return float(self.items["score"].notna().mean()) if len(self.items) else NAN

    @property
    def statuses(self) -> pd.Series:
        """How many replies ended in each status."""
        return self.replies["status"].value_counts()

    def first(self, samples: int) -> "Scores":
        """The scores had only the first few samples been asked (a single call: Table 3)."""
        kept = self.replies[self.replies["sample"] < samples]
        judge = replace(self.judge, samples=samples, extra=0)
        items = _items(self.items[["words", "key"]], kept, judge.samples)
        return replace(self, judge=judge, items=items, replies=kept)


def turn_requests(
    turns: pd.DataFrame,
    template: Template,
    judge: JudgeModel,
    fact: str = "persona_b",
    speakers: tuple[str, str] = ("A", "B"),
) -> list[Request | None]:
    """One request per turn; None where an input that the prompt needs is missing.

    The history is one utterance a line, ``A: ...`` and ``B: ...``, so that the last one before
    the response is A's. ``fact`` is the persona of B, who responds, as in USR's data (the
    ``fact`` column); ``"both"`` adds A's persona from a column ``persona_a``; ``"none"`` leaves
    the section empty. Requests in the table's order share their beginning, which servers cache.
    """
    if fact not in FACTS:
        raise ValueError(f"fact={fact!r}: choose one of {', '.join(FACTS)}")
    if fact == "both" and "persona_a" not in turns:
        raise ValueError("fact='both' needs a column persona_a (list of sentences) in the turns")
    rows = turns.to_dict("records")
    return [_turn_request(row, template, judge, fact, speakers) for row in rows]


def _turn_request(
    row: dict[str, Any],
    template: Template,
    judge: JudgeModel,
    fact: str,
    speakers: tuple[str, str],
) -> Request | None:
    values = {
        "history": history_text(row["context"], speakers),
        "reference": "\n".join(row["reference"]),
        "fact": _fact_text(row, fact),
        "response": row["response"],
    }
    if "reference" in template.inputs and not values["reference"].strip():
        return None
    chosen = {name: values[name] for name in template.inputs}
    place = {name: row[name] for name in ("system", "dialog", "turn")}
    return _request(template.fill(**chosen), template, judge, place)


def _request(
    prompt: str, template: Template, judge: JudgeModel, place: Mapping[str, Any]
) -> Request:
    labels = {
        "variant": template.variant.name,
        "wording": template.wording,
        "source": template.source,
        "reply_tokens": template.variant.reply_tokens,
        **place,
    }
    return Request(judge.model, ((judge.role, prompt),), dict(judge.parameters), labels)


def history_text(context: list[str], speakers: tuple[str, str] = ("A", "B")) -> str:
    """The conversation so far, one utterance a line, the last one by the first speaker.

    >>> print(history_text(["Hi.", "Hello!", "Tea?"]))
    A: Hi.
    B: Hello!
    A: Tea?
    """
    last = len(context) - 1
    return "\n".join(f"{speakers[(last - i) % 2]}: {said}" for i, said in enumerate(context))


def _fact_text(row: dict[str, Any], fact: str) -> str:
    if fact == "none":
        return ""
    lines = list(row["fact"])
    if fact == "both":
        lines = [f"B: {line}" for line in lines] + [f"A: {line}" for line in row["persona_a"]]
    return "\n".join(lines)


Ask = Callable[[Iterable[Job]], object]


def score_turns(
    turns: pd.DataFrame,
    variant: str | Template,
    judge: JudgeModel,
    store: ReplyStore,
    ask: Ask | None = None,
    fact: str = "persona_b",
    speakers: tuple[str, str] = ("A", "B"),
) -> Scores:
    """CPDScore-Simple, -Detail or an original prompt: a mark from 1 to 5 (original detail: 3).

    Parameters
    ----------
    turns : turn table (system, agent, dialog, turn, context, response, reference, fact).
    variant : name of a variant (shipped wording), or a template, e.g. from the paper's text.
    judge : the model and the number of samples.
    store : where replies are looked up and kept.
    ask : called with the jobs that are wanted, for example ``lambda jobs: judge.run(jobs, store,
        connection)``; without it the store must hold every reply (``MissingReplies`` otherwise).
    fact, speakers : see ``turn_requests``.

    Returns
    -------
    Scores, higher is better. An item is NaN when its prompt lacks a reference (``no input``) or
    none of its replies can be read; nothing is dropped and nothing is guessed.

    Reference: Wakaki et al. (2024), ComperDial, section 4.
    """
    template = variant if isinstance(variant, Template) else load_template(variant)
    if template.variant.level != "turn":
        raise ValueError(f"{template.variant.name} rates dialogs: use score_dialogs")
    requests = turn_requests(turns, template, judge, fact, speakers)
    units = turns[["system", "agent", "dialog", "turn"]]
    return _score(requests, units, turns["response"], template, judge, store, ask)


def score_dialogs(
    turns: pd.DataFrame,
    turn_scores: pd.Series,
    judge: JudgeModel,
    store: ReplyStore,
    ask: Ask | None = None,
    template: Template | None = None,
    decimals: int = 2,
) -> Scores:
    """CPDScore-Dialogue, step 2: one mark for a dialog from its turn scores and its responses.

    ``turn_scores`` (step 1, on ``turns.index``) stand in the prompt with ``decimals`` decimals.
    A dialog with a turn that has no score is not asked and has status ``no input``. The mark
    "Overall Dialogue Turn Score" (the paper's intermediate score) is a column of ``.replies``.

    Reference: Wakaki et al. (2024), section 4 and appendix B.3.
    """
    template = template or load_template("dialogue")
    keys = ["system", "agent", "dialog"]
    ordered = turns.assign(step1=turn_scores).sort_values("turn", kind="stable")
    groups = list(ordered.groupby(keys, sort=False))
    units = pd.DataFrame([place for place, _ in groups], columns=keys)
    order = units.reset_index().merge(turns[keys].drop_duplicates(), how="right", on=keys)["index"]
    groups, units = [groups[i] for i in order], units.loc[order].reset_index(drop=True)
    requests = [_dialog_request(group, template, judge, decimals) for _, group in groups]
    said = pd.Series(["\n".join(group["response"]) for _, group in groups], dtype="str")
    return _score(requests, units, said, template, judge, store, ask)


def _dialog_request(
    group: pd.DataFrame, template: Template, judge: JudgeModel, decimals: int
) -> Request | None:
    if group["step1"].isna().any():
        return None
    marks = enumerate(group["step1"], 1)
    values = {
        "turns": str(len(group)),
        "turn_scores": "\n".join(f"Turn {i} Score - {mark:.{decimals}f}" for i, mark in marks),
        "responses": "\n".join(f"Turn {i}: {said}" for i, said in enumerate(group["response"], 1)),
    }
    chosen = {name: values[name] for name in template.inputs}
    place = {name: group.iloc[0][name] for name in ("system", "dialog")}
    return _request(template.fill(**chosen), template, judge, place)


def _score(
    requests: list[Request | None],
    units: pd.DataFrame,
    responses: pd.Series,
    template: Template,
    judge: JudgeModel,
    store: ReplyStore,
    ask: Ask | None,
) -> Scores:
    """Ask for what is missing, read the replies, ask again where they could not be read."""
    asked = [request for request in requests if request is not None]
    get = ask or store.require
    get([Job(request, sample) for request in asked for sample in range(judge.samples)])
    store.add_requests(asked)  # so that a replayed score can be traced to its prompt, too
    for _ in range(judge.extra if ask else 0):
        if again := _short(asked, template, judge, store):
            get(again)
    keys = pd.Series([request and request.key for request in requests], index=units.index)
    facts = pd.DataFrame({"words": responses.str.split().str.len(), "key": keys})
    replies = _replies(keys, template, store, judge.samples + judge.extra)
    items = _items(facts, replies, judge.samples)
    return Scores(template, judge, units, items, replies, store.meta("synthetic"))


def _short(
    requests: list[Request], template: Template, judge: JudgeModel, store: ReplyStore
) -> list[Job]:
    """One more sample for each prompt with too few readable replies, up to ``extra`` of them."""
    found: dict[str, list[bool]] = {}
    for (key, _), reply in store.replies(request.key for request in requests).items():
        parsed = parse_reply(reply.text, template.variant, reply.status)
        found.setdefault(key, []).append(parsed.status in USABLE)
    jobs = []
    for request in {request.key: request for request in requests}.values():
        known = found.get(request.key, [])
        complete = len(known) >= judge.samples  # what a fault left over is for a later run
        room = len(known) < judge.samples + judge.extra
        if complete and room and sum(known) < judge.samples:
            jobs.append(Job(request, len(known)))
    return jobs


def _replies(keys: pd.Series, template: Template, store: ReplyStore, most: int) -> pd.DataFrame:
    """Every stored reply of every item, read."""
    stored = store.replies(keys.dropna())
    by_key: dict[str, list] = {}
    for (key, sample), reply in stored.items():
        if sample >= most:
            continue
        parsed = parse_reply(reply.text, template.variant, reply.status)
        by_key.setdefault(key, []).append((reply.sample, parsed))
    rows = [
        {"item": item, "sample": sample, "status": parsed.status, "score": parsed.score,
         **{name: parsed.fields.get(name, NAN) for name in template.variant.fields}}
        for item, key in keys.items()
        for sample, parsed in by_key.get(key, [])
    ]  # fmt: skip
    columns = ["item", "sample", "status", "score", *template.variant.fields]
    return pd.DataFrame(rows, columns=columns).astype({"status": "str", "score": float})


def _items(facts: pd.DataFrame, replies: pd.DataFrame, samples: int) -> pd.DataFrame:
    """Mean of the first ``samples`` usable replies of each item, with what stands behind it."""
    usable = replies[replies["score"].notna()].sort_values(["item", "sample"])
    usable = usable[usable.groupby("item").cumcount() < samples]
    groups, asked = usable.groupby("item")["score"], replies.groupby("item").size()
    index = facts.index
    frame = pd.DataFrame(
        {
            "score": groups.mean().reindex(index).astype(float),
            "spread": groups.std(ddof=1).reindex(index).astype(float),
            "usable": groups.size().reindex(index, fill_value=0),
            "asked": asked.reindex(index, fill_value=0),
        }
    ).join(facts)
    reason = replies[replies["score"].isna()].groupby("item")["status"].first().reindex(index)
    short = frame["usable"] < samples
    frame["status"] = np.select(
        [frame["key"].isna(), frame["asked"] == 0, frame["usable"] == 0, short],
        ["no input", "not asked", reason.fillna("").astype(object), "partial"],
        default="ok",
    )
    return frame
