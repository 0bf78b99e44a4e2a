"""USR and UniEval, FED, DSTC7 and DSTC10: one loader per corpus or family of corpora.

USR (Mehri and Eskenazi, ACL 2020) with UniEval's predictions (Zhong et al. 2022), FED (Mehri and
Eskenazi, SIGDIAL 2020), DSTC7 Track 2 (Galley et al. 2019), DSTC10 Track 5 (Zhang et al. 2021).
"""

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lib.data.corpora import account, loader, rated, snake
from lib.data.storage import members, read_json, read_lines

TRUTH = "Original Ground Truth"
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
            marks = {name: marks for name, marks in response.items() if isinstance(marks, list)}
            ratings = {name: dict(zip(who, given, strict=True)) for name, given in marks.items()}
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
            rows[-1] |= {prefix + name: float(item[field][name]) for name in item["scores"]}
    _add_references(rows)
    return rated(rows, note="ratings are means of 3 annotators")


@loader("fed_turn")
def fed_turn(file: Path, scores: Path) -> dict:
    """Read FED's 375 rated responses of Meena, Mitsuku and people, five annotators each.

    Ratings marked "N/A (...)" are excluded and counted; an item with none left is NaN. FED scores
    computed with DialoGPT-large are published beside it: `score_fed_<aspect>`, 18 aspects.
    """
    return rated(_fed(file)[0], scores=_fed_scores(scores))


@loader("fed_dialog")
def fed_dialog(file: Path, scores: Path) -> dict:
    """Read FED's 125 rated dialogs; see `fed_turn`."""
    parts = rated(_fed(file)[1], scores=_fed_scores(scores))
    unrated = parts["dialogs"].filter(like="human_").isna().any(axis=1).sum()
    note = f"{unrated} lack a mean in some dimension (NaN): every rating was N/A"
    return parts | {"report": parts["report"].assign(notes=[note, ""])}


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
    report = pd.DataFrame([account("responses", len(turns), middling)])
    return {"turns": turns, "ratings": ratings, "report": report}


def reordered(
    table: pd.DataFrame, ratings: pd.DataFrame, order: Sequence[int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Take some rows of a table, in the order of their positions, and the ratings of these."""
    place = {row: number for number, row in enumerate(order)}
    ratings = ratings.assign(item=ratings["item"].map(place)).dropna(subset="item")
    ratings = ratings.astype({"item": "int64"}).reset_index(drop=True)
    return table.iloc[order].reset_index(drop=True), ratings


def speech(text: str) -> tuple[list[str], list[str]]:
    """Split lines like "User: Hi!" into utterances and speakers.

    >>> speech("User: Hi!\\nSystem: Oh: you?")
    (['Hi!', 'Oh: you?'], ['user', 'system'])
    """
    lines = [line.partition(":") for line in utterances(text)]
    return [said.strip() for _, _, said in lines], [SPEAKERS[who.strip()] for who, _, _ in lines]


def _fed_scores(file: Path) -> pd.DataFrame:
    """Read `score_fed_<aspect>`; the aspect "understand" is named as its rating is."""
    text = re.sub(r"}\s*{", "},{", file.read_text(encoding="utf-8"))  # one value after another
    items = json.loads(f"[{text}]")
    table = pd.DataFrame([item["score"] for item in items], dtype="float64")
    table = table.rename(columns={"understand": "understanding"})
    return table.rename(columns=lambda name: f"score_fed_{snake(name)}")


@loader("dstc7")
def dstc7(archive: Path) -> dict:
    """Read DSTC7 Track 2: 10 systems on 1000 Reddit contexts, three judges.

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
    table["fact"] = [persona(fact) for fact in table.get("fact", [""] * len(table))]
    note = ""
    if name.endswith("gupta"):  # the one rating in its file is the mean of five annotators
        table["human_overall"] = [marks["overall"][0] for marks in table.pop("ratings")]
        note = "only mean ratings are published"
    return rated(table.to_dict("records"), note=note)


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
