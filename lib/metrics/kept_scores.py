"""Compute metrics of a turn table by name, and keep what was computed with what it rests on."""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT
from lib.data import is_blank
from lib.data.storage import written_whole
from lib.metrics.registry import Metric, registered

ROWS = 2000
LIBRARIES = ("numpy", "pandas", "torch", "transformers", "nltk", "sacrebleu", "rouge-score")


def compute(
    turns: pd.DataFrame,
    names: Sequence[str],
    *,
    options: Mapping[str, Mapping] | None = None,
    folder: str | Path | None = None,
    rows: int = ROWS,
    say: Callable[[str], object] | None = None,
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
    >>> import lib.endex
    >>> turns = pd.DataFrame({"response": ["Why not?", "No."]})
    >>> with TemporaryDirectory() as folder:
    ...     first = compute(turns, ["question"], folder=folder, say=print)
    ...     again = compute(turns, ["question"], folder=folder, say=print)
    question: computed 2 rows
    question: reused 2 rows
    >>> print(again["question"].tolist())
    [1.0, 0.0]
    """
    folder = Path(folder or ROOT / "data" / "cache" / "scores")
    say = say or partial(print, file=sys.stderr)
    tables, records = [], {}
    for name in names:
        chosen = registered(name)
        given = chosen.chosen(turns, (options or {}).get(name, {}))
        record = _provenance(chosen, given)
        table = _scores(turns, chosen, given, record, folder, rows, say)
        record |= {"rows": len(turns), "missing": _missing(turns, chosen, table)}
        records |= dict.fromkeys(table.columns, record)
        tables.append(table)
    scores = pd.concat(tables, axis=1) if tables else pd.DataFrame(index=range(len(turns)))
    scores.index = turns.index
    scores.attrs["provenance"] = records
    scores.attrs["missing"] = {name: record["missing"][name] for name, record in records.items()}
    return scores


def signature(record: Mapping) -> str:
    """Write a provenance record as one line, in the spirit of sacreBLEU's signature.

    >>> signature({"metric": "m", "layer": 9, "rows": 5, "missing": {}})
    'm|layer:9'
    """
    left_out = {"metric", "rows", "missing", "libraries"}
    rest = (f"{key}:{value}" for key, value in sorted(record.items()) if key not in left_out)
    return "|".join([record["metric"], *rest])


def _provenance(chosen: Metric, options: dict) -> dict:
    try:
        stated = json.loads(json.dumps(options))
    except TypeError as error:
        raise ValueError(
            f"the options of {chosen.name} must be numbers, texts or lists ({error}); for anything "
            "else register a metric of your own with its facts"
        ) from None
    return {
        "metric": chosen.name,
        "version": chosen.version,
        "options": stated,
        **(chosen.facts(**options) if chosen.facts else {}),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def _scores(turns, chosen, options, record, folder, rows, say) -> pd.DataFrame:
    # Neighbours share contexts and references, which metrics encode once per batch.
    near = (
        turns["dialog"].astype(str) if "dialog" in turns and not chosen.whole else [""] * len(turns)
    )
    order = np.argsort(np.asarray(near), kind="stable")
    rows = max(len(order), 1) if chosen.whole else rows
    pieces = [order[start : start + rows] for start in range(0, len(order), rows)] or [order]
    place = (
        folder / f"{chosen.name}-{_key(turns, chosen, record, rows)}" if chosen.version else None
    )
    parts, reused = [], 0
    for number, piece in enumerate(
        tqdm(pieces, desc=chosen.name, unit="part", disable=len(pieces) < 3, leave=False)
    ):
        file = place / f"{number:06d}.parquet" if place else None
        if file and file.exists():
            reused += len(piece)
            parts.append(pd.read_parquet(file))
            continue
        part = _columns(chosen.function(turns.iloc[piece], **options), chosen, len(piece))
        parts.append(part)
        if file:
            with written_whole(file) as unfinished:
                part.to_parquet(unfinished, index=False)
    if reused < len(turns) and place:
        with written_whole(place / "provenance.json") as unfinished:
            stated = json.dumps({**record, "computed": date.today().isoformat()}, indent=1)
            unfinished.write_text(stated + "\n", encoding="utf-8")
    computed = len(turns) - reused
    say(
        f"{chosen.name}: "
        + (f"computed {computed:,} rows" if computed or not reused else "")
        + (", " if computed and reused else "")
        + (f"reused {reused:,} rows" if reused else "")
    )
    table = pd.concat(parts, ignore_index=True)
    return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def _columns(result, chosen: Metric, rows: int) -> pd.DataFrame:
    table = result.to_frame(chosen.name) if isinstance(result, pd.Series) else result
    if len(table) != rows:
        raise ValueError(f"{chosen.name} returned {len(table)} scores for {rows} rows")
    return table.select_dtypes("number").astype("float64").reset_index(drop=True)


def _key(turns: pd.DataFrame, chosen: Metric, record: dict, rows: int) -> str:
    digest = hashlib.sha256(json.dumps([record, rows], sort_keys=True, default=str).encode())
    read = [*chosen.needs, *(["dialog"] if "dialog" in turns else [])]
    for values in zip(*(turns[column] for column in read), strict=True):
        plain = [list(value) if isinstance(value, list | np.ndarray) else value for value in values]
        digest.update(json.dumps(plain, default=str).encode())
    return digest.hexdigest()[:16]


def _missing(turns: pd.DataFrame, chosen: Metric, table: pd.DataFrame) -> dict:
    reasons = pd.Series("undefined by the metric", index=range(len(turns)))
    for column in reversed(chosen.needs):
        reasons[[_is_missing(value) for value in turns[column]]] = f"no {column}"
    return {
        column: reasons[table[column].isna().to_numpy()].value_counts().to_dict()
        for column in table.columns
    }


def _is_missing(value) -> bool:
    return all(map(is_blank, value if isinstance(value, list | np.ndarray | tuple) else [value]))
