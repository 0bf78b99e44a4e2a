"""Many versions: their order, with groups that cannot be distinguished, and win rates."""

import itertools

import numpy as np
import pandas as pd
import statsmodels.api as sm

from lib.analysis.significance import benjamini_hochberg, rank_groups
from lib.report.pairs import score_values
from lib.report.verdict import LEVEL, bootstrap_units, differences

PREFERENCE = "human_preference"


def version_ranking(
    turns: pd.DataFrame, scores: pd.DataFrame, score: str, seed: int = 0
) -> pd.DataFrame:
    """Versions in the order of their mean, with ranks that differ only where a test says so.

    All pairs of versions are compared as in `verdict.differences`, and Benjamini-Hochberg adjusts p
    over the pairs; `rank_groups` makes the ranks of those with an adjusted p of at most .05.

    Args:
        turns: turn table; each `system` is a version.
        scores: metrics on the same index.
        score: a rating (`human_...`) or a metric of which higher is better.

    Returns:
        version, mean, rank, replies; the highest mean first. Versions without a value come last,
        without a rank.

    >>> turns = pd.DataFrame({"system": list("AB") * 30, "agent": "x", "turn": 0,
    ...     "dialog": [str(k) for k in range(60)], "context": [[]] * 60,
    ...     "human_fun": [1.0, 3.0] * 30})
    >>> turns.loc[[0, 1], "human_fun"] = 2.0
    >>> version_ranking(turns, turns[[]], "human_fun")[["version", "rank"]].values.tolist()
    [['B', 1.0], ['A', 2.0]]
    """
    values = score_values(turns, scores, score)
    by_version = values.groupby(turns["system"], sort=False)
    table = by_version.agg(mean="mean", replies="count").rename_axis("version")
    table = table.reset_index().sort_values("mean", ascending=False, kind="stable")
    scored = table.loc[table["replies"] > 0, "version"].tolist()
    pairs = list(itertools.combinations(scored, 2))
    only = turns[["system", "agent", "dialog", "turn", "context"]]
    tests = []
    for higher, lower in pairs:
        both = only[only["system"].isin([higher, lower])]
        # `differences` compares with the first version of the file.
        both = both.sort_values(
            "system", key=lambda names: names != higher, kind="stable"
        )
        test = differences(both, values.loc[both.index].to_frame(score), seed=seed)
        tests.append(test["p"].iloc[0])
    adjusted = benjamini_hochberg(np.array(tests)) if tests else []
    different = {pair for pair, p in zip(pairs, adjusted, strict=True) if p <= LEVEL}
    table["rank"] = table["version"].map(rank_groups(scored, different)).astype(float)
    return table[["version", "mean", "rank", "replies"]].reset_index(drop=True)


def win_rates(turns: pd.DataFrame) -> pd.DataFrame:
    r"""Preferences between two replies: win rate and Bradley-Terry strength of each version.

    .. math:: P(i \text{ beats } j) = \frac{1}{1 + \exp(\beta_j - \beta_i)}

    A preference is the rating `human_preference` of two replies to one context: 1 for the reply
    that was preferred, 0 for the other, a half for a tie, which counts as half a win for both. The
    win rate is the mean of the preferences. Its interval and that of the strength draw on
    cluster-robust errors, a cluster being a dialog (openings that versions share are one).

    Returns:
        version, comparisons, win_rate, low, high (95 %), strength (log odds of beating the average
        version; 0 is average), strength_low, strength_high; the strongest first. Strengths are NaN
        with fewer than three versions, and where a version always wins or always loses: no finite
        strength fits that. No rows without preferences.

    References: Bradley and Terry 1952; ties as half wins as in Chatbot Arena.

    >>> turns = pd.DataFrame({"system": ["A", "B"] * 3, "agent": "x", "turn": 1,
    ...     "dialog": list("112233"), "context": [["Hi 1"], ["Hi 1"], ["Hi 2"], ["Hi 2"], ["Hi 3"],
    ...     ["Hi 3"]], "human_preference": [1.0, 0.0, 1.0, 0.0, 0.5, 0.5]})
    >>> win_rates(turns)[["version", "comparisons", "win_rate"]].round(2).values.tolist()
    [['A', 3, 0.83], ['B', 3, 0.17]]
    """
    columns = ["version", "comparisons", "win_rate", "low", "high"]
    strengths = ["strength", "strength_low", "strength_high"]
    if PREFERENCE not in turns or turns[PREFERENCE].notna().sum() == 0:
        return pd.DataFrame(columns=[*columns, *strengths])
    contests = _contests(turns)
    versions = list(dict.fromkeys([*contests["first"], *contests["second"]]))
    rows = []
    for version in versions:
        wins = pd.concat(
            [
                contests.loc[contests["first"] == version, ["unit", "won"]],
                contests.loc[contests["second"] == version, ["unit", "won"]].assign(
                    won=lambda table: 1 - table["won"]
                ),
            ]
        )
        fit = sm.OLS(wins["won"], np.ones(len(wins)))
        low = np.nan
        high = np.nan
        if wins["unit"].nunique() > 1:
            robust = fit.fit(
                cov_type="cluster", cov_kwds={"groups": wins["unit"]}, use_t=True
            )
            low, high = robust.conf_int().to_numpy()[0]
        rows.append(
            {
                "version": version,
                "comparisons": len(wins),
                "win_rate": wins["won"].mean(),
                "low": float(np.maximum(low, 0.0)),
                "high": float(np.minimum(high, 1.0)),
            }
        )
    table = pd.DataFrame(rows).set_index("version")
    table[strengths] = _strengths(contests, versions, table["win_rate"])
    table = table.sort_values("win_rate", ascending=False, kind="stable")
    return table.reset_index()[[*columns, *strengths]]


def _contests(turns: pd.DataFrame) -> pd.DataFrame:
    """One row per comparison of two replies: first, second, won (by the first), unit."""
    rated = turns[turns[PREFERENCE].notna()]
    units = bootstrap_units(turns)[rated.index]
    key = rated["context"].map("\n".join)
    table = rated[["system", PREFERENCE]].assign(unit=units, key=key)
    rows = []
    for _, replies in table.groupby(["unit", "key"], sort=False):
        records = replies.to_dict("records")
        for a, b in zip(records[::2], records[1::2], strict=False):
            if a["system"] == b["system"] or a[PREFERENCE] + b[PREFERENCE] != 1:
                continue
            rows.append(
                {
                    "first": a["system"],
                    "second": b["system"],
                    "won": a[PREFERENCE],
                    "unit": a["unit"],
                }
            )
    return pd.DataFrame(rows, columns=["first", "second", "won", "unit"])


def _strengths(
    contests: pd.DataFrame, versions: list[str], rates: pd.Series
) -> pd.DataFrame:
    """Log odds of each version against the average one, with robust 95 % intervals."""
    columns = ["strength", "strength_low", "strength_high"]
    table = pd.DataFrame(np.nan, index=versions, columns=columns)
    if len(versions) < 3 or rates.isin([0.0, 1.0]).any():
        return table
    design = np.zeros((len(contests), len(versions)))
    for column, version in enumerate(versions):
        design[contests["first"] == version, column] = 1
        design[contests["second"] == version, column] = -1
    # Sum to zero: the last strength is minus the sum of the others.
    contrasts = np.vstack([np.eye(len(versions) - 1), -np.ones(len(versions) - 1)])
    model = sm.GLM(
        contests["won"].to_numpy(), design @ contrasts, family=sm.families.Binomial()
    )
    fit = model.fit(
        cov_type="cluster", cov_kwds={"groups": contests["unit"].to_numpy()}
    )
    strengths = contrasts @ fit.params
    error = np.sqrt(np.diag(contrasts @ fit.cov_params() @ contrasts.T))
    table["strength"] = strengths
    table["strength_low"] = strengths - 1.96 * error
    table["strength_high"] = strengths + 1.96 * error
    return table
