"""Turn comment dumps into Parquet: one folder per dump, made once, finished files kept."""

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import duckdb
import pandas as pd
from tqdm.auto import tqdm

from lib.reddit.dumps import PIECE, DumpError, pieces
from lib.reddit.features import BOTS, features, quoted, read_piece

FORMAT = 1  # of the Parquet files: a change of the columns or of their meaning counts it up
RECORD = "_record.json"  # readers of Parquet folders skip names that start with "_"
BAD_LINES_NAMED = 20  # bad lines of a dump whose number is kept; all are counted


def to_parquet(
    dumps: Iterable[str | Path],
    folder: str | Path,
    subreddits: Sequence[str] | None = None,
    bots: Sequence[str] = BOTS,
    workers: int | None = None,
    piece_bytes: int = PIECE,
) -> pd.DataFrame:
    """Read comment dumps into `folder/<dump>/part-*.parquet`, with the features of each comment.

    Step 0 of the RED recipe (EnDex, appendix A.1). A dump is streamed: memory does not grow with
    its size. A dump that was read before with the same settings is not read again. The comments of
    one file are in no particular order.

    Args:
        dumps: Pushshift comment files, plain ndjson or zstandard with any window and frames.
        folder: where the Parquet goes.
        subreddits: keep only these forums (the paper took 43, without naming them); all by default.
        bots: accounts whose texts are not usable.
        workers: dumps read at the same time; by default one per two cores.
        piece_bytes: decompressed bytes worked on at a time.

    Returns:
        One row per dump: file, lines, bad_lines, other_subreddits, comments, and `bad`, a list of
        the first bad lines as (line, reason). `lib.reddit.COLUMNS` says what the Parquet holds.

    Raises:
        DumpError: naming each file that could not be read; the others are finished first.
    """
    dumps, folder = [Path(dump) for dump in dumps], Path(folder)
    if missing := [dump for dump in dumps if not dump.is_file()]:
        raise DumpError(f"no such dump: {', '.join(str(dump) for dump in missing)}")
    folder.mkdir(parents=True, exist_ok=True)
    workers = workers or max(1, min(len(dumps), (os.cpu_count() or 2) // 2))
    settings = {
        "format": FORMAT,
        "subreddits": None if subreddits is None else sorted(subreddits),
        "bots": sorted(bots),
    }
    threads = max(1, (os.cpu_count() or 2) // workers)
    total = sum(dump.stat().st_size for dump in dumps)
    records, failures = {}, []
    with (
        tqdm(total=total, unit="B", unit_scale=True, desc="comment dumps", leave=False) as bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        jobs = {
            pool.submit(_one_dump, dump, folder, settings, threads, piece_bytes, bar): dump
            for dump in dumps
        }
        for job in as_completed(jobs):
            try:
                records[jobs[job]] = job.result()
            except DumpError as error:
                failures.append(str(error))
    if failures:
        kept = f"\n{len(records)} other dump(s) are finished and kept." if records else ""
        raise DumpError("\n".join(sorted(failures)) + kept)
    return pd.DataFrame([records[dump] for dump in dumps]).drop(columns=["settings", "bytes"])


def dump_name(dump: Path) -> str:
    """The folder of a dump: its file name without the endings of compression and format.

    >>> dump_name(Path("RC_2019-01.zst")), dump_name(Path("comments.ndjson.zst"))
    ('RC_2019-01', 'comments')
    """
    name = dump.name
    for ending in (".zst", ".ndjson", ".jsonl", ".json"):
        name = name.removesuffix(ending)
    return name


def _one_dump(
    dump: Path, folder: Path, settings: dict, threads: int, piece_bytes: int, bar: tqdm
) -> dict:
    """Read one dump, or find it read: the folder appears under its name only when complete."""
    done, partial = folder / dump_name(dump), folder / f"{dump_name(dump)}.partial"
    identity = {"file": dump.name, "bytes": dump.stat().st_size, "settings": settings}
    if (done / RECORD).is_file():
        record = json.loads((done / RECORD).read_text(encoding="utf-8"))
        if all(record[key] == value for key, value in identity.items()):
            bar.update(identity["bytes"])
            return record
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    counts = {"lines": 0, "bad_lines": 0, "other_subreddits": 0, "comments": 0, "bad": []}
    try:
        # Keeping the order of the lines would cost a tenth more time; no score depends on it.
        config = {"threads": threads, "preserve_insertion_order": False}
        with duckdb.connect(config=config) as connection:
            for number, piece in enumerate(pieces(dump, partial, piece_bytes, bar.update)):
                _one_piece(connection, piece, partial / f"part-{number:05d}", settings, counts)
                if number == 0:
                    _refuse_other_records(dump, piece, counts)
        if not counts["lines"]:
            raise DumpError(f"{dump.name}: the file holds no comment. Check the download.")
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    record = {**identity, **counts}
    (partial / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(done, ignore_errors=True)
    partial.rename(done)
    return record


def _one_piece(
    connection: duckdb.DuckDBPyConnection, piece: Path, part: Path, settings: dict, counts: dict
) -> None:
    """Read one piece, write its comments, add to the counts."""
    read_piece(connection, piece)
    features(connection, tuple(settings["bots"]))
    wanted = "id is not null"
    if settings["subreddits"] is not None:
        wanted += f" and subreddit in ({quoted(settings['subreddits'])})"
    lines, readable, kept = connection.execute(
        f"select count(*), count(id), count(case when {wanted} then 1 end) from comments"
    ).fetchone()
    if kept:
        target = quoted([f"{part}.parquet"])
        connection.execute(
            f"copy (select * from comments where {wanted}) to {target} (format parquet)"
        )
    if lines > readable and len(counts["bad"]) < BAD_LINES_NAMED:
        bad = _bad_lines(piece, counts["lines"])
        counts["bad"] += bad[: BAD_LINES_NAMED - len(counts["bad"])]
    counts["lines"] += lines
    counts["bad_lines"] += lines - readable
    counts["other_subreddits"] += readable - kept
    counts["comments"] += kept


def _bad_lines(piece: Path, before: int) -> list[tuple[int, str]]:
    """Number and reason of the lines of a piece that hold no comment; blank lines not counted.

    Several threads read a file out of order, so the piece is read again by one.
    """
    with duckdb.connect(config={"threads": 1}) as connection:
        read_piece(connection, piece)
        rows = connection.execute(
            "select row - 1 from (select id, row_number() over () as row from records) "
            f"where id is null limit {BAD_LINES_NAMED}"
        ).fetchall()
    bad, found = {row for (row,) in rows}, []
    with piece.open("rb") as lines:
        for row, line in enumerate(line for line in lines if line.strip()):
            if row in bad:
                found.append((before + row + 1, _reason(line)))
    return found


def _reason(line: bytes) -> str:
    """Why a line is no comment."""
    try:
        record = json.loads(line)
    except ValueError:
        return "not JSON"
    if not isinstance(record, dict):
        return f"not a record but {type(record).__name__}"
    missing = [name for name in ("id", "body", "parent_id") if record.get(name) is None]
    return f"without {', '.join(missing)}" if missing else "text with broken characters"


def _refuse_other_records(dump: Path, piece: Path, counts: dict) -> None:
    """Stop at a file of something else, rather than call a whole month bad lines."""
    if counts["lines"] == 0 or counts["bad_lines"] < counts["lines"]:
        return
    with piece.open("rb") as lines:
        first = next(line for line in lines if line.strip())
    try:
        record = json.loads(first)
        names = set(record) if isinstance(record, dict) else set()
    except ValueError:
        names = set()
    if {"title", "selftext"} <= names:
        what = "these are submissions (RS_*), and the recipe reads comments (RC_*)"
    elif {"id_str", "full_text"} & names or {"text", "user"} <= names:
        what = "these are tweets"
    elif names:
        what = f"the records have the fields {', '.join(sorted(names)[:8])}"
    else:
        what = "the lines are no JSON records"
    raise DumpError(
        f"{dump.name}: no Reddit comment in the first {counts['lines']:,} lines: {what}. A comment "
        "dump has one JSON object per line with id, parent_id, link_id and body."
    )
