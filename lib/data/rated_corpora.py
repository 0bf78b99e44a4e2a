"""The rated corpora, one loader each: from published files to the parts of a `Corpus`.

USR (Mehri and Eskenazi, ACL 2020) with UniEval's predictions (Zhong et al. 2022), FED (Mehri and
Eskenazi, SIGDIAL 2020), DSTC7 Track 2 (Galley et al. 2019), DSTC10 Track 5 (Zhang et al. 2021),
GRADE (Huang et al. 2020); BETTER and PredEng-600 (Ghazarian et al. 2019, 2020); the chats
of Ji et al. (2022); the mean ratings of Zhao et al. (2020) and Zhang et al. (2024), "A
Comprehensive Analysis ...", and their GPT-4 ratings of whole dialogs.

Each loader names the systems of its corpus in the column `system`.
"""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib.data.corpora import Judgement, corpus_parts, loader, report_row, snake_case
from lib.data.storage import (
    archive_members,
    read_json,
    read_lines,
    registry,
    short_hash,
)
from lib.data.turn_table import turn_table

GROUND_TRUTH = "Original Ground Truth"
ONLY_MEANS = "only mean ratings are published"
TSV = {"sep": "\t", "quoting": csv.QUOTE_NONE}
ROLES = {
    "User": "user",
    "human": "user",
    "System": "system",
    "Chatbot": "system",
    "model": "system",
}
PREDENG_SCORES = {
    "Ruber_Unref_Score": "score_ruber_unref",
    "CTX_Unref_Score": "score_ctx_unref",
    "Eng_Score_MeanPooling": "score_pred_en_mean",
    "Eng_Score_MaxPooling": "score_pred_en_max",
}
MEAN_RATINGS = [
    "overall",
    "interesting",
    "relevance",
    "specificity",
    "understandability",
]
GPT4_DIMENSIONS = {
    "coh": "coherence",
    "div": "diversity",
    "eng": "engagingness",
    "inf": "informativeness",
    "ovr": "overall",
}


def split_context(text: str) -> list[str]:
    """Split a context at its newlines; blank lines at the end are not utterances.

    >>> split_context("hi . \\n hello . \\n\\n")
    ['hi .', 'hello .']
    """
    text = text.rstrip()
    return [line.strip() for line in text.split("\n")] if text else []


def split_fact(fact: str) -> list[str]:
    """Split a fact field: persona lines one by one, a passage as one.

    >>> split_fact("your persona: i like tea.\\nyour persona: i run.\\n"), split_fact("_nofact\\n")
    (['i like tea.', 'i run.'], [])
    """
    lines = [line.removeprefix("your persona:").strip() for line in fact.split("\n")]
    return [line for line in lines if line and line != "_nofact"]


def split_dialog(text: str) -> tuple[list[str], list[str]]:
    """Split lines like "User: Hi!" into utterances and speakers.

    >>> split_dialog("User: Hi!\\nSystem: Oh: you?")
    (['Hi!', 'Oh: you?'], ['user', 'system'])
    """
    utterances = []
    speakers = []
    for line in split_context(text):
        label, _, utterance = line.partition(":")
        utterances.append(utterance.strip())
        speakers.append(ROLES[label])
    return utterances, speakers


@loader("usr_*")
def load_usr(name: str, file: Path, grade: Path | None = None) -> dict:
    """Read contexts with five or six responses each; the text is lower-cased and tokenised.

    The response of "Original Ground Truth" is the reference of the others; it has none itself, so
    that reference-based metrics leave it out (NaN), as published. USR-Topical has `score_grade`,
    the published GRADE score (NaN for the ground truth).
    """
    pseudonyms: dict[
        str, str
    ] = {}  # some annotators are named: number them as they appear
    rows = []
    for block, item in enumerate(read_json(file)):
        for annotator in item["annotators"]:
            pseudonyms.setdefault(annotator, f"person{len(pseudonyms) + 1}")
        annotators = [pseudonyms[annotator] for annotator in item["annotators"]]
        for response in item["responses"]:
            ratings = {}
            for dimension, values in response.items():
                if isinstance(values, list):
                    ratings[dimension] = dict(zip(annotators, values, strict=True))
            rows.append(
                {
                    "system": response["model"],
                    "dialog": f"{name}-{block:03d}",
                    "context": split_context(item["context"]),
                    "response": response["response"],
                    "fact": split_fact(item["fact"]),
                    "ratings": ratings,
                }
            )
    without = _add_references(rows)
    parts = corpus_parts(
        rows, note=f"{without} have no reference (the ground truth itself)"
    )
    if grade:
        turns = parts["turns"]
        generated = turns.index[turns["system"] != GROUND_TRUTH]
        turns["score_grade"] = pd.Series(read_json(grade)["grade"], generated)
    return parts


def _add_references(rows: list[dict]) -> int:
    """Give each response the ground truth of its context; return how many have none."""
    truths = [row for row in rows if row["system"] == GROUND_TRUTH]
    references = {row["dialog"]: [row["response"]] for row in truths}
    for row in rows:
        is_truth = row["system"] == GROUND_TRUTH
        row["reference"] = [] if is_truth else references.get(row["dialog"], [])
    return sum(not row["reference"] for row in rows)


@loader("unieval_topical")
def load_unieval(file: Path) -> dict:
    """Read UniEval's benchmark on the responses of USR-Topical.

    Mean ratings are `human_*`, its predictions `score_unieval_*`. The prediction of engagingness
    is a sum over sentences and may exceed 1; `overall` is the mean of the five. Only means over
    the three annotators were published, so there are no single ratings.
    """
    blocks: dict[tuple, int] = {}
    rows = []
    for item in read_json(file):
        block = blocks.setdefault((item["source"], item["context"]), len(blocks))
        row = {
            "system": item["system_id"],
            "dialog": f"usr_topical-{block:03d}",
            "context": split_context(item["source"]),
            "response": item["system_output"],
            "fact": split_fact(item["context"]),
        }
        for dimension, rating in item["scores"].items():
            row[f"human_{dimension}"] = float(rating)
        for dimension in item["scores"]:
            row[f"score_unieval_{dimension}"] = float(item["predict_scores"][dimension])
        rows.append(row)
    _add_references(rows)
    return corpus_parts(rows, note="ratings are means of 3 annotators")


@loader("fed_turn")
def load_fed_turn(file: Path, scores: Path) -> dict:
    """Read FED's 375 rated responses of Meena, Mitsuku and people, five annotators each.

    Ratings marked "N/A (...)" are excluded and counted; an item with none left is NaN. FED scores
    computed with DialoGPT-large are published with it: `score_fed_<aspect>`, 18 aspects.
    """
    turns, _ = _fed_rows(file)
    return corpus_parts(turns, scores=_fed_scores(scores))


@loader("fed_dialog")
def load_fed_dialog(file: Path, scores: Path) -> dict:
    """Read FED's 125 rated dialogs; see `load_fed_turn`."""
    _, dialogs = _fed_rows(file)
    parts = corpus_parts(dialogs, scores=_fed_scores(scores))
    unrated = parts["dialogs"].filter(like="human_").isna().any(axis=1).sum()
    note = f"{unrated} without a mean in some dimension (NaN): every rating was N/A"
    parts["report"].loc[0, "notes"] = note
    return parts


def _fed_rows(file: Path) -> tuple[list[dict], list[dict]]:
    """The rows of turns and of dialogs; the item of a dialog comes after those of its turns."""
    turns = []
    dialogs = []
    for item in read_json(file):
        utterances, speakers = split_dialog(item["context"])
        row = {
            "system": item["system"],
            "dialog": f"fed-{len(dialogs):03d}",
            "ratings": item["annotations"],
        }
        if "response" in item:
            response, _ = split_dialog(item["response"])
            turns.append(row | {"context": utterances, "response": "\n".join(response)})
        else:
            dialogs.append(row | {"utterances": utterances, "speakers": speakers})
    return turns, dialogs


def _fed_scores(file: Path) -> pd.DataFrame:
    """Read `score_fed_<aspect>`; the aspect "understand" is named as its rating is."""
    # The file has one JSON value after another.
    text = re.sub(r"}\s*{", "},{", file.read_text(encoding="utf-8"))
    items = json.loads(f"[{text}]")
    table = pd.DataFrame([item["score"] for item in items], dtype="float64")
    table = table.rename(columns={"understand": "understanding"})
    return table.rename(columns=snake_case).add_prefix("score_fed_")


@loader("fed_engaging")
def load_fed_engaging(file: Path, scores: Path) -> dict:
    """Read FED-eng of EnDex: turns with mean Engaging >= 1.6 (label 1) or <= 0.8 (label 0).

    261 of the 375 turns. The rule is inferred from the size of the set and from its printed
    Pearson and Spearman being equal, as they are for a binary label; the paper does not state it.
    `human_engaging` is the label, `human_engaging_mean` the mean rating on 0-2.
    """
    parts = load_fed_turn(file, scores)
    turns = parts["turns"]
    mean = turns["human_engaging"].round(6)  # of 5 integers: undo the last-bit error
    turns["human_engaging_mean"] = mean
    turns["human_engaging"] = (mean >= 1.6).astype(float)
    labelled = turns.index[(mean >= 1.6) | (mean <= 0.8)]
    excluded = {"have a middling mean Engaging": len(turns) - len(labelled)}
    report = pd.DataFrame([report_row("responses", len(labelled), excluded)])
    return {
        "turns": turns.loc[labelled].reset_index(drop=True),
        "ratings": _ratings_of(labelled, parts["ratings"]),
        "report": report,
    }


def _ratings_of(items: Sequence[int], ratings: pd.DataFrame) -> pd.DataFrame:
    """The ratings of some items, which are numbered anew in the order of `items`."""
    new_number = pd.Series(range(len(items)), items)
    ratings = ratings[ratings["item"].isin(items)].reset_index(drop=True)
    return ratings.assign(item=ratings["item"].map(new_number))


@loader("dstc7")
def load_dstc7(archive: Path) -> dict:
    """Read DSTC7 Track 2: 10 systems on 1000 Reddit contexts, three judges.

    The released context column holds only the grounding passage, so `fact` has it and `context` is
    empty; `turn` is the file's Depth, the number of earlier turns. TeamCE was judged twice (as
    TeamCE and TeamEC): its six judgements per context are merged. "Human" is one held-out human
    response. `human_overall` is the mean of relevance and informativeness.
    """
    members = archive_members(archive)
    files = {
        name.rpartition("task2-")[2]: io.BytesIO(content) for name, content in members
    }
    contexts = _read_cells(files["context.tsv"], **TSV).set_index("InstanceID")
    replies = _read_cells(files["system_responses.tsv"], **TSV)
    # A row holds as many references as there are: the header names only the first.
    references = {}
    for line in files["gold_responses.tsv"].read().decode().split("\n")[1:]:
        instance, *texts = line.split("\t")
        references[instance] = [text for text in texts if text.strip()]
    contexts = contexts.loc[replies["InstanceID"]].reset_index()
    turns = pd.DataFrame(
        {
            "system": replies["SystemID"],
            "dialog": replies["InstanceID"],
            "turn": contexts["Depth"].astype(int),
            "response": replies["Response"],
            "reference": replies["InstanceID"].map(references),
            "fact": [[passage] for passage in contexts["Context"]],
        }
    )
    keys = zip(turns["system"], turns["dialog"], strict=True)
    item_of = {key: item for item, key in enumerate(keys)}
    judgements = []
    for row in _read_cells(files["human-eval-per-judge.tsv"], **TSV).itertuples():
        item = item_of[row.SystemID.replace("TeamEC", "TeamCE"), row.InstanceID]
        judge = row.JudgeID
        judgements.append(Judgement(item, judge, "relevance", rating=row.Relevance))
        judgements.append(
            Judgement(item, judge, "informativeness", rating=row.Informativeness)
        )
    parts = corpus_parts(turns, judgements=judgements)
    turns = parts["turns"]
    turns["human_overall"] = (
        turns["human_relevance"] + turns["human_informativeness"]
    ) / 2
    return parts


def _read_cells(file: Path | io.BytesIO, **options) -> pd.DataFrame:
    """Read a table, every cell as text."""
    return pd.read_csv(
        file, dtype=str, keep_default_na=False, encoding="utf-8-sig", **options
    )


@loader("dstc10_*")
def load_dstc10(name: str, file: Path) -> dict:
    """Read a DSTC10 Track 5 development set: TP, UP, ZD, ZP and GD.

    Utterances of the context are separated by newlines; the "prompt" of the published
    style-matching and emotion-matching figures is the whole context. The references are the file's
    own (GD has four), also for the ground truth itself. Consecutive rows with one context are one
    dialog. GD (Gupta et al. 2019) has only the mean of its five annotators.
    """
    turns = pd.DataFrame(read_json(file)).drop(columns="dialogue_id")
    turns = turns.rename(columns={"model": "system", "annotations": "ratings"})
    # Facts of one context differ in spaces.
    is_new = turns["context"] != turns["context"].shift()
    turns["dialog"] = [f"{name}-{number - 1:03d}" for number in is_new.cumsum()]
    turns["context"] = turns["context"].map(split_context)
    if "fact" in turns:
        turns["fact"] = turns["fact"].map(split_fact)
    if not name.endswith("gupta"):
        return corpus_parts(turns)
    # The single rating in its file is the mean of five annotators.
    turns["human_overall"] = [ratings["overall"][0] for ratings in turns.pop("ratings")]
    return corpus_parts(turns, note=ONLY_MEANS)


@loader("grade_*")
def load_grade(name: str, *files: Path) -> dict:
    """Read one of GRADE's eight sets: coherence, 8 to 11 annotators each.

    Line i of context, response and reference belong together; the single ratings are in one file
    for all sets, in the same order. The text is tokenised. `dialog` names the context by its
    content, so sets on one corpus share it.
    """
    _, corpus, system = name.split("_", 2)
    contexts, responses, references, judgements = files
    ratings = []
    for row in read_json(judgements):
        if (
            row["Dataset"].removesuffix("_EVAL") == corpus
            and row["DialogModel"] == system
        ):
            ratings.append({"coherence": json.loads(row["HumanScores"])})
    contexts = pd.Series(read_lines(contexts))
    dialog = contexts.map(lambda text: f"{corpus}-{short_hash(text, 8)}")
    repeat = contexts.groupby(contexts).cumcount() + 1
    turns = pd.DataFrame(
        {
            "system": system,
            "dialog": dialog.where(repeat == 1, dialog + "-" + repeat.astype(str)),
            "context": contexts.str.split("|||", regex=False),
            "response": read_lines(responses),
            "reference": [[reference] for reference in read_lines(references)],
            "ratings": ratings,
        }
    )
    repeated = (repeat > 1).sum()
    note = f"{repeated} with the context of an earlier response" if repeated else ""
    return corpus_parts(turns, note=note)


@loader("better")
def load_better(file: Path) -> dict:
    """Read BETTER: query and reply of ConvAI, engaging (1) or not (0).

    The systems are not named; the texts are tokenised. An empty reply stays an empty response.
    """
    table = _read_cells(file)
    turns = pd.DataFrame(
        {
            "system": "convai",
            "dialog": "better-" + table["id"],
            "context": [[query] for query in table["query"]],
            "response": table["reply"],
            "ratings": [
                {"engaging": {"published label": label}} for label in table["label"]
            ],
        }
    )
    empty = turns["response"].str.strip().eq("").sum()
    return corpus_parts(turns, note=f"{empty} empty, kept")


@loader("predeng600")
def load_predeng600(file: Path) -> dict:
    """Read PredEng-600: 300 DailyDialog queries with two replies each.

    The file has one rating per row, three to a reply: 900 of generated replies, then 900 of human
    ones. Query i of both halves is the same, so the human reply is the reference of the generated.
    """
    table = _read_cells(file).apply(lambda column: column.str.strip())
    table["system"] = np.repeat(["generated", "ground_truth"], len(table) // 2)
    rows = []
    for (system, query, response), group in table.groupby(
        ["system", "query", "response"], sort=False
    ):
        row = {
            "system": system,
            "context": [query],
            "response": response,
            "reference": [],
            "ratings": {"engaging": group["human_score"].tolist()},
        }
        for column, score in PREDENG_SCORES.items():
            row[score] = float(group[column].iloc[0])
        rows.append(row)
    half = len(rows) // 2
    for number, (generated, human) in enumerate(
        zip(rows[:half], rows[half:], strict=True)
    ):
        generated["dialog"] = human["dialog"] = f"predeng-{number:03d}"
        generated["reference"] = [human["response"]]
    return corpus_parts(rows)


@loader("ji2022")
def load_ji2022(*files: Path) -> dict:
    """Read the chats of crowd workers with 10 agents of 5 systems, rated by the chatter.

    Agents are `A`-`E` (the systems) and `A_p`-`E_p` (the same with a persona), in two free-topic
    runs and one ice-breaker run. Raw ratings (0-100) are `human_<dimension>`, z scores
    `human_z_<dimension>`, and `human_overall` and `human_z_overall` the means of the seven;
    `robotic` and `repetitive` are already reversed. `turns` has every bot turn with its context,
    and no ratings. Worker and assignment numbers are replaced by a hash. The degraded control agent
    is excluded, as in the published statistics.
    """
    parts = _ji_dialogs(files)
    turns = []
    for dialog in parts["dialogs"].itertuples():
        for turn in range(1, len(dialog.utterances), 2):
            turns.append(
                {
                    "system": dialog.system,
                    "agent": dialog.agent,
                    "dialog": dialog.dialog,
                    "turn": turn,
                    "context": dialog.utterances[:turn],
                    "response": dialog.utterances[turn],
                }
            )
    return parts | {"turns": turn_table(turns)}


def _ji_dialogs(files: Sequence[Path]) -> dict:
    rows = []
    control = 0
    for run, file in zip(["free1", "free2", "icebreaker"], files, strict=True):
        for assignment in read_json(file):
            # An assignment of Mechanical Turk has the chats of one worker.
            annotator = f"worker-{short_hash(assignment['WorkerId'])}"
            assignment_id = short_hash(assignment["AssignmentId"])
            for position, chat in enumerate(assignment["data"]):
                if chat["model"] == "QualityControl":
                    control += 1
                    continue
                dialog = f"{run}-{assignment_id}-{position}"
                rows.append(
                    {"dialog": dialog, "run": run, **_ji_dialog(chat, annotator)}
                )
    parts = corpus_parts(
        rows, excluded={"with the degraded quality-control agent": control}
    )
    dialogs = parts["dialogs"]
    raw_ratings = dialogs.filter(regex="^human_(?!z_)")
    z_scores = dialogs.filter(regex="^human_z_")
    dialogs["human_overall"] = raw_ratings.mean(axis=1)
    dialogs["human_z_overall"] = z_scores.mean(axis=1)
    return parts


def _ji_dialog(chat: dict, annotator: str) -> dict:
    """A row of one chat: its agent, and the system, which is the agent without the persona ("_p").

    Ratings are {dimension: {annotator: value}}, and "z <dimension>" for the z scores.
    """
    utterances = []
    for exchange in chat["dialogue"]:
        utterances += [exchange["user"], exchange["bot"]]
    ratings = {}
    for dimension, rating in chat["raw scores"].items():
        ratings[dimension] = {annotator: rating}
    for dimension, score in chat["z scores"].items():
        ratings[f"z {dimension}"] = {annotator: score}
    return {
        "system": chat["model"].removesuffix("_p"),
        "agent": chat["model"],
        "utterances": utterances,
        "speakers": ["user", "system"] * len(chat["dialogue"]),
        "ratings": ratings,
    }


@loader("zh*_*")  # zhao_persona to zhang_fed_turn
def load_mean_rated(name: str, texts: Path, *ratings: Path) -> dict:
    """Read responses with mean human ratings; `human_specificity` is new in Zhang et al. (2024).

    In the two Zhao sets the position within a context is the system; position 0 looks like the
    ground truth and the last like a random response (inferred from the ratings: 4.05 against 2.00;
    there are no labels), so position 0 serves as reference of the others.
    """
    size = registry()["corpora"][name]["systems"]  # each answers every context
    rows = _context_response_rows(texts)
    for number, row in enumerate(rows):
        block, position = divmod(number, size)
        row["system"] = "unknown"
        if size > 1:
            row["system"] = f"position_{position}"
        row["dialog"] = f"{name}-{block:03d}"
        row["reference"] = []
        if name.startswith("zhao") and position > 0:
            row["reference"] = [rows[number - position]["response"]]
    return _mean_rated_parts(rows, texts, dict(zip(MEAN_RATINGS, ratings, strict=True)))


@loader("dstc10_*_clean")
def load_dstc10_test(name: str, texts: Path, ratings: Path) -> dict:
    """Read a hidden test set of DSTC10 Track 5, as Zhang et al. (2024) release it: PD10 and TD10.

    Contexts are cut to their last three utterances. The rating is the mean appropriateness on 1-5
    (Giorgi et al. 2023, Table 6). Systems are not named. The file lists them one after another,
    each answering the same 500 contexts (one system of PD10 only 329 of them), so `system` is the
    block: a new one begins where a context comes back. There are no references.
    """
    rows = _context_response_rows(texts)
    block = 0
    numbers: dict[tuple, int] = {}
    answered = set()
    for row in rows:
        number = numbers.setdefault(tuple(row["context"]), len(numbers))
        if number in answered:
            block += 1
            answered = set()
        answered.add(number)
        row["system"] = f"block_{block}"
        row["dialog"] = f"{name}-{number:03d}"
    return _mean_rated_parts(rows, texts, {"appropriateness": ratings})


def _context_response_rows(texts: Path) -> list[dict]:
    """The context, a list of utterances, and the response of each line of a file.

    A line holds its id, the utterances of the context and the response, separated by tabs.
    """
    rows = []
    for line in read_lines(texts):
        _, *context, response = line.split("\t")
        rows.append({"context": context, "response": response})
    return rows


def _mean_rated_parts(rows: list[dict], texts: Path, files: dict[str, Path]) -> dict:
    """The parts of a corpus whose mean ratings (human_*) are in one file per dimension."""
    key = texts.stem.removesuffix("_text")
    means = {
        f"human_{dimension}": read_json(file)[key] for dimension, file in files.items()
    }
    return corpus_parts(rows, scores=pd.DataFrame(means, dtype=float), note=ONLY_MEANS)


@loader("gpt4_fed")
def load_gpt4_fed(dialogs: Path, gpt4: Path) -> dict:
    """Read the 125 FED dialogs with five GPT-4 runs and the five annotators' own ratings.

    The runs are `score_gpt4_<dimension>_run<n>`, on 1-5.
    """
    rows = []
    for number, item in enumerate(read_json(dialogs)):
        rows.append(
            {
                "system": item["model"],
                "dialog": f"fed-{number:03d}",
                "utterances": [utterance["text"] for utterance in item["dialog"]],
                "speakers": [
                    ROLES[utterance["speaker"]] for utterance in item["dialog"]
                ],
                "ratings": item["annotations"],
            }
        )
    return corpus_parts(rows, scores=_gpt4_scores(gpt4, len(rows)))


@loader("gpt4_reliable")
def load_gpt4_reliable(texts: Path, *files: Path) -> dict:
    """Read the chats of Ji et al. in Zhang's order, with GPT-4's ratings of 500 of them."""
    *chats, gpt4 = files
    parts = _ji_dialogs(chats)
    dialogs = parts["dialogs"]
    texts_of_items = dialogs["utterances"].map(_single_spaced)
    item_of = dict(zip(texts_of_items, dialogs.index, strict=True))
    items = []
    for line in read_lines(texts):
        utterances, _ = split_dialog("\n".join(line.split("\t")[1:]))
        items.append(item_of[_single_spaced(utterances)])
    scores = _gpt4_scores(gpt4, len(items))
    note = f"GPT-4 rated {len(scores.dropna())}; its scores of the others are NaN"
    return {
        "dialogs": dialogs.loc[items].reset_index(drop=True).join(scores),
        "ratings": _ratings_of(items, parts["ratings"]),
        "report": pd.DataFrame([report_row("dialogs", len(items), note=note)]),
    }


def _single_spaced(utterances: list[str]) -> str:
    return " ".join(" ".join(utterances).split())


def _gpt4_scores(file: Path, n_dialogs: int) -> pd.DataFrame:
    """Read five runs in five dimensions; NaN for dialogs that are not among `indices`."""
    data = read_json(file)
    columns = {}
    for key, dimension in GPT4_DIMENSIONS.items():
        for run in range(1, 6):
            columns[f"score_gpt4_{dimension}_run{run}"] = data[f"{key}_{run}"]
    dialogs = range(n_dialogs)
    return pd.DataFrame(columns, data.get("indices", dialogs), dtype=float).reindex(
        dialogs
    )
