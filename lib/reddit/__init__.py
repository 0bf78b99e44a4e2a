"""Reddit comments: from dumps, threads or API records to Parquet with the features EnDex needs."""

from lib.reddit.dumps import DumpError
from lib.reddit.features import BOTS, COLUMNS
from lib.reddit.ingest import to_parquet
from lib.reddit.threads import threads_to_parquet
from lib.reddit.tokens import content_words, stop_words

__all__ = [
    "BOTS",
    "COLUMNS",
    "DumpError",
    "content_words",
    "stop_words",
    "threads_to_parquet",
    "to_parquet",
]
