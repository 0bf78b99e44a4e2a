"""The ledger: every number that the three papers' tables print, ours beside it, and its status."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib import ROOT
from lib.data.storage import read_json
from lib.meta_evaluation.replication.papers import PAPER_SETS, published_table

STATUSES = ("reproduced", "close", "differs", "other data or model", "not public")
GIORGI, XU, WAKAKI = PAPERS = ("Giorgi 2023", "Xu 2022", "Wakaki 2024")
KEYS = ["paper", "table", "row", "column"]

#: Printed tables (files of `data/published`), and those of `data/results` that keep the papers'
#: names: what all their rows share, the columns that name a row or a column, those with numbers.
TABLES = read_json(ROOT / "data" / "published" / "ledger_tables.json")

#: Automatic metrics of notebook 09 that stand in for one of the paper's, by its name there.
STAND_INS = {"bertscore_f1": "BERTScore"}


def replication_status(published, ours, digits, spread=0.0) -> np.ndarray:
    """What became of printed numbers: reproduced, close or differs; "" where ours is NaN.

    Reproduced: ours rounds to the printed digits (a half may go either way, and a printed zero has
    no sign). Close: within .005, or within the printed spread where that is larger.

    >>> replication_status([0.11, 0.11, 0.11, 0.0], [0.1104, 0.1149, 0.2, -0.0004], 3).tolist()
    ['reproduced', 'close', 'differs', 'reproduced']
    """
    difference = np.abs(np.asarray(ours, float) - np.asarray(published, float))
    half, wide = 0.5 * 10.0 ** -np.asarray(digits, float), np.fmax(0.005, spread)
    cases = [np.isnan(difference), difference <= half + 1e-9, difference <= wide + 1e-9]
    return np.select(cases, ["", "reproduced", "close"], "differs")


def replication_ledger(results: Path = ROOT / "data" / "results") -> pd.DataFrame:
    """Join every printed number with ours and say what became of it.

    Ours comes from the tables in `results`, the reasons from `data/published/ledger_reasons.csv`.

    Returns:
        paper, table, row, column, published, ours, difference (ours - published), status, why,
        notebook.

    Raises:
        ValueError: a number has neither ours nor a reason; names the first.

    >>> replication_ledger()["status"].isin(STATUSES).all()
    np.True_
    """
    table = printed_numbers().merge(our_numbers(results), how="left", on=["paper", "row", "column"])
    table["difference"] = table["ours"] - table["published"]
    figures = table[["published", "ours", "digits", "spread"]].to_numpy()
    table["status"] = replication_status(*figures.T)
    table = explain_missing(table, published_table("ledger_reasons", dtype=str).fillna(""))
    if (table["status"] == "").any():
        raise ValueError(f"no reason for {table.loc[table['status'] == '', KEYS].values[0]}")
    return table[[*KEYS, "published", "ours", "difference", "status", "why", "notebook"]]


def explain_missing(table: pd.DataFrame, rules: pd.DataFrame) -> pd.DataFrame:
    """Take status, reason and notebook from the first rule that matches.

    A rule's patterns of paper, table, row and column must match whole names, and "" matches all. A
    rule "not public" is for rows without ours, the others for rows with; where a rule names no
    status, the figures decide.
    """
    table, missing = table.assign(why=""), table["ours"].isna()
    for rule in rules.to_dict("records"):
        hit = (table["why"] == "") & (missing == (rule["status"] == "not public"))
        for key in KEYS:
            hit &= table[key].str.fullmatch(rule[key] or ".*")
        table.loc[hit, "why"] = rule["why"]
        table.loc[hit, "notebook"] = table.loc[hit, "notebook"].fillna(rule["notebook"])
        if rule["status"]:
            table.loc[hit, "status"] = rule["status"]
    return table


def printed_numbers() -> pd.DataFrame:
    """Every printed number once: paper, table, row, column, published, digits, spread.

    Table 6 of Wakaki et al. prints those rows of Table 16 once more that are not GPT-3.5's.
    """
    known = pd.concat(_named(published_table(about["file"]), about) for about in TABLES["printed"])
    again = known["column"].str.startswith("usr ") & ~known["row"].str.contains(r"GPT-3\.5")
    other = published_table("other_figures", dtype=str)
    other["digits"] = other["number"].str.partition(".")[2].str.len()
    whole = pd.concat([known, known[again].assign(table=6), other]).dropna(subset="number")
    whole = whole.merge(published_table("endex_table2_spread"), how="left", on=["row", "column"])
    whole = whole.rename(columns={"number": "published"})[[*KEYS, "published", "digits", "spread"]]
    return whole.astype({"table": str, "published": float, "digits": int})


def _named(frame: pd.DataFrame, about: dict) -> pd.DataFrame:
    """Long form, `number` under the names `row` and `column`; what else the frame holds stays."""
    row, column, values = about["row"], about["column"], about["values"]
    frame = frame.assign(**about["same"])
    rest = [name for name in frame if name not in values]
    long = frame.melt(rest, values, "quantity", "number")
    parts = column if column and len(values) == 1 else [*column, "quantity"]
    spelling = {"_|(?<=^usr)-": " ", "^none ": "", ", footnote$": ""}
    columns = long[parts].agg(" ".join, axis=1).replace(spelling, regex=True)
    rows = long[row].agg(", ".join, axis=1).replace("empathic_concern", "empathy")
    return long.assign(row=rows, column=columns)


def our_numbers(results: Path) -> pd.DataFrame:
    """Our numbers under the printed names: paper, row, column, ours, notebook.

    A row and a column name one number in every table of a paper that prints it. Where two of our
    tables hold it, the first counts.
    """

    def read(name: str) -> pd.DataFrame:
        return pd.read_csv(results / f"{name}.csv").assign(notebook=name[:2])

    parts = [_named(read(about["file"]), about) for about in TABLES["own"]]
    parts += [*_regressions(read), *_bertscore(read), _sizes(read)]
    found = pd.concat(parts)[["paper", "row", "column", "number", "notebook"]].dropna()
    return found.rename(columns={"number": "ours"}).drop_duplicates(["paper", "row", "column"])


def _regressions(read) -> list[pd.DataFrame]:
    """P once for each automatic metric that it is printed beside, A and P+A for the stand-ins."""
    printed = _named(published_table("human_centered_metrics"), TABLES["printed"][0])
    cells = printed[["dataset", "row", "column"]].drop_duplicates()
    traits = read("09_traits").rename(columns={"model": "metric"})
    alone = pd.concat([read("09_alone"), read("09_unseen"), traits])
    alone = alone.rename(columns={"ours": "number"})
    # The reading of the paper goes before the other, and all five metrics before all three.
    first = alone["metric"].str.contains("_paper|all five")
    alone = pd.concat([alone[first], alone[~first]])
    metric = alone["metric"].str.removesuffix("_paper").str.replace("^all .*", "all", regex=True)
    alone["column"] = metric.str.replace("_", " ") + " P"
    beside = read("09_comparisons").rename(columns={"P+A": "number"})
    beside["row"] = beside["dataset"] + ", " + beside["automatic"].map(STAND_INS)
    beside["column"] = beside["psychological"].str.replace("_", " ") + " P+A"
    parts = [alone.merge(cells), beside, beside.assign(column="A", number=beside["A"])]
    return [part.assign(paper=GIORGI) for part in parts]


def _bertscore(read) -> list[pd.DataFrame]:
    """Correlations for Wakaki et al.; for Giorgi et al. 1 - (1 - r2)(n - 1) / (n - 2), so A."""
    found = read("03_bertscore_against_published").rename(columns={"ours": "number"})
    wakaki = found.assign(paper=WAKAKI, row="BERTScore")
    wakaki["column"] = found["corpus"].str.replace("_", " ") + " " + found["method"]
    names = {corpus: dataset for dataset, (corpus, _) in PAPER_SETS.items()}
    rest = (1 - found["number"] ** 2) * (found["n"] - 1) / (found["n"] - 2)
    giorgi = found.assign(paper=GIORGI, row=found["corpus"].map(names) + ", BERTScore")
    return [wakaki, giorgi.assign(column="A", number=1 - rest)]


def _sizes(read) -> pd.DataFrame:
    """Counts, lengths and agreement of whole corpora, as `ledger_sizes` names them."""
    tables = pd.concat([read("01_overview"), read("08_agreement")])
    known = tables.melt(["corpus", "notebook"], var_name="quantity", value_name="number")
    found = known.merge(published_table("ledger_sizes"), on=["corpus", "quantity"])
    return found.dropna(subset="number").astype({"number": float})
