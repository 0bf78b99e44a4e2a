"""How often equal versions are called different, by the form of the log that they stand in.

Run by hand (a minute, seeded): python tests/bench/simulate_log_forms.py

Both versions of a run are drawn from one population, whose dialogs differ in how long their replies
are and how they are rated. A form that counts a reply twice, or a rater as a reply of its own, has
more rows than information, and calls too many of them different.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import record

from lib.report.dialogs import read_versions
from lib.report.verdict import differences, verdicts

RUNS = 50  # of each form
DIALOGS = 40  # of each version
RATERS = 3
WORDS = ["tea", "rain", "cake", "boat", "hat", "moss", "lamp", "fern", "salt", "kite"]


def dialogs(rng):
    """Dialogs of a version: exchanges of user and bot, and a level of quality of the dialog."""
    drawn = []
    for _ in range(DIALOGS):
        length = rng.gamma(4, 3)
        exchanges = []
        for _ in range(rng.integers(1, 6)):
            asked = words(rng, 6)
            exchanges.append((asked, words(rng, 1 + rng.poisson(length))))
        drawn.append((exchanges, rng.normal()))
    return drawn


def words(rng, count):
    """A text of so many words and a number, so that no two are the same."""
    return " ".join([*rng.choice(WORDS, count), str(rng.integers(10**9))])


def messages(exchanges):
    """Exchanges as messages."""
    listed = []
    for asked, answered in exchanges:
        listed.append({"role": "user", "content": asked})
        listed.append({"role": "assistant", "content": answered})
    return listed


def requests(version, with_thread=True):
    """A request per reply, which holds the history so far, and the reply beside it."""
    rows = []
    for number, (exchanges, _) in enumerate(version):
        for end in range(1, len(exchanges) + 1):
            history = messages(exchanges[:end])
            row = {"input": history[:-1], "output": history[-1]["content"]}
            row["timestamp"] = f"2025-03-05T10:{end:02d}:00Z"
            if with_thread:
                row["sessionId"] = f"s{number}"
            rows.append(row)
    return rows


def write_plain(folder, versions, rng):
    """One list of messages per dialog."""
    return write_files(
        folder,
        [[{"messages": messages(e)} for e, _ in version] for version in versions],
    )


def write_histories(folder, versions, rng):
    """Growing lists of messages, without an id that would join them."""
    tables = []
    for version in versions:
        rows = []
        for exchanges, _ in version:
            for end in range(1, len(exchanges) + 1):
                rows.append({"messages": messages(exchanges[:end])})
        tables.append(rows)
    return write_files(folder, tables)


def write_traces(folder, versions, rng):
    """Langfuse's traces, in the order of nothing."""
    tables = [requests(version) for version in versions]
    for table in tables:
        rng.shuffle(table)
    return write_files(folder, tables)


def write_arena(folder, versions, rng):
    """Two dialogs a row with the same first words, and who was preferred."""
    rows = []
    for number, ((first, _), (second, _)) in enumerate(zip(*versions, strict=True)):
        second = [(first[0][0], second[0][1]), *second[1:]]
        row = {"question_id": str(number), "model_a": "A", "model_b": "B"}
        row["winner"] = str(rng.choice(["model_a", "model_b", "tie"]))
        row["conversation_a"] = messages(first)
        row["conversation_b"] = messages(second)
        rows.append(row)
    return write_files(folder, [rows])


def write_raters(folder, versions, rng):
    """A row per reply and rater, whose ratings of a dialog go together."""
    rows = []
    for system, version in zip("AB", versions, strict=True):
        for number, (exchanges, level) in enumerate(version):
            for turn, (asked, answered) in enumerate(exchanges):
                for rater in range(RATERS):
                    rating = round(3 + level + rng.normal(scale=0.7))
                    rows.append(
                        {
                            "system": system,
                            "dialog": f"{system}{number}",
                            "turn": turn,
                            "context": json.dumps([asked]),
                            "response": answered,
                            "rater": f"r{rater}",
                            "human_overall": min(max(rating, 1), 5),
                        }
                    )
    file = folder / "ratings.csv"
    pd.DataFrame(rows).to_csv(file, index=False)
    return [file]


def write_files(folder, tables):
    """Files of JSON lines, one per table."""
    files = []
    for name, rows in zip("ab", tables, strict=False):
        file = folder / f"{name}.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        files.append(file)
    return files


FORMS = {
    "a list of messages per dialog": write_plain,
    "histories repeated, no ids": write_histories,
    "traces of a session, shuffled": write_traces,
    "arena pairs": write_arena,
    "one row per rater": write_raters,
}


def is_called_different(write, rng):
    """Whether the report calls two equal versions in this form different, and the replies read."""
    versions = [dialogs(rng), dialogs(rng)]
    with tempfile.TemporaryDirectory() as name:
        turns = read_versions(write(Path(name), versions, rng))
    expected = sum(len(exchanges) for version in versions for exchanges, _ in version)
    if len(turns) != expected:
        raise ValueError(f"{len(turns)} replies were read of {expected}")
    scores = pd.DataFrame({"words": turns["response"].str.split().map(len)})
    table = differences(turns, scores, ["words"], resamples=1000)
    return verdicts(table)[0].verdict in ("better", "worse", "mixed")


def main() -> None:
    rows = []
    for name, write in FORMS.items():
        rng = np.random.default_rng(0)
        different = sum(is_called_different(write, rng) for _ in range(RUNS))
        rows.append({"form": name, "runs": RUNS, "called_different": different})
    table = pd.DataFrame(rows)
    total = {"form": "all", **table[["runs", "called_different"]].sum().to_dict()}
    table = pd.concat([table, pd.DataFrame([total])], ignore_index=True)
    record.write(table, "log_forms_simulation", packages=["numpy"])


if __name__ == "__main__":
    main()
