"""Exports of platforms for bots and of customer support, in the combinations that files have."""

import csv
import io
import json

import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, read_turns

SAID = ("Hi", "Ho", "Tea?", "No")
WITH_STAFF = {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?", "I am Ann"]}


def time(number):
    """A time, some seconds after ten o'clock."""
    return f"2024-03-05T10:00:0{number}Z"


def by_turns(message, *texts):
    """Messages with these texts, by user and bot in turn; a function makes each."""
    return [message(number, text) for number, text in enumerate(texts or SAID)]


def json_turns(tmp_path, value):
    """The replies in a file that holds this as JSON."""
    return read_turns(file_with(tmp_path, "log.json", value))


def table(rows):
    """Rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def csv_turns(tmp_path, rows):
    """The replies in a table of these rows."""
    file = tmp_path / "log.csv"
    file.write_text(table(rows), encoding="utf-8")
    return read_turns(file)


# Rasa


def test_times_of_rasa_as_mongodb_writes_them(tmp_path):
    events = []
    for number, text in enumerate(SAID):
        about = {"event": ("user", "bot")[number % 2], "text": text}
        time_of_event = {"$numberDouble": f"{1709640000.5 + number}"}
        events.append({**about, "timestamp": time_of_event})
    tracker = {"sender_id": "s", "events": events[::-1]}
    assert contexts(json_turns(tmp_path, [tracker])) == TWO_EXCHANGES


# Dialogflow


def cx_entry(number, asked, **message):
    """A response of Dialogflow CX as Cloud Logging keeps it."""
    return {
        "jsonPayload": {"queryResult": {"text": asked, "responseMessages": [message]}},
        "labels": {"session_id": "s"},
        "timestamp": time(number),
    }


def test_dialogflow_cx_in_cloud_logging_and_what_it_only_speaks(tmp_path):
    request = {"jsonPayload": {"queryInput": {"text": {"text": "Hi"}}}}
    entries = [
        cx_entry(3, "Tea?", outputAudioText={"ssml": "<speak>No</speak>"}),
        cx_entry(1, "Hi", text={"text": ["Ho"]}),
        {**request, "timestamp": time(0), "labels": {"session_id": "s"}},
    ]
    assert contexts(json_turns(tmp_path, entries)) == TWO_EXCHANGES


def test_dialogflow_es_in_cloud_logging(tmp_path):
    rows = []
    for number, question, answer in ((2, "Tea?", "No"), (1, "Hi", "Ho")):
        speech = f'"Caf\\303\\251: {answer}"'
        text = 'Dialogflow Response : id: "r"\nsession_id: "s"\nresult {\n'
        text += f'  resolved_query: "{question}"\n  fulfillment {{\n'
        text += f"    speech: {speech}\n    messages {{\n      speech {{\n"
        text += f"        string_value: {speech}\n      }}\n    }}\n  }}\n}}"
        rows.append({"textPayload": text, "timestamp": time(number)})
        request = 'Dialogflow Request : {"session":"s"}'
        rows.append({"textPayload": request, "timestamp": time(number)})
    turns = json_turns(tmp_path, rows)
    first, last = "Café: Ho", "Café: No"
    assert contexts(turns) == {first: ["Hi"], last: ["Hi", first, "Tea?"]}


def test_dialogflow_es_newest_first_with_quick_replies(tmp_path):
    rows = []
    for number, question, answer in ((2, "Tea?", "No"), (1, "Hi", "Ho")):
        messages = [
            {"text": {"text": [answer]}},
            {"quickReplies": {"title": "Which?", "quickReplies": ["a"]}},
        ]
        result = {"queryText": question, "fulfillmentMessages": messages}
        about = {"session": "p/sessions/s", "timestamp": time(number)}
        rows.append({**about, "queryResult": result})
    turns = json_turns(tmp_path, rows)
    assert contexts(turns) == {
        "Ho\nWhich?": ["Hi"],
        "No\nWhich?": ["Hi", "Ho\nWhich?", "Tea?"],
    }


# Bot Framework and Copilot Studio


def activity(number, text, **fields):
    """A message of Bot Framework."""
    role = ("user", "bot")[number % 2]
    about = {"type": "message", "id": f"{number}", "timestamp": time(number)}
    about |= {"from": {"id": role, "role": role}, "conversation": {"id": "c"}}
    return {**about, "text": text, **fields}


def test_what_a_bot_only_says_aloud_is_a_reply_and_a_card_is_none(tmp_path):
    hero = {"title": "Sorry", "text": "No", "buttons": [{"title": "Ok"}]}
    rows = by_turns(activity, *SAID[:2], "Tea?", "", "Cake?", "")
    rows[3] |= {"text": "", "attachments": [{"content": hero}]}
    rows[5]["speak"] = "<speak>Yes</speak>"
    assert contexts(json_turns(tmp_path, rows)) == {
        "Ho": ["Hi"],
        "Yes": ["Hi", "Ho", "Tea?", "Cake?"],
    }


# Botpress


def botpress(number, text):
    """A message of Botpress."""
    return {
        "id": f"m{number}",
        "conversationId": "c",
        "createdAt": time(number),
        "direction": ("incoming", "outgoing")[number % 2],
        "payload": {"text": text},
    }


def test_other_messages_of_botpress_than_plain_text(tmp_path):
    messages = by_turns(botpress)
    messages[1]["payload"] = {"markdown": "Ho"}
    item = {"type": "text", "payload": {"text": "No"}}
    messages[3]["payload"] = {"items": [item, {"type": "image"}]}
    turns = json_turns(tmp_path, {"messages": messages[::-1]})
    assert contexts(turns) == TWO_EXCHANGES


def test_messages_and_events_of_botpress_12(tmp_path):
    messages = []
    events = []
    for number, text in enumerate(SAID):
        payload = {"type": "text", "text": text}
        author = None if number % 2 else "u"
        about = {"conversationId": "c", "authorId": author, "sentOn": time(number)}
        messages.append({**about, "payload": payload})
        side = ("incoming", "outgoing")[number % 2]
        event = {"direction": side, "payload": payload, "type": "text"}
        about = {"botId": "b", "threadId": "7", "createdOn": time(number)}
        events.append({**about, "event": json.dumps(event)})
    assert contexts(json_turns(tmp_path, messages)) == TWO_EXCHANGES
    assert contexts(csv_turns(tmp_path, events)) == TWO_EXCHANGES


# Intercom


def part(number, text, kind="", name="", **fields):
    """A part of a conversation of Intercom."""
    kind = kind or ("user", "bot")[number % 2]
    author = {"type": kind, "name": name or ("Mira", "Fin")[number % 2], **fields}
    about = {"part_type": "comment", "created_at": 1709640000 + number}
    return {**about, "body": f"<p>{text}</p>", "author": author}


def intercom(*parts, **fields):
    """A conversation of Intercom."""
    first, *others = parts
    inner = {"conversation_parts": others}
    return {"id": "1", "source": first, "conversation_parts": inner, **fields}


def test_operator_of_intercom_is_a_bot_under_an_account_of_staff(tmp_path):
    email = "operator+x@intercom.io"
    replies = [part(n, SAID[n], "admin", "Operator", email=email) for n in (1, 3)]
    person = part(4, "I am Ann", "admin", "Ann")
    parts = [part(0, "Hi"), replies[0], part(2, "Tea?"), replies[1], person]
    turns = json_turns(tmp_path, [intercom(*parts)])
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"Operator"}


def test_several_people_of_intercom_without_a_bot_are_asked_about(tmp_path):
    people = [part(n, SAID[n], "admin", name) for n, name in ((1, "Ann"), (3, "Ben"))]
    parts = [part(0, "Hi"), people[0], part(2, "Tea?"), people[1]]
    file = file_with(tmp_path, "log.json", [intercom(*parts)])
    with pytest.raises(DataError, match="BOT="):
        read_turns(file)
    turns = read_turns(file, options={"bot": "Ben"})
    assert turns["response"].tolist() == ["No"]


def test_the_rating_of_intercoms_bot_counts_before_that_of_staff(tmp_path):
    ratings = {"ai_agent": {"rating": 2}, "conversation_rating": {"rating": 5}}
    turns = json_turns(tmp_path, [intercom(*by_turns(part), **ratings)])
    assert set(turns["human_rating"]) == {2}


def test_old_conversations_of_intercom_and_a_person_with_the_bots_name(tmp_path):
    parts = by_turns(part, *SAID[:3])
    conversation = intercom(*parts, part(3, "I am Ann", "admin", "Fin"), part(5, "No"))
    conversation["conversation_message"] = conversation.pop("source")
    assert contexts(json_turns(tmp_path, [conversation])) == WITH_STAFF


def test_headings_and_lists_in_html_begin_lines(tmp_path):
    parts = [part(0, "Hi"), part(1, "")]
    parts[1]["body"] = "<h2>Tea</h2>Kinds:<ul><li>green</li><li>black</li></ul>"
    turns = json_turns(tmp_path, [intercom(*parts)])
    assert turns["response"].tolist() == ["Tea\nKinds:\ngreen\nblack"]


def test_notes_in_a_table_of_parts_of_intercom_are_no_talk(tmp_path):
    rows = []
    for number, text in enumerate(SAID):
        about = {"conversation_id": "1", "part_type": "comment"}
        about["author_type"] = ("user", "bot")[number % 2]
        rows.append({**about, "body": text, "created_at": time(number)})
    rows.insert(2, {**rows[1], "part_type": "note", "body": "Psst"})
    assert contexts(csv_turns(tmp_path, rows)) == TWO_EXCHANGES


# Zendesk


def chat_event(number, text, name=""):
    """A message of a chat of Zendesk."""
    about = {"type": "chat.msg", "timestamp": time(number), "msg": text}
    about["sender_type"] = ("Visitor", "Agent")[number % 2]
    return {**about, "name": name or ("Mira", "Answer Bot")[number % 2]}


@pytest.mark.parametrize("wrapped", [dict, lambda chat: [chat]])
def test_a_single_chat_of_zendesk_with_a_person_who_takes_over(tmp_path, wrapped):
    history = [*by_turns(chat_event), chat_event(5, "I am Ann", "Ann")]
    chat = {"id": "1", "type": "chat", "rating": "good", "history": history}
    turns = json_turns(tmp_path, wrapped(chat))
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"Answer Bot"}
    assert set(turns["human_rating"]) == {1}


def test_notes_in_tickets_of_zendesk_whose_flag_is_a_text(tmp_path):
    comments = []
    for number, text in enumerate(SAID):
        about = {"author_id": 1 + number % 2, "created_at": time(number)}
        comments.append({**about, "body": text, "public": "true"})
    comments.insert(2, {**comments[1], "body": "Psst", "public": "false"})
    ticket = {"id": 1, "requester_id": 1, "comments": comments}
    assert contexts(json_turns(tmp_path, [ticket])) == TWO_EXCHANGES


# Twilio


def test_the_table_of_short_messages_of_twilios_console(tmp_path):
    rows = []
    for number, text in enumerate(SAID):
        ends = {"From": "+1", "To": "+9", "Direction": "inbound"}
        if number % 2:
            ends = {"From": "+9", "To": "+1", "Direction": "outbound-api"}
        about = {"Body": text, "Status": "received", "SentDate": time(number)}
        rows.append({**ends, **about, "Sid": f"SM{number}"})
    assert contexts(csv_turns(tmp_path, rows[::-1])) == TWO_EXCHANGES


def test_a_user_of_twilio_who_writes_to_two_numbers_has_two_dialogs(tmp_path):
    messages = []
    for ours in ("+8", "+9"):
        for number, text in enumerate(SAID):
            ends = {"from": "+1", "to": ours, "direction": "inbound"}
            if number % 2:
                ends = {"from": ours, "to": "+1", "direction": "outbound-reply"}
            messages.append(
                {"sid": "S", "body": text, "date_sent": time(number), **ends}
            )
    turns = json_turns(tmp_path, {"messages": messages})
    assert turns["dialog"].nunique() == 2
    assert contexts(turns) == TWO_EXCHANGES


def test_a_bot_of_twilio_by_its_name(tmp_path):
    messages = []
    for number, text in enumerate(SAID):
        about = {
            "conversation_sid": "CH",
            "index": number,
            "date_created": time(number),
        }
        messages.append({**about, "author": ("mira", "bot")[number % 2], "body": text})
    for value in ({"messages": messages}, messages):
        assert contexts(json_turns(tmp_path, value)) == TWO_EXCHANGES


# Amazon


def test_a_payload_for_the_page_of_lex_is_no_word(tmp_path):
    rows = []
    for number, (asked, answer) in enumerate((("Hi", "Ho"), ("Tea?", "No"))):
        messages = [{"contentType": "PlainText", "content": answer}]
        messages.append({"contentType": "CustomPayload", "content": '{"page": 1}'})
        about = {"sessionId": "s", "timestamp": time(number)}
        rows.append({**about, "inputTranscript": asked, "messages": messages})
    assert contexts(json_turns(tmp_path, rows)) == TWO_EXCHANGES


def connect(number, text, **fields):
    """A message of a chat of Amazon Connect."""
    about = {"Type": "MESSAGE", "AbsoluteTime": time(number), "Content": text}
    about["ParticipantRole"] = ("CUSTOMER", "CUSTOM_BOT")[number % 2]
    return {**about, "ContentType": "text/plain", **fields}


@pytest.mark.parametrize(
    "about",
    [
        {"ContactId": "c"},
        {"CustomerMetadata": {"ContactId": "c"}, "Channel": "CHAT"},
        {"InitialContactId": "c"},
    ],
)
def test_chats_of_amazon_connect_with_a_list_to_pick_from(tmp_path, about):
    content = {"title": "No", "elements": [{"title": "Green"}]}
    picker = {"templateType": "ListPicker", "data": {"content": content}}
    messages = by_turns(connect)
    messages[3]["Content"] = json.dumps(picker)
    role = {"ParticipantRole": "SYSTEM", "DisplayName": "SYSTEM_MESSAGE"}
    messages.insert(0, {**messages[0], "Content": "Welcome", **role})
    turns = json_turns(tmp_path, {**about, "Transcript": messages})
    before = {"Ho": ["Welcome", "Hi"], "No": ["Welcome", "Hi", "Ho", "Tea?"]}
    assert contexts(turns) == before
    assert set(turns["dialog"]) == {"c"}


def test_the_system_of_a_call_of_contact_lens_is_the_bot(tmp_path):
    transcript = []
    for number, text in enumerate((*SAID, "I am Ann")):
        speaker = ("CUSTOMER", "SYSTEM")[number % 2] if number < 4 else "AGENT"
        about = {"ParticipantId": speaker, "BeginOffsetMillis": number}
        transcript.append({**about, "Content": text})
    people = [{"ParticipantId": "AGENT", "ParticipantRole": "AGENT"}]
    call = {"Participants": people, "Transcript": transcript}
    assert contexts(json_turns(tmp_path, call)) == TWO_EXCHANGES


# Lists of messages without the page on which a server gives them


def crisp(number, text, **fields):
    """A message of Crisp."""
    about = {"session_id": "s", "fingerprint": number, "timestamp": 1709640000 + number}
    about |= {"type": "text", "content": text, "automated": bool(number % 2)}
    about["user"] = {"nickname": ("Mira", "Hugo")[number % 2]}
    return {**about, "from": ("user", "operator")[number % 2], **fields}


def test_a_list_of_crisp_with_a_person_under_the_bots_name(tmp_path):
    person = crisp(3, "I am Ann", automated=False)
    messages = [*by_turns(crisp, *SAID[:3]), person, crisp(5, "No")]
    messages.insert(2, {**messages[1], "type": "note", "content": "Psst"})
    assert contexts(json_turns(tmp_path, messages)) == WITH_STAFF


def test_a_list_of_hubspot_with_a_person_on_the_bots_side(tmp_path):
    messages = []
    senders = ("V-1", "B-1", "V-1", "A-1", "B-1")
    for number, text in enumerate((*SAID[:3], "I am Ann", "No")):
        sender = senders[number]
        about = {"type": "MESSAGE", "conversationsThreadId": "1", "text": text}
        about["direction"] = "INCOMING" if sender == "V-1" else "OUTGOING"
        about["senders"] = [{"actorId": sender}]
        messages.append({**about, "createdAt": time(number)})
    assert contexts(json_turns(tmp_path, messages)) == WITH_STAFF


def freshchat(number, text):
    """A message of Freshchat."""
    about = {"conversation_id": "c", "message_type": "normal"}
    about |= {"actor_type": ("user", "bot")[number % 2], "created_time": time(number)}
    return {**about, "message_parts": [{"text": {"content": text}}]}


def test_a_list_of_freshchat_with_a_button_that_was_pressed(tmp_path):
    messages = by_turns(freshchat)
    messages[2]["message_parts"] = [{"quick_reply_button": {"label": "Tea?"}}]
    assert contexts(json_turns(tmp_path, messages)) == TWO_EXCHANGES


def test_a_list_of_watson_with_what_a_search_says_it_found(tmp_path):
    logs = []
    for number, (asked, answer) in enumerate((("Hi", "Ho"), ("Tea?", "No"))):
        found = {"response_type": "search", "header": answer, "primary_results": []}
        about = {"session_id": "s", "request_timestamp": time(number)}
        about["request"] = {"input": {"text": asked}}
        logs.append({**about, "response": {"output": {"generic": [found]}}})
    assert contexts(json_turns(tmp_path, logs)) == TWO_EXCHANGES


def test_a_list_of_kore(tmp_path):
    messages = []
    for number, text in enumerate(SAID):
        about = {"sessionId": "s", "type": ("incoming", "outgoing")[number % 2]}
        about["components"] = [{"cT": "text", "data": {"text": text}}]
        messages.append({**about, "createdOn": time(number)})
    assert contexts(json_turns(tmp_path, messages[::-1])) == TWO_EXCHANGES


def test_senders_of_chatwoot_by_their_types_and_what_a_template_says(tmp_path):
    messages = []
    for number, text in enumerate(SAID):
        about = {"inbox_id": 1, "conversation_id": 7, "private": False, "content": text}
        about |= {"message_type": number % 2, "created_at": 1709640000 + number}
        messages.append({**about, "sender_type": ("Contact", "AgentBot")[number % 2]})
    mail = {**messages[1], "message_type": 3, "sender_type": None, "content": "Mail?"}
    messages.insert(2, mail)
    turns = json_turns(tmp_path, {"payload": messages})
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "Mail?", "Tea?"]}


# Others


def test_a_sound_that_voiceflow_plays_is_no_word(tmp_path):
    rows = []
    for number, text in enumerate(SAID):
        payload = {"payload": {"message": text} if number % 2 else text}
        about = {"turnID": "t", "startTime": time(number), "type": "text"}
        about["format"] = ("request", "trace")[number % 2]
        rows.append({**about, "payload": payload})
    sound = {"type": "audio", "message": '<audio src="a.mp3"/>'}
    rows.insert(2, {**rows[1], "type": "speak", "payload": {"payload": sound}})
    assert contexts(json_turns(tmp_path, rows)) == TWO_EXCHANGES


def test_an_author_who_is_named_by_a_type_only(tmp_path):
    messages = []
    for number, text in enumerate(SAID):
        author = {"type": ("contact", "bot")[number % 2]}
        messages.append({"message": text, "author": author, "created_at": time(number)})
    turns = json_turns(tmp_path, {"messages": messages})
    assert contexts(turns) == TWO_EXCHANGES


def test_a_report_of_vapi_and_a_call_of_retell_with_its_tools(tmp_path):
    vapi = []
    retell = []
    for number, text in enumerate(SAID):
        role = ("user", "bot")[number % 2]
        vapi.append({"role": role, "message": text, "secondsFromStart": number})
        retell.append({"role": role.replace("bot", "agent"), "content": text})
    retell.insert(1, {"role": "tool_call_invocation", "name": "find"})
    report = {"call": {"id": "c", "assistantId": "v2"}, "artifact": {"messages": vapi}}
    call = {"call_id": "c", "agent_id": "v2", "transcript_with_tool_calls": retell}
    for value in ({"message": {"type": "end-of-call-report", **report}}, [call]):
        turns = json_turns(tmp_path, value)
        assert contexts(turns) == TWO_EXCHANGES
        assert set(turns["dialog"]) == {"c"}
        assert set(turns["system"]) == {"v2"}


def test_the_rating_of_a_talk_with_elevenlabs(tmp_path):
    transcript = []
    for number, text in enumerate(SAID):
        role = ("user", "agent")[number % 2]
        about = {"role": role, "time_in_call_secs": number}
        transcript.append({**about, "message": text})
    about = {"conversation_id": "c", "metadata": {"feedback": {"rating": 4}}}
    turns = json_turns(tmp_path, {**about, "transcript": transcript})
    assert set(turns["human_rating"]) == {4}


def test_drafts_at_front_are_no_replies(tmp_path):
    messages = []
    for number, text in enumerate(SAID):
        about = {"is_inbound": number % 2 == 0, "created_at": 1709640000 + number}
        messages.append({**about, "text": text, "is_draft": False})
    messages.insert(2, {**messages[1], "text": "Draft", "is_draft": True})
    assert contexts(json_turns(tmp_path, {"_results": messages})) == TWO_EXCHANGES


def test_an_answer_of_dialogflow_without_words_is_an_empty_reply(tmp_path):
    rows = []
    empty = [{"text": {"text": [""]}}]
    chips = [*empty, {"payload": {"richContent": []}}]
    for words, messages in (("Hi", empty), ("Tea?", chips), ("Milk?", None)):
        result = {"queryText": words, "fulfillmentText": "" if messages else "No"}
        result["fulfillmentMessages"] = messages or []
        session = "projects/p/agent/sessions/s"
        rows.append({"responseId": "r", "session": session, "queryResult": result})
    turns = json_turns(tmp_path, rows)
    assert turns["response"].tolist() == ["", "No"]
    assert turns["context"].tolist() == [["Hi"], ["Hi", "Tea?", "Milk?"]]


def test_words_that_a_button_of_rasa_sends_stay(tmp_path):
    buttons = [
        {"title": "Menu", "payload": "/menu"},
        {"title": "Open?", "payload": "When?"},
    ]
    events = []
    said = [
        ("bot", "Ho"),
        ("user", "When?"),
        ("bot", "At 9"),
        ("user", "/menu"),
        ("bot", "No"),
    ]
    for number, (kind, text) in enumerate(said):
        event = {"event": kind, "text": text, "timestamp": number + 1.0}
        events.append(event | ({"data": {"buttons": buttons}} if text == "Ho" else {}))
    turns = json_turns(tmp_path, {"sender_id": "s", "events": events})
    assert contexts(turns)["No"] == ["Ho", "When?", "At 9", "Menu"]
