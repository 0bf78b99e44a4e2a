"""Combinations of ordinary features in exports of assistants and in preference data."""

import json

import pytest
from log_example_files import TWO_EXCHANGES, contexts, file_with

from lib.data import DataError, read_turns


def chat(*texts):
    """Messages of the user and the assistant in turn."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": t} for n, t in enumerate(texts)]


def chatgpt(*said):
    """ChatGPT's export of one talk, by role, words, and the seconds at which each was written."""
    nodes = {}
    for number, (role, text, seconds) in enumerate(said, start=1):
        nodes[f"{number}"] = {
            "parent": f"{number - 1}" if number > 1 else None,
            "message": {
                "author": {"role": role},
                "create_time": 1_700_000_000 + seconds,
                "content": {"content_type": "text", "parts": [text]},
            },
        }
    return [{"id": "c", "mapping": nodes, "current_node": f"{len(said)}"}]


def test_a_clock_that_is_fast_changes_no_order_of_chatgpt(tmp_path):
    chats = chatgpt(
        ("user", "Hi", 12),
        ("assistant", "Ho", 5),
        ("user", "Tea?", 30),
        ("assistant", "No", 25),
    )
    assert contexts(read_turns(file_with(tmp_path, "c.json", chats))) == TWO_EXCHANGES


def test_a_clock_that_is_fast_changes_no_order_of_open_webui(tmp_path):
    nodes = {}
    times = (1_700_000_012, 1_700_000_005, 1_700_000_030, 1_700_000_025)
    for number, (message, time) in enumerate(
        zip(chat("Hi", "Ho", "Tea?", "No"), times, strict=True)
    ):
        parent = f"{number - 1}" if number else None
        nodes[f"{number}"] = {"parentId": parent, "timestamp": time, **message}
    value = [{"id": "w", "chat": {"history": {"messages": nodes, "currentId": "3"}}}]
    assert contexts(read_turns(file_with(tmp_path, "w.json", value))) == TWO_EXCHANGES


def claude(*texts):
    """An old export of Claude: no blocks, and no ids of what a message answers."""
    messages = []
    for number, text in enumerate(texts):
        sender = ("human", "assistant")[number % 2]
        time = f"2024-07-01T10:00:0{number}Z"
        message = {"uuid": f"{number}", "sender": sender, "created_at": time}
        messages.append({**message, "text": text})
    return [{"uuid": "c", "chat_messages": messages}]


def test_what_claude_thinks_of_an_artifact_is_no_word(tmp_path):
    reply = (
        "Here.\n\n<antThinking>Worth an artifact.</antThinking>\n\n"
        '<antArtifact identifier="tea" type="text/markdown" title="Tea">\nBoil it.\n'
        "</antArtifact>\n\nEnjoy!"
    )
    turns = read_turns(file_with(tmp_path, "c.json", claude("Tea?", reply)))
    assert contexts(turns) == {"Here.\n\nBoil it.\n\nEnjoy!": ["Tea?"]}


def test_what_stands_for_a_block_of_claude_is_no_word(tmp_path):
    block = "```\nThis block is not supported on your current device yet.\n```\n\n"
    chats = claude("When?", f"I look.\n{block}At nine.", "Sure?", f"{block}Yes.")
    turns = read_turns(file_with(tmp_path, "c.json", chats))
    reply = "I look.\nAt nine."
    assert contexts(turns) == {reply: ["When?"], "Yes.": ["When?", reply, "Sure?"]}


def gemini(*rows):
    """Google Takeout's activity of Gemini, the newest first."""
    activity = []
    for minute, (title, *pages) in enumerate(rows):
        row = {"header": "Gemini Apps", "title": title}
        row["time"] = f"2026-01-02T10:{minute:02}:00Z"
        row["safeHtmlItem"] = [{"html": page} for page in pages]
        activity.append(row)
    return activity[::-1]


def gemini_turns(tmp_path, *rows):
    """The replies in such a file, which does not tell its chats."""
    file = file_with(tmp_path, "MyActivity.json", gemini(*rows))
    return read_turns(file, options={"split": "gap:30m"})


def test_of_drafts_of_gemini_the_last_is_read(tmp_path):
    rows = [("Prompted Hi", "<p>Hm</p>", "<p>Ho</p>"), ("Prompted Tea?", "<p>No</p>")]
    assert contexts(gemini_turns(tmp_path, *rows)) == TWO_EXCHANGES


def test_what_was_said_to_bard_is_read(tmp_path):
    rows = [
        ("Said Hi", "<p>Ho</p>"),
        ("Used an app", "<p>Opened</p>"),
        ("Asked Bard: Tea? Attached 2 files.", "<p>No</p>"),
    ]
    assert contexts(gemini_turns(tmp_path, *rows)) == TWO_EXCHANGES


def test_headings_and_cells_of_a_page_are_no_part_of_the_next_word(tmp_path):
    page = "<h3>Tea</h3><p>Boil it.</p><table><tr><td>Green</td><td>70</td></tr>"
    page += "<tr><td>Black</td><td>95</td></tr></table>"
    turns = gemini_turns(tmp_path, ("Prompted How?", page))
    assert turns["response"].tolist() == ["Tea\nBoil it.\nGreen 70\nBlack 95"]


def test_a_source_within_a_sentence_of_le_chat_does_not_divide_it(tmp_path):
    chunks = [
        {"type": "tool_call", "name": "web_search"},
        {"type": "text", "text": "At nine"},
        {"type": "reference", "referenceIds": [1]},
        {"type": "text", "text": ", they say."},
    ]
    rows = []
    for number, (role, text, parts) in enumerate(
        [("user", "When?", None), ("assistant", "", chunks)]
    ):
        row = {"id": f"{number}", "chatId": "l", "version": 0, "role": role}
        row |= {"content": text, "contentChunks": parts}
        rows.append({**row, "createdAt": f"2026-01-02T10:00:0{number}Z"})
    turns = read_turns(file_with(tmp_path, "chat.json", rows))
    assert contexts(turns) == {"At nine, they say.": ["When?"]}


def test_characters_of_old_histories_have_their_names(tmp_path):
    messages = []
    for is_human, text in ((False, "Hello"), (True, "Hi"), (False, "Ho")):
        source = {"is_human": is_human, "name": "me" if is_human else "Ada"}
        messages.append({"text": text, "src": source, "is_alternative": False})
    histories = [{"external_id": "h", "msgs": messages}]
    file = file_with(tmp_path, "c.json", {"histories": {"histories": histories}})
    turns = read_turns(file)
    assert contexts(turns) == {"Hello": [], "Ho": ["Hello", "Hi"]}
    assert set(turns["system"]) == {"Ada"}


def test_a_reply_that_people_edited_is_the_models(tmp_path):
    row = {"domain": "general", "context": chat("Hi", "Ho", "Tea?")}
    row |= {"original_response": "No", "edited_response": "No, sorry."}
    turns = read_turns(file_with(tmp_path, "edit.jsonl", [row]))
    assert contexts(turns) == {"No": ["Hi", "Ho", "Tea?"]}
    assert turns["reference"].tolist() == [["No, sorry."]]


def test_two_replies_with_what_people_said_of_them(tmp_path):
    row = {"context": chat("Hi", "Ho", "Tea?"), "response1": "No", "response2": "Yes"}
    row |= {"feedback1": ["Short."], "feedback2": ["Kind."]}
    turns = read_turns(file_with(tmp_path, "feedback.jsonl", [row]))
    context = ["Hi", "Ho", "Tea?"]
    assert contexts(turns) == {"No": context, "Yes": context}


def test_attacks_by_a_red_team_are_dialogs(tmp_path):
    said = "\n\nHuman: Hi\n\nAssistant: Ho\n\nHuman: Tea?\n\nAssistant: No\n"
    row = {"transcript": said, "task_description": "Ask for tea.", "rating": 4.0}
    file = file_with(tmp_path, "red.jsonl", [{**row, "red_team_member_id": 2}])
    turns = read_turns(file)
    assert contexts(turns) == TWO_EXCHANGES
    assert "human_rating" not in turns


def test_a_reply_beside_messages_under_an_unknown_name_is_asked_about(tmp_path):
    row = {"context": chat("Hi", "Ho", "Tea?"), "model_response": "No"}
    file = file_with(tmp_path, "log.jsonl", [row])
    with pytest.raises(DataError, match="'model_response'"):
        read_turns(file)
    turns = read_turns(file, columns={"response": "model_response"})
    assert contexts(turns) == TWO_EXCHANGES
    row = {"prompt": chat("Hi", "Ho", "Tea?"), "responses": ["No", "Yes"]}
    with pytest.raises(DataError, match="one row per reply"):
        read_turns(file_with(tmp_path, "list.jsonl", [row]))


def test_a_reply_that_goes_on_after_a_limit_is_one(tmp_path):
    chats = chatgpt(
        ("user", "Hi", 1),
        ("assistant", "H", 2),
        ("assistant", "o", 3),
        ("user", "Tea?", 4),
        ("assistant", "No", 5),
    )
    cut = chats[0]["mapping"]["2"]["message"]
    cut["metadata"] = {"finish_details": {"type": "max_tokens"}}
    assert contexts(read_turns(file_with(tmp_path, "c.json", chats))) == TWO_EXCHANGES


def test_chatgpt_is_read_where_its_current_node_is_not_there(tmp_path):
    chats = chatgpt(
        ("user", "Hi", 1),
        ("assistant", "Ho", 2),
        ("user", "Tea?", 3),
        ("assistant", "No", 4),
    )
    chats[0]["current_node"] = "9"
    assert contexts(read_turns(file_with(tmp_path, "c.json", chats))) == TWO_EXCHANGES


def test_the_model_that_open_webui_drew_for_its_arena_is_the_system(tmp_path):
    asked = {"parentId": None, "role": "user", "content": "Hi"}
    answered = {"parentId": "1", "role": "assistant", "content": "Ho"}
    answered |= {"model": "arena-model", "arena": True, "selectedModelId": "llama3"}
    history = {"messages": {"1": asked, "2": answered}, "currentId": "2"}
    file = file_with(tmp_path, "w.json", [{"id": "w", "chat": {"history": history}}])
    assert read_turns(file)["system"].tolist() == ["llama3"]


def test_messages_of_sillytavern_stay_in_their_order(tmp_path):
    rows = [{"user_name": "Me", "character_name": "Ada", "chat_metadata": {}}]
    for minute, (name, text) in zip(
        (5, 1, 9, 7),
        (("Me", "Hi"), ("Ada", "Ho"), ("Me", "Tea?"), ("Ada", "No")),
        strict=True,
    ):
        row = {"name": name, "is_user": name == "Me", "mes": text}
        rows.append({**row, "send_date": f"2026-01-02T10:0{minute}:00.000Z"})
    assert contexts(read_turns(file_with(tmp_path, "s.jsonl", rows))) == TWO_EXCHANGES


def test_how_strongly_people_preferred_a_reply_tells_which(tmp_path):
    prompt = "Hi<extra_id_1>Assistant\nHo\n<extra_id_1>User\nTea?"
    row = {"prompt": prompt, "response_1": "No", "response_2": "Yes"}
    file = file_with(tmp_path, "p.jsonl", [{**row, "preference_strength": 2}])
    turns = read_turns(file)
    context = ["Hi", "Ho", "Tea?"]
    assert contexts(turns) == {"No": context, "Yes": context}
    assert turns["human_preference"].tolist() == [0, 1]


def test_preferences_may_have_a_history_and_an_input(tmp_path):
    pair = {"chosen": "No", "rejected": "Yes"}
    row = {"instruction": "Tea?", "input": "", "history": [["Hi", "Ho"]], **pair}
    turns = read_turns(file_with(tmp_path, "history.json", [row]))
    context = ["Hi", "Ho", "Tea?"]
    assert contexts(turns) == {"No": context, "Yes": context}
    row = {"instruction": "Is it tea?", "input": "A leaf", **pair}
    turns = read_turns(file_with(tmp_path, "input.json", [row]))
    context = ["Is it tea?\nA leaf"]
    assert contexts(turns) == {"No": context, "Yes": context}


def test_authors_of_copilot_are_named_by_their_type(tmp_path):
    messages = []
    for number, (kind, text) in enumerate(
        [("human", "Hi"), ("ai", "Ho"), ("human", "Tea?"), ("ai", "No")]
    ):
        message = {
            "author": {"type": kind},
            "content": [{"type": "text", "text": text}],
        }
        messages.append({**message, "createdAt": f"2026-01-02T10:00:0{number}Z"})
    file = file_with(tmp_path, "c.json", {"id": "c", "results": messages[::-1]})
    turns = read_turns(file)
    assert contexts(turns) == TWO_EXCHANGES
    assert set(turns["system"]) == {"ai"}


def test_the_items_beside_an_empty_text_of_open_webui_are_read(tmp_path):
    items = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Ho"}]},
    ]
    asked = {"parentId": None, "role": "user", "content": "Hi"}
    answered = {"parentId": "1", "role": "assistant", "content": "", "output": items}
    history = {"messages": {"1": asked, "2": answered}, "currentId": "2"}
    file = file_with(tmp_path, "w.json", [{"id": "w", "chat": {"history": history}}])
    assert contexts(read_turns(file)) == {"Ho": ["Hi"]}


@pytest.mark.parametrize(
    "prompt",
    [
        "Tea?",
        [{"role": "system", "content": "Be kind."}, *chat("Hi", "Ho", "Tea?")],
        "\n\nHuman: Hi\n\nAssistant: Ho\n\nHuman: Tea?\n\nAssistant:",
    ],
)
def test_a_prompt_that_both_dialogs_repeat_is_read_once(tmp_path, prompt):
    said = chat("Hi", "Ho", "Tea?")
    row = {"prompt": prompt}
    for side, reply in (("chosen", "No"), ("rejected", "Yes")):
        row[side] = [*said, {"role": "assistant", "content": reply}]
    turns = read_turns(file_with(tmp_path, "dpo.jsonl", [row]))
    context = ["Hi", "Ho", "Tea?"]
    assert contexts(turns) == {"No": context, "Yes": context}


def test_marks_of_a_template_behind_replies_are_no_words(tmp_path):
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    row = {"prompt": prompt, "chosen": "Ho<|im_end|>\n", "rejected": "Hm<|im_end|>\n"}
    turns = read_turns(file_with(tmp_path, "dpo.jsonl", [row]))
    assert contexts(turns) == {"Ho": ["Hi"], "Hm": ["Hi"]}


def test_a_table_of_preferences_may_hold_messages_as_json(tmp_path):
    sides = [chat("Hi"), chat("Hi", "Ho"), [{"role": "assistant", "content": "Hm"}]]
    cells = [json.dumps(side) for side in sides]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    text = f"prompt,chosen,rejected\n{','.join(quoted)}\n"
    turns = read_turns(file_with(tmp_path, "dpo.csv", text))
    assert contexts(turns) == {"Ho": ["Hi"], "Hm": ["Hi"]}


def test_a_turn_of_character_ai_without_a_reply_is_passed_over(tmp_path):
    turns = []
    for number, (name, texts) in enumerate(
        [("Ada", []), ("me", ["Hi"]), ("Ada", ["Ho", "Hm"])]
    ):
        made = [{"candidate_id": text, "raw_content": text} for text in texts]
        author = {"name": name, "is_human": name == "me"}
        turn = {"author": author, "candidates": made, "turn_key": {"chat_id": "c"}}
        turn |= {"create_time": f"2026-01-02T10:00:0{number}Z"}
        turns.append({**turn, "primary_candidate_id": texts[0] if texts else None})
    file = file_with(tmp_path, "c.json", {"turns": turns[::-1]})
    assert contexts(read_turns(file)) == {"Ho": ["Hi"]}
