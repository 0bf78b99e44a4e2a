"""Which speaker of a dialog is the bot, and its replies as rows of the turn table.

Dialogs are those of `lib.data.chat_logs`, whatever their format was.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.data.file_contents import Reading
from lib.data.storage import DataError, nearest

MOST = 200  # earlier utterances that a context keeps
ROLES = {
    "bot": "assistant bot chatbot gpt chatgpt model ai llm agent system wizard machine",
    "user": "user human customer client usr visitor guest prompter apprentice worker you",
    "neither": "tool tools function observation developer prompt context",
}


def role(name: str) -> str | None:
    """What the name of a speaker tells: "bot", "user", "neither" or nothing.

    >>> [role(name) for name in ("Chatbot 2", "user_7", "tool", "Ada")]
    ['bot', 'user', 'neither', None]
    """
    words = set(re.findall(r"[^\W\d_]+", name.lower()))
    return next((kind for kind in ROLES if words & set(ROLES[kind].split())), None)


def bots(talk: Sequence[dict], reading: Reading) -> set[str]:
    """The speakers that are the bot: as said, by their roles, or whoever is not the user.

    Raises:
        DataError: where nothing tells, with the speakers to choose from.
    """
    roles = {one["speaker"]: one["role"] for dialog in talk for one in dialog["said"]}
    kinds, why = {name: role(roles[name]) for name in roles}, "by the name of the role"
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
        hint = nearest(asked, map(str.lower, roles)) or f"the speakers are {speakers}"
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
                   "context": _context(said, place, by_id), "reference": one.get("reference", []),
                   "fact": dialog["fact"], **one["marks"], **dialog["marks"]}  # fmt: skip


def _counts(one: Mapping[str, Any], found: set[str], reading: Reading) -> bool:
    """Whether an utterance is talk: of a person or the bot, and in words."""
    tool = one["speaker"] not in found and role(one["role"]) == "neither"
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
