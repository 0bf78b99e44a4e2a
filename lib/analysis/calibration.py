"""Map a judge's marks to people's scale, on dialogs that the map was not fitted on."""

import pandas as pd
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold, cross_val_predict


def calibrate(
    scores: pd.Series, human: pd.Series, groups: pd.Series, folds: int = 10
) -> pd.Series:
    """What people's mean rating of an item is expected to be, given its score.

    Isotonic regression: the rising step function of the score with the least squared error to the
    ratings. It is fitted on all groups but those of one fold and applied to that fold, so that no
    item is calibrated by its own rating.

    Args:
        scores: any scale; higher must mean better, else the map is flat.
        human: rating of each item, on the index of `scores`.
        groups: the dialog of each item, or its system: then each score is calibrated on the
            other systems only.
        folds: number of folds; as many as groups where there are fewer.

    Returns:
        A series on the index of `scores` in the units of `human`, within the range of the ratings
        fitted on. NaN where score or rating is missing, and everywhere with fewer than two groups.

    Reference: Zadrozny and Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates.

    >>> scores = pd.Series([1.0, 2, 3, 4, 1, 2, 3, 4])
    >>> calibrate(scores, scores + 10, pd.Series(list("aaaabbbb"))).tolist()
    [11.0, 12.0, 13.0, 14.0, 11.0, 12.0, 13.0, 14.0]
    """
    complete = scores.notna() & human.notna()
    calibrated = pd.Series(float("nan"), scores.index, name=scores.name)
    n_groups = groups[complete].nunique()
    if n_groups < 2:
        return calibrated
    calibrated[complete] = cross_val_predict(
        IsotonicRegression(out_of_bounds="clip"),
        scores[complete].to_numpy(dtype=float)[:, None],
        human[complete].to_numpy(dtype=float),
        groups=groups[complete],
        cv=GroupKFold(min(folds, n_groups)),
    )
    return calibrated
