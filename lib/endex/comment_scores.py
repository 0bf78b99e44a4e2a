"""Scores of comments as Parquet files beside them: positive emotion and toxicity, which RED reads.

Only those texts are scored that RED can use. A file is named by what it depends on, so a run that
was cut off goes on at the part where it stopped.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from lib import models
from lib.data.storage import atomic_write, file_sha256, short_hash
from lib.endex.emotions import EMBEDDED, WEIGHTS, positive_emotion
from lib.endex.red import DuckDB, read_comments
from lib.metrics.classifiers import TOXIC_BERT, toxicity

PART_SIZE = 50_000  # texts in a file of scores: what an interruption can cost at most
#: The same for a network, so that an interruption costs about a minute on a CPU.
NETWORK_PART_SIZE = 500

# Usable answers to a comment that is itself an answer: the others never reach a score.
REPLIES = """
select reply.id, reply.body
from single reply
join single post on post.id = reply.parent
where reply.tokens is not null and post.parent is not null and post.usable
order by reply.id
"""

# Comments that were answered and answer another, and those that they answer.
POSTS_AND_PARENTS = """
with posts as (
    select post.id, post.parent
    from single post
    where post.usable and post.parent is not null
      and post.id in (select parent from single)
)
select id, body
from single
where usable and (id in (select id from posts) or id in (select parent from posts))
order by id
"""


def score_replies(
    comments: str | Path, folder: str | Path, model: str = EMBEDDED, **options
) -> Path:
    """Write the positive emotion of replies as Parquet with id and ee; finished files are kept.

    Files that depend on other weights, options or texts are removed.

    Args:
        comments: folder written by `to_parquet`.
        folder: where the Parquet files go.
        model, options: as in `positive_emotion`.

    Returns:
        The folder, to be passed to `build_red(emotions=...)`.
    """
    if model == EMBEDDED:
        weights = file_sha256(WEIGHTS)
        part_size = PART_SIZE
    else:
        weights = models.find_model(model, options.get("revision")).sha256
        part_size = NETWORK_PART_SIZE
    score = partial(positive_emotion, model=model, **options)
    return _write_parts(
        comments, Path(folder), REPLIES, "ee", score, [weights, options], part_size
    )


def score_toxicity(
    comments: str | Path, folder: str | Path, model: str = TOXIC_BERT, **options
) -> Path:
    """Write the toxicity of posts and of what they answer as Parquet with id and toxicity.

    As `score_replies`, by a classifier that `lib.metrics.toxicity` takes.

    Returns:
        The folder, to be passed to `build_red(toxicity=...)`.
    """
    weights = models.find_model(model, options.get("revision")).sha256

    def score(texts):
        turns = pd.DataFrame({"response": texts})
        return toxicity(turns, checkpoint=model, **options)

    return _write_parts(
        comments,
        Path(folder),
        POSTS_AND_PARENTS,
        "toxicity",
        score,
        [weights, options],
        NETWORK_PART_SIZE,
    )


def _write_parts(
    comments: str | Path,
    folder: Path,
    query: str,
    column: str,
    score: Callable,
    depends_on: list,
    part_size: int,
) -> Path:
    """Write id and a score of the comments of a query, a file for each `part_size` of them."""
    engine = DuckDB()
    read_comments(engine, comments)
    files = set()
    with (
        engine.connection,
        tqdm(unit=" texts", desc=column, leave=False) as progress,
    ):
        rows = engine.connection.execute(query)
        part = rows.fetchmany(part_size)
        while part or not files:  # without comments, one file without rows
            inputs = json.dumps([*depends_on, part], default=str)
            file = folder / f"part-{short_hash(inputs, 16)}.parquet"
            if not file.is_file():
                scores = pd.DataFrame(part, columns=["id", "text"], dtype="str")
                scores[column] = score(scores.pop("text"))
                with atomic_write(file) as unfinished:
                    scores.to_parquet(unfinished)
            files.add(file)
            progress.update(len(part))
            part = rows.fetchmany(part_size)
    for outdated in set(folder.glob("*.parquet")) - files:
        outdated.unlink(missing_ok=True)
    return folder
