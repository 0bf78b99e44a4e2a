"""What messengers, subtitles and transcripts hold together, such as an edit of a reply."""

import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, import_report, read_turns

SAID = ("Hi", "Ho", "Tea?", "No")  # by user and bot in turn
NAMES = ("Mira", "Ada")


def text_turns(folder, text, name="chat.txt", **options):
    """The turns in a file with this text."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return read_turns(file, options=options)


def json_turns(folder, value, **options):
    """The turns in a file with this value."""
    return read_turns(file_with(folder, "log.json", value), options=options)


def lines(form, names=NAMES):
    """The talk in lines of this form, with who speaks, the words and a number."""
    return [form.format(names[n % 2], words, n) for n, words in enumerate(SAID)]


def cues(said):
    """Subtitles with these texts."""
    text = "WEBVTT\n"
    for n, words in enumerate(said):
        text += f"\n00:00:0{n}.000 --> 00:00:0{n + 1}.000\n{words}\n"
    return text


# WhatsApp


@pytest.mark.parametrize(
    "aside",
    [
        "Ada: POLL:\nTea or cake?\nOPTION: Tea (1 vote)\nOPTION: Cake (0 votes)",
        "Ada: UMFRAGE:\nTee?\nOPTION: Ja (1 Stimme)",
        "Ada: Voice call, 2 min",
        "Mira: Video call, No answer",
        "Mira: You deleted this message as admin",
        "Mira hat den Gruppennamen von “Tee: grün” zu “Kuchen” geändert.",
        "Mira hat die Beschreibung der Gruppe geändert.\nRegeln: nett sein",
    ],
)
def test_polls_calls_and_notices_of_whatsapp_are_no_talk(tmp_path, aside):
    talk = lines("5/3/24, 10:0{2} - {0}: {1}")
    talk.insert(1, f"5/3/24, 10:00 - {aside}")
    assert contexts(text_turns(tmp_path, "\n".join(talk), bot="Ada")) == TWO_EXCHANGES


def test_a_title_above_whatsapp_is_no_talk(tmp_path):
    talk = lines("5/3/24, 10:0{2} - {0}: {1}")
    talk.insert(1, "5/3/24, 10:00 - Ada: <Media omitted>")
    text = "\n".join(["WhatsApp Chat with Ada", "", *talk])
    assert contexts(text_turns(tmp_path, text, bot="Ada")) == TWO_EXCHANGES


# Messengers


def test_older_exports_of_telegram_have_ids_as_numbers(tmp_path):
    messages = []
    for n, words in enumerate(SAID):
        about = {"id": n, "type": "message", "date": f"2019-03-05T10:00:0{n}"}
        about |= {"from": ("Mira", "Ada the bot")[n % 2], "from_id": (5, 77)[n % 2]}
        messages.append(about | {"text": words})
    chat = {"name": "Ada", "type": "bot_chat", "id": 77, "messages": messages}
    assert contexts(json_turns(tmp_path, chat)) == TWO_EXCHANGES


def slack(*messages):
    """A thread of Slack, by user and bot in turn."""
    rows = []
    for n, message in enumerate(messages):
        account = {"user": "U1"} if n % 2 == 0 else {"user": "UB", "bot_id": "B1"}
        about = {
            "type": "message",
            "ts": f"170964000{n}.1",
            "thread_ts": "1709640000.1",
        }
        rows.append({**about, **account, "text": SAID[n], **message})
    return rows


def test_a_message_of_slack_in_its_thread_and_in_its_channel_is_one(tmp_path):
    first, *replies = slack({}, {}, {}, {"subtype": "thread_broadcast"})
    channel = [{**first, "slackdump_thread_replies": replies}, replies[-1]]
    dump = {"channel_id": "C1", "messages": channel}
    assert contexts(json_turns(tmp_path, dump)) == TWO_EXCHANGES
    answers = {"ok": True, "messages": [replies[-1], first, first, *replies]}
    assert contexts(json_turns(tmp_path, answers)) == TWO_EXCHANGES


def test_words_of_slack_in_blocks_whose_text_cannot_be_displayed(tmp_path):
    fields = [{"type": "mrkdwn", "text": "Ho"}, {"type": "mrkdwn", "text": "Ha"}]
    header = {"type": "header", "text": {"type": "plain_text", "text": "Ada"}}
    blocks = [header, {"type": "section", "fields": fields}]
    rows = slack({}, {"text": "This content can't be displayed.", "blocks": blocks})
    assert contexts(json_turns(tmp_path, rows)) == {"Ada\nHo\nHa": ["Hi"]}


def test_words_of_a_bot_of_slack_are_those_that_people_see(tmp_path):
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "Ho"}}
    rich = {"type": "rich_text", "elements": []}
    link = {"from_url": "https://tea.example", "text": "All of it"}
    rows = slack(
        {"blocks": [rich], "attachments": [link]},
        {"text": "New answer", "blocks": [section]},
        {},
        {"blocks": [rich], "attachments": [{"text": "Not today"}, link]},
    )
    expected = {"Ho": ["Hi"], "No\nNot today": ["Hi", "Ho", "Tea?"]}
    assert contexts(json_turns(tmp_path, rows)) == expected


def test_two_bots_of_slack_without_accounts_have_their_own_names(tmp_path):
    rows = slack({}, {}, {}, {})
    for row, name in ((rows[1], "Ada"), (rows[3], "Bea")):
        del row["user"]
        row |= {"bot_id": name, "bot_profile": {"id": name, "name": name}}
    turns = json_turns(tmp_path, rows)
    assert turns["system"].tolist() == ["Ada", "Bea"]


def discord(*messages, start=0):
    """A channel as DiscordChatExporter writes it, by user and bot in turn."""
    rows = []
    for n, message in enumerate(messages, start=start):
        author = {"id": f"{n % 2}", "name": NAMES[n % 2], "isBot": n % 2 == 1}
        about = {"id": f"{n}", "type": "Default", "content": SAID[n], "author": author}
        rows.append(about | {"timestamp": f"2024-03-05T10:00:0{n}+00:00"} | message)
    return {
        "guild": {"id": "1"},
        "channel": {"id": "7", "name": "tea"},
        "messages": rows,
    }


def test_a_box_below_a_message_of_discord_is_no_talk(tmp_path):
    box = {"title": "Tea", "url": None, "description": "All of it", "fields": []}
    chat = discord({}, {"embeds": [box]}, {}, {"content": "", "embeds": [box]})
    turns = json_turns(tmp_path, chat)
    assert contexts(turns) == {"Ho": ["Hi"]}
    excluded = import_report(turns).set_index("unit").loc["utterances", "reasons"]
    assert "1 have no words" in excluded


def test_forwarded_messages_and_emojis_of_discord(tmp_path):
    forwarded = {"content": "", "forwardedMessage": {"content": "Tea?"}}
    chat = discord({"content": "Hi <:cup:123>"}, {}, forwarded, {})
    expected = {"Ho": ["Hi :cup:"], "No": ["Hi :cup:", "Ho", "Tea?"]}
    assert contexts(json_turns(tmp_path, chat)) == expected


def test_a_channel_of_discord_in_parts_is_one_dialog(tmp_path):
    parts = (discord({}, {}), discord({}, {}, start=2))
    for number, part in enumerate(parts, start=1):
        file_with(tmp_path, f"tea [part {number}].json", part)
    assert contexts(read_turns(tmp_path)) == TWO_EXCHANGES


def test_calls_and_what_was_unsent_in_messenger_are_no_talk(tmp_path):
    texts = [*SAID[:2], "Ada hat dich angerufen.", "Oops", *SAID[2:]]
    messages = []
    for n, words in enumerate(texts):
        about = {"sender_name": NAMES[n % 2], "content": words}
        messages.append(about | {"timestamp_ms": 1709640000000 + n})
    messages[2]["call_duration"] = 12
    messages[3]["is_unsent"] = True
    chat = {"participants": [{"name": "Ada"}, {"name": "Mira"}], "messages": messages}
    assert contexts(json_turns(tmp_path, chat, bot="Ada")) == TWO_EXCHANGES


def test_an_edit_of_a_reply_of_matrix_has_no_quotation(tmp_path):
    events = []
    for n, words in enumerate((*SAID[:3], "> <@m> Tea?\n\nYes")):
        about = {
            "type": "m.room.message",
            "event_id": f"${n}",
            "sender": ("@m", "@a")[n % 2],
        }
        content = {"msgtype": ("m.text", "m.notice")[n % 2], "body": words}
        events.append(
            about | {"origin_server_ts": 1709640000000 + n, "content": content}
        )
    events[3]["content"]["m.relates_to"] = {"m.in_reply_to": {"event_id": "$2"}}
    edit = {"rel_type": "m.replace", "event_id": "$3"}
    words = {"body": "> <@m> Tea?\n\nNo", "msgtype": "m.notice"}
    content = {**words, "m.new_content": words, "m.relates_to": edit}
    events.append({**events[3], "event_id": "$4", "content": content})
    taken_back = {**events[1], "event_id": "$5"}
    del taken_back["content"]
    room = {"room_name": "tea", "messages": [*events, taken_back]}
    assert contexts(json_turns(tmp_path, room)) == TWO_EXCHANGES


def test_deleted_messages_and_plain_texts_of_teams(tmp_path):
    value = []
    for n, words in enumerate(("a < b", "<Ho>", "Oops", "Oh", "Tea?", "No")):
        account = {"user": {"id": "m", "displayName": "Mira"}}
        if n % 2:
            account = {"application": {"id": "a", "displayName": "Ada"}}
        about = {"id": f"{n}", "messageType": "message", "chatId": "c", "from": account}
        about |= {"createdDateTime": f"2024-03-05T10:00:0{n}Z", "deletedDateTime": None}
        value.append(about | {"body": {"contentType": "text", "content": words}})
    for message in value[2:4]:
        message["deletedDateTime"] = "2024-03-05T11:00:00Z"
    turns = json_turns(tmp_path, {"value": value[::-1]})
    assert contexts(turns) == {"<Ho>": ["a < b"], "No": ["a < b", "<Ho>", "Tea?"]}


def test_colors_of_irc_are_no_words(tmp_path):
    text = "\n".join(lines("[10:00:0{2}] <\x0304{0}\x03> \x02{1}\x0f"))
    assert contexts(text_turns(tmp_path, text, bot="Ada")) == TWO_EXCHANGES


@pytest.mark.parametrize(
    "notice", ["-Ada:#tea- No", "-Ada(~ada@tea.example)- No", "-Ada- No"]
)
def test_a_notice_of_a_bot_on_irc_is_a_reply(tmp_path, notice):
    talk = lines("10:0{2} <{0}> {1}")[:3]
    talk += ["10:04 -NickServ- Who are you?", f"10:05 {notice}"]
    assert contexts(text_turns(tmp_path, "\n".join(talk), bot="Ada")) == TWO_EXCHANGES


# Subtitles


@pytest.mark.parametrize(
    "form",
    [
        "[{0}] {1}",
        "[{0}]: {1}",
        ">> [{0}] {1}",
        "<b>{0}:</b> {1}",
        '<font color="#ff0">{0}: {1}</font>',
    ],
)
def test_speakers_of_subtitles_in_brackets_and_in_bold(tmp_path, form):
    turns = text_turns(tmp_path, cues(lines(form)), name="talk.vtt", bot="Ada")
    assert contexts(turns) == TWO_EXCHANGES


def test_sounds_in_brackets_do_not_speak(tmp_path):
    said = lines("[{0}] {1}")
    said[1] = "[Ada] Ho [laughs]"
    said.insert(2, "[coughs] Ha")
    expected = {"Ho Ha": ["Hi"], "No": ["Hi", "Ho Ha", "Tea?"]}
    turns = text_turns(tmp_path, cues(said), name="talk.vtt", bot="Ada")
    assert contexts(turns) == expected


def test_three_names_that_stand_once_are_asked_about(tmp_path):
    said = ["Mira: Hi", "Ada: Ho", "Note: closed on Monday"]
    with pytest.raises(DataError, match="SPEAKERS="):
        text_turns(tmp_path, cues(said), name="talk.vtt", bot="Ada")
    with pytest.raises(DataError, match="SPEAKERS="):
        text_turns(tmp_path, "\n".join(said), bot="Ada")
    turns = text_turns(tmp_path, "\n".join(said), bot="Ada", speakers="Mira,Ada")
    assert contexts(turns) == {"Ho\nNote: closed on Monday": ["Hi"]}


# Transcripts


@pytest.mark.parametrize(
    "form",
    [
        "[{0}]: {1}",
        "#{2} {0}: {1}",
        "Turn {2} - {0}: {1}",
        "Turn {2}: {0}: {1}",
        "🧑 {0}: {1}",
        "{0} (10:0{2}): {1}",
        "{0} [2024-03-05 10:00:0{2}]: {1}",
    ],
)
def test_brackets_numbers_and_times_beside_speakers(tmp_path, form):
    text = "\n".join(lines(form, ("User", "Bot")))
    turns = text_turns(tmp_path, text)
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"Bot"}


@pytest.mark.parametrize("names", [("User", "Bot"), ("Q", "A")])
def test_numbers_of_turns_in_names_tell_no_versions(tmp_path, names):
    said = [f"{names[n % 2]} {n // 2 + 1}: {words}" for n, words in enumerate(SAID)]
    turns = text_turns(tmp_path, "\n".join(said), bot=names[1])
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {names[1]}


@pytest.mark.parametrize("title", ["Turn {}", "## Turn {}", "--- Turn {} ---"])
@pytest.mark.parametrize("form", ["{0}: {1}", "### {0}\n\n{1}\n"])
def test_titles_of_turns_stand_in_no_reply_and_part_no_dialogs(tmp_path, title, form):
    said = lines(form, ("User", "Bot"))
    said.insert(0, title.format(1))
    said.insert(3, "\n" + title.format(2))
    assert contexts(text_turns(tmp_path, "\n".join(said))) == TWO_EXCHANGES


def test_a_title_above_each_side_of_a_turn_is_no_talk(tmp_path):
    said = lines("{0}: {1}", ("User", "Bot"))
    text = "\n".join(f"Turn {n // 2 + 1}\n{line}" for n, line in enumerate(said))
    assert contexts(text_turns(tmp_path, text)) == TWO_EXCHANGES


def test_turns_that_count_anew_are_of_another_dialog(tmp_path):
    text = "Turn 1\nUser: Hi\nBot: Ho\n\nTurn 1\nUser: Tea?\nBot: No"
    assert contexts(text_turns(tmp_path, text)) == {"Ho": ["Hi"], "No": ["Tea?"]}


@pytest.mark.parametrize("ids", [("abc", "def"), ("a1-b", "b2-c")])
def test_a_head_with_the_id_of_a_session_parts_dialogs(tmp_path, ids):
    text = f"Session: {ids[0]}\nUser: Hi\nBot: Ho\n\nSession: {ids[1]}\nUser: Tea?\nBot: No"
    assert contexts(text_turns(tmp_path, text)) == {"Ho": ["Hi"], "No": ["Tea?"]}


@pytest.mark.parametrize("form", ["{0}: {1}", "## {0}\n{1}"])
def test_nobody_speaks_in_a_block_of_code(tmp_path, form):
    code = "```\n" + "\n".join(lines(form, ("User", "Bot"))) + "\n```"
    said = lines(form, ("User", "Bot"))
    text = "\n".join(said).replace("Ho", code)
    expected = {code: ["Hi"], "No": ["Hi", code, "Tea?"]}
    assert contexts(text_turns(tmp_path, text)) == expected
    without_end = "\n".join(said).replace("Ho", "```\nHo")
    assert "```\nHo" in contexts(text_turns(tmp_path, without_end))


def test_a_person_who_takes_over_from_a_bot_speaks(tmp_path):
    text = "User: Hi\nHuman agent: One moment\nBot: Ho\nLive agent Ben: Me too\nBot: No"
    expected = {"Ho": ["Hi", "One moment"], "No": ["Hi", "One moment", "Ho", "Me too"]}
    assert contexts(text_turns(tmp_path, text)) == expected


def test_a_talk_in_one_block_of_code(tmp_path):
    text = "\n".join(["```", *lines("{0}: {1}", ("User", "Bot")), "```"])
    assert contexts(text_turns(tmp_path, text)) == TWO_EXCHANGES


def test_a_note_above_the_talk_is_no_head_of_dialogs(tmp_path):
    text = "Note: of today\nUser: Hi\nBot: Ho\nNote: closed\nUser: Tea?\nBot: No"
    expected = {"Ho\nNote: closed": ["Hi"], "No": ["Hi", "Ho\nNote: closed", "Tea?"]}
    assert contexts(text_turns(tmp_path, text)) == expected


# Markdown


def test_a_prompt_under_a_heading_is_no_talk(tmp_path):
    text = "## System\n\nBe kind\n\n" + "\n\n".join(
        lines("## {0}\n\n{1}", ("User", "Bot"))
    )
    assert contexts(text_turns(tmp_path, text, name="chat.md")) == TWO_EXCHANGES


def test_titles_in_markdown_part_dialogs(tmp_path):
    said = lines("## {0}\n\n{1}\n", ("User", "Bot"))
    text = "\n".join(["# One\n", *said[:2], "# Two\n", *said[2:]])
    expected = {"Ho": ["Hi"], "No": ["Tea?"]}
    assert contexts(text_turns(tmp_path, text, name="chat.md")) == expected
    text = "\n".join(["# One\n", *said[:2], "# Two\n\nwords\n", *said[2:]])
    assert "Ho\n\n# Two\n\nwords" in contexts(
        text_turns(tmp_path, text, name="chat.md")
    )


def test_a_question_in_several_lines_to_aider_has_no_blanks_at_their_ends(tmp_path):
    text = "# aider chat started at 2024-03-05 10:00:00\n\n#### Tea?  \n#### Green  \n\nNo\n"
    turns = text_turns(tmp_path, text, name=".aider.chat.history.md")
    assert contexts(turns) == {"No": ["Tea?\nGreen"]}


@pytest.mark.parametrize(
    "notice",
    [
        "You can now message and call each other and see info like Active Status.",
        "You are now connected on Messenger.",
        "New messages and calls are secured with end-to-end encryption. Learn more.",
        "Mentioned you in their story",
        "You sent a voice message.",
        "Audio call ended",
    ],
)
def test_what_messenger_writes_itself_is_no_talk(notice, tmp_path):
    said = ["Ho", "You can now call us.", "Hi", notice]
    names = ["Cafe", "Cafe", "Mira", "Mira"]
    messages = [
        {"sender_name": name, "timestamp_ms": 1741082400000 - number, "content": text}
        for number, (name, text) in enumerate(zip(names, said, strict=True))
    ]
    people = [{"name": "Mira"}, {"name": "Cafe"}]
    chat = {"participants": people, "messages": messages, "title": "Cafe"}
    file = file_with(
        tmp_path, "message_1.json", {**chat, "thread_path": "inbox/cafe_1"}
    )
    turns = read_turns(file, options={"bot": "Cafe"})
    assert contexts(turns) == {
        "You can now call us.": ["Hi"],
        "Ho": ["Hi", "You can now call us."],
    }
