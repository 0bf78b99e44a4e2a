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


def same_or_error(path):
    """Read; a table must hold as many rows as the account says."""
    try:
        turns = dialogues.read_turns(path, scale=(0, 5))
    except DataError as error:
        assert str(error)
        return None
    dialogues.validate(turns)
    report = dialogues.read_report(turns).set_index("unit")
    assert report.loc["responses", "kept"] == len(turns)
    blanks = int(turns[dialogues.human_columns(turns)].isna().sum().sum())
    read, kept = report.loc["ratings", ["read", "kept"]]
    assert read - kept == blanks
    return turns


@settings(SETTINGS, max_examples=MORE or 300)
@given(
    st.lists(NAMES, min_size=1, max_size=6),
    st.lists(st.lists(CELLS, min_size=1, max_size=6), max_size=4),
)
def test_any_csv(names, rows):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "mine.csv"
        try:
            small.table(path, [names, *rows])
        except UnicodeEncodeError:
            return
        turns = same_or_error(path)
        if turns is not None:
            assert len(turns) == len(rows)


VALUES = CELLS | st.none() | st.integers() | st.floats() | st.lists(CELLS)


@settings(SETTINGS, max_examples=MORE or 300)
@given(st.lists(st.dictionaries(NAMES, VALUES), max_size=4))
def test_any_jsonl_and_parquet(rows):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "mine.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        turns = same_or_error(path)
        if turns is not None:
            assert len(turns) == len(rows)


@settings(SETTINGS, max_examples=MORE or 200)
@given(st.binary(max_size=200), st.sampled_from(["csv", "tsv", "json", "jsonl", "parquet"]))
def test_any_bytes_of_a_users_file(raw, kind):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"mine.{kind}"
        path.write_bytes(raw)
        same_or_error(path)
