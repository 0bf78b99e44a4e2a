"""Reports over releases: the JSON of each is kept in a folder, and all are drawn beside another."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.data import DataError
from lib.data.storage import atomic_write
from lib.meta_evaluation.figures import display_name
from lib.report.issues import RULES, rule_applies, rule_text
from lib.report.plots import strip_symbols
from lib.report.profiles import group_means
from lib.report.rating_study import RATING
from lib.report.verdict import KEY
from lib.report.verdict_errors import interval_of_share

SCHEMA_VERSION = 4  # of a report's JSON, see docs/report.schema.json
MAX_PANELS = 12  # scores that the figure shows
MAX_RELEASES = 20  # releases that it shows, the last ones
#: Columns of `version_levels` and of `read_history`.
LEVELS = ["version", "kind", "score", "mean", "low", "high", "dialogs", "replies"]
HISTORY = ["release", "newest", *LEVELS]


class Release(NamedTuple):
    """The name under which a report is kept, and what orders it among the others.

    Attributes:
        label: its name, unique in a folder.
        newest: day of its newest dialog, such as "2026-03-31"; "" where no dialog has a date.
        kept: when a report was first kept under this name, in UTC.
    """

    label: str
    newest: str
    kept: str


def name_release(turns: pd.DataFrame, label: str = "") -> Release:
    """The release of these dialogs: the given label, or their versions and the newest day.

    Raises:
        DataError: no label is given, and no dialog has a date.

    >>> turns = pd.DataFrame({"system": ["old", "new"]})
    >>> turns.attrs["newest"] = "2026-03-31"
    >>> name_release(turns).label
    'old, new 2026-03-31'
    """
    files = turns.attrs.get("files", {"": turns.attrs})
    newest = max(attrs.get("newest", "") for attrs in files.values())
    if not label and not newest:
        raise DataError(
            "no dialog has a date, so the report has no name in the history",
            fix="name the release: LABEL=v1.2",
        )
    versions = ", ".join(turns["system"].unique())
    kept = datetime.now(UTC).isoformat(timespec="seconds")
    return Release(label or f"{versions} {newest}", newest, kept)


def version_levels(
    turns: pd.DataFrame,
    scores: pd.DataFrame,
    signals: pd.DataFrame,
    *,
    deciding: Sequence[str],
    seed: int = 0,
) -> pd.DataFrame:
    """What a release is remembered by: ratings, deciding metrics and shares of issues by version.

    Args:
        turns, scores: the turn table and its metrics.
        signals: what `issues.reply_signals` returns.
        deciding: metrics of which higher is better.

    Returns:
        version, kind ("rating", "metric" or "issue"), score, mean (of an issue the share of the
        replies, 0 to 1), low, high, dialogs, replies. The interval of a mean resamples dialogs;
        that of a share is `verdict_errors.interval_of_share` over dialogs, so that it has a width
        also where nothing was found. Both are NaN with one dialog.

    >>> turns = pd.DataFrame({"system": "A", "agent": "A", "dialog": list("12"),
    ...                       "human_fun": [2.0, 4.0]})
    >>> levels = version_levels(turns, turns[[]], pd.DataFrame({"length": [0.0, 3.0]}), deciding=[])
    >>> levels[["kind", "score", "mean"]].values.tolist()
    [['rating', 'human_fun', 3.0], ['issue', 'empty (no words)', 0.5]]
    """
    ratings = turns.filter(regex="^human_").dropna(axis=1, how="all")
    values = ratings.join(scores[list(deciding)])
    means = group_means(turns, values, ["system"], seed)
    means["kind"] = means["metric"].isin(ratings.columns).map({True: "rating"})
    means["kind"] = means["kind"].fillna("metric")
    names = {
        "system": "version",
        "metric": "score",
        "value": "mean",
        "turns": "replies",
    }
    rows = means.rename(columns=names).to_dict("records")
    applies = rule_applies(signals)
    for version, of_version in turns.groupby("system", sort=False):
        dialogs = [of_version[column] for column in KEY]
        for number in applies:
            has_issue = applies.loc[of_version.index, number]
            by_dialog = has_issue.groupby(dialogs)
            counts = by_dialog.count()
            share, low, high = interval_of_share(by_dialog.sum(), counts)
            rows.append(
                {
                    "version": version,
                    "kind": "issue",
                    "score": f"{RULES[number].issue} ({rule_text(RULES[number])})",
                    "mean": share,
                    "low": low,
                    "high": high,
                    "dialogs": int((counts > 0).sum()),
                    "replies": int(counts.sum()),
                }
            )
    return pd.DataFrame(rows, columns=LEVELS).dropna(subset="mean", ignore_index=True)


def sheet_levels(estimates: pd.DataFrame) -> pd.DataFrame:
    """The means of ratings from a sheet as rows of `version_levels`, with Student's t over dialogs.

    Args:
        estimates: as in `rating_study.RatingStudy`; each dialog has one mean rating.

    >>> row = {"quantity": "mean", "version": "A", "value": 3.0, "low": 2.5, "high": 3.5,
    ...        "rated": 20}
    >>> sheet_levels(pd.DataFrame([row]))[["score", "mean", "dialogs"]].values.tolist()
    [['human_rating', 3.0, 20]]
    """
    means = estimates[estimates["quantity"] == "mean"]
    means = means.rename(columns={"value": "mean", "rated": "dialogs"})
    means = means.assign(kind="rating", score=RATING, replies=means["dialogs"])
    return means[LEVELS]


def keep_report(folder: Path, written: str, release: Release) -> Path:
    """Keep the JSON of a report under its label; one of the same label gives way to it.

    Args:
        written: what `page.render_json` returns.

    Returns:
        The file.
    """
    path = folder / f"{quote(release.label, safe=' ')}.json"
    if path.exists():
        release = release._replace(kept=_read_kept(path)["release"]["kept"])
    content = {"release": release._asdict()} | json.loads(written)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as unfinished:
        unfinished.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def read_history(folder: Path) -> pd.DataFrame:
    """The levels of all reports in a folder, the oldest release first.

    Releases stand in the order of their newest dialogs if all have dates, else in the order in
    which they were first kept.

    Returns:
        release, newest, and the columns of `version_levels`; no rows without a report.

    Raises:
        DataError: a file there is no kept report, or one of another version of the schema.
    """
    reports = [_read_kept(path) for path in sorted(folder.glob("*.json"))]
    releases = [report["release"] for report in reports]
    by_date = all(release["newest"] for release in releases)

    def sort_key(report: Mapping) -> tuple[str, str]:
        release = report["release"]
        return (release["newest"] if by_date else "", release["kept"])

    tables = []
    for report in sorted(reports, key=sort_key):
        release = report["release"]
        levels = pd.DataFrame(report["tables"]["levels"])
        levels = levels.assign(release=release["label"], newest=release["newest"])
        tables.append(levels.reindex(columns=HISTORY))
    if not tables:
        return pd.DataFrame(columns=HISTORY)
    return pd.concat(tables, ignore_index=True)


def _read_kept(path: Path) -> dict:
    """A kept report.

    Raises:
        DataError: the file is no kept report, or one of another version of the schema.
    """
    fix = "move it out of the folder, or make its report again"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError("is not JSON", path, fix=fix) from error
    version = report.get("schema") if isinstance(report, dict) else None
    if version is None or (version == SCHEMA_VERSION and "release" not in report):
        raise DataError("is no report that HISTORY kept", path, fix=fix)
    if version != SCHEMA_VERSION:
        problem = f"has version {version} of the schema, and this is {SCHEMA_VERSION}"
        raise DataError(problem, path, fix=fix)
    return report


def last_versions(history: pd.DataFrame) -> pd.DataFrame:
    """The rows of each release's last version: B, or the last system of the file.

    >>> history = pd.DataFrame({"release": ["1", "1"], "version": ["A", "B"]})
    >>> last_versions(history)["version"].tolist()
    ['B']
    """
    last = history.groupby("release")["version"].transform("last")
    return history[history["version"] == last]


def history_plot(history: pd.DataFrame) -> Figure:
    """Ratings, deciding metrics and the commonest issues over releases, with 95 % intervals.

    Each panel has one score of the last version of each release (`last_versions`); at most twelve
    panels, ratings first and issues by their largest share, and the last twenty releases.

    Args:
        history: what `read_history` returns.

    >>> rows = [{"release": name, "newest": "", "version": "bot", "kind": "rating",
    ...          "score": "human_fun", "mean": 3.0, "low": 2.5, "high": 3.5} for name in ("1", "2")]
    >>> history_plot(pd.DataFrame(rows)).get_label()
    'Over 2 releases, from 1 to 2, with 95 % intervals. fun: 3 (2.5 to 3.5), then 3 (2.5 to 3.5).'
    """
    table = last_versions(history)
    releases = list(dict.fromkeys(table["release"]))[-MAX_RELEASES:]
    table = table[table["release"].isin(releases)]
    largest = table.groupby(["kind", "score"], sort=False)["mean"].max().reset_index()
    issues = largest[(largest["kind"] == "issue") & (largest["mean"] > 0)]
    issues = issues.sort_values("mean", ascending=False, kind="stable")
    names = [
        *largest.loc[largest["kind"] == "rating", "score"],
        *largest.loc[largest["kind"] == "metric", "score"],
        *issues["score"],
    ][:MAX_PANELS]
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    figure, grid = plt.subplots(
        lines,
        columns,
        figsize=(3.4 * columns, 2.6 * lines),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    texts = []
    for axes, name in zip(grid.flat, names, strict=False):
        rows = table[table["score"] == name].set_index("release").reindex(releases)
        is_issue = "issue" in set(rows["kind"])
        scale = 100 if is_issue else 1
        mean = scale * rows["mean"]
        below = mean - scale * rows["low"]
        above = scale * rows["high"] - mean
        positions = range(len(releases))
        axes.errorbar(positions, mean, [below, above], fmt="o-", capsize=3, linewidth=1)
        axes.set_xticks(positions, [strip_symbols(name) for name in releases])
        axes.tick_params("x", rotation=45, labelsize="small")
        title = name if is_issue else display_name(name.removeprefix("human_"))
        axes.set_title(strip_symbols(title), fontsize="small")
        if is_issue:
            axes.set_ylabel("% of the replies", fontsize="small")
            axes.set_ylim(bottom=0)
        measured = rows.dropna(subset="mean")
        first_and_last = measured.iloc[[0, -1]] if len(measured) > 1 else measured
        estimates = [
            f"{scale * row['mean']:.3g} ({scale * row['low']:.3g} to {scale * row['high']:.3g})"
            for row in first_and_last.to_dict("records")
        ]
        unit = " %" if is_issue else ""
        texts.append(f"{title}: {', then '.join(estimates)}{unit}")
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    figure.set_label(
        f"Over {len(releases)} releases, from {releases[0]} to {releases[-1]}, with 95 % "
        f"intervals. {'; '.join(texts)}."
    )
    return figure
