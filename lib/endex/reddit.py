"""Reddit comments: from dumps to Parquet, with the features that EnDex needs.

The record format changed six times between 2005 and 2024 (numbers as strings, `edited` as flag or
time, hidden scores), so each field is read as text and cast in features.sql, once for every source.
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
from lib.data import reddit_college
from lib.data.storage import written_whole
from lib.endex.dumps import DumpError, pieces, reasons
from lib.endex.tokens import count_content_words

CACHE = ROOT / "data" / "cache" / "reddit"
FEATURES = Path(__file__).with_name("features.sql").read_text(encoding="utf-8")
FORMAT = 3  # of the Parquet files: a change of columns, of their meaning or of BOTS counts it up
RECORD = "_record.json"  # readers of Parquet folders skip names that start with "_"
READERS = 8  # most threads for one dump: decompression, which is one, feeds no more
REPEATED = ["subreddit", "score", "tokens"]  # columns of few values: Parquet writes each once
BAD_LINES_NAMED = 20  # bad lines of a dump whose number is kept; all are counted

# Accounts that answer by machine: their replies say nothing about engagement.
BOTS = ["AutoModerator", "RemindMeBot", "WikiTextBot", "autotldr", "sneakpeekbot", "TotesMessenger"]

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
    place = ROOT / "data" / "sample" / "reddit" if str(source) == "sample" else Path(source)
    if str(source) == "reddit_college":
        place = CACHE / "dumps" / "reddit_college"
        _write_dump(reddit_college(), place / "comments.ndjson")
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
    dumps: Iterable[str | Path], folder: str | Path, subreddits: Sequence[str] | None = None
) -> pd.DataFrame:
    """Read comment dumps into `folder/<dump>/part-*.parquet`, with the features of each comment.

    Step 0 of the RED recipe (EnDex, appendix A.1). A dump is streamed: memory does not grow with
    its size. A dump that was read before with the same settings is not read again.

    Args:
        dumps: Pushshift comment files, plain ndjson or zstandard with any window and frames.
        folder: where the Parquet goes.
        subreddits: keep only these forums (the paper took 43, without naming them); all by default.

    Returns:
        One row per dump: file, lines, bad_lines, other_subreddits, comments, and `bad`, a list of
        the first bad lines as (line, reason). `COLUMNS` says what the Parquet holds.

    Raises:
        DumpError: naming each file that could not be read; the others are finished first.
    """
    dumps, folder = [Path(dump) for dump in dumps], Path(folder)
    if len({dump.name for dump in dumps}) < len(dumps):
        raise DumpError("two dumps have the same name: read each into a folder of its own")
    forums = None if subreddits is None else sorted(subreddits)
    records, failures = [], []
    total = sum(dump.stat().st_size for dump in dumps)
    with tqdm(total=total, unit="B", unit_scale=True, desc="comment dumps", leave=False) as bar:
        for dump in dumps:
            try:
                records.append(_one_dump(dump, folder, forums, bar.update))
            except DumpError as error:
                failures.append(str(error))
    if failures:
        failures.append(f"{len(records)} other dump(s) are finished and kept.")
        raise DumpError("\n".join(failures))
    return pd.DataFrame(records).drop(columns="identity")


def parquet_files(where: str | Path | Iterable[str | Path]) -> list[Path]:
    """The Parquet files of a file, a folder, a folder of folders, or several of these."""
    files = []
    for place in map(Path, [where] if isinstance(where, str | Path) else where):
        found = [place] if place.is_file() else sorted(place.rglob("*.parquet"))
        files += [f for f in found if not any(p.suffix == ".partial" for p in f.parents)]
        if not found:
            raise FileNotFoundError(f"no Parquet file in {place}: run lib.endex.to_parquet first")
    return files


def _write_dump(records: pd.DataFrame, dump: Path) -> None:
    """Write a table of comments as a dump; an equal one keeps its time, and is not read again."""
    text = records.to_json(orient="records", lines=True)
    if not dump.is_file() or dump.read_text(encoding="utf-8") != text:
        with written_whole(dump) as unfinished:
            unfinished.write_text(text, encoding="utf-8")


def _one_dump(dump: Path, folder: Path, forums: list[str] | None, progress: Callable) -> dict:
    """Read one dump, or find it read: the folder appears under its name only when complete."""
    done, state = folder / dump.name, dump.stat()
    identity = [state.st_size, state.st_mtime_ns, FORMAT, forums]
    if (done / RECORD).is_file():
        record = json.loads((done / RECORD).read_text(encoding="utf-8"))
        if record["identity"] == identity:
            progress(state.st_size)
            return record
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, suffix=".partial") as scratch:
        parts = Path(scratch, "parts")
        parts.mkdir()
        record = {"file": dump.name, "identity": identity}
        record |= _all_pieces(dump, parts, forums, progress)
        (parts / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(done, ignore_errors=True)
        parts.rename(done)
    return record


def _all_pieces(dump: Path, parts: Path, forums: list[str] | None, progress: Callable) -> dict:
    """Read the pieces of a dump, each on one thread: that uses cores better than all on one."""
    counts = {"lines": 0, "bad_lines": 0, "other_subreddits": 0, "comments": 0, "bad": []}
    threads, waiting = min(READERS, os.cpu_count() or 2), deque()
    with ThreadPoolExecutor(threads) as pool:
        # Besides the pieces that wait or are read, one is written.
        for number, piece in enumerate(pieces(dump, parts.parent, threads + 2, progress)):
            if len(waiting) > threads:
                _add(dump, counts, waiting.popleft().result())
            part = parts / f"part-{number:05d}.parquet"
            waiting.append(pool.submit(_one_piece, piece, part, forums))
        for job in waiting:
            _add(dump, counts, job.result())
    if not counts["lines"]:
        raise DumpError(f"{dump.name}: the file holds no comment. Check the download.")
    return counts


def _one_piece(piece: Path, part: Path, forums: list[str] | None) -> dict:
    """Read one piece, write its comments, count them, name some bad lines."""
    with duckdb.connect(config={"threads": 1}) as connection:
        given = {"file": str(piece), "bots": BOTS}
        rows = _with_tokens(connection.sql(FEATURES, params=given).to_arrow_table())
    readable = rows["id"].is_valid()
    found = rows.filter(readable)
    kept = found
    if forums is not None:
        kept = found.filter(pc.is_in(found["subreddit"], pa.array(forums, pa.string())))
    pq.write_table(kept, part, use_dictionary=REPEATED)
    bad = np.flatnonzero(pc.invert(readable))[:BAD_LINES_NAMED]
    return {
        "lines": len(rows),
        "bad_lines": len(rows) - len(found),
        "other_subreddits": len(found) - len(kept),
        "comments": len(kept),
        "bad": reasons(piece, bad.tolist()),
    }


def _with_tokens(table: pa.Table) -> pa.Table:
    """Add the content words of usable replies to comments: the other texts need not be read."""
    replies = pc.and_(table["usable"], table["parent"].is_valid()).combine_chunks()
    counts = count_content_words(table["body"].combine_chunks().filter(replies))
    tokens = pc.replace_with_mask(pa.nulls(len(table), pa.int32()), replies, counts)
    return table.add_column(list(COLUMNS).index("tokens"), "tokens", tokens)


def _add(dump: Path, counts: dict, piece: dict) -> None:
    """Add the counts of the next piece; its bad lines get their number in the whole dump.

    A dump of something else stops here at its first piece, instead of being called bad lines.
    """
    bad = [(counts["lines"] + line, reason) for line, reason in piece.pop("bad")]
    counts["bad"] += bad[: BAD_LINES_NAMED - len(counts["bad"])]
    for name, n in piece.items():
        counts[name] += n
    if counts["lines"] and counts["lines"] == counts["bad_lines"]:
        raise DumpError(
            f"{dump.name}: no Reddit comment in the first {counts['lines']:,} lines (the first is "
            f"{counts['bad'][0][1]}). A comment dump (RC_*, not RS_*) has one JSON object per line "
            "with id, parent_id, link_id and body; unpack other archives than zstandard first."
        )
