"""Exports and request logs of assistants and their APIs, and corpora of replies to instructions."""

import ast
import contextlib
import re
from typing import Any

from lib.data.dialogs import Dialog, Rating, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat
from lib.data.log_histories import join_histories, without_beginnings
from lib.data.log_messages import (
    choices_of,
    read_langchain,
    read_plain,
    reply_text,
    streamed_pieces,
    woven,
)
from lib.data.log_parts import (
    as_script,
    assistant,
    dicts,
    first_text,
    first_value,
    first_words,
    from_json,
    html_text,
    never_earlier,
    path_to_root,
    read_ratings,
    text_at,
    text_of,
    to_number,
    user,
    values_at,
    words_of,
)
from lib.data.log_times import to_time

CLINE_TASK = re.compile(r"^<(?:task|feedback|user_message)>(.*?)</\w+>", re.S)
CLINE_RESULT = re.compile(r"\[[^\]\n]{1,200}\] Result:|\[ERROR\]")
PRINTED_ARRAY = re.compile(  # of NumPy, in a table that pandas wrote
    r"array\((?P<list>\[[^\[\]]*\])(?:,\s{0,100}dtype=\w{1,20})?\)"
)
# What ChatGPT's tools write behind words that a source is of.
CITATION = re.compile(r" ?【\d{1,3}(?::\d{1,3})?†[^】【\n]{0,200}】")
CHATGPT_MARK = re.compile("(?P<blank> ?)\ue200(?P<mark>[^\ue200\ue201]*)\ue201")
CHATGPT_SPAN = re.compile("[\ue203\ue204\ue206]")  # around words that a source is of
CODEX_ASIDES = (  # beginnings of what Codex itself writes in the name of the user
    *("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>"),
    *("<user_shell_command>", "<subagent_notification>", "<skill>"),
)
CODEX_SETUP = "# Context from my IDE setup"  # what an editor adds above a request
CODEX_REQUEST = "## My request for Codex:"
# In an answer of Copilot, in place of an edit, which stands beside it.
EMPTY_FENCE = re.compile(r"\n```\n{1,5}```\n")
# Before what the user wrote to Gemini, and to Bard before it.
GEMINI_ASKS = (
    *("Prompted with: ", "Asked Gemini: ", "Asked Bard: "),
    *("Prompted ", "Asked ", "Said ", "Branched ", "Answered "),
)
# Behind what the user wrote.
GEMINI_FILES = re.compile(r" ?Attached \d{1,3} files?\.\Z")
GEMINI_COLUMNS = (  # of what was asked and answered: Vertex AI's, and those of a batch
    ("full_request", "full_response"),
    ("request", "response"),
    ("request_payload", "response_payload"),
)
CHATGPT_ASIDES = ("analysis", "commentary")  # channels that the page folds away
OASST_MERITS = ("quality", "helpfulness", "humor", "creativity")
OASST_ROLES = {"prompter": "user", "assistant": "assistant"}


def read_chatgpt(record: dict, source) -> list[Dialog]:
    """ChatGPT's export: the current branch; hidden, tool and reasoning messages are no talk.

    A reply that was rated on another branch is read with its own context.
    """
    nodes = record["mapping"]
    parents = {name: node.get("parent") for name, node in nodes.items()}
    current = record.get("current_node")
    path = path_to_root(current if current in nodes else newest_node(nodes), parents)
    thumbs = source.cached("message_feedback.json", "message_id")
    thumbs = thumbs or source.cached("message_feedback.json", "id")
    dialog_id = first_text(record, ["conversation_id", "id", "title"]) or ""
    system = first_text(record, ["default_model_slug"])
    source.count_branches(nodes, path)
    dialogs = [Dialog(dialog_id, chatgpt_utterances(nodes, path, thumbs), system)]
    for name in nodes:
        if name in thumbs and name not in path:
            path_to_rated = path_to_root(name, parents)
            utterances = chatgpt_utterances(nodes, path_to_rated, thumbs)
            branch = [*as_script(utterances[:-1]), *utterances[-1:]]
            dialogs.append(Dialog(f"{dialog_id}/{name}", branch, system))
    return dialogs


def chatgpt_utterances(nodes: dict, path: list[str], thumbs: dict) -> list[Utterance]:
    """The utterances with these ids, with the thumbs that a file beside them holds."""
    utterances: list[Utterance] = []
    is_cut = False
    for name in path:
        message = nodes.get(name, {}).get("message")
        if not message:
            continue
        utterance = chatgpt_utterance(message)
        if name in thumbs:
            rating = Rating(None, "feedback", thumbs[name].get("rating"))
            utterance.ratings.append(rating)
        if is_cut and utterance.role == "assistant":  # the page shows both as one
            utterances[-1].text = (utterances[-1].text or "") + (utterance.text or "")
            utterances[-1].ratings += utterance.ratings
        else:
            utterances.append(utterance)
        ended = text_at(message, "metadata.finish_details.type")
        is_cut = utterance.role == "assistant" and ended == "max_tokens"
    return never_earlier(utterances)


def newest_node(nodes: dict) -> str:
    """The node of ChatGPT with the newest message; of several the one that stands last."""
    newest = ""
    newest_time = 0.0
    for name, node in nodes.items():
        message = node.get("message") or {}
        time = to_number(message.get("create_time")) or newest_time
        if message and time >= newest_time:
            newest, newest_time = name, time
    return newest


def chatgpt_utterance(message: dict) -> Utterance:
    """One message of ChatGPT's export; what is no talk has the role of a tool."""
    role = message["author"]["role"]
    metadata = message.get("metadata") or {}
    content = message.get("content") or {}
    hidden = (
        metadata.get("is_visually_hidden_from_conversation")
        or message.get("weight") == 0
    )
    aside = (
        message.get("recipient") not in (None, "all")
        or message.get("channel") in CHATGPT_ASIDES
        or metadata.get("is_thinking_preamble_message")
    )
    kind = content.get("content_type")
    if hidden or aside or kind not in (None, "text", "multimodal_text"):
        role = "tool"
    return Utterance(
        speaker=role,
        role=role,
        text=without_marks(text_of(content.get("parts"))) or None,
        time=to_time(message.get("create_time")),
        system=metadata.get("model_slug") if role == "assistant" else None,
    )


def without_marks(text: str | None) -> str | None:
    """A text of ChatGPT without the marks of its sources; links and names keep their words.

    >>> without_marks("Open. \ue200cite\ue202turn0search2\ue201")
    'Open.'
    >>> without_marks('By \ue200entity\ue202["person","Ada","writer"]\ue201.')
    'By Ada.'
    """
    if not text:
        return text
    text = CITATION.sub("", CHATGPT_MARK.sub(words_of_mark, text))
    return CHATGPT_SPAN.sub("", text)


def words_of_mark(match: re.Match) -> str:
    """What a reader sees of a mark of ChatGPT, with the blank before it."""
    kind, _, content = match["mark"].partition("\ue202")
    if kind == "url":
        return match["blank"] + content.partition("\ue202")[0]
    if kind == "entity":
        fields = from_json(content)
        if isinstance(fields, list) and len(fields) > 1:
            return match["blank"] + str(fields[1])
    return ""


def read_open_webui(record: dict, source) -> list[Dialog]:
    """Open WebUI's export: the branch of currentId; annotation.rating is a person's.

    A reply that was rated on another branch, or shown beside that of another model, is read with
    its own context.
    """
    history = record["chat"]["history"]
    nodes = history["messages"]
    current = history.get("currentId") or next(reversed(nodes), None)
    path = open_webui_path(nodes, current)
    source.count_branches(nodes, path)
    dialog_id = first_text(record, ["id", "title"]) or ""
    dialogs = [Dialog(dialog_id, open_webui_utterances(nodes, path))]
    for name in nodes:
        if name in path or not (
            read_ratings(nodes[name].get("annotation") or {})
            or is_shown_beside(nodes[name], nodes, path)
        ):
            continue
        utterances = open_webui_utterances(nodes, open_webui_path(nodes, name))
        branch = [*as_script(utterances[:-1]), *utterances[-1:]]
        dialogs.append(Dialog(f"{dialog_id}/{name}", branch))
    return dialogs


def is_shown_beside(message: dict, nodes: dict, path: list[str]) -> bool:
    """Whether several models answered a message of this path, and this is an answer in words."""
    parent = message.get("parentId")
    asked = nodes.get(parent) or {}
    n_models = len(asked.get("models") or [])
    return parent in path and n_models > 1 and bool(message.get("content"))


def open_webui_path(nodes: dict, last: str | None) -> list[str]:
    """The ids of the messages up to one of Open WebUI."""
    parents = {name: node.get("parentId") for name, node in nodes.items()}
    return [name for name in path_to_root(last, parents) if name in nodes]


def open_webui_utterances(nodes: dict, path: list[str]) -> list[Utterance]:
    """The utterances with these ids, with people's ratings."""
    utterances = []
    for message in (nodes[name] for name in path):
        utterance = read_plain([message])[0]
        utterance.reply_to = None
        arena_model = first_text(message, ["selectedModelId"])
        utterance.system = arena_model or utterance.system
        utterance.ratings = read_ratings(message.get("annotation") or {})
        # Qwen's list, and the items that newer versions keep beside the text.
        answer = "content_list[phase=answer].content|output[type=message].content"
        if not utterance.text:
            utterance.text = first_words(message, answer) or utterance.text
        if message.get("error"):
            utterance.text = utterance.text or None  # an error is no empty reply
        utterances.append(utterance)
    return never_earlier(utterances)


def read_open_webui_feedback(rows: list[dict], source) -> list[Dialog]:
    """Open WebUI's feedback: each with the chat as it then was, and the rating of one message.

    Several of one chat are joined: its last form is read, with the ratings of all.
    """
    chats: dict[str, dict] = {}
    for row in sorted(rows, key=lambda row: str(row.get("updated_at"))):
        chat = (row.get("snapshot") or {}).get("chat")
        message = text_at(row, "meta.message_id")
        if not chat:
            source.exclude("dialogs", "are ratings without the chat")
            continue
        name = first_text(chat, ["id"]) or text_at(row, "meta.chat_id") or ""
        nodes = chat["chat"]["history"]["messages"]
        if message in nodes:
            rating = (row.get("data") or {}).get("rating")
            nodes[message]["annotation"] = {"rating": rating}
        if name in chats:
            earlier = chats[name]["chat"]["history"]["messages"]
            chat["chat"]["history"]["messages"] = joined_nodes(earlier, nodes)
        chats[name] = chat
    return [
        dialog for chat in chats.values() for dialog in read_open_webui(chat, source)
    ]


def joined_nodes(earlier: dict, later: dict) -> dict:
    """The messages of two forms of a chat; the ratings of the earlier one stay."""
    nodes = earlier | later
    for name, node in earlier.items():
        rating = (node.get("annotation") or {}).get("rating")
        if rating is not None and not nodes[name].get("annotation"):
            nodes[name]["annotation"] = {"rating": rating}
    return nodes


def read_gemini(rows: list[dict], source) -> list[Dialog]:
    """Gemini's API: requests, of which each may repeat the history."""
    requests = [plain_gemini_request(row) for row in rows]
    dialogs = []
    for request in requests:
        if not (request.get("contents") or request.get("history")):
            source.exclude("dialogs", "are in another shape")
            continue
        of_request = gemini_dialogs(request)
        if "response" in request and of_request[0].utterances[-1].text is None:
            source.exclude("dialogs", "are requests without a reply in words")
            continue
        dialogs += of_request
    return join_histories(dialogs, source)


def plain_gemini_request(row: dict) -> dict:
    """A request with its contents at the top and what came back in `response`.

    Vertex AI logs both as JSON in columns, or in lists of texts.
    """
    for asked, answered in GEMINI_COLUMNS:
        request = from_json(row.get(asked))
        response = from_json(row.get(answered))
        if isinstance(request, list):
            request = from_json(request[0]) if request else None
        if isinstance(request, dict) and request.get("contents"):
            return {**row, **request, "response": response}
    return row


def gemini_dialogs(record: dict) -> list[Dialog]:
    """The dialog in `contents` with `parts`; one for each reply in `candidates` beside it."""
    response = record.get("response") or record
    if isinstance(response, list):  # of a stream, or of one text
        pieces = [from_json(piece) for piece in response]
        texts = streamed_pieces(pieces)
        reply = {"parts": [{"text": "".join(texts)}] if texts else []}
        response = {**dict(pieces[-1]), "candidates": [{"content": reply}]}
    candidates = dicts(response.get("candidates"))
    replies = [c["content"] for c in candidates if "content" in c]
    name = first_text(record, ["id", "responseId", "chat_id"]) or ""
    model = first_text(response, ["modelVersion"]) or record.get("model")
    dialogs: list[Dialog] = []
    if not replies and "response" in record:
        replies = [{"parts": []}]  # it was blocked, or failed
    for reply in replies or [None]:
        contents = record.get("contents") or record["history"]
        utterances = [gemini_utterance(content, "user") for content in contents]
        if dialogs:
            utterances = as_script(utterances)
        if reply:
            utterances.append(gemini_utterance(reply, "model"))
        dialogs.append(Dialog(name, utterances, model))
    return dialogs


def gemini_utterance(content: dict, speaker: str) -> Utterance:
    """What one side said, by default this one; the parts of a reply are pieces of a stream."""
    speaker = content.get("role") or speaker
    parts = content.get("parts")
    if speaker != "model":
        return Utterance(speaker, "user", text_of(parts))
    pieces = map(text_of, parts) if isinstance(parts, list) else [text_of(parts)]
    texts = [piece for piece in pieces if piece is not None]
    return Utterance(speaker, "assistant", "".join(texts) if texts else None)


def read_gemini_activity(rows: list[dict], source) -> list[Dialog]:
    """Google Takeout's activity of Gemini: an exchange a row, and perhaps a link to its chat.

    Raises:
        UnknownFormat: where nothing tells the chats, and no option says where one begins.
    """
    dialogs: dict[str, Dialog] = {}
    titles = [str(row.get("title") or "") for row in rows]
    in_english = any(title.startswith(("Prompted ", "Said ")) for title in titles)
    for row in sorted(rows, key=lambda row: str(row.get("time"))):
        title = str(row.get("title") or "")
        if in_english and not title.startswith(GEMINI_ASKS):
            source.exclude("utterances", "are asides and notices")
            continue
        drafts = values_at(row, "safeHtmlItem[].html")
        # The last is the one that was generated again.
        reply = html_text(drafts[-1]) if drafts else None
        if not reply:
            source.exclude("dialogs", "have no reply of the bot")
            continue
        source.exclude("utterances", "are versions that were left", len(drafts) - 1)
        links = " ".join(values_at(row, "details[].url") + values_at(row, "titleUrl"))
        chat = re.search(r"gemini\.google\.com/app/(\w+)", links)
        if not chat and not source.report.options.split:
            raise UnknownFormat(
                "has exchanges with Gemini, and does not say which are of one chat",
                fix="let a new dialog begin after a pause: SPLIT=gap:30m",
            )
        name = chat[1] if chat else source.stem
        time = to_time(row.get("time"))
        question = title
        if in_english:
            verb = next(verb for verb in GEMINI_ASKS if title.startswith(verb))
            question = GEMINI_FILES.sub("", title.removeprefix(verb))
        dialog = dialogs.setdefault(name, Dialog(name, []))
        dialog.utterances += [user(question, time=time), assistant(reply, time=time)]
    return list(dialogs.values())


def read_fastchat(rows: list[dict], source) -> list[Dialog]:
    """FastChat's server: each turn is logged with all before it; votes are of the dialog."""
    dialogs: dict[str, Dialog] = {}
    for row in rows:
        state = row["state"]
        name = str(state.get("conv_id") or "")
        dialog = dialogs.setdefault(name, Dialog(name, [], row.get("model")))
        messages = [text for text in state["messages"] if text[1]]
        if len(messages) > len(dialog.utterances):
            utterances = []
            for speaker, text in messages:
                role = "user" if speaker == state["roles"][0] else "assistant"
                utterances.append(Utterance(speaker, role, text_of(text)))
            dialog.utterances = utterances
        if row.get("type") in ("upvote", "downvote"):
            dialog.ratings.append(Rating(None, "feedback", row["type"] == "upvote"))
    return list(dialogs.values())


def read_character_turns(record: dict, source) -> list[Dialog]:
    """Character.AI's turns, the newest first; of several candidates one is the primary."""
    dialog = Dialog(text_at(record, "turns[].turn_key.chat_id") or source.stem, [])
    for turn in reversed(record["turns"]):
        candidates = turn["candidates"]
        if not candidates:
            continue  # of a reply that was not made
        chosen = candidates[-1]
        for candidate in candidates:
            if candidate.get("candidate_id") == turn.get("primary_candidate_id"):
                chosen = candidate
        source.exclude("utterances", "are versions that were left", len(candidates) - 1)
        is_human = turn["author"].get("is_human")
        role = "user" if is_human else "assistant"
        speaker = str(turn["author"].get("name") or role)
        time = to_time(turn.get("create_time"))
        text = chosen.get("raw_content")
        dialog.utterances.append(Utterance(speaker, role, text, time=time))
    return [dialog]


def read_lm_studio(record: dict, source) -> list[Dialog]:
    """LM Studio: messages in versions, of which one is selected; an answer has steps."""
    dialog = Dialog(first_text(record, ["name"]) or "", [])
    for message in record["messages"]:
        version = message["versions"][message.get("currentlySelected") or 0]
        blocks = version.get("steps") or [version]
        said = [b for b in blocks if (b.get("style") or {}).get("type") != "thinking"]
        texts = [text_of(block.get("content")) for block in said]
        text = "\n".join(text for text in texts if text)
        role = version["role"]
        model = text_at(version, "senderInfo.senderName")
        utterance = Utterance(role, role, text or None, system=model)
        dialog.utterances.append(utterance)
        left = len(message["versions"]) - 1
        source.exclude("utterances", "are versions that were left", left)
    return [dialog]


def read_openai_responses(rows: list[dict], source) -> list[Dialog]:
    """OpenAI's Responses: each goes on from the one that it names, if any."""
    responses = {row.get("id") or number: row for number, row in enumerate(rows)}
    previous = {
        name: row.get("previous_response_id") for name, row in responses.items()
    }
    previous |= before_in_conversations(responses)
    continued = {name for name in previous.values() if name}
    chains: list[Dialog] = []
    histories: list[Dialog] = []  # which may be sent again in full
    for name, row in responses.items():
        if all(text_of(item.get("content")) is None for item in row["output"]):
            source.exclude("dialogs", "are requests without a reply in words")
            continue
        path = path_to_root(name, previous)
        utterances = []
        for node in path:
            if node in responses:
                utterances += response_utterances(responses[node])
            else:
                source.warn("earlier responses, which some name, are not in it")
        dialogs = chains if len(path) > 1 or name in continued else histories
        if utterances:
            dialogs.append(Dialog(str(path[0]), utterances, row.get("model")))
    return join_histories(chains, source) + join_histories(histories, source)


def before_in_conversations(responses: dict) -> dict:
    """The response before each that names its conversation, by the times of both."""
    last: dict[str, Any] = {}
    before = {}
    for name in sorted(responses, key=lambda name: response_time(responses[name])):
        conversation = text_at(responses[name], "conversation.id|conversation")
        if conversation in last:
            before[name] = last[conversation]
        if conversation:
            last[conversation] = name
    return before


def response_time(record: dict) -> float:
    """When a response was made, in seconds."""
    return to_number(record.get("created_at")) or 0.0


def read_openai_items(record: dict, source) -> list[Dialog]:
    """The items of an OpenAI conversation as its server lists them: the newest first, if not asked.

    Raises:
        UnknownFormat: where both ends are the user's, so that the order is unclear.
    """
    items = [item for item in record["data"] if item.get("type") == "message"]
    begins, ends = (item["role"] == "user" for item in (items[0], items[-1]))
    if begins and ends and len(items) > 1:
        raise UnknownFormat(
            "begins and ends with the user, and does not say which is the newest message",
            fix="leave out the message that nobody answered",
        )
    if ends:
        items.reverse()
    return [Dialog("", response_utterances({"input": items}))]


def read_logged_responses(rows: list[dict], source) -> list[Dialog]:
    """OpenAI's Responses as a team logs them: the input, or the request, stands beside each."""
    responses = []
    for row in rows:
        response = row.get("response") or {}
        request = row.get("request") or row
        if not response.get("output"):
            source.exclude("dialogs", "are requests without a reply in words")
            continue
        about = {name: request.get(name) for name in ("input", "previous_response_id")}
        responses.append({**response, **{k: v for k, v in about.items() if v}})
    return read_openai_responses(responses, source)


def read_replies_alone(rows: list[dict], source) -> list[Dialog]:
    """What an interface gave back, without what was asked.

    Raises:
        UnknownFormat: always.
    """
    raise UnknownFormat(
        "holds replies without what the users said, which the requests hold",
        fix='write each with its request: {"request": {...}, "response": {...}}',
    )


def response_utterances(record: dict) -> list[Utterance]:
    """Input and output of a response; items that are no messages are no talk."""
    given_input = record.get("input")
    items = [{"role": "user", "content": given_input}]
    if isinstance(given_input, list):
        items = given_input
    utterances = []
    for item in [*items, *(record.get("output") or [])]:
        if item.get("type", "message") == "message":
            text = text_of(item.get("content"))
            utterances.append(Utterance(item["role"], item["role"], text))
    return utterances


def read_openai_batch(rows: list[dict], source) -> list[Dialog]:
    """OpenAI's Batch: replies in one file, joined by custom_id with the requests beside it.

    Raises:
        UnknownFormat: where the requests are not there.
    """
    requests = batch_requests([*source.sibling_rows("custom_id"), *rows])
    dialogs = []
    for row in rows:
        body = (row.get("response") or {}).get("body") or {}
        replies = [reply_text(choice) for choice in choices_of(body)]
        if not any(replies):
            replies = [reply_text(body.get("choices") or body.get("output"))]
        if not any(replies):
            messages = values_at(body, "choices[].message")
            replies = [words_of(message) for message in dicts(messages)]
        # An empty text is an empty reply, and a call of a tool none.
        replies = [reply for reply in replies if reply is not None]
        if not replies:
            source.exclude("dialogs", "are requests without a reply in words")
        for reply in replies:
            dialogs.append(batch_dialog(row["custom_id"], requests, reply, body))
    if dialogs and not requests:
        raise UnknownFormat(
            "holds replies without what the users said, which the file of the requests holds",
            fix="put both files into one folder and read that",
        )
    return dialogs


def batch_requests(rows: list[dict]) -> dict[str, list]:
    """The messages of the requests of a batch, by their names."""
    requests: dict[str, list] = {}
    for row in rows:
        messages = first_value(row.get("body") or {}, ("messages", "input"))
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if messages:
            add_request(requests, row["custom_id"], messages)
    return requests


def add_request(requests: dict[str, list], name: str, messages: list) -> None:
    """Add the messages of a request of a batch.

    Raises:
        UnknownFormat: where another request has this name.
    """
    if requests.setdefault(name, messages) != messages:
        raise UnknownFormat(
            f"has two requests with the custom_id {name!r} beside it, of several batches",
            fix="put the files of each batch into a folder of its own",
        )


def read_openai_batch_requests(rows: list[dict], source) -> list[Dialog]:
    """The requests of OpenAI's Batch, which are read with the replies to them.

    Raises:
        UnknownFormat: where these are not there.
    """
    siblings = source.sibling_rows("custom_id")
    if any("response" in row for row in siblings) and batch_requests(siblings + rows):
        reason = "are requests, whose replies stand in another file"
        source.exclude("dialogs", reason, len(rows))
        return []
    raise UnknownFormat(
        "holds the requests of a batch, and not the replies to them",
        fix="put the file of the replies into the same folder and read that",
    )


def batch_dialog(name: str, requests: dict, reply: str, about: dict) -> Dialog:
    """A request of a batch, by its name, with the reply to it; `about` has the model.

    All requests of a batch are sent at once: replies in them are of earlier times.
    """
    utterances = as_script(read_plain(requests.get(name) or []))
    return Dialog(str(name), [*utterances, assistant(reply)], about.get("model"))


def read_anthropic_batch(rows: list[dict], source) -> list[Dialog]:
    """Anthropic's Message Batches: results, joined by custom_id with the requests beside them.

    Raises:
        UnknownFormat: where the requests are not there.
    """
    requests: dict[str, list] = {}
    for row in source.sibling_rows("custom_id"):
        if row.get("params"):
            add_request(requests, row["custom_id"], row["params"].get("messages"))
    dialogs = []
    for row in rows:
        message = row["result"].get("message") or {}
        reply = text_of(message.get("content"))
        if not reply:
            source.exclude("dialogs", "are requests without a reply in words")
            continue
        dialogs.append(batch_dialog(row["custom_id"], requests, reply, message))
    if dialogs and not requests:
        raise UnknownFormat(
            "holds replies without what the users said, which the requests of the batch hold",
            fix="put the requests, as JSON, into the same folder and read that",
        )
    return dialogs


def read_anthropic_requests(record: dict, source) -> list[Dialog]:
    """The requests of a batch, or one of them, which are read with its results."""
    reason = "are requests, whose replies stand in another file"
    source.exclude("dialogs", reason, len(record.get("requests") or [record]))
    return []


def read_langchain_list(rows: list[dict], source) -> list[Dialog]:
    """LangChain's messages, as a history in a file keeps them: one dialog."""
    return [Dialog(source.stem, read_langchain(rows))]


def read_codex(rows: list[dict], source) -> list[Dialog]:
    """Codex: a session, whose model stands before each turn; older files have no payload."""
    dialog = Dialog(source.stem, [])
    model = None
    for row in rows:
        item = row.get("payload") or row
        if row.get("type") == "turn_context":
            model = first_text(item, ["model"])
        if item.get("type") != "message":
            continue
        role = item["role"]
        text = text_of(item.get("content")) or ""
        if text.startswith(CODEX_SETUP):
            text = text.partition(CODEX_REQUEST)[2].strip()
        utterance = Utterance(role, role, text or None)
        utterance.time = to_time(row.get("timestamp"))
        if role == "assistant":
            utterance.system = model
        elif role != "user" or text.lstrip().startswith(CODEX_ASIDES):
            utterance.role = "tool"
        dialog.utterances.append(utterance)
    return [dialog]


def read_copilot(record: dict, source) -> list[Dialog]:
    """GitHub Copilot's chat in VS Code: requests, each with the parts of its answer."""
    dialog = Dialog(first_text(record, ["sessionId"]) or "", [])
    requests = record["requests"]
    if all(to_number(request.get("timestamp")) for request in requests):
        requests = sorted(requests, key=lambda request: float(request["timestamp"]))
    for request in requests:
        if request.get("isHidden"):
            source.exclude("utterances", "are asides and notices")
            continue
        time = to_time(request.get("timestamp"))
        question = text_at(request, "message.text|message")
        if question:
            dialog.utterances.append(user(question, time=time))
        reply = assistant(copilot_text(request.get("response")), time=time)
        reply.system = request.get("modelId")
        if request.get("vote") is not None:
            reply.ratings.append(Rating(None, "feedback", request["vote"]))
        dialog.utterances.append(reply)
    return [dialog]


def copilot_text(parts: list | None) -> str | None:
    """The words of an answer of Copilot: texts and names of files go on, tools part them.

    >>> copilot_text(["In ", {"kind": "inlineReference", "name": "a.py"}, {"value": "."}])
    'In a.py.'
    """
    text = ""
    after_tool = False
    for part in parts or []:
        words = copilot_words(part)
        if words is None:
            after_tool = bool(text)
            continue
        if after_tool and not text.endswith("\n"):
            text = text.rstrip() + "\n"
        text += words
        after_tool = False
    return EMPTY_FENCE.sub("\n", text).strip() or None


def copilot_words(part: dict | str) -> str | None:
    """The words of a part of an answer of Copilot; the name of a file; None for anything else."""
    if isinstance(part, str):
        return part
    kind = part.get("kind")
    if kind in (None, "markdownContent", "markdownVuln"):
        return text_at(part, "value|content.value")
    if kind != "inlineReference":
        return None
    path = text_at(
        part,
        "name|inlineReference.name|inlineReference.path|inlineReference.uri.path"
        "|inlineReference.fsPath",
    )
    return (path or "").rpartition("/")[2]


def read_copilot_log(rows: list[dict], source) -> list[Dialog]:
    """The same as VS Code keeps it: the session in the first line, a change of it in each other."""
    session: dict = {}
    for row in rows:
        if row["kind"] == 0:
            session = row["v"]
        else:
            change_session(session, row)
    return read_copilot(session, source)


def change_session(session: dict, change: dict) -> None:
    """Change a session as a line of VS Code's log says: 1 sets, 2 adds to a list, 3 deletes."""
    *path, last = change["k"]
    target: Any = session
    for name in path:
        target = target[name]
    if change["kind"] == 2:
        if isinstance(target, dict):
            target.setdefault(last, [])
        items = target[last]
        del items[change.get("i", len(items)) :]
        items += change.get("v") or []
    elif isinstance(target, list) and last == len(target):
        target.append(change.get("v"))
    else:
        target[last] = change.get("v")


def read_cline(rows: list[dict], source) -> list[Dialog]:
    """Cline and Roo: what the user asked for; results of tools stand in the user's name.

    Below the user's words stands what the editor shows, which nobody said.
    """
    dialog = Dialog(source.stem, [])
    for row in rows:
        texts = []
        for block in dicts(row["content"]):
            text = block.get("text") or ""
            is_aside = text.startswith("<environment_details>")
            if block.get("type") == "text" and text and not is_aside:
                texts.append(text)
        role = row["role"]
        if role == "user" and texts and CLINE_RESULT.match(texts[0]):
            role = "tool"
        words = "\n".join(texts)
        if role == "user":
            words = CLINE_TASK.sub(r"\1", words).strip()
        time = to_time(row.get("ts"))
        dialog.utterances.append(Utterance(row["role"], role, words or None, time=time))
    return [dialog]


def read_autogen(record: dict, source) -> list[Dialog]:
    """AutoGen's state of a team: what its manager has of the talk; events of tools are none."""
    dialogs = []
    for state in record["agent_states"].values():
        thread = state.get("message_thread")
        if not thread:
            continue
        dialog = Dialog("", [])
        for message in thread:
            role = speaker_role(message["source"])
            if message.get("type") not in ("TextMessage", "MultiModalMessage"):
                role = "tool"
            text = text_of(message.get("content"))
            time = to_time(message.get("created_at"))
            utterance = Utterance(message["source"], role, text, time=time)
            dialog.utterances.append(utterance)
        dialogs.append(dialog)
    return dialogs


def read_oasst_tree(record: dict, source) -> list[Dialog]:
    """OpenAssistant's trees: each branch with its own path as context."""
    messages = []
    to_visit = [(record["prompt"], None)]
    while to_visit:
        message, parent = to_visit.pop()
        messages.append({**message, "parent_id": parent})
        for reply in reversed(message.get("replies") or []):
            to_visit.append((reply, message["message_id"]))
    return branches(record["message_tree_id"], [oasst_utterance(m) for m in messages])


def read_oasst_message(record: dict, source) -> list[Dialog]:
    """A message of OpenAssistant with the replies to it, as a tree without a name."""
    return read_oasst_tree(
        {"prompt": record, "message_tree_id": record["message_id"]}, source
    )


def read_oasst_rows(rows: list[dict], source) -> list[Dialog]:
    """OpenAssistant's flat form: one message per row, in trees."""
    trees: dict[str, list[Utterance]] = {}
    for row in rows:
        trees.setdefault(row["message_tree_id"], []).append(oasst_utterance(row))
    dialogs = []
    for name, utterances in trees.items():
        dialogs += branches(name, utterances)
    return dialogs


def oasst_utterance(message: dict) -> Utterance:
    """One message of OpenAssistant; its labels are means of people's ratings.

    A deleted message is no talk. Labels of faults (spam, toxicity) are left out, since more of
    them is worse.
    """
    labels = from_json(message.get("labels")) or {}
    if isinstance(labels, str):
        with contextlib.suppress(ValueError, SyntaxError):
            labels = ast.literal_eval(PRINTED_ARRAY.sub(r"\g<list>", labels))
    if isinstance(labels, str):
        raise UnknownFormat(
            f"has labels that are no list: {labels[:40]}...",
            fix="save the table as Parquet or as JSON lines",
        )
    values = {}
    if isinstance(labels.get("name"), list):
        values = dict(zip(labels["name"], labels["value"], strict=True))
    else:
        values = {name: label.get("value") for name, label in labels.items()}
    values = {name: value for name, value in values.items() if name in OASST_MERITS}
    deleted = str(message.get("deleted")).lower() == "true"
    return Utterance(
        speaker=message["role"],
        role="tool" if deleted else OASST_ROLES.get(message["role"]),
        text=message.get("text"),
        time=to_time(message.get("created_date")),
        id=message["message_id"],
        reply_to=message.get("parent_id"),
        system=message.get("model_name"),
        ratings=[Rating(None, name, value) for name, value in values.items()],
    )


def branches(name: str, utterances: list[Utterance]) -> list[Dialog]:
    """A dialog for each leaf of a tree of utterances: the path from the root to it.

    The longest path comes first. Utterances that an earlier dialog has are only context in a later
    one (see `as_script`). A path whose new utterances are all by users gives no dialog: nobody
    answered them. Utterances without an id or in a circle are lost.
    """
    by_id = {utterance.id: utterance for utterance in utterances}
    parents = {utterance.id: utterance.reply_to for utterance in utterances}
    inner = set(parents.values())
    leaves = [utterance.id for utterance in utterances if utterance.id not in inner]
    paths = [path_to_root(leaf, parents) for leaf in leaves]
    paths.sort(key=len, reverse=True)
    used: set = set()
    dialogs = []
    for nodes in paths:
        path = [by_id[node] for node in nodes if node in by_id]
        new = [utterance for utterance in path if utterance.id not in used]
        if all(utterance.role == "user" for utterance in new):
            continue
        context = as_script(path[: len(path) - len(new)])
        used.update(utterance.id for utterance in new)
        dialogs.append(Dialog(name, [*context, *new]))
    return dialogs


LINE_TURN = re.compile(
    r"^(?P<role>Human|Assistant):(?P<text>.*?)(?=^(?:Human|Assistant):|\Z)", re.S | re.M
)


def turns_in_lines(prompt: str) -> list[Utterance]:
    r"""What was said in a prompt that begins "Human:" and asks "Assistant:" at its end (Belle).

    >>> [turn.text for turn in turns_in_lines("Human:Hi\nAssistant:Ho\nHuman:So?\nAssistant:")]
    ['Hi', 'Ho', 'So?', '']
    >>> turns_in_lines("Human: a mammal. Explain.")
    []
    """
    if not (prompt.startswith("Human:") and prompt.rstrip().endswith("Assistant:")):
        return []
    turns = []
    for match in LINE_TURN.finditer(prompt):
        side = user if match["role"] == "Human" else assistant
        turns.append(side(match["text"].strip()))
    return turns


def read_instruction(record: dict, source) -> list[Dialog]:
    """AlpacaEval, Alpaca, Dolly, ChatGLM: an instruction, what it is about, and an output.

    A history beside it holds earlier pairs of both; their replies are context only.
    """
    history = record.get("history") or []
    asked, answered = zip(*history, strict=True) if history else ((), ())
    about = first_value(record, ("input", "context"))
    instruction = first_value(record, ("instruction", "prompt", "query"))
    prompt = "\n".join(text for text in (instruction, about) if text)
    turns = [turn for turn in turns_in_lines(prompt) if turn.text]
    reply = first_value(record, ("output", "response")) or ""
    if not turns:
        turns = [*as_script(woven(asked, answered)), user(prompt)]
    utterances = [*turns, assistant(reply)]
    return [Dialog("", utterances, first_text(record, ["generator", "model"]))]


def read_instruction_rows(rows: list[dict], source) -> list[Dialog]:
    """The same where only some rows have a history."""
    dialogs = []
    for row in rows:
        dialogs += read_instruction(row, source)
    return dialogs


def read_cohere(record: dict, source) -> list[Dialog]:
    """Cohere's chat: the history, the message, and the reply in `text`."""
    utterances = read_plain(record["chat_history"]) if record["chat_history"] else []
    exchange = [user(record["message"]), assistant(record["text"], "CHATBOT")]
    if [turn.text for turn in utterances[-2:]] == [turn.text for turn in exchange]:
        del utterances[-2:]  # the response repeats its own exchange
    utterances += exchange
    return [Dialog("", utterances, record.get("model"))]


def read_mt_bench(record: dict, source) -> list[Dialog]:
    """MT-bench: answers of a model; the questions stand in question.jsonl."""
    if len(source.files) > 1 and source.folder.endswith("reference_answer"):
        source.exclude("dialogs", "are reference answers")
        return []
    questions = source.cached("question.jsonl", "question_id")
    question = questions.get(record["question_id"])
    dialogs = []
    for choice in record["choices"]:
        turns = [text_of(turn) for turn in choice["turns"]]
        replies = [assistant(text) for text in turns]
        if question:
            replies = woven([text_of(turn) for turn in question["turns"]], turns)
            for utterance, reference in zip(
                replies[1::2], question.get("reference") or [], strict=False
            ):
                utterance.references = [reference]
        else:
            source.warn(
                "the users' words stand in question.jsonl, which is not beside it"
            )
        dialogs.append(Dialog(str(record["question_id"]), replies, record["model_id"]))
    return dialogs


def read_cohere_rows(rows: list[dict], source) -> list[Dialog]:
    """Cohere's chats, of which each repeats the history."""
    dialogs = []
    for row in rows:
        dialogs += read_cohere(row, source)
    return without_beginnings(dialogs, source)


def read_cohere_requests(rows: list[dict], source) -> list[Dialog]:
    """Requests to Cohere with the replies: each repeats the history."""
    dialogs = []
    for row in rows:
        request = row.get("request") or row
        dialogs += read_cohere(request | {"text": row["response"]["text"]}, source)
    return without_beginnings(dialogs, source)


def read_text_generation_webui(record: dict, source) -> list[Dialog]:
    """text-generation-webui: pairs of what the user and the bot wrote; a greeting has no user."""
    dialog = Dialog(source.stem, [])
    for question, answer in record["internal"]:
        if question not in ("", "<|BEGIN-VISIBLE-CHAT|>"):
            dialog.utterances.append(user(question))
        dialog.utterances.append(assistant(answer or None))
    return [dialog]
