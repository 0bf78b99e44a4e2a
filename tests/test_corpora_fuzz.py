"""Fuzz what reads a user's files: whatever the bytes, the result is a valid table or a
`DataError`, and every row that was read is kept or accounted for."""

import json
import os
import tempfile
from pathlib import Path

import small_corpora as small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib import data as dialogues
from lib.data import DataError
from lib.data.turn_table import validate

# FUZZ_EXAMPLES=2000 looks further, with other seeds on each run.
MORE = int(os.environ.get("FUZZ_EXAMPLES", "0"))
SETTINGS = settings(
    max_examples=MORE or 60, deadline=None, derandomize=not MORE, database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip

SEEN = ["A", "d1", "Hello", "", " ", "3", "-1", "3.5", "nan", '["a"]', '["a', "a\nb", '"', "🙂"]
CELLS = st.text(max_size=8) | st.sampled_from(SEEN)
NAMES = st.sampled_from(
    ["system", "agent", "dialog", "turn", "context", "response", "reference", "fact", "human_x",
     "human x", "respones", "note", "", "SYSTEM"]
)  # fmt: skip


VALUES = CELLS | st.none() | st.integers() | st.floats() | st.lists(CELLS)
ROWS = st.lists(st.dictionaries(NAMES, VALUES), max_size=4)
TABLES = st.tuples(st.lists(NAMES, min_size=1, max_size=6), st.lists(st.lists(CELLS), max_size=4))
BYTES = st.tuples(st.binary(max_size=200), st.sampled_from(["csv", "tsv", "json", "parquet"]))


def same_or_error(name, write):
    """Read what `write` writes; a table must hold as many rows as its account says."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            write(path := Path(scratch) / name)
            turns = dialogues.read_turns(path, scale=(0, 5))
        except (DataError, UnicodeEncodeError) as error:
            assert str(error)
            return None
    validate(turns)
    report = dialogues.import_report(turns).set_index("unit")
    assert report.loc["responses", "kept"] == len(turns)
    blanks = int(turns.filter(regex="^human_").isna().sum().sum())
    read, kept = report.loc["ratings", ["read", "kept"]]
    assert read - kept == blanks
    return len(turns)


@settings(SETTINGS, max_examples=MORE or 300)
@given(TABLES)
def test_any_csv(table):
    names, rows = table
    read = same_or_error("mine.csv", lambda path: small.table(path, [names, *rows]))
    assert read in (None, sum(map(bool, map("".join, rows))), len(rows))


@settings(SETTINGS, max_examples=MORE or 300)
@given(ROWS)
def test_any_jsonl(rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert same_or_error("mine.jsonl", lambda path: path.write_text(lines)) in (None, len(rows))


@settings(SETTINGS, max_examples=MORE or 200)
@given(BYTES)
def test_any_bytes_of_a_users_file(file):
    raw, kind = file
    same_or_error(f"mine.{kind}", lambda path: path.write_bytes(raw))
