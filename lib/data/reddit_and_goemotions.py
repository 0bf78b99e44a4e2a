"""Other texts: Reddit comments in one table, GoEmotions, pairs of DailyDialog, WASSA essays.

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

from lib.data.corpus import account, with_report
from lib.data.downloads import members, path, read_lines
from lib.data.errors import DataError
from lib.data.turn_table import turn_table

COLUMNS = ["id", "parent_id", "link_id", "subreddit", "author", "body", "score",
           "controversiality", "edited", "created_utc"]  # fmt: skip
SUBREDDITS = ("Emory", "CollegeRant", "CollegeMajors", "CollegeAdvice")
# Columns of the essays by their name in the file, which misspells two of them.
ESSAYS = {"message_id": "essay", "response_id": "author", "essay": "text",
          "empathy": "empathy", "distress": "distress",
          "personality_agreeableness": "agreeableness",
          "personality_conscientiousness": "conscientiousness",
          "personality_extraversion": "extraversion", "personality_openess": "openness",
          "personality_stability": "stability", "iri_empathatic_concern": "empathic_concern",
          "iri_perspective_taking": "perspective_taking",
          "iri_personal_distress": "personal_distress", "iri_fantasy": "fantasy"}  # fmt: skip


def reddit_college() -> pd.DataFrame:
    """Read 38,303 comments of four college subreddits (emorynlp/reddit-college) from their threads.

    `score` is net (it can be negative). The source has neither `controversiality` nor `edited`:
    both are missing here. Thread files of other subreddits in the archive are excluded.
    """
    archive = path("reddit_college/reddit-college-86b4acb-subset.tar.gz")
    files = dict(members(archive, re.compile(r"/dat/.*\.json$").search))
    rows, others = [], 0
    for name, raw in sorted(files.items()):  # the two forms of the archive order them differently
        subreddit = name.split("/")[-2]
        if subreddit in SUBREDDITS:
            rows += _thread(json.loads(raw), subreddit)
        else:
            others += 1
    threads = account("thread files", len(files) - others, {"of other subreddits": others})
    return with_report(_comments(rows), threads, account("comments", len(rows)))


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


def rumoureval() -> pd.DataFrame:
    """Read 665 comments of 25 threads (RumourEval 2019), as the Reddit API returned them.

    Stubs of kind "more", which stand for comments that were not fetched, are excluded.
    """
    archive = path("reddit_rumoureval2019/rumoureval-2019-reddit-test-data.tar.gz")
    reply = re.compile(r"reddit-test-data/.*/replies/.*\.json$")  # the whole archive has tweets too
    records = [json.loads(raw) for _, raw in sorted(members(archive, reply.search))]
    rows = [_dumped(record["data"]) for record in records if record["kind"] != "more"]
    stubs = {'are stubs of kind "more"': len(records) - len(rows)}
    return with_report(_comments(rows), account("comments", len(rows), stubs))


def pushshift_sample() -> pd.DataFrame:
    """Read 27 comments from six generations of Pushshift dumps: one JSON object per line."""
    lines = read_lines(path("pushshift_sample/test_comments.json"))
    table = _comments([_dumped(json.loads(line)) for line in lines if line.strip()])
    return with_report(table, account("comments", len(table)))


def _dumped(record: dict) -> dict:
    """Take a row from a dump, where `edited` is false or the time of the edit.

    `created_utc` is a number or a string of digits, depending on the year of the dump.
    """
    row = {name: record.get(name) for name in COLUMNS}
    edited = row["edited"] not in (None, False, "false", 0)
    return row | {"edited": edited, "created_utc": int(float(row["created_utc"]))}


def _comments(rows: list[dict]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["author"] = [pseudonym(row.get("author")) for row in rows]
    numbers = dict.fromkeys(["score", "controversiality", "created_utc"], "Int64")
    return table.astype({"edited": "boolean", **numbers})


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
    rows = []
    for line in read_lines(path(f"goemotions/{split}.tsv")):
        text, labels, key = line.split("\t")
        rows.append((key, text, [names[int(number)] for number in labels.split(",")]))
    table = pd.DataFrame(rows, columns=["id", "text", "labels"])
    return with_report(table, account("comments", len(rows)))


def dailydialog_pairs() -> pd.DataFrame:
    """Read 13,105 utterances of DailyDialog's validation split with the reply to each.

    A turn table without ratings. Both speakers are people (`system` "human").
    """
    before, after = (
        read_lines(path(f"dailydialog/dailydialog_valid_{part}.txt")) for part in ("ctx", "res")
    )
    rows = [
        {"system": "human", "dialog": f"dailydialog-{number:05d}", "turn": 1,
         "context": [said.strip()], "response": reply.strip()}
        for number, (said, reply) in enumerate(zip(before, after, strict=True))
    ]  # fmt: skip
    return with_report(turn_table(rows), account("pairs", len(rows)))


def wassa2022(file: str | Path | None = None) -> pd.DataFrame:
    """Read 1,860 essays by 372 authors, five each, on news articles (WASSA 2022, training split).

    Several rows share an author: group by `author` when you split them.

    Args:
        file: another file in the same layout, with all of its columns or some; None: the
            registered one, downloaded if need be.

    Returns:
        essay, author, text; of the essay `empathy` and `distress` (1-7); of its author the Big Five
        (1-7; `stability` is the opposite of neuroticism) and the Interpersonal Reactivity Index
        (1-5): `empathic_concern`, `perspective_taking`, `personal_distress`, `fantasy`.

    Reference: Barriere et al. (2022), WASSA 2022 Shared Task. Buechel et al. (2018), EMNLP.

    >>> from lib import ROOT
    >>> wassa2022(ROOT / "data/sample/essays/essays.tsv").columns.tolist()
    ['essay', 'author', 'text', 'empathy', 'distress', 'agreeableness', 'empathic_concern']
    """
    given = pd.read_csv(file or path("wassa2022/WASSA22_essay_level_train.tsv"), sep="\t")
    if missing := {"response_id", "essay"} - set(given):
        raise DataError(f"there is no column {sorted(missing)}", file=file)
    table = given[[name for name in ESSAYS if name in given]].rename(columns=ESSAYS)
    return with_report(table, account("essays", len(table)))
