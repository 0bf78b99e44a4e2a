"""Traces of requests to models: each with the history so far, which is read once."""

import re
from typing import Any, NamedTuple

from lib.data.dialogs import Dialog, Rating, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat, parse_list
from lib.data.log_histories import join_histories
from lib.data.log_messages import (
    USER_TEXT,
    find_format,
    message_list,
    text_from_json,
)
from lib.data.log_parts import (
    assistant,
    dicts,
    first_text,
    first_value,
    from_json,
    is_talk,
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
    if reply is not None:
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
    return is_claude and utterances[-1].role == "assistant" and is_talk(utterances[-1])


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
    utterances += first_choice(replies)
    for prefix in ("gen_ai.prompt", "llm.input_messages"):
        utterances += indexed_messages(attributes, prefix, "user")
    for prefix in ("gen_ai.completion", "llm.output_messages"):
        replies = indexed_messages(attributes, prefix, "assistant")
        utterances += first_choice(replies)
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


def first_choice(replies: list[Utterance]) -> list[Utterance]:
    """The first of several choices in words, else an empty one; none of calls of tools."""
    in_words = [reply for reply in replies if reply.text]
    empty = [reply for reply in replies if reply.text == ""]
    return [*in_words, *empty][:1]


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
        if not asked or text_from_json(answered) is None:
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
