"""Calibration on held-out dialogs: against the minimum itself, and that nothing leaks."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from lib.analysis.calibration import calibrate


def test_each_fold_has_the_rising_values_of_least_squares():
    """The two groups hold the same scores, so each is given the fit of the other."""
    rng = np.random.default_rng(0)
    scores = pd.Series(np.tile(np.arange(6.0), 2))
    human = pd.Series(rng.normal(size=12))
    groups = pd.Series(np.repeat(["a", "b"], 6))
    calibrated = calibrate(scores, human, groups)
    fitted_on = human[groups == "b"].to_numpy()
    # Rising values are a start and five steps of at least 0.
    best = minimize(
        lambda steps: np.sum((np.cumsum(steps) - fitted_on) ** 2),
        x0=np.zeros(6),
        bounds=[(None, None)] + [(0, None)] * 5,
    )
    assert calibrated[groups == "a"].to_numpy() == pytest.approx(
        np.cumsum(best.x), abs=1e-3
    )


def test_useless_scores_do_not_follow_the_ratings():
    """A map that saw the rating of its own item would."""
    rng = np.random.default_rng(1)
    scores = pd.Series(rng.normal(size=400))
    human = pd.Series(rng.normal(size=400))
    groups = pd.Series(np.repeat(np.arange(100), 4))
    calibrated = calibrate(scores, human, groups)
    assert calibrated.corr(human) < 0.1
    assert calibrated.mean() == pytest.approx(human.mean(), abs=0.05)


def test_missing_values_and_a_single_dialog():
    scores = pd.Series([1.0, np.nan, 3.0, 4.0])
    human = pd.Series([1.0, 2.0, np.nan, 4.0])
    two = calibrate(scores, human, pd.Series(list("aabb")))
    assert two.isna().tolist() == [False, True, True, False]
    assert two.dropna().tolist() == [4.0, 1.0]  # each by the other dialog
    assert calibrate(scores, human, pd.Series(list("aaaa"))).isna().all()
