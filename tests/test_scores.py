"""Scores are computed once, survive a crash at the batch where it struck, and say what ran."""

import dataclasses
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import killed_network
import numpy as np
import pandas as pd
import pytest
import slow_metric
import tiny_models

from lib import endex, metrics, psychology  # noqa: F401 - rooms register their metrics

TURNS = pd.DataFrame({"dialog": ["b", "a", "b", "a"]}, index=[10, 7, 3, 8])
TURNS["context"] = [["hi"], [], ["well"], ["so"]]
TURNS["response"] = ["Why do you ask?", "no", "", None]
TURNS["reference"] = [["why not"], ["yes"], np.array(["a"], dtype=object), []]


LEXICON = {"sha256": "old"}


def letters(turns, unit="characters"):
    return turns["response"].str.len()


def lexicon_provenance(**options):
    return dict(LEXICON)


@pytest.fixture(autouse=True)
def registered():
    """Two metrics that are gone after each test: rooms above list every metric of your own."""
    metrics.metric("hashed", "test", version="1")(slow_metric.hashed)
    metrics.metric("letters", "test", version="1", provenance=lexicon_provenance)(
        letters
    )
    yield
    del metrics.METRICS["hashed"], metrics.METRICS["letters"]


def log_of(table, names, folder, **options) -> list[str]:
    lines = []
    metrics.compute(table, names, folder=folder, log=lines.append, **options)
    return lines


def quiet(line: str) -> None:
    pass


def test_no_torch_is_imported_before_a_network_runs():
    code = (
        "import sys, lib.metrics; print({'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


CHANGED = [
    (TURNS.assign(response=TURNS["response"].replace("no", "nope")), "computed"),
    (TURNS.iloc[::-1], "computed"),
    (TURNS.assign(reference=[["why not", "yes"], [], ["a"], []]), "computed"),
    (TURNS.assign(context=[[]] * 4, human_overall=1.0), "reused"),
]


@pytest.mark.parametrize(("turns", "done"), CHANGED)
def test_another_input_is_another_score_and_what_is_not_read_does_not_matter(
    tmp_path, turns, done
):
    log_of(TURNS, ["word_f1_normalized"], tmp_path)
    lines = log_of(turns, ["word_f1_normalized"], tmp_path)
    assert lines == [f"word_f1_normalized: {done} 4 rows"]


def test_other_options_version_or_provenance_are_another_score(tmp_path, monkeypatch):
    """Provenance is checksums of lexica and weights: an edited word list must be noticed."""

    def computed(**options):
        (line,) = log_of(TURNS, ["letters"], tmp_path, options={"letters": options})
        return line.split()[1] == "computed"

    assert computed() and not computed()
    assert computed(unit="bytes") and not computed(unit="bytes")
    monkeypatch.setitem(LEXICON, "sha256", "new")
    assert computed() and not computed()
    newer = dataclasses.replace(metrics.METRICS["letters"], version="2")
    monkeypatch.setitem(metrics.METRICS, "letters", newer)
    assert computed() and not computed()


def test_a_metric_without_a_version_is_computed_anew_and_not_kept(
    tmp_path, monkeypatch
):
    unversioned = dataclasses.replace(metrics.METRICS["letters"], version=None)
    monkeypatch.setitem(metrics.METRICS, "letters", unversioned)
    lines = log_of(TURNS, ["letters"] * 2, tmp_path)
    assert lines == ["letters: computed 4 rows"] * 2
    assert not list(tmp_path.iterdir())


KINDS = ("overlap", "embedding", "psychological")


@pytest.mark.parametrize(
    "name", [n for n, m in metrics.METRICS.items() if m.family in KINDS]
)
def test_a_blank_text_has_no_score_and_a_reason_and_rows_keep_their_place(
    tmp_path, name
):
    options = {"folder": tmp_path, "log": quiet, "batch_rows": 2}
    texts = [None, "", " \n\t", "\x00\x07", "\u200b\ufeff", "do you like tea?"]
    turns = pd.DataFrame({"response": texts}, index=[10, 7, 3, 8, 0, 1])
    turns = turns.assign(context=[["hello"]] * 6, reference=[["tea or coffee"]] * 6)
    table = metrics.compute(turns, [name], **options)
    assert table[:5].isna().all(axis=None)
    assert table.index.tolist() == [10, 7, 3, 8, 0, 1]
    assert all(table.attrs["missing"][column]["no response"] == 5 for column in table)
    runs = shutil.which("java") or not name.startswith("meteor")
    if "reference" in metrics.METRICS[name].needs and runs:
        turns["response"] = texts[-1]
        turns["reference"] = [[text] for text in texts]
        table = metrics.compute(turns, [name], **options)
        assert table[:5].isna().all(axis=None)
        assert table[5:].gt(1 - 1e-6).any(axis=None)


def test_the_record_names_what_ran(tmp_path):
    table = metrics.compute(TURNS, ["bertscore"], folder=tmp_path, log=quiet)
    record = table.attrs["provenance"]["bertscore_f1"]
    assert record["checkpoint"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert record["weights_sha256"].startswith("53aa5117")
    assert record["libraries"]["transformers"] == "5.23.0"
    assert pd.read_parquet(next(tmp_path.glob("bertscore-*/*.parquet"))).attrs == record
    assert record["version"] == "2" and record["options"] == {}


WRONG = [
    ("bertscor", {}, "did you mean 'bertscore'"),
    ("fed", {}, "needs the column"),
    ("letters", {"unit": object()}, "numbers, texts or lists"),
    ("letters", {"units": 1}, "letters: got an unexpected .* 'units'.*options="),
    (
        "mauve",
        {},
        "'mauve' is no metric of a turn table: .*a set of replies.*call lib.metrics.mauve",
    ),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG)
def test_a_wrong_name_column_or_option_is_a_clear_error(
    tmp_path, name, options, message
):
    turns = TURNS.drop(columns="context") if name == "fed" else TURNS
    with pytest.raises(ValueError, match=message):
        metrics.compute(turns, [name], options={name: options}, folder=tmp_path)


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A table of 30 rows, and the folder of a run of it that the disk stopped after 20."""
    table = slow_metric.big_table(30)
    real = pd.DataFrame.to_parquet

    def full(frame, path, **options):
        if path.name.startswith("000002"):
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(frame, path, **options)

    with (
        monkeypatch.context() as patched,
        pytest.raises(OSError, match="No space") as caught,
    ):
        patched.setattr(pd.DataFrame, "to_parquet", full)
        metrics.compute(table, ["hashed"], folder=tmp_path, log=quiet, batch_rows=10)
    assert "free some space" in caught.value.__notes__[0]
    return table, tmp_path


def resumed(table, folder) -> str:
    """Finish a stopped run; its scores must be those of an undisturbed run. Returns the log."""
    lines = []
    scores = metrics.compute(
        table, ["hashed"], folder=folder, log=lines.append, batch_rows=10
    )
    undisturbed = metrics.compute(
        table, ["hashed"], folder=folder / "undisturbed", log=quiet
    )
    pd.testing.assert_frame_equal(scores, undisturbed)
    return lines[0]


def test_after_a_full_disk_the_run_goes_on_where_it_stopped(stopped):
    assert not list(stopped[1].rglob("*.unfinished"))
    assert resumed(*stopped) == "hashed: computed 10 rows, reused 20 rows"


@pytest.mark.parametrize("n_bytes", [0, 20, -30])
def test_a_damaged_batch_is_computed_again(stopped, n_bytes):
    file = sorted(stopped[1].glob("hashed-*/*.parquet"))[0]
    file.write_bytes(file.read_bytes()[:n_bytes])
    assert resumed(*stopped) == "hashed: computed 20 rows, reused 10 rows"


def lines_in(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


def kill_and_finish(
    folder: Path, rows: int, batch: int, seconds: float, seed: int
) -> Counter:
    """Run to the end with three kills at random moments; return how often each batch was done."""
    log = folder / "log"
    arguments = [str(value) for value in (folder / "scores", log, rows, batch, seconds)]
    command = [sys.executable, slow_metric.__file__, *arguments]
    draw = random.Random(seed)
    for n_batches in sorted(draw.sample(range(1, -(-rows // batch)), 3)):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and lines_in(log) < n_batches:
            time.sleep(0.002)
        time.sleep(draw.random() * 2 * seconds)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return Counter(log.read_text().splitlines())


def files_under(folder: Path) -> dict[Path, bytes]:
    paths = folder.rglob("*.parquet")
    return {path.relative_to(folder): path.read_bytes() for path in paths}


RUNS = [(600, 20, 0), pytest.param(100_000, 1000, 1, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("rows", "batch", "seed"), RUNS)
def test_three_kills_change_no_byte_and_repeat_no_finished_batch(
    tmp_path, rows, batch, seed
):
    (tmp_path / "killed").mkdir()
    done = kill_and_finish(tmp_path / "killed", rows, batch, seconds=0.02, seed=seed)
    metrics.compute(
        slow_metric.big_table(rows),
        ["hashed"],
        options={"hashed": {"seconds": 0.02, "log": str(tmp_path / "killed" / "log")}},
        folder=tmp_path / "undisturbed",
        log=quiet,
        batch_rows=batch,
    )
    batches = files_under(tmp_path / "killed" / "scores")
    assert batches == files_under(tmp_path / "undisturbed")
    assert len(batches) == rows // batch
    # A batch counts as finished once it is on disk: at most the one at hand is done again per kill.
    assert len(done) == rows // batch
    assert sum(done.values()) - len(done) <= 3


def test_a_network_that_is_killed_computes_no_finished_batch_again(tmp_path):
    """kill -9 while a network that is not packaged scores 1,280 replies."""
    kept, rows = tmp_path / "kept", 1280
    arguments = [str(tiny_models.bert(tmp_path / "bert")), str(kept), str(rows)]
    process = subprocess.Popen(
        [sys.executable, killed_network.__file__, *arguments],
        stderr=subprocess.DEVNULL,
    )
    while len(files_under(kept)) < 3:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    finished = {path: path.stat().st_mtime_ns for path in kept.rglob("*.parquet")}
    lines = []
    killed_network.run(*arguments, log=lines.append)
    reused = 32 * len(finished)
    assert lines == [
        f"bertscore: computed {rows - reused:,} rows, reused {reused:,} rows"
    ]
    assert finished == {path: path.stat().st_mtime_ns for path in finished}


def test_a_model_that_is_not_packaged_is_kept_every_32_rows(tmp_path):
    """A killed run loses about a minute, not a corpus; packaged models keep their batches."""
    folder = tiny_models.bert(tmp_path / "bert")
    table = pd.DataFrame({"response": [f"tea {n}" for n in range(70)]})
    table["reference"] = [["tea"]] * 70
    options = {"bertscore": {"encoder": str(folder), "device": "cpu"}}
    kept = tmp_path / "kept"
    metrics.compute(table, ["bertscore"], options=options, folder=kept, log=quiet)
    assert len(list(kept.glob("*/*.parquet"))) == 3
    next(kept.glob("*/000001.parquet")).unlink()
    lines = []
    metrics.compute(
        table, ["bertscore"], options=options, folder=kept, log=lines.append
    )
    assert lines == ["bertscore: computed 32 rows, reused 38 rows"]
    metrics.compute(table, ["bertscore"], folder=tmp_path / "packaged", log=quiet)
    assert len(list((tmp_path / "packaged").glob("*/*.parquet"))) == 1
