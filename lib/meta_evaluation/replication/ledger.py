"""The ledger: the numbers in the three papers' tables, ours beside each, and its status."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT
from lib.data.storage import read_json
from lib.meta_evaluation.replication.papers import PAPER_SETS, published_table
from lib.models import DEFAULT_ENCODER

#: The first three are decided by the figures, the others by a judgement that needs a reason.
STATUSES = (
    "reproduced",
    "close",
    "differs",
    "misprint",
    "other data or model",
    "not run",
    "not public",
)
#: Statuses of the numbers that ours is missing for.
WITHOUT_OURS = ("not run", "not public")
PAPERS = ("Giorgi 2023", "Xu 2022", "Wakaki 2024")
GIORGI = PAPERS[0]
XU = PAPERS[1]
WAKAKI = PAPERS[2]
KEYS = ["paper", "table", "row", "column"]
#: What the pattern of a rule can be about: also the model that ran for ours, and the lexicon of
#: style matching in the run of notebook 12 that computed ours.
RULE_KEYS = [*KEYS, "model", "lexicon"]

#: How to read the printed tables (files of `data/published`, "printed") and those tables of
#: `data/results` that keep the papers' names ("own"): `same` are columns that all rows share,
#: `row` and `column` the columns that make up a printed name, `values` those with numbers.
TABLES = read_json(ROOT / "data" / "published" / "ledger_tables.json")

#: Metrics with the model of their authors, or the nearest public one, as MODELS names them, and
#: the row of the papers that each fills.
ROWS_BY_MODEL = {
    "bertscore_f1[roberta-large]": "BERTScore",
    "bleurt[BLEURT-20]": "BLEURT",
    "bartscore_f_mean[bart-large-cnn]": "BARTScore",
    "prism_style_reference[m2m100_418M]": "Prism ref.",
    "prism_style_response_given_context[m2m100_418M]": "Prism Unref.",
    "prism_style_context[m2m100_418M]": "Prism Context",
    "usl_h[bert-base-uncased]": "USL-H",
}

#: Our reading of two sentences that the papers leave open, as `15_readings` names it, and the one
#: that the ledger took before. Both were chosen by the printed numbers.
READINGS = {
    "question": "token ? or question word",
    "emotion_matching": "prompt 2, relative",
}
EARLIER_READINGS = {
    "question": "question mark",
    "emotion_matching": "prompt all, relative",
}


def replication_status(published, ours, digits, spread=0.0) -> np.ndarray:
    """Status of printed numbers: reproduced, close or differs; "" where ours is NaN.

    Reproduced: ours rounds to the printed digits (a half may go either way, and a printed zero has
    no sign). Close: within .005, or within the printed spread where that is larger.

    >>> replication_status([0.11, 0.11, 0.11, 0.0], [0.1104, 0.1149, 0.2, -0.0004], 3).tolist()
    ['reproduced', 'close', 'differs', 'reproduced']
    """
    difference = np.abs(np.asarray(ours, float) - np.asarray(published, float))
    half_digit = 0.5 * 10.0 ** -np.asarray(digits, float)
    tolerance = np.fmax(0.005, spread)
    conditions = [
        np.isnan(difference),
        difference <= half_digit + 1e-9,
        difference <= tolerance + 1e-9,
    ]
    return np.select(conditions, ["", "reproduced", "close"], "differs")


def replication_ledger(results: Path = ROOT / "data" / "results") -> pd.DataFrame:
    """Join every printed number with ours, and decide its status.

    Ours comes from the tables in `results`, the reasons from `data/published/ledger_reasons.csv`.

    Returns:
        paper, table, row, column, published, ours, difference (ours - published), status, reason,
        notebook, model (that ran for ours, where the number is of a metric with a choice of
        models, else ""), and `earlier`: ours by `EARLIER_READINGS`, NaN where `READINGS` plays no
        part.

    Raises:
        ValueError: a number has neither ours nor a reason; names the first.

    >>> replication_ledger()["status"].isin(STATUSES).all()
    np.True_
    """
    table = join_ledger(
        printed_numbers(),
        our_numbers(results),
        rules=published_table("ledger_reasons", dtype=str).fillna(""),
    )
    earlier = our_numbers(results, EARLIER_READINGS)
    earlier = earlier[earlier["notebook"] == "15"]
    earlier = earlier.drop(columns=["notebook", "model", "lexicon"])
    earlier = earlier.rename(columns={"ours": "earlier"})
    return table.merge(earlier, how="left", on=["paper", "row", "column"])


def join_ledger(
    printed: pd.DataFrame, ours: pd.DataFrame, rules: pd.DataFrame
) -> pd.DataFrame:
    """The ledger (see `replication_ledger`) of `printed_numbers`, `our_numbers` and the reasons."""
    table = printed.merge(ours, how="left", on=["paper", "row", "column"])
    table = table.fillna({"model": "", "lexicon": ""})
    table["difference"] = table["ours"] - table["published"]
    table["status"] = replication_status(
        table["published"], table["ours"], table["digits"], spread=table["spread"]
    )
    table = apply_rules(table, rules)
    unexplained = table.loc[table["status"] == "", KEYS]
    if len(unexplained):
        raise ValueError(f"no reason for {unexplained.values[0]}")
    columns = ["published", "ours", "difference", "status", "reason", "notebook"]
    return table[[*KEYS, *columns, "model"]]


def apply_rules(table: pd.DataFrame, rules: pd.DataFrame) -> pd.DataFrame:
    """Give each row of the ledger the reason, notebook and status of the first rule that matches.

    A rule's patterns of paper, table, row, column, model and lexicon must match whole names, and
    "" matches all.
    The rules "not run" and "not public" are for rows without a number of ours, the others for rows
    with one. A rule without a status leaves the status of `replication_status`, and a row that has
    a notebook keeps it. Where no rule matches, the reason is "".
    """
    table = table.assign(reason="")
    missing = table["ours"].isna()
    for rule in rules.to_dict("records"):
        for_missing = rule["status"] in WITHOUT_OURS
        without_rule = table["reason"] == ""
        matches = without_rule & (missing == for_missing)
        for key in RULE_KEYS:
            if rule[key]:
                matches &= table[key].str.fullmatch(rule[key])
        table.loc[matches, "reason"] = rule["reason"]
        notebook = table["notebook"].fillna(rule["notebook"])
        table.loc[matches, "notebook"] = notebook
        if rule["status"]:
            table.loc[matches, "status"] = rule["status"]
    return table


def distinct_numbers(entries: pd.DataFrame) -> pd.DataFrame:
    """The rows of a ledger that hold another number, not one more copy of it.

    Giorgi et al. repeat the P of a metric beside each automatic metric of a table, and Wakaki et
    al. print some rows in two tables; the first copy counts.

    >>> entries = pd.DataFrame({"paper": "P", "row": ["TP, BLEU", "TP, USR"], "column": "all P"})
    >>> len(distinct_numbers(entries))
    1
    """
    is_alone = entries["column"].str.endswith(" P")
    dataset = entries["row"].str.partition(",")[0]
    row = entries["row"].where(~is_alone, dataset)
    return entries.assign(row=row).drop_duplicates(["paper", "row", "column"])


def printed_numbers() -> pd.DataFrame:
    """Every printed number once: paper, table, row, column, published, digits, spread.

    Table 6 of Wakaki et al. repeats the rows of Table 16, except those of GPT-3.5: they are in the
    frame twice, once under each table. `spread` is NaN where the paper prints none.
    """
    tables = []
    for mapping in TABLES["printed"]:
        tables.append(_long_form(published_table(mapping["file"]), mapping))
    printed = pd.concat(tables)
    in_table_16 = printed["column"].str.startswith("usr ")
    by_gpt_3_5 = printed["row"].str.contains("GPT-3.5", regex=False)
    table_6 = printed[in_table_16 & ~by_gpt_3_5].assign(table=6)
    other = published_table("other_figures", dtype=str)
    decimals = other["number"].str.partition(".")[2]
    other["digits"] = decimals.str.len()

    numbers = pd.concat([printed, table_6, other])
    numbers = numbers.dropna(subset="number")
    spread = published_table("endex_table2_spread")
    numbers = numbers.merge(spread, how="left", on=["row", "column"])
    numbers = numbers.rename(columns={"number": "published"})
    numbers = numbers[[*KEYS, "published", "digits", "spread"]]
    return numbers.astype({"table": str, "published": float, "digits": int})


def _long_form(frame: pd.DataFrame, mapping: dict) -> pd.DataFrame:
    """One number per row, in `number`, under the names `row` and `column` (see `TABLES`)."""
    values = mapping["values"]
    frame = frame.assign(**mapping["same"])
    other_columns = [name for name in frame if name not in values]
    table = frame.melt(other_columns, values, var_name="quantity", value_name="number")
    names = list(mapping["column"])
    if not names or len(values) > 1:
        names.append("quantity")
    rows = table[mapping["row"]].agg(", ".join, axis=1)
    rows = rows.replace("empathic_concern", "empathy")
    columns = table[names].agg(" ".join, axis=1)
    spelling = {"_|(?<=^usr)-": " ", "^none ": "", ", footnote$": ""}
    columns = columns.replace(spelling, regex=True)
    return table.assign(row=rows, column=columns)


def our_numbers(results: Path, readings: Mapping[str, str] = READINGS) -> pd.DataFrame:
    """Our numbers under the printed names: paper, row, column, ours, notebook, model, lexicon.

    A row and a column name one number in every table of a paper that prints it. Where two of our
    tables hold it, the first counts; those of `15_readings` by the `readings` come first.
    """
    tables = _by_reading(results, readings)
    for mapping in TABLES["own"]:
        tables.append(_long_form(_read(results, mapping["file"]), mapping))
    tables += [*_regressions(results), _correlations_by_model(results)]
    tables += [*_packaged_bertscore(results), _sizes(results)]
    keys = ["paper", "row", "column"]
    numbers = pd.concat(tables)[[*keys, "number", "notebook", "model", "lexicon"]]
    numbers = numbers.fillna({"model": "", "lexicon": ""}).dropna()
    numbers = numbers.drop_duplicates(keys)
    return numbers.rename(columns={"number": "ours"})


def _read(results: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(results / f"{name}.csv").assign(notebook=name[:2])


def _regressions(results: Path) -> list[pd.DataFrame]:
    """P once for each automatic metric that it is printed beside, A and P+A by `ROWS_BY_MODEL`."""
    traits = _read(results, "12_traits")
    alone = pd.concat(
        [
            _read(results, "12_alone"),
            _read(results, "12_unseen"),
            traits.rename(columns={"model": "metric"}),
            _all_on_the_pool(results),
        ]
    )
    alone = alone.rename(columns={"ours": "number"})
    # The paper's reading of a metric goes before the other, and all five metrics before all three.
    preferred = alone["metric"].str.contains("_paper|all five")
    alone = pd.concat([alone[preferred], alone[~preferred]])
    alone["metric"] = alone["metric"].str.removesuffix("_paper")
    alone = _printed_cells(alone)

    beside = _read(results, "12_comparisons")
    beside["row"] = beside["dataset"] + ", " + beside["automatic"].map(ROWS_BY_MODEL)
    beside["model"] = _model_in_brackets(beside["automatic"])
    both = beside["psychological"].str.replace("_", " ") + " P+A"
    tables = [
        alone,
        beside.assign(column=both, number=beside["P+A"]),
        beside.assign(column="A", number=beside["A"]),
    ]
    lexica = _read(results, "12_lexica").set_index("metric")["lexicon"]
    style = lexica["language_style_matching"]
    return [table.assign(paper=GIORGI, lexicon=style) for table in tables]


def _all_on_the_pool(results: Path) -> pd.DataFrame:
    """P of the three turn-level metrics together on the pooled sets of Table 1."""
    table = _read(results, "12_unseen_comparisons")
    table = table[(table["dataset"] == "DSTC10") & (table["psychological"] == "all")]
    table = table.rename(columns={"psychological": "metric", "P": "ours"})
    return table[["dataset", "metric", "ours", "notebook"]].head(1)


def _printed_cells(alone: pd.DataFrame) -> pd.DataFrame:
    """P of a metric and a data set, once for each row of the print that repeats it."""
    metric = alone["metric"].str.replace("^all .*", "all", regex=True)
    alone = alone.assign(column=metric.str.replace("_", " ") + " P")
    return alone.merge(_cells_of_metrics())


@cache  # a notebook computes the ledger once for each reading of a metric
def _cells_of_metrics() -> pd.DataFrame:
    """Data set, row and column of each printed number of the human-centered metrics."""
    printed = published_table("human_centered_metrics")
    printed = _long_form(printed, TABLES["printed"][0])
    return printed[["dataset", "row", "column"]].drop_duplicates()


def _by_reading(results: Path, readings: Mapping[str, str]) -> list[pd.DataFrame]:
    """Numbers of the two metrics that have a choice of readings (`15_readings`)."""
    table = _read(results, "15_readings").rename(columns={"ours": "number"})
    table = table[table["reading"] == table["metric"].map(readings)]
    question = table[table["metric"] == "question"].assign(paper=XU, row="Question")
    question["column"] = question["dataset"] + " " + question["statistic"]
    matching = _printed_cells(table[table["metric"] == "emotion_matching"])
    return [question, matching.assign(paper=GIORGI)]


def _model_in_brackets(metrics: pd.Series) -> pd.Series:
    return metrics.str.extract(r"\[(.+)\]", expand=False)


def _correlations_by_model(results: Path) -> pd.DataFrame:
    """The rows of Wakaki et al.'s Tables 6 and 16 that a run with MODELS fills."""
    on_topical = _read(results, "04_all_correlations").assign(corpus="usr_topical")
    table = pd.concat([_read(results, "03_embedding_correlations"), on_topical])
    table = table[table["rating"] == "human_overall"]
    table = table[table["level"] == "turn"]
    table["row"] = table["metric"].map(ROWS_BY_MODEL)
    table["model"] = _model_in_brackets(table["metric"])
    table["column"] = table["corpus"].str.replace("_", " ") + " " + table["method"]
    return table.assign(paper=WAKAKI, number=table["value"])


def _packaged_bertscore(results: Path) -> list[pd.DataFrame]:
    """Correlations for Wakaki et al.; for Giorgi et al. 1 - (1 - r2)(n - 1) / (n - 2), so A."""
    table = _read(results, "03_bertscore_against_published")
    table["model"] = Path(DEFAULT_ENCODER).name
    r = table["ours"]
    n = table["n"]
    corpus = table["corpus"].str.replace("_", " ")
    wakaki = table.assign(paper=WAKAKI, row="BERTScore", number=r)
    wakaki["column"] = corpus + " " + table["method"]

    datasets = {corpus: dataset for dataset, (corpus, _) in PAPER_SETS.items()}
    adjusted_r2 = 1 - (1 - r**2) * (n - 1) / (n - 2)
    giorgi = table.assign(paper=GIORGI, column="A", number=adjusted_r2)
    giorgi["row"] = table["corpus"].map(datasets) + ", BERTScore"
    return [wakaki, giorgi]


def _sizes(results: Path) -> pd.DataFrame:
    """Counts, lengths and agreement of whole corpora, as `ledger_sizes` names them."""
    overview = _read(results, "01_overview")
    agreement = _read(results, "09_agreement")
    numbers = pd.concat([overview, agreement]).melt(
        ["corpus", "notebook"], var_name="quantity", value_name="number"
    )
    names = published_table("ledger_sizes")
    numbers = numbers.merge(names, on=["corpus", "quantity"]).dropna(subset="number")
    return numbers.astype({"number": float})
