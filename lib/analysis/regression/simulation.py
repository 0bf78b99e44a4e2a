"""How often does each test call a useless metric useful? Rejection rates under a true null."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis.regression.gain import cross_validated_gain, nested_f_test, residual_t_test
from lib.analysis.regression.models import fit_ols


def rejection_rates(
    added: Sequence[int] = (1, 2, 3, 5),
    *,
    runs: int = 200,
    clusters: int = 60,
    per_cluster: int = 6,
    within: float = 0.3,
    alpha: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate added predictors that are pure noise, and count how often they are starred.

    Ratings depend on one automatic metric and, like the predictors, share a part `within` a
    context: the shape of USR (60 contexts answered by 6 systems). A test at level `alpha` should
    reject a share `alpha` of the runs.

    Returns
    -------
    DataFrame, one row per number of added predictors
        Rejection rates of the paper's residual t-test, the classical nested F, the
        cluster-robust F and the cross-validated difference; `favours P+A`, the share of runs in
        which the paper's t is positive although nothing was added.

    Examples
    --------
    >>> rejection_rates((1,), runs=20).columns.tolist()[:2]
    ['residual t (paper)', 'nested F']
    """
    draw = np.random.default_rng(seed)
    groups = np.repeat(np.arange(clusters), per_cluster)
    rows = {}
    for count in added:
        found = []
        for _ in range(runs):
            data = _null_data(draw, groups, count, within)
            names = [f"p{j}" for j in range(count)]
            paper = residual_t_test(fit_ols(data, "y", ["a"]), fit_ols(data, "y", ["a", *names]))
            found.append(
                {
                    "residual t (paper)": paper.p < alpha,
                    "nested F": nested_f_test(data, "y", ["a"], names).p < alpha,
                    "cluster-robust F": nested_f_test(data, "y", ["a"], names, groups).p < alpha,
                    "cross-validated": _gains(data, names, groups, alpha),
                    "favours P+A": paper.statistic > 0,
                }
            )
        rows[count] = pd.DataFrame(found).mean()
    rates = pd.DataFrame(rows).T
    rates.index.name = "added predictors"
    return rates


def _gains(data: pd.DataFrame, names: list[str], groups: np.ndarray, alpha: float) -> bool:
    # A star for P+A needs a smaller error on new items, not merely a different one.
    unseen = cross_validated_gain(data, "y", ["a"], names, groups)
    return unseen.p < alpha and unseen.statistic > 0


def _null_data(
    draw: np.random.Generator, groups: np.ndarray, count: int, within: float
) -> pd.DataFrame:
    n, k = len(groups), groups.max() + 1
    columns = ["a", "noise", *(f"p{j}" for j in range(count))]
    shared = draw.normal(size=(k, len(columns)))[groups]
    values = np.sqrt(within) * shared + np.sqrt(1 - within) * draw.normal(size=(n, len(columns)))
    data = pd.DataFrame(values, columns=columns)
    data["y"] = 0.5 * data["a"] + data.pop("noise")
    return data
