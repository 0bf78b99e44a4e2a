"""What a psychologist would measure: lexica, emotions, language style, traits."""

from lib.psychology.lexica import Lexicon, dlatk_lexicon, read_lexicon
from lib.psychology.states import (
    FUNCTION_WORDS,
    PAPER_ENTROPY,
    PLUTCHIK,
    emotion_lexicon,
    emotion_matching,
    emotion_vectors,
    emotional_entropy,
    emotional_entropy_paper,
    entropy,
    function_words,
    language_style_matching,
    read_liwc,
)
from lib.psychology.tokens import count_tokens, prompt_counts, response_counts, tokenize
from lib.psychology.traits import (
    PUBLISHED_R,
    agreeableness_and_empathy,
    fit_trait_model,
    score_traits,
    trait_models,
)

#: Options of each metric that we take for those of Giorgi et al. (2023). They come close to Tables
#: 15-18; for entropy and emotion matching another reading is closer (notebook 12, section 3).
PAPER_READING = {
    "emotional_entropy": PAPER_ENTROPY,
    "emotion_matching": {"context": "all", "weighting": "relative"},
    "language_style_matching": {
        "context": "all",
        "denominator": "tokens",
        "newline_tokens": True,
    },
}
