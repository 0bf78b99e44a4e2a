"""What every bench writes beside its figures: the commit, the day and the machine."""

import datetime
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from lib import ROOT


def commit() -> str:
    """The commit that is checked out, with "+ changes" where files differ from it."""
    command = ["git", "describe", "--always", "--dirty= + changes", "--exclude=*"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()


def cpu_model() -> str:
    """The processor and the number of its cores."""
    info = Path("/proc/cpuinfo")
    names = []
    if info.exists():
        lines = info.read_text().splitlines()
        names = [
            line.split(":", 1)[1].strip()
            for line in lines
            if line.startswith("model name")
        ]
    name = names[0] if names else platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def write(table: pd.DataFrame, name: str, packages: Sequence[str] = ()) -> None:
    """Print a bench's table and write it to `data/results`.

    A row that has a commit already keeps it.

    Args:
        table: one row per measurement.
        name: of the file, without its ending.
        packages: whose versions are stated beside Python's.
    """
    table = table.copy()
    stated = {
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_model(),
        "versions": ", ".join(
            [f"python {platform.python_version()}"]
            + [f"{package} {version(package)}" for package in packages]
        ),
    }
    for column, value in stated.items():
        if column not in table:
            table[column] = value
        table[column] = table[column].fillna(value)
    print(
        table.drop(columns=["cpu", "versions"]).to_string(
            index=False, float_format="%.3g"
        )
    )
    table.to_csv(
        ROOT / "data" / "results" / f"{name}.csv", index=False, float_format="%.4g"
    )
