"""Two versions of a bot: which ratings and metrics differ, and what can be said of it."""

import re

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.resampling import bootstrap_counts, cluster_sums, resample_blocks
from lib.analysis.significance import benjamini_hochberg
from lib.data import DataError
from lib.report.dialogs import rated

GREETING = 10  # dialogs of one version with the same opening: beyond, it is a greeting and no test
LEVEL, POWER = 0.05, 0.8
VERDICT = "Each version against the first"  # the caption of the table of verdicts
SIZED = "{name} ({difference:+.2g}, 95 % interval {low:+.2g} to {high:+.2g}, p {p})"
REACH = "{name} ({low:+.2g} to {high:+.2g}; smallest that would show: {detectable:.2g})"
COLUMNS = ["version", "against", "verdict", "said"]
KEY = ["system", "agent", "dialog"]


def bootstrap_units(turns: pd.DataFrame) -> pd.Series:
    """What is drawn again, per reply: dialogs that begin alike are one unit, else each is its own.

    A dialog begins with the context of its first reply. An opening pairs versions unless one of
    them has more than ten dialogs with it ("hi").

    >>> turns = pd.DataFrame({"system": ["A", "B", "B"], "agent": "x", "dialog": ["1", "2", "3"],
    ...                       "turn": 1, "context": [["Tea?"], ["tea? "], ["Rain?"]]})
    >>> bootstrap_units(turns).tolist()
    [0, 0, 1]
    """
    dialog = turns.groupby(KEY, sort=False).ngroup()
    first = turns.loc[turns.groupby(dialog)["turn"].idxmin()]
    opening = first["context"].map(lambda said: "\n".join(said).strip().casefold())
    repeats = first.groupby([opening, "system"])["turn"].transform("size")
    most = repeats.groupby(opening).transform("max")
    versions = first.groupby(opening)["system"].transform("nunique")
    shared = opening.ne("") & versions.gt(1) & most.le(GREETING)
    names = opening.where(shared, dialog[first.index].astype(str) + "\n")
    return dialog.map(pd.Series(pd.factorize(names)[0], dialog[first.index]))


def differences(
    turns: pd.DataFrame, scores: pd.DataFrame, directed=(), resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    r"""Hold each version against the first one of the file, by every rating and every metric.

    The statistic is the difference of the means over replies. Its standard error is that of
    resamples of `units`, the shared ones drawn for both versions at once. With c units of the
    smaller version

    .. math:: d \pm t_{c-1} \sqrt{c/(c-1)}\, SE, \qquad p = 2 P(t_{c-1} > |d| / SE)

    p is at least :math:`2^{1-c}`, as in a swap test. Benjamini-Hochberg adjusts it over all
    ratings, and apart from them over all metrics. `detectable` is the true difference that a test
    at the level .05 / (number of tests) finds with a power of 80 %.

    Args:
        turns: turn table; each `system` is a version.
        scores: one column per metric on the same index.
        directed: metrics of which a higher value is better; all ratings are.

    Returns:
        A row per version and score: version, against, kind ("rating" or "metric"), score, mean,
        mean_against, difference, low, high, p, p_adjusted, detectable, dialogs (units of the
        smaller version), paired (units of both), better ("higher", or "" where the score only
        describes), reason (why there is no test). No rows for one version.

    >>> turns = pd.DataFrame({"system": ["A", "B"] * 4, "agent": "x", "dialog": list("11223344"),
    ...     "turn": 0, "context": [[]] * 8, "human_fun": [1.0, 3, 2, 5, 1, 4, 2, 4]})
    >>> differences(turns, pd.DataFrame(index=turns.index))["difference"].tolist()
    [2.5]
    """
    ratings = rated(turns)
    values = turns[ratings].join(scores).astype(float)
    systems = list(dict.fromkeys(turns["system"]))
    tables = [_difference(turns, values, systems[0], name, resamples, seed) for name in systems[1:]]
    if not tables:
        return pd.DataFrame(columns=["version", "against", "kind", "score", "p_adjusted", "better"])
    table = pd.concat(tables, ignore_index=True)
    rating = table["score"].isin(ratings)
    table.insert(2, "kind", np.where(rating, "rating", "metric"))
    table.insert(10, "p_adjusted", benjamini_hochberg(table["p"], table["kind"]))
    tests = table.groupby("kind")["p"].transform("count").clip(lower=1)
    df = table["dialogs"] - 1
    reach = stats.t.isf(LEVEL / 2 / tests, df) + stats.t.isf(1 - POWER, df)
    table.insert(11, "detectable", reach * table.pop("error"))
    return table.assign(better=np.where(rating | table["score"].isin(directed), "higher", ""))


def _difference(turns, values, a: str, b: str, resamples: int, seed: int) -> pd.DataFrame:
    """The rows of version b against version a, with their standard errors."""
    both = turns[turns["system"].isin([a, b])]
    codes, count = pd.factorize(bootstrap_units(both))[0], bootstrap_units(both).nunique()
    known = values.loc[both.index].notna().to_numpy(float)
    filled = values.loc[both.index].fillna(0).to_numpy()
    sides = [both["system"].eq(name).to_numpy(float)[:, None] for name in (a, b)]
    columns = [side * part for side in sides for part in (filled, known)]
    # (units, 4, scores): sum and number of scores of a, then of b
    sums = cluster_sums(np.hstack(columns).T, codes, count).reshape(count, 4, -1)
    drawn = np.concatenate(list(_resampled(sums, resamples, seed)))
    held = (sums[:, 1::2] > 0).sum(axis=0)
    size = held.min(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = pd.DataFrame(_gap(drawn)).std(ddof=0).to_numpy() * np.sqrt(size / (size - 1))
        gap = _gap(sums.sum(axis=0, keepdims=True))[0]
        p = np.maximum(2 * stats.t.sf(np.abs(gap) / error, size - 1), 2.0 ** (1 - size))
        margin = stats.t.isf(LEVEL / 2, size - 1) * error
        means = sums[:, ::2].sum(axis=0) / sums[:, 1::2].sum(axis=0)
    table = pd.DataFrame({"version": b, "against": a, "score": values.columns})
    table = table.assign(mean=means[1], mean_against=means[0], difference=gap)
    few, flat = size < 2, (error == 0) & (gap == 0)
    reason = np.select([few, flat], ["fewer than 2 dialogs of a version", "all scores equal"], "")
    table = table.assign(low=gap - margin, high=gap + margin, p=np.where(reason == "", p, np.nan))
    shared = ((sums[:, 1] > 0) & (sums[:, 3] > 0)).sum(axis=0)
    return table.assign(error=error, dialogs=size, paired=shared, reason=reason)


def _resampled(sums: np.ndarray, resamples: int, seed: int):
    """Sums of resamples; units of both versions, of a alone and of b alone are drawn apart."""
    rng, flat = np.random.default_rng(seed), sums.reshape(len(sums), -1)
    of_a, of_b = (sums[:, k].any(axis=1) for k in (1, 3))
    strata = [np.flatnonzero(kind) for kind in (of_a & of_b, of_a & ~of_b, of_b & ~of_a)]
    for block in resample_blocks(resamples, len(sums)):
        counts = np.zeros((len(block), len(sums)))
        for place in filter(len, strata):
            counts[:, place] = bootstrap_counts(rng, len(block), len(place))
        yield (counts @ flat).reshape(len(block), *sums.shape[1:])


def _gap(sums: np.ndarray) -> np.ndarray:
    return sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1]


def verdict(table: pd.DataFrame) -> pd.DataFrame:
    """Say of each version whether it is better or worse than the first, and how sure that is.

    Ratings decide; without any, the metrics of which higher is better. Worse: some of them are
    lower (adjusted p <= .05) and none is higher; better: the other way round; mixed: both; else no
    difference is shown.

    Args:
        table: what `differences` returns.

    Returns:
        Columns version, against, verdict ("better", "worse", "mixed", "no difference shown" or "no
        verdict"), said (a few sentences).

    >>> row = {"version": "B", "against": "A", "kind": "rating", "score": "human_fun", "better":
    ...     "higher", "difference": -1.0, "low": -1.5, "high": -0.5, "p_adjusted": 0.01,
    ...     "detectable": 0.7, "dialogs": 30, "paired": 30, "reason": ""}
    >>> verdict(pd.DataFrame([row]))["verdict"].tolist()
    ['worse']
    """
    rows = []
    for (version, against), rows_of in table.groupby(["version", "against"], sort=False):
        tested = rows_of[rows_of["reason"] == ""]
        deciding = tested[tested["kind"] == "rating"]
        if deciding.empty:
            deciding = tested[tested["better"] == "higher"]
        sure = deciding[deciding["p_adjusted"] <= LEVEL]
        up, down = sure["difference"].gt(0).any(), sure["difference"].lt(0).any()
        call = "no difference shown" if len(deciding) else "no verdict"
        if up or down:
            call = "mixed" if up and down else "better" if up else "worse"
        rows.append((version, against, call, _said(version, against, deciding)))
    return pd.DataFrame(rows, columns=COLUMNS)


def condition_holds(verdicts: pd.DataFrame, condition: str) -> bool:
    """Whether a release should stop: "b worse", "new not better", "all mixed" and the like.

    Args:
        verdicts: what `verdict` returns.
        condition: a version (its name; "b" also for the first one compared, "all" for any of them),
            "not" where meant, and "better", "worse" or "mixed". A file without a verdict is neither
            better nor worse.

    Raises:
        DataError: the condition is none, or its version is not there.

    >>> condition_holds(pd.DataFrame({"version": ["new"], "verdict": ["worse"]}), "b worse")
    True
    """
    found = re.fullmatch(r"(.+?)( not)? (better|worse|mixed)", condition)
    name, negated, word = found.groups() if found else ("", None, "")
    same = verdicts["version"].str.casefold() == name.casefold()
    if name == "all" or (name in ("b", "B") and not same.any()):
        same.iloc[: None if name == "all" else 1] = True
    if not (found and same.any()):
        fix = f'say "b worse" or "b not better"; versions: {", ".join(verdicts["version"])}'
        raise DataError(f"{condition!r} names no version beside the first, or no verdict", fix=fix)
    return bool((verdicts.loc[same, "verdict"].eq(word) ^ bool(negated)).any())


def _said(version: str, against: str, deciding: pd.DataFrame) -> str:
    if deciding.empty:
        return "There are no ratings, and no metric of which higher is better: nothing is decided."
    p = [f"= {p:.3f}" if p >= 0.001 else "< .001" for p in deciding["p_adjusted"]]
    told = deciding.assign(name=deciding["score"].str.removeprefix("human_"), p=p)
    sure, up = told["p_adjusted"] <= LEVEL, told["difference"] > 0
    n, paired = told[["dialogs", "paired"]].max()
    pairs = f", {paired:.0f} of them paired by their opening" if paired else ""
    sentences = [
        _listed(f"{version} is higher than {against} in", told[sure & up], SIZED),
        _listed(f"{version} is lower than {against} in", told[sure & ~up], SIZED),
        _listed("No difference shown in", told[~sure], REACH),
        f"This rests on {n:.0f} dialogs of a version{pairs}.",
    ]
    return " ".join(filter(None, sentences))


def _listed(start: str, rows: pd.DataFrame, form: str) -> str:
    told = ", ".join(form.format(**row) for row in rows.to_dict("records"))
    return f"{start} {told}." if told else ""
