"""RED's curation command by DuckDB, and by Spark on one core with several driver memories.

    make bench ONLY=spark

The command is `python -m lib.endex.red` on 1 million generated comments, the emotion of a reply a
fixed fraction. Seconds and memory are those of Python and the Java process together.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pandas as pd
import psutil
import record

from lib import ROOT, endex
from lib.endex.reddit import parquet_files

sys.path.insert(0, str(ROOT / "tests"))

COMMENTS = 1_000_000
DRIVER_MEMORIES = ("1g", "4g")  # 1g is Spark's default, 4g what the documentation says


def write_inputs(folder: Path) -> None:
    """Write the folder `comments` and the file `ee.parquet` that the command reads."""
    import comment_dump

    dump = comment_dump.write(folder / "RC_2019-01.zst", COMMENTS)
    endex.to_parquet([dump], folder / "comments")
    files = [str(file) for file in parquet_files(folder / "comments")]
    duckdb.sql(
        "copy (select id, (tokens * 37 % 101) / 100.0::double as ee "
        f"from read_parquet({files}) where tokens is not null) to '{folder}/ee.parquet'"
    )


def measure(folder: Path, engine: str, driver_memory: str = "") -> dict:
    """Run the command once; return what it took and the fingerprint of its sample."""
    from red_oracle import fingerprint

    out = folder / "red.parquet"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "lib.endex.red", "--engine", engine]
    command += ["--comments", folder / "comments", "--emotions", folder / "ee.parquet"]
    command += ["--out", out]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if engine == "spark":
        command += ["--master", "local[1]"]
        memory = f"--driver-memory {driver_memory} pyspark-shell"
        environment["PYSPARK_SUBMIT_ARGS"] = memory
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=(folder / f"{engine}{driver_memory}.log").open("w"),
    )
    seconds, peak = watch(process)
    result = {
        "engine": engine,
        "driver_memory": driver_memory,
        "cpu_s": seconds,
        "wall_s": time.perf_counter() - start,
        "peak_mb": peak,
        "exit_code": process.returncode,
    }
    if process.returncode == 0:
        result["sample"] = fingerprint(pd.read_parquet(out))
    return result


def watch(process: subprocess.Popen) -> tuple[float, float]:
    """CPU seconds and the highest memory (MB) of a process and its children, until it ends."""
    seconds = {}
    peak = 0
    root = psutil.Process(process.pid)
    while process.poll() is None:
        memory = 0
        for member in [root, *root.children(recursive=True)]:
            try:
                times = member.cpu_times()
                memory += member.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            seconds[member.pid] = times.user + times.system
        peak = max(peak, memory)
        time.sleep(0.2)
    return sum(seconds.values()), peak / 2**20


def measure_all(folder: Path) -> pd.DataFrame:
    """DuckDB once, then Spark with each driver memory."""
    rows = [measure(folder, "duckdb")]
    rows += [measure(folder, "spark", memory) for memory in DRIVER_MEMORIES]
    return pd.DataFrame(rows).assign(comments=COMMENTS)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        table = measure_all(Path(folder))
    record.write(table, "bench_spark", packages=["duckdb", "pyspark"])


if __name__ == "__main__":
    main()
