"""TBD-Q1-2023 (the human-centered metrics paper) and ComperDial, which are given out on request.

How their files look is not public. Whoever has them brings them into the layout of
`data/README.md`, a turn table and two tables of ratings; the shipped samples are in it as well.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.corpora import DIALOG_COLUMNS, average_judgements, loader, report_row, snake_case
from lib.data.storage import DataError
from lib.data.turn_table import KEY, check_rows
from lib.data.user_files import read_turns

FIX = "correct that row"


@loader("tbd_q1")
@loader("comperdial")
def on_request(folder: Path) -> dict:
    """Read `turns.csv` as `read_turns` does, and ratings on 1-5 of its turns and dialogs.

    `turn_ratings.csv` and `dialog_ratings.csv` hold one judgement per row: annotator, dimension,
    rating, and what of system, agent, dialog and turn names the reply or the dialog. The utterances
    of a dialog are those before its last reply, with the system's own replies at their turns.
    """
    turns = read_turns(folder / "turns.csv")
    turns, ratings, line = _judged(folder / "turn_ratings.csv", turns, "turn ratings")
    dialogs = pd.DataFrame(
        map(_spoken, *zip(*turns.groupby(DIALOG_COLUMNS[:3], sort=False), strict=True))
    )
    dialogs, _, last = _judged(folder / "dialog_ratings.csv", dialogs, "dialog ratings")
    report = pd.DataFrame([report_row("responses", len(turns)), line, last])
    return {"turns": turns, "dialogs": dialogs, "ratings": ratings, "report": report}


def _spoken(names: tuple, replies: pd.DataFrame) -> dict[str, Any]:
    """A row of the dialog table."""
    last, own = replies.loc[replies["turn"].idxmax()], replies.set_index("turn")["response"]
    said = [own.get(turn, text) for turn, text in enumerate([*last["context"], last["response"]])]
    speakers = ["system" if turn in own else "user" for turn in range(len(said))]
    return dict(zip(DIALOG_COLUMNS, [*names, said, speakers], strict=True))


def _judged(file: Path, table: pd.DataFrame, unit: str) -> tuple[pd.DataFrame, pd.DataFrame, dict]:
    """The table with mean ratings, its single ratings, and the line of the account."""
    given = pd.read_csv(file, dtype=str, keep_default_na=False)
    if missing := {"dialog", "annotator", "dimension", "rating"} - {*given}:
        raise DataError(f"there is no column {missing}", file, fix="see data/README.md")
    key = [name for name in KEY if name in given and name in table]
    rows = table[key].astype(str).assign(item=range(len(table)))
    given["item"] = given[key].merge(rows, "left")["item"].fillna(-1).astype(int)
    given["dimension"] = given["dimension"].map(snake_case)
    again = given.duplicated(["item", "annotator", "dimension"])
    marks = given["rating"].str.strip().str.upper()
    off = ~pd.to_numeric(marks, errors="coerce").between(1, 5)
    off &= (marks != "") & ~marks.str.startswith("N/A")
    words = "is {!r:.40}, not a number from 1 to 5, with a point for decimals"
    unknown = f"{{!r}}: nothing that was said has this {', '.join(key)}"
    faults = [(key[-1], given["item"] < 0, unknown, FIX), ("rating", off, words, FIX)]
    check_rows(given, [*faults, ("annotator", again, "{!r} judges this a second time", FIX)], file)
    ratings, means, line = average_judgements(given, len(table), unit)
    return pd.concat([table, means], axis=1), ratings, line
