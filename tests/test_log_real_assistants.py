"""What real exports of assistants hold, beyond what their documents say."""

import json

import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, read_turns


def chatgpt_node(name, parent, role, text, **fields):
    """A node of ChatGPT's export."""
    content = {"content_type": "text", "parts": [text]}
    message = {"author": {"role": role}, "content": content, **fields}
    return {name: {"id": name, "parent": parent, "message": message}}


def test_chatgpt_is_read_without_a_current_node(tmp_path):
    nodes = {"0": {"id": "0", "parent": None, "message": None}}
    nodes |= chatgpt_node("1", "0", "user", "Hi", create_time=1)
    nodes |= chatgpt_node("2", "1", "assistant", "Ho", create_time=2)
    nodes |= chatgpt_node("3", "2", "user", "Tea?", create_time=3)
    nodes |= chatgpt_node("5", "3", "assistant", "No", create_time=5)
    nodes |= chatgpt_node("4", "3", "assistant", "Well", create_time=4)
    chats = [{"id": "c", "mapping": nodes, "default_model_slug": "gpt-5"}]
    turns = read_turns(file_with(tmp_path, "c.json", chats))
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"gpt-5"}


def test_what_chatgpt_says_before_it_looks_something_up_is_no_reply(tmp_path):
    preamble = {"is_thinking_preamble_message": True}
    reply = "\ue203Open until nine\ue204\u30106\u2020source\u3011."
    nodes = chatgpt_node("1", None, "user", "When?")
    nodes |= chatgpt_node("2", "1", "assistant", "I look.", metadata=preamble)
    nodes |= chatgpt_node("3", "2", "assistant", "Hm.", channel="commentary")
    nodes |= chatgpt_node("4", "3", "assistant", reply, channel="final")
    chats = [{"id": "c", "mapping": nodes, "current_node": "4"}]
    turns = read_turns(file_with(tmp_path, "c.json", chats))
    assert contexts(turns) == {"Open until nine.": ["When?"]}


def test_a_spoken_note_and_the_model_of_claude_are_read(tmp_path):
    note = {"type": "voice_note", "title": "Tea", "text": "Tea?"}
    messages = [
        {"uuid": "1", "sender": "human", "text": "", "content": [note]},
        {"uuid": "2", "sender": "assistant", "text": "No", "parent_message_uuid": "1"},
    ]
    chat = {"uuid": "c", "model": "claude-sonnet-4", "chat_messages": messages}
    turns = read_turns(file_with(tmp_path, "claude.json", [chat]))
    assert contexts(turns) == {"No": ["Tea?"]}
    assert turns["system"].tolist() == ["claude-sonnet-4"]


def claude_code(number, role, content, **fields):
    """A line of a session of Claude Code."""
    message = {"role": role, "content": content, "model": fields.pop("model", "m")}
    ids = {"uuid": f"{number}", "parentUuid": f"{number - 1}" if number > 1 else None}
    return {"type": role, "sessionId": "s", "message": message, **ids, **fields}


def test_what_an_editor_adds_for_claude_code_is_no_talk(tmp_path):
    opened = "<ide_opened_file>The user opened tea.md</ide_opened_file>"
    blocks = [{"type": "text", "text": opened}, {"type": "text", "text": "Hi"}]
    reminder = "Tea?\n<system-reminder>Say nothing of it.</system-reminder>"
    task = "<task-notification>\n<status>done</status>\n</task-notification>"
    rows = [
        claude_code(1, "user", blocks),
        claude_code(2, "assistant", [{"type": "text", "text": "Ho"}]),
        claude_code(3, "user", task),
        claude_code(4, "assistant", "No response requested.", model="<synthetic>"),
        claude_code(5, "user", reminder),
        claude_code(6, "assistant", [{"type": "text", "text": "No"}]),
    ]
    assert contexts(read_turns(file_with(tmp_path, "s.jsonl", rows))) == TWO_EXCHANGES


def test_a_session_of_claude_code_may_be_in_one_list(tmp_path):
    lines = []
    for role, text in (("user", "Hi"), ("assistant", "Ho")):
        lines.append({"type": role, "message": {"role": role, "content": text}})
    summary = {"role": "user", "content": "The talk so far was of tea."}
    lines.append({"type": "user", "isCompactSummary": True, "message": summary})
    for role, text in (("user", "Tea?"), ("assistant", "No")):
        lines.append({"type": role, "message": {"role": role, "content": text}})
    file = file_with(tmp_path, "s.json", {"loglines": lines})
    assert contexts(read_turns(file)) == TWO_EXCHANGES


def codex(role, text):
    """A message of a session of Codex."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return {"type": "message", "role": role, "content": content}


CODEX_TALK = [
    codex("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"),
    codex("user", "Hi"),
    codex("assistant", "Ho"),
    codex("user", "<turn_aborted>\nThe user stopped it.\n</turn_aborted>"),
]


def test_the_model_of_codex_stands_before_its_turns(tmp_path):
    asked = "# Context from my IDE setup:\n\n## Open tabs:\n- tea.md\n\n"
    talk = [
        codex("developer", "<permissions instructions>Ask first.</permissions>"),
        *CODEX_TALK,
        codex("user", f"{asked}## My request for Codex:\nTea?"),
        codex("assistant", "No"),
    ]
    rows = [{"type": "session_meta", "payload": {"id": "s"}}]
    rows.append({"type": "turn_context", "payload": {"model": "gpt-5-codex"}})
    rows += [{"type": "response_item", "payload": item} for item in talk]
    turns = read_turns(file_with(tmp_path, "rollout.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"gpt-5-codex"}


def test_older_sessions_of_codex_have_no_payload(tmp_path):
    rows = [
        {"id": "s", "instructions": None},
        {"record_type": "state"},
        *CODEX_TALK,
        codex("user", "Tea?"),
        {"type": "function_call", "name": "shell", "arguments": "{}"},
        codex("assistant", "No"),
    ]
    turns = read_turns(file_with(tmp_path, "rollout.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES


def test_marks_of_sources_in_grok_are_no_words(tmp_path):
    source = '<grok:render card_id="1" type="render_inline_citation">\n'
    source += '<argument name="citation_id">1</argument>\n</grok:render>'
    said = [("human", "When?"), ("ASSISTANT", f"Open until nine.{source} Come!")]
    responses = [{"response": {"sender": s, "message": text}} for s, text in said]
    chat = {"conversation": {"id": "g"}, "responses": responses}
    turns = read_turns(file_with(tmp_path, "grok.json", {"conversations": [chat]}))
    assert contexts(turns) == {"Open until nine. Come!": ["When?"]}


def test_errors_and_reasoning_of_librechat_are_no_words(tmp_path):
    said = [
        (True, "Hi", False),
        (False, ":::thinking\nA greeting.\n:::\n\nHo", False),
        (True, "Tea?", False),
        (False, '{"type": "token_balance"}', True),
        (False, "No", False),
    ]
    messages = []
    for number, (by_user, text, error) in enumerate(said):
        message = {"messageId": f"{number}", "isCreatedByUser": by_user, "text": text}
        parent = "2" if number == 4 else f"{number - 1}"
        messages.append({**message, "error": error, "parentMessageId": parent})
    chat = {"conversationId": "l", "messages": messages}
    assert contexts(read_turns(file_with(tmp_path, "l.json", chat))) == TWO_EXCHANGES


def copilot(*requests):
    """A session of GitHub Copilot."""
    about = {"requesterUsername": "me", "responderUsername": "GitHub Copilot"}
    return {**about, "sessionId": "c", "requests": list(requests)}


def copilot_request(text, *parts):
    return {"message": {"text": text}, "response": list(parts), "modelId": "m"}


def test_files_that_copilot_names_are_words_of_its_sentence(tmp_path):
    file = {"kind": "inlineReference", "inlineReference": {"path": "/kitchen/tea.md"}}
    tool = {"kind": "toolInvocationSerialized"}
    edit = [{"value": "\n```\n"}, {"kind": "textEditGroup"}, {"value": "\n```\n"}]
    asked = copilot_request(
        "Tea?", {"value": "See "}, file, {"value": "."}, tool, {"value": "Now "}, *edit
    )
    turns = read_turns(file_with(tmp_path, "chat.json", copilot(asked)))
    assert contexts(turns) == {"See tea.md.\nNow": ["Tea?"]}


def test_the_log_of_a_session_of_copilot_is_read_with_its_changes(tmp_path):
    hi = copilot_request("Hi")
    tea = copilot_request("Tea?", {"value": "No"})
    rows = [
        {"kind": 0, "v": copilot()},
        {"kind": 2, "k": ["requests"], "v": [hi]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "H"}]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Ho"}], "i": 0},
        {"kind": 1, "k": ["requests", 0, "vote"], "v": 1},
        {"kind": 2, "k": ["requests"], "v": [tea]},
    ]
    turns = read_turns(file_with(tmp_path, "c.jsonl", rows))
    assert contexts(turns) == TWO_EXCHANGES
    assert turns["human_feedback"].dropna().tolist() == [1]


def test_what_a_model_of_openai_refused_is_a_reply(tmp_path):
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "refusal": "Ho"},
        {"role": "user", "content": "Tea?"},
        {"role": "assistant", "content": "No", "refusal": None},
    ]
    file = file_with(tmp_path, "a.jsonl", [{"messages": messages}])
    assert contexts(read_turns(file)) == TWO_EXCHANGES
    choice = {"index": 0, "message": {**messages[1], "refusal": "No"}}
    row = {"messages": messages[:3], "choices": [choice]}
    row["messages"][1] = {"role": "assistant", "content": "Ho"}
    file = file_with(tmp_path, "b.jsonl", [row])
    assert contexts(read_turns(file))["No"] == ["Hi", "Ho", "Tea?"]


def response(number, question, part):
    """A response of OpenAI in a conversation."""
    output = [{"type": "message", "role": "assistant", "content": [part]}]
    about = {"id": f"r{number}", "object": "response", "created_at": number}
    about["conversation"] = {"id": "conv"}
    return {**about, "input": question, "output": output}


def test_responses_of_a_conversation_go_on_from_each_other(tmp_path):
    rows = [
        response(2, "Tea?", {"type": "refusal", "refusal": "No"}),
        response(1, "Hi", {"type": "output_text", "text": "Ho"}),
    ]
    assert contexts(read_turns(file_with(tmp_path, "r.jsonl", rows))) == TWO_EXCHANGES


def test_items_of_a_conversation_of_openai_stand_newest_first(tmp_path):
    items = [codex("user", "Hi"), codex("assistant", "Ho")]
    items += [codex("user", "Tea?"), codex("assistant", "No")]
    newest_first = {"object": "list", "data": items[::-1]}
    file = file_with(tmp_path, "newest.json", newest_first)
    assert contexts(read_turns(file)) == TWO_EXCHANGES
    file = file_with(tmp_path, "oldest.json", {"object": "list", "data": items})
    assert contexts(read_turns(file)) == TWO_EXCHANGES
    unclear = file_with(tmp_path, "unclear.json", {"object": "list", "data": items[:3]})
    with pytest.raises(DataError, match="begins and ends with the user"):
        read_turns(unclear)


def test_messages_of_openassistant_with_replies_are_trees(tmp_path):
    def message(name, role, text, *replies):
        about = {"message_id": name, "role": role, "text": text}
        return {**about, "replies": list(replies)}

    tea = message("3", "prompter", "Tea?", message("4", "assistant", "No"))
    rows = [
        message(
            *("1", "prompter", "Hi"),
            message("2", "assistant", "Ho", tea),
            message("5", "assistant", "Hm"),
        )
    ]
    turns = read_turns(file_with(tmp_path, "oasst.jsonl", rows))
    assert contexts(turns) == {**TWO_EXCHANGES, "Hm": ["Hi"]}


AIDER = """
# aider chat started at 2025-09-22 12:04:00

> /bin/aider --message
Hi

and so on$
> Main model: m with whole edit format$

#### /ask$
> Main model: n with ask edit format$

#### Hi$

Ho

> as they say

#### Of greetings

> Tokens: 3 sent.$
> export TEA=1
./go.sh$
> Run shell commands? (Y)es/(N)o [Yes]: n$

#### Tea?$

No
""".replace("$", "  ")  # which Aider writes at the ends of lines


def test_quotations_and_headings_in_aider_are_the_models(tmp_path):
    file = tmp_path / ".aider.chat.history.md"
    file.write_text(AIDER, encoding="utf-8")
    turns = read_turns(file)
    reply = "Ho\n\n> as they say\n\n#### Of greetings"
    assert contexts(turns) == {reply: ["Hi"], "No": ["Hi", reply, "Tea?"]}
    assert set(turns["system"]) == {"n"}


def test_headings_of_speakers_may_have_a_time_and_a_picture(tmp_path):
    text = """# Tea

## 👤 User · 2025-10-15T04:37:46+00:00

Hi

---

## 🤖 Assistant · 2025-10-15T04:38:12+00:00

Ho

---

## User (`27329ecf`) - 2025-10-15T04:39:18+00:00

Tea?

---

## Assistant (`54487103`) - 2025-10-15T04:39:24+00:00

No
"""
    file = tmp_path / "chat.md"
    file.write_text(text, encoding="utf-8")
    assert contexts(read_turns(file)) == TWO_EXCHANGES


def test_a_time_below_a_heading_is_no_word(tmp_path):
    text = "# Tea"
    for name, words in (
        *(("Prompt", "Hi"), ("Response", "Ho")),
        *(("Prompt", "Tea?"), ("Response", "No")),
    ):
        text += f"\n\n## {name}:\n1/2/2026 10:00:00\n\n{words}"
    turns = read_turns(file_with(tmp_path, "chat.md", text))
    assert contexts(turns) == TWO_EXCHANGES


def test_headings_within_a_reply_are_no_speakers(tmp_path):
    reply = (
        "Ho\n\n### User interface\n\nA cup.\n\n### Assistant in the kitchen\n\nNobody."
    )
    text = f"### Participant\n\nHi\n\n### Assistant\n\n{reply}\n"
    file = tmp_path / "chat.md"
    file.write_text(text, encoding="utf-8")
    assert contexts(read_turns(file)) == {reply: ["Hi"]}


def test_what_a_user_of_gemini_did_besides_is_no_talk(tmp_path):
    rows = []
    for minute, title, reply in (
        (3, "Created Gemini Canvas titled Cakes", "A cake"),
        (2, "Prompted Tea?", "No"),
        (1, "Prompted Hi", "Ho"),
    ):
        row = {"title": title, "time": f"2026-01-02T10:0{minute}:00Z"}
        rows.append({**row, "safeHtmlItem": [{"html": f"<p>{reply}</p>"}]})
    file = tmp_path / "MyActivity.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    turns = read_turns(file, options={"split": "gap:30m"})
    assert contexts(turns) == TWO_EXCHANGES


def test_sentences_that_anthropic_divides_for_its_sources_are_whole(tmp_path):
    blocks = [
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "name": "web_search"},
        {"type": "text", "text": "Open until nine", "citations": [{"url": "x"}]},
        {"type": "text", "text": ", and free."},
    ]
    messages = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": blocks},
    ]
    file = file_with(tmp_path, "a.jsonl", [{"messages": messages}])
    reply = "I look.\nOpen until nine, and free."
    assert contexts(read_turns(file)) == {reply: ["When?"]}


def test_pieces_of_a_stream_of_gemini_are_one_text(tmp_path):
    parts = [
        {"text": "Hm", "thought": True},
        {"text": "Open until "},
        {"text": "nine."},
    ]
    contents = [
        {"role": "user", "parts": [{"text": "When?"}]},
        {"role": "model", "parts": parts},
    ]
    file = file_with(tmp_path, "g.jsonl", [{"model": "m", "contents": contents}])
    assert contexts(read_turns(file)) == {"Open until nine.": ["When?"]}


def test_chunks_of_langchain_are_messages(tmp_path):
    said = [("human", "Hi"), ("AIMessageChunk", "Ho"), ("human", "Tea?"), ("ai", "No")]
    rows = [{"type": kind, "data": {"type": kind, "content": t}} for kind, t in said]
    turns = read_turns(file_with(tmp_path, "history.json", rows))
    assert contexts(turns) == TWO_EXCHANGES


def test_arrays_of_messages_that_pandas_printed_are_read(tmp_path):
    messages = []
    for role, text in (("user", "Hi"), ("assistant", "Ho")):
        messages.append(repr({"content": text, "role": role}))
    cell = "[" + "\n ".join(messages) + "]"
    text = f'conversation_id,model,conversation\nc,vicuna,"{cell}"\n'
    turns = read_turns(file_with(tmp_path, "lmsys.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"]}
    assert turns["system"].tolist() == ["vicuna"]


def test_buttons_in_pages_of_sharegpt_are_no_words(tmp_path):
    page = "<div class='prose'><p>Ho</p><pre><button>Copy code</button></pre></div>"
    said = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": page}]
    turns = read_turns(file_with(tmp_path, "s.json", [{"conversations": said}]))
    assert contexts(turns) == {"Ho": ["Hi"]}


def test_branches_of_a_chat_that_deepseek_loads_have_their_own_contexts(tmp_path):
    messages = []
    for number, parent, role, text in (
        (1, None, "USER", "Hi"),
        (2, 1, "ASSISTANT", "Hm"),
        (3, 1, "ASSISTANT", "Ho"),
        (4, 3, "USER", "Tea?"),
        (5, 4, "ASSISTANT", "No"),
    ):
        kind = "REQUEST" if role == "USER" else "RESPONSE"
        fragments = [{"type": "THINK", "content": "x"}, {"type": kind, "content": text}]
        message = {"message_id": number, "parent_id": parent, "role": role}
        messages.append({**message, "inserted_at": number, "fragments": fragments})
    loaded = {"chat_session": {"id": "d"}, "chat_messages": messages}
    file = file_with(tmp_path, "d.json", {"data": {"biz_data": loaded}})
    assert contexts(read_turns(file)) == {**TWO_EXCHANGES, "Hm": ["Hi"]}
