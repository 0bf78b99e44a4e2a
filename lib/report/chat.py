"""A dialog as a chat: its utterances in order, with the ratings and scores beside each reply."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pandas as pd

from lib.report.verdict import KEY

WORD = re.compile(r"(\w+(?:['’]\w+)*)")
USER = "user"
EARLIER = "earlier"  # an utterance of the context whose speaker the file does not tell


@dataclass(frozen=True)
class ChatLine:
    """One utterance of a chat.

    Attributes:
        speaker: name of the system, "user", or "earlier" where the speaker is not known.
        text: what was said.
        values: ratings and scores of a reply, by name; empty for other utterances.
        marked: whether this is the reply in question.
        seen: words that a rule or a lexicon saw in it, in lower case.
    """

    speaker: str
    text: str
    values: Mapping[str, float]
    marked: bool = False
    seen: Collection[str] = ()

    def pieces(self) -> list[tuple[str, bool]]:
        """The text in pieces, and whether each is a word in `seen`, whatever its case.

        >>> ChatLine("user", "So, so good!", {}, seen={"so"}).pieces()
        [('So', True), (', ', False), ('so', True), (' good!', False)]
        """
        pieces: list[tuple[str, bool]] = []
        for piece in WORD.split(self.text):
            is_seen = piece.lower() in self.seen
            if not piece:
                continue
            if pieces and not is_seen and not pieces[-1][1]:
                piece = pieces.pop()[0] + piece
            pieces.append((piece, is_seen))
        return pieces


def chat_lines(
    replies: pd.DataFrame,
    values: pd.DataFrame | None = None,
    marked: Collection = (),
    around: int | None = None,
    seen: Callable[[str], Collection[str]] | None = None,
) -> list[ChatLine]:
    """The utterances of one dialog in order, with the ratings and scores of each reply.

    They are the context of the last reply and that reply; the system's earlier replies stand at
    their turns. The other utterances are the user's if the table holds several replies of the
    dialog, or a single one that answers a single utterance; else their speaker is not known.

    Args:
        replies: rows of the turn table that belong to one dialog of one system.
        values: columns to show beside each reply, on the index of `replies`; a missing value is
            not shown.
        marked: labels of the replies in question.
        around: show only so many utterances before the first marked one and after the last; by
            default the whole dialog.
        seen: the words of a text to underline in the marked replies, in lower case.

    Raises:
        ValueError: the rows are of more than one dialog, or there are none.

    >>> replies = pd.DataFrame({"system": "bot", "agent": "bot", "dialog": "1", "turn": [1, 3],
    ...     "context": [["Hi"], ["Hi", "Hello", "Tea?"]], "response": ["Hello", "Yes"]})
    >>> [(line.speaker, line.text) for line in chat_lines(replies)]
    [('user', 'Hi'), ('bot', 'Hello'), ('user', 'Tea?'), ('bot', 'Yes')]
    """
    if len(replies[KEY].drop_duplicates()) != 1:
        raise ValueError(
            "a chat shows one dialog: choose the rows of one system and dialog"
        )
    last = replies.loc[replies["turn"].idxmax()]
    context = last["context"]
    reply_at: dict[int, object] = {}
    if last["turn"] == len(context):  # else the file numbers its turns in another way
        for label, turn in replies["turn"].items():
            # Of several replies to one context, the one that the dialog went on with.
            went_on = (
                turn < len(context) and context[turn] == replies.at[label, "response"]
            )
            if turn not in reply_at or went_on:
                reply_at[turn] = label
    reply_at[len(context)] = last.name
    speaker_known = len(reply_at) > 1 or len(context) == 1

    lines = []
    for position, text in enumerate([*context, last["response"]]):
        label = reply_at.get(position)
        if label is None:
            other = USER if speaker_known else EARLIER
            lines.append(ChatLine(other, text, values={}))
            continue
        response = replies.at[label, "response"]
        line_values = {}
        if values is not None:
            line_values = values.loc[label].dropna().to_dict()
        words_seen = ()
        if seen and label in marked:
            words_seen = seen(response)
        line = ChatLine(
            speaker=last["system"],
            text=response,
            values=line_values,
            marked=label in marked,
            seen=words_seen,
        )
        lines.append(line)
    if around is None:
        return lines
    marked = [number for number, line in enumerate(lines) if line.marked]
    return lines[max(marked[0] - around, 0) : marked[-1] + around + 1]


def chat_until(
    replies: pd.DataFrame,
    label: object,
    values: pd.DataFrame | None = None,
    *,
    around: int,
    seen: Callable[[str], Collection[str]] | None = None,
) -> list[ChatLine]:
    """The chat that leads to one reply, which is marked.

    Args:
        replies: rows of its dialog; later ones, and other replies to its context, are left out.
        label: of the reply.
        values, seen: as in `chat_lines`.
        around: utterances to show before it.

    >>> replies = pd.DataFrame({"system": "bot", "agent": "bot", "dialog": "1", "turn": [1, 3],
    ...     "context": [["Hi"], ["Hi", "Hello", "Tea?"]], "response": ["Hello", "Yes"]})
    >>> [line.text for line in chat_until(replies, 1, around=1)]
    ['Tea?', 'Yes']
    """
    earlier = replies["turn"] < replies.at[label, "turn"]
    of_dialog = replies[earlier | (replies.index == label)]
    return chat_lines(of_dialog, values, [label], around, seen)
