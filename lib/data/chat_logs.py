"""Dialogs as people keep them: one small function per format.

A dialog is a mapping with `id`, `said` (its utterances, oldest first) and where known `form`,
`system`, `fact` and ratings; an utterance one with `speaker`, `role`, `text` and where known `id`,
`reply_to`, `reference`, `system` and ratings. What a format does not hold, its function skips.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.bot_replies import role
from lib.data.file_contents import Reading, Unknown, contents, listed

#: What people call our columns, normalised: lower case, words joined by "_".
SYNONYMS = {
    "response": "reply answer output bot_reply bot_response assistant model_response "
    "system_output bot_message generated text utterance",
    "context": "history prompt user user_message input question query previous source "
    "dialog_history conversation_history",
    "dialog": "conversation_id dialogue conversation chat session thread dialog_id dialogue_id "
    "chat_id session_id conv_id thread_id root",
    "system": "model bot chatbot system_name model_name bot_name",
    "agent": "agent_id bot_id instance",
    "turn": "turn_id turn_no turn_number position step",
    "reference": "gold ground_truth target expected references",
    "fact": "persona knowledge facts",
}
SPEAKER = ("role", "from", "speaker", "speaker_id", "sender", "author", "user_id", "agent", "name",
           "user", "id")  # fmt: skip
TEXT = ("content", "value", "utterance", "text", "message", "body")
ROLE = ("role", "speaker_role", "sender_class", "speaker_type", "type")
FORMS = {"role, content": "OpenAI chat messages", "from, value": "ShareGPT",
         "speaker, utterance": "MultiWOZ 2.2"}  # fmt: skip
EXAMPLES = {
    str: ["User: Hi\nBot: Hello", "1 your persona: i drink tea.\n2 Hi\tHello"],
    pd.DataFrame: ["system,dialog,context,response\nA,1,Hi,Ho", "dialog,speaker,text\n1,user,Hi"],
    object: [
        '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}',
        '{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}',
        '{"conversation_id": "d", "id": "2", "reply_to": "1", "speaker": "bot", "text": "Hello"}',
        '{"dialog": [[{"id": "human", "text": "Hi"}, {"id": "bot", "text": "Hello"}]]}',
    ],
}


def dialogs(
    value: Any, file: Path, reading: Reading, theirs: Mapping[str, str]
) -> list[dict] | None:
    """The dialogs in what a file holds; None for a table with one row per reply.

    `theirs` maps our names of columns, also `speaker` and `text`, to those of the file.

    Raises:
        Unknown: nothing of the kind, with an example of the nearest format.
    """
    asked = reading.given.get("kind")
    if isinstance(value, str):
        tries = {name: partial(read, value, reading) for name, read in TEXTS.items()}
    else:
        ours = {their: name for name, their in theirs.items()}
        start = value.head(1) if isinstance(value, pd.DataFrame) else value
        if asked in (None, "table") and any(map(_has_replies, [theirs, *records(start)[:1]])):
            return None
        rows = [{ours.get(name, name): row[name] for name in row} for row in records(value)]
        tries = {name: partial(_each, read, rows, reading) for name, read in RECORDS.items()}
        tries["utterances"] = partial(_utterances, rows, file)
    for name in tries if asked is None else tries.keys() & {asked}:
        if found := tries[name]():
            reading.guess("kind", name, found[0]["form"])
            folder = f"{reading.below(file)}/" if file != reading.path else ""
            for place, dialog in enumerate(found, start=1):
                dialog["id"] = f"{folder}{dialog['id'] or place}"
            return found
    if isinstance(value, pd.DataFrame) and asked in (None, "table"):
        return None  # whose columns may be mapped
    problem = f"is not of the kind {asked!r}" if asked else "is no chat log that we know"
    raise Unknown(problem, file, fix=f"write it like this:\n{example(value)}")


def example(value: Any) -> str:
    r"""The example of the format that shares most words with what a file holds.

    >>> example("Ann asks\nUser : hi\nBot : ho")
    'User: Hi\nBot: Hello'
    """
    start = value.head(3).to_csv() if isinstance(value, pd.DataFrame) else str(value)[:5000]
    known, words = EXAMPLES.get(type(value), EXAMPLES[object]), set(re.findall(r"\w+", start))
    return max(known, key=lambda one: len(words & set(re.findall(r"\w+", one))))


def plain(name: object) -> str:
    """A column's name in lower case, its words joined by "_".

    >>> plain("Conversation ID"), plain("dialogId")
    ('conversation_id', 'dialog_id')
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name))
    return "_".join(re.findall(r"[^\W_]+", name.lower()))


def records(value: Any) -> list[dict]:
    """One mapping per dialog or row, whatever holds them together; none where they are others."""
    if isinstance(value, pd.DataFrame):
        return value.loc[:, ~value.columns.duplicated()].to_dict("records")
    if isinstance(value, dict):
        inner = list(value.values())
        if _has_replies(value) or any(read(value) for read in RECORDS.values()):
            return [value]
        if all(isinstance(one, dict) for one in inner):  # MultiWOZ: by their names
            return [{"id": name} | one for name, one in value.items()]
        value = [row for one in inner if isinstance(one, list) for row in one]  # by their splits
    rows = [{"messages": one} if isinstance(one, list) else one for one in value]
    return rows if all(isinstance(one, dict) for one in rows) else []


def _has_replies(row: Mapping[str, Any]) -> bool:
    known = {"response", *SYNONYMS["response"].split()} - set(TEXT)
    return bool({plain(name) for name in row} & known)


def _each(read: Callable[[dict], dict | None], rows: list[dict], reading: Reading) -> list[dict]:
    if not any(read(row) for row in rows[:20]):
        return []
    found = [dialog for row in rows if (dialog := read(row))]
    reading.excluded["dialogs", "are in another shape"] += len(rows) - len(found)
    return found


def _first(fields: Mapping[str, Any], names: Sequence[str], kinds: Any = object) -> Any:
    """The first of these fields that is there and not empty."""
    values = (fields.get(name) for name in names)
    return next((one for one in values if isinstance(one, kinds) and one not in (None, "")), None)


def _dialog(fields: Mapping[str, Any], said: list[dict], form: str, fact: Any = None) -> dict:
    fields = {plain(name): cell for name, cell in fields.items()}
    fact = fact if isinstance(fact, list) else []
    marks = {f"dialog_{name[6:]}": mark for name, mark in _ratings(fields).items()}
    name = _first(fields, ("id", "dialog", *SYNONYMS["dialog"].split()), str | int)
    return {"id": name, "said": said, "form": form, "fact": fact, "marks": marks,
            "system": _first(fields, ("model", "model_name", "bot_name"), str)}  # fmt: skip


def _utterance(one: Mapping[str, Any], speaker: str, text: str) -> dict:
    fields = {**(one["meta"] if isinstance(one.get("meta"), dict) else {}), **one}
    name, said = str(one.get(speaker)), one.get(text)
    roles = (one for one in map(fields.get, ROLE) if isinstance(one, str) and role(one))
    prompt = speaker in ("role", "from") and name.lower() == "system"
    if isinstance(said, list):  # parts, of which some are text
        parts = [part.get("text") if isinstance(part, dict) else part for part in said]
        said = "\n".join(part for part in parts if isinstance(part, str)) or None
    return {"speaker": name, "role": "prompt" if prompt else next(roles, name),
            "text": said if isinstance(said, str) else None, "marks": _ratings(fields),
            "system": _first(fields, ("model", "model_name", "bot_name"), str)}  # fmt: skip


def _ratings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`human_<name>` for what is called a rating, score or human_<name>, also within `ratings`."""
    inner = fields.get("ratings")
    inner = (
        {f"human_{name}": mark for name, mark in inner.items()} if isinstance(inner, dict) else {}
    )
    marks = {name: mark for name, mark in {**fields, **inner}.items()
             if re.fullmatch(r"human_.+|(.+_)?rating|score", plain(name))}  # fmt: skip
    return {f"human_{plain(name).removeprefix('human_')}": mark for name, mark in marks.items()}


def _said(pairs: Sequence[tuple[str, str]]) -> list[dict]:
    return [_utterance({"speaker": name, "text": text}, "speaker", "text") for name, text in pairs]


def _messages(record: dict) -> dict | None:
    for cell in record.values():
        said = listed(cell) if isinstance(cell, str) and cell.startswith("[{") else cell
        if isinstance(said, list) and said and all(isinstance(one, dict) for one in said):
            keys = {plain(key): key for one in said for key in one}
            speaker, text = (_first(keys, names) for names in (SPEAKER, TEXT))
            if speaker and text:
                form = FORMS.get(f"{speaker}, {text}", f"messages ({speaker}, {text})")
                return _dialog(record, [_utterance(one, speaker, text) for one in said], form)
    return None


def _log(record: dict) -> dict | None:
    """MultiWOZ 2.1: what the system says comes with its state."""
    log = record.get("log")
    if not isinstance(log, list) or not all(isinstance(one, dict) for one in log):
        return None
    names = [("user", "system")[bool(one.get("metadata", k % 2))] for k, one in enumerate(log)]
    texts = [one.get("text") for one in log]
    return _dialog(record, _said(list(zip(names, texts, strict=True))), "MultiWOZ 2.1")


def _candidates(record: dict) -> dict | None:
    """Persona-Chat as JSON: the last candidate is what was said."""
    try:
        last = record["utterances"][-1]
        texts, fact = [*last["history"], last["candidates"][-1]], record.get("personality")
    except (LookupError, TypeError):
        return None
    names = [("bot", "user")[k % 2] for k in range(len(texts))][::-1]
    return _dialog(record, _said(list(zip(names, texts, strict=True))), "Persona-Chat", fact)


def _acts(record: dict) -> dict | None:
    """ParlAI's logs: exchanges of acts."""
    talk = record.get("dialog")
    if not isinstance(talk, list) or not talk or not all(isinstance(acts, list) for acts in talk):
        return None
    acts = [act for exchange in talk for act in exchange if isinstance(act, dict)]
    said, fact = [_utterance(act, "id", "text") for act in acts], []
    for one in said:
        persona, one["text"] = _persona(one["text"] or "")
        fact += persona
    return _dialog(record, [one for one in said if one["text"]], "ParlAI (JSON)", fact)


def _persona(text: str) -> tuple[list[str], str]:
    facts = re.findall(r"^your persona: *(.*)", text, flags=re.M)
    return facts, re.sub(r"^(your|partner's) persona:.*\n?", "", text, flags=re.M)


def _exchanges(rows: Sequence[tuple[bool, str, str]], form: str) -> list[dict]:
    """Dialogs of (is the first, what was said, answers parted by |): the answerer is the bot."""
    found: list[dict] = []
    for first, text, labels in rows:
        if first or not found:
            found.append(_dialog({}, [], form))
        persona, text = _persona(text)
        reply, *others = labels.split("|")
        found[-1]["fact"] += persona
        found[-1]["said"] += _said([("user", text)] * bool(text) + [("bot", reply)] * bool(reply))
        found[-1]["said"][-1:] = [one | {"reference": others} for one in found[-1]["said"][-1:]]
    return found


def _parlai(text: str, reading: Reading) -> list[dict]:
    """ParlAI's text format: fields parted by tabs, the last act of an episode marked."""
    rows, first = [], True
    for line in filter(None, text.split("\n")):
        if not line.startswith("text:"):
            return []
        line = line.replace("\\n", "\n")
        fields = dict(part.split(":", 1) for part in line.split("\t") if ":" in part)
        rows.append((first, fields["text"], fields.get("labels", fields.get("eval_labels", ""))))
        first = fields.get("episode_done") == "True"
    return _exchanges(rows, "ParlAI (text)")


def _numbered(text: str, reading: Reading) -> list[dict]:
    """Persona-Chat and ParlAI's older format: numbered lines, a new dialog at 1."""
    rows = [re.match(r"(\d+) ([^\t]*)(?:\t([^\t]*))?", line) for line in text.split("\n") if line]
    if "\t" not in text or not all(rows):
        return []
    rows = [(row[1] == "1", row[2], row[3] or "") for row in rows]
    return _exchanges(rows, "Persona-Chat (numbered lines)")


# A time, a name of at most 40 characters, a colon; matched in the start of a line only.
LINE = re.compile(
    r"(?:[\[(]?\d[\d:./, T-]*(?:[ap]\.?m\.?)?[\])]? ?[-–]? ?)?[*_>#]*"
    r"([^\W\d][^:\t\n]{0,39}?)[*_]* ?:[*_]*(?:\s|$)",
    re.I,
)
RULE = re.compile(
    r"\s*([-=*_~#]{3,}|#+ .*|(dialog(ue)?|conversation|chat|session)\W*\d+\W*)\s*$", re.I
)


def _transcript(text: str, reading: Reading) -> list[dict]:
    """Lines such as `Name: text`; further lines belong to the one above."""
    lines = [(line, LINE.match(line[:120])) for line in text.strip().split("\n")]
    counts = Counter(match[1] for _, match in lines if match)
    known = {name for name in counts if counts[name] > 1 or role(name)}
    known = known if len(known) > 1 else set(counts)
    named = [match and match[1] in known for _, match in lines]
    turns, filled = sum(map(bool, named)), sum(bool(line.strip()) for line, _ in lines)
    if len(known) < 2 or (turns < filled / 2 and not {"bot", "user"} & set(map(role, known))):
        return []
    ends = [("blank" if not line.strip() else "rules" if RULE.match(line[:120]) else "none")
            for line, _ in lines]  # fmt: skip
    inner, ahead = {"blank"} if 2 * ends.count("blank") >= turns else set(), True
    for end, speaks in zip(reversed(ends), reversed(named), strict=True):
        ahead = speaks if end == "none" else ahead
        inner |= set() if ahead else {end}  # it stands within what somebody says
    split = next((end for end in ("rules", "blank") if end in ends and end not in inner), "none")
    split = reading.guess("split", split, "what parts the dialogs: rules, blank (lines) or none")
    talk: list[list[tuple[str, str]]] = [[]]
    for (line, match), speaks, end in zip(lines, named, ends, strict=True):
        if end == split != "none":
            talk.append([])
        elif speaks:
            talk[-1].append((match[1], line[match.end() :]))
        elif talk[-1]:
            talk[-1][-1] = (talk[-1][-1][0], f"{talk[-1][-1][1]}\n{line}")
        elif line.strip():
            reading.excluded["utterances", "are lines before the first speaker"] += 1
    talk = [[(name, words.strip()) for name, words in said] for said in talk if said]
    return [_dialog({}, _said(said), "transcript") for said in talk]


def _utterances(rows: list[dict], file: Path) -> list[dict]:
    """One row per utterance, as ConvoKit and many tables have it."""
    names = {plain(name): name for name in rows[0]} if rows else {}
    talks = ("dialog", *SYNONYMS["dialog"].split())
    speaker, text, talk, parent = (
        _first(names, known) for known in (SPEAKER[:-1], TEXT, talks, ("reply_to",))
    )
    if not speaker or not text:
        return []
    form = "ConvoKit utterances" if parent else f"one row per utterance ({speaker}, {text})"
    roles, groups = _roles(file.with_name("speakers.json")), {}
    for row in rows:
        above = {"reply_to": _name(row.get(parent))} if parent else {}
        said = _utterance(row, speaker, text) | {"id": _name(row.get("id"))} | above
        said["role"] = roles.get(said["speaker"]) or said["role"]
        groups.setdefault(_name(row.get(talk)), []).append(said)
    return [_dialog({"id": name}, said, form) for name, said in groups.items()]


def _name(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _roles(file: Path) -> dict[str, Any]:
    """ConvoKit keeps beside the utterances what a speaker is."""
    about = contents(file, Reading(file)) if file.is_file() else {}
    known = about.items() if isinstance(about, dict) else ()
    metas = {name: one.get("meta") for name, one in known if isinstance(one, dict)}
    return {name: _first(one, ROLE, str) for name, one in metas.items() if isinstance(one, dict)}


RECORDS = {"parlai": _acts, "persona-chat": _candidates, "multiwoz": _log, "messages": _messages}
TEXTS = {"parlai": _parlai, "persona-chat": _numbered, "transcript": _transcript}
