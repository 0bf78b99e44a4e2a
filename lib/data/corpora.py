"""The corpora by name: register a loader, load one, list them all, count what is in them.

The loaders lie in the files named after their corpora, and `data/corpora.json` knows the address,
checksum and licence of each. The samples have the layout of corpora that must be asked for, and
are read by the loaders of those.
"""

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from lib import ROOT
from lib.data.storage import DataError, data_folder, fetch_file, is_on_disk, registry, suggest_name
from lib.data.turn_table import KEY, turn_table, with_agents

INFO = ["title", "licence", "citation", "source"]
LOADERS: dict[str, Callable[..., dict]] = {}
DIALOG_COLUMNS = ["system", "agent", "dialog", "utterances", "speakers"]


def loader(name: str) -> Callable:
    """Register a function as the loader of a corpus, by its name in `data/corpora.json`.

    The function takes the paths of the files that stand there, in this order (for a corpus on
    request their folder), and returns what `rated` returns. With a "*" in the name it is the loader
    of all corpora whose name fits, and takes the name first.
    """

    def register(function: Callable[..., dict]) -> Callable[..., dict]:
        for one in fnmatch.filter(registry()["corpora"] | registry()["requested"], name):
            LOADERS[one] = partial(function, one) if "*" in name else function
        return function

    return register


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
    info: Mapping[str, Any]
    turns: pd.DataFrame | None = None
    dialogs: pd.DataFrame | None = None

    def __repr__(self) -> str:
        return f"<Corpus {self.name}: {len(self.items)} rated {self.level}s>"

    @property
    def items(self) -> pd.DataFrame:
        """The table that carries the ratings: `turns` or `dialogs`, by `level`."""
        return self.turns if self.level == "turn" else self.dialogs

    def table(self, level: str, *columns: str, single_ratings: bool = False) -> pd.DataFrame:
        """Return `turns` or `dialogs`, sure to hold what the caller needs.

        Args:
            level: "turn" or "dialog".
            columns: columns that must hold a value, or a list that is not empty, in some row.
            single_ratings: whether the single judgements must be there, not only their means.

        Raises:
            DataError: with what the corpus holds instead.

        >>> len(load("sample_bots").table("turn", "human_overall", "reference"))
        151
        >>> load("sample_bots").table("turn", "human_funny")
        Traceback (most recent call last):
        ...
        lib.data.storage.DataError: sample_bots, column 'human_funny': ...
        """
        table, other = self.turns if level == "turn" else self.dialogs, "take another corpus"
        if table is None:
            raise DataError(f"has no table of single {level}s", file=self.name, fix=other)
        for column in columns:
            cells = table.get(column, pd.Series(dtype=object)).dropna()
            if cells.astype("str").isin(["", "[]"]).all():
                fix = f"{other}, or one of {', '.join(table.filter(like='human_'))}"
                problem = "this corpus has no such column, or nothing in it"
                raise DataError(problem, file=self.name, column=column, fix=fix)
        if single_ratings and self.ratings.empty:
            raise DataError("only mean ratings are published", file=self.name, fix=other)
        return table


def load(name: str, **options: Any) -> Corpus:
    """Load a corpus by name; public files are downloaded if they are not there.

    Args:
        name: one of `available()`.
        options: `folder`, where the files of `tbd_q1` and `comperdial` are.

    Raises:
        DataError: for an unknown name, and for a file that is missing, damaged or, where it is the
            user's own, not as described.

    >>> corpus = load("sample_bots")
    >>> corpus
    <Corpus sample_bots: 151 rated turns>
    >>> corpus.turns[["system", "turn", "human_overall"]].head(1).round(2).values.tolist()
    [['lantern', 1, 4.33]]
    """
    known, level = registry(), "turn"
    if about := known["corpora"].get(name):
        parts, level = LOADERS[name](*map(fetch_file, about["files"]), **options), about["level"]
        about = known["sets"][about["set"]]
    elif about := (known["requested"] | known["samples"]).get(name):
        parts = _requested(name, about, **options)
    elif name in known["tables"]:
        raise DataError(f"{name!r} has no ratings", fix=f"call data.{name}() for its table")
    else:
        hint = suggest_name(name, [*LOADERS, *known["samples"]])
        raise DataError(f"there is no corpus {name!r}", fix=hint or "see data.available()")
    info = {"synthetic": name in known["samples"]} | {key: about[key] for key in INFO}
    return Corpus(name=name, level=level, info=info, **parts)


def ten_replies(profile: str) -> pd.DataFrame:
    """The ten rated replies that every notebook meets again: a turn table, indexed by reply 1-10.

    `data/sample/ten_replies.csv` names them. In the public profile they are from UniEval's file of
    the USR replies (MIT; Zhong et al. 2022), which may be quoted; in the sample from our own.

    >>> ten_replies("sample")["response"][10]
    'The price of wheat is stable.'
    """
    chosen = pd.read_csv(ROOT / "data/sample/ten_replies.csv").query("profile == @profile")
    turns = load(chosen["corpus"].iloc[0]).turns
    return chosen[["reply", *KEY]].merge(turns, "left", on=KEY, validate="1:1").set_index("reply")


def _requested(name: str, about: dict, folder: str | Path | None = None) -> dict:
    folder = Path(folder or (ROOT / about["source"] if "layout" in about else data_folder() / name))
    for file in about["files"]:
        if not (folder / file).is_file():
            fix = (f"ask the authors of {about['citation']}; put the files in {folder} in the "
                   "layout of data/README.md, or pass folder=")  # fmt: skip
            raise DataError("not there: this corpus is not public", file=folder / file, fix=fix)
    return LOADERS[about.get("layout", name)](folder)


def corpus_parts(
    rows: Sequence[Mapping[str, Any]], *, note="", excluded=None, ratings=None, scores=None
) -> dict[str, Any]:
    """Put the parts of a corpus together: its table with mean ratings, its ratings, its account.

    Texts lose white space at their ends; `agent` is the system and `turn` the number of earlier
    utterances where a row does not say otherwise.

    Args:
        rows: one mapping per rated response or dialog, in the columns of the turn table or of the
            dialog table (system, agent, dialog, utterances, speakers). `ratings` in it holds the
            single judgements, {dimension: {annotator: rating}}, or {dimension: [ratings]} where
            annotators are not named. A rating left empty or marked "N/A" is excluded and counted.
        note: what a reader should know about the rows that were kept.
        excluded: how many further items were read but are not in `rows`, by reason.
        ratings: judgements (position in `rows`, annotator, dimension, rating), where the order of
            the file is not that of the rows.
        scores: columns to add, on the same rows.

    Returns:
        `turns` or `dialogs`, `ratings` and `report`, as `Corpus` holds them.

    >>> row = {"system": "A", "dialog": "d", "context": ["Hey"], "response": "Hi"}
    >>> parts = corpus_parts([row | {"ratings": {"Overall": [4, "N/A"]}}])
    >>> parts["turns"][["turn", "human_overall"]].values.tolist()
    [[1.0, 4.0]]
    >>> parts["report"]["reasons"].tolist()
    ['', '1 marked N/A by the annotator']
    """
    single, means, line = average_judgements(
        _judgements(rows) if ratings is None else ratings, len(rows)
    )
    table = pd.DataFrame(rows).drop(columns="ratings", errors="ignore").map(_stripped)
    kind, unit = ("dialogs", "dialogs") if "utterances" in table else ("turns", "responses")
    table = with_agents(table, DIALOG_COLUMNS) if kind == "dialogs" else turn_table(table)
    kept = report_row(unit, len(rows), excluded, note)
    report = pd.DataFrame([kept, line] if len(single) else [kept])
    table = pd.concat([table, means, scores], axis=1)
    return {kind: table, "ratings": single, "report": report}


def _stripped(cell: Any) -> Any:
    if isinstance(cell, list):
        return [text.strip() for text in cell]
    return cell.strip() if isinstance(cell, str) else cell


def _judgements(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple]:
    for item, row in enumerate(rows):
        for name, values in row.get("ratings", {}).items():
            if isinstance(values, list):
                values = {f"annotator{n}": value for n, value in enumerate(values, start=1)}
            for annotator, rating in values.items():
                yield item, annotator, snake_case(name), rating


def average_judgements(
    judgements: Iterable | pd.DataFrame, items: int, unit: str = "ratings"
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Split judgements into ratings and what was excluded, and average the ratings.

    Args:
        judgements: item, annotator, dimension, rating, in this order or as columns.
        items: how many items there are.
        unit: what the account calls them.

    Returns:
        The ratings; `human_<dimension>`, the mean over annotators of each item, NaN if unrated; and
        the line of the account.
    """
    table = pd.DataFrame(judgements, columns=["item", "annotator", "dimension", "rating"])
    text = table["rating"].fillna("").astype("str").str.strip().str.upper()
    marked, empty = text.str.startswith("N/A"), text == ""
    excluded = {"marked N/A by the annotator": sum(marked), "left empty": sum(empty)}
    types = {"item": "int64", "annotator": "str", "dimension": "str", "rating": "float64"}
    kept = table[~(marked | empty)].reset_index(drop=True).astype(types)
    wide = kept.groupby(["item", "dimension"], sort=False)["rating"].mean().unstack()
    means = wide.reindex(index=range(items), columns=table["dimension"].unique()).astype("float64")
    means = means.add_prefix("human_").rename_axis(index=None, columns=None)
    return kept, means, report_row(unit, len(kept), excluded)


def report_row(
    unit: str, kept: int, excluded: Mapping[str, int] | None = None, note: str = ""
) -> dict[str, Any]:
    """Return one line of an account: so many were read, kept and excluded, and why.

    >>> report_row("dialogs", 2, {"with the control agent": 1})["read"]
    3
    """
    excluded = {reason: count for reason, count in (excluded or {}).items() if count}
    lost = sum(excluded.values())
    reasons = "; ".join(f"{count} {reason}" for reason, count in excluded.items())
    return {"unit": unit, "read": kept + lost, "kept": kept, "excluded": lost,
            "reasons": reasons, "notes": note}  # fmt: skip


def attach_report(table: pd.DataFrame, *lines: dict[str, Any]) -> pd.DataFrame:
    """Return a table that has no ratings with its account; see `read_report`."""
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
    """List the corpora: name, level, rows, systems, licence, source, on disk?

    Works without any data: `rows` and `systems` are those of the registry (missing where the corpus
    must be asked for); "on disk?" says whether every file is there, unverified. Names below the
    samples are not loaded by `load` but by the function of that name (`goemotions("train")`).

    >>> available().set_index("name").loc["usr_topical", ["level", "licence"]].tolist()
    ['turn', 'none stated']
    """
    known, rows = registry(), []
    entries = known["corpora"] | known["requested"] | known["samples"] | known["tables"]
    for name, entry in entries.items():
        about = known["sets"].get(entry.get("set"), entry)
        folder = f"{name}/" if name in known["requested"] else ""
        there = all(is_on_disk(folder + file) for file in entry["files"])
        level = entry.get("level") or entry.get("unit", "turn, dialog")
        rows.append([name, level, entry.get("rows"), entry.get("systems"), about["licence"],
                     about["source"], there])  # fmt: skip
    columns = ["name", "level", "rows", "systems", "licence", "source", "on disk?"]
    return pd.DataFrame(rows, columns=columns).astype({"rows": "Int64", "systems": "Int64"})


def corpus_overview(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """Count corpora at each level of the hierarchy; one row each, indexed by name.

    `judges` is the median number of judgements of an item in one dimension (missing where only
    means are published); `references` the mean number of references of a response. Words are
    whitespace tokens: `context words` of the utterance before the response (of the whole dialog at
    dialog level), `response words` of the response.

    >>> corpus_overview([load("sample_bots")])[["systems", "agents", "dialogs", "items"]].values.tolist()
    [[3, 6, 30, 151]]
    """
    rows = {corpus.name: _sizes(corpus) for corpus in corpora}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("corpus")


def _sizes(corpus: Corpus) -> dict[str, float | str]:
    items, ratings, turn = corpus.items, corpus.ratings, corpus.level == "turn"
    said = items["context" if turn else "utterances"]
    last = said.str[-1].dropna().astype("str") if turn else said.str.join(" ")
    return {
        "level": corpus.level,
        "systems": items["system"].nunique(),
        "agents": len(items[["system", "agent"]].drop_duplicates()),
        "dialogs": items["dialog"].nunique(),
        "items": len(items),
        "dimensions": ratings["dimension"].nunique(),
        "judgements": len(ratings),
        "judges": ratings.groupby(["item", "dimension"]).size().median(),
        "references": items["reference"].str.len().mean() if turn else math.nan,
        "utterances": said.str.len().mean() + turn,
        "context words": _words(last),
        "response words": _words(items["response"]) if turn else math.nan,
    }


def _words(texts: pd.Series) -> float:
    return texts.str.split().str.len().mean()


def import_reports(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """List the accounts of corpora below each other: what was read, kept and excluded."""
    tables = {corpus.name: corpus.report for corpus in corpora}
    return pd.concat(tables, names=["corpus"]).reset_index("corpus").reset_index(drop=True)
