"""Scores of comment texts by a model, made once, in Parquet beside the comments."""

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from tqdm.auto import tqdm

PART = 50_000  # texts in a file: what an interruption can cost at most


def parquet_files(where: str | Path | Iterable[str | Path]) -> list[Path]:
    """The Parquet files of a file, a folder, a folder of folders, or several of these."""
    places = [where] if isinstance(where, str | Path) else list(where)
    files = []
    for place in map(Path, places):
        found = [place] if place.is_file() else sorted(place.rglob("*.parquet"))
        files += [f for f in found if not any(p.suffix == ".partial" for p in f.parents)]
        if not found:
            raise FileNotFoundError(
                f"no Parquet file in {place}: run lib.endex.reddit.to_parquet first"
            )
    return files


def score_texts(
    comments: str | Path,
    folder: str | Path,
    column: str,
    score: Callable[[Sequence[str]], np.ndarray],
    model: str,
    which: str,
) -> Path:
    """Write a score per comment as Parquet with id and `column`; finished parts are kept.

    Args:
        comments: folder written by `lib.endex.reddit`.
        folder: where the parts go; its record names the model and the comment files, and another
            model or other comments start anew.
        column: name of the score.
        score: takes a list of texts, returns one number each.
        model: name of the model, for the record.
        which: a query for id and body over the relation `comments`, with a fixed order.
    """
    files, folder = parquet_files(comments), Path(folder)
    sizes = {f"{file.parent.name}/{file.name}": file.stat().st_size for file in files}
    _keep_or_restart(folder, {"model": str(model), "column": column, "comments": sizes})
    with duckdb.connect() as connection, tqdm(unit=" texts", desc=column, leave=False) as bar:
        connection.register("comments", connection.read_parquet([str(file) for file in files]))
        rows, number = connection.execute(which), 0
        while (part := rows.fetchmany(PART)) or number == 0:
            target = folder / f"part-{number:05d}.parquet"
            if not target.is_file():
                ids, texts = zip(*part, strict=True) if part else ((), ())
                frame = pd.DataFrame(
                    {"id": pd.Series(ids, dtype="str"), column: np.asarray(score(texts), float)}
                )
                frame.to_parquet(target.with_suffix(".tmp"))
                target.with_suffix(".tmp").rename(target)
            number += 1
            bar.update(len(part))
    return folder


def _keep_or_restart(folder: Path, record: dict) -> None:
    """Empty a folder whose scores are of another model or of other comments."""
    at = folder / "_record.json"
    if at.is_file() and json.loads(at.read_text(encoding="utf-8")) == record:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    at.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
