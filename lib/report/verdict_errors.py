"""How often a verdict by metrics contradicts people, over pairs of systems that people rated.

The comparison is the report's (`lib.report.verdict`): raters distinguish two systems of machines,
and a rule, one metric or several, is right, silent or wrong about the same two.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from lib.analysis.significance import benjamini_hochberg
from lib.meta_evaluation.evaluation_sets import (
    CORPUS_FAMILIES,
    EvaluationSet,
    machine_replies,
)
from lib.report.verdict import LEVEL, decide_direction, differences, rule_name


def draw_dialogs(items: EvaluationSet, count: int, seed: int = 0) -> EvaluationSet:
    """The set with `count` of its dialogs (or contexts), drawn at random; all if it has fewer.

    >>> from lib.meta_evaluation.evaluation_sets import load_set
    >>> draw_dialogs(load_set("sample_bots"), 3).table["dialog"].nunique()
    3
    """
    dialogs = np.random.default_rng(seed).permutation(items.table["dialog"].unique())
    is_drawn = items.table["dialog"].isin(dialogs[:count])
    return replace(
        items,
        table=items.table[is_drawn].reset_index(drop=True),
        human=items.human[is_drawn].reset_index(drop=True),
        scores=items.scores[is_drawn].reset_index(drop=True),
        ratings=None,  # they number the items of the whole set
    )


def compare_machines(
    items: EvaluationSet, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Compare every two machine systems of a corpus that its raters distinguish, by every metric.

    Args:
        items: rated turns, with the metrics to try as its scores; what people wrote is left out.
        resamples, seed: of dialogs or contexts (`lib.report.verdict.differences`).

    Returns:
        The rows of `differences` for the metrics, of the pairs of systems whose mean ratings differ
        (p <= .05), with the columns corpus, family (of corpora) and people: whether they rate
        `version` "better" or "worse" than `against`. Empty where the corpus does not say who wrote
        its replies, or where no two systems differ.

    >>> from lib.meta_evaluation.evaluation_sets import load_set, score_set
    >>> bots = score_set(load_set("sample_bots"), names=["length"])
    >>> table = compare_machines(bots, resamples=200)
    >>> table.query("score == 'length'")[["version", "against", "people"]].values.tolist()
    [['ferry', 'lantern', 'worse'], ['pebble', 'lantern', 'worse'], ['pebble', 'ferry', 'worse']]
    """
    machines = machine_replies(items)
    if machines is None:
        return pd.DataFrame()
    columns = ["system", "agent", "dialog", "turn", "context"]
    turns = machines.table[columns].assign(human_rating=machines.human)
    tables = []
    for pair in combinations(turns["system"].unique(), 2):
        of_pair = turns[turns["system"].isin(pair)]
        scores = machines.scores.loc[of_pair.index]
        table = differences(of_pair, scores, resamples=resamples, seed=seed)
        rating = table[table["kind"] == "rating"].iloc[0]
        if rating["p"] <= LEVEL:
            people = "better" if rating["difference"] > 0 else "worse"
            tables.append(table[table["kind"] == "metric"].assign(people=people))
    if not tables:
        return pd.DataFrame()
    family = CORPUS_FAMILIES.get(items.name, items.name)
    return pd.concat(tables, ignore_index=True).assign(corpus=items.name, family=family)


def rule_outcomes(
    compared: pd.DataFrame, rules: Sequence[Collection[str]]
) -> pd.DataFrame:
    """Whether each rule is right, silent or wrong about each pair of systems.

    Args:
        compared: the tables of `compare_machines`, of one corpus or of several.
        rules: the metrics of each rule, which decide together as in a report: a rule calls one
            system better if some of its metrics are higher (p <= .05, adjusted over its metrics)
            and none is lower.

    Returns:
        A row per rule and pair of systems that all its metrics score: rule
        (`lib.report.verdict.rule_name`), corpus, family, version, against, people, call (what the
        rule says), outcome ("right", "wrong", or "silent": mixed or no difference shown).

    >>> compared = pd.DataFrame({"corpus": "c", "family": "f", "version": "B", "against": "A",
    ...     "score": ["m"], "difference": [1.0], "p": [0.01], "reason": "", "people": "worse"})
    >>> rule_outcomes(compared, [["m"]])["outcome"].tolist()
    ['wrong']
    """
    rows = []
    keys = ["corpus", "family", "version", "against", "people"]
    for key, of_pair in compared.groupby(keys, sort=False):
        for metrics in rules:
            of_rule = of_pair[of_pair["score"].isin(metrics)]
            if len(of_rule) < len(set(metrics)):
                continue
            tested = of_rule[of_rule["reason"] == ""]
            adjusted = benjamini_hochberg(tested["p"])
            decision = decide_direction(tested.assign(p_adjusted=adjusted))
            pair = dict(zip(keys, key, strict=True))
            outcome = "silent"
            if decision in ("better", "worse"):
                outcome = "right" if decision == pair["people"] else "wrong"
            row = {"rule": rule_name(metrics), **pair}
            rows.append(row | {"call": decision, "outcome": outcome})
    return pd.DataFrame(rows)


def error_rates(outcomes: pd.DataFrame) -> pd.DataFrame:
    """How often each rule was right, silent and wrong, and the share of wrong calls.

    A call says that one system is better: silence is none.

    Args:
        outcomes: what `rule_outcomes` returns.

    Returns:
        A row per rule, fewest wrong calls first: rule, pairs, right, silent, wrong, corpora,
        families (of corpora in which it called), wrong_share (wrong of right and wrong, 0 to 1; NaN
        without a call), low, high (`interval_of_share` over families).

    >>> outcomes = pd.DataFrame({"rule": "m", "corpus": list("abc"), "family": list("abc"),
    ...                          "outcome": ["right", "right", "silent"]})
    >>> error_rates(outcomes)[["pairs", "right", "silent", "wrong", "wrong_share"]].values.tolist()
    [[3.0, 2.0, 1.0, 0.0, 0.0]]
    """
    rows = []
    for rule, of_rule in outcomes.groupby("rule", sort=False):
        counts = pd.crosstab(of_rule["family"], of_rule["outcome"])
        counts = counts.reindex(columns=["right", "silent", "wrong"], fill_value=0)
        calls = counts["right"] + counts["wrong"]
        share, low, high = interval_of_share(counts["wrong"], calls)
        row = {"rule": rule, "pairs": len(of_rule), **counts.sum()}
        row |= {"corpora": of_rule["corpus"].nunique(), "families": (calls > 0).sum()}
        rows.append(row | {"wrong_share": share, "low": low, "high": high})
    return pd.DataFrame(rows).sort_values("wrong_share", ignore_index=True)


def interval_of_share(count: pd.Series, total: pd.Series) -> tuple[float, float, float]:
    r"""A share with its 95 % interval, where families of cases are drawn and not single ones.

    Korn and Graubard (1998): with :math:`f` families, :math:`n` cases of which the share :math:`p`
    counts, and the variance of :math:`p` between families :math:`v`,

    .. math:: n^* = \min\left(n, \frac{p(1-p)}{v}\right) \left(\frac{t_{n-1}}{t_{f-1}}\right)^2

    is the number of independent cases that the share is worth; the interval is that of Clopper and
    Pearson with :math:`n^*` cases. It has a width also where nothing, or everything, counts.

    Args:
        count, total: of each family, the cases that count and all cases.

    Returns:
        The share, and the lower and upper bound, 0 to 1. NaN without a case; NaN bounds with cases
        of one family only.

    Reference: Korn and Graubard 1998, Survey Methodology 24(2), 193-201.

    >>> share = interval_of_share(pd.Series([0, 0]), pd.Series([10, 20]))
    >>> [round(float(value), 3) for value in share]
    [0.0, 0.0, 0.991]
    """
    count = count[total > 0].to_numpy(float)
    total = total[total > 0].to_numpy(float)
    n_families = len(total)
    n = total.sum()
    if n == 0:
        return np.nan, np.nan, np.nan
    share = count.sum() / n
    if n_families < 2:
        return share, np.nan, np.nan
    residuals = count - share * total
    variance = n_families / (n_families - 1) * (residuals @ residuals) / n**2
    effective = n
    if variance > 0:
        effective = min(n, share * (1 - share) / variance)
    effective *= (stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, n_families - 1)) ** 2
    low, high = proportion_confint(share * effective, effective, method="beta")
    return share, float(low), float(high)
