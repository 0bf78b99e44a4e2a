"""A cheap metric that leaves a trace of every batch it computes: the kill tests run it."""

import os
import sys
import time

import numpy as np
import pandas as pd

from lib import metrics


def hashed(turns: pd.DataFrame, seconds: float = 0.0, log: str = "") -> pd.DataFrame:
    """Two numbers per response, which take `seconds` a batch; the batch is logged when done."""
    time.sleep(seconds)
    values = turns["response"].map(lambda text: float(int(text.split()[-1]) % 997) / 7)
    values[values > 140] = np.nan
    if log:
        with open(log, "a") as file:
            file.write(f"{turns['response'].iloc[0]}\n")
            file.flush()
            os.fsync(file.fileno())
    return pd.DataFrame({"hashed": values, "hashed_root": np.sqrt(values)})


def big_table(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"response": [f"reply number {i}" for i in range(rows)]})


def run(folder: str, log: str, rows: str, batch: str, seconds: str) -> None:
    metrics.metric("hashed", "test", version="1")(hashed)
    options = {"hashed": {"seconds": float(seconds), "log": log}}
    table = big_table(int(rows))
    metrics.compute(
        table, ["hashed"], options=options, folder=folder, batch_rows=int(batch)
    )


if __name__ == "__main__":
    run(*sys.argv[1:])
