"""What it costs to load every public corpus: CPU seconds and peak memory, each in a process of its
own, beside the bound of only reading, verifying and parsing the same files.

Needs the corpora (DIALOGUE_DATA_DIR). Writes data/results/bench_corpora.csv.
"""

import subprocess
import sys

import pandas as pd
import record

from lib import ROOT

REPORT = (
    "import resource, sys; use = resource.getrusage(resource.RUSAGE_SELF); "
    "print(use.ru_utime + use.ru_stime, use.ru_maxrss / 1024)"
)
LOAD = """
from lib import data
from lib.data.storage import registry
for name in registry()["corpora"]: data.load(name)
for split in ("train", "dev", "test"): data.goemotions(split)
for name in set(registry()["tables"]) - {"goemotions"}: getattr(data, name)()
"""
BOUND = """
import json
from lib import data
from lib.data.storage import archive_members, fetch_file, registry
def parse(content):
    try: return json.loads(content)
    except ValueError: return [json.loads(line) for line in content.splitlines()]
entries = registry()
for entry in [*entries["corpora"].values(), *entries["tables"].values()]:
    for key in entry["files"]:
        path = fetch_file(key)
        if ".tar." in key or key.endswith(".tgz"):
            for name, content in archive_members(path):
                if name.endswith(".json"): parse(content)
        elif key.endswith(".json"): parse(path.read_bytes())
        else: path.read_bytes().split(b"\\n")
"""
SCRIPTS = {
    "imports only": "from lib import data",
    "bound: read, verify, parse": BOUND,
    "load everything": LOAD,
}


def cost(script: str) -> tuple[float, float]:
    """CPU seconds and peak memory (MB) of a script in a fresh interpreter."""
    command = [sys.executable, "-c", f"{script}\n{REPORT}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    seconds, megabytes = done.stdout.split()[-2:]
    return float(seconds), float(megabytes)


def main() -> None:
    """Print and save the table."""
    rows = []
    for name, script in SCRIPTS.items():
        seconds, megabytes = min(cost(script) for _ in range(3))
        rows.append(
            {"what": name, "cpu_s": round(seconds, 2), "peak_mb": round(megabytes)}
        )
    table = pd.DataFrame(rows)
    table["ratio_to_bound"] = (table["cpu_s"] / table["cpu_s"].iloc[1]).round(2)
    record.write(table, "bench_corpora", packages=["pandas"])


if __name__ == "__main__":
    main()
