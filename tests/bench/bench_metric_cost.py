"""What 1,000 turns cost: CPU seconds of each metric that runs without a download, one thread.

    python tests/bench/bench_metric_cost.py

1,000 DSTC7 responses with their first reference, and as context that of the turn before. Models
and lexica are loaded by a first call on ten other turns, which is not timed. Metrics whose
checkpoint is not on this machine are listed with the size of their model and no time.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
import record

from lib import ROOT, endex, metrics, psychology  # noqa: F401 - rooms register their metrics
from lib import models as checkpoints
from lib.data import corpora
from lib.metrics.overlap import meteor_program
from lib.metrics.registry import Metric

LEFT_OUT = (
    "endex",
    "random",
    "meteor_15_normalized",
)  # your own network; no metric; as meteor_15
MODELS = {
    "bartscore": "BARTScore",
    "prism_style": "Prism-style",
    "fed": "FED",
    "usl_h": "USL-H",
    "bleurt": "BLEURT",
    "dialogrpt": "DialogRPT",
    "unieval": "UniEval",
    "toxicity": "toxicity",
}


def cpu_seconds(metric: Metric, turns: pd.DataFrame) -> float:
    if metric.name.startswith("meteor"):  # a program of its own, counted when it ends
        before = os.times()
        metric.function(turns.iloc[:1000])
        meteor_program.cache_clear()
        after = os.times()
        return sum(after[:4]) - sum(before[:4])
    metric.function(turns.iloc[-10:])
    start = time.process_time()
    metric.function(turns.iloc[:1000])
    return time.process_time() - start


def parameters(name: str) -> float:
    if name in ("bertscore", "reference_similarity", "context_similarity"):
        return checkpoints.CHECKPOINTS[checkpoints.DEFAULT_ENCODER].parameters
    table = checkpoints.checkpoint_table()
    sizes = table[table["used_by"].str.contains(MODELS[name])]["parameters"]
    return float(sizes.sum() if name == "dialogrpt" else sizes.max())


def main() -> None:
    turns = corpora.load("dstc7").turns
    turns = turns[(turns["reference"].map(len) > 0) & (turns["response"] != "")].iloc[
        :1010
    ]
    first = turns["reference"].str[:1]
    # The set comes without its contexts: the reference of the turn before stands in.
    turns = turns.assign(
        reference=first, context=first.shift(fill_value=first.iloc[-1])
    )
    rows = []
    for name, metric in metrics.METRICS.items():
        if name in LEFT_OUT or metric.family == "test":
            continue
        row = {"metric": name, "family": metric.family}
        if name in MODELS:
            row["parameters_millions"] = parameters(name)
        else:
            row["cpu_s_per_1000"] = cpu_seconds(metric, turns)
        if metric.family == "embedding":
            row["parameters_millions"] = parameters(name)
        rows.append(row)
    usl_h = {
        "metric": "usl_h",
        "family": "classifier",
        "parameters_millions": parameters("usl_h"),
    }
    rows.append(usl_h)  # no metric of a turn table alone: it needs trained classifiers
    columns = ["metric", "family", "cpu_s_per_1000", "parameters_millions"]
    table = pd.DataFrame(rows, columns=columns)
    record.write(table, "bench_metric_cost", packages=["torch", "transformers"])


if __name__ == "__main__":
    main()
