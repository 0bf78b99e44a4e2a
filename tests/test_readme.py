"""What the README shows must run."""

import json
import os
import re
import shlex
import subprocess
from unittest import mock

import pandas as pd
import pytest

from lib import ROOT, data, metrics
from lib.data import corpora, storage
from lib.meta_evaluation import evaluation_sets
from lib.report.__main__ import main

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
REPORTS = re.findall(r"^    (make report .*?)\s*(?:#.*)?$", README, flags=re.MULTILINE)


@mock.patch.dict(metrics.METRICS)
def test_a_metric_is_added_as_the_readme_says(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    registered = set(metrics.METRICS)
    names = {}
    exec(compile(BLOCKS[0], "README.md", "exec"), names)
    (added,) = set(metrics.METRICS) - registered
    assert added in names["table"] and names["table"][added].max() > 0
    assert len(names["table"]) == 151
    assert added in evaluation_sets.own_metrics()  # so notebooks 09 and 14 show it


def test_a_corpus_is_added_as_the_readme_says(tmp_path, monkeypatch):
    item = {
        "model": "A",
        "id": "d1",
        "history": ["Hi"],
        "reply": "Oh ",
        "marks": [4, 5, "N/A"],
    }
    file = tmp_path / "replies.json"
    file.write_text(json.dumps([item]))
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path))
    registry = storage.registry()
    checksum = storage.file_sha256(file)
    corpus = {"level": "turn", "rows": 1, "files": [file.name], "set": "mine"}
    download = {"url": "https://example.org/", "sha256": checksum, "set": "mine"}
    texts = dict.fromkeys(["title", "licence", "citation", "source"], "-")
    monkeypatch.setitem(registry["corpora"], "my_corpus", corpus)
    monkeypatch.setitem(registry["files"], file.name, download)
    monkeypatch.setitem(registry["sets"], "mine", texts)
    monkeypatch.setitem(corpora.LOADERS, "my_corpus", None)
    exec(compile(BLOCKS[1], "README.md", "exec"), {})
    mine = data.load("my_corpus")
    assert mine.turns[["turn", "response", "human_overall"]].values.tolist() == [
        [1, "Oh", 4.5]
    ]
    assert mine.report["excluded"].tolist() == [0, 1]
    assert data.available().set_index("name").loc["my_corpus", "on disk?"]


def test_targets_that_the_readme_names_exist():
    named = set(re.findall(r"^    make ([a-z-]+)", README, flags=re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert named >= {"notebooks", "test", "report"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Short logs of chat messages under the names that the README uses."""
    folder = tmp_path_factory.mktemp("logs")
    turns = data.load("sample_bots").turns
    for name, system in (("chats", "ferry"), ("old", "lantern"), ("new", "pebble")):
        lines = []
        for dialog, replies in list(turns[turns["system"] == system].groupby("dialog"))[
            :2
        ]:
            messages = []
            for row in replies.head(2).itertuples():
                messages.append({"role": "user", "content": row.context[-1]})
                messages.append({"role": "assistant", "content": row.response})
            lines.append(json.dumps({"id": dialog, "messages": messages}))
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return folder


def test_the_readme_shows_the_commands_of_a_report():
    assert len(REPORTS) == 5 and sum("FAIL_IF" in command for command in REPORTS) == 1


@pytest.mark.parametrize("command", REPORTS)
def test_commands_of_the_readme_make_a_report(
    command, logs, tmp_path, monkeypatch, capsys
):
    """What `make` would run, run here: the same arguments, on short logs."""
    # COLUMNS is the terminal's width, which readline sets; the others come from `make test`.
    passed_on = {"COLUMNS", "MAKELEVEL", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES"}
    environment = {k: v for k, v in os.environ.items() if k not in passed_on}
    target = ["make", "--dry-run", *shlex.split(command)[1:]]
    printed = subprocess.check_output(target, cwd=ROOT, env=environment, text=True)
    arguments = printed.replace("\\\n", " ").partition("-m lib.report ")[2]
    monkeypatch.chdir(logs)
    page = tmp_path / "page"
    code = main([*shlex.split(arguments), "--out", str(page)])
    printed = capsys.readouterr().out
    assert "4 replies in 2 dialogs" in printed
    assert code in ({0, 3} if "FAIL_IF" in command else {0})
    if "DRY" in command:
        assert not page.exists()
    elif "FORMAT=json" in command:
        (verdict,) = json.loads(page.read_text())["tables"]["verdicts"]
        assert (code == 3) == (verdict["verdict"] == "worse")
        assert f"new against old: {verdict['verdict']}." in printed
    else:
        names = re.findall(r"(\w+\.jsonl)", command)
        tables = pd.read_html(page)
        assert all(name in page.read_text() for name in names) and len(tables) >= 7
        assert ("cpds" in page.read_text().partition("Families of metrics")[2]) == (
            "JUDGE" in command
        )
