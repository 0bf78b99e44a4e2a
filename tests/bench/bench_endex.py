"""Training and scoring speed of EnDex: length-bucketed batches beside batches of random order.

    python tests/bench/bench_endex.py                 # the packaged encoder; on a GPU RoBERTa-large

Pairs are invented words with the length distribution of Reddit pairs (median 15 words a text, long
tail). On a CPU a few hundred pairs are enough; on a GPU one epoch of 64,259 pairs is run with the
shape of RoBERTa-large (random weights: speed does not depend on them), in bf16. The peer is the
same network and optimizer on batches of 32 in random order, padded to the longest. Scoring stands
beside the text-classification pipeline of transformers.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd
import random_networks
import record
import torch
import transformers

from lib import endex
from lib import models as checkpoints
from lib.endex import classifier


def pairs(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    text = partial(random_networks.invented_text, rng)
    rows = [
        {"context": text(), "response": text(), "label": i % 2, "link": i}
        for i in range(n)
    ]
    return pd.DataFrame(rows)


def random_batches(lengths, max_tokens, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(len(lengths))
    return np.array_split(order, -(-len(order) // 32))


def train(data: pd.DataFrame, options: endex.TrainingOptions, batches) -> dict:
    """Pairs and tokens per second of one epoch, with the validation of 20 pairs and its writing."""
    with (
        TemporaryDirectory() as folder,
        patch.object(classifier, "epoch_batches", batches),
    ):
        cpu = time.process_time()
        run = endex.fine_tune(data.iloc[:-20], data.iloc[-20:], folder, options=options)
        cpu = time.process_time() - cpu
    seconds = run.record["seconds_of_last_session"]
    _, tokenizer = classifier.build_classifier(options.encoder, 0)
    rows = classifier.encode_context_pairs(tokenizer, data, options.max_length)
    n_tokens = sum(len(ids) for ids in rows["input_ids"][:-20])
    n_pairs = len(data) - 20
    return {
        "pairs": n_pairs,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "pairs_per_second": n_pairs / seconds,
        "tokens_per_second": n_tokens / seconds,
    }


def timed(scores: Callable[[pd.DataFrame], object], data: pd.DataFrame) -> dict:
    """Pairs a second, after a first call on few pairs that is not timed."""
    scores(data.head(8))
    started = time.perf_counter()
    cpu = time.process_time()
    scores(data)
    seconds = time.perf_counter() - started
    cpu = time.process_time() - cpu
    return {
        "pairs": len(data),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "pairs_per_second": len(data) / seconds,
    }


def score(data: pd.DataFrame, model: str, **options) -> dict:
    turns = data.assign(context=[[text] for text in data["context"]])
    return timed(partial(endex.endex_scores, model=model, **options), turns)


def score_by_pipeline(data: pd.DataFrame, model: str, batch_size: int, dtype) -> dict:
    """The peer of `score`: transformers' own pipeline, batches in the order of the table."""
    pipeline = transformers.pipeline(
        "text-classification", model=model, tokenizer=model, dtype=dtype, top_k=None
    )

    def scores(pairs: pd.DataFrame) -> list:
        texts = pairs[["context", "response"]].set_axis(["text", "text_pair"], axis=1)
        return pipeline(
            texts.to_dict("records"),
            batch_size=batch_size,
            truncation="longest_first",
            max_length=128,
        )

    return timed(scores, data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    gpu = torch.cuda.is_available()
    parser.add_argument("--pairs", type=int, default=64_279 if gpu else 300)
    arguments = parser.parse_args()
    data = pairs(arguments.pairs)
    with TemporaryDirectory() as temporary:
        encoder = checkpoints.DEFAULT_ENCODER
        if gpu:
            folder = Path(temporary) / "large"
            encoder = str(random_networks.write("RoBERTa-large, two classes", folder))
        options = endex.TrainingOptions(
            encoder=encoder, epochs=1, max_length=256, learning_rate=1e-6,
            batch_tokens=16_384 if gpu else 2048, precision="bf16" if gpu else "fp32",
        )  # fmt: skip
        rows = [
            {"what": "train, ours", **train(data, options, classifier.epoch_batches)},
            {
                "what": "train, random batches of 32",
                **train(data, options, random_batches),
            },
        ]
        network, tokenizer = classifier.build_classifier(encoder, 0)
        network.save_pretrained(f"{temporary}/model")
        tokenizer.save_pretrained(f"{temporary}/model")
        dtype = "bfloat16" if gpu else "float32"
        model = f"{temporary}/model"
        rows.append({"what": "score, ours", **score(data, model, dtype=dtype)})
        for batch_size in (32, 128):
            what = f"score, pipeline of transformers in batches of {batch_size}"
            peer = score_by_pipeline(data, model, batch_size, getattr(torch, dtype))
            rows.append({"what": what, **peer})
        parameters = sum(p.numel() for p in network.base_model.encoder.parameters())
    table = pd.DataFrame(rows)
    # The row below each of ours is its peer's.
    ours = table["what"].isin(["train, ours", "score, ours"])
    peer_cpu = table["cpu_seconds"].shift(-1)
    table["peer_cpu_over_ours"] = (peer_cpu / table["cpu_seconds"]).where(ours)
    # Forward and backward: about 6 floating-point operations per weight and token.
    table["tflops"] = 6 * parameters * table["tokens_per_second"] / 1e12
    table["encoder"] = (
        "RoBERTa-large shape, random" if gpu else checkpoints.DEFAULT_ENCODER
    )
    table["device"] = torch.cuda.get_device_name() if gpu else "cpu"
    table["threads"] = torch.get_num_threads()
    table["load_before"] = os.getloadavg()[0]
    name = "bench_endex_gpu" if gpu else "bench_endex"
    record.write(table, name, packages=["torch", "transformers"])


if __name__ == "__main__":
    main()
