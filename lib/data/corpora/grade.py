"""GRADE (Huang et al. 2020): coherence of 8 x 150 responses on ConvAI2, DailyDialog and
EmpatheticDialogues, 8 to 11 annotators each.

Line i of context, response, reference and score belong together; the single ratings sit in one
file for all eight sets, in the same order. The text is tokenised.
"""

import hashlib

from lib.data.corpora import records
from lib.data.corpora.tables import Account, Ratings, join
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import parse_json, rating_cell, read_lines
from lib.data.dialogues.table import turn_table

SETS = {
    "grade_convai2_bert_ranker": "convai2/bert_ranker",
    "grade_convai2_dialogGPT": "convai2/dialogGPT",
    "grade_convai2_transformer_generator": "convai2/transformer_generator",
    "grade_convai2_transformer_ranker": "convai2/transformer_ranker",
    "grade_dailydialog_transformer_generator": "dailydialog/transformer_generator",
    "grade_dailydialog_transformer_ranker": "dailydialog/transformer_ranker",
    "grade_empatheticdialogues_transformer_generator": "empatheticdialogues/transformer_generator",
    "grade_empatheticdialogues_transformer_ranker": "empatheticdialogues/transformer_ranker",
}


def load(fetch, name: str) -> dict:
    """One of the eight sets. `dialog` names the context, so sets on one corpus share it."""
    folder = SETS[name]
    corpus, system = folder.split("/")
    contexts, responses, references = (
        fetch(f"grade/eval_data/{folder}/human_{part}.txt") for part in ("ctx", "hyp", "ref")
    )
    scores = fetch(f"grade/human_score/{folder}/human_score.txt")
    rows: list[dict] = []
    seen: dict[str, int] = {}
    for number, (context, response, reference) in enumerate(
        _aligned([contexts, responses, references]), start=1
    ):
        before = [text.strip() for text in context.split("|||")]
        key = f"{corpus}-{hashlib.sha256(context.encode()).hexdigest()[:8]}"
        seen[key] = seen.get(key, 0) + 1
        if not reference.strip():
            raise DataError("the reference is empty", file=references, row=number)
        rows.append({"system": system, "dialog": key if seen[key] == 1 else f"{key}-{seen[key]}",
                     "turn": len(before), "context": before, "response": response.strip(),
                     "reference": [reference.strip()]})  # fmt: skip
    account = Account()
    account.read("responses", len(rows))
    again = sum(count - 1 for count in seen.values())
    account.note("responses", f"{again} repeat an earlier context" if again else "")
    path = fetch("grade/human_score/human_judgement.json")
    ratings = _ratings(path, corpus, system, rows, account)
    means = ratings.means(len(rows))
    _check_means(scores, means["human_coherence"])
    report = account.table({"responses": len(rows), "ratings": len(ratings)})
    return {"turns": join(turn_table(rows), means), "ratings": ratings.table(), "report": report}


def _aligned(paths: list) -> list[tuple[str, ...]]:
    """The lines of several files side by side; they must be equally many."""
    columns = [read_lines(path) for path in paths]
    for path, lines in zip(paths, columns, strict=True):
        if len(lines) != len(columns[0]):
            raise DataError(f"has {len(lines)} lines, {paths[0]} has {len(columns[0])}", file=path)
    return list(zip(*columns, strict=True))


def _ratings(path, corpus: str, system: str, rows: list[dict], account: Account) -> Ratings:
    """The single ratings of one set, checked to belong to its responses."""
    ratings, item = Ratings(account, path), 0
    for number, judged in enumerate(records.json_list(path), start=1):
        place = {"file": path, "row": number}
        data = records.get(judged, "Dataset", str, **place).removesuffix("_EVAL")
        if (data, records.get(judged, "DialogModel", str, **place)) != (corpus, system):
            continue
        text = records.get(judged, "Response", str, **place).strip()
        if item >= len(rows) or text != rows[item]["response"]:
            raise DataError("does not match the response line", **place, column="Response")
        values = parse_json(records.get(judged, "HumanScores", str, **place), path)
        if not isinstance(values, list) or not values:
            raise DataError("is not a list of ratings", **place, column="HumanScores")
        names = [f"annotator{n}" for n in range(1, len(values) + 1)]
        ratings.add_list(item, names, "coherence", values, (1, 5))
        item += 1
    if item != len(rows):
        raise DataError(f"judges {item} of the {len(rows)} responses of {system}", file=path)
    return ratings


def _check_means(path, means) -> None:
    """The published means must be those of the single ratings."""
    lines = read_lines(path)
    if len(lines) != len(means):
        raise DataError(f"has {len(lines)} means for {len(means)} responses", file=path)
    for number, (line, mean) in enumerate(zip(lines, means, strict=True), start=1):
        value = rating_cell(line, file=path, row=number, column="score", scale=(1, 5))
        if abs(value - mean) > 1e-4:  # published to four decimals
            raise DataError(
                f"mean {value:g} is not that of its ratings ({mean:g})", file=path, row=number
            )
