"""Rank metrics into clusters whose members cannot be told apart on the data at hand."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis.correlation.coefficients import coefficient, undefined
from lib.analysis.correlation.intervals import bootstrap_interval
from lib.analysis.correlation.significance import benjamini_hochberg, permutation_test


def compare_metrics(
    scores: pd.DataFrame,
    human: pd.Series,
    clusters: Sequence | None = None,
    method: str = "pearson",
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Test every pair of metrics on the items that all of them score.

    Parameters
    ----------
    scores : one column per metric (higher is better), `human` : ratings, on the same index.
    clusters : dialog or context of each item; whole clusters are swapped (`permutation_test`).
    method : for "spearman" scores and ratings are ranked once and ranks are swapped, which gives
        the same difference of correlations and a far cheaper test.

    Returns
    -------
    DataFrame with the columns better, worse (the correlation decides), difference, p (two-sided,
    because the data chose which of the two is called better: a one-sided p would err twice as often
    as it says), p_adjusted (Benjamini-Hochberg over all pairs of this table), n.
    Metrics without a defined correlation are left out; see `rank_metrics` for the reasons.

    >>> human = pd.Series(range(10), dtype=float)
    >>> scores = pd.DataFrame({"copy": human, "noise": human % 3})
    >>> compare_metrics(scores, human, draws=99)[["better", "worse", "n"]].values.tolist()
    [['copy', 'noise', 10]]
    """
    scores, human, clusters, _ = _comparable(scores, human, clusters)
    values = {name: coefficient(scores[name], human, method).value for name in scores}
    names = sorted(values, key=lambda name: -values[name])
    if method == "spearman":
        scores, human, method = scores.rank(), human.rank(), "pearson"
    rows = []
    for i, better in enumerate(names):
        for worse in names[i + 1 :]:
            test = permutation_test(
                scores[better], scores[worse], human, method, clusters, "two-sided", draws, seed
            )
            rows.append((better, worse, test.difference, test.p, test.n))
    table = pd.DataFrame(rows, columns=["better", "worse", "difference", "p", "n"])
    table.insert(4, "p_adjusted", benjamini_hochberg(table["p"]))
    return table


def _comparable(scores, human, clusters):
    """Defined metrics on common items, and why each of the others is left out."""
    labels = pd.Series(np.arange(len(human)) if clusters is None else np.asarray(clusters))
    rated = human.notna().to_numpy()
    reasons = {}
    for name in scores:
        known = rated & scores[name].notna().to_numpy()
        reasons[name] = undefined(scores.loc[known, name].to_numpy(), human[known].to_numpy())
    defined = [name for name, reason in reasons.items() if not reason]
    kept = rated & scores[defined].notna().all(axis=1).to_numpy()
    left_out = {name: reason for name, reason in reasons.items() if reason}
    return scores.loc[kept, defined], human[kept], labels[kept].to_numpy(), left_out


def rank_metrics(
    scores: pd.DataFrame,
    human: pd.Series,
    clusters: Sequence | None = None,
    method: str = "pearson",
    level: float = 0.05,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Correlation, interval and significance cluster of every metric; rank 1 is best.

    Metrics are sorted by correlation; a new rank starts at the first metric that some member of
    the current rank beats at adjusted p <= `level`. Members of one rank cannot be told apart.

    Returns
    -------
    DataFrame with the columns metric, value, low, high (cluster bootstrap), n, clusters, rank,
    reason. A metric with an undefined correlation comes last, NaN with its reason. All metrics use
    the items that every defined metric scores. Parameters as `compare_metrics`.

    Reference: the ranking of the WMT metrics tasks (Freitag et al. 2022), here with whole dialogs
    swapped and the family of pairs adjusted.

    >>> human = pd.Series(range(40), dtype=float)
    >>> scores = pd.DataFrame({"noise": human % 3, "copy": human, "flat": 1.0})
    >>> rank_metrics(scores, human, draws=200)[["metric", "rank", "reason"]].values.tolist()
    [['copy', 1.0, ''], ['noise', 2.0, ''], ['flat', nan, 'all scores equal']]
    """
    pairs = compare_metrics(scores, human, clusters, method, draws, seed)
    common, rated, labels, left_out = _comparable(scores, human, clusters)
    rows = []
    for name in common:
        found = bootstrap_interval(common[name], rated, labels, method, draws, seed=seed)
        rows.append((name, found.value, found.low, found.high, found.n, found.clusters))
    table = pd.DataFrame(rows, columns=["metric", "value", "low", "high", "n", "clusters"])
    table = table.sort_values("value", ascending=False, kind="stable", ignore_index=True)
    beaten = set(
        pairs.loc[pairs["p_adjusted"] <= level, ["better", "worse"]].itertuples(
            index=False, name=None
        )
    )
    table["rank"] = _ranks(table["metric"].tolist(), beaten)
    table["reason"] = ""
    missing = pd.DataFrame({"metric": list(left_out), "reason": list(left_out.values())})
    return pd.concat([table, missing], ignore_index=True) if len(missing) else table


def _ranks(names: list[str], beaten: set[tuple[str, str]]) -> list[int]:
    ranks, start = [], 0
    for i, name in enumerate(names):
        if any((better, name) in beaten for better in names[start:i]):
            start = i
        ranks.append(ranks[-1] + (start == i) if ranks else 1)
    return ranks
