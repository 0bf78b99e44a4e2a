"""Read threads saved as one JSON file each, replies nested in replies (as in reddit-college)."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import duckdb
import pandas as pd
from tqdm.auto import tqdm

from lib.reddit.dumps import DumpError
from lib.reddit.features import BOTS, FIELDS, features, quoted


def threads_to_parquet(
    archive: str | Path, folder: str | Path, bots: tuple[str, ...] = BOTS
) -> pd.DataFrame:
    """Read a tar of thread files into `folder/<archive>/part-00000.parquet`.

    The columns are those of `to_parquet`. The format has no `edited` and no `controversiality`:
    both are false for every comment, so that AE counts no edited reply and no BE is set to 0.

    Returns:
        One row: file, threads, comments, and the fields that the format lacks.

    Raises:
        DumpError: no thread file in the archive.
    """
    archive = Path(archive)
    target = Path(folder) / archive.name.removesuffix(".gz").removesuffix(".tar")
    target.mkdir(parents=True, exist_ok=True)
    threads = list(_threads(archive))
    if not threads:
        raise DumpError(f"{archive.name}: no .json file with a thread in it.")
    rows = [row for thread, forum in threads for row in _comments(thread, forum)]
    records = pd.DataFrame(rows, columns=list(FIELDS), dtype="str")
    with duckdb.connect() as connection:
        connection.register("records", records)
        features(connection, bots)
        connection.execute(
            "copy (select * from comments order by created, id) "
            f"to {quoted([str(target / 'part-00000.parquet')])} (format parquet)"
        )
    return pd.DataFrame(
        {
            "file": [archive.name],
            "threads": [len(threads)],
            "comments": [len(records)],
            "lacks": ["edited, controversiality"],
        }
    )


def _threads(archive: Path) -> Iterator[tuple[dict, str]]:
    """Each thread of the archive with the name of its forum, which is the name of its folder."""
    with tarfile.open(archive) as files:
        for member in tqdm(files, desc=archive.name, unit=" files", leave=False):
            if member.isfile() and member.name.endswith(".json"):
                thread = json.load(files.extractfile(member))
                if "comments" in thread:
                    yield thread, PurePosixPath(member.name).parent.name


def _comments(thread: dict, forum: str) -> Iterator[dict]:
    """The records of one thread, parents before their replies."""
    waiting = [(key, value, f"t3_{thread['sid']}") for key, value in thread["comments"].items()]
    while waiting:
        key, comment, parent = waiting.pop()
        yield {
            "id": key,
            "parent_id": parent,
            "link_id": f"t3_{thread['sid']}",
            "subreddit": forum,
            "author": comment["author"],
            "body": comment["text"],
            "score": comment["upvotes"],
            "created_utc": comment["created"],
            "retrieved_on": thread["updated"],
        }
        waiting += [(k, reply, f"t1_{key}") for k, reply in comment.get("replies", {}).items()]
