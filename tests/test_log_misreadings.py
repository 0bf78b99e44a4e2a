"""What was once read wrongly in silence: now read right, or asked about with both readings."""

import json
from datetime import datetime

import pandas as pd
import pyarrow as pa
import pytest
from log_example_files import contexts, file_with
from pyarrow import parquet

from lib.data import DataError, import_report, read_turns

VERSIONS = """{name},dialog,speaker,text
v1,d,user,Hi
v1,d,bot,Ho
v2,d,user,Hi
v2,d,bot,Hello
"""


@pytest.mark.parametrize("name", ["system", "version", "variant"])
def test_versions_of_the_same_dialogs_are_systems(name, tmp_path):
    turns = read_turns(file_with(tmp_path, "log.csv", VERSIONS.format(name=name)))
    assert turns["system"].tolist() == ["v1", "v2"]
    assert turns["context"].tolist() == [["Hi"], ["Hi"]]


def test_a_column_by_which_dialogs_begin_again_is_asked_about(tmp_path):
    file = file_with(tmp_path, "log.csv", VERSIONS.format(name="build"))
    with pytest.raises(
        DataError, match='COLUMNS="system=build" for versions, or write'
    ):
        read_turns(file)
    assert read_turns(file, {"system": "build"})["system"].tolist() == ["v1", "v2"]


def test_a_column_that_is_named_takes_the_place_of_one_of_that_name(tmp_path):
    text = (
        "chat,dialog,speaker,text\n1,a,user,Hi\n1,b,bot,Ho\n2,a,user,Tea?\n2,b,bot,No\n"
    )
    turns = read_turns(file_with(tmp_path, "log.csv", text), {"dialog": "chat"})
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_a_change_of_model_within_a_dialog_is_no_second_version(tmp_path):
    text = "dialog,model,speaker,text\nd,m1,user,Hi\nd,m1,bot,Ho\nd,m2,user,Tea?\nd,m2,bot,No\n"
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert contexts(turns)["No"] == ["Hi", "Ho", "Tea?"]
    assert turns["system"].tolist() == ["m1", "m2"]


def test_a_namesake_of_the_bot_is_a_user(tmp_path):
    messages = []
    for number, (is_bot, text) in enumerate([(False, "Hi"), (True, "Ho")]):
        author = {"id": str(is_bot), "name": "a", "nickname": "Ada", "isBot": is_bot}
        time = f"2025-03-01T10:0{number}:00+00:00"
        messages.append(
            {"type": "Default", "timestamp": time, "content": text, "author": author}
        )
    value = {"guild": {}, "channel": {"name": "help"}, "messages": messages}
    turns = read_turns(file_with(tmp_path, "log.json", value))
    assert turns[["context", "response"]].values.tolist() == [[["Hi"], "Ho"]]


def test_what_a_tool_returns_in_the_name_of_the_agent_is_no_reply(tmp_path):
    result = [{"content": "tool words", "call_id": "c", "is_error": False}]
    messages = [
        {"source": "user", "content": "Hi", "type": "TextMessage"},
        {"source": "assistant", "content": result, "type": "ToolCallExecutionEvent"},
        {"source": "assistant", "content": "Ho", "type": "TextMessage"},
    ]
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert turns[["context", "response"]].values.tolist() == [[["Hi"], "Ho"]]


def test_notes_among_messages_are_no_replies(tmp_path):
    rows = "d,user,text,Hi\nd,agent,text,Ho\nd,agent,note,He is cross\n"
    file = file_with(tmp_path, "log.csv", f"dialog,sender,type,message\n{rows}")
    assert read_turns(file)["response"].tolist() == ["Ho"]


def test_messages_of_one_list_may_be_of_several_dialogs(tmp_path):
    messages = []
    for name in ("a", "b"):
        for role, text in (("user", f"Hi {name}"), ("bot", f"Ho {name}")):
            messages.append({"session_id": name, "role": role, "text": text})
    turns = read_turns(file_with(tmp_path, "log.json", {"ok": True, "data": messages}))
    assert contexts(turns) == {"Ho a": ["Hi a"], "Ho b": ["Hi b"]}


def test_replies_without_what_was_said_before_are_asked_about(tmp_path):
    rows = [
        {"query_str": "Is it late?", "answer": "Ten past four."},
        {"query_str": "Is there tea?", "answer": "No tea today."},
    ]
    file = file_with(tmp_path, "log.json", rows)
    with pytest.raises(DataError, match='COLUMNS="context=query_str", or context=none'):
        read_turns(file)
    turns = read_turns(file, {"context": "query_str"})
    assert turns["context"].tolist() == [["Is it late?"], ["Is there tea?"]]
    assert read_turns(file, {"context": "none"})["context"].tolist() == [[], []]


@pytest.mark.parametrize("name", ["customer_email", "csid", "lead_ref", "hash"])
def test_exchanges_below_an_unknown_id_are_asked_about(name, tmp_path):
    rows = "a1@x,Hi,Ho\na1@x,Tea?,No\nb2@x,So?,Yes\nb2@x,And?,Bye\n"
    file = file_with(tmp_path, "log.csv", f"{name},question,answer\n{rows}")
    with pytest.raises(DataError, match=f'COLUMNS="dialog={name}"'):
        read_turns(file)
    turns = read_turns(file, {"dialog": name})
    assert contexts(turns)["No"] == ["Hi", "Ho", "Tea?"]
    alone = read_turns(file, {"dialog": "none"})
    assert contexts(alone)["No"] == ["Tea?"]


def test_utterances_of_several_people_are_asked_about(tmp_path):
    rows = [
        "a,user,Hi",
        "b,user,So?",
        "a,bot,Ho",
        "b,bot,Yes",
        "a,user,Tea?",
        "a,bot,No",
    ]
    text = "\n".join(["phone,from,message", *rows]) + "\n"
    file = file_with(tmp_path, "log.csv", text)
    with pytest.raises(DataError, match='COLUMNS="dialog=phone"'):
        read_turns(file)
    assert contexts(read_turns(file, {"dialog": "phone"}))["Yes"] == ["So?"]


def test_a_table_without_dialogs_is_asked_about_its_pauses(tmp_path):
    rows = ["user,Hi,2025-03-01 10:00", "bot,Ho,2025-03-01 10:01"]
    rows += ["user,Tea?,2025-03-04 10:00", "bot,No,2025-03-04 10:01"]
    file = file_with(tmp_path, "log.csv", "\n".join(["role,text,time", *rows]) + "\n")
    with pytest.raises(DataError, match="SPLIT=gap:6h"):
        read_turns(file)
    split = read_turns(file, options={"split": "gap:6h"})
    assert contexts(split)["No"] == ["Tea?"]
    one = read_turns(file, {"dialog": "none"})
    assert contexts(one)["No"] == ["Hi", "Ho", "Tea?"]


def test_a_long_table_without_dialogs_is_asked_about(tmp_path):
    rows = ["user,Hi", "bot,Ho"] * 200
    file = file_with(tmp_path, "log.csv", "\n".join(["role,text", *rows]) + "\n")
    with pytest.raises(DataError, match="has 400 rows, and no column with the dialogs"):
        read_turns(file)
    assert len(read_turns(file, {"dialog": "none"})) == 200


def test_histories_grow_also_where_only_the_user_knows_the_bot(tmp_path):
    talk = [
        ("guest", "Hi"),
        ("concierge", "Ho"),
        ("guest", "Tea?"),
        ("concierge", "No"),
    ]
    rows = []
    for length in (2, 4):
        messages = [{"name": name, "text": text} for name, text in talk[:length]]
        rows.append({"history": messages})
    file = file_with(tmp_path, "log.json", rows * 2)
    turns = read_turns(file, options={"bot": "concierge"})
    assert sorted(turns["response"]) == ["Ho", "Ho", "No", "No"]


def test_characters_that_are_bytes_are_read_as_words(tmp_path):
    message = {"sender_name": "Jos\u00c3\u00a9", "timestamp_ms": 1741000000000}
    reply = {"sender_name": "Ada", "timestamp_ms": 1741000001000, "content": "Ho"}
    value = {
        "participants": [{"name": "Ada"}],
        "messages": [reply, {**message, "content": "Z\u00c3\u00bcrich?"}],
    }
    turns = read_turns(file_with(tmp_path, "log.json", value), options={"bot": "Ada"})
    assert turns["context"].tolist() == [["Zürich?"]]


WINNERS = {
    "both_bad": [0.5, 0.5],
    "Tie": [0.5, 0.5],
    "model_b": [0.0, 1.0],
    "m2": [0.0, 1.0],
}


@pytest.mark.parametrize("winner", WINNERS)
def test_every_word_for_who_won_is_read(winner, tmp_path):
    row = {"id": "1", "model_a": "m1", "model_b": "m2", "winner": winner}
    for side, reply in (("a", "Ho"), ("b", "Hm")):
        row[f"conversation_{side}"] = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": reply},
        ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", row))
    assert turns["human_preference"].tolist() == WINNERS[winner]


def test_a_word_for_the_winner_that_says_nothing_is_counted(tmp_path):
    row = {"model_a": "m1", "model_b": "m2", "winner": "see notes"}
    for side in "ab":
        row[f"conversation_{side}"] = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": side},
        ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", row))
    reasons = import_report(turns).set_index("unit").loc["ratings", "reasons"]
    assert "see notes" in reasons


def test_whatsapp_leaves_out_its_own_words_in_other_languages(tmp_path):
    lines = [
        "04.03.25, 09:01 - Ben: <Medien ausgeschlossen>",
        "04.03.25, 09:02 - Ben: Du hast diese Nachricht gelöscht.",
        "04.03.25, 09:03 - Ben: Hallo <Diese Nachricht wurde bearbeitet.>",
        "04.03.25, 09:04 - Ada: Guten Tag",
        "04.03.25, 09:05 - Ada: Verpasster Sprachanruf",
    ]
    file = file_with(tmp_path, "chat.txt", "\n".join(lines) + "\n")
    turns = read_turns(file, options={"bot": "Ada"})
    assert contexts(turns) == {"Guten Tag": ["Hallo"]}


def test_a_response_goes_on_from_the_one_that_it_names(tmp_path):
    rows = []
    for number, (asked, answered) in enumerate([("Hi", "Ho"), ("Tea?", "No")]):
        message = {"type": "message", "role": "assistant"}
        output = [{**message, "content": [{"type": "output_text", "text": answered}]}]
        row = {"id": f"r{number}", "object": "response", "input": asked}
        previous = f"r{number - 1}" if number else None
        rows.append({**row, "previous_response_id": previous, "output": output})
    turns = read_turns(file_with(tmp_path, "log.json", rows[::-1]))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


def test_messages_with_parts_are_of_the_chats_that_they_name(tmp_path):
    rows = []
    for name in ("a", "b"):
        for role in ("user", "assistant"):
            parts = [{"type": "text", "text": f"{role} {name}"}]
            rows.append({"chatId": name, "role": role, "parts": parts})
    turns = read_turns(file_with(tmp_path, "log.json", rows))
    assert contexts(turns)["assistant b"] == ["user b"]


def test_words_within_objects_are_taken_from_them(tmp_path):
    text = 'dialog,direction,payload\nd,incoming,"{""text"": ""Good morning""}"\n'
    text += 'd,outgoing,"{""text"": ""Good evening""}"\n'
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert turns[["context", "response"]].values.tolist() == [
        [["Good morning"], "Good evening"]
    ]
    bare = text.replace('""text""', '""kind""')
    with pytest.raises(DataError, match="none of which has a text"):
        read_turns(file_with(tmp_path, "log.csv", bare))


def test_a_list_of_accounts_is_no_dialog(tmp_path):
    rows = []
    for name, is_bot in (("Mira Keller", False), ("Jon Ek", False), ("Ada", True)):
        rows.append({"id": name[0], "real_name": name, "is_bot": is_bot})
    with pytest.raises(DataError, match="is no chat log"):
        read_turns(file_with(tmp_path, "users.json", rows))


def test_times_of_a_parquet_file_tell_the_order(tmp_path):
    rows = []
    for number, (question, answer) in enumerate([("Hi", "Ho"), ("Tea?", "No")]):
        time = datetime(2025, 3, 5, 10, number)
        rows.append({"session": "s", "user": question, "bot": answer, "time": time})
    parquet.write_table(pa.Table.from_pylist(rows[::-1]), tmp_path / "log.parquet")
    turns = read_turns(tmp_path / "log.parquet")
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


def test_two_columns_of_words_are_asked_about(tmp_path):
    rows = "d,user,Good morning,Guten Morgen\nd,bot,How are you,Wie geht es\n"
    file = file_with(tmp_path, "log.csv", f"dialog,speaker,text,message\n{rows}")
    with pytest.raises(DataError, match='COLUMNS="text=text" or "text=message"'):
        read_turns(file)
    turns = read_turns(file, {"text": "message"})
    assert contexts(turns) == {"Wie geht es": ["Guten Morgen"]}


def test_sheets_with_the_same_columns_are_asked_about(tmp_path):
    rows = [("dialog", "speaker", "text"), ("d", "user", "Hi"), ("d", "bot", "Ho")]
    tables = {name: pd.DataFrame(rows[1:], columns=rows[0]) for name in ("May", "June")}
    with pd.ExcelWriter(tmp_path / "log.xlsx", engine="openpyxl") as writer:
        for name, table in tables.items():
            table.to_excel(writer, sheet_name=name, index=False)
    with pytest.raises(DataError, match="(?s)May, June.*SHEET=May"):
        read_turns(tmp_path / "log.xlsx")
    turns = read_turns(tmp_path / "log.xlsx", options={"sheet": "June"})
    assert contexts(turns) == {"Ho": ["Hi"]}


RATED = """dialog,turn,user,bot,rater,rating
d,1,Hi,Ho,ann,"4,5"
d,1,Hi,Ho,ben,3
d,2,Tea?,No,ann,1
"""


def test_rows_of_several_raters_are_one_exchange(tmp_path):
    turns = read_turns(file_with(tmp_path, "log.csv", RATED))
    assert turns["human_rating"].tolist() == [3.75, 1]
    assert turns.attrs["ratings"]["rater"] == ["ann", "ben", "ann"]


def test_rows_of_several_raters_without_dialogs_are_one_reply(tmp_path):
    rows = "Hi,Ho,ann,4\nHi,Ho,ben,2\nHi,Hello,cara,5\nHi,Hello,ann,5\n"
    file = file_with(tmp_path, "log.csv", f"context,response,rater,human_x\n{rows}")
    turns = read_turns(file)
    assert turns[["response", "human_x"]].values.tolist() == [["Ho", 3], ["Hello", 5]]


def test_the_same_dialog_by_several_raters_is_one(tmp_path):
    messages = [{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}]
    rows = []
    for rater, rating in (("ann", 4), ("ben", 1), ("ben", 2)):
        rows.append({"messages": messages, "annotator": rater, "rating": rating})
    turns = read_turns(file_with(tmp_path, "log.json", rows))
    assert turns["human_rating"].tolist() == [2.5, 2]


def test_ratings_in_lists_of_one_are_read(tmp_path):
    messages = [{"author": "User", "text": "Hi"}, {"author": "Bot", "text": "Ho"}]
    row = {"id": 1, "dialogue": messages, "rating": [{"rating": 4}]}
    assert read_turns(file_with(tmp_path, "log.json", [row]))["human_rating"][0] == 4


def test_a_thread_of_messenger_in_several_files_is_one_dialog(tmp_path):
    said = [
        ("Mira", "Hi"),
        ("Ada", "Ho"),
        ("Mira", "Liked a message"),
        ("Mira", "Tea?"),
    ]
    said.append(("Ada", "No"))
    messages = []
    for number, (name, text) in enumerate(said):
        time = 1741169673000 + number
        messages.append({"sender_name": name, "content": text, "timestamp_ms": time})
    names = [{"name": "Mira"}, {"name": "Ada"}]
    for number, part in enumerate((messages[:1:-1], messages[1::-1]), start=1):
        value = {"participants": names, "messages": part, "thread_path": "inbox/ada"}
        file_with(tmp_path, f"message_{number}.json", value)
    turns = read_turns(tmp_path, options={"bot": "Ada"})
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


def test_parts_of_an_utterance_of_switchboard_are_one(tmp_path):
    names = "conversation_no,act_tag,caller,utterance_index,subutterance_index,text"
    rows = "1,qy,A,1,1,Tea?\n1,sd,B,2,1,No.\n1,sd,B,2,2,Thank you.\n"
    turns = read_turns(
        file_with(tmp_path, "log.csv", f"{names}\n{rows}"), options={"bot": "B"}
    )
    assert contexts(turns) == {"No. Thank you.": ["Tea?"]}


def test_rejected_work_is_counted_and_left_out(tmp_path):
    names = "HITId,WorkerId,AssignmentStatus,Input.context,Input.response,Answer.kind"
    rows = "h,w1,Approved,Hi,Ho,4\nh,w2,Approved,Hi,Ho,2\nh,w3,Rejected,Hi,Ho,1\n"
    turns = read_turns(file_with(tmp_path, "log.csv", f"{names}\n{rows}"))
    assert turns["human_kind"].tolist() == [3]
    reasons = import_report(turns).set_index("unit").loc["ratings", "reasons"]
    assert "1 were rejected" in reasons


def test_yes_and_no_are_ratings_and_other_words_are_counted_once(tmp_path):
    rows = "d,Hi,Ho,yes\nd,Tea?,No,no\nd,So?,Well,perhaps\nd,Bye,Bye,\n"
    file = file_with(tmp_path, "log.csv", f"session,user,bot,human_solved\n{rows}")
    turns = read_turns(file)
    assert turns["human_solved"].tolist()[:2] == [1, 0]
    ratings = import_report(turns).set_index("unit").loc["ratings"]
    assert (ratings["read"], ratings["kept"]) == (4, 2)
    assert "1 are no numbers, such as 'perhaps'" in ratings["reasons"]
    assert "1 left empty in human_solved" in ratings["reasons"]


def test_rows_without_an_id_among_others_are_asked_about(tmp_path):
    rows = "a,user,Hi\na,bot,Ho\n,user,Tea?\n,bot,No\n"
    file = file_with(tmp_path, "log.csv", f"conversation_id,speaker,text\n{rows}")
    with pytest.raises(DataError, match="rows without a value in conversation_id"):
        read_turns(file)


def test_the_list_of_messages_that_is_named_is_read(tmp_path):
    talk = [{"speaker": "A", "text": "Good morning"}, {"speaker": "B", "text": "Ho"}]
    words = [{"speaker": "A", "text": word} for word in ("Good", "morning", "Ho")]
    value = {"text": "Good morning Ho", "words": words, "utterances": talk}
    file = file_with(tmp_path, "log.json", value)
    with pytest.raises(DataError, match="several lists of messages"):
        read_turns(file)
    turns = read_turns(file, {"messages": "utterances"}, options={"bot": "B"})
    assert contexts(turns) == {"Ho": ["Good morning"]}


def test_a_time_under_a_name_of_its_own_tells_the_order(tmp_path):
    messages = []
    for number, (role, text) in enumerate([("bot", "Ho"), ("user", "Hi")]):
        time = f"2025-03-05T10:0{5 - number}:00"
        messages.append({"role": role, "body": text, "posted_at": time})
    turns = read_turns(file_with(tmp_path, "log.json", [{"messages": messages}]))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_days_as_excel_counts_them_tell_the_order(tmp_path):
    text = "conv,who,msg,when\nc,bot,Ho,45721.42\nc,user,Hi,45721.41\n"
    turns = read_turns(file_with(tmp_path, "log.csv", text), {"dialog": "conv"})
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_rows_that_stand_there_twice_are_read_once(tmp_path):
    rows = "d,user,Hi,2025-03-05 10:00\n" * 2 + "d,bot,Ho,2025-03-05 10:01\n" * 2
    turns = read_turns(
        file_with(tmp_path, "log.csv", f"dialog,speaker,text,time\n{rows}")
    )
    assert contexts(turns) == {"Ho": ["Hi"]}
    reasons = import_report(turns).set_index("unit").loc["utterances", "reasons"]
    assert "2 are the same as another row" in reasons


@pytest.mark.parametrize("name", ["history", "context"])
def test_words_of_the_user_beside_a_context_are_asked_about(name, tmp_path):
    rows = "Hello you,Is it late?,Ten\nGood day,Is there tea?,No\n"
    file = file_with(tmp_path, "log.csv", f"{name},question,answer\n{rows}")
    with pytest.raises(DataError, match=f"has '{name}' and 'question'"):
        read_turns(file)
    named = {"context": "question"} | ({"fact": name} if name == "context" else {})
    turns = read_turns(file, named)
    assert turns["context"].tolist() == [["Is it late?"], ["Is there tea?"]]
    turns = read_turns(file, {"context": name})
    assert turns["context"].tolist() == [["Hello you"], ["Good day"]]


def test_what_two_say_in_pairs_is_no_name_of_a_speaker(tmp_path):
    pairs = [[["Do you have tea?", "No"], ["So?", "Bye"]], [["Is it late?", "Ten"]]]
    with pytest.raises(DataError, match="is no chat log"):
        read_turns(file_with(tmp_path, "log.json", pairs))
    named = [[["Mira", "Hi"], ["Ada", "Ho"], ["Mira", "Tea?"], ["Ada", "No"]]]
    turns = read_turns(file_with(tmp_path, "b.json", named), options={"bot": "Ada"})
    assert contexts(turns)["Ho"] == ["Hi"]


def test_a_human_agent_is_no_bot(tmp_path):
    rows = "d,customer,Hi\nd,bot,Ho\nd,customer,Tea?\nd,human_agent,No\n"
    file = file_with(tmp_path, "log.csv", f"dialog,sender,text\n{rows}")
    assert read_turns(file)["response"].tolist() == ["Ho"]


def test_a_thumb_of_any_color_is_a_rating(tmp_path):
    rows = "d,Hi,Ho,👍🏽\nd,Tea?,No,👎🏿\n"
    file = file_with(tmp_path, "log.csv", f"session,user,bot,feedback\n{rows}")
    assert read_turns(file)["human_feedback"].tolist() == [1, 0]


def test_ratings_in_a_column_of_each_rater_are_of_one_reply(tmp_path):
    names = "dialog,speaker,text,rating_annotator1,rating_annotator2"
    file = file_with(tmp_path, "log.csv", f"{names}\nd,user,Hi,,\nd,bot,Ho,4,1\n")
    turns = read_turns(file)
    assert turns["human_rating"].tolist() == [2.5]
    assert turns.attrs["ratings"]["rater"] == ["annotator1", "annotator2"]


def test_a_trace_without_messages_is_counted_and_the_others_are_read(tmp_path):
    talk = {
        "id": "t1",
        "sessionId": "s",
        "timestamp": "2025-01-01T10:00:00Z",
        "input": [{"role": "user", "content": "Hi"}],
        "output": {"role": "assistant", "content": "Ho"},
        "scores": [],
    }
    score = {"name": "thumbs", "value": 1, "source": "API"}
    silent = talk | {"id": "t2", "sessionId": "e", "input": None, "output": None}
    turns = read_turns(
        file_with(tmp_path, "traces.json", [talk, silent | {"scores": [score]}])
    )
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert "have no messages" in str(import_report(turns))


@pytest.mark.parametrize(
    "cells", ["★★★★☆ ★★☆☆☆", "4 2", "👍 👎"], ids=["stars", "numbers", "thumbs"]
)
def test_a_column_that_may_hold_ratings_is_named_and_read_once_it_is_named(
    cells, tmp_path
):
    good, bad = cells.split()
    expected = [1, 0] if good == "👍" else [4, 2]
    rows = f"d,user,Hi,\nd,bot,Ho,{good}\nd,user,So?,\nd,bot,No,{bad}\n"
    log = file_with(tmp_path, "log.csv", f"dialog,speaker,text,stars\n{rows}")
    turns = read_turns(log)
    assert not any(name.startswith("human_") for name in turns)
    reasons = [reason for _, value, reason, _ in turns.attrs["guesses"]]
    assert "stars may be people's ratings, or scores of a model" in reasons
    assert read_turns(log, columns={"rating": "stars"})["human_rating"].tolist() == (
        expected
    )


def test_rating_names_the_column_of_a_table_of_replies_too(tmp_path):
    table = "prompt,response,helpfulness\nHi,Ho,4\nTea?,No,2\n"
    file = file_with(tmp_path, "replies.csv", table)
    reasons = [reason for *_, reason, _ in read_turns(file).attrs["guesses"]]
    assert any(reason.startswith("helpfulness may be people's") for reason in reasons)
    turns = read_turns(file, columns={"rating": "helpfulness"})
    assert turns["human_rating"].tolist() == [4, 2]


def test_a_field_of_messages_that_may_hold_ratings_is_named(tmp_path):
    messages = [
        {"author": "human", "text": "Hi", "vote": None},
        {"author": "bot", "text": "Ho", "vote": "like"},
    ]
    turns = read_turns(file_with(tmp_path, "chat.json", {"messages": messages}))
    reasons = [reason for *_, reason, _ in turns.attrs["guesses"]]
    assert "vote may be people's ratings, or scores of a model" in reasons


@pytest.mark.parametrize("mark", ["__eot__", "__eou__", "[SEP]", "</s>", "|||"])
def test_marks_of_corpora_divide_a_context(mark, tmp_path):
    rows = f"Hi {mark} Ho {mark} So?,Fine\nTea?{mark}Yes{mark}Now?,No\nHello,Hm\n"
    file = file_with(tmp_path, "replies.csv", f"context,response\n{rows}")
    expected = {"Fine": ["Hi", "Ho", "So?"], "No": ["Tea?", "Yes", "Now?"]}
    assert contexts(read_turns(file)) == expected | {"Hm": ["Hello"]}


def test_a_mark_that_may_be_a_word_of_a_context_is_asked_about(tmp_path):
    rows = "Hi | Ho | So?,Fine\nTea? | Yes | Now?,No\nHello,Hi\n"
    file = file_with(tmp_path, "replies.csv", f"context,response\n{rows}")
    with pytest.raises(DataError, match="which may part utterances"):
        read_turns(file)
    whole = contexts(read_turns(file, columns={"context": "context"}))
    assert whole["Fine"] == ["Hi | Ho | So?"]


def test_names_before_the_lines_of_a_context_are_no_words(tmp_path):
    context = '"User: Hi\nBot: Ho\nUser: So?"'
    file = file_with(tmp_path, "replies.csv", f"context,response\n{context},Fine\n")
    assert contexts(read_turns(file)) == {"Fine": ["Hi", "Ho", "So?"]}
    further = '"User: Hi\nBot: Ho\nho\nUser: So?"'
    file = file_with(tmp_path, "further.csv", f"context,response\n{further},Fine\n")
    with pytest.raises(DataError, match="before most lines of the contexts"):
        read_turns(file)


def test_a_framed_title_begins_a_dialog_and_is_no_word_of_the_one_above(tmp_path):
    talk = "User: Hi\nBot: Ho\nUser: So?\nBot: Fine\n"
    text = "".join(f"=== Session {n} (May) ===\n{talk}\n" for n in (1, 2))
    turns = read_turns(file_with(tmp_path, "log.txt", text))
    assert turns["dialog"].nunique() == 2
    assert set(turns["response"]) == {"Ho", "Fine"}


def test_a_line_of_a_log_without_a_speaker_is_no_word_of_the_one_above(tmp_path):
    text = (
        "2026-01-01 10:00:00 INFO user: Hi\n2026-01-01 10:00:01 INFO bot: Ho\n"
        "2026-01-01 10:00:02 WARNING slow answer\n"
    )
    turns = read_turns(file_with(tmp_path, "log.txt", text))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert "log lines of no speaker" in str(import_report(turns))


def test_an_agent_beside_a_bot_is_asked_about(tmp_path):
    rows = (
        "1,customer,Hi\n1,assistant,Ho\n1,customer,A person please\n1,agent,Here I am\n"
    )
    file = file_with(tmp_path, "log.csv", f"case,sender,message\n{rows}")
    with pytest.raises(DataError, match="an agent, who may be a person"):
        read_turns(file)
    turns = read_turns(file, options={"bot": "assistant"})
    assert turns["response"].tolist() == ["Ho"]


def test_a_dialog_of_one_time_stands_in_the_order_of_the_file_it_is_in(tmp_path):
    """Newest first, and question and answer of the same second: the answer stands above."""
    rows = """b,2026-05-03T12:00:00,AI,Ho
b,2026-05-03T12:00:00,Human,Hi
a,2026-05-02T11:00:00,AI,No
a,2026-05-02T11:00:00,Human,Tea?
a,2026-05-02T10:00:00,AI,Yes
a,2026-05-02T10:00:00,Human,Milk?
"""
    table = f"Conversation,Time,Author,Message\n{rows}"
    turns = read_turns(file_with(tmp_path, "history.csv", table))
    assert contexts(turns) == {
        "Ho": ["Hi"],
        "Yes": ["Milk?"],
        "No": ["Milk?", "Yes", "Tea?"],
    }


def test_preferences_of_one_record_without_a_prompt_are_two_replies(tmp_path):
    asked = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    asked.append({"role": "user", "content": "So?"})
    record = {
        "chosen": [*asked, {"role": "assistant", "content": "Fine"}],
        "rejected": [*asked, {"role": "assistant", "content": "No"}],
    }
    turns = read_turns(file_with(tmp_path, "pairs.jsonl", record))
    assert contexts(turns) == dict.fromkeys(["Fine", "No"], ["Hi", "Ho", "So?"])


def test_marks_and_calls_of_a_template_are_no_words(tmp_path):
    prompt = "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
    row = {"prompt": prompt, "completion": "Ho<|eot_id|>"}
    turns = read_turns(file_with(tmp_path, "llama.jsonl", row))
    assert contexts(turns) == {"Ho": ["Hi"]}
    chat = "USER: Hi\n\n\nASSISTANT: <functioncall> {} <|endoftext|>\n\n\n"
    chat += "FUNCTION RESPONSE: {}\n\n\nASSISTANT: Ho <|endoftext|>\n\n\n"
    turns = read_turns(file_with(tmp_path, "glaive.json", [{"chat": chat}]))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_both_kinds_of_cases_of_a_test_run_are_read(tmp_path):
    turns = [
        {"role": "user", "content": "Tea?"},
        {"role": "assistant", "content": "No"},
    ]
    run = {
        "testCases": [{"input": "Hi", "actualOutput": "Ho"}],
        "conversationalTestCases": [{"name": "c", "turns": turns}],
    }
    read = read_turns(file_with(tmp_path, "run.json", run))
    assert contexts(read) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_words_in_blocks_beside_an_empty_text_are_words_and_thinking_is_none(tmp_path):
    messages = [
        {
            "role": "user",
            "content": "",
            "contentChunks": [{"type": "text", "text": "Hi"}],
        },
        {"role": "assistant", "content": "Ho", "contentChunks": None},
    ]
    assert contexts(read_turns(file_with(tmp_path, "chat.json", messages))) == {
        "Ho": ["Hi"]
    }
    step = {"content": [{"type": "text", "text": "Ho"}]}
    thought = {
        "content": [{"type": "text", "text": "Hm"}],
        "style": {"type": "thinking"},
    }
    asked = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    chat = {
        "messages": [
            {"versions": [asked], "currentlySelected": 0},
            {"versions": [{"role": "assistant", "steps": [thought, step]}]},
        ]
    }
    turns = read_turns(file_with(tmp_path, "lm.conversation.json", chat))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_chats_that_repeat_their_history_are_counted_once(tmp_path):
    first = {"message": "Hi", "chat_history": [], "text": "Ho"}
    history = [{"role": "USER", "message": "Hi"}, {"role": "CHATBOT", "message": "Ho"}]
    second = {"message": "So?", "chat_history": history, "text": "Fine"}
    text = "".join(json.dumps(row) + "\n" for row in (first, second))
    turns = read_turns(file_with(tmp_path, "cohere.jsonl", text))
    assert contexts(turns) == {"Ho": ["Hi"], "Fine": ["Hi", "Ho", "So?"]}
    assert len(turns) == 2


def test_words_of_several_lines_in_quotation_marks_are_whole(tmp_path):
    text = '[LINE] Chat\n2026/05/03\n09:00\tYuki\tHi\n09:01\tAda\t"Ho\nho"\n'
    file = file_with(tmp_path, "line.txt", text + "09:02\tYuki\tSo?\n09:03\tAda\tNo\n")
    turns = read_turns(file, options={"bot": "Ada"})
    assert contexts(turns) == {"Ho\nho": ["Hi"], "No": ["Hi", "Ho\nho", "So?"]}


def test_strangers_who_write_to_the_same_bot_are_dialogs_of_their_own(tmp_path):
    rows = "+1,+9,Hi\n+2,+9,Tea?\n+9,+1,Ho\n+9,+2,No\n"
    file = file_with(tmp_path, "sms.csv", f"From,To,Body\n{rows}")
    turns = read_turns(file, options={"bot": "+9"})
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_of_several_replies_beside_messages_the_named_one_is_read_with_its_context(
    tmp_path,
):
    record = {"messages": [{"role": "user", "content": "Hi"}]}
    record |= {"response": "Ho", "output": "No"}
    file = file_with(tmp_path, "log.jsonl", [record, record | {"response": "Hm"}])
    with pytest.raises(DataError, match="COLUMNS=.response="):
        read_turns(file)
    for name, replies in {"response": ["Ho", "Hm"], "output": ["No", "No"]}.items():
        turns = read_turns(file, columns={"response": name})
        assert turns["response"].tolist() == replies
        assert turns["context"].tolist() == [["Hi"], ["Hi"]]


def test_ratings_of_an_annotation_that_was_cancelled_are_nobodys(tmp_path):
    messages = [{"author": "user", "text": "Hi"}, {"author": "bot", "text": "Ho"}]
    given = [{"from_name": "good", "type": "rating", "value": {"rating": 4}}]
    taken_back = [{"from_name": "good", "type": "rating", "value": {"rating": 1}}]
    annotations = [
        {"completed_by": 1, "result": given, "was_cancelled": False},
        {"completed_by": 2, "result": taken_back, "was_cancelled": True},
    ]
    task = {"id": 1, "data": {"dialogue": messages}, "annotations": annotations}
    turns = read_turns(file_with(tmp_path, "project.json", [task]))
    assert turns["human_good"].tolist() == [4]
    assert "annotations that were cancelled" in str(import_report(turns))


RATED_UTTERANCES = """dialog,{turn}speaker,text,{rater},human_quality
d,{zero}user,Hi,,
d,{one}bot,Ho,ann,3
d,{one}bot,Ho,ben,5
d,{two}user,Tea?,,
d,{three}bot,No,ann,2
d,{three}bot,No,ben,4
"""
WITH_TURNS = {"turn": "turn,", "zero": "0,", "one": "1,", "two": "2,", "three": "3,"}


@pytest.mark.parametrize("turns_of_file", [WITH_TURNS, dict.fromkeys(WITH_TURNS, "")])
def test_rows_of_several_raters_are_one_utterance(turns_of_file, tmp_path):
    text = RATED_UTTERANCES.format(rater="annotator", **turns_of_file)
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}
    assert turns["human_quality"].tolist() == [4.0, 3.0]
    assert turns.attrs["ratings"]["rater"] == ["ann", "ben", "ann", "ben"]


def test_whole_dialogs_that_each_rater_rated_are_one(tmp_path):
    rows = []
    for rater, rating in (("ann", 3), ("ben", 5)):
        rows += [f"d,user,Hi,{rater},", f"d,bot,Ho,{rater},{rating}"]
    text = "\n".join(["dialog,speaker,text,rater,rating", *rows])
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert turns[["response", "human_rating"]].values.tolist() == [["Ho", 4.0]]


def test_rows_of_an_utterance_that_differ_in_an_unknown_column_are_asked_about(
    tmp_path,
):
    file = file_with(
        tmp_path, "log.csv", RATED_UTTERANCES.format(rater="labeler", **WITH_TURNS)
    )
    with pytest.raises(DataError, match='COLUMNS="rater=labeler" for raters'):
        read_turns(file)
    turns = read_turns(file, {"rater": "labeler"})
    assert turns["human_quality"].tolist() == [4.0, 3.0]


def test_a_bot_that_says_the_same_again_is_rated_twice(tmp_path):
    rows = "d,1,bot,Ho,ann,3\nd,2,user,Hi,,\nd,3,bot,Ho,ann,5\n"
    text = f"dialog,turn,speaker,text,rater,rating\nd,0,user,Hi,,\n{rows}"
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert turns["human_rating"].tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    "name, cells, numbers",
    [
        ("rating", ["4/5", "2/5"], [4, 2]),
        ("rating", ["GOOD", "BAD"], [1, 0]),
        ("feedback", ["👍", "👎"], [1, 0]),
        ("user_rating", ["★★★☆☆", ""], [3, None]),
        ("rating", ["4 stars", "1 star"], [4, 1]),
        ("rating", ["80%", "60 %"], [80, 60]),
        ("human_rating", ["4/5", "3"], [4, 3]),
    ],
)
def test_ratings_beside_replies_are_read_however_they_are_written(
    name, cells, numbers, tmp_path
):
    rows = [f"q{n},r{n},m,{cell}" for n, cell in enumerate(cells)]
    text = "\n".join([f"prompt,response,model,{name}", *rows])
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    column = f"human_{name.removeprefix('human_')}"
    expected = pd.Series(numbers, dtype=float, name=column)
    pd.testing.assert_series_equal(turns[column], expected)


def test_comments_beside_replies_are_no_ratings(tmp_path):
    text = "prompt,response,model,feedback\nHi,Ho,m,too short\nTea?,No,m,nice\n"
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert not turns.filter(like="human_").size


def test_a_scale_from_minus_one_to_one_has_three_values(tmp_path):
    messages = []
    for rating in (-1, 0, 1):
        reply = {"role": "assistant", "content": f"Ho {rating}", "rating": rating}
        messages += [{"role": "user", "content": "Hi"}, reply]
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert turns["human_rating"].tolist() == [-1, 0, 1]


def test_lists_of_a_number_per_rater_are_ratings(tmp_path):
    reply = {
        "response": "Ho",
        "model": "m",
        "Uses Knowledge": [1, 0],
        "Overall": [4, 5],
    }
    value = [{"context": "Hi\n", "responses": [reply, reply | {"model": "n"}]}]
    turns = read_turns(file_with(tmp_path, "usr.json", value))
    ratings = turns[["human_uses_knowledge", "human_overall"]]
    assert ratings.values.tolist() == [[0.5, 4.5], [0.5, 4.5]]


def support_message(kind, name, text, **author):
    author |= {"type": kind, "displayName": name}
    return {"author": author, "content": {"type": "text", "text": text}}


def test_a_person_who_answers_beside_a_bot_is_no_bot(tmp_path):
    messages = [
        support_message("user", "Pam", "Hi"),
        support_message("business", "Answer Bot", "Ho"),
        support_message("business", "Greg", "Let me see"),
    ]
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert turns["response"].tolist() == ["Ho"]
    messages[1]["author"]["displayName"] = "Otto"
    file = file_with(tmp_path, "log.json", {"messages": messages})
    with pytest.raises(DataError, match="BOT=.Greg"):
        read_turns(file)


def test_agents_that_the_file_calls_people_are_no_bots(tmp_path):
    records = []
    for sender, number in (("Consumer", "c"), ("Agent", "1"), ("Agent", "2")):
        words = {"msg": {"text": f"from {number}"}}
        records.append(
            {"sentBy": sender, "participantId": number, "messageData": words}
        )
    people = [
        {"agentId": "1", "agentNickname": "Ada", "userTypeName": "Bot"},
        {"agentId": "2", "agentNickname": "Maria", "userTypeName": "Human"},
    ]
    history = {"messageRecords": records, "agentParticipants": people}
    value = {"conversationHistoryRecords": [history]}
    turns = read_turns(file_with(tmp_path, "log.json", value))
    assert turns[["system", "response"]].values.tolist() == [["Ada", "from 1"]]


def test_a_deleted_message_is_no_reply(tmp_path):
    rows = []
    for name, role, deleted in (("a", "prompter", False), ("b", "assistant", True)):
        row = {"message_id": name, "parent_id": None, "message_tree_id": "t"}
        rows.append(row | {"role": role, "text": name, "deleted": deleted})
    rows[1]["parent_id"] = "a"
    rows.append({**rows[1], "message_id": "c", "text": "c", "deleted": False})
    text = "\n".join(json.dumps(row) for row in rows)
    turns = read_turns(file_with(tmp_path, "messages.jsonl", text))
    assert contexts(turns) == {"c": ["a"]}


@pytest.mark.parametrize("form", ["mapping", "lists", "records", "one"])
def test_lines_with_speakers_in_a_list_are_messages(form, tmp_path):
    lines = ["User: Hi", "Bot: Ho"]
    other = ["User: Tea?", "Bot: No"]
    values = {
        "mapping": {"session_0": lines, "session_1": other},
        "lists": [lines, other],
        "records": [{"id": 1, "dialog": lines}, {"id": 2, "dialog": other}],
        "one": [*lines, *other],
    }
    turns = read_turns(file_with(tmp_path, "log.json", values[form]))
    assert turns["response"].tolist() == ["Ho", "No"]
    assert contexts(turns)["Ho"] == ["Hi"]


def test_replies_within_a_post_are_a_dialog(tmp_path):
    reply = {"user": "infobot", "message": "Ho", "props": {"from_bot": "true"}}
    post = {"user": "sven", "message": "Hi", "channel": "help", "replies": [reply]}
    lines = [{"type": "version", "version": 1}, {"type": "post", "post": post}]
    text = "\n".join(map(json.dumps, lines))
    turns = read_turns(file_with(tmp_path, "export.jsonl", text))
    assert turns[["system", "context", "response"]].values.tolist() == [
        ["infobot", ["Hi"], "Ho"]
    ]


@pytest.mark.parametrize("name", ["rating", "feedback"])
def test_ratings_in_words_beside_replies_are_named(name, tmp_path):
    text = f"prompt,response,model,{name}\nHi,Ho,m,Excellent\nTea?,No,m,Poor\n"
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    reasons = [reason for _, _, reason, _ in turns.attrs["guesses"]]
    assert f"{name} holds words: write numbers" in reasons


@pytest.mark.parametrize(
    "rating, values, raters",
    [
        ({"rating": [4, 2]}, {"human_rating": 3}, [None, None]),
        ({"feedback": {"rating": 4, "comment": "ok"}}, {"human_feedback": 4}, [None]),
        (
            {"ratings": [{"rater": "ann", "score": 4}, {"rater": "ben", "score": 1}]},
            {"human_rating": 2.5},
            ["ann", "ben"],
        ),
        (
            {"ratings": [{"annotator": "ann", "criterion": "Fluency", "value": 4}]},
            {"human_fluency": 4},
            ["ann"],
        ),
    ],
)
def test_ratings_of_a_message_may_be_nested(rating, values, raters, tmp_path):
    messages = [{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}]
    messages[1] |= rating
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert turns.filter(like="human_").iloc[0].to_dict() == values
    assert turns.attrs["ratings"]["rater"] == raters


@pytest.mark.parametrize("name", ["human_ratings", "reactions", "annotations"])
def test_nested_fields_that_may_be_ratings_are_named(name, tmp_path):
    messages = [{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}]
    messages[1][name] = [{"label": "good"}]
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    reasons = " ".join(reason for _, _, reason, _ in turns.attrs["guesses"])
    assert f"{name} may be people's ratings" in reasons


@pytest.mark.parametrize(
    ("name", "opinion"),
    [
        ("liked", True),
        ("thumbsUp", False),
        ("upvoted", True),
        ("helpful", True),
        ("label", "good"),
        ("feedbackType", "positive"),
        ("grade", "B"),
        ("wizard_eval", 5),
        ("votes", {"up": 3, "down": 1}),
    ],
)
def test_clicks_words_and_letters_that_may_be_ratings_are_named(
    name, opinion, tmp_path
):
    messages = [{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}]
    messages[1][name] = opinion
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    reasons = " ".join(reason for _, _, reason, _ in turns.attrs["guesses"])
    assert f"{name} may be people's ratings" in reasons


@pytest.mark.parametrize("name", ["rater_{}", "rating_annotator{}"])
def test_a_column_per_rater_beside_replies_is_read(name, tmp_path):
    columns = f"{name.format(1)},{name.format(2)}"
    text = f"question,answer,{columns}\nHi,Ho,4,2\nTea?,No,1,\n"
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert turns["human_rating"].tolist() == [3.0, 1.0]
    assert turns.attrs["ratings"]["rating"] == [4, 2, 1]
    assert len(set(turns.attrs["ratings"]["rater"])) == 2


def test_a_rating_for_each_numbered_reply_is_of_that_reply(tmp_path):
    columns = "id,user_1,bot_1,rating_1,user_2,bot_2,rating_2"
    text = f"{columns}\n1,Hi,Ho,4,Tea?,No,2\n2,Hey,Hm,3,Milk?,Yes,5\n"
    turns = read_turns(file_with(tmp_path, "wide.csv", text))
    assert turns["human_rating"].tolist() == [4, 2, 3, 5]


@pytest.mark.parametrize(
    "column, of_deleted, of_others",
    [
        ("deleted", "true", "false"),
        ("is_deleted", "1", "0"),
        ("deleted_at", "2024-05-06 10:00", ""),
        ("status", "deleted", "sent"),
    ],
)
def test_what_a_table_says_was_deleted_is_no_reply(
    column, of_deleted, of_others, tmp_path
):
    rows = f"d,user,Hi,{of_others}\nd,bot,Ho,{of_deleted}\nd,bot,Hm,{of_others}\n"
    file = file_with(tmp_path, "log.csv", f"dialog,speaker,text,{column}\n{rows}")
    assert contexts(read_turns(file)) == {"Hm": ["Hi"]}


def test_of_the_versions_of_an_edited_message_the_last_counts(tmp_path):
    messages = [{"id": "1", "role": "user", "content": "Hi"}]
    messages.append({"id": "2", "role": "assistant", "content": "Ho"})
    messages.append({"id": "3", "role": "user", "content": "Tea?"})
    messages.append({"id": "2", "role": "assistant", "content": "Ho, edited"})
    messages.append({"id": "4", "role": "assistant", "content": "No"})
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert contexts(turns) == {"Ho, edited": ["Hi"], "No": ["Hi", "Ho, edited", "Tea?"]}


def test_several_messages_with_the_id_of_their_exchange_stay(tmp_path):
    messages = []
    for number, texts in (("1", ["Hi", "Ho", "Hm"]), ("2", ["Tea?", "No", "Yes"])):
        for role, text in zip(["user", "bot", "bot"], texts, strict=True):
            messages.append({"id": number, "role": role, "content": text})
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert turns["response"].tolist() == ["Ho", "Hm", "No", "Yes"]


def test_the_first_message_of_a_thread_in_slack_is_context(tmp_path):
    rows = [{"type": "message", "user": "U1", "text": "Hi", "ts": "1.0"}]
    rows.append({"type": "message", "bot_id": "B1", "text": "Ho", "ts": "2.0"})
    rows[1]["thread_ts"] = "1.0"
    turns = read_turns(file_with(tmp_path, "2024-05-06.json", rows))
    assert contexts(turns) == {"Ho": ["Hi"]}


EXAMPLES = [
    {"input": "Hi", "output": "Ho", "model": "m"},
    {"input": "Tea?", "output": "No", "model": "m"},
]


def test_examples_below_a_name_are_each_of_its_own(tmp_path):
    file = file_with(tmp_path, "run.json", {"results": EXAMPLES})
    turns = read_turns(file)
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}
    assert set(turns["system"]) == {"m"}


def test_exchanges_below_an_unclear_name_are_asked_about(tmp_path):
    file = file_with(tmp_path, "run.json", {"stuff": EXAMPLES})
    with pytest.raises(DataError, match='COLUMNS="messages=stuff" .* or KIND=table'):
        read_turns(file)
    assert contexts(read_turns(file, {"messages": "stuff"}))["No"] == [
        "Hi",
        "Ho",
        "Tea?",
    ]
    assert contexts(read_turns(file, options={"kind": "table"}))["No"] == ["Tea?"]


def test_exchanges_of_one_dialog_keep_ratings_and_models(tmp_path):
    exchanges = [example | {"rating": 4} for example in EXAMPLES]
    turns = read_turns(file_with(tmp_path, "log.json", {"history": exchanges}))
    assert contexts(turns)["No"] == ["Hi", "Ho", "Tea?"]
    assert turns["human_rating"].tolist() == [4, 4] and set(turns["system"]) == {"m"}


@pytest.mark.parametrize("indent", [None, 1])
def test_json_values_that_follow_each_other_are_read(indent, tmp_path):
    values = []
    for question, reply in (("Hi", "Ho"), ("Tea?", "No")):
        messages = [{"role": "user", "content": question}]
        messages.append({"role": "assistant", "content": reply})
        values.append(json.dumps({"messages": messages}, indent=indent))
    turns = read_turns(file_with(tmp_path, "log.json", "\n".join(values)))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


@pytest.mark.parametrize(
    "text", ["Köln, Straße, grün", "près de l'étage, n° 5", "¿Qué tal, señor?"]
)
def test_a_few_western_letters_are_no_chinese_ones(text, tmp_path):
    file = tmp_path / "log.csv"
    table = f"dialog,speaker,text\nd,user,{text.replace(',', '')}\nd,bot,Ho\n"
    file.write_bytes(table.encode("cp1252"))
    assert read_turns(file)["context"][0] == [text.replace(",", "")]


def test_messages_in_html_are_read_by_their_words(tmp_path):
    words = "<div class='m'><p>Costs &lt; 5 euros<br>Fast</p></div>"
    rows = f'd,user,"<p>Hi &amp; hello</p>"\nd,bot,"{words}"\n'
    turns = read_turns(file_with(tmp_path, "log.csv", f"dialog,speaker,text\n{rows}"))
    assert turns["context"][0] == ["Hi & hello"]
    assert turns["response"][0] == "Costs < 5 euros\nFast"


def test_a_tag_among_words_stays(tmp_path):
    rows = "d,user,Use <p> or <br>?\nd,bot,<p> is a paragraph.\n"
    turns = read_turns(file_with(tmp_path, "log.csv", f"dialog,speaker,text\n{rows}"))
    assert contexts(turns) == {"<p> is a paragraph.": ["Use <p> or <br>?"]}


@pytest.mark.parametrize("flag", [{"partial": True}, {"is_final": False}])
def test_the_states_of_a_stream_are_no_replies(flag, tmp_path):
    messages = [{"role": "user", "content": "Hi"}]
    messages.append({"role": "assistant", "content": "H"} | flag)
    messages.append({"role": "assistant", "content": "Ho"})
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_what_a_tool_returns_in_the_name_of_a_named_bot_is_no_reply(tmp_path):
    messages = [
        {"source": "user", "content": "Hi", "type": "TextMessage"},
        {"source": "ada", "content": "hits", "type": "ToolCallExecutionEvent"},
        {"source": "ada", "content": "Transferred.", "type": "HandoffMessage"},
        {"source": "ada", "content": "Ho", "type": "TextMessage"},
    ]
    file = file_with(tmp_path, "log.json", {"messages": messages})
    turns = read_turns(file, options={"bot": "ada"})
    assert turns[["context", "response"]].values.tolist() == [[["Hi"], "Ho"]]


def test_the_name_of_a_bot_goes_before_the_name_of_a_role(tmp_path):
    rows = "d,user,Hi\nd,assistant,Ho\nd,agent-action,Ended call\n"
    file = file_with(tmp_path, "log.csv", f"dialog,speaker,text\n{rows}")
    turns = read_turns(file, options={"bot": "assistant"})
    assert turns["response"].tolist() == ["Ho"]


def test_the_model_in_the_settings_of_a_dialog_is_its_system(tmp_path):
    dialogs = []
    for model in ("m1", "m2"):
        messages = [{"role": "user", "content": "Hi"}]
        messages.append({"role": "assistant", "content": f"Ho {model}"})
        dialogs.append({"id": model, "config": {"model": model}, "messages": messages})
    turns = read_turns(file_with(tmp_path, "log.json", {"chats": dialogs}))
    assert turns["system"].tolist() == ["m1", "m2"]


def test_a_history_in_the_lines_of_an_instruction_is_context(tmp_path):
    instruction = "Human:Hi\nAssistant:Ho\nHuman:Tea?\nAssistant:"
    row = {"instruction": instruction, "input": "", "output": "No"}
    turns = read_turns(file_with(tmp_path, "belle.json", [row]))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


@pytest.mark.parametrize(
    "vote, values",
    [("leftvote", [1, 0]), ("rightvote", [0, 1]), ("tievote", [0.5] * 2)],
)
def test_the_vote_on_a_pair_of_fastchat_is_a_preference(vote, values, tmp_path):
    states = []
    for model in ("m1", "m2"):
        messages = [["USER", "Hi"], ["ASSISTANT", f"Ho {model}"]]
        state = {"roles": ["USER", "ASSISTANT"], "messages": messages}
        states.append(state | {"model_name": model, "conv_id": model})
    row = {"type": vote, "states": states}
    turns = read_turns(file_with(tmp_path, "votes.jsonl", json.dumps(row)))
    assert turns["system"].tolist() == ["m1", "m2"]
    assert turns["human_preference"].tolist() == values


@pytest.mark.parametrize("name", ["winner", "preferred", "preference", "choice"])
def test_who_was_preferred_may_have_several_names(name, tmp_path):
    columns = f"prompt,model_a,response_a,model_b,response_b,{name},annotator"
    text = f"{columns}\nHi,m,Ho,n,Hm,A,ann\nTea?,m,No,n,Yes,tie,ann\n"
    turns = read_turns(file_with(tmp_path, "pairs.csv", text))
    assert turns["human_preference"].tolist() == [1, 0, 0.5, 0.5]
    assert set(turns.attrs["ratings"]["rater"]) == {"ann"}


def test_ratings_with_a_name_are_read_and_a_dash_is_none(tmp_path):
    text = "prompt,response,rating_anna,rating_ben\nHi,Ho,4,-\nTea?,No,2,3\n"
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert turns["human_rating_anna"].tolist() == [4, 2]
    assert turns["human_rating_ben"].isna().tolist() == [True, False]


def test_a_rating_that_no_format_reads_is_named(tmp_path):
    messages = [{"role": "user", "content": "Hi"}, {"role": "bot", "content": "Ho"}]
    record = {"messages": messages, "labels": {"userSurveyRating": 5}}
    turns = read_turns(file_with(tmp_path, "log.json", record))
    reasons = [reason for _, _, reason, _ in turns.attrs["guesses"]]
    assert "userSurveyRating is not read" in reasons


def test_messages_with_a_flag_for_people_have_two_sides(tmp_path):
    messages = [
        {"message": "Hi", "is_human": True},
        {"message": "Ho", "is_human": False},
    ]
    record = {"bot_name": "Orla", "conversation": messages}
    turns = read_turns(file_with(tmp_path, "log.jsonl", json.dumps(record)))
    assert turns[["system", "context", "response"]].values.tolist() == [
        ["Orla", ["Hi"], "Ho"]
    ]


def test_calls_of_tools_are_no_dialogs(tmp_path):
    history = [{"role": "user", "content": "Hi"}]
    history.append({"role": "assistant", "content": "Ho"})
    call = {"role": "tool", "content": "a.txt", "tool_call_ids": ["c1"]}
    history += [call, call, {"role": "assistant", "content": "No"}]
    value = {"history": history, "trajectory": [], "info": {}}
    turns = read_turns(file_with(tmp_path, "issue.traj", value))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho"]}


def test_a_piece_of_a_telegram_message_may_be_empty(tmp_path):
    messages = []
    for number, (name, text) in enumerate([("Pam", "Hi"), ("TeaBot", ["Ho", {}])]):
        message = {"id": number, "type": "message", "from": name, "text": text}
        messages.append(message | {"from_id": f"user{number}"})
    messages[1]["text"][1] = {"type": "bold", "text": None}
    value = {"name": "TeaBot", "type": "bot_chat", "messages": messages}
    assert read_turns(file_with(tmp_path, "result.json", value))["response"][0] == "Ho"


def test_a_file_of_the_name_of_its_folder_is_named_whole(tmp_path):
    folder = tmp_path / "chats"
    folder.mkdir()
    file = file_with(folder, "chats", "{}")
    with pytest.raises(DataError, match=f"{file}:"):
        read_turns(folder)


def test_a_word_among_numbers_is_no_one_of_a_scale(tmp_path):
    text = "prompt,response,model,human_x\nHi,Ho,m,4\nTea?,No,m,good\n"
    with pytest.raises(DataError, match="row 2.*human_x.*good"):
        read_turns(file_with(tmp_path, "replies.csv", text))


def test_direct_messages_of_x_are_read_from_their_script(tmp_path):
    messages = [  # newest first
        {"senderId": "7", "recipientId": "5", "text": "Ho", "id": "12"},
        {"senderId": "5", "recipientId": "7", "text": "Hi", "id": "11"},
    ]
    for hour, message in zip((11, 10), messages, strict=True):
        message["createdAt"] = f"2025-03-01T{hour}:00:00.000Z"
    listed = [{"messageCreate": message} for message in messages]
    value = [{"dmConversation": {"conversationId": "5-7", "messages": listed}}]
    text = f"window.YTD.direct_messages.part0 = {json.dumps(value)}"
    file = file_with(tmp_path, "direct-messages.js", text)
    with pytest.raises(DataError, match="BOT="):
        read_turns(file)
    assert contexts(read_turns(file, options={"bot": "7"})) == {"Ho": ["Hi"]}


def test_of_chats_in_snapchat_only_those_with_its_bot_are_read(tmp_path):
    def message(name, text, second, kind="TEXT"):
        created = f"2025-03-01 10:00:{second} UTC"
        return {"From": name, "Media Type": kind, "Created": created, "Content": text}

    value = {
        "olga": [message("olga", "Hey", 10)],
        "myai": [
            message("myai", "Ho", 30),
            message("mira", None, 20, kind="MEDIA"),
            message("mira", "Hi", 10) | {"IsSender": True},
        ],
    }
    turns = read_turns(file_with(tmp_path, "chat_history.json", value))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_the_accounts_of_a_zulip_export_stand_in_another_file(tmp_path):
    messages = []
    for number, (sender, topic) in enumerate([(5, "a"), (7, "a"), (5, "b"), (7, "b")]):
        message = {"id": number, "sender": sender, "recipient": 1, "subject": topic}
        message |= {"content": f"{topic}{sender}", "date_sent": 1741169000.5 + number}
        messages.append(message)
    people = [{"id": 5, "full_name": "Mira", "is_bot": False}]
    bots = [{"id": 7, "full_name": "Ada", "is_bot": True}]
    realm = {"zerver_userprofile": people, "zerver_userprofile_crossrealm": bots}
    file_with(tmp_path, "realm.json", realm)
    file_with(tmp_path, "messages-000001.json", {"zerver_message": messages})
    turns = read_turns(tmp_path)
    assert contexts(turns) == {"a7": ["a5"], "b7": ["b5"]}
    assert set(turns["system"]) == {"Ada"}


def test_names_before_all_lines_of_contexts_are_taken_away(tmp_path):
    """One is called USER, so the other one is a side, too, whatever its name."""
    text = """item,context,response,human_x
1,"USER: Hi
LAMDA: Hello: you?
USER: Good",Fine.,4
2,USER: Tea?,No.,2
"""
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert contexts(turns) == {"Fine.": ["Hi", "Hello: you?", "Good"], "No.": ["Tea?"]}


def test_several_raters_without_ratings_are_asked_for_their_column(tmp_path):
    text = "rater_id,context,response,q_safe\n1,Hi,Ho,Yes\n2,Hi,Ho,No\n"
    file = file_with(tmp_path, "replies.csv", text)
    with pytest.raises(DataError, match='rater_id.*\n.*COLUMNS="rating=...'):
        read_turns(file)
    turns = read_turns(file, columns={"rating": "q_safe"})
    assert turns["human_rating"].tolist() == [0.5]


def test_a_list_of_ratings_below_another_name_is_named(tmp_path):
    record = {"dialog": [{"user": "Hi", "bot": "Ho"}], "turn_ratings": [4]}
    turns = read_turns(file_with(tmp_path, "log.json", [record]))
    assert any("turn_ratings" in reason for _, _, reason, _ in turns.attrs["guesses"])


def trace(number, question, answer, session="s1"):
    """A trace of Langfuse that holds no history."""
    fields = {"id": f"t{number}", "name": "turn", "sessionId": session}
    fields |= {"timestamp": f"2025-06-02T10:0{number}:00Z", "tags": []}
    return fields | {"input": question, "output": answer}


def test_traces_of_a_session_in_files_of_their_own_are_one_dialog(tmp_path):
    traces = [trace(1, "Hi", "Ho"), trace(2, "Tea?", "No"), trace(3, "Hey", "?", "s2")]
    for number, value in zip((3, 1, 2), traces, strict=True):
        file_with(tmp_path, f"trace-{number}.json", value)
    turns = read_turns(tmp_path)
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"], "?": ["Hey"]}


def test_requests_with_histories_in_files_of_their_own_are_read_once(tmp_path):
    history = []
    for number, (question, answer) in enumerate([("Hi", "Ho"), ("Tea?", "No")]):
        history = [*history, {"role": "user", "content": question}]
        choice = {"index": 0, "message": {"role": "assistant", "content": answer}}
        value = {"request": {"messages": history}, "response": {"choices": [choice]}}
        file_with(tmp_path, f"{number}.json", value)
        history = [*history, {"role": "assistant", "content": answer}]
    turns = read_turns(tmp_path)
    assert turns["response"].tolist() == ["Ho", "No"]
    assert contexts(turns)["No"] == ["Hi", "Ho", "Tea?"]


def mlflow_trace(inputs):
    attributes = {"mlflow.spanInputs": json.dumps(inputs), "mlflow.spanOutputs": '"Ho"'}
    info = {"trace_id": "t1", "request_time": "2025-08-01T09:00:00Z"}
    return {"info": info, "data": {"spans": [{"attributes": attributes}]}}


def test_what_went_into_a_trace_may_have_the_name_of_a_message(tmp_path):
    turns = read_turns(file_with(tmp_path, "t.json", [mlflow_trace({"message": "Hi"})]))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_a_trace_with_an_input_that_is_not_understood_is_left_out(tmp_path):
    """The reply alone would look as if nobody had asked anything."""
    value = [mlflow_trace({"message": "Hi"}), mlflow_trace({"pear": {"kilos": 2}})]
    turns = read_turns(file_with(tmp_path, "t.json", value))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert "1 have no messages" in import_report(turns)["reasons"].str.cat()


def test_the_prompt_of_lm_eval_may_be_a_chat_in_a_list(tmp_path):
    chat = json.dumps([{"role": "user", "content": "Hi"}])
    arguments = {"gen_args_0": {"arg_0": [chat], "arg_1": {"until": []}}}
    row = {"doc_id": 0, "arguments": arguments, "resps": [["Ho"]], "target": "x"}
    assert contexts(read_turns(file_with(tmp_path, "s.json", [row]))) == {"Ho": ["Hi"]}


def test_each_candidate_of_gemini_is_a_reply(tmp_path):
    candidates = []
    for text in ("Ho", "Hey"):
        parts = [{"text": "thinking", "thought": True}, {"text": text}]
        candidates.append({"content": {"role": "model", "parts": parts}})
    request = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    row = {"request": request, "response": {"candidates": candidates}}
    turns = read_turns(file_with(tmp_path, "batch.jsonl", json.dumps(row)))
    assert contexts(turns) == {"Ho": ["Hi"], "Hey": ["Hi"]}


def test_the_results_of_a_batch_of_anthropic_are_read_with_its_requests(tmp_path):
    results = []
    requests = []
    for number in (1, 2):
        content = [
            {"type": "thinking", "thinking": "x"},
            {"type": "text", "text": "Ho"},
        ]
        message = {"role": "assistant", "model": "m", "content": content}
        result = {"type": "succeeded", "message": message}
        results.append({"custom_id": f"r{number}", "result": result})
        asked = {"messages": [{"role": "user", "content": f"Hi {number}"}]}
        requests.append({"custom_id": f"r{number}", "params": asked})
    file_with(tmp_path, "a_results.jsonl", "\n".join(map(json.dumps, results)))
    with pytest.raises(DataError, match="requests"):
        read_turns(tmp_path)
    file_with(tmp_path, "requests.json", {"requests": requests})
    turns = read_turns(tmp_path)
    assert turns["context"].tolist() == [["Hi 1"], ["Hi 2"]]
    assert set(turns["system"]) == {"m"}


def test_the_names_a_and_b_in_contexts_are_no_words(tmp_path):
    text = 'context,response,rater1\n"A: Hi\nB: Ho\nA: Tea?",No,4\nA: Hey,?,2\n'
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert contexts(turns) == {"No": ["Hi", "Ho", "Tea?"], "?": ["Hey"]}


def test_the_ratings_of_turns_in_a_wide_table_are_not_the_dialogs(tmp_path):
    text = "id,user_1,bot_1,rating_1,user_2,bot_2,rating_2\nd,Hi,Ho,4,Tea?,No,2\n"
    turns = read_turns(file_with(tmp_path, "wide.csv", text))
    assert turns.filter(regex="^human_").columns.tolist() == ["human_rating"]
    assert turns["human_rating"].tolist() == [4, 2]


def test_the_dimension_of_a_rating_may_stand_in_a_column(tmp_path):
    text = """item,context,response,rater_id,dimension,score
1,Hi,Ho,a,warm,4
1,Hi,Ho,a,clear,3
1,Hi,Ho,b,warm,2
1,Hi,Ho,b,clear,5
2,Hey,?,a,warm,1
"""
    turns = read_turns(file_with(tmp_path, "long.csv", text))
    assert turns[["response", "human_warm"]].values.tolist() == [["Ho", 3], ["?", 1]]
    assert turns["human_clear"].fillna(-1).tolist() == [4, -1]


CROWD = {  # HTML in what was shown; the last answer was rejected
    "Input.context,Input.response,Answer.x,WorkerId,HITId,AssignmentStatus": (
        "<b>Person:</b> Hi<br/><b>Bot:</b> Ho,No,4,w1,h1,Approved\n"
        "<b>Person:</b> Hi<br/><b>Bot:</b> Ho,No,2,w2,h1,Approved\n"
        "<b>Person:</b> Hi<br/><b>Bot:</b> Ho,No,9,w3,h1,Rejected\n"
    ),
    "INPUT:context,INPUT:response,OUTPUT:x,ASSIGNMENT:worker_id,ASSIGNMENT:task_id,"
    "ASSIGNMENT:status": (
        '"Person: Hi\nBot: Ho",No,4,w1,t1,APPROVED\n'
        '"Person: Hi\nBot: Ho",No,2,w2,t2,APPROVED\n'
        '"Person: Hi\nBot: Ho",No,9,w3,t3,REJECTED\n'
    ),
}


@pytest.mark.parametrize("header", CROWD)
def test_the_results_of_a_crowd_are_replies_with_raters(header, tmp_path):
    text = f"{header}\n{CROWD[header]}"
    turns = read_turns(file_with(tmp_path, "batch.csv", text))
    assert contexts(turns) == {"No": ["Hi", "Ho"]}
    assert turns["human_x"].tolist() == [3]


def test_merged_cells_of_an_unknown_name_are_asked_about(tmp_path):
    """Only the first row of a dialog has its name; without it all would be one dialog."""
    rows = ["block,speaker,text", "one,user,Hi", ",bot,Ho", "two,user,Hey", ",bot,?"]
    file = file_with(tmp_path, "sheet.csv", "\n".join(rows))
    with pytest.raises(DataError, match='COLUMNS="dialog=block"'):
        read_turns(file)
    turns = read_turns(file, columns={"dialog": "block"})
    assert contexts(turns) == {"Ho": ["Hi"], "?": ["Hey"]}


@pytest.mark.parametrize(
    "header, user, bot",
    [
        ("对话编号,轮次,角色,内容,评分", "用户", "机器人"),
        ("対話ID,発話番号,話者,発話,評価", "ユーザ", "システム"),
        ("대화,발화번호,화자,발화,평점", "사용자", "챗봇"),
        ("المحادثة,turn,المتحدث,النص,التقييم", "المستخدم", "المساعد"),
        ("Dialog-Nr,Zeile,Sprecher,Äußerung,Bewertung", "Nutzer", "Bot"),
    ],
)
def test_tables_in_other_languages_are_read_with_their_ratings(
    header, user, bot, tmp_path
):
    rows = [header]
    for dialog in "12":
        rows += [f"{dialog},1,{user},Hi {dialog},", f"{dialog},2,{bot},Ho {dialog},4"]
    turns = read_turns(file_with(tmp_path, "table.csv", "\n".join(rows)))
    assert contexts(turns) == {"Ho 1": ["Hi 1"], "Ho 2": ["Hi 2"]}
    assert turns.filter(regex="^human_").to_numpy().ravel().tolist() == [4, 4]


def test_columns_of_small_numbers_are_named_as_ratings_that_are_not_read(tmp_path):
    rows = ["dialog,speaker,text,Verständlichkeit,tokens"]
    for number, score in enumerate(["4", "5", "2,5"]):
        rows += [f"{number},user,Hi,,12", f'{number},bot,Ho,"{score}",14']
    turns = read_turns(file_with(tmp_path, "table.csv", "\n".join(rows)))
    reasons = [reason for _, _, reason, _ in turns.attrs["guesses"]]
    told = "Verständlichkeit may be people's ratings, or scores of a model"
    assert told in reasons


def test_records_without_a_reply_are_counted(tmp_path):
    """FED's file rates replies, and in other records whole dialogs."""
    rated = {"context": "User: Hi", "response": "System: Ho", "system": "A"}
    rated["annotations"] = {"Engaging": [1, 2]}
    whole = {"context": "User: Hi\nSystem: Ho", "annotations": {"Coherent": [1]}}
    turns = read_turns(file_with(tmp_path, "fed.json", [rated, whole]))
    assert turns["human_engaging"].tolist() == [1.5]
    reasons = import_report(turns)["reasons"].str.cat()
    assert "1 are records without a reply" in reasons


def test_a_prompt_of_helpsteer_is_divided_and_its_scores_are_ratings(tmp_path):
    prompt = "Hi\n<extra_id_1>Assistant\nHo\n<extra_id_1>User\nTea?"
    row = {"prompt": prompt, "response": "No", "helpfulness": 3, "correctness": 4}
    row |= {"coherence": 4, "complexity": 1, "verbosity": 1}
    turns = read_turns(file_with(tmp_path, "train.jsonl", json.dumps(row)))
    assert contexts(turns) == {"No": ["Hi", "Ho", "Tea?"]}
    assert turns["human_helpfulness"].tolist() == [3]


def test_a_reply_beside_the_dialog_of_label_studio_has_the_ratings(tmp_path):
    dialog = [{"author": "User", "text": "Hi"}, {"author": "Bot", "text": "Ho"}]
    dialog.append({"author": "User", "text": "Tea?"})
    result = [{"from_name": "tone", "type": "rating", "value": {"rating": 4}}]
    task = {"id": 1, "data": {"dialogue": dialog, "reply": "No", "system": "m"}}
    task["annotations"] = [{"completed_by": 1, "result": result}]
    turns = read_turns(file_with(tmp_path, "tasks.json", [task]))
    assert turns[["system", "response"]].values.tolist() == [["m", "No"]]
    assert turns["human_tone"].tolist() == [4]


def test_thumbs_given_in_the_page_of_promptfoo_are_ratings(tmp_path):
    results = [{"score": 1, "assertion": {"type": "llm-rubric"}}]
    results.append({"score": 0, "assertion": {"type": "human"}})
    row = {"prompt": {"raw": "Hi"}, "response": {"output": "Ho"}, "testIdx": 0}
    row |= {"provider": {"id": "m"}, "gradingResult": {"componentResults": results}}
    value = {"results": {"version": 3, "results": [row]}}
    turns = read_turns(file_with(tmp_path, "results.json", value))
    assert turns["human_feedback"].tolist() == [0]


@pytest.mark.parametrize("ending, kind", [("yaml", "YAML"), ("xml", "XML")])
def test_files_of_kinds_that_are_not_read_are_named(ending, kind, tmp_path):
    file = file_with(tmp_path, f"dialogs.{ending}", "user: Hi\nbot: Ho\n")
    with pytest.raises(DataError, match=f"is {kind}, which is not read"):
        read_turns(file)


def test_empty_ratings_of_single_raters_are_counted(tmp_path):
    text = "context,response,rater,human_x\nHi,Ho,ann,4\nHi,Ho,bob,\nHey,?,ann,2\nHey,?,bob,3\n"
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert turns["human_x"].tolist() == [4, 2.5]
    report = import_report(turns).set_index("unit").loc["single ratings"]
    assert report[["kept", "excluded"]].tolist() == [3, 1]
    assert report["reasons"] == "1 are empty"


def test_words_of_the_bot_alone_are_refused(tmp_path):
    """The user's words stand under another name, so each context would be empty or the bot's."""
    messages = []
    for text in ("Ho", "No"):
        messages.append({"role": "user", "query": "Hi?"})
        messages.append({"role": "assistant", "content": text})
    file = file_with(tmp_path, "log.json", {"messages": messages})
    with pytest.raises(DataError, match="no words of anybody but the bot"):
        read_turns(file)


def test_replies_without_any_context_are_said_to_be_so(tmp_path):
    rows = [{"type": "ai", "data": {"content": "Ho"}}]
    turns = read_turns(file_with(tmp_path, "log.json", rows))
    reasons = [reason for _, _, reason, _ in turns.attrs["guesses"]]
    assert "nothing stands before any reply" in reasons


def test_pages_of_a_server_are_read_as_the_records_in_them(tmp_path):
    """The list below "data" looks like messages, but is of two threads."""
    comments = []
    for number, (issue, name, kind) in enumerate(
        [
            (1, "mira", "User"),
            (1, "ada[bot]", "Bot"),
            (2, "ola", "User"),
            (2, "ada[bot]", "Bot"),
        ]
    ):
        comment = {"issue_url": f"u/{issue}", "body": f"text {number}", "id": number}
        comment |= {"user": {"login": name, "type": kind}}
        comments.append(comment | {"created_at": f"2025-03-01T10:0{number}:00Z"})
    turns = read_turns(file_with(tmp_path, "page.json", {"page": 1, "data": comments}))
    assert contexts(turns) == {"text 1": ["text 0"], "text 3": ["text 2"]}


def test_a_list_of_dialogs_below_a_name_is_not_one_dialog(tmp_path):
    dialog = [
        {"speaker": "U", "text": "Hi"},
        {"speaker": "S", "text": "Ho"},
        {"speaker": "U", "text": "Tea?"},
        {"speaker": "S", "text": "No"},
    ]
    value = {"logs": [dialog, [dialog[2], dialog[3], dialog[0], {**dialog[1]}]]}
    turns = read_turns(file_with(tmp_path, "logs.json", value))
    assert turns["context"].map(len).tolist() == [1, 3, 1, 3]


def test_a_single_request_to_palm_keeps_its_context(tmp_path):
    messages = [{"author": "user", "content": "Hi"}]
    value = {"instances": [{"context": "x", "messages": messages}]}
    value["predictions"] = [{"candidates": [{"author": "bot", "content": "Ho"}]}]
    assert contexts(read_turns(file_with(tmp_path, "r.json", value))) == {"Ho": ["Hi"]}


def test_other_texts_of_argilla_are_no_words_of_the_user(tmp_path):
    chat = [{"role": "user", "content": "Hi"}]
    fields = {"chat": chat, "response": "Ho", "hint": "Be strict."}
    record = {"fields": fields, "responses": {"x": []}, "suggestions": {"x": 1}}
    turns = read_turns(file_with(tmp_path, "records.json", [record]))
    assert contexts(turns) == {"Ho": ["Hi"]}
    fields = {"prompt": "Hi", "response_a": "Ho", "response_b": "Hey"}
    file = file_with(tmp_path, "pairs.json", [record | {"fields": fields}])
    with pytest.raises(DataError, match="which is the reply"):
        read_turns(file)


THOUGHTS = ["<think>\nhm\n</think>\n\n", '<details type="reasoning">x</details>\n']


@pytest.mark.parametrize("thought", THOUGHTS)
def test_reasoning_before_a_reply_is_no_talk(thought, tmp_path):
    messages = [{"role": "user", "content": "<think>Hi</think>"}]
    messages.append({"role": "assistant", "content": f"{thought}Ho"})
    messages += [{"role": "user", "content": "Tea?"}]
    messages.append({"role": "assistant", "content": "No <think>?"})
    turns = read_turns(file_with(tmp_path, "log.json", {"messages": messages}))
    assert turns["response"].tolist() == ["Ho", "No <think>?"]
    assert turns["context"].tolist()[1] == ["<think>Hi</think>", "Ho", "Tea?"]
    assert "held reasoning" in import_report(turns)["notes"].str.cat()


def test_an_agent_beside_a_bot_is_a_person(tmp_path):
    text = (
        "dialog,actor,message\nd,EndUser,Hi\nd,Bot,Ho\nd,Agent,Olga here\nd,Bot,Bye\n"
    )
    turns = read_turns(
        file_with(tmp_path, "log.csv", text), columns={"speaker": "actor"}
    )
    assert contexts(turns) == {"Ho": ["Hi"], "Bye": ["Hi", "Ho", "Olga here"]}
    reasons = [reason for _, _, reason, _ in turns.attrs["guesses"]]
    assert any("an agent beside a bot is a person" in reason for reason in reasons)


def test_a_regenerated_reply_of_grok_has_the_context_of_its_branch(tmp_path):
    responses = []
    for name, parent, sender, text in [
        ("1", None, "human", "Hi"),
        ("2", "1", "ASSISTANT", "Ho"),
        ("3", "1", "assistant", "Hey"),
        ("4", "3", "human", "Tea?"),
        ("5", "4", "assistant", "No"),
    ]:
        response = {"_id": name, "sender": sender, "message": text}
        response |= {
            "parent_response_id": parent,
            "create_time": 1740823200 + int(name),
        }
        responses.append({"response": response})
    value = {"conversations": [{"conversation": {"id": "c"}, "responses": responses}]}
    turns = read_turns(file_with(tmp_path, "grok.json", value))
    expected = {"Ho": ["Hi"], "Hey": ["Hi"], "No": ["Hi", "Hey", "Tea?"]}
    assert contexts(turns) == expected


def test_opinions_that_formats_of_platforms_hold_are_ratings(tmp_path):
    dialogflow = {"conversation_name": "s", "turn_position": 1}
    dialogflow["request"] = {"queryInput": {"text": {"text": "Hi"}}}
    messages = [{"text": {"text": ["Ho"]}}]
    dialogflow["response"] = {"queryResult": {"responseMessages": messages}}
    dialogflow["bot_answer_feedback"] = {"rating": "THUMBS_DOWN"}
    turns = read_turns(file_with(tmp_path, "cx.jsonl", json.dumps(dialogflow)))
    assert turns["human_feedback"].tolist() == [0]

    activities = []
    for name, role, text in [("1", 1, "Hi"), ("2", 0, "Ho")]:
        activity = {"id": name, "type": "message", "from": {"role": role}, "text": text}
        activities.append(activity)
    value = {"actionName": "feedback", "actionValue": {"reaction": "like"}}
    activities.append({"type": "invoke", "replyToId": "2", "value": value})
    row = {
        "conversationtranscriptid": "t",
        "content": json.dumps({"activities": activities}),
    }
    turns = read_turns(file_with(tmp_path, "t.json", [row]))
    assert turns["human_feedback"].tolist() == [1]


def test_feedback_that_a_format_does_not_read_is_named(tmp_path):
    message = {
        "id": 1,
        "type": "message",
        "from": "TeaBot",
        "from_id": "u",
        "text": "Ho",
    }
    message |= {"date_unixtime": "1741169000", "feedback": {"rating": 4}}
    value = {"name": "TeaBot", "type": "bot_chat", "messages": [message]}
    turns = read_turns(file_with(tmp_path, "result.json", value))
    reasons = [reason for _, _, reason, _ in turns.attrs["guesses"]]
    assert "feedback is not read" in reasons


def test_earlier_threads_of_chatbox_are_dialogs_and_other_lists_are_counted(tmp_path):
    def talk(question, answer):
        return [
            {"role": "user", "contentParts": [{"type": "text", "text": question}]},
            {"role": "assistant", "contentParts": [{"type": "text", "text": answer}]},
        ]

    session = {"id": "s", "messages": talk("Hi", "Ho")}
    session["threads"] = [{"id": "t", "messages": talk("Tea?", "No")}]
    value = {"session:s": session, "settings": {"theme": 1}, "version": 9}
    turns = read_turns(file_with(tmp_path, "chatbox.json", value))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}
    turns = read_turns(file_with(tmp_path, "one.json", session))
    reasons = import_report(turns)["reasons"].str.cat()
    assert "1 stand below 'threads', which is not read" in reasons


def test_a_rule_at_the_end_is_no_word_of_the_last_speaker(tmp_path):
    text = "User: Hi\nBot: Ho\nUser: Tea?\nBot: No\n---\n"
    assert "No" in contexts(read_turns(file_with(tmp_path, "talk.txt", text)))


def test_what_line_writes_for_a_sticker_is_no_talk(tmp_path):
    text = "2024/04/29(月)\n10:01\tBot\tはい\n10:02\t健太\t[スタンプ]\n10:03\tBot\tどうぞ\n"
    turns = read_turns(file_with(tmp_path, "line.txt", text))
    assert turns["context"].tolist() == [[], ["はい"]]


def test_names_of_columns_in_capitals_are_those_in_small_letters(tmp_path):
    """Snowflake and Oracle write them so; CONVERSATIONID is a name of two words."""
    rows = """ID,PARENT_ID,CONVERSATIONID,ROLE,CONTENT
b,a,k,assistant,Ho
c,a,k,assistant,Hey
a,,k,user,Hi
e,d,m,assistant,No
d,,m,user,Tea?
"""
    file = file_with(tmp_path, "messages.csv", rows)
    expected = {"Ho": ["Hi"], "Hey": ["Hi"], "No": ["Tea?"]}
    assert contexts(read_turns(file)) == expected
    assert contexts(read_turns(file, columns={"text": "CONTENT"})) == expected


def test_lines_of_kakaotalk_go_on_without_a_mark(tmp_path):
    text = """--------------- 2024년 5월 3일 금요일 ---------------
[민지] [오후 7:03] 사진
[민지] [오후 7:03] 이 책 있나요?
[Ada] [오후 7:03] 네, 두 권 있습니다.
2층에 있어요.
하나님이 들어왔습니다.
[민지] [오후 7:05] 삭제된 메시지입니다.
[Ada] [오후 7:06] 천만에요.
"""
    turns = read_turns(file_with(tmp_path, "talk.txt", text), options={"bot": "Ada"})
    first = "네, 두 권 있습니다.\n2층에 있어요."
    assert turns["response"].tolist() == [first, "천만에요."]
    assert turns["context"].tolist() == [["이 책 있나요?"], ["이 책 있나요?", first]]


def test_what_a_message_of_matrix_answers_is_no_part_of_it(tmp_path):
    events = []
    for number, (name, body) in enumerate([("a", "Hi"), ("b", "Ho"), ("a", "So?")]):
        kind = "m.notice" if name == "b" else "m.text"
        content = {"msgtype": kind, "body": body}
        event = {"type": "m.room.message", "event_id": f"e{number}", "sender": name}
        event |= {"origin_server_ts": 1741169000000 + number, "content": content}
        events.append(event)
    events[2]["content"]["body"] = "> <@b> Ho\n\nSo?"
    events[2]["content"]["m.relates_to"] = {"m.in_reply_to": {"event_id": "e1"}}
    last = {**events[1], "event_id": "e3", "origin_server_ts": 1741169000009}
    value = {"room_name": "r", "messages": [*events, last]}
    turns = read_turns(file_with(tmp_path, "room.json", value))
    assert turns["context"].tolist()[1] == ["Hi", "Ho", "So?"]


@pytest.mark.parametrize("other", ["Ola", "Mira"])
def test_topics_of_google_chat_are_dialogs_where_several_people_talk(other, tmp_path):
    messages = []
    for number, (name, text) in enumerate(
        [("Mira", "Hi"), ("Ada", "Ho"), (other, "Tea?"), ("Ada", "No")]
    ):
        creator = {"name": name, "user_type": "Bot" if name == "Ada" else "Human"}
        message = {"creator": creator, "text": text, "topic_id": f"t{number // 2}"}
        messages.append(message)
    turns = read_turns(file_with(tmp_path, "messages.json", {"messages": messages}))
    last = ["Tea?"] if other == "Ola" else ["Hi", "Ho", "Tea?"]
    assert contexts(turns) == {"Ho": ["Hi"], "No": last}


def test_a_table_of_wechat_has_the_other_side_by_its_name(tmp_path):
    header = (
        "localId,Type,IsSender,CreateTime,StrContent,StrTime,Remark,NickName,Sender"
    )
    rows = [header]
    for number, (kind, mine, text) in enumerate(
        [(1, 1, "Hi"), (1, 0, "Ho"), (47, 1, "[x]"), (1, 1, "Tea?"), (1, 0, "No")]
    ):
        rows.append(f"{number},{kind},{mine},17149608{number:02},{text},x,Ada,ada,w")
    file = file_with(tmp_path, "chat.csv", "\n".join(rows))
    with pytest.raises(DataError, match="BOT="):
        read_turns(file)
    turns = read_turns(file, options={"bot": "Ada"})
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


def lex(session, question, answer, minute):
    row = {"sessionId": session, "inputTranscript": question, "operationName": "x"}
    row["timestamp"] = f"2024-04-04T14:0{minute}:00Z"
    return row | {"messages": [{"content": answer, "contentType": "PlainText"}]}


@pytest.mark.parametrize("session", ["8f14e45f-ceea-467f-a9d4", "u1"])
def test_a_session_that_goes_on_in_another_file_is_one_if_its_id_is_unique(
    session, tmp_path
):
    """An id such as u1 may be of others in each file, which is said."""
    rows = [lex(session, "Hi", "Ho", 1), lex(session, "Tea?", "No", 2)]
    for number, row in enumerate(rows):
        file_with(tmp_path, f"{number}.jsonl", json.dumps(row))
    turns = read_turns(tmp_path)
    reasons = " ".join(reason for _, _, reason, _ in turns.attrs["guesses"])
    is_unique = len(session) > 2
    assert contexts(turns)["No"] == (["Hi", "Ho", "Tea?"] if is_unique else ["Tea?"])
    assert ("1 ids stand in several files" in reasons) is not is_unique


def test_a_person_at_the_desk_of_zendesk_is_no_bot(tmp_path):
    history = []
    for kind, name, text in [
        ("Visitor", "V", "Hi"),
        ("Agent", "Answer Bot", "Ho"),
        ("Agent", "Paula", "Paula here"),
        ("Agent", "Answer Bot", "Bye"),
    ]:
        message = {"type": "chat.msg", "sender_type": kind, "name": name, "msg": text}
        history.append(message)
    value = {"chats": [{"id": "c", "history": history}]}
    turns = read_turns(file_with(tmp_path, "chats.json", value))
    assert contexts(turns) == {"Ho": ["Hi"], "Bye": ["Hi", "Ho", "Paula here"]}


def test_questions_with_buttons_of_crisp_are_replies(tmp_path):
    picker = {"text": "More?", "choices": [{"label": "Yes"}]}
    rows = []
    for kind, side, content in [
        ("text", "user", "Hi"),
        ("text", "operator", "Ho"),
        ("picker", "operator", picker),
    ]:
        row = {"session_id": "s", "fingerprint": len(rows), "type": kind, "from": side}
        row |= {"content": content, "timestamp": 1719900000000 + len(rows)}
        rows.append(row | {"automated": side == "operator", "user": {"nickname": side}})
    turns = read_turns(file_with(tmp_path, "crisp.json", {"data": rows}))
    assert turns["response"].tolist() == ["Ho", "More?"]


def test_a_session_of_two_versions_in_folders_of_their_own_is_not_one(tmp_path):
    session = "8f14e45f-ceea-467f-a9d4"
    for version, answer in [("old", "Ho"), ("new", "Hey")]:
        folder = tmp_path / version
        folder.mkdir()
        file_with(folder, "log.jsonl", json.dumps(lex(session, "Hi", answer, 1)))
    assert contexts(read_turns(tmp_path)) == {"Ho": ["Hi"], "Hey": ["Hi"]}


NOT_SAID = [  # a field of a message, its value where nobody says it, and elsewhere
    ("hidden", True, False),
    ("is_note", True, False),
    ("isError", True, False),
    ("retracted", True, False),
    ("visible", False, True),
    ("visibility", "internal", "public"),
    ("message_type", "activity", "text"),
    ("kind", "note", "message"),
    ("status", "recalled", "sent"),
    ("channel", "analysis", "final"),
    ("content_type", "thinking", "text"),
    ("direction", "internal", "outgoing"),
]


@pytest.mark.parametrize("bot", [None, "assistant"])
@pytest.mark.parametrize(("name", "value", "elsewhere"), NOT_SAID)
def test_what_nobody_says_to_the_other_side_is_no_talk(
    name, value, elsewhere, bot, tmp_path
):
    def message(role, text, field):
        return {"role": role, "content": text, name: field}

    messages = [
        message("user", "Hi", elsewhere),
        message("assistant", "for the desk only", value),
        message("assistant", "Hello", elsewhere),
    ]
    file = file_with(tmp_path, "log.json", [{"id": "d", "messages": messages}])
    turns = read_turns(file, options={"bot": bot} if bot else None)
    assert contexts(turns) == {"Hello": ["Hi"]}
    assert "1 are of tools or prompts, hidden or deleted" in str(import_report(turns))
    lines = [f"dialog,speaker,text,{name}"]
    for fields in messages:
        lines.append(f"d,{fields['role']},{fields['content']},{fields[name]}")
    table = file_with(tmp_path, "log.csv", "\n".join(lines) + "\n")
    turns = read_turns(table, options={"bot": bot} if bot else None)
    assert contexts(turns) == {"Hello": ["Hi"]}


def test_a_row_per_rater_of_a_dialog_with_a_column_per_utterance_is_one_dialog(
    tmp_path,
):
    text = (
        "dialog_id,user_1,bot_1,user_2,bot_2,worker_id,rating\n"
        "d,Hi,Ho,Tea?,No,ann,4\nd,Hi,Ho,Tea?,No,bob,2\n"
    )
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}
    assert len(turns) == 2 and turns["human_rating"].tolist() == [3, 3]
    assert set(turns.attrs["ratings"]["rater"]) == {"ann", "bob"}


@pytest.mark.parametrize("rater", ["annotator", "comment"])
def test_a_row_per_rater_of_a_transcript_is_one_dialog(rater, tmp_path):
    text = (
        f"dialog_id,transcript,{rater},rating\n"
        'd,"User: Hi\nBot: Ho",ann,4\nd,"User: Hi\nBot: Ho",bob,2\n'
    )
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert len(turns) == 1 and turns["human_rating"].tolist() == [3]


def test_a_chat_held_while_labelling_is_read_from_the_annotation(tmp_path):
    def message(name, role, text):
        chat = {"role": role, "content": text}
        return {"id": name, "type": "chatmessage", "value": {"chatmessage": chat}}

    def rating(name, number, label):
        return {"id": name, "from_name": label, "value": {"rating": number}}

    result = [
        message("m1", "user", "Hi"),
        message("m2", "assistant", "Ho"),
        rating("m2", 4, "reply"),
        rating("x", 2, "chat"),
    ]
    empty = {"id": 2, "data": {"chat": []}, "annotations": [{"result": []}]}
    task = {"id": 1, "data": {"chat": []}}
    task["annotations"] = [{"completed_by": 3, "result": result}]
    turns = read_turns(file_with(tmp_path, "log.json", [task, empty]))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert turns[["human_reply", "human_chat"]].values.tolist() == [[4, 2]]
    assert "1 are tasks without messages" in str(import_report(turns))


def test_rows_of_one_turn_by_raters_without_names_are_one_exchange(tmp_path):
    text = (
        "session_id,turn,user_message,bot_response,rating\n"
        "s,1,Hi,Ho,4\ns,1,Hi,Ho,2\ns,2,Hi,Ho,5\ns,2,Hi,Ho,3\n"
    )
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Ho", "Hi"]]
    assert turns["human_rating"].tolist() == [3, 4]


def test_a_row_per_judge_of_a_pair_is_one_pair(tmp_path):
    text = (
        "prompt,response_a,response_b,model_a,model_b,annotator,choice\n"
        "Hi,Ho,Hey,m1,m2,ann,A\nHi,Ho,Hey,m1,m2,bob,B\nHi,Ho,Hey,m1,m2,cid,A\n"
        "Hi,Ho,Yo,m1,m3,ann,B\n"
    )
    turns = read_turns(file_with(tmp_path, "pairs.csv", text))
    assert turns[["system", "response", "human_preference"]].round(
        2
    ).values.tolist() == [
        ["m1", "Ho", 0.67],
        ["m2", "Hey", 0.33],
        ["m1", "Ho", 0],
        ["m3", "Yo", 1],
    ]
