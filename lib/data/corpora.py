"""The corpora by name: register a loader, load a corpus, list them all, count what is in them.

The loaders are in the modules named after their corpora, and `data/corpora.json` holds the
address, checksum and licence of each. The samples have the layout of the corpora on request, and
are read by the same loader.
"""

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lib import ROOT
from lib.data.storage import (
    DataError,
    data_folder,
    fetch_file,
    is_on_disk,
    registry,
    suggest_name,
)
from lib.data.turn_table import KEY, fill_agents, turn_table

INFO = ["title", "licence", "citation", "source"]
LOADERS: dict[str, Callable] = {}
DIALOG_COLUMNS = ["system", "agent", "dialog", "utterances", "speakers"]


def loader(name: str) -> Callable:
    """Register a function as the loader of a corpus, by its name in `data/corpora.json`.

    The function takes the paths of the files listed there, in this order (for a sample or a corpus
    on request their folder), and returns what `corpus_parts` returns. With a "*" in the name it is
    the loader of all corpora whose names match, and takes the name first.
    """

    def register(function: Callable) -> Callable:
        entries = registry()
        names = [*entries["corpora"], *entries["requested"], *entries["samples"]]
        for corpus in fnmatch.filter(names, name):
            LOADERS[corpus] = partial(function, corpus) if "*" in name else function
        return function

    return register


class Judgement(NamedTuple):
    """What one annotator said about one item: `rating` is a number, empty or "N/A ..."."""

    item: int
    annotator: str
    dimension: str
    rating: Any


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A loaded corpus.

    Attributes:
        name: its name in `available()`.
        level: what was rated, "turn" or "dialog".
        turns: the turn table, or None.
        dialogs: one row per dialog with `utterances` and `speakers`, or None.
        ratings: one row per single judgement: `item` (row position in the table of `level`),
            `annotator`, `dimension`, `rating`; empty where only means were published.
        report: rows read, kept and excluded, with reasons.
        info: title, licence, source, citation and `synthetic`.
    """

    name: str
    level: str
    ratings: pd.DataFrame
    report: pd.DataFrame
    info: Mapping
    turns: pd.DataFrame | None = None
    dialogs: pd.DataFrame | None = None

    def __repr__(self) -> str:
        return f"<Corpus {self.name}: {len(self.items)} rated {self.level}s>"

    @property
    def items(self) -> pd.DataFrame:
        """The table that carries the ratings: `turns` or `dialogs`, by `level`."""
        return self.turns if self.level == "turn" else self.dialogs

    def table(
        self, level: str, *columns: str, single_ratings: bool = False
    ) -> pd.DataFrame:
        """Return `turns` or `dialogs`, after checking that it holds what the caller needs.

        Args:
            level: "turn" or "dialog".
            columns: columns that must hold a value, or a list that is not empty, in some row.
            single_ratings: whether the single judgements are needed, not only their means.

        Raises:
            DataError: with what the corpus holds instead.

        >>> len(load("sample_bots").table("turn", "human_overall", "reference"))
        151
        >>> load("sample_bots").table("turn", "human_funny")
        Traceback (most recent call last):
        ...
        lib.data.storage.DataError: sample_bots, column 'human_funny': ...
        """
        fix = "take another corpus"
        table = self.turns if level == "turn" else self.dialogs
        if table is None:
            raise DataError(f"has no table of single {level}s", file=self.name, fix=fix)
        for column in columns:
            cells = table.get(column, pd.Series(dtype=object)).dropna()
            if cells.astype("str").isin(["", "[]"]).all():
                rated = ", ".join(table.filter(like="human_"))
                problem = "this corpus has no such column, or nothing in it"
                fix = f"{fix}, or one of {rated}"
                raise DataError(problem, file=self.name, column=column, fix=fix)
        if single_ratings and self.ratings.empty:
            raise DataError("only mean ratings are published", file=self.name, fix=fix)
        return table


def load(name: str, folder: str | Path | None = None) -> Corpus:
    """Load a corpus by name; public files are downloaded if they are missing.

    Args:
        name: one of `available()`.
        folder: where the files of `tbd_q1` or `comperdial` are; None: in the data folder.

    Raises:
        DataError: for an unknown name, and for a file that is missing, damaged or, where it is the
            user's own, not as described.

    >>> corpus = load("sample_bots")
    >>> corpus
    <Corpus sample_bots: 151 rated turns>
    >>> corpus.turns[["system", "turn", "human_overall"]].head(1).round(2).values.tolist()
    [['lantern', 1, 4.33]]
    """
    entries = registry()
    if name in entries["tables"]:
        raise DataError(
            f"{name!r} has no ratings", fix=f"call data.{name}() for its table"
        )
    if name not in LOADERS:
        hint = suggest_name(name, LOADERS)
        raise DataError(
            f"there is no corpus {name!r}", fix=hint or "see data.available()"
        )
    if name in entries["corpora"]:
        if folder:
            raise DataError(
                f"{name!r} is not read from a folder", fix="leave out `folder`"
            )
        entry = entries["corpora"][name]
        level = entry["level"]
        people = entry.get("people")
        info = entries["sets"][entry["set"]]
        parts = LOADERS[name](*map(fetch_file, entry["files"]))
    else:
        level = "turn"
        info = (entries["requested"] | entries["samples"])[name]
        people = info.get("people")
        parts = LOADERS[name](_find_folder(name, info, folder))
    for table in ("turns", "dialogs"):
        if table in parts:
            parts[table] = label_authors(parts[table], people)
    info = {"synthetic": name in entries["samples"], **{key: info[key] for key in INFO}}
    return Corpus(name=name, level=level, info=info, **parts)


def label_authors(items: pd.DataFrame, people: Sequence[str] | None) -> pd.DataFrame:
    """Add the column `written_by`: "person" or "machine", by the system that gave the reply.

    A reply that a system retrieved counts as the machine's, and so does a baseline that took part
    as a system (the random and the constant replies of DSTC7). The negative samples of DSTC10, a
    person's words from another dialog, were no system's: they are a person's. A table that says
    already who wrote its replies stays the same.

    Args:
        items: a turn or dialog table.
        people: the systems that are people; None: the corpus does not say, so that every cell of
            the column is missing (NaN).

    >>> items = pd.DataFrame({"system": ["bot", "Human"]})
    >>> label_authors(items, ["Human"])["written_by"].tolist()
    ['machine', 'person']
    """
    if "written_by" in items:
        return items
    authors = pd.Series(np.nan, items.index, dtype="object")
    if people is not None:
        authors = items["system"].isin(people).map({True: "person", False: "machine"})
    return items.assign(written_by=authors)


def _find_folder(name: str, entry: dict, folder: str | Path | None) -> Path:
    """The folder of a sample, or of a corpus on request; all its files are there."""
    default = data_folder() / name
    if name in registry()["samples"]:
        default = ROOT / entry["source"]
    folder = Path(folder or default)
    for file in entry["files"]:
        if not (folder / file).is_file():
            raise DataError(
                "not there: this corpus is not public",
                file=folder / file,
                fix=f"ask the authors of {entry['citation']}; put the files in {folder} in the "
                "layout of data/README.md, or pass folder=",
            )
    return folder


def ten_replies(profile: str) -> pd.DataFrame:
    """The ten rated replies that every notebook uses: a turn table, indexed by reply 1-10.

    `data/sample/ten_replies.csv` lists them. In the public profile they are from UniEval's file of
    the USR replies (MIT; Zhong et al. 2022), which may be quoted; in the sample from our own.

    >>> ten_replies("sample")["response"][10]
    'The price of wheat is stable.'
    """
    ten = pd.read_csv(ROOT / "data/sample/ten_replies.csv").query("profile == @profile")
    turns = load(ten["corpus"].iloc[0]).turns
    return (
        ten[["reply", *KEY]]
        .merge(turns, "left", on=KEY, validate="1:1")
        .set_index("reply")
    )


def corpus_parts(
    rows: pd.DataFrame | Sequence[Mapping],
    *,
    note="",
    excluded=None,
    judgements=None,
    scores=None,
) -> dict:
    """Build the tables of a corpus: items with their mean ratings, single ratings, and report.

    Texts are stripped of white space at their ends; `agent` is the system and `turn` the number of
    earlier utterances where a row does not say otherwise.

    Args:
        rows: one row per rated response or dialog, in the columns of the turn table or of the
            dialog table (system, agent, dialog, utterances, speakers). `ratings` in it holds the
            single judgements, {dimension: {annotator: rating}}, or {dimension: [ratings]} where
            annotators are not named. A rating left empty or marked "N/A" is excluded and counted.
        note: what a reader should know about the rows.
        excluded: how many further items were read but are not in `rows`, by reason.
        judgements: in place of `ratings`, each `Judgement`; `item` is the position in `rows`.
        scores: columns to add, on the same rows.

    Returns:
        `turns` or `dialogs`, `ratings` and `report`, as `Corpus` holds them.

    Raises:
        DataError: `scores` has another number of rows.

    >>> row = {"system": "A", "dialog": "d", "context": ["Hey"], "response": "Hi"}
    >>> parts = corpus_parts([row | {"ratings": {"Overall": [4, "N/A"]}}])
    >>> parts["turns"][["turn", "human_overall"]].values.tolist()
    [[1.0, 4.0]]
    >>> parts["report"]["reasons"].tolist()
    ['', '1 marked N/A by the annotator']
    """
    items = pd.DataFrame(rows)
    if scores is not None and len(scores) != len(items):
        problem = f"the table of scores has {len(scores)} rows, the corpus {len(items)}"
        raise DataError(problem, fix="fetch both files again, of the same version")
    if "ratings" in items:
        judgements = _judgements(items.pop("ratings").dropna())
    ratings, means, ratings_line = average_judgements(judgements, len(items))
    items = items.map(_strip)
    if "utterances" in items:
        level = unit = "dialogs"
        items = fill_agents(items, DIALOG_COLUMNS)
    else:
        level = "turns"
        unit = "responses"
        items = turn_table(items)
    report = [report_row(unit, len(items), excluded, note=note)]
    if len(ratings):
        report.append(ratings_line)
    items = pd.concat([items, means, scores], axis=1)
    return {level: items, "ratings": ratings, "report": pd.DataFrame(report)}


def _strip(cell: Any) -> Any:
    if isinstance(cell, list):
        return [text.strip() for text in cell]
    return cell.strip() if isinstance(cell, str) else cell


def _judgements(ratings: pd.Series) -> Iterator[Judgement]:
    for item, dimensions in ratings.items():
        for dimension, values in dimensions.items():
            if isinstance(values, list):
                values = {
                    f"annotator{n}": value for n, value in enumerate(values, start=1)
                }
            for annotator, value in values.items():
                yield Judgement(item, annotator, snake_case(dimension), rating=value)


def average_judgements(
    judgements: Iterable[Judgement] | pd.DataFrame | None,
    n_items: int,
    unit: str = "ratings",
) -> tuple[pd.DataFrame, pd.DataFrame, dict]:
    """Separate the ratings from what is excluded, and average them.

    Args:
        judgements: as such or as a table with these columns; None: there are none.
        n_items: how many items there are.
        unit: the name of the ratings in the report.

    Returns:
        The ratings; `human_<dimension>`, the mean over annotators of each item, NaN if unrated; and
        the line of the report.
    """
    table = pd.DataFrame(judgements, columns=Judgement._fields)
    text = table["rating"].fillna("").astype("str").str.strip().str.upper()
    not_applicable = text.str.startswith("N/A")
    empty = text == ""
    excluded = {
        "marked N/A by the annotator": sum(not_applicable),
        "left empty": sum(empty),
    }
    ratings = table[~(not_applicable | empty)].reset_index(drop=True)
    types = {
        "item": "int64",
        "annotator": "str",
        "dimension": "str",
        "rating": "float64",
    }
    ratings = ratings.astype(types)
    means = ratings.pivot_table(index="item", columns="dimension", values="rating")
    means = means.reindex(index=range(n_items), columns=table["dimension"].unique())
    means = (
        means.astype("float64")
        .add_prefix("human_")
        .rename_axis(index=None, columns=None)
    )
    return ratings, means, report_row(unit, len(ratings), excluded)


def report_row(
    unit: str, n_kept: int, excluded: Mapping | None = None, note: str = ""
) -> dict:
    """One line of an import report: how many were read, kept and excluded, and why.

    >>> report_row("dialogs", 2, {"with the control agent": 1})["read"]
    3
    """
    excluded = {reason: count for reason, count in (excluded or {}).items() if count}
    n_excluded = sum(excluded.values())
    return {
        "unit": unit,
        "read": n_kept + n_excluded,
        "kept": n_kept,
        "excluded": n_excluded,
        "reasons": "; ".join(f"{count} {reason}" for reason, count in excluded.items()),
        "notes": note,
    }


def attach_report(table: pd.DataFrame, *lines: dict) -> pd.DataFrame:
    """Return a table that has no ratings with its import report; see `import_report`."""
    table.attrs["report"] = list(lines)
    return table


@cache
def snake_case(name: object) -> str:
    """Write a name in lower case with underscores.

    >>> snake_case("Maintains Context"), snake_case("dialogId")
    ('maintains_context', 'dialog_id')
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name))
    return "_".join(re.findall(r"[^\W_]+", name.lower()))


def available() -> pd.DataFrame:
    """List the corpora: name, level, rows, systems, people, licence, source, on disk?

    Works without any data: `rows` and `systems` are those of the registry (missing where the corpus
    must be asked for); `people` is how many of the systems are people (missing where the corpus
    does not say who wrote its replies); "on disk?" says whether every file is there, unverified.
    Names after the samples are not loaded by `load` but by the function of that name
    (`goemotions("train")`).

    >>> available().set_index("name").loc["usr_topical", ["level", "licence"]].tolist()
    ['turn', 'none stated']
    """
    groups = registry()
    rows = []
    for group in ("corpora", "requested", "samples", "tables"):
        folder = "{}/" if group == "requested" else ""
        for name, entry in groups[group].items():
            info = groups["sets"].get(entry.get("set"), entry)
            files = [folder.format(name) + file for file in entry["files"]]
            rows.append(
                {
                    "name": name,
                    "level": entry.get("level") or entry.get("unit", "turn, dialog"),
                    "rows": entry.get("rows"),
                    "systems": entry.get("systems"),
                    "people": len(entry["people"]) if "people" in entry else None,
                    "licence": info["licence"],
                    "source": info["source"],
                    "on disk?": all(map(is_on_disk, files)),
                }
            )
    return pd.DataFrame(rows).astype(
        dict.fromkeys(["rows", "systems", "people"], "Int64")
    )


def corpus_overview(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """Count corpora at each level of the hierarchy; one row each, indexed by name.

    `ratings per item` is the median number in one dimension (missing where only
    means are published); `references` the mean number of references of a response. Words are
    whitespace tokens: `context words` of the utterance before the response (of the whole dialog at
    dialog level), `response words` of the response.

    >>> corpus_overview([load("sample_bots")])[["systems", "agents", "dialogs"]].values.tolist()
    [[3, 6, 30]]
    """
    rows = {corpus.name: _sizes(corpus) for corpus in corpora}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("corpus")


def _sizes(corpus: Corpus) -> dict:
    items = corpus.items
    ratings = corpus.ratings
    sizes = {
        "level": corpus.level,
        "systems": items["system"].nunique(),
        "agents": len(items[["system", "agent"]].drop_duplicates()),
        "dialogs": items["dialog"].nunique(),
        "items": len(items),
        "dimensions": ratings["dimension"].nunique(),
        "judgements": len(ratings),
        "ratings per item": ratings.groupby(["item", "dimension"]).size().median(),
    }
    if corpus.level == "dialog":
        utterances = items["utterances"]
        sizes["references"] = math.nan
        sizes["utterances"] = utterances.str.len().mean()
        sizes["context words"] = _mean_words(utterances.str.join(" "))
        sizes["response words"] = math.nan
    else:
        context = items["context"]
        sizes["references"] = items["reference"].str.len().mean()
        sizes["utterances"] = context.str.len().mean() + 1
        sizes["context words"] = _mean_words(context.str[-1].dropna().astype("str"))
        sizes["response words"] = _mean_words(items["response"])
    return sizes


def _mean_words(texts: pd.Series) -> float:
    return texts.str.split().str.len().mean()


def import_reports(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """The reports of several corpora in one table: what was read, kept and excluded."""
    tables = {corpus.name: corpus.report for corpus in corpora}
    return pd.concat(tables, names=["corpus"]).droplevel(1).reset_index()
