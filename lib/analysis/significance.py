"""Is one metric better than another? Tests of the difference of two correlations, and ranks."""

from collections.abc import Collection, Iterable
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from tqdm.auto import tqdm

from lib.analysis.correlation import coefficient, complete_rows, undefined_reason
from lib.analysis.resampling import (
    Interval,
    bootstrap_interval,
    resample_blocks,
    resampled_correlations,
    statistic_interval,
)

QUALITY = 0.6  # correlation of both metrics of `simulate_null` with the ratings


class Difference(NamedTuple):
    """Correlation of metric a, of metric b, their difference a - b, and its p-value."""

    a: float
    b: float
    difference: float
    p: float = np.nan
    n: int = 0
    clusters: int = 0
    reason: str = ""


def permutation_test(
    a,
    b,
    human,
    method="pearson",
    clusters=None,
    resamples=10_000,
    seed=0,
) -> Difference:
    r"""PERM-BOTH: are the two metrics exchangeable in their correlation with human ratings?

    Both metrics are standardised over the common items; each resample exchanges a's and b's scores
    with probability 1/2 and recomputes :math:`\Delta = r(a, h) - r(b, h)`;

    .. math:: p = \frac{1 + \#\{|\Delta_{permuted}| \ge |\Delta|\}}{1 + resamples}

    Two-sided, because as a rule the data choose which of the two is called better.

    Args:
        a, b, human: (n,) values; an item missing in any of the three is left out of both metrics.
        method: higher must mean better for both; negate a distance or a perplexity first.
        clusters: (n,) dialog of each item: whole dialogs are permuted, the right unit for turns of
            shared dialogs. None permutes item by item as Deutsch et al. 2021 and mt-metrics-eval
            do, which rejects far too often when turns of a dialog resemble each other.

    Returns:
        Difference. A constant metric, an infinite score, or fewer than two clusters give NaN with
        a reason. With c clusters no p below 2 / 2**c can occur (c = 6 systems: .03).

    Reference: Deutsch, Dror and Roth 2021, "A Statistical Analysis of Summarization Evaluation
    Metrics Using Resampling Methods"; (count + 1) after Phipson and Smyth 2010.

    >>> human = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> good, poor = [1, 2, 4, 3, 5, 6, 8, 7], [3, 1, 4, 1, 5, 9, 2, 6]
    >>> test = permutation_test(good, poor, human, resamples=999)
    >>> test.difference > 0, 0 < test.p <= 1
    (True, True)
    """
    a, b, human, cluster_ids = complete_rows(a, b, human, clusters=clusters)
    observed = _observed_difference(a, b, human, method=method, cluster_ids=cluster_ids)
    if observed.reason:
        return observed
    a = stats.zscore(a)
    b = stats.zscore(b)
    n_clusters = observed.clusters
    rng = np.random.default_rng(seed)
    permuted = []
    for block in resample_blocks(resamples, 2 * n_clusters, method):
        # One bit for each cluster of a resample: 1 where a and b are exchanged.
        random_bytes = np.frombuffer(
            rng.bytes(len(block) * -(-n_clusters // 8)), np.uint8
        )
        random_bytes = random_bytes.reshape(len(block), -1)
        exchanged = np.unpackbits(random_bytes, axis=1, count=n_clusters)
        options = {"cluster_ids": cluster_ids, "exchanged": exchanged, "method": method}
        permuted.append(permuted_differences(a, b, human, **options))
    sizes = np.abs(np.concatenate(permuted))
    # A resample that exchanges all or nothing equals the observed value up to rounding.
    reached = np.sum(sizes >= abs(observed.difference) - 1e-12)
    defined = np.sum(~np.isnan(sizes))
    return observed._replace(p=float((reached + 1) / (defined + 1)))


def _observed_difference(
    a,
    b,
    human,
    method,
    cluster_ids,
    min_clusters=2,
) -> Difference:
    """The difference without a test, and the reason where it cannot be tested."""
    n_clusters = len(np.unique(cluster_ids))
    # z-scores need finite values, also where the method ranks.
    reason = undefined_reason(a, human) or undefined_reason(b, human)
    if not reason and n_clusters < min_clusters:
        reason = f"fewer than {min_clusters} clusters"
    r_a = coefficient(a, human, method).value
    r_b = coefficient(b, human, method).value
    return Difference(
        r_a, r_b, r_a - r_b, n=len(human), clusters=n_clusters, reason=reason
    )


def permuted_differences(
    a,
    b,
    human,
    cluster_ids,
    exchanged,
    method="pearson",
) -> np.ndarray:
    """r(a', human) - r(b', human) for each row of `exchanged`, NaN where a' or b' is constant.

    A permuted metric is a resample of the scores of a and b together: it has a's score of an
    item or b's, and the other metric has the rest.

    Args:
        a, b, human: (n,) two metrics on one scale (standardised) and the ratings; finite.
        cluster_ids: (n,) the column of `exchanged` each item belongs to.
        exchanged: (resamples, clusters) of 0 and 1; 1 where the scores of a and b are exchanged.

    >>> a, b = np.array([1.0, 2, 3]), np.array([3.0, 2, 1])
    >>> permuted_differences(a, b, a, np.arange(3), np.array([[0, 0, 0], [1, 1, 1]])).round(6)
    array([ 2., -2.])
    """
    scores = np.r_[a, b]
    ratings = np.r_[human, human]
    score_ids = np.r_[cluster_ids, cluster_ids + exchanged.shape[1]]
    counts = np.hstack([1 - exchanged, exchanged])
    options = {"method": method, "cluster_ids": score_ids}
    r_a = resampled_correlations(scores, ratings, counts, **options)
    r_b = resampled_correlations(scores, ratings, 1 - counts, **options)
    return r_a - r_b


def bootstrap_difference(
    a,
    b,
    human,
    clusters=None,
    method="pearson",
    resamples=10_000,
    seed=0,
) -> Interval:
    """95 % percentile interval of r(a, human) - r(b, human): the size of the difference.

    Both metrics are recomputed on the same resamples of clusters. Read it together with
    `permutation_test`: two near copies can differ significantly by .004. Parameters and missing
    values as there; the `value` of the Interval is the difference.

    >>> human = np.arange(12.0)
    >>> interval = bootstrap_difference(human, -human, human, resamples=200)
    >>> round(interval.value, 6), round(interval.low, 6)
    (2.0, 2.0)
    """
    a, b, human, cluster_ids = complete_rows(a, b, human, clusters=clusters)
    observed = _observed_difference(a, b, human, method=method, cluster_ids=cluster_ids)
    if observed.reason:
        return Interval(
            value=observed.difference,
            n=observed.n,
            clusters=observed.clusters,
            reason=observed.reason,
        )

    def differences(counts: np.ndarray) -> np.ndarray:
        options = {"method": method, "cluster_ids": cluster_ids}
        r_a = resampled_correlations(a, human, counts, **options)
        r_b = resampled_correlations(b, human, counts, **options)
        return r_a - r_b

    return statistic_interval(
        differences, cluster_ids, resamples, seed=seed, method=method
    )


def williams_test(a, b, human, method="pearson") -> Difference:
    r"""Williams' t for two dependent correlations that share the human ratings, two-sided.

    .. math:: t_{n-3} = (r_{ah} - r_{bh}) \sqrt{\frac{(n-1)(1+r_{ab})}
              {2\frac{n-1}{n-3} |R| + \bar r^2 (1-r_{ab})^3}}

    with :math:`|R| = 1 - r_{ah}^2 - r_{bh}^2 - r_{ab}^2 + 2 r_{ah} r_{bh} r_{ab}`,
    :math:`\bar r = (r_{ah} + r_{bh}) / 2`. Assumes independent items (no nesting). Fewer than four
    items or an undefined coefficient give NaN with a reason; identical metrics give p = 1.

    Reference: Williams 1959; Steiger 1980; Graham and Baldwin 2014.

    >>> human = np.arange(10.0)
    >>> williams_test(human, human % 3, human).p < 0.001
    True
    """
    a, b, human, items = complete_rows(a, b, human)
    options = {"method": method, "cluster_ids": items, "min_clusters": 4}
    observed = _observed_difference(a, b, human, **options)
    if observed.reason:
        return observed
    n = observed.n
    r_ah = observed.a
    r_bh = observed.b
    r_ab = coefficient(a, b, method).value
    determinant = 1 - r_ah**2 - r_bh**2 - r_ab**2 + 2 * r_ah * r_bh * r_ab
    mean = (r_ah + r_bh) / 2
    spread = 2 * (n - 1) / (n - 3) * determinant + mean**2 * (1 - r_ab) ** 3
    # Identical metrics have neither a difference nor a spread: t is 0.
    spread = max(spread, np.finfo(float).eps)
    t = observed.difference * np.sqrt((n - 1) * (1 + r_ab) / spread)
    return observed._replace(p=float(2 * stats.t.sf(abs(t), n - 3)))


def difference_tests(
    a,
    b,
    human,
    clusters,
    method,
    resamples,
    seed=0,
) -> pd.DataFrame:
    """Two metrics compared in four ways, two-sided; one row each.

    Rows: permutation of single turns (PERM-BOTH), Williams, permutation of dialogs (p-values), and
    the bootstrap interval of the difference over dialogs (low, high).

    Returns:
        a, b (their coefficients), difference, p, low, high, n, reason, by name of the test.

    >>> human = np.arange(12.0)
    >>> difference_tests(human, human % 3, human, human // 2, "pearson", 50).index.tolist()
    ['permute turns', 'williams', 'permute dialogs', 'bootstrap dialogs']
    """
    options = {"method": method, "resamples": resamples, "seed": seed}
    interval = bootstrap_difference(a, b, human, clusters=clusters, **options)
    tests = {
        "permute turns": permutation_test(a, b, human, **options),
        "williams": williams_test(a, b, human, method=method),
        "permute dialogs": permutation_test(a, b, human, clusters=clusters, **options),
        "bootstrap dialogs": interval,
    }
    table = pd.DataFrame([test._asdict() for test in tests.values()], tests.keys())
    table.loc["bootstrap dialogs", "difference"] = interval.value
    columns = ["a", "b", "difference", "p", "low", "high", "n", "reason"]
    return table[columns].rename_axis("test")


def benjamini_hochberg(p, family=None) -> np.ndarray:
    """p-values adjusted for the false discovery rate within each family of tests.

    Args:
        p: (tests,) NaN (a test that could not be made) stays NaN and does not count as a test.
        family: (tests,) label of the family of each test; None is one family. State it: a larger
            family gives larger values. Reject at level q where the adjusted value is at most q.

    Reference: Benjamini and Hochberg 1995, Journal of the Royal Statistical Society B 57(1).

    >>> benjamini_hochberg([0.01, 0.04, float("nan"), 0.03])
    array([0.03, 0.04, nan, 0.04])
    """
    p = pd.Series(p, dtype=float).reset_index(drop=True)
    labels = np.zeros(len(p)) if family is None else np.asarray(family)
    adjusted = (
        p.dropna().groupby(labels[p.notna()]).transform(stats.false_discovery_control)
    )
    return adjusted.reindex(p.index).to_numpy()


def compare_metrics(
    scores: pd.DataFrame,
    human: pd.Series,
    clusters=None,
    method="pearson",
    resamples=2000,
    seed=0,
) -> pd.DataFrame:
    """Test every pair of metrics on the items that all of them score.

    Args:
        scores: one column per metric (higher is better), `human`: ratings, on the same index.
        clusters: dialog or context of each item, permuted as a whole (`permutation_test`).
        method: for "spearman" scores and ratings are ranked once and ranks are permuted, which
            gives the same difference of correlations and a far cheaper test, whose p can differ
            from that of `permutation_test`.

    Returns:
        DataFrame with the columns better, worse (the correlation decides), difference, p
        (two-sided, because the data chose which of the two is called better: a one-sided p would
        err twice as often as it says), p_adjusted (Benjamini-Hochberg over all pairs of this
        table), n. Metrics without a defined correlation are left out; `rank_metrics` says why.

    >>> human = pd.Series(range(10), dtype=float)
    >>> scores = pd.DataFrame({"copy": human, "noise": human % 3})
    >>> compare_metrics(scores, human, resamples=99)[["better", "worse", "n"]].values.tolist()
    [['copy', 'noise', 10]]
    """
    scores, human, clusters = _comparable(scores, human, clusters)
    correlations = {
        name: coefficient(scores[name], human, method).value for name in scores
    }
    names = sorted(correlations, key=correlations.get, reverse=True)
    if method == "spearman":
        scores = scores.rank()
        human = human.rank()
        method = "pearson"
    options = {
        "method": method,
        "clusters": clusters,
        "resamples": resamples,
        "seed": seed,
    }
    rows = []
    for better, worse in combinations(names, 2):
        test = permutation_test(scores[better], scores[worse], human, **options)
        rows.append({"better": better, "worse": worse} | test._asdict())
    table = pd.DataFrame(rows, columns=["better", "worse", "difference", "p", "n"])
    table.insert(4, "p_adjusted", benjamini_hochberg(table["p"]))
    return table


def _comparable(scores, human, clusters):
    """The metrics with a defined correlation, on the items that all of them score."""
    defined = [name for name in scores if not coefficient(scores[name], human).reason]
    complete = human.notna() & scores[defined].notna().all(axis=1)
    clusters = np.arange(len(human)) if clusters is None else np.asarray(clusters)
    return scores.loc[complete, defined], human[complete], clusters[complete]


def rank_metrics(
    scores: pd.DataFrame,
    human: pd.Series,
    clusters=None,
    method="pearson",
    resamples=2000,
    seed=0,
) -> pd.DataFrame:
    """Correlation, interval and rank group of every metric; rank 1 is best.

    Metrics are sorted by correlation. A new rank starts at the first metric that is significantly
    worse (adjusted p <= .05) than some member of the current rank. Members of one rank cannot be
    distinguished.

    Returns:
        DataFrame with the columns metric, value, low, high (cluster bootstrap), n, clusters, rank,
        reason. A metric with an undefined correlation comes last, NaN with its reason. All metrics
        use the items that every defined metric scores. Without metrics, no rows. Parameters as
        `compare_metrics`.

    Reference: the ranking of the WMT metrics tasks (Freitag et al. 2022), here with whole dialogs
    permuted and p-values adjusted over all pairs.

    >>> human = pd.Series(range(40), dtype=float)
    >>> scores = pd.DataFrame({"noise": human % 3, "copy": human, "flat": 1.0})
    >>> rank_metrics(scores, human, resamples=200)[["metric", "rank", "reason"]].values.tolist()
    [['copy', 1.0, ''], ['noise', 2.0, ''], ['flat', nan, 'all scores equal']]
    """
    options = {"method": method, "resamples": resamples, "seed": seed}
    pairs = compare_metrics(scores, human, clusters, **options)
    defined, ratings, clusters = _comparable(scores, human, clusters)
    rows = []
    for name in scores:
        if name in defined:
            interval = bootstrap_interval(defined[name], ratings, clusters, **options)
            rows.append({"metric": name} | interval._asdict())
        else:
            rows.append(
                {"metric": name, "reason": coefficient(scores[name], human).reason}
            )
    columns = ["metric", "value", "low", "high", "n", "clusters", "reason"]
    table = pd.DataFrame(rows, columns=columns)
    table = table.sort_values(
        "value", ascending=False, kind="stable", ignore_index=True
    )
    different = pairs[pairs["p_adjusted"] <= 0.05]
    ranks = rank_groups(
        table["metric"][: defined.shape[1]],
        set(zip(different["better"], different["worse"], strict=True)),
    )
    table.insert(6, "rank", table["metric"].map(ranks))
    return table


def rank_groups(
    names: Iterable[str], different: Collection[tuple[str, str]]
) -> dict[str, int]:
    """Ranks that differ only where a test says so: 1, 1, 2 and so on.

    Args:
        names: the best first.
        different: pairs (better, worse) that differ significantly.

    Returns:
        The rank of each name. A new rank starts at a name that is worse than some member of the
        rank above.

    >>> rank_groups(["a", "b", "c"], {("a", "c")})
    {'a': 1, 'b': 1, 'c': 2}
    """
    ranks: dict[str, int] = {}
    group: list[str] = []
    rank = 1
    for name in names:
        if any((member, name) in different for member in group):
            rank += 1
            group = []
        group.append(name)
        ranks[name] = rank
    return ranks


def simulate_null(
    dialogs: int, turns: int, icc: float, rng: np.random.Generator
) -> pd.DataFrame:
    r"""Ratings and two equally good metrics for turns nested in dialogs.

    .. math:: h_{dt} = \sqrt{\rho}\, u_d + \sqrt{1-\rho}\, e_{dt}, \qquad
              m^k_{dt} = q\, h_{dt} + \sqrt{1-q^2}\,
              (\sqrt{\rho}\, v^k_d + \sqrt{1-\rho}\, \epsilon^k_{dt})

    with independent standard normal terms: every column has variance 1, intraclass correlation
    :math:`\rho` = `icc` within dialogs, and both metrics correlate with the ratings at q = .6.

    Returns a frame of dialogs x turns rows with the columns dialog, human, a, b.

    >>> frame = simulate_null(63, 14, 0.2, np.random.default_rng(0))
    >>> frame.shape, frame["dialog"].nunique()
    ((882, 4), 63)
    """
    dialog = np.repeat(np.arange(dialogs), turns)
    dialog_effects = rng.standard_normal((3, dialogs))[:, dialog]
    turn_effects = rng.standard_normal((3, dialogs * turns))
    human, *errors = np.sqrt(icc) * dialog_effects + np.sqrt(1 - icc) * turn_effects
    a, b = (QUALITY * human + np.sqrt(1 - QUALITY**2) * error for error in errors)
    return pd.DataFrame(
        {
            "dialog": dialog,
            "human": human,
            "a": a,
            "b": b,
        }
    )


def false_positive_rates(
    runs: int,
    icc=(0.0, 0.2, 0.5),
    dialogs=63,
    turns=14,
    method="pearson",
    resamples=999,
    seed=0,
) -> pd.DataFrame:
    """Share of runs in which each test finds a difference at p <= .05 although there is none.

    Returns:
        One row per intraclass correlation: icc, one column per test (the rate), runs,
        standard_error of a rate of .05. A correct test stays near .05; the default shape is that
        of the three-bot corpus (63 dialogs of 14 turns).

    >>> false_positive_rates(4, icc=(0.0,), dialogs=10, turns=3, resamples=99)["runs"].tolist()
    [4]
    """
    rows = []
    for value in icc:
        rng = np.random.default_rng([seed, int(round(1000 * value))])
        detections = []
        for _ in tqdm(range(runs), desc=f"icc {value}", leave=False):
            null = simulate_null(dialogs, turns, value, rng=rng)
            tests = difference_tests(
                null["a"],
                null["b"],
                null["human"],
                clusters=null["dialog"],
                method=method,
                resamples=resamples,
            )
            # An interval finds a difference where it excludes 0.
            detections.append(
                (tests["p"] <= 0.05) | (tests["low"] > 0) | (tests["high"] < 0)
            )
        rows.append({"icc": value} | pd.DataFrame(detections).mean().to_dict())
    return pd.DataFrame(rows).assign(
        runs=runs, standard_error=np.sqrt(0.05 * 0.95 / runs)
    )
