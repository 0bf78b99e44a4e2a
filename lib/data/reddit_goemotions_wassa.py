"""Texts without ratings: Reddit comments, GoEmotions, WASSA essays, pairs of DailyDialog.

Columns of comments, as in the Pushshift dumps: id, parent_id (`t1_` a comment, `t3_` the
submission), link_id, subreddit, author, body, score, controversiality, edited (bool), created_utc
(seconds). User names are replaced by a hash; only "[deleted]" and "AutoModerator" stay readable,
because curation needs them. Deleted and removed bodies are kept: they still count as replies.
"""

import hashlib
import json
import re
from pathlib import Path

import pandas as pd

from lib.data.corpora import account, with_account
from lib.data.storage import DataError, members, path, read_lines
from lib.data.turn_table import turn_table

COLUMNS = ["id", "parent_id", "link_id", "subreddit", "author", "body", "score",
           "controversiality", "edited", "created_utc"]  # fmt: skip
SUBREDDITS = ("Emory", "CollegeRant", "CollegeMajors", "CollegeAdvice")
# Of the essays; the file misspells two.
ESSAYS = {"message_id": "essay", "response_id": "author", "essay": "text",
          "openess": "openness", "empathatic_concern": "empathic_concern"}  # fmt: skip


def reddit_college() -> pd.DataFrame:
    """Read 38,303 comments of four college subreddits (emorynlp/reddit-college) from their threads.

    `score` is net (it can be negative). The source has neither `controversiality` nor `edited`:
    both are missing here. Thread files of other subreddits in the archive are excluded.
    """
    archive = path("reddit_college/reddit-college-86b4acb-subset.tar.gz")
    files = dict(members(archive, re.compile(r"/dat/.*\.json$").search))
    # The two forms of the archive order them differently.
    known = {name: raw for name, raw in sorted(files.items()) if name.split("/")[-2] in SUBREDDITS}
    threads = [_thread(json.loads(raw), name.split("/")[-2]) for name, raw in known.items()]
    others = {"of other subreddits": len(files) - len(known)}
    table = pd.DataFrame([row for rows in threads for row in rows], columns=COLUMNS)
    table["author"] = [pseudonym(row["author"]) for rows in threads for row in rows]
    numbers = dict.fromkeys(["score", "controversiality", "created_utc"], "Int64")
    table = table.astype({"edited": "boolean", **numbers})
    lines = account("thread files", len(known), others), account("comments", len(table))
    return with_account(table, *lines)


def _thread(thread: dict, subreddit: str) -> list[dict]:
    """Flatten the comments of a thread; with a stack, since threads nest to any depth."""
    post, rows = f"t3_{thread['sid']}", []
    stack = [(thread.get("comments", {}), post)]
    while stack:
        comments, parent = stack.pop()
        for key, comment in comments.items():
            rows.append({"id": key, "parent_id": parent, "link_id": post, "subreddit": subreddit,
                         "author": comment.get("author"), "body": comment["text"],
                         "score": comment["upvotes"],
                         "created_utc": comment["created"]})  # fmt: skip
            if "replies" in comment:  # a few comments lack the field
                stack.append((comment["replies"], f"t1_{key}"))
    return rows


def pseudonym(author: str | None) -> str:
    """Return a stable stand-in for a user name.

    >>> pseudonym("[deleted]"), pseudonym(None)
    ('[deleted]', '[deleted]')
    >>> pseudonym("somebody") == pseudonym("somebody") != pseudonym("else")
    True
    """
    if author in (None, "[deleted]", "AutoModerator"):
        return author or "[deleted]"
    digest = hashlib.sha256(author.encode("utf-8", "surrogatepass")).hexdigest()
    return f"user-{digest[:10]}"


def goemotions(split: str = "train") -> pd.DataFrame:
    """Read a split of GoEmotions (Demszky et al. 2020).

    Names and religions are masked upstream as [NAME] and [RELIGION]. Some texts are offensive.

    Args:
        split: "train", "dev" or "test".

    Returns:
        Columns id, text, labels (list of label names; several are allowed).
    """
    if split not in ("train", "dev", "test"):
        raise DataError(f"GoEmotions has no split {split!r}", fix="use train, dev or test")
    names = read_lines(path("goemotions/labels.txt"))
    cells = [line.split("\t") for line in read_lines(path(f"goemotions/{split}.tsv"))]
    table = pd.DataFrame(cells, columns=["text", "labels", "id"])[["id", "text", "labels"]]
    table["labels"] = [[names[int(n)] for n in some.split(",")] for some in table["labels"]]
    return with_account(table, account("comments", len(table)))


def dailydialog_pairs() -> pd.DataFrame:
    """Read 13,105 utterances of DailyDialog's validation split with the reply to each.

    A turn table without ratings. Both speakers are people (`system` "human").
    """
    before, after = (
        read_lines(path(f"dailydialog/dailydialog_valid_{part}.txt")) for part in ("ctx", "res")
    )
    rows = [
        {"system": "human", "dialog": f"dailydialog-{number:05d}",
         "context": [said.strip()], "response": reply.strip()}
        for number, (said, reply) in enumerate(zip(before, after, strict=True))
    ]  # fmt: skip
    return with_account(turn_table(rows), account("pairs", len(rows)))


def wassa2022(file: str | Path | None = None) -> pd.DataFrame:
    """Read 1,860 essays by 372 authors, five each, on news articles (WASSA 2022, training split).

    Several rows share an author: group by `author` when you split them.

    Args:
        file: another file in the same layout, with these columns or some; None: the
            registered one, downloaded if need be.

    Returns:
        `essay`, `author`, `text`; of the essay `empathy` and `distress` (1-7) and `emotion`; of its
        author the Big Five (1-7; `stability` is the opposite of neuroticism), the Interpersonal
        Reactivity Index (1-5: `empathic_concern`, `perspective_taking`, `personal_distress`,
        `fantasy`), and what else the file holds.

    Reference: Barriere et al. (2022), WASSA 2022 Shared Task. Buechel et al. (2018), EMNLP.

    >>> from lib import ROOT
    >>> wassa2022(ROOT / "data/sample/essays/essays.tsv")[["author", "agreeableness"]].shape
    (240, 2)
    """
    given = pd.read_csv(file or path("wassa2022/WASSA22_essay_level_train.tsv"), sep="\t")
    if missing := {"response_id", "essay"} - set(given):
        raise DataError(f"there is no column {sorted(missing)}", file=file)
    table = given.rename(columns=lambda name: re.sub("^(personality|iri)_", "", name))
    table = table.rename(columns=ESSAYS)
    return with_account(table, account("essays", len(table)))
