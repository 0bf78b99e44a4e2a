"""Run the false-positive simulation at full size and record it with its date.

Run by hand (minutes, seeded): python tests/bench/simulate_nesting.py
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
import record

from lib.analysis import significance

RUNS = 1000
RESAMPLES = {"pearson": 999, "spearman": 499}  # ranks are the slow part


def main() -> None:
    tables = [
        significance.false_positive_rates(
            RUNS, method=method, resamples=resamples
        ).assign(method=method, resamples=resamples)
        for method, resamples in RESAMPLES.items()
    ]
    table = pd.concat(tables, ignore_index=True)
    record.write(table, "nesting_simulation", packages=["numpy"])


if __name__ == "__main__":
    main()
