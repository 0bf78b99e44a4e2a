"""Real Reddit comments in one table, whatever the record format they come in.

Columns, as in the Pushshift dumps: id, parent_id (`t1_` a comment, `t3_` the submission), link_id,
subreddit, author, body, score, controversiality, edited (bool), created_utc (seconds). User names
are replaced by a hash; only "[deleted]" and "AutoModerator" stay readable, because curation needs
them. Deleted and removed bodies are kept: they still count as replies.
"""

import hashlib
import math
import re

import pandas as pd

from lib.data.corpora import records
from lib.data.corpora.archives import members
from lib.data.corpora.labelled_texts import with_report
from lib.data.corpora.tables import Account
from lib.data.dialogues.errors import DataError
from lib.data.dialogues.files import decode, parse_json, read_json_lines

COLUMNS = ["id", "parent_id", "link_id", "subreddit", "author", "body", "score",
           "controversiality", "edited", "created_utc"]  # fmt: skip
REPLY = re.compile(r"reddit-test-data/.*/replies/.*\.json$")
READABLE = {"[deleted]", "AutoModerator"}
COLLEGE = "reddit_college/reddit-college-86b4acb-subset.tar.gz"
RUMOUR = "reddit_rumoureval2019/rumoureval-2019-reddit-test-data.tar.gz"
SUBREDDITS = ("Emory", "CollegeRant", "CollegeMajors", "CollegeAdvice")


def college(fetch, subreddits=SUBREDDITS) -> pd.DataFrame:
    """38,303 comments of four college subreddits (emorynlp/reddit-college), nested in threads.

    `score` is net (it can be negative). The source has neither `controversiality` nor `edited`:
    both are missing here. Thread files of other subreddits in the archive are set aside.
    """
    path, account, rows = fetch(COLLEGE), Account(), []

    def ours(name: str) -> bool:
        """Whether a member is a thread of a wanted subreddit; threads of others are counted."""
        if "/dat/" not in name or not name.endswith(".json"):
            return False
        account.read("thread files")
        known = name.split("/")[-2] in subreddits
        account.set_aside("thread files", "of other subreddits", 0 if known else 1)
        return known

    wanted = dict(members(path, ours))
    for name, raw in sorted(wanted.items()):  # the two forms of the archive order them differently
        place = {"file": f"{path}:{name}", "row": None}
        thread = parse_json(decode(raw, place["file"]), place["file"])
        post = "t3_" + records.get(thread, "sid", str, **place)
        shared = {"link_id": post, "subreddit": name.split("/")[-2]}
        _walk(thread, "comments", post, shared, rows, place)
    account.read("comments", len(rows))
    table = _frame(rows)
    report = account.table({"comments": len(table), "thread files": len(wanted)})
    table.attrs["report"] = report.to_dict("records")
    return table


def _walk(node: dict, field: str, parent: str, shared: dict, rows: list, place: dict) -> None:
    """Append the comments below a node; iterative, since threads nest to any depth."""
    stack = [(records.get(node, field, dict, **place), parent)] if field in node else []
    while stack:
        comments, parent = stack.pop()
        for key, comment in comments.items():
            rows.append(_college_row(comment, key, parent, shared, place))
            if "replies" in comment:  # a few comments lack the field
                stack.append((records.get(comment, "replies", dict, **place), f"t1_{key}"))


def _college_row(comment, key: str, parent: str, shared: dict, place: dict) -> dict:
    author = comment.get("author") if isinstance(comment, dict) else None
    return {
        **shared,
        "id": key,
        "parent_id": parent,
        "author": pseudonym(author, place),
        "body": records.get(comment, "text", str, **place),
        "score": records.get(comment, "upvotes", int, **place),
        "created_utc": records.get(comment, "created", int, **place),
    }


def rumoureval(fetch) -> pd.DataFrame:
    """665 Reddit comments of 25 threads (RumourEval 2019), as the Reddit API returned them.

    Reads the repacked `.tar.gz` and the upstream `.zip` (whose tweets are ignored). Stubs of kind
    "more", which stand for comments that were not fetched, are set aside.
    """
    path, account, rows = fetch(RUMOUR), Account(), []
    wanted = dict(members(path, REPLY.search))
    for name, raw in sorted(wanted.items()):  # the two forms of the archive order them differently
        place = {"file": f"{path}:{name}", "row": None}
        record = parse_json(decode(raw, place["file"]), place["file"])
        account.read("comments")
        if records.get(record, "kind", str, **place) == "more":
            account.set_aside("comments", 'are stubs of kind "more"')
            continue
        rows.append(comment_row(records.get(record, "data", dict, **place), place))
    return with_report(_frame(rows), "comments", account)


def pushshift(fetch) -> pd.DataFrame:
    """27 comments from six generations of Pushshift dumps: one JSON object per line."""
    path = fetch("pushshift_sample/test_comments.json")
    rows = [comment_row(record, {"file": path, "row": number})
            for number, record in enumerate(read_json_lines(path), start=1)]  # fmt: skip
    return with_report(_frame(rows), "comments")


def comment_row(record: dict, place: dict) -> dict:
    """One dump record as a row. `created_utc` is a number or a string of digits, `edited` is
    false or the time of the edit, depending on the year of the dump."""
    row = {name: records.get(record, name, str, **place)
           for name in ("id", "parent_id", "link_id", "subreddit", "body")}  # fmt: skip
    created = record.get("created_utc")
    try:
        seconds = float(created)
        if isinstance(created, bool) or not math.isfinite(seconds):
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"is {created!r:.40}, not a time", **place, column="created_utc") from error
    edited = record.get("edited", False)
    return row | {
        "author": pseudonym(record.get("author"), place),
        "score": records.get(record, "score", int, **place),
        "controversiality": records.get(record, "controversiality", int, **place),
        "edited": edited not in (None, False, "false", 0),
        "created_utc": int(seconds),
    }


def pseudonym(author, place: dict) -> str:
    """A stable stand-in for a user name.

    >>> pseudonym("[deleted]", {}), pseudonym(None, {})
    ('[deleted]', '[deleted]')
    >>> pseudonym("somebody", {}) == pseudonym("somebody", {}) != pseudonym("else", {})
    True
    """
    if author is None or author in READABLE:
        return author or "[deleted]"
    if not isinstance(author, str):
        raise DataError(f"is {author!r:.40}, not a name", **place, column="author")
    digest = hashlib.sha256(author.encode("utf-8", "surrogatepass")).hexdigest()
    return f"user-{digest[:10]}"


def _frame(rows: list[dict]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["edited"] = table["edited"].astype("boolean")
    try:
        for name in ("score", "controversiality", "created_utc"):
            table[name] = table[name].astype("Int64")
    except (OverflowError, TypeError, ValueError) as error:
        raise DataError(f"a number is too large ({error})", column=name) from error
    return table
