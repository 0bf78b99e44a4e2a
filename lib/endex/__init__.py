"""EnDex: engagingness of a reply, learned from how people react on Reddit (Xu et al. 2022)."""

from lib.endex.baselines import length, question, random, specificity
from lib.endex.dumps import DumpError
from lib.endex.emotions import positive_emotion, record, score_replies, score_toxicity
from lib.endex.pairs import KINDS, corrupt, one_dimension, split, with_negatives
from lib.endex.red import (
    DIMENSIONS,
    FOOTNOTE_ALPHAS,
    DuckDB,
    NoPostsError,
    RedSettings,
    Spark,
    build,
    fingerprint,
    steps,
)
from lib.endex.reddit import (
    BOTS,
    COLUMNS,
    comments,
    frame_to_parquet,
    parquet_files,
    to_parquet,
)
from lib.endex.scoring import endex_scores, system_turns
from lib.endex.tokens import content_words, stop_words
from lib.endex.train import Options, TrainedModel, fine_tune

__all__ = [
    "BOTS",
    "COLUMNS",
    "DIMENSIONS",
    "DuckDB",
    "DumpError",
    "FOOTNOTE_ALPHAS",
    "KINDS",
    "NoPostsError",
    "Options",
    "RedSettings",
    "Spark",
    "TrainedModel",
    "build",
    "comments",
    "content_words",
    "corrupt",
    "endex_scores",
    "fine_tune",
    "fingerprint",
    "frame_to_parquet",
    "length",
    "one_dimension",
    "parquet_files",
    "positive_emotion",
    "question",
    "random",
    "record",
    "score_replies",
    "score_toxicity",
    "specificity",
    "split",
    "steps",
    "stop_words",
    "system_turns",
    "to_parquet",
    "with_negatives",
]
