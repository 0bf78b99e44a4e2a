"""TBD-Q1-2023 (the human-centered metrics paper) and ComperDial, which are given out on request.

Their files are the user's, so each fault is named with file, row and column. The layouts are those
of `data/README.md`; columns can be mapped, because the files themselves may name them otherwise.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.data.corpus import account, mean_ratings, single_ratings, snake
from lib.data.errors import DataError
from lib.data.turn_table import turn_table

REPLIES = ["dialog_id", "turn", "system", "response", "reference"]
Columns = Mapping[str, Mapping[str, str]] | None


def user_table(file: Path, needed: list[str], columns: Columns) -> pd.DataFrame:
    """Read a CSV file as text under our column names; `columns[file]` maps ours to the file's."""
    theirs = {name: name for name in needed} | dict((columns or {}).get(file.name, {}))
    try:
        with open(file, encoding="utf-8-sig", newline="") as handle:
            header, *rows = [cells for cells in csv.reader(handle, strict=True) if cells]
        header = [name.strip() for name in header]
    except (csv.Error, ValueError, OSError) as error:  # quotes, another encoding, an empty file
        fix = "save it as CSV in UTF-8, with a header"
        raise DataError(f"cannot be read ({error})", file=file, fix=fix) from error
    for number, cells in enumerate(rows, start=1):
        if len(cells) != len(header):
            problem = f"has {len(cells)} cells, the header has {len(header)}"
            raise DataError(problem, file=file, row=number, fix="check the quotes of that row")
    for ours, name in theirs.items():
        if header.count(name) != 1 or ours not in needed:
            fix = f"map {', '.join(needed)} with columns=; the file has {', '.join(header)}"
            raise DataError("there is no such column, or two", file=file, column=name, fix=fix)
    table = pd.DataFrame(rows, columns=header, dtype="str")
    return table[[theirs[name] for name in needed]].set_axis(needed, axis=1)


def refuse(table: pd.DataFrame, column: str, wrong: Any, problem: str, file: Path) -> None:
    """Raise a `DataError` at the first row where `wrong`, showing the cell."""
    if np.any(wrong):
        row = int(np.argmax(wrong))
        problem = f"{table[column].iloc[row]!r:.40}: {problem}"
        raise DataError(problem, file=file, row=row + 1, column=column, fix="correct that row")


def refuse_empty(table: pd.DataFrame, names: list[str], file: Path) -> None:
    """Raise a `DataError` at the first row that shows nothing in one of some columns."""
    for name in names:
        refuse(table, name, table[name].str.strip() == "", "is empty", file)


def three_bots(folder: Path, columns: Columns = None, scale: Sequence[float] = (1, 5)) -> dict:
    """Read the layout in which we expect TBD-Q1-2023: one row per utterance, ratings apart.

    `turns.csv`, `turn_ratings.csv`, `dialog_ratings.csv`, and if there, `references.csv` (dialog,
    turn, reference) and `dialogs.csv` (dialog, user: who talked to the bot, added to both tables).
    The turn table holds the system's utterances; the user's are their context.

    Args:
        folder: where the files are.
        columns: such as {"turns.csv": {"text": "utterance"}}.
        scale: lowest and highest rating.
    """
    said = _utterances(folder / "turns.csv", columns)
    talk = said.groupby("dialog", sort=False)
    dialogs = talk.agg(system=("system", "first"), agent=("agent", "first"),
                       utterances=("text", list), speakers=("speaker", list))  # fmt: skip
    replies = said[said["speaker"] == "system"]
    references = _references(folder / "references.csv", columns, replies)
    turns = turn_table([
        {"system": row.system, "agent": row.agent, "dialog": row.dialog, "turn": int(row.turn),
         "context": dialogs.at[row.dialog, "utterances"][: int(row.turn)], "response": row.text,
         "reference": references.get((row.dialog, row.turn), [])}
        for row in replies.itertuples()
    ])  # fmt: skip
    dialogs = dialogs.reset_index()[["system", "agent", "dialog", "utterances", "speakers"]]
    if (folder / "dialogs.csv").is_file():
        users = user_table(folder / "dialogs.csv", ["dialog", "user"], columns)
        if missing := set(dialogs["dialog"]) - set(users["dialog"]):
            problem = f"has no row for dialog {min(missing)!r}"
            raise DataError(problem, file=folder / "dialogs.csv", column="dialog")
        users = users.set_index("dialog")["user"].to_dict()
        turns["user"], dialogs["user"] = turns["dialog"].map(users), dialogs["dialog"].map(users)
    keys = replies[["dialog", "turn"]], dialogs[["dialog"]]
    files = folder / "turn_ratings.csv", folder / "dialog_ratings.csv"
    judged = [_judgements(file, key, columns, scale) for file, key in zip(files, keys, strict=True)]
    users = {"are the user's: they are context, not responses": len(said) - len(replies)}
    return _both_levels([turns, dialogs], judged, [account("utterances", len(turns), users)])


def _utterances(file: Path, columns: Columns) -> pd.DataFrame:
    said = user_table(file, ["system", "agent", "dialog", "turn", "speaker", "text"], columns)
    if said.empty:
        raise DataError("has no rows", file=file)
    refuse_empty(said, ["system", "agent", "dialog"], file)
    refuse(said, "speaker", ~said["speaker"].isin(["user", "system"]), "not user or system", file)
    talk = said.groupby("dialog", sort=False)
    for name in ("system", "agent"):
        refuse(
            said, name, said[name] != talk[name].transform("first"), "a second in a dialog", file
        )
    wrong = said["turn"] != talk.cumcount().astype(str)
    refuse(said, "turn", wrong, "the turns of a dialog must count 0, 1, 2, ..., in order", file)
    return said


def _references(file: Path, columns: Columns, replies: pd.DataFrame) -> dict:
    if not file.is_file():
        return {}
    table, key = user_table(file, ["dialog", "turn", "reference"], columns), ["dialog", "turn"]
    refuse_empty(table, ["reference"], file)
    known = pd.MultiIndex.from_frame(table[key]).isin(pd.MultiIndex.from_frame(replies[key]))
    refuse(table, "turn", ~known, "the system said nothing at this turn of the dialog", file)
    return table.groupby(key)["reference"].agg(list).to_dict()


def _judgements(
    file: Path, items: pd.DataFrame, columns: Columns, scale: Sequence[float], dimension: str = ""
) -> tuple:
    """Read and check the single judgements of `items`, as `single_ratings` returns them."""
    key, fixed = list(items), {"dimension": dimension} if dimension else {}
    needed = [*key, "dimension", "annotator", "rating"]
    judged = user_table(file, [name for name in needed if name not in fixed], columns).assign(
        **fixed
    )
    refuse_empty(judged, ["annotator", "dimension"], file)
    place = {name: row for row, name in enumerate(items.itertuples(index=False, name=None))}
    judged["item"] = [
        place.get(name, -1) for name in judged[key].itertuples(index=False, name=None)
    ]
    refuse(judged, key[-1], judged["item"] < 0, f"no rated item has this {', '.join(key)}", file)
    judged["dimension"] = judged["dimension"].map(snake)
    again = judged.duplicated(["item", "annotator", "dimension"])
    refuse(judged, "annotator", again, "judges this item a second time", file)
    given = judged["rating"].str.strip().str.upper()
    given = given.where(~given.str.startswith("N/A"), "")
    number = pd.to_numeric(given, errors="coerce")
    limits = f"not a number from {scale[0]:g} to {scale[1]:g}, with a point for decimals"
    refuse(judged, "rating", (given != "") & ~number.between(*scale), limits, file)
    order = ["item", "annotator", "dimension", "rating"]
    return single_ratings(judged[order].itertuples(index=False, name=None))


def _both_levels(tables: list[pd.DataFrame], judged: list[tuple], report: list[dict]) -> dict:
    rated = []
    for table, unit, (ratings, why, seen) in zip(tables, ["turn", "dialog"], judged, strict=True):
        rated.append(pd.concat([table, mean_ratings(ratings, len(table), seen)], axis=1))
        report.append(account(f"{unit} ratings", len(ratings), why))
    return {"turns": rated[0], "dialogs": rated[1], "ratings": judged[0][0],
            "dialog_ratings": judged[1][0], "report": pd.DataFrame(report)}  # fmt: skip


def comperdial(folder: Path, columns: Columns = None) -> dict:
    """Read ComperDial (Wakaki et al. 2024): replies of 99 systems to 15 persona-grounded dialogs.

    `turn_annotations.csv` has one row per judgement of a reply, on 1-5; `turn` counts B's replies
    from 0. The context of reply k is the first 2k + 1 utterances of the dialog, `fact` the persona
    of B. In `dialogs`, a system's utterances are A's lines with the system's own replies.

    Args:
        folder: where the files are.
        columns: such as {"turn_annotations.csv": {"system": "model"}}.
    """
    talk = _persona_dialogs(folder / "ComperDial_data.json")
    file = folder / "turn_annotations.csv"
    replies = _replies(file, columns, talk)
    turns = turn_table([
        {"system": row.system, "dialog": row.dialog_id, "turn": 2 * int(row.turn) + 1,
         "context": talk[row.dialog_id]["texts"][: 2 * int(row.turn) + 1], "response": row.response,
         "reference": [row.reference] if row.reference.strip() else [],
         "fact": talk[row.dialog_id]["fact"]}
        for row in replies.itertuples()
    ])  # fmt: skip
    dialogs, key = _spoken(turns), ["system", "dialog_id"]
    keys = replies[[*key, "turn"]], dialogs[["system", "dialog"]].set_axis(key, axis=1)
    files = file, folder / "dialogue_annotations.csv"
    judged = [_judgements(file, one, columns, (1, 5), "overall")
              for file, one in zip(files, keys, strict=True)]  # fmt: skip
    return _both_levels([turns, dialogs], judged, [])


def _persona_dialogs(file: Path) -> dict[str, dict[str, list[str]]]:
    """Read utterances and B's persona by dialog; without ids, the position counts from 0."""
    talk: dict[str, dict[str, list[str]]] = {}
    try:
        for number, item in enumerate(json.loads(file.read_bytes())):
            name, said = str(item.get("dialog_id", number)), item["dialogue"]
            if name in talk or [one["persona_id"] for one in said] != ["A", "B"] * (len(said) // 2):
                raise ValueError(f"{name!r} is there twice, or A and B do not take turns")
            talk[name] = {"texts": [one["text"] for one in said], "fact": [*item["persona"]["B"]]}
            "".join(text for texts in talk[name].values() for text in texts)  # or a TypeError
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        problem = f"is not a dialog in the layout of data/README.md ({error!r})"
        raise DataError(problem, file=file, row=len(talk) + 1) from error
    return talk


def _replies(file: Path, columns: Columns, talk: dict) -> pd.DataFrame:
    """Read the replies, once each; `turn` must point into the dialog."""
    table = user_table(file, REPLIES, columns)
    refuse_empty(table, ["system"], file)
    refuse(table, "dialog_id", ~table["dialog_id"].isin(talk), "not in the dialog file", file)
    turns = {(name, str(k)) for name, one in talk.items() for k in range(len(one["texts"]) // 2)}
    wrong = [key not in turns for key in zip(table["dialog_id"], table["turn"], strict=True)]
    refuse(table, "turn", wrong, "not the number of one of B's replies, counted from 0", file)
    reply = table.groupby(["system", "dialog_id", "turn"], sort=False)
    two = table["response"] != reply["response"].transform("first")
    refuse(table, "response", two, "this reply has two texts", file)
    return table[reply.cumcount() == 0]


def _spoken(turns: pd.DataFrame) -> pd.DataFrame:
    """Put one row together per system and dialog: A's lines, each followed by the reply."""
    rows = []
    for (system, dialog), group in turns.groupby(["system", "dialog"], sort=False):
        group = group.sort_values("turn")
        pairs = zip(group["context"], group["response"], strict=True)
        said = [text for before, reply in pairs for text in (before[-1], reply)]
        rows.append({"system": system, "agent": system, "dialog": dialog, "utterances": said,
                     "speakers": ["user", "system"] * len(group)})  # fmt: skip
    return pd.DataFrame(rows)


REQUESTED = {"tbd_q1": three_bots, "comperdial": comperdial}
