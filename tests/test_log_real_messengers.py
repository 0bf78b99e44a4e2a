"""What real exports of messengers and of platforms for bots hold, beside the plainest messages."""

import json

import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, read_turns

SAID = ("Hi", "Ho", "Tea?", "No")  # by user and bot in turn


def text_turns(folder, name, text, bot="Ada"):
    """The turns in a file with this text."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return read_turns(file, options={"bot": bot})


def json_turns(folder, value, **options):
    """The turns in a file with this value."""
    return read_turns(file_with(folder, "log.json", value), options=options)


def lines(form):
    """The talk in lines of this form, with who speaks, the words and a minute."""
    names = ("Mira", "Ada")
    return [form.format(names[n % 2], words, n) for n, words in enumerate(SAID)]


# WhatsApp


@pytest.mark.parametrize(
    "form",
    [
        "5.3.2024 klo 10.0{2} - {0}: {1}",
        "05/03/2024 à 10:0{2} - {0}: {1}",
        "5.03.24 г., 10:0{2} - {0}: {1}",
        "5/3/2024 10:0{2} π.μ. - {0}: {1}",
        "٥\u200f/٣\u200f/٢٠٢٤، ١٠:٠{2} ص - {0}: {1}",
        "\u200f[\u200f5\u200f/3\u200f/2024، 10:00:0{2}] {0}: {1}",
        "[5/3/2567 BE, 10:00:0{2}] {0}: {1}",
    ],
)
def test_whatsapp_dates_of_several_languages(tmp_path, form):
    turns = text_turns(tmp_path, "chat.txt", "\n".join(lines(form)))
    assert contexts(turns) == TWO_EXCHANGES


def test_whatsapp_names_have_no_marks_of_direction_and_no_tilde(tmp_path):
    text = "\n".join(lines("[05.03.24, 10:00:0{2}] {0}: {1}"))
    text = text.replace("Ada", "~\u202fAda").replace(
        "Mira", "\u202a+49 170 1234567\u202c"
    )
    assert contexts(text_turns(tmp_path, "chat.txt", text)) == TWO_EXCHANGES
    turns = text_turns(tmp_path, "chat.txt", text, bot="+49 170 1234567")
    assert turns["response"].tolist() == ["Hi", "Tea?"]


def test_what_ios_writes_behind_words_sent_with_a_file_is_no_talk(tmp_path):
    text = "\n".join(lines("[05.03.24, 10:00:0{2}] {0}: {1}"))
    text = text.replace("Hi", "Hi \u200eimage omitted")
    text = text.replace("Tea?", "Tea? \u200e<attached: 0001-PHOTO.jpg>")
    assert contexts(text_turns(tmp_path, "chat.txt", text)) == TWO_EXCHANGES


def test_whatsapp_in_vietnamese_has_the_time_first(tmp_path):
    talk = lines("[10:00:0{2}, 5/3/24] {0}: {1}")
    talk.insert(1, "\u200e[10:00:00, 5/3/24] Ada: \u200eđã bỏ video")
    turns = text_turns(tmp_path, "chat.txt", "\n".join(talk))
    assert contexts(turns) == TWO_EXCHANGES


def test_files_of_ios_without_words_are_no_talk(tmp_path):
    talk = lines("[05.03.24, 10:00:0{2}] {0}: {1}")
    talk.insert(
        1, "[05.03.24, 10:00:00] Mira: my list.txt \u200eドキュメントは含まれていません"
    )
    talk.insert(
        2, "[05.03.24, 10:00:00] Ada: menu.pdf • \u200e2 pages \u200edocument omitted"
    )
    turns = text_turns(tmp_path, "chat.txt", "\n".join(talk))
    assert contexts(turns) == TWO_EXCHANGES


@pytest.mark.parametrize("file", ["<Media omitted>", "\u200eIMG-1.jpg (file attached)"])
def test_words_below_a_file_of_android_are_talk(tmp_path, file):
    text = "\n".join(lines("5/3/24, 10:0{2} - {0}: {1}"))
    text = text.replace("Tea?", f"{file}\nTea?")
    assert contexts(text_turns(tmp_path, "chat.txt", text)) == TWO_EXCHANGES


def test_cards_and_places_of_whatsapp_are_no_words(tmp_path):
    talk = lines("5/3/24, 10:0{2} - {0}: {1}")
    talk.insert(1, "5/3/24, 10:00 - Mira: Ben Berg.vcf (file attached)")
    talk.insert(2, "5/3/24, 10:00 - Ada: locatie: https://maps.google.com/?q=1,2")
    talk.insert(3, "5/3/24, 10:00 - Ada: IMG-1.jpg (bestand bijgevoegd)")
    turns = text_turns(tmp_path, "chat.txt", "\n".join(talk))
    assert contexts(turns) == TWO_EXCHANGES


# Messengers


def test_a_bot_of_telegram_whose_account_is_gone(tmp_path):
    names = {"user5": "Mira", "user77": None}
    messages = []
    for n, words in enumerate(SAID):
        sender = ("user5", "user77")[n % 2]
        about = {"type": "message", "date": f"2024-03-05T10:00:0{n}", "from_id": sender}
        messages.append(about | {"id": n, "from": names[sender], "text": words})
    chat = {"name": None, "type": "bot_chat", "id": 77, "messages": messages}
    assert contexts(json_turns(tmp_path, chat)) == TWO_EXCHANGES


def slack(*messages):
    """A day of a channel of Slack, by user and bot in turn."""
    rows = []
    for n, message in enumerate(messages):
        account = {"user": "U1"} if n % 2 == 0 else {"user": "UB", "bot_id": "B1"}
        rows.append({"type": "message", "ts": f"170964000{n}.1", **account, **message})
    return rows


def test_words_of_slack_in_blocks_and_attachments(tmp_path):
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "Ho"}}
    rows = slack(
        {"text": "Hi"},
        {"text": "", "blocks": [section, {"type": "divider"}]},
        {"text": "Tea?"},
        {"text": "", "attachments": [{"fallback": "No tea", "text": "No"}]},
    )
    assert contexts(json_turns(tmp_path, rows)) == TWO_EXCHANGES


def test_marks_of_slack_read_as_people_see_them(tmp_path):
    text = "<!here> see <#C1|cake> or ask <mailto:ben@b.example|Ben> <!subteam^S1|@all>"
    turns = json_turns(tmp_path, slack({"text": text}, {"text": "Ho"}))
    assert contexts(turns) == {"Ho": ["@here see #cake or ask Ben @all"]}


def test_talk_beside_files_and_about_oneself_on_slack(tmp_path):
    rows = slack(
        {"text": "Hi", "subtype": "file_share"},
        {"text": "Ho"},
        {"text": "Tea?", "subtype": "me_message"},
        {"text": "No"},
        {
            "text": "<@U1|mira> uploaded a file: <https://x.example|x>",
            "subtype": "file_share",
        },
        {"text": "Bye"},
    )
    expected = TWO_EXCHANGES | {"Bye": [*SAID]}
    assert contexts(json_turns(tmp_path, rows)) == expected


def discord(*messages):
    """Messages as Discord's interface gives them, by user and bot in turn, newest first."""
    accounts = (
        {"id": "8", "username": "mira"},
        {"id": "9", "username": "ada", "bot": True},
    )
    rows = []
    for n, message in enumerate(messages):
        about = {
            "id": f"{n}",
            "type": 0,
            "channel_id": "1",
            "author": accounts[n % 2],
            "embeds": [],
        }
        rows.append(
            about
            | {"timestamp": f"2024-03-05T10:00:0{n}+00:00", "content": ""}
            | message
        )
    return rows[::-1]


def test_messages_of_discords_interface(tmp_path):
    rows = discord(
        {"content": "Hi"},
        {"content": "Ho", "embeds": [{"description": "Tea"}]},
        {"content": "Tea?"},
        {"content": "No"},
    )
    rows.insert(0, {**rows[0], "id": "9", "type": 7, "content": "joined"})
    assert contexts(json_turns(tmp_path, rows)) == TWO_EXCHANGES


def test_mentions_on_discord_are_names(tmp_path):
    ada = {"id": "9", "username": "ada", "global_name": "Ada"}
    rows = discord({"content": "<@9> hi", "mentions": [ada]}, {"content": "Ho"})
    assert contexts(json_turns(tmp_path, rows)) == {"Ho": ["@Ada hi"]}


def test_a_data_package_of_discord_has_no_replies(tmp_path):
    rows = [
        {
            "ID": n,
            "Timestamp": "2024-03-05 10:00:00",
            "Contents": "Hi",
            "Attachments": "",
        }
        for n in range(2)
    ]
    with pytest.raises(DataError, match="what one account wrote"):
        json_turns(tmp_path, rows)


@pytest.mark.parametrize("time", ["3/5/2024 10:0{2}\u202fAM", "05-Mar-24 10:0{2} AM"])
def test_times_of_discord_as_text(tmp_path, time):
    rule = "=" * 62
    text = f"{rule}\nGuild: Tea\nChannel: general\n{rule}\n\n"
    text += "\n".join(lines(f"[{time}] {{0}}\n{{1}}\n"))
    assert contexts(text_turns(tmp_path, "chat.txt", text)) == TWO_EXCHANGES


def test_encrypted_chats_of_messenger(tmp_path):
    messages = []
    for n, words in enumerate(SAID):
        about = {"senderName": ("Mira", "Ada")[n % 2], "text": words, "type": "text"}
        messages.append(about | {"timestamp": 1709640000000 + n, "isUnsent": False})
    gone = {**messages[0], "text": "Oops", "isUnsent": True}
    notice = {**messages[0], "text": "User unsent a message", "type": "placeholder"}
    chat = {
        "participants": ["Ada", "Mira"],
        "threadName": "Ada_1",
        "messages": [notice, gone, *messages],
    }
    assert contexts(json_turns(tmp_path, chat, bot="Ada")) == TWO_EXCHANGES


def test_notices_of_messenger_by_their_types_and_in_other_languages(tmp_path):
    texts = [
        ("Mira", "Hi", "Generic"),
        ("Mira", "Mira hat einen Anhang gesendet.", "Share"),
        ("Ada", "Ho", "Generic"),
        ("Ada", "The call was short", "Call"),
        ("Mira", "Reaccionó con + a tu mensaje ", "Generic"),
        ("Mira", "Tea?", "Generic"),
        ("Ada", "No", "Generic"),
    ]
    messages = []
    for n, (name, words, kind) in enumerate(texts):
        about = {"sender_name": name, "content": words, "type": kind}
        messages.append(about | {"timestamp_ms": 1709640000000 + n})
    chat = {"participants": [{"name": "Ada"}, {"name": "Mira"}], "messages": messages}
    assert contexts(json_turns(tmp_path, chat, bot="Ada")) == TWO_EXCHANGES


def test_a_message_of_signal_that_was_deleted_for_everyone(tmp_path):
    messages = []
    for n, words in enumerate(SAID):
        kind = ("outgoing", "incoming")[n % 2]
        about = {"conversationId": "c", "sent_at": 1709640000000 + n, "type": kind}
        messages.append(about | {"body": words})
    messages.append({**messages[1], "body": "Oops", "deletedForEveryone": True})
    turns = json_turns(tmp_path, {"messages": messages}, bot="incoming")
    assert contexts(turns) == TWO_EXCHANGES


def matrix(name):
    """A room of Matrix, newest first, whose messages stand in a field of this name."""
    events = []
    for n, words in enumerate(SAID):
        kind = ("m.text", "m.notice")[n % 2]
        about = {"type": "m.room.message", "event_id": f"${n}", "room_id": "!r"}
        about["origin_server_ts"] = 1709640000000 + n
        content = {"msgtype": kind, "body": words}
        events.append(about | {"sender": ("@m", "@a")[n % 2], "content": content})
    events[2]["content"] = {"msgtype": "m.image", "filename": "t.png", "body": "Tea?"}
    return {name: events[::-1]}


def test_messages_of_matrix_and_words_beside_a_picture(tmp_path):
    assert contexts(json_turns(tmp_path, matrix("messages"))) == TWO_EXCHANGES
    assert contexts(json_turns(tmp_path, matrix("chunk"))) == TWO_EXCHANGES


# Text of clients


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("Mar 05 09:59:59 *\tNow talking on #tea", "Mar 05 10:00:0{2} <{0}>\t{1}"),
        ("[LINE] Chat\n\nTue, 03/05/2024", "10:0{2} AM\t{0}\t{1}"),
        ("[LINE] Chat\n\n2024/03/05", "上午10:0{2}\t{0}\t{1}"),
        ("", "10:00:0{2}\t From  {0} : {1}"),
        ("", "00:00:0{2}\t{0}:\t{1}"),
        ("", "2024-03-05 10:00:0{2} From {0} to Everyone:\n\t{1}"),
    ],
)
def test_lines_of_hexchat_line_and_zoom(tmp_path, header, form):
    text = "\n".join([header, *lines(form)]).strip("\n")
    assert contexts(text_turns(tmp_path, "chat.txt", text)) == TWO_EXCHANGES


@pytest.mark.parametrize("form", ["<v {0}>{1}</v>", "{0}: {1}"])
def test_two_speakers_in_one_cue(tmp_path, form):
    said = lines(form)
    cues = ["\n".join(said[:2]), *said[2:]]
    text = "WEBVTT\n"
    for n, cue in enumerate(cues):
        text += f"\n00:00:0{n}.000 --> 00:00:0{n + 1}.000\n{cue}\n"
    assert contexts(text_turns(tmp_path, "talk.vtt", text)) == TWO_EXCHANGES


# Platforms


def rasa_events():
    """Rasa's events of one talk, with a button that was pressed and triggers that nobody said."""
    payload = '/choose{"what": "tea"}'
    texts = [
        ("user", "/session_start"),
        ("user", "Hi"),
        ("bot", "Ho"),
        ("user", payload),
        ("user", "EXTERNAL: EXTERNAL_reminder"),
        ("bot", "No"),
    ]
    events = []
    for n, (kind, text) in enumerate(texts):
        events.append({"event": kind, "timestamp": 1709640000 + n, "text": text})
    events[2]["data"] = {"buttons": [{"title": "Tea?", "payload": payload}]}
    return events


def test_buttons_and_triggers_of_rasa(tmp_path):
    tracker = {"sender_id": "s", "events": rasa_events()}
    assert contexts(json_turns(tmp_path, tracker)) == TWO_EXCHANGES


def test_events_of_rasa_x_name_the_conversation(tmp_path):
    rows = [
        {"conversation_id": "s", "type_name": e["event"], "data": json.dumps(e)}
        for e in rasa_events()
    ]
    assert contexts(json_turns(tmp_path, rows)) == TWO_EXCHANGES


def cx(number, query, text, **result):
    """An interaction of Dialogflow CX."""
    said = [{"text": {"text": [text]}}]
    return {
        "createTime": f"2024-03-05T10:00:0{number}Z",
        "request": {"queryInput": query},
        "response": {"queryResult": {**result, "responseMessages": said}},
    }


def test_speech_parts_and_opinions_of_dialogflow_cx(tmp_path):
    spoken = cx(1, {"audio": {}}, "Ho", transcript="Hi")
    spoken["answerFeedback"] = {"rating": "THUMBS_UP"}
    typed = cx(2, {"text": {"text": "Tea?"}}, "No")
    first = {"queryResult": {"responseMessages": [{"text": {"text": ["Wait"]}}]}}
    typed["partialResponses"] = [first]
    turns = json_turns(tmp_path, {"name": "c", "interactions": [spoken, typed]})
    assert contexts(turns) == {"Ho": ["Hi"], "Wait\nNo": ["Hi", "Ho", "Tea?"]}
    assert turns["human_feedback"].tolist()[0] == 1


def test_an_answer_of_dialogflow_es_is_that_of_one_platform(tmp_path):
    on_google = {"simpleResponses": {"simpleResponses": [{"textToSpeech": "No"}]}}
    messages = [
        [
            {"text": {"text": ["Ho"]}},
            {"text": {"text": ["Ho!"]}, "platform": "FACEBOOK"},
        ],
        [{**on_google, "platform": "ACTIONS_ON_GOOGLE"}],
    ]
    rows = []
    for question, answer in zip(("Hi", "Tea?"), messages, strict=True):
        result = {"queryText": question, "fulfillmentMessages": answer}
        rows.append({"session": "p/sessions/s", "queryResult": result})
    assert contexts(json_turns(tmp_path, rows)) == TWO_EXCHANGES


def activities(*messages):
    """Messages of Bot Framework, by user and bot in turn."""
    rows = []
    for n, message in enumerate(messages):
        role = ("user", "bot")[n % 2]
        about = {"type": "message", "id": f"{n}", "from": {"id": role, "role": role}}
        rows.append(about | {"conversation": {"id": "c"}} | message)
    return rows


def test_a_rating_of_intercoms_bot(tmp_path):
    user, bot = {"type": "user", "name": "Mira"}, {"type": "bot", "name": "Fin"}
    part = {"part_type": "comment", "body": "<p>Ho</p>", "author": bot}
    conversation = {
        "id": "1",
        "source": {"body": "<p>Hi</p>", "author": user},
        "conversation_parts": {"conversation_parts": [part]},
        "ai_agent": {"rating": 4},
    }
    turns = json_turns(tmp_path, conversation)
    assert turns["human_rating"].tolist() == [4]


def test_short_messages_of_twilio_are_a_dialog_per_user(tmp_path):
    messages = []
    for n, words in enumerate(SAID):
        for number in ("+1", "+2"):
            ends = {"from": number, "to": "+9", "direction": "inbound"}
            if n % 2:
                ends = {"from": "+9", "to": number, "direction": "outbound-reply"}
            sent = f"2024-03-05T10:00:0{n}Z"
            messages.append({"sid": "S", "body": words, "date_sent": sent, **ends})
    messages.append({**messages[-1], "body": "Lost", "status": "undelivered"})
    turns = json_turns(tmp_path, {"messages": messages})
    assert turns["dialog"].nunique() == 2
    assert contexts(turns) == TWO_EXCHANGES


def test_events_of_lex_as_a_table_of_insights(tmp_path):
    rows = ["@timestamp,@message"]
    for n, (asked, answer) in enumerate((("Hi", "Ho"), ("Tea?", "No"))):
        event = {"sessionId": "s", "inputTranscript": asked, "botVersion": "3"}
        event |= {"messages": [{"content": answer}]}
        cell = json.dumps(event).replace('"', '""')
        rows.insert(1, f'2024-03-05 10:00:0{n},"{cell}"')  # newest first
    file = tmp_path / "lex.csv"
    file.write_text("\n".join(rows), encoding="utf-8")
    turns = read_turns(file)
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"3"}


def test_texts_of_watson_beside_generic_ones(tmp_path):
    answers = [
        {"text": ["Ho"]},
        {"generic": [{"response_type": "conversational_search", "text": "No"}]},
    ]
    logs = []
    for n, (asked, answer) in enumerate(zip(("Hi", "Tea?"), answers, strict=True)):
        request = {"input": {"text": asked}}
        about = {"session_id": "c", "request_timestamp": f"2024-03-05T10:00:0{n}Z"}
        logs.append(about | {"request": request, "response": {"output": answer}})
    assert contexts(json_turns(tmp_path, {"logs": logs})) == TWO_EXCHANGES


def test_what_a_user_typed_to_voiceflow_is_the_users(tmp_path):
    rows = []
    for n, words in enumerate(SAID):
        payload = words if n % 2 == 0 else {"message": words}
        about = {
            "turnID": f"{n}",
            "type": "text",
            "startTime": f"2024-03-05T10:00:0{n}Z",
        }
        about["format"] = ("request", "trace")[n % 2]
        rows.append(about | {"payload": {"type": "text", "payload": payload}})
    rows.append({**rows[3], "type": "debug", "startTime": "2024-03-05T10:01:00Z"})
    assert contexts(json_turns(tmp_path, rows)) == TWO_EXCHANGES


def test_captain_of_chatwoot_is_a_bot(tmp_path):
    senders = ({"type": "contact"}, {"type": "captain_assistant", "name": "Captain"})
    payload = []
    for n, words in enumerate(SAID):
        about = {
            "content": words,
            "inbox_id": 1,
            "conversation_id": 7,
            "private": False,
        }
        about |= {"created_at": 1709640000 + n, "message_type": n % 2}
        payload.append(about | {"sender": senders[n % 2]})
    assert contexts(json_turns(tmp_path, {"payload": payload})) == TWO_EXCHANGES


def live_chat():
    """A chat of LiveChat with a whisper among agents and the rating of a customer."""
    events = []
    for n, words in enumerate(SAID):
        about = {"type": "message", "text": words, "author_id": ("m", "a")[n % 2]}
        about["created_at"] = f"2024-03-05T10:00:0{n}Z"
        events.append(about | {"visibility": "all"})
    events.insert(2, {**events[1], "text": "Psst", "visibility": "agents"})
    users = [
        {"id": "m", "type": "customer"},
        {"id": "a", "type": "agent", "name": "Bot"},
    ]
    rating = {"rating": {"score": {"value": 1}}}
    thread = {"id": "t", "properties": rating, "events": events}
    return {"id": "c", "users": users, "thread": thread}


def test_whispers_and_ratings_of_livechat(tmp_path):
    for chat in (live_chat(), {"chats": [live_chat()]}):
        turns = json_turns(tmp_path, chat)
        assert contexts(turns) == TWO_EXCHANGES
        assert turns["human_rating"].dropna().unique().tolist() == [1]


def test_calls_of_vapi_retell_and_elevenlabs_in_other_shapes(tmp_path):
    vapi = [{"role": "system", "message": "Be Ada", "secondsFromStart": 0}]
    retell = []
    eleven = []
    for n, words in enumerate(SAID):
        role = ("user", "bot")[n % 2]
        vapi.append({"role": role, "message": words, "secondsFromStart": n + 1})
        role = role.replace("bot", "agent")
        retell.append({"role": role, "content": words})
        eleven.append({"role": role, "message": words, "time_in_call_secs": n})
    retell.insert(1, {"role": "tool_call_invocation", "content": "look up"})
    eleven[3]["feedback"] = {"score": "like"}
    calls = [
        {"id": "c", "assistantId": "v2", "messages": vapi},
        {"chat_id": "c", "agent_id": "v2", "message_with_tool_calls": retell},
        {"conversation_id": "c", "agent_id": "v2", "transcript": eleven},
    ]
    for call in calls:
        turns = json_turns(tmp_path, [call])
        assert contexts(turns) == TWO_EXCHANGES
        assert set(turns["system"]) == {"v2"}
    assert turns["human_feedback"].tolist()[-1] == 1
