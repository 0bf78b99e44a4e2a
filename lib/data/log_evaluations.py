"""Logs of evaluations: what a model replied to the tasks of a test."""

from lib.data.dialogs import Dialog, Rating, Utterance
from lib.data.log_messages import read_plain, reply_text
from lib.data.log_parts import (
    as_script,
    assistant,
    dicts,
    first_text,
    from_json,
    user,
    value_at,
    values_at,
    words_of,
)
from lib.data.log_traces import trace_messages


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
    for message in sample["messages"]:
        text = words_of(message)
        utterance = Utterance(message["role"], message["role"], text)
        if message.get("source") == "input":  # written by the task, not by the model
            utterance = as_script([utterance])[0]
        utterances.append(utterance)
    return Dialog(name, utterances, model)


def read_openai_evals(rows: list[dict], source) -> list[Dialog]:
    """OpenAI evals: of each sample only the last reply was sampled; the rest is context."""
    spec = next((row["spec"] for row in rows if "spec" in row), {})
    model = first_text({"m": (spec.get("completion_fns") or [None])[0]}, ["m"])
    dialogs = []
    asked: dict[str, str] = {}  # what the model was asked in each sample
    for row in rows:
        if row.get("type") != "sampling":
            continue
        data = row["data"]
        prompt = data["prompt"]
        if asked.setdefault(str(row.get("sample_id")), str(prompt)) != str(prompt):
            source.exclude("dialogs", "are calls of a judge")
            continue
        utterances = [user(prompt)] if isinstance(prompt, str) else read_plain(prompt)
        sampled = data["sampled"]
        reply = sampled if isinstance(sampled, str) else reply_text(sampled[:1])
        name = str(row.get("sample_id") or "")
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


def read_deepeval_run(record: dict, source) -> list[Dialog]:
    """DeepEval's test run: an input and an output per case, or turns; its scores are a judge's."""
    dialogs = []
    for case in dicts(record.get("testCases")):
        reply = assistant(case.get("actualOutput"))
        if case.get("expectedOutput"):
            reply.references = [case["expectedOutput"]]
        dialogs.append(
            Dialog(str(case.get("name") or ""), [user(case["input"]), reply])
        )
    for case in dicts(record.get("conversationalTestCases")):
        dialogs.append(Dialog(str(case.get("name") or ""), read_plain(case["turns"])))
    return dialogs


def read_deepeval_case(record: dict, source) -> list[Dialog]:
    """DeepEval's test cases: what was asked and what was answered."""
    reply = assistant(record["actual_output"])
    if record.get("expected_output"):
        reply.references = [str(record["expected_output"])]
    return [Dialog("", [user(record["input"]), reply])]


def read_ragas(record: dict, source) -> list[Dialog]:
    """Ragas: what was asked and answered; its metrics are a judge's."""
    reply = assistant(record["response"])
    if record.get("reference"):
        reply.references = [str(record["reference"])]
    return [Dialog("", [user(record["user_input"]), reply])]


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
