"""Dialogs whose messages stand in a list of a record: read by the keys that messages have."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from lib.data.corpora import snake_case
from lib.data.dialogs import WORDS, Dialog, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat, parse_list
from lib.data.log_parts import (
    DIALOG,
    MODEL,
    RATERS,
    SPEAKER,
    SPEAKER_START,
    SYNONYMS,
    TEXT,
    TURN,
    assistant,
    calls_a_tool,
    dicts,
    drop_placeholders,
    first_text,
    first_value,
    first_words,
    from_json,
    meanings,
    read_ratings,
    role_of,
    text_at,
    text_of,
    time_of,
    to_number,
    user,
    value_at,
    values_at,
    words_of,
    written_time,
)

SILENCE = "__SILENCE__"  # of ParlAI, where nobody has said anything yet
PERSONA_LINES = re.compile(r"(?:(?:your|partner's) persona:.*(?:\n|$))*")
RESPONSE = {"response", *SYNONYMS["response"].split()} - set(TEXT)
ANSWER_KEYS = set(WORDS["answers"]["lists"].split())
MESSAGE_KEYS = ANSWER_KEYS | set(WORDS["answers"]["messages"].split())
NUMBERED_REPLY = re.compile(r"(response|reply|answer|output|completion)_?([1-9]|[a-h])")
LIKE_REPLY = re.compile(  # names that a field with a reply may have, too
    r"(?:model|llm|bot|chatbot|assistant|ai|generated|predicted|final|original|raw)_"
    r"(?:response|reply|answer|output|completion)s?"
    r"|(?:model|llm|bot|chatbot|assistant|generated)_(?:text|message)"
    r"|(?:response|reply|answer|output|completion)_text"
    r"|generated|generations?|responses|replies|answers|completions"
)
REPLY_FIELDS = (
    "response", "output", "outputs", "completion", "reply", "answer", "message",
    "generated_text", "prediction", "predictions",
)  # fmt: skip
BLOCKS = set(WORDS["answers"]["blocks"].split())
ANSWER_FIELDS = WORDS["answers"]["texts"].split()
USER_TEXT = WORDS["fields"]["user_text"].split()
TEXT_KINDS = {"text", "message", "msg", "utterance", "says", "said", "words", "turn"}
BOTH_SIDES = ("user", "assistant")
PIECES = (  # where a piece of a reply stands in an event of a stream
    "choices[index=0].delta.content",  # OpenAI
    "delta.text",  # Anthropic
    "contentBlockDelta.delta.text",  # Bedrock
)
BOT_TEXT = WORDS["fields"]["bot_text"].split()


class MessageFormat(NamedTuple):
    """A way of writing a message: its signature is the keys that each message has."""

    name: str
    keys: set[str]
    read: Callable[[list[dict]], list[Utterance]]


def read_utterance(
    message: Mapping[str, Any], speaker_key: str, text_key: str
) -> Utterance:
    """The utterance in a message whose speaker and words stand under these keys."""
    fields = message
    speaker = message.get(speaker_key)
    if message.keys() == {speaker_key, text_key} and isinstance(speaker, str):
        # As most messages are: there is nothing else to look for.
        role = role_of(speaker, message, speaker_key)
        return Utterance(speaker, role, words_of(message, text_key))
    for name in ("meta", "metadata"):
        if name in message and isinstance(message[name], dict):
            fields = message[name] | fields
    if isinstance(speaker, dict):
        fields = speaker | {**fields}
        speaker = first_text(speaker, ("role", "name", "username", "id", "type"))
    named = meanings(tuple(message))
    references = fields.get("reference")
    return Utterance(
        speaker=str(speaker),
        role=role_of(str(speaker), fields, speaker_key),
        text=words_of(message, text_key),
        time=time_of(fields),
        written=written_time(fields),
        number=to_number(first_value(message, named.turn)),
        id=first_text(message, named.id),
        reply_to=first_text(message, named.parent),
        system=first_value(fields, meanings(tuple(fields)).model, str),
        ratings=read_ratings(fields),
        references=references if isinstance(references, list) else [],
    )


def read_plain(messages: list[dict]) -> list[Utterance]:
    """Messages with a speaker and a text, under whatever names."""
    speaker_key, text_key = speaker_and_text(messages)
    check_names(messages, speaker_key)
    utterances = [read_utterance(m, speaker_key, text_key) for m in messages]
    parents = listed_parents(messages)
    for utterance in utterances:
        utterance.reply_to = utterance.reply_to or parents.get(utterance.id)
    return utterances


def check_names(messages: list[dict], speaker_key: str | None) -> None:
    """Refuse messages whose role and name tell opposite sides, as where an agent keeps the list.

    Raises:
        UnknownFormat: with both readings.
    """
    if speaker_key != "role":
        return
    for message in messages:
        if not message.get("name") or is_example(message):
            continue
        role = speaker_role(str(message.get(speaker_key)))
        named = speaker_role(str(message["name"]))
        if {role, named} == {"user", "assistant"}:
            raise UnknownFormat(
                f"has {speaker_key} {message[speaker_key]!r} and name {message['name']!r}: "
                "of the two sides, each says another",
                fix='say which is right: COLUMNS="speaker=name" or "speaker=role"',
            )


def is_example(message: Mapping[str, Any]) -> bool:
    """Whether a message is an example in a prompt, as OpenAI names them."""
    named = message.get("name") in ("example_user", "example_assistant")
    return named and message.get("role") == "system"


def listed_parents(messages: list[dict]) -> dict[str | None, str]:
    """What messages answer, where each lists its ancestors, or the ids of its children."""
    parents: dict[str | None, str] = {}
    for message in messages:
        ancestors = first_value(message, ("ancestors",), list)
        if ancestors:
            parents[first_text(message, ["id"])] = str(ancestors[-1])
        for child in first_value(message, ("children", "childrenIds"), list) or []:
            if isinstance(child, str):
                parents.setdefault(child, str(message.get("id")))
    return parents


def speaker_and_text(messages: list[dict]) -> tuple[str | None, str | None]:
    """The keys of messages that hold the speaker and the words."""
    names: dict[str, Any] = {}
    for message in messages:
        names |= message
    keys: dict[str, str] = {}
    for name in names:
        keys.setdefault(snake_case(name), name)
    return first_value(keys, SPEAKER), first_value(keys, TEXT)


def read_personachat(messages: list[dict]) -> list[Utterance]:
    """Hugging Face's Persona-Chat: the last of the candidates is what was said."""
    last = messages[-1]
    texts = [*(last.get("history") or []), *last["candidates"][-1:]]
    return in_turn([{"text": text} for text in texts])


def in_turn(messages: list[dict]) -> list[Utterance]:
    """MultiWOZ 2.1: messages without a speaker are of user and bot in turn."""
    utterances = []
    for number, message in enumerate(messages):
        speaker = "bot" if number % 2 else "user"
        utterances.append(
            read_utterance({**message, "speaker": speaker}, "speaker", "text")
        )
    return utterances


def read_exchanges(messages: list[dict]) -> list[Utterance]:
    """Messages that hold what the user and what the bot said, each under its own name."""
    keys = exchange_keys(messages[0])
    numbers = [to_number(first_value(message, TURN)) for message in messages]
    if None not in numbers:
        order = sorted(range(len(messages)), key=numbers.__getitem__)
        messages = [messages[position] for position in order]
    utterances = []
    for message in messages:
        time = time_of(message)
        about = {name: message[name] for name in message if name not in keys}
        question = Utterance(keys[0], "user", text_of(message.get(keys[0])), time=time)
        reply = Utterance(
            keys[1], "assistant", text_of(message.get(keys[1])), time=time
        )
        reply.system = first_value(about, meanings(tuple(about)).model, str)
        reply.ratings = read_ratings(about, first_text(about, RATERS))
        utterances += [question, reply]
    return utterances


def exchange_keys(message: Mapping[str, Any]) -> tuple[str, str] | None:
    """The keys of what the user and what the bot said, where a message has both as texts."""
    texts = {
        snake_case(name): name
        for name, text in message.items()
        if isinstance(text, str)
    }
    sides = {role: [n for n in texts if side_of(n) == role] for role in BOTH_SIDES}
    user_key = first_value(texts, [*USER_TEXT, *sides["user"]])
    names = [name for name in BOT_TEXT if texts.get(name) != user_key]
    bot_key = first_value(texts, [*names, *sides["assistant"]])
    return (user_key, bot_key) if user_key and bot_key else None


@cache
def side_of(name: str) -> str | None:
    """The side whose words a field has by its name: a role, and a word for a text.

    >>> side_of("visitor_text"), side_of("bot_says"), side_of("bot_name")
    ('user', 'assistant', None)
    """
    speaker, _, kind = name.rpartition("_")
    return speaker_role(speaker) if kind in TEXT_KINDS else None


def read_langchain(messages: list[dict]) -> list[Utterance]:
    """LangChain's messages: a type (human, ai, tool), the words beside it, in data or kwargs."""
    utterances = []
    for message in messages:
        data = first_value(message, ("data", "kwargs"), dict) or message
        names = message.get("id")
        kind = first_text(data, ["type"]) or first_text(message, ["type"]) or ""
        if kind == "constructor" or not speaker_role(kind):
            kind = names[-1] if isinstance(names, list) and names else kind
        kind = kind.removesuffix("Chunk").removesuffix("Message").lower()
        role = {"human": "user", "ai": "assistant"}.get(kind.lower(), "tool")
        utterance = Utterance(
            speaker=kind, role=role, text=words_of(data), ratings=read_ratings(data)
        )
        if role == "assistant":
            about = data.get("response_metadata")
            utterance.system = text_at(about, "model_name|model")
        utterances.append(utterance)
    return utterances


FORMATS = [  # in the order in which the signatures are tried
    MessageFormat("Persona-Chat (JSON)", {"history", "candidates"}, read_personachat),
    MessageFormat("OpenAI chat messages", {"role", "content"}, read_plain),
    MessageFormat("ShareGPT", {"from", "value"}, read_plain),
    MessageFormat("MultiWOZ 2.2", {"speaker", "utterance"}, read_plain),
    MessageFormat("LangChain messages", {"type", "data"}, read_langchain),
    MessageFormat("LangChain messages", {"lc", "kwargs"}, read_langchain),
    MessageFormat("Ragas messages", {"type", "content"}, read_langchain),
    MessageFormat("ParlAI (JSON)", {"id", "text"}, read_plain),
]


FLAGS_OF_SIDES = {"is_human", "isHuman", "is_bot", "isBot", "is_user", "isUser"}


def read_flagged(messages: list[dict]) -> list[Utterance]:
    """Messages without a speaker, of which a flag such as is_human tells the side (PIPPA)."""
    _, text_key = speaker_and_text(messages)
    utterances = []
    for message in messages:
        speaker = role_of("", message) or "unknown"
        named = {**message, "speaker": speaker}
        utterances.append(read_utterance(named, "speaker", text_key))
    return utterances


def find_format(messages: list[dict]) -> MessageFormat | None:
    """The format of a list of messages: by its signature, else by a speaker and a text."""
    keys = set().union(*messages)
    speaker_key, text_key = speaker_and_text(messages)
    for message_format in FORMATS:
        if message_format.keys <= keys and fits(message_format, messages):
            return message_format
    if not speaker_key and text_key and keys & FLAGS_OF_SIDES:
        return MessageFormat("messages with a flag of their side", keys, read_flagged)
    if not speaker_key and {"text", "metadata"} <= keys:
        return MessageFormat("MultiWOZ 2.1: user and bot in turn", keys, in_turn)
    if not text_key and exchange_keys(messages[0]):
        return MessageFormat("exchanges of user and bot", keys, read_exchanges)
    if speaker_key and text_key and _speakers_recur(messages, speaker_key, text_key):
        return MessageFormat(f"messages ({speaker_key}, {text_key})", keys, read_plain)
    return None


def fits(message_format: MessageFormat, messages: list[dict]) -> bool:
    """Whether messages with the keys of a format are of it.

    Plain ones have their speaker and words under these keys; those of LangChain say what writes.
    """
    if message_format.read is read_plain:
        return set(speaker_and_text(messages)) == message_format.keys
    if message_format.read is read_langchain:
        roles = {utterance.role for utterance in read_langchain(messages)}
        return bool(roles & {"user", "assistant"})
    return True


def _speakers_recur(messages: list[dict], speaker_key: str, text_key: str) -> bool:
    """Whether the values look like speakers and texts: not a list of names, tags or files."""
    any_text = any(text_of(message.get(text_key)) for message in messages)
    speakers = {str(message.get(speaker_key)) for message in messages}
    with_role = any(speaker_role(speaker) for speaker in speakers)
    recur = len(speakers) < len(messages) or len(messages) <= 2
    return any_text and (with_role or recur)


def message_list(cell: Any) -> list[dict]:
    """The messages in a field of a record; empty where it is no list of messages."""
    if isinstance(cell, str) and cell.startswith("[{"):
        cell = parse_list(cell)
    if not isinstance(cell, list) or is_blocks(cell):
        return []
    if cell and isinstance(cell[0], str):
        cell = pairs_of_lines(cell)
    if all(
        isinstance(item, list) and [*map(type, item)] == [str, str] for item in cell
    ):
        if not begin_with_speakers(cell):
            return []  # pairs of other kinds: which side says what, nothing tells
        return [{"speaker": speaker, "text": text} for speaker, text in cell]
    messages = []
    for item in cell:
        if not isinstance(item, list):
            messages.append(item)
        elif len(item) <= 2:  # ParlAI has them in pairs
            messages += item
        else:
            return []  # a dialog each
    if not all(isinstance(message, dict) for message in messages):
        return []
    return messages


def pairs_of_lines(lines: list) -> list[list[str]]:
    """Speaker and words of each line such as "User: Hi"; none unless each line has a speaker.

    >>> pairs_of_lines(["User: Hi", "Bot: Ho"]), pairs_of_lines(["Hi", "Ho"])
    ([['User', 'Hi'], ['Bot', 'Ho']], [])
    """
    pairs = []
    for line in lines:
        match = SPEAKER_START.match(line[:60]) if isinstance(line, str) else None
        if not match:
            return []
        pairs.append([match["name"], line[match.end() :].strip()])
    several = len({name for name, _ in pairs}) > 1
    known = any(speaker_role(name) for name, _ in pairs)
    return pairs if several and known else []


def begin_with_speakers(pairs: list[list[str]]) -> bool:
    """Whether pairs of texts are of speaker and words, as in ABCD, not of what two say (Gradio).

    >>> begin_with_speakers([["Hi", "Ho"], ["Tea?", "No"]])
    False
    """
    names = {name for name, _ in pairs}
    short = all(len(name) <= 40 and name[-1:] not in ".!?" for name in names)
    return short and (len(names) < len(pairs) or any(map(speaker_role, names)))


def is_blocks(cell: list) -> bool:
    """Whether a list holds the blocks of one message, such as texts, pictures and calls."""
    first = cell[0] if cell else None
    if not isinstance(first, dict) or str(first.get("type")) not in BLOCKS:
        return False
    if {"role", "sender", "author", "from", "speaker"} & set(first):
        return False  # a message, which may have such a type too
    kinds = {str(item.get("type")) for item in cell if isinstance(item, dict)}
    return kinds <= BLOCKS


def message_fields(record: dict) -> dict[str, MessageFormat]:
    """The fields of a record that hold a list of messages, with the format of each."""
    fields = {}
    for name, cell in record.items():
        may_hold = isinstance(cell, list) or (
            isinstance(cell, str) and cell[:2] == "[{"
        )
        messages = message_list(cell) if may_hold else []
        if not messages:
            continue
        message_format = find_format(messages)
        if message_format:
            fields[name] = message_format
    return fields


def choose_field(record: dict, fields: Mapping[str, MessageFormat]) -> str:
    """The one field of a record with its messages.

    Raises:
        UnknownFormat: where several might be it, naming them.
    """
    if len(fields) == 1:
        return next(iter(fields))
    parlai = {name for name in fields if fields[name].keys == {"id", "text"}}
    if parlai == set(fields) == {"dialog", "context"}:
        return "dialog"  # `context` has the personas, in logs of ParlAI's worlds
    named = [
        name for name in fields if snake_case(name) in ("messages", "conversations")
    ]
    unlike = [name for name in fields if fields[name].name.startswith("messages (")]
    if len(named) == 1 and len(unlike) == len(fields) - 1 and named[0] not in unlike:
        return named[0]
    names = list(fields)[:8]
    ways = " or ".join(f'COLUMNS="messages={name}"' for name in names)
    raise UnknownFormat(
        f"has several lists of messages: {', '.join(names)}",
        fix=f"name the one that is the dialog: {ways}",
    )


def read_record(record: dict, field: str | None = None) -> tuple[Dialog, str] | None:
    """The dialog in a record that has a list of messages, and the name of their format.

    Args:
        field: where the messages are; None: there is one list of them.
    """
    fields = message_fields(record)
    if field not in fields:
        if not fields:
            return None
        field = choose_field(record, fields)
    message_format = fields[field]
    about = {snake_case(name): value for name, value in record.items() if name != field}
    if isinstance(record[field], str):  # in a table, whose empty cells hold nothing
        about = {name: value for name, value in about.items() if value != ""}
    dialog = Dialog(
        id=first_text(about, ["id", *DIALOG]) or "",
        utterances=[],
        system=first_value(about, MODEL, str) or model_of_settings(about),
    )
    if isinstance(about.get("personality"), list):
        dialog.facts += about["personality"]
    for utterance in message_format.read(message_list(record[field])):
        add_without_persona(dialog, utterance)
    rated = add_reply_beside(dialog, about)
    rated.ratings += read_ratings(about, first_text(about, RATERS))
    drop_placeholders(dialog, about)
    return dialog, message_format.name


def model_of_settings(about: Mapping[str, Any]) -> str | None:
    """The model that the settings of a dialog name."""
    for name in ("config", "settings", "model_config", "options", "params", "metadata"):
        if isinstance(about.get(name), dict):
            model = first_value(about[name], MODEL, str)
            if model:
                return model
    return None


def add_reply_beside(dialog: Dialog, about: Mapping[str, Any]) -> Dialog | Utterance:
    """Add the reply that stands beside the messages, as in a log of requests.

    Returns:
        What a rating beside it is of: the reply that was added, else the dialog.

    Raises:
        UnknownFormat: where the messages end with another reply, or there are several.
    """
    several = [name for name in about if NUMBERED_REPLY.fullmatch(name)]
    if len(several) > 1:
        raise UnknownFormat(
            f"has messages, and several replies beside them: {', '.join(several[:8])}",
            fix="write one row per reply, with its system",
        )
    replies = {name: reply_text(about.get(name)) for name in REPLY_FIELDS}
    is_empty = "" in replies.values()
    replies = {name: reply for name, reply in replies.items() if reply}
    if len(replies) > 1 and isinstance(about.get("message"), str):
        replies.pop("message", None)  # such as "success"
    if len({reply.strip() for reply in replies.values()}) > 1:
        raise UnknownFormat(
            f"has messages, and several replies beside them: {', '.join(replies)}",
            fix=f'name the one to read: COLUMNS="response={next(iter(replies))}"',
        )
    name, reply = next(iter(replies.items()), ("", None))
    turns = [u for u in dialog.utterances if u.role in ("user", "assistant") and u.text]
    if not reply and turns and turns[-1].role == "user":
        check_no_reply(about)
        if is_empty:
            dialog.utterances.append(assistant(""))
            return dialog.utterances[-1]
    if not reply or not turns:
        return dialog
    ends_in_it = turns[-1] is dialog.utterances[-1]  # and in no result of a tool
    if ends_in_it and turns[-1].text.strip() == reply.strip():
        return dialog
    if ends_in_it and turns[-1].role == "assistant":
        problem = f"has messages that end with a reply, and another one in {name!r}"
        raise UnknownFormat(
            problem, fix="leave one of them out, or write one row per reply"
        )
    bots = [utterance.speaker for utterance in turns if utterance.role == "assistant"]
    dialog.utterances.append(assistant(reply, *bots[:1]))
    return dialog.utterances[-1]


def check_no_reply(about: Mapping[str, Any]) -> None:
    """Refuse messages that end with the user where a field beside them may hold the reply.

    Raises:
        UnknownFormat: with the name of that field.
    """
    for name, value in about.items():
        if not (LIKE_REPLY.fullmatch(name) and value and isinstance(value, str | list)):
            continue
        fix = f'say so: COLUMNS="response={name}", or leave that field out'
        if not reply_text(value):
            fix = "write one row per reply, with its system"
        raise UnknownFormat(
            f"has messages that end with the user, and perhaps the reply to them in {name!r}",
            fix=fix,
        )


def reply_text(value: Any) -> str | None:
    """The reply in what a model gave back: a text, a message, choices or generations.

    An empty text is an empty reply, where no tool is called beside it.

    >>> reply_text({"content": "Hi"}), reply_text([""]), reply_text({"content": None})
    ('Hi', '', None)
    """
    if isinstance(value, list):
        pieces = streamed_pieces(value)
        if pieces:
            return "".join(pieces)
        replies = [reply_text(item) for item in value]
        texts = [text for text in replies if text]
        items = [item for item in dicts(value) if item.get("type") == "message"]
        if len(items) > 1:  # of OpenAI's Responses
            return "\n".join(text for text in map(reply_text, items) if text) or None
        if not texts and "" in replies:
            return ""
        return texts[0] if len(texts) == 1 else None
    if isinstance(value, dict):
        if value.get("object") == "response":  # of OpenAI, whose `text` is a setting
            return first_words(value, "output[type=message].content")
        for name in ANSWER_FIELDS:
            if value.get(name):
                return text_of(value[name]) or reply_text(value[name])
        is_empty = any(
            value.get(name) == "" for name in ANSWER_FIELDS if name != "refusal"
        )
        return "" if is_empty and not calls_a_tool(value) else None
    if isinstance(value, str) and value[:1] == "{":
        parsed = parse_list(value)
        is_answer = isinstance(parsed, dict) and ANSWER_KEYS & set(parsed)
        return reply_text(parsed) if is_answer else value
    return value if isinstance(value, str) else None


def streamed_pieces(events: list) -> list[str]:
    """The words in the events of a stream; none in a list of another kind.

    >>> streamed_pieces([{"choices": [{"index": 0, "delta": {"content": "Ho"}}]}])
    ['Ho']
    """
    pieces = []
    for event in dicts(events):
        is_text = "done" in event and isinstance(event.get("message"), dict)  # Ollama
        paths = ("message.content",) if is_text else PIECES
        texts = [value_at(event, path) for path in paths]
        pieces += [text for text in texts if isinstance(text, str)]
        pieces += gemini_pieces(event)
    return pieces


def gemini_pieces(event: dict) -> list[str]:
    """The words in a piece of a stream of Gemini, or in a whole reply of it."""
    pieces = []
    for candidate in dicts(event.get("candidates"))[:1]:
        for part in values_at(candidate, "content.parts[]"):
            text = text_of(part)
            pieces += [text] if text else []
    return pieces


def text_from_json(
    value: Any, read: Callable[[Any], str | None] = reply_text
) -> str | None:
    """The words of a message that may be written as JSON; JSON of another kind is the words.

    >>> text_from_json('{"content": "Hi"}'), text_from_json('{"name": "Ada"}')
    ('Hi', '{"name": "Ada"}')
    >>> text_from_json('[{"type": "function", "function": {}}]') is None
    True
    """
    parsed = from_json(value)
    text = read(parsed)
    if text is None and isinstance(value, str) and parsed:
        names = set().union(parsed if isinstance(parsed, dict) else (), *dicts(parsed))
        names = {str(name).removeprefix("message.") for name in names}  # OpenInference
        return None if names & MESSAGE_KEYS else value
    return text


def choices_of(value: Any) -> list[Any]:
    """What a model gave back, one by one where it was asked for several choices.

    OpenAI numbers its choices; Gemini's candidates have a content each. The messages of one
    response of OpenAI are no choices.
    """
    choices = value
    if isinstance(value, dict):
        choices = first_value(value, ("choices", "candidates"))
    if not isinstance(choices, list) or len(choices) < 2:
        return [value]
    whole = []
    for choice in choices:
        is_choice = isinstance(choice, dict) and {"index", "content"} & set(choice)
        if is_choice and choice.get("type") != "message" and reply_text(choice):
            whole.append(choice)
    return whole if len(whole) == len(choices) else [value]


def add_without_persona(dialog: Dialog, utterance: Utterance) -> None:
    """Add an utterance; lines of a persona before it, as ParlAI has them, become facts."""
    persona = PERSONA_LINES.match(utterance.text or "")[0]
    if persona:
        dialog.facts += re.findall(r"^your persona: *(.*)", persona, flags=re.M)
        utterance.text = utterance.text.removeprefix(persona)
    if utterance.text == SILENCE:
        return
    if utterance.text or not persona:
        dialog.utterances.append(utterance)


def woven(user_texts: list, bot_texts: list) -> list[Utterance]:
    """What users and bot said in turn, from two lists."""
    utterances = []
    for user_text, bot_text in zip(user_texts, bot_texts, strict=False):
        utterances += [user(user_text), assistant(bot_text)]
    return utterances
