"""GRADE, Predictive Engagement, Ji et al. 2022 and Zhang et al. 2024: one loader each.

GRADE (Huang et al. 2020); BETTER and PredEng-600 (Ghazarian et al. 2019, 2020); the chats
of Ji et al. (2022); the mean ratings of Zhao et al. (2020) and Zhang et al. (2024), "A
Comprehensive Analysis ...", and their GPT-4 ratings of whole dialogs.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.corpora import account, loader, rated
from lib.data.storage import read_json, read_lines
from lib.data.turn_table import turn_table
from lib.data.usr_fed_dstc import SPEAKERS, reordered, speech

REPLY = ["system", "query", "response"]
PREDENG = {"Ruber_Unref_Score": "ruber_unref", "CTX_Unref_Score": "ctx_unref",
           "Eng_Score_MeanPooling": "pred_en_mean",
           "Eng_Score_MaxPooling": "pred_en_max"}  # fmt: skip
# Responses per context.
SIZES = {"zhao_persona": 6, "zhao_dailydialog": 9, "zhang_usr_topical": 6, "zhang_usr_persona": 5}
MEANS = ["overall", "interesting", "relevance", "specificity", "understandability"]
JUDGED = {"coh": "coherence", "div": "diversity", "eng": "engagingness",
          "inf": "informativeness", "ovr": "overall"}  # fmt: skip


@loader("grade_*")
def grade(name: str, *files: Path) -> dict:
    """Read one of GRADE's eight sets: coherence, 8 to 11 annotators each.

    Line i of context, response and reference belong together; the single ratings sit in one file
    for all sets, in the same order. The text is tokenised. `dialog` names the context by its
    content, so sets on one corpus share it.
    """
    _, corpus, system = name.split("_", 2)
    *texts, judgements = files
    seen, rows = Counter(), []
    table = pd.DataFrame(read_json(judgements)).replace({"Dataset": "_EVAL$"}, "", regex=True)
    marks = table.set_index(["Dataset", "DialogModel"])["HumanScores"].loc[[(corpus, system)]]
    for context, response, reference, scores in zip(*map(read_lines, texts), marks, strict=True):
        key = f"{corpus}-{hashlib.sha256(context.encode()).hexdigest()[:8]}"
        seen[key] += 1
        rows.append({"system": system, "dialog": f"{key}-{seen[key]}" if seen[key] > 1 else key,
                     "context": context.split("|||"), "response": response,
                     "reference": [reference],
                     "ratings": {"coherence": json.loads(scores)}})  # fmt: skip
    again = len(rows) - len(seen)
    return rated(rows, note=f"{again} repeat an earlier context" if again else "")


@loader("better")
def better(file: Path) -> dict:
    """Read BETTER: query and reply of ConvAI, engaging (1) or not (0).

    The systems are not named; the texts are tokenised. An empty reply stays an empty response.
    """
    rows = [
        {"system": "convai", "dialog": f"better-{cell.id}", "context": [cell.query],
         "response": cell.reply, "ratings": {"engaging": {"published label": cell.label}}}
        for cell in _quoted(file).itertuples()
    ]  # fmt: skip
    empty = sum(not row["response"].strip() for row in rows)
    return rated(rows, note=f"{empty} are empty and kept")


def _quoted(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")


@loader("predeng600")
def predeng600(file: Path) -> dict:
    """Read PredEng-600: 300 DailyDialog queries with two replies each.

    The file has one rating per row, three to a reply: 900 of generated replies, then 900 of human
    ones. Query i of both halves is the same, so the human reply is the reference of the generated.
    """
    cells = _quoted(file).apply(lambda column: column.str.strip())
    cells["system"] = np.repeat(["generated", "ground_truth"], len(cells) // 2)
    rows = [
        {"system": system, "context": [query], "response": response, "reference": [],
         "ratings": {"engaging": group["human_score"].tolist()}}
        | {f"score_{ours}": float(group[theirs].iloc[0]) for theirs, ours in PREDENG.items()}
        for (system, query, response), group in cells.groupby(REPLY, sort=False)
    ]  # fmt: skip
    generated, human = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    for number, (row, other) in enumerate(zip(generated, human, strict=True)):
        row["dialog"] = other["dialog"] = f"predeng-{number:03d}"
        row["reference"] = [other["response"]]
    return rated(rows)


@loader("ji2022")
def ji2022(*files: Path) -> dict:
    """Read the chats of crowd workers with 10 agents of 5 systems, rated by the chatter.

    Agents are `A`-`E` (the systems) and `A_p`-`E_p` (the same with a persona), in two free-topic
    runs and one ice-breaker run. Raw ratings (0-100) are `human_<dimension>`, z scores
    `human_z_<dimension>`, and `human_overall` and `human_z_overall` the means of the seven;
    `robotic` and `repetitive` are already reversed. `turns` has every bot turn with its context,
    and no ratings. Worker and assignment numbers are replaced by a hash. The degraded control agent
    is excluded, as in the published statistics.
    """
    parts = _ji_dialogs(files)
    turns = [
        {"system": chat.system, "agent": chat.agent, "dialog": chat.dialog, "turn": turn,
         "context": chat.utterances[:turn], "response": chat.utterances[turn]}
        for chat in parts["dialogs"].itertuples()
        for turn in range(1, len(chat.utterances), 2)
    ]  # fmt: skip
    return parts | {"turns": turn_table(turns)}


def _ji_dialogs(files: Sequence[Path]) -> dict:
    rows, read = [], 0
    for run, file in zip(["free1", "free2", "icebreaker"], files, strict=True):
        for assignment in read_json(file):
            worker, chore = (hashlib.sha256(assignment[key].encode()).hexdigest()[:10]
                             for key in ("WorkerId", "AssignmentId"))  # fmt: skip
            read += len(assignment["data"])
            rows += [
                _ji_dialog(chat, f"worker-{worker}", f"{run}-{chore}-{position}") | {"run": run}
                for position, chat in enumerate(assignment["data"])
                if chat["model"] != "QualityControl"
            ]
    parts = rated(rows, excluded={"with the degraded quality-control agent": read - len(rows)})
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


@loader("zh*_*")  # zhao_persona to zhang_fed_turn
def mean_rated(name: str, texts: Path, *ratings: Path) -> dict:
    """Read responses with mean human ratings; `human_specificity` is new in Zhang et al. (2024).

    In the two Zhao sets the position within a context is the system; position 0 looks like the
    ground truth and the last like a random response (inferred from the ratings: 4.05 against 2.00;
    there are no labels), so position 0 serves as reference of the others.
    """
    rows: list[dict] = []
    size = SIZES.get(name, 1)
    for number, line in enumerate(read_lines(texts)):
        _, *context, response = line.split("\t")
        first = number - number % size
        truth = name.startswith("zhao") and number > first
        rows.append({"system": f"position_{number - first}" if size > 1 else "unknown",
                     "dialog": f"{name}-{number // size:03d}", "context": context,
                     "response": response,
                     "reference": [rows[first]["response"]] if truth else []})  # fmt: skip
    key = texts.stem.removesuffix("_text")
    means = {f"human_{one}": read_json(file)[key] for one, file in zip(MEANS, ratings, strict=True)}
    scores = pd.DataFrame(means, dtype="float64")
    return rated(rows, scores=scores, note="only mean ratings are published")


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
    return rated(rows, scores=_runs(gpt4, len(rows))[0])


@loader("gpt4_reliable")
def gpt4_reliable(texts: Path, *files: Path) -> dict:
    """Read the chats of Ji et al. in Zhang's order, with GPT-4's ratings of 500 of them."""
    *chats, gpt4 = files
    parts = _ji_dialogs(chats)
    known = {_plain(said): row for row, said in enumerate(parts["dialogs"]["utterances"])}
    lines = ["\n".join(line.split("\t")[1:]) for line in read_lines(texts)]
    order = [known[_plain(speech(line)[0])] for line in lines]
    dialogs, ratings = reordered(parts["dialogs"], parts["ratings"], order)
    scores, note = _runs(gpt4, len(order))
    report = pd.DataFrame([account("dialogs", len(order), note=note)])
    return {"dialogs": dialogs.join(scores), "ratings": ratings, "report": report}


def _plain(utterances: list[str]) -> str:
    return "\t".join(" ".join(text.split()) for text in utterances)


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
