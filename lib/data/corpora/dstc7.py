"""DSTC7 Track 2 (Galley et al. 2019): 10 systems on 1000 Reddit contexts, three judges each.

All tables sit in one archive of tab-separated files without quoting. The released context column
holds only the grounding passage, so `fact` has it and `context` is empty; `turn` is the file's
Depth, the number of earlier turns. TeamCE was judged twice (as TeamCE and TeamEC): its six
judgements per context are merged. "Human" is one held-out human response.
"""

from lib.data.corpora.archives import members
from lib.data.corpora.tables import Account, Ratings, join
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import checked_header, decode, rating_cell, read_table, text_cell
from lib.data.dialogues.table import turn_table

FOLDER = "dstc7-task2-human_eval/dstc7-task2-"
FILES = ["context", "gold_responses", "system_responses", "human-eval-per-judge"]


def load(fetch) -> dict:
    """The 10,000 responses; `human_overall` is the mean of relevance and informativeness."""
    path = fetch("dstc7/dstc7-task2-human_eval.tgz")
    texts = _texts(path)
    facts = _facts(path, texts["context"])
    references = _references(path, texts["gold_responses"])
    account = Account()
    rows, position = _responses(path, texts["system_responses"], facts, references, account)
    ratings = _ratings(path, texts["human-eval-per-judge"], position, account)
    turns = join(turn_table(rows), ratings.means(len(rows)))
    turns["human_overall"] = (turns["human_relevance"] + turns["human_informativeness"]) / 2
    report = account.table({"responses": len(rows), "ratings": len(ratings)})
    return {"turns": turns, "ratings": ratings.table(), "report": report}


def _texts(path) -> dict[str, str]:
    names = {f"{FOLDER}{name}.tsv": name for name in FILES}
    found = {names[m]: decode(raw, f"{path}:{m}") for m, raw in members(path, names.__contains__)}
    for member, name in names.items():
        if name not in found:
            raise DataError(f"the archive has no {member}", file=path, fix="fetch the file again")
    return found


def _facts(path, text: str) -> dict[str, tuple[int, str]]:
    file = f"{path}:context.tsv"
    rows = read_table(file, "\t", False, ["InstanceID", "Depth", "Context"], text)
    facts = {}
    for number, cells in enumerate(rows, start=1):
        place = {"file": file, "row": number}
        depth = rating_cell(cells["Depth"], **place, column="Depth", scale=(0, 1000))
        passage = text_cell(cells["Context"], **place, column="Context", empty=False)
        facts[cells["InstanceID"]] = (int(depth), passage.strip())
    return facts


def _references(path, text: str) -> dict[str, list[str]]:
    """A row holds as many references as there are: the header names only the first."""
    file = f"{path}:gold_responses.tsv"
    lines = text.split("\n")
    checked_header(lines[0].split("\t")[:1], ["InstanceID"], file)
    cells = [line.split("\t") for line in lines[1:] if line]
    return {key: [one.strip() for one in some if one.strip()] for key, *some in cells}


def _responses(path, text, facts, references, account) -> tuple[list[dict], dict]:
    file = f"{path}:system_responses.tsv"
    rows, position = [], {}
    for number, cells in enumerate(
        read_table(file, "\t", False, ["SystemID", "InstanceID", "Response"], text), start=1
    ):
        key = cells["InstanceID"]
        if key not in facts or key not in references:
            raise DataError(
                "has no context or no reference", file=file, row=number, column="InstanceID"
            )
        response = text_cell(cells["Response"], file=file, row=number, column="Response")
        depth, passage = facts[key]
        position[cells["SystemID"], key] = len(rows)
        rows.append({"system": cells["SystemID"], "dialog": key, "turn": depth,
                     "response": response.strip(), "reference": references[key],
                     "fact": [passage]})  # fmt: skip
    account.read("responses", len(rows))
    return rows, position


def _ratings(path, text: str, position: dict, account: Account) -> Ratings:
    file = f"{path}:human-eval-per-judge.tsv"
    columns = ["JudgeID", "InstanceID", "SystemID", "Relevance", "Informativeness"]
    ratings = Ratings(account, file)
    for number, cells in enumerate(read_table(file, "\t", False, columns, text), start=1):
        system = cells["SystemID"].replace("TeamEC", "TeamCE")
        item = position.get((system, cells["InstanceID"]))
        if item is None:
            raise DataError("judges a response that is not there", file=file, row=number)
        for name in columns[3:]:
            ratings.add(item, cells["JudgeID"], name.lower(), cells[name], (1, 5))
    return ratings
