"""Corpora of dialogs between people, or people and bots, as they are published."""

import html
import re
from itertools import zip_longest
from typing import Any

from lib.data.dialogs import Dialog, Rating, Utterance
from lib.data.file_contents import UnknownFormat
from lib.data.log_assistants import branches
from lib.data.log_messages import (
    NUMBERED_REPLY,
    REPLY_FIELDS,
    USER_TEXT,
    exchange_keys,
    message_list,
    read_record,
    read_utterance,
)
from lib.data.log_parts import (
    MODEL,
    as_script,
    assistant,
    dicts,
    first_text,
    first_value,
    from_json,
    read_ratings,
    to_number,
    user,
    values_at,
)
from lib.data.log_times import to_time

LABELS = ("rating", "number", "chatmessage")  # what a label of Label Studio holds
NOT_SUBMITTED = ("discarded", "draft")  # answers in Argilla
SOUND = re.compile(r"<[^<>]{1,40}>\.? ?/?")  # of Switchboard: <Laughter>.
TOPICAL_RATINGS = {"Poor": 1, "Not Good": 2, "Passable": 3, "Good": 4, "Excellent": 5}


def read_convokit(rows: list[dict], source) -> list[Dialog]:
    """ConvoKit: utterances with reply-to; what speakers and conversations are stands beside."""
    speakers = source.sibling("speakers.json", "users.json") or {}
    conversations = source.sibling("conversations.json") or {}
    groups: dict[str, list[Utterance]] = {}
    for row in rows:
        speaker = row.get("speaker") or row.get("user")
        account = speakers.get(str(speaker)) or {}
        about = account.get("meta") or (account if "meta" not in account else {})
        message = {
            **row,
            "speaker": speaker,
            "meta": {**about, **(row.get("meta") or {})},
        }
        message["timestamp"] = row.get("timestamp")
        name = str(first_value(row, ("conversation_id", "root")) or row["id"])
        groups.setdefault(name, []).append(read_utterance(message, "speaker", "text"))
    dialogs = []
    for name, utterances in groups.items():
        about = conversations.get(name) or {}
        ratings = read_ratings(about.get("meta") or about)
        group = [Dialog(name, utterances)]
        if any(utterance.reply_to for utterance in utterances):
            group = branches(name, utterances)
        for dialog in group:
            dialog.ratings = ratings
            dialogs.append(dialog)
    return dialogs


def read_blended_skill_talk(record: dict, source) -> list[Dialog]:
    """Blended Skill Talk: two people; the second one, who is guided, is taken for the bot."""
    utterances = []
    for name, speaker in (("free_turker_utterance", 0), ("guided_turker_utterance", 1)):
        if record.get(name):
            utterances.append(two_people(speaker, record[name]))
    utterances += [two_people(speaker, text) for speaker, text in record["dialog"]]
    return [Dialog("", utterances, facts=personas(record))]


def two_people(speaker: int, text: str) -> Utterance:
    """An utterance of speaker 0 or 1 of a dialog between people."""
    if speaker == 0:
        return Utterance("0", "user", text)
    return Utterance("1", "assistant", text)


def personas(record: dict) -> list[str]:
    """The persona of the second speaker."""
    lists = record.get("personas") or []
    persona = lists[-1] if lists else []
    return list(persona) if isinstance(persona, list) else [persona]


def read_blended_skill_talk_hub(record: dict, source) -> list[Dialog]:
    """Blended Skill Talk as on the Hugging Face hub: two lists, to be woven together."""
    utterances = [
        two_people(n % 2, t)
        for n, t in enumerate(record.get("previous_utterance") or [])
    ]
    texts = zip(record["free_messages"], record["guided_messages"], strict=False)
    for free, guided in texts:
        utterances += [two_people(0, free), two_people(1, guided)]
    return [Dialog("", utterances, facts=list(record.get("personas") or []))]


def read_empathetic(rows: list[dict], source) -> list[Dialog]:
    """EmpatheticDialogues: commas are _comma_; the second speaker, the listener, is the bot."""
    dialogs: dict[str, Dialog] = {}
    first_speaker = {}
    rows = sorted(rows, key=lambda row: int(row["utterance_idx"]))
    if any(row.get("selfeval") for row in rows):
        reason = "selfeval holds marks of both people, and does not say of what"
        source.guess("columns", "rating: none", reason)
    for row in rows:
        name = row["conv_id"]
        dialog = dialogs.setdefault(name, Dialog(name, []))
        speaker = first_speaker.setdefault(name, row["speaker_idx"])
        text = row["utterance"].replace("_comma_", ",")
        if row["speaker_idx"] == speaker:
            dialog.utterances.append(Utterance("speaker", "user", text))
        else:
            dialog.utterances.append(Utterance("listener", "assistant", text))
    return list(dialogs.values())


def read_personachat_hub(rows: list[dict], source) -> list[Dialog]:
    """Persona-Chat on the Hugging Face hub: a row per reply, the last of its candidates."""
    last_rows = {}
    for row in sorted(rows, key=lambda row: int(row["utterance_idx"])):
        last_rows[str(row["conv_id"])] = row
    dialogs = []
    for name, row in last_rows.items():
        texts = [*row["history"], row["candidates"][-1]]
        utterances = [two_people(number % 2, text) for number, text in enumerate(texts)]
        dialogs.append(Dialog(name, utterances, facts=list(row["personality"])))
    return dialogs


def read_topical_chat(record: dict, source) -> list[Dialog]:
    """Topical-Chat: two people, agent_1 and agent_2; neither is a bot by its name."""
    dialog = Dialog(first_text(record, ["id"]) or "", [])
    for message in record["content"]:
        ratings = []
        if message.get("turn_rating") in TOPICAL_RATINGS:
            value = TOPICAL_RATINGS[message["turn_rating"]]
            ratings = [Rating(None, "turn_rating", value)]
        utterance = Utterance(
            message["agent"], None, message["message"], ratings=ratings
        )
        dialog.utterances.append(utterance)
    for speaker, word in (record.get("conversation_rating") or {}).items():
        if word in TOPICAL_RATINGS:
            rating = Rating(speaker, "conversation_rating", TOPICAL_RATINGS[word])
            dialog.ratings.append(rating)
    return [dialog]


def read_text_list(record: dict, source) -> list[Dialog]:
    """DailyDialog, LIMA, UltraChat as lists of texts: two in turn; the second is the bot."""
    texts = first_value(record, ("dialog", "conversations", "data", "utterances"))
    return [
        Dialog("", [two_people(number % 2, text) for number, text in enumerate(texts)])
    ]


def read_daily_dialog(record: dict, source) -> list[Dialog]:
    """DailyDialog as messages without a speaker: two in turn; the second is the bot."""
    texts = [message["text"] for message in record["dialogue"]]
    return read_text_list({"dialog": texts}, source)


def read_column_turns(record: dict, source) -> list[Dialog]:
    """MultiWOZ and Schema-Guided on the hub: a list of texts, and one of speakers as numbers."""
    sides = {"0": ("USER", "user"), "1": ("SYSTEM", "assistant")}
    turns = record["turns"]
    dialog = Dialog(str(record["dialogue_id"]), [])
    for speaker, text in zip(turns["speaker"], turns["utterance"], strict=True):
        name, role = sides.get(str(speaker), (str(speaker), None))
        dialog.utterances.append(Utterance(name, role, text))
    return [dialog]


def read_soda(record: dict, source) -> list[Dialog]:
    """SODA and Multi-Session Chat: a list of texts and a list of their speakers."""
    speakers = first_value(record, ("speakers", "speaker"))
    pairs = zip(speakers, record["dialogue"], strict=True)
    return [Dialog("", [Utterance(speaker, None, text) for speaker, text in pairs])]


def read_dstc9(rows: list[dict], source) -> list[Dialog]:
    """DSTC9 track 1: contexts in logs.json, the reply to each in labels.json beside it."""
    labels = source.sibling("labels.json") or []
    dialogs = []
    for number, row in enumerate(rows):
        utterances = []
        for message in row["messages"]:
            role = {"U": "user", "S": "assistant"}[message["speaker"]]
            utterances.append(Utterance(message["speaker"], role, message["text"]))
        label = labels[number] if number < len(labels) else {}
        if label.get("response"):
            utterances.append(Utterance("S", "assistant", label["response"]))
        dialogs.append(Dialog("", utterances))
    return dialogs


def read_dstc7(record: dict, source) -> list[Dialog]:
    """DSTC7 track 1: the messages so far, and the correct reply, by who did not speak last."""
    messages = record["messages-so-far"]
    utterances = [Utterance(m["speaker"], None, m["utterance"]) for m in messages]
    others = {m["speaker"] for m in messages} - {messages[-1]["speaker"]}
    replies = [o["utterance"] for o in record["options-for-correct-answers"]]
    speaker = others.pop() if len(others) == 1 else "reply"
    utterances.append(Utterance(speaker, None, replies[0], references=replies[1:]))
    return [Dialog(str(record.get("example-id") or ""), utterances)]


def read_switchboard(rows: list[dict], source) -> list[Dialog]:
    """Switchboard: callers A and B; several rows are parts of one utterance."""
    dialogs: dict[str, Dialog] = {}
    said: dict[tuple, Utterance] = {}
    rows = sorted(
        rows, key=lambda r: (int(r["utterance_index"]), int(r["subutterance_index"]))
    )
    for row in rows:
        name = str(row["conversation_no"])
        dialog = dialogs.setdefault(name, Dialog(name, []))
        key = (name, row["utterance_index"], row["caller"])
        if SOUND.fullmatch(row["text"]):
            source.exclude("utterances", "are sounds")
        elif key in said:
            said[key].text += f" {row['text']}"
        else:
            said[key] = Utterance(row["caller"], None, row["text"])
            dialog.utterances.append(said[key])
    return list(dialogs.values())


def read_label_studio(record: dict, source) -> list[Dialog]:
    """Label Studio: a dialog in `data`, and its ratings by each annotator.

    Where the annotator talks to a model while labelling, the dialog is in the annotation.
    """
    data = record["data"]
    compared = compared_replies(record, source)
    if compared:
        return compared
    result = read_record(data)
    before = result[0].utterances if result else []
    chats = label_studio_chats(record, before, source)
    if chats:
        return chats
    if result is None and not exchange_keys(data):
        source.exclude("dialogs", "are tasks without messages")
        return []
    dialog = result[0] if result else prompt_and_reply(data)
    dialog.id = str(record.get("id") or "")
    dialog.system = dialog.system or first_value(data, ("system",), str)
    replies = [str(data[name]).strip() for name in REPLY_FIELDS if name in data]
    for prediction in record.get("predictions") or []:
        reply = predicted_reply(prediction)
        if reply and dialog.utterances and dialog.utterances[-1].role != "assistant":
            dialog.utterances.append(assistant(reply))
            dialog.system = first_value(prediction, ("model_version",), str)
            replies.append(reply.strip())
    rated: Dialog | Utterance = dialog
    if dialog.utterances and (dialog.utterances[-1].text or "").strip() in replies:
        # The reply beside the dialog is what was rated; the bot's words in it are context.
        rated = dialog.utterances[-1]
        dialog.utterances[:-1] = as_script(dialog.utterances[:-1])
    for rater, items in label_studio_annotations(record, source):
        labelled = labelled_utterances(items, dialog)
        for item in items:
            add_label(item, rater, labelled, rated)
    return [dialog]


def compared_replies(record: dict, source) -> list[Dialog]:
    """Two replies to the prompt of a task of Label Studio, of which annotators prefer one.

    Empty for tasks of another kind.
    """
    data = record["data"]
    question = first_value(data, ("prompt", *USER_TEXT), str)
    names = sorted(filter(NUMBERED_REPLY.fullmatch, data))
    is_compared = values_at(record, "annotations[].result[type=pairwise]")
    if not question or len(names) != 2 or not is_compared:
        return []
    opinions = []
    for rater, items in label_studio_annotations(record, source):
        selected = [(item.get("value") or {}).get("selected") for item in items]
        opinions += [(rater, side) for side in selected if side in ("left", "right")]
    dialogs = []
    for name, side in zip(names, ("left", "right"), strict=True):
        reply = assistant(data[name])
        for rater, selected in opinions:
            reply.ratings.append(Rating(rater, "preference", float(selected == side)))
        name_of_task = str(record.get("id") or "")
        dialogs.append(Dialog(name_of_task, [user(question), reply], name))
    return dialogs


def prompt_and_reply(data: dict) -> Dialog:
    """A dialog of what was asked and answered, in two fields of a task of Label Studio."""
    question, reply = exchange_keys(data)
    return Dialog("", [user(data[question]), assistant(data[reply])])


def labelled_utterances(items: list[dict], dialog: Dialog) -> dict[Any, Utterance]:
    """The utterances that are labelled as paragraphs, by the ids of their labels."""
    labelled = {}
    for item in items:
        place = to_number((item.get("value") or {}).get("start"))
        if item.get("id") and place is not None and place < len(dialog.utterances):
            labelled[item["id"]] = dialog.utterances[int(place)]
    return labelled


def label_studio_tasks(rows: list[dict]) -> list[dict]:
    """Rows of Label Studio's JSON_MIN or CSV, one per annotation of a dialog, as its tasks.

    Other rows are unchanged.
    """
    signature = {"id", "annotation_id", "annotator", "lead_time"}
    if not rows or not all(signature <= set(row) for row in rows):
        return rows
    tasks: dict[str, dict] = {}
    for row in rows:
        labels = {name: dicts(row[name]) for name in row}
        labels = {name: found for name, found in labels.items() if are_labels(found)}
        data = {name: row[name] for name in row if name not in labels}
        with_messages = any(message_list(from_json(cell)) for cell in data.values())
        if not with_messages and not (exchange_keys(data) and len(data) < len(row)):
            return rows
        result = []
        for name, found in labels.items():
            result += [{"from_name": name, "value": value} for value in found]
        empty = {"id": row["id"], "data": data, "annotations": []}
        task = tasks.setdefault(str(row["id"]), empty)
        annotation = {"completed_by": row["annotator"], "result": result}
        task["annotations"].append(annotation)
    return list(tasks.values())


def are_labels(items: list[dict]) -> bool:
    """Whether a list holds labels of Label Studio in numbers, or messages of a chat."""
    return bool(items) and all(set(item) & set(LABELS) for item in items)


def predicted_reply(prediction: dict) -> str:
    """The reply of a model to the prompt of a task, as LangChain hands it to Label Studio."""
    texts = []
    for item in prediction.get("result") or []:
        if item.get("type") == "textarea" and item.get("from_name") == "response":
            texts += (item.get("value") or {}).get("text") or []
    return "\n".join(texts)


def label_studio_chats(record: dict, before: list[Utterance], source) -> list[Dialog]:
    """The dialogs that annotators of Label Studio had, one in each annotation.

    A rating has the id of the message that it is about, or one of its own. What stood there before
    is context.
    """
    dialogs = []
    for rater, items in label_studio_annotations(record, source):
        utterances = {}
        for number, item in enumerate(items):
            message = (item.get("value") or {}).get("chatmessage")
            if message:
                key = item.get("id", number)
                utterances[key] = read_utterance(message, "role", "content")
        whole = [*as_script(before), *utterances.values()]
        dialog = Dialog(f"{record.get('id') or ''}-{rater}", whole)
        for item in items:
            add_label(item, rater, utterances, dialog)
        if utterances:
            dialogs.append(dialog)
    return dialogs


def label_studio_annotations(record: dict, source) -> list[tuple[str, list[dict]]]:
    """Who annotated a task, and what; what was cancelled is counted."""
    annotations = []
    # Older versions called them completions.
    for annotation in first_value(record, ("annotations", "completions")) or []:
        if annotation.get("was_cancelled"):
            source.exclude("ratings", "are of annotations that were cancelled")
            continue
        rater = first_value(annotation, ("completed_by", "created_username"))
        if isinstance(rater, dict):
            rater = rater.get("email") or rater.get("id")
        annotations.append((str(rater), annotation.get("result") or []))
    return annotations


def add_label(
    item: dict,
    rater: str,
    utterances: dict[Any, Utterance],
    otherwise: Dialog | Utterance,
) -> None:
    """Add a label in numbers to the utterance with its id, or else to what was rated.

    It may be a choice among numbers.
    """
    value = item.get("value") or {}
    number = value.get("rating", value.get("number"))
    choices = value.get("choices") or []
    if number is None and len(choices) == 1 and to_number(choices[0]) is not None:
        number = choices[0]
    if number is not None:
        rated = utterances.get(item.get("id"), otherwise)
        rated.ratings.append(Rating(rater, item["from_name"], number))


def read_argilla(record: dict, source) -> list[Dialog]:
    """Argilla: a reply and what it answers in `fields`; people's answers to questions about it.

    Suggestions are a model's. What the bot said earlier in a chat is context.

    Raises:
        UnknownFormat: several texts may be the reply.
    """
    fields = record["fields"]
    texts = {
        name: text for name, text in fields.items() if isinstance(text, str) and text
    }
    replies = [name for name in texts if re.search("response|reply|answer", name)]
    result = read_record({n: cell for n, cell in fields.items() if n not in texts})
    if len(replies) > 1 or not (replies or result):
        raise UnknownFormat(
            f"has records of Argilla with the fields {', '.join(fields)}: which is the reply",
            fix="export one record for each reply, with a field 'response'",
        )
    if result:
        utterances = result[0].utterances
    else:
        question = first_value(texts, ("instruction", *USER_TEXT))
        if question is None:
            raise UnknownFormat(
                f"has records of Argilla with the fields {', '.join(fields)}: which was asked",
                fix="call the field 'prompt'",
            )
        utterances = [user(question)]
    if replies:
        utterances = [*as_script(utterances), assistant(texts[replies[0]])]
    dialog = Dialog(str(record.get("id") or ""), utterances)
    dialog.system = first_value(record.get("metadata") or {}, MODEL, str)
    utterances[-1].ratings = argilla_ratings(record["responses"])
    return [dialog]


def read_argilla_columns(record: dict, source) -> list[Dialog]:
    """Argilla's records as a data set has them: a column for each field, and three per question."""
    fields = {}
    responses = {}
    for name, cell in record.items():
        question, _, part = name.partition(".")
        if part == "responses":
            details = [
                from_json(record.get(f"{name}.{d}")) for d in ("users", "status")
            ]
            responses[question] = [
                {"value": value, "user_id": person, "status": status}
                for value, person, status in zip_longest(
                    from_json(cell) or [], *(detail or [] for detail in details)
                )
            ]
        elif not part and name not in ("id", "status", "_server_id"):
            fields[name] = cell
    whole = {"id": record["id"], "fields": fields, "responses": responses}
    return read_argilla({**whole, "metadata": fields}, source)


def argilla_ratings(responses: Any) -> list[Rating]:
    """The answers in numbers: by question, or as older versions have them, by person."""
    answers = []  # question, answer, person
    if isinstance(responses, dict):
        for question, of_people in responses.items():
            answers += [(question, answer, answer) for answer in dicts(of_people)]
    for person in dicts(responses):
        for question, answer in (person.get("values") or {}).items():
            answers.append((question, answer, person))
    ratings = []
    for question, answer, person in answers:
        if person.get("status") in NOT_SUBMITTED:
            continue
        if to_number(answer.get("value")) is not None:
            rater = first_text(person, ["user_id"])
            ratings.append(Rating(rater, question, answer["value"]))
    return ratings


def read_reddit(rows: list[dict], source) -> list[Dialog]:
    """Comments of Reddit: a dialog per branch below a submission, which is not among them.

    Votes are no ratings; what was deleted is no talk.
    """
    threads: dict[str, list[Utterance]] = {}
    ids = {f"t1_{row['id']}" for row in rows}
    for row in rows:
        parent = str(row["parent_id"])
        deleted = row.get("body") in ("[deleted]", "[removed]")
        utterance = Utterance(
            speaker=str(row["author"]),
            role=None,
            text=None if deleted else html.unescape(row["body"]),
            time=to_time(row.get("created_utc")),
            id=f"t1_{row['id']}",
            reply_to=parent if parent in ids else None,
        )
        threads.setdefault(str(row["link_id"]), []).append(utterance)
    # A tree may have any number of comments on the submission itself.
    return [
        Dialog(name, utterances, is_tree=True) for name, utterances in threads.items()
    ]


def read_abcd(record: dict, source) -> list[Dialog]:
    """ABCD: a customer and an agent, who is taken for the bot; actions are no talk."""
    roles = {"customer": "user", "agent": "assistant"}
    utterances = [
        Utterance(speaker, roles.get(speaker, "tool"), text)
        for speaker, text in record["original"]
    ]
    return [Dialog(str(record.get("convo_id", "")), utterances)]
