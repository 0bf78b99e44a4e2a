"""BERTScore of DSTC7 responses: ours beside the bert-score package, same texts, same encoder.

    python tests/bench/bench_bertscore.py

Two settings: the first reference of 10,000 responses, and all references (35 on average) of the
responses to 100 contexts. Each variant runs in a process of its own, one thread, so that its peak
memory is its own; loading is not timed. Scores are compared as well: where ours and the package's
differ by more than 1e-5, the package is asked again for that pair alone, since it lets the padding
of its batch take part in the maximum.
"""

import argparse
import datetime
import json
import os
import platform
import resource
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

from lib import checkpoints, corpora
from lib.embedding_metrics import bertscore
from lib.notebook_runs import ROOT

VARIANTS = ("bert-score", "float32", "int8")
LAYER = 6  # the last layer of the packaged encoder


def texts(setting: str, rows: int) -> pd.DataFrame:
    turns = corpora.load("dstc7").turns[["dialog", "response", "reference"]]
    turns = turns[(turns["reference"].map(len) > 0) & (turns["response"] != "")]
    if setting == "all references":
        turns = turns[turns["dialog"].isin(sorted(turns["dialog"].unique())[:100])]
    else:
        turns = turns.assign(reference=turns["reference"].str[:1])
    return turns.iloc[:rows]


def package():
    from bert_score import BERTScorer

    folder = str(checkpoints.find(checkpoints.DEFAULT_ENCODER).folder)
    return BERTScorer(model_type=folder, num_layers=LAYER, device="cpu")


def score(variant: str, turns: pd.DataFrame) -> tuple[np.ndarray, float, float]:
    """Scores, CPU seconds and seconds of one variant; models are loaded before."""
    if variant == "bert-score":
        peer = package()

        def run():
            said, gold = turns["response"].tolist(), turns["reference"].tolist()
            return np.stack(peer.score(said, gold), 1)
    else:
        checkpoints.load_encoder(device="cpu", dtype=variant)

        def run():
            return bertscore(turns, device="cpu", dtype=variant).to_numpy()

    start, clock = time.process_time(), time.perf_counter()
    values = run()
    return values, time.process_time() - start, time.perf_counter() - clock


def child(variant: str, setting: str, rows: int, out: Path) -> None:
    warnings.simplefilter("ignore")
    values, cpu, seconds = score(variant, texts(setting, rows))
    np.save(out, values)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_s": cpu, "wall_s": seconds, "peak_mb": memory}))


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


def measure(setting: str, rows: int) -> list[dict]:
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
        if variant == "int8":
            difference = np.abs(scores["int8"] - scores["float32"])
            row |= {
                "largest_difference": np.nanmax(difference),
                "mean_difference": np.nanmean(difference),
            }
        table.append(row)
    return table


def growth() -> list[dict]:
    """Peak memory of ours on 2,000 and on all rows: what a corpus costs."""
    rows = []
    for size in (2000, 10_000):
        facts, _ = run_apart("float32", "first reference", size)
        rows.append({"setting": "memory", "variant": "float32", "responses": size, **facts})
    return rows


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", nargs=4)
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    if given.child:
        variant, setting, rows, out = given.child
        return child(variant, setting, int(rows), Path(out))
    rows = measure("first reference", given.rows) + measure("all references", given.rows)
    table = pd.DataFrame(rows + (growth() if given.rows == 10_000 else []))
    print(table.to_string(index=False, float_format="%.4g"))
    table["date"] = datetime.date.today().isoformat()
    table["cpu"] = f"{cpu_model()}, 1 thread"
    packages = ("bert-score", "torch", "transformers", "tokenizers")
    table["versions"] = ", ".join(
        [f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)]
    )
    table["encoder"] = checkpoints.DEFAULT_ENCODER
    table.to_csv(ROOT / "data/results/bench_bertscore.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
