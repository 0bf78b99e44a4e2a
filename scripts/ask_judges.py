"""Ask the judges of notebook 08 and keep their replies: a Parquet file per judge, corpus and run.

    python -m scripts.ask_judges smollm2 [minutes]
    python -m scripts.ask_judges qwen path/to/file.gguf [minutes]

A reply in `data/judge_replies` or in `data/cache/judges` is not asked for again; where the minutes
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
    "qwen": (
        "Qwen2.5 Coder 1.5B Instruct, Q4_K_M",
        "qwen2.5-coder-1.5b-instruct",
        False,
    ),
}
ASKED = [  # corpus and run
    ("sample_personas", ""), ("usr_topical", ""), ("usr_persona", ""), ("fed_turn", ""),
    ("usr_persona", "_simple"), ("usr_persona", "_reference"), ("usr_persona", "_sampled"),
]  # fmt: skip
CACHE = ROOT / "data" / "cache" / "judges"
COLUMNS = ("key", "model", "labels", *PUBLISHED)
CHUNK = 24  # items between two looks at the clock


def ask(judge: str, corpus: str, run: str, base_url: str, until: float) -> None:
    """Ask about the turns of a corpus in their order, until the time is up."""
    model = judge_model(judge, run)
    settings = cpdscore.JudgeSettings(
        workers=1
    )  # in order: shared beginnings are read once
    path = replies_path(judge, corpus, run)
    with cpdscore.ReplyStore(CACHE / f"{path.stem}.sqlite") as store:
        if path.is_file():
            cpdscore.import_replies(store, path)
        asker = cpdscore.asker("live", store, base_url, settings)
        score = partial(cpdscore.score_turns, store=store, ask=asker)
        plan = tables_with_prompts(corpus, run)
        for table, template in plan:
            for end in range(CHUNK, len(table) + CHUNK, CHUNK):
                scores = score(table.head(end), template, model)
                if time.monotonic() > until:
                    return
        if (
            corpus == "sample_personas"
        ):  # and what the small judge says when it is not held
            table, template = plan[0]
            score(table, template, replace(model, forced=False))
        if (
            corpus == "fed_turn"
        ):  # two steps: the turns' scores are weighted by probability
            step1 = scores.items["weighted"]
            cpdscore.score_dialogs(table, step1, model, store=store, ask=asker)


def replies_path(judge: str, corpus: str, run: str) -> Path:
    """Where the replies of one run are kept."""
    return ROOT / "data" / "judge_replies" / f"{judge}_{corpus}{run}.parquet"


def judge_model(judge: str, run: str) -> cpdscore.JudgeModel:
    """The model that is asked, how often, and with what parameters."""
    _, model, forced = JUDGES[judge]
    _, calls, temperature = RUNS[run]
    parameters = PARAMETERS | {"temperature": temperature}
    return cpdscore.JudgeModel(
        model, samples=calls, extra=0, parameters=parameters, forced=forced
    )


def tables_with_prompts(
    corpus: str, run: str
) -> list[tuple[pd.DataFrame, cpdscore.Template]]:
    """All turns of a corpus; of the sample eight turns and their probes, also without the fence."""
    turns = data.load(corpus).turns
    template = cpdscore.load_template(RUNS[run][0])
    if corpus != "sample_personas":
        return [(turns, template)]
    sample = turns[turns["dialog"] == "p01"].head(8)
    probes = cpdscore.probe_turns(turns).query("original in @sample.index")
    injected = probes[probes["probe"].str.startswith("injected")]
    unfenced = replace(template, fenced=False)
    return [
        (sample, template),
        (probes, template),
        (sample, unfenced),
        (injected, unfenced),
    ]


def mask_quotations(text: str, prompt: str) -> str:
    """The reply with x for the letters of four words in a row that the prompt quotes."""
    quoted = set()
    for line in prompt.splitlines():
        if line.startswith("|"):
            words = re.findall(r"\w+", line.lower())
            quoted |= {tuple(words[i : i + 4]) for i in range(len(words) - 3)}
    matches = list(re.finditer(r"\w+", text))
    for i in range(len(matches) - 3):
        four = matches[i : i + 4]
        if tuple(match[0].lower() for match in four) in quoted:
            start = four[0].start()
            end = four[-1].end()
            text = text[:start] + re.sub(r"[^\W\d]", "x", text[start:end]) + text[end:]
    return text


def export(judge: str, corpus: str, run: str, weights: str) -> None:
    """Write the replies of one run, with its provenance as attributes of the file."""
    path = replies_path(judge, corpus, run)
    source = CACHE / f"{path.stem}.sqlite"
    if not source.is_file():
        return
    model = judge_model(judge, run)
    table, template = tables_with_prompts(corpus, run)[0]
    requests = cpdscore.turn_requests(table, template, model)
    with cpdscore.ReplyStore(source) as store:
        replies = store.replies(request.key for request in requests if request)
        items = len(
            requests
        )  # turns of the corpus, in its order, that have all their replies
        for i, request in enumerate(requests):
            if request and (request.key, model.samples - 1) not in replies:
                items = i
                break
        provenance = {
            "judge": JUDGES[judge][0], "model": model.model, "weights_sha256": weights,
            "corpus": corpus, "prompt": RUNS[run][0], "forced": model.forced,
            "parameters": model.parameters, "samples": model.samples, "items": items,
            "dialogs": bool(store.rows("SELECT 1 FROM request WHERE labels LIKE '%\"dialogue\"%'")),
            "server": f"xllamacpp {version('xllamacpp')}", "asked": date.today().isoformat(),
        }  # fmt: skip
        n_replies = export_replies(store, path, provenance)
        print(n_replies, "replies,", items, "items:", path.name)


def export_replies(store: cpdscore.ReplyStore, path: Path, provenance: dict) -> int:
    """Write all replies of a store, masked, to a Parquet file; return their number.

    The prompts are left out (they hold the corpus), but their keys pin them to the letter.
    """
    query = f"""SELECT {", ".join(COLUMNS)}, request.body FROM request JOIN call USING (key)
                WHERE holds AND status != 'asked' ORDER BY request.rowid, sample"""
    frame = pd.DataFrame(store.rows(query), columns=[*COLUMNS, "body"])
    texts = []
    n_masked = 0
    for text, body in zip(frame["text"], frame.pop("body"), strict=True):
        if isinstance(text, str):
            prompt = json.loads(body)["messages"][0]["content"]
            text = mask_quotations(text, prompt)
            n_masked += bool(re.search(r"\bx+(\W+x+){3}\b", text))
        texts.append(text if isinstance(text, str) else None)
    frame["text"] = texts
    frame.attrs = {"key_version": KEY_VERSION, **provenance, "masked": n_masked}
    with atomic_write(path) as temporary_path:
        frame.to_parquet(temporary_path, index=False, compression="zstd")
    return len(frame)


if __name__ == "__main__":
    judge, *options = sys.argv[1:]
    minutes = 600.0
    if options and options[-1].isdigit():
        minutes = float(options.pop())
    weights_file = options[0] if options else local.weights_of(local.PACKAGED)
    CACHE.mkdir(parents=True, exist_ok=True)
    with local.served(weights_file) as base_url:
        for corpus, run in ASKED if minutes else ():
            until = time.monotonic() + 60 * minutes / len(ASKED)
            ask(judge, corpus, run, base_url=base_url, until=until)
    for corpus, run in ASKED:
        export(judge, corpus, run, file_sha256(weights_file))
