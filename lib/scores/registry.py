"""Every metric by name: where its function lies and which columns it reads."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True)
class Metric:
    """A metric of a turn table.

    `function` is "module:name" (imported when it is first used) or a function; it takes a turn
    table and options, and returns a Series or a frame of named columns on the same index.
    `provenance` takes the same options and says what the scores depend on besides texts and code.
    """

    name: str
    family: str
    function: str | Callable
    needs: tuple[str, ...]
    provenance: str | Callable | None = None
    options: dict = field(default_factory=dict)
    level: str = "turn"

    def load(self) -> Callable:
        """Return the function."""
        return _resolve(self.function)

    def facts(self, options: dict) -> dict:
        """Return what the scores depend on besides the texts and the code."""
        return _resolve(self.provenance)(**options) if self.provenance else {}


METRICS: dict[str, Metric] = {}


def register(new: Metric) -> Metric:
    """Add a metric, or replace the one of the same name; `compute` then knows it."""
    METRICS[new.name] = new
    return new


def metric(name: str) -> Metric:
    """Return a registered metric.

    Raises:
        ValueError: no such metric; names the nearest ones.

    >>> metric("bertscore").needs
    ('response', 'reference')
    """
    if name not in METRICS:
        from difflib import get_close_matches

        near = get_close_matches(name, METRICS, n=3, cutoff=0.4) or sorted(METRICS)
        raise ValueError(f"unknown metric {name!r}: did you mean {', '.join(near)}?")
    return METRICS[name]


def available() -> pd.DataFrame:
    """Return name, family, level and needed columns of each metric.

    >>> print(available().query("family == 'embedding'").name.tolist())
    ['bertscore', 'reference_similarity', 'context_similarity']
    """
    return pd.DataFrame(
        [
            {"name": m.name, "family": m.family, "level": m.level, "needs": ", ".join(m.needs)}
            for m in METRICS.values()
        ]
    )


def _resolve(function: str | Callable) -> Callable:
    if callable(function):
        return function
    module, name = function.split(":")
    return getattr(importlib.import_module(module), name)


ANSWER, PAIR = ("response", "reference"), ("context", "response")

for _name in (
    "word_f1_normalized",
    "bleu4_coco",
    "bleu4_nltk_normalized",
    "bleu4_sacrebleu",
    "rouge_l_coco",
    "rouge_l_f1_normalized",
    "rouge_l_recall_normalized",
    "meteor_15",
    "meteor_15_normalized",
):
    register(
        Metric(_name, "overlap", "lib.overlap_metrics:score", ANSWER, options={"metrics": [_name]})
    )

_LEXICAL = "lib.psychological_metrics:"
_NRC, _WORDS = "lib.scores.lexica:emotion_lexicon", "lib.scores.lexica:style_lexicon"
for _row in (
    Metric("emotional_entropy", "psychological", _LEXICAL + "emotional_entropy", ANSWER[:1], _NRC),
    Metric("emotion_matching", "psychological", _LEXICAL + "emotion_matching", PAIR, _NRC),
    Metric(
        "language_style_matching",
        "psychological",
        _LEXICAL + "language_style_matching",
        PAIR,
        _WORDS,
    ),
    Metric(
        "bertscore",
        "embedding",
        "lib.embedding_metrics:bertscore",
        ANSWER,
        "lib.embedding_metrics:bertscore_provenance",
    ),
    Metric(
        "reference_similarity",
        "embedding",
        "lib.embedding_metrics:reference_similarity",
        ANSWER,
        "lib.embedding_metrics:similarity_provenance",
    ),
    Metric(
        "context_similarity",
        "embedding",
        "lib.embedding_metrics:context_similarity",
        PAIR,
        "lib.embedding_metrics:similarity_provenance",
    ),
    *(
        Metric(
            name,
            "likelihood",
            f"lib.likelihood_metrics:{name}",
            needs,
            f"lib.likelihood_metrics:{name}_provenance",
        )
        for name, needs in (
            ("bartscore", ("context", "response", "reference")),
            ("prism_style", ("context", "response", "reference")),
            ("fed", PAIR),
            ("usl_h", PAIR),
        )
    ),
    Metric("mauve", "likelihood", "lib.likelihood_metrics:mauve", ANSWER, level="set"),
    *(
        Metric(
            name,
            "classifier",
            f"lib.classifier_metrics:{name}",
            needs,
            f"lib.classifier_metrics:{name}_provenance",
        )
        for name, needs in (
            ("bleurt", ANSWER),
            ("dialogrpt", PAIR),
            ("unieval", ("context", "response", "fact")),
            ("toxicity", ANSWER[:1]),
        )
    ),
    Metric("endex", "engagement", "lib.endex:score", PAIR, "lib.scores.lexica:endex_model"),
    *(
        Metric(name, "baseline", f"lib.endex:{name}", ANSWER[:1])
        for name in ("question", "specificity", "length", "random")
    ),
):
    register(_row)
