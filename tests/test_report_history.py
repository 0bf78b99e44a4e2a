"""Reports over releases: what a folder keeps, what is refused, and what the page draws of it."""

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from scipy import stats

from lib import ROOT
from lib.data import DataError
from lib.report.__main__ import main
from lib.report.history import (
    history_plot,
    last_versions,
    name_release,
    read_history,
    version_levels,
)

SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text("utf-8"))


def write_log(path, level: float, day: str = "2026-03-02", empty: int = 0):
    """Twenty dialogs of a bot with ratings around a level, some with an empty reply."""
    records = []
    for number in range(20):
        reply = "" if number < empty else f"The lake was cold on walk number {number}."
        said = [
            {
                "role": "user",
                "content": f"How was walk {number}?",
                "timestamp": f"{day}T09:00:00",
            },
            {
                "role": "assistant",
                "content": reply,
                "timestamp": f"{day}T09:00:05",
                "rating": level + number % 3,
            },
        ]
        records.append(json.dumps({"id": str(number), "messages": said}))
    path.write_text("\n".join(records), encoding="utf-8")
    return path


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run the command with few networks, and return its exit code and the folder of releases."""
    import lib.report.scores as scoring

    scored = scoring.report_scores

    def without_networks(turns, embeddings, **options):
        return scored(turns, False, **options)

    monkeypatch.setattr(scoring, "report_scores", without_networks)
    folder = tmp_path / "releases"

    def run(*arguments):
        options = ["--history", str(folder), "--out", str(tmp_path / "page.html")]
        return main([*map(str, arguments), *options])

    return run, folder


def test_each_report_is_kept_by_its_label_and_drawn_beside_earlier_ones(
    command, tmp_path
):
    run, folder = command
    for label, level, empty in (("v1/a", 3.0, 0), ("v2", 2.0, 5)):
        log = write_log(tmp_path / "chats.jsonl", level, empty=empty)
        assert run(log, "--label", label) == 0
    table = read_history(folder)
    assert table["release"].unique().tolist() == ["v1/a", "v2"]
    ratings = table[table["score"] == "human_rating"].set_index("release")
    levels = np.arange(20) % 3
    assert ratings.loc["v1/a", "mean"] == pytest.approx((3 + levels).mean())
    assert ratings.loc["v2", "mean"] == pytest.approx((2 + levels).mean())
    share = table[table["score"].str.startswith("empty")].set_index("release")
    exact = stats.binomtest(5, 20).proportion_ci(method="exact")
    found = share.loc["v2", ["mean", "low", "high"]].tolist()
    assert found == pytest.approx([0.25, exact.low, exact.high], abs=0.01)
    assert share.loc["v1/a", "low"] == 0 and share.loc["v1/a", "high"] > 0.1

    for path in folder.iterdir():
        jsonschema.validate(json.loads(path.read_text("utf-8")), SCHEMA)
    page = BeautifulSoup((tmp_path / "page.html").read_text("utf-8"), "lxml")
    image = page.find("img", alt=lambda text: text and text.startswith("Over 2 rel"))
    assert "from v1/a to v2" in image["alt"] and "rating: 3.95" in image["alt"]

    log = write_log(tmp_path / "chats.jsonl", 4.0)
    assert run(log, "--label", "v1/a") == 0  # made again: its place stays the first
    again = read_history(folder)
    assert again["release"].unique().tolist() == ["v1/a", "v2"]
    assert again.loc[again["score"] == "human_rating", "mean"].iloc[0] > 4


def test_releases_stand_in_the_order_of_their_newest_dialogs(command, tmp_path):
    run, folder = command
    for day in ("2026-04-01", "2026-03-01"):
        assert run(write_log(tmp_path / "chats.jsonl", 3.0, day)) == 0
    table = read_history(folder)
    assert table["newest"].unique().tolist() == ["2026-03-01", "2026-04-01"]
    assert table["release"].str.endswith("2026-03-01").iloc[0]


def test_dialogs_without_dates_need_a_label(command, tmp_path, capsys):
    run, folder = command
    log = tmp_path / "log.txt"
    log.write_text("User: Hi\nBot: Hello, how are you?\n", encoding="utf-8")
    assert run(log) == 2
    assert "LABEL=v1.2" in capsys.readouterr().err
    assert not folder.exists()


REFUSED = [
    ({"schema": 2, "title": "t"}, "version 2 of the schema"),
    ({"schema": 4, "title": "t"}, "no report that HISTORY kept"),
    ([1], "no report that HISTORY kept"),
]


@pytest.mark.parametrize("content, problem", REFUSED)
def test_another_file_in_the_folder_is_refused_by_name_before_the_work(
    command, tmp_path, capsys, content, problem
):
    run, folder = command
    folder.mkdir()
    (folder / "last year.json").write_text(json.dumps(content), encoding="utf-8")
    assert run(write_log(tmp_path / "chats.jsonl", 3.0)) == 2
    error = capsys.readouterr().err
    assert "last year.json" in error and problem in error
    assert [path.name for path in folder.iterdir()] == ["last year.json"]


def test_a_share_is_wider_where_its_cases_come_from_few_dialogs():
    """One dialog in ten holds all empty replies, or they are spread: the same share, 10 %."""
    dialogs = np.repeat(np.arange(20), 10)
    turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": dialogs.astype(str)})
    together = pd.DataFrame({"length": np.where(dialogs < 2, 0.0, 9.0)})
    spread = pd.DataFrame({"length": np.where(np.arange(200) % 10 == 0, 0.0, 9.0)})
    widths = []
    for signals in (spread, together):
        levels = version_levels(turns, turns[[]], signals, deciding=[])
        row = levels.iloc[0]
        assert row["mean"] == pytest.approx(0.1)
        assert (row["dialogs"], row["replies"]) == (20, 200)
        widths.append(row["high"] - row["low"])
    assert widths[1] > 2 * widths[0]


def test_the_last_version_of_each_release_is_drawn_and_the_first_is_in_the_table():
    rows = []
    for release, version, mean in (("r", "A", 1.0), ("r", "B", 2.0), ("s", "C", 3.0)):
        row = {"release": release, "version": version, "kind": "rating", "mean": mean}
        rows.append(row | {"score": "human_fun", "low": mean - 1, "high": mean + 1})
    table = pd.DataFrame(rows)
    assert last_versions(table)["version"].tolist() == ["B", "C"]
    assert "fun: 2 (1 to 3), then 3 (2 to 4)" in history_plot(table).get_label()


def test_without_a_date_and_a_label_there_is_no_name():
    with pytest.raises(DataError, match="no dialog has a date"):
        name_release(pd.DataFrame({"system": ["A"]}))
