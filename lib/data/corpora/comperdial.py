"""ComperDial (Wakaki et al. 2024): replies of 99 systems to 15 persona-grounded dialogs.

Given out on request. The dialog file is as public code reads it; the columns of the annotation
files are not public, so the loader takes a column map and checks what it finds.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lib.data.corpora import records
from lib.data.corpora.requested import SCALE, read_mapped, turn_number
from lib.data.corpora.tables import Account, Ratings, join
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import text_cell
from lib.data.dialogues.table import turn_table

TURNS = ["dialog_id", "turn", "system", "response", "reference", "annotator", "rating"]
DIALOGS = ["dialog_id", "system", "annotator", "rating"]


def load(folder: Path, columns: Mapping[str, Mapping[str, str]] | None = None) -> dict:
    """`turn_annotations.csv`: one row per judgement of a reply; `turn` counts B's replies from 0.

    The context of reply k is the first 2k + 1 utterances of the dialog, `fact` the persona of B.
    In `dialogs`, a system's utterances are A's lines of the dialog with the system's own replies.
    """
    columns, account = columns or {}, Account()
    talk = _talk(folder / "ComperDial_data.json")
    rows, by_turn = _turns(folder / "turn_annotations.csv", columns, talk, account)
    turns = join(turn_table(rows), by_turn.means(len(rows)))
    dialogs, by_dialog = _dialogs(folder / "dialogue_annotations.csv", columns, turns, account)
    kept = {"turn ratings": len(by_turn), "dialog ratings": len(by_dialog)}
    return {
        "turns": turns,
        "dialogs": join(dialogs, by_dialog.means(len(dialogs))),
        "ratings": by_turn.table(),
        "dialog_ratings": by_dialog.table(),
        "report": account.table(kept),
    }


def _talk(path: Path) -> dict[str, dict]:
    """Dialogs by id: utterances and B's persona. Without ids, the position counts from 0."""
    talk = {}
    for number, item in enumerate(records.json_list(path)):
        place = {"file": path, "row": number + 1}
        name = records.get(item, "dialog_id", str, **place) if "dialog_id" in item else str(number)
        personas = records.get(item, "persona", dict, **place)
        said = records.objects(item, "dialogue", **place)
        voices = [records.get(one, "persona_id", str, **place) for one in said]
        if voices != ["A", "B"] * (len(said) // 2):
            raise DataError("A and B do not take turns", **place, column="dialogue")
        if name in talk:
            raise DataError(f"repeats the dialog {name!r}", **place, column="dialog_id")
        texts = [records.get(one, "text", str, **place) for one in said]
        talk[name] = {"texts": texts, "fact": records.texts(personas, "B", **place)}
    return talk


def _turns(path: Path, columns, talk: dict, account: Account) -> tuple[list[dict], Ratings]:
    rows: list[dict] = []
    ratings = Ratings(account, path, "turn ratings")
    position: dict[tuple, int] = {}
    seen: dict[tuple, int] = {}
    for number, cells in enumerate(read_mapped(path, TURNS, columns), start=1):
        place = {"file": path, "row": number}
        row = _turn(cells, talk, place)
        key = (row["system"], row["dialog"], row["turn"])
        item = position.setdefault(key, len(rows))
        if item == len(rows):
            rows.append(row)
        if row["response"] != rows[item]["response"]:
            raise DataError("this reply has two texts", **place, column="response")
        judge(ratings, item, cells, seen, place)
    return rows, ratings


def _turn(cells: dict, talk: dict, place: dict) -> dict:
    name = cells["dialog_id"]
    if name not in talk:
        raise DataError(f"{name!r:.40} is not in the dialog file", **place, column="dialog_id")
    earlier = 2 * turn_number(cells["turn"], place) + 1
    if earlier >= len(talk[name]["texts"]) + 1:
        raise DataError("is beyond the end of the dialog", **place, column="turn")
    reference = text_cell(cells["reference"], **place, column="reference")
    return {
        "system": text_cell(cells["system"], **place, column="system", empty=False),
        "dialog": name,
        "turn": earlier,
        "context": talk[name]["texts"][:earlier],
        "response": text_cell(cells["response"], **place, column="response"),
        "reference": [reference] if reference.strip() else [],
        "fact": talk[name]["fact"],
    }


def judge(ratings: Ratings, item: int, cells: dict, seen: dict, place: dict) -> None:
    """Add one judgement of overall quality; an annotator judges an item once."""
    annotator = text_cell(cells["annotator"], **place, column="annotator", empty=False)
    if (item, annotator) in seen:
        raise DataError(
            f"repeats the judgement of row {seen[item, annotator]}", **place, column="annotator"
        )
    seen[item, annotator] = place["row"]
    ratings.add(item, annotator, "overall", cells["rating"], SCALE, row=place["row"])


def _dialogs(path: Path, columns, turns: pd.DataFrame, account: Account):
    table = _spoken(turns)
    position = {
        key: row for row, key in enumerate(zip(table["system"], table["dialog"], strict=True))
    }
    ratings, seen = Ratings(account, path, "dialog ratings"), {}
    for number, cells in enumerate(read_mapped(path, DIALOGS, columns), start=1):
        place = {"file": path, "row": number}
        key = (cells["system"], cells["dialog_id"])
        if key not in position:
            raise DataError(f"{key[0]!r:.40} has no turns of dialog {key[1]!r:.40}", **place)
        judge(ratings, position[key], cells, seen, place)
    return table, ratings


def _spoken(turns: pd.DataFrame) -> pd.DataFrame:
    """One row per system and dialog: A's lines, each followed by the system's reply."""
    rows = []
    for (system, dialog), group in turns.groupby(["system", "dialog"], sort=False):
        group = group.sort_values("turn")
        said = [text for before, reply in zip(group["context"], group["response"], strict=True)
                for text in (before[-1], reply)]  # fmt: skip
        rows.append({"system": system, "agent": system, "dialog": dialog, "utterances": said,
                     "speakers": ["user", "system"] * len(group)})  # fmt: skip
    return pd.DataFrame(rows, columns=["system", "agent", "dialog", "utterances", "speakers"])
