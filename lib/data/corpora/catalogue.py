"""The corpora by name: which loader reads them, from where, and what is on disk."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from lib.data.corpora import (
    comperdial,
    downloads,
    dstc7,
    dstc10,
    fed,
    grade,
    ji2022,
    labelled_texts,
    llm_judges,
    predictive_engagement,
    reddit_comments,
    requested,
    usr,
)
from lib.data.corpora.registry import DATA, registry, set_of
from lib.data.corpora.tables import Corpus
from lib.data.dialogues.errors import DataError, nearest
from lib.data.dialogues.files import read_json
from lib.data.dialogues.table import check_key, validate

PUBLIC: dict[str, Callable] = {
    "usr_topical": usr.topical,
    "usr_persona": usr.persona,
    "unieval_topical": usr.unieval,
    "fed_turn": fed.turn,
    "fed_dialog": fed.dialog,
    "fed_engaging": fed.engaging,
    **{name: partial(grade.load, name=name) for name in grade.SETS},
    "better": predictive_engagement.better,
    "predeng600": predictive_engagement.predeng600,
    "convai50": predictive_engagement.convai50,
    **{name: partial(dstc10.load, name=name) for name in dstc10.SETS},
    "dstc7": dstc7.load,
    "ji2022": ji2022.load,
    **{name: partial(llm_judges.turn_level, name=name) for name in llm_judges.TURN_SETS},
    "gpt4_fed": llm_judges.gpt4_fed,
    "gpt4_reliable": llm_judges.gpt4_reliable,
    "gpt4_see": llm_judges.gpt4_see,
}
# name: (loader, folder below the data folder, files that must be there, level, info)
REQUESTED: dict[str, dict] = {
    "tbd_q1": {
        "load": requested.three_bots,
        "files": ["turns.csv", "turn_ratings.csv", "dialog_ratings.csv"],
        "title": "TBD-Q1-2023: three bots, rated turns and dialogs",
        "citation": "Giorgi et al. (2023), Psychological Metrics for Dialog System Evaluation",
        "source": "on request from the authors",
        "licence": "as agreed with the authors",
    },
    "comperdial": {
        "load": comperdial.load,
        "files": ["ComperDial_data.json", "turn_annotations.csv", "dialogue_annotations.csv"],
        "title": "ComperDial: commonsense persona-grounded dialogues, 99 systems",
        "citation": "Wakaki et al. (2024), ComperDial",
        "source": "on request from the authors",
        "licence": "as agreed with the authors",
    },
}
SAMPLES: dict[str, tuple[str, str]] = {
    "sample_bots": ("tbd_q1", "sample/bots"),
    "sample_personas": ("comperdial", "sample/personas/comperdial"),
}


def load(name: str, **options) -> Corpus:
    """Load a corpus by name; `available()` lists the names.

    Options: `quality_control=True` for `ji2022`; `columns={file: {ours: theirs}}`, `folder` and
    `scale` for `tbd_q1`, the first two for `comperdial`. Public files are downloaded if they are
    not there. Raises `DataError` for an unknown name, and for a file that is missing,
    damaged or not as described.

    >>> corpus = load("sample_bots")
    >>> corpus
    <Corpus sample_bots, synthetic: ... rated turns, 3 systems, ... judgements>
    >>> corpus.turns[["system", "turn", "human_overall"]].head(1).round(2).values.tolist()
    [['lantern', 1, 4.33]]
    """
    if name in PUBLIC:
        return _corpus(name, PUBLIC[name](downloads.path, **options), _public_info(name))
    if name in SAMPLES:
        kind, folder = SAMPLES[name]
        parts = REQUESTED[kind]["load"](DATA / folder, **options)
        return _corpus(name, parts, _sample_info(folder))
    if name in REQUESTED:
        return _load_requested(name, **options)
    if name in registry()["tables"]:
        raise DataError(f"{name!r} has no ratings", fix=f"call corpora.{name}() for its table")
    hint = nearest(name, [*PUBLIC, *SAMPLES, *REQUESTED])
    raise DataError(f"there is no corpus {name!r}", fix=hint or "see corpora.available()")


def _corpus(name: str, parts: dict, info: dict) -> Corpus:
    """Check the tables of a loader once more and freeze them."""
    level = registry()["corpora"].get(name, {}).get("level", "turn")
    if "turns" in parts:
        validate(parts["turns"], file=name)
    if "dialogs" in parts:
        check_key(parts["dialogs"], ["system", "agent", "dialog"], name)
    return Corpus(
        name=name,
        level=level,
        turns=parts.get("turns"),
        dialogs=parts.get("dialogs"),
        ratings=parts["ratings"],
        dialog_ratings=parts.get("dialog_ratings"),
        report=parts["report"],
        info=info,
    )


def _public_info(name: str) -> dict:
    about = set_of(name)
    fields = ("title", "licence", "source", "citation")
    return {field: about[field] for field in fields} | {"synthetic": False}


def _sample_info(folder: str) -> dict:
    about = read_json(DATA / folder / "info.json")
    return {"citation": "none", **about, "synthetic": True}


def _load_requested(name: str, folder: Path | str | None = None, **options) -> Corpus:
    about = REQUESTED[name]
    home = Path(folder) if folder else downloads.data_folder() / name
    for file in about["files"]:
        if not (home / file).is_file():
            raise DataError(
                "the file is not there; this corpus is not public",
                file=home / file,
                fix=f"ask the authors of {about['citation']}; put the files in {home} in the "
                "layout of data/README.md, or pass folder=",
            )
    info = {key: about[key] for key in ("title", "licence", "source", "citation")}
    return _corpus(name, about["load"](home, **options), info | {"synthetic": False})


def available() -> pd.DataFrame:
    """One row per corpus: name, level, rows, systems, licence, source, on disk?

    Works without any data: `rows` and `systems` are those of the registry (missing where the corpus
    must be asked for); "on disk?" says whether every file is there, unverified. Names below the
    samples are not loaded by `load` but by the function of that name (`goemotions("train")`).

    >>> available().set_index("name").loc["usr_topical", ["level", "licence"]].tolist()
    ['turn', 'none stated']
    """
    known, rows = registry(), []
    for name, entry in known["corpora"].items():
        rows.append(_public_row(name, entry, entry["level"]))
    for name, about in REQUESTED.items():
        home = downloads.data_folder() / name
        there = all((home / file).is_file() for file in about["files"])
        rows.append([name, "turn, dialog", None, None, about["licence"], about["source"], there])
    for name, (_, folder) in SAMPLES.items():
        turns = load(name).turns
        systems = turns["system"].nunique()
        licence = "MIT (synthetic)"
        rows.append([name, "turn, dialog", len(turns), systems, licence, f"data/{folder}", True])
    for name, entry in known["tables"].items():
        rows.append(_public_row(name, entry, entry["unit"]))
    columns = ["name", "level", "rows", "systems", "licence", "source", "on disk?"]
    return pd.DataFrame(rows, columns=columns).astype({"rows": "Int64", "systems": "Int64"})


def _public_row(name: str, entry: dict, level: str) -> list:
    about = set_of(name)
    there = all(downloads.find(key) for key in entry["files"])
    return [
        name,
        level,
        entry["rows"],
        entry.get("systems"),
        about["licence"],
        about["source"],
        there,
    ]


def goemotions(split: str = "train") -> pd.DataFrame:
    """GoEmotions comments with their labels; see `labelled_texts.goemotions`."""
    return labelled_texts.goemotions(downloads.path, split)


def dailydialog_pairs() -> pd.DataFrame:
    """Human pairs of DailyDialog; see `labelled_texts.dailydialog_pairs`."""
    return labelled_texts.dailydialog_pairs(downloads.path)


def reddit_college() -> pd.DataFrame:
    """38,303 threaded comments; see `reddit_comments.college`."""
    return reddit_comments.college(downloads.path)


def rumoureval() -> pd.DataFrame:
    """665 comments with `edited` and `controversiality`; see `reddit_comments.rumoureval`."""
    return reddit_comments.rumoureval(downloads.path)


def pushshift_sample() -> pd.DataFrame:
    """27 comments of six dump generations; see `reddit_comments.pushshift`."""
    return reddit_comments.pushshift(downloads.path)
