"""An evaluation set: the rated items of a corpus, what metrics say of them, how they nest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib import endex, psychology  # noqa: F401  (a room registers its metrics when it is imported)
from lib.data import KEY, load
from lib.metrics import METRICS, compute, get_metric

#: Dimensions to judge metrics by, the first that a corpus has; the closest thing to "how good".
PREFERENCE = ("overall", "engaging", "coherence", "appropriateness", "content", "relevance")

#: Corpora that were rated under one scheme and are reported pooled.
_BOTS = ("bert_ranker", "dialogGPT", "transformer_generator", "transformer_ranker")
_GRADE = {"convai2": _BOTS, "dailydialog": _BOTS[2:], "empatheticdialogues": _BOTS[2:]}
POOLED = {f"grade_{name}": [f"grade_{name}_{m}" for m in _GRADE[name]] for name in _GRADE}

#: Two loaders of one corpus whose replies share their keys (the second rates 261 of the 375).
SAME_ITEMS = {"fed_turn": "fed_engaging", "fed_engaging": "fed_turn"}

#: The sets of the overview: each rating scheme once, turn level first.
PUBLIC = ("usr_topical", "usr_persona", "fed_turn", *POOLED, "better", "predeng600")
PUBLIC += ("dstc10_dailydialog_zhao", "dstc10_persona_zhao", "gpt4_fed", "gpt4_reliable")
SAMPLE = ("sample_bots", "sample_personas")

#: Ratings that are on one scale only after standardising each worker, as their authors do.
STANDARDISED = {"gpt4_reliable": "z_overall", "ji2022": "z_overall"}

#: The aspects of FED that were meant for single turns.
FED_TURN = ["fed_interesting", "fed_engaging", "fed_specific", "fed_relevant", "fed_correct"]
FED_TURN += ["fed_semantically_appropriate", "fed_understandable", "fed_fluent"]


#: Metrics that take seconds per corpus and no model.
QUICK = ("length", "specificity", "question", "bleu4_coco", "rouge_l_coco", "word_f1_normalized")
QUICK += ("emotional_entropy", "emotional_entropy_paper", "emotion_matching")
QUICK += ("language_style_matching",)

#: Metrics by the packaged sentence encoder; the first reads what the next two then find read. The
#: last is the network that ships: that encoder with a last layer of its own.
ENCODER = ("bertscore", "reference_similarity", "context_similarity", "endex")

#: Families in the order of the overview, with the starts of the names of scores that came with a
#: corpus; a registered metric says its own family.
FAMILIES: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "overlap": ("bleu", "rouge", "meteor", "word_f1"),
    "embedding": ("bertscore",),
    "likelihood": ("fed", "bartscore", "prism", "usl_h", "mauve", "log_likelihood"),
    "psychological": ("agreeableness", "empathy"),
    "engagement": ("endex", "pred_en"),
    "classifier": ("unieval", "dialogrpt", "grade", "bleurt", "ruber", "ctx_unref", "toxicity"),
    "judge": ("gpt4", "cpds", "judge"),
}


@dataclass(frozen=True)
class EvaluationSet:
    """Rated items of one corpus.

    Attributes:
        name: the corpus, or the pooled corpora.
        level: what one item is, "turn" or "dialog".
        table: the turn or dialog table, one row per rated item.
        human: the rating that metrics are held against, on the index of `table`.
        scores: one column per metric on the same index; higher is better.
        ratings: the single ratings (item, annotator, dimension, rating); None or empty where only
            means were published.
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
    ratings = ratings[kept[ratings["item"]].to_numpy()].reset_index(drop=True)
    ratings["item"] = (kept.cumsum() - 1)[ratings["item"]].to_numpy()
    table, human, shipped = (part[kept].reset_index(drop=True) for part in (table, human, shipped))
    synthetic = bool(parts[0].info.get("synthetic", False))
    return EvaluationSet(name, parts[0].level, table, human, shipped, ratings, synthetic)


def _stack(parts: list) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables and ratings of several corpora, one below the other; `item` is the new position."""
    table = pd.concat({place: part.items for place, part in enumerate(parts)})
    ratings = pd.concat(part.ratings.assign(part=place) for place, part in enumerate(parts))
    rows = pd.MultiIndex.from_frame(ratings[["part", "item"]])
    ratings = ratings.assign(item=table.index.get_indexer(rows)).drop(columns="part")
    return table.reset_index(drop=True), ratings.reset_index(drop=True)


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
        have = ", ".join(known) or "none"
        raise ValueError(f"corpus {name!r} has no rating {rating!r}; it has: {have}")
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
    names = scores.columns.str.removeprefix("score_").str.replace(r"_run\d+$", "", regex=True)
    scores = scores.T.groupby(names.to_numpy(), sort=False).mean().T
    if not set(FED_TURN) <= set(scores):
        return scores
    mean = scores[FED_TURN].mean(axis=1, skipna=False)
    return scores.filter(regex="^(?!fed_)|^fed_(engaging|relevant)$").assign(fed_mean=mean)


def metric_family(metric: str) -> str:
    """The family of a metric: as registered, else by the start of its name.

    >>> metric_family("bleu4_coco"), metric_family("gpt4_overall"), metric_family("my_metric")
    ('overlap', 'judge', 'other')
    """
    if metric in METRICS:
        return METRICS[metric].family
    starts = (name for name, start in FAMILIES.items() if start and metric.startswith(start))
    return next(starts, "other")


def sort_by_family(metrics: Sequence[str]) -> list[str]:
    """Metric names sorted by family, then by name; families of your own come last.

    >>> sort_by_family(["gpt4_overall", "rouge_l", "bleu4"])
    ['bleu4', 'rouge_l', 'gpt4_overall']
    """
    order = [*FAMILIES, *sorted({metric_family(name) for name in metrics} - set(FAMILIES))]
    return sorted(set(metrics), key=lambda name: (order.index(metric_family(name)), name))


def own_metrics() -> tuple[str, ...]:
    """Names of the metrics that were registered outside this package, in a notebook say."""
    modules = {name: str(metric.function.__module__) for name, metric in METRICS.items()}
    return tuple(name for name, module in modules.items() if not module.startswith("lib."))


def computed_scores(turns: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Registered metrics of turns, each computed once and kept.

    Metrics that read references are left out where no turn has any, and are NaN for ground-truth
    responses, which would be compared with themselves. Of BERTScore only F1 is kept.

    >>> computed_scores(load("sample_bots").turns, ["question", "length"]).columns.tolist()
    ['question', 'length']
    """
    referenced = turns["reference"].map(len).any()
    chosen = [n for n in names if referenced or "reference" not in get_metric(n).needs]
    found = compute(turns, chosen, log=lambda line: None)
    names = {column: record["metric"] for column, record in found.attrs["provenance"].items()}
    compared = [column for column, name in names.items() if "reference" in get_metric(name).needs]
    found.loc[gold_rows(turns), compared] = np.nan
    return found.drop(columns=[c for c in found if c.endswith(("_precision", "_recall"))])


def gold_rows(turns: pd.DataFrame) -> np.ndarray:
    """True for the responses of a system that only repeats the reference: the ground truth itself.

    >>> turns = pd.DataFrame({"system": ["gold", "bot", "bot"], "response": ["a", "a", "b"],
    ...                       "reference": [["a"], ["a"], ["c"]]})
    >>> gold_rows(turns).tolist()
    [True, False, False]
    """
    pairs = zip(turns["response"], turns["reference"], strict=True)
    own = pd.Series([text in references for text, references in pairs], index=turns.index)
    return own.groupby(turns["system"]).transform("all").to_numpy()


def recorded_scores(items: EvaluationSet, run) -> pd.DataFrame:
    """Scores that earlier notebooks wrote for these items.

    Read are all results `NN_*_scores.csv` of the run's profile that hold the key columns system,
    agent, dialog and turn: their other numeric columns become metrics where the keys match. Of a
    file with a column `corpus` only the rows of these corpora count (for `fed_turn` also those of
    `fed_engaging`, the same replies, and the other way round). A metric that never matches gives
    no column, so a file about another corpus is passed over.

    Args:
        items: the evaluation set.
        run: the notebook's run (`notebook_runs.start`), which knows the folder of results.
    """
    key = [name for name in KEY if name in items.table]
    found = pd.DataFrame(index=items.table.index)
    for path in run.results("[0-9][0-9]_*_scores.csv"):
        recorded = pd.read_csv(path, dtype={name: str for name in KEY if name != "turn"})
        recorded = _of_corpus(recorded, items.name)
        if not set(key) <= set(recorded) or recorded.duplicated(key).any():
            continue
        joined = items.table[key].merge(recorded, on=key, how="left").drop(columns=key)
        new = joined.select_dtypes("number").dropna(axis=1, how="all")
        found = found.join(new[new.columns.difference(found.columns, sort=False)])
    return found


def _of_corpus(recorded: pd.DataFrame, name: str) -> pd.DataFrame:
    if "corpus" not in recorded:
        return recorded
    own = recorded["corpus"].isin([name, *POOLED.get(name, [])])
    if not own.any():
        own = recorded["corpus"] == SAME_ITEMS.get(name)
    return recorded[own].drop(columns="corpus")


def score_set(items: EvaluationSet, run=None, names: Sequence[str] | None = None) -> EvaluationSet:
    """The set with every metric at hand: recorded by earlier notebooks, or computed now.

    The scores shipped with the corpus come first, then recorded ones (of the many variants of
    overlap and embedding metrics only those in `names`), then `names`, by default the quick metrics
    and yours, which score turns and not dialogs; a metric that is there already is not computed
    again, one that is NaN for every item is left out.

    >>> {"length", "rouge_l_coco"} <= set(score_set(load_set("sample_bots")).scores)
    True
    """
    names = (*QUICK, *own_metrics()) if names is None else names
    parts = [items.scores]
    if run is not None:
        recorded = recorded_scores(items, run)
        variants = ("overlap", "embedding")
        parts.append(
            recorded[[n for n in recorded if n in names or metric_family(n) not in variants]]
        )
    present = {name for part in parts for name in part}
    if items.level == "turn":
        parts.append(computed_scores(items.table, [n for n in names if n not in present]))
    scores = pd.concat(parts, axis=1)
    scores = scores.loc[:, ~scores.columns.duplicated()].dropna(axis=1, how="all")
    return replace(items, scores=scores)
