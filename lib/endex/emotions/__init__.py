"""Emotions in replies (GoEmotions), for the emotional dimension of engagement."""

from lib.endex.emotions.labels import LABELS, NEGATIVE, POSITIVE
from lib.endex.emotions.replies import score_replies
from lib.endex.emotions.share import EMBEDDED, positive_emotion

__all__ = ["EMBEDDED", "LABELS", "NEGATIVE", "POSITIVE", "positive_emotion", "score_replies"]
