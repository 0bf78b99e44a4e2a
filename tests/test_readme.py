"""What the README and the pages beside it show must run, and the numbers they tell must be ours."""

import json
import os
import re
import shlex
import subprocess
from unittest import mock

import nbformat
import pandas as pd
import pytest

from lib import ROOT, data, metrics
from lib.data import chat_logs, corpora, storage
from lib.meta_evaluation import evaluation_sets
from lib.meta_evaluation.replication import ledger as replication_ledger
from lib.report.__main__ import main

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")
}
BLOCKS = re.findall(r"```python\n(.*?)```", PAGES["extend"], flags=re.DOTALL)
REPORTS = re.findall(
    r"^    (make report .*?)\s*(?:#.*)?$",
    PAGES["your_own_dialogues"],
    flags=re.MULTILINE,
)
RESULTS = ROOT / "data" / "results"


@mock.patch.dict(metrics.METRICS)
def test_a_metric_is_added_as_the_page_says(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    registered = set(metrics.METRICS)
    names = {}
    exec(compile(BLOCKS[0], "extend.md", "exec"), names)
    (added,) = set(metrics.METRICS) - registered
    assert added in names["table"] and names["table"][added].max() > 0
    assert len(names["table"]) == 151
    assert added in evaluation_sets.own_metrics()  # so notebooks 09, 10 and 14 show it


def test_a_corpus_is_added_as_the_page_says(tmp_path, monkeypatch):
    item = {
        "model": "A",
        "id": "d1",
        "history": ["Hi"],
        "reply": "Oh ",
        "ratings": [4, 5, "N/A"],
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
    exec(compile(BLOCKS[1], "extend.md", "exec"), {})
    mine = data.load("my_corpus")
    assert mine.turns[["turn", "response", "human_overall"]].values.tolist() == [
        [1, "Oh", 4.5]
    ]
    assert mine.report["excluded"].tolist() == [0, 1]
    assert data.available().set_index("name").loc["my_corpus", "on disk?"]


def test_every_page_tells_the_same_number_of_log_formats():
    kinds = {form.kind for form in [*chat_logs.FORMATS, *chat_logs.TEXT_FORMATS]}
    number = f"more than {len(kinds) // 10 * 10} log formats"
    (chatbot,) = (ROOT / "notebooks").glob("14_*.ipynb")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    pages = [README, PAGES["your_own_dialogues"], chatbot.read_text("utf-8"), changes]
    for page in pages:
        text = " ".join(page.lower().split())
        assert re.findall(r"more than [\w ]+? log formats", text) == [number]


def test_the_readme_is_a_front_page():
    assert len(README.encode("utf-8")) <= 7_000


def minutes_to_read(path) -> float:
    """200 words of text or 15 lines of code a minute, half a minute for a figure or a table."""
    minutes = 0.0
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"\]\([^)]*\)|\$\$.*?\$\$", " ", cell.source, flags=re.DOTALL)
            minutes += len(re.findall(r"[A-Za-z0-9][\w'’.,-]*", text)) / 200
        elif cell.id != "setup":
            code = re.findall(r"^ *[^\s#].*$", cell.source, flags=re.MULTILINE)
            shown = [output for output in cell.outputs if "data" in output]
            pictures = [o for o in shown if {"image/png", "text/html"} & set(o.data)]
            minutes += len(code) / 15 + len(pictures) / 2
    return minutes


def stated_minutes(table: str) -> dict[str, int]:
    rows = re.findall(r"^\| \[(\d\d) .*\| (\d+) \|$", table, flags=re.MULTILINE)
    return {number: int(minutes) for number, minutes in rows}


def test_the_minutes_to_read_follow_from_the_length_of_a_notebook():
    stated = stated_minutes(README)
    assert stated == stated_minutes((ROOT / "notebooks/README.md").read_text())
    for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"):
        minutes = minutes_to_read(path)
        assert abs(stated.pop(path.name[:2]) - minutes) <= 5, (path.name, minutes)
    assert not stated
    total = sum(stated_minutes(README).values())
    told(f"the course over {total // 60} hours")


def test_a_meeting_has_60_to_90_minutes_of_reading_and_exercises_that_exist():
    text = (ROOT / "teaching/README.md").read_text()
    meetings = re.findall(r"^\| \[\d+ .*?\) \| (.*) \|$", text, flags=re.MULTILINE)
    stated = stated_minutes(README)
    assert len(meetings) == 10
    total = 0
    for meeting in meetings:
        reading, minutes, in_class, at_home = meeting.split(" | ")
        assert 60 <= int(minutes) <= 90
        total += int(minutes)
        if "section" not in reading and "results" not in reading:
            whole = sum(stated[number] for number in re.findall(r"\[(\d\d)\]", reading))
            assert abs(whole - int(minutes)) <= 5, reading
        for exercise in f"{in_class}, {at_home}".split(", "):
            number, _, place = exercise.partition(".")
            (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
            cells = nbformat.read(path, as_version=4).cells
            exercises = rf"\*\*Exercise {place}\b|^{place}\. \*\*"
            assert re.search(
                exercises, "\n".join(cell.source for cell in cells), flags=re.MULTILINE
            ), exercise
    assert f"{round(total / 60)} of reading at home" in text


def test_targets_that_the_readme_and_the_pages_name_exist():
    text = "\n".join([README, *PAGES.values()])
    named = set(re.findall(r"^    make ([a-z-]+)", text, flags=re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert named >= {"notebooks", "test", "report", "lab", "site"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Short logs of chat messages under the names that the page uses."""
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


def test_the_page_shows_the_commands_of_a_report():
    assert len(REPORTS) == 5 and sum("FAIL_IF" in command for command in REPORTS) == 1


@pytest.mark.parametrize("command", REPORTS)
def test_commands_of_the_page_make_a_report(
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


def test_the_cost_of_a_judge_is_that_of_the_forecast():
    dollars = pd.read_csv(RESULTS / "08_forecast.csv", index_col="corpus")["dollars"]
    dollars = dollars["usr_topical"]
    text = " ".join(PAGES["running"].split())
    assert f"would cost {dollars.min():.2f} to {dollars.max():.2f} dollars" in text


def written(value: float, digits: int = 2) -> str:
    """As the README writes a correlation: without the zero before the point."""
    return f"{value:.{digits}f}".replace("0.", ".")


def told(sentence: str) -> None:
    assert sentence in " ".join(README.split())


def test_the_picture_of_the_readme_is_read_with_its_numbers():
    authors = pd.read_csv(RESULTS / "10_authors.csv")
    words = authors.query("corpus == 'usr_persona' and metric == 'words'")
    words = words.set_index("replies")["value"]
    told(f"(Spearman {written(words['all'])})")
    told(f"among machines' replies, lower ({written(words['machines only'])})")

    pooled = authors[authors["replies"] == "all"].set_index(["corpus", "metric"])
    counts = pooled.groupby("metric").size()
    shared = set(counts.index[counts >= pooled.index.levels[0].size / 3])
    shared -= {
        "words",
        "by_person",
    }  # counted for the table, and no metrics of the picture
    alone = authors[authors["replies"] == "machines only"]
    people = authors.groupby("corpus")["people"].max()
    mixed = set(people.index[people > 0])
    n_correlations = 0
    shown = set()
    n_turned = 0
    for row in alone.dropna(subset="value").itertuples():
        over_all = pooled.loc[(row.corpus, row.metric)]
        if row.metric in shared and row.corpus in mixed:
            n_correlations += 1
            shown.add(row.corpus)
            is_clear = over_all["low"] > 0 or over_all["high"] < 0
            n_turned += is_clear and over_all["value"] * row.value < 0
    told(
        f"{n_correlations} correlations of metrics with ratings (six corpora). "
        f"Purple: {n_turned} that are"
    )
    assert len(shown) == 6


def test_findings_of_the_readme_stand_in_the_tables():
    who = pd.read_csv(RESULTS / "10_who_wrote_it.csv")
    usr = who[who["corpus"].isin(["usr_topical", "usr_persona"])]
    usr = usr.pivot(index="metric", columns="corpus", values="all")
    person = usr.loc["by_person"]
    told(
        f"correlates {written(person['usr_topical'])} and {written(person['usr_persona'])}"
    )
    best = usr.drop("by_person").max()
    assert (best < person).all()
    told(
        f"(best of all metrics: {written(best['usr_topical'])} and {written(best['usr_persona'])})"
    )

    saved = pd.read_csv(RESULTS / "10_exchange.csv")
    saved = saved[saved["metric"] == "gpt4_overall"].set_index("corpus")
    assert set(saved["estimand"]) == {"mean of one system"}
    fed = saved.loc["gpt4_fed"]
    ji = saved.loc["gpt4_reliable"]
    told(
        f"as precise with {fed.saved:.0f} % fewer human ratings on FED's dialogs "
        f"(95 % interval {fed.low:.0f} to {fed.high:.0f}), and {ji.saved:.0f} % "
        f"fewer on Ji et al.'s ({ji.low:.0f} to {ji.high:.0f})"
    )

    strong = pd.read_csv(RESULTS / "08_strong_judges_mean.csv", index_col="rater")
    strong = strong["spearman"].map(written)
    judges = strong.drop(["one more expert", "crowd"])
    assert len(judges) == 3
    named = ", ".join(f"{name} {value}" for name, value in judges.items())
    n_dimensions = pd.read_csv(RESULTS / "08_strong_judges.csv")["dimension"].nunique()
    told(
        f"Mean correlation with experts over {n_dimensions} dimensions (Kumar et al.'s published "
        "scores): "
        f"{named}; "
        f"another expert {strong['one more expert']}; a crowd {strong['crowd']}"
    )

    rates = pd.read_csv(ROOT / "data/reference/10_verdict_errors.csv", index_col="rule")
    rule = rates.loc["bertscore_f1"]
    decided = rule["right"] + rule["wrong"]
    assert rule["wrong"] == 2
    pairs = f"Of {rule['pairs']:.0f} pairs whose ratings differ significantly"
    told(f"{pairs}, BERTScore decides {decided:.0f} (two wrongly)")
    told(
        f"On a new corpus more may be wrong: up to {100 * rule['high']:.0f} % (upper 95 % bound)"
    )
    without = rates.loc["context_similarity"]
    told(f"for *similarity to context*, up to {100 * without['high']:.0f} %")

    cells = pd.read_csv(RESULTS / "15_ledger.csv", dtype=str)
    once = replication_ledger.distinct_numbers(cells)["status"]
    distinct = once.isin(["reproduced", "close"]).sum()
    ledger = cells["status"].value_counts()
    good = ledger["reproduced"] + ledger["close"]
    compared = good + ledger[["differs", "misprint", "other data or model"]].sum()
    assert compared + ledger[["not public", "not run"]].sum() == ledger.sum()
    told(
        f"Of {ledger.sum():,} table cells, {ledger['not public']} need data or models that are not "
        f"public and {ledger['not run']} were not run. Of the other {compared}, {good} ({distinct} "
        f"without repeats) are reproduced or close; {ledger['other data or model']} use other "
        f"data or models, {ledger['differs']} differ, and {ledger['misprint']} are misprints"
    )
