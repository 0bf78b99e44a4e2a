"""Comment dumps to RED: ours beside the usual loop of json.loads over lines, same dump.

    python tests/bench/bench_reddit.py                # 1 million generated comments
    python tests/bench/bench_reddit.py --comments 1000000 5000000

Each stage runs in a process of its own, so that its CPU seconds and its peak memory are its own.
The loop reads the same fields and writes Parquet: once as texts, without working anything out, and
once with the columns that ours writes, content words counted. The emotion of a reply is replaced by
a fixed fraction: the classifier is another stage. Writing the dump is not timed. Wall times are
worth something on idle cores only.
"""

import argparse
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import record

from lib import ROOT

sys.path.insert(0, str(ROOT / "tests"))

LOOPS = ("loop", "loop, same columns")
# Ours before, between and after the loops: the speed of a shared machine drifts.
ORDER = ("ours", LOOPS[0], "ours", LOOPS[1], "ours")
FIELDS = ["id", "parent_id", "link_id", "subreddit", "author", "body", "score"]
FIELDS += ["score_hidden", "controversiality", "edited", "created_utc", "retrieved_on"]


def ours(dump: Path, folder: Path) -> dict:
    """Dump to labelled sample, as a user would run it, with a stand-in for the emotions."""
    from red_oracle import fingerprint

    from lib import endex
    from lib.endex.reddit import parquet_files

    started = time.perf_counter()
    endex.to_parquet([dump], folder / "comments")
    read = time.perf_counter()
    ingest = resource.getrusage(resource.RUSAGE_SELF)
    engine = endex.DuckDB()
    engine.connection.execute("set memory_limit = '1200MB'")
    engine.read("features", parquet_files(folder / "comments"))
    kept = engine.frame(
        "select count(*) as n, sum(tokens) as tokens from features"
    ).iloc[0]
    target = folder / "ee.parquet"
    engine.connection.execute(
        "copy (select id, (tokens * 37 % 101) / 100.0::double as ee from features "
        f"where tokens is not null) to '{target}' (format parquet)"
    )
    red = endex.build_red(folder / "comments", emotions=target, engine=engine)
    return {
        "sample": len(red.sample),
        "comments_kept": int(kept["n"]),
        "tokens": int(kept["tokens"]),
        "ingest_wall": read - started,
        "ingest_cpu": ingest.ru_utime + ingest.ru_stime,
        "wall": time.perf_counter() - started,
        "fingerprint": fingerprint(red.sample),
    }


def loop(dump: Path, folder: Path) -> dict:
    """The common script: decompress, json.loads each line, keep fields as text, write Parquet."""
    return line_loop(
        dump, folder, lambda record: {name: str(record[name]) for name in FIELDS}
    )


def loop_features(dump: Path, folder: Path) -> dict:
    """The same script with the columns of ours, worked out in Python line by line."""
    return line_loop(dump, folder, features)


def line_loop(dump: Path, folder: Path, columns: Callable[[dict], dict]) -> dict:
    """Lines that are no comment are passed over; 200,000 rows are written at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    started, rows, writer, count, tokens = time.perf_counter(), [], None, 0, 0

    def write():
        nonlocal writer, count, tokens
        table = pa.Table.from_pylist(rows, schema=writer and writer.schema)
        writer = writer or pq.ParquetWriter(folder / "loop.parquet", table.schema)
        writer.write_table(table)
        count, tokens = (
            count + len(rows),
            tokens + sum(row.get("tokens") or 0 for row in rows),
        )
        rows.clear()

    with dump.open("rb") as raw:
        stream = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(raw)
        for line in io.TextIOWrapper(stream, encoding="utf-8"):
            try:
                rows.append(columns(json.loads(line)))
            except (ValueError, TypeError, KeyError):
                continue
            if len(rows) == 200_000:
                write()
    if rows:
        write()
    writer.close()
    return {
        "ingest_wall": time.perf_counter() - started,
        "comments_kept": count,
        "tokens": tokens,
    }


def features(record: dict) -> dict:
    """What ours keeps of a comment (see features.sql), in plain Python."""
    from red_oracle import tokens

    from lib.endex.reddit import BOTS

    def whole(value: object) -> int | None:
        try:
            return round(float(value))
        except (TypeError, ValueError):
            return None

    body, parent = record["body"], record["parent_id"]
    usable = body not in ("[deleted]", "[removed]", "")
    usable = usable and record["author"] not in ("[deleted]", *BOTS)
    answers = parent.startswith("t1_")
    hidden = record.get("score_hidden") in (True, "true")
    return {
        "id": record["id"],
        "parent": parent[3:] if answers else None,
        "link": record["link_id"].removeprefix("t3_"),
        "subreddit": record["subreddit"],
        "created": whole(record["created_utc"]),
        "retrieved": whole(record.get("retrieved_on")),
        "score": None if hidden else whole(record["score"]),
        "controversial": record.get("controversiality") in (1, "1", True),
        "edited": record["edited"] not in (None, False, "false", 0, "0"),
        "usable": usable,
        "quote": "&gt;" in body or body.startswith(">") or "\n>" in body,
        "tokens": tokens(body) if usable and answers else None,
        "body": body,
    }


def child(stage: str, dump: Path, folder: Path) -> None:
    """Run one stage and print what it took."""
    result = {"ours": ours, "loop": loop, "loop, same columns": loop_features}[stage](
        dump, folder
    )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # Not ru_maxrss: it is inherited from the process that wrote the dump.
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    result |= {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": int(peak[1]) / 1024}
    print("RESULT" + json.dumps(result))


def measure(stage: str, dump: Path) -> dict:
    """One stage in a process of its own."""
    folder = Path(tempfile.mkdtemp(dir=dump.parent))
    command = [sys.executable, __file__, "--child", stage, str(dump), str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(folder)
    return json.loads(output.split("RESULT")[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comments", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], *map(Path, arguments.child[1:]))
        return
    import comment_dump

    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for n in arguments.comments:
            dump = comment_dump.write(Path(temporary) / f"RC_{n}.zst", n)
            load = os.getloadavg()[0]
            for stage in ORDER if n == max(arguments.comments) else ORDER[:1]:
                rows.append({"comments": n, "stage": stage, "load_before": load,
                             **measure(stage, dump)})  # fmt: skip
            dump.unlink()
    table = pd.DataFrame(rows)
    per_million = table["ingest_cpu"].fillna(table["cpu_s"]) / table["comments"] * 1e6
    table["ingest_cpu_per_million"] = per_million
    for stage in LOOPS:
        table[f"{stage} / this"] = (
            per_million[table["stage"] == stage].iloc[0] / per_million
        )
    record.write(table, "bench_reddit", packages=["duckdb", "pyarrow"])


if __name__ == "__main__":
    main()
