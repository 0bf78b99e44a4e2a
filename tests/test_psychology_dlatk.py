"""N-grams, lexicon scores and topics against DLATK itself, run unmodified on its SQLite engine."""

import os
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from lib import psychology
from lib.data import corpora
from lib.meta_evaluation.replication import papers

# DLATK keeps its databases under the home folder, so it gets one of its own.
ENGINE = """
import sys
from dlatk.featureExtractor import FeatureExtractor
dlatk = FeatureExtractor("sqlite", None, sys.argv[1], "message_id", "", "message", "message_id",
                         "utf8mb4", True, "dlatk_lexica")
for n in (1, 2, 3):
    dlatk.addNGramTable(n, metaFeatures=False)
for mean_weight in (False, True):
    dlatk.addLexiconFeat("nrc_emot", isWeighted=True, lexicon_weighting=mean_weight)
dlatk.addLexiconFeat("fb2000_cp", isWeighted=True)
"""

pytestmark = [pytest.mark.slow, pytest.mark.public]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    sets = [papers.PAPER_SETS[name][0] for name in ("TP", "UP", "ZD", "ZP")]
    responses = []
    for name in sets:
        responses += list(corpora.load(name).turns["response"])
    return responses


@pytest.fixture(scope="module")
def database(texts, tmp_path_factory):
    package = pytest.importorskip("dlatk").__path__[0]
    home = tmp_path_factory.mktemp("home")
    (home / "sqlite_data").mkdir()
    shutil.copy(f"{package}/data/dlatk_lexica.db", home / "sqlite_data")
    messages = home / "messages.csv"
    frame = pd.DataFrame({"message_id": range(1, len(texts) + 1), "message": texts})
    frame.to_csv(messages, index=False)
    command = [sys.executable, "-c", ENGINE, messages]
    env = os.environ | {"HOME": str(home)}
    subprocess.run(command, env=env, check=True, capture_output=True)
    with sqlite3.connect(home / "sqlite_data" / "messages.db") as connection:
        yield connection


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ngram_tables_are_identical(texts, database, n):
    counts = psychology.count_tokens(texts, n=n)
    table = f'"feat${n}gram$messages$message_id"'
    rows = database.execute(
        f"SELECT group_id, feat, value, group_norm FROM {table}"
    ).fetchall()
    entries = counts.matrix.tocoo()
    counted = {}
    for row, column, value in zip(entries.row, entries.col, entries.data, strict=True):
        counted[row + 1, counts.features[column]] = value
    assert counted == {
        (int(group), feature): value for group, feature, value, _ in rows
    }
    shares = [counted[int(g), f] / counts.totals[int(g) - 1] for g, f, _, _ in rows]
    np.testing.assert_allclose(shares, [norm for *_, norm in rows], rtol=0, atol=1e-12)


TABLES = [
    ("cat_nrc_emot_w", "nrc_emot", "relative"),
    ("cat_nrc_emot_w_lw", "nrc_emot", "lex_norm"),
    ("cat_fb2000_cp_w", "fb2000_cp", "relative"),
]


@pytest.mark.parametrize(("table", "source", "weighting"), TABLES)
def test_lexicon_tables_are_equal_to_1e_12(texts, database, table, source, weighting):
    scores = psychology.dlatk_lexicon(source).score(
        psychology.count_tokens(texts), weighting
    )
    name = f'"feat${table}$messages$message_id$1gra"'
    stored = pd.read_sql(f"SELECT group_id, feat, group_norm FROM {name}", database)
    stored = stored[stored["feat"] != "_intercept"].astype({"group_id": int})
    expected = stored.pivot(index="group_id", columns="feat", values="group_norm")
    expected = expected.reindex(
        index=range(1, len(texts) + 1), columns=scores.columns
    ).fillna(0.0)
    np.testing.assert_allclose(scores.fillna(0.0), expected, rtol=0, atol=1e-12)
