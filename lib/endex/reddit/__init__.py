"""Reddit comments: from dumps or tables to Parquet, with the features EnDex needs."""

from lib.endex.reddit.dumps import DumpError
from lib.endex.reddit.features import BOTS, COLUMNS
from lib.endex.reddit.frames import frame_to_parquet
from lib.endex.reddit.ingest import to_parquet
from lib.endex.reddit.scores import parquet_files, score_texts
from lib.endex.reddit.sources import comments
from lib.endex.reddit.tokens import content_words, stop_words

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
