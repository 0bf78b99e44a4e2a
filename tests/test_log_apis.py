"""Logs and stored objects of APIs: requests with the talk so far, batches, streams, threads."""

import json

import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, import_report, read_turns


def user(text):
    return {"role": "user", "content": text}


def bot(text):
    return {"role": "assistant", "content": text}


def reasons(turns):
    """Why something was left out."""
    return " ".join(import_report(turns)["reasons"].astype(str))


def talks(turns):
    """Dialog, context and reply of each row."""
    return turns[["dialog", "context", "response"]].values.tolist()


def completion(messages, reply, session=None):
    """A request to OpenAI and what came back; `reply` is a text or a message."""
    message = bot(reply) if isinstance(reply, str) else reply
    response = {"model": "m", "choices": [{"index": 0, "message": message}]}
    row = {"request": {"messages": messages}, "response": response}
    return {**row, "session_id": session} if session else row


HI = [user("Hi")]
TEA = [*HI, bot("Ho"), user("Tea?")]
CAKE = [*HI, bot("Ho"), user("Cake?")]
BYE = [*TEA, bot("No"), user("Bye")]


@pytest.mark.parametrize("missing", [0, 2, 4])
def test_a_request_without_the_id_of_its_session_belongs_to_it(tmp_path, missing):
    rows = [
        completion(HI, "Ho", session="a"),
        completion(HI, "Ho", session="b"),
        completion(TEA, "No", session="a"),
        completion(CAKE, "Yes", session="b"),
        completion(BYE, "Bye!", session="a"),
    ]
    del rows[missing]["session_id"]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert sorted(talks(turns)) == [
        ["a", ["Hi"], "Ho"],
        ["a", ["Hi", "Ho", "Tea?"], "No"],
        ["a", ["Hi", "Ho", "Tea?", "No", "Bye"], "Bye!"],
        ["b", ["Hi"], "Ho"],
        ["b", ["Hi", "Ho", "Cake?"], "Yes"],
    ]


def test_requests_of_a_session_without_an_id_beside_one_with_an_id(tmp_path):
    rows = [
        completion(HI, "Ho", session="a"),
        completion(HI, "Ho"),
        completion(TEA, "No", session="a"),
        completion(CAKE, "Yes"),
        completion(BYE, "Bye!", session="a"),
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert sorted(turns["response"]) == ["Bye!", "Ho", "Ho", "No", "Yes"]


def test_ids_of_requests_beside_those_of_a_session(tmp_path):
    rows = [
        completion(HI, "Ho", session="a"),
        completion(TEA, "No", session="a"),
        completion(HI, "Ho", session="request 1"),
        completion(CAKE, "Yes", session="request 2"),
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert sorted(turns["response"]) == ["Ho", "Ho", "No", "Yes"]
    assert set(turns["dialog"]) == {"a", "request 2"}


def test_a_user_who_only_says_what_another_began_with(tmp_path):
    rows = [
        completion(HI, "Ho", session="a"),
        completion(HI, "Ho", session="b"),
        completion(TEA, "No", session="b"),
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert sorted(talks(turns)) == [
        ["a", ["Hi"], "Ho"],
        ["b", ["Hi"], "Ho"],
        ["b", ["Hi", "Ho", "Tea?"], "No"],
    ]


def test_a_question_that_was_asked_again_in_other_words_is_a_branch(tmp_path):
    rows = [completion(HI, "Ho"), completion(TEA, "No"), completion(CAKE, "Yes")]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert talks(turns)[-1][1:] == [["Hi", "Ho", "Cake?"], "Yes"]
    assert turns["response"].tolist() == ["Ho", "No", "Yes"]


def test_requests_of_a_bot_that_opens_repeat_the_history(tmp_path):
    opening = [bot("Welcome"), user("Hi")]
    rows = [completion(opening, "Ho")]
    rows.append(completion([*opening, bot("Ho"), user("Tea?")], "No"))
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert turns["response"].tolist() == ["Welcome", "Ho", "No"]


def test_words_before_a_call_of_a_tool_in_traces_of_one_turn_each(tmp_path):
    call = {**bot("Wait."), "tool_calls": [{"id": "c", "function": {"name": "tea"}}]}
    result = {"role": "tool", "tool_call_id": "c", "content": "none"}
    steps = [*TEA, call, result]
    later = [*steps, bot("No"), user("Bye")]
    rows = [
        {**completion(HI, "Ho"), "trace_id": "1"},
        {**completion(TEA, call), "trace_id": "2"},
        {**completion(steps, "No"), "trace_id": "2"},
        {**completion(later, "Bye!"), "trace_id": "3"},
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert turns["response"].tolist() == ["Ho", "Wait.", "No", "Bye!"]


def test_requests_with_the_last_messages_only_are_refused(tmp_path):
    talk = [user("Hi"), bot("Ho"), user("Tea?"), bot("No"), user("Cake?"), bot("Yes")]
    talk += [user("Bye"), bot("Bye!")]
    rows = [completion(talk[:1], "Ho")]
    for end in (3, 5, 7):
        rows.append(completion(talk[end - 3 : end], talk[end]["content"]))
    with pytest.raises(
        DataError, match="begin with the last messages of the one before"
    ):
        read_turns(file_with(tmp_path, "log.jsonl", rows))


def test_a_logged_request_that_failed_repeats_no_reply(tmp_path):
    rows = [
        {"id": "1", "messages": HI, "response": "Ho"},
        {"id": "2", "messages": TEA, "response": {}, "error": "timeout"},
        {"id": "3", "messages": TEA, "response": "No"},
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert len(turns) == 2


def test_sessions_that_begin_with_the_same_words_are_several(tmp_path):
    def message(kind, text):
        return {"type": kind, "data": {"content": text}}

    short = [message("human", "Hi"), message("ai", "Ho")]
    long = [*short, message("human", "Tea?"), message("ai", "No")]
    rows = [
        {"session_id": "a", "messages": long},
        {"session_id": "b", "messages": short},
    ]
    by_name = {"ann-1": long, "ben-2": short}
    states = [
        {
            "values": {"messages": [m["data"] | {"type": m["type"]} for m in messages]},
            "config": {"configurable": {"thread_id": name}},
        }
        for name, messages in (("a", long), ("b", short))
    ]
    for number, content in enumerate((rows, by_name, states)):
        turns = read_turns(file_with(tmp_path, f"{number}.json", content))
        assert sorted(turns["response"]) == ["Ho", "Ho", "No"]
        assert turns["dialog"].nunique() == 2


def test_requests_of_vercel_repeat_their_chat(tmp_path):
    def message(role, text):
        parts = [{"type": "text", "text": text}]
        return {"role": role, "parts": parts, "metadata": {"model": "m"}}

    talk = [message("user", "Hi"), message("assistant", "Ho")]
    talk += [message("user", "Tea?"), message("assistant", "No")]
    for name in ("c", None):
        rows = [{"id": name, "messages": talk[:end]} for end in (1, 2, 3, 4)]
        turns = read_turns(file_with(tmp_path, f"{name}.jsonl", rows))
        assert contexts(turns) == TWO_EXCHANGES
        assert len(turns) == 2
    turns = read_turns(file_with(tmp_path, "rows.jsonl", talk))
    assert turns["system"].tolist() == ["m", "m"]


def test_rows_of_langchain_name_the_model(tmp_path):
    rows = []
    for kind, text in (("human", "Hi"), ("ai", "Ho")):
        data = {"content": text, "response_metadata": {"model_name": "m"}}
        rows.append({"session_id": "s", "message": {"type": kind, "data": data}})
    turns = read_turns(file_with(tmp_path, "rows.jsonl", rows))
    assert turns[["system", "response"]].values.tolist() == [["m", "Ho"]]
    rows = [
        {"SessionId": "s", "History": json.dumps(row["message"])} for row in rows
    ]  # as MongoDB has them
    turns = read_turns(file_with(tmp_path, "mongo.jsonl", rows))
    assert turns[["system", "response"]].values.tolist() == [["m", "Ho"]]


def batch_reply(name, *replies):
    """A line of the output of OpenAI's Batch."""
    choices = []
    for number, text in enumerate(replies):
        choices.append({"index": number, "message": bot(text)})
    return {"custom_id": name, "response": {"body": {"model": "m", "choices": choices}}}


def batch_request(name, messages):
    return {"custom_id": name, "method": "POST", "body": {"messages": messages}}


def test_each_choice_of_a_batch_is_a_reply(tmp_path):
    file_with(tmp_path, "input.jsonl", [batch_request(n, HI) for n in "12"])
    failed = {"custom_id": "2", "response": None, "error": {"code": "batch_expired"}}
    file_with(tmp_path, "errors.jsonl", [failed])
    file_with(tmp_path, "output.jsonl", [batch_reply("1", "Ho", "Hey")])
    turns = read_turns(tmp_path)
    assert turns["response"].tolist() == ["Ho", "Hey"]
    assert turns["context"].tolist() == [["Hi"], ["Hi"]]
    assert "1 are requests without a reply in words" in reasons(turns)


def test_two_batches_in_a_folder_that_number_their_requests_alike(tmp_path):
    for name, question, reply in (("a", "Hi", "Ho"), ("b", "Tea?", "No")):
        request = batch_request("1", [user(question)])
        file_with(tmp_path, f"{name}_input.jsonl", [request])
        file_with(tmp_path, f"{name}_output.jsonl", [batch_reply("1", reply)])
    with pytest.raises(DataError, match="two requests with the custom_id '1'"):
        read_turns(tmp_path)


def test_requests_of_a_batch_are_no_dialogs(tmp_path):
    body = {"messages": TEA}
    file_with(tmp_path, "mistral.jsonl", [{"custom_id": "1", "body": body}])
    file_with(tmp_path, "out.jsonl", [batch_reply("1", "No")])
    turns = read_turns(tmp_path)
    assert contexts(turns) == {"No": ["Hi", "Ho", "Tea?"]}


def test_lines_of_requests_to_anthropic_are_no_dialogs(tmp_path):
    requests, results = [], []
    for name, messages, reply in (("1", HI, "Ho"), ("2", TEA, "No")):
        requests.append({"custom_id": name, "params": {"messages": messages}})
        message = {"model": "m", "content": [{"type": "text", "text": reply}]}
        result = {"type": "succeeded", "message": message}
        results.append({"custom_id": name, "result": result})
    file_with(tmp_path, "requests.jsonl", requests)
    file_with(tmp_path, "results.jsonl", results)
    turns = read_turns(tmp_path)
    assert contexts(turns) == TWO_EXCHANGES
    assert len(turns) == 2


def response(name, asked, *replies, before=None):
    """A response of OpenAI; `asked` is a text or a list of items, None where it is elsewhere."""
    output = []
    for text in replies:
        content = [{"type": "output_text", "text": text}]
        output.append({"type": "message", "role": "assistant", "content": content})
    if not replies:
        output.append({"type": "function_call", "name": "tea", "arguments": "{}"})
    record = {
        "id": f"resp_{name}",
        "object": "response",
        "model": "m",
        "output": output,
    }
    record["previous_response_id"] = f"resp_{before}" if before else None
    return record if asked is None else {**record, "input": asked}


def test_a_response_that_calls_a_tool_repeats_no_reply(tmp_path):
    result = {"type": "function_call_output", "output": "none"}
    rows = [
        response("1", HI, "Ho"),
        response("2", TEA),
        response("3", [*TEA, result], "No"),
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert len(turns) == 2


@pytest.mark.parametrize("form", [str, lambda text: [user(text)]])
def test_requests_beside_responses_that_name_the_one_before(tmp_path, form):
    rows = [
        {"request": {"input": form("Hi")}, "response": response("1", None, "Ho")},
        {
            "request": {"input": form("Tea?"), "previous_response_id": "resp_1"},
            "response": response("2", None, "No", before="1"),
        },
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES


def test_all_messages_of_a_response_are_read(tmp_path):
    row = {"request": {"input": "Hi"}, "response": response("1", None, "Wait.", "Ho")}
    turns = read_turns(file_with(tmp_path, "log.jsonl", [row]))
    assert turns["response"].tolist() == ["Wait.\nHo"]


def test_responses_without_what_was_asked_are_refused(tmp_path):
    with pytest.raises(DataError, match="without what the users said"):
        read_turns(file_with(tmp_path, "log.jsonl", [response("1", None, "Ho")]))


def thread_messages(*texts):
    """The messages of a thread of OpenAI's Assistants, the oldest first, made in one second."""
    messages = []
    for number, text in enumerate(texts):
        role = ("user", "assistant")[number % 2]
        content = [{"type": "text", "text": {"value": text, "annotations": []}}]
        message = {"object": "thread.message", "thread_id": "t", "role": role}
        message |= {"created_at": 1735725600 + number // 3, "content": content}
        messages.append({**message, "assistant_id": "asst_1" if number % 2 else None})
    return messages


@pytest.mark.parametrize("newest_first", [True, False])
def test_messages_of_a_thread_may_be_listed_in_both_orders(tmp_path, newest_first):
    messages = thread_messages("Hi", "Ho", "Tea?", "No")
    messages = messages[::-1] if newest_first else messages
    listed = {"object": "list", "data": messages}
    threads = [{"id": "t", "object": "thread", "messages": messages}]
    for number, content in enumerate((listed, threads, messages)):
        turns = read_turns(file_with(tmp_path, f"{number}.json", content))
        assert contexts(turns) == TWO_EXCHANGES
        assert set(turns["system"]) == {"asst_1"}


def gemini(role, *texts):
    return {"role": role, "parts": [{"text": text} for text in texts]}


def gemini_reply(*texts):
    return {"candidates": [{"content": gemini("model", *texts)}], "modelVersion": "m"}


def test_requests_to_gemini_in_several_columns(tmp_path):
    asked = [gemini("user", "Hi")]
    further = [*asked, gemini("model", "H", "o"), gemini("user", "Tea?")]
    calls = [
        (asked, gemini_reply("H", "o")),
        (further, {}),
        (further, gemini_reply("No")),
    ]
    forms = [
        ("request", "response", dict),
        ("full_request", "full_response", json.dumps),
        ("request_payload", "response_payload", lambda value: [json.dumps(value)]),
    ]
    for question, answer, form in forms:
        rows = []
        for contents, reply in calls:
            row = {question: form({"contents": contents}), answer: form(reply)}
            rows.append({"request_id": "r", **row})
        turns = read_turns(file_with(tmp_path, f"{question}.jsonl", rows))
        assert contexts(turns) == TWO_EXCHANGES
        assert turns["system"].tolist() == ["m", "m"]


def test_each_candidate_of_gemini_is_a_reply(tmp_path):
    row = {"contents": [gemini("user", "Hi")], **gemini_reply("Ho")}
    row["candidates"].append({"content": gemini("model", "Hey")})
    turns = read_turns(file_with(tmp_path, "log.jsonl", [row]))
    assert turns["response"].tolist() == ["Ho", "Hey"]


STREAMS = {
    "openai": [
        {"choices": [{"index": 0, "delta": {"content": t}}]} for t in ("H", "o")
    ],
    "anthropic": [
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"text": "H"}},
        {"type": "content_block_delta", "index": 0, "delta": {"text": "o"}},
    ],
    "ollama": [{"message": bot(text), "done": False} for text in ("H", "o")],
    "gemini": [gemini_reply("H"), gemini_reply("o")],
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_pieces_of_a_stream_are_one_reply(tmp_path, name):
    asked = (
        {"messages": HI} if name != "gemini" else {"contents": [gemini("user", "Hi")]}
    )
    row = {"request": asked, "response": STREAMS[name]}
    turns = read_turns(file_with(tmp_path, "log.jsonl", [row]))
    assert contexts(turns) == {"Ho": ["Hi"]}


BODIES = [  # of requests to Bedrock, and what came back
    ({"prompt": "\n\nHuman: Hi\n\nAssistant:"}, {"completion": "Ho"}),
    ({"prompt": "<s>[INST] Hi [/INST]"}, {"outputs": [{"text": "Ho"}]}),
    ({"prompt": "Hi"}, {"generation": "Ho", "stop_reason": "stop"}),
    ({"messages": HI}, STREAMS["anthropic"]),
]


@pytest.mark.parametrize(("asked", "answered"), BODIES)
def test_bodies_of_several_models_in_logs_of_bedrock(tmp_path, asked, answered):
    row = {"modelId": "m", "input": {"inputBodyJson": asked}}
    row["output"] = {"outputBodyJson": answered}
    turns = read_turns(file_with(tmp_path, "log.jsonl", [row]))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_claude_goes_on_from_the_beginning_of_its_reply(tmp_path):
    content = [{"type": "text", "text": " ho"}]
    message = {"type": "message", "role": "assistant", "content": content}
    row = {"request": {"messages": [*HI, bot("Well,")]}, "response": message}
    turns = read_turns(file_with(tmp_path, "log.jsonl", [row]))
    assert contexts(turns) == {"Well, ho": ["Hi"]}


def test_a_response_of_cohere_repeats_its_own_exchange(tmp_path):
    talk = []
    rows = []
    for question, reply in (("Hi", "Ho"), ("Tea?", "No")):
        talk += [{"role": "USER", "message": question}]
        talk += [{"role": "CHATBOT", "message": reply}]
        rows.append({"message": question, "chat_history": [*talk], "text": reply})
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert len(turns) == 2


def test_a_sentence_that_mistral_parts_for_a_source_is_whole(tmp_path):
    blocks = [{"type": "text", "text": "No"}, {"type": "tool_reference", "title": "x"}]
    blocks.append({"type": "text", "text": ", dear."})
    entries = [user("Hi"), bot(blocks)]
    turns = read_turns(file_with(tmp_path, "c.json", {"id": "c", "messages": entries}))
    assert turns["response"].tolist() == ["No, dear."]


def test_messages_of_langchain_in_a_list_name_the_model(tmp_path):
    plain, serialized = [], []
    for kind, name, text in (("human", "Human", "Hi"), ("ai", "AI", "Ho")):
        about = {"content": text, "response_metadata": {"model_name": "m"}}
        plain.append({"type": kind, "additional_kwargs": {}, **about})
        ids = ["langchain", "schema", "messages", f"{name}Message"]
        row = {"lc": 1, "type": "constructor", "id": ids, "kwargs": about}
        serialized.append(row)
    for number, messages in enumerate((plain, serialized)):
        turns = read_turns(file_with(tmp_path, f"{number}.json", messages))
        assert turns[["system", "response"]].values.tolist() == [["m", "Ho"]]
        assert contexts(turns) == {"Ho": ["Hi"]}


def test_messages_of_vercel_as_json_in_rows(tmp_path):
    rows = []
    for role, text in (("user", "Hi"), ("assistant", "Ho")):
        message = {"role": role, "parts": [{"type": "text", "text": text}]}
        about = {"id": role, "created_at": "2025-03-18 20:15:43"}
        rows.append({**about, "message": json.dumps(message)})
    turns = read_turns(file_with(tmp_path, "rows.json", {"data": rows}))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_a_gateway_of_azure_logs_a_request_in_several_rows(tmp_path):
    def row(name, number, **columns):
        about = {"CorrelationId": name, "SequenceNumber": number, "ModelName": "m"}
        return {**about, **{key: json.dumps(value) for key, value in columns.items()}}

    rows = [
        row("b", 1, ResponseMessages=[bot("No")]),
        row("b", 0, RequestMessages=TEA),
        row("a", 0, RequestMessages=HI, ResponseMessages=[bot("Ho")]),
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert turns["system"].tolist() == ["m", "m"]


def test_logs_of_litellm_without_words_are_refused(tmp_path):
    row = {"request_id": "r", "call_type": "acompletion", "spend": 0.1}
    row |= {"startTime": "2025-01-01T10:00:00Z", "messages": {}, "response": {}}
    with pytest.raises(DataError, match="store_prompts_in_spend_logs"):
        read_turns(file_with(tmp_path, "log.jsonl", [row]))


def test_requests_to_gemini_in_a_file_each_are_read_together(tmp_path):
    asked = [gemini("user", "Hi")]
    further = [*asked, gemini("model", "Ho"), gemini("user", "Tea?")]
    for number, contents, text in ((1, asked, "Ho"), (2, further, "No")):
        row = {"request": {"contents": contents}, "response": gemini_reply(text)}
        file_with(tmp_path, f"{number}.json", row)
    turns = read_turns(tmp_path)
    assert turns["response"].tolist() == ["Ho", "No"]
    assert contexts(turns) == TWO_EXCHANGES
