"""A tiny network that is not packaged scores many replies: a test of kill -9 runs it."""

import sys

import pandas as pd

from lib import metrics


def run(folder: str, kept: str, rows: str, log=None) -> None:
    table = pd.DataFrame({"response": [f"tea {n}" for n in range(int(rows))]})
    table["reference"] = [["tea"]] * len(table)
    options = {"bertscore": {"encoder": folder, "device": "cpu"}}
    metrics.compute(table, ["bertscore"], options=options, folder=kept, log=log)


if __name__ == "__main__":
    run(*sys.argv[1:])
