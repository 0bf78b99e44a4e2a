"""Whose replies does a correlation pool? People's and machines', machines' only, or one context's.

A correlation over all replies of a corpus mixes three questions. Where people wrote some of the
replies, a metric may only recognise them; where contexts differ, it may only recognise contexts
that are easy to answer. The three coefficients beside each other show which one it is.
"""

import pandas as pd

from lib.analysis.resampling import Interval, bootstrap_interval

ALL = "all"
MACHINES = "machines only"
WITHIN_CONTEXT = "within context"


def context_ids(units: pd.DataFrame) -> pd.Series:
    """The context that each reply answers, as a text: replies with the same id answer the same.

    Args:
        units: a turn table; of a dialog table each dialog has a context of its own.

    >>> units = pd.DataFrame({"dialog": list("aab"), "context": [["Hi"], ["Hi"], ["Hi"]]})
    >>> context_ids(units).nunique()
    2
    """
    dialogs = units["dialog"].astype("str")
    if "context" not in units:
        return dialogs + " " + units.index.astype("str")
    return dialogs + "\n" + units["context"].map("\n".join)


def centre_within(values: pd.Series, groups: pd.Series) -> pd.Series:
    """Each value minus the mean of its group; NaN where the group has fewer than two values.

    >>> centre_within(pd.Series([1.0, 3.0, 5.0]), pd.Series(["a", "a", "b"])).tolist()
    [-1.0, 1.0, nan]
    """
    grouped = values.groupby(groups)
    centred = values - grouped.transform("mean")
    return centred.where(grouped.transform("count") >= 2)


def correlations_by_author(
    scores: pd.Series,
    human: pd.Series,
    units: pd.DataFrame,
    method: str = "spearman",
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """The correlation of a metric with people over all replies, machines' only, within contexts.

    Args:
        scores, human: one value per reply, on the index of `units`; pairs with a NaN are left out.
        units: the turn table (or dialog table) with the columns system, dialog, written_by and,
            for turns, context. Dialogs are resampled.
        method: "pearson", "spearman" or "kendall".

    Returns:
        Three rows with the columns `replies`, `value`, `low`, `high` (95 % interval), `n`,
        `clusters` (dialogs), `systems`, `people` (how many of these systems are people) and
        `reason` (why a value or interval is NaN):

        - "all": every reply, as papers print it;
        - "machines only": replies that no person wrote. NaN where the corpus does not say who
          wrote them;
        - "within context": score and rating minus their means over the replies to the same
          context, so only the order of the answers to one context counts. NaN where no context
          has two replies.

        Values are in [-1, 1]; higher is better agreement. A smaller value among machines is to be
        expected where their ratings vary less; another sign is not.

    Raises:
        ValueError: `units` has no column `written_by`.

    >>> units = pd.DataFrame({"system": ["bot", "bot", "bot", "person"], "dialog": list("abca"),
    ...                       "written_by": ["machine"] * 3 + ["person"]})
    >>> scores, human = pd.Series([3.0, 2.0, 1.0, 9.0]), pd.Series([1.0, 2.0, 3.0, 9.0])
    >>> table = correlations_by_author(scores, human, units, resamples=10)
    >>> table[["replies", "value", "people"]].round(2).values.tolist()
    [['all', 0.2, 1], ['machines only', -1.0, 0], ['within context', nan, 0]]
    """
    if "written_by" not in units:
        raise ValueError(
            "the table does not say who wrote each reply: add a column written_by with "
            '"person" or "machine", empty where it is not known'
        )
    data = units[["system", "written_by"]].assign(score=scores, human=human)
    complete = data.notna()[["score", "human"]].all(axis=1)
    data = data[complete]
    clusters = units.loc[complete, "dialog"]
    contexts = context_ids(units[complete])
    options = {"method": method, "resamples": resamples, "seed": seed}

    everything = bootstrap_interval(data["score"], data["human"], clusters, **options)
    rows = [_correlation_row(ALL, everything, data)]

    machines = data[data["written_by"] == "machine"]
    if data["written_by"].isna().all():
        interval = Interval(reason="not labelled who wrote the replies")
    else:
        interval = bootstrap_interval(
            machines["score"], machines["human"], clusters[machines.index], **options
        )
    rows.append(_correlation_row(MACHINES, interval, machines))

    centred = data.assign(
        score=centre_within(data["score"], contexts),
        human=centre_within(data["human"], contexts),
    ).dropna(subset="score")
    if centred.empty:
        interval = Interval(reason="no context has two replies")
    else:
        interval = bootstrap_interval(
            centred["score"], centred["human"], clusters[centred.index], **options
        )
    rows.append(_correlation_row(WITHIN_CONTEXT, interval, centred))
    return pd.DataFrame(rows)


def metrics_by_author(
    scores: pd.DataFrame,
    human: pd.Series,
    units: pd.DataFrame,
    method: str = "spearman",
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """`correlations_by_author` of several metrics.

    Args:
        scores: a column per metric, on the index of `units`.
        human, units, method, resamples, seed: as for `correlations_by_author`.

    Returns:
        Its three rows for each metric in turn, with the metric's name in the column `metric`.

    >>> units = pd.DataFrame({"system": ["A", "A", "B"], "dialog": list("abc"),
    ...                       "written_by": "machine"})
    >>> scores = pd.DataFrame({"words": [1.0, 2, 3], "rank": [3.0, 2, 1]})
    >>> table = metrics_by_author(scores, pd.Series([1.0, 2, 4]), units, resamples=10)
    >>> table.loc[table["replies"] == "all", ["metric", "value"]].values.tolist()
    [['words', 1.0], ['rank', -1.0]]
    """
    tables = []
    for metric in scores:
        rows = correlations_by_author(
            scores[metric], human, units, method=method, resamples=resamples, seed=seed
        )
        tables.append(rows.assign(metric=metric))
    return pd.concat(tables, ignore_index=True)


def _correlation_row(replies: str, interval: Interval, items: pd.DataFrame) -> dict:
    by_people = items["written_by"] == "person"
    return {
        "replies": replies,
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "n": len(items),
        "clusters": interval.clusters,
        "systems": items["system"].nunique(),
        "people": items.loc[by_people, "system"].nunique(),
        "reason": interval.reason,
    }
