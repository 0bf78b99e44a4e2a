"""Texts without ratings: Reddit, GoEmotions, WASSA essays, DailyDialog, robustness pairs.

Columns of comments, as in the Pushshift dumps: id, parent_id (`t1_` a comment, `t3_` the
submission), link_id, subreddit, author, body, score, controversiality, edited (bool), created_utc
(seconds). User names are replaced by a hash; only "[deleted]" and "AutoModerator" stay readable,
because curation needs them, and "unknown", where a source names nobody. Deleted and removed bodies
are kept: they still count as replies. What a source lacks is missing here.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lib.data.corpora import attach_report, report_row
from lib.data.storage import (
    DATA,
    DataError,
    archive_members,
    fetch_file,
    read_json,
    read_lines,
    registry,
    short_hash,
)
from lib.data.turn_table import turn_table

COMMENT_COLUMNS = [
    "id",
    "parent_id",
    "link_id",
    "subreddit",
    "author",
    "body",
    "score",
    "controversiality",
    "edited",
    "created_utc",
]
# The names of these columns in other sources.
SOURCE_COLUMNS = {
    "text": "body",
    "created": "created_utc",
    "upvotes": "score",
    "ups": "score",
    "author_name": "author",
}
SUBREDDITS = ("Emory", "CollegeRant", "CollegeMajors", "CollegeAdvice")
HOSTILE = ("anger", "inceltear", "rage", "roastme")  # forums made for insult or fury
# A long text with more copies in one forum is a notice of its moderators.
MAX_COPIES = 5
# The file of the essays misspells two columns.
ESSAY_COLUMNS = {
    "message_id": "essay",
    "response_id": "author",
    "essay": "text",
    "openess": "openness",
    "empathatic_concern": "empathic_concern",
}


def reddit_college() -> pd.DataFrame:
    """Read 38,303 comments of four college subreddits (emorynlp/reddit-college) from their threads.

    `score` is net (it can be negative). The source has neither `controversiality` nor `edited`:
    both are missing here. Thread files of other subreddits in the archive are excluded.
    """
    archive = fetch_file("reddit_college/reddit-college-86b4acb-subset.tar.gz")
    rows = []
    # Sorted, because the two forms of the archive have different orders.
    files = sorted(archive_members(archive, r"/dat/.*\.json$"))
    n_excluded = 0
    for name, content in files:
        subreddit = name.split("/")[-2]
        if subreddit not in SUBREDDITS:
            n_excluded += 1
            continue
        thread = json.loads(content)
        for comment in _flatten(thread.get("comments", {}), thread["sid"], "replies"):
            rows.append(comment | {"subreddit": subreddit})
    excluded = {"of other subreddits": n_excluded}
    thread_line = report_row("thread files", len(files) - n_excluded, excluded)
    return attach_report(
        _comment_table(rows), thread_line, report_row("comments", len(rows))
    )


def reddit_52_forums() -> pd.DataFrame:
    """Read 45,753 comments of 48 subreddits from their trees (adam-mcdaniel/reddit-analysis).

    Of the 52 forums of the source, the four in `HOSTILE` are left out, and so are posts that are
    in an earlier file as well. An id is made of forum, post and position in the tree. Times,
    authors, `controversiality` and `edited` are not in the source. A comment without text is kept:
    it is a placeholder for answers that the snapshot lacks. The author of a notice of moderators
    is "AutoModerator".
    """
    rows = []
    posts = set()
    excluded = Counter()
    for key in registry()["tables"]["reddit_52_forums"]["files"]:
        forum = read_json(fetch_file(key))
        name = forum["name"]
        forum_rows = []
        for number, post in enumerate(forum["posts"]):
            comments = list(_flatten(post["comments"], f"{name}.{number}", "comments"))
            text = (post["title"], post["body"])
            if name in HOSTILE:
                excluded["of a hostile forum"] += len(comments)
            elif text in posts:
                excluded["of a post read before"] += len(comments)
            else:
                posts.add(text)
                forum_rows += comments
        copies = Counter(row["body"] for row in forum_rows)
        for row in forum_rows:
            body = row["body"]
            is_copied = len(body) > 40 and copies[body] > MAX_COPIES
            is_notice = is_copied or "I am a bot" in body
            row["subreddit"] = name
            row["author"] = "AutoModerator" if is_notice else "unknown"
        rows += forum_rows
    note = "no times, authors, edits or controversy; ids by place in the tree"
    report_line = report_row("comments", len(rows), excluded, note=note)
    return attach_report(_comment_table(rows), report_line)


def reddit_cmv() -> pd.DataFrame:
    """Read 8,924 comments of ChangeMyView (Habernal et al. 2018), with edits and controversy.

    Chains of three or four comments that end in an insult or in a changed mind: no random sample,
    and nearly every comment has one answer at the most.
    """
    archive = fetch_file("reddit_cmv/sampled-threads-ah-delta-context3.tar.bz2")
    records = []
    for _, content in archive_members(archive, r"\.json$"):
        records += map(json.loads, content.decode().splitlines())
    unique = {record["name"]: record for record in records}
    rows = [record for name, record in unique.items() if name.startswith("t1_")]
    # `created` is the local time of the crawler.
    table = _comment_table(pd.DataFrame(rows).drop(columns="created"))
    table["subreddit"] = "changemyview"
    excluded = {
        "in two chains": len(records) - len(unique),
        "submissions": len(unique) - len(rows),
    }
    note = "chains of three or four comments"
    return attach_report(table, report_row("comments", len(rows), excluded, note=note))


def _comment_table(rows: list | pd.DataFrame) -> pd.DataFrame:
    table = (
        pd.DataFrame(rows)
        .rename(columns=SOURCE_COLUMNS)
        .reindex(columns=COMMENT_COLUMNS)
    )
    table["author"] = table["author"].fillna("").map(pseudonym)
    types = dict.fromkeys(["score", "controversiality", "created_utc"], "Int64")
    return table.astype(types | {"edited": "boolean"})


def _flatten(comments: dict | list, post: str, replies: str) -> Iterator[dict]:
    """Yield every comment of a thread; with a stack, since threads nest to any depth.

    Comments without ids get one from their position in the tree. `replies` is the field that holds
    the replies to a comment.
    """
    stack = [(comments, f"t3_{post}")]
    while stack:
        comments, parent = stack.pop()
        if isinstance(comments, list):
            prefix = parent[3:]
            comments = {
                f"{prefix}.{number}": row for number, row in enumerate(comments)
            }
        for key, comment in comments.items():
            yield comment | {"id": key, "parent_id": parent, "link_id": f"t3_{post}"}
            stack.append((comment.get(replies, {}), f"t1_{key}"))


def pseudonym(author: str) -> str:
    """Return a stable stand-in for a user name.

    >>> pseudonym("[deleted]"), pseudonym("")
    ('[deleted]', '[deleted]')
    >>> pseudonym("somebody") == pseudonym("somebody") != pseudonym("else")
    True
    """
    if author in ("", "[deleted]", "AutoModerator", "unknown"):
        return author or "[deleted]"
    return f"user-{short_hash(author)}"


def goemotions(split: str = "train") -> pd.DataFrame:
    """Read a split of GoEmotions (Demszky et al. 2020).

    Names and religions are masked upstream as [NAME] and [RELIGION]. Some texts are offensive.

    Args:
        split: "train", "dev" or "test".

    Returns:
        Columns id, text, labels (list of label names; several are allowed).
    """
    names = read_lines(fetch_file("goemotions/labels.txt"))
    rows = []
    for line in read_lines(fetch_file(f"goemotions/{split}.tsv")):
        text, numbers, comment_id = line.split("\t")
        labels = [names[int(number)] for number in numbers.split(",")]
        rows.append({"id": comment_id, "text": text, "labels": labels})
    return attach_report(pd.DataFrame(rows), report_row("comments", len(rows)))


def dailydialog_pairs() -> pd.DataFrame:
    """Read 13,105 utterances of DailyDialog's validation split with the reply to each.

    A turn table without ratings. Both speakers are people (`system` "human").
    """
    utterances = read_lines(fetch_file("dailydialog/dailydialog_valid_ctx.txt"))
    replies = read_lines(fetch_file("dailydialog/dailydialog_valid_res.txt"))
    turns = pd.DataFrame(
        {
            "system": "human",
            "dialog": [f"dailydialog-{number:05d}" for number in range(len(replies))],
            "context": [[utterance.strip()] for utterance in utterances],
            "response": [reply.strip() for reply in replies],
        }
    )
    return attach_report(turn_table(turns), report_row("pairs", len(turns)))


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
    file = file or fetch_file("wassa2022/WASSA22_essay_level_train.tsv")
    table = pd.read_csv(file, sep="\t")
    missing = {"response_id", "essay"} - set(table)
    if missing:
        raise DataError(f"there is no column {sorted(missing)}", file=file)
    table = table.rename(columns=lambda name: re.sub("^(personality|iri)_", "", name))
    table = table.rename(columns=ESSAY_COLUMNS)
    return attach_report(table, report_row("essays", len(table)))


def robustness_pairs(sample: bool = False) -> pd.DataFrame:
    """Read texts with the same texts after a perturbation that a good metric should notice.

    The replies are DailyDialog's and PersonaChat's, the dialogs 40 of FED and 200 of DECODE. Pairs
    that the perturbation left unchanged are excluded and counted. Several perturbed texts can have
    one original. The contradicting dialogs are two utterances longer than the consistent ones.

    Args:
        sample: read the few pairs written for this project, which have the same form.

    Returns:
        perturbation; dimension, what it should lower, by the authors' folders; level, "turn" or
        "dialog"; context, a list of utterances, empty for a dialog; original and perturbed, a
        reply each, or a list of utterances, alternately of the user and the bot. The import report
        is in `attrs`.

    Reference: Zhang et al. (2024), A comprehensive analysis of the effectiveness of large language
    models as automatic dialogue evaluators, AAAI 38(17).

    >>> pairs = robustness_pairs(sample=True)
    >>> pairs.loc[0, ["original", "perturbed"]].tolist()
    ['About an hour, if we take the ridge.', 'I never liked the taste of liquorice.']
    """
    rows = []
    lines = []
    for name, entry in registry()["tables"]["robustness_pairs"][
        "perturbations"
    ].items():
        keys = [entry["original"], entry["perturbed"]]
        if sample:
            files = [DATA / key.replace("comp_analysis", "sample", 1) for key in keys]
        else:
            files = [fetch_file(key) for key in keys]
        if not all(file.is_file() for file in files):
            # The sample has only some of them.
            continue
        pairs = list(_pairs(entry, *files))
        changed = [pair for pair in pairs if pair["original"] != pair["perturbed"]]
        labels = {
            "perturbation": name,
            "dimension": entry["dimension"],
            "level": entry["level"],
        }
        rows += [labels | pair for pair in changed]
        excluded = {"left unchanged by the perturbation": len(pairs) - len(changed)}
        lines.append(report_row(f"pairs: {name}", len(changed), excluded))
    return attach_report(pd.DataFrame(rows), *lines)


def _pairs(entry: dict, originals: Path, perturbed: Path) -> Iterator[dict]:
    """Match each perturbed text with its original: by the number in its id, else row by row."""
    is_dialog = entry["level"] == "dialog"
    original_texts = [texts for _, texts in _read_texts(originals, is_dialog)]
    for row, (key, perturbed_texts) in enumerate(_read_texts(perturbed, is_dialog)):
        number = (
            int(key[-2:]) if entry.get("matched") == "id" else row % len(original_texts)
        )
        texts = original_texts[number]
        if is_dialog:
            yield {"context": [], "original": texts, "perturbed": perturbed_texts}
            continue
        *context, reply = texts
        perturbed_reply = " ".join(perturbed_texts[len(context) :])  # a few hold a tab
        yield {"context": context, "original": reply, "perturbed": perturbed_reply}


def _read_texts(file: Path, is_dialog: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the id and the utterances of each line, without the speakers that dialogs name."""
    if file.suffix == ".json":
        for utterances in read_json(file):
            yield "", [utterance.strip() for utterance in utterances]
        return
    for line in read_lines(file):
        key, *utterances = line.split("\t")
        if is_dialog:
            utterances = [utterance.partition(":")[2] for utterance in utterances]
        yield key, [utterance.strip() for utterance in utterances]
