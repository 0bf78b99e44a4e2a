"""Traces of requests to models, and logs of evaluations."""

from collections import Counter
from typing import Any

from lib.data.dialogs import Dialog, Rating, Utterance, speaker_role
from lib.data.log_messages import find_format, read_plain, reply_text
from lib.data.log_parts import (
    as_script,
    assistant,
    first_text,
    first_value,
    text_of,
    to_number,
    user,
    words_of,
)
from lib.data.log_platforms import from_json
from lib.data.log_times import to_time

THREAD = ("thread_id", "session_id", "conversation_id")
SPAN_ATTRIBUTES = (  # of calls of models
    "gen_ai.input.messages",
    "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.content",
    "llm.input_messages.0.message.role",
)
SPAN_SIGNATURES = ["attributes." + name.replace(".", "\\.") for name in SPAN_ATTRIBUTES]
SPAN_MODELS = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "llm.response.model",
)
SPAN_THREADS = (
    "gen_ai.conversation.id",
    "session.id",
    *(f"traceloop.association.properties.{name}" for name in THREAD),
    "traceloop.association.properties.chat_id",
)


def traced_dialog(
    name: str, messages: Any, *, output: Any, time: Any, model: str | None
) -> Dialog:
    """What went into a model and what came out; the time is that of the reply."""
    utterances = trace_messages(messages)
    reply = reply_text(from_json(output))
    if reply:
        utterances.append(assistant(reply))
    if len(utterances) < 3:
        for utterance in utterances:
            utterance.time = to_time(time)
    elif utterances:
        utterances[-1].time = to_time(time)
    return Dialog(name, utterances, model)


def trace_messages(value: Any) -> list[Utterance]:
    """The utterances in the input of a trace: a text, messages, or messages below a name."""
    value = from_json(value)
    if isinstance(value, dict):
        value = first_value(
            value, ("messages", "input", "question", "query", "prompt", "content")
        )
    if isinstance(value, str):
        return [user(value)]
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    messages = [plain_message(item) for item in value or [] if isinstance(item, dict)]
    if not messages:
        return []
    message_format = find_format(messages)
    return message_format.read(messages) if message_format else []


def plain_message(message: dict) -> dict:
    """A message with "message.role" as OpenInference writes it, or `parts` as Gemini does."""
    plain = {name.removeprefix("message."): value for name, value in message.items()}
    if "content" not in plain and "parts" in plain:
        plain["content"] = plain.pop("parts")
    return plain


def read_langfuse(rows: list[dict], source) -> list[Dialog]:
    """Langfuse's traces: one per reply, with the history so far; scores hold users' feedback."""
    dialogs = []
    for row in rows:
        name = str(
            row.get("sessionId") or row.get("session_id") or row.get("traceId") or ""
        )
        version = first_text(row, ["release", "version", "model", "providedModelName"])
        time = first_value(row, ("timestamp", "startTime", "start_time"))
        dialog = traced_dialog(
            name, row.get("input"), output=row.get("output"), time=time, model=version
        )
        for score in row.get("scores") or []:
            if isinstance(score, dict) and score.get("source") != "EVAL":
                rating = Rating(None, score["name"], score.get("value"))
                dialog.utterances[-1].ratings.append(rating)
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def read_langsmith(rows: list[dict], source) -> list[Dialog]:
    """LangSmith's runs of models; the thread stands in the metadata, session_id is the project."""
    dialogs = []
    for row in rows:
        if row.get("run_type") not in ("llm", "chat_model"):
            source.exclude("dialogs", "are runs of chains and tools, not of models")
            continue
        row = {key: from_json(value) for key, value in row.items()}
        metadata = (row.get("extra") or {}).get("metadata") or {}
        name = first_text(metadata, THREAD) or ""
        inputs = (row.get("inputs") or {}).get("messages")
        model = first_text(metadata, ["ls_model_name"])
        dialog = traced_dialog(
            name,
            inputs,
            output=row.get("outputs"),
            time=row.get("start_time"),
            model=model,
        )
        for dimension, stats in (row.get("feedback_stats") or {}).items():
            rating = Rating(None, dimension, (stats or {}).get("avg"))
            dialog.utterances[-1].ratings.append(rating)
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def read_otel(record: dict, source) -> list[Dialog]:
    """OpenTelemetry's spans of generative models: messages are JSON in attributes."""
    dialogs = []
    for resource in record["resourceSpans"]:
        for scope in resource.get("scopeSpans") or []:
            for span in scope.get("spans") or []:
                attributes = otel_attributes(span)
                if any(name in attributes for name in SPAN_ATTRIBUTES):
                    time = to_number(span.get("startTimeUnixNano"))
                    dialogs.append(
                        otel_dialog(span.get("traceId"), attributes, time=time)
                    )
    return join_histories(dialogs, source)


def read_span_rows(rows: list[dict], source) -> list[Dialog]:
    """Spans as exporters for the console write them: the attributes are a mapping."""
    dialogs = []
    for row in rows:
        attributes = row.get("attributes") or {}
        if any(name in attributes for name in SPAN_ATTRIBUTES):
            trace = (row.get("context") or {}).get("trace_id") or row.get("trace_id")
            time = first_value(row, ("start_time", "startTime", "timestamp"))
            dialogs.append(otel_dialog(trace, attributes, time=time))
        else:
            source.exclude("dialogs", "are spans of other things than models")
    return join_histories(dialogs, source)


def otel_attributes(span: dict) -> dict[str, Any]:
    """The attributes of a span by name."""
    attributes = {}
    for attribute in span.get("attributes") or []:
        attributes[attribute["key"]] = next(
            iter((attribute.get("value") or {"": None}).values())
        )
    return attributes


def otel_dialog(trace: Any, attributes: dict[str, Any], *, time: Any) -> Dialog:
    """One call of a model: its input and output, as messages with parts or message by message."""
    utterances = []
    for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
        for message in from_json(attributes.get(name)) or []:
            text = text_of(message.get("parts"))
            utterances.append(Utterance(message["role"], message["role"], text))
    for prefix in ("gen_ai.prompt", "llm.input_messages"):
        utterances += indexed_messages(attributes, prefix)
    for prefix in ("gen_ai.completion", "llm.output_messages"):
        utterances += indexed_messages(attributes, prefix)[:1]
    if utterances:
        utterances[-1].time = to_time(time)
    model = first_text(attributes, SPAN_MODELS)
    name = first_text(attributes, SPAN_THREADS) or trace
    return Dialog(str(name), utterances, model)


def indexed_messages(attributes: dict[str, Any], prefix: str) -> list[Utterance]:
    """Messages with an attribute for each of their parts, such as "gen_ai.prompt.0.content"."""
    messages: dict[int, dict] = {}
    for name, value in attributes.items():
        if name.startswith(f"{prefix}."):
            number, _, part = name.removeprefix(f"{prefix}.").partition(".")
            messages.setdefault(int(number), {})[part.removeprefix("message.")] = value
    utterances = []
    for _, message in sorted(messages.items()):
        role = str(message.get("role", "assistant"))
        text = text_of(from_json(message.get("content")))
        utterances.append(Utterance(role, speaker_role(role), text))
        if role == "system":
            utterances[-1].role = "system"
    return utterances


def join_histories(dialogs: list[Dialog], source) -> list[Dialog]:
    """Requests of one thread as one dialog: each reply once, with the history it was made from.

    Of requests whose history is the beginning of another's the longest stays, and takes over the
    ratings of their replies. A request with a history of its own begins a branch, whose earlier
    utterances are context only.
    """
    threads: dict[str, list[Dialog]] = {}
    for number, dialog in enumerate(dialogs):
        threads.setdefault(dialog.id or f"request {number}", []).append(dialog)
    joined = []
    for requests in threads.values():
        if len(requests) > 1 and all(is_single_exchange(dialog) for dialog in requests):
            joined.append(woven_requests(requests))
            continue
        requests.sort(key=lambda dialog: len(talk_of(dialog)), reverse=True)
        paths: list[Dialog] = []
        for dialog in requests:
            add_history(paths, dialog, source)
        joined += paths
    return without_beginnings(joined, source)


def without_beginnings(dialogs: list[Dialog], source) -> list[Dialog]:
    """Dialogs without those that are the beginning of another, where a file logs each request.

    A file does so where of most dialogs with several replies the one before the last reply is
    in it too.
    """
    after_replies = [reply_hashes(dialog) for dialog in dialogs]
    whole = {hashes[-1] for hashes in after_replies if hashes}
    several = [hashes for hashes in after_replies if len(hashes) > 1]
    continued = Counter(hashes[-2] for hashes in several)
    grown = sum(hashes[-2] in whole for hashes in several)
    if grown <= len(several) / 2:
        return dialogs
    source.guess(
        "kind", "requests", "each repeats the history: the longest of each are read"
    )
    longest = []
    for dialog, hashes in zip(dialogs, after_replies, strict=True):
        if hashes and continued[hashes[-1]] > 0:
            continued[hashes[-1]] -= (
                1  # another one of the same words is a dialog of its own
            )
        else:
            longest.append(dialog)
    source.exclude(
        "dialogs", "are the beginning of a longer one", len(dialogs) - len(longest)
    )
    return longest


def reply_hashes(dialog: Dialog) -> list[int]:
    """A hash of all talk up to each reply of the bot; of who speaks last where none is known."""
    talk = list(filter(is_talk, dialog.utterances))
    by_role = any(utterance.role == "assistant" for utterance in talk)
    hashes = []
    so_far = 0
    for utterance in talk:
        who = utterance.role if by_role else utterance.speaker
        so_far = hash((so_far, who, utterance.text.strip()))
        by_last = not by_role and utterance.speaker == talk[-1].speaker
        if by_last or utterance.role == "assistant":
            hashes.append(so_far)
    return hashes


def is_single_exchange(dialog: Dialog) -> bool:
    """Whether a request of a session holds no history: what was asked and answered, at a time."""
    roles = [role for role, _ in talk_of(dialog)]
    return roles == ["user", "assistant"] and dialog.utterances[-1].time is not None


def woven_requests(requests: list[Dialog]) -> Dialog:
    """One dialog of the requests of a session that hold no history, in the order of time."""
    requests = sorted(requests, key=lambda dialog: dialog.utterances[-1].time)
    dialog = Dialog(requests[0].id, [], requests[0].system)
    for request in requests:
        request.utterances[-1].system = request.system
        dialog.utterances += request.utterances
    return dialog


def is_talk(utterance: Utterance) -> bool:
    """Whether an utterance has words and is of a person or a bot."""
    return utterance.text is not None and utterance.role not in ("tool", "system")


def talk_of(dialog: Dialog) -> list[tuple]:
    """Roles and texts of what is talk in a dialog."""
    utterances = filter(is_talk, dialog.utterances)
    return [(utterance.role, utterance.text.strip()) for utterance in utterances]


def add_history(paths: list[Dialog], dialog: Dialog, source) -> None:
    """Add a request to the longest ones of its thread, unless one of them goes on from it."""
    texts = talk_of(dialog)
    for longer in paths:
        if texts and talk_of(longer)[: len(texts)] == texts:
            reply = list(filter(is_talk, longer.utterances))[len(texts) - 1]
            reply.ratings += dialog.utterances[-1].ratings
            reply.system = dialog.system
            source.exclude("dialogs", "are the beginning of a longer one")
            return
    if dialog.utterances and dialog.system:
        dialog.utterances[-1].system = dialog.system
    paths.append(dialog)


def read_inspect(record: dict, source) -> list[Dialog]:
    """Inspect's log: a dialog per sample and epoch; scores are of scorers, not of people."""
    model = (record.get("eval") or {}).get("model")
    return [inspect_dialog(sample, model) for sample in record["samples"]]


def read_inspect_sample(record: dict, source) -> list[Dialog]:
    """One sample of Inspect's .eval, whose model stands in header.json."""
    header = source.sibling("header.json") or {}
    return [inspect_dialog(record, (header.get("eval") or {}).get("model"))]


def inspect_dialog(sample: dict, model: str | None) -> Dialog:
    """The messages of a sample."""
    name = f"{sample['id']} epoch {sample.get('epoch', 1)}"
    utterances = []
    for message in sample["messages"]:
        text = words_of(message)
        utterances.append(Utterance(message["role"], message["role"], text))
    return Dialog(name, utterances, model)


def read_openai_evals(rows: list[dict], source) -> list[Dialog]:
    """OpenAI evals: of each sample only the last reply was sampled; the rest is context."""
    spec = next((row["spec"] for row in rows if "spec" in row), {})
    model = first_text({"m": (spec.get("completion_fns") or [None])[0]}, ["m"])
    dialogs = []
    for row in rows:
        if row.get("type") != "sampling":
            continue
        data = row["data"]
        prompt = data["prompt"]
        utterances = [user(prompt)] if isinstance(prompt, str) else read_plain(prompt)
        sampled = data["sampled"]
        reply = sampled if isinstance(sampled, str) else reply_text(sampled[:1])
        name = str(row.get("sample_id") or "")
        dialogs.append(Dialog(name, [*as_script(utterances), assistant(reply)], model))
    return dialogs


def read_promptfoo(record: dict, source) -> list[Dialog]:
    """promptfoo: a row per provider and test; its scores are a judge's."""
    results = record["results"]
    rows = results["results"] if isinstance(results, dict) else results
    dialogs = []
    for number, row in enumerate(rows):
        prompt = from_json((row.get("prompt") or {}).get("raw"))
        utterances = trace_messages(prompt)
        provider = row.get("provider") or {}
        model = (
            first_text(provider, ["label", "id"])
            if isinstance(provider, dict)
            else provider
        )
        reply = reply_text((row.get("response") or {}).get("output"))
        name = str(row.get("testIdx", row.get("promptIdx", number)))
        dialogs.append(Dialog(name, [*as_script(utterances), assistant(reply)], model))
    return dialogs
