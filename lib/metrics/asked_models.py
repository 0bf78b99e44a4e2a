"""Models that a run asks for, as in MODELS="bertscore:FacebookAI/roberta-large unieval bleurt".

A word names a metric, with a model of `data/checkpoints.csv` (or the folder of one) after a colon,
or the model of the metric's authors without; "all" names every model of the table but the packaged
ones. Notebooks, `make notebooks` and its dry run read the same words.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib import ROOT
from lib.data.storage import (
    DataError,
    atomic_write,
    read_json,
    short_hash,
    suggest_name,
)
from lib.metrics import classifiers, likelihood
from lib.metrics.registry import METRICS, compute
from lib.model_files import CheckpointError, cached_folder
from lib.models import CHECKPOINTS, DEFAULT_ENCODER, PACKAGED, SMOLLM2, find_model

#: Metrics that run any model of their kind and are nobody's own: the packaged one by default.
ANY_MODEL = {
    "log_likelihood": SMOLLM2,
    "reference_similarity": DEFAULT_ENCODER,
    "context_similarity": DEFAULT_ENCODER,
}
ENCODER_METRICS = ("bertscore", "reference_similarity", "context_similarity")
SPEEDS = (
    ROOT / "data" / "cache" / "speeds"
)  # the last measurement of each on this machine


class AskedModel(NamedTuple):
    """A metric and its model; DialogRPT has several, one for each head.

    "usl_h", "mauve" and "positive_emotion" are no metrics of a turn table: `compute_asked` leaves
    them out, and a notebook passes their model to the function of that name.
    """

    metric: str
    models: tuple[str, ...]

    @property
    def label(self) -> str:
        """The model's name in a column: the id without its owner."""
        if len(self.models) > 1:
            return "DialogRPT"
        return Path(self.models[0]).name

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns of the turn table that the metric reads; none if it is no metric of one."""
        if self.metric not in METRICS:
            return ()
        return METRICS[self.metric].needs

    @property
    def options(self) -> dict:
        """The options of the metric that name the model."""
        if self.metric == "dialogrpt":
            heads = {}
            for model in self.models:
                head = Path(model).name.removeprefix("DialogRPT-").replace("-", "_")
                heads[head] = model
            return {"heads": heads}
        option = "encoder" if self.metric in ENCODER_METRICS else "checkpoint"
        return {option: self.models[0]}

    def __str__(self) -> str:
        if len(self.models) > 1:
            return self.metric
        return f"{self.metric}:{self.models[0]}"


def parse_models(words: str) -> list[AskedModel]:
    """Read the words that name metrics and models.

    Raises:
        ValueError: an unknown metric or model; names the nearest one. Two models whose scores
            would have one name.

    >>> [str(asked) for asked in parse_models("unieval bertscore:FacebookAI/roberta-large")]
    ['unieval:MingZhong/unieval-dialog', 'bertscore:FacebookAI/roberta-large']
    >>> parse_models("unievla")
    Traceback (most recent call last):
    ValueError: MODELS names the metric 'unievla': did you mean 'unieval'? ...
    """
    asked_models = []
    for word in words.split():
        if word == "all":
            asked_models += _every_model()
        else:
            asked_models.append(_parse_word(word))
    asked_models = list(dict.fromkeys(asked_models))
    names = [f"{item.metric}[{item.label}]" for item in asked_models]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two models would share the name {name}: rename a folder")
    return asked_models


def _of_metric() -> dict[str, list[str]]:
    """The models of the table by the metric that uses them, the authors' own first."""
    of_metric = {}
    for name, row in CHECKPOINTS.items():
        if name not in PACKAGED:
            of_metric.setdefault(row.metric, []).append(name)
    return of_metric


def _every_model() -> list[AskedModel]:
    asked_models = []
    for metric, names in _of_metric().items():
        if metric == "dialogrpt":
            asked_models.append(AskedModel(metric, tuple(names)))
        else:
            asked_models += [AskedModel(metric, (name,)) for name in names]
    return asked_models


def _parse_word(word: str) -> AskedModel:
    metric, _, model = word.partition(":")
    of_metric = _of_metric()
    with_model = [*of_metric, *ANY_MODEL]
    if metric not in with_model:
        raise ValueError(
            f"MODELS names the metric {metric!r}: {suggest_name(metric, with_model)} "
            f"Those with a model are {', '.join(sorted(with_model))}."
        )
    if not model:
        names = of_metric.get(metric) or [ANY_MODEL[metric]]
        if metric != "dialogrpt":  # the only one with several models at once
            names = names[:1]
        return AskedModel(metric, tuple(names))
    if model not in CHECKPOINTS and not Path(model).exists():
        raise ValueError(
            f"MODELS names the model {model!r}: {suggest_name(model, CHECKPOINTS)} It is neither "
            "in data/checkpoints.csv nor a folder here: for any other model pass its folder."
        )
    return AskedModel(metric, (model,))


def models_table(asked: Sequence[AskedModel]) -> pd.DataFrame:
    """What each model is and costs; nothing is fetched and no network is loaded.

    Returns:
        Columns metric, model, here ("yes", "packaged" or "no"), to_download_gb (where no source
        states the size, that of the parameters in 32 bits), licence, and minutes_per_1000: time for
        1,000 replies in the last measurement on this machine, or "not measured".
    """
    rows = []
    for item in asked:
        for name in item.models:
            row = CHECKPOINTS.get(name)
            availability = _availability(name)
            gigabytes = 0.0
            if availability == "no":
                stated = row.gigabytes != "unknown"
                gigabytes = float(row.gigabytes if stated else row.parameters * 4e-3)
            rows.append(
                {
                    "metric": item.metric,
                    "model": name,
                    "here": availability,
                    "to_download_gb": round(gigabytes, 2),
                    "licence": row.licence if row else "your own folder",
                    "minutes_per_1000": _measured(item),
                }
            )
    columns = ["metric", "model", "here", "to_download_gb", "licence"]
    return pd.DataFrame(rows, columns=[*columns, "minutes_per_1000"])


def _availability(name: str) -> str:
    """Whether a model is on this machine: "yes", "packaged" or "no"."""
    if Path(name).exists() or cached_folder(name, CHECKPOINTS[name].revision):
        return "yes"
    return "packaged" if name in PACKAGED else "no"


def fetch_models(
    asked: Sequence[AskedModel],
) -> tuple[list[AskedModel], dict[str, str]]:
    """Provide every model, from the hub where need be, and what else its metric reads.

    Returns:
        Those that can be had, and by name of the others why not and what to do.
    """
    available = []
    problems = {}
    for item in asked:
        try:
            for name in item.models:
                find_model(name)
            if item.metric == "fed":
                likelihood.follow_ups()
            if item.metric == "unieval":
                classifiers.sentence_splitter()
        except (CheckpointError, DataError) as error:
            problems[str(item)] = str(error)
        else:
            available.append(item)
    return available, problems


def provide_models(words: str, dry: bool = False) -> list[AskedModel]:
    """Print what the models are and cost, fetch them, and name those that cannot be had.

    Args:
        words: as for `parse_models`.
        dry: stop before anything is fetched.

    Returns:
        The models that are here; none where `dry`.

    Raises:
        ValueError: an unknown metric or model.
    """
    asked_models = parse_models(words)
    if asked_models:
        table = models_table(asked_models)
        print(table.to_string(index=False))
        gigabytes = table["to_download_gb"].sum()
        print(f"to download: {gigabytes:.1f} GB at most", flush=True)
    elif dry:
        print("no models are asked for: the packaged ones run (MODELS= or PROFILE=hub)")
    if dry:
        return []
    available, problems = fetch_models(asked_models)
    for name, problem in problems.items():
        print(f"left out: {name}: {problem}", file=sys.stderr)
    return available


def compute_asked(
    turns: pd.DataFrame, asked: Sequence[AskedModel], **options
) -> pd.DataFrame:
    """Compute the metrics of a turn table with the models that were asked for.

    Every column is named after metric and model, as in "bertscore_f1[roberta-large]", so no name
    ever stands for two models. How long it took is kept for `models_table`.

    Args:
        turns: turn table.
        asked: of `parse_models`; those that are no metrics of a turn table are left out.
        options: `device`, `dtype`, `batch_tokens` for every model, and `folder` and `log` of
            `compute`.

    Returns:
        One float column per score on `turns.index`; missing is NaN.

    Raises:
        CheckpointError: a model cannot be had; says what to do.
    """
    of_compute = {key: options.pop(key) for key in ("folder", "log") if key in options}
    tables = [pd.DataFrame(index=turns.index)]
    for item in asked:
        if item.metric not in METRICS:
            continue
        of_metric = {item.metric: item.options | options}
        start = time.perf_counter()
        scores = compute(turns, [item.metric], options=of_metric, **of_compute)
        _keep_speed(item, scores.attrs["computed"], time.perf_counter() - start)
        names = {}
        for column in scores:
            score = column.partition("[")[0]
            names[column] = f"{score}[{item.label}]"
        tables.append(scores.rename(columns=names))
    return pd.concat(tables, axis=1)


def _speed_file(item: AskedModel) -> Path:
    return SPEEDS / f"{item.metric}-{short_hash(str(item))}.json"


def _keep_speed(item: AskedModel, rows: int, seconds: float) -> None:
    if rows:
        with atomic_write(_speed_file(item)) as unfinished:
            unfinished.write_text(json.dumps({"rows": rows, "seconds": seconds}))


def _measured(item: AskedModel) -> str:
    try:
        speed = read_json(_speed_file(item))
    except (OSError, ValueError):
        return "not measured"
    return f"{speed['seconds'] / 60 * 1000 / speed['rows']:.1f}"
