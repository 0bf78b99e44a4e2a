"""An evaluation set: the rated items of a corpus, what metrics say of them, how they nest."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib.data import load

#: Dimensions to judge metrics by, the first that a corpus has; the closest thing to "how good".
PREFERENCE = ("overall", "engaging", "coherence", "appropriateness", "content", "relevance")

#: Corpora that were rated under one scheme and are reported pooled.
POOLED = {
    "grade_convai2": [
        f"grade_convai2_{model}"
        for model in ("bert_ranker", "dialogGPT", "transformer_generator", "transformer_ranker")
    ],
    "grade_dailydialog": [
        f"grade_dailydialog_{model}" for model in ("transformer_generator", "transformer_ranker")
    ],
    "grade_empatheticdialogues": [
        f"grade_empatheticdialogues_{model}"
        for model in ("transformer_generator", "transformer_ranker")
    ],
}

#: Two loaders of one corpus whose replies share their keys (the second rates 261 of the 375).
SAME_ITEMS = {"fed_turn": "fed_engaging", "fed_engaging": "fed_turn"}

#: The sets of the overview: each rating scheme once, turn level first.
PUBLIC = (
    "usr_topical",
    "usr_persona",
    "fed_turn",
    *POOLED,
    "better",
    "predeng600",
    "dstc10_dailydialog_zhao",
    "dstc10_persona_zhao",
    "gpt4_fed",
    "gpt4_reliable",
)
SAMPLE = ("sample_bots", "sample_personas")

#: Ratings that are on one scale only after standardising each worker, as their authors do.
STANDARDISED = {"gpt4_reliable": "z_overall", "ji2022": "z_overall"}

#: The aspects of FED that were meant for single turns.
FED_TURN = [
    f"fed_{aspect}"
    for aspect in ("interesting", "engaging", "specific", "relevant", "correct")
    + ("semantically_appropriate", "understandable", "fluent")
]


@dataclass(frozen=True)
class EvaluationSet:
    """Rated items of one corpus.

    Attributes:
        name: the corpus, or the pooled corpora.
        level: what one item is, "turn" or "dialog".
        table: the turn or dialog table, one row per rated item.
        human: the rating that metrics are held against, on the index of `table`.
        scores: one column per metric on the same index; higher is better.
        ratings: the single ratings (item, annotator, dimension, rating), or None.
        synthetic: True for the shipped sample.
    """

    name: str
    level: str
    table: pd.DataFrame
    human: pd.Series
    scores: pd.DataFrame
    ratings: pd.DataFrame | None = None
    synthetic: bool = False

    @property
    def clusters(self) -> pd.Series:
        """The unit to resample: the dialog, or the context that several systems answered."""
        return self.table["dialog"]

    @property
    def dimension(self) -> str:
        """Name of the rating without its prefix."""
        return str(self.human.name).removeprefix("human_")

    def with_scores(self, scores: pd.DataFrame) -> "EvaluationSet":
        """The same items with more metric columns."""
        return replace(self, scores=pd.concat([self.scores, scores], axis=1))


def load_set(name: str, rating: str = "") -> EvaluationSet:
    """Read a corpus, or pooled corpora, as an evaluation set with the scores shipped with it.

    Items without that rating are left out, and so are dialogs without any of the scores that came
    with them (a judge that read 500 of 2,925).

    Args:
        name: a corpus of `data.available()`, or a key of `POOLED`.
        rating: dimension to use, such as "engaging"; "" takes the first of `PREFERENCE`.

    Raises:
        ValueError: the corpus has no such rating; names the ones there are.

    >>> bots = load_set("sample_bots")
    >>> bots.level, bots.dimension, len(bots.human) == len(bots.table)
    ('turn', 'overall', True)
    """
    parts = [load(part) for part in POOLED.get(name, [name])]
    table, ratings = _stack(parts)
    table = _with_predictions(table, name)
    human = _rating(table, rating or STANDARDISED.get(name, ""), name)
    kept, shipped = human.notna(), shipped_scores(table)
    if parts[0].level == "dialog" and len(shipped.columns):
        kept &= shipped.notna().any(axis=1)
    if ratings is not None:
        position = pd.Series(np.arange(kept.sum()), index=np.flatnonzero(kept))
        ratings = ratings[ratings["item"].isin(position.index)]
        ratings = ratings.assign(item=ratings["item"].map(position)).reset_index(drop=True)
    table, human, shipped = (part[kept].reset_index(drop=True) for part in (table, human, shipped))
    synthetic = bool(parts[0].info.get("synthetic", False))
    return EvaluationSet(name, parts[0].level, table, human, shipped, ratings, synthetic)


def _stack(parts: list) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Tables and ratings of several corpora, one below the other; items keep their position."""
    tables = [part.turns if part.level == "turn" else part.dialogs for part in parts]
    starts = np.cumsum([0, *(len(table) for table in tables)])
    ratings = [
        part.ratings.assign(item=part.ratings["item"] + start)
        for part, start in zip(parts, starts, strict=False)
        if part.ratings is not None and len(part.ratings)
    ]
    both = pd.concat(ratings, ignore_index=True) if ratings else None
    return pd.concat(tables, ignore_index=True), both


def _with_predictions(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """USR-Topical with UniEval's predictions, which were shipped as a corpus of their own."""
    if name != "usr_topical":
        return table
    key = ["system", "dialog", "response"]
    shipped = load("unieval_topical").turns
    scores = [column for column in shipped if column.startswith("score_")]
    return table.merge(shipped[[*key, *scores]], on=key, how="left", validate="one_to_one")


def _rating(table: pd.DataFrame, rating: str, name: str) -> pd.Series:
    known = [column.removeprefix("human_") for column in table if column.startswith("human_")]
    wanted = [rating] if rating else [d for d in PREFERENCE if d in known] or known[:1]
    if not wanted or wanted[0] not in known:
        raise ValueError(
            f"corpus {name!r} has no rating {rating!r}; it has: {', '.join(known) or 'none'} "
            "(see data.available() for other corpora)"
        )
    return table[f"human_{wanted[0]}"].astype(float)


def shipped_scores(table: pd.DataFrame) -> pd.DataFrame:
    """The `score_*` columns that came with the corpus, without the prefix.

    Repeated runs of a judge (`..._run1`, `..._run2`, ...) are averaged into one column. Of FED's 18
    aspects remain `fed_engaging`, `fed_relevant` and `fed_mean`, the mean of the eight aspects that
    were meant for single turns.

    >>> table = pd.DataFrame({"score_gpt4_overall_run1": [1.0], "score_gpt4_overall_run2": [2.0]})
    >>> shipped_scores(table)
       gpt4_overall
    0           1.5
    """
    scores = table.filter(regex="^score_").astype(float)
    if scores.empty:
        return pd.DataFrame(index=table.index)
    names = scores.columns.str.removeprefix("score_").str.replace(r"_run\d+$", "", regex=True)
    scores = scores.T.groupby(names.to_numpy(), sort=False).mean().T
    if not set(FED_TURN) <= set(scores):
        return scores
    mean = scores[FED_TURN].mean(axis=1, skipna=False)
    aspects = {name for name in scores if name.startswith("fed_")}
    dropped = aspects - {"fed_engaging", "fed_relevant"}
    return scores.drop(columns=sorted(dropped)).assign(fed_mean=mean)
