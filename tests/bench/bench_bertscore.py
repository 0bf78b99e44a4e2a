"""BERTScore of DSTC7 responses: ours beside the bert-score package, same texts, same encoder.

    python tests/bench/bench_bertscore.py

Two settings: the first reference of 10,000 responses, and all references (35 on average) of the
responses to 100 contexts. Each variant runs in a process of its own, one thread, so that its peak
memory is its own; loading is not timed. Scores are compared as well: where ours and the package's
differ by more than 1e-5, the package is asked again for that pair alone, since it lets the padding
of its batch take part in the maximum.

A third setting, "growth", scores 2,500 to 10,000 pairs that all differ (the same texts with their
words shuffled): `scoring_mb` is what scoring adds to the memory of input and model before it.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from lib import ROOT
from lib import models as checkpoints
from lib.data import corpora
from lib.metrics import bertscore

VARIANTS = ("bert-score", "float32")
LAYER = 6  # the last layer of the packaged encoder
GROWTH = (2_500, 5_000, 10_000)
PARTS = ("first reference", "all references", "growth")


def texts(setting: str, rows: int) -> pd.DataFrame:
    turns = corpora.load("dstc7").turns[["dialog", "response", "reference"]]
    turns = turns[(turns["reference"].map(len) > 0) & (turns["response"] != "")]
    if setting == "growth":
        return shuffled(turns, rows)
    if setting == "all references":
        turns = turns[turns["dialog"].isin(sorted(turns["dialog"].unique())[:100])]
    else:
        turns = turns.assign(reference=turns["reference"].str[:1])
    return turns.iloc[:rows]


def shuffled(turns: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Pairs of a response and its first reference with their words in random order, all new."""
    draw, made = np.random.default_rng(0), {}

    def mixed(text: str) -> str:
        return " ".join(draw.permutation(text.split()))

    while len(made) < rows:
        row = draw.integers(len(turns))
        response, reference = turns["response"].iloc[row], turns["reference"].iloc[row][0]
        made[mixed(response), mixed(reference)] = None
    said, gold = zip(*made, strict=True)
    return pd.DataFrame({"response": said, "reference": [[text] for text in gold]})


def package():
    from bert_score import BERTScorer

    folder = str(checkpoints.find_model(checkpoints.DEFAULT_ENCODER).folder)
    return BERTScorer(model_type=folder, num_layers=LAYER, device="cpu")


def score(variant: str, turns: pd.DataFrame) -> tuple[np.ndarray, dict]:
    """Scores of one variant, and what they took; models are loaded before."""
    if variant == "bert-score":
        peer = package()

        def run():
            said, gold = turns["response"].tolist(), turns["reference"].tolist()
            return np.stack(peer.score(said, gold), 1)
    else:
        checkpoints.load_encoder(device="cpu", dtype=variant)

        def run():
            return bertscore(turns, device="cpu", dtype=variant).to_numpy()

    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading the corpus
    before, start, clock = memory("VmRSS"), time.process_time(), time.perf_counter()
    values = run()
    facts = {"cpu_s": time.process_time() - start, "wall_s": time.perf_counter() - clock}
    facts |= {"peak_mb": memory("VmHWM"), "scoring_mb": memory("VmHWM") - before}
    return values, facts


def memory(field: str) -> float:
    """MB of this process. (ru_maxrss would start from the process that started this one.)"""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", status)[1]) / 1024


def child(variant: str, setting: str, rows: int, out: Path) -> None:
    warnings.simplefilter("ignore")
    values, facts = score(variant, texts(setting, rows))
    np.save(out, values)
    print(json.dumps(facts))


def run_apart(variant: str, setting: str, rows: int) -> tuple[dict, np.ndarray]:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "scores.npy"
        command = [sys.executable, __file__, "--child", variant, setting, str(rows), str(out)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1]), np.load(out)


def compared(turns: pd.DataFrame, values: np.ndarray, peer: np.ndarray) -> dict:
    """Largest differences: in the package's batches, and beside the package pair by pair."""
    apart = np.abs(values - peer).max(axis=1)
    differing = np.flatnonzero(apart > 1e-5)
    scorer, worst = package(), 0.0
    for row in differing[np.argsort(-apart[differing])][:20]:
        gold = turns["reference"].iloc[row]
        each = [np.stack(scorer.score([turns["response"].iloc[row]], [r]), 1)[0] for r in gold]
        worst = max(worst, float(np.abs(np.max(each, axis=0) - values[row]).max()))
    return {
        "largest_difference": apart.max(),
        "rows_beyond_1e-5": len(differing),
        "largest_pair_by_pair": worst if len(differing) else apart.max(),
    }


def measure(setting: str, rows: int = 10_000) -> list[dict]:
    turns = texts(setting, rows)
    found, scores = {}, {}
    for variant in VARIANTS:
        found[variant], scores[variant] = run_apart(variant, setting, rows)
    table = []
    for variant in VARIANTS:
        row = {
            "setting": setting,
            "variant": variant,
            "responses": len(turns),
            "pairs": int(turns["reference"].map(len).sum()),
            **found[variant],
            "speed_ratio": found["bert-score"]["cpu_s"] / found[variant]["cpu_s"],
            "cpu_s_per_1000": found[variant]["cpu_s"] / len(turns) * 1000,
        }
        if variant == "float32":
            row |= compared(turns, scores[variant], scores["bert-score"])
        table.append(row)
    return table


def growth() -> list[dict]:
    """Memory of ours on ever more pairs: what a corpus costs."""
    rows = []
    for size in GROWTH:
        facts, _ = run_apart("float32", "growth", size)
        facts["cpu_s_per_1000"] = facts["cpu_s"] / size * 1000
        rows.append(
            {"setting": "growth", "variant": "float32", "responses": size, "pairs": size, **facts}
        )
    return rows


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def stated(rows: list[dict]) -> pd.DataFrame:
    """Rows with the date, machine and versions of this run."""
    table = pd.DataFrame(rows)
    table["date"] = datetime.date.today().isoformat()
    table["cpu"] = f"{cpu_model()}, 1 thread"
    packages = ("bert-score", "torch", "transformers", "tokenizers")
    table["versions"] = ", ".join(
        [f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)]
    )
    return table.assign(encoder=checkpoints.DEFAULT_ENCODER)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=PARTS, help="measure one part, keep the others' rows")
    given = parser.parse_args()
    if given.child:
        variant, setting, rows, out = given.child
        return child(variant, setting, int(rows), Path(out))
    parts = [given.only] if given.only else PARTS
    rows = [row for part in parts for row in (growth() if part == "growth" else measure(part))]
    table, file = stated(rows), ROOT / "data/results/bench_bertscore.csv"
    print(table.iloc[:, :-4].to_string(index=False, float_format="%.4g"))
    if given.only:
        kept = pd.read_csv(file)
        table = pd.concat([kept[~kept["setting"].isin(parts)], table])
    table.to_csv(file, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
