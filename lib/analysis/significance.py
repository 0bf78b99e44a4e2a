"""Is one metric better than another? Tests of the difference of two correlations, and ranks."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from tqdm.auto import tqdm

from lib.analysis import resampling
from lib.analysis.correlation import coefficient, complete_rows, undefined_reason

QUALITY = 0.6  # correlation of both metrics of `simulate_null` with the ratings


class Difference(NamedTuple):
    """Correlation of metric a, of metric b, their difference a - b, and its p-value."""

    a: float
    b: float
    difference: float
    p: float
    n: int
    clusters: int
    reason: str


def permutation_test(
    a, b, human, method="pearson", clusters=None, resamples=10_000, seed=0
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
    a, b, y, codes = complete_rows(a, b, human, clusters=clusters)
    found = _observed(a, b, y, codes, method)
    if found.reason:
        return found
    both, count = (stats.zscore(a), stats.zscore(b)), found.clusters
    rng, permuted = np.random.default_rng(seed), []
    for block in resampling.resample_blocks(resamples, 2 * count, method):
        random = np.frombuffer(rng.bytes(len(block) * -(-count // 8)), np.uint8)
        # One bit for each cluster of a resample: 1 where a and b are exchanged.
        exchanged = np.unpackbits(random.reshape(len(block), -1), axis=1, count=count)
        permuted.append(permuted_differences(*both, y, codes, exchanged, method))
    sizes = np.abs(np.concatenate(permuted))
    # A resample that exchanges all or nothing equals the observed value up to rounding.
    reached = np.sum(sizes >= abs(found.difference) - 1e-12)
    return found._replace(p=float((reached + 1) / (np.sum(~np.isnan(sizes)) + 1)))


def _observed(a, b, y, codes, method, fewest: int = 2) -> Difference:
    count = len(np.unique(codes))
    r_a, r_b = (coefficient(x, y, method).value for x in (a, b))
    reason = undefined_reason(a, y) or undefined_reason(
        b, y
    )  # z-scores need finite values whatever the method
    if not reason and count < fewest:
        reason = f"fewer than {fewest} clusters"
    return Difference(r_a, r_b, r_a - r_b, np.nan, len(y), count, reason)


def permuted_differences(a, b, y, codes, exchanged, method="pearson") -> np.ndarray:
    """r(a', y) - r(b', y) for each row of `exchanged`, NaN where a permuted metric is constant.

    A permuted metric is a resample of the scores of a and b together: it holds a's score of an
    item or b's, and the other metric holds the rest.

    Args:
        a, b, y: (n,) two metrics on one scale (standardised) and the ratings; finite.
        codes: (n,) the column of `exchanged` each item belongs to.
        exchanged: (resamples, clusters) of 0 and 1; 1 where a and b trade places.

    >>> a, b = np.array([1.0, 2, 3]), np.array([3.0, 2, 1])
    >>> permuted_differences(a, b, a, np.arange(3), np.array([[0, 0, 0], [1, 1, 1]])).round(6)
    array([ 2., -2.])
    """
    together, ratings = np.r_[a, b], np.r_[y, y]
    clusters = np.r_[codes, codes + exchanged.shape[1]]
    held = np.hstack([1 - exchanged, exchanged])
    of = resampling.resampled_correlations
    r_a, r_b = (of(together, ratings, u, method, clusters) for u in (held, 1 - held))
    return r_a - r_b


def bootstrap_difference(
    a, b, human, clusters=None, method="pearson", resamples=10_000, seed=0
) -> resampling.Interval:
    """95 % percentile interval of r(a, human) - r(b, human): the size of the difference.

    Both metrics are recomputed on the same resamples of clusters. Read it beside
    `permutation_test`: two near copies can differ significantly by .004. Parameters and missing
    values as there; the `value` of the Interval is the difference.

    >>> human = np.arange(12.0)
    >>> interval = bootstrap_difference(human, -human, human, resamples=200)
    >>> round(interval.value, 6), round(interval.low, 6)
    (2.0, 2.0)
    """
    a, b, y, codes = complete_rows(a, b, human, clusters=clusters)
    found = _observed(a, b, y, codes, method)
    if found.reason:
        return resampling.Interval(found.difference, np.nan, np.nan, *found[4:6], 0, found.reason)

    def gap(counts: np.ndarray) -> np.ndarray:
        r_a, r_b = (resampling.resampled_correlations(x, y, counts, method, codes) for x in (a, b))
        return r_a - r_b

    return resampling.statistic_interval(gap, codes, resamples, seed, method)


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
    a, b, y, codes = complete_rows(a, b, human)
    found = _observed(a, b, y, codes, method, fewest=4)
    if found.reason:
        return found
    ah, bh, ab, n = found.a, found.b, coefficient(a, b, method).value, found.n
    determinant = 1 - ah**2 - bh**2 - ab**2 + 2 * ah * bh * ab
    spread = 2 * (n - 1) / (n - 3) * determinant + ((ah + bh) / 2) ** 2 * (1 - ab) ** 3
    # Identical metrics have neither a difference nor a spread: t is 0.
    t = (ah - bh) * np.sqrt((n - 1) * (1 + ab) / max(spread, np.finfo(float).eps))
    return found._replace(p=float(2 * stats.t.sf(abs(t), n - 3)))


def difference_tests(a, b, human, clusters, method, resamples, seed=0) -> pd.DataFrame:
    """Two metrics compared in four ways, two-sided; one row each.

    Rows: permutation of single turns (PERM-BOTH), Williams, permutation of dialogs (p-values), and
    the bootstrap interval of the difference over dialogs (low, high).

    Returns:
        a, b (their coefficients), difference, p, low, high, n, reason, by name of the test.

    >>> human = np.arange(12.0)
    >>> difference_tests(human, human % 3, human, human // 2, "pearson", 50).index.tolist()
    ['permute turns', 'williams', 'permute dialogs', 'bootstrap dialogs']
    """
    triple, drawn = (a, b, human), (resamples, seed)
    interval = bootstrap_difference(*triple, clusters, method, *drawn)
    tests = {
        "permute turns": permutation_test(*triple, method, None, *drawn),
        "williams": williams_test(*triple, method),
        "permute dialogs": permutation_test(*triple, method, clusters, *drawn),
        "bootstrap dialogs": interval,
    }
    columns = ["a", "b", "difference", "p", "low", "high", "n", "reason"]
    rows = [test._asdict() for test in tests.values()]
    rows[-1]["difference"] = interval.value
    return pd.DataFrame(rows, tests.keys(), columns).rename_axis("test")


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
    adjusted = p.dropna().groupby(labels[p.notna()]).transform(stats.false_discovery_control)
    return adjusted.reindex(p.index).to_numpy()


def compare_metrics(
    scores: pd.DataFrame, human: pd.Series, clusters=None, method="pearson", resamples=2000, seed=0
) -> pd.DataFrame:
    """Test every pair of metrics on the items that all of them score.

    Args:
        scores: one column per metric (higher is better), `human`: ratings, on the same index.
        clusters: dialog or context of each item, permuted as a whole (`permutation_test`).
        method: for "spearman" scores and ratings are ranked once and ranks are permuted, which
            gives the same difference of correlations and a far cheaper test.

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
    scores, human, clusters, _ = _comparable(scores, human, clusters)
    values = {name: coefficient(scores[name], human, method).value for name in scores}
    names = sorted(values, key=values.get, reverse=True)
    if method == "spearman":
        scores, human, method = scores.rank(), human.rank(), "pearson"
    rows = []
    for better, worse in combinations(names, 2):
        pair = scores[better], scores[worse]
        test = permutation_test(*pair, human, method, clusters, resamples, seed)
        rows.append((better, worse, test.difference, test.p, test.n))
    table = pd.DataFrame(rows, columns=["better", "worse", "difference", "p", "n"])
    table.insert(4, "p_adjusted", benjamini_hochberg(table["p"]))
    return table


def _comparable(scores, human, clusters):
    """Defined metrics on common items, and why each of the others is left out."""
    labels = np.arange(len(human)) if clusters is None else np.asarray(clusters)
    reasons = {name: coefficient(scores[name], human).reason for name in scores}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    scores = scores.drop(columns=list(left_out))
    kept = human.notna() & scores.notna().all(axis=1)
    return scores[kept], human[kept], labels[kept], left_out


def rank_metrics(
    scores: pd.DataFrame, human: pd.Series, clusters=None, method="pearson", resamples=2000, seed=0
) -> pd.DataFrame:
    """Correlation, interval and significance cluster of every metric; rank 1 is best.

    Metrics are sorted by correlation; a new rank starts at the first metric that some member of
    the current rank beats at adjusted p <= .05. Members of one rank cannot be told apart.

    Returns:
        DataFrame with the columns metric, value, low, high (cluster bootstrap), n, clusters, rank,
        reason. A metric with an undefined correlation comes last, NaN with its reason. All metrics
        use the items that every defined metric scores. Parameters as `compare_metrics`.

    Reference: the ranking of the WMT metrics tasks (Freitag et al. 2022), here with whole dialogs
    permuted and the family of pairs adjusted.

    >>> human = pd.Series(range(40), dtype=float)
    >>> scores = pd.DataFrame({"noise": human % 3, "copy": human, "flat": 1.0})
    >>> rank_metrics(scores, human, resamples=200)[["metric", "rank", "reason"]].values.tolist()
    [['copy', 1.0, ''], ['noise', 2.0, ''], ['flat', nan, 'all scores equal']]
    """
    pairs = compare_metrics(scores, human, clusters, method, resamples, seed)
    common, rated, labels, left_out = _comparable(scores, human, clusters)
    asked = (rated, labels, method, resamples, seed)
    rows = [(name, *resampling.bootstrap_interval(common[name], *asked)[:5]) for name in common]
    rows += [(name, *[np.nan] * 5) for name in left_out]
    table = pd.DataFrame(rows, columns=["metric", "value", "low", "high", "n", "clusters"])
    table = table.sort_values("value", ascending=False, kind="stable", ignore_index=True)
    differ = pairs[pairs["p_adjusted"] <= 0.05]
    beaten = set(zip(differ["better"], differ["worse"], strict=True))
    table["rank"] = pd.Series(_ranks(table["metric"][: common.shape[1]].tolist(), beaten))
    return table.assign(reason=table["metric"].map(left_out).fillna(""))


def _ranks(names: list[str], beaten: set[tuple[str, str]]) -> list[int]:
    ranks, start = [], 0
    for i, name in enumerate(names):
        if any((better, name) in beaten for better in names[start:i]):
            start = i
        ranks.append(ranks[-1] + (start == i) if ranks else 1)
    return ranks


def simulate_null(dialogs: int, turns: int, icc: float, rng: np.random.Generator) -> pd.DataFrame:
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
    shared = rng.standard_normal((3, dialogs))[:, dialog]
    own = rng.standard_normal((3, dialogs * turns))
    human, *noise = np.sqrt(icc) * shared + np.sqrt(1 - icc) * own
    a, b = (QUALITY * human + np.sqrt(1 - QUALITY**2) * error for error in noise)
    return pd.DataFrame({"dialog": dialog, "human": human, "a": a, "b": b})


def _alarms(null: pd.DataFrame, method: str, resamples: int) -> pd.Series:
    """Which tests find a difference at 5 %; an interval does when it leaves zero out."""
    tests = difference_tests(null["a"], null["b"], null["human"], null["dialog"], method, resamples)
    return (tests["p"] <= 0.05) | (tests["low"] > 0) | (tests["high"] < 0)


def false_positive_rates(
    runs: int, icc=(0.0, 0.2, 0.5), dialogs=63, turns=14, method="pearson", resamples=999, seed=0
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
        nulls = (simulate_null(dialogs, turns, value, rng) for _ in range(runs))
        shown = tqdm(nulls, desc=f"icc {value}", total=runs, leave=False)
        alarms = [_alarms(null, method, resamples) for null in shown]
        rows.append({"icc": value} | pd.DataFrame(alarms).mean().to_dict())
    return pd.DataFrame(rows).assign(runs=runs, standard_error=np.sqrt(0.05 * 0.95 / runs))
