"""Corpora of rated dialogs, one loader each.

FED (Mehri and Eskenazi, SIGDIAL 2020), ConvAI (Ghazarian et al. 2020), Ji et al. (2022), and the
GPT-4 ratings of Zhang et al. (2024), "A Comprehensive Analysis ...".
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lib.data.corpus import account, loader, rated
from lib.data.downloads import read_json, read_lines
from lib.data.rated_responses import SPEAKERS, fed_items, fed_scores, speech
from lib.data.turn_table import turn_table

JUDGED = {"coh": "coherence", "div": "diversity", "eng": "engagingness",
          "inf": "informativeness", "ovr": "overall"}  # fmt: skip


@loader("fed_dialog")
def fed_dialog(file: Path, scores: Path) -> dict:
    """Read FED's 125 rated dialogs; see `fed_turn`."""
    rows = []
    for dialog, item in fed_items(file):
        if "response" not in item:
            said, speakers = speech(item["context"])
            rows.append({"system": item["system"], "dialog": dialog, "utterances": said,
                         "speakers": speakers, "ratings": item["annotations"]})  # fmt: skip
    parts = rated(rows, unit="dialogs", scores=fed_scores(scores))
    unrated = parts["dialogs"].filter(like="human_").isna().any(axis=1).sum()
    note = f"{unrated} lack a mean in some dimension (NaN): every rating was N/A"
    return parts | {"report": parts["report"].assign(notes=[note, ""])}


@loader("convai50")
def convai50(file: Path) -> dict:
    """Read 50 whole conversations of ConvAI with three engagement ratings (0-5) each.

    One speaker is the bot and the other a person; the file does not say which, so `speakers` are
    "sp1" and "sp2" as tagged.
    """
    rows = []
    for line in read_lines(file):
        name, _, *values, talk = line.split("\t")
        spoken = re.findall(r"<(sp[12])>(.*?)</\1>", talk)
        rows.append({"system": "convai", "dialog": f"convai-{name}",
                     "utterances": [said for _, said in spoken],
                     "speakers": [who for who, _ in spoken],
                     "ratings": {"engaging": values}})  # fmt: skip
    return rated(rows, unit="dialogs")


@loader("ji2022")
def ji2022(*files: Path, quality_control: bool = False) -> dict:
    """Read the chats of crowd workers with 10 agents of 5 systems, rated by the chatter.

    Agents are `A`-`E` (the systems) and `A_p`-`E_p` (the same with a persona), in two free-topic
    runs and one ice-breaker run. Raw ratings (0-100) are `human_<dimension>`, z scores
    `human_z_<dimension>`, and `human_overall` and `human_z_overall` the means of the seven;
    `robotic` and `repetitive` are already reversed. `turns` has every bot turn with its context,
    and no ratings. Worker and assignment numbers are replaced by a hash.

    Args:
        quality_control: keep the degraded control agent, which published statistics leave out.
    """
    parts = _ji_dialogs(files, quality_control)
    turns = [
        {"system": chat.system, "agent": chat.agent, "dialog": chat.dialog, "turn": turn,
         "context": chat.utterances[:turn], "response": chat.utterances[turn]}
        for chat in parts["dialogs"].itertuples()
        for turn in range(1, len(chat.utterances), 2)
    ]  # fmt: skip
    return parts | {"turns": turn_table(turns)}


def _ji_dialogs(files: Sequence[Path], quality_control: bool = False) -> dict:
    rows, read = [], 0
    for run, file in zip(["free1", "free2", "icebreaker"], files, strict=True):
        for assignment in read_json(file):
            worker, chore = (hashlib.sha256(assignment[key].encode()).hexdigest()[:10]
                             for key in ("WorkerId", "AssignmentId"))  # fmt: skip
            read += len(assignment["data"])
            rows += [
                _ji_dialog(chat, f"worker-{worker}", f"{run}-{chore}-{position}") | {"run": run}
                for position, chat in enumerate(assignment["data"])
                if quality_control or chat["model"] != "QualityControl"
            ]
    excluded = {"with the degraded quality-control agent": read - len(rows)}
    parts = rated(rows, unit="dialogs", excluded=excluded)
    dialogs = parts["dialogs"]
    raw, z = dialogs.filter(regex="^human_(?!z_)"), dialogs.filter(like="human_z_")
    means = {"human_overall": raw.mean(axis=1), "human_z_overall": z.mean(axis=1)}
    return parts | {"dialogs": dialogs.assign(**means)}


def _ji_dialog(chat: dict, worker: str, name: str) -> dict:
    scores = {**chat["raw scores"], **{f"z {key}": z for key, z in chat["z scores"].items()}}
    said = [spoken[who] for spoken in chat["dialogue"] for who in ("user", "bot")]
    return {"system": chat["model"].removesuffix("_p"), "agent": chat["model"], "dialog": name,
            "utterances": said, "speakers": ["user", "system"] * (len(said) // 2),
            "ratings": {name: {worker: score} for name, score in scores.items()}}  # fmt: skip


@loader("gpt4_fed")
def gpt4_fed(dialogs: Path, gpt4: Path) -> dict:
    """Read the 125 FED dialogs with five GPT-4 runs and the five annotators' own ratings.

    The runs are `score_gpt4_<dimension>_run<n>`, on 1-5.
    """
    rows = [
        {"system": item["model"], "dialog": f"fed-{number:03d}",
         "utterances": [one["text"] for one in item["dialog"]],
         "speakers": [SPEAKERS[one["speaker"]] for one in item["dialog"]],
         "ratings": item["annotations"]}
        for number, item in enumerate(read_json(dialogs))
    ]  # fmt: skip
    return rated(rows, unit="dialogs", scores=_runs(gpt4, len(rows))[0])


@loader("gpt4_reliable")
def gpt4_reliable(texts: Path, *files: Path) -> dict:
    """Read the chats of Ji et al. in Zhang's order, with GPT-4's ratings of 500 of them."""
    *chats, gpt4 = files
    parts = _ji_dialogs(chats)
    known = {_words(said): row for row, said in enumerate(parts["dialogs"]["utterances"])}
    order = [known[_words(said)] for said, _ in _spoken(texts)]
    item = parts["ratings"]["item"].map({row: place for place, row in enumerate(order)})
    ratings = parts["ratings"].assign(item=item)[item.notna()].astype({"item": "int64"})
    dialogs = parts["dialogs"].iloc[order].reset_index(drop=True)
    scores, note = _runs(gpt4, len(order))
    line = account("dialogs", len(order), note=note)
    return {"dialogs": dialogs.join(scores), "ratings": ratings, "report": pd.DataFrame([line])}


@loader("gpt4_see")
def gpt4_see(texts: Path, gpt4: Path) -> dict:
    """Read the chats of See et al. (2019), with GPT-4's ratings of 500 of them.

    Neither system nor human ratings are published with them.
    """
    rows = [
        {"system": "unknown", "dialog": f"see-{n:04d}", "utterances": said, "speakers": speakers}
        for n, (said, speakers) in enumerate(_spoken(texts))
    ]
    scores, note = _runs(gpt4, len(rows))
    return rated(rows, unit="dialogs", scores=scores, note=note)


def _words(utterances: list[str]) -> str:
    return "\t".join(" ".join(text.split()) for text in utterances)


def _spoken(file: Path) -> list[tuple[list[str], list[str]]]:
    """Read the utterances and the speakers of each line of "speaker: text" cells."""
    dialogs = []
    for line in read_lines(file):
        cells = [cell.partition(":") for cell in line.split("\t")[1:]]
        speakers = [SPEAKERS[who.strip()] for who, _, _ in cells]
        dialogs.append(([said.strip() for _, _, said in cells], speakers))
    return dialogs


def _runs(file: Path, count: int) -> tuple[pd.DataFrame, str]:
    """Read five runs in five dimensions; `indices` says which dialogs were rated, else all."""
    data = read_json(file)
    columns = {
        f"score_gpt4_{dimension}_run{run}": [float(score) for score in data[f"{short}_{run}"]]
        for short, dimension in JUDGED.items()
        for run in range(1, 6)
    }
    rows = data.get("indices", range(count))
    note = f"GPT-4 rated {len(rows)}; its scores of the others are NaN"
    return pd.DataFrame(columns, index=rows).reindex(range(count)), note
