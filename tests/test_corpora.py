"""The loaders on small stand-ins, one test per quirk; samples, corpora on request, the catalogue.

The real files are in test_corpora_public.py.
"""

import math

import pandas as pd
import pytest
import small_corpora as small

from lib import data
from lib.data import DataError, corpora, storage, unrated_texts
from lib.data.corpora import LOADERS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder of small files, whose checksums are not looked at."""
    for module in (corpora, unrated_texts):
        monkeypatch.setattr(module, "fetch_file", lambda key: tmp_path / key)
    return small.write(tmp_path)


# --- one test per quirk -------------------------------------------------------------------------


def test_both_forms_of_the_derived_files_give_the_same(tmp_path, folder, monkeypatch):
    subset_turns = corpora.load("zhao_persona").turns
    subset_comments = data.reddit_college()
    full_folder = tmp_path / "full"
    small.comp_analysis(full_folder, full=True)
    small.reddit_college(full_folder, full=True)

    def upstream_file(key):
        entry = storage.registry()["files"][key]
        path = full_folder / entry.get("upstream", {"key": key})["key"]
        return path if path.is_file() else full_folder / key

    for module in (corpora, unrated_texts):
        monkeypatch.setattr(module, "fetch_file", upstream_file)
    full_turns = corpora.load("zhao_persona").turns
    full_comments = data.reddit_college()
    pd.testing.assert_frame_equal(subset_turns, full_turns)
    pd.testing.assert_frame_equal(subset_comments, full_comments, check_flags=False)
    files = data.import_report(full_comments).set_index("unit").loc["thread files"]
    assert files["excluded"] == 1
    assert files["reasons"] == "1 of other subreddits"


def test_reddit_college_flattens_threads_without_user_names(folder):
    table = data.reddit_college()
    assert table["id"].tolist() == ["s1a", "s1b"]
    assert table["parent_id"].tolist() == ["t3_s1", "t1_s1a"]
    assert table["link_id"].tolist() == ["t3_s1"] * 2
    assert table["score"].tolist() == [2, -3]
    assert table["author"].iloc[1] == "[deleted]"
    assert table["author"].iloc[0].startswith("user-")
    assert table[["controversiality", "edited"]].isna().all(axis=None)
    assert "NamedPerson" not in str(table.to_dict())


def test_reddit_52_forums_get_ids_by_their_place_and_lose_hostile_and_repeated_posts(
    folder,
):
    table = data.reddit_52_forums()
    tree = table[table["subreddit"] == "HowTo"].set_index("id")
    assert tree["parent_id"].to_dict() == {
        "HowTo.0.0": "t3_HowTo.0",
        "HowTo.0.0.0": "t1_HowTo.0.0",
        "HowTo.0.0.1": "t1_HowTo.0.0",
    }
    assert tree["score"].tolist() == [7, 2, 2]
    assert set(tree["author"]) == {"unknown"}
    assert table.groupby("subreddit").size().to_dict() == {
        "HowTo": 3,
        "pics": 6,
        "wtf": 3,
    }
    assert set(table.loc[table["subreddit"] == "pics", "author"]) == {"AutoModerator"}
    assert table[["created_utc", "edited", "controversiality"]].isna().all(axis=None)
    line = data.import_report(table).iloc[0]
    assert line["reasons"] == "3 of a hostile forum; 3 of a post read before"
    assert "no times, authors" in line["notes"]


def test_reddit_cmv_is_read_once_and_without_names(folder):
    table = data.reddit_cmv().set_index("id")
    assert table["parent_id"].to_dict() == {"x1": "t3_l", "x2": "t1_x1"}
    assert table[["score", "controversiality", "created_utc"]].iloc[0].tolist() == [
        -2,
        1,
        11,
    ]
    assert table["edited"].all()
    assert table.loc["x2", "author"] == "[deleted]"
    assert "NamedPerson" not in str(table.to_dict())
    report = data.import_report(table)
    assert report.loc[0, "reasons"] == "1 in two chains; 1 submissions"


# --- samples and corpora on request ---------------------------------------------------------------


def test_sample_means_are_those_of_the_file():
    turns = corpora.load("sample_bots").turns
    ratings = pd.read_csv(storage.DATA / "sample/bots/turn_ratings.csv")
    ratings = ratings[ratings["dimension"] == "overall"]
    means = ratings.groupby(["dialog", "turn"])["rating"].mean()
    for row in turns.itertuples():
        expected = means.get((row.dialog, row.turn), math.nan)
        assert row.human_overall == pytest.approx(expected, nan_ok=True)


def test_a_corpus_on_request_is_a_turn_table_with_ratings(tmp_path):
    corpus = corpora.load("comperdial", folder=small.requested(tmp_path))
    turn = corpus.turns.iloc[1]
    assert turn[["turn", "response", "fact", "human_overall"]].tolist() == [
        3,
        "hm",
        ["b"],
        4.5,
    ]
    dialog = corpus.dialogs.iloc[0]
    assert dialog["utterances"] == ["A", "oh", "AA", "hm"], (
        "with the system's own replies"
    )
    assert dialog["speakers"] == ["user", "system", "user", "system"]
    assert dialog["human_overall"] == 3
    assert corpus.report.loc[1, "reasons"] == "1 left empty"


BAD = [
    (
        "turns",
        "system,dialog,turn,response\nA,1,-1,x\n",
        "turns.csv, row 1|'turn'|not a count",
    ),
    ("turn_ratings", "d,0,x,Overall,4\n", "row 1|no reply or dialog has"),
    ("turn_ratings", "d,1,x,Fun,4\nd,1,x,fun,5\n", "row 2|'x'|a second time"),
    ("turn_ratings", "d,1,x,Fun,0\n", "row 1|'rating'|1 to 5|correct that row"),
    ("turn_ratings", 'd,1,x,Fun,"4,5"\n', "row 1|'4,5'|a point for"),
    (
        "dialog_ratings",
        "dialog,annotator,rating\nd,x,5\n",
        "no column|'dimension'|data/README.md",
    ),
]


@pytest.mark.parametrize("name, body, expected", BAD)
def test_bad_files_of_a_corpus_on_request(name, body, expected, tmp_path):
    if name == "turn_ratings":
        body = small.TURN_RATINGS + body
    folder = small.requested(tmp_path, **{name: body})
    with pytest.raises(DataError) as caught:
        corpora.load("tbd_q1", folder=folder)
    for words in [f"{name}.csv", *expected.split("|")]:
        assert words in str(caught.value)


@pytest.mark.parametrize("name", ["tbd_q1", "comperdial"])
def test_files_on_request_say_where_to_ask(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path))
    with pytest.raises(DataError) as caught:
        corpora.load(name)
    for words in [
        "not public",
        "ask the authors of",
        str(tmp_path / name),
        "data/README.md",
    ]:
        assert words in str(caught.value)


@pytest.mark.parametrize(
    "name, sample", [("tbd_q1", "bots"), ("comperdial", "personas/comperdial")]
)
def test_files_on_request_are_not_called_synthetic(name, sample):
    folder = storage.DATA / "sample" / sample
    assert corpora.load(name, folder=str(folder)).info["synthetic"] is False


# --- faults in a user's files ---------------------------------------------------------------------


HINTS = {
    "usr_topicl": "did you mean 'usr_topical'",
    "sample_bot": "did you mean 'sample_bots'",
    "goemotions": r"call data.goemotions\(\)",
    "xyz": r"see data.available\(\)",
}


@pytest.mark.parametrize("name, hint", HINTS.items())
def test_names_that_are_no_corpora_lead_on(name, hint):
    with pytest.raises(DataError, match=hint):
        corpora.load(name)


def test_a_public_corpus_is_not_read_from_a_folder_of_the_user(tmp_path):
    with pytest.raises(DataError, match="'usr_topical' is not read from a folder"):
        corpora.load("usr_topical", folder=tmp_path)


# --- what a notebook asks of a corpus -------------------------------------------------------------


ABSENT = [
    (["dialog"], {}, "no table of single dialogs"),
    (["turn", "human_fun"], {}, "or one of human_overall"),
    (["turn", "fact"], {}, "column 'fact'.*\n.*take another corpus"),
    (["turn"], {"single_ratings": True}, "only mean ratings are published"),
]


@pytest.mark.parametrize("needs, options, message", ABSENT)
def test_a_corpus_without_it_says_what_it_has(needs, options, message, folder):
    with pytest.raises(DataError, match=message):
        corpora.load("zhao_persona").table(*needs, **options)


# --- available ------------------------------------------------------------------------------------


def test_available_works_without_data(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALOGUE_DATA_DIR", str(tmp_path / "nothing here"))
    table = corpora.available()
    assert table["name"].is_unique
    entries = storage.registry()
    loadable = {*entries["corpora"], *entries["requested"], *entries["samples"]}
    assert loadable == set(LOADERS)
    assert loadable | set(entries["tables"]) == set(table["name"])
    assert {"tbd_q1", "comperdial", "sample_bots", "goemotions"} <= set(table["name"])
    on_disk = table.loc[table["on disk?"], "name"]
    assert on_disk.tolist() == ["sample_bots", "sample_personas"]
    for name, entry in entries["samples"].items():
        turns = corpora.load(name).turns
        assert len(turns) == entry["rows"]
        assert turns["system"].nunique() == entry["systems"]
    assert (table["licence"] != "").all()


def test_scores_of_another_number_of_rows_are_an_error():
    row = {"system": "A", "dialog": "d", "context": ["Hey"], "response": "Hi"}
    with pytest.raises(DataError, match="scores has 2 rows, the corpus 1"):
        corpora.corpus_parts([row], scores=pd.DataFrame({"score_x": [1.0, 2.0]}))
