"""Rated dialogs: do the raters agree, what is each version's mean, and what would more bring?

The ratings come from a sheet (`lib.report.rating_sheets`) or from the file itself. A score of all
dialogs may narrow the intervals of those that were rated (`lib.analysis.prediction_powered`), if
these were drawn at random. The verdict rests on the classical interval.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.agreement import agreement_summary
from lib.analysis.alternative_annotator import (
    MIN_ITEMS,
    MIN_RATERS,
    alternative_annotator_test,
)
from lib.analysis.prediction_powered import (
    MIN_RATED,
    Estimate,
    PoweredMean,
    powered_difference,
    powered_mean,
)
from lib.analysis.significance import benjamini_hochberg
from lib.data import DataError
from lib.report.dialogs import leading_rating
from lib.report.validity import AGREES
from lib.report.verdict import KEY, LEVEL, POWER

RATING = "human_rating"  # the name of a sheet's rating among those of a file
FURTHER = 20  # rated dialogs of each version
COSTS = (0.2, 0.15, 0.1)  # of replacing experts, trained raters, a crowd
DOUBT = 0.01  # level of the tests whether rated dialogs are a random draw


@dataclass(frozen=True)
class DialogRatings:
    """Ratings of some dialogs of a file, and how these dialogs were chosen.

    Attributes:
        single: a row per rating, with the columns item, annotator, dimension and rating, as
            `lib.analysis.agreement` takes them; an item is a dialog of a sheet, or a reply.
        dialog_of_item: the dialog (system, agent, dialog) of each item.
        drawn_at_random: the user's answer where the choice of the rated dialogs is in doubt.
        ratings: the same with system, agent, dialog and rater, of a sheet.
        means: mean rating of each rated dialog, indexed by system, agent, dialog.
        candidates: the dialogs that were to be rated, as an index of the same levels: those of the
            sheet, or all of the file.
        scale: lowest and highest rating.
        predictor: the score that was named before there were ratings, or "".
        from_sheet: an item is then a dialog, and the candidates are a random draw; else an item
            is a reply, and which dialogs have ratings was the file's choice.
    """

    single: pd.DataFrame
    dialog_of_item: pd.Series
    means: pd.Series
    candidates: pd.MultiIndex
    scale: tuple[float, float]
    predictor: str = ""
    from_sheet: bool = True
    drawn_at_random: bool = False
    ratings: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True)
class RatingStudy:
    """What the rated dialogs say; every table is empty where there is nothing to say.

    Attributes:
        agreement: `agreement.agreement_summary` of the single ratings.
        estimates: a row per version and per difference from the first version. rated, others (not
            rated, with a score); value, low, high, p: mean or difference with Student's t;
            powered, powered_low, powered_high, powered_p: with the correction by the predictor, NaN
            where there is none; r, break_even, saving (share of ratings that the correction saves);
            reason (why there is no correction, or no interval).
        further: the half widths of these intervals, and as they may be expected with 20 more rated
            dialogs of each version.
        differences: the differences as rows of `verdict.differences`, where they rest on a sheet.
        annotator_test: per judge and cost, whether the judge may replace a rater.
        question: what to answer before the ratings may stand for all dialogs; "" where nothing is
            in doubt.
    """

    agreement: pd.DataFrame = field(default_factory=pd.DataFrame)
    estimates: pd.DataFrame = field(default_factory=pd.DataFrame)
    further: pd.DataFrame = field(default_factory=pd.DataFrame)
    differences: pd.DataFrame = field(default_factory=pd.DataFrame)
    annotator_test: pd.DataFrame = field(default_factory=pd.DataFrame)
    question: str = ""


def ratings_of_sheet(ratings: pd.DataFrame, key, order: pd.DataFrame) -> DialogRatings:
    """The ratings of a sheet, with a dialog as an item.

    Args:
        ratings: what `rating_sheets.read_rating_sheets` returns.
        key: the `rating_sheets.SheetKey`.
        order: what `rating_sheets.draw_order` returns.
    """
    dialogs = pd.MultiIndex.from_frame(order[KEY])
    drawn_dialogs = dialogs[
        dialogs.isin([tuple(names) for names in key.dialogs.values()])
    ]
    rated = pd.MultiIndex.from_frame(ratings[KEY])
    single = pd.DataFrame(
        {
            "item": dialogs.get_indexer(rated),
            "annotator": ratings["rater"],
            "dimension": "rating",
            "rating": ratings["rating"],
        }
    )
    return DialogRatings(
        single=single,
        dialog_of_item=pd.Series(dialogs.to_numpy()),
        means=ratings.groupby(KEY)["rating"].mean(),
        candidates=drawn_dialogs,
        scale=(key.low, key.high),
        predictor=key.predictor,
        ratings=ratings,
    )


def ratings_of_file(turns: pd.DataFrame) -> DialogRatings | None:
    """The file's own ratings: human_overall where there is one, else the first; None without any.

    A dialog's rating is the mean of its replies'. Which dialogs have one was the file's choice.
    """
    column = leading_rating(turns)
    if not column:
        return None
    dialogs = pd.MultiIndex.from_frame(turns[KEY])
    single = _single_ratings_of_file(turns, column.removeprefix("human_"))
    values = single["rating"] if len(single) else turns[column]
    return DialogRatings(
        single=single,
        dialog_of_item=pd.Series(dialogs.to_numpy(), turns.index),
        means=turns.groupby(KEY)[column].mean().dropna(),
        candidates=dialogs.unique(),
        scale=(float(values.min()), float(values.max())),
        from_sheet=False,
    )


def _single_ratings_of_file(turns: pd.DataFrame, dimension: str) -> pd.DataFrame:
    """The ratings of named raters that were joined when the file was read; of one file only."""
    read = pd.DataFrame(turns.attrs.get("ratings", {}))
    columns = {"row": "item", "rater": "annotator"}
    names = ["item", "annotator", "dimension", "rating"]
    if read.empty:
        return pd.DataFrame(columns=names)
    single = read[read["dimension"] == dimension].rename(columns=columns)
    return single.dropna(subset="annotator")[names]


def choose_predictor(validity: pd.DataFrame) -> str:
    """The metric that narrows the intervals unless another was named; "" where none may.

    The first that agrees with people on public corpora. The rule reads no rating of the file, so
    the choice cannot favour a result.

    >>> choose_predictor(pd.DataFrame({"metric": ["length"], "status": ["uncertain"]}))
    ''
    """
    agreeing = validity.loc[validity["status"] == AGREES, "metric"]
    return "" if agreeing.empty else str(agreeing.iloc[0])


def study_ratings(
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    rated: DialogRatings,
    order: pd.DataFrame,
    *,
    predictor: str = "",
    judges: list[str] | None = None,
) -> RatingStudy:
    """Agreement, means, differences and what more ratings would bring.

    Args:
        turns: turn table.
        scores: one column per metric on the same index.
        rated: the ratings.
        order: the dialogs that might be drawn (`rating_sheets.draw_order`).
        predictor: the score to correct with where none was named (`choose_predictor`).
        judges: scores that may be a judge's.

    Raises:
        DataError: the predictor that was named is not among the scores.

    Returns:
        A study without estimates where the rated dialogs may be no random draw; `question` then
        says why.
    """
    predictor = rated.predictor.removeprefix("score_") or predictor
    if rated.predictor and predictor not in scores:
        fix = "give JUDGE=... as well" if predictor == "cpds" else "see section 4"
        problem = f"the score {predictor!r}, which was named with RATE, is not there"
        raise DataError(problem, fix=fix)
    dialogs = _dialog_table(turns, scores, rated, order, predictor)
    question = _question(dialogs, rated, predictor)
    units = dialogs.set_index(KEY)["unit"]
    clusters = rated.dialog_of_item.map(units)
    single = rated.single[rated.single["item"].map(clusters).notna()]
    agreement = _agreement(single, clusters)
    by_item = scores[judges or []]
    if rated.from_sheet:
        of_dialog = by_item.groupby([turns[level] for level in KEY]).mean()
        by_item = of_dialog.reindex(pd.MultiIndex.from_tuples(rated.dialog_of_item))
        by_item = by_item.set_axis(rated.dialog_of_item.index)
    annotator_test = _annotator_tests(by_item, single, clusters, rated)
    everything = dialogs["rating"].notna().all()
    if (question and not rated.drawn_at_random) or (
        everything and not rated.from_sheet
    ):
        return RatingStudy(
            agreement=agreement, annotator_test=annotator_test, question=question
        )
    quantities = _rated_estimates(dialogs, predictor)
    return RatingStudy(
        agreement=agreement,
        estimates=pd.DataFrame([_estimate_row(q, predictor) for q in quantities]),
        further=pd.DataFrame([_further_row(q) for q in quantities]),
        differences=_verdict_rows(quantities) if rated.from_sheet else pd.DataFrame(),
        annotator_test=annotator_test,
        question=question,
    )


def decide_by_sheet(differences: pd.DataFrame, study: RatingStudy) -> pd.DataFrame:
    """`verdict.differences`, where the ratings of a sheet decide in place of the file's own.

    The file's own ratings stay in the table, as kind "rating of the file".
    """
    if study.differences.empty:
        return differences
    kind = differences["kind"].replace("rating", "rating of the file")
    file_differences = differences.assign(kind=kind)
    return pd.concat([study.differences, file_differences], ignore_index=True)[
        list(differences)
    ]


def _dialog_table(
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    rated: DialogRatings,
    order: pd.DataFrame,
    predictor: str,
) -> pd.DataFrame:
    """The dialogs of `order` with what a study needs, in the order of the file.

    Added are replies (their number), score (mean of the predictor), place (in the file), rating
    (mean, NaN without one) and candidate (whether the dialog was to be rated).
    """
    turns = turns.assign(score=scores.get(predictor, np.nan))
    by_dialog = turns.groupby(KEY, sort=False)
    table = by_dialog.agg(replies=("response", "size"), score=("score", "mean"))
    table["place"] = np.arange(len(table))
    table["rating"] = rated.means
    table["candidate"] = table.index.isin(rated.candidates)
    return table.join(order.set_index(KEY), how="inner").reset_index()


def _question(dialogs: pd.DataFrame, rated: DialogRatings, predictor: str) -> str:
    """What is to be asked of the choice of the rated dialogs; "" where it was random.

    Rated and other candidates are compared by their rank within their version.
    """
    candidates = dialogs[dialogs["candidate"]]
    has_rating = candidates["rating"].notna()
    if has_rating.all() or not has_rating.any():
        return ""
    names = {
        "place": ("earlier in the file", "later in the file (the newest, in a log)"),
        "replies": ("shorter", "longer"),
        "score": (f"lower in {predictor}", f"higher in {predictor}"),
    }
    findings = []
    for column, (lower, higher) in names.items():
        ranks = candidates.groupby("system")[column].rank(pct=True)
        ranks_rated = ranks[has_rating].dropna()
        ranks_other = ranks[~has_rating].dropna()
        if min(len(ranks_rated), len(ranks_other)) < 2:
            continue
        p = stats.mannwhitneyu(ranks_rated, ranks_other).pvalue
        if p < DOUBT / len(names):
            if ranks_rated.mean() > ranks_other.mean():
                findings.append(higher)
            else:
                findings.append(lower)
    if rated.from_sheet and not findings:
        # What is missing of a sheet is missing at random.
        return ""
    count = f"{has_rating.sum()} of {len(candidates)} dialogs"
    where = "of the sheet are rated" if rated.from_sheet else "have ratings in the file"
    text = f"{count} {where}"
    if findings:
        text += f"; they are {', '.join(findings)} than the others"
    return f"{text}. Were they drawn at random? If so, say DRAWN=random"


@dataclass(frozen=True)
class _RatedEstimate:
    """A mean or a difference, as it is and as it may be expected with more rated dialogs."""

    version: str
    against: str
    rated: int
    others: int
    paired: int
    mean: PoweredMean
    more: int
    expected: PoweredMean

    @property
    def kind(self) -> str:
        """Whether it is the "mean" of a version or the "difference" of two."""
        return "difference" if self.against else "mean"


def _rated_estimates(dialogs: pd.DataFrame, predictor: str) -> list[_RatedEstimate]:
    """Each version's mean, then the difference of each version from the first."""
    versions = dialogs.sort_values("place")["system"].unique()
    means = {}
    for version in versions:
        of_version = dialogs[dialogs["system"] == version]
        means[version] = _rated_estimate(of_version, predictor, version)
    first = versions[0]
    differences = []
    for version in versions[1:]:
        if dialogs["paired"].all():
            columns = ["rating", "score"]
            by_unit = dialogs.pivot(index="unit", columns="system", values=columns)
            pairs = pd.DataFrame(
                {
                    name: by_unit[name, version] - by_unit[name, first]
                    for name in columns
                }
            )
            difference = _rated_estimate(pairs, predictor, version, first)
        else:
            difference = _independent_difference(means[first], means[version])
        differences.append(difference)
    return [*means.values(), *differences]


def _rated_estimate(
    values: pd.DataFrame, predictor: str, version: str, against: str = ""
) -> _RatedEstimate:
    """Of dialogs, or of pairs of them: the mean of the ratings, with and without the scores."""
    rated = values[values["rating"].notna()]
    other_scores = values.loc[values["rating"].isna(), "score"].dropna()
    reason = ""
    if not predictor:
        reason = "no metric that agrees with people was computed"
    elif rated["score"].isna().any():
        reason = f"{rated['score'].isna().sum()} rated dialogs have no {predictor}"
        if predictor == "cpds":
            reason += ": let the judge read more, JUDGED=..."
    mean = _mean_of_ratings(rated, other_scores, reason)
    more = min(FURTHER, int(values["rating"].isna().sum()))
    return _RatedEstimate(
        version=version,
        against=against,
        rated=len(rated),
        others=len(other_scores),
        paired=len(rated) if against else 0,
        mean=mean,
        more=more,
        expected=expected_with_more(mean, len(rated), len(other_scores), more),
    )


def _mean_of_ratings(
    rated: pd.DataFrame, other_scores: pd.Series, reason: str
) -> PoweredMean:
    """`powered_mean`; without a correction for that reason, without an interval of one rating."""
    if len(rated) < 2:
        nothing = Estimate(float(rated["rating"].mean()), np.nan, np.nan)
        reason = f"{len(rated)} rated dialogs are too few for an interval"
        return PoweredMean(nothing, nothing, np.nan, np.nan, 0.0, reason)
    if not reason:
        return powered_mean(rated["rating"], rated["score"], other_scores)
    no_scores = np.zeros(len(rated))
    mean = powered_mean(rated["rating"], no_scores, no_scores)
    return mean._replace(reason=reason)


def expected_with_more(
    mean: PoweredMean, n_rated: int, n_other: int, more: int
) -> PoweredMean:
    r"""The estimate as it may be expected with more rated dialogs, if the ratings vary as before.

    With the standard deviation s of the ratings and their correlation r with the scores, at n rated
    dialogs and N others the errors are

    .. math:: \frac{s}{\sqrt{n}}, \qquad
        \frac{s}{\sqrt{n}} \sqrt{\frac{n-1}{n-2} \left(1 - r^2 \frac{N}{n+N}\right)}

    Args:
        mean: the estimate from `n_rated` dialogs.
        n_rated, n_other: dialogs with a rating, and with a score alone.
        more: dialogs to rate in addition; they are among the others today.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=400)
    >>> ratings = scores + rng.normal(size=400)
    >>> now = powered_mean(ratings[:40], scores[:40], scores[40:])
    >>> later = powered_mean(ratings[:60], scores[:60], scores[60:])
    >>> expected = expected_with_more(now, n_rated=40, n_other=360, more=20)
    >>> now.powered.error, expected.powered.error, later.powered.error
    (0.19, 0.16, 0.15)
    """
    n = n_rated + more
    deviation = mean.classical.error * np.sqrt(n_rated)
    error = deviation / np.sqrt(n)
    classical = Estimate(mean.classical.value, error, n - 1)
    break_even = 1 / np.sqrt(n - 2) if n > 2 else np.nan
    r = mean.correlation
    if n < MIN_RATED or n_other <= more or not abs(r) > break_even:
        return mean._replace(powered=classical, classical=classical)
    now = _powered_factor(n_rated, n_other, r)
    later = _powered_factor(n, n_other - more, r)
    error = deviation * later if mean.reason else mean.powered.error * later / now
    powered = Estimate(mean.powered.value, float(error), n - 2)
    return mean._replace(powered=powered, classical=classical, reason="")


def _powered_factor(n_rated: int, n_other: int, r: float) -> float:
    """The error of the corrected mean in standard deviations of the ratings."""
    unexplained = 1 - r**2 * n_other / (n_rated + n_other)
    return np.sqrt((n_rated - 1) / (n_rated - 2) * unexplained / n_rated)


def _independent_difference(
    first: _RatedEstimate, second: _RatedEstimate
) -> _RatedEstimate:
    """The difference of two versions with dialogs of their own (Welch)."""
    mean = _difference_of(first.mean, second.mean)
    return _RatedEstimate(
        version=second.version,
        against=first.version,
        rated=min(first.rated, second.rated),
        others=min(first.others, second.others),
        paired=0,
        mean=mean,
        more=min(first.more, second.more),
        expected=_difference_of(first.expected, second.expected),
    )


def _difference_of(first: PoweredMean, second: PoweredMean) -> PoweredMean:
    powered, classical = powered_difference(first, second)
    reasons = []
    if first.reason and second.reason:
        reasons = dict.fromkeys([first.reason, second.reason])
    saving = 1 - (powered.error / classical.error) ** 2 if classical.error else 0.0
    return PoweredMean(
        powered=powered,
        classical=classical,
        correlation=np.nan,
        break_even=np.nan,
        saving=saving,
        reason="; ".join(reasons),
    )


def _p_value(estimate: Estimate) -> float:
    """Two-sided p of Student's t that the value is 0; NaN where nothing varies."""
    if not estimate.error > 0:
        return np.nan
    return float(2 * stats.t.sf(abs(estimate.value) / estimate.error, estimate.df))


def _estimate_row(quantity: _RatedEstimate, predictor: str) -> dict:
    """A row of `RatingStudy.estimates`."""
    mean = quantity.mean
    reason = mean.reason
    low, high = mean.classical.interval()
    # An interval without a width would say that all is known.
    if mean.classical.error == 0:
        low = high = np.nan
        reason = "all ratings are equal"
    powered = mean.powered
    saving = mean.saving
    if reason:
        powered = Estimate(np.nan, np.nan, np.nan)
        saving = np.nan
    powered_low, powered_high = powered.interval()
    p = powered_p = np.nan
    if quantity.against:
        p = _p_value(mean.classical)
        powered_p = _p_value(powered)
    return {
        "quantity": quantity.kind,
        "version": quantity.version,
        "against": quantity.against,
        "rated": quantity.rated,
        "value": mean.classical.value,
        "low": low,
        "high": high,
        "p": p,
        "powered": powered.value,
        "powered_low": powered_low,
        "powered_high": powered_high,
        "powered_p": powered_p,
        "reason": reason,
        "saving": saving,
        "r": mean.correlation,
        "break_even": mean.break_even,
        "predictor": predictor,
        "others": quantity.others,
    }


def _further_row(quantity: _RatedEstimate) -> dict:
    """A row of `RatingStudy.further`: half widths of the intervals, now and with more ratings.

    The column "further" is the number of dialogs still to be rated.
    """
    now = quantity.mean
    later = quantity.expected
    return {
        "quantity": quantity.kind,
        "version": quantity.version,
        "against": quantity.against,
        "rated": quantity.rated,
        "half_width": _half_width(now.classical),
        "powered_half_width": np.nan if now.reason else _half_width(now.powered),
        "further": quantity.more,
        "expected_half_width": _half_width(later.classical),
        "expected_powered": np.nan if later.reason else _half_width(later.powered),
    }


def _half_width(estimate: Estimate) -> float:
    if not estimate.error > 0:
        return np.nan
    low, high = estimate.interval()
    return (high - low) / 2


def _verdict_rows(quantities: list[_RatedEstimate]) -> pd.DataFrame:
    """The classical differences in the columns of `verdict.differences`."""
    means = {q.version: q.mean.classical.value for q in quantities if not q.against}
    rows = []
    for quantity in quantities:
        if not quantity.against:
            continue
        estimate = quantity.mean.classical
        row = _estimate_row(quantity, "")
        p = _p_value(estimate)
        reason = ""
        if np.isnan(p):
            reason = "all ratings are equal, or fewer than 2"
        rows.append(
            {
                "version": quantity.version,
                "against": quantity.against,
                "score": RATING,
                "mean": means[quantity.version],
                "mean_against": means[quantity.against],
                "difference": estimate.value,
                "low": row["low"],
                "high": row["high"],
                "p": p,
                "dialogs": quantity.rated,
                "paired": quantity.paired,
                "reason": reason,
                "kind": "rating",
                "better": "higher",
                "error": estimate.error,
                "df": estimate.df,
            }
        )
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    table["p_adjusted"] = benjamini_hochberg(table["p"])
    tests = max(1, int(table["p"].notna().sum()))
    df = table.pop("df")
    critical = stats.t.isf(LEVEL / 2 / tests, df) + stats.t.isf(1 - POWER, df)
    table["detectable"] = critical * table.pop("error")
    return table


def _agreement(single: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """How far the raters agree; empty where there are no single ratings."""
    if single.empty:
        return pd.DataFrame()
    summary = agreement_summary(single, clusters)
    summary = summary.rename(columns={"annotators": "people"})
    columns = [
        "dimension",
        "people",
        "items",
        "ratings",
        "raters",
        "alpha",
        "low",
        "high",
    ]
    columns += ["noise_ceiling", "pairwise_spearman", "one_more_spearman", "reason"]
    return summary[columns]


def _annotator_tests(
    scores: pd.DataFrame,
    single: pd.DataFrame,
    clusters: pd.Series,
    rated: DialogRatings,
) -> pd.DataFrame:
    """`alternative_annotator_test` of each judge on the raters' scale, for each cost of a rater.

    Empty without three raters who rated 30 dialogs each.

    Args:
        scores: one column per judge, on the items of the ratings.
        single: one row per rating (`DialogRatings.single`).
        clusters: bootstrap unit of each item.
    """
    matrix = single.pivot_table(index="item", columns="annotator", values="rating")
    if matrix.empty:
        return pd.DataFrame()
    dialogs = rated.dialog_of_item[matrix.index]
    n_dialogs = matrix.notna().groupby(dialogs).any().sum()
    matrix = matrix.loc[:, n_dialogs >= MIN_ITEMS]
    if matrix.shape[1] < MIN_RATERS:
        return pd.DataFrame()
    low, high = rated.scale
    rows = []
    for judge in scores:
        if not scores[judge].dropna().between(low, high).all():
            continue  # another scale: nearness to the raters would mean nothing
        for cost in COSTS:
            test = alternative_annotator_test(
                matrix,
                scores.loc[matrix.index, judge],
                clusters[matrix.index],
                cost=cost,
            )
            rows.append(
                {
                    "judge": judge,
                    "cost": cost,
                    "raters": len(test.raters),
                    "dialogs": int(n_dialogs[matrix.columns].max()),
                    "winning_rate": test.winning_rate,
                    "advantage": test.advantage,
                    "may_replace": "yes" if test.winning_rate >= 0.5 else "no",
                    "reason": test.reason,
                }
            )
    return pd.DataFrame(rows)
