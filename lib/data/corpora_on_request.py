"""TBD-Q1-2023 (the human-centered metrics paper) and ComperDial, which are available on request.

The format of their files is not public. Whoever has them converts them to the layout of
`data/README.md`, a turn table and two tables of ratings; the shipped samples have it as well.
"""

from pathlib import Path

import pandas as pd

from lib.data.corpora import average_judgements, loader, report_row, snake_case
from lib.data.storage import DataError
from lib.data.turn_table import KEY, LEVELS, Check, check_rows
from lib.data.user_files import read_turns


@loader("tbd_q1")
@loader("comperdial")
@loader("sample_bots")
@loader("sample_personas")
def load_on_request(folder: Path) -> dict:
    """Read `turns.csv` as `read_turns` does, and ratings on 1-5 of its turns and dialogs.

    `turn_ratings.csv` and `dialog_ratings.csv` hold one judgement per row: annotator, dimension,
    rating, and those of system, agent, dialog and turn that identify the reply or the dialog. The
    utterances of a dialog are those before its last reply, with the system's own replies at their
    turns.
    """
    turns = read_turns(folder / "turns.csv")
    dialogs = [
        _dialog_row(replies) for _, replies in turns.groupby([*LEVELS], sort=False)
    ]
    turns, ratings, turn_line = _add_means(turns, folder / "turn_ratings.csv")
    dialogs, _, dialog_line = _add_means(
        pd.DataFrame(dialogs), folder / "dialog_ratings.csv"
    )
    report = pd.DataFrame([report_row("responses", len(turns)), turn_line, dialog_line])
    return {"turns": turns, "dialogs": dialogs, "ratings": ratings, "report": report}


def _dialog_row(replies: pd.DataFrame) -> dict:
    last = replies.loc[replies["turn"].idxmax()]
    responses = dict(zip(replies["turn"], replies["response"], strict=True))
    utterances = []
    speakers = []
    for turn, text in enumerate([*last["context"], last["response"]]):
        utterances.append(responses.get(turn, text))
        speakers.append("system" if turn in responses else "user")
    return {**last[[*LEVELS]], "utterances": utterances, "speakers": speakers}


def _add_means(
    items: pd.DataFrame, file: Path
) -> tuple[pd.DataFrame, pd.DataFrame, dict]:
    """The items with their mean ratings, the single ratings, and the line of the report."""
    ratings = pd.read_csv(file, dtype=str, keep_default_na=False)
    missing = {"dialog", "annotator", "dimension", "rating"} - set(ratings)
    if missing:
        raise DataError(
            f"there is no column {sorted(missing)}", file, fix="see data/README.md"
        )
    key = [name for name in KEY if name in ratings and name in items]
    item_numbers = items[key].astype(str).assign(item=range(len(items)))
    ratings["item"] = (
        ratings[key].merge(item_numbers, "left")["item"].fillna(-1).astype(int)
    )
    ratings["dimension"] = ratings["dimension"].map(snake_case)
    check_rows(ratings, _checks(ratings, key), file)
    ratings, means, line = average_judgements(
        ratings, len(items), unit=file.stem.replace("_", " ")
    )
    return pd.concat([items, means], axis=1), ratings, line


def _checks(ratings: pd.DataFrame, key: list[str]) -> list[Check]:
    text = ratings["rating"].str.strip().str.upper()
    is_number = pd.to_numeric(text, errors="coerce").between(1, 5)
    is_missing = (text == "") | text.str.startswith("N/A")
    unknown = ratings["item"] < 0
    unknown_problem = f"is {{!r}}, but no reply or dialog has this {', '.join(key)}"
    invalid = ~(is_number | is_missing)
    invalid_problem = "is {!r:.40}, not a number from 1 to 5, with a point for decimals"
    repeated = ratings.duplicated(["item", "annotator", "dimension"])
    repeated_problem = "{!r} judges this a second time"
    fix = "correct that row"
    return [
        Check(key[-1], unknown, unknown_problem, fix=fix),
        Check("rating", invalid, invalid_problem, fix=fix),
        Check("annotator", repeated, repeated_problem, fix=fix),
    ]
