"""Versions of a bot: which ratings and metrics differ, and which version is better."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.resampling import bootstrap_counts, resample_blocks
from lib.analysis.significance import benjamini_hochberg
from lib.data import DataError
from lib.meta_evaluation.figures import display_name
from lib.report.dialogs import rating_columns
from lib.report.validity import reference_table

MAX_PAIRED = (
    10  # dialogs of one version with the same opening; with more, it is a greeting
)
LEVEL = 0.05
POWER = 0.8
KEY = ["system", "agent", "dialog"]
MAX_WRONG = 0.1  # a rule decides if the interval of its wrong calls ends by then
TOO_FEW = "fewer than 2 dialogs of a version"
SAME = "the same scores in both versions"
LEVEL_OF_RATINGS = (
    "How often is such a verdict wrong? If all versions were equally good, ratings would still "
    f"call one of them better or worse in at most {100 * LEVEL:.0f} of 100 such files. This "
    "covers chance in which dialogs are in the file, not other raters or other users."
)
FURTHER_DIALOGS = (20, 100)  # of each version
CONDITION = re.compile(
    r"(?P<version>.+?)(?P<negated> not)? (?P<verdict>(leaning )?(better|worse)|mixed)"
    r"( by (?P<margin>\d+(\.\d*)?|\.\d+))?"
)


class Condition(NamedTuple):
    """When a release should stop, as in "b worse", "b not better" or "b worse by .2"."""

    versions: tuple[str, ...]
    verdict: str
    negated: bool = False
    margin: float | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether one version is better than the first one of the file, and what that rests on.

    Attributes:
        version, against: names of the two systems.
        verdict: "better", "worse", "leaning better", "leaning worse", "mixed", "no difference
            shown" or "no verdict". It only leans where metrics decide by a rule that may be
            wrong in more than one call of ten.
        explanation: a few sentences, with the size of each difference.
        decided_by: "rating" or "metric"; "" where nothing decides.
        scores: the ratings or metrics that decide.
        dialogs: bootstrap units of the smaller version.
        paired: units that both versions have.
        calls, wrong_calls: the calls by these metrics on public corpora, and how many of them
            contradict the raters; NaN where ratings decide, where nothing is called, and where it
            is not known.
        wrong_share, wrong_low, wrong_high: the same as a share, and its 95 % interval.
        silent_share: where metrics show no difference, how many they miss: of the pairs of systems
            on public corpora that raters distinguish, the share for which these metrics show no
            difference; else NaN.
        error_rate: the same in a sentence. Where ratings decide, the level of their test.
    """

    version: str
    against: str = ""
    verdict: str = "no verdict"
    explanation: str = ""
    decided_by: str = ""
    scores: Sequence[str] = ()
    dialogs: int = 0
    paired: int = 0
    calls: float = np.nan
    wrong_calls: float = np.nan
    wrong_share: float = np.nan
    wrong_low: float = np.nan
    wrong_high: float = np.nan
    silent_share: float = np.nan
    error_rate: str = ""


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

    p is at least :math:`2^{1-c}`, as in a permutation test. Benjamini-Hochberg adjusts it over the
    ratings, over the metrics of which higher is better, and over the other metrics, each apart: so
    a metric that only describes changes no verdict. `detectable` is the true difference that a test
    at the level .05 / (number of tests of its kind) finds with a power of 80 %.

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
    first, *other_versions = dict.fromkeys(turns["system"])
    if not other_versions:
        return pd.DataFrame(columns=["version", "against"])
    compared = [
        _compare(turns, values, (first, version), resamples=resamples, seed=seed)
        for version in other_versions
    ]
    table = pd.concat(compared, ignore_index=True)

    is_rating = table["score"].isin(ratings)
    table["kind"] = np.where(is_rating, "rating", "metric")
    directed = is_rating | table["score"].isin(higher_is_better)
    table["better"] = np.where(directed, "higher", "")
    tested_together = table["kind"] + table["better"]
    table["p_adjusted"] = benjamini_hochberg(table["p"], tested_together)
    tests = table.groupby(tested_together)["p"].transform("count").clip(lower=1)
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
    reason = np.select([too_few, constant], [TOO_FEW, SAME], "")
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

    Ratings decide; without any, the metrics of which higher is better (`decide_direction`).
    Metrics decide where at most one in ten of such calls on public corpora was wrong, by the upper
    end of the interval in `10_verdict_errors.csv`; else, or where that is not known, they only
    lean.

    Args:
        table: what `differences` returns.

    >>> row = {"version": "B", "against": "A", "kind": "rating", "score": "human_fun", "better":
    ...     "higher", "difference": -1.0, "low": -1.5, "high": -0.5, "p_adjusted": 0.01,
    ...     "detectable": 0.7, "dialogs": 30, "paired": 30, "reason": ""}
    >>> verdicts(pd.DataFrame([row]))[0].verdict
    'worse'
    """
    columns = ["rule", "pairs", "right", "silent", "wrong", "families"]
    columns += ["wrong_share", "low", "high"]
    rates = reference_table("10_verdict_errors", columns).set_index("rule")
    result = []
    for (version, against), rows in table.groupby(["version", "against"], sort=False):
        tested = rows[rows["reason"] == ""]
        deciding = tested[tested["kind"] == "rating"]
        if deciding.empty:
            deciding = tested[tested["better"] == "higher"]
        if deciding.empty:
            result.append(Verdict(version, against, explanation=_undecided(rows)))
            continue
        verdict = Verdict(
            version=version,
            against=against,
            verdict=decide_direction(deciding),
            explanation=_explain(deciding, version, against),
            decided_by=deciding["kind"].iloc[0],
            scores=deciding["score"].tolist(),
            dialogs=int(deciding["dialogs"].max()),
            paired=int(deciding["paired"].max()),
        )
        if verdict.decided_by == "metric":
            name = rule_name(verdict.scores)
            rate = rates.loc[name] if name in rates.index else None
            verdict = _with_error_rate(verdict, rate)
        elif verdict.verdict != "no difference shown":
            verdict = replace(verdict, error_rate=LEVEL_OF_RATINGS)
        result.append(verdict)
    return result


def decide_direction(deciding: pd.DataFrame) -> str:
    """What the ratings or metrics of one version say of it, all of which are better if higher.

    "worse": some of them are lower (adjusted p <= .05) and none is higher; "better": the other way
    round; "mixed": both; else "no difference shown".

    >>> decide_direction(pd.DataFrame({"difference": [0.2, -0.1], "p_adjusted": [0.01, 0.3]}))
    'better'
    """
    significant = deciding.loc[deciding["p_adjusted"] <= LEVEL, "difference"]
    if significant.empty:
        return "no difference shown"
    if significant.gt(0).any() and significant.lt(0).any():
        return "mixed"
    return "better" if significant.gt(0).any() else "worse"


def expected_with_more_dialogs(
    table: pd.DataFrame, verdicts: Sequence[Verdict]
) -> pd.DataFrame:
    r"""The intervals of the deciding differences, as more dialogs may be expected to narrow them.

    With n units of the smaller version today and m more of each version, the half width shrinks by
    :math:`\sqrt{n / (n + m)}` if replies vary as before.

    Args:
        table: what `differences` returns.
        verdicts: of the function of that name.

    Returns:
        version, against, score, dialogs (n), half_width, further_dialogs (m: 20, 100 and three
        times n), expected_half_width. No rows where nothing decides.

    >>> row = {"version": "B", "against": "A", "score": "human_fun", "low": 0.0, "high": 0.4,
    ...        "dialogs": 60}
    >>> verdict = Verdict("B", "A", decided_by="rating", scores=["human_fun"])
    >>> more = expected_with_more_dialogs(pd.DataFrame([row]), [verdict])
    >>> more[["further_dialogs", "expected_half_width"]].round(2).values.tolist()
    [[20.0, 0.17], [100.0, 0.12], [180.0, 0.1]]
    """
    rows = []
    for verdict in verdicts:
        of_version = table[table["version"] == verdict.version]
        for row in of_version.to_dict("records"):
            half_width = (row["high"] - row["low"]) / 2
            if row["score"] not in verdict.scores or not half_width > 0:
                continue
            n = int(row["dialogs"])
            for further in (*FURTHER_DIALOGS, 3 * n):
                rows.append(
                    {
                        "version": verdict.version,
                        "against": verdict.against,
                        "score": row["score"],
                        "dialogs": n,
                        "half_width": half_width,
                        "further_dialogs": further,
                        "expected_half_width": half_width * np.sqrt(n / (n + further)),
                    }
                )
    return pd.DataFrame(rows)


def rule_name(metrics: Collection[str]) -> str:
    """The name of the rule that these metrics together decide: a key of `10_verdict_errors.csv`.

    >>> rule_name(["endex", "bleu4"])
    'bleu4 + endex'
    """
    return " + ".join(sorted(metrics))


def _with_error_rate(verdict: Verdict, rate: pd.Series | None) -> Verdict:
    """A verdict by metrics; it only leans where its rule may be wrong in more than one of ten."""
    if verdict.verdict not in ("better", "worse"):
        verdict = replace(
            verdict, error_rate=_describe_error_rate(verdict.verdict, rate)
        )
        if verdict.verdict == "no difference shown" and rate is not None:
            return replace(verdict, silent_share=rate["silent"] / rate["pairs"])
        return verdict

    if rate is not None:
        verdict = replace(
            verdict,
            calls=float(rate["right"] + rate["wrong"]),
            wrong_calls=float(rate["wrong"]),
            wrong_share=rate["wrong_share"],
            wrong_low=rate["low"],
            wrong_high=rate["high"],
        )
    if verdict.wrong_high <= MAX_WRONG:
        error_rate = _describe_error_rate(verdict.verdict, rate)
        return replace(verdict, error_rate=error_rate)
    winner = verdict.version if verdict.verdict == "better" else verdict.against
    error_rate = _describe_error_rate(verdict.verdict, rate)
    return replace(
        verdict,
        verdict=f"leaning {verdict.verdict}",
        error_rate=f"{error_rate} So this is a leaning, not a verdict.",
        explanation=f"This leans to {winner}. {verdict.explanation}",
    )


def _describe_error_rate(verdict: str, rate: pd.Series | None) -> str:
    """How often metrics that reach such a verdict were wrong, or silent, on public corpora."""
    if rate is None:
        return "How often this choice of metrics is wrong was never measured."
    if verdict == "mixed":
        return ""
    if verdict == "no difference shown":
        silent = 100 * rate["silent"] / rate["pairs"]
        return (
            f"On public corpora these metrics reach no decision on {silent:.0f} % of the "
            f"{rate['pairs']:.0f} pairs of systems that raters distinguish."
        )
    calls = int(rate["right"] + rate["wrong"])
    wrong = int(rate["wrong"])
    were = "was" if wrong == 1 else "were"
    family = "family" if rate["families"] == 1 else "families"
    sentence = (
        f"How often is such a call wrong? {wrong} of {calls} such calls on public corpora {were} "
        f"wrong. These corpora form {rate['families']:.0f} {family} (groups of corpora from one "
        "source); "
    )
    if np.isnan(rate["high"]):
        return f"{sentence}too few to say how it is on other kinds of corpora."
    high = 100 * rate["high"]
    return f"{sentence}on other kinds of corpora up to {high:.0f} of 100 may be wrong."


def _undecided(rows: pd.DataFrame) -> str:
    """Why neither ratings nor metrics can decide, and what to do."""
    candidates = rows[rows["better"] == "higher"]
    sentences = []
    if not (candidates["kind"] == "rating").any():
        sentences.append("There are no ratings.")
    if not (candidates["kind"] == "metric").any():
        sentences.append("There is no metric that agrees with people (section 7).")
    for reason, of_reason in candidates.groupby("reason", sort=False):
        names = of_reason["score"].str.removeprefix("human_").map(display_name)
        sentences.append(f"Not tested: {', '.join(names)} ({reason}).")
    reasons = set(candidates["reason"])
    if TOO_FEW in reasons:
        sentences.append("A verdict needs two dialogs of each version, better twenty.")
    if reasons == {SAME}:
        sentences.append("Is it the same file twice?")
    return " ".join(sentences)


def _explain(deciding: pd.DataFrame, version: str, against: str) -> str:
    """The differences in words, and what they rest on."""
    paired = deciding["paired"].max()
    dialogs = deciding["dialogs"]
    basis = f"This rests on at least {dialogs.min():,} dialogs of each version."
    if paired:
        basis = (
            "Dialogs that share their opening count once: the smaller version has "
            f"{dialogs.max():,} such units, {paired:,} of them also in the other version."
        )
    return f"{explain_differences(deciding, version, against)} {basis}"


def explain_differences(deciding: pd.DataFrame, version: str, against: str) -> str:
    """What is higher, what is lower, and what shows no difference, with intervals.

    Args:
        deciding: rows of `differences`, of one comparison.

    >>> row = {"score": "human_fun", "difference": 0.5, "low": 0.2, "high": 0.8,
    ...        "p_adjusted": 0.004, "detectable": 0.4}
    >>> explain_differences(pd.DataFrame([row]), "B", "A")
    'B is higher than A in fun (+0.5, 95 % interval +0.2 to +0.8, p = 0.004).'
    """
    sizes = {
        f"{version} is higher than {against} in": [],
        f"{version} is lower than {against} in": [],
        "No difference shown in": [],
    }
    higher, lower, unclear = sizes.values()
    for row in deciding.to_dict("records"):
        name = display_name(row["score"].removeprefix("human_"))
        interval = f"{row['low']:+.2g} to {row['high']:+.2g}"
        p = row["p_adjusted"]
        if not p <= LEVEL:
            unclear.append(
                f"{name} ({interval}; smallest detectable: {row['detectable']:.2g})"
            )
            continue
        p_text = f"= {p:.3f}" if p >= 0.001 else "< .001"
        size = (
            f"{name} ({row['difference']:+.2g}, 95 % interval {interval}, p {p_text})"
        )
        if row["difference"] > 0:
            higher.append(size)
        else:
            lower.append(size)
    sentences = [
        f"{start} {', '.join(texts)}." for start, texts in sizes.items() if texts
    ]
    return " ".join(sentences)


def read_condition(words: str, versions: Sequence[str]) -> Condition:
    """Read the condition on which a release should stop.

    Args:
        words: a version (its name; "b" also for the first one compared, "all" for any of them),
            "not" if it is to be negated, and "better", "worse", "mixed", "leaning better" or
            "leaning worse"; or a version and "worse by" with a margin on the scale of the ratings.
        versions: those that are compared with the first one of the file.

    Raises:
        DataError: the words cannot be read, or name a version that is not compared.

    >>> read_condition("b worse by .2", ["new"])
    Condition(versions=('new',), verdict='worse', negated=False, margin=0.2)
    """
    match = CONDITION.fullmatch(words)
    named = _named_versions(versions, match["version"]) if match else ()
    if not named:
        raise DataError(
            f"{words!r} names no version other than the first, or no verdict",
            fix='write "b worse", "b not better" or "b worse by .2"; versions: '
            + ", ".join(versions),
        )
    if match["margin"] is None:
        return Condition(named, match["verdict"], bool(match["negated"]))
    if match["verdict"] != "worse" or match["negated"]:
        raise DataError(
            f"{words!r} has a margin, which only goes with 'worse'",
            fix='write "b worse by .2": stop unless the interval rules such a loss out',
        )
    return Condition(named, "worse", margin=float(match["margin"]))


def _named_versions(versions: Sequence[str], name: str) -> tuple[str, ...]:
    """The versions that a condition names: "all", a version, or "b" for the first one compared."""
    if name == "all":
        return tuple(versions)
    named = [version for version in versions if version.casefold() == name.casefold()]
    if not named and name in ("b", "B"):
        named = versions[:1]
    return tuple(named)


def condition_holds(
    verdicts: Sequence[Verdict],
    words: str,
    differences: pd.DataFrame | None = None,
) -> bool:
    """Whether a release should stop.

    A version that only leans, or without a verdict, is neither better nor worse; one that is worse
    also satisfies "leaning worse". With a margin the release goes on only if the data rule the loss
    out (a test of non-inferiority): "b worse by .2" holds unless the interval of the difference
    lies above -.2 for every rating.

    Args:
        verdicts: of each version that was compared with the first.
        words: the condition; see `read_condition`.
        differences: of the function of that name; a margin needs it.

    Raises:
        DataError: the condition cannot be read, names a version that was not compared, or has a
            margin where there are no ratings.

    >>> condition_holds([Verdict("new", "old", "worse")], "b worse")
    True
    """
    condition = read_condition(words, [verdict.version for verdict in verdicts])
    if condition.margin is not None:
        return _loss_is_possible(condition, differences)
    for verdict in verdicts:
        if verdict.version in condition.versions:
            calls = (verdict.verdict, f"leaning {verdict.verdict}")
            if (condition.verdict in calls) != condition.negated:
                return True
    return False


def _loss_is_possible(condition: Condition, differences: pd.DataFrame) -> bool:
    """Whether some rating of a version may be lower than the first one's by the margin or more."""
    rated = differences[differences["kind"] == "rating"]
    for version in condition.versions:
        low = rated.loc[rated["version"] == version, "low"]
        if low.empty:
            raise DataError(
                f"a margin is on the scale of ratings, and {version} has none",
                fix='add ratings (human_... columns, or RATINGS=), or write "b worse"',
            )
        if not (
            low > -condition.margin
        ).all():  # an interval that is missing rules nothing out
            return True
    return False
