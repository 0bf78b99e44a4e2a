"""Texts of authors whose traits were measured with a questionnaire."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lib import ROOT
from lib.data.dialogues import DataError

WASSA_COLUMNS = {
    "response_id": "author",
    "essay": "text",
    "personality_agreeableness": "agreeableness",
    # The published files spell the column this way.
    "iri_empathatic_concern": "empathic_concern",
}


def read_wassa(path: str | Path) -> pd.DataFrame:
    """Read an essay file of the WASSA 2022 shared task (tab-separated).

    1,860 essays by 372 authors: reactions to news articles, with the Big Five (1-7) and the
    Interpersonal Reactivity Index (1-5) of each author. `response_id` is the author, who wrote
    five essays: folds of a model must keep them together. The essays and the empathy and distress
    ratings are CC BY 4.0; the personality columns come under the terms of the shared task, so the
    file is yours to supply.

    Returns
    -------
    DataFrame with author, text, agreeableness, empathic_concern
        One row per essay; other columns are left out. Unreadable scores are NaN.

    Raises
    ------
    DataError
        If a column is missing; the test part of the shared task has no scores.

    References
    ----------
    Barriere et al. (2022), WASSA 2022 shared task. Buechel et al. (2018), Modeling empathy and
    distress in reaction to news stories, EMNLP.

    Examples
    --------
    >>> read_wassa(ROOT / "data" / "sample" / "essays" / "essays.tsv").shape
    (240, 4)
    """
    rows = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    missing = [c for c in WASSA_COLUMNS if c not in rows]
    if missing:
        raise DataError(
            f"there is no column {missing}",
            file=path,
            fix="use an essay-level training file of WASSA 2022 (tab-separated, with scores)",
        )
    rows = rows[list(WASSA_COLUMNS)].rename(columns=WASSA_COLUMNS)
    for column in ("agreeableness", "empathic_concern"):
        rows[column] = pd.to_numeric(rows[column], errors="coerce")
    return rows


def sample_essays() -> pd.DataFrame:
    """Load the 240 invented essays of 80 invented authors that come with the project.

    >>> sample_essays()["author"].nunique()
    80
    """
    return read_wassa(ROOT / "data" / "sample" / "essays" / "essays.tsv")
