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


@pytest.fixture(scope="module")
def comperdial():
    frames = {path.stem: pd.read_csv(path) for path in PERSONAS.glob("*.csv")}
    return json.loads((PERSONAS / "ComperDial_data.json").read_text("utf-8")), frames


def test_bots_columns(bots):
    assert {name: list(frame.columns) for name, frame in bots.items()} == {
        "turns": ["system", "agent", "dialog", "turn", "speaker", "text"],
        "dialogs": ["dialog", "system", "agent", "user"],
        "turn_ratings": ["dialog", "turn", "annotator", "dimension", "rating"],
        "dialog_ratings": ["dialog", "annotator", "dimension", "rating"],
        "references": ["dialog", "turn", "reference"],
    }


def test_bots_are_large_enough(bots):
    turns = bots["turns"]
    assert turns.system.nunique() >= 3
    assert (turns.groupby("system").agent.nunique() >= 2).all()
    assert (turns.groupby("agent").dialog.nunique() >= 5).all()
    assert (turns[turns.speaker == "system"].groupby("dialog").size() >= 5).all()
    assert len(bots["references"].drop_duplicates(["dialog", "turn"])) >= 100


def test_bots_utterances_alternate_from_the_user(bots):
    turns = bots["turns"]
    assert not turns.duplicated(["dialog", "turn"]).any()
    assert (turns.turn == turns.groupby("dialog").cumcount()).all()
    assert ((turns.turn % 2).map({0: "user", 1: "system"}) == turns.speaker).all()
    assert turns.text.str.strip().str.len().gt(0).all()


def test_bots_dialogs_agree_with_turns(bots):
    keys = bots["turns"][["dialog", "system", "agent"]].drop_duplicates()
    assert keys.merge(bots["dialogs"], how="outer", indicator=True)._merge.eq("both").all()
    assert bots["dialogs"].dialog.is_unique
    users = bots["dialogs"].groupby("user").system.nunique()
    assert (users == 3).all(), "each user talks to every system, so that users and systems cross"


@pytest.mark.parametrize(
    ("name", "key", "dimensions"),
    [
        ("turn_ratings", ["dialog", "turn"], {"appropriate", "engaging", "overall"}),
        (
            "dialog_ratings",
            ["dialog"],
            {"overall", "coherent", "likeable", "informative", "empathic"},
        ),
    ],
)
def test_bots_ratings(bots, name, key, dimensions):
    ratings = bots[name]
    given = ratings.rating.dropna()
    assert set(ratings.dimension) == dimensions
    assert given.isin([1, 2, 3, 4, 5]).all() and given.nunique() == 5
    assert ratings.annotator.nunique() == 3
    assert not ratings.duplicated([*key, "annotator", "dimension"]).any()
    assert 1 <= ratings.rating.isna().sum() <= 5, "a few ratings are missing on purpose"
    bot_turns = bots["turns"].query("speaker == 'system'")
    rated = ratings[key].drop_duplicates().merge(bot_turns[key].drop_duplicates(), on=key)
    assert len(rated) == len(bot_turns[key].drop_duplicates()), "every bot turn is rated"
    assert len(rated) == len(ratings[key].drop_duplicates()), "and nothing else is"


def test_bots_annotators_disagree_but_share_a_view(bots):
    wide = bots["turn_ratings"].pivot(
        index=["dialog", "turn", "dimension"], columns="annotator", values="rating"
    )
    pairs = wide.corr("spearman").to_numpy()[[0, 0, 1], [1, 2, 2]]
    assert (pairs > 0.5).all() and (pairs < 0.95).all()


def test_bots_traits_show(bots):
    rated = bots["dialog_ratings"].merge(bots["dialogs"], on="dialog")
    empathic = rated[rated.dimension == "empathic"].groupby("agent").rating.mean()
    for system in ("lantern", "ferry", "pebble"):
        assert empathic[f"{system}_warm"] > empathic[f"{system}_curt"] + 1


def test_bots_references_belong_to_bot_turns(bots):
    keys = bots["references"].merge(bots["turns"], on=["dialog", "turn"], how="left")
    assert (keys.speaker == "system").all()
    assert bots["references"].groupby(["dialog", "turn"]).size().max() == 2
    assert bots["references"].reference.str.strip().str.len().gt(0).all()


def test_bots_hold_the_awkward_cases(bots):
    replies = bots["turns"].query("speaker == 'system'").text
    assert replies.str.contains("\n").any(), "an embedded newline"
    assert replies.str.contains("[\U0001f300-\U0001faff]").any(), "an emoji"
    assert replies.str.contains('"').any() and replies.str.contains(",").any()
    assert (replies.str.split().str.len() == 1).any(), "a one-word reply"
    assert replies.duplicated().any(), "a repeated reply"


def test_comperdial_dialogs(comperdial):
    data, _ = comperdial
    assert len(data) >= 3 and len({item["dialog_id"] for item in data}) == len(data)
    for item in data:
        assert [turn["persona_id"] for turn in item["dialogue"]] == ["A", "B"] * 7
        assert all(len(item["persona"][speaker]) >= 6 for speaker in "AB")
        assert all(turn["text"].strip() for turn in item["dialogue"])


def test_comperdial_annotations(comperdial):
    data, frames = comperdial
    turns, dialogs = frames["turn_annotations"], frames["dialogue_annotations"]
    systems = sorted(turns.system.unique())
    assert "human" in systems and len(systems) >= 4
    assert (turns.groupby(["dialog_id", "turn", "system"]).annotator.nunique() == 3).all()
    assert len(turns) == len(data) * 7 * len(systems) * 3
    assert len(dialogs) == len(data) * len(systems) * 3
    for frame in (turns, dialogs):
        assert frame.rating.isin([1, 2, 3, 4, 5]).all()


def test_comperdial_references_are_the_dialogue(comperdial):
    data, frames = comperdial
    said = {
        (item["dialog_id"], number): item["dialogue"][2 * number + 1]["text"]
        for item in data
        for number in range(7)
    }
    for row in frames["turn_annotations"].itertuples():
        assert row.reference == said[row.dialog_id, row.turn]


def test_sample_is_marked_synthetic():
    for folder in (BOTS, PERSONAS):
        info = json.loads((folder / "info.json").read_text("utf-8"))
        assert info["synthetic"] is True and info["licence"] == "MIT"
    readme = (SAMPLE / "README.md").read_text("utf-8")
    assert "synthetic" in readme.splitlines()[0] and "MIT" in readme


@pytest.mark.parametrize("folder", [BOTS, PERSONAS], ids=["bots", "personas"])
def test_sample_stays_small(folder):
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 200_000
