"""BERTScore of DSTC7 responses: ours beside the bert-score package, same texts, same encoder.

    python tests/bench/bench_bertscore.py [--rows 10000]

Three settings: the first reference of 10,000 responses, all references (35 on average) of the
responses to 100 contexts, and 10,000 shuffled pairs that all differ (the same texts with their
words in random order). Ours is also measured on 2,500 and 5,000 shuffled pairs, which shows
whether memory grows: `scoring_mb` is what scoring adds to the memory of input and model before it.

Each variant runs in a process of its own, one thread, so that its peak memory is its own; loading
is not timed. Scores are compared as well: where ours and the package's differ by more than 1e-5,
the package is asked again for that pair alone, since it lets the padding of its batch take part in
the maximum.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import record

from lib import ROOT
from lib import models as checkpoints
from lib.data import corpora
from lib.metrics import bertscore

LAYER = 6  # the last layer of the packaged encoder
SETTINGS = ("first reference", "all references", "shuffled pairs")
PACKAGES = ("bert-score", "torch", "transformers", "tokenizers")


def load_texts(setting: str, rows: int) -> pd.DataFrame:
    turns = corpora.load("dstc7").turns[["dialog", "response", "reference"]]
    turns = turns[(turns["reference"].map(len) > 0) & (turns["response"] != "")]
    if setting == "shuffled pairs":
        return shuffle_words(turns, rows)
    if setting == "all references":
        contexts = sorted(turns["dialog"].unique())[: max(rows // 100, 1)]
        return turns[turns["dialog"].isin(contexts)]
    return turns.assign(reference=turns["reference"].str[:1]).iloc[:rows]


def shuffle_words(turns: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Pairs of a response and its first reference with their words in random order, all new."""
    draw = np.random.default_rng(0)
    pairs = {}
    while len(pairs) < rows:
        row = draw.integers(len(turns))
        response = draw.permutation(turns["response"].iloc[row].split())
        reference = draw.permutation(turns["reference"].iloc[row][0].split())
        pairs[" ".join(response), " ".join(reference)] = None
    table = pd.DataFrame(list(pairs), columns=["response", "reference"])
    return table.assign(reference=[[text] for text in table["reference"]])


def package_scorer():
    from bert_score import BERTScorer

    folder = str(checkpoints.find_model(checkpoints.DEFAULT_ENCODER).folder)
    return BERTScorer(model_type=folder, num_layers=LAYER, device="cpu")


def score(variant: str, turns: pd.DataFrame) -> tuple[np.ndarray, dict]:
    """Scores of one variant, and what they took; models are loaded before."""
    if variant == "bert-score":
        scorer = package_scorer()

        def run() -> np.ndarray:
            return np.stack(
                scorer.score(turns["response"].tolist(), turns["reference"].tolist()), 1
            )
    else:
        checkpoints.load_encoder(device="cpu", dtype=variant)

        def run() -> np.ndarray:
            return bertscore(turns, device="cpu", dtype=variant).to_numpy()

    Path("/proc/self/clear_refs").write_text(
        "5"
    )  # forget the peak of loading the corpus
    memory_before = memory_mb("VmRSS")
    cpu_start = time.process_time()
    wall_start = time.perf_counter()
    scores = run()
    return scores, {
        "cpu_s": time.process_time() - cpu_start,
        "wall_s": time.perf_counter() - wall_start,
        "peak_mb": memory_mb("VmHWM"),
        "scoring_mb": memory_mb("VmHWM") - memory_before,
    }


def memory_mb(field: str) -> float:
    """MB of this process. (ru_maxrss would start from the process that started this one.)"""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", status)[1]) / 1024


def run_child(variant: str, setting: str, rows: int, file: Path) -> None:
    warnings.simplefilter("ignore")
    scores, cost = score(variant, load_texts(setting, rows))
    np.save(file, scores)
    print(json.dumps(cost))


def run_in_process(variant: str, setting: str, rows: int) -> tuple[np.ndarray, dict]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npy"
        command = [
            sys.executable,
            __file__,
            "--child",
            variant,
            setting,
            str(rows),
            str(file),
        ]
        process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return np.load(file), json.loads(process.stdout.splitlines()[-1])


def compare(turns: pd.DataFrame, scores: np.ndarray, expected: np.ndarray) -> dict:
    """Largest differences: in the package's batches, and beside the package pair by pair."""
    difference = np.abs(scores - expected).max(axis=1)
    differing = np.flatnonzero(difference > 1e-5)
    scorer = package_scorer()
    largest = 0.0
    for row in differing[np.argsort(-difference[differing])][:20]:
        response = turns["response"].iloc[row]
        pairs = [
            scorer.score([response], [text]) for text in turns["reference"].iloc[row]
        ]
        best = np.max([np.stack(pair, 1)[0] for pair in pairs], axis=0)
        largest = max(largest, float(np.abs(best - scores[row]).max()))
    return {
        "largest_difference": difference.max(),
        "rows_beyond_1e-5": len(differing),
        "largest_pair_by_pair": largest if len(differing) else difference.max(),
    }


def measure(setting: str, rows: int) -> list[dict]:
    turns = load_texts(setting, rows)
    expected, package_cost = run_in_process("bert-score", setting, rows)
    scores, cost = run_in_process("float32", setting, rows)
    pairs = int(turns["reference"].map(len).sum())
    sizes = {"setting": setting, "responses": len(turns), "pairs": pairs}
    ratio = package_cost["cpu_s"] / cost["cpu_s"]
    return [
        {**sizes, "variant": "bert-score", **package_cost, "speed_ratio": 1.0},
        {
            **sizes,
            "variant": "float32",
            **cost,
            "speed_ratio": ratio,
            **compare(turns, scores, expected),
        },
    ]


def measure_growth(rows: int) -> list[dict]:
    """Cost of ours on fewer shuffled pairs."""
    table = []
    for n_pairs in (rows // 4, rows // 2):
        _, cost = run_in_process("float32", "shuffled pairs", n_pairs)
        sizes = {"setting": "shuffled pairs", "responses": n_pairs, "pairs": n_pairs}
        table.append({**sizes, "variant": "float32", **cost})
    return table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument(
        "--only", choices=SETTINGS, help="measure one setting, keep other rows"
    )
    parser.add_argument(
        "--rows", type=int, default=10_000, help="responses or shuffled pairs"
    )
    arguments = parser.parse_args()
    if arguments.child:
        variant, setting, rows, file = arguments.child
        return run_child(variant, setting, int(rows), Path(file))
    settings = [arguments.only] if arguments.only else SETTINGS
    rows = []
    for setting in settings:
        rows += measure(setting, arguments.rows)
        if setting == "shuffled pairs":
            rows += measure_growth(arguments.rows)
    table = pd.DataFrame(rows)
    table["cpu_s_per_1000"] = table["cpu_s"] / table["responses"] * 1000
    table["encoder"] = checkpoints.DEFAULT_ENCODER
    table["commit"] = record.commit()
    if arguments.only:
        recorded = pd.read_csv(ROOT / "data" / "results" / "bench_bertscore.csv")
        table = pd.concat([recorded[~recorded["setting"].isin(settings)], table])
    record.write(table, "bench_bertscore", packages=PACKAGES)


if __name__ == "__main__":
    main()
