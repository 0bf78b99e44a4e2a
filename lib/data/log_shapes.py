"""Formats that differ only in where things stand: read by their entries in `chat_shapes.toml`."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.data.dialogs import Dialog, Rating, Utterance
from lib.data.log_histories import join_histories
from lib.data.log_messages import choices_of, text_from_json
from lib.data.log_parts import (
    as_script,
    assistant,
    first_words,
    from_json,
    holds_any,
    html_text,
    path_to_root,
    read_ratings,
    text_at,
    to_number,
    user,
    value_at,
    values_at,
    with_replies,
)
from lib.data.log_platforms import forget_people, name_namesakes
from lib.data.log_times import to_time
from lib.data.log_traces import traced_dialog

MEDIA_LINK = re.compile(r"\s*https://t\.co/\w+\Z")
UNIQUE_ID = re.compile(r"(?=.*\d)\S{16,}")  # which no other file has by chance


@dataclass(frozen=True)
class Shape:
    """Where the parts of a dialog stand in a format, as paths (see `values_at`).

    A format has messages of one speaker (`user`, `bot`, `text`), exchanges of both (`asks`,
    `answers`), or requests to a model (`input`, `output`), of which each repeats the history.

    Attributes:
        kind: what the option KIND calls it.
        name: what the report calls it.
        signature: what a record of the format has.
        dialogs: the dialogs of a record; "": the record is one.
        dialog: the id of a dialog, in it.
        messages: the messages of a dialog, in it; "": each record of the file is a message.
        first: what the user said before the messages, in the dialog.
        thread: the id of a dialog, in each of its messages.
        replies: the messages that answer one, in it.
        accounts, account: the accounts of a dialog, and which of them wrote a message; it is then
            found as "account" in the message.
        user, bot, staff: conditions for what the user, the bot and people at its side wrote.
            Without `user` and `bot` the user of this package names the bot.
        people_too: whether people may answer under `bot`, too. Of several names there only those
            of bots, such as "Answer Bot", are bots; the others are unknown.
        drop: a condition for what is left out before anything else.
        not_talk: a condition for what is no talk, as is what is of neither side.
        text, html: the words, and whether they are HTML.
        media: files of a message, for which a link stands at the end of its text.
        marks: a pattern of what stands within texts and is no word, such as marks of sources.
        asides: beginnings of texts that a tool wrote in the name of the user.
        answers_first: whether the bot speaks first in an exchange.
        scripted: whether the replies in a history are none of the model's.
        speaker, time, model, id, parent: of a message, or else of its dialog.
        tree: whether all messages but the first ones have a parent, the user's too.
        current: the id of the last message of the branch that is shown, in the dialog.
        number: the place of a message in its dialog.
        newest_first: whether messages without times stand in the opposite order.
        histories: whether each record may repeat what was said so far.
        rating: a person's rating of a reply.
        rated: a person's rating of a dialog, in it.
    """

    kind: str
    name: str
    signature: tuple[str, ...]
    dialogs: str = ""
    dialog: str = ""
    messages: str = ""
    thread: str = ""
    first: str = ""
    replies: str = ""
    accounts: str = ""
    account: str = ""
    user: str = ""
    bot: str = ""
    staff: str = ""
    people_too: bool = False
    drop: str = ""
    not_talk: str = ""
    text: str = ""
    html: bool = False
    media: str = ""
    marks: str = ""
    asides: tuple[str, ...] = ()
    asks: str = ""
    answers: str = ""
    answers_first: bool = False
    input: str = ""
    output: str = ""
    scripted: bool = False
    speaker: str = ""
    time: str = ""
    model: str = ""
    id: str = ""
    parent: str = ""
    tree: bool = False
    current: str = ""
    number: str = ""
    newest_first: bool = False
    histories: bool = False
    rating: str = ""
    rated: str = ""

    @property
    def by_record(self) -> bool:
        """Whether each record holds whole dialogs, and is read by itself."""
        return bool(self.messages)

    def __call__(self, records: list[dict], source) -> list[Dialog]:
        """The dialogs in the records of a file."""
        dialogs = self.read(records, source)
        name_namesakes(dialogs)
        if self.people_too and not source.report.options.bot:
            forget_people(dialogs)
        return dialogs

    def read(self, records: list[dict], source) -> list[Dialog]:
        """The dialogs, before people who answer as the bot does are told from it."""
        if self.input:
            requests = []
            for record in records:
                requests += self.requests(record, source)
            return join_histories(requests, source)
        if self.histories:
            states = []
            for record in records:
                name = text_at(record, self.dialog) or ""
                state: dict[str, Dialog] = {}
                self.add_messages(state, record, name, source)
                states += state.values()
            dialogs = join_histories(states, source, by_session=True)
            for number, dialog in enumerate(dialogs, start=1):
                dialog.id = dialog.id or str(number)
            return dialogs
        dialogs: dict[str, Dialog] = {}
        if not self.messages:
            self.add_messages(dialogs, {"rows": records}, source.stem, source)
            if all(map(UNIQUE_ID.fullmatch, dialogs)) and source.stem not in dialogs:
                # An exporter that cuts its files by time cuts through dialogs.
                source.spans_files = True
                for dialog in dialogs.values():
                    dialog.spans_files = True
                    dialog.id = f"{source.folder}/{dialog.id}".lstrip("/")
            return list(dialogs.values())
        for number, record in enumerate(records, start=1):
            for position, part in enumerate(values_at(record, self.dialogs), start=1):
                name = text_at(part, self.dialog)
                if not name:
                    name = self.name_by_place(number, position) or source.stem
                self.add_messages(dialogs, part, name, source)
        return list(dialogs.values())

    def name_by_place(self, record: int, part: int) -> str | None:
        """The name of a dialog without an id; None where threads, or the whole file, are one."""
        if self.thread:
            return None
        return f"{record}.{part}" if self.dialogs else f"{record}"

    def requests(self, record: Mapping[str, Any], source) -> list[Dialog]:
        """What was sent to a model, and what came back: a dialog for each choice."""
        dialogs: list[Dialog] = []
        value = value_at(record, self.output)
        choices = choices_of(from_json(value))
        if len(choices) < 2:
            choices = [value]
        for output in choices:
            if self.output and text_from_json(output) is None:
                source.exclude("dialogs", "are requests without a reply in words")
                continue
            dialog = traced_dialog(
                text_at(record, self.thread) or "",
                value_at(record, self.input),
                output=output,
                time=value_at(record, self.time),
                model=text_at(record, self.model),
            )
            if len(dialog.utterances) < 2:
                source.exclude("dialogs", "are replies, and nothing says to what")
                continue
            if self.scripted or dialogs:
                dialog.utterances[:-1] = as_script(dialog.utterances[:-1])
            if dialog.utterances:
                dialog.utterances[-1].ratings += read_ratings(record)
            dialogs.append(dialog)
        return dialogs

    def add_messages(
        self, dialogs: dict[str, Dialog], part: Mapping[str, Any], name: str, source
    ) -> None:
        """Add the messages of a part of a record to their dialogs."""
        messages = self.messages_of(part)
        kept = [message for message in messages if not holds_any(message, self.drop)]
        source.exclude(
            "utterances", "are asides and notices", len(messages) - len(kept)
        )
        if self.current:
            kept = self.current_branch(kept, text_at(part, self.current), source)
        question = first_words(part, self.first) if self.first else None
        if question:
            dialogs.setdefault(name, Dialog(name, [user(question)]))
        if self.messages and not self.thread and isinstance(part, dict):
            ratings = dialogs.setdefault(name, Dialog(name, [])).ratings
            ratings += read_ratings(part)
            opinion = value_at(part, self.rated)
            if opinion is not None:
                ratings.append(Rating(None, "rating", opinion))
        known = set()  # utterances that have an id, each with its thread
        for message in kept:
            thread = text_at(message, self.thread) or name
            dialog = dialogs.setdefault(thread, Dialog(thread, []))
            if self.tree and text_at(message, self.parent):
                dialog.is_tree = True
            if self.asks:
                for utterance in self.exchange(message):
                    if (thread, utterance.id) not in known:
                        dialog.utterances.append(utterance)
                    if utterance.id:
                        known.add((thread, utterance.id))
            else:
                dialog.utterances.append(self.utterance(message, part))

    def current_branch(
        self, messages: list[dict], last: str | None, source
    ) -> list[dict]:
        """The messages up to the one that the dialog names as its last; all where it names none."""
        nodes = {text_at(message, self.id): message for message in messages}
        if last is None or last not in nodes:
            return messages
        parents = {name: text_at(node, self.parent) for name, node in nodes.items()}
        path = path_to_root(last, parents)
        source.count_branches(nodes, path)
        on_path = set(path)
        return [message for message in messages if text_at(message, self.id) in on_path]

    def messages_of(self, part: Mapping[str, Any]) -> list[dict]:
        """The messages of a part of a record, with their accounts, in their order."""
        items = values_at(part, self.messages or "rows[]")
        messages = [item for item in items if isinstance(item, dict)]
        if self.replies:
            messages = with_replies(messages, self.replies)
        if self.accounts:
            accounts = {
                text_at(item, "id|agentId"): item
                for item in values_at(part, self.accounts)
            }
            messages = [
                {**message, "account": accounts.get(text_at(message, self.account))}
                for message in messages
            ]
        if self.newest_first and not self.is_oldest_first(messages):
            messages.reverse()
        return self.sorted_exchanges(messages) if self.asks else messages

    def is_oldest_first(self, messages: list[dict]) -> bool:
        """Whether the times of messages rise from the first to the last."""
        times = [to_time(value_at(message, self.time)) for message in messages]
        return None not in times and times[:1] < times[-1:] and times == sorted(times)

    def sorted_exchanges(self, messages: list[dict]) -> list[dict]:
        """Exchanges by their numbers or times, where all have one."""
        for path, parse in ((self.number, to_number), (self.time, to_time)):
            keys = [parse(value_at(message, path)) for message in messages]
            if None not in keys:
                order = sorted(range(len(keys)), key=keys.__getitem__)
                return [messages[position] for position in order]
        return messages

    def utterance(
        self, message: Mapping[str, Any], part: Mapping[str, Any]
    ) -> Utterance:
        """The utterance in a message."""
        role = self.role(message)
        text = first_words(message, self.text)
        # Teams says of each text whether it is HTML.
        if self.html and value_at(message, "body.contentType") != "text":
            text = html_text(text)
        if self.media and values_at(message, self.media):
            text = MEDIA_LINK.sub("", text or "")
        if self.marks and text:
            text = re.sub(self.marks, "", text, flags=re.S).strip()
        if text and text.lstrip().startswith(self.asides):
            role = "tool"
        model = text_at(message, self.model) or text_at(part, self.model)
        speaker = text_at(message, self.speaker) or {None: "staff"}.get(role, role)
        time = value_at(message, self.time)
        utterance = Utterance(
            speaker=speaker,
            role=role,
            text=text or None,
            time=to_time(time),
            written=time if isinstance(time, str) else None,
            number=to_number(value_at(message, self.number)),
            id=text_at(message, self.id),
            reply_to=text_at(message, self.parent),
            system=model if role == "assistant" else None,
        )
        if role == "assistant":
            utterance.ratings = self.ratings(message)
        return utterance

    def role(self, message: Mapping[str, Any]) -> str | None:
        """Who wrote a message: "user", "assistant", "tool" (no talk) or None (unknown or staff)."""
        if holds_any(message, self.not_talk):
            return "tool"
        if holds_any(message, self.bot):
            return "assistant"
        if holds_any(message, self.user):
            return "user"
        if self.user and not holds_any(message, self.staff):
            return "tool"
        return "user" if self.bot and not self.staff else None

    def exchange(self, message: Mapping[str, Any]) -> list[Utterance]:
        """What the user asked and what the bot answered."""
        time = to_time(value_at(message, self.time))
        reply = assistant(first_words(message, self.answers), time=time)
        reply.system = text_at(message, self.model)
        reply.ratings = self.ratings(message)
        question = first_words(message, self.asks)
        reply.id = text_at(message, self.id)
        if not question:
            return [reply]
        if self.answers_first:
            return [reply, user(question, time=time)]
        asked = user(question, time=time)
        if self.parent:
            # An answer that was generated again belongs to the question of the first.
            asked.reply_to = text_at(message, self.parent)
            asked.id = f"question {asked.reply_to} {question}"
            reply.reply_to = asked.id
        return [asked, reply]

    def ratings(self, message: Mapping[str, Any]) -> list[Rating]:
        """The rating of a reply, where there is one."""
        value = value_at(message, self.rating)
        return [] if value is None else [Rating(None, "feedback", value)]


def load_shapes() -> list[Shape]:
    """The entries of `chat_shapes.toml`."""
    file = Path(__file__).with_name("chat_shapes.toml")
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["shape"]
    shapes = []
    for entry in entries:
        for name in ("signature", "asides"):
            entry[name] = tuple(entry.get(name, ()))
        shapes.append(Shape(**entry))
    return shapes


SHAPES = load_shapes()
