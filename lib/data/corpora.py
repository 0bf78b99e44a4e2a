"""The corpora by name: load one, list them all, count what is in them.

The loaders lie in the files named after their corpora, and `data/corpora.json` knows the address,
checksum and licence of each. The samples have the layout of corpora that must be asked for, and
are read by the loaders of those.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from lib import ROOT
from lib.data import rated_dialogs, rated_responses  # noqa: F401  they register
from lib.data.corpus import LOADERS, Corpus
from lib.data.downloads import data_folder, on_disk, path, read_json, registry
from lib.data.errors import DataError, nearest
from lib.data.reddit_and_goemotions import (  # noqa: F401  the tables that have no ratings
    dailydialog_pairs,
    goemotions,
    pushshift_sample,
    reddit_college,
    rumoureval,
    wassa2022,
)
from lib.data.tbd_and_comperdial import REQUESTED
from lib.data.turn_table import validate


def load(name: str, **options: Any) -> Corpus:
    """Load a corpus by name; public files are downloaded if they are not there.

    Args:
        name: one of `available()`.
        options: `quality_control=True` for `ji2022`; `folder` and `columns={file: {ours: theirs}}`
            for `tbd_q1` and `comperdial`, and for `tbd_q1` the `scale` of its ratings.

    Raises:
        DataError: for an unknown name, and for a file that is missing, damaged or, where it is the
            user's own, not as described.

    >>> corpus = load("sample_bots")
    >>> corpus
    <Corpus sample_bots, synthetic: ... rated turns, 3 systems, ... judgements>
    >>> corpus.turns[["system", "turn", "human_overall"]].head(1).round(2).values.tolist()
    [['lantern', 1, 4.33]]
    """
    known = registry()
    if name in LOADERS:
        entry = known["corpora"][name]
        parts = LOADERS[name](*map(path, entry["files"]), **options)
        return _corpus(name, parts, known["sets"][entry["set"]], entry["level"])
    if name in known["samples"]:
        folder = ROOT / known["samples"][name]["source"]
        about = {"citation": "none", **read_json(folder / "info.json"), "synthetic": True}
        parts = _requested(known["samples"][name]["layout"], folder, **options)
        return _corpus(name, parts, about)
    if name in REQUESTED:
        return _corpus(name, _requested(name, **options), known["requested"][name])
    if name in known["tables"]:
        raise DataError(f"{name!r} has no ratings", fix=f"call data.{name}() for its table")
    hint = nearest(name, [*LOADERS, *known["samples"], *REQUESTED])
    raise DataError(f"there is no corpus {name!r}", fix=hint or "see data.available()")


def _requested(layout: str, folder: str | Path | None = None, **options: Any) -> dict:
    folder = Path(folder or data_folder() / layout)
    about = registry()["requested"][layout]
    for file in about["files"]:
        if not (folder / file).is_file():
            fix = (f"ask the authors of {about['citation']}; put the files in {folder} in the "
                   "layout of data/README.md, or pass folder=")  # fmt: skip
            raise DataError("not there: this corpus is not public", file=folder / file, fix=fix)
    parts = REQUESTED[layout](folder, **options)
    validate(parts["turns"], file=folder)
    return parts


def _corpus(name: str, parts: dict, about: dict, level: str = "turn") -> Corpus:
    info = {"synthetic": False} | {key: told for key, told in about.items() if key != "files"}
    return Corpus(name, level, info=info, **{"turns": None, "dialogs": None} | parts)


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
        folder = f"{name}/" if name in REQUESTED else ""
        there = all(on_disk(folder + file) for file in entry["files"])
        level = entry.get("level") or entry.get("unit", "turn, dialog")
        rows.append([name, level, entry.get("rows"), entry.get("systems"), about["licence"],
                     about["source"], there])  # fmt: skip
    columns = ["name", "level", "rows", "systems", "licence", "source", "on disk?"]
    return pd.DataFrame(rows, columns=columns).astype({"rows": "Int64", "systems": "Int64"})


def overview(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """Count corpora at each level of the hierarchy; one row each, indexed by name.

    `judges` is the median number of judgements of an item in one dimension (missing where only
    means are published); `references` the mean number of references of a response. Words are
    whitespace tokens: `context words` of the utterance before the response (of the whole dialog at
    dialog level), `response words` of the response.

    >>> overview([load("sample_bots")])[["systems", "agents", "dialogs", "items"]].values.tolist()
    [[3, 6, 30, 151]]
    """
    rows = {corpus.name: _sizes(corpus) for corpus in corpora}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("corpus")


def _sizes(corpus: Corpus) -> dict[str, float | str]:
    items, ratings = corpus.items, corpus.ratings
    row = {
        "level": corpus.level,
        "systems": items["system"].nunique(),
        "agents": len(items[["system", "agent"]].drop_duplicates()),
        "dialogs": items["dialog"].nunique(),
        "items": len(items),
        "dimensions": ratings["dimension"].nunique(),
        "judgements": len(ratings),
        "judges": ratings.groupby(["item", "dimension"]).size().median(),
    }
    if corpus.level == "dialog":
        said = items["utterances"]
        words = _words(said.str.join(" "))
        return row | {"utterances": said.str.len().mean(), "context words": words}
    return row | {
        "references": items["reference"].str.len().mean(),
        "utterances": items["context"].str.len().mean() + 1,
        "context words": _words(items["context"].str[-1].dropna().astype("str")),
        "response words": _words(items["response"]),
    }


def _words(texts: pd.Series) -> float:
    return texts.str.split().str.len().mean()


def accounts(corpora: Iterable[Corpus]) -> pd.DataFrame:
    """List the accounts of corpora below each other: what was read, kept and excluded."""
    tables = [corpus.report.assign(corpus=corpus.name) for corpus in corpora]
    table = pd.concat(tables, ignore_index=True)
    return table[["corpus", *table.columns.drop("corpus")]]
