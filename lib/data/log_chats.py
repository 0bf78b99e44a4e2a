"""Exports of messengers: Telegram, Slack, Discord, Zulip, Messenger, Matrix and others."""

import re

from lib.data.dialogs import WORDS, Dialog, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat
from lib.data.log_parts import (
    dicts,
    first_text,
    first_value,
    html_text,
    is_true,
    never_earlier,
    text_at,
    value_at,
    values_at,
    with_replies,
    without_html,
)
from lib.data.log_times import to_time

SLACK_MENTION = re.compile(r"<@(\w{1,40})(?:\|[^>]{0,80})?>")
FACEBOOK_NOTICE = re.compile(
    rf"(?:{'|'.join(WORDS['facebook']['no_words'])})\s*\.?", re.I
)
FACEBOOK_DEED = re.compile(  # behind the name of who is said to write it
    r"(?:called|named|renamed|changed|set|added|removed|left|created|pinned|started|joined|missed"
    r"|unsent|turned|voted|sent|shared|liked|reacted|took) "
)
DISCORD_TALK = {  # types of messages; 20 and 23 are answers to commands
    "Default",
    "Reply",
    "ChatInputCommand",
    "ContextMenuCommand",
    0,
    19,
    20,
    23,
    "20",
    "23",
}
DISCORD_NAMES = ("nickname", "global_name", "name", "username")
DISCORD_NOTICE = re.compile(
    r"Pinned a message\.|Joined the server\.|Left the group\.|Started a thread\."
    r"|Started a call that lasted .*|Changed the channel .*|(?:Added|Removed) .* the group\."
)
DISCORD_EMOJI = re.compile(r"<a?(:\w{2,32}:)\d{1,20}>")
DISCORD_PART = re.compile(r"\[part \d{1,4}\]$")  # of a channel in several files
ZULIP_ITSELF = ("notification-bot@", "welcome-bot@")
QUOTED = re.compile(r"\A(?:> .*\n)+\n?")  # what a message of Matrix answers, above it
SLACK_LINK = re.compile(r"<((?:https?|mailto|tel):[^|>]{1,2000})(?:\|([^>]{0,500}))?>")
SLACK_NAMED = re.compile(  # channels, groups and dates, with what people see of them
    r"<(?P<mark>[#!])[^|>]{1,200}\|(?P<seen>[^>]{1,200})>"
)
SLACK_ALL = re.compile(r"<!(here|channel|everyone)>")
SLACK_TALK = (
    None,
    "bot_message",
    "thread_broadcast",
    "me_message",
    "file_share",  # with a file, the words beside it
)
SLACK_NO_TEXT = "This content can't be displayed."  # for the words of blocks
SLACK_FILE = re.compile(r"<@\w{1,40}(?:\|[^>]{0,80})?> (?:uploaded|shared) a file: ")


def read_telegram_full(record: dict, source) -> list[Dialog]:
    """Telegram's full export: the chats with bots, or all where none is with one."""
    chats = record["chats"]["list"]
    with_bots = [chat for chat in chats if chat.get("type") == "bot_chat"]
    if with_bots and source.report.options.bot is None:
        source.exclude("dialogs", "are not with a bot", len(chats) - len(with_bots))
        chats = with_bots
    dialogs = []
    for chat in chats:
        dialogs += read_telegram(chat, source)
    return dialogs


def read_telegram(record: dict, source) -> list[Dialog]:
    """One chat of Telegram; in a chat with a bot, the bot has the name of the chat.

    A topic of a forum is a dialog of its own: its messages answer the one that created it, or
    others in it.
    """
    chat = str(record.get("id") or record.get("name") or "")
    dialogs = {None: Dialog(chat, [])}
    topics = {}  # of each message in one, by its id
    for message in record["messages"]:
        number = message.get("id")
        topics[number] = topics.get(message.get("reply_to_message_id"))
        if message.get("action") == "topic_created":
            topics[number] = number
            dialogs[number] = Dialog(f"{chat}/{message.get('title') or number}", [])
        if message.get("type") != "message":
            source.exclude("utterances", "are notices")
            continue
        if message.get("edited"):
            source.count_note("were edited")
        sender = message.get("from_id")
        speaker = str(message.get("from") or sender)  # an account may be deleted
        role = None
        if record.get("type") == "bot_chat":
            # Older exports have ids as numbers.
            of_bot = str(sender) in (f"user{chat}", chat)
            of_bot = of_bot or speaker == record.get("name")
            role = "assistant" if of_bot else "user"
        time = to_time(message.get("date_unixtime")) or to_time(message.get("date"))
        dialogs[topics[number]].utterances.append(
            Utterance(speaker, role, telegram_text(message), time=time)
        )
    return list(dialogs.values())


def telegram_text(message: dict) -> str | None:
    """The text of a message, whose formatted pieces follow each other without a break."""
    text = message.get("text")
    if isinstance(text, list):
        pieces = []
        for piece in text:
            words = piece if isinstance(piece, str) else piece.get("text")
            pieces.append(words or "")
        text = "".join(pieces)
    return text or None


def read_slack(rows: list[dict], source) -> list[Dialog]:
    """A day of a Slack channel: threads are the dialogs, and what is in none is one of its own."""
    users = {}
    for message in rows:  # the accounts, as the messages tell them
        if message.get("user_profile"):
            users[message.get("user")] = {"profile": message["user_profile"]}
        if message.get("bot_profile"):
            bot = message.get("user") or message.get("bot_id")
            users[bot] = {**message["bot_profile"], "is_bot": True}
    for account in source.sibling("users.json") or []:
        users[account["id"]] = account
    channel = source.folder
    # The first message of a thread may not say that it has one.
    threads = {message.get("thread_ts") for message in rows}
    dialogs: dict[str, Dialog] = {}
    for message in once_each(rows):
        subtype = message.get("subtype")
        is_file = SLACK_FILE.match(message.get("text") or "")
        if message.get("type") != "message" or subtype not in SLACK_TALK or is_file:
            source.exclude("utterances", "are notices")
            continue
        if message.get("edited"):
            source.count_note("were edited")
        by_bot_id = {} if message.get("username") else users.get(message.get("bot_id"))
        account = users.get(message.get("user")) or by_bot_id or {}
        name = slack_name(account) or message.get("username") or message.get("user")
        is_bot = is_slack_bot(message, account)
        first_of = message.get("ts") if message.get("ts") in threads else None
        thread = message.get("thread_ts") or first_of or "outside threads"
        thread = f"{channel}/{thread}"
        dialog = dialogs.setdefault(thread, Dialog(thread, []))
        dialog.utterances.append(
            Utterance(
                speaker=str(name or message.get("bot_id")),
                role="assistant" if is_bot else "user",
                text=slack_text(slack_words(message), users),
                time=to_time(message.get("ts")),
            )
        )
    for dialog in dialogs.values():
        dialog.spans_files = True
    source.spans_files = True
    return list(dialogs.values())


def once_each(rows: list[dict]) -> list[dict]:
    """Each message of Slack once: what stands in a thread may stand in its channel, too."""
    messages = {}
    for number, message in enumerate(rows):
        of_whom = first_value(message, ("user", "bot_id"))
        messages.setdefault((of_whom, message.get("ts") or number), message)
    return list(messages.values())


def read_slack_channel(record: dict, source) -> list[Dialog]:
    """A channel as Slack's interface gives it; slackdump keeps the replies below each message."""
    rows = with_replies(dicts(record["messages"]), "slackdump_thread_replies")
    return read_slack(rows, source)


def slack_name(account: dict) -> str | None:
    """The name that people see of a Slack account."""
    profile = account.get("profile") or {}
    return first_text(profile, ["display_name", "real_name"]) or account.get("name")


def is_slack_bot(message: dict, account: dict) -> bool:
    """Whether a bot wrote a message of Slack, and no app in the name of a person."""
    is_app = message.get("subtype") == "bot_message"
    is_slackbot = message.get("user") == "USLACKBOT"
    if account.get("is_bot") is False and not is_app and not is_slackbot:
        return False
    return bool(message.get("bot_id") or account.get("is_bot"))


def slack_words(message: dict) -> str:
    """The text of a message of Slack, or of its blocks and attachments.

    Beside the blocks of a bot the text stands in notifications only. An attachment of a bot is
    seen below its words, unless it shows what a link leads to.
    """
    by_bot = bool(message.get("bot_id"))
    text = message.get("text") or ""
    text = "" if text == SLACK_NO_TEXT else text
    words = [text]
    in_blocks = words_of_blocks(message)
    repeats_text = values_at(message, "blocks[type=rich_text]")
    if in_blocks and (not text or (by_bot and not repeats_text)):
        words = in_blocks
    for attachment in values_at(message, "attachments[]"):
        of_link = first_value(attachment, ("from_url", "original_url"))
        if any(words) and (of_link or not by_bot):
            continue
        parts = [value_at(attachment, name) for name in ("pretext", "title", "text")]
        parts = parts if any(parts) else words_of_blocks(attachment)
        words += parts or [value_at(attachment, "fallback")]
    return "\n".join(part for part in words if part and isinstance(part, str))


def words_of_blocks(message: dict) -> list[str]:
    """The words in the blocks that a bot of Slack lays out."""
    words = []
    for block in values_at(message, "blocks[type=section,header,markdown]"):
        words += values_at(block, "text.text|text") + values_at(block, "fields[].text")
    return words


def slack_text(text: str, users: dict) -> str | None:
    """Slack's markup as text: mentions by name (a bot's at the start goes), links, entities."""
    first = SLACK_MENTION.match(text)
    if first and users.get(first[1], {}).get("is_bot"):
        text = text[first.end() :].lstrip(" ,:")
    for mention in set(SLACK_MENTION.findall(text)):
        name = slack_name(users.get(mention, {})) or mention
        text = re.sub(
            rf"<@{mention}(\|[^>]{{0,80}})?>", lambda match, name=name: f"@{name}", text
        )
    text = SLACK_LINK.sub(lambda match: match[2] or match[1], text)
    text = SLACK_NAMED.sub(lambda match: match["mark"].strip("!") + match["seen"], text)
    text = SLACK_ALL.sub(r"@\1", text)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text or None


def read_wechat(rows: list[dict], source) -> list[Dialog]:
    """WeChatMsg: a table of one chat; of its types of messages only 1 is in words.

    Who kept the chat is "me"; the other side has the name that "me" gave it.
    """
    dialog = Dialog(source.stem, [])
    for row in rows:
        name = "me"
        if str(row["IsSender"]) != "1":
            name = row.get("Remark") or row.get("NickName") or row.get("Sender")
        in_words = str(row.get("Type", 1)) == "1"
        dialog.utterances.append(
            Utterance(
                speaker=str(name),
                role=None,
                text=row["StrContent"] if in_words else None,
                time=to_time(row.get("CreateTime")) or to_time(row["StrTime"]),
            )
        )
    return [dialog]


def read_google_chat(record: dict, source) -> list[Dialog]:
    """Google Chat: in a space of several people a dialog per topic, between two one for all."""
    names = {value_at(message, "creator.name") for message in record["messages"]}
    threaded = len(names - {None}) > 2
    dialogs: dict[str, Dialog] = {}
    for message in record["messages"]:
        creator = message.get("creator") or {}
        is_bot = str(creator.get("user_type")).lower() == "bot"
        name = str(message.get("topic_id") or source.stem) if threaded else source.stem
        dialog = dialogs.setdefault(name, Dialog(name, []))
        dialog.utterances.append(
            Utterance(
                speaker=str(creator.get("name")),
                role="assistant" if is_bot else "user",
                text=message.get("text") or None,
                time=to_time(message.get("created_date")),
            )
        )
    return list(dialogs.values())


def read_zulip(record: dict, source) -> list[Dialog]:
    """A file of Zulip's export: accounts are numbers, and realm.json says who they are."""
    realm = source.sibling("realm.json") or {}
    accounts = {}
    for account in [
        *realm.get("zerver_userprofile", []),
        *realm.get("zerver_userprofile_crossrealm", []),
    ]:
        accounts[account["id"]] = account
    dialogs: dict[str, Dialog] = {}
    for message in record["zerver_message"]:
        account = accounts.get(message["sender"], {})
        topic = f"{message['recipient']}/{message.get('subject') or ''}"
        dialog = dialogs.setdefault(topic, Dialog(topic, [], spans_files=True))
        name = account.get("full_name") or str(message["sender"])
        is_bot = account.get("is_bot")
        dialog.utterances.append(
            Utterance(
                speaker=name,
                role={True: "assistant", False: "user"}.get(is_bot),
                text=message.get("content") or None,
                time=to_time(message.get("date_sent")),
            )
        )
    source.spans_files = True
    return list(dialogs.values())


def read_zulip_messages(record: dict, source) -> list[Dialog]:
    """Messages as Zulip's server gives them: a topic of a channel, or a talk in private, is one."""
    dialogs: dict[str, Dialog] = {}
    for message in record["messages"]:
        place = message["display_recipient"]
        if isinstance(place, list):
            place = " and ".join(
                sorted(str(account.get("full_name")) for account in place)
            )
        topic = f"{place}/{message.get('subject') or ''}"
        dialog = dialogs.setdefault(topic, Dialog(topic, []))
        text = without_html(message.get("content"))
        if message.get("content_type") == "text/html":
            text = html_text(message["content"])
        name = message["sender_full_name"]
        by_zulip = str(message.get("sender_email")).startswith(ZULIP_ITSELF)
        if by_zulip or text == "(deleted)":
            source.exclude("utterances", "are notices")
            continue
        dialog.utterances.append(
            Utterance(
                speaker=name,
                role="assistant" if is_zulip_bot(message) else speaker_role(name),
                text=text or None,
                time=to_time(message.get("timestamp")),
            )
        )
    return list(dialogs.values())


def is_zulip_bot(message: dict) -> bool:
    """Whether the address of who wrote a message is one that Zulip gives to bots."""
    return "-bot@" in str(message.get("sender_email"))


def read_mattermost(rows: list[dict], source) -> list[Dialog]:
    """Mattermost's export: a post with replies is a dialog, the other posts of a channel are one.

    So are the posts to the same people. Rows of type "bot" name the bots.
    """
    bots = {text_at(row, "bot.username") for row in rows} - {None}
    dialogs: dict[str, Dialog] = {}
    for number, row in enumerate(rows):
        post = row.get("post") or row.get("direct_post")
        if not post:
            continue
        members = " and ".join(post.get("channel_members") or [])
        place = members or str(post.get("channel"))
        replies = post.get("replies") or []
        if replies:
            place = f"{place}/{post.get('create_at') or number}"
        dialog = dialogs.setdefault(place, Dialog(place, []))
        for message in [post, *replies]:
            if str(message.get("type") or "").startswith("system_"):
                source.exclude("utterances", "are notices")
                continue
            name = str(message["user"])
            is_bot = name in bots or is_true(text_at(message, "props.from_bot"))
            utterance = Utterance(
                speaker=name,
                role="assistant" if is_bot else None,
                text=message.get("message") or None,
                time=to_time(message.get("create_at")),
            )
            dialog.utterances.append(utterance)
    return list(dialogs.values())


def read_discord(record: dict, source) -> list[Dialog]:
    """DiscordChatExporter: one channel; accounts say whether they are bots."""
    channel = record["channel"]
    dialog = Dialog(str(channel.get("name") or channel.get("id")), [])
    if DISCORD_PART.search(source.stem):
        dialog.id += f" ({channel.get('id')})"
        dialog.spans_files = source.spans_files = True
    for message in record["messages"]:
        add_discord_message(dialog, message, source)
    return [dialog]


def read_discord_messages(rows: list[dict], source) -> list[Dialog]:
    """Messages as Discord's interface gives them, a dialog per channel."""
    dialogs: dict[str, Dialog] = {}
    for message in rows:
        name = str(message["channel_id"])
        add_discord_message(dialogs.setdefault(name, Dialog(name, [])), message, source)
    return list(dialogs.values())


def add_discord_message(dialog: Dialog, message: dict, source) -> None:
    """Add a message of Discord that is talk."""
    if message.get("type") not in DISCORD_TALK:
        source.exclude("utterances", "are notices")
        return
    if first_value(message, ("timestampEdited", "edited_timestamp")):
        source.count_note("were edited")
    author = message["author"]
    dialog.utterances.append(
        Utterance(
            speaker=str(first_text(author, DISCORD_NAMES)),
            role="assistant" if author.get("isBot") or author.get("bot") else "user",
            text=discord_words(message),
            time=to_time(message.get("timestamp")),
        )
    )


def discord_words(message: dict) -> str | None:
    """The words of a message of Discord, its mentions by name.

    Boxes below a message (`embeds`) are no words, as cards are not: many show what a link leads to.
    """
    text = DISCORD_EMOJI.sub(r"\1", message.get("content") or "")
    forwarded = message.get("forwardedMessage") or {}
    if not text:
        text = text_at(message, "message_snapshots[].message.content") or ""
        text = text or forwarded.get("content") or ""
    for account in dicts(message.get("mentions")):
        name = first_text(account, DISCORD_NAMES)
        for mention in (f"<@{account.get('id')}>", f"<@!{account.get('id')}>"):
            text = text.replace(mention, f"@{name}")
    return text or None


def refuse_discord_package(rows: list[dict], source) -> list[Dialog]:
    """Discord's own package of data holds what one account wrote, and no answers to it.

    Raises:
        UnknownFormat: always, with the way out.
    """
    raise UnknownFormat(
        "is of a data package of Discord, which holds what one account wrote and no replies to it",
        fix="export the channel with DiscordChatExporter",
    )


def read_discord_rows(rows: list[dict], source) -> list[Dialog]:
    """DiscordChatExporter's CSV: one channel, without a word on who is a bot."""
    dialog = Dialog(source.stem, [])
    for row in rows:
        time = to_time(row["Date"])
        words = row["Content"] or ""
        if DISCORD_NOTICE.fullmatch(words):
            source.exclude("utterances", "are notices")
            continue
        dialog.utterances.append(
            Utterance(row["Author"], None, words or None, time=time)
        )
    return [dialog]


def read_sillytavern(rows: list[dict], source) -> list[Dialog]:
    """SillyTavern: a header, then messages with `mes`; swipes are alternatives that were left."""
    dialog = Dialog(source.stem, [])
    for row in rows:
        if "mes" not in row:
            continue
        role = "user" if row.get("is_user") else "assistant"
        by_tool = text_at(row, "extra.type") in ("narrator", "comment")
        if row.get("is_system") or by_tool:
            role = "system"
        source.exclude(
            "utterances", "are swipes", max(0, len(row.get("swipes") or []) - 1)
        )
        time = to_time(row.get("send_date"))
        dialog.utterances.append(
            Utterance(str(row["name"]), role, row["mes"], time=time)
        )
    never_earlier(dialog.utterances)  # as messages may be moved
    return [dialog]


def read_facebook(record: dict, source) -> list[Dialog]:
    """Messenger and Instagram: a chat, newest first, with each byte of a text as a character.

    A long chat is in several files, message_1.json the newest.
    """
    thread = record.get("thread_path")
    dialog = Dialog(str(thread or record.get("title") or ""), [])
    dialog.spans_files = source.spans_files = bool(thread)
    for message in record["messages"]:
        name = from_bytes(message["sender_name"])
        text = from_bytes(message.get("content") or "")
        is_notice = message.get("type") in ("Call", "Subscribe", "Unsubscribe")
        is_notice = is_notice or "call_duration" in message
        if is_notice or FACEBOOK_NOTICE.fullmatch(text) or tells_of(name, text):
            source.exclude("utterances", "are notices")
            continue
        dialog.utterances.append(
            Utterance(
                speaker=name,
                role=None,
                text=None if is_true(message.get("is_unsent")) else text or None,
                time=to_time(message.get("timestamp_ms")),
            )
        )
    return [dialog]


def tells_of(name: str, text: str) -> bool:
    """Whether a text of Messenger says what the one did in whose name it stands.

    >>> tells_of("Mira Lind", "Mira named the group Tea."), tells_of("Mira", "Ada called me")
    (True, False)
    """
    for start in (name, name.partition(" ")[0]):
        deed = text.removeprefix(f"{start} ")
        if deed != text and FACEBOOK_DEED.match(deed):
            return True
    return False


def read_matrix(record: dict, source) -> list[Dialog]:
    """Matrix, as Element exports a room: an edit takes the place of the words that it changes.

    A thread is a dialog of its own, with the message that began it.
    Notices (`m.notice`) are what bots write, so who writes them is a bot.
    """
    messages = record.get("messages") or record["chunk"]
    events = [  # a message that was taken back may have no content
        event
        for event in messages
        if event.get("type") == "m.room.message" and event.get("content")
    ]
    source.exclude("utterances", "are notices", len(messages) - len(events))
    edits = {}
    for event in sorted(events, key=lambda event: event["origin_server_ts"]):
        relation = relation_of(event)
        if relation.get("rel_type") == "m.replace":
            new = event["content"].get("m.new_content") or event["content"]
            edits[relation.get("event_id")] = new.get("body")
            events.remove(event)
    bots = {e["sender"] for e in events if e["content"].get("msgtype") == "m.notice"}
    name = str(
        record.get("room_name") or text_at(messages, "[].room_id") or source.stem
    )
    room = Dialog(name, [])
    threads: dict[str, Dialog] = {}
    for event in events:
        thread = thread_of(event)
        if thread:
            threads.setdefault(thread, Dialog(f"{name}/{thread}", []))
    for event in events:
        words = event["content"].get("body")
        if event["event_id"] in edits:
            source.count_note("were edited")
            words = edits[event["event_id"]]
        if relation_of(event).get("m.in_reply_to"):
            words = QUOTED.sub("", words or "", count=1)
        if event["content"].get("msgtype") not in ("m.text", "m.notice", "m.emote"):
            # A file or a picture, whose name stands in `body`, unless it has one and words.
            file_name = event["content"].get("filename")
            words = words if file_name and file_name != words else None
        dialog = threads.get(thread_of(event) or event["event_id"], room)
        dialog.utterances.append(
            Utterance(
                speaker=event["sender"],
                role="assistant" if event["sender"] in bots else None,
                text=words,
                time=to_time(event["origin_server_ts"]),
            )
        )
    return [room, *threads.values()]


def thread_of(event: dict) -> str | None:
    """The id of the message that began the thread of a message of Matrix."""
    relation = relation_of(event)
    return relation.get("event_id") if relation.get("rel_type") == "m.thread" else None


def relation_of(event: dict) -> dict:
    """What a message of Matrix changes or answers."""
    return event["content"].get("m.relates_to") or {}


def from_bytes(text: str) -> str:
    """A text whose characters are the bytes of UTF-8; unchanged where they are not.

    >>> from_bytes("Z\u00c3\u00bcrich"), from_bytes("Zürich")
    ('Zürich', 'Zürich')
    """
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
