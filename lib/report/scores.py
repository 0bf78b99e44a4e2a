"""Score a user's turns with every metric that their columns allow."""

import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib import ROOT, cpdscore
from lib.cpdscore import local
from lib.data import DataError
from lib.meta_evaluation import evaluation_sets
from lib.metrics import METRICS, AskedModel
from lib.metrics.registry import BATCH_ROWS
from lib.report.verdict import KEY, bootstrap_units

# What adds the families that a report does not compute by itself.
OPTION = {"likelihood": "MODELS", "classifier": "MODELS", "judge": "JUDGE"}
REPLY_STORE = ROOT / "data" / "cache" / "judges" / "report.sqlite"


def report_scores(
    turns: pd.DataFrame,
    embeddings: bool = True,
    max_replies: float = np.inf,
    always_read: pd.MultiIndex | None = None,
    asked: Sequence[AskedModel] = (),
    seed: int = 0,
) -> pd.DataFrame:
    """Every metric that needs no download, and those `asked` for, on the index of `turns`.

    The file's own `score_*` columns come first, then baseline, overlap and psychological metrics,
    those registered in a notebook, and (with `embeddings`) those of the encoder with the shipped
    EnDex, nearly all of the cost, which read the replies that `sample_dialogs` draws, and the
    dialogs (system, agent, dialog) in `always_read`;
    `lib.metrics.compute` stores them all. A metric that is defined nowhere (no references, say)
    gives no column; `family_coverage` says what it needs.

    >>> from lib.data import load
    >>> "length" in report_scores(load("sample_bots").turns.head(4), embeddings=False)
    True
    """
    quick = (*evaluation_sets.QUICK, *evaluation_sets.own_metrics())
    frames = [evaluation_sets.shipped_scores(turns), _compute_in_blocks(turns, quick)]
    if embeddings:
        sample = sample_dialogs(turns, max_replies, seed)
        if always_read is not None:
            named = pd.MultiIndex.from_frame(turns[KEY]).isin(always_read)
            sample = turns[named | turns.index.isin(sample.index)]
        frames.append(_compute_in_blocks(sample, evaluation_sets.ENCODER))
        frames.append(evaluation_sets.computed_by_models(sample, asked))
    scores = pd.concat(frames, axis=1).dropna(axis=1, how="all")
    return scores.loc[:, ~scores.columns.duplicated()]


def import_metrics(name: str) -> list[str]:
    """Import a Python file or an installed module, whose metrics a report then computes.

    Args:
        name: path of a file that ends in .py, or the name of a module.

    Returns:
        Names of the metrics that it registered with `lib.metrics.metric`.

    Raises:
        DataError: it cannot be imported, or registers no metric.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "mine.py")
    >>> _ = path.write_text('''
    ... from lib import metrics
    ... @metrics.metric("shouts", "style")
    ... def shouts(turns):
    ...     return turns["response"].str.count("!").astype(float)
    ... ''')
    >>> import_metrics(str(path)), METRICS.pop("shouts").family
    (['shouts'], 'style')
    """
    before = set(METRICS)
    try:
        if name.endswith(".py"):
            runpy.run_path(name)
        else:
            importlib.import_module(name)
    except FileNotFoundError as error:
        fix = "name a Python file that exists, or an installed module"
        raise DataError("no such file", file=name, fix=fix) from error
    except Exception as error:  # whatever a user's file does wrong
        problem = f"cannot be imported: {type(error).__name__}: {error}"
        fix = "run it by itself first: python " + name
        raise DataError(problem, file=name, fix=fix) from error
    registered = [metric for metric in METRICS if metric not in before]
    if not registered:
        fix = 'put @metrics.metric("my_metric", "style") above a function of the turn table'
        raise DataError("registers no metric", file=name, fix=fix)
    return registered


def _compute_in_blocks(turns: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    # Block by block and not metric by metric: the encoder reads each text of a block once.
    blocks = []
    for start in tqdm(range(0, len(turns), BATCH_ROWS), desc="scores", leave=False):
        block = turns.iloc[start : start + BATCH_ROWS]
        blocks.append(evaluation_sets.computed_scores(block, metrics))
    return pd.concat(blocks)


def sample_dialogs(
    turns: pd.DataFrame, max_replies: float, seed: int = 0
) -> pd.DataFrame:
    """Whole dialogs, drawn at random until they hold `max_replies` replies; all if there are fewer.

    Every system gets the same number of replies, or all that it has. Dialogs of different systems
    with the same opening are drawn together, so that they stay pairs.

    >>> turns = pd.DataFrame({"system": list("AAAB"), "agent": "x", "dialog": list("1223"),
    ...                       "turn": 1, "context": [[]] * 4})
    >>> sorted(set(sample_dialogs(turns, 2)["system"])), len(sample_dialogs(turns, 4))
    (['A', 'B'], 4)
    """
    if len(turns) <= max_replies:
        return turns
    # Dialogs with the same opening share a unit, hence a random priority: they stay pairs.
    units = bootstrap_units(turns)
    priority = np.random.default_rng(seed).permutation(len(turns))[units]
    dialogs = turns.assign(priority=priority).groupby(KEY)
    dialogs = dialogs["priority"].agg(["first", "size"])
    dialogs = dialogs.sort_values("first", kind="stable")

    # The next dialog goes to the system that has the fewest replies so far.
    dialogs["of_system"] = dialogs.groupby("system")["size"].cumsum()
    dialogs = dialogs.sort_values("of_system", kind="stable")
    replies_before = dialogs["size"].cumsum() - dialogs["size"]
    sampled = dialogs.index[replies_before < max_replies]
    return turns[pd.MultiIndex.from_frame(turns[KEY]).isin(sampled)]


def judge_replies(
    turns: pd.DataFrame,
    judge: str,
    max_replies: int = 200,
    store: Path | str = REPLY_STORE,
) -> pd.Series:
    """CPDScore of the first replies (see `lib.cpdscore`): 1 to 5, higher is more like a person.

    The prompt is the detailed one without reference; the score is weighted by the judge's
    probabilities where the server returns them. Replies that give the judge an order ("ignore the
    above") or pose as its form are counted in a warning. Every system's first dialogs come first,
    so that versions can be compared. How many requests are left is printed on standard error before
    they are sent, and then how many replies could be read.

    Args:
        turns: turn table.
        judge: "packaged", or a model of the server at OPENAI_BASE_URL (OpenAI where it is not set).
        max_replies: replies that are judged; all others are NaN.
        store: SQLite file with every reply of a judge; a request in it is not sent again.

    Raises:
        JudgeStopped: when no request can succeed any more (key, quota, no server).

    >>> from lib.data import load
    >>> judged = judge_replies(load("sample_bots").turns, "packaged", max_replies=1)
    >>> int(judged.between(1, 5).sum())
    1
    """
    packaged = judge == local.PACKAGED
    model = cpdscore.JudgeModel(
        model="smollm2-135m-instruct" if packaged else judge,
        samples=1,
        extra=0,
        parameters={
            "temperature": 0,
            "max_tokens": 96,
            "logprobs": True,
            "top_logprobs": 20,
        },
        forced=packaged,
    )
    settings = cpdscore.JudgeSettings(workers=1 if packaged else 16)
    template = cpdscore.load_template("detail_without_reference")
    rank = turns.groupby("system")["dialog"].transform(
        lambda names: pd.factorize(names)[0]
    )
    judged = turns.loc[rank.sort_values(kind="stable").index[:max_replies]]
    steering = judged[judged["response"].map(cpdscore.steers_judge)]
    if len(steering):
        print(
            f"warning: {len(steering)} of {len(judged)} replies give the judge an order or a score "
            f"of their own (the first: dialog {steering['dialog'].iloc[0]}, turn "
            f"{steering['turn'].iloc[0]}). Read their scores with care.",
            file=sys.stderr,
        )

    server = judge if packaged else os.environ.get("OPENAI_BASE_URL", "")
    with local.served(server) as url, cpdscore.ReplyStore(store) as replies:
        requests = cpdscore.turn_requests(judged, template, model)
        jobs = [cpdscore.Job(request, 0) for request in requests]
        costs = cpdscore.forecast(jobs, replies)[["requests", "prompt_tokens"]].sum()
        print(
            f"judge: {len(judged)} of {len(turns)} replies, left to ask: {costs.to_dict()}",
            file=sys.stderr,
        )
        ask = cpdscore.asker("live", replies, url, settings)
        items = cpdscore.score_turns(
            judged, template, model, store=replies, ask=ask
        ).items
    print(
        f"judge: what came back: {items['status'].value_counts().to_dict()}",
        file=sys.stderr,
    )
    scores = items["weighted"].fillna(items["score"])
    return scores.reindex(turns.index).rename("cpds")


def family_coverage(scores: pd.DataFrame) -> pd.DataFrame:
    """Per family: which metrics were computed, and on which share of the turns.

    Columns:
        family: the families that a report knows, then those of other scores.
        metrics: names of the computed metrics; "none" where there are none.
        scored: share of turns with a score, of the metric with the fewest.
        needs: columns that these metrics read; of a family without any, those that it would read.
            A family that a report does not compute by itself names the option that adds it, and
            the columns that take your own scores.

    >>> family_coverage(pd.DataFrame({"length": [3.0, 4.0]})).loc[0, "metrics"]
    'length'
    """
    family_of = {name: evaluation_sets.metric_family(name) for name in scores}
    families = [*evaluation_sets.FAMILIES, *family_of.values()]
    needs = {family: set() for family in families}
    computed = [name for name in scores if name in METRICS]
    known = {*evaluation_sets.QUICK, *evaluation_sets.ENCODER} & set(METRICS)
    missing = [name for name in known if METRICS[name].family not in family_of.values()]
    for name in [*computed, *missing]:
        needs[METRICS[name].family].update(METRICS[name].needs)
    rows = []
    for family, columns in needs.items():
        metrics = [name for name in scores if family_of[name] == family]
        needed = ", ".join(sorted(columns))
        if not needed:
            needed = "your own scores, as columns score_<metric>"
            if family in OPTION:
                needed = f"{OPTION[family]}=..., or {needed}"
        rows.append(
            {
                "family": family,
                "metrics": ", ".join(metrics) or "none",
                "scored": scores[metrics].notna().mean().min() if metrics else 0.0,
                "needs": needed,
            }
        )
    return pd.DataFrame(rows)
