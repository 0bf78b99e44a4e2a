"""What stands beside the words in exports of tools, and is none of the bot's replies."""

import json

import pandas as pd
import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, import_report, read_turns


def reasons(turns):
    """Why something was left out, and what was noted."""
    report = import_report(turns)
    return " ".join([*report["reasons"].astype(str), *report["notes"].astype(str)])


def chatgpt(*texts):
    """ChatGPT's export of one talk, by user and assistant in turn."""
    nodes = {"0": {"parent": None, "message": None}}
    for number, text in enumerate(texts, start=1):
        role = ("assistant", "user")[number % 2]
        message = {
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
        }
        nodes[f"{number}"] = {"parent": f"{number - 1}", "message": message}
    return [{"id": "c", "mapping": nodes, "current_node": f"{len(texts)}"}]


def test_marks_of_sources_in_chatgpt_are_no_words(tmp_path):
    reply = "Open. \ue200cite\ue202turn0search1\ue202turn0search2\ue201 Closed at "
    reply += '\ue200entity\ue202["place","Park","a park"]\ue201.'
    turns = read_turns(file_with(tmp_path, "c.json", chatgpt("Hi", reply)))
    assert turns["response"].tolist() == ["Open. Closed at Park."]


def open_webui(*messages):
    """Open WebUI's export of one talk."""
    nodes = {}
    for number, message in enumerate(messages):
        parent = f"{number - 1}" if number else None
        nodes[f"{number}"] = {"id": f"{number}", "parentId": parent, **message}
    history = {"messages": nodes, "currentId": f"{len(messages) - 1}"}
    return {"id": "c", "chat": {"history": history}}


def test_folded_calls_and_reasoning_of_open_webui_are_no_words(tmp_path):
    folded = '<details type="reasoning" done="true">\n<summary>x</summary>\n> Hm\n</details>\n'
    folded += (
        '<details type="tool_calls" done="true" name="find" result="1">\n</details>\n'
    )
    chats = [
        open_webui(
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": f"{folded}Ho"},
            {"role": "user", "content": "Tea?"},
            {"role": "assistant", "content": "No"},
        )
    ]
    turns = read_turns(file_with(tmp_path, "webui.json", chats))
    assert contexts(turns) == TWO_EXCHANGES
    assert "calls of tools, which are no talk" in reasons(turns)


def test_a_request_that_failed_is_no_empty_reply_of_open_webui(tmp_path):
    hi = {"role": "user", "content": "Hi"}
    failed = {"role": "assistant", "content": "", "error": {"content": "500"}}
    chats = [
        open_webui(hi, {"role": "assistant", "content": "Ho"}),
        open_webui(hi, failed),
    ]
    turns = read_turns(file_with(tmp_path, "webui.json", chats))
    assert turns["response"].tolist() == ["Ho"]


def activity(number, role, text, kind="message"):
    account = {"id": role, "name": role, "role": role}
    about = {"id": f"{number}", "type": kind, "from": account, "text": text}
    return about | {"conversation": {"id": "c"}}


def test_an_edited_activity_has_its_last_words(tmp_path):
    rows = [
        activity(1, "user", "Hi"),
        activity(2, "bot", "Wait"),
        activity(2, "bot", "Ho", "messageUpdate"),
        activity(3, "bot", "Oops"),
        activity(3, "bot", None, "messageDelete"),
        activity(4, "user", "Tea?"),
        activity(5, "bot", "No"),
    ]
    turns = read_turns(file_with(tmp_path, "teams.transcript", rows))
    assert contexts(turns) == TWO_EXCHANGES


def test_only_what_a_batch_brought_is_the_models(tmp_path):
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": "Tea?"},
    ]
    asked = {"custom_id": "1", "method": "POST", "body": {"messages": messages}}
    message = {"role": "assistant", "content": "No"}
    body = {"model": "m", "choices": [{"index": 0, "message": message}]}
    file_with(tmp_path, "input.jsonl", [asked])
    file_with(
        tmp_path, "output.jsonl", [{"custom_id": "1", "response": {"body": body}}]
    )
    assert contexts(read_turns(tmp_path)) == {"No": ["Hi", "Ho", "Tea?"]}


def test_assistants_and_models_are_versions(tmp_path):
    data = []
    for number, name in enumerate(("asst_1", "asst_2"), start=1):
        for place, role in enumerate(("user", "assistant")):
            content = [{"type": "text", "text": {"value": f"{role} {number}"}}]
            message = {"thread_id": f"t{number}", "role": role, "content": content}
            of_bot = name if role == "assistant" else None
            message |= {"created_at": place, "assistant_id": of_bot}
            data.append(message)
    turns = read_turns(
        file_with(tmp_path, "list.json", {"object": "list", "data": data})
    )
    assert sorted(turns["system"]) == ["asst_1", "asst_2"]
    sessions = {}
    for model in ("m1", "m2"):
        about = {"content": "Ho", "response_metadata": {"model_name": model}}
        sessions[model] = [
            {"type": "human", "data": {"content": "Hi"}},
            {"type": "ai", "data": about},
        ]
    turns = read_turns(file_with(tmp_path, "sessions.json", sessions))
    assert sorted(turns["system"]) == ["m1", "m2"]


def test_labels_and_flags_of_oasst_may_be_texts(tmp_path):
    text = (
        "message_id,parent_id,message_tree_id,role,text,deleted,labels\n"
        "a,,a,prompter,Hi,False,\n"
        "b,a,a,assistant,Ho,False,\"{'name': ['quality', 'spam'], 'value': [0.5, 0.0]}\"\n"
        "c,a,a,assistant,Hum,True,\n"
    )
    turns = read_turns(file_with(tmp_path, "oasst.csv", text))
    assert turns[["response", "human_quality"]].values.tolist() == [["Ho", 0.5]]


def test_a_row_with_two_replies_is_a_row_for_each(tmp_path):
    text = (
        "pair,context,response_A,response_B,system_A,system_B,preferred\n"
        "1,User: Hi,Ho,Hey,old,new,A\n2,User: Tea?,No,Yes,new,old,tie\n"
    )
    turns = read_turns(file_with(tmp_path, "pairs.csv", text))
    rows = turns[["system", "response", "human_preference"]].values.tolist()
    assert rows == [
        ["old", "Ho", 1],
        ["new", "Hey", 0],
        ["new", "No", 0.5],
        ["old", "Yes", 0.5],
    ]
    assert turns["context"].tolist() == [["Hi"], ["Hi"], ["Tea?"], ["Tea?"]]
    assert turns["dialog"].nunique() == 2


def test_a_column_of_transcripts_may_have_any_name(tmp_path):
    text = (
        "Participant,Copy your chat here,Condition,Comment\n"
        'p1,"User: Hi\nBot: Ho,\nand more\nUser: Tea?\nBot: No",x,Note: fine\n'
        "p2,,y,\n"
    )
    turns = read_turns(file_with(tmp_path, "survey.csv", text))
    assert turns["response"].tolist() == ["Ho,\nand more", "No"]
    assert turns["context"].tolist()[1] == ["Hi", "Ho,\nand more", "Tea?"]


def test_words_of_another_column_are_no_transcript(tmp_path):
    text = "id,note,remark\n1,User: lost,fine\n2,Bot: found,good\n"
    with pytest.raises(DataError):
        read_turns(file_with(tmp_path, "notes.csv", text))


def test_models_of_a_thread_stay_with_their_replies(tmp_path):
    rows = []
    said = []
    for number, (asked, replied) in enumerate((("Hi", "Ho"), ("Tea?", "No"))):
        reply = {"type": "ai", "content": replied}
        reply["response_metadata"] = {"model_name": f"m{number}"}
        said += [{"type": "human", "content": asked}, reply]
        about = {"run_type": "chain", "trace_id": f"{number}", "id": f"{number}"}
        about |= {"extra": {"metadata": {"thread_id": "t"}}}
        about |= {"start_time": f"2025-01-01T10:0{number}:00"}
        inputs = {"messages": [{"role": "user", "content": asked}]}
        rows.append({**about, "inputs": inputs, "outputs": {"messages": list(said)}})
    turns = read_turns(file_with(tmp_path, "runs.jsonl", rows[::-1]))
    assert contexts(turns) == TWO_EXCHANGES
    assert turns["system"].tolist() == ["m0", "m1"]


def test_calls_of_tools_in_a_history_are_no_talk(tmp_path):
    def span(number, messages, output):
        attributes = {"start_ms": number, "span_kind": "llm", "model_name": "m"}
        attributes |= {"input": {"messages": messages}, "trace_id": f"{number}"}
        attributes |= {
            "output": {"messages": [{"role": "assistant", "content": output}]}
        }
        return {"id": f"{number}", "type": "span", "attributes": attributes}

    hi = {"role": "user", "content": "Hi"}
    call = [{"role": "assistant", "content": ""}, {"role": "user", "content": ""}]
    later = [
        {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": "Tea?"},
    ]
    rows = [span(1, [hi], ""), span(2, [hi, *call], "Ho"), span(3, [hi, *later], "No")]
    turns = read_turns(file_with(tmp_path, "spans.json", {"data": rows}))
    assert contexts(turns) == TWO_EXCHANGES


def test_an_empty_message_before_a_tool_is_a_call(tmp_path):
    text = (
        "id,conversation_id,role,content\n1,c,user,Hi\n2,c,assistant,\n3,c,tool,{}\n"
        "4,c,assistant,Ho\n5,c,user,Tea?\n6,c,assistant,No\n"
    )
    turns = read_turns(file_with(tmp_path, "messages.csv", text))
    assert contexts(turns) == TWO_EXCHANGES


def test_requests_without_what_was_asked_are_left_out_and_counted(tmp_path):
    rows = []
    for number, messages in enumerate(([{"role": "user", "content": "Hi"}], {})):
        about = {"request_id": f"{number}", "startTime": "2025-01-01T10:00:00"}
        message = {"role": "assistant", "content": f"Ho {number}"}
        about |= {"model": "m", "response": {"choices": [{"message": message}]}}
        rows.append({**about, "messages": messages})
    turns = read_turns(file_with(tmp_path, "spend.jsonl", rows))
    assert contexts(turns) == {"Ho 0": ["Hi"]}
    assert "nothing says to what" in reasons(turns)


def test_the_same_sample_under_two_filters_is_one(tmp_path):
    rows = []
    for name in ("strict", "flexible"):
        about = {"doc_id": 0, "resps": [["Ho"]], "filter": name}
        rows.append({**about, "arguments": {"gen_args_0": {"arg_0": "Hi"}}})
    turns = read_turns(file_with(tmp_path, "samples.jsonl", rows))
    assert turns["response"].tolist() == ["Ho"]
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_earlier_rounds_of_an_arena_are_the_context(tmp_path):
    def said(role, text):
        return {"role": role, "content": [{"type": "text", "text": text}]}

    rounds = []
    for asked, left, right in (("Hi", "Ho", "Hey"), ("Tea?", "No", "Yes")):
        both = {"model_side_a": said("assistant", left)}
        both["model_side_b"] = said("assistant", right)
        rounds.append({"user": said("user", asked), **both})
    row = {"id": "1", "model_a": "m1", "model_b": "m2", "winner": "model_a"}
    row |= {"language": "en", "full_conversation": rounds}
    for side in "ab":
        last = [rounds[1]["user"], rounds[1][f"model_side_{side}"]]
        row[f"conversation_{side}"] = last
    turns = read_turns(file_with(tmp_path, "arena.jsonl", [row]))
    assert contexts(turns) == {"No": ["Hi", "Ho", "Tea?"], "Yes": ["Hi", "Hey", "Tea?"]}


def test_a_seat_that_the_bot_has_in_some_dialogs_is_no_version(tmp_path):
    dialogs = []
    for bot in ("participant1", "participant2"):
        user = "participant2" if bot == "participant1" else "participant1"
        talk = [(user, "Human", "Hi"), (bot, "Bot", "Ho"), (user, "Human", "So?")]
        messages = [
            {"sender": name, "sender_class": kind, "text": text}
            for name, kind, text in talk
        ]
        dialogs.append({"dialog_id": bot, "dialog": messages})
    turns = read_turns(file_with(tmp_path, "wild.json", dialogs))
    assert turns["system"].nunique() == 1
    assert turns["response"].tolist() == ["Ho", "Ho"]


def test_template_of_kore_is_read_without_its_buttons(tmp_path):
    def message(kind, text):
        components = [{"cT": "text", "data": {"text": text}}]
        return {"type": kind, "components": components, "sessionId": "s"}

    buttons = [{"type": "postback", "title": "Green"}]
    payload = {"template_type": "button", "text": "Ho", "buttons": buttons}
    template = json.dumps({"type": "template", "payload": payload})
    messages = [message("incoming", "Hi"), message("outgoing", template)]
    turns = read_turns(file_with(tmp_path, "kore.json", {"messages": messages}))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_an_error_of_claude_code_is_no_reply(tmp_path):
    rows = []
    for number, (role, text) in enumerate(
        [("user", "Hi"), ("assistant", "API Error: 529"), ("assistant", "Ho")]
    ):
        about = {"type": role, "uuid": f"{number}", "sessionId": "s"}
        about["parentUuid"] = f"{number - 1}" if number else None
        about["isApiErrorMessage"] = text.startswith("API Error")
        rows.append({**about, "message": {"role": role, "content": text}})
    turns = read_turns(file_with(tmp_path, "session.jsonl", rows))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_what_a_command_of_discord_brings_is_a_reply(tmp_path):
    def message(number, kind, text, is_bot):
        author = {
            "id": f"{is_bot}",
            "name": "Ada" if is_bot else "Mira",
            "isBot": is_bot,
        }
        time = f"2025-01-01T10:0{number}:00Z"
        about = {"id": f"{number}", "type": kind, "timestamp": time}
        return {**about, "content": text, "author": author}

    channel = {
        "guild": {"name": "g"},
        "channel": {"id": "1", "name": "c"},
        "messages": [message(0, "Default", "Hi", False), message(1, "20", "Ho", True)],
    }
    turns = read_turns(file_with(tmp_path, "discord.json", channel))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_what_zoom_writes_above_answers_is_no_word(tmp_path):
    text = (
        "18:01:22 From Mira to Everyone:\n\tHi\n18:01:40 From Ada to Everyone:\n\tHo\n"
        '18:02:00 From Mira to Everyone:\n\tReacted to "Ho" with 👍\n'
        '18:02:05 From Mira to Everyone:\n\tReplying to "Ho"\n\t\n\tTea?\n'
        "18:02:40 From Ada to Everyone:\n\tNo\n"
    )
    turns = read_turns(file_with(tmp_path, "chat.txt", text), options={"bot": "Ada"})
    assert contexts(turns) == TWO_EXCHANGES


def test_quotation_marks_within_several_lines_of_line_stay(tmp_path):
    text = (
        "[LINE] Chat history with Ada\n\nSat, 3/1/2025\n10:00\tMira\tHi\n"
        '10:01\tAda\t"Ho:\n- ""Black"" tea\n- ""Green"""\n10:02\tMira\tOk\n'
        "10:03\tMira\tAnd now?\n10:04\tMira\tHello?\n"
    )
    turns = read_turns(file_with(tmp_path, "line.txt", text), options={"bot": "Ada"})
    assert turns["response"].tolist() == ['Ho:\n- "Black" tea\n- "Green"']


def test_quotes_reactions_and_isolates_of_messengers_are_no_words(tmp_path):
    text = (
        "[2025-03-01 10:00:00] Me: @\u2068Ada\u2069 Hi\n(- Ada: 👍 -)\n"
        "[2025-03-01 10:01:00] Ada: Ho\n[2025-03-01 10:02:00] Me: \n\n> Ho\n\nTea?\n"
        "[2025-03-01 10:03:00] Ada: No\n"
    )
    turns = read_turns(file_with(tmp_path, "chat.md", text), options={"bot": "Ada"})
    assert contexts(turns) == {"Ho": ["@Ada Hi"], "No": ["@Ada Hi", "Ho", "Tea?"]}


def test_sounds_in_subtitles_are_no_words(tmp_path):
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\nMIRA: Hi\n\n2\n00:00:02,000 --> 00:00:03,000\n"
        "ADA: Ho [laughter]\n\n3\n00:00:03,000 --> 00:00:04,000\n[applause]\n\n"
        "4\n00:00:04,000 --> 00:00:05,000\nMIRA: Tea?\n\n"
        "5\n00:00:05,000 --> 00:00:06,000\nADA: No\n"
    )
    turns = read_turns(file_with(tmp_path, "talk.srt", text), options={"bot": "ADA"})
    assert contexts(turns) == TWO_EXCHANGES


def test_a_greeting_of_a_trigger_of_zendesk_is_context(tmp_path):
    def event(number, kind, name, text):
        about = {"type": "chat.msg", "sender_type": kind, "name": name, "index": number}
        return {**about, "msg": text, "timestamp": f"2025-01-01T10:0{number}:00Z"}

    history = [
        event(0, "Trigger", "Shop", "Welcome"),
        event(1, "Visitor", "Mira", "Hi"),
        event(2, "Agent", "Ada Bot", "Ho"),
    ]
    left = {"id": "2", "type": "offline_msg", "message": "Nobody there?"}
    chats = {"chats": [{"id": "1", "history": history}, left]}
    turns = read_turns(file_with(tmp_path, "zendesk.json", chats))
    assert contexts(turns) == {"Ho": ["Welcome", "Hi"]}
    assert "while nobody answered" in reasons(turns)


def test_answers_of_dialogflow_without_a_session_are_refused(tmp_path):
    rows = [
        {"responseId": "1", "queryResult": {"queryText": "Hi", "fulfillmentText": "Ho"}}
    ]
    with pytest.raises(DataError, match="which are of one session"):
        read_turns(file_with(tmp_path, "answers.jsonl", rows))


def test_signs_of_html_in_comments_of_reddit_are_decoded(tmp_path):
    rows = []
    for number, (author, text) in enumerate(
        (("mira", "Hi"), ("ada", "Salt &amp; tea"))
    ):
        about = {"id": f"c{number}", "link_id": "t3_x", "author": author, "body": text}
        parent = f"t1_c{number - 1}" if number else "t3_x"
        rows.append({**about, "parent_id": parent, "created_utc": number})
    file = file_with(tmp_path, "reddit.jsonl", rows)
    turns = read_turns(file, options={"bot": "ada"})
    assert contexts(turns) == {"Salt & tea": ["Hi"]}


def observation(number, kind, messages, output):
    about = {"id": f"{number}", "trace_id": f"{number // 2}", "project_id": "p"}
    about |= {"type": kind, "session_id": "s", "output": json.dumps(output)}
    about |= {"provided_model_name": "m", "start_time": f"2025-01-01 10:0{number}:00"}
    return {**about, "input": json.dumps(messages)}


def test_steps_of_a_trace_are_not_read_beside_its_calls(tmp_path):
    hi = [{"role": "user", "content": "Hi"}]
    later = [*hi, {"role": "assistant", "content": "Ho"}]
    later.append({"role": "user", "content": "Tea?"})
    rows = [
        observation(0, "SPAN", {"args": ["Hi"], "kwargs": {}}, "Ho"),
        observation(1, "GENERATION", hi, {"role": "assistant", "content": "Ho"}),
        observation(2, "SPAN", {"args": ["Tea?"], "kwargs": {}}, "No"),
        observation(3, "GENERATION", later, {"role": "assistant", "content": "No"}),
    ]
    turns = read_turns(file_with(tmp_path, "observations.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert turns["system"].tolist() == ["m", "m"]


def test_a_reply_that_is_a_record_of_a_message_is_read_as_its_words(tmp_path):
    said = json.dumps({"role": "assistant", "content": "Ho"}).replace('"', '""')
    text = "session,user_message,bot_response\n" + f'1,Hi,"{said}"\n2,Hey,Hum\n'
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "Hum": ["Hey"]}


def test_records_of_messages_are_refused_as_talk(tmp_path):
    said = "[{'message.role': 'assistant', 'message.content': 'Ho'}]"
    messages = [
        {"sender": "user", "text": "Hi"},
        {"sender": "bot", "text": said},
    ]
    with pytest.raises(DataError, match="records of messages"):
        read_turns(file_with(tmp_path, "log.json", [{"messages": messages}]))


def test_two_speakers_in_a_cue_are_two(tmp_path):
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n- MIRA: Hi\n- ADA: Ho\n\n"
        "2\n00:00:02,000 --> 00:00:03,000\nMIRA: Tea?\n\n"
        "3\n00:00:03,000 --> 00:00:04,000\nADA: No\n"
    )
    turns = read_turns(file_with(tmp_path, "talk.srt", text), options={"bot": "ADA"})
    assert contexts(turns) == TWO_EXCHANGES


def test_what_messenger_says_of_the_sender_is_no_talk(tmp_path):
    said = [("Mira", "Mira named the group Tea."), ("Mira", "Hi"), ("Ada", "Ho")]
    said += [("Mira", "Mira called Ada."), ("Mira", "Tea?"), ("Ada", "No")]
    messages = []
    for number, (name, text) in enumerate(said):
        time = {"timestamp_ms": 1700000000000 + number}
        messages.append({"sender_name": name, "content": text, **time})
    people = [{"name": "Mira"}, {"name": "Ada"}]
    chat = {"participants": people, "messages": messages[::-1], "title": "Ada"}
    file = file_with(tmp_path, "message_1.json", chat)
    assert contexts(read_turns(file, options={"bot": "Ada"})) == TWO_EXCHANGES


def test_reference_answers_beside_those_of_models_are_no_replies(tmp_path):
    for folder in ("model_answer", "reference_answer"):
        (tmp_path / folder).mkdir()
        choices = [{"index": 0, "turns": [f"Ho of {folder}"]}]
        row = {"question_id": 1, "answer_id": "a", "model_id": "m", "choices": choices}
        file_with(tmp_path / folder, "m.jsonl", [row])
    file_with(tmp_path, "question.jsonl", [{"question_id": 1, "turns": ["Hi"]}])
    turns = read_turns(tmp_path)
    assert turns["response"].tolist() == ["Ho of model_answer"]


def test_an_event_of_dialogflow_is_no_word_of_the_user(tmp_path):
    context = [{"name": "projects/p/agent/sessions/s/contexts/x"}]
    rows = []
    for asked, replied in (("WELCOME", "Hello"), ("Hi", "Ho"), ("Tea?", "No")):
        result = {"queryText": asked, "fulfillmentText": replied}
        result["outputContexts"] = context
        rows.append({"responseId": asked, "queryResult": result})
    turns = read_turns(file_with(tmp_path, "answers.jsonl", rows))
    assert contexts(turns)["Hello"] == []
    assert contexts(turns)["No"] == ["Hello", "Hi", "Ho", "Tea?"]


def test_requests_as_proxies_and_clouds_log_them_are_read(tmp_path):
    asked = [{"role": "user", "content": "Hi"}]
    request = {"timestamp": 1.5, "body": {"model": "m", "messages": asked}}
    content = [{"type": "text", "text": "Ho"}]
    body = {"type": "message", "role": "assistant", "model": "m-1", "content": content}
    failed = {"type": "error", "error": {"message": "Overloaded"}}
    rows = [{"request": request, "response": {"body": each}} for each in (failed, body)]
    turns = read_turns(file_with(tmp_path, "proxy.jsonl", rows))
    assert turns[["system", "response"]].values.tolist() == [["m-1", "Ho"]]
    parts = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    reply = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Ho"}]}}]}
    row = {"model": "gemini", "full_request": parts, "full_response": reply}
    turns = read_turns(file_with(tmp_path, "vertex.jsonl", [row, row | {"x": 1}]))
    assert turns["response"].tolist() == ["Ho", "Ho"]
    said = {"sessionId": "s", "botVersion": "7", "inputTranscript": "Hi"}
    said |= {"messages": [{"content": "Ho", "contentType": "PlainText"}]}
    event = {"timestamp": 1747721700000, "ingestionTime": 1747721700001}
    event["message"] = json.dumps(said)
    turns = read_turns(file_with(tmp_path, "events.jsonl", [event, event]))
    assert contexts(turns)["Ho"][0] == "Hi"


def test_deleted_parts_of_intercom_are_no_talk(tmp_path):
    def part(kind, text, **fields):
        about = {"part_type": "comment", "author": {"type": kind, "name": kind}}
        return {**about, "body": f"<p>{text}</p>", **fields}

    parts = [part("user", "This message was deleted", redacted=True), part("bot", "Ho")]
    chat = {"id": "1", "source": part("user", "Hi"), "conversation_parts": parts}
    turns = read_turns(file_with(tmp_path, "intercom.json", [chat]))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_a_history_beside_columns_of_ours_is_the_context(tmp_path):
    text = "system,dialog,response,history\nA,1,Ho,Hi\nA,2,No,Tea?\n"
    turns = read_turns(file_with(tmp_path, "replies.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_two_systems_on_a_history_that_change_sides(tmp_path):
    text = "dialogue_history;system_A;system_B;response_A;response_B;preferred\n"
    text += "User: Hi;x;y;Ho;Hey;A\nUser: Tea?;y;x;No;Yes;B\n"
    turns = read_turns(file_with(tmp_path, "pairs.csv", text))
    rows = turns[["system", "context", "response", "human_preference"]].values.tolist()
    assert rows == [
        ["x", ["Hi"], "Ho", 1],
        ["y", ["Hi"], "Hey", 0],
        ["y", ["Tea?"], "No", 0],
        ["x", ["Tea?"], "Yes", 1],
    ]


def test_an_empty_reply_is_no_context(tmp_path):
    talk = [("user", "Hi"), ("assistant", ""), ("user", "Hello?"), ("assistant", "Ho")]
    messages = [{"role": role, "content": text} for role, text in talk]
    turns = read_turns(file_with(tmp_path, "log.json", [{"messages": messages}]))
    assert turns["response"].tolist() == ["", "Ho"]
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Hello?"]]


def test_what_twilio_says_itself_is_no_talk(tmp_path):
    messages = []
    for author, text in (
        ("+491", "Hi"),
        ("ada", "Ho"),
        ("system", "Mira joined"),
        ("+491", "Tea?"),
        ("ada", "No"),
    ):
        about = {"conversation_sid": "CH1", "index": len(messages)}
        messages.append({**about, "author": author, "body": text})
    file = file_with(tmp_path, "twilio.json", {"messages": messages})
    assert contexts(read_turns(file, options={"bot": "ada"})) == TWO_EXCHANGES


def test_what_rasas_widget_sends_when_it_opens_is_no_talk(tmp_path):
    events = []
    for kind, text in (
        ("user", "/greet"),
        ("bot", "Ho"),
        ("user", "Hi"),
        ("bot", "No"),
    ):
        events.append({"event": kind, "text": text, "timestamp": len(events)})
    file = file_with(tmp_path, "rasa.json", {"sender_id": "s", "events": events})
    assert contexts(read_turns(file)) == {"Ho": [], "No": ["Ho", "Hi"]}


def test_messages_of_vercel_stay_in_their_order(tmp_path):
    messages = []
    for role, text in (("user", "Hi"), ("assistant", "Ho")):
        parts = [{"type": "text", "text": text}]
        about = {"createdAt": 1760000000000 - len(messages)}
        messages.append({"role": role, "parts": parts, "metadata": about})
    file = file_with(tmp_path, "chats.json", [{"id": "c", "messages": messages}])
    assert contexts(read_turns(file)) == {"Ho": ["Hi"]}


def test_responses_that_name_the_one_before_and_others_that_repeat_it(tmp_path):
    def response(name, *said, reply, before=None):
        roles = ("user", "assistant", "user")
        messages = [
            {"role": role, "content": text}
            for role, text in zip(roles, said, strict=False)
        ]
        output = {"type": "message", "role": "assistant"}
        output["content"] = [{"type": "output_text", "text": reply}]
        about = {"id": name, "object": "response", "previous_response_id": before}
        return {**about, "model": "m", "input": messages, "output": [output]}

    rows = []
    for chat in "ab":
        rows.append(response(f"{chat}1", f"Hi {chat}", reply="Ho"))
        rows.append(response(f"{chat}2", "Tea?", reply="No", before=f"{chat}1"))
    rows.append(response("c1", "Hi c", reply="Hey"))
    rows.append(response("c2", "Hi c", "Hey", "Cake?", reply="Yes"))
    turns = read_turns(file_with(tmp_path, "responses.jsonl", rows))
    assert sorted(turns["response"]) == ["Hey", "Ho", "Ho", "No", "No", "Yes"]
    assert contexts(turns)["Yes"] == ["Hi c", "Hey", "Cake?"]


def test_a_session_of_langchain_that_nobody_used(tmp_path):
    def message(kind, text):
        return {"type": kind, "data": {"type": kind, "content": text}}

    prompt = message("system", "Be kind")
    talk = [prompt, message("human", "Hi"), message("ai", "Ho")]
    sessions = {"3f-anna": talk, "77-ravi": talk, "a0-guest": [prompt]}
    turns = read_turns(file_with(tmp_path, "sessions.json", sessions))
    assert turns[["dialog", "context"]].values.tolist() == [
        ["3f-anna", ["Hi"]],
        ["77-ravi", ["Hi"]],
    ]


def test_labels_of_openassistant_that_pandas_printed(tmp_path):
    labels = "{'name': array(['spam', 'quality'],\n      dtype=object), "
    labels += "'value': array([0.  , 0.75]), 'count': array([3, 3], dtype=int32)}"
    header = "message_id,parent_id,text,role,message_tree_id,labels\n"
    rows = f'1,,Hi,prompter,1,\n2,1,Ho,assistant,1,"{labels}"\n'
    turns = read_turns(file_with(tmp_path, "oasst.csv", header + rows))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert turns["human_quality"].tolist() == [0.75]


def test_langsmiths_model_is_the_one_that_answered(tmp_path):
    message = {
        "kwargs": {"content": "Ho", "type": "ai"},
        "lc": 1,
        "type": "constructor",
    }
    run = {
        "run_type": "llm",
        "trace_id": "t",
        "inputs": {"messages": [{"role": "user", "content": "Hi"}]},
        "outputs": {
            "generations": [[{"message": message, "text": "Ho"}]],
            "llm_output": {"model_name": "m-2025-01"},
        },
        "extra": {"metadata": {"ls_model_name": "m"}},
    }
    turns = read_turns(file_with(tmp_path, "runs.jsonl", [run]))
    assert turns[["system", "response"]].values.tolist() == [["m-2025-01", "Ho"]]


def test_a_cue_of_sounds_is_no_words(tmp_path):
    lines = ["MIRA: Hi", "ADA: Ho", "(Mira laughs)", "MIRA: Tea?", "ADA: No (sorry)"]
    text = ""
    for number, line in enumerate(lines, start=1):
        text += f"{number}\n00:00:0{number},000 --> 00:00:0{number},900\n{line}\n\n"
    file = file_with(tmp_path, "talk.srt", text)
    turns = read_turns(file, options={"bot": "ADA"})
    assert contexts(turns) == {
        "Ho": ["Hi"],
        "No (sorry)": ["Hi", "Ho", "Tea?"],
    }


def test_replies_that_open_webui_shows_side_by_side(tmp_path):
    folded = (
        '<details type="reasoning" done="true">\n<summary>x</summary>\nHm\n</details>\n'
    )
    about = {"role": "assistant", "modelIdx": 0}
    nodes = {
        "1": {"role": "user", "content": "Hi", "models": ["m", "n"], "parentId": None},
        "2": {**about, "content": f"{folded}Ho", "model": "m", "parentId": "1"},
        "3": {**about, "content": "Hey", "model": "n", "parentId": "1"},
        "4": {"role": "user", "content": "Tea?", "models": ["m", "n"], "parentId": "2"},
        "5": {**about, "content": "No", "model": "m", "parentId": "4"},
        "6": {**about, "content": "Yes", "model": "n", "parentId": "4"},
    }
    nodes = {name: {"id": name, **node} for name, node in nodes.items()}
    chat = {"id": "c", "chat": {"history": {"messages": nodes, "currentId": "5"}}}
    turns = read_turns(file_with(tmp_path, "webui.json", [chat]))
    assert contexts(turns) == {
        "Ho": ["Hi"],
        "Hey": ["Hi"],
        "No": ["Hi", "Ho", "Tea?"],
        "Yes": ["Hi", "Ho", "Tea?"],
    }


def test_a_wizard_who_takes_over_from_a_bot_is_a_person(tmp_path):
    text = "dialog,speaker,text\n1,p1,Hi\n1,bot,Ho\n1,p1,Tea?\n1,wizard,Hello\n1,p1,So?\n1,bot,No\n"
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?", "Hello", "So?"]}


def test_a_chat_of_sigexport_is_one_dialog(tmp_path):
    lines = []
    talk = [("Me", "Hi"), ("Ada", "Ho"), ("Me", "Tea?"), ("Ada", "No")]
    for day, (sender, body) in enumerate(talk, start=1):
        about = {"quote": "", "sticker": "", "reactions": [], "attachments": []}
        date = f"2025-10-0{day}T10:00:00"
        lines.append({"date": date, "sender": sender, "body": body, **about})
    file = file_with(tmp_path, "data.jsonl", lines)
    assert contexts(read_turns(file, options={"bot": "Ada"})) == TWO_EXCHANGES


def test_dialogs_by_their_numbers(tmp_path):
    talk = [("ann", "Hi"), ("ada", "Ho"), ("ann", "Tea?"), ("ada", "No")]
    messages = [{"speaker": speaker, "text": text} for speaker, text in talk]
    file = file_with(tmp_path, "log.json", {"dlg_1": messages, "dlg_2": messages})
    turns = read_turns(file, options={"bot": "ada"})
    assert turns["dialog"].tolist() == ["dlg_1", "dlg_1", "dlg_2", "dlg_2"]
    assert contexts(turns) == TWO_EXCHANGES


def test_comments_of_reddit_below_several_on_the_post_itself(tmp_path):
    talk = [
        ("0", "t3_p", "Mod", "Be kind"),
        ("1", "t3_p", "mira", "Hi"),
        ("2", "t1_1", "ada", "Ho"),
        ("3", "t1_2", "ben", "Aha"),
        ("4", "t1_2", "mira", "Tea?"),
        ("5", "t1_4", "ada", "No"),
        ("6", "t3_p", "eve", "Me too"),
    ]
    rows = []
    for name, parent, author, body in talk:
        about = {"id": name, "parent_id": parent, "link_id": "t3_p", "score": 1}
        about["created_utc"] = 1700000000 + int(name)
        rows.append({**about, "author": author, "body": body})
    file = file_with(tmp_path, "comments.jsonl", rows)
    assert contexts(read_turns(file, options={"bot": "ada"})) == TWO_EXCHANGES


def test_several_talks_of_candor_in_one_table(tmp_path):
    text = "conversation_id,turn_id,speaker,start,stop,utterance,delta\n"
    for talk in "ab":
        text += f"{talk},0,p1,0,1,Hi {talk},1\n{talk},1,p2,1,2,Ho {talk},1\n"
    file = file_with(tmp_path, "candor.csv", text)
    turns = read_turns(file, options={"bot": "p2"})
    assert contexts(turns) == {"Ho a": ["Hi a"], "Ho b": ["Hi b"]}


def test_groks_current_branch_is_read(tmp_path):
    talk = [
        ("1", None, "human", "Hi"),
        ("2", "1", "assistant", "Hey"),
        ("3", "1", "assistant", "Ho"),
        ("4", "3", "human", "Tea?"),
        ("5", "4", "assistant", "No"),
    ]
    responses = []
    for name, parent, sender, text in talk:
        about = {"_id": name, "parent_response_id": parent, "sender": sender}
        responses.append({"response": {**about, "message": text}})
    chat = {
        "conversation": {"id": "g", "leaf_response_id": "5"},
        "responses": responses,
    }
    turns = read_turns(file_with(tmp_path, "grok.json", {"conversations": [chat]}))
    assert contexts(turns) == TWO_EXCHANGES
    assert "1 stand on branches that were left" in reasons(turns)
    chat["conversation"]["leaf_response_id"] = None
    turns = read_turns(file_with(tmp_path, "all.json", {"conversations": [chat]}))
    assert contexts(turns) == {**TWO_EXCHANGES, "Hey": ["Hi"]}


def test_hubspots_welcome_is_the_bots(tmp_path):
    results = []
    for minute, (kind, actor, text) in enumerate(
        [
            ("WELCOME_MESSAGE", "B-1", "Ho"),
            ("MESSAGE", "V-2", "Hi"),
            ("MESSAGE", "B-1", "No"),
        ]
    ):
        about = {"conversationsThreadId": "7", "type": kind, "text": text}
        about["createdAt"] = f"2025-01-01T10:0{minute}:00Z"
        about["direction"] = "INCOMING" if actor == "V-2" else "OUTGOING"
        about["senders"] = [{"actorId": actor, "name": actor}]
        results.append(about)
    turns = read_turns(file_with(tmp_path, "hubspot.json", {"results": results}))
    assert contexts(turns) == {"Ho": [], "No": ["Ho", "Hi"]}


def test_a_request_after_the_result_of_a_tool_repeats_the_one_before(tmp_path):
    def said(role, text):
        return {"role": role, "parts": [{"text": text}]}

    call = {"role": "model", "parts": [{"functionCall": {"name": "tea", "args": {}}}]}
    result = {"name": "tea", "response": {"tea": "none"}}
    result = {"role": "user", "parts": [{"functionResponse": result}]}
    talk = [said("user", "Hi"), said("model", "Ho"), said("user", "Tea?")]
    later = [call, result, said("model", "No"), said("user", "Bye")]
    ends = [talk[:1], talk, talk + later[:2], talk + later]
    requests = [{"model": "m", "contents": contents} for contents in ends]
    for name, rows in (("log", requests), ("newest_first", requests[::-1])):
        lines = "\n".join(map(json.dumps, rows))
        turns = read_turns(file_with(tmp_path, f"{name}.jsonl", lines))
        assert contexts(turns) == TWO_EXCHANGES
        assert len(turns) == 2


def subtitles(*cues):
    """Cues of SubRip, one each second."""
    parts = []
    for number, words in enumerate(cues):
        parts.append(f"{number + 1}\n00:00:{number:02},000 --> 00:00:{number:02},900")
        parts[-1] += f"\n{words}"
    return "\n\n".join(parts) + "\n"


def test_words_with_a_colon_in_subtitles_are_no_speakers(tmp_path):
    cues = ["ANN: Hi", "BOT: Ho.\nI always say: ho", "ANN: Tea?", "BOT: No"]
    file = file_with(tmp_path, "talk.srt", subtitles(*cues))
    turns = read_turns(file, options={"bot": "BOT"})
    assert contexts(turns) == {
        "Ho. I always say: ho": ["Hi"],
        "No": ["Hi", "Ho. I always say: ho", "Tea?"],
    }
    reason = "words with a colon within what they say: I always say"
    assert ["speakers", "ANN,BOT", reason, 1] in [
        list(guess) for guess in turns.attrs["guesses"]
    ]


def test_a_sentence_with_a_word_for_a_side_is_no_speaker(tmp_path):
    said = "My guest today is not a person: it is a bot"
    cues = [f"ANN: Hi\n{said}", "BOT: Ho", "ANN: Tea?", "BOT: No"]
    file = file_with(tmp_path, "talk.srt", subtitles(*cues))
    expected = {"Ho": [f"Hi {said}"], "No": [f"Hi {said}", "Ho", "Tea?"]}
    assert contexts(read_turns(file, options={"bot": "BOT"})) == expected
    text = f"User: Hi\n{said}\nAssistant: Ho\nUser: Tea?\nAssistant: No\n"
    turns = read_turns(file_with(tmp_path, "talk.txt", text))
    assert contexts(turns)["Ho"] == [f"Hi\n{said}"]


def test_who_speaks_once_in_subtitles_speaks_where_names_are_in_capitals(tmp_path):
    cues = ["ANN: Hi", "BOT: Ho", "ANN: Tea?", "CAROL: Please!", "BOT: No"]
    file = file_with(tmp_path, "talk.srt", subtitles(*cues))
    turns = read_turns(file, options={"bot": "BOT"})
    assert contexts(turns)["No"] == ["Hi", "Ho", "Tea?", "Please!"]
    cues = [cue.replace("ANN", "Ann").replace("CAROL", "Carol") for cue in cues]
    file = file_with(tmp_path, "named.srt", subtitles(*cues))
    with pytest.raises(DataError, match="some may stand within .* Ann, BOT, Carol"):
        read_turns(file, options={"bot": "BOT"})
    turns = read_turns(file, options={"bot": "BOT", "speakers": "Ann,BOT,Carol"})
    assert contexts(turns)["No"] == ["Hi", "Ho", "Tea?", "Please!"]


def test_an_answer_of_dialogflow_with_contexts_is_of_the_session_beside_it(tmp_path):
    session = "projects/p/agent/sessions/s1"
    rows = []
    for words, reply in ((None, "Ho"), ("Tea?", "No")):
        result = {"queryText": words, "fulfillmentText": reply}
        if words:
            result["outputContexts"] = [{"name": f"{session}/contexts/tea"}]
        row = {"responseId": "r", "session": session, "queryResult": result}
        rows.append(json.dumps(row))
    turns = read_turns(file_with(tmp_path, "es.jsonl", "\n".join(rows)))
    assert contexts(turns) == {"Ho": [], "No": ["Ho", "Tea?"]}
    assert set(turns["dialog"]) == {"s1"}


def test_a_rated_reply_on_another_branch_of_chatgpt_is_read(tmp_path):
    (record,) = chatgpt("Hi", "Ho", "Tea?", "No")
    said = record["mapping"]["4"]["message"]
    left = {**said, "content": {"content_type": "text", "parts": ["Buy it."]}}
    record["mapping"]["5"] = {"parent": "3", "message": left}
    (tmp_path / "conversations.json").write_text(json.dumps([record]))
    thumb = {"id": "5", "conversation_id": "c", "rating": "thumbs_down"}
    (tmp_path / "message_feedback.json").write_text(json.dumps([thumb]))
    turns = read_turns(tmp_path)
    assert contexts(turns) == {**TWO_EXCHANGES, "Buy it.": ["Hi", "Ho", "Tea?"]}
    rated = turns.set_index("response")["human_feedback"].dropna()
    assert rated.index.tolist() == ["Buy it."]


def test_a_person_who_takes_over_from_rasa_is_context(tmp_path):
    talk = [("user", "Hi"), ("bot", "Ho"), ("agent", "Ada here."), ("bot", "No")]
    events = []
    for number, (kind, text) in enumerate(talk):
        events.append({"event": kind, "text": text, "timestamp": number + 1.0})
    file = file_with(tmp_path, "rasa.json", {"sender_id": "s", "events": events})
    assert contexts(read_turns(file)) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Ada here."]}


def test_an_answer_of_open_webui_that_was_stopped_is_empty(tmp_path):
    chat = open_webui(
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Ho"},
    )
    turns = read_turns(file_with(tmp_path, "webui.json", [chat]))
    assert turns["response"].tolist() == ["", "Ho"]


def test_an_empty_text_in_a_batch_is_an_empty_reply(tmp_path):
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    said = {"role": "assistant", "content": "Ho"}
    answers = [said | {"content": ""}, call, said]
    requests = []
    results = []
    for number, message in enumerate(answers):
        about = {"custom_id": f"{number}"}
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        requests.append({**about, "url": "/v1/chat/completions", "body": asked})
        body = {"model": "m", "choices": [{"index": 0, "message": message}]}
        results.append({**about, "response": {"status_code": 200, "body": body}})
    folder = tmp_path / "batch"
    folder.mkdir()
    for name, rows in (("input", requests), ("output", results)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    turns = read_turns(folder)
    assert turns["response"].tolist() == ["", "Ho"]
    assert "1 are requests without a reply in words" in reasons(turns)


def test_calls_and_deleted_messages_of_signal_are_no_talk(tmp_path):
    talk = [
        ("Ada", "Hi", {}),
        ("Bot", "Ho", {}),
        ("Bot", "Missed call", {"call": True}),
    ]
    talk += [("Ada", "Oh", {"deleted": True}), ("Ada", "Tea?", {}), ("Bot", "No", {})]
    rows = []
    for number, (sender, body, flags) in enumerate(talk):
        about = {"date": f"2025-01-01T10:0{number}:00", "sender": sender, "body": body}
        about |= {"quote": "", "sticker": "", "reactions": [], "attachments": []}
        rows.append(about | {"deleted": False, "call": False} | flags)
    file = file_with(tmp_path, "data.json", "\n".join(map(json.dumps, rows)))
    assert contexts(read_turns(file, options={"bot": "Bot"})) == TWO_EXCHANGES


def langfuse_row(asked, answered):
    return {
        "sessionId": asked,
        "input": [message("user", asked)],
        "output": message("", answered),
    }


def otel_row(asked, answered):
    parts = [{"role": "assistant", "parts": [{"type": "text", "content": answered}]}]
    attributes = {"gen_ai.operation.name": "chat"}
    attributes["gen_ai.input.messages"] = json.dumps([message("user", asked)])
    attributes["gen_ai.output.messages"] = json.dumps(parts)
    return {"traceId": asked, "spanId": "p", "attributes": attributes}


def gemini_row(asked, answered):
    said = {"role": "model", "parts": [{"text": answered}]}
    contents = [{"role": "user", "parts": [{"text": asked}]}]
    return {"contents": contents, "candidates": [{"content": said}]}


def request_row(asked, answered):
    return {"messages": [message("user", asked)], "response": answered}


def response_row(asked, answered):
    text = {"type": "output_text", "text": answered}
    output = [{"type": "message", **message("assistant", [text])}]
    return {"id": asked, "object": "response", "input": asked, "output": output}


def message(role, content):
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    "row", [langfuse_row, otel_row, gemini_row, request_row, response_row]
)
def test_an_empty_answer_of_a_model_is_an_empty_reply(row, tmp_path):
    rows = [row("Hi", ""), row("Tea?", "Ho")]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert contexts(turns) == {"": ["Hi"], "Ho": ["Tea?"]}


def test_a_call_of_a_tool_beside_an_empty_text_is_no_reply(tmp_path):
    block = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    talk = [("user", "Hi"), ("assistant", [{"type": "text", "text": ""}, block])]
    talk += [("user", "Well?"), ("assistant", "Ho")]
    messages = [{"role": role, "content": content} for role, content in talk]
    turns = read_turns(file_with(tmp_path, "log.json", [{"messages": messages}]))
    assert turns["response"].tolist() == ["Ho"]


def test_an_empty_cell_beside_messages_is_no_reply(tmp_path):
    cell = json.dumps([{"role": "user", "content": "Hi"}])
    table = pd.DataFrame({"messages": [cell, cell], "response": ["Ho", ""]})
    table.to_csv(tmp_path / "log.csv", index=False)
    assert read_turns(tmp_path / "log.csv")["response"].tolist() == ["Ho"]


def test_a_failed_request_of_open_webui_is_no_empty_reply_and_counted(tmp_path):
    ends = [("u", None, "user", "Hi"), ("b", "u", "assistant", "Ho")]
    ends += [("v", "b", "user", "Tea?"), ("c", "v", "assistant", "")]
    nodes = {}
    for name, parent, role, content in ends:
        message = {"id": name, "parentId": parent, "role": role, "content": content}
        nodes[name] = {**message, "childrenIds": []}
    nodes["c"]["error"] = {"content": "no connection"}
    history = {"currentId": "c", "messages": nodes}
    chat = {"id": "1", "title": "t", "chat": {"title": "t", "history": history}}
    turns = read_turns(file_with(tmp_path, "chats.json", [chat]))
    assert turns["response"].tolist() == ["Ho"]
    excluded = import_report(turns).set_index("unit").loc["utterances", "reasons"]
    assert excluded == "1 have no words (calls of tools, pictures)"
