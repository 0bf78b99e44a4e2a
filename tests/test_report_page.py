"""The page that answers first: its sentence, its picture, and the way from a number to a dialog."""

import json
import re
import shutil
import subprocess

import jsonschema
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from scipy import optimize, stats

from lib import ROOT, data, metrics, report
from lib.report import page
from lib.report.__main__ import main
from lib.report.answer import _change_sentences, difference_plot, picture_rows
from lib.report.chat import chat_lines
from lib.report.pairs import reply_pairs, typical_and_worst
from lib.report.ranking import version_ranking, win_rates

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?")
BROWSER = (
    shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
)


def two_versions(dialogs: int = 30, loss: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """Two versions answer the same openings; the new one is rated lower by `loss`."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(dialogs):
        for system, level in (("old", 4.0), ("new", 4.0 - loss)):
            rows.append(
                {
                    "system": system,
                    "agent": system,
                    "dialog": f"{system}-{number}",
                    "turn": 1,
                    "context": [f"What about number {number}?"],
                    "response": f"The {system} answer to number {number}.",
                    "reference": [],
                    "fact": [],
                    "human_overall": level + rng.normal(scale=0.5),
                }
            )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def compared():
    return report.build_report(two_versions(), embeddings=False)


def shown(result, **options) -> BeautifulSoup:
    written = page.render_html(result, "t", **options)
    return BeautifulSoup(written.replace("\xa0", " "), "lxml")


def test_the_first_screen_says_which_version_is_better_and_on_what_that_rests(compared):
    answer = shown(compared).select_one(".answer").text
    assert "new is worse than old." in answer
    assert (
        "people's ratings (overall) of 30 dialogs of new and 30 of old. 30 shared openings: their "
        "dialogs are compared in pairs (section 1 lists them). "
        in " ".join(answer.split())
    )
    markdown = page.render_markdown(compared, "t")
    assert "new is worse than old." in markdown
    assert len(markdown.splitlines()) <= 60


def test_equal_versions_are_not_called_different():
    result = report.build_report(two_versions(loss=0.0, seed=1), embeddings=False)
    assert result.answer.sentences == ["No difference between new and old is shown."]


def test_one_version_is_described_by_its_rating_its_commonest_issue_and_its_distance():
    turns = two_versions()
    one = turns[turns["system"] == "old"].reset_index(drop=True)
    one.loc[:8, "response"] = "Ok."
    result = report.build_report(one, embeddings=False)
    findings = " ".join(result.answer.findings)
    assert result.answer.sentences == ["One version, old: 30 replies in 30 dialogs."]
    assert f"People rate it {one['human_overall'].mean():.2f} on average" in findings
    assert "Commonest issue: generic, 9 replies (30 %): at most 1 word" in findings
    body = shown(result)
    assert "Compared with" not in body.text
    headings = [heading.text for heading in body.select("h2")]
    assert headings[0] == "Dialogs to look at" and "2 Ratings" in headings
    assert "There is only one version. These are" in body.text


def test_the_picture_has_the_differences_in_standard_deviations_ratings_first(compared):
    turns = compared.turns
    deviations = turns[["human_overall"]].join(compared.scores).std(ddof=0)
    rows = picture_rows(compared.differences, deviations)
    assert rows["role"].iloc[0] == "rating"
    ratings = turns.groupby("system")["human_overall"].mean()
    expected = (ratings["new"] - ratings["old"]) / turns["human_overall"].std(ddof=0)
    assert rows["difference"].iloc[0] == pytest.approx(expected)
    figure = difference_plot(rows)
    assert f"overall: {expected:+.2f}" in figure.get_label()
    plt.close(figure)


def test_replies_to_the_same_context_stand_in_pairs_the_largest_change_first(compared):
    table = compared.pairs.table
    assert compared.pairs.total == len(table) == 30
    assert table[
        "change"
    ].is_monotonic_increasing  # the new version is worse: losses first
    row = table.iloc[0]
    turns = compared.turns.set_index(["system", "response"])["human_overall"]
    change = turns["new", row["reply"]] - turns["old", row["reply_against"]]
    assert row["change"] == pytest.approx(change)
    assert row["dialog_against"] == row["dialog"].replace("new", "old")
    body = shown(compared)
    assert "the largest losses of new in overall first" in body.text
    items = body.select("#pairs > li")
    assert row["dialog"] in items[0].text and row["dialog_against"] in items[0].text
    assert row["reply"] in items[0].text
    assert row["context"][0] in items[0].text


def test_versions_that_replied_the_same_are_not_said_to_share_no_context():
    turns = two_versions(dialogs=5)
    turns["response"] = "The same answer."
    same = page.render_html(report.build_report(turns, embeddings=False), "t")
    assert "share 5 contexts, and replied the same to each" in same
    assert "share no context" not in same
    turns["context"] = [[f"Opening {number}?"] for number in range(len(turns))]
    apart = page.render_html(report.build_report(turns, embeddings=False), "t")
    assert "the versions share no context" in apart


def test_an_empty_reply_is_shown_as_nothing_said():
    turns = two_versions(dialogs=5)
    turns.loc[0, "response"] = " "
    body = shown(report.build_report(turns, embeddings=False))
    pair = next(item for item in body.select("#pairs > li") if "number 0?" in item.text)
    assert "(nothing)" in pair.select_one(".two p").text
    case = body.select_one("details.case")
    assert "empty, old: (nothing)" in case.summary.text
    assert case.mark.text == "(nothing)"


def test_only_clear_changes_of_issues_are_on_the_first_screen():
    issues = pd.DataFrame(
        [
            ["cut off", "open", "old", 0, np.nan, np.nan, np.nan],
            ["cut off", "open", "new", 10, 0.1, 0.05, 0.15],
            ["empty", "no words", "old", 9, np.nan, np.nan, np.nan],
            ["empty", "no words", "new", 1, -0.08, -0.1, -0.02],
            # Half as often, but the interval holds 0.
            ["generic", "short", "old", 40, np.nan, np.nan, np.nan],
            ["generic", "short", "new", 20, -0.2, -0.5, 0.1],
        ],
        columns=["issue", "rule", "version", "replies", "change", "low", "high"],
    )
    issues = issues.assign(
        of=100, rating_gap=np.nan, rating_effect=np.nan, recall=np.nan
    )
    issues.loc[3, ["rating_gap", "recall"]] = [-1.5, 0.22]
    told = _change_sentences(issues, "old")
    assert [issue for _, issue in told] == ["cut off", "empty"]
    assert told[0][0] == (
        "Fix first (grew most): cut off, more often (open). 10 of 100 replies of new, 0 of 100 of "
        "old: +10 points (95 % interval +5 to +15)."
    )
    assert told[1][0].startswith("Empty, less often, an improvement (no words). 1 of")
    assert told[1][0].endswith(
        "Replies with it are rated 1.5 lower than others. In a test on artificially damaged "
        "replies this rule found only 22 of 100 such replies, so the true number may be higher."
    )
    unclear = issues[issues["issue"] == "generic"]
    (sentence,) = _change_sentences(unclear, "old")
    assert sentence == ("No issue became clearly more or less frequent.", "")


def test_the_issue_that_may_have_cost_most_rating_comes_first_everywhere():
    turns = two_versions(dialogs=40, loss=0.0)
    new = turns.index[turns["system"] == "new"]
    cut, short = new[:8], new[8:14]
    turns.loc[cut, "response"] = turns.loc[cut, "response"].str.rstrip(".")
    words = ["Ok", "Well", "Right", "Yes", "So", "Hm"]
    turns.loc[short, "response"] = [f"{word}." for word in words]
    turns.loc[cut, "human_overall"] -= 0.5
    turns.loc[short, "human_overall"] = (
        1.0  # fewer than those cut off, and rated far lower
    )
    result = report.build_report(turns, embeddings=False)
    table = result.issues[result.issues["version"] == "new"]
    assert table["issue"].tolist()[:2] == ["generic", "cut off"]
    row = table.iloc[0]
    others = turns.loc[new.difference(short), "human_overall"].mean()
    assert row["rating_gap"] == pytest.approx(1.0 - others) and row["rated"] == 6
    assert row["rating_effect"] == pytest.approx(row["change"] * row["rating_gap"])
    assert (row["replies"], row["of"]) == (6, 40)
    changes = [text for text in result.answer.findings if "95 % interval +" in text]
    assert changes[0].startswith(
        "Fix first (costs most in rating): generic, more often"
    )
    assert changes[1].startswith("Grew most: cut off, more often")
    assert list(dict.fromkeys(result.cases["issue"])) == ["generic", "cut off"]
    cells = shown(result).find("caption", string="What the rules found").parent
    assert cells.select_one("tbody td").text == "generic"
    markdown = page.render_markdown(result, "t")
    assert markdown.index("| generic |") < markdown.index("| cut off |")

    unrated = turns.drop(columns="human_overall")
    table = report.build_report(unrated, embeddings=False).issues
    assert table["issue"].iloc[0] == "cut off"  # without ratings, the larger change


def test_equal_replies_are_counted_and_greetings_pair_nothing():
    turns = two_versions()
    turns.loc[turns.index[:2], "response"] = ["Same  answer.", "Same answer."]
    pairs = reply_pairs(turns, turns[[]], "human_overall")
    assert (pairs.identical, pairs.total) == (1, 29)
    greeted = two_versions().assign(context=[["hi"]] * 60)
    assert reply_pairs(greeted, turns[[]], "human_overall").total == 0
    listed = reply_pairs(turns, turns[[]], "human_overall", limit=5)
    assert (len(listed.table), listed.total) == (5, 29)
    assert listed.tally["pairs"].tolist() == [30]  # of all pairs


def test_side_by_side_counts_lower_and_higher_pairs_and_says_why_the_verdict_may_differ():
    turns = two_versions(loss=0.2)
    alone = turns.index[turns["system"] == "new"][:3]
    turns.loc[alone, "context"] = pd.Series([[f"Only {n}?"] for n in range(3)], alone)
    turns.loc[turns.index[10], "human_overall"] = np.nan
    turns.loc[turns.index[12:14], "human_overall"] = 4.0
    result = report.build_report(turns, embeddings=False)
    ratings = turns.assign(number=turns["dialog"].str.partition("-")[2])
    ratings = ratings.drop(index=alone).pivot(
        index="number", columns="system", values="human_overall"
    )
    change = (ratings["new"] - ratings["old"]).drop(["0", "1", "2"])
    row = result.pairs.tally.iloc[0]
    assert row["lower"] == (change < 0).sum() and row["higher"] == (change > 0).sum()
    assert (row["pairs"], row["missing"]) == (27, 1)
    told = shown(result).select_one(".tally").text
    assert (
        f"Replies of new against those of old: {row['lower']} lower, {row['higher']} "
        f"higher, 1 equal by overall, 1 without a value." in told
    )
    assert "compares the means over all rated replies of each version" in told
    assert "those in dialogs without a partner count too" in told
    assert "(section 1 lists them); dialogs without a partner count too" in (
        result.answer.basis
    )
    assert "27 reply pairs: 27 differ and are listed, 0 have" in shown(result).text


def test_versions_without_a_common_context_show_a_typical_and_the_lowest_dialog():
    turns = two_versions()
    by_system = turns["system"].map({"old": ["Good morning"], "new": ["Good evening"]})
    turns["context"] = by_system
    result = report.build_report(turns, embeddings=False)
    assert result.pairs.total == 0
    examples = typical_and_worst(turns, turns[[]], "human_overall")
    for version, group in turns.groupby("system"):
        rated = group.set_index("dialog")["human_overall"]
        chosen = examples[examples["version"] == version].set_index("which")["dialog"]
        assert chosen["lowest"] == rated.idxmin()
        median = rated.median()
        assert chosen["typical"] == (rated - median).abs().idxmin()
    lowest = turns.loc[turns["human_overall"].idxmin(), "response"]
    assert lowest in shown(result).select_one("details").text


def test_a_chat_puts_each_reply_at_its_turn_with_its_scores_and_marks_the_one_in_question():
    turns = data.load("sample_bots").turns
    dialog = turns[turns["dialog"] == turns["dialog"].iloc[0]]
    values = dialog[["human_overall"]]
    lines = chat_lines(dialog, values, marked=[dialog.index[1]])
    ours = [line for line in lines if line.speaker == dialog["system"].iloc[0]]
    assert [line.text for line in ours] == dialog["response"].tolist()
    assert [line.marked for line in ours] == [False, True] + [False] * (len(ours) - 2)
    assert [line.values["human_overall"] for line in ours] == values.squeeze().tolist()
    assert {line.speaker for line in lines} - {ours[0].speaker} == {"user"}

    single = dialog.tail(1)  # nobody knows who said what before it
    speakers = [line.speaker for line in chat_lines(single)]
    assert set(speakers[:-1]) == {"earlier"}
    with pytest.raises(ValueError, match="one dialog"):
        chat_lines(turns)


def test_versions_have_one_rank_where_no_test_distinguishes_them():
    rng = np.random.default_rng(3)
    levels = {"a": 3.0, "b": 3.0, "c": 1.0, "d": np.nan}
    tables = []
    for system, level in levels.items():
        turns = two_versions(dialogs=40)
        turns = turns[turns["system"] == "old"].assign(system=system, agent=system)
        turns["dialog"] = system + turns["dialog"]
        turns["human_overall"] = level + rng.normal(scale=0.3, size=40)
        tables.append(turns)
    turns = pd.concat(tables, ignore_index=True)
    table = version_ranking(turns, turns[[]], "human_overall").set_index("version")
    assert table.loc[["a", "b", "c"], "rank"].tolist() == [1, 1, 2]
    assert np.isnan(table.loc["d", "rank"])


def arena(strengths: dict[str, float], contests: int, seed: int = 0) -> pd.DataFrame:
    """Pairs of replies to one context; the preferred one is drawn by Bradley-Terry."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(contests):
        a, b = rng.choice(list(strengths), 2, replace=False)
        chance = 1 / (1 + np.exp(strengths[b] - strengths[a]))
        won = 0.5 if number % 10 == 0 else float(rng.random() < chance)
        for system, preference in ((a, won), (b, 1 - won)):
            rows.append(
                {
                    "system": system,
                    "agent": system,
                    "dialog": f"{number}",
                    "turn": 1,
                    "context": [f"question {number}"],
                    "human_preference": preference,
                }
            )
    return pd.DataFrame(rows)


def test_bradley_terry_strengths_are_the_maximum_of_the_written_out_likelihood():
    turns = arena({"x": 1.0, "y": 0.0, "z": -1.0}, contests=400)
    table = win_rates(turns).set_index("version")

    first = turns.iloc[::2].reset_index(drop=True)
    second = turns.iloc[1::2].reset_index(drop=True)

    def minus_log_likelihood(free):
        beta = {"x": free[0], "y": free[1], "z": -free[0] - free[1]}
        gap = first["system"].map(beta) - second["system"].map(beta)
        won = first["human_preference"]
        return -(
            won * stats.logistic.logcdf(gap) + (1 - won) * stats.logistic.logsf(gap)
        ).sum()

    best = optimize.minimize(minus_log_likelihood, [0.0, 0.0]).x
    expected = [best[0], best[1], -best.sum()]
    assert table.loc[["x", "y", "z"], "strength"].tolist() == pytest.approx(
        expected, abs=1e-3
    )
    for version, strength in {"x": 1.0, "z": -1.0}.items():
        row = table.loc[version]
        # Ties, every tenth comparison, pull strengths towards 0.
        assert row["strength_low"] < 0.9 * strength < row["strength_high"]
        wins = turns.loc[turns["system"] == version, "human_preference"]
        assert row["win_rate"] == pytest.approx(wins.mean())
        assert row["low"] < row["win_rate"] < row["high"]


def test_a_version_that_always_wins_has_no_finite_strength():
    turns = arena({"x": 50.0, "y": 0.0, "z": 0.0}, contests=60)
    turns = turns[turns["human_preference"] != 0.5]
    assert win_rates(turns)["strength"].isna().all()


def test_without_texts_no_reply_and_no_utterance_of_the_file_is_on_the_page(compared):
    texts = [*compared.turns["response"], *compared.turns["context"].str[0]]
    assert any(text in shown(compared).text for text in texts)
    left_out = shown(compared, texts=False).text
    assert not any(text in left_out for text in texts)
    written = page.render_json(compared, "t", texts=False)
    assert not any(text in written for text in texts)


def test_every_column_that_a_person_reads_has_a_plain_head_and_a_meaning():
    result = report.build_report(data.load("sample_bots").turns, embeddings=False)
    for head in shown(result).select("th"):
        assert "_" not in head.text, head.text
        if head.text in {"System", "p, adjusted", "Recall"}:
            assert head["title"]


def test_numbers_are_written_for_people_and_sorted_by_their_value(compared):
    body = shown(compared)
    numbers = body.select("td.number")
    assert numbers
    for cell in numbers:
        value = float(cell["data-value"])
        text = cell.text.replace(",", "")
        if text.startswith("<"):
            assert value < 0.001
            continue
        if text == "":
            continue
        # Of two numbers in a cell, such as the ends of an interval, the first sorts.
        number = float(NUMBER.match(text)[0])
        if text.endswith(("%", "points")):
            assert number == pytest.approx(100 * value, abs=0.51)
        else:
            assert number == pytest.approx(value, rel=0.01, abs=0.0005)


def test_the_pages_numbers_are_those_of_its_json(compared):
    written = json.loads(page.render_json(compared, "t"))
    assert written["answer"]["sentences"] == compared.answer.sentences
    row = next(
        row
        for row in written["tables"]["differences"]
        if row["score"] == "human_overall"
    )
    caption = re.compile("Differences of each version")
    table = shown(compared).find("caption", string=caption).parent
    cells = table.select("tbody tr")[0].select("td.number")
    told = [number for cell in cells for number in NUMBER.findall(cell.text)]
    numbers = [float(number.replace(",", "")) for number in told]
    for name in ("difference", "low", "high"):
        close = pytest.approx(row[name], rel=0.01)
        assert any(number == close for number in numbers), name


METRIC_FILE = """
from lib import metrics

@metrics.metric("shouts", "style")
def shouts(turns):
    return turns["response"].str.count("!").astype(float)
"""


def test_a_metric_of_your_own_stands_on_the_page_as_untested(tmp_path):
    turns = two_versions()
    turns["response"] += "!"
    dialogs = tmp_path / "dialogs.csv"
    turns.assign(context=turns["context"].str[0]).drop(
        columns=["reference", "fact"]
    ).to_csv(dialogs, index=False)
    mine = tmp_path / "mine.py"
    mine.write_text(METRIC_FILE)
    out = tmp_path / "report.json"
    command = [
        str(dialogs),
        "--metrics",
        str(mine),
        "--format",
        "json",
        "--out",
        str(out),
    ]
    try:
        assert main(command) == 0
    finally:
        metrics.METRICS.pop("shouts", None)
    tables = json.loads(out.read_text())["tables"]
    known = {row["metric"]: row["status"] for row in tables["validity"]}
    assert known["shouts"] in ("not tested", "no information")
    assert "shouts" not in sum((row["scores"] for row in tables["verdicts"]), [])


@pytest.mark.parametrize(
    ("content", "problem"),
    [("1 / 0", "ZeroDivisionError"), ("x = 1", "registers no metric")],
)
def test_a_file_without_metrics_is_an_error_that_names_it(
    tmp_path, capsys, content, problem
):
    dialogs = tmp_path / "dialogs.txt"
    dialogs.write_text("User: Hi\nBot: Hello")
    mine = tmp_path / "mine.py"
    mine.write_text(content)
    assert main([str(dialogs), "--metrics", str(mine)]) == 2
    message = capsys.readouterr().err
    assert problem in message and "mine.py" in message


def test_texts_are_sent_to_no_other_machine_without_a_yes(
    tmp_path, monkeypatch, capsys
):
    dialogs = tmp_path / "dialogs.txt"
    dialogs.write_text("User: Hi\nBot: Hello")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://judge.example.org/v1")
    assert main([str(dialogs), "--judge", "some-model"]) == 2
    shown = capsys.readouterr()
    assert "1 replies with their contexts go to judge.example.org" in shown.out
    assert "nothing was sent" in shown.err


def test_the_json_follows_its_schema(compared):
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    jsonschema.validate(json.loads(page.render_json(compared, "t")), schema)


def test_each_case_of_an_issue_opens_in_its_dialog_with_the_reply_marked():
    """Three cases of each version; of two replies to one context the one in question is shown."""
    turns = two_versions(dialogs=6)
    empty = turns["dialog"].isin([f"new-{number}" for number in range(5)])
    turns.loc[empty, "response"] = [
        f"{word}." for word in ("Ok", "Well", "Right", "Yes", "So")
    ]
    regenerated = turns[turns["dialog"] == "old-0"].assign(response="Hm.")
    turns = pd.concat([regenerated, turns], ignore_index=True)
    result = report.build_report(turns, embeddings=False)
    generic = result.cases[result.cases["issue"] == "generic"]
    assert generic["system"].tolist() == ["new", "new", "new", "old"]
    opened = shown(result).select("details.case")
    assert len(opened) == len(result.cases)
    for case, row in zip(opened, result.cases.itertuples(), strict=True):
        assert [mark.text for mark in case.select("mark")] == [row.reply]
        assert row.before in case.text and row.system in case.summary.text
    without_texts = shown(result, texts=False)
    assert not without_texts.select("details.case")
    assert not without_texts.select('.answer a[href^="#"]')


def test_each_change_of_an_issue_leads_to_its_cases():
    turns = two_versions(dialogs=40)
    cut = turns.index[turns["system"] == "new"][:8]
    turns.loc[cut, "response"] = turns.loc[cut, "response"].str.rstrip(".")
    body = shown(report.build_report(turns, embeddings=False))
    links = body.select('.answer li a[href^="#"]')
    assert [link.text for link in links] == ["See cases of cut off"]
    heading = body.find(id=links[0]["href"].removeprefix("#"))
    assert heading.text == "Cut off"
    assert "cut off, new" in heading.find_next("details", class_="case").summary.text


def test_a_long_dialog_is_shown_around_the_reply_in_question():
    context = [f"utterance {number}" for number in range(20)]
    replies = pd.DataFrame(
        {
            "system": "bot",
            "agent": "bot",
            "dialog": "1",
            "turn": [19, 20],
            "context": [context[:19], context],
            "response": ["utterance 19", "the end"],
        }
    )
    lines = chat_lines(replies, marked=[1], around=2)
    texts = [line.text for line in lines]
    assert texts == ["utterance 18", "utterance 19", "the end"]
    assert [line.marked for line in lines] == [False, False, True]


def test_of_many_versions_the_answer_names_those_of_one_verdict_together():
    """Twelve versions fill no screen with sentences, and are not taken for users."""
    versions = []
    for number in range(12):
        turns = two_versions(dialogs=12, seed=number)
        loss = 2.0 * (number > 8)
        names = {"system": f"v{number}", "agent": f"v{number}"}
        rating = turns["human_overall"] - loss
        turns = turns.assign(**names, human_overall=rating)
        versions.append(turns[two_versions(dialogs=12)["system"] == "old"])
    turns = pd.concat(versions, ignore_index=True)
    turns["dialog"] = turns.groupby("system").cumcount().astype(str)
    result = report.build_report(turns, embeddings=False)
    worse = [row.version for row in result.verdicts if row.verdict == "worse"]
    assert set(worse) >= {"v9", "v10", "v11"}
    assert len(result.answer.sentences) <= 3
    assert "worse than v0" in result.answer.sentences[0]
    told = next(name for name in result.turns["system"].unique() if name in worse)
    basis = f"The verdict on {told} rests on people's ratings"
    assert result.answer.basis.startswith(basis)
    assert result.answer.findings[0].startswith(f"{told} against v0: ")
    assert result.answer.findings[1].startswith("Highest in overall")
    topics = result.warnings["topic"].tolist()
    assert "users among the systems?" not in topics


def test_the_rating_that_stands_for_one_version_is_the_overall_one():
    turns = two_versions(dialogs=5)
    one = turns[turns["system"] == "old"].reset_index(drop=True)
    one.insert(0, "human_fluent", 5.0)
    result = report.build_report(one, embeddings=False)
    mean = f"{one['human_overall'].mean():.2f}"
    expected = f"People rate it {mean} on average (overall;"
    assert any(text.startswith(expected) for text in result.answer.findings)


def test_the_same_file_twice_draws_nothing_and_names_scores_as_people_do():
    turns = two_versions(dialogs=5)
    old = turns[turns["system"] == "old"]
    twice = pd.concat([old, old.assign(system="copy", agent="copy")], ignore_index=True)
    result = report.build_report(twice, embeddings=False)
    assert result.picture.empty
    assert "Is it the same file twice?" in result.answer.basis
    assert "_" not in result.answer.basis


def test_issues_that_were_found_come_before_those_that_were_not():
    turns = two_versions(dialogs=6)
    turns.loc[turns.index[:4], "response"] = ["Ok.", "Well.", "Right.", "Yes."]
    table = report.build_report(turns, embeddings=False).issues
    largest = table.groupby("rule", sort=False)["share"].max().fillna(-1)
    assert np.sign(largest).is_monotonic_decreasing and largest.iloc[0] > 0
    assert table["version"].iloc[-1] == "not looked for"


@pytest.mark.parametrize(
    "facts, version", [([], "not looked for"), (["I row."], "all")]
)
def test_contradictions_of_a_persona_need_a_persona(facts, version):
    turns = two_versions(dialogs=6)
    turns["fact"] = [facts] * len(turns)
    table = report.build_report(turns, embeddings=False).issues
    (row,) = table[table["issue"] == "contradicts the persona"].to_dict("records")
    assert row["version"] == version
    assert ("no persona or other fact in the file" in row["note"]) == (not facts)


def test_an_echo_of_the_user_is_named_beside_its_pair():
    """A metric that decides may prefer it: similarity to context does."""
    turns = two_versions(dialogs=5)
    echo = turns.index[turns["dialog"] == "new-3"]
    turns.loc[echo, "response"] = "You say: What about number 3?"
    body = shown(report.build_report(turns, embeddings=False))
    pair = next(item for item in body.select("#pairs > li") if "You say" in item.text)
    assert [issue.text for issue in pair.select(".found")] == [
        "Issue: repeats the user"
    ]


def test_the_first_screen_counts_what_the_files_have_and_what_was_left_out(tmp_path):
    rows = ["dialog,speaker,text,rating"]
    for number in range(3):
        rows += [
            f"{number},guest,Number {number}?,",
            f"{number},bot,Answer {number}.,4",
        ]
    rows += ["8,guest,Anybody?,", "9,guest,Hello?,"]
    for name in ("old", "new"):
        (tmp_path / f"{name}.csv").write_text("\n".join(rows))
    files = [tmp_path / "old.csv", tmp_path / "new.csv"]
    turns = report.read_versions(files, overrides={"bot": "bot"})
    result = report.build_report(turns, embeddings=False)
    assert result.answer.size == (
        "10 dialogs in the files: 6 kept (3 of old, 3 of new), 4 left out (4 have no reply of "
        "the bot). 6 replies, 6 of them rated."
    )
    assert result.answer.size in shown(result).select_one(".answer").text
    assert "old: dialogs: 5 read, 3 kept (left out: 8, 9), 2 excluded" in (
        result.import_details
    )
    # All rows of the file are read, with those of dialogs that were left out.
    assert "old: utterances: 8 read, 6 kept, 2 excluded" in result.import_details
    assert result.paired_dialogs["first_dialogs"].tolist() == ["0", "1", "2"]
    assert result.units.set_index("version")["units"].to_dict() == {
        "old": 3,
        "new": 3,
        "all": 3,
    }


def test_replies_without_a_rating_or_a_score_are_counted_with_the_reason():
    turns = two_versions(dialogs=5)
    new = turns.index[turns["system"] == "new"]
    turns.loc[new[:2], "human_overall"] = np.nan
    turns.loc[new[2], "response"] = ""
    result = report.build_report(turns, embeddings=False)
    rows = result.without_score.values.tolist()
    assert ["rating", "new", 2, "no rating in the file"] in rows
    assert ["generic", "new", 1, "empty reply"] in rows
    caption = shown(result).find(
        "caption", string="Replies without a rating or a score"
    )
    assert "empty reply" in caption.parent.text
    account = shown(result).find(id="read").find_parent("details")
    assert "Section 1 counts the replies without a rating" in account.text


def test_lines_of_a_speaker_system_are_said_to_be_kept_as_context(tmp_path):
    rows = ["dialog,speaker,text", "1,guest,Hi", "1,Ada,Hello.", "1,system,Restored."]
    file = tmp_path / "log.csv"
    file.write_text("\n".join([*rows, "1,Ada,Good."]))
    turns = report.read_versions(file, overrides={"bot": "Ada"})
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Hello.", "Restored."]]
    details = report.import_details(turns)
    assert "4 kept (1 by a speaker named 'system', kept as context)" in details


def test_of_many_dialogs_that_were_left_out_the_first_ten_are_named(tmp_path):
    rows = ["dialog,speaker,text"]
    for number in range(30):
        rows.append(f"{number},guest,Hi {number}")
        if number >= 12:
            rows.append(f"{number},bot,Hello {number}.")
    file = tmp_path / "log.csv"
    file.write_text("\n".join(rows))
    turns = report.read_versions(file, overrides={"bot": "bot"})
    assert "(left out: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more)" in (
        report.import_details(turns)
    )


def test_ratings_of_the_file_ask_for_no_sheet_and_metrics_alone_do(compared):
    assert "Nobody has rated" not in shown(compared).text
    turns = two_versions().drop(columns="human_overall")
    result = report.build_report(turns, embeddings=False)
    assert "Nobody has rated these dialogs" in shown(result).text
    assert "make report DIALOGS=... RATE=40 writes a sheet" in result.answer.more


def test_more_dialogs_narrow_the_interval_with_the_root_of_their_number(compared):
    more = compared.more_dialogs
    row = compared.differences[compared.differences["score"] == "human_overall"].iloc[0]
    half = (row["high"] - row["low"]) / 2
    assert more["half_width"].tolist() == pytest.approx([half] * 3)
    assert more["further_dialogs"].tolist() == [20, 100, 90]
    assert more["expected_half_width"].iloc[2] == pytest.approx(half / 2)
    assert "20 more rated dialogs of each version" in compared.answer.more
    assert "; 90 more would halve it." in compared.answer.more


PRESS = """<script>
document.querySelector('nav a[href="#s2"]').focus();
document.activeElement.click();  // what Enter does on a link
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium or chrome to open the page with")
@pytest.mark.parametrize(("hash", "script"), [("#s2", ""), ("", PRESS)])
def test_a_link_to_a_folded_section_opens_it(compared, tmp_path, hash, script):
    written = page.render_html(compared, "t")
    folded = BeautifulSoup(written, "lxml").find(id="s2").find_parent("details")
    assert not folded.has_attr("open")
    if script:  # the page's own policy forbids it
        written = re.sub("<meta http-equiv[^>]*>", "", written)
    file = tmp_path / "page.html"
    file.write_text(written.replace("</body>", f"{script}</body>"), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", file.as_uri() + hash]
    dom = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    ).stdout
    body = BeautifulSoup(dom, "lxml")
    assert body.find(id="s2").find_parent("details").has_attr("open")
    assert not body.find(id="s1").find_parent("details").has_attr("open")


def test_no_prose_of_the_page_has_names_of_code():
    for section in page.SECTIONS:
        for part in section["part"]:
            words = [part.get("text", ""), part.get("empty", ""), section["title"]]
            assert not re.search(r"[a-z]_[a-z]", " ".join(words)), words
    for column, head in page.COLUMNS.items():
        assert "_" not in head["title"] + head["meaning"], column
