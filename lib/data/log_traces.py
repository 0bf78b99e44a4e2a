"""Traces of requests to models: each with the history so far, which is read once."""

import re
from collections import Counter, deque
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple

from lib.data.dialogs import Dialog, Rating, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat, parse_list
from lib.data.log_messages import (
    USER_TEXT,
    find_format,
    message_list,
    text_from_json,
)
from lib.data.log_parts import (
    as_script,
    assistant,
    dicts,
    first_text,
    first_value,
    from_json,
    read_ratings,
    text_at,
    text_of,
    to_number,
    user,
    value_at,
    values_at,
)
from lib.data.log_prompts import prompt_turns
from lib.data.log_times import to_time

WINDOWS_LOOKED_AT = 200
THREAD = ("thread_id", "session_id", "conversation_id")
TRACE = ("traceId", "trace_id")
ASKED = (
    "messages",
    "contents",  # of Gemini
    "input",
    "question",
    "query",
    "prompt",
    "prompts",
    "content",
    *USER_TEXT,
    "text",
)
ANSWERED = ("answer", "response", "output", "output_text", "reply", "result")
# Steps of Langfuse that are no reply to anybody.
NO_REPLIES = ("TOOL", "RETRIEVER", "EMBEDDING", "EVALUATOR", "GUARDRAIL", "EVENT")
VERSIONS_OF_LANGFUSE = (
    "release",
    "version",
    "model",
    "providedModelName",
    "provided_model_name",
)
SPAN_ATTRIBUTES = (  # of calls of models
    "gen_ai.input.messages",
    "gen_ai.prompt",
    "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.content",
    "gen_ai.prompt.0.user",
    "llm.input_messages.0.message.role",
    "ai.prompt.messages",
    "gcp.vertex.agent.llm_request",
)
AGENT_CALLS = ("invoke_agent", "create_agent", "invoke_workflow")
# What is no call of a model, though it may hold words that went in or came out.
OTHER_CALLS = ("execute_tool", "embeddings", "retrieval")
# Events of spans that hold what came out of a model.
SPAN_REPLIES = ("gen_ai.choice", "gen_ai.content.completion")
SPAN_SIGNATURES = [f"events[].name={','.join(SPAN_REPLIES)}"]
SPAN_SIGNATURES += [
    "attributes." + name.replace(".", "\\.") for name in SPAN_ATTRIBUTES
]
# Where a run of LangSmith names the model that answered.
LANGSMITH_ANSWERED = "outputs.llm_output.model_name|outputs.model"
SPAN_MODELS = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "llm.response.model",
    "ai.response.model",
    "ai.model.id",
)
SPAN_THREADS = (
    "gen_ai.conversation.id",
    "session.id",
    "gcp.vertex.agent.session_id",
    *(f"traceloop.association.properties.{name}" for name in THREAD),
    "traceloop.association.properties.chat_id",
    "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.threadId",
    "ai.telemetry.metadata.chatId",
)


def traced_dialog(
    name: str, messages: Any, *, output: Any, time: Any, model: str | None
) -> Dialog:
    """What went into a model and what came out; the time is that of the reply.

    Nothing at all where what went in is in no known form: a reply without its context misleads.
    LangGraph gives back all messages of a thread, or those that are new.
    """
    utterances = trace_messages(messages)
    state = from_json(output)
    given_back = trace_messages(state) if holds_message_list(state) else []
    holds_both = any(utterance.role == "user" for utterance in given_back)
    if messages and not utterances and not holds_both:
        return Dialog(name, [], model)
    utterances = given_back if holds_both else [*utterances, *given_back]
    for utterance in utterances:
        if utterance.role == "assistant" and speaker_role(utterance.speaker):
            utterance.speaker = "assistant"  # the same as in the output
    reply = None if given_back else trace_reply(output, messages)
    if reply and is_begun(utterances, state):
        reply = utterances.pop().text + reply
    if reply:
        utterances.append(assistant(reply))
    if len(utterances) < 3:
        for utterance in utterances:
            utterance.time = to_time(time)
    elif utterances:
        utterances[-1].time = to_time(time)
    return Dialog(name, utterances, model)


def is_begun(utterances: list[Utterance], output: Any) -> bool:
    """Whether a request to Claude ends with the beginning of the reply, and the rest came back."""
    if not utterances or not isinstance(output, dict):
        return False
    is_claude = output.get("type") == "message" and output.get("role") == "assistant"
    return is_claude and is_of_bot(utterances[-1]) and is_talk(utterances[-1])


def trace_reply(output: Any, messages: Any) -> str | None:
    """The words that came out of a model, or below a name of a chain such as "answer".

    In a table both stand as JSON: only a chain, into which fields went, gives back fields.
    """
    fields = from_json(output)
    is_written = isinstance(output, str) and not isinstance(from_json(messages), dict)
    if isinstance(fields, dict) and not is_written and "choices" not in fields:
        answer = first_value(fields, ANSWERED, str)
        if answer:
            return answer
    return text_from_json(output)


def holds_message_list(output: Any) -> bool:
    """Whether what came out of a model or a graph is a list of messages below that name."""
    return isinstance(output, dict) and len(dicts(output.get("messages"))) > 0


def trace_messages(value: Any) -> list[Utterance]:
    """The utterances in the input of a trace: a text, messages, or messages below a name."""
    value = from_json(value)
    if isinstance(value, dict):
        return messages_below_name(value)
    if isinstance(value, str):
        return prompt_turns(value) or [user(value)]
    if isinstance(value, list) and value and is_pair(value[0]):
        value = message_list(value)
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return trace_messages(value[0])
    messages = [plain_message(item) for item in value or [] if isinstance(item, dict)]
    if not messages:
        return []
    message_format = find_format(messages)
    return message_format.read(messages) if message_format else []


def messages_below_name(fields: dict) -> list[Utterance]:
    """The messages below a name; or what was asked, and the history that stands beside it.

    A decorator keeps the arguments of a function, of which one may be what was asked.
    """
    if set(fields) == {"args", "kwargs"}:
        return trace_messages(fields["kwargs"] or fields["args"])
    asked = trace_messages(first_value(fields, ASKED))
    history = first_value(fields, ("chat_history", "history"), list)
    if not history or fields.get("messages"):
        return asked
    earlier = trace_messages(history)
    return [*earlier, *asked] if earlier else []


def is_pair(item: Any) -> bool:
    """Whether an item of a list is a pair of texts, such as a speaker and what was said."""
    return isinstance(item, list) and [*map(type, item)] == [str, str]


def plain_message(message: dict) -> dict:
    """A message with "message.role" as OpenInference writes it, or `parts` as Gemini does."""
    if set(message) == {"message"} and isinstance(message["message"], dict):
        message = message["message"]
    plain = {name.removeprefix("message."): value for name, value in message.items()}
    if "content" not in plain and "parts" in plain:
        plain["content"] = plain.pop("parts")
    if not plain.get("content") and plain.get("contents"):
        plain["content"] = [plain_block(block) for block in dicts(plain["contents"])]
    return plain


def plain_block(block: dict) -> dict:
    """A block of a message of OpenInference, with the names that others use."""
    block = block.get("message_content", block)
    return {name.removeprefix("message_content."): block[name] for name in block}


def read_langfuse(rows: list[dict], source) -> list[Dialog]:
    """Langfuse's traces: one per reply, with the history so far; scores hold users' feedback.

    Of observations, those of models are read where a trace has any; a judge's are not.
    """
    rows = langfuse_rows(rows)
    with_model = {
        first_text(row, TRACE) for row in rows if row.get("type") == "GENERATION"
    }
    dialogs = []
    for row in rows:
        is_step = row.get("type", "GENERATION") != "GENERATION"
        in_model_trace = first_text(row, TRACE) in with_model
        if is_step and (in_model_trace or row["type"] in NO_REPLIES):
            source.exclude("dialogs", "are spans of other things than models")
            continue
        if str(row.get("environment")).startswith("langfuse-"):
            source.exclude("dialogs", "are calls of a judge")
            continue
        name = first_text(row, ("sessionId", "session_id", *TRACE)) or ""
        version = first_text(row, VERSIONS_OF_LANGFUSE)
        time = first_value(row, ("timestamp", "startTime", "start_time"))
        dialog = traced_dialog(
            name, row.get("input"), output=row.get("output"), time=time, model=version
        )
        if not dialog.utterances:
            source.exclude("dialogs", "have no messages")
            continue
        for score in dicts(row.get("scores")):
            if score.get("source") != "EVAL":
                value = first_value(score, ("value", "stringValue"))
                rating = Rating(None, score["name"], value)
                dialog.utterances[-1].ratings.append(rating)
        columns = {name.removeprefix("scores."): row[name] for name in row}
        columns = {name: from_json(cell) for name, cell in columns.items()}
        dialog.utterances[-1].ratings += read_ratings(columns)
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def langfuse_rows(rows: list[dict]) -> list[dict]:
    """The rows, with a trace and the observations beside or in it as one row, or as these.

    What went into the trace and came out of it is what its user saw; without both in a known form
    its calls of models are read, and the scores of the trace are of the last of them.
    """
    unfolded = []
    for row in rows:
        observations = dicts(row.get("observations"))
        trace = row["trace"] if isinstance(row.get("trace"), dict) else row
        trace = trace | plain_ends(trace)
        calls = [step for step in observations if step.get("type") == "GENERATION"]
        calls.sort(key=lambda call: str(call.get("startTime")))
        models = [first_text(call, VERSIONS_OF_LANGFUSE) for call in calls]
        is_whole = (
            trace_messages(trace.get("input")) and trace.get("output") is not None
        )
        if is_whole or not calls:
            unfolded.append({"model": next(filter(None, models[::-1]), None), **trace})
            continue
        for call in calls:
            unfolded.append({**call, "sessionId": trace.get("sessionId")})
        unfolded[-1]["scores"] = trace.get("scores")
    return unfolded


def plain_ends(trace: dict) -> dict[str, Any]:
    """What went into a trace and came out, which Langfuse's page downloads as JSON in quotes.

    Words in quotes stay where the other end is no JSON.
    """
    ends = {name: trace[name] for name in ("input", "output") if trace.get(name)}
    written = [value for value in ends.values() if isinstance(value, str)]
    if not all(value[0] in '"[{' for value in written):
        return ends
    return {name: unquoted(unquoted(value)) for name, value in ends.items()}


def read_langsmith(rows: list[dict], source) -> list[Dialog]:
    """LangSmith's runs of models; the thread stands in the metadata, session_id is the project.

    Feedback on the first run of a trace is one on the last reply in it. A trace without a run of a
    model is read from its first run, as LangGraph keeps all messages in what comes out of it.
    """
    runs = [{key: from_json(value) for key, value in row.items()} for row in rows]
    with_model = {run.get("trace_id") for run in runs if is_model_run(run)}
    dialogs = []
    feedback: dict[str, list[Rating]] = {}
    last_calls: dict[str, tuple[str, Dialog]] = {}
    for run in runs:
        trace = str(run.get("trace_id") or "")
        is_first = not run.get("parent_run_id")
        stands_for_trace = is_first and run.get("trace_id") not in with_model
        if not is_model_run(run) and not stands_for_trace:
            source.exclude("dialogs", "are runs of chains and tools, not of models")
            if is_first:
                feedback[trace] = langsmith_ratings(run)
            continue
        dialog = langsmith_dialog(run)
        if not dialog.utterances:
            source.exclude("dialogs", "have no messages")
            continue
        dialog.utterances[-1].ratings += langsmith_ratings(run)
        started = str(run.get("start_time"))
        if trace not in last_calls or started > last_calls[trace][0]:
            last_calls[trace] = (started, dialog)
        dialogs.append(dialog)
    for trace, (_, dialog) in last_calls.items():
        dialog.utterances[-1].ratings += feedback.get(trace, [])
    return join_histories(dialogs, source)


def is_model_run(run: dict) -> bool:
    """Whether a run of LangSmith is one of a model."""
    return run.get("run_type") in ("llm", "chat_model")


def langsmith_dialog(run: dict) -> Dialog:
    """What went into a run and what came out."""
    metadata = (run.get("extra") or {}).get("metadata") or {}
    # The model that answered; then the one that was asked for, which may be a shorter name.
    model = text_at(run, LANGSMITH_ANSWERED) or first_text(metadata, ["ls_model_name"])
    model = model or text_at(run, "extra.invocation_params.model,model_name")
    return traced_dialog(
        first_text(metadata, THREAD) or "",
        run.get("inputs"),
        output=run.get("outputs"),
        time=run.get("start_time"),
        model=model,
    )


def langsmith_ratings(row: dict) -> list[Rating]:
    """The means of the feedback on a run."""
    ratings = []
    for dimension, stats in (row.get("feedback_stats") or {}).items():
        mean = (stats or {}).get("avg")
        if mean is not None:
            ratings.append(Rating(None, dimension, mean))
    return ratings


class Span(NamedTuple):
    """A span of OpenTelemetry, or what was logged about one."""

    trace: Any
    attributes: dict[str, Any]
    events: list[dict]
    time: Any


def read_otel(rows: list[dict], source) -> list[Dialog]:
    """OpenTelemetry's spans of generative models: messages are JSON in attributes."""
    spans = []
    for row in rows:
        for span in values_at(row, "resourceSpans[].scopeSpans[].spans[]"):
            events = []
            for event in span.get("events") or []:
                events.append({**event, "attributes": otel_attributes(event)})
            time = to_number(span.get("startTimeUnixNano"))
            attributes = otel_attributes(span)
            spans.append(Span(span.get("traceId"), attributes, events, time))
    return read_spans(spans, source)


def read_otel_logs(rows: list[dict], source) -> list[Dialog]:
    """OpenTelemetry's logs: the messages of a call of a model are the events of its span."""
    spans: dict[tuple, Span] = {}
    for row in rows:
        for record in values_at(row, "resourceLogs[].scopeLogs[].logRecords[]"):
            attributes = otel_attributes(record)
            body = otel_value(record.get("body") or {})
            fields = attributes | (body if isinstance(body, dict) else {})
            name = record.get("eventName") or attributes.get("event.name")
            key = (record.get("traceId"), record.get("spanId"))
            time = first_value(record, ("timeUnixNano", "observedTimeUnixNano"))
            span = spans.setdefault(key, Span(key[0], {}, [], to_number(time)))
            span.events.append({"name": name, "attributes": fields})
    return read_spans(list(spans.values()), source)


def read_span_rows(rows: list[dict], source) -> list[Dialog]:
    """Spans as exporters for the console write them: the attributes are a mapping."""
    spans = []
    for row in rows:
        trace = (row.get("context") or {}).get("trace_id") or row.get("trace_id")
        time = first_value(row, ("start_time", "startTime", "timestamp"))
        attributes = row.get("attributes") or {}
        spans.append(Span(trace, attributes, row.get("events") or [], time))
    return read_spans(spans, source)


def read_spans(spans: list[Span], source) -> list[Dialog]:
    """The calls of models among spans; of agents where their trace has no others."""
    spans = [with_details(span) for span in spans]
    calls = [span for span in spans if is_model_call(span.attributes, span.events)]
    with_model = {span.trace for span in calls if not is_agent_call(span)}
    dialogs = []
    for span in calls:
        if not is_agent_call(span) or span.trace not in with_model:
            dialogs.append(otel_dialog(span))
    reason = "are spans of other things than models"
    source.exclude("dialogs", reason, len(spans) - len(dialogs))
    with_messages = [dialog for dialog in dialogs if dialog.utterances]
    n_empty = len(dialogs) - len(with_messages)
    source.exclude("dialogs", "have no messages", n_empty)
    return join_histories(with_messages, source)


def is_agent_call(span: Span) -> bool:
    """Whether a span is of an agent or its loop, whose calls of models may be spans below it."""
    is_loop = "event_loop.cycle_id" in span.attributes  # of Strands
    return is_loop or span.attributes.get("gen_ai.operation.name") in AGENT_CALLS


def with_details(span: Span) -> Span:
    """A span with the attributes of the event that may hold its messages.

    Logfire keeps the events as JSON in an attribute.
    """
    attributes = span.attributes
    events = list(span.events)
    for fields in dicts(attributes.get("events")):
        events.append({"name": fields.get("event.name"), "attributes": fields})
    for event in events:
        if event.get("name") == "gen_ai.client.inference.operation.details":
            attributes = attributes | (event.get("attributes") or {})
    return span._replace(attributes=attributes, events=events)


def is_model_call(attributes: dict[str, Any], events: list[dict]) -> bool:
    """Whether a span holds what went into a model and what came out, in either convention."""
    if attributes.get("gen_ai.operation.name") in OTHER_CALLS:
        return False
    if attributes.get("llm.request.type") == "embedding":
        return False
    named = {event.get("name") for event in events}
    return bool(set(SPAN_ATTRIBUTES) & set(attributes) or set(SPAN_REPLIES) & named)


def otel_attributes(span: dict) -> dict[str, Any]:
    """The attributes of a span, or of an event in it, by name."""
    attributes = {}
    for attribute in span.get("attributes") or []:
        attributes[attribute["key"]] = otel_value(attribute.get("value") or {})
    return attributes


def otel_value(value: dict) -> Any:
    """A value of an attribute, which may be a list or hold fields."""
    if "arrayValue" in value:
        return [otel_value(item) for item in value["arrayValue"].get("values") or []]
    if "kvlistValue" in value:
        return otel_attributes({"attributes": value["kvlistValue"].get("values")})
    return next(iter(value.values()), None)


def otel_dialog(span: Span) -> Dialog:
    """One call of a model: its messages in attributes, whole or part by part, or in events."""
    trace, attributes, events, time = span
    utterances = [event_utterance(event) for event in events if is_message(event)]
    # The oldest convention: all messages in one event or attribute.
    for fields in (attributes, *(event.get("attributes") or {} for event in events)):
        if "gen_ai.prompt" in fields:
            utterances += trace_messages(fields["gen_ai.prompt"])
        if "gen_ai.completion" in fields:
            utterances.append(assistant(text_from_json(fields["gen_ai.completion"])))
    utterances += otel_messages(attributes.get("gen_ai.input.messages"), "user")
    replies = otel_messages(attributes.get("gen_ai.output.messages"), "assistant")
    utterances += [reply for reply in replies if reply.text][:1]  # others are choices
    for prefix in ("gen_ai.prompt", "llm.input_messages"):
        utterances += indexed_messages(attributes, prefix, "user")
    for prefix in ("gen_ai.completion", "llm.output_messages"):
        replies = indexed_messages(attributes, prefix, "assistant")
        utterances += [reply for reply in replies if reply.text][:1]
    if not utterances and "ai.prompt.messages" in attributes:  # Vercel's AI SDK
        utterances += trace_messages(attributes["ai.prompt.messages"])
        reply = first_text(attributes, ("ai.response.text", "ai.result.text"))
        utterances.append(assistant(reply))
    if not utterances and "gcp.vertex.agent.llm_request" in attributes:  # Google's ADK
        utterances += adk_utterances(attributes)
    if utterances:
        utterances[-1].time = to_time(time)
    model = first_text(attributes, SPAN_MODELS)
    name = first_text(attributes, SPAN_THREADS) or trace
    return Dialog(str(name), utterances, model)


def adk_utterances(attributes: dict[str, Any]) -> list[Utterance]:
    """What a span of Google's ADK says went into Gemini and came out; nothing for its tools."""
    asked = trace_messages(attributes["gcp.vertex.agent.llm_request"])
    reply = text_from_json(attributes.get("gcp.vertex.agent.llm_response"))
    return [*asked, assistant(reply)] if asked else []


def otel_messages(value: Any, role: str) -> list[Utterance]:
    """The messages in an attribute: in parts or whole; a plain text is of this role."""
    messages = from_json(value)
    if isinstance(messages, str):
        return [Utterance(role, role, messages)]
    utterances = []
    for message in dicts(messages):
        speaker = str(message.get("role") or role)
        text = text_of(first_value(message, ("parts", "content")))
        utterances.append(Utterance(speaker, speaker, text))
    return utterances


def is_message(event: dict) -> bool:
    """Whether an event of a span is a message, by the older conventions; of choices the first."""
    name = str(event.get("name"))
    if name == "gen_ai.choice" and to_number(event_fields(event).get("index")):
        return False
    return re.fullmatch(r"gen_ai\.(choice|\w+\.message)", name) is not None


def event_fields(event: dict) -> dict[str, Any]:
    """The fields of an event, which Azure keeps as JSON in one attribute."""
    fields = event.get("attributes") or {}
    content = from_json(fields.get("gen_ai.event.content"))
    return fields | content if isinstance(content, dict) else fields


def event_utterance(event: dict) -> Utterance:
    """The message in an event such as "gen_ai.user.message" or "gen_ai.choice"."""
    fields = event_fields(event)
    if event["name"] == "gen_ai.choice":
        return assistant(text_from_json(fields.get("message")))
    role = event["name"].split(".")[1]
    return Utterance(role, role, text_from_json(fields.get("content")))


def indexed_messages(
    attributes: dict[str, Any], prefix: str, side: str
) -> list[Utterance]:
    """Messages with an attribute for each of their parts, such as "gen_ai.prompt.0.content".

    One without a role is of this side; older versions have its words below the name of the side.
    """
    messages: dict[int, dict] = {}
    for name, value in attributes.items():
        if name.startswith(f"{prefix}."):
            number, _, part = name.removeprefix(f"{prefix}.").partition(".")
            messages.setdefault(int(number), {})[part.removeprefix("message.")] = value
    utterances = []
    for _, message in sorted(messages.items()):
        role = str(message.get("role", side))
        content = first_value(message, ("content", side))
        text = text_from_json(content, text_of) or block_texts(message)
        utterances.append(Utterance(role, speaker_role(role), text))
        if role == "system":
            utterances[-1].role = "system"
    return utterances


def block_texts(message: dict) -> str | None:
    """The words of a message that OpenInference keeps as attributes of blocks."""
    texts = []
    for name, value in message.items():
        if re.fullmatch(r"contents\.\d{1,4}\.message_content\.text", name):
            texts.append(str(value))
    return "\n".join(texts) or None


def join_histories(
    dialogs: list[Dialog], source, *, by_session: bool = False
) -> list[Dialog]:
    """Requests of one thread as one dialog: each reply once, with the history it was made from.

    Of requests whose history is the beginning of another's the longest stays, and takes over the
    ratings of their replies. Another request that begins as they do is a branch, whose utterances
    up to there are context only. Ids are those of sessions, and not of requests, where the format
    says so (`by_session`), or where the requests of one go on from each other; an id of one request
    may then still be that of the request.
    """
    threads = threads_of(dialogs)
    names: dict[int, str] = {}  # of requests whose id no other one has
    if not by_session and any(map(is_session, threads.values())):
        by_session = True
        for requests in threads.values():
            if len(requests) == 1:
                names[id(requests[0])] = requests[0].id
                requests[0].id = ""
    if by_session:
        threads = threads_of(with_found_ids(dialogs))
        dialogs = [dialog for dialog in dialogs if not dialog.id]
    check_windows(dialogs)
    continued = continued_histories(dialogs)
    named, joined = [], []
    for requests in threads.values():
        of_session = named if by_session and requests[0].id else joined
        if hold_no_history(requests):
            of_session.append(woven_requests(requests))
        else:
            of_session += join_thread(requests, source)
    longest = named + drop_beginnings(joined, continued, source)
    for dialog in longest:
        dialog.id = dialog.id or names.get(id(dialog), "")
    return longest


def threads_of(dialogs: list[Dialog]) -> dict[str, list[Dialog]]:
    """Requests by the ids of their threads; one without an id is a thread of its own."""
    threads: dict[str, list[Dialog]] = {}
    for number, dialog in enumerate(dialogs):
        threads.setdefault(dialog.id or f"request {number}", []).append(dialog)
    return threads


def is_session(requests: list[Dialog]) -> bool:
    """Whether a user goes on, in one of the requests of an id, after the reply to another.

    The calls of an agent in one trace go on from each other, too, but without the user's words.
    """
    if hold_no_history(requests):
        # The calls of an agent all begin with what it was asked.
        return len({talk_of(dialog)[0] for dialog in requests}) > 1
    ends = {hashes[-1] for hashes in map(talk_hashes, requests) if hashes}
    for dialog in requests:
        talk = talk_of(dialog)
        after = zip(talk_hashes(dialog), talk, talk[1:], strict=False)
        for so_far, (role, _), (next_role, _) in after:
            if (role, next_role) == ("assistant", "user") and so_far in ends:
                return True
    return False


def with_found_ids(dialogs: list[Dialog]) -> list[Dialog]:
    """The requests of sessions; one without an id gets that of a session that it fits.

    It fits one that goes on from it and does not have it, and the only one that ends where it goes
    on itself.
    """
    unnamed = [dialog for dialog in dialogs if not dialog.id and talk_of(dialog)]
    unnamed.sort(key=lambda dialog: len(talk_of(dialog)))
    longest: dict[str, int] = {}  # the hash of the talk of each session
    logged: set[tuple[str, int]] = set()  # sessions, and what their requests end in
    holding: dict[int, deque[str]] = {}  # the sessions that have this talk
    for dialog in sorted(dialogs, key=lambda dialog: len(talk_of(dialog))):
        hashes = talk_hashes(dialog)
        if dialog.id and hashes:
            longest[dialog.id] = hashes[-1]
            logged.add((dialog.id, hashes[-1]))
            for so_far in hashes:
                holding.setdefault(so_far, deque()).append(dialog.id)
    ending: dict[int, list[str]] = {}
    for name, end in longest.items():
        ending.setdefault(end, []).append(name)
    of_unnamed = {talk_hashes(dialog)[-1] for dialog in unnamed}
    for dialog in unnamed:
        *before, end = talk_hashes(dialog)
        lacking = holding.get(end, deque())
        while lacking and (lacking[0], end) in logged:
            lacking.popleft()
        goes_on_from = [so_far for so_far in before if so_far not in of_unnamed]
        earlier = [name for so_far in goes_on_from for name in ending.get(so_far, ())]
        if lacking:
            dialog.id = lacking.popleft()
            logged.add((dialog.id, end))
        elif len(earlier) == 1:
            (dialog.id,) = earlier
            ending[longest[dialog.id]].remove(dialog.id)
            longest[dialog.id] = end
            ending.setdefault(end, []).append(dialog.id)
            logged.add((dialog.id, end))
            for so_far in (*before, end):
                holding.setdefault(so_far, deque()).append(dialog.id)
            of_unnamed.discard(end)
    return dialogs


def join_thread(requests: list[Dialog], source) -> list[Dialog]:
    """The requests of one thread, with those joined that repeat or go on from each other."""
    times = [dialog.utterances[-1].time for dialog in requests if dialog.utterances]
    if len(times) == len(requests) and None not in times:
        requests = sorted(requests, key=lambda dialog: dialog.utterances[-1].time)
    paths: list[Dialog] = []
    talks: list[list[tuple]] = []  # of each path
    for dialog in sorted(requests, key=lambda d: len(talk_of(d)), reverse=True):
        add_history(paths, talks, dialog, source)
    return paths


def without_beginnings(
    dialogs: list[Dialog], source, *, by_session: bool = False
) -> list[Dialog]:
    """Drop each dialog that another one continues by one reply, where a file logs each request.

    A dialog that is shorter by two replies or more stays, unless the dialogs between are in the
    file. A request that ends in the user's words, a call of a tool or its result is dropped too,
    where another one goes on from its talk. The ratings and the model of a dropped dialog go to
    its last reply in a longer one. Where ids are of sessions, none goes on from one with another.
    """
    continued = continued_histories(dialogs, by_session=by_session)
    return drop_beginnings(dialogs, continued, source, by_session=by_session)


def continued_histories(dialogs: list[Dialog], *, by_session: bool = False) -> Counter:
    """How many dialogs go on from each history by one reply; empty unless a file logs each request.

    It does if, for more than half of its dialogs with several replies, the dialog up to the last
    but one reply is in the file too. What the bot says before the user is no reply to a request.
    """
    full_histories = set()
    previous_histories = []
    for dialog in dialogs:
        histories = list(replies_by_history(dialog, dialog.id if by_session else ""))
        full_histories.update(histories[-1:])
        n_opening = len(list(takewhile(is_of_bot, filter(is_talk, dialog.utterances))))
        previous_histories += histories[n_opening:][-2:-1]
    n_continuing = sum(history in full_histories for history in previous_histories)
    logs_each = n_continuing > len(previous_histories) / 2
    return Counter(previous_histories) if logs_each else Counter()


def drop_beginnings(
    dialogs: list[Dialog], continued: Counter, source, *, by_session: bool = False
) -> list[Dialog]:
    """The dialogs without those from whose history another one goes on.

    Where more of them go on from a reply than it was logged, the others are branches: their
    utterances up to there are context only.
    """
    if not continued:
        return dialogs
    starts = [dialog.id if by_session else "" for dialog in dialogs]
    replies = [
        replies_by_history(d, start) for d, start in zip(dialogs, starts, strict=True)
    ]
    source.guess(
        "kind", "requests", "each repeats the history: the longest of each are read"
    )
    steps = [number for number, dialog in enumerate(dialogs) if lacks_reply(dialog)]
    others = sorted(set(range(len(dialogs))) - set(steps))
    beginnings = set()
    for number in others + steps:
        last = next(reversed(replies[number]), None)
        if continued[last] > 0:
            continued[last] -= 1  # another of the same words is a dialog of its own
            beginnings.add(number)
    if steps:
        pairs = zip(dialogs, starts, strict=True)
        talks = [talk_hashes(dialog, start) for dialog, start in pairs]
        gone_on_from = talks_gone_on_from(dialogs, talks)
        beginnings |= {number for number in steps if talks[number][-1] in gone_on_from}
    logged = Counter(
        next(reversed(replies[n]), None) for n in beginnings.difference(steps)
    )
    longest = []
    later: dict[int, list[Utterance]] = {}  # the same replies in longer dialogs
    for number, dialog in enumerate(dialogs):
        if number in beginnings:
            continue
        longest.append(dialog)
        earlier = list(replies[number])[:-1]
        repeated = [history for history in earlier if logged.get(history) == 0]
        logged.subtract(history for history in earlier if logged.get(history))
        if repeated:
            script_up_to(dialog, replies[number][repeated[-1]])
        for history, reply in replies[number].items():
            if history not in repeated:
                later.setdefault(history, []).append(reply)
    for number in sorted(beginnings):
        last = next(reversed(replies[number]), None)
        if later.get(last):
            take_over(later[last].pop(), dialogs[number])
    source.exclude(
        "dialogs", "are the beginning of a longer one", len(dialogs) - len(longest)
    )
    return longest


def script_up_to(dialog: Dialog, reply: Utterance) -> None:
    """Make all utterances up to this one context only."""
    end = [utterance is reply for utterance in dialog.utterances].index(True) + 1
    dialog.utterances[:end] = as_script(dialog.utterances[:end])


def is_of_bot(utterance: Utterance) -> bool:
    """Whether an utterance is the bot's."""
    return utterance.role == "assistant"


def lacks_reply(dialog: Dialog) -> bool:
    """Whether a request with talk ends in the user's words, or in the result of a tool."""
    utterances = dialog.utterances
    if not any(map(is_talk, utterances)):
        return False
    return not is_talk(utterances[-1]) or utterances[-1].role == "user"


def talks_gone_on_from(dialogs: list[Dialog], talks: list[list[int]]) -> set[int]:
    """Hashes of the talks that a request goes on from, by words or to the model's next step."""
    gone_on_from = set()
    for dialog, hashes in zip(dialogs, talks, strict=True):
        gone_on_from.update(hashes[:-1] if lacks_reply(dialog) else hashes)
    return gone_on_from


def talk_hashes(dialog: Dialog, start: str = "") -> list[int]:
    """A hash of all talk up to each utterance of a dialog."""
    hashes = []
    so_far = hash(start)
    for role_and_text in talk_of(dialog):
        so_far = hash((so_far, role_and_text))
        hashes.append(so_far)
    return hashes


def check_windows(dialogs: list[Dialog]) -> None:
    """Refuse records that each hold only the last messages of a dialog: their replies recur.

    Raises:
        UnknownFormat: several records begin with the end of the one before, and not with all of it.
    """
    talks = [talk_of(dialog) for dialog in dialogs[:WINDOWS_LOOKED_AT]]
    n_overlaps = 0
    for before, after in zip(talks, talks[1:], strict=False):
        n_overlaps += n_overlapping(before[1:], after) > 0
    if n_overlaps > 1 and n_overlaps > len(talks) / 4:
        raise UnknownFormat(
            "has records that begin with the last messages of the one before: replies recur",
            fix="keep the last two messages of all but the first, or write a row per message",
        )


def take_over(reply: Utterance, dialog: Dialog) -> None:
    """Give a reply the ratings and the model that it had where it was the last of a request."""
    talk = list(filter(is_talk, dialog.utterances))
    reply.ratings += [*dialog.ratings, *talk[-1].ratings]
    reply.system = reply.system or talk[-1].system or dialog.system


def replies_by_history(dialog: Dialog, start: str = "") -> dict[int, Utterance]:
    """The replies of the bot by a hash of all talk up to each; else of who speaks last."""
    talk = list(filter(is_talk, dialog.utterances))
    by_role = any(utterance.role == "assistant" for utterance in talk)
    replies = {}
    so_far = hash(start)
    for utterance in talk:
        who = utterance.role if by_role else utterance.speaker
        so_far = hash((so_far, who, utterance.text.strip()))
        by_last = not by_role and utterance.speaker == talk[-1].speaker
        if by_last or utterance.role == "assistant":
            replies[so_far] = utterance
    return replies


def hold_no_history(requests: list[Dialog]) -> bool:
    """Whether each request of a session begins anew: what was asked at a time, and what came back.

    One that failed has no answer, and one that called a tool may have several; most have one.
    """
    answers = []
    for dialog in requests:
        roles = [role for role, _ in talk_of(dialog)]
        if roles[:1] != ["user"] or set(roles[1:]) - {"assistant"}:
            return False
        if dialog.utterances[-1].time is None:
            return False
        answers.append(len(roles) - 1)
    return len(requests) > 1 and 1 in answers


def woven_requests(requests: list[Dialog]) -> Dialog:
    """One dialog of the requests of a session that hold no history, in the order of time."""
    requests = sorted(requests, key=lambda dialog: dialog.utterances[-1].time)
    dialog = Dialog(requests[0].id, [], requests[0].system)
    for request, following in zip_longest(requests, requests[1:]):
        if following and goes_on_from(following, request):
            continue
        for reply in filter(is_talk, request.utterances):
            if reply.role == "assistant":
                reply.system = request.system
        dialog.utterances += request.utterances
    return dialog


def goes_on_from(request: Dialog, before: Dialog) -> bool:
    """Whether a request asks again what had no answer, or brings more, as after a tool.

    It then takes over the ratings of the one before.
    """
    talk = talk_of(before)
    brings_more = len(talk) == 1 or len(talk_of(request)) > len(talk)
    if not brings_more or talk_of(request)[: len(talk)] != talk:
        return False
    last = list(filter(is_talk, request.utterances))[len(talk) - 1]
    last.ratings += before.utterances[-1].ratings
    return True


def is_talk(utterance: Utterance) -> bool:
    """Whether an utterance has words and is of a person or a bot."""
    has_words = bool(utterance.text and utterance.text.strip())
    return has_words and utterance.role not in ("tool", "system")


def talk_of(dialog: Dialog) -> list[tuple]:
    """Roles and texts of what is talk in a dialog."""
    utterances = filter(is_talk, dialog.utterances)
    return [(utterance.role, utterance.text.strip()) for utterance in utterances]


def add_history(
    paths: list[Dialog], talks: list[list[tuple]], dialog: Dialog, source
) -> None:
    """Add a request to the longest ones of its thread, unless one of them goes on from it.

    A request may hold only the last messages of its thread: it then goes on from a path whose end
    is its beginning.
    """
    texts = talk_of(dialog)
    for longer, talk in zip(paths, talks, strict=True):
        if texts and talk[: len(texts)] == texts:
            reply = list(filter(is_talk, longer.utterances))[len(texts) - 1]
            reply.ratings += dialog.utterances[-1].ratings
            reply.system = dialog.system or reply.system
            source.exclude("dialogs", "are the beginning of a longer one")
            return
    if dialog.utterances and dialog.system:
        dialog.utterances[-1].system = dialog.system
    places = [n for n, u in enumerate(dialog.utterances) if is_talk(u)]
    for longer, talk in zip(paths, talks, strict=True):
        overlap = n_overlapping(talk, texts)
        if overlap:
            longer.utterances += dialog.utterances[places[overlap - 1] + 1 :]
            talk += texts[overlap:]
            source.exclude("dialogs", "go on from the last messages of another")
            return
    shared = max((n_shared(texts, talk) for talk in talks), default=0)
    if shared:
        end = places[shared - 1] + 1
        dialog.utterances[:end] = as_script(dialog.utterances[:end])
    paths.append(dialog)
    talks.append(texts)


def n_overlapping(talk: list[tuple], texts: list[tuple]) -> int:
    """How many utterances at the end of a talk begin another one; 0 for fewer than two."""
    for n in range(min(len(talk), len(texts) - 1), 1, -1):
        if talk[-n] == texts[0] and talk[-n:] == texts[:n]:
            return n
    return 0


def n_shared(texts: list[tuple], others: list[tuple]) -> int:
    """How many utterances two dialogs have in common at their beginning."""
    pairs = zip(texts, others, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def read_azure_gateway(rows: list[dict], source) -> list[Dialog]:
    """Azure's API Management: what was asked and answered in one row or more of a request."""
    requests: dict[str, list[dict]] = {}
    for row in rows:
        requests.setdefault(str(row.get("CorrelationId")), []).append(row)
    dialogs = []
    for parts in requests.values():
        parts.sort(key=lambda row: to_number(row.get("SequenceNumber")) or 0.0)
        asked, answered = (
            [message for row in parts for message in dicts(row.get(name))]
            for name in ("RequestMessages", "ResponseMessages")
        )
        if not asked or not text_from_json(answered):
            source.exclude("dialogs", "are requests without a reply in words")
            continue
        dialog = traced_dialog(
            "",
            asked,
            output=answered,
            time=parts[0].get("TimeGenerated"),
            model=first_text(parts[0], ("ModelName", "DeploymentName")),
        )
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def read_litellm_without_words(rows: list[dict], source) -> list[Dialog]:
    """LiteLLM's logs where it was not told to keep what was said.

    Raises:
        UnknownFormat: always.
    """
    raise UnknownFormat(
        "holds requests of LiteLLM without what was said, which it does not keep by default",
        fix="set store_prompts_in_spend_logs: true in its settings, and export later requests",
    )


def read_braintrust(rows: list[dict], source) -> list[Dialog]:
    """Braintrust's spans: those of models, else the root of each trace; scores are scorers'."""
    threads = {}
    with_model = set()
    for row in rows:
        root = row["root_span_id"]
        paths = "|".join(f"metadata.{name}" for name in THREAD)
        name = text_at(row, paths)
        threads[root] = name or threads.get(root) or root
        if is_braintrust_call(row):
            with_model.add(root)
    dialogs = []
    for row in rows:
        root = row["root_span_id"]
        is_call = is_braintrust_call(row)
        is_root = root in (row.get("span_id"), row.get("id"))
        if not (is_call if root in with_model else is_root):
            source.exclude("dialogs", "are spans of other things than models")
            continue
        dialog = traced_dialog(
            threads[root],
            row.get("input"),
            output=row.get("output"),
            time=row.get("created"),
            model=text_at(row, "metadata.model"),
        )
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def is_braintrust_call(row: dict) -> bool:
    """Whether a span of Braintrust is a call of a model, and not one of a scorer."""
    is_scorer = value_at(row, "span_attributes.purpose") == "scorer"
    return value_at(row, "span_attributes.type") == "llm" and not is_scorer


def read_weave(rows: list[dict], source) -> list[Dialog]:
    """Weave's calls: those of models where a trace has any, else the first one of each trace.

    Reactions are thumbs of people.
    """
    with_model = {row["trace_id"] for row in rows if is_weave_call(row)}
    dialogs = []
    for row in rows:
        is_root = row["trace_id"] not in with_model and not row.get("parent_id")
        if not is_weave_call(row) and not is_root:
            source.exclude("dialogs", "are spans of other things than models")
            continue
        dialog = traced_dialog(
            text_at(row, f"{','.join(THREAD)}|trace_id"),
            row.get("inputs"),
            output=row.get("output"),
            time=row.get("started_at"),
            model=text_at(row, "output.model|inputs.model"),
        )
        if not dialog.utterances:
            source.exclude("dialogs", "have no messages")
            continue
        for feedback in values_at(row, "summary.weave.feedback[]"):
            emoji = text_at(feedback, "payload.emoji")
            if emoji:
                dialog.utterances[-1].ratings.append(Rating(None, "feedback", emoji))
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def is_weave_call(row: dict) -> bool:
    """Whether a call of Weave is one of a model, with messages."""
    return value_at(row, "inputs.messages[]") is not None


def read_mlflow(rows: list[dict], source) -> list[Dialog]:
    """MLflow's traces: the last call of a model in each; assessments of people are ratings."""
    dialogs = []
    for row in rows:
        info = row["info"]
        spans = [span.get("attributes") or {} for span in row["data"]["spans"]]
        calls = [span for span in spans if holds_messages(span)]
        span = calls[-1] if calls else spans[0]
        metadata = info.get("trace_metadata") or info.get("request_metadata") or {}
        name = metadata.get("mlflow.trace.session") or info.get("trace_id")
        output = from_json(span.get("mlflow.spanOutputs"))
        dialog = traced_dialog(
            str(name or ""),
            unquoted(span.get("mlflow.spanInputs")),
            output=unquoted(output),
            time=info.get("request_time") or info.get("timestamp_ms"),
            model=text_at(output, "model"),
        )
        if not dialog.utterances:
            source.exclude("dialogs", "have no messages")
            continue
        dialog.utterances[-1].ratings += mlflow_ratings(info.get("assessments"))
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def read_mlflow_rows(rows: list[dict], source) -> list[Dialog]:
    """MLflow's traces in a table, one a row."""
    dialogs = []
    for row in rows:
        output = from_json(row["response"])
        path = r"trace_metadata,request_metadata.mlflow\.trace\.session"
        name = text_at(row, f"{path}|trace_id|request_id")
        dialog = traced_dialog(
            name or "",
            unquoted(row["request"]),
            output=unquoted(output),
            time=first_value(row, ("request_time", "timestamp_ms")),
            model=text_at(output, "model") or text_at(row, "request.model"),
        )
        if not dialog.utterances:
            source.exclude("dialogs", "have no messages")
            continue
        assessments = from_json(row.get("assessments"))
        dialog.utterances[-1].ratings += mlflow_ratings(assessments)
        dialogs.append(dialog)
    return join_histories(dialogs, source)


def mlflow_ratings(assessments: Any) -> list[Rating]:
    """The feedback of people on a trace; what they expected is none."""
    ratings = []
    for assessment in dicts(assessments):
        opinion = value_at(assessment, "feedback.value")
        by_person = value_at(assessment, "source.source_type") == "HUMAN"
        if by_person and opinion is not None:
            rater = text_at(assessment, "source.source_id")
            dimension = assessment.get("assessment_name") or "feedback"
            ratings.append(Rating(rater, dimension, opinion))
    return ratings


def holds_messages(attributes: dict[str, Any]) -> bool:
    """Whether the inputs of a span of MLflow are messages to a model."""
    inputs = from_json(attributes.get("mlflow.spanInputs"))
    return isinstance(inputs, dict) and bool(inputs.get("messages"))


def unquoted(value: Any) -> Any:
    """A text that stands in quotes of JSON without them; None for what JSON calls null."""
    if isinstance(value, str) and value[:1] == '"':
        return parse_list(value)
    return None if value == "null" else value
