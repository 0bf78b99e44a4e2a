"""Logs of platforms for bots and of customer support, which need code of their own.

For another platform first try an entry in `chat_shapes.toml`.
"""

import json
import math
import re
from datetime import datetime
from typing import Any

from lib.data.corpora import snake_case
from lib.data.dialogs import Dialog, Rating, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat
from lib.data.log_parts import (
    assistant,
    dicts,
    first_text,
    first_value,
    from_json,
    html_text,
    text_at,
    to_number,
    user,
    value_at,
    values_at,
)
from lib.data.log_times import to_time

RASA_TRIGGERS = ("/session_start", "EXTERNAL: ")
TICKET_ACCOUNTS = ("requester", "submitter", "assignee")  # of Zendesk
DIALOGFLOW_TEXTS = (
    "queryResult,query_result.responseMessages,response_messages[].text.text[]"
)
DIALOGFLOW_SPEECH = (
    "queryResult,query_result.responseMessages,response_messages[]"
    ".outputAudioText,output_audio_text.text,ssml"
)
DIALOGFLOW_SESSION = (  # of an entry of Cloud Logging
    "labels.session_id|jsonPayload.session"
    "|jsonPayload.queryResult.diagnosticInfo.Session Id"
)
DIALOGFLOW_ES_TEXTS = (
    "[].text.text[]|[].simpleResponses.simpleResponses[].displayText,textToSpeech"
)
ES_FIELD = re.compile(  # in the log of Dialogflow ES; what stands deeper repeats it
    r'^ {0,4}(?P<name>session_id|resolved_query|speech): "(?P<value>(?:[^"\\\n]|\\.)*)"$',
    re.M,
)
ES_TIMES = ("timestamp", "createTime")
EVENT_NAME = re.compile(r"WELCOME|[A-Z]{2,30}(?:_[A-Z]{2,30}){1,5}")  # of Dialogflow


def read_rasa(record: dict, source) -> list[Dialog]:
    """Rasa's tracker: events user, bot and agent are talk; a session that starts begins a dialog.

    An agent is a person who took over.
    """
    sender = str(record["sender_id"])
    sessions: list[list[Utterance]] = [[]]
    # The titles of buttons that were shown, by their payloads.
    buttons: dict[Any, Any] = {}
    events = list(record["events"])
    events = by_times(events, [rasa_time(event) for event in events])
    for event in events:
        kind = event.get("event")
        if kind == "session_started" and sessions[-1]:
            sessions.append([])
        text = event.get("text") or None
        if kind == "user" and text and text.startswith(RASA_TRIGGERS):
            source.exclude("utterances", "are triggers, which nobody said")
            continue
        if kind == "user" and text and text.startswith("/") and not sessions[-1]:
            source.exclude("utterances", "are what a widget sends when it opens")
            continue
        for button in values_at(event, "data.buttons[]"):
            buttons[value_at(button, "payload")] = value_at(button, "title")
        if kind in ("user", "bot", "agent"):
            role = "assistant" if kind == "bot" else kind
            # Who pressed a button with a command saw its title.
            if role == "user" and text and text.startswith("/"):
                text = buttons.get(text) or text
            time = rasa_time(event)
            sessions[-1].append(Utterance(kind, role, text, time=time))
    return [Dialog(sender, utterances) for utterances in sessions]


def rasa_time(event: dict) -> datetime | None:
    """When an event of Rasa was; MongoDB may write the number as a text in a mapping."""
    time = event.get("timestamp")
    if isinstance(time, dict):
        time = next(iter(time.values()), None)
    seconds = to_number(time)
    return to_time(time if seconds is None else seconds)


def read_rasa_rows(rows: list[dict], source) -> list[Dialog]:
    """Rasa's SQL tracker store: a row per event, as JSON in `data`."""
    events = []
    for row in rows:
        sender = first_value(row, ("sender_id", "conversation_id"))
        events.append(json.loads(row["data"]) | {"sender_id": sender})
    return read_rasa_events(events, source)


def read_rasa_events(rows: list[dict], source) -> list[Dialog]:
    """Rasa's events of all senders, as its event broker passes them on."""
    events: dict[str, list[dict]] = {}
    for row in rows:
        events.setdefault(str(row["sender_id"]), []).append(row)
    dialogs = []
    for sender, sender_events in events.items():
        dialogs += read_rasa({"sender_id": sender, "events": sender_events}, source)
    return dialogs


def read_dialogflow(record: dict, source) -> list[Dialog]:
    """Dialogflow CX: a list of conversations."""
    dialogs = []
    for item in record["conversations"]:
        dialogs += read_dialogflow_conversation(item, source)
    return dialogs


def read_dialogflow_conversation(record: dict, source) -> list[Dialog]:
    """Dialogflow CX: each interaction has the user's request and the bot's messages."""
    interactions = sorted(
        record["interactions"], key=lambda i: str(i.get("createTime", ""))
    )
    dialog = Dialog(str(record.get("name") or ""), [])
    for interaction in interactions:
        dialog.utterances += dialogflow_exchange(
            interaction, interaction.get("createTime")
        )
    return [dialog]


def read_dialogflow_rows(rows: list[dict], source) -> list[Dialog]:
    """Dialogflow CX in BigQuery: a row per turn, in no order."""
    turns: dict[str, list[dict]] = {}
    for row in rows:
        turns.setdefault(str(row["conversation_name"]), []).append(row)
    dialogs = []
    for name, items in turns.items():
        items.sort(key=lambda row: int(row["turn_position"]))
        dialog = Dialog(name, [])
        for row in items:
            dialog.utterances += dialogflow_exchange(row, row.get("request_time"))
            feedback = from_json(row.get("bot_answer_feedback"))
            opinion = None
            if isinstance(feedback, dict):
                opinion = first_value(feedback, ("rating", "feedback"), str | int)
            if opinion:
                rating = Rating(None, "feedback", opinion)
                dialog.utterances[-1].ratings.append(rating)
        dialogs.append(dialog)
    return dialogs


def dialogflow_exchange(interaction: dict, time: Any) -> list[Utterance]:
    """What the user asked and the bot answered; payloads are no words."""
    request = from_json(interaction.get("request")) or {}
    response = from_json(interaction.get("response")) or {}
    query = request.get("queryInput") or request.get("query_input") or {}
    derived = from_json(interaction.get("derived_data")) or {}
    words = (query.get("text") or {}).get("text")
    result = response.get("queryResult") or response.get("query_result") or {}
    words = words or result.get("transcript")  # of what was spoken
    words = (
        words or interaction.get("requestUtterances") or derived.get("userUtterances")
    )
    parts = [*values_at(interaction, "partialResponses[]"), response]  # said one by one
    texts = []
    for part in parts:
        texts += dialogflow_texts(part)
    reply = "\n".join(texts) or interaction.get("responseUtterances")
    reply = reply or derived.get("agentUtterances")
    utterances = []
    if words:
        utterances.append(user(words, time=to_time(time)))
    utterances.append(assistant(reply or None, "agent", time=to_time(time)))
    opinion = value_at(interaction, "answerFeedback.rating")
    if opinion and opinion != "RATING_UNSPECIFIED":
        utterances[-1].ratings.append(Rating(None, "feedback", opinion))
    return utterances


def dialogflow_texts(response: dict) -> list[str]:
    """What a response of Dialogflow CX says: its texts, or what it only speaks."""
    texts = values_at(response, DIALOGFLOW_TEXTS)
    if not texts:
        texts = map(html_text, values_at(response, DIALOGFLOW_SPEECH))  # SSML or text
    return [text for text in texts if text]


def read_dialogflow_log(rows: list[dict], source) -> list[Dialog]:
    """Dialogflow CX in Cloud Logging: a response repeats what the user said to it.

    Raises:
        UnknownFormat: where nothing tells the session.
    """
    dialogs: dict[str, Dialog] = {}
    for row in in_time(rows, ("timestamp",)):
        response = row.get("jsonPayload") or {}
        result = response.get("queryResult")
        if not result:
            continue  # a request, whose words the response repeats
        name = text_at(row, DIALOGFLOW_SESSION)
        if not name:
            raise UnknownFormat(
                "has responses of Dialogflow CX, and does not say which are of one session",
                fix="export the labels of each entry, too",
            )
        time = to_time(row.get("timestamp"))
        name = name.rpartition("/")[2]
        dialog = dialogs.setdefault(name, Dialog(name, []))
        words = first_value(result, ("text", "transcript"), str)
        if words:
            dialog.utterances.append(user(words, time=time))
        reply = "\n".join(dialogflow_texts(response)) or None
        dialog.utterances.append(assistant(reply, "agent", time=time))
    return list(dialogs.values())


def read_bot_framework(rows: list[dict], source) -> list[Dialog]:
    """Bot Framework: a list of activities, of which messages are talk."""
    dialogs: dict[str, Dialog] = {}
    for activity in rows:
        name = str((activity.get("conversation") or {}).get("id") or "")
        dialog = dialogs.setdefault(name, Dialog(name, []))
        add_activity(dialog, activity, source)
    return list(dialogs.values())


def read_bot_framework_wrapped(record: dict, source) -> list[Dialog]:
    """Bot Framework: the same below `transcript` or `activities`."""
    return read_bot_framework(record.get("transcript") or record["activities"], source)


def add_activity(dialog: Dialog, activity: dict, source) -> None:
    """Add an activity that is a message, or people's rating of one or of the dialog."""
    account = activity.get("from") or {}
    role = {"bot": "assistant", "user": "user", 0: "assistant", 1: "user"}.get(
        account.get("role")
    )
    value = activity.get("value")
    if activity.get("type") in ("messageUpdate", "messageDelete"):
        for utterance in dialog.utterances:
            if utterance.id == activity.get("id"):
                utterance.text = activity.get("text") or None
        source.exclude("utterances", "are earlier forms of edited or deleted messages")
    elif activity.get("type") == "message":
        speaker = str(account.get("name") or account.get("role") or account.get("id"))
        if account.get("role") in (0, 1):
            speaker = "user" if account["role"] else "bot"
        time = to_time(activity.get("timestamp"))
        text = re.sub("</?at>", "", activity.get("text") or "")  # marks of mentions
        text = text or html_text(activity.get("speak"))  # it may be spoken only
        utterance = Utterance(speaker, role, text or None, time=time)
        utterance.id = first_text(activity, ["id"])
        dialog.utterances.append(utterance)
    elif value_at(value, "actionName") == "feedback":
        reaction = value_at(value, "actionValue.reaction")
        for utterance in dialog.utterances:
            if utterance.id == activity.get("replyToId"):
                utterance.ratings.append(Rating(None, "feedback", reaction))
    elif activity.get("valueType") == "CSATSurveyResponse" and isinstance(value, dict):
        rating = first_value(value, ("score", "rating", "value"))
        dialog.ratings.append(Rating(None, "csat", rating))
    else:
        source.exclude("utterances", "are no messages (typing, traces, events)")


def read_copilot_studio(record: dict, source) -> list[Dialog]:
    """Copilot Studio: a transcript as JSON in the cell `content`."""
    activities = values_at(record, "content,Content.activities[]")
    names = ("conversationtranscriptid", "ConversationTranscriptId", "Name")
    dialog = Dialog(first_text(record, [*names, "ConversationTranscript"]) or "", [])
    for activity in activities:
        add_activity(dialog, activity, source)
    return [dialog]


def read_pva_session(record: dict, source) -> list[Dialog]:
    """Copilot Studio's table of sessions: "User says: ...; Bot says: ...;" in a cell."""
    parts = re.split(r"(?:^|;)\s*(User|Bot) says:", record["ChatTranscript"])[1:]
    dialog = Dialog(str(record.get("SessionId") or ""), [])
    for speaker, words in zip(parts[::2], parts[1::2], strict=True):
        text = words.strip().removesuffix(";").strip() or None
        dialog.utterances.append(user(text) if speaker == "User" else assistant(text))
    return [dialog]


def read_botpress_messages(rows: list[dict], source) -> list[Dialog]:
    """Botpress, version 12: what nobody is the author of is the bot's."""
    dialogs: dict[str, Dialog] = {}
    for row in rows:
        name = str(row["conversationId"])
        dialog = dialogs.setdefault(name, Dialog(name, []))
        words = text_at(row, "payload.text|payload.markdown")
        by_user = first_text(row, ["authorId"])
        utterance = user(words) if by_user else assistant(words)
        utterance.time = to_time(row["sentOn"])
        dialog.utterances.append(utterance)
    return list(dialogs.values())


def read_intercom_rows(rows: list[dict], source) -> list[Dialog]:
    """Intercom: a conversation a record.

    Raises:
        UnknownFormat: where no bot answers, and several people do.
    """
    dialogs = []
    whole = []
    for row in rows:
        begins = row.get("source") or row.get("conversation_message")
        if begins and row.get("conversation_parts") is not None:
            whole.append(row)
            dialogs += read_intercom(row, source)
    source.exclude("dialogs", "are in another shape", len(rows) - len(whole))
    written = [utterance for dialog in dialogs for utterance in dialog.utterances]
    has_bot = any(utterance.role == "assistant" for utterance in written)
    staff = sorted({u.speaker for u in written if u.role is None})
    if len(staff) > 1 and not has_bot and not source.report.options.bot:
        raise UnknownFormat(
            f"has answers by {', '.join(staff[:8])}, some of whom may be people",
            fix=f"name the bot: BOT={staff[0]!r}, several with commas between them",
        )
    name_namesakes(dialogs)
    return dialogs


def read_intercom(record: dict, source) -> list[Dialog]:
    """Intercom: `source` and comments, as HTML; what an admin writes is not the bot's."""
    parts = record["conversation_parts"]
    if isinstance(parts, dict):
        parts = parts["conversation_parts"]
    dialog = Dialog(str(record["id"]), [])
    first = {
        **(record.get("source") or record["conversation_message"]),
        "part_type": "comment",
        "created_at": record.get("created_at"),
    }
    for part in [first, *parts]:
        if part.get("part_type") not in (
            "comment",
            "open",
            "close",
            "quick_reply",
            "assignment",
        ):
            source.exclude("utterances", "are notes and other parts that are no talk")
            continue
        text = None if part.get("redacted") else html_text(part.get("body"))
        if text is None or part["part_type"] == "assignment":
            source.exclude("utterances", "are notes and other parts that are no talk")
            continue
        author = part.get("author") or {}
        kind = author.get("type")
        role = {
            "bot": "assistant",
            "user": "user",
            "lead": "user",
            "contact": "user",
        }.get(kind)
        if str(author.get("email")).startswith("operator+"):
            role = "assistant"  # Intercom's own bot, under an account of staff
        speaker = str(author.get("name") or kind)
        dialog.utterances.append(
            Utterance(speaker, role, text, time=to_time(part.get("created_at")))
        )
    # The first is of the bot alone, the second of all who answered.
    rating = value_at(record, "ai_agent.rating|conversation_rating.rating")
    if rating is not None:
        dialog.ratings.append(Rating(None, "rating", rating))
    return [dialog]


def read_zendesk_chats(record: dict, source) -> list[Dialog]:
    """Zendesk Chat: `history` of a chat, of which chat.msg is talk; ratings are good or bad."""
    dialogs = []
    chats = [record] if "history" in record else record.get("chats")
    for chat in chats or record["docs"].values():
        dialog = Dialog(str(chat.get("id") or ""), [])
        if "history" not in chat:
            source.exclude("dialogs", "are messages left while nobody answered")
            continue
        for event in chat["history"]:
            if event.get("type") != "chat.msg":
                source.exclude("utterances", "are notices")
                continue
            kind = str(event.get("sender_type")).lower()
            # A trigger is an automatic message of the shop, such as a greeting.
            role = {"visitor": "user", "agent": "assistant", "trigger": None}.get(
                kind, "tool"
            )
            time = to_time(event.get("timestamp"))
            speaker = str(event.get("name") or kind)
            dialog.utterances.append(
                Utterance(speaker, role, event.get("msg"), time=time)
            )
        if chat.get("rating"):
            dialog.ratings.append(Rating(None, "rating", chat["rating"]))
        dialogs.append(dialog)
    if not source.report.options.bot:
        forget_people(dialogs)
    return dialogs


def read_zendesk_tickets(rows: list[dict], source) -> list[Dialog]:
    """Zendesk's tickets: public comments are talk; who did not ask may be the bot or staff."""
    tickets: list[dict] = []
    accounts: list[dict] = []
    for row in rows:
        tickets += dicts(row.get("tickets")) or [row]
        accounts += dicts(row.get("users"))
    for ticket in tickets:
        of_ticket = [ticket.get(name) for name in TICKET_ACCOUNTS]
        accounts += [account for account in of_ticket if isinstance(account, dict)]
    names = {account.get("id"): account.get("name") for account in accounts}
    dialogs = []
    for ticket in tickets:
        dialog = Dialog(str(ticket.get("id") or ""), [])
        requester = ticket.get("requester_id") or value_at(ticket, "requester.id")
        for comment in dicts(ticket.get("comments")):
            if str(comment.get("public")).lower() == "false":
                source.exclude("utterances", "are internal notes")
                continue
            author = comment["author_id"]
            dialog.utterances.append(
                Utterance(
                    speaker=str(names.get(author) or author),
                    role="user" if author == requester else "assistant",
                    text=first_text(comment, ["plain_body", "body"]),
                    time=to_time(comment.get("created_at")),
                )
            )
        score = value_at(ticket, "satisfaction_rating.score")
        if score in ("good", "bad"):
            dialog.ratings.append(Rating(None, "rating", score))
        dialogs.append(dialog)
    if not source.report.options.bot:
        forget_people(dialogs)
    return dialogs


def read_twilio_sms(record: dict, source) -> list[Dialog]:
    """Twilio's log of short messages: a dialog per number of a user and number of ours."""
    return read_twilio_sms_rows(record["messages"], source)


def read_twilio_sms_rows(rows: list[dict], source) -> list[Dialog]:
    """The same as a list, or as the table that Twilio's console exports."""
    dialogs: dict[tuple[str, str], Dialog] = {}
    for row in rows:
        message = {snake_case(name): value for name, value in row.items()}
        if message.get("status") in ("failed", "undelivered", "canceled"):
            source.exclude("utterances", "did not arrive")
            continue
        by_user = message["direction"] == "inbound"
        ends = (str(message["from"]), str(message["to"]))
        numbers = ends if by_user else ends[::-1]
        dialog = dialogs.setdefault(numbers, Dialog(numbers[0], []))
        words = message.get("body") or None
        utterance = user(words) if by_user else assistant(words)
        sent = first_value(message, ("date_sent", "sent_date", "date_created"))
        utterance.time = to_time(sent)
        dialog.utterances.append(utterance)
    return list(dialogs.values())


def read_genesys(record: dict, source) -> list[Dialog]:
    """Genesys Cloud: what is said inside is the bot's until an agent joins, if a bot took part."""
    starts: dict[str, list[float]] = {}
    for participant in dicts(record.get("participants")):
        purpose = str(participant.get("participantPurpose"))
        start = to_number(participant.get("startTimeMs")) or 0
        starts.setdefault(purpose, []).append(start)
    agent_joins = min(starts.get("agent", [math.inf]))
    has_bot = bool({"bot", "botflow", "ivr", "workflow"} & set(starts))
    dialog = Dialog(str(record.get("conversationId") or ""), [])
    for phrase in values_at(record, "transcripts[].phrases[]"):
        purpose = phrase.get("participantPurpose")
        time = to_number(phrase.get("startTimeMs"))
        speaker, role = str(purpose), None
        if purpose in ("external", "customer"):
            speaker, role = "user", "user"
        elif purpose == "bot" or (has_bot and (time or 0) < agent_joins):
            speaker, role = "bot", "assistant"
        text = first_text(phrase, ["decoratedText", "text"])
        dialog.utterances.append(Utterance(speaker, role, text, number=time))
    return [dialog]


def read_dialogflow_es(rows: list[dict], source) -> list[Dialog]:
    """Dialogflow ES: an answer a row; the session stands beside it or in the names of contexts.

    Raises:
        UnknownFormat: where nothing tells the session.
    """
    dialogs: dict[str, Dialog] = {}
    for row in in_time(rows, ES_TIMES):
        result = row.get("queryResult") or {}
        paths = [row.get("session"), *values_at(result, "outputContexts[].name")]
        sessions = [re.search("sessions/([^/]+)", str(path)) for path in paths]
        named = next(filter(None, sessions), None)
        name = named[1] if named else row.get("session")
        if not name:
            raise UnknownFormat(
                "has answers of Dialogflow ES, and does not say which are of one session",
                fix="write the session of each into a field 'session'",
            )
        time = to_time(first_value(row, ES_TIMES))
        words = []
        for message in of_one_platform(result):
            words += values_at([message], DIALOGFLOW_ES_TEXTS)
            words += values_at(message, "quickReplies.title")
        words = words or values_at(result, "fulfillmentText")
        reply = "\n".join(words) or None
        kinds = {kind for message in of_one_platform(result) for kind in message}
        if not reply and kinds <= {"text", "platform"}:
            reply = ""  # an answer without words, and nothing else to see
        dialog = dialogs.setdefault(name, Dialog(name, []))
        question = result.get("queryText")
        if question and not EVENT_NAME.fullmatch(question):
            dialog.utterances.append(user(question, time=time))
        dialog.utterances.append(assistant(reply, time=time))
    return list(dialogs.values())


def read_dialogflow_es_log(rows: list[dict], source) -> list[Dialog]:
    """Dialogflow ES in Cloud Logging: each answer is a text that lists its fields."""
    answers = []
    for row in rows:
        text = str(row.get("textPayload"))
        if not text.startswith("Dialogflow Response"):
            continue  # a request, whose words the answer repeats
        fields: dict[str, str] = {}
        for match in ES_FIELD.finditer(text):
            fields.setdefault(match["name"], without_escapes(match["value"]))
        result = {
            "queryText": fields.get("resolved_query"),
            "fulfillmentText": fields.get("speech"),
        }
        about = {"session": fields.get("session_id"), "timestamp": row.get("timestamp")}
        answers.append({**about, "queryResult": result})
    return read_dialogflow_es(answers, source)


def without_escapes(text: str) -> str:
    r"""A text without the escapes of Protocol Buffers, which write letters as bytes.

    >>> without_escapes(r"Caf\303\251 \"Ada\"")
    'Café "Ada"'
    """
    letters = text.encode().decode("unicode_escape", errors="replace")
    return letters.encode("latin-1", errors="replace").decode(errors="replace")


def in_time(rows: list[dict], names: tuple[str, ...]) -> list[dict]:
    """Rows of exchanges by their times, where all have one: a log may have the newest first."""
    return by_times(rows, [to_time(first_value(row, names)) for row in rows])


def by_times(rows: list[dict], times: list[datetime | None]) -> list[dict]:
    """Rows in the order of these times, or as they are where one is missing."""
    if None in times:
        return rows
    order = sorted(range(len(rows)), key=times.__getitem__)
    return [rows[position] for position in order]


def of_one_platform(result: dict) -> list[dict]:
    """The messages of an answer of Dialogflow ES for one platform, as its user sees them.

    Those for no platform are for all that have none of their own.
    """
    messages = dicts(result.get("fulfillmentMessages"))
    platforms = [message.get("platform") for message in messages]
    seen = None if None in platforms else next(iter(platforms), None)
    return [message for message in messages if message.get("platform") == seen]


def forget_people(dialogs: list[Dialog]) -> None:
    """Of several names that answer, make those unknown that are no bot's by their words.

    Raises:
        UnknownFormat: where no name is a bot's by its words.
    """
    answers = []
    for dialog in dialogs:
        answers += [u for u in dialog.utterances if u.role == "assistant"]
    names = sorted({utterance.speaker for utterance in answers})
    bots = {name for name in names if speaker_role(name) == "assistant"}
    if len(names) > 1 and not bots:
        raise UnknownFormat(
            f"has answers by {', '.join(names[:8])}, some of whom may be people",
            fix=f"name the bot: BOT={names[0]!r}, several with commas between them",
        )
    for utterance in answers:
        if len(names) > 1 and utterance.speaker not in bots:
            utterance.role = None


def name_namesakes(dialogs: list[Dialog]) -> None:
    """Give people a name of their own who write under that of the bot, as at Crisp."""
    written = [utterance for dialog in dialogs for utterance in dialog.utterances]
    bots = {u.speaker for u in written if u.role == "assistant"}
    for utterance in written:
        if utterance.role is None and utterance.speaker in bots:
            utterance.speaker += " (staff)"
