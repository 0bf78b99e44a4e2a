"""Tokens, n-grams and weighted lexica: the raw material of the psychological metrics."""

from lib.lexicons.counts import TokenCounts, count_pooled, count_tokens, ngrams
from lib.lexicons.files import (
    PLUTCHIK,
    from_triples,
    read_csv,
    read_database,
    read_liwc,
    read_nrc,
)
from lib.lexicons.lexicon import Lexicon, score_stream
from lib.lexicons.sources import (
    FUNCTION_WORDS,
    LexiconMissing,
    dlatk_lexicon,
    emotion_lexicon,
    facebook_topics,
    function_words,
    liwc,
    nrc_hashtag,
    toy_emotions,
)
from lib.lexicons.tokenizer import clean, is_word, tokenize

__all__ = [
    "FUNCTION_WORDS",
    "PLUTCHIK",
    "Lexicon",
    "LexiconMissing",
    "TokenCounts",
    "clean",
    "count_pooled",
    "count_tokens",
    "dlatk_lexicon",
    "emotion_lexicon",
    "facebook_topics",
    "from_triples",
    "function_words",
    "is_word",
    "liwc",
    "ngrams",
    "nrc_hashtag",
    "read_csv",
    "read_database",
    "read_liwc",
    "read_nrc",
    "score_stream",
    "tokenize",
    "toy_emotions",
]
