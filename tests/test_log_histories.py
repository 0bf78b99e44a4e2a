"""Logs of requests that repeat the history: each reply once, with the talk before it."""

import json
import random
from collections import Counter
from datetime import datetime, timedelta
from itertools import count

import pytest

from lib.data import read_turns

START = datetime(2025, 3, 5, 10)
USER = ["Hi", "And then?", "No", "Thanks", "Tell me more"]
SPANS = count()
BOT = ["Hello.", "I see.", "Sure.", "You are welcome."]


class Log:
    """Requests of several sessions, drawn by a seed, and the replies that users saw."""

    def __init__(self, seed, *, same_texts, regenerated=0.0, edited=0.0):
        self.random = random.Random(seed)
        self.same_texts = same_texts
        self.numbers = count()
        self.replies = Counter()
        self.requests = []  # time, session, history, output
        for session in range(self.random.randint(2, 9)):
            self.add_session(session, regenerated, edited)
        self.requests.sort(key=lambda request: request[0])

    def text(self, words):
        """A text of a speaker, which another one may have, too, or not."""
        text = self.random.choice(words)
        return text if self.same_texts else f"{text} ({next(self.numbers)})"

    def is_drawn(self, share):
        """Whether something comes to pass that does so this often."""
        return self.random.random() < share

    def add_session(self, session, regenerated, edited):
        """Draw a session: failed requests, calls of tools, replies and what was asked again."""
        time = START + timedelta(seconds=self.random.randint(0, 900))
        history = []

        def add(output):
            nonlocal time
            time += timedelta(seconds=self.random.randint(1, 9))
            self.requests.append((time, session, list(history), output))
            if output and output["content"]:
                talk = tuple(
                    m["content"]
                    for m in history
                    if m["content"] and m["role"] != "tool"
                )
                self.replies[talk, output["content"]] += 1
            return output

        def answer():
            return {"role": "assistant", "content": self.text(BOT)}

        fewest = (
            1 if session else 2
        )  # one session at least shows that it repeats the history
        for _ in range(self.random.randint(fewest, 4)):
            history.append({"role": "user", "content": self.text(USER)})
            if self.is_drawn(edited):
                add(answer())
                history[-1] = {"role": "user", "content": self.text(USER) + " (edited)"}
            if self.is_drawn(0.15):
                add(None)
            if self.is_drawn(0.3):
                history.append(
                    add(call(self.text(BOT) if self.is_drawn(0.4) else None))
                )
                history.append({"role": "tool", "tool_call_id": "c", "content": "42"})
            reply = add(answer())
            if self.is_drawn(regenerated):
                again = answer()
                if again != reply:
                    reply = self.random.choice([reply, add(again)])
            history.append(reply)


def call(words):
    """A message of the model that calls a tool, perhaps with words."""
    function = {
        "id": "c",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
    }
    return {"role": "assistant", "content": words, "tool_calls": [function]}


def langfuse(time, session, history, output):
    """A trace of Langfuse."""
    row = {"name": "chat", "timestamp": time.isoformat() + "Z", "input": history}
    return {**row, "output": output, "sessionId": session}


def completion(time, session, history, output):
    """A request to OpenAI with its response."""
    response = {
        "object": "chat.completion",
        "model": "m",
        "choices": [{"message": output}],
    }
    row = {
        "timestamp": time.isoformat() + "Z",
        "request": {"model": "m", "messages": history},
    }
    return {**row, "response": response if output else None, "session_id": session}


def span(time, session, history, output):
    """A span of OpenTelemetry."""
    texts = {"gen_ai.operation.name": "chat"}
    texts["gen_ai.input.messages"] = json.dumps(
        [in_parts(message) for message in history]
    )
    if output:
        texts["gen_ai.output.messages"] = json.dumps([in_parts(output)])
    if session:
        texts["gen_ai.conversation.id"] = session
    attributes = [
        {"key": key, "value": {"stringValue": text}} for key, text in texts.items()
    ]
    ended = str(int(time.timestamp() * 1e9))
    name = f"{next(SPANS):032x}"
    one = {"name": "chat", "spanId": name, "traceId": name, "endTimeUnixNano": ended}
    spans = [{**one, "startTimeUnixNano": ended, "attributes": attributes}]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def in_parts(message):
    """A message as OpenTelemetry has it."""
    kind = "tool_call_response" if message["role"] == "tool" else "text"
    parts = (
        [{"type": kind, "content": message["content"]}] if message["content"] else []
    )
    parts += [{"type": "tool_call", "name": "look"}] * len(
        message.get("tool_calls", ())
    )
    return {"role": message["role"], "parts": parts}


FORMS = pytest.mark.parametrize("form", [langfuse, completion, span])
TEXTS = pytest.mark.parametrize(
    "same_texts", [False, True], ids=["own_texts", "same_texts"]
)


def read(folder, log, form, session_of):
    """The replies that are read from a log, each with its context."""
    rows = []
    for time, session, history, output in log.requests:
        rows.append(json.dumps(form(time, session_of(session), history, output)))
    file = folder / "log.jsonl"
    file.write_text("\n".join(rows), encoding="utf-8")
    turns = read_turns(file)
    contexts = map(tuple, turns["context"])
    return Counter(zip(contexts, turns["response"], strict=True))


@FORMS
@TEXTS
def test_each_reply_of_a_session_is_read_once(form, same_texts, tmp_path):
    for seed in range(12):
        log = Log(seed, same_texts=same_texts, regenerated=0.2, edited=0.1)
        assert read(tmp_path, log, form, "s{}".format) == log.replies, f"seed {seed}"


@FORMS
@TEXTS
def test_each_reply_is_read_once_where_no_session_is_named(form, same_texts, tmp_path):
    for seed in range(12):
        log = Log(seed, same_texts=same_texts)
        assert read(tmp_path, log, form, lambda _: None) == log.replies, f"seed {seed}"


@FORMS
def test_a_request_without_a_session_goes_to_the_one_that_it_fits(form, tmp_path):
    for seed in range(20):
        log = Log(seed, same_texts=False)

        def some(session, log=log):
            return f"s{session}" if log.is_drawn(0.7) else None

        assert read(tmp_path, log, form, some) == log.replies, f"seed {seed}"


def test_requests_of_the_last_messages_only_go_on_from_the_one_before(tmp_path):
    talk = []
    for number in range(1, 7):
        talk += [("user", f"What is {number}?"), ("assistant", f"It is {number}.")]
    rows = []
    for end in range(2, len(talk) + 1, 2):
        seen = [
            {"role": role, "content": text}
            for role, text in talk[max(0, end - 6) : end]
        ]
        row = langfuse(START + timedelta(minutes=end), "s", seen[:-1], seen[-1])
        rows.append(json.dumps(row))
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(rows), encoding="utf-8")
    turns = read_turns(file)
    texts = [text for _, text in talk]
    assert turns["response"].tolist() == texts[1::2]
    assert turns["context"].tolist() == [texts[:end] for end in range(1, 12, 2)]


def test_the_rating_of_a_step_with_a_tool_is_of_the_reply_after_it(tmp_path):
    question = {"role": "user", "content": "Tea?"}
    step = langfuse(START, "s", [question], call(None))
    step["scores"] = [{"name": "thumb", "value": 1, "source": "ANNOTATION"}]
    history = [
        question,
        call(None),
        {"role": "tool", "tool_call_id": "c", "content": "4"},
    ]
    reply = {"role": "assistant", "content": "At four."}
    rows = [step, langfuse(START + timedelta(seconds=2), "s", history, reply)]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    turns = read_turns(file)
    assert turns["response"].tolist() == ["At four."]
    assert turns["human_thumb"].tolist() == [1]


def rows_of(tmp_path, *rows):
    """A table of the replies in rows of Langfuse."""
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return read_turns(file)


def said(*texts):
    """Messages of the user and the bot in turn."""
    sides = ["user", "assistant"]
    return [{"role": sides[n % 2], "content": text} for n, text in enumerate(texts)]


def trace(second, *texts, session="s", **fields):
    """A trace whose last text is what came out."""
    *history, output = said(*texts)
    return {
        **langfuse(START + timedelta(seconds=second), session, history, output),
        **fields,
    }


def test_a_regenerated_reply_after_a_switch_of_the_model(tmp_path):
    turns = rows_of(
        tmp_path,
        trace(1, "Hi", "Hello", model="a"),
        trace(2, "Hi", "Hello", "Tea?", "No", model="b"),
        trace(3, "Hi", "Hello", "Tea?", "Yes", model="b"),
    )
    systems = dict(zip(turns["response"], turns["system"], strict=True))
    assert systems == {"Hello": "a", "No": "b", "Yes": "b"}
    assert len(turns) == 3


def test_two_answers_to_one_question_in_one_trace_do_not_follow_each_other(tmp_path):
    about = {"type": "GENERATION", "sessionId": None}
    turns = rows_of(
        tmp_path,
        trace(1, "Tea?", "No", traceId="1", **about),
        trace(2, "Tea?", "Yes", traceId="1", **about),
        trace(3, "Tea?", "Yes", "When?", "Now", traceId="2", **about),
    )
    contexts = Counter(
        zip(map(tuple, turns["context"]), turns["response"], strict=True)
    )
    assert contexts == {
        (("Tea?",), "No"): 1,
        (("Tea?",), "Yes"): 1,
        (("Tea?", "Yes", "When?"), "Now"): 1,
    }


def test_two_empty_replies_in_a_row_count_once_in_all_branches(tmp_path):
    history = [*said("Hi", ""), {"role": "assistant", "content": ""}, *said("Well?")]
    rows = []
    for second, text in enumerate(["No", "Yes"]):
        time = START + timedelta(seconds=second)
        rows.append(
            langfuse(time, "s", history, {"role": "assistant", "content": text})
        )
    turns = rows_of(tmp_path, *rows)
    assert sorted(turns["response"]) == ["", "", "No", "Yes"]


def test_the_name_of_a_session_may_be_any(tmp_path):
    turns = rows_of(
        tmp_path,
        trace(1, "Hi", "Ho", session="request 2"),
        trace(2, "Hi", "Ho", "Tea?", "No", session="request 2"),
        trace(3, "Hi", "Ho", session=None),
    )
    assert sorted(turns["response"]) == ["Ho", "Ho", "No"]


def test_scores_of_traces_without_any_id_are_of_their_replies(tmp_path):
    rows = []
    for end, value in ((2, 1), (4, 0), (6, 1)):
        row = trace(end, *["Hi", "Ho", "Tea?", "No", "Why?", "So"][:end], session=None)
        del row["sessionId"]
        row["scores"] = [{"name": "thumb", "value": value, "source": "ANNOTATION"}]
        rows.append(row)
    for order in (rows, rows[::-1], [rows[1], rows[2], rows[0]]):
        turns = rows_of(tmp_path, *order)
        thumbs = dict(zip(turns["response"], turns["human_thumb"], strict=True))
        assert thumbs == {"Ho": 1, "No": 0, "So": 1}


@pytest.mark.parametrize("first", ["Hi", "Tea?"])
def test_a_request_for_a_title_stands_between_windows(first, tmp_path):
    talk = [first, "a1", "b", "a2", "Hi", "a3", "d", "a4", "e", "a5"]
    rows = [trace(end, *talk[max(0, end - 4) : end]) for end in range(2, 11, 2)]
    rows.insert(2, trace(5, "Write a title", "Tea"))
    turns = rows_of(tmp_path, *rows)
    contexts = dict(zip(turns["response"], turns["context"], strict=True))
    expected = {talk[end]: talk[:end] for end in range(1, 10, 2)}
    assert contexts == expected | {"Tea": ["Write a title"]}
    assert len(turns) == 6


def test_requests_that_begin_later_for_a_while_are_joined(tmp_path):
    talk = ["Hi", "a1", "b", "a2", "c", "a3", "d", "a4", "e", "a5"]
    starts = {2: 0, 4: 0, 6: 2, 8: 2, 10: 6}
    turns = rows_of(
        tmp_path, *[trace(end, *talk[start:end]) for end, start in starts.items()]
    )
    contexts = dict(zip(turns["response"], turns["context"], strict=True))
    assert contexts == {talk[end]: talk[:end] for end in range(1, 10, 2)}
    assert len(turns) == 5
