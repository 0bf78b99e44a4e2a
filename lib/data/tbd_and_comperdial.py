"""TBD-Q1-2023 (the human-centered metrics paper) and ComperDial, which are given out on request.

Their files are the user's, so each fault is named with file, row and column. The layouts are those
of `data/README.md`; columns can be mapped, because the files themselves may name them otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from lib.data.corpus import account, judged, snake
from lib.data.errors import DataError
from lib.data.turn_table import Fault, check, is_blank, turn_table
from lib.data.user_files import named, read_cells

Columns = Mapping[str, Mapping[str, str]] | None
FIX = "correct that row"


def user_table(file: Path, needed: list[str], columns: Columns) -> pd.DataFrame:
    """Read a CSV file as text under our column names; `columns[file]` maps ours to the file's."""
    theirs = (columns or {}).get(file.name, {})
    return named(read_cells(file), theirs, file, needed, needed)[needed].astype("str")


def _empty(table: pd.DataFrame, *names: str) -> Iterator[Fault]:
    for name in names:
        yield name, table[name].map(is_blank), "is empty", "fill it in, or remove the row"


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
    needed = ["system", "agent", "dialog", "turn", "speaker", "text"]
    said = user_table(folder / "turns.csv", needed, columns)
    check(said, _utterance_faults(said), folder / "turns.csv")
    said["turn"] = said["turn"].astype(int)
    dialogs = said.groupby("dialog", sort=False, as_index=False).agg(
        system=("system", "first"), agent=("agent", "first"),
        utterances=("text", list), speakers=("speaker", list))  # fmt: skip
    dialogs = dialogs[["system", "agent", "dialog", "utterances", "speakers"]]
    turns = said[said["speaker"] == "system"].merge(dialogs[["dialog", "utterances"]])
    whole = zip(turns.pop("utterances"), turns["turn"], strict=True)
    turns["context"] = [utterances[:turn] for utterances, turn in whole]
    turns = turn_table(turns.rename(columns={"text": "response"}).drop(columns="speaker"))
    if (file := folder / "references.csv").is_file():
        table = user_table(file, ["dialog", "turn", "reference"], columns)
        table["item"] = _positions(table, turns[["dialog", "turn"]])
        unknown = "{!r}: the system said nothing at this turn of the dialog"
        faults = [*_empty(table, "reference"), ("turn", table["item"] < 0, unknown, FIX)]
        check(table, faults, file)
        given = table.groupby("item")["reference"].agg(list)
        turns["reference"] = [given.get(item, []) for item in turns.index]
    if (file := folder / "dialogs.csv").is_file():
        user = user_table(file, ["dialog", "user"], columns).set_index("dialog")["user"].to_dict()
        if missing := set(dialogs["dialog"]) - set(user):
            problem = f"has no row for dialog {min(missing)!r}"
            raise DataError(problem, file=file, column="dialog")
        turns["user"], dialogs["user"] = turns["dialog"].map(user), dialogs["dialog"].map(user)
    users = {"are the user's: they are context, not responses": len(said) - len(turns)}
    sources = {"turn": (turns, folder / "turn_ratings.csv", turns[["dialog", "turn"]]),
               "dialog": (dialogs, folder / "dialog_ratings.csv", dialogs[["dialog"]])}  # fmt: skip
    return _with_ratings(sources, columns, scale, [account("utterances", len(turns), users)])


def _utterance_faults(said: pd.DataFrame) -> Iterator[Fault]:
    yield from _empty(said, "system", "agent", "dialog")
    speakers = ~said["speaker"].isin(["user", "system"])
    yield "speaker", speakers, "is {!r}, not user or system", FIX
    talk = said.groupby("dialog", sort=False)
    for name in ("system", "agent"):
        second = said[name] != talk[name].transform("first")
        yield name, second, "{!r} is the second in this dialog", FIX
    wrong = said["turn"] != talk.cumcount().astype(str)
    yield "turn", wrong, "is {!r}: turns of a dialog must count 0, 1, 2, ..., in order", FIX


def _positions(table: pd.DataFrame, items: pd.DataFrame) -> pd.Series:
    """The row of `items` that each row of a table names by the same columns, or -1."""
    rows = items.astype("str").assign(item=range(len(items)))
    return table.merge(rows, how="left")["item"].fillna(-1).astype(int)


def _with_ratings(
    sources: Mapping[str, tuple], columns: Columns, scale, report: list[dict], dimension: str = ""
) -> dict:
    """Read the judgements of both levels and add their means; each source is table, file, key."""
    tables, ratings, lines = [], [], [*report]
    for unit, (table, file, items) in sources.items():
        judgements = _judgements(file, items, columns, scale, dimension)
        single, means, line = judged(judgements, len(items), unit=f"{unit} ratings")
        tables.append(pd.concat([table, means], axis=1))
        ratings.append(single)
        lines.append(line)
    return {"turns": tables[0], "dialogs": tables[1], "ratings": ratings[0],
            "dialog_ratings": ratings[1], "report": pd.DataFrame(lines)}  # fmt: skip


def _judgements(file, items: pd.DataFrame, columns, scale, dimension: str) -> pd.DataFrame:
    """Read and check the single judgements of `items`, named by its columns."""
    needed = [*items, *([] if dimension else ["dimension"]), "annotator", "rating"]
    table = user_table(file, needed, columns)
    table["dimension"] = dimension or table["dimension"].map(snake)
    table["item"] = _positions(table, items)
    check(table, _judgement_faults(table, list(items), scale), file)
    return table


def _judgement_faults(table: pd.DataFrame, key: list[str], scale) -> Iterator[Fault]:
    yield from _empty(table, "annotator", "dimension")
    yield key[-1], table["item"] < 0, f"{{!r}}: no rated item has this {', '.join(key)}", FIX
    again = table.duplicated(["item", "annotator", "dimension"])
    yield "annotator", again, "{!r} judges this item a second time", FIX
    given = table["rating"].str.strip().str.upper()
    off = ~pd.to_numeric(given, errors="coerce").between(*scale)
    limits = f"a number from {scale[0]:g} to {scale[1]:g}, with a point for decimals"
    off &= (given != "") & ~given.str.startswith("N/A")
    yield "rating", off, f"is {{!r:.40}}, not {limits}", FIX


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
    replies = user_table(file, ["dialog_id", "turn", "system", "response", "reference"], columns)
    check(replies, _reply_faults(replies, talk), file)
    replies = replies.drop_duplicates(["system", "dialog_id", "turn"], ignore_index=True)
    turns = turn_table([
        {"system": row.system, "dialog": row.dialog_id, "turn": 2 * int(row.turn) + 1,
         "context": talk[row.dialog_id]["texts"][: 2 * int(row.turn) + 1], "response": row.response,
         "reference": [row.reference] if row.reference.strip() else [],
         "fact": talk[row.dialog_id]["fact"]}
        for row in replies.itertuples()
    ])  # fmt: skip
    dialogs, key = _spoken(turns), ["system", "dialog_id"]
    keys = dialogs[["system", "dialog"]].set_axis(key, axis=1)
    sources = {"turn": (turns, file, replies[[*key, "turn"]]),
               "dialog": (dialogs, folder / "dialogue_annotations.csv", keys)}  # fmt: skip
    return _with_ratings(sources, columns, (1, 5), [], "overall")


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
    absent = "{!r} is not in the dialog file"
    yield "dialog_id", ~table["dialog_id"].isin(talk), absent, FIX
    turns = {(name, str(k)) for name, one in talk.items() for k in range(len(one["texts"]) // 2)}
    wrong = [key not in turns for key in zip(table["dialog_id"], table["turn"], strict=True)]
    yield "turn", wrong, "{!r} is not the number of one of B's replies, counted from 0", FIX
    reply = table.groupby(["system", "dialog_id", "turn"], sort=False)
    two = table["response"] != reply["response"].transform("first")
    yield "response", two, "{!r:.40}: this reply has two texts", FIX


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
