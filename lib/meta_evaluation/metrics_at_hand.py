"""Which metrics can be had for an evaluation set, and to which family each belongs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import endex, psychology  # noqa: F401  (a room registers its metrics when it is imported)
from lib.data import KEY
from lib.meta_evaluation.evaluation_sets import POOLED, SAME_ITEMS, EvaluationSet
from lib.metrics import METRICS, compute, registered

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

#: Metrics by the packaged sentence encoder: minutes for thousands of texts, once.
ENCODER = ("context_similarity", "reference_similarity", "bertscore")

#: Families in the order of the overview, with the starts of the names of scores that came with a
#: corpus; a registered metric says its own family.
FAMILIES: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "overlap": ("bleu", "rouge", "meteor", "word_f1"),
    "embedding": ("bertscore",),
    "likelihood": ("fed", "bartscore", "prism", "usl_h", "mauve"),
    "psychological": ("agreeableness", "empathy"),
    "engagement": ("endex", "pred_en"),
    "classifier": ("unieval", "dialogrpt", "grade", "bleurt", "ruber", "ctx_unref", "toxicity"),
    "judge": ("gpt4", "cpds", "judge"),
}


def family(metric: str) -> str:
    """The family of a metric: as registered, else by the start of its name.

    >>> family("bleu4_coco"), family("gpt4_overall"), family("my_metric")
    ('overlap', 'judge', 'other')
    """
    if metric in METRICS:
        return METRICS[metric].family
    starts = (name for name, start in FAMILIES.items() if start and metric.startswith(start))
    return next(starts, "other")


def in_family_order(metrics: Sequence[str]) -> list[str]:
    """Metric names sorted by family, then by name; families of your own come last.

    >>> in_family_order(["gpt4_overall", "rouge_l", "bleu4"])
    ['bleu4', 'rouge_l', 'gpt4_overall']
    """
    order = {name: position for position, name in enumerate(FAMILIES)}
    return sorted(
        set(metrics), key=lambda name: (order.get(family(name), len(order)), family(name), name)
    )


def own_metrics() -> tuple[str, ...]:
    """Names of the metrics that were registered outside this package, in a notebook say."""
    return tuple(
        m.name for m in METRICS.values() if not str(m.function.__module__).startswith("lib.")
    )


def computed_scores(items: EvaluationSet, names: Sequence[str]) -> pd.DataFrame:
    """Registered metrics of turns, each computed once and kept.

    Metrics that read references are left out where no item has any, and are NaN for ground-truth
    responses, which would be compared with themselves. Rated dialogs get no columns: these metrics
    score turns. Of BERTScore only F1 is kept.

    >>> from lib.meta_evaluation import load_set
    >>> computed_scores(load_set("sample_bots"), ["question", "length"]).columns.tolist()
    ['question', 'length']
    """
    if items.level != "turn":
        return pd.DataFrame(index=items.table.index)
    referenced = items.table["reference"].map(len).any()
    chosen = [n for n in names if referenced or "reference" not in registered(n).needs]
    gold = gold_rows(items.table)
    parts = [pd.DataFrame(index=items.table.index)]
    for name in chosen:
        found = compute(items.table, [name], say=lambda line: None)
        if "reference" in registered(name).needs:
            found.loc[gold] = np.nan
        parts.append(found)
    found = pd.concat(parts, axis=1)
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
        metrics = recorded.drop(columns=key).select_dtypes("number")
        joined = items.table[key].merge(recorded[key].join(metrics), on=key, how="left")
        new = [name for name in metrics if joined[name].notna().any() and name not in found]
        found = found.join(joined[new])
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
    and yours; a metric that is there already is not computed again, one that is NaN for every item
    is left out.

    >>> from lib.meta_evaluation import load_set
    >>> {"length", "rouge_l_coco"} <= set(score_set(load_set("sample_bots")).scores)
    True
    """
    names = (*QUICK, *own_metrics()) if names is None else names
    parts = [items.scores]
    if run is not None:
        recorded = recorded_scores(items, run)
        variants = ("overlap", "embedding")
        parts.append(recorded[[n for n in recorded if n in names or family(n) not in variants]])
    present = {name for part in parts for name in part}
    parts.append(computed_scores(items, [name for name in names if name not in present]))
    scores = pd.concat(parts, axis=1)
    scores = scores.loc[:, ~scores.columns.duplicated()].dropna(axis=1, how="all")
    return replace(items, scores=scores)
