"""Resampling correlations: ours beside nlpstats, in the same run.

    python tests/bench/bench_correlation.py

nlpstats is timed on fewer draws and scaled up, since its time grows linearly with the draws.
"""

import os
import resource
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import record
from nlpstats.correlations import bootstrap as peer_bootstrap
from nlpstats.correlations import permutation_test as peer_permutation

from lib.analysis.resampling import bootstrap_interval
from lib.analysis.significance import permutation_test

DRAWS = 10_000
PEER_DRAWS = {360: 300, 10_395: 20}


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A 5-level human rating, a continuous metric and one rounded to a tenth (with ties)."""
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, n).astype(float)
    return (
        human + rng.normal(size=n),
        np.round(human + 1.2 * rng.normal(size=n), 1),
        human,
    )


def measure(n: int, method: str) -> list[dict]:
    a, b, human = data(n)
    matrix = [
        values.reshape(6, -1) if n % 6 == 0 else values[None]
        for values in (a, b, human)
    ]
    draws = PEER_DRAWS[n]
    tasks = {
        "permutation (item by item)": (
            lambda: permutation_test(a, b, human, method, resamples=DRAWS),
            lambda: peer_permutation(
                *matrix, "global", method, "both", n_resamples=draws
            ),
        ),
        "bootstrap interval": (
            lambda: bootstrap_interval(a, human, None, method, resamples=DRAWS),
            lambda: peer_bootstrap(
                matrix[0], matrix[2], "global", method, "inputs", n_resamples=draws
            ),
        ),
    }
    rows = []
    for task, (call, peer) in tasks.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = min(cpu_seconds(call) for _ in range(3 if n < 1000 else 1))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        peer_seconds = cpu_seconds(peer) * DRAWS / draws
        rows.append(
            {
                "task": task,
                "items": n,
                "method": method,
                "draws": DRAWS,
                "ours_cpu_s": seconds,
                "nlpstats_cpu_s": peer_seconds,
                "ratio": peer_seconds / seconds,
                "memory_grown_mib": grown / 1024,
            }
        )
    return rows


def main() -> None:
    rows = []
    for n in PEER_DRAWS:
        for method in (
            ("pearson", "spearman", "kendall") if n < 1000 else ("pearson", "spearman")
        ):
            rows += measure(n, method)
    table = pd.DataFrame(rows)
    record.write(table, "bench_correlation", packages=["numpy", "scipy", "nlpstats"])


if __name__ == "__main__":
    main()
