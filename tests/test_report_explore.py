"""Looking at replies in a notebook: their order, their dialogs, and what a browser does."""

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from scipy import stats

from lib import data, metrics, report
from lib.report.issues import words_seen

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def turns():
    return data.load("sample_bots").turns


@pytest.fixture(scope="module")
def explored(turns):
    return report.explore(turns, metrics.compute(turns, ["length"]), limit=20)


def test_replies_on_which_people_and_the_metric_disagree_most_come_first(
    turns, explored
):
    length = turns["response"].str.findall(r"[\w'’]+").map(len)
    people = stats.rankdata(turns["human_overall"]) / len(turns)
    disagreement = stats.rankdata(length) / len(turns) - people
    expected = np.sort(np.abs(disagreement))[::-1][:20]
    found = explored.table["disagreement"].abs().to_numpy()
    assert found == pytest.approx(expected, abs=0.02)  # words are counted otherwise
    assert len(explored.chats) == 20
    assert "20 of 151 replies" in repr(explored)
    assert "overall and length in words disagree most" in repr(explored)


def test_each_row_opens_the_dialog_of_its_reply_with_the_reply_marked(turns, explored):
    shown = BeautifulSoup(explored._repr_html_(), "lxml")
    rows = shown.select("tbody > tr")
    assert len(rows) == 20
    for row, label in zip(rows, explored.table.index, strict=True):
        reply = turns.loc[label]
        (marked,) = row.select("mark")
        assert marked.text == reply["response"]
        texts = [line.text for line in row.select(".chat li")]
        assert reply["context"][-1] in texts[-2]
        rating = f"overall {reply['human_overall']:.3g}"
        assert rating in texts[-1] and "length in words" in texts[-1]


def test_a_row_says_how_many_earlier_utterances_it_does_not_show(turns):
    long = turns[turns["turn"] >= 9].head(1)
    shown = BeautifulSoup(report.explore(long, long[[]])._repr_html_(), "lxml")
    n_before = len(shown.select(".chat li")) - 1
    hidden = len(long["context"].iloc[0]) - n_before
    assert hidden > 0
    assert f"{hidden} earlier utterances are not shown" in shown.text


def test_replies_without_a_rating_come_last_and_stay_in_the_order_of_the_file(turns):
    some = turns.head(10).copy()
    some.loc[some.index[[2, 5]], "human_overall"] = np.nan
    table = report.explore(some, metrics.compute(some, ["length"])).table
    assert table.index[-2:].tolist() == some.index[[2, 5]].tolist()
    unrated = turns.drop(columns=turns.filter(like="human_").columns).head(3)
    explored = report.explore(unrated, metrics.compute(unrated, ["length"]))
    assert explored.table.index.tolist() == unrated.index.tolist()
    assert "in the order of the file" in explored.caption


def test_words_of_a_lexicon_are_underlined_whole_and_in_any_case():
    row = {"system": "A", "agent": "A", "dialog": "1", "turn": 1, "context": ["Hi"]}
    turns = pd.DataFrame([row | {"response": "Joy! <b>Joyful</b> joy."}])
    explored = report.explore(turns, turns[[]], words=["joy"])
    shown = BeautifulSoup(explored._repr_html_(), "lxml")
    assert [word.text for word in shown.select("mark u")] == ["Joy", "joy"]
    assert shown.mark.text == "Joy! <b>Joyful</b> joy." and not shown.select("mark b")


SEEN = [
    ("words_said_twice", "I like I like maps.", [], [], {"i", "like"}),
    (
        "overlap_with_user",
        "old red boats rot",
        ["x", "old red cars"],
        [],
        {"old", "red"},
    ),
    ("overlap_with_itself", "old red boats", ["red boats", "so"], [], {"red", "boats"}),
    ("negated_fact", "i hate boats", [], ["a cat", "no boats"], {"boats"}),
    ("specificity", "it is rye", [], [], {"rye"}),
    ("open_end", "We went to the", [], [], {"the"}),
    ("context_similarity", "We went", ["We went"], [], set()),
    ("length", "", [], [], set()),
]


@pytest.mark.parametrize("metric, response, context, facts, words", SEEN)
def test_a_rule_shows_the_words_that_it_saw(metric, response, context, facts, words):
    assert words_seen(metric, response, context, facts) == words


ACT = """<script>
addEventListener("load", () => {
  const tables = [...document.querySelectorAll("table.dataframe")];
  const rows = [...tables[2].tBodies[0].rows];
  const part = tables[2].closest(".explore");
  const heads = [...part.querySelectorAll("th button")];
  heads.find((head) => head.textContent === "Disagreement").click();
  const cells = [...tables[2].querySelectorAll("tbody > tr > td:nth-last-child(2)")];
  const sorted = cells.map((cell) => Number(cell.dataset.value));
  const search = part.querySelector("input");
  search.value = "zebra";
  search.dispatchEvent(new Event("input"));
  const left = rows.filter((row) => !row.hidden).length;
  const buttons = tables.map((table) => table.querySelectorAll("button").length);
  const status = part.querySelector("[role=status]").textContent;
  document.title = JSON.stringify({sorted, left, status, buttons});
});
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium or chrome to click with")
def test_in_a_browser_each_table_sorts_and_filters_by_itself(turns, tmp_path):
    """Two of them and another table on one page, as a notebook has them."""
    scores = metrics.compute(turns, ["length"])
    parts = [report.explore(turns, scores, limit=5)._repr_html_() for _ in range(2)]
    other = "<table class='dataframe'><thead><tr><th>a</th></tr></thead><tbody></tbody></table>"
    file = tmp_path / "notebook.html"
    file.write_text(f"<title>-</title>{other}{parts[0]}{parts[1]}{ACT}", "utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    seen = json.loads(re.search(r"<title>({.*?})</title>", done.stdout)[1])
    assert seen["sorted"] == sorted(seen["sorted"]) and len(seen["sorted"]) == 5
    assert seen["left"] == 0 and seen["status"] == "0 of 5 replies"
    assert seen["buttons"][0] == 0 and seen["buttons"][1] == seen["buttons"][2] > 3
