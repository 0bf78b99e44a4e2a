"""Tables of databases, surveys and sites where workers rate, with several features together."""

import json
from pathlib import Path

import pandas as pd
import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, read_turns


def table(tmp_path, text, name="chats.csv", **options):
    """The turns of a table in a text."""
    path = Path(tmp_path) / name
    path.write_text(text, encoding="utf-8")
    return read_turns(path, options=options)


@pytest.mark.parametrize(
    "name", ["in_reply_to", "reply_to_id", "reply_to_message_id", "response_to"]
)
def test_what_a_row_answers_tells_the_dialogs_under_other_names(tmp_path, name):
    text = f"message_id,{name},role,text\n10,,user,Hi\n11,10,assistant,Ho\n12,,user,Milk?\n"
    text += "13,12,assistant,Yes\n14,11,user,Tea?\n15,14,assistant,No\n"
    turns = table(tmp_path, text)
    assert contexts(turns) == TWO_EXCHANGES | {"Yes": ["Milk?"]}


@pytest.mark.parametrize("null", ["NULL", r"\N"])
def test_null_of_a_database_is_an_empty_cell(tmp_path, null):
    text = f"id,session_id,role,content,rating,deleted_at\n1,1,user,Hi,{null},{null}\n"
    text += f"2,1,assistant,Ho,5,{null}\n3,1,user,Tea?,{null},{null}\n"
    text += (
        f"4,1,assistant,Oops,{null},2025-03-05 10:00:00\n5,1,assistant,No,2,{null}\n"
    )
    turns = table(tmp_path, text)
    assert contexts(turns) == TWO_EXCHANGES
    assert turns["human_rating"].tolist() == [5, 2]


@pytest.mark.parametrize("empty", ["", "NULL"])
def test_a_welcome_before_a_question_does_not_make_histories_of_exchanges(
    tmp_path, empty
):
    text = f"session,turn,user,bot\ns1,0,{empty},Welcome\ns1,1,Hours?,Nine\n"
    text += f"s2,0,{empty},Hello\ns2,1,Tea?,No\n"
    turns = table(tmp_path, text)
    assert contexts(turns) == {
        "Welcome": [],
        "Nine": ["Welcome", "Hours?"],
        "Hello": [],
        "No": ["Hello", "Tea?"],
    }


def test_a_welcome_in_json_has_no_words_of_a_user(tmp_path):
    rows = [
        {"session": "s1", "user": None, "bot": "Welcome"},
        {"session": "s1", "user": "Hours?", "bot": "Nine"},
        {"session": "s2", "user": None, "bot": "Hello"},
        {"session": "s2", "user": "Tea?", "bot": "No"},
    ]
    turns = read_turns(file_with(tmp_path, "chats.jsonl", rows))
    assert contexts(turns)["Nine"] == ["Welcome", "Hours?"]
    assert contexts(turns)["No"] == ["Hello", "Tea?"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("bot_0,user_1,bot_1,user_2,bot_2", "Welcome,Hi,Ho,Tea?,No"),
        ("bot_1,user_1,bot_2,user_2,bot_3", "Welcome,Hi,Ho,Tea?,No"),
        ("user_1,user_2,bot_0,bot_1,bot_2", "Hi,Tea?,Welcome,Ho,No"),
    ],
)
def test_the_bot_may_open_in_a_wide_table(tmp_path, columns, said):
    turns = table(tmp_path, f"id,{columns}\na,{said}\n")
    assert contexts(turns) == {
        "Welcome": [],
        "Ho": ["Welcome", "Hi"],
        "No": ["Welcome", "Hi", "Ho", "Tea?"],
    }


def test_a_wide_table_may_end_with_the_user(tmp_path):
    turns = table(
        tmp_path, "id,user_1,bot_1,user_2\na,Hi there,Ho,Bye\nb,Tea for me?,No,Bye\n"
    )
    assert contexts(turns) == {"Ho": ["Hi there"], "No": ["Tea for me?"]}


def test_two_answers_to_a_question_are_no_wide_table(tmp_path):
    with pytest.raises(DataError):
        table(tmp_path, "id,question_1,answer_1,answer_2\na,Hi there,Ho,No\n")


QUALTRICS = ["StartDate", "EndDate", "Status", "ResponseId"]


def test_a_question_of_qualtrics_is_no_turn_of_a_wide_table(tmp_path):
    names = [*QUALTRICS, "user_1", "bot_1", "user_2", "bot_2", "Q1"]
    ids = ["startDate", "endDate", "status", "_recordId", *names[4:8], "QID1"]
    rows = [names, names, [json.dumps({"ImportId": name}) for name in ids]]
    rows.append(["2025-03-05", "2025-03-05", "0", "R_1", "Hi", "Ho", "Tea?", "No", "4"])
    path = tmp_path / "survey.csv"
    pd.DataFrame(rows).to_csv(path, header=False, index=False)
    turns = read_turns(path)
    assert contexts(turns) == TWO_EXCHANGES
    assert turns["human_q1"].tolist() == [4, 4]


def test_a_workbook_of_qualtrics_has_one_row_of_questions(tmp_path):
    rows = [[*QUALTRICS, "chat", "Q1"]]
    rows.append(
        ["Start Date", "End Date", "Response Type", "Response ID", "chat", "How?"]
    )
    rows.append(["2025-03-05", "2025-03-05", "0", "R_1", "User: Hi\nBot: Ho", 4])
    rows.append(["2025-03-05", "2025-03-05", "0", "R_2", "User: Tea?\nBot: No", 5])
    path = tmp_path / "survey.xlsx"
    pd.DataFrame(rows).to_excel(path, header=False, index=False)
    assert contexts(read_turns(path)) == {"Ho": ["Hi"], "No": ["Tea?"]}


@pytest.mark.parametrize("mark", [" ", " || ", " / "])
def test_speakers_in_one_line_of_a_context_are_several_utterances(tmp_path, mark):
    talk = mark.join(["User: Hi", "Bot: Ho", "User: Tea?"])
    text = f"model,context,response\nm,{talk},No\nm,User: Milk?,Yes\n"
    assert contexts(table(tmp_path, text)) == {
        "No": ["Hi", "Ho", "Tea?"],
        "Yes": ["Milk?"],
    }


@pytest.mark.parametrize("mark", [" ", " | "])
def test_speakers_in_one_line_of_a_transcript_are_several_utterances(tmp_path, mark):
    talk = mark.join(["User: Hi", "Bot: Ho", "User: Tea?", "Bot: No"])
    turns = table(tmp_path, f"id,transcript\n1,{talk}\n2,User: Milk? Bot: Yes\n")
    assert contexts(turns) == TWO_EXCHANGES | {"Yes": ["Milk?"]}


def test_words_with_a_colon_within_a_line_are_no_speakers(tmp_path):
    text = "model,context,response\nm,User: What is Model: here? Bot: no idea User: Hm,No\n"
    turns = table(tmp_path, text)
    assert contexts(turns) == {"No": ["What is Model: here? Bot: no idea User: Hm"]}


@pytest.mark.parametrize(
    "talk",
    [
        "User: Hi<br>Bot: Ho<br/>User: Tea?<br>Bot: No",
        "<p><b>User:</b> Hi</p><p><b>Bot:</b> Ho</p><p><b>User:</b> Tea?</p><p>Bot: No</p>",
    ],
)
def test_a_transcript_may_be_html(tmp_path, talk):
    turns = table(tmp_path, f"id,transcript\n1,{talk}\n2,User: Milk?<br>Bot: Yes\n")
    assert contexts(turns) == TWO_EXCHANGES | {"Yes": ["Milk?"]}


def test_the_words_of_a_transcript_are_no_id(tmp_path):
    text = 'Timestamp,Conversation\n1,"User: Hi\nBot: Ho"\n2,"User: Tea?\nBot: No"\n'
    assert table(tmp_path, text)["dialog"].tolist() == ["1", "2"]


def test_flags_of_postgresql_are_letters(tmp_path):
    text = "session_id,role,content,is_deleted\n1,user,Hi,f\n1,assistant,Ho,f\n"
    text += "1,user,Tea?,f\n1,assistant,Oops,t\n1,assistant,No,f\n"
    assert contexts(table(tmp_path, text)) == TWO_EXCHANGES


def test_calls_of_tools_in_a_table_are_no_replies(tmp_path):
    text = "session_id,role,content,message_type\n1,user,Hi,text\n1,assistant,Ho,text\n"
    text += "1,user,Tea?,text\n1,assistant,find_tea(),tool_call\n1,assistant,No,text\n"
    assert contexts(table(tmp_path, text)) == TWO_EXCHANGES


def test_clocks_of_twelve_hours_tell_the_order(tmp_path):
    text = "chat_id,time,author,message\n1,1:02 PM,bot,No\n1,1:01 PM,user,Tea?\n"
    text += "1,12:59 PM,bot,Ho\n1,11:58 AM,user,Hi\n"
    assert contexts(table(tmp_path, text)) == TWO_EXCHANGES


@pytest.mark.parametrize(
    ("names", "best"),
    [
        ("response_1,response_2,model_1,model_2,winner", ("1", "2")),
        ("answer_1,answer_2,system_1,system_2,better", ("answer_1", "answer 2")),
        (
            "left_response,right_response,left_model,right_model,choice",
            ("left", "right"),
        ),
    ],
)
def test_two_replies_may_be_numbered_or_left_and_right(tmp_path, names, best):
    text = f"id,prompt,{names}\n1,Tea for me?,No,Sure,m1,m2,{best[0]}\n"
    text += f"2,Milk for me?,Yes,Never,m2,m1,{best[1]}\n3,Bye?,Bye,So long,m1,m2,tie\n"
    turns = table(tmp_path, text)
    values = turns[["system", "response", "human_preference"]].to_numpy().tolist()
    assert values[:4] == [
        ["m1", "No", 1],
        ["m2", "Sure", 0],
        ["m2", "Yes", 0],
        ["m1", "Never", 1],
    ]
    assert turns["human_preference"].tolist()[4:] == [0.5, 0.5]


def test_numbers_for_which_reply_is_better_may_be_a_scale(tmp_path):
    text = "id,prompt,response_1,response_2,preference\n1,Tea?,No,Sure,1\n2,Milk?,Yes,Never,2\n"
    with pytest.raises(DataError, match="a choice of one, or a scale"):
        table(tmp_path, text)


def test_two_replies_of_systems_without_a_name_are_of_two_systems(tmp_path):
    turns = table(
        tmp_path, "id,prompt,response_a,response_b,winner\n1,Tea?,No,Sure,a\n"
    )
    assert turns["system"].tolist() == ["response_a", "response_b"]
    assert turns["human_preference"].tolist() == [1, 0]


def talk(*texts):
    roles = ("user", "assistant")
    return [
        {"role": roles[number % 2], "content": text}
        for number, text in enumerate(texts)
    ]


def test_a_rating_beside_a_context_is_of_the_reply(tmp_path):
    record = {"id": "1", "context": talk("Hi", "Ho", "Tea?"), "response": "No"}
    turns = read_turns(file_with(tmp_path, "rated.jsonl", [record | {"rating": 3}]))
    assert turns.set_index("response")["human_rating"].dropna().to_dict() == {"No": 3}


def test_what_stands_before_replies_of_two_systems_is_of_neither(tmp_path):
    rows = []
    for number, reply in enumerate(("No", "Sure"), start=1):
        record = {"id": f"{number}", "model": f"m{number}", "response": reply}
        rows.append(record | {"history": talk("Hi", "Ho", "Tea?")})
    turns = read_turns(file_with(tmp_path, "two.jsonl", rows))
    assert contexts(turns) == {"No": ["Hi", "Ho", "Tea?"], "Sure": ["Hi", "Ho", "Tea?"]}
    assert turns["system"].tolist() == ["m1", "m2"]


def test_types_of_mongodb_are_no_values(tmp_path):
    rows = []
    for number, text in enumerate(("Hi", "Ho", "Tea?", "No")):
        time = {"$date": {"$numberLong": f"{1741168800000 + number}"}}
        row = {"_id": {"$oid": f"m{number}"}, "conversationId": {"$oid": "c1"}}
        sender = ("user", "bot")[number % 2]
        rows.append(row | {"sender": sender, "text": text, "createdAt": time})
    turns = read_turns(file_with(tmp_path, "mongo.jsonl", rows[::-1]))
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["dialog"]) == {"c1"}


def test_a_dump_of_django_holds_several_models(tmp_path):
    rows = [{"model": "chat.talk", "pk": 1, "fields": {"user": 3, "title": "Tea"}}]
    for number, text in enumerate(("Hi", "Ho", "Tea?", "No"), start=1):
        sender = ("bot", "user")[number % 2]
        fields = {"conversation": 1, "sender": sender, "text": text}
        rows.append({"model": "chat.message", "pk": number, "fields": fields})
    turns = read_turns(file_with(tmp_path, "dump.json", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"bot"}


def test_chats_of_firebase_lie_below_accounts(tmp_path):
    users = {}
    texts = {"1": ("Hi", "Ho"), "2": ("Tea?", "No")}
    for account, (question, reply) in texts.items():
        messages = {}
        for number, text in enumerate((question, reply)):
            sender = ("user", "bot")[number]
            messages[f"-NuwhvLV_3rAPfiHfYA{number}"] = {"sender": sender, "text": text}
        chats = {f"-NuwhvLV_3rAPfiHfYB{account}": {"messages": messages}}
        users[f"AbCdEfGhIjKlMnOpQrStUvWxYz1{account}"] = {"name": "A", "chats": chats}
    path = file_with(tmp_path, "firebase.json", {"users": users})
    assert contexts(read_turns(path)) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_ratings_that_are_read_are_not_said_to_be_unread(tmp_path):
    text = "session,role,text,rating_coherence\n1,user,Hi,\n1,bot,Ho,4\n"
    turns = table(tmp_path, text + "2,user,Tea?,\n2,bot,No,1\n")
    assert turns["human_rating_coherence"].tolist() == [4, 1]
    assert "rating: none" not in [guess[1] for guess in turns.attrs["guesses"]]


def test_turns_that_go_on_tell_that_nothing_parts_a_dialog(tmp_path):
    text = "screenshot_id,dialogue_id,turn_id,speaker,text\ns1,d1,1,User,Hi\n"
    text += "s1,d1,2,Bot,Ho\ns2,d1,3,User,Tea?\ns2,d1,4,Bot,No\n"
    text += "s3,d2,1,User,Milk?\ns3,d2,2,Bot,Yes\n"
    turns = table(tmp_path, text)
    assert contexts(turns) == TWO_EXCHANGES | {"Yes": ["Milk?"]}


def test_workers_choose_the_first_or_the_second_reply_by_a_number(tmp_path):
    names = (
        "HITId,WorkerId,AssignmentStatus,Input.context,Input.response1,Input.response2"
    )
    text = f"{names},Answer.choice\nh1,w1,Approved,User: Hi<br>Bot: Ho<br>User: Tea?,No,Sure,1\n"
    turns = table(tmp_path, f"{text}h2,w1,Approved,User: Milk?,Yes,Never,2\n")
    assert turns["human_preference"].tolist() == [1, 0, 0, 1]
    assert turns["system"].tolist() == ["response1", "response2"] * 2
    assert contexts(turns)["Sure"] == ["Hi", "Ho", "Tea?"]


def test_rows_that_answer_what_is_not_in_the_file_begin_dialogs(tmp_path):
    text = (
        "id,reply_to,role,text\n2,1,user,Hi\n8,7,user,Milk?\n3,2,bot,Ho\n9,8,bot,Yes\n"
    )
    turns = table(tmp_path, text + "5,3,user,Tea?\n6,5,bot,No\n")
    assert contexts(turns) == TWO_EXCHANGES | {"Yes": ["Milk?"]}


def test_two_replies_to_a_row_do_not_make_a_dialog_of_what_is_answered(tmp_path):
    text = "id,parent_id,role,text\n1,,user,Hi\n2,1,assistant,Ho\n3,1,assistant,Hm\n"
    text += "4,2,user,Tea?\n5,4,assistant,No\n6,,user,Milk?\n7,6,assistant,Yes\n"
    turns = table(tmp_path, text)
    assert contexts(turns) == TWO_EXCHANGES | {"Hm": ["Hi"], "Yes": ["Milk?"]}


def test_tweets_to_a_company_are_threads_with_its_answers(tmp_path):
    names = "tweet_id,author_id,inbound,created_at,text,response_tweet_id,in_response_to_tweet_id"
    rows = [
        "4,shop,False,Tue Oct 31 22:11:00 +0000 2017,No,,3",
        "3,115,True,Tue Oct 31 22:10:00 +0000 2017,Tea?,4,2",
        "2,shop,False,Tue Oct 31 22:09:00 +0000 2017,Ho,3,1",
        "1,115,True,Tue Oct 31 22:08:00 +0000 2017,Hi,2,",
        '5,116,True,Tue Oct 31 22:08:30 +0000 2017,Milk?,"6,7",',
        "6,shop,False,Tue Oct 31 22:08:40 +0000 2017,Yes,,5",
        "8,117,True,Tue Oct 31 22:08:35 +0000 2017,Bread?,9,",
        "9,shop,False,Tue Oct 31 22:08:45 +0000 2017,Sure,,8",
    ]
    turns = table(tmp_path, "\n".join([names, *rows]) + "\n")
    assert contexts(turns) == TWO_EXCHANGES | {"Yes": ["Milk?"], "Sure": ["Bread?"]}
