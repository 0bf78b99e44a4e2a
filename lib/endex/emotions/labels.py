"""The 28 labels of GoEmotions (Demszky et al. 2020) and which of them are positive."""

POSITIVE = (
    *("admiration", "amusement", "approval", "caring", "desire", "excitement"),
    *("gratitude", "joy", "love", "optimism", "pride", "relief"),
)
NEGATIVE = (
    *("anger", "annoyance", "disappointment", "disapproval", "disgust", "embarrassment"),
    *("fear", "grief", "nervousness", "remorse", "sadness"),
)
AMBIGUOUS = ("confusion", "curiosity", "realization", "surprise")  # some copies call two positive
LABELS = (*sorted(POSITIVE + NEGATIVE + AMBIGUOUS), "neutral")
