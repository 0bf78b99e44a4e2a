"""A user's own file: odd names, Windows line ends, emoji, 50 dialogs, and what it lacks."""

import csv
import html
import io
import json
import re
import shutil
import subprocess
import sys

import nbformat
import numpy as np
import pandas as pd
import pytest

from lib import ROOT, analysis, metrics, report
from lib.data import DataError
from lib.report.__main__ import main, to_html

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")

NAMES = {
    "response": "Bot reply",
    "context": "User message",
    "dialog": "Conversation ID",
    "system": "Bot name",
}


@pytest.fixture(scope="module")
def user_file(tmp_path_factory):
    """50 dialogs of 4 turns by two bots; CRLF, byte-order mark, emoji, comma, an empty reply."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("user") / "my dialogs.csv"
    said = ["I baked bread today 😀", "Why, you ask?", "Not sad, only tired…", "What now?"]
    replies = ["Great 🎉, how did it turn out?", "Tell me more about it, please.", "ok", "I see."]
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        out = csv.writer(file, lineterminator="\r\n")
        out.writerow([*NAMES.values(), "note, free"])
        for dialog in range(50):
            for turn in range(4):
                reply = replies[rng.integers(4)] if (dialog, turn) != (7, 2) else ""
                history = "\n".join(said[: turn + 1])
                out.writerow(
                    [reply, history, f"chat {dialog}", ["Ada 🤖", "Basil"][dialog % 2], "x"]
                )
    return path


def test_misnamed_columns_get_a_mapping_to_paste(user_file):
    with pytest.raises(DataError) as caught:
        report.read(user_file)
    assert f"columns={NAMES!r}" in str(caught.value)
    turns = report.read(user_file, NAMES)
    assert len(turns) == 200 and turns["dialog"].nunique() == 50
    assert turns["response"].str.contains("🎉").any()
    assert not turns["context"].map(lambda c: any("\r" in text for text in c)).any()


def test_a_file_without_a_system_says_what_to_add(tmp_path):
    path = tmp_path / "one_bot.csv"
    path.write_text("chat,reply\n1,Hello\n")
    with pytest.raises(DataError, match="Nothing in the file looks like system: add a column"):
        report.read(path)


def test_other_faults_are_passed_on(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("system,dialog,response,human_overall\nA,1,Hi,good\n")
    with pytest.raises(DataError, match="row 1") as caught:
        report.read(path)
    assert "suggest" not in str(caught.value)


def turns_of(**columns):
    table = pd.DataFrame(
        {"system": "A", "agent": "A", "dialog": [f"d{k}" for k in range(40)], "turn": 1}
    )
    table["context"] = [["I was not there, what did you do?"]] * 40
    table["response"] = [f"It was in the {k} house that I had it" for k in range(40)]
    table["reference"] = [["fine"]] * 40
    table["human_overall"] = 1.0
    return table.assign(**columns)


@pytest.mark.parametrize(
    "columns, topic",
    [
        ({"dialog": "only"}, "few dialogs"),
        ({"response": ""}, "empty replies"),
        ({"response": "ok"}, "repeated replies"),
        ({"context": [[]] * 40}, "no context"),
        ({"reference": [[]] * 40}, "no references"),
        ({"human_overall": np.nan}, "no ratings"),
        ({"response": [f"Ich weiss {k} nicht" for k in range(40)]}, "not English?"),
    ],
)
def test_each_warning_appears_when_it_should(columns, topic):
    clean = report.warnings(turns_of())["topic"].tolist()
    assert clean == ["one system"]
    assert topic in report.warnings(turns_of(**columns))["topic"].tolist()


def test_composite_is_the_weighted_mean_of_standard_scores():
    scores = pd.DataFrame({"a": [0.0, 2, 4], "b": [1.0, np.nan, 3], "bad": [9.0, 0, 0]})
    weights = pd.Series({"a": 0.3, "b": 0.1, "bad": -0.2})
    z_a, z_b = np.array([-1, 0, 1]) / np.sqrt(2 / 3), np.array([-1, 1])
    expected = [(0.3 * z_a[0] + 0.1 * z_b[0]) / 0.4, z_a[1], (0.3 * z_a[2] + 0.1 * z_b[1]) / 0.4]
    assert report.composite(scores, weights).tolist() == pytest.approx(expected)


def test_own_ratings_are_used_when_there_are_any():
    turns = turns_of(human_overall=np.arange(40) % 5)
    scores = pd.DataFrame({"length": np.arange(40.0) % 7})
    found = report.against_ratings(turns, scores).iloc[0]
    expected = analysis.coefficient(scores["length"], turns["human_overall"], "spearman").value
    assert (found["rating"], found["value"]) == ("human_overall", pytest.approx(expected))


def test_a_metric_of_your_own_is_scored_and_covered_whatever_its_family():
    def exclamations(turns):
        return turns["response"].str.count("!").astype(float)

    metrics.metric("exclamations", "style")(exclamations)
    try:
        scores = report.score(turns_of(human_overall=1.0, score_mine=0.5), embeddings=False)
        covered = report.coverage(scores).set_index("family")
    finally:
        metrics.METRICS.pop("exclamations")
    own = covered.loc["style", ["metrics", "scored", "needs"]]
    assert own.tolist() == ["exclamations", 1.0, "response"]
    assert covered.loc["other", "metrics"] == "mine"
    assert covered.index[:2].tolist() == ["baseline", "overlap"]


def test_html_page_hides_code_and_bookkeeping():
    cells = [
        nbformat.v4.new_markdown_cell("# 11 Title\n\nQuestion?\n\n*You will learn*\n- a"),
        nbformat.v4.new_code_cell("secret = 1"),
        nbformat.v4.new_markdown_cell("See [other](02_x.ipynb)."),
        nbformat.v4.new_markdown_cell("exercise", metadata={"tags": ["not-in-report"]}),
    ]
    page = to_html(nbformat.v4.new_notebook(cells=cells), "t")
    assert "Question?" in page and "See other." in page
    for hidden in ("secret = 1", "You will learn", "exercise", "02_x.ipynb"):
        assert hidden not in page


TABLE = pd.DataFrame(
    {"metric": ["b10", "b9", "a", "c"], "value": [10.0, np.nan, -2.5, -9.0], "n": [3, 1, 2, 4]}
)


def page_of(*tables):
    """A report page that shows the tables, as notebook 11 would."""
    outputs = [
        nbformat.v4.new_output("display_data", data={"text/html": table, "text/plain": ""})
        for table in tables
    ]
    cell = nbformat.v4.new_code_cell("tables", outputs=outputs)
    return to_html(nbformat.v4.new_notebook(cells=[cell]), "t")


def test_html_page_loads_nothing_from_the_network():
    page = page_of(TABLE.to_html(index=False))
    scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, flags=re.DOTALL)
    assert [attributes for attributes, _ in scripts] == [""]  # ours, inline, and no other
    assert "aria-sort" in scripts[0][1] and "import(" not in scripts[0][1]
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", page)


def test_tables_are_readable_without_javascript():
    page = re.sub(r"<script.*?</script>", "", page_of(TABLE.to_html(index=False)), flags=re.DOTALL)
    assert "<button" not in page and "aria-sort=" not in page.partition("<body")[2]
    (shown,) = pd.read_html(io.StringIO(page))
    assert shown["n"].tolist() == [3, 1, 2, 4]


# Clicks, in a browser, and reports what the table looks like afterwards.
CLICKS = """<script>
const said = [];
const rows = (t) => [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent));
const press = (t, name) => {
  const header = [...t.tHead.querySelectorAll("th")].find((h) => h.textContent.trim() === name);
  header.querySelector("button").click();
  said.push({rows: rows(t), sorted: header.getAttribute("aria-sort"),
             marked: t.tHead.querySelectorAll("[aria-sort]").length});
};
const [plain, nested] = document.querySelectorAll("table.dataframe");
const focusable = [...plain.tHead.querySelectorAll("button")].map((b) => b.tabIndex);
for (const name of ["value", "value", "metric", "n"]) press(plain, name);
press(nested, "turns");
const cell = getComputedStyle(plain.tBodies[0].rows[0].cells[0]);
document.title = JSON.stringify({said, focusable, align: cell.textAlign});
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium or chrome to click with")
def test_a_click_on_a_header_sorts(tmp_path):
    nested = pd.DataFrame(
        {"turns": [2, 3, 1]}, index=pd.MultiIndex.from_tuples([("A", "x"), ("A", "y"), ("B", "z")])
    ).rename_axis(["system", "agent"])
    file = tmp_path / "page.html"
    page = page_of(TABLE.to_html(index=False), nested.to_html())
    file.write_text(page.replace("</body>", CLICKS + "</body>"), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    title = html.unescape(re.search(r"<title>(.*?)</title>", dom, flags=re.DOTALL).group(1))
    found = json.loads(title)
    up, down, text, count, inner = ([row[k] for row in said["rows"]] for said, k in
                                    zip(found["said"], (1, 1, 0, 2, 2), strict=True))  # fmt: skip
    assert up == ["-9.0", "-2.5", "10.0", "NaN"] and down == ["10.0", "-2.5", "-9.0", "NaN"]
    assert text == ["a", "b9", "b10", "c"] and count == ["1", "2", "3", "4"]
    assert [said["sorted"] for said in found["said"]][:3] == [
        "ascending",
        "descending",
        "ascending",
    ]
    assert all(said["marked"] == 1 for said in found["said"])
    assert found["align"] == "left" and found["focusable"] == [0, 0, 0]  # the Tab key reaches them
    assert inner == ["1", "2", "3"] and found["said"][4]["rows"][1] == ["A", "x", "2"]


def test_command_line_reports_a_fault_and_its_way_out(user_file, capsys):
    assert main([str(user_file)]) == 2
    said = capsys.readouterr().err
    assert "names in the file suggest" in said and "--accept" in said


@pytest.mark.slow
def test_command_line_writes_a_page(user_file, tmp_path):
    out = tmp_path / "page.html"
    ran = subprocess.run(
        [sys.executable, "-m", "lib.report", str(user_file), "--accept", "--out", str(out)],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    page = out.read_text(encoding="utf-8")
    for text in ("chat 7", "🎉", "no references", "Replies to read", "State or trait?"):
        assert text in page
    assert "Traceback" not in page and str(tmp_path) not in page
