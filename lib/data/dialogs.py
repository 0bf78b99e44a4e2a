"""Dialogs read from logs, and the replies of the bot in them as rows of a turn table."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from lib.data.file_contents import ImportReport
from lib.data.log_times import has_numeric_date, order_numbers
from lib.data.storage import DataError, suggest_name

NO_PARENT = (
    "None",
    "00000000-",
    "client-created-root",
)  # of the first message of a tree
MAX_CONTEXT = 200  # earlier utterances that a context keeps
IN_CONTEXT = " (context)"  # behind the name of a bot whose replies are context only
PERSON = {"human", "live"}  # before "agent": one of the staff, neither user nor bot
OTHER_ROLES = {"user", "tool", "system"}  # than the bot's


def load_words() -> dict[str, Any]:
    """What `chat_words.toml` holds; names of fields in words also as one, as in CONVERSATIONID."""
    file = Path(__file__).with_name("chat_words.toml")
    words = tomllib.loads(file.read_text(encoding="utf-8"))
    users = words["other_languages"]["user"]
    bots = words["other_languages"]["bot"]
    words["synonyms"]["context"] += f" {users}"
    words["synonyms"]["response"] += f" {bots}"
    words["fields"]["user_text"] += f" {users}"
    words["fields"]["bot_text"] += f" {bots}"
    for table in ("synonyms", "fields"):
        for meaning, names in words[table].items():
            joined = [n.replace("_", "") for n in names.split() if "_" in n]
            words[table][meaning] = " ".join([names, *joined])
    return words


WORDS = load_words()


@dataclass(frozen=True)
class Rating:
    """One judgement, with its value as the file has it."""

    rater: str | None
    dimension: str
    value: Any


@dataclass
class Utterance:
    """What one speaker wrote at once.

    Attributes:
        role: "user", "assistant" (a bot), "tool", "system" (a prompt), or None where nothing tells.
        text: None where there are no words (a call of a tool, a picture).
        time: when it was written, in UTC.
        written: the same as the file has it, where only all times together tell what it is.
        number: its place in its dialog, as the file has it.
        reply_to: the id of the utterance that it answers.
        system: the model or version that wrote it.
        references: replies that a person might have given instead.
    """

    speaker: str
    role: str | None
    text: str | None
    time: datetime | None = None
    written: str | None = None
    number: float | None = None
    id: str | None = None
    reply_to: str | None = None
    system: str | None = None
    ratings: list[Rating] = field(default_factory=list)
    references: list[str] = field(default_factory=list)


@dataclass
class Dialog:
    """A conversation, oldest utterance first; `facts` are persona sentences or knowledge.

    One that `spans_files` is joined with those of the same id in other files. In a tree, as
    assistants export it, each utterance but the first ones says what it answers.
    """

    id: str
    utterances: list[Utterance]
    system: str | None = None
    facts: list[str] = field(default_factory=list)
    ratings: list[Rating] = field(default_factory=list)
    spans_files: bool = False
    is_tree: bool = False


def join_rated(dialogs: Sequence[Dialog], keys: Sequence[Any]) -> list[Dialog]:
    """Each dialog once, with the ratings of all others that have its key and are the same.

    They are the same if they have one id, or were rated by people with other names.
    """
    joined: list[Dialog] = []
    by_key: dict[Any, list[Dialog]] = {}
    for dialog, key in zip(dialogs, keys, strict=True):
        raters = raters_of(dialog)
        alike = by_key.setdefault(key, []) if raters else []
        for earlier in alike:
            same_id = dialog.id and dialog.id == earlier.id
            if same_id or not raters & {None, *raters_of(earlier)}:
                add_ratings(earlier, dialog)
                break
        else:
            joined.append(dialog)
            alike.append(dialog)
    return joined


def raters_of(dialog: Dialog) -> set[str | None]:
    """Who rated a dialog or an utterance of it; None for a rating without a name."""
    ratings = [*dialog.ratings]
    for utterance in dialog.utterances:
        ratings += utterance.ratings
    return {rating.rater for rating in ratings}


def add_ratings(dialog: Dialog, same: Dialog) -> None:
    """Give a dialog and its utterances the ratings of another dialog with the same words."""
    dialog.ratings += same.ratings
    for utterance, other in zip(dialog.utterances, same.utterances, strict=True):
        utterance.ratings += other.ratings


@cache
def speaker_role(name: str) -> str | None:
    """The role that the name of a speaker tells: "assistant", "user", "tool" (no talk) or None.

    >>> [speaker_role(name) for name in ("Chatbot 2", "user_7", "tool", "Ada", "human_agent")]
    ['assistant', 'user', 'tool', None, None]
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=AI)(?=Message)", " ", name)
    words = set(re.findall(r"[^\W\d_]+", f"{name} {spaced}".lower()))
    if "agent" in words and words & PERSON:
        return None
    for role, role_words in WORDS["roles"].items():
        if words & set(role_words.split()):
            return role
    return None


def find_bots(dialogs: Sequence[Dialog], report: ImportReport) -> set[str]:
    """The speakers that are the bot: as the user says, by their roles, or whoever is not the user.

    Raises:
        DataError: where nothing tells, with the speakers to choose from.
    """
    roles = {}
    for dialog in dialogs:
        for utterance in dialog.utterances:
            roles[utterance.speaker] = utterance.role
    speakers = ", ".join(sorted(roles)[:8])
    requested = report.options.bot
    reason = "by the name of the role"
    bots = {name for name, role in roles.items() if role == "assistant"}
    agents = set() if requested else agents_beside_bots(bots, dialogs)
    if requested:
        names = {name.strip(" #").lower() for name in requested.split(",")}
        bots = {name for name in roles if name.strip("#").lower() in names}
        if not bots:
            bots = {name for name, role in roles.items() if role in names}
    elif agents and all(CALLED_BOT.search(name) for name in bots - agents):
        reason = "by the name of the role; an agent beside a bot is a person"
        bots = bots - agents
    elif agents:
        fix = f"name it: BOT=...; the speakers are {speakers}"
        raise DataError(
            "has a bot and an agent, who may be a person", report.path, fix=fix
        )
    elif set(roles) == {"U", "S"}:  # as corpora call user and system
        bots = {"S"}
    elif not bots and "user" in roles.values():
        reason = "everybody but the user"
        bots = {name for name, role in roles.items() if role is None}

    said = [
        u.text for dialog in dialogs for u in dialog.utterances if u.speaker in bots
    ]
    if said and not any(text and text.strip() for text in said):
        problem = f"holds no words of the bot ({', '.join(sorted(bots)[:8])})"
        fix = 'name the field with the words: COLUMNS="text=..."'
        raise DataError(problem, report.path, fix=fix)
    with_bot = 0
    for dialog in dialogs:
        with_bot += any(utterance.speaker in bots for utterance in dialog.utterances)
    only_bots = len(bots) > 1 and len(bots) == len(roles)
    doubtful = only_bots or with_bot < len(dialogs) / 2
    if not bots or (doubtful and not requested):
        hint = suggest_name(requested or "", [name.lower() for name in roles])
        hint = hint or f"the speakers are {speakers}"
        problem = "does not tell which speaker is the bot"
        raise DataError(problem, report.path, fix=f"name it: BOT=...; {hint}")
    report.decide(
        "bot", ", ".join(sorted(bots)[:8]), f"{reason}; the speakers: {speakers}"
    )
    return bots


CALLED_BOT = re.compile("bot|virtual", re.I)


def agents_beside_bots(bots: set[str], dialogs: Sequence[Dialog]) -> set[str]:
    """The agents and wizards among these names, as people at a desk are called too.

    None where no dialog has one of them and another of the names.
    """
    of_people = {"agent", "wizard"}
    agents = {
        name for name in bots if of_people & {*re.findall("[a-z]+", name.lower())}
    }
    others = bots - agents
    for dialog in dialogs:
        speakers = {utterance.speaker for utterance in dialog.utterances}
        if speakers & agents and speakers & others:
            return agents
    return set()


def check_words(
    dialogs: Sequence[Dialog], bots: set[str], report: ImportReport
) -> None:
    """Refuse dialogs of which many replies are records of messages, and no words.

    Raises:
        DataError: with the beginning of one.
    """
    replies = [
        utterance.text
        for dialog in dialogs
        for utterance in dialog.utterances
        if utterance.speaker in bots and utterance.text
    ]
    records = [text for text in replies if MESSAGE_RECORD.match(text)]
    if len(records) > len(replies) / 5:
        raise DataError(
            f"holds replies that are records of messages, and no words: {records[0][:60]}...",
            report.path,
            fix="write the words into a column of their own, or name the format: KIND=...",
        )


def check_other_side(
    dialogs: Sequence[Dialog], bots: set[str], report: ImportReport
) -> None:
    """Refuse dialogs of which the words of the bot are read, and those of nobody else.

    Raises:
        DataError: with the names of the others.
    """
    others = Counter()
    n_words = 0
    for dialog in dialogs:
        for utterance in dialog.utterances:
            if utterance.speaker in bots or utterance.role in ("tool", "system"):
                continue
            others[utterance.speaker] += 1
            n_words += bool(utterance.text and utterance.text.strip())
    if n_words or sum(others.values()) < 2:
        return
    names = ", ".join(sorted(others)[:8])
    raise DataError(
        f"holds no words of anybody but the bot ({names} wrote none)",
        report.path,
        fix='name the field with the words: COLUMNS="text=..."',
    )


MESSAGE_RECORD = re.compile(  # as JSON or Python write it
    r"\s*\[?\{[^{}]{0,80}?['\"](?:message\.)?role['\"]: ?['\"]"
)
REASONING = re.compile(  # as models write it before an answer
    r"\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.S
)
# As Open WebUI folds away what goes on between the words of an answer.
FOLDED = re.compile(
    r"<details type=\"(?:reasoning|tool_calls|code_interpreter)\"(?:(?!<details).)*?</details>",
    re.S,
)


def remove_reasoning(
    dialogs: Sequence[Dialog], bots: set[str], report: ImportReport
) -> None:
    """Take away what a model thought and which tools it called, as nobody was told; count it."""
    for dialog in dialogs:
        for utterance in dialog.utterances:
            speaker = utterance.speaker.removesuffix(IN_CONTEXT)
            if speaker not in bots or not utterance.text:
                continue
            begun = REASONING.match(utterance.text)
            text = utterance.text[begun.end() :] if begun else utterance.text
            text, n_folded = FOLDED.subn("", text)
            if n_folded:
                text = re.sub(r"\n{3,}", "\n\n", text).strip()
            if begun or n_folded:
                utterance.text = text or None
                reason = "held reasoning or calls of tools, which are no talk"
                report.notes[reason] += 1


def take_calls_for_no_replies(dialogs: Sequence[Dialog]) -> None:
    """An empty message of the bot before the result of a tool is the call, and no empty reply."""
    for dialog in dialogs:
        for said, after in pairwise(dialog.utterances):
            if after.role == "tool" and said.role == "assistant":
                said.text = said.text or None


def roles_by_speaker(dialogs: Sequence[Dialog]) -> dict[str, set]:
    """The roles in which each speaker wrote."""
    roles: dict[str, set] = {}
    for dialog in dialogs:
        for utterance in dialog.utterances:
            roles.setdefault(utterance.speaker, set()).add(utterance.role)
    return roles


def on_both_sides(dialogs: Sequence[Dialog]) -> set[str]:
    """The speakers who are the user and the bot."""
    roles = roles_by_speaker(dialogs)
    return {name for name in roles if {"user", "assistant"} <= roles[name]}


def name_seats(dialogs: Sequence[Dialog]) -> None:
    """Call the bot "assistant" where its name is the user's in other dialogs, as of a seat."""
    seats = on_both_sides(dialogs)
    if not seats:
        return
    for dialog in dialogs:
        seats -= on_both_sides([dialog])
    for dialog in dialogs:
        for utterance in dialog.utterances:
            if utterance.role == "assistant" and utterance.speaker in seats:
                utterance.speaker = "assistant"


def separate_roles(dialogs: Sequence[Dialog]) -> None:
    """Give a name of its own to what a bot's namesake wrote: a user, or a tool in its name.

    A bot is a speaker with replies, or one that nothing tells.
    """
    shared = {
        name
        for name, roles in roles_by_speaker(dialogs).items()
        if roles - OTHER_ROLES and roles & OTHER_ROLES
    }
    if not shared:
        return
    for dialog in dialogs:
        for utterance in dialog.utterances:
            if utterance.speaker in shared and utterance.role in OTHER_ROLES:
                utterance.speaker += f" ({utterance.role})"


def reply_rows(dialogs: Sequence[Dialog], report: ImportReport) -> Iterator[dict]:
    """One row of the turn table per reply of the bot whose text is not missing.

    A dialog without a reply of the bot is left out and counted in the report. The ratings of a
    reply replace those of its dialog in the same dimension.

    Raises:
        DataError: no bot can be found in most of the dialogs.
    """
    take_calls_for_no_replies(dialogs)
    if not report.options.bot:
        name_seats(dialogs)
    separate_roles(dialogs)
    bots = find_bots(dialogs, report)
    check_other_side(dialogs, bots, report)
    check_words(dialogs, bots, report)
    remove_reasoning(dialogs, bots, report)
    occurrences = Counter()  # of each system and dialog id
    for dialog in dialogs:
        utterances = [u for u in dialog.utterances if _is_talk(u, bots, report)]
        positions = [
            n for n, utterance in enumerate(utterances) if utterance.speaker in bots
        ]
        if not positions:
            report.excluded["dialogs", "have no reply of the bot"] += 1
            reason = "are of dialogs without a reply of the bot"
            report.excluded["utterances", reason] += len(utterances)
            report.dialogs_left_out.append(dialog.id)
            continue
        report.kept.update(dialogs=1, utterances=len(utterances))
        of_system = sum(u.speaker.casefold() == "system" for u in utterances)
        if of_system and "system" not in {name.casefold() for name in bots}:
            report.notes["by a speaker named 'system', kept as context"] += of_system
        replies = [utterances[position] for position in positions]
        systems = {reply.system or dialog.system or reply.speaker for reply in replies}
        occurrence = 1 + max(occurrences[system, dialog.id] for system in systems)
        for system in systems:
            occurrences[system, dialog.id] = occurrence
        name = dialog.id
        if occurrence > 1:
            name += f" ({occurrence})"
        threaded = is_threaded(dialog)
        by_id = {utterance.id: utterance for utterance in dialog.utterances}
        for position in positions:
            reply = utterances[position]
            context = _texts_before(utterances, position)
            if threaded:
                context = _thread(reply, by_id)
            yield {
                "system": reply.system or dialog.system or reply.speaker,
                "dialog": name,
                "turn": position,
                "response": reply.text,
                "context": context,
                "reference": reply.references,
                "fact": dialog.facts,
                "ratings": [*dialog.ratings, *reply.ratings],
            }


def keep_last_versions(dialogs: Sequence[Dialog], report: ImportReport) -> None:
    """Of messages of a dialog with the same id keep the last: the others were edited.

    Nothing is left out where many ids recur, or one at another speaker: such ids are of exchanges
    or dialogs; nor where they are the names of the speakers.
    """
    kept = []
    n_all = 0
    for dialog in dialogs:
        last = {}
        speakers: dict[str, str] = {}
        for number, utterance in enumerate(dialog.utterances):
            if utterance.id == utterance.speaker:
                return
            last[utterance.id or number] = utterance
            speaker = speakers.setdefault(utterance.id or "", utterance.speaker)
            if utterance.id and speaker != utterance.speaker:
                return
        kept.append(list(last.values()))
        n_all += len(dialog.utterances)
    n_kept = sum(map(len, kept))
    if n_kept == n_all or n_kept < 2 / 3 * n_all:
        return
    for dialog, utterances in zip(dialogs, kept, strict=True):
        dialog.utterances = utterances
    reason = "have the id of a later one, as edited messages do"
    report.excluded["utterances", reason] += n_all - n_kept


def read_written_times(dialogs: Sequence[Dialog]) -> None:
    """Set the numbers of utterances from times that only all together tell.

    Dates give their times, too.

    Raises:
        UnknownFormat: where they cannot be read, or in two ways.
    """
    groups = []
    texts = []
    for dialog in dialogs:
        utterances = [u for u in dialog.utterances if u.written and not u.time]
        if utterances and not is_threaded(dialog):
            groups.append(utterances)
            texts.append([utterance.written for utterance in utterances])
    dates = all(map(has_numeric_date, chain.from_iterable(texts)))
    for group, numbers in zip(groups, order_numbers(texts), strict=True):
        for utterance, number in zip(group, numbers, strict=True):
            if dates:
                utterance.time = datetime.fromtimestamp(number, UTC)
            elif utterance.number is None:
                utterance.number = number


def is_newest_first(dialogs: Sequence[Dialog]) -> bool:
    """Whether the newest utterance is the first of a dialog, and of none the last."""
    first = False
    for dialog in dialogs:
        keys = order_keys(dialog)
        if len(set(keys)) < 2 or is_threaded(dialog):
            continue
        if keys != sorted(keys, reverse=True):
            return False
        first = True
    return first


def put_in_order(dialog: Dialog, newest_first: bool = False) -> bool:
    """Sort utterances by their times, numbers or ids; whether that changed their order.

    What has the same time or number stands in the opposite order where the newest is first, in the
    dialog or, if it has one time only, in the others of the file (`newest_first`); where there is
    no order at all, the user speaks before the bot.
    """
    keys = order_keys(dialog)
    if is_threaded(dialog):
        return False
    if newest_first and len(keys) > 1 and len(set(keys)) == 1:
        dialog.utterances.reverse()
        return True
    if not keys or keys == sorted(keys):
        return False
    order = list(range(len(keys)))
    if keys == sorted(keys, reverse=True):
        order.reverse()
    else:
        order.sort(key=lambda position: dialog.utterances[position].role != "user")
    order.sort(key=keys.__getitem__)
    dialog.utterances = [dialog.utterances[position] for position in order]
    return True


def order_keys(dialog: Dialog) -> list:
    """What tells the order of utterances: times, numbers, or ids that number them with few gaps."""
    times = [utterance.time for utterance in dialog.utterances]
    numbers = [utterance.number for utterance in dialog.utterances]
    if None in numbers or len(set(numbers)) == 1:
        numbers = []
    if None not in times:
        return list(zip(times, numbers or [0] * len(times), strict=True))
    if numbers or any(times):
        return numbers
    ids = [utterance.id or "" for utterance in dialog.utterances]
    if len(set(ids)) < len(ids) or not all(name.isdecimal() for name in ids):
        return []
    keys = [int(name) for name in ids]
    return keys if keys and max(keys) - min(keys) < 10 * len(keys) else []


def split_at_gaps(dialog: Dialog, gap: timedelta) -> list[Dialog]:
    """The parts of a dialog between pauses that are longer than `gap`."""
    parts: list[list[Utterance]] = []
    before = None
    for utterance in dialog.utterances:
        pause = utterance.time - before if utterance.time and before else timedelta(0)
        if not parts or pause > gap:
            parts.append([])
        parts[-1].append(utterance)
        before = utterance.time or before
    if len(parts) < 2 or is_threaded(dialog):
        return [dialog]
    dialogs = []
    for number, utterances in enumerate(parts, start=1):
        name = f"{dialog.id}.{number}"
        dialogs.append(
            Dialog(
                name,
                utterances,
                dialog.system,
                facts=dialog.facts,
                ratings=dialog.ratings,
            )
        )
    return dialogs


def parse_gap(split: str | None) -> timedelta | None:
    """The pause that an option such as "gap:6h" names; None for other ways to split.

    >>> parse_gap("gap:90m"), parse_gap("blank")
    (datetime.timedelta(seconds=5400), None)
    """
    match = re.fullmatch(r"gap:(?P<count>\d+(\.\d+)?)(?P<unit>[smhd])", split or "")
    if not match:
        return None
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[match["unit"]]
    return timedelta(**{unit: float(match["count"])})


def _is_talk(utterance: Utterance, bots: set[str], report: ImportReport) -> bool:
    """Whether an utterance is of a person or the bot, and in words; what is not is counted."""
    reason = None
    if utterance.speaker not in bots and utterance.role in ("tool", "system"):
        reason = "are of tools or prompts, hidden or deleted"
    elif utterance.text is None or (
        utterance.speaker not in bots and not utterance.text.strip()
    ):
        reason = "have no words (calls of tools, pictures)"
    if reason:
        report.excluded["utterances", reason] += 1
    return reason is None


def _texts_before(utterances: Sequence[Utterance], position: int) -> list[str]:
    """The texts before an utterance, oldest first; an empty reply stands in none."""
    first = max(0, position - MAX_CONTEXT)
    texts = [utterance.text for utterance in utterances[first:position]]
    return [text for text in texts if text.strip()]


def is_threaded(dialog: Dialog) -> bool:
    """Whether utterances say what they answer: all but the first of a tree, or three quarters.

    Where fewer do, as in a messenger, what stands above an utterance is its context.
    """
    if not any(utterance.reply_to for utterance in dialog.utterances):
        return False
    ids = {utterance.id for utterance in dialog.utterances}
    above = [u.reply_to for u in dialog.utterances if u.reply_to not in ids]
    if dialog.is_tree and all(str(name).startswith(NO_PARENT) for name in above):
        return True
    return len(above) <= max(1, len(dialog.utterances) / 4)


def _thread(reply: Utterance, by_id: Mapping[str | None, Utterance]) -> list[str]:
    """The texts that a reply answers, oldest first: its own path to the root of its thread."""
    texts = []
    visited = set()
    parent = by_id.get(reply.reply_to)
    while parent and parent.id not in visited and len(texts) < MAX_CONTEXT:
        visited.add(parent.id)
        has_words = parent.text is not None and parent.text.strip()
        if has_words and parent.role not in ("tool", "system"):
            texts.append(parent.text)
        parent = by_id.get(parent.reply_to)
    return texts[::-1]
