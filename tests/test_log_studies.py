"""Logs of studies, crowds and databases: conditions, pairs that several judged, typed values."""

import json

import pandas as pd
import pytest
from log_example_files import contexts, file_with

from lib.data import DataError, import_report, read_turns

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]


def guesses(turns):
    """What was guessed, and why."""
    return [(guess, reason) for _, guess, reason, _ in turns.attrs["guesses"]]


@pytest.mark.parametrize("name", ["condition", "ab_group", "chatbot_id"])
def test_a_field_that_may_tell_versions_is_named_and_can_be_read(name, tmp_path):
    rows = [{name: value, "messages": MESSAGES} for value in ("warm", "cold", "warm")]
    file = file_with(tmp_path, "study.json", rows)
    assert ("system: one", f"{name} may tell versions") in guesses(read_turns(file))
    turns = read_turns(file, {"system": name})
    assert turns["system"].tolist() == ["warm", "cold", "warm"]
    assert "system: one" not in dict(guesses(turns))


def test_a_field_that_is_the_same_everywhere_tells_no_versions(tmp_path):
    rows = [{"condition": "warm", "messages": MESSAGES} for _ in range(3)]
    turns = read_turns(file_with(tmp_path, "study.json", rows))
    assert "system: one" not in dict(guesses(turns))


def test_a_system_beside_messages_is_one_where_its_values_are_names(tmp_path):
    rows = [{"system": value, "messages": MESSAGES} for value in ("v1", "v2")]
    turns = read_turns(file_with(tmp_path, "log.json", rows))
    assert turns["system"].tolist() == ["v1", "v2"]
    assert ("system='system'", "its few values are names") in guesses(turns)
    prompts = [{"system": s, "messages": MESSAGES} for s in ("Be kind", "Be brief")]
    turns = read_turns(file_with(tmp_path, "prompts.json", prompts))
    assert turns["system"].nunique() == 1


def test_what_was_said_in_a_column_called_dialog_is_the_context(tmp_path):
    text = (
        "INPUT:dialog\tINPUT:reply\tOUTPUT:score\tASSIGNMENT:worker_id\t"
        "ASSIGNMENT:task_id\tASSIGNMENT:status\n"
        "User: Hi\tHo\t4\tw1\tt1\tAPPROVED\nUser: Hi\tHo\t5\tw2\tt1\tAPPROVED\n"
        "User: Tea?\tNo\t2\tw1\tt2\tAPPROVED\n"
    )
    turns = read_turns(file_with(tmp_path, "pool.tsv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}
    assert turns["human_score"].tolist() == [4.5, 2]


def test_names_of_dialogs_stay_names(tmp_path):
    text = "dialog,system,response\nOrder: lost,A,Ho\nOrder: late,A,No\n"
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert turns["dialog"].tolist() == ["Order: lost", "Order: late"]


def test_the_classes_of_langchain_tell_roles(tmp_path):
    messages = [
        {"role": "SystemMessage", "content": "Be kind."},
        {"role": "HumanMessage", "content": "Hi"},
        {"role": "AIMessage", "content": "Ho"},
    ]
    turns = read_turns(file_with(tmp_path, "log.json", [{"messages": messages}]))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_a_model_that_replies_in_label_studio_is_rated(tmp_path):
    said = {"type": "textarea", "from_name": "response", "value": {"text": ["Ho"]}}
    rated = {"type": "rating", "from_name": "rating", "value": {"rating": 4}}
    task = {
        "id": 41,
        "data": {"prompt": [{"role": "HumanMessage", "content": "Hi"}]},
        "predictions": [{"model_version": "m1", "result": [said]}],
        "annotations": [
            {"completed_by": 3, "result": [said, rated]},
            {"completed_by": 5, "result": [rated | {"value": {"rating": 5}}]},
        ],
    }
    turns = read_turns(file_with(tmp_path, "project.json", [task]))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert turns[["system", "human_rating"]].values.tolist() == [["m1", 4.5]]


def judged(*, models, winner, judge, turn):
    """A row of MT-bench's judgements: two dialogs of two turns."""
    row = {"question_id": 81, "winner": winner, "judge": judge, "turn": turn}
    for side, model in zip("ab", models, strict=True):
        row[f"model_{side}"] = model
        row[f"conversation_{side}"] = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": f"Ho from {model}"},
            {"role": "user", "content": "Tea?"},
            {"role": "assistant", "content": f"No from {model}"},
        ]
    return row


def test_a_dialog_that_is_compared_with_several_others_is_one(tmp_path):
    rows = [
        judged(models=("m1", "m2"), winner="model_a", judge="ann", turn=1),
        judged(models=("m3", "m1"), winner="model_a", judge="ben", turn=1),
        judged(models=("m1", "m3"), winner="tie", judge="cid", turn=2),
    ]
    turns = read_turns(file_with(tmp_path, "judgements.json", rows))
    preferences = dict(zip(turns["response"], turns["human_preference"], strict=True))
    assert len(turns) == 6
    assert preferences["Ho from m1"] == 0.5  # won once, lost once
    assert preferences["Ho from m3"] == 1
    assert preferences["No from m1"] == 0.5  # the tie of the second turn


PAIRS = """HITId,AssignmentId,WorkerId,AssignmentStatus,Input.dialog_id,Input.user_message,\
Input.model_a,Input.response_a,Input.model_b,Input.response_b,Answer.better
h1,x1,w1,Approved,d1,Hi,m1,Ho,m2,Hm,response_a
h1,x2,w2,Approved,d1,Hi,m1,Ho,m2,Hm,response_b
h1,x3,w3,Approved,d1,Hi,m1,Ho,m2,Hm,response_a
h2,x4,w1,Approved,d2,Tea?,m1,No,m2,Yes,tie
"""


def test_workers_compare_two_replies(tmp_path):
    turns = read_turns(file_with(tmp_path, "batch.csv", PAIRS))
    preferences = dict(zip(turns["response"], turns["human_preference"], strict=True))
    assert preferences["Ho"] == pytest.approx(2 / 3)
    assert preferences["Hm"] == pytest.approx(1 / 3)
    assert preferences["Yes"] == 0.5
    assert contexts(turns)["Hm"] == ["Hi"]
    assert sorted(set(turns["system"])) == ["m1", "m2"]


def test_choices_of_prodigy_are_refused(tmp_path):
    row = {"text": "Hi", "accept": ["m1"], "_task_hash": 3, "answer": "accept"}
    row["options"] = [{"id": "m1", "text": "Ho"}, {"id": "m2", "text": "Hm"}]
    with pytest.raises(DataError, match="may be replies of several systems, or labels"):
        read_turns(file_with(tmp_path, "choices.jsonl", json.dumps(row)))


def typed(text):
    """A message as LangChain's history keeps it in DynamoDB."""
    kind, words = text
    content = {"M": {"content": {"S": words}, "name": {"NULL": True}}}
    return {"M": {"type": {"S": kind}, "data": content}}


def test_values_of_dynamodb_are_read_without_their_types(tmp_path):
    said = [("human", "Hi"), ("ai", "Ho"), ("human", "Tea?"), ("ai", "No")]
    item = {"SessionId": {"S": "s1"}, "History": {"L": list(map(typed, said))}}
    file = file_with(tmp_path, "scan.json", {"Items": [item], "Count": 1})
    assert contexts(read_turns(file)) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


def test_the_documents_of_tinydb_are_dialogs(tmp_path):
    first = {"id": "a", "history": [{"user": "Hi", "bot": "Ho"}]}
    second = {"id": "b", "history": [{"user": "Tea?", "bot": "No"}]}
    value = {"_default": {"1": first, "2": second}}
    turns = read_turns(file_with(tmp_path, "db.json", value))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_a_mark_for_a_picture_is_no_word(tmp_path):
    asked = {"from": "human", "value": "<image>What is this?"}
    row = {"conversations": [asked], "images": ["a.png"]}
    row |= {
        "chosen": {"from": "gpt", "value": "A hat."},
        "rejected": {"from": "gpt", "value": "A cat."},
    }
    turns = read_turns(file_with(tmp_path, "dpo.json", [row]))
    assert contexts(turns) == {"A hat.": ["What is this?"], "A cat.": ["What is this?"]}
    row.pop("images")
    turns = read_turns(file_with(tmp_path, "dpo.json", [row]))
    assert contexts(turns)["A hat."] == ["<image>What is this?"]


STAFF = """[09:10] Chatbot Lotte: Hallo!
[09:11] Nutzer: Ausweis weg
[09:12] Chatbot Lotte: Ich verbinde Sie.
[09:13] Frau Behr: Guten Tag
[09:14] Nutzer: Im Bad
[09:15] Chatbot Lotte: Noch etwas?
"""


def test_a_further_name_after_a_time_is_asked_about(tmp_path):
    text = f'Chatverlauf,Bewertung\n"{STAFF}",5\n"{STAFF}",4\n'
    file = file_with(tmp_path, "protokolle.csv", text)
    with pytest.raises(DataError, match="a name that may not be a speaker: .*Behr"):
        read_turns(file)
    named = {"speakers": "Chatbot Lotte,Nutzer,Frau Behr"}
    turns = read_turns(file, options=named)
    assert contexts(turns)["Noch etwas?"][3:] == ["Guten Tag", "Im Bad"]


def test_lines_of_a_program_within_a_transcript_are_counted(tmp_path):
    text = "[10:00] User: Hi\n[10:01] INFO: model loaded\n[10:02] Bot: Ho\n"
    turns = read_turns(file_with(tmp_path, "log.txt", text))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert "1 are log lines of no speaker" in str(import_report(turns).values.tolist())


def test_columns_in_spanish_ask_for_the_dialogs(tmp_path):
    text = (
        "id;user_id;mensaje_usuario;respuesta_ia\n1;7;Hola;Buenas\n2;7;Adios;Hasta luego\n"
        "3;9;Hola;Buenas\n"
    )
    file = file_with(tmp_path, "chat.csv", text)
    with pytest.raises(DataError, match="it may be user_id"):
        read_turns(file)
    turns = read_turns(file, {"dialog": "user_id"})
    assert contexts(turns)["Hasta luego"] == ["Hola", "Buenas", "Adios"]


@pytest.mark.parametrize(
    "notice",
    [
        "09:02\tYuki\tメッセージの送信を取り消しました",
        "09:02\t\tYukiがメッセージの送信を取り消しました",
        "09:02\tYuki\t☎ 通話時間 1:02",
        "09:02\tYuki\t☎ Missed call",
        "09:02\tYuki unsent a message.",
    ],
)
def test_notices_of_line_are_no_talk(notice, tmp_path):
    text = f"[LINE] Chat\n2026/05/03\n09:00\tYuki\tHi\n09:01\tAda\tHo\n{notice}\n"
    file = file_with(tmp_path, "line.txt", text + "09:03\tYuki\tSo?\n09:04\tAda\tNo\n")
    turns = read_turns(file, options={"bot": "Ada"})
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "So?"]}


def test_posts_that_answer_each_other_are_dialogs_by_what_they_answer(tmp_path):
    rows = [
        "post_id,reply_to,author,post,posted",
        "14,13,Fern,No,2025-07-03 09:05",
        "13,12,ruth,Tea?,2025-07-03 09:04",
        "12,11,Fern,Ho,2025-07-03 09:03",
        "11,,ruth,Hi,2025-07-03 09:02",
        "3,2,olli,Is it warm?,2025-07-01 09:05",
        "4,3,Fern,Yes,2025-07-01 09:06",
        "2,1,Fern,Hey,2025-07-01 09:03",
        "1,,marta,Hello,2025-07-01 09:02",
    ]
    file = file_with(tmp_path, "posts.csv", "\n".join(rows))
    turns = read_turns(file, options={"bot": "Fern"})
    assert contexts(turns) == {
        "Hey": ["Hello"],
        "Yes": ["Hello", "Hey", "Is it warm?"],
        "Ho": ["Hi"],
        "No": ["Hi", "Ho", "Tea?"],
    }
    assert turns.set_index("response")["dialog"].to_dict() == {
        "Hey": "1",
        "Yes": "1",
        "Ho": "11",
        "No": "11",
    }
    what, why = "dialog: by 'reply_to'", "what it answers, up to the first"
    assert (what, why) in guesses(turns)
    table = pd.read_csv(file)  # which makes 12.0 of what is answered
    table.to_csv(tmp_path / "again.csv", index=False)
    again = read_turns(tmp_path / "again.csv", options={"bot": "Fern"})
    assert contexts(again) == contexts(turns)
    table.to_parquet(tmp_path / "posts.parquet")
    packed = read_turns(tmp_path / "posts.parquet", options={"bot": "Fern"})
    assert contexts(packed) == contexts(turns)


def test_a_few_answers_to_posts_do_not_part_a_talk(tmp_path):
    rows = ["id,reply_to,author,text", "1,,ada,Hi", "2,1,bot,Ho", "3,,ada,Tea?"]
    file = file_with(tmp_path, "posts.csv", "\n".join([*rows, "4,3,bot,No"]))
    turns = read_turns(file, {"dialog": "none"})
    assert turns["dialog"].tolist() == ["posts", "posts"]


def test_what_a_study_asks_for_is_found_under_its_usual_names(tmp_path):
    text = (
        "No.,Dialogue,Model,Conversation so far,Reply to rate,Annotator 1,Annotator 2\n"
        "1,d1,A,User: Hi,Ho,4,5\n2,d2,B,User: Tea?,No,1,2\n"
    )
    turns = read_turns(file_with(tmp_path, "study.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}
    assert turns["system"].tolist() == ["A", "B"]
    assert turns["human_rating"].tolist() == [4.5, 1.5]
    text = (
        "Item,Dialogue history,Chatbot answer,Rater A,Rater B\n"
        "1,User: Hi,Ho,4,5\n2,User: Tea?,No,1,2\n"
    )
    turns = read_turns(file_with(tmp_path, "letters.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}
    assert turns["human_rating"].tolist() == [4.5, 1.5]


def test_columns_that_may_be_ratings_of_raters_are_named(tmp_path):
    text = (
        "item,system,context,response,rater_id,fluency,warmth\n"
        "1,A,Hi,Ho,r1,4,3\n1,A,Hi,Ho,r2,5,3\n"
    )
    file = file_with(tmp_path, "long.csv", text)
    with pytest.raises(
        DataError, match='COLUMNS="human_fluency=fluency human_warmth=warmth"'
    ):
        read_turns(file)
    columns = {"human_fluency": "fluency", "human_warmth": "warmth"}
    turns = read_turns(file, columns)
    assert turns["human_fluency"].tolist() == [4.5]
    assert turns["human_warmth"].tolist() == [3]


def test_a_list_of_scores_is_named_where_it_is_not_read(tmp_path):
    row = {"messages": MESSAGES, "helpfulness": [0.6]}
    turns = read_turns(file_with(tmp_path, "log.json", [row, row]))
    reason = "helpfulness may be people's ratings, or scores of a model"
    assert ("rating: none", reason) in guesses(turns)


def test_words_of_a_page_of_mechanical_turk_are_decoded(tmp_path):
    text = (
        "HITId,AssignmentStatus,WorkerId,Input.context,Input.response,Input.system,"
        "Answer.rating\n"
        "h1,Approved,w1,User: Tea?,Tea &amp; cake,A,4\n"
        "h1,Approved,w2,User: Tea?,Tea &amp; cake,A,5\n"
    )
    turns = read_turns(file_with(tmp_path, "batch.csv", text))
    assert turns["response"].tolist() == ["Tea & cake"]
    assert turns["human_rating"].tolist() == [4.5]


def test_the_version_of_a_bot_is_its_system(tmp_path):
    for name in ("bot_version", "version"):
        text = f"dialog,{name},context,response\nd1,v1,Hi,Ho\nd2,v2,Hi,Hey\n"
        turns = read_turns(file_with(tmp_path, "replies.csv", text))
        assert turns["system"].tolist() == ["v1", "v2"]
    text = (
        'chatbot_version,transcript\nv1,"User: Hi\nBot: Ho"\nv2,"User: Hi\nBot: No"\n'
    )
    turns = read_turns(file_with(tmp_path, "survey.csv", text))
    assert turns["system"].tolist() == ["v1", "v2"]
    text = "session,bot,user_1,bot_1,user_2,bot_2\ns1,alpha,Hi,Ho,Tea?,No\n"
    turns = read_turns(file_with(tmp_path, "wide.csv", text))
    assert set(turns["system"]) == {"alpha"}


def test_what_is_read_as_ratings_is_not_named_as_left_out(tmp_path):
    text = "system,dialog,context,response,rater_1,rater_2\nA,d1,Hi,Ho,4,5\nA,d2,Hi,Ho,2,3\n"
    turns = read_turns(file_with(tmp_path, "raters.csv", text))
    assert turns["human_rating"].tolist() == [4.5, 2.5]
    assert "rating: none" not in dict(guesses(turns))


def test_means_with_decimals_may_be_ratings(tmp_path):
    text = "dialog;speaker;text;impression\nd1;user;Hi;4,33\nd1;bot;Ho;4,33\n"
    text += "d2;user;Hi;3,67\nd2;bot;Ho;3,67\n"
    turns = read_turns(file_with(tmp_path, "means.csv", text))
    reason = "impression may be people's ratings, or scores of a model"
    assert ("rating: none", reason) in guesses(turns)


def test_an_exchange_without_an_answer_has_no_reply(tmp_path):
    text = "session,user_message,bot_response\ns1,,Ho\ns1,Hi,\ns1,Tea?,No\ns2,Hi,Hey\n"
    turns = read_turns(file_with(tmp_path, "sessions.csv", text))
    assert contexts(turns) == {"Ho": [], "No": ["Ho", "Hi", "Tea?"], "Hey": ["Hi"]}


def test_two_replies_to_a_context_that_is_a_list(tmp_path):
    row = {"context": ["Hi"], "response_A": "Ho", "response_B": "No", "preferred": "A"}
    pd.DataFrame([row, row | {"context": ["Tea?"]}]).to_parquet(tmp_path / "p.parquet")
    turns = read_turns(tmp_path / "p.parquet")
    assert turns["context"].tolist() == [["Hi"], ["Hi"], ["Tea?"], ["Tea?"]]
    assert turns["dialog"].nunique() == 2


def test_two_replies_to_a_prompt_may_have_capitals_in_their_names(tmp_path):
    text = (
        "item,prompt,response_A,response_B,preferred\n1,Hi,Ho,No,A\n2,Tea?,Yes,Eh,B\n"
    )
    turns = read_turns(file_with(tmp_path, "pairs.csv", text))
    assert turns["response"].tolist() == ["Ho", "No", "Yes", "Eh"]
    assert turns["human_preference"].tolist() == [1, 0, 0, 1]


def test_turns_of_wildchat_stand_in_the_order_of_their_list(tmp_path):
    talk = [("user", "Hi"), ("assistant", "Ho"), ("user", "Tea?"), ("assistant", "No")]
    messages = []
    for number, (role, text) in enumerate(talk):
        about = {"role": role, "content": text, "turn_identifier": 9 - number // 2}
        messages.append(about)
    row = {"conversation_hash": "h", "model": "m", "conversation": messages}
    turns = read_turns(file_with(tmp_path, "wildchat.jsonl", json.dumps(row)))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


def test_rows_that_answer_each_other_in_a_circle_are_read(tmp_path):
    rows = ["id,reply_to,author,text", "1,2,ada,Hi", "2,3,bot,Ho", "3,2,ada,Tea?"]
    file = file_with(tmp_path, "circle.csv", "\n".join(rows))
    turns = read_turns(file, options={"bot": "bot"})
    assert turns["response"].tolist() == ["Ho"]


def test_marks_of_empathetic_dialogues_are_named(tmp_path):
    head = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags"
    rows = ["c,1,sad,p,1,Hi_comma_ you,5|5|5_4|5|5,", "c,2,sad,p,2,Ho,5|5|5_4|5|5,"]
    turns = read_turns(file_with(tmp_path, "train.csv", "\n".join([head, *rows])))
    assert turns["response"].tolist() == ["Ho"]
    reasons = [reason for _, _, reason, _ in turns.attrs["guesses"]]
    assert any(reason.startswith("selfeval holds marks") for reason in reasons)
