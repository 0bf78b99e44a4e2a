"""The positive emotion of the replies that the recipe needs."""

from pathlib import Path

from lib.endex.emotions.share import EMBEDDED, positive_emotion
from lib.endex.reddit.scores import score_texts

# Usable answers to a comment that is itself an answer: the others never reach a score.
REPLIES = """
select reply.id, reply.body
from comments reply
join comments post on post.id = reply.parent
where reply.tokens is not null and post.parent is not null and post.usable
order by reply.id
"""


def score_replies(
    comments: str | Path, folder: str | Path, model: str = EMBEDDED, **options
) -> Path:
    """Write the positive emotion of replies as Parquet with id and ee; finished parts are kept.

    Args:
        comments: folder written by `lib.endex.reddit`.
        folder: where the parts go; its record names the model, and another model starts anew.
        model, options: as in `positive_emotion`.

    Returns:
        The folder, to be passed to `engagement.build(emotions=...)`.
    """

    def score(texts):
        return positive_emotion(texts, model, **options)

    return score_texts(comments, folder, "ee", score, model, REPLIES)
