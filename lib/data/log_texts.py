"""Dialogs in plain text: WhatsApp, IRC, subtitles, numbered lines, transcripts (`Name: text`)."""

import re
from collections import Counter
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from lib.data.dialogs import Dialog, Utterance, speaker_role
from lib.data.file_contents import UnknownFormat
from lib.data.log_messages import add_without_persona

# A time, a name of at most 40 characters, a colon; matched in the start of a line only.
SPEAKER_START = re.compile(
    r"(?:[\[(]?\d[\d:./, TZ-]*(?:[ap]\.?m\.?)?[\])]? ?[-–]? ?)?"
    r"(?:[\[(]?(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)[\])]? ?[-:]? )?[*_>#]* ?"
    r"(?P<name>[^\W\d][^:\t\n]{0,39}?)[*_]* ?:[*_]*(?:\s|$)",
    re.I,
)
TITLE = r"(dialog(ue)?|conversation|chat|session)\W*\d+\W*"
RULE = re.compile(rf"\s*([-=*_~#]{{3,}}|#+ .*|{TITLE})\s*$", re.I)
EXCHANGE = re.compile(
    r"(?:(?P<number>\d+) |text:)(?P<user>[^\t]*)\t?(?:(?:eval_)?labels:)?(?P<bot>[^\t]*).*"
)


WHATSAPP = re.compile(
    r"\u200e?\[?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),? "
    r"(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)(?:\s?(?P<half>[ap])\.?\s?m\.?)?(?:\]| [-–]) ",
    re.I,
)
EDITED = re.compile(
    r"\u200e?<(?:This message was edited|Diese Nachricht wurde bearbeitet\.?)>"
)
NO_WORDS = re.compile(  # of WhatsApp, where a message holds no words
    r"<(?:Media omitted|Medien ausgeschlossen|attached: .*)>|null|\S+ \(file attached\)"
    r"|(?:image|video|audio|sticker|GIF|document|Contact card) omitted"
    r"|(?:You deleted this message|This message was deleted)\.?"
    r"|(?:Missed (?:voice|video) call|Messages and calls are end-to-end encrypted).*"
)
NOTICE = re.compile(r" (?:changed|added|created|removed|left|joined|pinned|turned on) ")
IRC = re.compile(
    r"(?:\[?(?P<time>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d(?::\d\d)?)\]?\s+)?"
    r"<[@+%~& ]?(?P<name>[^\s<>]{1,30})> (?P<text>.*)"
)
CUE = re.compile(r"(?:\d+:)?\d\d:\d\d[.,]\d{3} --> .*")
VOICE = re.compile(r"<v(?:\.\S+)? (?P<name>[^>]{1,60})>")


class Line(NamedTuple):
    """A line of a transcript: who begins to speak in it, if anybody, and the words."""

    speaker: str | None
    words: str


def is_exchange_lines(text: str) -> bool:
    """Whether every line has what the user and what the bot says, in ParlAI's way."""
    lines = [line for line in text.split("\n") if line]
    return "\t" in text and all(map(EXCHANGE.match, lines))


def read_exchange_lines(text: str, source) -> list[Dialog]:
    """Lines of the user's words, a tab, and the bot's, of which further ones follow after "|".

    Persona-Chat and older ParlAI number them, a new dialog at 1; ParlAI's `text:` marks the last.
    """
    exchanges = [EXCHANGE.match(line) for line in text.split("\n") if line]
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


def read_transcript(text: str, source) -> list[Dialog]:
    """Lines such as `Name: text`; further lines belong to the one above."""
    lines = speaker_lines(text, source)
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
    split = source.report.decide("split", guess, reason)
    roles = transcript_roles(names)
    return [spoken_dialog(block, roles, source) for block in splits.get(split, [lines])]


def transcript_roles(names: set[str]) -> dict[str, str | None]:
    """The role of each name; "System" is a prompt where another name is a bot's."""
    roles = {name: speaker_role(name) for name in names}
    if list(roles.values()).count("assistant") > 1:
        for name in names:
            if name.lower() == "system":
                roles[name] = "system"
    return roles


def speaker_lines(text: str, source) -> list[Line]:
    """The lines of a transcript, with who begins to speak in them.

    Speakers are those of the option `speakers`, else those that `find_speakers` is sure of.
    """
    lines = text.strip().split("\n")
    matches = [SPEAKER_START.match(line[:120]) for line in lines]
    names = [match["name"] for match in matches if match]
    if source.report.options.speakers:
        speakers = {name.strip() for name in source.report.options.speakers.split(",")}
    else:
        speakers = find_speakers(names)
    within = sorted(set(names) - speakers)
    if within and speakers:
        reason = f"words with a colon within what they say: {', '.join(within[:5])}"
        source.report.decide("speakers", ",".join(sorted(speakers)[:8]), reason)
    parsed = []
    for line, match in zip(lines, matches, strict=True):
        if match and match["name"] in speakers:
            parsed.append(Line(match["name"], line[match.end() :]))
        else:
            parsed.append(Line(None, line))
    return parsed


def find_speakers(names: list[str]) -> set[str]:
    """The speakers among the names that begin lines.

    Sure are those of roles, two names, and several that all talk with the same one. A name that
    stands once is a word within what somebody says, where others stand more often.

    Raises:
        UnknownFormat: for three or more of which some may be words, such as "Address:".
    """
    with_role = {name for name in names if speaker_role(name)}
    if {"user", "assistant"} <= {speaker_role(name) for name in with_role}:
        return with_role
    counts = Counter(names)
    speakers = {name for name in counts if counts[name] > 1 or name in with_role}
    if len(speakers) < 2:
        return set(counts)
    if len(speakers) == 2:
        return speakers
    turns = [name for name in names if name in speakers]
    partner = Counter(turns).most_common(1)[0][0]
    for name, following in zip(turns, turns[1:], strict=False):
        if partner not in (name, following):
            listed = ", ".join(sorted(speakers)[:8])
            problem = (
                f"has names of which some may stand within what others say: {listed}"
            )
            raise UnknownFormat(problem, fix="name those that speak: SPEAKERS=Ann,Bob")
    return speakers


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


def spoken_dialog(block: list[Line], roles: dict[str, str | None], source) -> Dialog:
    """The utterances of a block of lines."""
    dialog = Dialog(id="", utterances=[])
    for line in block:
        if line.speaker:
            dialog.utterances.append(
                Utterance(line.speaker, roles[line.speaker], line.words)
            )
        elif dialog.utterances:
            dialog.utterances[-1].text += f"\n{line.words}"
        elif line.words.strip():
            source.exclude("utterances", "are lines before the first speaker")
    for utterance in dialog.utterances:
        utterance.text = utterance.text.strip()
    return dialog


def is_whatsapp(text: str) -> bool:
    """Whether a text begins as an export of WhatsApp does."""
    return WHATSAPP.match(text.lstrip()[:60]) is not None


def read_whatsapp(text: str, source) -> list[Dialog]:
    """WhatsApp: one chat; notices, media, deleted messages and marks of edits are no talk."""
    entries = []
    for line in text.split("\n"):
        start = WHATSAPP.match(line[:60])
        if start:
            entries.append([start, line[start.end() :]])
        elif entries:
            entries[-1][1] += f"\n{line}"
    times = whatsapp_times([start for start, _ in entries])
    dialog = Dialog("", [])
    for time, (_, words) in zip(times, entries, strict=True):
        name, colon, words = words.partition(": ")
        if not colon or len(name) > 60 or NOTICE.search(name):
            source.exclude("utterances", "are notices")
            continue
        dialog.utterances.append(Utterance(name, speaker_role(name), words, time=time))
        clean_whatsapp(dialog.utterances[-1], source)
    return [dialog] if len({u.speaker for u in dialog.utterances}) > 1 else []


def clean_whatsapp(utterance: Utterance, source) -> None:
    """Take away marks of direction and edits; a message of media or a notice has no words."""
    words = utterance.text
    if EDITED.search(words):
        source.count_note("were edited")
        words = EDITED.sub("", words).strip(" ")
    is_notice = words.startswith("\u200e")  # as iOS marks what it writes itself
    words = re.sub("[\u200e\u200f\u202a-\u202e]", "", words).strip()
    utterance.text = words
    if is_notice or NO_WORDS.fullmatch(words):
        utterance.text = None


def whatsapp_times(starts: list[re.Match]) -> list[datetime | None]:
    """The times, with the day first or the month first, whichever makes time go forward."""
    for order in ("dmy", "mdy", "ymd"):
        times = [whatsapp_time(start, order) for start in starts]
        if None not in times and times == sorted(times):
            return times
    return [None] * len(starts)


def whatsapp_time(start: re.Match, order: str) -> datetime | None:
    """The time of one message; None where its date cannot be in this order."""
    numbers = dict(zip(order, map(int, re.split(r"[./-]", start["date"])), strict=True))
    clock = [int(number) for number in re.split("[:.]", start["time"])]
    if start["half"]:
        clock[0] = clock[0] % 12 + 12 * (start["half"].lower() == "p")
    year = numbers["y"] + 2000 * (numbers["y"] < 100)
    try:
        return datetime(year, numbers["m"], numbers["d"], *clock, tzinfo=UTC)
    except ValueError:
        return None


def is_irc(text: str) -> bool:
    """Whether most of the first lines are those of an IRC client."""
    lines = [line for line in text.split("\n", 50)[:50] if line.strip()]
    return len(lines) > 1 and sum(map(bool, map(IRC.match, lines))) > len(lines) / 2


def read_irc(text: str, source) -> list[Dialog]:
    """IRC: `<nick> text`; joins, parts and actions are no talk."""
    dialog = Dialog("", [])
    for line in text.split("\n"):
        match = IRC.match(line)
        if match:
            name = match["name"]
            dialog.utterances.append(Utterance(name, speaker_role(name), match["text"]))
        elif line.strip():
            source.exclude("utterances", "are notices")
    return [dialog]


def is_subtitles(text: str) -> bool:
    """Whether a text is WebVTT or SubRip."""
    start = text.lstrip()[:200]
    return (
        start.startswith("WEBVTT")
        or re.match(r"\d+\n" + CUE.pattern, start) is not None
    )


def read_subtitles(text: str, source) -> list[Dialog]:
    """SubRip and WebVTT: cues with a speaker; what one says in several cues is one utterance.

    Raises:
        UnknownFormat: where no cue names its speaker.
    """
    dialog = Dialog("", [])
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.strip().split("\n")
        at = next((n for n, line in enumerate(lines) if CUE.match(line)), None)
        if at is None:
            continue
        words = " ".join(line.strip() for line in lines[at + 1 :])
        voice = VOICE.match(words) or SPEAKER_START.match(words[:120])
        speaker = voice["name"].strip() if voice else None
        words = re.sub(
            r"</?\w[^>]{0,60}>", "", words[voice.end() :] if voice else words
        ).strip()
        previous = dialog.utterances[-1] if dialog.utterances else None
        if previous and speaker in (None, previous.speaker):
            previous.text += f" {words}"
        elif speaker:
            dialog.utterances.append(Utterance(speaker, speaker_role(speaker), words))
    if len({utterance.speaker for utterance in dialog.utterances}) < 2:
        raise UnknownFormat(
            "holds subtitles without speakers", fix='write "Name: " before them'
        )
    return [dialog]


def is_dailydialog(text: str) -> bool:
    """Whether utterances end with __eou__."""
    return "__eou__" in text.partition("\n")[0]


def read_dailydialog(text: str, source) -> list[Dialog]:
    """DailyDialog: a dialog per line, two people in turn; the second is taken for the bot."""
    dialogs = []
    for line in text.split("\n"):
        texts = [words.strip() for words in line.split("__eou__")]
        utterances = []
        for number, words in enumerate(text for text in texts if text):
            speaker = ("first", "second")[number % 2]
            utterances.append(
                Utterance(speaker, ("user", "assistant")[number % 2], words)
            )
        if utterances:
            dialogs.append(Dialog("", utterances))
    return dialogs
