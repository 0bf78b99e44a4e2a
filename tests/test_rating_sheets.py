"""Sheets to rate: drawn at random, blinded, read back whole or not at all, and what they say."""

import csv
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import openpyxl
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

from lib.analysis.agreement import krippendorff_alpha
from lib.analysis.prediction_powered import powered_mean
from lib.data import DataError
from lib.report import rating_sheets, rating_study
from lib.report.__main__ import main
from lib.report.result import build_report

OFFICE = shutil.which("soffice")
KEY = rating_sheets.KEY


def dialogs_of(n=60, paired=False, seed=0):
    """Two versions, `n` dialogs of two replies each; texts that spreadsheets like to change."""
    rng = np.random.default_rng(seed)
    rows = []
    for version in ("old bot", "new bot"):
        for number in range(n):
            opening = (
                f"=SUM({number}) 😀" if paired else f"-{number} of {version[:3]}, 1/2"
            )
            reply = " ".join(["word"] * int(rng.integers(1, 9))) + '; "1,5"\tok'
            context = [opening]
            for turn in (1, 3):
                rows.append(
                    {
                        "system": version,
                        "agent": "agent",
                        "dialog": f"{number}",
                        "turn": turn,
                        "context": list(context),
                        "response": reply,
                        "reference": [],
                        "fact": [],
                    }
                )
                context += [reply, "And\nthen?"]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Turns, key and sheets of 30 dialogs a version, and the workbook with 3 raters' ratings."""
    folder = tmp_path_factory.mktemp("sheets")
    turns = dialogs_of()
    summary = rating_sheets.write_rating_sheets(
        turns, folder / "mine_rate30", per_version=30, file="mine.jsonl"
    )
    key = rating_sheets.read_sheet_key(folder / "mine_rate30_key.json", turns)
    book = openpyxl.load_workbook(folder / "mine_rate30.xlsx")
    rng = np.random.default_rng(1)
    for row in range(3, book.active.max_row + 1):
        quality = rng.normal()
        for column in (2, 3, 4):
            rating = np.clip(round(3 + quality + rng.normal()), 1, 5)
            book.active.cell(row, column).value = int(rating)
    book.save(folder / "filled.xlsx")
    return {"folder": folder, "turns": turns, "key": key, "summary": summary}


def read(study, name):
    return rating_sheets.read_rating_sheets(
        [study["folder"] / name], study["key"], study["turns"]
    )


def test_a_sheet_tells_nothing_of_versions_and_scores_and_has_each_dialog_once(study):
    folder = study["folder"]
    text = (folder / "mine_rate30.csv").read_text("utf-8-sig")
    for word in ("old bot", "new bot", "agent", "mine"):
        assert word not in text
    with (folder / "mine_rate30.csv").open(encoding="utf-8-sig", newline="") as file:
        instruction, header, *rows = csv.reader(file)
    assert "1 is very bad and 5 is very good" in instruction[0]
    assert header == ["id", "rater 1", "rater 2", "rater 3", "dialog"]
    assert len({row[0] for row in rows}) == 60 and all(
        row[1:4] == [""] * 3 for row in rows
    )
    versions = [study["key"].dialogs[row[0]][0] for row in rows]
    runs = 1 + sum(a != b for a, b in zip(versions, versions[1:], strict=False))
    assert 20 < runs < 42  # shuffled: 31 are expected, with a standard deviation of 3.8
    assert study["summary"]["drawn"].tolist() == [30, 30]
    book = openpyxl.load_workbook(folder / "mine_rate30.xlsx")
    cells = [
        [cell.value or "" for cell in row] for row in book.active.iter_rows(min_row=2)
    ]
    assert cells == [header, *rows]
    assert not any(cell.data_type == "f" for row in book.active for cell in row)


def test_a_larger_draw_holds_the_smaller_one_and_keeps_its_ratings(study, tmp_path):
    ratings = read(study, "filled.xlsx")
    turns = study["turns"]
    rating_sheets.write_rating_sheets(
        turns, tmp_path / "more", per_version=40, file="mine", ratings=ratings
    )
    key = rating_sheets.read_sheet_key(tmp_path / "more_key.json", turns)
    assert set(study["key"].dialogs) < set(key.dialogs) and len(key.dialogs) == 80
    for name in ("more.csv", "more.xlsx"):
        again = rating_sheets.read_rating_sheets([tmp_path / name], key, turns)
        pd.testing.assert_frame_equal(
            again.sort_values(list(again), ignore_index=True),
            ratings.sort_values(list(again), ignore_index=True),
        )


def test_pairs_stay_pairs_and_versions_without_pairs_are_drawn_evenly():
    turns = dialogs_of(paired=True)
    order = rating_sheets.draw_order(turns)
    drawn = order.groupby("system").head(20)
    of_version = drawn.groupby("system")["unit"].agg(set)
    assert order["paired"].all() and of_version.iloc[0] == of_version.iloc[1]
    # Without pairs each dialog is drawn as often as any other.
    turns = dialogs_of(n=20)
    counts = pd.Series(0, pd.MultiIndex.from_frame(turns[KEY].drop_duplicates()))
    for seed in range(400):
        head = rating_sheets.draw_order(turns, seed).groupby("system").head(5)
        counts[pd.MultiIndex.from_frame(head[KEY])] += 1
    assert stats.chisquare(counts).pvalue > 0.01


def test_a_sheet_that_exists_is_never_overwritten(study):
    with pytest.raises(DataError, match="may have ratings"):
        rating_sheets.write_rating_sheets(
            study["turns"], study["folder"] / "mine_rate30", per_version=5, file="mine"
        )


def test_a_long_dialog_takes_several_cells_that_a_spreadsheet_can_show(tmp_path):
    turns = dialogs_of(n=5)
    turns.loc[3, "response"] = "=" + "x" * 40_000
    rating_sheets.write_rating_sheets(turns, tmp_path / "s", per_version=5, file="f")
    key = rating_sheets.read_sheet_key(tmp_path / "s_key.json", turns)
    book = openpyxl.load_workbook(tmp_path / "s.xlsx")
    cells = [cell.value for row in book.active for cell in row if cell.value]
    assert max(map(len, cells)) < 32_767  # Excel's limit
    assert sum(cell.count("x") for cell in cells if "xxx" in cell) == 40_000
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    book.active["B3"] = 4
    book.save(tmp_path / "back.xlsx")
    back = rating_sheets.read_rating_sheets([tmp_path / "back.xlsx"], key, turns)
    assert back["rating"].tolist() == [4.0]


def cell(row, column, value):
    def change(sheet):
        sheet.cell(row, column).value = value

    return change


def swap_texts(sheet):
    first, second = sheet["E8"].value, sheet["E9"].value
    sheet["E8"], sheet["E9"] = second, first


def repeat_a_row(sheet):
    for column in range(1, 6):
        sheet.cell(9, column).value = sheet.cell(8, column).value


def other_ids(sheet):
    for row in range(3, sheet.max_row + 1):
        sheet.cell(row, 1).value = f"other{row}"


def shift_by_a_blank_row(sheet):
    sheet.insert_rows(5)
    sheet["C9"] = 6


FAULTS = [
    (cell(7, 3, 9), 7, "rater 2", "rating 9 is off the scale 1 to 5"),
    (cell(7, 3, 0.5), 7, "rater 2", "off the scale"),
    (cell(7, 3, "good"), 7, "rater 2", "'good', not a number"),
    (cell(9, 1, "zzzzzzzz"), 9, "id", "not in the key"),
    (cell(12, 5, "User: Hi"), 12, "dialog", "not what was written"),
    (swap_texts, 8, "dialog", "not what was written"),
    (repeat_a_row, 9, "id", "stands in row 8 as well"),
    (cell(5, 6, 4), 5, "", "a column that is not known"),
    (other_ids, 3, "id", "of another file"),
    (shift_by_a_blank_row, 9, "rater 2", "off the scale"),
    (lambda sheet: sheet.delete_cols(5), None, "dialog", "missing"),
    (lambda sheet: sheet.delete_cols(1), None, "id", "missing"),
    (lambda sheet: sheet.delete_cols(2, 3), None, None, "no column of a rater"),
]


@pytest.mark.parametrize("change, row, column, problem", FAULTS)
def test_a_fault_is_named_with_row_and_column_as_the_spreadsheet_has_them(
    study, change, row, column, problem
):
    book = openpyxl.load_workbook(study["folder"] / "filled.xlsx")
    change(book.active)
    book.save(study["folder"] / "bad.xlsx")
    with pytest.raises(DataError, match=problem) as raised:
        read(study, "bad.xlsx")
    assert (raised.value.row, raised.value.column) == (row, column)
    assert raised.value.fix


def test_one_row_per_rater_says_the_same_as_one_column_per_rater(study):
    wide = read(study, "filled.xlsx")
    ids = {tuple(names): sheet_id for sheet_id, names in study["key"].dialogs.items()}
    rows = wide.assign(id=[ids[tuple(names)] for names in wide[KEY].to_numpy()])
    rows = rows[["id", "rater", "rating"]].sample(frac=1, random_state=0)
    rows.to_csv(study["folder"] / "long.csv", index=False)
    long = read(study, "long.csv")
    pd.testing.assert_frame_equal(
        long.sort_values(list(long), ignore_index=True),
        wide.sort_values(list(wide), ignore_index=True),
    )
    twice = pd.concat([rows, rows.iloc[[0]]])
    twice.to_csv(study["folder"] / "twice.csv", index=False)
    with pytest.raises(DataError, match="row 2 as well of rater"):
        read(study, "twice.csv")


def test_sheets_of_several_raters_are_read_together(study):
    paths = [study["folder"] / "ann.xlsx", study["folder"] / "ben.xlsx"]
    for path in paths:
        shutil.copy(study["folder"] / "filled.xlsx", path)
    ratings = rating_sheets.read_rating_sheets(paths, study["key"], study["turns"])
    assert len(ratings) == 360 and ratings["rater"].nunique() == 6


def test_the_key_must_be_there_and_of_these_dialogs(study, tmp_path):
    with pytest.raises(DataError, match="key of the sheet is missing"):
        rating_sheets.read_sheet_key(tmp_path / "none.json", study["turns"])
    path = study["folder"] / "mine_rate30_key.json"
    with pytest.raises(DataError, match="key of other dialogs"):
        rating_sheets.read_sheet_key(path, study["turns"].iloc[1:])
    (tmp_path / "no.json").write_text('{"a": 1}')
    with pytest.raises(DataError, match="no key"):
        rating_sheets.read_sheet_key(tmp_path / "no.json", study["turns"])


@pytest.mark.skipif(OFFICE is None, reason="LibreOffice is not installed")
@pytest.mark.parametrize(
    "target", ["xlsx", "ods", "csv:Text - txt - csv (StarCalc):59,34,76,1"]
)
def test_a_sheet_saved_by_libreoffice_is_read_the_same(study, tmp_path, target):
    source = study["folder"] / "filled.xlsx"
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    command = [OFFICE, profile, "--headless", "--convert-to", target]
    subprocess.run([*command, "--outdir", tmp_path, source], check=True, timeout=120)
    path = tmp_path / f"filled.{target.partition(':')[0]}"
    saved = rating_sheets.read_rating_sheets([path], study["key"], study["turns"])
    pd.testing.assert_frame_equal(saved, read(study, "filled.xlsx"))


def scores_of(turns):
    """The number of words, which follows nobody, and a judge on the scale of the raters."""
    words = turns["response"].str.split().str.len().astype(float)
    return pd.DataFrame({"length": words, "judge": 1 + words.rank(pct=True) * 4})


def result_of(study, ratings, predictor="length", named="", **changes):
    turns = study["turns"]
    order = rating_sheets.draw_order(turns)
    rated = rating_study.ratings_of_sheet(ratings, study["key"], order)
    return rating_study.study_ratings(
        turns,
        scores_of(turns),
        replace(rated, predictor=named, **changes),
        order,
        predictor=predictor,
        judges=["judge"],
    )


def test_means_agreement_and_difference_are_those_of_the_library(study):
    ratings = read(study, "filled.xlsx")
    # Ratings that follow the number of words, so that a correction is used.
    turns = study["turns"].assign(words=scores_of(study["turns"])["length"])
    words = turns.groupby(KEY)["words"].mean()
    ratings["rating"] = np.clip(
        ratings["rating"] / 2 + ratings.set_index(KEY).index.map(words) / 3, 1, 5
    )
    result = result_of(study, ratings)
    of_dialog = ratings.groupby(KEY)["rating"].mean()
    old, new = of_dialog["old bot"], of_dialog["new bot"]
    table = result.estimates.set_index(["quantity", "version"])

    low, high = stats.t.interval(0.95, len(old) - 1, old.mean(), stats.sem(old))
    row = table.loc["mean", "old bot"]
    assert row[["value", "low", "high"]].tolist() == approx([old.mean(), low, high])
    rated = words.loc[["old bot"]].index.isin(of_dialog.index)
    of_version = words.loc[["old bot"]]
    expected = powered_mean(
        of_dialog.reindex(of_version[rated].index),
        of_version[rated],
        of_version[~rated],
    )
    assert not expected.reason
    interval = [expected.powered.value, *expected.powered.interval()]
    assert row[["powered", "powered_low", "powered_high"]].tolist() == approx(interval)
    assert (row["rated"], row["others"]) == (30, 30)

    welch = stats.ttest_ind(new, old, equal_var=False)
    row = table.loc["difference", "new bot"]
    assert row["p"] == approx(welch.pvalue)
    interval = welch.confidence_interval(0.95)
    assert [row["low"], row["high"]] == approx([interval.low, interval.high])
    verdict_row = result.differences.iloc[0]
    assert verdict_row["p_adjusted"] == approx(welch.pvalue)
    assert verdict_row["difference"] == approx(new.mean() - old.mean())

    numbers = ratings.groupby(KEY).ngroup()
    single = ratings.assign(
        item=numbers, annotator=ratings["rater"], dimension="rating"
    )
    assert result.agreement["alpha"].item() == approx(
        krippendorff_alpha(single, "rating", resamples=10).value
    )


def test_paired_versions_are_compared_by_a_paired_t_test():
    turns = dialogs_of(paired=True)
    order = rating_sheets.draw_order(turns)
    drawn = order.groupby("system").head(25)
    rng = np.random.default_rng(0)
    by_unit = pd.Series(rng.normal(3, 1, 60), range(60))
    ratings = drawn[KEY].assign(
        rater="rater 1",
        rating=drawn["unit"].map(by_unit).to_numpy() + rng.normal(0, 0.3, len(drawn)),
    )
    dialogs = {
        rating_sheets.blind_id(list(names)): list(names)
        for names in drawn[KEY].to_numpy()
    }
    key = rating_sheets.SheetKey(file="f", texts="", dialogs=dialogs)
    rated = rating_study.ratings_of_sheet(ratings, key, order)
    result = rating_study.study_ratings(
        turns, scores_of(turns), rated, order, predictor="length"
    )
    wide = drawn.assign(rating=ratings["rating"]).pivot(
        index="unit", columns="system", values="rating"
    )
    row = result.estimates.iloc[-1]
    expected = stats.ttest_rel(wide["new bot"], wide["old bot"])
    assert row["p"] == approx(expected.pvalue)
    assert result.differences["paired"].item() == 25


def test_too_few_rated_dialogs_or_no_score_leave_the_classical_interval(study):
    ratings = read(study, "filled.xlsx")
    names = ratings[KEY].drop_duplicates().groupby("system").head(19)
    few = result_of(study, ratings.merge(names), drawn_at_random=True).estimates
    assert few["reason"].str.contains("19 rated dialogs, fewer than 20").all()
    assert few["powered"].isna().all() and few["low"].notna().all()
    none = result_of(study, ratings, predictor="").estimates
    assert none["reason"].str.contains("no metric that agrees").all()
    flat = result_of(study, ratings.assign(rating=3.0)).estimates
    assert flat["low"].isna().all() and flat["reason"].str.contains("equal").all()
    with pytest.raises(DataError, match="was named with RATE"):
        result_of(study, ratings, named="cpds")


def test_twenty_more_dialogs_narrow_the_interval_by_the_root_of_their_number(study):
    table = result_of(study, read(study, "filled.xlsx")).further
    row = table.iloc[0]
    t = [stats.t.ppf(0.975, n - 1) / np.sqrt(n) for n in (30, 50)]
    assert row["expected_half_width"] / row["half_width"] == approx(t[1] / t[0])
    assert row["further"] == 20


@pytest.mark.parametrize("chosen", ["worst", "newest", "longest"])
def test_rated_dialogs_that_are_no_random_draw_are_asked_about_and_not_used(
    study, chosen
):
    turns = study["turns"].copy()
    turns["human_overall"] = np.nan
    dialogs = turns.groupby(KEY, sort=False)["response"].first()
    words = dialogs.str.split().str.len()
    score = {
        "worst": words,
        "newest": -pd.Series(dialogs.groupby("system").cumcount(), dialogs.index),
        "longest": words,
    }[chosen]
    if chosen == "longest":
        shorter = turns.set_index(KEY).index.isin(words[words < words.median()].index)
        turns = turns[~(shorter & (turns["turn"] == 3))]
        score = -words
    rated = score.sort_values(kind="stable").groupby("system").head(25).index
    turns.loc[turns.set_index(KEY).index.isin(rated), "human_overall"] = 3.0
    order = rating_sheets.draw_order(turns)
    own = rating_study.ratings_of_file(turns)
    asked = rating_study.study_ratings(
        turns, scores_of(turns), own, order, predictor="length"
    )
    words_of_finding = {
        "worst": "lower in length",
        "newest": "newest",
        "longest": "longer",
    }
    assert (
        words_of_finding[chosen] in asked.question and "DRAWN=random" in asked.question
    )
    assert asked.estimates.empty and asked.differences.empty


def test_ratings_of_the_file_are_used_where_the_user_says_that_they_are_a_random_draw(
    study,
):
    turns = study["turns"].copy()
    order = rating_sheets.draw_order(turns)
    drawn = pd.MultiIndex.from_frame(order.groupby("system").head(25)[KEY])
    is_drawn = turns.set_index(KEY).index.isin(drawn)
    rng = np.random.default_rng(0)
    turns["human_overall"] = np.where(is_drawn, rng.integers(1, 6, len(turns)), np.nan)
    own = rating_study.ratings_of_file(turns)
    options = {"predictor": "length"}
    asked = rating_study.study_ratings(turns, scores_of(turns), own, order, **options)
    assert "50 of 120 dialogs have ratings" in asked.question and asked.estimates.empty
    own = replace(own, drawn_at_random=True)
    used = rating_study.study_ratings(turns, scores_of(turns), own, order, **options)
    assert used.estimates["rated"].tolist() == [25, 25, 25]
    assert used.differences.empty  # the file's ratings decide as they do without a draw


def test_a_judge_is_tried_against_three_raters_of_thirty_dialogs(study):
    ratings = read(study, "filled.xlsx")
    table = result_of(study, ratings).annotator_test
    assert table["judge"].unique().tolist() == ["judge"] and table["raters"].eq(3).all()
    assert table["cost"].tolist() == [0.2, 0.15, 0.1]
    assert table["winning_rate"].is_monotonic_decreasing
    two = ratings[ratings["rater"] != "rater 1"]
    assert result_of(study, two).annotator_test.empty
    copy = ratings.groupby(KEY)["rating"].transform("median")
    assert len(result_of(study, ratings.assign(rating=copy)).annotator_test) == 3


def test_a_sheet_decides_the_verdict_and_the_file_own_ratings_stay_in_the_table(study):
    turns = study["turns"].assign(human_overall=3.0)
    turns.loc[turns["system"] == "new bot", "human_overall"] = 4.0
    turns.loc[0, "human_overall"] = 3.5
    ratings = read(study, "filled.xlsx")
    ratings["rating"] -= (ratings["system"] == "new bot") * 0.9
    order = rating_sheets.draw_order(turns)
    rated = rating_study.ratings_of_sheet(ratings, study["key"], order)
    report = build_report(turns, embeddings=False, rated=rated)
    (verdict,) = report.verdicts
    assert (verdict.verdict, verdict.scores) == ("worse", [rating_study.RATING])
    kinds = report.differences.set_index("score")["kind"]
    assert kinds["human_overall"] == "rating of the file"
    assert kinds[rating_study.RATING] == "rating"
    assert len(report.rated_estimates) == 3 and len(report.rater_agreement) == 1


def test_the_commands_write_a_sheet_and_read_it_back(tmp_path, capsys):
    log = tmp_path / "chats.jsonl"
    rows = []
    for number in range(30):
        messages = [
            {"role": "user", "content": f"What is {number}?"},
            {"role": "assistant", "content": f"It is {number}, I think."},
        ]
        rows.append(json.dumps({"id": f"{number}", "messages": messages}))
    log.write_text("\n".join(rows))
    assert main([str(log), "--rate", "10", "--predictor", "lenght"]) == 2
    assert "did you mean 'length'" in capsys.readouterr().err
    assert main([str(log), "--rate", "10", "--scale", "5"]) == 2
    assert main([str(log), "--rate", "10", "--scale", "0-10"]) == 0
    printed = capsys.readouterr().out
    assert "10 of 30 dialogs" in printed and "RATINGS=" in printed
    sheet = tmp_path / "chats_rate10.csv"
    assert main([str(log), "--rate", "10"]) == 2
    page = tmp_path / "page.html"
    arguments = [str(log), "--ratings", str(sheet), "--out", str(page)]
    assert main(arguments) == 2 and not page.exists()
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file))
    for number, line in enumerate(lines[2:]):
        line[1] = "11" if number == 4 else "7"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    capsys.readouterr()
    assert main(arguments) == 2 and not page.exists()
    message = capsys.readouterr().err
    assert "row 7, column 'rater 1'" in message and "0 to 10" in message


def one_study(seed, paired):
    """The p-values of a study of two versions that are equally good, by both tests."""
    rng = np.random.default_rng(seed)
    n = 200
    turns = pd.DataFrame(
        {"system": ["A"] * n + ["B"] * n, "agent": "x", "turn": 1, "response": "r"}
    )
    number = [f"d{k}" for k in range(n)]
    turns["dialog"] = number * 2
    other = number if paired else [f"other {k}" for k in number]
    turns["context"] = [[opening] for opening in [*number, *other]]
    of_opening = rng.normal(size=n) if paired else np.zeros(n)
    quality = 0.6 * np.tile(of_opening, 2) + rng.normal(size=2 * n)
    noise = rng.normal(size=2 * n) * np.sqrt(1 / 0.7**2 - 1)  # a correlation of .7
    scores = pd.DataFrame({"judge": quality + noise})
    turns["rating"] = np.clip(np.round(3 + quality), 1, 5)
    order = rating_sheets.draw_order(turns, seed)
    drawn = order.groupby("system").head(40)
    dialogs = {
        rating_sheets.blind_id(names): names for names in drawn[KEY].to_numpy().tolist()
    }
    key = rating_sheets.SheetKey(file="f", texts="", dialogs=dialogs)
    ratings = drawn[KEY].merge(turns[[*KEY, "rating"]]).assign(rater="rater 1")
    rated = rating_study.ratings_of_sheet(ratings, key, order)
    study = rating_study.study_ratings(turns, scores, rated, order, predictor="judge")
    return study.estimates.iloc[-1][["p", "powered_p"]]


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True])
def test_equal_versions_are_called_different_in_at_most_28_of_400_studies(paired):
    p = pd.DataFrame([one_study(seed, paired) for seed in range(400)]).astype(float)
    assert p["powered_p"].notna().mean() > 0.95
    assert (p <= 0.05).sum().max() <= 28
