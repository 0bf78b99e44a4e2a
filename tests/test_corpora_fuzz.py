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
from lib.data.turn_table import COLUMNS, validate

# FUZZ_EXAMPLES=2000 looks further, with other seeds on each run.
MORE = int(os.environ.get("FUZZ_EXAMPLES", "0"))
SETTINGS = settings(
    max_examples=MORE or 300,
    deadline=None,
    derandomize=not MORE,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

EXAMPLES = [
    "A",
    "d1",
    "Hello",
    "",
    " ",
    "3",
    "-1",
    "3.5",
    "nan",
    '["a"]',
    '["a',
    "a\nb",
    '"',
    "🙂",
]
CELLS = st.text(max_size=8) | st.sampled_from(EXAMPLES)
NAMES = st.sampled_from(
    [*COLUMNS, "human_x", "human x", "respones", "note", "", "SYSTEM"],
)
VALUES = CELLS | st.none() | st.integers() | st.floats() | st.lists(CELLS)
ROWS = st.lists(st.dictionaries(NAMES, VALUES), max_size=4)
TABLES = st.tuples(
    st.lists(NAMES, min_size=1, max_size=6), st.lists(st.lists(CELLS), max_size=4)
)
BYTES = st.tuples(
    st.binary(max_size=200), st.sampled_from(["csv", "tsv", "json", "parquet"])
)


def same_or_error(name, write):
    """Read what `write` writes; a table must hold as many rows as its report says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        try:
            write(path)
            turns = dialogues.read_turns(path, scale=(0, 5))
        except (DataError, UnicodeEncodeError) as error:
            assert str(error)
            return None
    validate(turns)
    report = dialogues.import_report(turns).set_index("unit")
    assert report.loc["responses", "kept"] == len(turns)
    ratings = report.loc["ratings"]
    missing = turns.filter(regex="^human_").isna().sum().sum()
    assert ratings["read"] - ratings["kept"] == missing
    return len(turns)


@SETTINGS
@given(TABLES)
def test_any_csv(table):
    names, rows = table
    n_turns = same_or_error("mine.csv", lambda path: small.table(path, [names, *rows]))
    n_filled = sum("".join(row) != "" for row in rows)
    assert n_turns in (None, n_filled, len(rows))


@SETTINGS
@given(ROWS)
def test_any_jsonl(rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert same_or_error("mine.jsonl", lambda path: path.write_text(lines)) in (
        None,
        len(rows),
    )


@settings(SETTINGS, max_examples=MORE or 200)
@given(BYTES)
def test_any_bytes_of_a_users_file(file):
    content, ending = file
    same_or_error(f"mine.{ending}", lambda path: path.write_bytes(content))
