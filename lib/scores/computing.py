"""Compute metrics of a turn table in batches of rows, each kept as soon as it is finished."""

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import notebook_runs
from lib.blank import is_blank
from lib.scores.code import checksum
from lib.scores.registry import Metric, metric
from lib.scores.storing import Store

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
        ValueError: unknown metric, a column that is missing, or a metric that is not defined per
            turn.
        NoSpaceLeft: the disk is full; finished batches are kept.

    >>> from tempfile import TemporaryDirectory
    >>> turns = pd.DataFrame({"response": ["Why not?", "No."]})
    >>> with TemporaryDirectory() as folder:
    ...     first = compute(turns, ["question"], folder=folder, say=print)
    ...     again = compute(turns, ["question"], folder=folder, say=print)
    question: computed 2 rows
    question: reused 2 rows
    >>> print(again["question"].tolist())
    [1.0, 0.0]
    """
    folder = Path(folder or notebook_runs.ROOT / "data" / "cache" / "scores")
    folder.mkdir(parents=True, exist_ok=True)
    say = say or partial(print, file=sys.stderr)
    tables, records = [], {}
    for name in names:
        chosen = metric(name)
        table, record = _one(turns, chosen, dict((options or {}).get(name, {})), folder, rows, say)
        records |= dict.fromkeys(table.columns, record)
        tables.append(table)
    scores = pd.concat(tables, axis=1) if tables else pd.DataFrame(index=range(len(turns)))
    scores.index = turns.index
    scores.attrs["provenance"] = records
    scores.attrs["missing"] = {
        column: record["missing"][column] for column, record in records.items()
    }
    return scores


def signature(record: Mapping) -> str:
    """Write a provenance record as one line, in the spirit of sacreBLEU's signature.

    >>> signature({"metric": "m", "layer": 9, "rows": 5, "missing": {}, "computed": "today"})
    'm|layer:9'
    """
    left_out = {"metric", "rows", "missing", "computed", "libraries"}
    rest = (f"{key}:{value}" for key, value in sorted(record.items()) if key not in left_out)
    return "|".join([record["metric"], *rest])


def _one(turns, chosen: Metric, options: dict, folder: Path, rows: int, say):
    if chosen.level != "turn":
        raise ValueError(
            f"{chosen.name} is defined for a {chosen.level} of responses, not per turn: "
            f"call {chosen.function} on the responses of a system."
        )
    lacking = [column for column in chosen.needs if column not in turns.columns]
    if lacking:
        raise ValueError(f"{chosen.name} needs the column {lacking[0]}, which the table lacks")
    record = _provenance(chosen, options)
    store = Store(folder, chosen.name, _key(turns, chosen, record, rows))
    if (kept := store.read()) is not None:
        say(f"{chosen.name}: reused {len(turns):,} rows")
        return kept
    table = _in_parts(turns, chosen, {**chosen.options, **options}, store, rows, say)
    record |= {
        "rows": len(turns),
        "missing": _missing(turns, chosen, table),
        "computed": date.today().isoformat(),
    }
    store.finish(table, record)
    return table, record


def _in_parts(turns, chosen, options, store, rows, say) -> pd.DataFrame:
    # Neighbours share contexts and references, which metrics encode once per batch.
    grouped = turns["dialog"] if "dialog" in turns else pd.Series("", index=turns.index)
    order = np.argsort(grouped.astype(str).to_numpy(), kind="stable")
    pieces = [order[start : start + rows] for start in range(0, len(order), rows)] or [order]
    parts, found = [], 0
    function = None
    for number, piece in enumerate(
        tqdm(pieces, desc=chosen.name, unit="part", disable=len(pieces) < 3, leave=False)
    ):
        part = store.read_part(number)
        if part is None:
            function = function or chosen.load()
            part = _columns(function(turns.iloc[piece], **options), chosen, len(piece))
            store.write_part(number, part)
        else:
            found += len(piece)
        parts.append(part)
    reused = f", {found:,} found finished" if found else ""
    say(f"{chosen.name}: computed {len(turns) - found:,} rows{reused}")
    table = pd.concat(parts, ignore_index=True)
    return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def _columns(result, chosen: Metric, rows: int) -> pd.DataFrame:
    table = result.to_frame() if isinstance(result, pd.Series) else result
    if isinstance(result, pd.Series):
        table.columns = [chosen.name]
    if len(table) != rows:
        raise ValueError(f"{chosen.name} returned {len(table)} scores for {rows} rows")
    return table.select_dtypes("number").astype("float64").reset_index(drop=True)


def _provenance(chosen: Metric, options: dict) -> dict:
    try:
        stated = json.loads(json.dumps({**chosen.options, **options}))
    except TypeError as error:
        raise ValueError(
            f"the options of {chosen.name} must be numbers, texts or lists ({error}); for anything "
            "else register a Metric of your own with its provenance"
        ) from error
    return {
        "metric": chosen.name,
        **chosen.facts({**chosen.options, **options}),
        "options": stated,
        "code": checksum(chosen.load()),
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
    }


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
