"""Every number that a person reads on the page is a number of its JSON, rounded."""

import json
import re

import pytest
from bs4 import BeautifulSoup
from test_report_page import two_versions

from lib import data, report
from lib.report import page

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?")


def with_and_without_ratings():
    rated = two_versions()
    rated.loc[rated.index[:9], "response"] = "Ok."
    alone = rated[rated["system"] == "old"].reset_index(drop=True)
    bots = data.load("sample_bots").turns
    unrated = bots[bots.columns[~bots.columns.str.startswith("human_")]]
    return {"rated": rated, "one version": alone, "three": bots, "unrated": unrated}


@pytest.fixture(scope="module", params=["rated", "one version", "three", "unrated"])
def both(request):
    """The page as a person sees it, and its JSON."""
    turns = with_and_without_ratings()[request.param]
    # Without ratings, only a metric that reads embeddings can decide.
    result = report.build_report(turns, embeddings=request.param == "unrated")
    shown = BeautifulSoup(page.render_html(result, "t").replace("\xa0", " "), "lxml")
    return shown, json.loads(page.render_json(result, "t"))


def is_rounded(shown: str, value: float, scale: float = 1) -> bool:
    """Whether a number as it is written is the value, rounded to its last digit."""
    text = shown.replace(",", "")
    decimals = len(text.partition(".")[2])
    return abs(float(text) - scale * value) <= 0.5 * 10**-decimals + 1e-9


def test_each_cell_is_the_number_of_the_json_rounded(both):
    shown, written = both
    captions = {}
    for section in page.SECTIONS:
        for part in section["part"]:
            captions[part.get("caption")] = part.get("table")
    checked = 0
    for table in shown.select("table.dataframe"):
        rows = written["tables"][captions[table.caption.text]]
        lines = table.tbody.select("tr")
        assert len(lines) == len(rows)
        # A column without any value is left out.
        names = [
            name
            for name in rows[0]
            if any(row[name] not in (None, "", []) for row in rows)
        ]
        for line, row in zip(lines, rows, strict=True):
            values = [row[name] for name in names]
            for cell, value in zip(line.select("td"), values, strict=True):
                if "number" not in cell.get("class", []):
                    continue
                text = cell.text
                if text == "":
                    assert value is None
                    continue
                if text == "< .001":
                    assert 0 <= value < 0.001
                else:
                    scale = 100 if text.endswith(("%", "points")) else 1
                    assert is_rounded(NUMBER.search(text)[0], value, scale), (text, row)
                checked += 1
    assert checked > 100


def numbers(text: str) -> list[str]:
    return NUMBER.findall(text)


def check_sizes(told: str, verdict: dict, differences: list[dict]) -> None:
    """The differences that decide, as the first finding tells them, are those of the table."""
    if not verdict["decided_by"]:
        return
    for score in verdict["scores"]:
        (row,) = [
            row
            for row in differences
            if (row["version"], row["score"]) == (verdict["version"], score)
        ]
        name = re.escape(page.metric_title(score))
        size = re.search(rf"{name} \(([^()]*)\)", told)[1]
        shown = numbers(size.partition(", p")[0].replace("95 % interval", ""))
        values = [row["low"], row["high"], row["detectable"]]
        if "smallest" not in size:
            values = [row["difference"], row["low"], row["high"]]
        for text, value in zip(shown, values, strict=True):
            assert is_rounded(text, value), (score, text, value)


def test_the_first_screen_tells_the_numbers_of_the_tables(both):
    shown, written = both
    tables = written["tables"]
    answer = shown.select_one(".answer")
    assert " ".join(written["answer"]["basis"].split()) in " ".join(answer.text.split())
    if tables["verdicts"]:
        # Of several, the first that the sentences name.
        verdict = next(
            row
            for row in tables["verdicts"]
            if re.search(rf"\b{row['version']}\b", written["answer"]["basis"])
        )
        dialogs = re.search(
            r"of ([\d,]+) dialogs? of (.*?) and ([\d,]+) of", answer.text
        )
        paired = re.search(r"([\d,]+) openings? (is|are) in both", answer.text)
        if verdict["decided_by"]:
            told = {verdict["version"]: dialogs[1], verdict["against"]: dialogs[3]}
            for version, number in told.items():
                counts = [
                    row["dialogs"]
                    for row in tables["agents"]
                    if row["system"] == version
                ]
                assert is_rounded(number, sum(counts))
            assert is_rounded(paired[1] if paired else "0", verdict["paired"])
        silent = re.search(r"show no difference for (\S+) %", answer.text)
        shares = [row["silent_share"] for row in tables["verdicts"]]
        shares = [share for share in shares if share is not None]
        assert bool(silent) == bool(shares)
        if silent:
            assert any(is_rounded(silent[1], share, 100) for share in shares)
        check_sizes(answer.select("li")[0].text, verdict, tables["differences"])
        rate = re.search(
            r"calls on public corpora, (\d+) .* (\d+) to (\d+), from", answer.text
        )
        assert bool(rate) == any(
            row["wrong_share"] is not None for row in tables["verdicts"]
        )
    issues = {(row["rule"], row["version"]): row for row in tables["issues"]}
    found = 0
    for line in answer.select("li"):
        issue = re.fullmatch(
            r".* \((?P<rule>.*?)\): (?P<share>\S+) % of the replies of (?P<version>.*), "
            r"(?P<before>\S+) % of those of (?P<first>.*) \(95 % interval of the change "
            r"(?P<low>\S+) to (?P<high>\S+) points\)\.",
            line.text,
        )
        if issue:
            row = issues[issue["rule"], issue["version"]]
            assert is_rounded(issue["share"], row["share"], 100)
            before = issues[issue["rule"], issue["first"]]["share"]
            assert is_rounded(issue["before"], before, 100)
            assert is_rounded(issue["low"], row["low"], 100)
            assert is_rounded(issue["high"], row["high"], 100)
            found += 1
        if line.text.startswith("People rate it"):
            row = next(r for r in tables["ratings"] if r["rating"] == "human_overall")
            mean, _, low, high = numbers(line.text)
            for text, value in ((mean, "mean"), (low, "low"), (high, "high")):
                assert is_rounded(text, row[value])
            found += 1
        if line.text.startswith("Commonest issue"):
            row = max(tables["issues"], key=lambda row: row["share"] or 0)
            count, share, *_ = numbers(line.text)
            assert is_rounded(count, row["replies"])
            assert is_rounded(share, row["share"], 100)
            found += 1
    assert found > 0
    image = answer.find("img")
    assert bool(image) == bool(tables["picture"])
    if image:
        told = image["alt"].split("intervals. ")[1].removesuffix(".").split("; ")
        for text, row in zip(told, tables["picture"], strict=True):
            values = numbers(text.rpartition(": ")[2])
            for value, name in zip(values, ("difference", "low", "high"), strict=True):
                assert is_rounded(value, row[name])


def test_pairs_and_dialogs_tell_the_values_of_the_json(both):
    shown, written = both
    pairs = shown.select("#pairs > li")
    assert len(pairs) == len(written["tables"]["pairs"])
    for item, row in zip(pairs, written["tables"]["pairs"], strict=True):
        before, after = item.select(".two .speaker")
        for label, name in ((before, "value_against"), (after, "value")):
            if row[name] is not None:
                assert is_rounded(numbers(label.text)[-1], row[name])
        assert row["reply"] in item.text and row["dialog"] in item.summary.text
    cases = shown.select("details.case")
    for case, row in zip(cases, written["tables"]["cases"], strict=True):
        score, turn = case.summary.small.text.split("; dialog ")
        assert is_rounded(numbers(score)[-1], row["value"])
        assert turn == f"{row['dialog']}, turn {row['turn']})"
