"""TBD-Q1-2023 (the human-centered metrics paper) and ComperDial, which are given out on request.

Their files are the user's, so each fault is named with file, row and column. The layouts are those
of `data/README.md`; columns can be mapped, because the files themselves may name them otherwise.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.data.corpus import account, mean_ratings, single_ratings, snake
from lib.data.dialogues.errors import DataError, nearest
from lib.data.dialogues.table import turn_table

UTTERANCES = ["system", "agent", "dialog", "turn", "speaker", "text"]
REPLIES = ["dialog_id", "turn", "system", "response", "reference"]
JUDGEMENT = ["annotator", "rating"]
Columns = Mapping[str, Mapping[str, str]]


def user_table(path: Path, needed: list[str], columns: Columns | None) -> pd.DataFrame:
    """Read a CSV file as text under our column names; `columns[file]` maps ours to the file's."""
    mine = (columns or {}).get(path.name, {})
    if foreign := set(mine) - set(needed):
        fix = f"map {', '.join(needed)}"
        raise DataError(f"{foreign.pop()!r} is no column of ours", file=path, fix=fix)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (ValueError, OSError) as error:  # ParserError, UnicodeDecodeError, an empty file
        fix = "save it as CSV in UTF-8, with a header and as many cells in each row"
        raise DataError(f"cannot be read ({error})", file=path, fix=fix) from error
    if not isinstance(table.index, pd.RangeIndex):
        raise DataError("a row has more cells than the header", file=path, fix="check its quotes")
    for name in (mine.get(name, name) for name in needed):
        if name not in table:
            fix = nearest(name, table.columns) or "rename the column, or map it with columns="
            raise DataError("this column is missing", file=path, column=name, fix=fix)
        refuse(table, name, table[name].isna(), "has no cell here", path)
    return table[[mine.get(name, name) for name in needed]].set_axis(needed, axis=1)


def refuse(table, column: str, wrong, problem: str, file, fix: str = "") -> None:
    """Raise a `DataError` at the first row where `wrong`; "{}" in `problem` is its cell."""
    wrong = np.asarray(wrong, bool)
    if wrong.any():
        row = int(wrong.argmax())
        problem = problem.format(f"{table[column].iloc[row]!r:.40}")
        raise DataError(problem, file=file, row=row + 1, column=column, fix=fix)


def three_bots(folder: Path, columns: Columns | None = None, scale=(1, 5)) -> dict:
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
    dialogs = said.groupby("dialog", sort=False).agg(
        system=("system", "first"), agent=("agent", "first"),
        utterances=("text", list), speakers=("speaker", list),
    ).reset_index()  # fmt: skip
    dialogs = dialogs[["system", "agent", "dialog", "utterances", "speakers"]]
    replies = said[said["speaker"] == "system"]
    references = _references(folder / "references.csv", columns, replies)
    talk = dialogs.set_index("dialog")["utterances"]
    turns = turn_table([
        {"system": row.system, "agent": row.agent, "dialog": row.dialog, "turn": int(row.turn),
         "context": talk[row.dialog][: int(row.turn)], "response": row.text,
         "reference": references.get((row.dialog, row.turn), [])}
        for row in replies.itertuples()
    ])  # fmt: skip
    if (folder / "dialogs.csv").is_file():
        _add_users(folder / "dialogs.csv", columns, turns, dialogs)
    file, key = folder / "turn_ratings.csv", ["dialog", "turn"]
    judged = user_table(file, [*key, "dimension", *JUDGEMENT], columns)
    by_turn = _judged(file, judged, key, turns.assign(turn=turns["turn"].astype(str)), scale)
    file, key = folder / "dialog_ratings.csv", ["dialog"]
    judged = user_table(file, [*key, "dimension", *JUDGEMENT], columns)
    by_dialog = _judged(file, judged, key, dialogs, scale)
    users = {"are the user's: they are context, not responses": len(said) - len(replies)}
    return _both_levels(
        turns, by_turn, dialogs, by_dialog, account("utterances", len(turns), users)
    )


def _utterances(file: Path, columns: Columns | None) -> pd.DataFrame:
    said = user_table(file, UTTERANCES, columns)
    if said.empty:
        raise DataError("has no rows", file=file)
    for name in ("system", "agent", "dialog"):
        refuse(said, name, said[name].str.strip() == "", "is empty", file)
    known = said["speaker"].isin(["user", "system"])
    refuse(said, "speaker", ~known, "is {}, not user or system", file)
    talk = said.groupby("dialog", sort=False)
    agents = talk[["system", "agent"]].transform("first")
    two = (said[["system", "agent"]] != agents).any(axis=1)
    refuse(said, "agent", two, "this dialog has two agents", file)
    wrong = said["turn"] != talk.cumcount().astype(str)
    fix = "number the utterances of a dialog 0, 1, 2, ..., in order"
    refuse(said, "turn", wrong, "{} is not the next turn of its dialog", file, fix)
    return said


def _references(file: Path, columns: Columns | None, replies: pd.DataFrame) -> dict:
    if not file.is_file():
        return {}
    table = user_table(file, ["dialog", "turn", "reference"], columns)
    refuse(table, "reference", table["reference"].str.strip() == "", "is empty", file)
    keys = ["dialog", "turn"]
    known = pd.MultiIndex.from_frame(table[keys]).isin(pd.MultiIndex.from_frame(replies[keys]))
    refuse(table, "turn", ~known, "{} is no turn of the system in that dialog", file)
    return table.groupby(keys)["reference"].agg(list).to_dict()


def _add_users(file: Path, columns: Columns | None, *tables: pd.DataFrame) -> None:
    users = user_table(file, ["dialog", "user"], columns).set_index("dialog")["user"].to_dict()
    for table in tables:
        table["user"] = table["dialog"].map(users)
        if table["user"].isna().any():
            missing = table.loc[table["user"].isna(), "dialog"].iloc[0]
            raise DataError(f"has no row for dialog {missing!r}", file=file, column="dialog")


def _judged(file: Path, judged: pd.DataFrame, key: list[str], items: pd.DataFrame, scale) -> tuple:
    """Check single judgements of the rows of `items`; return what `single_ratings` returns."""
    place = {name: row for row, name in enumerate(items[key].itertuples(index=False, name=None))}
    item = pd.Series(
        [place.get(name, -1) for name in judged[key].itertuples(index=False, name=None)]
    )
    refuse(judged, key[-1], item < 0, f"no rated item has this {' and '.join(key)}", file)
    judged = judged.assign(item=item, dimension=judged["dimension"].map(snake))
    for name in ("annotator", "dimension"):
        refuse(judged, name, judged[name].str.strip() == "", "is empty", file)
    again = judged.duplicated(["item", "annotator", "dimension"])
    refuse(judged, "annotator", again, "{} judges this item a second time", file)
    mark = judged["rating"].str.strip().str.upper()
    given = (mark != "") & ~mark.str.startswith("N/A")
    number = pd.to_numeric(mark, errors="coerce")
    fix = "put a number there with a point for decimals, or leave the cell empty"
    refuse(judged, "rating", given & ~np.isfinite(number), "{} is not a number", file, fix)
    fix = "correct the rating, or pass the scale"
    outside = given & ~number.between(*scale)
    refuse(judged, "rating", outside, f"{{}} is outside the scale {scale[0]:g} to {scale[1]:g}",
           file, fix)  # fmt: skip
    rows = judged[["item", "annotator", "dimension", "rating"]]
    return single_ratings(rows.itertuples(index=False, name=None))


def _both_levels(turns, by_turn: tuple, dialogs, by_dialog: tuple, *lines: dict) -> dict:
    """Join two tables with their judgements, each (ratings, reasons to exclude, dimensions)."""
    report, tables = list(lines), []
    for table, unit, (ratings, reasons, dimensions) in [
        (turns, "turn ratings", by_turn), (dialogs, "dialog ratings", by_dialog)
    ]:  # fmt: skip
        means = mean_ratings(ratings, len(table), dimensions)
        tables.append(pd.concat([table, means], axis=1))
        report.append(account(unit, len(ratings), reasons))
    return {"turns": tables[0], "dialogs": tables[1], "ratings": by_turn[0],
            "dialog_ratings": by_dialog[0], "report": pd.DataFrame(report)}  # fmt: skip


def comperdial(folder: Path, columns: Columns | None = None) -> dict:
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
    judged = user_table(file, [*REPLIES, *JUDGEMENT], columns).assign(dimension="overall")
    turns = _replies(file, judged, talk)
    key = ["system", "dialog", "turn"]
    judged = judged.rename(columns={"dialog_id": "dialog"}).assign(turn=_turn(judged["turn"]))
    by_turn = _judged(file, judged, key, turns, (1, 5))
    dialogs = _spoken(turns)
    file = folder / "dialogue_annotations.csv"
    judged = user_table(file, ["dialog_id", "system", *JUDGEMENT], columns)
    judged = judged.rename(columns={"dialog_id": "dialog"}).assign(dimension="overall")
    by_dialog = _judged(file, judged, ["system", "dialog"], dialogs, (1, 5))
    return _both_levels(turns, by_turn, dialogs, by_dialog)


def _persona_dialogs(file: Path) -> dict[str, dict[str, list[str]]]:
    """Read utterances and B's persona by dialog; without ids, the position counts from 0."""
    talk: dict[str, dict[str, list[str]]] = {}
    try:
        for number, item in enumerate(json.loads(file.read_bytes())):
            name, said = str(item.get("dialog_id", number)), item["dialogue"]
            if [one["persona_id"] for one in said] != ["A", "B"] * (len(said) // 2):
                raise DataError("A and B do not take turns", file=file, row=number + 1)
            if name in talk:
                raise DataError(f"repeats the dialog {name!r}", file=file, row=number + 1)
            talk[name] = {"texts": [one["text"] for one in said], "fact": item["persona"]["B"]}
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"a dialog needs persona and dialogue as in data/README.md ({error!r})"
        raise DataError(problem, file=file, row=len(talk) + 1) from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is not JSON in UTF-8 ({error})", file=file) from error
    return talk


def _turn(replies: pd.Series) -> pd.Series:
    """Turn counts of B's replies into positions among all utterances; -1 if no count."""
    return 2 * replies.where(replies.str.fullmatch("[0-9]{1,9}"), "-1").astype("int64") + 1


def _replies(file: Path, judged: pd.DataFrame, talk: dict) -> pd.DataFrame:
    refuse(
        judged, "dialog_id", ~judged["dialog_id"].isin(talk), "{} is not in the dialog file", file
    )
    refuse(judged, "system", judged["system"].str.strip() == "", "is empty", file)
    turn = _turn(judged["turn"])
    refuse(judged, "turn", turn < 0, "is {}, not a count from 0", file)
    length = judged["dialog_id"].map({name: len(one["texts"]) for name, one in talk.items()})
    refuse(judged, "turn", turn >= length, "{} is beyond the end of the dialog", file)
    reply = judged.assign(turn=turn).groupby(["system", "dialog_id", "turn"], sort=False)
    two = judged["response"] != reply["response"].transform("first")
    refuse(judged, "response", two, "this reply has two texts", file)
    rows: list[dict[str, Any]] = []
    for row in judged.assign(turn=turn)[reply.cumcount() == 0].itertuples():
        said = talk[row.dialog_id]
        rows.append({"system": row.system, "dialog": row.dialog_id, "turn": row.turn,
                     "context": said["texts"][: row.turn], "response": row.response,
                     "reference": [row.reference] if row.reference.strip() else [],
                     "fact": list(said["fact"])})  # fmt: skip
    return turn_table(rows)


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
