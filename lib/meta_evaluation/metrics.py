"""Which metrics can be computed for a panel, and to which family each belongs."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lib import embedding_metrics, lexicons, overlap_metrics, psychological_metrics
from lib.dialogues import KEY
from lib.meta_evaluation.panels import Panel
from lib.notebook_runs.outputs import Run, folder

#: Families of metrics, in the order of the overview, with the prefixes of their names.
FAMILIES: dict[str, tuple[str, ...]] = {
    "rule": ("words", "content_words", "question"),
    "overlap": ("bleu", "rouge", "meteor", "word_f1"),
    "embedding": ("bertscore", "reference_similarity", "context_similarity", "mauve"),
    "likelihood": ("fed_", "bartscore", "prism", "likelihood", "perplexity"),
    "psychological": (
        "emotional_entropy",
        "emotion_matching",
        "language_style_matching",
        "agreeableness",
        "empathy",
    ),
    "engagement": ("endex", "pred_en"),
    "classifier": ("unieval", "usl_h", "dialogrpt", "grade", "bleurt", "ruber", "ctx_unref"),
    "judge": ("gpt4", "cpdscore", "judge"),
}

QUESTION_WORDS = frozenset(
    ("how", "what", "when", "where", "which", "who", "whom", "whose", "why", "?")
)


def family(metric: str) -> str:
    """The family of a metric, by the start of its name; "other" when none fits.

    >>> family("bleu4_coco"), family("gpt4_overall"), family("my_metric")
    ('overlap', 'judge', 'other')
    """
    for name, prefixes in FAMILIES.items():
        if metric.startswith(prefixes):
            return name
    return "other"


def asks_question(responses: pd.Series, untokenised: bool = False) -> pd.Series:
    """1 if a token of the lower-cased response is a question word or "?", else 0.

    On tokenised text (tokens between spaces) this is the reading of "Question" that gives the
    figures of Xu et al. 2022, Table 2, on BETTER and PredEng-600. `untokenised` also finds them
    inside running text ("really?"). An empty response is 0.

    >>> asks_question(pd.Series(["and where do you live ?", "really?", ""])).tolist()
    [1.0, 0.0, 0.0]
    >>> asks_question(pd.Series(["really?"]), untokenised=True).tolist()
    [1.0]
    """
    lower = responses.str.lower()
    tokens = lower.str.findall(r"\w+|\?") if untokenised else lower.str.split()
    return tokens.map(lambda words: float(not QUESTION_WORDS.isdisjoint(words)))


def rule_scores(turns: pd.DataFrame) -> pd.DataFrame:
    """Baselines that read the surface only: number of words, content words, a question or none.

    `words` counts tokens between spaces, `content_words` those of them that are words but no
    function words (our own list), `question` is `asks_question`.

    >>> rule_scores(pd.DataFrame({"response": ["you live and learn ?", ""]})).values.tolist()
    [[5.0, 2.0, 1.0], [0.0, 0.0, 0.0]]
    """
    tokens = turns["response"].str.lower().str.split()
    function_words = {word.rstrip("*") for word in lexicons.function_words().weights}
    content = tokens.map(lambda t: sum(w.isalpha() and w not in function_words for w in t))
    return pd.DataFrame(
        {
            "words": tokens.map(len).astype(float),
            "content_words": content.astype(float),
            "question": asks_question(turns["response"]),
        }
    )


def quick_scores(panel: Panel, java: bool = False) -> pd.DataFrame:
    """Rule-based and overlap scores of a turn-level panel: seconds, no model.

    Metrics that need a reference are computed where any item has one; items without are NaN.
    METEOR starts Java, so it is left out unless asked for. A dialog-level panel gets no columns.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> "rouge_l_coco" in quick_scores(load_panel("sample_bots"))
    True
    """
    if panel.level != "turn":
        return pd.DataFrame(index=panel.table.index)
    scores = rule_scores(panel.table)
    if panel.table["reference"].map(len).any():
        names = ("bleu4_coco", "rouge_l_coco", "word_f1_normalized") + ("meteor_15",) * java
        scores = scores.join(overlap_metrics.score(panel.table, names))
    return scores


def psychological_scores(panel: Panel) -> pd.DataFrame:
    """Emotional entropy, emotion matching and language style matching of a turn-level panel.

    They have no better or worse direction by definition; their sign is part of the finding.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> psychological_scores(load_panel("sample_bots")).columns.tolist()
    ['emotional_entropy', 'emotion_matching', 'language_style_matching']
    """
    if panel.level != "turn":
        return pd.DataFrame(index=panel.table.index)
    metrics = ("emotional_entropy", "emotion_matching", "language_style_matching")
    return pd.DataFrame({m: getattr(psychological_metrics, m)(panel.table) for m in metrics})


def embedding_scores(panel: Panel) -> pd.DataFrame:
    """Cosine of response and context, and of response and reference where there is one, by the
    packaged MiniLM encoder.

    >>> embedding_scores.__name__
    'embedding_scores'
    """
    if panel.level != "turn":
        return pd.DataFrame(index=panel.table.index)
    scores = {"context_similarity": embedding_metrics.context_similarity(panel.table)}
    if panel.table["reference"].map(len).any():
        scores["reference_similarity"] = embedding_metrics.reference_similarity(panel.table)
    return pd.DataFrame(scores)


def without_gold(panel: Panel) -> Panel:
    """The panel without rows whose response is its own reference, where overlap is 1 by design.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> len(without_gold(load_panel("sample_bots")).table) <= len(load_panel("sample_bots").table)
    True
    """
    own = np.array(
        [text in references for text, references in zip(
            panel.table["response"], panel.table["reference"], strict=True
        )]
    )  # fmt: skip
    return rows(panel, ~own)


def rows(panel: Panel, kept: np.ndarray) -> Panel:
    """The panel on some of its rows (a boolean mask), single ratings included.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> len(rows(panel, np.arange(len(panel.table)) < 5).human)
    5
    """
    position = pd.Series(np.arange(kept.sum()), index=np.flatnonzero(kept))
    ratings = panel.ratings
    if ratings is not None:
        ratings = ratings[ratings["item"].isin(position.index)]
        ratings = ratings.assign(item=ratings["item"].map(position)).reset_index(drop=True)
    table, human, scores = (
        part[kept].reset_index(drop=True) for part in (panel.table, panel.human, panel.scores)
    )
    return Panel(panel.name, panel.level, table, human, scores, ratings, panel.synthetic)


def recorded_scores(panel: Panel, run: Run) -> pd.DataFrame:
    """Scores that earlier notebooks wrote for these items.

    Read are all results `NN_*_scores.csv` of the run's profile that hold the key columns system,
    agent, dialog and turn: their other numeric columns become metrics where the keys match. A
    metric that never matches gives no column, so a file about another corpus is passed over.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = load_panel("sample_bots")
    >>> recorded_scores(panel, Run("08", "sample")).index.equals(panel.table.index)
    True
    """
    key = [name for name in KEY if name in panel.table]
    found = pd.DataFrame(index=panel.table.index)
    for path in sorted(folder(run.profile, "results").glob("[0-9][0-9]_*_scores.csv")):
        recorded = pd.read_csv(path, dtype={name: str for name in KEY if name != "turn"})
        if not set(key) <= set(recorded) or recorded.duplicated(key).any():
            continue
        metrics = recorded.drop(columns=key).select_dtypes("number")
        joined = panel.table[key].merge(recorded[key].join(metrics), on=key, how="left")
        new = [name for name in metrics if joined[name].notna().any() and name not in found]
        found = found.join(joined[new])
    return found


def score_panel(panel: Panel, run: Run | None = None, embeddings: bool = True) -> Panel:
    """The panel with every metric at hand: recorded by earlier notebooks, or quick to compute.

    Recorded scores come first, then rule-based, overlap and psychological ones and, if asked for,
    embedding similarities; a name that is there already is not computed again. Metrics that are NaN
    for every item are left out. The scores shipped with the corpus stay as they are.

    >>> from lib.meta_evaluation.panels import load_panel
    >>> panel = score_panel(load_panel("sample_bots"), embeddings=False)
    >>> {"words", "rouge_l_coco", "emotion_matching"} <= set(panel.scores)
    True
    """
    parts = [] if run is None else [recorded_scores(panel, run)]
    parts += [quick_scores(panel), psychological_scores(panel)]
    parts += [embedding_scores(panel)] if embeddings else []
    scores = pd.concat([panel.scores, *parts], axis=1)
    scores = scores.loc[:, ~scores.columns.duplicated()].dropna(axis=1, how="all")
    return replace(panel, scores=scores)
