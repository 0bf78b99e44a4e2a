"""Run the false-positive simulation at full size and record it with its date.

Run by hand (minutes, seeded): python tests/bench/simulate_nesting.py
"""

import datetime
import os
import platform

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from lib import ROOT
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
    table["date"] = datetime.date.today().isoformat()
    table["versions"] = f"python {platform.python_version()}, numpy {np.__version__}"
    table.to_csv(
        ROOT / "data/results/nesting_simulation.csv", index=False, float_format="%.6g"
    )
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
