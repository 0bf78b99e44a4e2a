"""Ji et al. (2022): chats of crowd workers with 10 agents of 5 systems, rated by the chatter.

Agents are `A`-`E` (five architectures, the systems) and `A_p`-`E_p` (the same with a persona). Two
free-topic runs and one ice-breaker run; only assignments that passed quality control. Worker and
assignment numbers are replaced by a hash. Bot text is tokenised and lower-cased, user text is not.
"""

import hashlib

import pandas as pd

from lib.data.corpora import records
from lib.data.corpora.tables import Account, Ratings, join
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import rating_cell
from lib.data.dialogues.table import turn_table

RUNS = {
    "free1": "dialogue_eval_ji2022/pass_free(run1).json",
    "free2": "dialogue_eval_ji2022/pass_free(run2).json",
    "icebreaker": "dialogue_eval_ji2022/pass_icebreaker.json",
}
DIMENSIONS = ["robotic", "interesting", "fun", "consistent", "fluent", "repetitive", "topic"]
CONTROL = "QualityControl"


def load(fetch, quality_control: bool = False) -> dict:
    """Dialogs with raw ratings (0-100, `human_<dimension>`) and z scores (`human_z_<dimension>`).

    `robotic` and `repetitive` are already reversed: higher is better throughout. `human_overall`
    and `human_z_overall` are means of the seven. `quality_control=True` keeps the degraded control
    agent, which published statistics leave out. `turns` has every bot turn with its context, and
    no ratings: people rated whole dialogs. Topics and written feedback are not kept.
    """
    parts = dialogs(fetch, quality_control)
    chats = parts["dialogs"].to_dict("records")
    return parts | {"turns": turn_table([turn for chat in chats for turn in _turns(chat)])}


def dialogs(fetch, quality_control: bool = False) -> dict:
    """The rated dialogs alone."""
    account = Account()
    ratings = Ratings(account, "ji2022")
    chats: list[dict] = []
    for run, key in RUNS.items():
        path = fetch(key)
        for number, assignment in enumerate(records.json_list(path), start=1):
            place = {"file": path, "row": number}
            for position, chat in enumerate(records.objects(assignment, "data", **place)):
                account.read("dialogs")
                if chat.get("model") == CONTROL and not quality_control:
                    account.set_aside("dialogs", "with the degraded quality-control agent")
                    continue
                names = _names(assignment, run, position, place)
                _rate(chat, len(chats), names["annotator"], ratings, place)
                chats.append(_dialog(chat, run, names, place))
    table = join(pd.DataFrame(chats), ratings.means(len(chats)))
    _add_overall(table)
    report = account.table({"dialogs": len(table), "ratings": len(ratings)})
    return {"dialogs": table, "ratings": ratings.table(), "report": report}


def _names(assignment: dict, run: str, position: int, place: dict) -> dict[str, str]:
    worker, chore = (
        hashlib.sha256(records.get(assignment, name, str, **place).encode()).hexdigest()[:10]
        for name in ("WorkerId", "AssignmentId")
    )
    return {"annotator": f"worker-{worker}", "dialog": f"{run}-{chore}-{position}"}


def _dialog(chat: dict, run: str, names: dict, place: dict) -> dict:
    agent = records.get(chat, "model", str, **place)
    utterances = []
    for spoken in records.objects(chat, "dialogue", **place):
        utterances += [records.get(spoken, who, str, **place).strip() for who in ("user", "bot")]
    return {
        "system": agent.removesuffix("_p"),
        "agent": agent,
        "dialog": names["dialog"],
        "utterances": utterances,
        "speakers": ["user", "system"] * (len(utterances) // 2),
        "run": run,
    }


def _rate(chat: dict, row: int, annotator: str, ratings: Ratings, place: dict) -> None:
    for field, prefix, scale in [("raw scores", "", (0, 100)), ("z scores", "z_", None)]:
        values = records.get(chat, field, dict, **place)
        if sorted(values) != sorted(DIMENSIONS):
            raise DataError(
                f"holds {sorted(values)}, not the seven dimensions", **place, column=field
            )
        for name in DIMENSIONS:
            value = rating_cell(values[name], **place, column=f"{field}: {name}", scale=scale)
            ratings.add(row, annotator, prefix + name, value, None)


def _add_overall(table: pd.DataFrame) -> None:
    for prefix in ("human_", "human_z_"):
        table[prefix + "overall"] = table[[prefix + name for name in DIMENSIONS]].mean(axis=1)


def _turns(dialog: dict):
    """The bot's turns of a dialog: what was said before, and the reply."""
    for turn in range(1, len(dialog["utterances"]), 2):
        yield {
            "system": dialog["system"],
            "agent": dialog["agent"],
            "dialog": dialog["dialog"],
            "turn": turn,
            "context": dialog["utterances"][:turn],
            "response": dialog["utterances"][turn],
        }
