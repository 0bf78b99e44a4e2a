"""USR-Topical and USR-Persona (Mehri and Eskenazi, ACL 2020) with UniEval's predictions for the
first (Zhong et al. 2022), and FED (Mehri and Eskenazi, SIGDIAL 2020)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lib.data.corpus import account, loader, rated, snake
from lib.data.downloads import read_json

TRUTH = "Original Ground Truth"
UNIEVAL = ["understandability", "naturalness", "coherence", "engagingness", "groundedness",
           "overall"]  # fmt: skip
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
            marks = {name: values for name, values in response.items() if isinstance(values, list)}
            ratings = {name: dict(zip(who, values, strict=True)) for name, values in marks.items()}
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
        {"system": item["system"], "dialog": dialog, "context": _speech(item["context"])[0],
         "response": "\n".join(_speech(item["response"])[0]), "ratings": item["annotations"]}
        for dialog, item in _fed_items(file)
        if "response" in item
    ]  # fmt: skip
    return rated(rows, scores=_fed_scores(scores))


@loader("fed_dialog")
def fed_dialog(file: Path, scores: Path) -> dict:
    """Read FED's 125 rated dialogs; see `fed_turn`."""
    rows = []
    for dialog, item in _fed_items(file):
        if "response" not in item:
            said, speakers = _speech(item["context"])
            rows.append({"system": item["system"], "dialog": dialog, "utterances": said,
                         "speakers": speakers, "ratings": item["annotations"]})  # fmt: skip
    parts = rated(rows, unit="dialogs", scores=_fed_scores(scores))
    unrated = parts["dialogs"].filter(like="human_").isna().any(axis=1).sum()
    note = f"{unrated} lack a mean in some dimension (NaN): every rating was N/A"
    return parts | {"report": parts["report"].assign(notes=[note, ""])}


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


def _fed_items(file: Path) -> Iterator[tuple[str, dict]]:
    """Yield (dialog, item): the dialog-level item closes the block of its turns."""
    block = 0
    for item in read_json(file):
        yield f"fed-{block:03d}", item
        block += "response" not in item


def _speech(text: str) -> tuple[list[str], list[str]]:
    """Split lines like "User: Hi!" into utterances and speakers."""
    lines = [line.partition(":") for line in utterances(text)]
    return [said.strip() for _, _, said in lines], [SPEAKERS[who] for who, _, _ in lines]


def _fed_scores(file: Path) -> pd.DataFrame:
    """Read `score_fed_<aspect>`; the aspect "understand" is named as its rating is."""
    text = re.sub(r"}\s*{", "},{", file.read_text(encoding="utf-8"))  # one value after another
    items = json.loads(f"[{text}]")
    table = pd.DataFrame([item["score"] for item in items], dtype="float64")
    table = table.rename(columns={"understand": "understanding"})
    return table.rename(columns=lambda name: f"score_fed_{snake(name)}")
