"""Zhang et al. (2024), "A Comprehensive Analysis ...": texts with mean ratings, and GPT-4 ratings.

Turn level: one mean human rating per line of a text file. For the two Zhao sets (Zhao et al. 2020)
the position within a context is the system; position 0 looks like the ground truth and the last
one like a random response (inferred from the ratings: 4.05 against 2.00; there are no labels), so
position 0 serves as reference of the others.
Dialog level: five GPT-4 runs in five dimensions, `score_gpt4_<dimension>_run<n>`, on 1-5.
"""

import pandas as pd

from lib.data.corpora import fed, ji2022, records
from lib.data.corpora.tables import Account, Ratings, join, no_ratings
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import rating_cell, read_json, read_lines, text_cell
from lib.data.dialogues.table import turn_table

FOLDER = "comp_analysis/"
RATINGS = ["overall", "interesting", "relevance", "specificity", "understandability"]
JUDGED = {"coh": "coherence", "div": "diversity", "eng": "engagingness",
          "inf": "informativeness", "ovr": "overall"}  # fmt: skip
# name: (key of the text file and of its ratings, responses per context)
TURN_SETS = {
    "zhao_persona": ("persona-zhao", 6),
    "zhao_dailydialog": ("dailydialog-zhao", 9),
    "zhang_usr_topical": ("topical-usr", 6),
    "zhang_usr_persona": ("persona-usr", 5),
    "zhang_fed_turn": ("fed-turn", 1),
}
SPEAKERS = {"User": "user", "Chatbot": "system", "human": "user", "model": "system",
            "human_evaluator": "user"}  # fmt: skip


def turn_level(fetch, name: str) -> dict:
    """A set of responses with mean human ratings; `human_specificity` is new in this paper."""
    key, size = TURN_SETS[name]
    path = fetch(f"{FOLDER}turn_level_texts/{key}_text.txt")
    lines = _tabbed(path, 3)
    if len(lines) % size:
        raise DataError(f"has {len(lines)} lines, not {size} for each context", file=path)
    rows = [_turn_row(line, number, size, name) for number, line in enumerate(lines)]
    if name.startswith("zhao"):
        for number, row in enumerate(rows):
            truth = rows[number - number % size]["response"]
            row["reference"] = [truth] if number % size else []
    turns = join(turn_table(rows), _mean_ratings(fetch, key, len(rows)))
    account = Account()
    account.read("responses", len(rows))
    account.note("responses", "only mean ratings are published")
    report = account.table({"responses": len(turns)})
    return {"turns": turns, "ratings": no_ratings(), "report": report}


def _tabbed(path, least: int) -> list[list[str]]:
    """Lines of tab-separated cells: an id, then texts."""
    lines = [line.split("\t") for line in read_lines(path)]
    for number, cells in enumerate(lines, start=1):
        if len(cells) < least:
            raise DataError(
                f"has {len(cells)} cells, at least {least} expected", file=path, row=number
            )
        for cell in cells:
            text_cell(cell, file=path, row=number, column="text")
    if not lines:
        raise DataError("is empty", file=path)
    return lines


def _turn_row(cells: list[str], number: int, size: int, name: str) -> dict:
    texts = [cell.strip() for cell in cells[1:]]
    system = f"position_{number % size}" if size > 1 else "unknown"
    dialog = f"{name}-{number // size:03d}"
    return {"system": system, "dialog": dialog, "turn": len(texts) - 1,
            "context": texts[:-1], "response": texts[-1]}  # fmt: skip


def _mean_ratings(fetch, key: str, count: int) -> pd.DataFrame:
    """`human_*` columns from the rating files, which hold more sets in the upstream form."""
    columns = {}
    for dimension in RATINGS:
        path = fetch(f"{FOLDER}turn_level_ratings_subset/turn_{dimension}_ratings.subset.json")
        values = records.get(read_json(path), key, list, file=path, row=None)
        if len(values) != count:
            raise DataError(f"has {len(values)} ratings for {count} texts", file=path, column=key)
        columns[f"human_{dimension}"] = [
            rating_cell(value, file=path, row=row, column=key, scale=(0, 5))
            for row, value in enumerate(values, start=1)
        ]
    return pd.DataFrame(columns, dtype="float64")


def gpt4_fed(fetch) -> dict:
    """GPT-4's ratings of the 125 FED dialogs, with the five annotators' own ratings."""
    path = fetch(f"{FOLDER}dialog_level_texts/fed_human_annotations.json")
    account = Account()
    ratings, rows = Ratings(account, path), []
    for number, item in enumerate(records.json_list(path), start=1):
        place = {"file": path, "row": number}
        system = records.get(item, "model", str, **place)
        spoken = records.objects(item, "dialog", **place)
        texts = [records.get(one, "text", str, **place).strip() for one in spoken]
        voices = [_speaker(records.get(one, "speaker", str, **place), place) for one in spoken]
        rows.append({"system": system, "agent": system, "dialog": f"fed-{number - 1:03d}",
                     "utterances": texts, "speakers": voices})  # fmt: skip
        annotations = records.get(item, "annotations", dict, **place)
        for dimension, scale in fed.DIALOG_SCALES.items():
            values = records.get(annotations, dimension, list, **place)
            names = fed.ANNOTATORS[: len(values)]
            ratings.add_list(number - 1, names, fed.snake(dimension), values, scale)
    account.read("dialogs", len(rows))
    scores = _runs(fetch(f"{FOLDER}dialog_level_texts/fed_gpt4_annotations.json"), len(rows))
    dialogs = join(pd.DataFrame(rows), ratings.means(len(rows)), scores)
    report = account.table({"ratings": len(ratings), "dialogs": len(dialogs)})
    return {"dialogs": dialogs, "ratings": ratings.table(), "report": report}


def gpt4_reliable(fetch) -> dict:
    """GPT-4's ratings of 500 of the 2925 chats of Ji et al., joined to their agents and ratings."""
    path = fetch(f"{FOLDER}dialog_level_texts/reliable-dial_text.txt")
    texts = [_spoken(cells[1:], {"file": path, "row": row})[0]
             for row, cells in enumerate(_tabbed(path, 2), start=1)]  # fmt: skip
    source = ji2022.dialogs(fetch)
    known = {_key(said): row for row, said in enumerate(source["dialogs"]["utterances"])}
    missing = [number for number, said in enumerate(texts) if _key(said) not in known]
    if missing:
        raise DataError("is not among the chats of Ji et al.", file=path, row=missing[0] + 1)
    order = [known[_key(said)] for said in texts]
    dialogs = source["dialogs"].iloc[order].reset_index(drop=True)
    place = {row: position for position, row in enumerate(order)}
    ratings = source["ratings"][source["ratings"]["item"].isin(place)]
    ratings = ratings.assign(item=ratings["item"].map(place)).reset_index(drop=True)
    scores = _runs(fetch(f"{FOLDER}dialog_level_texts/reliable_gpt4_annotations.json"), len(texts))
    dialogs = join(dialogs, scores)
    return {"dialogs": dialogs, "ratings": ratings, "report": _dialog_report(dialogs)}


def gpt4_see(fetch) -> dict:
    """GPT-4's ratings of 500 of the 3316 chats of See et al. (2019); neither system nor human
    ratings are published with them."""
    path = fetch(f"{FOLDER}dialog_level_texts/persona-see_text.txt")
    rows = []
    for number, cells in enumerate(_tabbed(path, 2), start=1):
        texts, voices = _spoken(cells[1:], {"file": path, "row": number})
        rows.append({"system": "unknown", "agent": "unknown", "dialog": f"see-{number - 1:04d}",
                     "utterances": texts, "speakers": voices})  # fmt: skip
    scores = _runs(fetch(f"{FOLDER}dialog_level_texts/see_gpt4_annotations.json"), len(rows))
    dialogs = join(pd.DataFrame(rows), scores)
    return {"dialogs": dialogs, "ratings": no_ratings(), "report": _dialog_report(dialogs)}


def _dialog_report(dialogs: pd.DataFrame) -> pd.DataFrame:
    account = Account()
    account.read("dialogs", len(dialogs))
    rated = int(dialogs["score_gpt4_overall_run1"].notna().sum())
    account.note("dialogs", f"GPT-4 rated {rated}; its scores of the others are NaN")
    return account.table({"dialogs": len(dialogs)})


def _key(utterances: list[str]) -> str:
    return "\t".join(" ".join(text.split()) for text in utterances)


def _speaker(name: str, place: dict) -> str:
    if name not in SPEAKERS:
        raise DataError(f"{name!r:.40} is not a known speaker", **place, column="speaker")
    return SPEAKERS[name]


def _spoken(cells: list[str], place: dict) -> tuple[list[str], list[str]]:
    pairs = [cell.partition(":") for cell in cells]
    return [p[2].strip() for p in pairs], [_speaker(p[0].strip(), place) for p in pairs]


def _runs(path, count: int) -> pd.DataFrame:
    """Five runs in five dimensions; `indices` says which dialogs were rated, else all in order."""
    data = read_json(path)
    width = None if isinstance(data, dict) and "indices" in data else count
    index = (
        records.get(data, "indices", list, file=path, row=None) if width is None else range(count)
    )
    if len(set(map(str, index))) != len(index) or any(
        isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < count for i in index
    ):
        raise DataError(
            f"does not point at {count} dialogs one by one", file=path, column="indices"
        )
    columns = {}
    for short, dimension in JUDGED.items():
        for run in range(1, 6):
            values = records.get(data, f"{short}_{run}", list, file=path, row=None)
            if len(values) != len(index):
                raise DataError(f"has {len(values)} scores for {len(index)} dialogs", file=path)
            numbers = [rating_cell(v, file=path, row=row, column=f"{short}_{run}", scale=(1, 5))
                       for row, v in enumerate(values, start=1)]  # fmt: skip
            columns[f"score_gpt4_{dimension}_run{run}"] = pd.Series(numbers, index=list(index))
    return pd.DataFrame(columns).reindex(range(count)).astype("float64")
