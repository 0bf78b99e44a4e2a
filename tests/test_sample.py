"""The shipped sample corpora keep the size, keys and scales that notebooks and loaders rely on."""

import json

import pandas as pd
import pytest

from lib import ROOT

SAMPLE = ROOT / "data" / "sample"
BOTS = SAMPLE / "bots"
PERSONAS = SAMPLE / "personas" / "comperdial"


@pytest.fixture(scope="module")
def bots():
    return {path.stem: pd.read_csv(path) for path in BOTS.glob("*.csv")}


def test_bots_talk_in_turns_within_a_hierarchy(bots):
    turns, dialogs = bots["turns"], bots["dialogs"]
    assert turns.system.nunique() >= 3
    assert (turns.groupby("system").agent.nunique() >= 2).all()
    assert (turns.groupby("agent").dialog.nunique() >= 5).all()
    assert (turns.turn == turns.groupby("dialog").cumcount()).all()
    assert ((turns.turn % 2).map({0: "user", 1: "system"}) == turns.speaker).all()
    keys = turns[["dialog", "system", "agent"]].drop_duplicates()
    assert keys.merge(dialogs, how="outer", indicator=True)._merge.eq("both").all()
    assert (dialogs.groupby("user").system.nunique() == 3).all(), "users and systems cross"
    references = bots["references"].merge(turns, on=["dialog", "turn"], how="left")
    assert (references.speaker == "system").all() and len(references) >= 100


def test_bots_hold_the_awkward_cases(bots):
    replies = bots["turns"].query("speaker == 'system'").text
    for awkward in ("\n", "[\U0001f300-\U0001faff]", '"', ",", r"^\S+$"):
        assert replies.str.contains(awkward).any(), awkward
    assert replies.duplicated().any(), "a repeated reply"


@pytest.mark.parametrize(
    "folder", [BOTS, PERSONAS, SAMPLE / "robustness_data"], ids=lambda p: p.name
)
def test_sample_is_marked_synthetic_and_stays_small(folder):
    info = json.loads((folder / "info.json").read_text("utf-8"))
    assert info["synthetic"] is True and info["licence"] == "MIT"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 200_000
    assert "synthetic" in (SAMPLE / "README.md").read_text("utf-8").splitlines()[0]
