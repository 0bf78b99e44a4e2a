"""Reddit comments: from dumps to Parquet, with the features that EnDex needs.

The public dumps are zstandard frames with a window of 2 GiB: most readers refuse them ("Frame
requires too much memory"), and those that do not may hold the whole month in memory. Here a dump is
decompressed as a stream, and cut at line ends into pieces that any reader takes. Memory is bounded,
whatever the file unpacks to.

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
from tqdm.auto import tqdm

from lib import ROOT
from lib.data import reddit_52_forums, reddit_cmv, reddit_college
from lib.data.stop_words import stop_words
from lib.data.storage import atomic_write, read_json

CACHE = ROOT / "data" / "cache" / "reddit"
#: Public corpora of comments, by the name of their loader.
SOURCES = {load.__name__: load for load in (reddit_college, reddit_52_forums, reddit_cmv)}
FEATURES = Path(__file__).with_name("features.sql").read_text(encoding="utf-8")
# A blank for every byte that is no part of a token.
TOKEN_LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789'"
TOKEN_BYTES = bytes(byte if byte in TOKEN_LETTERS else ord(" ") for byte in range(256))
# The letters outside ASCII that are a token in lower case: I with a dot (which ends the token) and
# the sign for kelvin.
FOREIGN = {"\u0130": "i ", "\u212a": "k"}
READERS = min(8, os.cpu_count() or 1)  # pieces that are read at the same time
VERSION = 2  # of the count of content words; raise it when the counts change
RECORD = "_record.json"  # readers of Parquet folders skip names that start with "_"

ZSTD = b"\x28\xb5\x2f\xfd"
WINDOW = 2**31  # bytes: the `--long=31` of the public dumps
READ = 1 << 13  # bytes read from the dump at once: 256 MiB at the most when decompressed
PIECE = 1 << 27  # bytes of decompressed text in a piece, about 100,000 comments
LONGEST = 1 << 22  # bytes of a line; the longest comment that Reddit takes has 40,000 letters
TOO_LONG = b'"too long"\n'  # stands in for a line of more than LONGEST bytes

# Accounts that answer by machine: their replies say nothing about engagement.
BOTS = ["AutoModerator", "RemindMeBot", "WikiTextBot", "autotldr", "sneakpeekbot", "TotesMessenger"]


class DumpError(ValueError):
    """A dump that cannot be read; the message names the file and the way out."""


def comments(source: str | Path | Sequence[str]) -> tuple[Path, pd.DataFrame]:
    """Parquet of comments with features, made on first use and kept in data/cache.

    Args:
        source: "sample" (the shipped dumps, synthetic), a folder of comment dumps of your own, or
            one or several of `SOURCES` (real comments, downloaded on first use).

    Returns:
        The folder of Parquet, and the account of what was read (see `to_parquet`).

    Raises:
        FileNotFoundError: the folder holds no dump.
    """
    names = [str(source)] if isinstance(source, str | Path) else sorted(source)
    place = ROOT / "data" / "sample" / "reddit" if names == ["sample"] else Path(names[0])
    if set(names) <= SOURCES.keys():
        place = CACHE / "dumps" / "+".join(names)
        for name in names:
            _write_dump(SOURCES[name](), place / f"{name}.ndjson")
    dumps = sorted(path for path in place.glob("*") if path.suffix in (".zst", ".ndjson", ".jsonl"))
    if not dumps:
        raise FileNotFoundError(
            f"no comment dump (*.zst, *.ndjson) in {place}: put RC_YYYY-MM.zst there, "
            f"or name the sample or some of {', '.join(SOURCES)}"
        )
    # By the whole path: two folders of one name are two sources.
    of_path = hashlib.sha256(str(place.resolve()).encode()).hexdigest()[:8]
    folder = CACHE / f"{place.resolve().name}-{of_path}"
    account = to_parquet(dumps, folder)
    for gone in set(folder.iterdir()) - {folder / dump.name for dump in dumps}:
        shutil.rmtree(gone)
    return folder, account


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
    dumps, folder = [Path(dump) for dump in dumps], Path(folder)
    if len({dump.name for dump in dumps}) < len(dumps):
        raise DumpError("two dumps have the same name: read each into a folder of its own")
    records, failures = [], []
    for dump in dumps:
        try:
            records.append(_one_dump(dump, folder))
        except DumpError as error:
            failures.append(str(error))
    if failures:
        finished = f"{len(records)} other dump(s) are finished and kept."
        raise DumpError("\n".join([*failures, finished]))
    return pd.DataFrame(records).drop(columns="made_of")


def parquet_files(place: str | Path) -> list[Path]:
    """The Parquet files of a file, a folder, or a folder of folders; no unfinished ones."""
    place = Path(place)
    found = [place] if place.is_file() else sorted(place.rglob("*.parquet"))
    files = [file for file in found if not any(p.suffix == ".partial" for p in file.parents)]
    if not files:
        raise FileNotFoundError(f"no Parquet file in {place}: run lib.endex.to_parquet first")
    return files


def _write_dump(records: pd.DataFrame, dump: Path) -> None:
    """Write a table of comments as a dump; an equal one keeps its time, and is not read again."""
    text = records.to_json(orient="records", lines=True)
    if not dump.is_file() or dump.read_text(encoding="utf-8") != text:
        with atomic_write(dump) as unfinished:
            unfinished.write_text(text, encoding="utf-8")


def _one_dump(dump: Path, folder: Path) -> dict:
    """Read one dump, or find it read: the folder appears under its name only when complete.

    A dump of something else stops at its first piece, instead of being called bad lines.
    """
    done, state, counts = folder / dump.name, dump.stat(), Counter()
    recipe = [state.st_size, state.st_mtime_ns, VERSION, FEATURES, BOTS, sorted(stop_words())]
    made_of = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
    if (done / RECORD).is_file():
        record = read_json(done / RECORD)
        if record["made_of"] == made_of:
            return record
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = TemporaryDirectory(dir=folder, suffix=".partial", ignore_cleanup_errors=True)
    with unfinished as scratch:
        for piece in _all_pieces(dump, Path(scratch)):
            counts.update(piece)
            if not counts["comments"]:
                break
        if not counts["comments"]:
            raise DumpError(
                f"{dump.name}: no Reddit comment in the first {counts['lines']:,} lines. A "
                "comment dump (RC_*, not RS_*) has one JSON object per line with id, parent_id, "
                "link_id and body; unpack other archives than zstandard first."
            )
        record = {"file": dump.name, "made_of": made_of, **counts}
        Path(scratch, RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(done, ignore_errors=True)
        Path(scratch).rename(done)
    return record


def _all_pieces(dump: Path, folder: Path) -> Iterator[dict[str, int]]:
    """Read the pieces of a dump, some at a time on a thread each, and yield their counts."""
    waiting = deque()
    with ThreadPoolExecutor(READERS) as pool:
        for piece in pieces(dump, folder):
            waiting.append(pool.submit(_one_piece, piece, dump.stem))
            if len(waiting) > READERS:  # so many pieces lie on the disk, not the whole dump
                yield waiting.popleft().result()
        for job in waiting:
            yield job.result()


def _one_piece(piece: Path, source: str) -> dict[str, int]:
    """Write the comments of one piece, on one thread, which keeps their order, and count them."""
    with duckdb.connect(config={"threads": 1}) as connection:
        given = {"file": str(piece), "bots": BOTS, "source": source}
        lines = connection.sql(FEATURES, params=given).to_arrow_table()
    piece.unlink()
    found = lines.filter(lines["id"].is_valid())
    answers = pc.and_(found["usable"], found["parent"].is_valid()).combine_chunks()
    counted = count_content_words(found["body"].combine_chunks().filter(answers))
    tokens = pc.replace_with_mask(pa.nulls(len(found), pa.int32()), answers, counted)
    # Texts hardly ever repeat, so a dictionary of them costs time and saves no space.
    names = [name for name in found.column_names if name not in ("id", "body")]
    found = found.add_column(found.column_names.index("body"), "tokens", tokens)
    pq.write_table(found, piece.with_suffix(".parquet"), use_dictionary=names)
    return {"lines": len(lines), "bad_lines": len(lines) - len(found), "comments": len(found)}


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
    _, ends, letters = texts.buffers()
    # Byte for byte, so that each text still ends where it did.
    letters = (letters.to_pybytes() if letters else b"").lower().translate(TOKEN_BYTES)
    plain = pa.LargeStringArray.from_buffers(
        len(texts), ends, pa.py_buffer(letters), offset=texts.offset
    )
    words = pc.ascii_split_whitespace(plain)  # "" where a text begins or ends with a blank
    counted = pc.invert(pc.is_in(words.values, pa.array(["", *stop_words()], pa.large_string())))
    before = np.concatenate([[0], np.cumsum(counted)])
    return pa.array(np.diff(before[words.offsets]), pa.int32())


def pieces(path: Path, folder: Path) -> Iterator[Path]:
    """Write a dump as plain files of whole lines into `folder`; who has read one deletes it."""
    lines = whole_lines(decompressed_blocks(path))
    for number, first in enumerate(lines):
        piece = folder / f"part-{number:05d}.ndjson"
        with piece.open("wb") as out:
            for chunk in chain([first], lines):
                out.write(chunk)
                if out.tell() >= PIECE:
                    break
        yield piece


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Cut a stream at line ends; a line of more than `LONGEST` bytes becomes `TOO_LONG`.

    >>> b"".join(whole_lines([b"one\\ntw", b"o\\nthree"]))
    b'one\\ntwo\\nthree'
    """
    rest = b""  # of the line whose end is still to come
    for block in blocks:
        for start in range(0, len(block), LONGEST):
            part = block[start : start + LONGEST]
            first, end = part.find(b"\n") + 1, part.rfind(b"\n") + 1
            rest = (rest + part[: first or None])[: LONGEST + 1]
            if first:
                yield TOO_LONG if len(rest) > LONGEST else rest
                yield memoryview(part)[first:end]
                rest = part[end:]
    if rest:
        yield TOO_LONG if len(rest) > LONGEST else rest


def decompressed_blocks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a dump in order.

    All frames are read, with windows up to 2 GiB. A file that does not begin like zstandard is
    read as it is.

    Raises:
        DumpError: the file is damaged, or ends in the middle of a frame.
    """
    frame, bar = None, {"total": path.stat().st_size, "desc": path.name, "leave": False}
    with path.open("rb") as raw, tqdm.wrapattr(raw, "read", **bar) as dump:
        chunk = dump.read(READ)
        compressed = chunk.startswith(ZSTD)
        while chunk and not compressed:
            yield chunk
            chunk = dump.read(READ)
        while chunk:
            frame = frame or zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
            try:
                yield frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise DumpError(
                    f"{path.name}: damaged before byte {dump.tell():,} ({error}). Download it "
                    "again and compare its checksum."
                ) from error
            chunk = frame.unused_data or dump.read(READ)
            frame = None if frame.eof else frame
    if frame is not None:
        raise DumpError(
            f"{path.name}: cut off inside a frame (the file has {path.stat().st_size:,} bytes). "
            "Download the rest and run again: finished files are not read twice."
        )
