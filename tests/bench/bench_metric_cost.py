"""What 1,000 turns cost: CPU seconds of each metric that runs without a download, one thread.

    python tests/bench/bench_metric_cost.py

1,000 DSTC7 responses with their first reference, and as context that of the turn before. Models
and lexica are loaded by a first call on ten other turns, which is not timed. BARTScore's and FED's
formulas by the packaged language model, and the classifiers of USL-H, read 100 of the turns, and
the time is given for 1,000. Metrics whose checkpoint is not on this machine are listed with the
size of their model and no time.
"""

import os
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
import record

from lib import ROOT, endex, metrics, psychology  # noqa: F401 - rooms register their metrics
from lib import models as checkpoints
from lib.data import corpora
from lib.metrics import embedding, overlap
from lib.metrics.overlap import meteor_program
from lib.metrics.registry import Metric
from lib.psychology import tokens

LEFT_OUT = (
    "endex",
    "random",
    "meteor_15_normalized",
)  # your own network; no metric; as meteor_15
SLOW_TURNS = 100  # that the slow metrics read
REACTIONS = {"engaging": {"positive": ["What fun!"], "negative": ["How dull."]}}
PACKAGED = {"checkpoint": checkpoints.SMOLLM2, "device": "cpu"}
LANGUAGE_MODEL = {
    "bartscore_f_mean[smollm2]": partial(metrics.bartscore, **PACKAGED),
    "fed_engaging[smollm2]": partial(metrics.fed, utterances=REACTIONS, **PACKAGED),
}
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


def forget_texts() -> None:
    """Forget what metrics keep of the texts that they read, for the next metric to read anew."""
    embedding._VECTORS.clear()
    for cached in (tokens.ngrams, overlap.normalize_answer):
        cached.cache_clear()


def cpu_seconds(metric: Metric, turns: pd.DataFrame) -> float:
    if metric.name.startswith("meteor"):  # a program of its own, counted when it ends
        before = os.times()
        metric.function(turns.iloc[:1000])
        meteor_program.cache_clear()
        after = os.times()
        return sum(after[:4]) - sum(before[:4])
    metric.function(turns.iloc[-10:])
    forget_texts()
    start = time.process_time()
    metric.function(turns.iloc[:1000])
    return time.process_time() - start


def cpu_seconds_of_slow(scores: Callable, turns: pd.DataFrame) -> float:
    """CPU seconds for 1,000 turns, measured on the first `SLOW_TURNS`."""
    scores(turns.iloc[-10:])
    start = time.process_time()
    scores(turns.iloc[:SLOW_TURNS])
    return (time.process_time() - start) * 1000 / SLOW_TURNS


def usl_h_classifiers(turns: pd.DataFrame) -> Callable:
    """The two classifiers of USL-H as in notebook 04, barely trained: their time is the same."""
    texts = turns["response"].iloc[:20].tolist()
    prompts = turns["context"].str[-1].iloc[:20].tolist()
    options = {"encoder": checkpoints.DEFAULT_ENCODER, "device": "cpu"}
    valid, _ = metrics.train_valid_utterance(texts, **options)
    sensible, _ = metrics.train_next_utterance(prompts, texts, **options)
    return partial(metrics.usl_h, valid=valid, sensible=sensible)


def parameters(name: str) -> float:
    if name in ("bertscore", "reference_similarity", "context_similarity"):
        return checkpoints.CHECKPOINTS[checkpoints.DEFAULT_ENCODER].parameters
    if name == "log_likelihood":
        return checkpoints.CHECKPOINTS[checkpoints.SMOLLM2].parameters
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
        if name == "log_likelihood":
            row["metric"] = "log_likelihood[smollm2]"
        if name in MODELS:
            row["parameters_millions"] = parameters(name)
        else:
            row["cpu_s_per_1000"] = cpu_seconds(metric, turns)
        if metric.family == "embedding" or name == "log_likelihood":
            row["parameters_millions"] = parameters(name)
        rows.append(row)
    encoder = checkpoints.CHECKPOINTS[checkpoints.DEFAULT_ENCODER].parameters
    for name, scores in LANGUAGE_MODEL.items():
        row = {"metric": name, "family": "likelihood"}
        row["cpu_s_per_1000"] = cpu_seconds_of_slow(scores, turns)
        row["parameters_millions"] = parameters("log_likelihood")
        rows.append(row)
    row = {"metric": "usl_h_sensible", "family": "classifier"}
    row["cpu_s_per_1000"] = cpu_seconds_of_slow(usl_h_classifiers(turns), turns)
    row["parameters_millions"] = encoder
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
