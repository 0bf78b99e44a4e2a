"""Comments that are in memory already, such as `corpora.reddit_college()`, to the same Parquet."""

import os
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa

from lib.endex.reddit.dumps import DumpError
from lib.endex.reddit.features import BOTS, FIELDS, features, quoted


def frame_to_parquet(
    records: pd.DataFrame, folder: str | Path, bots: Sequence[str] = BOTS
) -> pd.DataFrame:
    """Write a table of comments with their features, in the columns of `to_parquet`.

    Args:
        records: columns as in the dumps (id, parent_id, link_id, subreddit, author, body, score,
            controversiality, edited, created_utc; further ones are ignored). A missing
            controversiality or edited counts as false, a missing score stays missing.
        folder: where `part-00000.parquet` goes; made where it is missing.
        bots: accounts whose texts are not usable.

    Returns:
        One row: comments, and `lacks`, the fields that no comment has.

    Raises:
        DumpError: no id, parent_id or body column, or no row.
    """
    if missing := [name for name in ("id", "parent_id", "body") if name not in records]:
        raise DumpError(f"the table lacks the columns {', '.join(missing)}")
    if records.empty:
        raise DumpError("the table holds no comment")
    known = records.reindex(columns=list(FIELDS))
    lacks = [name for name in FIELDS if known[name].isna().all() and name != "retrieved_on"]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Under a name of this process first: another one may read or write the same folder.
    temporary = folder / f"part-00000.{os.getpid()}.tmp"
    with duckdb.connect() as connection:
        connection.register("records", pa.Table.from_pandas(known.astype("string")))
        connection.register("comments", features(connection, bots))
        connection.execute(
            "copy (select * from comments order by created, id) "
            f"to {quoted([str(temporary)])} (format parquet)"
        )
    temporary.rename(folder / "part-00000.parquet")
    return pd.DataFrame({"comments": [len(known)], "lacks": [", ".join(lacks)]})
