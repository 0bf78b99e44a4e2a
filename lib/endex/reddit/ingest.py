"""Turn comment dumps into Parquet: one folder per dump, made once, finished files kept."""

import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Event

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from lib.endex.reddit.bad_lines import reasons, refuse_other_records
from lib.endex.reddit.dumps import PIECE, DumpError, pieces
from lib.endex.reddit.features import BOTS, features, read_piece

FORMAT = 1  # of the Parquet files: a change of the columns or of their meaning counts it up
RECORD = "_record.json"  # readers of Parquet folders skip names that start with "_"
READERS = 8  # most threads for one dump: decompression, which is one, feeds no more
REPEATED = ["subreddit", "score", "tokens"]  # columns of few values: Parquet writes each once
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
    its size. A dump that was read before with the same settings is not read again.

    Args:
        dumps: Pushshift comment files, plain ndjson or zstandard with any window and frames.
        folder: where the Parquet goes.
        subreddits: keep only these forums (the paper took 43, without naming them); all by default.
        bots: accounts whose texts are not usable.
        workers: dumps read at the same time; by default one per two cores.
        piece_bytes: decompressed bytes worked on at a time.

    Returns:
        One row per dump: file, lines, bad_lines, other_subreddits, comments, and `bad`, a list of
        the first bad lines as (line, reason). `lib.endex.reddit.COLUMNS` says what the Parquet holds.

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
    threads = max(1, min(READERS, (os.cpu_count() or 2) // workers))
    total = sum(dump.stat().st_size for dump in dumps)
    records, failures, stopped = {}, [], Event()
    with (
        tqdm(total=total, unit="B", unit_scale=True, desc="comment dumps", leave=False) as bar,
        ThreadPoolExecutor(workers) as pool,
    ):

        def progress(n: int) -> None:
            if stopped.is_set():
                raise DumpError("interrupted")
            bar.update(n)

        jobs = {
            pool.submit(_one_dump, dump, folder, settings, threads, piece_bytes, progress): dump
            for dump in dumps
        }
        try:
            for job in as_completed(jobs):
                try:
                    records[jobs[job]] = job.result()
                except DumpError as error:
                    failures.append(str(error))
        except BaseException:
            stopped.set()  # else an interruption would wait for the end of the dump
            raise
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
    dump: Path,
    folder: Path,
    settings: dict,
    threads: int,
    piece_bytes: int,
    progress: Callable[[int], None],
) -> dict:
    """Read one dump, or find it read: the folder appears under its name only when complete."""
    done, unfinished = folder / dump_name(dump), folder / f"{dump_name(dump)}.partial"
    identity = {"file": dump.name, "bytes": dump.stat().st_size, "settings": settings}
    if (done / RECORD).is_file():
        record = json.loads((done / RECORD).read_text(encoding="utf-8"))
        if all(record[key] == value for key, value in identity.items()):
            progress(identity["bytes"])
            return record
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    counts = {"lines": 0, "bad_lines": 0, "other_subreddits": 0, "comments": 0, "bad": []}
    waiting: deque[Future] = deque()
    try:
        with TemporaryDirectory(dir=unfinished) as scratch, _readers(threads, settings) as read:
            # Besides the pieces that wait or are read, one is written.
            files = threads + 2
            plain = pieces(dump, Path(scratch), files, piece_bytes, progress)
            for number, piece in enumerate(plain):
                if number == 0:
                    refuse_other_records(dump, piece)
                if len(waiting) > threads:
                    _add(counts, waiting.popleft().result())
                part = unfinished / f"part-{number:05d}.parquet"
                waiting.append(read(piece, part, BAD_LINES_NAMED - len(counts["bad"])))
            for job in waiting:
                _add(counts, job.result())
        if not counts["lines"]:
            raise DumpError(f"{dump.name}: the file holds no comment. Check the download.")
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    record = {**identity, **counts}
    (unfinished / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(done, ignore_errors=True)
    unfinished.rename(done)
    return record


@contextmanager
def _readers(threads: int, settings: dict) -> Iterator[Callable[..., Future]]:
    """Start `_one_piece` on the next thread that is free, each with a database of its own.

    One thread for each piece uses the cores better than all threads on one piece.
    """
    free: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()

    def one_piece(*arguments) -> dict:
        connection = free.get()
        try:
            return _one_piece(connection, settings, *arguments)
        finally:
            free.put(connection)

    with ExitStack() as stack:
        for _ in range(threads):
            free.put(stack.enter_context(duckdb.connect(config={"threads": 1})))
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        yield partial(pool.submit, one_piece)


def _one_piece(
    connection: duckdb.DuckDBPyConnection, settings: dict, piece: Path, part: Path, named: int
) -> dict:
    """Read one piece, write its comments, count them, name some bad lines."""
    read_piece(connection, piece)
    rows = features(connection, settings["bots"])
    readable = rows["id"].is_valid()
    comments = rows.filter(readable)
    kept = comments
    if settings["subreddits"] is not None:
        forums = pa.array(settings["subreddits"], pa.string())
        kept = comments.filter(pc.is_in(comments["subreddit"], forums))
    pq.write_table(kept, part, use_dictionary=REPEATED)
    bad = np.flatnonzero(pc.invert(readable))[:named]
    return {
        "lines": len(rows),
        "bad_lines": len(rows) - len(comments),
        "other_subreddits": len(comments) - len(kept),
        "comments": len(kept),
        "bad": reasons(piece, set(bad.tolist())),
    }


def _add(counts: dict, piece: dict) -> None:
    """Add the counts of the next piece; its bad lines get their number in the whole dump."""
    bad = [(counts["lines"] + line, reason) for line, reason in piece.pop("bad")]
    counts["bad"] += bad[: BAD_LINES_NAMED - len(counts["bad"])]
    for name, n in piece.items():
        counts[name] += n
