"""How often does each test find a difference that is not there? Rates under a true null."""

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib.analysis.regression import cross_validated_gain, fit_ols, nested_f_test, residual_t_test
from lib.analysis.significance import bootstrap_difference, permutation_test, williams_test

QUALITY = 0.6  # correlation of both simulated metrics with the ratings


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


def _p_values(frame: pd.DataFrame, method: str, resamples: int) -> dict[str, float]:
    """Two-sided p of each test; 0 or 1 for the interval, which leaves zero out or does not."""
    a, b, human, dialog = (frame[name].to_numpy() for name in ("a", "b", "human", "dialog"))
    by_dialog = permutation_test(a, b, human, method, dialog, resamples=resamples)
    interval = bootstrap_difference(a, b, human, dialog, method, resamples)
    return {
        "permute turns": permutation_test(a, b, human, method, resamples=resamples).p,
        "williams": williams_test(a, b, human, method).p,
        "permute dialogs": by_dialog.p,
        "bootstrap dialogs": float(interval.low <= 0 <= interval.high),
    }


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
        p = pd.DataFrame(
            _p_values(simulate_null(dialogs, turns, value, rng), method, resamples)
            for _ in tqdm(range(runs), desc=f"icc {value}", leave=False)
        )
        rows.append({"icc": value} | (p <= 0.05).mean().to_dict())
    return pd.DataFrame(rows).assign(runs=runs, standard_error=np.sqrt(0.05 * 0.95 / runs))


def rejection_rates(added=(1, 2, 3, 5), *, runs=200, within=0.3, seed=0) -> pd.DataFrame:
    """Simulate added predictors that are pure noise, and count how often they are starred.

    Ratings depend on one automatic metric and, like the predictors, share a part `within` a
    context: the shape of USR (60 contexts answered by 6 systems). A test at level .05 should
    reject in .05 of the runs.

    Returns:
        DataFrame, one row per number of `added` predictors: rejection rates of the paper's
        residual t-test, the classical nested F, the cluster-robust F and the cross-validated
        difference; `favours P+A`, the share of runs in which the paper's t is positive although
        nothing was added.

    >>> rejection_rates((1,), runs=20).columns.tolist()[:2]
    ['residual t (paper)', 'nested F']
    """
    rng, contexts, rates = np.random.default_rng(seed), np.repeat(np.arange(60), 6), {}
    for count in added:
        runs_of = [_rejections(rng, contexts, count, within) for _ in range(runs)]
        rates[count] = pd.DataFrame(runs_of).mean()
    return pd.DataFrame(rates).T.rename_axis("added predictors")


def _rejections(rng, contexts, count: int, within: float) -> dict[str, bool]:
    names = [f"p{j}" for j in range(count)]
    shared = rng.normal(size=(contexts.max() + 1, count + 2))[contexts]
    values = np.sqrt(within) * shared + np.sqrt(1 - within) * rng.normal(size=shared.shape)
    data = pd.DataFrame(values, columns=["a", "noise", *names])
    data["y"] = 0.5 * data["a"] + data["noise"]
    models = (data, "y", ["a"], names)
    paper = residual_t_test(fit_ols(data, "y", ["a"]), fit_ols(data, "y", ["a", *names]))
    unseen = cross_validated_gain(*models, contexts)
    return {
        "residual t (paper)": paper.p < 0.05,
        "nested F": nested_f_test(*models).p < 0.05,
        "cluster-robust F": nested_f_test(*models, contexts).p < 0.05,
        # A star for P+A needs a smaller error on new items, not merely a different one.
        "cross-validated": unseen.p < 0.05 and unseen.statistic > 0,
        "favours P+A": paper.statistic > 0,
    }
