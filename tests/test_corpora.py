"""The loaders on small stand-ins, one test per quirk; samples, corpora on request, the catalogue.

The real files are in test_corpora_public.py.
"""

import math

import pandas as pd
import pytest
import small_corpora as small

from lib import data
from lib.data import DataError, corpora, reddit_goemotions_wassa, storage
from lib.data.corpora import LOADERS
from lib.data.tbd_comperdial import comperdial, three_bots
from lib.data.turn_table import validate

SMALL = ["dstc10_persona_usr", "dstc10_persona_zhao", "dstc10_persona_clean", "zhao_persona"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder of small files, whose checksums are not looked at."""
    for module in (corpora, reddit_goemotions_wassa):
        monkeypatch.setattr(module, "path", lambda key: tmp_path / key)
    return small.write(tmp_path)


def load(name, folder, **options):
    """The parts of a corpus by name; `folder` is named so that a test asks for it."""
    return vars(corpora.load(name, **options))


@pytest.mark.parametrize("name", SMALL)
def test_tables_are_valid_and_the_account_balances(name, folder):
    corpus = corpora.load(name)
    validate(corpus.turns)
    report = corpus.report
    assert (report["read"] == report["kept"] + report["excluded"]).all()
    assert report["read"].sum() > 0
    assert corpus.ratings.columns.tolist() == ["item", "annotator", "dimension", "rating"]


# --- one test per quirk -------------------------------------------------------------------------


def test_dstc10_counts_a_returning_context_as_a_new_dialog(folder):
    turns = load("dstc10_persona_zhao", folder)["turns"]
    assert turns["dialog"].str[-3:].tolist() == ["000", "000", "001", "002"]
    assert turns["context"].iloc[2] == ["a", "b"]
    assert load("dstc10_persona_usr", folder)["turns"]["fact"].iloc[0] == ["i run."]


def test_a_context_that_comes_back_begins_the_next_system_of_pd10(folder):
    turns = load("dstc10_persona_clean", folder)["turns"]
    assert turns["system"].str[-1].tolist() == ["0", "0", "1", "2", "2"]
    assert turns["dialog"].str[-3:].tolist() == ["000", "001", "000", "000", "001"]
    assert turns["context"].iloc[1] == ["b", "so ."] and turns["turn"].eq(2).all()
    assert turns["human_appropriateness"].tolist() == [1, 2, 3, 4, 5]


def test_zhao_position_is_the_system_and_the_first_is_the_reference(folder):
    turns = load("zhao_persona", folder)["turns"]
    assert turns["system"].tolist() == [f"position_{n}" for n in range(6)] * 2
    assert turns["reference"].iloc[[0, 1, 6, 11]].tolist() == [[], ["reply 0"], [], ["reply 6"]]
    assert turns["human_overall"].iloc[1] == 4.5


def test_both_forms_of_the_derived_files_give_the_same(tmp_path, folder, monkeypatch):
    other = tmp_path / "full"
    for write in (small.comp_analysis, small.reddit_college):
        write(other, full=True)
    readers = [lambda: corpora.load("zhao_persona").turns, data.reddit_college]
    subsets = [read() for read in readers]

    def upstream(key):
        moved = storage.registry()["files"][key].get("upstream", {"key": key})["key"]
        return other / moved if (other / moved).is_file() else other / key

    for module in (corpora, reddit_goemotions_wassa):
        monkeypatch.setattr(module, "path", upstream)
    for read, subset in zip(readers, subsets, strict=True):
        pd.testing.assert_frame_equal(subset, read(), check_flags=False)
    files = data.read_report(data.reddit_college()).set_index("unit").loc["thread files"]
    assert files["excluded"] == 1 and files["reasons"] == "1 of other subreddits"


def test_reddit_college_flattens_threads_without_user_names(folder):
    table = data.reddit_college()
    assert table["id"].tolist() == ["s1a", "s1b"]
    assert table["parent_id"].tolist() == ["t3_s1", "t1_s1a"]
    assert table["link_id"].tolist() == ["t3_s1"] * 2
    assert table["score"].tolist() == [2, -3]
    assert table["author"].iloc[1] == "[deleted]"
    assert table["author"].iloc[0].startswith("user-")
    assert table["controversiality"].isna().all() and table["edited"].isna().all()
    assert "NamedPerson" not in str(table.to_dict())


def test_reddit_52_forums_get_ids_by_their_place_and_lose_hostile_and_repeated_posts(folder):
    table = data.reddit_52_forums()
    tree = table[table["subreddit"] == "HowTo"].set_index("id")
    assert tree["parent_id"].to_dict() == {
        "HowTo.0.0": "t3_HowTo.0", "HowTo.0.0.0": "t1_HowTo.0.0", "HowTo.0.0.1": "t1_HowTo.0.0"
    }  # fmt: skip
    assert tree["score"].tolist() == [7, 2, 2] and set(tree["author"]) == {"unknown"}
    assert table.groupby("subreddit").size().to_dict() == {"HowTo": 3, "pics": 6, "wtf": 3}
    assert set(table.loc[table["subreddit"] == "pics", "author"]) == {"AutoModerator"}
    assert table[["created_utc", "edited", "controversiality"]].isna().all(axis=None)
    line = data.read_report(table).iloc[0]
    assert line["reasons"] == "3 of a hostile forum; 3 of a post read before"
    assert "no times, authors" in line["notes"]


def test_reddit_cmv_is_read_once_and_without_names(folder):
    table = data.reddit_cmv().set_index("id")
    assert table["parent_id"].to_dict() == {"x1": "t3_l", "x2": "t1_x1"}
    assert table[["score", "controversiality", "created_utc"]].iloc[0].tolist() == [-2, 1, 11]
    assert table["edited"].all() and table.loc["x2", "author"] == "[deleted]"
    assert "NamedPerson" not in str(table.to_dict())
    assert data.read_report(data.reddit_cmv()).loc[0, "reasons"] == "1 in two chains; 1 submissions"


# --- samples and corpora on request ---------------------------------------------------------------


def test_sample_means_are_those_of_the_file():
    corpus = corpora.load("sample_bots")
    raw = pd.read_csv(storage.DATA / "sample/bots/turn_ratings.csv")
    raw = raw[raw["dimension"] == "overall"].groupby(["dialog", "turn"])["rating"].mean()
    for row in corpus.turns.itertuples():
        expected = raw.get((row.dialog, row.turn), math.nan)
        assert row.human_overall == pytest.approx(expected, nan_ok=True)


def test_three_bots_maps_columns(tmp_path):
    small.bots(tmp_path, turns_csv="bot,agent,dialog,turn,speaker,said\nA,A1,d,0,system,Oh\n",
         turn_ratings_csv="dialog,turn,annotator,dimension,rating\nd,0,x,Overall,4\n")  # fmt: skip
    columns = {"turns.csv": {"system": "bot", "text": "said"}}
    turns = three_bots(tmp_path, columns)["turns"]
    assert turns[["system", "response", "human_overall"]].values.tolist() == [["A", "Oh", 4.0]]
    with pytest.raises(
        DataError, match="'system': this column is missing.*\n.*did you mean 'sytem'"
    ):
        three_bots(tmp_path, {"turns.csv": {"sytem": "bot"}})


TALK = {"persona": {"A": ["a"], "B": ["b"]},
        "dialogue": [{"persona_id": who, "text": who * 2} for who in "ABAB"]}  # fmt: skip
MAPPED = {"turn_annotations.csv": {"system": "model"}}


def comperdial_files(folder, talk, judged, dialogs=""):
    small.dump(folder / "ComperDial_data.json", talk)
    head = "dialog_id,turn,model,response,reference,annotator,rating\n"
    small.text(folder / "turn_annotations.csv", head + judged)
    head = "dialog_id,system,annotator,rating\n"
    small.text(folder / "dialogue_annotations.csv", head + (dialogs or "0,S,w1,3\n"))
    return folder


def test_comperdial_unfolds_dialogs(tmp_path):
    judged = "0,1,S,hm,BB,w1,4\n0,1,S,hm,BB,w2,5\n"
    parts = comperdial(comperdial_files(tmp_path, [TALK], judged, "0,S,w1,3\n"), MAPPED)
    row = parts["turns"].iloc[0]
    assert row[["dialog", "turn", "response", "human_overall"]].tolist() == ["0", 3, "hm", 4.5]
    assert row[["context", "fact", "reference"]].tolist() == [["AA", "BB", "AA"], ["b"], ["BB"]]
    assert parts["dialogs"]["human_overall"].tolist() == [3]


BAD_COMPERDIAL = [
    ([{"dialogue": TALK["dialogue"]}], "", "", "ComperDial_data.json, row 1|persona"),
    ([TALK, TALK | {"dialogue": TALK["dialogue"][1:]}], "", "", "row 2|take turns"),
    ({"dialogs": [TALK]}, "", "", "ComperDial_data.json|JSON objects"),
    ([TALK], "7,0,S,hm,B,w1,4\n", "", "row 1|'dialog_id'|'7'"),
    ([TALK], "0,2,S,hm,B,w1,4\n", "", "row 1|'turn'|counted from 0"),
    ([TALK], "0,1,S,hm,B,w1,4\n0,1,S,ho,B,w2,4\n", "", "row 2|'response'|'ho'|two texts"),
    ([TALK], "0,1,S,hm,B,w1,4\n0,1,S,hm,B,w1,5\n", "", "row 2|'w1'|second time"),
    ([TALK], "0,1,S,hm,B,w1,6\n", "", "turn_annotations.csv, row 1|'6'|1 to 5"),
    ([TALK], "0,1,S,hm,B,w1,4\n", "9,S,w1,3\n", "dialogue_annotations.csv, row 1|'9': no rated"),
]


@pytest.mark.parametrize("talk, judged, dialogs, expected", BAD_COMPERDIAL)
def test_bad_input_of_comperdial(talk, judged, dialogs, expected, tmp_path):
    with pytest.raises(DataError) as caught:
        comperdial(comperdial_files(tmp_path, talk, judged, dialogs), MAPPED)
    for words in expected.split("|"):
        assert words in str(caught.value)


@pytest.mark.parametrize("name", ["tbd_q1", "comperdial"])
def test_files_on_request_say_where_to_ask(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path))
    with pytest.raises(DataError) as caught:
        corpora.load(name)
    for words in ["not public", "ask the authors of", str(tmp_path / name), "data/README.md"]:
        assert words in str(caught.value)
    sample = storage.DATA / "sample" / {"tbd_q1": "bots"}.get(name, "personas/comperdial")
    assert corpora.load(name, folder=str(sample)).info["synthetic"] is False


# --- faults in a user's files ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, words",
    [("usr_topicl", "did you mean 'usr_topical'"), ("goemotions", r"call data.goemotions\(\)")],
)
def test_names_that_are_no_corpora_lead_on(name, words):
    with pytest.raises(DataError, match=words):
        corpora.load(name)


HEAD = "system,agent,dialog,turn,speaker,text\n"
RATED = small.TURN_RATINGS
BAD_BOTS = [
    ("turns", HEAD + "A,A1,d,0,user,Hi\nA,A1,d,2,system,Oh\n", "row 2|'turn'|'2'|must count 0, 1"),
    ("turns", HEAD + "A,A1,d,first,user,Hi\n", "row 1|'first'"),
    ("turns", HEAD + "A,A1,d,0,bot,Hi\n", "row 1|'speaker'|'bot'"),
    ("turns", HEAD + "A,A1,d,0,user,Hi\nA,A2,d,1,system,Oh\n", "row 2|'agent'|'A2'"),
    ("turns", HEAD + ",A1,d,0,user,Hi\n", "row 1|'system'|is empty|fill it in"),
    ("turns", HEAD.replace("text", "txt") + "A,A1,d,0,user,Hi\n", "'text'|is missing|'txt'"),
    ("turns", HEAD + "A,A1,d,0,user,Hi\nA,A1,d,1,system\n", "row 2 has fewer cells"),
    ("turn_ratings", RATED + "d,0,x,Overall,4\n", "row 1|no rated item"),
    ("turn_ratings", RATED + "d,1,x,Overall,4\nd,1,x,overall,5\n", "row 2|'x'|a second time"),
    ("turn_ratings", RATED + "d,1,x,Overall,0\n", "row 1|'rating'|from 1 to 5|correct that row"),
    ("turn_ratings", RATED + 'd,1,x,Fun,4\nd,1,y,Fun,"4,5"\n', "row 2|'rating'|'4,5'|a point for"),
    ("turn_ratings", RATED + "d,1, ,Overall,4\n", "row 1|'annotator'|is empty"),
    ("references", "dialog,turn,reference\nd,0,Fine\n", "row 1|'turn'|'0'"),
]


@pytest.mark.parametrize("name, body, expected", BAD_BOTS)
def test_bad_input_of_three_bots(name, body, expected, tmp_path):
    with pytest.raises(DataError) as caught:
        three_bots(small.bots(tmp_path, **{f"{name}_csv": body}))
    for words in [f"{name}.csv", *expected.split("|")]:
        assert words in str(caught.value)


# --- what a notebook asks of a corpus -------------------------------------------------------------


@pytest.mark.parametrize(
    "name, asked, options, message",
    [
        ("zhao_persona", ["dialog"], {}, "no table of single dialogs"),
        ("dstc10_persona_zhao", ["turn", "human_fun"], {}, "or one of human_appropriateness"),
        ("zhao_persona", ["turn", "fact"], {}, "column 'fact'.*\n.*take another corpus"),
        ("zhao_persona", ["turn"], {"single_ratings": True}, "only mean ratings are published"),
    ],
)
def test_a_corpus_without_it_says_what_it_has(name, asked, options, message, folder):
    with pytest.raises(DataError, match=message):
        corpora.load(name).table(*asked, **options)


# --- available ------------------------------------------------------------------------------------


def test_available_works_without_data(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path / "nothing here"))
    table = corpora.available()
    assert table["name"].is_unique
    others = {"tbd_q1", "comperdial", "sample_bots", "goemotions"}
    assert set(LOADERS) | others <= set(table["name"])
    there = table.set_index("name")["on disk?"]
    assert there[there].index.tolist() == ["sample_bots", "sample_personas"]
    for name, entry in storage.registry()["samples"].items():
        turns = corpora.load(name).turns
        assert (len(turns), turns["system"].nunique()) == (entry["rows"], entry["systems"])
    assert (table["licence"] != "").all()


def test_registry_and_loaders_name_the_same_corpora():
    known = storage.registry()
    assert {*known["corpora"], *known["requested"]} == set(LOADERS)
