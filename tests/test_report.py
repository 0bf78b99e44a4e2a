"""A user's own file: odd names, Windows line ends, emoji, 50 dialogs, and what it lacks."""

import base64
import csv
import hashlib
import html
import io
import json
import re
import shutil
import subprocess
import sys
from unittest import mock

import nbformat
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from fault_server import FaultServer
from nbconvert.filters.markdown_mistune import markdown2html_mistune as markdown2html
from pytest import approx
from scipy import stats

from lib import ROOT, metrics, notebook_runs, report
from lib.report import page
from lib.report.__main__ import main
from lib.report.scores import sample_dialogs

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")

NAMES = {"response": "Bot reply", "context": "User message"}
NAMES |= {"dialog": "Conversation ID", "system": "Bot name"}


@pytest.fixture(scope="module")
def user_file(tmp_path_factory):
    """50 dialogs of 4 turns by two bots; CRLF, byte-order mark, emoji, comma, an empty reply."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("user") / "my dialogs.csv"
    said = ["I baked bread today 😀", "Why, you ask?", "Not sad, only tired…", "What now?"]
    replies = ["Great 🎉, how did it turn out?", "Tell me more about it, please.", "ok", "I see."]
    rows = [
        (replies[rng.integers(4)] if (dialog, turn) != (7, 2) else "", "\n".join(said[: turn + 1]),
         f"chat {dialog}", ["Ada 🤖", "Basil"][dialog % 2], "x")
        for dialog in range(50) for turn in range(4)
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=[*NAMES.values(), "note, free"])
    table.to_csv(path, index=False, encoding="utf-8-sig", lineterminator="\r\n")
    return path


def test_misnamed_columns_are_found_by_their_names(user_file):
    turns = report.read_dialogs(user_file)
    assert turns.attrs["columns"] == NAMES and "COLUMNS=..." in report.import_details(turns)
    assert len(turns) == 200 and turns["dialog"].nunique() == 50
    assert turns["response"].str.contains("🎉").any()
    assert not turns["context"].map(lambda c: any("\r" in text for text in c)).any()


def replies(**columns):
    """Turns of one bot, one dialog each, unless the columns say otherwise."""
    count = len(columns["response"])
    table = pd.DataFrame({"system": "A", "agent": "A", "turn": 1, "context": [["Hi"]] * count})
    return table.assign(dialog=[str(k) for k in range(count)]).assign(**columns)


def turns_of(**columns):
    """40 turns that nothing is wrong with, but for the columns."""
    said = [f"It was in the {k} house that I had it" for k in range(40)]
    turns = replies(response=said, context=[["I was not there, what did you do?"]] * 40)
    return turns.assign(reference=[["fine"]] * 40, human_overall=1.0).assign(**columns)


WARNED = [
    ({"dialog": "only"}, "few dialogs"),
    ({"context": [[]] * 40}, "no context"),
    ({"reference": [[]] * 40}, "no references"),
    ({"human_overall": np.nan}, "no ratings"),
    ({"system": ["user_1", "Ada"] * 20}, "users among the systems?"),
    ({"system": [f"I think {k}" for k in range(40)]}, "users among the systems?"),
    ({"response": [f"Ich weiss {k} nicht" for k in range(40)]}, "not English?"),
]


@pytest.mark.parametrize("columns, topic", WARNED)
def test_each_warning_appears_when_it_should(columns, topic):
    assert report.warnings(turns_of())["topic"].tolist() == ["one system"]
    assert topic in report.warnings(turns_of(**columns))["topic"].tolist()


@mock.patch.dict(metrics.METRICS)
def test_a_metric_of_your_own_is_scored_and_covered_whatever_its_family():
    def exclamations(turns):
        return turns["response"].str.count("!").astype(float)

    metrics.metric("exclamations", "style")(exclamations)
    scores = report.report_scores(turns_of(human_overall=1.0, score_mine=0.5), embeddings=False)
    covered = report.coverage(scores).set_index("family")
    own = covered.loc["style", ["metrics", "scored", "needs"]]
    assert own.tolist() == ["exclamations", 1.0, "response"]
    assert covered.loc["other", "metrics"] == "mine"
    assert covered.index[:2].tolist() == ["baseline", "overlap"]


TABLE = pd.DataFrame(
    {"metric": ["b10", "b9", "a", "c"], "value": [10.0, np.nan, -2.5, -9.0], "n": [3, 1, 2, 4]}
)
PAYLOADS = [
    "<script>document.title = 'run'</script>", "<img src=x onerror=\"document.title='run'\">",
    "<svg/onload=document.title='run'>", "</td></table><script>document.title='run'</script>",
    "</caption></title><iframe srcdoc='<b>'></iframe>", "<a href=\"javascript:run()\">a</a>",
    "[a](javascript:run())", "![a](https://example.org/x.png)", "<style>*{display:none}</style>",
    "<meta http-equiv=refresh content=0>", "<base href=https://example.org>", "&lt;b&gt;",
    "<link rel=stylesheet href=https://example.org>", "`<b>`", "a|b", "<!-- ", "]]><b>",
    "=HYPERLINK(\"https://example.org\")", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "$x$",
]  # fmt: skip


@pytest.fixture(scope="module")
def page_of():
    """A notebook that shows tables by `report.show`, between what a report leaves out."""

    def made(**tables):
        outputs = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(page, "display", lambda bundle, raw: outputs.append(bundle))
            for caption, table in tables.items():
                report.show(table, caption)
        new, image = nbformat.v4, {"image/png": {"alt": "a <dot>"}}
        outputs = [new.new_output("display_data", bundle) for bundle in outputs]
        outputs += [new.new_output("display_data", {"image/png": "AAAA"}, metadata=image)]
        cells = [
            new.new_markdown_cell("# 11 Title\n\nQuestion?\n\n*You will learn*\n- a"),
            new.new_code_cell("secret = 1", outputs=outputs),
            new.new_markdown_cell("## 2 Part\n\nSee [other](02_x.ipynb)."),
            new.new_markdown_cell("exercise", metadata={"tags": ["not-in-report"]}),
        ]
        return new.new_notebook(cells=cells)

    return made


@pytest.mark.parametrize("write", [page.to_html, page.to_markdown])
def test_the_page_hides_code_and_bookkeeping(write, page_of):
    written = write(page_of(Numbers=TABLE), "t")
    assert "Question?" in written and "See other." in written and "Numbers" in written
    for hidden in ("secret = 1", "You will learn", "exercise", "02_x.ipynb"):
        assert hidden not in written


def test_texts_stay_texts_on_the_page_in_markdown_and_in_every_table(
    page_of, monkeypatch, tmp_path
):
    table, title = pd.DataFrame({PAYLOADS[0]: PAYLOADS}), PAYLOADS[4]
    notebook = page_of(**{PAYLOADS[3]: table})
    body = BeautifulSoup(page.to_html(notebook, title), "lxml")
    cells = [cell.text.split() for cell in body.select("td")]
    assert cells == [text.split() for text in PAYLOADS]
    named = [body.title.text, body.h1.text, body.caption.text, body.th.text]
    assert named == [title, title, PAYLOADS[3], PAYLOADS[0]]
    assert [img["alt"] for img in body.find_all("img")] == ["a <dot>"]
    assert len(body.find_all("script")) == 1 and not body.select("iframe, svg, base, link, td *")
    assert all(link["href"].startswith("#") for link in body.find_all("a"))
    rendered = BeautifulSoup(markdown2html(page.to_markdown(notebook, title)), "lxml")
    assert not rendered.select("script, img, iframe, svg, a[href^=javascript], td *")
    rows = json.loads(page.to_json(notebook, title))["tables"][PAYLOADS[3]]
    assert [row[PAYLOADS[0]] for row in rows] == PAYLOADS
    monkeypatch.setattr(notebook_runs, "ROOT", tmp_path)
    notebook_runs.Run("yours", "sample").table(table, "texts")
    (written,) = tmp_path.rglob("yours_texts.csv")
    with written.open(newline="", encoding="utf-8") as file:
        cells = [row[0] for row in csv.reader(file)]
    assert [cell.removeprefix("'") for cell in cells[1:]] == PAYLOADS
    assert not any(cell[:1] in "=+-@\t\r" for cell in cells)


def test_the_page_stands_alone_and_runs_no_script_but_ours(page_of):
    body = BeautifulSoup(page.to_html(page_of(Numbers=TABLE), "t"), "lxml")
    (script,) = body.find_all("script")
    digest = base64.b64encode(hashlib.sha256(script.string.encode()).digest()).decode()
    policy = body.find("meta", attrs={"http-equiv": True})["content"]
    assert "default-src 'none'" in policy and f"'sha256-{digest}'" in policy
    loaded = [tag.get("src") or tag.get("href") for tag in body.select("[src], [href]")]
    assert all(place.startswith(("data:", "#")) for place in loaded)
    assert body.html["lang"] == "en" and [h.name for h in body.select("h1, h2")] == ["h1", "h2"]
    (shown,) = pd.read_html(io.StringIO(str(body.table)))  # readable without the script, too
    assert shown["n"].tolist() == [3, 1, 2, 4]
    assert {th["scope"] for th in body.select("th")} == {"col"}
    assert body.select_one("[tabindex] > table")


# Clicks, in a browser, and reports what the tables look like and what came of the texts.
CLICKS = """<script>
const said = [], title = document.title;
const rows = (t) => [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent));
const press = (t, name) => {
  const header = [...t.tHead.querySelectorAll("th")].find((h) => h.textContent.trim() === name);
  header.querySelector("button").click();
  said.push({rows: rows(t), sorted: header.getAttribute("aria-sort"),
             marked: t.tHead.querySelectorAll("[aria-sort]").length});
};
const [plain, nested, texts] = document.querySelectorAll("table.dataframe");
const focusable = [...plain.tHead.querySelectorAll("button")].map((b) => b.tabIndex);
for (const name of ["value", "value", "metric", "n"]) press(plain, name);
press(nested, "turns");
const made = "td *, caption *, main :is(script, style, link, meta, base, iframe, svg)";
document.title = JSON.stringify({said, focusable, title, texts: rows(texts).flat(),
                                 made: document.querySelectorAll(made).length});
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium or chrome to click with")
def test_in_a_browser_a_click_on_a_header_sorts_and_no_text_becomes_more(page_of, tmp_path):
    nested = pd.DataFrame({"system": list("AAB"), "agent": list("xyz"), "turns": [2, 3, 1]})
    tables = {"plain": TABLE, "nested": nested.set_index(["system", "agent"])}
    tables[PAYLOADS[3]] = pd.DataFrame({PAYLOADS[0]: PAYLOADS})
    file = tmp_path / "page.html"
    written = page.to_html(page_of(**tables), PAYLOADS[4])
    written = re.sub("<meta http-equiv[^>]*>", "", written)  # it would forbid our clicks
    file.write_text(written.replace("</body>", CLICKS + "</body>"), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    title = html.unescape(re.search(r"<title>(.*?)</title>", dom, flags=re.DOTALL).group(1))
    found = json.loads(title)
    assert found["title"] == PAYLOADS[4] and found["made"] == 0
    assert [text.split() for text in found["texts"]] == [text.split() for text in PAYLOADS]
    up, down, text, count, inner = ([row[k] for row in said["rows"]] for said, k in
                                    zip(found["said"], (1, 1, 0, 2, 2), strict=True))  # fmt: skip
    assert up == ["-9.0", "-2.5", "10.0", ""] and down == ["10.0", "-2.5", "-9.0", ""]
    assert text == ["a", "b9", "b10", "c"] and count == ["1", "2", "3", "4"]
    order = [said["sorted"] for said in found["said"]]
    assert order[:3] == ["ascending", "descending", "ascending"]
    assert all(said["marked"] == 1 for said in found["said"])
    assert found["focusable"] == [0, 0, 0]  # the Tab key reaches them
    assert inner == ["1", "2", "3"] and found["said"][4]["rows"][1] == ["A", "x", "2"]


def test_command_line_reports_a_fault_and_its_way_out(user_file, capsys):
    assert main([str(user_file), "--columns", "response=Bot repl"]) == 2
    assert "did you mean 'bot reply'" in capsys.readouterr().err.lower()


@pytest.mark.slow
def test_command_line_writes_a_page(user_file, tmp_path):
    out = tmp_path / "page.html"
    ran = subprocess.run(
        [sys.executable, "-m", "lib.report", str(user_file), "--out", str(out)],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    written = out.read_text(encoding="utf-8")
    for text in ("chat 7", "no references", "Replies to read", "State or trait?", report.VERDICT):
        assert text in written
    assert "Traceback" not in written and str(tmp_path) not in written


FULL, HUT = "We went to the lake and swam until the sun was gone.", "We slept in a hut."
BOAT = "I own a red boat."
FAULTS = [  # the fault, a faulty reply, a whole one, and other columns
    ("empty", "  ", FULL, {}),
    ("generic", "It is.", FULL, {}),
    ("repeats itself", FULL, HUT, {"context": [[FULL, "And?"]] * 2}),
    ("repeats itself", "I like I like old boats and maps.", "I like old boats and maps.", {}),
    ("repeats the user", FULL, HUT, {"context": [["No.", "So.", FULL]] * 2}),
    ("cut off", "We went to the lake and", FULL, {}),
    ("off topic", "cos.", FULL, {}),
    ("toxic", "tox", FULL, {}),
    ("contradicts the persona", "I don't own a red boat.", BOAT, {"fact": [["I bake.", BOAT]] * 2}),
]


@pytest.mark.parametrize("fault, faulty, whole, more", FAULTS)
def test_each_fault_is_raised_for_the_faulty_reply_alone(fault, faulty, whole, more):
    turns = replies(response=[faulty, whole], **more)
    filler = replies(response=[f"Number {k} sails past the old stone harbour." for k in range(9)])
    turns = pd.concat([turns, filler.assign(dialog="x" + filler["dialog"])], ignore_index=True)
    turns["fact"] = more.get("fact", []) + [[]] * (len(turns) - len(more.get("fact", [])))
    scores = metrics.compute(turns, ["length", "specificity"], log=lambda line: None)
    scores["context_similarity"] = np.where(turns["response"] == "cos.", 0.01, 0.4)
    scores["toxicity"] = np.where(turns["response"] == "tox", 0.9, 0.1)
    found = report.faults(report.signals(turns, scores))
    assert found[["reply", "fault"]].values.tolist() == [[0, fault]]


def test_the_reading_list_names_each_text_once_and_says_what_was_not_looked_for():
    turns = replies(response=["Ok.", "ok. ", "Well.", "", ""])
    scores = metrics.compute(turns, ["length", "specificity"], log=lambda line: None)
    read = report.signals(turns, scores)
    found = report.faults(read)
    listed = report.reading_list(turns, found, each=2)
    assert listed["reply"].tolist() == ["", "Ok.", "Well."] and len(found) == 5
    assert listed["fault"].tolist() == ["empty", "generic", "generic"]
    told = report.fault_table(found, read).set_index("rule")
    assert told.loc["length in words at most 0", "replies"] == 2
    assert "no score" in told.loc["toxicity at least 0.5", "note"]


def test_a_metric_that_says_nothing_is_marked_and_not_ranked():
    rng = np.random.default_rng(0)
    turns = turns_of(human_overall=rng.integers(1, 6, 40).astype(float))
    noise = rng.random(40)
    scores = pd.DataFrame({"good": turns["human_overall"], "noise": noise, "length": 3.0})
    scores["context_similarity"] = noise
    found = report.against_ratings(turns, scores).set_index("metric")
    expected = stats.spearmanr(noise, turns["human_overall"]).statistic
    assert found.loc["noise", ["rating", "value"]].tolist() == ["human_overall", approx(expected)]
    assert found.loc["good", "rank"] == 1 and np.isnan(found.loc["noise", "rank"])
    says = report.standing(scores).set_index("metric")["says"]
    assert says.index[0] == "context_similarity" and says.iloc[0] == report.FOLLOWS
    assert says[["noise", "length"]].tolist() == ["not tested", "nothing here"]


def test_a_judge_reads_the_first_dialogs_of_every_version_and_nothing_twice(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr("lib.report.scores.STORE", tmp_path / "replies.sqlite")
    turns = turns_of(system=["old"] * 20 + ["new"] * 20, fact=[[]] * 40)
    first, again = (report.judge_replies(turns, "packaged", most=most) for most in (2, 3))
    assert again.dropna().index.tolist() == [0, 1, 20] and again.between(1, 5).sum() == 3
    assert first.dropna().equals(again[[0, 20]])
    left = r"judge: \d of 40 replies, left to ask: {'requests': (\d)"
    assert re.findall(left, capfd.readouterr().err) == ["2", "1"]


@pytest.mark.parametrize("agents", [2, 400])
def test_figures_stay_legible_and_say_what_they_show(agents):
    names = [f"agent {k}" for k in range(agents)]
    profile = pd.DataFrame({"system": names, "agent": names, "metric": "length"})
    profile = profile.assign(z=np.linspace(-1, 1, agents), z_low=-1.0, z_high=1.0)
    figure = report.profile_plot(profile)
    assert figure.get_size_inches().max() < 12
    assert f"highest agent {agents - 1} (+1.0), lowest agent 0 (-1.0)" in figure.get_label()
    turns = pd.DataFrame({"system": names})
    scores = pd.DataFrame({"length": np.arange(agents) % 9.0})
    assert report.beside_references(turns, scores, "mine").get_size_inches().max() < 14


def test_a_model_at_an_address_is_asked_and_what_cannot_be_read_is_told(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr("lib.report.scores.STORE", tmp_path / "replies.sqlite")
    turns = turns_of(system=["old"] * 20 + ["new"] * 20, fact=[[]] * 40)
    said = iter(["- Humanness: 4", "Fine."])
    with FaultServer(reply=lambda body, choice: next(said, "- Humanness: 4")) as service:
        monkeypatch.setenv("OPENAI_BASE_URL", service.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        marks = report.judge_replies(turns, "gpt-x", most=6)
    assert marks.dropna().tolist() == [4.0] * 5
    assert {body["model"] for body in service.bodies} == {"gpt-x"}
    assert re.search(r"came back: \{.*: 5, .*: 1\}", capfd.readouterr().err)


def test_networks_read_whole_dialogs_of_every_version_and_keep_pairs_together():
    begun = [[f"opening {k // 4 % 5}"] for k in range(40)]
    turns = turns_of(system=["old"] * 20 + ["new"] * 20, context=begun, turn=[1, 2, 3, 4] * 10)
    turns["dialog"] = [f"dialog {k // 4}" for k in range(40)]
    read = sample_dialogs(turns, 16)
    assert read.groupby(["system", "dialog"]).size().tolist() == [4] * 4
    old, new = (set(of["context"].str[0]) for _, of in read.groupby("system"))
    assert old == new
    scores = pd.DataFrame({"length": range(40), "context_similarity": range(40)}).astype(float)
    scores.loc[turns.index.difference(read.index), "context_similarity"] = np.nan
    assert report.standing(scores)["says"].iloc[0] == report.FOLLOWS
    assert "sample" in report.warnings(turns, 16)["topic"].iloc[-1]
