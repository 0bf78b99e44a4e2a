"""Predictive Engagement (Ghazarian et al. 2020): BETTER (297) and PredEng-600.

The texts are tokenised. Cells hold newlines inside quotes, and a reply may be empty: both are kept.
"""

import re

import pandas as pd

from lib.data.corpora.tables import Account, Ratings, join
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import rating_cell, read_lines, read_table, text_cell
from lib.data.dialogues.table import turn_table

TAGGED = re.compile(r"<(sp[12])>(.*?)</\1>")

METRICS = {
    "Ruber_Unref_Score": "score_ruber_unref",
    "CTX_Unref_Score": "score_ctx_unref",
    "Eng_Score_MeanPooling": "score_pred_en_mean",
    "Eng_Score_MaxPooling": "score_pred_en_max",
}


def better(fetch) -> dict:
    """BETTER: query and reply from the ConvAI challenge, engaging (1) or not (0).

    The systems are not named. An empty reply stays an empty response.
    """
    path = fetch("predictive_engagement/humanAMT_engscores_utt.csv")
    account = Account()
    ratings, rows = Ratings(account, path), []
    for number, cells in enumerate(read_table(path, columns=["id", "query", "reply", "label"]), 1):
        place = {"file": path, "row": number}
        query = text_cell(cells["query"], **place, column="query").strip()
        response = text_cell(cells["reply"], **place, column="reply").strip()
        rows.append({"system": "convai", "dialog": f"better-{cells['id']}", "turn": 1,
                     "context": [query], "response": response})  # fmt: skip
        ratings.add(number - 1, "published label", "engaging", cells["label"], (0, 1))
    _some(rows, path)
    account.read("responses", len(rows))
    empty = sum(not row["response"] for row in rows)
    account.note("responses", f"{empty} are empty and kept" if empty else "")
    report = account.table({"ratings": len(ratings), "responses": len(rows)})
    turns = join(turn_table(rows), ratings.means(len(rows)))
    return {"turns": turns, "ratings": ratings.table(), "report": report}


def predeng600(fetch) -> dict:
    """PredEng-600: 300 DailyDialog queries, each with a generated and a human reply, 3 ratings.

    The file has one rating per row: 900 of generated replies, then 900 of the human ones. Query i
    of both halves is the same, so the human reply is the reference of the generated one.
    """
    path = fetch("predictive_engagement/Eng_Scores_queries_gen_gtruth_replies.csv")
    cells = read_table(path, columns=["query", "response", "human_score", *METRICS])
    _some(cells, path)
    if len(cells) % 6:
        raise DataError(
            f"has {len(cells)} rows, not 3 ratings of each reply in two halves", file=path
        )
    account = Account()
    ratings = Ratings(account, path)
    half = len(cells) // 2
    generated = _half(cells[:half], 0, "generated", path, ratings, 0)
    human = _half(cells[half:], half, "ground_truth", path, ratings, len(generated))
    if len(generated) != len(human):
        raise DataError(f"has {len(generated)} generated and {len(human)} human replies", file=path)
    for number, (reply, truth) in enumerate(zip(generated, human, strict=True)):
        if reply["context"] != truth["context"]:
            raise DataError("the halves hold different queries", file=path, row=number + 1)
        reply["dialog"] = truth["dialog"] = f"predeng-{number:03d}"
        reply["reference"] = [truth["response"]]
    rows = generated + human
    account.read("responses", len(rows))
    report = account.table({"ratings": len(ratings), "responses": len(rows)})
    turns = join(turn_table(rows), ratings.means(len(rows)))
    return {"turns": turns, "ratings": ratings.table(), "report": report}


def _half(cells, offset: int, system: str, path, ratings: Ratings, first: int) -> list[dict]:
    """The distinct (query, response) pairs of one half, in order of appearance."""
    rows: dict[tuple[str, str], dict] = {}
    count: dict[tuple[str, str], int] = {}
    position: dict[tuple[str, str], int] = {}
    for number, cell in enumerate(cells, start=offset + 1):
        place = {"file": path, "row": number}
        query, response = (
            text_cell(cell[name], **place, column=name).strip() for name in ("query", "response")
        )
        scores = {new: rating_cell(cell[old].strip(), **place, column=old, scale=None)
                  for old, new in METRICS.items()}  # fmt: skip
        row = {"system": system, "dialog": "", "turn": 1, "context": [query], "response": response}
        position.setdefault((query, response), first + len(position))
        known = rows.setdefault((query, response), {**row, **scores})
        if any(known[name] != value for name, value in scores.items()):
            raise DataError("gives one reply two metric scores", **place)
        count[query, response] = count.get((query, response), 0) + 1
        annotator = f"annotator{count[query, response]}"
        item = position[query, response]
        ratings.add(item, annotator, "engaging", cell["human_score"], (1, 5))
    wrong = [pair for pair, times in count.items() if times != 3]
    if wrong:
        raise DataError(
            f"rates the reply {wrong[0][1]!r:.40} {count[wrong[0]]} times, not 3", file=path
        )
    return list(rows.values())


def convai50(fetch) -> dict:
    """50 whole conversations of the ConvAI challenge with three engagement ratings (0-5) each.

    One speaker is the bot and the other a person; the file does not say which, so `speakers` are
    "sp1" and "sp2" as tagged.
    """
    path = fetch("predictive_engagement/50convs_AMT.txt")
    account = Account()
    ratings, rows = Ratings(account, path), []
    for number, line in enumerate(read_lines(path), start=1):
        place = {"file": path, "row": number}
        cells = line.split("\t")
        if len(cells) != 6:
            raise DataError(f"has {len(cells)} cells, not 6", **place)
        spoken = TAGGED.findall(text_cell(cells[5], **place, column="transcript"))
        if len(spoken) != int(cells[1] if cells[1].isdigit() else -1):
            raise DataError(f"has {len(spoken)} utterances, announces {cells[1]}", **place)
        rows.append({"system": "convai", "agent": "convai", "dialog": f"convai-{cells[0]}",
                     "utterances": [said.strip() for _, said in spoken],
                     "speakers": [who for who, _ in spoken]})  # fmt: skip
        names = ["annotator1", "annotator2", "annotator3"]
        ratings.add_list(number - 1, names, "engaging", cells[2:5], (0, 5))
    _some(rows, path)
    account.read("dialogs", len(rows))
    report = account.table({"ratings": len(ratings), "dialogs": len(rows)})
    dialogs = join(pd.DataFrame(rows), ratings.means(len(rows)))
    return {"dialogs": dialogs, "ratings": ratings.table(), "report": report}


def _some(rows: list, path) -> None:
    if not rows:
        raise DataError("has no rows", file=path, fix="fetch the file again")
