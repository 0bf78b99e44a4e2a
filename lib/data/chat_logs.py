"""Dialogs as people keep them: each format becomes records with a list of messages, or is one.

`dialogs` reads these. A dialog is a mapping with `id`, `said` (its utterances, oldest first),
`system`, `fact` and `marks`; an utterance one with `speaker`, `role`, `text`, `system`, `marks`,
`reference`, and where known `id` and `reply_to`. What a format does not hold is skipped.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import cycle, groupby
from pathlib import Path
from typing import Any

import pandas as pd

from lib.data.corpora import snake_case
from lib.data.file_contents import Reading, Unknown, contents, listed
from lib.data.storage import DataError, suggest_name

MOST = 200  # earlier utterances that a context keeps
WORDS = tomllib.loads(Path(__file__).with_name("chat_words.toml").read_text(encoding="utf-8"))
SYNONYMS = WORDS["synonyms"]  # what people call our columns
FIELDS = {name: words.split() for name, words in WORDS["fields"].items()}
SPEAKER, TEXT, ROLE, MODEL = (FIELDS[name] for name in ("speaker", "text", "role", "model"))
DIALOG = ["dialog", *SYNONYMS["dialog"].split()]


def dialogs(value: Any, file: Path, reading: Reading) -> list[dict] | None:
    """The dialogs in what a file holds; None for a table with one row per reply.

    Raises:
        Unknown: nothing of the kind, with an example of the nearest format.
    """
    asked, table = reading.given.get("kind"), isinstance(value, pd.DataFrame)
    if isinstance(value, str):
        readers = {"lines": lambda: _lines(value)}
        readers |= {"transcript": lambda: _transcript(value, reading)}
    else:
        rows = records(value)
        if asked in (None, "table") and any(map(_has_replies, [reading.columns, *rows[:1]])):
            return None
        ours = {their: name for name, their in reading.columns.items()}
        rows = [{ours.get(name, name): row[name] for name in row} for row in rows]
        readers = {"messages": lambda: rows, "utterances": lambda: _utterances(rows, file)}
    for kind in readers if asked is None else readers.keys() & {asked}:
        if any(map(_dialog, (given := readers[kind]())[:20])):
            found = [dialog for record in given if (dialog := _dialog(record))]
            reading.excluded["dialogs", "are in another shape"] += len(given) - len(found)
            reading.guess("kind", kind, found[0]["form"])
            folder = f"{reading.below(file)}/" if file != reading.path else ""
            return [one | {"id": f"{folder}{one['id'] or place}"}
                    for place, one in enumerate(found, start=1)]  # fmt: skip
    if table and asked in (None, "table"):
        return None  # whose columns may be mapped
    problem = f"is not of the kind {asked!r}" if asked else "is no chat log that we know"
    raise Unknown(problem, file, fix=f"write it like this:\n{example(value)}")


def example(value: Any) -> str:
    r"""The example of the format that shares most words with what a file holds.

    >>> example("Ann asks\nUser : hi\nBot : ho")
    'User: Hi\nBot: Hello'
    """
    start = value.head(3).to_csv() if isinstance(value, pd.DataFrame) else str(value)[:5000]
    words, kind = set(re.findall(r"\w+", start)), {str: "text", pd.DataFrame: "table"}
    known = WORDS["examples"][kind.get(type(value), "json")]
    return max(known, key=lambda one: len(words & set(re.findall(r"\w+", one))))


def records(value: Any) -> list[dict]:
    """One mapping per dialog or row, whatever holds them together; none where they are others."""
    if isinstance(value, pd.DataFrame):
        return value.loc[:, ~value.columns.duplicated()].to_dict("records")
    if isinstance(value, dict):
        inner = list(value.values())
        if _has_replies(value) or _dialog(value):
            return [value]
        if all(isinstance(one, dict) for one in inner):  # MultiWOZ: by their names
            return [{"id": name} | one for name, one in value.items()]
        value = [row for one in inner if isinstance(one, list) for row in one]  # by their splits
    rows = [{"messages": one} if isinstance(one, list) else one for one in value]
    known = all(isinstance(one, dict) for one in rows)
    return [one for row in rows for one in _unfolded(row)] if known else []


def _unfolded(row: dict) -> list[dict]:
    """The dialogs, or replies to one context, in a list of a row, each with the rest of the row."""
    for name, cell in row.items():
        first = cell[0] if isinstance(cell, list) and cell else None
        if isinstance(first, dict) and (_has_replies(first) or _dialog(first)):
            rest = {other: row[other] for other in row if other != name}
            return [rest | one for one in cell if isinstance(one, dict)]
    return [row]


def _has_replies(row: Mapping[str, Any]) -> bool:
    known = {"response", *SYNONYMS["response"].split()} - set(TEXT)
    return bool({snake_case(name) for name in row} & known)


def _first(fields: Mapping[str, Any], names: Sequence[str], kinds: Any = object) -> Any:
    """The first of these fields that is there and not empty."""
    values = (fields.get(name) for name in names)
    return next((one for one in values if isinstance(one, kinds) and one not in (None, "")), None)


def _dialog(record: dict) -> dict | None:
    """What a record tells of a dialog, where one of its fields is a list of messages."""
    found = next(filter(None, map(_messages, record.values())), None)
    if found is None:
        return None
    form, said = found
    fields, kept = {snake_case(name): cell for name, cell in record.items()}, []
    fact = fields.get("personality")
    facts = [*fact] if isinstance(fact, list) else []
    for one in said:  # ParlAI tells what the bot knows before the first words
        lines = PERSONA.match(one["text"] or "")
        facts += re.findall(r"^your persona: *(.*)", lines[0], flags=re.M)
        text = one["text"] and one["text"][lines.end() :]
        kept += [one | {"text": text}] if text or not lines[0] else []
    return {"id": _first(fields, ("id", *DIALOG), str | int), "said": kept, "fact": facts,
            "form": record.get("read as", form), **_about(fields)}  # fmt: skip


def _messages(cell: Any) -> tuple[str, list[dict]] | None:
    """The utterances in a list of messages, and what has it so."""
    said = listed(cell) if isinstance(cell, str) and cell.startswith("[{") else cell
    said = said if isinstance(said, list) else []
    # ParlAI has lists of them, exchange by exchange.
    said = [one for part in said for one in (part if isinstance(part, list) else [part])]
    if not said or not all(isinstance(one, dict) for one in said):
        return None
    last = said[-1].get("candidates")
    if isinstance(last, list):  # Persona-Chat: the last of them is what was said
        texts = [*(said[-1].get("history") or ()), *last[-1:]]
        said = [{"text": text, "metadata": None} for text in texts]
    keys = {snake_case(key): key for key in dict.fromkeys(key for one in said for key in one)}
    speaker, text = (_first(keys, names) for names in (SPEAKER, TEXT))
    if "metadata" in keys and not speaker:
        speaker, names = "in turn", cycle(("user", "bot"))
        said = [{speaker: name} | one for name, one in zip(names, said, strict=False)]
    if not text and {"user", "bot"} <= {*map(speaker_role, keys)}:  # exchanges, each with both
        sides = [
            pair for one in said for pair in one.items() if speaker_role(pair[0]) in ("user", "bot")
        ]
        said = [dict(zip(("speaker", "text"), pair, strict=True)) for pair in sides]
        speaker, text = "speaker", "text"
    form = f"{speaker}, {text}"
    found = [_utterance(one, speaker, text) for one in said]
    return (WORDS["forms"].get(form, f"messages ({form})"), found) if speaker and text else None


def _utterance(one: Mapping[str, Any], speaker: str, text: str) -> dict:
    fields = {**(one["meta"] if isinstance(one.get("meta"), dict) else {}), **one}
    name, said = str(one.get(speaker)), one.get(text)
    roles = (one for one in map(fields.get, ROLE) if isinstance(one, str) and speaker_role(one))
    prompt = speaker in ("role", "from") and name.lower() == "system"
    if isinstance(said, list):  # parts, of which some are text
        parts = [part.get("text") if isinstance(part, dict) else part for part in said]
        said = "\n".join(part for part in parts if isinstance(part, str)) or None
    thread = {part: str(one.get(part)) for part in ("id", "reply_to") if "reply_to" in one}
    return {"speaker": name, "role": "prompt" if prompt else next(roles, name),
            "text": said if isinstance(said, str) else None,
            **thread, **_about(fields)}  # fmt: skip


def _about(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The model, references, and each rating, score or human_<name>, also within `ratings`."""
    others, marks = (
        fields.get("reference"),
        {snake_case(name): mark for name, mark in fields.items()},
    )
    marks |= ratings(fields)
    marks = {f"human_{name.removeprefix('human_')}": mark for name, mark in marks.items()
             if re.fullmatch(r"human_.+|(.+_)?rating|score", name)}  # fmt: skip
    return {"system": _first(fields, MODEL, str), "marks": marks,
            "reference": others if isinstance(others, list) else []}  # fmt: skip


def ratings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`human_<name>` for what stands in `ratings`, `annotations` or `scores`."""
    inner = [fields.get(name) for name in ("ratings", "annotations", "scores")]
    each = [pair for one in inner if isinstance(one, dict) for pair in one.items()]
    return {f"human_{snake_case(name)}": mark for name, mark in each}


def _utterances(rows: list[dict], file: Path) -> list[dict]:
    """One row per utterance, as ConvoKit and many tables have it, by dialogs."""
    names = {snake_case(name): name for name in rows[0]} if rows else {}
    speaker, text, talk = (_first(names, known) for known in (SPEAKER[:-1], TEXT, DIALOG))
    if not speaker or not text:
        return []
    form = f"one row per utterance ({speaker}, {text})"
    form = "ConvoKit utterances" if "reply_to" in names else form
    beside, groups = file.with_name("speakers.json"), {}  # ConvoKit's, what the speakers are
    about = contents(beside, Reading(beside)) if beside.is_file() else {}
    for row in rows:
        if known := about.get(str(row.get(speaker))):
            row = row | {"meta": {**(known.get("meta") or {}), **(row.get("meta") or {})}}
        groups.setdefault(row.get(talk), []).append(row)
    return [{"read as": form, "id": str(name), "messages": said} for name, said in groups.items()]


def _lines(text: str) -> list[dict]:
    """Lines of the user's words, a tab, and the bot's, of which further ones are parted by "|".

    Persona-Chat and older ParlAI number them, a new dialog at 1; ParlAI's `text:` marks the last.
    """
    acts = [ACT.match(line) for line in text.split("\n") if line]
    if "\t" not in text or not all(acts):
        return []
    form = "ParlAI (text)" if text.startswith("text:") else "Persona-Chat (numbered lines)"
    talk: list[dict] = []
    for act, before in zip(acts, [None, *acts], strict=False):
        if act[1] == "1" or before is None or "episode_done:True" in before[0]:
            talk.append({"read as": form, "messages": []})
        user, answers = (act[part].replace("\\n", "\n") for part in ("user", "bot"))
        reply, *others = answers.split("|")
        said = [{"speaker": "user", "text": user},
                {"speaker": "bot", "text": reply, "reference": others}]  # fmt: skip
        talk[-1]["messages"] += [one for one in said if one["text"]]
    return talk


# A time, a name of at most 40 characters, a colon; matched in the start of a line only.
NAMED = re.compile(
    r"(?:[\[(]?\d[\d:./, T-]*(?:[ap]\.?m\.?)?[\])]? ?[-–]? ?)?[*_>#]*"
    r"([^\W\d][^:\t\n]{0,39}?)[*_]* ?:[*_]*(?:\s|$)",
    re.I,
)
PART = r"(dialog(ue)?|conversation|chat|session)\W*\d+\W*"
RULE = re.compile(rf"\s*([-=*_~#]{{3,}}|#+ .*|{PART})\s*$", re.I)
PERSONA = re.compile(r"(?:(?:your|partner's) persona:.*(?:\n|$))*")
ACT = re.compile(r"(?:(\d+) |text:)(?P<user>[^\t]*)\t?(?:(?:eval_)?labels:)?(?P<bot>[^\t]*).*")
ENDS = {
    "rules": lambda line: RULE.match(line[0][:120]) is not None,
    "blank": lambda line: not line[0].strip(),
}


def _transcript(text: str, reading: Reading) -> list[dict]:
    """Lines such as `Name: text`; further lines belong to the one above."""
    lines = [(line, NAMED.match(line[:120])) for line in text.strip().split("\n")]
    counts = Counter(match[1] for _, match in lines if match)
    known = {name for name in counts if counts[name] > 1 or speaker_role(name)}
    known = known if len(known) > 1 else set(counts)
    lines = [(line, match if match and match[1] in known else None) for line, match in lines]
    turns = sum(match is not None for _, match in lines)
    filled = sum(bool(line.strip()) for line, _ in lines)
    if len(known) < 2 or (
        turns < filled / 2 and not {"bot", "user"} & set(map(speaker_role, known))
    ):
        return []
    parts = {split: [[*part] for end, part in groupby(lines, ends) if not end]
             for split, ends in ENDS.items()}  # fmt: skip
    clear = [split for split, found in parts.items()
             if 1 < len(found) < turns / 2 + 1 and all(map(_begins, found[1:]))]  # fmt: skip
    why = "what parts the dialogs: rules, blank (lines) or none"
    parted = parts.get(reading.guess("split", [*clear, "none"][0], why), [lines])
    return [{"read as": "transcript", "messages": _spoken(part, reading)} for part in parted]


def _begins(part: list[tuple]) -> bool:
    """Whether somebody speaks first in it, so that it does not stand within what somebody says."""
    ends = ENDS.values()
    return next((bool(line[1]) for line in part if not any(end(line) for end in ends)), True)


def _spoken(part: list[tuple], reading: Reading) -> list[dict]:
    said: list[dict] = []
    for line, match in part:
        if match:
            said.append({"speaker": match[1], "text": line[match.end() :]})
        elif said:
            said[-1]["text"] += f"\n{line}"
        elif line.strip():
            reading.excluded["utterances", "are lines before the first speaker"] += 1
    return [one | {"text": one["text"].strip()} for one in said]


@cache
def speaker_role(name: str) -> str | None:
    """What the name of a speaker tells: "bot", "user", "neither" or nothing.

    >>> [speaker_role(name) for name in ("Chatbot 2", "user_7", "tool", "Ada")]
    ['bot', 'user', 'neither', None]
    """
    words = set(re.findall(r"[^\W\d_]+", name.lower()))
    return next((kind for kind, of in WORDS["roles"].items() if words & set(of.split())), None)


def bots(talk: Sequence[dict], reading: Reading) -> set[str]:
    """The speakers that are the bot: as said, by their roles, or whoever is not the user.

    Raises:
        DataError: where nothing tells, with the speakers to choose from.
    """
    roles = {one["speaker"]: one["role"] for dialog in talk for one in dialog["said"]}
    kinds, why = {name: speaker_role(roles[name]) for name in roles}, "by the name of the role"
    found, asked = {name for name in roles if kinds[name] == "bot"}, reading.given.get("bot", "")
    if not found and "user" in kinds.values():
        found, why = {name for name in roles if kinds[name] is None}, "everybody but the user"
    if asked:
        names = {one.strip().lower() for one in asked.split(",")}
        found = {name for name in roles if {name.lower(), roles[name].lower()} & names}
    speakers = ", ".join(sorted(roles)[:8])
    reached = sum(any(one["speaker"] in found for one in dialog["said"]) for dialog in talk)
    doubtful = (len(found) > 1 and found == set(roles)) or reached < len(talk) / 2
    if not found or (doubtful and not asked):
        hint = suggest_name(asked, map(str.lower, roles)) or f"the speakers are {speakers}"
        problem = "does not tell which speaker is the bot"
        raise DataError(problem, reading.path, fix=f"name it: BOT=...; {hint}")
    reading.guess("bot", ", ".join(sorted(found)[:8]), f"{why}; the speakers: {speakers}")
    return found


def replies(talk: Sequence[dict], reading: Reading) -> Iterator[dict]:
    """One row of the turn table per utterance of the bot that has words."""
    found, times = bots(talk, reading), Counter()
    for dialog in talk:
        said = [one for one in dialog["said"] if _counts(one, found, reading)]
        mine = [place for place, one in enumerate(said) if one["speaker"] in found]
        if not mine:
            reading.excluded["dialogs", "have no reply of the bot"] += 1
            continue
        reading.kept.update(dialogs=1, utterances=len(said))
        systems = {k: said[k]["system"] or dialog["system"] or said[k]["speaker"] for k in mine}
        times[systems[mine[0]], dialog["id"]] += 1
        again = times[systems[mine[0]], dialog["id"]]
        name = f"{dialog['id']} ({again})" if again > 1 else dialog["id"]
        by_id = {one["id"]: one for one in said if one.get("id")}
        for place in mine:
            one = said[place]
            yield {"system": systems[place], "dialog": name, "turn": place, "response": one["text"],
                   "context": _context(said, place, by_id), "reference": one["reference"],
                   "fact": dialog["fact"], **dialog["marks"], **one["marks"]}  # fmt: skip


def _counts(one: Mapping[str, Any], found: set[str], reading: Reading) -> bool:
    """Whether an utterance is talk: of a person or the bot, and in words."""
    tool = one["speaker"] not in found and speaker_role(one["role"]) == "neither"
    why = "are of tools or prompts" if tool else "have no words (calls of tools, pictures)"
    reading.excluded["utterances", why] += (lost := tool or one["text"] is None)
    return not lost


def _context(said: Sequence[dict], place: int, by_id: Mapping[Any, dict]) -> list[str]:
    """The texts before an utterance, oldest first: those it replies to where that is said."""
    if "reply_to" not in said[place]:
        return [one["text"] for one in said[max(0, place - MOST) : place]]
    chain, above = [], said[place]["reply_to"]
    while above in by_id and len(chain) < MOST:
        chain.append(by_id[above]["text"])
        above = by_id[above]["reply_to"]
    return chain[::-1]
