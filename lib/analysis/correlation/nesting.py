"""What nesting does to the usual tests, simulated where neither metric is the better one."""

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from lib.analysis.correlation.significance import (
    bootstrap_difference,
    permutation_test,
    williams_test,
)

#: The tests compared, in the order of the table's columns.
TESTS = ("swap turns", "williams", "swap dialogs", "bootstrap dialogs")


def simulate_null(
    dialogs: int, turns: int, icc: float, rng: np.random.Generator, quality: float = 0.6
) -> pd.DataFrame:
    r"""Ratings and two equally good metrics for turns nested in dialogs.

    .. math:: h_{dt} = \sqrt{\rho}\, u_d + \sqrt{1-\rho}\, e_{dt}, \qquad
              m^k_{dt} = q\, h_{dt} + \sqrt{1-q^2}\,
              (\sqrt{\rho}\, v^k_d + \sqrt{1-\rho}\, \epsilon^k_{dt})

    with independent standard normal terms: every column has variance 1, intraclass correlation
    :math:`\rho` = `icc` within dialogs, and both metrics correlate with the ratings at q.

    Returns a frame of dialogs x turns rows with the columns dialog, human, a, b.

    >>> frame = simulate_null(63, 14, 0.2, np.random.default_rng(0))
    >>> frame.shape, frame["dialog"].nunique()
    ((882, 4), 63)
    """
    dialog = np.repeat(np.arange(dialogs), turns)
    shared = rng.standard_normal((3, dialogs))[:, dialog]
    own = rng.standard_normal((3, dialogs * turns))
    human, noise_a, noise_b = np.sqrt(icc) * shared + np.sqrt(1 - icc) * own
    metrics = [quality * human + np.sqrt(1 - quality**2) * noise for noise in (noise_a, noise_b)]
    return pd.DataFrame({"dialog": dialog, "human": human, "a": metrics[0], "b": metrics[1]})


def null_p_values(frame: pd.DataFrame, method: str = "pearson", draws: int = 999) -> pd.Series:
    """Two-sided p of each of `TESTS` on one simulated corpus; 0 or 1 for the bootstrap interval,
    which only says whether its 95 % interval of the difference leaves zero out.

    >>> p = null_p_values(simulate_null(20, 5, 0.0, np.random.default_rng(0)), draws=99)
    >>> p.index.tolist() == list(TESTS)
    True
    """
    a, b, human, dialog = (frame[name].to_numpy() for name in ("a", "b", "human", "dialog"))
    interval = bootstrap_difference(a, b, human, dialog, method, draws)
    values = (
        permutation_test(a, b, human, method, draws=draws).p,
        williams_test(a, b, human, method).p,
        permutation_test(a, b, human, method, dialog, draws=draws).p,
        float(interval.low <= 0 <= interval.high),
    )
    return pd.Series(values, index=list(TESTS))


def false_positive_rates(
    runs: int,
    icc: tuple[float, ...] = (0.0, 0.2, 0.5),
    dialogs: int = 63,
    turns: int = 14,
    method: str = "pearson",
    draws: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Share of runs in which each test finds a difference at p <= .05 although there is none.

    Returns one row per intraclass correlation: icc, one column per test (the rate), runs,
    standard_error of a rate of .05. A correct test stays near .05; the default shape is that of
    the three-bot corpus (63 dialogs of 14 turns).

    >>> false_positive_rates(4, icc=(0.0,), dialogs=10, turns=3, draws=99)["runs"].tolist()
    [4]
    """
    rows = []
    for value in icc:
        rng = np.random.default_rng([seed, int(round(1000 * value))])
        p = pd.DataFrame(
            null_p_values(simulate_null(dialogs, turns, value, rng), method, draws)
            for _ in tqdm(range(runs), desc=f"icc {value}", leave=False)
        )
        rows.append({"icc": value} | (p <= 0.05).mean().to_dict())
    table = pd.DataFrame(rows)
    return table.assign(runs=runs, standard_error=np.sqrt(0.05 * 0.95 / runs))
