"""USR-Topical and USR-Persona (Mehri and Eskenazi 2020), and UniEval's predictions for the first.

Both are lists of contexts with five or six responses each. The text is lower-cased and tokenised.
The response of "Original Ground Truth" is the reference of the other responses to its context; it
has no reference itself, so that reference-based metrics leave it out (NaN), as published.
"""

import pandas as pd

from lib.data.corpora import records
from lib.data.corpora.tables import Account, Ratings, join, no_ratings, snake
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import rating_cell, read_json
from lib.data.dialogues.table import turn_table

SCALES = {
    "Understandable": (0, 1),
    "Natural": (1, 3),
    "Maintains Context": (1, 3),
    "Engaging": (1, 3),
    "Uses Knowledge": (0, 1),
    "Overall": (1, 5),
}
TRUTH = "Original Ground Truth"
UNIEVAL_SCALES = {
    "understandability": (0, 1),
    "naturalness": (1, 3),
    "coherence": (1, 3),
    "engagingness": (1, 3),
    "groundedness": (0, 1),
    "overall": (1, 5),
}


def topical(fetch) -> dict:
    """USR-Topical with `score_grade`, the published GRADE score (NaN for the ground truth)."""
    parts = _read(fetch("usr/tc_usr_data.json"), "usr_topical")
    parts["turns"]["score_grade"] = _grade(
        fetch("usr/metric_outputs/grade_usr_topicalchat/results.json"), parts["turns"]
    )
    return parts


def persona(fetch) -> dict:
    """USR-Persona."""
    return _read(fetch("usr/pc_usr_data.json"), "usr_persona")


def _read(path, name: str) -> dict:
    account = Account()
    ratings = Ratings(account, path)
    rows: list[dict] = []
    people: dict[str, str] = {}  # some annotators are named: number them in order of appearance
    for number, item in enumerate(records.json_list(path)):
        place = {"file": path, "row": number + 1}
        shared = {
            "dialog": f"{name}-{number:03d}",
            "context": records.utterances(records.get(item, "context", str, **place)),
            "fact": records.persona(records.get(item, "fact", str, **place)),
        }
        names = records.texts(item, "annotators", **place)
        annotators = [people.setdefault(name, f"person{len(people) + 1}") for name in names]
        responses = records.objects(item, "responses", **place)
        truth = [r.get("response") for r in responses if r.get("model") == TRUTH]
        for response in responses:
            rows.append(_row(response, shared, truth, place))
            for dimension, scale in SCALES.items():
                values = records.get(response, dimension, list, **place)
                ratings.add_list(len(rows) - 1, annotators, snake(dimension), values, scale)
    return _parts(rows, ratings, account)


def _row(response: dict, shared: dict, truth: list, place: dict) -> dict:
    system = records.get(response, "model", str, **place)
    reference = [] if system == TRUTH else [str(text).strip() for text in truth]
    text = records.get(response, "response", str, **place).strip()
    turn = len(shared["context"])
    return {**shared, "system": system, "turn": turn, "response": text, "reference": reference}


def _parts(rows: list[dict], ratings: Ratings, account: Account) -> dict:
    account.read("responses", len(rows))
    without = sum(not row["reference"] for row in rows)
    account.note("responses", f"{without} have no reference (the ground truth itself)")
    turns = join(turn_table(rows), ratings.means(len(rows)))
    report = account.table({"responses": len(turns), "ratings": len(ratings)})
    return {"turns": turns, "ratings": ratings.table(), "report": report}


def _grade(path, turns: pd.DataFrame) -> pd.Series:
    """Scores in file order, for the responses that are not the ground truth."""
    values = records.get(read_json(path), "grade", list, file=path, row=None)
    rated = turns.index[turns["system"] != TRUTH]
    if len(values) != len(rated):
        raise DataError(f"holds {len(values)} scores for {len(rated)} responses", file=path)
    scores = [
        rating_cell(v, file=path, row=i, column="grade", scale=(0, 1))
        for i, v in enumerate(values, 1)
    ]
    return pd.Series(scores, index=rated, dtype=float).reindex(turns.index)


def unieval(fetch) -> dict:
    """UniEval's benchmark: mean ratings as `human_*`, its predictions as `score_unieval_*`.

    `score_unieval_engagingness` is a sum over sentences and may exceed 1; `overall` is the mean of
    the five. Only means over the three annotators were published, so `ratings` is empty.
    """
    path = fetch("unieval/topical_chat_result.json")
    rows: list[dict] = []
    blocks: dict[tuple, int] = {}
    for number, item in enumerate(records.json_list(path), start=1):
        place = {"file": path, "row": number}
        source, fact = (records.get(item, name, str, **place) for name in ("source", "context"))
        block = blocks.setdefault((source, fact), len(blocks))
        context = records.utterances(source)
        row = {
            "system": records.get(item, "system_id", str, **place),
            "dialog": f"usr_topical-{block:03d}",
            "turn": len(context),
            "context": context,
            "response": records.get(item, "system_output", str, **place).strip(),
            "fact": records.persona(fact),
        }
        row |= _means(item, "scores", "human_", UNIEVAL_SCALES, place)
        row |= _means(
            item, "predict_scores", "score_unieval_", dict.fromkeys(UNIEVAL_SCALES), place
        )
        rows.append(row)
    truth = {row["dialog"]: row["response"] for row in rows if row["system"] == TRUTH}
    for row in rows:
        known = row["system"] != TRUTH and row["dialog"] in truth
        row["reference"] = [truth[row["dialog"]]] if known else []
    account = Account()
    account.read("responses", len(rows))
    account.note("responses", "ratings are means of 3 annotators")
    report = account.table({"responses": len(rows)})
    return {"turns": turn_table(rows), "ratings": no_ratings(), "report": report}


def _means(item: dict, field: str, prefix: str, scales: dict, place: dict) -> dict[str, float]:
    values = records.get(item, field, dict, **place)
    return {
        prefix + name: rating_cell(
            records.get(values, name, int | float, **place),
            **place,
            column=f"{field}.{name}",
            scale=scale,
        )
        for name, scale in scales.items()
    }
