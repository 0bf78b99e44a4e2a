"""What real exports of tracing and evaluation tools hold, and a first reading of them missed."""

import csv
import json

import pytest
from log_example_files import contexts, file_with

from lib.data import DataError, read_turns

TEA = {"role": "user", "content": "Tea?"}
YES = {"role": "assistant", "content": "Yes, green."}
MILK = {"role": "user", "content": "Milk?"}
NO = {"role": "assistant", "content": "No milk."}
ONE_EXCHANGE = {"Yes, green.": ["Tea?"]}
TWO_EXCHANGES = ONE_EXCHANGE | {"No milk.": ["Tea?", "Yes, green.", "Milk?"]}


def turns_of(folder, content, name="log.json"):
    return read_turns(file_with(folder, name, content))


def table_with(folder, *rows):
    """A CSV file with these rows, cells as JSON where they are no texts."""
    file = folder / "log.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        for row in rows:
            cells = [
                cell if isinstance(cell, str) else json.dumps(cell) for cell in row
            ]
            writer.writerow(cells)
    return file


# Langfuse

TRACE = {
    "id": "t1",
    "timestamp": "2025-01-01T10:00:00Z",
    "name": "chat",
    "sessionId": "s1",
    "userId": "u",
    "tags": [],
    "input": {"messages": [TEA]},
    "output": YES,
}
CALL = {
    "id": "o1",
    "traceId": "t1",
    "type": "GENERATION",
    "startTime": "2025-01-01T10:00:01Z",
    "model": "gpt-4o",
    "input": [TEA],
    "output": YES,
}


def test_a_downloaded_trace_of_langfuse_has_its_session_and_ratings_and_the_model(
    tmp_path,
):
    score = {"name": "thumb", "value": 1, "source": "API"}
    trace = {**TRACE, "scores": [score]}
    turns = turns_of(tmp_path, {"trace": trace, "observations": [CALL]})
    assert contexts(turns) == ONE_EXCHANGE
    assert turns[["system", "dialog", "human_thumb"]].values.tolist() == [
        ["gpt-4o", "s1", 1]
    ]


def test_a_trace_of_langfuse_without_input_is_read_from_its_calls(tmp_path):
    score = {"name": "thumb", "value": 0, "source": "ANNOTATION"}
    trace = {**TRACE, "input": None, "output": None, "scores": [score]}
    turns = turns_of(tmp_path, {**trace, "observations": [CALL]})
    assert contexts(turns) == ONE_EXCHANGE
    assert turns[["dialog", "human_thumb"]].values.tolist() == [["s1", 0]]


def test_arguments_of_a_traced_function_are_what_was_asked(tmp_path):
    first = {"args": ["Tea?"], "kwargs": {}}
    second = {"args": [], "kwargs": {"question": "Milk?"}}
    traces = [
        {**TRACE, "input": first, "output": "Yes, green.", "sessionId": "s1"},
        {**TRACE, "input": second, "output": {"answer": "No milk."}, "sessionId": "s2"},
    ]
    assert contexts(turns_of(tmp_path, traces)) == {
        **ONE_EXCHANGE,
        "No milk.": ["Milk?"],
    }


def test_tools_of_an_agent_in_langfuse_do_not_reply(tmp_path):
    agent = {
        **CALL,
        "type": "AGENT",
        "input": {"input": "Tea?"},
        "output": "Yes, green.",
    }
    tool = {
        **CALL,
        "id": "o2",
        "type": "TOOL",
        "input": {"q": "tea"},
        "output": "3 found",
    }
    search = {**tool, "id": "o3", "type": "RETRIEVER", "input": {"query": "green"}}
    assert contexts(turns_of(tmp_path, [agent, tool, search])) == ONE_EXCHANGE


def test_feedback_of_langfuse_in_a_table_is_a_list(tmp_path):
    names = [
        "id",
        "timestamp",
        "name",
        "userId",
        "sessionId",
        "tags",
        "input",
        "output",
    ]
    cells = [
        "t1",
        "2025-01-01 10:00:00",
        "chat",
        "u",
        "s1",
        "[]",
        {"messages": [TEA]},
        YES,
    ]
    file = table_with(
        tmp_path, [*names, "user-feedback", "accuracy"], [*cells, [1], [0.3]]
    )
    turns = read_turns(file)
    assert turns["human_user_feedback"].tolist() == [1]
    assert "human_accuracy" not in turns


# LangSmith


def run(kind, inputs, outputs, **extra):
    """A run of LangSmith, the first of its trace."""
    about = {"metadata": {"thread_id": "th"}, **extra}
    return {
        "id": "r",
        "trace_id": "r",
        "run_type": kind,
        "start_time": "2025-01-01T10:00:00",
        "extra": about,
        "inputs": inputs,
        "outputs": outputs,
    }


def human(text):
    return {"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": text}}


def ai(text):
    return {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": text}}


def test_a_chain_of_langsmith_has_what_was_asked_and_the_history(tmp_path):
    inputs = {"input": "Milk?", "chat_history": [human("Tea?"), ai("Yes, green.")]}
    turns = turns_of(
        tmp_path, [run("chain", inputs, {"output": "No milk."})], "log.jsonl"
    )
    assert contexts(turns) == TWO_EXCHANGES


def test_prompts_of_langsmith_are_context(tmp_path):
    outputs = {"generations": [[{"text": "Yes, green."}]]}
    runs = [run("llm", {"prompts": ["Human: Tea?"]}, outputs)]
    assert contexts(turns_of(tmp_path, runs, "log.jsonl")) == ONE_EXCHANGE


def test_pairs_of_speaker_and_text_go_into_a_graph(tmp_path):
    runs = [run("chain", {"messages": [["human", "Tea?"]]}, {"output": "Yes, green."})]
    assert contexts(turns_of(tmp_path, runs, "log.jsonl")) == ONE_EXCHANGE


def test_the_parameters_of_a_call_name_the_model_in_langsmith(tmp_path):
    runs = [run("llm", {"messages": [TEA]}, YES, invocation_params={"model": "gpt-4o"})]
    assert turns_of(tmp_path, runs, "log.jsonl")["system"].tolist() == ["gpt-4o"]


# OpenTelemetry, Phoenix


def attributes(fields):
    """Attributes in OTLP's JSON."""
    listed = []
    for name, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value)
        listed.append({"key": name, "value": {"stringValue": text}})
    return listed


def spans(*spans_with_fields):
    """A file of OTLP with spans of one trace."""
    listed = []
    for number, fields in enumerate(spans_with_fields):
        span = {"traceId": "t", "startTimeUnixNano": f"17000000000000000{number:02}"}
        listed.append({**span, "attributes": attributes(fields)})
    return {"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]}


def parts(role, text):
    return {"role": role, "parts": [{"type": "text", "content": text}]}


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ([TEA], [YES]),
        ("Tea?", "Yes, green."),
        (
            [parts("user", "Tea?")],
            [parts("assistant", "Yes, green."), parts("assistant", "No.")],
        ),
    ],
    ids=["contents", "texts", "choices"],
)
def test_messages_of_spans_are_written_in_several_ways(tmp_path, asked, answered):
    fields = {"gen_ai.input.messages": asked, "gen_ai.output.messages": answered}
    assert contexts(turns_of(tmp_path, spans(fields))) == ONE_EXCHANGE


def test_a_span_of_an_agent_repeats_what_its_calls_hold(tmp_path):
    fields = {
        "gen_ai.input.messages": [parts("user", "Tea?")],
        "gen_ai.output.messages": [parts("assistant", "Yes, green.")],
    }
    agent = {**fields, "gen_ai.operation.name": "invoke_agent"}
    call = {**fields, "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    turns = turns_of(tmp_path, spans(agent, call))
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["system"].tolist() == ["gpt-4o"]
    assert contexts(turns_of(tmp_path, spans(agent))) == ONE_EXCHANGE


def test_the_spans_of_vercels_ai_sdk_are_read(tmp_path):
    blocks = [{"role": "user", "content": [{"type": "text", "text": "Tea?"}]}]
    whole = {"ai.prompt": {"prompt": "Tea?"}, "ai.response.text": "Yes, green."}
    call = {"ai.prompt.messages": blocks, "ai.response.text": "Yes, green."}
    call |= {"ai.model.id": "gpt-4o", "ai.telemetry.metadata.sessionId": "s1"}
    turns = turns_of(tmp_path, spans(whole, call))
    assert contexts(turns) == ONE_EXCHANGE
    assert turns[["system", "dialog"]].values.tolist() == [["gpt-4o", "s1"]]


def test_events_in_an_attribute_are_messages(tmp_path):
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Tea?"},
        {"event.name": "gen_ai.choice", "index": 0, "message": YES},
    ]
    assert contexts(turns_of(tmp_path, spans({"events": events}))) == ONE_EXCHANGE


def test_logged_events_of_a_call_are_messages(tmp_path):
    records = []
    for number, (event, body) in enumerate(
        [
            ("gen_ai.user.message", {"content": "Tea?"}),
            ("gen_ai.choice", {"message": YES}),
        ]
    ):
        written = {"kvlistValue": {"values": attributes(body)}}
        record = {"eventName": event, "body": written, "traceId": "t", "spanId": "1"}
        records.append({**record, "timeUnixNano": f"170000000000000000{number}"})
    log = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    assert contexts(turns_of(tmp_path, log)) == ONE_EXCHANGE


def test_blocks_of_openinference_are_words(tmp_path):
    block = "llm.input_messages.0.message.contents.0.message_content"
    fields = {
        "llm.input_messages.0.message.role": "user",
        f"{block}.type": "text",
        f"{block}.text": "Tea?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Yes, green.",
    }
    assert contexts(turns_of(tmp_path, spans(fields))) == ONE_EXCHANGE


@pytest.mark.parametrize(
    "asked",
    [
        {"message": TEA},
        {
            "message.role": "user",
            "message.contents": [
                {"message_content.type": "text", "message_content.text": "Tea?"}
            ],
        },
    ],
    ids=["nested", "blocks"],
)
def test_messages_of_phoenix_are_nested_or_in_blocks(tmp_path, asked):
    about = {"model_name": "gpt-4o", "input_messages": [asked]}
    about["output_messages"] = [{"message": YES}]
    spans_of_phoenix = [{"span_kind": "LLM", "attributes": {"llm": about}}]
    assert contexts(turns_of(tmp_path, spans_of_phoenix, "log.jsonl")) == ONE_EXCHANGE


# Braintrust, Weave, MLflow


def test_calls_of_a_scorer_in_braintrust_are_no_talk(tmp_path):
    call = {
        "id": "1",
        "span_id": "1",
        "root_span_id": "1",
        "span_attributes": {"type": "llm"},
        "created": "2025-01-01T10:00:00Z",
        "input": [TEA],
        "output": YES,
    }
    judge = {
        **call,
        "span_attributes": {"type": "llm", "purpose": "scorer"},
        "input": [{"role": "user", "content": "Is it true?"}],
        "output": {"role": "assistant", "content": "A"},
    }
    assert contexts(turns_of(tmp_path, [call, judge], "log.jsonl")) == ONE_EXCHANGE


def test_calls_of_weave_are_read_and_reactions_are_ratings(tmp_path):
    root = {
        "id": "1",
        "trace_id": "t",
        "parent_id": None,
        "op_name": "weave:///e/p/op/chat:x",
        "started_at": "2025-01-01T10:00:00Z",
        "inputs": {"question": "Tea?"},
        "output": "Yes, green.",
    }
    step = {
        **root,
        "id": "2",
        "parent_id": "1",
        "inputs": {"query": "x"},
        "output": "y",
    }
    reaction = {"feedback_type": "wandb.reaction.1", "payload": {"emoji": "👍"}}
    root["summary"] = {"weave": {"feedback": [reaction]}}
    turns = turns_of(tmp_path, [root, step], "log.jsonl")
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["human_feedback"].tolist() == [1]


def test_columns_of_weave_have_points_in_their_names(tmp_path):
    names = ["id", "started_at", "inputs.model", "inputs.messages", "output.choices"]
    cells = [
        "1",
        "2025-01-01T10:00:00Z",
        "gpt-4o",
        [TEA],
        [{"index": 0, "message": YES}],
    ]
    turns = read_turns(table_with(tmp_path, names, cells))
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["system"].tolist() == ["gpt-4o"]


def test_traces_of_mlflow_in_a_table_are_joined_by_session(tmp_path):
    names = ["trace_id", "request_time", "request", "response", "trace_metadata"]
    session = {"mlflow.trace.session": "s1"}
    rows = [
        ["a", "1735725600000", {"messages": [TEA]}, "Yes, green.", session],
        ["b", "1735725700000", {"messages": [MILK]}, "No milk.", session],
    ]
    assert contexts(read_turns(table_with(tmp_path, names, *rows))) == TWO_EXCHANGES


# Evaluations


def test_the_first_line_of_openai_evals_names_the_model(tmp_path):
    sampling = {"event_id": 0, "sample_id": "x.0", "type": "sampling"}
    rows = [
        {"spec": {"completion_fns": ["gpt-4"], "run_id": "r"}},
        {**sampling, "data": {"prompt": [TEA], "sampled": ["Yes, green."]}},
        {**sampling, "data": {"prompt": [TEA, YES, MILK], "sampled": ["No milk."]}},
        {"final_report": {"accuracy": 1, "n": 1}},
    ]
    turns = turns_of(tmp_path, rows, "log.jsonl")
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"gpt-4"}


def test_what_the_task_says_in_an_old_inspect_log_is_no_reply(tmp_path):
    sample = {"id": 1, "input": [TEA, YES, MILK], "messages": [TEA, YES, MILK, NO]}
    log = {"eval": {"model": "openai/gpt-4o"}, "samples": [sample]}
    assert turns_of(tmp_path, log)["response"].tolist() == ["No milk."]


def test_old_conversations_of_deepeval_are_exchanges(tmp_path):
    turns_in_case = [
        {"input": "Tea?", "actualOutput": "Yes, green."},
        {"input": "Milk?", "actualOutput": "No milk."},
    ]
    case = {"name": "c", "turns": turns_in_case}
    log = {"conversationalTestCases": [case], "hyperparameters": {"model": "gpt-4o"}}
    turns = turns_of(tmp_path, log)
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"gpt-4o"}


PROMPTFOO = ["Status", "Score", "Named Scores", "Grader Reason", "Comment"]


def test_the_table_of_promptfoo_has_a_column_per_prompt_and_provider(tmp_path):
    names = ["drink", "[openai:a] {{drink}}?", *PROMPTFOO, "[openai:b] {{ drink }}?"]
    rows = [
        [
            "Tea",
            "Yes, green.",
            "PASS",
            "1",
            "",
            "",
            "",
            "no answer",
            "ERROR",
            "0",
            "",
            "",
            "",
        ],
        ["Milk", "No milk.", "FAIL", "0", "", "", "", "Yes.", "PASS", "1", "", "", ""],
    ]
    turns = read_turns(table_with(tmp_path, [*names, *PROMPTFOO], *rows))
    assert contexts(turns) == {**ONE_EXCHANGE, "No milk.": ["Milk?"], "Yes.": ["Milk?"]}
    assert turns["system"].tolist() == ["openai:a", "openai:a", "openai:b"]


def test_the_name_of_a_prompt_of_promptfoo_is_not_what_was_asked(tmp_path):
    names = ["drink", "[openai:a] short prompt", *PROMPTFOO]
    file = table_with(tmp_path, names, ["Tea", "Yes.", "PASS", "1", "", "", ""])
    with pytest.raises(DataError, match="export the results as JSON"):
        read_turns(file)


def test_the_table_of_promptfoo_is_read_from_json(tmp_path):
    head = {
        "prompts": [{"raw": "{{drink}}?", "provider": "openai:a"}],
        "vars": ["drink"],
    }
    output = {"text": "Yes, green.", "prompt": "Tea?", "pass": True, "score": 1}
    log = {"head": head, "body": [{"outputs": [output], "vars": ["Tea"]}]}
    turns = turns_of(tmp_path, log)
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["system"].tolist() == ["openai:a"]


# Corpora


def test_the_context_in_a_log_of_parlai_is_not_its_dialog(tmp_path):
    persona = {"id": "context", "text": "your persona: I like tea."}
    talk = [{"id": "human", "text": "Tea?"}, {"id": "model", "text": "Yes, green."}]
    log = {"dialog": [talk], "context": [persona, {**persona, "id": "other"}]}
    assert contexts(turns_of(tmp_path, [log], "log.jsonl")) == ONE_EXCHANGE


@pytest.mark.parametrize(
    "record",
    [
        {"topic": "tea", "dialogue": [{"text": "Tea?"}, {"text": "Yes, green."}]},
        {"acts": [2, 1], "emotions": [0, 0], "utterances": ["Tea?", "Yes, green."]},
        {
            "dialogue_id": "d",
            "turns": {"speaker": [0, 1], "utterance": ["Tea?", "Yes, green."]},
        },
    ],
    ids=["dailydialog", "dailydialog-lists", "multiwoz"],
)
def test_corpora_as_other_sites_have_them(tmp_path, record):
    for message in record.get("dialogue", []):
        message |= {"emotion": "no_emotion", "act": "inform"}
    assert contexts(turns_of(tmp_path, [record], "log.jsonl")) == ONE_EXCHANGE


def test_silence_before_the_first_words_is_no_context(tmp_path):
    lines = "1 your persona: I like tea.\n2 __SILENCE__\tHi.\t\tHi.|Ho.\n3 Tea?\tYes, green.\n"
    turns = turns_of(tmp_path, lines, "log.txt")
    assert contexts(turns) == {"Hi.": [], "Yes, green.": ["Hi.", "Tea?"]}


# Label Studio, Argilla

TALK = [{"author": "User", "text": "Tea?"}, {"author": "Bot", "text": "Yes, green."}]
MORE_TALK = [{"author": "User", "text": "Milk?"}, {"author": "Bot", "text": "No milk."}]


def label(value, **about):
    return {"from_name": "quality", "type": "rating", "value": value, **about}


def test_labels_of_label_studio_before_version_1_are_ratings(tmp_path):
    completions = [{"completed_by": 1, "result": [label({"rating": 4})]}]
    task = {"id": 1, "data": {"dialogue": TALK}, "completions": completions}
    assert turns_of(tmp_path, [task])["human_quality"].tolist() == [4]


def test_a_rating_of_a_paragraph_is_one_of_its_utterance(tmp_path):
    result = [label({"start": "1", "end": "1", "rating": 5}, id="x")]
    annotations = [{"completed_by": 1, "result": result}]
    task = {
        "id": 1,
        "data": {"dialogue": [*TALK, *MORE_TALK]},
        "annotations": annotations,
    }
    turns = turns_of(tmp_path, [task])
    assert turns["human_quality"].fillna(0).tolist() == [5, 0]


def test_a_prompt_and_its_response_are_rated_in_label_studio(tmp_path):
    annotations = [{"completed_by": 1, "result": [label({"rating": 2})]}]
    data = {"prompt": "Tea?", "response": "Yes, green."}
    turns = turns_of(tmp_path, [{"id": 1, "data": data, "annotations": annotations}])
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["human_quality"].tolist() == [2]


def test_messages_of_an_annotator_go_on_from_those_of_the_task(tmp_path):
    result = []
    for number, message in enumerate([MILK, NO]):
        result.append({"id": f"{number}", "value": {"chatmessage": message}})
    annotations = [{"completed_by": 1, "result": result}]
    task = {"id": 1, "data": {"chat": [TEA, YES]}, "annotations": annotations}
    turns = turns_of(tmp_path, [task])
    assert turns["response"].tolist() == ["No milk."]
    assert turns["context"].tolist() == [["Tea?", "Yes, green.", "Milk?"]]


@pytest.mark.parametrize("form", ["JSON_MIN", "CSV"])
def test_annotations_of_label_studio_one_a_row_are_of_one_dialog(tmp_path, form):
    names = ["dialogue", "id", "quality", "annotator", "annotation_id", "lead_time"]
    rows = [
        [TALK, 1, [{"rating": 4}], 2, 5, 1.5],
        [TALK, 1, [{"rating": 2}], 3, 6, 1.5],
    ]
    if form == "CSV":
        turns = read_turns(table_with(tmp_path, names, *rows))
    else:
        turns = turns_of(tmp_path, [dict(zip(names, row, strict=True)) for row in rows])
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["human_quality"].tolist() == [3]


def test_suggestions_of_argilla_are_a_models_and_drafts_do_not_count(tmp_path):
    record = {
        "id": "1",
        "status": "completed",
        "_server_id": "s",
        "prompt": "Tea?",
        "response": "Yes, green.",
        "rating.responses": [4, 1],
        "rating.responses.users": ["ann", "ben"],
        "rating.responses.status": ["submitted", "draft"],
        "rating.suggestion": 2,
    }
    turns = turns_of(tmp_path, [record], "log.jsonl")
    assert contexts(turns) == ONE_EXCHANGE
    assert turns["human_rating"].tolist() == [4]
    assert "human_rating_suggestion" not in turns


def test_discarded_answers_in_argilla_are_no_ratings(tmp_path):
    answers = []
    for status, value in (("submitted", 4), ("discarded", 1)):
        values = {"rating": {"value": value}}
        answers.append({"user_id": status, "status": status, "values": values})
    fields = {"instruction": "Tea?", "response": "Yes, green."}
    record = {"fields": fields, "responses": answers, "suggestions": []}
    assert turns_of(tmp_path, [record])["human_rating"].tolist() == [4]


# Qualtrics


def survey(folder, talk):
    """A table of Qualtrics with a response, and a preview by its author."""
    names = ["StartDate", "EndDate", "Status", "ResponseId", "talk", "Q1_1"]
    ids = ["startDate", "endDate", "status", "_recordId", "talk", "QID1_1"]
    return table_with(
        folder,
        names,
        [
            "Start Date",
            "End Date",
            "Response Type",
            "Response ID",
            "talk",
            "How was it?",
        ],
        [{"ImportId": name} for name in ids],
        ["2025-01-01", "2025-01-01", "IP Address", "R_1", talk, "5"],
        ["2025-01-01", "2025-01-01", "Survey Preview", "R_2", talk, "1"],
    )


@pytest.mark.parametrize(
    "talk",
    ["User: Tea?\nBot: Yes, green.\nUser: Milk?\nBot: No milk.", [TEA, YES, MILK, NO]],
    ids=["transcript", "messages"],
)
def test_responses_of_qualtrics_are_dialogs_and_their_numbers_ratings(tmp_path, talk):
    turns = read_turns(survey(tmp_path, talk))
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["dialog"]) == {"R_1"}
    assert set(turns["human_q1_1"]) == {5}


def test_the_id_of_a_response_is_no_reply(tmp_path):
    rows = [
        {"ResponseId": "Response ID", "talk": "What was said"},
        {"ResponseId": "R_1", "talk": [TEA, YES]},
        {"ResponseId": "R_2", "talk": "nothing"},
    ]
    assert contexts(turns_of(tmp_path, rows)) == ONE_EXCHANGE


# Mechanical Turk


@pytest.mark.parametrize("form", ["a column per option", "JSON"])
def test_the_chosen_button_of_a_form_is_the_rating(tmp_path, form):
    names = ["HITId", "WorkerId", "AssignmentStatus", "Input.context", "Input.response"]
    cells = ["h", "w", "Approved", "Tea?", "Yes, green."]
    buttons = {"1": False, "2": False, "3": True}
    if form == "JSON":
        names.append("Answer.taskAnswers")
        cells.append([{"quality": buttons}])
    else:
        names += [f"Answer.quality.{number}" for number in buttons]
        cells += buttons.values()
    turns = read_turns(table_with(tmp_path, names, cells))
    assert contexts(turns) == ONE_EXCHANGE
    assert turns.filter(like="human_").to_dict("list") == {"human_quality": [3]}
