"""How often does a rule that compares versions by metrics point the wrong way?

Every pair of machines that raters distinguish on a rated corpus is a question with a known answer.
A rule (one metric, or all that have a standing) is asked which of the two is better; it is right,
silent or wrong. The share of wrong calls, with its interval, stands beside each verdict of a report
that rests on metrics.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from tqdm.auto import tqdm

from lib.meta_evaluation.evaluation_sets import EvaluationSet
from lib.report.verdict import LEANING, LEVEL, Verdict, differences, verdicts

MAX_WRONG = 0.1  # beyond it, the upper bound of a rule's wrong calls makes it a leaning
MIN_ITEMS = 20  # replies of each system; with fewer, a pair of systems says little


class ErrorRate(NamedTuple):
    """How often calls of one rule pointed the wrong way.

    Attributes:
        wrong_share: wrong calls divided by all calls, 0 to 1.
        low, high: 95 % interval.
        right, silent, wrong: numbers of pairs.
        corpora: corpora (families of them) with such pairs.
    """

    wrong_share: float
    low: float
    high: float
    right: int
    silent: int
    wrong: int
    corpora: int


def call_outcomes(
    sets: Iterable[EvaluationSet],
    deciding: Iterable[Collection[str]],
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Ask every rule about every pair of machines that raters distinguish.

    A pair counts where `verdict.differences` finds a difference in the rating (p at most .05), with
    the same units as in a report: dialogs, or contexts that both systems answered. People among the
    systems are left out, and so is a corpus that does not say who wrote its replies. Each metric is
    asked alone (p at most .05), and each set of `deciding` metrics together, as in a report
    (`verdict.verdicts`, p adjusted over all metrics); a mixed verdict is silent.

    Args:
        sets: evaluation sets of replies, with their scores.
        deciding: sets of metrics that decide together; a corpus that lacks one of a set is not
            asked.

    Returns:
        One row per pair and rule: corpus, better (the system that people prefer), worse, rule (a
        metric, or several joined by " + "), outcome ("right", "silent" or "wrong").

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=("length",))
    >>> call_outcomes([bots], [["length"]], resamples=200)["outcome"].unique().tolist()
    ['right', 'silent']
    """
    deciding = [set(metrics) for metrics in deciding]
    rows = []
    for items in tqdm(list(sets), desc="pairs of systems"):
        machines = items.table["written_by"] == "machine"
        counts = items.table.loc[machines, "system"].value_counts()
        systems = counts.index[counts >= MIN_ITEMS]
        for a, b in itertools.combinations(sorted(systems), 2):
            chosen = items.table["system"].isin([a, b])
            turns = items.table.loc[chosen, :]
            turns = turns.drop(columns=list(turns.filter(regex="^(human|score)_")))
            turns = turns.assign(human_rating=items.human[chosen])
            table = differences(
                turns, items.scores[chosen], resamples=resamples, seed=seed
            )
            rating = table[table["kind"] == "rating"].iloc[0]
            if not rating["p"] <= LEVEL:
                continue
            pair = [rating["version"], rating["against"]]
            better, worse = pair if rating["difference"] > 0 else pair[::-1]
            known = {"corpus": items.name, "better": better, "worse": worse}
            sign = np.sign(rating["difference"])
            for rule, call in _calls(table, deciding).items():
                outcome = "silent"
                if call != 0:
                    outcome = "right" if call == sign else "wrong"
                rows.append(known | {"rule": rule, "outcome": outcome})
    columns = ["corpus", "better", "worse", "rule", "outcome"]
    return pd.DataFrame(rows, columns=columns)


def _calls(table: pd.DataFrame, deciding: Sequence[set[str]]) -> dict[str, int]:
    """What each rule says of the second version: 1 better, -1 worse, 0 nothing."""
    metrics = table[(table["kind"] == "metric") & (table["reason"] == "")]
    calls = {}
    for row in metrics.to_dict("records"):
        significant = row["p"] <= LEVEL
        calls[row["score"]] = int(significant * np.sign(row["difference"]))
    for names in deciding:
        if len(names) > 1 and names <= set(metrics["score"]):
            asked = metrics[metrics["score"].isin(names)].assign(better="higher")
            (verdict,) = verdicts(asked)
            call = {"better": 1, "worse": -1}.get(verdict.verdict, 0)
            calls[" + ".join(sorted(names))] = call
    return calls


def error_rates(
    outcomes: pd.DataFrame,
    families: dict[str, str],
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Right, silent and wrong calls of each rule, and the share of wrong calls with its interval.

    The interval is the wider, at each end, of two: the bootstrap that draws whole families of
    corpora, and Clopper and Pearson's exact one, which does not become certain where no call was
    wrong.

    Args:
        outcomes: what `call_outcomes` returns.
        families: family of each corpus; corpora of one family share contexts or systems.

    Returns:
        A row per rule, with the columns rule and those of `ErrorRate`, the smallest upper bound
        first. A rule that never spoke has NaN.

    Reference: Clopper and Pearson 1934.

    >>> outcomes = pd.DataFrame({"corpus": "a", "rule": "length"}, index=range(10))
    >>> outcomes["outcome"] = ["right"] * 9 + ["wrong"]
    >>> rate = error_rates(outcomes, {"a": "A"}).iloc[0]
    >>> [round(float(rate[name]), 3) for name in ("right", "wrong", "wrong_share", "high")]
    [9.0, 1.0, 0.1, 0.445]
    """
    rows = []
    for rule, calls in outcomes.groupby("rule", sort=False):
        family = calls["corpus"].map(families)
        counts = pd.crosstab(family, calls["outcome"])
        counts = counts.reindex(columns=["right", "silent", "wrong"], fill_value=0)
        right, silent, wrong = counts.sum().tolist()
        low, high = _wrong_interval(counts, resamples=resamples, seed=seed)
        spoken = right + wrong
        rate = ErrorRate(
            wrong_share=wrong / spoken if spoken else np.nan,
            low=low,
            high=high,
            right=right,
            silent=silent,
            wrong=wrong,
            corpora=len(counts),
        )
        rows.append({"rule": rule, **rate._asdict()})
    table = pd.DataFrame(rows, columns=["rule", *ErrorRate._fields])
    return table.sort_values("high", kind="stable", ignore_index=True)


def _wrong_interval(
    counts: pd.DataFrame, resamples: int, seed: int
) -> tuple[float, float]:
    wrong = counts["wrong"].to_numpy()
    spoken = wrong + counts["right"].to_numpy()
    if not spoken.sum():
        return np.nan, np.nan
    exact = stats.binomtest(int(wrong.sum()), int(spoken.sum())).proportion_ci()
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(counts), (resamples, len(counts)))
    total = spoken[drawn].sum(axis=1)
    shares = wrong[drawn].sum(axis=1)[total > 0] / total[total > 0]
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(min(low, exact.low)), float(max(high, exact.high))


def known_rate(table: pd.DataFrame, scores: Sequence[str]) -> ErrorRate | None:
    """The error rate of a verdict that rests on these metrics; None where it was never tried.

    Args:
        table: columns rule and those of `ErrorRate`, with rules as notebook 08 records them: a
            metric, or several joined by " + ".
        scores: the metrics that decide.

    >>> row = {"rule": "b + a", **ErrorRate(0.1, 0.0, 0.3, 9, 5, 1, 3)._asdict()}
    >>> known_rate(pd.DataFrame([row]), ["a", "b"]).wrong
    1
    """
    for row in table.to_dict("records"):
        if set(row.pop("rule").split(" + ")) == set(scores):
            return ErrorRate(**row)
    return None


def state_error_rates(found: Sequence[Verdict], table: pd.DataFrame) -> list[Verdict]:
    """Say how often each verdict by metrics would be wrong, and make a leaning of a doubtful one.

    A verdict by ratings stays as it is. One by metrics is a leaning where the upper bound of its
    rule's wrong calls is beyond one in ten, or was never measured.

    Args:
        found: what `verdict.verdicts` returns.
        table: rates as for `known_rate`.

    >>> rates = pd.DataFrame(columns=["rule", *ErrorRate._fields])
    >>> by_metric = Verdict("new", "old", "worse", decided_by="metric", scores=["bleu4_coco"])
    >>> state_error_rates([by_metric], rates)[0].verdict
    'leaning worse'
    """
    stated = []
    for verdict in found:
        if verdict.decided_by != "metric":
            stated.append(verdict)
            continue
        rate = known_rate(table, verdict.scores)
        call = verdict.verdict
        if call in ("better", "worse") and not (rate and rate.high <= MAX_WRONG):
            call = LEANING + call
        stated.append(replace(verdict, verdict=call, error_rate=_rate_sentence(rate)))
    return stated


def _rate_sentence(rate: ErrorRate | None) -> str:
    if rate is None or rate.right + rate.wrong == 0:
        return "How often a verdict by these metrics is wrong was never measured."
    pairs = rate.right + rate.silent + rate.wrong
    low = f"{100 * rate.low:.0f}"
    high = f"{100 * rate.high:.0f}"
    return (
        f"Of 100 such calls on public corpora, about {100 * rate.wrong_share:.0f} pointed the "
        f"wrong way (95 % interval {low} to {high}): of {pairs} pairs of bots that raters "
        f"distinguish, {rate.right} were called right, {rate.wrong} wrong, and nothing was said "
        f"of {rate.silent}."
    )
