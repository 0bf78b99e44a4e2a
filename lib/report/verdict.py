"""Versions of a bot: which ratings and metrics differ, and which version is better."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.resampling import bootstrap_counts, resample_blocks
from lib.analysis.significance import benjamini_hochberg
from lib.data import DataError
from lib.report.dialogs import rating_columns

MAX_PAIRED = (
    10  # dialogs of one version with the same opening; with more, it is a greeting
)
LEVEL = 0.05
POWER = 0.8
KEY = ["system", "agent", "dialog"]
UNDECIDED = (
    "There are no ratings, and no metric of which higher is better: nothing is decided."
)
CONDITION = re.compile(
    r"(?P<version>.+?)(?P<negated> not)? (?P<verdict>better|worse|mixed)"
)


@dataclass(frozen=True)
class Verdict:
    """Whether one version is better than the first one of the file, and what that rests on.

    Attributes:
        version, against: names of the two systems.
        verdict: "better", "worse", "mixed", "no difference shown" or "no verdict".
        explanation: a few sentences, with the size of each difference.
        decided_by: "rating" or "metric"; "" where nothing decides.
        scores: the ratings or metrics that decide.
        dialogs: bootstrap units of the smaller version.
        paired: units that both versions have.
    """

    version: str
    against: str = ""
    verdict: str = "no verdict"
    explanation: str = ""
    decided_by: str = ""
    scores: Sequence[str] = ()
    dialogs: int = 0
    paired: int = 0


def bootstrap_units(turns: pd.DataFrame) -> pd.Series:
    """The unit to resample, per reply: dialogs with the same opening share one.

    The opening is the context of a dialog's first reply. It pairs versions unless one of them has
    more than ten dialogs with it ("hi").

    >>> turns = pd.DataFrame({"system": ["A", "B", "B"], "agent": "x", "dialog": ["1", "2", "3"],
    ...                       "turn": 1, "context": [["Tea?"], ["tea? "], ["Rain?"]]})
    >>> bootstrap_units(turns).tolist()
    [0, 0, 1]
    """
    dialog = turns.groupby(KEY, sort=False).ngroup()
    first = turns.loc[turns.groupby(dialog)["turn"].idxmin()]
    dialog_of_first = dialog[first.index]
    opening = first["context"].map("\n".join)
    opening = opening.str.strip().str.casefold()

    dialogs_of_version = first.groupby([opening, "system"])["turn"].transform("size")
    largest = dialogs_of_version.groupby(opening).transform("max")
    versions = first.groupby(opening)["system"].transform("nunique")
    pairs = (opening != "") & (versions > 1) & (largest <= MAX_PAIRED)
    names = opening.where(pairs, dialog_of_first.astype(str) + "\n")
    return dialog.map(pd.Series(pd.factorize(names)[0], dialog_of_first))


def differences(
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    higher_is_better: Collection[str] = (),
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Compare each version with the first one of the file, by every rating and every metric.

    The statistic is the difference of the means over replies. Its standard error is that of
    resamples of `bootstrap_units`, the shared ones drawn for both versions at once. With c units of
    the smaller version

    .. math:: d \pm t_{c-1} \sqrt{c/(c-1)}\, SE, \qquad p = 2 P(t_{c-1} > |d| / SE)

    p is at least :math:`2^{1-c}`, as in a permutation test. Benjamini-Hochberg adjusts it over all
    ratings, and separately over all metrics. `detectable` is the true difference that a test at the
    level .05 / (number of tests) finds with a power of 80 %.

    Args:
        turns: turn table; each `system` is a version.
        scores: one column per metric on the same index.
        higher_is_better: metrics of which a higher value is better; it is of all ratings.

    Returns:
        A row per version and score: version, against, score, mean, mean_against, difference, low,
        high, p, dialogs (units of the smaller version), paired (units of both), reason (why there
        is no test), kind ("rating" or "metric"), p_adjusted, better ("higher", or "" where the
        score only describes), detectable. No rows for one version.

    >>> turns = pd.DataFrame({"system": ["A", "B"] * 4, "agent": "x", "dialog": list("11223344"),
    ...     "turn": 0, "context": [[]] * 8, "human_fun": [1.0, 3, 2, 5, 1, 4, 2, 4]})
    >>> differences(turns, pd.DataFrame(index=turns.index))["difference"].tolist()
    [2.5]
    """
    ratings = rating_columns(turns)
    values = turns[ratings].join(scores).astype(float)
    first, *others = dict.fromkeys(turns["system"])
    if not others:
        return pd.DataFrame(columns=["version", "against"])
    compared = [
        _compare(turns, values, (first, version), resamples=resamples, seed=seed)
        for version in others
    ]
    table = pd.concat(compared, ignore_index=True)

    is_rating = table["score"].isin(ratings)
    table["kind"] = np.where(is_rating, "rating", "metric")
    table["p_adjusted"] = benjamini_hochberg(table["p"], table["kind"])
    directed = is_rating | table["score"].isin(higher_is_better)
    table["better"] = np.where(directed, "higher", "")
    tests = table.groupby("kind")["p"].transform("count").clip(lower=1)
    df = table["dialogs"] - 1
    critical = stats.t.isf(LEVEL / 2 / tests, df)
    quantiles = critical + stats.t.isf(1 - POWER, df)
    table["detectable"] = quantiles * table.pop("error")
    return table


def _compare(
    turns: pd.DataFrame,
    values: pd.DataFrame,
    versions: tuple[str, str],
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """The second version against the first: a row per score, with the standard error."""
    turns = turns[turns["system"].isin(versions)]
    units = bootstrap_units(turns)
    total = []  # of each version: the sum of its scores in each unit, (units, scores)
    count = []  # and their number
    for version in versions:
        scores = values.loc[turns.index].where(turns["system"] == version)
        by_unit = scores.groupby(units)
        total.append(by_unit.sum().to_numpy())
        count.append(by_unit.count().to_numpy(float))

    def means(weights: np.ndarray) -> np.ndarray:
        """Mean scores of both versions, where each unit counts `weights` times."""
        first = (weights @ total[0]) / (weights @ count[0])
        second = (weights @ total[1]) / (weights @ count[1])
        return np.stack([first, second])

    has_score = np.stack(count) > 0  # (versions, units, scores)
    n_units = has_score.sum(axis=1).min(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = []
        for weights in _resample(has_score.any(axis=2), resamples, seed):
            resampled.append(np.diff(means(weights), axis=0)[0])
        spread = pd.DataFrame(np.concatenate(resampled)).std(ddof=0).to_numpy()
        error = spread * np.sqrt(n_units / (n_units - 1))
        mean_first, mean_second = means(np.ones(units.nunique()))
        difference = mean_second - mean_first
        p = 2 * stats.t.sf(np.abs(difference) / error, n_units - 1)
        p = np.maximum(p, 2.0 ** (1 - n_units))
        margin = stats.t.isf(LEVEL / 2, n_units - 1) * error

    too_few = n_units < 2
    constant = (error == 0) & (difference == 0)
    reasons = ["fewer than 2 dialogs of a version", "all scores equal"]
    reason = np.select([too_few, constant], reasons, "")
    return pd.DataFrame(
        {
            "version": versions[1],
            "against": versions[0],
            "score": values.columns,
            "mean": mean_second,
            "mean_against": mean_first,
            "difference": difference,
            "low": difference - margin,
            "high": difference + margin,
            "p": np.where(reason == "", p, np.nan),
            "error": error,
            "dialogs": n_units,
            "paired": has_score.all(axis=0).sum(axis=0),
            "reason": reason,
        }
    )


def _resample(has_unit: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each unit is drawn, (resamples, units) in blocks.

    Units of both versions, of the first alone and of the second alone are drawn separately;
    `has_unit` says which version has which unit, (versions, units).
    """
    rng = np.random.default_rng(seed)
    first, second = has_unit
    strata = [first & second, first & ~second, second & ~first]
    for block in resample_blocks(resamples, len(first)):
        weights = np.zeros((len(block), len(first)))
        for stratum in strata:
            if stratum.any():
                weights[:, stratum] = bootstrap_counts(rng, len(block), stratum.sum())
        yield weights


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Decide for each version whether it is better or worse than the first, and how sure that is.

    Ratings decide; without any, the metrics of which higher is better. Worse: some of them are
    lower (adjusted p <= .05) and none is higher; better: the other way round; mixed: both; else no
    difference is shown.

    Args:
        table: what `differences` returns.

    >>> row = {"version": "B", "against": "A", "kind": "rating", "score": "human_fun", "better":
    ...     "higher", "difference": -1.0, "low": -1.5, "high": -0.5, "p_adjusted": 0.01,
    ...     "detectable": 0.7, "dialogs": 30, "paired": 30, "reason": ""}
    >>> verdicts(pd.DataFrame([row]))[0].verdict
    'worse'
    """
    result = []
    for (version, against), rows in table.groupby(["version", "against"], sort=False):
        tested = rows[rows["reason"] == ""]
        deciding = tested[tested["kind"] == "rating"]
        if deciding.empty:
            deciding = tested[tested["better"] == "higher"]
        if deciding.empty:
            result.append(Verdict(version, against, explanation=UNDECIDED))
            continue
        significant = deciding.loc[deciding["p_adjusted"] <= LEVEL, "difference"]
        verdict = "no difference shown"
        if len(significant):
            verdict = "better" if significant.gt(0).any() else "worse"
        if significant.gt(0).any() and significant.lt(0).any():
            verdict = "mixed"
        result.append(
            Verdict(
                version=version,
                against=against,
                verdict=verdict,
                explanation=_explain(deciding, version, against),
                decided_by=deciding["kind"].iloc[0],
                scores=deciding["score"].tolist(),
                dialogs=int(deciding["dialogs"].max()),
                paired=int(deciding["paired"].max()),
            )
        )
    return result


def _explain(deciding: pd.DataFrame, version: str, against: str) -> str:
    """What is higher, what is lower, what shows no difference, and what that rests on."""
    sizes = {
        f"{version} is higher than {against} in": [],
        f"{version} is lower than {against} in": [],
        "No difference shown in": [],
    }
    higher, lower, unclear = sizes.values()
    for row in deciding.to_dict("records"):
        name = row["score"].removeprefix("human_")
        interval = f"{row['low']:+.2g} to {row['high']:+.2g}"
        p = row["p_adjusted"]
        if not p <= LEVEL:
            unclear.append(
                f"{name} ({interval}; smallest that would show: {row['detectable']:.2g})"
            )
            continue
        p_text = f"= {p:.3f}" if p >= 0.001 else "< .001"
        size = (
            f"{name} ({row['difference']:+.2g}, 95 % interval {interval}, p {p_text})"
        )
        (higher if row["difference"] > 0 else lower).append(size)
    sentences = [
        f"{start} {', '.join(texts)}." for start, texts in sizes.items() if texts
    ]
    paired = deciding["paired"].max()
    pairs = f", {paired} of them paired by their opening" if paired else ""
    sentences.append(
        f"This rests on {deciding['dialogs'].max()} dialogs of a version{pairs}."
    )
    return " ".join(sentences)


def condition_holds(verdicts: Sequence[Verdict], condition: str) -> bool:
    """Whether a release should stop: "b worse", "new not better", "all mixed" and the like.

    Args:
        verdicts: of each version that was compared with the first.
        condition: a version (its name; "b" also for the first one compared, "all" for any of them),
            "not" if it is to be negated, and "better", "worse" or "mixed". A version without a
            verdict is neither better nor worse.

    Raises:
        DataError: the condition cannot be read, or names a version that was not compared.

    >>> condition_holds([Verdict("new", "old", "worse")], "b worse")
    True
    """
    match = CONDITION.fullmatch(condition)
    named = _named_versions(verdicts, match["version"]) if match else []
    if not named:
        versions = ", ".join(verdict.version for verdict in verdicts)
        raise DataError(
            f"{condition!r} names no version other than the first, or no verdict",
            fix=f'write "b worse" or "b not better"; versions: {versions}',
        )
    for verdict in named:
        holds = verdict.verdict == match["verdict"]
        if holds != bool(match["negated"]):
            return True
    return False


def _named_versions(verdicts: Sequence[Verdict], name: str) -> list[Verdict]:
    """The versions that a condition names: "all", a version, or "b" for the first one compared."""
    if name == "all":
        return list(verdicts)
    named = [
        verdict for verdict in verdicts if verdict.version.casefold() == name.casefold()
    ]
    if not named and name in ("b", "B"):
        return list(verdicts[:1])
    return named
