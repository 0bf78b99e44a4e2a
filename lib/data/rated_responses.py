"""Corpora of rated responses, one loader each.

USR (Mehri and Eskenazi, ACL 2020) with UniEval's predictions (Zhong et al. 2022), FED (Mehri and
Eskenazi, SIGDIAL 2020), DSTC7 Track 2, DSTC10 Track 5, GRADE, Predictive Engagement, and the mean
ratings of Zhao et al. (2020) and Zhang et al. (2024).
"""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lib.data.corpus import account, loader, rated, snake
from lib.data.downloads import members, read_json, read_lines

TRUTH = "Original Ground Truth"
UNIEVAL = ["understandability", "naturalness", "coherence", "engagingness", "groundedness",
           "overall"]  # fmt: skip
PREDENG = {"Ruber_Unref_Score": "ruber_unref", "CTX_Unref_Score": "ctx_unref",
           "Eng_Score_MeanPooling": "pred_en_mean",
           "Eng_Score_MaxPooling": "pred_en_max"}  # fmt: skip
# Responses per context.
SIZES = {"zhao_persona": 6, "zhao_dailydialog": 9, "zhang_usr_topical": 6, "zhang_usr_persona": 5}
MEANS = ["overall", "interesting", "relevance", "specificity", "understandability"]
SPEAKERS = {"User": "user", "human": "user", "human_evaluator": "user",
            "System": "system", "Chatbot": "system", "model": "system"}  # fmt: skip


def utterances(text: str) -> list[str]:
    """Split a context at its newlines; blank lines at the end are not utterances.

    >>> utterances("hi . \\n hello . \\n\\n")
    ['hi .', 'hello .']
    """
    return [line.strip() for line in text.rstrip().split("\n")] if text.strip() else []


def persona(fact: str) -> list[str]:
    """Split a fact field: persona lines one by one, a passage as one.

    >>> persona("your persona: i like tea.\\nyour persona: i run.\\n"), persona("_nofact\\n")
    (['i like tea.', 'i run.'], [])
    """
    lines = [line.removeprefix("your persona:").strip() for line in fact.split("\n")]
    return [line for line in lines if line and line != "_nofact"]


@loader("usr_*")
def usr(name: str, file: Path, grade: Path | None = None) -> dict:
    """Read contexts with five or six responses each; the text is lower-cased and tokenised.

    The response of "Original Ground Truth" is the reference of the others; it has none itself, so
    that reference-based metrics leave it out (NaN), as published. USR-Topical has `score_grade`,
    the published GRADE score (NaN for the ground truth).
    """
    people: dict[str, str] = {}  # some annotators are named: number them in order of appearance
    rows = []
    for block, item in enumerate(read_json(file)):
        who = [people.setdefault(one, f"person{len(people) + 1}") for one in item["annotators"]]
        for response in item["responses"]:
            ratings = {
                dimension: dict(zip(who, marks, strict=True))
                for dimension, marks in response.items()
                if isinstance(marks, list)
            }
            rows.append({"system": response["model"], "dialog": f"{name}-{block:03d}",
                         "context": utterances(item["context"]), "response": response["response"],
                         "fact": persona(item["fact"]), "ratings": ratings})  # fmt: skip
    without = _add_references(rows)
    parts = rated(rows, note=f"{without} have no reference (the ground truth itself)")
    if grade:
        generated = parts["turns"].query("system != @TRUTH").index
        parts["turns"]["score_grade"] = pd.Series(read_json(grade)["grade"], generated)
    return parts


def _add_references(rows: list[dict]) -> int:
    """Give each response the ground truth of its context; return how many have none."""
    truth = {row["dialog"]: [row["response"]] for row in rows if row["system"] == TRUTH}
    for row in rows:
        row["reference"] = [] if row["system"] == TRUTH else truth.get(row["dialog"], [])
    return sum(not row["reference"] for row in rows)


@loader("unieval_topical")
def unieval(file: Path) -> dict:
    """Read UniEval's benchmark on the responses of USR-Topical.

    Mean ratings are `human_*`, its predictions `score_unieval_*`. The prediction of engagingness
    is a sum over sentences and may exceed 1; `overall` is the mean of the five. Only means over
    the three annotators were published, so there are no single ratings.
    """
    rows: list[dict] = []
    blocks: dict[tuple, int] = {}
    for item in read_json(file):
        block = blocks.setdefault((item["source"], item["context"]), len(blocks))
        rows.append({"system": item["system_id"], "dialog": f"usr_topical-{block:03d}",
                     "context": utterances(item["source"]), "response": item["system_output"],
                     "fact": persona(item["context"])})  # fmt: skip
        for field, prefix in [("scores", "human_"), ("predict_scores", "score_unieval_")]:
            rows[-1] |= {prefix + name: float(item[field][name]) for name in UNIEVAL}
    _add_references(rows)
    return rated(rows, note="ratings are means of 3 annotators")


@loader("fed_turn")
def fed_turn(file: Path, scores: Path) -> dict:
    """Read FED's 375 rated responses of Meena, Mitsuku and people, five annotators each.

    Ratings marked "N/A (...)" are excluded and counted; an item with none left is NaN. FED scores
    computed with DialoGPT-large are published beside it: `score_fed_<aspect>`, 18 aspects.
    """
    rows = [
        {"system": item["system"], "dialog": dialog, "context": speech(item["context"])[0],
         "response": "\n".join(speech(item["response"])[0]), "ratings": item["annotations"]}
        for dialog, item in fed_items(file)
        if "response" in item
    ]  # fmt: skip
    return rated(rows, scores=fed_scores(scores))


@loader("fed_engaging")
def fed_engaging(file: Path, scores: Path) -> dict:
    """Read FED-eng of EnDex: turns with mean Engaging >= 1.6 (label 1) or <= 0.8 (label 0).

    261 of the 375 turns. The rule is inferred from the size of the set and from its printed
    Pearson and Spearman being equal, as they are for a binary label; the paper does not state it.
    `human_engaging` is the label, `human_engaging_mean` the mean rating on 0-2.
    """
    parts = fed_turn(file, scores)
    turns, ratings = parts["turns"], parts["ratings"]
    mean = turns["human_engaging"].round(6)  # means of 5 integers: undo the last-bit error
    chosen = turns.index[(mean >= 1.6) | (mean <= 0.8)]
    table = turns.loc[chosen].assign(human_engaging_mean=mean[chosen])
    table["human_engaging"] = (mean[chosen] >= 1.6).astype(float)
    kept = ratings[ratings["item"].isin(chosen)].reset_index(drop=True)
    kept["item"] = chosen.get_indexer(kept["item"])
    middling = {"have a middling mean Engaging": len(turns) - len(chosen)}
    report = pd.DataFrame([account("responses", len(table), middling)])
    return {"turns": table.reset_index(drop=True), "ratings": kept, "report": report}


def fed_items(file: Path) -> Iterator[tuple[str, dict]]:
    """Yield (dialog, item): the dialog-level item closes the block of its turns."""
    block = 0
    for item in read_json(file):
        yield f"fed-{block:03d}", item
        block += "response" not in item


def speech(text: str) -> tuple[list[str], list[str]]:
    """Split lines like "User: Hi!" into utterances and speakers."""
    lines = [line.partition(":") for line in utterances(text)]
    return [said.strip() for _, _, said in lines], [SPEAKERS[who] for who, _, _ in lines]


def fed_scores(file: Path) -> pd.DataFrame:
    """Read `score_fed_<aspect>`; the aspect "understand" is named as its rating is."""
    text = re.sub(r"}\s*{", "},{", file.read_text(encoding="utf-8"))  # one value after another
    items = json.loads(f"[{text}]")
    table = pd.DataFrame([item["score"] for item in items], dtype="float64")
    table = table.rename(columns={"understand": "understanding"})
    return table.rename(columns=lambda name: f"score_fed_{snake(name)}")


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
    """Read a DSTC10 Track 5 development set (Zhang et al. 2021): TP, UP, ZD, ZP and GD.

    Utterances of the context are separated by newlines; the "prompt" of the published
    style-matching and emotion-matching figures is the whole context. The references are the file's
    own (GD has four), also for the ground truth itself. A run of rows with one context is one
    dialog. GD (Gupta et al. 2019) has only the mean of its five annotators.
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


@loader("dstc10_*_clean")  # these two have files of another shape
def dstc10_test(name: str, texts: Path, ratings: Path) -> dict:
    """Read a hidden test set of DSTC10 Track 5, as Zhang et al. (2024) give it out: PD10 and TD10.

    Contexts are cut to their last three utterances. The rating is the mean appropriateness on 1-5
    (Giorgi et al. 2023, Table 6). Systems are not named. The file holds them one after another,
    each answering the same 500 contexts (one system of PD10 only 329 of them), so `system` is the
    block: a new one begins where a context comes back. There are no references.
    """
    rows, block, places, answered = [], 0, {}, set()
    for line in read_lines(texts):
        _, *context, response = line.split("\t")
        place = places.setdefault(tuple(context), len(places))
        if place in answered:
            block, answered = block + 1, set()
        answered.add(place)
        rows.append({"system": f"block_{block}", "dialog": f"{name}-{place:03d}",
                     "context": context, "response": response})  # fmt: skip
    key = texts.stem.removesuffix("_text")
    scores = pd.DataFrame({"human_appropriateness": read_json(ratings)[key]}, dtype="float64")
    return rated(rows, scores=scores, note="only mean ratings are published")


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
