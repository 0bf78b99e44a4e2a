"""Dialogs in plain text: numbered lines with tabs, and transcripts such as `Name: text`."""

import re
from collections import Counter
from itertools import groupby
from typing import NamedTuple

from lib.data.dialogs import Dialog, Utterance, speaker_role
from lib.data.file_contents import ImportReport
from lib.data.messages import add_without_persona

# A time, a name of at most 40 characters, a colon; matched in the start of a line only.
SPEAKER_START = re.compile(
    r"(?:[\[(]?\d[\d:./, T-]*(?:[ap]\.?m\.?)?[\])]? ?[-–]? ?)?[*_>#]*"
    r"(?P<name>[^\W\d][^:\t\n]{0,39}?)[*_]* ?:[*_]*(?:\s|$)",
    re.I,
)
TITLE = r"(dialog(ue)?|conversation|chat|session)\W*\d+\W*"
RULE = re.compile(rf"\s*([-=*_~#]{{3,}}|#+ .*|{TITLE})\s*$", re.I)
EXCHANGE = re.compile(
    r"(?:(?P<number>\d+) |text:)(?P<user>[^\t]*)\t?(?:(?:eval_)?labels:)?(?P<bot>[^\t]*).*"
)


class Line(NamedTuple):
    """A line of a transcript: who begins to speak in it, if anybody, and the words."""

    speaker: str | None
    words: str


def read_exchange_lines(text: str) -> list[Dialog]:
    """Lines of the user's words, a tab, and the bot's, of which further ones follow after "|".

    Persona-Chat and older ParlAI number them, a new dialog at 1; ParlAI's `text:` marks the last.
    """
    exchanges = [EXCHANGE.match(line) for line in text.split("\n") if line]
    if "\t" not in text or not all(exchanges):
        return []
    dialogs: list[Dialog] = []
    at_end = True
    for exchange in exchanges:
        if at_end or exchange["number"] == "1":
            dialogs.append(Dialog(id="", utterances=[]))
        at_end = "episode_done:True" in exchange[0]
        user = exchange["user"].replace("\\n", "\n")
        reply, *references = exchange["bot"].replace("\\n", "\n").split("|")
        if user:
            add_without_persona(dialogs[-1], Utterance("user", "user", user))
        if reply:
            utterance = Utterance("bot", "assistant", reply, references=references)
            add_without_persona(dialogs[-1], utterance)
    return dialogs


def read_transcript(text: str, report: ImportReport) -> list[Dialog]:
    """Lines such as `Name: text`; further lines belong to the one above."""
    lines = speaker_lines(text)
    turns = sum(line.speaker is not None for line in lines)
    names = {line.speaker for line in lines} - {None}
    filled = sum(bool(line.words.strip()) or line.speaker is not None for line in lines)
    with_role = any(speaker_role(name) in ("user", "assistant") for name in names)
    if len(names) < 2 or (turns < filled / 2 and not with_role):
        return []
    reason = "what separates the dialogs: rules, blank (lines) or none"
    splits = {
        "rules": split_lines(lines, is_rule),
        "blank": split_lines(lines, is_empty),
    }
    guess = "none"
    for split, blocks in reversed(splits.items()):
        starts = all(begins_with_speaker(block) for block in blocks[1:])
        if 1 < len(blocks) < turns / 2 + 1 and starts:
            guess = split
    split = report.decide("split", guess, reason)
    return [spoken_dialog(block, report) for block in splits.get(split, [lines])]


def speaker_lines(text: str) -> list[Line]:
    """The lines of a transcript; a speaker speaks more than once, or is named by a role."""
    lines = text.strip().split("\n")
    matches = [SPEAKER_START.match(line[:120]) for line in lines]
    counts = Counter(match["name"] for match in matches if match)
    speakers = {name for name in counts if counts[name] > 1 or speaker_role(name)}
    if len(speakers) < 2:
        speakers = set(counts)
    parsed = []
    for line, match in zip(lines, matches, strict=True):
        if match and match["name"] in speakers:
            parsed.append(Line(match["name"], line[match.end() :]))
        else:
            parsed.append(Line(None, line))
    return parsed


def is_rule(line: Line) -> bool:
    """Whether a line is a rule, a heading or the title of a dialog."""
    return line.speaker is None and RULE.match(line.words[:120]) is not None


def is_empty(line: Line) -> bool:
    """Whether nothing stands in a line."""
    return line.speaker is None and not line.words.strip()


def split_lines(lines: list[Line], is_separator) -> list[list[Line]]:
    """The lines between the separators."""
    groups = groupby(lines, is_separator)
    return [list(block) for separator, block in groups if not separator]


def begins_with_speaker(block: list[Line]) -> bool:
    """Whether somebody speaks first in a block: else it stands within what somebody says."""
    for line in block:
        if not is_rule(line) and not is_empty(line):
            return line.speaker is not None
    return True


def spoken_dialog(block: list[Line], report: ImportReport) -> Dialog:
    """The utterances of a block of lines."""
    dialog = Dialog(id="", utterances=[])
    for line in block:
        if line.speaker:
            role = speaker_role(line.speaker)
            dialog.utterances.append(Utterance(line.speaker, role, line.words))
        elif dialog.utterances:
            dialog.utterances[-1].text += f"\n{line.words}"
        elif line.words.strip():
            report.excluded["utterances", "are lines before the first speaker"] += 1
    for utterance in dialog.utterances:
        utterance.text = utterance.text.strip()
    return dialog
