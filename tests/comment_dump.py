"""Write Reddit comment dumps of any size for tests and benchmarks: invented words, real traps.

The records have the 39 fields of a 2019 dump and the shapes that matter for speed and for
correctness: interleaved threads of power-law size, 44 % answers to submissions, votes with a long
tail, and every irregularity that the loader must survive:

- edited: false, true, integer, float, string, null; created_utc: integer, string, float, null;
- score: null, negative, hidden; author or body deleted or removed, bots, quotes;
- parents of the month before, that the dump does not hold;
- lines cut in the middle, blank lines, lines that are no object.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import zstandard

START = 1_546_300_800  # 2019-01-01 in UTC: the first second of the generated month
MONTH = 31 * 86_400

FUNCTION_WORDS = [
    "the",
    "a",
    "and",
    "of",
    "to",
    "i",
    "it",
    "is",
    "in",
    "you",
    "that",
    "not",
]
SYLLABLES = [consonant + vowel for consonant in "bdklmrst" for vowel in "aeiou"]

# Fields that the pipeline does not read: they make the lines as long as real ones.
FILLER = ",".join(f'"field_that_nobody_reads_{n}":null' for n in range(28))


def base36(number: int) -> str:
    """A comment id as Reddit writes it."""
    return np.base_repr(number, 36).lower()


def vocabulary(rng: np.random.Generator, size: int = 4000) -> np.ndarray:
    """Invented content words, every third word a function word of the stop list."""
    invented = ["".join(rng.choice(SYLLABLES, rng.integers(2, 5))) for _ in range(size)]
    return np.array(
        invented + FUNCTION_WORDS * (size // (2 * len(FUNCTION_WORDS))), dtype=object
    )


def threads(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Thread number of each comment in time order, and position of its parent (-1: submission)."""
    n_threads = max(1, n // 12)
    popularity = 1 / np.arange(1, n_threads + 1) ** 0.8
    thread = rng.choice(n_threads, size=n, p=popularity / popularity.sum())
    order = np.argsort(thread, kind="stable")  # position by (thread, time)
    first = np.searchsorted(thread[order], np.arange(n_threads))
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n) - first[thread[order]]
    # A reply goes to a recent comment of its thread more often than to an old one.
    parent_rank = np.floor(rank * np.sqrt(rng.random(n))).astype(np.int64)
    parent = order[np.minimum(first[thread] + parent_rank, n - 1)]
    return thread, np.where((rank == 0) | (rng.random(n) < 0.4), -1, parent)


def records(n: int, seed: int = 0, first_id: int = 36**6) -> Iterator[str]:
    """The lines of one dump, in time order, without line ends.

    `first_id` sets the id of the first comment: two months generated with different values can be
    read together.
    """
    rng = np.random.default_rng(seed)
    words = vocabulary(rng)
    thread, parent = threads(rng, n)
    length = np.clip(rng.lognormal(np.log(15), 0.95, n), 1, 400).astype(int)
    last = np.cumsum(length)
    score = np.round(rng.pareto(1.2, n) + 1).clip(max=30_000).astype(int)
    score = np.where(rng.random(n) < 0.06, -rng.integers(0, 12, n), score)
    # Unpopular parents with unpopular replies are what makes the popularity value <= 0.
    score = np.where(rng.random(n) < 0.01, -rng.integers(2, 40, n), score)
    created = START + np.sort(rng.integers(0, MONTH, n))
    kind = rng.random((n, 6))
    text = words[rng.integers(0, len(words), last[-1])].tolist()
    for i, u in enumerate(kind):
        body = " ".join(text[last[i] - length[i] : last[i]])
        author = f"user_{i % 9973}"
        votes = str(score[i])
        when = str(created[i])
        edited = hidden = "false"
        parent_id = f"t3_{base36(36**5 + int(thread[i]))}"
        if parent[i] >= 0:
            parent_id = f"t1_{base36(first_id + parent[i])}"
            if u[5] < 0.02:  # of the month before
                parent_id = f"t1_{base36(1000 + i)}"
        if u[0] < 0.05:
            edited = ("true", f"{when}", f"{when}.0", '"false"', "null", "0")[
                int(u[0] * 120)
            ]
        if u[1] < 0.3:
            when = (f'"{when}"', f"{when}.0", when)[int(u[1] * 10)]
        elif u[1] > 0.99:
            when = "null"
        if u[2] < 0.04:
            quote = (
                "&gt; "
                + body
                + '\\n\\n\\ud83d\\ude00 I don\'t \\"agree\\" \u00e9t\u00e9'
            )
            cases = [("[deleted]", "[deleted]"), (author, "[removed]")]
            cases += [("AutoModerator", body), (author, quote)]
            author, body = cases[int(u[2] * 100)]
        if u[4] < 0.01:
            votes, hidden = ("null", "false") if u[4] < 0.004 else (votes, "true")
        yield (
            f'{{{FILLER},"author":"{author}","author_fullname":"t2_{i % 9973:06d}","body":"{body}",'
            f'"controversiality":{int(u[3] < 0.03)},"created_utc":{when},"edited":{edited},'
            f'"id":"{base36(first_id + i)}","link_id":"t3_{base36(36**5 + int(thread[i]))}",'
            f'"parent_id":"{parent_id}","retrieved_on":{created[i] + 86_400},"score":{votes},'
            f'"score_hidden":{hidden},"subreddit":"sub_{thread[i] % 60}",'
            f'"subreddit_id":"t5_{thread[i] % 60:04d}"}}'
        )
        if i % 20_011 == 20_010:
            yield ('{"id": "cut off here', "", "[1, 2]", '"text"')[i // 20_011 % 4]


def write(
    path: Path,
    n: int,
    seed: int = 0,
    window_log: int = 22,
    frames: int = 1,
    first_id: int = 36**6,
) -> Path:
    """Write `n` comments as plain ndjson or, for a name ending in .zst, compressed.

    window_log: 31 is the window of the public dumps; 22 is one that every reader accepts.
    frames: number of zstd frames, one after the other, in the file.
    """
    lines = records(n, seed, first_id)
    if path.suffix != ".zst":
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path
    parameters = zstandard.ZstdCompressionParameters.from_level(
        3, window_log=window_log, enable_ldm=window_log > 27
    )
    with path.open("wb") as raw:
        for rest in reversed(range(frames)):
            compressor = zstandard.ZstdCompressor(compression_params=parameters)
            with compressor.stream_writer(raw, closefd=False) as out:
                for line in islice(lines, n // frames if rest else None):
                    out.write(line.encode() + b"\n")
    return path
