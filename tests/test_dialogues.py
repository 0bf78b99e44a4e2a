"""The turn table: its shape, its checks, and reading a user's own file."""

import json
import math

import pandas as pd
import pytest

from lib.data import DataError, import_report, read_turns
from lib.data.turn_table import turn_table

# --- a user's own file ----------------------------------------------------------------------------

OWN = [
    {
        "system": "A",
        "dialog": "d1",
        "context": ["Hi", "Hey"],
        "response": "How are you?",
        "reference": ["Fine day!"],
        "human_overall": 4,
    },
    {
        "system": "A",
        "dialog": "d2",
        "context": [],
        "response": "🙂\nWell",
        "reference": [],
        "human_overall": None,
    },
]


def write(path, rows=OWN):
    """The same rows as CSV, TSV, JSONL, JSON or Parquet."""
    if path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    else:
        cells = pd.DataFrame(rows).map(
            lambda c: json.dumps(c) if isinstance(c, list) else c
        )
        cells.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_all_formats_give_the_same_table(kind, tmp_path):
    turns = read_turns(write(tmp_path / f"mine.{kind}"), scale=(1, 5))
    assert turns["context"].tolist() == [["Hi", "Hey"], []]
    assert turns["turn"].tolist() == [2, 0]
    assert turns["response"].tolist() == ["How are you?", "🙂\nWell"]
    assert turns["reference"].tolist() == [["Fine day!"], []]
    assert turns["agent"].tolist() == ["A", "A"]
    assert turns["human_overall"].iloc[0] == 4.0 and math.isnan(
        turns["human_overall"].iloc[1]
    )
    report = import_report(turns).set_index("unit")
    assert report.loc["ratings", ["read", "kept", "excluded"]].tolist() == [2, 1, 1]
    assert report.loc["ratings", "reasons"] == "1 left empty in human_overall"


def csv(tmp_path, body, name="mine.csv"):
    path = tmp_path / name
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    return path


def test_plain_cells_are_lines_of_context_and_one_reference(tmp_path):
    head = "system,dialog,context,response,reference,fact\n"
    row = read_turns(
        csv(tmp_path, head + 'A,1,"Hi\nHey",Oh,"two\nlines",[laughs] ok\n')
    ).iloc[0]
    assert row["context"] == ["Hi", "Hey"] and row["reference"] == ["two\nlines"]
    assert row["fact"] == ["[laughs] ok"]


READ = ["Hi, you", "Yo"]
LISTS = {
    "JSON": ('["Hi, you", "Yo"]', READ),
    "JSON with spaces": (' [ "Hi, you" , "Yo" ]', READ),
    "indented JSON": (json.dumps(READ, indent=2), READ),
    "a Python list, as pandas writes it": (str(READ), READ),
    "Python with both quotes": (str(["it's", 'a "b"']), ["it's", 'a "b"']),
    "an empty list": ("[ ]", []),
    "a printed array": ("['Hi' 'Yo']", None),
    "a printed array with its name": ("array(['Hi', 'Yo'], dtype=object)", None),
    "a printed array of texts": (
        "<ArrowStringArray>\n['Hi', 'Yo']\nLength: 2, dtype: str",
        None,
    ),
    "a list with a gap": ("[nan, 'Hi']", None),
    "a list cut off": ("['Hi', 'Y", None),
    "one text in brackets": ("[laughs] it's [NAME]", ["[laughs] it's [NAME]"]),
}


@pytest.mark.parametrize("case", LISTS)
def test_lists_in_cells_are_read_or_refused_never_misread(case, tmp_path):
    cell, expected = LISTS[case]
    path = tmp_path / "mine.csv"
    row = {
        "system": "A",
        "dialog": "1",
        "response": "x",
        "context": cell,
        "reference": cell,
    }
    pd.DataFrame([row]).to_csv(path, index=False)
    if expected is None:
        with pytest.raises(
            DataError, match="row 1, column 'context': .*not text or a whole list"
        ):
            read_turns(path)
    else:
        assert read_turns(path)[["context", "reference"]].values.tolist() == [
            [expected] * 2
        ]


def test_without_context_turns_count_within_the_dialog_and_whole_numbers_are_names(
    tmp_path,
):
    body = "system,dialog,response\nA,1,a\nA,2,b\nA,1,c\nB,1,d\n"
    assert read_turns(csv(tmp_path, body))["turn"].tolist() == [0, 0, 1, 0]
    path = write(
        tmp_path / "m.jsonl",
        [{"system": 7, "dialog": 12, "turn": 3.0, "response": "x"}],
    )
    assert read_turns(path)[["system", "dialog", "turn"]].values.tolist() == [
        ["7", "12", 3]
    ]


def test_mapped_and_extra_columns_and_ratings_under_a_similar_name(tmp_path):
    body = "bot,chat,said,liked,Human fun,model version\nA,1,x,5,0.5,v2\n"
    names = {
        "system": "bot",
        "dialog": "chat",
        "response": "said",
        "human_liking": "liked",
    }
    turns = read_turns(csv(tmp_path, body), names, (0, 5))
    cells = turns[["human_liking", "human_fun", "model version"]].values.tolist()
    assert cells == [[5.0, 0.5, "v2"]]
    assert ["columns", "human_fun='Human fun'", "by their names", 1] in turns.attrs[
        "guesses"
    ]
    with pytest.raises(DataError, match=r"row 1, column 'liked': rating 5 is outside"):
        read_turns(csv(tmp_path, body), names, (0, 1))


@pytest.mark.parametrize("blank", ["", "NA", "n/a", "NaN", "null", "None"])
def test_blank_ratings_are_nan_blank_responses_stay_and_both_are_counted(
    blank, tmp_path
):
    turns = read_turns(
        csv(tmp_path, f"system,dialog,response,human_x\nA,1,,{blank}\nA,2,r,3\n")
    )
    assert math.isnan(turns["human_x"].iloc[0]) and turns["response"].tolist() == [
        "",
        "r",
    ]
    assert import_report(turns)["excluded"].tolist() == [0, 1]
    assert import_report(turns)["notes"].iloc[0] == "1 empty, kept"


HEAD = "system,dialog,response,human_overall\n"
BAD = {
    "wrong column": ("system,dialog,respones\nA,1,x\n",
                     ["'response'", 'COLUMNS="response=respones"']),
    "misnamed optional column": ("system,dialog,response,contexts\nA,1,x,y\n",
                                 ["'context'", 'COLUMNS="context=contexts"']),
    "non-numeric rating": (HEAD + "A,1,x,4\nA,2,y,good\n", ["row 2", "'human_overall'", "'good'"]),
    "commas of thousands": (HEAD + 'A,1,x,"3,500"\n', ["row 1", "'3,500'", "not a number"]),
    "infinite rating": (HEAD + "A,1,x,inf\n", ["row 1", "'human_overall'"]),
    "rating out of scale": (HEAD + "A,1,x,6\n", ["row 1", "6 is outside the scale 1 to 5"]),
    "duplicate key": ("system,dialog,turn,response\nA,1,1,x\nB,1,1,x\nA,1,1,y\n",
                      ["row 3", "an earlier row has the same"]),
    "empty name": (HEAD + " ,1,x,4\n", ["row 1", "'system'", "is empty"]),
    "turn is a word": ("system,dialog,turn,response\nA,1,first,x\n", ["row 1", "'first'"]),
    "turn is negative": ("system,dialog,turn,response\nA,1,-1,x\n", ["row 1", "not a count"]),
    "broken list": ('system,dialog,response,context\nA,1,x,"[""a"", ""b"\n',
                    ["row 1", "'context'", "whole list"]),
    "list of numbers": ('system,dialog,response,context\nA,1,x,"[""a"", 3]"\n',
                        ["row 1", "'context'", "not text"]),
    "a cell too many": (HEAD + "A,1,x,4\nA,2,Well, yes,4\n", ["row 3 has 5 cells, the header 4"]),
    "a cell too few": (HEAD + "A,1\n", ["row 2 has 2 cells"]),
    "a title above": ("Our chats\n" + HEAD + "A,1,x,4\n",
                      ["row 2 has 4 cells, the header 1", "row 1 was taken for the header",
                       "delete what stands above the names"]),
    "empty line above": ("\n" + HEAD + "A,1\n", ["row 3 has 2 cells", "row 2 was taken for"]),
    "unclosed quote": (HEAD + 'A,1,"x,4\n', ["not a readable file"]),
    "column twice": ("system,dialog,response,response\nA,1,x,y\n", ["'response'", "two columns"]),
    "no header": ("", ["is empty"]),
    "utf16.csv": (HEAD.encode("utf-16"), ["no rows"]),
    "a.jsonl": (b'{"system": "A"}\n{"system": ', ["line 2", "cut off"]),
    "b.jsonl": (b"[1]\n", ["no chat log", "like this"]),
    "c.json": (b'{"rows": []}', ["no chat log", "like this"]),
    "d.parquet": (b"PAR1 not really", ["Parquet", "not a readable file"]),
    "e.xlsx": (b"PK", [".xlsx", "not a readable"]),
    "f.jsonl": (b'{"system":"A","dialog":"1","response":null}', ["row 1", "None"]),
    "g.json": (b"[" * 100_000, ["not a readable file"]),
    "h.jsonl": (b'{"system":"A","dialog":"1","response":"\\ud800"}', ["row 1", "not text"]),
    "i.jsonl": (b'{"system":"A","dialog":"1","response":"x","fact":[null]}', ["[None]"]),
    "j.jsonl": (b'{"system":"A","dialog":"1","response":"x","human_x":true}', ["True"]),
    "k.jsonl": (b'{"system":["A"],"dialog":"1","response":"x"}', ["'system'", "not text"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_names_the_place(case, tmp_path):
    body, expected = BAD[case]
    path = csv(tmp_path, body, case if isinstance(body, bytes) else "mine.csv")
    with pytest.raises(DataError) as caught:
        read_turns(path, scale=(1, 5))
    assert str(path) in str(caught.value)
    for words in expected:
        assert words in str(caught.value)


def test_empty_lines_above_the_header_are_no_header(tmp_path):
    rows = "A;1;x;4\nA;2;y;5\n"
    turns = read_turns(csv(tmp_path, "\n\n" + HEAD.replace(",", ";") + rows))
    assert turns["response"].tolist() == ["x", "y"]


MAPPINGS = [
    ({"respons": "response"}, 'COLUMNS="response=respons"'),
    ({"response": "reply"}, "'reply': this mapped column is missing"),
    ({"system": "dialog"}, "'system': two columns of the file"),
]


@pytest.mark.parametrize(("names", "words"), MAPPINGS)
def test_bad_mappings(names, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read_turns(csv(tmp_path, HEAD + "A,1,x,4\n"), names)


def test_reports_and_files_only_where_there_are_some(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_turns(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="no import report"):
        import_report(turn_table(OWN))
