"""Reddit comments: from dumps to Parquet, with the features that EnDex needs.

The public dumps are zstandard frames with a window of 2 GiB: most readers refuse them ("Frame
requires too much memory"), and those that do not may hold the whole month in memory. Here a dump is
decompressed as a stream, and divided at line ends into pieces that any reader takes. Memory is
bounded, whatever the size of the decompressed file.

The record format changed six times between 2005 and 2024 (numbers as strings, `edited` as flag or
time, hidden scores), so each field is read as text and cast in features.sql, once for every source.
"""

import hashlib
import json
import os
import shutil
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard
from filelock import FileLock
from tqdm.auto import tqdm

from lib import ROOT
from lib.data import reddit_52_forums, reddit_cmv, reddit_college
from lib.data.stop_words import stop_words
from lib.data.storage import atomic_write, read_json, short_hash

CACHE = ROOT / "data" / "cache" / "reddit"
#: Public corpora of comments, by the name of their loader.
SOURCES = {
    load.__name__: load for load in (reddit_college, reddit_52_forums, reddit_cmv)
}
FEATURES = Path(__file__).with_name("features.sql").read_text(encoding="utf-8")
TOKEN_LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789'"
# For bytes.translate: a space for every byte that is no part of a token.
TOKEN_BYTES = bytes(byte if byte in TOKEN_LETTERS else ord(" ") for byte in range(256))
# The letters outside ASCII whose lower case is an ASCII letter: I with a dot (which ends the token)
# and the sign for kelvin.
FOREIGN = {"\u0130": "i ", "\u212a": "k"}
THREADS = min(8, os.cpu_count() or 1)  # each reads one piece
VERSION = 2  # of the count of content words; raise it when the counts change
PARTIAL = ".partial"  # ending of the folder of a dump that is being read
RECORD = "_record.json"  # readers of Parquet folders skip names that start with "_"

ZSTD = b"\x28\xb5\x2f\xfd"
WINDOW = 2**31  # bytes: the `--long=31` of the public dumps
# Bytes read from the dump at once: at most 256 MiB when decompressed.
READ_SIZE = 1 << 13
PIECE_SIZE = 1 << 27  # bytes of decompressed text in a piece, about 100,000 comments
# Bytes of a line; the longest comment that Reddit accepts has 40,000 letters.
MAX_LINE = 1 << 22
TOO_LONG = b'"too long"\n'  # replaces a line of more than MAX_LINE bytes

# Accounts that answer by machine: their replies say nothing about engagement.
BOTS = [
    "AutoModerator",
    "RemindMeBot",
    "WikiTextBot",
    "autotldr",
    "sneakpeekbot",
    "TotesMessenger",
]


class DumpError(ValueError):
    """A dump that cannot be read; the message names the file and what to do."""


def comments(source: str | Path | Sequence[str]) -> tuple[Path, pd.DataFrame]:
    """Parquet of comments with features, made on first use and kept in data/cache.

    Processes that ask for the same comments wait for each other, and one of them reads the dumps.

    Args:
        source: "sample" (the shipped dumps, synthetic), a folder of comment dumps of your own, or
            one or several of `SOURCES` (real comments, downloaded on first use).

    Returns:
        The folder of Parquet, and the lines and comments of each dump (see `to_parquet`).

    Raises:
        FileNotFoundError: the folder holds no dump.
    """
    names = [str(source)] if isinstance(source, str | Path) else sorted(source)
    is_public = set(names) <= SOURCES.keys()
    dump_folder = Path(names[0])
    if is_public:
        dump_folder = CACHE / "dumps" / "+".join(names)
    elif names == ["sample"]:
        dump_folder = ROOT / "data" / "sample" / "reddit"
    # By the whole path: two folders of one name are two sources.
    digest = short_hash(str(dump_folder.resolve()), 8)
    folder = CACHE / f"{dump_folder.resolve().name}-{digest}"

    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if is_public:
            for name in names:
                write_dump(SOURCES[name](), dump_folder / f"{name}.ndjson")
        files = sorted(dump_folder.glob("*"))
        dumps = [file for file in files if file.suffix in (".zst", ".ndjson", ".jsonl")]
        if not dumps:
            raise FileNotFoundError(
                f"no comment dump (*.zst, *.ndjson) in {dump_folder}: put RC_YYYY-MM.zst there, "
                f"or name the sample or some of {', '.join(SOURCES)}"
            )
        report = to_parquet(dumps, folder)
        needed = {folder / dump.name for dump in dumps}
        for outdated in set(folder.iterdir()) - needed:
            shutil.rmtree(outdated)
    return folder, report


def to_parquet(dumps: Iterable[str | Path], folder: str | Path) -> pd.DataFrame:
    """Read comment dumps into `folder/<dump>/part-*.parquet`, with the features of each comment.

    Step 0 of the RED recipe (EnDex, appendix A.1). A dump is streamed: memory does not grow with
    its size. A dump that was read before is not read again.

    Args:
        dumps: Pushshift comment files, plain ndjson or zstandard with any window and frames.
        folder: where the Parquet goes.

    Returns:
        One row per dump: file, lines, bad_lines (no JSON object, no comment, or longer than any
        comment can be; they are skipped) and comments. The Parquet holds the columns
        of features.sql, and `tokens`: the content words of a usable answer to a comment.

    Raises:
        DumpError: naming each file that could not be read; the others are finished first.
    """
    dumps = [Path(dump) for dump in dumps]
    if len({dump.name for dump in dumps}) < len(dumps):
        raise DumpError(
            "two dumps have the same name: read each into a folder of its own"
        )
    records = []
    failures = []
    for dump in dumps:
        try:
            records.append(_read_dump(dump, Path(folder)))
        except DumpError as error:
            failures.append(str(error))
    if failures:
        failures.append(f"{len(records)} other dump(s) are finished and kept.")
        raise DumpError("\n".join(failures))
    return pd.DataFrame(records).drop(columns="made_of")


def parquet_files(path: str | Path) -> list[Path]:
    """The Parquet files of a file, a folder, or a folder of folders; no unfinished ones."""
    path = Path(path)
    if path.is_file():
        return [path]
    files = []
    for file in sorted(path.rglob("*.parquet")):
        if PARTIAL not in [folder.suffix for folder in file.parents]:
            files.append(file)
    if not files:
        raise FileNotFoundError(
            f"no Parquet file in {path}: run lib.endex.to_parquet first"
        )
    return files


def write_dump(records: pd.DataFrame, dump: Path) -> None:
    """Write a table of comments as a dump; an equal one keeps its time, and is not read again."""
    text = records.to_json(orient="records", lines=True)
    if not dump.is_file() or dump.read_text(encoding="utf-8") != text:
        with atomic_write(dump) as unfinished:
            unfinished.write_text(text, encoding="utf-8")


def _read_dump(dump: Path, folder: Path) -> dict:
    """Read one dump, or find it read: the folder appears under its name only when complete.

    A dump of something else stops at its first piece, instead of being called bad lines.
    """
    finished = folder / dump.name
    status = dump.stat()
    recipe = [
        status.st_size,
        status.st_mtime_ns,
        VERSION,
        FEATURES,
        BOTS,
        sorted(stop_words()),
    ]
    made_of = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
    if (finished / RECORD).is_file():
        record = read_json(finished / RECORD)
        if record["made_of"] == made_of:
            return record
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(
        dir=folder, suffix=PARTIAL, ignore_cleanup_errors=True
    ) as scratch:
        counts = Counter()
        for piece_counts in _read_pieces(dump, Path(scratch)):
            counts.update(piece_counts)
            if not counts["comments"]:
                break
        if not counts["comments"]:
            raise DumpError(
                f"{dump.name}: no Reddit comment in the first {counts['lines']:,} lines. A "
                "comment dump (RC_*, not RS_*) has one JSON object per line with id, parent_id, "
                "link_id and body; unpack other archives than zstandard first."
            )
        record = {"file": dump.name, "made_of": made_of, **counts}
        Path(scratch, RECORD).write_text(
            json.dumps(record, indent=1) + "\n", encoding="utf-8"
        )
        shutil.rmtree(finished, ignore_errors=True)
        Path(scratch).rename(finished)
    return record


def _read_pieces(dump: Path, folder: Path) -> Iterator[dict[str, int]]:
    """Read the pieces of a dump, several at a time on a thread each, and yield their counts."""
    jobs = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        for piece in write_pieces(dump, folder):
            jobs.append(pool.submit(_read_piece, piece, dump.stem))
            if len(jobs) > THREADS:
                # The disk holds no more pieces than this, not the whole dump.
                yield jobs.popleft().result()
        for job in jobs:
            yield job.result()


def _read_piece(piece: Path, source: str) -> dict[str, int]:
    """Write the comments of one piece, on one thread, which keeps their order, and count them."""
    with duckdb.connect(config={"threads": 1}) as connection:
        parameters = {"file": str(piece), "bots": BOTS, "source": source}
        lines = connection.sql(FEATURES, params=parameters).to_arrow_table()
    piece.unlink()
    comments = lines.filter(lines["id"].is_valid())
    is_answer = pc.and_(
        comments["usable"], comments["parent"].is_valid()
    ).combine_chunks()
    counts = count_content_words(comments["body"].combine_chunks().filter(is_answer))
    tokens = pc.replace_with_mask(
        pa.nulls(len(comments), pa.int32()), is_answer, counts
    )
    # Texts hardly ever repeat, so a dictionary of them costs time and saves no space.
    repeated = [name for name in comments.column_names if name not in ("id", "body")]
    body = comments.column_names.index("body")
    comments = comments.add_column(body, "tokens", tokens)
    pq.write_table(comments, piece.with_suffix(".parquet"), use_dictionary=repeated)
    return {
        "lines": len(lines),
        "bad_lines": len(lines) - len(comments),
        "comments": len(comments),
    }


def count_content_words(texts: pa.Array) -> pa.Array:
    """Count the tokens of each text that are not on the stop list (the `t` of EnDex, equation 7).

    A token is a run of [a-z0-9'] in the lower-cased text. Arrow splits and looks up all texts at
    once: SQL and Python, which look at each word, take twice the time of the whole reading.

    Returns:
        One integer (int32) per text, 0 and up.

    >>> count_content_words(pa.array(["the best Pumpkin soup", "", "isn't it?"])).to_pylist()
    [3, 0, 0]
    """
    texts = texts.cast(pa.large_string())
    for letter, ascii_letters in FOREIGN.items():
        texts = pc.replace_substring(texts, letter, ascii_letters)
    _, offsets, letters = texts.buffers()
    # Byte for byte, so that each text still ends where it did.
    letters = letters.to_pybytes() if letters else b""
    letters = pa.py_buffer(letters.lower().translate(TOKEN_BYTES))
    tokens = pa.LargeStringArray.from_buffers(
        len(texts), offsets, letters, offset=texts.offset
    )
    # "" where a text begins or ends with a space.
    words = pc.ascii_split_whitespace(tokens)
    not_counted = pa.array(["", *stop_words()], pa.large_string())
    is_counted = pc.invert(pc.is_in(words.values, not_counted))
    cumulative = np.concatenate([[0], np.cumsum(is_counted)])
    return pa.array(np.diff(cumulative[words.offsets]), pa.int32())


def write_pieces(dump: Path, folder: Path) -> Iterator[Path]:
    """Write a dump as plain files of whole lines; the caller deletes each after reading it."""
    chunks = whole_lines(decompressed_blocks(dump))
    for number, first in enumerate(chunks):
        piece = folder / f"part-{number:05d}.ndjson"
        with piece.open("wb") as out:
            for chunk in chain([first], chunks):
                out.write(chunk)
                if out.tell() >= PIECE_SIZE:
                    break
        yield piece


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Divide a stream at line ends; a line of more than `MAX_LINE` bytes becomes `TOO_LONG`.

    >>> b"".join(whole_lines([b"one\\ntw", b"o\\nthree"]))
    b'one\\ntwo\\nthree'
    """
    rest = b""  # of the line whose end is still to come
    for block in blocks:
        for start in range(0, len(block), MAX_LINE):
            part = block[start : start + MAX_LINE]
            first_line = part.find(b"\n") + 1
            if not first_line:
                rest = (rest + part)[: MAX_LINE + 1]
                continue
            rest = (rest + part[:first_line])[: MAX_LINE + 1]
            yield _bounded(rest)
            last_line = part.rfind(b"\n") + 1
            yield memoryview(part)[first_line:last_line]
            rest = part[last_line:]
    if rest:
        yield _bounded(rest)


def _bounded(line: bytes) -> bytes:
    """The line; `TOO_LONG` in place of one that is."""
    if len(line) > MAX_LINE:
        return TOO_LONG
    return line


def decompressed_blocks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a dump in order.

    All frames are read, with windows up to 2 GiB. A file that does not begin like zstandard is
    read without decompression.

    Raises:
        DumpError: the file is damaged, or ends in the middle of a frame.
    """
    size = path.stat().st_size
    progress = {"total": size, "desc": path.name, "leave": False}
    with path.open("rb") as raw, tqdm.wrapattr(raw, "read", **progress) as dump:
        chunk = dump.read(READ_SIZE)
        if not chunk.startswith(ZSTD):
            while chunk:
                yield chunk
                chunk = dump.read(READ_SIZE)
            return
        frame = None
        while chunk:
            if frame is None:
                frame = zstandard.ZstdDecompressor(
                    max_window_size=WINDOW
                ).decompressobj()
            try:
                yield frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise DumpError(
                    f"{path.name}: damaged before byte {dump.tell():,} ({error}). Download it "
                    "again and compare its checksum."
                ) from error
            chunk = frame.unused_data or dump.read(READ_SIZE)
            if frame.eof:
                frame = None
    if frame is not None:
        raise DumpError(
            f"{path.name}: cut off inside a frame (the file has {size:,} bytes). "
            "Download the rest and run again: finished files are not read twice."
        )
