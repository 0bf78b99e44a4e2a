"""DSTC7 Track 2, DSTC10 Track 5, GRADE, and Predictive Engagement (BETTER, PredEng-600, ConvAI)."""

import hashlib
import io
import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd

from lib.data.corpus import loader, rated
from lib.data.downloads import members, read_json, read_lines
from lib.data.usr_and_fed import persona, utterances

PREDENG = {"Ruber_Unref_Score": "ruber_unref", "CTX_Unref_Score": "ctx_unref",
           "Eng_Score_MeanPooling": "pred_en_mean",
           "Eng_Score_MaxPooling": "pred_en_max"}  # fmt: skip


@loader("dstc7")
def dstc7(archive: Path) -> dict:
    """Read DSTC7 Track 2 (Galley et al. 2019): 10 systems on 1000 Reddit contexts, three judges.

    The released context column holds only the grounding passage, so `fact` has it and `context` is
    empty; `turn` is the file's Depth, the number of earlier turns. TeamCE was judged twice (as
    TeamCE and TeamEC): its six judgements per context are merged. "Human" is one held-out human
    response. `human_overall` is the mean of relevance and informativeness.
    """
    files = {name.rpartition("task2-")[2]: raw for name, raw in members(archive, str)}
    facts = _unquoted(files["context.tsv"]).set_index("InstanceID")
    # A row holds as many references as there are: the header names only the first.
    cells = [line.split("\t") for line in files["gold_responses.tsv"].decode().split("\n")[1:]]
    references = {key: [one for one in some if one.strip()] for key, *some in cells}
    rows = [
        {"system": row.SystemID, "dialog": row.InstanceID, "response": row.Response,
         "turn": int(facts.at[row.InstanceID, "Depth"]), "reference": references[row.InstanceID],
         "fact": [facts.at[row.InstanceID, "Context"].strip()]}
        for row in _unquoted(files["system_responses.tsv"]).itertuples()
    ]  # fmt: skip
    place = {(row["system"], row["dialog"]): number for number, row in enumerate(rows)}
    ratings = [
        (place[row.SystemID.replace("TeamEC", "TeamCE"), row.InstanceID], row.JudgeID, *rating)
        for row in _unquoted(files["human-eval-per-judge.tsv"]).itertuples()
        for rating in [("relevance", row.Relevance), ("informativeness", row.Informativeness)]
    ]
    parts = rated(rows, ratings=ratings)
    turns = parts["turns"]
    turns["human_overall"] = (turns["human_relevance"] + turns["human_informativeness"]) / 2
    return parts


def _unquoted(raw: bytes) -> pd.DataFrame:
    text = io.BytesIO(raw.removeprefix(b"\xef\xbb\xbf"))
    return pd.read_csv(text, sep="\t", quoting=3, dtype=str, keep_default_na=False)


@loader("dstc10_*")
def dstc10(name: str, file: Path) -> dict:
    """Read a DSTC10 Track 5 development set (Zhang et al. 2021): TP, UP, ZD and ZP.

    Utterances of the context are separated by newlines; the "prompt" of the published
    style-matching and emotion-matching figures is the whole context. The reference is the file's
    own, also for the ground truth itself. A run of rows with one context is one dialog.
    """
    rows, block, before = [], -1, None
    for item in read_json(file):
        if item["context"] != before:  # the facts of one context differ in white space
            block, before = block + 1, item["context"]
        rows.append({"system": item["model"], "dialog": f"{name}-{block:03d}",
                     "context": utterances(before), "response": item["response"],
                     "reference": item["reference"], "fact": persona(item.get("fact", "")),
                     "ratings": item["annotations"]})  # fmt: skip
    return rated(rows)


@loader("grade_*")
def grade(name: str, *files: Path) -> dict:
    """Read one of GRADE's eight sets (Huang et al. 2020): coherence, 8 to 11 annotators each.

    Line i of context, response and reference belong together; the single ratings sit in one file
    for all sets, in the same order. The text is tokenised. `dialog` names the context by its
    content, so sets on one corpus share it.
    """
    _, corpus, system = name.split("_", 2)
    *texts, judgements = files
    seen, rows = Counter(), []
    judged = [
        {"coherence": json.loads(item["HumanScores"])}
        for item in read_json(judgements)
        if (item["Dataset"].removesuffix("_EVAL"), item["DialogModel"]) == (corpus, system)
    ]
    lines = zip(*map(read_lines, texts), judged, strict=True)
    for context, response, reference, ratings in lines:
        key = f"{corpus}-{hashlib.sha256(context.encode()).hexdigest()[:8]}"
        seen[key] += 1
        rows.append({"system": system, "dialog": f"{key}-{seen[key]}" if seen[key] > 1 else key,
                     "context": context.split("|||"), "response": response,
                     "reference": [reference], "ratings": ratings})  # fmt: skip
    again = len(rows) - len(seen)
    return rated(rows, note=f"{again} repeat an earlier context" if again else "")


@loader("better")
def better(file: Path) -> dict:
    """Read BETTER (Ghazarian et al. 2019): query and reply of ConvAI, engaging (1) or not (0).

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
    """Read PredEng-600 (Ghazarian et al. 2020): 300 DailyDialog queries with two replies each.

    The file has one rating per row, three to a reply: 900 of generated replies, then 900 of human
    ones. Query i of both halves is the same, so the human reply is the reference of the generated.
    """
    cells = _quoted(file).apply(lambda column: column.str.strip())
    half = len(cells) // 2
    cells["system"] = ["generated"] * half + ["ground_truth"] * half
    reply = cells.groupby(["system", "query", "response"], sort=False)
    cells["item"], cells["annotator"] = reply.ngroup(), reply.cumcount() + 1
    first = cells[cells["annotator"] == 1]
    rows = [
        {"system": cell.system, "dialog": f"predeng-{number % (len(first) // 2):03d}",
         "context": [cell.query], "response": cell.response}
        | {f"score_{new}": float(getattr(cell, old)) for old, new in PREDENG.items()}
        for number, cell in enumerate(first.itertuples())
    ]  # fmt: skip
    for generated, human in zip(rows, rows[len(rows) // 2 :], strict=False):
        generated["reference"] = [human["response"]]
    ratings = [(cell.item, f"annotator{cell.annotator}", "engaging", cell.human_score)
               for cell in cells.itertuples()]  # fmt: skip
    return rated(rows, ratings=ratings)


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
