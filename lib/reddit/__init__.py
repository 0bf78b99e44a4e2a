"""Reddit comments: from dumps or tables to Parquet, with the features EnDex needs."""

from lib.reddit.dumps import DumpError
from lib.reddit.features import BOTS, COLUMNS
from lib.reddit.frames import frame_to_parquet
from lib.reddit.ingest import to_parquet
from lib.reddit.scores import parquet_files, score_texts
from lib.reddit.sources import comments
from lib.reddit.tokens import content_words, stop_words

__all__ = [
    "BOTS",
    "COLUMNS",
    "DumpError",
    "comments",
    "content_words",
    "frame_to_parquet",
    "parquet_files",
    "score_texts",
    "stop_words",
    "to_parquet",
]
