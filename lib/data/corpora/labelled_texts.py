"""Texts without a dialog around them: GoEmotions comments and DailyDialog pairs."""

import pandas as pd

from lib.data.corpora.tables import Account
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import read_lines, text_cell
from lib.data.dialogues.table import turn_table


def goemotions(fetch, split: str) -> pd.DataFrame:
    """A split of GoEmotions ("train", "dev" or "test"; Demszky et al. 2020).

    Columns: id, text, labels (list of label names; several are allowed). Names and religions are
    masked upstream as [NAME] and [RELIGION]. Some texts are offensive.
    """
    if split not in ("train", "dev", "test"):
        raise DataError(f"GoEmotions has no split {split!r}", fix="use train, dev or test")
    labels = read_lines(fetch("goemotions/labels.txt"))
    path = fetch(f"goemotions/{split}.tsv")
    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        place = {"file": path, "row": number}
        cells = line.split("\t")
        if len(cells) != 3:
            raise DataError(f"has {len(cells)} cells, not text, labels and id", **place)
        text = text_cell(cells[0], **place, column="text")
        rows.append((cells[2], text, _names(cells[1], labels, place)))
    return with_report(pd.DataFrame(rows, columns=["id", "text", "labels"]), "comments")


def _names(cell: str, labels: list[str], place: dict) -> list[str]:
    names = []
    for number in cell.split(","):
        if not number.isascii() or not number.isdigit() or int(number) >= len(labels):
            raise DataError(
                f"{number!r:.20} is not the number of a label", **place, column="labels"
            )
        names.append(labels[int(number)])
    return names


def dailydialog_pairs(fetch) -> pd.DataFrame:
    """13,105 utterances of DailyDialog's validation split with the reply to each: a turn table
    without ratings. Both speakers are people (`system` "human")."""
    context, response = (
        fetch(f"dailydialog/dailydialog_valid_{part}.txt") for part in ("ctx", "res")
    )
    before, after = read_lines(context), read_lines(response)
    if len(before) != len(after):
        raise DataError(f"has {len(after)} lines, {context} has {len(before)}", file=response)
    rows = [
        {"system": "human", "dialog": f"dailydialog-{number:05d}", "turn": 1,
         "context": [said.strip()], "response": reply.strip()}
        for number, (said, reply) in enumerate(zip(before, after, strict=True))
    ]  # fmt: skip
    return with_report(turn_table(rows), "pairs")


def with_report(table: pd.DataFrame, unit: str, account: Account | None = None) -> pd.DataFrame:
    """The table with its account in `attrs["report"]` (a list of records; see `read_report`)."""
    if account is None:
        account = Account()
        account.read(unit, len(table))
    table.attrs["report"] = account.table({unit: len(table)}).to_dict("records")
    return table
