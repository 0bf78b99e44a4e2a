"""Logs of many tools, each written from dialogs by a template and read back."""

import bz2
import gzip
import json
import lzma
import random
import struct
import time
import zipfile
import zlib

import pandas as pd
import pyarrow as pa
import pytest
import zstandard
from log_example_files import DIALOGS, examples, expected, options, written
from pyarrow import parquet
from test_chat_logs import workbook

from lib.data import DataError, import_report, read_turns
from lib.data.chat_logs import read_dialogs
from lib.data.dialogs import is_threaded, order_keys, read_written_times
from lib.data.file_contents import ImportOptions, ImportReport, read_contents
from lib.data.log_files import Source, find_files

FORMATS = {example.name: example for example in examples("formats.txt")}
SCHEMAS = {
    example.name: example
    for file in (
        "schemas.txt",
        "further.txt",
        "later.txt",
        "assistants.txt",
        "elsewhere.txt",
        "messengers.txt",
        "platforms.txt",
    )
    for example in examples(file)
}
REFUSED = [name for name, example in SCHEMAS.items() if "ask" in example.flags]


def read_back(example, folder, dialogs=DIALOGS):
    """The replies and contexts that are read from the file of a template."""
    file = folder / example.name
    file.write_text(written(example, dialogs), encoding="utf-8")
    return replies_of(file, example)


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_is_read(name, tmp_path):
    example = FORMATS[name]
    assert read_back(example, tmp_path) == expected(example, DIALOGS)


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in REFUSED])
def test_a_file_after_a_public_schema_is_read(name, tmp_path):
    example = SCHEMAS[name]
    assert read_back(example, tmp_path) == expected(example, DIALOGS)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_nothing_is_sure_of_is_refused(name, tmp_path):
    with pytest.raises(DataError):
        read_back(SCHEMAS[name], tmp_path)


ALL = SCHEMAS | FORMATS
ASKED = [name for name, example in FORMATS.items() if "bot" in options(example)]
ASKED += [name for name, example in SCHEMAS.items() if "ask-without" in example.flags]


@pytest.mark.parametrize("name", ASKED)
def test_where_nothing_tells_the_bot_it_is_asked_for(name, tmp_path):
    file = tmp_path / name
    file.write_text(written(ALL[name], DIALOGS), encoding="utf-8")
    with pytest.raises(DataError, match="BOT="):
        read_turns(file)


SHUFFLED = [  # rows that hold a history, or ids that are no numbers
    "convokit.jsonl",
    "oasst_messages.jsonl",
    "langfuse.json",
    "langsmith.jsonl",
    "portkey.jsonl",
    "opik_traces.json",
    "dialogflow_bigquery.jsonl",
    "request_log.jsonl",
    "exchange_shuffled.csv",
    "session_user_bot_time.csv",
]


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
@pytest.mark.parametrize("name", SHUFFLED)
def test_the_order_of_rows_with_ids_or_times_says_nothing(name, order, tmp_path):
    example = ALL[name]
    file = tmp_path / name
    file.write_text(with_other_order(example, order, within=False), encoding="utf-8")
    assert replies_of(file, example) == expected(example, DIALOGS)


# Dialogs that only the order of rows tells, and clocks without a day.
ROW_ORDER = ("turn_restarts.csv", "time_only_newest.csv")


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_what_holds_times_or_numbers_reads_the_same_in_any_order(order, tmp_path):
    tried = 0
    for example in ALL.values():
        file = tmp_path / example.name
        file.write_text(written(example, DIALOGS), encoding="utf-8")
        if "ask" in example.flags or not tells_its_order(file, example):
            continue
        if example.name in ROW_ORDER:
            continue
        file.write_text(with_other_order(example, order), encoding="utf-8")
        assert replies_of(file, example) == expected(example, DIALOGS), example.name
        tried += 1
    assert tried >= 60


def tells_its_order(file, example):
    """Whether each utterance has a time, a number or what it answers."""
    report = ImportReport(file, ImportOptions(bot=options(example).get("bot")))
    source = Source(next(iter(find_files(file, report))), report)
    value = read_contents(source.file, report)
    dialogs = None if isinstance(value, str) else read_dialogs(value, source)
    if not dialogs:
        return False
    read_written_times(dialogs)
    return all(is_threaded(dialog) or has_order(dialog) for dialog in dialogs)


def has_order(dialog):
    """Whether at most a user's words and the reply to them have the same place."""
    return 2 * len(set(order_keys(dialog))) >= len(dialog.utterances)


def with_other_order(example, order, within=True):
    """The file of a template with its rows, and the messages in them, in another order."""
    text = written(example, DIALOGS)
    if example.name.endswith((".csv", ".tsv")):
        header, *rows = text.strip().split("\n")
        reorder(rows, order)
        return "\n".join([header, *rows]) + "\n"
    value = read_json_or_lines(text)
    for rows in lists_in(value, within):
        reorder(rows, order)
    if example.name.endswith("jsonl"):
        return "\n".join(map(json.dumps, value)) + "\n"
    return json.dumps(value)


def reorder(rows, order):
    """Turn a list around, or shuffle it."""
    if order == "reversed":
        rows.reverse()
    else:
        random.Random(2).shuffle(rows)


def replies_of(file, example):
    """The replies and contexts in a file."""
    turns = read_turns(file, options=options(example))
    contexts = [tuple(context) for context in turns["context"]]
    return sorted(zip(contexts, turns["response"], strict=True))


def read_json_or_lines(text):
    """A JSON value, or the list of those on the lines."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.strip().split("\n")]


def lists_in(value, within):
    """The lists of mappings in a file: of rows or messages, not of the blocks of a message."""
    lists = []
    to_visit = [value]
    while to_visit:
        item = to_visit.pop()
        if isinstance(item, dict):
            to_visit += item.values()
        elif isinstance(item, list):
            if is_message_list(item):
                lists.append(item)
            to_visit += item if within or not lists else []
    return lists


def is_message_list(items):
    """Whether items are mappings with more than a type and words."""
    if not all(isinstance(item, dict) for item in items):
        return False
    keys = set().union(*items)
    return bool(keys - {"type", "text", "content", "value", "kind"})


PACKS = {
    "log.jsonl.gz": gzip.compress,
    "log.jsonl.bz2": bz2.compress,
    "log.jsonl.xz": lzma.compress,
    "log.jsonl.zst": zstandard.compress,
}


@pytest.mark.parametrize("name", PACKS)
def test_packed_files_are_read(name, tmp_path):
    example = FORMATS["openai.jsonl"]
    file = tmp_path / name
    file.write_bytes(PACKS[name](written(example, DIALOGS).encode()))
    assert len(read_turns(file)) == 6


def slack_folder(folder):
    """An export of Slack: a channel on two days, with a thread that goes over midnight."""
    accounts = [
        {
            "id": "U1",
            "name": "mira",
            "profile": {"display_name": "mira"},
            "is_bot": False,
        },
        {"id": "U2", "name": "ada", "profile": {"real_name": "Ada"}, "is_bot": True},
    ]
    first = {
        "type": "message",
        "user": "U1",
        "text": "<@U2> Tea &amp; cake?",
        "ts": "1741129100.1",
    }
    reply = {"type": "message", "user": "U2", "text": "At four.", "ts": "1741129200.1"}
    later = {"type": "message", "user": "U1", "text": "<@U1> ok", "ts": "1741139300.1"}
    last = {
        "type": "message",
        "bot_id": "B1",
        "username": "Ada",
        "text": "Fine.",
        "ts": "1741139400.1",
    }
    for message in (first, reply, later, last):
        message["thread_ts"] = first["ts"]
    (folder / "help").mkdir(parents=True)
    (folder / "users.json").write_text(json.dumps(accounts))
    (folder / "channels.json").write_text(json.dumps([{"id": "C1", "name": "help"}]))
    (folder / "help" / "2025-03-04.json").write_text(json.dumps([first, reply]))
    (folder / "help" / "2025-03-05.json").write_text(json.dumps([later, last]))


@pytest.mark.parametrize("packed", [False, True])
def test_a_thread_of_slack_goes_over_days_and_accounts_have_names(packed, tmp_path):
    slack_folder(tmp_path / "slack")
    path = tmp_path / "slack"
    if packed:
        path = tmp_path / "slack.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted((tmp_path / "slack").rglob("*.json")):
                archive.write(file, file.relative_to(tmp_path / "slack"))
    turns = read_turns(path)
    assert turns["response"].tolist() == ["At four.", "Fine."]
    assert turns["context"].tolist() == [
        ["Tea & cake?"],
        ["Tea & cake?", "At four.", "@mira ok"],
    ]
    assert turns["system"].tolist() == ["Ada", "Ada"] and turns["dialog"].nunique() == 1


@pytest.mark.parametrize("method", ["deflate", "zstd"])
def test_an_eval_log_of_inspect_is_read_from_its_archive(method, tmp_path):
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho"},
    ]
    sample = {"id": "a", "epoch": 1, "input": "Hi", "target": "", "messages": messages}
    members = {
        "header.json": {"version": 2, "eval": {"model": "m-1"}},
        "samples/a_epoch_1.json": sample,
        "summaries.json": [{"id": "a", "epoch": 1, "input": "Hi"}],
    }
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value))
    if method == "zstd":
        file.write_bytes(zstd_archive(members))
    turns = read_turns(file)
    assert turns[["system", "response"]].values.tolist() == [["m-1", "Ho"]]


def zstd_archive(members):
    """A zip archive whose members are packed by method 93, written byte by byte."""
    body = b""
    directory = b""
    for name, value in members.items():
        raw = json.dumps(value).encode()
        packed = zstandard.compress(raw)
        sizes = struct.pack("<III", zlib.crc32(raw), len(packed), len(raw))
        fields = struct.pack("<HHHHH", 20, 0, 93, 0, 0) + sizes
        lengths = struct.pack("<HH", len(name), 0)
        offset = len(body)
        body += b"PK\x03\x04" + fields + lengths + name.encode() + packed
        rest = struct.pack("<HHHII", 0, 0, 0, 0, offset)
        directory += (
            b"PK\x01\x02"
            + struct.pack("<H", 20)
            + fields
            + lengths
            + rest
            + name.encode()
        )
    counts = struct.pack(
        "<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0
    )
    return body + directory + b"PK\x05\x06" + counts


def test_a_bad_file_and_a_link_out_of_a_folder_are_counted(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_text(
        written(FORMATS["openai.jsonl"], DIALOGS), encoding="utf-8"
    )
    (folder / "b.jsonl").write_text('{"messages": [')
    (tmp_path / "secret.jsonl").write_text(written(FORMATS["openai.jsonl"], DIALOGS))
    (folder / "c.jsonl").symlink_to(tmp_path / "secret.jsonl")
    turns = read_turns(folder)
    assert len(turns) == 6
    reasons = import_report(turns).set_index("unit").loc["files", "reasons"]
    assert "lead out of the folder" in reasons and "cannot be read" in reasons


def test_a_pause_separates_dialogs_where_that_is_asked_for(tmp_path):
    example = FORMATS["whatsapp_ios.txt"]
    file = tmp_path / "chat.txt"
    file.write_text(written(example, DIALOGS), encoding="utf-8")
    named = options(example)
    assert read_turns(file, options=named)["dialog"].nunique() == 1
    turns = read_turns(file, options={**named, "split": "gap:30m"})
    assert (
        turns["dialog"].nunique() == 3
        and turns["context"].map(len).tolist() == [1, 3] * 3
    )
    log = tmp_path / "log.txt"
    log.write_text("User: Hi\nBot: Ho\n")
    with pytest.raises(DataError, match="no times"):
        read_turns(log, options={"split": "gap:6h"})


def test_a_preference_is_a_rating_between_two_systems(tmp_path):
    question = {"role": "user", "content": "Hi"}
    rows = []
    for number, winner in enumerate(("model_a", "model_b", "tie (bothbad)")):
        row = {"question_id": f"q{number}", "model_a": "x", "model_b": "y"}
        row["winner"] = winner
        row["judge"] = "j"
        row["conversation_a"] = [question, {"role": "assistant", "content": "Ho"}]
        row["conversation_b"] = json.dumps(
            [question, {"role": "assistant", "content": "Hm"}]
        )
        rows.append(row)
    file = tmp_path / "arena.json"
    file.write_text(json.dumps(rows))
    turns = (
        read_turns(file)
        .set_index(["system", "dialog"])["human_preference"]
        .unstack("system")
    )
    assert turns.values.tolist() == [[1, 0], [0, 1], [0.5, 0.5]]
    ratings = pd.DataFrame(read_turns(file).attrs["ratings"])
    assert ratings["rater"].tolist() == ["j"] * 6


def test_one_row_per_rater_is_one_reply_with_several_ratings(tmp_path):
    file = tmp_path / "rated.csv"
    file.write_text(
        "system,dialog,turn,response,annotator,human_fun\n"
        "A,1,1,Ho,r1,4\nA,1,1,Ho,r2,5\nA,1,3,Ho,r1,1\nB,1,1,Hm,r1,2\nB,1,1,Hm,r2,\n"
    )
    turns = read_turns(file)
    assert turns["human_fun"].tolist() == [4.5, 1, 2]
    ratings = pd.DataFrame(turns.attrs["ratings"])
    assert ratings.values.tolist() == [
        [0, "r1", "fun", 4], [0, "r2", "fun", 5], [1, "r1", "fun", 1], [2, "r1", "fun", 2],
    ]  # fmt: skip


def test_ratings_of_logs_in_words_are_read_and_others_counted(tmp_path):
    values = ["4,5", "4/5", True, "thumbs_down", "👍", 3, "great", None]
    rows = []
    for value in values:
        message = {"role": "assistant", "content": "Ho", "rating": value, "score": 0.93}
        rows.append({"messages": [{"role": "user", "content": "Hi"}, message]})
    file = tmp_path / "log.json"
    file.write_text(json.dumps(rows))
    turns = read_turns(file)
    assert turns["human_rating"].tolist()[:6] == [4.5, 4, 1, 0, 1, 3]
    assert turns["human_rating"].isna().sum() == 2 and "human_score" not in turns
    reasons = import_report(turns).set_index("unit").loc["ratings", "reasons"]
    assert "1 are no numbers, such as 'great'" in reasons


def test_columns_name_what_no_name_tells(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("k,xyz,said\n1,p1,Hi\n1,p2,Ho\n2,p1,Oh\n2,p2,Ah\n")
    with pytest.raises(DataError):
        read_turns(file)
    columns = {"dialog": "k", "speaker": "xyz", "text": "said"}
    turns = read_turns(file, columns, options={"bot": "p2"})
    assert turns[["dialog", "context", "response"]].values.tolist() == [
        ["1", ["Hi"], "Ho"], ["2", ["Oh"], "Ah"],
    ]  # fmt: skip


def test_two_lists_of_messages_are_told_apart_by_name(tmp_path):
    example = [
        {"role": "user", "content": "2+2"},
        {"role": "assistant", "content": "4"},
    ]
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    file = tmp_path / "log.json"
    file.write_text(json.dumps([{"shots": example, "dialogue": talk}]))
    with pytest.raises(DataError, match="several lists of messages: shots, dialogue"):
        read_turns(file)
    turns = read_turns(file, {"messages": "dialogue"})
    assert turns["response"].tolist() == ["Ho"]


def test_the_replies_of_dstc9_stand_in_a_file_of_their_own(tmp_path):
    logs = [
        [
            {"speaker": "U", "text": "Hi"},
            {"speaker": "S", "text": "Ho"},
            {"speaker": "U", "text": "Tea?"},
        ]
    ]
    (tmp_path / "logs.json").write_text(json.dumps(logs))
    (tmp_path / "labels.json").write_text(
        json.dumps([{"target": True, "response": "At four."}])
    )
    turns = read_turns(tmp_path)
    assert turns["response"].tolist() == ["Ho", "At four."]
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Ho", "Tea?"]]


def test_the_questions_of_mt_bench_stand_in_a_file_of_their_own(tmp_path):
    question = {
        "question_id": 81,
        "category": "x",
        "turns": ["Hi", "Tea?"],
        "reference": ["Ho", "No"],
    }
    answer = {
        "question_id": 81,
        "model_id": "m-1",
        "choices": [{"turns": ["Hey", "At four."]}],
    }
    (tmp_path / "question.jsonl").write_text(json.dumps(question))
    (tmp_path / "model_answer").mkdir()
    (tmp_path / "model_answer" / "m-1.jsonl").write_text(json.dumps(answer))
    turns = read_turns(tmp_path)
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Hey", "Tea?"]]
    assert turns["reference"].tolist() == [["Ho"], ["No"]]


PAIR = "\n\nHuman: Hi\n\nAssistant: Ho\n\nHuman: Tea?\n\nAssistant: "
PREFERENCES = {
    "messages": {
        "prompt": [{"role": "user", "content": "Tea?"}],
        "chosen": [{"role": "assistant", "content": "Yes"}],
        "rejected": [{"role": "assistant", "content": "No"}],
    },
    "texts": {"prompt": "Tea?", "chosen": "Yes", "rejected": "No"},
    "whole dialogs": {
        "prompt": "Tea?",
        "chosen": [
            {"role": "user", "content": "Tea?"},
            {"role": "assistant", "content": "Yes"},
        ],
        "rejected": [
            {"role": "user", "content": "Tea?"},
            {"role": "assistant", "content": "No"},
        ],
    },
    "OpenAI": {
        "input": {"messages": [{"role": "user", "content": "Tea?"}]},
        "preferred_output": [{"role": "assistant", "content": "Yes"}],
        "non_preferred_output": [{"role": "assistant", "content": "No"}],
    },
    "HelpSteer3": {
        "context": [{"role": "user", "content": "Tea?"}],
        "response1": "Yes",
        "response2": "No",
        "overall_preference": -2,
    },
}


@pytest.mark.parametrize("form", PREFERENCES)
def test_two_replies_to_a_context_are_two_systems_with_a_preference(form, tmp_path):
    file = tmp_path / "pairs.jsonl"
    file.write_text(json.dumps(PREFERENCES[form]) + "\n")
    turns = read_turns(file)
    assert turns["context"].tolist() == [["Tea?"], ["Tea?"]]
    assert turns["response"].tolist() == ["Yes", "No"]
    assert (
        turns["human_preference"].tolist() == [1, 0] and turns["system"].nunique() == 2
    )


def test_dialogs_of_hh_are_parted_and_only_their_last_reply_is_read(tmp_path):
    file = tmp_path / "hh.jsonl"
    file.write_text(
        json.dumps({"chosen": PAIR + "At four.", "rejected": PAIR + "No."}) + "\n"
    )
    turns = read_turns(file)
    assert turns["context"].tolist() == [["Hi", "Ho", "Tea?"]] * 2
    assert turns["response"].tolist() == ["At four.", "No."]


def test_raters_of_label_studio_and_words_of_topical_chat_are_kept(tmp_path):
    file = tmp_path / "label_studio.json"
    file.write_text(written(FORMATS["label_studio.json"], DIALOGS), encoding="utf-8")
    turns = read_turns(file)
    assert turns["human_overall"].eq(4.5).all()
    ratings = pd.DataFrame(turns.attrs["ratings"])
    assert ratings.loc[ratings["row"] == 0, ["rater", "rating"]].values.tolist() == [
        ["1", 4],
        ["2", 5],
    ]
    file = tmp_path / "topical_chat.json"
    example = FORMATS["topical_chat.json"]
    file.write_text(written(example, DIALOGS), encoding="utf-8")
    turns = read_turns(file, options=options(example))
    assert turns["human_turn_rating"].tolist()[::2] == [5, 5, 5]
    assert turns["human_conversation_rating"].eq(4.5).all()


def test_a_branch_is_a_dialog_whose_context_is_its_own_path(tmp_path):
    def message(name, parent, role, text):
        ids = {"message_id": name, "parent_id": parent, "message_tree_id": "a"}
        return {**ids, "role": role, "text": text, "lang": "en"}

    rows = [
        message("a", None, "prompter", "Hi"),
        message("b", "a", "assistant", "Ho"),
        message("x", "a", "assistant", "Hm"),
        message("c", "b", "prompter", "Tea?"),
        message("d", "c", "assistant", "At four."),
        message("y", "c", "assistant", "No."),
    ]
    file = tmp_path / "oasst.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    turns = read_turns(file)
    contexts = dict(zip(turns["response"], turns["context"], strict=True))
    path = ["Hi", "Ho", "Tea?"]
    assert contexts == {"Ho": ["Hi"], "Hm": ["Hi"], "At four.": path, "No.": path}
    assert len(turns) == 4 and turns["dialog"].nunique() == 3


LISTLIKE = "[" + ", ' nan" * 80_000 + "]x]"


def test_a_long_cell_that_looks_like_a_list_is_refused_at_once(tmp_path):
    file = tmp_path / "mine.jsonl"
    row = {"system": "A", "dialog": "1", "response": "x", "context": LISTLIKE}
    file.write_text(json.dumps(row) + "\n")
    start = time.process_time()
    with pytest.raises(DataError, match="whole list"):
        read_turns(file)
    assert time.process_time() - start < 5


def test_what_takes_much_memory_unpacked_is_refused_before_that(tmp_path):
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 4000, pa.int32()), pa.array(["x" * 2**20])
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 4000], pa.int32()), texts)
    parquet.write_table(pa.table({"response": texts}), tmp_path / "flat.parquet")
    parquet.write_table(pa.table({"messages": lists}), tmp_path / "nested.parquet")
    (tmp_path / "objects.json.gz").write_bytes(
        gzip.compress(b"[" + b"{}," * 3_000_000 + b"{}]")
    )
    for file in sorted(tmp_path.iterdir()):
        with pytest.raises(DataError, match="unpacks to more than 512 MB.*\n.*MAX_MB"):
            read_turns(file)


def test_names_that_may_be_words_are_asked_about(tmp_path):
    file = tmp_path / "log.txt"
    lines = [
        "Mira: Hi",
        "Ada: Where to?",
        "Address: X",
        "Mira: Ok",
        "Ada: Sure",
        "Address: Y",
    ]
    file.write_text("\n".join([*lines, "Mira: Bye"]) + "\n")
    with pytest.raises(DataError, match="SPEAKERS="):
        read_turns(file, options={"bot": "Ada"})
    turns = read_turns(file, options={"bot": "Ada", "speakers": "Ada,Mira"})
    assert turns["response"].tolist() == ["Where to?\nAddress: X", "Sure\nAddress: Y"]


def test_a_table_of_channels_without_a_known_dialog_is_asked_about(tmp_path):
    file = tmp_path / "log.csv"
    rows = ["general,mira,Hi", "random,jon,Yo", "general,ada,Ho", "random,ada,Hey"]
    file.write_text("\n".join(["channel,username,message", *rows]) + "\n")
    with pytest.raises(DataError, match='COLUMNS="dialog=channel"'):
        read_turns(file, options={"bot": "ada"})
    turns = read_turns(file, {"dialog": "channel"}, options={"bot": "ada"})
    assert turns["context"].tolist() == [["Hi"], ["Yo"]]


def test_a_dialog_that_is_no_request_of_another_stays(tmp_path):
    short = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
    ]
    more = [
        {"role": "user", "content": "Tea?"},
        {"role": "assistant", "content": "At four."},
    ]
    rows = [{"messages": short}] * 3 + [{"messages": short + more}]
    file = tmp_path / "log.json"
    file.write_text(json.dumps(rows))
    turns = read_turns(file)
    assert turns["response"].tolist() == ["Hello", "Hello", "Hello", "At four."]
    reasons = import_report(turns).set_index("unit").loc["dialogs", "reasons"]
    assert reasons == "1 are the beginning of a longer one"


def test_rows_that_name_their_parent_have_their_own_path_as_context(tmp_path):
    file = tmp_path / "log.csv"
    rows = [
        "a,1,,user,Hi",
        "a,2,1,assistant,Ho",
        "a,3,1,assistant,Hm",
        "a,4,2,user,Tea?",
    ]
    header = "conversation_id,id,parent_id,role,content"
    file.write_text("\n".join([header, *rows, "a,5,4,assistant,No"]) + "\n")
    turns = read_turns(file)
    contexts = dict(zip(turns["response"], turns["context"], strict=True))
    assert contexts == {"Ho": ["Hi"], "Hm": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


@pytest.mark.parametrize(
    ("winner", "expected_ratings"),
    [("model_a", [1, 0]), ("model_b", [0, 1]), ("tie", [0.5, 0.5])],
)
def test_the_winner_of_a_table_of_pairs_stands_in_one_column(
    winner, expected_ratings, tmp_path
):
    file = tmp_path / "pairs.csv"
    header = "prompt,response_a,response_b,model_a,model_b,winner"
    file.write_text(f"{header}\nHi,Ho,Hm,x,y,{winner}\n")
    turns = read_turns(file)
    assert turns["human_preference"].tolist() == expected_ratings
    assert turns["dialog"].nunique() == 1 and turns["system"].tolist() == ["x", "y"]


def test_a_sheet_whose_last_cell_is_far_away_is_refused(tmp_path):
    def cells(name):
        return f'<row><c r="{name}" t="inlineStr"><is><t>a</t></is></c></row>'

    near = workbook([("system", "dialog", "response"), ("A", "1", "Ho")])
    (tmp_path / "near.xlsx").write_bytes(near)
    assert read_turns(tmp_path / "near.xlsx")["response"].tolist() == ["Ho"]
    uri = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{uri}"><sheetData>{cells("A1")}{cells("XFD1048576")}</sheetData>'
    far = workbook([], **{"xl/worksheets/sheet1.xml": f"{sheet}</worksheet>"})
    (tmp_path / "far.xlsx").write_bytes(far)
    with pytest.raises(DataError, match="unpacks to more than"):
        read_turns(tmp_path / "far.xlsx")


def test_requests_of_a_session_without_history_are_one_dialog(tmp_path):
    rows = []
    for minute, (question, answer) in enumerate([("Hi", "Ho"), ("Tea?", "No")]):
        time_of_request = f"2025-03-05T10:0{minute}:00Z"
        row = {"id": str(minute), "timestamp": time_of_request, "sessionId": "s"}
        rows.append({**row, "input": question, "output": answer, "scores": []})
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(rows[::-1]))
    turns = read_turns(file)
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Ho", "Tea?"]]
    assert turns["dialog"].unique().tolist() == ["s"]


def test_sessions_that_several_people_number_alike_are_asked_about(tmp_path):
    file = tmp_path / "log.csv"
    rows = ["p1,1,user,Hi", "p1,1,bot,Ho", "p2,1,user,Oh", "p2,1,bot,Ah"]
    file.write_text(
        "\n".join(["participant_id,session_number,speaker,text", *rows]) + "\n"
    )
    with pytest.raises(DataError, match="session_number and participant_id together"):
        read_turns(file)


def test_blocks_of_a_message_are_no_messages_of_their_own(tmp_path):
    blocks = [
        {"type": "text", "text": "Hi"},
        {"type": "image", "source": {"type": "url"}},
    ]
    result = {
        "type": "tool_result",
        "tool_use_id": "1",
        "content": [{"type": "text", "text": "7"}],
    }
    messages = [
        {"role": "user", "content": blocks},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "f"}],
        },
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "Ho"}]},
    ]
    file = tmp_path / "log.jsonl"
    file.write_text(
        json.dumps({"model": "c-1", "system": "x", "messages": messages}) + "\n"
    )
    turns = read_turns(file)
    assert turns[["context", "response"]].values.tolist() == [[["Hi"], "Ho"]]


NEWEST_FIRST = {
    "times of exchanges": (
        "session_id,timestamp,user_message,bot_response\n"
        "s,2025-03-05T10:01:00,Tea?,No\ns,2025-03-05T10:00:00,Hi,Ho\n"
    ),
    "dates with points": (
        "conversation_id,sender,text,sent_at\n"
        "c,bot,No,05.03.2025 10:03\nc,user,Tea?,05.03.2025 10:02\n"
        "c,bot,Ho,05.03.2025 10:01\nc,user,Hi,05.03.2025 10:00\n"
    ),
    "numbers of messages": (
        "conversation_id,message_id,sender,text\nc,4,bot,No\nc,3,user,Tea?\nc,2,bot,Ho\nc,1,user,Hi\n"
    ),
}


@pytest.mark.parametrize("case", NEWEST_FIRST)
def test_newest_first_is_turned_round(case, tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(NEWEST_FIRST[case])
    turns = read_turns(file)
    assert turns["response"].tolist() == ["Ho", "No"]
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Ho", "Tea?"]]


def table(rows, header="conversation_id,role,text,date"):
    """A table of utterances of one dialog."""
    return "\n".join([header, *(f"c,{row}" for row in rows)]) + "\n"


def contexts_of(text, folder, **options):
    """The contexts of the replies in a table."""
    file = folder / "log.csv"
    file.write_text(text, encoding="utf-8")
    return read_turns(file, **options)["context"].tolist()


def test_a_day_above_twelve_tells_the_order_of_day_and_month(tmp_path):
    rows = [
        "bot,B,14/03/2025",
        "user,A,13/03/2025",
        "user,Z,01/04/2025",
        "bot,Y,02/04/2025",
    ]
    assert contexts_of(table(rows), tmp_path) == [["A"], ["A", "B", "Z"]]
    rows = [row.replace("/04/", "/4/").replace("14/03", "03/14") for row in rows[:1]]
    rows += ["user,A,03/13/2025"]
    assert contexts_of(table(rows), tmp_path) == [["A"]]


def test_dates_that_can_be_read_in_two_ways_are_asked_about_with_both(tmp_path):
    rows = [
        "user,A,01/02/2025",
        "bot,B,03/01/2025",
        "user,C,02/03/2025",
        "bot,D,04/02/2025",
    ]
    with pytest.raises(DataError, match="the day first or the month first"):
        contexts_of(table(rows), tmp_path)
    in_order = contexts_of(table(rows), tmp_path, columns={"time": "none"})
    assert in_order == [["A"], ["A", "B", "C"]]


def test_dates_run_one_way_in_one_of_two_readings(tmp_path):
    # as month and day the newest stands first, as day and month they go up and down
    rows = [
        "bot,B,05/01/2025",
        "user,A,03/02/2025",
        "bot,Y,02/03/2025",
        "user,X,01/02/2025",
    ]
    assert contexts_of(table(rows), tmp_path) == [["X"], ["X", "Y", "A"]]


def test_times_that_cannot_be_read_are_asked_about(tmp_path):
    rows = ["bot,B,2 minutes ago", "user,A,3 minutes ago"]
    with pytest.raises(DataError, match="time=none"):
        contexts_of(table(rows), tmp_path)


@pytest.mark.parametrize("name", ["system", "model", "bot"])
def test_a_column_of_systems_that_may_be_one_of_speakers_is_asked_about(name, tmp_path):
    text = f"dialog,{name},response\nd,user,Hi\nd,bot,Ho\nd,user,So\nd,bot,Well\n"
    with pytest.raises(DataError, match=f"speaker={name} text=response"):
        contexts_of(text, tmp_path)
    columns = {"speaker": name, "text": "response"}
    spoken = contexts_of(text, tmp_path, columns=columns)
    assert spoken == [["Hi"], ["Hi", "Ho", "So"]]
    systems = contexts_of(text, tmp_path, columns={"system": name})
    assert systems == [[], [], [], []]


def test_people_may_be_systems_where_replies_have_contexts(tmp_path):
    text = "dialog,system,context,response\nd,human,Hi,Ho\nd,gpt-4,Hi,Hello\n"
    assert contexts_of(text, tmp_path) == [["Hi"], ["Hi"]]


def test_a_folder_that_is_an_id_names_the_dialog(tmp_path):
    name = "0020a0c5-1658-4747-99c1-2839e736b481"
    folder = tmp_path / name / "transcription"
    folder.mkdir(parents=True)
    rows = "turn_id,speaker,start,utterance\n0,p1,0.1,Hi\n1,p2,1.5,Ho\n"
    (folder / "transcript_cliffhanger.csv").write_text(rows)
    for path in (tmp_path, folder / "transcript_cliffhanger.csv"):
        assert read_turns(path, options={"bot": "p2"})["dialog"].tolist() == [name]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("log.csv", "", "is empty"),
        ("log.json", " \n", "is empty"),
        ("log.zip", "no archive", "is no zip archive"),
        ("log.csv", "a,b\n1,Hi\n2,Tea\n", 'COLUMNS="speaker=... text=..."'),
        ("log.csv", "session,user_message,bot_response\n", "has no rows"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(name, content, said, tmp_path):
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(DataError) as caught:
        read_turns(file)
    assert said in str(caught.value)
    assert caught.value.fix


def with_further_fields(value, depth=0):
    """A value of JSON with fields that no format has, in each mapping of several fields."""
    if isinstance(value, list):
        return [with_further_fields(item, depth) for item in value]
    if not isinstance(value, dict) or len(value) < 2 or depth > 3:
        return value
    further = {"zz_none": None, "zz_list": [], "zz_note": "as you wish, please"}
    fields = {key: with_further_fields(item, depth + 1) for key, item in value.items()}
    return fields | further


def in_one_list(value):
    """Records as a server gives a page of them."""
    return {"page": 1, "data": value} if isinstance(value, list) else value


JSON_EXAMPLES = {
    name: example
    for name, example in (FORMATS | SCHEMAS).items()
    if name.endswith((".json", ".jsonl")) and "ask" not in example.flags
}


def parsed(example):
    """What the file of a template holds; of JSON lines a list."""
    text = written(example, DIALOGS)
    if example.name.endswith("jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def right_or_refused(path, example):
    """Whether what is read is what the template says; a refusal is no wrong answer."""
    try:
        return replies_of(path, example) == expected(example, DIALOGS)
    except DataError:
        return True


@pytest.mark.parametrize("change", [with_further_fields, in_one_list])
@pytest.mark.parametrize("name", JSON_EXAMPLES)
def test_what_a_format_may_have_besides_changes_no_reply(name, change, tmp_path):
    example = JSON_EXAMPLES[name]
    file = tmp_path / name.replace("jsonl", "json")
    file.write_text(json.dumps(change(parsed(example))), encoding="utf-8")
    assert right_or_refused(file, example)


def is_divided(example):
    """Whether the file of a template has as many records for each dialog."""
    records = parsed(example)
    several = isinstance(records, list) and "one" not in example.flags
    return several and len(records) % len(DIALOGS) == 0


@pytest.mark.parametrize("name", [n for n, e in JSON_EXAMPLES.items() if is_divided(e)])
def test_dialogs_in_files_of_their_own_are_read_as_those_in_one(name, tmp_path):
    example = JSON_EXAMPLES[name]
    records = parsed(example)
    size = len(records) // len(DIALOGS)
    for number in range(len(DIALOGS)):
        part = records[number * size : (number + 1) * size]
        part = part[0] if size == 1 else part
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(part), encoding="utf-8")
    assert right_or_refused(tmp_path, example)


BOT_TEXTS = {text for dialog in DIALOGS for text in dialog[1::2]}


def with_rating(value):
    """A value of JSON with a rating beside each reply of the bot."""
    if isinstance(value, list):
        return [with_rating(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: with_rating(item) for name, item in value.items()}
    is_reply = len(value) > 1 and set(value) != {"type", "text"}
    texts = {item for item in value.values() if isinstance(item, str)}
    return fields | {"rating": 4} if is_reply and texts & BOT_TEXTS else fields


@pytest.mark.parametrize("name", JSON_EXAMPLES)
def test_no_rating_beside_a_reply_is_lost_without_a_word(name, tmp_path):
    example = JSON_EXAMPLES[name]
    rated = with_rating(parsed(example))
    file = tmp_path / name.replace("jsonl", "json")
    file.write_text(json.dumps(rated), encoding="utf-8")
    try:
        turns = read_turns(file, options=options(example))
    except DataError:
        return
    is_told = any("rating" in reason for _, _, reason, _ in turns.attrs["guesses"])
    is_read = turns.filter(regex="^human_").notna().any(axis=None)
    assert rated == parsed(example) or is_told or is_read


TRANSCRIPTS = (
    "fed_data.json",
    "transcript_cell.jsonl",
)  # a name and a colon there begin a turn


@pytest.mark.parametrize(
    "text",
    ['{"name": "Ada", "age": 3}', "None", "4/5", "Sure.\nUser: write so\nBot: like so"],
)
def test_what_a_reply_looks_like_changes_nothing(text, tmp_path):
    first, *others = DIALOGS
    dialogs = [[first[0], text, *first[2:]], *others]
    tried = 0
    for example in ALL.values():
        is_json = example.name.endswith((".json", ".jsonl"))
        if not is_json or "ask" in example.flags or example.name in TRANSCRIPTS:
            continue
        file = tmp_path / example.name
        file.write_text(written(example, dialogs), encoding="utf-8")
        try:
            replies = replies_of(file, example)
        except DataError:
            continue  # asked about, and not read wrongly
        assert with_one_space(replies) == with_one_space(expected(example, dialogs)), (
            example.name
        )
        tried += 1
    assert tried >= 300


def with_one_space(replies):
    """Replies and contexts with one space wherever there is white space."""
    return [
        ([" ".join(text.split()) for text in context], " ".join(response.split()))
        for context, response in replies
    ]
