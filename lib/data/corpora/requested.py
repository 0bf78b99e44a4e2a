"""Corpora that must be asked for, and our sample corpora, which have the same layout.

TBD-Q1-2023 (the human-centered metrics paper) and ComperDial are given out on request. Their
loaders read the layouts described in `data/README.md`; the columns can be mapped, because the
files themselves may name them otherwise.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lib.data.corpora.tables import Account, Ratings, join, snake
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import read_table, text_cell
from lib.data.dialogues.table import turn_table

TURNS = ["system", "agent", "dialog", "turn", "speaker", "text"]
TURN_RATINGS = ["dialog", "turn", "annotator", "dimension", "rating"]
DIALOG_RATINGS = ["dialog", "annotator", "dimension", "rating"]
SCALE = (1, 5)


def read_mapped(path: Path, needed: list[str], columns: Mapping[str, Mapping[str, str]]):
    """Rows of a CSV under our column names; `columns[file name]` maps ours to the file's."""
    mine = columns.get(path.name, {})
    for name in mine:
        if name not in needed:
            raise DataError(
                f"{name!r} is no column of ours", file=path, fix=f"map {', '.join(needed)}"
            )
    theirs = {name: mine.get(name, name) for name in needed}
    rows = read_table(path, columns=list(theirs.values()))
    return [{name: row[their] for name, their in theirs.items()} for row in rows]


def turn_number(cell: str, place: dict) -> int:
    """A cell that counts utterances from 0."""
    if not (cell.isascii() and cell.isdigit() and len(cell) < 10):
        raise DataError(f"is {cell!r:.40}, not a count from 0", **place, column="turn")
    return int(cell)


def three_bots(
    folder: Path,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    scale: tuple[float, float] = SCALE,
) -> dict:
    """The layout in which we expect TBD-Q1-2023: one row per utterance, ratings apart.

    `turns.csv`, `turn_ratings.csv`, `dialog_ratings.csv`, and if there, `references.csv` (dialog,
    turn, reference) and `dialogs.csv` (dialog, user: who talked to the bot, added to both tables).
    `columns={"turns.csv": {"text": "utterance"}}` maps names; `scale` is that of all ratings. The
    turn table holds the system's utterances; the user's are their context.
    """
    columns, account = columns or {}, Account()
    talk = _talk(folder / "turns.csv", columns, account)
    rows, position = _responses(talk, _references(folder / "references.csv", columns))
    dialogs = pd.DataFrame([{"dialog": name, **said} for name, said in talk.items()])
    dialogs = dialogs[["system", "agent", "dialog", "utterances", "speakers"]]
    order = {(name,): row for row, name in enumerate(dialogs["dialog"])}
    by_turn = _rate(folder / "turn_ratings.csv", TURN_RATINGS, columns, position, account, scale)
    by_dialog = _rate(folder / "dialog_ratings.csv", DIALOG_RATINGS, columns, order, account, scale)
    users = _users(folder / "dialogs.csv", columns, talk)
    turns = turn_table(rows)
    for table in (turns, dialogs):
        if users:
            table["user"] = table["dialog"].map(users)
    kept = {"utterances": len(rows), "turn ratings": len(by_turn), "dialog ratings": len(by_dialog)}
    return {
        "turns": join(turns, by_turn.means(len(rows))),
        "dialogs": join(dialogs, by_dialog.means(len(dialogs))),
        "ratings": by_turn.table(),
        "dialog_ratings": by_dialog.table(),
        "report": account.table(kept),
    }


def _talk(path: Path, columns, account: Account) -> dict[str, dict]:
    """Dialogs by name, their utterances in order of `turn`, which must count 0, 1, 2, ..."""
    talk: dict[str, dict] = {}
    for number, row in enumerate(read_mapped(path, TURNS, columns), start=1):
        place = {"file": path, "row": number}
        for name in ("system", "agent", "dialog", "text"):
            text_cell(row[name], **place, column=name, empty=name == "text")
        if row["speaker"] not in ("user", "system"):
            raise DataError(
                f"is {row['speaker']!r:.40}, not user or system", **place, column="speaker"
            )
        new = {"system": row["system"], "agent": row["agent"], "utterances": [], "speakers": []}
        said = talk.setdefault(row["dialog"], new)
        if (said["system"], said["agent"]) != (row["system"], row["agent"]):
            raise DataError("this dialog has two agents", **place, column="agent")
        expected = len(said["utterances"])
        if turn_number(row["turn"], place) != expected:
            raise DataError(f"is {row['turn']}, expected {expected}", **place, column="turn",
                            fix="number the utterances of a dialog from 0, in order")  # fmt: skip
        said["utterances"].append(row["text"])
        said["speakers"].append(row["speaker"])
        account.read("utterances")
        if row["speaker"] == "user":
            account.set_aside("utterances", "are the user's: they are context, not responses")
    if not talk:
        raise DataError("has no rows", file=path)
    return talk


def _responses(talk: dict, references: dict) -> tuple[list[dict], dict]:
    rows, position = [], {}
    for dialog, said in talk.items():
        for turn, speaker in enumerate(said["speakers"]):
            if speaker == "system":
                position[dialog, str(turn)] = len(rows)
                rows.append({"system": said["system"], "agent": said["agent"], "dialog": dialog,
                             "turn": turn, "context": said["utterances"][:turn],
                             "response": said["utterances"][turn],
                             "reference": references.pop((dialog, str(turn)), [])})  # fmt: skip
    if references:
        dialog, turn = next(iter(references))
        raise DataError(
            f"no response of the system at dialog {dialog!r}, turn {turn}", file="references.csv"
        )
    return rows, position


def _references(path: Path, columns) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    if path.is_file():
        for number, row in enumerate(
            read_mapped(path, ["dialog", "turn", "reference"], columns), 1
        ):
            place = {"file": path, "row": number}
            text = text_cell(row["reference"], **place, column="reference", empty=False)
            found.setdefault((row["dialog"], str(turn_number(row["turn"], place))), []).append(text)
    return found


def _users(path: Path, columns, talk: dict) -> dict[str, str]:
    if not path.is_file():
        return {}
    users = {row["dialog"]: row["user"] for row in read_mapped(path, ["dialog", "user"], columns)}
    for dialog in talk:
        if dialog not in users:
            raise DataError(f"has no row for dialog {dialog!r}", file=path, column="dialog")
    return users


def _rate(path: Path, needed: list[str], columns, position: dict, account, scale) -> Ratings:
    """Single judgements of the items in `position`; one annotator judges an item once."""
    ratings = Ratings(account, path, needed[1 if len(needed) == 5 else 0] + " ratings")
    seen: dict[tuple, int] = {}
    for number, row in enumerate(read_mapped(path, needed, columns), start=1):
        place = {"file": path, "row": number}
        key = tuple(row[name] for name in needed if name in ("dialog", "turn"))
        if key not in position:
            raise DataError(f"{' '.join(key)!r:.60} is not a rated item of turns.csv", **place)
        for name in ("annotator", "dimension"):
            text_cell(row[name], **place, column=name, empty=False)
        once = (*key, row["annotator"], snake(row["dimension"]))
        if once in seen:
            raise DataError(
                f"repeats the judgement of row {seen[once]}", **place, column="annotator"
            )
        seen[once] = number
        ratings.add(position[key], once[-2], once[-1], row["rating"], scale, row=number)
    return ratings
