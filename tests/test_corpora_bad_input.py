"""Faulty files: each fault is named with its place; harmless variants are no faults."""

import json
import math

import pandas as pd
import pytest
import small_corpora as small

from lib.data import corpora
from lib.data.corpora import catalogue, downloads, requested
from lib.data.dialogues import DataError


@pytest.fixture
def folder(tmp_path):
    return small.write(tmp_path)


@pytest.fixture
def fetch(folder):
    return lambda key: folder / key


def load(name, fetch):
    return catalogue.PUBLIC[name](fetch)


def edit(key, change):
    """A fault in a JSON file: parse, change, write."""

    def apply(folder):
        value = json.loads((folder / key).read_text(encoding="utf-8"))
        value = change(value) or value
        small.dump(folder / key, value)

    return apply


def replace(key, old, new):
    """A fault in the bytes of a file."""

    def apply(folder):
        raw = (folder / key).read_bytes()
        assert old in raw
        (folder / key).write_bytes(raw.replace(old, new, 1))

    return apply


def cut(key, size):
    """A file that was cut off."""
    return lambda folder: (folder / key).write_bytes((folder / key).read_bytes()[:size])


TC, FED = "usr/tc_usr_data.json", "fed/fed_data.json"
PRED = "predictive_engagement/Eng_Scores_queries_gen_gtruth_replies.csv"
BETTER = "predictive_engagement/humanAMT_engscores_utt.csv"
JI = "dialogue_eval_ji2022/pass_free(run2).json"
ZP = "dstc10/persona-zhao_eval.json"
GRADE = "grade_convai2_bert_ranker"
CTX = f"grade/eval_data/{small.GRADE_SET}/human_ctx.txt"
REF = f"grade/eval_data/{small.GRADE_SET}/human_ref.txt"
ZHAO = "comp_analysis/turn_level_ratings_subset/turn_overall_ratings.subset.json"
BAD = {
    "wrong field": (
        "usr_topical",
        edit(TC, lambda d: d[1].__setitem__("contxt", d[1].pop("context"))),
        [TC, "row 2", "'context'", "did you mean 'contxt'?"],
    ),
    "wrong column": (
        "better",
        replace(BETTER, b"reply", b"replay"),
        [BETTER, "'reply'", "did you mean 'replay'?"],
    ),
    "non-numeric rating": (
        "usr_topical",
        edit(TC, lambda d: d[1]["responses"][1]["Overall"].__setitem__(0, "good")),
        [TC, "row 4", "'overall'", "'good'", "not a number"],
    ),
    "rating out of scale": (
        "usr_topical",
        edit(TC, lambda d: d[0]["responses"][1]["Overall"].__setitem__(0, 6)),
        [TC, "row 2", "'overall'", "6 is outside the scale 1 to 5"],
    ),
    "boolean rating": (
        "fed_turn",
        edit(FED, lambda d: d[0]["annotations"]["Fluent"].__setitem__(0, True)),
        [FED, "row 1", "'fluent'", "True"],
    ),
    "rating is NaN": (
        "fed_turn",
        edit(FED, lambda d: d[0]["annotations"]["Fluent"].__setitem__(0, math.nan)),
        [FED, "'fluent'", "nan"],
    ),
    "a rating too few": (
        "usr_topical",
        edit(TC, lambda d: d[0]["responses"][0].update(Natural=[1, 2])),
        [TC, "row 1", "'natural'", "not a list of 3 ratings"],
    ),
    "missing reference": (
        "grade_convai2_bert_ranker",
        replace(REF, b"good day .", b" "),
        [REF, "row 2", "the reference is empty"],
    ),
    "a line too few": (
        "grade_convai2_bert_ranker",
        replace(REF, b"good day .\n", b""),
        [REF, "has 2 lines"],
    ),
    "truncated JSON": ("fed_turn", cut(FED, 900), [FED, "line 1", "seems to be cut off"]),
    "truncated archive": (
        "dstc7",
        cut("dstc7/dstc7-task2-human_eval.tgz", 200),
        ["human_eval.tgz", "not a complete archive"],
    ),
    "Latin-1": ("usr_topical", replace(TC, b"true reply", b"true r\xe9ply"), [TC, "0xe9", "UTF-8"]),
    "UTF-16": (
        "better",
        lambda f: (f / BETTER).write_bytes("id,query".encode("utf-16")),
        [BETTER, "UTF-16"],
    ),
    "unclosed quote": ("predeng600", cut(PRED, -20), [PRED, "line"]),
    "a cell too many": (
        "better",
        replace(BETTER, b"Hello,1", b"Hello,1,2"),
        [BETTER, "row 1", "has 5 cells"],
    ),
    "label not 0 or 1": (
        "better",
        replace(BETTER, b"Hello,1", b"Hello,2"),
        [BETTER, "row 1", "'engaging'", "2 is outside"],
    ),
    "no speaker": (
        "fed_turn",
        edit(FED, lambda d: d[0].__setitem__("context", "Hi!")),
        [FED, "row 1", "does not start with a speaker"],
    ),
    "unknown dimension": (
        "dstc10_persona_zhao",
        edit(ZP, lambda d: d[2]["annotations"].__setitem__("mood", [1])),
        [ZP, "row 3", "'mood'", "not a known dimension"],
    ),
    "raw score out of scale": (
        "ji2022",
        edit(JI, lambda d: d[0]["data"][0]["raw scores"].update(fun=101)),
        [JI, "row 1", "raw scores: fun", "0 to 100"],
    ),
    "lone surrogate": (
        "ji2022",
        replace(JI, b"bot A 11 0", b"bot \\ud800"),
        [JI, "row 1", "surrogate"],
    ),
    "a rating too many": (
        "zhao_persona",
        edit(ZHAO, lambda d: d["persona-zhao"].append(1)),
        [ZHAO, "persona-zhao", "13 ratings for 12"],
    ),
    "set not in the file": (
        "zhao_persona",
        edit(ZHAO, lambda d: {"other": []}),
        [ZHAO, "'persona-zhao'", "missing"],
    ),
    "JSON of another shape": ("fed_turn", edit(FED, lambda d: {"items": d}), [FED, "JSON list"]),
    "empty file": ("better", cut(BETTER, 0), [BETTER, "empty"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_the_place(case, folder, fetch):
    name, break_it, expected = BAD[case]
    break_it(folder)
    with pytest.raises(DataError) as caught:
        load(name, fetch)
    for words in expected:
        assert words in str(caught.value)


def test_a_repeated_key_is_refused(folder, monkeypatch):
    edit("usr/pc_usr_data.json", lambda d: d[0]["responses"].append(d[0]["responses"][1]))(folder)
    monkeypatch.setattr(downloads, "path", lambda key: folder / key)
    with pytest.raises(DataError) as caught:
        corpora.load("usr_persona")
    assert "row 3" in str(caught.value) and "repeats the key of row 2" in str(caught.value)


@pytest.mark.parametrize("key, name", [(TC, "usr_topical"), (BETTER, "better"), (CTX, GRADE)])
def test_marks_and_windows_line_ends_change_nothing(key, name, folder, fetch):
    before = load(name, fetch)["turns"]
    raw = (folder / key).read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    (folder / key).write_bytes(b"\xef\xbb\xbf" + raw)
    pd.testing.assert_frame_equal(load(name, fetch)["turns"], before)


def test_embedded_newlines_and_emoji_survive(folder, fetch):
    small.table(
        folder / BETTER, [["id", "query", "reply", "label"], [0, "one\ntwo", '🙂 "so",\n end', 1]]
    )
    row = load("better", fetch)["turns"].iloc[0]
    assert row["context"] == ["one\ntwo"] and row["response"] == '🙂 "so",\n end'


def test_unknown_corpus_suggests_a_name():
    with pytest.raises(DataError, match="did you mean 'usr_topical'"):
        corpora.load("usr_topicl")


HEAD = "system,agent,dialog,turn,speaker,text\n"
RATED = small.TURN_RATINGS
BAD_BOTS = {
    "gap in turns": (
        {"turns_csv": HEAD + "A,A1,d,0,user,Hi\nA,A1,d,2,system,Oh\n"},
        ["turns.csv", "row 2", "'turn'", "expected 1"],
    ),
    "turn not a number": ({"turns_csv": HEAD + "A,A1,d,first,user,Hi\n"}, ["row 1", "'first'"]),
    "speaker": ({"turns_csv": HEAD + "A,A1,d,0,bot,Hi\n"}, ["row 1", "'speaker'", "'bot'"]),
    "two agents": ({"turns_csv": HEAD + "A,A1,d,0,user,Hi\nA,A2,d,1,system,Oh\n"}, ["two agents"]),
    "rated user turn": (
        {"turn_ratings_csv": RATED + "d,0,x,Overall,4\n"},
        ["turn_ratings.csv", "row 1", "not a rated item"],
    ),
    "rated twice": (
        {"turn_ratings_csv": RATED + "d,1,x,Overall,4\nd,1,x,overall,5\n"},
        ["turn_ratings.csv", "row 2", "repeats the judgement of row 1"],
    ),
    "out of scale": (
        {"turn_ratings_csv": RATED + "d,1,x,Overall,0\n"},
        ["row 1", "outside the scale"],
    ),
    "no rows": ({"turns_csv": HEAD}, ["turns.csv", "no rows"]),
    "reference of nothing": (
        {"references_csv": "dialog,turn,reference\nd,0,Fine\n"},
        ["references.csv", "'d', turn 0"],
    ),
    "no user": ({"dialogs_csv": "dialog,user\ne,u1\n"}, ["dialogs.csv", "'d'"]),
}


@pytest.mark.parametrize("case", BAD_BOTS)
def test_bad_input_of_three_bots(case, tmp_path):
    changes, expected = BAD_BOTS[case]
    with pytest.raises(DataError) as caught:
        requested.three_bots(small.bots(tmp_path, **changes))
    for words in expected:
        assert words in str(caught.value)
