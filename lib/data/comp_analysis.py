"""What Zhang et al. (2024), "A Comprehensive Analysis ...", give out.

Mean ratings of Zhao et al. (2020), USR, FED and two test sets of DSTC10; GPT-4's ratings of whole
dialogs; and pairs of a real reply or dialog and the same made worse in one known way.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from lib.data.chat_logs import role
from lib.data.corpora import account, loader, rated, with_account
from lib.data.rated_corpora import SPEAKERS, ji_dialogs, reordered, speech
from lib.data.storage import DATA, path, read_json, read_lines, registry

# Responses per context.
SIZES = {"zhao_persona": 6, "zhao_dailydialog": 9, "zhang_usr_topical": 6, "zhang_usr_persona": 5}
MEANS = ["overall", "interesting", "relevance", "specificity", "understandability"]
JUDGED = {"coh": "coherence", "div": "diversity", "eng": "engagingness",
          "inf": "informativeness", "ovr": "overall"}  # fmt: skip
PAIR = ["perturbation", "dimension", "level", "context", "original", "perturbed"]


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
    key = texts.stem.removesuffix("_text")
    means = {f"human_{one}": read_json(file)[key] for one, file in zip(names, ratings, strict=True)}
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
         "speakers": [SPEAKERS[role(one["speaker"])] for one in item["dialog"]],
         "ratings": item["annotations"]}
        for number, item in enumerate(read_json(dialogs))
    ]  # fmt: skip
    return rated(rows, scores=_runs(gpt4, len(rows))[0])


@loader("gpt4_reliable")
def gpt4_reliable(texts: Path, *files: Path) -> dict:
    """Read the chats of Ji et al. in Zhang's order, with GPT-4's ratings of 500 of them."""
    *runs, gpt4 = files
    parts = ji_dialogs(runs)
    words = [tuple(" ".join(said).split()) for said in parts["dialogs"]["utterances"]]
    known = dict(zip(words, range(len(words)), strict=True))
    chats = [speech("\n".join(line.split("\t")[1:]))[0] for line in read_lines(texts)]
    order = [known[tuple(" ".join(said).split())] for said in chats]
    dialogs, ratings = reordered(parts["dialogs"], parts["ratings"], order)
    scores, note = _runs(gpt4, len(order))
    report = pd.DataFrame([account("dialogs", len(order), note=note)])
    return {"dialogs": dialogs.join(scores), "ratings": ratings, "report": report}


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


def robustness_pairs(sample: bool = False) -> pd.DataFrame:
    """Read texts beside the same texts after a perturbation that a good metric should notice.

    The replies are DailyDialog's and PersonaChat's, the dialogs 40 of FED and 200 of DECODE. Pairs
    that the perturbation left as they were are excluded and counted. Several perturbed texts can
    have one original. The contradicting dialogs go on for two utterances where the consistent ones
    end.

    Args:
        sample: read the few pairs written for this project, which have the same form.

    Returns:
        perturbation; dimension, what it should lower, by the authors' folders; level, "turn" or
        "dialog"; context, a list of utterances, empty for a dialog; original and perturbed, a
        reply each, or a list of utterances by turns of the user and the bot. The account is in
        `attrs`.

    Reference: Zhang et al. (2024), A comprehensive analysis of the effectiveness of large language
    models as automatic dialogue evaluators, AAAI 38(17).

    >>> pairs = robustness_pairs(sample=True)
    >>> pairs.loc[0, ["original", "perturbed"]].tolist()
    ['About an hour, if we take the ridge.', 'I never liked the taste of liquorice.']
    """
    rows, lines = [], []
    for name, about in registry()["tables"]["robustness_pairs"]["perturbations"].items():
        keys = about["original"], about["perturbed"]
        files = [DATA / key.replace("comp_analysis", "sample", 1) if sample else path(key)
                 for key in keys]  # fmt: skip
        if not all(file.is_file() for file in files):  # the sample has some of them
            continue
        found = list(_pairs(about, *files))
        kept = [pair for pair in found if pair[1] != pair[2]]
        rows += [(name, about["dimension"], about["level"], *pair) for pair in kept]
        same = {"left unchanged by the perturbation": len(found) - len(kept)}
        lines.append(account(f"pairs: {name}", len(kept), same))
    return with_account(pd.DataFrame(rows, columns=PAIR), *lines)


def _pairs(about: dict, originals: Path, perturbed: Path) -> Iterator[tuple]:
    """Match each perturbed text with its original: by the number in its id, else row by row."""
    left = [texts for _, texts in _texts(originals, about)]
    for row, (key, worse) in enumerate(_texts(perturbed, about)):
        best = left[int(key[-2:]) if about.get("matched") == "id" else row % len(left)]
        if about["level"] == "dialog":
            yield [], best, worse
        else:  # a few perturbed replies hold a tab
            yield best[:-1], best[-1], " ".join(worse[len(best) - 1 :])


def _texts(file: Path, about: dict) -> Iterator[tuple[str, list[str]]]:
    """Read id and utterances of each line; dialogs lose the speakers before their utterances."""
    if file.suffix == ".json":
        lines = [["", *dialog] for dialog in read_json(file)]
    else:
        lines = [line.split("\t") for line in read_lines(file)]
    named = about["level"] == "dialog" and file.suffix != ".json"
    for key, *rest in lines:
        yield key, [(text.partition(":")[2] if named else text).strip() for text in rest]
