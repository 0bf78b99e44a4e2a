"""CPU seconds of the commands that a user waits for, beside those of an earlier commit.

    make bench ONLY=commands                       # this commit alone
    make bench ONLY=commands AGAINST=e44df49       # both in turn, in one run
    make bench ONLY=commands AGAINST=e44df49 TASKS=sample,test RUNS=2   # two of the commands, twice

The commands are the sample notebooks, the test suite, RED from 5 million generated comments, a
report on 100,000 generated replies, and the table of models that PROFILE=hub would fetch, offline.
Each commit is checked out into a folder of its own without
caches, so uncommitted changes do not count. CPU seconds are those of the command and all processes
that it started.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import record

from lib import ROOT

sys.path.insert(0, str(ROOT / "tests"))

COMMENTS = 5_000_000
DIALOGS = 10_000  # of five replies each, in each of two versions


@contextmanager
def checkout(commit: str, parent: Path) -> Iterator[Path]:
    """A commit's files in a folder below `parent`."""
    folder = parent / commit
    subprocess.run(
        ["git", "worktree", "add", "--detach", folder, commit], cwd=ROOT, check=True
    )
    try:
        yield folder
    finally:
        subprocess.run(
            ["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True
        )


def write_dialogs(file: Path, seed: int) -> None:
    """Generated dialogs as JSON Lines of chat messages, five replies each."""
    words = (ROOT / "data" / "sample" / "README.md").read_text().split()
    rng = random.Random(seed)
    with file.open("w") as lines:
        for number in range(DIALOGS):
            messages = []
            for position in range(10):
                role = "assistant" if position % 2 else "user"
                text = " ".join(rng.choices(words, k=rng.randint(3, 20)))
                if position == 0:
                    text = f"opening {number}"
                messages.append({"role": role, "content": text})
            line = {"id": f"{number}", "model": file.stem, "messages": messages}
            lines.write(json.dumps(line) + "\n")


def commands(inputs: Path) -> dict[str, list[str]]:
    """The arguments of Python for each task; run in the folder of a commit."""
    output = str(inputs / "output")
    return {
        "sample notebooks": ["-m", "lib.notebook_runs", "--force"],
        "report on 100,000 replies": [
            "-m", "lib.report", str(inputs / "a.jsonl"), str(inputs / "b.jsonl"),
            "--out", f"{output}.html",
        ],
        "RED of 5 million comments": [
            "tests/bench/bench_reddit.py", "--child", "ours",
            str(inputs / "RC_2020-01.zst"), output,
        ],
        "models of the hub, DRY=1": ["-m", "lib.notebook_runs", "--profile", "hub", "--dry"],
        "test suite": ["-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"],
    }  # fmt: skip


def write_inputs(task: str, inputs: Path) -> None:
    """Write the files that a task reads, unless they are there."""
    if task.startswith("report") and not (inputs / "a.jsonl").exists():
        write_dialogs(inputs / "a.jsonl", seed=1)
        write_dialogs(inputs / "b.jsonl", seed=2)
    if task.startswith("RED") and not (inputs / "RC_2020-01.zst").exists():
        import comment_dump

        comment_dump.write(inputs / "RC_2020-01.zst", COMMENTS)


def measure(arguments: list[str], folder: Path, inputs: Path) -> dict[str, float]:
    """Run one command in a commit's folder, without caches; return its CPU and wall seconds."""
    for name in ("build", "data/cache"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.rmtree(inputs / "output", ignore_errors=True)
    (inputs / "output").mkdir()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": cpu, "wall_s": wall, "exit_code": done.returncode}


def main() -> None:
    """Measure each task on each commit in turn, write every run and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs",
        type=int,
        default=int(os.environ.get("RUNS", "1")),
        help="runs of each commit, in turn",
    )
    parser.add_argument(
        "--tasks",
        nargs="*",
        default=os.environ.get("TASKS", "").replace(",", " ").split(),
        help="first words of the tasks to run; all by default",
    )
    options = parser.parse_args()
    known = commands(Path())
    for words in options.tasks:
        if not any(task.startswith(words) for task in known):
            parser.error(f"no task begins with {words!r}: {', '.join(known)}")
    commits = [record.commit().removesuffix(" + changes")]
    if os.environ.get("AGAINST"):
        commits.insert(0, os.environ["AGAINST"])
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary)
        for task, arguments in commands(inputs).items():
            if options.tasks and not task.startswith(tuple(options.tasks)):
                continue
            write_inputs(task, inputs)
            for run in range(options.runs):
                for commit in commits:
                    with checkout(commit, inputs) as folder:
                        seconds = measure(arguments, folder, inputs)
                    rows.append(
                        {"task": task, "run": run + 1, "commit": commit, **seconds}
                    )
                    print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    # Tasks that this run left out keep the rows of their last run.
    earlier = pd.read_csv(ROOT / "data" / "results" / "bench_commands.csv")
    earlier = earlier[~earlier["task"].isin(table["task"])]
    record.write(pd.concat([earlier, table]), "bench_commands")
    if len(commits) == 2:
        cpu = table.groupby(["task", "commit"], sort=False)["cpu_s"].min().unstack()
        print(
            (cpu[commits[1]] / cpu[commits[0]])
            .rename("CPU seconds, new / old")
            .round(3)
        )


if __name__ == "__main__":
    main()
