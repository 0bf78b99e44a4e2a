"""Compute metrics of a turn table by name, and keep what was computed with what it rests on."""

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT
from lib.data import written_whole
from lib.metrics.registry import Metric, reasons, registered

ROWS = 2000  # rows per batch, the unit that a crash can cost
LIBRARIES = ("numpy", "pandas", "torch", "transformers", "nltk", "sacrebleu", "rouge-score")


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def compute(
    turns: pd.DataFrame,
    names: Sequence[str],
    *,
    options: Mapping[str, Mapping] | None = None,
    folder: str | Path | None = None,
    say: Callable[[str], object] = _to_stderr,
) -> pd.DataFrame:
    """Compute metrics of a turn table, or read them where they were computed before.

    A kept score is known by its metric and version, its options, the checksums of weights and
    lexica behind it, the versions of the libraries, and the texts that it read. A run that was cut
    off goes on at the batch where it stopped. A metric without a version is computed anew.

    Args:
        turns: turn table with the columns that each metric needs (`METRICS[name].needs`).
        names: names of metrics.
        options: options by metric name, such as {"bertscore": {"layer": 9}}; numbers, texts and
            lists of them, since they are part of the provenance.
        folder: where scores are kept; data/cache/scores by default.
        say: takes a line for each metric: what was reused, what was computed; prints to standard
            error by default.

    Returns:
        One float column per score on `turns.index`; missing is NaN. `attrs["provenance"]` has the
        provenance record of each column and `attrs["missing"]` its NaN counts by reason.

    Raises:
        ValueError: unknown metric, a missing column or option, or a metric that is not defined per
            turn.
        OSError: the disk is full; finished batches are kept.

    >>> from tempfile import TemporaryDirectory
    >>> turns = pd.DataFrame({"response": ["We walk.", "No."], "reference": [["We walk."], []]})
    >>> with TemporaryDirectory() as folder:
    ...     first = compute(turns, ["word_f1_normalized"], folder=folder, say=print)
    ...     again = compute(turns, ["word_f1_normalized"], folder=folder, say=print)
    word_f1_normalized: computed 2 rows
    word_f1_normalized: reused 2 rows
    >>> print(again["word_f1_normalized"].tolist(), again.attrs["missing"])
    [1.0, nan] {'word_f1_normalized': {'no reference': 1}}
    """
    folder = Path(folder or ROOT / "data" / "cache" / "scores")
    jobs = [
        _job(turns, registered(name), dict((options or {}).get(name, {})), folder) for name in names
    ]
    # Batch by batch and not metric by metric: what reads the same texts finds them read.
    for start in tqdm(range(0, max(len(turns), 1), ROWS), desc="scores", delay=1, leave=False):
        for job in jobs:
            job.run(turns, start)
    tables, records, missing = [pd.DataFrame(index=range(len(turns)))], {}, {}
    for job in jobs:
        counts = {"computed": job.computed, "reused": len(turns) - job.computed}
        done = [f"{word} {count:,} rows" for word, count in counts.items() if count]
        say(f"{job.metric.name}: {', '.join(done) or 'no rows'}")
        table = pd.concat(job.parts, ignore_index=True)
        why = reasons(turns, job.metric.needs).to_numpy()
        for column, values in table.items():
            records[column] = job.record
            missing[column] = pd.Series(why[values.isna()]).value_counts().to_dict()
        tables.append(table)
    scores = pd.concat(tables, axis=1).set_axis(turns.index)
    scores.attrs = {"provenance": records, "missing": missing}
    return scores


@dataclass
class Job:
    """One metric of a table: where its batches are kept, and those that are done."""

    metric: Metric
    options: dict
    record: dict
    size: int
    place: Path
    parts: list = field(default_factory=list)
    computed: int = 0

    def run(self, turns: pd.DataFrame, start: int) -> None:
        """Read or compute the batch that begins at `start`, where one of this metric does."""
        if start % self.size:
            return
        piece, file = (
            turns.iloc[start : start + self.size],
            self.place / f"{start // self.size:06d}.parquet",
        )
        part = _kept(file) if self.metric.version else None
        if part is None:
            part = _columns(self.metric.function(piece, **self.options), self.metric, len(piece))
            self.computed += len(piece)
            if self.metric.version:
                part.attrs = self.record  # pandas writes it into the file
                with written_whole(file) as unfinished:
                    part.to_parquet(unfinished, index=False)
        self.parts.append(part)


def _job(turns: pd.DataFrame, chosen: Metric, options: dict, folder: Path) -> Job:
    _check(turns, chosen, options)
    record = _provenance(chosen, options)
    # A row's score may depend on its place: then no batch will do.
    size = max(len(turns), 1) if chosen.whole else ROWS
    dumps = partial(json.dumps, sort_keys=True, default=list)
    key = hashlib.sha256(f"[{dumps(record)}, {size}, [".encode())
    for start in range(0, len(turns), ROWS):  # so that a long table is never one text
        texts = turns.iloc[start : start + ROWS][list(chosen.needs)].to_numpy(dtype=object).tolist()
        key.update((", " * bool(start) + dumps(texts)[1:-1]).encode())
    key.update(b"]]")
    place = folder / f"{chosen.name}-{key.hexdigest()[:16]}"
    return Job(chosen, options, record, size, place)


def _check(turns: pd.DataFrame, chosen: Metric, options: dict) -> None:
    if lacking := [column for column in chosen.needs if column not in turns.columns]:
        raise ValueError(f"{chosen.name} needs the column {lacking[0]}, which the table lacks")
    try:
        inspect.signature(chosen.function).bind(turns, **options)
    except TypeError as error:
        raise ValueError(
            f"{chosen.name}: {error}. Options are given by metric: "
            f'compute(turns, [...], options={{"{chosen.name}": {{...}}}})'
        ) from None


def _provenance(chosen: Metric, options: dict) -> dict:
    facts = chosen.facts(**options) if chosen.facts else {}
    libraries = {name: version(name) for name in LIBRARIES}
    record = {"metric": chosen.name, "version": chosen.version, "options": options}
    try:
        return json.loads(json.dumps({**record, **facts, "libraries": libraries}))
    except TypeError as error:
        only = f"the options of {chosen.name} must be numbers, texts or lists ({error})"
        raise ValueError(f"{only}; for anything else call lib.metrics.{chosen.name}") from None


def _kept(file: Path) -> pd.DataFrame | None:
    """Read a finished part; one that is not there, or damaged, is to be computed."""
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError):
        return None


def _columns(result: pd.Series | pd.DataFrame, chosen: Metric, rows: int) -> pd.DataFrame:
    table = result.to_frame(chosen.name) if isinstance(result, pd.Series) else result
    if len(table) != rows:
        raise ValueError(f"{chosen.name} returned {len(table)} scores for {rows} rows")
    return table.select_dtypes("number").astype("float64").reset_index(drop=True)
