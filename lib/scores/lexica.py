"""What the scores of lexica and of EnDex depend on besides the texts."""

from lib import checkpoints


def emotion_lexicon(**options) -> dict:
    """Name the emotion lexicon of the psychological metrics, with its checksum."""
    from lib.lexicons import nrc_hashtag

    return _facts(nrc_hashtag())


def style_lexicon(**options) -> dict:
    """Name the function-word lists of language style matching."""
    from lib.lexicons import function_words

    return _facts(function_words())


def endex_model(model: str, **options) -> dict:
    """Name the network that EnDex scores with."""
    return checkpoints.provenance_of(model, **options)


def _facts(lexicon) -> dict:
    return {"lexicon": lexicon.name, "source": lexicon.source}
