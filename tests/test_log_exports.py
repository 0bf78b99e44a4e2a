"""Exports of assistants, messengers and platforms: branches, models, what nobody said."""

import json

import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, import_report, read_turns


def asked(text, **fields):
    return {"role": "user", "content": text, **fields}


def said(text, **fields):
    return {"role": "assistant", "content": text, **fields}


def request(number, messages, reply):
    """A trace of Langfuse in one session."""
    about = {"id": str(number), "timestamp": f"2025-01-01T10:0{number}:00Z"}
    about |= {"name": "chat", "sessionId": "s", "tags": [], "userId": "u"}
    return {**about, "input": {"messages": messages}, "output": said(reply)}


def test_a_reply_before_two_branches_of_a_thread_is_counted_once(tmp_path):
    before = [asked("Hi"), said("Ho")]
    rows = [
        request(1, [asked("Hi")], "Ho"),
        request(2, [*before, asked("Tea?")], "No"),
        request(3, [*before, asked("Cake?")], "Yes"),
        request(4, [*before, asked("Cake?"), said("Yes"), asked("So?")], "Well"),
    ]
    turns = read_turns(file_with(tmp_path, "traces.json", rows))
    assert sorted(turns["response"]) == ["Ho", "No", "Well", "Yes"]
    assert contexts(turns)["No"] == ["Hi", "Ho", "Tea?"]
    assert contexts(turns)["Yes"] == ["Hi", "Ho", "Cake?"]


def windows():
    """Messages and replies of five requests, each with the last five messages of one talk."""
    talk = []
    requests = []
    for number in range(5):
        talk.append(asked(f"question {number}"))
        requests.append((talk[-5:], f"answer {number}"))
        talk.append(said(f"answer {number}"))
    return requests


def test_requests_with_the_last_messages_of_a_thread_are_one_dialog(tmp_path):
    rows = [request(n, *both) for n, both in enumerate(windows())]
    rows = [rows[3], rows[0], rows[4], rows[2], rows[1]]
    turns = read_turns(file_with(tmp_path, "traces.json", rows))
    assert turns["response"].tolist() == [f"answer {number}" for number in range(5)]
    assert turns["context"].map(len).tolist() == [1, 3, 5, 7, 9]


def test_records_with_the_last_messages_of_a_dialog_are_refused(tmp_path):
    rows = [{"messages": [*messages, said(reply)]} for messages, reply in windows()]
    with pytest.raises(
        DataError, match="begin with the last messages of the one before"
    ):
        read_turns(file_with(tmp_path, "log.jsonl", rows))


def test_responses_that_go_on_from_the_same_one_have_it_once(tmp_path):
    rows = []
    for name, previous, words, reply in (
        ("r1", None, "Hi", "Ho"),
        ("r2", "r1", "Tea?", "No"),
        ("r3", "r1", "Cake?", "Yes"),
    ):
        text = {"type": "output_text", "text": reply}
        output = [{"type": "message", "role": "assistant", "content": [text]}]
        row = {"id": name, "object": "response", "model": "m", "input": words}
        rows.append({**row, "previous_response_id": previous, "output": output})
    turns = read_turns(file_with(tmp_path, "responses.jsonl", rows))
    assert sorted(turns["response"]) == ["Ho", "No", "Yes"]


def otel_text(key, value):
    return {"key": key, "value": {"stringValue": value}}


def test_messages_in_an_event_of_a_span_are_read(tmp_path):
    parts = [{"type": "text", "content": "Hi"}]
    reply = [{"type": "text", "content": "Ho"}]
    messages = [
        otel_text(
            "gen_ai.input.messages", json.dumps([{"role": "user", "parts": parts}])
        ),
        otel_text(
            "gen_ai.output.messages",
            json.dumps([{"role": "assistant", "parts": reply}]),
        ),
    ]
    name = "gen_ai.client.inference.operation.details"
    span = {
        "traceId": "t",
        "startTimeUnixNano": "1758400000000000000",
        "attributes": [otel_text("gen_ai.response.model", "m1")],
        "events": [{"name": name, "attributes": messages}],
    }
    other = {"traceId": "t", "attributes": [otel_text("gen_ai.tool.name", "x")]}
    spans = [{"scopeSpans": [{"spans": [span, other]}]}]
    turns = read_turns(file_with(tmp_path, "spans.json", {"resourceSpans": spans}))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert turns["system"].tolist() == ["m1"]
    assert "1 are spans of other things than models" in str(import_report(turns).values)


def test_messages_of_type_text_are_a_dialog(tmp_path):
    plain = [asked("Hi", type="text"), said("Ho", type="text")]
    with_call = [
        asked("Tea?", type="text"),
        said(None, type="tool-call"),
        said("No", type="text"),
    ]
    value = {
        "data": [{"id": "a", "messages": plain}, {"id": "b", "messages": with_call}]
    }
    turns = read_turns(file_with(tmp_path, "chats.json", value))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def open_webui(chat, messages, *, rated, rating, updated):
    """Feedback of Open WebUI with the chat as it then was."""
    history = {"messages": messages, "currentId": list(messages)[-1]}
    chat = {"id": chat, "chat": {"history": history}}
    return {
        "meta": {"message_id": rated, "chat_id": chat["id"]},
        "data": {"rating": rating},
        "snapshot": {"chat": chat},
        "updated_at": updated,
    }


def nodes(*texts):
    """Messages of a chat of Open WebUI, one after the other."""
    messages = {}
    for number, text in enumerate(texts, start=1):
        role = "user" if number % 2 else "assistant"
        parent = str(number - 1) if number > 1 else None
        messages[str(number)] = {"parentId": parent, "role": role, "content": text}
    return messages


def test_two_ratings_in_a_chat_of_open_webui_are_of_one_dialog(tmp_path):
    texts = ["Hi", "Ho", "Tea?", "No"]
    rows = [
        open_webui("c", nodes(*texts), rated="4", rating=-1, updated=2),
        open_webui("c", nodes(*texts[:2]), rated="2", rating=1, updated=1),
        {"meta": {"message_id": "9"}, "data": {"rating": 1}, "snapshot": None},
    ]
    turns = read_turns(file_with(tmp_path, "feedback.json", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert turns["human_rating"].tolist() == [1, -1]
    assert "1 are ratings without the chat" in str(import_report(turns).values)


def test_a_rated_reply_on_a_left_branch_of_open_webui_is_read(tmp_path):
    messages = {"2b": {"parentId": "1", "role": "assistant", "content": "Hm"}}
    messages = messages | nodes("Hi", "Ho", "Tea?", "No")
    row = open_webui("c", messages, rated="2b", rating=-1, updated=1)
    turns = read_turns(file_with(tmp_path, "feedback.json", [row]))
    assert contexts(turns) == TWO_EXCHANGES | {"Hm": ["Hi"]}
    assert turns["human_rating"].dropna().tolist() == [-1]


def test_a_rating_on_a_left_branch_of_an_export_of_open_webui_is_kept(tmp_path):
    left = {"parentId": "1", "role": "assistant", "content": "Hm"}
    messages = {"2b": left | {"annotation": {"rating": -1}}, **nodes("Hi", "Ho")}
    history = {"messages": messages, "currentId": "2"}
    file = file_with(
        tmp_path, "chats.json", [{"id": "c", "chat": {"history": history}}]
    )
    turns = read_turns(file)
    assert contexts(turns) == {"Ho": ["Hi"], "Hm": ["Hi"]}
    assert turns.set_index("response").loc["Hm", "human_rating"] == -1


@pytest.mark.parametrize(
    "record",
    [
        {
            "messages": [
                asked("Hi"),
                said("Ho", modelId="m1"),
                asked("So?"),
                said("No", modelId="m2"),
            ]
        },
        {
            "requesterUsername": "u",
            "responderUsername": "b",
            "requests": [
                {
                    "message": {"text": "Hi"},
                    "response": [{"value": "Ho"}],
                    "modelId": "m1",
                },
                {
                    "message": {"text": "So?"},
                    "response": [{"value": "No"}],
                    "modelId": "m2",
                },
            ],
        },
        {
            "exportType": "agents",
            "state": {
                "messages": [
                    asked("Hi", sessionId="s"),
                    said("Ho", sessionId="s", extra={"fromModel": "m1"}),
                    asked("So?", sessionId="s"),
                    said("No", sessionId="s", extra={"fromModel": "m2"}),
                ]
            },
        },
        {
            "messages": [
                {
                    "versions": [
                        {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
                    ]
                },
                {
                    "versions": [
                        {
                            "role": "assistant",
                            "senderInfo": {"senderName": "m1"},
                            "steps": [{"content": [{"type": "text", "text": "Ho"}]}],
                        }
                    ]
                },
                {
                    "versions": [
                        {"role": "user", "content": [{"type": "text", "text": "So?"}]}
                    ]
                },
                {
                    "versions": [
                        {
                            "role": "assistant",
                            "senderInfo": {"senderName": "m2"},
                            "steps": [{"content": [{"type": "text", "text": "No"}]}],
                        }
                    ]
                },
            ]
        },
    ],
    ids=["modelId", "VS Code", "LobeChat", "LM Studio"],
)
def test_models_within_a_dialog_are_systems(record, tmp_path):
    turns = read_turns(file_with(tmp_path, "chat.json", record))
    assert turns[["system", "response"]].values.tolist() == [["m1", "Ho"], ["m2", "No"]]


def test_an_answer_that_dify_generated_again_is_no_context_of_the_other(tmp_path):
    root = "00000000-0000-0000-0000-000000000000"
    data = [
        {"id": "1", "parent_message_id": root, "query": "Hi", "answer": "Hm"},
        {"id": "2", "parent_message_id": root, "query": "Hi", "answer": "Ho"},
        {"id": "3", "parent_message_id": "2", "query": "Tea?", "answer": "No"},
    ]
    data = [
        row | {"conversation_id": "c", "created_at": n} for n, row in enumerate(data)
    ]
    turns = read_turns(file_with(tmp_path, "dify.json", {"data": data}))
    assert contexts(turns) == TWO_EXCHANGES | {"Hm": ["Hi"]}


def test_reasoning_in_a_block_of_llamaindex_is_no_talk(tmp_path):
    def block(kind, text):
        key = "content" if kind == "thinking" else "text"
        return {"block_type": kind, key: text}

    messages = [
        {"role": "user", "blocks": [block("text", "Hi")]},
        {
            "role": "assistant",
            "blocks": [block("thinking", "Hm."), block("text", "Ho")],
        },
    ]
    store = {"store": {"a": messages, "b": messages}, "class_name": "SimpleChatStore"}
    turns = read_turns(file_with(tmp_path, "store.json", store))
    assert set(turns["response"]) == {"Ho"}


def test_what_only_the_model_sees_is_no_talk(tmp_path):
    hidden = {"userVisible": False, "agentVisible": True}
    messages = [asked("Hi"), asked("A summary.", metadata=hidden), said("Ho")]
    turns = read_turns(file_with(tmp_path, "session.json", [{"messages": messages}]))
    assert contexts(turns) == {"Ho": ["Hi"]}


AIDER = """# aider chat started at 2025-02-03 18:22:10

> Main model: m1 with diff edit format

#### /add a.py

> Added a.py to the chat

#### Hi

Ho

#### /ask Tea?

No
"""


def test_commands_to_aider_are_no_talk(tmp_path):
    turns = read_turns(file_with(tmp_path, "history.md", AIDER))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Hi", "Ho", "/ask Tea?"]}
    assert turns["system"].tolist() == ["m1", "m1"]


HEADED = """#### You:
<time datetime="2025-03-02" title="3/2/2025">20:12</time>

Hi

- 📎 label.jpg

#### Plugin (browser):

> a page

#### ChatGPT:
<time datetime="2025-03-02" title="3/2/2025">20:12</time>

<details>
<summary>Thought for 8 seconds</summary>

Hm.

</details>

Ho
"""


def test_times_reasoning_and_plugins_in_markdown_are_no_talk(tmp_path):
    turns = read_turns(file_with(tmp_path, "chat.md", HEADED))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_a_narrator_of_sillytavern_is_no_bot(tmp_path):
    rows = [
        {"user_name": "Mira", "character_name": "Ada"},
        {"name": "Mira", "is_user": True, "mes": "Hi"},
        {
            "name": "Narrator",
            "is_user": False,
            "mes": "Rain.",
            "extra": {"type": "narrator"},
        },
        {"name": "Ada", "is_user": False, "mes": "Ho"},
    ]
    turns = read_turns(file_with(tmp_path, "ada.jsonl", rows))
    assert contexts(turns) == {"Ho": ["Hi"]}


IMESSAGE = """Mar 02, 2025 10:01:07 AM
Me
Hey
Edited 15 seconds later: Hi

Mar 02, 2025 10:02:00 AM
Ada
Ho
Sent with Lasers

Mar 02, 2025 10:03:00 AM
Me
/Users/mira/Library/Messages/Attachments/0f/IMG_2231.heic

Mar 02, 2025 10:04:00 AM
Me
Tea?

Mar 02, 2025 10:05:00 AM
Ada
No
"""


def test_edits_effects_and_files_of_imessage_are_no_words(tmp_path):
    turns = read_turns(file_with(tmp_path, "ada.txt", IMESSAGE), options={"bot": "Ada"})
    assert contexts(turns) == TWO_EXCHANGES
    assert "1 were edited" in str(import_report(turns).values)


def test_words_below_a_file_of_whatsapp_are_whole(tmp_path):
    text = (
        "12/11/23, 9:41 pm - Mira: Hi\n"
        "12/11/23, 9:42 pm - Ada: IMG-1.jpg (file attached)\nHo\n"
        "12/11/23, 9:43 pm - Mira: Tea?\n12/11/23, 9:44 pm - Ada: No\n"
    )
    turns = read_turns(file_with(tmp_path, "chat.txt", text), options={"bot": "Ada"})
    assert contexts(turns) == TWO_EXCHANGES


def matrix(number, sender, text, **content):
    """A message of a room."""
    content = {"msgtype": "m.text", "body": text, **content}
    about = {"type": "m.room.message", "event_id": f"e{number}", "sender": sender}
    return {**about, "origin_server_ts": 1700000000000 + number, "content": content}


def test_a_thread_of_matrix_is_a_dialog(tmp_path):
    thread = {"m.relates_to": {"rel_type": "m.thread", "event_id": "e3"}}
    messages = [
        matrix(1, "mira", "Hi"),
        matrix(2, "ada", "Ho", msgtype="m.notice"),
        matrix(3, "mira", "Tea?"),
        matrix(4, "mira", "Thanks"),
        matrix(5, "ada", "No", msgtype="m.notice", **thread),
    ]
    room = {"room_name": "Help", "messages": messages}
    turns = read_turns(file_with(tmp_path, "room.json", room))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_entities_in_subtitles_are_characters(tmp_path):
    cues = [
        "00:00.000 --> 00:02.000\nUser: Tea &amp; cake?",
        "00:02.000 --> 00:04.000\nBot: I&apos;d say so.",
    ]
    text = "WEBVTT\n\n" + "\n\n".join(cues) + "\n"
    turns = read_turns(file_with(tmp_path, "talk.vtt", text))
    assert contexts(turns) == {"I'd say so.": ["Tea & cake?"]}


def test_threads_channels_and_people_of_mattermost_are_dialogs(tmp_path):
    reply = {"user": "ada", "message": "Ho", "create_at": 2}
    joined = {"user": "mira", "message": "joined", "type": "system_join_channel"}
    with_members = {"channel_members": ["ada", "mira"]}
    rows = [
        {"type": "bot", "bot": {"username": "ada"}},
        {"type": "post", "post": {"channel": "help", **joined, "create_at": 0}},
        {
            "type": "post",
            "post": {
                "channel": "help",
                "user": "mira",
                "message": "Hi",
                "create_at": 1,
                "replies": [reply],
            },
        },
        {
            "type": "direct_post",
            "direct_post": {
                **with_members,
                "user": "mira",
                "message": "Tea?",
                "create_at": 3,
            },
        },
        {
            "type": "direct_post",
            "direct_post": {
                **with_members,
                "user": "ada",
                "message": "No",
                "create_at": 4,
            },
        },
    ]
    turns = read_turns(file_with(tmp_path, "export.jsonl", rows))
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_html_and_notices_of_zulip_are_no_words(tmp_path):
    messages = []
    for number, (email, content) in enumerate(
        [
            ("m@x.org", "<p>Hi</p>"),
            ("ada-bot@x.org", "<p>Two:</p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>"),
            ("m@x.org", "<p>(deleted)</p>"),
            ("notification-bot@zulip.com", "<p>This topic was moved.</p>"),
            ("m@x.org", "<p>Tea?</p>"),
            ("ada-bot@x.org", "<p>No</p>"),
        ]
    ):
        name = email.partition("@")[0]
        about = {"sender_full_name": name, "sender_email": email, "timestamp": number}
        place = {"display_recipient": "help", "subject": "tea"}
        messages.append(
            {**about, **place, "content": content, "content_type": "text/html"}
        )
    turns = read_turns(file_with(tmp_path, "zulip.json", {"messages": messages}))
    first = "Two:\none\ntwo"
    assert contexts(turns) == {first: ["Hi"], "No": ["Hi", first, "Tea?"]}


def test_replies_to_a_message_of_teams_are_its_dialog(tmp_path):
    def message(number, html, *, bot=False, replies=()):
        account = {"id": "x", "displayName": "Ada" if bot else "Mira"}
        kind = "application" if bot else "user"
        about = {"id": f"m{number}", "messageType": "message", "chatId": None}
        about["createdDateTime"] = f"2025-01-01T10:0{number}:00Z"
        body = {"contentType": "html", "content": html}
        return {
            **about,
            "from": {kind: account},
            "body": body,
            "replies": list(replies),
        }

    first = message(1, "<p>Hi</p>")
    first["replies"] = [
        message(2, '<p>Ho <emoji alt="🙂"></emoji></p>', bot=True) | {"replyToId": "m1"}
    ]
    other = message(3, "<p>Tea?</p>")
    other["replies"] = [message(4, "<p>No</p>", bot=True) | {"replyToId": "m3"}]
    turns = read_turns(file_with(tmp_path, "teams.json", {"value": [other, first]}))
    assert contexts(turns) == {"Ho 🙂": ["Hi"], "No": ["Tea?"]}


def test_utterances_of_speech_recognition_are_read_and_not_their_words(tmp_path):
    def utterance(speaker, text):
        return {
            "speaker": speaker,
            "text": text,
            "words": [{"text": text, "speaker": speaker}],
        }

    talk = [
        utterance("A", "Hi"),
        utterance("B", "Ho"),
        utterance("A", "Tea?"),
        utterance("B", "No"),
    ]
    value = {
        "id": "t",
        "words": [w for u in talk for w in u["words"]],
        "utterances": talk,
    }
    file = file_with(tmp_path, "speech.json", value)
    assert contexts(read_turns(file, options={"bot": "B"})) == TWO_EXCHANGES
    with pytest.raises(DataError, match="which speaker is the bot"):
        read_turns(file)


def test_speech_marks_and_questions_of_platforms_are_words(tmp_path):
    lex = [
        {
            "sessionId": "s",
            "inputTranscript": "Hi",
            "timestamp": "2025-01-01T10:00:00Z",
            "messages": [
                {
                    "content": '<speak>Ho at <say-as interpret-as="time">8pm</say-as></speak>'
                }
            ],
            "bot": {"version": "4"},
        },
    ]
    turns = read_turns(file_with(tmp_path, "lex.jsonl", lex * 1))
    assert turns[["system", "response"]].values.tolist() == [["4", "Ho at 8pm"]]
    generic = [{"response_type": "option", "title": "Which one?", "options": []}]
    log = {
        "request": {"input": {"text": "Hi"}},
        "response": {"output": {"generic": generic}},
    }
    log |= {"session_id": "s", "request_timestamp": "2025-01-01T10:00:00Z"}
    turns = read_turns(file_with(tmp_path, "watson.json", {"logs": [log]}))
    assert contexts(turns) == {"Which one?": ["Hi"]}


def test_what_a_desk_keeps_to_itself_is_no_talk(tmp_path):
    def record(number, text, *, by, audience="ALL"):
        about = {"sentBy": by, "audience": audience, "seq": number, "timeL": number}
        return {**about, "messageData": {"msg": {"text": text}}}

    records = [
        record(0, "Tea &amp; cake?", by="Consumer"),
        record(1, "handover", by="Agent", audience="AGENTS_AND_MANAGERS"),
        record(2, "No", by="Agent"),
    ]
    value = {
        "conversationHistoryRecords": [
            {"info": {"conversationId": "c"}, "messageRecords": records}
        ]
    }
    turns = read_turns(file_with(tmp_path, "desk.json", value))
    assert contexts(turns) == {"No": ["Tea & cake?"]}


def test_an_utterance_without_words_is_no_context(tmp_path):
    text = "dialog,speaker,text\nd,user,Hi\nd,user,\nd,bot,Ho\n"
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_an_empty_reply_stays(tmp_path):
    text = "dialog,speaker,text\nd,user,Hi\nd,bot,\nd,user,So?\nd,bot,Ho\n"
    turns = read_turns(file_with(tmp_path, "log.csv", text))
    assert turns["response"].fillna("").tolist() == ["", "Ho"]


def test_notices_of_discord_in_a_table_are_no_talk(tmp_path):
    text = (
        "AuthorID,Author,Date,Content,Attachments,Reactions\n"
        "1,mira,2025-01-01T10:00:00Z,Joined the server.,,\n"
        "1,mira,2025-01-01T10:01:00Z,Hi,,\n2,ada,2025-01-01T10:02:00Z,Ho,,\n"
        "1,mira,2025-01-01T10:03:00Z,Pinned a message.,,\n"
        "1,mira,2025-01-01T10:04:00Z,Tea?,,\n2,ada,2025-01-01T10:05:00Z,No,,\n"
    )
    turns = read_turns(file_with(tmp_path, "help.csv", text), options={"bot": "ada"})
    assert contexts(turns) == TWO_EXCHANGES


def test_a_topic_of_a_telegram_forum_is_a_dialog(tmp_path):
    def message(number, name, text, reply_to=None):
        about = {
            "id": number,
            "type": "message",
            "date_unixtime": str(1700000000 + number),
        }
        about |= {"from": name, "from_id": name, "text": text}
        return about | ({"reply_to_message_id": reply_to} if reply_to else {})

    topic = {
        "type": "service",
        "action": "topic_created",
        "date_unixtime": "1700000000",
    }
    messages = [
        {**topic, "id": 1, "title": "Help"},
        {**topic, "id": 2, "title": "Tea"},
        message(3, "mira", "Hi", 1),
        message(4, "mira", "Tea?", 2),
        message(5, "ada", "Ho", 3),
        message(6, "ada", "No", 4),
    ]
    chat = {
        "id": 7,
        "name": "Forum",
        "type": "private_supergroup",
        "messages": messages,
    }
    turns = read_turns(file_with(tmp_path, "result.json", chat), options={"bot": "ada"})
    assert contexts(turns) == {"Ho": ["Hi"], "No": ["Tea?"]}


def test_a_link_to_a_file_of_x_is_no_word(tmp_path):
    def message(number, sender, text, *files):
        about = {"id": str(number), "createdAt": f"2025-01-01T10:0{number}:00Z"}
        about |= {"senderId": sender, "text": text, "mediaUrls": list(files)}
        return {"messageCreate": about}

    messages = [
        message(4, "ada", "No"),
        message(3, "mira", "Tea? https://t.co/abc", "https://ton.twitter.com/a.jpg"),
        message(2, "ada", "Ho"),
        message(1, "mira", "Hi"),
    ]
    value = [{"dmConversation": {"conversationId": "c", "messages": messages}}]
    turns = read_turns(file_with(tmp_path, "dm.json", value), options={"bot": "ada"})
    assert contexts(turns) == TWO_EXCHANGES


def test_prompts_and_tools_in_chinese_are_no_talk(tmp_path):
    rows = []
    for version in ("v1", "v2"):
        said_by = [("系统", "Be kind."), ("用户", "Hi"), ("工具", "{}"), ("助手", "Ho")]
        messages = [{"角色": role, "内容": text} for role, text in said_by]
        rows.append(
            {"会话编号": version, "模型版本": version, "对话": messages, "用户评分": 5}
        )
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert turns["context"].tolist() == [["Hi"], ["Hi"]]
    assert turns["system"].tolist() == ["v1", "v2"]
    assert "用户评分 may be people's ratings" in str(turns.attrs["guesses"])


@pytest.mark.parametrize(
    "name, values",
    [
        ("avis", ["👍", "👎"]),
        ("satisfacción_1a7", ["6", "3"]),
        ("stjerner", ["★★", "★"]),
    ],
)
def test_opinions_in_other_languages_are_named(name, values, tmp_path):
    rows = "".join(f"Hi,Ho,m,{value}\n" for value in values)
    turns = read_turns(
        file_with(tmp_path, "log.csv", f"prompt,response,model,{name}\n{rows}")
    )
    assert f"{name} may be people's ratings" in str(turns.attrs["guesses"])


@pytest.mark.parametrize(
    "notice",
    [
        "Ada reacted 😍 to your message",
        "Ada called you.",
        "Ada missed a call from you.",
    ],
)
def test_notices_of_messenger_in_the_name_of_somebody_are_no_talk(notice, tmp_path):
    def message(number, name, text):
        time = 1700000000000 + number
        return {"sender_name": name, "timestamp_ms": time, "content": text}

    texts = [
        ("Mira", "Hi"),
        ("Ada", "Ho"),
        ("Ada", notice),
        ("Mira", "Tea?"),
        ("Ada", "No"),
    ]
    messages = [message(n, name, text) for n, (name, text) in enumerate(texts)]
    chat = {
        "participants": [{"name": "Ada"}, {"name": "Mira"}],
        "messages": messages[::-1],
    }
    content = json.dumps(chat, ensure_ascii=False).encode().decode("latin-1")
    file = file_with(tmp_path, "message_1.json", content)
    turns = read_turns(file, options={"bot": "Ada"})
    assert contexts(turns) == TWO_EXCHANGES


def tree_of_grok(messages):
    responses = []
    for number, parent, role, text in messages:
        about = {"_id": number, "parent_response_id": parent, "sender": role}
        time = {"$date": {"$numberLong": str(1743588000000 + int(number))}}
        responses.append({"response": {**about, "message": text, "create_time": time}})
    return {"conversations": [{"conversation": {"id": "c"}, "responses": responses}]}


def tree_of_claude(messages):
    chat = []
    for number, parent, role, text in messages:
        parent = parent or "00000000-0000-4000-8000-000000000000"
        about = {"uuid": number, "parent_message_uuid": parent, "sender": role}
        about["created_at"] = f"2025-01-01T10:0{number}:00Z"
        chat.append(
            {**about, "text": text, "content": [{"type": "text", "text": text}]}
        )
    return [{"uuid": "c", "name": "Tea", "chat_messages": chat}]


@pytest.mark.parametrize("tree", [tree_of_grok, tree_of_claude])
def test_a_first_question_that_was_asked_anew_has_no_context(tree, tmp_path):
    messages = [
        ("1", None, "human", "Hi"),
        ("2", "1", "assistant", "Hm"),
        ("3", None, "human", "Tea?"),
        ("4", "3", "assistant", "No"),
    ]
    turns = read_turns(file_with(tmp_path, "export.json", tree(messages)))
    assert contexts(turns) == {"Hm": ["Hi"], "No": ["Tea?"]}
