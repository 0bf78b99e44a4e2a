"""Small files in the formats of the public corpora, written for the tests (no text from them).

`write(folder)` writes all of them, under the keys of `data/corpora.json`.
"""

import csv
import io
import json
import tarfile
from pathlib import Path

from lib.data.storage import registry


def dump(path: Path, value) -> None:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def text(path: Path, content: str) -> None:
    """Write a text file without touching its line ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8"))


def table(path: Path, rows: list[list], delimiter: str = ",") -> None:
    """Write a CSV file as a spreadsheet does: quotes where needed, Windows line ends."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    text(path, buffer.getvalue())


def tar(path: Path, members: dict[str, bytes]) -> None:
    """Write a gzipped tar archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))


RATINGS = ["overall", "interesting", "relevance", "specificity", "understandability"]


def comp_analysis(folder: Path, full: bool = False) -> None:
    """Two Zhao contexts of six responses. `full` writes the upstream rating files, which hold
    other sets as well and lie elsewhere."""
    base = folder / "comp_analysis"
    lines = [f"Z-{n}\tline {n // 6}\tsecond\treply {n}" for n in range(12)]
    text(base / "turn_level_texts/persona-zhao_text.txt", "\n".join(lines) + "\n")
    for name in RATINGS:
        values = {"persona-zhao": [5 - n % 6 * 0.5 for n in range(12)]}
        file = f"turn_level_ratings_subset/turn_{name}_ratings.subset.json"
        if full:
            values["another-set"] = [1.0, 2.0]
            file = f"turn_level_texts/turn_{name}_ratings.json"
        dump(base / file, values)


def thread(sid: str) -> dict:
    """A Reddit thread with a nested reply, a deleted author, a negative score, a missing field."""
    reply = {
        "link": "l",
        "text": "[deleted]",
        "author": None,
        "created": 30,
        "upvotes": -3,
    }
    answer = {
        "link": "l",
        "text": "an answer",
        "author": "NamedPerson",
        "created": 20,
        "upvotes": 2,
        "replies": {f"{sid}b": reply},
    }
    return {
        "sid": sid,
        "link": "l",
        "title:": "a title",
        "text": "post",
        "author": "Poster",
        "created": 10,
        "updated": 99,
        "over_18": False,
        "upvotes": 5,
        "upvote_ratio": 1.0,
        "comments": {f"{sid}a": answer},
    }


def reddit_college(folder: Path, full: bool = False) -> None:
    """Threads of one known subreddit; `full` writes the whole archive with another subreddit."""
    top = "reddit-college-86b4acbf92d8c2c8642bba91be93acacdb8b95fb"
    members = {
        f"{top}/README.md": b"read me",
        f"{top}/dat/Emory/Emory-1-s1.json": json.dumps(thread("s1")).encode(),
    }
    path = folder / "reddit_college/reddit-college-86b4acb-subset.tar.gz"
    if full:
        members[f"{top}/dat/Other/Other-1-s2.json"] = json.dumps(thread("s2")).encode()
    tar(path, members)


def more_reddit(folder: Path) -> None:
    """Two forums in trees without ids, one post twice, one notice; a chain with one name twice."""
    reply = {"body": "NamedPerson is right", "score": 2, "comments": []}
    tree = [{"body": "top", "score": 7, "comments": [reply, {**reply, "body": ""}]}]
    notices = [{"body": "n" * 41, "score": 1, "comments": []}] * 6
    post = {"title": "t", "body": "b", "comments": tree}
    posts = {
        "HowTo": [post],
        "rage": [post],
        "wtf": [{**post, "body": "c"}, post],
        "pics": [{"title": "p", "body": "", "comments": notices}],
    }
    for key in registry()["tables"]["reddit_52_forums"]["files"]:
        name = Path(key).stem
        dump(folder / key, {"name": name, "posts": posts.get(name, [])})
    record = {
        "name": "t1_x1",
        "id": "x1",
        "body": "no",
        "parent_id": "t3_l",
        "link_id": "t3_l",
        "ups": -2,
        "downs": 0,
        "controversiality": 1,
        "created": 99.0,
        "created_utc": 11.0,
        "edited": True,
        "author_name": "NamedPerson",
    }
    answer = record | {
        "name": "t1_x2",
        "id": "x2",
        "parent_id": "t1_x1",
        "author_name": "",
    }
    lines = [record, answer, record | {"name": "t3_l", "id": "l"}, answer]
    chain = {"chain/1.json": "\n".join(map(json.dumps, lines)).encode()}
    tar(folder / "reddit_cmv/sampled-threads-ah-delta-context3.tar.bz2", chain)


def write(folder: Path) -> Path:
    """Write every stand-in."""
    comp_analysis(folder)
    reddit_college(folder)
    more_reddit(folder)
    return folder


TURN_RATINGS = "dialog,turn,annotator,dimension,rating\n"


def requested(folder: Path, **changes: str) -> Path:
    """A corpus on request in miniature; `turns="..."` replaces a whole file."""
    files = {
        "turns": "system,dialog,context,response,fact\n"
        'S,d,"[""A""]",oh,b\nS,d,"[""A"", ""B"", ""AA""]",hm,b\n',
        "turn_ratings": TURN_RATINGS
        + "d,3,x,Overall,4\nd,3,y,Overall,5\nd,1,y,Overall,\n",
        "dialog_ratings": "system,dialog,annotator,dimension,rating\nS,d,x,Overall,3\n",
    }
    for name, body in (files | changes).items():
        text(folder / f"{name}.csv", body)
    return folder
