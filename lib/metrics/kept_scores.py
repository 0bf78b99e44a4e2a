"""Compute metrics of a turn table by name, and keep what was computed with what it rests on."""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT
from lib.data import is_blank, written_whole
from lib.metrics.registry import Metric, registered

ROWS = 2000
LIBRARIES = ("numpy", "pandas", "torch", "transformers", "nltk", "sacrebleu", "rouge-score")


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def compute(
    turns: pd.DataFrame,
    names: Sequence[str],
    *,
    options: Mapping[str, Mapping] | None = None,
    folder: str | Path | None = None,
    rows: int = ROWS,
    say: Callable[[str], object] = _to_stderr,
) -> pd.DataFrame:
    """Compute metrics of a turn table, or read them where they were computed before.

    A kept score is known by its metric and version, its options, the checksums of weights and
    lexica behind it, the versions of the libraries, and the texts that it read. A run that was cut
    off goes on at the batch where it stopped.

    Args:
        turns: turn table; the columns that each metric needs, see `available()`.
        names: names of metrics.
        options: options by metric name, such as {"bertscore": {"layer": 9}}; numbers, texts and
            lists of them, since they are part of the provenance.
        folder: where scores are kept; data/cache/scores by default.
        rows: rows per batch, the unit that a crash can cost.
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
    tables, records, missing = [], {}, {}
    for name in names:
        chosen = registered(name)
        given = chosen.chosen(turns, (options or {}).get(name, {}))
        record = _provenance(chosen, given)
        table = _scores(turns, chosen, given, record, folder, rows, say)
        records |= dict.fromkeys(table, record)
        missing |= _missing(turns, chosen, table)
        tables.append(table)
    scores = pd.concat([pd.DataFrame(index=range(len(turns))), *tables], axis=1)
    scores.index = turns.index
    scores.attrs |= {"provenance": records, "missing": missing}
    return scores


def signature(record: Mapping) -> str:
    """Write a provenance record as one line, in the spirit of sacreBLEU's signature.

    >>> signature({"metric": "m", "layer": 9, "libraries": {"numpy": "2"}})
    'm|layer:9'
    """
    left_out = {"metric", "libraries"}
    rest = (f"{key}:{value}" for key, value in sorted(record.items()) if key not in left_out)
    return "|".join([record["metric"], *rest])


def _provenance(chosen: Metric, options: dict) -> dict:
    try:
        stated = json.loads(json.dumps(options))
    except TypeError as error:
        only = f"the options of {chosen.name} must be numbers, texts or lists ({error})"
        raise ValueError(f"{only}; for anything else register a metric of your own") from None
    record = {"metric": chosen.name, "version": chosen.version, "options": stated}
    facts = chosen.facts(**options) if chosen.facts else {}
    return {**record, **facts, "libraries": {name: version(name) for name in LIBRARIES}}


def _key(turns: pd.DataFrame, chosen: Metric, record: dict, size: int) -> str:
    rows = turns[list(chosen.needs)].to_numpy(dtype=object).tolist()
    whole = json.dumps([record, size, rows], sort_keys=True, default=_plain)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def _scores(turns, chosen, options, record, folder, rows, say) -> pd.DataFrame:
    # A row's score may depend on its place: then no batch will do.
    size = max(len(turns), 1) if chosen.whole else rows
    place = folder / f"{chosen.name}-{_key(turns, chosen, record, size)}"
    starts = range(0, max(len(turns), 1), size)
    parts, computed = [], 0
    for start in tqdm(starts, desc=chosen.name, disable=len(starts) < 3, leave=False):
        piece = turns.iloc[start : start + size]
        file = place / f"{start // size:06d}.parquet"
        part = _kept(file) if chosen.version else None
        if part is None:
            part = _columns(chosen.function(piece, **options), chosen, len(piece))
            computed += len(piece)
            if chosen.version:
                _keep(part, file, record)
        parts.append(part)
    counts = {"computed": computed, "reused": len(turns) - computed}
    done = [f"{word} {count:,} rows" for word, count in counts.items() if count]
    say(f"{chosen.name}: {', '.join(done) or 'no rows'}")
    return pd.concat(parts, ignore_index=True)


def _kept(file: Path) -> pd.DataFrame | None:
    """Read a finished part; one that is not there, or damaged, is to be computed."""
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError):
        return None


def _keep(part: pd.DataFrame, file: Path, record: dict) -> None:
    with written_whole(file) as unfinished:
        part.to_parquet(unfinished, index=False)
    with written_whole(file.with_name("provenance.json")) as unfinished:
        stated = {**record, "computed": date.today().isoformat()}
        unfinished.write_text(json.dumps(stated, indent=1) + "\n", encoding="utf-8")


def _columns(result: pd.Series | pd.DataFrame, chosen: Metric, rows: int) -> pd.DataFrame:
    table = result.to_frame(chosen.name) if isinstance(result, pd.Series) else result
    if len(table) != rows:
        raise ValueError(f"{chosen.name} returned {len(table)} scores for {rows} rows")
    return table.select_dtypes("number").astype("float64").reset_index(drop=True)


def _missing(turns: pd.DataFrame, chosen: Metric, table: pd.DataFrame) -> dict:
    reasons = pd.Series("undefined by the metric", index=range(len(turns)))
    for column in reversed(chosen.needs):
        reasons[[_is_missing(value) for value in turns[column]]] = f"no {column}"
    blank = {name: reasons[values.isna().to_numpy()] for name, values in table.items()}
    return {name: found.value_counts().to_dict() for name, found in blank.items()}


def _is_missing(value: object) -> bool:
    return all(map(is_blank, value if isinstance(value, list | np.ndarray | tuple) else [value]))
