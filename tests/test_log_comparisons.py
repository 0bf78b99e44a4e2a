"""Several replies to one context, branches, requests that repeat the history, and their ratings."""

import json

import pandas as pd
import pytest

from lib.data import DataError, import_report, read_turns


def file_with(folder, name, *rows):
    """A file with one JSON value a line."""
    file = folder / name
    file.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return file


def replies(turns):
    """System, context and response of each reply."""
    return sorted(turns[["system", "context", "response"]].values.tolist())


def message(role, content):
    return {"role": role, "content": content}


ASKED = message("user", "Hi")


def test_judges_of_the_same_pair_are_raters_of_its_dialogs(tmp_path):
    rows = []
    for judge, winner in (("author_2", "model_b"), ("expert_17", "model_a")):
        row = {"question_id": 81, "model_a": "m1", "model_b": "m2", "turn": 1}
        row |= {"winner": winner, "judge": judge}
        row["conversation_a"] = [ASKED, message("assistant", "Ho")]
        row["conversation_b"] = [ASKED, message("assistant", "Hm")]
        rows.append(row)
    turns = read_turns(file_with(tmp_path, "pairs.jsonl", *rows))
    assert replies(turns) == [["m1", ["Hi"], "Ho"], ["m2", ["Hi"], "Hm"]]
    assert turns["human_preference"].tolist() == [0.5, 0.5]
    assert sorted(set(turns.attrs["ratings"]["rater"])) == ["author_2", "expert_17"]


def test_a_judge_of_the_first_turn_does_not_rate_the_second(tmp_path):
    row = {"question_id": 81, "model_a": "m1", "model_b": "m2", "winner": "model_a"}
    row |= {"judge": "expert_3", "turn": 1}
    for side, reply in (("a", "Ho"), ("b", "Hm")):
        row[f"conversation_{side}"] = [
            ASKED,
            message("assistant", reply),
            message("user", "Tea?"),
            message("assistant", "No"),
        ]
    turns = read_turns(file_with(tmp_path, "pairs.jsonl", row))
    rated = turns[turns["human_preference"].notna()]
    assert rated["response"].tolist() == ["Ho", "Hm"]


def prism(form):
    """Two turns with two replies each, as rows or as one conversation."""
    turns = [("Hi", "Ho", "Worse."), ("Tea?", "No", "Worst.")]
    history = []
    rows = []
    for number, (asked, chosen, other) in enumerate(turns):
        history.append({"turn": number, "role": "user", "content": asked})
        for text, model, score in ((other, "m2", 10), (chosen, "m1", 80)):
            fields = {"turn": number, "model_name": model, "score": score}
            fields["if_chosen"] = model == "m1"
            history.append({**fields, "role": "model", "content": text})
            row = {"conversation_id": "c", "user_prompt": asked, "model_response": text}
            rows.append(row | fields)
    if form == "rows":
        return rows
    return [{"conversation_id": "c", "conversation_history": history}]


@pytest.mark.parametrize("form", ["rows", "conversation"])
def test_a_reply_that_was_not_chosen_has_its_own_context(form, tmp_path):
    turns = read_turns(file_with(tmp_path, "prism.jsonl", *prism(form)))
    later = ["Hi", "Ho", "Tea?"]
    assert replies(turns) == [
        ["m1", ["Hi"], "Ho"],
        ["m1", later, "No"],
        ["m2", ["Hi"], "Worse."],
        ["m2", later, "Worst."],
    ]
    by_system = turns.groupby("system")["human_feedback"].mean()
    assert by_system.to_dict() == {"m1": 80, "m2": 10}


def test_a_preference_that_a_model_gave_is_no_rating_of_people(tmp_path):
    pair = {"prompt": "Hi", "score_chosen": 8.5, "score_rejected": 3.0}
    pair["chosen"] = [ASKED, message("assistant", "Ho")]
    pair["rejected"] = [ASKED, message("assistant", "Hm")]
    turns = read_turns(file_with(tmp_path, "pairs.jsonl", pair))
    assert replies(turns) == [["chosen", ["Hi"], "Ho"], ["rejected", ["Hi"], "Hm"]]
    assert "human_preference" not in turns
    reasons = import_report(turns).set_index("unit").loc["ratings", "reasons"]
    assert "that models gave" in reasons


MODELS_ANSWERS = {
    "UltraFeedback": {
        "instruction": "Hi",
        "models": ["m1", "m2"],
        "completions": [
            {"model": "m1", "response": "Ho", "overall_score": 7},
            {"model": "m2", "response": "Hm", "overall_score": 5},
        ],
    },
    "Nectar": {
        "prompt": "\n\nHuman: Hi\n\nAssistant: ",
        "answers": [
            {"answer": "Ho", "model": "m1", "rank": 1.0},
            {"answer": "Hm", "model": "m2", "rank": 2.0},
        ],
    },
    "AlpacaEval": {
        "instruction": "Hi",
        "generator_1": "m1",
        "output_1": "Ho",
        "generator_2": "m2",
        "output_2": "Hm",
        "annotator": "a model",
        "preference": 1.2,
    },
}


@pytest.mark.parametrize("form", MODELS_ANSWERS)
def test_answers_of_several_models_are_several_systems(form, tmp_path):
    turns = read_turns(file_with(tmp_path, "answers.jsonl", MODELS_ANSWERS[form]))
    assert replies(turns) == [["m1", ["Hi"], "Ho"], ["m2", ["Hi"], "Hm"]]
    assert not list(turns.filter(regex="^human_"))


def test_a_branch_of_claude_does_not_stand_in_the_context(tmp_path):
    messages = []
    told = [
        ("1", None, "human", "Hi"),
        ("2", "1", "assistant", "Ho"),
        ("3", "2", "human", "Tea?"),
        ("x", "3", "assistant", "Hm"),
        ("4", "3", "assistant", "No"),
    ]
    for number, (name, parent, sender, text) in enumerate(told):
        time = f"2025-03-01T10:0{number}:00Z"
        fields = {"uuid": name, "parent_message_uuid": parent, "created_at": time}
        messages.append({**fields, "sender": sender, "text": text})
    turns = read_turns(
        file_with(tmp_path, "chat.json", {"uuid": "c", "chat_messages": messages})
    )
    contexts = dict(zip(turns["response"], turns["context"], strict=True))
    assert contexts["No"] == ["Hi", "Ho", "Tea?"] == contexts["Hm"]


def requests(**ratings):
    """Two requests of one chat, of which the second repeats the first; these rate the first."""
    answer = message("assistant", "Ho")
    again = [ASKED, answer, message("user", "Tea?")]
    rows = []
    for asked, reply in (([ASKED], answer), (again, message("assistant", "No"))):
        body = {"model": "m", "messages": asked}
        rows.append(
            {"request_body": body, "response_body": {"choices": [{"message": reply}]}}
        )
    rows[0] |= ratings
    return rows


def test_a_rating_of_an_earlier_request_stays_with_its_reply(tmp_path):
    file = file_with(tmp_path, "log.jsonl", *requests(feedback_rating=True))
    turns = read_turns(file).set_index("response")
    assert len(turns) == 2
    assert turns.loc["Ho", "human_feedback_rating"] == 1
    assert pd.isna(turns.loc["No", "human_feedback_rating"])


@pytest.mark.parametrize(("cell", "rating"), [("5", 5), ("4/5", 4), ("up", 1)])
def test_feedback_in_numbers_is_no_comment(cell, rating, tmp_path):
    file = tmp_path / "traces.csv"
    file.write_text(
        "id,timestamp,sessionId,input,output,scores.user-feedback\n"
        f"1,2025-03-01T10:00:00Z,s,Hi,Ho,{cell}\n"
        "2,2025-03-01T10:01:00Z,s,Tea?,No,too long\n"
    )
    turns = read_turns(file).set_index("response")
    assert turns.loc["Ho", "human_user_feedback"] == rating
    assert pd.isna(turns.loc["No", "human_user_feedback"])


def test_feedback_on_a_trace_of_langsmith_is_on_its_last_reply(tmp_path):
    run = {"trace_id": "t", "start_time": "2025-03-01T10:00:00", "extra": {}}
    chain = {**run, "id": "t", "run_type": "chain", "parent_run_id": None}
    chain |= {"inputs": {"input": "Hi"}, "outputs": {"output": "Ho"}}
    chain["feedback_stats"] = {"user_score": {"n": 1, "avg": 1.0}}
    call = {**run, "id": "c", "run_type": "llm", "parent_run_id": "t"}
    call |= {"inputs": {"messages": [ASKED]}, "feedback_stats": None}
    call["outputs"] = {"choices": [{"message": message("assistant", "Ho")}]}
    turns = read_turns(file_with(tmp_path, "runs.jsonl", chain, call))
    assert turns[["response", "human_user_score"]].values.tolist() == [["Ho", 1.0]]


def test_people_rate_in_mlflow_and_judges_do_not(tmp_path):
    inputs = json.dumps({"messages": [ASKED]})
    outputs = json.dumps({"choices": [{"message": message("assistant", "Ho")}]})
    span = {"attributes": {"mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}}
    assessments = []
    for name, kind, value in (("fun", "HUMAN", 4), ("safety", "LLM_JUDGE", 1)):
        source = {"source_type": kind, "source_id": "kim"}
        feedback = {"assessment_name": name, "source": source}
        assessments.append({**feedback, "feedback": {"value": value}})
    trace = {"info": {"trace_id": "t", "assessments": assessments}}
    turns = read_turns(
        file_with(tmp_path, "t.jsonl", {**trace, "data": {"spans": [span]}})
    )
    assert turns["human_fun"].tolist() == [4] and "human_safety" not in turns
    assert turns.attrs["ratings"]["rater"] == ["kim"]


def test_thumbs_of_chatgpt_stand_in_a_file_beside_the_dialogs(tmp_path):
    nodes = {}
    parent = None
    for name, role, text in (("a", "user", "Hi"), ("b", "assistant", "Ho")):
        content = {"content_type": "text", "parts": [text]}
        node = {"author": {"role": role}, "content": content}
        nodes[name] = {"id": name, "message": node, "parent": parent}
        parent = name
    dialog = {"mapping": nodes, "current_node": "b", "conversation_id": "c"}
    (tmp_path / "conversations.json").write_text(json.dumps([dialog]))
    thumb = {"id": "b", "conversation_id": "c", "rating": "thumbs_down"}
    (tmp_path / "message_feedback.json").write_text(json.dumps([thumb]))
    assert read_turns(tmp_path)["human_feedback"].tolist() == [0]


def test_labels_of_faults_in_openassistant_are_no_ratings(tmp_path):
    rows = []
    for name, parent, role in (("a", None, "prompter"), ("b", "a", "assistant")):
        ids = {"message_id": name, "parent_id": parent, "message_tree_id": "a"}
        labels = {"name": ["spam", "quality"], "value": [0.9, 0.5], "count": [3, 3]}
        rows.append({**ids, "role": role, "text": name, "labels": labels})
    turns = read_turns(file_with(tmp_path, "oasst.jsonl", *rows))
    assert list(turns.filter(regex="^human_")) == ["human_quality"]


def test_two_choices_of_a_request_are_two_dialogs(tmp_path):
    choices = []
    for number, text in enumerate(("Ho", "Hm")):
        choices.append({"index": number, "message": message("assistant", text)})
    row = {
        "request": {"model": "m", "messages": [ASKED]},
        "response": {"choices": choices},
    }
    turns = read_turns(file_with(tmp_path, "log.jsonl", row))
    assert replies(turns) == [["m", ["Hi"], "Hm"], ["m", ["Hi"], "Ho"]]


def test_the_bot_of_a_trace_has_one_name(tmp_path):
    rows = []
    told = [("human", "Hi"), ("ai", "Ho"), ("human", "Tea?")]
    for length, reply in ((1, "Ho"), (3, "No")):
        messages = [{"type": kind, "content": text} for kind, text in told[:length]]
        run = {"run_type": "llm", "start_time": f"2025-03-01T10:0{length}:00"}
        run["extra"] = {"metadata": {"thread_id": "t"}}
        run |= {
            "inputs": {"messages": messages},
            "outputs": {"generations": [{"text": reply}]},
        }
        rows.append(run)
    turns = read_turns(file_with(tmp_path, "runs.jsonl", *rows))
    assert turns["response"].tolist() == ["Ho", "No"] and turns["system"].nunique() == 1


def test_the_models_of_a_pair_are_its_systems(tmp_path):
    pair = {"prompt": "Hi", "chosen": "Ho", "rejected": "Hm"}
    pair |= {"chosen_model": "m1", "rejected_model": "m2"}
    turns = read_turns(file_with(tmp_path, "pairs.jsonl", pair))
    assert turns["system"].tolist() == ["m1", "m2"]


def test_the_rating_of_open_webui_feedback_is_of_its_message(tmp_path):
    nodes = {"a": {"id": "a", "parentId": None, **ASKED}}
    nodes["b"] = {"id": "b", "parentId": "a", **message("assistant", "Ho")}
    chat = {"id": "c", "chat": {"history": {"messages": nodes, "currentId": "b"}}}
    row = {
        "data": {"rating": -1},
        "meta": {"message_id": "b"},
        "snapshot": {"chat": chat},
    }
    turns = read_turns(file_with(tmp_path, "feedback.jsonl", row))
    assert turns[["response", "human_rating"]].values.tolist() == [["Ho", -1.0]]


PAIRS = {
    "SafeRLHF": {
        "prompt": "Hi",
        "response_0": "Ho",
        "response_1": "Hm",
        "better_response_id": 1,
    },
    "LLaMA-Factory": {
        "conversations": [{"from": "human", "value": "Hi"}],
        "chosen": {"from": "gpt", "value": "Hm"},
        "rejected": {"from": "gpt", "value": "Ho"},
    },
    "Orca": {"system": "Be kind.", "question": "Hi", "chosen": "Hm", "rejected": "Ho"},
}


@pytest.mark.parametrize("form", PAIRS)
def test_pairs_below_other_names_have_a_context_and_a_preference(form, tmp_path):
    turns = read_turns(file_with(tmp_path, "pairs.jsonl", PAIRS[form]))
    assert turns["context"].tolist() == [["Hi"], ["Hi"]]
    preferred = turns.set_index("response")["human_preference"].to_dict()
    assert preferred == {"Ho": 0, "Hm": 1} and turns["system"].nunique() == 2


def test_pairs_of_comments_by_people_are_no_replies_of_bots(tmp_path):
    pair = {"history": "Hi", "human_ref_A": "Ho", "human_ref_B": "Hm", "labels": 0}
    with pytest.raises(DataError, match="two comments of people"):
        read_turns(file_with(tmp_path, "shp.jsonl", pair))


def test_pairs_without_what_was_said_before_are_refused(tmp_path):
    file = file_with(
        tmp_path, "pairs.jsonl", {"x": "Hi", "chosen": "Ho", "rejected": "Hm"}
    )
    with pytest.raises(DataError, match="nothing that was said before"):
        read_turns(file)


def test_a_branch_among_the_children_of_messages_stands_in_no_context(tmp_path):
    told = [
        ("1", "user", "Hi", ["x", "2"], []),
        ("2", "assistant", "Ho", ["3"], ["1"]),
        ("x", "assistant", "Hm", [], ["1"]),
        ("3", "user", "Tea?", ["4"], ["1", "2"]),
        ("4", "assistant", "No", [], ["1", "2", "3"]),
    ]
    for listed in ("children", "ancestors"):
        messages = []
        for name, role, text, children, ancestors in told:
            ids = children if listed == "children" else ancestors
            messages.append({"id": name, "from": role, "content": text, listed: ids})
        turns = read_turns(file_with(tmp_path, "chat.json", {"messages": messages}))
        contexts = dict(zip(turns["response"], turns["context"], strict=True))
        assert contexts == {"Ho": ["Hi"], "Hm": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}


def test_roles_that_contradict_the_names_are_asked_about(tmp_path):
    rows = [
        {"role": "assistant", "name": "user_proxy", "content": "Hi"},
        {"role": "user", "name": "helper_bot", "content": "Ho"},
    ]
    file = file_with(tmp_path, "history.jsonl", *rows)
    with pytest.raises(DataError, match='COLUMNS="speaker=name" or "speaker=role"'):
        read_turns(file)
    assert read_turns(file, {"speaker": "role"})["response"].tolist() == ["Hi"]
    turns = read_turns(file, {"speaker": "name"})
    assert turns[["context", "response"]].values.tolist() == [[["Hi"], "Ho"]]


def test_prompts_in_a_column_called_system_are_no_systems(tmp_path):
    rows = []
    for asked, reply, prompt in (
        ("Hi", "Ho", "You are a kind helper."),
        ("Tea?", "No", None),
    ):
        row = {"session_id": "s", "question": asked, "answer": reply, "model": "m"}
        rows.append(row | {"system": prompt})
    turns = read_turns(file_with(tmp_path, "log.jsonl", *rows))
    assert replies(turns) == [["m", ["Hi"], "Ho"], ["m", ["Hi", "Ho", "Tea?"], "No"]]


def test_replies_that_are_all_empty_are_refused(tmp_path):
    messages = [ASKED, {"role": "assistant", "content": "", "answer_text": "Ho"}]
    file = file_with(tmp_path, "log.jsonl", {"messages": messages})
    with pytest.raises(DataError, match="holds no words of the bot"):
        read_turns(file)


def test_a_vote_on_a_dialog_of_fastchat_is_a_rating(tmp_path):
    state = {"roles": ["USER", "ASSISTANT"], "conv_id": "c"}
    state["messages"] = [["USER", "Hi"], ["ASSISTANT", "Ho"]]
    rows = [
        {"type": kind, "model": "m", "state": state} for kind in ("chat", "downvote")
    ]
    turns = read_turns(file_with(tmp_path, "log.jsonl", *rows))
    assert turns[["response", "human_feedback"]].values.tolist() == [["Ho", 0.0]]


def test_exchanges_of_gemini_without_chats_are_asked_about(tmp_path):
    rows = []
    for hour, asked, reply in ((10, "Hi", "Ho"), (12, "Tea?", "No")):
        row = {"title": f"Prompted {asked}", "time": f"2025-03-01T{hour}:00:00Z"}
        rows.append(row | {"safeHtmlItem": [{"html": f"<p>{reply}</p>"}]})
    file = file_with(tmp_path, "activity.json", rows)
    with pytest.raises(DataError, match="SPLIT=gap:30m"):
        read_turns(file)
    turns = read_turns(file, options={"split": "gap:30m"})
    assert turns[["context", "response"]].values.tolist() == [
        [["Hi"], "Ho"],
        [["Tea?"], "No"],
    ]


def test_a_reply_in_json_is_a_reply(tmp_path):
    fruit = '[{"type": "fruit", "name": "pear"}]'
    rows = []
    for sender, text in (("human", "Hi"), ("assistant", fruit)):
        rows.append({"uuid": sender, "sender": sender, "text": text})
    turns = read_turns(
        file_with(tmp_path, "c.json", {"uuid": "c", "chat_messages": rows})
    )
    assert turns["response"].tolist() == [fruit]


def test_a_status_beside_the_messages_is_no_reply(tmp_path):
    row = {"messages": [ASKED], "response": "Ho", "message": "success"}
    turns = read_turns(file_with(tmp_path, "log.jsonl", row))
    assert turns["response"].tolist() == ["Ho"]
