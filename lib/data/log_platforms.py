"""Logs of platforms for bots and of customer support, which need code of their own.

For another platform first try an entry in `chat_shapes.toml`.
"""

import json
import re
from typing import Any

from lib.data.dialogs import Dialog, Rating, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat
from lib.data.log_parts import (
    assistant,
    dicts,
    first_text,
    first_value,
    from_json,
    html_text,
    user,
    value_at,
)
from lib.data.log_times import to_time


def read_rasa(record: dict, source) -> list[Dialog]:
    """Rasa's tracker: events user and bot are talk; a session that starts begins a dialog."""
    sender = str(record["sender_id"])
    sessions: list[list[Utterance]] = [[]]
    events = list(record["events"])
    if all(event.get("timestamp") for event in events):
        events.sort(key=lambda event: event["timestamp"])
    for event in events:
        kind = event.get("event")
        if kind == "session_started" and sessions[-1]:
            sessions.append([])
        if kind in ("user", "bot"):
            role = "user" if kind == "user" else "assistant"
            time = to_time(event.get("timestamp"))
            sessions[-1].append(
                Utterance(kind, role, event.get("text") or None, time=time)
            )
    return [Dialog(sender, utterances) for utterances in sessions]


def read_rasa_rows(rows: list[dict], source) -> list[Dialog]:
    """Rasa's SQL tracker store: a row per event, as JSON in `data`."""
    events = [json.loads(row["data"]) | {"sender_id": row["sender_id"]} for row in rows]
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
    words = (
        words or interaction.get("requestUtterances") or derived.get("userUtterances")
    )
    result = response.get("queryResult") or response.get("query_result") or {}
    messages = result.get("responseMessages") or result.get("response_messages")
    texts = []
    for message in dicts(messages):
        texts += (message.get("text") or {}).get("text") or []
    reply = "\n".join(texts) or interaction.get("responseUtterances")
    reply = reply or derived.get("agentUtterances")
    utterances = []
    if words:
        utterances.append(user(words, time=to_time(time)))
    utterances.append(assistant(reply or None, "agent", time=to_time(time)))
    return utterances


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
    if activity.get("type") == "message":
        speaker = str(account.get("name") or account.get("role") or account.get("id"))
        if account.get("role") in (0, 1):
            speaker = "user" if account["role"] else "bot"
        time = to_time(activity.get("timestamp"))
        utterance = Utterance(speaker, role, activity.get("text") or None, time=time)
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
    activities = from_json(record["content"])["activities"]
    name = (
        first_text(record, ["conversationtranscriptid", "ConversationTranscriptId"])
        or ""
    )
    dialog = Dialog(name, [])
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


def read_intercom(record: dict, source) -> list[Dialog]:
    """Intercom: `source` and comments, as HTML; what an admin writes is not the bot's."""
    parts = record["conversation_parts"]
    if isinstance(parts, dict):
        parts = parts["conversation_parts"]
    dialog = Dialog(str(record["id"]), [])
    first = {
        **record["source"],
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
        text = html_text(part.get("body"))
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
        speaker = str(author.get("name") or kind)
        dialog.utterances.append(
            Utterance(speaker, role, text, time=to_time(part.get("created_at")))
        )
    rating = (record.get("conversation_rating") or {}).get("rating")
    if rating is not None:
        dialog.ratings.append(Rating(None, "rating", rating))
    return [dialog]


def read_zendesk_chats(record: dict, source) -> list[Dialog]:
    """Zendesk Chat: `history` of a chat, of which chat.msg is talk; ratings are good or bad."""
    dialogs = []
    for chat in record["chats"]:
        dialog = Dialog(str(chat.get("id") or ""), [])
        for event in chat["history"]:
            if event.get("type") != "chat.msg":
                source.exclude("utterances", "are notices")
                continue
            kind = str(event.get("sender_type")).lower()
            role = {"visitor": "user", "agent": "assistant"}.get(kind, "tool")
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
