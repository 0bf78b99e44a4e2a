"""Logs of evaluations: what a model replied to the tasks of a test."""

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import pandas as pd

from lib.data.dialogs import Dialog, Rating, Utterance
from lib.data.file_contents import UnknownFormat
from lib.data.log_messages import read_plain, reply_text
from lib.data.log_parts import (
    as_script,
    assistant,
    dicts,
    first_text,
    from_json,
    text_at,
    user,
    value_at,
    values_at,
    words_of,
)
from lib.data.log_traces import trace_messages

PROMPTFOO_COLUMN = re.compile(r"\[(?P<provider>[^]]{1,200})\] (?P<prompt>.+)", re.S)
PROMPTFOO_FILE = re.compile(r"\A[\w./-]{1,200}\.[a-z]{2,5}(:\d{1,5})?: ")  # of a prompt


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
    of_task = [
        (item.get("role"), words_of(item)) for item in dicts(sample.get("input"))
    ]
    with_sources = any("source" in message for message in sample["messages"])
    for message in sample["messages"]:
        text = words_of(message)
        utterance = Utterance(message["role"], message["role"], text)
        is_given = message.get("source") == "input"
        if not with_sources:  # as older versions wrote it
            is_given = (message["role"], text) in of_task
        if is_given:  # written by the task, not by the model
            utterance = as_script([utterance])[0]
        utterances.append(utterance)
    if model == "none/none":  # where the task calls models itself
        model = text_at(sample, "messages[source=generate].model|output.model")
    return Dialog(name, utterances, model)


def read_openai_evals(rows: list[dict], source) -> list[Dialog]:
    """OpenAI evals: of each sample only the last reply was sampled; the rest is context."""
    specs = [row.get("spec", row) for row in rows]
    spec = next((spec for spec in specs if "completion_fns" in spec), {})
    model = first_text({"m": (spec.get("completion_fns") or [None])[0]}, ["m"])
    dialogs = []
    asked: dict[str, str] = {}  # what the model was asked in each sample
    answered: dict[str, list] = {}  # and the messages up to its last answer
    for row in rows:
        if row.get("type") != "sampling":
            continue
        data = row["data"]
        prompt = data["prompt"]
        name = str(row.get("sample_id") or "")
        goes_on = name in answered and prompt[: len(answered[name])] == answered[name]
        if asked.setdefault(name, str(prompt)) != str(prompt) and not goes_on:
            source.exclude("dialogs", "are calls of a judge")
            continue
        utterances = [user(prompt)] if isinstance(prompt, str) else read_plain(prompt)
        sampled = data["sampled"]
        reply = sampled if isinstance(sampled, str) else reply_text(sampled[:1])
        if isinstance(prompt, list):
            answered[name] = [*prompt, {"role": "assistant", "content": reply}]
        dialogs.append(Dialog(name, [*as_script(utterances), assistant(reply)], model))
    return dialogs


def read_promptfoo(record: dict, source) -> list[Dialog]:
    """promptfoo: a row per provider and test; only thumbs given in its page are people's."""
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
        answer = assistant(reply)
        for result in values_at(row, "gradingResult.componentResults[]"):
            if value_at(result, "assertion.type") == "human":
                answer.ratings.append(Rating(None, "feedback", result.get("score")))
        dialogs.append(Dialog(name, [*as_script(utterances), answer], model))
    return dialogs


def read_promptfoo_rows(rows: list[dict], source) -> list[Dialog]:
    """promptfoo's results, one a row."""
    return read_promptfoo({"results": rows}, source)


def read_promptfoo_table(record: dict, source) -> list[Dialog]:
    """promptfoo's table: a row per test, with an output for each prompt and provider."""
    prompts = dicts(record["head"].get("prompts"))
    rows = []
    for number, row in enumerate(dicts(record["body"])):
        for output, head in zip(dicts(row.get("outputs")), prompts, strict=False):
            provider = output.get("provider") or head.get("provider")
            asked = {"raw": output.get("prompt") or head.get("raw")}
            about = {"testIdx": number, "provider": provider, "prompt": asked}
            failed = output.get("error") and output["error"] == output.get("text")
            answer = {"output": None if failed else output.get("text")}
            rows.append({**output, **about, "response": answer})
    return read_promptfoo({"results": rows}, source)


def read_promptfoo_columns(rows: list[dict], source) -> list[Dialog]:
    """promptfoo's table as CSV: a column for each prompt and provider, named after both.

    Raises:
        UnknownFormat: where the columns have names of prompts, and not their words.
    """
    names = list(rows[0])
    variables = names[: names.index("Status") - 1]
    outputs = []  # the column of each output, what its name says, and the column of its status
    for name, status in zip_longest(names, names[1:]):
        match = PROMPTFOO_COLUMN.fullmatch(name)
        if match and name not in variables:
            outputs.append((name, match, status))
    dialogs = []
    for number, row in enumerate(rows):
        filled = {name: row[name] for name in variables}
        for name, match, status in outputs:
            asked = as_script(trace_messages(filled_prompt(match["prompt"], filled)))
            reply = assistant(None if row.get(status) == "ERROR" else row[name])
            dialogs.append(Dialog(f"{number}", [*asked, reply], match["provider"]))
    return dialogs


def with_numbered_status(table: pd.DataFrame) -> pd.DataFrame:
    """A table of promptfoo with names of their own for the columns that each prompt has."""
    if "Grader Reason" not in table or table.columns.is_unique:
        return table
    names: list[str] = []
    for name in table.columns:
        n_before = sum(re.sub(r" #\d+\Z", "", other) == name for other in names)
        names.append(f"{name} #{n_before + 1}" if n_before else name)
    return table.set_axis(names, axis="columns")


def filled_prompt(label: str, variables: Mapping[str, str]) -> str:
    """The words of a prompt of promptfoo, with its variables.

    Raises:
        UnknownFormat: where a label has no place for variables, as it may be a name.
    """
    prompt = PROMPTFOO_FILE.sub("", label)
    names = [n for n in variables if n != "Description" and not n.startswith("__")]
    if names and "{{" not in prompt:
        raise UnknownFormat(
            f"is a table of promptfoo, and {label[:40]!r} may be the name of a prompt",
            fix="export the results as JSON, which has the prompts as they were sent",
        )
    for name, value in variables.items():
        mark = re.compile(r"\{\{ {0,3}" + re.escape(name) + r" {0,3}\}\}")
        prompt = mark.sub(lambda _, value=value: str(value), prompt)
    return prompt


def read_deepeval_run(record: dict, source) -> list[Dialog]:
    """DeepEval's test run: an input and an output per case, or turns; its scores are a judge's."""
    dialogs = []
    model = text_at(record, "hyperparameters.model")
    for case in dicts(record.get("testCases")):
        utterances = deepeval_exchange(case)
        dialogs.append(Dialog(str(case.get("name") or ""), utterances, model))
    for case in dicts(record.get("conversationalTestCases")):
        utterances = []
        turns = dicts(case["turns"])
        if all("actualOutput" in turn for turn in turns):  # as older versions wrote it
            for turn in turns:
                utterances += deepeval_exchange(turn)
        else:
            utterances = read_plain(turns)
        dialogs.append(Dialog(str(case.get("name") or ""), utterances, model))
    return dialogs


def deepeval_exchange(case: dict) -> list[Utterance]:
    """What was asked and answered in a case of DeepEval."""
    return exchange(case["input"], case.get("actualOutput"), case.get("expectedOutput"))


def exchange(question: str, answer: str | None, reference: Any) -> list[Utterance]:
    """What was asked and answered, with the answer that was expected, if any."""
    reply = assistant(answer)
    if reference:
        reply.references = [str(reference)]
    return [user(question), reply]


def read_deepeval_case(record: dict, source) -> list[Dialog]:
    """DeepEval's test cases: what was asked and what was answered."""
    answer, expected = record["actual_output"], record.get("expected_output")
    return [Dialog("", exchange(record["input"], answer, expected))]


def read_ragas(record: dict, source) -> list[Dialog]:
    """Ragas: what was asked and answered; its metrics are a judge's."""
    question, answer = record["user_input"], record["response"]
    return [Dialog("", exchange(question, answer, record.get("reference")))]


def read_lm_eval(rows: list[dict], source) -> list[Dialog]:
    """Samples of lm-evaluation-harness, each once where several filters looked at it."""
    samples = [row for row in rows if "resps" in row]
    source.exclude("dialogs", "are in another shape", len(rows) - len(samples))
    first_filter = samples[0].get("filter")
    of_first = [row for row in samples if row.get("filter") == first_filter]
    reason = "are the same replies, to which another filter was applied"
    source.exclude("dialogs", reason, len(samples) - len(of_first))
    return [lm_eval_dialog(row) for row in of_first]


def lm_eval_dialog(record: dict) -> Dialog:
    """A sample that a model wrote; choices between answers are none."""
    arguments = record["arguments"]
    request = next(
        iter(arguments.values() if isinstance(arguments, dict) else arguments)
    )
    prompt = next(iter(request.values() if isinstance(request, dict) else request))
    reply = record["resps"][0][0]
    if not isinstance(reply, str):
        raise ValueError("its replies are probabilities of answers")
    utterances = as_script(trace_messages(prompt))
    if not utterances:
        raise ValueError("its prompts are in no known form")
    return Dialog(str(record["doc_id"]), [*utterances, assistant(reply)])


def read_helm(record: dict, source) -> list[Dialog]:
    """HELM's scenario_state.json: what a model replied to each instance of a scenario.

    A prompt may hold examples before it; what is asked stands in the instance.
    """
    dialogs = []
    for state in record["request_states"]:
        messages = value_at(state, "request.messages")
        asked = value_at(state, "instance.input.text")
        utterances = as_script(trace_messages(messages or asked))
        for completion in values_at(state, "result.completions[]"):
            dialogs.append(
                Dialog(
                    id=str(value_at(state, "instance.id") or ""),
                    utterances=[*utterances, assistant(completion.get("text"))],
                    system=value_at(state, "request.model"),
                )
            )
    return dialogs
