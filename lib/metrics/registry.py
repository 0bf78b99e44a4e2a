"""Every metric by name, what metrics of texts share, and scores kept with what they rest on.

A metric is a function of the turn table with a decorator above it.
"""

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT
from lib.data.storage import atomic_write, suggest_name
from lib.data.turn_table import is_blank
from lib.models import provenance_of

ROWS = 2000  # rows per batch, the unit that a crash can cost
LIBRARIES = ("numpy", "pandas", "torch", "transformers", "nltk", "sacrebleu", "rouge-score")

#: Metrics by name; the rooms that hold them fill it when they are imported.
METRICS: dict[str, "Metric"] = {}


@dataclass(frozen=True)
class Metric:
    """A metric of the turn table, as `metric` registers it.

    Attributes:
        version: changes whenever the scores do, as in sacreBLEU's signature. Scores are kept under
            it; a metric without one is computed anew each time.
        facts: takes the options; returns what the scores depend on besides texts and code, such as
            the checksums of weights and lexica.
        whole: compute all rows at once, because a row's score depends on its place.
    """

    name: str
    family: str
    function: Callable
    needs: tuple[str, ...]
    version: str | None = None
    facts: Callable[..., dict] | None = None
    whole: bool = False


def metric(
    name: str, family: str, needs: tuple[str, ...] = ("response",), model: str = "", **stated
) -> Callable[[Callable], Callable]:
    """Register the function below: `compute` then knows it by name, and so do notebooks 08 and 11.

    The function takes a turn table (and options) and returns a Series, or a frame of named
    columns, on the same index; missing is NaN.

    Args:
        name: its name; a metric of the same name is replaced.
        family: any name; the report and the figures of notebooks 08 and 11 group by it.
        needs: columns that the function reads; kept scores are known by their texts.
        model: the default of the metric's option `checkpoint` or `encoder`; its facts are then
            those of the model that ran.
        stated: any of the last three fields of `Metric`.

    >>> @metric("exclamations", "style")
    ... def exclamations(turns):
    ...     return turns["response"].str.count("!")
    >>> METRICS.pop("exclamations").family
    'style'
    """

    def of_model(**options) -> dict:
        chosen = options.pop("checkpoint", options.pop("encoder", model))
        return provenance_of(chosen, **options)

    def register(function: Callable) -> Callable:
        facts = {"facts": of_model} if model else {}
        METRICS[name] = Metric(name, family, function, needs, **facts, **stated)
        return function

    return register


def get_metric(name: str) -> Metric:
    """Return a registered metric.

    Raises:
        ValueError: no such metric; names the nearest one.

    >>> get_metric("bertscore").needs
    ('response', 'reference')
    """
    if name not in METRICS:
        hint = suggest_name(name, METRICS) or "see lib.metrics.METRICS"
        raise ValueError(f"unknown metric {name!r}: {hint} (is its room imported, as lib.endex?)")
    return METRICS[name]


def missing_reasons(turns: pd.DataFrame, needs: Sequence[str]) -> pd.Series:
    """Say for each row why it can have no score: the first needed column without a visible text.

    >>> turns = pd.DataFrame({"response": ["tea", " "], "reference": [[], ["no"]]})
    >>> missing_reasons(turns, ["response", "reference"]).tolist()
    ['no reference', 'no response']
    """
    found = pd.Series("undefined by the metric", index=turns.index)
    for column in reversed(needs):
        texts = (v if isinstance(v, list | np.ndarray | tuple) else [v] for v in turns[column])
        found[[all(map(is_blank, each)) for each in texts]] = f"no {column}"
    return found


def compute(
    turns: pd.DataFrame,
    names: Sequence[str],
    *,
    options: Mapping[str, Mapping] | None = None,
    folder: str | Path | None = None,
    say: Callable[[str], object] | None = None,
) -> pd.DataFrame:
    """Compute metrics of a turn table, or read them where they were computed before.

    A kept score is known by its metric and version, its options, the checksums of weights and
    lexica behind it, the versions of the libraries, and the texts that it read. A run that was cut
    off goes on at the batch where it stopped. A metric without a version is computed anew.

    Args:
        turns: turn table with the columns that each metric needs (`METRICS[name].needs`).
        names: names of metrics.
        options: options by metric name, such as {"bertscore": {"layers": 4}}; numbers, texts and
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
    say = say or partial(print, file=sys.stderr)
    tables, records, missing = [pd.DataFrame(index=range(len(turns)))], {}, {}
    for name in names:
        chosen, given = get_metric(name), dict((options or {}).get(name, {}))
        _check(turns, chosen, given)
        record = _provenance(chosen, given)
        table = _scores(turns, chosen, given, record, folder, say)
        why = missing_reasons(turns, chosen.needs).to_numpy()
        records |= dict.fromkeys(table, record)
        for column, values in table.items():
            missing[column] = pd.Series(why[values.isna()]).value_counts().to_dict()
        tables.append(table)
    scores = pd.concat(tables, axis=1).set_axis(turns.index)
    scores.attrs = {"provenance": records, "missing": missing}
    return scores


def _check(turns: pd.DataFrame, chosen: Metric, options: dict) -> None:
    if lacking := [column for column in chosen.needs if column not in turns.columns]:
        raise ValueError(f"{chosen.name} needs the column {lacking[0]}, which the table lacks")
    try:
        inspect.signature(chosen.function).bind(turns, **options)
    except TypeError as error:
        way = f'options are given by metric: compute(..., options={{"{chosen.name}": {{...}}}})'
        raise ValueError(f"{chosen.name}: {error}; {way}") from None


def _provenance(chosen: Metric, options: dict) -> dict:
    facts = chosen.facts(**options) if chosen.facts else {}
    libraries = {name: version(name) for name in LIBRARIES}
    record = {"metric": chosen.name, "version": chosen.version, "options": options}
    try:
        return json.loads(json.dumps({**record, **facts, "libraries": libraries}))
    except TypeError as error:
        only = f"the options of {chosen.name} must be numbers, texts or lists ({error})"
        raise ValueError(f"{only}; for anything else call lib.metrics.{chosen.name}") from None


def _scores(turns, chosen, options, record, folder, say) -> pd.DataFrame:
    # A row's score may depend on its place: then no batch will do.
    size = max(len(turns), 1) if chosen.whole else ROWS
    texts = turns[list(chosen.needs)].to_numpy(dtype=object).tolist()
    key = hashlib.sha256(json.dumps([record, size, texts], sort_keys=True, default=list).encode())
    place = folder / f"{chosen.name}-{key.hexdigest()[:16]}"
    parts, computed = [], 0
    for start in tqdm(range(0, max(len(turns), 1), size), desc=chosen.name, delay=5, leave=False):
        piece, file = turns.iloc[start : start + size], place / f"{start // size:06d}.parquet"
        part = None
        with suppress(OSError, ValueError):  # not there, or damaged: to be computed
            part = pd.read_parquet(file)
        if part is None:
            part = _columns(chosen.function(piece, **options), chosen, len(piece))
            computed += len(piece)
            if chosen.version:
                part.attrs = record  # pandas writes it into the file
                with atomic_write(file) as unfinished:
                    part.to_parquet(unfinished, index=False)
        parts.append(part)
    counts = {"computed": computed, "reused": len(turns) - computed}
    done = [f"{word} {count:,} rows" for word, count in counts.items() if count]
    say(f"{chosen.name}: {', '.join(done) or 'no rows'}")
    return pd.concat(parts, ignore_index=True)


def _columns(result: pd.Series | pd.DataFrame, chosen: Metric, rows: int) -> pd.DataFrame:
    table = result.to_frame(chosen.name) if isinstance(result, pd.Series) else result
    if len(table) != rows:
        raise ValueError(f"{chosen.name} returned {len(table)} scores for {rows} rows")
    return table.select_dtypes("number").astype("float64").reset_index(drop=True)
