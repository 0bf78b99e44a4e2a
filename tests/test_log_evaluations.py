"""What tools of tracing and evaluation export where ordinary things come together."""

import json

import pytest
from log_example_files import contexts, file_with

from lib.data import read_turns

TEA = {"role": "user", "content": "Tea?"}
YES = {"role": "assistant", "content": "Yes, green."}
MILK = {"role": "user", "content": "Milk?"}
NO = {"role": "assistant", "content": "No milk."}
SUGAR = {"role": "user", "content": "Sugar?"}
LOOK = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look"}}],
}
FOUND = {"role": "tool", "tool_call_id": "c", "content": "3 found"}
ONE_EXCHANGE = {"Yes, green.": ["Tea?"]}
TWO_EXCHANGES = ONE_EXCHANGE | {"No milk.": ["Tea?", "Yes, green.", "Milk?"]}


def turns_of(folder, content, name="log.json"):
    return read_turns(file_with(folder, name, content))


# Sessions whose requests hold no history


def trace(minute, asked, answered, session="s1"):
    """A trace of Langfuse."""
    return {
        "id": f"t{minute}",
        "timestamp": f"2025-01-01T10:0{minute}:00Z",
        "name": "chat",
        "sessionId": session,
        "input": asked,
        "output": answered,
    }


def call(minute, asked, answered):
    """A call of a model in Langfuse, each in a trace of its own."""
    about = {"traceId": f"t{minute}", "type": "GENERATION", "model": "gpt-4o"}
    return {**trace(minute, asked, answered), **about, "startTime": minute}


def test_a_failed_request_does_not_part_its_session(tmp_path):
    traces = [
        trace(3, "Sugar?", "One piece."),
        trace(2, "Milk?", None),
        trace(1, "Tea?", "Yes, green."),
    ]
    turns = turns_of(tmp_path, traces)
    before = ["Tea?", "Yes, green.", "Milk?", "Sugar?"]
    assert contexts(turns) == ONE_EXCHANGE | {"One piece.": before}
    assert turns["dialog"].tolist() == ["s1", "s1"]


def test_what_is_asked_again_after_a_failure_is_one_question(tmp_path):
    traces = [
        trace(1, "Tea?", "Yes, green."),
        trace(2, "Milk?", None),
        trace(3, "Milk?", "No milk."),
    ]
    assert contexts(turns_of(tmp_path, traces)) == TWO_EXCHANGES


@pytest.mark.parametrize("words", [None, "Let me look."])
def test_a_tool_in_a_session_without_histories_is_a_step(tmp_path, words):
    look = {**LOOK, "content": words}
    calls = [
        trace(1, [TEA], YES),
        trace(2, [MILK], look),
        trace(3, [MILK, look, FOUND], NO),
    ]
    before = ["Tea?", "Yes, green.", "Milk?"]
    expected = ONE_EXCHANGE | {"No milk.": before}
    if words:
        expected = ONE_EXCHANGE | {words: before, "No milk.": [*before, words]}
    assert contexts(turns_of(tmp_path, calls)) == expected


def test_the_same_exchange_may_come_twice(tmp_path):
    traces = [trace(minute, "Tea?", "Yes, green.") for minute in (1, 2)]
    turns = turns_of(tmp_path, traces)
    assert turns["context"].tolist() == [["Tea?"], ["Tea?", "Yes, green.", "Tea?"]]


def test_a_session_of_langfuse_holds_its_traces(tmp_path):
    traces = [trace(2, "Milk?", "No milk."), trace(1, "Tea?", "Yes, green.")]
    session = {"id": "s1", "createdAt": "2025-01-01", "projectId": "p"}
    turns = turns_of(tmp_path, {**session, "traces": traces})
    assert contexts(turns) == TWO_EXCHANGES


def test_requests_without_a_thread_that_end_in_a_call_are_read_once(tmp_path):
    look = {**LOOK, "content": "Let me look."}
    histories = [
        ([TEA], look),
        ([TEA, look, FOUND], YES),
        ([TEA, look, FOUND, YES, MILK], LOOK),
        ([TEA, look, FOUND, YES, MILK, LOOK, FOUND], NO),
        ([SUGAR], {"role": "assistant", "content": "One piece."}),
    ]
    runs = []
    for number, (asked, answered) in enumerate(histories):
        run = {"id": f"r{number}", "trace_id": f"t{number}", "run_type": "llm"}
        time = {"start_time": f"2025-01-01T10:0{number}:00"}
        inputs = {"messages": asked}
        runs.append({**run, **time, "inputs": inputs, "outputs": answered})
    turns = turns_of(tmp_path, runs[::-1], "log.jsonl")
    assert contexts(turns) == {
        "Let me look.": ["Tea?"],
        "Yes, green.": ["Tea?", "Let me look."],
        "No milk.": ["Tea?", "Let me look.", "Yes, green.", "Milk?"],
        "One piece.": ["Sugar?"],
    }
    assert len(turns) == 4


# Langfuse


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("Tea?", "Yes, green."),
        ('"Tea?"', '"Yes, green."'),
        ({"messages": [TEA]}, {"messages": [TEA, YES]}),
        ([TEA], "Yes, green."),
    ],
)
def test_a_trace_of_langfuses_page_is_json_in_quotes(tmp_path, asked, answered):
    ends = [json.dumps(end) for end in (asked, answered)]
    if not isinstance(asked, str):
        ends = [json.dumps(end) for end in ends]
    one_trace = {"trace": {**trace(1, *ends), "scores": []}, "observations": []}
    step = {"id": "o", "traceId": "t1", "type": "SPAN", "input": None, "output": None}
    one_trace["observations"].append(step)
    assert contexts(turns_of(tmp_path, one_trace)) == ONE_EXCHANGE


def test_words_in_quotes_stay_so_where_the_other_end_has_none(tmp_path):
    turns = turns_of(tmp_path, [trace(1, "Tea?", '"Yes, green."')])
    assert turns["response"].tolist() == ['"Yes, green."']


def test_a_trace_in_no_known_form_is_read_from_its_calls(tmp_path):
    asked = {"user_id": "u", "new_message": {"parts": [{"text": "Tea?"}]}}
    contents = [{"role": "user", "parts": [{"text": "Tea?"}]}]
    look = {"role": "model", "parts": [{"function_call": {"name": "look"}}]}
    found = {"role": "user", "parts": [{"function_response": {"name": "look"}}]}
    reply = {"content": {"role": "model", "parts": [{"text": "Yes, green."}]}}
    calls = [
        call(2, {"model": "gemini", "contents": [*contents, look, found]}, reply),
        call(1, {"model": "gemini", "contents": contents}, {"content": look}),
    ]
    for step in calls:
        step["traceId"] = "t0"
    whole = {**trace(0, asked, reply), "observations": calls}
    assert contexts(turns_of(tmp_path, whole)) == ONE_EXCHANGE


def test_a_response_of_openai_comes_out_of_a_call(tmp_path):
    words = [{"type": "output_text", "text": "Yes, green."}]
    response = {
        "object": "response",
        "text": {"format": {"type": "text"}},
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": words},
        ],
    }
    assert contexts(turns_of(tmp_path, [call(1, [TEA], response)])) == ONE_EXCHANGE


def test_an_opinion_in_words_in_langfuse_is_a_rating(tmp_path):
    score = {"name": "liked", "dataType": "CATEGORICAL", "source": "ANNOTATION"}
    liked = {**score, "value": None, "stringValue": "good"}
    turns = turns_of(tmp_path, [{**trace(1, "Tea?", "Yes, green."), "scores": [liked]}])
    assert turns["human_liked"].tolist() == [1]


# OpenTelemetry


def span(number, fields, *events):
    """A span in OTLP's JSON, with its attributes and events."""

    def listed(mapping):
        texts = {
            name: cell if isinstance(cell, str) else json.dumps(cell)
            for name, cell in mapping.items()
        }
        return [
            {"key": name, "value": {"stringValue": text}}
            for name, text in texts.items()
        ]

    return {
        "traceId": "t",
        "spanId": f"s{number}",
        "startTimeUnixNano": f"17000000000000000{number:02}",
        "attributes": listed({"session.id": "s1", **fields}),
        "events": [
            {"name": name, "attributes": listed(cells)} for name, cells in events
        ],
    }


def turns_of_spans(folder, *spans):
    content = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
    return turns_of(folder, content)


def test_embeddings_and_tools_are_no_calls_of_a_model(tmp_path):
    question = ("gen_ai.user.message", {"content": [{"text": "Tea?"}]})
    call_of_tool = [{"toolUse": {"name": "look", "input": {}}}]
    loop = {"event_loop.cycle_id": "1"}
    turns = turns_of_spans(
        tmp_path,
        span(1, {"gen_ai.operation.name": "embeddings", "gen_ai.prompt.0.content": "tea"}),
        span(2, {"llm.request.type": "embedding", "gen_ai.prompt.0.content": "tea"}),
        span(3, loop, question, ("gen_ai.choice", {"message": call_of_tool})),
        span(4, {"gen_ai.operation.name": "chat"}, question,
             ("gen_ai.choice", {"message": call_of_tool})),
        span(5, {"gen_ai.operation.name": "execute_tool"},
             ("gen_ai.tool.message", {"content": {}}),
             ("gen_ai.choice", {"message": [{"text": "3 found"}]})),
        span(6, {"gen_ai.operation.name": "chat"}, question,
             ("gen_ai.assistant.message", {"content": call_of_tool}),
             ("gen_ai.choice", {"message": [{"text": "Yes, green."}]})),
        span(7, loop, question, ("gen_ai.choice", {"message": [{"text": "Yes, green."}]})),
    )  # fmt: skip
    assert turns["response"].tolist() == ["Yes, green."]
    assert contexts(turns) == ONE_EXCHANGE


@pytest.mark.parametrize(
    ("fields", "events"),
    [
        ({"gen_ai.prompt": "Tea?", "gen_ai.completion": "Yes, green."}, []),
        (
            {"gen_ai.prompt.0.user": "Tea?", "gen_ai.completion.0.content": "Yes, green."},
            [],
        ),
        (
            {
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": "Tea?",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.1.message.role": "assistant",
                "llm.output_messages.1.message.content": "Yes, green.",
            },
            [],
        ),
        (
            {
                "gcp.vertex.agent.llm_request": {
                    "contents": [{"role": "user", "parts": [{"text": "Tea?"}]}]
                },
                "gcp.vertex.agent.llm_response": {
                    "content": {"role": "model", "parts": [{"text": "Yes, green."}]}
                },
            },
            [],
        ),
        (
            {},
            [
                ("gen_ai.user.message", {"gen_ai.event.content": TEA}),
                (
                    "gen_ai.choice",
                    {"gen_ai.event.content": {"index": 0, "message": YES}},
                ),
            ],
        ),
        (
            {},
            [
                ("gen_ai.user.message", {"content": "Tea?"}),
                ("gen_ai.choice", {"index": "0", "message": YES}),
                ("gen_ai.choice", {"index": "1", "message": NO}),
            ],
        ),
    ],
    ids=["plain", "old", "second message", "ADK", "Azure", "choices"],
)  # fmt: skip
def test_spans_of_several_instrumentations(tmp_path, fields, events):
    turns = turns_of_spans(tmp_path, span(1, fields, *events))
    assert contexts(turns) == ONE_EXCHANGE


# MLflow, LangSmith


def opinion(name, by, **value):
    """An assessment of MLflow."""
    source = {"source_type": by, "source_id": "ann"}
    return {"assessment_name": name, "source": source, **value}


OPINIONS = [
    opinion("liked", "HUMAN", feedback={"value": 4}),
    opinion("wanted", "HUMAN", expectation={"value": "Yes"}),
    opinion("judged", "LLM_JUDGE", feedback={"value": 1}),
]


def test_what_failed_in_mlflow_is_no_reply_and_expectations_are_no_ratings(tmp_path):
    def log(minute, asked, answered, opinions=()):
        info = {
            "trace_id": f"t{minute}",
            "request_time": f"2025-01-01T10:0{minute}:00Z",
        }
        info["trace_metadata"] = {"mlflow.trace.session": "s1"}
        ends = {"mlflow.spanInputs": asked, "mlflow.spanOutputs": answered}
        attributes = {name: json.dumps(end) for name, end in ends.items()}
        spans = {"spans": [{"attributes": attributes}]}
        return {"info": {**info, "assessments": list(opinions)}, "data": spans}

    traces = [
        log(1, "Tea?", "Yes, green.", OPINIONS),
        log(2, {"question": "Milk?"}, None),
        log(3, {"question": "Sugar?"}, "One piece."),
    ]
    turns = turns_of(tmp_path, traces)
    before = ["Tea?", "Yes, green.", "Milk?", "Sugar?"]
    assert contexts(turns) == ONE_EXCHANGE | {"One piece.": before}
    assert turns.filter(like="human").columns.tolist() == ["human_liked"]


@pytest.mark.parametrize("version", [2, 3])
def test_ratings_in_a_table_of_mlflow(tmp_path, version):
    new = version == 3
    row = {
        "trace_id" if new else "request_id": "t1",
        "request_time" if new else "timestamp_ms": 1735725600000,
        "request": json.dumps({"messages": [TEA]}),
        "response": json.dumps({"model": "gpt-4o", "choices": [{"message": YES}]}),
        "trace_metadata" if new else "request_metadata": {"mlflow.trace.session": "s1"},
        "assessments": OPINIONS,
    }
    turns = turns_of(tmp_path, [row])
    assert contexts(turns) == ONE_EXCHANGE
    columns = ["system", "dialog", "human_liked"]
    assert turns[columns].values.tolist() == [["gpt-4o", "s1", 4]]


def test_feedback_that_nobody_gave_is_no_rating(tmp_path):
    run = {"id": "r", "trace_id": "r", "run_type": "llm", "inputs": {"messages": [TEA]}}
    stats = {"liked": {"n": 1, "avg": 1.0}, "clear": {"n": 0, "avg": None}, "new": None}
    run |= {"outputs": YES, "feedback_stats": stats}
    turns = turns_of(tmp_path, [run], "log.jsonl")
    assert turns.filter(like="human").columns.tolist() == ["human_liked"]


# Inspect, OpenAI evals


def test_a_task_of_inspect_may_call_models_itself(tmp_path):
    question = {**TEA, "source": "input"}
    reply = {**YES, "source": "generate", "model": "gpt-4o"}
    sample = {"id": 1, "epoch": 1, "input": "Tea?", "messages": [question, reply]}
    turns = turns_of(tmp_path, {"eval": {"model": "none/none"}, "samples": [sample]})
    assert turns["system"].tolist() == ["gpt-4o"]


def test_examples_in_a_prompt_of_openai_are_no_talk(tmp_path):
    examples = [
        {"role": "system", "name": "example_user", "content": "Cake?"},
        {"role": "system", "name": "example_assistant", "content": "With plums."},
    ]
    event = {"run_id": "r", "event_id": 1, "sample_id": "s", "type": "sampling"}
    data = {"prompt": [*examples, TEA], "sampled": ["Yes, green."]}
    turns = turns_of(tmp_path, [{**event, "data": data}], "log.jsonl")
    assert contexts(turns) == ONE_EXCHANGE


# Label Studio


def task(data, *labels):
    """A task of Label Studio with an annotation by each of two people."""
    annotations = []
    for person, label in enumerate(labels, start=1):
        annotations.append({"completed_by": person, "result": [label]})
    return {"id": 1, "data": data, "annotations": annotations}


def test_one_of_two_replies_is_preferred_in_label_studio(tmp_path):
    data = {"prompt": "Tea?", "answer1": "Yes, green.", "answer2": "No."}
    about = {"from_name": "comparison", "type": "pairwise"}
    sides = [{**about, "value": {"selected": side}} for side in ("left", "left")]
    turns = turns_of(tmp_path, [task(data, *sides)])
    assert contexts(turns) == ONE_EXCHANGE | {"No.": ["Tea?"]}
    columns = ["system", "human_preference"]
    assert turns[columns].values.tolist() == [["answer1", 1], ["answer2", 0]]


def test_a_choice_among_numbers_is_a_rating(tmp_path):
    data = {"prompt": "Tea?", "response": "Yes, green."}
    about = {"from_name": "quality", "type": "choices"}
    choices = [{**about, "value": {"choices": [number]}} for number in ("4", "2")]
    turns = turns_of(tmp_path, [task(data, *choices)])
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["human_quality"].tolist() == [3]


def test_ratings_of_a_prompt_and_a_response_one_annotation_a_row(tmp_path):
    rows = []
    for person, stars in ((1, 4), (2, 2)):
        row = {"id": 1, "prompt": "Tea?", "response": "Yes, green.", "lead_time": 5.1}
        row |= {"annotator": person, "annotation_id": person}
        rows.append({**row, "quality": [{"rating": stars}]})
    turns = turns_of(tmp_path, rows)
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["human_quality"].tolist() == [3]


def test_calls_of_an_agent_in_traces_are_no_sessions(tmp_path):
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "t"}]}
    result = {"role": "tool", "tool_call_id": "t", "content": "free"}
    talk = [
        {"role": "user", "content": "Tea?"},
        call,
        result,
        {"role": "assistant", "content": "Yes, green."},
        {"role": "user", "content": "Milk?"},
        call,
        result,
        {"role": "assistant", "content": "No milk."},
    ]
    rows = []
    for number, (trace, end) in enumerate([("a", 1), ("a", 3), ("b", 5), ("b", 7)]):
        about = {"id": f"{number}", "traceId": trace, "type": "GENERATION"}
        about |= {"name": "chat", "startTime": f"2025-01-01T10:0{number}:00Z"}
        rows.append({**about, "model": "m", "input": talk[:end], "output": talk[end]})
    lines = "\n".join(map(json.dumps, rows))
    turns = read_turns(file_with(tmp_path, "observations.jsonl", lines))
    assert contexts(turns) == TWO_EXCHANGES
    assert len(turns) == 2
