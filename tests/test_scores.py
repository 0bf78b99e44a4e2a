"""Scores are computed once, survive a crash at the batch where it struck, and say what ran."""

import dataclasses
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import slow_metric

from lib import metrics as scores

TURNS = pd.DataFrame(
    {
        "dialog": ["b", "a", "b", "a"],
        "context": [["hi"], [], ["well"], ["so"]],
        "response": ["Why do you ask?", "no", "", None],
        "reference": [["why not"], ["yes"], ["a"], []],
    },
    index=[10, 7, 3, 8],
)


def quiet(*args):
    return None


def test_a_score_is_computed_once_and_reused(tmp_path):
    said = []
    first = scores.compute(slow_metric.big_table(50), ["hashed"], folder=tmp_path, say=said.append)
    again = scores.compute(slow_metric.big_table(50), ["hashed"], folder=tmp_path, say=said.append)
    pd.testing.assert_frame_equal(first, again)
    assert said == ["hashed: computed 50 rows", "hashed: reused 50 rows"]


@pytest.mark.parametrize(
    "change",
    [
        lambda turns: turns.assign(response=turns["response"].replace("no", "nope")),
        lambda turns: turns.iloc[::-1],
        lambda turns: turns.iloc[:3],
    ],
)
def test_another_input_is_another_score(tmp_path, change):
    said = []
    scores.compute(TURNS, ["length"], folder=tmp_path, say=said.append)
    scores.compute(change(TURNS), ["length"], folder=tmp_path, say=said.append)
    assert "reused" not in "".join(said)


def test_columns_that_a_metric_does_not_read_do_not_matter(tmp_path):
    said = []
    scores.compute(TURNS, ["length"], folder=tmp_path, say=said.append)
    changed = TURNS.assign(reference=[[]] * 4, human_overall=1.0)
    scores.compute(changed, ["length"], folder=tmp_path, say=said.append)
    assert said[1] == "length: reused 4 rows"


def test_other_options_are_another_score(tmp_path):
    said = []
    for layer in (5, 6, 5):
        scores.compute(
            TURNS, ["bertscore"], options={"bertscore": {"layer": layer}}, folder=tmp_path,
            say=said.append,
        )  # fmt: skip
    assert [line.split()[1] for line in said] == ["computed", "computed", "reused"]


def test_another_version_is_another_score(tmp_path, monkeypatch):
    said = []
    scores.compute(TURNS, ["length"], folder=tmp_path, say=said.append)
    newer = dataclasses.replace(scores.METRICS["length"], version="2")
    monkeypatch.setitem(scores.METRICS, "length", newer)
    scores.compute(TURNS, ["length"], folder=tmp_path, say=said.append)
    assert "reused" not in said[1]


def test_rows_keep_their_place_and_missing_is_counted_by_reason(tmp_path):
    table = scores.compute(
        TURNS, ["word_f1_normalized", "bertscore"], folder=tmp_path, rows=2, say=quiet
    )
    assert list(table.index) == [10, 7, 3, 8]
    assert table.loc[10, "word_f1_normalized"] == pytest.approx(2 / 6)
    assert table.loc[7, "word_f1_normalized"] == 0
    assert np.isnan(table.loc[8]).all()
    assert table.attrs["missing"]["bertscore_f1"] == {"no response": 2}


BLANK = [None, "", " \n\t", "\x00\x07", "\u200b\ufeff"]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, chosen in scores.METRICS.items()
        if chosen.family in ("overlap", "embedding", "psychological")
    ],
)
def test_a_blank_response_has_no_score_and_a_reason(tmp_path, name):
    said = [*BLANK, "do you like tea?"]
    turns = pd.DataFrame(
        {"context": [["hello"]] * 6, "response": said, "reference": [["tea or coffee"]] * 6}
    )
    table = scores.compute(turns, [name], folder=tmp_path, say=quiet)
    assert table[:5].isna().all(axis=None)
    missing = table.attrs["missing"]
    assert all(missing[column]["no response"] == 5 for column in table)


def test_the_record_names_what_ran(tmp_path):
    table = scores.compute(TURNS, ["bertscore"], folder=tmp_path, say=quiet)
    record = table.attrs["provenance"]["bertscore_f1"]
    assert record["checkpoint"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert record["weights_sha256"].startswith("53aa5117")
    assert record["libraries"]["transformers"] == "5.23.0"
    assert record == json.loads(next(tmp_path.glob("bertscore-*.json")).read_text())
    assert "layer:last" in scores.signature(record)


def test_unknown_metrics_columns_and_options_are_clear_errors(tmp_path):
    with pytest.raises(ValueError, match="did you mean bertscore"):
        scores.compute(TURNS, ["bertscor"], folder=tmp_path)
    with pytest.raises(ValueError, match="needs the column reference"):
        scores.compute(TURNS.drop(columns="reference"), ["bertscore"], folder=tmp_path)
    with pytest.raises(ValueError, match="numbers, texts or lists"):
        scores.compute(TURNS, ["length"], options={"length": {"x": object()}}, folder=tmp_path)
    with pytest.raises(ValueError, match="set of responses, not per turn"):
        scores.compute(TURNS, ["mauve"], folder=tmp_path)


def test_every_registered_metric_can_be_loaded():
    for chosen in scores.METRICS.values():
        assert callable(chosen.load()), chosen.name


def test_an_error_in_a_metric_keeps_the_batches_before_it(tmp_path):
    table = slow_metric.big_table(30)
    table.loc[25, "response"] = "no number here"
    with pytest.raises(ValueError, match="invalid literal"):
        scores.compute(table, ["hashed"], folder=tmp_path, rows=10, say=quiet)
    assert len(list(tmp_path.glob("hashed-*.parts/*.parquet"))) == 2


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A table of 30 rows, and the folder of a run of it that the disk stopped after 20."""
    table = slow_metric.big_table(30).assign(dialog=[f"d{i % 4}" for i in range(30)])
    real = storing._parquet

    def full(frame, path):
        if path.name.startswith("000002"):
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(frame, path)

    with monkeypatch.context() as patched, pytest.raises(scores.NoSpaceLeft, match="free some"):
        patched.setattr(storing, "_parquet", full)
        scores.compute(table, ["hashed"], folder=tmp_path, rows=10, say=quiet)
    return table, tmp_path


def resumed(table, folder, rows=10) -> str:
    """Finish a stopped run; its scores must be those of a run of its own. Returns what was said."""
    said = []
    found = scores.compute(table, ["hashed"], folder=folder, rows=rows, say=said.append)
    whole = scores.compute(table, ["hashed"], folder=folder / "apart", rows=rows, say=quiet)
    pd.testing.assert_frame_equal(found, whole)
    return said[0]


def test_after_a_full_disk_the_run_goes_on_where_it_stopped(stopped):
    assert not list(stopped[1].rglob("*.unfinished"))
    assert resumed(*stopped) == "hashed: computed 10 rows, 20 found finished"


def test_a_damaged_part_is_computed_again(stopped):
    part = sorted(stopped[1].glob("*.parts/*"))[0]
    part.write_bytes(part.read_bytes()[:-30])
    assert resumed(*stopped) == "hashed: computed 20 rows, 10 found finished"


def test_parts_of_another_size_or_order_are_not_taken(stopped):
    table, folder = stopped
    assert resumed(table, folder, rows=15) == "hashed: computed 30 rows"
    other = table.assign(dialog=table["dialog"].to_numpy()[::-1])
    assert resumed(other, folder) == "hashed: computed 30 rows"


def kill_and_finish(folder: Path, rows: int, batch: int, seconds: float, seed: int) -> Counter:
    """Run to the end with three kills at random moments; return how often each batch was done."""
    log = folder / "log"
    command = [sys.executable, str(Path(slow_metric.__file__)), str(folder / "scores"), str(log)]
    command += [str(rows), str(batch), str(seconds)]
    draw = random.Random(seed)
    total = -(-rows // batch)
    marks = sorted(draw.sample(range(1, total), 3))
    for mark in marks:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and (
            not log.exists() or len(log.read_text().splitlines()) < mark
        ):
            time.sleep(0.002)
        time.sleep(draw.random() * 2 * seconds)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Counter(log.read_text().splitlines())


def check_kills(folder: Path, rows: int, batch: int, seconds: float, seed: int) -> None:
    done = kill_and_finish(folder / "killed", rows, batch, seconds, seed)
    options = {"hashed": {"seconds": seconds, "log": str(folder / "killed" / "log")}}
    scores.compute(
        slow_metric.big_table(rows), ["hashed"], options=options, folder=folder / "whole",
        rows=batch, say=quiet,
    )  # fmt: skip
    (killed,) = (folder / "killed" / "scores").glob("*.parquet")
    (whole,) = (folder / "whole").glob("*.parquet")
    assert killed.name == whole.name
    assert killed.read_bytes() == whole.read_bytes()
    assert not list((folder / "killed" / "scores").glob("*.parts"))
    # A batch counts as finished once it is on disk: at most the one at hand is done again per kill.
    assert len(done) == -(-rows // batch)
    assert sum(done.values()) - len(done) <= 3


def test_three_kills_change_no_byte_and_repeat_no_finished_batch(tmp_path):
    (tmp_path / "killed").mkdir()
    check_kills(tmp_path, rows=600, batch=20, seconds=0.02, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_three_kills_of_a_hundred_thousand_rows(tmp_path, seed):
    (tmp_path / "killed").mkdir()
    check_kills(tmp_path, rows=100_000, batch=1000, seconds=0.02, seed=seed)
