"""Every number that a person reads on the page is a number of its JSON, rounded."""

import json
import re

import pytest
from bs4 import BeautifulSoup
from test_report_page import NUMBER, two_versions

from lib import data, report
from lib.report import page


def with_and_without_ratings():
    rated = two_versions()
    rated.loc[rated.index[:9], "response"] = "Ok."
    rated.loc[rated.index[9:40:2], "response"] = "Ok."  # more of the new version
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
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(float(text) - scale * value) <= 0.5 * 10**-decimals + 1e-9


def test_each_cell_is_the_number_of_the_json_rounded(both):
    shown, written = both
    captions = {}
    for section in page.SECTIONS:
        for part in section["part"]:
            captions[part.get("caption")] = part.get("table")
            captions[f"{part.get('caption')}: all columns"] = part.get("table")
    checked = 0
    for table in shown.select("table.dataframe"):
        rows = written["tables"][captions[table.caption.text]]
        lines = table.tbody.select("tr")
        assert len(lines) == len(rows)
        # A cell shows one column, or two such as the ends of an interval.
        names = [head["data-columns"].split() for head in table.thead.select("th")]
        shown_names = {name for columns in names for name in columns}
        if table.caption.text.endswith("all columns"):
            filled = [
                name
                for name in rows[0]
                if any(row[name] not in (None, "", []) for row in rows)
            ]
            assert shown_names == set(filled)
        for line, row in zip(lines, rows, strict=True):
            for cell, columns in zip(line.select("td"), names, strict=True):
                if "number" not in cell.get("class", []):
                    continue
                values = [row[name] for name in columns if row[name] is not None]
                text = cell.text
                if text == "":  # a second number stands only beside a first one
                    assert row[columns[0]] is None
                    continue
                if text == "< .001":
                    assert 0 <= values[0] < 0.001
                else:
                    scale = 100 if text.endswith(("%", "points")) else 1
                    told = numbers(text)
                    for number, value in zip(told, values[: len(told)], strict=True):
                        assert is_rounded(number, value, scale), (text, row)
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
        if "detectable" not in size:
            values = [row["difference"], row["low"], row["high"]]
        for text, value in zip(shown, values, strict=True):
            assert is_rounded(text, value), (score, text, value)


def check_rates(told: str, verdict: dict, tables: dict) -> None:
    """How often such a call is wrong, and what more dialogs bring, are those of the tables."""
    rate = re.search(
        r"(\d+) of (\d+) such calls .* up to (\d+) of 100 may be wrong", told
    )
    called = [row for row in tables["verdicts"] if row["wrong_share"] is not None]
    assert bool(rate) == bool(called)
    if rate:
        assert any(
            is_rounded(rate[1], row["wrong_calls"])
            and is_rounded(rate[2], row["calls"])
            and is_rounded(rate[3], row["wrong_high"], 100)
            for row in called
        )
    narrowed = re.search(
        r"(\d+) more .* interval for (.*) from \u00b1(\S+) to about \u00b1(\S+);", told
    )
    rows = [
        row for row in tables["more_dialogs"] if row["version"] == verdict["version"]
    ]
    assert bool(narrowed) == bool(rows)
    if narrowed:
        row = next(r for r in rows if page.metric_title(r["score"]) == narrowed[2])
        assert is_rounded(narrowed[1], row["further_dialogs"])
        assert is_rounded(narrowed[3], row["half_width"])
        assert is_rounded(narrowed[4], row["expected_half_width"])
        halves = re.search(r"([\d,]+) more would halve it", told)
        assert any(
            is_rounded(halves[1], more["further_dialogs"])
            and more["expected_half_width"] == pytest.approx(row["half_width"] / 2)
            for more in rows
            if more["score"] == row["score"]
        )


def check_change(told: str, issues: dict) -> bool:
    """Whether a finding tells the change of an issue; its numbers are those of the table."""
    issue = re.match(
        r".* \((?P<rule>.*?)\)\. (?P<replies>\d+) of (?P<of>\d+) replies of "
        r"(?P<version>.*), (?P<before>\d+) of (?P<of_first>\d+) of (?P<first>.*): "
        r"(?P<change>\S+) points \(95 % interval (?P<low>\S+) to (?P<high>\S+)\)\.",
        told,
    )
    if not issue:
        return False
    row = issues[issue["rule"], issue["version"]]
    before = issues[issue["rule"], issue["first"]]
    assert is_rounded(issue["replies"], row["replies"])
    assert is_rounded(issue["of"], row["of"])
    assert is_rounded(issue["before"], before["replies"])
    assert is_rounded(issue["of_first"], before["of"])
    for name in ("change", "low", "high"):
        assert is_rounded(issue[name], row[name], 100)
    rated = re.search(r"are rated (\S+) (lower|higher)", told)
    assert bool(rated) == (row["rating_gap"] is not None)
    if rated:
        assert is_rounded(rated[1], abs(row["rating_gap"]))
    found = re.search(r"found only (\S+) of 100", told)
    assert bool(found) == (row["recall"] is not None)
    if found:
        assert is_rounded(found[1], row["recall"], 100)
    return True


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
        paired = re.search(r"([\d,]+) shared openings?:", answer.text)
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
        silent = re.search(r"reach no decision on (\S+) %", answer.text)
        shares = [row["silent_share"] for row in tables["verdicts"]]
        shares = [share for share in shares if share is not None]
        assert bool(silent) == bool(shares)
        if silent:
            assert any(is_rounded(silent[1], share, 100) for share in shares)
        check_sizes(answer.select("li")[0].text, verdict, tables["differences"])
        check_rates(answer.text, verdict, tables)
    issues = {(row["rule"], row["version"]): row for row in tables["issues"]}
    found = 0
    for line in answer.select("li"):
        found += check_change(line.text, issues)
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
    if "No issue became clearly more or less frequent." in answer.text:
        found += 1
        for row in tables["issues"]:
            assert not ((row["low"] or 0) > 0 or (row["high"] or 0) < 0), row
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
    for row in written["tables"]["pair_tally"]:
        tally = shown.select_one(".tally").text.partition(
            f"Replies of {row['version']} "
        )
        told = re.search(r"([\d,]+) lower, ([\d,]+) higher, ([\d,]+) equal", tally[2])
        for text, name in zip(told.groups(), ("lower", "higher", "equal"), strict=True):
            assert is_rounded(text, row[name])
    for item, row in zip(pairs, written["tables"]["pairs"], strict=True):
        before, after = item.select(".two .speaker")
        for label, name, dialog in (
            (before, "value_against", "dialog_against"),
            (after, "value", "dialog"),
        ):
            told, _, dialog_told = label.text.partition("), dialog ")
            if row[name] is not None:
                assert is_rounded(numbers(told)[-1], row[name])
            assert dialog_told == row[dialog]
        assert row["reply"] in item.text
    cases = shown.select("details.case")
    for case, row in zip(cases, written["tables"]["cases"], strict=True):
        evidence, turn = case.summary.small.text.split("; dialog ")
        scale = 100 if "%" in evidence else 1
        for number in numbers(evidence):
            assert is_rounded(number, row["value"], scale)
        assert turn == f"{row['dialog']}, turn {row['turn']})"
