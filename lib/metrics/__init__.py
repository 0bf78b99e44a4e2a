"""Every automatic metric by name, and the scores that are kept."""

from lib.metrics.classifiers import bleurt, dialogrpt, dialogrpt_ensemble, toxicity, unieval
from lib.metrics.embedding import (
    bertscore,
    bertscore_baseline,
    bertscore_pairs,
    context_similarity,
    reference_similarity,
    sentence_vectors,
)
from lib.metrics.kept_scores import compute, signature
from lib.metrics.likelihood import (
    bartscore,
    fed,
    fed_score,
    follow_ups,
    log_probability,
    mauve,
    prism_style,
)
from lib.metrics.overlap import (
    DIALEVALMETRICS,
    OVERLAP,
    bleu4_coco,
    bleu4_nltk_normalized,
    bleu4_sacrebleu,
    meteor_15,
    meteor_15_normalized,
    normalize_answer,
    overlap_scores,
    rouge_l_coco,
    rouge_l_f1_normalized,
    rouge_l_recall_normalized,
    word_f1_normalized,
)
from lib.metrics.registry import METRICS, available, metric, registered
from lib.metrics.usl_h import make_invalid, train_next_utterance, train_valid_utterance, usl_h
