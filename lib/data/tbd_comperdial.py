"""TBD-Q1-2023 (the human-centered metrics paper) and ComperDial, which are given out on request.

Their files are the user's, so each fault is named with file, row and column. The layouts are those
of `data/README.md`; columns can be mapped, because the files themselves may name them otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.corpora import account, judged, loader, snake
from lib.data.storage import DataError
from lib.data.turn_table import Fault, check, is_blank, turn_table
from lib.data.user_files import named, read_cells

Columns = Mapping[str, Mapping[str, str]] | None
SCALE = (1, 5)
FIX = "correct that row"


def _read(file: Path, needed: Sequence[str], columns: Columns) -> pd.DataFrame:
    """Read a CSV file as text under our column names; `columns[file]` maps ours to the file's."""
    theirs = (columns or {}).get(file.name, {})
    return named(read_cells(file), theirs, file, needed, needed)[[*needed]].astype("str")


def _empty(table: pd.DataFrame, *names: str) -> Iterator[Fault]:
    for name in names:
        yield name, table[name].map(is_blank), "is empty", "fill it in, or remove the row"


@loader("tbd_q1")
def three_bots(folder: Path, columns: Columns = None) -> dict:
    """Read the layout in which we expect TBD-Q1-2023: one row per utterance, ratings (1-5) apart.

    `turns.csv`, `turn_ratings.csv`, `dialog_ratings.csv`, and if there, `references.csv` (dialog,
    turn, reference). The turn table holds the system's utterances; the user's are their context.

    Args:
        folder: where the files are.
        columns: such as {"turns.csv": {"text": "utterance"}}.
    """
    needed = ["system", "agent", "dialog", "turn", "speaker", "text"]
    said = _read(folder / "turns.csv", needed, columns)
    check(said, _utterance_faults(said), folder / "turns.csv")
    said["turn"] = said["turn"].astype(int)
    talk = said.groupby("dialog", sort=False)
    dialogs = talk[["system", "agent", "dialog"]].head(1).reset_index(drop=True)
    dialogs["utterances"], dialogs["speakers"] = (
        talk[name].agg(list).tolist() for name in ("text", "speaker")
    )
    whole = dialogs.set_index("dialog")["utterances"]
    said["context"] = [whole[row.dialog][: row.turn] for row in said.itertuples()]
    turns = said[said.pop("speaker") == "system"].reset_index(drop=True)
    turns["reference"] = _references(folder / "references.csv", turns, columns)
    turns = turn_table(turns.rename(columns={"text": "response"}))
    users = {"are the user's: they are context, not responses": len(said) - len(turns)}
    by_turn = _judged(folder / "turn_ratings.csv", turns, turns[["dialog", "turn"]], columns)
    by_dialog = _judged(folder / "dialog_ratings.csv", dialogs, dialogs[["dialog"]], columns)
    return _parts(by_turn, by_dialog, account("utterances", len(turns), users))


def _utterance_faults(said: pd.DataFrame) -> Iterator[Fault]:
    yield from _empty(said, "system", "agent", "dialog")
    yield "speaker", ~said["speaker"].isin(["user", "system"]), "is {!r}, not user or system", FIX
    talk = said.groupby("dialog", sort=False)
    for name in ("system", "agent"):
        second = said[name] != talk[name].transform("first")
        yield name, second, "{!r} is the second in this dialog", FIX
    wrong = said["turn"] != talk.cumcount().astype(str)
    yield "turn", wrong, "is {!r}: turns of a dialog must count 0, 1, 2, ..., in order", FIX


def _references(file: Path, turns: pd.DataFrame, columns: Columns) -> list[list[str]]:
    if not file.is_file():
        return [[] for _ in turns.index]
    table = _read(file, ["dialog", "turn", "reference"], columns)
    item = _positions(table, turns[["dialog", "turn"]])
    unknown = "{!r}: the system said nothing at this turn of the dialog"
    check(table, [*_empty(table, "reference"), ("turn", item < 0, unknown, FIX)], file)
    given = table.groupby(item)["reference"].agg(list)
    return [given.get(place, []) for place in range(len(turns))]


def _positions(table: pd.DataFrame, key: pd.DataFrame) -> pd.Series:
    """The row of `key` that each row of a table repeats, or -1."""
    rows = key.astype("str").assign(item=range(len(key)))
    return table.merge(rows, how="left", on=[*key])["item"].fillna(-1).astype(int)


def _judged(
    file: Path, table: pd.DataFrame, key: pd.DataFrame, columns: Columns, dimension: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Read the judgements of a table, whose rows the file names by the columns of `key`.

    Returns:
        The table with mean ratings, the single ratings, the line of the account.
    """
    needed = [*key, *([] if dimension else ["dimension"]), "annotator", "rating"]
    given = _read(file, needed, columns)
    given["dimension"] = dimension or given["dimension"].map(snake)
    given["item"] = _positions(given, key)
    check(given, _judgement_faults(given, [*key]), file)
    unit = "turn ratings" if "turn" in key else "dialog ratings"
    ratings, means, line = judged(given, len(table), unit=unit)
    return pd.concat([table, means], axis=1), ratings, line


def _judgement_faults(table: pd.DataFrame, key: list[str]) -> Iterator[Fault]:
    yield from _empty(table, "annotator", "dimension")
    yield key[-1], table["item"] < 0, f"{{!r}}: no rated item has this {', '.join(key)}", FIX
    again = table.duplicated(["item", "annotator", "dimension"])
    yield "annotator", again, "{!r} judges this item a second time", FIX
    given = table["rating"].str.strip().str.upper()
    off = ~pd.to_numeric(given, errors="coerce").between(*SCALE)
    off &= (given != "") & ~given.str.startswith("N/A")
    yield "rating", off, "is {!r:.40}, not a number from 1 to 5, with a point for decimals", FIX


def _parts(by_turn: tuple, by_dialog: tuple, *first: dict) -> dict:
    (turns, ratings, line), (dialogs, dialog_ratings, last) = by_turn, by_dialog
    return {"turns": turns, "dialogs": dialogs, "ratings": ratings,
            "dialog_ratings": dialog_ratings,
            "report": pd.DataFrame([*first, line, last])}  # fmt: skip


@loader("comperdial")
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
    file, key = folder / "turn_annotations.csv", ["system", "dialog_id"]
    replies = _read(file, [*key, "turn", "response", "reference"], columns)
    check(replies, _reply_faults(replies, talk), file)
    replies = replies.drop_duplicates([*key, "turn"], ignore_index=True)
    turns = turn_table([
        {"system": row.system, "dialog": row.dialog_id, "turn": 2 * int(row.turn) + 1,
         "context": talk[row.dialog_id]["texts"][: 2 * int(row.turn) + 1], "response": row.response,
         "reference": [row.reference] if row.reference.strip() else [],
         "fact": talk[row.dialog_id]["fact"]}
        for row in replies.itertuples()
    ])  # fmt: skip
    dialogs = _spoken(turns)
    by_turn = _judged(file, turns, replies[[*key, "turn"]], columns, "overall")
    names = dialogs[["system", "dialog"]].set_axis(key, axis=1)
    whole = folder / "dialogue_annotations.csv"
    return _parts(by_turn, _judged(whole, dialogs, names, columns, "overall"))


def _persona_dialogs(file: Path) -> dict[str, dict[str, list[str]]]:
    """Read utterances and B's persona by dialog; without ids, the position counts from 0."""
    talk: dict[str, dict[str, list[str]]] = {}
    for number, item in enumerate(read_cells(file).to_dict("records")):
        try:
            name, said = str(item.get("dialog_id", number)), item["dialogue"]
            if name in talk or [one["persona_id"] for one in said] != ["A", "B"] * (len(said) // 2):
                raise ValueError(f"{name!r} is there twice, or A and B do not take turns")
            talk[name] = {"texts": [one["text"] for one in said], "fact": [*item["persona"]["B"]]}
            "".join(text for texts in talk[name].values() for text in texts)  # or a TypeError
        except (KeyError, TypeError, ValueError) as error:
            problem = f"is not a dialog in the layout of data/README.md ({error!r})"
            raise DataError(problem, file=file, row=number + 1) from error
    return talk


def _reply_faults(table: pd.DataFrame, talk: dict) -> Iterator[Fault]:
    yield from _empty(table, "system")
    yield "dialog_id", ~table["dialog_id"].isin(talk), "{!r} is not in the dialog file", FIX
    turns = {(name, str(k)) for name, one in talk.items() for k in range(len(one["texts"]) // 2)}
    wrong = [key not in turns for key in zip(table["dialog_id"], table["turn"], strict=True)]
    yield "turn", wrong, "{!r} is not the number of one of B's replies, counted from 0", FIX
    reply = table.groupby(["system", "dialog_id", "turn"], sort=False)["response"]
    two = table["response"] != reply.transform("first")
    yield "response", two, "{!r:.40}: this reply has two texts", FIX


def _spoken(turns: pd.DataFrame) -> pd.DataFrame:
    """Put one row together per system and dialog: A's lines, each followed by the reply."""
    rows = []
    for (system, dialog), group in turns.groupby(["system", "dialog"], sort=False):
        group = group.sort_values("turn")
        pairs = zip(group["context"].str[-1], group["response"], strict=True)
        rows.append({"system": system, "agent": system, "dialog": dialog,
                     "utterances": [text for pair in pairs for text in pair],
                     "speakers": ["user", "system"] * len(group)})  # fmt: skip
    return pd.DataFrame(rows)
