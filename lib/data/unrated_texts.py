"""Texts without ratings: Reddit, GoEmotions, WASSA essays, DailyDialog, robustness pairs.

Columns of comments, as in the Pushshift dumps: id, parent_id (`t1_` a comment, `t3_` the
submission), link_id, subreddit, author, body, score, controversiality, edited (bool), created_utc
(seconds). User names are replaced by a hash; only "[deleted]" and "AutoModerator" stay readable,
because curation needs them, and "unknown", where a source names nobody. Deleted and removed bodies
are kept: they still count as replies. What a source lacks is missing here.
"""

import hashlib
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
)
from lib.data.turn_table import turn_table

COLUMNS = ["id", "parent_id", "link_id", "subreddit", "author", "body", "score",
           "controversiality", "edited", "created_utc"]  # fmt: skip
# As other sources name them.
NAMES = {"text": "body", "created": "created_utc", "upvotes": "score", "ups": "score",
         "author_name": "author"}  # fmt: skip
SUBREDDITS = ("Emory", "CollegeRant", "CollegeMajors", "CollegeAdvice")
PAIR = ["perturbation", "dimension", "level", "context", "original", "perturbed"]
HOSTILE = ("anger", "inceltear", "rage", "roastme")  # forums made for insult or fury
COPIES = 5  # a long text that a forum holds more often is a notice of its moderators
# Of the essays; the file misspells two.
ESSAYS = {"message_id": "essay", "response_id": "author", "essay": "text",
          "openess": "openness", "empathatic_concern": "empathic_concern"}  # fmt: skip


def reddit_college() -> pd.DataFrame:
    """Read 38,303 comments of four college subreddits (emorynlp/reddit-college) from their threads.

    `score` is net (it can be negative). The source has neither `controversiality` nor `edited`:
    both are missing here. Thread files of other subreddits in the archive are excluded.
    """
    archive = fetch_file("reddit_college/reddit-college-86b4acb-subset.tar.gz")
    files = dict(archive_members(archive, re.compile(r"/dat/.*\.json$").search))
    # The two forms of the archive order them differently.
    known = {name: raw for name, raw in sorted(files.items()) if name.split("/")[-2] in SUBREDDITS}
    others = {"of other subreddits": len(files) - len(known)}
    table = []
    for name, raw in known.items():
        thread, forum = json.loads(raw), {"subreddit": name.split("/")[-2]}
        rows = _flat(thread.get("comments", {}), thread["sid"], "replies")
        table += [row | forum for row in rows]
    lines = report_row("thread files", len(known), others), report_row("comments", len(table))
    return attach_report(_comments(table), *lines)


def reddit_52_forums() -> pd.DataFrame:
    """Read 45,753 comments of 48 subreddits (adam-mcdaniel/reddit-analysis) from their trees.

    An id is made of forum, post and place in the tree. Times, authors, `controversiality` and
    `edited` are not in the source. Left out are the forums named in `HOSTILE`, and a post that an
    earlier file holds. A comment without text stands for answers that the snapshot did not take.
    Notices of moderators are those of "AutoModerator".
    """
    table, posts, excluded = [], set(), Counter()
    for key in registry()["tables"]["reddit_52_forums"]["files"]:
        forum = read_json(fetch_file(key))
        rows = []
        for number, post in enumerate(forum["posts"]):
            tree = [*_flat(post["comments"], f"{forum['name']}.{number}", "comments")]
            text = post["title"], post["body"]
            if forum["name"] in HOSTILE or text in posts:
                why = "of a hostile forum" if forum["name"] in HOSTILE else "of a post read before"
                excluded[why] += len(tree)
            else:
                rows, posts = rows + tree, posts | {text}
        copies = Counter(row["body"] for row in rows)
        for row in rows:
            notice = len(row["body"]) > 40 and copies[row["body"]] > COPIES
            by = "AutoModerator" if notice or "I am a bot" in row["body"] else "unknown"
            table.append(row | {"subreddit": forum["name"], "author": by})
    note = "no times, authors, edits or controversy; ids by place in the tree"
    return attach_report(_comments(table), report_row("comments", len(table), excluded, note))


def reddit_cmv() -> pd.DataFrame:
    """Read 8,924 comments of ChangeMyView (Habernal et al. 2018), with edits and controversy.

    Chains of three or four comments that end in an insult or in a changed mind: no random sample,
    and nearly every comment has one answer at the most.
    """
    archive = fetch_file("reddit_cmv/sampled-threads-ah-delta-context3.tar.bz2")
    files = archive_members(archive, lambda name: name.endswith(".json"))
    records = [json.loads(line) for _, raw in files for line in raw.decode().splitlines()]
    each = {record["name"]: record for record in records}
    # `created` is the local time of the crawler.
    rows = [{name: record[name] for name in record if name != "created"} for record in each.values()
            if record["name"].startswith("t1_")]  # fmt: skip
    lost = {"in two chains": len(records) - len(each), "submissions": len(each) - len(rows)}
    table = _comments(rows).assign(subreddit="changemyview")
    note = "chains of three or four comments"
    return attach_report(table, report_row("comments", len(rows), lost, note))


def _comments(rows: list[dict]) -> pd.DataFrame:
    table = pd.DataFrame(rows).rename(columns=NAMES).reindex(columns=COLUMNS)
    table["author"] = [pseudonym(author) for author in table["author"].fillna("")]
    numbers = dict.fromkeys(["score", "controversiality", "created_utc"], "Int64")
    return table.astype({"edited": "boolean", **numbers})


def _flat(comments: dict | list, post: str, below: str) -> Iterator[dict]:
    """Every comment of a thread; with a stack, since threads nest to any depth.

    Where comments have no ids, they get one by their place in the tree.
    """
    stack = [(comments, f"t3_{post}")]
    while stack:
        comments, parent = stack.pop()
        if isinstance(comments, list):
            comments = {f"{parent[3:]}.{place}": comment for place, comment in enumerate(comments)}
        for key, comment in comments.items():
            yield comment | {"id": key, "parent_id": parent, "link_id": f"t3_{post}"}
            stack.append((comment.get(below, {}), f"t1_{key}"))


def pseudonym(author: str | None) -> str:
    """Return a stable stand-in for a user name.

    >>> pseudonym("[deleted]"), pseudonym(None)
    ('[deleted]', '[deleted]')
    >>> pseudonym("somebody") == pseudonym("somebody") != pseudonym("else")
    True
    """
    if author in (None, "", "[deleted]", "AutoModerator", "unknown"):
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
    names = read_lines(fetch_file("goemotions/labels.txt"))
    cells = [line.split("\t") for line in read_lines(fetch_file(f"goemotions/{split}.tsv"))]
    table = pd.DataFrame(cells, columns=["text", "labels", "id"])[["id", "text", "labels"]]
    table["labels"] = [[names[int(n)] for n in some.split(",")] for some in table["labels"]]
    return attach_report(table, report_row("comments", len(table)))


def dailydialog_pairs() -> pd.DataFrame:
    """Read 13,105 utterances of DailyDialog's validation split with the reply to each.

    A turn table without ratings. Both speakers are people (`system` "human").
    """
    files = (fetch_file(f"dailydialog/dailydialog_valid_{part}.txt") for part in ("ctx", "res"))
    before, after = map(read_lines, files)
    rows = [
        {"system": "human", "dialog": f"dailydialog-{number:05d}",
         "context": [said.strip()], "response": reply.strip()}
        for number, (said, reply) in enumerate(zip(before, after, strict=True))
    ]  # fmt: skip
    return attach_report(turn_table(rows), report_row("pairs", len(rows)))


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
    given = pd.read_csv(file or fetch_file("wassa2022/WASSA22_essay_level_train.tsv"), sep="\t")
    if missing := {"response_id", "essay"} - set(given):
        raise DataError(f"there is no column {sorted(missing)}", file=file)
    table = given.rename(columns=lambda name: re.sub("^(personality|iri)_", "", name))
    table = table.rename(columns=ESSAYS)
    return attach_report(table, report_row("essays", len(table)))


def robustness_pairs(sample: bool = False) -> pd.DataFrame:
    """Read texts beside the same texts after a perturbation that a good metric should notice.

    The replies are DailyDialog's and PersonaChat's, the dialogs 40 of FED and 200 of DECODE. Pairs
    that the perturbation left as they were are excluded and counted. Several perturbed texts can
    have one original. The contradicting dialogs go on for two utterances where the consistent ones
    end.

    Args:
        sample: read the few pairs written for this project, which have the same form.

    Returns:
        perturbation; dimension, what it should lower, by the authors' folders; level, "turn" or
        "dialog"; context, a list of utterances, empty for a dialog; original and perturbed, a
        reply each, or a list of utterances by turns of the user and the bot. The account is in
        `attrs`.

    Reference: Zhang et al. (2024), A comprehensive analysis of the effectiveness of large language
    models as automatic dialogue evaluators, AAAI 38(17).

    >>> pairs = robustness_pairs(sample=True)
    >>> pairs.loc[0, ["original", "perturbed"]].tolist()
    ['About an hour, if we take the ridge.', 'I never liked the taste of liquorice.']
    """
    rows, lines = [], []
    for name, about in registry()["tables"]["robustness_pairs"]["perturbations"].items():
        keys = about["original"], about["perturbed"]
        files = [DATA / key.replace("comp_analysis", "sample", 1) if sample else fetch_file(key)
                 for key in keys]  # fmt: skip
        if not all(file.is_file() for file in files):  # the sample has some of them
            continue
        found = list(_pairs(about, *files))
        kept = [pair for pair in found if pair[1] != pair[2]]
        rows += [(name, about["dimension"], about["level"], *pair) for pair in kept]
        same = {"left unchanged by the perturbation": len(found) - len(kept)}
        lines.append(report_row(f"pairs: {name}", len(kept), same))
    return attach_report(pd.DataFrame(rows, columns=PAIR), *lines)


def _pairs(about: dict, originals: Path, perturbed: Path) -> Iterator[tuple]:
    """Match each perturbed text with its original: by the number in its id, else row by row."""
    left = [texts for _, texts in _texts(originals, about)]
    for row, (key, worse) in enumerate(_texts(perturbed, about)):
        best = left[int(key[-2:]) if about.get("matched") == "id" else row % len(left)]
        if about["level"] == "dialog":
            yield [], best, worse
        else:  # a few perturbed replies hold a tab
            yield best[:-1], best[-1], " ".join(worse[len(best) - 1 :])


def _texts(file: Path, about: dict) -> Iterator[tuple[str, list[str]]]:
    """Read id and utterances of each line; dialogs lose the speakers before their utterances."""
    if file.suffix == ".json":
        lines = [["", *dialog] for dialog in read_json(file)]
    else:
        lines = [line.split("\t") for line in read_lines(file)]
    named = about["level"] == "dialog" and file.suffix != ".json"
    for key, *rest in lines:
        yield key, [(text.partition(":")[2] if named else text).strip() for text in rest]
