"""What the pipeline keeps of a comment: one row of scalars and its text.

The record format changed six times between 2005 and 2024 (numbers as strings, `edited` as flag or
time, hidden scores), so each field is read as text and cast here, once for every source.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lib.endex.reddit.tokens import count_content_words

# The fields read from a record; the other 20 to 60 are skipped.
FIELDS = (
    *("id", "parent_id", "link_id", "subreddit", "author", "body", "score", "score_hidden"),
    *("controversiality", "edited", "created_utc", "retrieved_on"),
)

# DuckDB reads blocks of twice this many bytes: those of its default (16 MiB) leave the processor's
# cache before they are worked on. Longer lines are read all the same.
LINE = 1 << 22
ROWS = 1 << 12  # comments whose words are counted at once: their bytes fit the cache too

# Accounts that answer by machine: their replies say nothing about engagement.
BOTS = ("AutoModerator", "RemindMeBot", "WikiTextBot", "autotldr", "sneakpeekbot", "TotesMessenger")

# Columns of the Parquet files, with their meaning.
COLUMNS = {
    "id": "comment id, without the prefix t1_",
    "parent": "id of the comment that this one answers; missing when it answers a submission",
    "link": "id of the submission, without the prefix t3_: the thread",
    "subreddit": "name of the forum",
    "created": "seconds since 1970",
    "retrieved": "seconds since 1970 when the record was made; missing in some dumps",
    "score": "votes up minus votes down; missing when not given or still hidden",
    "controversial": "flag that Reddit sets when votes up and down balance",
    "edited": "whether the author changed the text later",
    "usable": "text and author are there, and the author is no known bot",
    "quote": "the text quotes another one: `&gt;`, or a line that starts with `>`",
    "tokens": "content words of a usable reply to a comment; missing for the others",
    "body": "the text",
}

FEATURES = r"""
select id,
       case when starts_with(parent_id, 't1_') then substr(parent_id, 4) end as parent,
       case when starts_with(link_id, 't3_') then substr(link_id, 4) else link_id end as link,
       subreddit,
       try_cast(try_cast(created_utc as double) as bigint) as created,
       try_cast(try_cast(retrieved_on as double) as bigint) as retrieved,
       case when score_hidden is distinct from 'true'
            then try_cast(try_cast(score as double) as bigint) end as score,
       coalesce(controversiality in ('1', 'true'), false) as controversial,
       coalesce(lower(edited) not in ('false', '0', '0.0', ''), false) as edited,
       coalesce(body not in ('[deleted]', '[removed]', ''), false)
           and coalesce(author not in ('[deleted]', {bots}), false) as usable,
       coalesce(contains(body, '&gt;') or starts_with(body, '>')
           or contains(body, chr(10) || '>'), false) as quote,
       body
from records
"""


def quoted(values: Sequence[str]) -> str:
    """SQL literals, separated by commas.

    >>> print(quoted(["a", "it's"]))
    'a', 'it''s'
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def features(connection: duckdb.DuckDBPyConnection, bots: Sequence[str] = BOTS) -> pa.Table:
    """The columns `COLUMNS` of the relation `records` of raw text fields, in its order.

    A record without id, body or parent_id becomes a row whose id is missing.
    """
    query = FEATURES.format(bots=quoted(bots))
    table = connection.sql(query).to_arrow_table(ROWS)
    replies = pc.and_(table["usable"], table["parent"].is_valid()).combine_chunks()
    texts = table["body"].filter(replies)
    counts = pa.chunked_array([count_content_words(part) for part in texts.chunks], pa.int32())
    none = pa.nulls(len(table), pa.int32())
    tokens = pc.replace_with_mask(none, replies, counts.combine_chunks())
    return table.add_column(list(COLUMNS).index("tokens"), "tokens", tokens)


def read_piece(connection: duckdb.DuckDBPyConnection, piece: Path) -> None:
    """Make the relation `records` from a plain file of JSON lines, every field as text.

    A line that is no JSON object, or no comment, gives a row in which all fields are missing.
    """
    columns = json.dumps(dict.fromkeys(FIELDS, "VARCHAR")).replace('"', "'")
    connection.execute(
        "create or replace temp view records as select "
        "case when body is not null and parent_id is not null then id end as id, "
        f"columns(* exclude (id)) from read_json({quoted([str(piece)])}, "
        f"format = 'newline_delimited', columns = {columns}, ignore_errors = true, "
        f"maximum_object_size = {LINE})"
    )
