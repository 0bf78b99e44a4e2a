"""What the authors' models cost on a GPU: replies a second, memory, and what 16 bits change.

    python tests/bench/bench_models.py

One network per metric in the shape of its authors' model, with random weights: speed and memory do
not depend on them. Replies are invented, as long as Reddit's (median 15 words, long tail), after
two turns. Each network runs in 32 and 16 bits with batches of several sizes. Ten replies are
scored on the CPU too: `difference_to_cpu` is the largest difference, which checks the program on
the GPU. Random weights say nothing of how people rate, so no correlation is computed. Without a GPU
nothing is measured.
"""

import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
import random_networks
import record
import torch

from lib import endex, metrics, models
from lib.metrics import classifiers, likelihood

BATCHES = (512, 2_048, 16_384)  # tokens
N_CPU = 10
# As many follow-ups as FED has for its eight attributes of a turn.
FOLLOW_UPS = {
    f"attribute {number}": {
        "positive": [f"that is lovely {number} {copy}" for copy in range(4)],
        "negative": [f"that is dull {number} {copy}" for copy in range(4)],
    }
    for number in range(8)
}


class Measured(NamedTuple):
    """A metric, the shape of its model, and the number of replies that are scored."""

    metric: str
    shape: str
    n_replies: int
    score: Callable


def unieval_coherence(turns: pd.DataFrame, *, checkpoint: str, **options) -> pd.Series:
    """One of UniEval's five questions; the others read less, engagingness one text a sentence."""
    model = models.load_seq2seq(checkpoint, **options)
    texts = classifiers.unieval_inputs(turns, "coherence").tolist()
    return pd.Series(classifiers.yes_probability(model, texts), turns.index)


def bertscore(turns: pd.DataFrame, *, checkpoint: str, **options) -> pd.Series:
    return metrics.bertscore(turns, encoder=checkpoint, layers=17, **options)


def endex_scores(turns: pd.DataFrame, *, checkpoint: str, **options) -> pd.Series:
    return endex.endex_scores(turns, checkpoint, **options)


def dialogrpt(turns: pd.DataFrame, *, checkpoint: str, **options) -> pd.DataFrame:
    return classifiers.dialogrpt(turns, heads={"updown": checkpoint}, **options)


METRICS = [
    Measured("endex", "RoBERTa-large, two classes", 20_000, endex_scores),
    Measured("bertscore", "RoBERTa-large", 20_000, bertscore),
    Measured("bleurt", "BLEURT-20", 10_000, classifiers.bleurt),
    Measured("bartscore", "BART-large", 2_000, likelihood.bartscore),
    Measured("prism_style", "M2M-100 418M", 1_000, likelihood.prism_style),
    Measured("dialogrpt, one head", "DialogRPT", 5_000, dialogrpt),
    Measured("unieval, coherence", "T5-large", 2_000, unieval_coherence),
    Measured("log_likelihood", "DialoGPT-large", 500, likelihood.log_likelihood),
    Measured(
        "fed, 8 attributes",
        "DialoGPT-large",
        100,
        partial(likelihood.fed, utterances=FOLLOW_UPS),
    ),
]


def invented_turns(n_rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    text = partial(random_networks.invented_text, rng)
    rows = []
    for _ in range(n_rows):
        row = {"context": [text(), text()], "response": text(), "reference": [text()]}
        rows.append(row | {"fact": []})
    return pd.DataFrame(rows)


def forget_models() -> None:
    models._load_once.cache_clear()
    classifiers._load_bleurt_once.cache_clear()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def scores_of(measured: Measured, turns: pd.DataFrame, **options) -> np.ndarray:
    return np.asarray(measured.score(turns, **options), dtype=float)


def measure(
    measured: Measured,
    turns: pd.DataFrame,
    on_cpu: np.ndarray,
    dtype: str,
    batch_tokens: int,
    checkpoint: str,
) -> dict:
    """Replies a second and memory of one metric, after a first call that is not timed."""
    options = {"checkpoint": checkpoint, "dtype": dtype, "device": "cuda"}
    options["batch_tokens"] = batch_tokens
    forget_models()
    few = scores_of(measured, turns.head(N_CPU), **options)
    torch.cuda.synchronize()
    start = time.perf_counter()
    scores_of(measured, turns, **options)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    return {
        "metric": measured.metric,
        "shape": measured.shape,
        "dtype": dtype,
        "batch_tokens": batch_tokens,
        "replies": len(turns),
        "seconds": seconds,
        "replies_per_second": len(turns) / seconds,
        "gpu_memory_gb": torch.cuda.max_memory_allocated() / 1e9,
        "difference_to_cpu": np.nanmax(np.abs(few - on_cpu)),
        "device": torch.cuda.get_device_name(),
    }


def main() -> None:
    if not torch.cuda.is_available():
        print("no GPU here: nothing is measured, data/results/bench_models.csv stays")
        return
    rows = []
    with TemporaryDirectory() as temporary:
        for measured in METRICS:
            folder = Path(temporary) / measured.shape
            if not folder.exists():
                random_networks.write(measured.shape, folder)
            checkpoint = str(folder)
            turns = invented_turns(measured.n_replies)
            on_cpu = scores_of(
                measured, turns.head(N_CPU), checkpoint=checkpoint, device="cpu"
            )
            for dtype in ("float32", "bfloat16"):
                for batch_tokens in BATCHES:
                    how = {"dtype": dtype, "batch_tokens": batch_tokens}
                    try:
                        row = measure(
                            measured, turns, on_cpu, checkpoint=checkpoint, **how
                        )
                    except torch.OutOfMemoryError:
                        print(measured.metric, dtype, batch_tokens, "out of memory")
                        continue
                    rows.append(row)
                    print(row, file=sys.stderr, flush=True)
            # After each metric: what was measured stays if the next one fails.
            table = pd.DataFrame(rows)
            record.write(table, "bench_models", packages=["torch", "transformers"])


if __name__ == "__main__":
    main()
