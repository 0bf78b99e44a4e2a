"""Write the sample of Reddit comments: invented people, invented talk, the format of the dumps.

    python -m scripts.write_sample_comments

A comment has a hidden quality between 0 and 1. Better ones say more, ask more, and receive more,
longer and warmer replies and more votes: what EnDex assumes of people, built in by hand. So the
sample shows how the pipeline works, and nothing about people.
"""

import json
import random
from pathlib import Path

import zstandard

FOLDER = Path(__file__).parents[1] / "data" / "sample" / "reddit"
MONTHS = {
    "RC_2020-01.zst": (1_577_836_800, 620),
    "RC_2020-02.ndjson": (1_580_515_200, 26),
}
MONTH = 29 * 86_400

TOPICS = {
    "slowbaking": (
        ["sourdough starter", "rye loaf", "cinnamon bun", "plum tart", "butter biscuit"],
        ["let the dough rest overnight", "lower the heat after ten minutes",
         "weigh the flour instead of scooping it", "fold in the butter while it is cold",
         "keep a bowl of water in the oven"],
        ["my grandmother", "the bakery on our corner", "a friend from work", "my neighbour"],
    ),
    "weekendtrails": (
        ["ridge path", "lake loop", "night walk", "railway trail", "coast route"],
        ["start before sunrise", "carry twice the water you think you need",
         "leave the map open on the last page", "take the longer way around the marsh",
         "turn back when the clouds drop"],
        ["a ranger", "my walking club", "two strangers at the hut", "my sister"],
    ),
    "pixelattic": (
        ["handheld console", "text adventure", "racing cartridge", "pinball board", "boss fight"],
        ["save before the second bridge", "clean the contacts with a soft brush",
         "listen for the sound before the trap", "draw your own map on paper",
         "lower the speed in the first lap"],
        ["my older brother", "the repair shop", "a collector I met", "my cousin"],
    ),
    "windowgreens": (
        ["fern", "basil pot", "white orchid", "string of pearls", "lemon seedling"],
        ["water it from below", "turn the pot a little every week",
         "mix bark into the soil", "keep it away from the radiator",
         "cut above the second leaf"],
        ["my aunt", "the market gardener", "a botanist on the train", "my flatmate"],
    ),
}  # fmt: skip

OPENERS = [
    "What is your best advice for a {thing}?",
    "Finally finished my first {thing} today.",
    "Is a {thing} worth the effort for a beginner?",
    "Three things I learned about the {thing}.",
]
DULL = [
    *(
        "Okay.",
        "Same here.",
        "Not sure about that.",
        "I guess so.",
        "Maybe.",
        "Yes, a {thing}.",
    ),
    *("It is what it is.", "No idea.", "Seen that before.", "Fine, whatever.", "Sure."),
]
TELLING = [
    "Last spring {person} showed me how to {tip}, and the {thing} turned out twice as good.",
    "The trick with any {thing} is to {tip}; it took me four failed tries to believe it.",
    "When I was nine, {person} promised me a {thing} if I could {tip} without help.",
    "I keep a notebook, and the page about the {thing} just says: {tip}.",
    "Nobody believed me until {person} tried to {tip} and came back grinning.",
    "There is a small museum near the harbour with a {thing} older than the town hall.",
    "My first {thing} ended in smoke, tears and a very loud alarm at midnight.",
]
ASKING = ["Have you ever tried to {tip}?", "What would you do differently next time?",
          "Who taught you about the {thing} in the first place?",
          "How did {person} react to your {thing}?"]  # fmt: skip
WARM = ["I love this, thank you so much!", "This made my day, what a wonderful story!",
        "Great idea, I am so excited to try it!", "That is hilarious, I laughed out loud.",
        "Amazing, congratulations, you should be proud!", "So glad you shared this!"]  # fmt: skip
COOL = ["I disagree, that never works.", "That sounds sad and boring.", "Ugh, I hate that.",
        "This is wrong and a bit annoying.", "I was disappointed with mine."]  # fmt: skip
PLAIN = ["I read it twice.", "The shop opens at nine.", "Mine stands in the kitchen.",
         "It was Tuesday when I did that.", "There are two kinds of it."]  # fmt: skip
BOT = "I am a bot, and this note was written by a script. Please read the rules of this forum."


def fill(rng: random.Random, sentence: str, topic: str) -> str:
    things, tips, people = TOPICS[topic]
    return sentence.format(
        thing=rng.choice(things), tip=rng.choice(tips), person=rng.choice(people)
    )


def write_text(
    rng: random.Random, topic: str, quality: float, parent: float | None
) -> str:
    """A reaction to the parent's quality, then as much as the own one gives."""
    said = []
    if parent is not None:
        warm, cool = 0.15 + 0.6 * parent, 0.35 * (1 - parent)
        kind = rng.random()
        said.append(
            rng.choice(WARM if kind < warm else COOL if kind < warm + cool else PLAIN)
        )
        said += rng.sample(PLAIN, k=int(rng.random() < parent))
    if quality < 0.35:
        said.append(rng.choice(DULL))
    else:
        said += rng.sample(TELLING, k=1 + int(3 * (quality - 0.3)))
    if rng.random() < quality - 0.2:
        said.append(rng.choice(ASKING))
    if parent is not None and rng.random() < 0.6 * parent:
        said.append(rng.choice(TELLING))  # a good comment draws a longer answer
    return " ".join(fill(rng, sentence, topic) for sentence in said)


def grow(rng: random.Random, start: int, number: int) -> list[dict]:
    """The comments of one thread, in time order."""
    topic = rng.choice(list(TOPICS))
    link = f"t3_s{number:04d}"
    exposure = rng.lognormvariate(0, 0.6)
    waiting = [
        (link, None, start + rng.randrange(MONTH), 0) for _ in range(rng.randint(1, 4))
    ]
    comments = []
    while waiting and len(comments) < 40:
        parent_id, parent, after, depth = waiting.pop(0)
        quality = rng.random()
        when = after + rng.randint(60, 20_000)
        name = f"c{number:04d}{len(comments):02d}"
        body = write_text(rng, topic, quality, parent)
        if depth == 0:
            body = fill(rng, rng.choice(OPENERS), topic) + " " + body
        votes = (
            round(exposure * (1 + 8 * quality * quality) * rng.lognormvariate(0, 0.5))
            - 1
        )
        comments.append(record(rng, name, parent_id, link, topic, body, votes, when))
        replies = min(
            4, int(rng.expovariate(1 / (0.25 + 1.5 * quality * exposure**0.5)))
        )
        if depth < 7:
            waiting += [
                (f"t1_{name}", quality, when, depth + 1) for _ in range(replies)
            ]
    return comments


def record(rng, name, parent, link, topic, body, votes, when) -> dict:
    """One line of the dump, with the irregularities of real ones."""
    author, edited, hidden = (
        f"{rng.choice('abcdefgh')}_walker_{rng.randrange(60)}",
        False,
        False,
    )
    trap = rng.random()
    if trap < 0.02:
        author, body = "[deleted]", "[deleted]"
    elif trap < 0.03:
        body = "[removed]"
    elif trap < 0.05:
        author, body = "AutoModerator", BOT
    elif trap < 0.07:
        body = "&gt; " + body.split(". ")[0] + "\n\nThat is what I meant."
    elif trap < 0.13:
        edited = when + 400
    elif trap < 0.14:
        edited = float(when + 900)
    elif trap < 0.15:
        edited = True
    elif trap < 0.16:
        hidden = True
    if rng.random() < 0.02:
        votes = -rng.randint(3, 15)
    return {
        "author": author, "body": body, "controversiality": int(rng.random() < 0.03),
        "created_utc": when if rng.random() < 0.8 else str(when), "distinguished": None,
        "edited": edited, "gilded": 0, "id": name, "link_id": link, "parent_id": parent,
        "retrieved_on": when + 86_400, "score": votes, "score_hidden": hidden,
        "subreddit": topic,
    }  # fmt: skip


def main() -> None:
    """Write both months; the same bytes each time."""
    rng, number = random.Random(2022), 0
    for name, (start, threads) in MONTHS.items():
        comments = []
        for _ in range(threads):
            comments += grow(rng, start, number)
            number += 1
        comments = [
            c for c in comments if rng.random() > 0.01
        ]  # of some parents no record
        comments.sort(key=lambda comment: float(comment["created_utc"]))
        lines = [json.dumps(comment) for comment in comments]
        lines.insert(
            len(lines) // 2, lines[0][: len(lines[0]) // 2]
        )  # one line cut off
        data = ("\n".join(lines) + "\n").encode()
        if name.endswith(".zst"):
            data = zstandard.ZstdCompressor(level=19).compress(data)
        (FOLDER / name).write_bytes(data)
        print(name, len(comments), "comments", len(data), "bytes")


if __name__ == "__main__":
    main()
