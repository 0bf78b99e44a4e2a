"""Tokens, n-grams and weighted lexica: the raw material of the psychological metrics."""

from lib.psychology.lexicons.counts import TokenCounts, count_pooled, count_tokens, ngrams
from lib.psychology.lexicons.files import (
    PLUTCHIK,
    from_triples,
    read_csv,
    read_database,
    read_liwc,
    read_nrc,
)
from lib.psychology.lexicons.lexicon import Lexicon, score_stream
from lib.psychology.lexicons.sources import (
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
from lib.psychology.lexicons.tokenizer import clean, is_word, tokenize

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
