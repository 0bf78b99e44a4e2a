"""Comment dumps to Parquet: every form of the records, every kind of broken file."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import comment_dump
import duckdb
import pandas as pd
import pytest
import red_oracle
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ROOT
from lib.data import storage
from lib.data.storage import archive_members
from lib.endex import red, reddit
from lib.endex.reddit import decompressed_blocks

RECORD = {
    "id": "c1",
    "parent_id": "t1_c0",
    "link_id": "t3_l",
    "created_utc": 1_388_534_400,
}
RECORD |= {"subreddit": "soup", "author": "ann", "body": "The pumpkin soup isn't hot"}
RECORD |= {"score": 3, "controversiality": 0, "edited": False}


def read(folder: Path) -> pd.DataFrame:
    return duckdb.sql(
        f"select * from '{folder}/**/*.parquet' order by created, id"
    ).df()


def only_row(tmp_path: Path, **changes) -> pd.Series:
    """The row that one record becomes."""
    dump = tmp_path / "one.ndjson"
    dump.write_text(json.dumps(RECORD | changes) + "\n")
    reddit.to_parquet([dump], tmp_path / "out")
    return read(tmp_path / "out").iloc[0]


TIMES = (1388534400, "1388534400", 1388534400.0, "1388534400.0")
EDITED = (True, 1388534499, 1388534499.0, "1388534499")
UNUSABLE = [
    {"body": "[deleted]"},
    {"body": "[removed]"},
    {"author": "[deleted]"},
    {"author": None},
]


@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [({"edited": value}, "edited", True) for value in EDITED]
    + [({"edited": value}, "edited", False) for value in (False, "false", 0, 0.0)]
    + [
        ({"edited": None}, "edited", None),
        ({"controversiality": None}, "controversial", None),
    ]
    + [({"created_utc": value}, "created", 1388534400) for value in TIMES]
    + [({"created_utc": value}, "created", None) for value in (None, "", "yesterday")]
    + [
        ({"score": field}, "score", value)
        for field, value in ((-4, -4), ("5", 5), (5.0, 5))
    ]
    + [
        ({"score": None}, "score", None),
        ({"score": 9, "score_hidden": True}, "score", None),
    ]
    + [
        ({"score": 9, "score_hidden": False}, "score", 9),
        ({}, "usable", True),
        ({}, "tokens", 3),
    ]
    + [({"author": "AutoModerator"}, "usable", False), (UNUSABLE[0], "tokens", None)]
    + [(changes, "usable", False) for changes in UNUSABLE]
    + [({"body": f"{mark} so\n\nno"}, "quote", True) for mark in ("&gt;", ">")]
    + [
        ({"body": "5 > 4"}, "quote", False),
        ({"controversiality": 1}, "controversial", True),
    ]
    + [
        ({}, "parent", "c0"),
        ({"parent_id": "t3_l"}, "parent", None),
        ({}, "link", "l"),
    ],
)
def test_a_field_in_every_form_that_dumps_give_it(tmp_path, changes, column, value):
    cell = only_row(tmp_path, **changes)[column]
    assert pd.isna(cell) if value is None else cell == value


TEXTS = st.text(
    st.sampled_from("abdehimnostuwy 'I_D-0.\n\u00e9\u212a"), min_size=1, max_size=60
)


def content_words(texts, folder):
    """Content words of replies to comments, as the Parquet has them."""
    lines = [
        json.dumps(RECORD | {"id": f"{n:03d}", "body": t}) for n, t in enumerate(texts)
    ]
    (folder / "words.ndjson").write_text("\n".join(lines))
    reddit.to_parquet([folder / "words.ndjson"], folder / "out")
    return read(folder / "out")["tokens"].tolist()


@given(st.lists(TEXTS, min_size=40, max_size=60))
@settings(max_examples=10, deadline=None)
def test_content_words_are_those_of_the_definition(tmp_path_factory, texts):
    expected = [red_oracle.tokens(text) for text in texts]
    assert content_words(texts, tmp_path_factory.mktemp("texts")) == expected


def test_content_words_of_every_stop_word(tmp_path, monkeypatch):
    texts = [f"{word} {word}x {word}' {word}" for word in sorted(reddit.stop_words())]
    assert content_words(texts, tmp_path) == [2] * 179
    monkeypatch.setattr(
        reddit, "stop_words", lambda: {"you're"}
    )  # another list: counted anew
    assert content_words(texts, tmp_path)[:2] == [4, 4]


@pytest.mark.parametrize(
    "options",
    [{}, {"frames": 3}, {"window_log": 31}],
    ids=["plain window", "frames", "2 GiB"],
)
def test_dumps_are_read_whole_in_any_compression(tmp_path, options, monkeypatch):
    monkeypatch.setattr("lib.endex.reddit.READ_SIZE", 20_000)
    dump = comment_dump.write(tmp_path / "RC_2019-01.zst", 3000, **options)
    if "window_log" in options:
        with pytest.raises(zstandard.ZstdError, match="memory"), dump.open("rb") as raw:
            zstandard.ZstdDecompressor().stream_reader(raw).read(10)
    plain = comment_dump.write(tmp_path / "plain.ndjson", 3000)
    assert b"".join(decompressed_blocks(dump)) == plain.read_bytes()
    monkeypatch.setattr("lib.endex.reddit.PIECE_SIZE", 500_000)
    report = reddit.to_parquet([dump], tmp_path / "out")
    assert len(list((tmp_path / "out/RC_2019-01.zst").glob("part-*.parquet"))) > 3
    assert report.loc[0, ["lines", "bad_lines", "comments"]].tolist() == [3000, 0, 3000]


@pytest.mark.parametrize("piece_bytes", [400, 1000, 10_000_000])
def test_pieces_at_the_same_time_give_the_dump_in_its_order(
    tmp_path, piece_bytes, monkeypatch
):
    monkeypatch.setattr("lib.endex.reddit.READ_SIZE", 300)
    monkeypatch.setattr("lib.endex.reddit.PIECE_SIZE", piece_bytes)
    bad = [2, 7, *range(40, 100, 2)]
    lines = [json.dumps(RECORD | {"id": f"c{n}"}) for n in range(100)]
    dump = tmp_path / "RC.ndjson"
    dump.write_text(
        "\n".join("{" if n in bad else line for n, line in enumerate(lines)) + "\n"
    )
    report = reddit.to_parquet([dump], tmp_path / "out").iloc[0]
    assert (report["lines"], report["bad_lines"], report["comments"]) == (100, 32, 68)
    files = reddit.parquet_files(tmp_path / "out")
    assert len(files) == 1 if piece_bytes == 10_000_000 else len(files) > 5
    written = [row for file in files for row in pd.read_parquet(file)["id"]]
    assert written == [f"c{n}" for n in range(100) if n not in bad]
    names = {path.suffix for path in (tmp_path / "out/RC.ndjson").iterdir()}
    assert names == {".parquet", ".json"}, "pieces are left"


def test_a_dump_of_something_else_is_refused_at_its_first_piece(tmp_path, monkeypatch):
    dump = tmp_path / "RC.ndjson"
    dump.write_text('{"id": "c2"}\n' * 999 + json.dumps(RECORD) + "\n")
    assert reddit.to_parquet([dump], tmp_path / "out").loc[0, "bad_lines"] == 999
    monkeypatch.setattr("lib.endex.reddit.READ_SIZE", 300)
    monkeypatch.setattr("lib.endex.reddit.PIECE_SIZE", 2000)
    with pytest.raises(reddit.DumpError, match="no Reddit comment in the first"):
        reddit.to_parquet([dump], tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


def test_finished_files_are_kept_and_failures_named(tmp_path):
    good = comment_dump.write(tmp_path / "RC_2019-01.zst", 300)
    whole = comment_dump.write(tmp_path / "x.zst", 3000).read_bytes()
    other, empty = (f"no Reddit comment in the first {n} lines" for n in (1, 0))
    files = {
        "RC_2.zst": (whole[:-500], "cut off inside a frame"),
        "RC_3.zst": (b"<html>not found</html>", other),
        "RC_4.zst": (zstandard.compress(b""), empty),
        # At some times the packed bytes hold a line break.
        "RC_5.gz": (gzip.compress(b"{}", mtime=1), other),
        "RC_6.ndjson": (b"\n \n\n", empty),
        "RC_7.zst": (whole[:4] + b"\xff" * 64, "damaged before byte"),
        "RS_1.ndjson": (
            b'{"id": "a", "title": "hello", "selftext": "", "score": 1}',
            other,
        ),
    }
    for name, (content, _) in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(reddit.DumpError) as error:
        reddit.to_parquet(
            [good, *(tmp_path / name for name in files)], tmp_path / "out"
        )
    for name, (_, problem) in files.items():
        assert f"{name}: {problem}" in str(error.value)
    assert "1 other dump(s) are finished and kept" in str(error.value)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["RC_2019-01.zst"]
    assert reddit.to_parquet([good], tmp_path / "out").loc[0, "comments"] == 300


def test_finished_files_are_not_read_again(tmp_path, monkeypatch):
    dump = comment_dump.write(tmp_path / "RC.zst", 300)
    first = reddit.to_parquet([dump], tmp_path / "out")
    part = tmp_path / "out/RC.zst/part-00000.parquet"
    written = part.stat().st_mtime_ns
    assert reddit.to_parquet([dump], tmp_path / "out").equals(first)
    assert part.stat().st_mtime_ns == written
    monkeypatch.setattr(reddit, "BOTS", ["user_7"])  # another recipe: again
    reddit.to_parquet([dump], tmp_path / "out")
    assert part.stat().st_mtime_ns != written


@pytest.mark.public
def test_all_record_generations_are_read(tmp_path):
    dump = storage.data_folder() / "pushshift_sample/test_comments.json"
    report = reddit.to_parquet([dump], tmp_path)
    assert report.loc[0, ["lines", "bad_lines", "comments"]].tolist() == [27, 0, 27]
    rows = read(tmp_path)
    assert (
        rows["created"].between(1_130_000_000, 1_710_000_000).all()
        and not rows["edited"].any()
    )


@pytest.mark.public
def test_real_edits_and_controversy_are_found(tmp_path):
    """In RumourEval 2019, as the Reddit API gave it; a "more" stands for what was not fetched."""
    folder = storage.data_folder() / "reddit_rumoureval2019"
    archive = folder / "rumoureval-2019-reddit-test-data.tar.gz"
    replies = [json.loads(raw) for _, raw in archive_members(archive, "/replies/")]
    lines = [json.dumps(reply["data"]) for reply in replies if reply["kind"] != "more"]
    (tmp_path / "rumoureval.ndjson").write_text("\n".join(lines))
    reddit.to_parquet([tmp_path / "rumoureval.ndjson"], tmp_path / "out")
    rows = read(tmp_path / "out")
    assert (len(rows), rows["edited"].sum(), rows["controversial"].sum()) == (
        665,
        35,
        40,
    )
    assert rows["parent"].isna().sum() == 189


@pytest.mark.public
def test_real_threads_have_the_documented_medians(tmp_path, monkeypatch):
    monkeypatch.setattr(reddit, "CACHE", tmp_path)
    folder, report = reddit.comments("reddit_college")
    assert report.loc[0, ["bad_lines", "comments"]].tolist() == [0, 38303]
    rows = read(folder)
    replies = rows.groupby("parent").agg(re=("id", "size"), t=("tokens", "max"))
    answered = rows.set_index("id").join(replies, how="inner")
    assert (len(rows), len(answered)) == (38303, 15923)
    assert answered[["re", "score", "t"]].median().tolist() == [1, 2, 14]


NESTED = "[" * 10_000 + "]" * 10_000


@pytest.mark.parametrize("ending", ["ndjson", "zst"])
def test_lines_of_any_size_and_depth_are_counted_and_skipped(tmp_path, ending):
    """Defect S9: one line nested deeply, or one of 100 MB, ended the whole dump."""
    good = json.dumps(RECORD)
    longest = json.dumps(RECORD | {"id": "c2", "body": "soup " * 800_000})
    lines = [
        good,
        NESTED,
        "x" * 100_000_000,
        longest,
        json.dumps({"a": "b" * 2**23}),
        good,
    ]
    lines += [
        '{"id": "c3',
        "[1]",
        "",
        json.dumps({"id": "c2", "parent_id": "t1_x"}),
        good,
    ]
    data = "\n".join(lines).encode()
    dump = tmp_path / f"RC.{ending}"
    dump.write_bytes(data if ending == "ndjson" else zstandard.compress(data))
    report = reddit.to_parquet([dump], tmp_path / "out").iloc[0]
    assert (report["lines"], report["bad_lines"], report["comments"]) == (10, 6, 4)
    assert read(tmp_path / "out").set_index("id").loc["c2", "tokens"] == 800_000


def test_an_archive_that_unpacks_to_gigabytes_is_read_in_bounded_memory(tmp_path):
    """Defect S9: 100 KB that unpack to gigabytes were held in memory at once."""
    dump = tmp_path / "RC.zst"
    with dump.open("wb") as raw, zstandard.ZstdCompressor().stream_writer(raw) as out:
        out.write(json.dumps(RECORD).encode() + b"\n")
        for _ in range(3000):
            out.write(bytes(1_000_000))
    code = "import re, resource, sys; from lib.endex import to_parquet\n"
    code += (
        "used = re.search(r'VmData:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"
    )
    code += "resource.setrlimit(resource.RLIMIT_DATA, (int(used) * 1024 + 1_000_000_000,) * 2)\n"
    code += "print(to_parquet(sys.argv[1:2], sys.argv[2])[['lines', 'bad_lines']].values.tolist())"
    command = [sys.executable, "-c", code, dump, tmp_path / "out"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.strip() == "[[2, 1]]", ran.stderr[-2000:]
    assert dump.stat().st_size < 1_000_000


def test_two_dumps_of_one_stem_are_both_read(tmp_path):
    """Defect S2: RC_2.jsonl and RC_2.ndjson overwrote each other."""
    named = [tmp_path / "RC_2.jsonl", tmp_path / "RC_2.ndjson"]
    for number, dump in enumerate(named):
        dump.write_text(json.dumps(RECORD | {"id": f"c{number}"}) + "\n")
    assert reddit.to_parquet(named, tmp_path / "out")["comments"].sum() == 2
    assert read(tmp_path / "out")["id"].tolist() == ["c0", "c1"]
    twin = tmp_path / "other" / "RC_2.jsonl"
    twin.parent.mkdir()
    twin.write_text(json.dumps(RECORD))
    with pytest.raises(reddit.DumpError, match="two dumps have the same name"):
        reddit.to_parquet([*named, twin], tmp_path / "new")


def test_comments_are_those_of_the_folder_that_was_named(tmp_path, monkeypatch):
    """Defect S1: folders of one name were mixed, and a replaced dump stayed."""
    monkeypatch.setattr(reddit, "CACHE", tmp_path / "cache")
    sample, _ = reddit.comments("sample")
    before = len(read(sample))

    def ids(folder, dump, name):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / dump).write_text(json.dumps(RECORD | {"id": name}) + "\n")
        return read(reddit.comments(folder)[0])["id"].tolist()

    assert ids(tmp_path / "a" / "sample", "RC_1.ndjson", "a1") == ["a1"]
    assert ids(tmp_path / "b" / "sample", "RC_2.ndjson", "b1") == ["b1"]
    assert ids(tmp_path / "b" / "sample", "RC_2.ndjson", "b2") == [
        "b2"
    ]  # replaced, equally long
    (tmp_path / "b" / "sample" / "RC_2.ndjson").unlink()
    assert ids(tmp_path / "b" / "sample", "RC_3.ndjson", "b3") == ["b3"]
    assert len(read(reddit.comments("sample")[0])) == before


ASK = """
import sys
from pathlib import Path
from lib.endex import reddit

reddit.CACHE = Path(sys.argv[1])
reddit.PIECE_SIZE = reddit.READ_SIZE = 20_000
print("ready", flush=True)
sys.stdin.readline()
folder, report = reddit.comments(sys.argv[2])
print(report["comments"].sum(), sum(1 for file in reddit.parquet_files(folder)))
"""


def test_processes_that_ask_for_the_same_comments_at_once_both_get_them(tmp_path):
    """Notebooks 05 and 06 on an empty cache: one removed the folder that the other wrote to."""
    (tmp_path / "dumps").mkdir()
    comment_dump.write(tmp_path / "dumps" / "RC_1.ndjson", 3000)
    comment_dump.write(tmp_path / "dumps" / "RC_2.ndjson", 3000, first_id=36**6 + 3000)
    command = [sys.executable, "-c", ASK, tmp_path / "cache", tmp_path / "dumps"]
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "cwd": ROOT,
    }
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate()[0] for process in processes]
    assert answers[0] == answers[1] and answers[0].startswith("6000 ")
    assert [process.returncode for process in processes] == [0, 0]


def test_a_name_given_again_stands_for_the_new_rows_alone(tmp_path):
    """An engine that is used again must not answer with the scores of the run before."""
    file = tmp_path / "it's.parquet"
    pd.DataFrame({"id": ["a"], "ee": [0.5]}).to_parquet(file)
    engine = red.DuckDB()

    def rows(name):
        return engine.frame(f"select * from {name}").to_numpy().tolist()

    engine.view("emotions", "select 'b' as id, null as ee limit 0")
    engine.read("emotions", [file])
    assert rows("emotions") == [["a", 0.5]]
    for materialize, number in ((True, 1), (False, 2), (True, 3)):
        engine.view("single", f"select {number} as n", materialize=materialize)
        assert rows("single") == [[number]]
    engine.read("single", [file])
    assert rows("single") == [["a", 0.5]]
