"""Every automatic metric by name, and the scores that are kept."""

from lib.metrics.asked_models import (
    AskedModel,
    compute_asked,
    fetch_models,
    models_table,
    parse_models,
    provide_models,
)
from lib.metrics.baselines import length, question, random, specificity, tokenize_words
from lib.metrics.classifiers import (
    bleurt,
    dialogrpt,
    dialogrpt_ensemble,
    toxicity,
    unieval,
)
from lib.metrics.embedding import bertscore, bertscore_pairs, sentence_vectors
from lib.metrics.likelihood import (
    bartscore,
    fed,
    follow_ups,
    log_likelihood,
    prism_style,
)
from lib.metrics.mauve import mauve
from lib.metrics.overlap import (
    OVERLAP,
    normalize_answer,
    overlap_scores,
    word_f1_normalized,
)
from lib.metrics.registry import METRICS, compute, get_metric, metric
from lib.metrics.usl_h import (
    make_invalid,
    masked_surprisal,
    train_next_utterance,
    train_valid_utterance,
    usl_h,
)
