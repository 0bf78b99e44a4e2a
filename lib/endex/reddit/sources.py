"""Where a notebook's comments come from: the shipped sample, a public corpus, or your own dumps."""

import os
from pathlib import Path

import pandas as pd

from lib import ROOT
from lib.endex.reddit.frames import frame_to_parquet
from lib.endex.reddit.ingest import to_parquet

CACHE = ROOT / "data" / "cache" / "reddit"


def comments(source: str | Path) -> tuple[Path, pd.DataFrame]:
    """Parquet of comments with features, made on first use and kept in data/cache.

    Args:
        source: "sample" (the shipped dumps, synthetic), "reddit_college" (38,303 real comments,
            downloaded on first use), or a folder of comment dumps of your own.

    Returns:
        The folder of Parquet, and the account of what was read (see `to_parquet`).

    Raises:
        FileNotFoundError: the folder holds no dump.
    """
    if str(source) == "reddit_college":
        from lib.data import corpora

        folder = CACHE / "reddit_college"
        return folder, frame_to_parquet(corpora.reddit_college(), folder)
    place = ROOT / "data" / "sample" / "reddit" if str(source) == "sample" else Path(source)
    dumps = sorted(path for path in place.glob("*") if path.suffix in (".zst", ".ndjson", ".jsonl"))
    if not dumps:
        raise FileNotFoundError(
            f"no comment dump (*.zst, *.ndjson) in {os.fspath(source)}: put RC_YYYY-MM.zst there, "
            "or name the sample or reddit_college"
        )
    folder = CACHE / place.name if str(source) != "sample" else CACHE / "sample"
    return folder, to_parquet(dumps, folder)
