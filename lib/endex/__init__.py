"""EnDex: engagingness of a reply, learned from how people react on Reddit (Xu et al. 2022)."""

from lib.endex.baselines import length, question, random, specificity
from lib.endex.emotions import EMBEDDED, LABELS, NEGATIVE, POSITIVE, positive_emotion, score_replies
from lib.endex.emotions.embedded import record
from lib.endex.engagement import (
    DIMENSIONS,
    FOOTNOTE_ALPHAS,
    FOOTNOTE_WEIGHTS,
    DuckDB,
    NoPostsError,
    Red,
    Spark,
    Step,
    build,
    fingerprint,
    steps,
    text,
)
from lib.endex.engagement import Settings as RedSettings
from lib.endex.pairs import KINDS, corrupt, one_dimension, split, with_negatives
from lib.endex.reddit import (
    BOTS,
    COLUMNS,
    DumpError,
    comments,
    content_words,
    frame_to_parquet,
    parquet_files,
    score_texts,
    stop_words,
    to_parquet,
)
from lib.endex.scoring import endex_scores, system_turns
from lib.endex.train import Options, TrainedModel, fine_tune

__all__ = [
    "BOTS",
    "COLUMNS",
    "DIMENSIONS",
    "DuckDB",
    "DumpError",
    "EMBEDDED",
    "FOOTNOTE_ALPHAS",
    "FOOTNOTE_WEIGHTS",
    "KINDS",
    "LABELS",
    "NEGATIVE",
    "NoPostsError",
    "Options",
    "POSITIVE",
    "Red",
    "RedSettings",
    "Spark",
    "Step",
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
    "score_texts",
    "specificity",
    "split",
    "steps",
    "stop_words",
    "system_turns",
    "text",
    "to_parquet",
    "with_negatives",
]
