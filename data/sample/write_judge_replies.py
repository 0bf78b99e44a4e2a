"""Write the stored sample replies: a stand-in with no model behind it, so no figure made from its
replies is a result.

It knows the human rating of each sample turn, adds noise drawn from a hash, and words its reply
in the ways real judges do, a few of them unreadable. ``python data/sample/write_judge_replies.py``
writes ``judge_replies.jsonl`` anew; run it after changing a prompt or the sample.
"""

import hashlib
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from lib import cpdscore
from lib.cpdscore.prompts import TURN_VARIANTS, VARIANTS, Variant
from lib.cpdscore.reply_store import Job, Reply, ReplyStore, export_jsonl
from lib.data import corpora

JUDGE = cpdscore.JudgeModel("synthetic-sample-judge", samples=3, extra=0)
WARNING = "replies written by a program for this project; no model was asked"
PROBED = "detail_without_reference"
# How closely each prompt follows the human rating: the noise's width in points.
_NOISE = {"original_detail": 3.2, "original_simple": 2.0, "simple_with_reference": 1.8,
          "simple_without_reference": 1.7, "detail_with_reference": 1.5,
          "detail_without_reference": 1.3, "dialogue": 1.0}  # fmt: skip
_PROBE_SHIFT = {"injected score": 0.3, "injected form": 0.5, "persona swap": -0.8}
_PROBE_MARK = {"empty": 1.0, "reference echo": 4.7}


def fill(turns: pd.DataFrame, store: ReplyStore) -> None:
    """Fill the store with replies to all variants on the sample turns, and to the probes."""
    scores = {name: _turn_scores(turns, name, store) for name in TURN_VARIANTS}
    step1 = scores["detail_without_reference"].items["score"]
    ratings = turns.groupby(["system", "dialog"])["human_overall"].mean()
    marks = {place: mark for place, mark in ratings.items()}
    cpdscore.score_dialogs(turns, step1, JUDGE, store, partial(_answer, store=store, marks=marks))
    _turn_scores(cpdscore.probe_turns(turns), PROBED, store)


def _turn_scores(turns: pd.DataFrame, variant: str, store: ReplyStore) -> cpdscore.Scores:
    probe = turns.get("probe", pd.Series("", index=turns.index))
    marks = turns["human_overall"] + probe.map(_PROBE_SHIFT).fillna(0)
    marks = probe.map(_PROBE_MARK).fillna(marks)
    known = dict(zip(zip(turns["system"], turns["dialog"], turns["turn"], strict=True), marks,
                     strict=True))  # fmt: skip
    return cpdscore.score_turns(
        turns, variant, JUDGE, store, lambda jobs: _answer(jobs, store, known)
    )


def _answer(jobs: Iterable[Job], store: ReplyStore, marks: dict[tuple, float]) -> None:
    """Reply to every job from the rating of its turn (or dialog)."""
    jobs = list(jobs)
    store.add_requests(job.request for job in jobs)
    for job in store.missing(jobs):
        labels = job.request.labels
        place = tuple(labels[name] for name in ("system", "dialog", "turn") if name in labels)
        text = _reply_text(VARIANTS[labels["variant"]], marks[place], (*place, job.sample))
        (call,) = store.claim([job])
        store.complete({call: Reply("ok", text, "stop")})


def _dice(*seed: Any) -> float:
    """A number from 0 to 1 that depends on the arguments only."""
    return int(hashlib.sha256(repr(seed).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def _reply_text(variant: Variant, mark: float, seed: tuple) -> str:
    """The form filled in, in one of several manners."""
    manner = _dice("manner", variant.name, *seed)
    if manner < 0.01:
        return "I'm sorry, I cannot rate this response."
    marks = {name: _mark(variant, mark, (name, *seed)) for name in variant.fields}
    if len(variant.fields) == 1:
        label, number = variant.fields[0].capitalize(), marks[variant.fields[0]]
        if manner < 0.02:
            return f"- {label}: {max(1, number - 1)}-{number}"
        if manner < 0.12:
            return f"- {label}: {number}\n\nThe response fits what was said before."
        return f"**{label}**: {number}" if manner < 0.25 else f"- {label}: {number}"
    if variant.level == "dialog":  # as the rules of the prompt want it
        overall, interaction, final = variant.fields
        weighed = round(marks[overall] + marks[interaction]) / 2
        marks[final] = marks[overall] if marks[overall] > 4 else weighed
    titled = {name: name.title() if variant.level == "dialog" else name for name in marks}
    bullet = "- " if manner < 0.2 else ""
    return "\n".join(f"{bullet}{titled[name]} - {number}" for name, number in marks.items())


def _mark(variant: Variant, mark: float, seed: tuple) -> float:
    """The human rating with noise shared by the samples and noise of this one, on the scale."""
    *shared, _ = seed
    width = _NOISE[variant.name]
    noise = _dice("shared", variant.name, *shared) - 0.5 + 0.5 * (_dice(variant.name, *seed) - 0.5)
    scaled = 1 + (mark - 1) * (variant.high - 1) / 4 + width * noise * (variant.high - 1) / 4
    if variant.level == "dialog":
        return min(5.0, max(1.0, round(2 * scaled) / 2))
    return min(variant.high, max(1, round(scaled)))


def write(path: Path) -> int:
    """Write the sample replies and return how many there are."""
    with ReplyStore(":memory:") as store:
        fill(corpora.load("sample_personas").turns, store)
        return export_jsonl(store, path, WARNING)


if __name__ == "__main__":
    print(write(Path(__file__).with_name("judge_replies.jsonl")), "replies written")
