"""Every metric by name, what metrics of texts share, and scores kept with their provenance.

A metric is a function of the turn table with a decorator above it.
"""

import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT
from lib.data.storage import atomic_write, short_hash, suggest_name
from lib.data.turn_table import is_blank
from lib.models import CHECKPOINTS, MODEL_OPTIONS, PACKAGED, provenance_of

BATCH_ROWS = 2000  # rows that are computed and written at a time
#: The same for a model that is not packaged, so that a killed run loses about a minute.
MODEL_ROWS_CPU = 32
MODEL_ROWS_GPU = 512
LIBRARIES = (
    "numpy",
    "pandas",
    "torch",
    "transformers",
    "nltk",
    "sacrebleu",
    "rouge-score",
)

#: Metrics by name; each module that defines metrics fills it when it is imported.
METRICS: dict[str, "Metric"] = {}

#: Functions of `lib.metrics` that are no metrics of a turn table, and why.
FUNCTIONS = {
    "mauve": "it compares a set of replies with a set of references, so a single turn has no "
    "value: call lib.metrics.mauve",
    "usl_h": "its classifiers are trained first: call lib.metrics.usl_h",
}


@dataclass(frozen=True)
class Metric:
    """A metric of the turn table, as `metric` registers it.

    Attributes:
        needs: columns of the turn table that the function reads.
        version: changes whenever the scores do, as in sacreBLEU's signature. Scores are kept under
            it; a metric without one is computed anew each time.
        provenance: takes the options; returns what the scores depend on besides texts and code,
            such as the checksums of weights and lexica.
        all_rows_at_once: do not split the table, because a row's score depends on its position.
    """

    name: str
    family: str
    function: Callable
    needs: tuple[str, ...]
    version: str | None = None
    provenance: Callable[..., dict] | None = None
    all_rows_at_once: bool = False


def metric(
    name: str,
    family: str,
    needs: tuple[str, ...] = ("response",),
    model: str = "",
    **fields,
) -> Callable[[Callable], Callable]:
    """Register the function below: `compute` then knows it by name, as do notebooks 09, 10 and 14.

    The function takes a turn table (and options) and returns a Series, or a frame of named
    columns, on the same index; missing is NaN.

    Args:
        name: its name; a metric of the same name is replaced.
        family: any name; the report and the figures of notebooks 09, 10 and 14 group by it.
        needs: columns that the function reads; kept scores are known by their texts.
        model: the default of the metric's option `checkpoint` or `encoder`; its provenance is then
            that of the model that ran.
        fields: `version`, `provenance` or `all_rows_at_once` of `Metric`.

    >>> @metric("exclamations", "style")
    ... def exclamations(turns):
    ...     return turns["response"].str.count("!")
    >>> METRICS.pop("exclamations").family
    'style'
    """

    def model_provenance(**options):
        model_name = options.pop("checkpoint", options.pop("encoder", model))
        return provenance_of(model_name, **options)

    def register(function):
        if model:
            fields["provenance"] = model_provenance
        METRICS[name] = Metric(name, family, function, needs, **fields)
        return function

    return register


def get_metric(name: str) -> Metric:
    """Return a registered metric.

    Raises:
        ValueError: no such metric; names the nearest one, or says why it is a function only.

    >>> get_metric("bertscore").needs
    ('response', 'reference')
    """
    if name not in METRICS:
        if name in FUNCTIONS:
            raise ValueError(
                f"{name!r} is no metric of a turn table: {FUNCTIONS[name]}"
            )
        hint = suggest_name(name, METRICS) or "see lib.metrics.METRICS"
        raise ValueError(
            f"unknown metric {name!r}: {hint} (a metric of lib.endex or lib.psychology needs that "
            "import)"
        )
    return METRICS[name]


def missing_reasons(turns: pd.DataFrame, needs: Sequence[str]) -> pd.Series:
    """Say for each row why it can have no score: the first needed column without a visible text.

    >>> turns = pd.DataFrame({"response": ["tea", " "], "reference": [[], ["no"]]})
    >>> missing_reasons(turns, ["response", "reference"]).tolist()
    ['no reference', 'no response']
    """
    reasons = pd.Series("undefined by the metric", index=turns.index)
    for column in reversed(needs):
        reasons[[_has_no_text(cell) for cell in turns[column]]] = f"no {column}"
    return reasons


def _has_no_text(cell: Any) -> bool:
    texts = cell if isinstance(cell, list | np.ndarray | tuple) else [cell]
    return all(is_blank(text) for text in texts)


def compute(
    turns: pd.DataFrame,
    names: Sequence[str],
    *,
    options: Mapping[str, Mapping] | None = None,
    folder: str | Path | None = None,
    log: Callable[[str], object] | None = None,
    batch_rows: int | None = None,
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
        log: takes a line for each metric: what was reused, what was computed; prints to standard
            error by default.
        batch_rows: rows that are computed and written at a time: at most these are lost if the
            process is killed. 2,000 by default; 32 on a CPU and 512 on a GPU for a model that is
            not packaged. Part of what a kept score is known by.

    Returns:
        One float column per score on `turns.index`; missing is NaN. `attrs["provenance"]` has the
        provenance record of each column, `attrs["missing"]` its NaN counts by reason, and
        `attrs["computed"]` the number of rows that were not reused.

    Raises:
        ValueError: unknown metric or option, or a missing column.
        OSError: the disk is full; finished batches are kept.

    >>> from tempfile import TemporaryDirectory
    >>> turns = pd.DataFrame({"response": ["We walk.", "No."], "reference": [["We walk."], []]})
    >>> with TemporaryDirectory() as folder:
    ...     first = compute(turns, ["word_f1_normalized"], folder=folder, log=print)
    ...     again = compute(turns, ["word_f1_normalized"], folder=folder, log=print)
    word_f1_normalized: computed 2 rows
    word_f1_normalized: reused 2 rows
    >>> print(again["word_f1_normalized"].tolist(), again.attrs["missing"])
    [1.0, nan] {'word_f1_normalized': {'no reference': 1}}
    """
    folder = Path(folder or ROOT / "data" / "cache" / "scores")
    log = log or partial(print, file=sys.stderr)
    tables = [pd.DataFrame(index=range(len(turns)))]
    provenance = {}
    missing = {}
    all_computed = 0
    for name in names:
        metric = get_metric(name)
        metric_options = dict((options or {}).get(name, {}))
        _check(turns, metric, metric_options)
        record = _provenance_record(metric, metric_options)
        # A row's score may depend on its position: then the table is one batch.
        rows = batch_rows or _rows_in_a_batch(record)
        if metric.all_rows_at_once:
            rows = max(len(turns), 1)
        table, computed = _scores(
            turns,
            metric,
            metric_options,
            record=record,
            folder=folder,
            batch_rows=rows,
            log=log,
        )
        all_computed += computed
        reasons = missing_reasons(turns, metric.needs).to_numpy()
        for column, values in table.items():
            provenance[column] = record
            missing[column] = pd.Series(reasons[values.isna()]).value_counts().to_dict()
        tables.append(table)
    scores = pd.concat(tables, axis=1).set_axis(turns.index)
    scores.attrs = {
        "provenance": provenance,
        "missing": missing,
        "computed": all_computed,
    }
    return scores


def _check(turns: pd.DataFrame, metric: Metric, options: dict) -> None:
    for column in metric.needs:
        if column not in turns.columns:
            raise ValueError(
                f"{metric.name} needs the column {column}, which the table lacks"
            )
    signature = inspect.signature(metric.function)
    try:
        extra = (
            signature.bind(turns, **options).kwargs.keys() - signature.parameters.keys()
        )
        # What a metric passes on to its model is checked here: the model is loaded much later.
        if unknown := extra - set(MODEL_OPTIONS):
            raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
    except TypeError as error:
        hint = f'options are given by metric: compute(..., options={{"{metric.name}": {{...}}}})'
        raise ValueError(f"{metric.name}: {error}; {hint}") from None


def _provenance_record(metric: Metric, options: dict) -> dict:
    record = {"metric": metric.name, "version": metric.version, "options": options}
    if metric.provenance:
        record |= metric.provenance(**options)
    record["libraries"] = {name: version(name) for name in LIBRARIES}
    try:
        return json.loads(json.dumps(record))
    except TypeError as error:
        problem = (
            f"the options of {metric.name} must be numbers, texts or lists ({error})"
        )
        raise ValueError(
            f"{problem}; for anything else call the function itself"
        ) from None


def _rows_in_a_batch(record: dict) -> int:
    """How many rows to compute and write at a time: fewer for a model that is not packaged.

    A model in a provenance record has `weights_sha256`; it is the record itself or a dict in it.

    >>> _rows_in_a_batch({"metric": "bleurt", "weights_sha256": "0f", "device": "cpu"})
    32
    """
    packaged = [CHECKPOINTS[name].weights_sha256 for name in PACKAGED]
    nested = [value for value in record.values() if isinstance(value, dict)]
    for part in [record, *nested]:
        is_model = "weights_sha256" in part
        if is_model and part["weights_sha256"] not in packaged:
            return MODEL_ROWS_CPU if part["device"] == "cpu" else MODEL_ROWS_GPU
    return BATCH_ROWS


def _scores(
    turns, metric, options, *, record, folder, batch_rows, log
) -> tuple[pd.DataFrame, int]:
    """Scores of one metric, and how many rows were computed: the others were in the folder."""
    texts = turns[list(metric.needs)].to_numpy(dtype=object).tolist()
    key = json.dumps([record, batch_rows, texts], sort_keys=True, default=list)
    folder = folder / f"{metric.name}-{short_hash(key, 16)}"
    batches = []
    computed = 0
    starts = range(0, max(len(turns), 1), batch_rows)
    for start in tqdm(starts, desc=metric.name, delay=5, leave=False):
        file = folder / f"{start // batch_rows:06d}.parquet"
        batch = _read_batch(file)
        if batch is None:
            batch_turns = turns.iloc[start : start + batch_rows]
            batch = _compute_batch(metric, batch_turns, options)
            computed += len(batch)
            if metric.version:
                batch.attrs = record  # pandas writes it into the file
                with atomic_write(file) as unfinished:
                    batch.to_parquet(unfinished, index=False)
        batches.append(batch)
    counts = {"computed": computed, "reused": len(turns) - computed}
    done = [f"{verb} {count:,} rows" for verb, count in counts.items() if count]
    log(f"{metric.name}: {', '.join(done) or 'no rows'}")
    return pd.concat(batches, ignore_index=True), computed


def _read_batch(file: Path) -> pd.DataFrame | None:
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError):  # missing or damaged: to be computed
        return None


def _compute_batch(metric: Metric, turns: pd.DataFrame, options: dict) -> pd.DataFrame:
    scores = metric.function(turns, **options)
    if isinstance(scores, pd.Series):
        scores = scores.to_frame(metric.name)
    if len(scores) != len(turns):
        raise ValueError(
            f"{metric.name} returned {len(scores)} scores for {len(turns)} rows"
        )
    return scores.select_dtypes("number").astype("float64").reset_index(drop=True)
