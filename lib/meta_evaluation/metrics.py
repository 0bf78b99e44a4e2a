"""Which metrics can be computed for a panel, and to which family each belongs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import endex, psychology  # noqa: F401  (a room registers its metrics when it is imported)
from lib import metrics as score_store
from lib.data.dialogues import KEY
from lib.meta_evaluation.panels import POOLED, SAME_ITEMS, Panel
from lib.notebook_runs.outputs import Run, folder

#: Metrics that take seconds per corpus and no model.
QUICK = (
    "length",
    "specificity",
    "question",
    "bleu4_coco",
    "rouge_l_coco",
    "word_f1_normalized",
    "emotional_entropy",
    "emotion_matching",
    "language_style_matching",
)

#: Metrics by the packaged sentence encoder: minutes for thousands of texts, once.
ENCODER = ("context_similarity", "reference_similarity", "bertscore")

#: Columns outside the overlap family that compare with the reference.
REFERENCED = ("reference_similarity", "bertscore_f1")

#: Families in the order of the overview, with the starts of the names that are not registered in
#: `lib.metrics`: predictions that came with a corpus.
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
    """The family of a metric: as registered in `lib.metrics`, else by the start of its name.

    >>> family("bleu4_coco"), family("gpt4_overall"), family("my_metric")
    ('overlap', 'judge', 'other')
    """
    if metric in score_store.METRICS:
        return score_store.METRICS[metric].family
    for name, starts in FAMILIES.items():
        if starts and metric.startswith(starts):
            return name
    return "other"


def computed_scores(panel: Panel, names: Sequence[str] = QUICK) -> pd.DataFrame:
    """Registered metrics of a turn-level panel, each computed once and kept by `lib.metrics`.

    Metrics that read references are left out where no item has any, and are NaN for ground-truth
    responses, which would be compared with themselves. A dialog-level panel gets no columns: these
    metrics score turns. Of BERTScore only F1 is kept.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> computed_scores(load_panel("sample_bots"), ["question", "length"]).columns.tolist()
    ['question', 'length']
    """
    if panel.level != "turn":
        return pd.DataFrame(index=panel.table.index)
    referenced = panel.table["reference"].map(len).any()
    chosen = [
        name
        for name in names
        if referenced or "reference" not in score_store.registered(name).needs
    ]
    found = score_store.compute(panel.table, chosen, say=lambda line: None)
    found = found.drop(columns=[c for c in found if c.endswith(("_precision", "_recall"))])
    compared = [c for c in found if family(c) == "overlap" or c in REFERENCED]
    found.loc[gold_rows(panel.table), compared] = np.nan
    return found


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


def recorded_scores(panel: Panel, run: Run) -> pd.DataFrame:
    """Scores that earlier notebooks wrote for these items.

    Read are all results `NN_*_scores.csv` of the run's profile that hold the key columns system,
    agent, dialog and turn: their other numeric columns become metrics where the keys match. Of a
    file with a column `corpus` only the rows of the panel's corpora count (for `fed_turn` also
    those of `fed_engaging`, the same replies, and the other way round). A metric that never matches
    gives no column, so a file about another corpus is passed over.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> recorded_scores(panel, Run("08", "sample")).index.equals(panel.table.index)
    True
    """
    key = [name for name in KEY if name in panel.table]
    found = pd.DataFrame(index=panel.table.index)
    for path in sorted(folder(run.profile, "results").glob("[0-9][0-9]_*_scores.csv")):
        recorded = pd.read_csv(path, dtype={name: str for name in KEY if name != "turn"})
        recorded = _of_corpus(recorded, panel.name)
        if not set(key) <= set(recorded) or recorded.duplicated(key).any():
            continue
        metrics = recorded.drop(columns=key).select_dtypes("number")
        joined = panel.table[key].merge(recorded[key].join(metrics), on=key, how="left")
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


def score_panel(panel: Panel, run: Run | None = None, names: Sequence[str] = QUICK) -> Panel:
    """The panel with every metric at hand: recorded by earlier notebooks, or computed now.

    The scores shipped with the corpus come first, then recorded ones (of the many variants of
    overlap and embedding metrics only those in `names`), then `names`; a metric that is there
    already is not computed again, one that is NaN for every item is left out.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> {"length", "rouge_l_coco"} <= set(score_panel(load_panel("sample_bots")).scores)
    True
    """
    parts = [panel.scores]
    if run is not None:
        recorded = recorded_scores(panel, run)
        variants = ("overlap", "embedding")
        keep = [n for n in recorded if n in names or family(n) not in variants]
        parts.append(recorded[keep])
    present = {name for part in parts for name in part}
    parts.append(computed_scores(panel, [name for name in names if name not in present]))
    scores = pd.concat(parts, axis=1)
    scores = scores.loc[:, ~scores.columns.duplicated()].dropna(axis=1, how="all")
    return replace(panel, scores=scores)
