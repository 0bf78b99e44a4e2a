"""DSTC10 Track 5 development sets (Zhang et al. 2021): TP, UP, ZD and ZP of the human-centered
metrics paper, with context, reference, response, system and single ratings.

Utterances of the context are separated by newlines; the "prompt" of the published style-matching
and emotion-matching figures is the whole context, `"\\n".join(context)`. The reference is the
file's own, also for the ground truth itself.
"""

from lib.data.corpora import records
from lib.data.corpora.tables import Account, Ratings, join, snake
from lib.data.corpora.usr import SCALES
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.table import turn_table

ZHAO = dict.fromkeys(["content", "grammar", "relevance", "appropriateness"], (1, 5))
SETS = {
    "dstc10_topical_usr": ("dstc10/topical-usr_eval.json", SCALES),
    "dstc10_persona_usr": ("dstc10/persona-usr_eval.json", SCALES),
    "dstc10_dailydialog_zhao": ("dstc10/dailydialog-zhao_eval.json", ZHAO),
    "dstc10_persona_zhao": ("dstc10/persona-zhao_eval.json", {"appropriateness": (1, 5)}),
}


def load(fetch, name: str) -> dict:
    """One of the four sets. A run of rows with one context is one dialog."""
    key, scales = SETS[name]
    path = fetch(key)
    account = Account()
    ratings, rows = Ratings(account, path), []
    block, before = -1, None
    for number, item in enumerate(records.json_list(path), start=1):
        place = {"file": path, "row": number}
        context = records.get(item, "context", str, **place)
        fact = records.get(item, "fact", str, **place) if "fact" in item else ""
        if context != before:  # the facts of one context differ in white space
            block, before = block + 1, context
        rows.append(_row(item, f"{name}-{block:03d}", context, fact, place))
        _rate(item, number - 1, scales, ratings, place)
    account.read("responses", len(rows))
    report = account.table({"ratings": len(ratings), "responses": len(rows)})
    turns = join(turn_table(rows), ratings.means(len(rows)))
    return {"turns": turns, "ratings": ratings.table(), "report": report}


def _row(item: dict, dialog: str, context: str, fact: str, place: dict) -> dict:
    before = records.utterances(context)
    return {
        "system": records.get(item, "model", str, **place),
        "dialog": dialog,
        "turn": len(before),
        "context": before,
        "response": records.get(item, "response", str, **place).strip(),
        "reference": [text.strip() for text in records.texts(item, "reference", **place)],
        "fact": records.persona(fact),
    }


def _rate(item: dict, row: int, scales: dict, ratings: Ratings, place: dict) -> None:
    annotations = records.get(item, "annotations", dict, **place)
    for dimension in annotations:
        if dimension not in scales:
            raise DataError("is not a known dimension", **place, column=dimension)
    for dimension, scale in scales.items():
        values = records.get(annotations, dimension, list, **place)
        names = [f"annotator{n}" for n in range(1, len(values) + 1)]
        ratings.add_list(row, names, snake(dimension), values, scale)
