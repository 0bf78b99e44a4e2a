"""Reddit comments: from dumps or tables to Parquet, with the features that EnDex needs.

The record format changed six times between 2005 and 2024 (numbers as strings, `edited` as flag or
time, hidden scores), so each field is read as text and cast here, once for every source.
"""

import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from lib import ROOT
from lib.data.storage import written_whole
from lib.endex.dumps import LONGEST, PIECE, DumpError, pieces, reasons, refuse_other_records
from lib.endex.tokens import count_content_words

CACHE = ROOT / "data" / "cache" / "reddit"
FORMAT = 2  # of the Parquet files: a change of the columns or of their meaning counts it up
RECORD = "_record.json"  # readers of Parquet folders skip names that start with "_"
READERS = 8  # most threads for one dump: decompression, which is one, feeds no more
REPEATED = ["subreddit", "score", "tokens"]  # columns of few values: Parquet writes each once
BAD_LINES_NAMED = 20  # bad lines of a dump whose number is kept; all are counted
ROWS = 1 << 12  # comments whose words are counted at once: their bytes fit the processor's cache

# The fields read from a record; the other 20 to 60 are skipped.
FIELDS = (
    *("id", "parent_id", "link_id", "subreddit", "author", "body", "score", "score_hidden"),
    *("controversiality", "edited", "created_utc", "retrieved_on"),
)

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


def comments(source: str | Path) -> tuple[Path, pd.DataFrame]:
    """Parquet of comments with features, made on first use and kept in data/cache.

    Args:
        source: "sample" (the shipped dumps, synthetic), "reddit_college" (38,303 real comments,
            downloaded on first use), or a folder of comment dumps of your own.

    Returns:
        The folder of Parquet, and the account of what was read (see `to_parquet`).

    Raises:
        FileNotFoundError: the folder holds no dump.
    """
    if str(source) == "reddit_college":
        from lib.data import corpora

        folder = CACHE / "reddit_college"
        return folder, frame_to_parquet(corpora.reddit_college(), folder)
    place = ROOT / "data" / "sample" / "reddit" if str(source) == "sample" else Path(source)
    dumps = sorted(path for path in place.glob("*") if path.suffix in (".zst", ".ndjson", ".jsonl"))
    if not dumps:
        raise FileNotFoundError(
            f"no comment dump (*.zst, *.ndjson) in {os.fspath(source)}: put RC_YYYY-MM.zst there, "
            "or name the sample or reddit_college"
        )
    # By the whole path: two folders of one name are two sources.
    of_path = hashlib.sha256(str(place.resolve()).encode()).hexdigest()[:8]
    folder = CACHE / f"{place.resolve().name}-{of_path}"
    account = to_parquet(dumps, folder)
    for gone in set(folder.iterdir()) - {folder / dump.name for dump in dumps}:
        shutil.rmtree(gone)
    return folder, account


def to_parquet(
    dumps: Iterable[str | Path],
    folder: str | Path,
    subreddits: Sequence[str] | None = None,
    bots: Sequence[str] = BOTS,
    piece_bytes: int = PIECE,
) -> pd.DataFrame:
    """Read comment dumps into `folder/<dump>/part-*.parquet`, with the features of each comment.

    Step 0 of the RED recipe (EnDex, appendix A.1). A dump is streamed: memory does not grow with
    its size. A dump that was read before with the same settings is not read again.

    Args:
        dumps: Pushshift comment files, plain ndjson or zstandard with any window and frames.
        folder: where the Parquet goes.
        subreddits: keep only these forums (the paper took 43, without naming them); all by default.
        bots: accounts whose texts are not usable.
        piece_bytes: decompressed bytes worked on at a time.

    Returns:
        One row per dump: file, lines, bad_lines, other_subreddits, comments, and `bad`, a list of
        the first bad lines as (line, reason). `COLUMNS` says what the Parquet holds.

    Raises:
        DumpError: naming each file that could not be read; the others are finished first.
    """
    dumps, folder = [Path(dump) for dump in dumps], Path(folder)
    _check_names(dumps)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "format": FORMAT,
        "subreddits": None if subreddits is None else sorted(subreddits),
        "bots": sorted(bots),
    }
    records, failures = [], []
    total = sum(dump.stat().st_size for dump in dumps)
    with tqdm(total=total, unit="B", unit_scale=True, desc="comment dumps", leave=False) as bar:
        for dump in dumps:
            try:
                records.append(_one_dump(dump, folder, settings, piece_bytes, bar.update))
            except DumpError as error:
                failures.append(str(error))
    if failures:
        kept = f"\n{len(records)} other dump(s) are finished and kept." if records else ""
        raise DumpError("\n".join(failures) + kept)
    return pd.DataFrame(records).drop(columns="identity")


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
    with duckdb.connect() as connection:
        connection.register("records", pa.Table.from_pandas(known.astype("string")))
        table = features(connection, bots)
    with written_whole(Path(folder) / "part-00000.parquet") as unfinished:
        pq.write_table(table.sort_by([("created", "ascending"), ("id", "ascending")]), unfinished)
    return pd.DataFrame({"comments": [len(known)], "lacks": [", ".join(lacks)]})


def parquet_files(where: str | Path | Iterable[str | Path]) -> list[Path]:
    """The Parquet files of a file, a folder, a folder of folders, or several of these."""
    places = [where] if isinstance(where, str | Path) else list(where)
    files = []
    for place in map(Path, places):
        found = [place] if place.is_file() else sorted(place.rglob("*.parquet"))
        files += [f for f in found if not any(p.suffix == ".partial" for p in f.parents)]
        if not found:
            raise FileNotFoundError(f"no Parquet file in {place}: run lib.endex.to_parquet first")
    return files


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


def quoted(values: Sequence[str]) -> str:
    """SQL literals, separated by commas.

    >>> print(quoted(["a", "it's"]))
    'a', 'it''s'
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _check_names(dumps: list[Path]) -> None:
    if missing := [dump for dump in dumps if not dump.is_file()]:
        raise DumpError(f"no such dump: {', '.join(str(dump) for dump in missing)}")
    names = pd.Series([dump.name for dump in dumps], dtype=object)
    if len(twice := names[names.duplicated()]):
        raise DumpError(f"two dumps are named {twice.iloc[0]}: read each into a folder of its own")


def _one_dump(
    dump: Path, folder: Path, settings: dict, piece_bytes: int, progress: Callable
) -> dict:
    """Read one dump, or find it read: the folder appears under its name only when complete."""
    done, unfinished = folder / dump.name, folder / f"{dump.name}.partial"
    state = dump.stat()
    identity = [state.st_size, state.st_mtime_ns, settings]
    if (done / RECORD).is_file():
        record = json.loads((done / RECORD).read_text(encoding="utf-8"))
        if record["identity"] == identity:
            progress(state.st_size)
            return record
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        counts = _all_pieces(dump, unfinished, settings, piece_bytes, progress)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    record = {"file": dump.name, "identity": identity, **counts}
    (unfinished / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(done, ignore_errors=True)
    unfinished.rename(done)
    return record


def _all_pieces(
    dump: Path, target: Path, settings: dict, piece_bytes: int, progress: Callable
) -> dict:
    """Read the pieces of a dump, each on one thread: that uses cores better than all on one."""
    counts = {"lines": 0, "bad_lines": 0, "other_subreddits": 0, "comments": 0, "bad": []}
    threads, waiting = min(READERS, os.cpu_count() or 2), deque()
    with TemporaryDirectory(dir=target) as scratch, ThreadPoolExecutor(threads) as pool:
        # Besides the pieces that wait or are read, one is written.
        files = pieces(dump, Path(scratch), threads + 2, piece_bytes, progress)
        for number, piece in enumerate(files):
            if number == 0:
                refuse_other_records(dump, piece)
            if len(waiting) > threads:
                _add(counts, waiting.popleft().result())
            part = target / f"part-{number:05d}.parquet"
            waiting.append(pool.submit(_one_piece, piece, part, settings))
        for job in waiting:
            _add(counts, job.result())
    if not counts["lines"]:
        raise DumpError(f"{dump.name}: the file holds no comment. Check the download.")
    return counts


def _one_piece(piece: Path, part: Path, settings: dict) -> dict:
    """Read one piece, write its comments, count them, name some bad lines."""
    with duckdb.connect(config={"threads": 1}) as connection:
        _read(connection, piece)
        rows = features(connection, settings["bots"])
    readable = rows["id"].is_valid()
    found = rows.filter(readable)
    kept = found
    if settings["subreddits"] is not None:
        forums = pa.array(settings["subreddits"], pa.string())
        kept = found.filter(pc.is_in(found["subreddit"], forums))
    pq.write_table(kept, part, use_dictionary=REPEATED)
    bad = np.flatnonzero(pc.invert(readable))[:BAD_LINES_NAMED]
    return {
        "lines": len(rows),
        "bad_lines": len(rows) - len(found),
        "other_subreddits": len(found) - len(kept),
        "comments": len(kept),
        "bad": reasons(piece, set(bad.tolist())),
    }


def _read(connection: duckdb.DuckDBPyConnection, piece: Path) -> None:
    """Make the relation `records` from a plain file of JSON lines, every field as text.

    A line that is no JSON object, or no comment, gives a row in which all fields are missing.
    Blocks of twice `LONGEST` bytes: those of the default (16 MiB) leave the processor's cache
    before they are worked on.
    """
    columns = json.dumps(dict.fromkeys(FIELDS, "VARCHAR")).replace('"', "'")
    connection.execute(
        "create or replace temp view records as select "
        "case when body is not null and parent_id is not null then id end as id, "
        f"columns(* exclude (id)) from read_json({quoted([str(piece)])}, "
        f"format = 'newline_delimited', columns = {columns}, ignore_errors = true, "
        f"maximum_object_size = {LONGEST})"
    )


def _add(counts: dict, piece: dict) -> None:
    """Add the counts of the next piece; its bad lines get their number in the whole dump."""
    bad = [(counts["lines"] + line, reason) for line, reason in piece.pop("bad")]
    counts["bad"] += bad[: BAD_LINES_NAMED - len(counts["bad"])]
    for name, n in piece.items():
        counts[name] += n
