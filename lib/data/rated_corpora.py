"""The rated corpora, one loader each: from published files to the parts of a `Corpus`.

USR (Mehri and Eskenazi, ACL 2020) with UniEval's predictions (Zhong et al. 2022), FED (Mehri and
Eskenazi, SIGDIAL 2020), DSTC7 Track 2 (Galley et al. 2019), DSTC10 Track 5 (Zhang et al. 2021),
GRADE (Huang et al. 2020); BETTER and PredEng-600 (Ghazarian et al. 2019, 2020); the chats
of Ji et al. (2022); the mean ratings of Zhao et al. (2020) and Zhang et al. (2024), "A
Comprehensive Analysis ...", and their GPT-4 ratings of whole dialogs.
"""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.data.chat_logs import speaker_role
from lib.data.corpora import corpus_parts, loader, report_row, snake_case
from lib.data.storage import archive_members, read_json, read_lines
from lib.data.turn_table import turn_table

TRUTH = "Original Ground Truth"
SPEAKERS = {"user": "user", "assistant": "system"}
REPLY = ["system", "query", "response"]
PREDENG = {"Ruber_Unref_Score": "ruber_unref", "CTX_Unref_Score": "ctx_unref",
           "Eng_Score_MeanPooling": "pred_en_mean",
           "Eng_Score_MaxPooling": "pred_en_max"}  # fmt: skip
# Responses per context.
SIZES = {"zhao_persona": 6, "zhao_dailydialog": 9, "zhang_usr_topical": 6, "zhang_usr_persona": 5}
MEANS = ["overall", "interesting", "relevance", "specificity", "understandability"]
JUDGED = {"coh": "coherence", "div": "diversity", "eng": "engagingness",
          "inf": "informativeness", "ovr": "overall"}  # fmt: skip


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
            marks = {name: marks for name, marks in response.items() if isinstance(marks, list)}
            ratings = {name: dict(zip(who, given, strict=True)) for name, given in marks.items()}
            rows.append({"system": response["model"], "dialog": f"{name}-{block:03d}",
                         "context": utterances(item["context"]), "response": response["response"],
                         "fact": persona(item["fact"]), "ratings": ratings})  # fmt: skip
    without = _add_references(rows)
    parts = corpus_parts(rows, note=f"{without} have no reference (the ground truth itself)")
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
            rows[-1] |= {prefix + name: float(item[field][name]) for name in item["scores"]}
    _add_references(rows)
    return corpus_parts(rows, note="ratings are means of 3 annotators")


@loader("fed_turn")
def fed_turn(file: Path, scores: Path) -> dict:
    """Read FED's 375 rated responses of Meena, Mitsuku and people, five annotators each.

    Ratings marked "N/A (...)" are excluded and counted; an item with none left is NaN. FED scores
    computed with DialoGPT-large are published beside it: `score_fed_<aspect>`, 18 aspects.
    """
    return corpus_parts(_fed(file)[0], scores=_fed_scores(scores))


@loader("fed_dialog")
def fed_dialog(file: Path, scores: Path) -> dict:
    """Read FED's 125 rated dialogs; see `fed_turn`."""
    parts = corpus_parts(_fed(file)[1], scores=_fed_scores(scores))
    unrated = parts["dialogs"].filter(like="human_").isna().any(axis=1).sum()
    note = f"{unrated} lack a mean in some dimension (NaN): every rating was N/A"
    parts["report"].loc[0, "notes"] = note
    return parts


def _fed(file: Path) -> tuple[list[dict], list[dict]]:
    """Read the rows of turns and of dialogs; the item of a dialog closes the block of its turns."""
    turns, dialogs = [], []
    for item in read_json(file):
        said, speakers = speech(item["context"])
        row = {"system": item["system"], "dialog": f"fed-{len(dialogs):03d}",
               "ratings": item["annotations"]}  # fmt: skip
        if "response" in item:
            response = "\n".join(speech(item["response"])[0])
            turns.append(row | {"context": said, "response": response})
        else:
            dialogs.append(row | {"utterances": said, "speakers": speakers})
    return turns, dialogs


@loader("fed_engaging")
def fed_engaging(file: Path, scores: Path) -> dict:
    """Read FED-eng of EnDex: turns with mean Engaging >= 1.6 (label 1) or <= 0.8 (label 0).

    261 of the 375 turns. The rule is inferred from the size of the set and from its printed
    Pearson and Spearman being equal, as they are for a binary label; the paper does not state it.
    `human_engaging` is the label, `human_engaging_mean` the mean rating on 0-2.
    """
    parts = fed_turn(file, scores)
    mean = parts["turns"]["human_engaging"].round(6)  # of 5 integers: undo the last-bit error
    chosen = mean.index[(mean >= 1.6) | (mean <= 0.8)]
    turns = parts["turns"].assign(human_engaging_mean=mean)
    turns["human_engaging"] = (mean >= 1.6).astype(float)
    turns, ratings = reordered(turns, parts["ratings"], chosen)
    middling = {"have a middling mean Engaging": len(mean) - len(chosen)}
    report = pd.DataFrame([report_row("responses", len(turns), middling)])
    return {"turns": turns, "ratings": ratings, "report": report}


def reordered(
    table: pd.DataFrame, ratings: pd.DataFrame, order: Sequence[int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Take some rows of a table, in the order of their positions, and the ratings of these."""
    place = pd.DataFrame({"item": order, "place": range(len(order))})
    ratings = ratings.merge(place, on="item").assign(item=lambda rows: rows.pop("place"))
    return table.iloc[order].reset_index(drop=True), ratings


def speech(text: str) -> tuple[list[str], list[str]]:
    """Split lines like "User: Hi!" into utterances and speakers.

    >>> speech("User: Hi!\\nSystem: Oh: you?")
    (['Hi!', 'Oh: you?'], ['user', 'system'])
    """
    lines = [line.partition(":") for line in utterances(text)]
    return [said.strip() for _, _, said in lines], [
        SPEAKERS[speaker_role(who)] for who, _, _ in lines
    ]


def _fed_scores(file: Path) -> pd.DataFrame:
    """Read `score_fed_<aspect>`; the aspect "understand" is named as its rating is."""
    text = re.sub(r"}\s*{", "},{", file.read_text(encoding="utf-8"))  # one value after another
    items = json.loads(f"[{text}]")
    table = pd.DataFrame([item["score"] for item in items], dtype="float64")
    table = table.rename(columns={"understand": "understanding"})
    return table.rename(columns=lambda name: f"score_fed_{snake_case(name)}")


@loader("dstc7")
def dstc7(archive: Path) -> dict:
    """Read DSTC7 Track 2: 10 systems on 1000 Reddit contexts, three judges.

    The released context column holds only the grounding passage, so `fact` has it and `context` is
    empty; `turn` is the file's Depth, the number of earlier turns. TeamCE was judged twice (as
    TeamCE and TeamEC): its six judgements per context are merged. "Human" is one held-out human
    response. `human_overall` is the mean of relevance and informativeness.
    """
    files = {name.rpartition("task2-")[2]: raw for name, raw in archive_members(archive, str)}
    form = {"sep": "\t", "quoting": 3}
    facts = _cells(io.BytesIO(files["context.tsv"]), **form).set_index("InstanceID")
    replies = _cells(io.BytesIO(files["system_responses.tsv"]), **form)
    marks = _cells(io.BytesIO(files["human-eval-per-judge.tsv"]), **form)
    # A row holds as many references as there are: the header names only the first.
    cells = [line.split("\t") for line in files["gold_responses.tsv"].decode().split("\n")[1:]]
    references = {key: [one for one in some if one.strip()] for key, *some in cells}
    rows = [
        {"system": row.SystemID, "dialog": row.InstanceID, "response": row.Response,
         "turn": int(facts.at[row.InstanceID, "Depth"]), "reference": references[row.InstanceID],
         "fact": [facts.at[row.InstanceID, "Context"].strip()]}
        for row in replies.itertuples()
    ]  # fmt: skip
    place = {(row["system"], row["dialog"]): number for number, row in enumerate(rows)}
    ratings = [
        (place[row.SystemID.replace("TeamEC", "TeamCE"), row.InstanceID], row.JudgeID, *rating)
        for row in marks.itertuples()
        for rating in [("relevance", row.Relevance), ("informativeness", row.Informativeness)]
    ]
    parts = corpus_parts(rows, ratings=ratings)
    both = parts["turns"][["human_relevance", "human_informativeness"]]
    parts["turns"]["human_overall"] = both.sum(axis=1) / 2
    return parts


def _cells(file: Path | io.BytesIO, **form: Any) -> pd.DataFrame:
    return pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig", **form)


@loader("dstc10_*")
def dstc10(name: str, file: Path) -> dict:
    """Read a DSTC10 Track 5 development set: TP, UP, ZD, ZP and GD.

    Utterances of the context are separated by newlines; the "prompt" of the published
    style-matching and emotion-matching figures is the whole context. The references are the file's
    own (GD has four), also for the ground truth itself. A run of rows with one context is one
    dialog. GD (Gupta et al. 2019) has only the mean of its five annotators.
    """
    table = pd.DataFrame(read_json(file)).drop(columns="dialogue_id")
    table = table.rename(columns={"model": "system", "annotations": "ratings"})
    new = table["context"] != table["context"].shift()  # the facts of one context differ in spaces
    table["dialog"] = [f"{name}-{run - 1:03d}" for run in new.cumsum()]
    table["context"] = table["context"].map(utterances)
    if "fact" in table:
        table["fact"] = table["fact"].map(persona)
    if not name.endswith("gupta"):
        return corpus_parts(table.to_dict("records"))
    # The one rating in its file is the mean of five annotators.
    table["human_overall"] = [marks["overall"][0] for marks in table.pop("ratings")]
    return corpus_parts(table.to_dict("records"), note="only mean ratings are published")


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
    return corpus_parts(rows, note=f"{again} repeat an earlier context" if again else "")


@loader("better")
def better(file: Path) -> dict:
    """Read BETTER: query and reply of ConvAI, engaging (1) or not (0).

    The systems are not named; the texts are tokenised. An empty reply stays an empty response.
    """
    names = {"query": "context", "reply": "response"}
    cells = _cells(file).rename(columns=names).assign(system="convai")
    cells["ratings"] = [{"engaging": {"published label": label}} for label in cells.pop("label")]
    cells["dialog"], cells["context"] = "better-" + cells.pop("id"), [[c] for c in cells["context"]]
    empty = cells["response"].str.strip().eq("").sum()
    return corpus_parts(cells.to_dict("records"), note=f"{empty} are empty and kept")


@loader("predeng600")
def predeng600(file: Path) -> dict:
    """Read PredEng-600: 300 DailyDialog queries with two replies each.

    The file has one rating per row, three to a reply: 900 of generated replies, then 900 of human
    ones. Query i of both halves is the same, so the human reply is the reference of the generated.
    """
    cells = _cells(file).apply(lambda column: column.str.strip())
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
    return corpus_parts(rows)


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
    parts = corpus_parts(
        rows, excluded={"with the degraded quality-control agent": read - len(rows)}
    )
    dialogs = parts["dialogs"]
    raw, z = (dialogs.filter(regex=form).mean(axis=1) for form in ("^human_(?!z_)", "^human_z_"))
    return parts | {"dialogs": dialogs.assign(human_overall=raw, human_z_overall=z)}


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
    rows, size = _responses(texts), SIZES.get(name, 1)
    for number, row in enumerate(rows):
        place = number % size
        row["system"] = f"position_{place}" if size > 1 else "unknown"
        row["dialog"] = f"{name}-{number // size:03d}"
        truth = name.startswith("zhao") and place > 0
        row["reference"] = [rows[number - place]["response"]] if truth else []
    return _with_means(rows, texts, MEANS, ratings)


@loader("dstc10_*_clean")
def dstc10_test(name: str, texts: Path, ratings: Path) -> dict:
    """Read a hidden test set of DSTC10 Track 5, as Zhang et al. (2024) give it out: PD10 and TD10.

    Contexts are cut to their last three utterances. The rating is the mean appropriateness on 1-5
    (Giorgi et al. 2023, Table 6). Systems are not named. The file holds them one after another,
    each answering the same 500 contexts (one system of PD10 only 329 of them), so `system` is the
    block: a new one begins where a context comes back. There are no references.
    """
    rows, block, places, answered = _responses(texts), 0, {}, set()
    for row in rows:
        place = places.setdefault(tuple(row["context"]), len(places))
        if place in answered:
            block, answered = block + 1, set()
        answered.add(place)
        row |= {"system": f"block_{block}", "dialog": f"{name}-{place:03d}"}
    return _with_means(rows, texts, ["appropriateness"], [ratings])


def _responses(texts: Path) -> list[dict]:
    lines = [line.split("\t")[1:] for line in read_lines(texts)]
    return [{"context": context, "response": response} for *context, response in lines]


def _with_means(rows: list[dict], texts: Path, names: list[str], ratings: Sequence[Path]) -> dict:
    marks = [read_json(file)[texts.stem.removesuffix("_text")] for file in ratings]
    scores = pd.DataFrame(dict(zip(names, marks, strict=True)), dtype="float64")
    return corpus_parts(
        rows, scores=scores.add_prefix("human_"), note="only mean ratings are published"
    )


@loader("gpt4_fed")
def gpt4_fed(dialogs: Path, gpt4: Path) -> dict:
    """Read the 125 FED dialogs with five GPT-4 runs and the five annotators' own ratings.

    The runs are `score_gpt4_<dimension>_run<n>`, on 1-5.
    """
    rows = [
        {"system": item["model"], "dialog": f"fed-{number:03d}",
         "utterances": [one["text"] for one in item["dialog"]],
         "speakers": [SPEAKERS[speaker_role(one["speaker"])] for one in item["dialog"]],
         "ratings": item["annotations"]}
        for number, item in enumerate(read_json(dialogs))
    ]  # fmt: skip
    return corpus_parts(rows, scores=_runs(gpt4, len(rows)))


@loader("gpt4_reliable")
def gpt4_reliable(texts: Path, *files: Path) -> dict:
    """Read the chats of Ji et al. in Zhang's order, with GPT-4's ratings of 500 of them."""
    *runs, gpt4 = files
    parts = _ji_dialogs(runs)
    words = [tuple(" ".join(said).split()) for said in parts["dialogs"]["utterances"]]
    known = dict(zip(words, range(len(words)), strict=True))
    chats = [speech("\n".join(line.split("\t")[1:]))[0] for line in read_lines(texts)]
    order = [known[tuple(" ".join(said).split())] for said in chats]
    dialogs, ratings = reordered(parts["dialogs"], parts["ratings"], order)
    scores = _runs(gpt4, len(order))
    note = f"GPT-4 rated {len(scores.dropna())}; its scores of the others are NaN"
    report = pd.DataFrame([report_row("dialogs", len(order), note=note)])
    return {"dialogs": dialogs.join(scores), "ratings": ratings, "report": report}


def _runs(file: Path, count: int) -> pd.DataFrame:
    """Read five runs in five dimensions; NaN for dialogs that are not among `indices`."""
    data = read_json(file)
    columns = {
        f"score_gpt4_{dimension}_run{run}": [float(score) for score in data[f"{short}_{run}"]]
        for short, dimension in JUDGED.items()
        for run in range(1, 6)
    }
    return pd.DataFrame(columns, data.get("indices", range(count))).reindex(range(count))
