"""The replication ledger: every printed number once, its status by the rule, its counts as told."""

import csv
import json
import math
import re
from collections import Counter

import pandas as pd
import pytest
from scipy import stats

from lib import ROOT, data
from lib.meta_evaluation.replication import ledger
from lib.meta_evaluation.replication.endex_table2 import endex_sets
from lib.meta_evaluation.replication.ledger import apply_rules, replication_status
from lib.meta_evaluation.replication.papers import averaged_runs
from lib.metrics.baselines import tokenize_words

PUBLISHED = ROOT / "data" / "published"
RESULTS = ROOT / "data" / "results"
RESULTS_PAGE = ROOT / "docs" / "results.md"
KEYS = ["paper", "table", "row", "column"]
GOOD = ("reproduced", "close")


def results(name: str, *keys: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv").set_index([*keys])


def rows(path) -> list[dict]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def every() -> pd.DataFrame:
    return ledger.replication_ledger()


EDGES = [
    (0.110, 0.1105, 3, 0, "reproduced"),  # a half, either way
    (0.111, 0.1105, 3, 0, "reproduced"),
    (0.0, -0.0004, 3, 0, "reproduced"),  # a printed zero has no sign
    (0.003, -0.002929, 3, 0, "differs"),  # another number has
    (-0.137, 0.137, 3, 0, "differs"),
    (0.110, 0.115, 3, 0, "close"),
    (0.414, 0.4639, 3, 0.05, "close"),  # within the printed spread
    (0.414, 0.4651, 3, 0.05, "differs"),
    (0.414, 0.418, 3, 0.001, "close"),  # a spread never narrows the tolerance
    (0.414, 0.418, 3, math.nan, "close"),
    (12, 11.92, 0, 0, "reproduced"),
    (0.414, math.nan, 3, 0.05, ""),
]


@pytest.mark.parametrize(("published", "ours", "digits", "spread", "expected"), EDGES)
def test_status_at_the_edges_of_its_rule(published, ours, digits, spread, expected):
    assert replication_status([published], [ours], [digits], [spread]).tolist() == [
        expected
    ]


def test_every_printed_number_has_one_row(every):
    """Counted from the files with plain Python, as they lie there."""
    expected = Counter()
    for row in rows(PUBLISHED / "human_centered_metrics.csv"):
        expected["Giorgi 2023", row["table"], float(row["adjusted_r2"])] += 1
    for row in rows(PUBLISHED / "comperdial.csv"):
        expected["Wakaki 2024", row["table"], float(row["value"])] += 1
        if row["table"] == "16" and "GPT-3.5" not in row["method"]:
            expected["Wakaki 2024", "6", float(row["value"])] += 1
    for name, paper, table, numbers in [
        ("comperdial_sizes", "Wakaki 2024", "8", ["turns", "dialogues", "systems"]),
        ("endex_table1", "Xu 2022", "1", ["mean", "std"]),
        ("endex_table2", "Xu 2022", "2", ["pearson", "spearman"]),
        (
            "endex_table3",
            "Xu 2022",
            "3",
            ["samples", "context_length", "response_length"],
        ),
        ("endex_table3", "Xu 2022", "3", ["agreement"]),
    ]:
        for row in rows(PUBLISHED / f"{name}.csv"):
            for column in numbers:
                if row[column]:
                    expected[paper, table, float(row[column])] += 1
    for row in rows(PUBLISHED / "other_figures.csv"):
        expected[row["paper"], row["table"], float(row["number"])] += 1
    counted = Counter(
        zip(every["paper"], every["table"], every["published"], strict=True)
    )
    assert counted == expected and not every.duplicated(KEYS).any()


def test_every_row_is_explained(every):
    assert set(every["status"]) <= set(ledger.STATUSES)
    missing = every["ours"].isna()
    assert (every["status"].isin(["not run", "not public"]) == missing).all()
    kinds = every.loc[missing, "reason"].str.partition(": ")[0]
    assert set(kinds) == {"corpus", "model", "scores", "definition"}
    unlike = every["status"] != "reproduced"
    assert (every.loc[unlike, "reason"] != "").all()
    assert every["notebook"].isin([f"{number:02d}" for number in range(1, 16)]).all()
    difference = (every["ours"] - every["published"])[~missing]
    assert (every.loc[~missing, "difference"] - difference).abs().max() < 1e-12


def test_the_first_matching_rule_counts():
    """The rules "not run" and "not public" are for what we lack, the others for what we have."""
    columns = [*KEYS, "model", "lexicon", "status", "reason", "notebook"]
    rules = [
        ("P", "", "", "A", "", "", "not public", "first", "01"),
        ("P", "", "", "A|B", "", "", "not run", "second", "02"),
        ("P", "", "", "", "another", "", "differs", "of another model", "03"),
        ("P", "", "", "", "", "another", "differs", "of another lexicon", "03"),
        ("P", "", "", "", "", "", "other data or model", "third", "03"),
    ]
    table = pd.DataFrame(
        {"column": ["A", "B", "AB", "A"], "ours": [None, None, None, 1.0]}
    )
    table = table.assign(
        paper="P",
        table="1",
        row="r",
        model="",
        lexicon="",
        status="",
        notebook=[None] * 3 + ["12"],
    )
    explained = apply_rules(table, pd.DataFrame(rules, columns=columns))
    assert explained["reason"].tolist() == ["first", "second", "", "third"]
    assert explained["status"].tolist() == [
        "not public",
        "not run",
        "",
        "other data or model",
    ]
    assert explained["notebook"][[0, 1, 3]].tolist() == ["01", "02", "12"]


def test_ours_are_the_numbers_of_the_results(every):
    """Cells looked up by hand, one for each table of ours that the ledger joins."""
    cells = every.set_index(KEYS)["ours"]
    giorgi, xu, wakaki = ledger.PAPERS
    alone = results("12_alone", "metric", "dataset")["ours"]
    bert = results("03_bertscore_against_published", "corpus", "method")
    r, n = bert.loc[("dstc10_persona_usr", "pearson"), ["ours", "n"]]
    endex = results("06_table2", "method", "dataset")
    usr = results("09_comperdial_table6", "method", "corpus", "coefficient")["ours"]
    sizes = results("01_overview", "corpus")
    red = results("05_table1", "dimension", "class")
    expected = {
        (giorgi, "16", "UP, BERTScore", "A"): 1 - (1 - r**2) * (n - 1) / (n - 2),
        (xu, "1", "reply", "engaging std"): red.loc[
            ("reply", "engaging"), "std, footnote"
        ],
        (xu, "2", "EnDex+NS", "GRADE spearman"): endex.loc[
            ("EnDex+NS", "GRADE"), "spearman"
        ],
        (xu, "3", "BETTER", "response length"): sizes.loc["better", "response words"],
        (wakaki, "6", "BERTScore", "usr topical pearson"): bert["ours"][
            "usr_topical", "pearson"
        ],
        (wakaki, "8", "FED, Newly Created", "dialogues"): sizes.loc[
            "fed_dialog", "items"
        ],
    }
    meteor = usr["METEOR", "usr_persona", "spearman"]
    for table in ("6", "16"):
        expected[wakaki, table, "METEOR", "usr persona spearman"] = meteor
    for metric in ("BARTScore", "Prism Context"):
        key = (giorgi, "18", f"ZP, {metric}", "language style matching P")
        expected[key] = alone["language_style_matching", "ZP"]
    for key, value in expected.items():
        assert cells[key] == pytest.approx(value, rel=1e-12), key


def ledger_with(folder, **tables: pd.DataFrame) -> pd.DataFrame:
    """The ledger of our committed tables, some of them replaced."""
    for file in RESULTS.glob("*.csv"):
        if file.stem not in tables:
            (folder / file.name).symlink_to(file)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return ledger.replication_ledger(folder)


def test_a_row_is_filled_by_the_model_that_the_paper_used_and_by_no_other(tmp_path):
    """A and P+A of notebook 12, once a run with models of the hub has written them."""
    beside = pd.read_csv(RESULTS / "12_comparisons.csv")
    beside = beside[beside["dataset"] == "TP"].drop_duplicates("psychological")
    A = {
        "bertscore_f1[roberta-large]": 0.01,
        "bertscore_f1[all-MiniLM-L6-v2]": 0.02,
        "bleurt[BLEURT-20]": 0.03,
        "bleurt[BLEURT-20-D3]": 0.04,
        "bartscore_f_mean[bart-large-cnn]": 0.05,
        "bartscore_f_harmonic[bart-large-cnn]": 0.06,
        "prism_style_reference[m2m100_418M]": 0.07,
        "prism_style_context[m2m100_418M]": 0.08,
        "prism_style_context[small100]": 0.09,
    }
    tables = []
    for model, value in A.items():
        tables.append(beside.assign(automatic=model, A=value))
    every = ledger_with(tmp_path, **{"12_comparisons": pd.concat(tables)})
    filled = every.query("column == 'A' and table == '15'").set_index("row")
    expected = {
        "TP, BERTScore": (0.01, "roberta-large"),
        "TP, BLEURT": (0.03, "BLEURT-20"),
        "TP, BARTScore": (0.05, "bart-large-cnn"),
        "TP, Prism ref.": (0.07, "m2m100_418M"),
        "TP, Prism Context": (0.08, "m2m100_418M"),
    }
    for row, (value, model) in expected.items():
        assert filled.loc[row, "ours"] == value
        assert filled.loc[row, "model"] == model
        assert "MiniLM" not in filled.loc[row, "reason"]
    assert filled.loc["TP, Prism ref.", "status"] == "other data or model"
    together = every.query("column == 'all P+A' and table == '15' and model != ''")
    assert len(together) == len(expected)
    assert set(together["status"]) == {"other data or model"}  # three metrics of five
    assert math.isnan(filled.loc["TP, Prism Unref.", "ours"])


def with_style(every: pd.DataFrame) -> pd.DataFrame:
    """Our numbers that style matching is part of."""
    numbers = every[(every["paper"] == "Giorgi 2023") & every["ours"].notna()]
    return numbers[numbers["column"].str.match("(language style matching|all) P")]


def beside_roberta() -> pd.DataFrame:
    beside = pd.read_csv(RESULTS / "12_comparisons.csv").query("dataset == 'TP'")
    beside = beside.drop_duplicates("psychological")
    return beside.assign(automatic="bertscore_f1[roberta-large]")


def test_style_matching_with_our_own_lists_is_other_data(every, tmp_path):
    """The lists stand in for LIWC2007, so no match of theirs counts, however close."""
    numbers = with_style(every)
    alone = numbers[numbers["column"] == "language style matching P"]
    assert len(alone) == 8 * 6
    assert set(alone["status"]) == {"other data or model"}
    together = numbers[numbers["column"] == "all P"]
    in_table_1 = together["table"] == "1"
    assert set(together.loc[in_table_1, "status"]) == {"other data or model"}
    assert together.loc[in_table_1, "reason"].str.contains("own lists").all()
    assert set(together.loc[~in_table_1, "status"]) == {"misprint"}

    filled = ledger_with(tmp_path, **{"12_comparisons": beside_roberta()})
    both = filled.query("model == 'roberta-large' and table == '15'")
    statuses = both.set_index("column")["status"]
    assert statuses["language style matching P+A"] == "other data or model"
    assert statuses["emotional entropy P+A"] == "differs"


def test_style_matching_with_liwc_is_compared(tmp_path):
    """Notebook 12 writes the lexicon of its run: with LIWC the numbers alone decide."""
    lexica = pd.read_csv(RESULTS / "12_lexica.csv")
    is_style = lexica["metric"] == "language_style_matching"
    assert lexica.loc[is_style, "lexicon"].tolist() == ["function_words"]
    lexica.loc[is_style, "lexicon"] = "LIWC2007_English"
    tables = {"12_lexica": lexica, "12_comparisons": beside_roberta()}
    numbers = with_style(ledger_with(tmp_path, **tables))
    assert not numbers["reason"].str.contains("own lists").any()
    alone = numbers[numbers["column"] == "language style matching P"]
    assert set(alone["status"]) == {"reproduced", "close", "differs"}
    together = numbers.query("table == '1' and column == 'all P'")
    assert set(together["status"]) == {"differs"}
    both = numbers.query("column == 'language style matching P+A'")
    assert both["status"].tolist() == ["differs"]


def test_correlations_by_a_model_fill_the_rows_of_wakaki(tmp_path):
    """Tables 6 and 16: BERTScore and BLEURT of notebook 03, USL-H of notebook 04."""
    models = {
        "03_embedding_correlations": "bertscore_f1[roberta-large]",
        "04_all_correlations": "usl_h[bert-base-uncased]",
    }
    tables = {}
    for name, metric in models.items():
        table = pd.read_csv(RESULTS / f"{name}.csv")
        by_model = table[table["metric"] == "bertscore_f1"].assign(
            metric=metric, value=0.5
        )
        tables[name] = pd.concat([table, by_model])
    filled = ledger_with(tmp_path, **tables)
    filled = filled[filled["table"].isin(["6", "16"]) & (filled["ours"] == 0.5)]
    cells = filled.groupby("row")["column"].agg(set).to_dict()
    on_topical = {"usr topical pearson", "usr topical spearman"}
    on_persona = {"usr persona pearson", "usr persona spearman"}
    assert cells == {"BERTScore": on_topical | on_persona, "USL-H": on_topical}
    statuses = filled.groupby("row")["status"].agg(set).to_dict()
    assert statuses == {"BERTScore": {"differs"}, "USL-H": {"other data or model"}}
    assert (filled["reason"] != "").all()


def test_prose_about_the_print_quotes_it(every):
    """Section 7 of notebook 15 names printed numbers, and gains of P+A over A."""
    wide = every[every["paper"] == "Giorgi 2023"].set_index(["table", "row", "column"])
    wide = wide["published"].unstack("column")
    gains = wide.filter(like="P+A").sub(wide["A"], axis=0).stack().dropna()
    printed = {f"{value:.3f}".lstrip("0") for value in [*every["published"], *gains]}
    cells = json.loads(
        (ROOT / "notebooks" / "15_replication_ledger.ipynb").read_text()
    )["cells"]
    prose = "\n".join(
        "".join(c["source"]) for c in cells if c["cell_type"] == "markdown"
    )
    section = prose.partition("## 7 ")[2].partition("## What")[0]
    quoted = re.findall(r"(?<!\d)\.\d{3}(?!\d)", section)
    assert len(quoted) > 25
    assert set(quoted) - printed == {".821", ".642"}  # in the paper's text only
    dstc10 = (
        gains["1"].filter(like="DSTC10", axis=0).filter(like="all", axis=0).round(3)
    )
    assert sorted(dstc10)[-2:] == [0.01, 0.015]
    assert gains["14"].max() == pytest.approx(0.002)
    assert (gains["2", "TBD, DialogRPT"] < 0).all()


def test_figures_that_the_page_of_results_tells():
    alone = results("12_alone", "metric").query("dataset in ['TP', 'UP', 'ZD', 'ZP']")
    errors = (
        alone.dropna().groupby("metric")["error"].agg(lambda error: error.abs().mean())
    )
    endex = results("06_table2", "method", "dataset")["pearson"]
    page = RESULTS_PAGE.read_text(encoding="utf-8")
    for error in (errors.min(), errors.max()):
        assert f"{error:.4f}".removeprefix("0") in page
    assert f"{endex['EnDex', 'BETTER']:.3f}".removeprefix("0") in page


def test_committed_ledger_and_page_of_results_tell_these_counts(every):
    """After a public run (make notebooks PROFILE=public ONLY=15), copy the lines to the page."""
    committed = pd.read_csv(
        RESULTS / "15_ledger.csv", dtype={"table": str, "notebook": str}
    )
    committed = committed.fillna({"reason": "", "model": ""})
    pd.testing.assert_frame_equal(committed, every, rtol=1e-5, check_dtype=False)
    count = Counter(
        (row["paper"], row["status"]) for row in rows(RESULTS / "15_ledger.csv")
    )
    page = RESULTS_PAGE.read_text(encoding="utf-8")
    once = Counter(distinct_keys(RESULTS / "15_ledger.csv").values())
    for paper in (*ledger.PAPERS, "all"):
        of_paper, numbers = Counter(), Counter()
        for (name, status), cells in count.items():
            of_paper[status] += cells * (paper in (name, "all"))
            numbers[status] += once[name, status] * (paper in (name, "all"))
        figures = [f"{of_paper.total():,} ({numbers.total():,})"]
        for status in ledger.STATUSES:
            cells = of_paper[status]
            figures.append(f"{cells} ({numbers[status]})" if cells else "0")
        assert f"| {paper} | {' | '.join(figures)} |" in page
    good = sum(count[paper, s] for paper in ledger.PAPERS for s in GOOD)
    numbers = sum(once[paper, s] for paper in ledger.PAPERS for s in GOOD)
    assert f"{good} cells are reproduced or close: {numbers} numbers" in page


def distinct_keys(path) -> dict[tuple, tuple]:
    """Paper and status of each number once, by plain Python: first copy of a repeated cell."""
    found = {}
    for row in rows(path):
        place = row["row"]
        if row["column"].endswith(" P"):
            place = place.split(",")[0]
        key = (row["paper"], place, row["column"])
        found.setdefault(key, (row["paper"], row["status"]))
    return found


def test_distinct_numbers_count_repeated_cells_once(every):
    once = ledger.distinct_numbers(every)
    expected = distinct_keys(RESULTS / "15_ledger.csv")
    assert len(once) == len(expected)
    assert Counter(zip(once["paper"], once["status"], strict=True)) == Counter(
        expected.values()
    )


def test_the_all_column_of_twelve_tables_is_a_misprint(every):
    """.009 in all of Tables 7 to 18, and .354 with a standard deviation of .98."""
    repeated = every.query("column == 'all P' and paper == 'Giorgi 2023'")
    repeated = repeated[repeated["table"].astype(int) >= 7]
    assert repeated["table"].nunique() == 12 and set(repeated["published"]) == {0.009}
    misprints = every[every["status"] == "misprint"]
    exchanged = misprints.query("paper == 'Wakaki 2024'").set_index("row")["published"]
    assert exchanged.to_dict() == {"USR, Persona Chat": 4, "USR, Topical Chat": 3}
    assert len(misprints) == repeated["ours"].notna().sum() + 1 + 2 == 51
    (impossible,) = misprints.query("paper == 'Xu 2022'")["published"]
    assert impossible > math.sqrt(0.354 * (1 - 0.354))


def test_what_is_not_public_is_not_called_not_run(every):
    """Giorgi et al. put five metrics together in Tables 7 to 18, and three in Table 1."""
    of_giorgi = every[every["paper"] == "Giorgi 2023"]
    together = of_giorgi[of_giorgi["column"] == "all P+A"]
    appendix = together["table"].astype(int) >= 7
    assert set(together.loc[appendix, "status"]) == {"not public"}
    assert appendix.sum() == 12 * 6
    on_the_pool = of_giorgi.query("table == '1' and column == 'all P'")
    on_the_pool = on_the_pool[on_the_pool["row"].str.startswith("DSTC10")]
    assert len(on_the_pool) == 6
    fits = results("12_unseen_comparisons", "dataset", "automatic", "psychological")
    ours = fits.loc[("DSTC10", "specificity", "all"), "P"]
    assert on_the_pool["ours"].tolist() == pytest.approx([ours] * 6)

    rade = every[every["row"].str.startswith("RADE")]
    assert set(rade.loc[rade["column"] == "turns", "status"]) == {"not run"}
    assert set(rade.loc[rade["column"] != "turns", "status"]) == {"not public"}


def test_a_reason_names_what_is_ours(every):
    style = every[every["column"] == "language style matching P"]
    style = style[style["ours"].notna()]
    assert style["reason"].str.contains("our own lists in place of LIWC2007").all()
    no_value = every[every["ours"].isna()]
    undefined = no_value[no_value["reason"].str.startswith("definition")]
    assert set(undefined["table"]) == {"6", "9", "10", "11"}  # nothing was measured


def test_readings_that_the_ledger_takes_are_told_with_the_earlier_ones(every):
    """`earlier` comes from notebooks 09 and 12, which compute it by themselves."""
    changed = every[every["earlier"].notna()].set_index(KEYS)
    rule = results("09_endex_table2", "method", "dataset", "coefficient")["ours"]
    alone = results("12_alone", "metric", "dataset")["ours"]
    unseen = results("12_unseen", "metric", "dataset")["ours"]
    matching = pd.concat([alone, unseen]).loc["emotion_matching"]
    assert len(changed) == 8 + 8 * 6
    for (_, _, row, column), earlier in changed["earlier"].items():
        if row == "Question":
            expected = rule["Question", *column.split()]
        else:
            expected = matching[row.split(",")[0]]
        assert earlier == pytest.approx(expected, abs=1e-5), (row, column)
    readings = results("15_readings", "metric", "reading", "dataset")["ours"]
    chosen = readings["emotion_matching", "prompt 2, relative"]
    errors = results("12_readings", "metric", "reading")
    same = errors.loc[("emotion_matching", "prompt 2, relative"), ["TP", "ZP"]]
    assert chosen[["TP", "ZP"]].tolist() == pytest.approx(same.tolist(), abs=1e-5)


@pytest.mark.public
@pytest.mark.parametrize("dataset", ["BETTER", "PREDENG-600", "FED-ENG", "GRADE"])
def test_question_by_tokens_from_scratch(every, dataset):
    turns, human = endex_sets()[dataset]
    words = [
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "how",
        "?",
    ]
    asks = []
    for reply in turns["response"]:
        asks.append(any(f" {word} " in f" {reply.lower()} " for word in words))
    cells = every.set_index(["row", "column"])["ours"]
    for name, method in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        ours = cells["Question", f"{dataset} {name}"]
        assert ours == pytest.approx(method(asks, human).statistic, abs=1e-5)


def test_a_number_with_neither_ours_nor_a_reason_is_an_error_that_names_it():
    rules = ledger.published_table("ledger_reasons", dtype=str).fillna("")
    printed = ledger.printed_numbers()
    ours = ledger.our_numbers(RESULTS)
    assert len(ledger.join_ledger(printed, ours, rules)) == len(printed)
    with pytest.raises(ValueError, match="no reason for"):
        ledger.join_ledger(printed, ours, rules.iloc[:-1])


def spearman(frame: pd.DataFrame, score: str, human: str) -> list[float]:
    """Over all rows, and over those that a machine wrote."""
    machines = frame[frame["written_by"] == "machine"]
    values = []
    for rows in (frame.dropna(subset=score), machines.dropna(subset=score)):
        values.append(stats.spearmanr(rows[score], rows[human]).statistic)
    return values


@pytest.mark.public
def test_page_of_results_tells_who_wrote_it():
    """Its figures for all replies and for machines only, by scipy from scores that are kept."""
    page = " ".join(RESULTS_PAGE.read_text(encoding="utf-8").split())
    usr = data.load("usr_topical").turns
    usr["words"] = [len(tokenize_words(text)) for text in usr["response"]]
    words = spearman(usr, "words", "human_overall")
    unieval = data.load("unieval_topical").turns
    model = spearman(unieval, "score_unieval_overall", "human_overall")

    engagement = data.load("predeng600").turns
    kept = pd.read_csv(RESULTS / "04_likelihood_scores.csv", dtype={"dialog": str})
    likelihood = kept[kept["corpus"] == "predeng600"]
    engagement = engagement.astype({"dialog": str})
    engagement = engagement.merge(likelihood, on=data.KEY, validate="1:1")
    log_likelihood = spearman(engagement, "log_likelihood[smollm2]", "human_engaging")

    judged = pd.read_csv(RESULTS / "08_judge_scores.csv")
    judged = judged[(judged["judge"] == "qwen") & (judged["corpus"] == "usr_topical")]
    judge = usr.merge(judged[[*data.KEY, "weighted"]], on=data.KEY, validate="1:1")
    judge = spearman(judge, "weighted", "human_overall")

    told = [f"{value:.2f}".removeprefix("0") for value in (*words, *model)]
    told += [f"{value:.2f}".removeprefix("0") for value in (*log_likelihood, *judge)]
    sentences = (
        "*ρ* = {} over all replies and {} over machines' (95 % interval -.10 to .19). "
        "UniEval has {} and {}.",
        "*ρ* = {} over all replies and {} over machines'; *specificity*",
        "*ρ* = {} (08), and {} over machines' replies.",
    )
    assert sentences[0].format(*told[:4]) in page
    assert sentences[1].format(*told[4:6]) in page
    assert sentences[2].format(*told[6:]) in page

    dialogs = data.load("gpt4_fed").dialogs
    machines = dialogs[dialogs["written_by"] == "machine"]
    runs = machines.filter(like="score_gpt4_overall_run")
    curve = averaged_runs(runs, machines["human_overall"]).set_index("runs")
    one, three, five = (f"{curve['spearman'][k]:.3f}"[1:] for k in (1, 3, 5))
    assert f"{len(machines)} dialogs of machines {one}, {three} and {five}" in page
