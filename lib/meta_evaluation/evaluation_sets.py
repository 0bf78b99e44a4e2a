"""An evaluation set: the rated items of a corpus, what metrics say of them, how they nest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib import endex, psychology  # noqa: F401  (a room registers its metrics when it is imported)
from lib.data import KEY, load
from lib.metrics import METRICS, AskedModel, compute, compute_asked, get_metric

#: Dimensions to judge metrics by, the first that a corpus has; the closest thing to "how good".
PREFERENCE = (
    "overall",
    "engaging",
    "coherence",
    "appropriateness",
    "content",
    "relevance",
)

#: Corpora that were rated under one scheme and are reported pooled.
POOLED = {
    "grade_convai2": [
        "grade_convai2_bert_ranker",
        "grade_convai2_dialogGPT",
        "grade_convai2_transformer_generator",
        "grade_convai2_transformer_ranker",
    ],
    "grade_dailydialog": [
        "grade_dailydialog_transformer_generator",
        "grade_dailydialog_transformer_ranker",
    ],
    "grade_empatheticdialogues": [
        "grade_empatheticdialogues_transformer_generator",
        "grade_empatheticdialogues_transformer_ranker",
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

#: Corpora that the same people made under one rating scheme; any other is a family of its own.
CORPUS_FAMILIES = {
    "usr_topical": "USR",
    "usr_persona": "USR",
    "fed_turn": "FED",
    "fed_engaging": "FED",
    "gpt4_fed": "FED",
    "dstc10_dailydialog_zhao": "Zhao",
    "dstc10_persona_zhao": "Zhao",
} | dict.fromkeys([*POOLED, *sum(POOLED.values(), [])], "GRADE")

#: Ratings that are on one scale only after standardising each worker, as their authors do.
STANDARDISED = {"gpt4_reliable": "z_overall", "ji2022": "z_overall"}

#: The aspects of FED that were meant for single turns.
FED_TURN = [
    "fed_interesting",
    "fed_engaging",
    "fed_specific",
    "fed_relevant",
    "fed_correct",
    "fed_semantically_appropriate",
    "fed_understandable",
    "fed_fluent",
]

#: Metrics that take seconds per corpus and no model.
QUICK = (
    "length",
    "specificity",
    "question",
    "bleu4_coco",
    "rouge_l_coco",
    "word_f1_normalized",
    "emotional_entropy",
    "emotional_entropy_paper",
    "emotion_matching",
    "language_style_matching",
)

#: Metrics by the packaged sentence encoder; the first computes the embeddings that the next two
#: use again. The last is the packaged network: that encoder with a last layer of its own.
ENCODER = ("bertscore", "reference_similarity", "context_similarity", "endex")

#: Families in the order of the overview, with the starts of the names of scores that came with a
#: corpus; a registered metric says its own family.
FAMILIES: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "overlap": ("bleu", "rouge", "meteor", "word_f1"),
    "embedding": ("bertscore",),
    "likelihood": ("fed", "bartscore", "prism", "mauve", "log_likelihood"),
    "psychological": ("agreeableness", "empathy"),
    "engagement": ("endex", "pred_en"),
    "classifier": (
        "usl_h",
        "unieval",
        "dialogrpt",
        "grade",
        "bleurt",
        "ruber",
        "ctx_unref",
        "toxicity",
    ),
    "judge": ("gpt4", "cpds", "judge"),
}


@dataclass(frozen=True)
class EvaluationSet:
    """Rated items of one corpus.

    Attributes:
        name: the corpus, or the pooled corpora.
        level: what one item is, "turn" or "dialog".
        table: the turn or dialog table, one row per rated item.
        human: the rating that metrics are compared with, on the index of `table`.
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
    corpora = [load(corpus) for corpus in POOLED.get(name, [name])]
    tables = []
    ratings = []
    n_items = 0
    for corpus in corpora:
        tables.append(corpus.items)
        ratings.append(corpus.ratings.assign(item=corpus.ratings["item"] + n_items))
        n_items += len(corpus.items)
    table = pd.concat(tables, ignore_index=True)
    ratings = pd.concat(ratings, ignore_index=True)
    if name == "usr_topical":
        table = _add_unieval(table)

    human = _select_rating(table, rating or STANDARDISED.get(name, ""), name)
    scores = shipped_scores(table)
    level = corpora[0].level
    valid = human.notna()
    if level == "dialog" and len(scores.columns):
        valid &= scores.notna().any(axis=1)
    ratings = ratings[valid[ratings["item"]].to_numpy()].reset_index(drop=True)
    new_position = valid.cumsum() - 1
    ratings["item"] = new_position[ratings["item"]].to_numpy()
    return EvaluationSet(
        name=name,
        level=level,
        table=table[valid].reset_index(drop=True),
        human=human[valid].reset_index(drop=True),
        scores=scores[valid].reset_index(drop=True),
        ratings=ratings,
        synthetic=bool(corpora[0].info.get("synthetic", False)),
    )


def _add_unieval(table: pd.DataFrame) -> pd.DataFrame:
    """USR-Topical with UniEval's predictions, which were shipped as a corpus of their own."""
    keys = ["system", "dialog", "response"]
    shipped = load("unieval_topical").turns
    scores = shipped[keys].join(shipped.filter(regex="^score_"))
    return table.merge(scores, on=keys, how="left", validate="one_to_one")


def _select_rating(table: pd.DataFrame, rating: str, name: str) -> pd.Series:
    """The column of a rating; without a name, the first of `PREFERENCE` or of the table."""
    ratings = [
        column.removeprefix("human_") for column in table if column.startswith("human_")
    ]
    if not rating:
        preferred = [dimension for dimension in PREFERENCE if dimension in ratings]
        rating = next(iter([*preferred, *ratings]), "")
    if rating not in ratings:
        available = ", ".join(ratings) or "none"
        raise ValueError(
            f"corpus {name!r} has no rating {rating!r}; it has: {available}"
        )
    return table[f"human_{rating}"].astype(float)


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
    names = scores.columns.str.removeprefix("score_")
    names = names.str.replace(r"_run\d+$", "", regex=True).to_numpy()
    scores = scores.T.groupby(names, sort=False).mean().T
    if not set(FED_TURN) <= set(scores):
        return scores
    mean = scores[FED_TURN].mean(axis=1, skipna=False)
    return scores.filter(regex="^(?!fed_)|^fed_(engaging|relevant)$").assign(
        fed_mean=mean
    )


def machine_replies(items: EvaluationSet) -> EvaluationSet | None:
    """The items labelled as written by a machine; None if no item has that label.

    Items without a label are left out, and so are metrics without a score of the items that stay.

    >>> len(machine_replies(load_set("sample_bots")).human) == len(load_set("sample_bots").human)
    True
    """
    by_machine = items.table["written_by"] == "machine"
    if not by_machine.any():
        return None
    return replace(
        items,
        table=items.table[by_machine],
        human=items.human[by_machine],
        scores=items.scores[by_machine].dropna(axis=1, how="all"),
        ratings=None,  # they number the items of the whole set
    )


def metric_family(metric: str) -> str:
    """The family of a metric: as registered, else by the start of its name.

    >>> metric_family("bleu4_coco"), metric_family("gpt4_overall"), metric_family("my_metric")
    ('overlap', 'judge', 'other')
    """
    if metric in METRICS:
        return METRICS[metric].family
    for family, prefixes in FAMILIES.items():
        if metric.startswith(prefixes):
            return family
    return "other"


def sort_by_family(metrics: Sequence[str]) -> list[str]:
    """Metric names sorted by family, then by name; families of your own come last.

    >>> sort_by_family(["gpt4_overall", "rouge_l", "bleu4"])
    ['bleu4', 'rouge_l', 'gpt4_overall']
    """
    family_of = {name: metric_family(name) for name in metrics}
    order = [*FAMILIES, *sorted(set(family_of.values()) - set(FAMILIES))]
    return sorted(family_of, key=lambda name: (order.index(family_of[name]), name))


def own_metrics() -> tuple[str, ...]:
    """Names of the metrics that were registered outside this package, in a notebook say."""
    return tuple(
        name
        for name, metric in METRICS.items()
        if not str(metric.function.__module__).startswith("lib.")
    )


def computed_scores(turns: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Registered metrics of turns, each computed once and stored.

    Metrics that read references are left out where no turn has any, and are NaN for ground-truth
    responses, which would be compared with themselves. Of BERTScore only F1 is returned.

    >>> computed_scores(load("sample_bots").turns, ["question", "length"]).columns.tolist()
    ['question', 'length']
    """
    if not turns["reference"].map(len).any():
        names = [name for name in names if "reference" not in get_metric(name).needs]
    scores = compute(turns, names, log=lambda line: None)
    is_gold = gold_rows(turns)
    for column, record in scores.attrs["provenance"].items():
        if column.endswith(("_precision", "_recall")):
            scores = scores.drop(columns=column)
        elif "reference" in get_metric(record["metric"]).needs:
            scores.loc[is_gold, column] = np.nan
    return scores


def computed_by_models(
    turns: pd.DataFrame, asked: Sequence[AskedModel]
) -> pd.DataFrame:
    """Metrics by the models that were asked for, under names that hold both.

    As in `computed_scores` references are needed where a metric reads them, a ground-truth response
    is not compared with itself, and of BERTScore only F1 is returned.

    >>> computed_by_models(load("sample_bots").turns, []).empty
    True
    """
    tables = [pd.DataFrame(index=turns.index)]
    is_gold = gold_rows(turns)
    has_references = turns["reference"].map(len).any()
    for item in asked:
        reads_references = "reference" in item.needs
        if reads_references and not has_references:
            continue
        scores = compute_asked(turns, [item], log=lambda line: None)
        if reads_references:
            scores.loc[is_gold] = np.nan
        if item.metric == "bertscore":
            scores = scores[[f"bertscore_f1[{item.label}]"]]
        tables.append(scores)
    return pd.concat(tables, axis=1)


def gold_rows(turns: pd.DataFrame) -> np.ndarray:
    """True for the responses of a system that only repeats the reference: the ground truth itself.

    >>> turns = pd.DataFrame({"system": ["gold", "bot", "bot"], "response": ["a", "a", "b"],
    ...                       "reference": [["a"], ["a"], ["c"]]})
    >>> gold_rows(turns).tolist()
    [True, False, False]
    """
    pairs = zip(turns["response"], turns["reference"], strict=True)
    is_reference = [response in references for response, references in pairs]
    is_reference = pd.Series(is_reference, turns.index)
    return is_reference.groupby(turns["system"]).transform("all").to_numpy()


def recorded_scores(items: EvaluationSet, run) -> pd.DataFrame:
    """Scores that earlier notebooks wrote for these items.

    Read are all results `NN_*_scores.csv` of the run's profile that hold the key columns system,
    agent, dialog and turn: their other numeric columns become metrics where the keys match. Of a
    file with a column `corpus` only the rows of these corpora count (for `fed_turn` also those of
    `fed_engaging`, the same replies, and the other way round). A metric that never matches gives
    no column, so a file about another corpus is ignored.

    Args:
        items: the evaluation set.
        run: the notebook's run (`notebook_runs.start`), which knows the folder of results.
    """
    keys = [name for name in KEY if name in items.table]
    scores = pd.DataFrame(index=items.table.index)
    for path in run.results("[0-9][0-9]_*_scores.csv"):
        table = pd.read_csv(path, dtype={"system": str, "agent": str, "dialog": str})
        if "corpus" in table:
            of_set = table["corpus"].isin([items.name, *POOLED.get(items.name, [])])
            if not of_set.any():
                of_set = table["corpus"] == SAME_ITEMS.get(items.name)
            table = table[of_set].drop(columns="corpus")
        if not set(keys) <= set(table) or table.duplicated(keys).any():
            continue
        table = items.table[keys].merge(table, on=keys, how="left")
        table = table.drop(columns=keys).select_dtypes("number")
        table = table.dropna(axis=1, how="all")
        scores = scores.join(table.drop(columns=scores.columns, errors="ignore"))
    return scores


def score_set(
    items: EvaluationSet,
    run=None,
    names: Sequence[str] | None = None,
    asked: Sequence[AskedModel] = (),
) -> EvaluationSet:
    """The set with every available metric: recorded by earlier notebooks, or computed now.

    The scores shipped with the corpus come first, then recorded ones (of the many variants of
    overlap and embedding metrics only those in `names`), then `names`, by default the quick metrics
    and yours, and last those of the models `asked` for (`lib.metrics.parse_models`), which score
    turns and not dialogs; a metric that is there already is not computed again, one that is NaN
    for every item is left out.

    >>> {"length", "rouge_l_coco"} <= set(score_set(load_set("sample_bots")).scores)
    True
    """
    names = (*QUICK, *own_metrics()) if names is None else names
    frames = [items.scores]
    if run is not None:
        recorded = recorded_scores(items, run)
        for metric in recorded:
            if metric in names or metric_family(metric) not in ("overlap", "embedding"):
                frames.append(recorded[[metric]])
    scores = pd.concat(frames, axis=1)
    if items.level == "turn":
        missing = [name for name in names if name not in scores]
        computed = computed_scores(items.table, missing)
        by_models = computed_by_models(items.table, asked)
        scores = pd.concat([scores, computed, by_models], axis=1)
    scores = scores.loc[:, ~scores.columns.duplicated()]
    return replace(items, scores=scores.dropna(axis=1, how="all"))
