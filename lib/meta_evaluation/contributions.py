"""What each family of metrics adds to the others when they predict human ratings together."""

from collections.abc import Iterable

import pandas as pd

from lib.analysis import regression
from lib.meta_evaluation.metrics import family
from lib.meta_evaluation.overview import COVERAGE
from lib.meta_evaluation.panels import Panel

NONE = "none"


def contributions(panels: Iterable[Panel], folds: int = 10, seed: int = 0) -> pd.DataFrame:
    """Adjusted R2 and cross-validated gain of every family, alone and added to every other one.

    All metrics of a family enter as predictors. A family is used where its metrics score at least
    80 % of the items; every model of a panel is fitted on the items that all families score.

    Returns
    -------
    DataFrame, one row per panel and ordered pair of families: panel, rating, base ("none" for the
    family alone), added, metrics (number of predictors added), n, r2_base, r2_both (adjusted),
    gain (r2_both - r2_base), cv_gain and p_cv (`regression.cross_validated_gain`: drop of the
    absolute error on dialogs not fitted to, in standard deviations of the rating; positive is
    better), q_cv (Benjamini-Hochberg over the rows of the table).

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> length = panel.table["response"].str.len().astype(float)
    >>> panel = panel.with_scores(pd.DataFrame({"length": length}))
    >>> contributions([panel])[["base", "added", "metrics"]].values.tolist()
    [['none', 'baseline', 1]]
    """
    table = pd.concat([_of_panel(panel, folds, seed) for panel in panels], ignore_index=True)
    return table.assign(q_cv=regression.benjamini_hochberg(table["p_cv"]))


def _of_panel(panel: Panel, folds: int, seed: int) -> pd.DataFrame:
    families, data = _families(panel)
    rows = []
    for base in [NONE, *families]:
        for added in families:
            if base != added:
                rows.append(_row(panel, data, base, added, families, folds, seed))
    return pd.DataFrame(rows)


def _families(panel: Panel) -> tuple[dict[str, list[str]], pd.DataFrame]:
    """Usable metrics of each family, and the complete rows with the rating and the cluster."""
    known = panel.scores.loc[:, panel.scores.notna().mean() >= COVERAGE]
    complete = known.notna().all(axis=1) & panel.human.notna()
    data = known[complete]
    data = data.loc[:, data.nunique() > 1]
    families: dict[str, list[str]] = {}
    for metric in data:
        families.setdefault(family(metric), []).append(metric)
    data = data.assign(human=panel.human[complete], cluster=panel.clusters[complete])
    return families, data


def _row(panel, data, base, added, families, folds, seed) -> dict:
    old, new = families.get(base, []), families[added]
    r2_base = regression.adjusted_r2(data, "human", old) if old else 0.0
    r2_both = regression.adjusted_r2(data, "human", [*old, *new])
    gain = regression.cross_validated_gain(data, "human", old, new, data["cluster"], folds, seed)
    return {
        "panel": panel.name,
        "rating": panel.dimension,
        "base": base,
        "added": added,
        "metrics": len(new),
        "n": len(data),
        "r2_base": r2_base,
        "r2_both": r2_both,
        "gain": r2_both - r2_base,
        "cv_gain": gain.statistic,
        "p_cv": gain.p,
    }
