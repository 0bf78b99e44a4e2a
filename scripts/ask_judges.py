"""Ask the judges of notebook 07 and keep what they said: a Parquet file per judge, corpus and run.

    python -m scripts.ask_judges smollm2 [minutes]
    python -m scripts.ask_judges qwen path/to/file.gguf [minutes]

Whatever is kept in `data/judge_replies` or in `data/cache/judges` is not asked again; where the minutes
end (each run has its share), the next call goes on. The prompts hold the corpora and are not kept:
a reply is found by the hash of its request. Where a reply repeats four words in a row that its
prompt quotes, its letters there become x.
"""

import json
import re
import sys
import time
from dataclasses import replace
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from lib import ROOT, cpdscore, data
from lib.cpdscore import local
from lib.cpdscore.reply_store import KEY_VERSION, PUBLISHED
from lib.data.storage import atomic_write, file_sha256

PROMPT = "detail_without_reference"
RUNS = {  # the end of the file's name: prompt, calls, temperature
    "": (PROMPT, 1, 0),
    "_simple": ("simple_without_reference", 1, 0),
    "_reference": ("detail_with_reference", 1, 0),
    "_sampled": (PROMPT, 3, 1.0),
}
PARAMETERS = {"temperature": 0, "max_tokens": 96, "logprobs": True, "top_logprobs": 20}
JUDGES = {  # name, model as it is sent, whether its answer form is forced by a grammar
    "smollm2": ("SmolLM2 135M Instruct, Q4_1", "smollm2-135m-instruct", True),
    "qwen": ("Qwen2.5 Coder 1.5B Instruct, Q4_K_M", "qwen2.5-coder-1.5b-instruct", False),
}
ASKED = [(corpus, "") for corpus in ("sample_personas", "usr_topical", "usr_persona", "fed_turn")]
ASKED += [("usr_persona", run) for run in RUNS if run]
CACHE = ROOT / "data" / "cache" / "judges"
COLUMNS = ("key", "model", "labels", *PUBLISHED)
CHUNK = 24  # items between two looks at the clock


def ask(judge: str, corpus: str, run: str, base_url: str, until: float) -> None:
    """Ask about the turns of a corpus in their order, until the time is up."""
    one = model_of(judge, run)
    settings = cpdscore.JudgeSettings(workers=1)  # in order: shared beginnings are read once
    kept = path_of(judge, corpus, run)
    with cpdscore.ReplyStore(CACHE / f"{kept.stem}.sqlite") as store:
        if kept.is_file():
            cpdscore.import_replies(store, kept)
        asker = cpdscore.asker("live", store, base_url, settings)
        score = partial(cpdscore.score_turns, store=store, ask=asker)
        for table, template in tables_of(corpus, run):
            for end in range(CHUNK, len(table) + CHUNK, CHUNK):
                scores = score(table.head(end), template, one)
                if time.monotonic() > until:
                    return
        if corpus == "sample_personas":  # and what the small judge says when it is not held
            score(*tables_of(corpus, run)[0], replace(one, forced=False))
        if corpus == "fed_turn":  # two steps: marks of the turns, told apart by their odds
            step1 = scores.items["weighted"]
            cpdscore.score_dialogs(table, step1, one, store, asker)


def path_of(judge: str, corpus: str, run: str) -> Path:
    """Where the replies of one run are kept."""
    return ROOT / "data" / "judge_replies" / f"{judge}_{corpus}{run}.parquet"


def model_of(judge: str, run: str) -> cpdscore.JudgeModel:
    """Who is asked, how often, and with what parameters."""
    _, calls, temperature = RUNS[run]
    parameters = PARAMETERS | {"temperature": temperature}
    return cpdscore.JudgeModel(JUDGES[judge][1], calls, 0, parameters, JUDGES[judge][2])


def tables_of(corpus: str, run: str) -> list[tuple]:
    """What is asked: all turns of a corpus; of the sample one dialog, its probes, and no fence."""
    turns, fenced = data.load(corpus).turns, cpdscore.load_template(RUNS[run][0])
    if corpus != "sample_personas":
        return [(turns, fenced)]
    few = turns[turns["dialog"] == "p01"].head(8)
    probes = cpdscore.probe_turns(turns).query("original in @few.index")
    injected = probes[probes["probe"].str.startswith("injected")]
    bare = replace(fenced, fenced=False)
    return [(few, fenced), (probes, fenced), (few, bare), (injected, bare)]


def masked(text: str, prompt: str) -> str:
    """The reply without what it repeats of the quoted lines, letter for letter."""
    words = lambda said: re.findall(r"\w+", said.lower())  # noqa: E731
    quoted = [words(line) for line in prompt.splitlines() if line.startswith("|")]
    runs = {tuple(line[i : i + 4]) for line in quoted for i in range(len(line) - 3)}
    found = list(re.finditer(r"\w+", text))
    for i in range(len(found) - 3):
        if tuple(match[0].lower() for match in found[i : i + 4]) in runs:
            start, end = found[i].start(), found[i + 3].end()
            text = text[:start] + re.sub(r"[^\W\d]", "x", text[start:end]) + text[end:]
    return text


def export(judge: str, corpus: str, run: str, weights: str) -> None:
    """Write the replies of one run, with what anyone must know about it."""
    path = path_of(judge, corpus, run)
    if not (source := CACHE / f"{path.stem}.sqlite").is_file():
        return
    with cpdscore.ReplyStore(source) as store:
        one, (table, template) = model_of(judge, run), tables_of(corpus, run)[0]
        requests = cpdscore.turn_requests(table, template, one)
        held = store.replies(request.key for request in requests if request)
        lacks = (i for i, r in enumerate(requests) if r and (r.key, one.samples - 1) not in held)
        items = next(lacks, len(requests))
        about = {
            "judge": JUDGES[judge][0], "model": one.model, "weights_sha256": weights,
            "corpus": corpus, "prompt": RUNS[run][0], "forced": one.forced,
            "parameters": one.parameters, "samples": one.samples, "items": items,
            "dialogs": bool(store.rows("SELECT 1 FROM request WHERE labels LIKE '%\"dialogue\"%'")),
            "server": f"xllamacpp {version('xllamacpp')}", "asked": date.today().isoformat(),
        }  # fmt: skip
        print(export_replies(store, path, about), "replies,", items, "items:", path.name)


def export_replies(store: cpdscore.ReplyStore, path: Path, about: dict) -> int:
    """Write all replies of a store, masked, to a Parquet file; returns how many they are.

    The prompts are left out (they hold the corpus), but their keys pin them to the letter.
    """
    query = f"""SELECT {", ".join(COLUMNS)}, request.body FROM request JOIN call USING (key)
                WHERE holds AND status != 'asked' ORDER BY request.rowid, sample"""
    frame = pd.DataFrame(store.rows(query), columns=[*COLUMNS, "body"])
    prompts = [json.loads(body)["messages"][0]["content"] for body in frame.pop("body")]
    pairs = zip(frame["text"], prompts, strict=True)
    frame["text"] = [masked(said, sent) if isinstance(said, str) else None for said, sent in pairs]
    repeated = sum(bool(re.search(r"\bx+(\W+x+){3}\b", said)) for said in frame["text"].dropna())
    frame.attrs = {"key_version": KEY_VERSION, **about, "masked": repeated}
    with atomic_write(path) as place:
        frame.to_parquet(place, index=False, compression="zstd")
    return len(frame)


if __name__ == "__main__":
    judge, *rest = sys.argv[1:]
    minutes = float(rest.pop()) if rest and rest[-1].isdigit() else 600
    gguf = rest[0] if rest else local.weights_of(local.PACKAGED)
    CACHE.mkdir(parents=True, exist_ok=True)
    with local.served(gguf) as base_url:
        for corpus, run in ASKED if minutes else ():
            ask(judge, corpus, run, base_url, time.monotonic() + 60 * minutes / len(ASKED))
    for corpus, run in ASKED:
        export(judge, corpus, run, file_sha256(gguf))
