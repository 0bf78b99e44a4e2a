"""FED (Mehri and Eskenazi 2020): turns and dialogs of Meena, Mitsuku and people, 5 annotators.

The file holds blocks of three rated turns followed by the dialog they come from. Ratings marked
"N/A (...)" are set aside and counted; an item with none left is NaN. FED scores computed with
DialoGPT-large are published beside it: 18 aspects per item as `score_fed_<aspect>`.
"""

import pandas as pd

from lib.data.corpora import records
from lib.data.corpora.tables import Account, Ratings, join, snake
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import rating_cell, read_json_stream
from lib.data.dialogues.table import turn_table

TURN_SCALES = dict.fromkeys(
    ["Interesting", "Engaging", "Specific", "Relevant", "Correct", "Semantically appropriate",
     "Understandable", "Fluent", "Overall"], (0, 2)
) | {"Understandable": (0, 1), "Overall": (0, 4)}  # fmt: skip
DIALOG_SCALES = dict.fromkeys(
    ["Coherent", "Error recovery", "Consistent", "Diverse", "Depth", "Likeable", "Understanding",
     "Flexible", "Informative", "Inquisitive", "Overall"], (0, 2)
) | {"Consistent": (0, 1), "Overall": (0, 4)}  # fmt: skip
SPEAKERS = {"User": "user", "System": "system"}
ANNOTATORS = [f"annotator{n}" for n in range(1, 6)]  # unnamed upstream: not one person each


def turn(fetch) -> dict:
    """FED turn level: 375 responses, with `score_fed_*`."""
    path = fetch("fed/fed_data.json")
    account, rows = Account(), []
    ratings = Ratings(account, path)
    for number, block, item in _items(path):
        if "response" not in item:
            continue
        place = {"file": path, "row": number}
        context, _ = _speech(records.get(item, "context", str, **place), place)
        response, _ = _speech(records.get(item, "response", str, **place), place)
        row = {"dialog": f"fed-{block:03d}", "turn": len(context), "context": context}
        system = records.get(item, "system", str, **place)
        rows.append({**row, "system": system, "response": "\n".join(response)})
        _rate(item, len(rows) - 1, TURN_SCALES, ratings, place)
    account.read("responses", len(rows))
    scores = _scores(fetch("fed/turn_level_FU_scores.jsonl"), len(rows))
    turns = join(turn_table(rows), ratings.means(len(rows)), scores)
    report = account.table({"ratings": len(ratings), "responses": len(turns)})
    return {"turns": turns, "ratings": ratings.table(), "report": report}


def dialog(fetch) -> dict:
    """FED dialog level: 125 dialogs, with `score_fed_*`."""
    path = fetch("fed/fed_data.json")
    account, rows = Account(), []
    ratings = Ratings(account, path)
    for number, block, item in _items(path):
        if "response" in item:
            continue
        place = {"file": path, "row": number}
        utterances, speakers = _speech(records.get(item, "context", str, **place), place)
        system = records.get(item, "system", str, **place)
        keys = {"system": system, "agent": system, "dialog": f"fed-{block:03d}"}
        rows.append({**keys, "utterances": utterances, "speakers": speakers})
        _rate(item, len(rows) - 1, DIALOG_SCALES, ratings, place)
    account.read("dialogs", len(rows))
    scores = _scores(fetch("fed/dialog_level_FU_scores.jsonl"), len(rows))
    dialogs = join(pd.DataFrame(rows), ratings.means(len(rows)), scores)
    unrated = int(dialogs.filter(like="human_").isna().any(axis=1).sum())
    account.note("dialogs", f"{unrated} lack a mean in some dimension (NaN): every rating was N/A")
    report = account.table({"ratings": len(ratings), "dialogs": len(dialogs)})
    return {"dialogs": dialogs, "ratings": ratings.table(), "report": report}


def engaging(fetch) -> dict:
    """FED-eng of EnDex: turns with mean Engaging >= 1.6 (label 1) or <= 0.8 (label 0).

    261 of the 375 turns. The rule is inferred from the size of the set and from its printed
    Pearson and Spearman being equal, as they are for a binary label; the paper does not state it.
    `human_engaging` is the label, `human_engaging_mean` the mean rating on 0-2.
    """
    parts = turn(fetch)
    turns, ratings = parts["turns"], parts["ratings"]
    mean = turns["human_engaging"].round(6)  # means of 5 integers: undo the last-bit error
    chosen = turns.index[(mean >= 1.6) | (mean <= 0.8)]
    position = pd.Series(range(len(chosen)), index=chosen)
    table = turns.loc[chosen].assign(human_engaging_mean=mean[chosen])
    table["human_engaging"] = (mean[chosen] >= 1.6).astype(float)
    kept = ratings[ratings["item"].isin(chosen)]
    kept = kept.assign(item=kept["item"].map(position).astype("int64")).reset_index(drop=True)
    account = Account()
    account.read("responses", len(turns))
    account.set_aside("responses", "have a middling mean Engaging", len(turns) - len(chosen))
    report = account.table({"responses": len(table)})
    return {"turns": table.reset_index(drop=True), "ratings": kept, "report": report}


def _items(path):
    """(row number, dialog block, item): a dialog-level item closes the block of its turns."""
    block = 0
    for number, item in enumerate(records.json_list(path), start=1):
        yield number, block, item
        block += "response" not in item


def _speech(text: str, place: dict) -> tuple[list[str], list[str]]:
    """Utterances and speakers of lines like "User: Hi!"."""
    utterances, speakers = [], []
    for line in records.utterances(text):
        name, colon, words = line.partition(":")
        if not colon or name not in SPEAKERS:
            raise DataError(
                f"line {line!r:.40} does not start with a speaker", **place, column="context"
            )
        utterances.append(words.strip())
        speakers.append(SPEAKERS[name])
    return utterances, speakers


def _rate(item: dict, row: int, scales: dict, ratings: Ratings, place: dict) -> None:
    annotations = records.get(item, "annotations", dict, **place)
    for dimension, scale in scales.items():
        values = records.get(annotations, dimension, list, **place)
        ratings.add_list(row, ANNOTATORS, snake(dimension), values, scale)


def _scores(path, count: int) -> pd.DataFrame:
    """`score_fed_<aspect>` in file order; the aspect "understand" is named as its rating is."""
    items = read_json_stream(path)
    if len(items) != count:
        raise DataError(f"holds {len(items)} score records for {count} items", file=path)
    rows = []
    for number, item in enumerate(items, start=1):
        place = {"file": path, "row": number}
        scores = records.get(item, "score", dict, **place)
        rows.append(
            {"score_fed_" + snake("understanding" if name == "understand" else name):
             rating_cell(value, **place, column=name, scale=None) for name, value in scores.items()}
        )  # fmt: skip
    return pd.DataFrame(rows, dtype="float64")
