"""Small files of logs, written from dialogs by the templates in `log_examples`."""

import html
import json
import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("log_examples")
DIALOGS = [
    [
        "Hi, who's there?",
        'It\'s me: "Ada", a bot.',
        "Café & cake?",
        "Yes, at 5 o'clock. Sure?",
    ],
    [
        "Is my order late?",
        "It left on Monday.",
        "Monday was a week ago...",
        "You are right, sorry.",
    ],
    [
        "Tell me a joke",
        '"Two hats": one went ahead.',
        "Another one",
        "I only have one; sorry.",
    ],
]
TWO_EXCHANGES = {"Ho": ["Hi"], "No": ["Hi", "Ho", "Tea?"]}  # replies and contexts
NAMES = ("U1", "B1", "U2", "B2")
VARIABLE = re.compile(r"\$([a-z]?)([UB][12]|N)")


class Example(NamedTuple):
    """A template: what stands before, for each dialog, and after; and what is to come of it."""

    name: str
    flags: list[str]
    header: str
    record: str
    footer: str


def examples(file):
    """The templates in a file."""
    templates = []
    for block in (FOLDER / file).read_text(encoding="utf-8").split("\n=== ")[1:]:
        title, _, body = block.partition("\n")
        name, _, flags = title.partition(" | ")
        pieces = body.rstrip("\n").split("\n~~~\n") if "~~~" in body else ["", body, ""]
        if body.rstrip("\n").endswith("~~~"):
            pieces = [*body.rstrip("\n").removesuffix("\n~~~").split("\n~~~\n"), ""]
        header, record, footer = pieces
        templates.append(
            Example(name, flags.split(), header, record.rstrip("\n"), footer)
        )
    return templates


def quoted(text, form, ending):
    """A text as it stands in a file: in quotes of its kind, or within others."""
    if form == "d":
        return json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False)[
            1:-1
        ]
    if form == "c":
        return json.dumps(text, ensure_ascii=False).replace('"', '""')
    if form == "e":
        return text.replace(",", "_comma_")
    if form == "h":
        return json.dumps(html.escape(text, quote=False), ensure_ascii=False)[1:-1]
    if ending == "csv" and not form:
        return '"' + text.replace('"', '""') + '"'
    if ending in ("json", "jsonl", "transcript"):
        value = json.dumps(text, ensure_ascii=False)
        return value[1:-1] if form == "r" else value
    return text


def written(example, dialogs):
    """The text of the file that a template makes of dialogs."""
    ending = example.name.rpartition(".")[2]
    records = []
    for number, texts in enumerate(dialogs, start=1):
        values = dict(zip(NAMES, texts, strict=True))

        def fill(match, values=values, number=number):
            if match[2] == "N":
                return str(number)
            return quoted(values[match[2]], match[1], ending)

        records.append(VARIABLE.sub(fill, example.record))
    if ending in ("json", "transcript"):
        body = ",\n".join(records)
        if "object" in example.flags:
            return f"{example.header}{body}{example.footer}\n"
        return f"[{body}]\n"
    if ending == "jsonl":
        records = [re.sub(r"\n(?!\{)", " ", record) for record in records]
    lines = [text for text in (example.header, *records, example.footer) if text]
    separator = "\n\n" if ending in ("srt", "vtt") else "\n"
    return separator.join(lines) + "\n"


def expected(example, dialogs):
    """(context, response) of each reply that is to be read, in any order."""
    replies = []
    before = []
    for texts in dialogs:
        if "one" not in example.flags:
            before = []
        for position in (1, 3):
            replies.append((tuple(before + texts[:position]), texts[position]))
        if "single" in example.flags:
            replies[-2:] = replies[-2:-1]
        if "last" in example.flags:
            replies[-2:] = replies[-1:]
        if "first" in example.flags:
            replies[-2:] = replies[-2:-1]
        before = before + texts
    return sorted(replies)


def options(example):
    """The options that a template names."""
    values = {}
    for flag in example.flags:
        name, equals, value = flag.partition("=")
        if equals:
            values[name] = value.replace("~", " ")
    return values


def file_with(folder, name, content):
    """A file with a text, with values as JSON lines (.jsonl), or with one value as JSON."""
    file = folder / name
    text = content
    if name.endswith(".jsonl") and isinstance(content, list):
        text = "\n".join(map(json.dumps, content))
    elif not isinstance(content, str):
        text = json.dumps(content)
    file.write_text(text, encoding="utf-8")
    return file


def contexts(turns):
    """The context of each reply."""
    return dict(zip(turns["response"], turns["context"], strict=True))
