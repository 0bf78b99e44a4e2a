"""EnDex: engagingness of a reply, learned from how people react on Reddit (Xu et al. 2022)."""

from lib.endex.comment_scores import score_replies, score_toxicity
from lib.endex.emotions import positive_emotion, record
from lib.endex.pairs import negative_sample, split, with_negatives
from lib.endex.red import (
    FOOTNOTE_ALPHAS,
    DuckDB,
    RedSettings,
    Spark,
    build_red,
    sql_steps,
)
from lib.endex.reddit import comments, to_parquet
from lib.endex.runs import TrainedModel, TrainingOptions
from lib.endex.scoring import endex_scores, system_turns
from lib.endex.training import fine_tune
